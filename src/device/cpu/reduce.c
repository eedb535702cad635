/* Reductions of [outer, n, inner] over n. Two ways to cut the work, chosen by the shape alone:
 *
 *     whole   a unit is one result row (inner = 1) or a block of 64 result columns; nothing to combine
 *     split   few results from much data: units are steps along n, each part leaves its accumulators in scratch,
 *             and finish() adds them up in the order of the parts. Same bits for any number of threads. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/reduce.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64,           /* columns of a unit */
    BATCH = 512,          /* results in flight; a split never has more */
    PIECE = 16 * 1024,    /* bytes of converted elements at a time */
    SPLIT_UNITS = 8,      /* fewer independent units than this, and ... */
    SPLIT_WORK = 1 << 15, /* ... more elements than this: split */
    PART_WORK = 1 << 14,  /* elements worth a part */
};

static int64_t blocks(const stk_reduce_params *p) { return stk_ceil_div(p->inner, BLOCK); }

static bool is_split(const stk_reduce_params *p)
{
    return p->outer * blocks(p) < SPLIT_UNITS && p->n * p->outer * p->inner >= SPLIT_WORK;
}

static bool is_arg(const stk_reduce_params *p)
{
    return p->kind == STK_REDUCE_ARGMAX || p->kind == STK_REDUCE_ARGMIN;
}

/* ---- accumulators ------------------------------------------------------------------------------ */

typedef struct results {
    void *acc;      /* of the accumulator lane; for arg the best elements */
    int64_t *index; /* arg only */
} results;

/* What the functions below need to know, looked up once per call of run. */
typedef struct job {
    const stk_reduce_params *p;
    const stk_vec *vec;
    stk_lane lane, acc_lane;
    int64_t size; /* stored bytes of an element */
    bool direct;  /* stored as the lane computes */
} job;

static job job_of(const stk_reduce_params *p)
{
    job j = {.p = p, .vec = stk_vec_get(), .lane = stk_lane_of((stk_dtype)p->dtype)};
    j.acc_lane = stk_reduce_lane((stk_reduce_kind)p->kind, j.lane);
    j.size = stk_dtype_size((stk_dtype)p->dtype);
    j.direct = stk_lane_is_stored((stk_dtype)p->dtype) || p->dtype == STK_U64;
    return j;
}

/* The element that changes nothing. */
static int64_t identity(stk_reduce_kind kind, stk_lane lane)
{
    switch (kind) {
    case STK_REDUCE_PROD:
    case STK_REDUCE_ALL: return stk_lane_bits(lane, 1);
    case STK_REDUCE_MAX:
        return lane == STK_LANE_I64 ? INT64_MIN : stk_lane_bits(lane, -(double)INFINITY);
    case STK_REDUCE_MIN:
        return lane == STK_LANE_I64 ? INT64_MAX : stk_lane_bits(lane, (double)INFINITY);
    default: return 0;
    }
}

static void start(const job *j, int64_t count, results r)
{
    if (is_arg(j->p)) {
        for (int64_t i = 0; i < count; i++) r.index[i] = -1;
        return;
    }
    int64_t bits = identity((stk_reduce_kind)j->p->kind, j->acc_lane);
    j->vec->ew->splat[j->acc_lane](count, r.acc, &bits);
}

static results results_at(const job *j, results r, int64_t i)
{
    r.acc = (char *)r.acc + i * stk_lane_size(j->acc_lane);
    if (r.index) r.index += i;
    return r;
}

/* Narrow dense rows (the 3 colours of every pixel): as many side by side as make a wide row, whose columns
 * are then folded back. Returns how many rows it has taken. */
static int64_t add_narrow(const job *j, int64_t n, int64_t width, const void *x, results r)
{
    int64_t beside = BLOCK / width, wide = beside * width, rows = n / beside;
    _Alignas(64) int64_t fold[BLOCK];
    stk_reduce_kind kind = (stk_reduce_kind)j->p->kind;
    int64_t bits = identity(kind, j->acc_lane);
    j->vec->ew->splat[j->acc_lane](wide, fold, &bits);
    j->vec->reduce->cols[kind][j->lane](rows, wide, wide, x, fold);
    j->vec->reduce->cols[kind][j->acc_lane](beside, width, width, fold, r.acc);
    return rows * beside;
}

