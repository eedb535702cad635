/* paradox.h - what was measured, for those who tell it. */
#ifndef STK_WATCH_PARADOX_PARADOX_H
#define STK_WATCH_PARADOX_PARADOX_H

#include "watch/paradox/experiments.h"

enum { STK_PARADOX_DEVICES = 8, STK_PARADOX_CELLS = 128 };

struct stk_paradox {
    int64_t created; /* seconds since 1970 */
    double seconds;  /* it took */
    int32_t ndevices, ncells;
    stk_device_report devices[STK_PARADOX_DEVICES];
    stk_paradox_cell cells[STK_PARADOX_CELLS]; /* by row, then device */
};

/* The cells of one row that stand together from `at` on. */
int32_t stk_paradox_together(const stk_paradox *p, int32_t at);
/* "62 % input wait, 35 % kernels" into text; returns text. */
char *stk_paradox_books_line(const stk_paradox_side *s, char *text, size_t room);
/* "1.88x (1.80-1.95)", "too noisy" ... into text; returns text. */
char *stk_paradox_gain_text(const stk_paradox_cell *c, char text[48]);
/* "2.10x slower", "1.30x faster" into text; returns text. */
char *stk_paradox_times_text(double times, char text[24]);
/* As written the second is so many times slower than the first (below 1: faster), and cured. */
bool stk_paradox_against(const stk_paradox_cell *first, const stk_paradox_cell *second,
                         double *written, double *cured);
stk_status stk_paradox_put_html(const stk_paradox *p, char **text, stk_error *err);

#endif
