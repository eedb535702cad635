/* A trainer in the doctor's hands: a slow map is found, and training goes on as if nothing had happened. */
#include "check.h"
#include "temporary.h"

#include "graph/run/store.h"
#include "stoker/watch.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 256, WIDTH = 16, BATCH = 16 };

typedef struct setup {
    stk_model *model;
    stk_trainer *trainer;
    stk_tensor *x, *y;
    stk_dataset *dataset;
} setup;

static useconds_t row_us = 100; /* of the map */
static stk_status slow(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    (void)context, (void)info, (void)err;
    usleep(row_us);
    for (int i = 0; i < 2; i++) {
        if (!out[i])
            out[i] = stk_tensor_retain(in[i]);
        else
            memcpy(out[i]->data, in[i]->data, (size_t)stk_tensor_bytes(in[i]));
    }
    return STK_OK;
}

static bool begin(setup *s, bool pipeline)
{
    stk_error err;
    *s = (setup){0};
    bool good = CHECK_OK(stk_model_new("small", &s->model, &err));
    stk_model_add(s->model, "Input(shape=(16,))");
    stk_model_add(s->model, "Dense(32, activation=relu)");
    stk_model_add(s->model, "Dropout(0.1)");
    stk_model_add(s->model, "Dense(4)");
    good = good && CHECK_OK(stk_model_build(s->model, 0, NULL, &err));
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam:lr=1e-3";
    how.loss = "mse";
    how.seed = 3;
    how.deterministic = true;
    good = good && CHECK_OK(stk_trainer_new(s->model, &how, &s->trainer, &err));
    good = good && CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){ROWS, WIDTH}, &s->x, &err));
    good = good && CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){ROWS, 4}, &s->y, &err));
    if (!good) return false;
    for (int i = 0; i < ROWS * WIDTH; i++) ((float *)s->x->data)[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < ROWS * 4; i++) ((float *)s->y->data)[i] = (float)(i * 13 % 29) / 29;
    if (!pipeline) return true;
    stk_tensor *parts[] = {s->x, s->y};
    stk_map_options serial = stk_map_options_defaults();
    serial.parallel = 1;
    stk_map_fn fn = {.name = "slow_augment", .call = slow, .flags = STK_MAP_PURE};
    s->dataset = stk_data_slices(2, parts, NULL, "(0,1)", &err);
    s->dataset = stk_data_map(s->dataset, &fn, &serial, &err);
    s->dataset = stk_data_batch(s->dataset, BATCH, true, &err);
    return CHECK_MSG(s->dataset != NULL, "%s", err.message);
}

static void end(setup *s)
{
    stk_dataset_release(s->dataset);
    stk_trainer_release(s->trainer);
    stk_model_release(s->model);
    stk_tensor_release(s->x);
    stk_tensor_release(s->y);
}

static stk_train_data data_of(const setup *s)
{
    if (s->dataset) return (stk_train_data){.dataset = s->dataset};
    return (stk_train_data){
        .nx = 1, .x = (stk_tensor *const *)&s->x, .ny = 1, .y = (stk_tensor *const *)&s->y};
}

static void fit(setup *s, int64_t epochs)
{
    stk_error err;
    stk_fit_options o = stk_fit_defaults();
    stk_train_data data = data_of(s);
    o.batch = BATCH;
    o.epochs = epochs;
    CHECK_OK(stk_trainer_fit(s->trainer, &data, &o, NULL, &err));
}

static stk_report *ask(setup *s)
{
    stk_error err;
    stk_job job = {0};
    stk_report *r = NULL;
    stk_fit_options fit_options = stk_fit_defaults();
    stk_doctor_options o = stk_doctor_options_defaults();
    stk_train_data data = data_of(s);
    fit_options.batch = BATCH;
    o.seconds = 2;
    o.slice_ms = 10;
    if (CHECK_OK(stk_train_job_new(s->trainer, &data, &fit_options, &job, &err)))
        CHECK_OK(stk_doctor_run(&job, &o, &r, &err));
    stk_train_job_release(&job);
    return r;
}

