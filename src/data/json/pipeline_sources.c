/* Readers of pipeline files for sources of files and the functions that open records.
 *
 *     {"op": "tfrecord", "files": "train-*.tfrecord", "bad": "skip"}
 *     {"op": "text_lines", "files": ["a.txt", "b.txt"]}
 *     {"op": "fixed_records", "files": "*.bin", "bytes": 3073}
 *     {"op": "csv", "file": "points.csv", "label": "y", "stack": true, "columns": ["a", "b", "y"]}
 *     {"op": "npz", "file": "mnist.npz", "arrays": ["x_train", "y_train"]}
 *     {"op": "image_folder", "path": "photos", "height": 224, "width": 224, "labels": "int"}
 *     {"op": "parse_example", "features": [{"name": "image", "kind": "raw", "dtype": "uint8", "shape": [32, 32, 3]}]}
 *     {"op": "decode_raw", "part": 0, "dtype": "uint8", "shape": [-1, 3]}
 *     {"op": "decode_image", "part": 0, "channels": 3}
 *     {"op": "decode_csv", "columns": [{"number": 0, "dtype": "float32"}]} */
#include "base/resize_taps.h"
#include "data/json/pipeline.h"
#include "stoker/sources.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define KNOWN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* One of the words, by number. */
static stk_status option_word(const stk_json *op, const char *name, const char *const *words,
                              int32_t *value, stk_error *err)
{
    const char *text = NULL;
    STK_TRY(stk_option_text(op, name, &text, err));
    if (!text) return STK_OK;
    char list[200] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *value = i;
            return STK_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", words[i]);
    }
    return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"%s\" is \"%.40s\"; it takes one of%s", name,
                    text, list);
}

static stk_status option_dtype(const stk_json *op, stk_dtype *value, stk_error *err)
{
    const char *text = NULL;
    STK_TRY(stk_option_text(op, "dtype", &text, err));
    if (!text || stk_dtype_parse(text, value)) return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT, "pipeline: there is no dtype \"%.40s\"", text);
}

static stk_status option_shape(const stk_json *op, int32_t *rank, int64_t *shape, stk_error *err)
{
    const stk_json *list = stk_json_get(op, "shape");
    if (!list) return STK_OK;
    bool good = list->kind == STK_JSON_ARRAY && list->count <= STK_MAX_RANK;
    for (int64_t i = 0; good && i < list->count; i++) {
        good = list->items[i].kind == STK_JSON_INT && list->items[i].integer >= -1;
        shape[i] = list->items[i].integer;
    }
    if (!good)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"shape\" is a list of at most %d sizes",
                        STK_MAX_RANK);
    *rank = (int32_t)list->count;
    return STK_OK;
}

static bool full_path(const char *folder, const char *name, char *out, size_t size)
{
    int n = name[0] == '/' || !folder[0] ? snprintf(out, size, "%s", name)
                                         : snprintf(out, size, "%s/%s", folder, name);
    return n > 0 && (size_t)n < size;
}

static stk_status option_path(const stk_json *op, const char *name, const char *folder, char *out,
                              size_t size, stk_error *err)
{
    const char *text = NULL;
    STK_TRY(stk_option_text(op, name, &text, err));
    if (!text || !full_path(folder, text, out, size))
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: op \"%s\" needs \"%s\", a path",
                        stk_json_text(stk_json_get(op, "op"), "?"), name);
    return STK_OK;
}

/* ---- lists of files ------------------------------------------------------------------------------ */

static stk_status add_pattern(const stk_json *value, const char *folder, glob_t *found,
                              stk_error *err)
{
    char path[4096];
    const char *text = stk_json_text(value, NULL);
    if (!text || !full_path(folder, text, path, sizeof path))
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"files\" takes paths");
    int result = glob(path, found->gl_pathc ? GLOB_APPEND : 0, NULL, found);
    if (result == GLOB_NOSPACE) return stk_fail_memory(err, path, sizeof path);
    if (result != 0) return stk_fail(err, STK_ERR_IO, "pipeline: no file matches %s", path);
    return STK_OK;
}

