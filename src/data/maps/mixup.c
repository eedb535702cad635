/* mixup and cutmix: functions over batches (images, labels). Image i is mixed with image (i + shift) mod n, where
 * shift is drawn per batch and the share per image, both from (seed, batch). */
#include "base/rng.h"
#include "base/tensor.h"
#include "data/json/pipeline.h"
#include "stoker/pixels.h"

#include <math.h>
#include <string.h>

typedef struct mix {
    double alpha;
    bool cut;
} mix;

/* Beta(a, a) by Johnk's method: u^(1/a) / (u^(1/a) + v^(1/a)) for the first pair that sums to at most 1. Large a would
 * need many pairs; they are nearly 1/2 then. */
static double draw_beta(double alpha, stk_rng rng, uint64_t first)
{
    enum { TRIES = 64 };
    for (uint64_t k = 0; k < TRIES; k++) {
        uint32_t w[4];
        stk_rng_block(rng, first * TRIES + k, w);
        for (int half = 0; half < 2; half++) {
            double u = ((double)w[2 * half] + 0.5) * 0x1p-32,
                   v = ((double)w[2 * half + 1] + 0.5) * 0x1p-32;
            double x = pow(u, 1 / alpha), y = pow(v, 1 / alpha);
            if (x + y <= 1 && x + y > 0) return x / (x + y);
        }
    }
    return 0.5;
}

static void blend(const float *a, const float *b, float *out, int64_t n, float share)
{
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * share + b[i] * (1 - share);
}

/* A window of b in a copy of a, with about 1 - share of its area; returns a's true share. */
static float paste(const stk_tensor *x, const float *a, const float *b, float *out, double share,
                   const uint32_t w[4])
{
    int64_t h = x->shape[1], wide = x->shape[2], c = x->shape[3];
    double side = sqrt(1 - share);
    int64_t ph = (int64_t)((double)h * side), pw = (int64_t)((double)wide * side);
    int64_t cy = (int64_t)(((uint64_t)w[0] * (uint64_t)h) >> 32);
    int64_t cx = (int64_t)(((uint64_t)w[1] * (uint64_t)wide) >> 32);
    int64_t y0 = stk_max_i64(cy - ph / 2, 0), y1 = stk_min_i64(cy - ph / 2 + ph, h);
    int64_t x0 = stk_max_i64(cx - pw / 2, 0), x1 = stk_min_i64(cx - pw / 2 + pw, wide);
    memcpy(out, a, (size_t)(h * wide * c) * sizeof *out);
    for (int64_t y = y0; y < y1 && x1 > x0; y++)
        memcpy(out + (y * wide + x0) * c, b + (y * wide + x0) * c,
               (size_t)((x1 - x0) * c) * sizeof *out);
    double pasted = y1 > y0 && x1 > x0 ? (double)((y1 - y0) * (x1 - x0)) : 0;
    return (float)(1 - pasted / (double)(h * wide));
}

static stk_status check(const mix *m, stk_tensor *const *in, int32_t inputs, stk_error *err)
{
    if (inputs != 2 || in[0]->dtype != STK_F32 || in[1]->dtype != STK_F32 || in[0]->rank < 1 ||
        in[1]->rank < 1 || in[0]->shape[0] != in[1]->shape[0] || (m->cut && in[0]->rank != 4))
        return stk_fail(
            err, STK_ERR_SHAPE,
            "%s: takes batches (images, labels) of float32, labels one-hot; here are %d "
            "parts, the first %s",
            m->cut ? "cutmix" : "mixup", inputs, STK_TENSOR_TEXT(in[0]));
    return STK_OK;
}

static stk_status mix_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    const mix *m = context;
    STK_TRY(check(m, in, info->inputs, err));
    stk_tensor *from[2] = {NULL, NULL}, *made[2] = {NULL, NULL};
    stk_status status = stk_tensor_dense(in[0], &from[0], err);
    if (status == STK_OK) status = stk_tensor_dense(in[1], &from[1], err);
    for (int k = 0; k < 2 && status == STK_OK; k++)
        if (!out[k] || !stk_tensor_is_dense(out[k]))
            status = stk_tensor_raw(STK_F32, in[k]->rank, in[k]->shape, &made[k], err);
    int64_t n = status == STK_OK ? from[0]->shape[0] : 0;
    uint32_t w[4];
    stk_rng rng = {info->seed, 17};
    stk_rng_block((stk_rng){info->seed, 16}, (uint64_t)info->index, w);
    int64_t shift = n > 1 ? 1 + (int64_t)(((uint64_t)w[0] * (uint64_t)(n - 1)) >> 32) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t each[2] = {stk_tensor_count(from[0]) / n, stk_tensor_count(from[1]) / n};
        int64_t other = (i + shift) % n;
        uint64_t draw = (uint64_t)info->index * (uint64_t)n + (uint64_t)i;
        float share = (float)draw_beta(m->alpha, rng, draw);
        for (int k = 0; k < 2; k++) {
            const float *a = (const float *)from[k]->data + i * each[k];
            const float *b = (const float *)from[k]->data + other * each[k];
            float *to = (float *)(made[k] ? made[k] : out[k])->data + i * each[k];
            stk_rng_block((stk_rng){info->seed, 18}, draw, w);
            if (k == 0 && m->cut)
                share = paste(from[0], a, b, to, (double)share, w);
            else
                blend(a, b, to, each[k], share);
        }
    }
    for (int k = 0; k < 2; k++) {
        stk_tensor_release(from[k]);
        if (status == STK_OK && made[k]) out[k] = made[k];
        if (status != STK_OK) stk_tensor_release(made[k]);
    }
    return status;
}

static void mix_release(void *context) { stk_free(context); }

stk_status stk_map_mixup(double alpha, bool cutmix, stk_map_fn *fn, stk_error *err)
{
    if (!(alpha > 0 && alpha < 1000))
        return stk_fail(err, STK_ERR_RANGE, "mixup: alpha is %g, it has to be above 0", alpha);
    mix *m = stk_calloc(1, sizeof *m);
    if (!m) return stk_fail_memory(err, "mixup", sizeof *m);
    *m = (mix){alpha, cutmix};
    *fn = (stk_map_fn){.name = cutmix ? "cutmix" : "mixup",
                       .context = m,
                       .call = mix_call,
                       .release = mix_release};
    return STK_OK;
}

static stk_status read_mix(const stk_json *op, bool cut, stk_map_fn *fn, stk_error *err)
{
    static const char *const known[] = {"alpha", "parallel", "unordered", "seed", NULL};
    double alpha = cut ? 1 : 0.2;
    STK_TRY(stk_options_known(op, known, err));
    STK_TRY(stk_option_double(op, "alpha", &alpha, err));
    return stk_map_mixup(alpha, cut, fn, err);
}
stk_status stk_read_mixup(const stk_json *op, const char *folder, stk_map_fn *fn, stk_error *err)
{
    (void)folder;
    return read_mix(op, false, fn, err);
}
stk_status stk_read_cutmix(const stk_json *op, const char *folder, stk_map_fn *fn, stk_error *err)
{
    (void)folder;
    return read_mix(op, true, fn, err);
}
