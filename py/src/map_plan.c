/* Plans of a MapFn: found by the shapes of an element, run by many threads at once, each with a program of its own. */
#include "map_plan.h"

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

struct py_plan {
    struct py_plan *next;
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
};

enum { FEW = 32, MOST_PLANS = 48 };

static void free_plan(py_plan *p)
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
static py_plan *find_plan(py_plans *plans, stk_tensor *const *slot, runner **idle)
{
    pthread_mutex_lock(&plans->lock);
    py_plan **at = &plans->first, *p = NULL;
    for (; *at; at = &(*at)->next) {
        int32_t i = 0;
        while (i < plans->nslots && has_type(slot[i], &(*at)->types[i])) i++;
        if (i == plans->nslots) break;
    }
    p = *at;
    plans->calls++;
    if (p) p->users++;
    if (p && at != &plans->first) {
        *at = p->next;
        p->next = plans->first;
        plans->first = p;
    }
    if (p && p->idle) {
        *idle = p->idle;
        p->idle = (*idle)->next;
    }
    pthread_mutex_unlock(&plans->lock);
    return p;
}

static void give_back(py_plans *plans, py_plan *p, runner *r)
{
    pthread_mutex_lock(&plans->lock);
    r->next = p->idle;
    p->idle = r;
    pthread_mutex_unlock(&plans->lock);
}

static void leave_plan(py_plans *plans, py_plan *p)
{
    pthread_mutex_lock(&plans->lock);
    p->users--;
    pthread_mutex_unlock(&plans->lock);
}

/* Plans are as large as what they compute: of many shapes only the last ones are kept. Called with both locks. */
static py_plan *drop_oldest(py_plans *plans)
{
    py_plan **oldest = NULL;
    for (py_plan **at = &plans->first; *at; at = &(*at)->next)
        if (!(*at)->users) oldest = at;
    if (!oldest || plans->count < MOST_PLANS) return NULL;
    py_plan *p = *oldest;
    *oldest = p->next;
    plans->count--;
    return p;
}

static stk_status new_runner(py_plan *p, runner **out, stk_error *err)
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
static stk_status before_assigning(py_plan *p, stk_error *err)
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

/* ---- running ------------------------------------------------------------------------------------------------------- */

static stk_status run_program(py_plans *plans, py_plan *p, runner *r, const stk_map_info *info,
                              stk_tensor *const *slot, stk_tensor **out, stk_error *err)
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
    if (r) give_back(plans, p, r);
    if (in != few_in) PyMem_RawFree(in);
    if (made != few_made) PyMem_RawFree(made);
    return status;
}

static stk_status run_plan(py_plans *plans, py_plan *p, runner *r, const stk_map_info *info,
                           stk_tensor *const *slot, stk_tensor **out, stk_error *err)
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
    if (p->trace && status == STK_OK) return run_program(plans, p, r, info, slot, out, err);
    return status;
}

/* ---- making one ---------------------------------------------------------------------------------------------------- */

static int types_from(py_plan *p, int32_t nslots, PyObject *types)
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

static int outputs_from(py_plan *p, py_trace *trace, PyObject *outputs)
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

static py_plan *new_plan(int32_t nslots, PyObject *types, py_trace *trace, PyObject *feeds,
                         PyObject *outputs)
{
    stk_error err;
    py_plan *p = PyMem_RawCalloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory(), NULL;
    p->nfeeds = (int32_t)PyList_GET_SIZE(feeds);
    p->feeds = PyMem_RawCalloc((size_t)p->nfeeds + 1, sizeof *p->feeds);
    if (!p->feeds) PyErr_NoMemory();
    if (!p->feeds || types_from(p, nslots, types) || outputs_from(p, trace, outputs)) {
        free_plan(p);
        return NULL;
    }
    for (int32_t i = 0; i < p->nfeeds; i++)
        p->feeds[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(feeds, i));
    if (!p->nresults && !p->assigns) return p;
    p->trace = (py_trace *)Py_NewRef((PyObject *)trace);
    if (new_runner(p, &p->idle, &err) == STK_OK) return p; /* mistakes show here, not in a worker */
    free_plan(p);
    py_raise(&err, NULL);
    return NULL;
}

int py_plans_add(py_plans *plans, int32_t nslots, PyObject *types, py_trace *trace, PyObject *feeds,
                 PyObject *outputs)
{
    py_plan *p = new_plan(nslots, types, trace, feeds, outputs);
    if (!p) return -1;
    pthread_mutex_lock(&plans->lock);
    plans->nslots = nslots;
    py_plan *old = drop_oldest(plans);
    p->next = plans->first;
    plans->first = p;
    plans->count++;
    pthread_mutex_unlock(&plans->lock);
    free_plan(old);
    return 0;
}

stk_status py_plans_run(py_plans *plans, const stk_map_info *info, stk_tensor *const *slot,
                        stk_tensor **out, bool *fits, stk_error *err)
{
    runner *idle = NULL;
    py_plan *p = find_plan(plans, slot, &idle);
    *fits = p != NULL;
    if (!p) return STK_OK;
    stk_status status = run_plan(plans, p, idle, info, slot, out, err);
    leave_plan(plans, p);
    return status;
}

void py_plans_init(py_plans *plans) { pthread_mutex_init(&plans->lock, NULL); }

void py_plans_free(py_plans *plans)
{
    while (plans->first) {
        py_plan *p = plans->first;
        plans->first = p->next;
        free_plan(p);
    }
    pthread_mutex_destroy(&plans->lock);
}
