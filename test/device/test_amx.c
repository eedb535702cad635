/* Products of tiles: what the stand-in does with one, against Intel's definition written out; the engine on it over every edge, against
 * doubles; the check that comes before the first real use. The instructions themselves run here only where the processor has
 * them. */
#include "problem.h"

#include "base/convert.h"
#include "base/float_env.h"
#include "device/cpu/amx.h"
#include "device/cpu/isa.h"

#include <float.h>

typedef struct numbers {
    stk_gemm g;
    void *a, *b;
    double *c; /* what c holds before */
    bool wide;
} numbers;

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t *random_halves(int64_t n, uint64_t seed)
{
    uint16_t *x = stk_malloc((size_t)n * sizeof *x + 1); /* exact: a sanitizer sees the end */
    for (int64_t i = 0; i < n; i++) stk_store_f64(STK_BF16, x + i, launch_uniform(&seed, -1, 1));
    return x;
}

static float *random_floats(int64_t n, uint64_t seed)
{
    float *x = stk_malloc((size_t)n * sizeof *x + 1);
    fill_uniform(x, n, seed);
    return x;
}

static void *random_numbers(int32_t dtype, int64_t n, uint64_t seed)
{
    return dtype == STK_F32 ? (void *)random_floats(n, seed) : random_halves(n, seed);
}

static stk_gemm shape(int64_t m, int64_t n, int64_t k, int turned)
{
    return (stk_gemm){.m = m,
                      .n = n,
                      .k = k,
                      .batch = 1,
                      .lda = turned & 1 ? m : k,
                      .ldb = turned & 2 ? k : n,
                      .ldc = n,
                      .ta = turned & 1,
                      .tb = turned >> 1 & 1,
                      .dtype = STK_BF16};
}

/* Runs a rectangle of the product with dirty scratch, watched at its end. */
static void multiply(const stk_vec_gemm_tiles *tiles, stk_gemm_job job, bool packed)
{
    const stk_gemm *g = job.whole;
    const int64_t bytes = tiles->scratch(g, packed), right = tiles->packed(g);
    uint8_t *scratch = stk_malloc((size_t)bytes + LAUNCH_GUARD);
    uint8_t *b = stk_malloc((size_t)right + LAUNCH_GUARD);
    memset(scratch, 0xff, (size_t)bytes + LAUNCH_GUARD); /* NaN */
    memset(b, 0xff, (size_t)right + LAUNCH_GUARD);
    if (packed) tiles->pack(g, job.b, b);
    job.scratch = scratch;
    job.packed = packed ? b : NULL;
    stk_float_env was = stk_float_env_enter();
    tiles->run(&job);
    stk_float_env_leave(was);
    for (int i = 0; i < LAUNCH_GUARD; i++)
        if (!CHECK(scratch[bytes + i] == 0xff && b[right + i] == 0xff)) break;
    stk_free(scratch);
    stk_free(b);
}

/* ---- one dot product of tiles --------------------------------------------------------------------------- */

/* TDPBF16PS as the manual has it, one number at a time. */
static float dot_of_tiles(float c, const uint16_t *a, const uint16_t *b, int64_t ldb)
{
    float low = 0, high = 0;
    for (int k = 0; k < 32; k += 2) {
        low = fmaf(widened(a[k]), widened(b[k * ldb]), low);
        high = fmaf(widened(a[k + 1]), widened(b[(k + 1) * ldb]), high);
    }
    return c + (low + high);
}

/* How many of the 1536 sums have other bits than the definition. */
static int other_bits(const stk_vec_gemm_tiles *tiles, uint64_t seed, bool tiny)
{
    enum { M = 32, N = 48, K = 96 };
    stk_gemm g = shape(M, N, K, 0);
    uint16_t *a = random_halves(M * K, seed), *b = random_halves(K * N, seed + 1);
    float c[M * N];
    if (tiny) /* products are subnormal: they count as zero */
        for (int i = 0; i < M * K; i++) stk_store_f64(STK_BF16, a + i, widened(a[i]) * 1e-37);
    if (tiny)
        for (int i = 0; i < N * K; i++) stk_store_f64(STK_BF16, b + i, widened(b[i]) * 1e-3);
    multiply(
        tiles,
        (stk_gemm_job){.whole = &g, .a = a, .b = b, .c = c, .row_hi = M, .col_hi = N, .wide = true},
        false);
    int wrong = 0;
    stk_float_env was = stk_float_env_enter();
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < K; k += 32)
                want = dot_of_tiles(want, a + i * K + k, b + k * N + j, N);
            wrong += memcmp(&want, &c[i * N + j], sizeof want) != 0;
        }
    stk_float_env_leave(was);
    for (int i = 0; tiny && i < M * N; i++) wrong += c[i] != 0;
    stk_free(a);
    stk_free(b);
    return wrong;
}

