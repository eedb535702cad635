/* Models built in C: shapes, weights, calls, sharing, nesting, mistakes. */
#include "check.h"
#include "stoker/layers.h"

#define L(...) ((int64_t[]){__VA_ARGS__})

static stk_model *new_model(const char *name)
{
    stk_error err = {0};
    stk_model *m = NULL;
    CHECK_OK(stk_model_new(name, &m, &err));
    return m;
}

/* Runs a model with one input and one output on a tensor; the weights are those of the store. */
static stk_tensor *run(const stk_model *m, stk_store *store, stk_tensor *x)
{
    stk_error err = {0};
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_tensor *out = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val in = stk_g_input(g, "x", x->dtype, x->rank, x->shape), y = 0;
    stk_model_call(m, g, &in, NULL, &y);
    stk_g_output(g, "y", y);
    stk_program_options o = stk_program_options_defaults();
    o.store = store;
    CHECK_OK(stk_program_new(g, &o, &p, &err));
    if (p) {
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &out, &err));
    }
    stk_program_release(p);
    stk_graph_release(g);
    return out;
}

TEST(a_sequential_model_has_keras_names_and_shapes)
{
    stk_error err = {0};
    stk_model *m = new_model(NULL);
    stk_model_add(m, "Input(shape=(4,))");
    stk_model_add(m, "Dense(8, activation=relu)");
    stk_model_add(m, "Activation(tanh)");
    stk_model_add(m, "Dense(units=3, use_bias=False, kernel_initializer=he_normal(seed=3))");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_STR(stk_model_name(m), "sequential");
    CHECK_EQ_I64(stk_model_layer_count(m), 4);
    CHECK_STR(stk_model_layer_name(m, 0), "input_layer");
    CHECK_STR(stk_model_layer_name(m, 3), "dense_1");
    CHECK_STR(stk_model_layer_class(m, 3), "Dense");
    CHECK_EQ_I64(stk_model_weight_count(m), 3);
    stk_weight w = stk_model_weight(m, 2);
    CHECK_STR(w.name, "dense_1/kernel");
    CHECK_EQ_I64(w.shape[0], 8);
    CHECK_EQ_I64(w.shape[1], 3);
    CHECK(w.trainable);
    CHECK_EQ_I64(stk_model_find_weight(m, "dense/bias"), 1);
    CHECK_EQ_I64(stk_model_params(m).total, 4 * 8 + 8 + 24);
    stk_spec y = stk_model_output(m, 0);
    CHECK_EQ_I64(y.rank, 2);
    CHECK_EQ_I64(y.shape[0], -1);
    CHECK_EQ_I64(y.shape[1], 3);
    CHECK_OK(stk_model_set_trainable(m, "dense", false, &err));
    CHECK_EQ_I64(stk_model_params(m).trainable, 24);
    CHECK_FAILS(stk_model_set_trainable(m, "danse", false, &err), STK_ERR_ARGUMENT, "dense");
    stk_model_release(m);
}

