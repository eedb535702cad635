/* The verdicts on books made by hand: which cause wins, and what must not be called one. Nothing is timed here; test_doctor.c has the jobs. */
#include "check.h"

#include "watch/rules.h"

#include <string.h>

/* A step of 1 ms, all of it kernels, of a run of 375 steps. */
static stk_report *books(void)
{
    static stk_report_op op = {.label = "matmul",
                               .kernel = "gemm",
                               .impl = "own",
                               .device = "cpu:0",
                               .calls = 100,
                               .seconds = 0.1,
                               .roof = 0.8,
                               .compute_side = true};
    stk_report *r = stk_report_new();
    if (!r) return NULL;
    r->median = r->p10 = r->p90 = 1e-3;
    r->book[STK_BOOK_KERNELS] = 1e-3;
    r->ops = &op, r->nops = 1;
    r->limiting_stage = -1;
    r->noise = 0.03;
    r->plan_steps = 375;
    r->phase_seconds[STK_PHASE_STEADY] = 0.1, r->phase_steps[STK_PHASE_STEADY] = 100;
    r->roof = (stk_roofline){.threads = 2, .gflops = {100, 200}};
    return r;
}

/* Moves a share of the step from kernels to another book. */
static void spend(stk_report *r, stk_book book, double share)
{
    r->book[STK_BOOK_KERNELS] -= share * 1e-3;
    r->book[book] += share * 1e-3;
}

static stk_gain about(double gain) { return (stk_gain){gain, gain * 0.97, gain * 1.03}; }

/* The report is taken over. */
static void expect(stk_report *r, const stk_findings *f, const char *verdict, const char *evidence)
{
    stk_error err;
    if (CHECK(r) && CHECK_OK(stk_judge(r, f, &err))) {
        CHECK_MSG(!strcmp(r->verdict, verdict), "\"%s\" instead of \"%s\"", r->verdict, verdict);
        CHECK_MSG(strstr(r->evidence, evidence), "no \"%s\" in \"%s\"", evidence, r->evidence);
    }
    stk_report_release(r);
}

TEST(nothing_to_blame)
{
    static stk_report_op copies = {.label = "gather", .impl = "own", .calls = 1, .seconds = 0.1};
    stk_findings f = {.processors = 2};
    expect(books(), &f, "compute-bound", "80 % of the roofline");
    stk_report *r = books();
    r->ops = &copies;
    expect(r, &f, "memory-bound", "gather");
    f = (stk_findings){.processors = 2, .cards = 5, .cards_slower = 3};
    expect(books(), &f, "the CPU is the right tool", "of 5 cards");
    f.cards_faster = 1;
    expect(books(), &f, "compute-bound", "matmul");
}

/* A large update and a large metric cost a step the same whatever its batch; that is not overhead. */
TEST(fixed_work_of_a_step_has_a_name)
{
    static stk_layer_cost places[] = {{.place = "metrics", .largest = "reduce", .seconds = 0.08},
                                      {.place = "dense", .largest = "matmul", .seconds = 0.02}};
    stk_findings f = {.processors = 2, .batch_gain = about(2.5)};
    stk_report *r = books();
    spend(r, STK_BOOK_OPTIMIZER, 0.7);
    r->memory.weights = 4 << 20, r->memory.optimizer = 8 << 20;
    expect(r, &f, "optimizer-bound", "updates of weights: 70 %");
    r = books();
    spend(r, STK_BOOK_OPTIMIZER, 0.3);
    expect(r, &f, "overhead-bound", "four times the batch");
    r = books();
    r->places = places, r->nplaces = 2;
    expect(r, &f, "metric-bound", "metrics: 80 %");
    places[0].seconds = 0.005;
    r = books();
    r->places = places, r->nplaces = 2;
    expect(r, &f, "overhead-bound", "four times the batch");
    /* a step of 20 us, half of it the update: starting it is what costs */
    r = books();
    r->book[STK_BOOK_KERNELS] = r->book[STK_BOOK_OPTIMIZER] = 1e-5;
    expect(r, &f, "overhead-bound", "four times the batch");
}

