/* The compute pool: every part once, on its thread; nesting, strangers, sleep, fork, shutdown. */
#define _GNU_SOURCE
#include "check.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/float_env.h"
#include "base/pool.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000 };

typedef struct record {
    int32_t calls[MOST], thread[MOST];
} record;

static void note(void *context, int64_t part, int32_t thread)
{
    record *r = context;
    r->calls[part]++;
    r->thread[part] = thread;
}

static stk_pool *make(int32_t threads)
{
    stk_error err;
    stk_pool *pool = NULL;
    CHECK_OK(stk_pool_new(threads, &pool, &err));
    return pool;
}

/* On the thread its share was given to, or on one that helps: the caller, or for the caller any other. */
TEST(each_part_runs_once_on_its_thread)
{
    for (int32_t threads = 1; threads <= 5; threads++) {
        stk_pool *pool = make(threads);
        CHECK_EQ_I64(stk_pool_threads(pool), threads);
        const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 64, MOST};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            record r = {0};
            int64_t parts = sizes[k], active = threads < parts ? threads : parts;
            stk_pool_run(pool, note, &r, parts);
            for (int64_t i = 0; i < MOST; i++) CHECK_EQ_I64(r.calls[i], i < parts);
            for (int64_t t = 0; t < active; t++)
                for (int64_t i = t * parts / active; i < (t + 1) * parts / active; i++)
                    CHECK(r.thread[i] == t || r.thread[i] == 0 || t == 0);
        }
        stk_pool_release(pool);
    }
}

static void add_part(void *context, int64_t part, int32_t thread)
{
    (void)thread;
    ((int64_t *)context)[part * 16] += part + 1;
}

TEST(many_regions_back_to_back)
{
    stk_pool *pool = make(2);
    int64_t sums[2 * 16] = {0};
    for (int i = 0; i < 20000; i++) stk_pool_run(pool, add_part, sums, 2);
    CHECK_EQ_I64(sums[0], 20000);
    CHECK_EQ_I64(sums[16], 40000);
    stk_pool_stats stats = stk_pool_read_stats(pool);
    CHECK_EQ_I64(stats.regions + stats.rested, 20000);
    CHECK(stats.wait_ns >= 0);
    stk_pool_release(pool);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

static int64_t wakeups(stk_pool_stats stats) { return stats.wakeups; }
static int64_t helped(stk_pool_stats stats) { return stats.helped; }

/* Runs with naps in between until something was counted; each part runs once whoever does it. */
static void check_naps(int64_t (*counted)(stk_pool_stats))
{
    stk_pool *pool = make(3);
    int64_t sums[3 * 16] = {0};
    int runs = 0;
    for (; runs < 20 || (runs < 1000 && counted(stk_pool_read_stats(pool)) == 0); runs++) {
        pause_ms(runs % 2 ? 3 : 0);
        stk_pool_run(pool, add_part, sums, 3);
    }
    for (int t = 0; t < 3; t++) CHECK_EQ_I64(sums[t * 16], runs * (t + 1));
    CHECK(counted(stk_pool_read_stats(pool)) > 0);
    stk_pool_release(pool);
}

TEST(sleeping_workers_wake_up) { check_naps(wakeups); }

/* Shares of workers that are still asleep when the caller is through. */
TEST(the_caller_does_what_nobody_began) { check_naps(helped); }

/* The caller's own part lasts until the second one has begun, or it would be taken back. */
static void sleep_in_second(void *context, int64_t part, int32_t thread)
{
    static int32_t begun;
    (void)thread;
    if (part == 0)
        while (!__atomic_exchange_n(&begun, 0, __ATOMIC_RELAXED)) pause_ms(0);
    if (part == 1) __atomic_store_n(&begun, 1, __ATOMIC_RELAXED);
    if (part == 1) pause_ms(5); /* long past the caller's spinning */
    ((int64_t *)context)[part * 16] += part + 1;
}

TEST(caller_sleeps_on_a_long_part)
{
    for (int32_t threads = 2; threads <= 4; threads += 2) {
        stk_pool *pool = make(threads);
        int64_t sums[4 * 16] = {0};
        for (int i = 0; i < 5; i++) {
            stk_pool_run(pool, sleep_in_second, sums, threads);
            pause_ms(70); /* such waits give the workers a rest, of 50 ms at most */
        }
        for (int t = 0; t < threads; t++) CHECK_EQ_I64(sums[t * 16], 5 * (t + 1));
        CHECK(stk_pool_read_stats(pool).caller_waits > 0);
        CHECK(stk_pool_read_stats(pool).wait_ns > 0);
        stk_pool_release(pool);
    }
}

/* A worker that is put aside in the middle of its part: the caller waits, and then does without it for a while. */
static void stall(void *context, int64_t part, int32_t thread)
{
    if (thread == 1) pause_ms(4);
    ((int64_t *)context)[part * 16] += part + 1;
}

TEST(workers_rest_when_the_processors_are_taken)
{
    stk_pool *pool = make(2);
    int64_t sums[2 * 16] = {0}, runs = 0;
    while (runs < 3000 && stk_pool_read_stats(pool).rested == 0) {
        stk_pool_run(pool, stall, sums, 2);
        runs++;
    }
    CHECK(stk_pool_read_stats(pool).rested > 0);
    pause_ms(70); /* longer than any rest: they are asked again */
    int64_t before = stk_pool_read_stats(pool).regions;
    stk_pool_run(pool, stall, sums, 2);
    runs++;
    CHECK(stk_pool_read_stats(pool).regions > before);
    for (int t = 0; t < 2; t++) CHECK_EQ_I64(sums[t * 16], runs * (t + 1));
    stk_pool_release(pool);
}

static void *burn(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) continue;
    return NULL;
}

