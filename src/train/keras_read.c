/* keras_read.c - models, weights and optimizer state out of files of Keras. */
#include "train/keras_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "base/zip.h"

#include <stdio.h>
#include <string.h>

enum { ZIP_FILE = 1, HDF5_FILE };

static int kind_of(const char *path)
{
    static const char zip[4] = {'P', 'K', 3, 4};
    static const char hdf5[8] = {(char)0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    stk_bytes bytes;
    char start[8] = "";
    if (stk_bytes_open(path, &bytes, NULL) != STK_OK) return 0;
    bool read = stk_bytes_read(&bytes, 0, start, sizeof start, NULL) == STK_OK;
    stk_bytes_close(&bytes);
    if (read && !memcmp(start, hdf5, sizeof hdf5)) return HDF5_FILE;
    return read && !memcmp(start, zip, sizeof zip) ? ZIP_FILE : 0;
}

bool stk_keras_is_file(const char *path) { return path && kind_of(path) != 0; }

/* ---- the model ------------------------------------------------------------------------------------------------------ */

/* text may be NULL: there is none. */
static stk_status read_compiled(stk_keras *f, const char *text, bool whole, stk_error *err)
{
    stk_json_document *document = NULL;
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    if (!text) return STK_OK;
    STK_TRY(stk_json_parse(text, strlen(text), &options, &document, err));
    const stk_json *root = stk_json_root(document);
    const stk_json *config = whole ? stk_json_get(root, "compile_config") : root;
    stk_status status = STK_OK;
    if (config && config->kind == STK_JSON_OBJECT)
        status = stk_compiled_read(config, f->model, &f->compiled, err);
    stk_json_release(document);
    return status;
}

static stk_status read_model(stk_keras *f, const char *config, const char *compiled, stk_error *err)
{
    STK_TRY(stk_model_from_json(config, strlen(config), &f->model, err));
    if (!stk_model_is_built(f->model))
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "model '%s' has no input shape; give it an Input and save it again",
                        stk_model_name(f->model));
    return read_compiled(f, compiled ? compiled : config, !compiled, err);
}

/* ---- .keras ----------------------------------------------------------------------------------------------------------- */

static stk_status read_member(const stk_zip *zip, const char *path, const char *name, void **data,
                              size_t *size, stk_error *err)
{
    int64_t i = stk_zip_find(zip, name);
    stk_zip_stream *stream = NULL;
    if (i < 0)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: has no %s inside; this is no model that Keras 3 saved", path, name);
    *size = (size_t)stk_zip_size(zip, i);
    char *bytes = stk_malloc(*size + 1);
    if (!(*data = bytes)) return stk_fail_memory(err, path, *size);
    STK_TRY(stk_zip_stream_open(zip, i, &stream, err));
    stk_status status = stk_zip_stream_read(stream, bytes, *size, err);
    if (status == STK_OK) status = stk_zip_stream_verify(stream, err);
    stk_zip_stream_release(stream);
    bytes[*size] = 0;
    return status;
}

static stk_status open_zip(stk_keras *f, stk_error *err)
{
    stk_zip *zip = NULL;
    void *config = NULL;
    size_t size = 0;
    STK_TRY(stk_zip_open(f->path, &zip, err));
    stk_status status = read_member(zip, f->path, "config.json", &config, &size, err);
    if (status == STK_OK) status = read_model(f, config, NULL, err);
    if (status == STK_OK && stk_zip_find(zip, "model.weights.npz") >= 0)
        status = stk_fail(err, STK_ERR_UNSUPPORTED,
                          "its weights are kept as .npz; save the model with Keras' defaults");
    if (status == STK_OK)
        status = read_member(zip, f->path, "model.weights.h5", &f->bytes, &size, err);
    if (status == STK_OK) status = stk_h5_parse(f->path, f->bytes, size, &f->h5, err);
    stk_free(config);
    stk_zip_release(zip);
    return status;
}

/* ---- .h5 -------------------------------------------------------------------------------------------------------------- */

