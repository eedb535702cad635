/* doctor.c - the examination: look once with the books open, then change one thing at a time and measure by turns. */
#include "watch/epoch.h"
#include "watch/load.h"
#include "watch/probe.h"
#include "watch/rules.h"
#include "watch/stats.h"

#include "base/cpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LONG_STEP = 0.1; /* seconds */
enum { MOST_ADVICE = 32, MOST_CURVE = 12, MOST_VALUES = 6 };

typedef struct doctor {
    stk_prober p;
    const stk_job *job;
    stk_report *r;
    stk_findings f;
    stk_variant base;
    stk_turns turns; /* of base */
    char remark[64]; /* of the variant that was probed last */
    stk_advice advice[MOST_ADVICE];
    int32_t nadvice;
} doctor;

static double share(const doctor *d, stk_book book)
{
    double wall = stk_report_seconds(d->r, STK_BOOK_COUNT);
    return wall > 0 ? d->r->book[book] / wall : 0;
}

static bool builds_programs(const doctor *d) { return share(d, STK_BOOK_BUILD) > 0.1; }

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* Steps with every record on: long enough for the change-point test, not longer than a sixth of the time. */
static stk_status look(doctor *d, stk_error *err)
{
    stk_watch *watch = NULL;
    stk_watch_settings o = stk_watch_settings_defaults();
    o.title = d->job->name;
    o.batch = d->job->batch;
    o.plan_steps = d->job->plan_steps;
    o.records = 1 << 18; /* the first steps must not be forgotten: they tell the warm-up */
    stk_prober_tell(&d->p, "the job as it is");
    STK_TRY(stk_watch_start(&o, &watch, err));
    double start = stk_seconds_now(), least = fmin(0.4, d->p.options.seconds / 12),
           most = d->p.options.seconds / 6;
    stk_job_settings as_is = stk_job_settings_defaults();
    stk_status status = stk_variant_open(&d->p, &as_is, &d->base, err);
    int64_t steps = 0, chunk = 1; /* one step may take seconds */
    while (status == STK_OK) {
        double took = stk_seconds_now() - start;
        bool enough = (took >= least && steps >= 24) || (took >= most && steps >= 3) ||
                      took >= d->p.options.seconds || steps >= 4000;
        if (enough && steps > 0) break; /* opening alone may take long */
        status = d->job->run(d->job->context, d->base.variant, chunk, err);
        steps += chunk;
        if (took < least / 8) chunk *= 2;
    }
    stk_status stopped = stk_watch_stop(watch, &d->r, status == STK_OK ? err : NULL);
    return status != STK_OK ? status : stopped;
}

static stk_status take_stages(doctor *d, stk_error *err)
{
    enum { MOST = 32 };
    stk_watch_stage stages[MOST];
    if (!d->job->stages) return STK_OK;
    memset(stages, 0, sizeof stages);
    int32_t n = d->job->stages(d->job->context, d->base.variant, stages, MOST);
    for (int32_t i = 0; i < n; i++) STK_TRY(stk_report_add_stage(d->r, &stages[i], err));
    return STK_OK;
}

/* Bursts that come in no order need longer turns: a turn should hold so many steps that its mean is worth something. */
static void stretch_turns(doctor *d)
{
    static const double WANTED = 0.15, MOST_MS = 60;
    const stk_report *r = d->r;
    double sum = 0, square = 0;
    int64_t n = r->nsteps - r->first_steady;
    for (int64_t i = r->first_steady; i < r->nsteps; i++) {
        double v = fmin(r->step_seconds[i], 20 * r->median + r->p90);
        sum += v;
        square += v * v;
    }
    if (n < 8 || sum <= 0 || r->period > 1) return;
    double mean = sum / (double)n, variance = fmax(square / (double)n - mean * mean, 0);
    double steps = variance / (mean * mean * WANTED * WANTED), ms = steps * mean * 1e3;
    if (ms > d->p.options.slice_ms)
        d->p.options.slice_ms = fmax(d->p.options.slice_ms, fmin(ms, MOST_MS));
}

