/* A recorded step in the doctor's hands: a program of its own over a dataset, as Python's functions are. */
#include "check.h"

#include "stoker/nn.h"
#include "stoker/tracing.h"
#include "stoker/watch.h"

#include <unistd.h>

enum { ROWS = 64, WIDTH = 8, BATCH = 4, MOST = 8 };

typedef struct step {
    stk_store *store;
    stk_tensor *rows, *kept;
    stk_program *programs[MOST];
    int64_t batches[MOST];
    int32_t n, threads_asked, slow_us;
} step;

static const int32_t LEAF[] = {0};

/* w += mean of the batch: every step changes it. */
static stk_status program_of(void *context, int32_t threads, int32_t nparts,
                             stk_tensor *const *parts, stk_over *into, stk_program **out,
                             stk_error *err)
{
    step *s = context;
    stk_graph *g = NULL;
    int64_t batch = parts[0]->shape[0];
    CHECK_EQ_I64(nparts, 1);
    if (threads > 0) s->threads_asked = threads;
    into->leaf = LEAF;
    for (int32_t i = 0; i < s->n && threads == 0; i++)
        if (s->batches[i] == batch) return *out = s->programs[i], STK_OK;
    if (s->n == MOST) return stk_fail(err, STK_ERR_STATE, "too many programs");
    STK_TRY(stk_graph_new(&g, err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){batch, WIDTH});
    stk_val w = stk_g_variable(g, "w", STK_F32, 0, NULL);
    stk_g_assign(g, w, stk_g_add(g, w, stk_g_mean_all(g, x)));
    stk_g_output(g, "y", stk_g_mean_all(g, x));
    stk_program_options o = stk_program_options_defaults();
    o.store = s->store;
    o.threads = threads;
    stk_status status = stk_program_new_caller(g, &o, &s->programs[s->n], err);
    stk_graph_release(g);
    s->batches[s->n] = threads ? -1 : batch;
    *out = s->programs[s->n];
    s->n += status == STK_OK;
    return status;
}

static stk_status slow(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    (void)info, (void)err;
    usleep((useconds_t)((const step *)context)->slow_us);
    if (!out[0])
        out[0] = stk_tensor_retain(in[0]);
    else
        memcpy(out[0]->data, in[0]->data, (size_t)stk_tensor_bytes(in[0]));
    return STK_OK;
}

static stk_dataset *batches_of(void *context, int64_t rows, stk_error *err)
{
    step *s = context;
    stk_map_options serial = stk_map_options_defaults();
    stk_map_fn fn = {.name = "slow_parse", .context = s, .call = slow};
    serial.parallel = 1;
    stk_dataset *ds = stk_data_slices(1, &s->rows, NULL, NULL, err);
    ds = stk_data_batch(ds, rows, true, err);
    return s->slow_us ? stk_data_map(ds, &fn, &serial, err) : ds;
}

static stk_status keep(void *context, stk_error *err)
{
    step *s = context;
    return stk_store_get(s->store, "w", &s->kept, err);
}
static stk_status put_back(void *context, stk_error *err)
{
    step *s = context;
    return stk_store_set(s->store, "w", s->kept, err);
}

static bool begin(step *s, int32_t slow_us)
{
    stk_error err;
    stk_over into = {0};
    stk_program *first = NULL;
    *s = (step){.slow_us = slow_us};
    bool good = CHECK_OK(stk_store_new(NULL, &s->store, &err)) &&
                CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){ROWS, WIDTH}, &s->rows, &err));
    for (int i = 0; good && i < ROWS * WIDTH; i++) ((float *)s->rows->data)[i] = 1;
    stk_tensor *batch = NULL;
    good = good && CHECK_OK(stk_tensor_slice(s->rows, (int64_t[]){0, 0}, (int64_t[]){BATCH, WIDTH},
                                             &batch, &err));
    good = good && CHECK_OK(program_of(s, 0, 1, &batch, &into, &first, &err)); /* makes w */
    stk_tensor_release(batch);
    return good;
}

