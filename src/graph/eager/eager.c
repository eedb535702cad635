/* Eager calls: find the prepared operation for these shapes (prepare.c), point its launch at the tensors, run. */
#include "graph/eager/eager.h"

#include "base/tensor.h"
#include "device/tensor_device.h"
#include "graph/run/call.h"
#include "stoker/tracing.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static stk_status find_place(stk_eager *e, stk_device *device, stk_eager_place **out,
                             stk_error *err);
static void release_place(stk_eager_place *place);

stk_status stk_eager_new(stk_device *device, stk_eager **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_eager_new: out is NULL");
    stk_eager *e = stk_calloc(1, sizeof *e);
    if (!e) return stk_fail_memory(err, "stk_eager_new", sizeof *e);
    stk_status status = STK_OK;
    stk_device *at = stk_device_retain(device);
    if (!at) status = stk_device_open("default", 0, &at, err);
    if (status == STK_OK) status = find_place(e, at, &e->at, err);
    stk_device_release(at);
    if (status == STK_OK)
        *out = e;
    else
        stk_eager_release(e);
    return status;
}

/* ---- places --------------------------------------------------------------------------------------------- */

static stk_status find_place(stk_eager *e, stk_device *device, stk_eager_place **out,
                             stk_error *err)
{
    for (int32_t i = 0; i < e->nplaces; i++)
        if (e->places[i]->device == device) {
            *out = e->places[i];
            return STK_OK;
        }
    if (e->nplaces == STK_PLACES)
        return stk_fail(err, STK_ERR_RANGE, "eager calls run on %d devices at most", STK_PLACES);
    stk_eager_place *place = stk_calloc(1, sizeof *place);
    if (!place) return stk_fail_memory(err, "eager", sizeof *place);
    place->size = 64;
    place->device = stk_device_retain(device);
    place->table = stk_calloc((size_t)place->size, sizeof *place->table);
    stk_status status = place->table ? stk_store_new(device, &place->store, err)
                                     : stk_fail_memory(err, "eager", 64 * sizeof *place->table);
    if (status == STK_OK)
        *out = e->places[e->nplaces++] = place;
    else
        release_place(place);
    return status;
}

stk_status stk_eager_move(stk_eager *e, stk_device *device, bool strict)
{
    if (!e) return STK_ERR_ARGUMENT;
    if (!device) return stk_fail(&e->error, STK_ERR_ARGUMENT, "stk_eager_move: the device is NULL");
    STK_TRY(stk_device_usable(device, &e->error));
    e->moved = true;
    e->strict = strict;
    return e->at->device == device ? STK_OK : find_place(e, device, &e->at, &e->error);
}

void stk_eager_watch(stk_eager *e, stk_eager_watcher *watcher, void *context)
{
    if (!e) return;
    e->watcher = watcher;
    e->watching = context;
}

const stk_error *stk_eager_error(const stk_eager *e)
{
    static const stk_error none = {STK_ERR_ARGUMENT, "the eager context is NULL"};
    return e ? &e->error : &none;
}

void stk_eager_set_step(stk_eager *e, int64_t step)
{
    if (e) e->step = step;
}

/* ---- results that are used again ------------------------------------------------------------------------ */

/* The context and every tensor that may come back hold one count each; whoever drops the last one frees. */
static void drop(stk_prepared *p)
{
    if (__atomic_sub_fetch(&p->living, 1, __ATOMIC_ACQ_REL) == 0) stk_prepared_free(p);
}

static bool is_own_thread(const stk_prepared *p)
{
    return pthread_equal(p->thread, pthread_self());
}

static stk_tensor *handle_of(stk_buffer *buffer) { return (stk_tensor *)(void *)(buffer + 1); }

static stk_result_pool *pool_of(stk_prepared *p, const stk_tensor *t)
{
    stk_result_pool *pool = p->results;
    if (p->nout == 1) return pool;
    stk_shape s = stk_tensor_shape(t);
    while (pool->type.dtype != t->dtype || !stk_shape_equal(&pool->type.shape, &s)) pool++;
    return pool;
}

/* The last handle of a result is gone: keep the block for the next result. Only the thread of the context keeps, so the
 * spare list needs no lock; on other threads the block really goes. */
static void recycle(stk_buffer *self)
{
    stk_prepared *p = self->owner;
    stk_result_pool *pool = pool_of(p, handle_of(self));
    if (is_own_thread(p) && !p->closed && pool->nspare < STK_EAGER_SPARE) {
        pool->spare[pool->nspare++] = handle_of(self);
        return;
    }
    pool->release(self);
    drop(p);
}

