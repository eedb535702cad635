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

stk_status stk_rnn_check(stk_layer_state *layer, stk_error *err)
{
    const stk_rnn_config *o = layer->config;
    if (!(o->dropout >= 0 && o->dropout <= 1 && o->recurrent_dropout >= 0 &&
          o->recurrent_dropout <= 1))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "dropout is %g and recurrent_dropout %g; they take 0 to 1",
                                o->dropout, o->recurrent_dropout);
    return STK_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

static int32_t gates_of(const stk_cell *k)
{
    return k->kind == STK_CELL_LSTM ? 4 : k->kind == STK_CELL_GRU ? 3 : 1;
}

static stk_val weight(stk_layer_call *c, const stk_cell *k, const char *name, int32_t rank,
                      const int64_t *shape, const stk_weight_wish *wish)
{
    char path[64];
    snprintf(path, sizeof path, "%s%s%s", k->scope ? k->scope : "", k->scope ? "/" : "", name);
    return stk_c_weight(c, path, rank, shape, wish);
}

static void declare(stk_layer_call *c, stk_cell *k)
{
    const stk_rnn_config *o = k->options;
    int64_t wide = gates_of(k) * o->units, features = stk_c_dim(c, 0, 2);
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

/* ---- states of stateful layers -------------------------------------------------------------------------------------------- */

/* Keras gives all of them one name; here each needs its own. */
static const char *state_name(int32_t i, char *text, size_t size)
{
    if (i)
        snprintf(text, size, "rnn_state_%d", i);
    else
        snprintf(text, size, "rnn_state");
    return text;
}

stk_val stk_c_state(stk_layer_call *c, int32_t i, int32_t rank, const int64_t *shape)
{
    char name[32];
    return stk_c_weight(c, state_name(i, name, sizeof name), rank, shape,
                        &(stk_weight_wish){.state = true});
}

void stk_c_keep_state(stk_layer_call *c, int32_t i, stk_val value)
{
    char name[32];
    if (stk_graph_ok(c->g))
        stk_c_update(c, state_name(i, name, sizeof name), stk_g_stop_gradient(c->g, value));
}

/* ---- one walk over a sequence ---------------------------------------------------------------------------------------------- */

static bool named(const stk_activation *a, const char *name)
{
    return a->def && !strcmp(a->def->name, name);
}

static bool drops_state(const stk_layer_call *c, const stk_cell *k)
{
    return c->training && k->options->recurrent_dropout > 0;
}

static bool is_fused(const stk_layer_call *c, const stk_cell *k)
{
    return k->kind != STK_CELL_SIMPLE && !drops_state(c, k) &&
           named(&k->options->activation, "tanh") &&
           named(&k->options->recurrent_activation, "sigmoid");
}

static stk_walked walk_fused(stk_layer_call *c, const stk_cell *k, stk_val x, stk_val h0,
                             stk_val c0)
{
    stk_rnn_options options = stk_rnn_options_defaults();
    options.reverse = k->flow->go_backwards;
    options.reset_after = k->options->reset_after;
    options.mask = c->mask[0];
    options.h0 = h0;
    options.c0 = c0;
    stk_rnn_result r = k->kind == STK_CELL_LSTM ? stk_g_lstm(c->g, x, k->w, k->u, k->b, &options)
                                                : stk_g_gru(c->g, x, k->w, k->u, k->b, &options);
    return (stk_walked){r.sequence, {r.h, r.c}, k->kind == STK_CELL_LSTM ? 2 : 1};
}

static stk_val time_first(stk_graph *g, stk_val x)
{
    return stk_g_transpose(g, x, (int32_t[]){1, 0, 2});
}

static stk_walked walk_steps(stk_layer_call *c, const stk_cell *k, stk_val x, stk_val h0,
                             stk_val c0)
{
    const stk_rnn_config *o = k->options;
    stk_graph *g = c->g;
    int64_t state[2] = {stk_c_dim(c, 0, 0), o->units};
    bool two = k->kind == STK_CELL_GRU && o->reset_after && k->b;
    stk_val input_bias = k->b, zeros = stk_g_fill(g, c->compute, 2, state, 0);
    stk_walk_wish w = {.kind = k->kind, .options = o, .u = k->u, .reverse = k->flow->go_backwards};
    if (two) {
        int64_t wide = gates_of(k) * o->units;
        input_bias = stk_g_reshape(g, stk_g_slice_axis(g, k->b, 0, 0, 1), 1, &wide);
        w.b = stk_g_reshape(g, stk_g_slice_axis(g, k->b, 0, 1, 1), 1, &wide);
    }
    w.x = stk_g_matmul(g, time_first(g, x), k->w);
    if (input_bias) w.x = stk_g_add(g, w.x, input_bias);
    if (c->mask[0]) w.mask = time_first(g, stk_g_expand_dims(g, c->mask[0], 2));
    w.h0 = h0 ? h0 : zeros;
    w.c0 = c0 ? c0 : zeros;
    if (drops_state(c, k)) {
        stk_random_options random = stk_c_random(c, o->seed);
        w.h_factor = stk_g_dropout(g, stk_g_fill(g, c->compute, 2, state, 1), o->recurrent_dropout,
                                   NULL, &random);
    }
    stk_walk_result r = stk_c_walk(c, &w);
    return (stk_walked){
        r.sequence ? time_first(g, r.sequence) : 0, {r.h, r.c}, k->kind == STK_CELL_LSTM ? 2 : 1};
}

stk_walked stk_c_walk_cell(stk_layer_call *c, stk_cell *k, const stk_val *start)
{
    const stk_rnn_config *o = k->options;
    stk_val x = stk_g_cast(c->g, c->x[0], c->compute), h0 = start[0], c0 = start[1];
    declare(c, k);
    if (c->training && o->dropout > 0) { /* one draw for all steps of a sequence */
        stk_random_options random = stk_c_random(c, o->seed);
        x = stk_g_dropout(c->g, x, o->dropout,
                          (int64_t[]){stk_c_dim(c, 0, 0), 1, stk_c_dim(c, 0, 2)}, &random);
    }
    return is_fused(c, k) ? walk_fused(c, k, x, h0, c0) : walk_steps(c, k, x, h0, c0);
}

/* ---- what a layer gives ------------------------------------------------------------------------------------------------------ */

/* A mask [batch, time] for something with more axes. */
static stk_val over(stk_graph *g, stk_val mask, stk_val like)
{
    while (stk_graph_ok(g) && stk_g_rank(g, mask) < stk_g_rank(g, like))
        mask = stk_g_expand_dims(g, mask, -1);
    return mask;
}

/* Keras' outputs of steps that are masked repeat the one before them, zeros where there is none; ours repeat the state, which is the
 * same unless a state was given. */
static stk_val mend_start(stk_layer_call *c, const stk_rnn_config *flow, stk_val sequence)
{
    stk_graph *g = c->g;
    stk_val seen =
        stk_g_cumsum(g, stk_g_cast(g, c->mask[0], STK_I32), 1, false, flow->go_backwards);
    seen = over(g, stk_g_gt(g, seen, stk_g_scalar(g, STK_I32, 0)), sequence);
    return stk_g_select(g, seen, sequence, stk_g_scalar(g, c->compute, 0));
}

static stk_val last_output(stk_layer_call *c, const stk_rnn_config *flow, stk_val sequence)
{
    int64_t time = stk_c_dim(c, 0, 1);
    stk_val last = stk_g_slice_axis(c->g, sequence, 1, flow->go_backwards ? 0 : time - 1, 1);
    return stk_g_squeeze(c->g, last, 1);
}

void stk_c_rnn_outputs(stk_layer_call *c, const stk_rnn_config *flow, const stk_walked *r,
                       stk_val output, bool given)
{
    stk_graph *g = c->g;
    stk_val sequence = r->sequence, mask = c->mask[0];
    if (!stk_graph_ok(g)) return;
    if (mask && given) sequence = mend_start(c, flow, sequence);
    if (mask && flow->zero_output_for_mask)
        sequence =
            stk_g_select(g, over(g, mask, sequence), sequence, stk_g_scalar(g, c->compute, 0));
    bool from_state = output && (!mask || (!given && !flow->zero_output_for_mask));
    c->y[0] = flow->return_sequences
                  ? (flow->go_backwards ? stk_g_reverse(g, sequence, 1) : sequence)
              : from_state ? output
                           : last_output(c, flow, sequence);
    if (flow->return_sequences) c->ymask[0] = mask;
    for (int32_t i = 0; flow->stateful && i < r->n; i++) stk_c_keep_state(c, i, r->state[i]);
    if (!flow->return_state) return;
    c->ny = 1 + r->n;
    for (int32_t i = 0; i < r->n; i++) c->y[1 + i] = r->state[i];
}

bool stk_c_initial_states(stk_layer_call *c, const stk_rnn_config *flow, int32_t n,
                          const int64_t *units, stk_val *start)
{
    int64_t shape[2] = {stk_c_dim(c, 0, 0), 0};
    if (c->nx > 1 && c->nx != 1 + n) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "%d initial states; it takes %d", c->nx - 1, n);
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        shape[1] = units[i];
        start[i] = flow->stateful ? stk_c_state(c, i, 2, shape) : 0;
        if (c->nx > 1) start[i] = c->x[1 + i];
    }
    return true;
}

