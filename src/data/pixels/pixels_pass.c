/* The passes that are limited by memory: one read, one write, everything else in between. Written once, compiled for
 * AVX2 as well where the machine may have it. No step may differ between the two: contraction is off. */
#include "base/avx2.h"
#include "data/pixels/pixels.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

/* ---- scale and shift ---------------------------------------------------------------------------- */

STK_ALWAYS_INLINE void affine_u8(const uint8_t *restrict in, float *restrict out, int64_t n,
                                 float scale, float offset)
{
    for (int64_t i = 0; i < n; i++) out[i] = (float)in[i] * scale + offset;
}
STK_ALWAYS_INLINE void affine_f32(const float *restrict in, float *restrict out, int64_t n,
                                  float scale, float offset)
{
    for (int64_t i = 0; i < n; i++) out[i] = in[i] * scale + offset;
}

enum { PERIOD = 24 }; /* a multiple of 1, 2, 3, 4 channels and of the vector width */

/* Per channel: the numbers repeat with period c, so PERIOD of them are laid out once. */
STK_ALWAYS_INLINE void affine_each_u8(const uint8_t *restrict in, float *restrict out, int64_t n,
                                      const float *restrict scale, const float *restrict offset)
{
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++) out[i + k] = (float)in[i + k] * scale[k] + offset[k];
    for (int k = 0; i < n; i++, k++) out[i] = (float)in[i] * scale[k] + offset[k];
}
STK_ALWAYS_INLINE void affine_each_f32(const float *restrict in, float *restrict out, int64_t n,
                                       const float *restrict scale, const float *restrict offset)
{
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++) out[i + k] = in[i + k] * scale[k] + offset[k];
    for (int k = 0; i < n; i++, k++) out[i] = in[i] * scale[k] + offset[k];
}

/* Stores past the caches: a large picture is not read again before its batch is whole, and a line that is written as a
 * whole need not be fetched first. Rows must be whole lines. What is read is asked for early: such stores keep the
 * processor from looking far ahead by itself, and mirrored rows are read backwards. Whoever calls ends with a fence. */
enum { STREAM_BYTES = 256 * 1024, EARLY = 2048 };
#if defined(__x86_64__) && defined(__GNUC__)
STK_AVX2 static void stream_u8(const uint8_t *in, float *out, int64_t n, float scale, float offset)
{
    const __m256 s = _mm256_set1_ps(scale), o = _mm256_set1_ps(offset);
    for (int64_t i = 0; i < n; i += 16) {
        if (i % 64 == 0) __builtin_prefetch(in + i + EARLY, 0, 0);
        __m128i bytes = _mm_loadu_si128((const __m128i *)(in + i));
        __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
        __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
        _mm256_stream_ps(out + i, _mm256_add_ps(_mm256_mul_ps(low, s), o));
        _mm256_stream_ps(out + i + 8, _mm256_add_ps(_mm256_mul_ps(high, s), o));
    }
}
static void stream_end(bool streamed)
{
    if (streamed) _mm_sfence();
}
static bool streams(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out)
{
    int64_t row = in->w * in->c * (int64_t)sizeof(float);
    return p->affine && !p->each && in->dtype == STK_U8 && in->h * row >= STREAM_BYTES &&
           row % 64 == 0 && (uintptr_t)out->data % 64 == 0 && STK_HAS_AVX2();
}
#else
static void stream_u8(const uint8_t *in, float *out, int64_t n, float scale, float offset)
{
    (void)in, (void)out, (void)n, (void)scale, (void)offset;
}
static void stream_end(bool streamed) { (void)streamed; }
static bool streams(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out)
{
    (void)p, (void)in, (void)out;
    return false;
}
#endif