/* What the books say about turns: where there is nothing to be careful about they can be short, and there are more of them. */
static void plan_turns(doctor *d)
{
    static const double LITTLE = 0.03;
    d->p.never_waits = share(d, STK_BOOK_INPUT) < LITTLE;
    if (d->p.never_waits) d->base.ahead = 0;
    d->p.cheap[STK_KNOB_CALLBACK_EVERY] = share(d, STK_BOOK_CALLBACKS) < LITTLE;
    d->p.cheap[STK_KNOB_READ_EVERY] =
        share(d, STK_BOOK_SYNC) + share(d, STK_BOOK_DOWNLOAD) < LITTLE;
}

/* Steps of seconds: a few turns would take minutes. The books have to do then, and comparisons are left out. */
static bool is_too_long(doctor *d)
{
    static const double UNKNOWN = 0.1; /* nobody measured what noise does */
    stk_variant *v = &d->base;
    v->step_seconds = d->r->median;
    v->warm = v->ahead;
    v->steps = (v->ahead + 1) / 2 + 1;
    bool too_long = d->r->median > LONG_STEP && !stk_prober_has_time(&d->p, v);
    if (too_long) {
        d->turns = (stk_turns){.median = d->r->median / (double)v->batch};
        d->r->noise = UNKNOWN;
        d->r->left_out++;
    } else {
        v->steps = v->warm = 0; /* found out by its first turn */
    }
    return too_long;
}

/* The job against its twin: what a comparison can tell at best. */
static stk_status measure_noise(doctor *d, stk_error *err)
{
    stk_variant twin = {0};
    stk_gain same = {1, 1, 1};
    stk_care care = {.narrow = 0.06, .seconds = d->p.options.seconds / 4};
    stk_job_settings as_is = stk_job_settings_defaults();
    if (is_too_long(d)) return STK_OK;
    /* A twin would meet the shapes that the job has met before, and no program would be built for them again. */
    bool builds = builds_programs(d);
    stk_prober_tell(&d->p, "the job against itself");
    stk_status status = builds ? STK_OK : stk_variant_open(&d->p, &as_is, &twin, err);
    if (status == STK_OK)
        status = stk_variants_compare(&d->p, &d->base, builds ? &d->base : &twin, care, &same,
                                      &d->turns, err);
    stk_variant_close(&d->p, &twin);
    d->f.slice_noise = d->turns.scatter;
    d->r->noise = fmax(fabs(log(same.low)), fabs(log(same.high)));
    return status;
}

/* ---- probing ------------------------------------------------------------------------------------------------------- */

static void tell_setting(doctor *d, const char *before, stk_knob k, int64_t value)
{
    char line[64], text[96];
    snprintf(text, sizeof text, "%s%s", before, stk_advice_text(k, value, line, sizeof line));
    stk_prober_tell(&d->p, text);
}

/* A gain of 0: there was no time for it. */
static stk_status probe(doctor *d, const stk_job_settings *s, stk_care care, stk_gain *gain,
                        stk_error *err)
{
    stk_variant other = {0};
    *gain = (stk_gain){0, 0, 0};
    if (!stk_prober_has_time(&d->p, &d->base)) {
        d->r->left_out++;
        return STK_OK;
    }
    stk_status status = stk_variant_open(&d->p, s, &other, err);
    if (status == STK_OK)
        status = stk_variants_compare(&d->p, &d->base, &other, care, gain, NULL, err);
    d->remark[0] = '\0';
    if (status == STK_OK && d->job->remark)
        d->job->remark(d->job->context, other.variant, d->remark, sizeof d->remark);
    stk_variant_close(&d->p, &other);
    return status;
}

