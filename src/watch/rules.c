/* rules.c - the evidence for each verdict. Thresholds: an effect counts when even the low end of its interval is above
 * 5 %; where no probe could price a cause, its share of the step has to be 15 %. */
#include "watch/rules.h"

#include "watch/epoch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SURE = 1.05, SMALL_SHARE = 0.03, LARGE_SHARE = 0.15, NOISE_LIMIT = 0.10,
                    LARGE_BATCH_GAIN = 1.25, CROWDED = 0.5, MOST_OF_IT = 0.4, PART_OF_EPOCH = 0.3,
                    WORTH_NAMING = 1e-4; /* seconds of an update: below, starting it is the cost */

static const struct {
    const char *verdict, *symptom, *advice;
} rules[] = {
#define STK_RULE(NAME, verdict, symptom, advice) {verdict, symptom, advice},
#include "watch/rules.def"
};

typedef struct court {
    const stk_report *r;
    const stk_findings *f;
    double wall;
    stk_text evidence;
} court;

static double share(const court *c, stk_book book) { return c->r->book[book] / c->wall; }
static double above_one(stk_gain g) { return g.best > 0 ? g.low : 0; }

/* What the cause costs at least, as a ratio: by its probe, else by its share of the books. */
static double price(double probed, double part)
{
    if (part < SMALL_SHARE) return 0; /* what takes no time costs none, whatever a probe met */
    if (probed > 0) return probed;
    return part >= LARGE_SHARE && part < 1 ? 1 / (1 - part) : 0;
}

