/* ops.c - the table of ops: spans of kernels joined with what the programs know about their launches. */
#include "watch/record.h"
#include "watch/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts about launches ------------------------------------------------------------------------------------- */

static void take_program(void *context, const stk_program_facts *facts)
{
    stk_known_launches *k = context;
    size_t bytes = (size_t)facts->nbuffers * sizeof *facts->buffers;
    size_t island_bytes = (size_t)facts->nislands * sizeof *facts->islands;
    stk_buffer_facts *buffers = stk_malloc(bytes + 1);
    stk_island *islands = stk_malloc(island_bytes + 1);
    if (!buffers || !islands || k->no_memory ||
        !STK_GROW(k->program, k->programs, k->cap_programs)) {
        k->no_memory = true;
        stk_free(buffers);
        stk_free(islands);
        return;
    }
    if (bytes) memcpy(buffers, facts->buffers, bytes);
    if (island_bytes) memcpy(islands, facts->islands, island_bytes);
    stk_program_facts *p = &k->program[k->programs++];
    *p = *facts;
    p->launches = NULL;
    p->buffers = buffers;
    p->islands = islands;
    for (int64_t i = 0; i < facts->nlaunches && !k->no_memory; i++) {
        k->no_memory = !STK_GROW(k->launch, k->n, k->cap);
        if (!k->no_memory) k->launch[k->n++] = facts->launches[i];
    }
}

void stk_known_launches_release(stk_known_launches *k)
{
    for (int64_t i = 0; i < k->programs; i++) {
        stk_free((stk_buffer_facts *)(uintptr_t)k->program[i].buffers);
        stk_free((stk_island *)(uintptr_t)k->program[i].islands);
    }
    stk_free(k->program);
    stk_free(k->launch);
    *k = (stk_known_launches){0};
}

