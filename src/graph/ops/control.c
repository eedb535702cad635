/* Control flow: cond, while, scan. Bodies are graphs of their own, owned by the node; their inputs are, in order, what
 * the node passes in, their outputs what it takes out. Gradients are control flow again, so they can be differentiated
 * again.
 *
 *     cond   (pred, x...)              two bodies  x... -> y...
 *     while  (carry..., const...)      two bodies  carry, const -> bool;  carry, const -> carry
 *     scan   (carry..., xs..., const...)  one body  carry, x_t, const -> carry, y_t
 *
 * Attributes of scan: ncarry, nxs, trips, reverse, saved. With `saved` the outputs after carry and ys are the carries
 * as they entered each trip, stacked: what the gradient needs to redo a trip. */
#include "graph/ir/op.h"
#include "graph/ir/rewrite.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 250 };

/* ---- bodies ------------------------------------------------------------------------------------------- */

static int32_t body_inputs(const stk_graph *b, stk_val *in)
{
    int32_t n = 0;
    for (int64_t k = 0; k < b->nnodes; k++)
        if (b->nodes[k].op == STK_OP_INPUT) {
            if (n < MOST && in) in[n] = b->nodes[k].out;
            n++;
        }
    return n;
}

/* Type of the body's i-th input or output. */
static const stk_type *input_type(const stk_graph *b, int32_t i)
{
    stk_val in[MOST];
    return i < body_inputs(b, in) && i < MOST ? stk_type_of(b, in[i]) : NULL;
}
static const stk_type *output_type(const stk_graph *b, int64_t i)
{
    return i < b->noutputs ? stk_type_of(b, b->outputs[i].val) : NULL;
}

static stk_status check_body(const stk_infer *c, const stk_graph *b, int32_t nin, const char *which)
{
    for (int64_t k = 0; k < b->nnodes; k++)
        if (b->nodes[k].op == STK_OP_VARIABLE || b->nodes[k].op == STK_OP_ASSIGN ||
            b->nodes[k].op == STK_OP_STEP)
            return stk_infer_fail(c, STK_ERR_UNSUPPORTED,
                                  "the %s holds a %s; pass its value in as an input", which,
                                  stk_op_name((stk_op)b->nodes[k].op));
    if (body_inputs(b, NULL) != nin)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "the %s has %d inputs, not %d", which,
                              body_inputs(b, NULL), nin);
    return STK_OK;
}

static stk_status check_type(const stk_infer *c, const stk_type *have, const stk_type *want,
                             const char *what, int32_t i)
{
    if (have && want && stk_type_equal(have, want)) return STK_OK;
    return stk_infer_fail(c, STK_ERR_SHAPE, "%s %d is %s where %s is needed", what, i,
                          have ? STK_TYPE_TEXT(have) : "missing",
                          want ? STK_TYPE_TEXT(want) : "nothing");
}

/* Copies the nodes of body b into g with its inputs replaced by `in`; results in out[]. */
static bool inline_body(stk_graph *g, const stk_graph *b, const stk_val *in, stk_val *out)
{
    stk_val *map = stk_calloc((size_t)b->nvalues, sizeof *map), few[MOST];
    int32_t used = 0;
    for (int64_t k = 0; map && k < b->nnodes && stk_graph_ok(g); k++) {
        const stk_node *n = &b->nodes[k];
        if (n->op == STK_OP_INPUT) {
            map[n->out] = in[used++];
            continue;
        }
        if (n->nin > MOST)
            stk_g_fail(g, STK_ERR_RANGE, "a body's %s has %d inputs", stk_op_name((stk_op)n->op),
                       n->nin);
        for (int32_t i = 0; i < n->nin && i < MOST; i++) few[i] = map[n->in[i]];
        stk_val v = stk_rewrite_copy(g, n, few);
        for (int32_t o = 0; v && o < n->nout; o++) map[n->out + o] = v + o;
    }
    for (int64_t i = 0; map && i < b->noutputs && i < MOST; i++) out[i] = map[b->outputs[i].val];
    if (!map) stk_g_fail(g, STK_ERR_MEMORY, "out of memory in a body");
    stk_free(map);
    return stk_graph_ok(g);
}

static stk_val body_input(stk_graph *b, const stk_type *t, int32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "i%d", i);
    return stk_g_input(b, name, t->dtype, t->shape.rank, t->shape.dim);
}

static void body_output(stk_graph *b, stk_val v, int32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "o%d", i);
    stk_g_output(b, name, v);
}

