/* Traces: a graph that is being recorded by Python code.
 *
 * Values that exist already become constants. Variables are read as they are when the program runs; an assignment
 * makes the new value the current one, and what is current at the end is written back. A trace with a parent is a
 * body of control flow: values and variables of the parent come in as further inputs ("captures"), and assignments inside
 * are handed to the parent, which decides what becomes of them. */
#include "trace.h"

#include <string.h>

PyTypeObject *py_trace_type;
static __thread py_trace *current; /* borrowed: who swapped it in holds it */

py_trace *py_trace_current(void) { return current; }
stk_graph *py_trace_graph(py_trace *trace) { return trace->g; }

int py_trace_check(py_trace *trace, const char *op)
{
    stk_error err;
    if (stk_graph_status(trace->g, &err) == STK_OK) return 0;
    stk_graph_forgive(trace->g);
    py_raise(&err, op);
    return -1;
}

/* ---- values from outside ------------------------------------------------------------------------------- */

typedef struct capture {
    py_tensor *outer; /* NULL: a constant whose handle is `constant` */
    stk_tensor *constant;
    stk_val inner;
    bool watched;
} capture;

/* A value of an enclosing trace has come in through all traces in between. */
static capture *find_outer(py_trace *t, const py_trace *from, stk_val v)
{
    if (t->parent && t->parent != from) {
        capture *between = find_outer(t->parent, from, v);
        if (!between) return NULL;
        v = between->inner;
    }
    for (Py_ssize_t i = 0; i < t->ncaptures; i++) {
        capture *c = &t->captures[i];
        if (c->outer && c->outer->trace == t->parent && c->outer->v == v) return c;
    }
    return NULL;
}

static capture *find_capture(py_trace *t, const py_tensor *o)
{
    if (!o->t) return t->parent ? find_outer(t, o->trace, o->v) : NULL;
    for (Py_ssize_t i = 0; i < t->ncaptures; i++)
        if (t->captures[i].constant == o->t) return &t->captures[i];
    return NULL;
}

static capture *add_capture(py_trace *t, py_tensor *o, stk_val inner)
{
    if (!inner) {
        py_trace_check(t, NULL);
        return NULL;
    }
    if (t->ncaptures == t->cap_captures) {
        Py_ssize_t room = t->cap_captures ? 2 * t->cap_captures : 16;
        capture *more = PyMem_Realloc(t->captures, (size_t)room * sizeof *more);
        if (!more) return (capture *)(void *)PyErr_NoMemory();
        t->captures = more;
        t->cap_captures = room;
    }
    capture *c = &t->captures[t->ncaptures++];
    *c = (capture){.constant = stk_tensor_retain(o->t), .inner = inner};
    if (!o->t) c->outer = (py_tensor *)Py_NewRef((PyObject *)o);
    return c;
}

static bool is_inside(const py_trace *t, const py_trace *outer)
{
    for (t = t->parent; t; t = t->parent)
        if (t == outer) return true;
    return false;
}

/* A value of an enclosing trace comes in through an input. */
static capture *capture_outer(py_trace *t, py_tensor *o)
{
    char name[32];
    int64_t dim[STK_MAX_RANK];
    PyObject *mine = NULL;
    if (!is_inside(t, o->trace)) {
        PyErr_Format(
            PyExc_TypeError,
            "<tf.Tensor> is out of scope: it belongs to another function that is traced or "
            "was traced before. Pass it as an argument or return it.");
        return NULL;
    }
    if (o->trace != t->parent) { /* through all traces in between */
        stk_val v = py_trace_value(t->parent, o);
        mine = v ? py_tensor_symbolic(t->parent, v) : NULL;
        if (!mine) return NULL;
    }
    py_tensor *from = mine ? (py_tensor *)mine : o;
    capture *known = find_capture(t, from);
    if (!known) {
        int32_t rank = py_tensor_rank(from);
        for (int32_t i = 0; i < rank; i++) dim[i] = py_tensor_dim(from, i);
        PyOS_snprintf(name, sizeof name, "c%zd", t->ncaptures);
        known = add_capture(t, from, stk_g_input(t->g, name, py_tensor_dtype(from), rank, dim));
    }
    Py_XDECREF(mine);
    return known;
}

