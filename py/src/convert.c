/* Python values as tensors: numbers, nested lists, strings, arrays, objects that convert themselves. */
#include "front.h"

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

/* A dense copy: arrays may change behind our back. */
static stk_tensor *copy_of(stk_tensor *t, int dtype)
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

/* ---- nested sequences of numbers and strings ------------------------------------------------------------ */

typedef struct nest {
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    bool integers, floats, bools, strings, wide, foreign, unsigned64; /* what the leaves are */
    int first; /* dtype + 1 when the first leaf is a float of numpy's: that decides */
} nest;

static bool is_sequence(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

/* Scalars of numpy count as numbers of Python; 0: no such thing, 'f' 'i' or 'b'. */
static char numpy_scalar(PyObject *o, int *dtype)
{
    const char *name = Py_TYPE(o)->tp_name;
    if (strncmp(name, "numpy.", 6)) return 0;
    name += 6;
    *dtype = !strcmp(name, "float64")   ? STK_F64
             : !strcmp(name, "float32") ? STK_F32
             : !strcmp(name, "float16") ? STK_F16
                                        : -1;
    if (*dtype >= 0) return 'f';
    if (!strcmp(name, "bool") || !strcmp(name, "bool_")) return 'b';
    return !strncmp(name, "int", 3) || !strncmp(name, "uint", 4) ? 'i' : 0;
}

static void look_at_integer(PyObject *o, nest *n)
{
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    n->integers = true;
    n->wide |= overflow || v > INT32_MAX || v < INT32_MIN;
    n->unsigned64 |= overflow > 0;
}

static void look_at_numpy(PyObject *o, nest *n)
{
    int dtype = -1;
    char kind = numpy_scalar(o, &dtype);
    bool is_first = !n->integers && !n->floats && !n->bools && !n->strings;
    if (kind == 'f') {
        n->floats = true;
        if (is_first) n->first = dtype + 1;
    } else if (kind == 'i') {
        look_at_integer(o, n);
    } else if (kind == 'b') {
        n->bools = true;
    } else {
        n->foreign = true;
    }
}

static void look_at_leaf(PyObject *o, nest *n)
{
    if (PyFloat_CheckExact(o)) {
        n->floats = true;
    } else if (PyBool_Check(o)) {
        n->bools = true;
    } else if (PyLong_CheckExact(o)) {
        look_at_integer(o, n);
    } else if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        n->strings = true;
    } else {
        look_at_numpy(o, n);
    }
}

/* 0, or -1 with an exception when the sizes do not agree. */
static int look(PyObject *o, int32_t depth, nest *n)
{
    if (!is_sequence(o)) {
        if (depth != n->rank && n->rank >= 0 && !n->foreign) {
            PyErr_SetString(PyExc_ValueError,
                            "Can't convert non-rectangular Python sequence to Tensor.");
            return -1;
        }
        n->rank = depth;
        look_at_leaf(o, n);
        return 0;
    }
    Py_ssize_t size = PySequence_Fast_GET_SIZE(o);
    if (depth >= STK_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "more than %d axes", STK_MAX_RANK);
        return -1;
    }
    if (n->shape[depth] < 0) n->shape[depth] = size;
    if (n->shape[depth] != size || (n->rank >= 0 && depth >= n->rank)) {
        if (n->foreign) return 0;
        PyErr_SetString(PyExc_ValueError,
                        "Can't convert non-rectangular Python sequence to Tensor.");
        return -1;
    }
    if (size == 0 && n->rank < 0) n->rank = depth + 1;
    for (Py_ssize_t i = 0; i < size; i++)
        if (look(PySequence_Fast_GET_ITEM(o, i), depth + 1, n)) return -1;
    return 0;
}

static int natural_dtype(const nest *n)
{
    if (n->strings) return n->floats || n->integers || n->bools ? -1 : STK_STRING;
    if (n->floats) return n->first ? n->first - 1 : STK_F32;
    if (n->integers) return n->unsigned64 ? STK_U64 : n->wide ? STK_I64 : STK_I32;
    return n->bools ? STK_BOOL : STK_F32;
}

typedef struct writer {
    char *at;
    stk_dtype dtype;
} writer;

