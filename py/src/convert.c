/* Python values as tensors: numbers, nested lists, strings, arrays, objects that convert themselves. */
#include "convert.h"

#include <string.h>

/* ---- arrays by the buffer protocol ------------------------------------------------------------------- */

static int dtype_of_format(const char *format, Py_ssize_t size)
{
    if (!format) return STK_U8;
    if (*format == '<' || *format == '=' || *format == '@' || *format == '|') format++;
    if (format[0] == '>' || format[0] == '!' || (format[0] && format[1])) return -1;
    switch (*format) {
    case '?': return STK_BOOL;
    case 'e': return STK_F16;
    case 'f': return STK_F32;
    case 'd': return STK_F64;
    case 'b': return STK_I8;
    case 'B': return STK_U8;
    case 'h': return STK_I16;
    case 'H': return STK_U16;
    case 'i':
    case 'l':
    case 'q': return size == 8 ? STK_I64 : STK_I32;
    case 'I':
    case 'L':
    case 'Q': return size == 8 ? STK_U64 : STK_U32;
    default: return -1;
    }
}

/* The buffer as a view; strides that are no multiple of the element size do not fit. */
static bool describe(const Py_buffer *b, stk_dtype dtype, int64_t *shape, int64_t *stride)
{
    if (b->ndim > STK_MAX_RANK) return false;
    int64_t dense = 1;
    for (int i = b->ndim - 1; i >= 0; i--) {
        shape[i] = b->shape[i];
        if (b->strides && b->strides[i] % b->itemsize) return false;
        stride[i] = b->strides ? b->strides[i] / b->itemsize : dense;
        dense *= shape[i];
    }
    return b->itemsize == stk_dtype_size(dtype);
}

static void release_buffer(void *owner)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(owner);
    PyMem_RawFree(owner);
    PyGILState_Release(state);
}

stk_tensor *py_wrap_buffer(PyObject *o)
{
    int64_t shape[STK_MAX_RANK], stride[STK_MAX_RANK];
    stk_tensor *t = NULL;
    stk_error err;
    if (!PyObject_CheckBuffer(o) || PyBytes_Check(o)) return NULL;
    Py_buffer *b = PyMem_RawMalloc(sizeof *b);
    if (!b) return NULL;
    if (PyObject_GetBuffer(o, b, PyBUF_RECORDS_RO)) {
        PyErr_Clear();
        PyMem_RawFree(b);
        return NULL;
    }
    int dtype = dtype_of_format(b->format, b->itemsize);
    if (dtype >= 0 && describe(b, (stk_dtype)dtype, shape, stride) &&
        stk_tensor_wrap((stk_dtype)dtype, b->ndim, shape, stride, b->buf, release_buffer, b, &t,
                        &err) == STK_OK)
        return t;
    PyBuffer_Release(b);
    PyMem_RawFree(b);
    return NULL;
}

/* Arrays may change behind our back. */
stk_tensor *py_dense_copy(stk_tensor *t, int dtype)
{
    stk_tensor *copy = NULL;
    stk_error err;
    stk_status status;
    if (dtype >= 0 && (stk_dtype)dtype != t->dtype)
        status = stk_tensor_cast(t, (stk_dtype)dtype, &copy, &err);
    else if ((status = stk_tensor_new(t->dtype, t->rank, t->shape, &copy, &err)) == STK_OK)
        status = stk_tensor_copy(copy, t, &err);
    stk_tensor_release(t);
    if (status == STK_OK) return copy;
    stk_tensor_release(copy);
    return py_raise(&err, NULL);
}

/* ---- all together -------------------------------------------------------------------------------------------- */

static PyObject *from_array(PyObject *o, int dtype, int preferred);

/* Lists that hold tensors or arrays: each element becomes a tensor, and they are stacked. */
static bool holds_tensors(PyObject *o)
{
    if (!py_is_sequence(o))
        return py_is_tensor(o) || py_is_variable(o) || PyObject_HasAttrString(o, "__tf_tensor__");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (holds_tensors(PySequence_Fast_GET_ITEM(o, i))) return true;
    return false;
}

