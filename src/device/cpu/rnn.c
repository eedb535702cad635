/* rnn.c - recurrent layers forward: LSTM and GRU over whole sequences, and what their gradients (rnn_grad.c) share with
 * them. Each step is one product of the part's states with the recurrent weights, then one fused
 * loop per row (vec/rnn.h). */
#include "device/cpu/rnn.h"

#include "device/cpu/cpu.h"

/* ---- parts --------------------------------------------------------------------------------------- */

int64_t stk_rnn_units(const void *params) { return ((const stk_rnn_params *)params)->batch; }

/* Every part reads all recurrent weights at each step: few rows to share them with cost more than they gain
 * from another thread, the more so when the weights do not stay in a core's own cache. */
int64_t stk_rnn_grain(const void *params)
{
    enum { FEW = 16, LEAST = 4, ROWS = 8, MANY_ROWS = 16, MOST_PARTS = 16, CACHED = 128 * 1024 };
    const stk_rnn_params *p = params;
    if (p->batch <= FEW) return LEAST;
    int64_t rows = 4 * p->hidden > CACHED / stk_max_i64(p->hidden, 1) ? MANY_ROWS : ROWS;
    return stk_max_i64(rows, stk_ceil_div(p->batch, MOST_PARTS));
}

bool stk_rnn_supports(const void *params)
{
    int32_t dtype = ((const stk_rnn_params *)params)->dtype;
    return dtype == STK_F32 || dtype == STK_F64;
}

uint32_t stk_rnn_cut(const stk_rnn_params *p, uint32_t sequences, uint32_t states)
{
    return states | (p->time_major ? 0 : sequences);
}

/* ---- products ------------------------------------------------------------------------------------- */

/* Rows of weights per product: as many as the engine takes at once anyway, so that a panel is never packed anew. */
enum { DEPTH = 256 };

static stk_gemm problem(const stk_rnn_params *p, int64_t columns, int64_t depth)
{
    return (stk_gemm){.m = p->batch,
                      .n = columns,
                      .k = depth,
                      .batch = 1,
                      .lda = depth,
                      .ldb = columns,
                      .ldc = columns,
                      .dtype = p->dtype};
}

static int64_t gemm_scratch(const stk_rnn_params *p)
{
    int64_t widest = p->panel ? p->panel : 4 * p->hidden;
    stk_gemm wide = problem(p, widest, DEPTH), thin = problem(p, 1, DEPTH);
    const stk_vec_gemm *gemm = stk_vec_get()->gemm;
    return stk_max_i64(gemm->scratch[p->dtype](&wide), gemm->scratch[p->dtype](&thin));
}

static void multiply_panel(const stk_rnn_job *j, const stk_rnn_weights *u, const stk_rnn_product *x,
                           int64_t panel, int64_t lo, int64_t hi)
{
    const int64_t blocks = stk_ceil_div(x->depth, DEPTH), block = stk_ceil_div(x->depth, blocks);
    stk_gemm g = problem(j->p, hi - lo, block);
    g.lda = x->a.step;
    g.ldb = u->panel;
    g.ldc = x->c.step;
    for (int64_t k = 0; k < x->depth; k += block) {
        int64_t row = panel * u->rows + x->row_lo + k;
        g.k = stk_min_i64(block, x->depth - k);
        g.accumulate = x->add || k > 0;
        stk_gemm_job job = {.whole = &g,
                            .a = x->a.at + k * j->size,
                            .b = u->at + (row * u->panel + lo - panel * u->panel) * j->size,
                            .c = x->c.at + (lo - x->column_lo) * j->size,
                            .row_hi = j->hi - j->lo,
                            .col_hi = hi - lo,
                            .scratch = j->gemm_scratch};
        j->gemm->run[j->p->dtype](&job);
    }
}

