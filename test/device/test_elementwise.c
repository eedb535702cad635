/* Tile functions of every instruction set this machine runs, against libm in double: bounds in ulp for the float
 * functions, exact results where arithmetic is exact, special values, and the same bits whatever the length of
 * the tile. */
#include "device/launch.h"

#include "base/float_env.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/halves.h"

static const char *const sets[] = {"base", "avx2", "avx512"};
#define FOR_EACH_ISA(vec)                                                                          \
    for (int isa_ = 0; isa_ < 3; isa_++)                                                           \
        for (const stk_vec *vec = stk_vec_find(sets[isa_]); vec; vec = NULL)

/* ---- accuracy --------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double rsqrt(double x) { return 1 / sqrt(x); }

typedef struct function {
    stk_ew code;
    double (*exact)(double);
    double ulp;       /* worst error allowed */
    double low, high; /* where most of the samples lie */
} function;

static const function functions[] = {
    {STK_EW_SQRT, sqrt, 0.5, 0, 100},      {STK_EW_RSQRT, rsqrt, 1.6, 0, 100},
    {STK_EW_EXP, exp, 1.5, -90, 90},       {STK_EW_EXPM1, expm1, 2, -5, 5},
    {STK_EW_LOG, log, 1.5, 0, 4},          {STK_EW_LOG1P, log1p, 2, -1, 2},
    {STK_EW_SIN, sin, 0.6, -20, 20},       {STK_EW_COS, cos, 0.6, -20, 20},
    {STK_EW_TAN, tan, 1, -20, 20},         {STK_EW_ASIN, asin, 0.6, -1, 1},
    {STK_EW_ACOS, acos, 0.6, -1, 1},       {STK_EW_ATAN, atan, 0.6, -10, 10},
    {STK_EW_SINH, sinh, 0.6, -5, 5},       {STK_EW_COSH, cosh, 0.6, -5, 5},
    {STK_EW_TANH, tanh, 3.5, -3, 3},       {STK_EW_ASINH, asinh, 0.6, -10, 10},
    {STK_EW_ACOSH, acosh, 0.6, 1, 10},     {STK_EW_ATANH, atanh, 0.6, -1, 1},
    {STK_EW_SIGMOID, sigmoid, 3, -20, 20}, {STK_EW_SOFTPLUS, softplus, 3, -20, 20},
    {STK_EW_ERF, erf, 2, -4, 4},           {STK_EW_ERFC, erfc, 0.6, -3, 10},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, SAMPLES = 300000, TILE = 1000 };

/* Error in units of the last place of the float nearest to the exact value. Results under the smallest normal
 * float may be flushed to zero. */
static double ulp_error(float got, double exact)
{
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    float nearest = (float)exact;
    if (isinf(nearest) || isinf(got)) {
        if (nearest == got) return 0;
        /* just past the end of the range either side may round over */
        return fabs(exact) > 0x1.fffffcp127 && fabsf(got) > 0x1.fffffcp127f ? 1 : INFINITY;
    }
    if (fabs(exact) < 0x1p-125) return fabs((double)got - exact) <= 0x1.00001p-126 ? 0 : INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, exponent - 24);
}

static float any_float(uint64_t *seed) /* of any size; nothing whose small multiples underflow */
{
    uint32_t bits = (uint32_t)launch_random(seed);
    float x;
    memcpy(&x, &bits, 4);
    return isnormal(x) && fabsf(x) > 0x1p-120f ? x : 0.0f;
}

static void check_function(const stk_vec *vec, const function *f)
{
    float x[TILE], y[TILE], worst_x = 0;
    uint64_t seed = 1 + (uint64_t)f->code;
    double worst = 0;
    for (int done = 0; done < SAMPLES; done += TILE) {
        for (int i = 0; i < TILE; i++)
            x[i] = i % 4 == 0 ? any_float(&seed) : (float)launch_uniform(&seed, f->low, f->high);
        stk_float_env was = stk_float_env_enter();
        vec->ew->op[f->code][STK_LANE_F32](TILE, y, x, NULL, NULL);
        stk_float_env_leave(was);
        for (int i = 0; i < TILE; i++) {
            double error = ulp_error(y[i], f->exact((double)x[i]));
            if (error > worst) worst = error, worst_x = x[i];
        }
    }
    CHECK_MSG(worst <= f->ulp, "%s %s: %.2f ulp at %a (%g), allowed are %g", vec->name,
              stk_ew_name(f->code), worst, (double)worst_x, (double)worst_x, f->ulp);
}

