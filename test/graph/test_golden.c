/* Every file of test/golden against the operations it is about: what TensorFlow and Keras give, values and gradients, by
 * fast and by reference kernels. A file whose operation is in no row of the table below fails the test, and
 * so does a row without a file. (image.npz is read by test_image_golden.c.) */
#include "golden.h"
#include "golden_optim.h"
#include "stoker/image.h"
#include "stoker/nn.h"
#include "stoker/recurrent.h"

#include <dirent.h>

static void result(golden *c, stk_val v) { golden_result(c, "y", v); }

/* ---- convolution and pooling ------------------------------------------------------------------------------- */

static stk_padding padding_of(const golden *c)
{
    const char *name = golden_text(c, "padding");
    if (!strcmp(name, "same")) return STK_PADDING_SAME;
    if (!strcmp(name, "causal")) return STK_PADDING_CAUSAL;
    CHECK_STR(name, "valid");
    return STK_PADDING_VALID;
}

static stk_conv_options conv_options(const golden *c, bool dilations)
{
    stk_conv_options o = stk_conv_options_defaults();
    o.padding = padding_of(c);
    golden_ints(c, "strides", o.stride, 3);
    if (dilations) golden_ints(c, "dilations", o.dilation, 3);
    return o;
}

static void build_conv(golden *c)
{
    stk_conv_options o = conv_options(c, true);
    if (!strcmp(c->op, "conv2d")) o.groups = (int64_t)golden_real(c, "groups");
    result(c, stk_g_conv(c->g, golden_input(c, "x"), golden_input(c, "w"), &o));
}

static void build_depthwise(golden *c)
{
    stk_conv_options o = conv_options(c, true);
    result(c, stk_g_depthwise_conv(c->g, golden_input(c, "x"), golden_input(c, "w"), &o));
}

static void build_conv_transpose(golden *c)
{
    stk_conv_options o = conv_options(c, false);
    int64_t size[2] = {0};
    golden_ints(c, "output_size", size, 2);
    stk_val y = stk_g_conv_transpose(c->g, golden_input(c, "x"), golden_input(c, "w"), &o);
    for (int32_t i = 0; i < 2; i++) CHECK_EQ_I64(stk_g_dim(c->g, y, 1 + i), size[i]);
    result(c, y);
}

static void build_pool(golden *c)
{
    stk_pool_options o = stk_pool_options_defaults();
    o.padding = padding_of(c);
    golden_ints(c, "window", o.window, 3);
    golden_ints(c, "strides", o.stride, 3);
    stk_val x = golden_input(c, "x");
    result(c, !strcmp(c->op, "max_pool2d") ? stk_g_max_pool(c->g, x, &o)
                                           : stk_g_avg_pool(c->g, x, &o));
}

/* ---- norms and losses -------------------------------------------------------------------------------------- */

/* momentum * old + (1 - momentum) * now */
static stk_val moving(golden *c, const char *old, stk_val now)
{
    double momentum = golden_real(c, "momentum");
    return stk_g_add(c->g, stk_g_mul(c->g, golden_scalar(c, momentum), golden_input(c, old)),
                     stk_g_mul(c->g, golden_scalar(c, 1 - momentum), now));
}

static void build_batch_norm(golden *c)
{
    stk_val x = golden_input(c, "x"), gamma = golden_input(c, "gamma"),
            beta = golden_input(c, "beta"), mean = 0, variance = 0;
    double eps = golden_real(c, "epsilon");
    if (!golden_flag(c, "training")) {
        result(c, stk_g_batch_norm_infer(c->g, x, gamma, beta, golden_input(c, "mean"),
                                         golden_input(c, "variance"), -1, eps));
        return;
    }
    result(c, stk_g_batch_norm(c->g, x, gamma, beta, -1, eps, &mean, &variance));
    golden_aside(c, "new_mean", moving(c, "mean", mean));
    golden_aside(c, "new_variance", moving(c, "variance", variance));
}

static void build_layer_norm(golden *c)
{
    CHECK_NEAR(golden_real(c, "axis"), -1, 0);
    result(c, stk_g_layer_norm(c->g, golden_input(c, "x"), golden_input(c, "gamma"),
                               golden_input(c, "beta"), 1, golden_real(c, "epsilon")));
}

static void build_group_norm(golden *c)
{
    result(c, stk_g_group_norm(c->g, golden_input(c, "x"), golden_input(c, "gamma"),
                               golden_input(c, "beta"), (int32_t)golden_real(c, "groups"),
                               golden_real(c, "epsilon")));
}

