/* stoker train - fit a model to data, keep it safe, say how it went. */
#include "run.h"
#include "show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLBACKS = 8 };

typedef struct job {
    const cli_args *args;
    stk_model *model;
    stk_keras *file; /* of the model; NULL: it was JSON */
    stk_trainer *trainer;
    stk_loaded_data data, validation;
    stk_trainer_options how;
    stk_fit_options fit;
    stk_goal goal;
    cli_show show;
    stk_callback *callbacks[CALLBACKS]; /* all but the first, which is show's, are owned */
    stk_history *history;
    cli_settings settings;
    stk_report *books; /* of sampled steps; NULL when another watch was open */
} job;

/* ---- before ---------------------------------------------------------------------------------------------------- */

/* false: the mistake was told. */
static bool read_options(job *j, int *code)
{
    const cli_args *args = j->args;
    bool shuffle = true;
    int64_t patience = -1;
    *code = CLI_USAGE;
    if (cli_given(args, "save") && !stk_keras_is_name(cli_text(args, "save", ""))) {
        cli_usage(args, "--save is '%s'; its name must end in .keras or .h5",
                  cli_text(args, "save", ""));
        return false;
    }
    j->fit = stk_fit_defaults();
    if (!cli_trainer_options(args, &j->how, &j->fit.batch, code)) return false;
    *code = CLI_USAGE;
    j->how.optimizer = cli_text(args, "optimizer", "adam");
    j->how.deterministic = cli_given(args, "deterministic");
    j->fit.checkpoint = cli_text(args, "checkpoint", NULL);
    j->fit.resume = cli_given(args, "resume");
    if (j->fit.resume && !j->fit.checkpoint) {
        cli_usage(args, "--resume needs --checkpoint FILE: where to go on from");
        return false;
    }
    bool good = cli_int(args, "epochs", 0, INT64_MAX, &j->fit.epochs) &&
                cli_int(args, "seed", INT64_MIN, INT64_MAX, &j->how.seed) &&
                cli_int(args, "steps", 1, INT64_MAX, &j->fit.steps_per_epoch) &&
                cli_double(args, "val-split", 0, 0.99, &j->fit.validation_split) &&
                cli_double(args, "checkpoint-every", 0, 1e9, &j->fit.checkpoint_seconds) &&
                cli_int(args, "early-stop", 0, INT64_MAX, &patience) &&
                cli_yes_no(args, "shuffle", &shuffle);
    j->fit.no_shuffle = !shuffle;
    return good;
}

static stk_status add_callbacks(job *j, stk_error *err)
{
    const cli_args *args = j->args;
    bool validates = j->fit.validation || j->fit.validation_split > 0;
    stk_callback **at = j->callbacks;
    stk_status status = STK_OK;
    *at++ = &j->show.callback;
    if (cli_given(args, "early-stop")) {
        stk_monitor_options w = stk_monitor_defaults();
        w.monitor = validates ? "val_loss" : "loss";
        w.patience = strtoll(cli_text(args, "early-stop", "0"), NULL, 10);
        w.restore_best = true;
        status = stk_early_stopping(&w, at, err);
        at += status == STK_OK;
    }
    if (status == STK_OK && cli_given(args, "csv")) {
        status = stk_csv_logger(cli_text(args, "csv", ""), j->fit.resume, at, err);
        at += status == STK_OK;
    }
    if (status == STK_OK) {
        status = stk_terminate_on_nan(at, err);
        at += status == STK_OK;
    }
    j->fit.callbacks = j->callbacks;
    j->fit.ncallbacks = (int32_t)(at - j->callbacks);
    return status;
}

