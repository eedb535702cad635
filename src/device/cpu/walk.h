/* walk.h - elements of a strided array in row-major order of some other shape. */
#ifndef STK_DEVICE_CPU_WALK_H
#define STK_DEVICE_CPU_WALK_H

#include <stdint.h>

/* n elements of `item` bytes (1, 2, 4, 8 or 16), beginning with the `start`-th in row-major order of
 * dim[rank], from from[index . stride] into a dense row. Strides in elements, any sign, 0 repeats. */
void stk_gather(int64_t item, int64_t n, void *to, const void *from, int64_t start, int32_t rank,
                const int64_t *dim, const int64_t *stride);

/* Drops sizes of 1 and joins neighbours that `count` stride sets (rows of stride[count][ld]) all walk as
 * one. Returns the new rank; at least 1 remains. */
int32_t stk_collapse(int32_t rank, int64_t *dim, int32_t count, int64_t *stride, int32_t ld);

#endif
