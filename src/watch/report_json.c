/* report_json.c - reports as JSON, out and in again. The fields are described in doc/watch.md; numbers are plain SI. */
#include "base/file.h"
#include "base/json.h"
#include "watch/report.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 1 };

/* ---- writing ------------------------------------------------------------------------------------------------- */

typedef stk_json_writer writer;

static void number(writer *w, const char *name, double v)
{
    stk_json_name(w, name);
    stk_json_put_double(w, v);
}
static void integer(writer *w, const char *name, int64_t v)
{
    stk_json_name(w, name);
    stk_json_put_int(w, v);
}
static void text(writer *w, const char *name, const char *v)
{
    stk_json_name(w, name);
    stk_json_put_text(w, v ? v : "");
}
static void truth(writer *w, const char *name, bool v)
{
    stk_json_name(w, name);
    stk_json_put_bool(w, v);
}
static void begin_array(writer *w, const char *name)
{
    stk_json_name(w, name);
    stk_json_begin_array(w);
}
static void begin_object(writer *w, const char *name)
{
    if (name) stk_json_name(w, name);
    stk_json_begin_object(w);
}
static void gain(writer *w, const char *name, stk_gain g)
{
    begin_object(w, name);
    number(w, "best", g.best);
    number(w, "low", g.low);
    number(w, "high", g.high);
    stk_json_end_object(w);
}

static void put_roof(writer *w, const stk_roofline *roof)
{
    begin_object(w, "roofline");
    integer(w, "threads", roof->threads);
    for (int all = 0; all < 2; all++) {
        begin_object(w, all ? "all_threads" : "one_thread");
        number(w, "gflops", roof->gflops[all]);
        begin_array(w, "gbs");
        for (int l = 0; l < STK_ROOF_LEVELS; l++) stk_json_put_double(w, roof->gbs[all][l]);
        stk_json_end_array(w);
        stk_json_end_object(w);
    }
    begin_array(w, "level_bytes");
    for (int l = 0; l < STK_ROOF_LEVELS; l++) stk_json_put_double(w, roof->level_bytes[l]);
    stk_json_end_array(w);
    stk_json_end_object(w);
}

static void put_times(writer *w, const stk_report *r)
{
    begin_object(w, "phases");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        begin_object(w, stk_phase_name((stk_phase)p));
        number(w, "seconds", r->phase_seconds[p]);
        integer(w, "steps", r->phase_steps[p]);
        stk_json_end_object(w);
    }
    stk_json_end_object(w);
    begin_object(w, "step");
    number(w, "p10", r->p10);
    number(w, "median", r->median);
    number(w, "p90", r->p90);
    integer(w, "first_steady", r->first_steady);
    begin_array(w, "seconds");
    for (int64_t i = 0; i < r->nsteps; i++) stk_json_put_double(w, r->step_seconds[i]);
    stk_json_end_array(w);
    stk_json_end_object(w);
    begin_object(w, "books");
    integer(w, "steps", r->book_steps);
    number(w, "wall", stk_report_seconds(r, STK_BOOK_COUNT));
    for (int b = 0; b < STK_BOOK_COUNT; b++) number(w, stk_book_name((stk_book)b), r->book[b]);
    stk_json_end_object(w);
}

