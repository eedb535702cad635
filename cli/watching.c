/* The model, its data and a trainer, made ready to be watched. */
#include "watching.h"

#include <string.h>

static stk_status load(cli_watching *w, stk_error *err)
{
    const cli_args *args = w->args;
    stk_status status = stk_model_load_json(args->rest[0], &w->model, err);
    if (status == STK_OK)
        status =
            cli_load_data(args, w->model, args->nrest - 1, args->rest + 1, true, &w->data, err);
    if (status != STK_OK) return status;
    cli_goal goal = cli_choose_goal(args, w->model, &w->data);
    w->how.optimizer = cli_text(args, "optimizer", "adam");
    w->how.loss = goal.loss;
    w->how.metrics = goal.metrics;
    status = stk_trainer_new(w->model, &w->how, &w->trainer, err);
    if (status == STK_OK)
        status = stk_train_job_new(w->trainer, &w->data.view, &w->fit, &w->job, err);
    return status;
}

bool cli_watching_open(const cli_args *args, cli_watching *w, int *code)
{
    stk_error err;
    *w = (cli_watching){.args = args, .how = stk_trainer_defaults(), .fit = stk_fit_defaults()};
    *code = CLI_USAGE;
    if (!cli_trainer_options(args, &w->how, &w->fit.batch, code)) return false;
    *code = CLI_USAGE;
    if (!cli_int(args, "epochs", 1, INT64_MAX, &w->fit.epochs) ||
        !cli_int(args, "steps", 1, INT64_MAX, &w->fit.steps_per_epoch))
        return false;
    if (load(w, &err) == STK_OK) return true;
    *code = cli_fail(args, &err);
    return false;
}

void cli_watching_release(cli_watching *w)
{
    stk_train_job_release(&w->job);
    stk_trainer_release(w->trainer);
    cli_data_release(&w->data);
    stk_model_release(w->model);
    stk_device_release(w->how.device);
}

int cli_watching_tell(const cli_args *args, const stk_report *report)
{
    static const struct {
        const char *option;
        stk_report_kind kind;
    } files[] = {{"html", STK_REPORT_HTML},
                 {"report", STK_REPORT_JSON},
                 {"trace", STK_REPORT_CHROME},
                 {"tensorboard", STK_REPORT_TENSORBOARD}};
    stk_error err;
    char *text = NULL;
    stk_status status = stk_report_render(report, args->json ? STK_REPORT_JSON : STK_REPORT_TEXT,
                                          &text, NULL, &err);
    if (status == STK_OK) fputs(text, stdout);
    stk_text_free(text);
    for (size_t i = 0; status == STK_OK && i < sizeof files / sizeof *files; i++) {
        const char *path = cli_text(args, files[i].option, NULL);
        if (!path) continue;
        status = stk_report_save(report, files[i].kind, path, &err);
        if (status == STK_OK && !args->quiet && !args->json)
            printf("\n%s: %s", files[i].option, path);
    }
    if (!args->json && !args->quiet) printf("\n");
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}