TEST(a_priced_cause_wins)
{
    static const struct {
        stk_book book;
        stk_knob knob;
        const char *verdict, *evidence;
    } causes[] = {
        {STK_BOOK_INPUT, STK_KNOB_FREE_INPUT, "input-bound", "waiting for batches: 40 %"},
        {STK_BOOK_SYNC, STK_KNOB_READ_EVERY, "sync-bound", "reading results: 40 %"},
        {STK_BOOK_CALLBACKS, STK_KNOB_FREE_CALLBACKS, "callback-bound", "callbacks: 40 %"},
        {STK_BOOK_HOST, STK_KNOB_FREE_HOST, "host-function-bound", "host functions: 40 %"},
        {STK_BOOK_UPLOAD, STK_KNOB_NATIVE_INPUT, "transfer-bound", "bringing batches in: 40 %"},
    };
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        stk_findings f = {.processors = 2};
        stk_report *r = books();
        REQUIRE(CHECK(r));
        spend(r, causes[i].book, 0.4);
        f.gain[causes[i].knob] = about(1.6);
        expect(r, &f, causes[i].verdict, causes[i].evidence);
        /* a probe that gained nothing acquits: the time is hidden behind something else */
        r = books();
        spend(r, causes[i].book, 0.4);
        f.gain[causes[i].knob] = about(1.0);
        expect(r, &f, "compute-bound", "kernels: 60 %");
        /* and a probe that gained by luck does not convict what takes no time */
        f.gain[causes[i].knob] = about(1.6);
        expect(books(), &f, "compute-bound", "kernels: 100 %");
    }
}

/* A little waiting, but a cache that takes decoding off the processors. */
TEST(input_is_priced_by_what_another_pipeline_gains)
{
    stk_findings f = {.processors = 2};
    stk_report *r = books();
    REQUIRE(CHECK(r));
    r->noise = 0.2;
    spend(r, STK_BOOK_INPUT, 0.07);
    f.gain[STK_KNOB_FREE_INPUT] = about(1.2);
    f.gain[STK_KNOB_CACHE] = about(1.6);
    expect(r, &f, "input-bound", "waiting for batches: 7 %");
}

TEST(the_dearest_of_two)
{
    stk_findings f = {.processors = 2};
    for (int dear = 0; dear < 2; dear++) {
        stk_report *r = books();
        REQUIRE(CHECK(r));
        spend(r, STK_BOOK_INPUT, 0.3);
        spend(r, STK_BOOK_CALLBACKS, 0.3);
        f.gain[STK_KNOB_FREE_INPUT] = about(dear ? 1.2 : 1.5);
        f.gain[STK_KNOB_FREE_CALLBACKS] = about(dear ? 1.5 : 1.2);
        expect(r, &f, dear ? "callback-bound" : "input-bound", "30 %");
    }
}

TEST(storage_is_told_from_other_input)
{
    stk_watch_stage stages[2] = {
        {.name = "read train.tfrecord", .kind = STK_STAGE_STORAGE, .workers = 1, .elements = 10},
        {.name = "map decode", .kind = STK_STAGE_COMPUTE, .workers = 1, .elements = 10}};
    stk_error err;
    stk_findings f = {.processors = 2};
    f.gain[STK_KNOB_FREE_INPUT] = about(2);
    for (int32_t slow = 0; slow < 2; slow++) {
        stk_report *r = books();
        REQUIRE(CHECK(r));
        spend(r, STK_BOOK_INPUT, 0.5);
        stages[slow].busy_seconds = 1, stages[1 - slow].busy_seconds = 0.1;
        for (int i = 0; i < 2; i++) CHECK_OK(stk_report_add_stage(r, &stages[i], &err));
        expect(r, &f, slow ? "input-bound" : "storage-bound", stages[slow].name);
    }
}

TEST(reference_kernels)
{
    static stk_report_op slow = {.label = "matmul", .impl = "ref", .calls = 10, .seconds = 0.1};
    stk_findings f = {.processors = 2};
    stk_report *r = books();
    REQUIRE(CHECK(r));
    r->ops = &slow;
    f.gain[STK_KNOB_ELECTED] = about(5);
    expect(r, &f, "fallback-bound", "ops: matmul");
}

TEST(overhead)
{
    stk_findings f = {.processors = 2, .batch_gain = about(2)};
    expect(books(), &f, "overhead-bound", "four times the batch: 2.00x");
    f.batch_gain = about(1.1);
    expect(books(), &f, "compute-bound", "matmul");
    stk_report *r = books();
    REQUIRE(CHECK(r));
    r->program.launches = 1000; /* 1000 calls of half a microsecond */
    r->histogram_calls[0] = 1000, r->histogram_seconds[0] = 0.5e-3;
    expect(r, &f, "overhead-bound", "many tiny ops");
}

