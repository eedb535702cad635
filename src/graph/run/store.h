/* store.h - variables inside: named blocks of device memory with stable addresses. */
#ifndef STK_GRAPH_STORE_H
#define STK_GRAPH_STORE_H

#include "device/device.h"
#include "graph/ir/ir.h"

/* A variable that programs use in two halves (passes/halves.c) has memory of each owner's besides its own. What was written last
 * is the truth; the other form is brought up to date when somebody asks for it. */
typedef enum stk_stale {
    STK_STALE_NONE,
    STK_STALE_WHOLE, /* the halves are newer */
    STK_STALE_HALVES
} stk_stale;

typedef struct stk_variable {
    char *name;
    stk_type type;
    stk_address address; /* never moves */
    stk_tensor *adopted; /* handle of the caller's memory, when it is that */
    stk_address half[2]; /* never move either; no block: nobody asked for halves */
    int32_t axis;        /* along which they are cut, */
    int8_t stale;        /* stk_stale */
    bool shadow_stale;   /* the variable is newer than */
    stk_address shadow;  /* its bfloat16 form (passes/shadows.c); no block: nobody asked for it */
} stk_variable;

/* How a program uses a variable. */
typedef struct stk_variable_use {
    int64_t index; /* of the variable in its store */
    bool halved, assigned;
    bool shadow; /* it is the bfloat16 form that is used */
    bool kept;   /* assigned, and so is the bfloat16 form */
} stk_variable_use;

/* Finds or makes (zeroed) the variable; the type must fit. */
stk_status stk_store_bind(stk_store *s, const char *name, const stk_type *type,
                          stk_address *address, stk_error *err);
/* One half of the variable, whose whole type is given: of the first or second owner. */
stk_status stk_store_bind_half(stk_store *s, const char *name, const stk_type *type, int32_t axis,
                               int32_t owner, stk_address *address, stk_error *err);
/* May programs use it in halves along this axis? Not when its memory is the caller's. */
bool stk_store_may_halve(const stk_store *s, const char *name, int32_t axis);
/* The bfloat16 form of the float32 variable of that type. */
stk_status stk_store_bind_shadow(stk_store *s, const char *name, const stk_type *type,
                                 stk_address *address, stk_error *err);
/* May programs use that form? They that train the variable, and others if it is there already; not when its memory is the
 * caller's, or lent, or in halves. */
bool stk_store_may_shadow(const stk_store *s, const char *name, bool trained);
int64_t stk_store_index(const stk_store *s, const char *name); /* -1: there is none */
/* Brings what a program uses up to date before it runs. *clock is the store's when it ran last: as long as they are equal, nobody else
 * has touched the variables since, and there is nothing to ask. */
uint64_t stk_store_clock(const stk_store *s);
stk_status stk_store_sync(stk_store *s, const stk_variable_use *uses, int64_t n, uint64_t *clock,
                          stk_error *err);
/* After a run: memory that was lent shows it. */
stk_status stk_store_show(stk_store *s, const stk_variable_use *uses, int64_t n, stk_error *err);
bool stk_store_lends(const stk_store *s);
stk_device *stk_store_device(const stk_store *s);
int64_t stk_store_bytes(const stk_store *s);

#endif
