/* Operations of keras.ops that move elements: shapes, axes, windows, picks. */
#include "layers/kinds/operation.h"

#include <string.h>

stk_val stk_o_like(stk_layer_call *c, const stk_operation *o, double value)
{
    stk_shape s = stk_c_shape(c, 0);
    return stk_g_fill(c->g, stk_o_dtype(c, o), s.rank, s.dim, value);
}

stk_val stk_o_flat(stk_layer_call *c, stk_val x)
{
    int64_t all = -1;
    return stk_g_reshape(c->g, x, 1, &all);
}

/* The batch may be written as None. */
stk_val stk_o_reshape(stk_layer_call *c, const stk_operation *o)
{
    stk_ints to = o->newshape;
    int32_t open = 0;
    for (int32_t i = 0; i < to.n; i++) open += to.v[i] < 0;
    if (to.n > 0 && to.v[0] < 0 && open > 1) to.v[0] = stk_c_dim(c, 0, 0);
    return to.n < 0 ? 0 : stk_g_reshape(c->g, stk_o_argument(c, 0), to.n, to.v);
}

stk_val stk_o_broadcast(stk_layer_call *c, const stk_operation *o)
{
    stk_ints to = o->shape;
    for (int32_t i = 0; i < to.n; i++)
        if (to.v[i] < 0) to.v[i] = stk_c_dim(c, 0, i - to.n + stk_g_rank(c->g, c->x[0]));
    return stk_g_broadcast(c->g, stk_o_argument(c, 0), to.n, to.v);
}

/* ---- axes in another order ------------------------------------------------------------------------------------------ */

stk_val stk_o_transpose(stk_layer_call *c, const stk_operation *o)
{
    int32_t perm[STK_MAX_RANK];
    if (o->axes.n < 0) return stk_g_transpose(c->g, stk_o_argument(c, 0), NULL);
    if (!stk_c_rank(c, 0, o->axes.n, o->axes.n)) return 0;
    for (int32_t i = 0; i < o->axes.n; i++) {
        perm[i] = stk_c_axis(c, 0, o->axes.v[i]);
        if (perm[i] < 0) return 0;
    }
    return stk_g_transpose(c->g, c->x[0], perm);
}