/* Adds the control node; the bodies are copied, so the caller keeps its own. */
static stk_val add_control(stk_graph *g, stk_op op, int32_t nin, const stk_val *in, int32_t nout,
                           const int64_t *ints, int32_t nints, int32_t nsubs,
                           stk_graph *const *subs)
{
    for (int32_t i = 0; i < nsubs; i++) {
        stk_error err;
        stk_status status = stk_graph_status(subs[i], &err);
        if (status != STK_OK)
            return stk_g_fail(g, status, "in a body of %s: %.900s", stk_op_name(op), err.message);
    }
    stk_node like = {.op = (int16_t)op,
                     .nin = nin,
                     .nout = (int16_t)nout,
                     .ints = (int64_t *)(uintptr_t)ints,
                     .nints = nints,
                     .nsubs = nsubs,
                     .subs = (stk_graph **)(uintptr_t)subs};
    return stk_rewrite_copy(g, &like, in);
}

static bool is_float(const stk_graph *g, stk_val v)
{
    return stk_dtype_is_float(stk_g_dtype(g, v));
}

/* sum of y * dy over the pairs that have a gradient: its gradient is the pulled-back one. */
static stk_val pair_up(stk_graph *b, stk_val loss, stk_val y, stk_val dy)
{
    stk_val term = stk_g_sum_all(b, stk_g_mul(b, y, dy));
    if (loss && stk_g_dtype(b, loss) != stk_g_dtype(b, term))
        term = stk_g_cast(b, term, stk_g_dtype(b, loss));
    return loss ? stk_g_add(b, loss, term) : term;
}

/* ---- cond ------------------------------------------------------------------------------------------------- */

static stk_status infer_cond(stk_infer *c)
{
    const stk_node *n = c->node;
    if (n->nsubs != 2 || n->nin > MOST)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "needs two bodies and at most %d inputs", MOST);
    if (c->in[0]->dtype != STK_BOOL || stk_shape_count(&c->in[0]->shape) != 1)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "the condition must be one bool; reduce it with any or all");
    for (int s = 0; s < 2; s++) {
        STK_TRY(check_body(c, n->subs[s], n->nin - 1, s ? "else body" : "then body"));
        for (int32_t i = 1; i < n->nin; i++)
            STK_TRY(check_type(c, c->in[i], input_type(n->subs[s], i - 1), "input", i));
    }
    for (int32_t o = 0; o < n->nout; o++) {
        STK_TRY(check_type(c, output_type(n->subs[1], o), output_type(n->subs[0], o),
                           "output of the else body", o));
        c->out[o] = *output_type(n->subs[0], o);
    }
    return STK_OK;
}

/* Body: x..., dy... -> dx... (for the float ones). */
static stk_graph *cond_grad_body(stk_grad *c, const stk_graph *body)
{
    stk_graph *b = NULL;
    stk_val x[MOST], y[MOST] = {0}, dx[MOST] = {0}, wrt[MOST], loss = 0;
    int32_t n = 0, k = 0, nx = c->node.nin - 1;
    if (stk_graph_new(&b, NULL) != STK_OK) return NULL;
    for (int32_t i = 0; i < nx; i++)
        x[i] = body_input(b, stk_type_of(c->g, c->node.in[i + 1]), n++);
    if (!inline_body(b, body, x, y)) return b;
    for (int32_t o = 0; o < c->node.nout; o++)
        if (c->dout[o])
            loss = pair_up(b, loss, y[o], body_input(b, stk_type_of(c->g, c->node.out + o), n++));
    for (int32_t i = 0; i < nx; i++)
        if (is_float(b, x[i])) wrt[k++] = x[i];
    stk_g_gradients(b, loss, k, wrt, dx);
    for (int32_t i = 0; i < k; i++) body_output(b, dx[i] ? dx[i] : stk_g_zeros_like(b, wrt[i]), i);
    return b;
}

