/* placement.h - "auto" inside. */
#ifndef STK_TRAIN_PLACEMENT_H
#define STK_TRAIN_PLACEMENT_H

#include "stoker/placement.h"

typedef struct stk_place_rules {
    /* Devices whose prediction is at most so many times the best one are tried: INFINITY all, 0 none. */
    double close;
    /* A device that is looked at even if it is taken only by name; NULL: none. */
    const char *also;
} stk_place_rules;

/* As stk_place_training, by these rules. */
STK_MUST_USE stk_status stk_place_among(stk_model *model, const stk_trainer_options *how,
                                        const stk_train_data *data, int64_t batch,
                                        const stk_place_rules *rules, stk_placement *out,
                                        stk_error *err);

#endif
