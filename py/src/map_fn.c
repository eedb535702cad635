/* MapFn: a function of tf.data, recorded once and replayed by the workers of a pipeline without the interpreter lock.
 *
 * A recording is a plan: first steps on the host (HostFn: parsing records, decoding pictures, everything that begins
 * with strings), then one program over all numbers (map_plan.c). Plans are made for concrete shapes; when an element has others, the
 * worker takes the lock and asks Python for a further recording. What cannot be recorded is called element by element
 * under the lock instead ("eager"). */
#include "map_plan.h"

#include <string.h>

typedef struct plan_step {
    py_host_fn *fn;
    int32_t *in, first; /* slots */
} plan_step;

typedef struct py_map_fn {
    PyObject_HEAD PyObject *name, *record, *eager;
    int32_t nin, nslots, nsteps;
    plan_step *steps;
    py_plans plans;
    bool serial, pure;
    long long eager_calls, records;
} py_map_fn;

PyTypeObject *py_map_fn_type;
enum { FEW = 32 };

/* ---- one element ------------------------------------------------------------------------------------------------------- */

static stk_status run_steps(py_map_fn *m, const stk_map_info *info, stk_tensor **slot,
                            stk_error *err)
{
    for (int32_t s = 0; s < m->nsteps; s++) {
        plan_step *step = &m->steps[s];
        stk_tensor *in[FEW];
        stk_map_info mine = *info;
        mine.inputs = step->fn->nin;
        for (int32_t i = 0; i < step->fn->nin; i++) in[i] = slot[step->in[i]];
        stk_status status =
            step->fn->fn.call(step->fn->fn.context, &mine, in, slot + step->first, err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

/* ---- Python, under the lock -------------------------------------------------------------------------------------------- */

static PyObject *part_object(stk_tensor *t)
{
    stk_dataset *window = stk_tensor_dataset(t);
    if (window) return py_pipeline_take(stk_dataset_retain(window), NULL);
    return py_tensor_take(stk_tensor_retain(t));
}

static PyObject *part_objects(int32_t n, stk_tensor *const *part)
{
    PyObject *list = PyList_New(n);
    for (int32_t i = 0; list && i < n; i++) {
        PyObject *o = part_object(part[i]);
        if (!o)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, o);
    }
    return list;
}

static stk_status take_results(PyObject *results, stk_tensor **out, stk_error *err)
{
    PyObject *items = results ? PySequence_Fast(results, "the function must give a list") : NULL;
    Py_XDECREF(results);
    if (!items) return py_data_keep_error('f', err);
    stk_status status = STK_OK;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items) && status == STK_OK; i++) {
        stk_tensor *t = py_to_eager(PySequence_Fast_GET_ITEM(items, i), -1, "map"), *own = NULL;
        if (!t) {
            status = py_data_keep_error('f', err);
            break;
        }
        bool fits = out[i] && out[i]->dtype != STK_STRING && t->rank == out[i]->rank &&
                    t->dtype == out[i]->dtype;
        if (fits) {
            status = stk_tensor_copy(out[i], t, err);
        } else if ((status = stk_tensor_dense(t, &own, err)) == STK_OK) {
            stk_tensor_release(out[i]);
            out[i] = own;
        }
        stk_tensor_release(t);
    }
    Py_DECREF(items);
    return status;
}

static stk_status call_eager(py_map_fn *m, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, err)) return err->code;
    m->eager_calls++;
    PyObject *parts = part_objects(info->inputs, in);
    PyObject *results = parts ? PyObject_CallOneArg(m->eager, parts) : NULL;
    Py_XDECREF(parts);
    stk_status status = take_results(results, out, err);
    PyGILState_Release(state);
    return status;
}

/* Asks Python to record for these slots. */
static stk_status record_more(py_map_fn *m, stk_tensor *const *slot, stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, err)) return err->code;
    stk_status status = STK_OK;
    m->records++;
    PyObject *parts = part_objects(m->nslots, slot);
    PyObject *done = parts ? PyObject_CallOneArg(m->record, parts) : NULL;
    if (!done) status = py_data_keep_error('f', err);
    Py_XDECREF(done);
    Py_XDECREF(parts);
    PyGILState_Release(state);
    return status;
}

