/* Shape operations, reductions and matrix products: values, gradients, edges, mistakes. */
#include "graph/ir/op.h"
#include "graph/op_case.h"

#define BUILD(name, ...)                                                                           \
    static stk_val build_##name(stk_graph *g, const stk_val *in, stk_dtype real)                   \
    {                                                                                              \
        (void)real;                                                                                \
        return __VA_ARGS__;                                                                        \
    }
#define L(...)  ((int64_t[]){__VA_ARGS__})
#define AX(...) ((int32_t[]){__VA_ARGS__})
#define X(...)  .nin = 1, .in = {{STK_F32, __VA_ARGS__, -1, 1}}
#define D(...)                                                                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- shape ------------------------------------------------------------------------------------------ */
BUILD(reshape, stk_g_reshape(g, in[0], 2, L(3, -1)))
BUILD(transpose, stk_g_transpose(g, in[0], NULL))
BUILD(transpose3, stk_g_transpose(g, in[0], AX(2, 0, 1)))
BUILD(broadcast, stk_g_broadcast(g, in[0], 3, L(4, 3, 5)))
BUILD(slice, stk_g_slice(g, in[0], L(1, 0), L(2, 3), L(1, 2)))
BUILD(slice_back, stk_g_slice(g, in[0], L(3, 4), L(2, 3), L(-2, -1)))
BUILD(slice_none, stk_g_slice(g, in[0], L(0, 0), L(0, 5), NULL))
BUILD(slice_rows, stk_g_slice(g, in[0], L(1, 0), L(2, 5), NULL))
BUILD(reverse, stk_g_reverse(g, in[0], -1))
BUILD(pad, stk_g_pad(g, in[0], L(1, 0), L(2, 3), 0.25))
BUILD(concat, stk_g_concat(g, 2, in, 1))
BUILD(concat0, stk_g_concat(g, 2, in, 0))
BUILD(stack, stk_g_stack(g, 2, in, 1))
BUILD(tile, stk_g_tile(g, in[0], L(2, 3)))
BUILD(iota, stk_g_mul(g, in[0], stk_g_iota(g, real, 2, L(4, 5), 1)))
static stk_val build_split(stk_graph *g, const stk_val *in, stk_dtype real)
{
    stk_val part[3];
    (void)real;
    stk_g_split(g, in[0], 1, 3, part);
    return stk_g_add(g, stk_g_mul(g, part[0], part[2]), part[1]);
}

static const op_case moves[] = {
    {.name = "reshape", .build = build_reshape, X(2, D(6, 4)), .grad2 = 1},
    {.name = "transpose", .build = build_transpose, X(2, D(5, 7)), .grad2 = 1},
    {.name = "transpose large", .build = build_transpose, X(2, D(130, 67))},
    {.name = "transpose3", .build = build_transpose3, X(3, D(2, 3, 5))},
    {.name = "broadcast", .build = build_broadcast, X(2, D(3, 1))},
    {.name = "slice", .build = build_slice, X(2, D(4, 5)), .grad2 = 1},
    {.name = "slice backwards", .build = build_slice_back, X(2, D(4, 5))},
    {.name = "slice of nothing", .build = build_slice_none, X(2, D(4, 5))},
    {.name = "slice of rows is an alias", .build = build_slice_rows, X(2, D(4, 5))},
    {.name = "reverse", .build = build_reverse, X(2, D(4, 5))},
    {.name = "pad", .build = build_pad, X(2, D(4, 5)), .grad2 = 1},
    {.name = "concat",
     .build = build_concat,
     .nin = 2,
     .in = {{STK_F32, 2, D(3, 2), -1, 1}, {STK_F32, 2, D(3, 5), -1, 1}}},
    {.name = "concat rows",
     .build = build_concat0,
     .nin = 2,
     .in = {{STK_F32, 2, D(3, 2), -1, 1}, {STK_F32, 2, D(1, 2), -1, 1}}},
    {.name = "stack",
     .build = build_stack,
     .nin = 2,
     .in = {{STK_F32, 2, D(3, 2), -1, 1}, {STK_F32, 2, D(3, 2), -1, 1}}},
    {.name = "tile", .build = build_tile, X(2, D(3, 2))},
    {.name = "split", .build = build_split, X(2, D(3, 6))},
    {.name = "iota", .build = build_iota, X(2, D(4, 5))},
};
OP_CASE_TEST(moves_of_elements, moves)

