/* Attention as one operation, and its gradient. Scores exist in blocks inside of the kernels only; statistics of each query
 * (the largest score, and one over the sum) are kept for the gradient, which computes the scores once more. Only where all
 * scores together are few (`keep`) they are kept as well: there that is faster.
 *
 * The mask of the operation stands key by key, [batch or 1, heads or 1, keys or 1, queries or 1], as the kernels read it. */
#include "graph/ir/compose.h"
#include "stoker/nn.h"

#include <math.h>

enum { CAUSAL, KEEP, INTS };
enum { ALIGNED = 16 }; /* queries of a register: kept scores have no padding */
enum { QUERY, KEY, VALUE, MASK, STATS = 3, DY, GRAD_MASK };

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

static stk_status check_operands(stk_infer *c)
{
    const stk_type *q = c->in[QUERY], *k = c->in[KEY], *v = c->in[VALUE];
    const int64_t *dq = q->shape.dim, *dk = k->shape.dim, *dv = v->shape.dim;
    if (c->node->nints != INTS || c->node->nreals != 1 || !isfinite(c->node->reals[0]))
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs the flags causal and keep, and a finite scale");
    if (!stk_dtype_is_float(q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "query, key and value need one float dtype; cast first");
    if (q->shape.rank != 4 || k->shape.rank != 4 || v->shape.rank != 4)
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "query, key and value must be [batch, steps, heads, size]");
    if (dk[0] != dq[0] || dv[0] != dq[0] || dk[1] != dv[1] || dk[2] != dv[2] || dk[3] != dq[3])
        return stk_infer_fail(
            c, STK_ERR_SHAPE,
            "query, key and value need one batch, key and value the same steps and heads, and "
            "query and key one size");
    if (dk[2] < 1 || dq[2] % dk[2])
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "%lld heads of queries for %lld of keys; the second must divide "
                              "the first",
                              (long long)dq[2], (long long)dk[2]);
    if (c->node->ints[KEEP] && dq[1] % ALIGNED)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "scores are kept of multiples of %d queries",
                              ALIGNED);
    if (dk[1] < 1 || dq[3] < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE, "needs at least one key and one feature");
    return STK_OK;
}

static stk_status check_mask(stk_infer *c, int32_t at)
{
    if (c->node->nin <= at) return STK_OK;
    const stk_type *mask = c->in[at];
    const int64_t *q = c->in[QUERY]->shape.dim;
    const int64_t want[] = {q[0], q[2], c->in[KEY]->shape.dim[1], q[1]};
    bool fits = mask->dtype == STK_BOOL && mask->shape.rank == 4;
    for (int32_t i = 0; fits && i < 4; i++)
        fits = mask->shape.dim[i] == 1 || mask->shape.dim[i] == want[i];
    if (fits) return STK_OK;
    return stk_infer_fail(
        c, STK_ERR_SHAPE, "the mask must be bool [%lld, %lld, %lld, %lld], or 1 instead of any",
        (long long)want[0], (long long)want[1], (long long)want[2], (long long)want[3]);
}

/* Half types keep their statistics as they were computed. */
static stk_type stats_of(const stk_infer *c)
{
    const stk_type *q = c->in[QUERY];
    const int64_t *d = q->shape.dim, kept = c->node->ints[KEEP] ? c->in[KEY]->shape.dim[1] : 0;
    stk_dtype dtype = q->dtype == STK_F64 ? STK_F64 : STK_F32;
    return (stk_type){dtype, {.rank = 4, .dim = {d[0], d[2], 2 + kept, d[1]}}};
}

static stk_status infer_attention(stk_infer *c)
{
    STK_TRY(check_operands(c));
    STK_TRY(check_mask(c, MASK));
    c->out[0] = *c->in[QUERY];
    c->out[0].shape.dim[3] = c->in[VALUE]->shape.dim[3];
    c->out[1] = stats_of(c);
    return STK_OK;
}

