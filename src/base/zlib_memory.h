/* zlib_memory.h - zlib takes its memory from base/memory.h, so that running out of it is tested as everywhere.
 *
 *     z_stream z = {.zalloc = stk_zlib_alloc, .zfree = stk_zlib_free}; */
#ifndef STK_BASE_ZLIB_MEMORY_H
#define STK_BASE_ZLIB_MEMORY_H

#include "base/memory.h"

static inline void *stk_zlib_alloc(void *context, unsigned count, unsigned size)
{
    (void)context;
    return stk_calloc(count, size);
}

static inline void stk_zlib_free(void *context, void *memory)
{
    (void)context;
    stk_free(memory);
}

#endif
