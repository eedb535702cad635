/* conv_few.h - backward convolutions where nearly all of dy is zero.
 *
 * Behind a maximum over all positions (text), or where only the last step of a sequence is used, one element of dy in a hundred is
 * not zero. Its share of the gradients is one filter times a number, or one window of x times a number; all others are nothing.
 * Kernels of convolution look for such images and leave them to this one. What decides are the numbers of an image (data) or of a
 * part (weights), never threads. */
#ifndef STK_DEVICE_CPU_CONV_FEW_H
#define STK_DEVICE_CPU_CONV_FEW_H

#include "device/cpu/launch.h"
#include "device/kernels.h"

/* Floats of memory that the two functions need for a problem; 0: it is never done here. */
int64_t stk_conv_few_floats(const stk_conv *c);

/* Backward data of images lo..hi: those with few numbers here, stretches of others by `dense`, which may use the memory, too. */
void stk_conv_few_data(const stk_launch *launch, int64_t lo, int64_t hi, int part, float *memory,
                       int64_t floats,
                       void (*dense)(const stk_launch *launch, int64_t lo, int64_t hi, int part));

/* Backward weight of images lo..hi, as filters: sums[output channel][tap][input channel], in `memory`. NULL: dy has too many
 * numbers, or there are fewer floats than needed. */
const float *stk_conv_few_weight(const stk_launch *launch, int64_t lo, int64_t hi, float *memory,
                                 int64_t floats);

/* Filters `first` .. first + count as columns: to[row * ld + i], rows as weights have them. */
void stk_conv_few_columns(const stk_conv *c, const float *filters, int64_t first, int64_t count,
                          float *to, int64_t ld);

#endif
