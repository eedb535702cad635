/* report_json.c - reports as JSON, out and in again. The members are described in doc/watch.md; numbers are plain SI. Rows
 * that are one struct each are tables of fields, which serve both directions. */
#include "base/file.h"
#include "base/json.h"
#include "watch/scaling.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT = 1 };

/* ---- fields -------------------------------------------------------------------------------------------------- */

typedef enum field_kind { TEXT, WORD, INT32, INT64, NUMBER, TRUTH, GAIN } field_kind;
typedef struct field {
    const char *name; /* NULL ends a table */
    field_kind kind;
    size_t at;
} field;
#define FIELD(type, member, kind)                                                                  \
    {                                                                                              \
#member, kind, offsetof(type, member)                                                      \
    }
#define FIELD_AS(name, type, member, kind)                                                         \
    {                                                                                              \
        name, kind, offsetof(type, member)                                                         \
    }
#define END_OF_FIELDS                                                                              \
    {                                                                                              \
        NULL, TEXT, 0                                                                              \
    }
enum { WORD_SIZE = sizeof((stk_watch_stage *)0)->name };

static const field HEAD[] = {FIELD(stk_report, title, TEXT),   FIELD(stk_report, version, TEXT),
                             FIELD(stk_report, machine, TEXT), FIELD(stk_report, created, INT64),
                             FIELD(stk_report, batch, INT64),  FIELD(stk_report, plan_steps, INT64),
                             FIELD(stk_report, lost, INT64),   END_OF_FIELDS};
static const field STEP[] = {FIELD(stk_report, p10, NUMBER), FIELD(stk_report, median, NUMBER),
                             FIELD(stk_report, p90, NUMBER), FIELD(stk_report, first_steady, INT64),
                             END_OF_FIELDS};
static const field OP[] = {FIELD_AS("op", stk_report_op, label, TEXT),
                           FIELD(stk_report_op, kernel, TEXT),
                           FIELD_AS("implementation", stk_report_op, impl, TEXT),
                           FIELD(stk_report_op, device, TEXT),
                           FIELD(stk_report_op, calls, INT64),
                           FIELD(stk_report_op, threads, INT32),
                           FIELD(stk_report_op, seconds, NUMBER),
                           FIELD(stk_report_op, flops, NUMBER),
                           FIELD(stk_report_op, bytes, NUMBER),
                           FIELD(stk_report_op, roof, NUMBER),
                           FIELD(stk_report_op, compute_side, TRUTH),
                           FIELD(stk_report_op, updates, TRUTH),
                           END_OF_FIELDS};
static const field PLACE[] = {FIELD(stk_layer_cost, place, TEXT),
                              FIELD(stk_layer_cost, largest, TEXT),
                              FIELD(stk_layer_cost, launches, INT64),
                              FIELD(stk_layer_cost, calls, INT64),
                              FIELD(stk_layer_cost, tiny_calls, INT64),
                              FIELD(stk_layer_cost, seconds, NUMBER),
                              FIELD(stk_layer_cost, backward_seconds, NUMBER),
                              FIELD(stk_layer_cost, tiny_seconds, NUMBER),
                              END_OF_FIELDS};
static const field CONV[] = {FIELD(stk_conv_cost, place, TEXT),
                             FIELD(stk_conv_cost, op, TEXT),
                             FIELD(stk_conv_cost, kernel, TEXT),
                             FIELD_AS("implementation", stk_conv_cost, impl, TEXT),
                             FIELD(stk_conv_cost, calls, INT64),
                             FIELD(stk_conv_cost, seconds, NUMBER),
                             FIELD(stk_conv_cost, flops, NUMBER),
                             FIELD(stk_conv_cost, share, NUMBER),
                             END_OF_FIELDS};
