/* Recurrent operations: LSTM and GRU over whole sequences, from the input's share of every step (x W, made by an ordinary
 * product) to all states. Inputs, outputs and gates are drawn in device/kernels_rnn.h.
 *
 * Their gradient ops walk backward through time; gradients of weights and biases are ordinary products and sums over all
 * steps. The gradient ops have no gradient: the composed forms (rnn_built.c) do. */
#include "graph/ops/rnn.h"

enum { TIME_MAJOR, REVERSE, RESET_AFTER, GIVEN, ATTRIBUTES };

/* ---- shape rules ------------------------------------------------------------------------------------ */

/* The problem as the shapes tell it. */
typedef struct sizes {
    int64_t batch, time, hidden;
    stk_dtype dtype;
} sizes;

static stk_status need(const stk_infer *c, int32_t i, const char *what, int32_t rank,
                       const int64_t *dim)
{
    stk_type want = {c->in[0]->dtype, {.rank = rank}};
    for (int32_t k = 0; k < rank; k++) want.shape.dim[k] = dim[k];
    if (stk_type_equal(c->in[i], &want)) return STK_OK;
    return stk_infer_fail(c, c->in[i]->dtype == want.dtype ? STK_ERR_SHAPE : STK_ERR_DTYPE,
                          "%s (input %d) needs %s", what, i, STK_TYPE_TEXT(&want));
}
static stk_status need_sequence(const stk_infer *c, const sizes *s, int32_t i, const char *what,
                                int64_t width)
{
    bool turned = c->node->ints[TIME_MAJOR];
    return need(c, i, what, 3,
                (int64_t[]){turned ? s->time : s->batch, turned ? s->batch : s->time, width});
}
static stk_status need_state(const stk_infer *c, const sizes *s, int32_t i, const char *what)
{
    return need(c, i, what, 2, (int64_t[]){s->batch, s->hidden});
}

/* Attributes, count of inputs, and the sizes from the first input [.., .., wide * hidden] and u [hidden, gates * hidden]. */
static stk_status read_sizes(const stk_infer *c, int32_t fixed, int32_t u, int32_t wide,
                             int32_t gates, int64_t possible, sizes *s)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0], *w = c->in[u];
    if (n->nints != ATTRIBUTES || (n->ints[GIVEN] & ~possible))
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs the attributes time_major, reverse, reset_after and given");
    if (n->nin != stk_rnn_outputs((int32_t)n->ints[GIVEN], fixed))
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "%d inputs where `given` = %lld means %d",
                              n->nin, (long long)n->ints[GIVEN],
                              stk_rnn_outputs((int32_t)n->ints[GIVEN], fixed));
    if (!stk_dtype_is_float(x->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs floats; cast to float32 first");
    if (w->shape.rank != 2 || w->shape.dim[1] % gates || w->shape.dim[1] / gates != w->shape.dim[0])
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "recurrent weights (input %d) need [units, %d * units]", u, gates);
    int64_t hidden = w->shape.dim[0];
    if (x->shape.rank != 3 || x->shape.dim[2] % wide || x->shape.dim[2] / wide != hidden)
        return stk_infer_fail(c, STK_ERR_SHAPE, "input 0 needs [%s, %d * %lld]",
                              n->ints[TIME_MAJOR] ? "time, batch" : "batch, time", wide,
                              (long long)hidden);
    bool turned = n->ints[TIME_MAJOR];
    *s = (sizes){x->shape.dim[turned], x->shape.dim[!turned], hidden, x->dtype};
    return need(c, u, "recurrent weights", 2, (int64_t[]){hidden, gates * hidden});
}

/* Panels of a matrix rows x columns: any cut into equal blocks of columns that does not straddle gates. */
static stk_status need_panels(const stk_infer *c, const sizes *s, int32_t fixed, int64_t rows,
                              int64_t columns)
{
    if (!(c->node->ints[GIVEN] & STK_RNN_PANELS)) return STK_OK;
    const stk_type *t = c->in[fixed];
    const int64_t *d = t->shape.dim;
    if (t->dtype == s->dtype && t->shape.rank == 3 && d[1] == rows &&
        (s->hidden == 0 || (d[2] > 0 && s->hidden % d[2] == 0 && d[0] == columns / d[2])))
        return STK_OK;
    return stk_infer_fail(c, STK_ERR_SHAPE,
                          "panels (input %d) need [%lld / width, %lld, width] with a width that "
                          "divides %lld",
                          fixed, (long long)columns, (long long)rows, (long long)s->hidden);
}

