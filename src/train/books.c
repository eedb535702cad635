/* books.c - where the time of a fit goes. Closed by construction: one clock reading ends a category and starts the next. */
#include "train/trainer.h"

static const char *const names[STK_SPAN_COUNT] = {
#define STK_SPAN(NAME, name, doc) [STK_SPAN_##NAME] = name,
#include "stoker/spans.def"
};

const char *stk_span_name(stk_span_kind kind)
{
    return (unsigned)kind < STK_SPAN_COUNT ? names[kind] : NULL;
}

void stk_books_start(stk_books *b)
{
    *b = (stk_books){.now = STK_SPAN_COUNT};
    stk_tick_scale_mark(&b->scale, 0);
    b->since = b->scale.ticks[0];
}

int32_t stk_books_enter(stk_books *b, int32_t kind)
{
    int32_t left = b->now;
    uint64_t now = stk_ticks();
    b->ticks[left] += now - b->since;
    if (b->trace && left < STK_SPAN_COUNT)
        stk_trace_put(STK_TRACE_SPAN, names[left], (uint32_t)b->steps, b->trace,
                      (int64_t)(now - b->trace));
    b->since = now;
    b->trace = stk_trace_is_on() ? now : 0;
    b->now = kind;
    return left;
}

void stk_books_end(stk_books *b)
{
    stk_books_enter(b, STK_SPAN_COUNT);
    stk_tick_scale_mark(&b->scale, 1);
}

void stk_trainer_times(const stk_trainer *t, stk_train_times *out)
{
    *out = (stk_train_times){.total = 0};
    if (!t || !t->books.scale.ns[0]) return;
    stk_books b = t->books;
    if (!b.scale.ns[1]) stk_books_end(&b); /* fit is still running: up to now, on a copy */
    double span = (double)(b.scale.ticks[1] - b.scale.ticks[0]);
    double rate = span > 0 ? (double)(b.scale.ns[1] - b.scale.ns[0]) / span * 1e-9 : 0;
    for (int i = 0; i < STK_SPAN_COUNT; i++) out->seconds[i] = (double)b.ticks[i] * rate;
    out->total = span * rate;
    out->steps = b.steps;
    out->samples = b.samples;
}
