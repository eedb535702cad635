/* The selftest: each case is computed once with reference kernels, then with every instruction set and every
 * implementation that takes it, and compared. What a case says counts for the kernels it is about: elementwise work and
 * copies stand in nearly every program, and are judged by the programs that have nothing else. */
#include "stoker/selftest.h"

#include "base/clock.h"
#include "base/memory.h"
#include "device/cpu/isa.h"
#include "graph/run/program.h"
#include "graph/selftest/cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUTS = 1 + STK_CASE_INPUTS, MOST_ROWS = 512, MOST_KERNELS = 16 };

typedef struct tester {
    stk_selftest_options options;
    stk_device *device, *reference; /* another one unless the device is a CPU */
    stk_selftest_report *report;
    /* of the case at hand */
    stk_case_graph graph;
    char title[120];
    stk_tensor *want[OUTPUTS];
} tester;

/* What ran: the kernels that the case is about, with their implementations. */
typedef struct kernel {
    stk_kernel id;
    const char *by;
} kernel;
typedef struct kernels {
    int32_t n;
    kernel list[MOST_KERNELS];
} kernels;

stk_selftest_options stk_selftest_options_defaults(void) { return (stk_selftest_options){0}; }

/* Libraries look at the processor themselves: no instruction set of ours is theirs. */
static bool is_library(const char *by) { return !strcmp(by, "onednn") || !strcmp(by, "xsmm"); }
static bool is_reference(const char *by) { return !strcmp(by, "ref"); }

/* ---- running one program --------------------------------------------------------------------------------------- */

static void note_kernels(const stk_program *p, kernels *out)
{
    static const uint64_t everywhere =
        1u << STK_K_CHAIN | 1u << STK_K_COPY | 1u << STK_K_FILL | 1u << STK_K_REDUCE;
    out->n = 0;
    for (int pass = 0; pass < 2 && out->n == 0; pass++)
        for (int64_t k = 0; k < p->plan.ntasks && out->n < MOST_KERNELS; k++) {
            int32_t id = p->plan.tasks[k].kernel;
            stk_task_report task;
            if (id < 0 || (pass == 0 && (everywhere >> id & 1))) continue;
            p->device->vt->kernels.report(&p->plan, k, &task);
            bool known = false;
            for (int32_t i = 0; i < out->n && !known; i++)
                known = (int32_t)out->list[i].id == id && !strcmp(out->list[i].by, task.impl);
            if (!known) out->list[out->n++] = (kernel){(stk_kernel)id, task.impl};
        }
}

/* Is the kernel asked for? */
static bool is_wanted(const tester *t, stk_kernel id)
{
    return !t->options.only || strstr(stk_kernel_name(id), t->options.only);
}

static const char *output_name(int32_t i, char *text, size_t size)
{
    if (i == 0)
        snprintf(text, size, "y");
    else
        snprintf(text, size, "d%d", i - 1);
    return text;
}

/* Results in out[], NULL where the graph has no such output. */
static stk_status run_case(const tester *t, const stk_program_options *how, stk_tensor **out,
                           kernels *ran, stk_error *err)
{
    char name[16];
    stk_program *p = NULL;
    stk_status status = stk_program_new(t->graph.g, how, &p, err);
    if (status == STK_OK) note_kernels(p, ran);
    for (int32_t i = 0; status == STK_OK && i < t->graph.inputs; i++) {
        snprintf(name, sizeof name, "x%d", i);
        stk_error unused; /* an input that only the gradients read may be missing */
        if (stk_program_feed(p, name, t->graph.tensor[i], &unused) != STK_OK) continue;
    }
    if (status == STK_OK) status = stk_program_run(p, 1, err);
    for (int32_t i = 0; status == STK_OK && i < OUTPUTS; i++) {
        stk_error unused;
        out[i] = NULL;
        if (stk_program_read(p, output_name(i, name, sizeof name), &out[i], &unused) != STK_OK)
            out[i] = NULL;
    }
    stk_program_release(p);
    return status;
}

static void release_all(stk_tensor **t)
{
    for (int32_t i = 0; i < OUTPUTS; i++) stk_tensor_release(t[i]);
    memset(t, 0, OUTPUTS * sizeof *t);
}

/* ---- judging ------------------------------------------------------------------------------------------------------- */

static double tolerance(const stk_case_graph *c)
{
    if (c->exact) return 0;
    if (c->tolerance > 0) return c->tolerance;
    switch (c->real) {
    case STK_F64: return 1e-11;
    case STK_F16: return 4e-3;
    case STK_BF16: return 3e-2;
    default: return 5e-5;
    }
}

