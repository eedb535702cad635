/* tf.TensorShape: sizes, some or all of which may be unknown. */
#include "front.h"

#include <string.h>

PyTypeObject *py_shape_type;

typedef struct py_shape {
    PyObject_HEAD int32_t rank; /* -1: unknown */
    int64_t dim[STK_MAX_RANK + 8];
} py_shape;
enum { MOST = STK_MAX_RANK + 8 };

PyObject *py_shape_new(int32_t rank, const int64_t *dim)
{
    py_shape *s = PyObject_New(py_shape, py_shape_type);
    if (!s) return NULL;
    s->rank = rank;
    if (rank > 0) memcpy(s->dim, dim, (size_t)rank * sizeof *dim);
    return (PyObject *)s;
}

static int one_int(PyObject *o, const char *what, int64_t *out)
{
    if (o == Py_None) {
        *out = -1;
        return 0;
    }
    PyObject *number = PyNumber_Index(o);
    if (!number) { /* compat.v1.Dimension and floats that are whole are not sizes in TensorFlow either */
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: %R is no integer", what, o);
        return -1;
    }
    *out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int ints_from_tensor(stk_tensor *t, const char *what, int most, int64_t *out)
{
    int64_t n = stk_tensor_count(t);
    char kind = py_dtype_kind(t->dtype);
    if ((kind != 'I' && kind != 'U') || t->rank > 1 || n > most) {
        PyErr_Format(PyExc_TypeError, "%s: needs integers, at most %d in one row", what, most);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) out[i] = (int64_t)stk_tensor_at(t, i);
    return (int)n;
}

int py_ints_from(PyObject *o, const char *what, int most, int64_t *out)
{
    if (Py_TYPE(o) == py_shape_type) {
        py_shape *s = (py_shape *)o;
        for (int32_t i = 0; i < s->rank; i++) out[i] = s->dim[i];
        return s->rank < 0 ? 0 : s->rank;
    }
    if (PyList_Check(o) || PyTuple_Check(o)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        if (n > most) {
            PyErr_Format(PyExc_ValueError, "%s: %zd numbers; at most %d", what, n, most);
            return -1;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            if (one_int(PySequence_Fast_GET_ITEM(o, i), what, &out[i])) return -1;
        return (int)n;
    }
    if (PyLong_Check(o)) return one_int(o, what, out) ? -1 : 1;
    stk_tensor *t = py_to_eager(o, -1, what);
    if (!t) return -1;
    int n = ints_from_tensor(t, what, most, out);
    stk_tensor_release(t);
    return n;
}

/* ---- the object -------------------------------------------------------------------------------------- */

static py_shape *as_shape(PyObject *o) /* new reference */
{
    if (Py_TYPE(o) == py_shape_type) return (py_shape *)Py_NewRef(o);
    int64_t dim[MOST];
    int n = o == Py_None ? -1 : py_ints_from(o, "TensorShape", MOST, dim);
    return n < 0 && PyErr_Occurred() ? NULL : (py_shape *)py_shape_new(n, dim);
}

static PyObject *shape_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    static char *names[] = {"dims", NULL};
    PyObject *dims;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &dims)) return NULL;
    return (PyObject *)as_shape(dims);
}

static PyObject *dim_object(int64_t d)
{
    if (d < 0) Py_RETURN_NONE;
    return PyLong_FromLongLong(d);
}

static PyObject *as_tuple(py_shape *s)
{
    PyObject *t = PyTuple_New(s->rank < 0 ? 0 : s->rank);
    for (int32_t i = 0; t && i < s->rank; i++) PyTuple_SET_ITEM(t, i, dim_object(s->dim[i]));
    return t;
}

static PyObject *as_list(PyObject *o, PyObject *unused)
{
    (void)unused;
    py_shape *s = (py_shape *)o;
    if (s->rank < 0) {
        PyErr_SetString(PyExc_ValueError, "as_list() is not defined on an unknown TensorShape.");
        return NULL;
    }
    PyObject *list = PyList_New(s->rank);
    for (int32_t i = 0; list && i < s->rank; i++) PyList_SET_ITEM(list, i, dim_object(s->dim[i]));
    return list;
}

