/* Failures of the library as TensorFlow's exceptions: one table. */
#include "trace.h"

#include <errno.h>

/* tf.errors code of a status; 0: no such class. */
static int code_of(stk_status status)
{
    switch (status) {
    case STK_ERR_ARGUMENT:
    case STK_ERR_SHAPE:
    case STK_ERR_DTYPE:
    case STK_ERR_RANGE: return 3;   /* InvalidArgument */
    case STK_ERR_FORMAT: return 15; /* DataLoss */
    case STK_ERR_MEMORY: return 8;
    case STK_ERR_IO: return errno == ENOENT ? 5 : errno == EACCES ? 7 : 2;
    case STK_ERR_UNSUPPORTED: return 12;
    case STK_ERR_STATE: return 9;
    case STK_ERR_CANCELLED: return 1;
    default: return 13;
    }
}

/* The class comes from stoker.tf.errors, which is only loaded when something goes wrong. */
static PyObject *class_of(int code)
{
    PyObject *module = PyImport_ImportModule("stoker.tf.errors");
    PyObject *table = module ? PyObject_GetAttrString(module, "by_code") : NULL;
    PyObject *number = PyLong_FromLong(code);
    PyObject *class = table && number ? PyObject_GetItem(table, number) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(table);
    Py_XDECREF(module);
    return class;
}

static void *raise_text(int code, const char *op, const char *text)
{
    if (PyErr_Occurred()) return NULL; /* what a callback raised says more */
    PyObject *class = class_of(code);
    if (!class) return NULL;
    PyObject *message =
        op ? PyUnicode_FromFormat("%s [Op:%s] name: ", text, op) : PyUnicode_FromString(text);
    PyObject *e =
        message ? PyObject_CallFunction(class, "OOOi", Py_None, Py_None, message, code) : NULL;
    if (e) PyErr_SetObject(class, e);
    Py_XDECREF(e);
    Py_XDECREF(message);
    Py_DECREF(class);
    return NULL;
}

void *py_raise(const stk_error *err, const char *op)
{
    if (py_raise_waiting()) return NULL;
    return raise_text(code_of(err->code), op, err->message);
}

void *py_raise_code(stk_status code, const char *op, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    PyOS_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return raise_text(code_of(code), op, text);
}
