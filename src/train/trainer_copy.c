/* trainer_copy.c - a second trainer like the first, for trying other numbers without touching the first one's. */
#include "train/trainer.h"

#include "base/memory.h"

#include <string.h>

/* ---- options that outlive the call -------------------------------------------------------------------------------- */

stk_status stk_trainer_keep_options(stk_trainer *t, const stk_trainer_options *o, stk_error *err)
{
    size_t weights = (size_t)t->ny * sizeof *o->loss_weights;
    t->made = (stk_trainer_options){.deterministic = o->deterministic, .seed = o->seed};
    const char **texts[] = {&t->made.optimizer, &t->made.loss, &t->made.metrics,
                            &t->made.precision};
    const char *const given[] = {o->optimizer, o->loss, o->metrics, o->precision};
    bool good = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && good; i++) {
        *texts[i] = given[i] ? stk_strdup(given[i]) : NULL;
        good = !given[i] || *texts[i];
    }
    if (good && o->loss_weights) {
        double *copy = stk_malloc(weights + 1);
        good = copy != NULL;
        if (copy) memcpy(copy, o->loss_weights, weights);
        t->made.loss_weights = copy;
    }
    return good ? STK_OK : stk_fail_memory(err, "stk_trainer_new", weights);
}

void stk_trainer_drop_options(stk_trainer *t)
{
    stk_free((char *)(uintptr_t)t->made.optimizer);
    stk_free((char *)(uintptr_t)t->made.loss);
    stk_free((char *)(uintptr_t)t->made.metrics);
    stk_free((char *)(uintptr_t)t->made.precision);
    stk_free((double *)(uintptr_t)t->made.loss_weights);
    t->made = (stk_trainer_options){.seed = 0};
}

/* ---- the twin -------------------------------------------------------------------------------------------------------- */

bool stk_trainer_is_float32(stk_trainer *t)
{
    static const char *const others[] = {"float16", "float64"}; /* bfloat16 has the first in it */
    char *json = NULL;
    if (t->made.precision && strcmp(t->made.precision, "float32")) return false;
    if (stk_model_to_json(t->model, 0, &json, NULL) != STK_OK) return false;
    bool plain = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        plain = plain && !strstr(json, others[i]);
    stk_text_free(json);
    return plain;
}

static stk_status copy_weights(stk_trainer *from, stk_trainer *to, stk_error *err)
{
    stk_named_list weights = {0};
    stk_status status = stk_trainer_get_weights(from, &weights, err);
    if (status == STK_OK) status = stk_trainer_put_weights(to, &weights, err);
    stk_named_release(&weights);
    return status;
}

stk_status stk_trainer_copy(stk_trainer *t, const char *precision, stk_trainer **out,
                            stk_error *err)
{
    stk_model *model = NULL;
    stk_trainer_options o = t->made;
    o.precision = precision;
    o.device = t->device;
    o.threads = t->how.threads;
    *out = NULL;
    stk_status status = stk_model_clone(t->model, &model, err);
    if (status == STK_OK) status = stk_trainer_new(model, &o, out, err);
    if (status == STK_OK) status = copy_weights(t, *out, err);
    if (status != STK_OK) {
        stk_trainer_release(*out);
        *out = NULL;
    }
    stk_model_release(model);
    return status;
}
