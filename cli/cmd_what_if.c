/* stoker what-if - would a card one does not own be faster? A model, and labelled as one. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CARDS = 32 };

/* "t4,a100" into words; the copy is cut in place. */
static int split(char *list, const char **out)
{
    int n = 0;
    for (char *word = strtok(list, ", "); word && n < MOST_CARDS; word = strtok(NULL, ", "))
        out[n++] = word;
    return n;
}

static void print_json(const stk_work *work, int n, const char **cards)
{
    printf("{\"kind\": \"model, not measured\", \"batch\": %lld, \"cpu_seconds\": ",
           (long long)work->batch);
    cli_json_number(stdout, work->cpu_seconds);
    printf(", \"cards\": [");
    for (int i = 0; i < (n ? n : stk_card_count()); i++) {
        stk_what_if x;
        if (stk_what_if_card(n ? cards[i] : stk_card_name(i), work, &x, NULL) != STK_OK) continue;
        printf("%s{\"card\": ", i ? ", " : "");
        cli_json_text(stdout, x.card);
        printf(", \"low_seconds\": ");
        cli_json_number(stdout, x.low_seconds);
        printf(", \"high_seconds\": ");
        cli_json_number(stdout, x.high_seconds);
        printf(", \"binding\": \"%s\", \"break_even\": [%lld, %lld], \"batch_limit\": %lld, "
               "\"sources\": \"%s\", \"verdict\": \"%s\"}",
               x.binding, (long long)x.break_even_low, (long long)x.break_even_high,
               (long long)x.batch_limit, x.sources,
               x.verdict > 0   ? "card"
               : x.verdict < 0 ? "cpu"
                               : "uncertain");
    }
    printf("]}\n");
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_report *report = NULL;
    stk_work work;
    char *text = NULL, list[512] = "";
    const char *cards[MOST_CARDS];
    snprintf(list, sizeof list, "%s", cli_text(args, "card", ""));
    int n = split(list, cards);
    stk_status status = stk_report_load(args->rest[0], &report, &err);
    if (status == STK_OK) status = stk_report_work(report, &work, &err);
    if (status == STK_OK) status = stk_what_if_text(&work, n, n ? cards : NULL, &text, &err);
    if (status == STK_OK && args->json)
        print_json(&work, n, cards);
    else if (status == STK_OK)
        fputs(text, stdout);
    stk_text_free(text);
    stk_report_release(report);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static const cli_option options[] = {
    {"card", "NAMES", "t4,a100,rtx3080ti ... (default: all that are known)"},
    {NULL, NULL, NULL},
};

const cli_command cli_what_if = {
    .name = "what-if",
    .arguments = "REPORT.json",
    .summary = "predicted step time and break-even batch on cards one does not own",
    .text =
        "REPORT.json is written by `stoker profile --report FILE`: the time of this machine is\n"
        "measured, that of the card comes from a model with sources (doc/watch.md), as a range.\n"
        "Where the range holds both answers it says \"uncertain\".\n",
    .examples = "stoker what-if report.json --card t4,a100,rtx3080ti\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
