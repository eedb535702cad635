/* load.c - processor time of the machine against that of this process. The machine's is counted in ticks of 10 ms: readings
 * should lie some tenths of a second apart. */
#include "watch/load.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

stk_load stk_load_now(void)
{
    stk_load load = {.wall = (double)stk_now_ns() * 1e-9};
    unsigned long long user, nice, system, idle, io, irq, soft, steal;
    struct rusage own;
    FILE *f = fopen("/proc/stat", "r");
    if (!f) return (stk_load){0};
    int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                   &io, &irq, &soft, &steal);
    fclose(f);
    double tick = (double)sysconf(_SC_CLK_TCK);
    if (n != 8 || tick <= 0 || getrusage(RUSAGE_SELF, &own)) return (stk_load){0};
    load.all = (double)(user + nice + system + irq + soft + steal) / tick;
    load.stolen = (double)steal / tick;
    load.own = seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
    return load;
}

double stk_load_of_others(const stk_load *from, const stk_load *to)
{
    double wall = to->wall - from->wall, others = to->all - from->all - (to->own - from->own);
    return wall > 0.1 && from->wall > 0 && others > 0 ? others / wall : 0;
}
