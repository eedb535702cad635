/* Notes of indices out of range, and their words: TensorFlow's, which people search for. */
#include "device/cpu/index_note.h"

#include <stdio.h>
#include <string.h>

stk_index_note *stk_index_note_new(stk_arena *arena, const stk_index_check *check, int *stop)
{
    stk_index_note *note = stk_arena_alloc(arena, sizeof *note);
    if (note) *note = (stk_index_note){check, stop, PTHREAD_MUTEX_INITIALIZER, -1, {0}};
    return note;
}

/* The lowest place, so that the same one is named for any number of threads. */
void stk_index_note_put(stk_index_note *note, int64_t at, const int64_t *value)
{
    if (!note) return;
    int32_t depth = note->check->depth;
    pthread_mutex_lock(&note->lock);
    if (note->at < 0 || at < note->at) {
        note->at = at;
        memcpy(note->value, value, (size_t)(depth ? depth : 1) * sizeof *value);
    }
    pthread_mutex_unlock(&note->lock);
    __atomic_store_n(note->stop, 1, __ATOMIC_RELAXED);
}

/* "3, 1" */
static const char *list(char *out, size_t size, const char *between, int32_t n, const int64_t *v)
{
    size_t used = 0;
    out[0] = 0;
    for (int32_t i = 0; i < n && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%lld", i ? between : "", (long long)v[i]);
    return out;
}

stk_status stk_index_note_take(stk_index_note *note, stk_error *err)
{
    enum { ROOM = STK_MAX_RANK * 24 };
    if (note->at < 0) return STK_OK;
    const stk_index_check *c = note->check;
    char where[ROOM], value[ROOM], dims[ROOM], place[ROOM + 2] = "";
    int32_t axes = c->index.rank - (c->depth > 0);
    int64_t at[STK_MAX_RANK], left = note->at;
    for (int32_t d = axes - 1; d >= 0; d--) {
        at[d] = left % c->index.dim[d];
        left /= c->index.dim[d];
    }
    if (axes) snprintf(place, sizeof place, "[%s]", list(where, sizeof where, ",", axes, at));
    note->at = -1;
    if (!c->depth)
        return stk_fail(err, STK_ERR_RANGE, "%s: indices%s = %lld is not in [0, %lld)", c->who,
                        place, (long long)note->value[0], (long long)c->dim[0]);
    return stk_fail(err, STK_ERR_RANGE, "%s: indices%s = [%s] does not index into shape [%s]",
                    c->who, place, list(value, sizeof value, ", ", c->depth, note->value),
                    list(dims, sizeof dims, ",", c->depth, c->dim));
}
