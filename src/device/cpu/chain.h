/* chain.h - an elementwise program made ready for the CPU: what chain_plan.c makes and chain.c runs.
 *
 * The program becomes steps over `places`. A place is a pointer that is good for one tile:
 *
 *     slot     a tile in the worker's buffer        intermediate values, splats, converted inputs
 *     moving   an argument at the current element   inputs and outputs stored just as their lane computes
 *
 * so a chain over dense floats touches no memory but its arguments and a few L1-sized slots. */
#ifndef STK_DEVICE_CPU_CHAIN_H
#define STK_DEVICE_CPU_CHAIN_H

#include "device/cpu/cpu.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/updates.h"

enum {
    STK_TILE_MIN = 64,
    STK_TILE_MAX = 1024,
    /* every register twice, in both slot sizes */
    STK_CHAIN_BUFFER = STK_CHAIN_REGS * (4 + 8) * STK_TILE_MIN,
    STK_CHAIN_PLACES = 2 * STK_CHAIN_REGS + 2 * STK_CHAIN_IO,
};

typedef struct stk_chain_step {
    stk_tile_fn fn;
    stk_tile_move cast;          /* when fn is NULL */
    stk_update_fn update;        /* when both are: several operations at once */
    int16_t d, a, b, c;          /* places */
    int16_t at[STK_UPDATE_ARGS]; /* places of an update */
} stk_chain_step;

typedef struct stk_chain_moving {
    int16_t place, arg;
    int32_t size;
} stk_chain_moving;

typedef struct stk_chain_transfer { /* between an argument and a place, once per tile or per run */
    stk_tile_move move;
    int16_t place, arg;
    int32_t size;
    int32_t lane;
    bool wide; /* scalars: spread over a tile */
} stk_chain_transfer;

/* Strides of an input, with joinable dimensions joined. */
typedef struct stk_chain_walk {
    int32_t rank;
    int64_t dim[STK_MAX_RANK], stride[STK_MAX_RANK];
} stk_chain_walk;

typedef struct stk_chain_state {
    const stk_vec_ew *ew;
    int32_t tile, slots, steps, movings, loads, scalars, constants, strides, rows, stores;
    int32_t args;    /* per segment */
    int64_t row;     /* length when there are ROW inputs, else 0 */
    bool cut_at_row; /* rows are longer than a tile: tiles end where they end */
    int32_t slot_offset[STK_CHAIN_PLACES];
    stk_chain_step step[STK_CHAIN_OPS];
    stk_chain_moving moving[2 * STK_CHAIN_IO];
    stk_chain_transfer load[STK_CHAIN_IO];    /* DENSE with a conversion */
    stk_chain_transfer strided[STK_CHAIN_IO]; /* STRIDED */
    stk_chain_transfer scalar[STK_CHAIN_IO];  /* SCALAR */
    stk_chain_transfer row_load[STK_CHAIN_IO];
    stk_chain_transfer store[STK_CHAIN_IO];
    struct {
        int16_t place, lane;
        bool wide;
        int64_t bits;
    } constant[STK_CHAIN_IO];
    stk_chain_moving single[4];        /* result and operands of a lone step */
    stk_chain_walk walk[STK_CHAIN_IO]; /* of strided[] */
    int64_t start[];                   /* [segments + 1] first unit of each segment */
} stk_chain_state;

/* u, or its form without the divider where this processor runs that faster. STOKER_UPDATES=divider|steps decides for it. */
const stk_vec_updates *stk_updates_pick(const stk_vec_updates *u);

/* NULL when out of memory. */
stk_chain_state *stk_chain_state_new(const stk_chain *p);

#endif
