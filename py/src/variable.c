/* tf.Variable: memory of its own at an address that never moves. Programs write into it; who has read it keeps what was read.
 *
 *     memory   the elements                       view   a handle that shows them, given to all readers
 *
 * Before a write, if somebody else holds the view, that handle is detached: it gets a copy, and the next reader a new
 * view. So reads cost nothing and nothing ever changes under a reader. */
#include "front.h"

#include <string.h>

PyTypeObject *py_variable_type;

struct py_variable {
    PyObject_HEAD stk_tensor *memory, *view;
    PyObject *name, *shape, *constraint;
    bool trainable;
    PyObject *dict, *weak;
};

stk_tensor *py_variable_memory(py_variable *v) { return v->memory; }
PyObject *py_variable_name(py_variable *v) { return v->name; }
bool py_variable_trainable(py_variable *v) { return v->trainable; }

/* ---- reading and writing ------------------------------------------------------------------------------- */

/* Does the view show the memory? One that was detached has its own. */
static bool shows(const py_variable *v)
{
    return v->view && v->view->buffer == v->memory->buffer && v->view->data == v->memory->data;
}

static stk_tensor *current_view(py_variable *v)
{
    stk_error err;
    if (shows(v)) return v->view;
    stk_tensor_release(v->view);
    v->view = NULL;
    if (stk_tensor_alias(v->memory, &v->view, &err) != STK_OK) return py_raise(&err, NULL);
    return v->view;
}

PyObject *py_variable_read(py_variable *v)
{
    py_trace *trace = py_trace_current();
    PyObject *value = NULL;
    if (!v->memory) return PyErr_Format(PyExc_ValueError, "the variable was never initialised");
    if (trace) return py_trace_read_variable(trace, v);
    stk_tensor *view = current_view(v);
    if (view) value = py_tensor_take(stk_tensor_retain(view));
    if (!value) return NULL;
    ((py_tensor *)value)->borrowed = true;
    if (v->trainable && py_tapes_active()) py_tape_saw_variable(v, (py_tensor *)value);
    return value;
}

int py_variable_before_write(py_variable *v)
{
    stk_error err;
    if (!v->view || v->view->refs == 1 || !shows(v)) return 0;
    if (stk_tensor_detach(v->view, &err) == STK_OK) return 0;
    py_raise(&err, NULL);
    return -1;
}

static int write_now(py_variable *v, py_tensor *value)
{
    stk_error err;
    if (v->memory->dtype == STK_STRING) { /* texts never change: the variable shows others */
        stk_tensor_release(v->memory);
        v->memory = stk_tensor_retain(value->t);
        return 0;
    }
    if (py_variable_before_write(v)) return -1;
    if (stk_tensor_write(v->memory, value->t, &err) == STK_OK) return 0;
    py_raise(&err, "AssignVariableOp");
    return -1;
}

static bool same_shape(py_variable *v, py_tensor *t)
{
    int32_t rank = py_tensor_rank(t);
    bool same = rank == v->memory->rank;
    for (int32_t i = 0; same && i < rank; i++) same = py_tensor_dim(t, i) == v->memory->shape[i];
    return same;
}

static int assign(py_variable *v, PyObject *value) /* a tensor */
{
    if (!same_shape(v, (py_tensor *)value)) {
        PyObject *mine = py_shape_new(v->memory->rank, v->memory->shape);
        PyObject *other = py_tensor_shape((py_tensor *)value);
        if (mine && other)
            PyErr_Format(PyExc_ValueError,
                         "Cannot assign value to variable ' %U:0': Shape mismatch.The "
                         "variable shape %S, and the assigned value shape %S are incompatible.",
                         v->name, mine, other);
        Py_XDECREF(mine);
        Py_XDECREF(other);
        return -1;
    }
    py_trace *trace = py_trace_current();
    if (trace) return py_trace_assign_variable(trace, v, value);
    if (!((py_tensor *)value)->t) {
        PyErr_SetString(PyExc_TypeError, "the value was made inside a function that is traced and "
                                         "cannot be assigned outside of it");
        return -1;
    }
    return write_now(v, (py_tensor *)value);
}

