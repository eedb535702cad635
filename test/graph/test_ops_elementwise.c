/* Elementwise operations: every row of elementwise.def against the reference and finite differences, on shapes that
 * exercise tiles, tails and broadcasting. */
#include "graph/op_case.h"

/* ---- one builder per row --------------------------------------------------------------------------- */

#define CALL_1(name) stk_g_##name(g, in[0])
#define CALL_2(name) stk_g_##name(g, in[0], in[1])
#define CALL_3(name) stk_g_##name(g, in[0], in[1], in[2])
#define STK_EW(NAME, name, arity, result, doc)                                                     \
    static stk_val build_##name(stk_graph *g, const stk_val *in, stk_dtype real)                   \
    {                                                                                              \
        (void)real;                                                                                \
        return CALL_##arity(name);                                                                 \
    }
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#include "stoker/elementwise.def"

#define ONE(lo, hi)   .nin = 1, .in = {{STK_F32, 2, {3, 7}, lo, hi}}
#define PAIR(lo, hi)  .nin = 2, .in = {{STK_F32, 2, {3, 7}, lo, hi}, {STK_F32, 1, {7}, lo, hi}}
#define INTS(t, a, b) .nin = 2, .in = {{t, 2, {3, 7}, a, b}, {t, 2, {3, 7}, a, b}}, .no_grad = 1

#define TRIPLE(lo, hi)                                                                             \
    .nin = 3,                                                                                      \
    .in = {{STK_F32, 2, {3, 7}, lo, hi}, {STK_F32, 2, {3, 7}, lo, hi}, {STK_F32, 1, {7}, lo, hi}}

/* Everything that the compiler contracts, written out. */
static stk_val build_contracts(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_val a = in[0], b = in[1], c = in[2];
    stk_val average = stk_g_add(g, a, stk_g_mul(g, stk_g_sub(g, b, a), c));
    stk_val squares = stk_g_add(g, stk_g_mul(g, c, stk_g_sub(g, stk_g_square(g, b), a)), a);
    stk_val step = stk_g_div(g, average, stk_g_add(g, stk_g_sqrt(g, squares), c));
    stk_val relu = stk_g_relu(g, stk_g_add(g, step, b));
    return stk_g_sub(g, stk_g_add(g, stk_g_mul(g, relu, b), c), stk_g_mul(g, a, b));
}