/* Workers that decode take the processors away from the kernels: what another pipeline gains can be more than the waiting. */
static double price_input(const court *c)
{
    static const stk_knob others[] = {STK_KNOB_PREFETCH, STK_KNOB_WORKERS, STK_KNOB_FUSED,
                                      STK_KNOB_CACHE};
    double gain = above_one(c->f->gain[STK_KNOB_FREE_INPUT]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        gain = fmax(gain, above_one(c->f->gain[others[i]]));
    /* One batch again and again is one shape, too: where programs are built all the time only the waiting is input's. */
    if (share(c, STK_BOOK_BUILD) >= SMALL_SHARE)
        gain = fmin(gain, 1 / fmax(1 - share(c, STK_BOOK_INPUT), 0.01));
    return price(gain, share(c, STK_BOOK_INPUT));
}
/* Waiting for a device that is slow by itself is not the fault of those who ask: without asking the step would take as long. */
static double price_sync(const court *c)
{
    double gain = price(above_one(c->f->gain[STK_KNOB_READ_EVERY]),
                        share(c, STK_BOOK_SYNC) + share(c, STK_BOOK_DOWNLOAD));
    return c->f->undisturbed > 0 ? fmin(gain, c->wall / c->f->undisturbed) : gain;
}
static double price_callbacks(const court *c)
{
    double free = above_one(c->f->gain[STK_KNOB_FREE_CALLBACKS]);
    double rarer = above_one(c->f->gain[STK_KNOB_CALLBACK_EVERY]);
    return price(fmax(free, rarer), share(c, STK_BOOK_CALLBACKS));
}
static double price_host(const court *c)
{
    return price(above_one(c->f->gain[STK_KNOB_FREE_HOST]), share(c, STK_BOOK_HOST));
}
static double price_transfer(const court *c)
{
    return price(above_one(c->f->gain[STK_KNOB_NATIVE_INPUT]), share(c, STK_BOOK_UPLOAD));
}
static double reference_share(const court *c)
{
    double slow = 0, all = 0;
    for (int64_t i = 0; i < c->r->nops; i++) {
        all += c->r->ops[i].seconds;
        if (!strcmp(c->r->ops[i].impl, "ref")) slow += c->r->ops[i].seconds;
    }
    double kernels = share(c, STK_BOOK_KERNELS) + share(c, STK_BOOK_OPTIMIZER);
    return all > 0 ? kernels * slow / all : 0;
}
static double price_fallback(const court *c)
{
    double islands = share(c, STK_BOOK_ISLANDS);
    if (islands >= LARGE_SHARE) return price(0, islands);
    double probed = above_one(c->f->gain[STK_KNOB_ELECTED]);
    return reference_share(c) > 0.05 ? price(probed, 0.5 * reference_share(c)) : 0;
}

/* Programs built all the time. A warm-up is over before the books begin. */
static double price_shapes(const court *c)
{
    if (c->f->programs < 3) return 0;
    return price(above_one(c->f->gain[STK_KNOB_BUCKETS]), share(c, STK_BOOK_BUILD));
}

/* Shares of an epoch. The causes of slow steps are worth less where an epoch is more than its steps. */
static double epoch_share(const court *c, double seconds)
{
    double all = stk_epoch_seconds(&c->r->epoch);
    return c->r->epoch.steps > 0 && all > 0 ? seconds / all : 0;
}
static double price_part(const court *c, double seconds)
{
    double part = epoch_share(c, seconds);
    return part >= PART_OF_EPOCH ? 1 / fmax(1 - part, 1e-3) : 0;
}
static double price_validation(const court *c) { return price_part(c, c->r->epoch.validation); }
static double price_epoch_end(const court *c)
{
    return price_part(c, c->r->epoch.callbacks + c->r->epoch.checkpoint);
}
static double for_the_epoch(const court *c, double gain)
{
    double steps = c->r->epoch.steps > 0 ? epoch_share(c, c->r->epoch.training) : 1;
    return gain > 0 ? 1 / (1 - steps + steps / gain) : 0;
}

/* ---- evidence ------------------------------------------------------------------------------------------------------- */

static void say_share(court *c, const char *what, double part)
{
    stk_text_put(&c->evidence, "%s: %.0f %% of a step\n", what, part * 100);
}
static void say_gain(court *c, const char *what, stk_gain g)
{
    if (g.best > 0)
        stk_text_put(&c->evidence, "%s: %.2fx (%.2f-%.2f)\n", what, g.best, g.low, g.high);
}

static void say_input(court *c)
{
    char each[24];
    const stk_report *r = c->r;
    say_share(c, "waiting for batches", share(c, STK_BOOK_INPUT));
    say_gain(c, "with one batch used again and again", c->f->gain[STK_KNOB_FREE_INPUT]);
    if (r->limiting_stage < 0) return;
    const stk_watch_stage *s = &r->stages[r->limiting_stage];
    double n = s->elements ? (double)s->elements : 1;
    stk_text_put(&c->evidence, "slowest stage: %s, %s per element on %d worker%s\n", s->name,
                 stk_time_text(s->busy_seconds / n, each), s->workers, s->workers == 1 ? "" : "s");
    if (r->median > 0 && r->p90 > 3 * r->median && share(c, STK_BOOK_INPUT) > LARGE_SHARE)
        stk_text_put(&c->evidence, "it comes in bursts: one step in ten takes more than %s\n",
                     stk_time_text(r->p90, each));
}
static void say_sync(court *c)
{
    say_share(c, "waiting for and reading results",
              share(c, STK_BOOK_SYNC) + share(c, STK_BOOK_DOWNLOAD));
    say_gain(c, "read less often", c->f->gain[STK_KNOB_READ_EVERY]);
}
static void say_callback(court *c)
{
    say_share(c, "callbacks", share(c, STK_BOOK_CALLBACKS));
    say_gain(c, "without callbacks", c->f->gain[STK_KNOB_FREE_CALLBACKS]);
}
static void say_host(court *c)
{
    say_share(c, "host functions", share(c, STK_BOOK_HOST));
    say_gain(c, "without them", c->f->gain[STK_KNOB_FREE_HOST]);
}
static void say_transfer(court *c)
{
    say_share(c, "bringing batches in", share(c, STK_BOOK_UPLOAD));
    say_gain(c, "with batches in the program's own type", c->f->gain[STK_KNOB_NATIVE_INPUT]);
}
static void say_islands(court *c)
{
    char down[24], up[24];
    const stk_report *r = c->r;
    say_share(c, "down to the CPU and up again", share(c, STK_BOOK_ISLANDS));
    for (int64_t i = 0; i < r->nislands && i < 4; i++)
        stk_text_put(&c->evidence, "%s%s%s %s: %s; %s down, %s up each step\n", r->islands[i].op,
                     r->islands[i].place[0] ? " of " : "", r->islands[i].place, r->islands[i].shape,
                     r->islands[i].reason, stk_bytes_text((double)r->islands[i].bytes_down, down),
                     stk_bytes_text((double)r->islands[i].bytes_up, up));
}
static void say_fallback(court *c)
{
    if (share(c, STK_BOOK_ISLANDS) >= LARGE_SHARE) {
        say_islands(c);
        return;
    }
    say_share(c, "reference kernels", reference_share(c));
    say_gain(c, "with elected kernels", c->f->gain[STK_KNOB_ELECTED]);
    stk_text_put(&c->evidence, "ops:");
    for (int64_t i = 0, said = 0; i < c->r->nops && said < 4; i++)
        if (!strcmp(c->r->ops[i].impl, "ref"))
            stk_text_put(&c->evidence, "%s %s", said++ ? "," : "", c->r->ops[i].label);
    stk_text_put(&c->evidence, "\n");
}

static void say_shapes(court *c)
{
    say_share(c, "building programs", share(c, STK_BOOK_BUILD));
    stk_text_put(&c->evidence, "%d programs so far; the last because %s\n", c->f->programs,
                 c->f->why[0] ? c->f->why : "of a new shape");
    say_gain(c, "with batches padded to powers of two", c->f->gain[STK_KNOB_BUCKETS]);
}
static void say_epoch(court *c)
{
    const stk_epoch_rows *e = &c->r->epoch;
    char a[24], b[24];
    stk_text_put(&c->evidence, "an epoch: %s for %lld steps\n", stk_time_text(e->training, a),
                 (long long)e->steps);
    if (e->validation > 0)
        stk_text_put(&c->evidence, "validation: %s, %.0f %% of the epoch, %lld batches%s%s\n",
                     stk_time_text(e->validation, a), epoch_share(c, e->validation) * 100,
                     (long long)e->validation_steps, e->validation_every > 1 ? ", every " : "",
                     e->validation_every > 1 ? stk_count_text((double)e->validation_every, b) : "");
    if (e->callbacks + e->checkpoint > 0)
        stk_text_put(&c->evidence,
                     "at its end: callbacks %s, checkpoint %s, %.0f %% of the epoch\n",
                     stk_time_text(e->callbacks, a), stk_time_text(e->checkpoint, b),
                     epoch_share(c, e->callbacks + e->checkpoint) * 100);
}

/* ---- verdicts without a probe of their own ------------------------------------------------------------------------- */

/* What a run that was settled from its first step on would save: building, and what slow first steps took beyond settled ones. */
static double wasted_seconds(const stk_report *r)
{
    double settled = (double)r->phase_steps[STK_PHASE_WARM_UP] * r->median;
    double wasted = fmax(0, r->phase_seconds[STK_PHASE_WARM_UP] - settled);
    for (int p = STK_PHASE_TRACE; p < STK_PHASE_WARM_UP; p++) wasted += r->phase_seconds[p];
    return wasted;
}

static bool is_warm_up(const court *c)
{
    const stk_report *r = c->r;
    double wasted = wasted_seconds(r), steady = (double)r->plan_steps * r->median;
    return r->plan_steps > 0 && wasted > 5 * r->median && wasted > 0.3 * (wasted + steady);
}
static void say_warm_up(court *c)
{
    const stk_report *r = c->r;
    char a[24], b[24];
    double wasted = wasted_seconds(r), steady = (double)r->plan_steps * r->median;
    stk_text_put(
        &c->evidence, "building and warm-up: %s, which is %.0f %% of a run of %lld steps\n",
        stk_time_text(wasted, a), wasted / (wasted + steady) * 100, (long long)r->plan_steps);
    stk_text_put(&c->evidence, "a settled step takes %s, the mean over the run would say %s\n",
                 stk_time_text(r->median, a),
                 stk_time_text((wasted + steady) / (double)r->plan_steps, b));
    stk_text_put(&c->evidence, "settled after %lld steps\n",
                 (long long)r->phase_steps[STK_PHASE_WARM_UP]);
}

static double call_seconds(const stk_report *r, int64_t *calls)
{
    double seconds = 0;
    *calls = 0;
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        seconds += r->histogram_seconds[i];
        *calls += r->histogram_calls[i];
    }
    return *calls ? seconds / (double)*calls : 0;
}

