/* Kernels that move elements and compute nothing: copy, fill, pad, concat, iota.
 *
 * A copy is first brought to its simplest form (sizes of 1 dropped, neighbouring dimensions joined), then
 * takes one of three ways:
 *
 *     rows        innermost dimension contiguous on both sides: memcpy
 *     transpose   output contiguous along the last dimension, input along another: blocks that fit in L1
 *     any         innermost loop with steps */
#include "device/cpu/cpu.h"
#include "device/cpu/walk.h"

#include <string.h>

typedef struct bytes16 {
    uint64_t half[2];
} bytes16;

/* ---- copy ----------------------------------------------------------------------------------------- */

typedef struct copy_plan {
    int32_t rank;
    int64_t dim[STK_MAX_RANK];
    int64_t stride[2][STK_MAX_RANK]; /* in, out */
    int64_t item;
    int64_t rows; /* product of all dimensions but the last */
    bool flat;    /* one contiguous run: units are elements */
    bool transposes;
} copy_plan;

static copy_plan plan_copy(const stk_copy_params *p)
{
    copy_plan c = {.item = p->item};
    memcpy(c.dim, p->dim, sizeof c.dim);
    memcpy(c.stride[0], p->in_stride, sizeof c.stride[0]);
    memcpy(c.stride[1], p->out_stride, sizeof c.stride[1]);
    c.rank = stk_collapse((int32_t)p->rank, c.dim, 2, c.stride[0], STK_MAX_RANK);
    int32_t last = c.rank - 1;
    c.flat = c.rank == 1 && c.stride[0][0] == 1 && c.stride[1][0] == 1;
    bool steps = c.stride[0][last] != 0 && c.stride[0][last] != 1;
    if (c.stride[1][last] == 1 && steps && c.item <= 8) {
        for (int32_t d = 0; d < last; d++) {
            if (c.stride[0][d] != 1) continue;
            /* The order of the outer dimensions is free: bring this one next to the last. */
            for (; d < last - 1; d++) {
                int64_t swap = c.dim[d];
                c.dim[d] = c.dim[d + 1], c.dim[d + 1] = swap;
                for (int s = 0; s < 2; s++) {
                    swap = c.stride[s][d];
                    c.stride[s][d] = c.stride[s][d + 1], c.stride[s][d + 1] = swap;
                }
            }
            c.transposes = true;
        }
    }
    c.rows = 1;
    for (int32_t d = 0; d < last; d++) c.rows *= c.dim[d];
    return c;
}

/* y[r][c] = x[c][r] for r < rows, c < cols. */
#define PLAIN_TRANSPOSE(name, type)                                                                \
    static inline void name(int64_t rows, int64_t cols, type *y, int64_t y_step, const type *x,    \
                            int64_t x_step)                                                        \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < cols; c++) y[r * y_step + c] = x[c * x_step + r];              \
    }
PLAIN_TRANSPOSE(plain_1, uint8_t)
PLAIN_TRANSPOSE(plain_2, uint16_t)
PLAIN_TRANSPOSE(plain_4, uint32_t)
PLAIN_TRANSPOSE(plain_8, uint64_t)

/* Words by 4 x 4 in registers: two rounds of interleaving. */
typedef uint32_t words __attribute__((vector_size(16)));
static inline void square_4(uint32_t *y, int64_t y_step, const uint32_t *x, int64_t x_step)
{
    words row[4], pair[4], col[4];
    for (int i = 0; i < 4; i++) memcpy(&row[i], x + i * x_step, sizeof row[i]);
    pair[0] = __builtin_shufflevector(row[0], row[2], 0, 4, 1, 5);
    pair[1] = __builtin_shufflevector(row[1], row[3], 0, 4, 1, 5);
    pair[2] = __builtin_shufflevector(row[0], row[2], 2, 6, 3, 7);
    pair[3] = __builtin_shufflevector(row[1], row[3], 2, 6, 3, 7);
    col[0] = __builtin_shufflevector(pair[0], pair[1], 0, 4, 1, 5);
    col[1] = __builtin_shufflevector(pair[0], pair[1], 2, 6, 3, 7);
    col[2] = __builtin_shufflevector(pair[2], pair[3], 0, 4, 1, 5);
    col[3] = __builtin_shufflevector(pair[2], pair[3], 2, 6, 3, 7);
    for (int i = 0; i < 4; i++) memcpy(y + i * y_step, &col[i], sizeof col[i]);
}