TEST(float_functions_keep_their_bounds)
{
    FOR_EACH_ISA(vec)
    for (int i = 0; i < FUNCTIONS; i++) check_function(vec, &functions[i]);
}

/* ---- gelu: far below 0 it is as good as 0, so errors count against the operand ------------------------ */

static double gelu_erf(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

static void check_gelu(const stk_vec *vec, stk_ew code, stk_ew slope, double (*exact)(double))
{
    static const double STEP = 1e-4, ALLOWED = 3e-7;
    float x[TILE], y[TILE], two[TILE], d[TILE];
    double worst = 0, worst_slope = 0;
    uint64_t seed = 5;
    for (int done = 0; done < SAMPLES; done += TILE) {
        for (int i = 0; i < TILE; i++) {
            x[i] = (float)launch_uniform(&seed, -12, 12);
            two[i] = 2;
        }
        vec->ew->op[code][STK_LANE_F32](TILE, y, x, NULL, NULL);
        vec->ew->op[slope][STK_LANE_F32](TILE, d, two, x, NULL);
        for (int i = 0; i < TILE; i++) {
            double at = (double)x[i];
            double by_differences = (exact(at + STEP) - exact(at - STEP)) / (2 * STEP);
            worst = fmax(worst, fabs((double)y[i] - exact(at)) / fabs(at));
            worst_slope = fmax(worst_slope, fabs((double)d[i] / 2 - by_differences));
        }
    }
    CHECK_MSG(worst <= ALLOWED && worst_slope <= 2 * ALLOWED, "%s %s: off by %g of x, slope by %g",
              vec->name, stk_ew_name(code), worst, worst_slope);
    const float ends[] = {0, -1e4f, -1e30f, 1e4f, -INFINITY, INFINITY};
    float values[6], slopes[6];
    vec->ew->op[code][STK_LANE_F32](6, values, ends, NULL, NULL);
    vec->ew->op[slope][STK_LANE_F32](6, slopes, two, ends, NULL);
    CHECK(values[0] == 0 && values[1] == 0 && values[2] == 0 && values[3] == ends[3]);
    CHECK(fabsf(slopes[0] - 1) <= 3e-7f && slopes[1] == 0 && slopes[3] == 2);
    CHECK(slopes[2] == 0 && slopes[4] == 0 && slopes[5] == 2);
}

TEST(gelu_and_its_slope)
{
    FOR_EACH_ISA(vec)
    {
        check_gelu(vec, STK_EW_GELU_ERF, STK_EW_GELU_ERF_GRAD, gelu_erf);
        check_gelu(vec, STK_EW_GELU_TANH, STK_EW_GELU_TANH_GRAD, gelu_tanh);
    }
}

static void check_pair_function(const stk_vec *vec, stk_ew code, double (*exact)(double, double),
                                double allowed)
{
    float x[TILE], y[TILE], z[TILE];
    uint64_t seed = 77;
    double worst = 0;
    int at = 0;
    for (int done = 0; done < SAMPLES; done += TILE) {
        for (int i = 0; i < TILE; i++) {
            bool wild = i % 4 == 0;
            x[i] = wild ? any_float(&seed) : (float)launch_uniform(&seed, -4, 20);
            y[i] = wild ? any_float(&seed) : (float)launch_uniform(&seed, -9, 9);
            if (i % 8 == 3) y[i] = rintf(y[i]);
        }
        stk_float_env was = stk_float_env_enter();
        vec->ew->op[code][STK_LANE_F32](TILE, z, x, y, NULL);
        stk_float_env_leave(was);
        for (int i = 0; i < TILE; i++) {
            double error = ulp_error(z[i], exact((double)x[i], (double)y[i]));
            if (error > worst) worst = error, at = i;
        }
        if (worst > allowed) break;
    }
    CHECK_MSG(worst <= allowed, "%s %s: %.2f ulp at (%g, %g): %g", vec->name, stk_ew_name(code),
              worst, (double)x[at], (double)y[at], (double)z[at]);
}

TEST(float_functions_of_two)
{
    FOR_EACH_ISA(vec)
    {
        check_pair_function(vec, STK_EW_POW, pow, 0.6);
        check_pair_function(vec, STK_EW_ATAN2, atan2, 0.6);
    }
}

/* ---- special values --------------------------------------------------------------------------- */

static const double specials[] = {0.0,      -0.0,     1,         -1,  0.5,  -0.5,    2,
                                  -2,       3,        -3,        1.5, -1.5, 2.5,     0x1p100,
                                  -0x1p100, INFINITY, -INFINITY, NAN, 1e10, 1e30,    88.7,
                                  -87.3,    89,       -89,       104, -104, 16777217};
enum { SPECIALS = sizeof specials / sizeof *specials };

static bool same_kind(double got, double expected, double ulp)
{
    if (isnan(expected)) return isnan(got);
    if (expected == 0) return got == 0 && signbit(got) == signbit(expected);
    return ulp_error((float)got, expected) <= ulp;
}

TEST(special_values_of_one)
{
    FOR_EACH_ISA(vec)
    for (int i = 0; i < FUNCTIONS; i++)
        for (int k = 0; k < SPECIALS; k++) {
            float x = (float)specials[k], y[9], wide[9];
            for (int j = 0; j < 9; j++) wide[j] = x; /* once as a vector, once as the tail */
            vec->ew->op[functions[i].code][STK_LANE_F32](9, y, wide, NULL, NULL);
            double expected = functions[i].exact((double)x);
            CHECK_MSG(same_kind((double)y[0], expected, functions[i].ulp),
                      "%s %s(%g) = %g, expected %g", vec->name, stk_ew_name(functions[i].code),
                      (double)x, (double)y[0], expected);
            CHECK_MSG(!memcmp(&y[0], &y[8], 4) || isnan(y[0]), "%s %s(%g): vector and tail differ",
                      vec->name, stk_ew_name(functions[i].code), (double)x);
        }
}

TEST(special_values_of_two)
{
    static const struct {
        stk_ew code;
        double (*exact)(double, double);
    } pairs[] = {{STK_EW_POW, pow}, {STK_EW_ATAN2, atan2}};
    FOR_EACH_ISA(vec)
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < SPECIALS; i++)
            for (int k = 0; k < SPECIALS; k++) {
                float a = (float)specials[i], b = (float)specials[k], y;
                vec->ew->op[pairs[p].code][STK_LANE_F32](1, &y, &a, &b, NULL);
                double expected = pairs[p].exact((double)a, (double)b);
                CHECK_MSG(same_kind((double)y, expected, 0.6), "%s %s(%g, %g) = %g, expected %g",
                          vec->name, stk_ew_name(pairs[p].code), (double)a, (double)b, (double)y,
                          expected);
            }
}