static stk_status need_mask(const stk_infer *c, const sizes *s, int32_t fixed)
{
    if (!(c->node->ints[GIVEN] & STK_RNN_MASK)) return STK_OK;
    bool turned = c->node->ints[TIME_MAJOR];
    int32_t i = stk_rnn_arg((int32_t)c->node->ints[GIVEN], fixed, STK_RNN_MASK);
    stk_type want = {STK_BOOL, {2, {turned ? s->time : s->batch, turned ? s->batch : s->time}}};
    if (stk_type_equal(c->in[i], &want)) return STK_OK;
    return stk_infer_fail(c, STK_ERR_SHAPE, "the mask (input %d) needs %s", i,
                          STK_TYPE_TEXT(&want));
}

static stk_status need_gradients(const stk_infer *c, const sizes *s, int32_t fixed)
{
    int32_t given = (int32_t)c->node->ints[GIVEN];
    if (given & STK_RNN_DHS)
        STK_TRY(need_sequence(c, s, stk_rnn_arg(given, fixed, STK_RNN_DHS),
                              "gradient of the sequence", s->hidden));
    if (given & STK_RNN_DH)
        STK_TRY(need_state(c, s, stk_rnn_arg(given, fixed, STK_RNN_DH), "gradient of h"));
    if (given & STK_RNN_DC)
        STK_TRY(need_state(c, s, stk_rnn_arg(given, fixed, STK_RNN_DC), "gradient of c"));
    return STK_OK;
}

static stk_type sequence_type(const stk_infer *c, const sizes *s, int64_t width)
{
    bool turned = c->node->ints[TIME_MAJOR];
    return (stk_type){s->dtype,
                      {3, {turned ? s->time : s->batch, turned ? s->batch : s->time, width}}};
}
static stk_type state_type(const sizes *s)
{
    return (stk_type){s->dtype, {2, {s->batch, s->hidden}}};
}

/* ---- what both gradients are made of ------------------------------------------------------------------- */

/* The matrix [rows of all steps, width]. */
static stk_val flat(stk_graph *g, stk_val v)
{
    return stk_g_reshape(g, v, 2,
                         (int64_t[]){stk_g_dim(g, v, 0) * stk_g_dim(g, v, 1), stk_g_dim(g, v, 2)});
}

/* The state that each step started from: the sequence moved on by one step, the first state in front. */
static stk_val states_before(stk_graph *g, const stk_node *n, stk_val hs, stk_val h0)
{
    int32_t axis = n->ints[TIME_MAJOR] ? 0 : 1;
    bool reverse = n->ints[REVERSE];
    int64_t time = stk_g_dim(g, hs, axis);
    stk_val first = stk_g_expand_dims(g, h0, axis);
    if (time == 1) return first;
    stk_val rest = stk_g_slice_axis(g, hs, axis, reverse ? 1 : 0, time - 1);
    return stk_g_concat(g, 2, reverse ? (stk_val[]){rest, first} : (stk_val[]){first, rest}, axis);
}

static bool no_steps(const stk_graph *g, const stk_node *n)
{
    return stk_g_dim(g, n->in[0], n->ints[TIME_MAJOR] ? 0 : 1) == 0;
}

/* Adds the optional inputs of a gradient op behind `fixed` ones; returns their bits. */
static int64_t add_optional(const stk_grad *c, int32_t forward_fixed, stk_val dc, stk_val *in,
                            int32_t *n)
{
    int64_t given = STK_RNN_PANELS;
    if (c->node.ints[GIVEN] & STK_RNN_MASK) {
        given |= STK_RNN_MASK;
        in[(*n)++] =
            c->node.in[stk_rnn_arg((int32_t)c->node.ints[GIVEN], forward_fixed, STK_RNN_MASK)];
    }
    stk_val d[3] = {c->dout[0], c->dout[1], dc};
    for (int i = 0; i < 3; i++)
        if (d[i]) {
            given |= STK_RNN_DHS << i;
            in[(*n)++] = d[i];
        }
    return given;
}

static stk_val apply(stk_graph *g, stk_op op, const stk_node *like, int64_t given, int32_t n,
                     const stk_val *in)
{
    int64_t ints[ATTRIBUTES] = {like->ints[TIME_MAJOR], like->ints[REVERSE],
                                like->ints[RESET_AFTER], given};
    return stk_g_apply(g, op, n, in, &(stk_attrs){.ints = ints, .nints = ATTRIBUTES});
}