static stk_tensor *new_result(stk_prepared *p, stk_result_pool *pool, stk_error *err)
{
    stk_tensor *t = NULL;
    if (pool->nspare > 0 && is_own_thread(p)) {
        t = pool->spare[--pool->nspare];
        t->refs = t->buffer->refs = 1;
        return t;
    }
    if (stk_tensor_raw(pool->type.dtype, pool->type.shape.rank, pool->type.shape.dim, &t, err) !=
        STK_OK)
        return NULL;
    pool->release = t->buffer->release;
    __atomic_add_fetch(&p->living, 1, __ATOMIC_RELAXED);
    t->buffer->release = recycle;
    t->buffer->owner = p;
    return t;
}

static void close_prepared(stk_prepared *p)
{
    stk_program_release(p->program);
    p->program = NULL;
    p->closed = true;
    for (int32_t o = 0; o < p->nout; o++)
        while (p->results[o].nspare > 0) {
            p->results[o].release(p->results[o].spare[--p->results[o].nspare]->buffer);
            drop(p);
        }
    drop(p);
}

static void release_place(stk_eager_place *place)
{
    for (int64_t i = 0; place->table && i < place->size; i++)
        if (place->table[i]) close_prepared(place->table[i]);
    stk_free(place->table);
    stk_store_release(place->store);
    stk_device_release(place->device);
    stk_free(place);
}

void stk_eager_release(stk_eager *e)
{
    if (!e) return;
    while (e->tape) stk_tape_release(e->tape);
    for (int32_t i = 0; i < e->nplaces; i++) release_place(e->places[i]);
    stk_free(e);
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

/* An output that is an input seen with other sizes. */
static stk_tensor *view_of_input(const stk_fetch *f, stk_tensor *in)
{
    stk_tensor *v = stk_tensor_view(in);
    if (!v) return NULL;
    v->data = (char *)in->data + f->link.at.offset;
    v->rank = f->type.shape.rank;
    memcpy(v->shape, f->type.shape.dim, sizeof v->shape);
    stk_shape_strides(&f->type.shape, v->stride);
    return v;
}

static bool is_seen(const stk_device *d, const stk_tensor *t)
{
    return stk_device_shares(d) || stk_tensor_device(t) == d;
}

static stk_status make_result(stk_eager *e, stk_prepared *p, int32_t o, stk_tensor *const *in,
                              stk_tensor **out)
{
    const stk_fetch *f = &p->program->fetches[o];
    if (f->outside) {
        *out = new_result(p, &p->results[o], &e->error);
        if (*out) p->program->slots[p->nin + o] = stk_address_host((*out)->data);
    } else if (f->feed >= 0 && (!e->moved || is_seen(p->program->device, in[f->feed]))) {
        *out = view_of_input(f, in[f->feed]);
    } else {
        *out = NULL; /* a constant, or on a device of its own memory: read after the run */
        return STK_OK;
    }
    return *out ? STK_OK : stk_fail_memory(&e->error, "eager", 0);
}

/* Tensors that are on the device are taken as they are; others are sent up, as any feed. *stays: there was one of the first
 * kind, so the results stay there too. */
static stk_status feed_all(stk_program *prog, int32_t nin, stk_tensor *const *in, bool *stays,
                           stk_error *err)
{
    for (int32_t i = 0; i < nin; i++) {
        *stays |= stk_tensor_device(in[i]) == prog->device;
        STK_TRY(stk_call_input(prog, i, in[i], err));
    }
    return STK_OK;
}

/* A result in memory of its own on the device; nobody waits. */
static stk_status keep_there(stk_program *prog, int32_t o, stk_tensor **out, stk_error *err)
{
    const stk_fetch *f = &prog->fetches[o];
    stk_device *d = prog->device;
    STK_TRY(stk_tensor_on(d, f->type.dtype, &f->type.shape, out, err));
    size_t bytes = (size_t)stk_type_bytes(&f->type);
    if (!bytes) return STK_OK;
    return d->vt->queue.copy(d, stk_tensor_place(*out), stk_program_address(prog, &f->link), bytes,
                             err);
}

/* One run, without asking again what was asked when it was prepared. */
static stk_status run_now(stk_eager *e, const stk_prepared *p)
{
    stk_program *prog = p->program;
    if (!p->at_once) {
        prog->step = e->step;
        return stk_program_run(prog, 1, &e->error);
    }
    return prog->device->vt->queue.run(prog->sequence, &p->run, &e->error);
}

/* The tensors, those of devices brought to the host; release them with drop_all. */
static stk_status bring_all(int32_t nin, stk_tensor *const *in, stk_tensor **here, stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t i = 0; i < nin; i++) here[i] = NULL;
    for (int32_t i = 0; i < nin && status == STK_OK; i++)
        status = stk_tensor_to(in[i], NULL, &here[i], err);
    return status;
}