void *py_refuse(const char *reason)
{
    PyObject *base = PyImport_ImportModule("stoker.tf._base");
    Py_XDECREF(base ? PyObject_CallMethod(base, "not_traceable", "s", reason)
                    : NULL); /* it raises */
    Py_XDECREF(base);
    return NULL;
}

static capture *capture_of(py_trace *t, py_tensor *o)
{
    capture *c = find_capture(t, o);
    if (c) return c;
    if (!o->t) return capture_outer(t, o);
    if (o->t->dtype == STK_STRING)
        return py_refuse("strings are computed with outside of programs");
    stk_tensor *fixed = NULL; /* what a variable shows now is no constant: a copy of it is */
    stk_error err;
    if (o->borrowed) {
        if (stk_tensor_detach(o->t, &err) != STK_OK) return py_raise(&err, NULL);
        o->borrowed = false;
    }
    stk_tensor *here = py_on_host(o->t);
    if (!here) return NULL;
    stk_status status = stk_tensor_dense(here, &fixed, &err);
    stk_tensor_release(here);
    if (status != STK_OK) return py_raise(&err, NULL);
    c = add_capture(t, o, stk_g_const(t->g, fixed));
    stk_tensor_release(fixed);
    return c;
}

stk_val py_trace_value(py_trace *t, py_tensor *o)
{
    if (!o->t && o->trace == t) return o->v;
    capture *c = capture_of(t, o);
    return c ? c->inner : 0;
}

bool py_trace_forces(py_trace *t, py_tensor *o)
{
    if (!t->nwatched) return false;
    capture *c = find_capture(t, o);
    return c && c->watched;
}

int py_trace_watch(py_trace *t, py_tensor *o, stk_val *v)
{
    if (!o->t && o->trace == t) {
        *v = o->v;
        return 0;
    }
    capture *c = capture_of(t, o);
    if (!c) return -1;
    t->nwatched += !c->watched;
    c->watched = true;
    *v = c->inner;
    return 0;
}

/* ---- variables --------------------------------------------------------------------------------------------- */

static py_traced_variable *find_variable(py_trace *t, py_variable *v)
{
    for (Py_ssize_t i = 0; i < t->nvariables; i++)
        if (t->variables[i].variable == v) return &t->variables[i];
    return NULL;
}

static py_traced_variable *entry_of(py_trace *t, py_variable *v)
{
    py_traced_variable *e = find_variable(t, v);
    if (e) return e;
    if (t->nvariables == t->cap_variables) {
        Py_ssize_t room = t->cap_variables ? 2 * t->cap_variables : 16;
        py_traced_variable *more = PyMem_Realloc(t->variables, (size_t)room * sizeof *more);
        if (!more) return (py_traced_variable *)(void *)PyErr_NoMemory();
        t->variables = more;
        t->cap_variables = room;
    }
    stk_val leaf = 0;
    if (t->parent) {
        PyObject *outer = py_trace_read_variable(t->parent, v);
        leaf = outer ? py_trace_value(t, (py_tensor *)outer) : 0;
        Py_XDECREF(outer);
        if (!leaf) return NULL;
    } else {
        char name[32];
        const stk_tensor *m = py_variable_memory(v);
        PyOS_snprintf(name, sizeof name, "v%zd", t->nvariables);
        leaf = stk_g_variable(t->g, name, m->dtype, m->rank, m->shape);
        if (py_trace_check(t, "ReadVariableOp")) return NULL;
    }
    e = &t->variables[t->nvariables++];
    *e = (py_traced_variable){
        .variable = (py_variable *)Py_NewRef((PyObject *)v), .leaf = leaf, .current = leaf};
    return e;
}

