/* What all optimizers have in common: scale, accumulate, clip, decay, update, average, constrain, count. The order is that of
 * Keras. Nothing here asks the host: an update that is to be left out is computed and not kept (select). */
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct pass {
    const stk_optimizer_options *o;
    stk_graph *g;
    const stk_update *update;
    stk_val iteration; /* int64: calls so far */
    stk_val count;   /* int64: updates so far; fewer than iterations when gradients are gathered */
    stk_val rate;    /* float32 variable */
    stk_val scale;   /* dynamic scale, float32 variable; 0 = none */
    stk_val unscale; /* what gradients are divided by */
    stk_val finite;  /* bool: all gradients are finite; 0 = not asked */
    stk_val due;     /* bool: this call updates; 0 = each does */
    stk_val clip;    /* one factor for all gradients; 0 = none */
} pass;

bool stk_optimizer_variable(const stk_optimizer_options *o, const char *weight, const char *slot,
                            char name[STK_SLOT_NAME], stk_error *err)
{
    const char *own = o->name[0] ? o->name : stk_update_rules[o->kind].name;
    int n = snprintf(name, STK_SLOT_NAME, "%s/%s%s%s", own, weight ? weight : "", weight ? "/" : "",
                     slot);
    if (n > 0 && n < STK_SLOT_NAME) return true;
    stk_fail(err, STK_ERR_ARGUMENT, "optimizer %s: the name of weight '%.80s...' is too long", own,
             weight ? weight : "");
    return false;
}

static stk_val variable(stk_graph *g, const stk_optimizer_options *o, const char *weight,
                        const char *slot, stk_dtype dtype, stk_val like)
{
    char name[STK_SLOT_NAME];
    int64_t shape[STK_MAX_RANK];
    int32_t rank = like ? stk_g_rank(g, like) : 0;
    if (!stk_graph_ok(g) || !stk_optimizer_variable(o, weight, slot, name, &g->error)) return 0;
    for (int32_t k = 0; k < rank; k++) shape[k] = stk_g_dim(g, like, k);
    return stk_g_variable(g, name, dtype, rank, shape);
}

/* a and b; 0 stands for true. */
static stk_val both(stk_graph *g, stk_val a, stk_val b)
{
    return a && b ? stk_g_and(g, a, b) : a ? a : b;
}
static stk_val pick(stk_graph *g, stk_val condition, stk_val a, stk_val b)
{
    return condition ? stk_g_select(g, condition, a, b) : a;
}

/* ---- what rules ask ------------------------------------------------------------------------------------------------ */

stk_optimizer_slot stk_weight_update_slot(stk_weight_update *r, const char *name)
{
    stk_val v = variable(r->g, r->o, r->weight, name, stk_g_dtype(r->g, r->variable), r->variable);
    return (stk_optimizer_slot){v, stk_g_cast(r->g, v, r->compute)};
}

stk_optimizer_slot stk_weight_update_scalar(stk_weight_update *r, const char *name)
{
    stk_val v = variable(r->g, r->o, NULL, name, STK_F32, 0);
    return (stk_optimizer_slot){v, v};
}

stk_val stk_weight_update_keep(stk_weight_update *r, stk_optimizer_slot slot, stk_val value)
{
    stk_val kept = stk_g_cast(r->g, value, stk_g_dtype(r->g, slot.variable));
    stk_g_assign(r->g, slot.variable, pick(r->g, r->go, kept, slot.variable));
    return value;
}

/* ---- gradients ------------------------------------------------------------------------------------------------------- */

static stk_dtype compute_dtype(const stk_graph *g, stk_val v)
{
    return stk_g_dtype(g, v) == STK_F64 ? STK_F64 : STK_F32;
}

static stk_val number_like(const pass *p, stk_val like, double x)
{
    return stk_g_scalar(p->g, stk_g_dtype(p->g, like), x);
}

/* A float32 gradient that was made from a shorter one is finite when that one is. Asking the shorter one keeps the long one
 * from being stored: nobody but the update reads it. */
static stk_val before_cast(const stk_graph *g, stk_val d)
{
    const stk_node *n = stk_node_of(g, d);
    bool longer = n->op == STK_OP_CAST && stk_dtype_is_float(stk_type_of(g, n->in[0])->dtype);
    return longer ? n->in[0] : d;
}

