/* Kernel libraries are guests: where threads may run and what the environment says stays as it was. */
#define _GNU_SOURCE
#include "launch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOVED = 1, TOLD = 2, NOT_RUN = 4 };

/* A product by each implementation there is, libxsmm before oneDNN as the list has it; large enough for all. */
static int run_products(void)
{
    enum { SIDE = 192 };
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    void *arg[] = {a, b, c};
    stk_gemm g = {.m = SIDE, .n = SIDE, .k = SIDE, .batch = 1, .dtype = STK_F32};
    g.lda = g.ldb = g.ldc = SIDE;
    stk_device *device = launch_device(1);
    int32_t n = 0;
    if (!device) return NOT_RUN;
    const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)device, STK_K_GEMM, &n);
    for (int32_t i = 0; i < n; i++)
        if (list[i]->supports(&g) && !LAUNCH(device, STK_K_GEMM, list[i]->name, &g, arg, 3, 0))
            return NOT_RUN;
    return 0;
}

/* In a process of its own: libraries are loaded once. */
static int what_changes(const char *wish)
{
    pid_t child = fork();
    if (child == 0) {
        if (wish) setenv("OMP_PROC_BIND", wish, 1);
        cpu_set_t before, after;
        int found = sched_getaffinity(0, sizeof before, &before) ? NOT_RUN : run_products();
        if (sched_getaffinity(0, sizeof after, &after) || !CPU_EQUAL(&before, &after))
            found |= MOVED;
        const char *now = getenv("OMP_PROC_BIND");
        if (wish ? !now || strcmp(now, wish) != 0 : now != NULL) found |= TOLD;
        _exit(found);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return NOT_RUN;
    return WEXITSTATUS(status);
}

TEST(threads_stay_free_and_the_environment_as_it_was) { CHECK_EQ_I64(what_changes(NULL), 0); }

TEST(a_wish_for_other_programs_does_not_bind_ours) { CHECK_EQ_I64(what_changes("TRUE"), 0); }

/* Who asks for the first device only (a report says on which processor it was made) wakes up no driver behind it: PoCL alone
 * would cost 50 MB. */
static int what_a_short_list_loads(void)
{
    pid_t child = fork();
    if (child == 0) {
        stk_device_report first;
        int32_t n = 0;
        int found = stk_device_list(1, &first, &n, NULL) == STK_OK && n == 1 ? 0 : NOT_RUN;
        char line[4096];
        FILE *maps = fopen("/proc/self/maps", "r");
        while (maps && fgets(line, sizeof line, maps))
            if (strstr(line, "libOpenCL")) found |= TOLD;
        _exit(maps ? found : NOT_RUN);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return NOT_RUN;
    return WEXITSTATUS(status);
}

TEST(a_short_list_wakes_up_no_other_driver) { CHECK_EQ_I64(what_a_short_list_loads(), 0); }

TEST_MAIN()