static stk_status find_files(const stk_json *op, const char *folder, glob_t *found, stk_error *err)
{
    const stk_json *files = stk_json_get(op, "files");
    *found = (glob_t){0};
    if (!files)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: op \"%s\" needs \"files\"",
                        stk_json_text(stk_json_get(op, "op"), "?"));
    if (files->kind != STK_JSON_ARRAY) return add_pattern(files, folder, found, err);
    for (int64_t i = 0; i < files->count; i++)
        STK_TRY(add_pattern(&files->items[i], folder, found, err));
    return STK_OK;
}

static stk_dataset *make_records(const stk_json *op, const glob_t *g, stk_error *err)
{
    stk_record_options o = stk_record_options_defaults();
    int32_t bad = 0, packing = 0;
    if (stk_options_known(op, KNOWN("files", "bad", "quarantine", "compression", "verify"), err) ||
        option_word(op, "bad", KNOWN("stop", "skip", "quarantine"), &bad, err) ||
        option_word(op, "compression", KNOWN("auto", "none", "gzip", "zlib"), &packing, err) ||
        stk_option_text(op, "quarantine", &o.quarantine, err) ||
        stk_option_bool(op, "verify", &o.verify, err))
        return NULL;
    o.policy = (stk_bad_policy)bad;
    o.compression = (stk_compression)packing;
    return stk_data_tfrecord((int32_t)g->gl_pathc, (const char *const *)g->gl_pathv, &o, err);
}

static stk_dataset *make_lines(const stk_json *op, const glob_t *g, stk_error *err)
{
    if (stk_options_known(op, KNOWN("files"), err)) return NULL;
    return stk_data_text_lines((int32_t)g->gl_pathc, (const char *const *)g->gl_pathv, err);
}

static stk_dataset *make_fixed(const stk_json *op, const glob_t *g, stk_error *err)
{
    int64_t bytes = 0, header = 0, footer = 0;
    if (stk_options_known(op, KNOWN("files", "bytes", "header", "footer"), err) ||
        stk_option_int(op, "bytes", 1, INT64_MAX, &bytes, err) ||
        stk_option_int(op, "header", 0, INT64_MAX, &header, err) ||
        stk_option_int(op, "footer", 0, INT64_MAX, &footer, err))
        return NULL;
    return stk_data_fixed_records((int32_t)g->gl_pathc, (const char *const *)g->gl_pathv, bytes,
                                  header, footer, err);
}

static stk_dataset *with_files(const stk_json *op, const stk_pipeline *p,
                               stk_dataset *(*make)(const stk_json *, const glob_t *, stk_error *),
                               stk_error *err)
{
    glob_t found;
    stk_dataset *ds = NULL;
    if (find_files(op, p->folder, &found, err) == STK_OK) ds = make(op, &found, err);
    globfree(&found);
    // cppcheck-suppress returnDanglingLifetime ; the maker has copied the paths
    return ds;
}

stk_dataset *stk_read_tfrecord(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)in;
    return with_files(op, p, make_records, err);
}
stk_dataset *stk_read_text_lines(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                 stk_error *err)
{
    (void)in;
    return with_files(op, p, make_lines, err);
}
stk_dataset *stk_read_fixed_records(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                    stk_error *err)
{
    (void)in;
    return with_files(op, p, make_fixed, err);
}

