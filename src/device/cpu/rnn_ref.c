/* The recurrent kernels said plainly: one sequence after another, one sum after another, in double. Optional panels are
 * not looked at. */
#include "device/cpu/cpu.h"
#include "device/cpu/rnn.h"

#include <math.h>

/* ---- reading and writing rows of `width` elements ------------------------------------------------------- */

typedef struct array {
    const stk_rnn_params *p;
    char *at;
    int64_t width;
} array;

static array array_of(const stk_rnn_params *p, const void *at, int64_t width)
{
    return (array){p, (char *)(uintptr_t)at, width};
}
static double get(array a, int64_t row, int64_t column)
{
    stk_dtype dtype = (stk_dtype)a.p->dtype;
    return stk_load_f64(dtype, a.at + (row * a.width + column) * stk_dtype_size(dtype));
}
static void put(array a, int64_t row, int64_t column, double value)
{
    stk_dtype dtype = (stk_dtype)a.p->dtype;
    stk_store_f64(dtype, a.at + (row * a.width + column) * stk_dtype_size(dtype), value);
}
static void put_zeros(array a, int64_t row)
{
    for (int64_t i = 0; i < a.width; i++) put(a, row, i, 0);
}
static void copy_row(array to, int64_t row, array from, int64_t from_row)
{
    for (int64_t i = 0; i < to.width; i++) put(to, row, i, get(from, from_row, i));
}

/* The sum over i of a[row, column + i] u[i, u_column], and the same with u turned. */
static double times_u(array a, int64_t row, int64_t column, array u, int64_t u_column)
{
    double sum = 0;
    for (int64_t i = 0; i < u.p->hidden; i++) sum += get(a, row, column + i) * get(u, i, u_column);
    return sum;
}
static double times_u_turned(array a, int64_t row, int64_t lo, int64_t hi, array u, int64_t u_row)
{
    double sum = 0;
    for (int64_t i = lo; i < hi; i++) sum += get(a, row, i) * get(u, u_row, i);
    return sum;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* ---- where things are --------------------------------------------------------------------------------- */

/* Step k of sequence i: its row, and the state before it (array and row). */
typedef struct place {
    int64_t row, before_row;
    array before;
    bool masked;
} place;

static place place_of(const stk_launch *l, int32_t fixed, array states, array first, int64_t i,
                      int64_t k)
{
    const stk_rnn_params *p = l->params;
    place at = {.row = stk_rnn_at(p, i, stk_rnn_time(p, k)), .before_row = i, .before = first};
    if (k > 0) {
        at.before = states;
        at.before_row = stk_rnn_at(p, i, stk_rnn_time(p, k - 1));
    }
    if (p->given & STK_RNN_MASK)
        at.masked = !((const uint8_t *)l->arg[stk_rnn_arg(p->given, fixed, STK_RNN_MASK)])[at.row];
    return at;
}

/* What arrives, in the output's place: the gradient of a last state or zeros, plus that of the sequence. */
static void start_from(const stk_launch *l, int32_t fixed, int32_t which, array to, int64_t i)
{
    const stk_rnn_params *p = l->params;
    if (p->given & which)
        copy_row(to, i, array_of(p, l->arg[stk_rnn_arg(p->given, fixed, which)], p->hidden), i);
    else
        put_zeros(to, i);
}
static void add_sequence(const stk_launch *l, int32_t fixed, array dh, int64_t i, int64_t row)
{
    const stk_rnn_params *p = l->params;
    if (!(p->given & STK_RNN_DHS)) return;
    array dhs = array_of(p, l->arg[stk_rnn_arg(p->given, fixed, STK_RNN_DHS)], p->hidden);
    for (int64_t j = 0; j < p->hidden; j++) put(dh, i, j, get(dh, i, j) + get(dhs, row, j));
}

/* ---- LSTM ----------------------------------------------------------------------------------------------- */

static void lstm_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    enum { FIXED = 5 };
    (void)part;
    const stk_rnn_params *p = l->params;
    const int64_t n = p->hidden;
    void **in = l->arg, **out = in + stk_rnn_outputs(p->given, FIXED);
    array x = array_of(p, in[0], 4 * n), h0 = array_of(p, in[1], n), c0 = array_of(p, in[2], n);
    array b = array_of(p, in[3], 4 * n), u = array_of(p, in[4], 4 * n);
    array hs = array_of(p, out[0], n), h = array_of(p, out[1], n), c = array_of(p, out[2], n);
    array gates = array_of(p, out[3], 4 * n), cs = array_of(p, out[4], n);
    for (int64_t i = lo; i < hi; i++) {
        copy_row(c, i, c0, i);
        copy_row(h, i, h0, i);
        for (int64_t k = 0; k < p->time; k++) {
            const place at = place_of(l, FIXED, hs, h0, i, k);
            for (int64_t m = 0; m < n; m++) {
                double pre[4], now = get(c, i, m), y = get(at.before, at.before_row, m);
                for (int64_t q = 0; q < 4; q++)
                    pre[q] = get(x, at.row, q * n + m) + get(b, 0, q * n + m) +
                             times_u(at.before, at.before_row, 0, u, q * n + m);
                double value[4] = {sigmoid(pre[0]), sigmoid(pre[1]), tanh(pre[2]), sigmoid(pre[3])};
                if (!at.masked) {
                    now = value[1] * now + value[0] * value[2];
                    y = value[3] * tanh(now);
                }
                for (int64_t q = 0; p->saved && q < 4; q++)
                    put(gates, at.row, q * n + m, at.masked ? 0 : value[q]);
                put(c, i, m, now);
                if (p->saved) put(cs, at.row, m, now);
                put(hs, at.row, m, y);
            }
            copy_row(h, i, hs, at.row);
        }
    }
}

