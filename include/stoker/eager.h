/* eager.h - operations that run at once, on tensors, with a tape for gradients.
 *
 *     stk_eager *e = NULL;
 *     stk_tensor *a = NULL, *b = NULL, *c = NULL, *dc = NULL;
 *     stk_tape *tape = NULL;
 *     stk_eager_new(NULL, &e, NULL);                                  // NULL: the CPU
 *     stk_tensor_from(STK_F32, 1, (int64_t[]){2}, (float[]){1, 2}, &a, NULL);
 *     stk_tape_begin(e, &tape);
 *     stk_tape_watch(tape, a);
 *     stk_exp(e, a, &b);
 *     stk_mul(e, a, b, &c);                                           // c = a exp(a)
 *     if (stk_tape_gradient(tape, c, 1, &a, &dc) != STK_OK) puts(stk_eager_error(e)->message);
 *     stk_tape_release(tape);
 *     stk_tensor_release(a), stk_tensor_release(b), stk_tensor_release(c), stk_tensor_release(dc);
 *     stk_eager_release(e);
 *
 * Each call gives a new handle in *out, which the caller releases. A failing call leaves *out alone and keeps
 * its message in the context. A context is used by one thread at a time; tensors may be released on any.
 *
 * The first call with new shapes prepares a kernel; later ones find it again. Results that were released are
 * used for later results of the same shape, so a loop of small operations allocates nothing. */
#ifndef STOKER_EAGER_H
#define STOKER_EAGER_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_eager stk_eager;

STK_API STK_MUST_USE stk_status stk_eager_new(stk_device *device, stk_eager **out, stk_error *err);
STK_API void stk_eager_release(stk_eager *e);
STK_API const stk_error *stk_eager_error(
    const stk_eager *e); /* of the last failing call; never NULL */
STK_API void stk_eager_set_step(stk_eager *e, int64_t step); /* counter of random operations */

/* Any operation of the graph; out has room for all its outputs. */
STK_API stk_status stk_eager_apply(stk_eager *e, stk_op op, int32_t nin, stk_tensor *const *in,
                                   const stk_attrs *attrs, stk_tensor **out);

/* stk_exp(e, x, &y), stk_add(e, a, b, &c), stk_select(e, condition, a, b, &c) ...: one per row of elementwise.def. */
#define STK_EAGER_ARGS_1 stk_tensor *x
#define STK_EAGER_ARGS_2 stk_tensor *a, stk_tensor *b
#define STK_EAGER_ARGS_3 stk_tensor *a, stk_tensor *b, stk_tensor *c
#define STK_EW(NAME, name, arity, result, doc)                                                     \
    STK_API stk_status stk_##name(stk_eager *e, STK_EAGER_ARGS_##arity, stk_tensor **out);
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#include "elementwise.def"
STK_API stk_status stk_cast(stk_eager *e, stk_tensor *x, stk_dtype dtype, stk_tensor **out);
STK_API stk_status stk_matmul(stk_eager *e, stk_tensor *a, stk_tensor *b, stk_tensor **out);
STK_API stk_status stk_matmul_t(stk_eager *e, stk_tensor *a, stk_tensor *b, bool ta, bool tb,
                                stk_tensor **out);
STK_API stk_status stk_reshape(stk_eager *e, stk_tensor *x, int32_t rank, const int64_t *shape,
                               stk_tensor **out);
STK_API stk_status stk_transpose(stk_eager *e, stk_tensor *x, const int32_t *perm,
                                 stk_tensor **out);
STK_API stk_status stk_sum(stk_eager *e, stk_tensor *x, int32_t n, const int32_t *axes, bool keep,
                           stk_tensor **out);
STK_API stk_status stk_mean(stk_eager *e, stk_tensor *x, int32_t n, const int32_t *axes, bool keep,
                            stk_tensor **out);

/* Anything else: build() adds nodes for the inputs x[0..nin) and returns one value. Prepared once per `build` and
 * shapes; `context` must not change what is built. */
typedef stk_val (*stk_eager_build)(stk_graph *g, const stk_val *x, void *context);
STK_API stk_status stk_eager_call(stk_eager *e, stk_eager_build build, void *context, int32_t nin,
                                  stk_tensor *const *in, stk_tensor **out);

/* ---- gradients ---------------------------------------------------------------------------------
 * A tape notes what is computed from watched tensors until it is released. Tapes may be nested: the gradient taken
 * on an inner tape is noted by the outer one, which gives gradients of gradients. */
typedef struct stk_tape stk_tape;
STK_API STK_MUST_USE stk_status stk_tape_begin(stk_eager *e, stk_tape **out);
STK_API stk_status stk_tape_watch(stk_tape *tape, stk_tensor *t);
/* d(sum of y)/d(x[i]) in dx[i]: a new handle, zeros when y does not depend on x[i]. May be called again. */
STK_API stk_status stk_tape_gradient(stk_tape *tape, stk_tensor *y, int32_t n, stk_tensor *const *x,
                                     stk_tensor **dx);
STK_API void stk_tape_release(stk_tape *tape);

#ifdef __cplusplus
}
#endif
#endif