TEST(nan_wins_and_rounding_is_to_even)
{
    FOR_EACH_ISA(vec)
    {
        float a[] = {NAN, 1, NAN, 2, -0.0f, INFINITY, 3, -3, 1},
              b[] = {1, NAN, NAN, 3, 0, NAN, 2, 2, 1}, y[9];
        vec->ew->op[STK_EW_MAX][STK_LANE_F32](9, y, a, b, NULL);
        CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]) && y[3] == 3 && y[4] == 0 && isnan(y[5]) &&
              y[6] == 3);
        vec->ew->op[STK_EW_MIN][STK_LANE_F32](9, y, a, b, NULL);
        CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]) && y[3] == 2 && isnan(y[5]) && y[7] == -3);
        float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, NAN, 1e20f, -2.2f, 7};
        vec->ew->op[STK_EW_ROUND][STK_LANE_F32](9, y, x, NULL, NULL);
        CHECK(y[0] == 0 && y[1] == 2 && y[2] == 2 && y[3] == 0 && y[4] == -2 && isnan(y[5]) &&
              y[6] == 1e20f);
        vec->ew->op[STK_EW_RELU][STK_LANE_F32](9, y, x, NULL, NULL);
        CHECK(y[0] == 0.5f && y[3] == 0 && isnan(y[5]) && y[7] == 0);
        vec->ew->op[STK_EW_RELU_GRAD][STK_LANE_F32](9, y, a, x, NULL);
        CHECK(isnan(y[0]) && y[1] == 1 && y[3] == 0 && y[5] == 0 && y[6] == 3 && y[7] == 0);
        vec->ew->op[STK_EW_SIGN][STK_LANE_F32](9, y, x, NULL, NULL);
        CHECK(y[0] == 1 && y[3] == -1 && isnan(y[5]));
    }
}

