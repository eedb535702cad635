/* stoker data bench, explain: a pipeline file, stage by stage.
 *
 * A stage is measured by running the pipeline up to it: what the next stage costs is what is lost from one to the
 * next. The limit is the stage with the largest loss in time per element. */
#include "data.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_STAGES = 64 };

typedef struct stage_result {
    const char *name;
    double elements, megabytes; /* per second */
    double rows;                /* first sizes of batches, per second */
    double us_per_row;
} stage_result;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double bytes_of(const stk_tensor *t)
{
    if (t->dtype != STK_STRING) return (double)stk_tensor_bytes(t);
    double sum = 0;
    if (!stk_tensor_is_dense(t)) return 0;
    for (int64_t i = 0; i < stk_tensor_count(t); i++)
        sum += (double)((const stk_string *)t->data)[i].size;
    return sum;
}

/* Elements of ds, over and over, for some seconds after a first part that does not count. */
static stk_status measure(stk_dataset *ds, double seconds, int32_t threads, bool batched,
                          stage_result *out, stk_error *err)
{
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    int32_t n = stk_dataset_schema(ds)->n;
    stk_tensor **parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return STK_ERR_MEMORY;
    stk_status status = stk_dataset_stream(ds, &o, &s, err);
    double start = now(), warm = seconds / 4, count = 0, bytes = 0, rows = 0, begin = start,
           end_time = start;
    bool counting = false;
    while (status == STK_OK) {
        bool end = false;
        status = stk_stream_next(s, parts, &end, err);
        double t = now();
        if (status == STK_OK && end) { /* once more, as the next epoch */
            stk_stream_release(s);
            s = NULL;
            o.epoch++;
            if (t - start > warm + seconds || (counting && count == 0)) break;
            status = stk_dataset_stream(ds, &o, &s, err);
            continue;
        }
        if (status != STK_OK) break;
        if (counting) {
            count++;
            rows += batched && parts[0]->rank ? (double)parts[0]->shape[0] : 1;
            for (int32_t i = 0; i < n; i++) bytes += bytes_of(parts[i]);
            end_time = t;
        } else if (t - start > warm) {
            counting = true;
            begin = t;
        }
        for (int32_t i = 0; i < n; i++) stk_tensor_release(parts[i]);
        if (t - start > warm + seconds) break;
    }
    stk_stream_release(s);
    free(parts);
    double span = end_time - begin > 0 ? end_time - begin : 1e-9;
    out->elements = count / span;
    out->rows = rows / span;
    out->megabytes = bytes / span * 1e-6;
    out->us_per_row = out->rows > 0 ? 1e6 / out->rows : 0;
    return status;
}

/* The chain of first inputs, source first. Borrowed. */
static int chain_of(stk_dataset *ds, stk_dataset **chain)
{
    int n = 0;
    for (stk_dataset *d = ds; d && n < MOST_STAGES;
         d = stk_dataset_inputs(d) ? stk_dataset_input(d, 0) : NULL)
        chain[n++] = d;
    for (int i = 0; i < n / 2; i++) {
        stk_dataset *swap = chain[i];
        chain[i] = chain[n - 1 - i];
        chain[n - 1 - i] = swap;
    }
    return n;
}