/* Blocks of columns that a vector kernel likes: whole registers, and small enough to stay in cache. */
static int64_t panel_width(int64_t hidden)
{
    enum { NARROWEST = 32, WIDEST = 64, REGISTERS = 16 };
    int64_t best = 0;
    for (int64_t w = 1; w <= WIDEST && w <= hidden; w++) {
        if (hidden % w || w < NARROWEST) continue;
        if (!best || w % REGISTERS == 0 || best % REGISTERS) best = w;
    }
    return best;
}

stk_val stk_rnn_panels(stk_graph *g, stk_val u)
{
    enum { SMALL = 16 * 1024 }; /* elements that are as fast where they are */
    int64_t rows = stk_g_dim(g, u, 0), columns = stk_g_dim(g, u, 1), width = panel_width(rows);
    if (!width || rows * columns <= SMALL) return 0;
    stk_val blocks = stk_g_reshape(g, u, 3, (int64_t[]){rows, columns / width, width});
    return stk_g_transpose(g, blocks, (int32_t[]){1, 0, 2});
}

/* [hidden, columns] -> [hidden / width, columns, width] */
static stk_val panels_turned(stk_graph *g, stk_val u)
{
    int64_t hidden = stk_g_dim(g, u, 0), columns = stk_g_dim(g, u, 1), width = panel_width(hidden);
    if (!width) width = hidden;
    stk_val blocks =
        stk_g_reshape(g, u, 3, (int64_t[]){width ? hidden / width : 0, width, columns});
    return stk_g_transpose(g, blocks, (int32_t[]){0, 2, 1});
}

static void no_second_gradient(stk_grad *c)
{
    const char *name = c->node.op == STK_OP_LSTM_GRAD ? "lstm" : "gru";
    stk_g_fail(c->g, STK_ERR_UNSUPPORTED,
               "gradients: the fused %s has no gradient of its gradient; build the layer with "
               "stk_g_%s_composed, which has",
               name, name);
}

static bool refuse_workspace(stk_grad *c, int32_t first)
{
    bool arrives = false;
    for (int32_t o = first; o < c->node.nout; o++) arrives |= c->dout[o] != 0;
    if (arrives)
        stk_g_fail(c->g, STK_ERR_UNSUPPORTED,
                   "gradients: what %s keeps for its own gradient (outputs %d and on) has no "
                   "gradient; use its sequence and states",
                   stk_op_name((stk_op)c->node.op), first);
    return arrives;
}

/* ---- lowering ------------------------------------------------------------------------------------------ */

/* Does anybody read this value? The compiler has removed what nobody needs. */
static bool is_read(const stk_graph *g, stk_val v)
{
    for (int64_t k = g->values[v].node; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++)
            if (g->nodes[k].in[i] == v) return true;
    for (int64_t o = 0; o < g->noutputs; o++)
        if (g->outputs[o].val == v) return true;
    return false;
}

static stk_status lower_rnn(stk_lower *l, stk_kernel kernel, int32_t fixed, int32_t u,
                            int32_t gates)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]);
    bool turned = n->ints[TIME_MAJOR];
    stk_rnn_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->batch = x->shape.dim[turned];
    p->time = x->shape.dim[!turned];
    p->hidden = stk_g_dim(l->g, n->in[u], 0);
    p->given = (int32_t)n->ints[GIVEN];
    if (p->given & STK_RNN_PANELS) p->panel = stk_g_dim(l->g, n->in[fixed], 2);
    p->time_major = turned;
    p->reverse = n->ints[REVERSE] != 0;
    p->reset_after = n->ints[RESET_AFTER] != 0;
    p->dtype = x->dtype;
    for (int32_t o = gates; gates && o < n->nout; o++) p->saved |= is_read(l->g, n->out + o);
    return STK_OK;
}

static double cost_rnn(const stk_graph *g, const stk_node *n, stk_val u)
{
    enum { PER_UNIT = 100 }; /* gates: sigmoids, tanh and what they are made of */
    double rows = (double)stk_g_dim(g, n->in[0], 0) * (double)stk_g_dim(g, n->in[0], 1);
    double hidden = (double)stk_g_dim(g, u, 0), columns = (double)stk_g_dim(g, u, 1);
    return rows * hidden * (2 * columns + PER_UNIT);
}

/* ---- lstm, lstm_grad ------------------------------------------------------------------------------------- */

enum { LSTM_FIXED = 5, LSTM_GRAD_FIXED = 4 };

