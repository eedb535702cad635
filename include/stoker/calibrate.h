/* calibrate.h - what a device can do, by measurement, and what follows for a program.
 *
 *     stk_device *device = NULL;
 *     stk_calibration c;
 *     if (stk_device_open("default", 0, &device, NULL) == STK_OK &&
 *         stk_device_calibrate(device, false, &c, NULL) == STK_OK)
 *         printf("%.0f ns per launch, %.1f Gflop/s\n", c.launch * 1e9, c.flops * 1e-9);
 *     stk_device_release(device); */
#ifndef STOKER_CALIBRATE_H
#define STOKER_CALIBRATE_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of work: one row of paces.def each. */
typedef enum stk_pace_kind {
#define STK_PACE(NAME, name, unit, doc) STK_PACE_##NAME,
#include "paces.def"
    STK_PACES
} stk_pace_kind;

/* What kernels of one kind took, from small to large. work 0: not measured, the device has none. */
enum { STK_PACE_POINTS = 4 };
typedef struct stk_pace {
    double work[STK_PACE_POINTS];    /* in the unit of its row */
    double seconds[STK_PACE_POINTS]; /* of one kernel with that much work, its launch included */
} stk_pace;

typedef struct stk_calibration {
    double launch;     /* seconds that one small kernel adds to a run */
    double run;        /* that a run of one kernel takes when many are asked for without waiting */
    double feed;       /* that another input, however small, adds to each run */
    double round_trip; /* from asking for a run to having its result on the host */
    double up, down;   /* bytes per second from and to plain memory; 0: nothing is copied */
    double up_pinned;  /* from memory of the device's fast kind */
    double flops;      /* per second, of a large matrix product */
    double bytes;      /* per second, of elementwise work on large arrays */
    stk_pace pace[STK_PACES];
    /* What an island in the middle adds to a run: down, wait, up, the work itself apart. By its bytes, down and up together: what
     * crosses over has left the caches on both sides, so it is slower than a copy is. */
    stk_pace crossing;
} stk_calibration;

/* Measured now (`again`), or as it was measured before with this processor, device and version. Takes some seconds. */
STK_API STK_MUST_USE stk_status stk_device_calibrate(stk_device *device, bool again,
                                                     stk_calibration *out, stk_error *err);

/* Seconds of one kernel with so much work: between two points by powers, above the last in proportion, below the first never
 * less than a launch. */
STK_API double stk_pace_seconds(const stk_calibration *c, stk_pace_kind kind, double work);
/* Seconds that one run of the program should take on a device with these numbers, its batch sent up meanwhile. `host`: the
 * numbers of cpu:0, for what runs there instead; NULL: that part is not counted. */
STK_API double stk_program_predict(const stk_program *p, const stk_calibration *c,
                                   const stk_calibration *host);
/* What crossing over for this row of stk_program_islands should add to a run, without the work itself. `first`: its island
 * begins with it. */
STK_API double stk_island_predict(const stk_island *row, bool first, const stk_calibration *c);
/* What all islands of the program together should add to a run: crossings, bytes and, with the numbers of cpu:0, the work itself.
 * What the CPU's part took is known once the program has run; before that a function of the host counts as one pass over its
 * arrays. */
STK_API double stk_program_predict_islands(const stk_program *p, const stk_calibration *c,
                                           const stk_calibration *host);

/* What runs where: one line per operation with its layer, kernel, implementation and device; those that the device does not
 * take with the reason and their bytes. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_program_placement(const stk_program *p, char **text,
                                                      stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