static void end(step *s)
{
    for (int32_t i = 0; i < s->n; i++) stk_program_release(s->programs[i]);
    stk_tensor_release(s->kept);
    stk_tensor_release(s->rows);
    stk_store_release(s->store);
}

static stk_recorded_step recorded(step *s, stk_dataset *ds)
{
    return (stk_recorded_step){.name = "step",
                               .dataset = ds,
                               .epoch_steps = ROWS / BATCH,
                               .plan_steps = 100000,
                               .context = s,
                               .program = program_of,
                               .rebatch = batches_of,
                               .rows = ROWS,
                               .save = keep,
                               .restore = put_back,
                               .threads = true};
}

TEST(a_recorded_step_is_examined_and_put_back)
{
    stk_error err;
    step s;
    stk_job job = {0};
    stk_report *r = NULL;
    REQUIRE(begin(&s, 1500));
    stk_dataset *ds = batches_of(&s, BATCH, &err);
    stk_recorded_step what = recorded(&s, ds);
    stk_doctor_options o = stk_doctor_options_defaults();
    o.seconds = 1.5;
    REQUIRE(CHECK(ds) && CHECK_OK(stk_recorded_job_new(&what, &job, &err)));
    if (CHECK_OK(stk_doctor_run(&job, &o, &r, &err))) {
        CHECK_STR(stk_report_verdict(r), "input-bound");
        CHECK_CONTAINS(stk_report_evidence(r), "slow_parse");
    }
    stk_tensor *w = NULL;
    CHECK_OK(stk_store_get(s.store, "w", &w, &err));
    CHECK(w && stk_tensor_at(w, 0) == stk_tensor_at(s.kept, 0));
    stk_tensor_release(w);
    stk_report_release(r);
    stk_train_job_release(&job);
    stk_dataset_release(ds);
    end(&s);
}

TEST(steps_are_counted_and_knobs_turn)
{
    stk_error err;
    step s;
    stk_job job = {0};
    REQUIRE(begin(&s, 0));
    stk_dataset *ds = batches_of(&s, BATCH, &err);
    stk_recorded_step what = recorded(&s, ds);
    static const struct {
        stk_knob knob;
        int64_t value;
        double change; /* of w by ten steps: the mean of ones */
    } knobs[] = {{STK_KNOB_COUNT, 0, 10},      {STK_KNOB_BATCH, 8, 10},
                 {STK_KNOB_THREADS, 1, 10},    {STK_KNOB_PREFETCH, 2, 10},
                 {STK_KNOB_FREE_INPUT, 1, 10}, {STK_KNOB_FREE_MODEL, 1, 0}};
    REQUIRE(CHECK(ds) && CHECK_OK(stk_recorded_job_new(&what, &job, &err)));
    CHECK_EQ_I64(job.batch, BATCH);
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++) {
        stk_job_settings settings = stk_job_settings_defaults();
        stk_tensor *before = NULL, *after = NULL;
        void *variant = NULL;
        if (knobs[i].knob < STK_KNOB_COUNT) settings.value[knobs[i].knob] = knobs[i].value;
        CHECK_OK(stk_store_get(s.store, "w", &before, &err));
        REQUIRE(CHECK_OK(job.open(job.context, &settings, &variant, &err)));
        CHECK_OK(job.run(job.context, variant, 10, &err));
        job.close(job.context, variant);
        CHECK_OK(stk_store_get(s.store, "w", &after, &err));
        CHECK_NEAR(stk_tensor_at(after, 0) - stk_tensor_at(before, 0), knobs[i].change, 1e-3);
        stk_tensor_release(before);
        stk_tensor_release(after);
    }
    CHECK_EQ_I64(s.threads_asked, 1);
    stk_train_job_release(&job);
    stk_dataset_release(ds);
    end(&s);
    CHECK_FAILS(stk_recorded_job_new(NULL, &job, &err), STK_ERR_ARGUMENT, "dataset and program");
}

TEST_MAIN()