static void print_results(const cli_args *args, const stage_result *r, int n, int limit)
{
    if (args->json) {
        printf("{\"stages\": [");
        for (int i = 0; i < n; i++) {
            printf("%s{\"name\": ", i ? ", " : "");
            cli_json_text(stdout, r[i].name);
            printf(", \"elements_per_s\": ");
            cli_json_number(stdout, r[i].elements);
            printf(", \"rows_per_s\": ");
            cli_json_number(stdout, r[i].rows);
            printf(", \"mb_per_s\": ");
            cli_json_number(stdout, r[i].megabytes);
            printf("}");
        }
        printf("], \"limit\": ");
        cli_json_text(stdout, r[limit].name);
        printf("}\n");
        return;
    }
    cli_table t = {.columns = 6, .right = 0x1e};
    static const char *const titles[6] = {"up to", "elements/s", "rows/s", "MB/s", "us/row", ""};
    for (int i = 0; i < 6; i++) cli_cell(&t, "%s", titles[i]);
    for (int i = 0; i < n; i++) {
        cli_cell(&t, "%s", r[i].name);
        cli_cell(&t, "%.0f", r[i].elements);
        cli_cell(&t, "%.0f", r[i].rows);
        cli_cell(&t, "%.1f", r[i].megabytes);
        cli_cell(&t, "%.3f", r[i].us_per_row);
        cli_cell(&t, "%s", i == limit ? "<- costs most" : "");
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
}

/* The running stream about itself: who works, who waits, and what the tuner chose. */
static void print_inside(stk_dataset *ds, double seconds, int32_t threads)
{
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    stk_stage_stats stats[MOST_STAGES];
    o.threads = threads;
    int32_t parts_count = stk_dataset_schema(ds)->n;
    stk_tensor **parts = calloc((size_t)parts_count, sizeof *parts);
    if (!parts || stk_dataset_stream(ds, &o, &s, NULL) != STK_OK) {
        free(parts);
        return;
    }
    bool end = false;
    for (double start = now(); !end && now() - start < seconds;) {
        if (stk_stream_next(s, parts, &end, NULL) != STK_OK) break;
        for (int32_t i = 0; !end && i < parts_count; i++) stk_tensor_release(parts[i]);
    }
    int32_t n = stk_stream_stats(s, stats, MOST_STAGES);
    cli_table t = {.columns = 6, .right = 0x3c};
    static const char *const titles[6] = {"stage",         "options",      "busy s",
                                          "input waits s", "room waits s", "workers"};
    for (int i = 0; i < 6; i++) cli_cell(&t, "%s", titles[i]);
    for (int32_t i = 0; i < n && i < MOST_STAGES; i++) {
        cli_cell(&t, "%s", stats[i].name);
        cli_cell(&t, "%s", stats[i].detail);
        cli_cell(&t, "%.3f", stats[i].busy);
        cli_cell(&t, "%.3f", stats[i].waiting_for_input);
        cli_cell(&t, "%.3f", stats[i].waiting_for_room);
        cli_cell(&t, "%d", stats[i].workers);
    }
    printf("\n");
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
    char *choices = NULL;
    if (stk_stream_choices(s, &choices, NULL) == STK_OK && choices[0]) printf("\n%s", choices);
    stk_text_free(choices);
    stk_stream_release(s);
    free(parts);
}

int data_bench(const cli_args *args)
{
    stk_error err;
    double seconds = 2;
    int64_t threads = 0;
    if (!cli_double(args, "seconds", 0.01, 3600, &seconds) ||
        !cli_int(args, "threads", 0, 1024, &threads))
        return CLI_USAGE;
    stk_dataset *ds = stk_data_pipeline_file(args->rest[1], &err), *chain[MOST_STAGES];
    if (!ds) return cli_fail(args, &err);
    int n = chain_of(ds, chain), limit = 0;
    stage_result results[MOST_STAGES];
    stk_status status = STK_OK;
    bool batched = false;
    double worst = -1;
    for (int i = 0; i < n && status == STK_OK; i++) {
        results[i] = (stage_result){.name = stk_dataset_name(chain[i])};
        batched |= strstr(results[i].name, "batch") != NULL;
        status = measure(chain[i], seconds, (int32_t)threads, batched, &results[i], &err);
        double lost = results[i].us_per_row - (i ? results[i - 1].us_per_row : 0);
        if (lost > worst) worst = lost, limit = i;
    }
    if (status == STK_OK) print_results(args, results, n, limit);
    if (status == STK_OK && !args->json) print_inside(ds, seconds, (int32_t)threads);
    stk_dataset_release(ds);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

int data_explain(const cli_args *args)
{
    stk_error err;
    char *text = NULL;
    stk_dataset *ds = stk_data_pipeline_file(args->rest[1], &err);
    if (!ds) return cli_fail(args, &err);
    stk_status status = stk_dataset_explain(ds, NULL, &text, &err);
    if (status == STK_OK && args->json) {
        printf("{\"plan\": ");
        cli_json_text(stdout, text);
        printf("}\n");
    } else if (status == STK_OK) {
        fputs(text, stdout);
    }
    stk_text_free(text);
    stk_dataset_release(ds);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}