static int other_bits_of(const stk_vec_gemm_tiles *tiles)
{
    int wrong = other_bits(tiles, 99, true);
    for (uint64_t seed = 1; seed < 9; seed++) wrong += other_bits(tiles, seed, false);
    return wrong;
}

/* What the processor does is measured against doubles below; how it rounds is only told. */
TEST(a_dot_product_of_tiles_to_the_bit)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    if (set) CHECK_EQ_I64(other_bits_of(set->gemm_tiles), 0);
    if (real)
        printf("this processor's AMX: %d of 13824 sums with other bits than the definition\n",
               other_bits_of(real->gemm_tiles));
}

/* ---- edges ------------------------------------------------------------------------------------------------ */

static double element(const void *x, int64_t at, bool wide)
{
    return wide ? ((const float *)x)[at] : widened(((const uint16_t *)x)[at]);
}

static double term(const numbers *p, int64_t i, int64_t j, int64_t k)
{
    const stk_gemm *g = &p->g;
    const bool wide = g->dtype == STK_F32;
    return element(p->a, g->ta ? k * g->lda + i : i * g->lda + k, wide) *
           element(p->b, g->tb ? j * g->ldb + k : k * g->ldb + j, wide);
}

static bool check_sums(const numbers *p, const void *c)
{
    const stk_gemm *g = &p->g;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->ldc; j++) {
            const double old = p->c[i * g->ldc + j], got = element(c, i * g->ldc + j, p->wide);
            double sum = !g->accumulate && j < g->n ? 0 : old, size = fabs(old);
            for (int64_t k = 0; j < g->n && k < g->k; k++) {
                sum += term(p, i, j, k);
                size += fabs(term(p, i, j, k));
            }
            const double allowed =
                size * 0x1p-24 * (double)(g->k + 4) + (p->wide ? 0 : fabs(sum) * 0x1.03p-8);
            if (!CHECK_MSG(fabs(got - sum) <= allowed + 1e-30,
                           "%lldx%lldx%lld ta %d tb %d accumulate %d wide %d: element %lld,%lld is "
                           "%.9g, not %.9g",
                           (long long)g->m, (long long)g->n, (long long)g->k, g->ta, g->tb,
                           g->accumulate, p->wide, (long long)i, (long long)j, got, sum))
                return false;
        }
    return true;
}

/* In one piece, with b packed before, or cut into rectangles. c holds its numbers before. */
static void multiply_way(const stk_vec_gemm_tiles *tiles, const numbers *p, void *c, int way)
{
    const stk_gemm *g = &p->g;
    const int64_t rows = way == 2 ? 37 : g->m, cols = way == 2 ? 64 : g->n;
    for (int64_t i = 0; i < g->m; i += rows)
        for (int64_t j = 0; j < g->n; j += cols)
            multiply(tiles,
                     (stk_gemm_job){.whole = g,
                                    .a = p->a,
                                    .b = p->b,
                                    .c = c,
                                    .row_lo = i,
                                    .row_hi = stk_min_i64(i + rows, g->m),
                                    .col_lo = j,
                                    .col_hi = stk_min_i64(j + cols, g->n),
                                    .wide = p->wide && g->dtype != STK_F32},
                     way == 1);
}

/* Right, and the same bits in all three ways. */
static bool check_shape(const stk_vec_gemm_tiles *tiles, stk_gemm g, bool wide)
{
    numbers p = {.g = g, .wide = wide || g.dtype == STK_F32};
    const int64_t size = g.m * g.ldc, bytes = size * (p.wide ? 4 : 2);
    void *start = random_numbers(p.wide ? STK_F32 : STK_BF16, size, 3);
    void *c[3];
    p.a = random_numbers(g.dtype, (g.ta ? g.k : g.m) * g.lda, 1);
    p.b = random_numbers(g.dtype, (g.tb ? g.n : g.k) * g.ldb, 2);
    p.c = stk_malloc((size_t)size * sizeof *p.c);
    for (int64_t i = 0; i < size; i++) p.c[i] = element(start, i, p.wide);
    for (int way = 0; way < 3; way++) {
        c[way] = stk_malloc((size_t)bytes + 1);
        memcpy(c[way], start, (size_t)bytes);
        multiply_way(tiles, &p, c[way], way);
    }
    bool good = check_sums(&p, c[0]);
    good = CHECK(!memcmp(c[0], c[1], (size_t)bytes) && !memcmp(c[0], c[2], (size_t)bytes)) && good;
    for (int way = 0; way < 3; way++) stk_free(c[way]);
    stk_free(p.a);
    stk_free(p.b);
    stk_free(p.c);
    stk_free(start);
    return good;
}