static void same_bits(bool pipeline, bool fresh)
{
    stk_error err;
    stk_tensor *weights[2] = {NULL, NULL};
    for (int doctor = 0; doctor < 2; doctor++) {
        setup s;
        REQUIRE(begin(&s, pipeline));
        if (!fresh) fit(&s, 2);
        if (doctor) stk_report_release(ask(&s));
        fit(&s, 2);
        CHECK_EQ_I64(stk_trainer_step(s.trainer), (fresh ? 2 : 4) * ROWS / BATCH);
        const char *name = stk_store_name(stk_trainer_store(s.trainer), 0);
        CHECK_OK(stk_store_get(stk_trainer_store(s.trainer), name, &weights[doctor], &err));
        end(&s);
    }
    REQUIRE(CHECK(weights[0] && weights[1]));
    CHECK(!memcmp(weights[0]->data, weights[1]->data, (size_t)stk_tensor_bytes(weights[0])));
    stk_tensor_release(weights[0]);
    stk_tensor_release(weights[1]);
}

TEST(arrays_same_bits_with_and_without) { same_bits(false, false); }
TEST(same_bits_before_the_first_step) { same_bits(true, true); }

static bool names_the_map(const stk_report *r)
{
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    double input = stk_report_seconds(r, STK_BOOK_INPUT) / wall;
    double residual = stk_report_seconds(r, STK_BOOK_RESIDUAL) / wall; /* 0.02 on a quiet machine */
    const char *verdict = stk_report_verdict(r), *evidence = stk_report_evidence(r);
    bool good =
        !strcmp(verdict, "input-bound") && strstr(evidence, "map") && input > 0.5 && residual < 0.1;
    if (!good) printf("  %s, %s: input %g, residual %g\n", verdict, evidence, input, residual);
    return good;
}

/* Others may disturb it; a doctor that is wrong is wrong three times. */
TEST(a_slow_map_is_found)
{
    setup s;
    bool found = false;
    REQUIRE(begin(&s, true));
    for (int tries = 0; tries < 3 && !found; tries++) {
        stk_report *r = ask(&s);
        found = CHECK(r) && names_the_map(r);
        stk_report_release(r);
    }
    CHECK(found);
    end(&s);
}

/* ---- books of a fit --------------------------------------------------------------------------------------------- */

static stk_report *watched_fit(setup *s, int64_t sample, int64_t epochs)
{
    stk_error err;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    stk_watch_settings w = stk_watch_settings_defaults();
    w.sample = sample;
    w.no_roofline = true;
    if (!CHECK_OK(stk_watch_start(&w, &watch, &err))) return NULL;
    fit(s, epochs);
    CHECK_OK(stk_watch_stop(watch, &r, &err));
    return r;
}

TEST(fit_marks_every_step)
{
    setup s;
    REQUIRE(begin(&s, true));
    stk_report *r = watched_fit(&s, 0, 3);
    REQUIRE(CHECK(r));
    int64_t steps =
        stk_report_phase_steps(r, STK_PHASE_WARM_UP) + stk_report_phase_steps(r, STK_PHASE_STEADY);
    CHECK_EQ_I64(steps, 3 * ROWS / BATCH);
    CHECK(stk_report_phase_seconds(r, STK_PHASE_TRACE) > 0);
    CHECK(stk_report_phase_seconds(r, STK_PHASE_BUILD) > 0);
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    CHECK(stk_report_seconds(r, STK_BOOK_INPUT) > 0.5 * wall);
    /* A device with a queue of its own computes while the host waits for batches: then kernels cost no time of the step. */
    stk_device_report device;
    stk_device_describe(stk_store_device(stk_trainer_store(s.trainer)), &device);
    CHECK(stk_report_seconds(r, STK_BOOK_KERNELS) > 0 || !device.shares_memory);
    stk_report_release(r);
    end(&s);
}

static stk_status nap(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    (void)self, (void)t, (void)p, (void)err;
    usleep(300);
    return STK_OK;
}

/* What the books say is what a clock around the rounds says; each thing that takes time is where it belongs. */
TEST(books_of_a_fit_close)
{
    setup s;
    stk_error err;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    stk_watch_settings w = stk_watch_settings_defaults();
    stk_callback callback = {.name = "nap", .batch_end = nap};
    stk_callback *list[] = {&callback};
    stk_fit_options o = stk_fit_defaults();
    REQUIRE(begin(&s, true));
    stk_train_data data = data_of(&s);
    o.epochs = 4;
    o.callbacks = list;
    o.ncallbacks = 1;
    w.no_roofline = true;
    REQUIRE(CHECK_OK(stk_watch_start(&w, &watch, &err)));
    CHECK_OK(stk_trainer_fit(s.trainer, &data, &o, NULL, &err));
    REQUIRE(CHECK_OK(stk_watch_stop(watch, &r, &err)));
    int64_t steps = stk_report_phase_steps(r, STK_PHASE_STEADY);
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    CHECK_NEAR(wall * (double)steps, stk_report_phase_seconds(r, STK_PHASE_STEADY),
               1e-6 * wall * (double)steps);
    CHECK(stk_report_seconds(r, STK_BOOK_CALLBACKS) > 290e-6);
    CHECK(stk_report_seconds(r, STK_BOOK_INPUT) > 0.5 * BATCH * 100e-6);
    CHECK(stk_report_seconds(r, STK_BOOK_DOWNLOAD) > 0); /* the callback's numbers */
    CHECK(stk_report_seconds(r, STK_BOOK_RESIDUAL) > 0); /* the trainer has code of its own */
    stk_report_release(r);
    end(&s);
}

