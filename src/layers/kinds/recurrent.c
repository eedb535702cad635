/* SimpleRNN, LSTM and GRU. The default LSTM and GRU run in one kernel each (stoker/recurrent.h); what those do not do is walked
 * step by step (recurrent_walk.c). Masks, directions and states mean what they mean in Keras. */
#include "layers/kinds/recurrent.h"

#include "stoker/recurrent.h"

#include <stdio.h>
#include <string.h>

bool stk_layer_is_rnn(const stk_layer_state *layer)
{
    return layer && (layer->def == &stk_layer_simple_rnn || layer->def == &stk_layer_lstm ||
                     layer->def == &stk_layer_gru);
}

static stk_status check_rnn(stk_layer_state *layer, stk_error *err)
{
    stk_rnn_config *o = layer->config;
    if (o->stateful)
        return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                                "stateful=True is not supported, states start anew with each "
                                "batch; use return_state and initial_state to carry them");
    if (!(o->dropout >= 0 && o->dropout <= 1 && o->recurrent_dropout >= 0 &&
          o->recurrent_dropout <= 1))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "dropout is %g and recurrent_dropout %g; they take 0 to 1",
                                o->dropout, o->recurrent_dropout);
    return STK_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

typedef struct cell {
    stk_cell_kind kind;
    const char *scope; /* weights are named "lstm/lstm_cell/kernel" */
    int32_t gates;
    stk_val w, u, b;
} cell;

static stk_val weight(stk_layer_call *c, const cell *k, const char *name, int32_t rank,
                      const int64_t *shape, const stk_weight_wish *wish)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", k->scope, name);
    return stk_c_weight(c, path, rank, shape, wish);
}

static void declare(stk_layer_call *c, cell *k)
{
    const stk_rnn_config *o = c->config;
    int64_t wide = k->gates * o->units, features = stk_c_dim(c, 0, 2);
    bool two = k->kind == STK_CELL_GRU && o->reset_after;
    k->w = weight(c, k, "kernel", 2, (int64_t[]){features, wide}, STK_WISH(o, kernel));
    k->u = weight(c, k, "recurrent_kernel", 2, (int64_t[]){o->units, wide}, STK_WISH(o, recurrent));
    if (o->use_bias)
        k->b = weight(c, k, "bias", two ? 2 : 1, two ? (int64_t[]){2, wide} : &wide,
                      &(stk_weight_wish){.initializer = o->forget_bias.def ? &o->forget_bias
                                                                           : o->bias_initializer,
                                         .regularizer = o->bias_regularizer,
                                         .constraint = o->bias_constraint});
}

/* ---- one call --------------------------------------------------------------------------------------------------------------- */

/* What a walk gives, batch first. */
typedef struct walked {
    stk_val sequence, h, c;
} walked;

static bool named(const stk_activation *a, const char *name)
{
    return a->def && !strcmp(a->def->name, name);
}

static bool drops_state(const stk_layer_call *c)
{
    const stk_rnn_config *o = c->config;
    return c->training && o->recurrent_dropout > 0;
}

static bool is_fused(const stk_layer_call *c, const cell *k)
{
    const stk_rnn_config *o = c->config;
    return k->kind != STK_CELL_SIMPLE && !drops_state(c) && named(&o->activation, "tanh") &&
           named(&o->recurrent_activation, "sigmoid");
}

static walked walk_fused(stk_layer_call *c, const cell *k, stk_val x, stk_val h0, stk_val c0)
{
    const stk_rnn_config *o = c->config;
    stk_rnn_options options = stk_rnn_options_defaults();
    options.reverse = o->go_backwards;
    options.reset_after = o->reset_after;
    options.mask = c->mask[0];
    options.h0 = h0;
    options.c0 = c0;
    stk_rnn_result r = k->kind == STK_CELL_LSTM ? stk_g_lstm(c->g, x, k->w, k->u, k->b, &options)
                                                : stk_g_gru(c->g, x, k->w, k->u, k->b, &options);
    return (walked){r.sequence, r.h, r.c};
}

static stk_val time_first(stk_graph *g, stk_val x)
{
    return stk_g_transpose(g, x, (int32_t[]){1, 0, 2});
}

