/* The step: a model trains, evaluates and predicts through programs that share a store; results are read only when asked
 * for; no allocation per step; mixed precision; weights, masks, constraints and penalties take part. */
#include "check.h"

#include "stoker/losses.h"
#include "train/step.h"

static stk_model *small_model(const char *last)
{
    stk_error err;
    stk_model *m = NULL;
    CHECK_OK(stk_model_new("small", &m, &err));
    stk_model_add(m, "Input(shape=(2,))");
    stk_model_add(m, "Dense(8, activation=tanh)");
    stk_model_add(m, last);
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    return m;
}

typedef struct bed { /* what a test trains in */
    stk_model *model;
    stk_optimizer *optimizer;
    stk_step *step;
    stk_device *device;
    stk_store *store;
    stk_function *train, *evaluate, *predict;
    stk_tensor *x, *y, *w;
} bed;

enum { ROWS = 32 };

/* Two classes: inside and outside of a circle. */
static void make_data(bed *b, stk_dtype label)
{
    stk_error err;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){ROWS, 2}, &b->x, &err));
    CHECK_OK(stk_tensor_new(label, 1, (int64_t[]){ROWS}, &b->y, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){ROWS}, &b->w, &err));
    for (int i = 0; i < ROWS; i++) {
        double a = sin(12.9898 * i), c = cos(78.233 * i);
        CHECK_OK(stk_tensor_set(b->x, 2 * i, a, &err));
        CHECK_OK(stk_tensor_set(b->x, 2 * i + 1, c, &err));
        CHECK_OK(stk_tensor_set(b->y, i, a * a + c * c < 0.9, &err));
        CHECK_OK(stk_tensor_set(b->w, i, i % 3, &err));
    }
}

static bool bed_make(bed *b, const char *last, stk_step_config c, const char *optimizer,
                     bool weighted)
{
    stk_error err;
    *b = (bed){.model = small_model(last)};
    make_data(b, STK_I32);
    CHECK_OK(stk_optimizer_parse(optimizer, &b->optimizer, &err));
    c.model = b->model;
    c.optimizer = b->optimizer;
    if (!CHECK_OK(stk_step_new(&c, &b->step, &err))) return false;
    CHECK_OK(stk_device_open("default", 1, &b->device, &err));
    CHECK_OK(stk_store_new(b->device, &b->store, &err));
    CHECK_OK(stk_step_init(b->step, b->store, &err));
    stk_program_options o = stk_program_options_defaults();
    o.device = b->device;
    o.store = b->store;
    return CHECK_OK(stk_step_function(b->step, STK_STEP_TRAIN, weighted, &o, &b->train, &err)) &&
           CHECK_OK(
               stk_step_function(b->step, STK_STEP_EVALUATE, weighted, &o, &b->evaluate, &err)) &&
           CHECK_OK(stk_step_function(b->step, STK_STEP_PREDICT, false, &o, &b->predict, &err));
}

static void bed_release(bed *b)
{
    stk_function_release(b->train), stk_function_release(b->evaluate);
    stk_function_release(b->predict);
    stk_store_release(b->store);
    stk_device_release(b->device);
    stk_step_release(b->step);
    stk_optimizer_release(b->optimizer);
    stk_model_release(b->model);
    stk_tensor_release(b->x), stk_tensor_release(b->y), stk_tensor_release(b->w);
}

static double run(bed *b, stk_function *f, int64_t times)
{
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *loss = NULL;
    if (!CHECK_OK(stk_function_call(f, (stk_tensor *[]){b->x, b->y, b->w}, &p, &err))) return NAN;
    CHECK_OK(stk_program_run(p, times, &err));
    CHECK_OK(stk_program_read(p, "loss", &loss, &err));
    double value = stk_tensor_at(loss, 0);
    stk_tensor_release(loss);
    return value;
}

static double number(bed *b, const char *name)
{
    stk_error err;
    double values[16] = {0};
    CHECK_OK(stk_step_results(b->step, b->store, values, &err));
    for (int32_t i = 0; i < stk_step_result_count(b->step); i++)
        if (!strcmp(stk_step_result_name(b->step, i), name)) return values[i];
    printf("no result '%s'\n", name);
    CHECK(!"the result exists");
    return NAN;
}

