/* keras_write.c - models, weights and optimizer state into files that Keras loads. */
#include "train/keras_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "base/zip.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* What the files say they were written by; Keras looks at it for the layout alone. */
#define KERAS_VERSION "3.12.0"

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

bool stk_keras_is_name(const char *path)
{
    return path && (ends(path, ".keras") || ends(path, ".h5"));
}

/* ---- numbers: `place` says where ----------------------------------------------------------------------------------------- */

static stk_status write_variable(stk_h5 *h, stk_trainer *t, const char *name, const char *place,
                                 stk_error *err)
{
    stk_tensor *copy = NULL;
    STK_TRY(stk_store_get(t->store, name, &copy, err));
    stk_status status = stk_h5_write(h, place, copy, err);
    stk_tensor_release(copy);
    return status;
}

static stk_status write_weights(stk_h5 *h, stk_trainer *t, stk_error *err)
{
    for (int32_t i = 0; i < stk_model_weight_count(t->model); i++) {
        char place[STK_PLACE];
        const char *name = stk_model_weight(t->model, i).name;
        if (!stk_model_weight_path(t->model, i, place, sizeof place))
            return stk_fail(err, STK_ERR_RANGE, "weight '%s': its name is too long", name);
        STK_TRY(write_variable(h, t, name, place, err));
        if (stk_model_weight_second_path(t->model, i, place, sizeof place))
            STK_TRY(write_variable(h, t, name, place, err));
    }
    return STK_OK;
}

typedef struct states {
    stk_h5 *h;
    stk_trainer *t;
    const char **weights;
    bool legacy;
    stk_trainer_words stored; /* legacy: names below optimizer_weights */
    int64_t count;
} states;

/* Zeros of the weight's shape stand for state that no step has made yet. */
static stk_status get_state(states *s, const char *name, int32_t weight, stk_tensor **out,
                            stk_error *err)
{
    if (stk_store_get(s->t->store, name, out, NULL) == STK_OK) return STK_OK;
    if (weight < 0) return stk_tensor_scalar(STK_F32, 0, out, err);
    STK_TRY(stk_store_get(s->t->store, s->weights[weight], out, err));
    memset((*out)->data, 0, (size_t)stk_tensor_bytes(*out));
    return STK_OK;
}

static stk_status visit_state(void *context, const char *name, int32_t weight, const char *slot,
                              stk_error *err)
{
    states *s = context;
    char place[STK_PLACE];
    stk_tensor *v = NULL;
    (void)slot;
    if (s->legacy)
        snprintf(place, sizeof place, "optimizer_weights/%s", name);
    else
        snprintf(place, sizeof place, "optimizer/vars/%lld", (long long)s->count);
    s->count++;
    if (s->legacy) {
        stk_trainer_words *w = &s->stored;
        if (!STK_GROW(w->items, w->count, w->capacity) ||
            !(w->items[w->count].text = stk_strdup(name)))
            return stk_fail_memory(err, "optimizer state", sizeof *w->items);
        w->count++;
    }
    STK_TRY(get_state(s, name, weight, &v, err));
    stk_status status = stk_h5_write(s->h, place, v, err);
    stk_tensor_release(v);
    return status;
}

static stk_status write_states(stk_h5 *h, stk_trainer *t, bool legacy, stk_error *err)
{
    int32_t n = 0;
    states s = {.h = h, .t = t, .legacy = legacy};
    if (!t->made.loss || !*t->made.loss) return STK_OK; /* nothing that was trained */
    stk_status status = stk_trained_names(t->model, &s.weights, &n, err);
    if (status == STK_OK)
        status = stk_optimizer_variables(t->optimizer, n, s.weights, visit_state, &s, err);
    const char **names = stk_calloc((size_t)s.stored.count + 1, sizeof *names);
    if (status == STK_OK && !names) status = stk_fail_memory(err, "optimizer state", 0);
    for (int64_t i = 0; status == STK_OK && i < s.stored.count; i++)
        names[i] = s.stored.items[i].text;
    if (status == STK_OK && legacy)
        status =
            stk_h5_put_texts(h, "optimizer_weights", "weight_names", names, s.stored.count, err);
    stk_free(names);
    stk_trainer_words_release(&s.stored);
    stk_free(s.weights);
    return status;
}