static void check_edges(const stk_vec_gemm_tiles *tiles, int32_t dtype)
{
    static const int64_t m[] = {1, 15, 16, 17, 31, 32, 33, 64, 70, 257};
    static const int64_t n[] = {1, 15, 16, 17, 32, 33, 48, 70, 96};
    static const int64_t k[] = {0, 1, 2, 3, 31, 32, 33, 64, 193, 512, 513, 1030};
    int turn = 0;
    for (int x = 0; x < 10 * 9 * 12; x++) {
        const int64_t rows = m[x / 108], columns = n[x / 12 % 9], terms = k[x % 12];
        if (rows * columns * terms > 1500000 || (INSTRUMENTED && x % 7)) continue;
        stk_gemm g = shape(rows, columns, terms, turn % 4);
        g.dtype = dtype;
        g.lda += turn % 3, g.ldb += turn % 5, g.ldc += turn % 2;
        g.accumulate = turn / 4 % 2;
        if (!check_shape(tiles, g, turn / 8 % 2)) break;
        turn++;
    }
    stk_gemm apart = shape(64, 40, 1024, 0);  /* rows 2048 bytes apart are packed */
    stk_gemm slabs = shape(33, 2100, 520, 2); /* more than one slab */
    apart.dtype = slabs.dtype = dtype;
    check_shape(tiles, apart, false);
    check_shape(tiles, slabs, false);
    check_shape(tiles, slabs, true);
}

static void check_types(const stk_vec_gemm_tiles *tiles)
{
    check_edges(tiles, STK_BF16);
    check_edges(tiles, STK_F32);
}

TEST(edges_of_tiles_squares_blocks_and_slabs)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    CHECK(set || !stk_isa_has_pairs());
    if (set) check_types(set->gemm_tiles);
    if (real) check_types(real->gemm_tiles);
}

/* ---- floats in thirds ---------------------------------------------------------------------------------------- */

enum { KINDS = 3 };
static const char *const kinds[KINDS] = {"uniform", "of sizes 1e-18 to 1e18", "cancelling"};

/* Terms of the last kind come in pairs whose sums are a thousandth of them. */
static void fill_kind(float *x, int64_t rows, int64_t k, int kind, bool left, uint64_t seed)
{
    for (int64_t i = 0; i < rows * k; i++) {
        const double u = launch_uniform(&seed, -1, 1), size = launch_uniform(&seed, -18, 18);
        x[i] = (float)(kind == 1 ? u * pow(10, size) : u);
        if (kind == 2 && i % 2) x[i] = (float)(left ? x[i - 1] * (1 + u / 1000) : -x[i - 1]);
    }
}

/* Errors in units of 2^-24 of the sum of sizes of terms: root of the mean square, and the largest. */
typedef struct errors {
    double rms, most;
} errors;

static errors errors_of(const numbers *p, const float *c)
{
    const stk_gemm *g = &p->g;
    errors e = {0};
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < g->k; k++) {
                sum += term(p, i, j, k);
                size += fabs(term(p, i, j, k));
            }
            const double unit = fabs(c[i * g->ldc + j] - sum) / size * 0x1p24;
            e.rms += unit * unit / (double)(g->m * g->n);
            e.most = fmax(e.most, unit);
        }
    e.rms = sqrt(e.rms);
    return e;
}

static void run_plain(const stk_gemm_job *job)
{
    const stk_vec_gemm *plain = stk_vec_find("avx512")->gemm;
    stk_gemm_job own = *job;
    own.scratch = stk_malloc((size_t)plain->scratch[STK_F32](job->whole) + 1);
    stk_float_env was = stk_float_env_enter();
    plain->run[STK_F32](&own);
    stk_float_env_leave(was);
    stk_free(own.scratch);
}