/* Time of a step that goes into launches of one place ("metrics"), as a share. */
static double place_share(const court *c, const char *place)
{
    double here = 0, all = 0;
    for (int64_t i = 0; i < c->r->nplaces; i++) {
        all += c->r->places[i].seconds;
        if (!strcmp(c->r->places[i].place, place)) here += c->r->places[i].seconds;
    }
    double kernels = share(c, STK_BOOK_KERNELS) + share(c, STK_BOOK_OPTIMIZER);
    return all > 0 ? kernels * here / all : 0;
}

/* Work of its own that a step pays once, and not because it is small: the update of many weights, a metric. */
static bool is_optimizer(const court *c)
{
    double part = share(c, STK_BOOK_OPTIMIZER);
    return part >= MOST_OF_IT && part * c->wall >= WORTH_NAMING;
}
static void say_optimizer(court *c)
{
    char weights[24], state[24];
    say_share(c, "updates of weights", share(c, STK_BOOK_OPTIMIZER));
    stk_text_put(&c->evidence, "every step reads and writes %s of weights and %s of their state\n",
                 stk_bytes_text((double)c->r->memory.weights, weights),
                 stk_bytes_text((double)c->r->memory.optimizer, state));
    say_gain(c, "per example at four times the batch", c->f->batch_gain);
}
static bool is_metric(const court *c)
{
    double part = place_share(c, "metrics");
    return part >= MOST_OF_IT && part * c->wall >= 0.1 * WORTH_NAMING;
}
static void say_metric(court *c)
{
    say_share(c, "metrics", place_share(c, "metrics"));
    for (int64_t i = 0; i < c->r->nplaces; i++)
        if (!strcmp(c->r->places[i].place, "metrics"))
            stk_text_put(&c->evidence, "largest of them: %s\n", c->r->places[i].largest);
}

