/* Matrix products: every implementation against a double reference over shapes around its tile sizes,
 * all transposes, padded rows, accumulation, batches and types; same bits for any cut into parts. */
#include "device/launch.h"

#include "base/convert.h"
#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/vec.h"

typedef struct problem {
    stk_gemm g;
    int64_t size_a, size_b, size_c; /* elements */
    void *a, *b, *c, *start;        /* of g.dtype; start is what c holds before */
    double *expected, *weight;      /* exact result; sum of absolute terms, the unit of its error */
} problem;

enum { PAD_A = 3, PAD_B = 5, PAD_C = 2 };

static stk_gemm shape(int64_t m, int64_t n, int64_t k, int ta, int tb)
{
    return (stk_gemm){.m = m,
                      .n = n,
                      .k = k,
                      .batch = 1,
                      .lda = ta ? m : k,
                      .ldb = tb ? k : n,
                      .ldc = n,
                      .ta = ta,
                      .tb = tb,
                      .dtype = STK_F32};
}

static void *elements(stk_dtype dtype, int64_t count, uint64_t *seed)
{
    void *data = stk_malloc((size_t)count * (size_t)stk_dtype_size(dtype) + 1);
    char *at = data;
    for (int64_t i = 0; i < count; i++, at += stk_dtype_size(dtype))
        if (stk_dtype_is_float(dtype))
            stk_store_f64(dtype, at, launch_uniform(seed, -1, 1));
        else
            stk_store_i64(dtype, at, (int64_t)(launch_random(seed) % 21) - 10);
    return data;
}

static double at(const problem *p, const void *data, int64_t index)
{
    stk_dtype dtype = (stk_dtype)p->g.dtype;
    return stk_load_f64(dtype, (const char *)data + index * stk_dtype_size(dtype));
}

/* So many of 100 numbers become zero. */
static void put_zeros(float *x, int64_t count, int percent, uint64_t *seed)
{
    for (int64_t i = 0; i < count; i++)
        if (launch_uniform(seed, 0, 100) < percent) x[i] = 0;
}

static int zeros_percent = 50;

static problem make(stk_gemm g)
{
    static uint64_t seed = 1;
    int64_t last = stk_max_i64(g.batch - 1, 0);
    problem p = {.g = g};
    p.size_a = (g.ta ? g.k : g.m) * g.lda + last * g.batch_a;
    p.size_b = (g.tb ? g.n : g.k) * g.ldb + last * g.batch_b;
    p.size_c = g.m * g.ldc + last * g.batch_c;
    p.a = elements((stk_dtype)g.dtype, p.size_a, &seed);
    p.b = elements((stk_dtype)g.dtype, p.size_b, &seed);
    if (g.zeros & STK_ZEROS_A) put_zeros(p.a, p.size_a, zeros_percent, &seed);
    if (g.zeros & STK_ZEROS_B) put_zeros(p.b, p.size_b, zeros_percent, &seed);
    p.start = elements((stk_dtype)g.dtype, p.size_c, &seed);
    p.c = elements((stk_dtype)g.dtype, p.size_c, &seed);
    p.expected = stk_calloc((size_t)p.size_c + 1, sizeof(double));
    p.weight = stk_calloc((size_t)p.size_c + 1, sizeof(double));
    for (int64_t i = 0; i < p.size_c; i++) p.expected[i] = at(&p, p.start, i);
    for (int64_t s = 0; s < g.batch; s++)
        for (int64_t i = 0; i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++) {
                int64_t to = s * g.batch_c + i * g.ldc + j;
                double sum = g.accumulate ? p.expected[to] : 0, weight = fabs(sum);
                for (int64_t k = 0; k < g.k; k++) {
                    double x = at(&p, p.a, s * g.batch_a + (g.ta ? k * g.lda + i : i * g.lda + k));
                    double y = at(&p, p.b, s * g.batch_b + (g.tb ? j * g.ldb + k : k * g.ldb + j));
                    sum += x * y;
                    weight += fabs(x * y);
                }
                p.expected[to] = sum;
                p.weight[to] = weight;
            }
    return p;
}

