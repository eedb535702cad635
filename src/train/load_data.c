/* load_data.c - data files to arrays or datasets for a model, by the kind of the files, and the loss that fits them. Reading
 * itself is done by src/data; here is decided which array or column is what. */
#include "stoker/load.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "stoker/csv.h"
#include "stoker/files.h"
#include "stoker/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

stk_load_options stk_load_defaults(void) { return (stk_load_options){.batch = 32}; }

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* "a, b, c" for a message, cut where the room ends. */
static void add_name(char *known, size_t size, const char *name)
{
    size_t used = strlen(known);
    snprintf(known + used, size - used, "%s%s", used ? ", " : "", name);
}

/* ---- .npz ------------------------------------------------------------------------------------------------- */

static stk_status missing(const stk_npz *npz, const char *path, const char *name,
                          const char *option, stk_error *err)
{
    char known[512] = "";
    for (int32_t i = 0; i < stk_npz_count(npz); i++)
        add_name(known, sizeof known, stk_npz_name(npz, i));
    return stk_fail(err, STK_ERR_ARGUMENT,
                    "%s: has no array '%s'; it has: %s (name what is meant with option %s)", path,
                    name, known, option);
}

/* "a,b" */
static stk_status take_list(const stk_npz *npz, const char *path, const char *list,
                            const char *option, stk_tensor **out, int32_t *n, stk_error *err)
{
    while (*list) {
        char name[256];
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        stk_tensor *t = stk_npz_find(npz, name);
        if (!t) return missing(npz, path, name, option, err);
        if (*n == STK_LOAD_ARRAYS)
            return stk_fail(err, STK_ERR_RANGE, "option %s: more than %d arrays", option,
                            STK_LOAD_ARRAYS);
        out[(*n)++] = stk_tensor_retain(t);
        list += length + (list[length] == ',');
    }
    return STK_OK;
}

/* Without a list: x, x_train, or as many of x0, x1 ... as the model wants. */
static stk_status take_usual(const stk_npz *npz, const char *path, const char *letter,
                             int32_t wanted, stk_tensor **out, int32_t *n, stk_error *err)
{
    for (int i = 0; wanted == 1 && i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "%s_train" : "%s", letter);
        if (stk_npz_find(npz, name)) return take_list(npz, path, name, letter, out, n, err);
    }
    stk_status status = STK_OK;
    for (int32_t i = 0; wanted > 1 && i < wanted && status == STK_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", letter, i);
        status = take_list(npz, path, name, letter, out, n, err);
    }
    return wanted == 1 ? missing(npz, path, letter, letter, err) : status;
}

static stk_status take(const stk_npz *npz, const char *path, const char *list, const char *letter,
                       int32_t wanted, stk_tensor **out, int32_t *n, stk_error *err)
{
    return list ? take_list(npz, path, list, letter, out, n, err)
                : take_usual(npz, path, letter, wanted, out, n, err);
}

static stk_status load_npz(const stk_load_options *o, const stk_model *model, const char *path,
                           stk_loaded_data *d, stk_error *err)
{
    stk_npz *npz = NULL;
    stk_status status = stk_npz_load(path, &npz, err);
    if (status == STK_OK)
        status = take(npz, path, o->x, "x", stk_model_input_count(model), d->x, &d->view.nx, err);
    if (status == STK_OK && !o->no_targets)
        status = take(npz, path, o->y, "y", stk_model_output_count(model), d->y, &d->view.ny, err);
    if (status == STK_OK && o->sample_weight && !o->no_targets) {
        d->weights = stk_tensor_retain(stk_npz_find(npz, o->sample_weight));
        if (!d->weights) status = missing(npz, path, o->sample_weight, "sample-weight", err);
    }
    stk_npz_release(npz);
    return status;
}

/* ---- .csv ----------------------------------------------------------------------------------------------------- */

static stk_status find_target(const char *name, const stk_csv *table, const char *path,
                              int32_t *target, stk_error *err)
{
    char known[512] = "";
    int32_t n = stk_csv_column_count(table);
    *target = n - 1;
    if (!name) return STK_OK;
    for (int32_t i = 0; i < n; i++) {
        *target = i;
        if (!strcmp(stk_csv_column_name(table, i), name)) return STK_OK;
        add_name(known, sizeof known, stk_csv_column_name(table, i));
    }
    return stk_fail(err, STK_ERR_ARGUMENT, "%s: has no column '%s'; it has: %s", path, name, known);
}

