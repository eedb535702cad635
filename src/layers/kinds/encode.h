/* encode.h - how layers give class numbers: as they are, or as marks in as many places as there are classes (encoding.c). */
#ifndef STK_LAYERS_KINDS_ENCODE_H
#define STK_LAYERS_KINDS_ENCODE_H

#include "layers/layer.h"

enum { STK_OUT_INT, STK_OUT_ONE_HOT, STK_OUT_MULTI_HOT, STK_OUT_COUNT };
#define STK_OUTPUT_MODES "int|one_hot|multi_hot|count"

/* What Keras makes of class numbers: marks in `depth` places, for each number or for all of a row. */
stk_val stk_c_encode(stk_layer_call *c, stk_val x, int32_t mode, int64_t depth, stk_dtype integer);

#endif
