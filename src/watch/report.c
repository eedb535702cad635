/* report.c - reports as objects: life, small questions, and the door to the writers. */
#include "watch/report.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *colour;
} books[] = {
#define STK_BOOK(NAME, name, colour, doc) {name, colour},
#include "stoker/books.def"
};
static const char *const phases[] = {
#define STK_PHASE(NAME, name, doc) name,
#include "stoker/phases.def"
};
static const struct {
    const char *name, *doc;
    stk_knob_class class;
    int64_t least, most;
} knobs[] = {
#define STK_KNOB(NAME, name, class, least, most, doc) {name, doc, STK_KNOB_IS_##class, least, most},
#include "stoker/knobs.def"
};

const char *stk_book_name(stk_book b) { return (unsigned)b < STK_BOOK_COUNT ? books[b].name : ""; }
const char *stk_book_colour(stk_book b)
{
    return (unsigned)b < STK_BOOK_COUNT ? books[b].colour : "#999";
}
const char *stk_phase_name(stk_phase p) { return (unsigned)p < STK_PHASE_COUNT ? phases[p] : ""; }
const char *stk_knob_name(stk_knob k) { return (unsigned)k < STK_KNOB_COUNT ? knobs[k].name : ""; }
const char *stk_knob_doc(stk_knob k) { return (unsigned)k < STK_KNOB_COUNT ? knobs[k].doc : ""; }
stk_knob_class stk_knob_class_of(stk_knob k)
{
    return (unsigned)k < STK_KNOB_COUNT ? knobs[k].class : STK_KNOB_IS_CEILING;
}

void stk_knob_range(stk_knob k, int64_t *least, int64_t *most)
{
    *least = knobs[k].least, *most = knobs[k].most;
}

bool stk_knob_parse(const char *name, stk_knob *out)
{
    for (int k = 0; k < STK_KNOB_COUNT; k++)
        if (!strcmp(knobs[k].name, name)) {
            *out = (stk_knob)k;
            return true;
        }
    return false;
}

char *stk_advice_text(stk_knob knob, int64_t value, char *text, size_t size)
{
    const char *name = stk_knob_name(knob);
    switch (knob) {
    case STK_KNOB_CACHE: snprintf(text, size, "cache of %lld MiB", (long long)value); break;
    case STK_KNOB_FUSED: snprintf(text, size, "fused order of the pipeline"); break;
    case STK_KNOB_NATIVE_INPUT: snprintf(text, size, "batches in the program's own type"); break;
    case STK_KNOB_ELECTED: snprintf(text, size, "kernels by timing"); break;
    case STK_KNOB_GROUP: snprintf(text, size, "%lld steps per call", (long long)value); break;
    case STK_KNOB_READ_EVERY:
        snprintf(text, size, "read metrics every %lld steps", (long long)value);
        break;
    case STK_KNOB_CALLBACK_EVERY:
        if (value < 1)
            snprintf(text, size, "callbacks at ends of epochs only");
        else
            snprintf(text, size, "callbacks every %lld steps", (long long)value);
        break;
    case STK_KNOB_PRECISION:
        snprintf(text, size, "%lld-bit numbers (mixed_bfloat16)", (long long)value);
        break;
    case STK_KNOB_VALIDATE_EVERY:
        snprintf(text, size, "validation every %lld epochs", (long long)value);
        break;
    case STK_KNOB_BUCKETS: snprintf(text, size, "batches padded to a few shapes"); break;
    default: snprintf(text, size, "%s %lld", name, (long long)value);
    }
    return text;
}

/* The way that most of a batch goes. */
char *stk_report_data_text(const stk_report *r, char text[200])
{
    const stk_memory_rows *m = &r->memory;
    const struct {
        int64_t bytes;
        const char *says; /* %s: the device */
    } ways[] = {
        {m->in_place, "in the host's memory; %s works on it where it is"},
        {m->resident, "lives on %s: only the numbers of a batch's rows go up"},
        {m->pinned,
         "the host writes batches into memory that goes up fast; %s gets them from there"},
        {m->staged,
         "in the host's memory; each batch is copied to memory that goes up fast, then to %s"},
    };
    size_t most = 0;
    for (size_t i = 1; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].bytes > ways[most].bytes) most = i;
    text[0] = '\0';
    if (ways[most].bytes) snprintf(text, 200, ways[most].says, stk_report_device(r));
    return text;
}

stk_report *stk_report_new(void)
{
    stk_report *r = stk_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->title = "";
    r->version = STK_VERSION;
    r->machine = "";
    r->limiting_stage = -1;
    return r;
}