static stk_status infer_attention_grad(stk_infer *c)
{
    STK_TRY(check_operands(c));
    STK_TRY(check_mask(c, GRAD_MASK));
    stk_type y = *c->in[QUERY], stats = stats_of(c);
    y.shape.dim[3] = c->in[VALUE]->shape.dim[3];
    if (!stk_type_equal(c->in[STATS], &stats) || !stk_type_equal(c->in[DY], &y))
        return stk_infer_fail(c, STK_ERR_SHAPE, "statistics and dy must be those of attention");
    for (int32_t i = 0; i < 3; i++) c->out[i] = *c->in[i];
    return STK_OK;
}

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

static void fill_problem(const stk_graph *g, const stk_node *n, int32_t mask,
                         stk_attention_params *p)
{
    const stk_type *q = stk_type_of(g, n->in[QUERY]), *k = stk_type_of(g, n->in[KEY]);
    p->batch = q->shape.dim[0];
    p->queries = q->shape.dim[1];
    p->heads = q->shape.dim[2];
    p->depth = q->shape.dim[3];
    p->keys = k->shape.dim[1];
    p->kv_heads = k->shape.dim[2];
    p->width = stk_type_of(g, n->in[VALUE])->shape.dim[3];
    p->scale = n->reals[0];
    p->causal = (int32_t)n->ints[CAUSAL];
    p->keep = (int32_t)n->ints[KEEP];
    p->dtype = (int32_t)q->dtype;
    if (n->nin <= mask) return;
    const int64_t *d = stk_type_of(g, n->in[mask])->shape.dim;
    p->masked = 1;
    p->mask_query = d[3] > 1;
    p->mask_key = d[2] > 1 ? d[3] : 0;
    p->mask_head = d[1] > 1 ? d[2] * d[3] : 0;
    p->mask_batch = d[0] > 1 ? d[1] * d[2] * d[3] : 0;
}

static int32_t mask_of(const stk_node *n) { return n->op == STK_OP_ATTENTION ? MASK : GRAD_MASK; }

static stk_status lower_attention(stk_lower *l)
{
    stk_kernel kernel = l->node->op == STK_OP_ATTENTION ? STK_K_ATTENTION : STK_K_ATTENTION_GRAD;
    stk_attention_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    fill_problem(l->g, l->node, mask_of(l->node), p);
    return STK_OK;
}

/* Two products forward, four or five backward, and some ten operations for each score. */
static double cost_attention(const stk_graph *g, const stk_node *n)
{
    stk_attention_params p = {0};
    fill_problem(g, n, mask_of(n), &p);
    double pairs = (double)p.batch * (double)p.heads * (double)p.queries * (double)p.keys;
    if (n->op == STK_OP_ATTENTION) return pairs * (2.0 * (double)(p.depth + p.width) + 10);
    return pairs * ((p.keep ? 4.0 : 6.0) * (double)p.depth + 4.0 * (double)p.width + 20);
}

/* ---- what they stand for --------------------------------------------------------------------------------------------- */

static const int32_t heads_first[] = {0, 2, 1, 3}, turned[] = {0, 1, 3, 2};