static PyObject *assign_value(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw,
                              const char *row)
{
    py_variable *v = (py_variable *)self;
    PyObject *given = nargs > 0 ? args[0] : NULL;
    Py_ssize_t nkw = kw ? PyTuple_GET_SIZE(kw) : 0;
    for (Py_ssize_t i = 0; i < nkw;
         i++) { /* value=, delta=; use_locking, name, read_value do not matter */
        PyObject *name = PyTuple_GET_ITEM(kw, i);
        if (!PyUnicode_CompareWithASCIIString(name, "value") ||
            !PyUnicode_CompareWithASCIIString(name, "delta"))
            given = args[nargs + i];
    }
    if (!given) return PyErr_Format(PyExc_TypeError, "assign() needs a value");
    PyObject *value = py_to_tensor(given, (int)v->memory->dtype, -1), *sum = NULL;
    if (value && row) {
        PyObject *old = py_variable_read(v), *pair[2] = {old, value};
        sum = old ? py_call_row(row, pair, 2) : NULL;
        Py_XDECREF(old);
        Py_SETREF(value, sum);
    }
    int status = value ? assign(v, value) : -1;
    Py_XDECREF(value);
    return status ? NULL : Py_NewRef(self);
}

static PyObject *assign_method(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw)
{
    return assign_value(self, args, n, kw, NULL);
}
static PyObject *assign_add_method(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                   PyObject *kw)
{
    return assign_value(self, args, n, kw, "add");
}
static PyObject *assign_sub_method(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                   PyObject *kw)
{
    return assign_value(self, args, n, kw, "subtract");
}
static PyObject *value_method(PyObject *self, PyObject *u)
{
    (void)u;
    return py_variable_read((py_variable *)self);
}
static PyObject *numpy_method(PyObject *self, PyObject *u)
{
    (void)u;
    py_tensor shell = {.t = ((py_variable *)self)->memory};
    return py_to_numpy(&shell);
}
static PyObject *array_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *value = py_variable_read((py_variable *)self);
    PyObject *method = value ? PyObject_GetAttrString(value, "__array__") : NULL;
    PyObject *r = method ? PyObject_Call(method, args, kwargs) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(value);
    return r;
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

/* Memory of its own with the elements of t, where variables of now live. */
static stk_status new_memory(stk_tensor *t, stk_tensor **out, stk_error *err)
{
    if (t->dtype == STK_STRING) {
        *out = stk_tensor_retain(t);
        return STK_OK;
    }
    stk_device *d = py_devices_on ? py_device_now() : NULL;
    stk_tensor *there = NULL;
    if (PyErr_Occurred()) return STK_ERR_DEVICE;
    if (!d || py_device_is_host(d)) {
        stk_status status = stk_tensor_new(t->dtype, t->rank, t->shape, out, err);
        return status == STK_OK ? stk_tensor_write(*out, t, err) : status;
    }
    stk_status status = stk_tensor_to(t, d, &there, err);
    if (status == STK_OK && there == t) { /* it was there already: a copy */
        status = stk_tensor_alias(t, out, err);
        if (status == STK_OK) status = stk_tensor_detach(*out, err);
        stk_tensor_release(there);
    } else if (status == STK_OK) {
        *out = there;
    }
    return status;
}

/* The first value is one that a program will compute: the function runs once without a program, which
 * makes the variable, and is recorded at its next call. */
static void refuse_traced(void)
{
    PyObject *base = PyImport_ImportModule("stoker.tf._base");
    Py_XDECREF(base ? PyObject_CallMethod(base, "value_of_variable_is_traced", NULL) : NULL);
    Py_XDECREF(base);
}

static int set_memory(py_variable *v, PyObject *initial, int dtype)
{
    stk_error err;
    PyObject *value = py_to_tensor(initial, dtype, -1);
    if (!value) return -1;
    py_tensor *t = (py_tensor *)value;
    int status = -1;
    if (!t->t)
        refuse_traced();
    else if (new_memory(t->t, &v->memory, &err) == STK_OK)
        status = 0;
    else if (!PyErr_Occurred())
        py_raise(&err, "VarHandleOp");
    Py_DECREF(value);
    return status;
}

static long long made, made_recording;

PyObject *py_variables_made(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    return Py_BuildValue("LL", made, made_recording);
}

/* "complex64", or something whose dtype or name says so; borrowed, may be NULL. */
static bool says_complex(PyObject *o)
{
    static const char *const asks[] = {"dtype", "name", "__name__"};
    if (!o || o == Py_None || py_is_tensor(o) || py_is_variable(o)) return false;
    if (PyComplex_Check(o)) return true;
    if (PyFloat_Check(o) || PyLong_Check(o)) return false;
    if (PyList_Check(o) || PyTuple_Check(o)) {
        bool found = false;
        for (Py_ssize_t i = 0; !found && i < PySequence_Fast_GET_SIZE(o); i++) {
            PyObject *item = PySequence_Fast_GET_ITEM(o, i);
            found = !PyUnicode_Check(item) && says_complex(item);
        }
        return found;
    }
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8(o);
        return text && !strncmp(text, "complex", 7);
    }
    for (int i = 0; i < 3; i++) {
        PyObject *part = PyObject_GetAttrString(o, asks[i]);
        if (!part) {
            PyErr_Clear();
            continue;
        }
        bool yes = part != o && (i == 0 || PyUnicode_Check(part)) && says_complex(part);
        Py_DECREF(part);
        if (yes) return true;
    }
    return false;
}

