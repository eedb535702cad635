/* Builders of recurrent layers: fused, and composed of elementary operations in a scan. */
#include "graph/ops/rnn.h"

/* ---- checking ----------------------------------------------------------------------------------------- */

stk_rnn_options stk_rnn_options_defaults(void) { return (stk_rnn_options){.reset_after = true}; }

/* A layer being built: everything optional filled in. */
typedef struct layer {
    const char *name;
    int64_t gates; /* 4 or 3 */
    int64_t batch, time, features, hidden;
    stk_rnn_options o;
    stk_val x, w, u, b, h0, c0, mask;
} layer;

static bool has_shape(const stk_graph *g, stk_val v, int32_t rank, const int64_t *dim)
{
    if (!stk_val_ok(g, v) || stk_g_rank(g, v) != rank) return false;
    for (int32_t i = 0; i < rank; i++)
        if (stk_g_dim(g, v, i) != dim[i]) return false;
    return true;
}

static bool need(stk_graph *g, const layer *l, const char *what, stk_val v, stk_dtype dtype,
                 int32_t rank, const int64_t *dim)
{
    if (has_shape(g, v, rank, dim) && stk_g_dtype(g, v) == dtype) return true;
    stk_type want = {dtype, {.rank = rank}};
    for (int32_t i = 0; i < rank; i++) want.shape.dim[i] = dim[i];
    bool known = stk_val_ok(g, v);
    stk_g_fail(g, known && stk_g_dtype(g, v) != dtype ? STK_ERR_DTYPE : STK_ERR_SHAPE,
               "%s: %s is %s, but x %s with %lld units needs %s", l->name, what,
               known ? STK_TYPE_TEXT(stk_type_of(g, v)) : "no value of this graph",
               STK_TYPE_TEXT(stk_type_of(g, l->x)), (long long)l->hidden, STK_TYPE_TEXT(&want));
    return false;
}

/* x and the sizes that it and u tell. */
static bool read_sizes(stk_graph *g, layer *l)
{
    bool known = stk_val_ok(g, l->x) && stk_val_ok(g, l->u);
    if (!known || stk_g_rank(g, l->x) != 3 || !stk_dtype_is_float(stk_g_dtype(g, l->x))) {
        stk_g_fail(g, known ? STK_ERR_SHAPE : STK_ERR_ARGUMENT,
                   "%s: x is %s; a batch of sequences is float [%s, features]", l->name,
                   known ? STK_TYPE_TEXT(stk_type_of(g, l->x)) : "(or u is) no value of this graph",
                   l->o.time_major ? "time, batch" : "batch, time");
        return false;
    }
    l->batch = stk_g_dim(g, l->x, l->o.time_major ? 1 : 0);
    l->time = stk_g_dim(g, l->x, l->o.time_major ? 0 : 1);
    l->features = stk_g_dim(g, l->x, 2);
    l->hidden = stk_g_dim(g, l->u, 0);
    int64_t columns = stk_g_dim(g, l->u, 1);
    if (stk_g_rank(g, l->u) == 2 && columns % l->gates == 0 && columns / l->gates == l->hidden)
        return true;
    stk_g_fail(g, STK_ERR_SHAPE, "%s: recurrent weights u are %s; they need [units, %lld * units]",
               l->name, STK_TYPE_TEXT(stk_type_of(g, l->u)), (long long)l->gates);
    return false;
}

static bool fill_in(stk_graph *g, layer *l)
{
    if (!stk_graph_ok(g) || !read_sizes(g, l)) return false;
    const stk_dtype t = stk_g_dtype(g, l->x);
    const int64_t n = l->hidden, state[2] = {l->batch, n}, bias[2] = {2, l->gates * n};
    const bool twice = l->gates == 3 && l->o.reset_after, turned = l->o.time_major;
    if (!l->h0) l->h0 = stk_g_fill(g, t, 2, state, 0);
    if (!l->c0) l->c0 = l->gates == 4 ? stk_g_fill(g, t, 2, state, 0) : l->h0;
    if (!l->b) l->b = stk_g_fill(g, t, twice ? 2 : 1, twice ? bias : bias + 1, 0);
    return need(g, l, "u", l->u, t, 2, (int64_t[]){n, l->gates * n}) &&
           need(g, l, "w", l->w, t, 2, (int64_t[]){l->features, l->gates * n}) &&
           need(g, l, "b", l->b, t, twice ? 2 : 1, twice ? bias : bias + 1) &&
           need(g, l, "h0", l->h0, t, 2, state) && need(g, l, "c0", l->c0, t, 2, state) &&
           (!l->mask ||
            need(g, l, "the mask", l->mask, STK_BOOL, 2,
                 (int64_t[]){turned ? l->time : l->batch, turned ? l->batch : l->time}));
}

