/* load.c - from arguments to a model, its weights, its data and the options of a trainer. */
#include "load.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

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
                      stk_goal *goal)
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

/* ---- data --------------------------------------------------------------------------------------------------- */

/* What doctor and profile look at, and what doctor trains, is the training. */
static bool learns(const cli_args *args)
{
    const char *name = args->command->name;
    return !strcmp(name, "train") || !strcmp(name, "doctor") || !strcmp(name, "profile");
}

static stk_status read_options(const cli_args *args, bool targets, stk_load_options *o,
                               stk_error *err)
{
    int64_t seed = 0;
    *o = stk_load_defaults();
    o->x = cli_text(args, "x", NULL);
    o->y = cli_text(args, "y", NULL);
    o->sample_weight = cli_text(args, "sample-weight", NULL);
    o->target = cli_text(args, "target", NULL);
    o->no_targets = !targets;
    o->shuffle = learns(args);
    if (!cli_int(args, "batch", 1, INT64_MAX, &o->batch) ||
        !cli_int(args, "seed", INT64_MIN, INT64_MAX, &seed) ||
        !cli_double(args, "val-split", 0, 0.99, &o->validation) ||
        !cli_yes_no(args, "shuffle", &o->shuffle))
        return cli_error(err, STK_ERR_ARGUMENT, "no data was read, because of the option above");
    o->seed = (uint64_t)seed;
    return STK_OK;
}

stk_status cli_load_data(const cli_args *args, const stk_model *model, int n,
                         const char *const *paths, bool targets, stk_loaded_data *out,
                         stk_error *err)
{
    stk_load_options o;
    stk_status status = read_options(args, targets, &o, err);
    return status == STK_OK ? stk_load_data(model, n, paths, &o, out, err) : status;
}

stk_status cli_load_aside(const cli_args *args, const stk_model *model, const char *path,
                          stk_loaded_data *out, stk_error *err)
{
    stk_load_options o;
    *out = (stk_loaded_data){.weights = NULL};
    if (!stk_is_folder(path)) return STK_OK;
    stk_status status = read_options(args, true, &o, err);
    o.validation_part = true;
    return status == STK_OK ? stk_load_data(model, 1, &path, &o, out, err) : status;
}

/* ---- what to run ---------------------------------------------------------------------------------------------------------- */

stk_goal cli_choose_goal(const cli_args *args, const stk_model *model, const stk_train_data *data)
{
    stk_goal goal = stk_default_goal(model, data);
    if (cli_given(args, "loss")) goal = (stk_goal){cli_text(args, "loss", NULL), ""};
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
    const char *device = cli_text(args, "device", "default");
    if (!strcmp(device, "auto")) return true; /* cli_choose_device */
    if (stk_device_open(device, out->threads, &out->device, &err) != STK_OK) {
        *code = cli_fail(args, &err);
        return false;
    }
    return true;
}

static void tell_choice(const stk_placement *p)
{
    char line[256];
    for (int32_t i = 0; i < p->n && p->n > 1; i++) {
        const stk_forecast *row = &p->row[i];
        if (row->trouble[0])
            fprintf(stderr, "auto: %-10s cannot: %s\n", row->device, row->trouble);
        else if (row->measured > 0)
            fprintf(stderr,
                    "auto: %-10s step predicted %.3g ms, measured %.3g ms +- %.0f %%, %d launches, "
                    "%d islands\n",
                    row->device, row->predicted * 1e3, row->measured * 1e3, row->scatter * 100,
                    row->launches, row->islands);
        else
            fprintf(stderr, "auto: %-10s step predicted %.3g ms, not tried\n", row->device,
                    row->predicted * 1e3);
    }
    fprintf(stderr, "auto: %s\n", stk_placement_line(p, line, sizeof line));
}

stk_status cli_choose_device(const cli_args *args, stk_model *model, const stk_train_data *data,
                             int64_t batch, stk_trainer_options *how, stk_error *err)
{
    stk_placement p;
    if (strcmp(cli_text(args, "device", "default"), "auto") != 0) return STK_OK;
    stk_status status = stk_place_training(model, how, data, batch, &p, err);
    if (status != STK_OK) return status;
    if (!args->quiet) tell_choice(&p);
    return stk_device_open(p.row[p.chosen].device, how->threads, &how->device, err);
}

stk_status cli_log_placement(const cli_args *args, const stk_trainer *t, stk_error *err)
{
    char *text = NULL;
    if (!cli_given(args, "log-placement")) return STK_OK;
    stk_status status = stk_trainer_placement(t, &text, err);
    if (status == STK_OK) fputs(text, stderr);
    stk_text_free(text);
    return status;
}

enum { MOST_ISLANDS = 64 };

static void print_islands(const stk_island *row, int32_t n, int32_t all, const char *device,
                          const stk_calibration *c)
{
    fprintf(stderr, "%s lacks %d operation%s, which run on the CPU in between:\n", device, all,
            all == 1 ? "" : "s");
    for (int32_t i = 0; i < n; i++) {
        bool first = i == 0 || row[i].number != row[i - 1].number;
        double ms = stk_island_predict(&row[i], first, c) * 1e3;
        fprintf(stderr, "  %s %s%s%s: %s; %lld bytes down, %lld up, about %.3g ms per step\n",
                row[i].op, row[i].shape, row[i].name[0] ? " of " : "", row[i].name, row[i].reason,
                (long long)row[i].bytes_down, (long long)row[i].bytes_up, ms);
    }
    if (all > n) fprintf(stderr, "  and %d more\n", all - n);
}

stk_status cli_tell_islands(const cli_args *args, stk_trainer *t, const stk_train_data *data,
                            int64_t batch, stk_error *err)
{
    static stk_island row[MOST_ISLANDS];
    stk_program *p = NULL;
    stk_device *cpu = NULL;
    stk_device_report about;
    stk_calibration c, host;
    stk_device_describe(stk_trainer_device(t), &about);
    if (args->quiet || about.shares_memory) return STK_OK;
    stk_status status = stk_trainer_compile(t, data, batch, &p, err);
    if (status != STK_OK) return status;
    int32_t all = stk_program_islands(p, MOST_ISLANDS, row);
    if (all == 0) return STK_OK;
    status = stk_device_calibrate(stk_trainer_device(t), false, &c, err);
    if (status == STK_OK) status = stk_device_open("cpu:0", 0, &cpu, err);
    if (status == STK_OK) status = stk_device_calibrate(cpu, false, &host, err);
    stk_device_release(cpu);
    if (status != STK_OK) return status;
    print_islands(row, all < MOST_ISLANDS ? all : MOST_ISLANDS, all, about.name, &c);
    fprintf(stderr, "  together, with the work itself: about %.3g ms of a step\n",
            stk_program_predict_islands(p, &c, &host) * 1e3);
    return STK_OK;
}
