/* Epochs: batches of arrays or of a pipeline, and programs that run over them without Python in between.
 *
 *     e = Epochs([x, y], 32, True, seed)        e.begin(epoch)
 *     parts = e.peek()                          # the batch at hand, to make a program for
 *     end, done, last = e.run(program, [0, 1], [], 0, 0.1, None)
 */
#include "data.h"
#include "trace.h"

#include <string.h>

typedef struct py_epochs {
    PyObject_HEAD stk_dataset *ds;
    stk_over over;
    PyObject *held; /* what the current run uses */
    bool running;
} py_epochs;

static PyTypeObject *epochs_type;

/* ---- where batches come from ----------------------------------------------------------------------------------- */

/* A row number for Python's sake never leaves the engine: slices, a permutation, batches. */
static stk_dataset *from_arrays(PyObject *list, long long batch, int shuffle,
                                unsigned long long seed, stk_error *err)
{
    Py_ssize_t n = PyList_GET_SIZE(list), have = 0;
    stk_tensor **t = PyMem_Calloc((size_t)n + 1, sizeof *t);
    stk_dataset *ds = NULL;
    if (!t) return (stk_dataset *)(void *)PyErr_NoMemory();
    for (; have < n; have++) {
        PyObject *o = PyList_GET_ITEM(list, have);
        t[have] = py_wrap_buffer(o);
        if (!t[have]) t[have] = py_to_eager(o, -1, "an array of batches");
        if (!t[have]) break;
    }
    if (have == n) {
        ds = stk_data_slices((int32_t)n, t, NULL, NULL, err);
        if (shuffle) ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, seed, true, err);
        ds = stk_data_batch(ds, batch, false, err);
        if (!ds) py_raise(err, NULL);
    }
    for (Py_ssize_t i = 0; i < have; i++) stk_tensor_release(t[i]);
    PyMem_Free(t);
    return ds;
}

/* Epochs(arrays, batch, shuffle, seed) or Epochs(pipeline). */
static PyObject *epochs_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *source;
    long long batch = 1;
    int shuffle = 0;
    unsigned long long seed = 0;
    stk_error err;
    if (!PyArg_ParseTuple(args, "O|LpK", &source, &batch, &shuffle, &seed)) return NULL;
    py_epochs *e = (py_epochs *)type->tp_alloc(type, 0);
    if (!e) return NULL;
    if (Py_TYPE(source) == py_pipeline_type) {
        e->ds = stk_dataset_retain(((py_pipeline *)source)->ds);
    } else if (PyList_Check(source)) {
        e->ds = from_arrays(source, batch, shuffle, seed, &err);
    } else {
        PyErr_SetString(PyExc_TypeError, "Epochs: needs a list of arrays or a dataset");
    }
    if (e->ds) return (PyObject *)e;
    Py_DECREF(e);
    return NULL;
}

static void end_stream(py_epochs *e)
{
    stk_over_clear(&e->over);
    if (e->over.stream) {
        stk_stream *stream = e->over.stream;
        e->over.stream = NULL;
        Py_BEGIN_ALLOW_THREADS stk_stream_release(stream);
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(e->held);
}

static void epochs_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_epochs *e = (py_epochs *)self;
    end_stream(e);
    stk_dataset_release(e->ds);
    type->tp_free(self);
    Py_DECREF(type);
}

static int refuse_running(const py_epochs *e)
{
    if (e->running) PyErr_SetString(PyExc_RuntimeError, "another thread runs over these batches");
    return e->running ? -1 : 0;
}

/* begin(epoch): the first batch of this epoch is the next one. */
static PyObject *epochs_begin(PyObject *self, PyObject *number)
{
    py_epochs *e = (py_epochs *)self;
    stk_stream_options how = stk_dataset_options(e->ds);
    long long epoch = PyLong_AsLongLong(number);
    stk_error err;
    stk_status status;
    stk_stream *stream = NULL;
    if ((epoch == -1 && PyErr_Occurred()) || refuse_running(e)) return NULL;
    end_stream(e);
    how.epoch = (uint64_t)epoch;
    how.interrupt = py_interrupted;
    Py_BEGIN_ALLOW_THREADS status = stk_dataset_stream(e->ds, &how, &stream, &err);
    Py_END_ALLOW_THREADS if (status != STK_OK) return py_raise(&err, NULL);
    e->over = (stk_over){.stream = stream};
    Py_RETURN_NONE;
}

static int need_stream(py_epochs *e)
{
    if (e->over.stream) return refuse_running(e);
    PyErr_SetString(PyExc_RuntimeError, "Epochs: begin an epoch first");
    return -1;
}

static PyObject *tensors_of(stk_tensor *const *t, int32_t n)
{
    PyObject *list = PyList_New(n);
    for (int32_t i = 0; list && i < n; i++) {
        PyObject *o = py_tensor_take(stk_tensor_retain(t[i]));
        if (!o) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, o);
    }
    return list;
}

/* peek() -> the tensors of the batch at hand, or None at the end. */
static PyObject *epochs_peek(PyObject *self, PyObject *u)
{
    (void)u;
    py_epochs *e = (py_epochs *)self;
    bool end = false;
    stk_error err;
    stk_status status;
    if (need_stream(e)) return NULL;
    e->running = true;
    py_booking booking = py_book_begin();
    Py_BEGIN_ALLOW_THREADS status = stk_over_peek(&e->over, &end, &err);
    Py_END_ALLOW_THREADS e->running = false;
    py_book_end(booking, PY_BOOK_INPUT);
    if (status != STK_OK) return py_raise_waiting() ? NULL : py_data_raise(&err, NULL);
    if (end) Py_RETURN_NONE;
    return tensors_of(e->over.part, e->over.nparts);
}

