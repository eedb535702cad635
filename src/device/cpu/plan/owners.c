/* owners.c - small steps on two threads: weights stay with the thread that updates them.
 *
 * At small batches moving weights between cores costs more than computing with them. So each of two owners keeps half of the weights, in
 * every step. Where the graph could be cut in two (its halves pass), each owner has the halves of whole layers: it runs all tasks that
 * work on its own ones, and the two meet only where something is made of both (stk_plan_side). Elsewhere an owner keeps the upper or the
 * lower half of a weight's rows:
 *
 *     y = x . w      matmul_parts (the graph's summands pass makes it): owner i multiplies its columns of x with its rows of w; then the two summands,
 *                    [batch, out] each, are added by whoever needs them: all that crosses from core to core
 *     dw = x' . dy   owner i computes its rows, and updates these rows of w and of the optimizer's slots at once
 *     in between     each owner takes half of an even batch, from adding up the summands to dy, where that is worth a region
 *     small things   one owner has all of a small weight, the other one takes what can wait until then: biases, the loss
 *
 * Halves are whole stretches of memory on purpose. Cut by columns in place, the halves of all rows alternate, and a core
 * that reads ahead keeps taking away what the other one is about to write: measured, an update is then four times
 * slower on two cores than on one. So variables that are cut by columns are kept as two arrays (store.c).
 *
 * The number of summands and of halves does not depend on the machine, so results have the same bits on any number of threads. */
#include "device/cpu/plan/arrange.h"

enum {
    OWNERS = STK_CPU_OWNERS,
    LEAST_NS = 2000, /* of one core: less is not worth waking the other one */
    MOST_NS = 50000, /* products that are shared out by rows anyway */
    ROWS_NS = 800,   /* of adding up the summands: fewer rows than that stay together */
    ALONE_NS = 2000, /* of a gradient and its update: less is not worth two owners */
    WAIT_NS = 1000,  /* of other things that wait for them */
    LAUNCH_NS = 50,  /* of anything */
    WINDOW = 64,     /* tasks to look at */
};

/* Nanoseconds on one core of today. */
static double about_ns(double flops, double bytes) { return flops / 80 + bytes / 40; }

/* ---- the plan: which tasks are cut in two ------------------------------------------------------------------ */

static bool is_in_parts(const stk_gemm *g)
{
    return g->batch == OWNERS && g->batch_a == g->k && g->lda == OWNERS * g->k;
}

static bool is_update(const stk_plan *p, const stk_task *t)
{
    if (t->kernel != STK_K_CHAIN || ((const stk_chain *)t->params)->segments != 1) return false;
    for (int32_t i = t->nin; i < t->nargs; i++)
        if (p->home[stk_root(p, t->arg[i])].place != STK_AT_VARIABLE) return false;
    return true;
}

/* The update that waits for the gradient task k computes; -1: none. */
static int64_t update_of(const stk_plan *p, int64_t k)
{
    for (int64_t m = k + 1; m < p->ntasks && m <= k + WINDOW; m++)
        if (stk_task_feeds(p, &p->tasks[k], &p->tasks[m]))
            return is_update(p, &p->tasks[m]) ? m : -1;
    return -1;
}

static double ns_of(const stk_task *t) { return about_ns(t->flops, t->bytes); }

/* Is task k the gradient of a small product, with an update that waits for it? */
static bool is_gradient(const stk_plan *p, int64_t k, double *ns)
{
    const stk_task *t = &p->tasks[k];
    if (t->kernel != STK_K_GEMM || ((const stk_gemm *)t->params)->batch != 1) return false;
    int64_t update = update_of(p, k);
    *ns = ns_of(t) + (update < 0 ? 0 : ns_of(&p->tasks[update]));
    return update >= 0 && *ns <= MOST_NS;
}

/* Task k goes down past those that do not mind. */
static void sink(stk_plan *p, int64_t k)
{
    stk_task t = p->tasks[k];
    int64_t to = k;
    while (to + 1 < p->ntasks && to < k + WINDOW &&
           !stk_tasks_are_ordered(p, &t, &p->tasks[to + 1]))
        to++;
    for (int64_t m = k; m < to; m++) p->tasks[m] = p->tasks[m + 1];
    p->tasks[to] = t;
}

/* May task k, a very small one, run after the first gradient and its update? */
static bool can_wait(const stk_plan *p, int64_t k, int64_t first)
{
    const stk_task *t = &p->tasks[k];
    if (t->kernel < 0 || stk_cut_of(t)->parts != 1 || ns_of(t) > WAIT_NS) return false;
    for (int64_t m = k + 1; m <= first; m++)
        if (stk_tasks_are_ordered(p, t, &p->tasks[m])) return false;
    return !stk_tasks_are_ordered(p, t, &p->tasks[update_of(p, first)]);
}