static walked walk_steps(stk_layer_call *c, const cell *k, stk_val x, stk_val h0, stk_val c0)
{
    const stk_rnn_config *o = c->config;
    stk_graph *g = c->g;
    int64_t state[2] = {stk_c_dim(c, 0, 0), o->units};
    bool two = k->kind == STK_CELL_GRU && o->reset_after && k->b;
    stk_val input_bias = k->b, zeros = stk_g_fill(g, c->compute, 2, state, 0);
    stk_walk_wish w = {.kind = k->kind, .options = o, .u = k->u, .reverse = o->go_backwards};
    if (two) {
        int64_t wide = k->gates * o->units;
        input_bias = stk_g_reshape(g, stk_g_slice_axis(g, k->b, 0, 0, 1), 1, &wide);
        w.b = stk_g_reshape(g, stk_g_slice_axis(g, k->b, 0, 1, 1), 1, &wide);
    }
    w.x = stk_g_matmul(g, time_first(g, x), k->w);
    if (input_bias) w.x = stk_g_add(g, w.x, input_bias);
    if (c->mask[0]) w.mask = time_first(g, stk_g_expand_dims(g, c->mask[0], 2));
    w.h0 = h0 ? h0 : zeros;
    w.c0 = c0 ? c0 : zeros;
    if (drops_state(c)) {
        stk_random_options random = stk_c_random(c, o->seed);
        w.h_factor = stk_g_dropout(g, stk_g_fill(g, c->compute, 2, state, 1), o->recurrent_dropout,
                                   NULL, &random);
    }
    stk_walk_result r = stk_c_walk(c, &w);
    return (walked){r.sequence ? time_first(g, r.sequence) : 0, r.h, r.c};
}

/* Keras' outputs of steps that are masked repeat the one before them, zeros where there is none; ours repeat the state, which is the
 * same unless a state was given. */
static void mend_start(stk_layer_call *c, walked *r)
{
    const stk_rnn_config *o = c->config;
    stk_graph *g = c->g;
    stk_val seen = stk_g_cumsum(g, stk_g_cast(g, c->mask[0], STK_I32), 1, false, o->go_backwards);
    seen = stk_g_gt(g, seen, stk_g_scalar(g, STK_I32, 0));
    r->sequence =
        stk_g_select(g, stk_g_expand_dims(g, seen, 2), r->sequence, stk_g_scalar(g, c->compute, 0));
}

static stk_val last_output(stk_layer_call *c, const walked *r, stk_val h0)
{
    const stk_rnn_config *o = c->config;
    if (!c->mask[0] || (!h0 && !o->zero_output_for_mask)) return r->h;
    int64_t time = stk_c_dim(c, 0, 1);
    stk_val last = stk_g_slice_axis(c->g, r->sequence, 1, o->go_backwards ? 0 : time - 1, 1);
    return stk_g_squeeze(c->g, last, 1);
}

/* States given as further inputs: one for SimpleRNN and GRU, two for LSTM. */
static bool initial_states(stk_layer_call *c, const cell *k, stk_val *h0, stk_val *c0)
{
    int32_t states = k->kind == STK_CELL_LSTM ? 2 : 1;
    if (c->nx == 1) return true;
    if (c->nx != 1 + states) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "%d initial states; it takes %d", c->nx - 1, states);
        return false;
    }
    *h0 = c->x[1];
    if (states == 2) *c0 = c->x[2];
    return true;
}

static void call_rnn(stk_layer_call *c, cell *k)
{
    const stk_rnn_config *o = c->config;
    stk_graph *g = c->g;
    stk_val x, h0 = 0, c0 = 0;
    if (!stk_c_rank(c, 0, 3, 3) || !initial_states(c, k, &h0, &c0)) return;
    x = stk_g_cast(g, c->x[0], c->compute);
    declare(c, k);
    if (c->training && o->dropout > 0) { /* one draw for all steps of a sequence */
        stk_random_options random = stk_c_random(c, o->seed);
        x = stk_g_dropout(g, x, o->dropout, (int64_t[]){stk_c_dim(c, 0, 0), 1, stk_c_dim(c, 0, 2)},
                          &random);
    }
    walked r = is_fused(c, k) ? walk_fused(c, k, x, h0, c0) : walk_steps(c, k, x, h0, c0);
    if (!stk_graph_ok(g)) return;
    if (c->mask[0] && h0) mend_start(c, &r);
    if (c->mask[0] && o->zero_output_for_mask)
        r.sequence = stk_g_select(g, stk_g_expand_dims(g, c->mask[0], 2), r.sequence,
                                  stk_g_scalar(g, c->compute, 0));
    c->y[0] = !o->return_sequences ? last_output(c, &r, h0)
              : o->go_backwards    ? stk_g_reverse(g, r.sequence, 1)
                                   : r.sequence;
    if (o->return_sequences) c->ymask[0] = c->mask[0];
    if (!o->return_state) return;
    c->ny = k->kind == STK_CELL_LSTM ? 3 : 2;
    c->y[1] = r.h;
    c->y[2] = r.c;
}

/* ---- tables -------------------------------------------------------------------------------------------------------------------- */