/* n rows of `width` lane elements, `stride` apart, into one row of results. */
static void add_cols(const job *j, int64_t n, int64_t base, int64_t width, int64_t stride,
                     const void *x, results r)
{
    const stk_vec_reduce *f = j->vec->reduce;
    if (is_arg(j->p)) {
        f->arg[j->p->kind == STK_REDUCE_ARGMIN][j->lane](n, base, width, stride, x, r.acc, r.index);
        return;
    }
    if (width == stride && width * 2 <= BLOCK && n >= 2 * BLOCK) {
        int64_t taken = add_narrow(j, n, width, x, r);
        x = (const char *)x + taken * width * stk_lane_size(j->lane);
        n -= taken;
    }
    f->cols[j->p->kind][j->lane](n, width, stride, x, r.acc);
}

/* One dense row of n lane elements into one result. */
static void add_row(const job *j, int64_t n, int64_t base, const void *x, results r)
{
    if (is_arg(j->p))
        add_cols(j, n, base, 1, 1, x, r);
    else
        j->vec->reduce->rows[j->p->kind][j->lane](1, n, n, x, r.acc);
}

/* ---- stored elements into results ---------------------------------------------------------------- */

/* Steps [lo, hi) along n of row o (inner = 1). */
static void reduce_row(const job *j, const char *in, int64_t o, int64_t lo, int64_t hi, results r)
{
    const char *x = in + (o * j->p->n + lo) * j->size;
    if (j->direct) {
        add_row(j, hi - lo, lo, x, r);
        return;
    }
    _Alignas(64) char piece[PIECE];
    const int64_t most = PIECE / stk_lane_size(j->lane);
    for (int64_t i = lo; i < hi; i += most, x += most * j->size) {
        int64_t m = stk_min_i64(most, hi - i);
        j->vec->ew->load[j->p->dtype](m, piece, x);
        add_row(j, m, i, piece, r);
    }
}

/* Steps [lo, hi) along n of columns [c, c + width) under o; width <= BATCH. */
static void reduce_cols(const job *j, const char *in, int64_t o, int64_t lo, int64_t hi, int64_t c,
                        int64_t width, results r)
{
    const stk_reduce_params *p = j->p;
    const char *x = in + ((o * p->n + lo) * p->inner + c) * j->size;
    if (j->direct) {
        add_cols(j, hi - lo, lo, width, p->inner, x, r);
        return;
    }
    _Alignas(64) char piece[PIECE];
    const int64_t lane_size = stk_lane_size(j->lane), most = PIECE / lane_size / width;
    for (int64_t i = lo;
         i < hi;) { /* several rows at a time; in one go where they lie side by side */
        const int64_t rows = stk_min_i64(most, hi - i), dense = width == p->inner ? rows : 1;
        for (int64_t k = 0; k < rows; k += dense, x += dense * p->inner * j->size)
            j->vec->ew->load[p->dtype](dense * width, piece + k * width * lane_size, x);
        add_cols(j, rows, i, width, width, piece, r);
        i += rows;
    }
}

/* Results [first, first + count) to their stored form. */
static void finish_results(const job *j, char *out, int64_t first, int64_t count, results r)
{
    if (is_arg(j->p)) {
        int64_t *to = (int64_t *)(void *)out + first;
        for (int64_t i = 0; i < count; i++) to[i] = r.index[i] < 0 ? 0 : r.index[i];
        return;
    }
    char *to = out + first * j->size;
    const stk_vec_ew *ew = j->vec->ew;
    if (j->acc_lane == j->lane) {
        ew->store[j->p->dtype](count, to, r.acc);
    } else if (j->direct) {
        ew->cast[j->acc_lane][j->lane](count, to, r.acc);
    } else {
        float rounded[BATCH];
        ew->cast[j->acc_lane][j->lane](count, rounded, r.acc);
        ew->store[j->p->dtype](count, to, rounded);
    }
}

/* ---- run ----------------------------------------------------------------------------------------- */

typedef struct local_results {
    _Alignas(64) int64_t acc[BATCH];
    int64_t index[BATCH];
} local_results;

static void run_rows(const job *j, const char *in, char *out, int64_t lo, int64_t hi)
{
    local_results local;
    results r = {local.acc, local.index};
    for (int64_t row = lo; row < hi; row += BATCH) {
        int64_t count = stk_min_i64(BATCH, hi - row);
        start(j, count, r);
        if (j->direct && !is_arg(j->p))
            j->vec->reduce->rows[j->p->kind][j->lane](count, j->p->n, j->p->n,
                                                      in + row * j->p->n * j->size, r.acc);
        else
            for (int64_t i = 0; i < count; i++)
                reduce_row(j, in, row + i, 0, j->p->n, results_at(j, r, i));
        finish_results(j, out, row, count, r);
    }
}

