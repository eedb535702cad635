/* Marks: a short list of input states, oldest first. */
#include "data/workers/marks.h"

#include <string.h>

stk_status stk_marks_note(stk_marks *m, stk_iter *in, int64_t number, int64_t every, stk_error *err)
{
    if (m->count && number < m->items[m->count - 1].number + every) return STK_OK;
    if (!STK_GROW(m->items, m->count, m->capacity)) return stk_fail_memory(err, "marks", 64);
    stk_mark *mark = &m->items[m->count];
    *mark = (stk_mark){.number = number};
    stk_status status = stk_iter_save(in, &mark->state, err);
    if (status == STK_OK) status = stk_state_status(&mark->state, err);
    if (status != STK_OK) {
        stk_state_release(&mark->state);
        return status;
    }
    m->count++;
    return STK_OK;
}

void stk_marks_forget(stk_marks *m, int64_t number)
{
    int64_t gone = 0;
    while (gone + 1 < m->count && m->items[gone + 1].number <= number)
        stk_state_release(&m->items[gone++].state);
    if (!gone) return;
    memmove(m->items, m->items + gone, (size_t)(m->count - gone) * sizeof *m->items);
    m->count -= gone;
}

stk_status stk_marks_save(const stk_marks *m, int64_t number, stk_state *out, stk_error *err)
{
    const stk_mark *best = NULL;
    for (int64_t i = 0; i < m->count; i++)
        if (m->items[i].number <= number) best = &m->items[i];
    if (!best)
        return stk_fail(err, STK_ERR_INTERNAL, "marks: no way back to element %lld",
                        (long long)number);
    stk_state_put(out, number);
    stk_state_put(out, best->number);
    stk_state_put_blob(out, best->state.data, best->state.size);
    return STK_OK;
}

stk_status stk_marks_restore(stk_iter *in, stk_state *from, int64_t *number, stk_error *err)
{
    *number = stk_state_get_in(from, 0, INT64_MAX);
    int64_t mark = stk_state_get_in(from, 0, *number);
    size_t size;
    const void *data = stk_state_get_blob(from, &size);
    STK_TRY(stk_state_status(from, err));
    stk_state state = stk_state_reader(data, size);
    STK_TRY(stk_iter_restore(in, &state, err));
    bool end;
    return stk_iter_skip(in, *number - mark, &end, err);
}

void stk_marks_release(stk_marks *m)
{
    for (int64_t i = 0; i < m->count; i++) stk_state_release(&m->items[i].state);
    stk_free(m->items);
    *m = (stk_marks){0};
}