/* The dtype of the first tensor in a list decides for its neighbours. */
static int dtype_inside(PyObject *o)
{
    int found = -1;
    if (py_is_tensor(o)) return (int)py_tensor_dtype((py_tensor *)o);
    if (py_is_variable(o)) return (int)py_variable_memory((py_variable *)o)->dtype;
    for (Py_ssize_t i = 0; py_is_sequence(o) && found < 0 && i < PySequence_Fast_GET_SIZE(o); i++)
        found = dtype_inside(PySequence_Fast_GET_ITEM(o, i));
    return found;
}

static PyObject *stack_of(PyObject *o, int dtype, int preferred)
{
    if (dtype < 0 && (dtype = dtype_inside(o)) < 0) dtype = preferred;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    PyObject *parts = PyList_New(n), *result = NULL;
    for (Py_ssize_t i = 0; parts && i < n; i++) {
        PyObject *part = py_to_tensor(PySequence_Fast_GET_ITEM(o, i), dtype, preferred);
        if (!part) {
            Py_DECREF(parts);
            return NULL;
        }
        PyList_SET_ITEM(parts, i, part);
    }
    if (parts) result = py_call_row("stack", &parts, 1);
    Py_XDECREF(parts);
    return result;
}

static PyObject *from_sequence(PyObject *o, int dtype, int preferred)
{
    py_nest n = {.rank = -1};
    for (int i = 0; i < STK_MAX_RANK; i++) n.shape[i] = -1;
    if (py_nest_look(o, 0, &n)) return NULL;
    if (n.foreign) {
        if (holds_tensors(o)) return stack_of(o, dtype, preferred);
        return from_array(o, dtype, preferred);
    }
    int natural = py_nest_dtype(&n);
    if (natural < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "Can't convert Python sequence with mixed types to Tensor.");
        return NULL;
    }
    int become = dtype >= 0 ? dtype : natural;
    if (dtype < 0 && preferred >= 0) { /* only when nothing is lost on the way */
        char kind = py_dtype_kind((stk_dtype)preferred);
        bool can = n.strings                ? kind == 'S'
                   : n.floats               ? kind == 'F'
                   : n.bools && !n.integers ? kind == 'B'
                                            : kind == 'F' || kind == 'I' || kind == 'U';
        bool empty = !n.strings && !n.floats && !n.integers && !n.bools;
        if ((can || empty) && kind != 'S') become = preferred;
    }
    stk_tensor *t = py_nest_tensor(o, &n, become);
    return t ? py_tensor_take(t) : NULL;
}

static void release_handle(void *t) { stk_tensor_release(t); }

/* 16-bit words seen as what they are. Takes over the handle. */
static stk_tensor *as_bfloat16(stk_tensor *words)
{
    stk_tensor *t = NULL;
    stk_error err;
    if (stk_tensor_wrap(STK_BF16, words->rank, words->shape, words->stride, words->data,
                        release_handle, words, &t, &err) == STK_OK)
        return t;
    stk_tensor_release(words);
    return py_raise(&err, NULL);
}

static bool is_empty(PyObject *array)
{
    PyObject *size = PyObject_GetAttrString(array, "size");
    bool empty = size && PyLong_Check(size) && PyLong_AsLong(size) == 0;
    Py_XDECREF(size);
    PyErr_Clear();
    return empty;
}

/* An array of strings that has none: its shape is all there is to it. */
static PyObject *empty_strings(PyObject *array)
{
    int64_t dim[STK_MAX_RANK];
    stk_tensor *t = NULL;
    stk_error err;
    PyObject *shape = PyObject_GetAttrString(array, "shape");
    int rank = shape ? py_ints_from(shape, "shape", STK_MAX_RANK, dim) : -1;
    Py_XDECREF(shape);
    if (rank < 0) return NULL;
    if (stk_tensor_new(STK_STRING, rank, dim, &t, &err) != STK_OK) return py_raise(&err, NULL);
    return py_tensor_take(t);
}

