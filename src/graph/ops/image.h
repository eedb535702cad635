/* image.h - what the image builders share. */
#ifndef STK_GRAPH_OPS_IMAGE_H
#define STK_GRAPH_OPS_IMAGE_H

#include "graph/ir/op.h"

#include "stoker/image.h"

/* The first image axis (0 or 1) of an image or a batch of images; -1 and a recorded mistake when x is none.
 * channels > 0 asks for that many. */
int32_t stk_image_axis(stk_graph *g, const char *who, stk_val x, int64_t channels);

#endif
