/* Tapes: in eager code over stk_tape, in a trace over the spans of the graph that were recorded. stoker/tf has the class
 * with TensorFlow's manners on top of this one. */
#include "trace.h"

#include <string.h>

typedef struct seen {
    py_variable *variable;
    py_tensor *value; /* as it was read while this tape recorded */
} seen;

typedef struct py_tape {
    PyObject_HEAD struct py_tape *outer; /* innermost first; borrowed */
    bool active, recording, watches_variables;
    stk_tape *tape;  /* eager, or */
    py_trace *trace; /* recorded: */
    stk_val *spans;
    int32_t nspans, cap_spans;
    seen *seen;
    Py_ssize_t nseen, cap_seen;
    PyObject *kept; /* list */
} py_tape;

static PyTypeObject *tape_type;
static __thread py_tape *innermost;

bool py_tapes_active(void) { return innermost != NULL; }

/* Is there a tape that records eager operations? */
PyObject *py_taped(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    bool yes = false;
    for (py_tape *t = innermost; t && !yes; t = t->outer) yes = t->tape && t->recording;
    return PyBool_FromLong(yes);
}

int py_tapes_keep(PyObject *o)
{
    for (py_tape *t = innermost; t; t = t->outer) {
        if (!t->kept) t->kept = PyList_New(0);
        if (!t->kept || PyList_Append(t->kept, o)) return -1;
    }
    return 0;
}

/* ---- recording ---------------------------------------------------------------------------------------------- */

static int open_span(py_tape *t)
{
    if (2 * t->nspans + 2 > t->cap_spans) {
        int32_t room = t->cap_spans ? 2 * t->cap_spans : 8;
        stk_val *more = PyMem_Realloc(t->spans, (size_t)room * sizeof *more);
        if (!more) return PyErr_NoMemory(), -1;
        t->spans = more;
        t->cap_spans = room;
    }
    t->spans[2 * t->nspans] = stk_g_next(t->trace->g);
    t->spans[2 * t->nspans + 1] = INT32_MAX;
    t->nspans++;
    return 0;
}

static void close_span(py_tape *t)
{
    if (t->nspans) t->spans[2 * t->nspans - 1] = stk_g_next(t->trace->g);
}

static int resume_tape(py_tape *t)
{
    if (t->recording) return 0;
    t->recording = true;
    if (t->trace) return open_span(t);
    stk_tape_pause(t->tape, false);
    return 0;
}

static void pause_tape(py_tape *t)
{
    if (!t->recording) return;
    t->recording = false;
    if (t->trace)
        close_span(t);
    else
        stk_tape_pause(t->tape, true);
}

static int remember(py_tape *t, py_variable *v, py_tensor *value)
{
    for (Py_ssize_t i = 0; i < t->nseen; i++)
        if (t->seen[i].variable == v &&
            (value->t ? t->seen[i].value->t == value->t : t->seen[i].value->v == value->v))
            return 0;
    if (t->nseen == t->cap_seen) {
        Py_ssize_t room = t->cap_seen ? 2 * t->cap_seen : 16;
        seen *more = PyMem_Realloc(t->seen, (size_t)room * sizeof *more);
        if (!more) return PyErr_NoMemory(), -1;
        t->seen = more;
        t->cap_seen = room;
    }
    t->seen[t->nseen++] =
        (seen){(py_variable *)Py_NewRef((PyObject *)v), (py_tensor *)Py_NewRef((PyObject *)value)};
    return 0;
}

static void see(py_tape *t, py_variable *v, py_tensor *value)
{
    if (t->trace ? value->trace != t->trace : !value->t) return;
    if (!t->trace) {
        if (stk_tape_watches(t->tape, value->t)) return;
        if (stk_tape_watch(t->tape, value->t) != STK_OK) return;
    }
    if (remember(t, v, value)) PyErr_Clear();
}