/* Many launches, each so short that starting it counts. */
static bool has_tiny_ops(const court *c)
{
    int64_t calls;
    double each = call_seconds(c->r, &calls);
    return c->r->program.launches >= 100 && each < 2e-6;
}
/* What tiny ops cost, as a gain: their time against that of the same arithmetic in large pieces. */
static double price_tiny_ops(const court *c)
{
    int64_t calls;
    double each = call_seconds(c->r, &calls), launches = c->r->program.launches;
    if (!has_tiny_ops(c) || c->r->roof.gflops[0] <= 0) return 0;
    double lost = launches * each - c->r->program.flops / (c->r->roof.gflops[0] * 1e9);
    double part = lost / c->wall;
    return part > 0 && part < 1 ? 1 / (1 - part) : 0;
}
/* What a step costs whatever its batch. A cause that a step pays once is worth less by four times the batch than by its own probe. */
static double price_overhead(const court *c)
{
    double gain = above_one(c->f->batch_gain);
    return fmax(gain > LARGE_BATCH_GAIN * (1 + c->r->noise) ? gain : 0, price_tiny_ops(c));
}
/* Calls are counted, and noise only makes them longer: this holds on a noisy machine too. */
static bool is_overhead(const court *c) { return price_overhead(c) > 0 || has_tiny_ops(c); }
static void say_overhead(court *c)
{
    char a[24], b[24];
    int64_t calls;
    double each = call_seconds(c->r, &calls);
    say_gain(c, "per example at four times the batch", c->f->batch_gain);
    stk_text_put(&c->evidence,
                 "%d kernel launches per step, %s each; starting them: %.0f %% of a step\n",
                 c->r->program.launches, stk_time_text(each, a),
                 (share(c, STK_BOOK_DISPATCH) + share(c, STK_BOOK_THREADS)) * 100);
    if (has_tiny_ops(c)) {
        double work = c->r->program.launches ? c->r->program.flops / c->r->program.launches : 0;
        double ideal = c->r->roof.gflops[0] > 0 ? work / (c->r->roof.gflops[0] * 1e9) : 0;
        stk_text_put(&c->evidence,
                     "many tiny ops: the arithmetic of one would take %s as part of a large one\n",
                     stk_time_text(ideal, b));
        if (c->r->nops)
            stk_text_put(&c->evidence, "most calls: %s (%lld)\n", c->r->ops[0].label,
                         (long long)c->r->ops[0].calls);
    }
}

