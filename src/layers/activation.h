/* activation.h - activations as layers use them: a name, or a layer. */
#ifndef STK_LAYERS_ACTIVATION_H
#define STK_LAYERS_ACTIVATION_H

#include "layers/config.h"

struct stk_layer_call;
/* x through the activation. A relative of softmax works on the last axis. */
stk_val stk_c_activate(struct stk_layer_call *c, const stk_activation *activation, stk_val x);
void stk_activation_near_misses(const char *name, char *text, size_t size);

#endif