/* Far more threads than processors, and others that want them: slow, but every part runs once. */
TEST(many_threads_on_busy_processors)
{
    enum { PARTS = 100, RUNS = INSTRUMENTED ? 20 : 200 };
    int stop = 0;
    pthread_t busy[4];
    for (int i = 0; i < 4; i++) REQUIRE(CHECK(!pthread_create(&busy[i], NULL, burn, &stop)));
    for (int32_t threads = 4; threads <= 64; threads *= 4) {
        stk_pool *pool = make(threads);
        int64_t sums[PARTS * 16] = {0};
        for (int i = 0; i < RUNS; i++) stk_pool_run(pool, add_part, sums, PARTS);
        for (int i = 0; i < PARTS; i++) CHECK_EQ_I64(sums[i * 16], RUNS * (i + 1));
        stk_pool_release(pool);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) pthread_join(busy[i], NULL);
}

typedef struct nest {
    stk_pool *pool;
    int32_t outer;
    record *inner;
} nest;

static void nested_part(void *context, int64_t part, int32_t thread)
{
    nest *n = context;
    stk_pool_run(n->pool, note, &n->inner[part], 10);
    for (int i = 0; i < 10; i++) CHECK_EQ_I64(n->inner[part].thread[i], thread);
}

TEST(nested_runs_stay_on_their_thread)
{
    stk_pool *pool = make(3);
    record *inner = stk_calloc(6, sizeof *inner);
    nest n = {pool, 0, inner};
    stk_pool_run(pool, nested_part, &n, 6);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 10; k++) CHECK_EQ_I64(inner[i].calls[k], 1);
    record r = {0};
    stk_pool_run(pool, note, &r, 6); /* and the caller is outside again */
    CHECK_EQ_I64(stk_pool_read_stats(pool).regions, 2);
    stk_free(inner);
    stk_pool_release(pool);
}

static void *stranger(void *argument)
{
    stk_pool *pool = argument;
    for (int i = 0; i < 300; i++) {
        record *r = stk_calloc(1, sizeof *r);
        stk_pool_run(pool, note, r, 50);
        for (int k = 0; k < 50; k++) CHECK_EQ_I64(r->calls[k], 1);
        stk_free(r);
    }
    return NULL;
}

