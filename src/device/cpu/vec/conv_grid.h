/* conv_grid.h - convolutions by products of tiles (tiles.h), over pixels that lie on a grid.
 *
 * On a grid every tap is a constant number of points away from the point of the result, zeros around the picture included. So 16
 * neighbours on the grid are 16 rows of a tile, whatever the tap, and nothing is gathered but the grid itself:
 *
 *     grid       [point][numbers of a point: bfloat16, zeros up to a multiple of 32]; floats: three such grids, their thirds
 *     weights    [panel of 32 channels][step][16 pairs of numbers][32 channels]; floats: three of these for each step
 *
 * A step is 32 numbers of a point for one tap. Points of the grid that are no result are multiplied like the others, and dropped.
 *
 * Gradients of weights take both pictures turned: [number][point] of the source, pairs of points of dy, which is zero where the grid
 * has no result. Floats are cut as gemm_tiles.c says, where the order of six products is explained. */
#ifndef STK_DEVICE_CPU_VEC_CONV_GRID_H
#define STK_DEVICE_CPU_VEC_CONV_GRID_H

#include "device/cpu/vec/vec.h"

enum { STK_GRID_SIDE = 32, STK_GRID_TILE = 2048, STK_GRID_SUMS = 32 * 32 * 4 /* bytes */ };

/* Results of up to 32 neighbours on the grid: where they begin, and which pixel of the results each is; -1: none. */
typedef struct stk_grid_square {
    int32_t start, rows;
    int32_t place[STK_GRID_SIDE];
} stk_grid_square;

typedef struct stk_grid_data {
    bool floats;
    const char *grid;
    int64_t point, plane; /* bytes of a point; from third to third */
    const int64_t *at;    /* of a step: bytes from the point of the result */
    int64_t steps;
    const char *weights; /* of panels for the channels from `first` on; a whole panel each, */
    int64_t first, last; /* the last one may be the last of all */
    const stk_grid_square *square;
    int64_t squares;
    char *y;          /* pixel 0, channel 0 */
    int64_t channels; /* of a pixel */
    float *sums;      /* STK_GRID_SUMS */
} stk_grid_data;

typedef struct stk_grid_weight {
    bool floats;
    const char *turned; /* the source: [number][point] */
    int64_t row, plane; /* bytes of a row; from third to third */
    const int64_t *at;  /* of a tap: bytes into a row of the numbers that it meets, */
    int64_t taps, numbers;
    int64_t steps;
    const char *dy; /* [panel of 32 channels][step][16 pairs of points][32 channels] */
    int64_t ld;     /* steps from panel to panel */
    int64_t panels;
    float *to; /* [tap][number][panels * 32], added to */
    float *sums;
} stk_grid_weight;

/* 32 rows of numbers, `from` apart by ld; lanes of them are there, lines of rows. turned: rows and numbers change places. */
typedef struct stk_grid_source {
    const void *from;
    int64_t ld, lines, lanes;
    bool floats, turned;
} stk_grid_source;

typedef struct stk_vec_conv_grid {
    /* One step of a panel of weights: lines are numbers of a point, lanes channels. Are there infinite ones? */
    bool (*pack)(const stk_grid_source *s, char *to);
    /* Points of floats, 32 numbers at a time, to their thirds; to[i * plane]. Are there infinite ones? */
    bool (*cut)(int64_t n, const float *from, char *to, int64_t plane);
    /* `count` of 32 points of bfloat16, `numbers` each, a multiple of 32: turned, to + i * row. Those of cut floats get back their
     * order. */
    void (*turn)(bool floats, int64_t count, const char *points, int64_t numbers, char *to,
                 int64_t row);
    /* 32 rows of dy, NULL: zeros; `lanes` channels of them as pairs of neighbours. Are there infinite ones? */
    bool (*zip)(bool floats, const void *const *rows, int64_t lanes, char *to);
    /* NULL where the set in use has no tiles. */
    void (*data)(const stk_grid_data *d);
    void (*weight)(const stk_grid_weight *w);
} stk_vec_conv_grid;

extern const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid);
extern const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_amx);     /* by instructions of AMX */
extern const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_standin); /* by plain C, for tests */

#endif
