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
    bool is_away; /* on a device with memory of its own */
    bool told;    /* where its operations run */
    bool is_long; /* worth giving up the interpreter lock */
    Py_ssize_t nguests;
    struct guest *guests; /* variables that live elsewhere */
} py_program;

/* A variable of another device: its value comes before each run, and goes back when the run has written it. */
typedef struct guest {
    py_variable *variable; /* borrowed from the trace */
    stk_tensor *here;
    bool written;
} guest;

static PyTypeObject *program_type;

/* ---- making ------------------------------------------------------------------------------------------- */

static int32_t most_threads;

/* What the variable is for the program: its own memory, or a copy on the program's device. */
static stk_status memory_for(py_program *p, const py_traced_variable *v, stk_device *d,
                             stk_tensor **out, stk_error *err)
{
    stk_tensor *memory = py_variable_memory(v->variable);
    stk_device *on = stk_tensor_device(memory);
    if (on ? on == d : py_device_is_host(d)) {
        *out = memory;
        return STK_OK;
    }
    guest *at = &p->guests[p->nguests];
    stk_status status = stk_tensor_to(memory, py_device_is_host(d) ? NULL : d, &at->here, err);
    if (status != STK_OK) return status;
    at->variable = v->variable;
    at->written = v->assigned;
    p->nguests++;
    *out = at->here;
    return STK_OK;
}

/* Where programs go, else where the first variable is that lives on a device. */
static stk_device *device_for(const py_trace *t)
{
    stk_device *d = py_device_now();
    if (!py_devices_on || !d || py_is_scoped() || !py_device_is_host(d)) return d;
    for (Py_ssize_t i = 0; i < t->nvariables; i++) {
        stk_device *on = stk_tensor_device(py_variable_memory(t->variables[i].variable));
        if (on) return on;
    }
    return d;
}

static stk_status compile_now(py_program *p, const stk_graph *g, stk_device *d, stk_error *err)
{
    stk_program_options options = stk_program_options_defaults();
    options.device = d;
    options.threads = most_threads;
    stk_status status = stk_store_new(d, &options.store, err);
    for (Py_ssize_t i = 0; i < p->trace->nvariables && status == STK_OK; i++) {
        char name[32];
        stk_tensor *memory = NULL;
        PyOS_snprintf(name, sizeof name, "v%zd", i);
        status = memory_for(p, &p->trace->variables[i], d, &memory, err);
        if (status == STK_OK) status = stk_store_adopt(options.store, name, memory, err);
    }
    if (status == STK_OK) status = stk_program_new_caller(g, &options, &p->p, err);
    if (status == STK_OK) stk_program_results_stay(p->p, true);
    stk_store_release(options.store);
    return status;
}

/* What the device lacks is said, or refused. */
static int tell_islands(py_program *p, stk_device *d)
{
    enum { MOST = 32 };
    stk_island *all = PyMem_Calloc(MOST, sizeof *all);
    if (!all) return PyErr_NoMemory(), -1;
    int32_t n = stk_program_islands(p->p, MOST, all);
    bool refused = n && py_is_strict();
    if (refused) py_raise_placement(all[0].op, d, all[0].reason);
    for (int32_t i = 0; i < n && i < MOST && !refused; i++)
        if (strcmp(all[i].op, "host")) /* a function of Python's is nowhere else anyhow */
            py_tell_lacking(all[i].op, d, all[i].reason);
    PyMem_Free(all);
    return refused ? -1 : 0;
}