static stk_status open_hdf5(stk_keras *f, stk_error *err)
{
    static const uint64_t LARGEST = 1ull << 40;
    size_t size = 0;
    char *config = NULL, *compiled = NULL, **names = NULL;
    int64_t n = 0;
    STK_TRY(stk_file_read(f->path, LARGEST, (char **)&f->bytes, &size, err));
    STK_TRY(stk_h5_parse(f->path, f->bytes, size, &f->h5, err));
    bool inside = stk_h5_has(f->h5, "model_weights");
    STK_TRY(stk_h5_texts(f->h5, inside ? "model_weights" : "", "layer_names", &names, &n, err));
    f->legacy = inside || names;
    f->root = inside ? "model_weights/" : "";
    stk_h5_texts_free(names, n);
    stk_status status = stk_h5_text(f->h5, "", "model_config", &config, err);
    if (status == STK_OK) status = stk_h5_text(f->h5, "", "training_config", &compiled, err);
    if (status == STK_OK && config) status = read_model(f, config, compiled ? compiled : "{}", err);
    stk_free(config);
    stk_free(compiled);
    return status;
}

stk_status stk_keras_open(const char *path, stk_keras **out, stk_error *err)
{
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_keras_open: path and out must be given");
    *out = NULL;
    stk_keras *f = stk_calloc(1, sizeof *f);
    if (!f || !(f->path = stk_strdup(path))) {
        stk_free(f);
        return stk_fail_memory(err, path, sizeof *f);
    }
    int kind = kind_of(path);
    stk_error why = {.code = STK_OK};
    stk_status status = kind == ZIP_FILE    ? open_zip(f, &why)
                        : kind == HDF5_FILE ? open_hdf5(f, &why)
                                            : STK_ERR_FORMAT;
    if (!kind) {
        stk_bytes bytes; /* why it could not be looked into, if so */
        status = stk_bytes_open(path, &bytes, &why);
        if (status == STK_OK) {
            stk_bytes_close(&bytes);
            status = stk_fail(&why, STK_ERR_FORMAT,
                              "%s: is neither a .keras archive nor an HDF5 file", path);
        }
    }
    if (status == STK_OK) {
        *out = f;
        return STK_OK;
    }
    stk_keras_release(f);
    if (err) *err = why;
    return strncmp(why.message, path, strlen(path)) ? stk_fail_in(err, status, "%s", path) : status;
}

void stk_keras_release(stk_keras *f)
{
    if (!f) return;
    stk_h5_close(f->h5);
    stk_model_release(f->model);
    stk_compiled_release(&f->compiled);
    stk_free(f->bytes);
    stk_free(f->path);
    stk_free(f);
}

stk_model *stk_keras_model(const stk_keras *f) { return f ? f->model : NULL; }

bool stk_keras_compiled(const stk_keras *f, stk_trainer_options *how)
{
    if (!f || !f->compiled.loss) return false;
    how->loss = f->compiled.loss;
    how->metrics = f->compiled.metrics ? f->compiled.metrics : "";
    how->loss_weights = f->compiled.loss_weights;
    if (f->compiled.optimizer) how->optimizer = f->compiled.optimizer;
    return true;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

int32_t stk_layer_weights(const stk_model *m, const char *layer, int32_t *out)
{
    int32_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
            stk_weight w = stk_model_weight(m, i);
            if (w.trainable == (pass == 0) && !strcmp(w.layer, layer)) out[n++] = i;
        }
    return n;
}

typedef struct taken {
    const char **names;
    stk_tensor **tensors;
    int32_t n;
} taken;

static stk_status take(const stk_keras *f, const char *path, const char *weight, taken *to,
                       stk_error *err)
{
    STK_TRY(stk_h5_read(f->h5, path, &to->tensors[to->n], err));
    to->names[to->n++] = weight;
    return STK_OK;
}

/* Keras' own words for it are hard to find: which layer, what the file has instead. */
static stk_status missing(const stk_keras *f, const stk_weight *w, const char *place,
                          stk_error *err)
{
    return stk_fail(
        err, STK_ERR_SHAPE,
        "%s: has no '%s', which should be weight '%s'; the file belongs to another model", f->path,
        place, w->name);
}

