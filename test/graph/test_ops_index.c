/* Operations that follow indices: what they mean, what they refuse, and the table of cases. */
#include "graph/op_case.h"
#include "graph/values.h"

#define SHAPE(...)                                                                                 \
    (const int64_t[]) { __VA_ARGS__ }
#define NUM(...)                                                                                   \
    (const double[]) { __VA_ARGS__ }

/* ---- meaning -------------------------------------------------------------------------------------------- */

TEST(gather_picks_rows_columns_and_scalars)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    stk_graph *g = graph();
    stk_val t = numbers(g, STK_F32, 2, SHAPE(3, 2), x);
    expect(g, stk_g_gather(g, t, numbers(g, STK_I32, 1, SHAPE(2), NUM(2, 0)), 0), STK_F32, 4,
           NUM(5, 6, 1, 2), 0);
    g = graph();
    t = numbers(g, STK_F32, 2, SHAPE(3, 2), x);
    expect(g, stk_g_gather(g, t, numbers(g, STK_I64, 2, SHAPE(1, 3), NUM(1, 1, 0)), 1), STK_F32, 9,
           NUM(2, 2, 1, 4, 4, 3, 6, 6, 5), 0);
    g = graph();
    t = numbers(g, STK_F32, 2, SHAPE(3, 2), x);
    expect(g, stk_g_gather(g, t, numbers(g, STK_I64, 0, NULL, NUM(-1)), 0), STK_F32, 2, NUM(5, 6),
           0);
}

/* Gathers are looked after in test_index_range.c. */
TEST(updates_out_of_range_are_left_out)
{
    const double at[] = {1, -1, 7};
    feeds f = {0};
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_F32, 2, SHAPE(3, 2), NUM(1, 2, 3, 4, 5, 6));
    stk_val i = fed(g, &f, STK_I64, 1, SHAPE(3), at);
    stk_val base = stk_g_fill(g, STK_F32, 2, SHAPE(2, 2), 10);
    expect_fed(g, &f, stk_g_scatter_add(g, base, i, x, 0), STK_F32, 4, NUM(10, 10, 11, 12), 0);
}

TEST(gather_with_batches_has_indices_of_its_own_for_each_row)
{
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_I32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6));
    stk_val i = numbers(g, STK_I32, 2, SHAPE(2, 2), NUM(2, 0, 1, 1));
    expect(g, stk_g_gather_batch(g, x, i, 1, 1), STK_I32, 4, NUM(3, 1, 5, 5), 0);
}

TEST(gather_nd_follows_coordinates)
{
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_F32, 3, SHAPE(2, 2, 2), NUM(1, 2, 3, 4, 5, 6, 7, 8));
    stk_val i = numbers(g, STK_I32, 2, SHAPE(2, 2), NUM(1, 0, 0, -1));
    expect(g, stk_g_gather_nd(g, x, i, 0), STK_F32, 4, NUM(5, 6, 3, 4), 0);
    g = graph();
    x = numbers(g, STK_F32, 3, SHAPE(2, 2, 2), NUM(1, 2, 3, 4, 5, 6, 7, 8));
    i = numbers(g, STK_I64, 2, SHAPE(2, 1), NUM(1, 0));
    expect(g, stk_g_gather_nd(g, x, i, 1), STK_F32, 4, NUM(3, 4, 5, 6), 0);
    /* One bad coordinate spoils the position, even when the sum would be inside. */
    feeds f = {0};
    g = graph();
    x = numbers(g, STK_F32, 2, SHAPE(2, 2), NUM(1, 2, 3, 4));
    i = fed(g, &f, STK_I32, 2, SHAPE(3, 2), NUM(1, 0, 0, 1, 1, 1));
    expect_fed(g, &f, stk_g_gather_nd(g, x, i, 0), STK_F32, 3, NUM(3, 2, 4), 0);
}