static void grad_cond(stk_grad *c)
{
    stk_val in[MOST];
    int32_t n = 0, outs = 0, at[MOST];
    stk_graph *subs[2] = {cond_grad_body(c, c->node.subs[0]), cond_grad_body(c, c->node.subs[1])};
    for (int32_t i = 0; i < c->node.nin; i++) in[n++] = c->node.in[i];
    for (int32_t o = 0; o < c->node.nout && n < MOST; o++)
        if (c->dout[o]) in[n++] = c->dout[o];
    for (int32_t i = 1; i < c->node.nin; i++)
        if (is_float(c->g, c->node.in[i])) at[outs++] = i;
    if (subs[0] && subs[1] && outs) {
        stk_val d = add_control(c->g, STK_OP_COND, n, in, outs, NULL, 0, 2, subs);
        for (int32_t k = 0; d && k < outs; k++) c->din[at[k]] = d + k;
    }
    if (!subs[0] || !subs[1])
        stk_g_fail(c->g, STK_ERR_MEMORY, "cond: out of memory for the gradient");
    stk_graph_release(subs[0]);
    stk_graph_release(subs[1]);
}
const stk_opdef stk_opdef_cond = {.flags = STK_OPF_CONTROL, .infer = infer_cond, .grad = grad_cond};

stk_val stk_g_cond(stk_graph *g, stk_val pred, const stk_graph *then_body,
                   const stk_graph *else_body, int32_t n, const stk_val *x)
{
    stk_val in[MOST] = {pred};
    if (!stk_graph_ok(g)) return 0;
    if (!then_body || !else_body || n < 0 || n >= MOST || (n && !x))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "cond: needs two bodies and 0 to %d inputs",
                          MOST - 1);
    for (int32_t i = 0; i < n; i++) in[i + 1] = x[i];
    stk_graph *subs[2] = {(stk_graph *)(uintptr_t)then_body, (stk_graph *)(uintptr_t)else_body};
    return add_control(g, STK_OP_COND, n + 1, in, (int32_t)then_body->noutputs, NULL, 0, 2, subs);
}

/* ---- while: attribute ncarry ---------------------------------------------------------------------------------- */

static stk_status infer_while(stk_infer *c)
{
    const stk_node *n = c->node;
    if (n->nsubs != 2 || n->nints != 1 || n->ints[0] < 1 || n->ints[0] > n->nin || n->nin > MOST ||
        n->nout != n->ints[0])
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs two bodies and at least one carried value");
    for (int s = 0; s < 2; s++) {
        STK_TRY(check_body(c, n->subs[s], n->nin, s ? "body" : "condition"));
        for (int32_t i = 0; i < n->nin; i++)
            STK_TRY(check_type(c, c->in[i], input_type(n->subs[s], i), "input", i));
    }
    const stk_type *pred = output_type(n->subs[0], 0);
    if (!pred || pred->dtype != STK_BOOL || stk_shape_count(&pred->shape) != 1)
        return stk_infer_fail(c, STK_ERR_DTYPE, "the condition must give one bool");
    for (int32_t i = 0; i < n->nout; i++) {
        STK_TRY(check_type(c, output_type(n->subs[1], i), c->in[i], "carried value", i));
        c->out[i] = *c->in[i];
    }
    return STK_OK;
}

static void grad_while(stk_grad *c)
{
    stk_g_fail(c->g, STK_ERR_UNSUPPORTED,
               "gradients: this while loop has no limit of trips; give it one (max_trips) or use "
               "stk_g_scan, so that the backward loop knows what to keep");
}
const stk_opdef stk_opdef_while = {
    .flags = STK_OPF_CONTROL, .infer = infer_while, .grad = grad_while};

/* carry -> carry unchanged, the else-branch of a limited loop */
static stk_graph *identity_body(const stk_graph *g, int32_t n, const stk_val *x, int32_t ncarry)
{
    stk_graph *b = NULL;
    if (stk_graph_new(&b, NULL) != STK_OK) return NULL;
    for (int32_t i = 0; i < n; i++) {
        stk_val v = body_input(b, stk_type_of(g, x[i]), i);
        if (i < ncarry) body_output(b, v, i);
    }
    return b;
}

/* With a limit of trips the loop is a scan whose trips do nothing once the condition fails: that has a gradient. */
static stk_val limited_while(stk_graph *g, const stk_graph *cond, const stk_graph *body,
                             int32_t ncarry, int32_t n, const stk_val *x, int64_t trips)
{
    stk_graph *step = NULL, *same = identity_body(g, n, x, ncarry);
    stk_val in[MOST], pred[MOST] = {0}, out = 0;
    if (same && stk_graph_new(&step, NULL) == STK_OK) {
        for (int32_t i = 0; i < n; i++) in[i] = body_input(step, stk_type_of(g, x[i]), i);
        inline_body(step, cond, in, pred);
        stk_val y = stk_g_cond(step, pred[0], body, same, n, in);
        for (int32_t i = 0; i < ncarry; i++) body_output(step, y ? y + i : 0, i);
        out = stk_g_scan(g, step, ncarry, x, 0, NULL, n - ncarry, x + ncarry,
                         &(stk_scan_options){.trips = trips});
    } else {
        stk_g_fail(g, STK_ERR_MEMORY, "while: out of memory");
    }
    stk_graph_release(step);
    stk_graph_release(same);
    return out;
}