stk_val stk_o_swap(stk_layer_call *c, const stk_operation *o)
{
    int32_t perm[STK_MAX_RANK], rank = stk_g_rank(c->g, c->x[0]);
    int32_t a = stk_c_axis(c, 0, o->axis1), b = stk_c_axis(c, 0, o->axis2);
    if (a < 0 || b < 0) return 0;
    for (int32_t i = 0; i < rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    return stk_g_transpose(c->g, c->x[0], perm);
}

stk_val stk_o_move(stk_layer_call *c, const stk_operation *o)
{
    int32_t perm[STK_MAX_RANK], rank = stk_g_rank(c->g, c->x[0]), rest = 0;
    bool from[STK_MAX_RANK] = {false}, filled[STK_MAX_RANK] = {false};
    if (o->source.n != o->destination.n)
        return stk_c_fail(c, STK_ERR_ARGUMENT, "%d axes move to %d places", o->source.n,
                          o->destination.n);
    for (int32_t i = 0; i < o->source.n; i++) {
        int32_t a = stk_c_axis(c, 0, o->source.v[i]), to = stk_c_axis(c, 0, o->destination.v[i]);
        if (a < 0 || to < 0) return 0;
        if (from[a] || filled[to])
            return stk_c_fail(c, STK_ERR_ARGUMENT, "an axis moves twice, or two to one place");
        perm[to] = a;
        from[a] = filled[to] = true;
    }
    for (int32_t to = 0; to < rank; to++) {
        if (filled[to]) continue;
        while (from[rest]) rest++;
        perm[to] = rest++;
    }
    return stk_g_transpose(c->g, c->x[0], perm);
}

/* ---- along axes ------------------------------------------------------------------------------------------------------- */

stk_val stk_o_flip(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    int32_t n = o->axis.n < 0 ? stk_g_rank(c->g, x) : o->axis.n;
    for (int32_t i = 0; i < n; i++)
        x = stk_g_reverse(c->g, x, o->axis.n < 0 ? i : (int32_t)o->axis.v[i]);
    return x;
}

stk_val stk_o_roll(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    if (o->axis.n < 0) {
        stk_shape s = stk_c_shape(c, 0);
        stk_val y = stk_g_roll(c->g, stk_o_flat(c, x), o->shift.v[0], 0);
        return stk_g_reshape(c->g, y, s.rank, s.dim);
    }
    for (int32_t i = 0; i < o->axis.n; i++)
        x = stk_g_roll(c->g, x, o->shift.v[o->shift.n == 1 ? 0 : i], (int32_t)o->axis.v[i]);
    return x;
}

/* Each element so many times: a new axis behind it that is broadcast. */
stk_val stk_o_repeat(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    if (o->axis.n < 0) x = stk_o_flat(c, x);
    int32_t axis = o->axis.n < 0 ? 0 : stk_c_axis(c, 0, o->axis.v[0]), rank = stk_g_rank(c->g, x);
    if (axis < 0) return 0;
    if (o->repeats.n != 1 || o->repeats.v[0] < 0 || rank >= STK_MAX_RANK)
        return stk_c_fail(c, STK_ERR_UNSUPPORTED,
                          "repeats must be one number that is not negative");
    int64_t wide[STK_MAX_RANK], flat[STK_MAX_RANK];
    for (int32_t i = 0; i <= rank; i++) {
        int64_t d = i <= axis       ? stk_g_dim(c->g, x, i)
                    : i == axis + 1 ? o->repeats.v[0]
                                    : stk_g_dim(c->g, x, i - 1);
        wide[i] = d;
    }
    for (int32_t i = 0; i < rank; i++)
        flat[i] = stk_g_dim(c->g, x, i) * (i == axis ? o->repeats.v[0] : 1);
    x = stk_g_broadcast(c->g, stk_g_expand_dims(c->g, x, axis + 1), rank + 1, wide);
    return stk_g_reshape(c->g, x, rank, flat);
}

stk_val stk_o_tile(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    int64_t times[STK_MAX_RANK];
    int32_t rank = stk_g_rank(c->g, x), n = o->repeats.n;
    for (; rank < n; rank++) x = stk_g_expand_dims(c->g, x, 0);
    for (int32_t i = 0; i < rank; i++) times[i] = i < rank - n ? 1 : o->repeats.v[i - rank + n];
    return stk_g_tile(c->g, x, times);
}

stk_val stk_o_squeeze(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    int32_t axes[STK_MAX_RANK], n = 0, rank = stk_g_rank(c->g, x);
    bool given[STK_MAX_RANK] = {false};
    for (int32_t i = 0; i < o->axis.n; i++) {
        int32_t axis = stk_c_axis(c, 0, o->axis.v[i]);
        if (axis < 0) return 0;
        given[axis] = true;
    }
    for (int32_t i = rank - 1; i >= 0;
         i--) /* the batch is never one that can be left out unasked */
        if (o->axis.n >= 0 ? given[i] : i > 0 && stk_g_dim(c->g, x, i) == 1) axes[n++] = i;
    for (int32_t i = 0; i < n; i++) x = stk_g_squeeze(c->g, x, axes[i]);
    return x;
}

stk_val stk_o_pad(stk_layer_call *c, const stk_operation *o)
{
    static const struct {
        const char *name;
        stk_pad_mode mode;
    } modes[] = {{"reflect", STK_PAD_REFLECT},
                 {"symmetric", STK_PAD_SYMMETRIC},
                 {"edge", STK_PAD_EDGE},
                 {"wrap", STK_PAD_WRAP}};
    stk_val x = stk_o_argument(c, 0);
    int64_t low[STK_MAX_RANK], high[STK_MAX_RANK];
    const stk_json *w = o->pad_width;
    int32_t rank = stk_g_rank(c->g, x);
    for (int32_t i = 0; i < rank; i++) {
        const stk_json *row = w && w->count == rank ? stk_json_item(w, i) : stk_json_item(w, 0);
        const stk_json *pair = row && row->kind == STK_JSON_ARRAY ? row : w;
        bool lone = w && w->kind == STK_JSON_INT;
        low[i] = lone ? w->integer : stk_json_int(stk_json_item(pair, 0), -1);
        high[i] =
            lone ? w->integer : stk_json_int(stk_json_item(pair, pair && pair->count > 1), -1);
        if (low[i] < 0 || high[i] < 0)
            return stk_c_fail(c, STK_ERR_ARGUMENT, "pad_width takes a pair of numbers per axis");
    }
    if (!o->mode || !strcmp(o->mode, "constant")) {
        const stk_json *value = stk_json_get(c->arguments, "constant_values");
        return stk_g_pad(c->g, x, low, high,
                         value && value->kind != STK_JSON_NULL ? value->number : 0);
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(o->mode, modes[i].name))
            return stk_g_pad_mode(c->g, x, low, high, modes[i].mode);
    return stk_c_fail(c, STK_ERR_UNSUPPORTED,
                      "mode '%.32s'; it takes constant, reflect, symmetric, edge or wrap", o->mode);
}

/* ---- several results -------------------------------------------------------------------------------------------------- */

stk_val stk_o_split(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    const stk_json *at = o->indices_or_sections;
    int32_t axis = stk_c_axis(c, 0, o->axis.n == 1 ? o->axis.v[0] : 0);
    if (axis < 0 || !at) return 0;
    int64_t size = stk_g_dim(c->g, x, axis),
            n = at->kind == STK_JSON_ARRAY ? at->count + 1 : stk_json_int(at, 0), from = 0;
    if (n < 1 || n > STK_LAYER_OUTPUTS || (at->kind != STK_JSON_ARRAY && size % n))
        return stk_c_fail(c, STK_ERR_SHAPE, "%lld parts of an axis of %lld", (long long)n,
                          (long long)size);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = at->kind != STK_JSON_ARRAY ? (i + 1) * (size / n)
                     : i < at->count            ? stk_json_int(&at->items[i], 0)
                                                : size;
        if (to < 0) to += size;
        if (to > size) to = size;
        c->y[i] = stk_g_slice_axis(c->g, x, axis, from, to > from ? to - from : 0);
        from = to;
    }
    c->ny = (int32_t)n;
    return c->y[0];
}