PyObject *py_trace_read_variable(py_trace *t, py_variable *v)
{
    py_traced_variable *e = entry_of(t, v);
    PyObject *value = e ? py_tensor_symbolic(t, e->read ? e->read : e->current) : NULL;
    /* Whole numbers have no gradients, the hidden variable of effects among them. */
    if (value && e->assigned && !e->read && py_dtype_kind(py_variable_memory(v)->dtype) == 'F') {
        PyObject *now = value;
        value = py_trace_stop(t, (py_tensor *)now);
        if (value) e->read = ((py_tensor *)value)->v;
        if (value && py_recorders) value = py_tell(value, Py_BuildValue("sOO", "stop", now, value));
        Py_DECREF(now);
    }
    if (value && py_variable_trainable(v) && py_tapes_active())
        py_tape_saw_variable(v, (py_tensor *)value);
    return value;
}

int py_trace_assign_variable(py_trace *t, py_variable *v, PyObject *value)
{
    py_traced_variable *e = entry_of(t, v);
    stk_val now = e ? py_trace_value(t, (py_tensor *)value) : 0;
    if (!now) return -1;
    e = find_variable(t, v); /* the list may have moved */
    e->current = now;
    e->read = 0;
    e->assigned = true;
    return 0;
}

/* ---- the object ------------------------------------------------------------------------------------------------ */

static PyObject *trace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parent", NULL};
    PyObject *parent = Py_None;
    stk_error err;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &parent)) return NULL;
    py_trace *t = (py_trace *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    if (parent != Py_None) t->parent = (py_trace *)Py_NewRef(parent);
    if (stk_graph_new(&t->g, &err) == STK_OK) return (PyObject *)t;
    Py_DECREF(t);
    return py_raise(&err, NULL);
}

static void trace_dealloc(PyObject *self)
{
    py_trace *t = (py_trace *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t i = 0; i < t->ncaptures; i++) {
        Py_XDECREF((PyObject *)t->captures[i].outer);
        stk_tensor_release(t->captures[i].constant);
    }
    for (Py_ssize_t i = 0; i < t->nvariables; i++) Py_XDECREF((PyObject *)t->variables[i].variable);
    PyMem_Free(t->captures);
    PyMem_Free(t->variables);
    PyMem_Free(t->stops);
    PyMem_Free(t->stopped);
    Py_XDECREF(t->kept);
    Py_XDECREF(t->customs);
    Py_XDECREF((PyObject *)t->parent);
    stk_graph_release(t->g);
    type->tp_free(self);
    Py_DECREF(type);
}

/* input(dtype, shape): a value that is given when the program is called, in this order. */
static PyObject *trace_input(PyObject *self, PyObject *args)
{
    py_trace *t = (py_trace *)self;
    PyObject *dtype, *shape;
    stk_dtype d;
    char name[32];
    int64_t dim[STK_MAX_RANK];
    if (!PyArg_ParseTuple(args, "OO", &dtype, &shape) || py_dtype_parse(dtype, &d)) return NULL;
    int rank = py_ints_from(shape, "Trace.input", STK_MAX_RANK, dim);
    if (rank < 0) return NULL;
    PyOS_snprintf(name, sizeof name, "x%d", t->ninputs);
    stk_val v = stk_g_input(t->g, name, d, rank, dim);
    if (py_trace_check(t, "Placeholder")) return NULL;
    t->ninputs++;
    return py_tensor_symbolic(t, v);
}

/* capture(tensor): the tensor as a value of this trace. A body's inputs are in the order of these calls. */
static PyObject *trace_capture(PyObject *self, PyObject *o)
{
    if (!py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "capture: %R is no tensor", o);
    stk_val v = py_trace_value((py_trace *)self, (py_tensor *)o);
    return v ? py_tensor_symbolic((py_trace *)self, v) : NULL;
}

/* custom(outputs, inputs, backward) -> outputs: the gradient of outputs is what backward(*dy) says. */
static PyObject *trace_custom(PyObject *self, PyObject *args)
{
    py_trace *t = (py_trace *)self;
    PyObject *outputs, *inputs, *backward;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &outputs, &PyList_Type, &inputs, &backward))
        return NULL;
    PyObject *barred = PyList_New(0);
    for (Py_ssize_t i = 0; barred && i < PyList_GET_SIZE(outputs); i++) {
        PyObject *y = py_trace_stop(t, (py_tensor *)PyList_GET_ITEM(outputs, i));
        if (!y || PyList_Append(barred, y)) Py_CLEAR(barred);
        Py_XDECREF(y);
    }
    PyObject *entry = barred ? PyTuple_Pack(3, barred, inputs, backward) : NULL;
    if (entry && !t->customs) t->customs = PyList_New(0);
    if (!entry || !t->customs || PyList_Append(t->customs, entry)) Py_CLEAR(barred);
    Py_XDECREF(entry);
    if (!barred || !py_recorders) return barred;
    return py_tell(barred,
                   Py_BuildValue("sOOOOO", "custom", self, outputs, inputs, backward, barred));
}

