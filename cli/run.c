/* run.c - from arguments to a trainer, and settings of an earlier examination. */
#include "run.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Ctrl-C ------------------------------------------------------------------------------------------------- */

static stk_trainer *volatile running;
static volatile sig_atomic_t asked;

static void on_signal(int number)
{
    static const char text[] = "\nstopping after this step; once more ends at once\n";
    if (asked++) _exit(128 + number);
    stk_trainer_stop(running);
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

/* SIGHUP: the terminal is gone, which must not cost the epoch. What was ignored when we were started (nohup, a job in the
 * background of a script) stays ignored. */
void cli_catch_signals(stk_trainer *t)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    running = t;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

bool cli_interrupted(void) { return asked != 0; }

/* ---- files to write -------------------------------------------------------------------------------------------- */

static stk_status check_writable(const cli_args *args, const char *path, stk_error *err)
{
    char copy[PATH_MAX];
    struct stat info;
    for (int i = 0; i < args->nrest; i++)
        if (cli_same_file(path, args->rest[i]))
            return cli_error(err, STK_ERR_ARGUMENT,
                             "%s: is read by this command, so nothing can be written there; give "
                             "another name",
                             path);
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return cli_error(err, STK_ERR_IO, "%s: is a folder; give the name of a file", path);
    if (exists && !S_ISREG(info.st_mode)) /* a device or a pipe: written through */
        return access(path, W_OK) == 0 ? STK_OK
                                       : cli_error(err, STK_ERR_IO, "%s: cannot write to it: %s",
                                                   path, strerror(errno));
    if (!exists || !realpath(path, copy)) snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    if (access(folder, W_OK | X_OK) != 0)
        return cli_error(err, STK_ERR_IO, "%s: cannot write into the folder '%s': %s", path, folder,
                         strerror(errno));
    return STK_OK;
}

stk_status cli_check_outputs(const cli_args *args, const char *const *options, stk_error *err)
{
    for (int i = 0; options[i]; i++) {
        const char *path = cli_text(args, options[i], NULL);
        if (!path) continue;
        if (check_writable(args, path, err) != STK_OK) return err->code;
        for (int k = 0; k < i; k++)
            if (!strcmp(path, cli_text(args, options[k], "")))
                return cli_error(err, STK_ERR_ARGUMENT,
                                 "%s: is named by --%s and by --%s; give them different names",
                                 path, options[k], options[i]);
    }
    return STK_OK;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* Found for another job: arrays have no pipeline, the batches of a pipeline are its own. What other kinds of jobs know
 * (the last row) no trainer asks for. */
static void set_idle_aside(const stk_loaded_data *data, cli_settings *s)
{
    static const struct {
        stk_knob knob;
        bool arrays, pipeline;
    } parts[] = {{STK_KNOB_PREFETCH, false, true},    {STK_KNOB_WORKERS, false, true},
                 {STK_KNOB_FUSED, false, true},       {STK_KNOB_CACHE, false, true},
                 {STK_KNOB_BATCH, true, false},       {STK_KNOB_GROUP, false, false},
                 {STK_KNOB_READ_EVERY, false, false}, {STK_KNOB_NATIVE_INPUT, false, false},
                 {STK_KNOB_ELECTED, false, false}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        stk_knob k = parts[i].knob;
        if (data->dataset ? parts[i].pipeline : parts[i].arrays) continue;
        s->idle.value[k] = s->used.value[k];
        s->used.value[k] = STK_AS_IS;
    }
}

void cli_print_settings(const cli_args *args, const cli_settings *s)
{
    char used[256], idle[256];
    if (args->quiet || args->json || !cli_given(args, "settings")) return;
    stk_job_settings_text(&s->used, used, sizeof used);
    printf("settings: %s\n", used[0] ? used : "none");
    if (stk_job_settings_text(&s->idle, idle, sizeof idle)[0])
        printf("settings that play no part with this data: %s\n", idle);
}

stk_status cli_use_settings(const cli_args *args, stk_trainer_options *how, stk_fit_options *fit,
                            stk_loaded_data *data, cli_settings *out, stk_error *err)
{
    stk_job_settings *used = &out->used;
    static const struct {
        const char *option;
        stk_knob knob;
    } stronger[] = {{"threads", STK_KNOB_THREADS},
                    {"precision", STK_KNOB_PRECISION},
                    {"batch", STK_KNOB_BATCH}};
    const char *path = cli_text(args, "settings", NULL);
    stk_dataset *made = NULL;
    out->used = out->idle = stk_job_settings_defaults();
    if (!path) return STK_OK;
    stk_status status = stk_job_settings_load(path, used, err);
    if (status != STK_OK) return status;
    for (size_t i = 0; i < sizeof stronger / sizeof *stronger; i++)
        if (cli_given(args, stronger[i].option)) used->value[stronger[i].knob] = STK_AS_IS;
    set_idle_aside(data, out);
    stk_job_settings_options(used, how, fit);
    status = stk_job_settings_data(used, &data->view, &made, err);
    if (made) {
        stk_dataset_release(data->dataset);
        data->dataset = made;
    }
    return status;
}

static stk_status load(cli_run *r, bool targets, stk_error *err)
{
    const cli_args *args = r->args;
    cli_settings settings;
    stk_status status = cli_load_model(args->rest[0], &r->model, &r->file, err);
    if (status == STK_OK)
        status =
            cli_load_data(args, r->model, args->nrest - 1, args->rest + 1, targets, &r->data, err);
    if (status == STK_OK)
        status = cli_use_settings(args, &r->how, &r->fit, &r->data, &settings, err);
    if (status != STK_OK) return status;
    cli_print_settings(args, &settings);
    r->how.optimizer = cli_text(args, "optimizer", "adam");
    if (targets) {
        stk_goal goal = cli_choose_goal(args, r->model, &r->data.view);
        cli_use_compiled(args, r->file, &r->how, &goal);
        r->how.loss = goal.loss;
        r->how.metrics = goal.metrics;
    }
    r->how.deterministic = cli_given(args, "deterministic");
    status = cli_choose_device(args, r->model, &r->data.view, r->fit.batch, &r->how, err);
    if (status == STK_OK) status = stk_trainer_new(r->model, &r->how, &r->trainer, err);
    return status == STK_OK ? cli_load_weights(args, r->file, false, r->trainer, err) : status;
}

int cli_run_model(const cli_args *args, bool targets, cli_work work, void *context)
{
    cli_run r = {.args = args, .how = stk_trainer_defaults(), .fit = stk_fit_defaults()};
    stk_error err;
    bool shuffle = true;
    int code;
    if (!cli_int(args, "epochs", 1, INT64_MAX, &r.fit.epochs) ||
        !cli_int(args, "steps", 1, INT64_MAX, &r.fit.steps_per_epoch) ||
        !cli_int(args, "seed", INT64_MIN, INT64_MAX, &r.how.seed) ||
        !cli_yes_no(args, "shuffle", &shuffle))
        return CLI_USAGE;
    r.fit.no_shuffle = !shuffle;
    if (!cli_trainer_options(args, &r.how, &r.fit.batch, &code)) return code;
    stk_status status = load(&r, targets, &err);
    if (status == STK_OK) status = work(&r, context, &err);
    if (status == STK_OK) status = cli_log_placement(args, r.trainer, &err);
    stk_trainer_release(r.trainer);
    stk_loaded_data_release(&r.data);
    stk_model_release(r.model);
    stk_keras_release(r.file);
    stk_device_release(r.how.device);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}
