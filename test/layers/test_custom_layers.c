/* Layers that a program brings along: graph from a function, weights, host functions, mistakes. */
#include "model_run.h"

/* y = x factor + a matrix product, to have two kinds of weights */
static void build_scale(stk_custom_call *c, void *context)
{
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    int64_t n = stk_g_dim(g, x, -1);
    stk_val by = stk_custom_weight(c, "factor", 1, &n, "constant(value=3)", true);
    stk_val w = stk_custom_weight(c, "kernel", 2, L(n, n), "identity", false);
    ++*(int32_t *)context;
    stk_custom_output(c, 0, stk_g_add(g, stk_g_mul(g, x, by), stk_g_matmul(g, x, w)));
}

TEST(a_function_becomes_a_layer)
{
    stk_error err = {0};
    int32_t calls = 0;
    fixture f = {0};
    CHECK_OK(stk_model_new(NULL, &f.model, &err));
    stk_model_add(f.model, "Input((4,))");
    stk_custom scale = {.class_name = "ScaleShift", .build = build_scale, .context = &calls};
    stk_model_add_custom(f.model, &scale);
    stk_model_add_custom(f.model, &scale);
    finish(&f);
    CHECK_EQ_I64(stk_model_find_weight(f.model, "scale_shift/factor"), 0);
    CHECK_EQ_I64(stk_model_weight_count(f.model), 4);
    CHECK_EQ_I64(stk_model_params(f.model).trainable, 8);
    CHECK_STR(stk_model_layer_class(f.model, 2), "ScaleShift");
    stk_tensor *x = filled(2, L(3, 4), a_wave), *y = run_model(&f, x, true, 0);
    for (int64_t i = 0; y && i < 12; i++)
        CHECK_NEAR(stk_tensor_at(y, i), 16 * stk_tensor_at(x, i), 1e-4);
    CHECK(calls > 2);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

static void add_one(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                    stk_tensor *const *out)
{
    (void)context, (void)nin, (void)nout;
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++)
        ((float *)out[0]->data)[i] = ((const float *)in[0]->data)[i] + 1;
}
static void build_opaque(stk_custom_call *c, void *context)
{
    static const stk_host host = {.name = "add_one", .run = add_one};
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    stk_host_result like = {.dtype = stk_g_dtype(g, x), .rank = stk_g_rank(g, x)};
    (void)context;
    for (int32_t i = 0; i < like.rank; i++) like.shape[i] = stk_g_dim(g, x, i);
    stk_custom_output(c, 0, stk_g_host(g, &host, 1, &x, 1, &like));
}

/* What comes behind an opaque function can be trained; what comes in front cannot. */
TEST(an_opaque_function_is_a_layer_too)
{
    stk_error err = {0};
    fixture f = {0};
    CHECK_OK(stk_model_new(NULL, &f.model, &err));
    stk_custom opaque = {.class_name = "AddOne", .build = build_opaque};
    stk_model_add(f.model, "Input((4,))");
    stk_model_add(f.model, "Dense(4, kernel_initializer=identity)");
    stk_model_add_custom(f.model, &opaque);
    stk_model_add(f.model, "Dense(1, kernel_initializer=ones)");
    finish(&f);
    stk_tensor *x = filled(2, L(2, 4), always_one), *y = run_model(&f, x, false, 0);
    CHECK_NEAR(stk_tensor_at(y, 0), 8, 1e-5);
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val in = stk_g_input(g, "x", STK_F32, 2, L(2, 4)), out = 0, w[4], d[4];
    stk_model_call(f.model, g, &in, &(stk_call){.training = true, .weights = w}, &out);
    stk_g_gradients(g, stk_g_sum_all(g, out), 2, w + 2, d);
    CHECK_OK(stk_graph_status(g, &err));
    stk_g_gradients(g, stk_g_sum_all(g, out), 1, w, d);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_UNSUPPORTED, "add_one");
    stk_graph_release(g);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

static void build_nothing(stk_custom_call *c, void *context) { (void)c, (void)context; }
static void build_badly(stk_custom_call *c, void *context)
{
    (void)context;
    stk_custom_output(c, 0, stk_custom_weight(c, "w", 1, L(2), "he_norml", true));
}

static void refuses_custom(const stk_custom *custom, const char *fragment)
{
    stk_error err = {0};
    stk_model *m = NULL;
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_model_add(m, "Input((4,))");
    stk_model_add_custom(m, custom);
    stk_status status = stk_model_build(m, 0, NULL, &err);
    CHECK_MSG(status != STK_OK && strstr(err.message, fragment), "\"%s\" does not say '%s'",
              err.message, fragment);
    stk_model_release(m);
}

TEST(mistakes_are_named)
{
    refuses_custom(&(stk_custom){.class_name = "Dense", .build = build_nothing}, "take another");
    refuses_custom(&(stk_custom){.class_name = "Mine"}, "function");
    refuses_custom(&(stk_custom){.class_name = "Mine", .build = build_nothing}, "no output");
    refuses_custom(&(stk_custom){.class_name = "Mine", .build = build_badly}, "he_norml");
    refuses_custom(
        &(stk_custom){.class_name = "Mine", .build = build_scale, .min_inputs = 2, .max_inputs = 2},
        "input");
}

static stk_status build_all(void)
{
    stk_error err = {0};
    int32_t calls = 0;
    stk_model *m = NULL;
    stk_status status = stk_model_new(NULL, &m, &err);
    if (status != STK_OK) return status;
    stk_model_add(m, "Input((4,))");
    stk_model_add_custom(
        m, &(stk_custom){.class_name = "Mine", .build = build_scale, .context = &calls});
    status = stk_model_build(m, 0, NULL, &err);
    stk_model_release(m);
    return status;
}
TEST(refused_memory_leaks_nothing) { OOM_LOOP(build_all()); }

TEST_MAIN()
