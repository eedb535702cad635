/* Every convolution kernel against the reference: shapes at the edges of tiles, registers and bands, every way
 * to cut the images into parts. */
#include "problem.h"

#include "base/convert.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/isa.h"

static const stk_kernel kernels[] = {STK_K_CONV, STK_K_CONV_BWD_DATA, STK_K_CONV_BWD_WEIGHT};
static const char *const names[] = {"own",      "deep",      "columns", "taps",
                                    "winograd", "winograd6", "onednn"};
enum { KERNELS = 3, NAMES = sizeof names / sizeof names[0] };

typedef struct conv_case {
    const char *name;
    int64_t n, ic, oc, groups;
    int64_t in[3], kernel[3], stride[3], dilation[3], low[3], high[3];
} conv_case;

/* clang-format off */
#define ONE {1, 1, 1}
static const conv_case cases[] = {
    {"first layer", 3, 3, 32, 1, {1, 12, 13}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"one channel", 2, 1, 32, 1, {1, 9, 7}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"first layer, wide", 3, 3, 64, 1, {1, 12, 13}, {1, 7, 7}, {1, 2, 2}, ONE, {0, 3, 3}, {0, 3, 2}},
    {"odd channels, dilation", 2, 7, 53, 1, {1, 9, 11}, {1, 3, 3}, ONE, {1, 2, 3}, {0, 2, 3}, {0, 1, 1}},
    {"odd channels, 1x1", 2, 33, 70, 1, {1, 5, 6}, {1, 1, 1}, ONE, ONE, {0}, {0}},
    {"odd channels, 3-d", 2, 5, 48, 1, {3, 4, 5}, {2, 3, 3}, ONE, ONE, {0, 1, 1}, {1, 1, 1}},
    {"same padding", 2, 5, 16, 1, {1, 7, 9}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"uneven padding", 2, 4, 24, 1, {1, 8, 8}, {1, 4, 2}, ONE, ONE, {0, 1, 0}, {0, 2, 1}},
    {"stride 2 odd", 3, 8, 16, 1, {1, 9, 11}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 1}, {0, 1, 1}},
    {"stride 2 rest unused", 2, 3, 8, 1, {1, 10, 10}, {1, 3, 3}, {1, 2, 2}, ONE, {0}, {0}},
    {"stride above kernel", 2, 2, 8, 1, {1, 11, 10}, {1, 2, 2}, {1, 3, 4}, ONE, {0}, {0}},
    {"dilation", 2, 4, 16, 1, {1, 11, 12}, {1, 3, 3}, ONE, {1, 2, 3}, {0, 2, 3}, {0, 2, 3}},
    {"dilation and stride", 1, 3, 8, 1, {1, 13, 12}, {1, 3, 2}, {1, 2, 3}, {1, 2, 2}, {0, 1, 0}, {0, 1, 2}},
    {"few channels", 2, 2, 16, 1, {1, 9, 40}, {1, 3, 4}, {1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {0, 1, 3}},
    {"few channels, long rows", 1, 3, 16, 1, {2, 5, 300}, {2, 3, 3}, ONE, ONE, {1, 1, 1}, {0, 1, 1}},
    {"no full register", 2, 3, 7, 1, {1, 6, 6}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"one output channel", 2, 9, 1, 1, {1, 6, 5}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"three results", 3, 16, 3, 1, {1, 7, 9}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"four results, stride", 2, 11, 4, 1, {1, 9, 8}, {1, 3, 5}, {1, 2, 2}, ONE, {0, 0, 2}, {0, 1, 1}},
    {"two results, dilation", 2, 35, 2, 1, {1, 8, 9}, {1, 2, 3}, ONE, {1, 2, 2}, {0, 1, 2}, {0, 1, 1}},
    {"three results, long runs", 2, 33, 3, 1, {1, 5, 6}, {1, 3, 5}, ONE, ONE, {0, 1, 2}, {0, 1, 2}},
    {"three channels back", 2, 3, 21, 1, {1, 7, 6}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"one result, 3-d", 2, 8, 1, 1, {3, 4, 5}, {2, 3, 3}, ONE, ONE, {0, 1, 1}, {1, 1, 1}},
    {"five registers", 1, 2, 40, 1, {1, 5, 6}, {1, 2, 3}, ONE, ONE, {0}, {0}},
    {"one and a half, 16 or 8 lanes", 3, 12, 24, 1, {1, 7, 9}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 0}, {0, 0, 1}},
    {"one and a half back", 2, 24, 12, 1, {1, 8, 7}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 0}, {0, 0, 1}},
    {"three and a half", 2, 5, 56, 1, {1, 5, 6}, {1, 2, 3}, ONE, ONE, {0}, {0, 1, 1}},
    {"halves of groups", 2, 12, 80, 2, {1, 6, 5}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"halves, rows apart", 2, 3, 20, 1, {1, 9, 8}, {1, 3, 3}, ONE, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}},
    {"nine and a bit", 1, 6, 74, 1, {1, 5, 5}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"few pixels, many channels", 3, 130, 140, 1, {1, 6, 7}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"packed weights", 2, 32, 64, 1, {1, 7, 7}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"groups", 2, 8, 12, 4, {1, 6, 7}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"groups of registers", 2, 6, 32, 2, {1, 6, 7}, {1, 3, 3}, {1, 2, 1}, ONE, {0, 1, 0}, {0, 0, 0}},
    {"depthwise", 2, 24, 24, 24, {1, 7, 8}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"depthwise odd", 3, 21, 21, 21, {1, 7, 8}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 0, 1}, {0, 1, 1}},
    {"depthwise 5x5", 1, 16, 16, 16, {1, 9, 9}, {1, 5, 5}, ONE, ONE, {0, 2, 2}, {0, 2, 2}},
    {"depthwise, rows of tiles", 2, 33, 33, 33, {1, 6, 30}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"depthwise, dilation", 2, 18, 18, 18, {1, 9, 10}, {1, 3, 3}, ONE, {1, 2, 3}, {0, 2, 3}, {0, 1, 3}},
    {"depthwise, stride 3 of 5x4", 3, 16, 16, 16, {1, 14, 13}, {1, 5, 4}, {1, 3, 2}, ONE, {0, 2, 0}, {0, 1, 2}},
    {"depthwise, no padding", 2, 48, 48, 48, {1, 9, 12}, {1, 3, 3}, {1, 2, 2}, ONE, {0}, {0}},
    {"depthwise, all edges", 2, 20, 20, 20, {1, 2, 1}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"depthwise, padding wider than image", 2, 3, 3, 3, {1, 2, 2}, {1, 5, 5}, ONE, ONE, {0, 4, 4}, {0, 4, 4}},
    {"depthwise, stride above kernel", 2, 17, 17, 17, {1, 9, 10}, {1, 2, 2}, {1, 3, 4}, ONE, {0}, {0}},
    {"depthwise, bands", 2, 48, 48, 48, {1, 41, 40}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"depthwise, bands and stride", 2, 40, 40, 40, {1, 43, 41}, {1, 5, 5}, {1, 2, 2}, ONE, {0, 2, 1}, {0, 1, 2}},
    {"depthwise, as wide as taps", 2, 19, 19, 19, {1, 4, 3}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"depthwise 7x7", 2, 18, 18, 18, {1, 8, 17}, {1, 7, 7}, ONE, ONE, {0, 3, 3}, {0, 3, 3}},
    {"depthwise 1-d", 2, 21, 21, 21, {1, 1, 50}, {1, 1, 4}, ONE, {1, 1, 2}, {0, 0, 6}, {0}},
    {"depthwise 3-d", 2, 18, 18, 18, {4, 5, 6}, {3, 3, 2}, {1, 2, 1}, ONE, {1, 1, 0}, {1, 0, 1}},
    {"depthwise times 2", 2, 6, 12, 6, {1, 6, 6}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"1-d causal", 3, 4, 16, 1, {1, 1, 33}, {1, 1, 3}, ONE, {1, 1, 2}, {0, 0, 4}, {0}},
    {"1-d long", 1, 64, 8, 1, {1, 1, 4000}, {1, 1, 5}, ONE, ONE, {0, 0, 2}, {0, 0, 2}},
    {"3-d", 2, 2, 16, 1, {5, 6, 7}, {3, 3, 3}, ONE, ONE, {0}, {0}},
    {"3-d padded", 2, 3, 8, 1, {4, 5, 6}, {3, 2, 3}, {2, 1, 2}, ONE, {1, 0, 1}, {1, 1, 1}},
    {"bands of rows", 2, 16, 8, 1, {1, 40, 90}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"bands of columns", 1, 256, 8, 1, {1, 4, 200}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"kernel as large as input", 4, 3, 10, 1, {1, 4, 5}, {1, 4, 5}, ONE, ONE, {0}, {0}},
    {"tiles of 2x2", 3, 16, 16, 1, {1, 10, 12}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"odd tiles and channels", 3, 17, 19, 1, {1, 9, 11}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"tiles, no padding", 2, 32, 16, 1, {1, 8, 11}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"tiles, one-sided padding", 3, 16, 33, 1, {1, 7, 6}, {1, 3, 3}, ONE, ONE, {0, 0, 2}, {0, 2, 0}},
    {"tiles, full padding", 2, 18, 16, 1, {1, 6, 6}, {1, 3, 3}, ONE, ONE, {0, 2, 2}, {0, 2, 2}},
    {"many tiles", 5, 16, 48, 1, {1, 31, 30}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"5x5 tiles", 2, 16, 16, 1, {1, 10, 13}, {1, 5, 5}, ONE, ONE, {0, 2, 2}, {0, 2, 2}},
    {"5x5 tiles, one-sided", 3, 17, 18, 1, {1, 9, 8}, {1, 5, 5}, ONE, ONE, {0, 4, 0}, {0, 0, 3}},
    {"1-d tiles of 3", 3, 16, 20, 1, {1, 1, 61}, {1, 1, 3}, ONE, ONE, {0, 0, 2}, {0}},
    {"1-d tiles of 5", 4, 24, 16, 1, {1, 1, 120}, {1, 1, 5}, ONE, ONE, {0}, {0}},
    {"1-d tiles, odd", 2, 19, 33, 1, {1, 1, 47}, {1, 1, 5}, ONE, ONE, {0, 0, 1}, {0, 0, 4}},
    {"rows of tiles", 2, 16, 17, 1, {1, 5, 9}, {1, 1, 5}, ONE, ONE, {0, 0, 2}, {0, 0, 2}},
    {"tiles of 4x4, all edges", 2, 16, 16, 1, {1, 3, 13}, {1, 3, 3}, ONE, ONE, {0, 1, 2}, {0, 1, 0}},
    {"1x1", 3, 8, 20, 1, {1, 5, 5}, {1, 1, 1}, ONE, ONE, {0}, {0}},
    {"1x1, many pixels", 3, 48, 33, 1, {1, 21, 19}, {1, 1, 1}, ONE, ONE, {0}, {0}},
    {"1x1, padded", 2, 16, 16, 1, {1, 5, 6}, {1, 1, 1}, ONE, ONE, {0, 1, 0}, {0, 0, 1}},
    {"1x1, shifted", 2, 16, 32, 1, {1, 5, 6}, {1, 1, 1}, ONE, ONE, {0, 1, 0}, {0, -1, 0}},
    {"1x1 stride", 3, 8, 16, 1, {1, 5, 6}, {1, 1, 1}, {1, 2, 2}, ONE, {0}, {0}},
    {"one pixel", 1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, ONE, ONE, {0}, {0}},
    {"empty batch", 0, 3, 8, 1, {1, 5, 5}, {1, 3, 3}, ONE, ONE, {0}, {0}},
    {"few pixels", 3, 96, 320, 1, {1, 2, 2}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, {0, 1, 1}},
    {"few pixels, stride", 2, 130, 230, 1, {1, 3, 5}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 0}, {0, 1, 2}},
    {"few pixels, dilation", 2, 70, 420, 1, {1, 4, 5}, {1, 3, 3}, ONE, {1, 2, 3}, {0, 2, 3}, {0, 1, 1}},
    {"few pixels, taps nobody has", 1, 110, 100, 1, {1, 1, 2}, {1, 5, 5}, ONE, ONE, {0, 2, 4}, {0, 2, 4}},
    {"few pixels, 1x1 stride", 2, 520, 510, 1, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, ONE, {0}, {0}},
    {"few pixels, 3-d", 2, 100, 132, 1, {2, 2, 1}, {3, 3, 3}, ONE, ONE, {1, 1, 1}, {1, 1, 1}},
    {"padding wider than image", 2, 2, 8, 1, {1, 2, 2}, {1, 5, 5}, ONE, ONE, {0, 4, 4}, {0, 4, 4}},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof cases[0] };

