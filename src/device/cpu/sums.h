/* sums.h - what the parts of a launch have added up for themselves becomes one: in the order of the parts, so that the bits are
 * those of any number of threads, and by stretches, so that the threads share them out. */
#ifndef STK_DEVICE_CPU_SUMS_H
#define STK_DEVICE_CPU_SUMS_H

#include "device/cpu/launch.h"

enum { STK_SUMS_PIECE = 4096 }; /* numbers that one thread adds up at a time */

/* The sums of the first part that has any: those of all parts, once they are joined. n = 0: no part was run, or none keeps sums. */
stk_sums stk_launch_total(const stk_launch *launch);

int64_t stk_sums_pieces(const stk_launch *launch);
void stk_sums_piece(const stk_launch *launch, int64_t piece);

/* All of them, and finish(). */
void stk_launch_join(const stk_launch *launch);

#endif
