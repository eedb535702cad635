/* run.c - from arguments to a trainer, and settings of an earlier examination. */
#include "run.h"

#include <string.h>

stk_status cli_use_settings(const cli_args *args, stk_trainer_options *how, stk_fit_options *fit,
                            cli_batches *data, stk_job_settings *used, stk_error *err)
{
    static const struct {
        const char *option;
        stk_knob knob;
    } stronger[] = {{"threads", STK_KNOB_THREADS},
                    {"precision", STK_KNOB_PRECISION},
                    {"batch", STK_KNOB_BATCH}};
    const char *path = cli_text(args, "settings", NULL);
    stk_dataset *made = NULL;
    *used = stk_job_settings_defaults();
    if (!path) return STK_OK;
    stk_status status = stk_job_settings_load(path, used, err);
    if (status != STK_OK) return status;
    for (size_t i = 0; i < sizeof stronger / sizeof *stronger; i++)
        if (cli_given(args, stronger[i].option)) used->value[stronger[i].knob] = STK_AS_IS;
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
    const char *weights = cli_text(args, "weights", NULL);
    stk_job_settings ignored;
    stk_status status = cli_load_model(args->rest[0], &r->model, err);
    if (status == STK_OK)
        status =
            cli_load_data(args, r->model, args->nrest - 1, args->rest + 1, targets, &r->data, err);
    if (status == STK_OK)
        status = cli_use_settings(args, &r->how, &r->fit, &r->data, &ignored, err);
    if (status != STK_OK) return status;
    if (targets) {
        cli_goal goal = cli_choose_goal(args, r->model, &r->data);
        r->how.loss = goal.loss;
        r->how.metrics = goal.metrics;
    }
    r->how.deterministic = cli_given(args, "deterministic");
    r->how.optimizer = cli_text(args, "optimizer", "adam");
    status = stk_trainer_new(r->model, &r->how, &r->trainer, err);
    if (status == STK_OK && weights)
        status = stk_trainer_load_weights(r->trainer, weights, false, err);
    return status;
}

int cli_run_model(const cli_args *args, bool targets, cli_work work, void *context)
{
    cli_run r = {.args = args, .how = stk_trainer_defaults(), .fit = stk_fit_defaults()};
    stk_error err;
    int code;
    if (!cli_int(args, "epochs", 1, INT64_MAX, &r.fit.epochs) ||
        !cli_int(args, "steps", 1, INT64_MAX, &r.fit.steps_per_epoch) ||
        !cli_int(args, "seed", INT64_MIN, INT64_MAX, &r.how.seed))
        return CLI_USAGE;
    if (!cli_trainer_options(args, &r.how, &r.fit.batch, &code)) return code;
    stk_status status = load(&r, targets, &err);
    if (status == STK_OK) status = work(&r, context, &err);
    stk_trainer_release(r.trainer);
    cli_data_release(&r.data);
    stk_model_release(r.model);
    stk_device_release(r.how.device);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}
