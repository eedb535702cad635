/* probe.c - measuring by turns. What disturbs the machine disturbs both variants of a pair alike; the pairs' ratios go
 * through order statistics, so a few bad turns do not matter. */
#include "watch/probe.h"

#include "base/clock.h"
#include "watch/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double stk_seconds_now(void) { return (double)stk_now_ns() * 1e-9; }

stk_doctor_options stk_doctor_options_defaults(void)
{
    return (stk_doctor_options){.seconds = 12, .slice_ms = 25, .rounds = 7};
}

stk_prober stk_prober_of(const stk_job *job, const stk_doctor_options *options)
{
    stk_prober p = {.job = job, .options = options ? *options : stk_doctor_options_defaults()};
    if (p.options.rounds < 6) p.options.rounds = 6;
    if (p.options.rounds > STK_PAIRS_MOST) p.options.rounds = STK_PAIRS_MOST;
    if (!(p.options.slice_ms > 0)) p.options.slice_ms = 25;
    if (!(p.options.seconds > 0)) p.options.seconds = 12;
    p.deadline = stk_seconds_now() + p.options.seconds;
    p.limit = p.deadline + 2 * p.options.seconds;
    return p;
}

void stk_prober_tell(stk_prober *p, const char *doing)
{
    static const double PAUSE = 0.1;
    double now = stk_seconds_now();
    bool other = doing && strcmp(doing, p->doing) != 0;
    if (other) snprintf(p->doing, sizeof p->doing, "%s", doing);
    if (!p->options.progress || (!other && now < p->told + PAUSE)) return;
    p->told = now;
    double share = fmax(0, 1 - (p->deadline - now) / p->options.seconds);
    p->options.progress(p->options.progress_context, fmin(share, 1), p->doing);
}

static int64_t setting(const stk_job *job, const stk_job_settings *s, stk_knob knob)
{
    int64_t v = s->value[knob];
    return v == STK_AS_IS ? job->knob[knob].current : v;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    enum { MOST = 1000 };
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b <= MOST ? a / x * b : stk_max_i64(a, b);
}

/* Turns are whole periods: what happens every so many steps counts with its share. */
static int64_t period_of(const stk_prober *p, const stk_variant *variant)
{
    static const stk_knob periodic[] = {STK_KNOB_READ_EVERY, STK_KNOB_CALLBACK_EVERY,
                                        STK_KNOB_GROUP};
    int64_t period = stk_max_i64(p->period, 1);
    for (size_t i = 0; i < sizeof periodic / sizeof *periodic; i++) {
        stk_knob k = periodic[i];
        if (p->cheap[k] && variant->settings.value[k] == STK_AS_IS) continue;
        int64_t every = setting(p->job, &variant->settings, k);
        if (every > 1) period = common_multiple(period, stk_min_i64(every, 1000));
    }
    return period;
}

stk_status stk_variant_open(const stk_prober *p, const stk_job_settings *settings, stk_variant *out,
                            stk_error *err)
{
    *out = (stk_variant){.settings = *settings};
    int64_t batch = settings->value[STK_KNOB_BATCH];
    int64_t prefetch = stk_max_i64(setting(p->job, settings, STK_KNOB_PREFETCH), 0);
    int64_t workers = stk_max_i64(setting(p->job, settings, STK_KNOB_WORKERS), 0);
    bool fed = settings->value[STK_KNOB_FREE_INPUT] != 1 && (prefetch > 0 || workers > 1);
    out->batch = batch != STK_AS_IS ? batch : p->job->batch > 0 ? p->job->batch : 1;
    out->ahead = fed && !p->never_waits ? stk_min_i64(prefetch + workers, 64) : 0;
    return p->job->open(p->job->context, settings, &out->variant, err);
}

void stk_variant_close(const stk_prober *p, stk_variant *variant)
{
    if (variant->variant) p->job->close(p->job->context, variant->variant);
    variant->variant = NULL;
}