TEST(scatter_adds_in_order_and_the_last_set_stays)
{
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_F32, 2, SHAPE(3, 2), NUM(1, 2, 3, 4, 5, 6));
    stk_val i = numbers(g, STK_I32, 1, SHAPE(3), NUM(1, 0, 1)),
            zero = stk_g_fill(g, STK_F32, 2, SHAPE(3, 2), 0);
    expect(g, stk_g_scatter_add(g, zero, i, x, 0), STK_F32, 6, NUM(3, 4, 6, 8, 0, 0), 0);
    g = graph();
    x = numbers(g, STK_F32, 2, SHAPE(3, 2), NUM(1, 2, 3, 4, 5, 6));
    i = numbers(g, STK_I32, 1, SHAPE(3), NUM(1, 0, 1));
    stk_val base = stk_g_fill(g, STK_F32, 2, SHAPE(3, 2), 9);
    expect(g, stk_g_scatter_set(g, base, i, x, 0), STK_F32, 6, NUM(3, 4, 5, 6, 9, 9), 0);
    g = graph();
    x = numbers(g, STK_I64, 1, SHAPE(4), NUM(1, 1, 1, 5));
    i = numbers(g, STK_I64, 1, SHAPE(4), NUM(2, 0, 2, 0));
    expect(g, stk_g_segment_sum(g, x, i, 3), STK_I64, 3, NUM(6, 0, 2), 0);
    g = graph();
    x = numbers(g, STK_F32, 1, SHAPE(3), NUM(1, 2, 3));
    i = numbers(g, STK_I32, 2, SHAPE(3, 2), NUM(0, 1, 1, 0, 0, 1));
    expect(g, stk_g_scatter_nd_add(g, stk_g_fill(g, STK_F32, 2, SHAPE(2, 2), 1), i, x), STK_F32, 4,
           NUM(1, 5, 3, 1), 0);
    g = graph();
    x = numbers(g, STK_F32, 1, SHAPE(2), NUM(1, 2));
    i = numbers(g, STK_I32, 2, SHAPE(2, 2), NUM(0, 1, -1, 0));
    expect(g, stk_g_scatter_nd_set(g, stk_g_fill(g, STK_F32, 2, SHAPE(2, 2), 7), i, x), STK_F32, 4,
           NUM(7, 1, 2, 7), 0);
}

TEST(take_along_broadcasts_the_other_axes)
{
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6));
    expect(g, stk_g_take_along(g, x, numbers(g, STK_I32, 2, SHAPE(2, 1), NUM(2, -3)), 1), STK_F32,
           2, NUM(3, 4), 0);
    g = graph();
    x = numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6));
    expect(g, stk_g_take_along(g, x, numbers(g, STK_I32, 2, SHAPE(1, 2), NUM(0, 2)), 1), STK_F32, 4,
           NUM(1, 3, 4, 6), 0);
}

TEST(one_hot_marks_one_place_on_any_axis)
{
    stk_graph *g = graph();
    stk_val i = numbers(g, STK_I32, 1, SHAPE(3), NUM(2, 0, 5));
    expect(g, stk_g_one_hot(g, i, 3, -1, STK_F32, 1, 0), STK_F32, 9, NUM(0, 0, 1, 1, 0, 0, 0, 0, 0),
           0);
    g = graph();
    i = numbers(g, STK_I64, 1, SHAPE(2), NUM(1, 0));
    expect(g, stk_g_one_hot(g, i, 3, 0, STK_I32, 5, -1), STK_I32, 6, NUM(-1, 5, 5, -1, -1, -1), 0);
    g = graph();
    i = numbers(g, STK_I64, 1, SHAPE(1), NUM(1));
    expect(g, stk_g_one_hot(g, i, 2, -1, STK_BF16, 0.5, 2), STK_BF16, 2, NUM(2, 0.5), 0);
}

