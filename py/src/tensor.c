/* tf.Tensor: one C object for values that exist (EagerTensor) and values that are being recorded (SymbolicTensor). */
#include "front.h"

#include <string.h>

PyTypeObject *py_tensor_type, *py_eager_type, *py_symbolic_type;

/* ---- making and ending ---------------------------------------------------------------------------------- */

/* Eager tensors come and go in every line of a program: the last few are kept. */
enum { SPARE = 128 };
static py_tensor *spare[SPARE];
static int nspare;

static py_tensor *take_object(PyTypeObject *type)
{
    py_tensor *o;
    if (type == py_eager_type && nspare > 0) {
        o = spare[--nspare];
        PyObject_Init((PyObject *)o, type);
    } else {
        o = PyObject_New(py_tensor, type);
        if (!o) return NULL;
    }
    o->t = NULL;
    o->trace = NULL;
    o->v = 0;
    o->borrowed = false;
    o->shape = o->dict = o->weak = NULL;
    return o;
}

PyObject *py_tensor_take(stk_tensor *t)
{
    py_tensor *o = take_object(py_eager_type);
    if (!o) {
        stk_tensor_release(t);
        return NULL;
    }
    o->t = t;
    return (PyObject *)o;
}

PyObject *py_tensor_symbolic(py_trace *trace, stk_val v)
{
    py_tensor *o = take_object(py_symbolic_type);
    if (!o) return NULL;
    o->trace = (py_trace *)Py_NewRef((PyObject *)trace);
    o->v = v;
    return (PyObject *)o;
}

static void tensor_dealloc(PyObject *self)
{
    py_tensor *o = (py_tensor *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (o->weak) PyObject_ClearWeakRefs(self);
    stk_tensor_release(o->t);
    Py_XDECREF((PyObject *)o->trace);
    Py_XDECREF(o->shape);
    Py_XDECREF(o->dict);
    if (type == py_eager_type && nspare < SPARE)
        spare[nspare++] = o;
    else
        type->tp_free(self);
    Py_DECREF(type);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

stk_dtype py_tensor_dtype(const py_tensor *o)
{
    return o->t ? o->t->dtype : stk_g_dtype(py_trace_graph(o->trace), o->v);
}
int32_t py_tensor_rank(const py_tensor *o)
{
    return o->t ? o->t->rank : stk_g_rank(py_trace_graph(o->trace), o->v);
}
int64_t py_tensor_dim(const py_tensor *o, int32_t axis)
{
    return o->t ? o->t->shape[axis] : stk_g_dim(py_trace_graph(o->trace), o->v, axis);
}

PyObject *py_tensor_shape(py_tensor *o)
{
    if (!o->shape) {
        int64_t dim[STK_MAX_RANK];
        int32_t rank = py_tensor_rank(o);
        for (int32_t i = 0; i < rank; i++) dim[i] = py_tensor_dim(o, i);
        o->shape = py_shape_new(rank, dim);
    }
    return Py_XNewRef(o->shape);
}

static PyObject *get_shape(PyObject *self, void *c)
{
    (void)c;
    return py_tensor_shape((py_tensor *)self);
}
static PyObject *get_dtype(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef(py_dtype_object(py_tensor_dtype((py_tensor *)self)));
}
static PyObject *get_ndim(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromLong(py_tensor_rank((py_tensor *)self));
}
static PyObject *get_device(PyObject *self, void *c)
{
    (void)c;
    const stk_tensor *t = ((py_tensor *)self)->t;
    return t ? py_device_of(t) : PyUnicode_FromString("");
}
static PyObject *get_id(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromVoidPtr(((py_tensor *)self)->t ? (void *)((py_tensor *)self)->t : self);
}
static PyObject *symbolic_name(PyObject *self, void *c)
{
    (void)c;
    return PyUnicode_FromFormat("Tensor_%d:0", (int)((py_tensor *)self)->v);
}
static PyObject *get_graph(PyObject *self, void *c)
{
    (void)c;
    return Py_NewRef((PyObject *)((py_tensor *)self)->trace);
}
static PyObject *get_priority(PyObject *self, void *c)
{
    (void)self, (void)c;
    return PyLong_FromLong(100);
}

static PyObject *method_shape(PyObject *self, PyObject *u)
{
    (void)u;
    return py_tensor_shape((py_tensor *)self);
}

/* Shapes are always known here, so setting one is a check. */
static PyObject *set_shape(PyObject *self, PyObject *shape)
{
    PyObject *mine = py_tensor_shape((py_tensor *)self);
    PyObject *merged = mine ? PyObject_CallMethod(mine, "merge_with", "(O)", shape) : NULL;
    Py_XDECREF(mine);
    if (!merged) return NULL;
    Py_DECREF(merged);
    Py_RETURN_NONE;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static int own_memory(py_tensor *o) /* before memory is shown to somebody who keeps it */
{
    stk_error err;
    if (!o->borrowed) return 0;
    if (stk_tensor_detach(o->t, &err) != STK_OK) {
        py_raise(&err, NULL);
        return -1;
    }
    o->borrowed = false;
    return 0;
}

static PyObject *numpy_method(PyObject *self, PyObject *u)
{
    (void)u;
    return py_to_numpy((py_tensor *)self);
}

static PyObject *array_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &dtype, &copy)) return NULL;
    if (!((py_tensor *)self)->t) {
        PyErr_Format(PyExc_NotImplementedError,
                     "Cannot convert a symbolic tf.Tensor (%R) to a numpy array. This error may "
                     "indicate that you're trying to pass a Tensor to a NumPy call, which is not "
                     "supported.",
                     self);
        return NULL;
    }
    PyObject *value = py_to_numpy((py_tensor *)self), *np = py_numpy();
    PyObject *array = value && np ? PyObject_CallMethod(np, "asarray", "OO", value, dtype) : NULL;
    Py_XDECREF(value);
    return array;
}

