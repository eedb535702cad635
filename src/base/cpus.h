/* cpus.h - how many processors and how much memory this process may really use. */
#ifndef STK_BASE_CPUS_H
#define STK_BASE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/* At least 1: the affinity mask of the calling thread, cut by the CPU quota of the control group
 * (a container with 2 CPUs on a machine with 64 must not get 64 threads). Reads files: keep it. */
int32_t stk_cpu_count(void);

/* The quota alone, rounded up, or 0 when there is none. `root` is put in front of /proc and /sys,
 * for tests; "" in earnest. */
int32_t stk_cpu_quota(const char *root);

/* Bytes: the least limit of the control groups and of this process (ulimit), or all that the machine has. */
int64_t stk_memory_limit(const char *root);
/* Bytes that may be taken now beside those that are taken, by all of these limits. Reads some files. */
int64_t stk_memory_left(const char *root);

#endif
