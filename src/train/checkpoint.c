/* checkpoint.c - everything a run needs to go on, into one file and back.
 *
 *     text      {"step", "epoch", "batch", "rows" of a batch, "seed", "callbacks": [{"name", "state"}], "history"}
 *     store/..  every variable of the store: weights, optimizer, metrics
 *     best/..   weights that early stopping keeps
 *     data      position in the dataset, when there is one
 *
 * Loading checks everything before it changes anything. */
#include "train/container.h"
#include "train/trainer.h"

#include "base/dtype.h"
#include "base/file.h"
#include "stoker/keras.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 1024 };

/* ---- writing ------------------------------------------------------------------------------------------------ */

static stk_status add_store(stk_trainer *t, stk_named_list *list, stk_error *err)
{
    for (int32_t i = 0; i < stk_store_count(t->store); i++) {
        char name[NAME_ROOM];
        stk_tensor *copy = NULL;
        snprintf(name, sizeof name, "store/%s", stk_store_name(t->store, i));
        STK_TRY(stk_store_get(t->store, stk_store_name(t->store, i), &copy, err));
        STK_TRY(stk_named_add(list, name, copy, err));
    }
    for (int64_t i = 0; i < t->best.count; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "best/%s", t->best.items[i].name);
        STK_TRY(stk_named_add(list, name, stk_tensor_retain(t->best.items[i].tensor), err));
    }
    return STK_OK;
}

static stk_status add_position(stk_trainer *t, stk_named_list *list, stk_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    stk_tensor *copy = NULL;
    if (!t->fit) return STK_OK;
    STK_TRY(stk_batches_save(&t->fit->batches, &bytes, &size, err));
    if (!bytes) return STK_OK;
    stk_status status = stk_tensor_from(STK_U8, 1, (int64_t[]){(int64_t)size}, bytes, &copy, err);
    stk_free(bytes);
    return status == STK_OK ? stk_named_add(list, "data", copy, err) : status;
}

static void write_callbacks(const stk_fit *f, stk_json_writer *w)
{
    stk_json_begin_array(w);
    for (int32_t i = 0; f && i < f->o->ncallbacks; i++) {
        const stk_callback *c = f->o->callbacks[i];
        if (c->nstate <= 0) continue;
        stk_json_begin_object(w);
        stk_json_name(w, "name");
        stk_json_put_text(w, c->name ? c->name : "");
        stk_json_name(w, "state");
        stk_json_begin_array(w);
        for (int32_t k = 0; k < c->nstate; k++) stk_json_put_double(w, c->state[k]);
        stk_json_end_array(w);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
}

/* What stands in front of the names of its variables. */
static const char *optimizer_name(const stk_trainer *t)
{
    const stk_optimizer_options *o = stk_optimizer_get_options(stk_step_optimizer(t->maker));
    return o->name[0] ? o->name : stk_optimizer_name(o->kind);
}

static stk_status make_text(const stk_trainer *t, char **text, size_t *size, stk_error *err)
{
    stk_json_writer w = {.indent = 0, .allow_nonfinite = true};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"step", t->step},
                   {"epoch", t->fit ? t->fit->epoch : t->position.epoch},
                   {"batch", t->fit ? t->fit->batch : t->position.batch},
                   {"rows", t->fit ? t->fit->o->batch : 0},
                   {"seed", t->seed}};
    stk_json_begin_object(&w);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stk_json_name(&w, numbers[i].name);
        stk_json_put_int(&w, numbers[i].value);
    }
    stk_json_name(&w, "optimizer");
    stk_json_put_text(&w, optimizer_name(t));
    stk_json_name(&w, "callbacks");
    write_callbacks(t->fit, &w);
    if (t->history) {
        stk_json_name(&w, "history");
        stk_history_write(t->history, &w);
    }
    stk_json_end_object(&w);
    return stk_json_finish(&w, text, size, err);
}

stk_status stk_checkpoint_write(stk_trainer *t, const char *path, stk_error *err)
{
    int32_t before = stk_books_enter(&t->books, STK_SPAN_CHECKPOINT);
    stk_named_list list = {0};
    char *text = NULL;
    size_t size = 0;
    stk_status status = add_store(t, &list, err);
    if (status == STK_OK) status = add_position(t, &list, err);
    if (status == STK_OK) status = make_text(t, &text, &size, err);
    if (status == STK_OK) status = stk_container_save(path, text, size, &list, err);
    stk_free(text);
    stk_named_release(&list);
    stk_books_enter(&t->books, before);
    return status;
}

