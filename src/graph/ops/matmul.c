/* Matrix product, batched over leading axes (numpy broadcasting), with transpose flags. */
#include "graph/ir/op.h"

/* [.., m, k] x [.., k, n] -> [.., m, n]; flags swap the last two axes of an operand as stored. */
static stk_status infer_matmul(stk_infer *c)
{
    const stk_type *a = c->in[0], *b = c->in[1];
    if (c->node->nints != 2)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "needs the flags ta and tb");
    if (a->dtype != b->dtype || !stk_dtype_is_float(a->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "operands need one float dtype; cast first");
    if (a->shape.rank < 2 || b->shape.rank < 2)
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "operands need at least 2 axes; reshape vectors to [n,1] or [1,n]");
    bool ta = c->node->ints[0], tb = c->node->ints[1];
    const int64_t *da = a->shape.dim + a->shape.rank - 2, *db = b->shape.dim + b->shape.rank - 2;
    int64_t m = da[ta], ka = da[!ta], kb = db[tb], n = db[!tb];
    if (ka != kb)
        return stk_infer_fail(c, STK_ERR_SHAPE, "inner sizes %lld and %lld differ%s", (long long)ka,
                              (long long)kb,
                              da[ta] == kb ? "; the first operand may need a transpose" : "");
    stk_shape la = a->shape, lb = b->shape;
    la.rank -= 2;
    lb.rank -= 2;
    *c->out = (stk_type){.dtype = a->dtype};
    if (!stk_shape_broadcast(&la, &lb, &c->out->shape))
        return stk_infer_fail(c, STK_ERR_SHAPE, "the batch axes do not broadcast");
    if (c->out->shape.rank + 2 > STK_MAX_RANK)
        return stk_infer_fail(c, STK_ERR_SHAPE, "rank above %d", STK_MAX_RANK);
    c->out->shape.dim[c->out->shape.rank++] = m;
    c->out->shape.dim[c->out->shape.rank++] = n;
    return STK_OK;
}

/* With A' = op(a), B' = op(b): dA' = dy B'^T, dB' = A'^T dy; transposed operands swap the factors. */
static void grad_matmul(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val a = c->node.in[0], b = c->node.in[1], dy = c->dout[0];
    bool ta = c->node.ints[0], tb = c->node.ints[1];
    stk_shape sa = stk_type_of(g, a)->shape, sb = stk_type_of(g, b)->shape;
    stk_val da = ta ? stk_g_matmul_t(g, b, dy, tb, true) : stk_g_matmul_t(g, dy, b, false, !tb);
    stk_val db = tb ? stk_g_matmul_t(g, dy, a, true, ta) : stk_g_matmul_t(g, a, dy, !ta, false);
    c->din[0] = stk_g_sum_to(g, da, &sa);
    c->din[1] = stk_g_sum_to(g, db, &sb);
}