static stk_status infer_lstm(stk_infer *c)
{
    sizes s;
    STK_TRY(read_sizes(c, LSTM_FIXED, 4, 4, 4, STK_RNN_PANELS | STK_RNN_MASK, &s));
    STK_TRY(need_state(c, &s, 1, "h0"));
    STK_TRY(need_state(c, &s, 2, "c0"));
    STK_TRY(need(c, 3, "bias", 1, (int64_t[]){4 * s.hidden}));
    STK_TRY(need_panels(c, &s, LSTM_FIXED, s.hidden, 4 * s.hidden));
    STK_TRY(need_mask(c, &s, LSTM_FIXED));
    c->out[0] = c->out[4] = sequence_type(c, &s, s.hidden);
    c->out[1] = c->out[2] = state_type(&s);
    c->out[3] = *c->in[0];
    return STK_OK;
}

static void grad_lstm(stk_grad *c)
{
    stk_graph *g = c->g;
    const stk_node *n = &c->node;
    if (refuse_workspace(c, 3)) return;
    stk_val u = n->in[4], in[9] = {n->out + 3, n->out + 4, n->in[2], u, panels_turned(g, u)};
    int32_t count = LSTM_GRAD_FIXED + 1;
    int64_t given = add_optional(c, LSTM_FIXED, c->dout[2], in, &count);
    stk_val dx = apply(g, STK_OP_LSTM_GRAD, n, given, count, in);
    if (!dx) return;
    c->din[0] = dx;
    c->din[1] = dx + 1;
    c->din[2] = dx + 2;
    if (no_steps(g, n)) return;
    stk_val rows = flat(g, dx);
    c->din[3] = stk_g_sum(g, rows, 1, (int32_t[]){0}, false);
    c->din[4] =
        stk_g_matmul_t(g, flat(g, states_before(g, n, n->out, n->in[1])), rows, true, false);
}

static stk_status lower_lstm(stk_lower *l) { return lower_rnn(l, STK_K_LSTM, LSTM_FIXED, 4, 3); }
static double cost_lstm(const stk_graph *g, const stk_node *n) { return cost_rnn(g, n, n->in[4]); }

const stk_opdef stk_opdef_lstm = {.flags = STK_OPF_WIDEN,
                                  .infer = infer_lstm,
                                  .grad = grad_lstm,
                                  .lower = lower_lstm,
                                  .cost = cost_lstm};

static stk_status infer_lstm_grad(stk_infer *c)
{
    sizes s;
    STK_TRY(read_sizes(c, LSTM_GRAD_FIXED, 3, 4, 4, STK_RNN_ALL, &s));
    STK_TRY(need_sequence(c, &s, 1, "cells", s.hidden));
    STK_TRY(need_state(c, &s, 2, "c0"));
    STK_TRY(need_panels(c, &s, LSTM_GRAD_FIXED, 4 * s.hidden, s.hidden));
    STK_TRY(need_mask(c, &s, LSTM_GRAD_FIXED));
    STK_TRY(need_gradients(c, &s, LSTM_GRAD_FIXED));
    c->out[0] = *c->in[0];
    c->out[1] = c->out[2] = state_type(&s);
    return STK_OK;
}

static stk_status lower_lstm_grad(stk_lower *l)
{
    return lower_rnn(l, STK_K_LSTM_GRAD, LSTM_GRAD_FIXED, 3, 0);
}
static double cost_lstm_grad(const stk_graph *g, const stk_node *n)
{
    return cost_rnn(g, n, n->in[3]);
}

const stk_opdef stk_opdef_lstm_grad = {.flags = STK_OPF_WIDEN,
                                       .infer = infer_lstm_grad,
                                       .grad = no_second_gradient,
                                       .lower = lower_lstm_grad,
                                       .cost = cost_lstm_grad};

/* ---- gru, gru_grad ---------------------------------------------------------------------------------------- */

enum { GRU_FIXED = 4, GRU_GRAD_FIXED = 4 };

static stk_status infer_gru(stk_infer *c)
{
    sizes s;
    STK_TRY(read_sizes(c, GRU_FIXED, 3, 3, 3, STK_RNN_PANELS | STK_RNN_MASK, &s));
    STK_TRY(need_state(c, &s, 1, "h0"));
    if (c->node->ints[RESET_AFTER])
        STK_TRY(need(c, 2, "bias (reset_after)", 2, (int64_t[]){2, 3 * s.hidden}));
    else
        STK_TRY(need(c, 2, "bias", 1, (int64_t[]){3 * s.hidden}));
    STK_TRY(need_panels(c, &s, GRU_FIXED, s.hidden, 3 * s.hidden));
    STK_TRY(need_mask(c, &s, GRU_FIXED));
    int64_t gates;
    if (!stk_mul_i64(4, s.hidden, &gates))
        return stk_infer_fail(c, STK_ERR_RANGE, "too many units");
    c->out[0] = sequence_type(c, &s, s.hidden);
    c->out[1] = state_type(&s);
    c->out[2] = sequence_type(c, &s, gates);
    return STK_OK;
}