static stk_conv problem(const conv_case *k, stk_dtype dtype)
{
    stk_conv c = {.n = k->n, .ic = k->ic, .oc = k->oc, .groups = k->groups, .dtype = dtype};
    for (int i = 0; i < 3; i++) {
        c.in[i] = k->in[i];
        c.kernel[i] = k->kernel[i];
        c.stride[i] = k->stride[i];
        c.dilation[i] = k->dilation[i];
        c.low[i] = k->low[i];
        int64_t wide = (k->kernel[i] - 1) * k->dilation[i] + 1;
        c.out[i] = (k->in[i] + k->low[i] + k->high[i] - wide) / k->stride[i] + 1;
    }
    return c;
}

static int64_t volume(const int64_t s[3]) { return s[0] * s[1] * s[2]; }

/* Elements of the three arrays of a kernel id, output last. */
static void sizes(const stk_conv *c, stk_kernel kernel, int64_t out[3])
{
    int64_t x = c->n * volume(c->in) * c->ic, y = c->n * volume(c->out) * c->oc;
    int64_t w = volume(c->kernel) * (c->ic / c->groups) * c->oc;
    out[0] = kernel == STK_K_CONV_BWD_DATA ? y : x;
    out[1] = kernel == STK_K_CONV_BWD_WEIGHT ? y : w;
    out[2] = kernel == STK_K_CONV ? y : kernel == STK_K_CONV_BWD_DATA ? x : w;
}

