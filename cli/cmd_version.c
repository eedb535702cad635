/* stoker version */
#include "cli.h"
#include "table.h"

static void print_json(const stk_device_report *report)
{
    printf("{\"version\": ");
    cli_json_text(stdout, stk_version());
    printf(", \"device\": ");
    cli_json_text(stdout, report->detail);
    printf(", \"threads\": %d, \"features\": {", report->threads);
    for (int32_t i = 0; i < stk_feature_count(); i++) {
        if (i) printf(", ");
        cli_json_text(stdout, stk_feature_name(i));
        printf(": ");
        cli_json_text(stdout, stk_feature_text(i));
    }
    printf("}}\n");
}

static int run(const cli_args *args)
{
    stk_device *device = NULL;
    stk_device_report report = {.threads = 0};
    stk_error err;
    if (stk_device_open("cpu:0", 0, &device, &err) != STK_OK) return cli_fail(args, &err);
    stk_device_describe(device, &report);
    stk_device_release(device);
    if (args->json) {
        print_json(&report);
        return CLI_OK;
    }
    printf("stoker %s\n", stk_version());
    if (args->quiet) return CLI_OK;
    cli_table t = {.columns = 2};
    for (int32_t i = 0; i < stk_feature_count(); i++) {
        cli_cell(&t, "%s", stk_feature_name(i));
        cli_cell(&t, "%s", stk_feature_text(i));
    }
    cli_cell(&t, "%s", report.name);
    cli_cell(&t, "%s, %d threads", report.detail, report.threads);
    cli_table_print(&t, stdout, "  ");
    cli_table_free(&t);
    return CLI_OK;
}

const cli_command cli_version = {
    .name = "version",
    .arguments = "",
    .summary = "the version, what the build found, and the processor",
    .examples = "stoker version --json\n",
    .run = run,
};
