/* Data that lives on the device: the same bits as when every batch is sent, and only numbers of rows travel. */
#include "problem.h"

#include "base/trace.h"
#include "stoker/placement.h"
#include "stoker/watch.h"

#include <stdlib.h>

/* Rows large enough to be no uniforms, a last batch that is smaller, and more walks than one. */
static const char LAYERS[] =
    "Input(shape=(8,))\nDense(32, activation=relu)\nDropout(0.2)\nDense(4)";
enum { ROWS = 1000, SIZE = 96, EPOCHS = 3 };

typedef struct outcome {
    stk_tensor *w;
    char *placement;
    int64_t live;
} outcome;

static bool train(const char *device, const char *wish, bool plain, double *class_weights,
                  outcome *out)
{
    problem p;
    stk_error err;
    stk_history *h = NULL;
    stk_trainer_options how = stk_trainer_defaults();
    *out = (outcome){0};
    setenv("STOKER_APART", "1", 1);
    setenv("STOKER_DEVICE_DATA", wish, 1);
    if (stk_device_open(device, 0, &how.device, &err) != STK_OK) return false;
    how.optimizer = "adam:lr=1e-2";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    how.metrics = "accuracy";
    how.deterministic = true;
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = EPOCHS;
    fit.batch = SIZE;
    fit.no_shuffle = plain;
    fit.validation_split = 0.2;
    fit.class_weights = class_weights;
    fit.classes = class_weights ? 4 : 0;
    if (!open_problem_with(&p, LAYERS, &how, ROWS)) return false;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err));
    CHECK_OK(stk_store_get(stk_trainer_store(p.trainer), "dense/kernel", &out->w, &err));
    CHECK_OK(stk_trainer_placement(p.trainer, &out->placement, &err));
    stk_history_release(h);
    close_problem(&p);
    stk_device_release(how.device);
    return out->w && out->placement;
}

static void drop(outcome *o)
{
    stk_tensor_release(o->w);
    stk_text_free(o->placement);
}

static void same_both_ways(const char *device, bool plain, double *weights)
{
    outcome fed, kept;
    if (!train(device, "off", plain, weights, &fed)) {
        printf("no %s here\n", device);
        return;
    }
    REQUIRE(CHECK(train(device, "", plain, weights, &kept)));
    CHECK_MSG(!memcmp(fed.w->data, kept.w->data, (size_t)stk_tensor_bytes(fed.w)),
              "%s: the weights differ", device);
    CHECK_CONTAINS(kept.placement, "data: ");
    CHECK_CONTAINS(kept.placement, "only the numbers of rows go up");
    CHECK(strstr(fed.placement, "only the numbers") == NULL);
    drop(&fed);
    drop(&kept);
}

TEST(training_from_memory_of_the_device_has_the_same_bits)
{
    double weights[4] = {1, 2, 0.5, 1};
    static const char *const devices[] = {"apart:0", "opencl:0"};
    for (int i = 0; i < 2; i++) {
        same_both_ways(devices[i], false, NULL);
        same_both_ways(devices[i], true, NULL);
        same_both_ways(devices[i], false, weights);
    }
}

/* Bytes are not traced, uploads are: one list of numbers per step instead of a batch and its labels. */
static void count(void *context, const stk_trace_event *e)
{
    *(int64_t *)context += e->kind == STK_TRACE_SPAN && !strcmp(e->name, "device upload");
}

TEST(fewer_things_go_up)
{
    int64_t uploads[2] = {0, 0};
    for (int kept = 0; kept < 2; kept++) {
        outcome o;
        stk_trace_enable(0);
        REQUIRE(CHECK(train("apart:0", kept ? "" : "off", false, NULL, &o)));
        stk_trace_disable();
        stk_trace_drain(count, &uploads[kept], NULL);
        drop(&o);
    }
    printf("%lld uploads when fed, %lld when kept\n", (long long)uploads[0], (long long)uploads[1]);
    CHECK(uploads[1] < uploads[0]);
}

/* What takes more than a quarter of its memory is sent batch by batch. */
TEST(what_does_not_fit_is_fed)
{
    outcome o;
    setenv("STOKER_APART_MEMORY", "100000", 1);
    if (train("apart:0", "", false, NULL, &o)) CHECK(!strstr(o.placement, "only the numbers"));
    unsetenv("STOKER_APART_MEMORY");
    drop(&o);
}

/* ---- what a report says about it ----------------------------------------------------------------------------- */

static void report_says(const char *device, const char *wish, bool dataset, const char *sentence)
{
    problem p;
    stk_error err;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    char *text = NULL;
    stk_trainer_options how = stk_trainer_defaults();
    setenv("STOKER_APART", "1", 1);
    setenv("STOKER_DEVICE_DATA", wish, 1);
    REQUIRE(CHECK_OK(stk_device_open(device, 0, &how.device, &err)));
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = EPOCHS;
    fit.batch = SIZE;
    REQUIRE(CHECK(open_problem_with(&p, LAYERS, &how, ROWS)));
    stk_train_data data = p.data;
    if (dataset) {
        stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
        ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 7, true, &err); /* else batches are views */
        ds = stk_data_prefetch(stk_data_batch(ds, SIZE, true, &err), 2, &err);
        data = (stk_train_data){.dataset = ds};
        REQUIRE(CHECK(ds));
    }
    CHECK_OK(stk_watch_start(NULL, &watch, &err));
    CHECK_OK(stk_trainer_fit(p.trainer, &data, &fit, NULL, &err));
    if (CHECK_OK(stk_watch_stop(watch, &r, &err)) &&
        CHECK_OK(stk_report_render(r, STK_REPORT_TEXT, &text, NULL, &err)))
        CHECK_CONTAINS(text, sentence);
    stk_text_free(text);
    stk_report_release(r);
    if (dataset) stk_dataset_release(data.dataset);
    close_problem(&p);
    stk_device_release(how.device);
}

TEST(a_report_says_where_the_data_lives)
{
    report_says("cpu:0", "", false, "data: in the host's memory; cpu:0 works on it where it is");
    report_says("apart:0", "", false, "data: lives on apart:0: only the numbers of a batch's rows");
    report_says("apart:0", "off", false, "each batch is copied to memory that goes up fast");
    report_says("apart:0", "", true, "the host writes batches into memory that goes up fast");
}

TEST_MAIN()
