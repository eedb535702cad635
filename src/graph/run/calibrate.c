/* calibrate.c - what a device can do, measured through the same doors that programs use: so it means the same for every device.
 * And what follows from it for a program: each task takes at least a launch, its arithmetic or its traffic, whichever is
 * longest. */
#include "stoker/calibrate.h"

#include "base/cache_path.h"
#include "base/clock.h"
#include "graph/run/program.h"
#include "stoker/version.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHAIN = 33, MANY = 32, SIDE = 512, LONG = 1 << 20, COPY = 8 << 20 };

/* ---- programs to be timed ---------------------------------------------------------------------------------- */

/* n small products, each of which needs the one before. */
static void build_chain(stk_graph *g, int64_t n)
{
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){8, 8});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){8, 8});
    for (int64_t i = 0; i < n; i++) x = stk_g_matmul(g, x, w);
    stk_g_output(g, "y", x);
}

static void build_product(stk_graph *g, int64_t n)
{
    stk_val a = stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){n, n});
    stk_val b = stk_g_variable(g, "b", STK_F32, 2, (int64_t[]){n, n});
    stk_g_output(g, "y", stk_g_matmul(g, a, b));
}

/* Reads two arrays, writes one. */
static void build_elementwise(stk_graph *g, int64_t n)
{
    stk_val a = stk_g_variable(g, "a", STK_F32, 1, &n), b = stk_g_variable(g, "b", STK_F32, 1, &n);
    stk_g_output(g, "y", stk_g_add(g, stk_g_mul(g, a, b), a));
}

static stk_status prepare(stk_device *d, void (*build)(stk_graph *, int64_t), int64_t n,
                          stk_program **out, stk_error *err)
{
    stk_graph *g = NULL;
    stk_tensor *x = NULL;
    stk_program_options o = {.device = d};
    STK_TRY(stk_graph_new(&g, err));
    build(g, n);
    stk_status status = stk_program_new(g, &o, out, err);
    stk_graph_release(g);
    if (status == STK_OK && (*out)->nfeeds) {
        status = stk_tensor_new(STK_F32, 2, (int64_t[]){8, 8}, &x, err);
        if (status == STK_OK) status = stk_program_feed(*out, "x", x, err);
        stk_tensor_release(x);
    }
    return status;
}

/* ---- timing -------------------------------------------------------------------------------------------------- */

typedef struct timing {
    stk_device *d;
    stk_program *p;
    stk_address at;
    void *plain, *pinned;
    stk_event *done;
} timing;

static stk_status run_and_wait(timing *t, stk_error *err)
{
    STK_TRY(stk_program_run(t->p, 1, err));
    return t->d->vt->queue.wait(t->d, err);
}

static stk_status run_many(timing *t, stk_error *err)
{
    STK_TRY(stk_program_run(t->p, MANY, err));
    return t->d->vt->queue.wait(t->d, err);
}

static stk_status run_and_read(timing *t, stk_error *err)
{
    float y = 0;
    STK_TRY(stk_program_run(t->p, 1, err));
    return t->d->vt->queue.get(t->d, &y, stk_program_address(t->p, &t->p->fetches[0].link),
                               sizeof y, err);
}

static stk_status copy_up(timing *t, stk_error *err)
{
    return t->d->vt->queue.set(t->d, t->at, t->plain, COPY, err);
}
static stk_status copy_down(timing *t, stk_error *err)
{
    return t->d->vt->queue.get(t->d, t->plain, t->at, COPY, err);
}
static stk_status copy_pinned(timing *t, stk_error *err)
{
    STK_TRY(t->d->vt->queue.send(t->d, t->at, t->pinned, COPY, NULL, t->done, err));
    return t->d->vt->queue.join(t->d, t->done, err);
}

/* The least of several, for at most a tenth of a second: what it takes when nobody disturbs. */
static stk_status least(stk_status (*work)(timing *t, stk_error *err), timing *t, double *seconds,
                        stk_error *err)
{
    enum { MOST_TURNS = 200, LEAST_TURNS = 3 };
    int64_t begun = stk_now_ns();
    *seconds = INFINITY;
    for (int i = 0; i < MOST_TURNS; i++) {
        int64_t start = stk_now_ns();
        if (i >= LEAST_TURNS && start - begun > 100000000) break;
        STK_TRY(work(t, err));
        if (i) *seconds = fmin(*seconds, (double)(stk_now_ns() - start) * 1e-9);
    }
    return STK_OK;
}

static stk_status time_program(stk_device *d, void (*build)(stk_graph *, int64_t), int64_t n,
                               stk_status (*work)(timing *t, stk_error *err), double *seconds,
                               stk_error *err)
{
    timing t = {.d = d};
    stk_status status = prepare(d, build, n, &t.p, err);
    if (status == STK_OK) status = least(work, &t, seconds, err);
    stk_program_release(t.p);
    return status;
}