void stk_report_release(stk_report *r)
{
    if (!r) return;
    stk_free(r->stages);
    stk_arena_release(&r->arena);
    stk_free(r);
}

/* The stage whose workers are busiest; sets limiting_stage. All stages ran for the same time, and an element of one is a row, of
 * another a batch: times per element would not compare. */
static void find_limit(stk_report *r)
{
    double worst = 0;
    r->limiting_stage = -1;
    for (int64_t i = 0; i < r->nstages; i++) {
        const stk_watch_stage *s = &r->stages[i];
        double busy = s->busy_seconds / (s->workers > 1 ? s->workers : 1);
        if (busy > worst) worst = busy, r->limiting_stage = (int32_t)i;
    }
}

stk_status stk_report_add_stage(stk_report *r, const stk_watch_stage *stage, stk_error *err)
{
    if (!r || !stage)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_report_add_stage: report and stage must be given");
    if (!STK_GROW(r->stages, r->nstages, r->cap_stages))
        return stk_fail_memory(err, "a stage", sizeof *stage);
    r->stages[r->nstages++] = *stage;
    r->memory.stages += stage->bytes;
    find_limit(r);
    return STK_OK;
}

double stk_report_seconds(const stk_report *r, stk_book book)
{
    double sum = 0;
    if (!r) return 0;
    if ((unsigned)book < STK_BOOK_COUNT) return r->book[book];
    for (int b = 0; b < STK_BOOK_COUNT; b++) sum += r->book[b];
    return sum;
}
double stk_report_phase_seconds(const stk_report *r, stk_phase p)
{
    return r && (unsigned)p < STK_PHASE_COUNT ? r->phase_seconds[p] : 0;
}
int64_t stk_report_phase_steps(const stk_report *r, stk_phase p)
{
    return r && (unsigned)p < STK_PHASE_COUNT ? r->phase_steps[p] : 0;
}
const char *stk_report_verdict(const stk_report *r) { return r && r->verdict ? r->verdict : ""; }
const char *stk_report_evidence(const stk_report *r) { return r && r->evidence ? r->evidence : ""; }
int32_t stk_report_advice_count(const stk_report *r) { return r ? (int32_t)r->nadvice : 0; }
bool stk_report_advice(const stk_report *r, int32_t index, stk_advice *out)
{
    if (!r || !out || index < 0 || index >= r->nadvice) return false;
    *out = r->advice[index];
    return true;
}

stk_job_settings stk_job_settings_defaults(void)
{
    stk_job_settings s;
    for (int k = 0; k < STK_KNOB_COUNT; k++) s.value[k] = STK_AS_IS;
    return s;
}

stk_job_settings stk_report_settings(const stk_report *r)
{
    stk_job_settings s = stk_job_settings_defaults();
    for (int64_t i = 0; r && i < r->nadvice; i++) {
        const stk_advice *a = &r->advice[i];
        if (!a->changes_mathematics && stk_knob_class_of(a->knob) == STK_KNOB_IS_SAFE &&
            s.value[a->knob] == STK_AS_IS)
            s.value[a->knob] = a->value;
    }
    return s;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

stk_status stk_report_render(const stk_report *r, stk_report_kind kind, char **text, size_t *size,
                             stk_error *err)
{
    static void (*const put[STK_REPORT_KINDS])(const stk_report *, stk_text *) = {
        [STK_REPORT_TEXT] = stk_report_put_text,
        [STK_REPORT_HTML] = stk_report_put_html,
        [STK_REPORT_CHROME] = stk_report_put_chrome,
        [STK_REPORT_TENSORBOARD] = stk_report_put_events,
    };
    if (!r || !text || (unsigned)kind >= STK_REPORT_KINDS)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_report_render: report, text and a kind below %d must be given",
                        STK_REPORT_KINDS);
    if (kind == STK_REPORT_JSON) return stk_report_put_json(r, text, size, err);
    stk_text t = {0};
    put[kind](r, &t);
    return stk_text_finish(&t, text, size, err);
}

stk_status stk_report_save_text(const char *path, const char *text, size_t size, stk_error *err)
{
    stk_file_writer file = {0};
    STK_TRY(stk_file_create(path, &file, err));
    stk_status status = stk_file_write(&file, text, size, err);
    if (status == STK_OK) return stk_file_commit(&file, err);
    stk_file_abandon(&file);
    return status;
}

stk_status stk_report_save(const stk_report *r, stk_report_kind kind, const char *path,
                           stk_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "stk_report_save: the path is NULL");
    STK_TRY(stk_report_render(r, kind, &text, &size, err));
    stk_status status = stk_report_save_text(path, text, size, err);
    stk_free(text);
    return status;
}