/* ---- the same element gives the same bits wherever it stands ------------------------------------------ */

TEST(bits_do_not_depend_on_the_tile)
{
    enum { N = 200 };
    FOR_EACH_ISA(vec)
    for (int code = 0; code < STK_EW_COUNT; code++) {
        stk_tile_fn fn = vec->ew->op[code][STK_LANE_F32];
        if (!fn || code == STK_EW_SELECT) continue;
        float a[N], b[N], c[N], whole[N], single[N];
        uint64_t seed = (uint64_t)code;
        for (int i = 0; i < N; i++) {
            a[i] = i % 50 == 49 ? 0x1p40f : (float)launch_uniform(&seed, -3, 3);
            b[i] = (float)launch_uniform(&seed, -3, 3);
            c[i] = (float)launch_uniform(&seed, -3, 3);
        }
        fn(N, whole, a, b, c);
        for (int i = 0; i < N; i++) fn(1, single + i, a + i, b + i, c + i);
        for (int i = 0; i < N; i++)
            CHECK_MSG(!memcmp(whole + i, single + i, 4) || isnan(whole[i]),
                      "%s %s(%a, %a): %a in a tile, %a alone", vec->name, stk_ew_name((stk_ew)code),
                      (double)a[i], (double)b[i], (double)whole[i], (double)single[i]);
        fn(N, a, a, b, c); /* in place */
        CHECK_MSG(!memcmp(a, whole, sizeof a), "%s %s differs in place", vec->name,
                  stk_ew_name((stk_ew)code));
    }
}

/* ---- storage types ------------------------------------------------------------------------------ */

TEST(half_types_in_all_bit_patterns)
{
    enum { ALL = 65536 };
    uint16_t *h = stk_malloc(ALL * sizeof *h), *back = stk_malloc(ALL * sizeof *back);
    float *f = stk_malloc(ALL * sizeof *f);
    for (int i = 0; i < ALL; i++) h[i] = (uint16_t)i;
    FOR_EACH_ISA(vec)
    {
        stk_float_env was = stk_float_env_enter();
        vec->ew->load[STK_F16](ALL, f, h);
        vec->ew->store[STK_F16](ALL, back, f);
        stk_float_env_leave(was);
        int wrong = 0;
        for (int i = 0; i < ALL; i++) {
            float expected = stk_f16_to_f32(h[i]);
            bool nan = isnan(expected);
            wrong += nan ? !isnan(f[i]) || (back[i] & 0x7fff) <= 0x7c00
                         : memcmp(&f[i], &expected, 4) || back[i] != h[i];
        }
        CHECK_EQ_I64(wrong, 0);
        vec->ew->load[STK_BF16](ALL, f, h);
        vec->ew->store[STK_BF16](ALL, back, f);
        wrong = 0;
        for (int i = 0; i < ALL; i++) wrong += back[i] != h[i] && !isnan(f[i]);
        CHECK_EQ_I64(wrong, 0);
    }
    stk_free(h), stk_free(back), stk_free(f);
}

TEST(stores_round_like_single_elements)
{
    enum { N = 100000 };
    float *x = stk_malloc(N * sizeof *x);
    uint16_t *half = stk_malloc(N * sizeof *half);
    uint64_t seed = 3;
    for (int i = 0; i < N; i++)
        x[i] = (float)(launch_uniform(&seed, -1, 1) * pow(2, launch_uniform(&seed, -27, 17)));
    FOR_EACH_ISA(vec)
    {
        int wrong = 0;
        vec->ew->store[STK_F16](N, half, x);
        for (int i = 0; i < N; i++) wrong += half[i] != stk_f32_to_f16(x[i]);
        vec->ew->store[STK_BF16](N, half, x);
        for (int i = 0; i < N; i++) wrong += half[i] != stk_f32_to_bf16(x[i]);
        CHECK_EQ_I64(wrong, 0);
    }
    stk_free(x), stk_free(half);
}

/* Operands as tiles and as they would be stored; every fifth is zero, every ninth subnormal, every hundredth not a number. */
typedef struct halves_case {
    float tile[3][TILE];
    uint16_t stored[3][TILE];
} halves_case;

