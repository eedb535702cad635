/* arena.c - the memory of a program: what its variables hold, and how the arena is filled from region to region. */
#include "watch/record.h"

#include <stdlib.h>

static const struct {
    const char *name, *colour;
} kinds[STK_MEMORY_KINDS] = {
    [STK_MEMORY_ACTIVATIONS] = {"activations", "#2f7f79"},
    [STK_MEMORY_GRADIENTS] = {"gradients", "#c2a13a"},
    [STK_MEMORY_UPDATE] = {"update", "#7d5a9c"},
    [STK_MEMORY_SCRATCH] = {"scratch", "#8a8f98"},
};

const char *stk_memory_kind_name(stk_memory_kind k)
{
    return (unsigned)k < STK_MEMORY_KINDS ? kinds[k].name : "";
}
const char *stk_memory_kind_colour(stk_memory_kind k)
{
    return (unsigned)k < STK_MEMORY_KINDS ? kinds[k].colour : "#999";
}

static int larger_first(const void *a, const void *b)
{
    const stk_buffer_row *x = a, *y = b;
    double s = (double)x->bytes * (x->last - x->first + 1),
           t = (double)y->bytes * (y->last - y->first + 1);
    return s < t ? 1 : s > t ? -1 : 0;
}

/* The region in which most of the arena is in use, and by what. */
static stk_status find_peak(const stk_program_facts *p, stk_memory_rows *m, stk_error *err)
{
    int32_t regions = p->stats.regions;
    int64_t most = -1, sum = 0;
    int64_t *change = stk_calloc((size_t)regions + 2, sizeof *change); /* from region to region */
    if (!change) return stk_fail_memory(err, "the arena's plan", (size_t)regions * sizeof *change);
    for (int64_t i = 0; i < p->nbuffers; i++) {
        const stk_buffer_facts *b = &p->buffers[i];
        if (b->first > regions || b->last < b->first) continue;
        change[b->first < 0 ? 0 : b->first] += b->bytes;
        if (b->last < regions) change[b->last + 1] -= b->bytes;
    }
    for (int32_t at = 0; at <= regions; at++) {
        sum += change[at];
        if (sum <= most) continue;
        most = sum;
        m->peak_at = at;
    }
    for (int k = 0; k < STK_MEMORY_KINDS; k++) m->peak[k] = 0;
    for (int64_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].first <= m->peak_at && p->buffers[i].last >= m->peak_at)
            m->peak[p->buffers[i].kind] += p->buffers[i].bytes;
    stk_free(change);
    return STK_OK;
}

stk_status stk_record_memory(const stk_program_facts *p, stk_report *r, stk_error *err)
{
    _Static_assert((int)STK_BUFFER_KINDS == (int)STK_MEMORY_KINDS &&
                       (int)STK_BUFFER_SCRATCH == (int)STK_MEMORY_SCRATCH,
                   "kinds of buffers are those of reports");
    r->memory.arena = p->stats.arena_bytes;
    r->memory.constants = p->stats.constant_bytes;
    r->memory.variables = p->stats.variable_bytes;
    r->memory.weights = (int64_t)p->weight_bytes;
    r->memory.optimizer = (int64_t)p->optimizer_bytes;
    r->memory.metrics = (int64_t)p->metric_bytes;
    r->memory.inputs = (int64_t)p->input_bytes;
    r->memory.in_place = (int64_t)p->in_place_bytes;
    r->memory.staged = (int64_t)p->staged_bytes;
    r->memory.pinned = (int64_t)p->pinned_bytes;
    r->memory.resident = (int64_t)p->resident_bytes;
    STK_TRY(find_peak(p, &r->memory, err));
    r->buffers = stk_arena_array(&r->arena, (size_t)p->nbuffers + 1, sizeof *r->buffers);
    if (!r->buffers) return stk_fail_memory(err, "the arena's plan", 0);
    for (int64_t i = 0; i < p->nbuffers; i++) {
        const stk_buffer_facts *b = &p->buffers[i];
        r->buffers[i] = (stk_buffer_row){.at = b->at,
                                         .bytes = b->bytes,
                                         .first = b->first,
                                         .last = b->last,
                                         .kind = b->kind,
                                         .place = stk_arena_strdup(&r->arena, b->place)};
        if (!r->buffers[i].place) return stk_fail_memory(err, "the arena's plan", 0);
    }
    if (p->nbuffers) qsort(r->buffers, (size_t)p->nbuffers, sizeof *r->buffers, larger_first);
    r->nbuffers = p->nbuffers < STK_BUFFERS_KEPT ? p->nbuffers : STK_BUFFERS_KEPT;
    return STK_OK;
}