static inline void block_4(int64_t rows, int64_t cols, uint32_t *y, int64_t y_step,
                           const uint32_t *x, int64_t x_step)
{
    int64_t r = 0, whole = cols & ~(int64_t)3;
    for (; r + 4 <= rows; r += 4) {
        for (int64_t c = 0; c < whole; c += 4)
            square_4(y + r * y_step + c, y_step, x + c * x_step + r, x_step);
        plain_4(4, cols - whole, y + r * y_step + whole, y_step, x + whole * x_step + r, x_step);
    }
    plain_4(rows - r, cols, y + r * y_step, y_step, x + r, x_step);
}

/* In blocks of one cache line by one cache line, so that every line is fetched once. */
#define TRANSPOSE(name, type, block)                                                               \
    static void name(int64_t rows, int64_t cols, void *to, int64_t to_step, const void *from,      \
                     int64_t from_step)                                                            \
    {                                                                                              \
        enum { SIDE = 64 / sizeof(type) < 16 ? 16 : 64 / sizeof(type) };                           \
        for (int64_t c = 0; c < cols; c += SIDE)                                                   \
            for (int64_t r = 0; r < rows; r += SIDE)                                               \
                block(stk_min_i64(rows - r, SIDE), stk_min_i64(cols - c, SIDE),                    \
                      (type *)to + r * to_step + c, to_step,                                       \
                      (const type *)from + c * from_step + r, from_step);                          \
    }
TRANSPOSE(transpose_1, uint8_t, plain_1)
TRANSPOSE(transpose_2, uint16_t, plain_2)
TRANSPOSE(transpose_4, uint32_t, block_4)
TRANSPOSE(transpose_8, uint64_t, plain_8)

static void transpose(int64_t item, int64_t rows, int64_t cols, void *to, int64_t to_step,
                      const void *from, int64_t from_step)
{
    switch (item) {
    case 1: transpose_1(rows, cols, to, to_step, from, from_step); break;
    case 2: transpose_2(rows, cols, to, to_step, from, from_step); break;
    case 4: transpose_4(rows, cols, to, to_step, from, from_step); break;
    default: transpose_8(rows, cols, to, to_step, from, from_step); break;
    }
}

#define STEPS(name, type)                                                                          \
    static void name(int64_t n, void *to, int64_t to_step, const void *from, int64_t from_step)    \
    {                                                                                              \
        const type *x = from;                                                                      \
        type *y = to;                                                                              \
        if (to_step == 1 && from_step == 0) {                                                      \
            type same = *x;                                                                        \
            for (int64_t i = 0; i < n; i++) y[i] = same;                                           \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i * to_step] = x[i * from_step];                     \
        }                                                                                          \
    }
STEPS(steps_1, uint8_t)
STEPS(steps_2, uint16_t)
STEPS(steps_4, uint32_t)
STEPS(steps_8, uint64_t)
STEPS(steps_16, bytes16)

static void copy_row(int64_t item, int64_t n, void *to, int64_t to_step, const void *from,
                     int64_t from_step)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1: steps_1(n, to, to_step, from, from_step); break;
    case 2: steps_2(n, to, to_step, from, from_step); break;
    case 4: steps_4(n, to, to_step, from, from_step); break;
    case 8: steps_8(n, to, to_step, from, from_step); break;
    default: steps_16(n, to, to_step, from, from_step); break;
    }
}