static const field ISLAND[] = {FIELD(stk_island_row, op, TEXT),
                               FIELD(stk_island_row, place, TEXT),
                               FIELD(stk_island_row, shape, TEXT),
                               FIELD(stk_island_row, reason, TEXT),
                               FIELD(stk_island_row, bytes_down, INT64),
                               FIELD(stk_island_row, bytes_up, INT64),
                               END_OF_FIELDS};
static const field TINY[] = {FIELD(stk_tiny_ops, calls, NUMBER),
                             FIELD(stk_tiny_ops, seconds, NUMBER),
                             FIELD(stk_tiny_ops, ideal_seconds, NUMBER), END_OF_FIELDS};
static const field STAGE[] = {FIELD(stk_watch_stage, name, WORD),
                              FIELD(stk_watch_stage, workers, INT32),
                              FIELD(stk_watch_stage, elements, INT64),
                              FIELD_AS("busy", stk_watch_stage, busy_seconds, NUMBER),
                              FIELD_AS("wait_input", stk_watch_stage, wait_input_seconds, NUMBER),
                              FIELD_AS("wait_room", stk_watch_stage, wait_room_seconds, NUMBER),
                              FIELD(stk_watch_stage, depth, NUMBER),
                              FIELD(stk_watch_stage, depth_least, NUMBER),
                              FIELD(stk_watch_stage, depth_most, NUMBER),
                              FIELD(stk_watch_stage, capacity, NUMBER),
                              FIELD(stk_watch_stage, bytes, INT64),
                              FIELD(stk_watch_stage, seconds, NUMBER),
                              END_OF_FIELDS};
static const field THREAD[] = {FIELD(stk_thread_row, name, TEXT),
                               FIELD(stk_thread_row, busy, NUMBER), END_OF_FIELDS};
static const field DEVICE_USE[] = {FIELD_AS("busy", stk_report, device_busy, NUMBER),
                                   FIELD_AS("threads", stk_report, device_threads, NUMBER),
                                   END_OF_FIELDS};
static const field MEMORY[] = {FIELD(stk_memory_rows, arena, INT64),
                               FIELD(stk_memory_rows, constants, INT64),
                               FIELD(stk_memory_rows, variables, INT64),
                               FIELD(stk_memory_rows, weights, INT64),
                               FIELD(stk_memory_rows, optimizer, INT64),
                               FIELD(stk_memory_rows, metrics, INT64),
                               FIELD(stk_memory_rows, inputs, INT64),
                               FIELD(stk_memory_rows, in_place, INT64),
                               FIELD(stk_memory_rows, staged, INT64),
                               FIELD(stk_memory_rows, pinned, INT64),
                               FIELD(stk_memory_rows, resident, INT64),
                               FIELD(stk_memory_rows, stages, INT64),
                               FIELD(stk_memory_rows, peak_rss, INT64),
                               FIELD(stk_memory_rows, peak_at, INT64),
                               END_OF_FIELDS};
static const field PROGRAM[] = {
    FIELD(stk_program_totals, launches, INT32),     FIELD(stk_program_totals, regions, INT32),
    FIELD(stk_program_totals, programs, INT32),     FIELD(stk_program_totals, flops, NUMBER),
    FIELD(stk_program_totals, bytes, NUMBER),       FIELD(stk_program_totals, build_ms, NUMBER),
    FIELD(stk_program_totals, election_ms, NUMBER), END_OF_FIELDS};
static const field DOCTOR[] = {FIELD(stk_report, verdict, TEXT),
                               FIELD(stk_report, headline, TEXT),
                               FIELD(stk_report, evidence, TEXT),
                               FIELD(stk_report, noise, NUMBER),
                               FIELD_AS("seconds", stk_report, doctor_seconds, NUMBER),
                               FIELD(stk_report, together, GAIN),
                               FIELD(stk_report, left_out, INT64),
                               FIELD(stk_report, knee, INT64),
                               FIELD(stk_report, batch_limit, INT64),
                               END_OF_FIELDS};