void py_tape_saw_variable(py_variable *v, py_tensor *value)
{
    for (py_tape *t = innermost; t; t = t->outer)
        if (t->recording && t->watches_variables) see(t, v, value);
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

static PyObject *tape_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"watch_variables", NULL};
    int watch = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p", names, &watch)) return NULL;
    py_tape *t = (py_tape *)type->tp_alloc(type, 0);
    if (t) t->watches_variables = watch;
    return (PyObject *)t;
}

static void leave(py_tape *t)
{
    if (!t->active) return;
    pause_tape(t);
    py_tape **link = &innermost;
    while (*link && *link != t) link = &(*link)->outer;
    if (*link) *link = t->outer;
    t->active = false;
    Py_DECREF(t); /* the list held one */
}

static void tape_dealloc(PyObject *self)
{
    py_tape *t = (py_tape *)self;
    PyTypeObject *type = Py_TYPE(self);
    stk_tape_release(t->tape);
    for (Py_ssize_t i = 0; i < t->nseen; i++) {
        Py_DECREF((PyObject *)t->seen[i].variable);
        Py_DECREF((PyObject *)t->seen[i].value);
    }
    PyMem_Free(t->seen);
    PyMem_Free(t->spans);
    Py_XDECREF(t->kept);
    Py_XDECREF((PyObject *)t->trace);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Tapes of recordings are replayed where functions are saved. */
static PyObject *tell(PyObject *self, const char *method, PyObject *argument)
{
    if (!py_recorders) Py_RETURN_NONE;
    PyObject *what = Py_BuildValue("sOsO", "tape", self, method, argument ? argument : Py_None);
    return py_tell(Py_NewRef(Py_None), what);
}

static PyObject *tape_start(PyObject *self, PyObject *u)
{
    (void)u;
    py_tape *t = (py_tape *)self;
    py_trace *trace = py_trace_current();
    if (t->active) return PyErr_Format(PyExc_ValueError, "Tape is still recording.");
    if (!t->tape && !t->trace) {
        stk_eager *e = trace ? NULL : py_eager();
        if (trace)
            t->trace = (py_trace *)Py_NewRef((PyObject *)trace);
        else if (!e)
            return NULL;
        else if (stk_tape_begin(e, &t->tape) != STK_OK)
            return py_raise(stk_eager_error(e), NULL);
    }
    t->active = true;
    t->outer = innermost;
    innermost = (py_tape *)Py_NewRef(self);
    if (t->trace && resume_tape(t)) return NULL;
    t->recording = true;
    if (t->tape) stk_tape_pause(t->tape, false);
    return tell(self, "start", NULL);
}

static PyObject *tape_stop(PyObject *self, PyObject *u)
{
    (void)u;
    leave((py_tape *)self);
    return tell(self, "stop", NULL);
}
static PyObject *tape_pause(PyObject *self, PyObject *u)
{
    (void)u;
    pause_tape((py_tape *)self);
    return tell(self, "pause", NULL);
}
static PyObject *tape_resume(PyObject *self, PyObject *u)
{
    (void)u;
    if (resume_tape((py_tape *)self)) return NULL;
    return tell(self, "resume", NULL);
}
/* Forgets everything that was recorded. */
static PyObject *tape_reset(PyObject *self, PyObject *u)
{
    py_tape *t = (py_tape *)self;
    bool active = t->active;
    Py_INCREF(self);
    leave(t);
    stk_tape_release(t->tape);
    t->tape = NULL;
    Py_CLEAR(t->trace);
    t->nspans = 0;
    for (Py_ssize_t i = 0; i < t->nseen; i++) {
        Py_DECREF((PyObject *)t->seen[i].variable);
        Py_DECREF((PyObject *)t->seen[i].value);
    }
    t->nseen = 0;
    PyObject *r = active ? tape_start(self, u) : Py_NewRef(Py_None);
    Py_DECREF(self);
    return r;
}

static PyObject *tape_watch(PyObject *self, PyObject *o)
{
    py_tape *t = (py_tape *)self;
    stk_val v;
    if (py_is_variable(o)) {
        PyObject *value = py_variable_read((py_variable *)o);
        if (!value) return NULL;
        see(t, (py_variable *)o, (py_tensor *)value);
        Py_DECREF(value);
        Py_RETURN_NONE;
    }
    if (!py_is_tensor(o))
        return PyErr_Format(PyExc_ValueError, "Passed in object %R, not a tensor", o);
    py_tensor *x = (py_tensor *)o;
    if (t->trace ? py_trace_watch(t->trace, x, &v) : 0) return NULL;
    if (t->tape && x->t && stk_tape_watch(t->tape, x->t) != STK_OK)
        return py_raise(stk_eager_error(py_eager()), NULL);
    return tell(self, "watch", o);
}

/* tf.gradients asks after the fact: the tape covers all that its recording holds so far. */
static PyObject *tape_cover(PyObject *self, PyObject *u)
{
    (void)u;
    py_tape *t = (py_tape *)self;
    if (!t->trace || !t->nspans)
        return PyErr_Format(PyExc_RuntimeError, "a tape covers a recording after it was started");
    t->spans[0] = 0;
    for (Py_ssize_t i = 0; i < t->trace->nvariables; i++) {
        const py_traced_variable *v = &t->trace->variables[i];
        for (int k = 0; k < (v->read ? 2 : 1); k++) {
            PyObject *value = py_tensor_symbolic(t->trace, k ? v->read : v->leaf);
            int failed = value ? remember(t, v->variable, (py_tensor *)value) : -1;
            Py_XDECREF(value);
            if (failed) return NULL;
        }
    }
    return tell(self, "cover", NULL);
}
static PyObject *watched_variables(PyObject *self, PyObject *u)
{
    (void)u;
    py_tape *t = (py_tape *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < t->nseen; i++) {
        bool twice = false;
        for (Py_ssize_t k = 0; k < i; k++) twice |= t->seen[k].variable == t->seen[i].variable;
        if (!twice && PyList_Append(list, (PyObject *)t->seen[i].variable)) Py_CLEAR(list);
    }
    return list;
}

/* ---- gradients --------------------------------------------------------------------------------------------------------
 * Sources are flattened into values (a variable may have been read several times), asked about at once, and the
 * gradients of one source added up. */

typedef struct request {
    Py_ssize_t ny, nx; /* targets; values of all sources */
    py_tensor **y, **dy, **x;
    Py_ssize_t *owner; /* which source a value belongs to */
    PyObject **dx;     /* new references or NULL */
} request;

static void drop_request(request *r)
{
    for (Py_ssize_t i = 0; r->dx && i < r->nx; i++) Py_XDECREF(r->dx[i]);
    PyMem_Free(r->y);
    PyMem_Free(r->dy);
    PyMem_Free(r->x);
    PyMem_Free(r->owner);
    PyMem_Free(r->dx);
}

static int fill_request(py_tape *t, request *r, PyObject *targets, PyObject *sources,
                        PyObject *given)
{
    Py_ssize_t n = PyList_GET_SIZE(targets), m = PyList_GET_SIZE(sources), room = m + t->nseen;
    r->y = PyMem_Calloc((size_t)n + 1, sizeof *r->y);
    r->dy = PyMem_Calloc((size_t)n + 1, sizeof *r->dy);
    r->x = PyMem_Calloc((size_t)room + 1, sizeof *r->x);
    r->owner = PyMem_Calloc((size_t)room + 1, sizeof *r->owner);
    r->dx = PyMem_Calloc((size_t)room + 1, sizeof *r->dx);
    if (!r->y || !r->dy || !r->x || !r->owner || !r->dx) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        py_tensor *y = (py_tensor *)PyList_GET_ITEM(targets, i);
        PyObject *dy = given == Py_None ? Py_None : PyList_GET_ITEM(given, i);
        if (py_dtype_kind(py_tensor_dtype(y)) != 'F' || (t->trace ? y->trace != t->trace : !y->t)) {
            stk_val unused; /* a watched constant may be a target, too */
            if (!t->trace || !y->t || !py_trace_forces(t->trace, y) ||
                py_trace_watch(t->trace, y, &unused))
                continue;
        }
        r->y[r->ny] = y;
        r->dy[r->ny++] = dy == Py_None ? NULL : (py_tensor *)dy;
    }
    for (Py_ssize_t i = 0; i < m; i++) {
        PyObject *x = PyList_GET_ITEM(sources, i);
        if (py_is_tensor(x)) {
            r->x[r->nx] = (py_tensor *)x;
            r->owner[r->nx++] = i;
        }
        for (Py_ssize_t k = 0; !py_is_tensor(x) && k < t->nseen; k++)
            if ((PyObject *)t->seen[k].variable == x) {
                if (r->nx == room)
                    return PyErr_Format(PyExc_ValueError, "a source is given twice"), -1;
                r->x[r->nx] = t->seen[k].value;
                r->owner[r->nx++] = i;
            }
    }
    return 0;
}

