/* Internal side of status: how a failure is written down and passed up. */
#ifndef STK_BASE_STATUS_H
#define STK_BASE_STATUS_H

#include "stoker/status.h"

/* Writes code and text into err (NULL is fine) and returns code, so that a failing function ends
 * with `return stk_fail(err, STK_ERR_SHAPE, "matmul: ...")`. Text order: what, where, what fits, do
 * next. */
stk_status stk_fail(stk_error *err, stk_status code, const char *format, ...) STK_PRINTF(3, 4);

/* Puts "where: " in front of a message that a lower layer has already written. Returns err's code.
 */
stk_status stk_fail_in(stk_error *err, stk_status code, const char *format, ...) STK_PRINTF(3, 4);

/* The one message for a failed allocation of `bytes` for `what`. */
stk_status stk_fail_memory(stk_error *err, const char *what, size_t bytes);

#define STK_TRY(call)                                                                              \
    do {                                                                                           \
        stk_status stk_try_status_ = (call);                                                       \
        if (stk_try_status_ != STK_OK) return stk_try_status_;                                     \
    } while (0)

#endif