/* All other columns side by side: [rows, columns]. */
static stk_status join_columns(const stk_csv *table, const char *path, stk_tensor *const *columns,
                               int32_t n, int32_t target, stk_tensor **x, stk_error *err)
{
    int32_t wide = n - (target >= 0);
    int64_t rows = columns[0]->shape[0];
    enum { BLOCK = 4096 }; /* rows at a time: x may be larger than memory */
    for (int32_t i = 0; i < n; i++)
        if (i != target && columns[i]->dtype == STK_STRING)
            return stk_fail(err, STK_ERR_DTYPE,
                            "%s: column '%s' holds texts; turn them into numbers first", path,
                            stk_csv_column_name(table, i));
    stk_status status = stk_tensor_roomy(path, STK_F32, 2, (int64_t[]){rows, wide}, x, err);
    for (int64_t first = 0; status == STK_OK && first < rows; first += BLOCK) {
        int64_t end = first + BLOCK < rows ? first + BLOCK : rows;
        float *to = (*x)->data;
        for (int32_t i = 0; i < n; i++) {
            if (i == target) continue;
            for (int64_t r = first; r < end; r++)
                to[r * wide] = (float)stk_tensor_at(columns[i], r);
            to++;
        }
    }
    return status;
}

static stk_status read_columns(const stk_load_options *o, stk_csv *table, const char *path,
                               stk_tensor **columns, stk_loaded_data *d, stk_error *err)
{
    int32_t n = stk_csv_column_count(table), target = -1;
    stk_status status = stk_csv_read(table, columns, err);
    if (status == STK_OK && (!o->no_targets || o->target))
        status = find_target(o->target, table, path, &target, err);
    if (status == STK_OK && n < (o->no_targets ? 1 : 2))
        status =
            stk_fail(err, STK_ERR_FORMAT, "%s: has %d columns, too few to learn from", path, n);
    if (status != STK_OK) return status;
    d->view.nx = 1;
    status = join_columns(table, path, columns, n, target, &d->x[0], err);
    if (status != STK_OK || o->no_targets) return status;
    if (columns[target]->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE,
                        "%s: the target '%s' holds texts; number the classes first", path,
                        stk_csv_column_name(table, target));
    d->view.ny = 1;
    d->y[0] = stk_tensor_retain(columns[target]);
    return STK_OK;
}

static stk_status load_csv(const stk_load_options *o, const char *path, stk_loaded_data *d,
                           stk_error *err)
{
    stk_csv *table = NULL;
    stk_status status = stk_csv_open(path, NULL, &table, err);
    if (status != STK_OK) return status;
    int32_t n = stk_csv_column_count(table);
    stk_tensor **columns = stk_calloc((size_t)n + 1, sizeof *columns);
    status = columns ? read_columns(o, table, path, columns, d, err)
                     : stk_fail_memory(err, path, (size_t)n * sizeof *columns);
    for (int32_t i = 0; columns && i < n; i++) stk_tensor_release(columns[i]);
    stk_free(columns);
    stk_csv_close(table);
    return status;
}

/* ---- .npy: x, then y ----------------------------------------------------------------------------------------------- */

static stk_status load_npy(const stk_load_options *o, const stk_model *model, int32_t n,
                           const char *const *paths, stk_loaded_data *d, stk_error *err)
{
    int32_t nx = stk_model_input_count(model);
    int32_t ny = o->no_targets ? 0 : stk_model_output_count(model);
    if (n != nx + ny || n > STK_LOAD_ARRAYS)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%d .npy files are given, the model needs %d: inputs, then targets", n,
                        nx + ny);
    stk_status status = STK_OK;
    for (int32_t i = 0; status == STK_OK && i < n; i++) {
        status = stk_npy_map(paths[i], i < nx ? &d->x[i] : &d->y[i - nx], err);
        d->view.nx += status == STK_OK && i < nx;
        d->view.ny += status == STK_OK && i >= nx;
    }
    return status;
}

/* ---- a folder of pictures, one folder inside per class ------------------------------------------------------------------ */