/* Buffers say what they hold, how much room there is, and how that went over time. */
TEST(queues_of_a_pipeline_have_depth_room_and_bytes)
{
    enum { BUFFER = 50, AHEAD = 3 };
    setup s;
    stk_error err;
    stk_job job = {0};
    void *variant = NULL;
    stk_watch_stage stages[8];
    stk_job_settings as_is = stk_job_settings_defaults();
    REQUIRE(begin(&s, false));
    stk_tensor *parts[] = {s.x, s.y};
    s.dataset = stk_data_slices(2, parts, NULL, "(0,1)", &err);
    s.dataset = stk_data_shuffle(s.dataset, BUFFER, 7, true, &err);
    s.dataset = stk_data_batch(s.dataset, BATCH, true, &err);
    s.dataset = stk_data_prefetch(s.dataset, AHEAD, &err);
    stk_train_data data = data_of(&s);
    REQUIRE(CHECK_OK(stk_train_job_new(s.trainer, &data, NULL, &job, &err)));
    REQUIRE(CHECK_OK(job.open(job.context, &as_is, &variant, &err)));
    CHECK_OK(job.run(job.context, variant, 40, &err));
    int32_t n = job.stages(job.context, variant, stages, 8), found = 0;
    for (int32_t i = 0; i < n; i++) {
        const stk_watch_stage *v = &stages[i];
        bool shuffles = !strncmp(v->name, "shuffle", 7), ahead = !strncmp(v->name, "prefetch", 8);
        if (!shuffles && !ahead) continue;
        found++;
        CHECK_EQ_I64((int64_t)v->capacity, shuffles ? BUFFER : AHEAD);
        CHECK(v->ndepths > 8 && v->depth_most > 0 && v->depth_most <= v->capacity);
        CHECK_MSG(v->bytes > 0, "%s", v->name);
        if (shuffles) CHECK(v->bytes >= (BUFFER - BATCH) * (WIDTH + 4) * 4);
    }
    CHECK_EQ_I64(found, 2);
    job.close(job.context, variant);
    stk_train_job_release(&job);
    end(&s);
}

TEST(a_budget_adds_up)
{
    setup s;
    stk_error err;
    stk_train_times times;
    stk_budget b;
    char line[256], *text = NULL;
    REQUIRE(begin(&s, true));
    stk_report *r = watched_fit(&s, 64, 8); /* 128 steps: every eighth is looked at */
    REQUIRE(CHECK(r));
    stk_trainer_times(s.trainer, &times);
    stk_budget_of(&times, r, &b);
    CHECK(b.sampled >= 8 && b.sampled <= 16);
    CHECK_EQ_I64(b.steps, 8 * ROWS / BATCH);
    double sum = b.build + b.validation + b.epoch_ends + b.unsplit;
    for (int k = 0; k < STK_BOOK_COUNT; k++) sum += b.seconds[k];
    CHECK_NEAR(sum, b.total, 1e-6 + 1e-6 * b.total);
    CHECK(b.seconds[STK_BOOK_INPUT] > 0.5 * b.total);
    CHECK(b.unsplit == 0 && b.seconds[STK_BOOK_KERNELS] > 0 && b.seconds[STK_BOOK_OPTIMIZER] > 0);
    CHECK_CONTAINS(stk_budget_line(&b, line, sizeof line), "% input wait");
    CHECK(stk_budget_computing(&b) < 0.5);
    if (CHECK_OK(stk_budget_text(&b, r, &text, &err))) CHECK_CONTAINS(text, "matmul");
    stk_text_free(text);
    stk_budget_of(&times, NULL, &b); /* nobody watched */
    CHECK(b.sampled == 0 && b.unsplit > 0);
    CHECK_CONTAINS(stk_budget_line(&b, line, sizeof line), "input wait");
    CHECK_STR(stk_budget_line(&b, line, 3), stk_budget_line(&b, line, 3));
    stk_report_release(r);
    end(&s);
}

