/* Pooling kernels against the reference: windows at the edges, overlapping, with gaps, ties, NaN, every cut. */
#include "problem.h"

#include "base/convert.h"

static const stk_kernel kernels[] = {STK_K_MAX_POOL, STK_K_MAX_POOL_GRAD, STK_K_MAX_POOL_PICK,
                                     STK_K_AVG_POOL, STK_K_AVG_POOL_GRAD};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

typedef struct pool_case {
    const char *name;
    int64_t n, c, in[3], window[3], stride[3], low[3], high[3];
} pool_case;

/* clang-format off */
static const pool_case cases[] = {
    {"2x2", 3, 32, {1, 6, 8}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
    {"2x2 rest left over", 2, 16, {1, 7, 9}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
    {"2x2 same", 2, 5, {1, 7, 9}, {1, 2, 2}, {1, 2, 2}, {0}, {0, 1, 1}},
    {"3x3 overlapping", 2, 8, {1, 9, 8}, {1, 3, 3}, {1, 2, 2}, {0}, {0}},
    {"3x3 same", 2, 13, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {"gaps", 2, 8, {1, 9, 11}, {1, 2, 2}, {1, 3, 4}, {0}, {0}},
    {"large window", 2, 9, {1, 10, 10}, {1, 5, 5}, {1, 5, 5}, {0}, {0}},
    {"large overlapping", 1, 9, {1, 10, 11}, {1, 5, 4}, {1, 2, 3}, {0, 2, 1}, {0, 2, 1}},
    {"five taps", 2, 8, {1, 1, 15}, {1, 1, 5}, {1, 1, 5}, {0}, {0}},
    {"seven taps", 2, 3, {1, 1, 20}, {1, 1, 7}, {1, 1, 3}, {0, 0, 2}, {0}},
    {"1-d", 4, 7, {1, 1, 13}, {1, 1, 2}, {1, 1, 2}, {0}, {0, 0, 1}},
    {"3-d", 2, 4, {4, 5, 6}, {2, 2, 2}, {2, 2, 2}, {0}, {0, 1, 0}},
    {"3-d 3x3x3", 1, 4, {5, 5, 5}, {3, 3, 3}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}},
    {"more than 256 taps", 2, 9, {1, 40, 36}, {1, 17, 18}, {1, 9, 18}, {0, 3, 0}, {0}},
    {"whole image", 2, 6, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {0}, {0}},
    {"one", 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}},
    {"empty batch", 0, 4, {1, 4, 4}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof cases[0] };

static stk_pool_params problem(const pool_case *k)
{
    stk_pool_params p = {.n = k->n, .c = k->c, .dtype = STK_F32};
    for (int i = 0; i < 3; i++) {
        p.in[i] = k->in[i];
        p.window[i] = k->window[i];
        p.stride[i] = k->stride[i];
        p.low[i] = k->low[i];
        p.out[i] = (k->in[i] + k->low[i] + k->high[i] - k->window[i]) / k->stride[i] + 1;
    }
    return p;
}

static int64_t x_count(const stk_pool_params *p)
{
    return p->n * p->in[0] * p->in[1] * p->in[2] * p->c;
}
static int64_t y_count(const stk_pool_params *p)
{
    return p->n * p->out[0] * p->out[1] * p->out[2] * p->c;
}
static int64_t which_bytes(const stk_pool_params *p)
{
    return y_count(p) * (stk_pool_wide(p->window) ? 4 : 1);
}

/* Few different values, so that most windows have ties, and now and then a NaN. */
static void fill_ties(float *x, int64_t n, bool nan)
{
    uint64_t seed = 11;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = launch_random(&seed);
        x[i] = (float)(r >> 28 & 3) - 1;
        if (nan && (r >> 20 & 15) == 0) x[i] = NAN;
    }
}

/* All arrays of one case, exact in size so that a sanitizer sees reads behind the end. */
typedef struct arrays {
    float *x, *y;
    uint8_t *which;
} arrays;

static arrays make(const stk_pool_params *p)
{
    arrays a = {stk_malloc((size_t)x_count(p) * 4), stk_malloc((size_t)y_count(p) * 4),
                stk_malloc((size_t)which_bytes(p))};
    memset(a.x, 0xff, (size_t)x_count(p) * 4); /* NaN: what is not written shows */
    memset(a.y, 0xff, (size_t)y_count(p) * 4);
    memset(a.which, 0xff, (size_t)which_bytes(p));
    return a;
}

static void release(arrays *a)
{
    stk_free(a->x);
    stk_free(a->y);
    stk_free(a->which);
}

static void run_once(stk_kernel kernel, const char *name, const stk_pool_params *p, arrays *a,
                     int32_t parts)
{
    void *max[] = {a->x, a->y, a->which}, *grad[] = {a->which, a->y, a->x},
         *pick[] = {a->which, a->x, a->y};
    void *avg[] = {a->x, a->y}, *spread[] = {a->y, a->x};
    bool average = kernel == STK_K_AVG_POOL || kernel == STK_K_AVG_POOL_GRAD;
    void **arg = kernel == STK_K_MAX_POOL        ? max
                 : kernel == STK_K_MAX_POOL_GRAD ? grad
                 : kernel == STK_K_MAX_POOL_PICK ? pick
                 : kernel == STK_K_AVG_POOL      ? avg
                                                 : spread;
    run_problem(kernel, name, p, arg, average ? 2 : 3, parts, parts % 2 == 0);
}

/* Inputs of a kernel; its outputs stay NaN. */
static arrays inputs_of(const stk_pool_params *p, stk_kernel kernel, int kind)
{
    arrays a = make(p);
    fill_uniform(a.x, x_count(p), 6);
    if (kind) fill_ties(a.x, x_count(p), kind == 2);
    if (kernel == STK_K_MAX_POOL_GRAD || kernel == STK_K_MAX_POOL_PICK)
        run_once(STK_K_MAX_POOL, "ref", p, &a, 1);
    if (kernel == STK_K_MAX_POOL_PICK)
        memset(a.y, 0xff, (size_t)y_count(p) * 4);
    else if (kernel == STK_K_MAX_POOL_GRAD || kernel == STK_K_AVG_POOL_GRAD) {
        fill_uniform(a.y, y_count(p), 5);
        memset(a.x, 0xff, (size_t)x_count(p) * 4);
    }
    return a;
}

static void compare(const pool_case *k, stk_kernel kernel, int kind)
{
    stk_pool_params p = problem(k);
    arrays want = inputs_of(&p, kernel, kind), first = {0};
    run_once(kernel, "ref", &p, &want, 1);
    for (int32_t parts = 1; parts <= (k->n ? k->n : 1); parts++) {
        arrays got = inputs_of(&p, kernel, kind);
        run_once(kernel, "vec", &p, &got, parts);
        bool good = CHECK_NEAR_F32(got.x, want.x, x_count(&p), 1e-6, 1e-6);
        good &= CHECK_NEAR_F32(got.y, want.y, y_count(&p), 1e-6, 1e-6);
        if (kernel == STK_K_MAX_POOL)
            good &= CHECK(!memcmp(got.which, want.which, (size_t)which_bytes(&p)));
        if (!good) printf("    case '%s', %s, inputs %d\n", k->name, stk_kernel_name(kernel), kind);
        if (!first.x) {
            first = got;
            continue;
        }
        CHECK(!memcmp(first.x, got.x, (size_t)x_count(&p) * 4));
        CHECK(!memcmp(first.y, got.y, (size_t)y_count(&p) * 4));
        release(&got);
    }
    release(&first);
    release(&want);
}

/* Maxima of bfloat16 are those of the same numbers as floats, to the bit. */
static uint16_t *halves(float *x, int64_t n)
{
    uint16_t *to = stk_malloc((size_t)n * sizeof *to + 1);
    for (int64_t i = 0; i < n; i++) {
        to[i] = stk_f32_to_bf16(x[i]);
        x[i] = stk_bf16_to_f32(to[i]);
    }
    return to;
}

static bool same_halves(const uint16_t *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float f = stk_bf16_to_f32(got[i]);
        if (f != want[i] && !(isnan(f) && isnan(want[i]))) return false;
    }
    return true;
}

