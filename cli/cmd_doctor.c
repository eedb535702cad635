/* stoker doctor - why is it slow, and what helps? Measured, not guessed. */
#include "watching.h"

static stk_status apply(cli_watching *w, const stk_job_settings *s, stk_error *err)
{
    stk_train_data data = w->data.view;
    stk_dataset *ahead = NULL;
    stk_history *history = NULL;
    if (data.dataset && s->value[STK_KNOB_PREFETCH] != STK_AS_IS) {
        ahead =
            stk_data_prefetch(stk_dataset_retain(data.dataset), s->value[STK_KNOB_PREFETCH], err);
        if (!ahead) return err->code;
        data.dataset = ahead;
    }
    stk_status status = stk_trainer_fit(w->trainer, &data, &w->fit, &history, err);
    const char *weights = cli_text(w->args, "save-weights", NULL);
    if (status == STK_OK && !w->args->json)
        printf("trained %lld steps with the safe advice applied: loss %.6g\n",
               (long long)stk_trainer_step(w->trainer), stk_history_value(history, "loss", -1));
    if (status == STK_OK && weights) status = stk_trainer_save_weights(w->trainer, weights, err);
    stk_history_release(history);
    stk_dataset_release(ahead);
    return status;
}

static int examine(cli_watching *w, const stk_doctor_options *o)
{
    stk_error err;
    stk_report *report = NULL;
    if (stk_doctor_run(&w->job, o, &report, &err) != STK_OK) return cli_fail(w->args, &err);
    int code = cli_watching_tell(w->args, report);
    stk_job_settings settings = stk_report_settings(report);
    stk_report_release(report);
    const char *path = cli_text(w->args, "write", NULL);
    if (code == CLI_OK && path && stk_job_settings_save(&settings, path, &err) != STK_OK)
        return cli_fail(w->args, &err);
    if (code == CLI_OK && cli_given(w->args, "apply") && apply(w, &settings, &err) != STK_OK)
        return cli_fail(w->args, &err);
    return code;
}

static int run(const cli_args *args)
{
    cli_watching w;
    stk_doctor_options o = stk_doctor_options_defaults();
    int code;
    if (!cli_double(args, "seconds", 1, 3600, &o.seconds)) return CLI_USAGE;
    o.no_math = cli_given(args, "keep-mathematics");
    if (cli_watching_open(args, &w, &code)) code = examine(&w, &o);
    cli_watching_release(&w);
    return code;
}

static const cli_option options[] = {
    {"seconds", "S", "about how long to measure (default: 12)"},
    {"keep-mathematics", NULL, "do not try other batch sizes"},
    {"apply", NULL, "then train with the advice that changes no number"},
    {"save-weights", "FILE", "with --apply: write the trained weights"},
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
        "Runs the training for a short while with its books open, then again and again with one "
        "thing changed, in\n"
        "turns, and tells what each change brings with its interval. No verdict is given where "
        "noise is larger than\n"
        "the effect. Weights are put back to the bit. What changes the mathematics is listed "
        "apart.\n",
    .examples = "stoker doctor model.json data.npz\n"
                "stoker doctor model.json pipeline.json --html report.html --write advice.json\n"
                "stoker doctor model.json pipeline.json --apply --epochs 5 --save-weights "
                "w.safetensors\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
