/* An optimizer's variables in a store: start values, the rate, the averages of the weights. */
#include "optim/optimizer.h"

#include <string.h>

static stk_status set_scalar(const stk_optimizer_options *o, stk_store *store, const char *slot,
                             stk_dtype dtype, double value, stk_error *err)
{
    char name[STK_SLOT_NAME];
    stk_tensor *t = NULL;
    if (!stk_optimizer_variable(o, NULL, slot, name, err)) return STK_ERR_ARGUMENT;
    STK_TRY(stk_tensor_scalar(dtype, value, &t, err));
    stk_status status = stk_store_set(store, name, t, err);
    stk_tensor_release(t);
    return status;
}

static stk_status get_scalar(const stk_optimizer_options *o, stk_store *store, const char *slot,
                             double *value, stk_error *err)
{
    char name[STK_SLOT_NAME];
    stk_tensor *t = NULL;
    if (!stk_optimizer_variable(o, NULL, slot, name, err)) return STK_ERR_ARGUMENT;
    STK_TRY(stk_store_get(store, name, &t, err));
    *value = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    return STK_OK;
}

/* Every element of a tensor that belongs to the caller alone. */
static stk_status fill(stk_tensor *t, double value, stk_error *err)
{
    for (int64_t i = 0; i < stk_tensor_count(t); i++) STK_TRY(stk_tensor_set(t, i, value, err));
    return STK_OK;
}

/* What a program has made already, back to 0. */
static stk_status clear(const stk_optimizer_options *o, stk_store *store, stk_error *err)
{
    char prefix[STK_SLOT_NAME];
    if (!stk_optimizer_variable(o, NULL, "", prefix, err)) return STK_ERR_ARGUMENT;
    return stk_store_clear(store, prefix, err);
}

/* Adagrad's sums begin above 0. */
static stk_status start_slot(const stk_optimizer_options *o, stk_store *store, const char *weight,
                             stk_error *err)
{
    char name[STK_SLOT_NAME];
    stk_tensor *t = NULL;
    if (!stk_optimizer_variable(o, weight, stk_update_rules[o->kind].slot, name, err))
        return STK_ERR_ARGUMENT;
    STK_TRY(stk_store_get(store, weight, &t, err));
    stk_status status = fill(t, o->initial_accumulator_value, err);
    if (status == STK_OK) status = stk_store_set(store, name, t, err);
    stk_tensor_release(t);
    return status;
}

stk_status stk_optimizer_init(const stk_optimizer *optimizer, stk_store *store, int32_t n,
                              const char *const *names, stk_error *err)
{
    if (!optimizer || !store || n < 0 || (n && !names))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_init: optimizer, store and names must be given");
    const stk_optimizer_options *o = &optimizer->options;
    const stk_update_rule *rule = &stk_update_rules[o->kind];
    STK_TRY(clear(o, store, err));
    STK_TRY(set_scalar(o, store, "iteration", STK_I64, 0, err));
    STK_TRY(set_scalar(o, store, "learning_rate", STK_F32,
                       stk_schedule_start(&o->schedule, o->learning_rate), err));
    if (o->dynamic_loss_scale)
        STK_TRY(set_scalar(o, store, "dynamic_scale", STK_F32, o->initial_scale, err));
    if (rule->scalar) STK_TRY(set_scalar(o, store, rule->scalar, STK_F32, rule->scalar_start, err));
    for (int32_t i = 0; rule->slot && i < n; i++) STK_TRY(start_slot(o, store, names[i], err));
    return STK_OK;
}

stk_status stk_optimizer_rate(const stk_optimizer *o, stk_store *store, double *rate,
                              stk_error *err)
{
    if (!o || !store || !rate)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_rate: optimizer, store and rate must be given");
    return get_scalar(&o->options, store, "learning_rate", rate, err);
}

stk_status stk_optimizer_set_rate(const stk_optimizer *o, stk_store *store, double rate,
                                  stk_error *err)
{
    if (!o || !store)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_set_rate: optimizer and store must be given");
    if (o->options.schedule.kind != STK_SCHEDULE_CONSTANT)
        return stk_fail(
            err, STK_ERR_STATE,
            "optimizer %s: its rate follows the schedule '%s' and cannot be set; use an "
            "optimizer without a schedule",
            stk_update_rules[o->options.kind].name, stk_schedule_name(o->options.schedule.kind));
    if (!(rate >= 0))
        return stk_fail(err, STK_ERR_RANGE, "optimizer %s: learning rate %g is below 0",
                        stk_update_rules[o->options.kind].name, rate);
    return set_scalar(&o->options, store, "learning_rate", STK_F32, rate, err);
}

stk_status stk_optimizer_iterations(const stk_optimizer *o, stk_store *store, int64_t *iterations,
                                    stk_error *err)
{
    double value = 0;
    if (!o || !store || !iterations)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_iterations: optimizer, store and iterations must be given");
    STK_TRY(get_scalar(&o->options, store, "iteration", &value, err));
    *iterations = (int64_t)value;
    return STK_OK;
}

stk_status stk_optimizer_finish(const stk_optimizer *optimizer, stk_store *store, int32_t n,
                                const char *const *names, stk_error *err)
{
    if (!optimizer || !store || (n && !names))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_finish: optimizer, store and names must be given");
    for (int32_t i = 0; optimizer->options.use_ema && i < n; i++) {
        char name[STK_SLOT_NAME];
        stk_tensor *t = NULL;
        if (!stk_optimizer_variable(&optimizer->options, names[i], "average", name, err))
            return STK_ERR_ARGUMENT;
        STK_TRY(stk_store_get(store, name, &t, err));
        stk_status status = stk_store_set(store, names[i], t, err);
        stk_tensor_release(t);
        STK_TRY(status);
    }
    return STK_OK;
}

/* The optimizer says so itself: it is given one weight, and what it has declared beside it is counted. */
int32_t stk_optimizer_slots(const stk_optimizer *o)
{
    stk_graph *g = NULL;
    const int64_t shape[1] = {7};
    int32_t slots = -1;
    if (!o || stk_graph_new(&g, NULL) != STK_OK) return 0;
    stk_val w = stk_g_variable(g, "w", STK_F32, 1, shape);
    stk_val gradient = stk_g_input(g, "gradient", STK_F32, 1, shape);
    const char *name = "w";
    stk_optimizer_apply(
        o, g, &(stk_update){.n = 1, .variables = &w, .gradients = &gradient, .names = &name});
    for (int64_t i = 0; i < g->nnodes; i++)
        slots += g->nodes[i].op == STK_OP_VARIABLE && stk_g_rank(g, g->nodes[i].out) == 1;
    bool good = stk_graph_ok(g);
    stk_graph_release(g);
    return good ? slots : 0;
}
