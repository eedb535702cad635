/* conv_grid_plan.h - where things lie when a convolution is computed on a grid (vec/conv_grid.h).
 *
 * A phase is a set of results that use the same taps: all of them forward; backward data, those whose places have the same remainders
 * by the stride. For each axis of a phase
 *
 *     source place = result * from_step + offset of the tap          from_step: the stride forward, 1 backward
 *                  = (result + shift) * from_step + remainder
 *
 * so a grid holds the source places of one remainder: `count` of them for the results, and `reach` more for the shifts. Strided
 * convolutions have a grid for each remainder, one behind the other.
 *
 * Few channels would fill a small part of 32 numbers. Then the last axes are `merged`: a point has the channels of all taps along
 * them, side by side, and the grid has one point for each result along them. Merging all axes is to gather all that a result reads. */
#ifndef STK_DEVICE_CPU_CONV_GRID_PLAN_H
#define STK_DEVICE_CPU_CONV_GRID_PLAN_H

#include "device/kernels.h"

enum { STK_GRID_FORWARD, STK_GRID_BACK, STK_GRID_WEIGHT };

typedef struct stk_grid_tap {
    int64_t shift[3]; /* from the least one of the axis; 0 on merged axes */
    int64_t grid;     /* which one it reads */
    int64_t first;    /* in `order`: the taps that a point has for it */
} stk_grid_tap;

/* Pixels of the source that lie side by side in a point of merged axes. */
typedef struct stk_grid_piece {
    int64_t offset[3];
    int64_t pixels;
} stk_grid_piece;

typedef struct stk_grid_phase {
    int64_t to[3], to_step[3], count[3]; /* results */
    int64_t from_step[3], low[3];        /* low: least shift */
    int64_t reach[3];
    int64_t grids;
    int64_t (*remainder)[3]; /* of each grid */
    stk_grid_tap *tap;
    int64_t taps;
    stk_grid_piece *piece;
    int64_t pieces;
    int64_t *order; /* numbers of the weights' taps: [tap][those of a point] */
    int64_t merged; /* taps of a point */
} stk_grid_phase;

typedef struct stk_grid_plan {
    int way;
    int64_t source[3], dest[3];
    int64_t source_c, dest_c;
    int64_t numbers;  /* of a point, of which */
    int64_t filled;   /* come from the source; phases with fewer have zeros */
    int64_t all_taps; /* over all phases: panels of weights have so many taps' steps */
    stk_grid_phase *phase;
    int64_t phases;
    int64_t band; /* the axis along which a picture is cut: 0, or 1 where axis 0 has one result */
} stk_grid_plan;

/* To be discarded, failed or not. */
stk_status stk_grid_plan_make(stk_grid_plan *plan, const stk_conv *conv, int way, stk_error *err);
void stk_grid_plan_discard(stk_grid_plan *plan);
/* Whether the grid computes at most twice of what is asked for, without looking at channels. */
bool stk_grid_plan_takes(const stk_conv *conv, int way);

/* Some images, or results `row` to row + rows - 1 of one along the axis `band`: a piece that is on the grid at a time. */
typedef struct stk_grid_chunk {
    const stk_grid_phase *phase;
    int64_t image, images, row, rows;
    int64_t size[3];  /* grid points along each axis */
    int64_t points;   /* of an image on one grid, */
    int64_t together; /* and of all images: from grid to grid */
} stk_grid_chunk;

/* rows: so many at most, with all images. */
stk_grid_chunk stk_grid_chunk_of(const stk_grid_plan *plan, const stk_grid_phase *phase,
                                 int64_t image, int64_t images, int64_t row, int64_t rows);
/* From the point of a result to that of the tap. */
int64_t stk_grid_shift(const stk_grid_chunk *c, const stk_grid_tap *tap);
/* The next point from `at` on that is a result; the end of the first grid if there is none. *place: its pixel, counted from image
 * `image` of the chunk; *run: how many points behind it are the next results of the same row, itself counted. */
int64_t stk_grid_next(const stk_grid_plan *plan, const stk_grid_chunk *c, int64_t at,
                      int64_t *place, int64_t *run);
/* Row (d, h) of a grid of an image as numbers of `size` bytes: to[points of the row][numbers]. x: image 0. */
void stk_grid_row(const stk_grid_plan *plan, const stk_grid_chunk *c, int64_t grid, int64_t image,
                  int64_t d, int64_t h, const char *x, int64_t size, char *to);

#endif
