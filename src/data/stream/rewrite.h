/* rewrite.h - from the dataset as it was written to the plan that runs. */
#ifndef STK_DATA_REWRITE_H
#define STK_DATA_REWRITE_H

#include "data/core/node.h"

/* Text that grows; failures show as a NULL text at the end. */
typedef struct stk_notes {
    char *data;
    size_t size, capacity;
    bool failed;
} stk_notes;
void stk_notes_add(stk_notes *t, const char *format, ...) STK_PRINTF(2, 3);

/* A new handle. The plan makes the same elements in the same order. `notes` (may be NULL) gets one line per rewrite. */
stk_status stk_plan_make(stk_dataset *ds, const stk_stream_options *options, stk_notes *notes,
                         stk_dataset **plan, stk_error *err);
/* Of kinds, options and schemas: states are only taken from an equal plan. */
uint64_t stk_plan_fingerprint(const stk_dataset *plan);
/* Of the outermost options node, or the defaults. */
stk_stream_options stk_stream_options_of(const stk_dataset *ds);

#endif
