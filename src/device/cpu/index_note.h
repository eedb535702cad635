/* index_note.h - an index out of range: kernels note the first one, the run ends behind their region and tells it.
 *
 * Kernels test the range anyway, because zeros stand for what is outside. Only the branch that is never taken knows of
 * notes. */
#ifndef STK_DEVICE_CPU_INDEX_NOTE_H
#define STK_DEVICE_CPU_INDEX_NOTE_H

#include "device/plan.h"

#include <pthread.h>

typedef struct stk_index_note {
    const stk_index_check *check;
    int *stop; /* set with the first note: the run goes no further */
    pthread_mutex_t lock;
    int64_t at; /* which index, counted through all of them; the lowest that was seen, -1: none */
    int64_t value[STK_MAX_RANK];
} stk_index_note;

/* In the arena of a plan; NULL when out of memory. */
stk_index_note *stk_index_note_new(stk_arena *arena, const stk_index_check *check, int *stop);
/* What a kernel calls with the index (or `depth` coordinates) at place `at`. note may be NULL. */
void stk_index_note_put(stk_index_note *note, int64_t at, const int64_t *value);
/* The failure that it tells, and forgets; STK_OK when there was none. */
stk_status stk_index_note_take(stk_index_note *note, stk_error *err);

#endif
