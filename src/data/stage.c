/* Stages: the tree of a running stream, and access by number with counting. */
#include "base/clock.h"
#include "base/tensor.h"
#include "data/run.h"

#include <string.h>

stk_status stk_stage_new(stk_run *run, stk_dataset *ds, stk_stage **out, stk_error *err)
{
    *out = NULL;
    size_t list = ((size_t)ds->ninputs + 1) * sizeof(stk_stage *);
    stk_stage *stage = stk_calloc(1, sizeof *stage + list);
    if (!stage) return stk_fail_memory(err, "stream", sizeof *stage + list);
    stage->ds = stk_dataset_retain(ds);
    stage->run = run;
    stage->in = (stk_stage **)(stage + 1);
    for (; stage->nin < ds->ninputs; stage->nin++) {
        stk_status status = stk_stage_new(run, ds->inputs[stage->nin], &stage->in[stage->nin], err);
        if (status == STK_OK) continue;
        stk_stage_release(stage);
        return status;
    }
    *out = stage;
    return STK_OK;
}

void stk_stage_release(stk_stage *stage)
{
    if (!stage) return;
    for (int32_t i = 0; i < stage->nin; i++) stk_stage_release(stage->in[i]);
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