TEST(a_dense_layer_computes)
{
    stk_error err = {0};
    stk_model *m = new_model("tiny");
    stk_store *store = NULL;
    stk_tensor *x = NULL, *k = NULL, *b = NULL;
    stk_model_add(m, "Input((2,))");
    stk_model_add(m, "Dense(2, relu)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_store_new(NULL, &store, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, L(2, 2), (float[]){1, 2, 3, -4}, &k, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 1, L(2), (float[]){0.5f, 0}, &b, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, L(1, 2), (float[]){1, 1}, &x, &err));
    const char *names[2] = {"dense/kernel", "dense/bias"};
    CHECK_OK(stk_model_set_weights(m, store, 2, names, (stk_tensor *[]){k, b}, false, &err));
    stk_tensor *y = run(m, store, x);
    CHECK_NEAR(stk_tensor_at(y, 0), 4.5, 1e-6);
    CHECK_NEAR(stk_tensor_at(y, 1), 0, 1e-6);
    CHECK_FAILS(stk_model_set_weights(m, store, 1, names, (stk_tensor *[]){k, b}, false, &err),
                STK_ERR_ARGUMENT, "dense/bias");
    CHECK_FAILS(stk_model_set_weights(m, store, 2, names, (stk_tensor *[]){b, b}, false, &err),
                STK_ERR_SHAPE, "float32[2,2]");
    names[0] = "dense/kernal";
    CHECK_FAILS(stk_model_set_weights(m, store, 2, names, (stk_tensor *[]){k, b}, false, &err),
                STK_ERR_ARGUMENT, "dense/kernel");
    stk_tensor_release(x), stk_tensor_release(k), stk_tensor_release(b), stk_tensor_release(y);
    stk_store_release(store);
    stk_model_release(m);
}

TEST(layers_are_shared_and_several_outputs_come_in_order)
{
    stk_error err = {0};
    stk_model *m = new_model(NULL);
    stk_sym a = stk_m_input(m, "a", STK_F32, 1, L(4));
    stk_sym b = stk_m_input(m, "b", STK_F32, 1, L(4));
    stk_layer shared = stk_m_layer(m, "Dense(4, name=both)");
    stk_sym ya = stk_m_call(m, shared, 1, &a), yb = stk_m_call(m, shared, 1, &b);
    stk_sym unused = stk_m_apply(m, "Dense(100)", 1, &b);
    stk_sym head = stk_m_apply(m, "Dense(1)", 1, &yb);
    CHECK(unused > 0);
    stk_m_output(m, ya);
    stk_m_output(m, head);
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_EQ_I64(stk_model_input_count(m), 2);
    CHECK_EQ_I64(stk_model_output_count(m), 2);
    CHECK_EQ_I64(stk_model_weight_count(m), 4); /* the unused layer has left */
    CHECK_STR(stk_model_weight(m, 0).name, "both/kernel");
    CHECK_STR(stk_model_weight(m, 2).name, "dense_1/kernel");
    CHECK_STR(stk_model_output(m, 1).name, "dense_1");
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x[2] = {stk_g_input(g, "a", STK_F32, 2, L(5, 4)),
                    stk_g_input(g, "b", STK_F32, 2, L(5, 4))};
    stk_val y[2], w[4];
    stk_call call = {.weights = w};
    stk_model_call(m, g, x, &call, y);
    CHECK_OK(stk_graph_status(g, &err));
    CHECK_EQ_I64(stk_g_dim(g, y[0], 1), 4);
    CHECK_EQ_I64(stk_g_dim(g, y[1], 1), 1);
    CHECK(w[0] && w[1] && w[2] && w[3]);
    CHECK_EQ_I64(call.penalty, 0);
    stk_model_call(m, g, x, &call, y); /* once more in the same graph: the same variables */
    CHECK_OK(stk_graph_status(g, &err));
    stk_graph_release(g);
    stk_model_release(m);
}

/* Moving averages of a layer that is called twice move twice, in the order of the calls. */
TEST(a_shared_batch_norm_follows_both_calls)
{
    stk_error err = {0};
    stk_model *m = new_model(NULL);
    stk_sym a = stk_m_input(m, "a", STK_F32, 1, L(1)), b = stk_m_input(m, "b", STK_F32, 1, L(1));
    stk_layer norm = stk_m_layer(m, "BatchNormalization(momentum=0.5)");
    stk_m_output(m, stk_m_call(m, norm, 1, &a));
    stk_m_output(m, stk_m_call(m, norm, 1, &b));
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_store *store = NULL;
    stk_tensor *x[2] = {NULL, NULL}, *mean = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_store_new(NULL, &store, &err));
    CHECK_OK(stk_model_init(m, store, 1, &err));
    stk_val in[2] = {stk_g_input(g, "a", STK_F32, 2, L(2, 1)),
                     stk_g_input(g, "b", STK_F32, 2, L(2, 1))};
    stk_val y[2];
    stk_call call = {.training = true};
    stk_model_call(m, g, in, &call, y);
    stk_g_output(g, "y", y[1]);
    stk_program_options o = stk_program_options_defaults();
    o.store = store;
    CHECK_OK(stk_program_new(g, &o, &p, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, L(2, 1), (float[]){3, 5}, &x[0], &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, L(2, 1), (float[]){10, 12}, &x[1], &err));
    CHECK_OK(stk_program_feed(p, "a", x[0], &err));
    CHECK_OK(stk_program_feed(p, "b", x[1], &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_store_get(store, "batch_normalization/moving_mean", &mean, &err));
    CHECK_NEAR(stk_tensor_at(mean, 0), (0 * 0.5 + 4 * 0.5) * 0.5 + 11 * 0.5, 1e-5);
    stk_tensor_release(x[0]), stk_tensor_release(x[1]), stk_tensor_release(mean);
    stk_program_release(p);
    stk_graph_release(g);
    stk_store_release(store);
    stk_model_release(m);
}

TEST(models_nest)
{
    stk_error err = {0};
    stk_model *inner = new_model("inner"), *m = new_model(NULL);
    stk_model_add(inner, "Input((3,))");
    stk_model_add(inner, "Dense(5, kernel_regularizer=l2(0.5))");
    CHECK_OK(stk_model_build(inner, 0, NULL, &err));
    stk_model_add(m, "Input((3,))");
    stk_model_add_model(m, inner);
    stk_model_add(m, "Dense(2)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_STR(stk_model_weight(m, 0).name, "inner/dense/kernel");
    CHECK_STR(stk_model_layer_class(m, 1), "Sequential");
    CHECK(stk_model_weight(m, 0).trainable);
    CHECK_OK(stk_model_set_trainable(m, "inner", false, &err));
    CHECK(!stk_model_weight(m, 0).trainable);
    CHECK(stk_model_weight(inner, 0).trainable);
    stk_model_release(inner);
    stk_model_release(m);
}

TEST(a_model_without_input_is_built_for_what_it_is_fed)
{
    stk_error err = {0};
    stk_model *m = new_model(NULL);
    stk_model_add(m, "Dense(5)");
    stk_model_add(m, "Dense(2)");
    CHECK_FAILS(stk_model_build(m, 0, NULL, &err), STK_ERR_STATE,
                "an Input layer, or give the shape");
    stk_spec spec = {.dtype = STK_F32, .rank = 2, .shape = {32, 7}};
    CHECK_OK(stk_model_build(m, 1, &spec, &err));
    CHECK_STR(stk_model_layer_name(m, 0), "input_layer");
    CHECK_EQ_I64(stk_model_input(m, 0).shape[0], -1);
    CHECK_EQ_I64(stk_model_weight(m, 0).shape[0], 7);
    stk_model_release(m);
}

static void check_mistake(const char *layer, stk_status code, const char *part)
{
    stk_error err = {0};
    stk_model *m = new_model("wrong");
    stk_model_add(m, "Input((None, 4))");
    stk_model_add(m, layer);
    stk_model_add(m, "Dense(3)");
    CHECK_FAILS(stk_model_build(m, 0, NULL, &err), code, part);
    stk_model_release(m);
}

TEST(mistakes_are_told_with_what_would_fit)
{
    check_mistake("Dens(3)", STK_ERR_UNSUPPORTED, "Dense");
    check_mistake("Dense()", STK_ERR_FORMAT, "'units' is missing");
    check_mistake("Dense(0)", STK_ERR_FORMAT, "from 1 on");
    check_mistake("Dense(3.5)", STK_ERR_FORMAT, "whole number");
    check_mistake("Dense(3, activation=rleu)", STK_ERR_UNSUPPORTED, "relu");
    check_mistake("Dense(3, unit=3)", STK_ERR_UNSUPPORTED, "units");
    check_mistake("Dense(3, kernel_initializer=he_norml)", STK_ERR_UNSUPPORTED, "HeNormal");
    check_mistake("Dense(3", STK_ERR_FORMAT, "')'");
    check_mistake("Dense 3", STK_ERR_FORMAT, "'('");
    check_mistake("", STK_ERR_FORMAT, "name of a class");
    check_mistake(NULL, STK_ERR_ARGUMENT, "Dense(10)");
    check_mistake("Dense(3, dtype=float33)", STK_ERR_UNSUPPORTED, "mixed_float16");
    check_mistake("Dense(3, name='a/b')", STK_ERR_FORMAT, "no name");
    check_mistake("Dense(3, name=input_layer)", STK_ERR_ARGUMENT, "two layers");
}

TEST(shapes_that_do_not_fit_name_the_layer)
{
    stk_error err = {0};
    stk_model *m = new_model("wrong");
    stk_model_add(m, "Input((None,))");
    stk_model_add(m, "Dense(3, name=first)");
    CHECK_FAILS(stk_model_build(m, 0, NULL, &err), STK_ERR_SHAPE,
                "layer 'first' (Dense) on (None, None)");
    stk_model_release(m);
    m = new_model("right");
    stk_model_add(m, "Input((4,))");
    stk_model_add(m, "Dense(3)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, L(2, 5)), y;
    stk_model_call(m, g, &x, NULL, &y);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "the model was built for (None, 4)");
    stk_graph_release(g);
    stk_model_add(m, "Dense(3)");
    CHECK_FAILS(stk_model_status(m, &err), STK_ERR_STATE, "built already");
    stk_model_release(m);
}

/* What cannot be used says what it lacks, whoever asks. */
TEST(models_that_lack_something)
{
    static const struct {
        const char *layer, *says;
    } cases[] = {
        {NULL, "model 'm' has no layers; add some, as stk_model_add(m, \"Dense(10)\")"},
        {"Dense(3)", "begin it with an Input layer, or give the shape to stk_model_build"}};
    for (int i = 0; i < 2; i++) {
        stk_error err = {0};
        stk_model *m = new_model("m");
        stk_store *store = NULL;
        stk_graph *g = NULL;
        stk_val y = 0;
        if (cases[i].layer) stk_model_add(m, cases[i].layer);
        CHECK_OK(stk_store_new(NULL, &store, &err));
        CHECK_OK(stk_graph_new(&g, &err));
        CHECK_FAILS(stk_model_init(m, store, 1, &err), STK_ERR_STATE, cases[i].says);
        stk_val x = stk_g_input(g, "x", STK_F32, 2, L(2, 4));
        stk_model_call(m, g, &x, &(stk_call){.training = false}, &y);
        CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_STATE, cases[i].says);
        CHECK_FAILS(stk_model_build(m, 0, NULL, &err), STK_ERR_STATE, cases[i].says);
        stk_graph_release(g);
        stk_store_release(store);
        stk_model_release(m);
    }
    stk_error err = {0};
    stk_model *m = new_model("f");
    stk_m_input(m, "x", STK_F32, 1, L(3));
    CHECK_FAILS(stk_model_build(m, 0, NULL, &err), STK_ERR_STATE,
                "model 'f' has no outputs; name them with stk_m_output");
    stk_model_release(m);
}

TEST(policies_compute_short_and_keep_long)
{
    stk_error err = {0};
    stk_model *m = new_model(NULL);
    stk_model_add(m, "Input((4,))");
    stk_model_add(m, "Dense(3)");
    stk_model_add(m, "Dense(2, dtype=float64)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_model_set_policy(m, "mixed_bfloat16", &err));
    CHECK_EQ_I64(stk_model_weight(m, 0).dtype, STK_F32);
    CHECK_EQ_I64(stk_model_weight(m, 2).dtype, STK_F64);
    CHECK_EQ_I64(stk_model_output(m, 0).dtype, STK_F64);
    CHECK_FAILS(stk_model_set_policy(m, "mixed", &err), STK_ERR_ARGUMENT, "mixed_float16");
    stk_model_release(m);
}

TEST(a_scalar_may_come_as_one_number)
{
    stk_error err = {0};
    stk_model *m = NULL;
    stk_store *store = NULL;
    stk_tensor *t = NULL, *back = NULL;
    const char *name = "attention/scale";
    CHECK_OK(stk_model_new("m", &m, &err));
    stk_sym x = stk_m_apply(m, "Input((3, 2))", 0, NULL), both[] = {x, x};
    stk_m_output(m, stk_m_apply(m, "Attention(use_scale=True)", 2, both));
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_store_new(NULL, &store, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 1, L(1), &t, &err));
    CHECK_OK(stk_tensor_set(t, 0, 2.5, &err));
    CHECK_OK(stk_model_set_weights(m, store, 1, &name, &t, false, &err));
    CHECK_OK(stk_store_get(store, name, &back, &err));
    CHECK(back && back->rank == 0 && stk_tensor_at(back, 0) == 2.5);
    stk_tensor_release(back);
    stk_tensor_release(t);
    CHECK_OK(stk_tensor_new(STK_F32, 1, L(2), &t, &err));
    CHECK_FAILS(stk_model_set_weights(m, store, 1, &name, &t, false, &err), STK_ERR_SHAPE,
                "float32[2]");
    stk_tensor_release(t);
    stk_store_release(store);
    stk_model_release(m);
}

TEST(what_must_be_given_is_not_none)
{
    stk_error err = {0};
    stk_model *m = NULL;
    const char *text =
        "{\"class_name\": \"Sequential\", \"config\": {\"layers\": [{\"class_name\": "
        "\"Dense\", \"config\": {\"units\": null}}]}}";
    CHECK_FAILS(stk_model_from_json(text, strlen(text), &m, &err), STK_ERR_FORMAT,
                "'units' is None; it takes a whole number");
}

/* Everything a program does with a model, until an allocation fails. */
static stk_status whole_life(stk_error *err)
{
    stk_model *m = NULL;
    stk_store *store = NULL;
    stk_status status = stk_model_new("oom", &m, err);
    if (status == STK_OK) {
        stk_model_add(m, "Input((4,))");
        stk_model_add(m, "Dense(3, activation=relu, kernel_regularizer=l2(0.1))");
        stk_model_add(m, "Dense(2, kernel_initializer=orthogonal)");
        status = stk_model_build(m, 0, NULL, err);
    }
    if (status == STK_OK) status = stk_store_new(NULL, &store, err);
    if (status == STK_OK) status = stk_model_init(m, store, 1, err);
    if (status == STK_OK) {
        stk_graph *g = NULL;
        status = stk_graph_new(&g, err);
        if (status == STK_OK) {
            stk_val x = stk_g_input(g, "x", STK_F32, 2, L(2, 4)), y;
            stk_call call = {.training = true};
            stk_model_call(m, g, &x, &call, &y);
            status = stk_graph_status(g, err);
        }
        stk_graph_release(g);
    }
    stk_store_release(store);
    stk_model_release(m);
    return status;
}

TEST(out_of_memory_is_an_ordinary_error)
{
    stk_error err = {0};
    OOM_LOOP(whole_life(&err));
}

TEST_MAIN()