static stk_status call_planned(py_map_fn *m, const stk_map_info *info, stk_tensor **slot,
                               stk_tensor *const *in, stk_tensor **out, stk_error *err)
{
    for (int32_t i = 0; i < m->nin; i++) slot[i] = in[i];
    stk_status status = run_steps(m, info, slot, err);
    for (int attempt = 0; status == STK_OK; attempt++) {
        bool fits = false;
        status = py_plans_run(&m->plans, info, slot, out, &fits, err);
        if (fits) return status;
        if (attempt) break;
        status = record_more(m, slot, err);
        if (status == STK_OK && m->eager) return call_eager(m, info, in, out, err);
    }
    if (status == STK_OK) {
        status = err->code = STK_ERR_INTERNAL;
        PyOS_snprintf(err->message, sizeof err->message, "no recording fits an element's shapes");
    }
    return status;
}

static stk_status call(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    py_map_fn *m = context;
    stk_tensor *few[FEW] = {0};
    stk_error mine;
    if (!err) err = &mine;
    if (m->eager) return call_eager(m, info, in, out, err);
    stk_tensor **slot = m->nslots > FEW ? PyMem_RawCalloc((size_t)m->nslots, sizeof *slot) : few;
    if (!slot) return err->code = STK_ERR_MEMORY;
    stk_status status = call_planned(m, info, slot, in, out, err);
    for (int32_t i = m->nin; i < m->nslots; i++) stk_tensor_release(slot[i]);
    if (slot != few) PyMem_RawFree(slot);
    return status;
}

static void release(void *context)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, NULL)) return;
    Py_DECREF((PyObject *)context);
    PyGILState_Release(state);
}

int py_map_fn_fill(PyObject *fn, const stk_schema *output, stk_map_fn *out)
{
    if (Py_TYPE(fn) != py_map_fn_type) {
        PyErr_SetString(PyExc_TypeError, "needs a MapFn");
        return -1;
    }
    py_map_fn *m = (py_map_fn *)Py_NewRef(fn);
    *out = (stk_map_fn){.name = PyUnicode_AsUTF8(m->name),
                        .context = m,
                        .call = call,
                        .output = output,
                        .release = release,
                        .flags = (m->serial ? (uint32_t)STK_MAP_SERIAL : 0) |
                                 (m->pure ? (uint32_t)STK_MAP_PURE : 0)};
    return 0;
}

/* ---- the object ---------------------------------------------------------------------------------------------------------- */

/* MapFn(name, parts of an element, record): record(list of the slots' values) adds a plan or sets `eager`. */
static PyObject *map_fn_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *name, *record;
    int nin;
    if (!PyArg_ParseTuple(args, "UiO", &name, &nin, &record)) return NULL;
    py_map_fn *m = (py_map_fn *)type->tp_alloc(type, 0);
    if (!m) return NULL;
    m->name = Py_NewRef(name);
    m->record = Py_NewRef(record);
    m->nin = m->nslots = nin;
    py_plans_init(&m->plans);
    return (PyObject *)m;
}