/* ---- tables -------------------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 1024, MOST_FEATURES = 256 };

static stk_status read_column(const stk_json *item, stk_csv_column *c, stk_error *err)
{
    *c = (stk_csv_column){.dtype = STK_F32, .fallback = 0};
    if (item->kind == STK_JSON_STRING) {
        c->name = item->text;
        return STK_OK;
    }
    if (item->kind == STK_JSON_INT && item->integer >= 0 && item->integer < INT32_MAX) {
        c->number = (int32_t)item->integer;
        return STK_OK;
    }
    int64_t number = 0;
    if (item->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: a column is a name, a number or an object");
    STK_TRY(stk_options_known(
        item, KNOWN("name", "number", "dtype", "required", "fallback", "fallback_text"), err));
    STK_TRY(stk_option_text(item, "name", &c->name, err));
    STK_TRY(stk_option_int(item, "number", 0, INT32_MAX - 1, &number, err));
    STK_TRY(option_dtype(item, &c->dtype, err));
    STK_TRY(stk_option_bool(item, "required", &c->required, err));
    STK_TRY(stk_option_double(item, "fallback", &c->fallback, err));
    c->number = (int32_t)number;
    return stk_option_text(item, "fallback_text", &c->fallback_text, err);
}

/* Options that csv and decode_csv share. *columns is freed by the caller. */
static stk_status read_csv(const stk_json *op, stk_csv_options *o, stk_csv_column **columns,
                           stk_error *err)
{
    const char *delimiter = ",";
    *o = stk_csv_options_defaults();
    STK_TRY(stk_option_text(op, "delimiter", &delimiter, err));
    if (strlen(delimiter) != 1)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"delimiter\" is one character");
    o->delimiter = delimiter[0];
    STK_TRY(stk_option_bool(op, "header", &o->header, err));
    STK_TRY(stk_option_bool(op, "quotes", &o->quotes, err));
    STK_TRY(stk_option_int(op, "skip_lines", 0, INT64_MAX, &o->skip_lines, err));
    const stk_json *list = stk_json_get(op, "columns");
    if (!list) return STK_OK;
    if (list->kind != STK_JSON_ARRAY || list->count < 1 || list->count > MOST_COLUMNS)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"columns\" is a list of 1 to %d columns",
                        MOST_COLUMNS);
    *columns = stk_calloc((size_t)list->count, sizeof **columns);
    if (!*columns) return stk_fail_memory(err, "pipeline", 1024);
    for (int64_t i = 0; i < list->count; i++)
        STK_TRY(read_column(&list->items[i], &(*columns)[i], err));
    o->columns = *columns;
    o->column_count = (int32_t)list->count;
    return STK_OK;
}

stk_dataset *stk_read_csv(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)in;
    char path[4096];
    stk_csv_options o;
    stk_csv_column *columns = NULL;
    stk_csv_source how = {0};
    stk_dataset *ds = NULL;
    if (!stk_options_known(op,
                           KNOWN("file", "delimiter", "header", "quotes", "skip_lines", "columns",
                                 "label", "stack"),
                           err) &&
        !option_path(op, "file", p->folder, path, sizeof path, err) &&
        !stk_option_text(op, "label", &how.label, err) &&
        !stk_option_bool(op, "stack", &how.stack, err) && !read_csv(op, &o, &columns, err))
        ds = stk_data_csv(path, &o, &how, err);
    stk_free(columns);
    return ds;
}

stk_status stk_read_decode_csv(const stk_json *op, const char *folder, stk_map_fn *fn,
                               stk_error *err)
{
    (void)folder;
    stk_csv_options o;
    stk_csv_column *columns = NULL;
    stk_status status = stk_options_known(
        op, KNOWN("delimiter", "quotes", "columns", "parallel", "seed", "unordered"), err);
    if (status == STK_OK) status = read_csv(op, &o, &columns, err);
    if (status == STK_OK) status = stk_map_decode_csv(&o, fn, err);
    stk_free(columns);
    return status;
}