/* ---- settings ------------------------------------------------------------------------------------------------------ */

typedef struct counter {
    int64_t calls;
} counter;
static stk_status count_call(stk_callback *self, stk_trainer *t, const stk_progress *p,
                             stk_error *err)
{
    (void)t, (void)p, (void)err;
    ((counter *)self->context)->calls++;
    self->state[0]++;
    return STK_OK;
}

/* Variants with everything changed run, and nothing of it stays. */
TEST(every_knob_turns_and_leaves_no_trace)
{
    static const struct {
        stk_knob knob;
        int64_t value;
    } turns[] = {{STK_KNOB_WORKERS, 3},    {STK_KNOB_PREFETCH, 2},        {STK_KNOB_THREADS, 1},
                 {STK_KNOB_PRECISION, 16}, {STK_KNOB_CALLBACK_EVERY, 10}, {STK_KNOB_FREE_MODEL, 1},
                 {STK_KNOB_CACHE, 1}};
    stk_error err;
    stk_job job = {0};
    setup s;
    counter count = {0};
    double state = 0;
    stk_callback callback = {
        .name = "count", .context = &count, .state = &state, .nstate = 1, .batch_end = count_call};
    stk_callback *list[] = {&callback};
    stk_fit_options o = stk_fit_defaults();
    o.callbacks = list;
    o.ncallbacks = 1;
    stk_tensor *before = NULL, *after = NULL;
    REQUIRE(begin(&s, true));
    stk_train_data data = data_of(&s);
    fit(&s, 1);
    const char *name = stk_store_name(stk_trainer_store(s.trainer), 0);
    REQUIRE(CHECK_OK(stk_store_get(stk_trainer_store(s.trainer), name, &before, &err)));
    REQUIRE(CHECK_OK(stk_train_job_new(s.trainer, &data, &o, &job, &err)));
    CHECK(job.knob[STK_KNOB_WORKERS].offered && job.knob[STK_KNOB_WORKERS].current == 1);
    CHECK(job.knob[STK_KNOB_PRECISION].offered);
    CHECK(job.knob[STK_KNOB_CACHE].offered && job.knob[STK_KNOB_CACHE].current == 0);
    CHECK_EQ_I64(job.knob[STK_KNOB_CACHE].most, 1);
    CHECK(!job.knob[STK_KNOB_FUSED].offered); /* is so already */
    CHECK_OK(job.save(job.context, &err));
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        void *variant = NULL;
        stk_job_settings w = stk_job_settings_defaults();
        w.value[turns[i].knob] = turns[i].value;
        int64_t calls = count.calls;
        if (!CHECK_OK(job.open(job.context, &w, &variant, &err))) continue;
        CHECK_OK(job.run(job.context, variant, 20, &err));
        char remark[64] = "?";
        job.remark(job.context, variant, remark, sizeof remark);
        CHECK_STR(remark, "");
        if (turns[i].knob == STK_KNOB_CALLBACK_EVERY) CHECK_EQ_I64(count.calls - calls, 2);
        stk_watch_stage stages[8];
        int32_t n = job.stages(job.context, variant, stages, 8);
        CHECK(n >= 3);
        if (turns[i].knob == STK_KNOB_PREFETCH) CHECK(stages[n - 1].seconds > 0);
        job.close(job.context, variant);
    }
    CHECK_OK(job.restore(job.context, &err));
    CHECK(state == 0);
    CHECK_EQ_I64(stk_trainer_step(s.trainer), ROWS / BATCH);
    CHECK_OK(stk_store_get(stk_trainer_store(s.trainer), name, &after, &err));
    CHECK(before && after && !memcmp(before->data, after->data, (size_t)stk_tensor_bytes(before)));
    stk_tensor_release(before);
    stk_tensor_release(after);
    stk_train_job_release(&job);
    end(&s);
}

static bool has_stage(const stk_job *job, void *variant, const char *name)
{
    stk_watch_stage stages[16];
    int32_t n = job->stages(job->context, variant, stages, 16);
    for (int32_t i = 0; i < n && i < 16; i++)
        if (strstr(stages[i].name, name)) return true;
    return false;
}

