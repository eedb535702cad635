/* layer_costs.c - what each layer costs, and which ops are so short that starting them counts. Launches know the layer they were
 * made for; a chain of several layers counts for the first of them. */
#include "watch/record.h"

#include <stdlib.h>
#include <string.h>

static stk_layer_cost *find_place(stk_report *r, const char *place)
{
    for (int64_t i = 0; i < r->nplaces; i++)
        if (!strcmp(r->places[i].place, place)) return &r->places[i];
    stk_layer_cost *row = &r->places[r->nplaces++];
    *row = (stk_layer_cost){.place = place, .largest = ""};
    return row;
}

static int slower_first(const void *a, const void *b)
{
    const stk_layer_cost *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

/* Of one launch, in all steady steps. */
static void add_launch(stk_report *r, const stk_launch_facts *f, const stk_tally *t,
                       double *largest)
{
    double seconds = stk_tally_seconds(t), each = t->calls ? seconds / (double)t->calls : seconds;
    stk_layer_cost *row = find_place(r, f->place);
    row->launches++;
    row->calls += t->calls;
    row->seconds += seconds;
    if (f->backward) row->backward_seconds += seconds;
    if (seconds > largest[row - r->places]) {
        largest[row - r->places] = seconds;
        row->largest = f->label;
    }
    if (each >= STK_TINY_SECONDS) return;
    bool compute = false;
    double share = stk_roof_share(&r->roof, f->flops, f->bytes, each, 1, &compute);
    row->tiny_calls += t->calls;
    row->tiny_seconds += seconds;
    r->tiny.calls += (double)t->calls;
    r->tiny.seconds += seconds;
    r->tiny.ideal_seconds += (share < 1 ? share : 1) * seconds;
}

static stk_status keep_texts(stk_report *r, stk_error *err)
{
    for (int64_t i = 0; i < r->nplaces; i++) {
        stk_layer_cost *row = &r->places[i];
        row->place = stk_arena_strdup(&r->arena, row->place);
        row->largest = stk_arena_strdup(&r->arena, row->largest);
        if (!row->place || !row->largest) return stk_fail_memory(err, "places", 0);
    }
    return STK_OK;
}

stk_status stk_record_layer_costs(const stk_known_launches *known, const stk_tally *t, int64_t n,
                                  stk_report *r, stk_error *err)
{
    double *largest = stk_calloc((size_t)n + 1, sizeof *largest);
    r->places = stk_arena_array(&r->arena, (size_t)n + 1, sizeof *r->places);
    stk_status status = largest && r->places ? STK_OK : stk_fail_memory(err, "places", 0);
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        const stk_launch_facts *f = stk_known_launch(known, t[i].tag);
        if (f) add_launch(r, f, &t[i], largest);
    }
    stk_free(largest);
    if (status != STK_OK || !r->nplaces) return status;
    qsort(r->places, (size_t)r->nplaces, sizeof *r->places, slower_first);
    if (r->book_steps) {
        r->tiny.calls /= (double)r->book_steps;
        r->tiny.seconds /= (double)r->book_steps;
        r->tiny.ideal_seconds /= (double)r->book_steps;
    }
    return keep_texts(r, err);
}
