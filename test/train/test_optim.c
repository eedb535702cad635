/* Optimizers and schedules: the same weights as Keras after every step, from text and from Keras' JSON; one launch for all
 * weights; rates that change without a new program; updates that are left out; mistakes. */
#include "fixture.h"

#include "optim/optimizer.h"
#include "stoker/optim.h"

static const char *const NAMES[2] = {"a", "b"};

/* Gradients come as inputs, so that a step is exactly one update. */
static stk_graph *update_graph(const stk_optimizer *o)
{
    stk_graph *g = NULL;
    stk_error err;
    if (!CHECK_OK(stk_graph_new(&g, &err))) return NULL;
    stk_val w[2] = {stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){3, 4}),
                    stk_g_variable(g, "b", STK_F32, 1, (int64_t[]){5})};
    stk_val d[2] = {stk_g_input(g, "da", STK_F32, 2, (int64_t[]){3, 4}),
                    stk_g_input(g, "db", STK_F32, 1, (int64_t[]){5})};
    if (o->options.dynamic_loss_scale) /* gradients of a scaled loss: the scale comes back out */
        for (int i = 0; i < 2; i++) d[i] = stk_optimizer_scale_loss(o, g, d[i]);
    stk_optimizer_apply(o, g,
                        &(stk_update){.n = 2, .variables = w, .gradients = d, .names = NAMES});
    return g;
}

static double scalar_of(stk_store *store, const char *name)
{
    stk_error err;
    stk_tensor *t = NULL;
    if (!CHECK_OK(stk_store_get(store, name, &t, &err))) return NAN;
    double value = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    return value;
}

static void start(stk_program *p, const stk_optimizer *o, const fixture *f)
{
    stk_error err;
    stk_store *store = stk_program_store(p);
    CHECK_OK(stk_store_set(store, "a", stk_npz_find(f->file, "start_a"), &err));
    CHECK_OK(stk_store_set(store, "b", stk_npz_find(f->file, "start_b"), &err));
    CHECK_OK(stk_optimizer_init(o, store, 2, NAMES, &err));
}

static void feed_step(stk_program *p, const fixture *f, int64_t step, bool overflow)
{
    stk_error err;
    for (int k = 0; k < 2; k++) {
        stk_tensor *d = fixture_row(stk_npz_find(f->file, k ? "gradients_b" : "gradients_a"), step);
        stk_tensor *own = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, d->rank, d->shape, &own, &err));
        CHECK_OK(stk_tensor_copy(own, d, &err));
        if (overflow && k == 0) CHECK_OK(stk_tensor_set(own, 6, INFINITY, &err));
        CHECK_OK(stk_program_feed(p, k ? "db" : "da", own, &err));
        stk_tensor_release(own);
        stk_tensor_release(d);
    }
}

static void follow_keras(const fixture *f, int64_t i, const stk_optimizer *o, const char *label)
{
    stk_error err;
    stk_program *p = NULL;
    stk_graph *g = update_graph(o);
    bool scaled = o->options.dynamic_loss_scale;
    if (!CHECK_OK(stk_program_new(g, NULL, &p, &err))) printf("%s\n", label);
    stk_graph_release(g);
    if (!p) return;
    start(p, o, f);
    stk_tensor *rates = fixture_find(f, "rate", i);
    for (int64_t step = 0; step < rates->shape[0]; step++) {
        double rate = 0;
        CHECK_OK(stk_optimizer_rate(o, stk_program_store(p), &rate, &err));
        if (!CHECK_NEAR(rate, stk_tensor_at(rates, step), 1e-6)) printf("  in %s\n", label);
        feed_step(p, f, step, scaled && step == 4);
        CHECK_OK(stk_program_run(p, 1, &err));
        for (int k = 0; k < 2; k++) {
            stk_tensor *got = NULL, *want = fixture_row(fixture_find(f, NAMES[k], i), step);
            CHECK_OK(stk_store_get(stk_program_store(p), NAMES[k], &got, &err));
            if (!fixture_near(label, NAMES[k], got, want, 2e-5))
                printf("  after step %lld\n", (long long)step);
            stk_tensor_release(got);
            stk_tensor_release(want);
        }
    }
    int64_t iterations = 0;
    CHECK_OK(stk_optimizer_iterations(o, stk_program_store(p), &iterations, &err));
    CHECK_EQ_I64(iterations, rates->shape[0] - scaled); /* one step was left out */
    if (scaled)
        CHECK_NEAR(scalar_of(stk_program_store(p), "adam/dynamic_scale"),
                   stk_tensor_at(fixture_find(f, "scale", i), 0), 0);
    stk_program_release(p);
}