/* A variable of complex numbers is a pair of real ones, as its values are (stoker.tf._complex). */
static PyObject *variable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *initial = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *dtype = kwargs ? PyDict_GetItemString(kwargs, "dtype") : NULL;
    if (!initial && kwargs) initial = PyDict_GetItemString(kwargs, "initial_value");
    if (dtype && dtype != Py_None ? !says_complex(dtype) : !says_complex(initial))
        return PyType_GenericNew(type, args, kwargs);
    PyObject *module = PyImport_ImportModule("stoker.tf._complex");
    PyObject *make = module ? PyObject_GetAttrString(module, "ComplexVariable") : NULL;
    PyObject *v = make ? PyObject_Call(make, args, kwargs) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(module);
    return v;
}

static int variable_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"initial_value",
                            "trainable",
                            "validate_shape",
                            "caching_device",
                            "name",
                            "variable_def",
                            "dtype",
                            "import_scope",
                            "constraint",
                            "synchronization",
                            "aggregation",
                            "shape",
                            "experimental_enable_variable_lifting",
                            NULL};
    PyObject *initial = Py_None, *trainable = Py_None, *name = Py_None, *dtype = Py_None,
             *constraint = Py_None, *shape = Py_None, *skip;
    py_variable *v = (py_variable *)self;
    stk_dtype wanted;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOOOOOOOOO", names, &initial, &trainable,
                                     &skip, &skip, &name, &skip, &dtype, &skip, &constraint, &skip,
                                     &skip, &shape, &skip))
        return -1;
    if (dtype != Py_None && py_dtype_parse(dtype, &wanted)) return -1;
    if (initial == Py_None) {
        PyErr_SetString(
            PyExc_ValueError,
            "The `initial_value` arg to `tf.Variable` must be specified "
            "except when you are not providing a `variable_def`. You provided neither.");
        return -1;
    }
    made++;
    if (py_trace_current()) made_recording++;
    v->trainable = trainable == Py_None || PyObject_IsTrue(trainable);
    Py_XSETREF(v->name, name == Py_None ? PyUnicode_FromString("Variable") : Py_NewRef(name));
    Py_XSETREF(v->constraint, Py_NewRef(constraint));
    PyObject *value = NULL, *outside = NULL;
    if (PyCallable_Check(initial) && !py_is_tensor(initial) && !py_is_variable(initial)) {
        PyObject *module = PyImport_ImportModule("stoker._stoker"); /* as under tf.init_scope */
        outside = module ? PyObject_CallMethod(module, "swap_trace", "O", Py_None) : NULL;
        value = outside ? PyObject_CallNoArgs(initial) : NULL;
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        Py_XDECREF(outside ? PyObject_CallMethod(module, "swap_trace", "O", outside) : NULL);
        PyErr_Restore(type, error, trace);
        Py_XDECREF(module);
        Py_XDECREF(outside);
    } else {
        value = Py_NewRef(initial);
    }
    int status = value ? set_memory(v, value, dtype == Py_None ? -1 : (int)wanted) : -1;
    Py_XDECREF(value);
    return status;
}