static const field EPOCH[] = {FIELD(stk_epoch_rows, steps, INT64),
                              FIELD(stk_epoch_rows, validation_steps, INT64),
                              FIELD(stk_epoch_rows, validation_every, INT64),
                              FIELD(stk_epoch_rows, training, NUMBER),
                              FIELD(stk_epoch_rows, validation, NUMBER),
                              FIELD(stk_epoch_rows, callbacks, NUMBER),
                              FIELD(stk_epoch_rows, checkpoint, NUMBER),
                              END_OF_FIELDS};
static const field CEILING[] = {FIELD(stk_ceiling, text, TEXT), FIELD(stk_ceiling, gain, GAIN),
                                END_OF_FIELDS};
static const field ADVICE[] = {FIELD(stk_advice, text, TEXT), FIELD(stk_advice, value, INT64),
                               FIELD(stk_advice, gain, GAIN),
                               FIELD(stk_advice, changes_mathematics, TRUTH), END_OF_FIELDS};
static const field CURVE[] = {FIELD(stk_curve_point, batch, INT64),
                              FIELD(stk_curve_point, step_seconds, NUMBER),
                              FIELD(stk_curve_point, examples_per_second, NUMBER),
                              FIELD(stk_curve_point, gain, GAIN), END_OF_FIELDS};
static const field DEVICE[] = {
    FIELD(stk_device_row, name, TEXT),          FIELD(stk_device_row, kind, TEXT),
    FIELD(stk_device_row, low_seconds, NUMBER), FIELD(stk_device_row, high_seconds, NUMBER),
    FIELD(stk_device_row, note, TEXT),          END_OF_FIELDS};

static const char *const STAGE_KINDS[] = {"compute", "storage", "buffer"};

/* ---- writing ------------------------------------------------------------------------------------------------- */

typedef stk_json_writer writer;

static void begin_array(writer *w, const char *name)
{
    if (name) stk_json_name(w, name);
    stk_json_begin_array(w);
}
static void begin_object(writer *w, const char *name)
{
    if (name) stk_json_name(w, name);
    stk_json_begin_object(w);
}
static void numbers(writer *w, const char *name, const double *v, int64_t n)
{
    begin_array(w, name);
    for (int64_t i = 0; i < n; i++) stk_json_put_double(w, v[i]);
    stk_json_end_array(w);
}
static void put_gain(writer *w, const char *name, stk_gain g)
{
    begin_object(w, name);
    stk_json_member_double(w, "best", g.best);
    stk_json_member_double(w, "low", g.low);
    stk_json_member_double(w, "high", g.high);
    stk_json_end_object(w);
}

static void put_fields(writer *w, const field *f, const void *row)
{
    for (; f->name; f++) {
        const void *at = (const char *)row + f->at;
        switch (f->kind) {
        case TEXT: stk_json_member_text(w, f->name, *(const char *const *)at); break;
        case WORD: stk_json_member_text(w, f->name, at); break;
        case INT32: stk_json_member_int(w, f->name, *(const int32_t *)at); break;
        case INT64: stk_json_member_int(w, f->name, *(const int64_t *)at); break;
        case NUMBER: stk_json_member_double(w, f->name, *(const double *)at); break;
        case TRUTH:
            stk_json_name(w, f->name);
            stk_json_put_bool(w, *(const bool *)at);
            break;
        case GAIN: put_gain(w, f->name, *(const stk_gain *)at); break;
        }
    }
}
static void put_object(writer *w, const char *name, const field *f, const void *row)
{
    begin_object(w, name);
    put_fields(w, f, row);
    stk_json_end_object(w);
}
static void put_rows(writer *w, const char *name, const field *f, const void *rows, int64_t n,
                     size_t size)
{
    begin_array(w, name);
    for (int64_t i = 0; i < n; i++) put_object(w, NULL, f, (const char *)rows + (size_t)i * size);
    stk_json_end_array(w);
}
#define PUT_ROWS(w, name, fields, rows, n) put_rows(w, name, fields, rows, n, sizeof *(rows))