TEST(strangers_share_a_pool)
{
    stk_pool *pool = make(2);
    pthread_t other[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(CHECK(pthread_create(&other[i], NULL, stranger, pool) == 0));
    stranger(pool);
    for (int i = 0; i < 3; i++) pthread_join(other[i], NULL);
    stk_pool_release(pool);
}

static void halve(void *context, int64_t part, int32_t thread)
{
    (void)thread;
    volatile float tiny = 1.2e-38f;
    ((float *)context)[part] = tiny * 0.5f;
}

TEST(subnormals_are_zero_in_workers_and_in_a_caller_that_asks)
{
    stk_pool *pool = make(2);
    float result[2] = {1, 1};
    stk_float_env was = stk_float_env_enter();
    stk_pool_run(pool, halve, result, 2);
    stk_float_env_leave(was);
    CHECK(result[0] == 0 && result[1] == 0);
    halve(result, 0, 0);
    uint32_t bits;
    memcpy(&bits, &result[0], 4);
    CHECK(bits != 0); /* the caller's own mode is back */
    stk_pool_release(pool);
}

TEST(a_forked_child_goes_on_alone)
{
    stk_pool *pool = make(2);
    record r = {0};
    stk_pool_run(pool, note, &r, 4);
    pid_t child = fork();
    REQUIRE(CHECK(child >= 0));
    if (child == 0) {
        record mine = {0};
        stk_pool_run(pool, note, &mine, 4);
        bool good = true;
        for (int i = 0; i < 4; i++) good &= mine.calls[i] == 1 && mine.thread[i] == 0;
        stk_pool_release(pool);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    stk_pool_run(pool, note, &r, 4);
    CHECK_EQ_I64(r.calls[3], 2);
    stk_pool_release(pool);
}

TEST(bad_arguments_and_no_pool)
{
    stk_error err;
    stk_pool *pool = NULL;
    CHECK_FAILS(stk_pool_new(-1, &pool, &err), STK_ERR_RANGE, "-1 threads");
    CHECK_FAILS(stk_pool_new(100000, &pool, &err), STK_ERR_RANGE, "100000");
    CHECK_FAILS(stk_pool_new(1, NULL, &err), STK_ERR_ARGUMENT, "out");
    record r = {0};
    stk_pool_run(NULL, note, &r, 5);
    CHECK_EQ_I64(r.calls[4], 1);
    CHECK_EQ_I64(stk_pool_threads(NULL), 1);
    CHECK_EQ_I64(stk_pool_read_stats(NULL).regions, 0);
    stk_pool_release(NULL);
    pool = make(0);
    CHECK_EQ_I64(stk_pool_threads(pool), stk_cpu_count());
    stk_pool_release(pool);
}

TEST(the_environment_says_how_many)
{
    static const char *const wrong[] = {"0",   "-3", "4 threads", "2.5", "99999999999999999999",
                                        "1025"};
    stk_error err;
    stk_pool *pool = NULL;
    setenv("STOKER_THREADS", "5", 1);
    pool = make(0);
    CHECK_EQ_I64(stk_pool_threads(pool), 5);
    stk_pool_release(pool);
    pool = make(3); /* who asks for a number gets that */
    CHECK_EQ_I64(stk_pool_threads(pool), 3);
    stk_pool_release(pool);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("STOKER_THREADS", wrong[i], 1);
        CHECK_FAILS(stk_pool_new(0, &pool, &err), STK_ERR_RANGE, wrong[i]);
    }
    setenv("STOKER_THREADS", "", 1);
    pool = make(0);
    CHECK_EQ_I64(stk_pool_threads(pool), stk_cpu_count());
    stk_pool_release(pool);
    unsetenv("STOKER_THREADS");
}

static stk_status make_and_release(stk_error *err)
{
    stk_pool *pool = NULL;
    stk_status status = stk_pool_new(3, &pool, err);
    stk_pool_release(pool);
    return status;
}

TEST(out_of_memory)
{
    stk_error err;
    OOM_LOOP(make_and_release(&err));
}

TEST(start_and_stop_many_times)
{
    for (int i = 0; i < 100; i++) {
        stk_pool *pool = make(2 + i % 3);
        record r = {0};
        if (i % 2) stk_pool_run(pool, note, &r, 9);
        stk_pool_release(pool);
    }
}

static void write_file(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    REQUIRE(CHECK(file != NULL));
    fputs(text, file);
    fclose(file);
}

TEST(control_group_quotas)
{
    char root[] = "/tmp/stk_cpus_XXXXXX";
    REQUIRE(CHECK(mkdtemp(root) != NULL));
    CHECK_EQ_I64(stk_cpu_quota(root), 0); /* nothing there */
    write_file(root, "/proc/self/cgroup", "0::/a/b\n");
    write_file(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 3); /* a parent's 2.5, rounded up */
    write_file(root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 1);
    write_file(root, "/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/y/z\n1:name=systemd:/\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "400000\n");
    write_file(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 4);
    write_file(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "-1\n");
    CHECK_EQ_I64(stk_cpu_quota(root), 0);
    write_file(root, "/proc/self/cgroup", "nonsense\n::\n0::");
    CHECK_EQ_I64(stk_cpu_quota(root), 0);
    CHECK(stk_cpu_count() >= 1);
    int64_t machine = stk_memory_limit(root); /* no group with a limit of its own */
    CHECK(machine > 1 << 20);
    write_file(root, "/proc/self/cgroup", "0::/a/b\n");
    write_file(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    CHECK_EQ_I64(stk_memory_limit(root), machine);
    write_file(root, "/sys/fs/cgroup/a/memory.max", "1048576\n");
    CHECK_EQ_I64(stk_memory_limit(root), 1 << 20);
    write_file(root, "/proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/y/z\n");
    write_file(root, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_EQ_I64(stk_memory_limit(root), machine);
    write_file(root, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "2097152\n");
    CHECK_EQ_I64(stk_memory_limit(root), 2 << 20);
    /* What is left of it: pages of files do not count, they can be given back. */
    write_file(root, "/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    4096 kB\n");
    write_file(root, "/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1500000\n");
    write_file(root, "/sys/fs/cgroup/memory/m/memory.stat",
               "cache 9\ntotal_active_file 300000\ntotal_inactive_file 200000\n");
    CHECK_EQ_I64(stk_memory_left(root), (2 << 20) - 1000000);
    write_file(root, "/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "9000000\n");
    CHECK_EQ_I64(stk_memory_left(root), 1);
    write_file(root, "/proc/self/cgroup", "0::/a/b\n");
    write_file(root, "/sys/fs/cgroup/a/memory.current", "1000000\n");
    write_file(root, "/sys/fs/cgroup/a/memory.stat", "anon 5\nactive_file 600000\n");
    CHECK_EQ_I64(stk_memory_left(root), (1 << 20) - 400000);
    write_file(root, "/proc/self/cgroup", "0::/\n");
    CHECK_EQ_I64(stk_memory_left(root), 4 << 20);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0);
}

TEST_MAIN()