/* Settings survive a file; a variant with them has the cache; one that takes too long to fill says so. */
TEST(a_cache_is_written_down_and_filled)
{
    stk_error err;
    stk_job job = {0};
    setup s;
    void *variant = NULL;
    char remark[64] = "";
    const char *path = temporary("settings.json");
    stk_job_settings w = stk_job_settings_defaults(), read = stk_job_settings_defaults();
    w.value[STK_KNOB_CACHE] = 3; /* MiB */
    CHECK_OK(stk_job_settings_save(&w, path, &err));
    CHECK_OK(stk_job_settings_load(path, &read, &err));
    CHECK_EQ_I64(read.value[STK_KNOB_CACHE], 3);
    REQUIRE(begin(&s, true));
    stk_train_data data = data_of(&s);
    row_us = 10000; /* 2.5 s for all */
    if (CHECK_OK(stk_train_job_new(s.trainer, &data, NULL, &job, &err)) &&
        CHECK_OK(job.open(job.context, &read, &variant, &err))) {
        job.remark(job.context, variant, remark, sizeof remark);
        CHECK_CONTAINS(remark, "of 256 elements");
        row_us = 1000000; /* whoever calls the map again does not get far */
        CHECK_OK(job.run(job.context, variant, 40, &err));
        CHECK(has_stage(&job, variant, "cache"));
        job.close(job.context, variant);
    }
    row_us = 100;
    stk_train_job_release(&job);
    end(&s);
}

/* The pipeline with other workers and fused differently gives the same training. */
TEST(settings_give_the_same_numbers)
{
    stk_error err;
    stk_tensor *weights[2] = {NULL, NULL};
    for (int tuned = 0; tuned < 2; tuned++) {
        setup s;
        stk_dataset *made = NULL;
        stk_job_settings w = stk_job_settings_defaults();
        char text[128];
        REQUIRE(begin(&s, true));
        if (tuned) {
            stk_stream_options plain = stk_stream_options_defaults();
            plain.rewrite = false;
            s.dataset = stk_data_options(s.dataset, &plain, &err);
            w.value[STK_KNOB_WORKERS] = 3;
            w.value[STK_KNOB_PREFETCH] = 2;
            w.value[STK_KNOB_FUSED] = 1;
            w.value[STK_KNOB_CACHE] = 1;
            w.value[STK_KNOB_THREADS] = 1;
            CHECK_STR(stk_job_settings_text(&w, text, sizeof text),
                      "prefetch 2, workers 3, fused order of the pipeline, cache of 1 MiB, "
                      "threads 1");
            CHECK_OK(stk_trainer_set_threads(s.trainer, 1, &err));
        }
        stk_train_data data = data_of(&s);
        CHECK_OK(stk_job_settings_data(&w, &data, &made, &err));
        CHECK_EQ_I64(stk_dataset_workers(data.dataset), tuned ? 3 : 1);
        CHECK(stk_dataset_options(data.dataset).rewrite);
        stk_fit_options o = stk_fit_defaults();
        o.epochs = 2;
        CHECK_OK(stk_trainer_fit(s.trainer, &data, &o, NULL, &err));
        const char *name = stk_store_name(stk_trainer_store(s.trainer), 0);
        CHECK_OK(stk_store_get(stk_trainer_store(s.trainer), name, &weights[tuned], &err));
        stk_dataset_release(made);
        end(&s);
    }
    REQUIRE(CHECK(weights[0] && weights[1]));
    CHECK(!memcmp(weights[0]->data, weights[1]->data, (size_t)stk_tensor_bytes(weights[0])));
    stk_tensor_release(weights[0]);
    stk_tensor_release(weights[1]);
}

/* As a file may say it. */
TEST(a_cache_of_any_size)
{
    static const int64_t sizes[] = {-5, 0, 1, INT64_MAX};
    stk_error err;
    setup s;
    REQUIRE(begin(&s, true));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        stk_train_data data = data_of(&s);
        stk_dataset *made = NULL;
        stk_job_settings w = stk_job_settings_defaults();
        w.value[STK_KNOB_CACHE] = sizes[i];
        CHECK_OK(stk_job_settings_data(&w, &data, &made, &err));
        const stk_dataset *below = stk_dataset_input(data.dataset, 0); /* of the batch */
        CHECK_STR(stk_dataset_name(below), sizes[i] > 0 ? "cache" : "map");
        stk_dataset_release(made);
    }
    end(&s);
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of a training of five epochs, the best of some. */
static double whole_training(setup *s, const stk_fit_options *o)
{
    stk_error err;
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        stk_train_data data = data_of(s);
        double start = now();
        if (!CHECK_OK(stk_trainer_fit(s->trainer, &data, o, NULL, &err))) return 0;
        best = now() - start < best ? now() - start : best;
    }
    return best;
}

