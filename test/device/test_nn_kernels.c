/* Softmax, norms, scans and random numbers: every instruction set against the references, any cut into parts. */
#include "device/launch.h"

#include "base/rng.h"
#include "device/cpu/vec/vec.h"

enum { MOST = 1 << 17, ARGS = 8 };

/* Runs the block once per instruction set of this machine. */
static const char *const sets[] = {"base", "avx2", "avx512"};
#define EACH_SET(set)                                                                              \
    for (int set = 0; set < 3; set++)                                                              \
        if (stk_vec_find(sets[set]) && (stk_vec_use(stk_vec_find(sets[set])), true))

/* Arrays for one problem: filled inputs, and outputs that begin as garbage. */
typedef struct arrays {
    float *at[ARGS];
    int64_t count[ARGS];
    int32_t inputs, args;
} arrays;

static void arrays_init(arrays *a, int32_t inputs, int32_t args, const int64_t *count, double lo,
                        double hi)
{
    uint64_t state = 7;
    *a = (arrays){.inputs = inputs, .args = args};
    for (int32_t i = 0; i < args; i++) {
        a->count[i] = count[i];
        a->at[i] = stk_malloc((size_t)count[i] * sizeof(float));
        for (int64_t k = 0; k < count[i]; k++)
            a->at[i][k] = i < inputs ? (float)launch_uniform(&state, lo, hi) : NAN;
    }
}

static void arrays_free(arrays *a)
{
    for (int32_t i = 0; i < a->args; i++) stk_free(a->at[i]);
}

/* The outputs of b's run with this implementation, in fresh memory; inputs are those of a. */
static bool run_into(const arrays *a, arrays *b, stk_kernel kernel, const char *name,
                     const void *params, int32_t threads, int32_t parts)
{
    void *arg[ARGS];
    for (int32_t i = 0; i < a->args; i++) arg[i] = i < a->inputs ? a->at[i] : b->at[i];
    return LAUNCH(launch_device(threads), kernel, name, params, arg, a->args, parts);
}

/* vec against ref, and the same bits on 1, 2 and 4 threads for each cut. `any_cut`: the cut must not matter either. */
static void compare(arrays *a, stk_kernel kernel, const void *params, double tol, bool any_cut)
{
    arrays ref, first, again;
    arrays_init(&ref, 0, a->args, a->count, 0, 0);
    REQUIRE(run_into(a, &ref, kernel, "ref", params, 1, 0));
    EACH_SET(set)
    {
        static const int32_t cuts[] = {1, 2, 3, 7};
        arrays_init(&first, 0, a->args, a->count, 0, 0);
        arrays_init(&again, 0, a->args, a->count, 0, 0);
        for (int c = 0; c < 4; c++) {
            arrays *to = c == 0 || !any_cut ? &first : &again;
            run_into(a, to, kernel, "vec", params, 1, cuts[c]);
            for (int32_t i = a->inputs; i < a->args; i++) {
                CHECK_NEAR_F32(to->at[i], ref.at[i], a->count[i], tol, tol);
                if (to == &again)
                    CHECK(!memcmp(first.at[i], again.at[i], (size_t)a->count[i] * sizeof(float)));
            }
            for (int32_t threads = 2; threads <= 4; threads += 2) {
                run_into(a, &again, kernel, "vec", params, threads, cuts[c]);
                for (int32_t i = a->inputs; i < a->args; i++)
                    CHECK(!memcmp(first.at[i], again.at[i], (size_t)a->count[i] * sizeof(float)));
            }
        }
        arrays_free(&first);
        arrays_free(&again);
    }
    stk_vec_use(NULL);
    arrays_free(&ref);
}

static const int64_t widths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  15, 16,
                                 17, 23, 24, 31, 32, 33, 47, 48, 63, 64, 65, 100, 257};
