/* elect_cache.h - winners of kernel elections, remembered between runs.
 *
 * A text file in the user's cache folder (kernels.txt of the CPU, one per other device), one line per problem:
 *
 *     stoker-kernels 1 <machine>            first line: format and machine (CPU model, ISA, build)
 *     <key: 16 hex> <kernel> <name> <check: 8 hex>
 *
 * The file is never trusted: another machine, a bad check or a name that does not exist means the line is not there.
 * All calls take NULL (no cache: no home folder, read-only disk) and then remember nothing. */
#ifndef STK_DEVICE_ELECT_CACHE_H
#define STK_DEVICE_ELECT_CACHE_H

#include "device/kernels.h"

typedef struct stk_elect_cache stk_elect_cache;

stk_elect_cache *stk_elect_cache_open(const char *file, const char *machine);
void stk_elect_cache_close(stk_elect_cache *c); /* writes what was added: temporary file, rename */
const char *stk_elect_cache_find(const stk_elect_cache *c, uint64_t key);
void stk_elect_cache_add(stk_elect_cache *c, uint64_t key, stk_kernel kernel, const char *name);
uint64_t stk_elect_key(int32_t kernel, const void *params, int64_t size, int32_t threads);

#endif
