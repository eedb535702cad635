/* Resampling in two passes, rows first: the input rows of one output row are added up, then the columns of the sum. A
 * picture may be there as a whole, or come row by row from a decoder; then only the rows in use are kept, which stay in
 * the caches. Both give the same bits: contraction is off, and sums have one order. */
#include "base/avx2.h"
#include "base/resize_taps.h"
#include "data/pixels/pixels.h"

#include <string.h>

/* Row y lies at data + y % kept * bytes; a whole picture keeps all. */
typedef struct row_store {
    const char *data;
    int64_t bytes, kept;
} row_store;

static inline const void *row_at(const row_store *s, int64_t y)
{
    return s->data + y % s->kept * s->bytes;
}

/* ---- rows --------------------------------------------------------------------------------------- */

#define SUM_ROWS(NAME, TYPE)                                                                       \
    STK_ALWAYS_INLINE void NAME(const row_store *s, int64_t first, int64_t taps,                   \
                                const float *weight, float *restrict sum, int64_t n)               \
    {                                                                                              \
        int64_t t = 1;                                                                             \
        const TYPE *a = row_at(s, first);                                                          \
        float u = weight[0];                                                                       \
        if (taps > 1) { /* the usual two in one go */                                              \
            const TYPE *b = row_at(s, first + 1);                                                  \
            float v = weight[1];                                                                   \
            for (int64_t i = 0; i < n; i++) sum[i] = (float)a[i] * u + (float)b[i] * v;            \
            t = 2;                                                                                 \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) sum[i] = (float)a[i] * u;                              \
        }                                                                                          \
        for (; t < taps; t++) {                                                                    \
            a = row_at(s, first + t);                                                              \
            u = weight[t];                                                                         \
            for (int64_t i = 0; i < n; i++) sum[i] += (float)a[i] * u;                             \
        }                                                                                          \
    }
SUM_ROWS(sum_u8, uint8_t)
SUM_ROWS(sum_f32, float)

STK_AVX2 static void sum_rows_wide(const row_store *s, bool bytes, int64_t first, int64_t taps,
                                   const float *weight, float *sum, int64_t n)
{
    if (bytes) /* no choice of functions: each has to be built for this set of instructions */
        sum_u8(s, first, taps, weight, sum, n);
    else
        sum_f32(s, first, taps, weight, sum, n);
}
static void sum_rows_narrow(const row_store *s, bool bytes, int64_t first, int64_t taps,
                            const float *weight, float *sum, int64_t n)
{
    if (bytes)
        sum_u8(s, first, taps, weight, sum, n);
    else
        sum_f32(s, first, taps, weight, sum, n);
}

/* ---- columns ------------------------------------------------------------------------------------ */

/* One output row from the summed row. Three channels by hand: the compiler does not see them otherwise. */
static void sum_columns(const stk_taps *taps, const float *row, int64_t c, float *out)
{
    for (int64_t x = 0; x < taps->n; x++, out += c) {
        const float *from = row + taps->first[x] * c, *weight = taps->weight + taps->at[x];
        int32_t n = taps->at[x + 1] - taps->at[x];
        if (c == 3) {
            float s0 = 0, s1 = 0, s2 = 0;
            for (int32_t t = 0; t < n; t++, from += 3) {
                s0 += from[0] * weight[t];
                s1 += from[1] * weight[t];
                s2 += from[2] * weight[t];
            }
            out[0] = s0, out[1] = s1, out[2] = s2;
            continue;
        }
        for (int64_t k = 0; k < c; k++) {
            float s = 0;
            for (int32_t t = 0; t < n; t++) s += from[t * c + k] * weight[t];
            out[k] = s;
        }
    }
}

static void make_row(const stk_taps *rows, const stk_taps *columns, const row_store *s, bool bytes,
                     int64_t y, int64_t w, int64_t c, float *sum, float *out)
{
    (STK_HAS_AVX2() ? sum_rows_wide : sum_rows_narrow)(s, bytes, rows->first[y],
                                                       rows->at[y + 1] - rows->at[y],
                                                       rows->weight + rows->at[y], sum, w * c);
    sum_columns(columns, sum, c, out);
}

/* ---- a picture that is there -------------------------------------------------------------------- */

