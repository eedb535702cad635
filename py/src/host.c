/* Python functions inside of programs, and gradients that Python functions compute.
 *
 * A host call that has an effect takes the value of one hidden variable and assigns what it gives to it: so it is never left
 * out, effects keep their order, and control flow carries them as it carries every variable. A function that raises ends the
 * run: its exception waits on the thread until the program has returned. */
#include "trace.h"

#include <string.h>

/* ---- exceptions that cross a program ----------------------------------------------------------------------- */

static __thread PyObject *waiting_type, *waiting_value, *waiting_trace;

/* The exception at hand waits; the first of a run stays. */
void py_put_aside(const char *name)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    stk_host_fail(STK_ERR_STATE, name);
    if (!waiting_type) {
        waiting_type = type, waiting_value = value, waiting_trace = trace;
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

bool py_raise_waiting(void)
{
    if (!waiting_type) return false;
    PyErr_Restore(waiting_type, waiting_value, waiting_trace);
    waiting_type = waiting_value = waiting_trace = NULL;
    return true;
}

bool py_interrupted(void *context)
{
    (void)context;
    PyGILState_STATE lock = PyGILState_Ensure();
    bool yes = PyErr_CheckSignals() != 0;
    if (yes) py_put_aside("interrupted");
    PyGILState_Release(lock);
    return yes;
}

/* ---- host calls ------------------------------------------------------------------------------------------------ */

typedef struct host_context {
    PyObject *function;
    char name[96];
    bool effect;
} host_context;

static void free_context(PyObject *capsule)
{
    host_context *c = PyCapsule_GetPointer(capsule, NULL);
    if (c) Py_XDECREF(c->function);
    PyMem_Free(c);
}

static PyObject *arrays_of(int32_t n, const stk_tensor *const *in)
{
    PyObject *args = PyTuple_New(n);
    for (int32_t i = 0; args && i < n; i++) {
        py_tensor shell = {.t = (stk_tensor *)(uintptr_t)in[i]};
        PyObject *a = py_to_numpy(&shell);
        if (!a) Py_CLEAR(args);
        if (args) PyTuple_SET_ITEM(args, i, a);
    }
    return args;
}

static bool same_shape(const stk_tensor *a, const stk_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
    return same;
}

/* The program's memory has no owner that could be asked for it: bytes are copied. */
static int put_result(PyObject *made, stk_tensor *out, const char *name)
{
    stk_error err;
    char got[160], want[160];
    stk_tensor *t = py_to_eager(made, (int)out->dtype, name), *dense = NULL;
    if (!t) return -1;
    stk_status status = stk_tensor_dense(t, &dense, &err);
    if (status == STK_OK && !same_shape(dense, out)) {
        err.code = status = STK_ERR_SHAPE;
        PyOS_snprintf(err.message, sizeof err.message, "the function gave %s, %s was announced",
                      stk_tensor_describe(dense, got, sizeof got),
                      stk_tensor_describe(out, want, sizeof want));
    }
    if (status == STK_OK && stk_tensor_bytes(out))
        memcpy(out->data, dense->data, (size_t)stk_tensor_bytes(out));
    stk_tensor_release(dense);
    stk_tensor_release(t);
    if (status == STK_OK) return 0;
    py_raise(&err, name);
    return -1;
}

static int put_results(host_context *c, PyObject *made, int32_t nout, stk_tensor *const *out)
{
    if (!nout) return 0;
    PyObject *all =
        PyTuple_Check(made) || PyList_Check(made) ? PySequence_Tuple(made) : PyTuple_Pack(1, made);
    int status = all ? 0 : -1;
    if (all && PyTuple_GET_SIZE(all) != nout) {
        PyErr_Format(PyExc_ValueError, "%s: the function gave %zd results, %d were announced",
                     c->name, PyTuple_GET_SIZE(all), nout);
        status = -1;
    }
    for (int32_t i = 0; i < nout && status == 0; i++)
        status = put_result(PyTuple_GET_ITEM(all, i), out[i], c->name);
    Py_XDECREF(all);
    return status;
}

static void zero(int32_t nout, stk_tensor *const *out)
{
    for (int32_t i = 0; i < nout; i++)
        if (stk_tensor_bytes(out[i])) memset(out[i]->data, 0, (size_t)stk_tensor_bytes(out[i]));
}

/* in: arguments, then the value of the hidden variable; out: results, then its new value. */
static void run_host(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                     stk_tensor *const *out)
{
    host_context *c = context;
    PyGILState_STATE lock = PyGILState_Ensure();
    if (c->effect) nin--, nout--;
    zero(nout + c->effect, out);
    if (!waiting_type) {
        PyObject *before = py_swap_trace(NULL, Py_None);
        PyObject *args = before ? arrays_of(nin, in) : NULL;
        py_booking booking = py_book_begin();
        PyObject *made = args ? PyObject_CallObject(c->function, args) : NULL;
        py_book_end(booking, PY_BOOK_HOST);
        if (!made || put_results(c, made, nout, out)) py_put_aside(c->name);
        Py_XDECREF(made);
        Py_XDECREF(args);
        Py_XDECREF(before ? py_swap_trace(NULL, before) : NULL);
        Py_XDECREF(before);
    }
    PyGILState_Release(lock);
}

static PyObject *effects; /* the hidden variable */

static PyObject *effect_variable(void)
{
    if (effects) return effects;
    PyObject *zero_ = PyLong_FromLong(0);
    PyObject *before = py_swap_trace(NULL, Py_None);
    effects = zero_ && before ? PyObject_CallOneArg((PyObject *)py_variable_type, zero_) : NULL;
    if (effects) {
        PyObject *no = Py_NewRef(Py_False);
        PyObject_SetAttrString(effects, "trainable", no);
        Py_DECREF(no);
    }
    Py_XDECREF(before ? py_swap_trace(NULL, before) : NULL);
    Py_XDECREF(before);
    Py_XDECREF(zero_);
    return effects;
}

/* effects() -> the hidden variable: no variable of anybody's program. */
PyObject *py_effects(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_XNewRef(effect_variable());
}

static int parse_results(PyObject *dtypes, PyObject *shapes, stk_host_result *results)
{
    Py_ssize_t n = PyList_GET_SIZE(dtypes);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (py_dtype_parse(PyList_GET_ITEM(dtypes, i), &results[i].dtype)) return -1;
        results[i].rank =
            py_ints_from(PyList_GET_ITEM(shapes, i), "host_call", STK_MAX_RANK, results[i].shape);
        if (results[i].rank < 0) return -1;
    }
    return 0;
}