TEST(sort_is_stable_and_puts_nan_last_in_both_directions)
{
    const double x[] = {3, NAN, -0.0, -INFINITY, 0, 3, INFINITY};
    stk_graph *g = graph();
    expect(g, stk_g_argsort(g, numbers(g, STK_F32, 1, SHAPE(7), x), 0, false), STK_I64, 7,
           NUM(3, 2, 4, 0, 5, 6, 1), 0);
    g = graph();
    expect(g, stk_g_argsort(g, numbers(g, STK_F64, 1, SHAPE(7), x), 0, true), STK_I64, 7,
           NUM(6, 0, 5, 2, 4, 3, 1), 0);
    g = graph();
    expect(g, stk_g_sort(g, numbers(g, STK_F32, 1, SHAPE(7), x), 0, true), STK_F32, 7,
           NUM(INFINITY, 3, 3, 0, 0, -INFINITY, NAN), 0);
    g = graph();
    expect(g,
           stk_g_sort(g, numbers(g, STK_I8, 2, SHAPE(2, 3), NUM(5, -128, 127, -1, 0, 1)), 0, false),
           STK_I8, 6, NUM(-1, -128, 1, 5, 0, 127), 0);
    g = graph();
    expect(g, stk_g_sort(g, numbers(g, STK_U8, 1, SHAPE(3), NUM(200, 3, 255)), 0, true), STK_U8, 3,
           NUM(255, 200, 3), 0);
}

TEST(top_k_takes_the_first_of_equals)
{
    stk_graph *g = graph();
    stk_val at, x = numbers(g, STK_F32, 2, SHAPE(2, 9),
                            NUM(1, 5, 2, 5, 0, 5, 3, 4, 5, 9, 8, 7, 6, 5, 4, 3, 2, 1));
    stk_val top = stk_g_top_k(g, x, 2, -1, &at);
    stk_val both = stk_g_concat(g, 2, (stk_val[]){stk_g_cast(g, top, STK_I64), at}, 1);
    expect(g, both, STK_I64, 8, NUM(5, 5, 1, 3, 9, 8, 0, 1), 0);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

TEST(borders_rolls_and_diagonals)
{
    const double x[] = {1, 2, 3};
    const int64_t low[] = {2}, high[] = {1};
    static const double want[][6] = {
        {3, 2, 1, 2, 3, 2}, {2, 1, 1, 2, 3, 3}, {1, 1, 1, 2, 3, 3}, {2, 3, 1, 2, 3, 1}};
    for (int mode = 0; mode < 4; mode++) {
        stk_graph *g = graph();
        expect(
            g,
            stk_g_pad_mode(g, numbers(g, STK_F32, 1, SHAPE(3), x), low, high, (stk_pad_mode)mode),
            STK_F32, 6, want[mode], 0);
    }
    stk_graph *g = graph();
    expect(g, stk_g_roll(g, numbers(g, STK_I32, 1, SHAPE(3), x), -4, 0), STK_I32, 3, NUM(2, 3, 1),
           0);
    g = graph();
    expect(g, stk_g_diag(g, numbers(g, STK_F32, 1, SHAPE(3), x)), STK_F32, 9,
           NUM(1, 0, 0, 0, 2, 0, 0, 0, 3), 0);
    g = graph();
    expect(g, stk_g_diag_part(g, numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6))),
           STK_F32, 2, NUM(1, 5), 0);
    g = graph();
    expect(g, stk_g_diag_part(g, numbers(g, STK_F32, 2, SHAPE(3, 1), NUM(1, 2, 3))), STK_F32, 1,
           NUM(1), 0);
    g = graph();
    expect(g, stk_g_tril(g, numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6)), 1), STK_F32,
           6, NUM(1, 2, 0, 4, 5, 6), 0);
    g = graph();
    expect(g, stk_g_triu(g, numbers(g, STK_I32, 2, SHAPE(2, 3), NUM(1, 2, 3, 4, 5, 6)), 1), STK_I32,
           6, NUM(0, 2, 3, 0, 0, 6), 0);
    g = graph();
    expect(g, stk_g_eye(g, STK_F64, 2, 3), STK_F64, 6, NUM(1, 0, 0, 0, 1, 0), 0);
    g = graph();
    expect(g,
           stk_g_outer(g, numbers(g, STK_F32, 1, SHAPE(2), NUM(1, 2)),
                       numbers(g, STK_F32, 1, SHAPE(2), NUM(3, 4))),
           STK_F32, 4, NUM(3, 4, 6, 8), 0);
    g = graph();
    stk_val a = numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(1, 0, 0, 1, 2, 3));
    expect(g, stk_g_cross(g, a, numbers(g, STK_F32, 2, SHAPE(2, 3), NUM(0, 1, 0, 3, 2, 1))),
           STK_F32, 6, NUM(0, 0, 1, -4, 8, -4), 1e-6);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

