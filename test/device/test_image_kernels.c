/* Image kernels: each against its reference, on every instruction set, whole and cut into parts; transposes against
 * their forward problem. */
#include "device/launch.h"

#include "device/cpu/vec/vec.h"

static uint64_t seed = 9;

static float *floats(int64_t n)
{
    float *x = stk_malloc((size_t)(n + 16) * sizeof *x);
    for (int64_t i = 0; i < n + 16; i++) x[i] = (float)launch_uniform(&seed, -1, 1);
    return x;
}

static uint8_t *bytes(int64_t n)
{
    uint8_t *x = stk_malloc((size_t)n + 16);
    for (int64_t i = 0; i < n + 16; i++) x[i] = (uint8_t)launch_random(&seed);
    return x;
}

static const char *const isas[] = {"base", "avx2", "avx512"};

/* The fast implementation in several cuts against ref; the element behind the end must stay. */
static void check_floats(stk_kernel kernel, const char *fast, const void *params, void **arg,
                         int32_t args, int64_t n, double tolerance)
{
    static const int32_t cuts[] = {1, 2, 3, 7, 0};
    float *want = floats(n), *got = floats(n), *first = floats(n);
    arg[args - 1] = want;
    LAUNCH(launch_device(1), kernel, "ref", params, arg, args, 1);
    for (int isa = 0; isa < 3; isa++) {
        if (!stk_vec_find(isas[isa])) continue;
        stk_vec_use(stk_vec_find(isas[isa]));
        for (int i = 0; i < 5; i++) {
            float behind = got[n];
            arg[args - 1] = i ? got : first;
            LAUNCH(launch_device(i % 2 + 1), kernel, fast, params, arg, args, cuts[i]);
            CHECK_NEAR_F32(i ? got : first, want, n, tolerance, tolerance);
            if (i)
                CHECK_MSG(!memcmp(got, first, (size_t)n * sizeof *got), "other bits in %d parts",
                          (int)cuts[i]);
            CHECK(got[n] == behind);
        }
    }
    stk_vec_use(NULL);
    stk_free(want);
    stk_free(got);
    stk_free(first);
}

TEST(resize_of_every_kind_and_channel_count)
{
    static const int64_t channels[] = {1, 2, 3, 4, 9},
                         sizes[][4] = {{5, 7, 11, 4}, {9, 8, 3, 17}, {1, 1, 3, 2}, {13, 6, 1, 1}};
    for (int32_t kind = 0; kind < STK_TAPS_COUNT; kind++)
        for (int c = 0; c < 5; c++)
            for (int s = 0; s < 4; s++)
                for (int32_t transposed = 0; transposed < 2; transposed++) {
                    const int64_t *d = sizes[s];
                    stk_resize_params p = {.batch = 2,
                                           .in_h = d[0],
                                           .in_w = d[1],
                                           .out_h = d[2],
                                           .out_w = d[3],
                                           .channels = channels[c],
                                           .kind = kind,
                                           .antialias = c % 2,
                                           .transposed = transposed,
                                           .in_dtype = STK_F32,
                                           .out_dtype = STK_F32};
                    float *x = floats(2 * d[0] * d[1] * p.channels);
                    void *arg[] = {x, NULL};
                    check_floats(STK_K_RESIZE, "vec", &p, arg, 2, 2 * d[2] * d[3] * p.channels,
                                 1e-5);
                    stk_free(x);
                    if (transposed || kind == STK_TAPS_NEAREST) continue;
                    uint8_t *b = bytes(2 * d[0] * d[1] * p.channels);
                    p.in_dtype = STK_U8;
                    arg[0] = b;
                    check_floats(STK_K_RESIZE, "vec", &p, arg, 2, 2 * d[2] * d[3] * p.channels,
                                 1e-4);
                    stk_free(b);
                }
}

/* <A x, y> = <x, A' y> for every kind: the gradient is the transpose, borders included. */
TEST(resize_and_its_gradient_are_transposes)
{
    for (int32_t kind = 0; kind < STK_TAPS_COUNT; kind++)
        for (int32_t smooth = 0; smooth < 2; smooth++) {
            stk_resize_params p = {.batch = 1,
                                   .in_h = 9,
                                   .in_w = 4,
                                   .out_h = 5,
                                   .out_w = 11,
                                   .channels = 2,
                                   .kind = kind,
                                   .antialias = smooth,
                                   .in_dtype = STK_F32,
                                   .out_dtype = STK_F32};
            stk_resize_params back = p;
            back.in_h = p.out_h, back.in_w = p.out_w, back.out_h = p.in_h, back.out_w = p.in_w;
            back.transposed = 1;
            float *x = floats(72), *y = floats(110), *ax = floats(110), *ay = floats(72);
            void *arg[] = {x, ax}, *arg_back[] = {y, ay};
            LAUNCH(launch_device(1), STK_K_RESIZE, "vec", &p, arg, 2, 1);
            LAUNCH(launch_device(1), STK_K_RESIZE, "vec", &back, arg_back, 2, 1);
            double left = 0, right = 0;
            for (int i = 0; i < 110; i++) left += (double)ax[i] * (double)y[i];
            for (int i = 0; i < 72; i++) right += (double)x[i] * (double)ay[i];
            CHECK_NEAR(left, right, 1e-4);
            float *all[] = {x, y, ax, ay};
            for (int i = 0; i < 4; i++) stk_free(all[i]);
        }
}

TEST(projections_and_their_transposes)
{
    static const float transforms[] = {0.9f,  -0.4f, 1.3f,  0.4f,  0.9f,     -2.1f, 0.01f,  -0.02f,
                                       1.5f,  0.2f,  -3.7f, -0.1f, 0.6f,     9.4f,  -0.25f, 0,
                                       1e30f, 0,     NAN,   0,     INFINITY, 0,     0,      0};
    for (int32_t fill = 0; fill < STK_OUTSIDE_COUNT; fill++)
        for (int32_t bilinear = 0; bilinear < 2; bilinear++)
            for (int64_t channels = 1; channels < 6; channels += 2) {
                stk_project_params p = {.batch = 3,
                                        .in_h = 6,
                                        .in_w = 5,
                                        .out_h = 7,
                                        .out_w = 8,
                                        .channels = channels,
                                        .dtype = STK_F32,
                                        .out_dtype = STK_F32,
                                        .transform = STK_F32,
                                        .bilinear = bilinear,
                                        .fill = fill,
                                        .value = 0.5};
                float *x = floats(3 * 6 * 5 * channels), *dy = floats(3 * 7 * 8 * channels);
                void *arg[] = {x, (void *)(uintptr_t)transforms, NULL};
                check_floats(STK_K_PROJECT, "own", &p, arg, 3, 3 * 7 * 8 * channels, 1e-5);
                stk_project_params back = p;
                back.in_h = 7, back.in_w = 8, back.out_h = 6, back.out_w = 5;
                arg[0] = dy;
                check_floats(STK_K_PROJECT_GRAD, "own", &back, arg, 3, 3 * 6 * 5 * channels, 1e-4);
                stk_free(x);
                stk_free(dy);
            }
}

TEST_MAIN()