static char *json_of(const fixture *f, int64_t i)
{
    stk_error err;
    stk_json_writer w = {0};
    char *text = NULL;
    size_t size;
    stk_json_put_tree(&w, stk_json_get(stk_json_item(f->cases, i), "json"));
    CHECK_OK(stk_json_finish(&w, &text, &size, &err));
    return text;
}

TEST(every_optimizer_and_schedule_follows_keras)
{
    stk_error err;
    fixture f;
    if (!fixture_open(&f, "optim.npz")) return;
    for (int64_t i = 0; i < f.cases->count; i++) {
        const char *text = fixture_text(&f, i, "text");
        stk_optimizer *o = NULL;
        if (!CHECK_OK(stk_optimizer_parse(text, &o, &err))) printf("  %s\n", text);
        if (o) follow_keras(&f, i, o, text);
        stk_optimizer_release(o);
    }
    fixture_close(&f);
}

TEST(keras_json_is_the_same_optimizer_and_comes_back)
{
    stk_error err;
    fixture f;
    if (!fixture_open(&f, "optim.npz")) return;
    for (int64_t i = 0; i < f.cases->count; i++) {
        stk_optimizer *text = NULL, *json = NULL, *again = NULL;
        char *keras = json_of(&f, i), *written = NULL;
        const char *label = fixture_text(&f, i, "text");
        CHECK_OK(stk_optimizer_parse(label, &text, &err));
        if (!CHECK_OK(stk_optimizer_parse(keras, &json, &err)) ||
            !CHECK_OK(stk_optimizer_to_json(json, &written, &err)) ||
            !CHECK_OK(stk_optimizer_parse(written, &again, &err)))
            printf("  %s\n  %s\n  %s\n", label, keras, written);
        /* Keras writes a rate as the float32 it is; the rest must agree to the bit. */
        if (text && json && again) {
            stk_optimizer_options a = text->options, b = json->options, c = again->options;
            CHECK_NEAR(a.learning_rate, b.learning_rate, 1e-7);
            b.learning_rate = c.learning_rate = a.learning_rate;
            if (!CHECK(!memcmp(&a, &b, sizeof a)) || !CHECK(!memcmp(&b, &c, sizeof a)))
                printf("  %s\n  %s\n", label, written);
        }
        stk_optimizer_release(text), stk_optimizer_release(json), stk_optimizer_release(again);
        stk_free(keras);
        stk_text_free(written);
    }
    fixture_close(&f);
}

/* Ten weights of different shapes: the whole update is one launch, and one more for the scalars. */
static void launches_of(const char *text, int32_t most)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_optimizer *o = NULL;
    stk_val w[10], d[10];
    char name[10][8];
    const char *names[10];
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_optimizer_parse(text, &o, &err));
    for (int i = 0; i < 10; i++) {
        snprintf(name[i], sizeof name[i], "w%d", i);
        names[i] = name[i];
        w[i] = stk_g_variable(g, name[i], STK_F32, 2, (int64_t[]){3 + i, 17});
        snprintf(name[i], sizeof name[i], "d%d", i);
        d[i] = stk_g_input(g, name[i], STK_F32, 2, (int64_t[]){3 + i, 17});
        snprintf(name[i], sizeof name[i], "w%d", i);
    }
    stk_optimizer_apply(o, g,
                        &(stk_update){.n = 10, .variables = w, .gradients = d, .names = names});
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
        stk_program_stats stats;
        stk_program_describe(p, &stats);
        if (!CHECK(stats.launches <= most)) {
            char *dump = NULL;
            CHECK_OK(stk_program_dump(p, &dump, &err));
            printf("%s: %d launches\n%s\n", text, stats.launches, dump);
            stk_text_free(dump);
        }
    }
    stk_program_release(p);
    stk_graph_release(g);
    stk_optimizer_release(o);
}