/* source(value): what came in as this value of the trace: a tensor from outside, a constant, a variable; else None. */
static PyObject *trace_source(PyObject *self, PyObject *o)
{
    py_trace *t = (py_trace *)self;
    if (!py_is_tensor(o) || ((py_tensor *)o)->trace != t) Py_RETURN_NONE;
    stk_val v = ((py_tensor *)o)->v;
    for (Py_ssize_t i = 0; i < t->ncaptures; i++) {
        const capture *c = &t->captures[i];
        if (c->inner != v) continue;
        return c->outer ? Py_NewRef((PyObject *)c->outer)
                        : py_tensor_take(stk_tensor_retain(c->constant));
    }
    for (Py_ssize_t i = 0; i < t->nvariables; i++)
        if (t->variables[i].leaf == v) return Py_NewRef((PyObject *)t->variables[i].variable);
    for (int32_t i = 0; i < t->nstops; i++)
        if (t->stops[i] == v) return py_tensor_symbolic(t, t->stopped[i]);
    Py_RETURN_NONE;
}

/* leaf(variable): its value when the run starts. */
static PyObject *trace_leaf(PyObject *self, PyObject *v)
{
    if (!py_is_variable(v)) return PyErr_Format(PyExc_TypeError, "leaf: %R is no variable", v);
    py_traced_variable *e = entry_of((py_trace *)self, (py_variable *)v);
    return e ? py_tensor_symbolic((py_trace *)self, e->leaf) : NULL;
}

static PyObject *list_captures(PyObject *self, void *c)
{
    (void)c;
    py_trace *t = (py_trace *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < t->ncaptures; i++)
        if (t->captures[i].outer && PyList_Append(list, (PyObject *)t->captures[i].outer))
            Py_CLEAR(list);
    return list;
}

static PyObject *list_variables(PyObject *self, bool assigned)
{
    py_trace *t = (py_trace *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < t->nvariables; i++)
        if ((!assigned || t->variables[i].assigned) &&
            PyList_Append(list, (PyObject *)t->variables[i].variable))
            Py_CLEAR(list);
    return list;
}
static PyObject *get_variables(PyObject *self, void *c)
{
    (void)c;
    return list_variables(self, false);
}
static PyObject *get_assigned(PyObject *self, void *c)
{
    (void)c;
    return list_variables(self, true);
}
static PyObject *get_parent(PyObject *self, void *c)
{
    (void)c;
    PyObject *parent = (PyObject *)((py_trace *)self)->parent;
    return Py_NewRef(parent ? parent : Py_None);
}

static PyObject *trace_dump(PyObject *self, PyObject *u)
{
    (void)u;
    char *text = NULL;
    stk_error err;
    if (stk_graph_dump(((py_trace *)self)->g, &text, &err) != STK_OK) return py_raise(&err, NULL);
    PyObject *s = PyUnicode_FromString(text);
    stk_text_free(text);
    return s;
}

/* place(text or None) -> the one before: nodes made from now on are billed to it in profiles. */
static PyObject *trace_place(PyObject *self, PyObject *place)
{
    const char *text = place == Py_None ? NULL : PyUnicode_AsUTF8(place);
    if (!text && PyErr_Occurred()) return NULL;
    const char *before = stk_g_place(((py_trace *)self)->g, text);
    if (!before) Py_RETURN_NONE;
    return PyUnicode_FromString(before);
}

/* ---- values without a way back -------------------------------------------------------------------------------- */