static int compare_halves(const pool_case *k, stk_kernel kernel, int kind)
{
    stk_pool_params p = problem(k), half = p;
    half.dtype = STK_BF16;
    if (!takes_problem(kernel, "vec", &half)) return 0;
    arrays want = inputs_of(&p, kernel, kind), got = make(&p);
    arrays small = {(float *)(void *)halves(want.x, x_count(&p)),
                    (float *)(void *)halves(want.y, y_count(&p)), got.which};
    memcpy(got.which, want.which, (size_t)which_bytes(&p));
    run_once(kernel, "ref", &p, &want, 1);
    run_once(kernel, "vec", &half, &small, 1);
    bool good = CHECK(same_halves((uint16_t *)(void *)small.x, want.x, x_count(&p)));
    good &= CHECK(same_halves((uint16_t *)(void *)small.y, want.y, y_count(&p)));
    good &= CHECK(!memcmp(small.which, want.which, (size_t)which_bytes(&p)));
    if (!good) printf("    case '%s', %s, inputs %d\n", k->name, stk_kernel_name(kernel), kind);
    stk_free(small.x);
    stk_free(small.y);
    release(&got);
    release(&want);
    return 1;
}

TEST(maxima_of_bfloat16_are_exact)
{
    int taken = 0;
    EACH_ISA
    for (int i = 0; i < KERNELS; i++)
        for (int k = 0; k < CASES; k++)
            for (int kind = 0; kind < 3; kind++)
                taken += compare_halves(&cases[k], kernels[i], kind);
    CHECK(taken > 100);
}