TEST(slots_are_counted)
{
    static const struct {
        const char *text;
        int32_t slots;
    } cases[] = {{"sgd", 0},
                 {"sgd:momentum=0.9", 1},
                 {"adam", 2},
                 {"adam:amsgrad=true", 3},
                 {"lion", 1},
                 {"adadelta", 2},
                 {"adam:use_ema=true", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_optimizer *o = NULL;
        stk_error err;
        if (!CHECK_OK(stk_optimizer_parse(cases[i].text, &o, &err))) continue;
        CHECK_MSG(stk_optimizer_slots(o) == cases[i].slots, "%s has %d", cases[i].text,
                  stk_optimizer_slots(o));
        stk_optimizer_release(o);
    }
}

TEST(all_weights_are_updated_by_one_launch)
{
    static const char *const plain[] = {"sgd",
                                        "sgd:momentum=0.9,nesterov=true",
                                        "adam",
                                        "adam:amsgrad=true",
                                        "adamw",
                                        "adamax",
                                        "nadam",
                                        "rmsprop",
                                        "rmsprop:centered=true,momentum=0.9",
                                        "adagrad",
                                        "adadelta",
                                        "lion",
                                        "adam:clipvalue=1,schedule=cosine/100",
                                        "adam:accumulate=4",
                                        "adam:use_ema=true,ema_overwrite_frequency=10"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) launches_of(plain[i], 4);
    launches_of("adam:global_clipnorm=1", 23); /* a norm is two launches a weight */
}

TEST(the_rate_changes_without_a_new_program)
{
    stk_error err;
    fixture f;
    stk_optimizer *o = NULL;
    stk_program *p = NULL;
    if (!fixture_open(&f, "optim.npz")) return;
    CHECK_OK(stk_optimizer_parse("sgd:lr=0.5,name=plain", &o, &err));
    stk_graph *g = update_graph(o);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    start(p, o, &f);
    feed_step(p, &f, 0, false);
    double before = scalar_of(stk_program_store(p), "b");
    CHECK_OK(stk_program_run(p, 1, &err));
    double once = scalar_of(stk_program_store(p), "b") - before;
    CHECK(fabs(once) > 1e-3);
    CHECK_OK(stk_optimizer_set_rate(o, stk_program_store(p), 0.25, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_NEAR(scalar_of(stk_program_store(p), "b") - before, 1.5 * once, 1e-5);
    CHECK_NEAR(scalar_of(stk_program_store(p), "plain/learning_rate"), 0.25, 0);
    CHECK_FAILS(stk_optimizer_set_rate(o, stk_program_store(p), -1, &err), STK_ERR_RANGE,
                "below 0");
    stk_optimizer_release(o);
    o = NULL;
    CHECK_OK(stk_optimizer_parse("sgd:schedule=cosine/10", &o, &err));
    CHECK_FAILS(stk_optimizer_set_rate(o, stk_program_store(p), 1, &err), STK_ERR_STATE,
                "schedule 'cosine'");
    stk_optimizer_release(o);
    stk_program_release(p);
    stk_graph_release(g);
    fixture_close(&f);
}

TEST(averages_become_the_weights_when_training_ends)
{
    stk_error err;
    fixture f;
    stk_optimizer *o = NULL;
    stk_program *p = NULL;
    if (!fixture_open(&f, "optim.npz")) return;
    CHECK_OK(stk_optimizer_parse("sgd:lr=0.5,use_ema=true,ema_momentum=0.5", &o, &err));
    stk_graph *g = update_graph(o);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    start(p, o, &f);
    feed_step(p, &f, 0, false);
    CHECK_OK(stk_program_run(p, 1, &err));
    double first = scalar_of(stk_program_store(p), "b");
    CHECK_OK(stk_program_run(p, 1, &err));
    double second = scalar_of(stk_program_store(p), "b");
    CHECK_OK(stk_optimizer_finish(o, stk_program_store(p), 2, NAMES, &err));
    CHECK_NEAR(scalar_of(stk_program_store(p), "b"), 0.5 * (first + second), 1e-6);
    stk_optimizer_release(o);
    stk_program_release(p);
    stk_graph_release(g);
    fixture_close(&f);
}

TEST(mistakes_say_what_exists)
{
    static const struct {
        const char *text, *fragment;
        stk_status status;
    } bad[] = {
        {"adm", "(did you mean 'adam'?); there are: sgd, adam", STK_ERR_ARGUMENT},
        {"", "there are: sgd", STK_ERR_ARGUMENT},
        {"adam:lrr=1", "did you mean 'lr'?", STK_ERR_ARGUMENT},
        {"adam:learningrate=1", "did you mean 'learning_rate'?", STK_ERR_ARGUMENT},
        {"sgd:beta_1=0.9", "it takes: learning_rate, momentum, nesterov", STK_ERR_ARGUMENT},
        {"adam:beta_1=2", "beta_1 is 2, it must be a number from 0 to 1", STK_ERR_RANGE},
        {"adam:beta_1=many", "must be a number", STK_ERR_ARGUMENT},
        {"adam:amsgrad=maybe", "must be true or false", STK_ERR_ARGUMENT},
        {"adam:lr=none", "cannot be None", STK_ERR_ARGUMENT},
        {"adam:amsgrad", "write name=value", STK_ERR_ARGUMENT},
        {"adam:clipnorm=1,clipvalue=1", "exclude each other", STK_ERR_ARGUMENT},
        {"adam:accumulate=1", "at least 2", STK_ERR_RANGE},
        {"adam:accumulate=2.5", "a whole number", STK_ERR_RANGE},
        {"lion:beta_1=0", "beta_1", STK_ERR_RANGE},
        {"adam:schedule=cosin/5", "did you mean 'cosine'?", STK_ERR_ARGUMENT},
        {"adam:schedule=cosine", "decay_steps must be given", STK_ERR_RANGE},
        {"adam:schedule=cosine/5/power=2", "it takes: decay_steps, alpha", STK_ERR_ARGUMENT},
        {"adam:schedule=cosine/5/7", "/name=value", STK_ERR_ARGUMENT},
        {"adam:schedule=piecewise/5:0.1", "last rate", STK_ERR_ARGUMENT},
        {"adam:schedule=piecewise/5:0.1/3:0.2/0.1", "does not follow", STK_ERR_RANGE},
        {"adam:schedule=piecewise/0.1/5:1", "only the last", STK_ERR_ARGUMENT},
        {"adam:schedule=piecewise/5:1/1e999", "rates are numbers from 0 on", STK_ERR_RANGE},
        {"adam:name=a/b", "without '/'", STK_ERR_ARGUMENT},
        {"{\"class_name\": \"Adm\", \"config\": {}}", "did you mean 'adam'", STK_ERR_ARGUMENT},
        {"{\"class_name\": \"Adam\"}", "class_name and config", STK_ERR_FORMAT},
        {"{\"class_name\": \"Adam\", \"config\": {\"beta_1\": \"x\"}}", "JSON string",
         STK_ERR_FORMAT},
        {"{\"class_name\": \"Adam\", \"config\": {\"beta\": 1}}", "no option 'beta'",
         STK_ERR_ARGUMENT},
        {"{\"class_name\": \"LossScaleOptimizer\", \"config\": {}}", "class_name and config",
         STK_ERR_FORMAT},
    };
    stk_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_optimizer *o = NULL;
        if (!CHECK_FAILS(stk_optimizer_parse(bad[i].text, &o, &err), bad[i].status,
                         bad[i].fragment))
            printf("  %s\n", bad[i].text);
        CHECK(o == NULL);
    }
}

TEST(json_says_everything_keras_needs)
{
    stk_error err;
    stk_optimizer *o = NULL;
    char *text = NULL;
    CHECK_OK(stk_optimizer_parse("adam:schedule=cosine_restarts/5", &o, &err));
    CHECK_OK(stk_optimizer_to_json(o, &text, &err));
    static const char *const parts[] = {"\"module\":\"keras.optimizers\",\"class_name\":\"Adam\"",
                                        "\"epsilon\":1e-07",
                                        "\"clipnorm\":null",
                                        "\"beta_2\":0.999",
                                        "\"first_decay_steps\":5",
                                        "\"initial_learning_rate\":0.001",
                                        "\"amsgrad\":false"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) CHECK_CONTAINS(text, parts[i]);
    stk_text_free(text);
    stk_optimizer_release(o);
}

TEST(structs_filled_by_hand_are_checked)
{
    stk_error err;
    stk_optimizer *o = NULL;
    stk_optimizer_options options = stk_optimizer_defaults(STK_OPTIMIZER_SGD);
    options.momentum = 1.5;
    CHECK_FAILS(stk_optimizer_new(&options, &o, &err), STK_ERR_RANGE, "momentum is 1.5");
    options = stk_optimizer_defaults(STK_OPTIMIZER_ADAM);
    options.learning_rate = NAN;
    CHECK_FAILS(stk_optimizer_new(&options, &o, &err), STK_ERR_RANGE, "learning_rate");
    options = stk_optimizer_defaults(STK_OPTIMIZER_ADAM);
    options.dynamic_loss_scale = true;
    options.dynamic_growth_steps = 0;
    CHECK_FAILS(stk_optimizer_new(&options, &o, &err), STK_ERR_RANGE, "dynamic_growth_steps");
    options = stk_optimizer_defaults(STK_OPTIMIZER_ADAM);
    options.schedule.kind = STK_SCHEDULE_COSINE;
    CHECK_FAILS(stk_optimizer_new(&options, &o, &err), STK_ERR_RANGE, "decay_steps");
    options.kind = STK_OPTIMIZER_COUNT;
    CHECK_FAILS(stk_optimizer_new(&options, &o, &err), STK_ERR_ARGUMENT, "unknown");
    CHECK(o == NULL);
}

TEST(graphs_without_gradients_are_refused)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_optimizer *o = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_optimizer_parse("adam", &o, &err));
    stk_val w = stk_g_variable(g, "a", STK_F32, 1, (int64_t[]){2}), none = 0;
    stk_optimizer_apply(o, g,
                        &(stk_update){.n = 1, .variables = &w, .gradients = &none, .names = NAMES});
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_ARGUMENT, "no weight has a gradient");
    stk_graph_release(g);
    stk_optimizer_release(o);
}