static stk_status time_copies(stk_device *d, stk_calibration *c, stk_error *err)
{
    double up = 0, down = 0, pinned = 0;
    if (stk_device_shares(d)) return STK_OK;
    stk_block *block = d->vt->memory.alloc(d, COPY);
    timing t = {.d = d, .at = stk_address_of(block, 0), .plain = stk_calloc(1, COPY)};
    t.pinned = d->vt->memory.host_alloc(d, COPY);
    t.done = d->vt->queue.event_new(d);
    stk_status status =
        block && t.plain && t.pinned && t.done ? STK_OK : stk_fail_memory(err, "calibration", COPY);
    if (status == STK_OK) status = least(copy_up, &t, &up, err);
    if (status == STK_OK) status = least(copy_down, &t, &down, err);
    if (status == STK_OK) status = least(copy_pinned, &t, &pinned, err);
    if (status == STK_OK) {
        c->up = COPY / up;
        c->down = COPY / down;
        c->up_pinned = COPY / pinned;
    }
    if (t.done) d->vt->queue.event_free(d, t.done);
    if (t.pinned) d->vt->memory.host_free(d, t.pinned, COPY);
    if (block) d->vt->memory.free(block);
    stk_free(t.plain);
    return status;
}

static stk_status measure(stk_device *d, stk_calibration *c, stk_error *err)
{
    double one = 0, many = 0, product = 0, walk = 0;
    *c = (stk_calibration){0};
    STK_TRY(time_program(d, build_chain, 1, run_and_wait, &one, err));
    STK_TRY(time_program(d, build_chain, CHAIN, run_and_wait, &many, err));
    STK_TRY(time_program(d, build_chain, 1, run_many, &c->run, err));
    STK_TRY(time_program(d, build_chain, 1, run_and_read, &c->round_trip, err));
    STK_TRY(time_program(d, build_product, SIDE, run_and_wait, &product, err));
    STK_TRY(time_program(d, build_elementwise, LONG, run_and_wait, &walk, err));
    STK_TRY(time_copies(d, c, err));
    c->run /= MANY;
    c->launch = fmax((many - one) / (CHAIN - 1), 1e-9);
    c->flops = 2.0 * SIDE * SIDE * SIDE / product;
    c->bytes = 3.0 * LONG * sizeof(float) / walk;
    return STK_OK;
}

/* ---- kept ------------------------------------------------------------------------------------------------------ */

static bool kept_path(stk_device *d, char *path, size_t size)
{
    stk_device_report about;
    stk_device_describe(d, &about);
    uint32_t hash = 2166136261u;
    char key[512], name[128];
    snprintf(key, sizeof key, "%s|%s|%d|%s", about.name, about.detail, about.threads,
             stk_version());
    for (const char *c = key; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    snprintf(name, sizeof name, "calibration/%08x.txt", hash);
    return stk_cache_path(name, path, size);
}

static bool read_kept(const char *path, stk_calibration *c)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    int n = fscanf(f, "stoker calibration 2 %lg %lg %lg %lg %lg %lg %lg %lg", &c->launch, &c->run,
                   &c->round_trip, &c->up, &c->down, &c->up_pinned, &c->flops, &c->bytes);
    fclose(f);
    return n == 8 && c->launch > 0 && c->flops > 0 && c->bytes > 0;
}

/* A cache: what cannot be written is measured again next time. */
static void write_kept(const char *path, const stk_calibration *c)
{
    char temporary[4200];
    snprintf(temporary, sizeof temporary, "%s.%p.tmp", path, (const void *)c);
    FILE *f = fopen(temporary, "we");
    if (!f) return;
    fprintf(f, "stoker calibration 2 %.6g %.6g %.6g %.6g %.6g %.6g %.6g %.6g\n", c->launch, c->run,
            c->round_trip, c->up, c->down, c->up_pinned, c->flops, c->bytes);
    if (fclose(f) != 0 || rename(temporary, path) != 0) remove(temporary);
}

stk_status stk_device_calibrate(stk_device *device, bool again, stk_calibration *out,
                                stk_error *err)
{
    char path[4096];
    if (!device || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_device_calibrate: device and out must be given");
    bool keep = kept_path(device, path, sizeof path);
    if (keep && !again && read_kept(path, out)) return STK_OK;
    STK_TRY(measure(device, out, err));
    if (keep) write_kept(path, out);
    return STK_OK;
}

/* ---- prediction ------------------------------------------------------------------------------------------------- */

static double predict_islands(const stk_program *p, const stk_calibration *c)
{
    double seconds = 0;
    int32_t last = -1;
    for (int64_t i = 0; i < p->islands.count; i++) {
        const stk_island *row = &p->islands.rows[i];
        if (row->number != last) seconds += c->round_trip;
        last = row->number;
        if (c->down > 0) seconds += (double)row->bytes_down / c->down;
        if (c->up > 0) seconds += (double)row->bytes_up / c->up;
    }
    return seconds;
}

double stk_program_predict(const stk_program *p, const stk_calibration *c)
{
    double seconds = c ? c->run : 0, input = 0;
    if (!p || !c || c->flops <= 0 || c->bytes <= 0) return 0;
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel < 0) continue;
        bool walks = t->kernel == STK_K_CHAIN;
        seconds += fmax(c->launch, fmax(walks ? 0 : t->flops / c->flops, t->bytes / c->bytes));
    }
    for (int32_t i = 0; i < p->nfeeds; i++)
        if (p->feeds[i].uniform_at < 0) input += (double)stk_type_bytes(&p->feeds[i].type);
    seconds += predict_islands(p, c);
    return c->up_pinned > 0 ? fmax(seconds, input / c->up_pinned) : seconds;
}
