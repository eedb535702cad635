/* The tuner. Its model: an item that is on a processor for a share s of its time leaves room for 1/s others, so `cpus` are
 * kept busy by cpus / s workers, and some more since waits do not come evenly. s is measured on every 8th item of each stage; items that never slept count as s = 1, so a
 * crowded machine does not look like waiting. More workers come only when the consumer waits; they at most double
 * at a time and never exceed what the RAM budget holds. The choice is kept in the user's cache, by plan.
 *
 *     tune file: lines "fingerprint threads", newest last */
#include "data/workers/tune.h"

#include "base/cache_path.h"
#include "base/clock.h"
#include "base/file.h"
#include "data/workers/ring.h"
#include "data/core/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64, MOST_FILE = 1 << 20, MOST_LINES = 4096 };
static const int64_t window_ns = 30 * 1000000; /* between two looks */

struct stk_tuner {
    stk_run *run;
    uint64_t fingerprint;
    int32_t threads; /* atomic */
    int32_t first, remembered;
    pthread_mutex_t lock; /* of everything below; ticks that find it taken go on */
    uint64_t next_ticks;
    int64_t last_ns, waited, cpu, sampled, busy;
    stk_notes notes;
    int32_t changes;
};

/* ---- memory of earlier runs ----------------------------------------------------------------------- */
static bool tune_path(char *path, size_t size) { return stk_cache_path("data_tune", path, size); }

static int32_t remembered(uint64_t fingerprint)
{
    char path[1024], *text = NULL;
    size_t size = 0;
    int32_t threads = 0;
    if (!tune_path(path, sizeof path) ||
        stk_file_read(path, MOST_FILE, &text, &size, NULL) != STK_OK)
        return 0;
    for (char *line = text; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        unsigned long long key;
        int value;
        if (sscanf(line, "%16llx %d", &key, &value) == 2 && key == fingerprint && value >= 1 &&
            value <= MOST_THREADS)
            threads = value;
    }
    stk_free(text);
    return threads;
}

static void remember(const stk_tuner *t)
{
    char path[1024], *text = NULL;
    size_t size = 0;
    stk_file_writer w = {0};
    if (!tune_path(path, sizeof path)) return;
    bool old = stk_file_read(path, MOST_FILE, &text, &size, NULL) == STK_OK && size < MOST_FILE / 2;
    if (stk_file_create(path, &w, NULL) == STK_OK) {
        char line[64];
        int length = snprintf(line, sizeof line, "%016llx %d\n", (unsigned long long)t->fingerprint,
                              (int)t->threads);
        stk_status status = old && size ? stk_file_write(&w, text, size, NULL) : STK_OK;
        if (status == STK_OK) status = stk_file_write(&w, line, (size_t)length, NULL);
        if (status == STK_OK)
            status = stk_file_commit(&w, NULL);
        else
            stk_file_abandon(&w);
    }
    stk_free(text);
}

/* ---- life ------------------------------------------------------------------------------------------------ */
static bool tunes(const stk_run *run) { return run->options.threads == 0 && run->options.autotune; }

stk_status stk_tuner_new(stk_run *run, const stk_dataset *plan, stk_tuner **out, stk_error *err)
{
    stk_tuner *t = stk_calloc(1, sizeof *t);
    if (!t) return stk_fail_memory(err, "stream", sizeof *t);
    t->run = run;
    t->threads = t->first = run->options.threads > 1 ? run->options.threads : run->cpus;
    pthread_mutex_init(&t->lock, NULL);
    if (tunes(run) && (plan->parallel != 1 || plan->ninputs)) {
        t->fingerprint = stk_plan_fingerprint(plan);
        t->remembered = remembered(t->fingerprint);
        if (t->remembered) t->threads = t->remembered;
    }
    t->last_ns = stk_now_ns();
    *out = t;
    return STK_OK;
}

void stk_tuner_release(stk_tuner *t)
{
    if (!t) return;
    if (t->changes && t->threads != t->remembered) remember(t);
    pthread_mutex_destroy(&t->lock);
    stk_free(t->notes.data);
    stk_free(t);
}

int32_t stk_tuner_threads(const stk_tuner *t)
{
    return __atomic_load_n(&t->threads, __ATOMIC_RELAXED);
}

int64_t stk_tuner_share(stk_stage *stage)
{
    stk_run *run = stage->run;
    bool before = __atomic_load_n(&stage->queues, __ATOMIC_RELAXED) ||
                  __atomic_exchange_n(&stage->queues, true, __ATOMIC_RELAXED);
    if (!before) __atomic_add_fetch(&run->queues, 1, __ATOMIC_RELAXED);
    int64_t left = run->options.ram_budget - __atomic_load_n(&run->ram_used, __ATOMIC_RELAXED);
    /* A third: batches in the consumer's hands, what workers need on the way and what the allocator keeps come on top. */
    return stk_max_i64(0, left) / 3 / __atomic_load_n(&run->queues, __ATOMIC_RELAXED);
}