/* What a trace must keep alive as long as its programs live. */
int py_trace_keep(py_trace *t, PyObject *o)
{
    while (t->parent) t = t->parent;
    if (!t->kept) t->kept = PyList_New(0);
    return t->kept ? PyList_Append(t->kept, o) : -1;
}

static host_context *new_context(py_trace *t, PyObject *function, const char *name, bool effect)
{
    host_context *c = PyMem_Calloc(1, sizeof *c);
    if (!c) return (host_context *)(void *)PyErr_NoMemory();
    c->function = Py_NewRef(function);
    c->effect = effect;
    PyOS_snprintf(c->name, sizeof c->name, "%s", name);
    PyObject *capsule = PyCapsule_New(c, NULL, free_context);
    int kept = capsule ? py_trace_keep(t, capsule) : -1;
    if (!capsule) Py_DECREF(function), PyMem_Free(c);
    Py_XDECREF(capsule);
    return kept ? NULL : c;
}

enum { MOST_HOST = 31 };

static PyObject *record_host(py_trace *t, host_context *c, PyObject *inputs, Py_ssize_t nout,
                             stk_host_result *results)
{
    stk_val x[MOST_HOST + 1];
    int32_t n = 0;
    for (; n < PyList_GET_SIZE(inputs); n++)
        if (!(x[n] = py_trace_value(t, (py_tensor *)PyList_GET_ITEM(inputs, n)))) return NULL;
    if (c->effect) {
        PyObject *v = effect_variable();
        PyObject *now = v ? py_trace_read_variable(t, (py_variable *)v) : NULL;
        x[n] = now ? py_trace_value(t, (py_tensor *)now) : 0;
        Py_XDECREF(now);
        if (!x[n++]) return NULL;
        results[nout] = (stk_host_result){.dtype = STK_I32};
    }
    stk_host host = {.name = c->name, .run = run_host, .context = c};
    stk_val y = stk_g_host(t->g, &host, n, x, (int32_t)(nout + c->effect), results);
    if (py_trace_check(t, c->name)) return NULL;
    PyObject *made = PyTuple_New(nout);
    for (Py_ssize_t i = 0; made && i < nout; i++) {
        PyObject *s = py_tensor_symbolic(t, y + (stk_val)i);
        if (!s) Py_CLEAR(made);
        if (made) PyTuple_SET_ITEM(made, i, s);
    }
    if (made && c->effect) {
        PyObject *after = py_tensor_symbolic(t, y + (stk_val)nout);
        if (!after || py_trace_assign_variable(t, (py_variable *)effects, after)) Py_CLEAR(made);
        Py_XDECREF(after);
    }
    return made;
}

/* host_call(function, inputs, dtypes, shapes, name, effect) -> tuple: function(*arrays) as an operation of the program that is
 * being recorded. */
