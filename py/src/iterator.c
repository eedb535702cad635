/* DataIterator: one walk over a pipeline, as Python sees it.
 *
 * Elements are packed into the structure that the program wants by a template, without Python code in between. The
 * lock is given up while the stream works. A stream that is no longer wanted is released by a thread of its own: its
 * workers may be in the middle of a generator that sleeps, and nobody shall wait for that. A child of fork leaves the
 * streams of its parent alone; their threads are not there. */
#include "data.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* ---- templates ------------------------------------------------------------------------------------------------- */

typedef struct template
{
    /* 'l' leaf, 't' tuple, 'd' dict, 'c' callable of a list, 'k' constant, 'w' callable of a pipeline */
    char kind;
    int32_t leaf, n;
    struct template *child;
    PyObject *object; /* d: tuple of keys; c, w: callable; k: value */
}
template;

static void template_free(template *t)
{
    for (int32_t i = 0; i < t->n; i++) template_free(&t->child[i]);
    PyMem_Free(t->child);
    Py_XDECREF(t->object);
}

/* From Python: a number is a leaf; (kind, object, children) everything else. */
static int template_read(PyObject *o, template *t)
{
    PyObject *children = NULL;
    int kind;
    if (PyLong_Check(o)) {
        *t = (template){.kind = 'l', .leaf = (int32_t)PyLong_AsLong(o)};
        return 0;
    }
    PyObject *object;
    if (!PyArg_ParseTuple(o, "COO!", &kind, &object, &PyList_Type, &children)) return -1;
    t->kind = (char)kind;
    t->object = Py_NewRef(object);
    if (kind == 'w') {
        t->leaf = (int32_t)PyLong_AsLong(PyList_GET_ITEM(children, 0));
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_ssize_t n = PyList_GET_SIZE(children);
    t->child = PyMem_Calloc((size_t)n + 1, sizeof *t->child);
    if (!t->child) return PyErr_NoMemory(), -1;
    for (; t->n < n; t->n++)
        if (template_read(PyList_GET_ITEM(children, t->n), &t->child[t->n])) {
            t->n++;
            return -1;
        }
    return 0;
}

typedef struct element {
    stk_tensor **part; /* taken out by leaves */
    bool numpy;
} element;

static PyObject *pack(const template *t, element *e);

static PyObject *pack_leaf(const template *t, element *e)
{
    stk_tensor *part = e->part[t->leaf];
    e->part[t->leaf] = NULL;
    PyObject *tensor = py_tensor_take(part);
    if (!tensor || !e->numpy) return tensor;
    PyObject *value = py_to_numpy((py_tensor *)tensor);
    Py_DECREF(tensor);
    return value;
}

static PyObject *pack_tuple(const template *t, element *e, bool list)
{
    PyObject *made = list ? PyList_New(t->n) : PyTuple_New(t->n);
    for (int32_t i = 0; made && i < t->n; i++) {
        PyObject *o = t->child[i].kind == 'l' ? pack_leaf(&t->child[i], e) : pack(&t->child[i], e);
        if (!o)
            Py_CLEAR(made);
        else if (list)
            PyList_SET_ITEM(made, i, o);
        else
            PyTuple_SET_ITEM(made, i, o);
    }
    return made;
}

static PyObject *pack_dict(const template *t, element *e)
{
    PyObject *made = PyDict_New();
    for (int32_t i = 0; made && i < t->n; i++) {
        PyObject *o = pack(&t->child[i], e);
        if (!o || PyDict_SetItem(made, PyTuple_GET_ITEM(t->object, i), o)) Py_CLEAR(made);
        Py_XDECREF(o);
    }
    return made;
}

static PyObject *pack(const template *t, element *e)
{
    PyObject *inner, *made;
    switch (t->kind) {
    case 'l': return pack_leaf(t, e);
    case 't': return pack_tuple(t, e, false);
    case 'd': return pack_dict(t, e);
    case 'k': return Py_NewRef(t->object);
    case 'w':
        inner = py_pipeline_take(stk_dataset_retain(stk_tensor_dataset(e->part[t->leaf])), NULL);
        break;
    default: inner = pack_tuple(t, e, true);
    }
    if (!inner) return NULL;
    made = PyObject_CallOneArg(t->object, inner);
    Py_DECREF(inner);
    return made;
}

/* ---- walks --------------------------------------------------------------------------------------------------------- */

typedef struct py_iterator {
    PyObject_HEAD stk_stream *stream;
    template root;
    int32_t n;
    bool numpy, ended, busy, has_python;
    pid_t process;
    PyObject *owner, *dict, *weak;  /* the dataset */
    struct py_iterator *next, **at; /* of all that have a stream */
    stk_tensor *few[8], **parts;
    long long elements;
    stk_dataset *ds;
    uint64_t epoch;
} py_iterator;

static PyTypeObject *iterator_type;
static py_iterator *all;

bool py_data_interrupted(void *context)
{
    (void)context;
    PyGILState_STATE state;
    if (!py_data_lock(&state, NULL)) return true;
    bool yes = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return yes;
}

static void *release_apart(void *stream)
{
    stk_stream_release(stream);
    return NULL;
}

static void end_stream(py_iterator *it, bool wait)
{
    stk_stream *stream = it->stream;
    pthread_t thread;
    pthread_attr_t how;
    if (!stream || it->busy) return;
    it->stream = NULL;
    if (it->at) {
        *it->at = it->next;
        if (it->next) it->next->at = it->at;
        it->at = NULL;
    }
    if (it->process != getpid()) return;
    if (it->has_python && !wait) {
        pthread_attr_init(&how);
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        bool made = pthread_create(&thread, &how, release_apart, stream) == 0;
        pthread_attr_destroy(&how);
        if (made) return;
    }
    Py_BEGIN_ALLOW_THREADS;
    stk_stream_release(stream);
    Py_END_ALLOW_THREADS;
}

static int start_stream(py_iterator *it, uint64_t epoch)
{
    stk_error err;
    stk_status status;
    stk_stream_options o = stk_dataset_options(it->ds);
    o.epoch = it->epoch = epoch;
    o.interrupt = py_data_interrupted;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_dataset_stream(it->ds, &o, &it->stream, &err);
    Py_END_ALLOW_THREADS;
    if (status != STK_OK) {
        py_data_raise(&err, "MakeIterator");
        return -1;
    }
    it->next = all;
    it->at = &all;
    if (all) all->at = &it->next;
    all = it;
    it->ended = false;
    return 0;
}

/* DataIterator(pipeline, template, epoch, numpy, has_python, owner) */
static PyObject *iterator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *pipe, *root, *owner;
    unsigned long long epoch;
    int numpy, has_python;
    if (!PyArg_ParseTuple(args, "O!OKppO", py_pipeline_type, &pipe, &root, &epoch, &numpy,
                          &has_python, &owner))
        return NULL;
    py_iterator *it = (py_iterator *)type->tp_alloc(type, 0);
    if (!it) return NULL;
    stk_dataset *ds = ((py_pipeline *)pipe)->ds;
    it->numpy = numpy;
    it->has_python = has_python;
    it->process = getpid();
    it->owner = Py_NewRef(owner);
    it->ds = stk_dataset_retain(ds);
    it->n = stk_dataset_schema(ds)->n;
    it->parts = it->n > 8 ? PyMem_Calloc((size_t)it->n, sizeof *it->parts) : it->few;
    if (!it->parts || template_read(root, &it->root)) goto fail;
    if (start_stream(it, epoch)) goto fail;
    return (PyObject *)it;
fail:
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_DECREF(it);
    return NULL;
}

