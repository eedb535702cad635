/* fixture.h - a file of test/golden/train: arrays by name, and its list of cases (tools/make_train_goldens.py). */
#ifndef STK_TEST_TRAIN_FIXTURE_H
#define STK_TEST_TRAIN_FIXTURE_H

#include "check.h"

#include "base/json.h"
#include "stoker/graph.h"

typedef struct fixture {
    stk_npz *file;
    stk_json_document *document;
    const stk_json *cases;
} fixture;

static inline bool fixture_open(fixture *f, const char *name)
{
    stk_error err;
    char path[512];
    *f = (fixture){0};
    snprintf(path, sizeof path, "%s/golden/train/%s", STK_TEST_DIR, name);
    if (!CHECK_OK(stk_npz_load(path, &f->file, &err))) return false;
    const stk_tensor *meta = stk_npz_find(f->file, "meta");
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    if (!CHECK(meta != NULL) || !CHECK_OK(stk_json_parse(meta->data, (size_t)stk_tensor_bytes(meta),
                                                         &options, &f->document, &err)))
        return false;
    f->cases = stk_json_get(stk_json_root(f->document), "cases");
    return CHECK(f->cases && f->cases->count > 0);
}

static inline void fixture_close(fixture *f)
{
    stk_json_release(f->document);
    stk_npz_release(f->file);
}

/* NULL when the file has no such member. */
static inline stk_tensor *fixture_find(const fixture *f, const char *name, int64_t i)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%lld", name, (long long)i);
    return stk_npz_find(f->file, full);
}

static inline const char *fixture_text(const fixture *f, int64_t i, const char *name)
{
    return stk_json_text(stk_json_get(stk_json_item(f->cases, i), name), "");
}

/* Row `row` of a stacked array, as a tensor of its own: to be released. */
static inline stk_tensor *fixture_row(stk_tensor *stack, int64_t row)
{
    stk_error err;
    stk_tensor *slice = NULL, *out = NULL;
    int64_t start[STK_MAX_RANK] = {row}, size[STK_MAX_RANK];
    memcpy(size, stack->shape, sizeof size);
    size[0] = 1;
    if (CHECK_OK(stk_tensor_slice(stack, start, size, &slice, &err)))
        CHECK_OK(stk_tensor_reshape(slice, stack->rank - 1, stack->shape + 1, &out, &err));
    stk_tensor_release(slice);
    return out;
}

/* Every element within tolerance * (1 + |expected|); says which case and which element is worst. */
static inline bool fixture_near(const char *label, const char *what, const stk_tensor *got,
                                const stk_tensor *want, double tolerance)
{
    double worst = 0;
    int64_t at = -1;
    if (!CHECK(got && want) || !CHECK_EQ_I64(stk_tensor_count(got), stk_tensor_count(want)))
        return false;
    for (int64_t k = 0; k < stk_tensor_count(want); k++) {
        double a = stk_tensor_at(got, k), b = stk_tensor_at(want, k);
        if (a == b || (isnan(a) && isnan(b))) continue;
        double off = fabs(a - b) / (1 + fabs(b));
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off, at = k;
    }
    if (worst <= tolerance) return true;
    printf("%s, %s: element %lld is %.9g, expected %.9g\n", label, what, (long long)at,
           stk_tensor_at(got, at), stk_tensor_at(want, at));
    return CHECK(!"within tolerance of Keras");
}

#endif