bool stk_is_folder(const char *path)
{
    struct stat info;
    return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Pictures in the size the model wants, in batches. */
static stk_status load_folder(const stk_load_options *o, const stk_model *model, const char *path,
                              stk_loaded_data *d, stk_error *err)
{
    stk_spec in = stk_model_input(model, 0), out = stk_model_output(model, 0);
    stk_image_folder_options f = stk_image_folder_options_defaults();
    stk_error why = {.code = STK_OK};
    if (stk_model_input_count(model) != 1 || in.rank != 4 || in.shape[1] < 1 || in.shape[2] < 1)
        return stk_fail(
            err, STK_ERR_SHAPE,
            "%s: a folder of pictures needs a model with one input of known height, width "
            "and channels",
            path);
    f.height = in.shape[1];
    f.width = in.shape[2];
    f.channels = (int32_t)in.shape[3];
    f.validation = o->validation;
    f.validation_part = o->validation_part;
    f.seed = o->seed;
    if (out.shape[out.rank - 1] == 1) f.labels = STK_LABEL_BINARY;
    stk_dataset *ds = stk_data_image_folder(path, &f, &why);
    if (o->shuffle && !o->validation_part)
        ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, o->seed, true, &why);
    ds = stk_data_batch(ds, o->batch, false, &why);
    d->dataset = stk_data_prefetch(ds, STK_AUTOTUNE, &why);
    return d->dataset ? STK_OK : stk_fail(err, why.code, "%s", why.message);
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */

static stk_status load_pipeline(const char *path, stk_loaded_data *d, stk_error *err)
{
    stk_error why = {.code = STK_OK};
    d->dataset = stk_data_pipeline_file(path, &why);
    return d->dataset ? STK_OK : stk_fail(err, why.code, "%s", why.message);
}

static stk_status load(const stk_load_options *o, const stk_model *model, int32_t n,
                       const char *const *paths, stk_loaded_data *d, stk_error *err)
{
    const char *path = n > 0 ? paths[0] : "";
    if (ends(path, ".npy")) return load_npy(o, model, n, paths, d, err);
    if (n != 1)
        return stk_fail(
            err, STK_ERR_ARGUMENT,
            "%d data files are given; one .npz, .csv or .json, or several .npy, is expected", n);
    if (ends(path, ".npz")) return load_npz(o, model, path, d, err);
    if (ends(path, ".csv")) return load_csv(o, path, d, err);
    if (ends(path, ".json")) return load_pipeline(path, d, err);
    if (stk_is_folder(path)) return load_folder(o, model, path, d, err);
    if (access(path, R_OK) != 0)
        return stk_fail(err, STK_ERR_IO, "%s: cannot read it: %s", path, strerror(errno));
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "%s: is no kind of data file that is known here (.npz, .npy, .csv, .json for a "
                    "pipeline, or a folder of pictures)",
                    path);
}

stk_status stk_load_data(const stk_model *model, int32_t n, const char *const *paths,
                         const stk_load_options *options, stk_loaded_data *out, stk_error *err)
{
    if (!model || !out || n < 0 || (n && !paths))
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_load_data: needs a model, files and room");
    stk_load_options o = options ? *options : stk_load_defaults();
    *out = (stk_loaded_data){.weights = NULL};
    stk_status status = load(&o, model, n, paths, out, err);
    out->view.x = out->x;
    out->view.y = out->y;
    out->view.weights = out->weights;
    out->view.dataset = out->dataset;
    if (status != STK_OK) stk_loaded_data_release(out);
    return status;
}

void stk_loaded_data_release(stk_loaded_data *data)
{
    if (!data) return;
    for (int i = 0; i < STK_LOAD_ARRAYS; i++) {
        stk_tensor_release(data->x[i]);
        stk_tensor_release(data->y[i]);
    }
    stk_tensor_release(data->weights);
    stk_dataset_release(data->dataset);
    *data = (stk_loaded_data){.weights = NULL};
}

/* ---- what fits them ------------------------------------------------------------------------------------------------------ */

static stk_dtype target_dtype(const stk_model *model, const stk_train_data *data)
{
    if (!data->dataset) return data->ny > 0 && data->y[0] ? data->y[0]->dtype : STK_F32;
    const stk_schema *schema = stk_dataset_schema(data->dataset);
    int32_t first = stk_model_input_count(model); /* leaves of an element: x..., y... */
    return schema && schema->n > first ? schema->fields[first].dtype : STK_F32;
}

stk_goal stk_default_goal(const stk_model *model, const stk_train_data *data)
{
    stk_spec out = stk_model_output(model, 0);
    stk_dtype y = target_dtype(model, data);
    int64_t last = out.rank > 0 ? out.shape[out.rank - 1] : 1;
    if (stk_dtype_is_float(y)) return (stk_goal){"mse", "mae"};
    return last > 1 ? (stk_goal){"sparse_categorical_crossentropy", "accuracy"}
                    : (stk_goal){"binary_crossentropy", "accuracy"};
}
