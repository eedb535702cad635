/* map.h - a whole file as memory, read only, without reading it.
 *
 * The pages come when they are touched. A file that somebody makes shorter while it is mapped kills
 * the reader (SIGBUS): map files that are finished, as data sets are. */
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

#endif