/* A turn that takes longer is a long one: there will be fewer and shorter ones. */
static double long_turn(const stk_prober *p) { return p->options.seconds / 24; }

/* Pipelines that tune themselves get faster for a while: stretches are run until one is no faster than those before it. */
static stk_status settle(const stk_prober *p, stk_variant *variant, stk_error *err)
{
    enum { MOST = 12 };
    static const double STRETCH = 0.035; /* the tuner looks every 30 ms */
    double best = INFINITY, until = stk_seconds_now() + long_turn(p);
    bool pipeline = variant->ahead > 0 || variant->settings.value[STK_KNOB_FREE_MODEL] == 1;
    for (int i = 0; i < MOST && pipeline && stk_seconds_now() < until; i++) {
        int64_t n = stk_max_i64((int64_t)(STRETCH / fmax(variant->step_seconds, 1e-9)), 1);
        double start = stk_seconds_now();
        STK_TRY(p->job->run(p->job->context, variant->variant, stk_min_i64(n, 1 << 20), err));
        variant->step_seconds = (stk_seconds_now() - start) / (double)n;
        if (i > 1 && variant->step_seconds > 0.93 * best) break;
        best = fmin(best, variant->step_seconds);
    }
    return STK_OK;
}

/* How many steps fill a turn, found out by running more and more.
 * While a variant rests its buffers fill up. A producer somewhat slower than the model lives on that for long, and the turn looks
 * faster than the variant is: by at most one part in (WARM + TIMED), where both are counted in what the buffers hold.
 * Behind a variant that sleeps a lot the processor itself has to wake up, and caches hold the other variant's numbers: one part in WAKING of a turn
 * runs before the clock does.
 * Where steps take so long that this would take minutes, what the buffers hold is used up and half as much is timed. */
static stk_status fit_turn(const stk_prober *p, stk_variant *variant, stk_error *err)
{
    enum { MOST = 1 << 20, WARM = 4, TIMED = 8, WAKING = 4 };
    double wanted = p->options.slice_ms * 1e-3, spent = 0;
    int64_t period = period_of(p, variant);
    for (int64_t n = period;; n *= 2) {
        double start = stk_seconds_now();
        STK_TRY(p->job->run(p->job->context, variant->variant, n, err));
        double took = stk_seconds_now() - start;
        spent += took;
        variant->step_seconds = took / (double)n;
        if ((took < wanted / 2 || n < 4 * period) && n < MOST && spent < 0.1) continue;
        bool slow = (WARM + TIMED) * (double)variant->ahead * variant->step_seconds > long_turn(p);
        STK_TRY(settle(p, variant, err));
        int64_t steps = (int64_t)ceil(wanted / fmax(variant->step_seconds, 1e-9));
        if (period > 1) steps = stk_max_i64(steps, 2 * period);
        steps = stk_max_i64(steps, slow ? (variant->ahead + 1) / 2 : TIMED * variant->ahead);
        variant->steps = stk_round_up(stk_min_i64(steps, MOST), period);
        variant->warm = stk_max_i64((slow ? 1 : WARM) * variant->ahead + (slow ? 0 : 1),
                                    variant->steps / WAKING);
        return STK_OK;
    }
}

/* The variant's workers go on until its buffers are full; the next turn belongs to another variant. */
static void let_fill(const stk_variant *variant)
{
    static const double MOST = 0.03;
    double seconds = fmin(1.2 * (double)variant->ahead * variant->step_seconds, MOST);
    struct timespec t = {0, (long)(seconds * 1e9)};
    if (variant->ahead > 0) nanosleep(&t, NULL);
}