PyObject *py_host_call(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *function, *inputs, *dtypes, *shapes;
    const char *name;
    int effect = 0;
    stk_host_result results[MOST_HOST + 1] = {{0}};
    py_trace *t = py_trace_current();
    if (!PyArg_ParseTuple(args, "OO!O!O!s|p", &function, &PyList_Type, &inputs, &PyList_Type,
                          &dtypes, &PyList_Type, &shapes, &name, &effect))
        return NULL;
    if (!t) return PyErr_Format(PyExc_RuntimeError, "host_call: nothing is being recorded");
    Py_ssize_t nout = PyList_GET_SIZE(dtypes);
    if (nout > MOST_HOST || PyList_GET_SIZE(inputs) > MOST_HOST || PyList_GET_SIZE(shapes) != nout)
        return PyErr_Format(PyExc_ValueError,
                            "%s: at most %d inputs and results, and a shape for each result", name,
                            MOST_HOST);
    if (parse_results(dtypes, shapes, results)) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++)
        if (!py_is_tensor(PyList_GET_ITEM(inputs, i)))
            return PyErr_Format(PyExc_TypeError, "%s: input %zd is no tensor", name, i);
    host_context *c = new_context(t, function, name, effect || !nout);
    PyObject *made = c ? record_host(t, c, inputs, nout, results) : NULL;
    if (!made || !py_recorders) return made;
    return py_tell(made, Py_BuildValue("sOsOO", "host", function, name, inputs, made));
}

/* ---- gradients by functions of the caller -------------------------------------------------------------------------- */

static PyObject *eager_tuple(int32_t n, const stk_tensor *const *in, int32_t first)
{
    PyObject *args = PyTuple_New(n - first);
    for (int32_t i = first; args && i < n; i++) {
        stk_tensor *copy = NULL;
        stk_error err;
        PyObject *t = NULL;
        if (stk_tensor_new(in[i]->dtype, in[i]->rank, in[i]->shape, &copy, &err) ||
            stk_tensor_copy(copy, in[i], &err)) {
            stk_tensor_release(copy);
            py_raise(&err, NULL);
        } else {
            t = py_tensor_take(copy);
        }
        if (!t) Py_CLEAR(args);
        if (args) PyTuple_SET_ITEM(args, i - first, t);
    }
    return args;
}

/* in: the inputs, then the gradients of the results; out: those of the float inputs. */
static void run_backward(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                         stk_tensor *const *out)
{
    host_context *c = context;
    PyGILState_STATE lock = PyGILState_Ensure();
    zero(nout, out);
    PyObject *number = waiting_type ? NULL : PyObject_GetAttrString(c->function, "ninputs");
    int32_t first = number ? (int32_t)PyLong_AsLong(number) : 0;
    PyObject *args = number ? eager_tuple(nin, in, first) : NULL;
    PyObject *made = args ? PyObject_CallObject(c->function, args) : NULL;
    PyObject *all = made ? PySequence_Tuple(made) : NULL;
    int status = all ? 0 : -1;
    for (int32_t i = 0, o = 0; status == 0 && i < first && i < PyTuple_GET_SIZE(all); i++) {
        if (py_dtype_kind(in[i]->dtype) != 'F' || o >= nout) continue;
        PyObject *g = PyTuple_GET_ITEM(all, i);
        if (g != Py_None) status = put_result(g, out[o], "custom_gradient");
        o++;
    }
    if (status && !waiting_type) py_put_aside("custom_gradient");
    Py_XDECREF(all);
    Py_XDECREF(made);
    Py_XDECREF(args);
    Py_XDECREF(number);
    PyGILState_Release(lock);
}

/* note_gradient(inputs, outputs, backward): outputs were computed from inputs by somebody who knows the gradient; tapes that are
 * active ask backward(*dy) for the gradients of the inputs. Eager tensors. backward.ninputs is the number of inputs. */
PyObject *py_note_gradient(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *inputs, *outputs, *backward;
    stk_tensor *x[MOST_HOST], *y[MOST_HOST];
    if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &inputs, &PyList_Type, &outputs, &backward))
        return NULL;
    Py_ssize_t nx = PyList_GET_SIZE(inputs), ny = PyList_GET_SIZE(outputs);
    if (nx > MOST_HOST || ny > MOST_HOST)
        return PyErr_Format(PyExc_ValueError, "custom_gradient: at most %d tensors", MOST_HOST);
    for (Py_ssize_t i = 0; i < nx; i++) x[i] = ((py_tensor *)PyList_GET_ITEM(inputs, i))->t;
    for (Py_ssize_t i = 0; i < ny; i++) y[i] = ((py_tensor *)PyList_GET_ITEM(outputs, i))->t;
    if (!py_tapes_active()) Py_RETURN_NONE;
    host_context *c = PyMem_Calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory();
    c->function = Py_NewRef(backward);
    PyOS_snprintf(c->name, sizeof c->name, "custom_gradient");
    PyObject *capsule = PyCapsule_New(c, NULL, free_context);
    if (!capsule || py_tapes_keep(capsule)) {
        Py_XDECREF(capsule);
        return NULL;
    }
    Py_DECREF(capsule);
    stk_host host = {.name = c->name, .run = run_backward, .gradient = run_backward, .context = c};
    stk_eager *e = py_eager();
    if (!e) return NULL;
    if (stk_tape_note_host(e, &host, (int32_t)nx, x, (int32_t)ny, y) != STK_OK)
        return py_raise(stk_eager_error(e), NULL);
    Py_RETURN_NONE;
}
