/* store.h - variables inside: named blocks of device memory with stable addresses. */
#ifndef STK_GRAPH_STORE_H
#define STK_GRAPH_STORE_H

#include "device/device.h"
#include "graph/ir/ir.h"

typedef struct stk_variable {
    char *name;
    stk_type type;
    stk_address address; /* never moves */
    stk_tensor *adopted; /* handle of the caller's memory, when it is that */
} stk_variable;

/* Finds or makes (zeroed) the variable; the type must fit. */
stk_status stk_store_bind(stk_store *s, const char *name, const stk_type *type,
                          stk_address *address, stk_error *err);
stk_device *stk_store_device(const stk_store *s);
int64_t stk_store_bytes(const stk_store *s);

#endif
