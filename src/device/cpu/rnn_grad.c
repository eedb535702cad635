/* rnn_grad.c - recurrent layers backward through time: gradients of the input's share of every step and of the first
 * states. Gradients of the weights are products over all steps at once, which the graph makes of these. The weights
 * come transposed and in panels. */
#include "device/cpu/cpu.h"
#include "device/cpu/rnn.h"

enum { LSTM_FIXED = 4, GRU_FIXED = 4 }; /* the panels are behind them, always */

static stk_rnn_weights weights(const stk_launch *launch, int32_t fixed, int64_t rows)
{
    const stk_rnn_params *p = launch->params;
    return (stk_rnn_weights){launch->arg[fixed], rows, p->hidden, p->panel};
}

static const void *given(const stk_launch *launch, int32_t fixed, int32_t which)
{
    const stk_rnn_params *p = launch->params;
    return p->given & which ? launch->arg[stk_rnn_arg(p->given, fixed, which)] : NULL;
}

/* Gradient of a state at the end, or zeros where none arrives. */
static void start_from(const stk_rnn_job *j, void *to, const void *from)
{
    stk_rnn_rows rows = stk_rnn_states(j, to, j->p->hidden);
    if (from)
        stk_rnn_copy_rows(j, rows, stk_rnn_states(j, from, j->p->hidden));
    else
        memset(rows.at, 0, (size_t)((j->hi - j->lo) * j->p->hidden * j->size));
}

/* Rows of the state before step k: of the step before it, or the first state. */
static stk_rnn_rows rows_before(const stk_rnn_job *j, const void *sequence, const void *first,
                                int64_t k)
{
    return k ? stk_rnn_step(j, sequence, stk_rnn_time(j->p, k - 1), j->p->hidden)
             : stk_rnn_states(j, first, j->p->hidden);
}

static void add_sequence(const stk_rnn_job *j, const void *dhs, int64_t t, stk_rnn_rows dh)
{
    if (!dhs) return;
    stk_rnn_rows from = stk_rnn_step(j, dhs, t, j->p->hidden);
    for (int64_t i = 0; i < j->hi - j->lo; i++)
        j->cells->add(j->p->hidden, stk_rnn_row_at(j, dh, i), stk_rnn_row_at(j, from, i));
}

static void lstm_step(const stk_rnn_job *j, void *const *in, void *const *out, int64_t k)
{
    const stk_rnn_params *p = j->p;
    const int64_t n = p->hidden, t = stk_rnn_time(p, k);
    stk_rnn_rows gates = stk_rnn_step(j, in[0], t, 4 * n), c = stk_rnn_step(j, in[1], t, n);
    stk_rnn_rows before = rows_before(j, in[1], in[2], k), dx = stk_rnn_step(j, out[0], t, 4 * n);
    stk_rnn_rows dh = stk_rnn_states(j, out[1], n), dc = stk_rnn_states(j, out[2], n);
    for (int64_t i = 0; i < j->hi - j->lo; i++) {
        stk_rnn_back r = {.gates = stk_rnn_row_at(j, gates, i),
                          .before = stk_rnn_row_at(j, before, i),
                          .c = stk_rnn_row_at(j, c, i),
                          .dh = stk_rnn_row_at(j, dh, i),
                          .dc = stk_rnn_row_at(j, dc, i),
                          .dx = stk_rnn_row_at(j, dx, i)};
        if (stk_rnn_masked(j, i, t))
            memset(r.dx, 0, (size_t)(4 * n * j->size));
        else
            j->cells->lstm_back(n, &r);
    }
}

static void lstm_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_rnn_params *p = launch->params;
    const int64_t n = p->hidden;
    const stk_rnn_job j = stk_rnn_open(launch, LSTM_FIXED, lo, hi, part, 0);
    const stk_rnn_weights u = weights(launch, LSTM_FIXED, 4 * n);
    const void *dhs = given(launch, LSTM_FIXED, STK_RNN_DHS);
    void **in = launch->arg, **out = in + stk_rnn_outputs(p->given, LSTM_FIXED);
    start_from(&j, out[1], given(launch, LSTM_FIXED, STK_RNN_DH));
    start_from(&j, out[2], given(launch, LSTM_FIXED, STK_RNN_DC));
    stk_rnn_product product = {
        .c = stk_rnn_states(&j, out[1], n), .depth = 4 * n, .column_hi = n, .add = true};
    for (int64_t k = p->time; k-- > 0;) {
        int64_t t = stk_rnn_time(p, k);
        add_sequence(&j, dhs, t, product.c);
        lstm_step(&j, in, out, k);
        product.a = stk_rnn_step(&j, out[0], t, 4 * n);
        stk_rnn_multiply(&j, &u, &product);
    }
}

typedef struct gru_rows {
    stk_rnn_rows gates, before, product, dh, dx, dhu;
    int64_t t;
} gru_rows;

