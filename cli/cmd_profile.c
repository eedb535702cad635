/* stoker profile - the books of some steps, without any probing. */
#include "watching.h"

static stk_status watch(cli_watching *w, int64_t steps, stk_report **report, stk_error *err)
{
    stk_watch *recording = NULL;
    void *lane = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    s.title = w->job.name;
    s.batch = w->job.batch;
    s.plan_steps = w->job.plan_steps;
    stk_job_settings as_is = stk_job_settings_defaults();
    stk_status status = stk_watch_start(&s, &recording, err);
    if (status != STK_OK) return status;
    status = w->job.open(w->job.context, &as_is, &lane, err);
    if (status == STK_OK) status = w->job.run(w->job.context, lane, steps, err);
    stk_error second;
    stk_status stopped = stk_watch_stop(recording, report, status == STK_OK ? err : &second);
    if (status == STK_OK) status = stopped;
    enum { STAGES = 32 };
    stk_watch_stage stages[STAGES];
    int32_t n = status == STK_OK ? w->job.stages(w->job.context, lane, stages, STAGES) : 0;
    for (int32_t i = 0; i < n && status == STK_OK; i++)
        status = stk_report_add_stage(*report, &stages[i], err);
    if (lane) w->job.close(w->job.context, lane);
    return status;
}

static int run(const cli_args *args)
{
    cli_watching w;
    stk_error err;
    stk_report *report = NULL;
    int64_t count = 200;
    int code;
    if (!cli_int(args, "count", 1, 1000000, &count)) return CLI_USAGE;
    if (cli_watching_open(args, &w, &code))
        code = watch(&w, count, &report, &err) == STK_OK ? cli_watching_tell(args, report)
                                                         : cli_fail(args, &err);
    stk_report_release(report);
    cli_watching_release(&w);
    return code;
}

static const cli_option options[] = {
    {"count", "N", "steps to record (default: 200)"},
    CLI_WATCHING_OPTIONS,
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_profile = {
    .name = "profile",
    .arguments = "MODEL.json DATA...",
    .summary = "where the time of a training step goes: closed books, ops, pipeline",
    .examples = "stoker profile model.json data.npz\n"
                "stoker profile model.json data.npz --report before.json --html before.html\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