stk_status stk_trainer_save(stk_trainer *t, const char *path, stk_error *err)
{
    if (!t || !path)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_save: trainer and path must be given");
    return stk_checkpoint_write(t, path, err);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static stk_status differs(const char *path, const char *name, const stk_tensor *theirs,
                          const stk_tensor *own, stk_error *err)
{
    char a[160] = "nothing", b[160] = "nothing";
    if (theirs) stk_tensor_describe(theirs, a, sizeof a);
    if (own) stk_tensor_describe(own, b, sizeof b);
    return stk_fail(
        err, STK_ERR_SHAPE,
        "%s: '%s' is %s in the checkpoint and %s here; resume with the model, optimizer, loss "
        "and metrics it was made with",
        path, name, a, b);
}

static stk_status check_variable(stk_trainer *t, const char *path, const char *name,
                                 const stk_tensor *theirs, stk_error *err)
{
    stk_tensor *own = NULL;
    bool known = stk_store_get(t->store, name, &own, NULL) == STK_OK;
    if (!theirs || !known) { /* the state of optimizer and metrics is made with the first program */
        bool weight = stk_model_find_weight(t->model, name) >= 0;
        stk_status status = weight ? differs(path, name, theirs, own, err) : STK_OK;
        stk_tensor_release(own);
        return status;
    }
    bool same = theirs->dtype == own->dtype && theirs->rank == own->rank &&
                !memcmp(theirs->shape, own->shape, (size_t)own->rank * sizeof *own->shape);
    stk_status status = same ? STK_OK : differs(path, name, theirs, own, err);
    stk_tensor_release(own);
    return status;
}

static stk_status check_store(stk_trainer *t, const char *path, const stk_container *c,
                              stk_error *err)
{
    for (int64_t i = 0; i < c->list.count; i++)
        if (!strncmp(c->list.items[i].name, "store/", 6))
            STK_TRY(
                check_variable(t, path, c->list.items[i].name + 6, c->list.items[i].tensor, err));
    for (int32_t i = 0; i < stk_store_count(t->store); i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "store/%s", stk_store_name(t->store, i));
        STK_TRY(check_variable(t, path, name + 6, stk_named_find(&c->list, name), err));
    }
    return STK_OK;
}

static stk_status read_states(const stk_json *callbacks, stk_position *p, stk_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; callbacks && i < callbacks->count; i++) {
        const stk_json *state = stk_json_get(&callbacks->items[i], "state");
        n += state ? state->count : 0;
    }
    if (!(p->states = stk_calloc((size_t)n + 1, sizeof *p->states)))
        return stk_fail_memory(err, "callbacks", (size_t)n * sizeof *p->states);
    for (int64_t i = 0; callbacks && i < callbacks->count; i++) {
        const stk_json *state = stk_json_get(&callbacks->items[i], "state");
        for (int64_t k = 0; state && k < state->count; k++)
            p->states[p->nstates++] = stk_json_double(stk_json_item(state, k), 0);
    }
    return STK_OK;
}

/* What the text and the other tensors say, into places of its own. */
typedef struct loaded {
    stk_position position;
    stk_history *history;
    stk_named_list best;
    int64_t step, seed;
    int64_t rows; /* of a batch; 0: not known */
    char optimizer[64];
} loaded;

static stk_status read_text(const char *path, const stk_container *c, loaded *out, stk_error *err)
{
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    stk_json_document *document = NULL;
    stk_status status = stk_json_parse(c->text, c->text_size, &options, &document, err);
    if (status != STK_OK) return stk_fail_in(err, status, "%s", path);
    const stk_json *root = stk_json_root(document), *history = stk_json_get(root, "history");
    out->step = stk_json_int(stk_json_get(root, "step"), -1);
    out->seed = stk_json_int(stk_json_get(root, "seed"), 0);
    snprintf(out->optimizer, sizeof out->optimizer, "%s",
             stk_json_text(stk_json_get(root, "optimizer"), ""));
    out->rows = stk_json_int(stk_json_get(root, "rows"), 0);
    out->position.epoch = stk_json_int(stk_json_get(root, "epoch"), -1);
    out->position.batch = stk_json_int(stk_json_get(root, "batch"), -1);
    out->position.loaded = true;
    if (out->step < 0 || out->position.epoch < 0 || out->position.batch < 0)
        status = stk_fail(err, STK_ERR_FORMAT,
                          "%s: step, epoch or batch is missing; this is no checkpoint of training",
                          path);
    if (status == STK_OK)
        status = read_states(stk_json_get(root, "callbacks"), &out->position, err);
    if (status == STK_OK && !(out->history = stk_history_new()))
        status = stk_fail_memory(err, "history", 64);
    if (status == STK_OK && history) status = stk_history_read(out->history, history, err);
    stk_json_release(document);
    return status;
}

