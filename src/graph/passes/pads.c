/* pads.c - zeros that were put around images for a convolution become padding of the convolution, which reads no zeros:
 *
 *     conv(pad(x), w)              conv(x, w) with more low and high; conv_bwd_weight alike
 *     slice(conv_bwd_data(dy, w))  conv_bwd_data of the smaller image
 *
 * The second is what becomes of the gradient of the first. Builders cannot do it: someone may ask for the gradient in pad(x). */
#include "graph/ir/rewrite.h"

#include <string.h>

enum { MOST_INTS = 5 * 3 + 1 };

/* The attributes of a convolution with `low` and `high` more zeros along each spatial axis; false: they would hide whole kernels,
 * which implementations need not stand. */
static bool widen(const stk_node *conv, const stk_shape *kernel, const int64_t *low,
                  const int64_t *high, int64_t *ints)
{
    const int32_t axes = kernel->rank - 2;
    if (conv->nints > MOST_INTS) return false;
    memcpy(ints, conv->ints, (size_t)conv->nints * sizeof *ints);
    for (int32_t i = 0; i < axes; i++) {
        const int64_t reach = (kernel->dim[i] - 1) * ints[axes + i];
        ints[2 * axes + i] += low[i];
        ints[3 * axes + i] += high[i];
        if (ints[2 * axes + i] > reach || ints[3 * axes + i] > reach) return false;
    }
    return true;
}

/* Zeros along spatial axes only, none in between? */
static bool is_border(const stk_graph *g, const stk_node *pad)
{
    if (pad->op != STK_OP_PAD) return false; /* and a leaf has no inputs */
    const int32_t rank = stk_type_of(g, pad->in[0])->shape.rank;
    if (rank < 3 || rank > 5) return false;
    bool plain = !pad->nreals || pad->reals[0] == 0;
    for (int32_t i = 0; i < rank; i++) plain &= pad->ints[2 * rank + i] == 0;
    for (int32_t i = 0; i < rank; i += rank - 1)
        plain &= pad->ints[i] == 0 && pad->ints[rank + i] == 0;
    return plain;
}

static stk_val take_in(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    const stk_node *pad = stk_node_of(rw->to, in[0]);
    const stk_shape *w = old->op == STK_OP_CONV ? &stk_type_of(rw->from, old->in[1])->shape
                                                : &stk_type_of(rw->from, old->out)->shape;
    int64_t ints[MOST_INTS];
    if (!is_border(rw->to, pad) || w->rank < 3) return 0;
    if (!widen(old, w, pad->ints + 1, pad->ints + w->rank + 1, ints)) return 0;
    return stk_g_apply(rw->to, (stk_op)old->op, 2, (stk_val[]){pad->in[0], in[1]},
                       &(stk_attrs){.ints = ints, .nints = old->nints});
}

static stk_val shrink(stk_rewrite *rw, const stk_node *slice, const stk_val *in)
{
    const int32_t *uses = rw->context;
    const stk_node *back = stk_node_of(rw->to, in[0]);
    if (back->op != STK_OP_CONV_BWD_DATA || uses[slice->in[0]] != 1) return 0;
    const stk_shape image = stk_type_of(rw->to, in[0])->shape,
                    part = stk_type_of(rw->from, slice->out)->shape,
                    w = stk_type_of(rw->to, back->in[1])->shape;
    const int64_t *start = slice->ints, *step = slice->ints + 2 * image.rank;
    const stk_val operands[] = {back->in[0], back->in[1]};
    const int32_t axes = image.rank - 2;
    int64_t high[3], ints[MOST_INTS];
    for (int32_t i = 0; i < image.rank; i++)
        if (step[i] != 1 || start[i] < 0 ||
            (i % (image.rank - 1) == 0 && part.dim[i] != image.dim[i]))
            return 0;
    for (int32_t i = 0; i < axes; i++) high[i] = image.dim[i + 1] - start[i + 1] - part.dim[i + 1];
    if (!widen(back, &w, start + 1, high, ints)) return 0;
    memcpy(ints + 4 * axes + 1, part.dim + 1, (size_t)axes * sizeof *ints);
    return stk_g_apply(rw->to, STK_OP_CONV_BWD_DATA, 2, operands,
                       &(stk_attrs){.ints = ints, .nints = 5 * axes + 1});
}

static stk_val take_zeros(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    switch (old->op) {
    case STK_OP_CONV:
    case STK_OP_CONV_BWD_WEIGHT: return take_in(rw, old, in);
    case STK_OP_SLICE: return shrink(rw, old, in);
    default: return 0;
    }
}

stk_status stk_pass_pads(const stk_graph *g, stk_graph **out, stk_error *err)
{
    return stk_rewrite_counted(g, take_zeros, out, err);
}
