/* element_list.h - a list of elements that a node keeps: groups, buckets, windows, buffers. */
#ifndef STK_DATA_ELEMENT_LIST_H
#define STK_DATA_ELEMENT_LIST_H

#include "data/core/node.h"

typedef struct stk_element_list { /* zero, and width set, to begin with */
    int32_t width;                /* parts of an element */
    int64_t count, capacity;
    stk_tensor **parts; /* count * width */
    stk_stage *stage;   /* whose budget counts what is held; NULL: nobody's */
} stk_element_list;

/* Moves the element's handles in; the parts are NULL afterwards. On failure they stay with the caller. */
stk_status stk_element_list_add(stk_element_list *h, stk_tensor **parts, stk_error *err);
void stk_element_list_drop(stk_element_list *h, int64_t first); /* releases the first elements */
void stk_element_list_clear(stk_element_list *h);               /* releases all; the array stays */
void stk_element_list_release(stk_element_list *h);
void stk_element_list_save(const stk_element_list *h, stk_state *out);
stk_status stk_element_list_restore(stk_element_list *h, stk_state *in, stk_error *err);
int64_t stk_parts_bytes(int64_t n, stk_tensor *const *parts);

/* A dataset of these very elements, which it takes out of the list. */
stk_dataset *stk_data_elements(stk_element_list *h, const stk_schema *schema, stk_error *err);

#endif
