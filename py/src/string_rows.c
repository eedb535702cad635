/* Rows of ops.def on strings. */
#include "front.h"

/* Strings do not enter kernels: stoker/tf/_string_rows.py has some rows for them. NULL without exception: not this one. */
PyObject *py_run_on_strings(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                            const stk_attrs *attrs)
{
    PyObject *module = PyImport_ImportModule("stoker.tf._string_rows"), *result = NULL;
    PyObject *rows = module ? PyObject_GetAttrString(module, "ROWS") : NULL;
    PyObject *f = rows ? PyDict_GetItemString(rows, row->name) : NULL; /* borrowed */
    PyObject *args = f ? PyTuple_New(2) : NULL;
    PyObject *tensors = args ? PyList_New(nin) : NULL,
             *ints = args ? PyList_New(attrs->nints) : NULL;
    for (Py_ssize_t i = 0; tensors && i < nin; i++) PyList_SET_ITEM(tensors, i, Py_NewRef(in[i]));
    for (int32_t i = 0; ints && i < attrs->nints; i++)
        PyList_SET_ITEM(ints, i, PyLong_FromLongLong(attrs->ints[i]));
    if (tensors && ints) {
        PyTuple_SET_ITEM(args, 0, tensors);
        PyTuple_SET_ITEM(args, 1, ints);
        result = PyObject_Call(f, args, NULL);
    }
    Py_XDECREF(args);
    Py_XDECREF(rows);
    Py_XDECREF(module);
    return result;
}

bool py_has_strings(Py_ssize_t nin, PyObject *const *in)
{
    for (Py_ssize_t i = 0; i < nin; i++) {
        const py_tensor *o = (py_tensor *)in[i];
        if (o->t && o->t->dtype == STK_STRING) return true;
    }
    return false;
}