static stk_status prepare(job *j, stk_error *err)
{
    const cli_args *args = j->args;
    const char *validation = cli_text(args, "val", NULL);
    static const char *const outputs[] = {"checkpoint", "save", "save-weights",
                                          "history",    "csv",  NULL};
    stk_status status = cli_check_outputs(args, outputs, err);
    if (status == STK_OK) status = cli_load_model(args->rest[0], &j->model, &j->file, err);
    if (status == STK_OK) status = stk_trainer_check_memory(j->model, j->how.optimizer, true, err);
    if (status == STK_OK)
        status =
            cli_load_data(args, j->model, args->nrest - 1, args->rest + 1, true, &j->data, err);
    if (status == STK_OK && validation) {
        status = cli_load_data(args, j->model, 1, &validation, true, &j->validation, err);
        j->fit.validation = &j->validation.view;
    }
    if (status == STK_OK && !validation && j->fit.validation_split > 0 && j->data.dataset) {
        status = cli_load_aside(args, j->model, args->rest[1], &j->validation, err);
        if (j->validation.dataset) {
            j->fit.validation = &j->validation.view;
            j->fit.validation_split = 0;
        }
    }
    if (status == STK_OK)
        status = cli_use_settings(args, &j->how, &j->fit, &j->data, &j->settings, err);
    if (status != STK_OK) return status;
    j->goal = cli_choose_goal(args, j->model, &j->data.view);
    cli_use_compiled(args, j->file, &j->how, &j->goal);
    j->how.loss = j->goal.loss;
    j->how.metrics = j->goal.metrics;
    status = cli_choose_device(args, j->model, &j->data.view, j->fit.batch, &j->how, err);
    if (status == STK_OK) status = stk_trainer_new(j->model, &j->how, &j->trainer, err);
    if (status == STK_OK) status = cli_load_weights(args, j->file, true, j->trainer, err);
    if (status == STK_OK) status = add_callbacks(j, err);
    return status;
}

/* Objects of a file of Keras are longer than a line. */
static const char *short_text(const char *text) { return strchr(text, '{') ? "as compiled" : text; }

static void print_plan(const job *j)
{
    if (j->args->quiet || j->args->json) return;
    cli_print_settings(j->args, &j->settings);
    const char *ending = strrchr(j->args->rest[1], '.');
    char batches[48] = "batches of the pipeline";
    if (!j->data.dataset || !ending || strcmp(ending, ".json") != 0)
        snprintf(batches, sizeof batches, "batches of %lld", (long long)j->fit.batch);
    printf("%s: %lld parameters, %s, loss %s%s%s, %s\n", stk_model_name(j->model),
           (long long)stk_model_params(j->model).total,
           strchr(j->how.optimizer, '{') ? "optimizer as compiled" : j->how.optimizer,
           short_text(j->goal.loss), *j->goal.metrics ? ", " : "", short_text(j->goal.metrics),
           batches);
    fflush(stdout);
}

/* ---- after ------------------------------------------------------------------------------------------------------- */

static void rescue_path(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(path, size, "%s/stoker-weights-%ld.safetensors", folder, (long)getpid());
}

/* Trained weights are worth more than the wish for a place: when that fails, they go elsewhere. */
static stk_status save_weights(const job *j, const char *path, stk_error *err)
{
    char rescue[4096];
    stk_error second;
    stk_status status = stk_trainer_save_weights(j->trainer, path, err);
    if (status == STK_OK) return STK_OK;
    rescue_path(rescue, sizeof rescue);
    if (stk_trainer_save_weights(j->trainer, rescue, &second) == STK_OK) {
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, "; the weights are in %s instead",
                 rescue);
    }
    return status;
}

static stk_status save_results(const job *j, stk_error *err)
{
    const char *weights = cli_text(j->args, "save-weights", NULL),
               *history = cli_text(j->args, "history", NULL);
    char *text = NULL;
    const char *model = cli_text(j->args, "save", NULL);
    stk_status status = weights ? save_weights(j, weights, err) : STK_OK;
    if (status == STK_OK && model) status = save_weights(j, model, err);
    if (status == STK_OK && history) status = stk_history_json(j->history, 2, &text, err);
    if (status == STK_OK && history) status = stk_text_save(history, text, err);
    stk_text_free(text);
    return status;
}

