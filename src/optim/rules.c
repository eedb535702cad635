/* One block per optimizer: how a weight changes. Written as plain elementwise graph; the compiler makes one launch of it
 * for all weights. Forms like m + (g - m) * c are those that it has a single tile function for. */
#include "optim/optimizer.h"

#define ADD(a, b)  stk_g_add(r->g, a, b)
#define SUB(a, b)  stk_g_sub(r->g, a, b)
#define MUL(a, b)  stk_g_mul(r->g, a, b)
#define DIV(a, b)  stk_g_div(r->g, a, b)
#define MAX(a, b)  stk_g_max(r->g, a, b)
#define POW(a, b)  stk_g_pow(r->g, a, b)
#define SQRT(a)    stk_g_sqrt(r->g, a)
#define SQUARE(a)  stk_g_square(r->g, a)
#define NUMBER(x)  stk_g_scalar(r->g, r->compute, x)
#define KEEP(s, x) stk_weight_update_keep(r, s, x)
#define SLOT(name) stk_weight_update_slot(r, name)

/* a + (b - a) * (1 - rate) */
static stk_val average(stk_weight_update *r, stk_optimizer_slot slot, stk_val x, double rate)
{
    return KEEP(slot, ADD(slot.value, MUL(SUB(x, slot.value), NUMBER(1 - rate))));
}
/* 1 - rate^t: what is missing in an average that began at 0 */
static stk_val correction(stk_weight_update *r, double rate)
{
    return SUB(NUMBER(1), POW(NUMBER(rate), r->t));
}

/* ---- SGD: w - lr g; momentum m = mu m - lr g ------------------------------------------------------------------ */
static stk_val sgd(stk_weight_update *r)
{
    stk_val step = MUL(r->gradient, r->rate);
    if (r->o->momentum == 0) return SUB(r->w, step);
    stk_val mu = NUMBER(r->o->momentum);
    stk_optimizer_slot slot = SLOT("momentum");
    stk_val m = KEEP(slot, SUB(MUL(slot.value, mu), step));
    return ADD(r->w, r->o->nesterov ? SUB(MUL(m, mu), step) : m);
}

/* ---- Adam, AdamW: w - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps) ------------------------------------------ */
static stk_val adam(stk_weight_update *r)
{
    stk_val m = average(r, SLOT("momentum"), r->gradient, r->o->beta_1);
    stk_val v = average(r, SLOT("velocity"), SQUARE(r->gradient), r->o->beta_2);
    if (r->o->amsgrad) {
        stk_optimizer_slot largest = SLOT("velocity_hat");
        v = KEEP(largest, MAX(largest.value, v));
    }
    stk_val alpha =
        DIV(MUL(r->rate, SQRT(correction(r, r->o->beta_2))), correction(r, r->o->beta_1));
    return SUB(r->w, MUL(alpha, DIV(m, ADD(SQRT(v), NUMBER(r->o->epsilon)))));
}

/* ---- Adamax: u = max(b2 u, |g|); w - lr / (1 - b1^t) m / (u + eps) ------------------------------------------------- */
static stk_val adamax(stk_weight_update *r)
{
    stk_val m = average(r, SLOT("momentum"), r->gradient, r->o->beta_1);
    stk_optimizer_slot norm = SLOT("norm");
    stk_val u =
        KEEP(norm, MAX(MUL(norm.value, NUMBER(r->o->beta_2)), stk_g_abs(r->g, r->gradient)));
    stk_val alpha = DIV(r->rate, correction(r, r->o->beta_1));
    return SUB(r->w, MUL(alpha, DIV(m, ADD(u, NUMBER(r->o->epsilon)))));
}

/* ---- Nadam: the momentum's rate grows, u(t) = b1 (1 - 0.96^t / 2); the product of all u is kept -------------------- */
static stk_val nadam_rate(stk_weight_update *r, stk_val t)
{
    stk_val half = MUL(NUMBER(0.5), POW(NUMBER(0.96), t));
    return MUL(NUMBER(r->o->beta_1), SUB(NUMBER(1), half));
}
static stk_val nadam_prepare(stk_weight_update *r)
{
    stk_optimizer_slot product = stk_weight_update_scalar(r, "u_product");
    return KEEP(product, MUL(product.value, nadam_rate(r, r->t)));
}
static stk_val nadam(stk_weight_update *r)
{
    stk_val one = NUMBER(1), u = nadam_rate(r, r->t), next = nadam_rate(r, ADD(r->t, one));
    stk_val product = stk_g_cast(r->g, r->shared, r->compute);
    stk_val m = average(r, SLOT("momentum"), r->gradient, r->o->beta_1);
    stk_val v = average(r, SLOT("velocity"), SQUARE(r->gradient), r->o->beta_2);
    stk_val m_share = DIV(next, SUB(one, MUL(product, next))),
            g_share = DIV(SUB(one, u), SUB(one, product));
    stk_val m_hat = ADD(MUL(m, m_share), MUL(r->gradient, g_share));
    stk_val v_hat = DIV(v, correction(r, r->o->beta_2));
    return SUB(r->w, MUL(r->rate, DIV(m_hat, ADD(SQRT(v_hat), NUMBER(r->o->epsilon)))));
}

