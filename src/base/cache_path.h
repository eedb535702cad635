/* cache_path.h - where things are kept that can be made again. */
#ifndef STK_BASE_CACHE_PATH_H
#define STK_BASE_CACHE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* $STOKER_CACHE/name, else $XDG_CACHE_HOME/stoker/name, else ~/.cache/stoker/name; the folders in
 * front of `name` (which may have some itself) are made. false when there is no such place, when
 * STOKER_CACHE is set but empty (no cache wanted), or when the path does not fit. */
bool stk_cache_path(const char *name, char *path, size_t size);

#endif
