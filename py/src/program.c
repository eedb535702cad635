/* Programs: a trace compiled, called with tensors by position. */
#include "trace.h"

#include <string.h>
#include <time.h>

typedef struct py_program {
    PyObject_HEAD vectorcallfunc call;
    stk_program *p;
    py_trace *trace; /* its graph, for gradients; its variables */
    int32_t nin, nout;
    stk_dtype *dtypes; /* of the inputs */
    Py_ssize_t nwritten;
    py_variable **written;   /* borrowed from the trace */
    PyThread_type_lock busy; /* a program is run by one thread at a time */
    int64_t runs;
    bool is_long; /* worth giving up the interpreter lock */
} py_program;

static PyTypeObject *program_type;

/* ---- making ------------------------------------------------------------------------------------------- */

static int32_t most_threads;

static stk_status compile_now(py_program *p, const stk_graph *g, stk_error *err)
{
    stk_program_options options = stk_program_options_defaults();
    options.threads = most_threads;
    stk_status status = stk_store_new(NULL, &options.store, err);
    for (Py_ssize_t i = 0; i < p->trace->nvariables && status == STK_OK; i++) {
        char name[32];
        PyOS_snprintf(name, sizeof name, "v%zd", i);
        status = stk_store_adopt(options.store, name,
                                 py_variable_memory(p->trace->variables[i].variable), err);
    }
    if (status == STK_OK) status = stk_program_new_caller(g, &options, &p->p, err);
    stk_store_release(options.store);
    return status;
}

static stk_status compile_trace(py_program *p, const stk_graph *g, stk_error *err)
{
    py_booking booking = py_book_begin();
    stk_status status = compile_now(p, g, err);
    py_book_end(booking, PY_BOOK_COMPILE);
    return status;
}

static int add_outputs(py_trace *t, PyObject *outputs)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        char name[32];
        PyObject *o = PyList_GET_ITEM(outputs, i);
        if (!py_is_tensor(o)) {
            PyErr_Format(PyExc_TypeError, "compile: output %zd is no tensor: %R", i, o);
            return -1;
        }
        stk_val v = py_trace_value(t, (py_tensor *)o);
        if (!v) return -1;
        PyOS_snprintf(name, sizeof name, "y%zd", i);
        stk_g_output(t->g, name, v);
    }
    for (Py_ssize_t i = 0; i < t->nvariables; i++)
        if (t->variables[i].assigned && t->variables[i].current != t->variables[i].leaf)
            stk_g_assign(t->g, t->variables[i].leaf, t->variables[i].current);
    return py_trace_check(t, NULL);
}

static int note_variables(py_program *p)
{
    p->written = PyMem_Calloc((size_t)p->trace->nvariables + 1, sizeof *p->written);
    if (!p->written) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < p->trace->nvariables; i++)
        if (p->trace->variables[i].assigned)
            p->written[p->nwritten++] = p->trace->variables[i].variable;
    return 0;
}

static PyObject *program_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                    PyObject *kw);

/* Program(trace, outputs): outputs is a list of tensors. The trace is used up. */
static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *trace, *outputs;
    stk_error err;
    stk_status status;
    if (!PyArg_ParseTuple(args, "O!O!", py_trace_type, &trace, &PyList_Type, &outputs)) return NULL;
    py_program *p = (py_program *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->call = program_vectorcall;
    p->trace = (py_trace *)Py_NewRef(trace);
    p->busy = PyThread_allocate_lock();
    if (!p->busy || add_outputs(p->trace, outputs) || note_variables(p)) goto fail;
    Py_BEGIN_ALLOW_THREADS status = compile_trace(p, p->trace->g, &err);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        py_raise(&err, NULL);
        goto fail;
    }
    p->nin = stk_program_inputs(p->p);
    p->nout = stk_program_outputs(p->p);
    stk_program_stats stats;
    stk_program_describe(p->p, &stats);
    p->is_long = stats.flops > 2e5 || stats.bytes > 1e6;
    return (PyObject *)p;
fail:
    Py_DECREF(p);
    return NULL;
}

/* part(trace, at_hand, outputs) -> (program, which): what the outputs need, given the values at hand; which[i] is the place in
 * at_hand of the program's i-th input. Effects of the trace stay behind. */