TEST(defaults_are_complete)
{
    for (int k = 0; k < STK_OPTIMIZER_COUNT; k++) {
        stk_optimizer_options o = stk_optimizer_defaults((stk_optimizer_kind)k);
        CHECK(o.learning_rate > 0);
        CHECK_EQ_I64(o.kind, k);
    }
    CHECK_NEAR(stk_optimizer_defaults(STK_OPTIMIZER_ADAMW).weight_decay, 0.004, 0);
    CHECK_NEAR(stk_optimizer_defaults(STK_OPTIMIZER_LION).beta_2, 0.99, 0);
    CHECK_NEAR(stk_optimizer_defaults(STK_OPTIMIZER_ADADELTA).rho, 0.95, 0);
    for (int k = 0; k < STK_SCHEDULE_COUNT; k++) CHECK(stk_schedule_name((stk_schedule_kind)k)[0]);
}

/* Half-precision weights keep their slots in their own type and are computed in float. */
TEST(weights_of_other_types)
{
    static const stk_dtype types[] = {STK_F16, STK_BF16, STK_F64};
    for (size_t i = 0; i < 3; i++) {
        stk_error err;
        stk_graph *g = NULL;
        stk_program *p = NULL;
        stk_optimizer *o = NULL;
        stk_tensor *one = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        CHECK_OK(stk_optimizer_parse("adam:lr=0.5,use_ema=true,accumulate=2", &o, &err));
        stk_val w = stk_g_variable(g, "a", types[i], 1, (int64_t[]){1});
        stk_optimizer_apply(
            o, g, &(stk_update){.n = 1, .variables = &w, .gradients = &w, .names = NAMES});
        CHECK_OK(stk_program_new(g, NULL, &p, &err));
        CHECK_OK(stk_tensor_new(types[i], 1, (int64_t[]){1}, &one, &err));
        CHECK_OK(stk_tensor_set(one, 0, 1, &err));
        CHECK_OK(stk_store_set(stk_program_store(p), "a", one, &err));
        CHECK_OK(stk_optimizer_init(o, stk_program_store(p), 1, NAMES, &err));
        CHECK_OK(stk_program_run(p, 2, &err));
        CHECK_NEAR(scalar_of(stk_program_store(p), "a"), 0.5, 1e-2);
        stk_tensor_release(one);
        stk_program_release(p);
        stk_graph_release(g);
        stk_optimizer_release(o);
    }
}