/* Sums must not be worse than those of the float kernels. */
static void check_errors(const stk_vec_gemm_tiles *tiles, int kind, int64_t k)
{
    enum { M = 64, N = 80 };
    numbers p = {.g = shape(M, N, k, 2), .wide = true};
    p.g.dtype = STK_F32;
    float *a = p.a = random_floats(M * k, 1), *b = p.b = random_floats(N * k, 2);
    float *c = random_floats(2 * M * N, 3), *own = c + M * N;
    fill_kind(a, M, k, kind, true, 11);
    fill_kind(b, N, k, kind, false, 12);
    multiply_way(tiles, &p, c, 0);
    run_plain(&(stk_gemm_job){.whole = &p.g, .a = a, .b = b, .c = own, .row_hi = M, .col_hi = N});
    const errors e = errors_of(&p, c), plain = errors_of(&p, own);
    printf("floats %s, %lld terms: rms %.3f, largest %.3f of 2^-24; without tiles %.3f, %.3f\n",
           kinds[kind], (long long)k, e.rms, e.most, plain.rms, plain.most);
    CHECK(e.rms <= plain.rms * 1.15 && e.most <= plain.most * 1.25);
    stk_free(a);
    stk_free(b);
    stk_free(c);
}

TEST(floats_are_no_worse_than_without_tiles)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    for (int x = 0; x < KINDS * 3; x++) {
        const int64_t k = (int64_t[]){64, 512, 4096}[x % 3];
        if (set) check_errors(set->gemm_tiles, x / 3, k);
        if (real) check_errors(real->gemm_tiles, x / 3, k);
    }
}

/* By the unit matrix, on either side: what a number is cut into is all of it, up to the largest ones; below 2^-103 it may lose 2^-126. */
static void check_whole(const stk_vec_gemm_tiles *tiles, bool tiny)
{
    enum { N = 128, BYTES = N * N * sizeof(float) };
    numbers p = {.g = shape(N, N, N, 0), .wide = true};
    p.g.dtype = STK_F32;
    float *x = random_floats(N * N, 5), *unit = random_floats(N * N, 6),
          *c = random_floats(N * N, 7);
    uint64_t seed = 8;
    for (int i = 0; i < N * N; i++) {
        const uint32_t sign = (uint32_t)launch_random(&seed) << 31;
        const uint32_t least = tiny ? 0 : 24u << 23, span = (tiny ? 24u : 231u) << 23;
        uint32_t bits = least + (uint32_t)(launch_random(&seed) % span);
        if (!tiny && i % 3 == 0) bits = 0x7f7fffffu - (uint32_t)(launch_random(&seed) & 0x1ffff);
        bits |= sign;
        memcpy(&x[i], &bits, sizeof bits);
        unit[i] = i / N == i % N;
    }
    for (int side = 0; side < 2; side++) {
        p.a = side ? x : unit, p.b = side ? unit : x;
        multiply_way(tiles, &p, c, 0);
        int wrong = 0;
        for (int i = 0; i < N * N; i++) wrong += !(fabs((double)c[i] - x[i]) < 0x1p-126);
        CHECK_EQ_I64(wrong, 0);
        CHECK(tiny || !memcmp(c, x, BYTES));
    }
    stk_free(x);
    stk_free(unit);
    stk_free(c);
}

TEST(floats_are_all_of_their_thirds)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    for (int tiny = 0; tiny < 2; tiny++) {
        if (set) check_whole(set->gemm_tiles, tiny);
        if (real) check_whole(real->gemm_tiles, tiny);
    }
}

static int class_of(float x) { return isnan(x) ? 2 : isinf(x) ? (x > 0 ? 1 : -1) : 0; }

/* Infinities and NaN, by rows of a or columns of b, up to the last of either; one meets a zero, one a number that is infinite already. */
static void put_endless(const numbers *p, float *start)
{
    static const struct {
        bool right;
        int at, k;
        float x;
    } odd[] = {{false, 31, 700, INFINITY}, {false, 32, 1099, -INFINITY}, {false, 33, 0, NAN},
               {false, 69, 5, -INFINITY},  {true, 95, 700, INFINITY},    {true, 63, 31, NAN},
               {true, 99, 1099, -INFINITY}};
    const stk_gemm *g = &p->g;
    float *a = p->a, *b = p->b;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const int64_t at = odd[i].at, k = odd[i].k;
        if (odd[i].right)
            b[g->tb ? at * g->ldb + k : k * g->ldb + at] = odd[i].x;
        else
            a[g->ta ? k * g->lda + at : at * g->lda + k] = odd[i].x;
    }
    b[g->tb ? 2 * g->ldb + 700 : 700 * g->ldb + 2] = 0;
    b[g->tb ? 5 * g->ldb : 5] = FLT_MAX; /* not endless */
    start[3 * g->ldc + 3] = INFINITY;
}

