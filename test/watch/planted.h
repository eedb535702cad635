/* planted.h - training jobs with a fault in them that is known: real programs, real threads and queues, real sleeps. A
 * plant describes one; planted_job makes a job for the doctor of it. */
#ifndef STK_TEST_PLANTED_H
#define STK_TEST_PLANTED_H

#include "check.h"

#include "base/clock.h"
#include "base/queue.h"
#include "stoker/graph.h"
#include "stoker/nn.h"
#include "stoker/watch.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

typedef enum plant_net { NET_MLP, NET_CONV, NET_EMBEDDING, NET_TINY_OPS } plant_net;

typedef struct plant {
    const char *name;
    plant_net net;
    int64_t batch, in, hidden;
    int32_t threads;  /* of its programs; 0: all */
    bool fixed_batch; /* the doctor may not change it */
    bool reference;   /* slow kernels, until somebody elects */
    bool doubles;     /* batches come as float64 and are converted at each feed */
    /* input, milliseconds per batch */
    double read_ms, map_ms, spin_ms, shuffle_ms;
    const char *read_name, *map_name;
    int64_t prefetch, workers, shuffle_every;
    int64_t cache_mib,
        data_mib;     /* data_mib > 0: there is a cache, and this is what would fit all */
    bool fixed_input; /* prefetch and workers cannot be changed */
    /* between the steps */
    double metrics_ms, callback_ms, host_ms;
    int64_t read_every, callback_every;
    /* start */
    int64_t builds,
        plan_steps; /* programs built again in the first steps; steps of the whole run */
} plant;

enum { PLANTED_CLASSES = 10, PLANTED_ROWS = 150000, PLANTED_EPOCH = 8 };

typedef struct planted {
    const plant *plant;
    stk_job job;
    stk_store *store;
    stk_tensor *saved[16];
} planted;

typedef struct planted_variant {
    const plant *plant;
    stk_job_settings s;
    stk_program *program;
    stk_graph *graph;
    stk_tensor *x, *y;
    int64_t batch, step, produced;
    stk_queue *queue; /* NULL: batches are made by the step's own thread */
    pthread_t thread[32];
    int threads;
    bool stop;
    int64_t read_ns, map_ns, shuffle_ns, made; /* atomics */
} planted_variant;

/* Under a sanitizer arithmetic costs what it never costs else: only faults made of sleep are true there. */

/* ---- time ------------------------------------------------------------------------------------------------- */

static inline void planted_sleep(double ms)
{
    if (ms <= 0) return;
    if (INSTRUMENTED) ms *= 3; /* as the rest */
    struct timespec t = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    nanosleep(&t, NULL);
}
static inline int64_t planted_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline void planted_spin(double ms)
{
    volatile double sink = 1;
    for (int64_t until = planted_cpu_ns() + (int64_t)(ms * 1e6); planted_cpu_ns() < until;)
        for (int i = 0; i < 200; i++) sink = sink * 1.0000001;
}

/* ---- input -------------------------------------------------------------------------------------------------- */

static inline int64_t planted_value(const planted_variant *l, stk_knob k, int64_t as_is)
{
    return l->s.value[k] == STK_AS_IS ? as_is : l->s.value[k];
}

static inline bool planted_cached(const planted_variant *l, int64_t index)
{
    if (!l->plant->data_mib) return false;
    int64_t cache = planted_value(l, STK_KNOB_CACHE, l->plant->cache_mib);
    return index % PLANTED_EPOCH < cache * PLANTED_EPOCH / l->plant->data_mib;
}

static inline void planted_make(planted_variant *l)
{
    const plant *p = l->plant;
    int64_t index = __atomic_fetch_add(&l->produced, 1, __ATOMIC_RELAXED);
    double scale = (double)l->batch / (double)p->batch;
    int64_t t0 = stk_now_ns();
    if (!planted_cached(l, index)) planted_sleep(p->read_ms * scale);
    int64_t t1 = stk_now_ns();
    planted_sleep(p->map_ms * scale);
    planted_spin(p->spin_ms * scale);
    int64_t t2 = stk_now_ns();
    if (p->shuffle_every && index % p->shuffle_every == 0) planted_sleep(p->shuffle_ms * scale);
    int64_t t3 = stk_now_ns();
    __atomic_fetch_add(&l->read_ns, t1 - t0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->map_ns, t2 - t1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->shuffle_ns, t3 - t2, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->made, 1, __ATOMIC_RELAXED);
}

static void *planted_producer(void *argument)
{
    planted_variant *l = argument;
    int token = 1;
    while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        planted_make(l);
        if (stk_queue_push(l->queue, &token) != STK_QUEUE_DONE) break;
    }
    return NULL;
}