static void iterator_dealloc(PyObject *self)
{
    py_iterator *it = (py_iterator *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (it->weak) PyObject_ClearWeakRefs(self);
    if (!py_data_is_over()) {
        end_stream(it, false);
        stk_dataset_release(it->ds);
    }
    template_free(&it->root);
    if (it->parts != it->few) PyMem_Free(it->parts);
    Py_XDECREF(it->owner);
    Py_XDECREF(it->dict);
    type->tp_free(self);
    Py_DECREF(type);
}

static int iterator_traverse(PyObject *self, visitproc visit, void *arg)
{
    py_iterator *it = (py_iterator *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(it->owner);
    Py_VISIT(it->dict);
    return 0;
}
static int iterator_clear(PyObject *self)
{
    Py_CLEAR(((py_iterator *)self)->owner);
    Py_CLEAR(((py_iterator *)self)->dict);
    return 0;
}

static PyObject *iterator_next(PyObject *self)
{
    py_iterator *it = (py_iterator *)self;
    bool end = false;
    stk_error err;
    stk_status status;
    if (it->ended || !it->stream) return NULL;
    if (py_trace_current()) /* an element would become a constant of the program */
        return py_refuse("it takes elements from an iterator of a dataset");
    if (it->busy) {
        PyErr_SetString(PyExc_ValueError, "the iterator is in use by another thread");
        return NULL;
    }
    it->busy = true;
    py_booking booking = py_book_begin();
    Py_BEGIN_ALLOW_THREADS;
    status = stk_stream_next(it->stream, it->parts, &end, &err);
    Py_END_ALLOW_THREADS;
    py_book_end(booking, PY_BOOK_INPUT);
    it->busy = false;
    if (status != STK_OK) return py_data_raise(&err, "IteratorGetNext");
    if (end) {
        it->ended = true;
        end_stream(it, false);
        return NULL;
    }
    it->elements++;
    element e = {.part = it->parts, .numpy = it->numpy};
    PyObject *made = pack(&it->root, &e);
    for (int32_t i = 0; i < it->n; i++) {
        stk_tensor_release(it->parts[i]);
        it->parts[i] = NULL;
    }
    return made;
}

static PyObject *iterator_close(PyObject *self, PyObject *u)
{
    (void)u;
    end_stream((py_iterator *)self, false);
    Py_RETURN_NONE;
}

/* save() -> bytes, restore(bytes): the epoch, then where the walk is in it; nothing more when it has ended. */
static PyObject *iterator_save(PyObject *self, PyObject *u)
{
    (void)u;
    py_iterator *it = (py_iterator *)self;
    void *bytes = NULL;
    size_t size = 0;
    stk_error err;
    if (it->stream && stk_stream_save(it->stream, &bytes, &size, &err) != STK_OK)
        return py_data_raise(&err, NULL);
    PyObject *o = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size + sizeof it->epoch));
    if (o) {
        memcpy(PyBytes_AS_STRING(o), &it->epoch, sizeof it->epoch);
        if (size) memcpy(PyBytes_AS_STRING(o) + sizeof it->epoch, bytes, size);
    }
    stk_state_free(bytes);
    return o;
}
static PyObject *iterator_restore(PyObject *self, PyObject *bytes)
{
    py_iterator *it = (py_iterator *)self;
    char *data;
    Py_ssize_t size;
    stk_error err;
    uint64_t epoch;
    if (PyBytes_AsStringAndSize(bytes, &data, &size)) return NULL;
    if (size < (Py_ssize_t)sizeof epoch)
        return PyErr_Format(PyExc_ValueError, "these bytes are no position of an iterator");
    memcpy(&epoch, data, sizeof epoch);
    data += sizeof epoch;
    size -= (Py_ssize_t)sizeof epoch;
    end_stream(it, false);
    it->ended = !size;
    if (!size) Py_RETURN_NONE;
    if (start_stream(it, epoch)) return NULL;
    if (stk_stream_restore(it->stream, data, (size_t)size, &err) != STK_OK)
        return py_data_raise(&err, NULL);
    Py_RETURN_NONE;
}

