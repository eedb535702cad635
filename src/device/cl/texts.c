/* The files of text/, as the build put them into an array. */
#include "device/cl/cl.h"

#include <string.h>

#include STK_CL_TEXTS

const stk_cl_source *stk_cl_text(const char *name)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(texts[i].name, name)) return &texts[i];
    return &texts[0]; /* names are ours: one that is missing does not build */
}