/* ---- RMSprop: w - lr g / sqrt(v + eps); centered: v less the square of the mean; momentum on the steps ------------- */
static stk_val rmsprop(stk_weight_update *r)
{
    stk_val v = average(r, SLOT("velocity"), SQUARE(r->gradient), r->o->rho);
    stk_optimizer_slot momentum = {0};
    if (r->o->momentum > 0) momentum = SLOT("momentum");
    if (r->o->centered)
        v = SUB(v, SQUARE(average(r, SLOT("average_gradient"), r->gradient, r->o->rho)));
    stk_val step = DIV(MUL(r->rate, r->gradient), SQRT(ADD(v, NUMBER(r->o->epsilon))));
    if (r->o->momentum > 0)
        step = KEEP(momentum, ADD(MUL(momentum.value, NUMBER(r->o->momentum)), step));
    return SUB(r->w, step);
}

/* ---- Adagrad: a = a + g^2; w - lr g / sqrt(a + eps) --------------------------------------------------------------- */
static stk_val adagrad(stk_weight_update *r)
{
    stk_optimizer_slot slot = SLOT("accumulator");
    stk_val sum = KEEP(slot, ADD(slot.value, SQUARE(r->gradient)));
    return SUB(r->w, DIV(MUL(r->rate, r->gradient), SQRT(ADD(sum, NUMBER(r->o->epsilon)))));
}

/* ---- Adadelta: d = sqrt(x + eps) / sqrt(a + eps) g, with averages a of g^2 and x of d^2; w - lr d ------------------ */
static stk_val adadelta(stk_weight_update *r)
{
    stk_val eps = NUMBER(r->o->epsilon);
    stk_val a = average(r, SLOT("accumulated_grad"), SQUARE(r->gradient), r->o->rho);
    stk_optimizer_slot steps = SLOT("accumulated_delta_var");
    stk_val d = DIV(MUL(SQRT(ADD(steps.value, eps)), r->gradient), SQRT(ADD(a, eps)));
    average(r, steps, SQUARE(d), r->o->rho);
    return SUB(r->w, MUL(r->rate, d));
}

/* ---- Lion: w - lr sign(b1 m + (1 - b1) g); then m = b2 m + (1 - b2) g ---------------------------------------------- */
/* Both sums begin with the same product, so that they are one chain and one pass over memory. */
static stk_val lion(stk_weight_update *r)
{
    double b1 = r->o->beta_1, b2 = r->o->beta_2;
    stk_optimizer_slot slot = SLOT("momentum");
    stk_val share = b1 < 1 ? MUL(r->gradient, NUMBER(1 - b1)) : r->gradient;
    stk_val mix = b1 < 1 ? ADD(MUL(slot.value, NUMBER(b1)), share) : slot.value;
    stk_val rest = MUL(share, NUMBER(b1 < 1 ? (1 - b2) / (1 - b1) : 1 - b2));
    KEEP(slot, ADD(MUL(slot.value, NUMBER(b2)), rest));
    return SUB(r->w, MUL(r->rate, stk_g_sign(r->g, mix)));
}

/* What the names of optimizers.def stand for here. */
#define adamw adam
const stk_update_rule stk_update_rules[STK_OPTIMIZER_COUNT] = {
#define STK_OPTIMIZER(NAME, name_, class_, defaults_, doc)                                         \
    [STK_OPTIMIZER_##NAME] = {                                                                     \
        .name = #name_,                                                                            \
        .keras_class = class_,                                                                     \
        .defaults = defaults_,                                                                     \
        .update = name_,                                                                           \
        .prepare = STK_OPTIMIZER_##NAME == STK_OPTIMIZER_NADAM ? nadam_prepare : NULL,             \
        .scalar = STK_OPTIMIZER_##NAME == STK_OPTIMIZER_NADAM ? "u_product" : NULL,                \
        .scalar_start = 1,                                                                         \
        .slot = STK_OPTIMIZER_##NAME == STK_OPTIMIZER_ADAGRAD ? "accumulator" : NULL,              \
    },
#include "stoker/optimizers.def"
};
