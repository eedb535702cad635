/* trace.h - the inside of a trace, for the files that turn one into something else. */
#ifndef STOKER_PY_TRACE_H
#define STOKER_PY_TRACE_H

#include "front.h"

typedef struct py_traced_variable {
    py_variable *variable;
    stk_val leaf, current; /* when the run starts, and now */
    stk_val read; /* 0, or what readers after an assignment get: no gradient goes back through it */
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
    stk_val *stops;   /* values that gradients take as given, rising */
    stk_val *stopped; /* what each of them shows */
    int32_t nstops, cap_stops;
    PyObject *kept;    /* list: functions that the programs call */
    PyObject *customs; /* list of (outputs, inputs, backward): gradients that a function gives */
};
extern PyTypeObject *py_trace_type;

PyObject *py_swap_trace(PyObject *module, PyObject *next);
PyObject *py_stop_gradient(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_get_trace(PyObject *module, PyObject *unused);
int py_trace_keep(py_trace *t, PyObject *o); /* as long as its programs live */
/* A value of its own that gradients take as given. */
PyObject *py_trace_stop(py_trace *t, py_tensor *x);

/* program.c, over.c */
/* What a run would write is no longer shared with anybody; -1: exception. */
int py_program_before(PyObject *program);
stk_program *py_program_handle(PyObject *program); /* borrowed */
PyObject *py_program_threads(PyObject *module, PyObject *n);
PyObject *py_examine(PyObject *module, PyObject *args);
int py_program_sizes(PyObject *program, int32_t *nin, int32_t *nout);
/* One run per element, without the lock; an exception may be set when it fails. */
stk_status py_program_over(PyObject *program, stk_over *o, stk_error *err);
int py_init_over(PyObject *module);
PyObject *py_books_switch(PyObject *module, PyObject *on);
PyObject *py_books(PyObject *module, PyObject *unused);
PyObject *py_booked(PyObject *module, PyObject *given);
PyObject *py_paradox(PyObject *module, PyObject *args);
int py_init_function(PyObject *module);
PyObject *py_functions_eager(PyObject *module, PyObject *yes);

/* host.c, control.c */
PyObject *py_taped(PyObject *module, PyObject *unused);
PyObject *py_effects(PyObject *module, PyObject *unused);
PyObject *py_host_call(PyObject *module, PyObject *args);
PyObject *py_note_gradient(PyObject *module, PyObject *args);
PyObject *py_flow_cond(PyObject *module, PyObject *args);
PyObject *py_flow_while(PyObject *module, PyObject *args);
PyObject *py_flow_scan(PyObject *module, PyObject *args);
/* Raises what a Python function inside of a program raised, if one did. */
void py_put_aside(const char *name); /* the exception at hand waits for py_raise_waiting */
bool py_interrupted(void *context); /* any thread without the lock: Ctrl-C, which then waits, too */
bool py_raise_waiting(void);

#endif