static stk_status probe_ceilings(doctor *d, stk_error *err)
{
    static const struct {
        stk_knob knob;
        const char *text;
    } ceilings[] = {{STK_KNOB_FREE_INPUT, "if input were free"},
                    {STK_KNOB_FREE_MODEL, "if the model were free"},
                    {STK_KNOB_FREE_HOST, "if host functions were free"},
                    {STK_KNOB_FREE_CALLBACKS, "if callbacks were free"}};
    enum { CEILINGS = sizeof ceilings / sizeof *ceilings, TOLD = 3 };
    d->r->ceilings = stk_arena_array(&d->r->arena, CEILINGS, sizeof *d->r->ceilings);
    if (!d->r->ceilings) return stk_fail_memory(err, "ceilings", 0);
    for (int i = 0; i < CEILINGS; i++) {
        stk_knob k = ceilings[i].knob;
        if (!d->job->knob[k].offered) continue;
        stk_job_settings s = stk_job_settings_defaults();
        s.value[k] = 1;
        stk_care care = stk_care_for_causes(&d->p);
        if (k == STK_KNOB_FREE_MODEL) care.narrow = 1; /* good to know; no verdict hangs on it */
        stk_prober_tell(&d->p, ceilings[i].text);
        STK_TRY(probe(d, &s, care, &d->f.gain[k], err));
        if (d->f.gain[k].best <= 0) continue;
        if (d->f.gain[k].high > TOLD * d->f.gain[k].low) continue; /* that is no number to show */
        d->r->ceilings[d->r->nceilings++] = (stk_ceiling){ceilings[i].text, d->f.gain[k]};
    }
    return STK_OK;
}

/* Is it worth a probe? The books say where nothing can be won. */
static bool worth_trying(const doctor *d, stk_knob k)
{
    static const double LEAST = 0.02;
    stk_gain input = d->f.gain[STK_KNOB_FREE_INPUT];
    if (!d->job->knob[k].offered) return false;
    switch (k) {
    case STK_KNOB_PREFETCH:
    case STK_KNOB_WORKERS:
    case STK_KNOB_FUSED:
    case STK_KNOB_CACHE:
        /* another pipeline would meet shapes that have their programs by now, and seem to be faster */
        return !builds_programs(d) && share(d, STK_BOOK_INPUT) > LEAST &&
               (input.best <= 0 || input.high > 1.03);
    case STK_KNOB_READ_EVERY: return share(d, STK_BOOK_SYNC) + share(d, STK_BOOK_DOWNLOAD) > LEAST;
    case STK_KNOB_CALLBACK_EVERY: return share(d, STK_BOOK_CALLBACKS) > LEAST;
    case STK_KNOB_NATIVE_INPUT: return share(d, STK_BOOK_UPLOAD) > LEAST;
    case STK_KNOB_GROUP:
        return share(d, STK_BOOK_DISPATCH) + share(d, STK_BOOK_HOST) + share(d, STK_BOOK_RESIDUAL) >
               0.05;
    case STK_KNOB_THREADS: return share(d, STK_BOOK_THREADS) + share(d, STK_BOOK_DISPATCH) > 0.15;
    case STK_KNOB_VALIDATION_BATCH: return false; /* steps know nothing of it: probe_validation */
    default: return stk_knob_class_of(k) == STK_KNOB_IS_SAFE;
    }
}

/* Values to try, mildest first. */
static int list_values(const doctor *d, stk_knob k, int64_t out[MOST_VALUES])
{
    const stk_job_knob *knob = &d->job->knob[k];
    int64_t most = knob->most > 0 ? knob->most : INT64_MAX, now = knob->current;
    int64_t wanted[MOST_VALUES];
    int n = 0, kept = 0;
    switch (k) {
    case STK_KNOB_PREFETCH: wanted[n++] = 2, wanted[n++] = 8; break;
    case STK_KNOB_WORKERS:
        for (int64_t v = stk_max_i64(2, stk_cpu_count()); n < 4; v *= 2) wanted[n++] = v;
        break;
    case STK_KNOB_CACHE: wanted[n++] = knob->most; break;
    case STK_KNOB_GROUP: wanted[n++] = 16; break;
    case STK_KNOB_READ_EVERY:
    case STK_KNOB_CALLBACK_EVERY: wanted[n++] = 50; break;
    case STK_KNOB_THREADS: wanted[n++] = 1; break;
    default: wanted[n++] = 1;
    }
    for (int i = 0; i < n; i++) {
        int64_t v = stk_min_i64(wanted[i], most);
        bool further = k == STK_KNOB_THREADS ? v < now : v > now;
        if (further && (kept == 0 || out[kept - 1] != v)) out[kept++] = v;
    }
    return kept;
}

