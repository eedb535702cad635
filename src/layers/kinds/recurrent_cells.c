/* RNN over a cell, or over several that stand on each other (StackedRNNCells). A cell that is called as part of an RNN walks over
 * the whole sequence; cells that stand on each other do so one after the other, which gives the same numbers as all of them at
 * each step. */
#include "layers/kinds/recurrent.h"

#include <string.h>

/* ---- RNN ------------------------------------------------------------------------------------------------------------------ */

typedef struct rnn_over {
    stk_rnn_config flow; /* only what RNN itself has */
    stk_layer_state *cell;
} rnn_over;

typedef struct stacked {
    stk_layer_list cells;
} stacked;

static bool is_cell(const stk_layer_def *def)
{
    return def == &stk_layer_lstm_cell || def == &stk_layer_gru_cell ||
           def == &stk_layer_simple_rnn_cell;
}

/* The cells of an RNN's cell, bottom first. */
static int32_t cells_of(const stk_layer_state *cell, stk_layer_state *const **list)
{
    if (cell->def != &stk_layer_stacked_cells) return 0;
    const stacked *o = cell->config;
    *list = o->cells.v;
    return o->cells.n;
}

static stk_status check_over(stk_layer_state *layer, stk_error *err)
{
    const rnn_over *o = layer->config;
    if (is_cell(o->cell->def) || o->cell->def == &stk_layer_stacked_cells) return STK_OK;
    return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                            "a %s as cell; it takes an LSTMCell, GRUCell, SimpleRNNCell or "
                            "StackedRNNCells of those",
                            o->cell->def->keras_class);
}

static void add_units(const stk_layer_state *cell, int64_t *units, int32_t *n)
{
    const stk_rnn_config *o = cell->config;
    for (int32_t i = 0; i < (cell->def == &stk_layer_lstm_cell ? 2 : 1); i++)
        if (*n < STK_RNN_STATES) units[(*n)++] = o->units;
}

static void call_over(stk_layer_call *c)
{
    const rnn_over *o = c->config;
    stk_layer_state *const *cells = &o->cell;
    int32_t ncells = cells_of(o->cell, &cells), n = 0;
    int64_t units[STK_RNN_STATES];
    stk_val x[1 + STK_RNN_STATES] = {0}, y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    stk_val mask[1 + STK_RNN_STATES] = {c->mask[0]};
    if (!stk_c_rank(c, 0, 3, 3)) return;
    for (int32_t i = 0; i < (ncells ? ncells : 1); i++) add_units(cells[i], units, &n);
    if (!stk_c_initial_states(c, &o->flow, n, units, x + 1)) return;
    x[0] = c->x[0];
    bool given = x[1] != 0;
    stk_c_part(c, o->cell, NULL, 1 + n, x, mask, y, ymask);
    if (!stk_graph_ok(c->g)) return;
    stk_walked r = {.sequence = y[0], .n = n};
    for (int32_t i = 0; i < n; i++) r.state[i] = y[1 + i];
    const stk_layer_state *top = cells[ncells ? ncells - 1 : 0];
    stk_c_rnn_outputs(c, &o->flow, &r, r.state[n - (top->def == &stk_layer_lstm_cell ? 2 : 1)],
                      given);
}

#define OVER(member, kind_, ...)                                                                   \
    {                                                                                              \
        .name = #member, .kind = STK_FIELD_##kind_, .offset = offsetof(rnn_over, flow.member),     \
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
                                     .fields = STK_FIELDS(rnn_over, over_fields),
                                     .min_inputs = 1,
                                     .max_inputs = 1 + STK_RNN_STATES,
                                     .mask = STK_MASK_OWN,
                                     .check = check_over,
                                     .call = call_over};

/* ---- cells ------------------------------------------------------------------------------------------------------------------ */

static const stk_rnn_config *flow_of(const stk_layer_call *c)
{
    for (c = c->parent; c; c = c->parent)
        if (c->layer->def == &stk_layer_rnn) return &((const rnn_over *)c->layer->config)->flow;
    return NULL;
}

