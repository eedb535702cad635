/* golden_optim.h - optimizers as graphs, for the golden files that hold parameters after each of several updates:
 * variables, assignments and elementwise operations, one run of the program per update. */
#ifndef STK_TEST_GRAPH_GOLDEN_OPTIM_H
#define STK_TEST_GRAPH_GOLDEN_OPTIM_H

#include "golden.h"

enum { SLOTS = 4 };

typedef struct optim {
    const golden *c;
    stk_graph *g;
    stk_val w, gradient;
    stk_val t; /* number of this update, from 1, as a float */
    stk_val lr;
    int32_t slots;
    char slot[SLOTS][8];
    double initial[SLOTS];
} optim;

#define ADD(a, b)    stk_g_add(o->g, a, b)
#define SUB(a, b)    stk_g_sub(o->g, a, b)
#define MUL(a, b)    stk_g_mul(o->g, a, b)
#define DIV(a, b)    stk_g_div(o->g, a, b)
#define MAX(a, b)    stk_g_max(o->g, a, b)
#define POW(a, b)    stk_g_pow(o->g, a, b)
#define SQRT(a)      stk_g_sqrt(o->g, a)
#define SQUARE(a)    stk_g_square(o->g, a)
#define NUMBER(x)    stk_g_scalar(o->g, STK_F32, x)
#define OPTION(name) golden_real(o->c, name)

/* A state of the optimizer, like the parameter. */
static stk_val optim_slot(optim *o, double initial)
{
    snprintf(o->slot[o->slots], sizeof o->slot[0], "slot%d", o->slots);
    o->initial[o->slots] = initial;
    return stk_g_variable(o->g, o->slot[o->slots++], STK_F32, 1,
                          (int64_t[]){stk_g_dim(o->g, o->w, 0)});
}

static stk_val optim_keep(optim *o, stk_val slot, stk_val value)
{
    stk_g_assign(o->g, slot, value);
    return value;
}

/* rate * average + (1 - rate) * x */
static stk_val optim_average(optim *o, stk_val average, stk_val x, double rate)
{
    return ADD(MUL(average, NUMBER(rate)), MUL(x, NUMBER(1 - rate)));
}
static stk_val optim_slot_average(optim *o, stk_val x, double rate)
{
    stk_val slot = optim_slot(o, 0);
    return optim_keep(o, slot, optim_average(o, slot, x, rate));
}
/* 1 - rate^t */
static stk_val optim_correction(optim *o, double rate)
{
    return SUB(NUMBER(1), POW(NUMBER(rate), o->t));
}

/* ---- each gives the new parameter ------------------------------------------------------------------------------ */

static stk_val optim_sgd(optim *o)
{
    double momentum = OPTION("momentum");
    stk_val step = MUL(o->lr, o->gradient);
    if (momentum == 0) return SUB(o->w, step);
    stk_val slot = optim_slot(o, 0);
    stk_val m = optim_keep(o, slot, SUB(MUL(slot, NUMBER(momentum)), step));
    if (!golden_flag(o->c, "nesterov")) return ADD(o->w, m);
    return ADD(o->w, SUB(MUL(m, NUMBER(momentum)), step));
}

static stk_val optim_adam(optim *o)
{
    double b1 = OPTION("beta_1"), b2 = OPTION("beta_2"), eps = OPTION("epsilon");
    stk_val m = optim_slot_average(o, o->gradient, b1);
    stk_val v = optim_slot_average(o, SQUARE(o->gradient), b2);
    if (golden_flag(o->c, "amsgrad")) {
        stk_val largest = optim_slot(o, 0);
        v = optim_keep(o, largest, MAX(largest, v));
    }
    stk_val alpha = DIV(MUL(o->lr, SQRT(optim_correction(o, b2))), optim_correction(o, b1));
    return SUB(o->w, DIV(MUL(m, alpha), ADD(SQRT(v), NUMBER(eps))));
}

static stk_val optim_adamw(optim *o)
{
    o->w = SUB(o->w, MUL(o->w, MUL(o->lr, NUMBER(OPTION("weight_decay")))));
    return optim_adam(o);
}

static stk_val optim_adamax(optim *o)
{
    double b1 = OPTION("beta_1");
    stk_val m = optim_slot_average(o, o->gradient, b1), slot = optim_slot(o, 0);
    stk_val u =
        optim_keep(o, slot, MAX(MUL(slot, NUMBER(OPTION("beta_2"))), stk_g_abs(o->g, o->gradient)));
    stk_val below = MUL(optim_correction(o, b1), ADD(u, NUMBER(OPTION("epsilon"))));
    return SUB(o->w, DIV(MUL(o->lr, m), below));
}

