/* Random tensors. Element i is a function of (seed, stream, counter, i): the same bits for any number of threads,
 * other bits in every run, since the counter is the number of the run unless another is given.
 *
 * Attributes of all but the permutation: seed stream dtype low high shape...; a b (see stk_random_kind). */
#include "graph/ir/op.h"
#include "stoker/nn.h"

#include <math.h>
#include <string.h>

enum { SEED, STREAM, DTYPE, LOW, HIGH, SHAPE };

static stk_status check_counter(stk_infer *c)
{
    if (c->in[0]->dtype == STK_I64 && c->in[0]->shape.rank == 0) return STK_OK;
    return stk_infer_fail(c, STK_ERR_DTYPE,
                          "the counter must be an int64 scalar, as stk_g_step gives it");
}

static stk_random_kind kind_of(int op)
{
    switch (op) {
    case STK_OP_RANDOM_NORMAL: return STK_RANDOM_NORMAL;
    case STK_OP_RANDOM_TRUNCATED_NORMAL: return STK_RANDOM_TRUNCATED_NORMAL;
    case STK_OP_RANDOM_BERNOULLI: return STK_RANDOM_BERNOULLI;
    case STK_OP_RANDOM_INT: return STK_RANDOM_INT;
    default: return STK_RANDOM_UNIFORM;
    }
}

/* The numbers of the distribution. */
static stk_status check_numbers(stk_infer *c, stk_random_kind kind)
{
    const int64_t *ints = c->node->ints;
    double a = c->node->reals[0], b = c->node->reals[1];
    switch (kind) {
    case STK_RANDOM_UNIFORM:
        if (a < b && isfinite(b - a)) return STK_OK;
        return stk_infer_fail(c, STK_ERR_RANGE,
                              "low %g, high %g; low must be below high, both finite", a, b);
    case STK_RANDOM_BERNOULLI:
        if (a >= 0 && a <= 1) return STK_OK;
        return stk_infer_fail(c, STK_ERR_RANGE, "probability %g; needs 0 to 1", a);
    case STK_RANDOM_INT:
        if (ints[LOW] < ints[HIGH]) return STK_OK;
        return stk_infer_fail(c, STK_ERR_RANGE, "low %lld is not below high %lld",
                              (long long)ints[LOW], (long long)ints[HIGH]);
    default:
        if (isfinite(a) && b >= 0 && isfinite(b)) return STK_OK;
        return stk_infer_fail(c, STK_ERR_RANGE,
                              "mean %g, deviation %g; needs finite numbers, deviation >= 0", a, b);
    }
}

/* What the kernel writes; the builders cast to the rest. */
static bool is_made(stk_random_kind kind, stk_dtype t)
{
    if (kind == STK_RANDOM_INT) return t == STK_I32 || t == STK_I64;
    return t == STK_F32 || t == STK_F64 || (kind == STK_RANDOM_BERNOULLI && t == STK_BOOL);
}

static stk_status infer_random(stk_infer *c)
{
    const stk_node *n = c->node;
    stk_random_kind kind = kind_of(n->op);
    int32_t rank = n->nints - SHAPE;
    STK_TRY(check_counter(c));
    if (rank < 0 || rank > STK_MAX_RANK || n->nreals != 2)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs seed, stream, dtype, low, high, a shape of rank 0 to %d; a, b",
                              STK_MAX_RANK);
    stk_dtype t = (stk_dtype)n->ints[DTYPE];
    if (!stk_dtype_valid(t) || !is_made(kind, t))
        return stk_infer_fail(c, STK_ERR_DTYPE, "cannot make this dtype; use %s and cast",
                              kind == STK_RANDOM_INT ? "int32 or int64" : "float32 or float64");
    STK_TRY(check_numbers(c, kind));
    STK_TRY(stk_shape_check(stk_op_name((stk_op)n->op), rank, n->ints + SHAPE, stk_dtype_size(t),
                            c->err));
    *c->out = (stk_type){.dtype = t, .shape.rank = rank};
    memcpy(c->out->shape.dim, n->ints + SHAPE, (size_t)rank * sizeof(int64_t));
    if (kind == STK_RANDOM_INT && t == STK_I32 &&
        (n->ints[LOW] < INT32_MIN || n->ints[HIGH] > (int64_t)INT32_MAX + 1))
        return stk_infer_fail(c, STK_ERR_RANGE, "%lld to %lld does not fit int32; use int64",
                              (long long)n->ints[LOW], (long long)n->ints[HIGH]);
    return STK_OK;
}

static stk_status lower_random(stk_lower *l)
{
    const stk_node *n = l->node;
    stk_random_params *p = stk_lower_params(l, STK_K_RANDOM, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->count = stk_shape_count(&stk_type_of(l->g, n->out)->shape);
    p->seed = n->ints[SEED];
    p->stream = n->ints[STREAM];
    p->low = n->ints[LOW];
    p->high = n->ints[HIGH];
    p->a = n->reals[0];
    p->b = n->reals[1];
    p->kind = kind_of(n->op);
    p->dtype = (int32_t)n->ints[DTYPE];
    return STK_OK;
}

static double cost_random(const stk_graph *g, const stk_node *n)
{
    return 20.0 * (double)stk_shape_count(&stk_type_of(g, n->out)->shape);
}

#define RANDOM(name)                                                                               \
    const stk_opdef stk_opdef_##name = {.flags = STK_OPF_RANDOM | STK_OPF_NO_GRAD,                 \
                                        .infer = infer_random,                                     \
                                        .lower = lower_random,                                     \
                                        .cost = cost_random};