static const op_case floats[] = {
    {.name = "neg", .build = build_neg, ONE(-2, 2), .grad2 = 1},
    {.name = "abs", .build = build_abs, ONE(0.1, 2)},
    {.name = "sign", .build = build_sign, ONE(-2, 2)},
    {.name = "square", .build = build_square, ONE(-2, 2), .grad2 = 1},
    {.name = "sqrt", .build = build_sqrt, ONE(0.5, 2), .grad2 = 1},
    {.name = "rsqrt", .build = build_rsqrt, ONE(0.5, 2), .grad2 = 1},
    {.name = "reciprocal", .build = build_reciprocal, ONE(0.5, 2), .grad2 = 1},
    {.name = "exp", .build = build_exp, ONE(-2, 2), .grad2 = 1},
    {.name = "expm1", .build = build_expm1, ONE(-2, 2), .grad2 = 1},
    {.name = "log", .build = build_log, ONE(0.5, 2), .grad2 = 1},
    {.name = "log1p", .build = build_log1p, ONE(-0.5, 2), .grad2 = 1},
    {.name = "sin", .build = build_sin, ONE(-3, 3), .grad2 = 1},
    {.name = "cos", .build = build_cos, ONE(-3, 3), .grad2 = 1},
    {.name = "tan", .build = build_tan, ONE(-1, 1), .grad2 = 1},
    {.name = "asin", .build = build_asin, ONE(-0.8, 0.8), .grad2 = 1},
    {.name = "acos", .build = build_acos, ONE(-0.8, 0.8), .grad2 = 1},
    {.name = "atan", .build = build_atan, ONE(-2, 2), .grad2 = 1},
    {.name = "sinh", .build = build_sinh, ONE(-2, 2), .grad2 = 1},
    {.name = "cosh", .build = build_cosh, ONE(-2, 2), .grad2 = 1},
    {.name = "tanh", .build = build_tanh, ONE(-2, 2), .grad2 = 1},
    {.name = "asinh", .build = build_asinh, ONE(-2, 2), .grad2 = 1},
    {.name = "acosh", .build = build_acosh, ONE(1.5, 3), .grad2 = 1},
    {.name = "atanh", .build = build_atanh, ONE(-0.8, 0.8), .grad2 = 1},
    {.name = "sigmoid", .build = build_sigmoid, ONE(-3, 3), .grad2 = 1},
    {.name = "softplus", .build = build_softplus, ONE(-3, 3), .grad2 = 1},
    {.name = "erf", .build = build_erf, ONE(-2, 2), .grad2 = 1},
    {.name = "erfc", .build = build_erfc, ONE(-2, 2), .grad2 = 1},
    {.name = "gelu_erf", .build = build_gelu_erf, ONE(-4, 4), .grad2 = 1},
    {.name = "gelu_tanh", .build = build_gelu_tanh, ONE(-4, 4), .grad2 = 1},
    {.name = "floor", .build = build_floor, ONE(0.1, 0.9)},
    {.name = "ceil", .build = build_ceil, ONE(0.1, 0.9)},
    {.name = "round", .build = build_round, ONE(0.6, 1.4)},
    {.name = "trunc", .build = build_trunc, ONE(0.1, 0.9)},
    {.name = "relu", .build = build_relu, ONE(-2, 2)},
    {.name = "relu6", .build = build_relu6, ONE(-3, 9)},
    {.name = "isnan", .build = build_isnan, ONE(-2, 2), .no_grad = 1},
    {.name = "isinf", .build = build_isinf, ONE(-2, 2), .no_grad = 1},
    {.name = "isfinite", .build = build_isfinite, ONE(-2, 2), .no_grad = 1},
    {.name = "add", .build = build_add, PAIR(-2, 2), .grad2 = 1},
    {.name = "sub", .build = build_sub, PAIR(-2, 2), .grad2 = 1},
    {.name = "mul", .build = build_mul, PAIR(-2, 2), .grad2 = 1},
    {.name = "div", .build = build_div, PAIR(0.5, 2), .grad2 = 1},
    {.name = "floordiv", .build = build_floordiv, PAIR(0.5, 2), .no_grad = 1},
    {.name = "mod",
     .build = build_mod,
     .nin = 2,
     .in = {{STK_F32, 2, {3, 7}, 0.1, 0.9}, {STK_F32, 1, {7}, 1.0, 1.5}}},
    {.name = "pow", .build = build_pow, PAIR(0.5, 2), .grad2 = 1},
    {.name = "max", .build = build_max, PAIR(-2, 2)},
    {.name = "min", .build = build_min, PAIR(-2, 2)},
    {.name = "atan2", .build = build_atan2, PAIR(0.5, 2), .grad2 = 1},
    {.name = "eq", .build = build_eq, PAIR(0, 1), .no_grad = 1},
    {.name = "ne", .build = build_ne, PAIR(0, 1), .no_grad = 1},
    {.name = "lt", .build = build_lt, PAIR(0, 1), .no_grad = 1},
    {.name = "le", .build = build_le, PAIR(0, 1), .no_grad = 1},
    {.name = "gt", .build = build_gt, PAIR(0, 1), .no_grad = 1},
    {.name = "ge", .build = build_ge, PAIR(0, 1), .no_grad = 1},
    {.name = "relu_grad", .build = build_relu_grad, PAIR(-2, 2), .skip_grad_of = 2},
    {.name = "relu6_grad", .build = build_relu6_grad, PAIR(-3, 9), .skip_grad_of = 2},
    {.name = "gelu_erf_grad", .build = build_gelu_erf_grad, PAIR(-2, 2), .grad2 = 1},
    {.name = "gelu_tanh_grad", .build = build_gelu_tanh_grad, PAIR(-2, 2), .grad2 = 1},
    {.name = "add_relu", .build = build_add_relu, PAIR(-2, 2)},
    {.name = "fma", .build = build_fma, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "fnma", .build = build_fnma, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "lerp", .build = build_lerp, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "lerp_square", .build = build_lerp_square, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "div_sqrt", .build = build_div_sqrt, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "contracts", .build = build_contracts, TRIPLE(0.5, 2), .grad2 = 1},
    {.name = "select",
     .build = build_select,
     .nin = 3,
     .in = {{STK_BOOL, 2, {3, 7}, 0, 1}, {STK_F32, 1, {7}, -1, 1}, {STK_F32, 2, {3, 1}, -1, 1}},
     .grad2 = 1},
};
OP_CASE_TEST(float_rows, floats)

static const op_case integers[] = {
    {.name = "i32 add", .build = build_add, INTS(STK_I32, -9, 9)},
    {.name = "u8 add wraps", .build = build_add, INTS(STK_U8, 0, 255)},
    {.name = "i64 mul", .build = build_mul, INTS(STK_I64, -9, 9)},
    {.name = "i32 div by zero too", .build = build_div, INTS(STK_I32, -3, 3)},
    {.name = "i32 floordiv", .build = build_floordiv, INTS(STK_I32, -3, 3)},
    {.name = "i16 mod", .build = build_mod, INTS(STK_I16, -3, 3)},
    {.name = "i8 max", .build = build_max, INTS(STK_I8, -3, 3)},
    {.name = "i32 and", .build = build_and, INTS(STK_I32, 0, 255)},
    {.name = "i32 or", .build = build_or, INTS(STK_I32, 0, 255)},
    {.name = "i32 xor", .build = build_xor, INTS(STK_I32, 0, 255)},
    {.name = "i32 shl", .build = build_shl, INTS(STK_I32, 0, 7)},
    {.name = "i32 shr", .build = build_shr, INTS(STK_I32, 0, 7)},
    {.name = "i32 not",
     .build = build_not,
     .nin = 1,
     .in = {{STK_I32, 1, {9}, -9, 9}},
     .no_grad = 1},
    {.name = "bool not",
     .build = build_not,
     .nin = 1,
     .in = {{STK_BOOL, 1, {9}, 0, 1}},
     .no_grad = 1},
    {.name = "bool and", .build = build_and, INTS(STK_BOOL, 0, 1)},
    {.name = "bool xor", .build = build_xor, INTS(STK_BOOL, 0, 1)},
};
OP_CASE_TEST(integer_rows, integers)