static stk_status read_rest(const stk_container *c, loaded *out, stk_error *err)
{
    for (int64_t i = 0; i < c->list.count; i++) {
        const stk_named *n = &c->list.items[i];
        if (!strncmp(n->name, "best/", 5))
            STK_TRY(stk_named_add(&out->best, n->name + 5, stk_tensor_retain(n->tensor), err));
        if (strcmp(n->name, "data") != 0) continue;
        size_t size = (size_t)stk_tensor_bytes(n->tensor);
        if (!(out->position.data = stk_malloc(size + 1))) return stk_fail_memory(err, "data", size);
        memcpy(out->position.data, n->tensor->data, size);
        out->position.data_size = size;
    }
    return STK_OK;
}

static void release_loaded(loaded *l)
{
    stk_free(l->position.data);
    stk_free(l->position.states);
    stk_history_release(l->history);
    stk_named_release(&l->best);
}

/* The order of the rows and what layers draw hang on the seed, the place inside an epoch on the size of a batch. */
static stk_status check_run(const stk_trainer *t, const char *path, const loaded *l, stk_error *err)
{
    if (strcmp(l->optimizer, optimizer_name(t)) != 0)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: was made with optimizer %s, here it is %s; give the same one", path,
                        l->optimizer, optimizer_name(t));
    if (l->seed != t->seed)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: was made with seed %" PRId64 ", here it is %" PRId64
                        "; give the same one",
                        path, l->seed, t->seed);
    if (t->fit && l->position.batch > 0 && l->rows != t->fit->o->batch)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: stands inside an epoch of batches of %" PRId64
                        " rows, here they have %" PRId64 "; give the same size",
                        path, l->rows, t->fit->o->batch);
    return STK_OK;
}

/* State that exists here and did not yet when the checkpoint was made: it was zero then. */
static stk_status clear_rest(stk_trainer *t, const stk_container *c, stk_error *err)
{
    for (int32_t i = 0; i < stk_store_count(t->store); i++) {
        char name[NAME_ROOM];
        stk_tensor *copy = NULL;
        snprintf(name, sizeof name, "store/%s", stk_store_name(t->store, i));
        if (stk_named_find(&c->list, name)) continue;
        STK_TRY(stk_store_get(t->store, name + 6, &copy, err));
        memset(copy->data, 0, (size_t)stk_tensor_bytes(copy));
        stk_status status = stk_store_set(t->store, name + 6, copy, err);
        stk_tensor_release(copy);
        STK_TRY(status);
    }
    return STK_OK;
}

/* Nothing can fail any more but the device. */
static stk_status take_over(stk_trainer *t, const stk_container *c, loaded *l, stk_error *err)
{
    for (int64_t i = 0; i < c->list.count; i++)
        if (!strncmp(c->list.items[i].name, "store/", 6))
            STK_TRY(
                stk_store_set(t->store, c->list.items[i].name + 6, c->list.items[i].tensor, err));
    STK_TRY(clear_rest(t, c, err));
    loaded old = {.position = t->position, .history = t->history, .best = t->best};
    t->position = l->position;
    t->history = l->history;
    t->best = l->best;
    t->step = l->step;
    *l = old;
    return STK_OK;
}

stk_status stk_trainer_load(stk_trainer *t, const char *path, stk_error *err)
{
    if (!t || !path)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_load: trainer and path must be given");
    stk_container c;
    loaded l = {.step = 0};
    STK_TRY(stk_container_load(path, &c, err));
    stk_status status = check_store(t, path, &c, err);
    if (status == STK_OK) status = read_text(path, &c, &l, err);
    if (status == STK_OK) status = check_run(t, path, &l, err);
    if (status == STK_OK) status = read_rest(&c, &l, err);
    if (status == STK_OK) status = take_over(t, &c, &l, err);
    release_loaded(&l);
    stk_container_release(&c);
    return status;
}