static void put_op_rows(writer *w, const stk_report *r)
{
    begin_array(w, "ops");
    for (int64_t i = 0; i < r->nops; i++) {
        const stk_report_op *o = &r->ops[i];
        begin_object(w, NULL);
        text(w, "op", o->label);
        text(w, "kernel", o->kernel);
        text(w, "implementation", o->impl);
        text(w, "device", o->device);
        integer(w, "calls", o->calls);
        integer(w, "threads", o->threads);
        number(w, "seconds", o->seconds);
        number(w, "flops", o->flops);
        number(w, "bytes", o->bytes);
        number(w, "roof", o->roof);
        truth(w, "compute_side", o->compute_side);
        truth(w, "updates", o->updates);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
}

static const char *const STAGE_KINDS[] = {"compute", "storage", "buffer"};

static void put_stage_rows(writer *w, const stk_report *r)
{
    begin_array(w, "stages");
    for (int64_t i = 0; i < r->nstages; i++) {
        const stk_watch_stage *s = &r->stages[i];
        begin_object(w, NULL);
        text(w, "name", s->name);
        text(w, "kind", STAGE_KINDS[s->kind]);
        integer(w, "workers", s->workers);
        integer(w, "elements", s->elements);
        number(w, "busy", s->busy_seconds);
        number(w, "wait_input", s->wait_input_seconds);
        number(w, "wait_room", s->wait_room_seconds);
        number(w, "depth", s->depth);
        number(w, "capacity", s->capacity);
        integer(w, "bytes", s->bytes);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    integer(w, "limiting_stage", r->limiting_stage);
}

static void put_machine_rows(writer *w, const stk_report *r)
{
    begin_array(w, "threads");
    for (int64_t i = 0; i < r->nthreads; i++) {
        begin_object(w, NULL);
        text(w, "name", r->threads[i].name);
        number(w, "busy", r->threads[i].busy);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    begin_array(w, "spans");
    for (int64_t i = 0; i < r->nspans; i++) { /* thread, book, start, seconds, name */
        const stk_span_row *s = &r->spans[i];
        stk_json_begin_array(w);
        stk_json_put_int(w, s->thread);
        stk_json_put_int(w, s->book);
        stk_json_put_double(w, s->start);
        stk_json_put_double(w, s->seconds);
        stk_json_put_text(w, s->name);
        stk_json_end_array(w);
    }
    stk_json_end_array(w);
    begin_array(w, "histogram"); /* calls, seconds */
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        stk_json_begin_array(w);
        stk_json_put_int(w, r->histogram_calls[i]);
        stk_json_put_double(w, r->histogram_seconds[i]);
        stk_json_end_array(w);
    }
    stk_json_end_array(w);
    begin_object(w, "memory");
    integer(w, "arena", r->memory.arena);
    integer(w, "constants", r->memory.constants);
    integer(w, "variables", r->memory.variables);
    integer(w, "stages", r->memory.stages);
    integer(w, "peak_rss", r->memory.peak_rss);
    stk_json_end_object(w);
    begin_object(w, "program");
    integer(w, "launches", r->program.launches);
    integer(w, "regions", r->program.regions);
    integer(w, "programs", r->program.programs);
    number(w, "flops", r->program.flops);
    number(w, "bytes", r->program.bytes);
    number(w, "input_bytes", r->input_bytes);
    number(w, "build_ms", r->program.build_ms);
    number(w, "election_ms", r->program.election_ms);
    stk_json_end_object(w);
}

static void put_advice(writer *w, const stk_report *r)
{
    begin_array(w, "advice");
    for (int64_t i = 0; i < r->nadvice; i++) {
        const stk_advice *a = &r->advice[i];
        begin_object(w, NULL);
        text(w, "text", a->text);
        text(w, "knob", stk_knob_name(a->knob));
        integer(w, "value", a->value);
        gain(w, "gain", a->gain);
        truth(w, "changes_mathematics", a->changes_mathematics);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
}

static void put_doctor(writer *w, const stk_report *r)
{
    begin_object(w, "doctor");
    text(w, "verdict", r->verdict);
    text(w, "headline", r->headline);
    text(w, "evidence", r->evidence);
    number(w, "noise", r->noise);
    number(w, "seconds", r->doctor_seconds);
    begin_array(w, "ceilings");
    for (int64_t i = 0; i < r->nceilings; i++) {
        begin_object(w, NULL);
        text(w, "text", r->ceilings[i].text);
        gain(w, "gain", r->ceilings[i].gain);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    put_advice(w, r);
    gain(w, "together", r->together);
    begin_array(w, "curve");
    for (int64_t i = 0; i < r->ncurve; i++) {
        begin_object(w, NULL);
        integer(w, "batch", r->curve[i].batch);
        number(w, "step_seconds", r->curve[i].step_seconds);
        number(w, "examples_per_second", r->curve[i].examples_per_second);
        gain(w, "gain", r->curve[i].gain);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    integer(w, "knee", r->knee);
    integer(w, "batch_limit", r->batch_limit);
    begin_array(w, "devices");
    for (int64_t i = 0; i < r->ndevices; i++) {
        begin_object(w, NULL);
        text(w, "name", r->devices[i].name);
        text(w, "kind", r->devices[i].kind);
        number(w, "low_seconds", r->devices[i].low_seconds);
        number(w, "high_seconds", r->devices[i].high_seconds);
        text(w, "note", r->devices[i].note);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    stk_json_end_object(w);
}

stk_status stk_report_put_json(const stk_report *r, char **out, size_t *size, stk_error *err)
{
    writer w = {.indent = 1};
    size_t ignored;
    begin_object(&w, NULL);
    integer(&w, "stoker_report", FORMAT);
    text(&w, "title", r->title);
    text(&w, "version", r->version);
    text(&w, "machine", r->machine);
    integer(&w, "created", r->created);
    integer(&w, "batch", r->batch);
    integer(&w, "plan_steps", r->plan_steps);
    integer(&w, "lost", r->lost);
    put_roof(&w, &r->roof);
    put_times(&w, r);
    put_op_rows(&w, r);
    put_stage_rows(&w, r);
    put_machine_rows(&w, r);
    if (r->verdict) put_doctor(&w, r);
    stk_json_end_object(&w);
    return stk_json_finish(&w, out, size ? size : &ignored, err);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    stk_report *r;
    bool no_memory;
} reader;

static const char *keep(reader *in, const stk_json *v)
{
    const char *copy = stk_arena_strdup(&in->r->arena, stk_json_text(v, ""));
    if (!copy) in->no_memory = true;
    return copy ? copy : "";
}
static void *rows(reader *in, const stk_json *array, size_t size, int64_t *n)
{
    *n = array && array->kind == STK_JSON_ARRAY ? array->count : 0;
    void *made = stk_arena_array(&in->r->arena, (size_t)*n, size);
    if (!made) in->no_memory = true, *n = 0;
    return made;
}
#define NUMBER(object, name)  stk_json_double(stk_json_get(object, name), 0)
#define INTEGER(object, name) stk_json_int(stk_json_get(object, name), 0)
#define TRUTH(object, name)   stk_json_bool(stk_json_get(object, name), false)

static stk_gain read_gain(const stk_json *v)
{
    return (stk_gain){NUMBER(v, "best"), NUMBER(v, "low"), NUMBER(v, "high")};
}

static void read_times(reader *in, const stk_json *root)
{
    stk_report *r = in->r;
    const stk_json *phases = stk_json_get(root, "phases"), *step = stk_json_get(root, "step"),
                   *books = stk_json_get(root, "books"), *roof = stk_json_get(root, "roofline");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        const stk_json *phase = stk_json_get(phases, stk_phase_name((stk_phase)p));
        r->phase_seconds[p] = NUMBER(phase, "seconds");
        r->phase_steps[p] = INTEGER(phase, "steps");
    }
    r->p10 = NUMBER(step, "p10");
    r->median = NUMBER(step, "median");
    r->p90 = NUMBER(step, "p90");
    r->first_steady = INTEGER(step, "first_steady");
    const stk_json *seconds = stk_json_get(step, "seconds");
    r->step_seconds = rows(in, seconds, sizeof *r->step_seconds, &r->nsteps);
    for (int64_t i = 0; i < r->nsteps; i++)
        r->step_seconds[i] = stk_json_double(stk_json_item(seconds, i), 0);
    r->book_steps = INTEGER(books, "steps");
    for (int b = 0; b < STK_BOOK_COUNT; b++) r->book[b] = NUMBER(books, stk_book_name((stk_book)b));
    r->roof.threads = (int32_t)INTEGER(roof, "threads");
    for (int all = 0; all < 2; all++) {
        const stk_json *side = stk_json_get(roof, all ? "all_threads" : "one_thread");
        r->roof.gflops[all] = NUMBER(side, "gflops");
        for (int l = 0; l < STK_ROOF_LEVELS; l++)
            r->roof.gbs[all][l] = stk_json_double(stk_json_item(stk_json_get(side, "gbs"), l), 0);
    }
    for (int l = 0; l < STK_ROOF_LEVELS; l++)
        r->roof.level_bytes[l] =
            stk_json_double(stk_json_item(stk_json_get(roof, "level_bytes"), l), 0);
}

static void read_ops(reader *in, const stk_json *array)
{
    stk_report *r = in->r;
    r->ops = rows(in, array, sizeof *r->ops, &r->nops);
    for (int64_t i = 0; i < r->nops; i++) {
        const stk_json *v = stk_json_item(array, i);
        r->ops[i] = (stk_report_op){.label = keep(in, stk_json_get(v, "op")),
                                    .kernel = keep(in, stk_json_get(v, "kernel")),
                                    .impl = keep(in, stk_json_get(v, "implementation")),
                                    .device = keep(in, stk_json_get(v, "device")),
                                    .calls = INTEGER(v, "calls"),
                                    .threads = (int32_t)INTEGER(v, "threads"),
                                    .seconds = NUMBER(v, "seconds"),
                                    .flops = NUMBER(v, "flops"),
                                    .bytes = NUMBER(v, "bytes"),
                                    .roof = NUMBER(v, "roof"),
                                    .compute_side = TRUTH(v, "compute_side"),
                                    .updates = TRUTH(v, "updates")};
    }
}

static stk_status read_stages(reader *in, const stk_json *array, stk_error *err)
{
    for (int64_t i = 0; array && i < array->count; i++) {
        const stk_json *v = stk_json_item(array, i);
        const char *kind = stk_json_text(stk_json_get(v, "kind"), "");
        stk_watch_stage s = {.workers = (int32_t)INTEGER(v, "workers"),
                             .elements = INTEGER(v, "elements"),
                             .busy_seconds = NUMBER(v, "busy"),
                             .wait_input_seconds = NUMBER(v, "wait_input"),
                             .wait_room_seconds = NUMBER(v, "wait_room"),
                             .depth = NUMBER(v, "depth"),
                             .capacity = NUMBER(v, "capacity"),
                             .bytes = INTEGER(v, "bytes")};
        snprintf(s.name, sizeof s.name, "%s", stk_json_text(stk_json_get(v, "name"), ""));
        for (int k = 0; k < 3; k++)
            if (!strcmp(STAGE_KINDS[k], kind)) s.kind = (stk_watch_stage_kind)k;
        STK_TRY(stk_report_add_stage(in->r, &s, err));
    }
    return STK_OK;
}

static void read_machine(reader *in, const stk_json *root)
{
    stk_report *r = in->r;
    const stk_json *threads = stk_json_get(root, "threads"), *spans = stk_json_get(root, "spans"),
                   *memory = stk_json_get(root, "memory"), *p = stk_json_get(root, "program");
    r->threads = rows(in, threads, sizeof *r->threads, &r->nthreads);
    for (int64_t i = 0; i < r->nthreads; i++) {
        const stk_json *v = stk_json_item(threads, i);
        r->threads[i] = (stk_thread_row){keep(in, stk_json_get(v, "name")), NUMBER(v, "busy")};
    }
    r->spans = rows(in, spans, sizeof *r->spans, &r->nspans);
    for (int64_t i = 0; i < r->nspans; i++) {
        const stk_json *v = stk_json_item(spans, i);
        r->spans[i] = (stk_span_row){
            (int32_t)stk_json_int(stk_json_item(v, 0), 0),
            (int32_t)stk_json_int(stk_json_item(v, 1), 0), stk_json_double(stk_json_item(v, 2), 0),
            stk_json_double(stk_json_item(v, 3), 0), keep(in, stk_json_item(v, 4))};
    }
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        const stk_json *bin = stk_json_item(stk_json_get(root, "histogram"), i);
        r->histogram_calls[i] = stk_json_int(stk_json_item(bin, 0), 0);
        r->histogram_seconds[i] = stk_json_double(stk_json_item(bin, 1), 0);
    }
    r->memory = (stk_memory_rows){INTEGER(memory, "arena"), INTEGER(memory, "constants"),
                                  INTEGER(memory, "variables"), INTEGER(memory, "stages"),
                                  INTEGER(memory, "peak_rss")};
    r->program = (stk_program_totals){(int32_t)INTEGER(p, "launches"),
                                      (int32_t)INTEGER(p, "regions"),
                                      (int32_t)INTEGER(p, "programs"),
                                      NUMBER(p, "flops"),
                                      NUMBER(p, "bytes"),
                                      NUMBER(p, "build_ms"),
                                      NUMBER(p, "election_ms")};
    r->input_bytes = NUMBER(p, "input_bytes");
}

static void read_advice(reader *in, const stk_json *array)
{
    stk_report *r = in->r;
    r->advice = rows(in, array, sizeof *r->advice, &r->nadvice);
    for (int64_t i = 0; i < r->nadvice; i++) {
        const stk_json *v = stk_json_item(array, i);
        stk_advice *a = &r->advice[i];
        *a = (stk_advice){.text = keep(in, stk_json_get(v, "text")),
                          .value = INTEGER(v, "value"),
                          .gain = read_gain(stk_json_get(v, "gain")),
                          .changes_mathematics = TRUTH(v, "changes_mathematics"),
                          .settings = stk_job_settings_defaults()};
        if (stk_knob_parse(stk_json_text(stk_json_get(v, "knob"), ""), &a->knob))
            a->settings.value[a->knob] = a->value;
    }
}

static void read_doctor(reader *in, const stk_json *d)
{
    stk_report *r = in->r;
    const stk_json *ceilings = stk_json_get(d, "ceilings"), *curve = stk_json_get(d, "curve"),
                   *devices = stk_json_get(d, "devices");
    r->verdict = keep(in, stk_json_get(d, "verdict"));
    r->headline = keep(in, stk_json_get(d, "headline"));
    r->evidence = keep(in, stk_json_get(d, "evidence"));
    r->noise = NUMBER(d, "noise");
    r->doctor_seconds = NUMBER(d, "seconds");
    r->ceilings = rows(in, ceilings, sizeof *r->ceilings, &r->nceilings);
    for (int64_t i = 0; i < r->nceilings; i++) {
        const stk_json *v = stk_json_item(ceilings, i);
        r->ceilings[i] =
            (stk_ceiling){keep(in, stk_json_get(v, "text")), read_gain(stk_json_get(v, "gain"))};
    }
    read_advice(in, stk_json_get(d, "advice"));
    r->together = read_gain(stk_json_get(d, "together"));
    r->curve = rows(in, curve, sizeof *r->curve, &r->ncurve);
    for (int64_t i = 0; i < r->ncurve; i++) {
        const stk_json *v = stk_json_item(curve, i);
        r->curve[i] =
            (stk_curve_point){INTEGER(v, "batch"), NUMBER(v, "step_seconds"),
                              NUMBER(v, "examples_per_second"), read_gain(stk_json_get(v, "gain"))};
    }
    r->knee = INTEGER(d, "knee");
    r->batch_limit = INTEGER(d, "batch_limit");
    r->devices = rows(in, devices, sizeof *r->devices, &r->ndevices);
    for (int64_t i = 0; i < r->ndevices; i++) {
        const stk_json *v = stk_json_item(devices, i);
        r->devices[i] = (stk_device_row){
            keep(in, stk_json_get(v, "name")), keep(in, stk_json_get(v, "kind")),
            NUMBER(v, "low_seconds"), NUMBER(v, "high_seconds"), keep(in, stk_json_get(v, "note"))};
    }
}

static stk_status read_report(reader *in, const stk_json *root, const char *path, stk_error *err)
{
    stk_report *r = in->r;
    if (stk_json_int(stk_json_get(root, "stoker_report"), 0) != FORMAT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: no stoker report of format %d; write one with stoker profile --json",
                        path, FORMAT);
    r->title = keep(in, stk_json_get(root, "title"));
    r->version = keep(in, stk_json_get(root, "version"));
    r->machine = keep(in, stk_json_get(root, "machine"));
    r->created = INTEGER(root, "created");
    r->batch = INTEGER(root, "batch");
    r->plan_steps = INTEGER(root, "plan_steps");
    r->lost = INTEGER(root, "lost");
    read_times(in, root);
    read_ops(in, stk_json_get(root, "ops"));
    STK_TRY(read_stages(in, stk_json_get(root, "stages"), err));
    read_machine(in, root);
    if (stk_json_get(root, "doctor")) read_doctor(in, stk_json_get(root, "doctor"));
    return in->no_memory ? stk_fail_memory(err, path, 0) : STK_OK;
}

stk_status stk_report_load(const char *path, stk_report **out, stk_error *err)
{
    enum { MOST = 256 << 20 };
    char *data = NULL;
    size_t size = 0;
    stk_json_document *document = NULL;
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_report_load: path and out must be given");
    *out = NULL;
    STK_TRY(stk_file_read(path, MOST, &data, &size, err));
    stk_status status = stk_json_parse(data, size, NULL, &document, err);
    if (status != STK_OK) stk_fail_in(err, status, "%s", path);
    stk_free(data);
    if (status != STK_OK) return status;
    reader in = {.r = stk_report_new()};
    status = in.r ? read_report(&in, stk_json_root(document), path, err)
                  : stk_fail_memory(err, path, sizeof *in.r);
    stk_json_release(document);
    if (status == STK_OK)
        *out = in.r;
    else
        stk_report_release(in.r);
    return status;
}