static PyObject *program_part(PyObject *class, PyObject *args)
{
    PyObject *trace, *hand, *outputs, *which = NULL, *pair = NULL;
    stk_error err;
    stk_graph *g = NULL;
    int32_t n = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!", py_trace_type, &trace, &PyList_Type, &hand, &PyList_Type,
                          &outputs))
        return NULL;
    py_trace *t = (py_trace *)trace;
    Py_ssize_t nhand = PyList_GET_SIZE(hand), nout = PyList_GET_SIZE(outputs),
               room = nhand + t->ninputs;
    stk_val *vals = PyMem_Calloc((size_t)(nhand + nout + room) + 1, sizeof *vals);
    if (!vals) return PyErr_NoMemory();
    stk_val *y = vals + nhand, *used = y + nout;
    py_program *p = (py_program *)((PyTypeObject *)class)->tp_alloc((PyTypeObject *)class, 0);
    bool fine = p != NULL;
    for (Py_ssize_t i = 0; fine && i < nhand; i++)
        fine = (vals[i] = py_trace_value(t, (py_tensor *)PyList_GET_ITEM(hand, i))) != 0;
    for (Py_ssize_t i = 0; fine && i < nout; i++)
        fine = (y[i] = py_trace_value(t, (py_tensor *)PyList_GET_ITEM(outputs, i))) != 0;
    if (!fine) goto done;
    p->call = program_vectorcall;
    p->trace = (py_trace *)Py_NewRef(trace);
    p->busy = PyThread_allocate_lock();
    stk_status status = stk_graph_part(t->g, (int32_t)nhand, vals, (int32_t)nout, y, (int32_t)room,
                                       used, &n, &g, &err);
    if (status == STK_OK) status = compile_trace(p, g, &err);
    stk_graph_release(g);
    if (status != STK_OK) {
        py_raise(&err, NULL);
        goto done;
    }
    p->nin = stk_program_inputs(p->p);
    p->nout = stk_program_outputs(p->p);
    p->is_long = true;
    which = PyList_New(0);
    for (int32_t k = 0; which && k < n; k++) {
        Py_ssize_t at = 0;
        while (at < nhand && vals[at] != used[k]) at++;
        PyObject *number = PyLong_FromSsize_t(at);
        if (!number || PyList_Append(which, number)) Py_CLEAR(which);
        Py_XDECREF(number);
    }
    pair = which ? PyTuple_Pack(2, (PyObject *)p, which) : NULL;
done:
    PyMem_Free(vals);
    Py_XDECREF(which);
    Py_XDECREF((PyObject *)p);
    return pair;
}