static inline stk_status planted_start_input(planted_variant *l, stk_error *err)
{
    int64_t ahead = planted_value(l, STK_KNOB_PREFETCH, l->plant->prefetch);
    int64_t workers = planted_value(l, STK_KNOB_WORKERS, l->plant->workers);
    bool idle = l->s.value[STK_KNOB_FREE_INPUT] == 1;
    if (workers < 1) workers = 1;
    if ((ahead < 1 && workers < 2) || idle) return STK_OK;
    if (ahead < workers) ahead = workers;
    stk_status status = stk_queue_new(sizeof(int), ahead, &l->queue, err);
    for (; status == STK_OK && l->threads < workers && l->threads < 32; l->threads++)
        if (pthread_create(&l->thread[l->threads], NULL, planted_producer, l)) break;
    return status;
}

static inline void planted_next(planted_variant *l)
{
    int token;
    if (l->s.value[STK_KNOB_FREE_INPUT] == 1) return;
    stk_watch_begin(STK_BOOK_INPUT);
    if (l->queue)
        (void)stk_queue_pop(l->queue, &token);
    else
        planted_make(l);
    stk_watch_end(STK_BOOK_INPUT);
}

/* ---- models --------------------------------------------------------------------------------------------------- */

static inline stk_val planted_dense(stk_graph *g, stk_val x, int64_t out, const char *name,
                                    stk_val *w)
{
    *w = stk_g_variable(g, name, STK_F32, 2, (int64_t[]){stk_g_dim(g, x, 1), out});
    return stk_g_matmul(g, x, *w);
}

static inline stk_val planted_logits(stk_graph *g, const plant *p, stk_val x, stk_val *w,
                                     int32_t *n)
{
    if (p->net == NET_CONV) {
        w[(*n)++] = stk_g_variable(g, "k", STK_F32, 4, (int64_t[]){3, 3, 8, p->hidden});
        x = stk_g_relu(g, stk_g_conv(g, x, w[0], NULL));
        w[(*n)++] = stk_g_variable(g, "k2", STK_F32, 4, (int64_t[]){3, 3, p->hidden, p->hidden});
        x = stk_g_global_avg_pool(g, stk_g_relu(g, stk_g_conv(g, x, w[1], NULL)), false);
    } else if (p->net == NET_EMBEDDING) {
        w[(*n)++] = stk_g_variable(g, "table", STK_F32, 2, (int64_t[]){PLANTED_ROWS, p->hidden});
        x = stk_g_gather(g, w[0], x, 0);
    } else if (p->net == NET_TINY_OPS) {
        x = planted_dense(g, x, 4, "w0", &w[(*n)++]);
        for (int i = 0; i < 60; i++)
            x = stk_g_matmul(g, stk_g_softmax(g, x, 1),
                             stk_g_transpose(g, stk_g_softmax(g, x, 1), NULL));
    } else {
        x = stk_g_relu(g, planted_dense(g, x, p->hidden, "w0", &w[(*n)++]));
        x = stk_g_tanh(g, planted_dense(g, x, p->hidden, "w1", &w[(*n)++]));
    }
    return planted_dense(g, x, PLANTED_CLASSES, "last", &w[(*n)++]);
}

static inline stk_status planted_build(planted_variant *l, stk_store *store, stk_program **out,
                                       stk_error *err)
{
    const plant *p = l->plant;
    stk_graph *g = NULL;
    stk_val w[8], dw[8], x;
    int32_t n = 0;
    STK_TRY(stk_graph_new(&g, err));
    if (p->net == NET_CONV)
        x = stk_g_input(g, "x", STK_F32, 4, (int64_t[]){l->batch, p->in, p->in, 8});
    else if (p->net == NET_EMBEDDING)
        x = stk_g_input(g, "x", STK_I32, 1, &l->batch);
    else
        x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){l->batch, p->in});
    stk_val y = stk_g_input(g, "y", STK_I32, 1, &l->batch);
    stk_val logits = planted_logits(g, p, x, w, &n);
    stk_val loss = stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, logits, y));
    stk_g_gradients(g, loss, n, w, dw);
    for (int32_t i = 0; i < n; i++)
        stk_g_assign(g, w[i],
                     stk_g_sub(g, w[i], stk_g_mul(g, dw[i], stk_g_scalar(g, STK_F32, 1e-3))));
    stk_g_output(g, "loss", loss);
    stk_program_options o = stk_program_options_defaults();
    o.store = store;
    o.threads = p->threads;
    o.ref = p->reference && l->s.value[STK_KNOB_ELECTED] != 1;
    stk_status status = stk_program_new(g, &o, out, err);
    stk_graph_release(g);
    return status;
}

