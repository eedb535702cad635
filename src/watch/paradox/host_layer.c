/* host_layer.c - experiment 6a: an activation written as a function of the host, in the middle of a convolutional net. */
#include "watch/paradox/experiments.h"

#include "base/memory.h"
#include "base/status.h"
#include "stoker/nn.h"

#include <math.h>

static const char *const LAYERS[] = {
    "Input(shape=(24, 24, 3))", "Conv2D(16, 3)", "Conv2D(16, 3, strides=2)",
    "GlobalAveragePooling2D()", "Dense(10)",     NULL};
enum { BATCH = 32, EDGE = 24, WIDTH = EDGE * EDGE * 3, BEHIND = 2 };

/* ---- x / (1 + exp(-x)), one number after the other ---------------------------------------------------------------- */

static void swish(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                  stk_tensor *const *out)
{
    (void)context, (void)nin, (void)nout;
    const float *x = in[0]->data;
    float *y = out[0]->data;
    for (int64_t i = 0, n = stk_tensor_count(in[0]); i < n; i++) y[i] = x[i] / (1 + expf(-x[i]));
}

static void swish_gradient(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                           stk_tensor *const *out)
{
    (void)context, (void)nin, (void)nout;
    const float *x = in[0]->data, *dy = in[1]->data;
    float *dx = out[0]->data;
    for (int64_t i = 0, n = stk_tensor_count(in[0]); i < n; i++) {
        float s = 1 / (1 + expf(-x[i]));
        dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
    }
}

static void build_host(stk_custom_call *c, void *context)
{
    static const stk_host host = {.name = "swish", .run = swish, .gradient = swish_gradient};
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    (void)context;
    stk_host_result as_input = {.dtype = STK_F32, .rank = stk_g_rank(g, x)};
    for (int32_t i = 0; i < as_input.rank; i++) as_input.shape[i] = stk_g_dim(g, x, i);
    stk_custom_output(c, 0, stk_g_host(g, &host, 1, &x, 1, &as_input));
}

static void build_operation(stk_custom_call *c, void *context)
{
    (void)context;
    stk_custom_output(c, 0, stk_g_silu(stk_custom_graph(c), stk_custom_input(c, 0)));
}

stk_status stk_paradox_host_layer(stk_device *device, bool cured, stk_contender *out,
                                  stk_error *err)
{
    enum { ROWS = 512 };
    stk_custom layer = {.class_name = "Swish", .build = cured ? build_operation : build_host};
    stk_training what = {
        .layers = LAYERS, .custom = &layer, .custom_at = BEHIND, .batch = BATCH, .units = 1};
    stk_tensor *flat = NULL;
    stk_status status = stk_paradox_rows(ROWS, WIDTH, &flat, &what.y, err);
    if (status == STK_OK)
        status = stk_tensor_reshape(flat, 4, (int64_t[]){ROWS, EDGE, EDGE, 3}, &what.x, err);
    stk_tensor_release(flat);
    if (status == STK_OK) return stk_training_open(device, &what, out, err);
    stk_tensor_release(what.y);
    return status;
}
