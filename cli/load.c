/* load.c - data files to arrays or datasets. */
#include "load.h"

#include "stoker/sources.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

stk_status cli_error(stk_error *err, stk_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    err->code = code;
    vsnprintf(err->message, sizeof err->message, format, list);
    va_end(list);
    return code;
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static stk_status load_keras(const char *path, stk_model **out, stk_keras **file, stk_error *err)
{
    stk_keras *opened = NULL;
    stk_status status = stk_keras_open(path, &opened, err);
    if (status != STK_OK) return status;
    if (!stk_keras_model(opened)) {
        stk_keras_release(opened);
        return cli_error(err, STK_ERR_FORMAT,
                         "%s: holds weights but no model; give the model first and this file with "
                         "--weights",
                         path);
    }
    *out = stk_model_retain(stk_keras_model(opened));
    if (file)
        *file = opened;
    else
        stk_keras_release(opened);
    return STK_OK;
}

void cli_use_compiled(const cli_args *args, const stk_keras *file, stk_trainer_options *how,
                      cli_goal *goal)
{
    stk_trainer_options said = *how;
    if (!stk_keras_compiled(file, &said)) return;
    if (!cli_given(args, "optimizer")) how->optimizer = said.optimizer;
    if (cli_given(args, "loss")) return;
    how->loss_weights = said.loss_weights;
    goal->loss = said.loss;
    goal->metrics = cli_text(args, "metrics", said.metrics);
}

stk_status cli_load_weights(const cli_args *args, const stk_keras *file, bool state, stk_trainer *t,
                            stk_error *err)
{
    const char *weights = cli_text(args, "weights", NULL);
    if (weights) return stk_trainer_load_weights(t, weights, false, err);
    if (!file) return STK_OK;
    return state && !cli_given(args, "optimizer") ? stk_keras_restore(file, t, NULL, err)
                                                  : stk_keras_weights(file, t, err);
}

bool cli_has_weights(const cli_args *args)
{
    if (cli_given(args, "weights") || stk_keras_is_file(args->rest[0])) return true;
    cli_usage(args, "--weights FILE is missing: the numbers of the model");
    return false;
}

stk_status cli_load_model(const char *path, stk_model **out, stk_keras **file, stk_error *err)
{
    if (file) *file = NULL;
    stk_status status = stk_keras_is_file(path) ? load_keras(path, out, file, err)
                                                : stk_model_load_json(path, out, err);
    if (status != STK_ERR_FORMAT || ends(path, ".json") || ends(path, ".keras") ||
        ends(path, ".h5"))
        return status;
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; a model is JSON, .keras or .h5, as `stoker init` or Keras writes it, and stands "
             "before the data");
    return status;
}

/* ---- .npz ------------------------------------------------------------------------------------------------- */

static stk_status missing(const stk_npz *npz, const char *path, const char *name,
                          const char *option, stk_error *err)
{
    char known[512] = "";
    for (int32_t i = 0; i < stk_npz_count(npz); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", stk_npz_name(npz, i));
    }
    return cli_error(err, STK_ERR_ARGUMENT,
                     "%s: has no array '%s'; it has: %s (name what is meant with --%s)", path, name,
                     known, option);
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
        if (*n == CLI_ARRAYS)
            return cli_error(err, STK_ERR_RANGE, "--%s: more than %d arrays", option, CLI_ARRAYS);
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
    for (int32_t i = 0; wanted > 1 && i < wanted; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", letter, i);
        if (take_list(npz, path, name, letter, out, n, err) != STK_OK) return err->code;
    }
    return wanted == 1 ? missing(npz, path, letter, letter, err) : STK_OK;
}

static stk_status load_npz(const cli_args *args, const stk_model *model, const char *path,
                           bool want_y, cli_batches *d, stk_error *err)
{
    stk_npz *npz = NULL;
    const char *x = cli_text(args, "x", NULL), *y = cli_text(args, "y", NULL);
    const char *weights = cli_text(args, "sample-weight", NULL);
    stk_status status = stk_npz_load(path, &npz, err);
    if (status == STK_OK)
        status =
            x ? take_list(npz, path, x, "x", d->x, &d->view.nx, err)
              : take_usual(npz, path, "x", stk_model_input_count(model), d->x, &d->view.nx, err);
    if (status == STK_OK && want_y)
        status =
            y ? take_list(npz, path, y, "y", d->y, &d->view.ny, err)
              : take_usual(npz, path, "y", stk_model_output_count(model), d->y, &d->view.ny, err);
    if (status == STK_OK && weights && want_y) {
        int32_t n = 0;
        status = take_list(npz, path, weights, "sample-weight", &d->weights, &n, err);
    }
    stk_npz_release(npz);
    return status;
}

/* ---- .csv ----------------------------------------------------------------------------------------------------- */