/* A step pays for a callback once: four times the batch saves three quarters of it. */
/* The CPU takes 10 us an example, the card 1 ms a step and 2 us an example: they meet at 125. Both are twice as slow as predicted. */
static stk_status two_devices(void *context, int64_t batch, bool tries, stk_placement *out,
                              stk_error *err)
{
    if (batch > *(int64_t *)context) return stk_fail(err, STK_ERR_RANGE, "no such batch");
    double cpu = 10e-6 * (double)batch, card = 1e-3 + 2e-6 * (double)batch;
    *out = (stk_placement){.n = 2};
    out->row[0] = (stk_forecast){.device = "cpu:0", .predicted = cpu};
    out->row[1] = (stk_forecast){.device = "gpu:0", .predicted = card};
    for (int i = 0; tries && i < 2; i++) out->row[i].measured = 2 * out->row[i].predicted;
    return STK_OK;
}

TEST(the_batch_at_which_a_device_wins)
{
    int64_t most = 1 << 20;
    stk_error err;
    stk_placement here;
    stk_job job = {.context = &most, .batch = 32, .devices = two_devices};
    REQUIRE(CHECK_OK(job.devices(job.context, 32, true, &here, &err)));
    int64_t from = stk_batch_to_win(&job, &here, "gpu:0");
    CHECK_MSG(from == 125 || from == 126, "from %lld", (long long)from);
    most = 100; /* a smaller second batch will do, none will not */
    from = stk_batch_to_win(&job, &here, "gpu:0");
    CHECK_MSG(from == 125 || from == 126, "from %lld", (long long)from);
    most = 40;
    CHECK_EQ_I64(stk_batch_to_win(&job, &here, "gpu:0"), 0);
    CHECK_EQ_I64(stk_batch_to_win(&job, &here, "gpu:7"), 0);
}

TEST(a_device_that_the_cpu_beats)
{
    stk_findings f = {.processors = 2, .batch_gain = about(3), .cpu_gain = about(4)};
    expect(books(), &f, "the CPU is the right tool", "no batch is known");
    f.cpu_until = 640;
    expect(books(), &f, "the CPU is the right tool", "a batch of about 640");
    stk_report *r = books();
    spend(r, STK_BOOK_CALLBACKS, 0.8);
    f.gain[STK_KNOB_FREE_CALLBACKS] = about(5); /* a cause that has a cure on the device, too */
    expect(r, &f, "callback-bound", "callbacks");
    f = (stk_findings){.processors = 2, .cpu_gain = about(4), .undisturbed = 0.98e-3};
    r = books();
    spend(r, STK_BOOK_SYNC, 0.9); /* the device itself is what one waits for */
    expect(r, &f, "the CPU is the right tool", "cpu:0");
    f.undisturbed = 0.3e-3;
    r = books();
    spend(r, STK_BOOK_SYNC, 0.9);
    expect(r, &f, "sync-bound", "90 %");
    f = (stk_findings){.processors = 2, .cards = 5, .cards_slower = 3, .device_faster = true};
    expect(books(), &f, "compute-bound", "roofline");
}

TEST(overhead_against_a_cause)
{
    stk_findings f = {.processors = 2, .batch_gain = about(1.6)};
    stk_report *r = books();
    REQUIRE(CHECK(r));
    spend(r, STK_BOOK_CALLBACKS, 0.5);
    f.gain[STK_KNOB_FREE_CALLBACKS] = about(2);
    expect(r, &f, "callback-bound", "callbacks: 50 %");
    f = (stk_findings){.processors = 2, .batch_gain = about(3.8)};
    r = books();
    REQUIRE(CHECK(r));
    spend(r, STK_BOOK_INPUT, 0.05);
    f.gain[STK_KNOB_FREE_INPUT] = about(1.12);
    expect(r, &f, "overhead-bound", "four times the batch: 3.80x");
}

/* 400 ms of building are half of such a run; a slower start is a loss only by what it is slower. */
TEST(warm_up_is_what_settled_steps_would_not_take)
{
    stk_findings f = {.processors = 2};
    stk_report *r = books();
    REQUIRE(CHECK(r));
    r->phase_seconds[STK_PHASE_BUILD] = 0.4;
    expect(r, &f, "warm-up-counted", "400 ms, which is 52 % of a run of 375 steps");
    r = books();
    REQUIRE(CHECK(r));
    r->phase_seconds[STK_PHASE_WARM_UP] = 0.28, r->phase_steps[STK_PHASE_WARM_UP] = 215;
    expect(r, &f, "compute-bound", "matmul");
    r = books();
    REQUIRE(CHECK(r));
    r->phase_seconds[STK_PHASE_WARM_UP] = 0.8, r->phase_steps[STK_PHASE_WARM_UP] = 215;
    expect(r, &f, "warm-up-counted", "settled after 215 steps");
    r = books();
    REQUIRE(CHECK(r));
    r->plan_steps = 0; /* nobody knows how long the run will be */
    r->phase_seconds[STK_PHASE_BUILD] = 0.4;
    expect(r, &f, "compute-bound", "matmul");
}