static PyObject *tolist_method(PyObject *self, PyObject *u)
{
    (void)u;
    PyObject *array = py_to_numpy((py_tensor *)self);
    PyObject *list = array ? PyObject_CallMethod(array, "tolist", NULL) : NULL;
    Py_XDECREF(array);
    return list;
}

static PyObject *not_while_tracing(const char *what)
{
    PyObject *module = PyImport_ImportModule("stoker.tf.errors");
    PyObject *class =
        module ? PyObject_GetAttrString(module, "OperatorNotAllowedInGraphError") : NULL;
    if (class)
        PyErr_Format(class,
                     "%s a symbolic `tf.Tensor` as a Python value is not allowed: it is only "
                     "known when the function runs. AutoGraph converts `if`, `while` and `for` of "
                     "functions whose source it can read; tf.cond and tf.while_loop work "
                     "everywhere.",
                     what);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return NULL;
}

static PyObject *only_item(py_tensor *o, const char *what)
{
    if (!o->t) return not_while_tracing(what);
    if (stk_tensor_count(o->t) != 1) {
        PyErr_Format(PyExc_TypeError, "Only length-1 arrays can be converted to Python scalars");
        return NULL;
    }
    return py_item(o->t, 0);
}

static int tensor_bool(PyObject *self)
{
    py_tensor *o = (py_tensor *)self;
    if (!o->t) {
        not_while_tracing("Using");
        return -1;
    }
    if (stk_tensor_count(o->t) != 1) {
        PyErr_SetString(PyExc_ValueError, "The truth value of an array with more than one element "
                                          "is ambiguous. Use a.any() or a.all()");
        return -1;
    }
    PyObject *v = py_item(o->t, 0);
    int yes = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    return yes;
}

static PyObject *converted(PyObject *self, PyObject *(*convert)(PyObject *))
{
    PyObject *v = only_item((py_tensor *)self, "Converting"), *r = v ? convert(v) : NULL;
    Py_XDECREF(v);
    return r;
}
static PyObject *tensor_int(PyObject *self) { return converted(self, PyNumber_Long); }
static PyObject *tensor_float(PyObject *self) { return converted(self, PyNumber_Float); }
static PyObject *tensor_index(PyObject *self)
{
    char kind = py_dtype_kind(py_tensor_dtype((py_tensor *)self));
    if (((py_tensor *)self)->t && kind != 'I' && kind != 'U') {
        PyErr_SetString(PyExc_TypeError,
                        "only integer scalar tensors can be converted to a scalar index");
        return NULL;
    }
    return converted(self, PyNumber_Index);
}

static Py_ssize_t tensor_len(PyObject *self)
{
    if (py_tensor_rank((py_tensor *)self) > 0)
        return (Py_ssize_t)py_tensor_dim((py_tensor *)self, 0);
    PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
    return -1;
}

