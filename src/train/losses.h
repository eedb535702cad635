/* losses.h (internal) - shapes that losses and metrics have in common. */
#ifndef STK_TRAIN_LOSSES_H
#define STK_TRAIN_LOSSES_H

#include "base/json.h"
#include "graph/ir/ir.h"
#include "optim/options.h"
#include "stoker/losses.h"
#include "stoker/nn.h"

/* Keras: [n] and [n, 1] become alike; other ranks stay. */
void stk_same_rank(stk_graph *g, stk_val *a, stk_val *b);
/* Weights with as many axes as the values: [n] or [n, 1] beside [n, t] becomes [n, 1], beside [n] [n]. */
stk_val stk_weights_like(stk_graph *g, stk_val weights, stk_val values);
/* Labels as numbers of classes, int32 or int64, without a last axis of 1 that the predictions do not have. */
stk_val stk_class_numbers(stk_graph *g, stk_val y_true, stk_val y_pred);

/* Names and options of a class, in text or JSON, into a struct: what losses and metrics share. */
typedef struct stk_class_reader {
    const stk_names *names;
    const stk_option *rows;
    int32_t count;
    const char *(*defaults)(int32_t kind); /* "a=1,b=2": also says which rows a kind has */
    const char *always;                    /* rows that all kinds have, split by spaces */
    void (*start)(int32_t kind, void *out);
    size_t name, name_size; /* char array that takes the config's name; size 0: none */
} stk_class_reader;
/* "name:a=1", or an object with class_name and config, or (config NULL) the name alone. */
stk_status stk_class_parse(const stk_class_reader *r, const char *text, void *out, stk_error *err);
/* The options struct that `start` and the defaults give. */
void stk_class_defaults(const stk_class_reader *r, int32_t kind, void *out);

#endif
