/* Which tasks share a parallel region: a task follows the one before it when both are cut along the same leading
 * index, so that a part's results are consumed while they are still in cache and one fork-join serves both. */
#include "device/cpu/plan/arrange.h"

#include <math.h>

/* Rough speeds that decide how work is cut. They are constants on purpose: the cut must not depend on the machine. */
static const double FLOPS_PER_NS = 40, BYTES_PER_NS = 16;
enum { MOST_PARTS = 64, PART_NS = 2500 };

static double estimate_ns(double flops, double bytes)
{
    double by_flops = flops / FLOPS_PER_NS, by_bytes = bytes / BYTES_PER_NS;
    return by_flops > by_bytes ? by_flops : by_bytes;
}

void stk_cut_problem(const stk_impl *impl, const void *params, double flops, double bytes,
                     int64_t *units, int32_t *parts)
{
    *units = impl->units ? impl->units(params) : 1;
    int64_t grain = impl->grain ? impl->grain(params) : 1;
    int64_t most = stk_min_i64(*units / (grain > 0 ? grain : 1), MOST_PARTS);
    double wanted = estimate_ns(flops, bytes) / PART_NS;
    /* A power of two: any number of threads that is one shares the parts evenly. */
    *parts = 1;
    while (*parts * 2 <= most && *parts * 2 <= wanted) *parts *= 2;
}

bool stk_arg_is_cut(const stk_task *t, int32_t i, int64_t units)
{
    if (t->kernel == STK_K_CHAIN) {
        const stk_chain *c = t->params;
        if (c->segments != 1 || t->count % units) return false;
        return stk_is_output_arg(t, i) || c->input[i].access == STK_ACCESS_DENSE;
    }
    const stk_impl *impl = stk_cut_of(t)->impl;
    return impl->aligned && i < 32 && (impl->aligned(t->params) >> i & 1u);
}

/* Do both walk over the same memory in the same order? */
static bool walk_alike(const stk_plan *p, const stk_task *a, const stk_task *b, int64_t units)
{
    for (int32_t i = 0; i < a->nargs; i++)
        for (int32_t j = 0; j < b->nargs; j++)
            if (stk_root(p, a->arg[i]) == stk_root(p, b->arg[j]) && stk_arg_is_cut(a, i, units) &&
                stk_arg_is_cut(b, j, units))
                return true;
    return false;
}

/* Sharing data is the point of a group: any for the very next task, results for one from further down. */
static bool meets(const stk_plan *p, int64_t head, int64_t next, int64_t k)
{
    const stk_task *t = &p->tasks[k];
    for (int64_t m = head; m < next; m++)
        if (k == next ? walk_alike(p, &p->tasks[m], t, stk_cut_of(&p->tasks[head])->units)
                      : stk_task_feeds(p, &p->tasks[m], t))
            return true;
    return false;
}

/* Two tasks of one group may touch the same buffer only if both have it cut alike. */
static bool gets_along(const stk_plan *p, const stk_task *a, const stk_task *b, int64_t units)
{
    for (int32_t i = 0; i < a->nargs; i++)
        for (int32_t j = 0; j < b->nargs; j++) {
            if (stk_root(p, a->arg[i]) != stk_root(p, b->arg[j])) continue;
            if (!stk_is_output_arg(a, i) && !stk_is_output_arg(b, j)) continue; /* both only read */
            if (p->home[a->arg[i]].offset || p->home[b->arg[j]].offset) return false;
            if (!stk_arg_is_cut(a, i, units) || !stk_arg_is_cut(b, j, units)) return false;
        }
    return true;
}

static bool is_apart(const stk_plan *p, int64_t from, int64_t to, int64_t k)
{
    for (int64_t m = from; m < to; m++)
        if (stk_tasks_are_ordered(p, &p->tasks[m], &p->tasks[k])) return false;
    return true;
}

/* Of a part behind another one. */
static int64_t fewest_units(const stk_impl *impl, const void *params)
{
    if (impl->least) return impl->least(params);
    return impl->grain ? impl->grain(params) : 1;
}

