/* EinsumDense: a product that an equation names, "abc,cd->abd", with a bias along chosen axes of the result. */
#include "layers/activation.h"
#include "layers/layer.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = 16 };

typedef struct einsum_dense {
    const char *equation, *bias_axes;
    stk_ints output_shape;
    stk_activation activation;
    const stk_object *kernel_initializer, *bias_initializer;
    const stk_object *kernel_regularizer, *bias_regularizer, *activity_regularizer;
    const stk_object *kernel_constraint, *bias_constraint;
} einsum_dense;

/* The three parts of an equation. Dots in front or behind stand for axes that both sides share. */
typedef struct terms {
    char in[LETTERS], kernel[LETTERS], out[LETTERS]; /* letters only */
    bool front, behind;
    int32_t elided;
} terms;

static bool take_part(const char **at, const char *stop, char *letters, bool *front, bool *behind)
{
    int32_t n = 0;
    *front = *behind = false;
    for (; **at && !strchr(stop, **at); ++*at) {
        if (**at == ' ') continue;
        if (**at == '.') {
            *(n ? behind : front) = true;
            continue;
        }
        if (n + 1 == LETTERS) return false;
        letters[n++] = **at;
    }
    letters[n] = 0;
    return true;
}

static bool split_equation(const char *text, terms *t)
{
    bool front, behind;
    const char *at = text;
    if (!take_part(&at, ",", t->in, &t->front, &t->behind) || *at++ != ',') return false;
    if (!take_part(&at, "-", t->kernel, &front, &behind) || front || behind) return false;
    if (at[0] != '-' || at[1] != '>') return false;
    at += 2;
    return take_part(&at, "", t->out, &front, &behind) && front == t->front &&
           behind == t->behind && !(front && behind);
}

/* Size of a letter of the result: from the option, where it is given, else from the input. 0: unknown. */
static int64_t size_of(const stk_layer_call *c, const terms *t, char letter)
{
    const einsum_dense *o = c->config;
    const char *in = strchr(t->in, letter), *out = strchr(t->out, letter);
    int32_t shift = t->front ? t->elided : 0;
    if (out) {
        /* the option leaves out the batch: the first letter, or the first of the axes that dots stand for */
        int64_t at = out - t->out - (t->front ? 0 : 1);
        if (at >= 0 && at < o->output_shape.n && o->output_shape.v[at] > 0)
            return o->output_shape.v[at];
    }
    return in ? stk_c_dim(c, 0, (int32_t)(in - t->in) + shift) : 0;
}

/* "abc,cd->abd" with dots written out: capital letters for the axes they stand for. */
static void write_out(const terms *t, char *text, size_t size)
{
    char dots[LETTERS] = "";
    for (int32_t i = 0; i < t->elided; i++) dots[i] = (char)('A' + i);
    const char *front = t->front ? dots : "", *behind = t->behind ? dots : "";
    snprintf(text, size, "%s%s%s,%s->%s%s%s", front, t->in, behind, t->kernel, front, t->out,
             behind);
}

static stk_val bias_of(stk_layer_call *c, const terms *t)
{
    const einsum_dense *o = c->config;
    int64_t shape[STK_MAX_RANK];
    int32_t n = 0;
    size_t first = strcspn(t->out, o->bias_axes);
    if (strspn(o->bias_axes, t->out) != strlen(o->bias_axes))
        return stk_c_fail(c, STK_ERR_ARGUMENT,
                          "bias_axes '%.32s' are not all in the result of '%.64s'", o->bias_axes,
                          o->equation);
    for (const char *at = t->out + first; *at && n < STK_MAX_RANK; at++)
        shape[n++] = strchr(o->bias_axes, *at) ? size_of(c, t, *at) : 1;
    for (int32_t i = 0; t->behind && i < t->elided && n < STK_MAX_RANK; i++) shape[n++] = 1;
    return stk_c_weight(c, "bias", n, shape, STK_WISH(o, bias));
}

static void call_einsum_dense(stk_layer_call *c)
{
    const einsum_dense *o = c->config;
    terms t;
    char equation[4 * LETTERS + 16];
    int64_t shape[STK_MAX_RANK];
    int32_t rank = 0;
    if (!split_equation(o->equation, &t)) {
        stk_c_fail(c, STK_ERR_FORMAT,
                   "equation '%.64s'; it takes one like 'abc,cd->abd', '...c,cd->...d'",
                   o->equation);
        return;
    }
    t.elided = stk_g_rank(c->g, c->x[0]) - (int32_t)strlen(t.in);
    if (t.elided < 0 || t.elided + 1 >= LETTERS || (t.elided && !t.front && !t.behind)) {
        stk_c_fail(c, STK_ERR_SHAPE, "an input of %d axes; the equation '%.64s' has %d",
                   stk_g_rank(c->g, c->x[0]), o->equation, (int)strlen(t.in));
        return;
    }
    for (const char *at = t.kernel; *at; at++) {
        if (rank == STK_MAX_RANK || !(shape[rank++] = size_of(c, &t, *at))) {
            stk_c_fail(
                c, STK_ERR_SHAPE,
                "the size of '%c' in '%.64s' is known neither from the input nor from output_shape",
                *at, o->equation);
            return;
        }
    }
    stk_val operands[2] = {c->x[0], stk_c_weight(c, "kernel", rank, shape, STK_WISH(o, kernel))};
    write_out(&t, equation, sizeof equation);
    stk_val y = stk_g_einsum(c->g, equation, 2, operands);
    if (o->bias_axes && *o->bias_axes) y = stk_g_add(c->g, y, bias_of(c, &t));
    y = stk_c_activate(c, &o->activation, y);
    c->y[0] = stk_c_activity(c, o->activity_regularizer, y);
}

#define ED(member, kind_, ...) STK_FIELD(einsum_dense, member, kind_, __VA_ARGS__)
static const stk_config_field einsum_dense_fields[] = {
    ED(equation, TEXT, NULL),
    ED(output_shape, INTS, NULL, .sizes = true),
    ED(activation, ACTIVATION, "linear"),
    ED(bias_axes, TEXT, "None"),
    ED(kernel_initializer, INITIALIZER, "glorot_uniform"),
    ED(bias_initializer, INITIALIZER, "zeros"),
    ED(kernel_regularizer, REGULARIZER, "None"),
    ED(bias_regularizer, REGULARIZER, "None"),
    ED(activity_regularizer, REGULARIZER, "None"),
    ED(kernel_constraint, CONSTRAINT, "None"),
    ED(bias_constraint, CONSTRAINT, "None"),
    {.name = "lora_rank", .kind = STK_FIELD_NULL, .fallback = "None", .input_only = true},
    {.name = "quantization_config", .kind = STK_FIELD_NULL, .fallback = "None"},
};
const stk_layer_def stk_layer_einsum_dense = {.keras_class = "EinsumDense",
                                              .fields =
                                                  STK_FIELDS(einsum_dense, einsum_dense_fields),
                                              .mask = STK_MASK_PASSES,
                                              .call = call_einsum_dense};
