/* trace.h - the inside of a trace, for the files that turn one into something else. */
#ifndef STOKER_PY_TRACE_H
#define STOKER_PY_TRACE_H

#include "front.h"

typedef struct py_traced_variable {
    py_variable *variable;
    stk_val leaf, current; /* when the run starts, and now */
    bool assigned;
} py_traced_variable;

struct py_trace {
    PyObject_HEAD stk_graph *g;
    py_trace *parent;
    int ninputs;
    struct capture *captures;
    Py_ssize_t ncaptures, cap_captures, nwatched;
    py_traced_variable *variables;
    Py_ssize_t nvariables, cap_variables;
    stk_val *stops; /* values that gradients take as given, rising */
    int32_t nstops, cap_stops;
};
extern PyTypeObject *py_trace_type;

PyObject *py_swap_trace(PyObject *module, PyObject *next);
PyObject *py_stop_gradient(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_get_trace(PyObject *module, PyObject *unused);

#endif