stk_dataset *stk_read_npz(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)in;
    char path[4096];
    const char *names[MOST_FEATURES];
    const stk_json *list = stk_json_get(op, "arrays");
    int64_t n = list && list->kind == STK_JSON_ARRAY ? list->count : 0;
    if (stk_options_known(op, KNOWN("file", "arrays"), err) ||
        option_path(op, "file", p->folder, path, sizeof path, err))
        return NULL;
    bool good = !list || (list->kind == STK_JSON_ARRAY && n <= MOST_FEATURES);
    for (int64_t i = 0; good && i < n; i++)
        good = (names[i] = stk_json_text(&list->items[i], NULL)) != NULL;
    if (!good) {
        (void)stk_fail(err, STK_ERR_FORMAT, "pipeline: \"arrays\" is a list of names");
        return NULL;
    }
    return stk_data_npz(path, (int32_t)n, names, err);
}

/* ---- pictures ------------------------------------------------------------------------------------ */

stk_dataset *stk_read_image_folder(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                   stk_error *err)
{
    (void)in;
    static const char *const methods[] = {
#define STK_RESIZE(NAME, name, doc) #name,
#include "stoker/resize.def"
        NULL};
    char path[4096];
    stk_image_folder_options o = stk_image_folder_options_defaults();
    int64_t channels = o.channels, seed = 0;
    int32_t labels = 0;
    if (stk_options_known(op,
                          KNOWN("path", "height", "width", "channels", "method", "antialias",
                                "keep_aspect", "scaled", "labels", "validation", "subset", "seed"),
                          err) ||
        option_path(op, "path", p->folder, path, sizeof path, err) ||
        stk_option_int(op, "height", 0, 1 << 20, &o.height, err) ||
        stk_option_int(op, "width", 0, 1 << 20, &o.width, err) ||
        stk_option_int(op, "channels", 0, 4, &channels, err) ||
        option_word(op, "method", methods, &o.method, err) ||
        stk_option_bool(op, "antialias", &o.antialias, err) ||
        stk_option_bool(op, "keep_aspect", &o.keep_aspect, err) ||
        stk_option_bool(op, "scaled", &o.scaled, err) ||
        option_word(op, "labels", KNOWN("int", "one_hot", "binary", "none"), &labels, err) ||
        stk_option_double(op, "validation", &o.validation, err) ||
        stk_option_int(op, "seed", 0, INT64_MAX, &seed, err))
        return NULL;
    int32_t subset = 0;
    if (option_word(op, "subset", KNOWN("training", "validation"), &subset, err)) return NULL;
    o.channels = (int32_t)channels;
    o.labels = (stk_label_mode)labels;
    o.seed = (uint64_t)seed;
    o.validation_part = subset == 1;
    return stk_data_image_folder(path, &o, err);
}

stk_status stk_read_decode_image(const stk_json *op, const char *folder, stk_map_fn *fn,
                                 stk_error *err)
{
    (void)folder;
    stk_picture_options o = stk_picture_options_defaults();
    int64_t part = 0, channels = 0;
    STK_TRY(stk_options_known(op,
                              KNOWN("part", "channels", "dtype", "top", "left", "height", "width",
                                    "least_height", "least_width", "accurate", "recover",
                                    "parallel", "seed", "unordered"),
                              err));
    STK_TRY(stk_option_int(op, "part", 0, 1 << 20, &part, err));
    STK_TRY(stk_option_int(op, "channels", 0, 4, &channels, err));
    STK_TRY(option_dtype(op, &o.dtype, err));
    STK_TRY(stk_option_int(op, "top", 0, 1 << 30, &o.top, err));
    STK_TRY(stk_option_int(op, "left", 0, 1 << 30, &o.left, err));
    STK_TRY(stk_option_int(op, "height", 0, 1 << 30, &o.height, err));
    STK_TRY(stk_option_int(op, "width", 0, 1 << 30, &o.width, err));
    STK_TRY(stk_option_int(op, "least_height", 0, 1 << 30, &o.least_height, err));
    STK_TRY(stk_option_int(op, "least_width", 0, 1 << 30, &o.least_width, err));
    STK_TRY(stk_option_bool(op, "accurate", &o.accurate, err));
    STK_TRY(stk_option_bool(op, "recover", &o.recover, err));
    o.channels = (int32_t)channels;
    return stk_map_decode_image((int32_t)part, &o, fn, err);
}