static void drop(problem *p)
{
    stk_free(p->a);
    stk_free(p->b);
    stk_free(p->c);
    stk_free(p->start);
    stk_free(p->expected);
    stk_free(p->weight);
}

static bool run(problem *p, stk_device *device, const char *impl, int32_t parts)
{
    size_t size = (size_t)stk_dtype_size((stk_dtype)p->g.dtype);
    memcpy(p->c, p->start, (size_t)p->size_c * size);
    void *arg[] = {p->a, p->b, p->c};
    return LAUNCH(device, STK_K_GEMM, impl, &p->g, arg, 3, parts);
}

static double wrapped(stk_dtype dtype, double value)
{
    int64_t bits = 0;
    if (stk_dtype_is_float(dtype)) return value;
    stk_store_i64(dtype, &bits, (int64_t)value);
    return stk_load_f64(dtype, &bits);
}

/* Elements between the rows keep their old value, since weight is 0 there. */
static bool check_close(const problem *p, const char *impl)
{
    static const double rounding[STK_DTYPE_COUNT] = {
        [STK_F32] = 0x1p-24, [STK_F64] = 0x1p-53, [STK_F16] = 0x1p-11, [STK_BF16] = 0x1p-8};
    const stk_gemm *g = &p->g;
    double sums = g->dtype == STK_F64 ? 0x1p-53 : 0x1p-24; /* of each addition */
    double store = rounding[g->dtype] * 1.01;
    double least = g->dtype == STK_F16 ? 0x1p-25 : 1e-30; /* half a step of the smallest numbers */
    for (int64_t i = 0; i < p->size_c; i++) {
        double got = at(p, p->c, i), want = wrapped((stk_dtype)g->dtype, p->expected[i]);
        double allowed = p->weight[i] * sums * (double)(g->k + 2) + fabs(want) * store;
        if (!(fabs(got - want) <= allowed + least))
            return CHECK_MSG(false,
                             "%s %" PRId64 "x%" PRId64 "x%" PRId64 " ta %d tb %d accumulate %d %s: "
                             "element %" PRId64 " is %.9g, not %.9g (%.2g allowed)",
                             impl, g->m, g->n, g->k, g->ta, g->tb, g->accumulate,
                             stk_dtype_name((stk_dtype)g->dtype), i, got, want, allowed);
    }
    return true;
}

static void each_impl(problem *p, void (*body)(problem *p, stk_device *device, const char *impl))
{
    stk_device *device = launch_device(2);
    int32_t n = 0;
    const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)device, STK_K_GEMM, &n);
    for (int32_t i = 0; i < n; i++)
        if (!list[i]->supports || list[i]->supports(&p->g)) body(p, device, list[i]->name);
}

static void run_and_check(problem *p, stk_device *device, const char *impl)
{
    if (run(p, device, impl, 1)) check_close(p, impl);
}

static void try_all(stk_gemm g)
{
    problem p = make(g);
    each_impl(&p, run_and_check);
    drop(&p);
}

TEST(small_shapes_in_all_transposes)
{
    static const int64_t sizes[] = {1, 2, 3, 6, 7, 8, 10, 13, 16, 17, 33};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int m = 0; m < SIZES; m++)
        for (int n = 0; n < SIZES; n++)
            for (int k = (m + n) % 2; k < SIZES; k += 2)
                for (int turned = 0; turned < 4; turned++) {
                    stk_gemm g = shape(sizes[m], sizes[n], sizes[k], turned & 1, turned >> 1);
                    g.accumulate = (m + n + k) % 3 == 0;
                    try_all(g);
                }
}

