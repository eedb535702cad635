/* Image operations: resize, project, and the builders that only move pixels. The gradients of resize and project
 * are their transposes, whose gradients are they themselves. */
#include "graph/ops/image.h"

#include "base/spelling.h"

#include <string.h>

int32_t stk_image_axis(stk_graph *g, const char *who, stk_val x, int64_t channels)
{
    if (!stk_graph_ok(g)) return -1;
    const stk_type *t = stk_val_ok(g, x) ? stk_type_of(g, x) : NULL;
    if (!t) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "%s: the image is 0 (none)", who);
    } else if (t->shape.rank != 3 && t->shape.rank != 4) {
        stk_g_fail(g, STK_ERR_SHAPE,
                   "%s: %s is no image; [height,width,channels] is one, "
                   "[images,height,width,channels] are several",
                   who, STK_TYPE_TEXT(t));
    } else if (channels && t->shape.dim[t->shape.rank - 1] != channels) {
        stk_g_fail(g, STK_ERR_SHAPE, "%s: %s has not %lld channels (its last axis)", who,
                   STK_TYPE_TEXT(t), (long long)channels);
    } else {
        return t->shape.rank - 3;
    }
    return -1;
}

/* A batch of one for a single image, and back. */
static stk_val as_batch(stk_graph *g, stk_val x)
{
    return stk_g_rank(g, x) == 3 ? stk_g_expand_dims(g, x, 0) : x;
}
static stk_val as_before(stk_graph *g, stk_val y, int32_t axis)
{
    return axis == 0 && y ? stk_g_squeeze(g, y, 0) : y;
}

/* ---- resize, resize_grad: attributes kind, antialias, height, width -------------------------------- */

static bool size_fits(int64_t n) { return n >= 1 && n <= INT32_MAX / 4; }

static stk_status check_pictures(stk_infer *c, int64_t height, int64_t width)
{
    const stk_shape *x = &c->in[0]->shape;
    if (x->rank != 4)
        return stk_infer_fail(c, STK_ERR_SHAPE, "needs [images,height,width,channels]");
    if (!size_fits(height) || !size_fits(width) || !size_fits(x->dim[1]) || !size_fits(x->dim[2]))
        return stk_infer_fail(c, STK_ERR_RANGE, "to %lld x %lld; heights and widths are 1 to %d",
                              (long long)height, (long long)width, INT32_MAX / 4);
    return STK_OK;
}

static stk_status infer_resample(stk_infer *c, bool any_type)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0];
    if (n->nints != 4 || n->ints[0] < 0 || n->ints[0] >= STK_RESIZE_COUNT)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs a kind of stk_resize_kind, antialias, height and width");
    STK_TRY(check_pictures(c, n->ints[2], n->ints[3]));
    *c->out = *x;
    if (x->dtype == STK_STRING ||
        (!any_type && !stk_dtype_is_float(x->dtype) && x->dtype != STK_U8))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs floats or uint8; cast to float32 first");
    if (!any_type && x->dtype == STK_U8) c->out->dtype = STK_F32;
    c->out->shape.dim[1] = n->ints[2];
    c->out->shape.dim[2] = n->ints[3];
    return STK_OK;
}

static stk_status infer_resize(stk_infer *c)
{
    return infer_resample(c, c->node->nints == 4 && c->node->ints[0] == STK_RESIZE_NEAREST);
}