static void lstm_grad_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    enum { FIXED = 4 };
    (void)part;
    const stk_rnn_params *p = l->params;
    const int64_t n = p->hidden;
    void **in = l->arg, **out = in + stk_rnn_outputs(p->given, FIXED);
    array gates = array_of(p, in[0], 4 * n), cs = array_of(p, in[1], n);
    array c0 = array_of(p, in[2], n), u = array_of(p, in[3], 4 * n);
    array dx = array_of(p, out[0], 4 * n), dh = array_of(p, out[1], n), dc = array_of(p, out[2], n);
    for (int64_t i = lo; i < hi; i++) {
        start_from(l, FIXED, STK_RNN_DH, dh, i);
        start_from(l, FIXED, STK_RNN_DC, dc, i);
        for (int64_t k = p->time; k-- > 0;) {
            const place at = place_of(l, FIXED, cs, c0, i, k);
            add_sequence(l, FIXED, dh, i, at.row);
            if (at.masked) {
                put_zeros(dx, at.row);
                continue;
            }
            for (int64_t m = 0; m < n; m++) {
                double gi = get(gates, at.row, m), gf = get(gates, at.row, n + m),
                       gg = get(gates, at.row, 2 * n + m), go = get(gates, at.row, 3 * n + m),
                       y = tanh(get(cs, at.row, m)), d = get(dh, i, m),
                       e = get(dc, i, m) + d * go * (1 - y * y);
                put(dx, at.row, m, e * gg * gi * (1 - gi));
                put(dx, at.row, n + m, e * get(at.before, at.before_row, m) * gf * (1 - gf));
                put(dx, at.row, 2 * n + m, e * gi * (1 - gg * gg));
                put(dx, at.row, 3 * n + m, d * y * go * (1 - go));
                put(dc, i, m, e * gf);
            }
            for (int64_t m = 0; m < n; m++)
                put(dh, i, m, times_u_turned(dx, at.row, 0, 4 * n, u, m));
        }
    }
}

/* ---- GRU ------------------------------------------------------------------------------------------------ */

/* r h, one row of it per part: the left side of the candidate's product when the reset comes before it. */
static array reset_state(const stk_launch *l, int part)
{
    const stk_rnn_params *p = l->params;
    return array_of(p, (char *)l->scratch + part * p->hidden * 8, p->hidden);
}

static int64_t gru_scratch(const void *params, int32_t parts)
{
    return parts * ((const stk_rnn_params *)params)->hidden * 8;
}

typedef struct gru {
    array x, b, u, hs, gates, rh;
    int64_t n;
} gru;

static double gru_pre(const gru *g, const place *at, int64_t column)
{
    return get(g->x, at->row, column) + get(g->b, 0, column);
}

static void gru_step(const stk_rnn_params *p, const gru *g, const place *at)
{
    const int64_t n = g->n;
    for (int64_t m = 0; m < n; m++) {
        double h = get(at->before, at->before_row, m);
        double zr[2];
        for (int64_t q = 0; q < 2; q++) {
            zr[q] =
                gru_pre(g, at, q * n + m) + times_u(at->before, at->before_row, 0, g->u, q * n + m);
            if (p->reset_after) zr[q] += get(g->b, 1, q * n + m);
            zr[q] = sigmoid(zr[q]);
            if (p->saved) put(g->gates, at->row, q * n + m, zr[q]);
        }
        put(g->rh, 0, m, zr[1] * h);
        put(g->hs, at->row, m, zr[0]); /* until the candidate is known */
    }
    for (int64_t m = 0; m < n; m++) {
        double z = get(g->hs, at->row, m), h = get(at->before, at->before_row, m), side, q;
        if (p->reset_after) {
            double r = sigmoid(gru_pre(g, at, n + m) + get(g->b, 1, n + m) +
                               times_u(at->before, at->before_row, 0, g->u, n + m));
            q = times_u(at->before, at->before_row, 0, g->u, 2 * n + m) + get(g->b, 1, 2 * n + m);
            side = r * q;
        } else {
            q = get(g->rh, 0, m);
            side = times_u(g->rh, 0, 0, g->u, 2 * n + m);
        }
        double candidate = tanh(gru_pre(g, at, 2 * n + m) + side);
        if (p->saved) put(g->gates, at->row, 2 * n + m, candidate);
        if (p->saved) put(g->gates, at->row, 3 * n + m, q);
        put(g->hs, at->row, m, z * h + (1 - z) * candidate);
    }
}

