/* FastFunction: the way of a tf.function's call that has been taken before. Arguments become a short text of types, shapes and
 * numbers; if there is a program for it, it runs at once. Everything else is Python's business (_call). */
#include "trace.h"

#include <string.h>

enum { KEY_BYTES = 2048, MOST_TENSORS = 64, MOST_DEPTH = 8 };

typedef struct fast_function {
    PyObject_HEAD PyObject *cache; /* key -> (program, packer or None) */
    PyObject *dict, *weak;
} fast_function;

static PyTypeObject *fast_type;
static bool all_eager;

typedef struct key {
    char text[KEY_BYTES];
    size_t size;
    PyObject *tensor[MOST_TENSORS]; /* new references */
    Py_ssize_t n;
} key;

/* ---- arguments as a key; false: this call is not for us --------------------------------------------------------- */

static bool put(key *k, const void *bytes, size_t size)
{
    if (k->size + size > KEY_BYTES) return false;
    memcpy(k->text + k->size, bytes, size);
    k->size += size;
    return true;
}

static bool put_tensor(key *k, PyObject *o) /* takes over the reference */
{
    const stk_tensor *t = ((py_tensor *)o)->t;
    if (!t || k->n == MOST_TENSORS) {
        Py_DECREF(o);
        return false;
    }
    k->tensor[k->n++] = o;
    unsigned char head[3] = {'t', (unsigned char)t->dtype, (unsigned char)t->rank};
    return put(k, head, sizeof head) && put(k, t->shape, (size_t)t->rank * sizeof *t->shape);
}

/* Numbers that are equal are one key: TensorFlow uses the trace of f(1) for f(1.0) and f(True). */
static bool put_number(key *k, PyObject *o)
{
    double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    if (PyLong_Check(o) && (v > 9e15 || v < -9e15)) return false;
    if (v == 0) v = 0; /* -0.0 */
    return put(k, "n", 1) && put(k, &v, sizeof v);
}

static bool put_text(key *k, PyObject *o)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) {
        PyErr_Clear();
        return false;
    }
    return put(k, "s", 1) && put(k, &size, sizeof size) && put(k, text, (size_t)size);
}

static bool put_value(key *k, PyObject *o, int depth);

static bool put_list(key *k, PyObject *o, int depth)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (depth == MOST_DEPTH || !put(k, PyList_CheckExact(o) ? "[" : "(", 1) ||
        !put(k, &n, sizeof n))
        return false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!put_value(k, PySequence_Fast_GET_ITEM(o, i), depth + 1)) return false;
    return true;
}

static bool put_array(key *k, PyObject *o)
{
    PyObject *t = py_to_tensor(o, -1, -1);
    if (!t) PyErr_Clear();
    return t && py_is_tensor(t) && put_tensor(k, t);
}

static bool put_value(key *k, PyObject *o, int depth)
{
    if (Py_TYPE(o) == py_eager_type) return put_tensor(k, Py_NewRef(o));
    if (o == Py_None) return put(k, "N", 1);
    if (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o)) return put_number(k, o);
    if (PyUnicode_CheckExact(o)) return put_text(k, o);
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) return put_list(k, o, depth);
    if (!strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray")) return put_array(k, o);
    return false;
}

static void drop_key(key *k)
{
    for (Py_ssize_t i = 0; i < k->n; i++) Py_DECREF(k->tensor[i]);
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

static PyObject *slow_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *call = PyObject_GetAttrString(self, "_call");
    PyObject *r = call ? PyObject_Call(call, args, kwargs) : NULL;
    Py_XDECREF(call);
    return r;
}

static PyObject *run_entry(PyObject *entry, key *k)
{
    PyObject *packer = PyTuple_GET_ITEM(entry, 1);
    PyObject *made = PyObject_Vectorcall(PyTuple_GET_ITEM(entry, 0), k->tensor, (size_t)k->n, NULL);
    PyObject *r = !made               ? NULL
                  : packer == Py_None ? Py_NewRef(PyTuple_GET_ITEM(made, 0))
                                      : PyObject_CallOneArg(packer, made);
    Py_XDECREF(made);
    return r;
}

/* Programs are made for a device. */
static bool put_device(key *k)
{
    stk_device *d = py_devices_on ? py_device_now() : NULL;
    bool scoped = py_is_scoped();
    return !py_devices_on || (d && put(k, &d, sizeof d) && put(k, &scoped, sizeof scoped));
}