/* ---- weights out of either kind of file ------------------------------------------------------------------------------ */

static bool is_checkpoint(const char *path)
{
    stk_bytes bytes;
    char start[8] = "";
    if (stk_bytes_open(path, &bytes, NULL) != STK_OK) return false;
    bool read = stk_bytes_read(&bytes, 0, start, sizeof start, NULL) == STK_OK;
    stk_bytes_close(&bytes);
    return read && !memcmp(start, "STKCKPT\n", sizeof start);
}

/* What a run that went wrong has written: nothing that is computed with it is a number. */
static stk_status check_numbers(const char *path, const char *name, const stk_tensor *t,
                                stk_error *err)
{
    int64_t count = stk_tensor_count(t), bad = 0, first = 0;
    if (!stk_dtype_is_float(t->dtype)) return STK_OK;
    for (int64_t i = count - 1; i >= 0; i--)
        if (isnan(stk_tensor_at(t, i))) {
            bad++;
            first = i;
        }
    if (!bad) return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: %" PRId64 " of the %" PRId64
                    " numbers of '%s' are NaN, the first is number "
                    "%" PRId64 "; the run that wrote them had gone wrong, use older weights",
                    path, bad, count, name, first);
}

static stk_status set_weights(stk_trainer *t, const char *path, int64_t n, const char *const *names,
                              stk_tensor *const *tensors, bool partial, stk_error *err)
{
    for (int64_t i = 0; i < n; i++) STK_TRY(check_numbers(path, names[i], tensors[i], err));
    stk_status status =
        stk_model_set_weights(t->model, t->store, (int32_t)n, names, tensors, partial, err);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "%s", path);
}

static stk_status load_checkpoint(stk_trainer *t, const char *path, bool partial, stk_error *err)
{
    stk_container c;
    STK_TRY(stk_container_load(path, &c, err));
    const char **names = stk_calloc((size_t)c.list.count + 1, sizeof *names);
    stk_tensor **tensors = stk_calloc((size_t)c.list.count + 1, sizeof *tensors);
    int64_t n = 0;
    stk_status status = names && tensors ? STK_OK : stk_fail_memory(err, path, 0);
    for (int64_t i = 0; status == STK_OK && i < c.list.count; i++) {
        const char *name = c.list.items[i].name;
        if (strncmp(name, "store/", 6) || stk_model_find_weight(t->model, name + 6) < 0) continue;
        names[n] = name + 6;
        tensors[n++] = c.list.items[i].tensor;
    }
    if (status == STK_OK) status = set_weights(t, path, n, names, tensors, partial, err);
    stk_free(names);
    stk_free(tensors);
    stk_container_release(&c);
    return status;
}

static stk_status load_keras(stk_trainer *t, const char *path, stk_error *err)
{
    stk_keras *file = NULL;
    STK_TRY(stk_keras_open(path, &file, err));
    stk_status status = stk_keras_weights(file, t, err);
    stk_keras_release(file);
    return status;
}

stk_status stk_trainer_load_weights(stk_trainer *t, const char *path, bool partial, stk_error *err)
{
    if (!t || !path)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_trainer_load_weights: trainer and path must be given");
    if (is_checkpoint(path)) return load_checkpoint(t, path, partial, err);
    if (stk_keras_is_file(path)) return load_keras(t, path, err);
    stk_safetensors *file = NULL;
    STK_TRY(stk_safetensors_load(path, &file, err));
    int32_t n = stk_safetensors_count(file);
    const char **names = stk_calloc((size_t)n + 1, sizeof *names);
    stk_tensor **tensors = stk_calloc((size_t)n + 1, sizeof *tensors);
    stk_status status = names && tensors ? STK_OK : stk_fail_memory(err, path, 0);
    for (int32_t i = 0; status == STK_OK && i < n; i++) {
        names[i] = stk_safetensors_name(file, i);
        tensors[i] = stk_safetensors_tensor(file, i);
    }
    if (status == STK_OK) status = set_weights(t, path, n, names, tensors, partial, err);
    stk_free(names);
    stk_free(tensors);
    stk_safetensors_release(file);
    return status;
}