void stk_plan_gradients_last(stk_plan *p)
{
    double ns;
    int64_t first = 0;
    for (int64_t k = p->ntasks - 1; k >= 0; k--)
        if (is_gradient(p, k, &ns)) {
            sink(p, update_of(p, k));
            sink(p, k);
        }
    while (first < p->ntasks && !(is_gradient(p, first, &ns) && ns >= LEAST_NS)) first++;
    for (int64_t k = first - 1; first < p->ntasks && k >= 0 && k > first - WINDOW; k--)
        if (can_wait(p, k, first)) {
            sink(p, k);
            first--;
        }
}

int32_t stk_plan_side(const stk_plan *p, int64_t k)
{
    const stk_task *t = &p->tasks[k];
    int32_t side = 0;
    if (t->kernel < 0) return 0;
    for (int32_t i = 0; i < t->nargs; i++) {
        const int32_t other = p->home[t->arg[i]].side;
        if (other && side && other != side) return 0;
        if (other) side = other;
    }
    return side;
}

void stk_plan_keep_whole(stk_plan *p, int64_t k)
{
    stk_task *t = &p->tasks[k];
    stk_cut *c = stk_cut_of(t);
    c->parts = 1;
    t->scratch_bytes = stk_impl_memory(c->impl, t->params, 1, 1);
}

/* The owner who has less to do in a region of halves. */
static int32_t lighter(const stk_plan *p, int64_t first, int64_t next)
{
    double ns[OWNERS] = {0};
    for (int64_t m = first; m < next; m++)
        ns[stk_cut_of(&p->tasks[m])->solo - 1] += LAUNCH_NS + ns_of(&p->tasks[m]);
    return ns[1] < ns[0];
}

/* In a region of halves whoever has less to do; else the first one has the small weights, the second one the rest. */
int32_t stk_plan_alone(const stk_plan *p, int64_t first, int64_t next, int64_t k)
{
    const stk_task *t = &p->tasks[k];
    double ns = 0;
    if (t->kernel < 0 || stk_cut_of(t)->parts != 1) return -1;
    const bool gradient = is_gradient(p, k, &ns);
    if (gradient ? ns > ALONE_NS : ns_of(t) > (is_update(p, t) ? ALONE_NS : WAIT_NS)) return -1;
    if (stk_cut_of(&p->tasks[first])->solo) return lighter(p, first, next);
    return gradient ? 0 : 1;
}

bool stk_plan_own(stk_plan *p, const stk_election *e, int64_t k, bool alone)
{
    stk_task *t = &p->tasks[k];
    stk_cut *c = stk_cut_of(t);
    double ns = ns_of(t);
    if (e->no_group || e->threads < OWNERS || t->kernel != STK_K_GEMM || c->parts != 1)
        return false;
    if (c->impl->finish) return false; /* adds up parts of its terms */
    if (!is_gradient(p, k, &ns) && !is_in_parts(t->params)) return false;
    if (c->units < OWNERS || (alone ? ns < LEAST_NS : ns <= ALONE_NS)) return false;
    c->parts = OWNERS;
    c->owned = true;
    c->threads = OWNERS; /* whether that pays is tried out while the program runs (trial.c) */
    t->scratch_bytes = stk_impl_memory(c->impl, t->params, OWNERS, e->threads);
    return true;
}

bool stk_plan_share_rows(stk_plan *p, const stk_election *e, int64_t k)
{
    stk_task *t = &p->tasks[k];
    stk_cut *c = stk_cut_of(t);
    const stk_chain *chain = t->params;
    if (e->no_group || e->threads < OWNERS || t->kernel != STK_K_CHAIN || c->parts != 1)
        return false;
    if (chain->segments != 1 || chain->rank < 2 || chain->dim[0] % OWNERS || ns_of(t) < ROWS_NS)
        return false;
    for (int64_t m = k - 1; m >= 0 && m >= k - WINDOW; m--) {
        const stk_task *from = &p->tasks[m];
        if (!stk_task_feeds(p, from, t) || from->kernel != STK_K_GEMM) continue;
        if (!is_in_parts(from->params) || stk_cut_of(from)->parts != OWNERS) continue;
        *c = (stk_cut){.impl = c->impl,
                       .units = OWNERS,
                       .scale = t->count / OWNERS,
                       .parts = OWNERS,
                       .threads = OWNERS,
                       .few = true,
                       .owned = true};
        return true;
    }
    return false;
}