TEST(nothing_to_do_and_no_terms)
{
    static const int64_t shapes[][3] = {{0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {0, 0, 0}, {1, 1, 0}};
    for (int i = 0; i < 5; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            stk_gemm g = shape(shapes[i][0], shapes[i][1], shapes[i][2], i & 1, 0);
            g.accumulate = accumulate;
            try_all(g);
        }
}

TEST(rows_with_gaps)
{
    for (int turned = 0; turned < 4; turned++)
        for (int64_t m = 1; m < 40; m += 19)
            for (int64_t n = 1; n < 100; n += 33)
                for (int64_t k = 1; k < 60; k += 29) {
                    stk_gemm g = shape(m, n, k, turned & 1, turned >> 1);
                    g.lda += PAD_A;
                    g.ldb += PAD_B;
                    g.ldc += PAD_C;
                    g.accumulate = turned == 1;
                    try_all(g);
                }
}

static const int64_t trained[][5] = {
    {10, 128, 100, 0, 0}, {10, 10, 128, 0, 0},  {100, 128, 10, 1, 0}, {128, 10, 10, 1, 0},
    {10, 128, 10, 0, 1},  {32, 10, 128, 0, 0},  {100, 128, 32, 1, 0}, {32, 128, 10, 0, 1},
    {70, 1, 130, 0, 0},   {130, 1, 70, 1, 0},   {70, 128, 1, 0, 1},   {1, 200, 130, 0, 0},
    {1, 200, 130, 0, 1},  {32, 10, 700, 0, 0},  {701, 10, 32, 1, 0},  {9, 700, 10, 0, 1},
    {63, 65, 257, 0, 0},  {67, 200, 260, 0, 0}, {67, 200, 260, 1, 0}, {67, 200, 260, 0, 1},
    {26, 420, 520, 0, 0}, {1, 1, 1000, 0, 0},   {37, 300, 300, 1, 1}, {2, 300, 300, 0, 0},
    {1100, 40, 30, 0, 0},
};
enum { TRAINED = sizeof trained / sizeof *trained };

static stk_gemm trained_shape(int i)
{
    const int64_t *t = trained[i];
    return shape(t[0], t[1], t[2], (int)t[3], (int)t[4]);
}

TEST(shapes_of_training)
{
    for (int i = 0; i < TRAINED; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            stk_gemm g = trained_shape(i);
            g.accumulate = accumulate;
            try_all(g);
        }
}

TEST(batches_with_shared_and_separate_matrices)
{
    for (int shared = 0; shared < 4; shared++)
        for (int turned = 0; turned < 4; turned++) {
            stk_gemm g = shape(7, 19, 11, turned & 1, turned >> 1);
            g.batch = 5;
            g.batch_a = shared & 1 ? 0 : g.m * g.k + 4;
            g.batch_b = shared & 2 ? 0 : g.n * g.k + 2;
            g.batch_c = g.m * g.n + 1;
            try_all(g);
            g.m = 1;
            g.lda = g.ta ? 1 : g.k;
            try_all(g);
        }
}

/* Large enough for tiles of thirds, around their squares and blocks. */
TEST(floats_around_squares_and_blocks)
{
    static const int64_t m[] = {64, 65, 97}, n[] = {64, 79, 97}, k[] = {32, 193, 500};
    for (int i = 0; i < 27; i += INSTRUMENTED ? 5 : 1) {
        stk_gemm g = shape(m[i / 9], n[i / 3 % 3], k[i % 3], i & 1, i >> 1 & 1);
        g.batch = 1 + i % 2;
        g.batch_a = g.m * g.k + 4;
        g.batch_b = i % 3 ? g.n * g.k + 2 : 0;
        g.batch_c = g.m * g.n + 1;
        g.accumulate = i % 4 == 0;
        try_all(g);
    }
}

TEST(element_types)
{
    static const stk_dtype types[] = {STK_F64, STK_F16, STK_BF16, STK_I32, STK_U8, STK_I64};
    static const int64_t shapes[][3] = {{7, 19, 11},  {1, 33, 40},     {40, 1, 33}, {97, 40, 300},
                                        {13, 300, 9}, {100, 260, 260}, {100, 9, 1}};
    for (int t = 0; t < 6; t++)
        for (int i = 0; i < 7; i++)
            for (int turned = INSTRUMENTED ? (i + t) % 4 : 0; turned < 4;
                 turned += INSTRUMENTED ? 4 : 1) {
                stk_gemm g =
                    shape(shapes[i][0], shapes[i][1], shapes[i][2], turned & 1, turned >> 1);
                if (!stk_dtype_is_float(types[t]) && g.m * g.n > 2000) continue;
                g.dtype = types[t];
                g.accumulate = i % 2;
                g.lda += turned;
                try_all(g);
            }
}

/* Rows, columns and terms around the tiles, panels and blocks of the products by pairs; an odd k, and odd row lengths. */
TEST(bfloat16_around_tiles_and_blocks)
{
    static const int64_t m[] = {1, 2, 11, 12, 13, 33, 257}, n[] = {1, 15, 16, 17, 32, 33, 70};
    static const int64_t k[] = {1, 2, 7, 8, 9, 31, 64, 512, 513, 1031};
    for (int i = 0; i < 7 * 7 * 10; i += INSTRUMENTED ? 11 : 1) {
        const int turned = i % 4;
        const int64_t rows = m[i / 70], columns = n[i / 10 % 7], terms = k[i % 10];
        if (rows * columns * terms > 2000000) continue;
        stk_gemm g = shape(rows, columns, terms, turned & 1, turned >> 1);
        g.dtype = STK_BF16;
        g.accumulate = i % 3 == 0;
        g.lda += i % 5 == 0;
        g.ldb += i % 7 == 0;
        g.ldc += i % 2;
        try_all(g);
    }
    stk_gemm wide = shape(300, 290, 700, 0, 0);
    wide.dtype = STK_BF16;
    problem p = make(wide);
    if (stk_isa_has_pairs()) run_and_check(&p, launch_device(2), "pairs");
    if (stk_isa_has_tiles()) run_and_check(&p, launch_device(2), "tiles");
    drop(&p);
}

/* ---- bits ---------------------------------------------------------------------------------------- */

static void same_bits(problem *p, stk_device *device, const char *impl)
{
    static const int32_t cuts[] = {2, 3, 7, 16, 64};
    (void)device;
    if (!strcmp(impl, "ref") && p->g.m * p->g.n * p->g.k > 100000) return; /* slow, and plain */
    if (!strncmp(impl, "deep", 4)) return; /* its cut is a matter of the shape: long_sums */
    size_t bytes = (size_t)(p->size_c * stk_dtype_size((stk_dtype)p->g.dtype));
    void *first = stk_malloc(bytes + 1);
    if (run(p, launch_device(1), impl, 1)) {
        memcpy(first, p->c, bytes);
        for (int c = 0; c < 5; c++)
            for (int32_t threads = 1; threads <= 4; threads += threads) {
                if (!run(p, launch_device(threads), impl, cuts[c])) break;
                if (!CHECK_MSG(!memcmp(first, p->c, bytes),
                               "%s %" PRId64 "x%" PRId64 "x%" PRId64 " ta %d tb %d: %d parts on %d "
                               "threads gave other bits",
                               impl, p->g.m, p->g.n, p->g.k, p->g.ta, p->g.tb, cuts[c], threads))
                    break;
            }
    }
    stk_free(first);
}

TEST(same_bits_for_any_cut)
{
    for (int i = 0; i < TRAINED; i++) {
        problem p = make(trained_shape(i));
        each_impl(&p, same_bits);
        drop(&p);
    }
    for (int t = 0; t < 2; t++) {
        stk_gemm tall = shape(300, 200, 600, 1, 0);
        tall.dtype = t ? STK_BF16 : STK_F32;
        problem large = make(tall);
        each_impl(&large, same_bits);
        drop(&large);
    }
    stk_gemm g = shape(11, 40, 300, 0, 1);
    g.batch = 3;
    g.batch_a = g.m * g.k;
    g.batch_c = g.m * g.n;
    for (int t = 0; t < 4; t++) {
        g.dtype = (int32_t[]){STK_F32, STK_F64, STK_F16, STK_BF16}[t];
        problem p = make(g);
        each_impl(&p, same_bits);
        drop(&p);
    }
}

/* Sums over k in parts of their own: the cut is a matter of the shape, the threads are not. */
static void long_sums(problem *p, stk_device *device, const char *impl)
{
    static const int32_t cuts[] = {1, 2, 3, 7, 16};
    if (strncmp(impl, "deep", 4)) return;
    size_t bytes = (size_t)(p->size_c * stk_dtype_size((stk_dtype)p->g.dtype));
    void *first = stk_malloc(bytes);
    for (int c = 0; c < 5 && run(p, device, impl, cuts[c]); c++) {
        if (!check_close(p, impl)) break;
        memcpy(first, p->c, bytes);
        for (int32_t threads = 1; threads <= 4; threads += threads)
            if (run(p, launch_device(threads), impl, cuts[c]))
                CHECK_MSG(!memcmp(first, p->c, bytes), "%s, %d parts on %d threads gave other bits",
                          impl, cuts[c], threads);
    }
    stk_free(first);
}

TEST(long_sums_are_cut_along_them)
{
    static const int64_t shapes[][3] = {{2, 2, 1024},   {24, 48, 2050}, {65, 33, 1531},
                                        {7, 130, 1024}, {96, 20, 4000}, {3, 257, 1100},
                                        {80, 66, 1300}};
    int found = 0;
    for (int i = 0; i < 7 * 4; i++) {
        const int64_t *t = shapes[i / 4];
        stk_gemm g = shape(t[0], t[1], t[2], i & 1, i >> 1 & 1);
        g.accumulate = i % 3 == 0;
        g.dtype = (int32_t[]){STK_F32, STK_BF16, STK_F64}[i % 7 % 3];
        g.lda += i % 2, g.ldc += i % 4;
        problem p = make(g);
        found += stk_impl_gemm_deep.supports(&p.g);
        each_impl(&p, long_sums);
        drop(&p);
    }
    CHECK(found > 12);
}

/* Numbers that must come out whole: infinities, NaN, and zeros that do not hide them. */
static void spreads(problem *p, stk_device *device, const char *impl)
{
    if (!run(p, device, impl, 1)) return;
    const float *c = p->c;
    CHECK_MSG(isnan(c[2 * p->g.ldc + 1]), "%s: 0 * infinity is not a number", impl);
    CHECK_MSG(isinf(c[1]), "%s: 1 * infinity is infinite", impl);
    CHECK_MSG(isfinite(c[0]) && isfinite(c[2 * p->g.ldc]), "%s: other columns stay", impl);
}

TEST(infinities_spread)
{
    problem p = make(shape(20, 30, 40, 0, 0));
    ((float *)p.a)[5] = 1;
    ((float *)p.a)[2 * 40 + 5] = 0;
    ((float *)p.b)[5 * 30 + 1] = INFINITY;
    each_impl(&p, spreads);
    drop(&p);
}

/* ---- b packed once for all parts ------------------------------------------------------------------- */

typedef bool same_fn(const problem *p, const void *want);

static bool same_bytes(const problem *p, const void *want)
{
    return !memcmp(p->c, want, (size_t)(p->size_c * stk_dtype_size((stk_dtype)p->g.dtype)));
}

/* However it is cut: what the kernel gives that packs for each part, and multiplies all. */
static void check_against_own(stk_gemm g, const char *impl, same_fn *same)
{
    problem p = make(g);
    const size_t bytes = (size_t)(p.size_c * stk_dtype_size((stk_dtype)g.dtype));
    void *own = stk_malloc(bytes + 1);
    if (run(&p, launch_device(1), "own", 1) && check_close(&p, "own")) {
        memcpy(own, p.c, bytes);
        for (int32_t parts = 1; parts <= 7; parts += 3)
            if (run(&p, launch_device(2), impl, parts))
                CHECK_MSG(same(&p, own),
                          "%s %" PRId64 "x%" PRId64 "x%" PRId64 " ta %d tb %d zeros %d %s", impl,
                          g.m, g.n, g.k, g.ta, g.tb, g.zeros, stk_dtype_name((stk_dtype)g.dtype));
    }
    stk_free(own);
    drop(&p);
}

/* Around panels, blocks of k and of columns. */
TEST(packed_once_gives_the_same_bits)
{
    static const int64_t m[] = {256, 301}, n[] = {64, 65, 127, 700}, k[] = {256, 257, 530};
    int tried = 0;
    for (int i = 0; i < 96; i += INSTRUMENTED ? 7 : 1) {
        stk_gemm g = shape(m[i % 2], n[i / 2 % 4], k[i / 8 % 3], i / 24 & 1, i / 48);
        g.dtype = i % 5 == 4 ? STK_F64 : STK_F32;
        g.ldb += i % 3 == 2 ? 5 : 0;
        g.accumulate = i % 7 == 0;
        stk_vec_use(stk_vec_find((const char *const[]){"base", "avx2", "avx512"}[i / 2 % 3]));
        if (!stk_impl_gemm_panels.supports(&g)) continue;
        check_against_own(g, "panels", same_bytes);
        tried++;
    }
    stk_vec_use(NULL);
    CHECK(tried > (INSTRUMENTED ? 5 : 40));
}

/* ---- products that skip zeros ---------------------------------------------------------------------- */

/* Number by number: a zero may have another sign. */
static bool same_numbers(const problem *p, const void *want)
{
    for (int64_t i = 0; i < p->size_c; i++)
        if (((float *)p->c)[i] != ((const float *)want)[i]) return false;
    return true;
}

TEST(zeros_are_skipped)
{
    static const int64_t shapes[][3] = {{128, 128, 64}, {130, 70, 300}, {97, 167, 65},
                                        {64, 200, 257}, {70, 97, 511},  {67, 253, 64},
                                        {300, 65, 71},  {65, 66, 1030}};
    static const int shares[] = {50, 0, 30, 90, 100};
    for (int s = 0; s < 3; s++) {
        stk_vec_use(stk_vec_find((const char *const[]){"base", "avx2", "avx512"}[s]));
        for (int i = 0; i < 8 * 4; i++) {
            stk_gemm g =
                shape(shapes[i / 4][0], shapes[i / 4][1], shapes[i / 4][2], i & 1, i >> 1 & 1);
            g.zeros = 1 + (i + s) % 3;
            g.lda += i % 2, g.ldb += i % 3, g.ldc += i % 4;
            zeros_percent = shares[(i + s) % 5];
            CHECK(stk_impl_gemm_zeros.supports(&g));
            check_against_own(g, "zeros", same_numbers);
        }
    }
    zeros_percent = 50;
    stk_vec_use(NULL);
}

/* Zero times infinity is no number, also where zeros are skipped. */
TEST(skipped_zeros_do_not_hide_infinities)
{
    for (int side = 0; side < 2; side++) {
        stk_gemm g = shape(128, 129, 70, 0, 0);
        g.zeros = side ? STK_ZEROS_B : STK_ZEROS_A;
        problem p = make(g);
        float *a = p.a, *b = p.b;
        a[3 * g.lda + 7] = side ? INFINITY : 0;
        b[7 * g.ldb + 5] = side ? 0 : INFINITY;
        if (run(&p, launch_device(2), "zeros", 2)) CHECK(isnan(((float *)p.c)[3 * g.ldc + 5]));
        drop(&p);
    }
}

/* ---- cutting ------------------------------------------------------------------------------------- */

TEST(units_cover_the_product_once)
{
    stk_gemm tall = shape(100, 20, 10, 0, 0), wide = shape(3, 1000, 100, 0, 0);
    wide.batch = tall.batch = 3;
    CHECK(!stk_gemm_by_columns(&tall));
    wide.batch = 1;
    CHECK(stk_gemm_by_columns(&wide));
    stk_gemm *both[] = {&tall, &wide};
    for (int w = 0; w < 2; w++) {
        const stk_gemm *g = both[w];
        int64_t units = stk_gemm_units(g), seen = 0;
        for (int64_t cut = 0; cut <= units; cut += 7) {
            stk_gemm_cut c = stk_gemm_own_cut(g);
            stk_gemm_part r;
            seen = 0;
            for (int64_t lo = 0; stk_gemm_next(g, c, &lo, cut, &r);)
                seen += (r.row_hi - r.row_lo) * (r.col_hi - r.col_lo);
            for (int64_t lo = cut; stk_gemm_next(g, c, &lo, units, &r);)
                seen += (r.row_hi - r.row_lo) * (r.col_hi - r.col_lo);
            CHECK_EQ_I64(seen, g->batch * g->m * g->n);
        }
    }
    stk_gemm big = shape(512, 256, 128, 0, 0);
    CHECK(stk_gemm_grain(&big) <= 256);
    CHECK_EQ_I64(stk_gemm_aligned(&big), 1 | 4);
    CHECK_EQ_I64(stk_gemm_aligned(&wide), 0);
}

/* ---- the other instruction sets -------------------------------------------------------------------- */

/* What is packed depends on the size of the second-level cache, numbers do not. Shapes on both sides of each limit. */
static void check_both_caches(const stk_gemm *g)
{
    problem p = make(*g);
    const size_t bytes = (size_t)p.size_c * (size_t)stk_dtype_size((stk_dtype)g->dtype);
    void *first = stk_malloc(bytes);
    for (int large = 0; large < 2; large++) {
        stk_isa_assume_l2(large);
        if (!CHECK(run(&p, launch_device(1), "own", 0) && check_close(&p, "own"))) break;
        if (large)
            CHECK_MSG(!memcmp(first, p.c, bytes), "%" PRId64 "x%" PRId64 "x%" PRId64 " ta %d tb %d",
                      g->m, g->n, g->k, g->ta, g->tb);
        else
            memcpy(first, p.c, bytes);
    }
    stk_isa_assume_l2(-1);
    stk_free(first);
    drop(&p);
}

TEST(same_bits_for_any_cache)
{
    static const int64_t sizes[][3] = {
        {200, 200, 300}, {31, 390, 380}, {26, 1030, 300}, {13, 100, 257}};
    const char *set = stk_vec_get()->name;
    for (int i = 0; i < 2; i++) {
        stk_isa_use(i ? "base" : set);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int turned = 0; turned < 4; turned++) {
                stk_gemm g = shape(sizes[s][0], sizes[s][1], sizes[s][2], turned & 1, turned >> 1);
                check_both_caches(&g);
                g.dtype = STK_F64;
                g.accumulate = 1;
                check_both_caches(&g);
            }
    }
    stk_isa_use(NULL);
}

TEST(every_instruction_set)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    for (int s = 0; s < 3; s++) {
        const stk_vec *vec = stk_vec_find(names[s]);
        if (!vec) continue;
        stk_vec_use(vec);
        for (int i = 0; i < TRAINED; i++) {
            problem p = make(trained_shape(i));
            if (run(&p, launch_device(2), "own", 3)) check_close(&p, names[s]);
            p.g.dtype = STK_F32;
            drop(&p);
        }
        for (int64_t n = 1; n < 70; n++) {
            stk_gemm g = shape(n % 13 + 1, n, 21, n & 1, n >> 1 & 1);
            g.dtype = n % 3 ? STK_F32 : n % 2 ? STK_F64 : STK_BF16;
            problem p = make(g);
            if (run(&p, launch_device(1), "own", 1)) check_close(&p, names[s]);
            drop(&p);
        }
    }
    stk_vec_use(NULL);
}

TEST_MAIN()