/* ---- mirrored rows ------------------------------------------------------------------------------ */

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* Three bytes per pixel: five pixels at a time, turned around inside a register. out has 16 bytes to spare. */
STK_ALWAYS_INLINE void mirror_3(const uint8_t *in, uint8_t *out, int64_t pixels)
{
    int64_t x = pixels;
    if (x > 0) { /* sixteen bytes are read for fifteen: the last pixel must have one behind it */
        memcpy(out, in + 3 * (x - 1), 3);
        x--, out += 3;
    }
    for (; x >= 5; x -= 5, out += 15) {
        bytes16 v;
        memcpy(&v, in + 3 * (x - 5), 16);
        v = __builtin_shufflevector(v, v, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, 15);
        memcpy(out, &v, 16);
    }
    for (; x > 0; x--, out += 3) memcpy(out, in + 3 * (x - 1), 3);
}

STK_ALWAYS_INLINE void mirror_row(const uint8_t *in, uint8_t *out, int64_t pixels, int64_t bytes)
{
    if (bytes == 3) {
        mirror_3(in, out, pixels);
    } else if (bytes == 1) {
        for (int64_t x = 0; x < pixels; x++) out[x] = in[pixels - 1 - x];
    } else if (bytes == 4) {
        for (int64_t x = 0; x < pixels; x++) memcpy(out + 4 * x, in + 4 * (pixels - 1 - x), 4);
    } else if (bytes == 12) {
        for (int64_t x = 0; x < pixels; x++) memcpy(out + 12 * x, in + 12 * (pixels - 1 - x), 12);
    } else {
        for (int64_t x = 0; x < pixels; x++)
            memcpy(out + bytes * x, in + bytes * (pixels - 1 - x), (size_t)bytes);
    }
}

/* ---- the pass ----------------------------------------------------------------------------------- */

STK_ALWAYS_INLINE void run_row(const stk_pixel_pass *p, const stk_canvas *in, const void *from,
                               void *to, int64_t n, const float *scale, const float *offset,
                               bool stream)
{
    if (stream) /* rows are whole lines */
        stream_u8(from, to, n, scale[0], offset[0]);
    else if (!p->affine)
        memcpy(to, from, (size_t)n * (in->dtype == STK_U8 ? 1 : 4));
    else if (in->dtype == STK_U8 && !p->each)
        affine_u8(from, to, n, scale[0], offset[0]);
    else if (in->dtype == STK_U8)
        affine_each_u8(from, to, n, scale, offset);
    else if (!p->each)
        affine_f32(from, to, n, scale[0], offset[0]);
    else
        affine_each_f32(from, to, n, scale, offset);
}

STK_ALWAYS_INLINE void run(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out,
                           void *scratch)
{
    float scale[PERIOD], offset[PERIOD];
    for (int k = 0; k < PERIOD; k++) {
        int64_t c = p->each ? k % in->c : 0;
        scale[k] = p->scale[c];
        offset[k] = p->offset[c];
    }
    int64_t n = in->w * in->c, unit = in->dtype == STK_U8 ? 1 : 4;
    bool stream = streams(p, in, out);
    if (!p->flip_lr && !p->flip_ud) { /* all rows are one */
        run_row(p, in, in->data, out->data, n * in->h, scale, offset, stream);
        stream_end(stream);
        return;
    }
    int64_t ahead = (EARLY / (n * unit) + 1) * n * unit * (p->flip_ud ? -1 : 1);
    for (int64_t y = 0; y < in->h; y++) {
        const uint8_t *from =
            (const uint8_t *)in->data + (p->flip_ud ? in->h - 1 - y : y) * n * unit;
        char *to = (char *)out->data + y * n * (p->affine ? 4 : unit);
        if (p->flip_lr) {
            for (int64_t b = 0; b < n * unit; b += 64) __builtin_prefetch(from + ahead + b, 0, 0);
            mirror_row(from, scratch, in->w, in->c * unit);
            from = scratch;
        }
        run_row(p, in, from, to, n, scale, offset, stream);
    }
    stream_end(stream);
}

STK_AVX2 static void run_wide(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out,
                              void *scratch)
{
    run(p, in, out, scratch);
}
static void run_narrow(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out,
                       void *scratch)
{
    run(p, in, out, scratch);
}

void stk_pass_run(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out,
                  void *scratch)
{
    (STK_HAS_AVX2() ? run_wide : run_narrow)(p, in, out, scratch);
}
