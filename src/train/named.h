/* named.h - a list of tensors with names: what weight files and checkpoints hold. */
#ifndef STK_TRAIN_NAMED_H
#define STK_TRAIN_NAMED_H

#include "base/memory.h"
#include "stoker/tensor.h"

typedef struct stk_named {
    char *name;
    stk_tensor *tensor;
} stk_named;

typedef struct stk_named_list {
    stk_named *items;
    int64_t count, capacity;
} stk_named_list;

/* Copies the name; takes the handle over also when it fails. */
STK_MUST_USE stk_status stk_named_add(stk_named_list *list, const char *name, stk_tensor *tensor,
                                      stk_error *err);
stk_tensor *stk_named_find(const stk_named_list *list, const char *name); /* borrowed; NULL */
void stk_named_release(stk_named_list *list); /* back to the zero state */
/* Sorts an array of names and returns one that stands there twice, or NULL. */
const char *stk_named_twice(const char **names, int64_t count);

#endif
