/* Picking and placing by index: gather, scatter, take_along, put_along, ravel_index, one_hot.
 *
 * Units are rows of the output. A scatter cuts its destination, not its updates: each part walks all indices
 * and serves those that fall into its rows, in the order they were given, so no atomics are needed and the
 * bits do not depend on the cut. */
#include "device/cpu/cpu.h"
#include "device/cpu/index.h"
#include "device/cpu/index_note.h"
#include "device/cpu/vec/index.h"

#include <string.h>

/* ---- gather -------------------------------------------------------------------------------------- */

enum { WORTH_A_PART = 16384 }; /* bytes moved by one part, at least */

static int64_t grain_of_rows(int64_t bytes) { return stk_rows_worth(bytes, WORTH_A_PART); }

static int64_t gather_units(const void *params)
{
    const stk_gather_params *p = params;
    return p->batch * p->outer * p->count;
}

static int64_t gather_grain(const void *params)
{
    const stk_gather_params *p = params;
    return grain_of_rows(p->inner * stk_dtype_size((stk_dtype)p->dtype));
}

static uint32_t gather_aligned(const void *params)
{
    const stk_gather_params *p = params;
    return p->outer == 1 ? 2u | 4u
                         : 4u; /* the output; the indices when there is one row for each */
}

/* Rows of a size known to the compiler: a load and a store instead of a call. */
#define GATHER_SIZED(name, type)                                                                   \
    static void name(uint8_t *out, const uint8_t *x, int64_t n, const void *index, int32_t itype,  \
                     int64_t first, int64_t count, stk_index_note *note)                           \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            int64_t at = stk_index_at(index, itype, first + i);                                    \
            type v = {0};                                                                          \
            if ((uint64_t)at < (uint64_t)n)                                                        \
                memcpy(&v, x + at * (int64_t)sizeof v, sizeof v);                                  \
            else                                                                                   \
                stk_index_note_put(note, first + i, &at);                                          \
            memcpy(out + i * (int64_t)sizeof v, &v, sizeof v);                                     \
        }                                                                                          \
    }
typedef struct gather_16 {
    uint64_t half[2];
} gather_16;
GATHER_SIZED(gather_rows_1, uint8_t)
GATHER_SIZED(gather_rows_2, uint16_t)
GATHER_SIZED(gather_rows_4, uint32_t)
GATHER_SIZED(gather_rows_8, uint64_t)
GATHER_SIZED(gather_rows_16, gather_16)

static void gather_rows(uint8_t *out, const uint8_t *x, int64_t n, const void *index, int32_t itype,
                        int64_t first, int64_t count, int64_t row, stk_index_note *note)
{
    switch (row) {
    case 1: gather_rows_1(out, x, n, index, itype, first, count, note); return;
    case 2: gather_rows_2(out, x, n, index, itype, first, count, note); return;
    case 4: gather_rows_4(out, x, n, index, itype, first, count, note); return;
    case 8: gather_rows_8(out, x, n, index, itype, first, count, note); return;
    case 16: gather_rows_16(out, x, n, index, itype, first, count, note); return;
    default: break;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = stk_index_at(index, itype, first + i);
        if ((uint64_t)at < (uint64_t)n) {
            memcpy(out + i * row, x + at * row, (size_t)row);
        } else {
            memset(out + i * row, 0, (size_t)row);
            stk_index_note_put(note, first + i, &at);
        }
    }
}

static void gather_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_gather_params *p = l->params;
    int64_t row = p->inner * stk_dtype_size((stk_dtype)p->dtype);
    const uint8_t *x = l->arg[0];
    uint8_t *out = l->arg[2];
    while (lo < hi) {
        int64_t block = lo / p->count, i = lo % p->count;
        int64_t count = stk_min_i64(p->count - i, hi - lo), batch = block / p->outer;
        gather_rows(out + lo * row, x + block * p->n * row, p->n, l->arg[1], p->index,
                    batch * p->count + i, count, row, l->note);
        lo += count;
    }
}