TEST(bad_indices_are_refused_when_the_graph_is_built)
{
    stk_graph *g = graph();
    stk_val x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_gather(g, x, x, 0), STK_ERR_DTYPE, "int32 or int64");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_gather(g, x, numbers(g, STK_I32, 1, SHAPE(2), NUM(0, 3)), 0), STK_ERR_RANGE,
           "-3 to 2 fit");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_gather(g, x, stk_g_input(g, "i", STK_I32, 1, SHAPE(2)), 2), STK_ERR_RANGE,
           "axis 2");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_gather_batch(g, x, stk_g_input(g, "i", STK_I32, 2, SHAPE(2, 2)), 1, 1),
           STK_ERR_SHAPE, "batch axis 0");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_gather_nd(g, x, stk_g_input(g, "i", STK_I32, 2, SHAPE(4, 3)), 0), STK_ERR_SHAPE,
           "3 coordinates");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_scatter_add(g, x, stk_g_input(g, "i", STK_I32, 1, SHAPE(4)), x, 0),
           STK_ERR_SHAPE, "updates of [4,2]");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_take_along(g, x, stk_g_input(g, "i", STK_I32, 1, SHAPE(4)), 0), STK_ERR_SHAPE,
           "axis 0");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_top_k(g, x, 3, 1, NULL), STK_ERR_RANGE, "the first 3 of 2");
    g = graph();
    refuse(g, stk_g_one_hot(g, stk_g_input(g, "i", STK_I32, 1, SHAPE(4)), -1, 0, STK_F32, 1, 0),
           STK_ERR_RANGE, "depth -1");
    g = graph();
    refuse(g, stk_g_sort(g, 0, 0, false), STK_ERR_RANGE, "axis 0");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2));
    refuse(g, stk_g_pad_mode(g, x, SHAPE(0, 2), SHAPE(0, 0), STK_PAD_REFLECT), STK_ERR_RANGE,
           "0 to 1 is possible");
    g = graph();
    refuse(g, stk_g_cross(g, stk_g_input(g, "a", STK_F32, 1, SHAPE(2)), 0), STK_ERR_SHAPE,
           "size 3");
}

/* Attributes come from outside: whatever they are, there is a status. */
TEST(any_attributes_are_survived)
{
    static const stk_op ops[] = {STK_OP_GATHER,    STK_OP_SCATTER,     STK_OP_TAKE_ALONG,
                                 STK_OP_PUT_ALONG, STK_OP_RAVEL_INDEX, STK_OP_ONE_HOT,
                                 STK_OP_SORT};
    static const int64_t odd[] = {0, 1, 2, -1, 3, INT64_MAX, INT64_MIN, 1 << 20, INT32_MAX};
    uint64_t state = 1;
    int made = 0;
    for (int round = 0; round < 20000; round++) {
        stk_graph *g = graph();
        int64_t ints[12];
        stk_val v[] = {stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2)),
                       stk_g_input(g, "i", STK_I32, 2, SHAPE(3, 2)),
                       stk_g_input(g, "j", STK_I64, 1, SHAPE(3))};
        for (int i = 0; i < 12; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            ints[i] = odd[(state >> 33) % 9];
        }
        stk_val in[] = {v[(state >> 40) % 3], v[(state >> 42) % 3], v[(state >> 44) % 3]};
        stk_attrs attrs = {.ints = ints,
                           .nints = (int32_t)((state >> 46) % 7),
                           .reals = (double[]){1, 0},
                           .nreals = 2};
        stk_op op = ops[round % 7];
        int32_t nin = op == STK_OP_RAVEL_INDEX || op == STK_OP_ONE_HOT || op == STK_OP_SORT ? 1 : 2;
        made += stk_g_apply(g, op, nin, in, &attrs) != 0;
        stk_graph_release(g);
    }
    CHECK(made > 20);
}

