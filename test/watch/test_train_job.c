/* A trainer in the doctor's hands: a slow map is found, and training goes on as if nothing had happened. */
#include "check.h"

#include "stoker/watch.h"

#include <time.h>
#include <unistd.h>

enum { ROWS = 256, WIDTH = 16, BATCH = 16 };

typedef struct setup {
    stk_model *model;
    stk_trainer *trainer;
    stk_tensor *x, *y;
    stk_dataset *dataset;
} setup;

static stk_status slow(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    (void)context, (void)info, (void)err;
    usleep(100); /* per row */
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
    stk_map_fn fn = {.name = "slow_augment", .call = slow};
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

static void same_bits(bool pipeline)
{
    stk_error err;
    stk_tensor *weights[2] = {NULL, NULL};
    for (int doctor = 0; doctor < 2; doctor++) {
        setup s;
        REQUIRE(begin(&s, pipeline));
        fit(&s, 2);
        if (doctor) stk_report_release(ask(&s));
        fit(&s, 2);
        CHECK_EQ_I64(stk_trainer_step(s.trainer), 4 * ROWS / BATCH);
        const char *name = stk_store_name(stk_trainer_store(s.trainer), 0);
        CHECK_OK(stk_store_get(stk_trainer_store(s.trainer), name, &weights[doctor], &err));
        end(&s);
    }
    REQUIRE(CHECK(weights[0] && weights[1]));
    CHECK(!memcmp(weights[0]->data, weights[1]->data, (size_t)stk_tensor_bytes(weights[0])));
    stk_tensor_release(weights[0]);
    stk_tensor_release(weights[1]);
}

TEST(arrays_same_bits_with_and_without) { same_bits(false); }

TEST(a_slow_map_is_found)
{
    setup s;
    REQUIRE(begin(&s, true));
    stk_report *r = ask(&s);
    REQUIRE(CHECK(r));
    CHECK_STR(stk_report_verdict(r), "input-bound");
    CHECK_CONTAINS(stk_report_evidence(r), "map");
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    CHECK(stk_report_seconds(r, STK_BOOK_INPUT) > 0.5 * wall);
    CHECK(stk_report_seconds(r, STK_BOOK_RESIDUAL) < 0.1 * wall); /* 2 % on a quiet machine */
    stk_report_release(r);
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
