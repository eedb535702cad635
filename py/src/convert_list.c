/* Nested lists and tuples of numbers and strings: what they hold, which dtype that makes, and the tensor of it. */
#include "convert.h"

#include <string.h>

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

static void look_at_integer(PyObject *o, py_nest *n)
{
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    n->integers = true;
    n->wide |= overflow || v > INT32_MAX || v < INT32_MIN;
    n->unsigned64 |= overflow > 0;
}

static void look_at_numpy(PyObject *o, py_nest *n)
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

void py_nest_leaf(PyObject *o, py_nest *n)
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
int py_nest_look(PyObject *o, int32_t depth, py_nest *n)
{
    if (!py_is_sequence(o)) {
        if (depth != n->rank && n->rank >= 0 && !n->foreign) {
            PyErr_SetString(PyExc_ValueError,
                            "Can't convert non-rectangular Python sequence to Tensor.");
            return -1;
        }
        n->rank = depth;
        py_nest_leaf(o, n);
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
        if (py_nest_look(PySequence_Fast_GET_ITEM(o, i), depth + 1, n)) return -1;
    return 0;
}

int py_nest_dtype(const py_nest *n)
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
    if (!py_is_sequence(o)) return put_number(w, o);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; i++)
        if (put_all(w, PySequence_Fast_GET_ITEM(o, i))) return -1;
    return 0;
}

static int put_strings(stk_string **at, PyObject *o)
{
    if (py_is_sequence(o)) {
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

static stk_tensor *strings_from(PyObject *o, const py_nest *n)
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

stk_tensor *py_cannot_convert(PyObject *o, int dtype)
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

stk_tensor *py_nest_tensor(PyObject *o, const py_nest *n, int dtype)
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
    if (!fits && count > 0) return py_cannot_convert(o, dtype);
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
            return py_cannot_convert(o, dtype);
        }
        return t;
    }
    if (!fits_type(t, (stk_dtype)dtype)) {
        stk_tensor_release(t);
        return py_cannot_convert(o, dtype);
    }
    return py_dense_copy(t, dtype);
}
