/* updates.h - runs of elementwise operations that stand together in many programs, as one loop each: what one
 * operation hands to the next stays in a register instead of a tile.
 *
 *     m' = lerp(m, g, b)   v' = lerp_square(v, g, c)   w' = w - r * (m' / (sqrt(v') + e))        with_mean
 *                          v' = lerp_square(v, g, c)   w' = w - r * (g  / (sqrt(v') + e))        plain
 *
 * Each element goes through the very operations of elementwise.c, so the bits are those of the separate tiles. A
 * result may be the same array as an operand.
 *
 * The divider takes longer than all the rest. `by_steps` holds the same functions with quotient and root by an estimate and Newton
 * steps, made so that the last step rounds as the divider does: the same bits, whatever the estimate was. `by_turns` takes
 * every other root by steps, while the divider is at work on the rest. Which is fastest is measured (stk_updates_pick). */
#ifndef STK_DEVICE_CPU_VEC_UPDATES_H
#define STK_DEVICE_CPU_VEC_UPDATES_H

#include "device/cpu/vec/vec.h"

/* Arrays and numbers of an update; plain has no mean, its weight and its result. */
enum {
    STK_UPDATE_NEW_SQUARE,
    STK_UPDATE_NEW_VALUE,
    STK_UPDATE_SQUARE,
    STK_UPDATE_GRADIENT,
    STK_UPDATE_VALUE,
    STK_UPDATE_SQUARE_WEIGHT, /* numbers: one element */
    STK_UPDATE_OFFSET,
    STK_UPDATE_RATE,
    STK_UPDATE_NEW_MEAN,
    STK_UPDATE_MEAN,
    STK_UPDATE_MEAN_WEIGHT,
    STK_UPDATE_ARGS
};

typedef void (*stk_update_fn)(int64_t n, float *const *at);

typedef struct stk_vec_updates {
    stk_update_fn plain, with_mean;
    const struct stk_vec_updates *by_steps, *by_turns; /* both or none */
} stk_vec_updates;

extern const stk_vec_updates STK_VEC(stk_vec_updates);

#endif