static void build_softmax_ce(golden *c)
{
    stk_val logits = golden_input(c, "logits"), target = golden_input(c, "target");
    double smoothing = golden_real(c, "smoothing");
    bool sparse = golden_flag(c, "sparse");
    if (sparse && smoothing != 0) {
        target = stk_g_one_hot(c->g, target, stk_g_dim(c->g, logits, -1), -1, STK_F32, 1, 0);
        sparse = false;
    }
    result(c, sparse ? stk_g_sparse_softmax_cross_entropy(c->g, logits, target)
                     : stk_g_softmax_cross_entropy(c->g, logits, target, smoothing));
}

static void build_sigmoid_ce(golden *c)
{
    double smoothing = golden_real(c, "smoothing");
    stk_val target =
        stk_g_add(c->g, stk_g_mul(c->g, golden_input(c, "target"), golden_scalar(c, 1 - smoothing)),
                  golden_scalar(c, 0.5 * smoothing));
    result(c, stk_g_sigmoid_cross_entropy(c->g, golden_input(c, "logits"), target));
}

/* ---- recurrent layers: fused and composed ------------------------------------------------------------------- */

typedef stk_rnn_result (*rnn_builder)(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                      const stk_rnn_options *options);

static void build_rnn(golden *c, rnn_builder build, bool lstm)
{
    stk_rnn_options o = stk_rnn_options_defaults();
    if (lstm) o.reverse = golden_flag(c, "go_backwards");
    if (!lstm) o.reset_after = golden_flag(c, "reset_after");
    stk_rnn_result y = build(c->g, golden_input(c, "x"), golden_input(c, "kernel"),
                             golden_input(c, "recurrent"), golden_input(c, "bias"), &o);
    CHECK_NEAR(golden_real(c, "units"), (double)stk_g_dim(c->g, y.h, 1), 0);
    golden_result(c, "sequence", o.reverse ? stk_g_reverse(c->g, y.sequence, 1) : y.sequence);
    golden_result(c, "state_h", y.h);
    if (lstm) golden_result(c, "state_c", y.c);
}
static void build_lstm(golden *c) { build_rnn(c, stk_g_lstm, true); }
static void build_gru(golden *c) { build_rnn(c, stk_g_gru, false); }
static void build_lstm_composed(golden *c) { build_rnn(c, stk_g_lstm_composed, true); }
static void build_gru_composed(golden *c) { build_rnn(c, stk_g_gru_composed, false); }

/* ---- elementwise, sums, lookups ------------------------------------------------------------------------------- */

#define UNARY(name, expression)                                                                    \
    static void build_##name(golden *c)                                                            \
    {                                                                                              \
        stk_graph *g = c->g;                                                                       \
        stk_val x = golden_input(c, "x");                                                          \
        result(c, expression);                                                                     \
    }
UNARY(round, stk_g_round(g, x))
UNARY(softplus, stk_g_softplus(g, x))
UNARY(log_sigmoid, stk_g_log_sigmoid(g, x))
UNARY(gelu_erf, stk_g_gelu(g, x, false))
UNARY(gelu_tanh, stk_g_gelu(g, x, true))
UNARY(elu, stk_g_elu(g, x, 1))
UNARY(selu, stk_g_selu(g, x))
UNARY(floor_div, stk_g_floordiv(g, x, golden_input(c, "other")))
UNARY(floor_mod, stk_g_mod(g, x, golden_input(c, "other")))
UNARY(rgb_to_hsv, stk_g_image_rgb_to_hsv(g, x))
UNARY(rgb_to_grayscale, stk_g_image_rgb_to_grayscale(g, x))
UNARY(adjust_hue, stk_g_image_adjust_hue(g, x, golden_scalar(c, golden_real(c, "delta"))))
UNARY(adjust_brightness,
      stk_g_image_adjust_brightness(g, x, golden_scalar(c, golden_real(c, "delta"))))
UNARY(adjust_saturation,
      stk_g_image_adjust_saturation(g, x, golden_scalar(c, golden_real(c, "factor"))))
UNARY(adjust_contrast,
      stk_g_image_adjust_contrast(g, x, golden_scalar(c, golden_real(c, "factor"))))
UNARY(cumsum, stk_g_cumsum(g, x, (int32_t)golden_real(c, "axis"), golden_flag(c, "exclusive"),
                           golden_flag(c, "reverse")))

static void build_reduce_max(golden *c)
{
    int64_t axis = -1;
    golden_ints(c, "axes", &axis, 1);
    result(c, stk_g_reduce_max(c->g, golden_input(c, "x"), 1, (int32_t[]){(int32_t)axis}, false));
}

static void build_embedding(golden *c)
{
    result(c, stk_g_gather(c->g, golden_input(c, "table"), golden_input(c, "index"), 0));
}

/* ---- images --------------------------------------------------------------------------------------------------- */

