/* Control flow of recorded programs. A body is a Trace with a parent: its inputs come first, then what it captured from
 * the parent, in the order in which it did. stoker/_flow.py records the bodies and sees to it that those of one
 * operation capture the same values. */
#include "trace.h"

enum { MOST_VALUES = 240 };

static int output_all(py_trace *body, PyObject *values)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++) {
        char name[32];
        PyObject *o = PyList_GET_ITEM(values, i);
        if (!py_is_tensor(o)) {
            PyErr_Format(PyExc_TypeError, "a body gives %R, which is no tensor", o);
            return -1;
        }
        stk_val v = py_trace_value(body, (py_tensor *)o);
        if (!v) return -1;
        PyOS_snprintf(name, sizeof name, "o%zd", i);
        stk_g_output(body->g, name, v);
    }
    return py_trace_check(body, NULL);
}

static int add_values(py_trace *t, PyObject *list, stk_val *x, int32_t *n)
{
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        if (*n == MOST_VALUES) {
            PyErr_Format(PyExc_NotImplementedError,
                         "a body of control flow takes at most %d values", MOST_VALUES);
            return -1;
        }
        if (!(x[(*n)++] = py_trace_value(t, (py_tensor *)PyList_GET_ITEM(list, i)))) return -1;
    }
    return list ? 0 : -1;
}

static int add_captures(py_trace *t, py_trace *body, stk_val *x, int32_t *n)
{
    PyObject *list = PyObject_GetAttrString((PyObject *)body, "captures");
    int status = add_values(t, list, x, n);
    Py_XDECREF(list);
    return status;
}

static PyObject *symbols(py_trace *t, stk_val first, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *s = py_tensor_symbolic(t, first + (stk_val)i);
        if (!s) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, s);
    }
    return list;
}

/* flow_cond(pred, then, then_values, else, else_values) -> list */
PyObject *py_flow_cond(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *pred, *a, *ya, *b, *yb;
    stk_val x[MOST_VALUES];
    int32_t n = 0;
    py_trace *t = py_trace_current();
    if (!PyArg_ParseTuple(args, "OO!O!O!O!", &pred, py_trace_type, &a, &PyList_Type, &ya,
                          py_trace_type, &b, &PyList_Type, &yb))
        return NULL;
    stk_val p = t ? py_trace_value(t, (py_tensor *)pred) : 0;
    if (!p || output_all((py_trace *)a, ya) || output_all((py_trace *)b, yb) ||
        add_captures(t, (py_trace *)a, x, &n))
        return NULL;
    stk_val y = stk_g_cond(t->g, p, ((py_trace *)a)->g, ((py_trace *)b)->g, n, x);
    return py_trace_check(t, "If") ? NULL : symbols(t, y, PyList_GET_SIZE(ya));
}

/* flow_while(test, [bool], body, values, start, max_trips) -> list */
PyObject *py_flow_while(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *test, *going, *body, *values, *start;
    long long most = 0;
    stk_val x[MOST_VALUES];
    int32_t n = 0;
    py_trace *t = py_trace_current();
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!|L", py_trace_type, &test, &PyList_Type, &going,
                          py_trace_type, &body, &PyList_Type, &values, &PyList_Type, &start, &most))
        return NULL;
    if (output_all((py_trace *)test, going) || output_all((py_trace *)body, values) ||
        add_values(t, start, x, &n) || add_captures(t, (py_trace *)body, x, &n))
        return NULL;
    Py_ssize_t carried = PyList_GET_SIZE(start);
    stk_val y = stk_g_while(t->g, ((py_trace *)test)->g, ((py_trace *)body)->g, (int32_t)carried, n,
                            x, most);
    return py_trace_check(t, "While") ? NULL : symbols(t, y, carried);
}

/* flow_scan(body, values, start, rows, trips, reverse) -> list: last carried values, then stacked results */
PyObject *py_flow_scan(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *body, *values, *start, *rows;
    long long trips = 0;
    int reverse = 0;
    stk_val x[3 * MOST_VALUES];
    int32_t n = 0, nxs = 0, nconst = 0;
    py_trace *t = py_trace_current();
    if (!PyArg_ParseTuple(args, "O!O!O!O!|Lp", py_trace_type, &body, &PyList_Type, &values,
                          &PyList_Type, &start, &PyList_Type, &rows, &trips, &reverse))
        return NULL;
    stk_val *xs = x + MOST_VALUES, *consts = xs + MOST_VALUES;
    if (output_all((py_trace *)body, values) || add_values(t, start, x, &n) ||
        add_values(t, rows, xs, &nxs) || add_captures(t, (py_trace *)body, consts, &nconst))
        return NULL;
    stk_scan_options how = {.trips = trips, .reverse = reverse};
    stk_val y = stk_g_scan(t->g, ((py_trace *)body)->g, n, x, nxs, xs, nconst, consts, &how);
    return py_trace_check(t, "Scan") ? NULL : symbols(t, y, PyList_GET_SIZE(values));
}
