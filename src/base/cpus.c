/* Processors from the affinity mask, memory from the machine, and both from the control groups (v1 and v2).
 *
 *     /proc/self/cgroup      0::/a/b              v2: <path>/cpu.max                 "quota period" or "max period"
 *                                                     <path>/memory.max              bytes or "max"
 *                            4:cpu,cpuacct:/a/b   v1: <path>/cpu.cfs_quota_us        -1 or quota
 *                                                     <path>/cpu.cfs_period_us
 *                                                     <path>/memory.current, memory.stat
 *                            7:memory:/a/b            <path>/memory.limit_in_bytes
 *                                                     <path>/memory.usage_in_bytes, memory.stat
 * A limit may be set at any level above us, so every parent is looked at and the least one counts.
 */
#define _GNU_SOURCE
#include "base/cpus.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool good = fgets(line, size, file) != NULL;
    fclose(file);
    return good;
}

static double read_number(const char *path)
{
    char line[64];
    return read_line(path, line, sizeof line) ? strtod(line, NULL) : 0;
}

/* What one folder allows; 0 = no limit said. */
typedef double read_limit(const char *folder, bool version2);

static double cpu_limit(const char *folder, bool version2)
{
    char path[PATH_MAX + 32], line[64];
    if (version2) {
        double quota = 0, period = 0;
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!read_line(path, line, sizeof line)) return 0;
        if (sscanf(line, "%lf %lf", &quota, &period) != 2) return 0; /* "max 100000" */
        return quota > 0 && period > 0 ? quota / period : 0;
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    double quota = read_number(path);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    double period = read_number(path);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double memory_limit(const char *folder, bool version2)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/memory.%s", folder, version2 ? "max" : "limit_in_bytes");
    return read_number(path);
}

/* Sum of the numbers behind two names in a file of "name number" lines. */
static double read_named(const char *path, const char *first, const char *second)
{
    char line[256], name[128];
    double value, sum = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%127[^: ]%*[: ]%lf", name, &value) == 2 &&
            (!strcmp(name, first) || !strcmp(name, second)))
            sum += value;
    if (file) fclose(file);
    return sum;
}

/* What a group may take beside what it has. Pages of files are given back when they are needed. */
static double memory_left(const char *folder, bool version2)
{
    char path[PATH_MAX + 32];
    double limit = memory_limit(folder, version2);
    if (limit <= 0) return 0;
    snprintf(path, sizeof path, "%s/memory.%s", folder, version2 ? "current" : "usage_in_bytes");
    double used = read_number(path);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    used -= version2 ? read_named(path, "active_file", "inactive_file")
                     : read_named(path, "total_active_file", "total_inactive_file");
    double left = limit - (used > 0 ? used : 0);
    return left > 1 ? left : 1;
}

/* The least limit from `group` up to the mount point. */
static double group_limit(const char *mount, const char *group, bool version2, read_limit *read)
{
    char folder[PATH_MAX];
    double least = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) return 0;
    for (size_t floor = strlen(mount);;) {
        double limit = read(folder, version2);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < floor) return least;
        *slash = 0;
    }
}

static bool names(const char *controllers, const char *wanted)
{
    for (const char *at = controllers; at && *at;) {
        size_t length = strcspn(at, ",");
        if (length == strlen(wanted) && strncmp(at, wanted, length) == 0) return true;
        at += length;
        if (*at == ',') at++;
    }
    return false;
}

/* Of all groups this process is in; 0 = none. */
static double least_limit(const char *root, const char *controller, read_limit *read)
{
    char path[PATH_MAX], line[PATH_MAX], mount[PATH_MAX];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group;
        if (!controllers || !(group = strchr(controllers + 1, ':'))) continue;
        *group++ = 0;
        bool version2 = *++controllers == 0;
        if (!version2 && !names(controllers, controller)) continue;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, version2 ? "" : "/",
                 version2 ? "" : controller);
        double limit = group_limit(mount, group, version2, read);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    if (file) fclose(file);
    return least;
}

int32_t stk_cpu_quota(const char *root)
{
    double least = least_limit(root, "cpu", cpu_limit);
    if (least <= 0) return 0;
    if (least > 1e6) return 1000000;
    int32_t whole = (int32_t)least;
    return whole + ((double)whole < least);
}

int32_t stk_cpu_count(void)
{
    int32_t count = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
    if (count < 1) count = (int32_t)sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 CPUs */
    if (count < 1) count = 1;
    int32_t quota = stk_cpu_quota("");
    return quota > 0 && quota < count ? quota : count;
}

/* ulimit -v and -d; INFINITY: none. */
static double process_limit(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? (double)limit.rlim_cur
               : INFINITY;
}

int64_t stk_memory_limit(const char *root)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double group = least_limit(root, "memory", memory_limit);
    double least = group > 0 && group < machine ? group : machine;
    return (int64_t)fmin(least, fmin(process_limit(RLIMIT_AS), process_limit(RLIMIT_DATA)));
}

int64_t stk_memory_left(const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    double page = (double)sysconf(_SC_PAGESIZE), whole = 0, data = 0;
    double machine = read_named(path, "MemAvailable", "") * 1024;
    if (machine <= 0) machine = (double)sysconf(_SC_PHYS_PAGES) * page;
    double group = least_limit(root, "memory", memory_left);
    double least = group > 0 && group < machine ? group : machine;
    snprintf(path, sizeof path, "%s/proc/self/statm", root);
    char line[256];
    if (read_line(path, line, sizeof line))
        (void)sscanf(line, "%lf %*f %*f %*f %*f %lf", &whole, &data);
    least = fmin(least, process_limit(RLIMIT_AS) - whole * page);
    least = fmin(least, process_limit(RLIMIT_DATA) - data * page);
    return least > 0 ? (int64_t)least : 0;
}
