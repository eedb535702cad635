/* Layers around layers: a recurrent one in both directions, any one at every step of a sequence, one whose kernel is kept small. */
#include "layers/kinds/recurrent.h"

#include <stdio.h>
#include <string.h>

/* ---- Bidirectional -------------------------------------------------------------------------------------------------------- */

typedef struct bidirectional {
    stk_layer_state *layer, *backward_layer;
    const char *merge_mode; /* NULL: both results */
    /* The way back when none was given: the same options, the other way round. */
    stk_layer_state made;
    stk_rnn_config made_config;
} bidirectional;

static const stk_rnn_config *rnn_of(const stk_layer_state *layer) { return layer->config; }

static bool known_mode(const char *mode)
{
    static const char *const modes[] = {"concat", "sum", "mul", "ave"};
    for (size_t i = 0; mode && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(mode, modes[i])) return true;
    return !mode;
}

static stk_status check_bidirectional(stk_layer_state *layer, stk_error *err)
{
    bidirectional *o = layer->config;
    if (!stk_layer_is_rnn(o->layer) || (o->backward_layer && !stk_layer_is_rnn(o->backward_layer)))
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT, "it takes a SimpleRNN, LSTM or GRU");
    if (!known_mode(o->merge_mode))
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "merge_mode is '%s'; it takes concat, sum, mul, ave "
                                "or None",
                                o->merge_mode);
    if (!o->backward_layer) {
        o->made_config = *rnn_of(o->layer);
        o->made_config.go_backwards = !o->made_config.go_backwards;
        if (o->made_config.forget_bias.def)
            o->made_config.forget_bias.config = &o->made_config.forget_values;
        o->made = *o->layer;
        o->made.config = &o->made_config;
        o->made.attribute = "backward_layer";
        o->backward_layer = &o->made;
    }
    o->layer->attribute = "forward_layer";
    const stk_rnn_config *a = rnn_of(o->layer), *b = rnn_of(o->backward_layer);
    if (a->go_backwards == b->go_backwards)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "both layers go the same way; set go_backwards of "
                                "one of them");
    if (a->return_sequences != b->return_sequences || a->return_state != b->return_state)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "return_sequences and return_state of both layers "
                                "must be the same");
    return STK_OK;
}

/* Weights are named after the direction: "bidirectional/forward_lstm/lstm_cell/kernel". */
static const char *scope_of(const stk_layer_state *part, const char *direction, char *text,
                            size_t size)
{
    size_t n = strlen(direction);
    if (part->name && !strncmp(part->name, direction, n)) return part->name;
    if (part->name && !strncmp(part->name, "forward_", 8))
        snprintf(text, size, "%s%s", direction, part->name + 8);
    else
        snprintf(text, size, "%s%s", direction, part->name ? part->name : "rnn");
    return text;
}

static stk_val merge(stk_graph *g, const char *mode, stk_val a, stk_val b)
{
    if (!strcmp(mode, "concat")) return stk_g_concat(g, 2, (stk_val[]){a, b}, -1);
    if (!strcmp(mode, "mul")) return stk_g_mul(g, a, b);
    stk_val sum = stk_g_add(g, a, b);
    if (!strcmp(mode, "sum")) return sum;
    return stk_g_mul(g, sum, stk_g_scalar(g, stk_g_dtype(g, sum), 0.5));
}