stk_status stk_variant_turn(const stk_prober *p, stk_variant *variant, double *seconds,
                            stk_error *err)
{
    if (!variant->steps) STK_TRY(fit_turn(p, variant, err));
    STK_TRY(p->job->run(p->job->context, variant->variant, variant->warm, err));
    double start = stk_seconds_now();
    STK_TRY(p->job->run(p->job->context, variant->variant, variant->steps, err));
    double took = stk_seconds_now() - start;
    variant->step_seconds = took / (double)variant->steps;
    *seconds = fmax(variant->step_seconds, 1e-12) / (double)variant->batch;
    let_fill(variant);
    return STK_OK;
}

enum { PAIRS_LEAST = 6, PAIRS_OF_LONG_TURNS = 3 };

static double turn_seconds(const stk_variant *v)
{
    return (double)(v->steps + v->warm) * v->step_seconds;
}

bool stk_prober_has_time(const stk_prober *p, const stk_variant *variant)
{
    double turn = turn_seconds(variant);
    int pairs = turn > long_turn(p) ? PAIRS_OF_LONG_TURNS : PAIRS_LEAST;
    return stk_seconds_now() + 2 * pairs * turn < p->limit;
}

stk_care stk_care_for_promises(const stk_prober *p)
{
    return (stk_care){.narrow = 0.04, .seconds = p->options.seconds / 4};
}
stk_care stk_care_for_causes(const stk_prober *p)
{
    return (stk_care){.narrow = 0.06, .seconds = p->options.seconds / 6};
}

stk_status stk_variants_compare(stk_prober *p, stk_variant *a, stk_variant *b, stk_care care,
                                stk_gain *out, stk_turns *turns, stk_error *err)
{
    double log_ratio[STK_PAIRS_MOST], taken[STK_PAIRS_MOST], begun = stk_seconds_now();
    int32_t n = 0;
    for (bool done = false; !done && n < STK_PAIRS_MOST; n++) {
        double first, second;
        stk_prober_tell(p, NULL);
        STK_TRY(stk_variant_turn(p, n % 2 ? b : a, &first, err));
        STK_TRY(stk_variant_turn(p, n % 2 ? a : b, &second, err));
        log_ratio[n] = (n % 2 ? -1 : 1) * log(first / second);
        taken[n] = n % 2 ? second : first;
        bool slow = fmax(turn_seconds(a), turn_seconds(b)) > long_turn(p);
        if (n + 1 < (slow ? PAIRS_OF_LONG_TURNS : PAIRS_LEAST)) continue;
        *out = stk_gain_of(log_ratio, n + 1);
        double width = log(out->high / out->low), now = stk_seconds_now();
        done = width < care.narrow || (n + 1 >= p->options.rounds && width < 2 * care.narrow) ||
               now > p->deadline || now > begun + care.seconds;
    }
    if (!turns) return STK_OK;
    stk_sort_doubles(taken, n);
    turns->median = stk_quantile(taken, n, 0.5);
    turns->scatter = (stk_quantile(taken, n, 0.9) - taken[0]) / turns->median;
    return STK_OK;
}

stk_status stk_job_compare(const stk_job *job, const stk_job_settings *a, const stk_job_settings *b,
                           const stk_doctor_options *options, stk_gain *out, stk_error *err)
{
    if (!job || !job->open || !job->run || !job->close || !a || !b || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_job_compare: a job with open, run and close, two settings and out "
                        "must be given");
    stk_prober p = stk_prober_of(job, options);
    stk_variant variants[2] = {{0}};
    if (job->save) STK_TRY(job->save(job->context, err));
    stk_status status = stk_variant_open(&p, a, &variants[0], err);
    if (status == STK_OK) status = stk_variant_open(&p, b, &variants[1], err);
    if (status == STK_OK)
        status = stk_variants_compare(&p, &variants[0], &variants[1],
                                      (stk_care){.narrow = 0.04, .seconds = p.options.seconds}, out,
                                      NULL, err);
    stk_variant_close(&p, &variants[0]);
    stk_variant_close(&p, &variants[1]);
    if (job->restore) {
        stk_status back = job->restore(job->context, status == STK_OK ? err : NULL);
        if (status == STK_OK) status = back;
    }
    return status;
}