static stk_status make_and_drop(void)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_optimizer *o = NULL;
    stk_status status = stk_optimizer_parse(
        "{\"class_name\": \"Adagrad\", \"config\": {\"clipnorm\": 1.0}}", &o, &err);
    if (status == STK_OK) status = stk_graph_new(&g, &err);
    if (status == STK_OK) {
        stk_val w = stk_g_variable(g, "a", STK_F32, 1, (int64_t[]){2});
        stk_optimizer_apply(
            o, g, &(stk_update){.n = 1, .variables = &w, .gradients = &w, .names = NAMES});
        status = stk_graph_status(g, &err);
    }
    char *text = NULL;
    if (status == STK_OK) status = stk_optimizer_to_json(o, &text, &err);
    stk_text_free(text);
    stk_graph_release(g);
    stk_optimizer_release(o);
    return status;
}

static stk_store *oom_store;
static stk_status init_again(void)
{
    stk_error err;
    stk_optimizer *o = NULL;
    stk_status status = stk_optimizer_parse("adagrad", &o, &err);
    if (status == STK_OK) status = stk_optimizer_init(o, oom_store, 2, NAMES, &err);
    stk_optimizer_release(o);
    return status;
}

TEST(out_of_memory)
{
    stk_error err;
    stk_device *device = NULL;
    stk_tensor *t = NULL;
    OOM_LOOP(make_and_drop());
    CHECK_OK(stk_device_open("default", 1, &device, &err));
    CHECK_OK(stk_store_new(device, &oom_store, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){4}, &t, &err));
    CHECK_OK(stk_store_set(oom_store, "a", t, &err));
    CHECK_OK(stk_store_set(oom_store, "b", t, &err));
    OOM_LOOP(init_again());
    stk_tensor_release(t);
    stk_store_release(oom_store);
    stk_device_release(device);
}

TEST_MAIN()
