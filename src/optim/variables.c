/* The variables of an optimizer in the order in which Keras lists them, which is how its files number them. */
#include "optim/optimizer.h"

#include <string.h>

static bool always(const stk_optimizer_options *o)
{
    (void)o;
    return true;
}
static bool has_momentum(const stk_optimizer_options *o) { return o->momentum != 0; }
static bool has_hats(const stk_optimizer_options *o) { return o->amsgrad; }
static bool is_centered(const stk_optimizer_options *o) { return o->centered; }

/* Slots of one row lie side by side for each weight; rows of one kind follow each other. */
static const struct row {
    stk_optimizer_kind kind;
    const char *slots[2];
    bool (*there)(const stk_optimizer_options *o);
} rows[] = {
    {STK_OPTIMIZER_SGD, {"momentum"}, has_momentum},
    {STK_OPTIMIZER_ADAM, {"momentum", "velocity"}, always},
    {STK_OPTIMIZER_ADAM, {"velocity_hat"}, has_hats},
    {STK_OPTIMIZER_ADAMW, {"momentum", "velocity"}, always},
    {STK_OPTIMIZER_ADAMW, {"velocity_hat"}, has_hats},
    {STK_OPTIMIZER_ADAMAX, {"momentum", "norm"}, always},
    {STK_OPTIMIZER_NADAM, {"momentum", "velocity"}, always},
    {STK_OPTIMIZER_RMSPROP, {"velocity"}, always},
    {STK_OPTIMIZER_RMSPROP, {"momentum"}, has_momentum},
    {STK_OPTIMIZER_RMSPROP, {"average_gradient"}, is_centered},
    {STK_OPTIMIZER_ADAGRAD, {"accumulator"}, always},
    {STK_OPTIMIZER_ADADELTA, {"accumulated_grad", "accumulated_delta_var"}, always},
    {STK_OPTIMIZER_LION, {"momentum"}, always},
};

typedef struct lister {
    const stk_optimizer_options *o;
    int32_t n;
    const char *const *names;
    stk_optimizer_visit *visit;
    void *context;
    stk_error *err;
} lister;

static stk_status tell(const lister *l, int32_t weight, const char *slot)
{
    char name[STK_SLOT_NAME];
    if (!stk_optimizer_variable(l->o, weight < 0 ? NULL : l->names[weight], slot, name, l->err))
        return STK_ERR_ARGUMENT;
    return l->visit(l->context, name, weight, slot, l->err);
}

static stk_status tell_slots(const lister *l, const char *first, const char *second)
{
    for (int32_t i = 0; i < l->n; i++) {
        STK_TRY(tell(l, i, first));
        if (second) STK_TRY(tell(l, i, second));
    }
    return STK_OK;
}

stk_status stk_optimizer_variables(const stk_optimizer *optimizer, int32_t n,
                                   const char *const *names, stk_optimizer_visit *visit,
                                   void *context, stk_error *err)
{
    if (!optimizer || n < 0 || (n && !names) || !visit)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_variables: optimizer, names and visit must be given");
    const stk_optimizer_options *o = &optimizer->options;
    const lister l = {o, n, names, visit, context, err};
    STK_TRY(tell(&l, -1, "iteration"));
    if (o->schedule.kind == STK_SCHEDULE_CONSTANT) STK_TRY(tell(&l, -1, "learning_rate"));
    if (o->use_ema) STK_TRY(tell_slots(&l, "average", NULL));
    if (o->gradient_accumulation_steps > 1) STK_TRY(tell_slots(&l, "gradient_accumulator", NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == o->kind && rows[i].there(o))
            STK_TRY(tell_slots(&l, rows[i].slots[0], rows[i].slots[1]));
    return stk_update_rules[o->kind].scalar ? tell(&l, -1, stk_update_rules[o->kind].scalar)
                                            : STK_OK;
}
