/* watching.c - reports to the terminal and into files. */
#include "watching.h"

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
        if (!path) continue;
        status = stk_report_save(report, files[i].kind, path, err);
        if (status == STK_OK && chatty)
            printf("%s%s: %s\n", first ? "\n" : "", files[i].option, path);
        first = false;
    }
    return status;
}