const stk_impl stk_impl_gather_own = {.name = "own",
                                      .kernel = STK_K_GATHER,
                                      .units = gather_units,
                                      .grain = gather_grain,
                                      .aligned = gather_aligned,
                                      .run = gather_run};

/* ---- scatter ------------------------------------------------------------------------------------- */

enum { STRETCH = 1024 }; /* indices looked at together */

static bool scatter_supports(const void *params)
{
    return ((const stk_scatter_params *)params)->at.n <= INT32_MAX;
}

static int64_t scatter_units(const void *params)
{
    const stk_scatter_params *p = params;
    return p->at.batch * p->at.outer * p->at.n;
}

/* Every part reads the indices of its blocks, so a block is not cut into more parts than a few dozen. Not fewer either: the
 * update of an embedding follows its gradient part by part, which should still be in the cache. */
static int64_t scatter_grain(const void *params)
{
    enum { PARTS_PER_BLOCK = 64 };
    const stk_scatter_params *p = params;
    int64_t bytes = grain_of_rows(p->at.inner * stk_dtype_size((stk_dtype)p->at.dtype));
    return stk_max_i64(bytes, p->at.n / PARTS_PER_BLOCK);
}

static uint32_t scatter_aligned(const void *params)
{
    const stk_scatter_params *p = params;
    return p->base ? 4u | 8u : 4u;
}

#define ADD_ROW(SUFFIX, type, sum)                                                                 \
    case STK_##SUFFIX: {                                                                           \
        type *to = out;                                                                            \
        const type *from = x;                                                                      \
        for (int64_t i = 0; i < n; i++) to[i] = (type)((sum)to[i] + (sum)from[i]);                 \
        break;                                                                                     \
    }
static void add_row(void *restrict out, const void *restrict x, int64_t n, int32_t dtype)
{
    switch (dtype) {
        STK_SCATTER_TYPES(ADD_ROW)
    default: break;
    }
}

/* Rows lo..hi of one block, for a stretch of its indices: those that name such rows, in order. */
static void scatter_stretch(const stk_scatter_params *p, const stk_vec_index *vec, uint8_t *out,
                            const int32_t *index, int64_t count, const uint8_t *updates, int64_t lo,
                            int64_t hi)
{
    int32_t at[STRETCH + STK_SPARE];
    const int64_t inner = p->at.inner, row = inner * stk_dtype_size((stk_dtype)p->at.dtype);
    const int64_t found = vec->between(count, index, (int32_t)lo, (int32_t)hi, at);
    for (int64_t i = 0; i < found; i++) {
        uint8_t *to = out + index[at[i]] * row;
        const uint8_t *from = updates + at[i] * row;
        if (p->mode == STK_SCATTER_SET)
            memcpy(to, from, (size_t)row);
        else if (p->at.dtype == STK_F32)
            vec->add(inner, (float *)(void *)to, (const float *)(const void *)from);
        else
            add_row(to, from, inner, p->at.dtype);
    }
}

/* The low halves; -1 for what is no row of a table of 2^31 at most. */
static const int32_t *narrow(const int64_t *index, int64_t count, int32_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = index[i] == (int32_t)index[i] ? (int32_t)index[i] : -1;
    return to;
}

static void scatter_block(const stk_scatter_params *p, uint8_t *out, const void *index,
                          int64_t first, const uint8_t *updates, int64_t lo, int64_t hi)
{
    const stk_vec_index *vec = stk_vec_get()->index;
    const int64_t row = p->at.inner * stk_dtype_size((stk_dtype)p->at.dtype);
    int32_t narrowed[STRETCH];
    for (int64_t i = 0, count; i < p->at.count; i += count) {
        count = stk_min_i64(STRETCH, p->at.count - i);
        const int32_t *from = p->at.index == STK_I32
                                  ? (const int32_t *)index + first + i
                                  : narrow((const int64_t *)index + first + i, count, narrowed);
        scatter_stretch(p, vec, out, from, count, updates + i * row, lo, hi);
    }
}

