/* run.c - a loaded plan as CUDA runs it. What is run for the second time with the same addresses is captured as a graph, made once and from then on
 * started with one call; inputs that take turns between two slots are two graphs. The numbers of a run go up through memory, in line. The
 * host waits for nothing, and everything that a run needs is made when the plan is loaded. While somebody traces, kernels are launched one by
 * one: a graph does not tell when its kernels ran. */
#include "device/cuda/cuda.h"

#include "base/memory.h"

#include <string.h>

enum { GRAPHS = 8, FEWEST = 3, MOST_AHEAD = (STK_CUDA_AHEAD + 2) * STK_CUDA_MARK_RUNS };

/* Where the slots of a piece stood in one of its runs. */
typedef struct binding {
    uintptr_t given;
    int64_t at;
} binding;

typedef struct graph {
    bool seen;            /* these tasks ran with these bindings */
    int64_t first, count; /* the tasks */
    binding *bindings; /* of all slots of its steps, in order; room for those of the whole plan */
    CUgraphExec exec;  /* NULL: seen once */
} graph;

/* What hangs on a loaded plan (stk_cl_sequence.own). */
typedef struct replays {
    graph graph[GRAPHS];
    binding *room;   /* of the graphs' bindings */
    int32_t next;    /* which one gives way */
    bool refused;    /* the driver does not capture: launches, one by one */
    char *numbers;   /* pinned: as many copies of the uniforms as runs may be under way */
    size_t bytes;    /* of one of them */
    int64_t written; /* runs that had numbers */
} replays;

/* ---- loading --------------------------------------------------------------------------------------------- */

/* Bindings of the graphs, places of all arguments, pinned memory for the numbers of runs that may be under way. */
static stk_status make_room(stk_cl_sequence *s, const stk_plan *p, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(s->head.device);
    replays *r = s->own;
    size_t slots = 1;
    for (int64_t i = 0; i < s->nsteps; i++) {
        slots += (size_t)s->steps[i].nslots;
        STK_TRY(stk_cuda_ready(d, &s->steps[i], err));
    }
    r->room = stk_calloc(GRAPHS * slots, sizeof *r->room);
    if (!r->room) return stk_fail_memory(err, "graphs", GRAPHS * slots * sizeof *r->room);
    for (size_t i = 0; i < GRAPHS; i++) r->graph[i].bindings = r->room + i * slots;
    if (!s->uniforms.block) return STK_OK;
    r->bytes = (size_t)stk_round_up((int64_t)p->uniform_bytes, 64);
    r->numbers = stk_cuda_memory.host_alloc(s->head.device, r->bytes * MOST_AHEAD);
    return r->numbers ? STK_OK
                      : stk_fail_memory(err, "the numbers of a run", r->bytes * MOST_AHEAD);
}

stk_status stk_cuda_load(stk_device *device, stk_plan *p, stk_sequence **out, stk_error *err)
{
    STK_TRY(stk_cl_load(device, p, out, err));
    stk_cl_sequence *s = (stk_cl_sequence *)*out;
    stk_status status = STK_OK;
    s->own = stk_calloc(1, sizeof(replays));
    if (!s->own) status = stk_fail_memory(err, "graphs", sizeof(replays));
    if (status == STK_OK) status = make_room(s, p, err);
    if (status != STK_OK) {
        stk_cuda_unload(*out);
        *out = NULL;
    }
    return status;
}

static void drop(stk_cuda *d, graph *g)
{
    if (g->exec) (void)d->cu->cuGraphExecDestroy(g->exec);
    *g = (graph){.bindings = g->bindings};
}

void stk_cuda_unload(stk_sequence *loaded)
{
    stk_cl_sequence *s = (stk_cl_sequence *)loaded;
    if (!s) return;
    stk_cuda *d = stk_cuda_of(s->head.device);
    replays *r = s->own;
    (void)stk_cuda_enter(d);
    (void)d->cu->cuStreamSynchronize(d->queue);
    if (r) {
        for (int32_t i = 0; i < GRAPHS; i++) drop(d, &r->graph[i]);
        stk_cuda_memory.host_free(s->head.device, r->numbers, r->bytes * MOST_AHEAD);
        stk_free(r->room);
        stk_free(r);
    }
    stk_cl_unload(loaded);
}

/* ---- graphs ---------------------------------------------------------------------------------------------- */

static binding now_at(const stk_cl_place *place, const stk_address *slots)
{
    stk_address a = slots[place->slot];
    return (binding){stk_cl_given(a.block), a.offset + place->offset};
}

static bool same_bindings(const stk_cl_sequence *s, const stk_sequence_run *run, const graph *g)
{
    int64_t n = 0;
    if (g->first != run->first || g->count != run->count || !g->seen) return false;
    for (int64_t i = s->first[run->first]; i < s->first[run->first + run->count]; i++)
        for (int32_t k = 0; k < s->steps[i].nslots; k++, n++) {
            binding b = now_at(&s->steps[i].slots[k], run->slots);
            if (g->bindings[n].given != b.given || g->bindings[n].at != b.at) return false;
        }
    return true;
}

static void note_bindings(const stk_cl_sequence *s, const stk_sequence_run *run, graph *g)
{
    int64_t n = 0;
    for (int64_t i = s->first[run->first]; i < s->first[run->first + run->count]; i++)
        for (int32_t k = 0; k < s->steps[i].nslots; k++)
            g->bindings[n++] = now_at(&s->steps[i].slots[k], run->slots);
    g->seen = true;
    g->first = run->first;
    g->count = run->count;
}