stk_val stk_o_unstack(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    int32_t axis = stk_c_axis(c, 0, o->axis.n == 1 ? o->axis.v[0] : 0);
    if (axis < 0) return 0;
    int64_t n = stk_g_dim(c->g, x, axis);
    if (n < 1 || n > STK_LAYER_OUTPUTS)
        return stk_c_fail(c, STK_ERR_RANGE, "%lld parts; 1 to %d are possible", (long long)n,
                          STK_LAYER_OUTPUTS);
    for (int64_t i = 0; i < n; i++)
        c->y[i] = stk_g_squeeze(c->g, stk_g_slice_axis(c->g, x, axis, i, 1), axis);
    c->ny = (int32_t)n;
    return c->y[0];
}

/* ---- picks -------------------------------------------------------------------------------------------------------------- */

/* Places counted from the end are negative. */
static stk_val places(stk_layer_call *c, int32_t i, int64_t size)
{
    stk_val at = stk_o_argument(c, i);
    if (stk_dtype_is_float(stk_g_dtype(c->g, at))) at = stk_g_cast(c->g, at, STK_I64);
    stk_dtype dtype = stk_g_dtype(c->g, at);
    stk_val from_end = stk_g_add(c->g, at, stk_g_scalar(c->g, dtype, (double)size));
    return stk_g_select(c->g, stk_g_lt(c->g, at, stk_g_scalar(c->g, dtype, 0)), from_end, at);
}

stk_val stk_o_take(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    if (o->axis.n < 0) x = stk_o_flat(c, x);
    int32_t axis = o->axis.n < 0 ? 0 : stk_c_axis(c, 0, o->axis.v[0]);
    return axis < 0 ? 0 : stk_g_gather(c->g, x, places(c, 1, stk_g_dim(c->g, x, axis)), axis);
}

stk_val stk_o_take_along(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    int32_t axis = stk_c_axis(c, 0, o->axis.n == 1 ? o->axis.v[0] : -1);
    return axis < 0 ? 0 : stk_g_take_along(c->g, x, places(c, 1, stk_g_dim(c->g, x, axis)), axis);
}

stk_val stk_o_diagonal(stk_layer_call *c, const stk_operation *o)
{
    int32_t perm[STK_MAX_RANK], rank = stk_g_rank(c->g, c->x[0]), n = 0;
    int32_t a = stk_c_axis(c, 0, o->axis1), b = stk_c_axis(c, 0, o->axis2);
    if (a < 0 || b < 0) return 0;
    if (a == b) return stk_c_fail(c, STK_ERR_ARGUMENT, "axis1 and axis2 are the same");
    for (int32_t i = 0; i < rank; i++)
        if (i != a && i != b) perm[n++] = i;
    perm[n++] = a;
    perm[n] = b;
    stk_val x = stk_g_transpose(c->g, c->x[0], perm);
    if (o->offset > 0)
        x = stk_g_slice_axis(c->g, x, rank - 1, o->offset,
                             stk_g_dim(c->g, x, rank - 1) - o->offset);
    if (o->offset < 0)
        x = stk_g_slice_axis(c->g, x, rank - 2, -o->offset,
                             stk_g_dim(c->g, x, rank - 2) + o->offset);
    return stk_g_diag_part(c->g, x);
}