void stk_rnn_multiply(const stk_rnn_job *j, const stk_rnn_weights *u, const stk_rnn_product *x)
{
    for (int64_t at = x->column_lo; at < x->column_hi && x->depth > 0;) {
        int64_t panel = at / u->panel, end = stk_min_i64((panel + 1) * u->panel, x->column_hi);
        multiply_panel(j, u, x, panel, at, end);
        at = end;
    }
}

/* ---- jobs ----------------------------------------------------------------------------------------- */

stk_status stk_rnn_prepare(stk_launch *launch, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)stk_vec_get();
    return STK_OK;
}

static int64_t part_bytes(const stk_rnn_params *p, int64_t gemm_bytes, int32_t parts,
                          int64_t work_width)
{
    int64_t rows = stk_most_units(p->batch, parts);
    return gemm_bytes + stk_round_up(rows * work_width * stk_dtype_size((stk_dtype)p->dtype), 64);
}

int64_t stk_rnn_scratch(const stk_rnn_params *p, int32_t parts, int64_t work_width)
{
    return parts * part_bytes(p, gemm_scratch(p), parts, work_width);
}

stk_rnn_job stk_rnn_open(const stk_launch *launch, int32_t fixed, int64_t lo, int64_t hi, int part,
                         int64_t work_width)
{
    const stk_rnn_params *p = launch->params;
    const stk_vec *vec = launch->state;
    const int64_t gemm_bytes = gemm_scratch(p);
    char *scratch =
        (char *)launch->scratch + part * part_bytes(p, gemm_bytes, launch->parts, work_width);
    return (stk_rnn_job){.p = p,
                         .gemm = vec->gemm,
                         .cells = vec->rnn->cells[p->dtype],
                         .mask = p->given & STK_RNN_MASK
                                     ? launch->arg[stk_rnn_arg(p->given, fixed, STK_RNN_MASK)]
                                     : NULL,
                         .lo = lo,
                         .hi = hi,
                         .size = stk_dtype_size((stk_dtype)p->dtype),
                         .gemm_scratch = scratch,
                         .work = scratch + gemm_bytes};
}

void stk_rnn_copy_rows(const stk_rnn_job *j, stk_rnn_rows to, stk_rnn_rows from)
{
    for (int64_t i = 0; i < j->hi - j->lo; i++)
        memcpy(stk_rnn_row_at(j, to, i), stk_rnn_row_at(j, from, i),
               (size_t)(j->p->hidden * j->size));
}

static stk_rnn_weights weights(const stk_launch *launch, int32_t fixed, int64_t columns)
{
    const stk_rnn_params *p = launch->params;
    const void *at = launch->arg[p->given & STK_RNN_PANELS ? fixed : fixed - 1];
    return (stk_rnn_weights){at, p->hidden, columns, p->panel ? p->panel : columns};
}

/* ---- forward -------------------------------------------------------------------------------------- */

/* A step that does not count: states pass on, gates are zeros so that nothing made of them is NaN. */
static void pass_on(const stk_rnn_job *j, void *h, const void *h_before, void *gates)
{
    memcpy(h, h_before, (size_t)(j->p->hidden * j->size));
    if (j->p->saved) memset(gates, 0, (size_t)(4 * j->p->hidden * j->size));
}

enum { LSTM_FIXED = 5, GRU_FIXED = 4 };