TEST(noise_is_no_cause)
{
    stk_findings f = {.processors = 2, .slice_noise = 0.4};
    stk_report *r = books();
    REQUIRE(CHECK(r));
    r->noise = 0.2;
    expect(r, &f, "too noisy", "differ by up to 20 %");
    f = (stk_findings){.processors = 2, .others = 1.5};
    expect(books(), &f, "too noisy", "others kept 1.5 of 2 processors busy");
    /* an effect below the noise is none, one far above it still is */
    f = (stk_findings){.processors = 2};
    for (int strong = 0; strong < 2; strong++) {
        r = books();
        REQUIRE(CHECK(r));
        r->noise = 0.2;
        spend(r, STK_BOOK_INPUT, 0.5);
        f.gain[STK_KNOB_FREE_INPUT] = about(strong ? 2 : 1.15);
        expect(r, &f, strong ? "input-bound" : "too noisy", "");
    }
    /* an interval that holds "nothing" and "a lot" */
    f.gain[STK_KNOB_FREE_INPUT] = (stk_gain){1.3, 0.9, 1.9};
    r = books();
    REQUIRE(CHECK(r));
    spend(r, STK_BOOK_INPUT, 0.3);
    expect(r, &f, "too noisy", "");
}

/* An epoch of 100 steps of 1 ms. */
static stk_report *epoch_of(double validation, double callbacks)
{
    stk_report *r = books();
    if (r)
        r->epoch = (stk_epoch_rows){.steps = 100,
                                    .validation_steps = 50,
                                    .validation_every = 1,
                                    .training = 0.1,
                                    .validation = validation,
                                    .callbacks = callbacks};
    return r;
}

TEST(an_epoch_is_more_than_its_steps)
{
    stk_findings f = {.processors = 2};
    expect(epoch_of(0.2, 0), &f, "validation-bound", "67 % of the epoch");
    expect(epoch_of(0.01, 0), &f, "compute-bound", "roofline");
    expect(epoch_of(0, 0.3), &f, "epoch-end-bound", "75 % of the epoch");
    expect(epoch_of(0.2, 0.3), &f, "epoch-end-bound", "validation: 200 ms");
    /* input costs half a step, but most of the epoch is something else */
    stk_report *r = epoch_of(0.4, 0);
    spend(r, STK_BOOK_INPUT, 0.5);
    f.gain[STK_KNOB_FREE_INPUT] = about(2);
    expect(r, &f, "validation-bound", "validation");
    r = epoch_of(0.03, 0);
    spend(r, STK_BOOK_INPUT, 0.5);
    expect(r, &f, "input-bound", "waiting for batches");
    /* larger batches gain a lot, per step: not what this training waits for */
    f = (stk_findings){.processors = 2, .batch_gain = about(1.6)};
    expect(epoch_of(0, 0.3), &f, "epoch-end-bound", "at its end");
}

TEST(programs_built_all_the_time)
{
    stk_findings f = {
        .processors = 2, .programs = 40, .why = "input 'x' is f32[8,17], it was f32[8,16] before"};
    stk_report *r = books();
    spend(r, STK_BOOK_BUILD, 0.8);
    expect(r, &f, "shape-bound", "input 'x' is f32[8,17]");
    r = books();
    spend(r, STK_BOOK_BUILD, 0.8);
    f.gain[STK_KNOB_BUCKETS] = about(4);
    expect(r, &f, "shape-bound", "padded to powers of two: 4.00x");
    f.programs = 2; /* one for the last batch, which is smaller */
    r = books();
    spend(r, STK_BOOK_BUILD, 0.1);
    f.gain[STK_KNOB_BUCKETS] = (stk_gain){0, 0, 0};
    expect(r, &f, "compute-bound", "roofline");
}

TEST(no_step_no_verdict)
{
    stk_error err;
    stk_findings f = {0};
    stk_report *r = stk_report_new();
    REQUIRE(CHECK(r));
    CHECK_FAILS(stk_judge(r, &f, &err), STK_ERR_STATE, "no step");
    stk_report_release(r);
}

TEST_MAIN()