/* Units are blocks of columns; neighbours under the same o are taken together. */
static void run_blocks(const job *j, const char *in, char *out, int64_t lo, int64_t hi)
{
    local_results local;
    results r = {local.acc, local.index};
    int64_t per_row = blocks(j->p), inner = j->p->inner;
    while (lo < hi) {
        int64_t o = lo / per_row, block = lo % per_row;
        int64_t take = stk_min_i64(stk_min_i64(hi - lo, per_row - block), BATCH / BLOCK);
        int64_t c = block * BLOCK, width = stk_min_i64(take * BLOCK, inner - c);
        start(j, width, r);
        reduce_cols(j, in, o, 0, j->p->n, c, width, r);
        finish_results(j, out, o * inner + c, width, r);
        lo += take;
    }
}

/* Scratch: for each part `count` accumulators of 8 bytes, then as many indices. */
static results part_results(const stk_launch *launch, int64_t count, int32_t part)
{
    char *at = (char *)launch->scratch + (int64_t)part * count * 16;
    return (results){at, (int64_t *)(void *)(at + count * 8)};
}

static void run_split(const job *j, const stk_launch *launch, const char *in, int64_t lo,
                      int64_t hi, int part)
{
    const stk_reduce_params *p = j->p;
    int64_t count = p->outer * p->inner;
    results r = part_results(launch, count, part);
    start(j, count, r);
    for (int64_t o = 0; o < p->outer; o++) {
        results at = results_at(j, r, o * p->inner);
        if (p->inner == 1)
            reduce_row(j, in, o, lo, hi, at);
        else
            reduce_cols(j, in, o, lo, hi, 0, p->inner, at);
    }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_reduce_params *p = launch->params;
    job j = job_of(p);
    const char *in = launch->arg[0];
    if (is_split(p))
        run_split(&j, launch, in, lo, hi, part);
    else if (p->inner == 1)
        run_rows(&j, in, launch->arg[1], lo, hi);
    else
        run_blocks(&j, in, launch->arg[1], lo, hi);
}

/* Adds the parts to the first one, in order. An accumulator row is one more row of columns. */
static void finish(const stk_launch *launch)
{
    const stk_reduce_params *p = launch->params;
    if (!is_split(p)) return;
    job j = job_of(p);
    int64_t count = p->outer * p->inner;
    results total = part_results(launch, count, 0);
    job merge = j;
    merge.lane = j.acc_lane;
    for (int32_t part = 1; part < launch->parts; part++) {
        results more = part_results(launch, count, part);
        if (!is_arg(p)) {
            add_cols(&merge, 1, 0, count, count, more.acc, total);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            results to = results_at(&j, total, i), from = results_at(&j, more, i);
            if (*from.index >= 0) add_cols(&merge, 1, *from.index, 1, 1, from.acc, to);
        }
    }
    finish_results(&j, launch->arg[1], 0, count, total);
}

/* ---- the implementation ------------------------------------------------------------------------- */

static bool supports(const void *params)
{
    const stk_reduce_params *p = params;
    bool logic = p->kind == STK_REDUCE_ANY || p->kind == STK_REDUCE_ALL;
    return p->kind >= 0 && p->kind < STK_REDUCE_COUNT && p->dtype != STK_STRING &&
           logic == (p->dtype == STK_BOOL);
}

static int64_t units(const void *params)
{
    const stk_reduce_params *p = params;
    return is_split(p) ? p->n : p->outer * blocks(p);
}

static int64_t grain(const void *params)
{
    const stk_reduce_params *p = params;
    int64_t work = is_split(p) ? p->outer * p->inner : p->n * stk_min_i64(p->inner, BLOCK);
    return stk_max_i64(PART_WORK / stk_max_i64(work, 1), 1);
}

static uint32_t aligned(const void *params)
{
    const stk_reduce_params *p = params;
    if (is_split(p))
        return p->outer == 1; /* its units are rows of the input; the result is no part's own */
    if (p->inner <= BLOCK) return 3;
    return p->inner % BLOCK ? 0 : 2;
}

static int64_t scratch(const void *params, int32_t parts)
{
    const stk_reduce_params *p = params;
    return is_split(p) ? (int64_t)parts * p->outer * p->inner * 16 : 0;
}

const stk_impl stk_impl_reduce_vec = {.name = "vec",
                                      .kernel = STK_K_REDUCE,
                                      .rank = 0,
                                      .supports = supports,
                                      .units = units,
                                      .grain = grain,
                                      .aligned = aligned,
                                      .scratch = scratch,
                                      .run = run,
                                      .finish = finish};