#define RNN(member, kind_, ...) STK_FIELD(stk_rnn_config, member, kind_, __VA_ARGS__)
#define RNN_WEIGHTS                                                                                \
    RNN(use_bias, BOOL, "True"), RNN(kernel_initializer, INITIALIZER, "glorot_uniform"),           \
        RNN(recurrent_initializer, INITIALIZER, "orthogonal"),                                     \
        RNN(bias_initializer, INITIALIZER, "zeros")
#define RNN_RULES                                                                                  \
    RNN(kernel_regularizer, REGULARIZER, "None"), RNN(recurrent_regularizer, REGULARIZER, "None"), \
        RNN(bias_regularizer, REGULARIZER, "None"),                                                \
        {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},              \
        RNN(kernel_constraint, CONSTRAINT, "None"), RNN(recurrent_constraint, CONSTRAINT, "None"), \
        RNN(bias_constraint, CONSTRAINT, "None"), RNN(dropout, REAL, "0"),                         \
        RNN(recurrent_dropout, REAL, "0")
#define RNN_FLOW                                                                                   \
    RNN(return_sequences, BOOL, "False"), RNN(return_state, BOOL, "False"),                        \
        RNN(go_backwards, BOOL, "False"), RNN(stateful, BOOL, "False"),                            \
        RNN(unroll, BOOL, "False"), RNN(zero_output_for_mask, BOOL, "False")
#define RNN_SEED RNN(seed, INT, "None", .wide = true)
#define RNN_LAYER(id, class_, fields_)                                                             \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .scopes = #id "_cell=cell",                              \
                                          .fields = STK_FIELDS(stk_rnn_config, fields_),           \
                                          .min_inputs = 1,                                         \
                                          .max_inputs = 3,                                         \
                                          .mask = STK_MASK_OWN,                                    \
                                          .check = check_##id,                                     \
                                          .call = call_##id}

/* ---- SimpleRNN: h = activation(x w + h u + b) ---------------------------------------------------------------------------------- */

static stk_status check_simple_rnn(stk_layer_state *layer, stk_error *err)
{
    return check_rnn(layer, err);
}
static void call_simple_rnn(stk_layer_call *c)
{
    call_rnn(c, &(cell){.kind = STK_CELL_SIMPLE, .scope = "simple_rnn_cell", .gates = 1});
}
static const stk_config_field simple_rnn_fields[] = {RNN(units, INT, NULL, .low = 1),
                                                     RNN(activation, ACTIVATION, "tanh"),
                                                     RNN_WEIGHTS,
                                                     RNN_RULES,
                                                     RNN_SEED,
                                                     RNN_FLOW};
RNN_LAYER(simple_rnn, "SimpleRNN", simple_rnn_fields);

/* ---- LSTM -------------------------------------------------------------------------------------------------------------------------- */

static stk_status check_lstm(stk_layer_state *layer, stk_error *err)
{
    stk_rnn_config *o = layer->config;
    if (o->unit_forget_bias) {
        o->forget_values = (stk_initializer){.seed = STK_NONE, .rest = o->bias_initializer};
        o->forget_bias = (stk_object){&stk_forget_bias, &o->forget_values};
    }
    return check_rnn(layer, err);
}
static void call_lstm(stk_layer_call *c)
{
    call_rnn(c, &(cell){.kind = STK_CELL_LSTM, .scope = "lstm_cell", .gates = 4});
}
static const stk_config_field lstm_fields[] = {RNN(units, INT, NULL, .low = 1),
                                               RNN(activation, ACTIVATION, "tanh"),
                                               RNN(recurrent_activation, ACTIVATION, "sigmoid"),
                                               RNN_WEIGHTS,
                                               RNN(unit_forget_bias, BOOL, "True"),
                                               RNN_RULES,
                                               RNN_SEED,
                                               RNN_FLOW,
                                               RNN(implementation, INT, "2", .input_only = true)};
RNN_LAYER(lstm, "LSTM", lstm_fields);

/* ---- GRU --------------------------------------------------------------------------------------------------------------------------- */

static stk_status check_gru(stk_layer_state *layer, stk_error *err)
{
    return check_rnn(layer, err);
}
static void call_gru(stk_layer_call *c)
{
    call_rnn(c, &(cell){.kind = STK_CELL_GRU, .scope = "gru_cell", .gates = 3});
}
static const stk_config_field gru_fields[] = {RNN(units, INT, NULL, .low = 1),
                                              RNN(activation, ACTIVATION, "tanh"),
                                              RNN(recurrent_activation, ACTIVATION, "sigmoid"),
                                              RNN_WEIGHTS,
                                              RNN_RULES,
                                              RNN_SEED,
                                              RNN_FLOW,
                                              RNN(reset_after, BOOL, "True"),
                                              RNN(implementation, INT, "2", .input_only = true)};
RNN_LAYER(gru, "GRU", gru_fields);

/* ---- RNN over one cell: the layers above in another writing ------------------------------------------------------------------------- */

