/* Reductions, softmax, cross entropy and norms. */
#include "device/cl/recipes.h"

#include <stdio.h>

enum { GROUP = 64, CHUNK = 256 };

/* ---- reductions ------------------------------------------------------------------------------------------ */

static void emit_lines(stk_cl_build *b, const stk_reduce_params *r, const char *result, sk_lines p)
{
    stk_cl_kernel(b, "reduce.cl", "reduce",
                  "-DSK_KIND=%d -DSK_T=%s -DSK_A=%s -DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s "
                  "-DSK_Y=%s",
                  r->kind, stk_cl_type(r->dtype), stk_cl_lane(r->dtype), stk_cl_short(r->dtype),
                  result ? result : stk_cl_short(r->dtype),
                  result ? stk_cl_lane(r->dtype) : stk_cl_type(r->dtype));
    (void)p;
}

/* The lane as an element type: partial results are kept in it. */
static int64_t lane_dtype(int64_t dtype)
{
    switch (stk_lane_of((stk_dtype)dtype)) {
    case STK_LANE_F32: return STK_F32;
    case STK_LANE_F64: return STK_F64;
    case STK_LANE_I64: return STK_I64;
    default: return STK_BOOL;
    }
}

static void emit_reduce(stk_cl_build *b, const void *params)
{
    const stk_reduce_params *r = params;
    bool arg = r->kind == STK_REDUCE_ARGMAX || r->kind == STK_REDUCE_ARGMIN;
    int64_t lane = lane_dtype(r->dtype), size = stk_cl_size(r->dtype), count = r->outer * r->inner;
    int64_t chunks = arg || r->n <= 2 * CHUNK ? 1 : stk_ceil_div(r->n, CHUNK);
    if (lane == STK_BOOL) chunks = 1;
    sk_lines p = {.outer = (int)r->outer,
                  .n = (int)r->n,
                  .inner = (int)r->inner,
                  .a = (int)chunks,
                  .b = chunks > 1 ? CHUNK : (int)r->n};
    if (count == 0) return;
    emit_lines(b, r, chunks > 1 ? stk_cl_short(lane) : NULL, p);
    stk_cl_arg(b, 0, size);
    int64_t room = chunks > 1 ? stk_cl_room(b, chunks * count * stk_cl_size(lane)) : 0;
    if (chunks > 1)
        stk_cl_room_arg(b, room, stk_cl_size(lane));
    else
        stk_cl_arg(b, 1, arg ? 8 : size);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, chunks * count, GROUP);
    while (chunks > 1) { /* [outer, chunks, inner] again */
        int64_t next = chunks <= 2 * CHUNK ? 1 : stk_ceil_div(chunks, CHUNK);
        bool last = next == 1;
        sk_lines q = {.outer = (int)r->outer,
                      .n = (int)chunks,
                      .inner = (int)r->inner,
                      .a = (int)next,
                      .b = last ? (int)chunks : CHUNK};
        int64_t to = last ? 0 : stk_cl_room(b, next * count * stk_cl_size(lane));
        stk_cl_kernel(b, "reduce.cl", "reduce",
                      "-DSK_KIND=%d -DSK_T=%s -DSK_A=%s -DSK_LOAD=sk_load_%s "
                      "-DSK_STORE=sk_store_%s -DSK_Y=%s",
                      r->kind, stk_cl_type(lane), stk_cl_lane(lane), stk_cl_short(lane),
                      stk_cl_short(last ? r->dtype : lane), stk_cl_type(last ? r->dtype : lane));
        stk_cl_room_arg(b, room, stk_cl_size(lane));
        if (last)
            stk_cl_arg(b, 1, size);
        else
            stk_cl_room_arg(b, to, stk_cl_size(lane));
        stk_cl_numbers(b, &q, sizeof q);
        stk_cl_grid(b, next * count, GROUP);
        room = to;
        chunks = next;
    }
}