static void put_roof(writer *w, const stk_roofline *roof)
{
    begin_object(w, "roofline");
    stk_json_member_int(w, "threads", roof->threads);
    for (int all = 0; all < 2; all++) {
        begin_object(w, all ? "all_threads" : "one_thread");
        stk_json_member_double(w, "gflops", roof->gflops[all]);
        numbers(w, "gbs", roof->gbs[all], STK_ROOF_LEVELS);
        stk_json_end_object(w);
    }
    numbers(w, "level_bytes", roof->level_bytes, STK_ROOF_LEVELS);
    stk_json_end_object(w);
}

static void put_times(writer *w, const stk_report *r)
{
    begin_object(w, "phases");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        begin_object(w, stk_phase_name((stk_phase)p));
        stk_json_member_double(w, "seconds", r->phase_seconds[p]);
        stk_json_member_int(w, "steps", r->phase_steps[p]);
        stk_json_end_object(w);
    }
    stk_json_end_object(w);
    begin_object(w, "step");
    put_fields(w, STEP, r);
    numbers(w, "seconds", r->step_seconds, r->nsteps);
    stk_json_end_object(w);
    begin_object(w, "books");
    stk_json_member_int(w, "steps", r->book_steps);
    stk_json_member_double(w, "wall", stk_report_seconds(r, STK_BOOK_COUNT));
    for (int b = 0; b < STK_BOOK_COUNT; b++)
        stk_json_member_double(w, stk_book_name((stk_book)b), r->book[b]);
    stk_json_end_object(w);
}

