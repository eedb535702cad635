/* version.c - the version and what the build found; one row per optional part. */
#include "stoker/version.h"

#include <stddef.h>

#ifndef STK_VERSION
#define STK_VERSION "unknown"
#endif
#ifndef STK_HAVE_ONEDNN
#define STK_HAVE_ONEDNN 0
#endif
#ifndef STK_HAVE_XSMM
#define STK_HAVE_XSMM 0
#endif
#ifndef STK_HAVE_JPEG
#define STK_HAVE_JPEG 0
#endif
#ifndef STK_HAVE_PNG
#define STK_HAVE_PNG 0
#endif

#ifndef STK_HAVE_HDF5
#define STK_HAVE_HDF5 0
#endif

#define FOUND(have, how) ((have) ? how : "no")

static const struct {
    const char *name, *text;
} features[] = {
#if defined(__clang__)
    {"compiler", "clang " __clang_version__},
#else
    {"compiler", "gcc " __VERSION__},
#endif
#if defined(__x86_64__)
    {"kernels", "x86-64-v2, avx2, avx512 (chosen at run time)"},
#else
    {"kernels", "portable"},
#endif
    {"onednn", FOUND(STK_HAVE_ONEDNN, "yes (opened at run time)")},
    {"libxsmm", FOUND(STK_HAVE_XSMM, "yes")},
    {"jpeg", FOUND(STK_HAVE_JPEG, "yes")},
    {"png", FOUND(STK_HAVE_PNG, "yes")},
    {"hdf5", FOUND(STK_HAVE_HDF5, "yes (opened at run time)")},
    {"zlib", "yes"},
};

enum { FEATURES = sizeof features / sizeof *features };

const char *stk_version(void) { return STK_VERSION; }
int32_t stk_feature_count(void) { return FEATURES; }

const char *stk_feature_name(int32_t index)
{
    return index >= 0 && index < FEATURES ? features[index].name : NULL;
}

const char *stk_feature_text(int32_t index)
{
    return index >= 0 && index < FEATURES ? features[index].text : NULL;
}
