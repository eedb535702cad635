/* Streams: the public face of a running dataset, and the calls that take any stream. */
#include "data/core/patience.h"
#include "data/core/run.h"
#include "data/stream/rewrite.h"
#include "data/workers/tune.h"

#include <string.h>

/* Saved state:  0  magic "STKDATA1"    8  fingerprint of the plan    16  state of the root iterator */
#define STATE_MAGIC 0x314154414B545353LL

typedef struct running {
    stk_run *run;
    stk_iter *root;
    uint64_t fingerprint;
    stk_error error;
} running;

static const stk_schema *schema_of(stk_stream *self)
{
    return ((running *)self->private_data)->run->root->ds->schema;
}

static stk_status next(stk_stream *self, stk_tensor **parts, bool *end)
{
    running *r = self->private_data;
    r->error.code = STK_OK;
    stk_patience patience;
    stk_patience_enter(&patience, &r->run->options);
    stk_status status = stk_iter_next(r->root, parts, end, &r->error);
    stk_patience_leave(&patience);
    return status;
}

static const stk_error *last_error(stk_stream *self)
{
    return &((running *)self->private_data)->error;
}

static stk_status save(stk_stream *self, void **bytes, size_t *size)
{
    running *r = self->private_data;
    stk_state state = {0};
    stk_state_put(&state, STATE_MAGIC);
    stk_state_put(&state, (int64_t)r->fingerprint);
    stk_status status = stk_iter_save(r->root, &state, &r->error);
    if (status == STK_OK) status = stk_state_status(&state, &r->error);
    if (status != STK_OK) {
        stk_state_release(&state);
        return status;
    }
    *bytes = state.data;
    *size = state.size;
    return STK_OK;
}

static stk_status read_state(running *r, stk_iter *fresh, stk_state *state)
{
    int64_t magic = stk_state_get(state);
    uint64_t fingerprint = (uint64_t)stk_state_get(state);
    STK_TRY(stk_state_status(state, &r->error));
    if (magic != STATE_MAGIC)
        return stk_fail(&r->error, STK_ERR_FORMAT,
                        "restore: these bytes are no state of a stream; give what save returned");
    if (fingerprint != r->fingerprint)
        return stk_fail(
            &r->error, STK_ERR_ARGUMENT,
            "restore: the state was saved by another pipeline (fingerprint %016llx, this is "
            "%016llx); build the same nodes with the same options",
            (unsigned long long)fingerprint, (unsigned long long)r->fingerprint);
    STK_TRY(stk_iter_restore(fresh, state, &r->error));
    return stk_state_status(state, &r->error);
}

static stk_status restore(stk_stream *self, const void *bytes, size_t size)
{
    running *r = self->private_data;
    stk_state state = stk_state_reader(bytes, size);
    stk_iter *fresh = NULL;
    STK_TRY(stk_iter_open(r->run->root, r->run->options.epoch, &fresh, &r->error));
    stk_status status = read_state(r, fresh, &state);
    if (status != STK_OK) {
        stk_iter_close(fresh);
        return status;
    }
    stk_iter_close(r->root);
    r->root = fresh;
    return STK_OK;
}

static void release(stk_stream *self)
{
    running *r = self->private_data;
    stk_iter_close(r->root);
    stk_run_release(r->run);
    stk_free(r);
    stk_free(self);
}

stk_stream_options stk_stream_options_defaults(void)
{
    return (stk_stream_options){.deterministic = true, .rewrite = true, .autotune = true};
}

static stk_status start(stk_dataset *ds, const stk_stream_options *o, running *r, stk_error *err)
{
    stk_dataset *plan = NULL;
    STK_TRY(stk_plan_make(ds, o, NULL, &plan, err));
    r->fingerprint = stk_plan_fingerprint(plan);
    stk_status status = stk_run_new(plan, o, &r->run, err);
    stk_dataset_release(plan);
    STK_TRY(status);
    return stk_iter_open(r->run->root, o->epoch, &r->root, err);
}

stk_status stk_dataset_stream(stk_dataset *ds, const stk_stream_options *options, stk_stream **out,
                              stk_error *err)
{
    if (!ds || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "dataset_stream: %s is NULL",
                        ds ? "the out pointer" : "the dataset (did making it fail?)");
    *out = NULL;
    stk_stream_options o = options ? *options : stk_stream_options_of(ds);
    stk_stream *s = stk_calloc(1, sizeof *s);
    running *r = stk_calloc(1, sizeof *r);
    stk_status status = s && r ? STK_OK : stk_fail_memory(err, "stream", sizeof *s + sizeof *r);
    if (status == STK_OK) status = start(ds, &o, r, err);
    if (status != STK_OK) {
        if (r) stk_run_release(r->run);
        stk_free(r);
        stk_free(s);
        return status;
    }
    *s = (stk_stream){schema_of, next, last_error, save, restore, release, r};
    *out = s;
    return STK_OK;
}

stk_status stk_dataset_get(stk_dataset *ds, uint64_t epoch, int64_t index, stk_tensor **parts,
                           stk_error *err)
{
    if (!ds || !parts || !ds->random || index < 0 ||
        (ds->cardinality >= 0 && index >= ds->cardinality))
        return stk_fail(
            err, STK_ERR_RANGE,
            "dataset_get: there is no element %lld by number in a %s of %lld elements%s",
            (long long)index, stk_dataset_name(ds), (long long)stk_dataset_cardinality(ds),
            ds && ds->random ? "" : "; it can only be read in order, use a stream");
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 1;
    stk_run *run = NULL;
    STK_TRY(stk_run_new(ds, &o, &run, err));
    stk_status status = stk_stage_get(run->root, epoch, index, parts, err);
    stk_run_release(run);
    return status;
}

stk_run *stk_stream_run(stk_stream *s)
{
    return s && s->release == release ? ((running *)s->private_data)->run : NULL;
}

/* ---- any stream -------------------------------------------------------------------------------- */
static stk_status pass_on(stk_stream *s, stk_status status, stk_error *err)
{
    const stk_error *last = status != STK_OK && s->last_error ? s->last_error(s) : NULL;
    if (last && err) *err = *last;
    return status;
}

const stk_schema *stk_stream_schema(stk_stream *s) { return s ? s->schema(s) : NULL; }

stk_status stk_stream_next(stk_stream *s, stk_tensor **parts, bool *end, stk_error *err)
{
    if (!s || !parts || !end)
        return stk_fail(err, STK_ERR_ARGUMENT, "stream_next: the stream, parts or end is NULL");
    return pass_on(s, s->next(s, parts, end), err);
}

stk_status stk_stream_save(stk_stream *s, void **bytes, size_t *size, stk_error *err)
{
    if (!s || !bytes || !size || !s->save)
        return stk_fail(err, STK_ERR_ARGUMENT, "stream_save: %s",
                        s && !s->save ? "this stream cannot be saved" : "an argument is NULL");
    return pass_on(s, s->save(s, bytes, size), err);
}

stk_status stk_stream_restore(stk_stream *s, const void *bytes, size_t size, stk_error *err)
{
    if (!s || !bytes || !s->restore)
        return stk_fail(err, STK_ERR_ARGUMENT, "stream_restore: %s",
                        s && !s->restore ? "this stream cannot be restored"
                                         : "an argument is NULL");
    return pass_on(s, s->restore(s, bytes, size), err);
}

void stk_stream_release(stk_stream *s)
{
    if (s) s->release(s);
}

void stk_state_free(void *bytes) { stk_free(bytes); }