/* Where row `row` of the first `dims` dimensions begins, in elements, on one side. */
static int64_t row_offset(const copy_plan *c, int side, int32_t dims, int64_t row)
{
    int64_t at = 0;
    for (int32_t d = dims - 1; d >= 0; d--) {
        at += row % c->dim[d] * c->stride[side][d];
        row /= c->dim[d];
    }
    return at;
}

/* Rows [lo, hi) of a transpose: pieces of planes (dim[rank-2], dim[rank-1]). */
static void copy_transposed(const copy_plan *c, const char *in, char *out, int64_t lo, int64_t hi)
{
    int32_t last = c->rank - 1, next = last - 1;
    while (lo < hi) {
        int64_t plane = lo / c->dim[next], first = lo % c->dim[next];
        int64_t rows = stk_min_i64(hi - lo, c->dim[next] - first);
        int64_t from = row_offset(c, 0, next, plane) + first;
        int64_t to = row_offset(c, 1, next, plane) + first * c->stride[1][next];
        transpose(c->item, rows, c->dim[last], out + to * c->item, c->stride[1][next],
                  in + from * c->item, c->stride[0][last]);
        lo += rows;
    }
}

static void copy_rows(const copy_plan *c, const char *in, char *out, int64_t lo, int64_t hi)
{
    int32_t last = c->rank - 1;
    int64_t index[STK_MAX_RANK] = {0}, left = lo;
    for (int32_t d = last - 1; d >= 0; d--) index[d] = left % c->dim[d], left /= c->dim[d];
    int64_t from = row_offset(c, 0, last, lo), to = row_offset(c, 1, last, lo);
    for (; lo < hi; lo++) {
        copy_row(c->item, c->dim[last], out + to * c->item, c->stride[1][last], in + from * c->item,
                 c->stride[0][last]);
        for (int32_t d = last - 1; d >= 0; d--) {
            from += c->stride[0][d], to += c->stride[1][d];
            if (++index[d] < c->dim[d]) break;
            from -= c->dim[d] * c->stride[0][d], to -= c->dim[d] * c->stride[1][d];
            index[d] = 0;
        }
    }
}

static void copy_range(const copy_plan *c, const char *in, char *out, int64_t lo, int64_t hi)
{
    if (lo >= hi || c->dim[c->rank - 1] == 0) return;
    if (c->flat)
        memcpy(out + lo * c->item, in + lo * c->item, (size_t)((hi - lo) * c->item));
    else if (c->transposes)
        copy_transposed(c, in, out, lo, hi);
    else
        copy_rows(c, in, out, lo, hi);
}

static int64_t copy_units(const void *params)
{
    copy_plan c = plan_copy(params);
    return c.flat ? c.dim[0] : c.rows;
}

/* 32 KiB are about 2 us of copying. */
static int64_t copy_grain(const void *params)
{
    copy_plan c = plan_copy(params);
    int64_t bytes = c.flat ? c.item : c.item * c.dim[c.rank - 1];
    return stk_max_i64((32 << 10) / stk_max_i64(bytes, 1), 1);
}

static stk_status copy_prepare(stk_launch *launch, stk_error *err)
{
    copy_plan *plan = stk_malloc(sizeof *plan);
    if (!plan) return stk_fail_memory(err, "the plan of a copy", sizeof *plan);
    *plan = plan_copy(launch->params);
    launch->state = plan;
    return STK_OK;
}

static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

static void copy_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_copy_params *p = launch->params;
    copy_range(launch->state, (const char *)launch->arg[0] + p->in_offset * p->item,
               (char *)launch->arg[1] + p->out_offset * p->item, lo, hi);
}

const stk_impl stk_impl_copy_own = {.name = "own",
                                    .kernel = STK_K_COPY,
                                    .rank = 0,
                                    .units = copy_units,
                                    .grain = copy_grain,
                                    .prepare = copy_prepare,
                                    .discard = discard,
                                    .run = copy_run};

