/* calibrate.c - what a device can do, measured through the same doors that programs use: so it means the same for every device. What
 * follows from it for a program is in predict.c. */
#include "graph/run/predict.h"

#include "base/cache_path.h"
#include "base/clock.h"
#include "stoker/version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 33, LONG = 1 << 20, COPY = 8 << 20, VERSION = 6 };

/* ---- programs to be timed ---------------------------------------------------------------------------------- */

/* What a function of the host took. */
typedef struct stay {
    int64_t ns, calls;
} stay;
typedef void builder(stk_graph *g, int64_t n, stay *here);

/* n small products, each of which needs the one before. */
static void build_chain(stk_graph *g, int64_t n, stay *here)
{
    stk_val x = stk_g_variable(g, "v", STK_F32, 2, (int64_t[]){8, 8});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){8, 8});
    (void)here;
    for (int64_t i = 0; i < n; i++) x = stk_g_matmul(g, x, w);
    stk_g_output(g, "y", x);
}

/* One product, of two inputs: a batch has samples and targets. */
static void build_fed(stk_graph *g, int64_t n, stay *here)
{
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){n, n});
    stk_val y = stk_g_input(g, "y", STK_F32, 2, (int64_t[]){n, n});
    (void)here;
    stk_g_output(g, "z", stk_g_matmul(g, x, y));
}

/* A function of the host between thin products: an island wherever the device is not the host. It takes its time, as functions do that
 * are worth having: meanwhile the device has gone to sleep, and to wake it is a good part of what an island costs. */
static void hand_on(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                    stk_tensor *const *out)
{
    enum { AT_LEAST_NS = 100000 };
    stay *here = context;
    int64_t start = stk_now_ns(), now;
    (void)nin, (void)nout;
    memcpy(out[0]->data, in[0]->data, (size_t)stk_tensor_bytes(in[0]));
    do now = stk_now_ns();
    while (now - start < AT_LEAST_NS);
    here->ns += now - start;
    here->calls++;
}

enum { COLUMNS = 16 };

static void build_crossing(stk_graph *g, int64_t n, stay *here)
{
    stk_val x = stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){n, COLUMNS});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){COLUMNS, COLUMNS});
    stk_host host = {.name = "calibration", .run = hand_on, .context = here};
    stk_host_result like = {.dtype = STK_F32, .rank = 2, .shape = {n, COLUMNS}};
    /* small ones are put in line while the device is at work, but not behind an island */
    int products = n < 10000 ? 4 : 1;
    for (int i = 0; i < products; i++) x = stk_g_matmul(g, x, w);
    if (here) x = stk_g_host(g, &host, 1, &x, 1, &like);
    for (int i = 0; i < products; i++) x = stk_g_matmul(g, x, w);
    stk_g_output(g, "y", x);
}

/* Reads two arrays, writes one. */
static void build_elementwise(stk_graph *g, int64_t n, stay *here)
{
    (void)here;
    stk_val a = stk_g_variable(g, "a", STK_F32, 1, &n), b = stk_g_variable(g, "b", STK_F32, 1, &n);
    stk_g_output(g, "y", stk_g_add(g, stk_g_mul(g, a, b), a));
}

static void put_numbers(stk_tensor *t)
{
    int64_t count = stk_tensor_count(t);
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (t->dtype == STK_I32) /* rows of something that has no fewer */
            ((int32_t *)t->data)[i] = (int32_t)((state >> 8) % (uint64_t)count);
        else
            ((float *)t->data)[i] = (float)(state >> 8) * 0x1p-24f;
    }
}

stk_status stk_fill_variables(stk_program *p, stk_error *err)
{
    stk_store *s = stk_program_store(p);
    for (int32_t i = 0; i < stk_store_count(s); i++) {
        stk_tensor *t = NULL;
        STK_TRY(stk_store_get(s, stk_store_name(s, i), &t, err));
        put_numbers(t);
        stk_status status = stk_store_set(s, stk_store_name(s, i), t, err);
        stk_tensor_release(t);
        STK_TRY(status);
    }
    return STK_OK;
}