static float *make(int64_t n, uint64_t seed)
{
    float *x =
        stk_malloc((size_t)n * sizeof *x); /* exact size: a sanitizer sees reads behind the end */
    fill_exact(x, n, seed);
    return x;
}

static float *run_once(stk_kernel kernel, const char *name, const stk_conv *c, float *a, float *b,
                       int64_t n, int32_t parts, bool backwards)
{
    float *out = stk_malloc((size_t)n * sizeof *out);
    memset(out, 0xff, (size_t)n * sizeof *out); /* NaN: every element has to be written */
    run_problem(kernel, name, c, (void *[]){a, b, out}, 3, parts, backwards);
    return out;
}

/* Tiles of 6 points subtract larger numbers than the result is made of: what is lost grows with the size of a sum of
 * that many terms, not with the sum. */
static double tolerance_of(const stk_conv *c, stk_kernel kernel, const char *name)
{
    double taps = (double)volume(c->kernel), terms = taps * (double)c->ic;
    if (kernel == STK_K_CONV_BWD_DATA) terms = taps * (double)c->oc;
    if (kernel == STK_K_CONV_BWD_WEIGHT) terms = (double)(c->n * volume(c->out));
    return strcmp(name, "winograd6") && strcmp(name, "grid") ? 1e-5 : 1e-5 * sqrt(terms);
}