static void scatter_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_scatter_params *p = l->params;
    int64_t row = p->at.inner * stk_dtype_size((stk_dtype)p->at.dtype), n = p->at.n;
    uint8_t *out = l->arg[p->base ? 3 : 2];
    if (p->base && l->arg[2] != l->arg[3])
        memcpy(out + lo * row, (uint8_t *)l->arg[2] + lo * row, (size_t)((hi - lo) * row));
    else if (!p->base)
        memset(out + lo * row, 0, (size_t)((hi - lo) * row));
    while (lo < hi) {
        int64_t block = lo / n, from = lo % n, to = stk_min_i64(n, from + hi - lo);
        scatter_block(p, out + block * n * row, l->arg[0], block / p->at.outer * p->at.count,
                      (uint8_t *)l->arg[1] + block * p->at.count * row, from, to);
        lo += to - from;
    }
}

const stk_impl stk_impl_scatter_own = {.name = "own",
                                       .kernel = STK_K_SCATTER,
                                       .supports = scatter_supports,
                                       .units = scatter_units,
                                       .grain = scatter_grain,
                                       .aligned = scatter_aligned,
                                       .run = scatter_run};

/* ---- take_along, put_along: units are the outer blocks ---------------------------------------------- */

static int64_t along_units(const void *params) { return ((const stk_along_params *)params)->outer; }

static int64_t along_grain(const void *params)
{
    const stk_along_params *p = params;
    return grain_of_rows(stk_max_i64(p->n, p->count) * p->inner *
                         stk_dtype_size((stk_dtype)p->dtype));
}

static uint32_t along_aligned(const void *params)
{
    (void)params;
    return 1u | 2u | 4u;
}

#define TAKE_SIZED(bytes, type)                                                                    \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < p->count; i++)                                                     \
            for (int64_t k = 0; k < p->inner; k++) {                                               \
                int64_t at = stk_index_at(index, p->index, first + i * p->inner + k);              \
                type v = 0;                                                                        \
                if ((uint64_t)at < (uint64_t)p->n)                                                 \
                    memcpy(&v, x + (at * p->inner + k) * bytes, bytes);                            \
                else                                                                               \
                    stk_index_note_put(l->note, first + i * p->inner + k, &at);                    \
                memcpy(out + (i * p->inner + k) * bytes, &v, bytes);                               \
            }                                                                                      \
        break;
static void take_along_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_along_params *p = l->params;
    int64_t item = stk_dtype_size((stk_dtype)p->dtype), width = p->count * p->inner;
    const void *index = l->arg[1];
    for (int64_t o = lo; o < hi; o++) {
        const uint8_t *x = (const uint8_t *)l->arg[0] + o * p->n * p->inner * item;
        uint8_t *out = (uint8_t *)l->arg[2] + o * width * item;
        int64_t first = o * width;
        switch (item) {
            TAKE_SIZED(1, uint8_t)
            TAKE_SIZED(2, uint16_t)
            TAKE_SIZED(4, uint32_t)
            TAKE_SIZED(8, uint64_t)
        default: break;
        }
    }
}

const stk_impl stk_impl_take_along_own = {.name = "own",
                                          .kernel = STK_K_TAKE_ALONG,
                                          .units = along_units,
                                          .grain = along_grain,
                                          .aligned = along_aligned,
                                          .run = take_along_run};

#define PUT_TYPED(SUFFIX, type, sum)                                                               \
    case STK_##SUFFIX: {                                                                           \
        type *out = (type *)l->arg[2] + o * p->n * p->inner;                                       \
        const type *x = (const type *)l->arg[1] + first;                                           \
        for (int64_t i = 0; i < p->count; i++)                                                     \
            for (int64_t k = 0; k < p->inner; k++) {                                               \
                int64_t at = stk_index_at(l->arg[0], p->index, first + i * p->inner + k);          \
                if ((uint64_t)at >= (uint64_t)p->n) continue;                                      \
                type *to = out + at * p->inner + k;                                                \
                *to = (type)((sum)*to + (sum)x[i * p->inner + k]);                                 \
            }                                                                                      \
        break;                                                                                     \
    }