static const int64_t heights[] = {1, 2, 7, 65, 200};
#define EACH_SHAPE(rows, n)                                                                        \
    for (size_t i_ = 0; i_ < sizeof widths / sizeof *widths; i_++)                                 \
        for (size_t k_ = 0; k_ < sizeof heights / sizeof *heights; k_++)                           \
            for (int64_t rows = heights[k_], n = widths[i_], once_ = 1; once_; once_ = 0)

TEST(softmax)
{
    EACH_SHAPE(rows, n)
    {
        for (int32_t log = 0; log < 2; log++) {
            stk_softmax_params p = {.rows = rows, .n = n, .log = log, .dtype = STK_F32};
            arrays a;
            arrays_init(&a, 1, 2, (int64_t[]){rows * n, rows * n}, -20, 20);
            compare(&a, STK_K_SOFTMAX, &p, 3e-6, true);
            arrays_free(&a);
            arrays_init(&a, 2, 3, (int64_t[]){rows * n, rows * n, rows * n}, -2, 0);
            compare(&a, STK_K_SOFTMAX_GRAD, &p, 2e-5, true);
            arrays_free(&a);
        }
    }
}

TEST(cross_entropy)
{
    EACH_SHAPE(rows, n)
    {
        stk_xent_params p = {.rows = rows, .n = n, .dtype = STK_F32, .label = STK_F32};
        arrays a;
        arrays_init(&a, 2, 4, (int64_t[]){rows * n, rows * n, rows, rows * n}, 0, 1);
        compare(&a, STK_K_XENT, &p, 2e-5, true);
        /* Class numbers in the same memory, one in four of them none. */
        int32_t *label = (int32_t *)(void *)a.at[1];
        for (int64_t r = 0; r < rows; r++)
            label[r] = (int32_t)(r % 4 == 3 ? (r % 8 == 3 ? n : -1) : r % n);
        p.label = STK_I32;
        compare(&a, STK_K_XENT, &p, 2e-5, true);
        arrays_free(&a);
    }
}

/* Extremes of a row, for each set: infinities, NaN, and logits that differ by more than float can tell apart. */
TEST(softmax_extremes)
{
    const float inf = INFINITY;
    EACH_SET(set)
    {
        for (int64_t n = 2; n < 40; n++) {
            float x[4 * 40], y[4 * 40];
            for (int64_t j = 0; j < n; j++) {
                x[j] = j == n - 1 ? 1 : -inf;        /* one way only */
                x[n + j] = j == 0 ? 1e30f : -1e30f;  /* overflow if not shifted */
                x[2 * n + j] = j == n / 2 ? NAN : 0; /* NaN spreads over its row */
                x[3 * n + j] = -3e38f;               /* all equal */
            }
            stk_softmax_params p = {.rows = 4, .n = n, .dtype = STK_F32};
            void *arg[] = {x, y};
            REQUIRE(LAUNCH(launch_device(1), STK_K_SOFTMAX, "vec", &p, arg, 2, 1));
            for (int64_t j = 0; j < n; j++) {
                CHECK_NEAR(y[j], j == n - 1, 0);
                CHECK_NEAR(y[n + j], j == 0, 0);
                CHECK(isnan(y[2 * n + j]));
                CHECK_NEAR(y[3 * n + j], 1.0 / (double)n, 1e-6);
            }
        }
    }
    stk_vec_use(NULL);
}

/* A class of weight 0 may be impossible (logit -infinity) without spoiling the loss. */
TEST(cross_entropy_of_masked_classes)
{
    float x[] = {1, -INFINITY, 2, -INFINITY, 0.5f, 1, 1, 1, 1, 1}, t[10] = {0.5f, 0, 0.5f}, loss[1],
          grad[10];
    stk_xent_params p = {.rows = 1, .n = 10, .dtype = STK_F32, .label = STK_F32};
    void *arg[] = {x, t, loss, grad};
    EACH_SET(set)
    {
        REQUIRE(LAUNCH(launch_device(1), STK_K_XENT, "vec", &p, arg, 4, 1));
        CHECK(isfinite(loss[0]) && loss[0] > 0);
        CHECK_NEAR(grad[1], 0, 0);
    }
    stk_vec_use(NULL);
}