typedef struct rnn_over {
    stk_rnn_config base; /* first: what call_rnn sees. The cell's options, filled in by check */
    stk_layer_state *cell;
} rnn_over;

static stk_status check_over(stk_layer_state *layer, stk_error *err)
{
    rnn_over *o = layer->config;
    stk_rnn_config flow = o->base;
    const stk_layer_def *def = o->cell->def;
    if (def != &stk_layer_lstm_cell && def != &stk_layer_gru_cell &&
        def != &stk_layer_simple_rnn_cell)
        return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                                "a %s as cell; it takes an LSTMCell, GRUCell or SimpleRNNCell",
                                def->keras_class);
    o->base = *(const stk_rnn_config *)o->cell->config;
    o->base.return_sequences = flow.return_sequences;
    o->base.return_state = flow.return_state;
    o->base.go_backwards = flow.go_backwards;
    o->base.stateful = flow.stateful;
    o->base.unroll = flow.unroll;
    o->base.zero_output_for_mask = flow.zero_output_for_mask;
    if (o->base.forget_bias.def) o->base.forget_bias.config = &o->base.forget_values;
    o->cell->attribute = "cell";
    return check_rnn(layer, err);
}

static void call_over(stk_layer_call *c)
{
    const rnn_over *o = c->config;
    const stk_layer_def *def = o->cell->def;
    cell k = {.kind = STK_CELL_SIMPLE, .scope = o->cell->name, .gates = 1};
    if (def == &stk_layer_lstm_cell)
        k.kind = STK_CELL_LSTM, k.gates = 4;
    else if (def == &stk_layer_gru_cell)
        k.kind = STK_CELL_GRU, k.gates = 3;
    if (!k.scope) k.scope = "cell";
    call_rnn(c, &k);
}

static void call_cell(stk_layer_call *c)
{
    stk_c_fail(c, STK_ERR_UNSUPPORTED, "a cell is not called itself; put it into an RNN layer");
}

#define OVER(member, kind_, ...)                                                                   \
    {                                                                                              \
        .name = #member, .kind = STK_FIELD_##kind_, .offset = offsetof(rnn_over, base.member),     \
        .fallback = __VA_ARGS__                                                                    \
    }
static const stk_config_field over_fields[] = {
    STK_FIELD(rnn_over, cell, LAYER, NULL),
    OVER(return_sequences, BOOL, "False"),
    OVER(return_state, BOOL, "False"),
    OVER(go_backwards, BOOL, "False"),
    OVER(stateful, BOOL, "False"),
    OVER(unroll, BOOL, "False"),
    OVER(zero_output_for_mask, BOOL, "False"),
};
const stk_layer_def stk_layer_rnn = {.keras_class = "RNN",
                                     .snake = "rnn",
                                     .scopes = "lstm_cell=cell|gru_cell=cell|simple_rnn_cell=cell",
                                     .fields = STK_FIELDS(rnn_over, over_fields),
                                     .min_inputs = 1,
                                     .max_inputs = 3,
                                     .mask = STK_MASK_OWN,
                                     .check = check_over,
                                     .call = call_over};

#define RNN_CELL(id, class_, fields_, check_)                                                      \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(stk_rnn_config, fields_),           \
                                          .check = check_,                                         \
                                          .call = call_cell}
static const stk_config_field simple_cell_fields[] = {RNN(units, INT, NULL, .low = 1),
                                                      RNN(activation, ACTIVATION, "tanh"),
                                                      RNN_WEIGHTS, RNN_RULES, RNN_SEED};
static const stk_config_field lstm_cell_fields[] = {
    RNN(units, INT, NULL, .low = 1),
    RNN(activation, ACTIVATION, "tanh"),
    RNN(recurrent_activation, ACTIVATION, "sigmoid"),
    RNN_WEIGHTS,
    RNN(unit_forget_bias, BOOL, "True"),
    RNN_RULES,
    RNN_SEED,
    RNN(implementation, INT, "2", .input_only = true)};
static const stk_config_field gru_cell_fields[] = {
    RNN(units, INT, NULL, .low = 1),
    RNN(activation, ACTIVATION, "tanh"),
    RNN(recurrent_activation, ACTIVATION, "sigmoid"),
    RNN_WEIGHTS,
    RNN_RULES,
    RNN_SEED,
    RNN(reset_after, BOOL, "True"),
    RNN(implementation, INT, "2", .input_only = true)};
RNN_CELL(simple_rnn_cell, "SimpleRNNCell", simple_cell_fields, check_rnn);
RNN_CELL(lstm_cell, "LSTMCell", lstm_cell_fields, check_lstm);
RNN_CELL(gru_cell, "GRUCell", gru_cell_fields, check_rnn);