static void drop_all(int32_t nin, stk_tensor *const *here)
{
    for (int32_t i = 0; i < nin; i++) stk_tensor_release(here[i]);
}

static bool any_away(int32_t nin, stk_tensor *const *in)
{
    for (int32_t i = 0; i < nin; i++)
        if (stk_tensor_device(in[i])) return true;
    return false;
}

/* What run_prepared does, for what is simple: a 10 x 10 addition takes 20 % longer without this. */
static inline stk_status run_simple(stk_eager *e, stk_prepared *p, stk_tensor *const *in,
                                    stk_tensor **out)
{
    stk_program *prog = p->program;
    stk_tensor *y = new_result(p, p->results, &e->error);
    if (!y) return stk_fail_memory(&e->error, "eager", 0);
    for (int32_t i = 0; i < p->nin; i++) prog->slots[i] = stk_address_host(in[i]->data);
    prog->slots[p->nin] = stk_address_host(y->data);
    stk_status status = prog->device->vt->queue.run(prog->sequence, &p->run, &e->error);
    if (p->counts) e->step++;
    if (status == STK_OK)
        *out = y;
    else
        stk_tensor_release(y);
    return status;
}

static stk_status run_prepared(stk_eager *e, stk_prepared *p, stk_tensor *const *in,
                               stk_tensor **out)
{
    if (p->simple) return run_simple(e, p, in, out);
    stk_program *prog = p->program;
    stk_status status = STK_OK;
    int32_t made = 0;
    bool stays = e->moved, shares = stk_device_shares(prog->device);
    if (shares)
        for (int32_t i = 0; i < p->nin; i++) prog->slots[i] = stk_address_host(in[i]->data);
    else
        status = feed_all(prog, p->nin, in, &stays, &e->error);
    for (; made < p->nout && status == STK_OK; made++)
        status = make_result(e, p, made, in, &out[made]);
    if (status == STK_OK) status = run_now(e, p);
    if (p->counts) e->step++;
    for (int32_t o = 0; o < p->nout && status == STK_OK; o++)
        if (!out[o])
            status = stays && !shares ? keep_there(prog, o, &out[o], &e->error)
                                      : stk_program_fetch(prog, o, &out[o], &e->error);
    if (status == STK_OK && !shares) /* a result may be an input passed through: used until here */
        status = stk_feeds_used(prog, &e->error);
    for (int32_t o = 0; o < made && status != STK_OK; o++) stk_tensor_release(out[o]);
    return status;
}

/* As run_prepared, where tensors may be anywhere and somebody may want to hear of it. */
static stk_status run_anywhere(stk_eager *e, stk_prepared *p, const char *op, stk_tensor *const *in,
                               stk_tensor **out)
{
    stk_tensor *here[STK_EAGER_INPUTS];
    bool down = stk_device_shares(p->program->device) && any_away(p->nin, in);
    stk_status status = down ? bring_all(p->nin, in, here, &e->error) : STK_OK;
    if (status == STK_OK) status = run_prepared(e, p, down ? here : in, out);
    if (down) drop_all(p->nin, here);
    if (status == STK_OK && e->watcher) e->watcher(e->watching, op, p->program->device, NULL);
    return status;
}

static bool all_dense(int32_t nin, stk_tensor *const *in)
{
    for (int32_t i = 0; i < nin; i++)
        if (!stk_tensor_is_dense(in[i])) return false;
    return true;
}

static stk_status check_arguments(stk_eager *e, const char *who, int32_t nin, stk_tensor *const *in,
                                  stk_tensor **out)
{
    if (nin < 0 || nin > STK_EAGER_INPUTS || (nin && !in) || !out)
        return stk_fail(&e->error, STK_ERR_ARGUMENT,
                        "%s: %d inputs; 0 to %d and a place for the result", who, nin,
                        STK_EAGER_INPUTS);
    for (int32_t i = 0; i < nin; i++)
        if (!in[i]) return stk_fail(&e->error, STK_ERR_ARGUMENT, "%s: input %d is NULL", who, i);
    return STK_OK;
}