/* The command once more, with --resume. */
static void print_resume(const job *j)
{
    const cli_args *args = j->args;
    fprintf(stderr, "go on with: stoker train");
    for (int i = 0; i < args->nrest; i++) fprintf(stderr, " %s", args->rest[i]);
    for (int i = 0; args->command->options[i].name; i++) {
        const cli_option *o = &args->command->options[i];
        if (!args->values[i] || !strcmp(o->name, "resume")) continue;
        fprintf(stderr, o->value ? " --%s %s" : " --%s", o->name, args->values[i]);
    }
    fprintf(stderr, " --resume\n");
}

static int interrupted(const job *j, const stk_error *why)
{
    const char *weights = cli_text(j->args, "save-weights", NULL);
    stk_error err = *why;
    fprintf(stderr, "stoker train: %s\n", why->message);
    if (j->fit.checkpoint) print_resume(j);
    if (weights && save_weights(j, weights, &err) == STK_OK)
        fprintf(stderr, "the weights so far are in %s\n", weights);
    else if (weights)
        fprintf(stderr, "stoker train: %s\n", err.message);
    return CLI_INTERRUPTED;
}

/* Something could not be read or written and the training is over: what was learned is worth more than the order of things.
 * A loss that is no number ends here, too, but has nothing worth keeping. */
static int failed(const job *j, stk_error *why)
{
    bool lost = why->code == STK_ERR_IO || why->code == STK_ERR_MEMORY;
    stk_error err = *why;
    if (!lost || stk_trainer_step(j->trainer) == 0) return cli_fail(j->args, why);
    const char *weights = cli_text(j->args, "save-weights", NULL);
    char rescue[4096];
    rescue_path(rescue, sizeof rescue);
    const char *path = weights ? weights : rescue;
    stk_status status =
        weights ? save_results(j, &err) : stk_trainer_save_weights(j->trainer, rescue, &err);
    size_t used = strlen(why->message);
    if (status == STK_OK)
        snprintf(why->message + used, sizeof why->message - used, "; the weights are in %s", path);
    else
        snprintf(why->message + used, sizeof why->message - used, "; and %s", err.message);
    return cli_fail(j->args, why);
}

static void print_end(const job *j)
{
    stk_train_times times;
    const char *weights = cli_text(j->args, "save-weights", NULL);
    stk_trainer_times(j->trainer, &times);
    if (j->args->json) {
        printf("{\"done\": true, \"epochs\": %lld, \"steps\": %lld, \"seconds\": %.6f, \"time\": ",
               (long long)stk_history_rows(j->history), (long long)stk_trainer_step(j->trainer),
               times.total);
        cli_json_times(stdout, j->trainer, j->books);
        printf("}\n");
        return;
    }
    if (!j->args->quiet && weights) printf("weights: %s\n", weights);
    if (!j->args->quiet && cli_given(j->args, "save"))
        printf("model: %s\n", cli_text(j->args, "save", NULL));
    cli_show_times(j->args, j->trainer, j->books, cli_given(j->args, "times"));
}

static int train(job *j)
{
    stk_error err = {.code = STK_OK};
    stk_status status = prepare(j, &err);
    if (status == STK_OK)
        status = cli_tell_islands(j->args, j->trainer, &j->data.view, j->fit.batch, &err);
    if (status == STK_OK) {
        print_plan(j);
        cli_catch_signals(j->trainer);
        stk_watch *watch = cli_books_open(stk_model_name(j->model));
        status = stk_trainer_fit(j->trainer, &j->data.view, &j->fit, &j->history, &err);
        j->books = cli_books_close(watch);
        cli_show_close(&j->show);
        if (status == STK_ERR_CANCELLED) return interrupted(j, &err);
        if (status != STK_OK) return failed(j, &err);
    }
    if (status == STK_OK) status = save_results(j, &err);
    if (status == STK_OK) status = cli_log_placement(j->args, j->trainer, &err);
    if (status != STK_OK) return cli_fail(j->args, &err);
    print_end(j);
    return CLI_OK;
}