/* The reset gate stands behind the product: one product with the gradient of h u. */
static void grad_gru_after(stk_grad *c, stk_val dx, stk_val before)
{
    stk_graph *g = c->g;
    int64_t columns = stk_g_dim(g, c->node.in[3], 1);
    stk_val rows = flat(g, dx), dhu = flat(g, dx + 1);
    stk_val b[2] = {stk_g_sum(g, rows, 1, (int32_t[]){0}, true),
                    stk_g_sum(g, dhu, 1, (int32_t[]){0}, true)};
    c->din[2] = stk_g_reshape(g, stk_g_concat(g, 2, b, 0), 2, (int64_t[]){2, columns});
    c->din[3] = stk_g_matmul_t(g, before, dhu, true, false);
}

/* It stands in front: the left side of the candidate's weights is r h. */
static void grad_gru_before(stk_grad *c, stk_val dx, stk_val before)
{
    stk_graph *g = c->g;
    int64_t n = stk_g_dim(g, c->node.in[3], 0);
    stk_val rows = flat(g, dx);
    stk_val reset = stk_g_slice_axis(g, flat(g, c->node.out + 2), 1, 3 * n, n);
    stk_val u[2] = {stk_g_matmul_t(g, before, stk_g_slice_axis(g, rows, 1, 0, 2 * n), true, false),
                    stk_g_matmul_t(g, reset, stk_g_slice_axis(g, rows, 1, 2 * n, n), true, false)};
    c->din[2] = stk_g_sum(g, rows, 1, (int32_t[]){0}, false);
    c->din[3] = stk_g_concat(g, 2, u, 1);
}

static void grad_gru(stk_grad *c)
{
    stk_graph *g = c->g;
    const stk_node *n = &c->node;
    if (refuse_workspace(c, 2)) return;
    stk_val u = n->in[3], in[8] = {n->out + 2, n->out, n->in[1], u, panels_turned(g, u)};
    int32_t count = GRU_GRAD_FIXED + 1;
    int64_t given = add_optional(c, GRU_FIXED, 0, in, &count);
    stk_val dx = apply(g, STK_OP_GRU_GRAD, n, given, count, in);
    if (!dx) return;
    c->din[0] = dx;
    c->din[1] = dx + 2;
    if (no_steps(g, n)) return;
    stk_val before = flat(g, states_before(g, n, n->out, n->in[1]));
    if (n->ints[RESET_AFTER])
        grad_gru_after(c, dx, before);
    else
        grad_gru_before(c, dx, before);
}

static stk_status lower_gru(stk_lower *l) { return lower_rnn(l, STK_K_GRU, GRU_FIXED, 3, 2); }
static double cost_gru(const stk_graph *g, const stk_node *n) { return cost_rnn(g, n, n->in[3]); }

const stk_opdef stk_opdef_gru = {.flags = STK_OPF_WIDEN,
                                 .infer = infer_gru,
                                 .grad = grad_gru,
                                 .lower = lower_gru,
                                 .cost = cost_gru};

static stk_status infer_gru_grad(stk_infer *c)
{
    sizes s;
    STK_TRY(read_sizes(c, GRU_GRAD_FIXED, 3, 4, 3, STK_RNN_ALL & ~STK_RNN_DC, &s));
    STK_TRY(need_sequence(c, &s, 1, "states", s.hidden));
    STK_TRY(need_state(c, &s, 2, "h0"));
    STK_TRY(need_panels(c, &s, GRU_GRAD_FIXED, 3 * s.hidden, s.hidden));
    STK_TRY(need_mask(c, &s, GRU_GRAD_FIXED));
    STK_TRY(need_gradients(c, &s, GRU_GRAD_FIXED));
    c->out[0] = sequence_type(c, &s, 3 * s.hidden);
    c->out[1] = sequence_type(c, &s, c->node->ints[RESET_AFTER] ? 3 * s.hidden : 0);
    c->out[2] = state_type(&s);
    return STK_OK;
}

static stk_status lower_gru_grad(stk_lower *l)
{
    return lower_rnn(l, STK_K_GRU_GRAD, GRU_GRAD_FIXED, 3, 0);
}

const stk_opdef stk_opdef_gru_grad = {.flags = STK_OPF_WIDEN,
                                      .infer = infer_gru_grad,
                                      .grad = no_second_gradient,
                                      .lower = lower_gru_grad,
                                      .cost = cost_gru};