int64_t stk_tuner_in_flight(stk_stage *stage, int64_t elements)
{
    enum { UNTIL_KNOWN = 2 };
    stk_run *run = stage->run;
    if (!stk_run_has_workers(run)) return 1;
    int64_t most = stk_tuner_threads(run->tuner), ahead = stage->ds->ahead;
    if (stage->ds->parallel > 0) most = stk_min_i64(most, stage->ds->parallel);
    most += ahead == STK_AUTOTUNE ? stk_min_i64(most, 8)
            : ahead > 0           ? stk_ceil_div(ahead, elements)
                                  : 1;
    int64_t bytes = __atomic_load_n(&stage->element_bytes, __ATOMIC_RELAXED) * elements;
    int64_t share = stk_tuner_share(stage);
    most = stk_min_i64(most, bytes > 0 ? share / bytes : UNTIL_KNOWN);
    most = stk_max_i64(1, stk_min_i64(most, STK_RING_MOST - 1));
    __atomic_store_n(&stage->count.capacity, most * elements, __ATOMIC_RELAXED);
    return most;
}

/* ---- looking ------------------------------------------------------------------------------------------------ */
typedef struct sums {
    int64_t waiting, cpu, sampled, bytes;
} sums;

static void add_stage(const stk_stage *stage, sums *s)
{
    s->waiting += __atomic_load_n(&stage->count.waiting, __ATOMIC_RELAXED);
    s->cpu += __atomic_load_n(&stage->count.working_cpu, __ATOMIC_RELAXED);
    s->sampled += __atomic_load_n(&stage->count.working_sampled, __ATOMIC_RELAXED);
    int64_t bytes = __atomic_load_n(&stage->element_bytes, __ATOMIC_RELAXED);
    bool works = __atomic_load_n(&stage->count.working, __ATOMIC_RELAXED) != 0;
    if (works && bytes > s->bytes) s->bytes = bytes;
    for (int32_t i = 0; i < stage->nin; i++) add_stage(stage->in[i], s);
}

static int32_t wanted(const stk_tuner *t, const sums *s, int64_t cpu, int64_t sampled,
                      double share_waited)
{
    double share = sampled > 0 ? (double)cpu / (double)sampled : 1;
    if (share < 0.01) share = 0.01;
    /* Those that wait do so at random, all at once at times; so more than would do on average. */
    double spare = share > 0.75 ? 1 : 1.6;
    if (share > 0.75) share = 1;
    double want = (double)t->run->cpus / share * spare;
    int32_t now = t->threads, goal = (int32_t)(want < MOST_THREADS ? want + 0.5 : MOST_THREADS);
    int64_t left =
        t->run->options.ram_budget - __atomic_load_n(&t->run->ram_used, __ATOMIC_RELAXED);
    int64_t fit = s->bytes > 0 ? stk_max_i64(0, left) / 6 / s->bytes : MOST_THREADS;
    if (goal > fit) goal = (int32_t)stk_max_i64(1, fit);
    if (goal > now && share_waited < 0.02) return now; /* nobody waits: enough */
    if (goal > 2 * now) goal = 2 * now;
    if (goal < now && goal * 2 > now) return now; /* not for a little */
    return goal;
}

static void look(stk_tuner *t, int64_t now_ns)
{
    stk_run *run = t->run;
    sums s = {0};
    add_stage(run->root, &s);
    int64_t cpu = s.cpu - t->cpu, sampled = s.sampled - t->sampled, span = now_ns - t->last_ns;
    stk_tick_scale scale = run->clock;
    stk_tick_scale_mark(&scale, 1);
    double tick =
        (double)(scale.ns[1] - scale.ns[0]) / (double)(scale.ticks[1] - scale.ticks[0] + 1);
    double waited = (double)(s.waiting - t->waited) * tick / (double)span;
    if (sampled == 0) return;
    int32_t goal = wanted(t, &s, cpu, sampled, waited);
    t->cpu = s.cpu;
    t->sampled = s.sampled;
    t->waited = s.waiting;
    t->last_ns = now_ns;
    if (goal == t->threads) return;
    pthread_mutex_lock(&run->lock);
    stk_workers *crew = run->crew;
    pthread_mutex_unlock(&run->lock);
    if (!crew || stk_workers_resize(crew, goal, NULL) != STK_OK) return;
    stk_notes_add(&t->notes,
                  "%.2f s: %d -> %d workers: items are on a processor %.0f %% of their time, the "
                  "consumer waited "
                  "%.0f %% of the last %.0f ms\n",
                  (double)(now_ns - run->clock.ns[0]) * 1e-9, (int)t->threads, (int)goal,
                  100.0 * (double)cpu / (double)sampled, 100 * (waited < 1 ? waited : 1),
                  (double)span * 1e-6);
    __atomic_store_n(&t->threads, goal, __ATOMIC_RELAXED);
    t->changes++;
}

void stk_tuner_tick(stk_run *run)
{
    stk_tuner *t = run->tuner;
    if (!tunes(run) || stk_ring_on_worker() || pthread_mutex_trylock(&t->lock) != 0) return;
    if (stk_ticks() >= t->next_ticks) {
        int64_t now = stk_now_ns();
        t->next_ticks =
            stk_ticks() + 3000000; /* about a millisecond: clocks differ, windows do not */
        if (now - t->last_ns >= window_ns) look(t, now);
    }
    pthread_mutex_unlock(&t->lock);
}

void stk_tuner_explain(stk_tuner *t, stk_notes *out)
{
    pthread_mutex_lock(&t->lock);
    if (t->remembered)
        stk_notes_add(out, "begun with %d workers, as the last run of this plan had found\n",
                      (int)t->remembered);
    else
        stk_notes_add(out, "begun with %d workers%s\n", (int)t->first,
                      tunes(t->run) ? ", one per processor" : ", as asked");
    if (t->notes.size && !t->notes.failed) stk_notes_add(out, "%s", t->notes.data);
    pthread_mutex_unlock(&t->lock);
}
