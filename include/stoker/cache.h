/* cache.h - what is kept on disk because it can be made again: kernels chosen by timing, compiled programs of devices, settings and
 * indexes of input pipelines. It may be cleared at any time; the next run is slower.
 *
 *     stk_cache_report report;
 *     stk_error err;
 *     if (stk_cache_describe(&report, &err) == STK_OK)
 *         printf("%s: %lld files\n", report.path, (long long)report.files);
 *     if (0 && stk_cache_clear(&report, &err) != STK_OK) puts(err.message); // all of it
 *
 * It is in $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else ~/.cache/stoker; STOKER_CACHE= (set, but empty) means none. */
#ifndef STOKER_CACHE_H
#define STOKER_CACHE_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_cache_kind {
    char name[32]; /* file or folder in the cache */
    char what[96];
    int64_t files, bytes;
} stk_cache_kind;

typedef struct stk_cache_report {
    char path[1024]; /* "" when there is none */
    int64_t files, bytes;
    int32_t nkinds;
    stk_cache_kind kinds[8];
} stk_cache_report;

STK_API STK_MUST_USE stk_status stk_cache_describe(stk_cache_report *out, stk_error *err);
/* Removes what the report lists, and nothing else that may lie there; out: what is gone. */
STK_API STK_MUST_USE stk_status stk_cache_clear(stk_cache_report *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
