/* watching.c - reports to the terminal and into files. */
#include "watching.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUTS = 8 };

/* TensorBoard looks at files with this in their name only. */
static bool is_event_file(const char *path) { return strstr(path, "tfevents") != NULL; }

/* The file for --tensorboard FOLDER, which is made when it is not there. */
static stk_status event_file(const char *folder, char *path, size_t size, stk_error *err)
{
    snprintf(path, size, "%s", folder);
    if (is_event_file(folder)) return STK_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_error(err, STK_ERR_IO, "%s: cannot make the folder: %s", folder,
                         strerror(errno));
    snprintf(path, size, "%s/events.out.tfevents.%lld.stoker.%ld", folder, (long long)time(NULL),
             (long)getpid());
    return STK_OK;
}

stk_status cli_check_reports(const cli_args *args, const char *const *more, stk_error *err)
{
    const char *options[OUTPUTS] = {"html", "report", "trace", NULL};
    int n = 3;
    for (; more && *more && n < OUTPUTS - 1; more++) options[n++] = *more;
    stk_status status = cli_check_outputs(args, options, err);
    const char *events = cli_text(args, "tensorboard", NULL);
    struct stat info;
    if (status == STK_OK && events && !is_event_file(events) && stat(events, &info) == 0 &&
        !S_ISDIR(info.st_mode))
        status =
            cli_error(err, STK_ERR_ARGUMENT,
                      "%s: is a file; TensorBoard reads folders, give the name of one", events);
    return status;
}

/* ---- Ctrl-C between two turns -------------------------------------------------------------------------------- */

static stk_status (*run_inside)(void *context, void *variant, int64_t steps, stk_error *err);

static stk_status run_unless_asked(void *context, void *variant, int64_t steps, stk_error *err)
{
    stk_status status =
        cli_interrupted() ? STK_ERR_CANCELLED : run_inside(context, variant, steps, err);
    if (status != STK_ERR_CANCELLED) return status;
    return cli_error(err, STK_ERR_CANCELLED, "interrupted while measuring; nothing was written");
}

void cli_begin_watching(const cli_run *r, stk_job *job)
{
    cli_catch_signals(r->trainer);
    run_inside = job->run;
    job->run = run_unless_asked;
    /* Without a word about it nobody knows how long the run will be, and whether its start matters. */
    if (!cli_given(r->args, "epochs") && !cli_given(r->args, "steps")) job->plan_steps = 0;
}

/* ---- reports ------------------------------------------------------------------------------------------------------ */

stk_status cli_tell_report(const cli_args *args, const stk_report *report, stk_error *err)
{
    static const struct {
        const char *option;
        stk_report_kind kind;
    } files[] = {{"html", STK_REPORT_HTML},
                 {"report", STK_REPORT_JSON},
                 {"trace", STK_REPORT_CHROME},
                 {"tensorboard", STK_REPORT_TENSORBOARD}};
    char *text = NULL;
    bool chatty = !args->json && !args->quiet, first = true;
    stk_status status =
        stk_report_render(report, args->json ? STK_REPORT_JSON : STK_REPORT_TEXT, &text, NULL, err);
    if (status == STK_OK) fputs(text, stdout);
    stk_text_free(text);
    for (size_t i = 0; status == STK_OK && i < sizeof files / sizeof *files; i++) {
        const char *path = cli_text(args, files[i].option, NULL);
        char events[4096];
        if (!path) continue;
        if (files[i].kind == STK_REPORT_TENSORBOARD) {
            status = event_file(path, events, sizeof events, err);
            path = events;
        }
        if (status == STK_OK) status = stk_report_save(report, files[i].kind, path, err);
        if (status == STK_OK && chatty)
            printf("%s%s: %s\n", first ? "\n" : "", files[i].option, path);
        first = false;
    }
    return status;
}
