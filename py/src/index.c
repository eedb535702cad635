/* t[...]: numbers, slices, None, ..., scalar tensors and masks. */
#include "front.h"

#include <string.h>

typedef struct cut {
    int32_t rank; /* of the source */
    int64_t start[STK_MAX_RANK], size[STK_MAX_RANK], step[STK_MAX_RANK];
    int32_t out_rank;
    int64_t out[2 * STK_MAX_RANK];
    bool whole; /* nothing was cut off */
} cut;

static PyObject *bad_index(PyObject *key)
{
    return PyErr_Format(PyExc_TypeError,
                        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and "
                        "scalar tf.int32/tf.int64 tensors are valid indices, got %R",
                        key);
}

static bool is_scalar_index(PyObject *k)
{
    if (py_is_tensor(k)) {
        char kind = py_dtype_kind(py_tensor_dtype((py_tensor *)k));
        return py_tensor_rank((py_tensor *)k) == 0 && (kind == 'I' || kind == 'U');
    }
    return PyIndex_Check(k) && !PyBool_Check(k) && !PyList_Check(k);
}

static bool is_symbolic(PyObject *k) { return py_is_tensor(k) && !((py_tensor *)k)->t; }

static int cut_number(cut *c, int32_t axis, PyObject *key, int64_t n)
{
    int64_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return -1;
    if (i < -n || i >= n) {
        py_raise_code(STK_ERR_RANGE, "StridedSlice",
                      "slice index %lld of dimension %d out of bounds.", (long long)i, axis);
        return -1;
    }
    c->start[axis] = i < 0 ? i + n : i;
    c->size[axis] = c->step[axis] = 1;
    c->whole = false;
    return 0;
}

static int cut_slice(cut *c, int32_t axis, PyObject *key, int64_t n)
{
    PySliceObject *s = (PySliceObject *)key;
    Py_ssize_t start, stop, step;
    if (is_symbolic(s->start) || is_symbolic(s->stop) || is_symbolic(s->step)) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "slices whose bounds are only known when the function runs have no shape "
                        "that is known; use tf.gather or tf.slice with a size that is known");
        return -1;
    }
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) return -1;
    c->size[axis] = PySlice_AdjustIndices((Py_ssize_t)n, &start, &stop, step);
    c->start[axis] = start;
    c->step[axis] = step;
    c->whole = c->whole && start == 0 && step == 1 && c->size[axis] == n;
    c->out[c->out_rank++] = c->size[axis];
    return 0;
}

static int count_axes(PyObject *const *key, Py_ssize_t n)
{
    int axes = 0;
    for (Py_ssize_t i = 0; i < n; i++) axes += key[i] != Py_None && key[i] != Py_Ellipsis;
    return axes;
}

static int read_keys(cut *c, py_tensor *t, PyObject *const *key, Py_ssize_t n)
{
    int32_t axis = 0, rest = c->rank - count_axes(key, n);
    bool seen = false;
    if (rest < 0) {
        py_raise_code(STK_ERR_RANGE, "StridedSlice",
                      "Index out of range using input dim %d; input has "
                      "only %d dims",
                      c->rank, c->rank);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (key[i] == Py_None) {
            c->out[c->out_rank++] = 1;
        } else if (key[i] == Py_Ellipsis) {
            if (seen) {
                PyErr_SetString(PyExc_ValueError, "Multiple ellipses in slice spec not allowed");
                return -1;
            }
            seen = true;
            for (int32_t k = 0; k < rest; k++, axis++) c->out[c->out_rank++] = c->size[axis];
        } else if (PySlice_Check(key[i])) {
            if (cut_slice(c, axis, key[i], py_tensor_dim(t, axis))) return -1;
            axis++;
        } else if (is_scalar_index(key[i])) {
            if (cut_number(c, axis, key[i], py_tensor_dim(t, axis))) return -1;
            axis++;
        } else {
            bad_index(key[i]);
            return -1;
        }
    }
    for (; axis < c->rank; axis++) c->out[c->out_rank++] = c->size[axis];
    return 0;
}

static PyObject *apply_cut(py_tensor *t, const cut *c)
{
    static const py_row *row;
    int64_t ints[3 * STK_MAX_RANK + 2 * STK_MAX_RANK + 2];
    int32_t n = 0;
    if (!row) row = py_row_find("_cut");
    if (c->out_rank > STK_MAX_RANK)
        return PyErr_Format(PyExc_ValueError, "more than %d axes", STK_MAX_RANK);
    ints[n++] = c->rank;
    for (int32_t i = 0; i < c->rank; i++) ints[n++] = c->start[i];
    for (int32_t i = 0; i < c->rank; i++) ints[n++] = c->size[i];
    for (int32_t i = 0; i < c->rank; i++) ints[n++] = c->step[i];
    ints[n++] = c->out_rank;
    for (int32_t i = 0; i < c->out_rank; i++) ints[n++] = c->out[i];
    PyObject *in = (PyObject *)t;
    return py_run_row(row, 1, &in, n, ints, 0, NULL);
}

