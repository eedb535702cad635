/* stoker compare - two reports side by side. */
#include "cli.h"

/* {"a": seconds of a step, "b": ..., "books": {"input wait": [a, b], ...}} */
static void print_json(const stk_report *a, const stk_report *b)
{
    printf("{\"a\": ");
    cli_json_number(stdout, stk_report_seconds(a, STK_BOOK_COUNT));
    printf(", \"b\": ");
    cli_json_number(stdout, stk_report_seconds(b, STK_BOOK_COUNT));
    printf(", \"books\": {");
    for (int k = 0; k < STK_BOOK_COUNT; k++) {
        printf("%s\"%s\": [", k ? ", " : "", stk_book_name((stk_book)k));
        cli_json_number(stdout, stk_report_seconds(a, (stk_book)k));
        printf(", ");
        cli_json_number(stdout, stk_report_seconds(b, (stk_book)k));
        printf("]");
    }
    printf("}}\n");
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_report *a = NULL, *b = NULL;
    char *text = NULL;
    stk_status status = stk_report_load(args->rest[0], &a, &err);
    if (status == STK_OK) status = stk_report_load(args->rest[1], &b, &err);
    if (status == STK_OK) status = stk_report_compare(a, b, &text, &err);
    if (status == STK_OK && args->json) {
        print_json(a, b);
    } else if (status == STK_OK) {
        printf("A %s\nB %s\n\n%s", args->rest[0], args->rest[1], text);
    }
    stk_text_free(text);
    stk_report_release(a);
    stk_report_release(b);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static const cli_option options[] = {{NULL, NULL, NULL}};

const cli_command cli_compare = {
    .name = "compare",
    .arguments = "A.json B.json",
    .summary = "two runs side by side: what changed, and what it cost",
    .text = "The files are written by `stoker profile --report FILE` or `stoker doctor --report "
            "FILE`.\n",
    .examples = "stoker compare before.json after.json\n",
    .options = options,
    .least = 2,
    .most = 2,
    .run = run,
};