static int compile_trace(py_program *p, const stk_graph *g)
{
    stk_error err;
    stk_status status;
    stk_device *d = device_for(p->trace);
    p->guests = PyMem_Calloc((size_t)p->trace->nvariables + 1, sizeof *p->guests);
    if (!d || !p->guests) return d ? (PyErr_NoMemory(), -1) : -1;
    py_booking booking = py_book_begin();
    Py_BEGIN_ALLOW_THREADS status = compile_now(p, g, d, &err);
    Py_END_ALLOW_THREADS py_book_end(booking, PY_BOOK_COMPILE);
    if (status != STK_OK) {
        py_raise(&err, NULL);
        return -1;
    }
    p->nin = stk_program_inputs(p->p);
    p->nout = stk_program_outputs(p->p);
    p->is_away = !py_device_is_host(d);
    return p->is_away ? tell_islands(p, d) : 0;
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
    if (!PyArg_ParseTuple(args, "O!O!", py_trace_type, &trace, &PyList_Type, &outputs)) return NULL;
    py_program *p = (py_program *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->call = program_vectorcall;
    p->trace = (py_trace *)Py_NewRef(trace);
    p->busy = PyThread_allocate_lock();
    if (!p->busy || add_outputs(p->trace, outputs) || note_variables(p) ||
        compile_trace(p, p->trace->g))
        goto fail;
    stk_program_stats stats;
    stk_program_describe(p->p, &stats);
    p->is_long = p->is_away || stats.flops > 2e5 || stats.bytes > 1e6;
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
    if (status != STK_OK) py_raise(&err, NULL);
    int failed = status != STK_OK || compile_trace(p, g);
    stk_graph_release(g);
    if (failed) goto done;
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
    for (Py_ssize_t i = 0; i < p->nguests; i++) stk_tensor_release(p->guests[i].here);
    PyMem_Free(p->guests);
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

static stk_status fetch_guests(py_program *p, bool back, stk_error *err)
{
    stk_status status = STK_OK;
    for (Py_ssize_t i = 0; i < p->nguests && status == STK_OK; i++) {
        guest *g = &p->guests[i];
        stk_tensor *home = py_variable_memory(g->variable);
        if (!back)
            status = stk_tensor_write(g->here, home, err);
        else if (g->written)
            status = stk_tensor_write(home, g->here, err);
    }
    return status;
}

static stk_status call_away(py_program *p, stk_tensor **in, stk_tensor **out, stk_error *err)
{
    stk_status status = fetch_guests(p, false, err);
    if (status == STK_OK) status = stk_program_call(p->p, p->nin, in, p->nout, out, err);
    if (status == STK_OK) status = fetch_guests(p, true, err);
    return status;
}

/* With tf.debugging.set_log_device_placement: a line for the program, and once the table of its operations. */
static void log_run(py_program *p)
{
    char *text = NULL;
    stk_error err;
    py_log_placement("program", stk_program_device(p->p));
    if (!p->told && stk_program_placement(p->p, &text, &err) == STK_OK) fputs(text, stderr);
    stk_text_free(text);
    p->told = true;
}

static stk_status run(py_program *p, stk_tensor **in, stk_tensor **out, stk_error *err)
{
    static __thread bool may_interrupt;
    stk_status status;
    if (!may_interrupt) stk_loop_interrupt(py_interrupted, NULL); /* Ctrl-C ends loops at once */
    may_interrupt = true;
    py_booking booking = py_book_begin();
    take_turn(p);
    if (p->is_long || p->nguests) {
        Py_BEGIN_ALLOW_THREADS status = call_away(p, in, out, err);
        Py_END_ALLOW_THREADS
    } else {
        status = stk_program_call(p->p, p->nin, in, p->nout, out, err);
    }
    PyThread_release_lock(p->busy);
    py_book_end(booking, PY_BOOK_PROGRAM);
    if (py_devices_on && status == STK_OK && py_logs_placement()) log_run(p);
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
    Py_BEGIN_ALLOW_THREADS status = fetch_guests(p, false, err);
    if (status == STK_OK) status = stk_program_over(p->p, o, err);
    if (status == STK_OK) status = fetch_guests(p, true, err);
    Py_END_ALLOW_THREADS if (py_devices_on && status == STK_OK && py_logs_placement()) log_run(p);
    PyThread_release_lock(p->busy);
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
