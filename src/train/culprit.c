/* culprit.c - which number in the data has made a loss NaN. Nothing looks at inputs while training goes well; when it has gone
 * wrong there is time. Arrays are at hand. The batches of a dataset are gone by then and are made once more, which gives the same
 * ones: what is random in a dataset hangs on the epoch. */
#include "train/trainer.h"

#include "base/dtype.h"
#include "data/core/node.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double WALK_SECONDS = 5; /* then nobody wants to wait for a reason any longer */

/* The row of the first number that is not finite, or -1. */
static int64_t bad_row(const stk_tensor *t)
{
    int64_t count = stk_dtype_is_float(t->dtype) ? stk_tensor_count(t) : 0, at = 0;
    while (at < count && isfinite(stk_tensor_at(t, at))) at++;
    return at < count ? at / (count / t->shape[0]) : -1;
}

/* parts: x..., y..., and perhaps weights. `where`: "" or " of batch 3". */
static bool name_bad(const stk_batch_options *how, stk_tensor *const *parts, int32_t n,
                     const char *where, char *text, size_t size)
{
    for (int32_t i = 0; i < n; i++) {
        int64_t row = bad_row(parts[i]);
        if (row < 0) continue;
        char name[32] = "the weights";
        if (i < how->nx + how->ny)
            snprintf(name, sizeof name, "%s %d", i < how->nx ? "x" : "y",
                     i < how->nx ? i : i - how->nx);
        snprintf(text, size, "%s%s has a number that is not finite in row %" PRId64 "; correct it",
                 name, where, row);
        return true;
    }
    return false;
}

static bool find_in_walk(stk_batches *b, int64_t from, int64_t to, char *text, size_t size)
{
    int64_t start = stk_now_ns();
    char where[40];
    while (b->at < to && (double)(stk_now_ns() - start) < WALK_SECONDS * 1e9) {
        if (stk_batches_next(b, NULL) != STK_OK || b->end) return false;
        snprintf(where, sizeof where, " of batch %" PRId64, b->at);
        if (b->at > from && name_bad(&b->how, b->parts, b->n, where, text, size)) return true;
    }
    return false;
}

bool stk_culprit_find(stk_trainer *t, int64_t from, int64_t to, char *text, size_t size)
{
    if (!t->fit) return false;
    const stk_batches *b = &t->fit->batches;
    if (!b->dataset)
        return name_bad(&b->how, b->arrays, b->narrays + (b->given != NULL), "", text, size);
    if (!stk_dataset_repeats(b->dataset)) return false;
    stk_batches again;
    stk_train_data data = {.dataset = b->dataset};
    if (stk_batches_open(&again, &data, &b->how, NULL) != STK_OK) return false;
    bool found = stk_batches_begin(&again, t->fit->epoch, 0, NULL) == STK_OK &&
                 find_in_walk(&again, from, to, text, size);
    stk_batches_close(&again);
    return found;
}