static void program_dealloc(PyObject *self)
{
    py_program *p = (py_program *)self;
    PyTypeObject *type = Py_TYPE(self);
    stk_program_release(p->p);
    PyMem_Free(p->written);
    PyMem_Free(p->dtypes);
    if (p->busy) PyThread_free_lock(p->busy);
    Py_XDECREF((PyObject *)p->trace);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- calling --------------------------------------------------------------------------------------------- */

enum { FEW = 32 };

static void take_turn(py_program *p)
{
    if (PyThread_acquire_lock(p->busy, NOWAIT_LOCK)) return;
    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(p->busy, WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

static stk_tensor *handle_of(PyObject *o)
{
    if (Py_TYPE(o) == py_eager_type) return stk_tensor_retain(((py_tensor *)o)->t);
    stk_tensor *t =
        py_wrap_buffer(o); /* arrays are used where they are: the run is over before we return */
    return t ? t : py_to_eager(o, -1, "a program's input");
}

static stk_status run(py_program *p, stk_tensor **in, stk_tensor **out, stk_error *err)
{
    static __thread bool may_interrupt;
    stk_status status;
    if (!may_interrupt) stk_loop_interrupt(py_interrupted, NULL); /* Ctrl-C ends loops at once */
    may_interrupt = true;
    py_booking booking = py_book_begin();
    take_turn(p);
    if (p->is_long) {
        Py_BEGIN_ALLOW_THREADS status = stk_program_call(p->p, p->nin, in, p->nout, out, err);
        Py_END_ALLOW_THREADS
    } else {
        status = stk_program_call(p->p, p->nin, in, p->nout, out, err);
    }
    PyThread_release_lock(p->busy);
    py_book_end(booking, PY_BOOK_PROGRAM);
    p->runs++;
    return status;
}

int py_program_sizes(PyObject *program, int32_t *nin, int32_t *nout)
{
    if (Py_TYPE(program) != program_type) {
        PyErr_Format(PyExc_TypeError, "%R is no Program", program);
        return -1;
    }
    *nin = ((py_program *)program)->nin;
    *nout = ((py_program *)program)->nout;
    return 0;
}

stk_status py_program_over(PyObject *program, stk_over *o, stk_error *err)
{
    py_program *p = (py_program *)program;
    stk_status status;
    int64_t before = o->done;
    if (py_program_before(program)) return STK_ERR_STATE;
    py_booking booking = py_book_begin();
    take_turn(p);
    Py_BEGIN_ALLOW_THREADS status = stk_program_over(p->p, o, err);
    Py_END_ALLOW_THREADS PyThread_release_lock(p->busy);
    py_book_end(booking, PY_BOOK_EPOCHS);
    p->runs += o->done - before;
    return status;
}

int py_program_before(PyObject *program)
{
    py_program *p = (py_program *)program;
    for (Py_ssize_t i = 0; i < p->nwritten; i++)
        if (py_variable_before_write(p->written[i])) return -1;
    return 0;
}

stk_program *py_program_handle(PyObject *program) { return ((py_program *)program)->p; }

/* program_threads(n): programs that are made from now on use at most so many threads; 0: all. */
PyObject *py_program_threads(PyObject *module, PyObject *n)
{
    (void)module;
    long asked = PyLong_AsLong(n);
    if (asked == -1 && PyErr_Occurred()) return NULL;
    most_threads = (int32_t)asked;
    Py_RETURN_NONE;
}

static PyObject *results(py_program *p, stk_tensor **out)
{
    PyObject *tuple = PyTuple_New(p->nout);
    for (int32_t o = 0; o < p->nout; o++) {
        PyObject *t = tuple ? py_tensor_take(out[o]) : (stk_tensor_release(out[o]), NULL);
        if (tuple && !t) Py_CLEAR(tuple);
        if (tuple) PyTuple_SET_ITEM(tuple, o, t);
    }
    return tuple;
}

static PyObject *program_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                    PyObject *kw)
{
    py_program *p = (py_program *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    stk_tensor *few_in[FEW], *few_out[FEW] = {0};
    stk_error err;
    if (n != p->nin || (kw && PyTuple_GET_SIZE(kw)))
        return PyErr_Format(PyExc_TypeError, "the program takes %d tensors, got %zd", p->nin, n);
    stk_tensor **in = n > FEW ? PyMem_Calloc((size_t)n, sizeof *in) : few_in;
    stk_tensor **out = p->nout > FEW ? PyMem_Calloc((size_t)p->nout, sizeof *out) : few_out;
    Py_ssize_t have = 0;
    PyObject *result = NULL;
    bool fine = in && out;
    for (; fine && have < n; have++) fine = (in[have] = handle_of(args[have])) != NULL;
    if (!fine && have) have--;
    for (Py_ssize_t i = 0; fine && i < p->nwritten; i++)
        fine = !py_variable_before_write(p->written[i]);
    if (fine) {
        if (run(p, in, out, &err) == STK_OK)
            result = results(p, out);
        else
            py_raise(&err, NULL);
    }
    for (Py_ssize_t i = 0; i < have; i++) stk_tensor_release(in[i]);
    if (in != few_in) PyMem_Free(in);
    if (out != few_out) PyMem_Free(out);
    return result;
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

static PyObject *program_stats(PyObject *self, PyObject *u)
{
    (void)u;
    stk_program_stats s;
    stk_program_describe(((py_program *)self)->p, &s);
    return Py_BuildValue("{sisisisLsLsLsdsdsdsd}", "nodes", s.nodes, "launches", s.launches,
                         "regions", s.regions, "arena_bytes", (long long)s.arena_bytes,
                         "constant_bytes", (long long)s.constant_bytes, "variable_bytes",
                         (long long)s.variable_bytes, "flops", s.flops, "bytes", s.bytes,
                         "build_ms", s.build_ms, "election_ms", s.election_ms);
}
static PyObject *program_dump(PyObject *self, PyObject *u)
{
    (void)u;
    char *text = NULL;
    stk_error err;
    if (stk_program_dump(((py_program *)self)->p, &text, &err) != STK_OK)
        return py_raise(&err, NULL);
    PyObject *s = PyUnicode_FromString(text);
    stk_text_free(text);
    return s;
}
static PyObject *get_trace(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef((PyObject *)((py_program *)self)->trace);
}
static PyObject *set_step(PyObject *self, PyObject *step)
{
    long long n = PyLong_AsLongLong(step);
    if (n == -1 && PyErr_Occurred()) return NULL;
    stk_program_set_step(((py_program *)self)->p, n);
    Py_RETURN_NONE;
}

int py_init_program(PyObject *module)
{
    static PyMethodDef methods[] = {{"stats", program_stats, METH_NOARGS, NULL},
                                    {"part", program_part, METH_VARARGS | METH_CLASS, NULL},
                                    {"dump", program_dump, METH_NOARGS, NULL},
                                    {"set_step", set_step, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyGetSetDef getters[] = {{"trace", get_trace, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(py_program, call), READONLY, NULL},
        {"runs", T_LONGLONG, offsetof(py_program, runs), READONLY, NULL},
        {"ninputs", T_INT, offsetof(py_program, nin), READONLY, NULL},
        {"noutputs", T_INT, offsetof(py_program, nout), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, program_new},
                                  {Py_tp_dealloc, program_dealloc},
                                  {Py_tp_call, PyVectorcall_Call},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getters},
                                  {Py_tp_members, members},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.Program", sizeof(py_program), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    program_type = py_add_type(module, &spec, NULL, "Program");
    return program_type ? 0 : -1;
}