static stk_status add_advice(doctor *d, stk_knob k, int64_t value, stk_gain gain, const char *text,
                             stk_error *err)
{
    char line[96];
    if (d->nadvice == MOST_ADVICE) return STK_OK;
    if (!text) text = stk_advice_text(k, value, line, sizeof line);
    stk_advice *a = &d->advice[d->nadvice++];
    *a = (stk_advice){.text = stk_arena_strdup(&d->r->arena, text),
                      .knob = k,
                      .value = value,
                      .gain = gain,
                      .changes_mathematics = stk_knob_class_of(k) == STK_KNOB_IS_MATH,
                      .settings = stk_job_settings_defaults()};
    a->settings.value[k] = value;
    return a->text ? STK_OK : stk_fail_memory(err, "advice", 0);
}

/* The better of two turns: enough to choose a value, not to promise anything. */
static stk_status try_value(doctor *d, const stk_job_settings *s, double *seconds, stk_error *err)
{
    stk_variant variant = {0};
    double first = 0, second = 0;
    stk_status status = stk_variant_open(&d->p, s, &variant, err);
    if (status == STK_OK) status = stk_variant_turn(&d->p, &variant, &first, err);
    if (status == STK_OK) status = stk_variant_turn(&d->p, &variant, &second, err);
    stk_variant_close(&d->p, &variant);
    *seconds = fmin(first, second);
    return status;
}

/* Of several values the mildest that is nearly as good as the best; more are tried as long as they help. promising: it may be
 * faster than the job as it is. */
static stk_status choose_value(doctor *d, stk_knob k, const int64_t *values, int n, int64_t *chosen,
                               bool *promising, stk_error *err)
{
    double best = INFINITY;
    *chosen = values[0];
    *promising = true;
    for (int i = 0; i < n && n > 1 && stk_prober_has_time(&d->p, &d->base); i++) {
        stk_job_settings s = stk_job_settings_defaults();
        double seconds;
        s.value[k] = values[i];
        tell_setting(d, "", k, values[i]);
        STK_TRY(try_value(d, &s, &seconds, err));
        if (seconds > 0.95 * best) break;
        best = seconds;
        *chosen = values[i];
    }
    *promising = n == 1 || best < 0.98 * d->turns.median || isinf(best);
    return STK_OK;
}

static stk_status probe_knob(doctor *d, stk_knob k, stk_error *err)
{
    int64_t values[MOST_VALUES], chosen = 0;
    int n = list_values(d, k, values);
    stk_job_settings s = stk_job_settings_defaults();
    if (n < 1) return STK_OK;
    bool promising;
    STK_TRY(choose_value(d, k, values, n, &chosen, &promising, err));
    if (!promising) return STK_OK;
    s.value[k] = chosen;
    tell_setting(d, "", k, chosen);
    STK_TRY(probe(d, &s, stk_care_for_promises(&d->p), &d->f.gain[k], err));
    stk_gain gain = d->f.gain[k];
    if (gain.low <= 1.02 || gain.best <= 1.03) return STK_OK;
    char line[96], text[sizeof line + sizeof d->remark + 4];
    stk_advice_text(k, chosen, line, sizeof line);
    snprintf(text, sizeof text, d->remark[0] ? "%s (%s)" : "%s", line, d->remark);
    return add_advice(d, k, chosen, gain, text, err);
}