/* One element at a time, straight from the definition. */
static void copy_ref_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_copy_params *p = launch->params;
    for (int64_t u = lo; u < hi; u++) {
        int64_t from = p->in_offset, to = p->out_offset, left = u;
        for (int64_t d = p->rank - 1; d >= 0; d--) {
            from += left % p->dim[d] * p->in_stride[d];
            to += left % p->dim[d] * p->out_stride[d];
            left /= p->dim[d];
        }
        memcpy((char *)launch->arg[1] + to * p->item, (const char *)launch->arg[0] + from * p->item,
               (size_t)p->item);
    }
}

static int64_t copy_elements(const void *params)
{
    const stk_copy_params *p = params;
    int64_t count = 1;
    for (int64_t d = 0; d < p->rank; d++) count *= p->dim[d];
    return count;
}

const stk_impl stk_impl_copy_ref = {
    .name = "ref", .kernel = STK_K_COPY, .rank = 100, .units = copy_elements, .run = copy_ref_run};

/* ---- fill ----------------------------------------------------------------------------------------- */

static void fill(int64_t item, int64_t n, char *to, const void *value)
{
    const uint8_t *bytes = value;
    bool one_byte = true;
    for (int64_t i = 1; i < item; i++) one_byte &= bytes[i] == bytes[0];
    if (n <= 0) return;
    if (one_byte) {
        memset(to, bytes[0], (size_t)(n * item));
        return;
    }
    _Alignas(16) uint8_t element[16];
    memcpy(element, value, (size_t)item);
    copy_row(item, n, to, 1, element, 0);
}

static int64_t fill_units(const void *params) { return ((const stk_fill_params *)params)->count; }
static int64_t fill_grain(const void *params)
{
    return (64 << 10) / stk_max_i64(((const stk_fill_params *)params)->item, 1);
}
static uint32_t fill_aligned(const void *params)
{
    (void)params;
    return 1;
}
static void fill_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_fill_params *p = launch->params;
    fill(p->item, hi - lo, (char *)launch->arg[0] + lo * p->item, p->value);
}

const stk_impl stk_impl_fill_own = {.name = "own",
                                    .kernel = STK_K_FILL,
                                    .rank = 0,
                                    .units = fill_units,
                                    .grain = fill_grain,
                                    .aligned = fill_aligned,
                                    .run = fill_run};

/* ---- pad ------------------------------------------------------------------------------------------ */

/* The output is cut into slabs along the first dimension of the window that has more than one step: slab i holds
 * the i-th step and the padding up to the next; the first also what comes before it, the last what
 * follows. A slab is filled, then its piece of the window is copied, so parts never meet. */
typedef struct pad_plan {
    copy_plan copy;  /* of one slab */
    int64_t slabs;   /* 1: everything at once */
    int64_t step[2]; /* elements from slab to slab: in, out */
    int64_t begin;   /* element where slab 0 would begin without the leading padding */
} pad_plan;

static pad_plan plan_pad(const stk_pad_params *p)
{
    stk_copy_params c = p->copy;
    pad_plan plan = {.slabs = 1};
    int64_t d = 0;
    while (d < c.rank && c.dim[d] == 1) d++;
    if (d < c.rank && c.dim[d] > 0 && c.out_stride[d] > 0) {
        plan.slabs = c.dim[d];
        plan.step[0] = c.in_stride[d], plan.step[1] = c.out_stride[d];
        plan.begin = c.out_offset / c.out_stride[d] * c.out_stride[d];
        c.dim[d] = 1;
    }
    plan.copy = plan_copy(&c);
    return plan;
}

static int64_t pad_units(const void *params) { return plan_pad(params).slabs; }
static int64_t pad_grain(const void *params)
{
    const stk_pad_params *p = params;
    pad_plan plan = plan_pad(p);
    int64_t bytes = p->fill.count * p->fill.item / plan.slabs;
    return stk_max_i64((32 << 10) / stk_max_i64(bytes, 1), 1);
}

