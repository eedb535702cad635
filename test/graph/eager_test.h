/* eager_test.h - what tests of eager calls start with: a context, vectors, a check that shows the context's error. */
#ifndef TEST_GRAPH_EAGER_TEST_H
#define TEST_GRAPH_EAGER_TEST_H

#include "check.h"

#include "stoker/stoker.h"

static inline stk_tensor *vec(int64_t n, const float *v)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_from(STK_F32, 1, &n, v, &t, &err));
    return t;
}

static inline stk_eager *context(void)
{
    stk_eager *e = NULL;
    stk_error err;
    CHECK_OK(stk_eager_new(NULL, &e, &err));
    return e;
}

#define E_OK(call) CHECK_MSG((call) == STK_OK, "%s: %s", #call, stk_eager_error(e)->message)

#endif