/* They do what they do without tiles; where none comes in, nobody notices. */
static void check_endless(const stk_vec_gemm_tiles *tiles, int turned, bool accumulate)
{
    enum { M = 70, N = 100, K = 1100, BYTES = M * N * sizeof(float) };
    numbers p = {.g = shape(M, N, K, turned), .wide = true};
    p.g.dtype = STK_F32;
    p.g.accumulate = accumulate;
    float *a = p.a = random_floats(M * K, 1), *b = p.b = random_floats(N * K, 2);
    float *start = random_floats(M * N, 3), *before = random_floats(M * N, 3);
    float *plain = random_floats(M * N, 4), *c[3];
    multiply_way(tiles, &p, before, 0);
    put_endless(&p, start);
    memcpy(plain, start, BYTES);
    run_plain(&(stk_gemm_job){.whole = &p.g, .a = a, .b = b, .c = plain, .row_hi = M, .col_hi = N});
    for (int way = 0; way < 3; way++) {
        c[way] = random_floats(M * N, 4);
        memcpy(c[way], start, BYTES);
        multiply_way(tiles, &p, c[way], way);
    }
    int endless = 0, other_class = 0, other_bits = 0;
    for (int i = 0; i < M * N; i++) {
        endless += class_of(plain[i]) != 0;
        other_class += class_of(plain[i]) != class_of(c[0][i]);
        const bool same_terms = i % N != 2 && i % N != 5;
        other_bits += class_of(plain[i]) == 0 && same_terms && before[i] != c[0][i];
    }
    CHECK(endless > 500 && endless < M * N / 2);
    CHECK_EQ_I64(other_class, 0);
    CHECK_EQ_I64(other_bits, 0);
    CHECK(!memcmp(c[0], c[1], BYTES) && !memcmp(c[0], c[2], BYTES));
    for (int way = 0; way < 3; way++) stk_free(c[way]);
    stk_free(a);
    stk_free(b);
    stk_free(start);
    stk_free(before);
    stk_free(plain);
}

TEST(endless_floats_spread_as_without_tiles)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    for (int x = 0; x < 8; x++) {
        if (set) check_endless(set->gemm_tiles, x / 2, x % 2);
        if (real) check_endless(real->gemm_tiles, x / 2, x % 2);
    }
}

/* ---- before the first use ------------------------------------------------------------------------------------ */

static void one_bit_off(const stk_gemm_job *job)
{
    stk_vec_find("amx-emulated")->gemm_tiles->run(job);
    ((uint16_t *)job->c)[job->whole->ldc + 3] ^= 1;
}

/* As if a product of the least thirds were missing: right to 17 bits. */
static void one_third_off(const stk_gemm_job *job)
{
    stk_vec_find("amx-emulated")->gemm_tiles->run(job);
    if (job->whole->dtype != STK_F32) return;
    for (int64_t i = 0; i < job->whole->m * job->whole->ldc; i++) {
        uint32_t *c = (uint32_t *)job->c + i;
        *c &= 0xffffffc0u;
    }
}

TEST(a_wrong_processor_is_noticed)
{
    const stk_vec *set = stk_vec_find("amx-emulated");
    if (!set) return;
    CHECK(stk_amx_agrees(set->gemm_tiles, set));
    stk_vec_gemm_tiles wrong = *set->gemm_tiles;
    wrong.run = one_bit_off;
    CHECK(!stk_amx_agrees(&wrong, set));
    wrong.run = one_third_off;
    CHECK(!stk_amx_agrees(&wrong, set));
}

TEST(sets_say_what_they_have)
{
    const stk_vec *before = stk_vec_get();
    CHECK(stk_vec_find("amx-abacus") == NULL);
    CHECK((stk_vec_find("amx") != NULL) <= (stk_amx_missing() == NULL));
    CHECK(stk_amx_exists() || stk_amx_missing());
    if (stk_vec_find("avx512")) {
        stk_isa_use("avx512");
        CHECK(!stk_isa_has_tiles());
        CHECK((stk_isa_amx_unused() != NULL) == stk_amx_exists());
    }
    if (stk_vec_find("amx-emulated")) {
        stk_isa_use("amx-emulated");
        CHECK(stk_isa_has_tiles() && stk_isa_has_pairs() && !stk_isa_amx_unused());
        stk_device_report report;
        stk_device *device = launch_device(1);
        device->vt->describe(device, &report);
        CHECK(strstr(report.detail, "amx-emulated kernels"));
    }
    stk_vec_use(before);
}

TEST_MAIN()