static stk_val all_finite(const pass *p)
{
    stk_val all = 0;
    for (int32_t i = 0; i < p->update->n; i++)
        if (p->update->gradients[i])
            all = both(p->g, all,
                       stk_g_all(p->g,
                                 stk_g_isfinite(p->g, before_cast(p->g, p->update->gradients[i])),
                                 0, NULL, false));
    return all;
}

/* Without the scale of the loss; with what was gathered before. */
static stk_val gradient_of(const pass *p, int32_t i)
{
    stk_graph *g = p->g;
    stk_val v = p->update->variables[i],
            d = stk_g_cast(g, p->update->gradients[i], compute_dtype(g, v));
    if (p->scale)
        d = stk_g_div(g, d, stk_g_cast(g, p->unscale, stk_g_dtype(g, d)));
    else if (p->o->loss_scale_factor > 0)
        d = stk_g_div(g, d, number_like(p, d, p->o->loss_scale_factor));
    if (!p->due) return d;
    stk_val slot =
        variable(g, p->o, p->update->names[i], "gradient_accumulator", stk_g_dtype(g, v), v);
    stk_val sum = stk_g_add(g, d, stk_g_cast(g, slot, stk_g_dtype(g, d)));
    stk_val stored = stk_g_cast(g, sum, stk_g_dtype(g, slot));
    stored = stk_g_select(g, p->due, number_like(p, stored, 0), stored);
    stk_g_assign(g, slot, pick(g, p->finite, stored, slot));
    return stk_g_div(g, sum, number_like(p, sum, (double)p->o->gradient_accumulation_steps));
}

/* most / max(norm, most): 1 while the norm is small enough */
static stk_val clip_factor(const pass *p, stk_val square_sum, double most)
{
    stk_val norm = stk_g_sqrt(p->g, square_sum), limit = number_like(p, norm, most);
    return stk_g_div(p->g, limit, stk_g_max(p->g, norm, limit));
}

static stk_val square_sum(const pass *p, stk_val x)
{
    return stk_g_sum_all(p->g, stk_g_square(p->g, x));
}

/* One factor from the norm of all gradients together. A norm that is not finite spoils all of them, as in Keras: better seen
 * than trained on. */
static stk_val global_clip(const pass *p, const stk_val *gradients)
{
    stk_val sum = 0;
    for (int32_t i = 0; i < p->update->n; i++) {
        if (!gradients[i]) continue;
        stk_val s = stk_g_cast(p->g, square_sum(p, gradients[i]), STK_F32);
        sum = sum ? stk_g_add(p->g, sum, s) : s;
    }
    if (!sum) return 0;
    return stk_g_select(p->g, stk_g_isfinite(p->g, sum), clip_factor(p, sum, p->o->global_clipnorm),
                        number_like(p, sum, NAN));
}

static stk_val clipped(const pass *p, stk_val d)
{
    if (p->o->clipnorm > 0)
        return stk_g_mul(p->g, d, clip_factor(p, square_sum(p, d), p->o->clipnorm));
    if (p->o->clipvalue > 0)
        return stk_g_min(p->g, stk_g_max(p->g, d, number_like(p, d, -p->o->clipvalue)),
                         number_like(p, d, p->o->clipvalue));
    return p->clip ? stk_g_mul(p->g, d, stk_g_cast(p->g, p->clip, stk_g_dtype(p->g, d))) : d;
}

/* ---- one weight ---------------------------------------------------------------------------------------------------------- */