static PyObject *shape_repr(PyObject *o)
{
    if (((py_shape *)o)->rank < 0) return PyUnicode_FromString("TensorShape(None)");
    PyObject *list = as_list(o, NULL),
             *text = list ? PyUnicode_FromFormat("TensorShape(%R)", list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *shape_str(PyObject *o)
{
    if (((py_shape *)o)->rank < 0) return PyUnicode_FromString("<unknown>");
    PyObject *t = as_tuple((py_shape *)o), *text = t ? PyObject_Repr(t) : NULL;
    Py_XDECREF(t);
    return text;
}

static Py_hash_t shape_hash(PyObject *o)
{
    PyObject *t = as_tuple((py_shape *)o);
    Py_hash_t h = t ? PyObject_Hash(t) : -1;
    Py_XDECREF(t);
    return h;
}

static Py_ssize_t shape_len(PyObject *o)
{
    if (((py_shape *)o)->rank >= 0) return ((py_shape *)o)->rank;
    PyErr_SetString(PyExc_ValueError, "Cannot take the length of shape with unknown rank.");
    return -1;
}

static PyObject *shape_item(PyObject *o, Py_ssize_t i)
{
    py_shape *s = (py_shape *)o;
    if (s->rank < 0) Py_RETURN_NONE;
    if (i < 0 || i >= s->rank) {
        PyErr_SetString(PyExc_IndexError, "list index out of range");
        return NULL;
    }
    return dim_object(s->dim[i]);
}

static PyObject *shape_subscript(PyObject *o, PyObject *key)
{
    py_shape *s = (py_shape *)o;
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step, n;
        int64_t dim[MOST];
        if (s->rank < 0) return py_shape_new(-1, NULL);
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) return NULL;
        n = PySlice_AdjustIndices(s->rank, &start, &stop, step);
        for (Py_ssize_t i = 0; i < n; i++) dim[i] = s->dim[start + i * step];
        return py_shape_new((int32_t)n, dim);
    }
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    return shape_item(o, i < 0 && s->rank >= 0 ? i + s->rank : i);
}

static PyObject *shape_compare(PyObject *a, PyObject *b, int how)
{
    if (how != Py_EQ && how != Py_NE) {
        PyObject *x = as_tuple((py_shape *)a);
        PyObject *y = Py_TYPE(b) == py_shape_type ? as_tuple((py_shape *)b) : Py_NewRef(b);
        PyObject *r = x && y ? PyObject_RichCompare(x, y, how) : NULL;
        Py_XDECREF(x);
        Py_XDECREF(y);
        return r;
    }
    py_shape *s = (py_shape *)a, *t = as_shape(b);
    if (!t) {
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    bool same = s->rank == t->rank;
    for (int32_t i = 0; same && i < s->rank; i++) same = s->dim[i] == t->dim[i];
    Py_DECREF(t);
    return PyBool_FromLong(same == (how == Py_EQ));
}

static PyObject *incompatible(PyObject *a, PyObject *b)
{
    PyErr_Format(PyExc_ValueError, "Shapes %S and %S are incompatible", a, b);
    return NULL;
}

/* The common knowledge of two shapes; false when they contradict each other. */
static bool merge(const py_shape *a, const py_shape *b, py_shape *out)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = a->rank < 0 ? *b : *a;
        return true;
    }
    *out = *a;
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i]) return false;
        out->dim[i] = a->dim[i] >= 0 ? a->dim[i] : b->dim[i];
    }
    return true;
}

static PyObject *merge_with(PyObject *o, PyObject *other)
{
    py_shape *t = as_shape(other), m;
    if (!t) return NULL;
    bool fits = merge((py_shape *)o, t, &m);
    if (!fits) incompatible(o, (PyObject *)t);
    Py_DECREF(t);
    return fits ? py_shape_new(m.rank, m.dim) : NULL;
}

static PyObject *is_compatible_with(PyObject *o, PyObject *other)
{
    py_shape *t = as_shape(other), m;
    if (!t) return NULL;
    bool fits = merge((py_shape *)o, t, &m);
    Py_DECREF(t);
    return PyBool_FromLong(fits);
}

static PyObject *assert_is_compatible_with(PyObject *o, PyObject *other)
{
    PyObject *m = merge_with(o, other);
    if (!m) return NULL;
    Py_DECREF(m);
    Py_RETURN_NONE;
}

static PyObject *concatenate(PyObject *o, PyObject *other)
{
    py_shape *s = (py_shape *)o, *t = as_shape(other);
    if (!t) return NULL;
    PyObject *r = NULL;
    int64_t dim[2 * MOST];
    if (s->rank < 0 || t->rank < 0) {
        r = py_shape_new(-1, NULL);
    } else if (s->rank + t->rank <= MOST) {
        memcpy(dim, s->dim, (size_t)s->rank * sizeof *dim);
        memcpy(dim + s->rank, t->dim, (size_t)t->rank * sizeof *dim);
        r = py_shape_new(s->rank + t->rank, dim);
    } else {
        PyErr_Format(PyExc_ValueError, "a shape has at most %d sizes", MOST);
    }
    Py_DECREF(t);
    return r;
}

static PyObject *shape_add(PyObject *a, PyObject *b)
{
    py_shape *s = as_shape(a);
    PyObject *r = s ? concatenate((PyObject *)s, b) : NULL;
    Py_XDECREF(s);
    return r;
}

static PyObject *with_rank(PyObject *o, PyObject *n)
{
    py_shape *s = (py_shape *)o;
    long rank = PyLong_AsLong(n);
    int64_t dim[MOST];
    if (rank == -1 && PyErr_Occurred()) return NULL;
    if (rank < 0 || rank > MOST || (s->rank >= 0 && s->rank != rank)) {
        PyErr_Format(PyExc_ValueError, "Shape %S must have rank %ld", o, rank);
        return NULL;
    }
    if (s->rank >= 0) return Py_NewRef(o);
    for (long i = 0; i < rank; i++) dim[i] = -1;
    return py_shape_new((int32_t)rank, dim);
}