/* data_end(): releases all streams. Registered with atexit, before the interpreter goes. */
static PyObject *data_end(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    while (all) {
        py_iterator *it = all;
        if (it->busy) break;
        end_stream(it, !it->has_python);
    }
    Py_RETURN_NONE;
}

int py_init_iterator(PyObject *module)
{
    static PyMethodDef functions[] = {{"data_end", data_end, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    static PyMethodDef methods[] = {{"close", iterator_close, METH_NOARGS, NULL},
                                    {"_save", iterator_save, METH_NOARGS, NULL},
                                    {"_restore", iterator_restore, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"_owner", T_OBJECT, offsetof(py_iterator, owner), READONLY, NULL},
        {"_elements", T_LONGLONG, offsetof(py_iterator, elements), READONLY, NULL},
        {"__dictoffset__", T_PYSSIZET, offsetof(py_iterator, dict), READONLY, NULL},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(py_iterator, weak), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, iterator_new},
                                  {Py_tp_dealloc, iterator_dealloc},
                                  {Py_tp_traverse, iterator_traverse},
                                  {Py_tp_clear, iterator_clear},
                                  {Py_tp_iter, PyObject_SelfIter},
                                  {Py_tp_iternext, iterator_next},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.DataIterator", sizeof(py_iterator), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                               slots};
    iterator_type = py_add_type(module, &spec, NULL, "DataIterator");
    return iterator_type && !PyModule_AddFunctions(module, functions) ? 0 : -1;
}
