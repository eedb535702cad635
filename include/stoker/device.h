/* device.h - where programs run.
 *
 *     stk_device *device = NULL;
 *     stk_device_report report;
 *     if (stk_device_open("cpu:0", 0, &device, NULL) == STK_OK) {    // 0 = as many threads as allowed
 *         stk_device_describe(device, &report);
 *         printf("%s: %s, %d threads\n", report.name, report.detail, report.threads);
 *     }
 *     stk_device_release(device);
 *
 * A device is a counted handle. Programs, stores and eager contexts keep theirs alive. Which devices there are:
 *
 *     stk_device_report list[16];
 *     int32_t n = 0;
 *     if (stk_device_list(16, list, &n, NULL) == STK_OK)
 *         for (int32_t i = 0; i < n; i++) puts(list[i].name); */
#ifndef STOKER_DEVICE_H
#define STOKER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device stk_device;

typedef struct stk_device_report {
    char name[64];       /* "cpu:0" */
    char detail[192];    /* model and instruction set */
    int32_t threads;     /* threads a launch can use */
    int64_t memory;      /* bytes */
    double fork_join_ns; /* measured cost of one parallel region; 0: it has none */
    bool shares_memory;  /* works on the host's memory: nothing is copied up or down */
    bool only_by_name;   /* "auto" never takes it */
    int64_t largest;     /* bytes of one block at most; 0: as much as there is */
    char note[96];       /* "for tests", "experimental: ..."; "" when there is nothing to say */
    char trouble[256];   /* why it cannot be opened; "" when it can. Then all but name is empty */
} stk_device_report;

/* "cpu:0" (or "cpu" for the first of its kind), or "default": what STOKER_DEVICE names, else "cpu:0". An unknown name
 * fails with the list of those that exist. threads 0 = all the process may use (affinity and cgroup counted). */
STK_API STK_MUST_USE stk_status stk_device_open(const char *name, int32_t threads, stk_device **out,
                                                stk_error *err);
STK_API stk_device *stk_device_retain(stk_device *device);
STK_API void stk_device_release(stk_device *device);
STK_API void stk_device_describe(stk_device *device, stk_device_report *out);
STK_API const char *stk_device_name(const stk_device *device); /* "cpu:0"; "" for NULL */

/* Bytes that tensors, variables and programs hold on a device with memory of its own, and the most they held so far; with
 * `forget` the counting of the most begins again. */
STK_API void stk_device_memory(stk_device *device, bool forget, int64_t *used, int64_t *peak);

/* Where the elements of a tensor are: NULL is the host's memory. */
STK_API stk_device *stk_tensor_device(const stk_tensor *t);
/* The same numbers there (NULL: on the host); the same tensor when it is there already, or when the device works on the host's
 * memory. The host cannot touch what is on a device: functions that would say so. Eager calls on a context of that device
 * take such tensors as they are, and what is computed from one stays there. */
STK_API STK_MUST_USE stk_status stk_tensor_to(stk_tensor *t, stk_device *device, stk_tensor **out,
                                              stk_error *err);

/* The numbers of `from` into the memory of `to`, wherever the two are. On the host as stk_tensor_copy; otherwise dtypes and shapes
 * are the same. */
STK_API STK_MUST_USE stk_status stk_tensor_write(stk_tensor *to, stk_tensor *from, stk_error *err);

/* Host memory that goes up to this device fastest, for the batches of a stream (stk_stream_options.memory): what is fed from
 * there is not copied on the way. All NULL for devices that share the host's memory. */
STK_API stk_memory_source stk_device_host_memory(stk_device *device);

/* A function of the caller that runs in the middle of a program, on the CPU (graph.h: stk_g_host). */
typedef void stk_host_run(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                          stk_tensor *const *out);

/* How many there are, and a report on each of the first `room`; *n: how many were written. One that cannot be opened is listed
 * with its trouble. */
STK_API int32_t stk_device_count(void);
STK_API STK_MUST_USE stk_status stk_device_list(int32_t room, stk_device_report *out, int32_t *n,
                                                stk_error *err);
/* What this machine has and cannot use, and what would help: a card without its compiler, a driver that does not start. "" when
 * there is nothing to say. */
STK_API const char *stk_device_missing(void);

#ifdef __cplusplus
}
#endif
#endif
