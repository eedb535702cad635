/* Elementwise operations: one row each in elementwise.def gives name, arity and result; here stand the shared
 * shape rule (numpy broadcasting) and one gradient per op. They lower to chains (fuse.c). */
#include "graph/ir/op.h"

#include <math.h>

/* ---- shape rule ----------------------------------------------------------------------------------- */

static stk_status infer_common(stk_infer *c, int first)
{
    c->out->dtype = c->in[first]->dtype;
    c->out->shape = c->in[0]->shape;
    for (int32_t i = 0; i < c->node->nin; i++) {
        if (i >= first && c->in[i]->dtype != c->out->dtype)
            return stk_infer_fail(c, STK_ERR_DTYPE,
                                  "operands need one dtype; cast one of them (stk_g_cast)");
        if (!stk_shape_broadcast(&c->out->shape, &c->in[i]->shape, &c->out->shape))
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "sizes must be equal or 1, compared from the last axis");
    }
    if (c->out->dtype == STK_STRING)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "strings have no arithmetic; parse or look them up first");
    return STK_OK;
}

static stk_status infer_number(stk_infer *c)
{
    STK_TRY(infer_common(c, 0));
    if (c->out->dtype == STK_BOOL)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "booleans are not numbers; cast to float32 or int32 first");
    return STK_OK;
}