static stk_status probe_together(doctor *d, stk_error *err)
{
    stk_job_settings s = stk_job_settings_defaults();
    if (d->nadvice < 2 || stk_seconds_now() > d->p.deadline) return STK_OK;
    for (int32_t i = 0; i < d->nadvice; i++) s.value[d->advice[i].knob] = d->advice[i].value;
    stk_prober_tell(&d->p, "all of it together");
    return probe(d, &s, stk_care_for_causes(&d->p), &d->r->together, err);
}

/* ---- what changes the mathematics ------------------------------------------------------------------------------------ */

static stk_status add_point(doctor *d, int64_t batch, stk_gain *gain, stk_error *err)
{
    stk_job_settings s = stk_job_settings_defaults();
    s.value[STK_KNOB_BATCH] = batch;
    tell_setting(d, "", STK_KNOB_BATCH, batch);
    STK_TRY(probe(d, &s, stk_care_for_promises(&d->p), gain, err));
    if (gain->best <= 0) return STK_OK;
    double per_example = 1 / d->r->curve[0].examples_per_second / gain->best;
    d->r->curve[d->r->ncurve++] =
        (stk_curve_point){batch, per_example * (double)batch, 1 / per_example, *gain};
    return STK_OK;
}

/* The smallest batch that reaches nine tenths of the best rate. */
static void find_knee(stk_report *r)
{
    double best = 0;
    for (int64_t i = 0; i < r->ncurve; i++) best = fmax(best, r->curve[i].examples_per_second);
    for (int64_t i = 0; i < r->ncurve && !r->knee; i++)
        if (r->curve[i].examples_per_second >= 0.9 * best) r->knee = r->curve[i].batch;
}

/* What this machine's memory holds: activations grow with the batch, the rest does not. */
static int64_t memory_limit(const doctor *d)
{
    double memory = (double)stk_memory_limit("");
    double each = (double)d->r->memory.arena / (double)d->base.batch;
    double room = 0.8 * memory - 2 * (double)d->r->memory.variables;
    return each > 0 && room > 0 ? (int64_t)fmin(room / each, 1e15) : 0;
}

static stk_status probe_batches(doctor *d, stk_error *err)
{
    int64_t batch = d->base.batch, most = d->job->knob[STK_KNOB_BATCH].most;
    if (!d->job->knob[STK_KNOB_BATCH].offered) return STK_OK;
    if (d->nadvice && stk_seconds_now() > d->p.deadline) return STK_OK;
    d->r->curve = stk_arena_array(&d->r->arena, MOST_CURVE, sizeof *d->r->curve);
    if (!d->r->curve) return stk_fail_memory(err, "a curve", 0);
    d->r->batch_limit = memory_limit(d);
    double step =
        d->turns.median * (double)batch; /* gains are measured by turns, this one is not */
    d->r->curve[d->r->ncurve++] =
        (stk_curve_point){batch, step, (double)batch / step, (stk_gain){1, 1, 1}};
    double last = 1;
    for (int64_t k = 2; d->r->ncurve < 6; k *= 2) {
        stk_gain gain;
        if (most > 0 && batch * k > most) break;
        if (k > 2 && stk_seconds_now() > d->p.deadline) break;
        STK_TRY(add_point(d, batch * k, &gain, err));
        if (gain.best <= 0) break;
        if (k <= 4) d->f.batch_gain = gain;
        if (k >= 4 && gain.best < 1.05 * last) break; /* flat from here on */
        last = gain.best;
    }
    find_knee(d->r);
    for (int64_t i = 0; i < d->r->ncurve; i++)
        if (d->r->curve[i].batch == d->r->knee && d->r->curve[i].gain.low > 1.1)
            return add_advice(d, STK_KNOB_BATCH, d->r->knee, d->r->curve[i].gain, NULL, err);
    return STK_OK;
}