TEST(column_statistics)
{
    EACH_SHAPE(rows, n)
    {
        stk_moments_params p = {.rows = rows, .n = n, .dtype = STK_F32};
        arrays a;
        arrays_init(&a, 1, 3, (int64_t[]){rows * n, n, n}, 5, 6);
        compare(&a, STK_K_MOMENTS, &p, 2e-6, false);
        arrays_free(&a);
        arrays_init(&a, 3, 5, (int64_t[]){rows * n, rows * n, n, n, n}, -1, 1);
        compare(&a, STK_K_COLUMN_SUMS, &p, 3e-5, false);
        arrays_free(&a);
    }
    stk_moments_params many = {.rows = 333, .n = 20, .dtype = STK_F32};
    arrays a;
    arrays_init(&a, 1, 3, (int64_t[]){333 * 20, 20, 20}, 100, 101);
    compare(&a, STK_K_MOMENTS, &many, 2e-6, false);
    arrays_free(&a);
}

/* bfloat16 as it is stored gives the bits of the same numbers as floats, and the reference agrees. */
TEST(column_statistics_of_halves)
{
    enum { NUMBERS = 64 * 1024 };
    static uint16_t half[2][NUMBERS];
    static float wide[2][NUMBERS];
    uint64_t state = 11;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < NUMBERS; i++) {
            half[k][i] = stk_f32_to_bf16((float)launch_uniform(&state, -1, 2));
            wide[k][i] = stk_bf16_to_f32(half[k][i]);
        }
    EACH_SHAPE(rows, n)
    {
        if (rows * n > NUMBERS) continue;
        stk_moments_params p = {.rows = rows, .n = n, .dtype = STK_F32}, h = p;
        h.dtype = STK_BF16;
        float *out = stk_calloc((size_t)(6 * n), sizeof *out), *mean = stk_calloc((size_t)n, 4);
        for (int64_t i = 0; i < n; i++) mean[i] = 0.5f;
        for (int sums = 0; sums < 2; sums++) {
            void *from[3][5];
            for (int k = 0; k < 3; k++) {
                float *to = out + 2 * k * n;
                void *x = k ? (void *)half[0] : (void *)wide[0];
                void *moments[] = {x, to, to + n, NULL, NULL};
                void *both[] = {x, k ? (void *)half[1] : (void *)wide[1], mean, to, to + n};
                memcpy(from[k], sums ? both : moments, sizeof both);
            }
            stk_kernel kernel = sums ? STK_K_COLUMN_SUMS : STK_K_MOMENTS;
            CHECK(LAUNCH(launch_device(2), kernel, "vec", &p, from[0], sums ? 5 : 3, 4));
            CHECK(LAUNCH(launch_device(2), kernel, "vec", &h, from[1], sums ? 5 : 3, 4));
            CHECK(LAUNCH(launch_device(2), kernel, "ref", &h, from[2], sums ? 5 : 3, 1));
            CHECK(!memcmp(out, out + 2 * n, (size_t)(2 * n) * sizeof *out));
            for (int64_t i = 0; i < 2 * n; i++)
                CHECK_NEAR(out[i], out[4 * n + i], 1e-4 * (1 + fabs((double)out[i])));
        }
        stk_free(out), stk_free(mean);
    }
}

