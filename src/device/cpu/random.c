/* Random numbers on the CPU. base/rng.c makes them, any piece of a stream on any thread; here a stream is chosen
 * and the elements are stored as the type asked for. There is no second implementation: the bits are the definition. */
#include "device/cpu/cpu.h"

#include "device/cpu/vec/random.h"

enum { PIECE = 1024 };

static int64_t count_of(const void *params) { return ((const stk_random_params *)params)->count; }
static int64_t grain_of(const void *params)
{
    (void)params;
    return PIECE;
}
static uint32_t result_cut(const void *params)
{
    (void)params;
    return 2;
}

static bool supports_random(const void *params)
{
    const stk_random_params *p = params;
    if (p->kind == STK_RANDOM_INT) return p->dtype == STK_I32 || p->dtype == STK_I64;
    bool real = p->dtype == STK_F32 || p->dtype == STK_F64;
    return real || (p->kind == STK_RANDOM_BERNOULLI && p->dtype == STK_BOOL);
}

static void uniform(const stk_random_params *p, stk_rng rng, int64_t lo, int64_t n, void *out)
{
    if (p->dtype == STK_F32)
        stk_vec_get()->random->uniform(rng, lo, n, (float)p->a, (float)p->b, (float *)out + lo);
    else
        stk_rng_uniform_f64(rng, lo, n, p->a, p->b, (double *)out + lo);
}

static void normal(const stk_random_params *p, stk_rng rng, int64_t lo, int64_t n, void *out)
{
    if (p->dtype == STK_F32)
        stk_vec_get()->random->normal(rng, lo, n, (float)p->a, (float)p->b, (float *)out + lo);
    else
        stk_rng_normal_f64(rng, lo, n, p->a, p->b, (double *)out + lo);
}

/* Doubles come from the same draws as floats; only mean and deviation are applied in double. */
static void truncated(const stk_random_params *p, stk_rng rng, int64_t lo, int64_t n, void *out)
{
    if (p->dtype == STK_F32) {
        stk_rng_truncated(rng, lo, n, (float)p->a, (float)p->b, (float *)out + lo);
        return;
    }
    float draw[PIECE];
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t count = stk_min_i64(n - done, PIECE);
        double *to = (double *)out + lo + done;
        stk_rng_truncated(rng, lo + done, count, 0, 1, draw);
        for (int64_t i = 0; i < count; i++) to[i] = p->a + p->b * (double)draw[i];
    }
}

static void bernoulli(const stk_random_params *p, stk_rng rng, int64_t lo, int64_t n, void *out)
{
    if (p->dtype == STK_BOOL) {
        stk_vec_get()->random->bernoulli(rng, lo, n, p->a, (uint8_t *)out + lo);
        return;
    }
    uint8_t draw[PIECE];
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t count = stk_min_i64(n - done, PIECE), at = lo + done;
        stk_vec_get()->random->bernoulli(rng, at, count, p->a, draw);
        for (int64_t i = 0; p->dtype == STK_F32 && i < count; i++)
            ((float *)out)[at + i] = (float)draw[i];
        for (int64_t i = 0; p->dtype == STK_F64 && i < count; i++)
            ((double *)out)[at + i] = (double)draw[i];
    }
}

/* high may be 2^31 for int32, one more than the type holds; the 64-bit draws are the same numbers. */
static void integers(const stk_random_params *p, stk_rng rng, int64_t lo, int64_t n, void *out)
{
    if (p->dtype == STK_I64) {
        stk_rng_int64(rng, lo, n, p->low, p->high, (int64_t *)out + lo);
        return;
    }
    int64_t draw[PIECE];
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t count = stk_min_i64(n - done, PIECE);
        int32_t *to = (int32_t *)out + lo + done;
        stk_rng_int64(rng, lo + done, count, p->low, p->high, draw);
        for (int64_t i = 0; i < count; i++) to[i] = (int32_t)draw[i];
    }
}

static void run_random(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    static void (*const make[STK_RANDOM_KINDS])(const stk_random_params *, stk_rng, int64_t,
                                                int64_t, void *) = {
        [STK_RANDOM_UNIFORM] = uniform,
        [STK_RANDOM_NORMAL] = normal,
        [STK_RANDOM_TRUNCATED_NORMAL] = truncated,
        [STK_RANDOM_BERNOULLI] = bernoulli,
        [STK_RANDOM_INT] = integers,
    };
    const stk_random_params *p = l->params;
    (void)part;
    make[p->kind](p, stk_random_stream(p, *(const int64_t *)l->arg[0]), lo, hi - lo, l->arg[1]);
}

static void run_permutation(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_random_params *p = l->params;
    (void)lo, (void)hi, (void)part;
    stk_rng_permutation(stk_random_stream(p, *(const int64_t *)l->arg[0]), p->count, l->arg[1]);
}

const stk_impl stk_impl_random_own = {.name = "own",
                                      .kernel = STK_K_RANDOM,
                                      .supports = supports_random,
                                      .units = count_of,
                                      .grain = grain_of,
                                      .aligned = result_cut,
                                      .run = run_random};
const stk_impl stk_impl_permutation_own = {
    .name = "own", .kernel = STK_K_PERMUTATION, .run = run_permutation};