TEST(kernels_agree_with_ref)
{
    EACH_ISA
    for (int i = 0; i < KERNELS; i++)
        for (int k = 0; k < CASES; k++)
            for (int kind = 0; kind < 3; kind++) compare(&cases[k], kernels[i], kind);
}

TEST(padding_is_no_maximum_and_not_counted)
{
    stk_pool_params p = {.n = 1,
                         .c = 1,
                         .in = {1, 1, 2},
                         .out = {1, 1, 3},
                         .window = {1, 1, 2},
                         .stride = {1, 1, 1},
                         .low = {0, 0, 1},
                         .dtype = STK_F32};
    float x[2] = {-4, -2}, y[3], max[3] = {-4, -2, -2}, avg[3] = {-4, -3, -2};
    uint8_t which[3];
    run_problem(STK_K_MAX_POOL, "vec", &p, (void *[]){x, y, which}, 3, 1, false);
    CHECK_NEAR_F32(y, max, 3, 0, 0);
    CHECK(which[0] == 1 && which[1] == 1 && which[2] == 0);
    run_problem(STK_K_AVG_POOL, "vec", &p, (void *[]){x, y}, 2, 1, false);
    CHECK_NEAR_F32(y, avg, 3, 0, 0);
}

TEST(ties_go_to_the_first)
{
    stk_pool_params p = {.n = 1,
                         .c = 1,
                         .in = {1, 2, 2},
                         .out = {1, 1, 1},
                         .window = {1, 2, 2},
                         .stride = {1, 2, 2},
                         .dtype = STK_F32};
    float x[4] = {1, 7, 7, 7}, y[1], dy[1] = {3}, dx[4], expected[4] = {0, 3, 0, 0};
    uint8_t which[1];
    run_problem(STK_K_MAX_POOL, "vec", &p, (void *[]){x, y, which}, 3, 1, false);
    run_problem(STK_K_MAX_POOL_GRAD, "vec", &p, (void *[]){which, dy, dx}, 3, 1, false);
    CHECK_NEAR_F32(dx, expected, 4, 0, 0);
}

TEST_MAIN()