/* A mean of 10000 and a deviation of 1: what sums of squares cannot do in float. */
TEST(variance_far_from_zero)
{
    enum { ROWS = 5000, N = 3 };
    float *x = stk_malloc(ROWS * N * sizeof *x), mean[N], variance[N];
    uint64_t state = 3;
    for (int i = 0; i < ROWS * N; i++)
        x[i] = i < N ? 0 : (float)(10000 + launch_uniform(&state, -1, 1));
    stk_moments_params p = {.rows = ROWS - 1, .n = N, .dtype = STK_F32};
    void *arg[] = {x + N, mean, variance};
    EACH_SET(set)
    {
        CHECK(LAUNCH(launch_device(2), STK_K_MOMENTS, "vec", &p, arg, 3, 4));
        for (int c = 0; c < N; c++) CHECK_NEAR(variance[c], 1.0 / 3, 0.02);
    }
    stk_vec_use(NULL);
    stk_free(x);
}

TEST(row_norms)
{
    EACH_SHAPE(rows, n)
    {
        for (int32_t kind = 0; kind < 5;
             kind++) { /* plain, gamma, both, beta; root mean square with gamma */
            stk_row_norm_params p = {
                .rows = rows, .n = n, .eps = 1e-3, .center = kind < 4, .dtype = STK_F32};
            p.gamma = kind == 1 || kind == 2 || kind == 4;
            p.beta = kind == 2 || kind == 3;
            int64_t count[ARGS] = {rows * n};
            int32_t in = 1, args;
            for (int32_t i = 0; i < p.gamma + p.beta; i++) count[in++] = n;
            args = in;
            count[args++] = rows * n;
            for (int32_t i = 0; i < 1 + p.center; i++) count[args++] = rows;
            arrays a;
            arrays_init(&a, in, args, count, -2, 2);
            compare(&a, STK_K_ROW_NORM, &p, 5e-5, true);
            arrays_free(&a);
        }
    }
}

TEST(row_norm_gradients)
{
    EACH_SHAPE(rows, n)
    {
        for (int32_t kind = 0; kind < 4; kind++) {
            stk_row_norm_params p = {.rows = rows,
                                     .n = n,
                                     .eps = 1e-3,
                                     .center = kind & 1,
                                     .gamma = kind >> 1,
                                     .dtype = STK_F32};
            int64_t count[ARGS] = {rows * n, rows * n};
            int32_t in = 2, args;
            if (p.gamma) count[in++] = n;
            for (int32_t i = 0; i < 1 + p.center; i++) count[in++] = rows;
            args = in;
            count[args++] = rows * n;
            for (int32_t i = 0; i < 1 + p.center; i++) count[args++] = n;
            arrays a;
            arrays_init(&a, in, args, count, -1, 1);
            compare(&a, STK_K_ROW_NORM_GRAD, &p, 1e-4, false);
            arrays_free(&a);
        }
    }
}

TEST(group_norms)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1},    {3, 7, 6, 2},  {9, 20, 32, 8},
                                        {2, 65, 33, 11}, {5, 1, 16, 4}, {4, 130, 5, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        stk_group_norm_params p = {.images = shapes[i][0],
                                   .rows = shapes[i][1],
                                   .channels = shapes[i][2],
                                   .groups = shapes[i][3],
                                   .eps = 1e-3,
                                   .dtype = STK_F32};
        int64_t all = p.images * p.rows * p.channels, n = p.channels, k = p.images * p.groups;
        arrays a;
        arrays_init(&a, 3, 6, (int64_t[]){all, n, n, all, k, k}, -2, 2);
        compare(&a, STK_K_GROUP_NORM, &p, 5e-5, true);
        arrays_free(&a);
        arrays_init(&a, 5, 8, (int64_t[]){all, all, n, k, k, all, n, n}, -1, 1);
        compare(&a, STK_K_GROUP_NORM_GRAD, &p, 1e-4, false);
        arrays_free(&a);
    }
}

/* ---- random: any cut, any set, and the numbers of base/rng.h ----------------------------------------------- */

static void random_bytes(const stk_random_params *p, int64_t counter, int32_t threads,
                         int32_t parts, void *out)
{
    void *arg[] = {&counter, out};
    CHECK(LAUNCH(launch_device(threads), STK_K_RANDOM, "own", p, arg, 2, parts));
}

