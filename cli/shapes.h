/* shapes.h - pictures of digits, drawn on the fly: turned, stretched, shifted, with strokes through them and noise on top. */
#ifndef STK_CLI_SHAPES_H
#define STK_CLI_SHAPES_H

#include "cli.h"

enum { SHAPE_SIDE = 24, SHAPE_CLASSES = 10 };

/* x: uint8 [rows, 24, 24, 1], y: int32 [rows]. The same seed gives the same bytes. */
stk_status cli_make_shapes(int64_t rows, uint64_t seed, stk_tensor **x, stk_tensor **y,
                           stk_error *err);
/* One line of text shows two rows of pixels. */
void cli_draw_shape(FILE *out, const unsigned char *pixels, int line);
enum { SHAPE_LINES = SHAPE_SIDE / 2 };

#endif