static PyObject *tensor_item(PyObject *self, Py_ssize_t i)
{
    if (i < 0 || i >= tensor_len(self)) {
        if (!PyErr_Occurred()) PyErr_SetNone(PyExc_IndexError);
        return NULL;
    }
    PyObject *index = PyLong_FromSsize_t(i), *r = index ? py_get_item(self, index) : NULL;
    Py_XDECREF(index);
    return r;
}

static PyObject *tensor_iter(PyObject *self)
{
    if (py_tensor_rank((py_tensor *)self) == 0) {
        PyErr_SetString(PyExc_TypeError, "Cannot iterate over a scalar tensor.");
        return NULL;
    }
    return PySeqIter_New(self);
}

static Py_hash_t tensor_hash(PyObject *self)
{
    (void)self;
    PyErr_SetString(PyExc_TypeError, "Tensor is unhashable. Instead, use tensor.ref() as the key.");
    return -1;
}

static int tensor_set_item(PyObject *self, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    PyErr_Format(PyExc_TypeError, "'%s' object does not support item assignment",
                 strrchr(Py_TYPE(self)->tp_name, '.') ? strrchr(Py_TYPE(self)->tp_name, '.') + 1
                                                      : Py_TYPE(self)->tp_name);
    return -1;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static PyObject *value_text(py_tensor *o, bool repr)
{
    PyObject *value = py_to_numpy(o), *text = NULL;
    if (value && o->t->rank == 0 && !PyBytes_Check(value)) {
        PyObject *plain = PyObject_CallMethod(value, "item", NULL);
        if (plain && o->t->dtype != STK_F64 && py_dtype_kind(o->t->dtype) == 'F' && value)
            text = PyObject_Str(value); /* 0.1, not the digits of a float32 seen as a double */
        else if (plain)
            text = PyObject_Repr(plain);
        Py_XDECREF(plain);
    } else if (value) {
        text = repr ? PyObject_Repr(value) : PyObject_Str(value);
    }
    Py_XDECREF(value);
    if (text && PyUnicode_FindChar(text, '\n', 0, PyUnicode_GET_LENGTH(text), 1) >= 0) {
        PyObject *below = PyUnicode_FromFormat("\n%U", text);
        Py_DECREF(text);
        return below;
    }
    return text;
}

static PyObject *tensor_repr(PyObject *self)
{
    py_tensor *o = (py_tensor *)self;
    PyObject *shape = py_tensor_shape(o);
    if (!shape) return NULL;
    const char *dtype = stk_dtype_name(py_tensor_dtype(o));
    PyObject *text = o->t ? value_text(o, true) : NULL, *r = NULL;
    if (text)
        r = PyUnicode_FromFormat("<tf.Tensor: shape=%S, dtype=%s, numpy=%U>", shape, dtype, text);
    else if (!o->t)
        r = PyUnicode_FromFormat("<tf.Tensor 'Tensor_%d:0' shape=%S dtype=%s>", (int)o->v, shape,
                                 dtype);
    Py_XDECREF(text);
    Py_DECREF(shape);
    return r;
}

static PyObject *tensor_str(PyObject *self)
{
    py_tensor *o = (py_tensor *)self;
    PyObject *shape = py_tensor_shape(o);
    if (!shape) return NULL;
    const char *dtype = stk_dtype_name(py_tensor_dtype(o));
    PyObject *text = o->t ? value_text(o, false) : NULL, *r = NULL;
    if (text)
        r = PyUnicode_FromFormat("tf.Tensor(%U, shape=%S, dtype=%s)", text, shape, dtype);
    else if (!o->t)
        r = PyUnicode_FromFormat("Tensor(\"Tensor_%d:0\", shape=%S, dtype=%s)", (int)o->v, shape,
                                 dtype);
    Py_XDECREF(text);
    Py_DECREF(shape);
    return r;
}

static PyObject *format_method(PyObject *self, PyObject *spec)
{
    if (!((py_tensor *)self)->t) return PyObject_Str(self);
    if (!PyUnicode_GetLength(spec)) return PyObject_Str(self);
    PyObject *value = py_to_numpy((py_tensor *)self);
    PyObject *r = value ? PyObject_Format(value, spec) : NULL;
    Py_XDECREF(value);
    return r;
}

/* ---- copies, pickles, buffers ----------------------------------------------------------------------------------------- */

static PyObject *same_method(PyObject *self, PyObject *u)
{
    (void)u;
    return Py_NewRef(self);
}

/* x.cpu(), x.gpu(n): a copy there, or x itself when it is there. */
static PyObject *moved_to(PyObject *self, const char *name)
{
    PyObject *module = PyImport_ImportModule("stoker._stoker");
    PyObject *r = module ? PyObject_CallMethod(module, "on_device", "Os", self, name) : NULL;
    Py_XDECREF(module);
    return r;
}
static PyObject *cpu_method(PyObject *self, PyObject *u)
{
    (void)u;
    return py_devices_on ? moved_to(self, "cpu:0") : Py_NewRef(self);
}
static PyObject *gpu_method(PyObject *self, PyObject *args)
{
    int index = 0;
    char name[32];
    if (!PyArg_ParseTuple(args, "|i", &index)) return NULL;
    PyOS_snprintf(name, sizeof name, "gpu:%d", index);
    return moved_to(self, name);
}

static PyObject *reduce_method(PyObject *self, PyObject *u)
{
    (void)u;
    PyObject *module = PyImport_ImportModule("stoker._stoker");
    PyObject *make = module ? PyObject_GetAttrString(module, "convert_to_tensor") : NULL;
    PyObject *value = make ? py_to_numpy((py_tensor *)self) : NULL;
    PyObject *r = value ? Py_BuildValue("(O(OO))", make, value,
                                        py_dtype_object(((py_tensor *)self)->t->dtype))
                        : NULL;
    Py_XDECREF(value);
    Py_XDECREF(make);
    Py_XDECREF(module);
    return r;
}

static const char *const formats[] = {
    [STK_F32] = "f", [STK_F64] = "d",  [STK_F16] = "e",    [STK_I8] = "b",  [STK_U8] = "B",
    [STK_I16] = "h", [STK_U16] = "H",  [STK_I32] = "i",    [STK_U32] = "I", [STK_I64] = "q",
    [STK_U64] = "Q", [STK_BOOL] = "?", [STK_STRING] = NULL};

/* What a view of the memory needs as long as it lives; t is the tensor, or what was brought down of it. */
typedef struct exported {
    stk_tensor *t;
    Py_ssize_t shape[STK_MAX_RANK], stride[STK_MAX_RANK];
} exported;

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    py_tensor *o = (py_tensor *)self;
    if (!o->t || !formats[o->t->dtype] || (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "only eager tensors of numbers have a buffer, and it is "
                                           "read-only");
        view->obj = NULL;
        return -1;
    }
    if (own_memory(o)) return -1;
    exported *x = PyMem_Malloc(sizeof *x);
    if (!x) return PyErr_NoMemory(), -1;
    stk_tensor *t = x->t = py_on_host(o->t);
    if (!t) {
        PyMem_Free(x);
        view->obj = NULL;
        return -1;
    }
    Py_ssize_t size = (Py_ssize_t)stk_dtype_size(t->dtype);
    for (int32_t i = 0; i < t->rank; i++) {
        x->shape[i] = (Py_ssize_t)t->shape[i];
        x->stride[i] = (Py_ssize_t)t->stride[i] * size;
    }
    *view = (Py_buffer){.buf = t->data,
                        .obj = Py_NewRef(self),
                        .len = (Py_ssize_t)stk_tensor_bytes(t),
                        .itemsize = size,
                        .readonly = 1,
                        .ndim = t->rank,
                        .format = (char *)(uintptr_t)formats[t->dtype],
                        .shape = x->shape,
                        .strides = x->stride,
                        .internal = x};
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    stk_tensor_release(((exported *)view->internal)->t);
    PyMem_Free(view->internal);
}