static layer layer_of(const char *name, int64_t gates, stk_val x, stk_val w, stk_val u, stk_val b,
                      const stk_rnn_options *options)
{
    layer l = {.name = name,
               .gates = gates,
               .o = options ? *options : stk_rnn_options_defaults(),
               .x = x,
               .w = w,
               .u = u,
               .b = b};
    l.h0 = l.o.h0;
    l.c0 = gates == 4 ? l.o.c0 : 0;
    l.mask = l.o.mask;
    return l;
}

/* The input's share of every step in one product. */
static stk_val project(stk_graph *g, const layer *l)
{
    stk_val rows = stk_g_reshape(g, l->x, 2, (int64_t[]){l->batch * l->time, l->features});
    return stk_g_reshape(
        g, stk_g_matmul(g, rows, l->w), 3,
        (int64_t[]){stk_g_dim(g, l->x, 0), stk_g_dim(g, l->x, 1), l->gates * l->hidden});
}

/* ---- fused -------------------------------------------------------------------------------------------- */

static stk_rnn_result fused(stk_graph *g, layer *l, stk_op op)
{
    stk_val in[7];
    int32_t n = 0;
    int64_t ints[4] = {l->o.time_major, l->o.reverse, l->gates == 3 && l->o.reset_after, 0};
    if (!fill_in(g, l)) return (stk_rnn_result){0};
    in[n++] = project(g, l);
    in[n++] = l->h0;
    if (l->gates == 4) in[n++] = l->c0;
    in[n++] = l->b;
    in[n++] = l->u;
    stk_val panels = stk_rnn_panels(g, l->u);
    if (panels) {
        ints[3] |= STK_RNN_PANELS;
        in[n++] = panels;
    }
    if (l->mask) {
        ints[3] |= STK_RNN_MASK;
        in[n++] = l->mask;
    }
    stk_val y =
        stk_graph_ok(g) ? stk_g_apply(g, op, n, in, &(stk_attrs){.ints = ints, .nints = 4}) : 0;
    if (!y) return (stk_rnn_result){0};
    return (stk_rnn_result){.sequence = y, .h = y + 1, .c = l->gates == 4 ? y + 2 : 0};
}

stk_rnn_result stk_g_lstm(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                          const stk_rnn_options *options)
{
    layer l = layer_of("lstm", 4, x, w, u, b, options);
    return fused(g, &l, STK_OP_LSTM);
}

stk_rnn_result stk_g_gru(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                         const stk_rnn_options *options)
{
    layer l = layer_of("gru", 3, x, w, u, b, options);
    return fused(g, &l, STK_OP_GRU);
}

/* ---- composed ------------------------------------------------------------------------------------------ */

static stk_val one_minus(stk_graph *g, stk_val v)
{
    return stk_g_sub(g, stk_g_scalar(g, stk_g_dtype(g, v), 1), v);
}

/* One step; x is the input's share. state[0] = h, state[1] = c. */
static void lstm_cell(stk_graph *g, stk_val x, stk_val u, stk_val b, stk_val state[2])
{
    stk_val gate[4];
    stk_g_split(g, stk_g_add(g, stk_g_add(g, x, b), stk_g_matmul(g, state[0], u)), 1, 4, gate);
    stk_val i = stk_g_sigmoid(g, gate[0]), f = stk_g_sigmoid(g, gate[1]);
    state[1] = stk_g_add(g, stk_g_mul(g, f, state[1]), stk_g_mul(g, i, stk_g_tanh(g, gate[2])));
    state[0] = stk_g_mul(g, stk_g_sigmoid(g, gate[3]), stk_g_tanh(g, state[1]));
}

static stk_val gru_state(stk_graph *g, stk_val z, stk_val h, stk_val before_tanh)
{
    return stk_g_add(g, stk_g_mul(g, z, h),
                     stk_g_mul(g, one_minus(g, z), stk_g_tanh(g, before_tanh)));
}

static void gru_after_cell(stk_graph *g, stk_val x, stk_val u, stk_val b, stk_val state[2])
{
    stk_val both[2], in[3], back[3], h = state[0];
    stk_g_split(g, b, 0, 2, both);
    stk_g_split(g, stk_g_add(g, x, both[0]), 1, 3, in);
    stk_g_split(g, stk_g_add(g, stk_g_matmul(g, h, u), both[1]), 1, 3, back);
    stk_val z = stk_g_sigmoid(g, stk_g_add(g, in[0], back[0]));
    stk_val r = stk_g_sigmoid(g, stk_g_add(g, in[1], back[1]));
    state[0] = gru_state(g, z, h, stk_g_add(g, in[2], stk_g_mul(g, r, back[2])));
}