static stk_status apply_elsewhere(stk_eager *e, stk_prepared *p, const stk_recipe *r, int32_t nin,
                                  stk_tensor *const *in, stk_tensor **out, int32_t *nout);

static stk_status apply(stk_eager *e, const stk_recipe *r, int32_t nin, stk_tensor *const *in,
                        stk_tensor **out, int32_t *nout)
{
    stk_prepared *p = NULL;
    STK_TRY(stk_eager_prepare(e, r, nin, in, &p));
    if (p->lacks) return apply_elsewhere(e, p, r, nin, in, out, nout);
    if (!r->build && !r->keyed) e->at->recent[r->op] = p;
    STK_TRY(e->moved ? run_anywhere(e, p, stk_recipe_name(r), in, out)
                     : run_prepared(e, p, in, out));
    *nout = p->nout;
    return STK_OK;
}

/* The device lacks a part of this: all of it runs on the CPU. */
static stk_status apply_elsewhere(stk_eager *e, stk_prepared *p, const stk_recipe *r, int32_t nin,
                                  stk_tensor *const *in, stk_tensor **out, int32_t *nout)
{
    const stk_island *lacks = &p->program->islands.rows[0];
    stk_eager_place *wanted = e->at;
    if (e->strict)
        return stk_fail(&e->error, STK_ERR_UNSUPPORTED, "%s has no kernel for %s %s: %s",
                        wanted->device->name, lacks->op, lacks->shape, lacks->reason);
    if (!p->told && e->watcher)
        e->watcher(e->watching, stk_recipe_name(r), wanted->device, lacks->reason);
    p->told = true;
    stk_device *cpu = NULL;
    STK_TRY(stk_device_open("cpu:0", 0, &cpu, &e->error));
    stk_status status = find_place(e, cpu, &e->at, &e->error);
    stk_device_release(cpu);
    if (status == STK_OK) status = apply(e, r, nin, in, out, nout);
    e->at = wanted;
    return status;
}

/* Strided inputs are made dense first; everything else sees only dense ones. */
static stk_status with_dense(stk_eager *e, const stk_recipe *r, int32_t nin, stk_tensor *const *in,
                             stk_tensor **out, int32_t *nout)
{
    if (all_dense(nin, in)) return apply(e, r, nin, in, out, nout);
    stk_tensor *dense[STK_EAGER_INPUTS] = {0};
    stk_status status = STK_OK;
    for (int32_t i = 0; i < nin && status == STK_OK; i++)
        if (stk_tensor_device(in[i])) /* always is */
            dense[i] = stk_tensor_retain(in[i]);
        else
            status = stk_tensor_dense(in[i], &dense[i], &e->error);
    if (status == STK_OK) status = apply(e, r, nin, dense, out, nout);
    for (int32_t i = 0; i < nin; i++) stk_tensor_release(dense[i]);
    return status;
}

/* Is this the operation that p was prepared for? The common case of a loop: asked before anything is hashed. */
static bool fits(const stk_prepared *p, int32_t nin, stk_tensor *const *in, const stk_attrs *attrs)
{
    const int64_t *want = p->signature + p->attributes_at;
    if (p->nin != nin || (attrs != NULL) != (p->attributes_at < p->nsignature)) return false;
    for (int32_t i = 0; i < nin; i++) {
        const stk_type *type = &p->program->feeds[i].type;
        const stk_tensor *t = in[i];
        if (!t || t->dtype != type->dtype || t->rank != type->shape.rank) return false;
        int64_t step = 1;
        for (int32_t d = t->rank - 1; d >= 0; d--) { /* and dense */
            if (t->shape[d] != type->shape.dim[d] || (t->stride[d] != step && t->shape[d] != 1))
                return false;
            step *= t->shape[d];
        }
    }
    if (!attrs) return true;
    if (*want++ != attrs->nints ||
        p->attributes_at + 1 + attrs->nints + attrs->nreals != p->nsignature)
        return false;
    for (int32_t i = 0; i < attrs->nints; i++)
        if (*want++ != attrs->ints[i]) return false;
    return !attrs->nreals || !memcmp(want, attrs->reals, (size_t)attrs->nreals * sizeof *want);
}