static PyObject *with_rank_at_least(PyObject *o, PyObject *n)
{
    py_shape *s = (py_shape *)o;
    long rank = PyLong_AsLong(n);
    if (rank == -1 && PyErr_Occurred()) return NULL;
    if (s->rank < 0 || s->rank >= rank) return Py_NewRef(o);
    PyErr_Format(PyExc_ValueError, "Shape %S must have rank at least %ld", o, rank);
    return NULL;
}

static bool is_known(const py_shape *s)
{
    for (int32_t i = 0; i < s->rank; i++)
        if (s->dim[i] < 0) return false;
    return s->rank >= 0;
}

static PyObject *is_fully_defined(PyObject *o, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_known((py_shape *)o));
}

static PyObject *num_elements(PyObject *o, PyObject *unused)
{
    (void)unused;
    py_shape *s = (py_shape *)o;
    int64_t n = 1;
    if (!is_known(s)) Py_RETURN_NONE;
    for (int32_t i = 0; i < s->rank; i++) n *= s->dim[i];
    return PyLong_FromLongLong(n);
}

static PyObject *most_general(PyObject *o, PyObject *other)
{
    py_shape *s = (py_shape *)o, *t = as_shape(other);
    int64_t dim[MOST];
    if (!t) return NULL;
    int32_t rank = s->rank == t->rank ? s->rank : -1;
    for (int32_t i = 0; i < rank; i++) dim[i] = s->dim[i] == t->dim[i] ? s->dim[i] : -1;
    Py_DECREF(t);
    return py_shape_new(rank, dim);
}

static PyObject *get_rank(PyObject *o, void *c)
{
    (void)c;
    return dim_object(((py_shape *)o)->rank);
}
static PyObject *get_dims(PyObject *o, void *c)
{
    (void)c;
    if (((py_shape *)o)->rank < 0) Py_RETURN_NONE;
    return as_list(o, NULL);
}
static PyObject *reduce(PyObject *o, PyObject *unused)
{
    (void)unused;
    PyObject *dims = get_dims(o, NULL);
    return dims ? Py_BuildValue("(O(N))", Py_TYPE(o), dims) : NULL;
}
static int shape_bool(PyObject *o) { return ((py_shape *)o)->rank >= 0; }

static PyGetSetDef getters[] = {
    {"rank", get_rank, NULL, NULL, NULL},
    {"ndims", get_rank, NULL, NULL, NULL},
    {"dims", get_dims, NULL, NULL, NULL},
    {"_dims", get_dims, NULL, NULL, NULL}, /* Keras asks by this name when it writes a config */
    {NULL, NULL, NULL, NULL, NULL}};
static PyObject *shape_iter(PyObject *o)
{
    PyObject *list = as_list(o, NULL), *it = list ? PyObject_GetIter(list) : NULL;
    Py_XDECREF(list);
    return it;
}

static PyMethodDef methods[] = {
    {"as_list", as_list, METH_NOARGS, NULL},
    {"num_elements", num_elements, METH_NOARGS, NULL},
    {"is_fully_defined", is_fully_defined, METH_NOARGS, NULL},
    {"is_compatible_with", is_compatible_with, METH_O, NULL},
    {"assert_is_compatible_with", assert_is_compatible_with, METH_O, NULL},
    {"merge_with", merge_with, METH_O, NULL},
    {"concatenate", concatenate, METH_O, NULL},
    {"with_rank", with_rank, METH_O, NULL},
    {"assert_has_rank", with_rank, METH_O, NULL},
    {"with_rank_at_least", with_rank_at_least, METH_O, NULL},
    {"most_general_compatible_shape", most_general, METH_O, NULL},
    {"most_specific_compatible_shape", most_general, METH_O, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

int py_init_shape(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_new, shape_new},
                                  {Py_tp_repr, shape_repr},
                                  {Py_tp_str, shape_str},
                                  {Py_tp_hash, shape_hash},
                                  {Py_tp_richcompare, shape_compare},
                                  {Py_tp_iter, shape_iter},
                                  {Py_sq_length, shape_len},
                                  {Py_sq_item, shape_item},
                                  {Py_mp_subscript, shape_subscript},
                                  {Py_mp_length, shape_len},
                                  {Py_nb_add, shape_add},
                                  {Py_nb_bool, shape_bool},
                                  {Py_tp_getset, getters},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"tensorflow.python.framework.tensor_shape.TensorShape",
                               sizeof(py_shape), 0, Py_TPFLAGS_DEFAULT, slots};
    py_shape_type = py_add_type(module, &spec, NULL, "TensorShape");
    return py_shape_type ? 0 : -1;
}
