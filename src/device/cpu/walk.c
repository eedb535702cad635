/* An odometer over the outer dimensions; the innermost one is a loop with a known step. */
#include "device/cpu/walk.h"

#include "base/shape.h"

#include <string.h>

/* One innermost run, with `room` elements up to the end of the whole row. Steps 0 and 1 are worth their own
 * loops: broadcasts and rows. Runs are often short (10 classes), so they go in blocks that may spill
 * over into the room behind, which later runs overwrite. */
enum { SPILL = 8 };
#define RUN(name, type)                                                                            \
    static inline void name(int64_t n, int64_t room, void *to, const void *from, int64_t step)     \
    {                                                                                              \
        type *y = to;                                                                              \
        const type *x = from;                                                                      \
        if (step == 0 && room >= n + SPILL) {                                                      \
            type block[SPILL];                                                                     \
            for (int k = 0; k < SPILL; k++) block[k] = x[0];                                       \
            for (int64_t i = 0; i < n; i += SPILL) memcpy(y + i, block, sizeof block);             \
        } else if (step == 0) {                                                                    \
            for (int64_t i = 0; i < n; i++) y[i] = x[0];                                           \
        } else if (step == 1) {                                                                    \
            memcpy(y, x, (size_t)n * sizeof *y);                                                   \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * step];                                    \
        }                                                                                          \
    }
typedef struct bytes16 {
    uint64_t half[2];
} bytes16;
RUN(run_1, uint8_t)
RUN(run_2, uint16_t)
RUN(run_4, uint32_t)
RUN(run_8, uint64_t)
RUN(run_16, bytes16)

typedef struct odometer {
    int64_t index[STK_MAX_RANK];
    int64_t offset; /* elements */
} odometer;

static void set(odometer *o, int64_t start, int32_t rank, const int64_t *dim, const int64_t *stride)
{
    o->offset = 0;
    for (int32_t d = rank - 1; d >= 0; d--) {
        o->index[d] = d ? start % dim[d] : start;
        start = d ? start / dim[d] : 0;
        o->offset += o->index[d] * stride[d];
    }
}

/* To the beginning of the next row. */
static inline void next_row(odometer *o, int32_t rank, const int64_t *dim, const int64_t *stride)
{
    int32_t last = rank - 1;
    o->offset -= o->index[last] * stride[last];
    o->index[last] = 0;
    for (int32_t d = last - 1; d >= 0; d--) {
        o->offset += stride[d];
        if (++o->index[d] < dim[d] || d == 0) return;
        o->offset -= dim[d] * stride[d];
        o->index[d] = 0;
    }
}

#define GATHER(run, type)                                                                          \
    do {                                                                                           \
        type *y = to;                                                                              \
        for (;;) {                                                                                 \
            int64_t length = dim[last] - o.index[last];                                            \
            if (length > n) length = n;                                                            \
            run(length, n, y, (const type *)from + o.offset, stride[last]);                        \
            y += length;                                                                           \
            n -= length;                                                                           \
            if (n == 0) return;                                                                    \
            next_row(&o, rank, dim, stride);                                                       \
        }                                                                                          \
    } while (0)

void stk_gather(int64_t item, int64_t n, void *to, const void *from, int64_t start, int32_t rank,
                const int64_t *dim, const int64_t *stride)
{
    if (n <= 0) return;
    int64_t one = n, none = 0;
    if (rank == 0) rank = 1, dim = &one, stride = &none;
    int32_t last = rank - 1;
    odometer o;
    set(&o, start, rank, dim, stride);
    switch (item) {
    case 1: GATHER(run_1, uint8_t); break;
    case 2: GATHER(run_2, uint16_t); break;
    case 4: GATHER(run_4, uint32_t); break;
    case 8: GATHER(run_8, uint64_t); break;
    default: GATHER(run_16, bytes16); break;
    }
}

int32_t stk_collapse(int32_t rank, int64_t *dim, int32_t count, int64_t *stride, int32_t ld)
{
    int32_t kept = 0;
    for (int32_t d = 0; d < rank; d++) {
        if (dim[d] == 1) continue;
        bool joins = kept > 0;
        for (int32_t s = 0; s < count && joins; s++)
            joins = stride[s * ld + kept - 1] == stride[s * ld + d] * dim[d];
        int32_t to = joins ? kept - 1 : kept++;
        dim[to] = joins ? dim[to] * dim[d] : dim[d];
        for (int32_t s = 0; s < count; s++) stride[s * ld + to] = stride[s * ld + d];
    }
    if (kept) return kept;
    dim[0] = 1;
    for (int32_t s = 0; s < count; s++) stride[s * ld] = 1;
    return 1;
}
