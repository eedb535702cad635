/* conv_plan.h - how the own kernels walk one image: phases of pixels, bands of the source, runs of taps.
 *
 * Forward and backward-data are the same walk. Every destination pixel is a weighted sum over taps of source pixels:
 *
 *     forward         source x, destination y:  one phase; source = destination * stride - low + tap * dilation
 *     backward data   source dy, destination dx: destination pixels whose index has the same remainder by the stride
 *                     use the same taps, and neighbours among them read neighbouring source pixels. Each
 *                     remainder is a phase.
 *
 * A phase is walked in bands of rows x cols destination pixels. When taps reach outside the image, the
 * band's source is copied into scratch with zeros around it; else it is read in place. */
#ifndef STK_DEVICE_CPU_CONV_PLAN_H
#define STK_DEVICE_CPU_CONV_PLAN_H

#include "base/memory.h"
#include "device/cpu/vec/conv.h"
#include "device/kernels.h"

typedef struct stk_conv_axis {
    int64_t to, to_step, count; /* destination pixels: to, to + to_step, ... */
    int64_t from,
        from_step; /* source index of the first tap, per destination pixel; may be outside */
    int64_t reach; /* source pixels from the first tap to the last, inclusive; 0: no taps */
} stk_conv_axis;

typedef struct stk_conv_phase {
    stk_conv_axis axis[3];
    bool padded;                  /* some tap is outside: bands are copied */
    int64_t band_rows, band_cols; /* destination pixels per band (of axis 1 and 2) */
    int64_t span[3]; /* source sizes that run.x counts in: of the band or of the image */
    stk_conv_run *run;
    int64_t runs;
} stk_conv_phase;

typedef struct stk_conv_plan {
    const stk_conv *conv;
    bool back;                  /* backward data */
    int64_t source[3], dest[3]; /* spatial sizes */
    int64_t source_c, dest_c;   /* channels of a pixel */
    int64_t size;               /* bytes of an element of the source: 4, until a kernel says 2 */
    int64_t inner, columns;     /* source and destination channels of one group */
    int64_t taps;
    int64_t rows;        /* taps * inner: rows of the weight matrix of one group */
    int64_t band_source; /* elements of source that a band should not exceed, */
    int64_t band_pixels; /* and destination pixels */
    /* that pass the weights together, where they are small and the weights are not */
    int64_t images;
    int64_t phases[3]; /* per axis */
} stk_conv_plan;

void stk_conv_plan_init(stk_conv_plan *plan, const stk_conv *conv, bool back, int64_t band_source,
                        int64_t band_pixels);
/* Phase number `index` of phases[0] * phases[1] * phases[2], without its runs. */
void stk_conv_phase_get(const stk_conv_plan *plan, int64_t index, stk_conv_phase *phase);
/* Fills at most `taps` runs; `row` counts weight rows from phase to phase. When order is not NULL it
 * gets the tap of each block of `inner` rows. */
void stk_conv_phase_runs(const stk_conv_plan *plan, int64_t index, stk_conv_phase *phase,
                         int64_t *row, int64_t *order);

/* All phases with their runs, which are one array that begins at phase[0].run. */
typedef struct stk_conv_phases {
    int64_t count;
    stk_conv_phase *phase;
    int64_t *order; /* tap of each block of rows of the packed weights */
} stk_conv_phases;

/* To be discarded, failed or not. */
stk_status stk_conv_phases_make(const stk_conv_plan *plan, stk_conv_phases *all, stk_error *err);
void stk_conv_phases_discard(stk_conv_phases *all);

/* Elements of one image's largest band in scratch; -1 when that is beyond reason. */
int64_t stk_conv_plan_band(const stk_conv_plan *plan);

/* The source of one band: of image x, depth index d, destination rows from `row`, cols from `col`. Returns the address
 * of the first pixel; copies into `band` when the phase is padded. */
const void *stk_conv_band(const stk_conv_plan *plan, const stk_conv_phase *phase, const void *x,
                          int64_t d, int64_t row, int64_t rows, int64_t col, int64_t cols,
                          void *band);

static inline int64_t stk_conv_plan_phases(const stk_conv_plan *plan)
{
    return plan->phases[0] * plan->phases[1] * plan->phases[2];
}

/* Is it a depthwise convolution that conv_deep.c computes? */
bool stk_conv_deep_takes(const void *params);

/* stk_impl.aligned: which args are cut along with the images: x and y, never the weights. */
uint32_t stk_conv_data_aligned(const void *params);
uint32_t stk_conv_weight_aligned(const void *params);

/* A kernel that goes the three ways (forward, back to the source, back to the weights) by one `scratch` and one `prepare` that are
 * told which. */
#define STK_CONV_WAY(word, WAY)                                                                    \
    static int64_t word##_scratch(const void *params, int32_t parts)                               \
    {                                                                                              \
        return scratch(params, WAY, parts);                                                        \
    }                                                                                              \
    static stk_status word##_prepare(stk_launch *launch, stk_error *err)                           \
    {                                                                                              \
        return prepare(launch, WAY, err);                                                          \
    }

#endif
