/* Reductions against their plain twin: every kind and type, every way to cut the work, sizes around vectors and
 * blocks, special values, accuracy of long sums; same bits for any number of threads. */
#include "device/launch.h"

#include "device/cpu/vec/vec.h"

static const char *const sets[] = {"base", "avx2", "avx512"};
#define FOR_EACH_ISA(vec)                                                                          \
    for (int isa_ = 0; isa_ < 3; isa_++)                                                           \
        for (const stk_vec *vec = stk_vec_find(sets[isa_]); vec && (stk_vec_use(vec), true);       \
             vec = NULL, stk_vec_use(NULL))

static bool is_logic(int kind) { return kind == STK_REDUCE_ANY || kind == STK_REDUCE_ALL; }
static bool is_arg(int kind) { return kind == STK_REDUCE_ARGMAX || kind == STK_REDUCE_ARGMIN; }

static void *make_input(const stk_reduce_params *p, bool special)
{
    stk_dtype dtype = (stk_dtype)p->dtype;
    int64_t n = p->outer * p->n * p->inner, size = stk_dtype_size(dtype);
    char *x = stk_calloc((size_t)n + 1, (size_t)size);
    uint64_t seed = (uint64_t)(n + p->kind);
    bool product = p->kind == STK_REDUCE_PROD;
    for (int64_t i = 0; i < n; i++) {
        double v = launch_uniform(&seed, -3, 3);
        if (stk_dtype_kind(dtype) == 'F') {
            if (product) v = 1 + v * 0.01;
            if (i % 5 == 0) v = rint(v); /* ties for argmax */
            if (special && i % 37 == 11) v = NAN;
        } else {
            v = stk_dtype_kind(dtype) == 'U' ? rint(fabs(v) * 20) : rint(v * 20);
            if (product) v = i % 17 ? 1 : 2;
        }
        if (dtype == STK_BOOL) v = p->kind == STK_REDUCE_ANY ? i % 11 == 7 : i % 11 != 7;
        stk_store_f64(dtype, x + i * size, v);
    }
    return x;
}

static double tolerance_of(const stk_reduce_params *p)
{
    if (p->kind == STK_REDUCE_MAX || p->kind == STK_REDUCE_MIN || is_arg(p->kind)) return 0;
    switch (p->dtype) {
    case STK_F64: return 1e-13;
    case STK_F32: return p->kind == STK_REDUCE_SUM ? 4e-7 : 1e-6;
    case STK_F16: return 2e-3;
    case STK_BF16: return 1e-2;
    default: return 0;
    }
}

/* Of sums an error in proportion to the elements that went in, not to what is left of them. */
static bool near(stk_dtype dtype, const void *a, const void *b, double tolerance, double elements)
{
    if (!stk_dtype_is_float(dtype)) return stk_load_i64(dtype, a) == stk_load_i64(dtype, b);
    double x = stk_load_f64(dtype, a), y = stk_load_f64(dtype, b);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (fabs(y) + elements);
}

/* parts: 0 as many as pay off. Results of all thread counts must have the same bits. */
static bool check_reduce(const char *isa, const stk_reduce_params *p, bool special, int32_t parts)
{
    stk_dtype out = is_arg(p->kind) ? STK_I64 : (stk_dtype)p->dtype;
    int64_t results = p->outer * p->inner, size = stk_dtype_size(out);
    size_t bytes = (size_t)(results * size);
    void *x = make_input(p, special);
    char *ref = stk_calloc(1, bytes + 8), *first = stk_calloc(1, bytes + 8),
         *got = stk_calloc(1, bytes + 8);
    void *arg[] = {x, ref};
    bool good = LAUNCH(launch_device(1), STK_K_REDUCE, "ref", p, arg, 2, 1);
    for (int32_t threads = 1; threads <= 4 && good; threads *= 2) {
        arg[1] = threads == 1 ? first : got;
        memset(arg[1], 0x5a, bytes + 8);
        good &= LAUNCH(launch_device(threads), STK_K_REDUCE, "vec", p, arg, 2, parts);
        good &= CHECK_MSG(!memcmp(arg[1], first, bytes), "%d threads change bits", threads);
        good &= CHECK(((uint8_t *)arg[1])[bytes] == 0x5a);
    }
    for (int64_t i = 0; i < results && good; i++)
        good &= CHECK_MSG(
            near(out, first + i * size, ref + i * size, tolerance_of(p), (double)p->n),
            "%s %s of [%d,%d,%d] kind %d: result %d is %.9g, ref says %.9g", isa,
            stk_dtype_name((stk_dtype)p->dtype), (int)p->outer, (int)p->n, (int)p->inner, p->kind,
            (int)i, stk_load_f64(out, first + i * size), stk_load_f64(out, ref + i * size));
    stk_free(x), stk_free(ref), stk_free(first), stk_free(got);
    return good;
}