static void put_along_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_along_params *p = l->params;
    int64_t block = p->n * p->inner * stk_dtype_size((stk_dtype)p->dtype);
    for (int64_t o = lo; o < hi; o++) {
        int64_t first = o * p->count * p->inner;
        memset((uint8_t *)l->arg[2] + o * block, 0, (size_t)block);
        switch (p->dtype) {
            STK_SCATTER_TYPES(PUT_TYPED)
        default: break;
        }
    }
}

const stk_impl stk_impl_put_along_own = {.name = "own",
                                         .kernel = STK_K_PUT_ALONG,
                                         .units = along_units,
                                         .grain = along_grain,
                                         .aligned = along_aligned,
                                         .run = put_along_run};

/* ---- ravel_index ------------------------------------------------------------------------------------ */

static int64_t ravel_units(const void *params)
{
    const stk_ravel_params *p = params;
    return p->batch * p->count;
}

static int64_t ravel_grain(const void *params)
{
    return grain_of_rows(8 * (1 + ((const stk_ravel_params *)params)->depth));
}

static uint32_t ravel_aligned(const void *params)
{
    (void)params;
    return 1u | 2u;
}

static void ravel_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_ravel_params *p = l->params;
    int64_t *out = l->arg[1];
    for (int64_t u = lo; u < hi; u++) {
        int64_t flat = u / p->count, at[STK_MAX_RANK];
        bool inside = true;
        for (int64_t d = 0; d < p->depth; d++) {
            at[d] = stk_index_at(l->arg[0], (int32_t)p->index, u * p->depth + d);
            inside &= (uint64_t)at[d] < (uint64_t)p->dim[d];
            flat = inside ? flat * p->dim[d] + at[d] : 0;
        }
        if (!inside) stk_index_note_put(l->note, u, at);
        out[u] = inside ? flat : -1;
    }
}

const stk_impl stk_impl_ravel_index_own = {.name = "own",
                                           .kernel = STK_K_RAVEL_INDEX,
                                           .units = ravel_units,
                                           .grain = ravel_grain,
                                           .aligned = ravel_aligned,
                                           .run = ravel_run};

/* ---- one_hot ------------------------------------------------------------------------------------------ */

static int64_t one_hot_units(const void *params)
{
    return ((const stk_one_hot_params *)params)->outer;
}

static int64_t one_hot_grain(const void *params)
{
    const stk_one_hot_params *p = params;
    return grain_of_rows(p->depth * p->inner * p->item);
}

static uint32_t one_hot_aligned(const void *params)
{
    (void)params;
    return 1u | 2u;
}

static void fill_items(uint8_t *out, int64_t count, const uint8_t *value, int64_t item)
{
    bool zero = true;
    for (int64_t b = 0; b < item; b++) zero &= value[b] == 0;
    if (zero) {
        memset(out, 0, (size_t)(count * item));
        return;
    }
    for (int64_t i = 0; i < count; i++) memcpy(out + i * item, value, (size_t)item);
}

static void one_hot_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_one_hot_params *p = l->params;
    int64_t block = p->depth * p->inner;
    uint8_t *out = l->arg[1];
    fill_items(out + lo * block * p->item, (hi - lo) * block, p->off, p->item);
    for (int64_t o = lo; o < hi; o++)
        for (int64_t i = 0; i < p->inner; i++) {
            int64_t at = stk_index_at(l->arg[0], (int32_t)p->index, o * p->inner + i);
            if ((uint64_t)at >= (uint64_t)p->depth) continue;
            memcpy(out + (o * block + at * p->inner + i) * p->item, p->on, (size_t)p->item);
        }
}

const stk_impl stk_impl_one_hot_own = {.name = "own",
                                       .kernel = STK_K_ONE_HOT,
                                       .units = one_hot_units,
                                       .grain = one_hot_grain,
                                       .aligned = one_hot_aligned,
                                       .run = one_hot_run};