static void pick(const stk_canvas *in, const stk_canvas *out, const stk_taps *rows,
                 const stk_taps *columns)
{
    size_t pixel = (size_t)in->c * (in->dtype == STK_U8 ? 1 : 4);
    char *to = out->data;
    for (int64_t y = 0; y < out->h; y++) {
        const char *from = (const char *)in->data + (size_t)(rows->first[y] * in->w) * pixel;
        for (int64_t x = 0; x < out->w; x++, to += pixel)
            memcpy(to, from + (size_t)columns->first[x] * pixel, pixel);
    }
}

size_t stk_resample_scratch(const stk_canvas *in) { return (size_t)(in->w * in->c) * 4 + 64; }

stk_status stk_resample(const stk_canvas *in, const stk_canvas *out, int32_t kind, bool antialias,
                        void *scratch, stk_error *err)
{
    stk_taps *rows = NULL, *columns = NULL;
    bool bytes = in->dtype == STK_U8;
    row_store s = {in->data, in->w * in->c * (bytes ? 1 : 4), in->h};
    stk_status status = stk_taps_new(kind, antialias, 0, in->h, out->h, &rows, err);
    if (status == STK_OK) status = stk_taps_new(kind, antialias, 0, in->w, out->w, &columns, err);
    if (status == STK_OK && kind == STK_TAPS_NEAREST) {
        pick(in, out, rows, columns);
    } else if (status == STK_OK) {
        float *to = out->data;
        for (int64_t y = 0; y < out->h; y++, to += out->w * out->c)
            make_row(rows, columns, &s, bytes, y, in->w, in->c, scratch, to);
    }
    stk_taps_free(rows);
    stk_taps_free(columns);
    return status;
}

/* ---- a picture that comes row by row ------------------------------------------------------------- */

struct stk_resampler {
    stk_taps *rows, *columns;
    row_store store; /* over `memory` */
    uint8_t *memory;
    float *sum;
    int64_t w, c;
    int64_t next; /* output row to be made */
    stk_canvas out;
};

stk_status stk_resampler_new(int64_t h, int64_t w, const stk_canvas *out, int32_t kind,
                             bool antialias, stk_resampler **made, stk_error *err)
{
    *made = NULL;
    stk_resampler *r = stk_calloc(1, sizeof *r);
    if (!r) return stk_fail_memory(err, "resize", sizeof *r);
    r->w = w;
    r->c = out->c;
    r->out = *out;
    stk_status status = stk_taps_new(kind, antialias, 0, h, out->h, &r->rows, err);
    if (status == STK_OK) status = stk_taps_new(kind, antialias, 0, w, out->w, &r->columns, err);
    for (int64_t y = 0; status == STK_OK && y < out->h; y++)
        r->store.kept = stk_max_i64(r->store.kept, r->rows->at[y + 1] - r->rows->at[y]);
    r->store.bytes = stk_ceil_div(w * out->c, 64) * 64;
    size_t memory = (size_t)(r->store.bytes * r->store.kept), sum = (size_t)(w * out->c) * 4;
    if (status == STK_OK) {
        r->memory = stk_malloc(memory);
        r->sum = stk_malloc(sum);
        if (!r->memory || !r->sum) status = stk_fail_memory(err, "resize", memory + sum);
    }
    if (status != STK_OK) {
        stk_resampler_free(r);
        return status;
    }
    r->store.data = (const char *)r->memory;
    *made = r;
    return STK_OK;
}

/* Windows only move down: row y is in one exactly if it is in that of the next row, or behind its begin. */
uint8_t *stk_resampler_place(stk_resampler *r, int64_t y)
{
    if (r->next >= r->out.h || y < r->rows->first[r->next]) return NULL;
    return r->memory + y % r->store.kept * r->store.bytes;
}

void stk_resampler_put(stk_resampler *r, int64_t y)
{
    for (; r->next < r->out.h; r->next++) {
        int64_t last =
            r->rows->first[r->next] + r->rows->at[r->next + 1] - r->rows->at[r->next] - 1;
        if (last > y) return;
        make_row(r->rows, r->columns, &r->store, true, r->next, r->w, r->c, r->sum,
                 (float *)r->out.data + r->next * r->out.w * r->c);
    }
}

void stk_resampler_free(stk_resampler *r)
{
    if (!r) return;
    stk_taps_free(r->rows);
    stk_taps_free(r->columns);
    stk_free(r->memory);
    stk_free(r->sum);
    stk_free(r);
}