TEST(every_kind_and_type)
{
    static const int64_t shapes[][3] = {
        {5, 33, 1}, {1, 21, 70}, {3, 10, 17}, {1, 40000, 1}, {2, 300, 130}};
    FOR_EACH_ISA(vec)
    for (int kind = 0; kind < STK_REDUCE_COUNT; kind++)
        for (int dtype = 0; dtype < STK_STRING; dtype++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                if (is_logic(kind) != (dtype == STK_BOOL)) continue;
                if (dtype == STK_F16 && s == 3 && kind == STK_REDUCE_PROD)
                    continue; /* leaves the range */
                stk_reduce_params p = {shapes[s][0], shapes[s][1], shapes[s][2], kind, dtype};
                check_reduce(vec->name, &p, false, 0);
            }
}

TEST(sizes_around_vectors_and_blocks)
{
    static const int64_t sizes[] = {1,  2,  3,  7,  8,   9,   15,  16,  17,
                                    31, 63, 64, 65, 127, 129, 513, 1025};
    static const int kinds[] = {STK_REDUCE_SUM, STK_REDUCE_MAX, STK_REDUCE_MIN, STK_REDUCE_ARGMAX,
                                STK_REDUCE_ARGMIN};
    FOR_EACH_ISA(vec)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j += INSTRUMENTED ? 5 : 2) {
                stk_reduce_params row = {sizes[j], sizes[i], 1, kinds[k], STK_F32};
                stk_reduce_params col = {1, sizes[i], sizes[j], kinds[k], STK_F32};
                stk_reduce_params mid = {2, sizes[j], sizes[i], kinds[k], STK_F32};
                check_reduce(vec->name, &row, i % 2, 0);
                check_reduce(vec->name, &col, i % 2, 3);
                check_reduce(vec->name, &mid, i % 2, 2);
            }
}

TEST(few_results_from_much_data_are_split)
{
    static const int64_t shapes[][3] = {
        {1, 100003, 1}, {3, 50001, 1}, {1, 9001, 32}, {1, 40007, 3}, {2, 5000, 64}};
    FOR_EACH_ISA(vec)
    for (int kind = 0; kind < STK_REDUCE_COUNT; kind++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int32_t parts = 1; parts <= 8; parts += 7) {
                if (kind == STK_REDUCE_PROD) continue;
                stk_reduce_params p = {shapes[s][0], shapes[s][1], shapes[s][2], kind,
                                       is_logic(kind) ? STK_BOOL : STK_F32};
                check_reduce(vec->name, &p, s % 2, parts);
            }
}

TEST(nothing_to_reduce)
{
    static const int64_t shapes[][3] = {{0, 5, 1}, {3, 0, 1}, {1, 0, 5}, {2, 4, 0}, {0, 0, 0}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = STK_REDUCE_SUM; kind <= STK_REDUCE_PROD; kind++) {
            stk_reduce_params p = {shapes[s][0], shapes[s][1], shapes[s][2], kind, STK_F32};
            check_reduce("any", &p, false, 0);
        }
    for (int kind = STK_REDUCE_ANY; kind <= STK_REDUCE_ALL; kind++) {
        stk_reduce_params p = {3, 0, 1, kind, STK_BOOL};
        check_reduce("any", &p, false, 0);
    }
}

TEST(long_sums_stay_exact)
{
    enum { N = 1 << 22 };
    float *x = stk_malloc(N * sizeof *x), y;
    double exact = 0;
    for (int i = 0; i < N; i++) x[i] = 0.1f + (float)(i % 3) * 1e-4f, exact += (double)x[i];
    stk_reduce_params row = {1, N, 1, STK_REDUCE_SUM, STK_F32},
                      column = {1, N / 64, 64, STK_REDUCE_SUM, STK_F32};
    float naive = 0, sums[64];
    for (int i = 0; i < N; i++) naive += x[i];
    void *arg[] = {x, &y};
    FOR_EACH_ISA(vec)
    {
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &row, arg, 2, 0));
        CHECK_NEAR(y, exact, exact * 1e-7);
        CHECK(fabs((double)naive - exact) > exact * 1e-5); /* what it is better than */
        void *columns[] = {x, sums};
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &column, columns, 2, 0));
        for (int j = 0; j < 64; j++) CHECK_NEAR(sums[j], exact / 64, exact / 64 * 3e-5);
    }
    stk_free(x);
}

TEST(first_of_equals_and_nan)
{
    float x[40];
    int64_t at;
    void *arg[] = {x, &at};
    stk_reduce_params most = {1, 40, 1, STK_REDUCE_ARGMAX, STK_F32},
                      least = {1, 40, 1, STK_REDUCE_ARGMIN, STK_F32};
    FOR_EACH_ISA(vec)
    {
        for (int i = 0; i < 40; i++) x[i] = 1;
        x[13] = x[29] = 2, x[7] = x[30] = -1;
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &most, arg, 2, 1));
        CHECK_EQ_I64(at, 13);
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &least, arg, 2, 1));
        CHECK_EQ_I64(at, 7);
        x[35] = x[20] = NAN;
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &most, arg, 2, 1));
        CHECK_EQ_I64(at, 20);
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &least, arg, 2, 1));
        CHECK_EQ_I64(at, 20);
        for (int i = 0; i < 40; i++) x[i] = -INFINITY;
        CHECK(LAUNCH(launch_device(1), STK_K_REDUCE, "vec", &most, arg, 2, 1));
        CHECK_EQ_I64(at, 0);
    }
}

TEST_MAIN()
