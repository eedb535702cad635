/* batches.c - opening data of either kind, and elements of datasets, passed on. Rows of arrays: rows.c. */
#include "train/batches.h"

#include "base/dtype.h"
#include "base/map.h"
#include "base/tensor.h"
#include "train/resident.h"
#include "train/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------------------------------ */

static stk_status check_rows(const stk_tensor *t, int64_t rows, const char *what, int32_t i,
                             stk_error *err)
{
    if (t->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "%s %d holds texts; turn them into numbers first", what,
                        i);
    if (t->rank < 1)
        return stk_fail(err, STK_ERR_SHAPE,
                        "%s %d is a single number; its first axis must be the samples", what, i);
    if (t->shape[0] != rows)
        return stk_fail(err, STK_ERR_SHAPE,
                        "%s %d has %" PRId64 " rows, x 0 has %" PRId64
                        "; all arrays need the same number",
                        what, i, t->shape[0], rows);
    return STK_OK;
}

static stk_status add_array(stk_batches *b, stk_tensor *t, int64_t rows, const char *what,
                            int32_t i, stk_error *err)
{
    if (!t) return stk_fail(err, STK_ERR_ARGUMENT, "%s %d is NULL", what, i);
    STK_TRY(check_rows(t, rows, what, i, err));
    STK_TRY(stk_tensor_dense(t, &b->arrays[b->narrays], err));
    b->narrays++;
    return STK_OK;
}

static bool fits(const stk_spec *spec, int32_t rank, const int64_t *shape)
{
    bool same = rank == spec->rank;
    for (int32_t k = 1; same && k < rank; k++)
        same = spec->shape[k] < 0 || shape[k] == spec->shape[k];
    return same;
}

/* x as the model wants it. A last axis of size 1 may be missing or too many, as in Keras. */
static stk_status add_input(stk_batches *b, stk_tensor *t, int64_t rows, int32_t i, stk_error *err)
{
    STK_TRY(add_array(b, t, rows, "x", i, err));
    stk_spec spec = stk_model_input(b->how.model, i);
    stk_tensor **array = &b->arrays[b->narrays - 1], *changed = NULL;
    int64_t shape[STK_MAX_RANK + 1];
    memcpy(shape, t->shape, sizeof t->shape);
    shape[t->rank] = 1;
    bool add = t->rank + 1 == spec.rank,
         drop = t->rank == spec.rank + 1 && t->shape[t->rank - 1] == 1;
    if (fits(&spec, t->rank, t->shape)) return STK_OK;
    if ((add || drop) && fits(&spec, spec.rank, shape)) {
        STK_TRY(stk_tensor_reshape(*array, spec.rank, shape, &changed, err));
        stk_tensor_release(*array);
        *array = changed;
        return STK_OK;
    }
    stk_shape got = {.rank = t->rank - 1}, want = {.rank = spec.rank - 1};
    memcpy(got.dim, t->shape + 1, (size_t)got.rank * 8);
    memcpy(want.dim, spec.shape + 1, (size_t)want.rank * 8);
    bool any = false;
    for (int32_t k = 0; k < want.rank; k++) any |= want.dim[k] < 0;
    return stk_fail(
        err, STK_ERR_SHAPE,
        "rows of x %d are %s, input '%s' of the model wants %s%s; reshape the data or change the "
        "model's input",
        i, STK_SHAPE_TEXT(&got), spec.name ? spec.name : "", STK_SHAPE_TEXT(&want),
        any ? " (-1: any)" : "");
}

static stk_status check_counts(const stk_train_data *data, const stk_batch_options *how,
                               stk_error *err)
{
    if (data->nx != how->nx)
        return stk_fail(err, STK_ERR_ARGUMENT, "the model has %d inputs, %d arrays x are given",
                        how->nx, data->nx);
    if (how->with_y && data->ny != how->ny)
        return stk_fail(err, STK_ERR_ARGUMENT, "the model has %d outputs, %d arrays y are given",
                        how->ny, data->ny);
    if (how->nx + 2 * how->ny > STK_PARTS_MAX)
        return stk_fail(err, STK_ERR_RANGE, "%d inputs and outputs, at most %d are supported",
                        how->nx + how->ny, STK_PARTS_MAX / 2);
    if (how->nx < 1 || !data->x || !data->x[0])
        return stk_fail(err, STK_ERR_ARGUMENT, "no data: x is missing");
    return STK_OK;
}

/* Data that does not fit the model, as wrong shapes are. */
stk_status stk_batches_check_labels(const stk_step *step, int32_t ny, stk_tensor *const *y,
                                    stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t i = 0; step && i < ny && status == STK_OK; i++) {
        status = stk_step_check_labels(step, i, y[i], err);
        if (status == STK_ERR_RANGE) status = stk_fail_in(err, STK_ERR_SHAPE, "y %d", i);
    }
    return status;
}