/* What an array without a buffer that we know becomes: strings and objects, bfloat16, big-endian numbers. */
static PyObject *from_odd_array(PyObject *array, int dtype, int preferred)
{
    PyObject *dt = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = dt ? PyObject_GetAttrString(dt, "kind") : NULL;
    PyObject *name = dt ? PyObject_GetAttrString(dt, "name") : NULL;
    PyObject *out = NULL, *changed = NULL;
    const char *letter = kind ? PyUnicode_AsUTF8(kind) : "",
               *text = name ? PyUnicode_AsUTF8(name) : "";
    bool strings = dtype == STK_STRING || (dtype < 0 && (*letter == 'S' || *letter == 'U'));
    if (strings && strchr("OSU", *letter) && *letter && is_empty(array)) {
        out = empty_strings(array);
    } else if (*letter == 'O' || *letter == 'S' || *letter == 'U') {
        changed = PyObject_CallMethod(array, "tolist", NULL);
        out = changed ? from_sequence(changed,
                                      dtype >= 0       ? dtype
                                      : *letter == 'O' ? -1
                                                       : STK_STRING,
                                      preferred)
                      : NULL;
    } else if (!strcmp(text, "bfloat16")) {
        changed = PyObject_CallMethod(array, "view", "s", "uint16");
        stk_tensor *t = changed ? py_wrap_buffer(changed) : NULL;
        if (t) t = as_bfloat16(t);
        if (t) t = py_dense_copy(t, dtype);
        out = t ? py_tensor_take(t) : NULL;
    } else if (strchr("fiub", *letter) && *letter) {
        changed = PyObject_CallMethod(dt, "newbyteorder", "s", "=");
        PyObject *native = changed ? PyObject_CallMethod(array, "astype", "O", changed) : NULL;
        out = native ? from_array(native, dtype, preferred) : NULL;
        Py_XDECREF(native);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError,
                     "Failed to convert a NumPy array to a Tensor "
                     "(Unsupported numpy type: %S).",
                     dt);
    }
    Py_XDECREF(changed);
    Py_XDECREF(dt);
    Py_XDECREF(kind);
    Py_XDECREF(name);
    return out;
}

/* The first item of nested sequences that is no number and no text. Borrowed. */
static PyObject *culprit(PyObject *o)
{
    if (!py_is_sequence(o))
        return PyFloat_Check(o) || PyLong_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ? NULL
                                                                                             : o;
    PyObject *found = NULL;
    for (Py_ssize_t i = 0; !found && i < PySequence_Fast_GET_SIZE(o); i++)
        found = culprit(PySequence_Fast_GET_ITEM(o, i));
    return found;
}

/* A sequence that NumPy only takes as objects: its items are nothing that a tensor can hold. */
static bool holds_objects(PyObject *o, PyObject *array)
{
    PyObject *dt = py_is_sequence(o) ? PyObject_GetAttrString(array, "dtype") : NULL;
    PyObject *kind = dt ? PyObject_GetAttrString(dt, "kind") : NULL;
    bool objects = kind && PyUnicode_CompareWithASCIIString(kind, "O") == 0;
    Py_XDECREF(dt);
    Py_XDECREF(kind);
    PyErr_Clear();
    if (!objects) return false;
    PyObject *item = culprit(o);
    item = item ? item : o;
    PyErr_Format(PyExc_ValueError,
                 "Attempt to convert a value (%R) with an unsupported type (%R) to a Tensor.", item,
                 (PyObject *)Py_TYPE(item));
    return true;
}

static PyObject *from_array(PyObject *o, int dtype, int preferred)
{
    stk_tensor *t = py_wrap_buffer(o);
    if (t) {
        int become = dtype >= 0 ? dtype : preferred >= 0 ? preferred : -1;
        if (become == STK_STRING) {
            stk_tensor_release(t);
            return (PyObject *)(void *)py_cannot_convert(o, become);
        }
        t = py_dense_copy(t, become);
        return t ? py_tensor_take(t) : NULL;
    }
    PyObject *np = py_numpy();
    PyObject *array = np ? PyObject_CallMethod(np, "asarray", "O", o) : NULL;
    if (!array) return NULL;
    PyObject *result = NULL;
    if (array != o && (t = py_wrap_buffer(array))) {
        t = py_dense_copy(t, dtype >= 0 ? dtype : preferred);
        result = t ? py_tensor_take(t) : NULL;
    } else if (!holds_objects(o, array)) {
        result = from_odd_array(array, dtype, preferred);
    }
    Py_DECREF(array);
    return result;
}