static void gru_before_cell(stk_graph *g, stk_val x, stk_val u, stk_val b, stk_val state[2])
{
    stk_val in[3], w[3], h = state[0];
    stk_g_split(g, stk_g_add(g, x, b), 1, 3, in);
    stk_g_split(g, u, 1, 3, w);
    stk_val z = stk_g_sigmoid(g, stk_g_add(g, in[0], stk_g_matmul(g, h, w[0])));
    stk_val r = stk_g_sigmoid(g, stk_g_add(g, in[1], stk_g_matmul(g, h, w[1])));
    stk_val side = stk_g_matmul(g, stk_g_mul(g, r, h), w[2]);
    state[0] = gru_state(g, z, h, stk_g_add(g, in[2], side));
}

static stk_val input_like(stk_graph *b, const char *name, const stk_graph *g, stk_val v, bool slice)
{
    stk_shape s = stk_type_of(g, v)->shape;
    int32_t off = slice ? 1 : 0;
    return stk_g_input(b, name, stk_g_dtype(g, v), s.rank - off, s.dim + off);
}

/* Body: states | x [mask] | u b -> states | h */
static void step_body(stk_graph *body, const stk_graph *g, const layer *l, stk_val x, stk_val mask)
{
    stk_val state[2], was[2];
    state[0] = was[0] = input_like(body, "h", g, l->h0, false);
    state[1] = was[1] = l->gates == 4 ? input_like(body, "c", g, l->c0, false) : 0;
    stk_val x_t = input_like(body, "x", g, x, true);
    stk_val keep = mask ? input_like(body, "mask", g, mask, true) : 0;
    stk_val u = input_like(body, "u", g, l->u, false), b = input_like(body, "b", g, l->b, false);
    if (l->gates == 4)
        lstm_cell(body, x_t, u, b, state);
    else if (l->o.reset_after)
        gru_after_cell(body, x_t, u, b, state);
    else
        gru_before_cell(body, x_t, u, b, state);
    for (int i = 0; keep && i < (l->gates == 4 ? 2 : 1); i++)
        state[i] = stk_g_select(body, stk_g_expand_dims(body, keep, 1), state[i], was[i]);
    stk_g_output(body, "h", state[0]);
    if (l->gates == 4) stk_g_output(body, "c", state[1]);
    stk_g_output(body, "y", state[0]);
}

static stk_rnn_result composed(stk_graph *g, layer *l)
{
    stk_graph *body = NULL;
    if (!fill_in(g, l)) return (stk_rnn_result){0};
    stk_val x = project(g, l), mask = l->mask;
    if (!l->o.time_major) {
        x = stk_g_transpose(g, x, (int32_t[]){1, 0, 2});
        if (mask) mask = stk_g_transpose(g, mask, NULL);
    }
    if (!stk_graph_ok(g)) return (stk_rnn_result){0};
    if (stk_graph_new(&body, NULL) != STK_OK) {
        stk_g_fail(g, STK_ERR_MEMORY, "%s: out of memory", l->name);
        return (stk_rnn_result){0};
    }
    step_body(body, g, l, x, mask);
    const int32_t states = l->gates == 4 ? 2 : 1;
    stk_val y =
        stk_g_scan(g, body, states, (stk_val[]){l->h0, l->c0}, mask ? 2 : 1, (stk_val[]){x, mask},
                   2, (stk_val[]){l->u, l->b}, &(stk_scan_options){.reverse = l->o.reverse});
    stk_graph_release(body);
    if (!y) return (stk_rnn_result){0};
    stk_val sequence = y + states;
    if (!l->o.time_major) sequence = stk_g_transpose(g, sequence, (int32_t[]){1, 0, 2});
    return (stk_rnn_result){.sequence = sequence, .h = y, .c = states == 2 ? y + 1 : 0};
}

stk_rnn_result stk_g_lstm_composed(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                   const stk_rnn_options *options)
{
    layer l = layer_of("lstm_composed", 4, x, w, u, b, options);
    return composed(g, &l);
}

stk_rnn_result stk_g_gru_composed(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                  const stk_rnn_options *options)
{
    layer l = layer_of("gru_composed", 3, x, w, u, b, options);
    return composed(g, &l);
}
