/* stoker devices */
#include "cli.h"
#include "table.h"

enum { MOST_DEVICES = 64 };

static void print_json(const stk_device_report *list, int32_t n)
{
    printf("[");
    for (int32_t i = 0; i < n; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, list[i].name);
        printf(", \"detail\": ");
        cli_json_text(stdout, list[i].detail);
        printf(", \"threads\": %d, \"memory\": %lld, \"shares_memory\": %s}", list[i].threads,
               (long long)list[i].memory, list[i].shares_memory ? "true" : "false");
    }
    printf("]\n");
}

static int run(const cli_args *args)
{
    stk_device_report list[MOST_DEVICES];
    stk_error err;
    int32_t n = 0;
    if (stk_device_list(MOST_DEVICES, list, &n, &err) != STK_OK) return cli_fail(args, &err);
    if (args->json) {
        print_json(list, n);
        return CLI_OK;
    }
    cli_table t = {.columns = 5, .right = 1u << 1 | 1u << 2};
    const char *const heads[] = {"name", "threads", "memory", "data", "what it is"};
    for (int i = 0; i < t.columns && !args->quiet; i++) cli_cell(&t, "%s", heads[i]);
    for (int32_t i = 0; i < n; i++) {
        cli_cell(&t, "%s", list[i].name);
        cli_cell(&t, "%d", list[i].threads);
        cli_cell(&t, "%.1f GB", (double)list[i].memory / 1e9);
        cli_cell(&t, "%s", list[i].shares_memory ? "in place" : "copied");
        cli_cell(&t, "%s", list[i].detail);
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
    return CLI_OK;
}

const cli_command cli_devices = {
    .name = "devices",
    .arguments = "",
    .summary = "what there is to run on; --device of other commands takes the names",
    .text = "One line per device. The memory is what a program may use. \"in place\": the device\n"
            "works on the data where it is; \"copied\": batches go up to it and results come down.",
    .examples = "stoker devices --json\nstoker train model.json data.npz --device cpu:0\n",
    .run = run,
};
