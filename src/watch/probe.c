/* probe.c - measuring by turns. What disturbs the machine disturbs both lanes of a pair alike; the pairs' ratios go
 * through order statistics, so a few bad turns do not matter. */
#include "watch/probe.h"

#include "base/clock.h"
#include "watch/stats.h"

#include <math.h>

double stk_seconds_now(void) { return (double)stk_now_ns() * 1e-9; }

stk_doctor_options stk_doctor_options_defaults(void)
{
    return (stk_doctor_options){.seconds = 12, .slice_ms = 25, .rounds = 7};
}

stk_prober stk_prober_of(const stk_job *job, const stk_doctor_options *options)
{
    stk_prober p = {.job = job, .options = options ? *options : stk_doctor_options_defaults()};
    if (p.options.rounds < 6) p.options.rounds = 6;
    if (p.options.rounds > STK_PAIRS_MOST / 2) p.options.rounds = STK_PAIRS_MOST / 2;
    if (!(p.options.slice_ms > 0)) p.options.slice_ms = 25;
    if (!(p.options.seconds > 0)) p.options.seconds = 12;
    p.deadline = stk_seconds_now() + p.options.seconds;
    return p;
}

static int64_t setting(const stk_job *job, const stk_job_settings *s, stk_knob knob)
{
    int64_t v = s->value[knob];
    return v == STK_AS_IS ? job->knob[knob].current : v;
}

static const stk_knob PERIODIC[] = {STK_KNOB_READ_EVERY, STK_KNOB_CALLBACK_EVERY, STK_KNOB_GROUP};

stk_status stk_lane_open(const stk_prober *p, const stk_job_settings *settings, stk_lane *out,
                         stk_error *err)
{
    *out = (stk_lane){.settings = *settings};
    int64_t batch = settings->value[STK_KNOB_BATCH];
    int64_t ahead =
        setting(p->job, settings, STK_KNOB_PREFETCH) + setting(p->job, settings, STK_KNOB_WORKERS);
    out->batch = batch != STK_AS_IS ? batch : p->job->batch > 0 ? p->job->batch : 1;
    out->warm = stk_min_i64(stk_max_i64(ahead + 1, 1), 64);
    out->period = 1;
    for (size_t i = 0; i < sizeof PERIODIC / sizeof *PERIODIC; i++)
        out->period = stk_max_i64(out->period, setting(p->job, settings, PERIODIC[i]));
    out->period = stk_min_i64(out->period, 1000);
    out->least = ahead > 1 ? stk_min_i64(4 * ahead, 128) : 1;
    return p->job->open(p->job->context, settings, &out->lane, err);
}

void stk_lane_close(const stk_prober *p, stk_lane *lane)
{
    if (lane->lane) p->job->close(p->job->context, lane->lane);
    lane->lane = NULL;
}

/* How many steps fill a turn, found out by running more and more. */
static stk_status fit_turn(const stk_prober *p, stk_lane *lane, stk_error *err)
{
    enum { MOST = 1 << 20 };
    double wanted = p->options.slice_ms * 1e-3;
    for (int64_t n = lane->period;; n *= 2) {
        double start = stk_seconds_now();
        STK_TRY(p->job->run(p->job->context, lane->lane, n, err));
        double took = stk_seconds_now() - start;
        lane->step_seconds = took / (double)n;
        bool too_few = n < 16 * lane->period && took < 2 * wanted; /* bursts would mislead */
        if ((took < wanted / 4 || too_few) && n < MOST && took < 0.1) continue;
        lane->steps = (int64_t)ceil(wanted / fmax(lane->step_seconds, 1e-9));
        lane->steps =
            stk_round_up(stk_min_i64(stk_max_i64(lane->steps, lane->least), MOST), lane->period);
        return STK_OK;
    }
}

stk_status stk_lane_turn(const stk_prober *p, stk_lane *lane, double *seconds, stk_error *err)
{
    if (!lane->steps) STK_TRY(fit_turn(p, lane, err));
    STK_TRY(p->job->run(p->job->context, lane->lane, lane->warm, err));
    double start = stk_seconds_now();
    STK_TRY(p->job->run(p->job->context, lane->lane, lane->steps, err));
    double took = stk_seconds_now() - start;
    lane->step_seconds = took / (double)lane->steps;
    *seconds = fmax(lane->step_seconds, 1e-12) / (double)lane->batch;
    return STK_OK;
}

stk_status stk_lanes_compare(const stk_prober *p, stk_lane *a, stk_lane *b, stk_gain *out,
                             stk_error *err)
{
    enum { LEAST = 6 };
    static const double NARROW = 0.04;
    double log_ratio[STK_PAIRS_MOST];
    int32_t most = 2 * p->options.rounds;
    for (int32_t i = 0; i < most; i++) {
        double first, second;
        STK_TRY(stk_lane_turn(p, i % 2 ? b : a, &first, err));
        STK_TRY(stk_lane_turn(p, i % 2 ? a : b, &second, err));
        log_ratio[i] = (i % 2 ? -1 : 1) * log(first / second);
        if (i + 1 < LEAST) continue;
        *out = stk_gain_of(log_ratio, i + 1);
        double width = log(out->high / out->low);
        if (width < NARROW || (i + 1 >= p->options.rounds && width < 2.5 * NARROW)) break;
        if (stk_seconds_now() > p->deadline) break;
    }
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
    stk_lane lanes[2] = {{0}};
    if (job->save) STK_TRY(job->save(job->context, err));
    stk_status status = stk_lane_open(&p, a, &lanes[0], err);
    if (status == STK_OK) status = stk_lane_open(&p, b, &lanes[1], err);
    if (status == STK_OK) status = stk_lanes_compare(&p, &lanes[0], &lanes[1], out, err);
    stk_lane_close(&p, &lanes[0]);
    stk_lane_close(&p, &lanes[1]);
    if (job->restore) {
        stk_status back = job->restore(job->context, status == STK_OK ? err : NULL);
        if (status == STK_OK) status = back;
    }
    return status;
}