/* take(): as peek, and the next call gives the batch after it. */
static PyObject *epochs_take(PyObject *self, PyObject *u)
{
    PyObject *parts = epochs_peek(self, u);
    stk_over *o = &((py_epochs *)self)->over;
    if (parts && parts != Py_None) {
        stk_over_skip(o);
    }
    return parts;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------- */

typedef struct run_arguments {
    int32_t *leaf;
    stk_tensor **given, **results;
} run_arguments;

static int handles(PyObject *list, int32_t n, stk_tensor **out)
{
    for (int32_t i = 0; i < n && i < PyList_GET_SIZE(list); i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        if (o == Py_None) continue;
        if (!py_is_tensor(o) || !((py_tensor *)o)->t) {
            PyErr_SetString(PyExc_TypeError, "Epochs.run: needs eager tensors");
            return -1;
        }
        out[i] = ((py_tensor *)o)->t;
    }
    return 0;
}

static int fill_arguments(run_arguments *a, PyObject *leaf, PyObject *given, PyObject *results,
                          int32_t nin, int32_t nout)
{
    a->leaf = PyMem_Calloc((size_t)nin + 1, sizeof *a->leaf);
    a->given = PyMem_Calloc((size_t)nin + 1, sizeof *a->given);
    a->results = PyMem_Calloc((size_t)nout + 1, sizeof *a->results);
    if (!a->leaf || !a->given || !a->results) return PyErr_NoMemory(), -1;
    if (PyList_GET_SIZE(leaf) != nin) {
        PyErr_Format(PyExc_ValueError, "Epochs.run: the program has %d inputs, %zd are told", nin,
                     PyList_GET_SIZE(leaf));
        return -1;
    }
    for (int32_t i = 0; i < nin; i++) a->leaf[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(leaf, i));
    if (PyErr_Occurred() || handles(given, nin, a->given)) return -1;
    return results == Py_None ? 0 : handles(results, nout, a->results);
}

static void free_arguments(run_arguments *a)
{
    PyMem_Free(a->leaf);
    PyMem_Free(a->given);
    PyMem_Free(a->results);
}

/* run(program, leaf, given, steps, seconds, results) -> (end, done, last results). */
static PyObject *epochs_run(PyObject *self, PyObject *args)
{
    py_epochs *e = (py_epochs *)self;
    PyObject *program, *leaf, *given, *results = Py_None;
    long long steps;
    double seconds;
    stk_error err;
    run_arguments a = {0};
    if (!PyArg_ParseTuple(args, "OO!O!Ld|O", &program, &PyList_Type, &leaf, &PyList_Type, &given,
                          &steps, &seconds, &results) ||
        need_stream(e))
        return NULL;
    int32_t nin, nout;
    if (py_program_sizes(program, &nin, &nout)) return NULL;
    if (fill_arguments(&a, leaf, given, results, nin, nout)) {
        free_arguments(&a);
        return NULL;
    }
    stk_over *o = &e->over;
    o->leaf = a.leaf, o->given = a.given, o->results = results == Py_None ? NULL : a.results;
    o->steps = steps, o->seconds = seconds;
    e->running = true;
    stk_status status = py_program_over(program, o, &err);
    e->running = false;
    o->leaf = NULL, o->given = NULL, o->results = NULL;
    free_arguments(&a);
    if (status != STK_OK)
        return PyErr_Occurred() || py_raise_waiting() ? NULL : py_data_raise(&err, NULL);
    static const char *const ends[] = {"data", "steps", "time", "shape"};
    PyObject *last = tensors_of(o->last, o->nlast);
    return last ? Py_BuildValue("sLN", ends[o->end], (long long)o->done, last) : NULL;
}

/* again(): the stream goes on, counts start at 0. */
static PyObject *epochs_again(PyObject *self, PyObject *u)
{
    (void)u;
    py_epochs *e = (py_epochs *)self;
    if (refuse_running(e)) return NULL;
    e->over.done = e->over.row = 0;
    Py_RETURN_NONE;
}

static PyObject *epochs_end(PyObject *self, PyObject *u)
{
    (void)u;
    if (refuse_running((py_epochs *)self)) return NULL;
    end_stream((py_epochs *)self);
    Py_RETURN_NONE;
}

stk_dataset *py_epochs_dataset(PyObject *epochs)
{
    if (Py_TYPE(epochs) == epochs_type) return ((py_epochs *)epochs)->ds;
    return PyErr_Format(PyExc_TypeError, "%R is no Epochs", epochs), NULL;
}

static PyObject *get_count(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromLongLong(stk_dataset_cardinality(((py_epochs *)self)->ds));
}
static PyObject *get_row(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromLongLong(((py_epochs *)self)->over.row);
}

int py_init_over(PyObject *module)
{
    static PyMethodDef methods[] = {{"begin", epochs_begin, METH_O, NULL},
                                    {"peek", epochs_peek, METH_NOARGS, NULL},
                                    {"take", epochs_take, METH_NOARGS, NULL},
                                    {"run", epochs_run, METH_VARARGS, NULL},
                                    {"again", epochs_again, METH_NOARGS, NULL},
                                    {"end", epochs_end, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyGetSetDef getters[] = {{"cardinality", get_count, NULL, NULL, NULL},
                                    {"row", get_row, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, epochs_new},
                                  {Py_tp_dealloc, epochs_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getters},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.Epochs", sizeof(py_epochs), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    epochs_type = py_add_type(module, &spec, NULL, "Epochs");
    return epochs_type ? 0 : -1;
}
