/* Looking inside: the plan as text, the counters of a running stream as rows. */
#include "data/stream/rewrite.h"
#include "data/core/run.h"
#include "data/workers/tune.h"

#include <stdio.h>
#include <string.h>

/* ---- plans ----------------------------------------------------------------------------------------- */
static void count_text(int64_t n, char *text, size_t size)
{
    if (n == STK_INFINITE)
        snprintf(text, size, "endless");
    else if (n == STK_UNKNOWN)
        snprintf(text, size, "?");
    else
        snprintf(text, size, "%lld", (long long)n);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    text[0] = 0;
    if (ds->kind->describe) ds->kind->describe(ds, text, size);
}

static void add_node(const stk_dataset *ds, int depth, stk_notes *out)
{
    char detail[160], count[32], schema[256], line[256];
    describe(ds, detail, sizeof detail);
    count_text(ds->cardinality, count, sizeof count);
    snprintf(line, sizeof line, "%*s%s%s%s%s", 2 * depth, "", ds->kind->name, detail[0] ? " (" : "",
             detail, detail[0] ? ")" : "");
    stk_notes_add(out, "  %-58s %-9s %9s  %s\n", line, ds->random ? "by number" : "in order", count,
                  stk_schema_describe(ds->schema, schema, sizeof schema));
    for (int32_t i = 0; i < ds->ninputs; i++) add_node(ds->inputs[i], depth + 1, out);
}

static stk_status finish(stk_notes *t, char **text, stk_error *err)
{
    stk_notes_add(t, "%s", "");
    *text = t->failed ? NULL : t->data;
    if (!t->failed) return STK_OK;
    stk_free(t->data);
    return stk_fail_memory(err, "explain", t->size);
}

stk_status stk_dataset_explain(stk_dataset *ds, const stk_stream_options *options, char **text,
                               stk_error *err)
{
    if (!ds || !text)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "explain: the dataset or the place for the text is NULL");
    *text = NULL;
    stk_stream_options o = options ? *options : stk_stream_options_of(ds);
    stk_notes out = {0}, notes = {0};
    stk_dataset *plan = NULL;
    stk_status status = stk_plan_make(ds, &o, &notes, &plan, err);
    if (status == STK_OK) {
        stk_notes_add(&out, "  %-58s %-9s %9s  %s\n", "node", "access", "elements", "element");
        add_node(plan, 0, &out);
        stk_notes_add(&out, "rewrites\n%s", notes.size && !notes.failed ? notes.data : "  none\n");
        if (plan->random)
            stk_notes_add(
                &out, "%s",
                "The whole plan goes by number: any worker makes any element, a position is one "
                "integer.\n");
        status = finish(&out, text, err);
    }
    stk_free(notes.data);
    stk_dataset_release(plan);
    return status;
}

/* ---- counters ------------------------------------------------------------------------------------------ */
static int64_t load(const int64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

static void fill_row(const stk_stage *stage, int32_t depth, double second, stk_stage_stats *row)
{
    const stk_counters *c = &stage->count;
    int64_t inputs = 0, inside = load(&c->inside), working = load(&c->working);
    for (int32_t i = 0; i < stage->nin; i++) inputs += load(&stage->in[i]->count.inside);
    *row = (stk_stage_stats){.name = stage->ds->kind->name, .depth = depth};
    describe(stage->ds, row->detail, sizeof row->detail);
    row->elements = load(&c->elements);
    row->bytes = load(&c->bytes);
    row->errors = load(&c->errors);
    int64_t busy = working && !stage->ds->random ? working : inside - inputs;
    row->busy = busy > 0 ? (double)busy * second : 0;
    int64_t waited = load(&c->waiting);
    row->waiting_for_input = (double)(waited ? waited : stk_min_i64(inputs, inside)) * second;
    row->waiting_for_room = (double)load(&c->full) * second;
    row->queued = load(&c->depth);
    row->capacity = load(&c->capacity);
    row->held = load(&c->held) + load(&stage->ram);
    row->workers = stage->ds->parallel == 1 ? 1 : stk_tuner_threads(stage->run->tuner);
}

static int32_t add_rows(const stk_stage *stage, int32_t depth, double second, stk_stage_stats *rows,
                        int32_t room, int32_t at)
{
    if (at < room) fill_row(stage, depth, second, &rows[at]);
    at++;
    for (int32_t i = 0; i < stage->nin; i++)
        at = add_rows(stage->in[i], depth + 1, second, rows, room, at);
    return at;
}

static double seconds_per_tick(stk_run *run)
{
    stk_tick_scale now = run->clock;
    stk_tick_scale_mark(&now, 1);
    double ticks = (double)(now.ticks[1] - now.ticks[0]);
    return ticks > 0 ? (double)(now.ns[1] - now.ns[0]) / ticks * 1e-9 : 0;
}

int32_t stk_stream_stats(stk_stream *stream, stk_stage_stats *stats, int32_t room)
{
    stk_run *run = stk_stream_run(stream);
    return run ? add_rows(run->root, 0, seconds_per_tick(run), stats, stats ? room : 0, 0) : 0;
}

static int32_t add_depths(const stk_stage *stage, int64_t *depths, int32_t room, int32_t at)
{
    if (at < room) depths[at] = load(&stage->count.depth);
    at++;
    for (int32_t i = 0; i < stage->nin; i++) at = add_depths(stage->in[i], depths, room, at);
    return at;
}

int32_t stk_stream_depths(stk_stream *stream, int64_t *depths, int32_t room)
{
    stk_run *run = stk_stream_run(stream);
    return run ? add_depths(run->root, depths, depths ? room : 0, 0) : 0;
}

bool stk_stream_usage_read(stk_stream *stream, stk_stream_usage *usage)
{
    stk_run *run = stk_stream_run(stream);
    if (!run || !usage) return false;
    *usage =
        (stk_stream_usage){.threads = run->options.threads == 1 ? 1 : stk_tuner_threads(run->tuner),
                           .ram = load(&run->ram_used),
                           .ram_peak = load(&run->ram_peak),
                           .ram_budget = run->options.ram_budget,
                           .held = stk_slab_bytes(run->slab),
                           .seconds = (double)(stk_now_ns() - run->clock.ns[0]) * 1e-9};
    return true;
}

stk_status stk_stream_choices(stk_stream *stream, char **text, stk_error *err)
{
    stk_run *run = stk_stream_run(stream);
    if (!run || !text)
        return stk_fail(err, STK_ERR_ARGUMENT, "choices: this is no stream of a dataset");
    stk_notes out = {0};
    stk_tuner_explain(run->tuner, &out);
    return finish(&out, text, err);
}