static void gru_cells(const stk_rnn_job *j, const gru_rows *g, stk_rnn_backward cell)
{
    const int64_t n = j->p->hidden;
    for (int64_t i = 0; i < j->hi - j->lo; i++) {
        stk_rnn_back r = {.gates = stk_rnn_row_at(j, g->gates, i),
                          .before = stk_rnn_row_at(j, g->before, i),
                          .product = stk_rnn_row_at(j, g->product, i),
                          .dh = stk_rnn_row_at(j, g->dh, i),
                          .dx = stk_rnn_row_at(j, g->dx, i),
                          .dhu = stk_rnn_row_at(j, g->dhu, i)};
        if (!stk_rnn_masked(j, i, g->t)) {
            cell(n, &r);
            continue;
        }
        memset(r.dx, 0, (size_t)(3 * n * j->size));
        if (j->p->reset_after) memset(r.dhu, 0, (size_t)(3 * n * j->size));
    }
}

static void gru_step(const stk_rnn_job *j, const stk_rnn_weights *u, const gru_rows *g)
{
    const int64_t n = j->p->hidden;
    stk_rnn_product all = {.a = g->dhu, .c = g->dh, .depth = 3 * n, .column_hi = n, .add = true};
    if (j->p->reset_after) {
        gru_cells(j, g, j->cells->gru_after_back);
        stk_rnn_multiply(j, u, &all);
        return;
    }
    gru_cells(j, g, j->cells->gru_before_state_back);
    stk_rnn_product candidate = {.a = {stk_rnn_column(j, g->dx.at, 2 * n), g->dx.step},
                                 .c = g->product,
                                 .row_lo = 2 * n,
                                 .depth = n,
                                 .column_hi = n};
    stk_rnn_multiply(j, u, &candidate);
    gru_cells(j, g, j->cells->gru_before_gates_back);
    all.a = g->dx;
    all.depth = 2 * n;
    stk_rnn_multiply(j, u, &all);
}

static void gru_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_rnn_params *p = launch->params;
    const int64_t n = p->hidden;
    const stk_rnn_job j = stk_rnn_open(launch, GRU_FIXED, lo, hi, part, n);
    const stk_rnn_weights u = weights(launch, GRU_FIXED, 3 * n);
    const void *dhs = given(launch, GRU_FIXED, STK_RNN_DHS);
    void **in = launch->arg, **out = in + stk_rnn_outputs(p->given, GRU_FIXED);
    start_from(&j, out[2], given(launch, GRU_FIXED, STK_RNN_DH));
    gru_rows g = {.product = {j.work, n}, .dh = stk_rnn_states(&j, out[2], n)};
    for (int64_t k = p->time; k-- > 0;) {
        g.t = stk_rnn_time(p, k);
        g.gates = stk_rnn_step(&j, in[0], g.t, 4 * n);
        g.before = rows_before(&j, in[1], in[2], k);
        g.dx = stk_rnn_step(&j, out[0], g.t, 3 * n);
        g.dhu = p->reset_after ? stk_rnn_step(&j, out[1], g.t, 3 * n) : g.dx;
        add_sequence(&j, dhs, g.t, g.dh);
        gru_step(&j, &u, &g);
    }
}

static int64_t lstm_scratch(const void *params, int32_t parts)
{
    return stk_rnn_scratch(params, parts, 0);
}
static int64_t gru_scratch(const void *params, int32_t parts)
{
    return stk_rnn_scratch(params, parts, ((const stk_rnn_params *)params)->hidden);
}

/* Inputs gates, cs or hs, the first state, and the gradients that arrive; outputs dx, (dhu), dstates. */
static uint32_t aligned(const stk_rnn_params *p, uint32_t out_sequences, uint32_t out_states)
{
    const int32_t fixed = LSTM_FIXED, out = stk_rnn_outputs(p->given, fixed);
    uint32_t sequences = 3u | out_sequences << out, states = 4u | out_states << out;
    if (p->given & STK_RNN_DHS) sequences |= 1u << stk_rnn_arg(p->given, fixed, STK_RNN_DHS);
    if (p->given & STK_RNN_DH) states |= 1u << stk_rnn_arg(p->given, fixed, STK_RNN_DH);
    if (p->given & STK_RNN_DC) states |= 1u << stk_rnn_arg(p->given, fixed, STK_RNN_DC);
    return stk_rnn_cut(p, sequences, states);
}
static uint32_t lstm_aligned(const void *params) { return aligned(params, 1, 6); }
static uint32_t gru_aligned(const void *params) { return aligned(params, 3, 4); }

static bool supports(const void *params)
{
    const stk_rnn_params *p = params;
    return stk_rnn_supports(p) && (p->given & STK_RNN_PANELS);
}

const stk_impl stk_impl_lstm_grad_own = {.name = "own",
                                         .kernel = STK_K_LSTM_GRAD,
                                         .rank = 10,
                                         .supports = supports,
                                         .units = stk_rnn_units,
                                         .grain = stk_rnn_grain,
                                         .aligned = lstm_aligned,
                                         .scratch = lstm_scratch,
                                         .prepare = stk_rnn_prepare,
                                         .run = lstm_run};
const stk_impl stk_impl_gru_grad_own = {.name = "own",
                                        .kernel = STK_K_GRU_GRAD,
                                        .rank = 10,
                                        .supports = supports,
                                        .units = stk_rnn_units,
                                        .grain = stk_rnn_grain,
                                        .aligned = gru_aligned,
                                        .scratch = gru_scratch,
                                        .prepare = stk_rnn_prepare,
                                        .run = gru_run};