stk_status stk_eager_apply(stk_eager *e, stk_op op, int32_t nin, stk_tensor *const *in,
                           const stk_attrs *attrs, stk_tensor **out)
{
    int32_t nout = 0;
    stk_tensor *result[STK_EAGER_OUTPUTS];
    if (!e) return STK_ERR_ARGUMENT;
    stk_prepared *p = (unsigned)op < STK_OP_COUNT ? e->at->recent[op] : NULL;
    if (p && out && in && fits(p, nin, in, attrs)) {
        if (p->simple && !e->moved && !e->tape) return run_simple(e, p, in, out);
        STK_TRY(e->moved ? run_anywhere(e, p, stk_op_name(op), in, result)
                         : run_prepared(e, p, in, result));
        nout = p->nout;
    } else {
        if (!stk_op_row_of(op))
            return stk_fail(&e->error, STK_ERR_ARGUMENT, "op number %d does not exist", (int)op);
        STK_TRY(check_arguments(e, stk_op_name(op), nin, in, out));
        STK_TRY(with_dense(e, &(stk_recipe){.op = op, .attrs = attrs}, nin, in, result, &nout));
    }
    stk_status status = e->tape ? stk_tape_note(e, op, nin, in, attrs, nout, result) : STK_OK;
    for (int32_t o = 0; o < nout; o++) {
        if (status == STK_OK)
            out[o] = result[o];
        else
            stk_tensor_release(result[o]);
    }
    return status;
}

/* A tape wants to see the single operations. */
static stk_status call_by_nodes(stk_eager *e, const stk_recipe *r, int32_t nin,
                                stk_tensor *const *in, stk_tensor **out, int32_t *nout)
{
    stk_graph *g = NULL;
    stk_val y[STK_EAGER_OUTPUTS];
    STK_TRY(stk_recipe_graph(&g, r, nin, in, &e->error));
    stk_tensor **known = stk_calloc((size_t)g->nvalues, sizeof *known);
    stk_status status = known ? STK_OK : stk_fail_memory(&e->error, "eager", 0);
    int32_t n = (int32_t)g->noutputs;
    for (int32_t o = 0; o < n; o++) y[o] = g->outputs[o].val;
    for (int32_t i = 0; i < nin && status == STK_OK; i++) known[i + 1] = stk_tensor_retain(in[i]);
    if (status == STK_OK) status = stk_eager_interpret(e, g, known, n, y);
    for (int32_t o = 0; o < n && status == STK_OK; o++) out[o] = stk_tensor_retain(known[y[o]]);
    *nout = n;
    for (int64_t v = 0; known && v < g->nvalues; v++) stk_tensor_release(known[v]);
    stk_free(known);
    stk_graph_release(g);
    return status;
}

static bool is_taped(const stk_eager *e, int32_t nin, stk_tensor *const *in)
{
    for (const stk_tape *tape = e->tape; tape; tape = tape->outer)
        for (int32_t i = 0; i < nin && !tape->paused; i++)
            if (stk_tape_watches(tape, in[i])) return true;
    return false;
}

stk_status stk_eager_call(stk_eager *e, stk_eager_build build, void *context, int32_t nin,
                          stk_tensor *const *in, stk_tensor **out)
{
    int32_t nout = 0;
    stk_tensor *result[STK_EAGER_OUTPUTS];
    stk_recipe r = {.op = STK_OP_COUNT, .build = build, .context = context};
    if (!e) return STK_ERR_ARGUMENT;
    if (!build) return stk_fail(&e->error, STK_ERR_ARGUMENT, "stk_eager_call: build is NULL");
    STK_TRY(check_arguments(e, "stk_eager_call", nin, in, out));
    if (is_taped(e, nin, in))
        STK_TRY(call_by_nodes(e, &r, nin, in, result, &nout));
    else
        STK_TRY(with_dense(e, &r, nin, in, result, &nout));
    *out = result[0];
    return STK_OK;
}

stk_status stk_eager_built(stk_eager *e, stk_keyed_build *build, const stk_attrs *key, int32_t nin,
                           stk_tensor *const *in, int32_t *nout, stk_tensor **out)
{
    if (!e) return STK_ERR_ARGUMENT;
    stk_recipe r = {.op = STK_OP_COUNT, .keyed = build, .attrs = key};
    if (!build || !nout)
        return stk_fail(&e->error, STK_ERR_ARGUMENT,
                        "stk_eager_built: build and nout must be given");
    STK_TRY(check_arguments(e, "stk_eager_built", nin, in, out));
    return is_taped(e, nin, in) ? call_by_nodes(e, &r, nin, in, out, nout)
                                : with_dense(e, &r, nin, in, out, nout);
}
