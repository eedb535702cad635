/* stoker doctor - why is it slow, and what helps? Measured, not guessed. */
#include "show.h"
#include "watching.h"

#include <math.h>
#include <unistd.h>

/* Training with what was found to help and changes no number. */
static stk_status apply(cli_run *r, const stk_job_settings *s, stk_error *err)
{
    const char *weights = cli_text(r->args, "save-weights", NULL);
    stk_train_data data = r->data.view;
    stk_dataset *made = NULL;
    stk_history *history = NULL;
    cli_show show;
    cli_show_init(&show, r->args);
    stk_fit_options fit = r->fit;
    stk_job_settings_options(s, NULL, &fit);
    fit.callbacks = (stk_callback *const[]){&show.callback};
    fit.ncallbacks = r->args->json ? 0 : 1;
    stk_status status = stk_job_settings_data(s, &data, &made, err);
    if (status == STK_OK && s->value[STK_KNOB_THREADS] != STK_AS_IS)
        status = stk_trainer_set_threads(r->trainer, (int32_t)s->value[STK_KNOB_THREADS], err);
    if (status == STK_OK) status = stk_trainer_fit(r->trainer, &data, &fit, &history, err);
    cli_show_close(&show);
    if (status == STK_ERR_CANCELLED) {
        stk_error second;
        if (weights && stk_trainer_save_weights(r->trainer, weights, &second) == STK_OK)
            fprintf(stderr, "the weights so far are in %s\n", weights);
    }
    if (status == STK_OK && !r->args->json && !r->args->quiet)
        printf("trained %lld steps: loss %.6g\n", (long long)stk_trainer_step(r->trainer),
               stk_history_value(history, "loss", -1));
    if (status == STK_OK && weights) status = stk_trainer_save_weights(r->trainer, weights, err);
    if (status == STK_OK && weights && !r->args->json && !r->args->quiet)
        printf("weights: %s\n", weights);
    stk_history_release(history);
    stk_dataset_release(made);
    return status;
}

/* What can be done with the settings that were found. */
static void tell_settings(const cli_args *args, const stk_job_settings *s)
{
    const char *path = cli_text(args, "write", NULL);
    char text[256];
    if (args->json || args->quiet) return;
    stk_job_settings_text(s, text, sizeof text);
    if (!text[0])
        printf("\nno safe setting helps here%s%s%s\n", path ? "; " : "", path ? path : "",
               path ? " says so" : "");
    else
        printf("\nsafe settings: %s\n", text);
    if (!text[0]) return;
    printf(path ? "stored; use them with: stoker train"
                : "keep them with --write FILE, then: "
                  "stoker train");
    for (int i = 0; i < args->nrest; i++) printf(" %s", args->rest[i]);
    printf(" --settings %s\n", path ? path : "FILE");
}

/* One line on a terminal; what follows takes its place. */
static void draw_progress(void *context, double share, const char *doing)
{
    enum { WIDTH = 30 };
    const stk_doctor_options *o = context;
    char bar[WIDTH + 1] = {0};
    for (int i = 0; i < WIDTH; i++) bar[i] = i < share * WIDTH ? '=' : ' ';
    fprintf(stderr, "\rmeasuring [%s] %2.0f s left, %s\x1b[K", bar, ceil(o->seconds * (1 - share)),
            doing);
}

/* The data that the training would validate on: it takes its part of an epoch. */
static stk_status load_validation(cli_run *r, stk_loaded_data *out, stk_error *err)
{
    const char *path = cli_text(r->args, "val", NULL);
    if (!path) return STK_OK;
    stk_status status = cli_load_data(r->args, r->model, 1, &path, true, out, err);
    r->fit.validation = &out->view;
    r->fit.validation_split = 0;
    return status;
}

static stk_status examine(cli_run *r, void *context, stk_error *err)
{
    const cli_args *args = r->args;
    stk_loaded_data validation = {0};
    if (!cli_double(args, "val-split", 0, 0.99, &r->fit.validation_split))
        return cli_error(err, STK_ERR_ARGUMENT, "--val-split takes a share from 0 to 0.99");
    if (r->data.dataset) r->fit.validation_split = 0; /* a folder of pictures has put it aside */
    const char *path = cli_text(args, "write", NULL);
    stk_job job = {0};
    stk_report *report = NULL;
    stk_doctor_options *o = context;
    if (cli_wants_bar(args, STDERR_FILENO)) o->progress = draw_progress, o->progress_context = o;
    stk_status status =
        cli_check_reports(args, (const char *[]){"write", "save-weights", NULL}, err);
    if (status == STK_OK) status = load_validation(r, &validation, err);
    if (status == STK_OK) status = stk_train_job_new(r->trainer, &r->data.view, &r->fit, &job, err);
    if (status == STK_OK) {
        cli_begin_watching(r, &job);
        status = stk_doctor_run(&job, o, &report, err);
        if (o->progress) fprintf(stderr, "\r\x1b[K");
    }
    stk_train_job_release(&job);
    if (status == STK_OK) status = cli_tell_report(args, report, err);
    stk_job_settings settings = stk_report_settings(report);
    stk_report_release(report);
    if (status == STK_OK && path) status = stk_job_settings_save(&settings, path, err);
    if (status == STK_OK) tell_settings(args, &settings);
    if (status == STK_OK && cli_given(args, "apply")) status = apply(r, &settings, err);
    cli_catch_signals(NULL);
    stk_loaded_data_release(&validation);
    return status;
}

static int run(const cli_args *args)
{
    stk_doctor_options o = stk_doctor_options_defaults();
    if (!cli_double(args, "seconds", 1, 3600, &o.seconds)) return CLI_USAGE;
    o.no_math = cli_given(args, "keep-mathematics");
    if (cli_given(args, "save-weights") && !cli_given(args, "apply"))
        return cli_usage(args, "--save-weights needs --apply: without it nothing is trained");
    return cli_run_model(args, true, examine, &o);
}

static const cli_option options[] = {
    {"seconds", "S", "about how long to measure (default: 12)"},
    {"keep-mathematics", NULL, "do not try other batch sizes and other numbers"},
    {"apply", NULL, "then train with the advice that changes no number"},
    {"save-weights", "FILE", "with --apply: write the trained weights"},
    {"val", "FILE", "data that the training would validate on after each epoch"},
    {"val-split", "SHARE", "or this share of the data, from its end"},
    {"write", "FILE", "store that advice as JSON for later runs"},
    CLI_WATCHING_OPTIONS,
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_doctor = {
    .name = "doctor",
    .arguments = "MODEL.json DATA...",
    .summary = "find out why training is slow and what helps, by measuring",
    .text =
        "Runs the training for a short while with its books open, then again and again with one\n"
        "thing changed, in turns, and tells what each change brings with its interval. No verdict\n"
        "is given where noise is larger than the effect. Weights are put back to the bit. Tried "
        "are\n"
        "prefetch, workers, a cache of what each epoch makes anew, threads and rarer callbacks. "
        "What\n"
        "changes the mathematics (batch, 16-bit numbers) is listed apart and never applied.\n",
    .examples = "stoker doctor model.json data.npz\n"
                "# a report to look at, and settings for later runs\n"
                "stoker doctor model.json pipeline.json --html report.html --write advice.json\n"
                "stoker train model.json pipeline.json --epochs 5 --settings advice.json\n"
                "# the same in one go: examine, then train with what helps and changes no number\n"
                "stoker doctor model.json pipeline.json --apply --epochs 5 --save-weights "
                "w.safetensors\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