/* Numbers of 24 bits, for kernels that cut them into pieces; all others are shown when they lose a bit of a short one. */
static void lengthen(const char *name, float *x, int64_t n)
{
    for (int64_t i = 0; !strcmp(name, "grid") && i < n; i++) x[i] *= 0.7654321f;
}

/* Leaves one number in `sparse` of dy's: of all images, or of every second one only. 1: as it is. */
static void thin_out(const stk_conv *c, stk_kernel kernel, float *a, float *b, int64_t sparse,
                     bool all)
{
    float *dy = kernel == STK_K_CONV_BWD_DATA ? a : kernel == STK_K_CONV_BWD_WEIGHT ? b : NULL;
    const int64_t each = volume(c->out) * c->oc;
    for (int64_t i = 0; dy && sparse > 1 && i < c->n * each; i++)
        if ((all || i / each % 2) && (i * 7919 + i / 31) % sparse) dy[i] = 0;
}

static void compare(const conv_case *k, stk_kernel kernel, const char *name, int64_t sparse,
                    bool all)
{
    stk_conv c = problem(k, STK_F32);
    int64_t n[3];
    if (!takes_problem(kernel, name, &c)) return;
    sizes(&c, kernel, n);
    float *a = make(n[0], 1), *b = make(n[1], 2);
    lengthen(name, a, n[0]);
    lengthen(name, b, n[1]);
    thin_out(&c, kernel, a, b, sparse, all);
    float *expected = run_once(kernel, "ref", &c, a, b, n[2], 1, false);
    for (int32_t parts = 1; parts <= (k->n ? k->n : 1); parts++) {
        float *got = run_once(kernel, name, &c, a, b, n[2], parts, parts % 2 == 0);
        if (!CHECK_NEAR_F32(got, expected, n[2], tolerance_of(&c, kernel, name), 1e-5))
            printf("    case '%s', %s %s, %d parts, %s\n", k->name, stk_kernel_name(kernel), name,
                   parts, stk_vec_get()->name);
        stk_free(got);
    }
    stk_free(a);
    stk_free(b);
    stk_free(expected);
}

