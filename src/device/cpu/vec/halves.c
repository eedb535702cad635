/* Elementwise operations over bfloat16 in place (halves.h): a body per operation, and a function of it for every choice of operands and
 * result. Only the operations that stand in the large chains of networks have them. */
#include "device/cpu/vec/halves.h"

#include "base/dtype.h"
#include "device/cpu/vec/lanes.h"

static void round_plainly(int64_t n, void *to_, const void *from_)
{
    uint16_t *to = to_;
    const float *from = from_;
    for (int64_t i = 0; i < n; i++) to[i] = stk_f32_to_bf16(from[i]);
}

#if STK_HAS_PAIRS

STK_INLINE vf get(const void *from, int64_t i, bool half, vf_part part)
{
    return half ? vp_load_wide((const uint16_t *)from + i, part)
                : vf_load_part((const float *)from + i, part);
}

STK_INLINE STK_PAIRS void put(void *to, int64_t i, vf v, bool half, vf_part part)
{
    if (half)
        vp_store_exactly((uint16_t *)to + i, v, part);
    else
        vf_store_part((float *)to + i, v, part);
}

STK_INLINE STK_PAIRS void put_two(void *to, int64_t i, vf v, vf next, bool half)
{
    if (half) {
        vp_store_two((uint16_t *)to + i, v, next);
    } else {
        vf_store((float *)to + i, v);
        vf_store((float *)to + i + STK_VF, next);
    }
}

/* ---- formulas: as in elementwise.c ------------------------------------------------------------------ */

typedef vf (*formula)(vf x, vf y, vf z);

#define FORMULA(name, value)                                                                       \
    STK_INLINE vf name(vf x, vf y, vf z)                                                           \
    {                                                                                              \
        (void)y, (void)z;                                                                          \
        return value;                                                                              \
    }
FORMULA(same, x)
FORMULA(relu, vf_where_not_below(x, 0, x))
FORMULA(relu6, vf_at_most(vf_where_not_below(x, 0, x), 6))
FORMULA(add, x + y)
FORMULA(sub, x - y)
FORMULA(mul, x *y)
FORMULA(relu_grad, vf_where_above(y, 0, x))
FORMULA(relu6_grad, vf_where_below(y, 6, vf_where_above(y, 0, x)))
FORMULA(add_relu, vf_where_not_below(x + y, 0, x + y))
FORMULA(madd, vf_fma(x, y, z))

/* Two registers at a time. */
STK_INLINE STK_PAIRS void body(int64_t n, void *d, const void *a, const void *b, const void *c,
                               const formula f, const int arity, const int halves)
{
    const bool half_a = halves & STK_HALF_A, half_b = halves & STK_HALF_B,
               half_c = halves & STK_HALF_C, half_d = halves & STK_HALF_RESULT;
    const vf_part all = vf_part_of(STK_VF);
    int64_t i = 0;
#define AT(i, part)                                                                                \
    f(get(a, i, half_a, part), arity > 1 ? get(b, i, half_b, part) : (vf){0},                      \
      arity > 2 ? get(c, i, half_c, part) : (vf){0})
    for (; i + 2 * STK_VF <= n; i += 2 * STK_VF) {
        const vf first = AT(i, all);
        put_two(d, i, first, AT(i + STK_VF, all), half_d);
    }
    for (; i < n; i += STK_VF) {
        const vf_part part = vf_part_of(n - i < STK_VF ? n - i : STK_VF);
        put(d, i, AT(i, part), half_d, part);
    }
#undef AT
}

#define ONE(name, arity, halves)                                                                   \
    static STK_PAIRS void name##_##halves(int64_t n, void *d, const void *a, const void *b,        \
                                          const void *c)                                           \
    {                                                                                              \
        body(n, d, a, b, c, name, arity, halves);                                                  \
    }
#define ONES(name) ONE(name, 1, 1) ONE(name, 1, 8) ONE(name, 1, 9)
#define TWOS(name)                                                                                 \
    ONE(name, 2, 1)                                                                                \
    ONE(name, 2, 2)                                                                                \
    ONE(name, 2, 3) ONE(name, 2, 8) ONE(name, 2, 9) ONE(name, 2, 10) ONE(name, 2, 11)
#define THREES(name)                                                                               \
    ONE(name, 3, 1)                                                                                \
    ONE(name, 3, 2)                                                                                \
    ONE(name, 3, 3)                                                                                \
    ONE(name, 3, 4)                                                                                \
    ONE(name, 3, 5)                                                                                \
    ONE(name, 3, 6)                                                                                \
    ONE(name, 3, 7)                                                                                \
    ONE(name, 3, 8)                                                                                \
    ONE(name, 3, 9)                                                                                \
    ONE(name, 3, 10)                                                                               \
    ONE(name, 3, 11)                                                                               \
    ONE(name, 3, 12) ONE(name, 3, 13) ONE(name, 3, 14) ONE(name, 3, 15)
ONES(relu)
ONES(relu6)
TWOS(add)
TWOS(sub)
TWOS(mul)
TWOS(relu_grad)
TWOS(relu6_grad)
TWOS(add_relu)
THREES(madd)
ONE(same, 1, 8)

void STK_VEC(stk_store_bf16)(int64_t n, void *to, const void *from)
{
    if (vp_here())
        same_8(n, to, from, NULL, NULL);
    else
        round_plainly(n, to, from);
}

#define ROW_1(name)                                                                                \
    {                                                                                              \
        [1] = name##_1, [8] = name##_8, [9] = name##_9                                             \
    }
#define ROW_2(name)                                                                                \
    {                                                                                              \
        [1] = name##_1, [2] = name##_2, [3] = name##_3, [8] = name##_8, [9] = name##_9,            \
        [10] = name##_10, [11] = name##_11                                                         \
    }
#define ROW_3(name)                                                                                \
    {                                                                                              \
        NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8,      \
            name##_9, name##_10, name##_11, name##_12, name##_13, name##_14, name##_15             \
    }

const stk_vec_halves STK_VEC(stk_vec_halves) = {.op = {
                                                    [STK_EW_RELU] = ROW_1(relu),
                                                    [STK_EW_RELU6] = ROW_1(relu6),
                                                    [STK_EW_ADD] = ROW_2(add),
                                                    [STK_EW_SUB] = ROW_2(sub),
                                                    [STK_EW_MUL] = ROW_2(mul),
                                                    [STK_EW_RELU_GRAD] = ROW_2(relu_grad),
                                                    [STK_EW_RELU6_GRAD] = ROW_2(relu6_grad),
                                                    [STK_EW_ADD_RELU] = ROW_2(add_relu),
                                                    [STK_EW_FMA] = ROW_3(madd),
                                                }};

#else

void STK_VEC(stk_store_bf16)(int64_t n, void *to, const void *from) { round_plainly(n, to, from); }

const stk_vec_halves STK_VEC(stk_vec_halves) = {.op = {{NULL}}};

#endif
