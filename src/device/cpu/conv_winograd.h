/* conv_winograd.h - what a convolution by tiles of results is cut into (conv_winograd_plan.c), for the walks of conv_winograd.c. */
#ifndef STK_DEVICE_CPU_CONV_WINOGRAD_H
#define STK_DEVICE_CPU_CONV_WINOGRAD_H

#include "device/cpu/conv_plan.h"
#include "device/cpu/launch.h"
#include "device/cpu/vec/winograd.h"

typedef enum stk_winograd_kind {
    STK_WINOGRAD_FORWARD,
    STK_WINOGRAD_BACK,
    STK_WINOGRAD_WEIGHT
} stk_winograd_kind;

typedef struct stk_winograd_state {
    stk_winograd_kind kind;
    int64_t size; /* bytes of an element of the pictures */
    const stk_winograd_tile *tile;
    int64_t positions;            /* of a tile */
    int64_t rows, cols, low[2];   /* of the destination; padding as the destination sees it */
    int64_t from_rows, from_cols; /* of the source */
    int64_t in, out;              /* channels of source and destination */
    int64_t tile_rows, tile_cols; /* tiles of one image */
    bool across;
    int64_t block;                                    /* channels of the destination at a time */
    int64_t source_tiles, tiles;                      /* at a time */
    int64_t weight_step, source_step, result_step;    /* floats between positions */
    int64_t weights, source, results, product, total; /* floats of scratch */
    const stk_winograd_tile *plain;                   /* the same tile, of floats */
    stk_gemm gemm;
    const stk_vec *vec;
} stk_winograd_state;

/* The slots of an implementation (launch.h), by kind and points along an axis. */
bool stk_winograd_supports(const void *params, stk_winograd_kind kind, int points);
int64_t stk_winograd_units(const void *params, stk_winograd_kind kind, int points);
int64_t stk_winograd_grain(const void *params, stk_winograd_kind kind, int points);
uint32_t stk_winograd_aligned(const void *params, stk_winograd_kind kind, int points);
int64_t stk_winograd_room(const void *params, stk_winograd_kind kind, int points);
int64_t stk_winograd_scratch(const void *params, int32_t parts, int points);
stk_status stk_winograd_prepare(stk_launch *launch, stk_winograd_kind kind, int points,
                                stk_error *err);
void stk_winograd_discard(stk_launch *launch);

int64_t stk_winograd_weights(const stk_conv *c); /* of all taps */

#endif