static inline stk_status planted_batch(planted_variant *l, stk_error *err)
{
    const plant *p = l->plant;
    bool wide = p->doubles && l->s.value[STK_KNOB_NATIVE_INPUT] != 1;
    stk_dtype dtype = p->net == NET_EMBEDDING ? STK_I32 : wide ? STK_F64 : STK_F32;
    int64_t shape[4] = {l->batch, p->in, p->in, 8};
    int32_t rank = p->net == NET_CONV ? 4 : p->net == NET_EMBEDDING ? 1 : 2;
    STK_TRY(stk_tensor_new(dtype, rank, shape, &l->x, err));
    STK_TRY(stk_tensor_new(STK_I32, 1, &l->batch, &l->y, err));
    int64_t count = stk_tensor_count(l->x);
    for (int64_t i = 0; i < count; i++) {
        double v = p->net == NET_EMBEDDING ? (double)(i * 7919 % PLANTED_ROWS)
                                           : (double)(i * 37 % 101) / 101 - 0.5;
        if (dtype == STK_F32)
            ((float *)l->x->data)[i] = (float)v;
        else
            STK_TRY(stk_tensor_set(l->x, i, v, err));
    }
    for (int64_t i = 0; i < l->batch; i++)
        ((int32_t *)l->y->data)[i] = (int32_t)(i % PLANTED_CLASSES);
    return STK_OK;
}

/* ---- the job's functions ---------------------------------------------------------------------------------------- */

static void planted_close(void *context, void *variant)
{
    planted_variant *l = variant;
    (void)context;
    __atomic_store_n(&l->stop, true, __ATOMIC_RELEASE);
    if (l->queue) stk_queue_close(l->queue);
    for (int i = 0; i < l->threads; i++) pthread_join(l->thread[i], NULL);
    stk_queue_release(l->queue);
    stk_program_release(l->program);
    stk_tensor_release(l->x);
    stk_tensor_release(l->y);
    stk_free(l);
}

static stk_status planted_open(void *context, const stk_job_settings *s, void **variant,
                               stk_error *err)
{
    planted *self = context;
    planted_variant *l = stk_calloc(1, sizeof *l);
    if (!l) return STK_ERR_MEMORY;
    l->plant = self->plant;
    l->s = *s;
    l->batch = planted_value(l, STK_KNOB_BATCH, self->plant->batch);
    stk_status status = planted_batch(l, err);
    if (status == STK_OK) status = planted_build(l, self->store, &l->program, err);
    if (status == STK_OK) status = planted_start_input(l, err);
    if (status == STK_OK)
        *variant = l;
    else
        planted_close(context, l);
    return status;
}

static inline stk_status planted_results(planted_variant *l, stk_error *err)
{
    const plant *p = l->plant;
    int64_t every = planted_value(l, STK_KNOB_READ_EVERY, p->read_every);
    if (every > 0 && l->step % every == 0) {
        stk_tensor *loss = NULL;
        stk_watch_begin(STK_BOOK_SYNC); /* what a device's round trip would take */
        planted_sleep(p->metrics_ms);
        stk_watch_end(STK_BOOK_SYNC);
        STK_TRY(stk_program_read(l->program, "loss", &loss, err));
        stk_tensor_release(loss);
    }
    every = planted_value(l, STK_KNOB_CALLBACK_EVERY, p->callback_every);
    if (every > 0 && l->step % every == 0 && l->s.value[STK_KNOB_FREE_CALLBACKS] != 1) {
        stk_watch_begin(STK_BOOK_CALLBACKS);
        planted_sleep(p->callback_ms);
        stk_watch_end(STK_BOOK_CALLBACKS);
    }
    return STK_OK;
}

static inline stk_status planted_step(planted *self, planted_variant *l, stk_error *err)
{
    const plant *p = l->plant;
    planted_next(l);
    if (l->s.value[STK_KNOB_FREE_MODEL] == 1) return STK_OK;
    if (l->step < p->builds) { /* shapes that change: everything is built again */
        stk_program *again = NULL;
        STK_TRY(planted_build(l, self->store, &again, err));
        stk_program_release(again);
    }
    STK_TRY(stk_program_feed(l->program, "x", l->x, err));
    STK_TRY(stk_program_feed(l->program, "y", l->y, err));
    if (p->host_ms > 0 && l->s.value[STK_KNOB_FREE_HOST] != 1) {
        stk_watch_begin(STK_BOOK_HOST);
        planted_sleep(p->host_ms);
        stk_watch_end(STK_BOOK_HOST);
    }
    STK_TRY(stk_program_run(l->program, 1, err));
    STK_TRY(planted_results(l, err));
    l->step++;
    return STK_OK;
}

