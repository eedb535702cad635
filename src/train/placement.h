/* placement.h - "auto" inside. */
#ifndef STK_TRAIN_PLACEMENT_H
#define STK_TRAIN_PLACEMENT_H

#include "stoker/placement.h"

/* As stk_place_training; devices whose prediction is at most `close` times the best one are tried. INFINITY: all. */
STK_MUST_USE stk_status stk_place_among(stk_model *model, const stk_trainer_options *how,
                                        const stk_train_data *data, int64_t batch, double close,
                                        stk_placement *out, stk_error *err);

#endif
