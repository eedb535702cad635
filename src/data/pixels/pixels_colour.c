/* Colours and moves of pixels: plain loops, one function per step. */
#include "data/pixels/pixels.h"

#include <math.h>
#include <string.h>

/* ---- element types ------------------------------------------------------------------------------ */

void stk_unit_from_u8(const uint8_t *in, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = (float)in[i] * (1.0f / 255);
}

void stk_unit_to_u8(const float *in, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v = in[i] * 255.5f;
        out[i] = (uint8_t)(v > 0 ? (v < 255 ? v : 255) : 0);
    }
}

/* ---- colours ------------------------------------------------------------------------------------ */

void stk_contrast(const stk_canvas *image, float factor)
{
    float *x = image->data;
    int64_t pixels = image->h * image->w, c = image->c;
    for (int64_t k = 0; k < c && pixels > 0; k++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += (double)x[i * c + k];
        float mean = (float)(sum / (double)pixels);
        for (int64_t i = 0; i < pixels; i++) x[i * c + k] = (x[i * c + k] - mean) * factor + mean;
    }
}

typedef struct hsv {
    float hue, saturation, value; /* hue in turns, 0 .. 1 */
} hsv;

static hsv to_hsv(const float *p)
{
    float high = fmaxf(fmaxf(p[0], p[1]), p[2]), low = fminf(fminf(p[0], p[1]), p[2]);
    float range = high - low;
    hsv a = {0, high > 0 ? range / high : 0, high};
    if (range > 0) {
        float unit = 1.0f / (6.0f * range);
        if (p[0] == high)
            a.hue = unit * (p[1] - p[2]);
        else if (p[1] == high)
            a.hue = unit * (p[2] - p[0]) + 2.0f / 6.0f;
        else
            a.hue = unit * (p[0] - p[1]) + 4.0f / 6.0f;
    }
    if (a.hue < 0) a.hue += 1;
    return a;
}

static float clip01(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

static void from_hsv(hsv a, float *p)
{
    float h = a.hue * 6;
    float r = clip01(fabsf(h - 3) - 1), g = clip01(2 - fabsf(h - 2)), b = clip01(2 - fabsf(h - 4));
    p[0] = (1 - a.saturation + a.saturation * r) * a.value;
    p[1] = (1 - a.saturation + a.saturation * g) * a.value;
    p[2] = (1 - a.saturation + a.saturation * b) * a.value;
}

void stk_saturation(const stk_canvas *image, float factor)
{
    float *p = image->data;
    for (int64_t i = image->h * image->w; i > 0; i--, p += 3) {
        hsv a = to_hsv(p);
        a.saturation = clip01(a.saturation * factor);
        from_hsv(a, p);
    }
}

void stk_hue(const stk_canvas *image, float delta)
{
    float *p = image->data;
    for (int64_t i = image->h * image->w; i > 0; i--, p += 3) {
        hsv a = to_hsv(p);
        a.hue += delta;
        a.hue -= floorf(a.hue);
        from_hsv(a, p);
    }
}

void stk_grayscale(const stk_canvas *in, const stk_canvas *out)
{
    const float *p = in->data;
    float *to = out->data;
    for (int64_t i = 0; i < in->h * in->w; i++, p += 3)
        to[i] = 0.2989f * p[0] + 0.5870f * p[1] + 0.1140f * p[2];
}

/* A flat image is divided by 1 / sqrt(elements), not by 0. */
void stk_standardise(const stk_canvas *image)
{
    float *x = image->data;
    int64_t n = stk_canvas_count(image);
    if (n == 0) return;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    double least = 1 / sqrt((double)n), deviation = sqrt(square / (double)n);
    float by = (float)(deviation > least ? deviation : least), middle = (float)mean;
    for (int64_t i = 0; i < n; i++) x[i] = (x[i] - middle) / by;
}

/* ---- moving ------------------------------------------------------------------------------------- */

static size_t pixel_bytes(const stk_canvas *a)
{
    return (size_t)a->c * (a->dtype == STK_U8 ? 1 : 4);
}

void stk_window_copy(const stk_canvas *in, int64_t top, int64_t left, const stk_canvas *out)
{
    size_t pixel = pixel_bytes(in), row = (size_t)out->w * pixel;
    for (int64_t y = 0; y < out->h; y++)
        memcpy((char *)out->data + (size_t)y * row,
               (const char *)in->data + (size_t)((top + y) * in->w + left) * pixel, row);
}

void stk_rotate(const stk_canvas *in, int32_t turns, const stk_canvas *out)
{
    size_t pixel = pixel_bytes(in);
    char *to = out->data;
    for (int64_t y = 0; y < out->h; y++)
        for (int64_t x = 0; x < out->w; x++, to += pixel) {
            int64_t sy = turns == 1 ? x : turns == 2 ? in->h - 1 - y : in->h - 1 - x;
            int64_t sx = turns == 1 ? in->w - 1 - y : turns == 2 ? in->w - 1 - x : y;
            memcpy(to, (const char *)in->data + (size_t)(sy * in->w + sx) * pixel, pixel);
        }
}

void stk_pad_into(const stk_canvas *in, int64_t top, int64_t left, const stk_canvas *out)
{
    size_t pixel = pixel_bytes(in), row = (size_t)in->w * pixel;
    memset(out->data, 0, stk_canvas_bytes(out));
    for (int64_t y = 0; y < in->h; y++)
        memcpy((char *)out->data + (size_t)((top + y) * out->w + left) * pixel,
               (const char *)in->data + (size_t)y * row, row);
}

void stk_paint(const stk_canvas *image, int64_t top, int64_t left, int64_t h, int64_t w,
               float value)
{
    int64_t y1 = stk_min_i64(top + h, image->h), x1 = stk_min_i64(left + w, image->w);
    for (int64_t y = stk_max_i64(top, 0); y < y1; y++)
        for (int64_t x = stk_max_i64(left, 0); x < x1; x++)
            for (int64_t k = 0; k < image->c; k++) {
                int64_t at = (y * image->w + x) * image->c + k;
                if (image->dtype == STK_U8)
                    ((uint8_t *)image->data)[at] =
                        (uint8_t)(value > 0 ? value < 255 ? value : 255 : 0);
                else
                    ((float *)image->data)[at] = value;
            }
}
