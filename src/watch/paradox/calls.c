/* calls.c - experiment 5: many tiny operations, called one by one and as one. */
#include "watch/paradox/experiments.h"

#include "base/memory.h"
#include "stoker/eager.h"

enum { PAIRS = 1000, EDGE = 10, NUMBERS = EDGE * EDGE };
enum {
    STRETCH = 100
}; /* calls of a step, one by one: where each takes a millisecond a turn has to end, too */

typedef stk_status tiny_call(stk_eager *e, stk_tensor *a, stk_tensor *b, stk_tensor **out);

typedef struct calls {
    stk_eager *eager;
    tiny_call *call;
    int32_t n, at;                       /* tensors: PAIRS, or 1 that holds all; the next one */
    int32_t stretch;                     /* calls of a step */
    stk_tensor *a[PAIRS], *b[PAIRS], *c; /* on the device; c: the last result */
} calls;

/* Somebody wants to see the last result. */
static stk_status wait_for(const calls *s, stk_error *err)
{
    stk_tensor *here = NULL;
    stk_watch_begin(STK_BOOK_SYNC);
    stk_status status = stk_tensor_to(s->c, NULL, &here, err);
    stk_watch_end(STK_BOOK_SYNC);
    stk_tensor_release(here);
    return status;
}

static stk_status one_stretch(calls *s, stk_error *err)
{
    stk_status status = STK_OK;
    stk_watch_begin(STK_BOOK_DISPATCH); /* kernels inside of it book themselves */
    for (int32_t k = 0; k < s->stretch && status == STK_OK; k++) {
        stk_tensor_release(s->c);
        s->c = NULL;
        status = s->call(s->eager, s->a[s->at], s->b[s->at], &s->c);
        s->at = (s->at + 1) % s->n;
    }
    stk_watch_end(STK_BOOK_DISPATCH);
    if (status != STK_OK && err) *err = *stk_eager_error(s->eager);
    return status;
}

static stk_status run(void *self, int64_t steps, stk_error *err)
{
    for (int64_t i = 0; i < steps; i++) {
        stk_watch_step(1);
        STK_TRY(one_stretch(self, err));
        STK_TRY(wait_for(self, err));
    }
    stk_watch_step(1);
    return STK_OK;
}

/* The last of the results: both have it after whole rounds. */
static stk_status outcome(void *self, stk_tensor **out, stk_error *err)
{
    calls *s = self;
    stk_tensor *here = NULL, *last = NULL;
    STK_TRY(stk_tensor_to(s->c, NULL, &here, err));
    int64_t first = stk_tensor_count(here) / NUMBERS - 1;
    stk_status status = stk_tensor_reshape(here, 2, (int64_t[]){first + 1, NUMBERS}, &last, err);
    if (status == STK_OK)
        status = stk_tensor_slice(last, (int64_t[]){first, 0}, (int64_t[]){1, NUMBERS}, out, err);
    stk_tensor_release(last);
    stk_tensor_release(here);
    return status;
}

static void close_calls(void *self)
{
    calls *s = self;
    for (int32_t k = 0; k < PAIRS; k++) {
        stk_tensor_release(s->a[k]);
        stk_tensor_release(s->b[k]);
    }
    stk_tensor_release(s->c);
    stk_eager_release(s->eager);
    stk_free(s);
}

static stk_status place(stk_device *device, const float *from, int64_t matrices, stk_tensor **out,
                        stk_error *err)
{
    stk_tensor *here = NULL;
    int64_t shape[3] = {matrices, EDGE, EDGE};
    int32_t rank = matrices > 1 ? 3 : 2;
    STK_TRY(stk_tensor_from(STK_F32, rank, shape + 3 - rank, from, &here, err));
    stk_status status = stk_tensor_to(here, device, out, err);
    stk_tensor_release(here);
    return status;
}

static stk_status open_calls(stk_device *device, bool cured, tiny_call *call, stk_contender *out,
                             stk_error *err)
{
    calls *s = stk_calloc(1, sizeof *s);
    stk_tensor *x = NULL, *y = NULL;
    if (!s) return stk_fail_memory(err, "an experiment", sizeof *s);
    s->call = call;
    s->n = cured ? 1 : PAIRS;
    s->stretch = cured ? 1 : STRETCH;
    stk_status status = stk_paradox_rows(2 * PAIRS, NUMBERS, &x, &y, err);
    if (status == STK_OK) status = stk_eager_new(device, &s->eager, err);
    int64_t each = PAIRS / s->n;
    for (int32_t k = 0; k < s->n && status == STK_OK; k++) {
        const float *from = (const float *)x->data + k * each * NUMBERS;
        status = place(device, from, each, &s->a[k], err);
        if (status == STK_OK) status = place(device, from + PAIRS * NUMBERS, each, &s->b[k], err);
    }
    stk_tensor_release(x);
    stk_tensor_release(y);
    if (status != STK_OK) {
        close_calls(s);
        return status;
    }
    *out = (stk_contender){.self = s,
                           .units = s->stretch * each,
                           .booked = cured ? 0 : 100,
                           .run = run,
                           .outcome = outcome,
                           .close = close_calls};
    return STK_OK;
}

stk_status stk_paradox_adds(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    return open_calls(device, cured, stk_add, out, err);
}

stk_status stk_paradox_products(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    return open_calls(device, cured, stk_matmul, out, err);
}