static void put_stages(writer *w, const stk_report *r)
{
    begin_array(w, "stages");
    for (int64_t i = 0; i < r->nstages; i++) {
        const stk_watch_stage *s = &r->stages[i];
        begin_object(w, NULL);
        stk_json_member_text(w, "kind", STAGE_KINDS[s->kind]);
        put_fields(w, STAGE, s);
        begin_array(w, "depths");
        for (int32_t k = 0; k < s->ndepths; k++) stk_json_put_double(w, s->depths[k]);
        stk_json_end_array(w);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    stk_json_member_int(w, "limiting_stage", r->limiting_stage);
}

static void put_threads(writer *w, const stk_report *r)
{
    begin_array(w, "threads");
    for (int64_t i = 0; i < r->nthreads; i++) {
        begin_object(w, NULL);
        put_fields(w, THREAD, &r->threads[i]);
        numbers(w, "over", r->threads[i].over, r->threads[i].nover);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    put_object(w, "device", DEVICE_USE, r);
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
}

static void put_memory(writer *w, const stk_report *r)
{
    begin_object(w, "memory");
    put_fields(w, MEMORY, &r->memory);
    begin_object(w, "peak");
    for (int k = 0; k < STK_MEMORY_KINDS; k++)
        stk_json_member_int(w, stk_memory_kind_name((stk_memory_kind)k), r->memory.peak[k]);
    stk_json_end_object(w);
    begin_array(w, "buffers"); /* at, bytes, first, last, kind, place */
    for (int64_t i = 0; i < r->nbuffers; i++) {
        const stk_buffer_row *b = &r->buffers[i];
        stk_json_begin_array(w);
        stk_json_put_int(w, b->at);
        stk_json_put_int(w, b->bytes);
        stk_json_put_int(w, b->first);
        stk_json_put_int(w, b->last);
        stk_json_put_int(w, b->kind);
        stk_json_put_text(w, b->place);
        stk_json_end_array(w);
    }
    stk_json_end_array(w);
    stk_json_end_object(w);
    begin_object(w, "program");
    put_fields(w, PROGRAM, &r->program);
    stk_json_member_double(w, "input_bytes", r->input_bytes);
    stk_json_end_object(w);
}

static void put_doctor(writer *w, const stk_report *r)
{
    begin_object(w, "doctor");
    put_fields(w, DOCTOR, r);
    if (r->epoch.steps > 0) {
        begin_object(w, "epoch");
        put_fields(w, EPOCH, &r->epoch);
        stk_json_end_object(w);
    }
    PUT_ROWS(w, "ceilings", CEILING, r->ceilings, r->nceilings);
    begin_array(w, "advice");
    for (int64_t i = 0; i < r->nadvice; i++) {
        begin_object(w, NULL);
        stk_json_member_text(w, "knob", stk_knob_name(r->advice[i].knob));
        put_fields(w, ADVICE, &r->advice[i]);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    PUT_ROWS(w, "curve", CURVE, r->curve, r->ncurve);
    PUT_ROWS(w, "devices", DEVICE, r->devices, r->ndevices);
    stk_json_end_object(w);
}

stk_status stk_report_put_json(const stk_report *r, char **out, size_t *size, stk_error *err)
{
    writer w = {.indent = 1};
    size_t ignored;
    begin_object(&w, NULL);
    stk_json_member_int(&w, "stoker_report", FORMAT);
    put_fields(&w, HEAD, r);
    put_roof(&w, &r->roof);
    put_times(&w, r);
    PUT_ROWS(&w, "ops", OP, r->ops, r->nops);
    PUT_ROWS(&w, "islands", ISLAND, r->islands, r->nislands);
    PUT_ROWS(&w, "places", PLACE, r->places, r->nplaces);
    PUT_ROWS(&w, "convolutions", CONV, r->convs, r->nconvs);
    put_object(&w, "tiny", TINY, &r->tiny);
    put_stages(&w, r);
    put_threads(&w, r);
    put_memory(&w, r);
    if (r->scaling.npoints) stk_scaling_put_json(&r->scaling, &w);
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
static void *make_rows(reader *in, const stk_json *array, size_t size, int64_t *n)
{
    *n = array && array->kind == STK_JSON_ARRAY ? array->count : 0;
    void *made = stk_arena_array(&in->r->arena, (size_t)*n, size);
    if (!made) in->no_memory = true, *n = 0;
    return made;
}
static double real(const stk_json *object, const char *name)
{
    return stk_json_double(stk_json_get(object, name), 0);
}
static int64_t whole(const stk_json *object, const char *name)
{
    return stk_json_int(stk_json_get(object, name), 0);
}
static int64_t whole_at(const stk_json *array, int64_t i)
{
    return stk_json_int(stk_json_item(array, i), 0);
}
static double real_at(const stk_json *array, int64_t i)
{
    return stk_json_double(stk_json_item(array, i), 0);
}

static void read_fields(reader *in, const stk_json *object, const field *f, void *row)
{
    for (; f->name; f++) {
        const stk_json *v = stk_json_get(object, f->name);
        void *at = (char *)row + f->at;
        switch (f->kind) {
        case TEXT: *(const char **)at = keep(in, v); break;
        case WORD: snprintf(at, WORD_SIZE, "%s", stk_json_text(v, "")); break;
        case INT32: *(int32_t *)at = (int32_t)stk_json_int(v, 0); break;
        case INT64: *(int64_t *)at = stk_json_int(v, 0); break;
        case NUMBER: *(double *)at = stk_json_double(v, 0); break;
        case TRUTH: *(bool *)at = stk_json_bool(v, false); break;
        case GAIN: *(stk_gain *)at = (stk_gain){real(v, "best"), real(v, "low"), real(v, "high")};
        }
    }
}
static void *read_rows(reader *in, const stk_json *array, const field *f, size_t size, int64_t *n)
{
    char *rows = make_rows(in, array, size, n);
    for (int64_t i = 0; i < *n; i++)
        read_fields(in, stk_json_item(array, i), f, rows + (size_t)i * size);
    return rows;
}
static double *read_numbers(reader *in, const stk_json *array, int64_t *n)
{
    double *v = make_rows(in, array, sizeof *v, n);
    for (int64_t i = 0; i < *n; i++) v[i] = real_at(array, i);
    return v;
}

static void read_times(reader *in, const stk_json *root)
{
    stk_report *r = in->r;
    const stk_json *phases = stk_json_get(root, "phases"), *step = stk_json_get(root, "step"),
                   *books = stk_json_get(root, "books"), *roof = stk_json_get(root, "roofline");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        const stk_json *phase = stk_json_get(phases, stk_phase_name((stk_phase)p));
        r->phase_seconds[p] = real(phase, "seconds");
        r->phase_steps[p] = whole(phase, "steps");
    }
    read_fields(in, step, STEP, r);
    r->step_seconds = read_numbers(in, stk_json_get(step, "seconds"), &r->nsteps);
    r->book_steps = whole(books, "steps");
    for (int b = 0; b < STK_BOOK_COUNT; b++) r->book[b] = real(books, stk_book_name((stk_book)b));
    r->roof.threads = (int32_t)whole(roof, "threads");
    for (int all = 0; all < 2; all++) {
        const stk_json *side = stk_json_get(roof, all ? "all_threads" : "one_thread");
        r->roof.gflops[all] = real(side, "gflops");
        for (int l = 0; l < STK_ROOF_LEVELS; l++)
            r->roof.gbs[all][l] = real_at(stk_json_get(side, "gbs"), l);
    }
    for (int l = 0; l < STK_ROOF_LEVELS; l++)
        r->roof.level_bytes[l] = real_at(stk_json_get(roof, "level_bytes"), l);
}

static stk_status read_stages(reader *in, const stk_json *array, stk_error *err)
{
    for (int64_t i = 0; array && i < array->count; i++) {
        const stk_json *v = stk_json_item(array, i), *depths = stk_json_get(v, "depths");
        const char *kind = stk_json_text(stk_json_get(v, "kind"), "");
        stk_watch_stage s = {.workers = 0};
        read_fields(in, v, STAGE, &s);
        for (int k = 0; k < 3; k++)
            if (!strcmp(STAGE_KINDS[k], kind)) s.kind = (stk_watch_stage_kind)k;
        for (; depths && s.ndepths < depths->count && s.ndepths < STK_WATCH_DEPTHS; s.ndepths++)
            s.depths[s.ndepths] = (float)real_at(depths, s.ndepths);
        STK_TRY(stk_report_add_stage(in->r, &s, err));
    }
    return STK_OK;
}

static void read_threads(reader *in, const stk_json *root)
{
    stk_report *r = in->r;
    const stk_json *threads = stk_json_get(root, "threads"), *spans = stk_json_get(root, "spans");
    r->threads = read_rows(in, threads, THREAD, sizeof *r->threads, &r->nthreads);
    for (int64_t i = 0; i < r->nthreads; i++)
        r->threads[i].over =
            read_numbers(in, stk_json_get(stk_json_item(threads, i), "over"), &r->threads[i].nover);
    read_fields(in, stk_json_get(root, "device"), DEVICE_USE, r);
    r->spans = make_rows(in, spans, sizeof *r->spans, &r->nspans);
    for (int64_t i = 0; i < r->nspans; i++) {
        const stk_json *v = stk_json_item(spans, i);
        r->spans[i] = (stk_span_row){(int32_t)whole_at(v, 0), (int32_t)whole_at(v, 1),
                                     real_at(v, 2), real_at(v, 3), keep(in, stk_json_item(v, 4))};
    }
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        const stk_json *bin = stk_json_item(stk_json_get(root, "histogram"), i);
        r->histogram_calls[i] = whole_at(bin, 0);
        r->histogram_seconds[i] = real_at(bin, 1);
    }
}

static void read_memory(reader *in, const stk_json *root)
{
    stk_report *r = in->r;
    const stk_json *memory = stk_json_get(root, "memory"), *p = stk_json_get(root, "program"),
                   *buffers = stk_json_get(memory, "buffers");
    int64_t stages = r->memory.stages; /* was added up from the stages */
    read_fields(in, memory, MEMORY, &r->memory);
    r->memory.stages = stages;
    for (int k = 0; k < STK_MEMORY_KINDS; k++)
        r->memory.peak[k] =
            whole(stk_json_get(memory, "peak"), stk_memory_kind_name((stk_memory_kind)k));
    r->buffers = make_rows(in, buffers, sizeof *r->buffers, &r->nbuffers);
    for (int64_t i = 0; i < r->nbuffers; i++) {
        const stk_json *v = stk_json_item(buffers, i);
        r->buffers[i] = (stk_buffer_row){whole_at(v, 0),          whole_at(v, 1),
                                         (int32_t)whole_at(v, 2), (int32_t)whole_at(v, 3),
                                         (int32_t)whole_at(v, 4), keep(in, stk_json_item(v, 5))};
    }
    read_fields(in, p, PROGRAM, &r->program);
    r->input_bytes = real(p, "input_bytes");
}

static void read_doctor(reader *in, const stk_json *d)
{
    stk_report *r = in->r;
    const stk_json *advice = stk_json_get(d, "advice");
    read_fields(in, d, DOCTOR, r);
    if (stk_json_get(d, "epoch")) read_fields(in, stk_json_get(d, "epoch"), EPOCH, &r->epoch);
    r->ceilings =
        read_rows(in, stk_json_get(d, "ceilings"), CEILING, sizeof *r->ceilings, &r->nceilings);
    r->advice = read_rows(in, advice, ADVICE, sizeof *r->advice, &r->nadvice);
    for (int64_t i = 0; i < r->nadvice; i++) {
        stk_advice *a = &r->advice[i];
        const char *knob = stk_json_text(stk_json_get(stk_json_item(advice, i), "knob"), "");
        a->settings = stk_job_settings_defaults();
        if (stk_knob_parse(knob, &a->knob)) a->settings.value[a->knob] = a->value;
    }
    r->curve = read_rows(in, stk_json_get(d, "curve"), CURVE, sizeof *r->curve, &r->ncurve);
    r->devices =
        read_rows(in, stk_json_get(d, "devices"), DEVICE, sizeof *r->devices, &r->ndevices);
}

static stk_status read_report(reader *in, const stk_json *root, const char *path, stk_error *err)
{
    stk_report *r = in->r;
    int64_t format = stk_json_int(stk_json_get(root, "stoker_report"), 0);
    if (format > FORMAT)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: a stoker report of format %lld, this program reads format %d; it was "
                        "written by a newer one",
                        path, (long long)format, FORMAT);
    if (format != FORMAT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: no stoker report of format %d; write one with "
                        "`stoker profile --report FILE`",
                        path, FORMAT);
    read_fields(in, root, HEAD, r);
    read_times(in, root);
    r->ops = read_rows(in, stk_json_get(root, "ops"), OP, sizeof *r->ops, &r->nops);
    r->islands =
        read_rows(in, stk_json_get(root, "islands"), ISLAND, sizeof *r->islands, &r->nislands);
    r->places = read_rows(in, stk_json_get(root, "places"), PLACE, sizeof *r->places, &r->nplaces);
    r->convs =
        read_rows(in, stk_json_get(root, "convolutions"), CONV, sizeof *r->convs, &r->nconvs);
    read_fields(in, stk_json_get(root, "tiny"), TINY, &r->tiny);
    STK_TRY(read_stages(in, stk_json_get(root, "stages"), err));
    read_threads(in, root);
    read_memory(in, root);
    in->no_memory |= !stk_scaling_read(root, &r->arena, &r->scaling);
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
    stk_free(data);
    if (status != STK_OK) return stk_fail_in(err, status, "%s", path);
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
