/* Recurrent cells as a scan over elementary operations: one body per cell, any activation. */
#include "layers/kinds/recurrent.h"

/* What one step sees, inside of the body's graph. */
typedef struct step {
    stk_graph *g;
    const stk_walk_wish *wish;
    stk_val h, c, x, u, b, u2;
} step;

static stk_val activate(const step *s, const stk_activation *a, stk_val x)
{
    return a->def->build(s->g, x);
}

static void split(const step *s, stk_val x, int32_t n, stk_val *parts)
{
    stk_g_split(s->g, x, -1, n, parts);
}

static stk_val simple_step(const step *s)
{
    stk_val z = stk_g_add(s->g, s->x, stk_g_matmul(s->g, s->h, s->u));
    return activate(s, &s->wish->options->activation, z);
}

static stk_val lstm_step(const step *s, stk_val *c)
{
    const stk_rnn_config *o = s->wish->options;
    stk_graph *g = s->g;
    stk_val z[4];
    split(s, stk_g_add(g, s->x, stk_g_matmul(g, s->h, s->u)), 4, z);
    stk_val in = activate(s, &o->recurrent_activation, z[0]);
    stk_val forget = activate(s, &o->recurrent_activation, z[1]);
    stk_val out = activate(s, &o->recurrent_activation, z[3]);
    stk_val candidate = activate(s, &o->activation, z[2]);
    *c = stk_g_add(g, stk_g_mul(g, forget, s->c), stk_g_mul(g, in, candidate));
    return stk_g_mul(g, out, activate(s, &o->activation, *c));
}

/* reset_after: candidate from x + r (h u + b); else from x + (r h) u, with u in two parts. */
static stk_val gru_step(const step *s)
{
    const stk_rnn_config *o = s->wish->options;
    stk_graph *g = s->g;
    stk_val x[3], inner[3] = {0}, product = stk_g_matmul(g, s->h, s->u);
    split(s, s->x, 3, x);
    if (s->b) product = stk_g_add(g, product, s->b);
    split(s, product, o->reset_after ? 3 : 2, inner);
    stk_val z = activate(s, &o->recurrent_activation, stk_g_add(g, x[0], inner[0]));
    stk_val r = activate(s, &o->recurrent_activation, stk_g_add(g, x[1], inner[1]));
    stk_val state =
        o->reset_after ? stk_g_mul(g, r, inner[2]) : stk_g_matmul(g, stk_g_mul(g, r, s->h), s->u2);
    stk_val candidate = activate(s, &o->activation, stk_g_add(g, x[2], state));
    stk_val one = stk_g_scalar(g, stk_g_dtype(g, z), 1);
    return stk_g_add(g, stk_g_mul(g, z, s->h), stk_g_mul(g, stk_g_sub(g, one, z), candidate));
}

/* A body's input that looks like a value of the outer graph, without its first axis where it is scanned. */
static stk_val entry(stk_graph *body, const stk_graph *g, stk_val v, bool slice, const char *name)
{
    if (!v || !stk_val_ok(g, v)) return 0;
    const stk_type *t = stk_type_of(g, v);
    return stk_g_input(body, name, t->dtype, t->shape.rank - slice, t->shape.dim + slice);
}

/* Inputs in the order of the scan: carries, slices, constants. Outputs: carries, then h once more as the sequence. */
static void build_body(stk_graph *body, const stk_graph *g, const stk_walk_wish *w, stk_val u2)
{
    bool lstm = w->kind == STK_CELL_LSTM;
    step s = {.g = body, .wish = w};
    stk_val h = entry(body, g, w->h0, false, "h"), c = lstm ? entry(body, g, w->c0, false, "c") : 0;
    s.x = entry(body, g, w->x, true, "x");
    stk_val mask = entry(body, g, w->mask, true, "mask");
    s.u = entry(body, g, w->u, false, "u");
    s.b = entry(body, g, w->b, false, "b");
    s.u2 = entry(body, g, u2, false, "u2");
    stk_val factor = entry(body, g, w->h_factor, false, "factor"), next_c = 0;
    s.h = factor ? stk_g_mul(body, h, factor) : h;
    s.c = c;
    stk_val next = lstm                      ? lstm_step(&s, &next_c)
                   : w->kind == STK_CELL_GRU ? gru_step(&s)
                                             : simple_step(&s);
    if (mask) next = stk_g_select(body, mask, next, h);
    if (mask && lstm) next_c = stk_g_select(body, mask, next_c, c);
    stk_g_output(body, "h", next);
    if (lstm) stk_g_output(body, "c", next_c);
    stk_g_output(body, "sequence", next);
}

stk_walk_result stk_c_walk(stk_layer_call *c, const stk_walk_wish *wish)
{
    stk_graph *g = c->g, *body = NULL;
    stk_error err;
    stk_walk_result r = {0};
    stk_walk_wish w = *wish;
    stk_val u2 = 0, carry[2] = {w.h0, w.c0}, xs[2] = {w.x, w.mask}, consts[4];
    int32_t ncarry = w.kind == STK_CELL_LSTM ? 2 : 1, nconst = 0;
    if (!w.options->activation.def ||
        (w.kind != STK_CELL_SIMPLE && !w.options->recurrent_activation.def)) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED,
                   "a layer as activation of a recurrent layer; give the name of an activation");
        return r;
    }
    if (!stk_graph_ok(g)) return r;
    if (w.kind == STK_CELL_GRU && !w.options->reset_after) {
        int64_t units = w.options->units;
        u2 = stk_g_slice_axis(g, w.u, 1, 2 * units, units);
        w.u = stk_g_slice_axis(g, w.u, 1, 0, 2 * units);
    }
    if (stk_graph_new(&body, &err) != STK_OK) {
        stk_c_fail(c, err.code, "%s", err.message);
        return r;
    }
    build_body(body, g, &w, u2);
    const stk_val given[] = {w.u, w.b, u2, w.h_factor};
    for (int32_t i = 0; i < 4; i++)
        if (given[i]) consts[nconst++] = given[i];
    r.h = stk_g_scan(g, body, ncarry, carry, w.mask ? 2 : 1, xs, nconst, consts,
                     &(stk_scan_options){.reverse = w.reverse});
    stk_graph_release(body);
    if (!r.h) return r;
    if (ncarry == 2) r.c = r.h + 1;
    r.sequence = r.h + ncarry;
    return r;
}