static void variable_dealloc(PyObject *self)
{
    py_variable *v = (py_variable *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (v->weak) PyObject_ClearWeakRefs(self);
    stk_tensor_release(v->view);
    stk_tensor_release(v->memory);
    Py_XDECREF(v->name);
    Py_XDECREF(v->shape);
    Py_XDECREF(v->constraint);
    Py_XDECREF(v->dict);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *c)
{
    (void)c;
    py_variable *v = (py_variable *)self;
    if (!v->shape) v->shape = py_shape_new(v->memory->rank, v->memory->shape);
    return Py_XNewRef(v->shape);
}
static PyObject *shape_method(PyObject *self, PyObject *u)
{
    (void)u;
    return get_shape(self, NULL);
}
static PyObject *get_dtype(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef(py_dtype_object(((py_variable *)self)->memory->dtype));
}
static PyObject *get_name(PyObject *self, void *c)
{
    (void)c;
    return PyUnicode_FromFormat("%U:0", ((py_variable *)self)->name);
}
static PyObject *get_short_name(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef(((py_variable *)self)->name);
}
static PyObject *get_trainable(PyObject *self, void *c)
{
    (void)c;
    return PyBool_FromLong(((py_variable *)self)->trainable);
}
static int set_trainable(PyObject *self, PyObject *value, void *c)
{
    (void)c;
    int yes = value ? PyObject_IsTrue(value) : 0;
    if (yes < 0) return -1;
    ((py_variable *)self)->trainable = yes;
    return 0;
}
static PyObject *get_constraint(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef(((py_variable *)self)->constraint);
}
static PyObject *get_device(PyObject *self, void *c)
{
    (void)c;
    return py_device_of(((py_variable *)self)->memory);
}
static PyObject *get_self(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef(self);
}
static PyObject *get_rank(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromLong(((py_variable *)self)->memory->rank);
}
static PyObject *get_priority(PyObject *self, void *c)
{
    (void)self, (void)c;
    return PyLong_FromLong(100);
}

static PyObject *variable_repr(PyObject *self)
{
    py_variable *v = (py_variable *)self;
    PyObject *shape = get_shape(self, NULL), *value = numpy_method(self, NULL);
    PyObject *plain = value && v->memory->rank == 0 ? PyObject_Str(value)
                      : value                       ? PyObject_Repr(value)
                                                    : NULL;
    PyObject *text = NULL;
    if (shape && plain) {
        bool lines = PyUnicode_FindChar(plain, '\n', 0, PyUnicode_GET_LENGTH(plain), 1) >= 0;
        text =
            PyUnicode_FromFormat("<tf.Variable '%U:0' shape=%S dtype=%s, numpy=%s%U>", v->name,
                                 shape, stk_dtype_name(v->memory->dtype), lines ? "\n" : "", plain);
    }
    Py_XDECREF(shape);
    Py_XDECREF(value);
    Py_XDECREF(plain);
    return text;
}

static Py_hash_t variable_hash(PyObject *self)
{
    (void)self;
    PyErr_SetString(PyExc_TypeError,
                    "Variable is unhashable. Instead, use variable.ref() as the key.");
    return -1;
}

static PyObject *through_value(PyObject *self, PyObject *(*f)(PyObject *))
{
    PyObject *value = py_variable_read((py_variable *)self), *r = value ? f(value) : NULL;
    Py_XDECREF(value);
    return r;
}
static PyObject *variable_int(PyObject *self) { return through_value(self, PyNumber_Long); }
static PyObject *variable_float(PyObject *self) { return through_value(self, PyNumber_Float); }
static PyObject *variable_index(PyObject *self) { return through_value(self, PyNumber_Index); }
static PyObject *variable_iter(PyObject *self) { return through_value(self, PyObject_GetIter); }
static int variable_bool(PyObject *self)
{
    PyObject *value = py_variable_read((py_variable *)self);
    int yes = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return yes;
}
static Py_ssize_t variable_len(PyObject *self)
{
    PyObject *value = py_variable_read((py_variable *)self);
    Py_ssize_t n = value ? PyObject_Size(value) : -1;
    Py_XDECREF(value);
    return n;
}
static PyObject *true_method(PyObject *self, PyObject *u)
{
    (void)self, (void)u;
    Py_RETURN_TRUE;
}

/* v[key].assign(value): what v[key] gives knows where it came from. */
static PyObject *assign_slice(PyObject *place, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "name", NULL};
    PyObject *value, *unused;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &value, &unused)) return NULL;
    PyObject *rows = PyImport_ImportModule("stoker.tf._variable_rows");
    PyObject *result =
        rows ? PyObject_CallMethod(rows, "assign_slice", "OOO", PyTuple_GET_ITEM(place, 0),
                                   PyTuple_GET_ITEM(place, 1), value)
             : NULL;
    Py_XDECREF(rows);
    return result;
}

static PyObject *variable_get_item(PyObject *self, PyObject *key)
{
    static PyMethodDef method = {"assign", (PyCFunction)(void (*)(void))assign_slice,
                                 METH_VARARGS | METH_KEYWORDS, NULL};
    PyObject *result = py_get_item(self, key);
    if (!result || !py_is_tensor(result)) return result;
    PyObject *place = PyTuple_Pack(2, self, key);
    PyObject *assign = place ? PyCFunction_New(&method, place) : NULL;
    if (!assign || PyObject_SetAttrString(result, "assign", assign)) Py_CLEAR(result);
    Py_XDECREF(assign);
    Py_XDECREF(place);
    return result;
}

