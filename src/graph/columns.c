/* columns.c - groups that are cut by columns, and moving tasks to where they are wanted.
 *
 * A small batch has too few rows to share among threads, but its layers have columns: hidden units. A thread that
 * owns some columns of a weight computes these columns of the layer, of the gradient and of the update; the weight
 * stays in that core's cache from step to step.
 *
 *     x[10,100] . w[100,128]        columns 0..63 on one core, 64..127 on the other: product, bias, relu
 *     ...                           the loss on one core
 *     d . v^T, relu', x^T . d, w'   again columns 0..63 on one core, 64..127 on the other
 *
 * Every column is computed alike however they are shared out (device.h: columns), so the cut may depend on the
 * number of threads. */
#include "graph/elect.h"

/* ---- moving ------------------------------------------------------------------------------------------ */

bool stk_tasks_meet(const stk_plan *p, const stk_task *a, const stk_task *b)
{
    for (int32_t i = 0; i < a->nargs; i++)
        for (int32_t j = 0; j < b->nargs; j++)
            if (stk_root(p, a->arg[i]) == stk_root(p, b->arg[j])) return true;
    return false;
}

bool stk_task_feeds(const stk_plan *p, const stk_task *from, const stk_task *to)
{
    for (int32_t i = 0; i < from->nargs; i++)
        for (int32_t j = 0; j < to->nargs; j++)
            if (stk_root(p, from->arg[i]) == stk_root(p, to->arg[j]) &&
                stk_is_output_arg(from, i) && !stk_is_output_arg(to, j))
                return true;
    return false;
}

/* Does one write what the other touches? Then their order is fixed. */
static bool are_ordered(const stk_plan *p, const stk_task *a, const stk_task *b)
{
    for (int32_t i = 0; i < a->nargs; i++)
        for (int32_t j = 0; j < b->nargs; j++)
            if (stk_root(p, a->arg[i]) == stk_root(p, b->arg[j]) &&
                (stk_is_output_arg(a, i) || stk_is_output_arg(b, j)))
                return true;
    return false;
}

bool stk_task_moves(const stk_plan *p, int64_t k, int64_t to)
{
    for (int64_t m = to; m < k; m++)
        if (are_ordered(p, &p->tasks[m], &p->tasks[k])) return false;
    return true;
}

void stk_task_move(stk_plan *p, int64_t k, int64_t to)
{
    stk_task t = p->tasks[k];
    for (; k > to; k--) p->tasks[k] = p->tasks[k - 1];
    p->tasks[to] = t;
}

/* A few numbers made of what is there from the start (a learning rate from the step) would only stand between
 * tasks that belong together. */
void stk_plan_scalars_first(stk_plan *p)
{
    enum { FEW_BYTES = 64, WINDOW = 256 };
    for (int64_t k = 0, to = 0; k < p->ntasks && k < WINDOW; k++) {
        const stk_task *t = &p->tasks[k];
        bool small = t->kernel == STK_K_CHAIN;
        for (int32_t i = 0; small && i < t->nargs; i++)
            small = p->home[t->arg[i]].bytes <= FEW_BYTES;
        if (small && stk_task_moves(p, k, to)) stk_task_move(p, k, to++);
    }
}

/* ---- groups ------------------------------------------------------------------------------------------ */

enum {
    UNIT = 16,       /* columns: a cache line */
    NARROWEST = 64,  /* columns of a part */
    LEAST_NS = 3000, /* a group that is worth it */
    MOST_NS = 50000, /* a product that is shared out by rows */
};

/* Nanoseconds on one core of today. */
static double about_ns(const stk_task *t) { return t->flops / 80 + t->bytes / 40; }

static uint32_t columns_of(const stk_impl *impl, const stk_task *t, int64_t width)
{
    return impl->columns ? impl->columns(t->params, width) : 0;
}

/* The implementation to cut by columns: the elected one, or another one when that cannot: two threads are worth more
 * than what decided the election. NULL: none. */
