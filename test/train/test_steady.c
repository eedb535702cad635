/* In steady state a step costs its kernels and nothing else: no allocation, closed books. */
#include "train/problem.h"

#include "base/trace.h"

#define TEN                                                                                        \
    "Input(shape=(8,))\nDense(12, "                                                                \
    "activation=relu)\nDropout(0.1)\nDense(12)\nBatchNormalization()\n"                            \
    "Activation(relu)\nDense(12, activation=tanh)\nLayerNormalization()\nDense(12, "               \
    "activation=gelu)\n"                                                                           \
    "Dense(4)\nSoftmax()"

typedef struct watch {
    stk_callback base;
    int64_t at_epoch[16];
    int32_t count;
} watch;

static stk_status count_allocations(stk_callback *self, stk_trainer *t, int64_t epoch,
                                    stk_error *err)
{
    watch *w = self->context;
    (void)t, (void)err, (void)epoch;
    w->at_epoch[w->count++] = stk_alloc_count();
    return STK_OK;
}

/* The same epoch with 10 000 steps more asks for no more memory: what is left is the end of the epoch. */
static int64_t allocations_of_an_epoch(int64_t steps)
{
    problem p;
    stk_error err;
    stk_trainer_options how = usual_options();
    if (!open_problem_with(&p, TEN, &how, 100)) return -1;
    watch w = {.base = {.name = "watch", .epoch_begin = count_allocations}};
    w.base.context = &w;
    stk_callback *callbacks[] = {&w.base};
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 3; /* the first one compiles */
    fit.steps_per_epoch = steps;
    fit.batch = 16;
    fit.callbacks = callbacks;
    fit.ncallbacks = 1;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    close_problem(&p);
    return w.at_epoch[2] - w.at_epoch[1];
}

TEST(ten_thousand_steps_of_ten_layers_allocate_nothing)
{
    int64_t few = allocations_of_an_epoch(100), many = allocations_of_an_epoch(5100);
    CHECK_EQ_I64(many, few); /* two epochs of 5000 steps more */
}

TEST(the_books_are_closed)
{
    problem p;
    stk_error err;
    stk_train_times times;
    REQUIRE(open_problem(&p, 3200));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 10;
    fit.validation_split = 0.1;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    stk_trainer_times(p.trainer, &times);
    double sum = 0;
    for (int i = 0; i < STK_SPAN_COUNT; i++) {
        CHECK(times.seconds[i] >= 0 && stk_span_name((stk_span_kind)i));
        sum += times.seconds[i];
    }
    CHECK_EQ_I64(times.steps, 900);
    CHECK_EQ_I64(times.samples, 28800);
    CHECK_MSG(sum <= times.total * 1.001 && sum >= times.total * 0.5,
              "%g of %g seconds are accounted for", sum, times.total);
    CHECK(times.seconds[STK_SPAN_STEP] > 0 && times.seconds[STK_SPAN_BUILD] > 0 &&
          times.seconds[STK_SPAN_VALIDATE] > 0);
    CHECK(!stk_span_name(STK_SPAN_COUNT));
    close_problem(&p);
}

typedef struct spans {
    int64_t steps, others;
    double seconds;
} spans;

static void visit(void *context, const stk_trace_event *e)
{
    spans *s = context;
    if (e->kind != STK_TRACE_SPAN || strncmp(e->name, "train.", 6)) return;
    s->steps += !strcmp(e->name, "train.step");
    s->others += strcmp(e->name, "train.step") != 0;
    s->seconds += (double)e->value * 1e-9;
}

/* What the trace says and what the counters say is the same. */
TEST(spans_of_the_trace_add_up_to_the_books)
{
    problem p;
    stk_error err;
    stk_train_times times;
    spans s = {0};
    REQUIRE(open_problem(&p, 320));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 3;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err)); /* compiles */
    stk_trace_enable(0);
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    stk_trace_disable();
    stk_trace_drain(visit, &s, NULL);
    stk_trainer_times(p.trainer, &times);
    double counted = 0;
    for (int i = 0; i < STK_SPAN_COUNT; i++) counted += times.seconds[i];
    CHECK_MSG(s.steps >= 30 && s.steps < 50, "%" PRId64 " spans of steps for 30 steps", s.steps);
    CHECK(s.others > 30);
    CHECK_NEAR(s.seconds, counted, 0.1 * counted + 1e-4);
    stk_trace_forget();
    close_problem(&p);
}

TEST_MAIN()
