/* MapFn: a function of tf.data, recorded once and replayed by the workers of a pipeline without the interpreter lock.
 *
 * A recording is a plan: first steps on the host (HostFn: parsing records, decoding pictures, everything that begins
 * with strings), then one program over all numbers. Plans are made for concrete shapes; when an element has others, the
 * worker takes the lock and asks Python for a further recording. What cannot be recorded is called element by element
 * under the lock instead ("eager"). */
#include "data.h"
#include "trace.h"

#include <pthread.h>
#include <string.h>

typedef struct part_type {
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
} part_type;

typedef struct runner { /* a program is run by one thread at a time */
    stk_program *program;
    struct runner *next;
} runner;

typedef struct plan {
    struct plan *next;
    part_type *types; /* of all slots */
    py_trace *trace;  /* NULL: nothing is computed */
    int32_t nfeeds, nresults, nout;
    int32_t *feeds; /* slots, in the order of the trace's inputs */
    bool assigns;   /* to variables: one call at a time, and others keep what they have read */
    struct plan_output {
        int32_t result, slot; /* one of them, the other is -1; both -1: `fixed` */
        stk_tensor *fixed;
    } * out;
    runner *idle;
    int32_t users; /* threads that are at it now */
} plan;

typedef struct plan_step {
    py_host_fn *fn;
    int32_t *in, first; /* slots */
} plan_step;

typedef struct py_map_fn {
    PyObject_HEAD PyObject *name, *record, *eager;
    int32_t nin, nslots, nsteps;
    plan_step *steps;
    plan *plans; /* the last one used first */
    int32_t nplans;
    bool serial, pure;
    pthread_mutex_t lock;
    long long calls, eager_calls, records;
} py_map_fn;

PyTypeObject *py_map_fn_type;
enum { FEW = 32, MOST_PLANS = 48 };

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static void free_plan(plan *p)
{
    if (!p) return;
    while (p->idle) {
        runner *r = p->idle;
        p->idle = r->next;
        stk_program_release(r->program);
        PyMem_RawFree(r);
    }
    for (int32_t i = 0; p->out && i < p->nout; i++) stk_tensor_release(p->out[i].fixed);
    Py_XDECREF((PyObject *)p->trace);
    PyMem_RawFree(p->types);
    PyMem_RawFree(p->feeds);
    PyMem_RawFree(p->out);
    PyMem_RawFree(p);
}

static bool has_type(const stk_tensor *t, const part_type *type)
{
    if (t->dtype != type->dtype || t->rank != type->rank) return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->shape[i] != type->shape[i]) return false;
    return true;
}

/* The plan for these slots, moved to the front; with a runner taken from it when one is idle. */
static plan *find_plan(py_map_fn *m, stk_tensor *const *slot, runner **idle)
{
    pthread_mutex_lock(&m->lock);
    plan **at = &m->plans, *p = NULL;
    for (; *at; at = &(*at)->next) {
        int32_t i = 0;
        while (i < m->nslots && has_type(slot[i], &(*at)->types[i])) i++;
        if (i == m->nslots) break;
    }
    p = *at;
    m->calls++;
    if (p) p->users++;
    if (p && at != &m->plans) {
        *at = p->next;
        p->next = m->plans;
        m->plans = p;
    }
    if (p && p->idle) {
        *idle = p->idle;
        p->idle = (*idle)->next;
    }
    pthread_mutex_unlock(&m->lock);
    return p;
}

static void give_back(py_map_fn *m, plan *p, runner *r)
{
    pthread_mutex_lock(&m->lock);
    r->next = p->idle;
    p->idle = r;
    pthread_mutex_unlock(&m->lock);
}

static void leave_plan(py_map_fn *m, plan *p)
{
    pthread_mutex_lock(&m->lock);
    p->users--;
    pthread_mutex_unlock(&m->lock);
}

/* Plans are as large as what they compute: of many shapes only the last ones are kept. Called with both locks. */
static plan *drop_oldest(py_map_fn *m)
{
    plan **oldest = NULL;
    for (plan **at = &m->plans; *at; at = &(*at)->next)
        if (!(*at)->users) oldest = at;
    if (!oldest || m->nplans < MOST_PLANS) return NULL;
    plan *p = *oldest;
    *oldest = p->next;
    m->nplans--;
    return p;
}

static stk_status new_runner(plan *p, runner **out, stk_error *err)
{
    stk_program_options o = stk_program_options_defaults();
    runner *r = PyMem_RawCalloc(1, sizeof *r);
    if (!r) return err->code = STK_ERR_MEMORY;
    o.threads = 1; /* the workers are the parallelism */
    stk_status status = stk_device_open("cpu:0", 0, &o.device, err);
    if (status == STK_OK) status = stk_store_new(o.device, &o.store, err);
    for (Py_ssize_t i = 0; i < p->trace->nvariables && status == STK_OK; i++) {
        char name[32];
        PyOS_snprintf(name, sizeof name, "v%zd", i);
        status = stk_store_adopt(o.store, name, py_variable_memory(p->trace->variables[i].variable),
                                 err);
    }
    if (status == STK_OK) status = stk_program_new_caller(p->trace->g, &o, &r->program, err);
    stk_store_release(o.store);
    stk_device_release(o.device);
    if (status != STK_OK) {
        PyMem_RawFree(r);
        return status;
    }
    *out = r;
    return STK_OK;
}

