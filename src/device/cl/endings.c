/* endings.c - a bias, a rectifier or its gradient behind a product costs a launch and a trip through memory. Where such an operation can move up to the
 * product it is done while the product is stored: two tasks of one time, one launch. */
#include "device/cl/recipes.h"

#include <string.h>

static bool is_product(const stk_task *t)
{
    const stk_gemm *g = t->params;
    if (t->kernel != STK_K_GEMM || g->accumulate || g->batch != 1 || g->ldc != g->n) return false;
    return g->k > 0 && g->m > 0 && g->n > 0 && (g->dtype == STK_F32 || g->dtype == STK_F64);
}

/* Operand i of the chain is the whole product. */
static bool is_result(const stk_plan *p, const stk_task *product, const stk_task *t, int32_t i)
{
    const stk_chain *c = t->params;
    const stk_home *a = &p->home[product->arg[2]], *b = &p->home[t->arg[i]];
    return c->input[i].access == STK_ACCESS_DENSE && a->root == b->root && a->offset == b->offset &&
           a->bytes == b->bytes;
}

/* What this chain is to the product before it. */
static stk_cl_ending ending_of(const stk_plan *p, const stk_task *product, const stk_task *t)
{
    const stk_gemm *g = product->params;
    const stk_chain *c = t->params;
    const stk_cl_ending none = {0};
    if (t->kernel != STK_K_CHAIN || c->ops != 1 || c->inputs != 2 || c->outputs != 1 ||
        c->constants || c->segments != 1 || c->count[0] != g->m * g->n ||
        c->input[0].dtype != g->dtype || c->input[1].dtype != g->dtype ||
        c->output[0].dtype != g->dtype)
        return none;
    int32_t first = c->op[0].a; /* inputs are registers 0 and 1 */
    int32_t mine = is_result(p, product, t, 0) ? 0 : 1, with = 1 - mine;
    if (!is_result(p, product, t, mine) || is_result(p, product, t, with)) return none;
    if (c->op[0].code == STK_EW_RELU_GRAD && first == mine &&
        c->input[with].access == STK_ACCESS_DENSE)
        return (stk_cl_ending){3, with};
    if (c->input[with].access != STK_ACCESS_ROW || c->dim[c->rank - 1] != g->n) return none;
    if (c->op[0].code == STK_EW_ADD) return (stk_cl_ending){1, with};
    return c->op[0].code == STK_EW_ADD_RELU ? (stk_cl_ending){2, with} : none;
}

/* May task j run right behind task k? Nobody between may touch its result, or make its operands. */
static bool can_move(const stk_plan *p, int64_t k, int64_t j)
{
    const stk_task *t = &p->tasks[j];
    int32_t out = stk_root(p, t->arg[2]);
    if (out == stk_root(p, p->tasks[k].arg[0]) || out == stk_root(p, p->tasks[k].arg[1]))
        return false;
    for (int64_t i = k + 1; i < j; i++) {
        const stk_task *other = &p->tasks[i];
        if (other->kernel < 0) return false; /* control flow: runs end there */
        for (int32_t a = 0; a < other->nargs; a++) {
            int32_t root = stk_root(p, other->arg[a]);
            if (root == out) return false;
            if (stk_is_output_arg(other, a) &&
                (root == stk_root(p, t->arg[0]) || root == stk_root(p, t->arg[1])))
                return false;
        }
    }
    return true;
}

static void move_up(stk_plan *p, int64_t j, int64_t to)
{
    stk_task moving = p->tasks[j];
    memmove(&p->tasks[to + 1], &p->tasks[to], (size_t)(j - to) * sizeof *p->tasks);
    p->tasks[to] = moving;
}

void stk_cl_find_endings(const stk_cl_device *d, stk_plan *p)
{
    enum { FAR = 6 };
    int32_t time = -1;
    (void)d;
    for (int64_t k = 0; k < p->ntasks; k++) {
        if (!is_product(&p->tasks[k])) continue;
        for (int64_t j = k + 1; j < p->ntasks && j <= k + FAR; j++) {
            stk_cl_ending e = ending_of(p, &p->tasks[k], &p->tasks[j]);
            if (!e.kind || !can_move(p, k, j)) continue;
            move_up(p, j, k + 1);
            ((stk_cl_chosen *)p->tasks[k].own)->ending = e;
            ((stk_cl_chosen *)p->tasks[k + 1].own)->ended = true;
            break;
        }
    }
    for (int64_t k = 0; k < p->ntasks; k++)
        p->tasks[k].group = ((const stk_cl_chosen *)p->tasks[k].own)->ended ? time : ++time;
    p->groups = time + 1;
}