TEST(kernels_agree_with_ref)
{
    EACH_ISA
    for (int i = 0; i < KERNELS; i++)
        for (int j = 0; j < NAMES; j++)
            for (int k = 0; k < CASES; k++) compare(&cases[k], kernels[i], names[j], 1, true);
}

/* dy with few numbers, in all images or in some, is added up number by number; with some more it is not. */
TEST(few_numbers_agree_with_ref)
{
    static const int64_t sparse[] = {17, 300};
    EACH_ISA
    for (int i = 1; i < KERNELS; i++)
        for (int j = 0; j < NAMES; j++)
            for (int k = 0; k < CASES; k++)
                for (int s = 0; s < 2; s++) {
                    stk_conv c = problem(&cases[k], STK_F32);
                    if (!stk_conv_few_floats(&c)) continue;
                    compare(&cases[k], kernels[i], names[j], sparse[s], true);
                    compare(&cases[k], kernels[i], names[j], sparse[s], false);
                }
}

/* That this way is taken can be seen: what is zero is not multiplied, so an infinite weight spoils nothing but its own filter. */
static bool skips_zeros(stk_kernel kernel, const char *name, int64_t sparse)
{
    const conv_case text = {"text", 4, 24, 16, 1, {1, 1, 120}, {1, 1, 5}, ONE, ONE, {0}, {0}};
    stk_conv c = problem(&text, STK_F32);
    int64_t n[3];
    CHECK(takes_problem(kernel, name, &c));
    sizes(&c, kernel, n);
    float *a = make(n[0], 1), *b = make(n[1], 2), *other = kernel == STK_K_CONV_BWD_DATA ? b : a;
    thin_out(&c, kernel, a, b, sparse, true);
    for (int64_t i = 0; i < c.n * volume(c.out); i++)
        (kernel == STK_K_CONV_BWD_DATA ? a : b)[i * c.oc] = 0;
    for (int64_t i = 0; i < 5 * 24 && kernel == STK_K_CONV_BWD_DATA; i++) other[i * 16] = INFINITY;
    if (kernel == STK_K_CONV_BWD_WEIGHT) other[0] = INFINITY;
    for (int64_t o = 0; o < c.oc && kernel == STK_K_CONV_BWD_WEIGHT; o++) b[o] = 0;
    float *out = run_once(kernel, name, &c, a, b, n[2], 2, false);
    bool finite = true;
    for (int64_t i = 0; i < n[2]; i++) finite &= (bool)isfinite(out[i]);
    stk_free(a);
    stk_free(b);
    stk_free(out);
    return finite;
}

TEST(few_numbers_are_added_one_by_one)
{
    static const char *const able[] = {"own", "winograd6"};
    EACH_ISA
    for (int i = 1; i < KERNELS; i++)
        for (int j = 0; j < 2; j++) {
            CHECK(skips_zeros(kernels[i], able[j], 40));
            CHECK(!skips_zeros(kernels[i], able[j], 4));
        }
}

/* ---- bfloat16: the reference in float on the same numbers, rounded ------------------------------ */

static void *halves(const float *from, int64_t n)
{
    uint16_t *to = stk_malloc((size_t)n * sizeof *to + 1);
    for (int64_t i = 0; i < n; i++) stk_store_f64(STK_BF16, to + i, from[i]);
    return to;
}

static const char *const half_names[] = {"onednn",    "taps", "pairs", "winograd",
                                         "winograd6", "wide", "grid"};
enum { HALF_NAMES = sizeof half_names / sizeof half_names[0], GRID = HALF_NAMES - 1 };

