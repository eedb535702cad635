/* onednn.h - oneDNN, opened when the first problem asks that can use it: 30 ms and 12 MB that small
 * models never pay. Needs only its header at build time; without that (STK_HAVE_ONEDNN 0) this header
 * and everything behind it is empty.
 *
 *     const stk_onednn *dnn = stk_onednn_get();        // NULL: not on this machine
 *     int was = stk_onednn_enter(dnn);                 // one thread inside, whatever the caller has set
 *     dnnl_status_t s = dnn->dnnl_sgemm(...);
 *     stk_onednn_leave(dnn, was);
 *     return stk_onednn_status(s, "dnnl_sgemm", err);
 *
 * It never starts threads of its own here: two pools that wait for each other by spinning slow both
 * down many times over. So it is called from inside our pool, single-threaded, and a library whose
 * threads we cannot switch off is not used. */
#ifndef STK_DEVICE_CPU_ONEDNN_H
#define STK_DEVICE_CPU_ONEDNN_H

#if STK_HAVE_ONEDNN

#include "base/status.h"

#include <dnnl.h>
#include <stdbool.h>

typedef struct stk_onednn {
#define STK_ONEDNN_COMMON(name)    __typeof__(name) *name;
#define STK_ONEDNN_PRIMITIVE(name) __typeof__(name) *name;
#include "device/cpu/onednn.def"
    int major, minor; /* of the library found */
    bool primitives;  /* the PRIMITIVE functions are there, with the types of our dnnl.h */
    int (*omp_get_max_threads)(void); /* NULL when the library is sequential by itself */
    void (*omp_set_num_threads)(int);
} stk_onednn;

/* Opens the library at the first call; the answer is the same for ever after. Any thread. */
const stk_onednn *stk_onednn_get(void);

/* Around calls, on the calling thread: leave puts the thread's own OpenMP setting back. */
static inline int stk_onednn_enter(const stk_onednn *dnn)
{
    if (!dnn->omp_set_num_threads) return 0;
    int was = dnn->omp_get_max_threads();
    if (was != 1) dnn->omp_set_num_threads(1);
    return was;
}
static inline void stk_onednn_leave(const stk_onednn *dnn, int was)
{
    if (was > 1) dnn->omp_set_num_threads(was);
}

/* The CPU engine of the process, and a stream of the calling thread (gone when the thread ends); both
 * stay the library's: never destroy them. */
stk_status stk_onednn_engine(dnnl_engine_t *out, stk_error *err);
stk_status stk_onednn_stream(dnnl_stream_t *out, stk_error *err);

/* What oneDNN answered to `call`, as ours. */
stk_status stk_onednn_status(dnnl_status_t status, const char *call, stk_error *err);

#endif
#endif
