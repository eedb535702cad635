/* conv_grid.h - what the ways of convolutions over a grid share: sizes, and the grid itself (conv_grid.c; backward weight is in
 * conv_grid_weight.c). */
#ifndef STK_DEVICE_CPU_CONV_GRID_H
#define STK_DEVICE_CPU_CONV_GRID_H

#include "base/memory.h"
#include "device/cpu/conv_grid_plan.h"
#include "device/cpu/launch.h"
#include "device/cpu/vec/conv_grid.h"

enum { STK_GRID_SLACK = 64 /* points behind a grid that tiles may read */ };

/* Bytes of each piece of a thread's room. */
typedef struct stk_grid_room {
    int64_t grid, row, squares, at, sums, turned, total;
} stk_grid_room;

typedef struct stk_grid_state {
    stk_grid_plan plan;
    bool floats;
    int64_t size, thirds; /* bytes of a number; 3 or 1 */
    int64_t images, rows; /* of a chunk */
    int64_t panels;
    stk_grid_room room;
    int64_t plane; /* bytes from third to third of the grid */
    /* Backward weight (conv_grid_weight.c): rows of the grid turned, and their thirds; steps along them */
    int64_t turned_row, turned_plane, steps;
    bool across; /* all images together, by blocks of weights */
    const stk_vec_conv_grid *vec;
} stk_grid_state;

typedef struct stk_grid_desk {
    char *grid, *row, *squares, *turned;
    int64_t *at;
    float *sums;
} stk_grid_desk;

static inline int64_t stk_grid_line(int64_t bytes) { return stk_round_up(bytes, STK_ALIGN); }
static inline int64_t stk_grid_tile(const stk_grid_state *s) { return s->thirds * STK_GRID_TILE; }

/* To be discarded (its plan), failed or not. */
stk_status stk_grid_state_init(stk_grid_state *s, const stk_conv *c, int way, stk_error *err);
/* The state for a question about sizes; false where there is no memory, which prepare will tell. */
bool stk_grid_ask(const stk_conv *c, int way, stk_grid_state *s);
/* What backward weight wants, once the grid of some images is cut up: so many points, so many steps of 32 results. */
void stk_grid_choose_across(stk_grid_state *s, int64_t n);
void stk_grid_size_weight(stk_grid_state *s, int64_t points, int64_t steps);
bool stk_grid_takes(const stk_conv *c, int way);
stk_status stk_grid_prepare(stk_launch *launch, int way, stk_error *err);
void stk_grid_discard(stk_launch *launch);

stk_grid_desk stk_grid_desk_of(const stk_launch *launch);
/* All grids of the chunk, and zeros behind them. Are there infinite numbers? */
bool stk_grid_fill(const stk_grid_state *s, const stk_grid_desk *d, const stk_grid_chunk *c,
                   const char *x);
/* Bytes of an image of the results, or of dy. */
int64_t stk_grid_dest_bytes(const stk_grid_state *s);

#endif