static stk_status probe_precision(doctor *d, stk_error *err)
{
    stk_job_settings s = stk_job_settings_defaults();
    stk_gain gain;
    if (!d->job->knob[STK_KNOB_PRECISION].offered || d->job->knob[STK_KNOB_PRECISION].current <= 16)
        return STK_OK;
    s.value[STK_KNOB_PRECISION] = 16;
    tell_setting(d, "", STK_KNOB_PRECISION, 16);
    STK_TRY(probe(d, &s, stk_care_for_promises(&d->p), &gain, err));
    d->f.gain[STK_KNOB_PRECISION] = gain;
    return gain.low > 1.03 ? add_advice(d, STK_KNOB_PRECISION, 16, gain, NULL, err) : STK_OK;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------------ */

/* Validation that takes a good part of an epoch: in larger batches, or less often. What the latter brings follows from what it takes. */
static stk_status probe_validation(doctor *d, stk_error *err)
{
    static const double WORTH_IT = 0.15;
    enum { RARER = 5 };
    const stk_epoch_rows *e = &d->r->epoch;
    int64_t batch = 0;
    stk_gain gain;
    if (e->validation <= WORTH_IT * stk_epoch_seconds(e)) return STK_OK;
    STK_TRY(stk_epoch_try_batch(&d->p, e, &batch, &gain, err));
    if (gain.best > 1.03 && gain.low > 1.02)
        STK_TRY(add_advice(d, STK_KNOB_VALIDATION_BATCH, batch, gain, NULL, err));
    double scatter = fmax(d->r->noise, 0.02);
    stk_gain rarer = stk_epoch_gain(
        e, e->validation, (stk_gain){RARER, RARER / (1 + scatter), RARER * (1 + scatter)});
    if (d->p.options.no_math) return STK_OK;
    return add_advice(d, STK_KNOB_VALIDATE_EVERY, e->validation_every * RARER, rarer, NULL, err);
}

/* Ever new shapes: what a step costs when there are few of them. */
static stk_status probe_buckets(doctor *d, stk_error *err)
{
    stk_job_settings s = stk_job_settings_defaults();
    stk_gain *gain = &d->f.gain[STK_KNOB_BUCKETS];
    if (d->job->programs)
        d->f.programs = d->job->programs(d->job->context, d->f.why, sizeof d->f.why);
    if (!d->job->knob[STK_KNOB_BUCKETS].offered || !builds_programs(d)) return STK_OK;
    s.value[STK_KNOB_BUCKETS] = 1;
    tell_setting(d, "", STK_KNOB_BUCKETS, 1);
    STK_TRY(probe(d, &s, stk_care_for_promises(&d->p), gain, err));
    return gain->low > 1.03 ? add_advice(d, STK_KNOB_BUCKETS, 1, *gain, NULL, err) : STK_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------------- */

static int by_gain(const void *a, const void *b)
{
    const stk_advice *x = a, *y = b;
    if (x->changes_mathematics != y->changes_mathematics) return x->changes_mathematics ? 1 : -1;
    return x->gain.best < y->gain.best ? 1 : x->gain.best > y->gain.best ? -1 : 0;
}

/* A host function has no setting that cures it; what it costs is worth saying all the same. */
static stk_status advise_host(doctor *d, stk_error *err)
{
    stk_gain host = d->f.gain[STK_KNOB_FREE_HOST];
    if (host.best <= 0 || host.low < 1.05) return STK_OK;
    return add_advice(d, STK_KNOB_FREE_HOST, 1, host, "host function out of the step (at most)",
                      err);
}

/* Pairs of turns that follow each other say nothing about a machine that is slower in one second than in the next: what is advised
 * first is measured again after everything else. The promise lies between the two, its interval holds both; where they
 * disagree a third one decides. */
static stk_status prove_first(doctor *d, stk_error *err)
{
    static const double APART = 1.06;
    double best[3];
    if (!d->nadvice) return STK_OK;
    qsort(d->advice, (size_t)d->nadvice, sizeof *d->advice, by_gain);
    stk_advice *a = &d->advice[0];
    stk_gain held = a->gain;
    if (a->knob == STK_KNOB_VALIDATION_BATCH || a->knob == STK_KNOB_VALIDATE_EVERY) return STK_OK;
    tell_setting(d, "once more: ", a->knob, a->value);
    best[0] = held.best;
    int n = 1;
    do {
        stk_gain again;
        STK_TRY(probe(d, &a->settings, stk_care_for_promises(&d->p), &again, err));
        if (again.best <= 0) return STK_OK;
        held.low = fmin(held.low, again.low);
        held.high = fmax(held.high, again.high);
        best[n++] = again.best;
    } while (n < 3 && fabs(log(best[1] / best[0])) > log(APART));
    stk_sort_doubles(best, n);
    held.best = n == 3 ? best[1] : sqrt(best[0] * best[1]);
    a->gain = held;
    return STK_OK;
}

static stk_status keep_advice(doctor *d, stk_error *err)
{
    qsort(d->advice, (size_t)d->nadvice, sizeof *d->advice, by_gain);
    d->r->advice =
        stk_arena_copy(&d->r->arena, d->advice, (size_t)d->nadvice * sizeof *d->advice + 1);
    if (!d->r->advice) return stk_fail_memory(err, "advice", 0);
    d->r->nadvice = d->nadvice;
    return STK_OK;
}

static stk_status examine(doctor *d, stk_error *err)
{
    stk_load before = stk_load_now(), after;
    STK_TRY(look(d, err));
    d->p.period = d->r->period;
    plan_turns(d);
    stretch_turns(d);
    STK_TRY(measure_noise(d, err));
    STK_TRY(take_stages(d, err));
    if (stk_prober_has_time(&d->p, &d->base))
        STK_TRY(stk_epoch_measure(&d->p, d->turns.median * (double)d->base.batch, d->r, err));
    STK_TRY(probe_ceilings(d, err));
    for (int k = 0; k < STK_KNOB_COUNT; k++)
        if (stk_knob_class_of((stk_knob)k) == STK_KNOB_IS_SAFE && worth_trying(d, (stk_knob)k))
            STK_TRY(probe_knob(d, (stk_knob)k, err));
    STK_TRY(probe_together(d, err));
    STK_TRY(advise_host(d, err));
    STK_TRY(probe_validation(d, err));
    STK_TRY(probe_buckets(d, err));
    if (!d->p.options.no_math) {
        STK_TRY(probe_batches(d, err));
        STK_TRY(probe_precision(d, err));
    }
    STK_TRY(prove_first(d, err));
    STK_TRY(stk_compare_devices(d->job, &d->p.options, d->r, &d->f, err));
    after = stk_load_now();
    d->f.processors = stk_cpu_count();
    d->f.others = stk_load_of_others(&before, &after);
    STK_TRY(stk_judge(d->r, &d->f, err));
    return keep_advice(d, err);
}

stk_status stk_doctor_run(const stk_job *job, const stk_doctor_options *options,
                          stk_report **report, stk_error *err)
{
    if (!job || !job->open || !job->run || !job->close || !report)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_doctor_run: a job with open, run and close, and report must be given");
    *report = NULL;
    double start = stk_seconds_now();
    doctor d = {.p = stk_prober_of(job, options), .job = job};
    if (job->save) STK_TRY(job->save(job->context, err));
    stk_status status = examine(&d, err);
    stk_variant_close(&d.p, &d.base);
    if (job->restore) {
        stk_status back = job->restore(job->context, status == STK_OK ? err : NULL);
        if (status == STK_OK) status = back;
    }
    if (status == STK_OK) {
        d.r->doctor_seconds = stk_seconds_now() - start;
        *report = d.r;
    } else {
        stk_report_release(d.r);
    }
    return status;
}