static void compare_halves(const conv_case *k, stk_kernel kernel, const char *name, int64_t sparse)
{
    stk_conv c = problem(k, STK_BF16), floats = problem(k, STK_F32);
    int64_t n[3];
    if (!takes_problem(kernel, name, &c)) return;
    sizes(&c, kernel, n);
    float *a = make(n[0], 1), *b = make(n[1], 2), *got = stk_malloc((size_t)n[2] * sizeof *got);
    thin_out(&c, kernel, a, b, sparse, k->n % 2);
    void *left = halves(a, n[0]), *right = halves(b, n[1]);
    for (int64_t i = 0; i < n[0]; i++) a[i] = (float)stk_load_f64(STK_BF16, (uint16_t *)left + i);
    for (int64_t i = 0; i < n[1]; i++) b[i] = (float)stk_load_f64(STK_BF16, (uint16_t *)right + i);
    float *expected = run_once(kernel, "ref", &floats, a, b, n[2], 1, false);
    for (int32_t parts = 1; parts <= k->n; parts++) {
        uint16_t *out = stk_malloc((size_t)n[2] * sizeof *out);
        memset(out, 0xff, (size_t)n[2] * sizeof *out);
        run_problem(kernel, name, &c, (void *[]){left, right, out}, 3, parts, parts % 2 == 0);
        for (int64_t i = 0; i < n[2]; i++) got[i] = (float)stk_load_f64(STK_BF16, out + i);
        if (!CHECK_NEAR_F32(got, expected, n[2], 4e-3, 4e-3))
            printf("    case '%s', %s %s, %d parts\n", k->name, stk_kernel_name(kernel), name,
                   parts);
        stk_free(out);
    }
    stk_free(a);
    stk_free(b);
    stk_free(got);
    stk_free(left);
    stk_free(right);
    stk_free(expected);
}

/* Tiles by the processor's instructions where it has them, and by plain C where it can be (vec/tiles.h). */
TEST(bfloat16_agrees_with_ref)
{
    static const char *const sets[] = {"avx512", "amx", "amx-emulated"};
    for (int set = 0; set < 3; set++) {
        int taken[HALF_NAMES] = {0};
        if (!stk_vec_find(sets[set])) continue;
        stk_vec_use(stk_vec_find(sets[set]));
        for (int i = 0; i < KERNELS; i++)
            for (int j = set ? GRID : 0; j < HALF_NAMES; j++)
                for (int k = 0; k < CASES; k++) {
                    stk_conv c = problem(&cases[k], STK_BF16);
                    taken[j] += takes_problem(kernels[i], half_names[j], &c);
                    compare_halves(&cases[k], kernels[i], half_names[j], 1);
                    if (i && stk_conv_few_floats(&c))
                        compare_halves(&cases[k], kernels[i], half_names[j], 40);
                }
        for (int j = 1; j < GRID; j++)
            CHECK(set || !stk_isa_has_pairs() || taken[j] > (j > 1 ? 20 : 15));
        for (int j = GRID; j < HALF_NAMES; j++) CHECK(taken[j] > 30 || !set);
    }
    stk_vec_use(NULL);
}

TEST(depthwise_bfloat16_agrees_with_ref)
{
    EACH_ISA
    for (int i = 0, taken = 0; i < KERNELS; i++, taken = 0) {
        for (int k = 0; k < CASES; k++) {
            stk_conv c = problem(&cases[k], STK_BF16);
            taken += takes_problem(kernels[i], "deep", &c);
            compare_halves(&cases[k], kernels[i], "deep", 1);
        }
        CHECK(taken >= 13);
    }
}

/* Rounded inputs: the bits may depend on the parts (sums of weights), never on the order they run in; images are
 * independent, so forward and backward data give the same bits for any cut. */
static void check_bits(const conv_case *k, stk_kernel kernel, const char *name)
{
    stk_conv c = problem(k, STK_F32);
    int64_t n[3];
    if (c.n < 2 || !takes_problem(kernel, name, &c)) return;
    sizes(&c, kernel, n);
    float *a = make(n[0], 1), *b = make(n[1], 2);
    fill_uniform(a, n[0], 3);
    fill_uniform(b, n[1], 4);
    float *one =
        run_once(kernel, name, &c, a, b, n[2], kernel == STK_K_CONV_BWD_WEIGHT ? 2 : 1, false);
    float *two = run_once(kernel, name, &c, a, b, n[2], 2, true);
    if (!CHECK(!memcmp(one, two, (size_t)n[2] * sizeof *one)))
        printf("    case '%s', %s %s\n", k->name, stk_kernel_name(kernel), name);
    stk_free(one);
    stk_free(two);
    stk_free(a);
    stk_free(b);
}

