/* order.c - which tasks depend on each other, and moving them to where they are wanted. */
#include "device/cpu/plan/arrange.h"

bool stk_task_feeds(const stk_plan *p, const stk_task *from, const stk_task *to)
{
    for (int32_t i = 0; i < from->nargs; i++)
        for (int32_t j = 0; j < to->nargs; j++)
            if (stk_root(p, from->arg[i]) == stk_root(p, to->arg[j]) &&
                stk_is_output_arg(from, i) && !stk_is_output_arg(to, j))
                return true;
    return false;
}

bool stk_tasks_are_ordered(const stk_plan *p, const stk_task *a, const stk_task *b)
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
        if (stk_tasks_are_ordered(p, &p->tasks[m], &p->tasks[k])) return false;
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