/* ---- .weights.h5 and .keras -------------------------------------------------------------------------------------------------- */

static stk_status make_weights(stk_trainer *t, const char *path, void **data, size_t *size,
                               stk_error *err)
{
    stk_h5 *h = NULL;
    STK_TRY(stk_h5_create(path, &h, err));
    stk_status status = write_weights(h, t, err);
    if (status == STK_OK) status = stk_h5_group(h, "vars", err);
    if (status == STK_OK) status = write_states(h, t, false, err);
    if (status == STK_OK) status = stk_h5_image(h, data, size, err);
    stk_h5_close(h);
    return status;
}

/* The model's JSON with what it was compiled with; `legacy` leaves that out, it stands beside. */
static stk_status make_config(const stk_trainer *t, bool legacy, char **out, stk_error *err)
{
    char *plain = NULL;
    size_t size = 0;
    stk_json_document *document = NULL;
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    STK_TRY(stk_model_to_json(t->model, 0, &plain, err));
    stk_status status = stk_json_parse(plain, strlen(plain), &options, &document, err);
    stk_text_free(plain);
    STK_TRY(status);
    const stk_json *root = stk_json_root(document);
    stk_json_writer w = {.allow_nonfinite = true};
    stk_json_begin_object(&w);
    for (int64_t i = 0; status == STK_OK && i < root->count; i++) {
        bool compiled = !strcmp(root->items[i].name, "compile_config");
        if (compiled && legacy) continue;
        stk_json_name(&w, root->items[i].name);
        if (compiled)
            status = stk_compiled_write(t, false, &w, err);
        else
            stk_json_put_tree(&w, &root->items[i]);
    }
    stk_json_release(document);
    if (status != STK_OK) {
        stk_json_discard(&w);
        return status;
    }
    stk_json_end_object(&w);
    return stk_json_finish(&w, out, &size, err);
}

static stk_status save_zip(stk_trainer *t, const char *path, stk_error *err)
{
    char *config = NULL, metadata[128], date[32] = "";
    void *weights = NULL;
    size_t size = 0;
    stk_zip_writer zip;
    time_t now = time(NULL);
    struct tm split;
    if (gmtime_r(&now, &split)) strftime(date, sizeof date, "%Y-%m-%d@%H:%M:%S", &split);
    snprintf(metadata, sizeof metadata,
             "{\"keras_version\": \"" KERAS_VERSION "\", \"date_saved\": \"%s\"}", date);
    stk_status status = make_config(t, false, &config, err);
    if (status == STK_OK) status = make_weights(t, path, &weights, &size, err);
    bool opened = false;
    if (status == STK_OK) {
        status = stk_zip_create(path, &zip, err);
        opened = status == STK_OK;
    }
    const struct {
        const char *name;
        stk_zip_piece piece;
    } members[] = {{"metadata.json", {metadata, strlen(metadata)}},
                   {"config.json", {config, config ? strlen(config) : 0}},
                   {"model.weights.h5", {weights, size}}};
    for (size_t i = 0; status == STK_OK && i < sizeof members / sizeof *members; i++)
        status = stk_zip_add(&zip, members[i].name, false, &members[i].piece, 1, err);
    if (status == STK_OK)
        status = stk_zip_commit(&zip, err);
    else if (opened)
        stk_zip_abandon(&zip);
    stk_free(config);
    stk_free(weights);
    return status;
}

static stk_status save_bytes(const char *path, const void *data, size_t size, stk_error *err)
{
    stk_file_writer w = {.fd = -1};
    STK_TRY(stk_file_create(path, &w, err));
    stk_status status = stk_file_write(&w, data, size, err);
    if (status == STK_OK) return stk_file_commit(&w, err);
    stk_file_abandon(&w);
    return status;
}

/* ---- .h5 ------------------------------------------------------------------------------------------------------------------------ */