/* ---- shapes: tiles, tails, broadcasting ----------------------------------------------------------------- */

static stk_val build_chain(stk_graph *g, const stk_val *in, stk_dtype real)
{
    stk_val h = stk_g_tanh(g, stk_g_add(g, stk_g_mul(g, in[0], in[1]), in[1]));
    return stk_g_sub(g, stk_g_mul(g, h, stk_g_scalar(g, real, 0.5)), stk_g_square(g, in[0]));
}

#define SHAPES(name_, ...)                                                                         \
    {                                                                                              \
        .name = name_, .build = build_chain, .nin = 2, .in = {__VA_ARGS__}, .tol = 1e-5,           \
        .grad_tol = 1e-4                                                                           \
    }
#define IN(...)                                                                                    \
    {                                                                                              \
        STK_F32, __VA_ARGS__, -1, 1                                                                \
    }
static const op_case shapes[] = {
    SHAPES("one element", {STK_F32, 0, {0}, -1, 1}, {STK_F32, 0, {0}, -1, 1}),
    SHAPES("empty", {STK_F32, 2, {0, 4}, -1, 1}, {STK_F32, 1, {4}, -1, 1}),
    SHAPES("63", {STK_F32, 1, {63}, -1, 1}, {STK_F32, 1, {63}, -1, 1}),
    SHAPES("64", {STK_F32, 1, {64}, -1, 1}, {STK_F32, 1, {64}, -1, 1}),
    SHAPES("65", {STK_F32, 1, {65}, -1, 1}, {STK_F32, 1, {1}, -1, 1}),
    SHAPES("1023", {STK_F32, 1, {1023}, -1, 1}, {STK_F32, 1, {1023}, -1, 1}),
    SHAPES("1025", {STK_F32, 1, {1025}, -1, 1}, {STK_F32, 1, {1025}, -1, 1}),
    SHAPES("row", {STK_F32, 2, {37, 19}, -1, 1}, {STK_F32, 1, {19}, -1, 1}),
    SHAPES("column", {STK_F32, 2, {37, 19}, -1, 1}, {STK_F32, 2, {37, 1}, -1, 1}),
    SHAPES("both", {STK_F32, 2, {37, 1}, -1, 1}, {STK_F32, 2, {1, 19}, -1, 1}),
    SHAPES("middle", {STK_F32, 3, {5, 7, 3}, -1, 1}, {STK_F32, 3, {5, 1, 3}, -1, 1}),
    SHAPES("large", {STK_F32, 2, {300, 1000}, -1, 1}, {STK_F32, 1, {1000}, -1, 1}),
};
OP_CASE_TEST(shapes_of_chains, shapes)

/* ---- half types, casts ------------------------------------------------------------------------------------ */

static stk_val build_half(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_mul(g, stk_g_exp(g, in[0]), in[0]);
}
static stk_val build_cast_chain(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_cast(
        g, stk_g_mul(g, stk_g_cast(g, in[0], STK_F32), stk_g_scalar(g, STK_F32, 1.0 / 255)),
        STK_BF16);
}
static stk_val build_to_u8(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_cast(g, in[0], STK_U8);
}
static const op_case halves[] = {
    {.name = "f16",
     .build = build_half,
     .nin = 1,
     .in = {{STK_F16, 1, {77}, -1, 1}},
     .no_grad = 1,
     .tol = 2e-3},
    {.name = "bf16",
     .build = build_half,
     .nin = 1,
     .in = {{STK_BF16, 1, {77}, -1, 1}},
     .no_grad = 1,
     .tol = 2e-2},
    {.name = "u8 to bf16",
     .build = build_cast_chain,
     .nin = 1,
     .in = {{STK_U8, 2, {9, 13}, 0, 255}},
     .no_grad = 1},
    {.name = "f32 to u8 saturates",
     .build = build_to_u8,
     .nin = 1,
     .in = {{STK_F32, 1, {99}, -300, 600}},
     .no_grad = 1},
};
OP_CASE_TEST(half_types, halves)

/* ---- mistakes ------------------------------------------------------------------------------------------------ */

TEST(mistakes_name_the_tensors)
{
    stk_error err;
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_F32, 2, (int64_t[]){2, 3}),
            b = stk_g_input(g, "b", STK_F32, 1, (int64_t[]){4});
    CHECK(stk_g_add(g, a, b) == 0);
    CHECK(stk_g_exp(g, a) == 0); /* after the first mistake nothing is built */
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "add(float32[2,3], float32[4])");
    stk_graph_release(g);
    CHECK_OK(stk_graph_new(&g, &err));
    a = stk_g_input(g, "a", STK_I32, 1, (int64_t[]){4});
    CHECK(stk_g_exp(g, a) == 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_DTYPE, "exp(int32[4]): needs a float type");
    stk_graph_release(g);
}

TEST_MAIN()