static PyObject *checked_dtype(PyObject *tensor, int dtype)
{
    if (!tensor || dtype < 0 || (int)py_tensor_dtype((py_tensor *)tensor) == dtype) return tensor;
    PyErr_Format(PyExc_ValueError,
                 "Tensor conversion requested dtype %s for Tensor with dtype %s: %R",
                 stk_dtype_name((stk_dtype)dtype),
                 stk_dtype_name(py_tensor_dtype((py_tensor *)tensor)), tensor);
    Py_DECREF(tensor);
    return NULL;
}

static bool is_array(PyObject *o)
{
    return !PyUnicode_Check(o) && !PyBytes_Check(o) &&
           (PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__array__") ||
            PyObject_HasAttrString(o, "__array_interface__"));
}

static PyObject *from_scalar(PyObject *o, int dtype, int preferred)
{
    py_nest n = {.rank = 0};
    py_nest_leaf(o, &n);
    int natural = py_nest_dtype(&n), become = dtype >= 0 ? dtype : natural;
    if (dtype < 0 && preferred >= 0) {
        char kind = py_dtype_kind((stk_dtype)preferred);
        if (n.floats     ? kind == 'F'
            : n.integers ? strchr("FIU", kind) != NULL
                         : n.bools && kind == 'B')
            become = preferred;
    }
    stk_tensor *t = py_nest_tensor(o, &n, become);
    return t ? py_tensor_take(t) : NULL;
}

PyObject *py_to_tensor(PyObject *o, int dtype, int preferred)
{
    if (py_is_tensor(o)) return checked_dtype(Py_NewRef(o), dtype);
    if (py_is_variable(o)) return checked_dtype(py_variable_read((py_variable *)o), dtype);
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyUnicode_Check(o) ||
        PyBytes_Check(o))
        return from_scalar(o, dtype, preferred);
    if (py_is_sequence(o)) return from_sequence(o, dtype, preferred);
    if (Py_TYPE(o) == py_shape_type || PyRange_Check(o)) {
        bool shape = !PyRange_Check(o);
        PyObject *list = shape ? PyObject_CallMethod(o, "as_list", NULL) : PySequence_List(o);
        int kind = dtype < 0 && shape ? STK_I32 : dtype;
        PyObject *t = list ? from_sequence(list, kind, preferred) : NULL;
        Py_XDECREF(list);
        return t;
    }
    if (o != Py_None && !PyObject_CheckBuffer(o)) {
        PyObject *method = PyObject_GetAttrString(o, "__tf_tensor__");
        if (method) {
            PyObject *t = PyObject_CallNoArgs(method);
            Py_DECREF(method);
            PyObject *again = t ? py_to_tensor(t, dtype, preferred) : NULL;
            Py_XDECREF(t);
            return again;
        }
        PyErr_Clear();
    }
    if (is_array(o)) return from_array(o, dtype, preferred);
    if (PyNumber_Check(o) && o != Py_None && (PyIndex_Check(o) || PyFloat_Check(o))) {
        PyObject *number = PyFloat_Check(o) ? PyNumber_Float(o) : PyNumber_Index(o);
        PyObject *t = number ? from_scalar(number, dtype, preferred) : NULL;
        Py_XDECREF(number);
        return t;
    }
    PyErr_Format(PyExc_ValueError,
                 "Attempt to convert a value (%R) with an unsupported type (%R) "
                 "to a Tensor.",
                 o, (PyObject *)Py_TYPE(o));
    return NULL;
}

stk_tensor *py_to_eager(PyObject *o, int dtype, const char *what)
{
    PyObject *t = py_to_tensor(o, dtype, -1);
    if (!t) return NULL;
    stk_tensor *handle = ((py_tensor *)t)->t ? py_on_host(((py_tensor *)t)->t) : NULL;
    if (!handle && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%s: the value is only known when the function runs; it must "
                     "be known while it is traced",
                     what);
    Py_DECREF(t);
    return handle;
}
