/* elementwise.h - tile functions: what the chain interpreter and every other CPU kernel that walks over elements is
 * made of.
 *
 * A tile is n elements of one lane (kernels.h): float, double, int64_t, or bool as int32_t 0/1. The result may
 * be the very same tile as an operand, but must not overlap one in any other way. */
#ifndef STK_DEVICE_CPU_VEC_ELEMENTWISE_H
#define STK_DEVICE_CPU_VEC_ELEMENTWISE_H

#include "device/cpu/vec/vec.h"

enum { STK_LANES = 4 };

typedef void (*stk_tile_fn)(int64_t n, void *d, const void *a, const void *b, const void *c);
typedef void (*stk_tile_move)(int64_t n, void *to, const void *from);

typedef struct stk_vec_ew {
    /* By operation and lane of the operands (of the choices for select, whose `a` is a bool tile); NULL where the
     * operation has no meaning. Comparisons and tests write bool tiles. The cast row is empty: see cast. */
    stk_tile_fn op[STK_EW_COUNT][STK_LANES];
    /* The same for float tiles with operand 0, 1 or 2 a single element instead of a tile; NULL where that is not worth
     * it. Saves the splat and a load per vector. */
    stk_tile_fn scalar[STK_EW_COUNT][3];
    stk_tile_move load[STK_DTYPE_COUNT];      /* stored elements -> tile of stk_lane_of(dtype) */
    stk_tile_move store[STK_DTYPE_COUNT];     /* and back; integers keep their low bits */
    stk_tile_move cast[STK_LANES][STK_LANES]; /* [from][to] */
    stk_tile_move splat[STK_LANES];           /* one lane element -> n of them */
} stk_vec_ew;

extern const stk_vec_ew STK_VEC(stk_vec_ew);

void STK_VEC(stk_store_bf16)(int64_t n, void *to, const void *from); /* halves.c */

/* A number as one element of a lane, to be splatted. */
static inline int64_t stk_lane_bits(stk_lane lane, double value)
{
    float single = (float)value;
    int32_t truth = value != 0;
    int64_t bits = 0;
    switch (lane) {
    case STK_LANE_F32: memcpy(&bits, &single, 4); break;
    case STK_LANE_F64: memcpy(&bits, &value, 8); break;
    case STK_LANE_I64: bits = (int64_t)value; break;
    case STK_LANE_BOOL: memcpy(&bits, &truth, 4); break;
    }
    return bits;
}

/* True when an element type is stored exactly as its lane computes, so that memory can serve as a tile. */
static inline bool stk_lane_is_stored(stk_dtype dtype)
{
    return dtype == STK_F32 || dtype == STK_F64 || dtype == STK_I64;
}

#endif
