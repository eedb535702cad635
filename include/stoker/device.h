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
 * A device is a counted handle. Programs, stores and eager contexts keep theirs alive. */
#ifndef STOKER_DEVICE_H
#define STOKER_DEVICE_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device stk_device;

typedef struct stk_device_report {
    char name[64];       /* "cpu:0" */
    char detail[192];    /* model and instruction set */
    int32_t threads;     /* threads a launch can use */
    int64_t memory;      /* bytes */
    double fork_join_ns; /* measured cost of one parallel region */
} stk_device_report;

/* "cpu:0" or "cpu". threads 0 = all the process may use (affinity and cgroup counted). */
STK_API STK_MUST_USE stk_status stk_device_open(const char *name, int32_t threads, stk_device **out,
                                                stk_error *err);
STK_API stk_device *stk_device_retain(stk_device *device);
STK_API void stk_device_release(stk_device *device);
STK_API void stk_device_describe(stk_device *device, stk_device_report *out);

#ifdef __cplusplus
}
#endif
#endif
