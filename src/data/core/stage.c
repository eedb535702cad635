/* Stages: the tree of a running stream, and access by number with counting. */
#include "base/clock.h"
#include "base/tensor.h"
#include "data/core/element_list.h"
#include "data/core/run.h"

#include <string.h>

static int64_t announced_bytes(const stk_schema *schema)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < schema->n; i++) {
        int64_t field = stk_field_bytes(&schema->fields[i]);
        if (field < 0 || __builtin_add_overflow(bytes, field, &bytes)) return 0;
    }
    return bytes;
}

void stk_stage_saw(stk_stage *stage, int64_t bytes)
{
    int64_t before = __atomic_load_n(&stage->element_bytes, __ATOMIC_RELAXED);
    int64_t still = stk_max_i64(1, before - before / 16); /* 0 means not known yet */
    __atomic_store_n(&stage->element_bytes, bytes > still ? bytes : still, __ATOMIC_RELAXED);
}

stk_status stk_stage_new(stk_run *run, stk_dataset *ds, stk_stage **out, stk_error *err)
{
    *out = NULL;
    size_t list = ((size_t)ds->ninputs + 1) * sizeof(stk_stage *);
    stk_stage *stage = stk_calloc(1, sizeof *stage + list);
    if (!stage) return stk_fail_memory(err, "stream", sizeof *stage + list);
    stage->ds = stk_dataset_retain(ds);
    stage->run = run;
    stage->in = (stk_stage **)(stage + 1);
    stage->element_bytes = announced_bytes(ds->schema);
    for (; stage->nin < ds->ninputs; stage->nin++) {
        stk_status status = stk_stage_new(run, ds->inputs[stage->nin], &stage->in[stage->nin], err);
        if (status == STK_OK) continue;
        stk_stage_release(stage);
        return status;
    }
    stk_status status = ds->kind->begin ? ds->kind->begin(stage, err) : STK_OK;
    if (status == STK_OK)
        *out = stage;
    else
        stk_stage_release(stage);
    return status;
}

void stk_stage_release(stk_stage *stage)
{
    if (!stage) return;
    for (int32_t i = 0; i < stage->nin; i++) stk_stage_release(stage->in[i]);
    stk_run_give_ram(stage->run, stage->ram);
    if (stage->queues) __atomic_sub_fetch(&stage->run->queues, 1, __ATOMIC_RELAXED);
    stk_dataset_release(stage->ds);
    stk_free(stage);
}

static void count(stk_stage *stage, uint64_t start, int64_t elements)
{
    __atomic_add_fetch(&stage->count.inside, (int64_t)(stk_ticks() - start), __ATOMIC_RELAXED);
    __atomic_add_fetch(&stage->count.elements, elements, __ATOMIC_RELAXED);
}

stk_status stk_stage_get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                         stk_error *err)
{
    uint64_t start = stk_ticks();
    for (int32_t i = 0; i < stage->ds->schema->n; i++) parts[i] = NULL;
    stk_status status = stage->ds->kind->get(stage, epoch, index, parts, err);
    count(stage, start, 1);
    return status;
}

/* One by one, for kinds that know nothing better. */
static stk_status rows_by_get(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                              stk_tensor *const *slots, int64_t row, stk_error *err)
{
    int32_t width = stage->ds->schema->n;
    stk_tensor **parts = stk_parts_new(width);
    if (!parts) return stk_fail_memory(err, "batch", (size_t)width * sizeof *parts);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        status = stage->ds->kind->get(stage, epoch, index[i], parts, err);
        for (int32_t p = 0; p < width && status == STK_OK; p++)
            status = stk_slot_put("batch", slots[p], row + i, parts[p], err);
        stk_parts_release(width, parts);
    }
    stk_free(parts);
    return status;
}

stk_status stk_stage_rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                          stk_tensor *const *slots, int64_t row, stk_error *err)
{
    uint64_t start = stk_ticks();
    stk_status status = (stage->ds->kind->rows ? stage->ds->kind->rows : rows_by_get)(
        stage, epoch, n, index, slots, row, err);
    count(stage, start, n);
    return status;
}

stk_status stk_stage_slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                           stk_tensor **parts, stk_error *err)
{
    if (!stage->ds->kind->slice) return STK_OK;
    uint64_t start = stk_ticks();
    stk_status status = stage->ds->kind->slice(stage, epoch, first, n, parts, err);
    if (status == STK_OK && stage->ds->schema->n && parts[0]) count(stage, start, n);
    return status;
}

/* ---- nodes that pass on ----------------------------------------------------------------------------- */
stk_status stk_pass_get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                        stk_error *err)
{
    return stk_stage_get(stage->in[0], epoch, index, parts, err);
}

stk_status stk_pass_rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                         stk_tensor *const *slots, int64_t row, stk_error *err)
{
    return stk_stage_rows(stage->in[0], epoch, n, index, slots, row, err);
}

stk_status stk_pass_slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                          stk_tensor **parts, stk_error *err)
{
    return stk_stage_slice(stage->in[0], epoch, first, n, parts, err);
}

stk_status stk_stage_elements(stk_stage *stage, const char *who, uint64_t epoch, int64_t first,
                              int64_t stride, int64_t n, stk_tensor ***out, stk_error *err)
{
    int32_t width = stage->ds->schema->n;
    *out = stk_parts_new(n * width);
    if (!*out) return stk_fail_memory(err, who, (size_t)(n * width) * sizeof **out);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < n && status == STK_OK; i++)
        status = stk_stage_get(stage, epoch, first + i * stride, *out + i * width, err);
    if (status == STK_OK) return STK_OK;
    stk_elements_free(n * width, *out);
    *out = NULL;
    return status;
}

/* ---- datasets that functions give --------------------------------------------------------------------- */
static bool sizes_fit(const stk_schema *announced, const stk_schema *given)
{
    for (int32_t i = 0; i < given->n; i++) {
        const stk_field *a = &announced->fields[i], *b = &given->fields[i];
        if (a->rank < 0 || b->rank < 0) continue;
        if (a->rank != b->rank) return false;
        for (int32_t k = 0; k < a->rank; k++)
            if (a->shape[k] >= 0 && b->shape[k] >= 0 && a->shape[k] != b->shape[k]) return false;
    }
    return true;
}

static stk_status check_given(const char *who, const stk_schema *announced, const stk_schema *given,
                              stk_error *err)
{
    stk_schema *common = NULL;
    STK_TRY(stk_schema_common(who, announced, given, &common, err));
    stk_schema_release(common);
    if (sizes_fit(announced, given)) return STK_OK;
    char left[200], right[200];
    return stk_fail(
        err, STK_ERR_SHAPE,
        "%s: it announced elements of %s and gave a dataset of %s; announce -1 for sizes "
        "that differ",
        who, stk_schema_describe(announced, left, sizeof left),
        stk_schema_describe(given, right, sizeof right));
}

stk_status stk_stage_given(stk_stage *stage, const char *who, stk_dataset *given,
                           const stk_error *error, stk_stage **out, stk_error *err)
{
    *out = NULL;
    if (!given && error->code == STK_OK)
        return stk_fail(err, STK_ERR_STATE, "%s: %s gave no dataset", stage->ds->kind->name, who);
    if (!given && err) *err = *error;
    if (!given) return error->code;
    stk_status status = check_given(who, stage->ds->schema, given->schema, err);
    if (status == STK_OK) status = stk_stage_new(stage->run, given, out, err);
    stk_dataset_release(given);
    return status;
}