static void map_fn_dealloc(PyObject *self)
{
    py_map_fn *m = (py_map_fn *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    py_plans_free(&m->plans);
    for (int32_t i = 0; i < m->nsteps; i++) {
        Py_XDECREF((PyObject *)m->steps[i].fn);
        PyMem_RawFree(m->steps[i].in);
    }
    PyMem_RawFree(m->steps);
    Py_XDECREF(m->name);
    Py_XDECREF(m->record);
    Py_XDECREF(m->eager);
    type->tp_free(self);
    Py_DECREF(type);
}

static int map_fn_traverse(PyObject *self, visitproc visit, void *arg)
{
    py_map_fn *m = (py_map_fn *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(m->record);
    Py_VISIT(m->eager);
    return 0;
}
static int map_fn_clear(PyObject *self)
{
    py_map_fn *m = (py_map_fn *)self;
    Py_CLEAR(m->record);
    Py_CLEAR(m->eager);
    return 0;
}

/* step(HostFn, input slots) -> first slot of its results. Before the first plan. */
static PyObject *add_step(PyObject *self, PyObject *args)
{
    py_map_fn *m = (py_map_fn *)self;
    PyObject *fn, *slots;
    int64_t in[FEW];
    if (!PyArg_ParseTuple(args, "O!O", py_host_fn_type, &fn, &slots)) return NULL;
    int n = py_ints_from(slots, "step", FEW, in);
    if (n < 0) return NULL;
    if (n != ((py_host_fn *)fn)->nin || m->plans.count)
        return PyErr_Format(PyExc_ValueError, "step: %d inputs do not fit", n);
    plan_step *more = PyMem_RawRealloc(m->steps, ((size_t)m->nsteps + 1) * sizeof *more);
    int32_t *ids = PyMem_RawCalloc((size_t)n + 1, sizeof *ids);
    if (more) m->steps = more;
    if (!more || !ids) {
        PyMem_RawFree(ids);
        return PyErr_NoMemory();
    }
    for (int i = 0; i < n; i++) ids[i] = (int32_t)in[i];
    int32_t first = m->nslots;
    m->steps[m->nsteps++] =
        (plan_step){.fn = (py_host_fn *)Py_NewRef(fn), .in = ids, .first = first};
    m->nslots += ((py_host_fn *)fn)->nout;
    return PyLong_FromLong(first);
}

/* plan(types of the slots, trace, slots of the trace's inputs, outputs) */
static PyObject *add_plan(PyObject *self, PyObject *args)
{
    py_map_fn *m = (py_map_fn *)self;
    PyObject *types, *trace, *feeds, *outputs;
    if (!PyArg_ParseTuple(args, "OO!O!O!", &types, py_trace_type, &trace, &PyList_Type, &feeds,
                          &PyList_Type, &outputs))
        return NULL;
    if (py_plans_add(&m->plans, m->nslots, types, (py_trace *)trace, feeds, outputs)) return NULL;
    Py_RETURN_NONE;
}

/* calling it on tensors: one element, on this thread. For tests and for samples. */
static PyObject *run_once(PyObject *self, PyObject *args)
{
    py_map_fn *m = (py_map_fn *)self;
    PyObject *list;
    int nout;
    int32_t n = 0;
    stk_error err;
    if (!PyArg_ParseTuple(args, "Oi", &list, &nout)) return NULL;
    stk_tensor **in = py_tensors_from(list, &n), **out = NULL;
    if (!in) return NULL;
    PyObject *result = NULL;
    stk_map_info info = {.count = 1, .inputs = n};
    out = PyMem_Calloc((size_t)nout + 1, sizeof *out);
    if (n != m->nin)
        PyErr_Format(PyExc_ValueError, "%d parts, the function takes %d", (int)n, (int)m->nin);
    else if (out) {
        stk_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = call(m, &info, in, out, &err);
        Py_END_ALLOW_THREADS;
        result = status == STK_OK ? py_tensors_list(out, nout) : py_data_raise(&err, NULL);
    }
    PyMem_Free(out);
    py_tensors_free(in, n);
    return result;
}

int py_init_map_fn(PyObject *module)
{
    static PyMethodDef methods[] = {{"step", add_step, METH_VARARGS, NULL},
                                    {"plan", add_plan, METH_VARARGS, NULL},
                                    {"run", run_once, METH_VARARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"name", T_OBJECT, offsetof(py_map_fn, name), READONLY, NULL},
        {"eager", T_OBJECT, offsetof(py_map_fn, eager), 0, NULL},
        {"slots", T_INT, offsetof(py_map_fn, nslots), READONLY, NULL},
        {"plans", T_INT, offsetof(py_map_fn, plans.count), READONLY, NULL},
        {"serial", T_BOOL, offsetof(py_map_fn, serial), 0, NULL},
        {"pure", T_BOOL, offsetof(py_map_fn, pure), 0, NULL},
        {"eager_calls", T_LONGLONG, offsetof(py_map_fn, eager_calls), READONLY, NULL},
        {"calls", T_LONGLONG, offsetof(py_map_fn, plans.calls), READONLY, NULL},
        {"records", T_LONGLONG, offsetof(py_map_fn, records), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, map_fn_new},
                                  {Py_tp_dealloc, map_fn_dealloc},
                                  {Py_tp_traverse, map_fn_traverse},
                                  {Py_tp_clear, map_fn_clear},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.MapFn", sizeof(py_map_fn), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    py_map_fn_type = py_add_type(module, &spec, NULL, "MapFn");
    return py_map_fn_type ? 0 : -1;
}