PyObject *py_trace_stop(py_trace *t, py_tensor *x)
{
    int64_t dim[STK_MAX_RANK];
    stk_val v = py_trace_value(t, x);
    if (!v) return NULL;
    if (t->nstops == t->cap_stops) {
        int32_t room = t->cap_stops ? 2 * t->cap_stops : 8;
        stk_val *more = PyMem_Realloc(t->stops, (size_t)room * sizeof *more);
        if (more) t->stops = more;
        stk_val *shown = more ? PyMem_Realloc(t->stopped, (size_t)room * sizeof *shown) : NULL;
        if (!shown) return PyErr_NoMemory();
        t->stopped = shown;
        t->cap_stops = room;
    }
    int32_t rank = stk_g_rank(t->g, v);
    for (int32_t i = 0; i < rank; i++) dim[i] = stk_g_dim(t->g, v, i);
    t->stopped[t->nstops] = v;
    v = stk_g_reshape(t->g, v, rank, dim); /* a value of its own, and no work */
    if (py_trace_check(t, "StopGradient")) return NULL;
    t->stops[t->nstops++] = v;
    return py_tensor_symbolic(t, v);
}

/* The same memory under a handle that no tape knows. */
static PyObject *stop_eager(py_tensor *x)
{
    stk_tensor *view = NULL;
    stk_error err;
    stk_status status = stk_tensor_alias(x->t, &view, &err);
    if (status == STK_OK && x->borrowed) status = stk_tensor_detach(view, &err);
    if (status == STK_OK) return py_tensor_take(view);
    stk_tensor_release(view);
    return py_raise(&err, "StopGradient");
}

PyObject *py_stop_gradient(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = {"input", "name", NULL};
    PyObject *input, *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &input, &name)) return NULL;
    PyObject *x = py_to_tensor(input, -1, -1), *r = NULL;
    if (!x) return NULL;
    bool recorded = !((py_tensor *)x)->t || (current && py_trace_forces(current, (py_tensor *)x));
    if (recorded && current)
        r = py_trace_stop(current, (py_tensor *)x);
    else if (!recorded)
        r = stop_eager((py_tensor *)x);
    else
        PyErr_SetString(PyExc_TypeError, "<tf.Tensor> is out of scope and cannot be used here.");
    if (r && py_recorders) r = py_tell(r, Py_BuildValue("sOO", "stop", x, r));
    Py_DECREF(x);
    return r;
}

PyObject *py_swap_trace(PyObject *module, PyObject *next)
{
    (void)module;
    if (next != Py_None && Py_TYPE(next) != py_trace_type)
        return PyErr_Format(PyExc_TypeError, "swap_trace: needs a Trace or None");
    py_trace *before = current;
    current = next == Py_None ? NULL : (py_trace *)Py_NewRef(next);
    if (!before) Py_RETURN_NONE;
    return (PyObject *)before; /* our reference goes to the caller */
}

PyObject *py_get_trace(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    return Py_NewRef(current ? (PyObject *)current : Py_None);
}

int py_init_trace(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"input", trace_input, METH_VARARGS, NULL}, {"leaf", trace_leaf, METH_O, NULL},
        {"capture", trace_capture, METH_O, NULL},   {"custom", trace_custom, METH_VARARGS, NULL},
        {"source", trace_source, METH_O, NULL},     {"dump", trace_dump, METH_NOARGS, NULL},
        {"place", trace_place, METH_O, NULL},       {NULL, NULL, 0, NULL}};
    static PyGetSetDef getters[] = {{"captures", list_captures, NULL, NULL, NULL},
                                    {"variables", get_variables, NULL, NULL, NULL},
                                    {"assigned", get_assigned, NULL, NULL, NULL},
                                    {"parent", get_parent, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyMemberDef members[] = {{"ninputs", T_INT, offsetof(py_trace, ninputs), READONLY, NULL},
                                    {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, trace_new},   {Py_tp_dealloc, trace_dealloc},
                                  {Py_tp_methods, methods}, {Py_tp_getset, getters},
                                  {Py_tp_members, members}, {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.Trace", sizeof(py_trace), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    py_trace_type = py_add_type(module, &spec, NULL, "Trace");
    return py_trace_type ? 0 : -1;
}
