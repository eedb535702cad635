/* halves.h - tile functions with operands and results of bfloat16 where they lie: what a chain of bfloat16 would else widen into a tile
 * of its own, or round from one, in a pass of its own. */
#ifndef STK_DEVICE_CPU_VEC_HALVES_H
#define STK_DEVICE_CPU_VEC_HALVES_H

#include "device/cpu/vec/elementwise.h"

/* Which of the four are bfloat16; the others are floats. */
enum { STK_HALF_A = 1, STK_HALF_B = 2, STK_HALF_C = 4, STK_HALF_RESULT = 8, STK_HALF_KINDS = 16 };

typedef struct stk_vec_halves {
    /* The same numbers as stk_vec_ew.op, rounded by the last of its steps. NULL where there is none; on processors without
     * AVX512_BF16 (stk_isa_has_pairs()) they must not be called. */
    stk_tile_fn op[STK_EW_COUNT][STK_HALF_KINDS];
} stk_vec_halves;

extern const stk_vec_halves STK_VEC(stk_vec_halves);

#endif