static stk_status build_all(void)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_status status = stk_graph_new(&g, &err);
    if (status != STK_OK) return status;
    stk_val x = stk_g_input(g, "x", STK_F32, 2, SHAPE(4, 4)),
            i = stk_g_input(g, "i", STK_I32, 1, SHAPE(3)), at;
    stk_val y = stk_g_gather(g, x, i, 0);
    y = stk_g_scatter_add(g, x, i, y, 0);
    y = stk_g_top_k(g, stk_g_tril(g, y, 0), 2, 1, &at);
    y = stk_g_sum_all(g, stk_g_pad_mode(g, y, SHAPE(1, 1), SHAPE(0, 1), STK_PAD_REFLECT));
    stk_val dx;
    stk_g_gradients(g, y, 1, &x, &dx);
    status = stk_graph_status(g, &err);
    stk_graph_release(g);
    return status;
}

TEST(memory_may_end_anywhere) { OOM_LOOP(build_all()); }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

#define BUILD(name, expression)                                                                    \
    static stk_val name(stk_graph *g, const stk_val *in, stk_dtype real)                           \
    {                                                                                              \
        (void)real, (void)in;                                                                      \
        return (expression);                                                                       \
    }
#define CONST_I32(n, ...) numbers(g, STK_I32, 1, SHAPE(n), NUM(__VA_ARGS__))

BUILD(gather_rows, stk_g_gather(g, in[0], in[1], 0))
BUILD(gather_middle, stk_g_gather(g, in[0], in[1], 1))
BUILD(gather_last, stk_g_gather(g, in[0], in[1], -1))
BUILD(gather_batches, stk_g_gather_batch(g, in[0], in[1], 2, 1))
BUILD(gather_coordinates, stk_g_gather_nd(g, in[0], in[1], 0))
BUILD(gather_coordinates_batch, stk_g_gather_nd(g, in[0], in[1], 1))
BUILD(scatter_rows, stk_g_scatter_add(g, in[0], in[1], in[2], 0))
BUILD(scatter_middle, stk_g_scatter_add(g, in[0], in[1], in[2], 1))
BUILD(scatter_on_zeros, stk_g_scatter_add(g, stk_g_zeros_like(g, in[0]), in[1], in[2], 0))
BUILD(set_rows, stk_g_scatter_set(g, in[0], CONST_I32(3, 4, 0, 2), in[1], 0))
BUILD(scatter_coordinates, stk_g_scatter_nd_add(g, in[0], in[1], in[2]))
BUILD(take, stk_g_take_along(g, in[0], in[1], 1))
BUILD(take_first, stk_g_take_along(g, in[0], in[1], 0))
BUILD(hot, stk_g_one_hot(g, in[0], 5, 1, real, 1.5, -0.5))
BUILD(sort_last, stk_g_sort(g, in[0], -1, false))
BUILD(sort_down, stk_g_sort(g, in[0], 0, true))
BUILD(order, stk_g_argsort(g, in[0], 1, true))
BUILD(top_3, stk_g_top_k(g, in[0], 3, 1, NULL))
BUILD(top_first_axis, stk_g_top_k(g, in[0], 2, 0, NULL))
BUILD(squared_rows, stk_g_square(g, stk_g_gather(g, in[0], in[1], 0)))
BUILD(squared_top, stk_g_square(g, stk_g_top_k(g, in[0], 2, 1, NULL)))
BUILD(mirrored, stk_g_pad_mode(g, in[0], SHAPE(2, 1), SHAPE(1, 3), STK_PAD_REFLECT))
BUILD(symmetric, stk_g_pad_mode(g, in[0], SHAPE(3, 0), SHAPE(1, 2), STK_PAD_SYMMETRIC))
BUILD(edges, stk_g_pad_mode(g, in[0], SHAPE(3, 0), SHAPE(1, 9), STK_PAD_EDGE))
BUILD(wrapped, stk_g_pad_mode(g, in[0], SHAPE(1, 0), SHAPE(1, 4), STK_PAD_WRAP))
BUILD(diagonal, stk_g_diag(g, in[0]))
BUILD(lower, stk_g_tril(g, in[0], -1))
BUILD(crossed, stk_g_cross(g, in[0], in[1]))