#define PUT(type, value) *(type *)(void *)w->at = (type)(value)
static int put_number(writer *w, PyObject *o)
{
    double d = 0;
    long long i = 0;
    if (w->dtype == STK_F32 || w->dtype == STK_F64) {
        d = PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) : PyFloat_AsDouble(o);
        if (d == -1 && PyErr_Occurred()) return -1;
        if (w->dtype == STK_F32)
            PUT(float, d);
        else
            PUT(double, d);
    } else if (w->dtype == STK_U64) {
        unsigned long long u = PyLong_AsUnsignedLongLongMask(o);
        if (u == (unsigned long long)-1 && PyErr_Occurred()) return -1;
        PUT(uint64_t, u);
    } else {
        i = w->dtype == STK_BOOL ? PyObject_IsTrue(o) : PyLong_AsLongLong(o);
        if (i == -1 && PyErr_Occurred()) return -1;
        switch (w->dtype) {
        case STK_I32: PUT(int32_t, i); break;
        case STK_I64: PUT(int64_t, i); break;
        case STK_BOOL: PUT(uint8_t, i != 0); break;
        default: break;
        }
    }
    w->at += stk_dtype_size(w->dtype);
    return 0;
}

static int put_all(writer *w, PyObject *o)
{
    if (!is_sequence(o)) return put_number(w, o);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; i++)
        if (put_all(w, PySequence_Fast_GET_ITEM(o, i))) return -1;
    return 0;
}

static int put_strings(stk_string **at, PyObject *o)
{
    if (is_sequence(o)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        for (Py_ssize_t i = 0; i < n; i++)
            if (put_strings(at, PySequence_Fast_GET_ITEM(o, i))) return -1;
        return 0;
    }
    Py_ssize_t size;
    char *data;
    if (PyUnicode_Check(o)) {
        data = (char *)(uintptr_t)PyUnicode_AsUTF8AndSize(o, &size);
        if (!data) return -1;
    } else if (PyBytes_AsStringAndSize(o, &data, &size)) {
        return -1;
    }
    *(*at)++ = (stk_string){data, size};
    return 0;
}

static stk_tensor *strings_from(PyObject *o, const nest *n)
{
    int64_t count = 1;
    stk_error err;
    stk_tensor *t = NULL;
    for (int32_t i = 0; i < n->rank; i++) count *= n->shape[i];
    stk_string *items = PyMem_Malloc(((size_t)count + 1) * sizeof *items), *at = items;
    if (!items) return (stk_tensor *)(void *)PyErr_NoMemory();
    bool fine = put_strings(&at, o) == 0;
    if (fine && stk_tensor_strings(n->rank, n->shape, items, &t, &err) != STK_OK)
        py_raise(&err, NULL);
    PyMem_Free(items);
    return t;
}

/* What Python writes into: a float or 64-bit type that the wanted one is then cast from, so that range rules are those of casts. */
static stk_dtype writing_type(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32:
    case STK_F64:
    case STK_I32:
    case STK_I64:
    case STK_U64:
    case STK_BOOL: return dtype;
    case STK_F16:
    case STK_BF16: return STK_F64;
    default: return STK_I64;
    }
}

static stk_tensor *cannot_convert(PyObject *o, int dtype)
{
    PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", o,
                 py_dtype_tf_name((stk_dtype)dtype));
    return NULL;
}

/* Integers that do not fit a narrow type are a mistake, as in TensorFlow. */
static bool fits_type(const stk_tensor *wide, stk_dtype dtype)
{
    if (wide->dtype != STK_I64) return true;
    int bits = (int)(8 * stk_dtype_size(dtype));
    bool is_signed = py_dtype_kind(dtype) == 'I';
    int64_t low = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    int64_t high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
    const int64_t *v = wide->data;
    for (int64_t i = 0, n = stk_tensor_count(wide); i < n; i++)
        if (v[i] < low || v[i] > high) return false;
    return true;
}