/* Batches of one operand: all equal (stride 0), dense, or something between, which is spread out first by the builder. */
static stk_status lower_matmul(stk_lower *l)
{
    const stk_type *a = stk_type_of(l->g, l->node->in[0]), *b = stk_type_of(l->g, l->node->in[1]);
    const stk_type *y = stk_type_of(l->g, l->node->out);
    stk_gemm *p = stk_lower_params(l, STK_K_GEMM, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    const int64_t *da = a->shape.dim + a->shape.rank - 2, *db = b->shape.dim + b->shape.rank - 2;
    p->ta = (int32_t)l->node->ints[0];
    p->tb = (int32_t)l->node->ints[1];
    p->dtype = a->dtype;
    p->zeros = stk_lower_zeros(l);
    p->m = da[p->ta];
    p->k = da[!p->ta];
    p->n = db[!p->tb];
    p->lda = da[1];
    p->ldb = db[1];
    p->ldc = p->n;
    p->batch = 1;
    for (int32_t i = 0; i + 2 < y->shape.rank; i++) p->batch *= y->shape.dim[i];
    int64_t size_a = da[0] * da[1], size_b = db[0] * db[1];
    p->batch_a = stk_shape_count(&a->shape) == size_a ? 0 : size_a;
    p->batch_b = stk_shape_count(&b->shape) == size_b ? 0 : size_b;
    p->batch_c = p->m * p->n;
    /* A shared right side is one tall product: [batch, m, k] x [k, n]. */
    if (p->batch > 1 && p->batch_b == 0 && !p->ta && p->batch_a) {
        p->m *= p->batch;
        p->batch = 1;
        p->batch_a = 0;
        p->batch_c = p->m * p->n;
    }
    return STK_OK;
}

static double cost_matmul(const stk_graph *g, const stk_node *n)
{
    const stk_type *a = stk_type_of(g, n->in[0]), *y = stk_type_of(g, n->out);
    int64_t k = a->shape.dim[a->shape.rank - (n->ints[0] ? 2 : 1)];
    return 2.0 * (double)stk_shape_count(&y->shape) * (double)k;
}

const stk_opdef stk_opdef_matmul = {
    .infer = infer_matmul, .grad = grad_matmul, .lower = lower_matmul, .cost = cost_matmul};

/* ---- matmul_parts: y[i] = a[:, i-th stretch] b[i-th stretch, :]; their sum is the product ------------------- */

static stk_status infer_matmul_parts(stk_infer *c)
{
    const stk_type *a = c->in[0], *b = c->in[1];
    int64_t parts = c->node->nints == 1 ? c->node->ints[0] : 0;
    if (a->dtype != b->dtype || !stk_dtype_is_float(a->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "operands need one float dtype; cast first");
    if (a->shape.rank != 2 || b->shape.rank != 2 || a->shape.dim[1] != b->shape.dim[0])
        return stk_infer_fail(c, STK_ERR_SHAPE, "operands must be [m,k] and [k,n]");
    if (parts < 1 || a->shape.dim[1] % parts)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "%lld parts; their number must divide k",
                              (long long)parts);
    *c->out = (stk_type){.dtype = a->dtype,
                         .shape = {.rank = 3, .dim = {parts, a->shape.dim[0], b->shape.dim[1]}}};
    return STK_OK;
}

static void grad_matmul_parts(stk_grad *c)
{
    enum { MOST = 64 };
    stk_graph *g = c->g;
    stk_val da[MOST], db[MOST];
    int64_t parts = c->node.ints[0], k = stk_g_dim(g, c->node.in[0], 1) / parts;
    if (parts > MOST) {
        stk_g_fail(g, STK_ERR_RANGE, "matmul_parts: no gradient of more than %d parts", MOST);
        return;
    }
    for (int32_t i = 0; i < parts; i++) {
        stk_val dy = stk_g_slice_axis(g, c->dout[0], 0, i, 1);
        stk_shape s = stk_type_of(g, dy)->shape;
        dy = stk_g_reshape(g, dy, 2, s.dim + 1);
        da[i] = stk_g_matmul_t(g, dy, stk_g_slice_axis(g, c->node.in[1], 0, i * k, k), false, true);
        db[i] = stk_g_matmul_t(g, stk_g_slice_axis(g, c->node.in[0], 1, i * k, k), dy, true, false);
    }
    c->din[0] = stk_g_concat(g, (int32_t)parts, da, 1);
    c->din[1] = stk_g_concat(g, (int32_t)parts, db, 0);
}

static stk_status lower_matmul_parts(stk_lower *l)
{
    const stk_shape *a = &stk_type_of(l->g, l->node->in[0])->shape;
    const stk_type *b = stk_type_of(l->g, l->node->in[1]);
    stk_gemm *p = stk_lower_params(l, STK_K_GEMM, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int64_t parts = l->node->ints[0], k = a->dim[1] / parts, n = b->shape.dim[1];
    *p = (stk_gemm){.m = a->dim[0],
                    .n = n,
                    .k = k,
                    .batch = parts,
                    .lda = a->dim[1],
                    .ldb = n,
                    .ldc = n,
                    .batch_a = k,
                    .batch_b = k * n,
                    .batch_c = a->dim[0] * n,
                    .dtype = b->dtype};
    return STK_OK;
}

static double cost_matmul_parts(const stk_graph *g, const stk_node *n)
{
    return 2.0 * (double)stk_shape_count(&stk_type_of(g, n->in[1])->shape) *
           (double)stk_g_dim(g, n->in[0], 0);
}

const stk_opdef stk_opdef_matmul_parts = {.infer = infer_matmul_parts,
                                          .grad = grad_matmul_parts,
                                          .lower = lower_matmul_parts,
                                          .cost = cost_matmul_parts};

stk_val stk_g_matmul_parts(stk_graph *g, stk_val a, stk_val b, int64_t parts)
{
    return stk_g_apply(g, STK_OP_MATMUL_PARTS, 2, (stk_val[]){a, b},
                       &(stk_attrs){.ints = &parts, .nints = 1});
}

/* ---- builders ------------------------------------------------------------------------------------------- */

/* Spreads the batch axes of x to `lead` unless it has one batch or all of them. */
static stk_val spread(stk_graph *g, stk_val x, const stk_shape *lead)
{
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t own = 1, all = stk_shape_count(lead);
    for (int32_t i = 0; i + 2 < s.rank; i++) own *= s.dim[i];
    if (own == 1 || own == all) return x;
    stk_shape want = *lead;
    want.dim[want.rank++] = s.dim[s.rank - 2];
    want.dim[want.rank++] = s.dim[s.rank - 1];
    return stk_g_broadcast(g, x, want.rank, want.dim);
}

stk_val stk_g_matmul_t(stk_graph *g, stk_val a, stk_val b, bool ta, bool tb)
{
    if (stk_graph_ok(g) && stk_val_ok(g, a) && stk_val_ok(g, b)) {
        stk_shape la = stk_type_of(g, a)->shape, lb = stk_type_of(g, b)->shape, lead;
        if (la.rank > 2 && lb.rank > 2) {
            la.rank -= 2;
            lb.rank -= 2;
            if (stk_shape_broadcast(&la, &lb, &lead)) {
                a = spread(g, a, &lead);
                b = spread(g, b, &lead);
            }
        }
    }
    return stk_g_apply(g, STK_OP_MATMUL, 2, (stk_val[]){a, b},
                       &(stk_attrs){.ints = (int64_t[]){ta, tb}, .nints = 2});
}

stk_val stk_g_matmul(stk_graph *g, stk_val a, stk_val b)
{
    return stk_g_matmul_t(g, a, b, false, false);
}