static stk_status open_arrays(stk_batches *b, const stk_train_data *data, stk_error *err)
{
    const stk_batch_options *how = &b->how;
    STK_TRY(check_counts(data, how, err));
    int64_t rows = data->x[0]->rank > 0 ? data->x[0]->shape[0] : 0;
    for (int32_t i = 0; i < how->nx; i++) STK_TRY(add_input(b, data->x[i], rows, i, err));
    for (int32_t i = 0; how->with_y && i < how->ny; i++)
        STK_TRY(add_array(b, data->y[i], rows, "y", i, err));
    if (how->with_y)
        STK_TRY(stk_batches_check_labels(how->step, how->ny, b->arrays + how->nx, err));
    b->n = b->narrays;
    if (how->with_y && (data->weights || how->class_weights)) {
        b->weighted = true;
        b->n++;
        b->labels = how->class_weights ? b->arrays[how->nx] : NULL;
        if (data->weights) {
            STK_TRY(add_array(b, data->weights, rows, "weights", 0, err));
            b->given = b->arrays[--b->narrays]; /* kept alive by the array list, copied by hand */
        }
    }
    int64_t left = rows - how->first;
    b->total = how->rows >= 0 && how->rows < left ? how->rows : left;
    if (b->total < 1)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "no data: %" PRId64 " rows, of which none are left for this part", rows);
    b->steps = stk_ceil_div(b->total, how->batch);
    if (how->shuffle && !(b->order = stk_calloc((size_t)b->total, sizeof *b->order)))
        return stk_fail_memory(err, "the order of the rows", (size_t)b->total * sizeof *b->order);
    return STK_OK;
}

/* Rows of their own in each slot; views that are moved along when the rows are taken as they stand. */
static stk_status make_slot(stk_batches *b, int64_t rows, stk_batch_slot *slot, stk_error *err)
{
    for (int32_t i = 0; i < b->narrays; i++) {
        stk_tensor *a = b->arrays[i];
        int64_t start[STK_MAX_RANK] = {0}, shape[STK_MAX_RANK];
        memcpy(shape, a->shape, sizeof shape);
        shape[0] = rows;
        if (b->order)
            STK_TRY(stk_tensor_new(a->dtype, a->rank, shape, &slot->part[i], err));
        else
            STK_TRY(stk_tensor_slice(a, start, shape, &slot->part[i], err));
    }
    if (b->weighted) STK_TRY(stk_tensor_new(STK_F32, 1, &rows, &slot->part[b->narrays], err));
    return STK_OK;
}

static stk_status make_slots(stk_batches *b, stk_error *err)
{
    int64_t whole = stk_min_i64(b->how.batch, b->total), tail = b->total % b->how.batch;
    for (int i = 0; i < 2; i++) {
        STK_TRY(make_slot(b, whole, &b->slot[i], err));
        if (tail && whole == b->how.batch) STK_TRY(make_slot(b, tail, &b->tail[i], err));
    }
    return STK_OK;
}

static stk_status open_dataset(stk_batches *b, const stk_train_data *data, stk_error *err)
{
    const stk_schema *schema = stk_dataset_schema(data->dataset);
    int32_t want = b->how.nx + (b->how.with_y ? b->how.ny : 0), n = schema ? schema->n : 0;
    if (b->how.class_weights)
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "class weights go with arrays; let the dataset give weights as its last part");
    if (n > STK_PARTS_MAX || n < want || (b->how.with_y && n > want + 1))
        return stk_fail(err, STK_ERR_SHAPE,
                        "elements of the dataset have %d parts, the model needs %d (inputs, then "
                        "outputs; weights may follow)",
                        n, want);
    b->dataset = stk_dataset_retain(data->dataset);
    b->leaves = n;
    b->weighted = b->how.with_y && n == want + 1;
    b->n = want + b->weighted;
    int64_t cardinality = stk_dataset_cardinality(data->dataset);
    b->steps = b->how.steps ? b->how.steps : cardinality > 0 ? cardinality : 0;
    if (cardinality == STK_INFINITE && !b->how.steps)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "the dataset never ends; say how many steps make an epoch");
    return STK_OK;
}

stk_status stk_batches_open(stk_batches *b, const stk_train_data *data,
                            const stk_batch_options *how, stk_error *err)
{
    *b = (stk_batches){.how = *how};
    if (!data) return stk_fail(err, STK_ERR_ARGUMENT, "no data was given");
    if (b->how.batch < 1)
        return stk_fail(err, STK_ERR_RANGE, "a batch of %" PRId64 " rows; 1 or more are needed",
                        how->batch);
    stk_status status = data->dataset ? open_dataset(b, data, err) : open_arrays(b, data, err);
    if (status == STK_OK && !data->dataset) status = make_slots(b, err);
    if (status == STK_OK && !data->dataset && how->steps) b->steps = how->steps;
    if (status != STK_OK) stk_batches_close(b);
    return status;
}

static void release_slot(stk_batch_slot *slot)
{
    for (int32_t i = 0; i < STK_PARTS_MAX; i++) stk_tensor_release(slot->part[i]);
}