static int eager_gradients(py_tape *t, request *r)
{
    stk_tensor **h = PyMem_Calloc((size_t)(2 * r->ny + 2 * r->nx) + 1, sizeof *h);
    if (!h) return PyErr_NoMemory(), -1;
    stk_tensor **y = h, **dy = y + r->ny, **x = dy + r->ny, **dx = x + r->nx;
    Py_ssize_t n = 0, *place = PyMem_Calloc((size_t)r->nx + 1, sizeof *place);
    for (Py_ssize_t i = 0; i < r->ny; i++) {
        y[i] = r->y[i]->t;
        dy[i] = r->dy[i] ? r->dy[i]->t : NULL;
    }
    for (Py_ssize_t i = 0; place && i < r->nx;
         i++) /* only what the tape knows can have a gradient */
        if (r->x[i]->t && stk_tape_watches(t->tape, r->x[i]->t)) {
            place[n] = i;
            x[n++] = r->x[i]->t;
        }
    stk_status status = STK_OK;
    if (py_devices_on && n && r->ny && py_eager_place(py_eager(), r->ny, y))
        status = STK_ERR_DEVICE;
    else if (n && r->ny)
        status = stk_tape_gradients(t->tape, (int32_t)r->ny, y, dy, (int32_t)n, x, dx);
    if (status != STK_OK && !PyErr_Occurred()) py_raise(stk_eager_error(py_eager()), NULL);
    for (Py_ssize_t i = 0; status == STK_OK && i < n; i++)
        if (dx[i]) r->dx[place[i]] = py_tensor_take(dx[i]);
    PyMem_Free(place);
    PyMem_Free(h);
    return status == STK_OK && !PyErr_Occurred() ? 0 : -1;
}