static stk_status infer_resize_grad(stk_infer *c)
{
    if (!stk_dtype_is_float(c->in[0]->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "gradients are floats");
    return infer_resample(c, false);
}

static stk_val resample(stk_graph *g, stk_op op, stk_val x, const int64_t *like, int64_t height,
                        int64_t width)
{
    int64_t ints[] = {like[0], like[1], height, width};
    return stk_g_apply(g, op, 1, &x, &(stk_attrs){.ints = ints, .nints = 4});
}

static void grad_resample(stk_grad *c, stk_op back)
{
    stk_type x = *stk_type_of(c->g, c->node.in[0]);
    if (stk_dtype_is_float(x.dtype))
        c->din[0] = resample(c->g, back, c->dout[0], c->node.ints, x.shape.dim[1], x.shape.dim[2]);
}
static void grad_resize(stk_grad *c) { grad_resample(c, STK_OP_RESIZE_GRAD); }
static void grad_resize_grad(stk_grad *c) { grad_resample(c, STK_OP_RESIZE); }

static stk_status lower_resample(stk_lower *l)
{
    const stk_type *x = stk_type_of(l->g, l->node->in[0]), *y = stk_type_of(l->g, l->node->out);
    stk_resize_params *p = stk_lower_params(l, STK_K_RESIZE, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->batch = x->shape.dim[0];
    p->in_h = x->shape.dim[1];
    p->in_w = x->shape.dim[2];
    p->channels = x->shape.dim[3];
    p->out_h = y->shape.dim[1];
    p->out_w = y->shape.dim[2];
    p->kind = (int32_t)l->node->ints[0];
    p->antialias = l->node->ints[1] != 0;
    p->transposed = l->node->op == STK_OP_RESIZE_GRAD;
    p->in_dtype = x->dtype;
    p->out_dtype = y->dtype;
    return STK_OK;
}

const stk_opdef stk_opdef_resize = {
    .flags = STK_OPF_WIDEN, .infer = infer_resize, .grad = grad_resize, .lower = lower_resample};
const stk_opdef stk_opdef_resize_grad = {.flags = STK_OPF_WIDEN,
                                         .infer = infer_resize_grad,
                                         .grad = grad_resize_grad,
                                         .lower = lower_resample};

/* The two functions by which a kind has a name. */
#define NAMED(word, type, names, COUNT)                                                            \
    const char *word##_name(type kind) { return (unsigned)kind < COUNT ? names[kind] : "?"; }      \
    bool word##_parse(const char *name, type *out)                                                 \
    {                                                                                              \
        int32_t at = name && out ? stk_word_index(names, COUNT, name) : -1;                        \
        if (at >= 0) *out = (type)at;                                                              \
        return at >= 0;                                                                            \
    }

static const char *const resize_names[] = {
#define STK_RESIZE(NAME, name, doc) #name,
#include "stoker/resize.def"
};
NAMED(stk_resize, stk_resize_kind, resize_names, STK_RESIZE_COUNT)

stk_val stk_g_image_resize(stk_graph *g, stk_val image, int64_t height, int64_t width,
                           stk_resize_kind kind, bool antialias)
{
    int32_t axis = stk_image_axis(g, "resize", image, 0);
    if (axis < 0) return 0;
    stk_dtype t = stk_g_dtype(g, image);
    if (kind != STK_RESIZE_NEAREST && t != STK_U8 && !stk_dtype_is_float(t) && t != STK_STRING)
        image = stk_g_cast(g, image, STK_F32);
    bool nothing = stk_g_dim(g, image, axis) == height && stk_g_dim(g, image, axis + 1) == width;
    if (nothing && (kind == STK_RESIZE_NEAREST ||
                    (kind <= STK_RESIZE_AREA && stk_dtype_is_float(stk_g_dtype(g, image)))))
        return image;
    int64_t like[] = {kind, antialias};
    return as_before(g, resample(g, STK_OP_RESIZE, as_batch(g, image), like, height, width), axis);
}

/* ---- project, project_grad: attributes bilinear, fill, height, width; value ---------------------------------- */

static stk_status infer_project(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0], *t = c->in[1];
    bool back = n->op == STK_OP_PROJECT_GRAD, floats = stk_dtype_is_float(x->dtype);
    if (n->nints != 4 || n->nreals != 1 || n->ints[1] < 0 || n->ints[1] >= STK_FILL_COUNT)
        return stk_infer_fail(
            c, STK_ERR_ARGUMENT,
            "needs bilinear, a fill of stk_image_fill, height, width and a value");
    STK_TRY(check_pictures(c, n->ints[2], n->ints[3]));
    if (t->shape.rank != 2 || t->shape.dim[1] != 8 ||
        (t->shape.dim[0] != 1 && t->shape.dim[0] != x->shape.dim[0]))
        return stk_infer_fail(c, STK_ERR_SHAPE, "transforms need [%lld,8] or [1,8]",
                              (long long)x->shape.dim[0]);
    if (!stk_dtype_is_float(t->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "transforms are floats; cast to float32 first");
    if (x->dtype == STK_STRING || (back && !floats) ||
        (n->ints[0] && !floats && x->dtype != STK_U8))
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "the image needs floats or uint8; cast to float32 first");
    *c->out = *x;
    if (n->ints[0] && x->dtype == STK_U8) c->out->dtype = STK_F32;
    c->out->shape.dim[1] = n->ints[2];
    c->out->shape.dim[2] = n->ints[3];
    return STK_OK;
}

static stk_val project(stk_graph *g, stk_op op, stk_val x, stk_val transforms, const int64_t *like,
                       int64_t height, int64_t width, double value)
{
    int64_t ints[] = {like[0], like[1], height, width};
    return stk_g_apply(g, op, 2, (stk_val[]){x, transforms},
                       &(stk_attrs){.ints = ints, .nints = 4, .reals = &value, .nreals = 1});
}

static void grad_project(stk_grad *c)
{
    const stk_node *n = &c->node;
    stk_type x = *stk_type_of(c->g, n->in[0]);
    stk_op back = n->op == STK_OP_PROJECT ? STK_OP_PROJECT_GRAD : STK_OP_PROJECT;
    if (stk_dtype_is_float(x.dtype))
        c->din[0] =
            project(c->g, back, c->dout[0], n->in[1], n->ints, x.shape.dim[1], x.shape.dim[2], 0);
}

static stk_status lower_project(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]), *t = stk_type_of(l->g, n->in[1]),
                   *y = stk_type_of(l->g, n->out);
    stk_project_params *p = stk_lower_params(
        l, n->op == STK_OP_PROJECT ? STK_K_PROJECT : STK_K_PROJECT_GRAD, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->batch = x->shape.dim[0];
    p->in_h = x->shape.dim[1];
    p->in_w = x->shape.dim[2];
    p->channels = x->shape.dim[3];
    p->out_h = y->shape.dim[1];
    p->out_w = y->shape.dim[2];
    p->dtype = x->dtype;
    p->out_dtype = y->dtype;
    p->transform = t->dtype;
    p->shared = t->shape.dim[0] == 1;
    p->bilinear = n->ints[0] != 0;
    p->fill = (int32_t)n->ints[1];
    p->value = n->reals[0];
    return STK_OK;
}