/* beta_1 (1 - 0.96^t / 2) */
static stk_val nadam_momentum(optim *o, stk_val t)
{
    stk_val half = MUL(NUMBER(0.5), POW(NUMBER(0.96), t));
    return MUL(NUMBER(OPTION("beta_1")), SUB(NUMBER(1), half));
}
static stk_val optim_nadam(optim *o)
{
    double b1 = OPTION("beta_1"), b2 = OPTION("beta_2");
    stk_val now = nadam_momentum(o, o->t), next = nadam_momentum(o, ADD(o->t, NUMBER(1)));
    stk_val m = optim_slot_average(o, o->gradient, b1);
    stk_val v = optim_slot_average(o, SQUARE(o->gradient), b2);
    stk_val slot = optim_slot(o, 1), product = optim_keep(o, slot, MUL(slot, now));
    stk_val m_hat = ADD(DIV(MUL(next, m), SUB(NUMBER(1), MUL(product, next))),
                        DIV(MUL(SUB(NUMBER(1), now), o->gradient), SUB(NUMBER(1), product)));
    stk_val v_hat = DIV(v, optim_correction(o, b2));
    return SUB(o->w, DIV(MUL(o->lr, m_hat), ADD(SQRT(v_hat), NUMBER(OPTION("epsilon")))));
}

static stk_val optim_rmsprop(optim *o)
{
    double rho = OPTION("rho"), momentum = OPTION("momentum");
    stk_val v = optim_slot_average(o, SQUARE(o->gradient), rho);
    if (golden_flag(o->c, "centered")) v = SUB(v, SQUARE(optim_slot_average(o, o->gradient, rho)));
    stk_val step = DIV(MUL(o->lr, o->gradient), SQRT(ADD(v, NUMBER(OPTION("epsilon")))));
    if (momentum == 0) return SUB(o->w, step);
    stk_val slot = optim_slot(o, 0);
    return SUB(o->w, optim_keep(o, slot, ADD(MUL(slot, NUMBER(momentum)), step)));
}

static stk_val optim_adagrad(optim *o)
{
    stk_val slot = optim_slot(o, OPTION("initial_accumulator_value"));
    stk_val sum = optim_keep(o, slot, ADD(slot, SQUARE(o->gradient)));
    return SUB(o->w, DIV(MUL(o->lr, o->gradient), SQRT(ADD(sum, NUMBER(OPTION("epsilon"))))));
}

static stk_val optim_adadelta(optim *o)
{
    double rho = OPTION("rho");
    stk_val eps = NUMBER(OPTION("epsilon")), slot = optim_slot(o, 0);
    stk_val v = optim_slot_average(o, SQUARE(o->gradient), rho);
    stk_val delta = DIV(MUL(SQRT(ADD(slot, eps)), o->gradient), SQRT(ADD(v, eps)));
    optim_keep(o, slot, optim_average(o, slot, SQUARE(delta), rho));
    return SUB(o->w, MUL(o->lr, delta));
}

static stk_val optim_ftrl(optim *o)
{
    double power = -OPTION("learning_rate_power"), l1 = OPTION("l1_regularization_strength"),
           lr = OPTION("learning_rate"),
           l2 = OPTION("l2_regularization_strength") + OPTION("beta") / (2 * lr),
           shrinkage = OPTION("l2_shrinkage_regularization_strength");
    stk_val sum = optim_slot(o, OPTION("initial_accumulator_value")), linear = optim_slot(o, 0);
    stk_val now = optim_keep(o, sum, ADD(sum, SQUARE(o->gradient)));
    stk_val grown = POW(now, NUMBER(power)), was = POW(sum, NUMBER(power));
    stk_val used = ADD(o->gradient, MUL(NUMBER(2 * shrinkage), o->w));
    stk_val z =
        optim_keep(o, linear, ADD(linear, SUB(used, MUL(DIV(SUB(grown, was), o->lr), o->w))));
    stk_val clipped = stk_g_min(o->g, MAX(z, NUMBER(-l1)), NUMBER(l1));
    return DIV(SUB(clipped, z), ADD(DIV(grown, o->lr), NUMBER(2 * l2)));
}

