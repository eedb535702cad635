/* The usual kinds of networks train on opencl:0 as a whole: no operation is left to the CPU, the losses are the CPU's, two runs have the same
 * bits. And a layer that only the host has is listed before the training begins. Without an OpenCL device nothing is checked. */
#include "problem.h"

#include "stoker/calibrate.h"
#include "stoker/placement.h"

#include <math.h>

static stk_sym apply(stk_model *m, const char *layer, stk_sym x)
{
    return stk_m_apply(m, layer, 1, &x);
}

static void add_lines(stk_model *m, const char *lines)
{
    char text[512], *rest = NULL;
    snprintf(text, sizeof text, "%s", lines);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        stk_model_add(m, line);
}

static void mlp(stk_model *m)
{
    add_lines(m, "Input(shape=(4, 8, 2))\nFlatten()\nDense(32, activation=relu)\nDropout(0.2)\n"
                 "Dense(16, activation=gelu)\nDense(4)");
}

static void cnn(stk_model *m)
{
    add_lines(m, "Input(shape=(4, 8, 2))\nConv2D(8, 3, activation=relu)\nMaxPooling2D()\n"
                 "DepthwiseConv2D(2, padding=same)\nFlatten()\nDense(4)");
}

static void resnet(stk_model *m)
{
    stk_sym x = stk_m_input(m, "x", STK_F32, 3, (int64_t[]){4, 8, 2});
    x = apply(m, "Conv2D(8, 3, padding=same, use_bias=false)", x);
    stk_sym y = apply(m, "Activation(relu)", apply(m, "BatchNormalization()", x));
    y = apply(m, "Conv2D(8, 3, padding=same, use_bias=false)", y);
    y = apply(m, "BatchNormalization()", y);
    x = apply(m, "Activation(relu)", stk_m_apply(m, "Add()", 2, (stk_sym[]){x, y}));
    x = apply(m, "Conv2D(12, 3, strides=2, padding=same, activation=relu)", x);
    stk_m_output(m, apply(m, "Dense(4)", apply(m, "GlobalAveragePooling2D()", x)));
}

static void lstm(stk_model *m)
{
    add_lines(m, "Input(shape=(4, 8, 2))\nReshape((4, 16))\nLSTM(8, return_sequences=true)\n"
                 "Bidirectional(GRU(6))\nDense(4)");
}

static void transformer(stk_model *m)
{
    stk_sym x = stk_m_input(m, "x", STK_F32, 3, (int64_t[]){4, 8, 2});
    x = apply(m, "Dense(16)", apply(m, "Reshape((4, 16))", x));
    stk_sym y = apply(m, "LayerNormalization()", x);
    y = stk_m_apply(m, "MultiHeadAttention(num_heads=2, key_dim=8, dropout=0.1)", 2,
                    (stk_sym[]){y, y});
    x = stk_m_apply(m, "Add()", 2, (stk_sym[]){x, y});
    y = apply(m, "Dense(32, activation=gelu)", apply(m, "LayerNormalization()", x));
    x = stk_m_apply(m, "Add()", 2, (stk_sym[]){x, apply(m, "Dense(16)", y)});
    stk_m_output(m, apply(m, "Dense(4)", apply(m, "GlobalAveragePooling1D()", x)));
}

/* ---- training -------------------------------------------------------------------------------------------- */

enum { ROWS = 48, EPOCHS = 4 };

typedef struct outcome {
    int32_t islands;
    double loss[EPOCHS];
} outcome;

static bool has_opencl(void)
{
    stk_error err;
    stk_device *d = NULL;
    bool has = stk_device_open("opencl:0", 0, &d, &err) == STK_OK;
    stk_device_release(d);
    if (!has) printf("no OpenCL device, nothing checked: %s\n", err.message);
    return has;
}

typedef struct patient {
    stk_model *model;
    stk_trainer *trainer;
    stk_device *device;
    stk_tensor *x, *y;
    stk_train_data data;
    stk_program *program;
} patient;

static bool prepare(patient *p, const char *device, void (*make)(stk_model *))
{
    stk_error err;
    stk_trainer_options how = usual_options();
    *p = (patient){0};
    CHECK_OK(stk_model_new("test", &p->model, &err));
    make(p->model);
    if (!CHECK_OK(stk_model_build(p->model, 0, NULL, &err))) return false;
    make_clusters(ROWS, 64, 4, &p->x, &p->y);
    p->x->rank = 4; /* the same numbers as small pictures */
    for (int i = 1, shape[] = {ROWS, 4, 8, 2}; i < 4; i++) p->x->shape[i] = shape[i];
    p->x->stride[0] = 64, p->x->stride[1] = 16, p->x->stride[2] = 2, p->x->stride[3] = 1;
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    CHECK_OK(stk_device_open(device, 0, &p->device, &err));
    how.device = p->device;
    p->data = (stk_train_data){.nx = 1, .x = &p->x, .ny = 1, .y = &p->y};
    return CHECK_OK(stk_trainer_new(p->model, &how, &p->trainer, &err)) &&
           CHECK_OK(stk_trainer_compile(p->trainer, &p->data, 16, &p->program, &err));
}

