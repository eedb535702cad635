/* trainer_copy.c - a second trainer like the first, for trying other numbers without touching the first one's. */
#include "train/trainer.h"

#include "base/memory.h"

#include <string.h>

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