RANDOM(random_uniform)
RANDOM(random_normal)
RANDOM(random_truncated_normal)
RANDOM(random_bernoulli)
RANDOM(random_int)

/* ---- permutation: attributes seed stream n -------------------------------------------------------------- */

static stk_status infer_permutation(stk_infer *c)
{
    const stk_node *n = c->node;
    STK_TRY(check_counter(c));
    if (n->nints != 3 || n->ints[2] < 0)
        return stk_infer_fail(c, STK_ERR_RANGE, "needs seed, stream and a length >= 0");
    *c->out = (stk_type){.dtype = STK_I64, .shape = {.rank = 1, .dim = {n->ints[2]}}};
    return STK_OK;
}

static stk_status lower_permutation(stk_lower *l)
{
    stk_random_params *p = stk_lower_params(l, STK_K_PERMUTATION, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->seed = l->node->ints[0];
    p->stream = l->node->ints[1];
    p->count = l->node->ints[2];
    p->dtype = STK_I64;
    return STK_OK;
}

const stk_opdef stk_opdef_random_permutation = {.flags = STK_OPF_RANDOM | STK_OPF_NO_GRAD,
                                                .infer = infer_permutation,
                                                .lower = lower_permutation,
                                                .cost = cost_random};

/* ---- builders --------------------------------------------------------------------------------------------- */

stk_random_options stk_random_options_defaults(void) { return (stk_random_options){.stream = -1}; }

/* Fills in the counter and the stream: two random ops of a graph never share bits unless asked to. */
static bool settle(stk_graph *g, const stk_random_options *options, stk_random_options *out)
{
    if (!stk_graph_ok(g)) return false;
    *out = options ? *options : stk_random_options_defaults();
    if (!out->counter) out->counter = stk_g_step(g);
    if (out->stream < 0) out->stream = g->next_stream++;
    return stk_graph_ok(g);
}

typedef struct draw {
    stk_op op;
    double a, b;
    int64_t low, high;
} draw;

static stk_val make(stk_graph *g, const draw *d, stk_dtype dtype, int32_t rank,
                    const int64_t *shape, const stk_random_options *options)
{
    stk_random_options o;
    if (!settle(g, options, &o)) return 0;
    if (rank < 0 || rank > STK_MAX_RANK || (rank && !shape) || !stk_dtype_valid(dtype))
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "%s: rank %d or dtype %d; rank 0 to %d and a shape are needed",
                          stk_op_name(d->op), rank, (int)dtype, STK_MAX_RANK);
    stk_random_kind kind = kind_of((int)d->op);
    stk_dtype made = dtype;
    if (!is_made(kind, dtype))
        made = kind == STK_RANDOM_INT ? STK_I64 : kind == STK_RANDOM_BERNOULLI ? STK_BOOL : STK_F32;
    if (made == STK_F32 && !stk_dtype_is_float(dtype))
        return stk_g_fail(g, STK_ERR_DTYPE, "%s: gives floats, not %s; use random_int",
                          stk_op_name(d->op), stk_dtype_name(dtype));
    int64_t ints[SHAPE + STK_MAX_RANK] = {o.seed, o.stream, made, d->low, d->high};
    double reals[2] = {d->a, d->b};
    for (int32_t i = 0; i < rank; i++) ints[SHAPE + i] = shape[i];
    stk_val v =
        stk_g_apply(g, d->op, 1, &o.counter,
                    &(stk_attrs){.ints = ints, .nints = SHAPE + rank, .reals = reals, .nreals = 2});
    return made == dtype ? v : stk_g_cast(g, v, dtype);
}

stk_val stk_g_random_uniform(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                             double low, double high, const stk_random_options *options)
{
    return make(g, &(draw){STK_OP_RANDOM_UNIFORM, low, high, 0, 0}, dtype, rank, shape, options);
}

stk_val stk_g_random_normal(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                            double mean, double deviation, const stk_random_options *options)
{
    return make(g, &(draw){STK_OP_RANDOM_NORMAL, mean, deviation, 0, 0}, dtype, rank, shape,
                options);
}

stk_val stk_g_random_truncated_normal(stk_graph *g, stk_dtype dtype, int32_t rank,
                                      const int64_t *shape, double mean, double deviation,
                                      const stk_random_options *options)
{
    return make(g, &(draw){STK_OP_RANDOM_TRUNCATED_NORMAL, mean, deviation, 0, 0}, dtype, rank,
                shape, options);
}

stk_val stk_g_random_bernoulli(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                               double probability, const stk_random_options *options)
{
    return make(g, &(draw){STK_OP_RANDOM_BERNOULLI, probability, 0, 0, 0}, dtype, rank, shape,
                options);
}