static void build_resize(golden *c)
{
    int64_t size[2] = {0};
    stk_resize_kind kind = STK_RESIZE_COUNT;
    golden_ints(c, "size", size, 2);
    CHECK(golden_flag(c, "half_pixel_centers"));
    CHECK(stk_resize_parse(golden_text(c, "method"), &kind));
    result(c, stk_g_image_resize(c->g, golden_input(c, "x"), size[0], size[1], kind,
                                 golden_flag(c, "antialias")));
}

static void build_affine(golden *c)
{
    stk_project_options o = stk_project_options_defaults();
    o.bilinear = !strcmp(golden_text(c, "interpolation"), "bilinear");
    o.value = golden_real(c, "fill_value");
    CHECK(stk_image_fill_parse(golden_text(c, "fill_mode"), &o.fill));
    result(c, stk_g_image_project(c->g, golden_input(c, "x"), golden_input(c, "transform"), &o));
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

typedef struct kind {
    const char *op;
    void (*build)(golden *c);
    void (*run)(golden *c); /* instead of build: runs and compares by itself */
    int used;
} kind;

static kind kinds[] = {
    {"conv1d", build_conv, NULL, 0},
    {"conv2d", build_conv, NULL, 0},
    {"conv3d", build_conv, NULL, 0},
    {"depthwise_conv2d", build_depthwise, NULL, 0},
    {"conv2d_transpose", build_conv_transpose, NULL, 0},
    {"max_pool2d", build_pool, NULL, 0},
    {"avg_pool2d", build_pool, NULL, 0},
    {"batch_norm", build_batch_norm, NULL, 0},
    {"layer_norm", build_layer_norm, NULL, 0},
    {"group_norm", build_group_norm, NULL, 0},
    {"softmax_cross_entropy", build_softmax_ce, NULL, 0},
    {"sigmoid_cross_entropy", build_sigmoid_ce, NULL, 0},
    {"lstm", build_lstm, NULL, 0},
    {"lstm", build_lstm_composed, NULL, 0},
    {"gru", build_gru, NULL, 0},
    {"gru", build_gru_composed, NULL, 0},
    {"round", build_round, NULL, 0},
    {"floor_mod", build_floor_mod, NULL, 0},
    {"floor_div", build_floor_div, NULL, 0},
    {"softplus", build_softplus, NULL, 0},
    {"log_sigmoid", build_log_sigmoid, NULL, 0},
    {"gelu_erf", build_gelu_erf, NULL, 0},
    {"gelu_tanh", build_gelu_tanh, NULL, 0},
    {"elu", build_elu, NULL, 0},
    {"selu", build_selu, NULL, 0},
    {"cumsum", build_cumsum, NULL, 0},
    {"embedding", build_embedding, NULL, 0},
    {"reduce_max", build_reduce_max, NULL, 0},
    {"resize", build_resize, NULL, 0},
    {"affine", build_affine, NULL, 0},
    {"adjust_hue", build_adjust_hue, NULL, 0},
    {"adjust_saturation", build_adjust_saturation, NULL, 0},
    {"adjust_contrast", build_adjust_contrast, NULL, 0},
    {"adjust_brightness", build_adjust_brightness, NULL, 0},
    {"rgb_to_hsv", build_rgb_to_hsv, NULL, 0},
    {"rgb_to_grayscale", build_rgb_to_grayscale, NULL, 0},
    {"optimizer", NULL, run_optimizer, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void run_kind(golden *c, kind *k)
{
    k->used++;
    if (k->run) {
        k->run(c);
        return;
    }
    k->build(c);
    golden_add_gradients(c);
    for (int ref = 0; ref < 2; ref++) golden_run(c, ref);
}

/* Each row that fits gets the file anew. */
static int check_file(const char *path)
{
    int rows = 0;
    for (int i = 0; i < KINDS; i++) {
        golden c;
        if (golden_open(path, &c) && !strcmp(c.op, kinds[i].op)) {
            rows++;
            run_kind(&c, &kinds[i]);
        }
        golden_close(&c);
    }
    if (!rows) printf("%s: its operation is in no row of test_golden.c\n", path);
    CHECK(rows > 0);
    return rows;
}

TEST(golden_files)
{
    const char *folder = STK_TEST_DIR "/golden";
    int files = 0;
    DIR *list = opendir(folder);
    REQUIRE(CHECK(list != NULL));
    for (const struct dirent *entry; (entry = readdir(list));) {
        char path[1024];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".npz") || !strcmp(entry->d_name, "image.npz")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_file(path);
        files++;
    }
    closedir(list);
    CHECK(files >= 90);
    for (int i = 0; i < KINDS; i++) {
        if (!kinds[i].used) printf("no golden file for '%s'\n", kinds[i].op);
        CHECK(kinds[i].used > 0);
    }
}

TEST_MAIN()