/* May task k join the row-wise group of the tasks from head to next - 1? Its region starts at `first`. */
static bool can_follow(const stk_plan *p, const stk_election *e, int64_t first, int64_t head,
                       int64_t next, int64_t k)
{
    const stk_task *t = &p->tasks[k];
    const stk_cut *h = stk_cut_of(&p->tasks[head]), *own = stk_cut_of(t);
    if (e->no_group || p->tasks[head].kernel < 0 || t->kernel < 0 || h->parts < 2) return false;
    if (h->owned && own->impl->finish) return false; /* its bits tell the number of parts */
    if (t->kernel == STK_K_CHAIN) {
        const stk_chain *c = t->params;
        if (c->segments != 1 || t->count % h->units) return false;
    } else if (h->units < 1 || own->units % h->units || !own->impl->aligned) {
        return false;
    }
    int64_t grain = fewest_units(own->impl, t->params);
    if (t->kernel != STK_K_CHAIN && !h->few && own->units / stk_max_i64(grain, 1) < h->parts)
        return false;
    for (int64_t m = head; m < next; m++)
        if (!gets_along(p, &p->tasks[m], t, h->units)) return false;
    return meets(p, head, next, k) && is_apart(p, first, head, k);
}

/* The task that follows next in the group [head, next), moved there past tasks that do not mind. */
static bool take_follower(stk_plan *p, const stk_election *e, int64_t first, int64_t head,
                          int64_t next)
{
    enum { WINDOW = 24 };
    int64_t end = stk_min_i64(p->ntasks, next + WINDOW);
    for (int64_t k = next; k < end; k++)
        if (can_follow(p, e, first, head, next, k) && stk_task_moves(p, k, next)) {
            stk_task_move(p, k, next);
            return true;
        }
    return false;
}

/* A chain at the head of a group counts rows like its followers: images, or all but the last axis where the first reader of its
 * results takes that, since less of it at a time stays in cache. */
static int64_t leading_units(const stk_task *t, bool rows)
{
    const stk_chain *c = t->params;
    if (t->kernel != STK_K_CHAIN || c->segments != 1 || c->rank < 2) return 0;
    return rows ? t->count / c->dim[c->rank - 1] : c->dim[0];
}

static double largest_arg(const stk_plan *p, const stk_task *t)
{
    int64_t most = 0;
    for (int32_t i = 0; i < t->nargs; i++) most = stk_max_i64(most, p->home[t->arg[i]].bytes);
    return (double)most;
}

/* The first one that reads what task k makes; -1: none is near. */
static int64_t first_reader(const stk_plan *p, int64_t k)
{
    enum { WINDOW = 24 };
    for (int64_t m = k + 1; m < p->ntasks && m <= k + WINDOW; m++)
        if (stk_task_feeds(p, &p->tasks[k], &p->tasks[m])) return m;
    return -1;
}

/* Parts of a region: no more than it takes to keep each of them in the second-level cache, since sums are joined part by part. */
static int32_t near_parts(const stk_plan *p, int64_t head, int64_t reader)
{
    enum { NEAR = 192 * 1024, ENOUGH = 8, MOST = 32 };
    double largest = largest_arg(p, &p->tasks[head]);
    int32_t wanted = ENOUGH;
    if (reader >= 0) largest = fmax(largest, largest_arg(p, &p->tasks[reader]));
    while (wanted < MOST && wanted * (double)NEAR < largest) wanted *= 2;
    return wanted;
}

/* Makes a chain the head of a region by rows or by images, if somebody follows. */
static void lead(stk_plan *p, const stk_election *e, int64_t first, int64_t head)
{
    stk_cut *h = stk_cut_of(&p->tasks[head]);
    const stk_cut before = *h;
    const int64_t reader = first_reader(p, head);
    if (h->parts < 2 || h->few) return;
    for (int rows = 1; rows >= 0; rows--) {
        const int64_t units = leading_units(&p->tasks[head], rows);
        if (units < h->parts && units < MOST_PARTS / 4) continue;
        h->units = units;
        h->parts = near_parts(p, head, reader);
        while (h->parts > units) h->parts /= 2;
        h->scale = before.units / units;
        const bool wanted =
            !rows || (reader >= 0 && can_follow(p, e, first, head, head + 1, reader));
        if (wanted && take_follower(p, e, first, head, head + 1)) return;
        *h = before;
    }
}

/* Gathers followers behind the head; where the group ends. Its region starts at `first`. */
static int64_t gather(stk_plan *p, const stk_election *e, int64_t first, int64_t head)
{
    stk_cut *h = stk_cut_of(&p->tasks[head]);
    int64_t next = head + 1;
    lead(p, e, first, head);
    while (take_follower(p, e, first, head, next)) {
        stk_task *t = &p->tasks[next];
        stk_cut *c = stk_cut_of(t);
        t->group = p->groups;
        c->follows = true;
        c->scale = (t->kernel == STK_K_CHAIN ? t->count : c->units) / h->units;
        c->units = h->units;
        c->parts = h->parts;
        c->threads = h->threads = h->threads > c->threads ? h->threads : c->threads;
        t->scratch_bytes = stk_impl_memory(c->impl, t->params, c->parts, e->threads);
        next++;
    }
    return next;
}