TEST(bits_do_not_depend_on_the_cut)
{
    EACH_ISA
    for (int i = 0; i < KERNELS; i++)
        for (int j = 0; j < NAMES; j++)
            for (int k = 0; k < CASES; k++) check_bits(&cases[k], kernels[i], names[j]);
}

/* By instructions and by plain C, as with bfloat16. */
TEST(floats_in_thirds_agree_with_ref)
{
    static const char *const sets[] = {"amx", "amx-emulated"};
    static const char way[] = "grid";
    for (int set = 0; set < 2; set++) {
        int taken = 0;
        if (!stk_vec_find(sets[set])) continue;
        stk_vec_use(stk_vec_find(sets[set]));
        for (int i = 0; i < KERNELS; i++)
            for (int k = 0; k < CASES; k++) {
                stk_conv c = problem(&cases[k], STK_F32);
                taken += takes_problem(kernels[i], way, &c);
                compare(&cases[k], kernels[i], way, 1, true);
                check_bits(&cases[k], kernels[i], way);
                if (i) compare(&cases[k], kernels[i], way, 300, false);
            }
        CHECK(taken > 20);
    }
    stk_vec_use(NULL);
}

/* The three kernels are one bilinear form: <conv(x, w), dy> = <x, data(dy, w)> = <w, weight(x, dy)>, in float64. */
TEST(reference_kernels_are_adjoint)
{
    for (int k = 0; k < CASES; k++) {
        stk_conv c = problem(&cases[k], STK_F64);
        int64_t n[3];
        sizes(&c, STK_K_CONV, n);
        double *v[6]; /* x w dy | y dx dw */
        int64_t count[6] = {n[0], n[1], n[2], n[2], n[0], n[1]};
        for (int i = 0; i < 6; i++) {
            v[i] = stk_malloc((size_t)count[i] * sizeof(double));
            for (int64_t j = 0; j < count[i]; j++)
                v[i][j] = (double)((j * 7919 + i * 31) % 101) / 50 - 1;
        }
        run_problem(STK_K_CONV, "ref", &c, (void *[]){v[0], v[1], v[3]}, 3, 1, false);
        run_problem(STK_K_CONV_BWD_DATA, "ref", &c, (void *[]){v[2], v[1], v[4]}, 3, 1, false);
        run_problem(STK_K_CONV_BWD_WEIGHT, "ref", &c, (void *[]){v[0], v[2], v[5]}, 3, 1, false);
        double dot[3] = {0};
        for (int64_t j = 0; j < n[2]; j++) dot[0] += v[3][j] * v[2][j];
        for (int64_t j = 0; j < n[0]; j++) dot[1] += v[4][j] * v[0][j];
        for (int64_t j = 0; j < n[1]; j++) dot[2] += v[5][j] * v[1][j];
        CHECK_NEAR(dot[1], dot[0], 1e-9 * (1 + fabs(dot[0])) * (double)(n[2] + 1));
        CHECK_NEAR(dot[2], dot[0], 1e-9 * (1 + fabs(dot[0])) * (double)(n[2] + 1));
        for (int i = 0; i < 6; i++) stk_free(v[i]);
    }
}

static stk_status prepare_once(const stk_impl *impl, const stk_conv *c, stk_error *err)
{
    stk_launch launch = {.params = c, .units = c->n, .parts = 1, .impl = impl};
    stk_status status = impl->prepare(&launch, err);
    if (status == STK_OK) impl->discard(&launch);
    return status;
}

TEST(preparing_survives_without_memory)
{
    stk_error err;
    for (int k = 0; k < CASES; k++) {
        stk_conv c = problem(&cases[k], STK_F32);
        if (strcmp(cases[k].name, "stride 2 odd") && strcmp(cases[k].name, "depthwise odd"))
            continue;
        for (int i = 0; i < KERNELS; i++)
            for (int j = 0; j < NAMES; j++)
                if (takes_problem(kernels[i], names[j], &c) &&
                    launch_impl(launch_device(1), kernels[i], names[j])->prepare)
                    OOM_LOOP(prepare_once(launch_impl(launch_device(1), kernels[i], names[j]), &c,
                                          &err));
    }
}

TEST_MAIN()