int32_t py_build__cut(py_build *b)
{
    int64_t rank = py_int(b);
    const int64_t *start = b->ints, *size = start + rank, *step = size + rank;
    b->ints = step + rank;
    int64_t out_rank = py_int(b);
    stk_val x = rank ? stk_g_slice(b->g, b->x[0], start, size, step) : b->x[0];
    b->y[0] = stk_g_reshape(b->g, x, (int32_t)out_rank, b->ints);
    return 1;
}

/* Strings are no business of the engine: their views are made here. */
static PyObject *cut_strings(py_tensor *t, const cut *c)
{
    stk_tensor *part = NULL, *out = NULL;
    stk_error err;
    stk_status status = STK_OK;
    for (int32_t i = 0; i < c->rank; i++)
        if (c->step[i] != 1 && c->size[i] > 0)
            return PyErr_Format(PyExc_NotImplementedError, "strings are sliced in steps of 1");
    status = stk_tensor_slice(t->t, c->start, c->size, &part, &err);
    if (status == STK_OK) status = stk_tensor_reshape(part, c->out_rank, c->out, &out, &err);
    stk_tensor_release(part);
    return status == STK_OK ? py_tensor_take(out) : py_raise(&err, "StridedSlice");
}

/* A scalar that is only known when the function runs picks along its axis first; the other keys follow. */
static PyObject *pick_symbolic(PyObject *self, PyObject *const *key, Py_ssize_t n, Py_ssize_t which)
{
    int before = count_axes(key, which), dots = 0;
    for (Py_ssize_t i = 0; i < which; i++) dots += key[i] == Py_Ellipsis;
    int32_t rank = py_tensor_rank((py_tensor *)self);
    int axis = dots ? rank - count_axes(key + which, n - which) : before;
    PyObject *number = PyLong_FromLong(axis);
    PyObject *args[3] = {self, key[which], number};
    PyObject *picked = number ? py_call_row("_take_wrapped", args, 3) : NULL;
    PyObject *rest = PyTuple_New(n - 1), *result = NULL;
    for (Py_ssize_t i = 0, k = 0; rest && i < n; i++)
        if (i != which) PyTuple_SET_ITEM(rest, k++, Py_NewRef(key[i]));
    if (picked && rest) result = py_get_item(picked, rest);
    Py_XDECREF(number);
    Py_XDECREF(picked);
    Py_XDECREF(rest);
    return result;
}

static PyObject *masked(PyObject *self, PyObject *mask)
{
    PyObject *module = PyImport_ImportModule("stoker.tf");
    PyObject *f = module ? PyObject_GetAttrString(module, "boolean_mask") : NULL;
    PyObject *r = f ? PyObject_CallFunctionObjArgs(f, self, mask, NULL) : NULL;
    Py_XDECREF(f);
    Py_XDECREF(module);
    return r;
}

/* NumPy's array of truths is a mask like a tensor of them; other keys are what they are. A new reference. */
static PyObject *mask_of_array(PyObject *key)
{
    if (strcmp(Py_TYPE(key)->tp_name, "numpy.ndarray") != 0) return Py_NewRef(key);
    PyObject *made = py_to_tensor(key, -1, -1);
    if (made && py_tensor_dtype((py_tensor *)made) == STK_BOOL) return made;
    Py_XDECREF(made);
    PyErr_Clear();
    return Py_NewRef(key);
}

static PyObject *get_item(PyObject *self, PyObject *key)
{
    PyObject *value =
        py_is_variable(self) ? py_variable_read((py_variable *)self) : Py_NewRef(self);
    if (!value) return NULL;
    py_tensor *t = (py_tensor *)value;
    PyObject *one[1] = {key}, *const *keys = one, *result = NULL;
    Py_ssize_t n = 1, symbolic = -1;
    if (PyTuple_Check(key)) {
        keys = &PyTuple_GET_ITEM(key, 0);
        n = PyTuple_GET_SIZE(key);
    }
    bool mask =
        n == 1 && py_is_tensor(keys[0]) && py_tensor_dtype((py_tensor *)keys[0]) == STK_BOOL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (is_symbolic(keys[i]) && is_scalar_index(keys[i])) symbolic = i;
    if (mask) {
        result = masked(value, keys[0]);
    } else if (symbolic >= 0) {
        result = pick_symbolic(value, keys, n, symbolic);
    } else {
        cut c = {.rank = py_tensor_rank(t), .whole = true};
        for (int32_t i = 0; i < c.rank; i++) {
            c.size[i] = py_tensor_dim(t, i);
            c.step[i] = 1;
        }
        if (read_keys(&c, t, keys, n) == 0) {
            if (c.whole && c.out_rank == c.rank)
                result = Py_NewRef(value);
            else if (t->t && t->t->dtype == STK_STRING)
                result = cut_strings(t, &c);
            else
                result = apply_cut(t, &c);
        }
    }
    Py_DECREF(value);
    return result;
}

PyObject *py_get_item(PyObject *self, PyObject *key)
{
    PyObject *mask = mask_of_array(key), *result = get_item(self, mask);
    Py_DECREF(mask);
    return result;
}
