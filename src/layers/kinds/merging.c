/* Layers of several inputs: Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate, Dot. */
#include "layers/layer.h"

#include <string.h>

/* ---- by element ---------------------------------------------------------------------------------------------------------- */

/* Inputs with fewer axes get new ones behind the batch, as in Keras: [b, c] + [b, h, w, c] is [b, 1, 1, c] + ... */
static stk_val level(stk_layer_call *c, int32_t i, int32_t rank)
{
    stk_shape s = stk_c_shape(c, i), to = {.rank = rank};
    if (s.rank == rank || s.rank < 1) return c->x[i];
    to.dim[0] = s.dim[0];
    for (int32_t k = 1; k < rank; k++)
        to.dim[k] = k <= rank - s.rank ? 1 : s.dim[k - (rank - s.rank)];
    return stk_g_reshape(c->g, c->x[i], rank, to.dim);
}

/* Masks of all inputs: where any of them counts, the result counts. Without a mask on each there is none. */
static stk_val any_mask(const stk_layer_call *c)
{
    stk_val all = c->mask[0];
    for (int32_t i = 1; all && i < c->nx; i++)
        all = c->mask[i] ? stk_g_or(c->g, all, c->mask[i]) : 0;
    return all;
}

static int32_t largest_rank(const stk_layer_call *c)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < c->nx; i++) {
        int32_t r = stk_c_shape(c, i).rank;
        if (r > rank) rank = r;
    }
    return rank;
}

typedef stk_val (*merge_op)(stk_graph *g, stk_val a, stk_val b);

static void merge(stk_layer_call *c, merge_op op)
{
    int32_t rank = largest_rank(c);
    stk_val y = level(c, 0, rank);
    for (int32_t i = 1; i < c->nx; i++) y = op(c->g, y, level(c, i, rank));
    c->y[0] = y;
    c->ymask[0] = any_mask(c);
}

static void add_call(stk_layer_call *c) { merge(c, stk_g_add); }
static void subtract_call(stk_layer_call *c) { merge(c, stk_g_sub); }
static void maximum_call(stk_layer_call *c) { merge(c, stk_g_max); }
static void minimum_call(stk_layer_call *c) { merge(c, stk_g_min); }
static void average_call(stk_layer_call *c)
{
    merge(c, stk_g_add);
    c->y[0] = stk_g_div(c->g, c->y[0], stk_g_scalar(c->g, stk_g_dtype(c->g, c->y[0]), c->nx));
}

/* What an input masks out counts as 1 there; what all mask out is 0. */
static void multiply_call(stk_layer_call *c)
{
    stk_graph *g = c->g;
    int32_t rank = largest_rank(c);
    stk_val y = 0, out_mask = 0;
    bool all = c->nx > 0;
    for (int32_t i = 0; i < c->nx; i++) all = all && c->mask[i];
    for (int32_t i = 0; i < c->nx; i++) {
        stk_val x = c->x[i];
        stk_shape s = stk_c_shape(c, i);
        if (c->mask[i]) {
            stk_val mask = stk_g_broadcast(g, stk_g_expand_dims(g, c->mask[i], -1), s.rank, s.dim);
            x = stk_g_select(g, mask, x, stk_g_scalar(g, stk_g_dtype(g, x), 1));
            if (all) out_mask = out_mask ? stk_g_or(g, out_mask, mask) : mask;
        } else {
            x = level(c, i, rank);
        }
        y = y ? stk_g_mul(g, y, x) : x;
    }
    if (all) {
        y = stk_g_select(g, out_mask, y, stk_g_zeros_like(g, y));
        c->ymask[0] = stk_g_any(g, out_mask, 1, (int32_t[]){-1}, false);
    }
    c->y[0] = y;
}

#define MERGE(id, class_, most, call_)                                                             \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .min_inputs = 2,                                         \
                                          .max_inputs = most,                                      \
                                          .list = true,                                            \
                                          .mask = STK_MASK_OWN,                                    \
                                          .call = call_};
MERGE(add, "Add", -1, add_call)
MERGE(subtract, "Subtract", 2, subtract_call)
MERGE(multiply, "Multiply", -1, multiply_call)
MERGE(average, "Average", -1, average_call)
MERGE(maximum, "Maximum", -1, maximum_call)
MERGE(minimum, "Minimum", -1, minimum_call)

/* ---- Concatenate ----------------------------------------------------------------------------------------------------------- */

typedef struct concatenate {
    int64_t axis;
} concatenate;

static const stk_config_field concatenate_fields[] = {STK_FIELD(concatenate, axis, INT, "-1")};