TEST(random_any_cut)
{
    static const struct {
        int32_t kind, dtype;
    } kinds[] = {{STK_RANDOM_UNIFORM, STK_F32},
                 {STK_RANDOM_UNIFORM, STK_F64},
                 {STK_RANDOM_NORMAL, STK_F32},
                 {STK_RANDOM_NORMAL, STK_F64},
                 {STK_RANDOM_BERNOULLI, STK_BOOL},
                 {STK_RANDOM_BERNOULLI, STK_F32},
                 {STK_RANDOM_BERNOULLI, STK_F64},
                 {STK_RANDOM_TRUNCATED_NORMAL, STK_F32},
                 {STK_RANDOM_TRUNCATED_NORMAL, STK_F64},
                 {STK_RANDOM_INT, STK_I32},
                 {STK_RANDOM_INT, STK_I64}};
    enum { COUNT = 5003 };
    uint8_t *want = stk_malloc(COUNT * 8), *got = stk_malloc(COUNT * 8);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        stk_random_params p = {
            .count = COUNT, .seed = 5, .stream = 2, .low = -7, .high = 100, .a = 0.25, .b = 0.75};
        p.kind = kinds[k].kind;
        p.dtype = kinds[k].dtype;
        size_t bytes = (size_t)(COUNT * stk_dtype_size((stk_dtype)p.dtype));
        stk_vec_use(stk_vec_find("base"));
        random_bytes(&p, 9, 1, 1, want);
        EACH_SET(set)
        {
            for (int32_t parts = 1; parts < 9; parts += 3) {
                memset(got, 0xee, bytes);
                random_bytes(&p, 9, 4, parts, got);
                CHECK_MSG(!memcmp(got, want, bytes), "kind %d dtype %d set %s parts %d", p.kind,
                          p.dtype, sets[set], parts);
            }
        }
        random_bytes(&p, 10, 1, 1, got);
        CHECK(memcmp(got, want, bytes) != 0); /* another counter, other numbers */
        p.stream = 3;
        random_bytes(&p, 9, 1, 1, got);
        CHECK(memcmp(got, want, bytes) != 0);
        p.stream = 2;
        p.seed = 6;
        random_bytes(&p, 9, 1, 1, got);
        CHECK(memcmp(got, want, bytes) != 0);
    }
    stk_vec_use(NULL);
    stk_free(want);
    stk_free(got);
}

TEST(random_is_that_of_base)
{
    enum { COUNT = 1000 };
    float want[COUNT], got[COUNT];
    uint8_t want_b[COUNT], got_b[COUNT];
    stk_random_params p = {
        .count = COUNT, .seed = -1, .stream = 77, .a = -3, .b = 0.7, .dtype = STK_F32};
    stk_rng rng = stk_random_stream(&p, -5);
    EACH_SET(set)
    {
        p.kind = STK_RANDOM_UNIFORM;
        p.dtype = STK_F32;
        stk_rng_uniform(rng, 0, COUNT, -3, 0.7f, want);
        random_bytes(&p, -5, 1, 1, got);
        CHECK(!memcmp(got, want, sizeof got));
        p.kind = STK_RANDOM_NORMAL;
        stk_rng_normal(rng, 0, COUNT, -3, 0.7f, want);
        random_bytes(&p, -5, 1, 1, got);
        CHECK(!memcmp(got, want, sizeof got));
        p.kind = STK_RANDOM_BERNOULLI;
        p.dtype = STK_BOOL;
        for (int i = 0; i <= 4; i++) { /* 0 and 1 are exact */
            p.a = i / 4.0;
            stk_rng_bernoulli(rng, 0, COUNT, p.a, want_b);
            random_bytes(&p, -5, 1, 1, got_b);
            CHECK(!memcmp(got_b, want_b, sizeof got_b));
        }
        p.a = -3;
    }
    stk_vec_use(NULL);
}

TEST_MAIN()