/* Coordinates and four products an element. */
static double cost_project(const stk_graph *g, const stk_node *n)
{
    const stk_shape *in = &stk_type_of(g, n->in[0])->shape, *out = &stk_type_of(g, n->out)->shape;
    return 8.0 * (double)stk_shape_count(n->op == STK_OP_PROJECT ? out : in);
}

const stk_opdef stk_opdef_project = {.flags = STK_OPF_WIDEN,
                                     .infer = infer_project,
                                     .grad = grad_project,
                                     .lower = lower_project,
                                     .cost = cost_project};
const stk_opdef stk_opdef_project_grad = {.flags = STK_OPF_WIDEN,
                                          .infer = infer_project,
                                          .grad = grad_project,
                                          .lower = lower_project,
                                          .cost = cost_project};

static const char *const fill_names[] = {
#define STK_IMAGE_FILL(NAME, name, doc) #name,
#include "stoker/image_fill.def"
};
NAMED(stk_image_fill, stk_image_fill, fill_names, STK_FILL_COUNT)

stk_project_options stk_project_options_defaults(void)
{
    return (stk_project_options){.bilinear = true, .fill = STK_FILL_CONSTANT};
}

stk_val stk_g_image_project(stk_graph *g, stk_val image, stk_val transforms,
                            const stk_project_options *options)
{
    stk_project_options o = options ? *options : stk_project_options_defaults();
    int32_t axis = stk_image_axis(g, "project", image, 0);
    if (axis < 0) return 0;
    stk_dtype t = stk_g_dtype(g, image);
    if (o.bilinear && t != STK_U8 && !stk_dtype_is_float(t) && t != STK_STRING)
        image = stk_g_cast(g, image, STK_F32);
    if (stk_val_ok(g, transforms) && stk_g_rank(g, transforms) == 1)
        transforms = stk_g_expand_dims(g, transforms, 0);
    int64_t height = o.height ? o.height : stk_g_dim(g, image, axis), like[] = {o.bilinear, o.fill};
    int64_t width = o.width ? o.width : stk_g_dim(g, image, axis + 1);
    return as_before(
        g, project(g, STK_OP_PROJECT, as_batch(g, image), transforms, like, height, width, o.value),
        axis);
}