/* The spans of the tape without the values that gradients take as given. */
static stk_val *spans_to_walk(const py_tape *t, int32_t *n)
{
    stk_val *out = PyMem_Malloc((size_t)(2 * (t->nspans + t->trace->nstops) + 2) * sizeof *out);
    *n = 0;
    for (int32_t i = 0; out && i < t->nspans; i++) {
        stk_val first = t->spans[2 * i], end = t->spans[2 * i + 1];
        for (int32_t k = 0; k < t->trace->nstops; k++) {
            stk_val stop = t->trace->stops[k];
            if (stop < first || stop >= end) continue;
            out[2 * *n] = first;
            out[2 * (*n)++ + 1] = stop;
            first = stop + 1;
        }
        out[2 * *n] = first;
        out[2 * (*n)++ + 1] = end;
    }
    return out;
}

/* dx[k] of x[k], new references or NULL, for what arrives at the targets of r. */
static int ask_graph(py_tape *t, const request *r, Py_ssize_t nx, py_tensor *const *xs,
                     PyObject **dxs)
{
    stk_val *h = PyMem_Calloc((size_t)(2 * r->ny + 2 * nx) + 1, sizeof *h);
    if (!h) return PyErr_NoMemory(), -1;
    stk_val *y = h, *dy = y + r->ny, *x = dy + r->ny, *dx = x + nx;
    Py_ssize_t n = 0, *place = PyMem_Calloc((size_t)nx + 1, sizeof *place);
    bool fine = place != NULL;
    for (Py_ssize_t i = 0; fine && i < r->ny; i++) {
        fine = (y[i] = py_trace_value(t->trace, r->y[i])) != 0;
        if (fine && r->dy[i]) fine = (dy[i] = py_trace_value(t->trace, r->dy[i])) != 0;
    }
    for (Py_ssize_t i = 0; fine && i < nx; i++) {
        bool known = xs[i]->trace == t->trace || py_trace_forces(t->trace, xs[i]);
        if (!known) continue;
        place[n] = i;
        fine = (x[n++] = py_trace_value(t->trace, xs[i])) != 0;
    }
    if (fine && n && r->ny) {
        stk_gradient_request q = {.ny = (int32_t)r->ny, .y = y, .dy = dy, .nx = (int32_t)n, .x = x};
        stk_val *spans = spans_to_walk(t, &q.nspans);
        q.spans = spans;
        if (spans) stk_g_gradients_of(t->trace->g, &q, dx);
        PyMem_Free(spans);
        fine = !py_trace_check(t->trace, "gradient");
    }
    for (Py_ssize_t i = 0; fine && i < n; i++)
        if (dx[i]) fine = (dxs[place[i]] = py_tensor_symbolic(t->trace, dx[i])) != NULL;
    PyMem_Free(place);
    PyMem_Free(h);
    return fine ? 0 : -1;
}

