/* history.h (internal) - filling a history; reading it is public. */
#ifndef STK_TRAIN_HISTORY_H
#define STK_TRAIN_HISTORY_H

#include "base/json.h"
#include "stoker/train.h"

stk_history *stk_history_new(void); /* counted, by one thread; NULL when out of memory */
stk_history *stk_history_retain(stk_history *h);
/* One row. A name that was not there before gets NaN for the epochs before; one that is not in `logs` gets NaN now. */
STK_MUST_USE stk_status stk_history_add(stk_history *h, int64_t epoch, const stk_logs *logs,
                                        stk_error *err);
void stk_history_write(const stk_history *h, stk_json_writer *w); /* an object */
STK_MUST_USE stk_status stk_history_read(stk_history *h, const stk_json *object, stk_error *err);

#endif
