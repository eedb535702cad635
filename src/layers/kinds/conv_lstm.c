/* ConvLSTM1D/2D/3D: an LSTM whose products are convolutions. Those of the input are made for all steps at once, those of the state
 * in a scan. */
#include "layers/kinds/image.h"
#include "layers/kinds/recurrent.h"

#include <string.h>

typedef struct conv_lstm {
    stk_rnn_config base; /* weights, dropout, activations, direction and results */
    int64_t filters;
    stk_ints kernel_size, strides, dilation_rate;
    int32_t padding, data_format;
} conv_lstm;

static stk_status check_conv_lstm(stk_layer_state *layer, stk_error *err)
{
    conv_lstm *o = layer->config;
    bool strided = false, dilated = false;
    for (int32_t i = 0; i < o->strides.n; i++) {
        strided |= o->strides.v[i] > 1;
        dilated |= o->dilation_rate.v[i] > 1;
    }
    if (strided && dilated)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "strides and dilation_rate; one of them must be 1");
    return stk_lstm_check(layer, err);
}

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

static stk_val kernel_of(stk_layer_call *c, const char *name, int64_t channels,
                         const stk_weight_wish *wish)
{
    const conv_lstm *o = c->config;
    int32_t axes = o->kernel_size.n;
    int64_t shape[STK_MAX_RANK];
    memcpy(shape, o->kernel_size.v, (size_t)axes * sizeof *shape);
    shape[axes] = channels;
    shape[axes + 1] = 4 * o->filters;
    return stk_c_weight(c, name, axes + 2, shape, wish);
}

/* ---- dropout: other numbers for each gate, the same ones at each step --------------------------------------------------- */

static void draw_masks(stk_layer_call *c, const stk_shape *shape, double rate, stk_val *masks)
{
    const conv_lstm *o = c->config;
    for (int32_t q = 0; q < 4; q++) {
        stk_random_options random = stk_c_random(c, o->base.seed);
        masks[q] = stk_g_dropout(c->g, stk_g_fill(c->g, c->compute, shape->rank, shape->dim, 1),
                                 rate, NULL, &random);
    }
}

/* x (times its mask for each gate, when there are masks) convolved with w, whose last axis holds the four gates. */
static stk_val conv_gates(stk_graph *g, stk_val x, const stk_val *masks, stk_val w,
                          const stk_conv_options *options)
{
    stk_val part[4], kernel[4];
    if (!masks) return stk_g_conv(g, x, w, options);
    stk_g_split(g, w, -1, 4, kernel);
    for (int32_t q = 0; q < 4; q++)
        part[q] = stk_g_conv(g, stk_g_mul(g, x, masks[q]), kernel[q], options);
    return stk_g_concat(g, 4, part, -1);
}

/* ---- the input, all steps at once: [time, batch, sizes.., 4 filters] ----------------------------------------------------- */