/* One more gradient with its update, which has nothing to do with those from `first` on, into their region. */
static bool take_gradient(stk_plan *p, const stk_election *e, int64_t first, int64_t next)
{
    enum { WINDOW = 24 };
    int64_t end = stk_min_i64(p->ntasks, next + WINDOW);
    for (int64_t k = next; k < end; k++)
        if (is_apart(p, first, next, k) && stk_task_moves(p, k, next) &&
            stk_plan_own(p, e, k, false)) {
            stk_task_move(p, k, next);
            p->tasks[next].group = p->groups;
            stk_cut_of(&p->tasks[next])->follows = true;
            stk_cut_of(&p->tasks[next])->scale = 1;
            return true;
        }
    return false;
}

/* The part of the region from `first` on that can do all of task k: the one that makes what it needs, else `part`; -1: none can. */
static int32_t part_for(const stk_plan *p, int64_t first, int64_t next, int64_t k, int32_t part)
{
    int32_t solo = 0;
    for (int64_t m = first; m < next; m++) {
        if (!stk_tasks_are_ordered(p, &p->tasks[m], &p->tasks[k])) continue;
        const int32_t other = stk_cut_of(&p->tasks[m])->solo;
        if (!other || (solo && solo != other)) return -1;
        solo = other;
    }
    return solo ? solo - 1 : part;
}

/* All of a task for one part of a region. */
static void give_to(stk_plan *p, int64_t k, int32_t part, bool follows)
{
    stk_cut *c = stk_cut_of(&p->tasks[k]);
    p->tasks[k].group = p->groups;
    c->follows = follows;
    c->scale = 1;
    c->solo = part + 1;
    c->threads = STK_CPU_OWNERS;
}

/* Something small into a region of two owners, for one of them. */
static bool take_alone(stk_plan *p, int64_t first, int64_t next)
{
    enum { WINDOW = 24 };
    int64_t end = stk_min_i64(p->ntasks, next + WINDOW);
    for (int64_t k = next; k < end; k++) {
        int32_t part = stk_plan_alone(p, first, next, k);
        if (part >= 0) part = part_for(p, first, next, k, part);
        if (part < 0 || !stk_task_moves(p, k, next)) continue;
        stk_task_move(p, k, next);
        give_to(p, next, part, true);
        return true;
    }
    return false;
}

/* One more task that works on the halves of one owner, into the region from `first` on. */
static bool take_half(stk_plan *p, int64_t first, int64_t next)
{
    enum { WINDOW = 64 };
    int64_t end = stk_min_i64(p->ntasks, next + WINDOW);
    for (int64_t k = next; k < end; k++) {
        const int32_t side = stk_plan_side(p, k);
        if (!side || part_for(p, first, next, k, side - 1) != side - 1) continue;
        if (!stk_task_moves(p, k, next)) continue;
        stk_task_move(p, k, next);
        stk_plan_keep_whole(p, next);
        give_to(p, next, side - 1, next > first);
        return true;
    }
    return false;
}

/* Halves of both owners that do not wait for each other, and what is small. Where the region ends; `head`: there is none. */
static int64_t gather_halves(stk_plan *p, const stk_election *e, int64_t head)
{
    int64_t next = head;
    if (e->no_group || e->threads < STK_CPU_OWNERS || !stk_plan_side(p, head)) return head;
    while (take_half(p, head, next)) next++;
    while (take_alone(p, head, next)) next++;
    return next;
}

void stk_plan_groups(stk_plan *p, const stk_election *e)
{
    p->groups = 0;
    stk_plan_scalars_first(p);
    if (!e->no_group) stk_plan_gradients_last(p);
    for (int64_t head = 0; head < p->ntasks;) {
        int64_t next = gather_halves(p, e, head);
        if (next > head) {
            p->groups++;
            head = next;
            continue;
        }
        p->tasks[head].group = p->groups;
        stk_cut_of(&p->tasks[head])->scale = 1;
        bool owned = stk_plan_own(p, e, head, true);
        if (!owned) stk_plan_share_rows(p, e, head);
        next = gather(p, e, head, head);
        while (owned && take_gradient(p, e, head, next)) next = gather(p, e, head, next);
        while (owned && next - head > 1 && take_alone(p, head, next)) next++;
        p->groups++;
        head = next;
    }
}
