/* image.h - what layers over images share: the two orders of axes. Graph operations take channels last. */
#ifndef STK_LAYERS_KINDS_IMAGE_H
#define STK_LAYERS_KINDS_IMAGE_H

#include "layers/layer.h"

enum { STK_CHANNELS_LAST, STK_CHANNELS_FIRST };
#define STK_FIELD_FORMAT(type)                                                                     \
    STK_FIELD(type, data_format, CHOICE, "channels_last", .choices = "channels_last|channels_first")

/* [n, c, h, w] -> [n, h, w, c] and back when `format` says that channels come first; else x as it is. */
static inline stk_val stk_image_last(stk_graph *g, stk_val x, int32_t format)
{
    int32_t rank = stk_g_rank(g, x), perm[STK_MAX_RANK] = {0};
    if (format == STK_CHANNELS_LAST || rank < 3) return x;
    for (int32_t i = 1; i + 1 < rank; i++) perm[i] = i + 1;
    perm[rank - 1] = 1;
    return stk_g_transpose(g, x, perm);
}
static inline stk_val stk_image_back(stk_graph *g, stk_val x, int32_t format)
{
    int32_t rank = stk_g_rank(g, x), perm[STK_MAX_RANK] = {0};
    if (format == STK_CHANNELS_LAST || rank < 3) return x;
    perm[1] = rank - 1;
    for (int32_t i = 2; i < rank; i++) perm[i] = i - 1;
    return stk_g_transpose(g, x, perm);
}

#endif