static void call_bidirectional(stk_layer_call *c)
{
    const bidirectional *o = c->config;
    char name[2][128];
    stk_val x[2][STK_LAYER_INPUTS], mask[STK_LAYER_INPUTS] = {0}, ymask[STK_LAYER_OUTPUTS];
    stk_val y[2][STK_LAYER_OUTPUTS];
    int32_t half = (c->nx - 1) / 2, n = 0;
    if ((c->nx - 1) % 2) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "%d initial states; half of them go each way", c->nx - 1);
        return;
    }
    mask[0] = c->mask[0];
    for (int32_t way = 0; way < 2; way++) {
        const stk_layer_state *part = way ? o->backward_layer : o->layer;
        bool given = way && part != &o->made; /* it keeps its name */
        x[way][0] = c->x[0];
        for (int32_t i = 0; i < half; i++) x[way][1 + i] = c->x[1 + way * half + i];
        n = stk_c_part(
            c, part,
            given ? NULL
                  : scope_of(part, way ? "backward_" : "forward_", name[way], sizeof name[way]),
            1 + half, x[way], mask, y[way], ymask);
    }
    if (!stk_graph_ok(c->g)) return;
    stk_val back = rnn_of(o->layer)->return_sequences ? stk_g_reverse(c->g, y[1][0], 1) : y[1][0];
    c->ny = 0;
    c->y[c->ny++] = o->merge_mode ? merge(c->g, o->merge_mode, y[0][0], back) : y[0][0];
    if (!o->merge_mode) c->y[c->ny++] = back;
    for (int32_t i = 0; rnn_of(o->layer)->return_sequences && i < c->ny; i++)
        c->ymask[i] = c->mask[0];
    for (int32_t way = 0; way < 2; way++)
        for (int32_t i = 1; i < n; i++) c->y[c->ny++] = y[way][i];
}
static const stk_config_field bidirectional_fields[] = {
    STK_FIELD(bidirectional, layer, LAYER, NULL),
    STK_FIELD(bidirectional, merge_mode, TEXT, "concat", .none = true),
    STK_FIELD(bidirectional, backward_layer, LAYER, "None"),
};
const stk_layer_def stk_layer_bidirectional = {.keras_class = "Bidirectional",
                                               .fields =
                                                   STK_FIELDS(bidirectional, bidirectional_fields),
                                               .min_inputs = 1,
                                               .max_inputs = 5,
                                               .mask = STK_MASK_OWN,
                                               .check = check_bidirectional,
                                               .call = call_bidirectional};

/* ---- TimeDistributed: steps become part of the batch ------------------------------------------------------------------------ */

typedef struct time_distributed {
    stk_layer_state *layer;
} time_distributed;

static void call_time_distributed(stk_layer_call *c)
{
    const time_distributed *o = c->config;
    stk_graph *g = c->g;
    stk_val y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    int64_t sizes[STK_MAX_RANK];
    if (!stk_c_rank(c, 0, 3, STK_MAX_RANK)) return;
    stk_shape s = stk_c_shape(c, 0);
    sizes[0] = s.dim[0] * s.dim[1];
    for (int32_t i = 2; i < s.rank; i++) sizes[i - 1] = s.dim[i];
    stk_val steps = stk_g_reshape(g, c->x[0], s.rank - 1, sizes);
    int32_t n = stk_c_part(c, o->layer, NULL, 1, &steps, NULL, y, ymask);
    if (!stk_graph_ok(g)) return;
    c->ny = n;
    for (int32_t k = 0; k < n; k++) {
        int32_t rank = stk_g_rank(g, y[k]);
        if (rank + 1 > STK_MAX_RANK || stk_g_dim(g, y[k], 0) != s.dim[0] * s.dim[1]) {
            stk_c_fail(c, STK_ERR_SHAPE, "the layer at each step gives %s, which has no batch axis",
                       STK_TYPE_TEXT(stk_type_of(g, y[k])));
            return;
        }
        sizes[0] = s.dim[0];
        sizes[1] = s.dim[1];
        for (int32_t i = 1; i < rank; i++) sizes[i + 1] = stk_g_dim(g, y[k], i);
        c->y[k] = stk_g_reshape(g, y[k], rank + 1, sizes);
    }
}
static const stk_config_field time_distributed_fields[] = {
    STK_FIELD(time_distributed, layer, LAYER, NULL)};
const stk_layer_def stk_layer_time_distributed = {
    .keras_class = "TimeDistributed",
    .fields = STK_FIELDS(time_distributed, time_distributed_fields),
    .mask = STK_MASK_PASSES,
    .call = call_time_distributed};

/* ---- SpectralNormalization: a kernel is divided by its largest singular value, found by powers, before each training step - */

typedef struct spectral_norm {
    stk_layer_state *layer;
    int64_t power_iterations;
} spectral_norm;