static stk_status prepare(stk_device *d, builder *build, int64_t n, stay *here, stk_program **out,
                          stk_error *err)
{
    stk_graph *g = NULL;
    stk_program_options o = {.device = d};
    STK_TRY(stk_graph_new(&g, err));
    build(g, n, here);
    stk_status status = stk_program_new(g, &o, out, err);
    stk_graph_release(g);
    if (status == STK_OK) status = stk_fill_variables(*out, err);
    return status;
}

/* ---- timing -------------------------------------------------------------------------------------------------- */

typedef struct timing {
    stk_device *d;
    stk_program *p;
    stk_address at;
    void *plain, *pinned;
    stk_event *done;
    stk_tensor *x;
    int64_t runs;
} timing;

static stk_status run_and_wait(timing *t, stk_error *err)
{
    STK_TRY(stk_program_run(t->p, 1, err));
    return t->d->vt->queue.wait(t->d, err);
}

static stk_status run_many(timing *t, stk_error *err)
{
    for (int64_t i = 0; i < t->runs; i++) {
        if (t->x) STK_TRY(stk_program_feed(t->p, "x", t->x, err));
        if (t->x) STK_TRY(stk_program_feed(t->p, "y", t->x, err));
        STK_TRY(stk_program_run(t->p, 1, err));
    }
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

/* The least of several, for a few hundredths of a second: what it takes when nobody disturbs. */
static stk_status least(stk_status (*work)(timing *t, stk_error *err), timing *t, double *seconds,
                        stk_error *err)
{
    enum { MOST_TURNS = 200, LEAST_TURNS = 3, MOST_NS = 40000000 };
    int64_t begun = stk_now_ns();
    *seconds = INFINITY;
    for (int i = 0; i < MOST_TURNS; i++) {
        int64_t start = stk_now_ns();
        if (i >= LEAST_TURNS && start - begun > MOST_NS) break;
        STK_TRY(work(t, err));
        if (i) *seconds = fmin(*seconds, (double)(stk_now_ns() - start) * 1e-9);
    }
    return STK_OK;
}

/* In turns of some milliseconds, as steps are judged by, too: the host is ahead of the device, and the best millisecond does not count. */
static stk_status time_turns(timing *t, double *seconds, stk_error *err)
{
    enum { MOST_RUNS = 2000 };
    int64_t start = 0;
    t->runs = 1;
    for (int i = 0; i < 2; i++) { /* the first brings pages and code */
        start = stk_now_ns();
        STK_TRY(run_many(t, err));
    }
    double once = (double)(stk_now_ns() - start);
    t->runs = (int64_t)fmin(fmax(5e6 / once, 1), MOST_RUNS);
    STK_TRY(least(run_many, t, seconds, err));
    *seconds /= (double)t->runs;
    return STK_OK;
}

stk_status stk_time_runs(stk_program *p, double *seconds, stk_error *err)
{
    return time_turns(&(timing){.d = p->device, .p = p}, seconds, err);
}

/* work NULL: in turns. */
static stk_status time_program(stk_device *d, builder *build, int64_t n,
                               stk_status (*work)(timing *t, stk_error *err), double *seconds,
                               stk_error *err)
{
    timing t = {.d = d};
    stk_status status = prepare(d, build, n, NULL, &t.p, err);
    if (status == STK_OK && t.p->nfeeds)
        status = stk_tensor_new(STK_F32, 2, (int64_t[]){n, n}, &t.x, err);
    if (status == STK_OK)
        status = work ? least(work, &t, seconds, err) : time_turns(&t, seconds, err);
    stk_program_release(t.p);
    stk_tensor_release(t.x);
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

/* ---- crossing over ------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* With the function and without, by turns: the difference, without the function's own time, is small against either. Medians, since
 * threads that happen not to have gone to sleep make a crossing cheaper than it is in the long run. */
static stk_status time_crossing(stk_device *d, int64_t rows, double *seconds, stk_error *err)
{
    enum { TURNS = 21 };
    static const double TURN = 3e-3;
    double took[2][TURNS];
    stay here = {0};
    timing t[2] = {{.d = d, .runs = 1}, {.d = d, .runs = 1}};
    stk_status status = STK_OK;
    for (int k = 0; k < 2 && status == STK_OK; k++) {
        status = prepare(d, build_crossing, rows, k ? &here : NULL, &t[k].p, err);
        if (status == STK_OK) status = run_many(&t[k], err); /* pages and code */
    }
    for (int i = 0; i < 2 * TURNS && status == STK_OK; i++) {
        timing *now = &t[i % 2];
        int64_t start = stk_now_ns();
        status = run_many(now, err);
        took[i % 2][i / 2] = (double)(stk_now_ns() - start) * 1e-9 / (double)now->runs;
        now->runs = (int64_t)fmin(fmax(TURN / took[i % 2][i / 2], 1), 200);
    }
    for (int k = 0; k < 2; k++) {
        stk_program_release(t[k].p);
        if (status == STK_OK) qsort(took[k], TURNS, sizeof **took, by_size);
    }
    if (status == STK_OK)
        *seconds =
            took[1][TURNS / 2] - took[0][TURNS / 2] - (double)here.ns * 1e-9 / (double)here.calls;
    return status;
}

static stk_status time_crossings(stk_device *d, stk_calibration *c, stk_error *err)
{
    static const int64_t rows[STK_PACE_POINTS] = {8, 1024, 16384, 65536};
    static const double SLOW = 5e-3;
    stk_pace *to = &c->crossing;
    for (int i = 0; i < STK_PACE_POINTS && !stk_device_shares(d); i++) {
        double seconds = 0;
        if (i && to->seconds[i - 1] > SLOW) break; /* from there on in proportion */
        STK_TRY(time_crossing(d, rows[i], &seconds, err));
        to->work[i] = 2.0 * (double)(rows[i] * COLUMNS) * sizeof(float);
        to->seconds[i] = fmax(seconds, i ? to->seconds[i - 1] : 1e-9);
    }
    return STK_OK;
}

static stk_status measure(stk_device *d, stk_calibration *c, stk_error *err)
{
    double one = 0, many = 0, walk = 0, fed = 0;
    *c = (stk_calibration){0};
    STK_TRY(time_program(d, build_chain, 1, run_and_wait, &one, err));
    STK_TRY(time_program(d, build_chain, CHAIN, run_and_wait, &many, err));
    STK_TRY(time_program(d, build_chain, 1, NULL, &c->run, err));
    STK_TRY(time_program(d, build_fed, 8, NULL, &fed, err));
    STK_TRY(time_program(d, build_chain, 1, run_and_read, &c->round_trip, err));
    STK_TRY(time_program(d, build_elementwise, LONG, run_and_wait, &walk, err));
    STK_TRY(time_copies(d, c, err));
    c->feed = fmax(fed - c->run, 0) / 2;
    c->launch = fmax((many - one) / (CHAIN - 1), 1e-9);
    c->bytes = 3.0 * LONG * sizeof(float) / walk;
    STK_TRY(time_crossings(d, c, err));
    STK_TRY(stk_paces_measure(d, c, err));
    const stk_pace *product = &c->pace[STK_PACE_PRODUCT];
    for (int i = 0; i < STK_PACE_POINTS; i++)
        if (product->seconds[i] > 0) c->flops = product->work[i] / product->seconds[i];
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

/* All of it is doubles, and nothing else. */
enum { NUMBERS = sizeof(stk_calibration) / sizeof(double) };
_Static_assert(sizeof(stk_calibration) == NUMBERS * sizeof(double), "only doubles");

static bool read_kept(const char *path, stk_calibration *c)
{
    double number[NUMBERS] = {0};
    int n = 0, version = 0;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    if (fscanf(f, "stoker calibration %d", &version) == 1 && version == VERSION)
        while (n < NUMBERS && fscanf(f, "%lg", &number[n]) == 1) n++;
    fclose(f);
    memcpy(c, number, sizeof *c);
    return n == NUMBERS && c->launch > 0 && c->flops > 0 && c->bytes > 0;
}

/* A cache: what cannot be written is measured again next time. */
static void write_kept(const char *path, const stk_calibration *c)
{
    char temporary[4200];
    double number[NUMBERS];
    memcpy(number, c, sizeof *c);
    snprintf(temporary, sizeof temporary, "%s.%p.tmp", path, (const void *)c);
    FILE *f = fopen(temporary, "we");
    if (!f) return;
    fprintf(f, "stoker calibration %d", VERSION);
    for (int i = 0; i < NUMBERS; i++) fprintf(f, "%s%.6g", i % 8 ? " " : "\n", number[i]);
    fprintf(f, "\n");
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
