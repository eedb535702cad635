/* resident.h - arrays that fit live on the device for the whole of a fit. A batch is then a list of row numbers that goes up, and a small program
 * on the device that picks these rows; what it makes is what the step reads.
 *
 *     host      order of the epoch -> numbers of 32 rows -> (send)
 *     device    arrays [all rows] ----------------------> rows of the batch -> step */
#ifndef STK_TRAIN_RESIDENT_H
#define STK_TRAIN_RESIDENT_H

#include "train/batches.h"

typedef struct stk_resident stk_resident;

/* Sets b->resident where the device has memory of its own and the arrays take at most a quarter of it; else, or with
 * STOKER_DEVICE_DATA=off, leaves it NULL: batches are fed then. */
STK_MUST_USE stk_status stk_resident_open(stk_batches *b, stk_error *err);
void stk_resident_close(stk_resident *r);
int64_t stk_resident_bytes(const stk_resident *r); /* NULL: 0 */
/* As stk_function_call with the batch at hand, x: its parts, of which only shapes count. */
STK_MUST_USE stk_status stk_resident_call(stk_batches *b, stk_function *f, stk_tensor *const *x,
                                          stk_program **program, stk_error *err);

#endif