static stk_val unit(stk_graph *g, stk_val x)
{
    stk_dtype dtype = stk_g_dtype(g, x);
    stk_val inverse = stk_g_rsqrt(g, stk_g_sum_all(g, stk_g_square(g, x)));
    return stk_g_mul(g, x, stk_g_min(g, inverse, stk_g_scalar(g, dtype, 1e7)));
}

/* Both get new values. Keras assigns to the kernel itself and does not differentiate through the division. */
static void normalise(stk_layer_call *c, const char *name, stk_val kernel, stk_val u)
{
    const spectral_norm *o = c->config;
    stk_graph *g = c->g;
    if (!stk_graph_ok(g)) return;
    stk_shape s = stk_type_of(g, kernel)->shape;
    int64_t matrix[2] = {-1, s.dim[s.rank - 1]};
    stk_val w = stk_g_stop_gradient(g, stk_g_reshape(g, kernel, 2, matrix)), next = u, v = 0;
    for (int64_t i = 0; i < o->power_iterations; i++) {
        v = unit(g, stk_g_matmul_t(g, next, w, false, true));
        next = unit(g, stk_g_matmul(g, v, w));
    }
    stk_val sigma = stk_g_matmul_t(g, stk_g_matmul(g, v, w), next, false, true);
    stk_val divided = stk_g_div(g, w, sigma);
    stk_val nothing = stk_g_scalar(g, stk_g_dtype(g, w), 0);
    stk_val zero = stk_g_all(g, stk_g_eq(g, w, nothing), 0, NULL, false);
    divided = stk_g_reshape(g, stk_g_select(g, zero, w, divided), s.rank, s.dim);
    stk_c_update(c, "vector_u", stk_g_stop_gradient(g, stk_g_select(g, zero, u, next)));
    stk_c_update(c, name, stk_g_stop_gradient(g, divided));
}

/* The weight that is normalised, by its name in this layer; 0: none is declared. */
static stk_val kernel_in(stk_layer_call *c, char *name, size_t size)
{
    const spectral_norm *o = c->config;
    static const char *const own[] = {"kernel", "embeddings"};
    stk_val kernel = 0;
    for (int32_t i = 0; i < 2 && !kernel; i++) {
        snprintf(name, size, "%.200s/%s", o->layer->name, own[i]);
        kernel = stk_c_declared(c, name);
    }
    return kernel;
}

static void call_spectral_norm(stk_layer_call *c)
{
    const spectral_norm *o = c->config;
    char name[256];
    stk_val kernel = kernel_in(c, name, sizeof name);
    if (!kernel) { /* the layer declares it */
        stk_c_part(c, o->layer, NULL, c->nx, c->x, c->mask, c->y, c->ymask);
        kernel = stk_graph_ok(c->g) ? kernel_in(c, name, sizeof name) : 0;
    }
    if (!stk_graph_ok(c->g)) return;
    if (!kernel) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "a %s has neither kernel nor embeddings to be normalised",
                   o->layer->def->keras_class);
        return;
    }
    stk_val u = stk_c_weight(
        c, "vector_u", 2, (int64_t[]){1, stk_g_dim(c->g, kernel, -1)},
        &(stk_weight_wish){.initializer = stk_c_initializer(c, "TruncatedNormal(stddev=0.02)"),
                           .fixed = true,
                           .as_is = true,
                           .behind = name});
    if (c->training) normalise(c, name, kernel, u);
    c->ny = stk_c_part(c, o->layer, NULL, c->nx, c->x, c->mask, c->y, c->ymask);
    if (stk_graph_ok(c->g)) c->y[0] = stk_g_cast(c->g, c->y[0], stk_g_dtype(c->g, c->x[0]));
}
static const stk_config_field spectral_norm_fields[] = {
    STK_FIELD(spectral_norm, layer, LAYER, NULL),
    STK_FIELD(spectral_norm, power_iterations, INT, "1", .low = 1)};
const stk_layer_def stk_layer_spectral_norm = {.keras_class = "SpectralNormalization",
                                               .fields =
                                                   STK_FIELDS(spectral_norm, spectral_norm_fields),
                                               .mask = STK_MASK_OWN,
                                               .call = call_spectral_norm};