/* The sequence, and one or two states. */
static void call_cell(stk_layer_call *c)
{
    const stk_layer_def *def = c->layer->def;
    stk_cell k = {.kind = def == &stk_layer_lstm_cell  ? STK_CELL_LSTM
                          : def == &stk_layer_gru_cell ? STK_CELL_GRU
                                                       : STK_CELL_SIMPLE,
                  .options = c->config,
                  .flow = flow_of(c)};
    stk_val start[2] = {0};
    if (!k.flow) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "a cell is not called itself; put it into an RNN layer");
        return;
    }
    for (int32_t i = 1; i < c->nx && i < 3; i++) start[i - 1] = c->x[i];
    stk_walked r = stk_c_walk_cell(c, &k, start);
    c->ny = 1 + r.n;
    c->y[0] = r.sequence;
    for (int32_t i = 0; i < r.n; i++) c->y[1 + i] = r.state[i];
}

static stk_status check_stacked(stk_layer_state *layer, stk_error *err)
{
    const stacked *o = layer->config;
    int64_t units[STK_RNN_STATES];
    int32_t n = 0;
    for (int32_t i = 0; i < o->cells.n; i++) {
        if (!is_cell(o->cells.v[i]->def))
            return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                                    "a %s among the cells; it takes LSTMCell, GRUCell and "
                                    "SimpleRNNCell",
                                    o->cells.v[i]->def->keras_class);
        add_units(o->cells.v[i], units, &n);
        for (int32_t k = 0; k < i; k++)
            if (o->cells.v[i]->name && o->cells.v[k]->name &&
                !strcmp(o->cells.v[i]->name, o->cells.v[k]->name))
                return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                        "two cells are named '%s'; give them names of their own",
                                        o->cells.v[i]->name);
    }
    if (n < STK_RNN_STATES) return STK_OK;
    return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED, "cells with %d states and more",
                            STK_RNN_STATES);
}

static void call_stacked(stk_layer_call *c)
{
    const stacked *o = c->config;
    stk_val x = c->x[0], y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    int32_t n = 0;
    if (!flow_of(c)) {
        call_cell(c);
        return;
    }
    for (int32_t i = 0; i < o->cells.n && stk_graph_ok(c->g); i++) {
        int32_t states = o->cells.v[i]->def == &stk_layer_lstm_cell ? 2 : 1;
        stk_val in[3] = {x, c->x[1 + n], states == 2 ? c->x[2 + n] : 0}, mask[3] = {c->mask[0]};
        stk_c_part(c, o->cells.v[i], NULL, 1 + states, in, mask, y, ymask);
        x = y[0];
        for (int32_t k = 0; k < states; k++) c->y[1 + n++] = y[1 + k];
    }
    c->y[0] = x;
    c->ny = 1 + n;
}
static const stk_config_field stacked_fields[] = {STK_FIELD(stacked, cells, LAYERS, NULL)};
const stk_layer_def stk_layer_stacked_cells = {.keras_class = "StackedRNNCells",
                                               .snake = "stacked_rnn_cells",
                                               .fields = STK_FIELDS(stacked, stacked_fields),
                                               .min_inputs = 1,
                                               .max_inputs = 1 + STK_RNN_STATES,
                                               .check = check_stacked,
                                               .call = call_stacked};

#define RNN_CELL(id, class_, fields_, check_)                                                      \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(stk_rnn_config, fields_),           \
                                          .min_inputs = 1,                                         \
                                          .max_inputs = 3,                                         \
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
RNN_CELL(simple_rnn_cell, "SimpleRNNCell", simple_cell_fields, stk_rnn_check);
RNN_CELL(lstm_cell, "LSTMCell", lstm_cell_fields, stk_lstm_check);
RNN_CELL(gru_cell, "GRUCell", gru_cell_fields, stk_rnn_check);
