/* Models, programs and summaries are made in time that grows with the number of layers, not with its square. */
#include "check.h"

#include "stoker/stoker.h"

#include <time.h>

/* Of the processor, not of the clock on the wall: other programs must not fail this test. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds_for(int layers)
{
    stk_error err = {0};
    stk_model *m = NULL;
    stk_trainer *t = NULL;
    stk_tensor *x = NULL, *y = NULL;
    stk_history *h = NULL;
    char *text = NULL;
    int64_t shape[] = {32, 8};
    double start = seconds_used();
    if (!CHECK_OK(stk_model_new("deep", &m, &err))) return 0;
    stk_model_add(m, "Input(shape=(8,))");
    for (int i = 0; i < layers; i++) stk_model_add(m, "Dense(8, activation=relu)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_model_summary(m, NULL, &text, &err));
    stk_text_free(text);
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam";
    how.loss = "mse";
    CHECK_OK(stk_tensor_new(STK_F32, 2, shape, &x, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 2, shape, &y, &err));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 1;
    CHECK_OK(stk_trainer_new(m, &how, &t, &err));
    CHECK_OK(
        stk_trainer_fit(t, &(stk_train_data){.nx = 1, .x = &x, .ny = 1, .y = &y}, &fit, &h, &err));
    double spent = seconds_used() - start;
    stk_history_release(h);
    stk_trainer_release(t);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_model_release(m);
    return spent;
}

/* Eight times the layers took 40 to 60 times as long when every step looked at all others. */
TEST(deep_models_are_built_in_linear_time)
{
    double small = 1e9, large = 1e9;
    for (int i = 0; i < 5; i++) {
        double spent = seconds_for(200);
        if (spent < small) small = spent;
    }
    for (int i = 0; i < 3; i++) {
        double spent = seconds_for(1600);
        if (spent < large) large = spent;
    }
    CHECK_MSG(large < 20 * small, "200 layers take %.3f s, 1600 take %.3f s", small, large);
}

TEST_MAIN()