/* An interval so wide that it holds "nothing" and "a lot": what it would decide stays open. */
static bool undecided(stk_gain g, double threshold)
{
    return g.best > 0 && g.low < threshold && g.high > 1.1 * threshold && g.high > 1.25 * g.low;
}

static bool is_crowded(const stk_findings *f)
{
    return f->processors > 0 && f->others > CROWDED * f->processors;
}

static bool is_noisy(const court *c)
{
    static const stk_knob asked_for[] = {STK_KNOB_FREE_INPUT,     STK_KNOB_READ_EVERY,
                                         STK_KNOB_FREE_CALLBACKS, STK_KNOB_FREE_HOST,
                                         STK_KNOB_NATIVE_INPUT,   STK_KNOB_ELECTED};
    bool open = undecided(c->f->batch_gain, LARGE_BATCH_GAIN);
    for (size_t i = 0; i < sizeof asked_for / sizeof *asked_for; i++)
        open |= undecided(c->f->gain[asked_for[i]], SURE);
    return c->r->noise > NOISE_LIMIT || open || is_crowded(c->f);
}
static void say_noisy(court *c)
{
    stk_text_put(&c->evidence,
                 "two equal runs differ by up to %.0f %%, single turns scatter by %.0f %%\n",
                 c->r->noise * 100, c->f->slice_noise * 100);
    if (c->f->processors > 0)
        stk_text_put(&c->evidence, "others kept %.1f of %d processors busy\n", c->f->others,
                     c->f->processors);
}

static bool is_cpu_faster(const court *c) { return c->f->cpu_gain.low > SURE; }
static void say_cpu_faster(court *c)
{
    say_gain(c, "cpu:0 instead of the device, tried by turns", c->f->cpu_gain);
    if (c->f->cpu_until > 0)
        stk_text_put(&c->evidence, "the device should win from a batch of about %lld on\n",
                     (long long)c->f->cpu_until);
    else
        stk_text_put(&c->evidence, "no batch is known at which the device would win\n");
}

static bool is_cpu_right(const court *c)
{
    return !c->f->device_faster && c->f->cards > 0 && c->f->cards_faster == 0 &&
           2 * c->f->cards_slower >= c->f->cards;
}
static void say_roof(court *c)
{
    double kernels = 0, ideal = 0;
    for (int64_t i = 0; i < c->r->nops; i++) {
        kernels += c->r->ops[i].seconds;
        ideal += c->r->ops[i].roof * c->r->ops[i].seconds;
    }
    if (kernels > 0)
        stk_text_put(&c->evidence, "kernels: %.0f %% of a step, at %.0f %% of the roofline\n",
                     (share(c, STK_BOOK_KERNELS) + share(c, STK_BOOK_OPTIMIZER)) * 100,
                     ideal / kernels * 100);
    if (c->r->nops)
        stk_text_put(&c->evidence, "largest: %s by %s\n", c->r->ops[0].label, c->r->ops[0].impl);
}
static void say_cpu_right(court *c)
{
    say_roof(c);
    stk_text_put(&c->evidence,
                 "of %d cards the model expects %d to be slower, none surely faster\n", c->f->cards,
                 c->f->cards_slower);
}

static bool is_compute(const court *c)
{
    double compute = 0, all = 0;
    for (int64_t i = 0; i < c->r->nops; i++) {
        all += c->r->ops[i].seconds;
        compute += c->r->ops[i].compute_side ? c->r->ops[i].seconds : 0;
    }
    return compute > 0.5 * all;
}
static bool otherwise(const court *c)
{
    (void)c;
    return true;
}

/* ---- the verdict ----------------------------------------------------------------------------------------------------- */