static stk_status read_places(const stk_keras *f, const stk_model *m, taken *to, stk_error *err)
{
    for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
        char place[STK_PLACE];
        stk_weight w = stk_model_weight(m, i);
        if (!stk_model_weight_path(m, i, place, sizeof place) || !stk_h5_has(f->h5, place))
            return missing(f, &w, place, err);
        STK_TRY(take(f, place, w.name, to, err));
    }
    return STK_OK;
}

static stk_status read_legacy_layer(const stk_keras *f, const stk_model *m, const char *layer,
                                    const char *stored, const int32_t *weights, int32_t count,
                                    taken *to, stk_error *err)
{
    char group[STK_PLACE], path[2 * STK_PLACE], **names = NULL;
    int64_t n = 0;
    snprintf(group, sizeof group, "%s%s", f->root, stored);
    STK_TRY(stk_h5_texts(f->h5, group, "weight_names", &names, &n, err));
    stk_status status = STK_OK;
    if (n != count)
        status = stk_fail(err, STK_ERR_SHAPE,
                          "%s: layer '%s' has %lld weights there, layer '%s' of the model %d",
                          f->path, stored, (long long)n, layer, count);
    for (int32_t i = 0; status == STK_OK && i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", group, names[i]);
        status = take(f, path, stk_model_weight(m, weights[i]).name, to, err);
    }
    stk_h5_texts_free(names, n);
    return status;
}

/* Layers with weights, one after the other, whatever their names are: as Keras does. */
static stk_status read_legacy(const stk_keras *f, const stk_model *m, int32_t *weights, taken *to,
                              stk_error *err)
{
    char **layers = NULL, group[STK_PLACE];
    int64_t n = 0, at = 0;
    snprintf(group, sizeof group, "%.*s", (int)(*f->root ? strlen(f->root) - 1 : 0), f->root);
    STK_TRY(stk_h5_texts(f->h5, group, "layer_names", &layers, &n, err));
    stk_status status = STK_OK;
    for (int32_t i = 0; status == STK_OK && i < stk_model_layer_count(m); i++) {
        const char *layer = stk_model_layer_name(m, i);
        int32_t count = stk_layer_weights(m, layer, weights);
        if (!count) continue;
        for (; at < n; at++) { /* the next one there that has any */
            snprintf(group, sizeof group, "%s%s", f->root, layers[at]);
            if (stk_h5_count(f->h5, group) > 0) break;
        }
        status = at < n ? read_legacy_layer(f, m, layer, layers[at], weights, count, to, err)
                        : stk_fail(err, STK_ERR_SHAPE, "%s: has no weights for layer '%s'", f->path,
                                   layer);
        at++;
    }
    stk_h5_texts_free(layers, n);
    return status;
}

stk_status stk_keras_weights(const stk_keras *f, stk_trainer *t, stk_error *err)
{
    if (!f || !t)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_keras_weights: file and trainer must be given");
    const stk_model *m = t->model;
    size_t n = (size_t)stk_model_weight_count(m) + 1;
    taken to = {stk_calloc(n, sizeof *to.names), stk_calloc(n, sizeof *to.tensors), 0};
    int32_t *weights = stk_calloc(n, sizeof *weights);
    stk_status status =
        to.names && to.tensors && weights ? STK_OK : stk_fail_memory(err, f->path, n * 16);
    if (status == STK_OK)
        status = f->legacy ? read_legacy(f, m, weights, &to, err) : read_places(f, m, &to, err);
    if (status == STK_OK) {
        status = stk_model_set_weights(m, t->store, to.n, to.names, to.tensors, false, err);
        if (status != STK_OK) stk_fail_in(err, status, "%s", f->path);
    }
    for (int32_t i = 0; to.tensors && i < (int32_t)n; i++) stk_tensor_release(to.tensors[i]);
    stk_free(to.names);
    stk_free(to.tensors);
    stk_free(weights);
    return status;
}

/* ---- the optimizer --------------------------------------------------------------------------------------------------------- */