/* [time, batch, ..] -> [time batch, ..] */
static stk_val merged(stk_graph *g, stk_val x)
{
    if (!stk_graph_ok(g)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    s.dim[1] *= s.dim[0];
    return stk_g_reshape(g, x, s.rank - 1, s.dim + 1);
}

static stk_val conv_input(stk_layer_call *c, stk_val x, stk_val w, stk_val b)
{
    const conv_lstm *o = c->config;
    stk_graph *g = c->g;
    stk_conv_options options = stk_conv_options_defaults();
    stk_shape s = stk_type_of(g, x)->shape; /* [time, batch, ..] */
    stk_val masks[4];
    bool drops = c->training && o->base.dropout > 0;
    options.padding = (stk_padding)o->padding;
    for (int32_t i = 0; i < o->kernel_size.n; i++) {
        options.stride[i] = o->strides.v[i];
        options.dilation[i] = o->dilation_rate.v[i];
    }
    int64_t time = s.dim[0], batch = s.dim[1];
    if (drops) {
        stk_shape one = s;
        one.dim[0] = 1;
        draw_masks(c, &one, o->base.dropout, masks);
        for (int32_t q = 0; q < 4; q++)
            masks[q] = merged(g, stk_g_broadcast(g, masks[q], s.rank, s.dim));
    }
    x = merged(g, x);
    stk_val y = conv_gates(g, x, drops ? masks : NULL, w, &options);
    if (b) y = stk_g_add(g, y, b);
    if (!stk_graph_ok(g)) return 0;
    s = stk_type_of(g, y)->shape;
    int64_t sizes[STK_MAX_RANK] = {time, batch};
    memcpy(sizes + 2, s.dim + 1, (size_t)(s.rank - 1) * sizeof *sizes);
    return stk_g_reshape(g, y, s.rank + 1, sizes);
}

/* ---- the state, step by step ---------------------------------------------------------------------------------------------- */

static stk_val entry(stk_graph *body, const stk_graph *g, stk_val v, bool slice, const char *name)
{
    if (!v || !stk_val_ok(g, v)) return 0;
    const stk_type *t = stk_type_of(g, v);
    return stk_g_input(body, name, t->dtype, t->shape.rank - slice, t->shape.dim + slice);
}

typedef struct conv_walk {
    stk_val x, mask, u, h0, c0, masks[4]; /* x and mask by time; masks[0] = 0: no dropout */
} conv_walk;

static void build_body(stk_graph *body, const stk_graph *g, const conv_lstm *o, const conv_walk *w)
{
    const stk_rnn_config *b = &o->base;
    stk_conv_options same = stk_conv_options_defaults();
    stk_val h = entry(body, g, w->h0, false, "h"), c = entry(body, g, w->c0, false, "c"), z[4];
    stk_val x = entry(body, g, w->x, true, "x"), mask = entry(body, g, w->mask, true, "mask");
    stk_val u = entry(body, g, w->u, false, "u"), drop[4];
    static const char *const names[4] = {"drop0", "drop1", "drop2", "drop3"};
    for (int32_t q = 0; q < 4; q++) drop[q] = entry(body, g, w->masks[q], false, names[q]);
    same.padding = STK_PADDING_SAME;
    stk_val sum = stk_g_add(body, x, conv_gates(body, h, drop[0] ? drop : NULL, u, &same));
    stk_g_split(body, sum, -1, 4, z);
    stk_val in = b->recurrent_activation.def->build(body, z[0]);
    stk_val forget = b->recurrent_activation.def->build(body, z[1]);
    stk_val candidate = b->activation.def->build(body, z[2]);
    stk_val out = b->recurrent_activation.def->build(body, z[3]);
    stk_val next_c = stk_g_add(body, stk_g_mul(body, forget, c), stk_g_mul(body, in, candidate));
    stk_val next = stk_g_mul(body, out, b->activation.def->build(body, next_c));
    if (mask) {
        next = stk_g_select(body, mask, next, h);
        next_c = stk_g_select(body, mask, next_c, c);
    }
    stk_g_output(body, "h", next);
    stk_g_output(body, "c", next_c);
    stk_g_output(body, "sequence", next);
}

/* h, c and the sequence by time are three values in a row; 0 after a mistake. */
static stk_val scan(stk_layer_call *c, const conv_walk *w)
{
    const conv_lstm *o = c->config;
    stk_graph *body = NULL;
    stk_error err;
    stk_val consts[5] = {w->u};
    int32_t nconst = 1;
    if (!stk_graph_ok(c->g)) return 0;
    if (stk_graph_new(&body, &err) != STK_OK) return stk_c_fail(c, err.code, "%s", err.message);
    build_body(body, c->g, o, w);
    for (int32_t q = 0; q < 4 && w->masks[0]; q++) consts[nconst++] = w->masks[q];
    stk_val h = stk_g_scan(c->g, body, 2, (stk_val[]){w->h0, w->c0}, w->mask ? 2 : 1,
                           (stk_val[]){w->x, w->mask}, nconst, consts,
                           &(stk_scan_options){.reverse = o->base.go_backwards});
    stk_graph_release(body);
    return h;
}

/* ---- the layer -------------------------------------------------------------------------------------------------------------- */

/* Swaps the first two axes. */
static stk_val swap(stk_graph *g, stk_val x)
{
    int32_t perm[STK_MAX_RANK] = {1, 0}, rank = stk_g_rank(g, x);
    for (int32_t i = 2; i < rank; i++) perm[i] = i;
    return stk_g_transpose(g, x, perm);
}

/* [batch, time, c, h, w] -> [batch, time, h, w, c]; `back`: the other way. `from`: the first axis that is no batch. */
static stk_val channels(stk_graph *g, stk_val x, int32_t format, int32_t from, bool back)
{
    int32_t perm[STK_MAX_RANK] = {0}, rank = stk_g_rank(g, x), last = rank - 1;
    if (format == STK_CHANNELS_LAST) return x;
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    for (int32_t i = from; i < last; i++) perm[back ? i + 1 : i] = back ? i : i + 1;
    perm[back ? from : last] = back ? last : from;
    return stk_g_transpose(g, x, perm);
}

static bool usable(stk_layer_call *c)
{
    const conv_lstm *o = c->config;
    int32_t rank = o->kernel_size.n + 3;
    if (!stk_c_rank(c, 0, rank, rank)) return false;
    if (c->nx != 1 && c->nx != 3) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "%d initial states; it takes 2", c->nx - 1);
        return false;
    }
    if (o->base.activation.def && o->base.recurrent_activation.def) return true;
    stk_c_fail(c, STK_ERR_UNSUPPORTED,
               "a layer as activation of a recurrent layer; give the name of an activation");
    return false;
}