static stk_status planted_run(void *context, void *variant, int64_t steps, stk_error *err)
{
    stk_watch_step(0);
    stk_watch_step(1);
    for (int64_t i = 0; i < steps; i++) {
        STK_TRY(planted_step(context, variant, err));
        stk_watch_step(1);
    }
    return STK_OK;
}

static int32_t planted_stages(void *context, void *variant, stk_watch_stage *out, int32_t most)
{
    planted_variant *l = variant;
    const plant *p = l->plant;
    int32_t workers = l->threads ? l->threads : 1, n = 0;
    int64_t made = __atomic_load_n(&l->made, __ATOMIC_RELAXED);
    (void)context;
    if (most < 3 || !made) return 0;
    out[n] = (stk_watch_stage){.kind = STK_STAGE_STORAGE, .workers = workers, .elements = made};
    snprintf(out[n].name, sizeof out[n].name, "%s", p->read_name ? p->read_name : "read");
    out[n++].busy_seconds = (double)l->read_ns * 1e-9;
    out[n] = (stk_watch_stage){.kind = STK_STAGE_COMPUTE, .workers = workers, .elements = made};
    snprintf(out[n].name, sizeof out[n].name, "%s", p->map_name ? p->map_name : "map");
    out[n++].busy_seconds = (double)l->map_ns * 1e-9;
    if (!p->shuffle_every) return n;
    out[n] = (stk_watch_stage){.kind = STK_STAGE_BUFFER, .workers = workers, .elements = made};
    snprintf(out[n].name, sizeof out[n].name, "shuffle");
    out[n++].busy_seconds = (double)l->shuffle_ns * 1e-9;
    return n;
}

static inline void planted_forget(planted *self)
{
    for (int i = 0; i < 16; i++) {
        stk_tensor_release(self->saved[i]);
        self->saved[i] = NULL;
    }
}
static stk_status planted_save(void *context, stk_error *err)
{
    planted *self = context;
    planted_forget(self);
    for (int32_t i = 0; i < stk_store_count(self->store) && i < 16; i++)
        STK_TRY(stk_store_get(self->store, stk_store_name(self->store, i), &self->saved[i], err));
    return STK_OK;
}
static stk_status planted_restore(void *context, stk_error *err)
{
    planted *self = context;
    for (int32_t i = 0; i < stk_store_count(self->store) && i < 16; i++)
        if (self->saved[i])
            STK_TRY(
                stk_store_set(self->store, stk_store_name(self->store, i), self->saved[i], err));
    return STK_OK;
}

static inline void planted_offer(stk_job *job, stk_knob k, int64_t current, int64_t most)
{
    job->knob[k] = (stk_job_knob){true, current, most};
}

static inline stk_status planted_job(const plant *p, planted *self, stk_error *err)
{
    *self = (planted){.plant = p};
    stk_device *device = NULL;
    STK_TRY(stk_device_open("default", 0, &device, err));
    stk_status status = stk_store_new(device, &self->store, err);
    stk_device_release(device);
    STK_TRY(status);
    stk_job *j = &self->job;
    *j = (stk_job){.context = self,
                   .name = p->name,
                   .batch = p->batch,
                   .plan_steps = p->plan_steps,
                   .open = planted_open,
                   .run = planted_run,
                   .close = planted_close,
                   .save = planted_save,
                   .restore = planted_restore,
                   .stages = planted_stages};
    planted_offer(j, STK_KNOB_FREE_INPUT, 0, 1);
    planted_offer(j, STK_KNOB_FREE_MODEL, 0, 1);
    if (!p->fixed_batch) planted_offer(j, STK_KNOB_BATCH, p->batch, 0);
    if (!p->fixed_input) {
        planted_offer(j, STK_KNOB_PREFETCH, p->prefetch, 64);
        planted_offer(j, STK_KNOB_WORKERS, p->workers > 0 ? p->workers : 1, 4);
    }
    if (p->data_mib) planted_offer(j, STK_KNOB_CACHE, p->cache_mib, p->data_mib);
    if (p->read_every) planted_offer(j, STK_KNOB_READ_EVERY, p->read_every, 0);
    if (p->callback_every) planted_offer(j, STK_KNOB_CALLBACK_EVERY, p->callback_every, 0);
    if (p->callback_every) planted_offer(j, STK_KNOB_FREE_CALLBACKS, 0, 1);
    if (p->host_ms > 0) planted_offer(j, STK_KNOB_FREE_HOST, 0, 1);
    if (p->doubles) planted_offer(j, STK_KNOB_NATIVE_INPUT, 0, 1);
    if (p->reference) planted_offer(j, STK_KNOB_ELECTED, 0, 1);
    return STK_OK;
}

static inline void planted_release(planted *self)
{
    planted_forget(self);
    stk_store_release(self->store);
}

#endif