static const char *const SPARSE[] = {"sparse_categorical_crossentropy"};

TEST(a_model_learns_and_its_numbers_agree)
{
    stk_error err;
    bed b;
    stk_step_config c = {.losses = SPARSE, .nlosses = 1, .nmetrics = 2, .seed = 3};
    c.metrics = (stk_step_metric[]){{.text = "accuracy"}, {.text = "accuracy"}};
    if (bed_make(&b, "Dense(2, activation=softmax)", c, "adam:lr=0.05", false)) {
        CHECK_STR(stk_step_result_name(b.step, 0), "loss");
        CHECK_STR(stk_step_result_name(b.step, 1), "accuracy");
        CHECK_STR(stk_step_result_name(b.step, 2), "accuracy_1");
        double first = run(&b, b.evaluate, 1);
        CHECK_NEAR(number(&b, "loss"), first, 1e-6);
        CHECK_OK(stk_step_reset(b.step, b.store, &err));
        run(&b, b.train, 300);
        CHECK_OK(stk_step_reset(b.step, b.store, &err));
        double last = run(&b, b.evaluate, 2);
        CHECK(last < 0.3 * first);
        CHECK_NEAR(number(&b, "loss"), last, 1e-6);
        CHECK(number(&b, "accuracy") > 0.9);
        /* What predict gives is what evaluate counted. */
        stk_program *p = NULL;
        stk_tensor *y = NULL;
        int right = 0;
        CHECK_OK(stk_function_call(b.predict, &b.x, &p, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y0", &y, &err));
        for (int i = 0; i < ROWS; i++)
            right += (stk_tensor_at(y, 2 * i + 1) > stk_tensor_at(y, 2 * i)) ==
                     (stk_tensor_at(b.y, i) != 0);
        CHECK_NEAR(number(&b, "accuracy"), right / (double)ROWS, 1e-6);
        stk_tensor_release(y);
        int64_t iterations = 0;
        CHECK_OK(stk_optimizer_iterations(stk_step_optimizer(b.step), b.store, &iterations, &err));
        CHECK_EQ_I64(iterations, 300);
        CHECK_OK(stk_step_check_labels(b.step, 0, b.y, &err));
        CHECK_OK(stk_tensor_set(b.y, 5, 2, &err));
        CHECK_FAILS(stk_step_check_labels(b.step, 0, b.y, &err), STK_ERR_RANGE, "label 5 is 2");
        CHECK_FAILS(stk_step_check_labels(b.step, 1, b.y, &err), STK_ERR_ARGUMENT, "no output 1");
    }
    bed_release(&b);
}

TEST(steps_allocate_nothing)
{
    stk_error err;
    bed b;
    stk_step_config c = {.losses = SPARSE, .nlosses = 1, .nmetrics = 2};
    c.metrics = (stk_step_metric[]){{.text = "accuracy"}, {.text = "confusion_matrix"}};
    if (bed_make(&b, "Dense(2)", c, "adamw:clipnorm=1", false)) {
        stk_program *p = NULL;
        CHECK_OK(stk_function_call(b.train, (stk_tensor *[]){b.x, b.y}, &p, &err));
        CHECK_OK(stk_program_run(p, 10, &err));
        int64_t before = stk_alloc_count();
        CHECK_OK(stk_program_run(p, 1000, &err));
        CHECK_EQ_I64(stk_alloc_count() - before, 0);
    }
    bed_release(&b);
}

/* A smaller last batch is another program over the same weights and sums. */
TEST(programs_share_weights_and_sums)
{
    stk_error err;
    bed b;
    stk_step_config c = {.losses = SPARSE, .nlosses = 1, .nmetrics = 1};
    c.metrics = (stk_step_metric[]){{.text = "accuracy"}};
    if (bed_make(&b, "Dense(2, activation=softmax)", c, "sgd", false)) {
        double whole = run(&b, b.evaluate, 1), accuracy = number(&b, "accuracy");
        CHECK_OK(stk_step_reset(b.step, b.store, &err));
        static const int64_t cuts[] = {0, 20, ROWS};
        for (int k = 0; k < 2; k++) {
            stk_tensor *x = NULL, *y = NULL;
            stk_program *p = NULL;
            int64_t n = cuts[k + 1] - cuts[k];
            CHECK_OK(stk_tensor_slice(b.x, (int64_t[]){cuts[k], 0}, (int64_t[]){n, 2}, &x, &err));
            CHECK_OK(stk_tensor_slice(b.y, &cuts[k], &n, &y, &err));
            CHECK_OK(stk_function_call(b.evaluate, (stk_tensor *[]){x, y}, &p, &err));
            CHECK_OK(stk_program_run(p, 1, &err));
            stk_tensor_release(x), stk_tensor_release(y);
        }
        CHECK_NEAR(number(&b, "loss"), whole, 1e-5);
        CHECK_NEAR(number(&b, "accuracy"), accuracy, 1e-6);
        CHECK_EQ_I64(stk_function_count(b.evaluate), 3);
    }
    bed_release(&b);
}

TEST(sample_and_class_weights_weigh_losses)
{
    stk_error err;
    bed b;
    stk_step_config c = {.losses = SPARSE, .nlosses = 1, .nmetrics = 2};
    c.metrics = (stk_step_metric[]){{.text = "accuracy"}, {.text = "acc", .weighted = true}};
    if (bed_make(&b, "Dense(2, activation=softmax)", c, "sgd", true)) {
        double weighted = run(&b, b.evaluate, 1), sum = 0;
        stk_program *p = NULL;
        stk_tensor *y = NULL;
        CHECK_OK(stk_function_call(b.predict, &b.x, &p, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y0", &y, &err));
        double right = 0, weights = 0;
        for (int i = 0; i < ROWS; i++) {
            int label = stk_tensor_at(b.y, i) != 0;
            double w = stk_tensor_at(b.w, i), mine = stk_tensor_at(y, 2 * i + label);
            sum -= w * log(mine);
            right += w * (mine > 0.5), weights += w;
        }
        CHECK_NEAR(weighted, sum / ROWS, 1e-5);
        CHECK_NEAR(number(&b, "acc"), right / weights, 1e-6);
        stk_tensor_release(y);
    }
    bed_release(&b);
    double table[1] = {0}; /* class 1 has none and counts once */
    stk_step_config k = {
        .losses = SPARSE, .nlosses = 1, .nclass_weights = 1, .class_weights = table};
    if (bed_make(&b, "Dense(2, activation=softmax)", k, "sgd", false)) {
        double some = run(&b, b.evaluate, 1);
        table[0] = 1;
        bed other;
        bed_make(&other, "Dense(2, activation=softmax)", k, "sgd", false);
        double all = run(&other, other.evaluate, 1);
        CHECK(some > 0 && some < 0.8 * all);
        bed_release(&other);
    }
    bed_release(&b);
}

TEST(penalties_and_constraints_take_part)
{
    stk_error err;
    bed b;
    stk_step_config c = {.losses = (const char *const[]){"mse"}, .nlosses = 1};
    if (bed_make(&b, "Dense(1, kernel_constraint=non_neg, kernel_regularizer=l2(10))", c,
                 "sgd:lr=0.01", false)) {
        stk_tensor *kernel = NULL;
        CHECK(run(&b, b.evaluate, 1) > 1);
        run(&b, b.train, 3);
        CHECK_OK(stk_store_get(b.store, "dense_1/kernel", &kernel, &err));
        for (int64_t i = 0; i < stk_tensor_count(kernel); i++) CHECK(stk_tensor_at(kernel, i) >= 0);
        stk_tensor_release(kernel);
    }
    bed_release(&b);
}

TEST(mixed_precision_scales_the_loss_and_learns)
{
    static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
    for (int k = 0; k < 2; k++) {
        stk_error err;
        bed b;
        stk_step_config c = {.losses = SPARSE, .nlosses = 1, .policy = policies[k]};
        if (bed_make(&b, "Dense(2, activation=softmax)", c, "adam:lr=0.05", false)) {
            stk_tensor *t = NULL;
            double first = run(&b, b.evaluate, 1);
            run(&b, b.train, 200);
            CHECK(run(&b, b.evaluate, 1) < 0.5 * first);
            CHECK_OK(stk_store_get(b.store, "dense/kernel", &t, &err)); /* masters are float32 */
            CHECK_EQ_I64(t->dtype, STK_F32);
            stk_tensor_release(t);
            bool scaled = stk_optimizer_get_options(stk_step_optimizer(b.step))->dynamic_loss_scale;
            CHECK(scaled == (k == 0));
            /* A loss that overflows leaves the weights alone and halves the scale. */
            double before = 0, after = 0;
            if (scaled) {
                CHECK_OK(stk_store_get(b.store, "adam/dynamic_scale", &t, &err));
                before = stk_tensor_at(t, 0);
                stk_tensor_release(t);
                CHECK_OK(stk_tensor_set(b.x, 0, INFINITY, &err));
                run(&b, b.train, 1);
                CHECK_OK(stk_store_get(b.store, "adam/dynamic_scale", &t, &err));
                after = stk_tensor_at(t, 0);
                stk_tensor_release(t);
                CHECK_NEAR(after, before / 2, 0);
                CHECK_OK(stk_store_get(b.store, "dense/kernel", &t, &err));
                for (int64_t i = 0; i < stk_tensor_count(t); i++)
                    CHECK(isfinite(stk_tensor_at(t, i)));
                stk_tensor_release(t);
            }
        }
        bed_release(&b);
    }
}

TEST(several_outputs)
{
    stk_error err;
    stk_model *m = NULL;
    stk_step *s = NULL;
    stk_graph *g = NULL;
    CHECK_OK(stk_model_new("two", &m, &err));
    stk_sym in = stk_m_input(m, "in", STK_F32, 1, (int64_t[]){2});
    stk_m_output(m, stk_m_apply(m, "Dense(1, name=price)", 1, &in));
    stk_m_output(m, stk_m_apply(m, "Dense(3, name=kind)", 1, &in));
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    stk_optimizer *sgd = NULL;
    CHECK_OK(stk_optimizer_parse("sgd", &sgd, &err));
    stk_step_config c = {.model = m, .optimizer = sgd, .nlosses = 2, .nmetrics = 1};
    c.losses = (const char *const[]){"mse", "sparse_categorical_crossentropy:from_logits=true"};
    c.loss_weights = (double[]){2, 0.5};
    c.metrics = (stk_step_metric[]){{.text = "acc", .output = 1}};
    if (CHECK_OK(stk_step_new(&c, &s, &err))) {
        CHECK_EQ_I64(stk_step_result_count(s), 4);
        CHECK_STR(stk_step_result_name(s, 1), "price_loss");
        CHECK_STR(stk_step_result_name(s, 3), "kind_acc");
        CHECK_EQ_I64(stk_step_input_count(s, STK_STEP_TRAIN, true), 5);
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val x[3] = {stk_g_input(g, "x0", STK_U8, 2, (int64_t[]){4, 2}),
                        stk_g_input(g, "y0", STK_F32, 1, (int64_t[]){4}),
                        stk_g_input(g, "y1", STK_U8, 2, (int64_t[]){4, 1})};
        stk_step_build(s, STK_STEP_TRAIN, false, g, x);
        CHECK_OK(stk_graph_status(g, &err));
        stk_program *p = NULL;
        if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
            stk_tensor *t = NULL;
            double values[4];
            CHECK_OK(stk_step_init(s, stk_program_store(p), &err));
            static const char *const names[] = {"x0", "y0", "y1"};
            for (int i = 0; i < 3; i++) {
                CHECK_OK(stk_tensor_new(i == 1 ? STK_F32 : STK_U8, i == 1 ? 1 : 2,
                                        i == 0 ? (int64_t[]){4, 2} : (int64_t[]){4, 1}, &t, &err));
                CHECK_OK(stk_program_feed(p, names[i], t, &err));
                stk_tensor_release(t);
                t = NULL;
            }
            CHECK_OK(stk_program_run(p, 1, &err));
            CHECK_OK(stk_step_results(s, stk_program_store(p), values, &err));
            CHECK_NEAR(values[0], 2 * values[1] + 0.5 * values[2], 1e-6);
            CHECK_NEAR(values[2], log(3), 1e-5); /* inputs of 0: all classes alike */
        }
        stk_program_release(p);
        stk_graph_release(g);
    }
    stk_step_release(s);
    stk_optimizer_release(sgd);
    stk_model_release(m);
}

TEST(mistakes)
{
    stk_error err;
    stk_step *s = NULL;
    stk_graph *g = NULL;
    stk_model *m = small_model("Dense(2)");
    stk_step_config c = {.model = m, .losses = (const char *const[]){"msee"}, .nlosses = 1};
    CHECK_FAILS(stk_step_new(&c, &s, &err), STK_ERR_ARGUMENT, "no loss is called 'msee'");
    c.losses = (const char *const[]){"mse", "mse"}, c.nlosses = 2;
    CHECK_FAILS(stk_step_new(&c, &s, &err), STK_ERR_ARGUMENT, "2 losses for a model with 1");
    c.nlosses = 1, c.nmetrics = 1;
    c.metrics = (stk_step_metric[]){{.text = "acuracy"}};
    CHECK_FAILS(stk_step_new(&c, &s, &err), STK_ERR_ARGUMENT, "did you mean 'accuracy'?");
    c.metrics = (stk_step_metric[]){{.text = "accuracy", .output = 1}};
    CHECK_FAILS(stk_step_new(&c, &s, &err), STK_ERR_RANGE, "output 1");
    c.nmetrics = 0;
    CHECK_OK(stk_step_new(&c, &s, &err));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x[2] = {stk_g_input(g, "x0", STK_F32, 2, (int64_t[]){4, 2}),
                    stk_g_input(g, "y0", STK_F32, 2, (int64_t[]){4, 5})};
    stk_step_build(s, STK_STEP_TRAIN, false, g, x);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_STATE, "no optimizer");
    stk_graph_release(g);
    CHECK_OK(stk_graph_new(&g, &err));
    x[0] = stk_g_input(g, "x0", STK_F32, 2, (int64_t[]){4, 2});
    x[1] = stk_g_input(g, "y0", STK_F32, 2, (int64_t[]){4, 5});
    stk_step_build(s, STK_STEP_EVALUATE, false, g, x);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "shapes must agree");
    stk_graph_release(g);
    stk_step_release(s);
    stk_model_release(m);
}

static stk_model *oom_model;
static stk_status make_step(void)
{
    stk_error err;
    stk_step *s = NULL;
    stk_graph *g = NULL;
    stk_optimizer *o = NULL;
    stk_step_config c = {.model = oom_model,
                         .losses = SPARSE,
                         .nlosses = 1,
                         .nmetrics = 1,
                         .nclass_weights = 2,
                         .class_weights = (double[]){1, 2}};
    c.metrics = (stk_step_metric[]){{.text = "accuracy", .weighted = true}};
    stk_status status = stk_optimizer_parse("adam", &o, &err);
    c.optimizer = o;
    if (status == STK_OK) status = stk_step_new(&c, &s, &err);
    if (status == STK_OK) status = stk_graph_new(&g, &err);
    if (status == STK_OK) {
        stk_val x[2] = {stk_g_input(g, "x0", STK_F32, 2, (int64_t[]){4, 2}),
                        stk_g_input(g, "y0", STK_I32, 1, (int64_t[]){4})};
        stk_step_build(s, STK_STEP_TRAIN, false, g, x);
        status = stk_graph_status(g, &err);
    }
    stk_graph_release(g);
    stk_step_release(s);
    stk_optimizer_release(o);
    return status;
}

TEST(out_of_memory)
{
    oom_model = small_model("Dense(2)");
    OOM_LOOP(make_step());
    stk_model_release(oom_model);
}

TEST_MAIN()
