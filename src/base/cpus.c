/* CPU count from the affinity mask and the control groups (v1 and v2).
 *
 *     /proc/self/cgroup      0::/a/b              v2: <path>/cpu.max            "quota period" or "max period"
 *                            4:cpu,cpuacct:/a/b   v1: <path>/cpu.cfs_quota_us   -1 or quota
 *                                                     <path>/cpu.cfs_period_us
 * A quota may be set at any level above us, so every parent is looked at and the least one counts.
 */
#define _GNU_SOURCE
#include "base/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* CPUs allowed by one folder; 0 = no limit said. */
static double folder_limit(const char *folder, bool version2)
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

/* The least limit from `group` up to the mount point. */
static double group_limit(const char *mount, const char *group, bool version2)
{
    char folder[PATH_MAX];
    double least = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) return 0;
    for (size_t floor = strlen(mount);;) {
        double limit = folder_limit(folder, version2);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < floor) return least;
        *slash = 0;
    }
}

static bool names_cpu(const char *controllers)
{
    for (const char *at = controllers; at && *at;) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "cpu", 3) == 0) return true;
        at += length;
        if (*at == ',') at++;
    }
    return false;
}

int32_t stk_cpu_quota(const char *root)
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
        if (!version2 && !names_cpu(controllers)) continue;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, version2 ? "" : "/cpu");
        double limit = group_limit(mount, group, version2);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    if (file) fclose(file);
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
