/* rooms.c - values that never leave their region: one part's worth per thread instead of a whole array (stk_local). */
#include "device/cpu/plan/arrange.h"

/* Does every task of the group, first to last, cut this root along with its units? */
static bool cut_everywhere(const stk_plan *p, int64_t first, int64_t last, int32_t root)
{
    int64_t units = stk_cut_of(&p->tasks[first])->units;
    for (int64_t k = first; k <= last; k++) {
        const stk_task *t = &p->tasks[k];
        for (int32_t i = 0; i < t->nargs; i++) {
            if (stk_root(p, t->arg[i]) != root) continue;
            if (p->home[t->arg[i]].offset || t->nargs > STK_MOST_LOCAL_ARGS ||
                !stk_arg_is_cut(t, i, units))
                return false;
        }
    }
    return true;
}

/* Most that take part in the region of task k. */
static int32_t threads_of(const stk_plan *p, int64_t k)
{
    int32_t group = p->tasks[k].group, threads = 1;
    while (k > 0 && p->tasks[k - 1].group == group) k--;
    for (; k < p->ntasks && p->tasks[k].group == group; k++)
        if (stk_cut_of(&p->tasks[k])->threads > threads)
            threads = stk_cut_of(&p->tasks[k])->threads;
    return threads;
}

/* A value of which there is no memory for a note stays whole. */
static void keep_slice(stk_plan *p, stk_home *h, const stk_cut *head, int32_t threads)
{
    enum { PAGE = 4096 };
    stk_slice *s = stk_arena_alloc(&p->arena, sizeof *s);
    if (!s) return;
    s->unit = h->bytes / head->units;
    s->share = stk_round_up(s->unit * stk_ceil_div(head->units, head->parts), PAGE);
    h->own = s;
    h->room = s->share * threads;
}

static void keep_slices(stk_plan *p, int64_t first, int64_t last)
{
    const stk_cut *head = stk_cut_of(&p->tasks[first]);
    int32_t group = p->tasks[first].group, threads = threads_of(p, first);
    for (int64_t k = first; k <= last; k++)
        for (int32_t i = 0; i < p->tasks[k].nargs; i++) {
            int32_t root = stk_root(p, p->tasks[k].arg[i]);
            stk_home *h = &p->home[root];
            bool inside = h->place == STK_AT_ARENA && h->first == group && h->last == group;
            if (inside && !h->own && h->bytes && h->bytes % head->units == 0 &&
                cut_everywhere(p, first, last, root))
                keep_slice(p, h, head, threads);
        }
}

/* Stretches of a group that count the same units. */
void stk_cpu_rooms(stk_device *d, stk_plan *p)
{
    (void)d;
    for (int64_t first = 0, next; first < p->ntasks; first = next) {
        const stk_cut *head = stk_cut_of(&p->tasks[first]);
        for (next = first + 1; next < p->ntasks && stk_cut_of(&p->tasks[next])->follows &&
                               !stk_cut_of(&p->tasks[next])->solo &&
                               stk_cut_of(&p->tasks[next])->units == head->units;)
            next++;
        if (next - first > 1 && head->parts > 1) keep_slices(p, first, next - 1);
    }
}