/* Whoever looks at a variable keeps what he saw when the program writes into it. */
static stk_status before_assigning(plan *p, stk_error *err)
{
    PyGILState_STATE state;
    stk_status status = STK_OK;
    if (!py_data_lock(&state, err)) return err->code;
    for (Py_ssize_t i = 0; i < p->trace->nvariables && status == STK_OK; i++)
        if (p->trace->variables[i].assigned &&
            py_variable_before_write(p->trace->variables[i].variable))
            status = py_data_keep_error('f', err);
    PyGILState_Release(state);
    return status;
}

/* A host function of the program that raised left its exception on this thread. */
static stk_status take_waiting(stk_status status, stk_error *err)
{
    PyGILState_STATE state;
    if (!py_data_lock(&state, NULL)) return status;
    if (py_raise_waiting()) status = py_data_keep_error('f', err);
    PyGILState_Release(state);
    return status;
}

/* ---- running a plan -------------------------------------------------------------------------------------------------- */

static stk_status run_program(py_map_fn *m, plan *p, runner *r, const stk_map_info *info,
                              stk_tensor **slot, stk_tensor **out, stk_error *err)
{
    stk_tensor *few_in[FEW], *few_made[FEW];
    stk_tensor **in = p->nfeeds > FEW ? PyMem_RawCalloc((size_t)p->nfeeds, sizeof *in) : few_in;
    stk_tensor **made =
        p->nresults > FEW ? PyMem_RawCalloc((size_t)p->nresults, sizeof *made) : few_made;
    bool used[FEW] = {false};
    stk_status status = in && made ? STK_OK : (err->code = STK_ERR_MEMORY);
    if (status == STK_OK && !r) status = new_runner(p, &r, err);
    if (status == STK_OK && p->assigns) status = before_assigning(p, err);
    if (status == STK_OK) {
        for (int32_t i = 0; i < p->nfeeds; i++) in[i] = slot[p->feeds[i]];
        for (int32_t i = 0; i < p->nresults; i++) made[i] = NULL;
        /* Straight into the batch where there is one and the shape is known. */
        for (int32_t i = 0; i < p->nout; i++) {
            int32_t k = p->out[i].result;
            if (k >= 0 && k < FEW && !used[k] && out[i] && stk_tensor_is_dense(out[i])) {
                made[k] = out[i];
                used[k] = true;
            }
        }
        stk_program_set_step(r->program,
                             (int64_t)(stk_seed_mix(info->seed, (uint64_t)info->index) >> 2));
        status = stk_program_call(r->program, p->nfeeds, in, p->nresults, made, err);
        if (status != STK_OK) status = take_waiting(status, err);
    }
    for (int32_t i = 0; i < p->nout && status == STK_OK; i++) {
        int32_t k = p->out[i].result;
        if (k < 0 || out[i] == made[k]) continue;
        if (out[i])
            status = stk_tensor_copy(out[i], made[k], err);
        else
            out[i] = stk_tensor_retain(made[k]);
    }
    for (int32_t i = 0; status == STK_OK && i < p->nresults; i++)
        if (i >= FEW || !used[i]) stk_tensor_release(made[i]);
    if (r) give_back(m, p, r);
    if (in != few_in) PyMem_RawFree(in);
    if (made != few_made) PyMem_RawFree(made);
    return status;
}

static stk_status run_plan(py_map_fn *m, plan *p, runner *r, const stk_map_info *info,
                           stk_tensor **slot, stk_tensor **out, stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t i = 0; i < p->nout && status == STK_OK; i++) {
        stk_tensor *given = p->out[i].slot >= 0 ? slot[p->out[i].slot] : p->out[i].fixed;
        if (!given) continue;
        if (out[i] && out[i]->dtype != STK_STRING)
            status = stk_tensor_copy(out[i], given, err);
        else {
            stk_tensor_release(out[i]);
            out[i] = stk_tensor_retain(given);
        }
    }
    if (p->trace && status == STK_OK) return run_program(m, p, r, info, slot, out, err);
    return status;
}

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
        runner *idle = NULL;
        plan *p = find_plan(m, slot, &idle);
        if (p) {
            status = run_plan(m, p, idle, info, slot, out, err);
            leave_plan(m, p);
            return status;
        }
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
    pthread_mutex_init(&m->lock, NULL);
    m->name = Py_NewRef(name);
    m->record = Py_NewRef(record);
    m->nin = m->nslots = nin;
    return (PyObject *)m;
}