static void lstm_step(const stk_rnn_job *j, void *const *in, void *const *out, int64_t k,
                      stk_rnn_rows hu)
{
    const stk_rnn_params *p = j->p;
    const int64_t n = p->hidden, t = stk_rnn_time(p, k), before = k ? stk_rnn_time(p, k - 1) : 0;
    stk_rnn_rows x = stk_rnn_step(j, in[0], t, 4 * n), h = stk_rnn_step(j, out[0], t, n);
    stk_rnn_rows h_before = k ? stk_rnn_step(j, out[0], before, n) : stk_rnn_states(j, in[1], n);
    stk_rnn_rows c = p->saved ? stk_rnn_step(j, out[4], t, n) : stk_rnn_states(j, out[2], n);
    stk_rnn_rows c_before = !k         ? stk_rnn_states(j, in[2], n)
                            : p->saved ? stk_rnn_step(j, out[4], before, n)
                                       : c;
    stk_rnn_rows gates = p->saved ? stk_rnn_step(j, out[3], t, 4 * n) : hu;
    for (int64_t i = 0; i < j->hi - j->lo; i++) {
        stk_rnn_row r = {.x = stk_rnn_row_at(j, x, i),
                         .hu = stk_rnn_row_at(j, hu, i),
                         .b = in[3],
                         .before = stk_rnn_row_at(j, c_before, i),
                         .gates = stk_rnn_row_at(j, gates, i),
                         .c = stk_rnn_row_at(j, c, i),
                         .h = stk_rnn_row_at(j, h, i)};
        if (stk_rnn_masked(j, i, t)) {
            pass_on(j, r.h, stk_rnn_row_at(j, h_before, i), r.gates);
            if (r.c != r.before) memcpy(r.c, r.before, (size_t)(n * j->size));
        } else {
            j->cells->lstm(n, &r);
        }
    }
}

static void lstm_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_rnn_params *p = launch->params;
    const int64_t n = p->hidden;
    const stk_rnn_job j = stk_rnn_open(launch, LSTM_FIXED, lo, hi, part, 4 * n);
    const stk_rnn_weights u = weights(launch, LSTM_FIXED, 4 * n);
    void **in = launch->arg, **out = in + stk_rnn_outputs(p->given, LSTM_FIXED);
    stk_rnn_product product = {
        .a = stk_rnn_states(&j, in[1], n), .c = {j.work, 4 * n}, .depth = n, .column_hi = 4 * n};
    stk_rnn_rows c = stk_rnn_states(&j, in[2], n);
    for (int64_t k = 0; k < p->time; k++) {
        stk_rnn_multiply(&j, &u, &product);
        lstm_step(&j, in, out, k, product.c);
        product.a = stk_rnn_step(&j, out[0], stk_rnn_time(p, k), n);
    }
    if (p->saved && p->time) c = stk_rnn_step(&j, out[4], stk_rnn_time(p, p->time - 1), n);
    stk_rnn_copy_rows(&j, stk_rnn_states(&j, out[1], n), product.a);
    if (p->saved || !p->time) stk_rnn_copy_rows(&j, stk_rnn_states(&j, out[2], n), c);
}

typedef struct gru_rows {
    stk_rnn_rows x, h, h_before, gates, hu;
    const void *b, *b2;
    int64_t t;
} gru_rows;

static void gru_cells(const stk_rnn_job *j, const gru_rows *g, stk_rnn_forward cell, bool first)
{
    for (int64_t i = 0; i < j->hi - j->lo; i++) {
        stk_rnn_row r = {.x = stk_rnn_row_at(j, g->x, i),
                         .hu = stk_rnn_row_at(j, g->hu, i),
                         .b = g->b,
                         .b2 = g->b2,
                         .before = stk_rnn_row_at(j, g->h_before, i),
                         .gates = stk_rnn_row_at(j, g->gates, i),
                         .h = stk_rnn_row_at(j, g->h, i)};
        if (!stk_rnn_masked(j, i, g->t))
            cell(j->p->hidden, &r);
        else if (first)
            pass_on(j, r.h, r.before, r.gates);
    }
}

/* The part's own rows: product 3n, then gates 4n when nobody saves them. */
static int64_t gru_work(const stk_rnn_params *p) { return (p->saved ? 3 : 7) * p->hidden; }