static int run(const cli_args *args)
{
    job j = {.args = args, .how = stk_trainer_defaults()};
    int code;
    cli_show_init(&j.show, args);
    if (read_options(&j, &code)) code = train(&j);
    for (int i = 1; i < CALLBACKS; i++) stk_callback_release(j.callbacks[i]);
    stk_history_release(j.history);
    stk_report_release(j.books);
    cli_catch_signals(NULL);
    stk_trainer_release(j.trainer);
    stk_loaded_data_release(&j.data);
    stk_loaded_data_release(&j.validation);
    stk_model_release(j.model);
    stk_keras_release(j.file);
    stk_device_release(j.how.device);
    return code;
}

static const cli_option options[] = {
    {"epochs", "N", "times through the data (default: 1)"},
    {"optimizer", "TEXT", "adam:lr=1e-3, sgd:lr=0.1,momentum=0.9 ... (default: adam)"},
    {"loss", "NAME", "Keras' name (default: what fits the targets)"},
    {"metrics", "NAMES", "accuracy,mae ... (default: what fits the loss that was chosen)"},
    {"val", "FILE", "data to validate on after each epoch"},
    {"val-split", "SHARE", "or this share of the data, from its end"},
    {"shuffle", "yes|no", "another order of the rows in each epoch (default: yes)"},
    {"steps", "N", "steps per epoch (default: all the data)"},
    {"seed", "N", "of initial weights, order and dropout (default: 0)"},
    {"weights", "FILE", "weights to start from: .safetensors, .keras, .h5 or a checkpoint"},
    {"checkpoint", "FILE", "all that is needed to go on, written after each epoch"},
    {"checkpoint-every", "SECONDS", "and this often in between"},
    {"resume", NULL, "go on from the checkpoint, if it exists"},
    {"early-stop", "EPOCHS", "end when the (validation) loss got no better so long; keep the best"},
    {"save", "FILE", "write the trained model for Keras: .keras, or .h5"},
    {"save-weights", "FILE", "write the trained weights: .safetensors or .weights.h5"},
    {"history", "FILE", "write loss and metrics of all epochs as JSON"},
    {"csv", "FILE", "log a line per epoch"},
    {"times", NULL, "show where the time went, kernels by op"},
    CLI_SETTINGS_OPTION,
    {"deterministic", NULL, "kernels by table: same bits on all machines of one kind"},
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_train = {
    .name = "train",
    .arguments = "MODEL DATA...",
    .summary = "fit a model to data",
    .text =
        "MODEL is what Keras' model.to_json(), model.save() or `stoker init` writes: .json, "
        ".keras\n"
        "or .h5. The last two bring their weights, and what the model was compiled with is the\n"
        "default of --optimizer, --loss and --metrics. DATA is an .npz with\n"
        "arrays x and y, a .csv with a header line, .npy files (inputs, then targets), a folder "
        "of\n"
        "pictures with one folder inside per class, or the .json of an input pipeline (for\n"
        "TFRecord and all else).\n"
        "Ctrl-C ends after the running step, writes the checkpoint and says how to go on.\n",
    .examples = "stoker init mlp --input 784 --classes 10 --out model.json\n"
                "stoker train model.json data.npz --epochs 5 --val-split 0.1 --save-weights "
                "model.safetensors\n"
                "# a model of Keras, trained on and given back to it\n"
                "stoker train model.keras data.npz --epochs 5 --save trained.keras\n"
                "# long runs: nothing is lost, whatever happens\n"
                "stoker train model.json data.npz --epochs 100 --checkpoint run.ckpt "
                "--checkpoint-every 60 --resume\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
