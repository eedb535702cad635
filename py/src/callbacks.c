/* Python code that the library calls under the interpreter lock: generators, and functions that give datasets.
 *
 * A generator may be in the middle of anything when nobody wants its elements any more. Its thread is then told by an
 * asynchronous exception, which ends loops of Python code; iterator.c sees to it that nobody waits for the rest. */
#include "data.h"

#include <string.h>

static void release_object(void *context)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, NULL)) return;
    Py_DECREF((PyObject *)context);
    PyGILState_Release(state);
}

/* ---- generators -------------------------------------------------------------------------------------------------- */

typedef struct walk {
    PyObject *iterator;
} walk;

static stk_status generator_open(void *context, void **out, stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, err)) return err->code;
    stk_status status = STK_OK;
    walk *w = PyMem_RawCalloc(1, sizeof *w);
    if (w) w->iterator = PyObject_CallNoArgs((PyObject *)context);
    if (!w || !w->iterator) {
        if (!w) PyErr_NoMemory();
        status = py_data_keep_error('g', err);
        PyMem_RawFree(w);
        w = NULL;
    }
    *out = w;
    PyGILState_Release(state);
    return status;
}

static stk_status take_parts(PyObject *parts, stk_tensor **out, stk_error *err)
{
    Py_ssize_t n = PyList_Check(parts) ? PyList_GET_SIZE(parts) : 0, have = 0;
    for (; have < n; have++) {
        out[have] = py_to_eager(PyList_GET_ITEM(parts, have), -1, "from_generator");
        if (!out[have]) break;
    }
    if (have == n && n) return STK_OK;
    while (have--) {
        stk_tensor_release(out[have]);
        out[have] = NULL;
    }
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a generator must give a list");
    return py_data_keep_error('g', err);
}

static stk_status generator_next(void *context, void *at, stk_tensor **parts, bool *end,
                                 stk_error *err)
{
    (void)context;
    PyGILState_STATE state;
    walk *w = at;
    if (!py_data_lock(&state, err)) return err->code;
    stk_status status = STK_OK;
    PyObject *item = PyIter_Next(w->iterator);
    if (item)
        status = take_parts(item, parts, err);
    else if (PyErr_Occurred())
        status = py_data_keep_error('g', err);
    else
        *end = true;
    Py_XDECREF(item);
    PyGILState_Release(state);
    return status;
}

static void generator_close(void *context, void *at)
{
    (void)context;
    PyGILState_STATE state;
    walk *w = at;
    if (!w || !py_data_lock(&state, NULL)) return;
    PyObject *type, *value, *trace; /* the end of a generator runs its finally blocks */
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(w->iterator);
    PyErr_Restore(type, value, trace);
    PyMem_RawFree(w);
    PyGILState_Release(state);
}

int py_generator_fill(PyObject *open, const stk_schema *output, int64_t cardinality,
                      stk_generator *out)
{
    *out = (stk_generator){.name = "from_generator",
                           .context = Py_NewRef(open),
                           .output = output,
                           .open = generator_open,
                           .next = generator_next,
                           .close = generator_close,
                           .release = release_object,
                           .cardinality = cardinality};
    return 0;
}

/* ---- functions that give datasets --------------------------------------------------------------------------------- */

static stk_dataset *dataset_of(PyObject *result, stk_error *err)
{
    stk_dataset *ds = result ? py_dataset_handle(result) : NULL;
    Py_XDECREF(result);
    if (!ds) py_data_keep_error('f', err);
    return ds;
}

static stk_dataset *flat_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                              stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, err)) return NULL;
    PyObject *parts = PyList_New(info->inputs);
    for (int32_t i = 0; parts && i < info->inputs; i++) {
        stk_dataset *window = stk_tensor_dataset(in[i]);
        PyObject *o = window ? py_pipeline_take(stk_dataset_retain(window), err)
                             : py_tensor_take(stk_tensor_retain(in[i]));
        if (!o)
            Py_CLEAR(parts);
        else
            PyList_SET_ITEM(parts, i, o);
    }
    stk_dataset *ds =
        dataset_of(parts ? PyObject_CallOneArg((PyObject *)context, parts) : NULL, err);
    Py_XDECREF(parts);
    PyGILState_Release(state);
    return ds;
}

int py_flat_fn_fill(PyObject *callable, const stk_schema *output, stk_flat_fn *out)
{
    *out = (stk_flat_fn){.name = "function",
                         .context = Py_NewRef(callable),
                         .call = flat_call,
                         .output = output,
                         .release = release_object};
    return 0;
}

/* ---- windows that become batches, which needs no Python -------------------------------------------------------------- */

typedef struct window_batches {
    int32_t n;
    struct {
        int64_t size, drop;
    } part[];
} window_batches;

static stk_dataset *batches_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                                 stk_error *err)
{
    const window_batches *w = context;
    stk_dataset *few[16] = {0};
    if (info->inputs < w->n) return NULL;
    for (int32_t i = 0; i < w->n; i++)
        few[i] = stk_data_batch(stk_dataset_retain(stk_tensor_dataset(in[i])), w->part[i].size,
                                w->part[i].drop, err);
    if (w->n == 1) return few[0];
    bool fine = true;
    for (int32_t i = 0; i < w->n; i++) fine = fine && few[i];
    if (fine) return stk_data_zip(w->n, few, err);
    for (int32_t i = 0; i < w->n; i++) stk_dataset_release(few[i]);
    return NULL;
}

int py_batches_fn_fill(PyObject *parts, const stk_schema *output, stk_flat_fn *out)
{
    Py_ssize_t n = PyList_GET_SIZE(parts);
    window_batches *w = PyMem_RawCalloc(1, sizeof *w + (size_t)n * sizeof w->part[0]);
    if (!w) return PyErr_NoMemory(), -1;
    w->n = (int32_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        long long size;
        int drop;
        if (n > 16 || !PyArg_ParseTuple(PyList_GET_ITEM(parts, i), "Lp", &size, &drop)) {
            PyMem_RawFree(w);
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "too many windows");
            return -1;
        }
        w->part[i].size = size;
        w->part[i].drop = drop;
    }
    *out = (stk_flat_fn){.name = "batches of windows",
                         .context = w,
                         .call = batches_call,
                         .output = output,
                         .release = PyMem_RawFree};
    return 0;
}

static stk_dataset *group_call(void *context, int64_t key, stk_dataset *window, stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, err)) {
        stk_dataset_release(window);
        return NULL;
    }
    PyObject *pipe = py_pipeline_take(window, err);
    PyObject *result =
        pipe ? PyObject_CallFunction((PyObject *)context, "LO", (long long)key, pipe) : NULL;
    Py_XDECREF(pipe);
    stk_dataset *ds = dataset_of(result, err);
    PyGILState_Release(state);
    return ds;
}

int py_group_fn_fill(PyObject *callable, const stk_schema *output, stk_group_fn *out)
{
    *out = (stk_group_fn){.name = "function",
                          .context = Py_NewRef(callable),
                          .call = group_call,
                          .output = output,
                          .release = release_object};
    return 0;
}
