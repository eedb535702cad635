/* Products of tiles: what the stand-in does with one, against Intel's definition written out; the engine on it over every edge, against
 * doubles; the check that comes before the first real use. The instructions themselves run here only where the processor has
 * them. */
#include "problem.h"

#include "base/convert.h"
#include "base/float_env.h"
#include "device/cpu/amx.h"
#include "device/cpu/isa.h"

typedef struct numbers {
    stk_gemm g;
    uint16_t *a, *b;
    int64_t rows; /* of c */
    double *c;    /* what c holds before */
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

static double term(const numbers *p, int64_t i, int64_t j, int64_t k)
{
    const stk_gemm *g = &p->g;
    const uint16_t a = p->a[g->ta ? k * g->lda + i : i * g->lda + k];
    const uint16_t b = p->b[g->tb ? j * g->ldb + k : k * g->ldb + j];
    return (double)widened(a) * widened(b);
}

static double held(const numbers *p, const void *c, int64_t at)
{
    return p->wide ? ((const float *)c)[at] : widened(((const uint16_t *)c)[at]);
}

static bool check_sums(const numbers *p, const void *c)
{
    const stk_gemm *g = &p->g;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < g->ldc; j++) {
            const double old = p->c[i * g->ldc + j], got = held(p, c, i * g->ldc + j);
            double sum = !g->accumulate && i < g->m && j < g->n ? 0 : old, size = fabs(old);
            for (int64_t k = 0; i < g->m && j < g->n && k < g->k; k++) {
                sum += term(p, i, j, k);
                size += fabs(term(p, i, j, k));
            }
            const double allowed =
                size * 0x1p-24 * (double)(g->k + 2) + (p->wide ? 0 : fabs(sum) * 0x1.03p-8);
            if (!CHECK_MSG(fabs(got - sum) <= allowed + 1e-30,
                           "%lldx%lldx%lld ta %d tb %d accumulate %d wide %d: element %lld,%lld is "
                           "%.9g, not %.9g",
                           (long long)g->m, (long long)g->n, (long long)g->k, g->ta, g->tb,
                           g->accumulate, p->wide, (long long)i, (long long)j, got, sum))
                return false;
        }
    return true;
}

/* In one piece, with b packed before, and cut into rectangles: right, and the same bits. */
static bool check_shape(const stk_vec_gemm_tiles *tiles, stk_gemm g, bool wide)
{
    numbers p = {.g = g, .rows = g.m, .wide = wide};
    const int64_t size = g.m * g.ldc, bytes = size * (wide ? 4 : 2);
    uint16_t *start = random_halves(size, 3);
    void *c[3];
    p.a = random_halves((g.ta ? g.k : g.m) * g.lda, 1);
    p.b = random_halves((g.tb ? g.n : g.k) * g.ldb, 2);
    p.c = stk_malloc((size_t)size * sizeof *p.c);
    for (int64_t i = 0; i < size; i++) p.c[i] = widened(start[i]);
    for (int way = 0; way < 3; way++) {
        c[way] = stk_malloc((size_t)bytes + 1);
        for (int64_t i = 0; i < size; i++)
            if (wide)
                ((float *)c[way])[i] = widened(start[i]);
            else
                ((uint16_t *)c[way])[i] = start[i];
        const int64_t rows = way == 2 ? 37 : g.m, cols = way == 2 ? 64 : g.n;
        for (int64_t i = 0; i < g.m; i += rows)
            for (int64_t j = 0; j < g.n; j += cols)
                multiply(tiles,
                         (stk_gemm_job){.whole = &p.g,
                                        .a = p.a,
                                        .b = p.b,
                                        .c = c[way],
                                        .row_lo = i,
                                        .row_hi = stk_min_i64(i + rows, g.m),
                                        .col_lo = j,
                                        .col_hi = stk_min_i64(j + cols, g.n),
                                        .wide = wide},
                         way == 1);
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

static void check_edges(const stk_vec_gemm_tiles *tiles)
{
    static const int64_t m[] = {1, 15, 16, 17, 31, 32, 33, 64, 70, 257};
    static const int64_t n[] = {1, 15, 16, 17, 32, 33, 48, 70, 96};
    static const int64_t k[] = {0, 1, 2, 3, 31, 32, 33, 63, 64, 512, 513, 1030};
    int turn = 0;
    for (int x = 0; x < 10 * 9 * 12; x++) {
        const int64_t rows = m[x / 108], columns = n[x / 12 % 9], terms = k[x % 12];
        if (rows * columns * terms > 1500000 || (INSTRUMENTED && x % 7)) continue;
        stk_gemm g = shape(rows, columns, terms, turn % 4);
        g.lda += turn % 3, g.ldb += turn % 5, g.ldc += turn % 2;
        g.accumulate = turn / 4 % 2;
        if (!check_shape(tiles, g, turn / 8 % 2)) break;
        turn++;
    }
    stk_gemm apart = shape(64, 40, 1024, 0); /* rows 2048 bytes apart are packed */
    check_shape(tiles, apart, false);
    stk_gemm slabs = shape(33, 2100, 520, 2); /* more than one slab */
    check_shape(tiles, slabs, false);
    check_shape(tiles, slabs, true);
}

TEST(edges_of_tiles_squares_blocks_and_slabs)
{
    const stk_vec *set = stk_vec_find("amx-emulated"), *real = stk_vec_find("amx");
    CHECK(set || !stk_isa_has_pairs());
    if (set) check_edges(set->gemm_tiles);
    if (real) check_edges(real->gemm_tiles);
}

/* ---- before the first use ------------------------------------------------------------------------------------ */

static void one_bit_off(const stk_gemm_job *job)
{
    stk_vec_find("amx-emulated")->gemm_tiles->run(job);
    ((uint16_t *)job->c)[job->whole->ldc + 3] ^= 1;
}

TEST(a_wrong_processor_is_noticed)
{
    const stk_vec *set = stk_vec_find("amx-emulated");
    if (!set) return;
    CHECK(stk_amx_agrees(set->gemm_tiles, set->gemm_pairs));
    stk_vec_gemm_tiles wrong = *set->gemm_tiles;
    wrong.run = one_bit_off;
    CHECK(!stk_amx_agrees(&wrong, set->gemm_pairs));
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