/* The two states that the walk starts from. True: they may be other than zero. */
static bool start_states(stk_layer_call *c, conv_walk *w)
{
    const conv_lstm *o = c->config;
    stk_graph *g = c->g;
    stk_shape s = stk_type_of(g, w->x)->shape; /* [time, batch, sizes.., gates] */
    stk_val start[2] = {0};
    memmove(s.dim, s.dim + 1, (size_t)--s.rank * sizeof *s.dim);
    s.dim[s.rank - 1] = o->filters;
    for (int32_t i = 0; i < 2; i++) {
        if (o->base.stateful) start[i] = stk_c_state(c, i, s.rank, s.dim);
        if (c->nx == 3) start[i] = channels(g, c->x[1 + i], o->data_format, 1, false);
        if (!start[i]) start[i] = stk_g_fill(g, c->compute, s.rank, s.dim, 0);
    }
    w->h0 = start[0];
    w->c0 = start[1];
    if (c->training && o->base.recurrent_dropout > 0)
        draw_masks(c, &s, o->base.recurrent_dropout, w->masks);
    return o->base.stateful || c->nx == 3;
}

static void call_conv_lstm(stk_layer_call *c)
{
    const conv_lstm *o = c->config;
    const stk_rnn_config *b = &o->base;
    stk_graph *g = c->g;
    int64_t wide = 4 * o->filters;
    if (!usable(c)) return;
    stk_val x = channels(g, stk_g_cast(g, c->x[0], c->compute), o->data_format, 2, false), bias = 0;
    stk_val kernel =
        kernel_of(c, "conv_lstm_cell/kernel", stk_g_dim(g, x, -1), STK_WISH(b, kernel));
    conv_walk w = {
        .u = kernel_of(c, "conv_lstm_cell/recurrent_kernel", o->filters, STK_WISH(b, recurrent))};
    if (b->use_bias)
        bias =
            stk_c_weight(c, "conv_lstm_cell/bias", 1, &wide,
                         &(stk_weight_wish){.initializer = b->forget_bias.def ? &b->forget_bias
                                                                              : b->bias_initializer,
                                            .regularizer = b->bias_regularizer,
                                            .constraint = b->bias_constraint});
    if (!stk_graph_ok(g)) return;
    w.x = conv_input(c, swap(g, x), kernel, bias);
    if (!stk_graph_ok(g)) return;
    bool given = start_states(c, &w);
    if (c->mask[0]) {
        w.mask = swap(g, c->mask[0]);
        while (stk_graph_ok(g) && stk_g_rank(g, w.mask) < stk_g_rank(g, w.x))
            w.mask = stk_g_expand_dims(g, w.mask, -1);
    }
    stk_val h = scan(c, &w);
    if (!h) return;
    stk_walked r = {.sequence = channels(g, swap(g, h + 2), o->data_format, 2, true), .n = 2};
    for (int32_t i = 0; i < 2; i++) {
        r.state[i] = channels(g, h + i, o->data_format, 1, true);
        if (b->stateful) stk_c_keep_state(c, i, h + i);
    }
    stk_rnn_config flow = *b;
    flow.stateful = false; /* kept above, with channels last */
    stk_c_rnn_outputs(c, &flow, &r, r.state[0], given);
}

