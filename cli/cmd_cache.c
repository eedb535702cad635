/* stoker cache */
#include "cli.h"
#include "stoker/cache.h"
#include "table.h"

#include <string.h>

static void print_json(const stk_cache_report *r, bool cleared)
{
    printf("{\"path\": ");
    cli_json_text(stdout, r->path);
    printf(", \"%s\": %lld, \"bytes\": %lld, \"kinds\": [", cleared ? "removed" : "files",
           (long long)r->files, (long long)r->bytes);
    for (int32_t i = 0; i < r->nkinds; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, r->kinds[i].name);
        printf(", \"files\": %lld, \"bytes\": %lld}", (long long)r->kinds[i].files,
               (long long)r->kinds[i].bytes);
    }
    printf("]}\n");
}

static void print(const stk_cache_report *r, bool cleared)
{
    if (!r->path[0]) {
        printf("no cache: STOKER_CACHE is empty, or there is no home\n");
        return;
    }
    printf("%s: %lld files, %.1f MB%s\n", r->path, (long long)r->files, (double)r->bytes / 1e6,
           cleared ? " removed" : "");
    cli_table t = {.columns = 4, .right = 1u << 1 | 1u << 2};
    for (int32_t i = 0; i < r->nkinds; i++) {
        cli_cell(&t, "%s", r->kinds[i].name);
        cli_cell(&t, "%lld", (long long)r->kinds[i].files);
        cli_cell(&t, "%.1f MB", (double)r->kinds[i].bytes / 1e6);
        cli_cell(&t, "%s", r->kinds[i].what);
    }
    cli_table_print(&t, stdout, "  ");
    cli_table_free(&t);
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_cache_report report;
    const char *verb = args->nrest ? args->rest[0] : "info";
    bool clear = !strcmp(verb, "clear");
    if (!clear && strcmp(verb, "info")) return cli_usage(args, "\"%s\": say info or clear", verb);
    stk_status status = clear ? stk_cache_clear(&report, &err) : stk_cache_describe(&report, &err);
    if (status != STK_OK) return cli_fail(args, &err);
    if (args->json)
        print_json(&report, clear);
    else if (!args->quiet)
        print(&report, clear);
    return CLI_OK;
}

const cli_command cli_cache = {
    .name = "cache",
    .arguments = "[info|clear]",
    .summary = "what is kept on disk because it can be made again; clear removes it",
    .text = "Kernels that were chosen by timing, programs that devices compiled, settings and\n"
            "indexes of input pipelines. They are in $STOKER_CACHE, else $XDG_CACHE_HOME/stoker,\n"
            "else ~/.cache/stoker. After `clear` the next run makes them again.",
    .examples = "stoker cache\nstoker cache clear\n",
    .least = 0,
    .most = 1,
    .run = run,
};