static PyObject *fast_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    fast_function *f = (fast_function *)self;
    bool plain = !all_eager && f->cache && (!kwargs || !PyDict_GET_SIZE(kwargs)) &&
                 !py_trace_current() && !py_tapes_active();
    if (!plain) return slow_call(self, args, kwargs);
    key k;
    k.size = 0, k.n = 0;
    PyObject *entry = NULL, *r = NULL;
    if (put_device(&k) && put_list(&k, args, 0)) {
        PyObject *text = PyBytes_FromStringAndSize(k.text, (Py_ssize_t)k.size);
        entry = text ? Py_XNewRef(PyDict_GetItemWithError(f->cache, text)) : NULL;
        Py_XDECREF(text);
    }
    if (entry) r = run_entry(entry, &k);
    drop_key(&k);
    if (!entry) return PyErr_Occurred() ? NULL : slow_call(self, args, kwargs);
    Py_DECREF(entry);
    return r;
}

/* _remember(args, tensors, program, packer): calls with such arguments run this from now on. */
static PyObject *remember(PyObject *self, PyObject *given)
{
    fast_function *f = (fast_function *)self;
    PyObject *args, *tensors, *program, *packer;
    key k;
    k.size = 0, k.n = 0;
    if (!PyArg_ParseTuple(given, "O!O!OO", &PyTuple_Type, &args, &PyList_Type, &tensors, &program,
                          &packer))
        return NULL;
    bool same = put_device(&k) && put_list(&k, args, 0) && k.n == PyList_GET_SIZE(tensors);
    for (Py_ssize_t i = 0; same && i < k.n; i++) { /* an array became a tensor twice */
        py_tensor *a = (py_tensor *)k.tensor[i], *b = (py_tensor *)PyList_GET_ITEM(tensors, i);
        same = (PyObject *)a == (PyObject *)b ||
               (b->t && a->t->dtype == b->t->dtype && a->t->rank == b->t->rank);
    }
    drop_key(&k);
    if (!same) Py_RETURN_FALSE;
    if (!f->cache) f->cache = PyDict_New();
    PyObject *text = PyBytes_FromStringAndSize(k.text, (Py_ssize_t)k.size);
    PyObject *entry = PyTuple_Pack(2, program, packer);
    int status = f->cache && text && entry ? PyDict_SetItem(f->cache, text, entry) : -1;
    Py_XDECREF(text);
    Py_XDECREF(entry);
    if (status) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *forget(PyObject *self, PyObject *u)
{
    (void)u;
    Py_CLEAR(((fast_function *)self)->cache);
    Py_RETURN_NONE;
}

PyObject *py_functions_eager(PyObject *module, PyObject *yes)
{
    (void)module;
    int on = PyObject_IsTrue(yes);
    if (on < 0) return NULL;
    all_eager = on;
    Py_RETURN_NONE;
}

static int fast_traverse(PyObject *self, visitproc visit, void *arg)
{
    fast_function *f = (fast_function *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->cache);
    Py_VISIT(f->dict);
    return 0;
}
static int fast_clear(PyObject *self)
{
    fast_function *f = (fast_function *)self;
    Py_CLEAR(f->cache);
    Py_CLEAR(f->dict);
    return 0;
}
static void fast_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((fast_function *)self)->weak) PyObject_ClearWeakRefs(self);
    fast_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

int py_init_function(PyObject *module)
{
    static PyMethodDef methods[] = {{"_remember", remember, METH_VARARGS, NULL},
                                    {"_forget", forget, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"__dictoffset__", T_PYSSIZET, offsetof(fast_function, dict), READONLY, NULL},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(fast_function, weak), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyGetSetDef getters[] = {
        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},  {Py_tp_call, fast_call},   {Py_tp_dealloc, fast_dealloc},
        {Py_tp_traverse, fast_traverse}, {Py_tp_clear, fast_clear}, {Py_tp_methods, methods},
        {Py_tp_members, members},        {Py_tp_getset, getters},   {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.FastFunction", sizeof(fast_function), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                               slots};
    fast_type = py_add_type(module, &spec, NULL, "FastFunction");
    return fast_type ? 0 : -1;
}
