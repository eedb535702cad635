/* pixels_program.h - two programs as one, for maps that follow each other. */
#ifndef STK_DATA_PIXELS_PROGRAM_H
#define STK_DATA_PIXELS_PROGRAM_H

#include "stoker/pixels.h"

/* The steps of both. A run with seed s then gives each part stk_seed_mix(its seed, s), unless it was joined
 * before and has seeds of its own. */
stk_status stk_pixels_join(const stk_pixels *first, const stk_pixels *second,
                           const uint64_t seeds[2], stk_pixels **out, stk_error *err);
bool stk_pixels_are_pure(const stk_pixels *pixels); /* nothing is drawn at random */
/* Both after each other give the bits of both as one: no number is scaled twice in one pass over the joint. */
bool stk_pixels_part_exactly(const stk_pixels *first, const stk_pixels *second);

#endif