/* The moving average follows the new weight; now and then the weight becomes its average. The first call only copies. */
static stk_val averaged(const pass *p, const stk_weight_update *r, stk_val w)
{
    stk_graph *g = p->g;
    stk_val slot =
                variable(g, p->o, r->weight, "average", stk_g_dtype(g, r->variable), r->variable),
            one = number_like(p, w, 1), zero = stk_g_scalar(g, STK_I64, 0);
    stk_val momentum = stk_g_select(g, stk_g_ne(g, p->count, zero),
                                    number_like(p, w, p->o->ema_momentum), number_like(p, w, 0));
    stk_val old = stk_g_cast(g, slot, r->compute);
    stk_val average =
        stk_g_add(g, old, stk_g_mul(g, stk_g_sub(g, w, old), stk_g_sub(g, one, momentum)));
    stk_val stored = stk_g_cast(g, average, stk_g_dtype(g, slot));
    stk_g_assign(g, slot, pick(g, p->finite, stored, slot));
    if (p->o->ema_overwrite_frequency <= 0) return w;
    stk_val next = stk_g_add(g, p->count, stk_g_scalar(g, STK_I64, 1));
    stk_val turn =
        stk_g_mod(g, next, stk_g_scalar(g, STK_I64, (double)p->o->ema_overwrite_frequency));
    return stk_g_select(g, stk_g_eq(g, turn, zero), average, w);
}

static stk_weight_update rule_of(const pass *p, stk_val like, int32_t i)
{
    stk_graph *g = p->g;
    stk_dtype compute = compute_dtype(g, like);
    stk_val t = stk_g_add(g, p->count, stk_g_scalar(g, STK_I64, 1));
    return (stk_weight_update){.g = g,
                               .o = p->o,
                               .weight = p->update->names[i],
                               .compute = compute,
                               .variable = like,
                               .rate = stk_g_cast(g, p->rate, compute),
                               .t = stk_g_cast(g, t, compute),
                               .go = both(g, p->finite, p->due)};
}

