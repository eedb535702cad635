/* Tensors as Python values: numpy arrays and scalars (always copies: results are used again), numbers, bytes. */
#include "front.h"

#include <string.h>

PyObject *py_numpy(void)
{
    static PyObject *module;
    if (!module) module = PyImport_ImportModule("numpy");
    return module;
}

static PyObject *np_empty(void)
{
    static PyObject *function;
    PyObject *np = function ? NULL : py_numpy();
    if (np) function = PyObject_GetAttrString(np, "empty");
    return function;
}

static PyObject *item_of(const stk_tensor *t, int64_t index)
{
    if (stk_tensor_is_dense(t)) {
        const char *at = (const char *)t->data + index * stk_dtype_size(t->dtype);
        switch (t->dtype) {
        case STK_I64: return PyLong_FromLongLong(*(const int64_t *)(const void *)at);
        case STK_U64: return PyLong_FromUnsignedLongLong(*(const uint64_t *)(const void *)at);
        case STK_STRING: {
            const stk_string *s = (const stk_string *)(const void *)at;
            return PyBytes_FromStringAndSize(s->data, s->size);
        }
        default: break;
        }
    }
    double v = stk_tensor_at(t, index);
    switch (py_dtype_kind(t->dtype)) {
    case 'F': return PyFloat_FromDouble(v);
    case 'B': return PyBool_FromLong(v != 0);
    default: return PyLong_FromLongLong((long long)v);
    }
}

PyObject *py_item(const stk_tensor *t, int64_t index)
{
    py_booking booking = py_book_begin();
    stk_tensor *here = py_on_host((stk_tensor *)(uintptr_t)t);
    PyObject *made = here ? item_of(here, index) : NULL;
    stk_tensor_release(here);
    py_book_end(booking, PY_BOOK_READ);
    return made;
}

static PyObject *shape_tuple(const stk_tensor *t)
{
    PyObject *shape = PyTuple_New(t->rank);
    for (int32_t i = 0; shape && i < t->rank; i++) {
        PyObject *n = PyLong_FromLongLong(t->shape[i]);
        if (!n)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, n);
    }
    return shape;
}

static PyObject *empty_array(const stk_tensor *t, PyObject *dtype)
{
    PyObject *shape = shape_tuple(t), *empty = np_empty();
    PyObject *args[2] = {shape, dtype};
    PyObject *array = shape && empty && dtype ? PyObject_Vectorcall(empty, args, 2, NULL) : NULL;
    Py_XDECREF(shape);
    return array;
}

static PyObject *strings_to_numpy(const stk_tensor *t)
{
    stk_tensor *dense = NULL;
    stk_error err;
    if (stk_tensor_dense((stk_tensor *)(uintptr_t)t, &dense, &err) != STK_OK)
        return py_raise(&err, NULL);
    if (t->rank == 0) {
        PyObject *bytes = py_item(dense, 0);
        stk_tensor_release(dense);
        return bytes;
    }
    PyObject *array = empty_array(t, py_dtype_numpy(STK_STRING));
    PyObject *flat = array ? PyObject_GetAttrString(array, "flat") : NULL;
    for (int64_t i = 0, n = stk_tensor_count(dense); flat && i < n; i++) {
        PyObject *index = PyLong_FromLongLong(i), *item = py_item(dense, i);
        if (!index || !item || PyObject_SetItem(flat, index, item)) Py_CLEAR(flat);
        Py_XDECREF(index);
        Py_XDECREF(item);
    }
    if (!flat) Py_CLEAR(array);
    Py_XDECREF(flat);
    stk_tensor_release(dense);
    return array;
}

static int copy_into(PyObject *array, const stk_tensor *t)
{
    Py_buffer b;
    if (PyObject_GetBuffer(array, &b, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS)) return -1;
    int status = 0;
    if (stk_tensor_is_dense(t)) {
        memcpy(b.buf, t->data, (size_t)b.len);
    } else {
        stk_tensor *to = NULL;
        stk_error err;
        if (stk_tensor_wrap(t->dtype, t->rank, t->shape, NULL, b.buf, NULL, NULL, &to, &err) ||
            stk_tensor_copy(to, t, &err)) {
            py_raise(&err, NULL);
            status = -1;
        }
        stk_tensor_release(to);
    }
    PyBuffer_Release(&b);
    return status;
}

static PyObject *scalar_to_numpy(const stk_tensor *t)
{
    PyObject *type = py_dtype_numpy(t->dtype), *value = type ? py_item(t, 0) : NULL;
    PyObject *scalar = value ? PyObject_CallOneArg(type, value) : NULL;
    Py_XDECREF(value);
    return scalar;
}

static PyObject *array_to_numpy(const stk_tensor *t)
{
    bool words = t->dtype == STK_BF16; /* numpy has no buffers of bfloat16 */
    PyObject *array = empty_array(t, py_dtype_numpy(words ? STK_U16 : t->dtype));
    if (array && stk_tensor_count(t) > 0 && copy_into(array, t)) Py_CLEAR(array);
    if (!array || !words) return array;
    PyObject *type = py_dtype_numpy(STK_BF16);
    PyObject *view = type ? PyObject_CallMethod(array, "view", "O", type) : NULL;
    Py_DECREF(array);
    return view;
}

PyObject *py_to_numpy(py_tensor *o)
{
    py_booking booking = py_book_begin();
    stk_tensor *here = py_on_host(o->t);
    PyObject *made = !here                       ? NULL
                     : here->dtype == STK_STRING ? strings_to_numpy(here)
                     : here->rank == 0           ? scalar_to_numpy(here)
                                                 : array_to_numpy(here);
    stk_tensor_release(here);
    py_book_end(booking, PY_BOOK_READ);
    return made;
}
