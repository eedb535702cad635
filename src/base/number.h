/* number.h - numbers to text and back, exact and the same in every locale. */
#ifndef STK_BASE_NUMBER_H
#define STK_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_NUMBER_TEXT = 32 };

/* The shortest text that reads back as the same number: 0.1, 1e+22, -0, inf, nan. Returns text. */
char *stk_double_text(double value, char text[STK_NUMBER_TEXT]);
char *stk_float_text(float value, char text[STK_NUMBER_TEXT]);

/* Reads the whole of text[0..size): digits, optionally sign, fraction and exponent, as in 3, -2.5,
 * .5, 1e-3; no spaces, no hex. Rounded to nearest even; too large gives infinity. false when it is
 * not such a number. */
bool stk_parse_double(const char *text, size_t size, double *out);
/* The same for whole numbers; false also when it does not fit. */
bool stk_parse_int64(const char *text, size_t size, int64_t *out);

#endif