/* keras.ops.slice: the places where it begins are an argument, the sizes an option. */
stk_val stk_o_slice(stk_layer_call *c, const stk_operation *o)
{
    int64_t start[STK_MAX_RANK], size[STK_MAX_RANK];
    const stk_json *at = stk_json_item(c->args, 1);
    int32_t rank = stk_g_rank(c->g, c->x[0]);
    if (!at || at->kind != STK_JSON_ARRAY || at->count != rank || o->shape.n != rank)
        return stk_c_fail(c, STK_ERR_UNSUPPORTED, "slice takes numbers, one per axis");
    for (int32_t i = 0; i < rank; i++) {
        start[i] = stk_json_int(&at->items[i], 0);
        size[i] = o->shape.v[i] < 0 ? stk_c_dim(c, 0, i) - start[i] : o->shape.v[i];
    }
    return stk_g_slice(c->g, c->x[0], start, size, NULL);
}

/* ---- x[1:, ::2, 0, None, ...] ---------------------------------------------------------------------------------------------- */

typedef struct window {
    int64_t start[STK_MAX_RANK], size[STK_MAX_RANK], step[STK_MAX_RANK];
    stk_shape out; /* without the axes that an index takes away, with those that None adds */
    int32_t axis;  /* next one of x */
} window;

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static bool take_slice(stk_layer_call *c, window *w, const stk_json *v, int64_t d)
{
    const stk_json *config = stk_json_get(v, "config");
    int64_t step = stk_json_int(stk_json_get(config, "step"), 1);
    const stk_json *from = stk_json_get(config, "start"), *to = stk_json_get(config, "stop");
    if (step < 1 || step > INT32_MAX) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "slices with a step of %lld", (long long)step);
        return false;
    }
    int64_t start = clamp(stk_json_int(from, 0), -d, d), stop = clamp(stk_json_int(to, d), -d, d);
    if (start < 0) start += d;
    if (stop < 0) stop += d;
    w->start[w->axis] = start;
    w->step[w->axis] = step;
    w->size[w->axis] = stop > start ? (stop - start + step - 1) / step : 0;
    w->out.dim[w->out.rank++] = w->size[w->axis];
    w->axis++;
    return true;
}

static bool take_key(stk_layer_call *c, window *w, const stk_json *v, const stk_shape *s)
{
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    bool slice = !strcmp(keras_class, "__slice__");
    if (w->out.rank >= STK_MAX_RANK || (v->kind != STK_JSON_NULL && w->axis >= s->rank)) {
        stk_c_fail(c, STK_ERR_RANGE, "more keys than the %d axes of x", s->rank);
        return false;
    }
    if (v->kind == STK_JSON_NULL) {
        w->out.dim[w->out.rank++] = 1;
        return true;
    }
    int64_t d = s->dim[w->axis], at = stk_json_int(v, 0);
    if (slice) return take_slice(c, w, v, d);
    if (v->kind != STK_JSON_INT || at < -d || at >= d) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED,
                   "a key that is neither a slice, None, nor an index of axis %d", w->axis);
        return false;
    }
    w->start[w->axis] = at < 0 ? at + d : at;
    w->size[w->axis] = w->step[w->axis] = 1;
    w->axis++;
    return true;
}

static bool is_dots(const stk_json *v)
{
    return !strcmp(stk_json_text(stk_json_get(v, "class_name"), ""), "__ellipsis__");
}

static void take_whole(window *w, const stk_shape *s, int32_t until)
{
    for (; w->axis < until && w->out.rank < STK_MAX_RANK; w->axis++) {
        w->size[w->axis] = s->dim[w->axis];
        w->step[w->axis] = 1;
        w->out.dim[w->out.rank++] = s->dim[w->axis];
    }
}

stk_val stk_o_get_item(stk_layer_call *c)
{
    window w = {.axis = 0};
    stk_shape s = stk_c_shape(c, 0);
    const stk_json *keys = stk_json_item(c->args, 1), *items = keys;
    if (!keys) return stk_c_fail(c, STK_ERR_FORMAT, "x[..] without keys");
    int64_t n = keys->kind == STK_JSON_ARRAY ? keys->count : 1;
    if (keys->kind == STK_JSON_ARRAY) items = keys->items;
    for (int64_t i = 0; i < n; i++) {
        if (is_dots(&items[i])) {
            int32_t behind = 0;
            for (int64_t k = i + 1; k < n; k++) behind += items[k].kind != STK_JSON_NULL;
            take_whole(&w, &s, s.rank - behind);
        } else if (!take_key(c, &w, &items[i], &s)) {
            return 0;
        }
    }
    take_whole(&w, &s, s.rank);
    stk_val y = stk_g_slice(c->g, c->x[0], w.start, w.size, w.step);
    return stk_g_reshape(c->g, y, w.out.rank, w.out.dim);
}