static int by_tag(const void *a, const void *b)
{
    const stk_launch_facts *x = a, *y = b;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

stk_status stk_known_launches_get(stk_known_launches *k, stk_error *err)
{
    stk_status status = stk_program_visit(take_program, k, err);
    if (status == STK_OK && k->no_memory) status = stk_fail_memory(err, "facts about launches", 0);
    if (status != STK_OK) {
        stk_known_launches_release(k);
        return status;
    }
    if (k->n) qsort(k->launch, (size_t)k->n, sizeof *k->launch, by_tag);
    return STK_OK;
}

const stk_launch_facts *stk_known_launch(const stk_known_launches *k, uint32_t tag)
{
    stk_launch_facts key = {.tag = tag};
    return tag && k->n ? bsearch(&key, k->launch, (size_t)k->n, sizeof key, by_tag) : NULL;
}

/* ---- sums by launch ------------------------------------------------------------------------------------------------- */

typedef stk_tally tally;

typedef struct tallies {
    tally *t;
    int64_t n, cap;
    stk_report_op *rows;
    double *ideal; /* seconds at the roofline, per row */
    int64_t nrows;
} tallies;

static int by_tag_and_label(const void *a, const void *b)
{
    const stk_interval *x = a, *y = b;
    uint32_t s = x->arg >> 8, t = y->arg >> 8;
    if (s != t) return s < t ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void count_call(const stk_interval *v, stk_report *r)
{
    double us = (double)(v->end - v->start) * 1e-3;
    int bin = us < 0.5 ? 0 : (int)floor(log2(us)) + 2;
    if (bin >= STK_HISTOGRAM) bin = STK_HISTOGRAM - 1;
    r->histogram_calls[bin]++;
    r->histogram_seconds[bin] += us * 1e-6;
}

/* Sorts a copy of the steady kernels by launch and adds them up. */
static stk_status add_up(const stk_recording *rec, const stk_known_launches *known, stk_report *r,
                         tallies *out, stk_error *err)
{
    int64_t n = 0;
    stk_interval *v = stk_malloc((size_t)rec->n * sizeof *v + 1);
    if (!v) return stk_fail_memory(err, "ops", (size_t)rec->n * sizeof *v);
    for (int64_t i = 0; i < rec->n; i++)
        if (rec->all[i].kernel && stk_in_steady(rec, rec->all[i].start)) v[n++] = rec->all[i];
    if (n) qsort(v, (size_t)n, sizeof *v, by_tag_and_label);
    bool room = true;
    for (int64_t i = 0; i < n && room; i++) {
        bool fresh = i == 0 || by_tag_and_label(&v[i - 1], &v[i]);
        if (fresh) {
            room = STK_GROW(out->t, out->n, out->cap);
            if (room) out->t[out->n++] = (tally){.tag = v[i].arg >> 8, .label = v[i].name};
        }
        if (!room) break;
        tally *t = &out->t[out->n - 1];
        t->calls += (v[i].arg & 255) == 0;
        double seconds = (double)(v[i].end - v[i].start) * 1e-9;
        t->thread_seconds += seconds;
        if (v[i].thread == rec->step_thread) t->step_seconds += seconds;
        t->threads |= (uint64_t)1 << (v[i].thread & 63);
        const stk_launch_facts *f = stk_known_launch(known, v[i].arg >> 8);
        if (f && (v[i].arg & 255) == (uint32_t)f->parts) t->finish_seconds += seconds;
        bool whole = f && f->remote && (v[i].arg & 255) == 0;
        if (v[i].thread == rec->step_thread || whole) count_call(&v[i], r);
    }
    stk_free(v);
    return room ? STK_OK : stk_fail_memory(err, "ops", 0);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static stk_report_op *find_row(tallies *t, const stk_report_op *like)
{
    for (int64_t i = 0; i < t->nrows; i++) {
        stk_report_op *o = &t->rows[i];
        if (!strcmp(o->label, like->label) && !strcmp(o->kernel, like->kernel) &&
            !strcmp(o->impl, like->impl) && !strcmp(o->device, like->device) &&
            o->updates == like->updates)
            return o;
    }
    t->rows[t->nrows] = *like;
    t->rows[t->nrows].calls = 0;
    return &t->rows[t->nrows++];
}

/* The step's own thread has a share of every launch that is split, and all of the others: its time is the wall. */
double stk_tally_seconds(const stk_tally *t)
{
    return t->step_seconds > 0 ? t->step_seconds
                               : t->thread_seconds / __builtin_popcountll(t->threads);
}

static void add_row(const stk_report *r, const stk_known_launches *known, const tally *t,
                    tallies *all)
{
    const stk_launch_facts *f = stk_known_launch(known, t->tag);
    double all_seconds = t->thread_seconds, calls = (double)t->calls;
    double seconds = stk_tally_seconds(t);
    int32_t threads = (int32_t)stk_min_i64((int64_t)(all_seconds / seconds + 0.6),
                                           __builtin_popcountll(t->threads));
    stk_report_op like = {.label = t->label,
                          .kernel = f ? f->kernel : "-",
                          .impl = f ? f->impl : "-",
                          .device = f ? f->device : "cpu:0",
                          .updates = f && f->updates};
    stk_report_op *o = find_row(all, &like);
    bool compute = false;
    double share = !f || !t->calls ? 0
                                   : stk_roof_share(&r->roof, f->flops, f->bytes, seconds / calls,
                                                    threads, &compute);
    if (share * seconds > 0 && share * seconds > all->ideal[o - all->rows])
        o->compute_side = compute;
    all->ideal[o - all->rows] += share * seconds;
    o->calls += t->calls;
    o->seconds += seconds;
    o->flops += f ? f->flops * calls : 0;
    o->bytes += f ? f->bytes * calls : 0;
    if (threads > o->threads) o->threads = threads;
}

static int by_seconds(const void *a, const void *b)
{
    const stk_report_op *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static stk_status make_rows(stk_report *r, const stk_known_launches *known, tallies *all,
                            stk_error *err)
{
    all->rows = stk_arena_array(&r->arena, (size_t)all->n, sizeof *all->rows);
    all->ideal = stk_calloc((size_t)all->n, sizeof *all->ideal);
    if (!all->rows || !all->ideal) return stk_fail_memory(err, "ops", 0);
    for (int64_t i = 0; i < all->n; i++) add_row(r, known, &all->t[i], all);
    for (int64_t i = 0; i < all->nrows; i++)
        all->rows[i].roof = all->rows[i].seconds > 0 ? all->ideal[i] / all->rows[i].seconds : 0;
    qsort(all->rows, (size_t)all->nrows, sizeof *all->rows, by_seconds);
    r->ops = all->rows;
    r->nops = all->nrows;
    /* Labels may be interned in the trace, which can be forgotten. */
    for (int64_t i = 0; i < r->nops; i++) {
        r->ops[i].label = stk_arena_strdup(&r->arena, r->ops[i].label);
        r->ops[i].device = stk_arena_strdup(&r->arena, r->ops[i].device);
        if (!r->ops[i].label || !r->ops[i].device) return stk_fail_memory(err, "ops", 0);
    }
    return STK_OK;
}

/* The program that took most time in this recording; without any, the one that ran most. */
static const stk_program_facts *find_busiest(const stk_known_launches *known, const tallies *all)
{
    const stk_program_facts *best = NULL;
    double most = -1;
    for (int64_t i = 0; i < known->programs; i++) {
        const stk_program_facts *p = &known->program[i];
        double seconds = 0;
        for (int64_t k = 0; k < all->n; k++)
            if (all->t[k].tag >> STK_TAG_PLACE_BITS == p->serial)
                seconds += stk_tally_seconds(&all->t[k]);
        if (seconds < most || (best && seconds == most && p->runs <= best->runs)) continue;
        best = p;
        most = seconds;
    }
    return best;
}

static void describe_program(const stk_known_launches *known, const stk_program_facts *p,
                             stk_report *r)
{
    const stk_program_stats *s = &p->stats;
    r->program = (stk_program_totals){.launches = s->launches,
                                      .regions = s->regions,
                                      .programs = (int32_t)known->programs,
                                      .flops = s->flops,
                                      .bytes = s->bytes,
                                      .build_ms = s->build_ms,
                                      .election_ms = s->election_ms};
    r->input_bytes = p->input_bytes;
}

/* What the device of the busiest program does not take. */
static stk_status list_islands(const stk_program_facts *p, stk_report *r, stk_error *err)
{
    r->islands = stk_arena_array(&r->arena, (size_t)p->nislands, sizeof *r->islands);
    if (!r->islands) return stk_fail_memory(err, "islands", 0);
    for (int64_t i = 0; i < p->nislands; i++) {
        const stk_island *from = &p->islands[i];
        stk_island_row *row = &r->islands[r->nislands++];
        *row = (stk_island_row){.op = stk_arena_strdup(&r->arena, from->op),
                                .place = stk_arena_strdup(&r->arena, from->name),
                                .shape = stk_arena_strdup(&r->arena, from->shape),
                                .reason = stk_arena_strdup(&r->arena, from->reason),
                                .bytes_down = from->bytes_down,
                                .bytes_up = from->bytes_up};
        if (!row->op || !row->place || !row->shape || !row->reason)
            return stk_fail_memory(err, "islands", 0);
    }
    return STK_OK;
}

const char *stk_report_device(const stk_report *r)
{
    const char *best = "";
    double most = 0;
    for (int64_t i = 0; i < r->nops; i++) {
        double seconds = 0;
        for (int64_t k = 0; k < r->nops; k++)
            if (!strcmp(r->ops[k].device, r->ops[i].device)) seconds += r->ops[k].seconds;
        if (seconds > most) most = seconds, best = r->ops[i].device;
    }
    return best;
}

stk_status stk_record_ops(stk_recording *rec, stk_report *r, stk_error *err)
{
    stk_known_launches known = {0};
    tallies all = {0};
    STK_TRY(stk_known_launches_get(&known, err));
    stk_status status = add_up(rec, &known, r, &all, err);
    if (status == STK_OK && all.n) status = make_rows(r, &known, &all, err);
    if (status == STK_OK) status = stk_record_layer_costs(&known, all.t, all.n, r, err);
    if (status == STK_OK) status = stk_record_convs(&known, all.t, all.n, r, err);
    if (status == STK_OK) status = stk_record_scaling(&known, all.t, all.n, r, err);
    const stk_program_facts *busiest = find_busiest(&known, &all);
    if (status == STK_OK && busiest) {
        describe_program(&known, busiest, r);
        status = list_islands(busiest, r, err);
        if (status == STK_OK) status = stk_record_memory(busiest, r, err);
    }
    stk_free(all.t);
    stk_free(all.ideal);
    stk_known_launches_release(&known);
    return status;
}