/* Methods for rows are written in Python: stoker/tf/_variable_rows.py. */
static PyObject *in_python(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("stoker.tf._variable_rows"), *result = NULL;
    PyObject *f = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *one = f ? PyTuple_Pack(1, self) : NULL;
    PyObject *all = one ? PySequence_Concat(one, args) : NULL;
    if (all) result = PyObject_Call(f, all, kwargs);
    Py_XDECREF(all);
    Py_XDECREF(one);
    Py_XDECREF(f);
    Py_XDECREF(module);
    return result;
}
#define ROWS(X)                                                                                    \
    X(scatter_update)                                                                              \
    X(scatter_add)                                                                                 \
    X(scatter_sub)                                                                                 \
    X(scatter_mul)                                                                                 \
    X(scatter_div)                                                                                 \
    X(scatter_max)                                                                                 \
    X(scatter_min)                                                                                 \
    X(scatter_nd_update)                                                                           \
    X(scatter_nd_add) X(scatter_nd_sub) X(batch_scatter_update) X(sparse_read) X(gather_nd)
#define ROWS_METHOD(name)                                                                          \
    static PyObject *name##_rows(PyObject *self, PyObject *args, PyObject *kwargs)                 \
    {                                                                                              \
        return in_python(self, #name, args, kwargs);                                               \
    }
ROWS(ROWS_METHOD)
#define ROWS_ENTRY(name)                                                                           \
    {#name, (PyCFunction)(void (*)(void))name##_rows, METH_VARARGS | METH_KEYWORDS, NULL},

#define FAST(f) (PyCFunction)(void (*)(void)) f, METH_FASTCALL | METH_KEYWORDS
/* What inspect.signature reads. */
#define SIGNATURE(name, value)                                                                     \
    name "($self, " value ", use_locking=False, name=None, read_value=True)\n--\n\n"
static PyMethodDef methods[] = {
    {"assign", FAST(assign_method), SIGNATURE("assign", "value")},
    {"assign_add", FAST(assign_add_method), SIGNATURE("assign_add", "delta")},
    {"assign_sub", FAST(assign_sub_method), SIGNATURE("assign_sub", "delta")},
    {"value", value_method, METH_NOARGS, NULL},
    {"read_value", value_method, METH_NOARGS, NULL},
    {"numpy", numpy_method, METH_NOARGS, NULL},
    {"__array__", (PyCFunction)(void (*)(void))array_method, METH_VARARGS | METH_KEYWORDS, NULL},
    {"get_shape", shape_method, METH_NOARGS, NULL},
    {"is_initialized", true_method, METH_NOARGS, NULL},
    ROWS(ROWS_ENTRY){NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {{"shape", get_shape, NULL, NULL, NULL},
                                {"dtype", get_dtype, NULL, NULL, NULL},
                                {"name", get_name, NULL, NULL, NULL},
                                {"_shared_name", get_short_name, NULL, NULL, NULL},
                                {"trainable", get_trainable, set_trainable, NULL, NULL},
                                {"constraint", get_constraint, NULL, NULL, NULL},
                                {"device", get_device, NULL, NULL, NULL},
                                {"handle", get_self, NULL, NULL, NULL},
                                {"ndim", get_rank, NULL, NULL, NULL},
                                {"__array_priority__", get_priority, NULL, NULL, NULL},
                                {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(py_variable, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_variable, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

int py_init_variable(PyObject *module)
{
    static PyType_Slot own[] = {{Py_tp_new, variable_new},
                                {Py_tp_init, variable_init},
                                {Py_tp_dealloc, variable_dealloc},
                                {Py_tp_repr, variable_repr},
                                {Py_tp_hash, variable_hash},
                                {Py_tp_richcompare, py_compare},
                                {Py_tp_iter, variable_iter},
                                {Py_tp_getset, getters},
                                {Py_tp_methods, methods},
                                {Py_tp_members, members},
                                {Py_mp_subscript, variable_get_item},
                                {Py_mp_length, variable_len},
                                {Py_nb_bool, variable_bool},
                                {Py_nb_int, variable_int},
                                {Py_nb_float, variable_float},
                                {Py_nb_index, variable_index}};
    enum { OWN = sizeof own / sizeof *own };
    PyType_Slot slots[OWN + 40] = {{0, NULL}};
    memcpy(slots, own, sizeof own);
    for (int n = 0; py_operator_slots[n].slot; n++) slots[OWN + n] = py_operator_slots[n];
    PyType_Spec spec = {"tensorflow.python.ops.resource_variable_ops.ResourceVariable",
                        sizeof(py_variable), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    py_variable_type = py_add_type(module, &spec, NULL, "Variable");
    return py_variable_type ? 0 : -1;
}