/* ---- tables -------------------------------------------------------------------------------------------------------------------- */

#define CONV(member, kind_, ...) STK_FIELD(conv_lstm, member, kind_, __VA_ARGS__)
#define BASE(member, kind_, fallback_, ...)                                                        \
    {                                                                                              \
        .name = #member, .kind = STK_FIELD_##kind_, .offset = offsetof(conv_lstm, base.member),    \
        .fallback = (fallback_), __VA_ARGS__                                                       \
    }
#define CONV_LSTM(axes)                                                                            \
    static const stk_config_field conv_lstm##axes##d_fields[] = {                                  \
        CONV(filters, INT, NULL, .low = 1),                                                        \
        CONV(kernel_size, INTS, NULL, .count = axes, .low = 1),                                    \
        CONV(strides, INTS, "1", .count = axes, .low = 1),                                         \
        CONV(padding, CHOICE, "valid", .choices = "valid|same"),                                   \
        STK_FIELD_FORMAT(conv_lstm),                                                               \
        CONV(dilation_rate, INTS, "1", .count = axes, .low = 1),                                   \
        BASE(activation, ACTIVATION, "tanh"),                                                      \
        BASE(recurrent_activation, ACTIVATION, "sigmoid"),                                         \
        BASE(use_bias, BOOL, "True"),                                                              \
        BASE(kernel_initializer, INITIALIZER, "glorot_uniform"),                                   \
        BASE(recurrent_initializer, INITIALIZER, "orthogonal"),                                    \
        BASE(bias_initializer, INITIALIZER, "zeros"),                                              \
        BASE(unit_forget_bias, BOOL, "True"),                                                      \
        BASE(kernel_regularizer, REGULARIZER, "None"),                                             \
        BASE(recurrent_regularizer, REGULARIZER, "None"),                                          \
        BASE(bias_regularizer, REGULARIZER, "None"),                                               \
        {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},              \
        BASE(kernel_constraint, CONSTRAINT, "None"),                                               \
        BASE(recurrent_constraint, CONSTRAINT, "None"),                                            \
        BASE(bias_constraint, CONSTRAINT, "None"),                                                 \
        BASE(dropout, REAL, "0"),                                                                  \
        BASE(recurrent_dropout, REAL, "0"),                                                        \
        BASE(seed, INT, "None", .wide = true),                                                     \
        BASE(return_sequences, BOOL, "False"),                                                     \
        BASE(return_state, BOOL, "False"),                                                         \
        BASE(go_backwards, BOOL, "False"),                                                         \
        BASE(stateful, BOOL, "False"),                                                             \
        BASE(unroll, BOOL, "False"),                                                               \
        BASE(zero_output_for_mask, BOOL, "False"),                                                 \
    };                                                                                             \
    const stk_layer_def stk_layer_conv_lstm##axes##d = {                                           \
        .keras_class = "ConvLSTM" #axes "D",                                                       \
        .snake = "conv_lstm" #axes "d",                                                            \
        .scopes = "conv_lstm_cell=cell",                                                           \
        .fields = STK_FIELDS(conv_lstm, conv_lstm##axes##d_fields),                                \
        .min_inputs = 1,                                                                           \
        .max_inputs = 3,                                                                           \
        .mask = STK_MASK_OWN,                                                                      \
        .check = check_conv_lstm,                                                                  \
        .call = call_conv_lstm}
CONV_LSTM(1);
CONV_LSTM(2);
CONV_LSTM(3);