stk_val stk_g_random_int(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                         int64_t low, int64_t high, const stk_random_options *options)
{
    return make(g, &(draw){STK_OP_RANDOM_INT, 0, 0, low, high}, dtype, rank, shape, options);
}

stk_val stk_g_random_permutation(stk_graph *g, int64_t n, const stk_random_options *options)
{
    stk_random_options o;
    if (!settle(g, options, &o)) return 0;
    int64_t ints[] = {o.seed, o.stream, n};
    return stk_g_apply(g, STK_OP_RANDOM_PERMUTATION, 1, &o.counter,
                       &(stk_attrs){.ints = ints, .nints = 3});
}

/* ---- noise layers -------------------------------------------------------------------------------------------- */

static bool check_rate(stk_graph *g, const char *who, stk_val x, double rate)
{
    if (!stk_graph_ok(g)) return false;
    if (!stk_val_ok(g, x)) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "%s: input is value %d, which is not in this graph", who,
                   x);
        return false;
    }
    if (!stk_dtype_is_float(stk_g_dtype(g, x))) {
        stk_g_fail(g, STK_ERR_DTYPE, "%s(%s): needs a float type; cast to float32 first", who,
                   STK_TYPE_TEXT(stk_type_of(g, x)));
        return false;
    }
    if (rate >= 0 && rate <= 1) return true;
    stk_g_fail(g, STK_ERR_RANGE, "%s: rate %g; needs 0 to 1", who, rate);
    return false;
}

/* True where an element of x is kept; a 1 in `noise` drops along that axis together. */
static stk_val keep_mask(stk_graph *g, const char *who, stk_val x, double rate,
                         const int64_t *noise, const stk_random_options *options)
{
    stk_shape s = stk_type_of(g, x)->shape;
    for (int32_t i = 0; noise && i < s.rank; i++) {
        if (noise[i] != 1 && noise[i] != s.dim[i])
            return stk_g_fail(
                g, STK_ERR_SHAPE, "%s(%s): noise shape has %lld on axis %d; 1 or %lld is possible",
                who, STK_TYPE_TEXT(stk_type_of(g, x)), (long long)noise[i], i, (long long)s.dim[i]);
        s.dim[i] = noise[i];
    }
    return stk_g_random_bernoulli(g, STK_BOOL, s.rank, s.dim, 1 - rate, options);
}

stk_val stk_g_dropout(stk_graph *g, stk_val x, double rate, const int64_t *noise_shape,
                      const stk_random_options *options)
{
    if (!check_rate(g, "dropout", x, rate)) return 0;
    if (rate == 0) return x;
    if (rate == 1) return stk_g_zeros_like(g, x);
    stk_dtype real = stk_g_dtype(g, x);
    stk_val keep = keep_mask(g, "dropout", x, rate, noise_shape, options);
    return stk_g_select(g, keep, stk_g_mul(g, x, stk_g_scalar(g, real, 1 / (1 - rate))),
                        stk_g_scalar(g, real, 0));
}

stk_val stk_g_alpha_dropout(stk_graph *g, stk_val x, double rate, const int64_t *noise_shape,
                            const stk_random_options *options)
{
    if (!check_rate(g, "alpha_dropout", x, rate)) return 0;
    if (rate == 0) return x;
    /* What selu tends to for x -> -infinity takes the place of dropped elements; then mean 0, variance 1 again. */
    const double floor_value = -1.7580993408473766;
    double scale = 1 / sqrt((1 - rate) * (1 + rate * floor_value * floor_value));
    stk_dtype real = stk_g_dtype(g, x);
    if (rate == 1) return stk_g_zeros_like(g, x);
    stk_val keep = keep_mask(g, "alpha_dropout", x, rate, noise_shape, options);
    stk_val y = stk_g_select(g, keep, x, stk_g_scalar(g, real, floor_value));
    return stk_g_add(g, stk_g_mul(g, y, stk_g_scalar(g, real, scale)),
                     stk_g_scalar(g, real, -scale * floor_value * rate));
}

stk_val stk_g_gaussian_noise(stk_graph *g, stk_val x, double deviation,
                             const stk_random_options *options)
{
    if (!check_rate(g, "gaussian_noise", x, 0)) return 0;
    stk_type t = *stk_type_of(g, x);
    return stk_g_add(
        g, x, stk_g_random_normal(g, t.dtype, t.shape.rank, t.shape.dim, 0, deviation, options));
}

stk_val stk_g_gaussian_dropout(stk_graph *g, stk_val x, double rate,
                               const stk_random_options *options)
{
    if (!check_rate(g, "gaussian_dropout", x, rate)) return 0;
    if (rate == 0) return x;
    if (rate == 1)
        return stk_g_fail(g, STK_ERR_RANGE,
                          "gaussian_dropout: rate 1 has infinite noise; needs less than 1");
    stk_type t = *stk_type_of(g, x);
    double deviation = sqrt(rate / (1 - rate));
    return stk_g_mul(
        g, x, stk_g_random_normal(g, t.dtype, t.shape.rank, t.shape.dim, 1, deviation, options));
}