static void map_fn_dealloc(PyObject *self)
{
    py_map_fn *m = (py_map_fn *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    while (m->plans) {
        plan *p = m->plans;
        m->plans = p->next;
        free_plan(p);
    }
    for (int32_t i = 0; i < m->nsteps; i++) {
        Py_XDECREF((PyObject *)m->steps[i].fn);
        PyMem_RawFree(m->steps[i].in);
    }
    PyMem_RawFree(m->steps);
    Py_XDECREF(m->name);
    Py_XDECREF(m->record);
    Py_XDECREF(m->eager);
    pthread_mutex_destroy(&m->lock);
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
    if (n != ((py_host_fn *)fn)->nin || m->plans)
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

static int types_from(plan *p, int32_t nslots, PyObject *types)
{
    p->types = PyMem_RawCalloc((size_t)nslots + 1, sizeof *p->types);
    if (!p->types) return PyErr_NoMemory(), -1;
    if (!PyList_Check(types) || PyList_GET_SIZE(types) != nslots) {
        PyErr_Format(PyExc_ValueError, "plan: needs the types of %d slots", (int)nslots);
        return -1;
    }
    for (int32_t i = 0; i < nslots; i++) {
        PyObject *dtype, *shape;
        part_type *t = &p->types[i];
        if (!PyArg_ParseTuple(PyList_GET_ITEM(types, i), "OO", &dtype, &shape) ||
            py_dtype_parse(dtype, &t->dtype))
            return -1;
        t->rank = py_ints_from(shape, "plan", STK_MAX_RANK, t->shape);
        if (t->rank < 0) return -1;
    }
    return 0;
}

/* An output is the number of a slot, an eager tensor, or a value of the trace. */
static int outputs_from(plan *p, py_trace *trace, PyObject *outputs)
{
    p->nout = (int32_t)PyList_GET_SIZE(outputs);
    p->out = PyMem_RawCalloc((size_t)p->nout + 1, sizeof *p->out);
    if (!p->out) return PyErr_NoMemory(), -1;
    for (int32_t i = 0; i < p->nout; i++) {
        PyObject *o = PyList_GET_ITEM(outputs, i);
        p->out[i].result = p->out[i].slot = -1;
        if (PyLong_Check(o)) {
            p->out[i].slot = (int32_t)PyLong_AsLong(o);
        } else if (!py_is_tensor(o)) {
            PyErr_Format(PyExc_TypeError, "plan: output %d is no tensor: %R", (int)i, o);
            return -1;
        } else if (((py_tensor *)o)->t) {
            p->out[i].fixed = py_to_eager(o, -1, "map");
            if (!p->out[i].fixed) return -1;
        } else {
            char name[32];
            stk_val v = py_trace_value(trace, (py_tensor *)o);
            if (!v) return -1;
            PyOS_snprintf(name, sizeof name, "y%d", (int)p->nresults);
            stk_g_output(trace->g, name, v);
            p->out[i].result = p->nresults++;
        }
    }
    for (Py_ssize_t i = 0; i < trace->nvariables; i++) {
        py_traced_variable *v = &trace->variables[i];
        if (!v->assigned || v->current == v->leaf) continue;
        stk_g_assign(trace->g, v->leaf, v->current);
        p->assigns = true;
    }
    return py_trace_check(trace, NULL);
}

/* plan(types of the slots, trace, slots of the trace's inputs, outputs) */
static PyObject *add_plan(PyObject *self, PyObject *args)
{
    py_map_fn *m = (py_map_fn *)self;
    PyObject *types, *trace, *feeds, *outputs;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OO!O!O!", &types, py_trace_type, &trace, &PyList_Type, &feeds,
                          &PyList_Type, &outputs))
        return NULL;
    plan *p = PyMem_RawCalloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    p->nfeeds = (int32_t)PyList_GET_SIZE(feeds);
    p->feeds = PyMem_RawCalloc((size_t)p->nfeeds + 1, sizeof *p->feeds);
    if (!p->feeds || types_from(p, m->nslots, types) ||
        outputs_from(p, (py_trace *)trace, outputs)) {
        free_plan(p);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (int32_t i = 0; i < p->nfeeds; i++)
        p->feeds[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(feeds, i));
    if (p->nresults || p->assigns) {
        p->trace = (py_trace *)Py_NewRef(trace);
        if (new_runner(p, &p->idle, &err) != STK_OK) { /* mistakes show here, not in a worker */
            free_plan(p);
            return py_raise(&err, NULL);
        }
    }
    pthread_mutex_lock(&m->lock);
    plan *old = drop_oldest(m);
    p->next = m->plans;
    m->plans = p;
    m->nplans++;
    pthread_mutex_unlock(&m->lock);
    free_plan(old);
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
        {"plans", T_INT, offsetof(py_map_fn, nplans), READONLY, NULL},
        {"serial", T_BOOL, offsetof(py_map_fn, serial), 0, NULL},
        {"pure", T_BOOL, offsetof(py_map_fn, pure), 0, NULL},
        {"eager_calls", T_LONGLONG, offsetof(py_map_fn, eager_calls), READONLY, NULL},
        {"calls", T_LONGLONG, offsetof(py_map_fn, calls), READONLY, NULL},
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