static void update_one(const pass *p, int32_t i, stk_val gradient, stk_val shared)
{
    stk_graph *g = p->g;
    stk_val v = p->update->variables[i];
    stk_val now = p->update->values && p->update->values[i] ? p->update->values[i] : v;
    stk_weight_update r = rule_of(p, v, i);
    r.shared = shared;
    r.w = stk_g_cast(g, now, r.compute);
    r.gradient = clipped(p, gradient);
    stk_val old = r.w;
    if (p->o->weight_decay > 0) {
        stk_val share = stk_g_mul(g, r.rate, number_like(p, r.w, p->o->weight_decay));
        r.w = stk_g_sub(g, r.w, stk_g_mul(g, r.w, share));
    }
    stk_val w = stk_update_rules[p->o->kind].update(&r);
    if (p->due) w = stk_g_select(g, p->due, w, old);
    if (p->o->use_ema) w = averaged(p, &r, w);
    w = stk_g_cast(g, w, stk_g_dtype(g, v));
    if (p->update->constrain) w = p->update->constrain(p->update->context, g, i, w);
    stk_g_assign(g, v, pick(g, p->finite, w, now));
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------ */

/* Counts and rates of the next call. */
static void count_on(const pass *p)
{
    stk_graph *g = p->g;
    stk_val one = stk_g_scalar(g, STK_I64, 1), next = stk_g_add(g, p->iteration, one);
    stk_g_assign(g, p->iteration, pick(g, p->finite, next, p->iteration));
    if (p->o->schedule.kind != STK_SCHEDULE_CONSTANT) {
        stk_val rate = stk_schedule_build(&p->o->schedule, g, p->o->learning_rate, next);
        stk_g_assign(g, p->rate, pick(g, p->finite, rate, p->rate));
    }
    if (!p->scale) return;
    stk_val good = variable(g, p->o, NULL, "step_counter", STK_I64, 0),
            zero = stk_g_scalar(g, STK_I64, 0);
    stk_val grow =
        stk_g_eq(g, good, stk_g_scalar(g, STK_I64, (double)(p->o->dynamic_growth_steps - 1)));
    stk_val counted = stk_g_select(g, grow, zero, stk_g_add(g, good, one));
    stk_val factor =
        stk_g_select(g, grow, number_like(p, p->scale, 2), number_like(p, p->scale, 1));
    factor = stk_g_select(g, p->finite, factor, number_like(p, p->scale, 0.5));
    stk_g_assign(g, good, stk_g_select(g, p->finite, counted, zero));
    stk_g_assign(g, p->scale, stk_g_mul(g, p->scale, factor));
}

/* Both the loss and the update ask for it, so it may be in the graph already. */
static stk_val dynamic_scale(const stk_optimizer_options *o, stk_graph *g)
{
    char name[STK_SLOT_NAME];
    if (!stk_graph_ok(g) || !stk_optimizer_variable(o, NULL, "dynamic_scale", name, &g->error))
        return 0;
    stk_val there = stk_g_named(g, STK_OP_VARIABLE, name);
    return there ? there : stk_g_variable(g, name, STK_F32, 0, NULL);
}

static pass begin(const stk_optimizer *o, stk_graph *g, const stk_update *update)
{
    pass p = {.o = &o->options, .g = g, .update = update};
    int64_t steps = p.o->gradient_accumulation_steps;
    p.iteration = p.count = variable(g, p.o, NULL, "iteration", STK_I64, 0);
    p.rate = variable(g, p.o, NULL, "learning_rate", STK_F32, 0);
    if (p.o->dynamic_loss_scale) {
        p.scale = dynamic_scale(p.o, g);
        p.finite = all_finite(&p);
        /* An update that is left out may divide by anything. That the division waits for the answer keeps all that
         * follows together with the selects at its end: one chain, one pass. */
        p.unscale = stk_g_select(g, p.finite, p.scale, stk_g_scalar(g, STK_F32, 1));
    }
    if (steps > 1) {
        stk_val every = stk_g_scalar(g, STK_I64, (double)steps);
        stk_val next = stk_g_add(g, p.iteration, stk_g_scalar(g, STK_I64, 1));
        p.due = stk_g_eq(g, stk_g_mod(g, next, every), stk_g_scalar(g, STK_I64, 0));
        p.count = stk_g_floordiv(g, p.iteration, every);
    }
    return p;
}

static bool usable(const stk_optimizer *o, stk_graph *g, const stk_update *u)
{
    if (!o || !u || u->n < 0 || (u->n && (!u->variables || !u->gradients || !u->names))) {
        stk_g_fail(g, STK_ERR_ARGUMENT,
                   "stk_optimizer_apply: optimizer, variables, gradients and names must be given");
        return false;
    }
    for (int32_t i = 0; i < u->n; i++)
        if (!stk_val_ok(g, u->variables[i]) || !u->names[i] ||
            stk_node_of(g, u->variables[i])->op != STK_OP_VARIABLE) {
            stk_g_fail(g, STK_ERR_ARGUMENT, "stk_optimizer_apply: variables[%d] is no variable", i);
            return false;
        }
    for (int32_t i = 0; i < u->n; i++)
        if (u->gradients[i]) return true;
    stk_g_fail(g, STK_ERR_ARGUMENT,
               "stk_optimizer_apply: no weight has a gradient; the loss depends on none of the %d "
               "trainable weights",
               u->n);
    return false;
}

void stk_optimizer_apply(const stk_optimizer *o, stk_graph *g, const stk_update *update)
{
    if (!stk_graph_ok(g) || !usable(o, g, update)) return;
    stk_val *gradients = stk_arena_array(&g->arena, (size_t)update->n, sizeof *gradients);
    if (!gradients) {
        stk_fail_memory(&g->error, "stk_optimizer_apply", (size_t)update->n * sizeof *gradients);
        return;
    }
    pass p = begin(o, g, update);
    stk_val shared = 0;
    for (int32_t i = 0; i < update->n; i++)
        if (update->gradients[i]) gradients[i] = gradient_of(&p, i);
    if (p.o->global_clipnorm > 0) p.clip = global_clip(&p, gradients);
    if (stk_update_rules[p.o->kind].prepare) {
        stk_weight_update r = rule_of(&p, p.rate, 0);
        shared = stk_update_rules[p.o->kind].prepare(&r);
    }
    for (int32_t i = 0; i < update->n; i++)
        if (gradients[i]) update_one(&p, i, gradients[i], shared);
    count_on(&p);
}

stk_val stk_optimizer_scale_loss(const stk_optimizer *o, stk_graph *g, stk_val loss)
{
    if (!o || !stk_graph_ok(g) || !stk_val_ok(g, loss)) return 0;
    if (o->options.dynamic_loss_scale)
        return stk_g_mul(g, loss,
                         stk_g_cast(g, dynamic_scale(&o->options, g), stk_g_dtype(g, loss)));
    if (o->options.loss_scale_factor > 0)
        return stk_g_mul(g, loss,
                         stk_g_scalar(g, stk_g_dtype(g, loss), o->options.loss_scale_factor));
    return loss;
}