stk_val stk_g_while(stk_graph *g, const stk_graph *cond, const stk_graph *body, int32_t ncarry,
                    int32_t n, const stk_val *x, int64_t max_trips)
{
    if (!stk_graph_ok(g)) return 0;
    if (!cond || !body || ncarry < 1 || ncarry > n || n > MOST || !x || max_trips < 0)
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "while: needs a condition, a body and 1 to %d values", MOST);
    if (max_trips > 0) return limited_while(g, cond, body, ncarry, n, x, max_trips);
    int64_t carry = ncarry;
    stk_graph *subs[2] = {(stk_graph *)(uintptr_t)cond, (stk_graph *)(uintptr_t)body};
    return add_control(g, STK_OP_WHILE, n, x, ncarry, &carry, 1, 2, subs);
}

/* ---- scan: attributes ncarry nxs trips reverse saved ------------------------------------------------------------- */

static stk_type slice_of(const stk_type *t)
{
    stk_type s = {t->dtype, {.rank = t->shape.rank - 1}};
    memcpy(s.shape.dim, t->shape.dim + 1, (size_t)s.shape.rank * sizeof(int64_t));
    return s;
}

static stk_type stack_of(const stk_type *t, int64_t n)
{
    stk_type s = {t->dtype, {.rank = t->shape.rank + 1}};
    s.shape.dim[0] = n;
    memcpy(s.shape.dim + 1, t->shape.dim, (size_t)t->shape.rank * sizeof(int64_t));
    return s;
}

static stk_status infer_scan(stk_infer *c)
{
    const stk_node *n = c->node;
    if (n->nsubs != 1 || n->nints != 5 || n->nin > MOST)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "needs one body and five attributes");
    int64_t ncarry = n->ints[0], nxs = n->ints[1], trips = n->ints[2], saved = n->ints[4];
    const stk_graph *b = n->subs[0];
    int64_t ys = b->noutputs - ncarry;
    if (ncarry < 0 || nxs < 0 || ncarry + nxs > n->nin || trips < 0 || ys < 0 ||
        n->nout != b->noutputs + (saved ? ncarry : 0))
        return stk_infer_fail(
            c, STK_ERR_ARGUMENT,
            "%lld carried, %lld scanned of %d inputs; the body gives %lld outputs",
            (long long)ncarry, (long long)nxs, n->nin, (long long)b->noutputs);
    STK_TRY(check_body(c, b, n->nin, "body"));
    for (int32_t i = 0; i < n->nin; i++) {
        bool sliced = i >= ncarry && i < ncarry + nxs;
        if (sliced && (c->in[i]->shape.rank < 1 || c->in[i]->shape.dim[0] != trips))
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "scanned input %d must have %lld trips on its first axis", i,
                                  (long long)trips);
        stk_type t = sliced ? slice_of(c->in[i]) : *c->in[i];
        STK_TRY(check_type(c, input_type(b, i), &t, "input of the body", i));
    }
    for (int32_t o = 0; o < n->nout; o++) {
        if (o < ncarry) {
            STK_TRY(check_type(c, output_type(b, o), c->in[o], "carried value", o));
            c->out[o] = *c->in[o];
            continue;
        }
        const stk_type *t = o < b->noutputs ? output_type(b, o) : c->in[o - b->noutputs];
        if (t->shape.rank == STK_MAX_RANK)
            return stk_infer_fail(c, STK_ERR_SHAPE, "output %d has no axis left for the trips", o);
        c->out[o] = stack_of(t, trips);
    }
    return STK_OK;
}

static stk_val scan_node(stk_graph *g, const stk_graph *body, int32_t nin, const stk_val *in,
                         int64_t ncarry, int64_t nxs, int64_t trips, bool reverse, bool saved)
{
    int64_t ints[5] = {ncarry, nxs, trips, reverse, saved};
    stk_graph *sub = (stk_graph *)(uintptr_t)body;
    int32_t nout = (int32_t)(body->noutputs + (saved ? ncarry : 0));
    return add_control(g, STK_OP_SCAN, nin, in, nout, ints, 5, 1, &sub);
}