static void gru_step(const stk_rnn_job *j, const stk_rnn_weights *u, gru_rows *g)
{
    const int64_t n = j->p->hidden;
    const bool after = j->p->reset_after;
    stk_rnn_product product = {
        .a = g->h_before, .c = g->hu, .depth = n, .column_hi = after ? 3 * n : 2 * n};
    stk_rnn_multiply(j, u, &product);
    if (after) {
        gru_cells(j, g, j->cells->gru_after, true);
        return;
    }
    gru_cells(j, g, j->cells->gru_before_gates, true);
    product.a = (stk_rnn_rows){stk_rnn_column(j, g->gates.at, 3 * n), g->gates.step};
    product.column_lo = 2 * n;
    product.column_hi = 3 * n;
    stk_rnn_multiply(j, u, &product);
    gru_cells(j, g, j->cells->gru_before_state, false);
}

static void gru_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_rnn_params *p = launch->params;
    const int64_t n = p->hidden, rows = hi - lo;
    const stk_rnn_job j = stk_rnn_open(launch, GRU_FIXED, lo, hi, part, gru_work(p));
    const stk_rnn_weights u = weights(launch, GRU_FIXED, 3 * n);
    void **in = launch->arg, **out = in + stk_rnn_outputs(p->given, GRU_FIXED);
    gru_rows g = {.h_before = stk_rnn_states(&j, in[1], n),
                  .hu = {j.work, 3 * n},
                  .gates = {j.work + rows * 3 * n * j.size, 4 * n},
                  .b = in[2],
                  .b2 = p->reset_after ? stk_rnn_column(&j, in[2], 3 * n) : NULL};
    /* Masked rows never write these gates, and the second product reads them. */
    if (!p->saved && j.mask) memset(g.gates.at, 0, (size_t)(rows * 4 * n * j.size));
    for (int64_t k = 0; k < p->time; k++) {
        g.t = stk_rnn_time(p, k);
        g.x = stk_rnn_step(&j, in[0], g.t, 3 * n);
        g.h = stk_rnn_step(&j, out[0], g.t, n);
        if (p->saved) g.gates = stk_rnn_step(&j, out[2], g.t, 4 * n);
        gru_step(&j, &u, &g);
        g.h_before = g.h;
    }
    stk_rnn_copy_rows(&j, stk_rnn_states(&j, out[1], n), g.h_before);
}

/* ---- the two implementations ----------------------------------------------------------------------- */

static int64_t lstm_scratch(const void *params, int32_t parts)
{
    const stk_rnn_params *p = params;
    return stk_rnn_scratch(p, parts, 4 * p->hidden);
}
static int64_t gru_scratch(const void *params, int32_t parts)
{
    return stk_rnn_scratch(params, parts, gru_work(params));
}

/* Inputs x, h0, c0; outputs hs, h, c, gates, cs. */
static uint32_t lstm_aligned(const void *params)
{
    const stk_rnn_params *p = params;
    int32_t out = stk_rnn_outputs(p->given, LSTM_FIXED);
    return stk_rnn_cut(p, 1u | 25u << out, 6u | 6u << out);
}
static uint32_t gru_aligned(const void *params)
{
    const stk_rnn_params *p = params;
    int32_t out = stk_rnn_outputs(p->given, GRU_FIXED);
    return stk_rnn_cut(p, 1u | 5u << out, 2u | 2u << out);
}

const stk_impl stk_impl_lstm_own = {.name = "own",
                                    .kernel = STK_K_LSTM,
                                    .rank = 10,
                                    .supports = stk_rnn_supports,
                                    .units = stk_rnn_units,
                                    .grain = stk_rnn_grain,
                                    .aligned = lstm_aligned,
                                    .scratch = lstm_scratch,
                                    .prepare = stk_rnn_prepare,
                                    .run = lstm_run};
const stk_impl stk_impl_gru_own = {.name = "own",
                                   .kernel = STK_K_GRU,
                                   .rank = 10,
                                   .supports = stk_rnn_supports,
                                   .units = stk_rnn_units,
                                   .grain = stk_rnn_grain,
                                   .aligned = gru_aligned,
                                   .scratch = gru_scratch,
                                   .prepare = stk_rnn_prepare,
                                   .run = gru_run};