stk_status stk_trained_names(const stk_model *m, const char ***out, int32_t *count, stk_error *err)
{
    int32_t n = stk_model_weight_count(m);
    *count = 0;
    if (!(*out = stk_calloc((size_t)n + 1, sizeof **out)))
        return stk_fail_memory(err, "names of weights", (size_t)n * sizeof **out);
    for (int32_t i = 0; i < n; i++) {
        stk_weight w = stk_model_weight(m, i);
        if (w.trainable) (*out)[(*count)++] = w.name;
    }
    return STK_OK;
}

typedef struct state {
    const stk_keras *file;
    stk_trainer *t;
    const char **weights; /* names of those that are trained */
    char **stored;        /* legacy: paths by number */
    int64_t count, at;
    bool set; /* else only looked whether it fits */
    bool fits;
    int64_t iteration;
} state;

/* A variable's path in the file. */
static void place_of(const state *s, char path[STK_PLACE])
{
    if (s->stored)
        snprintf(path, STK_PLACE, "optimizer_weights/%s", s->stored[s->at]);
    else
        snprintf(path, STK_PLACE, "optimizer/vars/%lld", (long long)s->at);
}

static bool same_shape(stk_trainer *t, const char *weight, const stk_tensor *v)
{
    int32_t i = weight ? stk_model_find_weight(t->model, weight) : -1;
    if (i < 0) return stk_tensor_count(v) == 1;
    stk_weight w = stk_model_weight(t->model, i);
    return w.rank == v->rank && !memcmp(w.shape, v->shape, (size_t)w.rank * sizeof *w.shape);
}

static stk_status visit_state(void *context, const char *name, int32_t weight, const char *slot,
                              stk_error *err)
{
    state *s = context;
    char path[STK_PLACE];
    stk_tensor *v = NULL, *own = NULL;
    if (s->at >= s->count) s->fits = false;
    if (!s->fits) return STK_OK;
    place_of(s, path);
    STK_TRY(stk_h5_read(s->file->h5, path, &v, err));
    s->at++;
    s->fits = same_shape(s->t, weight < 0 ? NULL : s->weights[weight], v);
    if (!strcmp(slot, "iteration")) s->iteration = (int64_t)stk_tensor_at(v, 0);
    stk_status status = STK_OK;
    if (s->set && s->fits) {
        stk_dtype dtype = !strcmp(slot, "iteration") ? STK_I64 : weight < 0 ? STK_F32 : v->dtype;
        status = stk_tensor_cast(v, dtype, &own, err);
        if (status == STK_OK) status = stk_store_set(s->t->store, name, own, err);
    }
    stk_tensor_release(own);
    stk_tensor_release(v);
    return status;
}

static stk_status walk_state(state *s, int32_t n, bool set, stk_error *err)
{
    s->at = 0;
    s->set = set;
    s->fits = true;
    STK_TRY(stk_optimizer_variables(s->t->optimizer, n, s->weights, visit_state, s, err));
    s->fits = s->fits && s->at == s->count;
    return STK_OK;
}

stk_status stk_keras_restore(const stk_keras *f, stk_trainer *t, bool *optimizer, stk_error *err)
{
    int32_t n = 0;
    state s = {.file = f, .t = t};
    if (optimizer) *optimizer = false;
    STK_TRY(stk_keras_weights(f, t, err));
    if (f->legacy)
        STK_TRY(stk_h5_texts(f->h5, "optimizer_weights", "weight_names", &s.stored, &s.count, err));
    else
        s.count = stk_h5_count(f->h5, "optimizer/vars");
    stk_status status = STK_OK;
    if (s.count) status = stk_trained_names(t->model, &s.weights, &n, err);
    if (s.count && status == STK_OK) status = walk_state(&s, n, false, err);
    if (s.count && status == STK_OK && s.fits) {
        status = walk_state(&s, n, true, err);
        t->step = s.iteration;
        if (optimizer) *optimizer = status == STK_OK;
    }
    if (s.stored) stk_h5_texts_free(s.stored, s.count);
    stk_free(s.weights);
    return status;
}
