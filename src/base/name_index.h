/* name_index.h - finds things by name: a number for each pair of kind and name. The index keeps pointers to the names, which must
 * outlive it. A zeroed struct is an empty index.
 *
 *     stk_name_index index = {0};
 *     if (!stk_name_index_put(&index, "dense/kernel", 0, 12)) ...out of memory
 *     int64_t at = stk_name_index_find(&index, "dense/kernel", 0);   // 12; -1 when it is not there
 *     stk_name_index_release(&index);                                                              */
#ifndef STK_BASE_NAME_INDEX_H
#define STK_BASE_NAME_INDEX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_name_index_slot {
    const char *name; /* NULL: free */
    int64_t kind, number;
} stk_name_index_slot;
typedef struct stk_name_index {
    stk_name_index_slot *slots;
    int64_t count, cap; /* cap: a power of two, or 0 */
} stk_name_index;

/* Enters a name, or gives the one that is there another number. False: out of memory, the index is as before. */
bool stk_name_index_put(stk_name_index *x, const char *name, int64_t kind, int64_t number);
int64_t stk_name_index_find(const stk_name_index *x, const char *name, int64_t kind);
void stk_name_index_release(stk_name_index *x);

#endif