/* ---- reductions ---------------------------------------------------------------------------------------- */
BUILD(sum_all, stk_g_sum_all(g, in[0]))
BUILD(sum_first, stk_g_sum(g, in[0], 1, AX(0), false))
BUILD(sum_last, stk_g_sum(g, in[0], 1, AX(-1), true))
BUILD(sum_apart, stk_g_sum(g, in[0], 2, AX(0, 2), true))
BUILD(sum_middle, stk_g_sum(g, in[0], 1, AX(1), false))
BUILD(mean, stk_g_mean(g, in[0], 1, AX(1), false))
BUILD(prod, stk_g_reduce_prod(g, in[0], 1, AX(1), false))
BUILD(rmax, stk_g_reduce_max(g, in[0], 1, AX(1), false))
BUILD(rmin, stk_g_reduce_min(g, in[0], 2, AX(0, 1), false))
BUILD(argmax, stk_g_argmax(g, in[0], 1))
BUILD(argmin, stk_g_argmin(g, in[0], 0))
BUILD(lse, stk_g_logsumexp(g, in[0], 1, false))
BUILD(any, stk_g_any(g, stk_g_gt(g, in[0], stk_g_scalar(g, real, 0.9)), 1, AX(1), false))
BUILD(all, stk_g_all(g, stk_g_lt(g, in[0], stk_g_scalar(g, real, 0.9)), 1, AX(0), false))

static const op_case reductions[] = {
    {.name = "sum of all", .build = build_sum_all, X(2, D(17, 31)), .grad2 = 1},
    {.name = "sum of nothing", .build = build_sum_all, X(2, D(0, 31))},
    {.name = "sum of much",
     .build = build_sum_all,
     X(2, D(700, 1001)),
     .tol = 1e-4,
     .grad_tol = 1e-4},
    {.name = "column sums", .build = build_sum_first, X(2, D(33, 17))},
    {.name = "column sums, wide", .build = build_sum_first, X(2, D(64, 2000))},
    {.name = "row sums", .build = build_sum_last, X(2, D(33, 17))},
    {.name = "sums over two axes apart", .build = build_sum_apart, X(3, D(5, 6, 7))},
    {.name = "middle sums", .build = build_sum_middle, X(3, D(5, 6, 7))},
    {.name = "mean", .build = build_mean, X(2, D(5, 9)), .grad2 = 1},
    {.name = "prod",
     .build = build_prod,
     .nin = 1,
     .in = {{STK_F32, 2, D(5, 4), 0.5, 1.5}},
     .grad2 = 1},
    {.name = "max", .build = build_rmax, X(2, D(5, 9))},
    {.name = "min", .build = build_rmin, X(3, D(5, 9, 2))},
    {.name = "argmax", .build = build_argmax, X(2, D(5, 9)), .no_grad = 1},
    {.name = "argmin", .build = build_argmin, X(2, D(5, 9)), .no_grad = 1},
    {.name = "logsumexp",
     .build = build_lse,
     .nin = 1,
     .in = {{STK_F32, 2, D(5, 9), -3, 3}},
     .grad2 = 1},
    {.name = "any", .build = build_any, X(2, D(5, 9)), .no_grad = 1},
    {.name = "all", .build = build_all, X(2, D(5, 9)), .no_grad = 1},
};
OP_CASE_TEST(reductions_of_all_kinds, reductions)

/* ---- matmul ------------------------------------------------------------------------------------------------ */
BUILD(matmul, stk_g_matmul(g, in[0], in[1]))
BUILD(matmul_parts, stk_g_matmul_parts(g, in[0], in[1], 3))
BUILD(matmul_tn, stk_g_matmul_t(g, in[0], in[1], true, false))
BUILD(matmul_nt, stk_g_matmul_t(g, in[0], in[1], false, true))
BUILD(matmul_tt, stk_g_matmul_t(g, in[0], in[1], true, true))
static stk_val build_dense(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_relu(g, stk_g_add(g, stk_g_matmul(g, in[0], in[1]), in[2]));
}

#define TWO(r1, d1, r2, d2)                                                                        \
    .nin = 2, .in = {{STK_F32, r1, d1, -1, 1}, {STK_F32, r2, d2, -1, 1}}, .tol = 1e-4