static stk_tensor *numbers_from(PyObject *o, const nest *n, int dtype)
{
    stk_error err;
    stk_tensor *t = NULL;
    char kind = py_dtype_kind((stk_dtype)dtype);
    bool fits = kind == 'F'   ? !n->bools && !n->strings
                : kind == 'B' ? !n->integers && !n->floats && !n->strings
                : kind == 'S' ? n->strings && !n->floats && !n->integers && !n->bools
                              : !n->floats && !n->strings && (!n->bools || n->integers);
    int64_t count = 1;
    for (int32_t i = 0; i < n->rank; i++) count *= n->shape[i];
    if (!fits && count > 0) return cannot_convert(o, dtype);
    if (kind == 'S') return strings_from(o, n);
    writer w = {.dtype = writing_type((stk_dtype)dtype)};
    if (w.dtype == STK_F64 && n->wide && kind != 'F') w.dtype = STK_I64;
    if (stk_tensor_new(w.dtype, n->rank, n->shape, &t, &err) != STK_OK) return py_raise(&err, NULL);
    w.at = t->data;
    if (put_all(&w, o)) {
        stk_tensor_release(t);
        return NULL;
    }
    if (w.dtype == (stk_dtype)dtype) {
        if (dtype == STK_I32 && n->wide) {
            stk_tensor_release(t);
            return cannot_convert(o, dtype);
        }
        return t;
    }
    if (!fits_type(t, (stk_dtype)dtype)) {
        stk_tensor_release(t);
        return cannot_convert(o, dtype);
    }
    return copy_of(t, dtype);
}

/* ---- all together -------------------------------------------------------------------------------------------- */

static PyObject *from_array(PyObject *o, int dtype, int preferred);

/* Lists that hold tensors or arrays: each element becomes a tensor, and they are stacked. */
static bool holds_tensors(PyObject *o)
{
    if (!is_sequence(o))
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
    for (Py_ssize_t i = 0; is_sequence(o) && found < 0 && i < PySequence_Fast_GET_SIZE(o); i++)
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
    nest n = {.rank = -1};
    for (int i = 0; i < STK_MAX_RANK; i++) n.shape[i] = -1;
    if (look(o, 0, &n)) return NULL;
    if (n.foreign) {
        if (holds_tensors(o)) return stack_of(o, dtype, preferred);
        return from_array(o, dtype, preferred);
    }
    int natural = natural_dtype(&n);
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
    stk_tensor *t = numbers_from(o, &n, become);
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
        if (t) t = copy_of(t, dtype);
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

static PyObject *from_array(PyObject *o, int dtype, int preferred)
{
    stk_tensor *t = py_wrap_buffer(o);
    if (t) {
        int become = dtype >= 0 ? dtype : preferred >= 0 ? preferred : -1;
        if (become == STK_STRING) {
            stk_tensor_release(t);
            return (PyObject *)(void *)cannot_convert(o, become);
        }
        t = copy_of(t, become);
        return t ? py_tensor_take(t) : NULL;
    }
    PyObject *np = py_numpy();
    PyObject *array = np ? PyObject_CallMethod(np, "asarray", "O", o) : NULL;
    if (!array) return NULL;
    PyObject *result = NULL;
    if (array != o && (t = py_wrap_buffer(array))) {
        t = copy_of(t, dtype >= 0 ? dtype : preferred);
        result = t ? py_tensor_take(t) : NULL;
    } else {
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
    nest n = {.rank = 0};
    look_at_leaf(o, &n);
    int natural = natural_dtype(&n), become = dtype >= 0 ? dtype : natural;
    if (dtype < 0 && preferred >= 0) {
        char kind = py_dtype_kind((stk_dtype)preferred);
        if (n.floats     ? kind == 'F'
            : n.integers ? strchr("FIU", kind) != NULL
                         : n.bools && kind == 'B')
            become = preferred;
    }
    stk_tensor *t = numbers_from(o, &n, become);
    return t ? py_tensor_take(t) : NULL;
}

PyObject *py_to_tensor(PyObject *o, int dtype, int preferred)
{
    if (py_is_tensor(o)) return checked_dtype(Py_NewRef(o), dtype);
    if (py_is_variable(o)) return checked_dtype(py_variable_read((py_variable *)o), dtype);
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyUnicode_Check(o) ||
        PyBytes_Check(o))
        return from_scalar(o, dtype, preferred);
    if (is_sequence(o)) return from_sequence(o, dtype, preferred);
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