static void gru_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    enum { FIXED = 4 };
    const stk_rnn_params *p = l->params;
    const int64_t n = p->hidden;
    void **in = l->arg, **out = in + stk_rnn_outputs(p->given, FIXED);
    array h0 = array_of(p, in[1], n), h = array_of(p, out[1], n);
    gru g = {.x = array_of(p, in[0], 3 * n),
             .b = array_of(p, in[2], 3 * n),
             .u = array_of(p, in[3], 3 * n),
             .hs = array_of(p, out[0], n),
             .gates = array_of(p, out[2], 4 * n),
             .rh = reset_state(l, part),
             .n = n};
    for (int64_t i = lo; i < hi; i++) {
        copy_row(h, i, h0, i);
        for (int64_t k = 0; k < p->time; k++) {
            const place at = place_of(l, FIXED, g.hs, h0, i, k);
            if (at.masked) {
                copy_row(g.hs, at.row, at.before, at.before_row);
                if (p->saved) put_zeros(g.gates, at.row);
            } else {
                gru_step(p, &g, &at);
            }
            copy_row(h, i, g.hs, at.row);
        }
    }
}

/* dx (and dhu) of one row; dh becomes what it is before the step. */
static void gru_back(const stk_rnn_params *p, const place *at, array gates, array u, array dx,
                     array dhu, array dh, int64_t i)
{
    const int64_t n = p->hidden, row = at->row;
    array left = p->reset_after ? dhu : dx; /* gradient of the recurrent products of z and r */
    for (int64_t m = 0; m < n; m++) {
        double z = get(gates, row, m), y = get(gates, row, 2 * n + m), d = get(dh, i, m);
        put(dx, row, m, d * (get(at->before, at->before_row, m) - y) * z * (1 - z));
        put(dx, row, 2 * n + m, d * (1 - z) * (1 - y * y));
        put(dh, i, m, d * z);
    }
    for (int64_t m = 0; m < n; m++) {
        double r = get(gates, row, n + m), d = get(dx, row, 2 * n + m), dr;
        if (p->reset_after) {
            dr = d * get(gates, row, 3 * n + m);
            put(dhu, row, m, get(dx, row, m));
            put(dhu, row, n + m, dr * r * (1 - r));
            put(dhu, row, 2 * n + m, d * r);
        } else {
            double drh = times_u_turned(dx, row, 2 * n, 3 * n, u, m);
            dr = drh * get(at->before, at->before_row, m);
            put(dh, i, m, get(dh, i, m) + drh * r);
        }
        put(dx, row, n + m, dr * r * (1 - r));
    }
    for (int64_t m = 0; m < n; m++)
        put(dh, i, m,
            get(dh, i, m) + times_u_turned(left, row, 0, (p->reset_after ? 3 : 2) * n, u, m));
}

static void gru_grad_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    enum { FIXED = 4 };
    (void)part;
    const stk_rnn_params *p = l->params;
    const int64_t n = p->hidden;
    void **in = l->arg, **out = in + stk_rnn_outputs(p->given, FIXED);
    array gates = array_of(p, in[0], 4 * n), hs = array_of(p, in[1], n), h0 = array_of(p, in[2], n),
          u = array_of(p, in[3], 3 * n), dx = array_of(p, out[0], 3 * n),
          dhu = array_of(p, out[1], 3 * n), dh = array_of(p, out[2], n);
    for (int64_t i = lo; i < hi; i++) {
        start_from(l, FIXED, STK_RNN_DH, dh, i);
        for (int64_t k = p->time; k-- > 0;) {
            const place at = place_of(l, FIXED, hs, h0, i, k);
            add_sequence(l, FIXED, dh, i, at.row);
            if (!at.masked) {
                gru_back(p, &at, gates, u, dx, dhu, dh, i);
                continue;
            }
            put_zeros(dx, at.row);
            if (p->reset_after) put_zeros(dhu, at.row);
        }
    }
}

/* ---- the four ------------------------------------------------------------------------------------------- */

#define REF(which, KERNEL, scratch_fn)                                                             \
    const stk_impl stk_impl_##which##_ref = {.name = "ref",                                        \
                                             .kernel = STK_K_##KERNEL,                             \
                                             .rank = 100,                                          \
                                             .supports = stk_rnn_supports,                         \
                                             .units = stk_rnn_units,                               \
                                             .grain = stk_rnn_grain,                               \
                                             .scratch = scratch_fn,                                \
                                             .run = which##_run};
REF(lstm, LSTM, NULL)
REF(lstm_grad, LSTM_GRAD, NULL)
REF(gru, GRU, gru_scratch)
REF(gru_grad, GRU_GRAD, NULL)