static stk_status find_target(const cli_args *args, const stk_csv *table, const char *path,
                              int32_t *target, stk_error *err)
{
    const char *name = cli_text(args, "target", NULL);
    int32_t n = stk_csv_column_count(table);
    *target = n - 1;
    for (int32_t i = 0; name && i < n; i++)
        if (!strcmp(stk_csv_column_name(table, i), name)) {
            *target = i;
            return STK_OK;
        }
    if (!name) return STK_OK;
    char known[512] = "";
    for (int32_t i = 0; i < n; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                 stk_csv_column_name(table, i));
    }
    return cli_error(err, STK_ERR_ARGUMENT, "%s: has no column '%s'; it has: %s", path, name,
                     known);
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
            return cli_error(err, STK_ERR_DTYPE,
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

static stk_status read_columns(const cli_args *args, stk_csv *table, const char *path, bool want_y,
                               stk_tensor **columns, cli_batches *d, stk_error *err)
{
    int32_t n = stk_csv_column_count(table), target = -1;
    stk_status status = stk_csv_read(table, columns, err);
    if (status == STK_OK && (want_y || cli_given(args, "target")))
        status = find_target(args, table, path, &target, err);
    if (status == STK_OK && n < 1 + want_y)
        status =
            cli_error(err, STK_ERR_FORMAT, "%s: has %d columns, too few to learn from", path, n);
    if (status != STK_OK) return status;
    d->view.nx = 1;
    status = join_columns(table, path, columns, n, target, &d->x[0], err);
    if (status != STK_OK || !want_y) return status;
    if (columns[target]->dtype == STK_STRING)
        return cli_error(err, STK_ERR_DTYPE,
                         "%s: the target '%s' holds texts; number the classes first", path,
                         stk_csv_column_name(table, target));
    d->view.ny = 1;
    d->y[0] = stk_tensor_retain(columns[target]);
    return STK_OK;
}

static stk_status load_csv(const cli_args *args, const char *path, bool want_y, cli_batches *d,
                           stk_error *err)
{
    stk_csv *table = NULL;
    stk_status status = stk_csv_open(path, NULL, &table, err);
    if (status != STK_OK) return status;
    int32_t n = stk_csv_column_count(table);
    stk_tensor **columns = calloc((size_t)n + 1, sizeof *columns);
    status = columns ? read_columns(args, table, path, want_y, columns, d, err)
                     : cli_error(err, STK_ERR_MEMORY, "%s: out of memory", path);
    for (int32_t i = 0; columns && i < n; i++) stk_tensor_release(columns[i]);
    free(columns);
    stk_csv_close(table);
    return status;
}

/* ---- .npy: x, then y ----------------------------------------------------------------------------------------------- */

static stk_status load_npy(const stk_model *model, int n, const char *const *paths, bool want_y,
                           cli_batches *d, stk_error *err)
{
    int32_t nx = stk_model_input_count(model), ny = want_y ? stk_model_output_count(model) : 0;
    if (n != nx + ny || n > CLI_ARRAYS)
        return cli_error(err, STK_ERR_ARGUMENT,
                         "%d .npy files are given, the model needs %d: inputs, then targets", n,
                         nx + ny);
    stk_status status = STK_OK;
    for (int i = 0; status == STK_OK && i < n; i++) {
        status = stk_npy_map(paths[i], i < nx ? &d->x[i] : &d->y[i - nx], err);
        d->view.nx += status == STK_OK && i < nx;
        d->view.ny += status == STK_OK && i >= nx;
    }
    return status;
}

/* ---- a folder of pictures, one folder inside per class ------------------------------------------------------------------ */

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* What doctor and profile look at, and what doctor trains, is the training. */
static bool learns(const cli_args *args)
{
    const char *name = args->command->name;
    return !strcmp(name, "train") || !strcmp(name, "doctor") || !strcmp(name, "profile");
}

/* Pictures in the size the model wants, in batches; shuffled only where somebody learns from them. */
static stk_status load_folder(const cli_args *args, const stk_model *model, const char *path,
                              bool aside, cli_batches *d, stk_error *err)
{
    stk_spec in = stk_model_input(model, 0), out = stk_model_output(model, 0);
    stk_image_folder_options o = stk_image_folder_options_defaults();
    int64_t batch = 32, seed = 0;
    double share = 0;
    bool shuffle = learns(args);
    if (stk_model_input_count(model) != 1 || in.rank != 4 || in.shape[1] < 1 || in.shape[2] < 1)
        return cli_error(
            err, STK_ERR_SHAPE,
            "%s: a folder of pictures needs a model with one input of known height, width "
            "and channels",
            path);
    if (!cli_int(args, "batch", 1, INT64_MAX, &batch) ||
        !cli_int(args, "seed", 0, INT64_MAX, &seed) ||
        !cli_double(args, "val-split", 0, 0.99, &share) || !cli_yes_no(args, "shuffle", &shuffle))
        return cli_error(err, STK_ERR_ARGUMENT, "%s: not read, because of the option above", path);
    o.height = in.shape[1];
    o.width = in.shape[2];
    o.channels = (int32_t)in.shape[3];
    o.validation = share;
    o.validation_part = aside;
    o.seed = (uint64_t)seed;
    if (out.shape[out.rank - 1] == 1) o.labels = STK_LABEL_BINARY;
    stk_dataset *ds = stk_data_image_folder(path, &o, err);
    if (shuffle && !aside) ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, (uint64_t)seed, true, err);
    ds = stk_data_batch(ds, batch, false, err);
    d->dataset = stk_data_prefetch(ds, STK_AUTOTUNE, err);
    return d->dataset ? STK_OK : err->code;
}