/* [batch, steps, heads, size] -> [batch, heads, steps, size], with each head as often as the query has heads for it. */
static stk_val by_head(stk_graph *g, stk_val x, int64_t heads)
{
    x = stk_g_transpose(g, x, heads_first);
    if (!stk_graph_ok(g)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t times = heads / s.dim[1];
    if (times == 1) return x;
    x = stk_g_broadcast(g, stk_g_expand_dims(g, x, 2), 5,
                        (int64_t[]){s.dim[0], s.dim[1], times, s.dim[2], s.dim[3]});
    return stk_g_reshape(g, x, 4, (int64_t[]){s.dim[0], heads, s.dim[2], s.dim[3]});
}

/* The reverse: gradients of heads that share keys are added up. */
static stk_val from_heads(stk_graph *g, stk_val x, int64_t heads)
{
    if (!stk_graph_ok(g)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t times = s.dim[1] / heads, shape[] = {s.dim[0], heads, times, s.dim[2], s.dim[3]};
    if (times > 1) x = stk_g_sum(g, stk_g_reshape(g, x, 5, shape), 1, (int32_t[]){2}, false);
    return stk_g_transpose(g, x, heads_first);
}

/* bool [batch or 1, heads or 1, queries, keys]; 0: all is seen */
static stk_val seen_by(stk_graph *g, const stk_node *node, const stk_val *in, int32_t mask)
{
    stk_val seen = 0;
    if (node->ints[CAUSAL]) {
        int64_t t = stk_g_dim(g, in[QUERY], 1), s = stk_g_dim(g, in[KEY], 1);
        stk_val row = stk_g_iota(g, STK_I32, 4, (int64_t[]){1, 1, t, 1}, 2);
        seen = stk_g_ge(g, row, stk_g_iota(g, STK_I32, 4, (int64_t[]){1, 1, 1, s}, 3));
    }
    if (node->nin <= mask) return seen;
    stk_val turn = stk_g_transpose(g, in[mask], turned);
    return seen ? stk_g_and(g, seen, turn) : turn;
}

/* [batch, heads, queries, keys] */
static stk_val scores_of(stk_graph *g, const stk_node *node, const stk_val *in, stk_val seen)
{
    int64_t heads = stk_g_dim(g, in[QUERY], 2);
    stk_dtype dtype = stk_g_dtype(g, in[QUERY]);
    stk_val q = stk_g_transpose(g, in[QUERY], heads_first);
    q = stk_g_mul(g, q, stk_g_scalar(g, dtype, node->reals[0]));
    stk_val scores = stk_g_matmul_t(g, q, by_head(g, in[KEY], heads), false, true);
    if (seen)
        scores =
            stk_g_select(g, seen, scores,
                         stk_g_scalar(g, dtype, dtype == STK_F16 ? -3e4 : STK_ATTENTION_HIDDEN));
    return scores;
}

static stk_val stats_from(stk_graph *g, stk_val scores, bool keep)
{
    const int32_t last = -1;
    stk_dtype dtype = stk_g_dtype(g, scores) == STK_F64 ? STK_F64 : STK_F32;
    scores = stk_g_cast(g, scores, dtype);
    stk_val top = stk_g_reduce_max(g, scores, 1, &last, true);
    stk_val each = stk_g_exp(g, stk_g_sub(g, scores, top));
    stk_val sum = stk_g_sum(g, each, 1, &last, true);
    stk_val all[] = {
        stk_g_transpose(g, top, turned), stk_g_transpose(g, stk_g_reciprocal(g, sum), turned),
        stk_g_transpose(g, each,
                        turned)}; /* nobody looks at these: the gradient is composed as well */
    return stk_g_concat(g, keep ? 3 : 2, all, 2);
}

static void compose_attention(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out)
{
    int64_t heads = stk_g_dim(g, in[QUERY], 2);
    stk_val scores = scores_of(g, node, in, seen_by(g, node, in, MASK));
    stk_val weights = stk_g_softmax(g, scores, -1);
    out[1] = stats_from(g, scores, node->ints[KEEP]);
    out[0] =
        stk_g_transpose(g, stk_g_matmul(g, weights, by_head(g, in[VALUE], heads)), heads_first);
}

/* The statistics are those of these very queries and keys, so all that hangs on them hangs on those. */
static void compose_attention_grad(stk_graph *g, const stk_node *node, const stk_val *in,
                                   stk_val *out)
{
    int64_t heads = stk_g_dim(g, in[QUERY], 2), shared = stk_g_dim(g, in[KEY], 2);
    stk_dtype dtype = stk_g_dtype(g, in[QUERY]);
    const int32_t last = -1;
    stk_val seen = seen_by(g, node, in, GRAD_MASK),
            p = stk_g_softmax(g, scores_of(g, node, in, seen), -1);
    stk_val scale = stk_g_scalar(g, dtype, node->reals[0]);
    stk_val dy = stk_g_transpose(g, in[DY], heads_first);
    stk_val dp = stk_g_matmul_t(g, dy, by_head(g, in[VALUE], heads), false, true);
    stk_val sum = stk_g_sum(g, stk_g_mul(g, p, dp), 1, &last, true);
    stk_val ds = stk_g_mul(g, p, stk_g_sub(g, dp, sum));
    if (seen) ds = stk_g_select(g, seen, ds, stk_g_scalar(g, dtype, 0));
    ds = stk_g_mul(g, ds, scale);
    stk_val q = stk_g_transpose(g, in[QUERY], heads_first);
    stk_val dq = stk_g_matmul(g, ds, by_head(g, in[KEY], heads));
    out[0] = stk_g_transpose(g, dq, heads_first);
    out[1] = from_heads(g, stk_g_matmul_t(g, ds, q, true, false), shared);
    out[2] = from_heads(g, stk_g_matmul_t(g, p, dy, true, false), shared);
}

/* ---- gradients -------------------------------------------------------------------------------------------------------- */

static void grad_attention(stk_grad *c)
{
    const stk_val *in = c->node.in;
    if (!c->dout[0]) return;
    stk_val all[] = {in[QUERY],       in[KEY],    in[VALUE],
                     c->node.out + 1, c->dout[0], c->node.nin > MASK ? in[MASK] : 0};
    stk_attrs attrs = {.ints = c->node.ints, .nints = INTS, .reals = c->node.reals, .nreals = 1};
    stk_val d = stk_g_apply(c->g, STK_OP_ATTENTION_GRAD, c->node.nin > MASK ? 6 : 5, all, &attrs);
    for (int32_t i = 0; d && i < 3; i++) c->din[i] = d + i;
}

static void grad_attention_grad(stk_grad *c) { stk_grad_compose(c, compose_attention_grad, ~0u); }

const stk_opdef stk_opdef_attention = {.flags = STK_OPF_WIDEN,
                                       .infer = infer_attention,
                                       .grad = grad_attention,
                                       .lower = lower_attention,
                                       .cost = cost_attention,
                                       .compose = compose_attention};
const stk_opdef stk_opdef_attention_grad = {.flags = STK_OPF_WIDEN,
                                            .infer = infer_attention_grad,
                                            .grad = grad_attention_grad,
                                            .lower = lower_attention,
                                            .cost = cost_attention,
                                            .compose = compose_attention_grad};

/* ---- builder ------------------------------------------------------------------------------------------------------------ */

stk_attention_options stk_attention_options_defaults(void) { return (stk_attention_options){0}; }

/* A mask of up to four axes as the kernels read it. */
static stk_val key_by_key(stk_graph *g, stk_val mask)
{
    int64_t sizes[4] = {1, 1, 1, 1};
    int32_t rank = stk_g_rank(g, mask);
    if (!stk_graph_ok(g)) return 0;
    if (rank > 4)
        return stk_g_fail(g, STK_ERR_SHAPE, "attention: a mask of %d axes; it takes up to 4", rank);
    for (int32_t i = 0; i < rank; i++) sizes[4 - rank + i] = stk_g_dim(g, mask, i);
    return stk_g_transpose(g, stk_g_reshape(g, mask, 4, sizes), turned);
}

/* Few enough to be kept: what a second-level and a share of the third-level cache hold. */
static bool worth_keeping(stk_graph *g, stk_val query, stk_val key)
{
    const double most = 4 << 20, most_keys = 1024;
    if (stk_g_rank(g, query) != 4 || stk_g_rank(g, key) != 4 || !stk_graph_ok(g)) return false;
    int64_t queries = stk_g_dim(g, query, 1);
    double scores = (double)stk_g_dim(g, query, 0) * (double)stk_g_dim(g, query, 2) *
                    (double)queries * (double)stk_g_dim(g, key, 1);
    return queries % ALIGNED == 0 && (double)stk_g_dim(g, key, 1) <= most_keys && scores <= most;
}

stk_val stk_g_attention(stk_graph *g, stk_val query, stk_val key, stk_val value,
                        const stk_attention_options *options)
{
    stk_attention_options o = options ? *options : stk_attention_options_defaults();
    if (!stk_graph_ok(g) || !stk_val_ok(g, query) || !stk_val_ok(g, key)) return 0;
    int64_t ints[INTS] = {o.causal, worth_keeping(g, query, key)}, depth = stk_g_dim(g, query, -1);
    double scale = o.scale != 0 ? o.scale : 1 / sqrt((double)stk_max_i64(depth, 1));
    stk_val in[] = {query, key, value, o.mask ? key_by_key(g, o.mask) : 0};
    return stk_g_apply(g, STK_OP_ATTENTION, o.mask ? 4 : 3, in,
                       &(stk_attrs){.ints = ints, .nints = INTS, .reals = &scale, .nreals = 1});
}