/* What a function says about the gradients of its inputs arrives at them from now on. */
static int add_targets(request *r, PyObject *inputs, PyObject *gradients)
{
    Py_ssize_t n = PyTuple_GET_SIZE(gradients), m = PyList_GET_SIZE(inputs);
    py_tensor **y = PyMem_Realloc(r->y, (size_t)(r->ny + m + 1) * sizeof *y);
    if (y) r->y = y;
    py_tensor **dy = y ? PyMem_Realloc(r->dy, (size_t)(r->ny + m + 1) * sizeof *dy) : NULL;
    if (!dy) return PyErr_NoMemory(), -1;
    r->dy = dy;
    for (Py_ssize_t i = 0; i < n && i < m; i++) {
        PyObject *d = PyTuple_GET_ITEM(gradients, i);
        py_tensor *x = (py_tensor *)PyList_GET_ITEM(inputs, i);
        if (d == Py_None || x->t) continue;
        if (!py_is_tensor(d)) {
            PyErr_Format(PyExc_TypeError, "custom_gradient: gradient %zd is no tensor", i);
            return -1;
        }
        r->y[r->ny] = x;
        r->dy[r->ny++] = (py_tensor *)d;
    }
    return 0;
}

/* One function with a gradient of its own: what arrives at its outputs goes through it. */
static int pass_custom(py_tape *t, request *r, PyObject *entry, PyObject *alive)
{
    PyObject *outputs = PyTuple_GET_ITEM(entry, 0), *inputs = PyTuple_GET_ITEM(entry, 1);
    Py_ssize_t n = PyList_GET_SIZE(outputs);
    py_tensor **x = PyMem_Calloc((size_t)n + 1, sizeof *x);
    PyObject **dx = PyMem_Calloc((size_t)n + 1, sizeof *dx), *args = PyTuple_New(n), *made = NULL;
    bool any = false;
    int status = x && dx && args ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++)
        x[i] = (py_tensor *)PyList_GET_ITEM(outputs, i);
    if (status == 0) status = ask_graph(t, r, n, x, dx);
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        any |= dx[i] != NULL;
        PyObject *one = (PyObject *)x[i];
        PyObject *d =
            dx[i] ? Py_NewRef(dx[i]) : py_call_row("subtract", (PyObject *[]){one, one}, 2);
        if (!d)
            status = -1;
        else
            PyTuple_SET_ITEM(args, i, d);
    }
    if (status == 0 && any) {
        PyObject *list = PyObject_CallObject(PyTuple_GET_ITEM(entry, 2), args);
        made = list ? PySequence_Tuple(list) : NULL;
        Py_XDECREF(list);
        status = made && !PyList_Append(alive, made) ? add_targets(r, inputs, made) : -1;
    }
    for (Py_ssize_t i = 0; dx && i < n; i++) Py_XDECREF(dx[i]);
    Py_XDECREF(made);
    Py_XDECREF(args);
    PyMem_Free(x);
    PyMem_Free(dx);
    return status;
}

