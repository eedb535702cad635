/* scaling.c - gathers the regions of a step from the recording and predicts the step on 1 to 64 threads (scaling.h). */
#include "watch/scaling.h"

#include "watch/record.h"

#include <math.h>
#include <stdlib.h>

/* ---- the model ------------------------------------------------------------------------------------------------ */

/* The pool calls its workers one after the other, so a region's ceremony grows with them. */
static double join_of(const stk_roofline *roof, int32_t threads)
{
    if (threads < 2 || !roof->threads) return 0;
    return roof->join / fmax(roof->threads, 2) * threads;
}

/* On as many of n threads as are best for it: a program asks for no more than pay. */
static double region_seconds(const stk_region_cost *c, const stk_roofline *roof, int32_t n,
                             bool memory)
{
    double best = c->cut, bandwidth = roof->gbs[1][STK_ROOF_LEVELS - 1] * 1e9;
    for (int32_t m = 2; m <= n && m <= c->parts; m *= 2) {
        double seconds = c->cut * ceil((double)c->parts / m) / c->parts;
        if (memory && bandwidth > 0) seconds = fmax(seconds, c->bytes / bandwidth);
        best = fmin(best, seconds + join_of(roof, m));
    }
    return best + c->serial;
}

/* Keeps the longest ones, longest first. */
static void note_limit(const stk_region_cost *c, const stk_roofline *roof, stk_scaling *out)
{
    stk_scaling_limit now = {c->op, c->place, c->parts, region_seconds(c, roof, 1, false),
                             region_seconds(c, roof, 1 << (STK_SCALING_POINTS - 1), false)};
    int64_t at = out->nlimits;
    while (at > 0 && out->limit[at - 1].most < now.most) at--;
    if (at == STK_SCALING_LIMITS) return;
    if (out->nlimits < STK_SCALING_LIMITS) out->nlimits++;
    for (int64_t i = out->nlimits - 1; i > at; i--) out->limit[i] = out->limit[i - 1];
    out->limit[at] = now;
}

void stk_scaling_predict(const stk_region_cost *regions, int64_t n, double outside,
                         const stk_roofline *roof, stk_scaling *out)
{
    out->outside = outside;
    out->join = join_of(roof, 2);
    out->regions = (int32_t)n;
    for (int64_t i = 0; i < n; i++) {
        out->cut += regions[i].cut;
        out->serial += regions[i].serial;
        out->bytes += regions[i].bytes;
        out->split += regions[i].parts > 1;
        note_limit(&regions[i], roof, out);
    }
    for (int p = 0; p < STK_SCALING_POINTS; p++) {
        stk_scaling_point *at = &out->point[out->npoints++];
        *at = (stk_scaling_point){1 << p, outside, outside};
        for (int64_t i = 0; i < n; i++) {
            at->seconds += region_seconds(&regions[i], roof, at->threads, false);
            at->memory_seconds += region_seconds(&regions[i], roof, at->threads, true);
        }
    }
}

/* ---- regions of a recording ----------------------------------------------------------------------------------- */

typedef struct timed { /* a launch with what was seen of it */
    const stk_launch_facts *facts;
    const stk_tally *tally;
} timed;

static int by_region(const void *a, const void *b)
{
    const stk_launch_facts *x = ((const timed *)a)->facts, *y = ((const timed *)b)->facts;
    uint32_t s = x->tag >> STK_TAG_PLACE_BITS, t = y->tag >> STK_TAG_PLACE_BITS;
    if (s != t) return s < t ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static void add_launch(stk_region_cost *c, const timed *t, const stk_report *r)
{
    double steps = (double)r->book_steps, all = t->tally->thread_seconds / steps;
    double serial = t->facts->parts > 1 ? t->tally->finish_seconds / steps : all;
    bool cached = r->roof.threads && t->facts->bytes <= r->roof.level_bytes[STK_ROOF_LEVELS - 2];
    c->serial += serial;
    c->cut += all - serial;
    if (!cached) c->bytes += t->facts->bytes * (double)t->tally->calls / steps;
    if (t->facts->parts > c->parts) c->parts = t->facts->parts;
    if (c->op && all <= c->dearest) return;
    c->dearest = all;
    c->op = t->facts->label;
    c->place = t->facts->place;
}

/* Launches of one region stand together; returns how many regions there are. */
static int64_t gather(timed *t, int64_t n, stk_region_cost *out, const stk_report *r)
{
    int64_t regions = 0;
    if (n) qsort(t, (size_t)n, sizeof *t, by_region);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || by_region(&t[i - 1], &t[i])) out[regions++] = (stk_region_cost){.parts = 1};
        add_launch(&out[regions - 1], &t[i], r);
    }
    return regions;
}

/* Everything of a step that is neither a kernel nor the ceremony of regions, which the model has. */
static double outside_of(const stk_report *r)
{
    return stk_report_seconds(r, STK_BOOK_COUNT) - r->book[STK_BOOK_KERNELS] -
           r->book[STK_BOOK_OPTIMIZER] - r->book[STK_BOOK_THREADS];
}

stk_status stk_record_scaling(const stk_known_launches *known, const stk_tally *t, int64_t n,
                              stk_report *r, stk_error *err)
{
    timed *launches = stk_calloc((size_t)n + 1, sizeof *launches);
    stk_region_cost *regions = stk_calloc((size_t)n + 1, sizeof *regions);
    stk_status status = launches && regions ? STK_OK : stk_fail_memory(err, "regions", 0);
    int64_t used = 0;
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        const stk_launch_facts *f = stk_known_launch(known, t[i].tag);
        if (f && !f->remote) launches[used++] = (timed){f, &t[i]};
    }
    if (status == STK_OK && used && r->book_steps) {
        int64_t count = gather(launches, used, regions, r);
        stk_scaling_predict(regions, count, outside_of(r), &r->roof, &r->scaling);
        for (int64_t i = 0; i < r->scaling.nlimits; i++) {
            stk_scaling_limit *l = &r->scaling.limit[i];
            l->op = stk_arena_strdup(&r->arena, l->op);
            l->place = stk_arena_strdup(&r->arena, l->place);
            if (!l->op || !l->place) status = stk_fail_memory(err, "regions", 0);
        }
    }
    stk_free(launches);
    stk_free(regions);
    return status;
}