static void end_capsule(PyObject *capsule)
{
    void *managed = PyCapsule_GetPointer(capsule, "dltensor");
    stk_tensor *t = NULL;
    if (!managed) { /* somebody took it */
        PyErr_Clear();
        return;
    }
    stk_error err;
    if (stk_dlpack_import(managed, &t, &err) == STK_OK) stk_tensor_release(t);
}

static PyObject *dlpack_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)args,
        (void)
            kwargs; /* stream, max_version, dl_device, copy: always of the host, read by all versions */
    void *managed = NULL;
    stk_error err;
    if (own_memory((py_tensor *)self)) return NULL;
    stk_tensor *here = py_on_host(((py_tensor *)self)->t);
    if (!here) return NULL;
    stk_status status = stk_dlpack_export(here, &managed, &err);
    stk_tensor_release(here);
    if (status != STK_OK) return py_raise(&err, NULL);
    return PyCapsule_New(managed, "dltensor", end_capsule);
}

static PyObject *dlpack_device(PyObject *self, PyObject *u)
{
    (void)self, (void)u;
    return Py_BuildValue("(ii)", 1, 0);
}

/* ---- the types ---------------------------------------------------------------------------------------------------------- */

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, NULL, NULL}, {"dtype", get_dtype, NULL, NULL, NULL},
    {"ndim", get_ndim, NULL, NULL, NULL},   {"device", get_device, NULL, NULL, NULL},
    {"_id", get_id, NULL, NULL, NULL},      {"__array_priority__", get_priority, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef methods[] = {
    {"get_shape", method_shape, METH_NOARGS, NULL},
    {"set_shape", set_shape, METH_O, NULL},
    {"__array__", (PyCFunction)(void (*)(void))array_method, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__copy__", same_method, METH_NOARGS, NULL},
    {"__deepcopy__", same_method, METH_O, NULL},
    {"__format__", format_method, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static PyMethodDef eager_methods[] = {
    {"numpy", numpy_method, METH_NOARGS, NULL},
    {"_numpy", numpy_method, METH_NOARGS, NULL},
    {"tolist", tolist_method, METH_NOARGS, NULL},
    {"cpu", cpu_method, METH_NOARGS, NULL},
    {"gpu", gpu_method, METH_VARARGS, NULL},
    {"__reduce__", reduce_method, METH_NOARGS, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack_method, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef symbolic_getters[] = {{"name", symbolic_name, NULL, NULL, NULL},
                                         {"graph", get_graph, NULL, NULL, NULL},
                                         {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(py_tensor, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_tensor, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

int py_init_tensor(PyObject *module)
{
    static PyType_Slot own[] = {
        {Py_tp_dealloc, tensor_dealloc}, {Py_tp_repr, tensor_repr},
        {Py_tp_str, tensor_str},         {Py_tp_hash, tensor_hash},
        {Py_tp_iter, tensor_iter},       {Py_tp_richcompare, py_compare},
        {Py_tp_getset, getters},         {Py_tp_methods, methods},
        {Py_tp_members, members},        {Py_sq_length, tensor_len},
        {Py_sq_item, tensor_item},       {Py_mp_length, tensor_len},
        {Py_mp_subscript, py_get_item},  {Py_mp_ass_subscript, tensor_set_item},
        {Py_nb_bool, tensor_bool},       {Py_nb_int, tensor_int},
        {Py_nb_float, tensor_float},     {Py_nb_index, tensor_index},
        {Py_bf_getbuffer, get_buffer},   {Py_bf_releasebuffer, release_buffer}};
    enum { OWN = sizeof own / sizeof *own };
    PyType_Slot slots[OWN + 40] = {{0, NULL}};
    int n = 0;
    memcpy(slots, own, sizeof own);
    for (; py_operator_slots[n].slot; n++) slots[OWN + n] = py_operator_slots[n];
    PyType_Spec base = {
        "tensorflow.python.framework.tensor.Tensor", sizeof(py_tensor), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    PyType_Slot eager_slots[] = {{Py_tp_methods, eager_methods}, {0, NULL}};
    PyType_Spec eager = {"tensorflow.python.framework.ops.EagerTensor", sizeof(py_tensor), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, eager_slots};
    PyType_Slot symbolic_slots[] = {{Py_tp_getset, symbolic_getters}, {0, NULL}};
    PyType_Spec symbolic = {"tensorflow.python.framework.ops.SymbolicTensor", sizeof(py_tensor), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, symbolic_slots};
    py_tensor_type = py_add_type(module, &base, NULL, "Tensor");
    if (!py_tensor_type) return -1;
    py_eager_type = py_add_type(module, &eager, (PyObject *)py_tensor_type, "EagerTensor");
    py_symbolic_type = py_add_type(module, &symbolic, (PyObject *)py_tensor_type, "SymbolicTensor");
    return py_eager_type && py_symbolic_type ? 0 : -1;
}
