/* recipes_chain.c - an elementwise program becomes a kernel of its own: its operations as one text, its sizes as arguments. The same program
 * over other sizes is the same kernel.
 *
 *     numbers: last group of each segment | elements of each | sizes | strides of each strided input */
#include "device/cl/recipes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GROUP = 256, STRETCH = 1024, MOST_TEXT = 24 << 10, MOST_NUMBERS = 320 };

typedef struct writer {
    const stk_chain *c;
    int32_t segments; /* of this launch */
    /* Processors: an item walks over a stretch. Compilers make vectors of items only while nothing branches or divides; which segment it is
     * and which place of a row do. */
    bool walks;
    char *text;
    size_t used;
} writer;

static void add(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(writer *w, const char *format, ...)
{
    va_list list;
    if (w->used >= MOST_TEXT) return;
    va_start(list, format);
    int n = vsnprintf(w->text + w->used, MOST_TEXT - w->used, format, list);
    va_end(list);
    w->used += n > 0 ? (size_t)n : 0;
}

static const char *lane_name(int lane)
{
    static const char *const names[] = {"f32", "f64", "i64", "bool"};
    return names[lane];
}
static const char *lane_type(int lane)
{
    static const char *const types[] = {"float", "double", "sk_long", "int"};
    return types[lane];
}

static int32_t numbers_of(const stk_chain *c, int32_t segments)
{
    int32_t strided = 0;
    for (int32_t i = 0; i < c->inputs; i++) strided += c->input[i].access == STK_ACCESS_STRIDED;
    return 2 * segments + c->rank * (1 + strided);
}

/* ---- text ------------------------------------------------------------------------------------------------ */

static void add_arguments(writer *w)
{
    const stk_chain *c = w->c;
    add(w, "typedef struct { int q[%d]; } sk_numbers;\nSK_KERNEL void chain(",
        numbers_of(c, w->segments));
    for (int32_t s = 0; s < w->segments; s++) {
        for (int32_t i = 0; i < c->inputs; i++)
            add(w, "SK_IN(%s, s%dx%d), ", stk_cl_type(c->input[i].dtype), s, i);
        for (int32_t i = 0; i < c->outputs; i++)
            add(w, "SK_OUT(%s, s%dy%d), ", stk_cl_type(c->output[i].dtype), s, i);
    }
    add(w, "const sk_numbers p)\n{\n    int group = SK_GROUP, n, i;\n");
    for (int32_t i = 0; i < c->inputs; i++)
        add(w, "    SK_GLOBAL const %s *x%d;\n", stk_cl_type(c->input[i].dtype), i);
    for (int32_t i = 0; i < c->outputs; i++)
        add(w, "    SK_GLOBAL %s *y%d;\n", stk_cl_type(c->output[i].dtype), i);
}

static bool has_access(const stk_chain *c, stk_access access)
{
    for (int32_t i = 0; i < c->inputs; i++)
        if (c->input[i].access == (int32_t)access) return true;
    return false;
}

/* A group works on one segment. */
static void add_segments(writer *w)
{
    const stk_chain *c = w->c;
    for (int32_t s = 0; s < w->segments; s++) {
        if (s + 1 < w->segments)
            add(w, "    %sif (group < p.q[%d]) {\n", s ? "else " : "", s);
        else
            add(w, "    %s{\n", s ? "else " : "");
        if (s) add(w, "        group -= p.q[%d];\n", s - 1);
        add(w, "        n = p.q[%d];\n", w->segments + s);
        for (int32_t i = 0; i < c->inputs; i++)
            add(w, "        x%d = s%dx%d_block + s%dx%d_at;\n", i, s, i, s, i);
        for (int32_t i = 0; i < c->outputs; i++)
            add(w, "        y%d = s%dy%d_block + s%dy%d_at;\n", i, s, i, s, i);
        add(w, "    }\n");
    }
    if (w->walks) { /* each element is read and written by its own turn only, in place or not */
        add(w, "    int from = group * %d, to = from + %d < n ? from + %d : n;\n", STRETCH, STRETCH,
            STRETCH);
        if (has_access(c, STK_ACCESS_ROW))
            add(w, "    int wide = p.q[%d], first = from %% wide;\n    float per = 1.0f / wide;\n",
                2 * w->segments + c->rank - 1);
        add(w, "#pragma clang loop vectorize(assume_safety)\n    for (i = from; i < to; i++) {\n");
    } else
        add(w, "    i = group * %d + SK_LANE;\n    if (i >= n) return;\n", GROUP);
}

static void add_positions(writer *w)
{
    const stk_chain *c = w->c;
    int32_t at = 2 * w->segments, strides = at + c->rank;
    if (has_access(c, STK_ACCESS_ROW) && w->walks) /* vectors cannot divide; off by one at most */
        add(w, "    int turn = first + i - from, row = turn - (int)(turn * per) * wide;\n"
               "    row += row < 0 ? wide : 0;\n    row -= row >= wide ? wide : 0;\n");
    else if (has_access(c, STK_ACCESS_ROW))
        add(w, "    int row = i %% p.q[%d];\n", at + c->rank - 1);
    if (!has_access(c, STK_ACCESS_STRIDED)) return;
    add(w, "    int left = i;\n");
    for (int32_t k = c->rank - 1; k >= 0; k--)
        add(w, "    int c%d = left %% p.q[%d]; left /= p.q[%d];\n", k, at + k, at + k);
    for (int32_t i = 0, n = 0; i < c->inputs; i++) {
        if (c->input[i].access != STK_ACCESS_STRIDED) continue;
        add(w, "    int at%d = 0", i);
        for (int32_t k = 0; k < c->rank; k++)
            add(w, " + c%d * p.q[%d]", k, strides + n * c->rank + k);
        add(w, ";\n");
        n++;
    }
}

static void add_constant(writer *w, const stk_chain_const *k)
{
    double v = k->value;
    const char *f = k->lane == STK_LANE_F32 ? "f" : "";
    add(w, "    %s r%d = ", lane_type(k->lane), k->reg);
    if (k->lane == STK_LANE_I64)
        add(w, "%lldL;\n", (long long)v);
    else if (k->lane == STK_LANE_BOOL)
        add(w, "%d;\n", v != 0);
    else if (isnan(v))
        add(w, "(%s)(0.0%s / 0.0%s);\n", lane_type(k->lane), f, f);
    else if (isinf(v))
        add(w, "(%s)(%s1.0%s / 0.0%s);\n", lane_type(k->lane), v < 0 ? "-" : "", f, f);
    else
        add(w, "(%s)%a%s;\n", lane_type(k->lane), k->lane == STK_LANE_F32 ? (double)(float)v : v,
            f);
}

static void add_loads(writer *w)
{
    const stk_chain *c = w->c;
    for (int32_t i = 0; i < c->inputs; i++) {
        const stk_chain_input *in = &c->input[i];
        add(w, "    %s r%d = sk_load_%s(x%d, ", lane_type((int)stk_lane_of((stk_dtype)in->dtype)),
            i, stk_cl_short(in->dtype), i);
        switch ((stk_access)in->access) {
        case STK_ACCESS_DENSE: add(w, "i);\n"); break;
        case STK_ACCESS_SCALAR: add(w, "0);\n"); break;
        case STK_ACCESS_ROW: add(w, "row);\n"); break;
        default: add(w, "at%d);\n", i); break;
        }
    }
    for (int32_t i = 0; i < c->constants; i++) add_constant(w, &c->constant[i]);
    for (int32_t r = 0; r < c->regs; r++) {
        bool known = r < c->inputs;
        for (int32_t i = 0; i < c->constants; i++) known |= c->constant[i].reg == r;
        if (!known) add(w, "    %s r%d = 0;\n", lane_type(c->reg_lane[r]), r);
    }
}

/* Truth values compute as integers do, and keep their lowest bit. */
static void add_op(writer *w, const stk_chain_op *op)
{
    const char *name = stk_ew_name((stk_ew)op->code);
    int arity = stk_ew_arity((stk_ew)op->code);
    if (op->code == STK_EW_CAST) {
        add(w, "    r%d = sk_cast_%s_%s(r%d);\n", op->dst, lane_name(op->from), lane_name(op->lane),
            op->a);
        return;
    }
    bool truth = op->lane == STK_LANE_BOOL && op->code != STK_EW_SELECT;
    add(w, "    r%d = %ssk_%s_%s(r%d", op->dst, truth ? "(int)(" : "", name,
        truth ? "i64" : lane_name(op->lane), op->a);
    if (arity > 1) add(w, ", r%d", op->b);
    if (arity > 2) add(w, ", r%d", op->c);
    add(w, truth ? ") & 1);\n" : ");\n");
}

static void write_text(writer *w)
{
    const stk_cl_source *ops = stk_cl_text("elementwise.h");
    add(w, "%.*s\n", (int)ops->size, ops->text);
    add_arguments(w);
    add_segments(w);
    add_positions(w);
    add_loads(w);
    for (int32_t i = 0; i < w->c->ops; i++) add_op(w, &w->c->op[i]);
    for (int32_t i = 0; i < w->c->outputs; i++)
        add(w, "    sk_store_%s(y%d, i, r%d);\n", stk_cl_short(w->c->output[i].dtype), i,
            w->c->output[i].reg);
    add(w, w->walks ? "    }\n}\n" : "}\n");
}

/* ---- launches -------------------------------------------------------------------------------------------- */

/* Returns the number of groups. */
static int64_t fill_numbers(const stk_chain *c, int32_t first, int32_t segments, int64_t each,
                            int32_t *q)
{
    int64_t groups = 0;
    int32_t at = 2 * segments, n = 0;
    for (int32_t s = 0; s < segments; s++) {
        groups += stk_ceil_div(c->count[first + s], each);
        q[s] = (int32_t)groups;
        q[segments + s] = (int32_t)c->count[first + s];
    }
    for (int32_t k = 0; k < c->rank; k++) q[at + k] = (int32_t)stk_max_i64(c->dim[k], 1);
    for (int32_t i = 0; i < c->inputs; i++) {
        if (c->input[i].access != STK_ACCESS_STRIDED) continue;
        for (int32_t k = 0; k < c->rank; k++)
            q[at + c->rank + n * c->rank + k] = (int32_t)c->input[i].stride[k];
        n++;
    }
    return groups;
}

static void emit_part(stk_cl_build *b, const stk_chain *c, int32_t first, int32_t segments)
{
    int32_t q[MOST_NUMBERS] = {0}, per = c->inputs + c->outputs;
    writer w = {.c = c,
                .segments = segments,
                .walks = b->d->is_cpu && (segments > 1 || has_access(c, STK_ACCESS_ROW)),
                .text = stk_malloc(MOST_TEXT)};
    if (!w.text) {
        stk_cl_give_up(b, stk_fail_memory(b->err, "a chain", MOST_TEXT));
        return;
    }
    write_text(&w);
    int64_t groups = fill_numbers(c, first, segments, w.walks ? STRETCH : GROUP, q);
    if (w.used >= MOST_TEXT) {
        stk_cl_give_up(b, stk_fail(b->err, STK_ERR_INTERNAL, "a chain is too long; please report"));
    } else if (groups) {
        stk_cl_source source = {"an elementwise chain", w.text, w.used};
        stk_cl_kernel_of(b, &source, "chain", "");
        for (int32_t s = 0; s < segments; s++)
            for (int32_t i = 0; i < per; i++) {
                int32_t dtype = i < c->inputs ? c->input[i].dtype : c->output[i - c->inputs].dtype;
                stk_cl_arg(b, (first + s) * per + i, stk_cl_size(dtype));
            }
        stk_cl_numbers(b, q, (size_t)numbers_of(c, segments) * sizeof *q);
        stk_cl_groups(b, groups, 1, 1, w.walks ? 1 : GROUP);
    }
    stk_free(w.text);
}

/* As many segments in one launch as arguments allow. */
static void emit_chain(stk_cl_build *b, const void *params)
{
    const stk_chain *c = params;
    int32_t per = c->inputs + c->outputs, most = 1;
    int64_t limit = stk_min_i64((int64_t)b->d->parameter_limit, 4096);
    if (!b->loading) return;
    while (most < c->segments && (most + 1) * per <= STK_CL_ARGS &&
           (most + 1) * per * 16 + numbers_of(c, most + 1) * 4 <= limit &&
           numbers_of(c, most + 1) <= MOST_NUMBERS)
        most++;
    for (int32_t s = 0; s < c->segments; s += most)
        emit_part(b, c, s, (int32_t)stk_min_i64(most, c->segments - s));
}

static const char *refuse_chain(const stk_cl_device *d, const void *params)
{
    const stk_chain *c = params;
    const char *why = NULL;
    for (int32_t i = 0; i < c->inputs && !why; i++) why = stk_cl_refuse_lane(d, c->input[i].dtype);
    for (int32_t i = 0; i < c->outputs && !why; i++)
        why = stk_cl_refuse_lane(d, c->output[i].dtype);
    return why;
}

const stk_cl_recipe stk_cl_recipe_chain = {
    .kernel = STK_K_CHAIN, .name = "text", .refuses = refuse_chain, .emit = emit_chain};
