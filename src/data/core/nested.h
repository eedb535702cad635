/* nested.h - datasets as parts of elements: windows that are datasets, and what functions of pipeline files begin with.
 *
 * To code that does not know, such a part is an empty vector of the dtype of its elements; its buffer holds a handle of a
 * dataset of whole tensors ("elements"). States write these tensors out. */
#ifndef STK_DATA_NESTED_H
#define STK_DATA_NESTED_H

#include "data/core/element_list.h"

/* The schema of each part alone, n of them in a new array. */
stk_status stk_leaves_new(const stk_schema *schema, stk_schema ***out, stk_error *err);
void stk_leaves_release(int32_t n, stk_schema **leaves); /* NULL is fine */
/* `count` elements, parts[e * n + i], as n datasets of single parts; the handles are shared. count < 0: datasets that are
 * only asked for their schema. */
stk_status stk_nested_new(int32_t n, stk_schema *const *leaves, int64_t count,
                          stk_tensor *const *elements, stk_tensor **out, stk_error *err);
/* The schema of elements whose parts are such datasets. */
stk_status stk_schema_nested(const stk_schema *in, stk_schema **out, stk_error *err);

void stk_nested_save(const stk_tensor *part, stk_state *out);
stk_status stk_nested_restore(stk_state *in, stk_tensor **out, stk_error *err);

/* One element as a dataset: parts that are datasets side by side, tensors repeated along; without any, a dataset of this
 * one element. */
stk_dataset *stk_element_dataset(const stk_schema *schema, stk_tensor *const *parts,
                                 stk_error *err);

#endif