/* What flows through the backward loop. Lists hold positions among the forward inputs and outputs. */
typedef struct scan_grad {
    int32_t carry[MOST], ncarry, xs[MOST], nxs, consts[MOST],
        nconsts;                 /* the float ones: get gradients */
    int32_t ys[MOST], nys;       /* outputs with a gradient coming in */
    int32_t saved[MOST], nsaved; /* among carry[]: their saved stack has a gradient coming in */
} scan_grad;

static void sort_inputs(const stk_grad *c, scan_grad *s)
{
    int64_t ncarry = c->node.ints[0], nxs = c->node.ints[1];
    for (int32_t i = 0; i < c->node.nin; i++) {
        if (!is_float(c->g, c->node.in[i])) continue;
        if (i < ncarry)
            s->carry[s->ncarry++] = i;
        else if (i < ncarry + nxs)
            s->xs[s->nxs++] = i;
        else
            s->consts[s->nconsts++] = i;
    }
    for (int32_t o = (int32_t)ncarry; o < c->node.subs[0]->noutputs; o++)
        if (c->dout[o]) s->ys[s->nys++] = o;
    for (int32_t i = 0; c->node.ints[4] && i < s->ncarry; i++)
        if (c->dout[c->node.subs[0]->noutputs + s->carry[i]]) s->saved[s->nsaved++] = i;
}

/* Body of the backward loop: dcarry, dconst | x_t, carry_t, dy_t, dsaved_t | const -> dcarry, dconst | dx_t. */
static stk_graph *scan_grad_body(stk_grad *c, const scan_grad *s)
{
    const stk_graph *fwd = c->node.subs[0];
    stk_graph *b = NULL;
    stk_val in[MOST] = {0}, y[MOST] = {0}, dcarry[MOST], dconst[MOST], dy[MOST], dsaved[MOST],
            wrt[3 * MOST], d[3 * MOST] = {0}, loss = 0;
    int32_t n = 0, k = 0, out = 0, ncarry = (int32_t)c->node.ints[0],
            nxs = (int32_t)c->node.ints[1];
    if (stk_graph_new(&b, NULL) != STK_OK) return NULL;
    for (int32_t i = 0; i < s->ncarry; i++)
        dcarry[i] = body_input(b, input_type(fwd, s->carry[i]), n++);
    for (int32_t i = 0; i < s->nconsts; i++)
        dconst[i] = body_input(b, input_type(fwd, s->consts[i]), n++);
    for (int32_t i = 0; i < nxs; i++)
        in[ncarry + i] = body_input(b, input_type(fwd, ncarry + i), n++);
    for (int32_t i = 0; i < ncarry; i++) in[i] = body_input(b, input_type(fwd, i), n++);
    for (int32_t i = 0; i < s->nys; i++) dy[i] = body_input(b, output_type(fwd, s->ys[i]), n++);
    for (int32_t i = 0; i < s->nsaved; i++)
        dsaved[i] = body_input(b, input_type(fwd, s->carry[s->saved[i]]), n++);
    for (int32_t i = ncarry + nxs; i < c->node.nin; i++)
        in[i] = body_input(b, input_type(fwd, i), n++);
    if (!inline_body(b, fwd, in, y)) return b;
    for (int32_t i = 0; i < s->ncarry; i++) loss = pair_up(b, loss, y[s->carry[i]], dcarry[i]);
    for (int32_t i = 0; i < s->nys; i++) loss = pair_up(b, loss, y[s->ys[i]], dy[i]);
    for (int32_t i = 0; i < s->ncarry; i++) wrt[k++] = in[s->carry[i]];
    for (int32_t i = 0; i < s->nconsts; i++) wrt[k++] = in[s->consts[i]];
    for (int32_t i = 0; i < s->nxs; i++) wrt[k++] = in[s->xs[i]];
    stk_g_gradients(b, loss, k, wrt, d);
    for (int32_t i = 0; i < k; i++) {
        stk_val v = d[i] ? d[i] : stk_g_zeros_like(b, wrt[i]);
        if (i >= s->ncarry && i < s->ncarry + s->nconsts)
            v = stk_g_add(b, v, dconst[i - s->ncarry]);
        for (int32_t k2 = 0; k2 < s->nsaved; k2++)
            if (s->saved[k2] == i) v = stk_g_add(b, v, dsaved[k2]);
        body_output(b, v, out++);
    }
    return b;
}