static void dismiss(patient *p)
{
    stk_trainer_release(p->trainer);
    stk_model_release(p->model);
    stk_tensor_release(p->x);
    stk_tensor_release(p->y);
    stk_device_release(p->device);
}

static void train(const char *device, void (*make)(stk_model *), outcome *out)
{
    patient p;
    stk_error err;
    stk_history *h = NULL;
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = EPOCHS;
    fit.batch = 16;
    *out = (outcome){.islands = -1};
    if (prepare(&p, device, make)) {
        out->islands = stk_program_islands(p.program, 0, NULL);
        CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err));
    }
    for (int i = 0; h && i < EPOCHS; i++) out->loss[i] = stk_history_value(h, "loss", i);
    stk_history_release(h);
    dismiss(&p);
}

static void whole(const char *title, void (*make)(stk_model *))
{
    outcome home, away, again;
    if (!has_opencl()) return;
    train("cpu:0", make, &home);
    train("opencl:0", make, &away);
    train("opencl:0", make, &again);
    CHECK_EQ_I64(away.islands, 0);
    for (int i = 0; i < EPOCHS; i++)
        CHECK_MSG(fabs(away.loss[i] - home.loss[i]) < 2e-3 * (1 + fabs(home.loss[i])),
                  "%s, epoch %d: loss %.6f, on the CPU %.6f", title, i, away.loss[i], home.loss[i]);
    CHECK_MSG(away.loss[EPOCHS - 1] < 0.9 * away.loss[0], "%s learns nothing: %g, then %g", title,
              away.loss[0], away.loss[EPOCHS - 1]);
    CHECK(!memcmp(&away, &again, sizeof away)); /* the same bits */
}

TEST(a_dense_net_is_whole) { whole("mlp", mlp); }
TEST(a_convolutional_net_is_whole) { whole("cnn", cnn); }
TEST(a_residual_net_is_whole) { whole("resnet", resnet); }
TEST(a_recurrent_net_is_whole) { whole("lstm", lstm); }
TEST(a_transformer_is_whole) { whole("transformer", transformer); }

/* ---- a layer of the host --------------------------------------------------------------------------------- */

static void cube(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                 stk_tensor *const *out)
{
    const float *x = in[0]->data;
    (void)context, (void)nin, (void)nout;
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++)
        ((float *)out[0]->data)[i] = x[i] * x[i] * x[i];
}

static void cube_gradient(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                          stk_tensor *const *out)
{
    const float *x = in[0]->data, *d = in[1]->data;
    (void)context, (void)nin, (void)nout;
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++)
        ((float *)out[0]->data)[i] = 3 * x[i] * x[i] * d[i];
}

static void build_cube(stk_custom_call *c, void *context)
{
    static const stk_host host = {.name = "cube", .run = cube, .gradient = cube_gradient};
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    stk_host_result like = {.dtype = STK_F32, .rank = 2};
    (void)context;
    for (int32_t i = 0; i < 2; i++) like.shape[i] = stk_g_dim(g, x, i);
    stk_custom_output(c, 0, stk_g_host(g, &host, 1, &x, 1, &like));
}

static void with_a_cube(stk_model *m)
{
    add_lines(m, "Input(shape=(4, 8, 2))\nFlatten()\nDense(8)");
    stk_model_add_custom(m, &(stk_custom){.class_name = "Cube", .build = build_cube});
    stk_model_add(m, "Dense(4)");
}

/* Forward and backward, with everything that one wants to know before the first step. */
TEST(a_layer_of_the_host_is_listed_before_the_start)
{
    patient p;
    stk_island row[4];
    stk_calibration c = {.launch = 1e-5, .run = 1e-5, .crossing = {{1024, 1 << 20}, {1e-4, 1e-2}}};
    stk_calibration host = {.launch = 1e-6, .run = 1e-6};
    outcome home, away;
    if (!has_opencl()) return;
    REQUIRE(prepare(&p, "opencl:0", with_a_cube));
    REQUIRE(CHECK_EQ_I64(stk_program_islands(p.program, 4, row), 2));
    for (int i = 0; i < 2; i++) {
        CHECK_STR(row[i].op, "host");
        CHECK_CONTAINS(row[i].name, "cube");
        CHECK_STR(row[i].shape, "float32[16,8]");
        CHECK_STR(row[i].reason, "a function of the host");
        CHECK_EQ_I64(row[i].bytes_down, (i + 1) * 16 * 8 * 4);
        CHECK_EQ_I64(row[i].bytes_up, 16 * 8 * 4);
        CHECK(stk_island_predict(&row[i], true, &c) >= 1e-4);
    }
    double both = stk_island_predict(&row[0], true, &c) + stk_island_predict(&row[1], true, &c);
    CHECK_NEAR(stk_program_predict_islands(p.program, &c, NULL), both, 1e-12);
    CHECK(stk_program_predict_islands(p.program, &c, &host) >= both);
    dismiss(&p);
    train("cpu:0", with_a_cube, &home);
    train("opencl:0", with_a_cube, &away);
    for (int i = 0; i < EPOCHS; i++) CHECK_NEAR(away.loss[i], home.loss[i], 2e-3);
}

TEST_MAIN()
