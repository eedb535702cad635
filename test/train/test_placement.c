/* Which device a model is trained on, what is known beforehand, and that the numbers are the same wherever it is. */
#include "problem.h"

#include "stoker/placement.h"

#include <stdlib.h>

/* apart:0 lacks gelu: an island in the middle. */
static const char GELU[] = "Input(shape=(8,))\nDense(16)\nActivation(gelu)\nDense(4)";

static void apart_with(const char *name, const char *value)
{
    static const char *const all[] = {"STOKER_APART_LATENCY", "STOKER_APART_LAUNCH",
                                      "STOKER_APART_BLOCK",   "STOKER_APART_MEMORY",
                                      "STOKER_APART_ROAD",    "STOKER_AUTO"};
    setenv("STOKER_APART", "1", 1);
    setenv("STOKER_OPENCL", "",
           1); /* whatever else this machine has would have to be compiled for */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) unsetenv(all[i]);
    if (name) setenv(name, value, 1);
}

static stk_trainer_options options_on(const char *device)
{
    stk_error err;
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam:lr=1e-2";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    how.metrics = "accuracy";
    how.seed = 5;
    how.deterministic = true;
    CHECK_OK(stk_device_open(device, 0, &how.device, &err));
    return how;
}

/* Weights after two epochs, from arrays or from a dataset whose batches lie in the device's fast memory. */
static stk_tensor *train(const char *device, const char *layers, bool dataset, int32_t *islands)
{
    problem p;
    stk_error err;
    stk_tensor *w = NULL;
    stk_history *h = NULL;
    stk_program *program = NULL;
    stk_dataset *ds = NULL;
    stk_trainer_options how = options_on(device);
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 2;
    fit.batch = 16;
    if (!open_problem_with(&p, layers, &how, 100)) return NULL;
    CHECK_STR(stk_device_name(stk_trainer_device(p.trainer)), device);
    stk_train_data data = p.data;
    if (dataset) {
        ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
        ds = stk_data_batch(stk_data_shuffle(ds, 50, 3, false, &err), 16, false, &err);
        CHECK(ds);
        data = (stk_train_data){.dataset = ds};
    }
    CHECK_OK(stk_trainer_compile(p.trainer, &data, 16, &program, &err));
    *islands = stk_program_islands(program, 0, NULL);
    CHECK_OK(stk_trainer_fit(p.trainer, &data, &fit, &h, &err));
    CHECK_OK(stk_store_get(stk_trainer_store(p.trainer), "dense/kernel", &w, &err));
    stk_history_release(h);
    stk_dataset_release(ds);
    close_problem(&p);
    stk_device_release(how.device);
    return w;
}

static void same_bits(const char *title, const char *layers, bool dataset)
{
    int32_t none = 0, some = 0;
    stk_tensor *home = train("cpu:0", layers, dataset, &none);
    stk_tensor *away = train("apart:0", layers, dataset, &some);
    CHECK_EQ_I64(none, 0);
    CHECK_MSG((some > 0) == (layers == GELU), "%s: %d islands", title, some);
    if (CHECK(home && away))
        CHECK_MSG(!memcmp(home->data, away->data, (size_t)stk_tensor_bytes(home)),
                  "%s: the weights differ", title);
    stk_tensor_release(home);
    stk_tensor_release(away);
}

static const char PLAIN[] = "Input(shape=(8,))\nDense(16, activation=relu)\nDropout(0.3)\nDense(4)";

TEST(training_gives_the_same_bits_everywhere)
{
    apart_with(NULL, NULL);
    same_bits("arrays", PLAIN, false);
    same_bits("dataset", PLAIN, true);
    same_bits("with an island", GELU, true);
    apart_with("STOKER_APART_LATENCY", "200");
    same_bits("late", PLAIN, true);
    apart_with("STOKER_APART_BLOCK", "66000"); /* just enough for the slab of the weights */
    same_bits("small blocks", PLAIN, false);
}

TEST(calibration_is_measured_once_and_kept)
{
    static const char *const names[] = {"cpu:0", "apart:0"};
    apart_with(NULL, NULL);
    for (int i = 0; i < 2; i++) {
        stk_error err;
        stk_device *d = NULL;
        stk_calibration a, b;
        REQUIRE(CHECK_OK(stk_device_open(names[i], 0, &d, &err)));
        CHECK_OK(stk_device_calibrate(d, true, &a, &err));
        CHECK_OK(stk_device_calibrate(d, false, &b, &err));
        CHECK(a.launch > 0 && a.round_trip > 0 && a.flops > 0 && a.bytes > 0);
        CHECK((a.up > 0 && a.down > 0 && a.up_pinned > 0) == (i == 1));
        CHECK_NEAR(b.flops, a.flops, 1e-5 * a.flops);
        CHECK_NEAR(b.launch, a.launch, 1e-5 * a.launch);
        stk_device_release(d);
    }
}

static const stk_forecast *row_of(const stk_placement *p, const char *device)
{
    for (int32_t i = 0; i < p->n; i++)
        if (!strcmp(p->row[i].device, device)) return &p->row[i];
    return NULL;
}

TEST(the_faster_device_is_chosen)
{
    problem p;
    stk_error err;
    stk_placement found;
    char line[256];
    apart_with("STOKER_APART_LAUNCH", "300");
    stk_trainer_options how = options_on("cpu:0");
    REQUIRE(open_problem_with(&p, PLAIN, &how, 64));
    CHECK_OK(stk_place_training(p.model, &how, &p.data, 16, &found, &err));
    CHECK_EQ_I64(found.n, 1); /* a device for tests is not looked at */
    CHECK_CONTAINS(stk_placement_line(&found, line, sizeof line), "cpu:0: the only device");
    setenv("STOKER_AUTO", "any", 1);
    CHECK_OK(stk_place_training(p.model, &how, &p.data, 16, &found, &err));
    const stk_forecast *home = row_of(&found, "cpu:0"), *away = row_of(&found, "apart:0");
    REQUIRE(CHECK(home && away));
    CHECK_STR(found.row[found.chosen].device, "cpu:0");
    CHECK(found.margin > 1 && home->measured > 0 && home->predicted > 0);
    CHECK_MSG(away->predicted > 5 * home->predicted, "predicted %g and %g s", home->predicted,
              away->predicted);
    CHECK(away->measured == 0 || away->measured > 5 * home->measured);
    CHECK_CONTAINS(stk_placement_line(&found, line, sizeof line), "x faster than the next");
    close_problem(&p);
    stk_device_release(how.device);
}

/* Before the start, and with what would fit. */
TEST(too_little_memory_is_told_with_a_batch_that_fits)
{
    problem p;
    stk_error err;
    stk_program *program = NULL;
    char *text = NULL;
    apart_with("STOKER_APART_MEMORY", "100000000");
    stk_trainer_options how = options_on("apart:0");
    REQUIRE(open_problem_with(&p, "Input(shape=(8,))\nDense(4096, activation=relu)\nDense(4)", &how,
                              40000));
    CHECK_FAILS(stk_trainer_compile(p.trainer, &p.data, 40000, &program, &err), STK_ERR_MEMORY,
                "apart:0: activations need");
    const char *batch = strstr(err.message, "try batch ");
    REQUIRE(CHECK_MSG(batch != NULL, "%s", err.message));
    CHECK_OK(stk_trainer_compile(p.trainer, &p.data, atoll(batch + 10), &program, &err));
    CHECK_OK(stk_program_placement(program, &text, &err));
    if (text) CHECK_CONTAINS(text, "apart:0");
    stk_text_free(text);
    close_problem(&p);
    stk_device_release(how.device);
}

TEST_MAIN()
