/* stoker profile - the books of some steps, without any probing. */
#include "watching.h"

/* Stages are read before the variant is closed. */
static stk_status add_stages(const stk_job *job, void *variant, stk_report *report, stk_error *err)
{
    enum { STAGES = 32 };
    stk_watch_stage stages[STAGES];
    stk_status status = STK_OK;
    int32_t n = job->stages(job->context, variant, stages, STAGES);
    for (int32_t i = 0; i < n && status == STK_OK; i++)
        status = stk_report_add_stage(report, &stages[i], err);
    return status;
}

static stk_status record(const stk_job *job, int64_t steps, stk_report **report, stk_error *err)
{
    stk_watch *watch = NULL;
    void *variant = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    stk_job_settings as_is = stk_job_settings_defaults();
    stk_error second;
    s.title = job->name;
    s.batch = job->batch;
    s.plan_steps = job->plan_steps;
    stk_status status = stk_watch_start(&s, &watch, err);
    if (status != STK_OK) return status;
    status = job->open(job->context, &as_is, &variant, err);
    if (status == STK_OK) status = job->run(job->context, variant, steps, err);
    stk_status stopped = stk_watch_stop(watch, report, status == STK_OK ? err : &second);
    if (status == STK_OK) status = stopped;
    if (status == STK_OK) status = add_stages(job, variant, *report, err);
    if (variant) job->close(job->context, variant);
    return status;
}

static stk_status profile(cli_run *r, void *context, stk_error *err)
{
    stk_job job = {0};
    stk_report *report = NULL;
    stk_status status = cli_check_reports(r->args, NULL, err);
    if (status == STK_OK) status = stk_train_job_new(r->trainer, &r->data.view, &r->fit, &job, err);
    if (status == STK_OK) cli_begin_watching(r, &job);
    if (status == STK_OK) status = record(&job, *(const int64_t *)context, &report, err);
    if (status == STK_OK) status = cli_tell_report(r->args, report, err);
    stk_report_release(report);
    cli_catch_signals(NULL);
    stk_train_job_release(&job);
    return status;
}

static int run(const cli_args *args)
{
    int64_t count = 200;
    if (!cli_int(args, "count", 2, 1000000, &count)) return CLI_USAGE;
    return cli_run_model(args, true, profile, &count);
}

static const cli_option options[] = {
    {"count", "N", "steps to record; the first one is no settled one (default: 200)"},
    CLI_WATCHING_OPTIONS,
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_profile = {
    .name = "profile",
    .arguments = "MODEL.json DATA...",
    .summary = "where the time of a training step goes: closed books, ops, pipeline",
    .text =
        "Trains for some steps and adds up what each of them spent its time on; what nothing\n"
        "claimed is shown as the residual. Nothing is tried and no weights are kept: for advice\n"
        "ask `stoker doctor`.\n",
    .examples = "stoker profile model.json data.npz\n"
                "stoker profile model.json data.npz --report before.json --html before.html\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