#define REAL(rank, ...)                                                                            \
    {                                                                                              \
        STK_F32, rank, {__VA_ARGS__}, -1, 1                                                        \
    }
#define AT32(most, rank, ...)                                                                      \
    {                                                                                              \
        STK_I32, rank, {__VA_ARGS__}, 0, most                                                      \
    }
#define AT64(low, most, rank, ...)                                                                 \
    {                                                                                              \
        STK_I64, rank, {__VA_ARGS__}, low, most                                                    \
    }

static const op_case cases[] = {
    {.name = "gather rows", .build = gather_rows, .nin = 2, .in = {REAL(2, 7, 5), AT32(6, 1, 9)}},
    {.name = "gather rows of one",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 7, 1), AT64(0, 6, 2, 3, 4)}},
    {.name = "gather rows of two",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 3, 2), AT64(0, 2, 1, 33)}},
    {.name = "gather rows of four",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 3, 4), AT32(2, 1, 17)}},
    {.name = "gather wide rows",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 50, 64), AT32(49, 2, 40, 8)}},
    {.name = "gather nothing",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 7, 5), AT32(6, 1, 0)}},
    {.name = "gather nothing from nothing",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 0, 5), AT32(6, 1, 0)}},
    {.name = "gather a scalar",
     .build = gather_rows,
     .nin = 2,
     .in = {REAL(2, 7, 5), {STK_I32, 0, {0}, 3, 3}}},
    {.name = "gather middle",
     .build = gather_middle,
     .nin = 2,
     .in = {REAL(3, 3, 4, 5), AT64(0, 3, 2, 2, 3)}},
    {.name = "gather last",
     .build = gather_last,
     .nin = 2,
     .in = {REAL(3, 3, 4, 5), AT32(4, 1, 6)}},
    {.name = "gather bytes",
     .build = gather_rows,
     .nin = 2,
     .in = {{STK_U8, 2, {9, 3}, 0, 255}, AT32(8, 1, 31)},
     .no_grad = 1},
    {.name = "gather batches",
     .build = gather_batches,
     .nin = 2,
     .in = {REAL(4, 2, 3, 4, 5), AT64(0, 3, 2, 2, 6)}},
    {.name = "gather_nd",
     .build = gather_coordinates,
     .nin = 2,
     .in = {REAL(3, 3, 4, 5), AT32(2, 3, 2, 3, 2)}},
    {.name = "gather_nd batch",
     .build = gather_coordinates_batch,
     .nin = 2,
     .in = {REAL(3, 2, 3, 4), AT64(0, 2, 3, 2, 5, 2)}},
    {.name = "scatter rows",
     .build = scatter_rows,
     .nin = 3,
     .in = {REAL(2, 5, 3), AT32(4, 1, 9), REAL(2, 9, 3)}},
    {.name = "scatter many rows",
     .build = scatter_rows,
     .nin = 3,
     .in = {REAL(2, 300, 40), AT64(-3, 303, 1, 500), REAL(2, 500, 40)}},
    {.name = "scatter nothing",
     .build = scatter_rows,
     .nin = 3,
     .in = {REAL(2, 5, 3), AT32(4, 1, 0), REAL(2, 0, 3)}},
    {.name = "scatter middle",
     .build = scatter_middle,
     .nin = 3,
     .in = {REAL(3, 2, 5, 3), AT32(5, 2, 2, 3), REAL(4, 2, 2, 3, 3)}},
    {.name = "scatter on zeros",
     .build = scatter_on_zeros,
     .nin = 3,
     .in = {REAL(1, 5), AT32(4, 1, 9), REAL(1, 9)}},
    {.name = "set rows", .build = set_rows, .nin = 2, .in = {REAL(2, 5, 3), REAL(2, 3, 3)}},
    {.name = "scatter_nd",
     .build = scatter_coordinates,
     .nin = 3,
     .in = {REAL(3, 3, 4, 2), AT32(3, 2, 6, 2), REAL(2, 6, 2)}},
    {.name = "take along 1",
     .build = take,
     .nin = 2,
     .in = {REAL(3, 3, 7, 2), AT32(6, 3, 3, 4, 2)}},
    {.name = "take along 0",
     .build = take_first,
     .nin = 2,
     .in = {REAL(2, 5, 6), AT64(0, 4, 2, 9, 6)}},
    {.name = "take bytes",
     .build = take,
     .nin = 2,
     .in = {{STK_I8, 2, {40, 30}, -9, 9}, AT64(0, 29, 2, 40, 20)},
     .no_grad = 1},
    {.name = "one hot", .build = hot, .nin = 1, .in = {AT32(5, 2, 7, 3)}, .no_grad = 1},
    {.name = "sort short", .build = sort_last, .nin = 1, .in = {REAL(2, 5, 7)}},
    {.name = "sort one", .build = sort_last, .nin = 1, .in = {REAL(2, 5, 1)}},
    {.name = "sort nothing", .build = sort_last, .nin = 1, .in = {REAL(2, 5, 0)}},
    {.name = "sort 48", .build = sort_last, .nin = 1, .in = {REAL(2, 3, 48)}},
    {.name = "sort 49", .build = sort_last, .nin = 1, .in = {REAL(2, 3, 49)}},
    {.name = "sort long", .build = sort_last, .nin = 1, .in = {REAL(2, 7, 700)}},
    {.name = "sort down a column", .build = sort_down, .nin = 1, .in = {REAL(3, 60, 2, 3)}},
    {.name = "sort integers",
     .build = sort_last,
     .nin = 1,
     .in = {{STK_I32, 2, {6, 99}, -9, 9}},
     .no_grad = 1},
    {.name = "sort longs",
     .build = sort_down,
     .nin = 1,
     .in = {{STK_I64, 2, {99, 2}, -1e6, 1e6}},
     .no_grad = 1},
    {.name = "order of ties",
     .build = order,
     .nin = 1,
     .in = {{STK_I16, 2, {6, 77}, -3, 3}},
     .no_grad = 1},
    {.name = "top of few", .build = top_3, .nin = 1, .in = {REAL(2, 4, 5)}},
    {.name = "top of many", .build = top_3, .nin = 1, .in = {REAL(2, 40, 500)}},
    {.name = "top of a column", .build = top_first_axis, .nin = 1, .in = {REAL(2, 17, 3)}},
    {.name = "gather squared",
     .build = squared_rows,
     .nin = 2,
     .in = {REAL(2, 4, 3), AT32(3, 1, 5)},
     .grad2 = 1},
    {.name = "top squared", .build = squared_top, .nin = 1, .in = {REAL(2, 3, 9)}, .grad2 = 1},
    {.name = "pad reflect", .build = mirrored, .nin = 1, .in = {REAL(2, 3, 4)}},
    {.name = "pad symmetric", .build = symmetric, .nin = 1, .in = {REAL(2, 3, 4)}},
    {.name = "pad edge", .build = edges, .nin = 1, .in = {REAL(2, 3, 4)}},
    {.name = "pad wrap", .build = wrapped, .nin = 1, .in = {REAL(2, 3, 4)}},
    {.name = "diag", .build = diagonal, .nin = 1, .in = {REAL(2, 3, 4)}},
    {.name = "tril", .build = lower, .nin = 1, .in = {REAL(3, 2, 4, 3)}},
    {.name = "cross", .build = crossed, .nin = 2, .in = {REAL(2, 4, 3), REAL(2, 4, 3)}, .grad2 = 1},
};

OP_CASE_MAIN(cases)