static const op_case products[] = {
    {.name = "1x1", .build = build_matmul, TWO(2, D(1, 1), 2, D(1, 1)), .grad2 = 1},
    {.name = "3x5x7", .build = build_matmul, TWO(2, D(3, 5), 2, D(5, 7)), .grad2 = 1},
    {.name = "in parts", .build = build_matmul_parts, TWO(2, D(5, 12), 2, D(12, 7)), .grad2 = 1},
    {.name = "parts of zero", .build = build_matmul_parts, TWO(2, D(5, 0), 2, D(0, 7))},
    {.name = "k is zero", .build = build_matmul, TWO(2, D(3, 0), 2, D(0, 7))},
    {.name = "m is zero", .build = build_matmul, TWO(2, D(0, 5), 2, D(5, 7))},
    {.name = "column", .build = build_matmul, TWO(2, D(33, 17), 2, D(17, 1))},
    {.name = "outer", .build = build_matmul, TWO(2, D(33, 1), 2, D(1, 17))},
    {.name = "tn", .build = build_matmul_tn, TWO(2, D(5, 3), 2, D(5, 7)), .grad2 = 1},
    {.name = "nt", .build = build_matmul_nt, TWO(2, D(3, 5), 2, D(7, 5)), .grad2 = 1},
    {.name = "tt", .build = build_matmul_tt, TWO(2, D(5, 3), 2, D(7, 5))},
    {.name = "64+1", .build = build_matmul, TWO(2, D(65, 63), 2, D(63, 65))},
    {.name = "batched", .build = build_matmul, TWO(3, D(4, 3, 5), 3, D(4, 5, 2))},
    {.name = "shared right", .build = build_matmul, TWO(3, D(4, 3, 5), 2, D(5, 2))},
    {.name = "shared left", .build = build_matmul, TWO(2, D(3, 5), 3, D(4, 5, 2))},
    {.name = "spread batches", .build = build_matmul, TWO(4, D(2, 1, 3, 5), 4, D(2, 4, 5, 2))},
    {.name = "batched nt", .build = build_matmul_nt, TWO(3, D(4, 3, 5), 3, D(4, 2, 5))},
    {.name = "large", .build = build_matmul, TWO(2, D(200, 150), 2, D(150, 170)), .grad_tol = 1e-4},
    {.name = "dense relu",
     .build = build_dense,
     .nin = 3,
     .tol = 1e-4,
     .grad_tol = 1e-4,
     .in = {{STK_F32, 2, D(257, 31), -1, 1},
            {STK_F32, 2, D(31, 65), -1, 1},
            {STK_F32, 1, D(65), -1, 1}}},
};
OP_CASE_TEST(matrix_products, products)

static const op_case half_products[] = {
    {.name = "f16",
     .build = build_matmul,
     .nin = 2,
     .in = {{STK_F16, 2, D(9, 31), -1, 1}, {STK_F16, 2, D(31, 5), -1, 1}},
     .no_grad = 1,
     .tol = 1e-2},
    {.name = "bf16",
     .build = build_matmul_nt,
     .nin = 2,
     .in = {{STK_BF16, 2, D(9, 31), -1, 1}, {STK_BF16, 2, D(5, 31), -1, 1}},
     .no_grad = 1,
     .tol = 5e-2},
    {.name = "sum f16",
     .build = build_sum_last,
     .nin = 1,
     .in = {{STK_F16, 2, D(9, 31), -1, 1}},
     .no_grad = 1,
     .tol = 1e-2},
};
OP_CASE_TEST(half_types, half_products)

TEST(mistakes)
{
    struct {
        int kind;
        stk_status code;
        const char *says;
    } rows[] = {
        {0, STK_ERR_SHAPE, "matmul(float32[2,3], float32[2,3]): inner sizes 3 and 2 differ"},
        {1, STK_ERR_SHAPE, "cannot become"},
        {2, STK_ERR_RANGE, "axis 5 is outside"},
        {3, STK_ERR_RANGE, "slice(float32[2,3])"},
        {4, STK_ERR_ARGUMENT, "perm must name each"},
        {5, STK_ERR_SHAPE, "does not broadcast"},
        {6, STK_ERR_RANGE, "padding"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stk_error err;
        stk_graph *g = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val x = stk_g_input(g, "x", STK_F32, 2, L(2, 3));
        switch (rows[i].kind) {
        case 0: stk_g_matmul(g, x, x); break;
        case 1: stk_g_reshape(g, x, 1, L(7)); break;
        case 2: stk_g_sum(g, x, 1, AX(5), false); break;
        case 3: stk_g_slice(g, x, L(1, 0), L(2, 3), NULL); break;
        case 4: stk_g_transpose(g, x, AX(0, 0)); break;
        case 5: stk_g_broadcast(g, x, 2, L(2, 4)); break;
        case 6: stk_g_pad(g, x, L(-1, 0), L(0, 0), 0); break;
        }
        CHECK_FAILS(stk_graph_status(g, &err), rows[i].code, rows[i].says);
        stk_graph_release(g);
    }
}

TEST_MAIN()