stk_status cli_load_aside(const cli_args *args, const stk_model *model, const char *path,
                          cli_batches *out, stk_error *err)
{
    *out = (cli_batches){.weights = NULL};
    if (!is_folder(path)) return STK_OK;
    stk_status status = load_folder(args, model, path, true, out, err);
    out->view.dataset = out->dataset;
    return status;
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */

stk_status cli_load_data(const cli_args *args, const stk_model *model, int n,
                         const char *const *paths, bool want_y, cli_batches *out, stk_error *err)
{
    *out = (cli_batches){.weights = NULL};
    const char *path = n > 0 ? paths[0] : "";
    stk_status status;
    if (ends(path, ".npy"))
        status = load_npy(model, n, paths, want_y, out, err);
    else if (n != 1)
        status = cli_error(
            err, STK_ERR_ARGUMENT,
            "%d data files are given; one .npz, .csv or .json, or several .npy, is expected", n);
    else if (ends(path, ".npz"))
        status = load_npz(args, model, path, want_y, out, err);
    else if (ends(path, ".csv"))
        status = load_csv(args, path, want_y, out, err);
    else if (ends(path, ".json"))
        status = (out->dataset = stk_data_pipeline_file(path, err)) ? STK_OK : err->code;
    else if (is_folder(path))
        status = load_folder(args, model, path, false, out, err);
    else if (access(path, R_OK) != 0)
        status = cli_error(err, STK_ERR_IO, "%s: cannot read it: %s", path, strerror(errno));
    else
        status =
            cli_error(err, STK_ERR_UNSUPPORTED,
                      "%s: is no kind of data file this command knows (.npz, .npy, .csv, .json "
                      "for a pipeline, or a folder of pictures)",
                      path);
    out->view.x = out->x;
    out->view.y = out->y;
    out->view.weights = out->weights;
    out->view.dataset = out->dataset;
    if (status != STK_OK) cli_data_release(out);
    return status;
}

void cli_data_release(cli_batches *data)
{
    for (int i = 0; i < CLI_ARRAYS; i++) {
        stk_tensor_release(data->x[i]);
        stk_tensor_release(data->y[i]);
    }
    stk_tensor_release(data->weights);
    stk_dataset_release(data->dataset);
    *data = (cli_batches){.weights = NULL};
}

/* ---- what to run ---------------------------------------------------------------------------------------------------------- */

static stk_dtype target_dtype(const cli_batches *data)
{
    if (!data->dataset) return data->y[0] ? data->y[0]->dtype : STK_F32;
    const stk_schema *schema = stk_dataset_schema(data->dataset);
    return schema && schema->n > 1 ? schema->fields[1].dtype : STK_F32;
}

cli_goal cli_choose_goal(const cli_args *args, const stk_model *model, const cli_batches *data)
{
    stk_spec out = stk_model_output(model, 0);
    stk_dtype y = target_dtype(data);
    bool labels = y != STK_F32 && y != STK_F64 && y != STK_F16 && y != STK_BF16;
    int64_t last = out.rank > 0 ? out.shape[out.rank - 1] : 1;
    cli_goal goal = {"mse", "mae"};
    if (labels && last > 1) goal = (cli_goal){"sparse_categorical_crossentropy", "accuracy"};
    if (labels && last == 1) goal = (cli_goal){"binary_crossentropy", "accuracy"};
    if (cli_given(args, "loss")) goal = (cli_goal){cli_text(args, "loss", NULL), ""};
    goal.metrics = cli_text(args, "metrics", goal.metrics);
    return goal;
}

bool cli_trainer_options(const cli_args *args, stk_trainer_options *out, int64_t *batch, int *code)
{
    int64_t threads = 0;
    stk_error err;
    *code = CLI_USAGE;
    *batch = 32;
    if (!cli_int(args, "batch", 1, INT64_MAX, batch)) return false;
    if (!cli_int(args, "threads", 1, 4096, &threads)) return false;
    out->threads = (int32_t)threads;
    out->precision = cli_text(args, "precision", NULL);
    if (stk_device_open(cli_text(args, "device", "default"), out->threads, &out->device, &err) !=
        STK_OK) {
        *code = cli_fail(args, &err);
        return false;
    }
    return true;
}