static void grad_scan(stk_grad *c)
{
    stk_graph *g = c->g;
    const stk_node *node = &c->node;
    int64_t ncarry = node->ints[0], nxs = node->ints[1], fwd_outputs = node->subs[0]->noutputs;
    scan_grad s = {0};
    sort_inputs(c, &s);
    stk_val in[3 * MOST], forward = node->out;
    if (!node->ints[4])
        forward = scan_node(g, node->subs[0], node->nin, node->in, ncarry, nxs, node->ints[2],
                            node->ints[3], true);
    stk_graph *body = scan_grad_body(c, &s);
    int32_t n = 0;
    for (int32_t i = 0; i < s.ncarry; i++)
        in[n++] =
            c->dout[s.carry[i]] ? c->dout[s.carry[i]] : stk_g_zeros_like(g, node->in[s.carry[i]]);
    for (int32_t i = 0; i < s.nconsts; i++) in[n++] = stk_g_zeros_like(g, node->in[s.consts[i]]);
    for (int32_t i = 0; i < nxs; i++) in[n++] = node->in[ncarry + i];
    for (int32_t i = 0; i < ncarry; i++) in[n++] = forward ? forward + (stk_val)fwd_outputs + i : 0;
    for (int32_t i = 0; i < s.nys; i++) in[n++] = c->dout[s.ys[i]];
    for (int32_t i = 0; i < s.nsaved; i++) in[n++] = c->dout[fwd_outputs + s.carry[s.saved[i]]];
    for (int32_t i = (int32_t)(ncarry + nxs); i < node->nin; i++) in[n++] = node->in[i];
    if (body && forward && n <= MOST && stk_graph_ok(g)) {
        stk_val d = scan_node(g, body, n, in, s.ncarry + s.nconsts, nxs + ncarry + s.nys + s.nsaved,
                              node->ints[2], !node->ints[3], true);
        for (int32_t i = 0; d && i < s.ncarry; i++) c->din[s.carry[i]] = d++;
        for (int32_t i = 0; d && i < s.nconsts; i++) c->din[s.consts[i]] = d++;
        for (int32_t i = 0; d && i < s.nxs; i++) c->din[s.xs[i]] = d++;
    } else {
        stk_g_fail(g, STK_ERR_RANGE, "scan: the gradient needs %d values, at most %d fit", n, MOST);
    }
    stk_graph_release(body);
}
const stk_opdef stk_opdef_scan = {.flags = STK_OPF_CONTROL, .infer = infer_scan, .grad = grad_scan};

stk_val stk_g_scan(stk_graph *g, const stk_graph *body, int32_t ncarry, const stk_val *carry,
                   int32_t nxs, const stk_val *xs, int32_t nconst, const stk_val *consts,
                   const stk_scan_options *options)
{
    stk_scan_options o = options ? *options : (stk_scan_options){0};
    stk_val in[MOST];
    int32_t n = 0;
    if (!stk_graph_ok(g)) return 0;
    if (!body || ncarry < 0 || nxs < 0 || nconst < 0 || ncarry + nxs + nconst > MOST)
        return stk_g_fail(g, STK_ERR_ARGUMENT, "scan: needs a body and at most %d values", MOST);
    for (int32_t i = 0; i < ncarry; i++) in[n++] = carry[i];
    for (int32_t i = 0; i < nxs; i++) in[n++] = xs[i];
    for (int32_t i = 0; i < nconst; i++) in[n++] = consts[i];
    int64_t trips = nxs ? stk_g_dim(g, xs[0], 0) : o.trips;
    return scan_node(g, body, n, in, ncarry, nxs, trips, o.reverse, !o.no_gradient);
}

/* ---- island: what place.c puts on the CPU ------------------------------------------------------------------------- */

static stk_status infer_island(stk_infer *c)
{
    const stk_node *n = c->node;
    if (n->nsubs != 1 || n->nout != n->subs[0]->noutputs)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "is made by the compiler only");
    if (body_inputs(n->subs[0], NULL) != n->nin)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "the body has %d inputs, not %d",
                              body_inputs(n->subs[0], NULL), n->nin);
    for (int32_t o = 0; o < n->nout; o++) c->out[o] = *output_type(n->subs[0], o);
    return STK_OK;
}
const stk_opdef stk_opdef_island = {.flags = STK_OPF_CONTROL | STK_OPF_NO_GRAD,
                                    .infer = infer_island};