static int recorded_gradients(py_tape *t, request *r)
{
    PyObject *alive = PyList_New(0), *customs = t->trace->customs;
    int status = alive ? 0 : -1;
    for (Py_ssize_t k = customs ? PyList_GET_SIZE(customs) - 1 : -1; status == 0 && k >= 0; k--)
        status = pass_custom(t, r, PyList_GET_ITEM(customs, k), alive);
    if (status == 0) status = ask_graph(t, r, r->nx, r->x, r->dx);
    Py_XDECREF(alive);
    return status;
}

static PyObject *sum_by_source(request *r, Py_ssize_t m)
{
    PyObject *list = PyList_New(m);
    for (Py_ssize_t i = 0; list && i < m; i++) PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
    for (Py_ssize_t k = 0; list && k < r->nx; k++) {
        if (!r->dx[k]) continue;
        PyObject *before = PyList_GET_ITEM(list, r->owner[k]), *pair[2] = {before, r->dx[k]};
        PyObject *sum = before == Py_None ? Py_NewRef(r->dx[k]) : py_call_row("add", pair, 2);
        if (!sum)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, r->owner[k], sum);
    }
    return list;
}

/* gradient(targets, sources, output_gradients): lists; gives a list with None where there is no connection. */
static PyObject *tape_gradient(PyObject *self, PyObject *args)
{
    py_tape *t = (py_tape *)self;
    PyObject *targets, *sources, *given = Py_None, *result = NULL;
    if (!PyArg_ParseTuple(args, "O!O!|O", &PyList_Type, &targets, &PyList_Type, &sources, &given))
        return NULL;
    if (!t->tape && !t->trace)
        return PyErr_Format(PyExc_RuntimeError, "the tape recorded nothing; compute inside `with`");
    request r = {0};
    bool was = t->recording;
    PyObject *told = py_recorders && t->trace ? py_recorder_take() : NULL;
    if (t->trace && was) close_span(t); /* what follows is the gradient's own */
    if (fill_request(t, &r, targets, sources, given) == 0 &&
        (t->trace ? recorded_gradients(t, &r) : eager_gradients(t, &r)) == 0)
        result = sum_by_source(&r, PyList_GET_SIZE(sources));
    if (t->trace && was && open_span(t)) Py_CLEAR(result);
    drop_request(&r);
    if (!told) return result;
    py_recorder_give(told);
    if (!result) return NULL;
    return py_tell(result,
                   Py_BuildValue("sOOOOO", "gradient", self, targets, sources, given, result));
}

int py_init_tape(PyObject *module)
{
    static PyMethodDef methods[] = {{"start", tape_start, METH_NOARGS, NULL},
                                    {"stop", tape_stop, METH_NOARGS, NULL},
                                    {"pause", tape_pause, METH_NOARGS, NULL},
                                    {"resume", tape_resume, METH_NOARGS, NULL},
                                    {"reset", tape_reset, METH_NOARGS, NULL},
                                    {"watch", tape_watch, METH_O, NULL},
                                    {"cover", tape_cover, METH_NOARGS, NULL},
                                    {"watched_variables", watched_variables, METH_NOARGS, NULL},
                                    {"gradient", tape_gradient, METH_VARARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"recording", T_BOOL, offsetof(py_tape, recording), READONLY, NULL},
        {"active", T_BOOL, offsetof(py_tape, active), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, tape_new},
                                  {Py_tp_dealloc, tape_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.Tape", sizeof(py_tape), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    tape_type = py_add_type(module, &spec, NULL, "Tape");
    return tape_type ? 0 : -1;
}