/* Masks, spread over the elements of their inputs, are joined like them; a step counts if any of its elements does. */
static stk_val joined_mask(stk_layer_call *c, int32_t axis)
{
    stk_val parts[STK_LAYER_INPUTS];
    stk_graph *g = c->g;
    bool some = false;
    for (int32_t i = 0; i < c->nx; i++) some = some || c->mask[i];
    if (!some) return 0;
    for (int32_t i = 0; i < c->nx; i++) {
        stk_shape s = stk_c_shape(c, i);
        stk_val mask = c->mask[i];
        if (!mask)
            parts[i] = stk_g_fill(g, STK_BOOL, s.rank, s.dim, 1);
        else if (stk_g_rank(g, mask) < s.rank)
            parts[i] = stk_g_broadcast(g, stk_g_expand_dims(g, mask, -1), s.rank, s.dim);
        else
            parts[i] = mask;
    }
    return stk_g_any(g, stk_g_concat(g, c->nx, parts, axis), 1, (int32_t[]){-1}, false);
}

static void concatenate_call(stk_layer_call *c)
{
    const concatenate *o = c->config;
    int32_t axis = stk_c_axis(c, 0, o->axis);
    if (axis < 0) return;
    c->y[0] = stk_g_concat(c->g, c->nx, c->x, axis);
    c->ymask[0] = joined_mask(c, axis);
}

const stk_layer_def stk_layer_concatenate = {.keras_class = "Concatenate",
                                             .fields = STK_FIELDS(concatenate, concatenate_fields),
                                             .min_inputs = 1,
                                             .max_inputs = -1,
                                             .list = true,
                                             .mask = STK_MASK_OWN,
                                             .call = concatenate_call};

/* ---- Dot --------------------------------------------------------------------------------------------------------------------- */

typedef struct dot {
    stk_ints axes;
    bool normalize;
} dot;

static const stk_config_field dot_fields[] = {
    STK_FIELD(dot, axes, INTS, NULL),
    STK_FIELD(dot, normalize, BOOL, "False"),
};

/* [b, .., k, ..] -> [b, product of the others, k]; the other sizes are appended to `rest`. */
static stk_val contracted(stk_layer_call *c, stk_val x, int32_t axis, stk_shape *rest)
{
    stk_graph *g = c->g;
    if (!stk_graph_ok(g)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    int32_t perm[STK_MAX_RANK] = {0}, n = 1;
    int64_t others = 1;
    for (int32_t i = 1; i < s.rank; i++) {
        if (i == axis) continue;
        perm[n++] = i;
        others *= s.dim[i];
        if (rest->rank == STK_MAX_RANK)
            return stk_c_fail(c, STK_ERR_RANGE, "the result would have more than %d axes",
                              STK_MAX_RANK);
        rest->dim[rest->rank++] = s.dim[i];
    }
    perm[n] = axis;
    if (axis != s.rank - 1) x = stk_g_transpose(g, x, perm);
    return stk_g_reshape(g, x, 3, (int64_t[]){s.dim[0], others, s.dim[axis]});
}

static void dot_call(stk_layer_call *c)
{
    const dot *o = c->config;
    stk_graph *g = c->g;
    stk_val x[2] = {c->x[0], c->x[1]};
    int32_t axis[2];
    if (o->axes.n != 1 && o->axes.n != 2) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "axes must be one number or two");
        return;
    }
    for (int32_t i = 0; i < 2; i++) {
        if (!stk_c_rank(c, i, 2, STK_MAX_RANK)) return;
        axis[i] = stk_c_axis(c, i, o->axes.v[o->axes.n == 2 ? i : 0]);
        if (axis[i] < 1) {
            stk_c_fail(c, STK_ERR_RANGE, "axes count from 1: the batch cannot be summed over");
            return;
        }
        if (o->normalize) x[i] = stk_g_unit_norm(g, x[i], 1, &axis[i], 1e-12);
    }
    stk_shape out = {.rank = 1, .dim = {stk_c_dim(c, 0, 0)}};
    stk_val a = contracted(c, x[0], axis[0], &out), b = contracted(c, x[1], axis[1], &out);
    stk_val y = stk_g_matmul_t(g, a, b, false, true);
    if (out.rank == 1) out.dim[out.rank++] = 1;
    c->y[0] = stk_g_reshape(g, y, out.rank, out.dim);
}

const stk_layer_def stk_layer_dot = {.keras_class = "Dot",
                                     .fields = STK_FIELDS(dot, dot_fields),
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .list = true,
                                     .mask = STK_MASK_OWN,
                                     .call = dot_call};