static stk_status launch_all(stk_cuda *d, stk_cl_sequence *s, const stk_sequence_run *run,
                             CUstream stream, stk_error *err)
{
    for (int64_t i = s->first[run->first]; i < s->first[run->first + run->count]; i++) {
        stk_cl_step *step = &s->steps[i];
        if (step->nslots) STK_TRY(stk_cl_bind(&d->base, step, run->slots, err));
        stk_cuda_span span = stk_cuda_watch_begin(d, stream);
        STK_TRY(stk_cuda_done(d, "a launch", stk_cuda_launch(d, step, stream), err));
        stk_cuda_watch_end(d, &span, STK_CUDA_KERNELS, step->label, step->span);
    }
    return STK_OK;
}

/* In a stream of its own: what other threads queue meanwhile must not become a part of it. A driver that refuses is not asked again. */
static CUgraphExec capture(stk_cuda *d, stk_cl_sequence *s, const stk_sequence_run *run)
{
    CUgraph drawn = NULL;
    CUgraphExec exec = NULL;
    pthread_mutex_lock(&d->drafting);
    int code = d->cu->cuStreamBeginCapture_v2(d->drafts, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (code == CUDA_SUCCESS) {
        stk_status status = launch_all(d, s, run, d->drafts, NULL);
        code = d->cu->cuStreamEndCapture(d->drafts, &drawn);
        if (code == CUDA_SUCCESS && status == STK_OK && drawn &&
            d->cu->cuGraphInstantiateWithFlags(&exec, drawn, 0) != CUDA_SUCCESS)
            exec = NULL;
    }
    if (drawn) (void)d->cu->cuGraphDestroy(drawn);
    pthread_mutex_unlock(&d->drafting);
    return exec;
}

/* The graph of this piece at these addresses: NULL the first time, and where it is not worth one. */
static graph *graph_for(stk_cuda *d, stk_cl_sequence *s, const stk_sequence_run *run)
{
    replays *r = s->own;
    if (!d->graphs || r->refused || stk_cuda_watches(d) ||
        s->first[run->first + run->count] - s->first[run->first] < FEWEST)
        return NULL;
    for (int32_t i = 0; i < GRAPHS; i++) {
        graph *g = &r->graph[i];
        if (!same_bindings(s, run, g)) continue;
        if (!g->exec) g->exec = capture(d, s, run);
        r->refused = !g->exec;
        return g->exec ? g : NULL;
    }
    graph *oldest = &r->graph[r->next++ % GRAPHS];
    if (oldest->exec) (void)d->cu->cuStreamSynchronize(d->queue); /* it may be running */
    drop(d, oldest);
    note_bindings(s, run, oldest);
    return NULL;
}

/* ---- running --------------------------------------------------------------------------------------------- */

/* From pinned memory of which every run that may be under way has a piece. */
static int write_uniforms(stk_cuda *d, stk_cl_sequence *s, const stk_sequence_run *run)
{
    replays *r = s->own;
    char *mine = r->numbers + (size_t)(r->written++ % MOST_AHEAD) * r->bytes;
    memcpy(mine, run->uniforms, run->uniform_bytes);
    CUdeviceptr to = (CUdeviceptr)stk_cl_given(s->uniforms.block) + (CUdeviceptr)s->uniforms.offset;
    return d->cu->cuMemcpyHtoDAsync_v2(to, mine, run->uniform_bytes, d->queue);
}

/* Every few runs a mark; the host waits for the one that is some marks back, and sees there whether all went well. */
static int keep_near(stk_cuda *d)
{
    int code = CUDA_SUCCESS;
    pthread_mutex_lock(&d->base.lock);
    if (++d->runs % STK_CUDA_MARK_RUNS == 0) {
        int64_t i = d->runs / STK_CUDA_MARK_RUNS % STK_CUDA_AHEAD;
        if (d->marked[i]) code = d->cu->cuEventSynchronize(d->mark[i]);
        stk_cuda_harvest(d);
        if (code == CUDA_SUCCESS) code = d->cu->cuEventRecord(d->mark[i], d->queue);
        d->marked[i] |= code == CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&d->base.lock);
    return code;
}

stk_status stk_cuda_run(stk_sequence *loaded, const stk_sequence_run *run, stk_error *err)
{
    stk_cl_sequence *s = (stk_cl_sequence *)loaded;
    stk_cuda *d = stk_cuda_of(s->head.device);
    int code = stk_cuda_enter(d);
    stk_cuda_watch_start(d);
    if (code == CUDA_SUCCESS && run->first == 0 && s->uniforms.block)
        code = write_uniforms(d, s, run);
    STK_TRY(stk_cuda_done(d, "the numbers of a run", code, err));
    graph *g = graph_for(d, s, run);
    if (g) {
        STK_TRY(stk_cuda_done(d, "a launch", d->cu->cuGraphLaunch(g->exec, d->queue), err));
        __atomic_add_fetch(&d->relaunched, 1, __ATOMIC_RELAXED);
    } else {
        STK_TRY(launch_all(d, s, run, d->queue, err));
    }
    return stk_cuda_done(d, "a run", keep_near(d), err);
}
