/* owners.c - small steps on two threads: weights stay with the thread that updates them.
 *
 * At small batches moving weights between cores costs more than computing with them. So each of two owners keeps the
 * upper or the lower half of a weight's rows, in every step:
 *
 *     y = x . w      matmul_parts: owner i multiplies its columns of x with its rows of w; then the two summands,
 *                    [batch, out] each, are added by whoever needs them: all that crosses from core to core
 *     dw = x' . dy   owner i computes its rows, and updates these rows of w and of the optimizer's slots at once
 *
 * Halves are whole stretches of memory on purpose. Cut by columns instead, the halves of all rows alternate, and a core
 * that reads ahead keeps taking away what the other one is about to write: measured, an update is then four times
 * slower on two cores than on one.
 *
 * The number of summands does not depend on the machine, so results have the same bits on any number of threads. */
#include "graph/plan/elect.h"
#include "graph/ir/rewrite.h"

enum {
    OWNERS = 2,
    LEAST_NS = 2000, /* of one core: less is not worth waking the other one */
    MOST_NS = 50000, /* products that are shared out by rows anyway */
    WINDOW = 64,     /* tasks to look at */
};

/* Nanoseconds on one core of today. */
static double about_ns(double flops, double bytes) { return flops / 80 + bytes / 40; }

/* ---- the pass: products with trained weights as two summands ---------------------------------------------- */

static bool is_worth_it(int64_t m, int64_t k, int64_t n)
{
    double ns = about_ns(2.0 * (double)m * (double)k * (double)n, 0);
    return k % OWNERS == 0 && m <= k && ns >= LEAST_NS && ns <= MOST_NS;
}

static stk_val split_product(stk_rewrite *rw, const stk_node *n, const stk_val *in)
{
    const bool *trained = rw->context;
    if (n->op != STK_OP_MATMUL || n->ints[0] || n->ints[1] || !trained[n->in[1]]) return 0;
    const stk_type *a = stk_type_of(rw->from, n->in[0]), *b = stk_type_of(rw->from, n->in[1]);
    if (a->dtype != STK_F32 || a->shape.rank != 2 || b->shape.rank != 2) return 0;
    if (!is_worth_it(a->shape.dim[0], a->shape.dim[1], b->shape.dim[1])) return 0;
    stk_val parts = stk_g_matmul_parts(rw->to, in[0], in[1], OWNERS), sum = 0;
    const stk_shape y = stk_type_of(rw->from, n->out)->shape;
    for (int32_t i = 0; i < OWNERS; i++) {
        stk_val part = stk_g_reshape(rw->to, stk_g_slice_axis(rw->to, parts, 0, i, 1), 2, y.dim);
        sum = i ? stk_g_add(rw->to, sum, part) : part;
    }
    return sum;
}

stk_status stk_pass_owners(const stk_graph *g, stk_graph **out, stk_error *err)
{
    bool *trained = stk_calloc((size_t)g->nvalues, sizeof *trained);
    if (!trained) return stk_fail_memory(err, "owners", (size_t)g->nvalues);
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].op == STK_OP_ASSIGN) trained[g->nodes[k].in[0]] = true;
    stk_status status = stk_rewrite_graph(g, split_product, trained, out, err);
    stk_free(trained);
    return status;
}

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

void stk_plan_gradients_last(stk_plan *p)
{
    double ns;
    for (int64_t k = p->ntasks - 1; k >= 0; k--)
        if (is_gradient(p, k, &ns)) {
            sink(p, update_of(p, k));
            sink(p, k);
        }
}

bool stk_plan_own(stk_plan *p, const stk_election *e, int64_t k, bool alone)
{
    stk_task *t = &p->tasks[k];
    double ns = ns_of(t);
    if (e->no_group || e->threads < OWNERS || t->kernel != STK_K_GEMM || t->parts != 1)
        return false;
    if (!is_gradient(p, k, &ns) && !is_in_parts(t->params)) return false;
    if (t->units < OWNERS || (alone && ns < LEAST_NS)) return false;
    t->parts = OWNERS;
    t->threads = OWNERS; /* whether that pays is tried out while the program runs (trial.c) */
    t->scratch_bytes = t->impl->scratch ? t->impl->scratch(t->params, OWNERS) : 0;
    return true;
}
