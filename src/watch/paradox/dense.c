/* dense.c - experiments with a small dense net: its batches, its epoch, its results. */
#include "watch/paradox/experiments.h"

#include "base/status.h"

/* ---- 3: small batches, large ones ------------------------------------------------------------------------------ */

stk_status stk_paradox_batches(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    enum { ROWS = 8192, SMALL = 8, LARGE = 512 };
    stk_training what = {.layers = stk_small_net, .batch = cured ? LARGE : SMALL};
    what.units = what.batch;
    STK_TRY(stk_paradox_rows(ROWS, STK_SMALL_NET_WIDTH, &what.x, &what.y, err));
    return stk_training_open(device, &what, out, err);
}

/* ---- 4: an epoch through a pipeline ------------------------------------------------------------------------------- */

/* (x - 0.5) * 2 of a row, or of a batch of rows: it is called as often as there are elements. */
static stk_status scale(void *context, const stk_map_info *info, stk_tensor *const *in,
                        stk_tensor **out, stk_error *err)
{
    (void)context, (void)info;
    const stk_tensor *x = in[0];
    if (!out[0]) STK_TRY(stk_tensor_new(STK_F32, x->rank, x->shape, &out[0], err));
    const float *from = x->data;
    float *to = out[0]->data;
    for (int64_t i = 0, n = stk_tensor_count(x); i < n; i++) to[i] = (from[i] - 0.5f) * 2;
    if (!out[1]) {
        out[1] = stk_tensor_retain(in[1]);
        return STK_OK;
    }
    return stk_tensor_copy(out[1], in[1], err);
}

static stk_dataset *scaled(stk_dataset *ds, int32_t parallel, stk_error *err)
{
    stk_map_fn fn = {.name = "scale", .call = scale, .flags = STK_MAP_PURE};
    stk_map_options how = stk_map_options_defaults();
    how.parallel = parallel;
    return stk_data_map(ds, &fn, &how, err);
}

stk_status stk_paradox_epoch(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    enum { ROWS = 100000, BATCH = 250, SEED = 3 };
    stk_tensor *xy[2];
    stk_status status = stk_paradox_rows(ROWS, STK_SMALL_NET_WIDTH, &xy[0], &xy[1], err);
    stk_dataset *ds = NULL;
    if (status == STK_OK) ds = stk_data_slices(2, xy, NULL, NULL, err);
    stk_tensor_release(xy[0]);
    stk_tensor_release(xy[1]);
    STK_TRY(status);
    ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, SEED, true, err);
    if (!cured) ds = scaled(ds, 1, err);
    ds = stk_data_batch(ds, BATCH, true, err);
    if (cured) ds = stk_data_prefetch(scaled(ds, STK_AUTOTUNE, err), STK_AUTOTUNE, err);
    if (!ds) return err ? err->code : STK_ERR_MEMORY;
    return stk_training_open(
        device, &(stk_training){.layers = stk_small_net, .dataset = ds, .units = BATCH}, out, err);
}

/* ---- 6b: results after every step ---------------------------------------------------------------------------------- */

/* As a callback that logs each batch: for such ones the trainer reads loss and metrics after every step. */
static stk_status look(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    (void)self, (void)t;
    if (stk_logs_get(&p->logs, "loss") >= 0) return STK_OK;
    return stk_fail(err, STK_ERR_STATE, "the loss of an experiment is not a number");
}

static stk_callback looking = {.name = "look", .batch_end = look};

stk_status stk_paradox_read_back(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    enum { ROWS = 8192, BATCH = 32 };
    stk_training what = {
        .layers = stk_small_net, .batch = BATCH, .units = 1, .callback = cured ? NULL : &looking};
    STK_TRY(stk_paradox_rows(ROWS, STK_SMALL_NET_WIDTH, &what.x, &what.y, err));
    return stk_training_open(device, &what, out, err);
}
