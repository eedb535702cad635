/* pad.h - elements of different sizes as one batch: padded_batch and buckets. */
#ifndef STK_DATA_PAD_H
#define STK_DATA_PAD_H

#include "data/core/node.h"

typedef struct stk_pads {
    int32_t n;
    stk_field *fields; /* padded shapes, without the batch axis; -1 = the largest of the batch */
    double *values;
} stk_pads;

/* shapes: n rows of STK_MAX_RANK sizes, or NULL for -1 everywhere the schema knows no size; values NULL: zeros. */
stk_status stk_pads_make(const char *who, const stk_schema *schema,
                         const int64_t (*shapes)[STK_MAX_RANK], const double *values, stk_pads *out,
                         stk_error *err);
void stk_pads_release(stk_pads *pads);
stk_status stk_pad_stack(stk_run *run, const char *who, const stk_pads *pads, int64_t count,
                         stk_tensor *const *parts, stk_tensor **out, stk_error *err);

#endif