static const stk_impl *impl_of(const stk_election *e, const stk_task *t, int64_t width)
{
    int32_t n = 0;
    if (t->kernel < 0) return NULL;
    if (columns_of(t->impl, t, width)) return t->impl;
    if (e->ref || stk_elect_is_forced((stk_kernel)t->kernel)) return NULL;
    const stk_impl *const *list = e->device->vt->impls(e->device, (stk_kernel)t->kernel, &n);
    for (int32_t i = 0; i < n; i++)
        if (columns_of(list[i], t, width) && (!list[i]->supports || list[i]->supports(t->params)))
            return list[i];
    return NULL;
}

static bool writes_columns(const stk_election *e, const stk_task *t, int64_t width)
{
    const stk_impl *impl = impl_of(e, t, width);
    if (!impl || about_ns(t) > MOST_NS || t->nargs > 32 || t->nargs != t->nin + t->nout)
        return false;
    uint32_t mask = columns_of(impl, t, width);
    for (int32_t i = t->nin; i < t->nargs; i++)
        if (!(mask >> i & 1u)) return false;
    return true;
}

/* What both touch and one writes has to be cut by columns in both. */
static bool gets_along(const stk_plan *p, const stk_election *e, const stk_task *a,
                       const stk_task *b, int64_t width)
{
    uint32_t cut_a = columns_of(impl_of(e, a, width), a, width);
    uint32_t cut_b = columns_of(impl_of(e, b, width), b, width);
    for (int32_t i = 0; i < a->nargs; i++)
        for (int32_t j = 0; j < b->nargs; j++) {
            if (stk_root(p, a->arg[i]) != stk_root(p, b->arg[j])) continue;
            if (!stk_is_output_arg(a, i) && !stk_is_output_arg(b, j)) continue;
            if (p->home[a->arg[i]].offset || p->home[b->arg[j]].offset) return false;
            if (!(cut_a >> i & 1u) || !(cut_b >> j & 1u)) return false;
        }
    return true;
}

static bool can_follow(const stk_plan *p, const stk_election *e, int64_t head, int64_t next,
                       int64_t k, int64_t width)
{
    const stk_task *t = &p->tasks[k];
    if (!writes_columns(e, t, width)) return false;
    bool meets = false;
    for (int64_t m = head; m < next; m++) {
        if (!gets_along(p, e, &p->tasks[m], t, width)) return false;
        meets = meets || stk_tasks_meet(p, &p->tasks[m], t);
    }
    return meets;
}

static int64_t gather(stk_plan *p, const stk_election *e, int64_t head, int64_t width)
{
    enum { WINDOW = 24 };
    int64_t next = head + 1;
    for (int64_t k = next; k < p->ntasks && k < next + WINDOW; k++)
        if (can_follow(p, e, head, next, k, width) && stk_task_moves(p, k, next)) {
            stk_task_move(p, k, next);
            k = next++;
        }
    return next;
}

/* The width by which a group may start here: a product that is too small to be shared out by rows. */
static int64_t width_of(const stk_election *e, const stk_task *t)
{
    if (t->kernel != STK_K_GEMM || t->parts != 1) return 0;
    int64_t width = ((const stk_gemm *)t->params)->n;
    return width % UNIT == 0 && writes_columns(e, t, width) ? width : 0;
}

int64_t stk_plan_columns(stk_plan *p, const stk_election *e, int64_t head)
{
    int64_t width = e->no_group || e->threads < 2 ? 0 : width_of(e, &p->tasks[head]);
    int32_t parts = 1;
    while (parts * 2 <= e->threads && parts * 2 * NARROWEST <= width) parts *= 2;
    if (parts == 1) return head;
    int64_t end = gather(p, e, head, width);
    double ns = 0;
    for (int64_t k = head; k < end; k++) ns += about_ns(&p->tasks[k]);
    if (ns < LEAST_NS) return head;
    bool pays = ns * (1 - 1.0 / parts) > 2 * e->fork_join_ns;
    for (int64_t k = head; k < end; k++) {
        stk_task *t = &p->tasks[k];
        t->impl = impl_of(e, t, width);
        t->columns = width;
        t->units = width / UNIT;
        t->scale = UNIT;
        t->parts = parts;
        t->threads = pays ? parts : 1;
        t->scratch_bytes = t->impl->scratch ? t->impl->scratch(t->params, parts) : 0;
        t->follows = k > head;
        t->group = p->groups;
    }
    return end;
}
