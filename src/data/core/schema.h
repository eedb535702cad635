/* schema.h - what nodes ask of schemas and make of them, beyond the public functions of stoker/data.h. */
#ifndef STK_DATA_SCHEMA_H
#define STK_DATA_SCHEMA_H

#include "stoker/data.h"

stk_schema *stk_schema_retain(const stk_schema *schema);
bool stk_schema_fixed(const stk_schema *schema); /* every size known, no strings */
/* The same with an axis of `size` (-1 unknown) in front of every field. */
stk_status stk_schema_batched(const stk_schema *in, int64_t size, stk_schema **out, stk_error *err);
int64_t stk_field_bytes(const stk_field *field); /* of one element; -1 when unknown */
/* An error of `who` when a part is a dataset. */
stk_status stk_schema_tensors(const char *who, const stk_schema *schema, stk_error *err);

/* Schemas side by side: "(first, second)", leaves numbered on. */
stk_status stk_schema_join(int32_t n, const stk_schema *const *schemas, stk_schema **out,
                           stk_error *err);
/* The end of the leaf's number that starts at `at` in the text of a structure; NULL when none does. */
const char *stk_structure_leaf(const char *structure, const char *at);
/* What fits both: sizes that differ become unknown; an error when dtypes or structures differ. */
stk_status stk_schema_common(const char *who, const stk_schema *a, const stk_schema *b,
                             stk_schema **out, stk_error *err);

#endif
