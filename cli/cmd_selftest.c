/* stoker selftest */
#include "cli.h"
#include "table.h"

#include <string.h>

static void print_sets_json(const stk_selftest_report *r)
{
    printf(", \"sets\": [");
    for (int32_t i = 0; i < r->nsets; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, r->sets[i].name);
        printf(", \"built\": %s, \"ran\": %s}", r->sets[i].built ? "true" : "false",
               r->sets[i].ran ? "true" : "false");
    }
    printf("]");
}

static void print_json(const stk_selftest_report *r)
{
    printf("{\"version\": ");
    cli_json_text(stdout, stk_version());
    printf(", \"compiler\": ");
    cli_json_text(stdout, r->compiler);
    printf(", \"device\": ");
    cli_json_text(stdout, r->device);
    printf(", \"detail\": ");
    cli_json_text(stdout, r->detail);
    print_sets_json(r);
    printf(", \"cases\": %lld, \"failures\": %lld, \"seconds\": %.2f, \"kernels\": [",
           (long long)r->cases, (long long)r->failures, r->seconds);
    for (int32_t i = 0; i < r->nrows; i++) {
        const stk_selftest_row *row = &r->rows[i];
        printf("%s\n  {\"kernel\": ", i ? "," : "");
        cli_json_text(stdout, row->kernel);
        printf(", \"implementation\": ");
        cli_json_text(stdout, row->implementation);
        printf(", \"set\": ");
        cli_json_text(stdout, row->set);
        printf(", \"cases\": %lld, \"failures\": %lld, \"worst\": ", (long long)row->cases,
               (long long)row->failures);
        cli_json_number(stdout, row->worst);
        printf(", \"where\": ");
        cli_json_text(stdout, row->where);
        printf("}");
    }
    printf("]}\n");
}

static void print_head(const stk_selftest_report *r)
{
    printf("stoker %s, built with %s\n%s: %s\n", stk_version(), r->compiler, r->device, r->detail);
    for (int32_t i = 0; i < r->nsets; i++)
        if (!r->sets[i].ran)
            printf("NOT RUN: %s (%s)\n", r->sets[i].name,
                   r->sets[i].here    ? "not asked for"
                   : r->sets[i].built ? "this processor has not got it"
                                      : "not in this build");
}

static void print_rows(const stk_selftest_report *r, bool failed_only)
{
    cli_table t = {.columns = 7};
    static const char *const heads[] = {"kernel", "by", "set", "cases", "wrong", "worst", "where"};
    for (int i = 0; i < 7; i++) cli_cell(&t, "%s", heads[i]);
    for (int32_t i = 0; i < r->nrows; i++) {
        const stk_selftest_row *row = &r->rows[i];
        if (failed_only && !row->failures) continue;
        cli_cell(&t, "%s", row->kernel);
        cli_cell(&t, "%s", row->implementation);
        cli_cell(&t, "%s", row->set[0] ? row->set : "its own");
        cli_cell(&t, "%lld", (long long)row->cases);
        cli_cell(&t, "%lld", (long long)row->failures);
        cli_cell(&t, "%.1e", row->worst);
        cli_cell(&t, "%s", row->where);
    }
    cli_table_print(&t, stdout, "  ");
    cli_table_free(&t);
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_selftest_report *report = NULL;
    stk_selftest_options options = stk_selftest_options_defaults();
    options.only = args->nrest ? args->rest[0] : NULL;
    options.set = cli_text(args, "set", NULL);
    options.small = cli_given(args, "small");
    stk_device *device = NULL;
    const char *name = cli_text(args, "device", "cpu:0");
    if (stk_device_open(name, 0, &device, &err) != STK_OK) return cli_fail(args, &err);
    options.device = device;
    stk_status status = stk_selftest_run(&options, &report, &err);
    stk_device_release(device);
    if (status != STK_OK) return cli_fail(args, &err);
    bool known = !options.set;
    for (int32_t i = 0; i < report->nsets && !known; i++)
        known = !strcmp(report->sets[i].name, options.set);
    if (!known) {
        stk_selftest_release(report);
        return cli_usage(args,
                         "--set %s: there are base, avx2, avx512, amx and amx-emulated of a cpu",
                         options.set);
    }
    int code = report->failures ? CLI_FAILED : CLI_OK;
    if (args->json) {
        print_json(report);
    } else {
        print_head(report);
        if (!args->quiet || report->failures) print_rows(report, args->quiet);
        printf("%lld cases, %lld wrong, %.1f s\n", (long long)report->cases,
               (long long)report->failures, report->seconds);
        if (report->failures)
            printf("Results on this machine are wrong where a row says so. Please report all of "
                   "the above; until then,\n"
                   "STOKER_ISA=base or STOKER_KERNEL=kernel:by (see stoker help train) avoid a "
                   "row.\n");
        if (!report->cases && options.only) printf("no kernel '%s' was run\n", options.only);
    }
    stk_selftest_release(report);
    return code;
}

static const cli_option OPTIONS[] = {
    {"device", "NAME", "kernels of this device, as `stoker devices` lists them (default: cpu:0)"},
    {"set", "NAME", "only this instruction set: base, avx2, avx512, amx or amx-emulated"},
    {"small", NULL, "only small shapes: under a checker that is slow, such as oclgrind"},
    {NULL, NULL, NULL},
};

const cli_command cli_selftest = {
    .name = "selftest",
    .arguments = "[KERNEL]",
    .summary = "does this machine compute right: every kernel against the reference",
    .text =
        "Every kernel of every instruction set that the processor has, and of the libraries that\n"
        "were found, against the reference kernels, on shapes at the edges of vectors and blocks.\n"
        "One row per kernel, implementation and instruction set: cases, wrong ones, the largest\n"
        "difference |got - want| / (1 + |want|), and where it was. Sets that this machine cannot\n"
        "run are named as not run. amx is avx512 with products of tiles; amx-emulated is the same\n"
        "with tiles in plain C, for processors without, and runs when it is asked for by name.\n"
        "STOKER_ISA=NAME makes any command compute with that set. With KERNEL, those whose names\n"
        "contain it. The exit code is 0 when nothing was wrong.",
    .examples = "stoker selftest\nstoker selftest reduce\nstoker selftest --device gpu:0\n"
                "# what to attach to a report about wrong results\nstoker selftest --json > "
                "selftest.json\n",
    .options = OPTIONS,
    .least = 0,
    .most = 1,
    .run = run,
};
