/* trainer_options.c - the options of a trainer: their defaults, lists of losses and metrics taken apart, and copies that
 * outlive the call. */
#include "train/trainer.h"

#include "base/memory.h"

#include <string.h>

/* ---- options as text ----------------------------------------------------------------------------------------- */

stk_trainer_options stk_trainer_defaults(void)
{
    return (stk_trainer_options){.optimizer = "rmsprop", .metrics = ""};
}

/* "a,b;c": items of one output are separated by commas, outputs by semicolons. Options inside braces or after a colon keep
 * their commas: "auc:curve=pr,num_thresholds=50" is one metric, because what follows a comma there has a '='. */
void stk_trainer_words_release(stk_trainer_words *w)
{
    for (int64_t i = 0; i < w->count; i++) stk_free(w->items[i].text);
    stk_free(w->items);
    *w = (stk_trainer_words){0};
}

/* Does the comma at `text` separate two items? Not when an option (name=value) follows. */
static bool separates(const char *text)
{
    size_t n = strcspn(text + 1, ",;=");
    return text[1 + n] != '=';
}

static size_t word_length(const char *text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n]; n++) {
        depth += text[n] == '{' || text[n] == '[';
        depth -= text[n] == '}' || text[n] == ']';
        if (depth > 0) continue;
        if (text[n] == ';' || (text[n] == ',' && separates(text + n))) break;
    }
    return n;
}

stk_status stk_trainer_split(const char *text, stk_trainer_words *out, stk_error *err)
{
    while (*text) {
        size_t n = word_length(text), skip = strspn(text, " "), size = n;
        while (size > skip && text[size - 1] == ' ') size--;
        if (size > skip) {
            if (!STK_GROW(out->items, out->count, out->capacity))
                return stk_fail_memory(err, "metrics", sizeof *out->items);
            char *copy = stk_strndup(text + skip, size - skip);
            if (!copy) return stk_fail_memory(err, "metrics", size);
            out->items[out->count++] = (stk_trainer_word){copy, out->outputs};
        }
        out->outputs += text[n] == ';';
        text += n + (text[n] != 0);
    }
    out->outputs++;
    return STK_OK;
}

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
