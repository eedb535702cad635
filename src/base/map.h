/* map.h - a whole file as memory, read only, without reading it.
 *
 * The pages come when they are touched. What somebody takes away from a file while it is mapped reads as zeros, and
 * stk_map_check says so: ask before what was read is used. */
#ifndef STK_BASE_MAP_H
#define STK_BASE_MAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_map {
    const uint8_t *data; /* never NULL, also for an empty file */
    size_t size;
    int64_t changed_ns; /* time of the last change, since 1970 */
} stk_map;

/* sequential: the system reads ahead, and lets go of pages behind. */
STK_MUST_USE stk_status stk_map_open(const char *path, bool sequential, stk_map *out,
                                     stk_error *err);
void stk_map_close(stk_map *map); /* a zeroed map is fine */
/* STK_ERR_IO with file and offset when the file became shorter. One load of a number as long as no file did. */
STK_MUST_USE stk_status stk_map_check(const stk_map *map, stk_error *err);
STK_MUST_USE stk_status stk_maps_check(stk_error *err); /* of all that are mapped */

#endif