static stk_status write_layer(stk_h5 *h, stk_trainer *t, const char *layer, int32_t *weights,
                              const char **names, stk_error *err)
{
    char group[STK_PLACE / 2], path[STK_PLACE];
    int32_t n = layer ? stk_layer_weights(t->model, layer, weights) : 0;
    snprintf(group, sizeof group, "model_weights/%s", layer ? layer : "top_level_model_weights");
    STK_TRY(stk_h5_group(h, group, err));
    for (int32_t i = 0; i < n; i++) {
        names[i] = stk_model_weight(t->model, weights[i]).name;
        snprintf(path, sizeof path, "%s/%s", group, names[i]);
        STK_TRY(write_variable(h, t, names[i], path, err));
    }
    return stk_h5_put_texts(h, group, "weight_names", names, n, err);
}

static stk_status write_layers(stk_h5 *h, stk_trainer *t, stk_error *err)
{
    int32_t layers = stk_model_layer_count(t->model), n = 0;
    size_t room = (size_t)stk_model_weight_count(t->model) + (size_t)layers + 1;
    int32_t *weights = stk_calloc(room, sizeof *weights);
    const char **names = stk_calloc(room, sizeof *names), **all = stk_calloc(room, sizeof *all);
    stk_status status =
        weights && names && all ? STK_OK : stk_fail_memory(err, "weights", room * 8);
    for (int32_t i = 0; status == STK_OK && i < layers; i++) {
        all[n++] = stk_model_layer_name(t->model, i);
        status = write_layer(h, t, all[n - 1], weights, names, err);
    }
    if (status == STK_OK) status = write_layer(h, t, NULL, weights, names, err);
    if (status == STK_OK) status = stk_h5_put_texts(h, "model_weights", "layer_names", all, n, err);
    stk_free(weights);
    stk_free(names);
    stk_free(all);
    return status;
}

static stk_status write_description(stk_h5 *h, stk_trainer *t, stk_error *err)
{
    static const char *const groups[] = {"", "model_weights"};
    char *config = NULL, *compiled = NULL;
    size_t size = 0;
    stk_json_writer w = {.allow_nonfinite = true};
    stk_status status = make_config(t, true, &config, err);
    if (status == STK_OK) status = stk_h5_put_text(h, "", "model_config", config, err);
    for (int i = 0; status == STK_OK && i < 2; i++) {
        status = stk_h5_put_text(h, groups[i], "keras_version", KERAS_VERSION, err);
        if (status == STK_OK) status = stk_h5_put_text(h, groups[i], "backend", "tensorflow", err);
    }
    if (status == STK_OK && t->made.loss && *t->made.loss) {
        status = stk_compiled_write(t, true, &w, err);
        if (status == STK_OK) status = stk_json_finish(&w, &compiled, &size, err);
        if (status == STK_OK) status = stk_h5_put_text(h, "", "training_config", compiled, err);
    }
    stk_json_discard(&w);
    stk_free(config);
    stk_free(compiled);
    return status;
}

static stk_status make_legacy(stk_trainer *t, const char *path, void **data, size_t *size,
                              stk_error *err)
{
    stk_h5 *h = NULL;
    STK_TRY(stk_h5_create(path, &h, err));
    stk_status status = write_layers(h, t, err);
    if (status == STK_OK) status = write_description(h, t, err);
    if (status == STK_OK) status = write_states(h, t, true, err);
    if (status == STK_OK) status = stk_h5_image(h, data, size, err);
    stk_h5_close(h);
    return status;
}

stk_status stk_trainer_save_keras(stk_trainer *t, const char *path, stk_error *err)
{
    void *data = NULL;
    size_t size = 0;
    if (!t || !path)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_trainer_save_keras: trainer and path must be given");
    if (!stk_keras_is_name(path))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: its name says no kind; end it in .keras, .weights.h5 or .h5", path);
    if (ends(path, ".keras")) return save_zip(t, path, err);
    stk_status status = ends(path, ".weights.h5") ? make_weights(t, path, &data, &size, err)
                                                  : make_legacy(t, path, &data, &size, err);
    if (status == STK_OK) status = save_bytes(path, data, size, err);
    stk_free(data);
    return status;
}
