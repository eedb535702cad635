/* rounds.c - which stretches of a recording are steps, and which of those are the settled state. */
#include "watch/record.h"
#include "watch/stats.h"

#include <stdlib.h>
#include <string.h>

/* Loops that mark their rounds count as they say; else the trainer's stretches; else every run of a program. */
static const char *const ROUND_NAMES[] = {"step", "train.step", "program run"};

static int64_t count_named(const stk_recording *rec, int32_t thread, const char *name)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rec->n; i++)
        n += rec->all[i].thread == thread && !strcmp(rec->all[i].name, name);
    return n;
}

static const char *choose_thread(stk_recording *rec)
{
    for (size_t k = 0; k < sizeof ROUND_NAMES / sizeof *ROUND_NAMES; k++) {
        int64_t most = 0;
        for (int32_t t = 0; t < (int32_t)rec->nthreads; t++) {
            int64_t n = count_named(rec, t, ROUND_NAMES[k]);
            if (n > most) most = n, rec->step_thread = t;
        }
        if (most) return ROUND_NAMES[k];
    }
    return NULL;
}

static bool runs_inside(const stk_recording *rec, int64_t i)
{
    int64_t end = rec->all[i].end;
    for (int64_t k = i + 1; k < rec->n && rec->all[k].thread == rec->all[i].thread; k++) {
        if (rec->all[k].start >= end) return false;
        if (rec->all[k].role == STK_ROLE_RUN) return true;
    }
    return false;
}

static stk_status list_rounds(stk_recording *rec, const char *name, stk_error *err)
{
    bool whole = !strcmp(name, "step"), trainer = !strcmp(name, "train.step");
    int64_t n = count_named(rec, rec->step_thread, name), at = 0;
    rec->rounds = stk_calloc((size_t)n, sizeof *rec->rounds);
    if (!rec->rounds) return stk_fail_memory(err, "rounds", (size_t)n * sizeof *rec->rounds);
    for (int64_t i = 0; i < rec->n; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->thread != rec->step_thread || strcmp(v->name, name)) continue;
        if (trainer && !runs_inside(rec, i)) continue; /* the end of an epoch, no step */
        if (at > 0 && !whole)
            rec->rounds[at - 1].end = v->start; /* what lies between belongs to it */
        rec->rounds[at++] = (stk_round){v->start, v->end, whole && v->arg ? v->arg : 1};
    }
    rec->nrounds = at;
    return STK_OK;
}

static double round_seconds(const stk_round *r)
{
    return (double)(r->end - r->start) * 1e-9 / (double)r->steps;
}

/* Compile time inside [from, to), outermost spans only. */
static double build_seconds(const stk_recording *rec, int64_t from, int64_t to)
{
    double sum = 0;
    int64_t until = 0;
    for (int64_t i = 0; i < rec->n; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->thread != rec->step_thread || v->role != STK_ROLE_BUILD || v->start < from ||
            v->start >= to || v->start < until)
            continue;
        sum += (double)(v->end - v->start) * 1e-9;
        until = v->end;
    }
    return sum;
}

/* Of all spans of this name on the step's thread; they do not nest. */
static double named_seconds(const stk_recording *rec, const char *name)
{
    double sum = 0;
    for (int64_t i = 0; i < rec->n; i++)
        if (rec->all[i].thread == rec->step_thread && rec->all[i].role == STK_ROLE_BUILD &&
            !strcmp(rec->all[i].name, name))
            sum += (double)(rec->all[i].end - rec->all[i].start) * 1e-9;
    return sum;
}

static void find_phases(const stk_recording *rec, stk_report *r)
{
    int64_t first = rec->rounds[0].start;
    double before = (double)(first - rec->begun) * 1e-9, built = build_seconds(rec, 0, first);
    double warm = 0, built_later = 0;
    for (int64_t i = 0; i < rec->nrounds; i++) {
        const stk_round *round = &rec->rounds[i];
        bool steady = i >= rec->first_steady;
        r->phase_steps[steady ? STK_PHASE_STEADY : STK_PHASE_WARM_UP] += round->steps;
        double seconds = (double)(round->end - round->start) * 1e-9;
        if (steady) {
            r->phase_seconds[STK_PHASE_STEADY] += seconds;
        } else {
            warm += seconds;
            built_later += build_seconds(rec, round->start, round->end);
        }
    }
    r->phase_seconds[STK_PHASE_STARTUP] = before > built ? before - built : 0;
    double traced = named_seconds(rec, "graph trace"),
           elected = named_seconds(rec, "kernel election"), all = built + built_later;
    r->phase_seconds[STK_PHASE_TRACE] = traced;
    r->phase_seconds[STK_PHASE_ELECTION] = elected;
    r->phase_seconds[STK_PHASE_BUILD] = all > traced + elected ? all - traced - elected : 0;
    r->phase_seconds[STK_PHASE_WARM_UP] = warm > built_later ? warm - built_later : 0;
}

/* Keeps at most STK_STEPS_KEPT of the times for drawings, evenly spread. */
static stk_status keep_steps(const double *seconds, int64_t n, int64_t first_steady, stk_report *r,
                             stk_error *err)
{
    int64_t kept = n < STK_STEPS_KEPT ? n : STK_STEPS_KEPT;
    r->step_seconds = stk_arena_array(&r->arena, (size_t)kept, sizeof *r->step_seconds);
    if (!r->step_seconds) return stk_fail_memory(err, "step times", (size_t)kept * 8);
    for (int64_t i = 0; i < kept; i++) r->step_seconds[i] = seconds[i * n / kept];
    r->nsteps = kept;
    r->first_steady = n ? first_steady * kept / n : 0;
    return STK_OK;
}

/* A step that had its program made first is no settled one, however short that was. */
static int64_t behind_builds(const stk_recording *rec, int64_t first)
{
    for (int64_t i = 0; i < rec->n; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->role != STK_ROLE_BUILD || v->thread != rec->step_thread) continue;
        for (int64_t k = first; k < rec->nrounds / 2 && rec->rounds[k].start <= v->start; k++)
            if (v->start < rec->rounds[k].end) first = k + 1;
    }
    return first;
}

static stk_status settle(stk_recording *rec, stk_report *r, double *seconds, stk_error *err)
{
    int64_t n = rec->nrounds;
    for (int64_t i = 0; i < n; i++) seconds[i] = round_seconds(&rec->rounds[i]);
    rec->first_steady = behind_builds(rec, stk_settled_from(seconds, n));
    STK_TRY(keep_steps(seconds, n, rec->first_steady, r, err));
    double *steady = seconds + rec->first_steady;
    int64_t count = n - rec->first_steady;
    r->period = stk_period_of(steady, stk_min_i64(count, 4096));
    stk_sort_doubles(steady, count);
    r->p10 = stk_quantile(steady, count, 0.1);
    r->median = stk_quantile(steady, count, 0.5);
    r->p90 = stk_quantile(steady, count, 0.9);
    find_phases(rec, r);
    return STK_OK;
}

stk_status stk_record_rounds(stk_recording *rec, stk_report *r, stk_error *err)
{
    const char *name = choose_thread(rec);
    if (!name) return STK_OK;
    STK_TRY(list_rounds(rec, name, err));
    double *seconds = stk_malloc((size_t)rec->nrounds * sizeof *seconds);
    if (!seconds) return stk_fail_memory(err, "step times", (size_t)rec->nrounds * 8);
    stk_status status = settle(rec, r, seconds, err);
    stk_free(seconds);
    return status;
}