static void call_rnn(stk_layer_call *c, stk_cell *k)
{
    const stk_rnn_config *o = c->config;
    int64_t units[2] = {o->units, o->units};
    stk_val start[2] = {0};
    k->options = k->flow = o;
    if (!stk_c_rank(c, 0, 3, 3) ||
        !stk_c_initial_states(c, o, k->kind == STK_CELL_LSTM ? 2 : 1, units, start))
        return;
    stk_walked r = stk_c_walk_cell(c, k, start);
    stk_c_rnn_outputs(c, o, &r, r.state[0], start[0] != 0);
}

/* ---- tables -------------------------------------------------------------------------------------------------------------------- */

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
    return stk_rnn_check(layer, err);
}
static void call_simple_rnn(stk_layer_call *c)
{
    call_rnn(c, &(stk_cell){.kind = STK_CELL_SIMPLE, .scope = "simple_rnn_cell"});
}
static const stk_config_field simple_rnn_fields[] = {RNN(units, INT, NULL, .low = 1),
                                                     RNN(activation, ACTIVATION, "tanh"),
                                                     RNN_WEIGHTS,
                                                     RNN_RULES,
                                                     RNN_SEED,
                                                     RNN_FLOW};
RNN_LAYER(simple_rnn, "SimpleRNN", simple_rnn_fields);

/* ---- LSTM -------------------------------------------------------------------------------------------------------------------------- */

stk_status stk_lstm_check(stk_layer_state *layer, stk_error *err)
{
    stk_rnn_config *o = layer->config;
    if (o->unit_forget_bias) {
        o->forget_values = (stk_initializer){.seed = STK_NONE, .rest = o->bias_initializer};
        o->forget_bias = (stk_object){&stk_forget_bias, &o->forget_values};
    }
    return stk_rnn_check(layer, err);
}
static stk_status check_lstm(stk_layer_state *layer, stk_error *err)
{
    return stk_lstm_check(layer, err);
}
static void call_lstm(stk_layer_call *c)
{
    call_rnn(c, &(stk_cell){.kind = STK_CELL_LSTM, .scope = "lstm_cell"});
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
    return stk_rnn_check(layer, err);
}
static void call_gru(stk_layer_call *c)
{
    call_rnn(c, &(stk_cell){.kind = STK_CELL_GRU, .scope = "gru_cell"});
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