static stk_val optim_lion(optim *o)
{
    stk_val slot = optim_slot(o, 0);
    stk_val mix = optim_average(o, slot, o->gradient, OPTION("beta_1"));
    optim_keep(o, slot, optim_average(o, slot, o->gradient, OPTION("beta_2")));
    return SUB(o->w, MUL(o->lr, stk_g_sign(o->g, mix)));
}

static stk_val optim_adam_clipnorm(optim *o)
{
    stk_val most = NUMBER(OPTION("clipnorm"));
    stk_val norm = SQRT(stk_g_sum_all(o->g, SQUARE(o->gradient)));
    o->gradient = MUL(o->gradient, DIV(most, MAX(norm, most)));
    return optim_adam(o);
}

static const struct optim_kind {
    const char *name;
    stk_val (*build)(optim *o);
} optim_kinds[] = {{"sgd", optim_sgd},
                   {"sgd_momentum", optim_sgd},
                   {"sgd_nesterov", optim_sgd},
                   {"adam", optim_adam},
                   {"adam_amsgrad", optim_adam},
                   {"adam_clipnorm", optim_adam_clipnorm},
                   {"adamw", optim_adamw},
                   {"adamax", optim_adamax},
                   {"nadam", optim_nadam},
                   {"rmsprop", optim_rmsprop},
                   {"rmsprop_centered_momentum", optim_rmsprop},
                   {"adagrad", optim_adagrad},
                   {"adadelta", optim_adadelta},
                   {"ftrl", optim_ftrl},
                   {"lion", optim_lion}};

/* ---- running ------------------------------------------------------------------------------------------------- */

static void optim_fill(stk_store *store, const optim *o, const stk_tensor *start)
{
    stk_error err;
    CHECK_OK(stk_store_set(store, "w", start, &err));
    for (int32_t s = 0; s < o->slots; s++) {
        stk_tensor *t = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, start->rank, start->shape, &t, &err));
        for (int64_t k = 0; k < stk_tensor_count(t); k++)
            CHECK_OK(stk_tensor_set(t, k, o->initial[s], &err));
        CHECK_OK(stk_store_set(store, o->slot[s], t, &err));
        stk_tensor_release(t);
    }
}

static void optim_updates(const golden *c, stk_program *p)
{
    stk_error err;
    const stk_tensor *want = stk_npz_find(c->file, "out_y");
    stk_tensor *gradients = stk_npz_find(c->file, "gradients");
    for (int64_t t = 0; t < gradients->shape[0]; t++) {
        stk_tensor *row = NULL, *w = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, 1, gradients->shape + 1, &row, &err));
        for (int64_t k = 0; k < row->shape[0]; k++)
            CHECK_OK(stk_tensor_set(row, k, stk_tensor_at(gradients, t * row->shape[0] + k), &err));
        CHECK_OK(stk_program_feed(p, "gradient", row, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_store_get(stk_program_store(p), "w", &w, &err));
        golden_compare(c, "parameter after an update", w, want, t);
        stk_tensor_release(row);
        stk_tensor_release(w);
    }
}

static void run_optimizer(golden *c)
{
    const char *kind = golden_text(c, "kind");
    const stk_tensor *start = stk_npz_find(c->file, "start");
    const struct optim_kind *found = NULL;
    for (size_t i = 0; i < sizeof optim_kinds / sizeof *optim_kinds; i++)
        if (!strcmp(kind, optim_kinds[i].name)) found = &optim_kinds[i];
    if (!found) printf("golden %s: no optimizer '%s' in optim_kinds\n", c->name, kind);
    if (!CHECK(found && start)) return;
    optim o = {.c = c, .g = c->g};
    stk_val w = o.w = stk_g_variable(c->g, "w", STK_F32, start->rank, start->shape);
    o.gradient = stk_g_input(c->g, "gradient", STK_F32, start->rank, start->shape);
    o.t = stk_g_cast(c->g, stk_g_add(c->g, stk_g_step(c->g), stk_g_scalar(c->g, STK_I64, 1)),
                     STK_F32);
    o.lr = golden_scalar(c, golden_real(c, "learning_rate"));
    stk_g_assign(c->g, w, found->build(&o));
    for (int ref = 0; ref < 2; ref++) {
        stk_program *p = golden_program(c, ref);
        if (!p) return;
        optim_fill(stk_program_store(p), &o, start);
        optim_updates(c, p);
        stk_program_release(p);
    }
}

#endif