static stk_status pad_prepare(stk_launch *launch, stk_error *err)
{
    pad_plan *plan = stk_malloc(sizeof *plan);
    if (!plan) return stk_fail_memory(err, "the plan of a pad", sizeof *plan);
    *plan = plan_pad(launch->params);
    launch->state = plan;
    return STK_OK;
}

static void pad_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pad_params *p = launch->params;
    const pad_plan *plan = launch->state;
    int64_t item = p->copy.item;
    const char *in = (const char *)launch->arg[0] + p->copy.in_offset * item;
    char *out = launch->arg[1], *window = out + p->copy.out_offset * item;
    for (int64_t i = lo; i < hi; i++) {
        int64_t begin = i == 0 ? 0 : plan->begin + i * plan->step[1];
        int64_t end = i == plan->slabs - 1 ? p->fill.count : plan->begin + (i + 1) * plan->step[1];
        fill(item, end - begin, out + begin * item, p->fill.value);
        copy_range(&plan->copy, in + i * plan->step[0] * item, window + i * plan->step[1] * item, 0,
                   plan->copy.flat ? plan->copy.dim[0] : plan->copy.rows);
    }
}

const stk_impl stk_impl_pad_own = {.name = "own",
                                   .kernel = STK_K_PAD,
                                   .rank = 0,
                                   .units = pad_units,
                                   .grain = pad_grain,
                                   .prepare = pad_prepare,
                                   .discard = discard,
                                   .run = pad_run};

/* ---- concat ---------------------------------------------------------------------------------------- */

/* A unit is one block: row u / inputs, input u % inputs. */
static int64_t concat_units(const void *params)
{
    const stk_concat_params *p = params;
    return p->outer * p->inputs;
}

static int64_t concat_grain(const void *params)
{
    const stk_concat_params *p = params;
    return stk_max_i64((32 << 10) * p->inputs / stk_max_i64(p->total, 1), 1);
}

static void concat_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_concat_params *p = launch->params;
    int64_t row = lo / p->inputs, i = lo % p->inputs, at = row * p->total;
    for (int64_t k = 0; k < i; k++) at += p->width[k];
    char *out = launch->arg[p->inputs];
    for (; lo < hi; lo++) {
        int64_t width = p->width[i];
        if (width) memcpy(out + at, (const char *)launch->arg[i] + row * width, (size_t)width);
        at += width;
        if (++i == p->inputs) i = 0, row++;
    }
}

const stk_impl stk_impl_concat_own = {.name = "own",
                                      .kernel = STK_K_CONCAT,
                                      .rank = 0,
                                      .units = concat_units,
                                      .grain = concat_grain,
                                      .run = concat_run};

/* ---- iota ------------------------------------------------------------------------------------------ */

static int64_t iota_units(const void *params)
{
    const stk_iota_params *p = params;
    return p->outer * p->n;
}

static int64_t iota_grain(const void *params)
{
    return stk_max_i64(16384 / stk_max_i64(((const stk_iota_params *)params)->inner, 1), 1);
}

static uint32_t iota_aligned(const void *params)
{
    (void)params;
    return 1;
}

static void iota_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_iota_params *p = launch->params;
    stk_dtype dtype = (stk_dtype)p->dtype;
    int64_t item = stk_dtype_size(dtype);
    for (int64_t u = lo; u < hi; u++) {
        uint64_t value[2] = {0};
        stk_store_i64(dtype, value, u % p->n);
        fill(item, p->inner, (char *)launch->arg[0] + u * p->inner * item, value);
    }
}

const stk_impl stk_impl_iota_own = {.name = "own",
                                    .kernel = STK_K_IOTA,
                                    .rank = 0,
                                    .units = iota_units,
                                    .grain = iota_grain,
                                    .aligned = iota_aligned,
                                    .run = iota_run};
