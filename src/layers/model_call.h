/* model_call.h - one run over a model: what its calls share. */
#ifndef STK_LAYERS_MODEL_CALL_H
#define STK_LAYERS_MODEL_CALL_H

#include "layers/model.h"

enum { STK_LAYER_PATH = 512 }; /* bytes of a layer's or a weight's name with all its parents */

typedef struct stk_frame {
    stk_graph *g;
    const stk_model *model;
    stk_model *declare; /* trial: new weights are entered here; NULL afterwards */
    int32_t trial;      /* 0, 1: which trial; -1: none */
    int32_t owner;      /* number of the model's layer that is being called */
    bool training;
    int64_t seed;
    stk_val *variables, *cast; /* per weight; 0 = not in the graph yet */
    stk_val *updated; /* its value after this run, to be assigned at the end; 0 = as before */
    stk_val penalty;
    int32_t depth;
} stk_frame;

/* Losses of the weights' regularisers, added to the penalty; after all calls. */
void stk_frame_penalise_weights(stk_frame *f);

#endif
