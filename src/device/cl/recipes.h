/* recipes.h - how kernel ids become launches. A recipe is one function that says which kernels run, on what, in which grid. It is called twice: when
 * a plan is arranged (then only the scratch memory it asks for counts) and when the plan is loaded. */
#ifndef STK_DEVICE_CL_RECIPES_H
#define STK_DEVICE_CL_RECIPES_H

#include "device/cl/cl.h"
#include "device/cl/text/params.h"
#include "device/elect_cache.h"

enum { STK_CL_ARGS = 64 };
typedef struct stk_cl_recipe stk_cl_recipe;

/* An elementwise operation that is done with a product while it is stored (endings.c). */
typedef struct stk_cl_ending {
    int32_t kind; /* SK_END of gemm.cl */
    int32_t with; /* argument of its task: the other operand; its result is the last argument */
} stk_cl_ending;

/* What is noted about a task. */
typedef struct stk_cl_chosen {
    const stk_cl_recipe *recipe; /* NULL: nothing to launch */
    int32_t variant;             /* of the recipe */
    stk_cl_ending ending; /* kind 0: none. Of a product: the next task, which has no launch */
    bool ended;           /* is such a next task */
} stk_cl_chosen;

/* endings.c: moves operations behind the products they can be done with, and gives all tasks their times. */
void stk_cl_find_endings(const stk_cl_device *d, stk_plan *p);

typedef struct stk_cl_build {
    stk_cl_device *d;
    stk_plan *plan;
    const stk_task *task;
    stk_cl_ending ending; /* to be done with it; its task is the next one */
    const char *impl;     /* the implementation that was chosen */
    int32_t variant;      /* which of the recipe's */
    bool loading;         /* else arranging */
    int64_t scratch;      /* bytes asked for so far */
    stk_status status;
    stk_error *err;
    /* the launch at hand */
    stk_cl_step *step;
    int32_t args;
    int64_t axes[2]; /* of a grid that is folded to one axis; 0: it is not */
    stk_cl_place slot[STK_CL_ARGS];
    int32_t nslots;
    /* what was made */
    stk_cl_step *steps;
    int64_t nsteps, cap_steps;
    stk_block **tables; /* uploaded numbers that belong to the sequence */
    int64_t ntables, cap_tables;
    bool out_of_memory;
} stk_cl_build;

/* A kernel of a text, with options; its arguments follow in order, then the grid. */
void stk_cl_kernel(stk_cl_build *b, const char *text, const char *kernel, const char *options, ...)
    __attribute__((format(printf, 4, 5)));
void stk_cl_kernel_of(stk_cl_build *b, const stk_cl_source *source, const char *kernel,
                      const char *options);
void stk_cl_arg(stk_cl_build *b, int32_t arg, int64_t item); /* argument of the task */
void stk_cl_arg_of(stk_cl_build *b, const stk_task *t, int32_t arg, int64_t item);
void stk_cl_room_arg(stk_cl_build *b, int64_t room, int64_t item); /* scratch from stk_cl_room */
void stk_cl_table_arg(stk_cl_build *b, const void *numbers, size_t bytes, int64_t item);
void stk_cl_numbers(stk_cl_build *b, const void *numbers, size_t bytes); /* by value */
void stk_cl_grid(stk_cl_build *b, int64_t items, int64_t group);         /* rounded up to groups */
void stk_cl_groups(stk_cl_build *b, int64_t x, int64_t y, int64_t z, int64_t group);
/* Before a kernel whose grid has several axes: where the device does not take as many groups on the second or third of them, the grid has one axis
 * instead, and the text is told how long they were (SK_GX, SK_GY). */
void stk_cl_axes(stk_cl_build *b, int64_t x, int64_t y, int64_t z);
int64_t stk_cl_room(stk_cl_build *b, int64_t bytes); /* scratch memory of the task */
void stk_cl_give_up(stk_cl_build *b, stk_status status);

/* out[outer, inner] = sums over parts of scratch [outer, parts, inner]. */
void stk_cl_add_parts(stk_cl_build *b, int64_t dtype, int64_t room, int32_t out, int64_t outer,
                      int64_t parts, int64_t inner);

/* ---- element types in text ------------------------------------------------------------------------------- */

const char *stk_cl_type(int64_t dtype);  /* what it is stored as: "float", "ushort" */
const char *stk_cl_lane(int64_t dtype);  /* what it is computed in: "float", "double", "sk_long" */
const char *stk_cl_short(int64_t dtype); /* suffix of its load and store: "f32", "bf16" */
const char *stk_cl_item(int64_t bytes);  /* an element that is only moved: "uchar" .. "ulong" */
static inline int64_t stk_cl_size(int64_t dtype) { return stk_dtype_size((stk_dtype)dtype); }

/* ---- the table (recipes.def) ----------------------------------------------------------------------------- */

struct stk_cl_recipe {
    int32_t kernel;
    const char *name;
    /* (optional) NULL or the reason why not */
    const char *(*refuses)(const stk_cl_device *d, const void *params);
    void (*emit)(stk_cl_build *b, const void *params);
    /* 0: one. Else sizes of tiles that may be chosen by timing: variant 0 is the one without. All have the same bits. */
    int32_t variants;
};

/* ---- tiles ----------------------------------------------------------------------------------------------- */

/* What a group of 256 items makes of a product, and what one item does. No size changes a result: every element adds up its own terms
 * in their order. */
enum { STK_CL_TILES = 4 };
typedef struct stk_cl_tile {
    int m, n, item_m, item_n;
} stk_cl_tile;
/* Large tiles of float64 would need more registers than cards have: they are of the usual size. */
const stk_cl_tile *stk_cl_tile_of(int32_t variant, int64_t dtype);
const char *stk_cl_tile_options(const stk_cl_tile *t, char text[64]);

/* elect.c: the variant that is fastest for this task, timed now or as it was timed before. `cache` is opened at the first use. */
int32_t stk_cl_elect(stk_cl_device *d, stk_plan *p, const stk_task *t, const stk_cl_recipe *recipe,
                     stk_elect_cache **cache);

/* The first of the table that takes the problem, or the one that is asked for; NULL: none, and why. */
const stk_cl_recipe *stk_cl_recipe_of(const stk_cl_device *d, stk_kernel kernel, const void *params,
                                      const char *wish, char *why, size_t size);

/* Reasons shared by several. */
const char *stk_cl_refuse_real(const stk_cl_device *d,
                               int64_t dtype); /* unless f32, or f64 it has */
const char *stk_cl_refuse_lane(const stk_cl_device *d, int64_t dtype); /* f64 without f64 */

#endif