static void fill_halves(halves_case *c)
{
    uint64_t seed = 5;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < TILE; i++) {
            float x = (float)launch_uniform(&seed, -8, 8);
            x = i % 5 == k ? 0.0f : i % 9 == k ? x * 0x1p-130f : i % 100 == k + 7 ? NAN : x;
            c->stored[k][i] = stk_f32_to_bf16(x);
            c->tile[k][i] = stk_bf16_to_f32(c->stored[k][i]);
        }
}

/* In place, too: the result in the memory of its first operand. */
static int check_halves(const stk_vec *vec, int code, int kinds, int64_t n, halves_case *c)
{
    static uint16_t half[TILE], expected[TILE];
    float floats[TILE] = {0}, plain[TILE] = {0};
    const bool rounds = kinds & STK_HALF_RESULT;
    const void *from[3];
    for (int k = 0; k < 3; k++)
        from[k] = kinds & STK_HALF_A << k ? (void *)c->stored[k] : (void *)c->tile[k];
    stk_float_env was = stk_float_env_enter();
    vec->ew->op[code][STK_LANE_F32](n, plain, c->tile[0], c->tile[1], c->tile[2]);
    for (int i = 0; i < n; i++) expected[i] = stk_f32_to_bf16(plain[i]);
    memset(half, 0, sizeof half);
    void *to = rounds ? (void *)half : (void *)floats;
    vec->halves->op[code][kinds](n, to, from[0], from[1], from[2]);
    stk_float_env_leave(was);
    int wrong = n < TILE && (half[n] != 0 || floats[n] != 0);
    for (int64_t i = 0; i < n; i++)
        wrong += rounds ? half[i] != expected[i] && !isnan(plain[i])
                        : memcmp(floats + i, plain + i, 4) && !isnan(plain[i]);
    if (!rounds || !(kinds & STK_HALF_A)) return wrong;
    uint16_t in_place[TILE];
    memcpy(in_place, c->stored[0], sizeof in_place);
    was = stk_float_env_enter();
    vec->halves->op[code][kinds](n, in_place, in_place, from[1], from[2]);
    stk_float_env_leave(was);
    return wrong + (memcmp(in_place, half, (size_t)n * 2) != 0);
}

TEST(halves_in_place)
{
    static const int64_t lengths[] = {1, 15, 16, 17, 32, 33, 95, 999};
    static halves_case c;
    int found = 0;
    fill_halves(&c);
    if (!stk_isa_has_pairs()) return;
    for (int code = 0; code < STK_EW_COUNT; code++)
        for (int kinds = 0; kinds < STK_HALF_KINDS; kinds++) {
            if (!stk_vec_get()->halves->op[code][kinds]) continue;
            for (int i = 0; i < 8; i++)
                CHECK_MSG(!check_halves(stk_vec_get(), code, kinds, lengths[i], &c), "%s %d of %d",
                          stk_ew_name((stk_ew)code), kinds, (int)lengths[i]);
            found++;
        }
    CHECK(found > 50);
}

TEST(casts_saturate)
{
    FOR_EACH_ISA(vec)
    {
        float f[] = {0, -1.9f, 1.9f, 1e19f, -1e19f, NAN, INFINITY, -INFINITY, 0x1p62f};
        int64_t i64[9], expected[] = {0, -1,        1,         INT64_MAX,       INT64_MIN,
                                      0, INT64_MAX, INT64_MIN, (int64_t)1 << 62};
        int32_t truth[9];
        vec->ew->cast[STK_LANE_F32][STK_LANE_I64](9, i64, f);
        CHECK(!memcmp(i64, expected, sizeof expected));
        vec->ew->cast[STK_LANE_F32][STK_LANE_BOOL](9, truth, f);
        CHECK(truth[0] == 0 && truth[1] == 1 && truth[5] == 1);
        double d[9];
        for (int i = 0; i < 9; i++) d[i] = (double)f[i];
        vec->ew->cast[STK_LANE_F64][STK_LANE_I64](9, i64, d);
        CHECK(!memcmp(i64, expected, sizeof expected));
        vec->ew->cast[STK_LANE_I64][STK_LANE_BOOL](9, truth, i64);
        CHECK(truth[0] == 0 && truth[3] == 1);
    }
}

TEST_MAIN()