static const char *refuse_reduce(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_lane(d, ((const stk_reduce_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_reduce = {
    .kernel = STK_K_REDUCE, .name = "chunks", .refuses = refuse_reduce, .emit = emit_reduce};

void stk_cl_add_parts(stk_cl_build *b, int64_t dtype, int64_t room, int32_t out, int64_t outer,
                      int64_t parts, int64_t inner)
{
    stk_reduce_params like = {.kind = STK_REDUCE_SUM, .dtype = (int32_t)dtype};
    sk_lines p = {
        .outer = (int)outer, .n = (int)parts, .inner = (int)inner, .a = 1, .b = (int)parts};
    emit_lines(b, &like, NULL, p);
    stk_cl_room_arg(b, room, stk_cl_size(dtype));
    stk_cl_arg(b, out, stk_cl_size(dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, outer * inner, GROUP);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* One item per row where caches are large or rows are short; a whole group elsewhere. */
static int32_t lanes_for(const stk_cl_build *b, int64_t n)
{
    return b->d->is_cpu || n <= 32 ? 1 : GROUP;
}

static void start_rows(stk_cl_build *b, int32_t which, const char *kernel, int64_t dtype, int64_t n,
                       const char *more)
{
    stk_cl_kernel(b, "rows.cl", kernel,
                  "-DSK_ROWS=%d -DSK_R=%s -DSK_LANES=%d -DSK_GROUP_SIZE=%d %s", which,
                  stk_cl_type(dtype), lanes_for(b, n), GROUP, more);
}

static void end_rows(stk_cl_build *b, const sk_rows *p)
{
    stk_cl_numbers(b, p, sizeof *p);
    stk_cl_grid(b, (int64_t)p->rows * lanes_for(b, p->n), GROUP);
}

static void emit_softmax_of(stk_cl_build *b, const stk_softmax_params *s, const char *kernel,
                            int32_t args)
{
    sk_rows p = {.rows = (int)s->rows, .n = (int)s->n, .a = s->log};
    if (s->rows * s->n == 0) return;
    start_rows(b, 0, kernel, s->dtype, s->n, "");
    for (int32_t i = 0; i < args; i++) stk_cl_arg(b, i, stk_cl_size(s->dtype));
    end_rows(b, &p);
}

static void emit_softmax(stk_cl_build *b, const void *params)
{
    emit_softmax_of(b, params, "softmax", 2);
}
static void emit_softmax_grad(stk_cl_build *b, const void *params)
{
    emit_softmax_of(b, params, "softmax_grad", 3);
}
static const char *refuse_softmax(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_softmax_params *)params)->dtype);
}

static void emit_xent(stk_cl_build *b, const void *params)
{
    const stk_xent_params *x = params;
    bool dense = x->label == x->dtype;
    char more[64];
    sk_rows p = {.rows = (int)x->rows, .n = (int)x->n};
    if (x->rows == 0) return;
    snprintf(more, sizeof more, "-DSK_L=%s -DSK_DENSE=%d", stk_cl_type(x->label), dense);
    start_rows(b, 1, "xent", x->dtype, x->n, more);
    stk_cl_arg(b, 0, stk_cl_size(x->dtype));
    stk_cl_arg(b, 1, stk_cl_size(x->label));
    stk_cl_arg(b, 2, stk_cl_size(x->dtype));
    stk_cl_arg(b, 3, stk_cl_size(x->dtype));
    end_rows(b, &p);
}
static const char *refuse_xent(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_xent_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_softmax = {
    .kernel = STK_K_SOFTMAX, .name = "rows", .refuses = refuse_softmax, .emit = emit_softmax};
const stk_cl_recipe stk_cl_recipe_softmax_grad = {.kernel = STK_K_SOFTMAX_GRAD,
                                                  .name = "rows",
                                                  .refuses = refuse_softmax,
                                                  .emit = emit_softmax_grad};
const stk_cl_recipe stk_cl_recipe_xent = {
    .kernel = STK_K_XENT, .name = "rows", .refuses = refuse_xent, .emit = emit_xent};

/* ---- columns --------------------------------------------------------------------------------------------- */

static sk_rows columns_of(int64_t rows, int64_t n)
{
    int64_t chunks = rows <= 2 * CHUNK ? 1 : stk_ceil_div(rows, CHUNK);
    return (sk_rows){.rows = (int)rows,
                     .n = (int)n,
                     .chunk = chunks > 1 ? CHUNK : (int)rows,
                     .chunks = (int)chunks,
                     .a = 1,
                     .b = 1,
                     .c = 1};
}

/* Two results by columns: `kernel` over chunks, then `join` over their results. The inputs are those of args[]. */
typedef struct columns {
    const char *kernel, *join, *options;
    int32_t ins, in[4], out[2];
} columns;

static void emit_columns(stk_cl_build *b, const columns *c, int64_t dtype, const sk_rows *p)
{
    int64_t item = stk_cl_size(dtype), room[2] = {0};
    if (p->n == 0 || p->rows == 0) return;
    for (int i = 0; i < 2 && p->chunks > 1; i++)
        room[i] = stk_cl_room(b, (int64_t)p->n * p->chunks * item);
    stk_cl_kernel(b, "columns.cl", c->kernel, "-DSK_R=%s %s", stk_cl_type(dtype), c->options);
    for (int32_t i = 0; i < c->ins; i++) stk_cl_arg(b, c->in[i], item);
    for (int i = 0; i < 2; i++)
        if (p->chunks > 1)
            stk_cl_room_arg(b, room[i], item);
        else
            stk_cl_arg(b, c->out[i], item);
    stk_cl_numbers(b, p, sizeof *p);
    stk_cl_grid(b, (int64_t)p->n * p->chunks, GROUP);
    if (p->chunks == 1) return;
    stk_cl_kernel(b, "columns.cl", c->join, "-DSK_R=%s %s", stk_cl_type(dtype), c->options);
    for (int i = 0; i < 2; i++) stk_cl_room_arg(b, room[i], item);
    for (int i = 0; i < 2; i++) stk_cl_arg(b, c->out[i], item);
    stk_cl_numbers(b, p, sizeof *p);
    stk_cl_grid(b, p->n, GROUP);
}

static void emit_moments(stk_cl_build *b, const void *params)
{
    const stk_moments_params *m = params;
    sk_rows p = columns_of(m->rows, m->n);
    columns c = {"moments", "join_moments", "-DSK_CENTER=1", 1, {0}, {1, 2}};
    emit_columns(b, &c, m->dtype, &p);
}

static void emit_column_sums(stk_cl_build *b, const void *params)
{
    const stk_moments_params *m = params;
    sk_rows p = columns_of(m->rows, m->n);
    columns c = {"column_sums", "join_sums", "-DSK_CENTER=1", 3, {0, 1, 2}, {3, 4}};
    emit_columns(b, &c, m->dtype, &p);
}

static const char *refuse_moments(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_moments_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_moments = {
    .kernel = STK_K_MOMENTS, .name = "chunks", .refuses = refuse_moments, .emit = emit_moments};
const stk_cl_recipe stk_cl_recipe_column_sums = {.kernel = STK_K_COLUMN_SUMS,
                                                 .name = "chunks",
                                                 .refuses = refuse_moments,
                                                 .emit = emit_column_sums};

/* ---- norms ----------------------------------------------------------------------------------------------- */

static void norm_options(const stk_row_norm_params *n, char *out, size_t size)
{
    snprintf(out, size, "-DSK_GAMMA=%d -DSK_BETA=%d -DSK_CENTER=%d", n->gamma, n->beta, n->center);
}

static void emit_row_norm(stk_cl_build *b, const void *params)
{
    const stk_row_norm_params *n = params;
    sk_rows p = {.rows = (int)n->rows, .n = (int)n->n, .eps = (float)n->eps};
    int32_t args = 1 + n->gamma + n->beta + 1 + n->center + 1;
    char more[80];
    if (n->rows * n->n == 0) return;
    norm_options(n, more, sizeof more);
    start_rows(b, 2, "row_norm", n->dtype, n->n, more);
    for (int32_t i = 0; i < args; i++) stk_cl_arg(b, i, stk_cl_size(n->dtype));
    end_rows(b, &p);
}

static void emit_row_norm_grad(stk_cl_build *b, const void *params)
{
    const stk_row_norm_params *n = params;
    sk_rows p = {.rows = (int)n->rows, .n = (int)n->n, .eps = (float)n->eps};
    int32_t mean = 2 + n->gamma, rstd = mean + n->center, dx = rstd + 1, dgamma = dx + 1;
    char more[80];
    if (n->rows * n->n == 0) return;
    norm_options(n, more, sizeof more);
    start_rows(b, 2, "row_norm_grad", n->dtype, n->n, more);
    for (int32_t i = 0; i <= dx; i++) stk_cl_arg(b, i, stk_cl_size(n->dtype));
    end_rows(b, &p);
    sk_rows q = columns_of(n->rows, n->n);
    q.c = (int)n->n; /* every row is a group */
    columns c = {"norm_sums",
                 "join_sums",
                 n->center ? "-DSK_CENTER=1" : "-DSK_CENTER=0",
                 4,
                 {0, 1, n->center ? mean : rstd, rstd},
                 {dgamma, n->center ? dgamma + 1 : dgamma}};
    emit_columns(b, &c, n->dtype, &q);
}

static const char *refuse_row_norm(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_row_norm_params *)params)->dtype);
}

static sk_group_norm group_numbers(const stk_group_norm_params *g)
{
    return (sk_group_norm){(int)g->images, (int)g->rows, (int)g->channels, (int)g->groups,
                           (float)g->eps};
}

static void emit_group_kernel(stk_cl_build *b, const stk_group_norm_params *g, const char *kernel)
{
    sk_group_norm p = group_numbers(g);
    stk_cl_kernel(b, "columns.cl", kernel, "-DSK_R=%s -DSK_CENTER=1", stk_cl_type(g->dtype));
    for (int32_t i = 0; i < 6; i++) stk_cl_arg(b, i, stk_cl_size(g->dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, g->images * g->groups, b->d->is_cpu ? 1 : 16);
}

static void emit_group_norm(stk_cl_build *b, const void *params)
{
    const stk_group_norm_params *g = params;
    if (g->images * g->rows * g->channels > 0) emit_group_kernel(b, g, "group_norm");
}

static void emit_group_norm_grad(stk_cl_build *b, const void *params)
{
    const stk_group_norm_params *g = params;
    if (g->images * g->rows * g->channels == 0) return;
    emit_group_kernel(b, g, "group_norm_grad");
    sk_rows p = columns_of(g->images * g->rows, g->channels);
    p.a = (int)g->rows;
    p.b = (int)g->groups;
    p.c = (int)(g->channels / g->groups);
    columns c = {"norm_sums", "join_sums", "-DSK_CENTER=1", 4, {0, 1, 3, 4}, {6, 7}};
    emit_columns(b, &c, g->dtype, &p);
}

static const char *refuse_group_norm(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_group_norm_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_row_norm = {
    .kernel = STK_K_ROW_NORM, .name = "rows", .refuses = refuse_row_norm, .emit = emit_row_norm};
const stk_cl_recipe stk_cl_recipe_row_norm_grad = {.kernel = STK_K_ROW_NORM_GRAD,
                                                   .name = "rows",
                                                   .refuses = refuse_row_norm,
                                                   .emit = emit_row_norm_grad};
const stk_cl_recipe stk_cl_recipe_group_norm = {.kernel = STK_K_GROUP_NORM,
                                                .name = "groups",
                                                .refuses = refuse_group_norm,
                                                .emit = emit_group_norm};
const stk_cl_recipe stk_cl_recipe_group_norm_grad = {.kernel = STK_K_GROUP_NORM_GRAD,
                                                     .name = "groups",
                                                     .refuses = refuse_group_norm,
                                                     .emit = emit_group_norm_grad};