/* The largest difference, infinite where one is a number and the other is not. */
static double difference(const stk_tensor *got, const stk_tensor *want)
{
    double worst = 0;
    if (!got || stk_tensor_count(got) != stk_tensor_count(want)) return INFINITY;
    for (int64_t i = 0; i < stk_tensor_count(want); i++) {
        double a = stk_tensor_at(got, i), b = stk_tensor_at(want, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        double off = fabs(a - b) / (1 + fabs(b));
        worst = isnan(off) ? INFINITY : fmax(worst, off);
    }
    return worst;
}

static stk_selftest_row *row_of(stk_selftest_report *r, const kernel *k, const char *set)
{
    const char *name = stk_kernel_name(k->id);
    for (int32_t i = 0; i < r->nrows; i++)
        if (!strcmp(r->rows[i].kernel, name) && !strcmp(r->rows[i].implementation, k->by) &&
            !strcmp(r->rows[i].set, set))
            return &r->rows[i];
    if (r->nrows == MOST_ROWS) return NULL;
    stk_selftest_row *row = &r->rows[r->nrows++];
    snprintf(row->kernel, sizeof row->kernel, "%s", name);
    snprintf(row->implementation, sizeof row->implementation, "%s", k->by);
    snprintf(row->set, sizeof row->set, "%s", set);
    return row;
}

static void count(const tester *t, const kernels *ran, const char *set, double worst)
{
    bool wrong = !(worst <= tolerance(&t->graph));
    t->report->cases++;
    t->report->failures += wrong;
    for (int32_t i = 0; i < ran->n; i++) {
        const kernel *k = &ran->list[i];
        /* The reference itself stands there when nothing faster takes the type. */
        if (is_reference(k->by) || !is_wanted(t, k->id)) continue;
        stk_selftest_row *row = row_of(t->report, k, is_library(k->by) ? "" : set);
        if (!row) continue;
        bool tell = wrong ? row->failures == 0 : row->failures == 0 && worst > row->worst;
        if (tell) snprintf(row->where, sizeof row->where, "%s", t->title);
        row->cases++;
        row->failures += wrong;
        row->worst = fmax(row->worst, worst);
    }
}

static stk_status try_case(const tester *t, const stk_program_options *how, const char *set,
                           kernels *ran, stk_error *err)
{
    stk_tensor *got[OUTPUTS] = {0};
    double worst = 0;
    STK_TRY(run_case(t, how, got, ran, err));
    for (int32_t i = 0; i < OUTPUTS; i++)
        if (t->want[i]) worst = fmax(worst, difference(got[i], t->want[i]));
    release_all(got);
    count(t, ran, set, worst);
    return STK_OK;
}

/* ---- every implementation ---------------------------------------------------------------------------------------------- */

/* The others that take the problem, one at a time. Libraries only once. */
static void try_others(const tester *t, stk_program_options how, const char *set, bool libraries,
                       const kernels *first)
{
    const char *(*name)(stk_device *, stk_kernel, int32_t) = t->device->vt->kernels.name;
    for (int32_t i = 0; name && i < first->n; i++) {
        const kernel *k = &first->list[i];
        const char *by;
        for (int32_t other = 0; (by = name(t->device, k->id, other)); other++) {
            char forced[64];
            stk_error refused;
            kernels ran;
            if (!strcmp(by, k->by) || is_reference(by) || (is_library(by) && !libraries)) continue;
            snprintf(forced, sizeof forced, "%s:%s", stk_kernel_name(k->id), by);
            how.kernels = forced;
            (void)try_case(t, &how, set, &ran, &refused);
        }
    }
}

static stk_status test_case(tester *t, stk_error *err)
{
    stk_program_options ref = {.device = t->reference,
                               .threads = 1,
                               .deterministic = true,
                               .ref = true,
                               .no_fuse = true,
                               .kernels = ""};
    stk_program_options own = {.device = t->device, .deterministic = true, .kernels = ""};
    kernels ran;
    stk_isa_use("base");
    STK_TRY(run_case(t, &ref, t->want, &ran, err));
    stk_isa_use(NULL);
    bool wanted = false;
    for (int32_t i = 0; i < ran.n; i++) wanted |= is_wanted(t, ran.list[i].id);
    for (int32_t i = 0; wanted && i < t->report->nsets; i++) {
        const stk_selftest_set *set = &t->report->sets[i];
        if (!set->ran) continue;
        if (t->device == t->reference) stk_isa_use(set->name);
        STK_TRY(try_case(t, &own, set->name, &ran, err));
        try_others(t, own, set->name, i == 0, &ran);
    }
    return STK_OK;
}

static bool is_small(const stk_case_graph *c)
{
    enum { MOST = 1000 };
    int64_t numbers = 0;
    for (int32_t i = 0; i < c->inputs; i++) numbers += stk_tensor_count(c->tensor[i]);
    return numbers <= MOST;
}

static stk_status test_all(tester *t, stk_error *err)
{
    stk_case row;
    stk_status status = STK_OK;
    bool any = false;
    for (int32_t i = 0; i < t->report->nsets; i++) any |= t->report->sets[i].ran;
    if (!any) return STK_OK;
    for (int32_t i = 0; status == STK_OK && stk_case_at(i, &row, t->title, sizeof t->title); i++) {
        if (!stk_case_open(&row, &t->graph, err)) continue; /* no such operation for this type */
        if (!t->options.small || is_small(&t->graph)) status = test_case(t, err);
        release_all(t->want);
        stk_case_close(&t->graph);
    }
    return status;
}

/* ---- the report -------------------------------------------------------------------------------------------------------- */

static int32_t kernel_place(const char *name)
{
    int32_t i = 0;
    while (i < STK_KERNEL_COUNT && strcmp(stk_kernel_name((stk_kernel)i), name)) i++;
    return i;
}

/* By kernel; rows of one kernel stay as they were found: narrow sets first. */
static void sort_rows(stk_selftest_report *r)
{
    for (int32_t i = 1; i < r->nrows; i++) {
        stk_selftest_row row = r->rows[i];
        int32_t at = i;
        for (; at > 0 && kernel_place(r->rows[at - 1].kernel) > kernel_place(row.kernel); at--)
            r->rows[at] = r->rows[at - 1];
        r->rows[at] = row;
    }
}

static void describe(tester *t)
{
    stk_selftest_report *r = t->report;
    stk_device_report device;
    stk_device_describe(t->device, &device);
    snprintf(r->device, sizeof r->device, "%s", device.name);
    snprintf(r->detail, sizeof r->detail, "%s", device.detail);
    snprintf(r->compiler, sizeof r->compiler, "%s", __VERSION__);
    if (t->device !=
        t->reference) { /* it has no instruction sets of ours: its kind stands for one */
        stk_selftest_set *set = &r->sets[r->nsets++];
        snprintf(set->name, sizeof set->name, "%.*s", (int)strcspn(device.name, ":"), device.name);
        set->built = set->here = true;
        set->ran = !t->options.set || !strcmp(t->options.set, set->name);
        return;
    }
    for (int32_t i = 0; i < stk_isa_count(); i++) {
        stk_isa isa = stk_isa_at(i);
        const bool named = t->options.set && !strcmp(t->options.set, isa.name);
        if (isa.on_request && !named) continue;
        stk_selftest_set *set = &r->sets[r->nsets++];
        snprintf(set->name, sizeof set->name, "%s", isa.name);
        set->built = isa.built;
        set->here = isa.here;
        set->ran = isa.here && (!t->options.set || named);
    }
}

stk_status stk_selftest_run(const stk_selftest_options *options, stk_selftest_report **out,
                            stk_error *err)
{
    tester t = {.options = options ? *options : stk_selftest_options_defaults()};
    int64_t begin = stk_now_ns();
    *out = NULL;
    if (t.options.device)
        t.device = stk_device_retain(t.options.device);
    else
        STK_TRY(stk_device_open("cpu:0", 0, &t.device, err));
    if (!strncmp(stk_device_name(t.device), "cpu:", 4)) {
        t.reference = stk_device_retain(t.device);
    } else {
        stk_status opened = stk_device_open("cpu:0", 0, &t.reference, err);
        if (opened != STK_OK) {
            stk_device_release(t.device);
            return opened;
        }
    }
    t.report = stk_calloc(1, sizeof *t.report);
    if (t.report) t.report->rows = stk_calloc(MOST_ROWS, sizeof *t.report->rows);
    stk_status status = t.report && t.report->rows ? STK_OK : stk_fail_memory(err, "a report", 0);
    if (status == STK_OK) {
        describe(&t);
        status = test_all(&t, err);
        stk_isa_use(NULL);
        sort_rows(t.report);
        t.report->seconds = (double)(stk_now_ns() - begin) * 1e-9;
    }
    stk_device_release(t.reference);
    stk_device_release(t.device);
    if (status == STK_OK)
        *out = t.report;
    else
        stk_selftest_release(t.report);
    return status;
}

void stk_selftest_release(stk_selftest_report *report)
{
    if (!report) return;
    stk_free(report->rows);
    stk_free(report);
}