stk_status stk_read_decode_raw(const stk_json *op, const char *folder, stk_map_fn *fn,
                               stk_error *err)
{
    (void)folder;
    int64_t part = 0, shape[STK_MAX_RANK] = {0};
    int32_t rank = -1;
    stk_dtype dtype = STK_U8;
    STK_TRY(stk_options_known(op, KNOWN("part", "dtype", "shape", "parallel", "seed", "unordered"),
                              err));
    STK_TRY(stk_option_int(op, "part", 0, 1 << 20, &part, err));
    STK_TRY(option_dtype(op, &dtype, err));
    STK_TRY(option_shape(op, &rank, shape, err));
    return stk_map_decode_raw((int32_t)part, dtype, rank, shape, fn, err);
}

/* ---- examples ------------------------------------------------------------------------------------ */

static stk_status read_feature(const stk_json *item, stk_feature *f, stk_tensor **fallback,
                               stk_error *err)
{
    int32_t kind = 0;
    *f = (stk_feature){.dtype = STK_F32};
    if (item->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: a feature is an object with \"name\"");
    STK_TRY(stk_options_known(item, KNOWN("name", "kind", "dtype", "shape", "fallback", "in_list"),
                              err));
    STK_TRY(stk_option_text(item, "name", &f->name, err));
    STK_TRY(option_word(item, "kind", KNOWN("fixed", "var", "sequence", "raw"), &kind, err));
    STK_TRY(option_dtype(item, &f->dtype, err));
    STK_TRY(option_shape(item, &f->rank, f->shape, err));
    STK_TRY(stk_option_bool(item, "in_list", &f->in_list, err));
    f->kind = (stk_feature_kind)kind;
    const stk_json *value = stk_json_get(item, "fallback");
    if (!value) return STK_OK;
    if (value->kind == STK_JSON_STRING)
        STK_TRY(
            stk_tensor_strings(0, NULL, &(stk_string){value->text, value->count}, fallback, err));
    else
        STK_TRY(stk_tensor_scalar(f->dtype == STK_STRING ? STK_F32 : f->dtype,
                                  stk_json_double(value, 0), fallback, err));
    f->fallback = *fallback;
    return STK_OK;
}

stk_status stk_read_parse_example(const stk_json *op, const char *folder, stk_map_fn *fn,
                                  stk_error *err)
{
    (void)folder;
    const stk_json *list = stk_json_get(op, "features");
    bool sequence = false;
    STK_TRY(
        stk_options_known(op, KNOWN("features", "sequence", "parallel", "seed", "unordered"), err));
    STK_TRY(stk_option_bool(op, "sequence", &sequence, err));
    if (!list || list->kind != STK_JSON_ARRAY || list->count < 1 || list->count > MOST_FEATURES)
        return stk_fail(err, STK_ERR_FORMAT,
                        "pipeline: op \"parse_example\" takes \"features\", 1 to %d of them",
                        MOST_FEATURES);
    stk_feature *features = stk_calloc((size_t)list->count, sizeof *features);
    stk_tensor **fallbacks = stk_parts_new(list->count);
    stk_status status = features && fallbacks ? STK_OK : stk_fail_memory(err, "pipeline", 1024);
    for (int64_t i = 0; status == STK_OK && i < list->count; i++)
        status = read_feature(&list->items[i], &features[i], &fallbacks[i], err);
    if (status == STK_OK)
        status = stk_map_parse_example((int32_t)list->count, features, sequence, fn, err);
    if (fallbacks) stk_parts_release(list->count, fallbacks);
    stk_free(fallbacks);
    stk_free(features);
    return status;
}
