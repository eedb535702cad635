/* marks.h - where an input was: so that a stage that has read ahead can be saved at what it has handed out.
 *
 * A mark is the state of the input after `number` elements. Saving writes the latest mark that is not too late; restoring
 * goes there and walks the rest of the way. All calls by the one who reads the input. */
#ifndef STK_DATA_MARKS_H
#define STK_DATA_MARKS_H

#include "data/core/node.h"

typedef struct stk_mark {
    int64_t number;
    stk_state state;
} stk_mark;

typedef struct stk_marks { /* zero to begin with */
    stk_mark *items;
    int64_t count, capacity;
} stk_marks;

/* Notes where `in` is now, when the last mark is `every` elements old or there is none. */
stk_status stk_marks_note(stk_marks *m, stk_iter *in, int64_t number, int64_t every,
                          stk_error *err);
/* Positions before `number` will not be asked for any more. */
void stk_marks_forget(stk_marks *m, int64_t number);
/* Writes how to get to `number`. */
stk_status stk_marks_save(const stk_marks *m, int64_t number, stk_state *out, stk_error *err);
/* Brings the fresh iterator there; *number is where that is. */
stk_status stk_marks_restore(stk_iter *in, stk_state *from, int64_t *number, stk_error *err);
void stk_marks_release(stk_marks *m);

#endif