static const struct {
    stk_rule rule;
    double (*price)(const court *c);
    void (*say)(court *c);
    bool of_epoch; /* its price is that of an epoch, not of a step */
} priced[] = {
    {STK_RULE_INPUT, price_input, say_input, false},
    {STK_RULE_SYNC, price_sync, say_sync, false},
    {STK_RULE_CALLBACK, price_callbacks, say_callback, false},
    {STK_RULE_HOST, price_host, say_host, false},
    {STK_RULE_TRANSFER, price_transfer, say_transfer, false},
    {STK_RULE_FALLBACK, price_fallback, say_fallback, false},
    {STK_RULE_SHAPES, price_shapes, say_shapes, false},
    {STK_RULE_VALIDATION, price_validation, say_epoch, true},
    {STK_RULE_EPOCH_END, price_epoch_end, say_epoch, true},
};
static const struct {
    stk_rule rule;
    bool (*holds)(const court *c);
    void (*say)(court *c);
} asked[] = {
    {STK_RULE_METRIC, is_metric, say_metric},
    {STK_RULE_OPTIMIZER, is_optimizer, say_optimizer},
    {STK_RULE_CPU_FASTER, is_cpu_faster, say_cpu_faster},
    {STK_RULE_OVERHEAD, is_overhead, say_overhead},
    {STK_RULE_NOISY, is_noisy, say_noisy},
    {STK_RULE_CPU_RIGHT, is_cpu_right, say_cpu_right},
    {STK_RULE_COMPUTE, is_compute, say_roof},
    {STK_RULE_MEMORY, otherwise, say_roof},
};

static stk_rule storage_or_input(const stk_report *r)
{
    bool storage = r->limiting_stage >= 0 && r->stages[r->limiting_stage].kind == STK_STAGE_STORAGE;
    return storage ? STK_RULE_STORAGE : STK_RULE_INPUT;
}

static stk_rule decide(court *c)
{
    double dearest = fmax(SURE, 1 + c->r->noise);
    int cause = -1;
    for (int i = 0; i < (int)(sizeof priced / sizeof *priced); i++) {
        double p = priced[i].price(c);
        if (!priced[i].of_epoch) p = for_the_epoch(c, p);
        if (p > dearest) dearest = p, cause = i;
    }
    /* Builds are counted, and take most of the time whatever else scatters. */
    if (cause < 0 && share(c, STK_BOOK_BUILD) >= MOST_OF_IT && price_shapes(c) > SURE)
        while (priced[++cause].rule != STK_RULE_SHAPES) continue;
    bool builds = cause >= 0 && priced[cause].rule == STK_RULE_SHAPES;
    if (is_warm_up(c) && !builds) {
        say_warm_up(c);
        return STK_RULE_WARM_UP;
    }
    if (builds || (cause >= 0 && dearest >= for_the_epoch(c, price_overhead(c)))) {
        priced[cause].say(c);
        return priced[cause].rule == STK_RULE_INPUT ? storage_or_input(c->r) : priced[cause].rule;
    }
    int i = 0;
    while (!asked[i].holds(c)) i++;
    asked[i].say(c);
    return asked[i].rule;
}

stk_status stk_judge(stk_report *r, const stk_findings *f, stk_error *err)
{
    court c = {.r = r, .f = f, .wall = stk_report_seconds(r, STK_BOOK_COUNT)};
    if (c.wall <= 0)
        return stk_fail(err, STK_ERR_STATE,
                        "the job ran no step that could be recorded; its run must run programs or "
                        "mark steps with stk_watch_step");
    stk_rule rule = decide(&c);
    char headline[512];
    snprintf(headline, sizeof headline, "%s %s", rules[rule].symptom, rules[rule].advice);
    char *evidence = NULL;
    STK_TRY(stk_text_finish(&c.evidence, &evidence, NULL, err));
    r->verdict = stk_arena_strdup(&r->arena, rules[rule].verdict);
    r->headline = stk_arena_strdup(&r->arena, headline);
    r->evidence = stk_arena_strdup(&r->arena, evidence);
    stk_free(evidence);
    return r->verdict && r->headline && r->evidence ? STK_OK : stk_fail_memory(err, "a verdict", 0);
}