static int epochs_ended, epochs_slow;
static stk_status count_epoch(stk_callback *self, stk_trainer *t, const stk_progress *p,
                              stk_error *err)
{
    (void)t, (void)err;
    epochs_ended++;
    if (epochs_slow) usleep(20000);
    return isnan(stk_logs_get(&p->logs, "val_loss"))
               ? stk_fail(err, STK_ERR_STATE, "no val_loss %s", self->name)
               : STK_OK;
}

/* What the doctor promises about validation comes true in trainings as a user starts them. */
TEST(advice_on_validation_is_followed)
{
    stk_error err;
    stk_job job = {0};
    stk_report *r = NULL;
    setup s;
    REQUIRE(begin(&s, false));
    stk_train_data data = data_of(&s), held = data_of(&s);
    stk_fit_options o = stk_fit_defaults();
    stk_doctor_options how = stk_doctor_options_defaults();
    how.seconds = 2;
    o.batch = 64, o.epochs = 1000000, o.validation = &held, o.validation_batch = 1;
    REQUIRE(CHECK_OK(stk_train_job_new(s.trainer, &data, &o, &job, &err)));
    CHECK_EQ_I64(job.epoch_steps, 4);
    CHECK_EQ_I64(job.validation_steps, ROWS);
    if (CHECK_OK(stk_doctor_run(&job, &how, &r, &err)) &&
        strcmp(stk_report_verdict(r), "too noisy") != 0) {
        stk_advice a = {0};
        bool found = false;
        CHECK_STR(stk_report_verdict(r), "validation-bound");
        for (int32_t i = 0; !found && stk_report_advice(r, i, &a); i++)
            found = a.knob == STK_KNOB_VALIDATE_EVERY;
        REQUIRE(CHECK(found && a.changes_mathematics && a.gain.low > 1));
        stk_fit_options rarer = o;
        o.epochs = rarer.epochs = 5;
        stk_job_settings_options(&a.settings, NULL, &rarer);
        CHECK_EQ_I64(rarer.validation_every, 5);
        double achieved = whole_training(&s, &o) / whole_training(&s, &rarer);
        printf("validation: promised %.2f, achieved %.2f\n", a.gain.best, achieved);
        CHECK_MSG(achieved > 1 + 0.3 * (a.gain.best - 1), "promised %.2f, achieved %.2f",
                  a.gain.best, achieved);
    }
    stk_report_release(r);
    stk_train_job_release(&job);
    end(&s);
}

/* Turns hold steps only: a callback of epochs is called by the measurement of their end, a few times in all. */
TEST(ends_of_epochs_are_no_part_of_turns)
{
    stk_error err;
    stk_job job = {0};
    stk_report *r = NULL;
    setup s;
    REQUIRE(begin(&s, false));
    stk_train_data data = data_of(&s);
    stk_callback slow_end = {.name = "slow end", .epoch_end = count_epoch};
    stk_callback *list[] = {&slow_end};
    stk_fit_options o = stk_fit_defaults();
    stk_doctor_options how = stk_doctor_options_defaults();
    how.seconds = 1;
    o.batch = BATCH, o.validation_split = 0.25, o.callbacks = list, o.ncallbacks = 1;
    o.checkpoint = temporary("epochs.ckpt");
    o.epochs = 1000000;
    epochs_ended = 0, epochs_slow = 1;
    REQUIRE(CHECK_OK(stk_train_job_new(s.trainer, &data, &o, &job, &err)));
    CHECK_EQ_I64(job.validation_steps, ROWS / 4 / BATCH);
    CHECK_EQ_I64(job.epoch_steps, ROWS * 3 / 4 / BATCH);
    if (CHECK_OK(stk_doctor_run(&job, &how, &r, &err))) {
        CHECK(epochs_ended >= 1 && epochs_ended <= 2);
        CHECK(!strcmp(stk_report_verdict(r), "epoch-end-bound") ||
              !strcmp(stk_report_verdict(r), "too noisy"));
    }
    CHECK(access(o.checkpoint, F_OK) != 0); /* the one of the training is not written */
    stk_report_release(r);
    stk_train_job_release(&job);
    end(&s);
}

TEST(bad_arguments)
{
    stk_error err;
    stk_job job = {0};
    CHECK_FAILS(stk_train_job_new(NULL, NULL, NULL, &job, &err), STK_ERR_ARGUMENT, "trainer");
    stk_train_job_release(&job);
    stk_train_job_release(NULL);
}

TEST_MAIN()
