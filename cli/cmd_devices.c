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
        printf(", \"note\": ");
        cli_json_text(stdout, list[i].note);
        printf(", \"trouble\": ");
        cli_json_text(stdout, list[i].trouble);
        printf(", \"threads\": %d, \"memory\": %lld, \"shares_memory\": %s}", list[i].threads,
               (long long)list[i].memory, list[i].shares_memory ? "true" : "false");
    }
    printf("]\n");
}

/* What each can do, measured now. */
static int calibrate(const cli_args *args, const stk_device_report *list, int32_t n)
{
    cli_table t = {.columns = 8, .right = ~1u};
    const char *const heads[] = {"name",     "launch", "round trip", "up",
                                 "up, fast", "down",   "product",    "elementwise"};
    for (int i = 0; i < t.columns && !args->quiet; i++) cli_cell(&t, "%s", heads[i]);
    int32_t shown = 0;
    if (args->json) printf("[");
    for (int32_t i = 0; i < n; i++) {
        stk_device *d = NULL;
        stk_calibration c;
        stk_error err;
        if (list[i].trouble[0]) continue;
        stk_status status = stk_device_open(list[i].name, 0, &d, &err);
        if (status == STK_OK) status = stk_device_calibrate(d, true, &c, &err);
        stk_device_release(d);
        if (status != STK_OK) {
            cli_table_free(&t);
            return cli_fail(args, &err);
        }
        if (args->json)
            printf("%s{\"name\": \"%s\", \"launch\": %.6g, \"run\": %.6g, \"round_trip\": %.6g, "
                   "\"up\": %.6g, "
                   "\"up_pinned\": %.6g, \"down\": %.6g, \"flops\": %.6g, \"bytes\": %.6g}",
                   shown++ ? ", " : "", list[i].name, c.launch, c.run, c.round_trip, c.up,
                   c.up_pinned, c.down, c.flops, c.bytes);
        cli_cell(&t, "%s", list[i].name);
        cli_cell(&t, "%.2f us", c.launch * 1e6);
        cli_cell(&t, "%.2f us", c.round_trip * 1e6);
        const double roads[] = {c.up, c.up_pinned, c.down};
        for (int k = 0; k < 3; k++)
            if (roads[k] > 0)
                cli_cell(&t, "%.1f GB/s", roads[k] * 1e-9);
            else
                cli_cell(&t, "in place");
        cli_cell(&t, "%.0f Gflop/s", c.flops * 1e-9);
        cli_cell(&t, "%.1f GB/s", c.bytes * 1e-9);
    }
    if (args->json)
        printf("]\n");
    else
        cli_table_print(&t, stdout, "");
    cli_table_free(&t);
    return CLI_OK;
}

static int run(const cli_args *args)
{
    stk_device_report list[MOST_DEVICES];
    stk_error err;
    int32_t n = 0;
    if (stk_device_list(MOST_DEVICES, list, &n, &err) != STK_OK) return cli_fail(args, &err);
    if (cli_given(args, "calibrate")) return calibrate(args, list, n);
    if (args->json) {
        print_json(list, n);
        return CLI_OK;
    }
    cli_table t = {.columns = 5, .right = 1u << 1 | 1u << 2};
    const char *const heads[] = {"name", "threads", "memory", "data", "what it is"};
    for (int i = 0; i < t.columns && !args->quiet; i++) cli_cell(&t, "%s", heads[i]);
    for (int32_t i = 0; i < n; i++) {
        cli_cell(&t, "%s", list[i].name);
        if (list[i].trouble[0]) {
            for (int k = 0; k < 3; k++) cli_cell(&t, "-");
            cli_cell(&t, "cannot be opened: %s", list[i].trouble);
            continue;
        }
        cli_cell(&t, "%d", list[i].threads);
        cli_cell(&t, "%.1f GB", (double)list[i].memory / 1e9);
        cli_cell(&t, "%s", list[i].shares_memory ? "in place" : "copied");
        cli_cell(&t, "%s%s%s", list[i].detail, list[i].note[0] ? "; " : "", list[i].note);
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
    const char *missing = stk_device_missing();
    if (*missing && !args->quiet) printf("\nnot usable: %s\n", missing);
    return CLI_OK;
}

static const cli_option options[] = {
    {"calibrate", NULL,
     "measure what each can do (about a second each) and keep it for --device auto"},
    {NULL, NULL, NULL}};

const cli_command cli_devices = {
    .name = "devices",
    .arguments = "",
    .summary = "what there is to run on; --device of other commands takes the names",
    .text = "One line per device. The memory is what a program may use. \"in place\": the device\n"
            "works on the data where it is; \"copied\": batches go up to it and results come down.",
    .options = options,
    .examples = "stoker devices --json\nstoker devices --calibrate\nstoker train model.json "
                "data.npz --device cpu:0\n",
    .run = run,
};
