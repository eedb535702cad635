/* What passes do to an image net's gradients: cheap values are computed again, zeros around images become padding. The numbers must be
 * those of the plain graph, on any number of threads. */
#include "check.h"

#include "stoker/graph.h"
#include "stoker/nn.h"

#include <math.h>
#include <string.h>

enum { IMAGES = 8, SIZE = 65, CHANNELS = 8, VALUES = 5 };

static const char *const names[VALUES] = {"x", "w", "gamma", "beta", "deep"};

/* conv, norm, silu, squeeze and excite, zeros, strided depthwise conv; gradients in everything. The norm's result has more than the
 * megabyte from which on copies pay. */
static stk_graph *net(void)
{
    static const int64_t x_shape[] = {IMAGES, SIZE, SIZE, 3}, w_shape[] = {3, 3, 3, CHANNELS},
                         c_shape[] = {CHANNELS}, deep_shape[] = {3, 3, CHANNELS, 1};
    stk_error err;
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val v[VALUES] = {stk_g_input(g, names[0], STK_F32, 4, x_shape),
                         stk_g_input(g, names[1], STK_F32, 4, w_shape),
                         stk_g_input(g, names[2], STK_F32, 1, c_shape),
                         stk_g_input(g, names[3], STK_F32, 1, c_shape),
                         stk_g_input(g, names[4], STK_F32, 4, deep_shape)};
    stk_conv_options same = stk_conv_options_defaults(), by_two = same;
    same.padding = STK_PADDING_SAME;
    by_two.stride[0] = by_two.stride[1] = 2;
    stk_val z = stk_g_conv(g, v[0], v[1], &same);
    stk_val y = stk_g_silu(g, stk_g_batch_norm(g, z, v[2], v[3], -1, 1e-3, NULL, NULL));
    stk_val gate = stk_g_sigmoid(g, stk_g_mean(g, y, 2, (int32_t[]){1, 2}, true));
    stk_val padded =
        stk_g_pad(g, stk_g_mul(g, y, gate), (int64_t[]){0, 1, 0, 0}, (int64_t[]){0, 0, 1, 0}, 0);
    stk_val out = stk_g_depthwise_conv(g, padded, v[4], &by_two), d[VALUES];
    stk_val loss = stk_g_sum_all(g, stk_g_square(g, out));
    stk_g_gradients(g, loss, VALUES, v, d);
    for (int i = 0; i < VALUES; i++) stk_g_output(g, names[i], d[i]);
    return g;
}

static stk_tensor *some(int which)
{
    static const int64_t shape[VALUES][4] = {
        {IMAGES, SIZE, SIZE, 3}, {3, 3, 3, CHANNELS}, {CHANNELS}, {CHANNELS}, {3, 3, CHANNELS, 1}};
    static const int32_t rank[VALUES] = {4, 4, 1, 1, 4};
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, rank[which], shape[which], &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++)
        CHECK_OK(
            stk_tensor_set(t, i, sin((double)(i * 7 % 1013) + which) / 2 + (which == 2), &err));
    return t;
}

static void run(stk_graph *g, bool plain, int32_t threads, stk_tensor **out, char **text,
                int64_t *arena)
{
    stk_error err;
    stk_program *p = NULL;
    stk_program_stats stats = {0};
    stk_program_options o = stk_program_options_defaults();
    o.no_fuse = plain;
    o.threads = threads;
    o.deterministic = true;
    if (!CHECK_OK(stk_program_new(g, &o, &p, &err))) return;
    for (int i = 0; i < VALUES; i++) {
        stk_tensor *t = some(i);
        CHECK_OK(stk_program_feed(p, names[i], t, &err));
        stk_tensor_release(t);
    }
    CHECK_OK(stk_program_run(p, 1, &err));
    for (int i = 0; i < VALUES; i++) CHECK_OK(stk_program_read(p, names[i], &out[i], &err));
    stk_program_describe(p, &stats);
    *arena = stats.arena_bytes;
    CHECK_OK(stk_program_dump(p, text, &err));
    stk_program_release(p);
}

static double largest(const stk_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < stk_tensor_count(t); i++) most = fmax(most, fabs(stk_tensor_at(t, i)));
    return most;
}

TEST(gradients_are_those_of_the_plain_graph)
{
    stk_graph *g = net();
    stk_tensor *want[VALUES] = {0}, *got[VALUES] = {0}, *alone[VALUES] = {0};
    char *text[3] = {0};
    int64_t arena[3] = {0};
    run(g, true, 2, want, &text[0], &arena[0]);
    run(g, false, 2, got, &text[1], &arena[1]);
    run(g, false, 1, alone, &text[2], &arena[2]);
    for (int v = 0; v < VALUES; v++) {
        const double scale = largest(want[v]);
        CHECK(scale > 0);
        for (int64_t i = 0; i < stk_tensor_count(want[v]); i++)
            if (!CHECK_NEAR(stk_tensor_at(got[v], i), stk_tensor_at(want[v], i), 1e-4 * scale))
                break;
        CHECK(!memcmp(got[v]->data, alone[v]->data,
                      (size_t)stk_tensor_count(got[v]) * sizeof(float)));
    }
    CHECK(strstr(text[0], " pad ") && strstr(text[0], " slice "));
    CHECK(!strstr(text[1], " pad ") && !strstr(text[1], " slice "));
    CHECK(2 * arena[1] < arena[0]);
    for (int v = 0; v < VALUES; v++) {
        stk_tensor_release(want[v]);
        stk_tensor_release(got[v]);
        stk_tensor_release(alone[v]);
    }
    for (int i = 0; i < 3; i++) stk_text_free(text[i]);
    stk_graph_release(g);
}

TEST_MAIN()