static stk_status infer_float(stk_infer *c)
{
    STK_TRY(infer_common(c, 0));
    if (!stk_dtype_is_float(c->out->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs a float type; cast to float32 first");
    return STK_OK;
}

static stk_status infer_bits(stk_infer *c)
{
    STK_TRY(infer_common(c, 0));
    if (stk_dtype_is_float(c->out->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "needs booleans or integers; compare or cast first");
    return STK_OK;
}

static stk_status infer_compare(stk_infer *c)
{
    STK_TRY(infer_common(c, 0));
    c->out->dtype = STK_BOOL;
    return STK_OK;
}

static stk_status infer_float_test(stk_infer *c)
{
    STK_TRY(infer_float(c));
    c->out->dtype = STK_BOOL;
    return STK_OK;
}

static stk_status infer_select(stk_infer *c)
{
    if (c->in[0]->dtype != STK_BOOL)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "the condition must be bool; make it with a comparison");
    return infer_common(c, 1);
}

static stk_status infer_cast(stk_infer *c)
{
    if (c->node->nints != 1 || !stk_dtype_valid((stk_dtype)c->node->ints[0]) ||
        c->node->ints[0] == STK_STRING || c->in[0]->dtype == STK_STRING)
        return stk_infer_fail(c, STK_ERR_DTYPE, "the target must be a number type or bool");
    c->out->dtype = (stk_dtype)c->node->ints[0];
    c->out->shape = c->in[0]->shape;
    return STK_OK;
}

/* ---- short words for gradients ----------------------------------------------------------------------- */

#define G      (c->g)
#define X      (c->node.in[0])
#define A      (c->node.in[0])
#define B      (c->node.in[1])
#define C      (c->node.in[2])
#define Y      (c->node.out)
#define DY     (c->dout[0])
#define NUM(v) stk_g_scalar(G, stk_g_dtype(G, Y), (v))

#define add(a, b)  stk_g_add(G, a, b)
#define sub(a, b)  stk_g_sub(G, a, b)
#define mul(a, b)  stk_g_mul(G, a, b)
#define over(a, b) stk_g_div(G, a, b)
#define neg(a)     stk_g_neg(G, a)
#define sq(a)      stk_g_square(G, a)

/* Gradient of input i, summed down to its shape when it was broadcast. */
static void give(stk_grad *c, int32_t i, stk_val v)
{
    if (!stk_val_ok(G, c->node.in[i]) || !stk_val_ok(G, v)) return;
    stk_shape shape = stk_type_of(G, c->node.in[i])->shape;
    c->din[i] = stk_g_sum_to(G, v, &shape);
}

/* ---- one block per op: name, shape rule, flags, gradient ------------------------------------------------ */

#define OP(NAME, name, rule, opflags, ...)                                                         \
    static void grad_##name(stk_grad *c)                                                           \
    {                                                                                              \
        (void)c;                                                                                   \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    const stk_opdef stk_opdef_##name = {                                                           \
        .flags = opflags, .infer = rule, .grad = grad_##name, .ew = STK_EW_##NAME + 1};
#define FLAT(NAME, name, rule, opflags)                                                            \
    const stk_opdef stk_opdef_##name = {                                                           \
        .flags = (opflags) | STK_OPF_NO_GRAD, .infer = rule, .ew = STK_EW_##NAME + 1};

OP(NEG, neg, infer_number, 0, give(c, 0, neg(DY)))
OP(ABS, abs, infer_number, 0, give(c, 0, mul(DY, stk_g_sign(G, X))))
FLAT(SIGN, sign, infer_number, 0)
OP(SQUARE, square, infer_number, 0, give(c, 0, mul(DY, mul(X, NUM(2)))))
OP(SQRT, sqrt, infer_float, 0, give(c, 0, over(mul(DY, NUM(0.5)), Y)))
OP(RSQRT, rsqrt, infer_float, 0, give(c, 0, mul(mul(DY, NUM(-0.5)), over(Y, X))))
OP(RECIPROCAL, reciprocal, infer_float, 0, give(c, 0, neg(mul(DY, sq(Y)))))
OP(EXP, exp, infer_float, 0, give(c, 0, mul(DY, Y)))
OP(EXPM1, expm1, infer_float, 0, give(c, 0, mul(DY, add(Y, NUM(1)))))
OP(LOG, log, infer_float, 0, give(c, 0, over(DY, X)))
OP(LOG1P, log1p, infer_float, 0, give(c, 0, over(DY, add(X, NUM(1)))))
OP(SIN, sin, infer_float, 0, give(c, 0, mul(DY, stk_g_cos(G, X))))
OP(COS, cos, infer_float, 0, give(c, 0, neg(mul(DY, stk_g_sin(G, X)))))
OP(TAN, tan, infer_float, 0, give(c, 0, mul(DY, add(sq(Y), NUM(1)))))
OP(ASIN, asin, infer_float, 0, give(c, 0, mul(DY, stk_g_rsqrt(G, sub(NUM(1), sq(X))))))
OP(ACOS, acos, infer_float, 0, give(c, 0, neg(mul(DY, stk_g_rsqrt(G, sub(NUM(1), sq(X)))))))
OP(ATAN, atan, infer_float, 0, give(c, 0, over(DY, add(sq(X), NUM(1)))))
OP(SINH, sinh, infer_float, 0, give(c, 0, mul(DY, stk_g_cosh(G, X))))
OP(COSH, cosh, infer_float, 0, give(c, 0, mul(DY, stk_g_sinh(G, X))))
OP(TANH, tanh, infer_float, 0, give(c, 0, mul(DY, sub(NUM(1), sq(Y)))))
OP(ASINH, asinh, infer_float, 0, give(c, 0, mul(DY, stk_g_rsqrt(G, add(sq(X), NUM(1))))))
OP(ACOSH, acosh, infer_float, 0, give(c, 0, mul(DY, stk_g_rsqrt(G, sub(sq(X), NUM(1))))))
OP(ATANH, atanh, infer_float, 0, give(c, 0, over(DY, sub(NUM(1), sq(X)))))
OP(SIGMOID, sigmoid, infer_float, 0, give(c, 0, mul(DY, mul(Y, sub(NUM(1), Y)))))
OP(SOFTPLUS, softplus, infer_float, 0, give(c, 0, mul(DY, stk_g_sigmoid(G, X))))
OP(ERF, erf, infer_float, 0, give(c, 0, mul(DY, mul(NUM(M_2_SQRTPI), stk_g_exp(G, neg(sq(X)))))))
OP(ERFC, erfc, infer_float, 0, give(c, 0, mul(DY, mul(NUM(-M_2_SQRTPI), stk_g_exp(G, neg(sq(X)))))))
OP(GELU_ERF, gelu_erf, infer_float, 0, give(c, 0, stk_g_gelu_erf_grad(G, DY, X)))
OP(GELU_TANH, gelu_tanh, infer_float, 0, give(c, 0, stk_g_gelu_tanh_grad(G, DY, X)))
FLAT(FLOOR, floor, infer_float, 0)
FLAT(CEIL, ceil, infer_float, 0)
FLAT(ROUND, round, infer_float, 0)
FLAT(TRUNC, trunc, infer_float, 0)
/* By the result, not the operand: it is positive in the same places, and the operand need not be kept. */
OP(RELU, relu, infer_number, 0, give(c, 0, stk_g_relu_grad(G, DY, Y)))
OP(RELU6, relu6, infer_number, 0, give(c, 0, stk_g_relu6_grad(G, DY, Y)))
FLAT(ISNAN, isnan, infer_float_test, 0)
FLAT(ISINF, isinf, infer_float_test, 0)
FLAT(ISFINITE, isfinite, infer_float_test, 0)
FLAT(NOT, not, infer_bits, 0)

OP(ADD, add, infer_number, STK_OPF_COMMUTES, give(c, 0, DY); give(c, 1, DY))
OP(SUB, sub, infer_number, 0, give(c, 0, DY); give(c, 1, neg(DY)))
OP(MUL, mul, infer_number, STK_OPF_COMMUTES, give(c, 0, mul(DY, B)); give(c, 1, mul(DY, A)))
OP(DIV, div, infer_number, 0, give(c, 0, over(DY, B)); give(c, 1, neg(mul(DY, over(Y, B)))))
FLAT(FLOORDIV, floordiv, infer_number, 0)
OP(MOD, mod, infer_number, 0, give(c, 0, DY); give(c, 1, neg(mul(DY, stk_g_floordiv(G, A, B)))))
/* d/db a^b = y log a, which is 0 (not NaN) where a <= 0, as numpy users expect of x^2 at x < 0. */
static stk_val safe_log(stk_grad *c)
{
    stk_val one = NUM(1), positive = stk_g_gt(G, A, NUM(0));
    return stk_g_select(G, positive, stk_g_log(G, stk_g_select(G, positive, A, one)), NUM(0));
}
OP(POW, pow, infer_float, 0, give(c, 0, mul(DY, mul(B, stk_g_pow(G, A, sub(B, NUM(1))))));
   give(c, 1, mul(DY, mul(Y, safe_log(c)))))
/* At a tie both sides get half, so that the gradient of max(x, x) is 1. */
static void grad_of_extreme(stk_grad *c, stk_val first_wins, stk_val second_wins)
{
    stk_val half = NUM(0.5), one = NUM(1), zero = NUM(0);
    stk_val w = stk_g_select(G, first_wins, one, stk_g_select(G, second_wins, zero, half));
    give(c, 0, mul(DY, w));
    give(c, 1, mul(DY, sub(one, w)));
}
OP(MAX, max, infer_number, STK_OPF_COMMUTES,
   grad_of_extreme(c, stk_g_gt(G, A, B), stk_g_lt(G, A, B)))
OP(MIN, min, infer_number, STK_OPF_COMMUTES,
   grad_of_extreme(c, stk_g_lt(G, A, B), stk_g_gt(G, A, B)))
OP(ATAN2, atan2, infer_float, 0, stk_val d = over(DY, add(sq(A), sq(B))); give(c, 0, mul(d, B));
   give(c, 1, neg(mul(d, A))))
FLAT(AND, and, infer_bits, STK_OPF_COMMUTES)
FLAT(OR, or, infer_bits, STK_OPF_COMMUTES)
FLAT(XOR, xor, infer_bits, STK_OPF_COMMUTES)
FLAT(SHL, shl, infer_bits, 0)
FLAT(SHR, shr, infer_bits, 0)
FLAT(EQ, eq, infer_compare, STK_OPF_COMMUTES)
FLAT(NE, ne, infer_compare, STK_OPF_COMMUTES)
FLAT(LT, lt, infer_compare, 0)
FLAT(LE, le, infer_compare, 0)
FLAT(GT, gt, infer_compare, 0)
FLAT(GE, ge, infer_compare, 0)
OP(RELU_GRAD, relu_grad, infer_number, 0, give(c, 0, stk_g_relu_grad(G, DY, B)))
OP(RELU6_GRAD, relu6_grad, infer_number, 0, give(c, 0, stk_g_relu6_grad(G, DY, B)))
/* The slope's own slope: p(x) (2 - x^2) with the density p of a normal distribution. */
OP(GELU_ERF_GRAD, gelu_erf_grad, infer_float, 0, stk_val square = sq(B);
   stk_val p = mul(stk_g_exp(G, mul(square, NUM(-0.5))), NUM(0.5 * M_2_SQRTPI * M_SQRT1_2));
   give(c, 0, stk_g_gelu_erf_grad(G, DY, B));
   give(c, 1, mul(mul(DY, A), mul(p, sub(NUM(2), square)))))
/* With t = tanh(u): (1 - t^2) (u' + x u'' / 2 - x t u'^2). */
OP(GELU_TANH_GRAD, gelu_tanh_grad, infer_float, 0, const double k = M_2_SQRTPI * M_SQRT1_2;
   stk_val square = mul(sq(B), NUM(0.044715 * k)); /* (u / x - k), u' - k = 3 of it, x u'' = 6 */
   stk_val t = stk_g_tanh(G, mul(B, add(square, NUM(k))));
   stk_val slope = add(mul(square, NUM(3)), NUM(k));
   stk_val bend = sub(add(slope, mul(square, NUM(3))), mul(mul(B, t), sq(slope)));
   give(c, 0, stk_g_gelu_tanh_grad(G, DY, B));
   give(c, 1, mul(mul(DY, A), mul(sub(NUM(1), sq(t)), bend))))
OP(ADD_RELU, add_relu, infer_number, STK_OPF_COMMUTES, stk_val d = stk_g_relu_grad(G, DY, Y);
   give(c, 0, d); give(c, 1, d))
OP(FMA, fma, infer_float, 0, give(c, 0, mul(DY, B)); give(c, 1, mul(DY, A)); give(c, 2, DY))
OP(FNMA, fnma, infer_float, 0, give(c, 0, neg(mul(DY, B))); give(c, 1, neg(mul(DY, A)));
   give(c, 2, DY))
OP(LERP, lerp, infer_float, 0, stk_val to = mul(DY, C); give(c, 0, sub(DY, to)); give(c, 1, to);
   give(c, 2, mul(DY, sub(B, A))))
OP(LERP_SQUARE, lerp_square, infer_float, 0, stk_val to = mul(DY, C); give(c, 0, sub(DY, to));
   give(c, 1, mul(to, mul(B, NUM(2)))); give(c, 2, mul(DY, sub(sq(B), A))))
OP(DIV_SQRT, div_sqrt, infer_float, 0, stk_val root = stk_g_sqrt(G, B);
   stk_val da = over(DY, add(root, C)); stk_val dc = neg(mul(da, Y)); give(c, 0, da);
   give(c, 1, over(mul(dc, NUM(0.5)), root)); give(c, 2, dc))
OP(SELECT, select, infer_select, 0, stk_val zero = NUM(0); give(c, 1, stk_g_select(G, A, DY, zero));
   give(c, 2, stk_g_select(G, A, zero, DY)))
OP(CAST, cast, infer_cast, 0,
   if (stk_dtype_is_float(stk_g_dtype(G, X)) && stk_dtype_is_float(stk_g_dtype(G, Y)))
       give(c, 0, stk_g_cast(G, DY, stk_g_dtype(G, X))))

#undef add
#undef sub
#undef mul
#undef over
#undef neg
#undef sq
#undef X
#undef A
#undef B
#undef C

/* ---- builders ------------------------------------------------------------------------------------------- */

#define VALS_1                                                                                     \
    (stk_val[]) { x }
#define VALS_2                                                                                     \
    (stk_val[]) { a, b }
#define VALS_3                                                                                     \
    (stk_val[]) { a, b, c }
#define STK_EW(NAME, name, arity, result, doc)                                                     \
    stk_val stk_g_##name(stk_graph *g, STK_EW_ARGS_##arity)                                        \
    {                                                                                              \
        return stk_g_apply(g, STK_OP_##NAME, arity, VALS_##arity, NULL);                           \
    }
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#include "stoker/elementwise.def"

static bool is_narrow(stk_dtype d)
{
    char kind = stk_dtype_kind(d);
    return (kind == 'I' || kind == 'U') && stk_dtype_size(d) < 8;
}

/* Integers wrap when they are stored in fewer bits; a float that is too large shall stick to the end of the range. */
static stk_val clamp_to(stk_graph *g, stk_val x, stk_dtype dtype)
{
    double span = ldexp(1, (int)stk_dtype_size(dtype) * 8),
           low = stk_dtype_kind(dtype) == 'I' ? -span / 2 : 0;
    x = stk_g_max(g, x, stk_g_scalar(g, STK_I64, low));
    return stk_g_min(g, x, stk_g_scalar(g, STK_I64, low + span - 1));
}

stk_val stk_g_cast(stk_graph *g, stk_val x, stk_dtype dtype)
{
    if (stk_graph_ok(g) && stk_val_ok(g, x) && stk_g_dtype(g, x) == dtype) return x;
    if (stk_graph_ok(g) && stk_val_ok(g, x) && stk_dtype_is_float(stk_g_dtype(g, x)) &&
        is_narrow(dtype))
        x = clamp_to(g, stk_g_cast(g, x, STK_I64), dtype);
    int64_t to = dtype;
    return stk_g_apply(g, STK_OP_CAST, 1, &x, &(stk_attrs){.ints = &to, .nints = 1});
}
