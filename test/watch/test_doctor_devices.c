/* What the doctor says about a device with a queue and memory of its own: apart:0 with slow roads, late answers and missing
 * operations. The faults are made of sleep, so they are true on a busy machine as well. */
#include "../train/problem.h"

#include "stoker/watch.h"

#include <stdlib.h>

static void apart_with(const char *name, const char *value)
{
    unsetenv("STOKER_APART_LATENCY");
    unsetenv("STOKER_APART_ROAD");
    setenv("STOKER_APART", "1", 1);
    setenv(name, value, 1);
}

typedef struct patient {
    stk_model *model;
    stk_trainer *trainer;
    stk_device *device;
    stk_tensor *x, *y;
} patient;

static bool admit(patient *p, const char *layers, int64_t width)
{
    stk_error err;
    stk_trainer_options how = stk_trainer_defaults();
    *p = (patient){.model = make_model(layers)};
    make_clusters(512, 8, 4, &p->x, &p->y);
    if (width > 8) { /* as wide as the road is narrow */
        stk_tensor_release(p->x);
        CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){512, width}, &p->x, &err));
    }
    if (!CHECK_OK(stk_device_open("apart:0", 0, &p->device, &err))) return false;
    how.device = p->device;
    how.optimizer = "adam";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    return p->model && CHECK_OK(stk_trainer_new(p->model, &how, &p->trainer, &err));
}

static void discharge(patient *p)
{
    stk_trainer_release(p->trainer);
    stk_model_release(p->model);
    stk_tensor_release(p->x);
    stk_tensor_release(p->y);
    stk_device_release(p->device);
}

static stk_report *examine(patient *p, stk_callback *callback)
{
    stk_error err;
    stk_job job = {0};
    stk_report *r = NULL;
    stk_fit_options fit = stk_fit_defaults();
    stk_doctor_options o = stk_doctor_options_defaults();
    stk_train_data data = {.nx = 1, .x = &p->x, .ny = 1, .y = &p->y};
    fit.batch = 64;
    fit.epochs = 100; /* else building counts */
    fit.callbacks = &callback;
    fit.ncallbacks = callback != NULL;
    o.seconds = 2;
    o.slice_ms = 50;
    if (CHECK_OK(stk_train_job_new(p->trainer, &data, &fit, &job, &err)))
        CHECK_OK(stk_doctor_run(&job, &o, &r, &err));
    stk_train_job_release(&job);
    return r;
}

/* Others may disturb it; a doctor that is wrong is wrong three times. */
static void expect(patient *p, stk_callback *callback, const char *verdict, stk_book book,
                   const char *evidence)
{
    bool found = false;
    for (int tries = 0; tries < 3 && !found; tries++) {
        stk_report *r = examine(p, callback);
        if (!CHECK(r)) return;
        double share = stk_report_seconds(r, book) / stk_report_seconds(r, STK_BOOK_COUNT);
        double residual =
            stk_report_seconds(r, STK_BOOK_RESIDUAL) / stk_report_seconds(r, STK_BOOK_COUNT);
        found = !strcmp(stk_report_verdict(r), verdict) && share > 0.4 && residual < 0.1 &&
                strstr(stk_report_evidence(r), evidence);
        if (!found)
            printf("  %s: %s: %s %.2f, residual %.2f\n", stk_report_verdict(r),
                   stk_report_evidence(r), stk_book_name(book), share, residual);
        stk_report_release(r);
    }
    CHECK_MSG(found, "never %s", verdict);
}

TEST(an_operation_that_the_device_lacks)
{
    patient p;
    apart_with("STOKER_APART_ROAD", "20");
    REQUIRE(admit(&p, "Input(shape=(8,))\nDense(256)\nActivation(gelu, name=here)\nDense(4)", 8));
    expect(&p, NULL, "fallback-bound", STK_BOOK_ISLANDS, "erf of here");
    discharge(&p);
}

TEST(a_road_that_is_too_narrow)
{
    patient p;
    apart_with("STOKER_APART_ROAD", "50");
    REQUIRE(admit(&p, "Input(shape=(2048,))\nDense(8, activation=relu)\nDense(4)", 2048));
    expect(&p, NULL, "transfer-bound", STK_BOOK_UPLOAD, "bringing batches in");
    discharge(&p);
}

static stk_status look(stk_callback *self, stk_trainer *t, const stk_progress *progress,
                       stk_error *err)
{
    (void)self, (void)progress;
    stk_tensor *w = NULL;
    STK_TRY(stk_store_get(stk_trainer_store(t), "dense/bias", &w, err));
    stk_tensor_release(w);
    return STK_OK;
}

TEST(a_result_that_is_asked_for_after_every_step)
{
    patient p;
    stk_callback callback = {.batch_end = look};
    apart_with("STOKER_APART_LATENCY", "3000");
    REQUIRE(admit(&p, "Input(shape=(8,))\nDense(8, activation=relu)\nDense(4)", 8));
    expect(&p, &callback, "sync-bound", STK_BOOK_SYNC, "waiting for and reading results");
    discharge(&p);
}

TEST(steps_too_small_for_what_a_launch_costs)
{
    patient p;
    apart_with("STOKER_APART_LATENCY", "300");
    REQUIRE(admit(&p, "Input(shape=(8,))\nDense(8, activation=relu)\nDense(4)", 8));
    bool found = false;
    for (int tries = 0; tries < 3 && !found; tries++) {
        stk_report *r = examine(&p, NULL);
        if (!CHECK(r)) break;
        char *text = NULL;
        stk_error err;
        CHECK_OK(stk_report_render(r, STK_REPORT_TEXT, &text, NULL, &err));
        found = !strcmp(stk_report_verdict(r), "the CPU is the right tool") &&
                strstr(stk_report_evidence(r), "cpu:0 instead of the device") && text &&
                strstr(text, "tried");
        if (!found) printf("  %s: %s\n", stk_report_verdict(r), stk_report_evidence(r));
        stk_text_free(text);
        stk_report_release(r);
    }
    CHECK(found);
    discharge(&p);
}

TEST_MAIN()