static void drop_parts(stk_batches *b)
{
    for (int32_t i = 0; b->dataset && i < b->leaves; i++) {
        stk_tensor_release(b->parts[i]);
        b->parts[i] = NULL;
    }
}

void stk_batches_close(stk_batches *b)
{
    stk_rows_close(b);
    stk_resident_close(b->resident);
    drop_parts(b);
    for (int32_t i = 0; i < STK_PARTS_MAX; i++) stk_tensor_release(b->arrays[i]);
    for (int i = 0; i < 2; i++) {
        release_slot(&b->slot[i]);
        release_slot(&b->tail[i]);
    }
    stk_free(b->order);
    stk_stream_release(b->stream);
    stk_dataset_release(b->dataset);
    *b = (stk_batches){0};
}

/* ---- datasets ---------------------------------------------------------------------------------------------- */

static stk_status start_walk(stk_batches *b, stk_error *err)
{
    stk_stream_options options = stk_dataset_options(b->dataset);
    options.epoch = (uint64_t)b->epoch + ((uint64_t)b->walks << 32);
    if (!options.memory.alloc) options.memory = stk_device_host_memory(b->how.device);
    stk_stream_release(b->stream);
    b->stream = NULL;
    b->walks++;
    return stk_dataset_stream(b->dataset, &options, &b->stream, err);
}

static stk_status check_element(const stk_batches *b, stk_error *err)
{
    if (b->parts[0]->rank < 1)
        return stk_fail(err, STK_ERR_SHAPE,
                        "elements of the dataset are no batches; add a batch stage to it");
    int32_t ny = b->how.with_y ? b->how.ny : 0;
    char when[48] = "";
    stk_status status = stk_batches_check_labels(b->how.step, ny, b->parts + b->how.nx, err);
    if (status == STK_OK) return STK_OK;
    if (b->epoch > 0) snprintf(when, sizeof when, " in epoch %" PRId64, b->epoch + 1);
    return stk_fail_in(err, status, "batch %" PRId64 " of the dataset%s", b->at + 1, when);
}

static stk_status next_element(stk_batches *b, stk_error *err)
{
    bool end = false;
    drop_parts(b);
    STK_TRY(stk_stream_next(b->stream, b->parts, &end, err));
    if (end && b->how.steps && b->at > 0) { /* fewer elements than steps: walk it again */
        STK_TRY(start_walk(b, err));
        STK_TRY(stk_stream_next(b->stream, b->parts, &end, err));
    }
    b->end = end;
    if (end && b->at == 0) return stk_fail(err, STK_ERR_ARGUMENT, "the dataset is empty");
    if (end) return STK_OK;
    STK_TRY(check_element(b, err));
    b->rows = b->parts[0]->shape[0];
    return STK_OK;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

stk_status stk_batches_begin(stk_batches *b, int64_t epoch, int64_t done, stk_error *err)
{
    b->epoch = epoch;
    b->at = done;
    b->walks = 0;
    b->end = false;
    if (b->dataset) return start_walk(b, err);
    stk_rows_begin(b);
    return STK_OK;
}

stk_status stk_batches_next(stk_batches *b, stk_error *err)
{
    if ((b->how.steps || !b->dataset) && b->at >= b->steps) {
        b->end = true;
        return stk_maps_check(err);
    }
    if (b->dataset) {
        STK_TRY(next_element(b, err));
    } else {
        stk_rows_next(b);
    }
    b->at += !b->end;
    return stk_maps_check(err); /* rows of a mapped file that somebody made shorter are zeros */
}

/* What is saved of a dataset: the number of walks, then what the stream says about itself. */
stk_status stk_batches_save(stk_batches *b, void **bytes, size_t *size, stk_error *err)
{
    *bytes = NULL;
    *size = 0;
    if (!b->dataset || !b->stream || b->at == 0) return STK_OK;
    void *inner = NULL;
    size_t n = 0;
    STK_TRY(stk_stream_save(b->stream, &inner, &n, err));
    char *all = stk_malloc(n + sizeof b->walks);
    if (all) {
        memcpy(all, &b->walks, sizeof b->walks);
        if (n) memcpy(all + sizeof b->walks, inner, n);
        *bytes = all;
        *size = n + sizeof b->walks;
    }
    stk_state_free(inner);
    return all ? STK_OK : stk_fail_memory(err, "the position in the dataset", n);
}

stk_status stk_batches_restore(stk_batches *b, const void *bytes, size_t size, stk_error *err)
{
    int64_t walks;
    if (!b->dataset || size < sizeof walks)
        return stk_fail(
            err, STK_ERR_FORMAT,
            "the checkpoint has a position in a dataset, this run has none that fits; give "
            "the data it was made with");
    memcpy(&walks, bytes, sizeof walks);
    if (walks > 1) {
        b->walks = walks - 1;
        STK_TRY(start_walk(b, err));
    }
    return stk_stream_restore(b->stream, (const char *)bytes + sizeof walks, size - sizeof walks,
                              err);
}
