/* map_plan.h - the recordings of a MapFn: for each set of shapes a program, its inputs and where its outputs come from. */
#ifndef PY_MAP_PLAN_H
#define PY_MAP_PLAN_H

#include "data.h"
#include "trace.h"

#include <pthread.h>

typedef struct py_plan py_plan;

typedef struct py_plans {
    py_plan *first; /* the last one used first */
    int32_t count, nslots;
    long long calls;
    pthread_mutex_t lock; /* of the list and of idle programs, never held while something runs */
} py_plans;

void py_plans_init(py_plans *plans);
void py_plans_free(py_plans *plans);

/* With the interpreter's lock. An output is the number of a slot, an eager tensor, or a value of the trace. */
int py_plans_add(py_plans *plans, int32_t nslots, PyObject *types, py_trace *trace, PyObject *feeds,
                 PyObject *outputs);
/* Without it, on any thread. *fits: there is a plan for these slots, and the status is what became of it. */
stk_status py_plans_run(py_plans *plans, const stk_map_info *info, stk_tensor *const *slot,
                        stk_tensor **out, bool *fits, stk_error *err);

#endif
