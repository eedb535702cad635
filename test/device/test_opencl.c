/* The OpenCL device from outside: a training step has the CPU's losses, the same bits twice, few launches; faults of the driver (planted by
 * faulty_opencl.c, which stands in for the loader) are clear errors that leak nothing and hang nowhere; compiled programs are found again on
 * disk, whatever happened to them there. Without any OpenCL device it says how to get one and checks nothing. */
#include "check.h"
#include "small_net.h"
#include "../train/problem.h"

#include "base/clock.h"
#include "base/trace.h"
#include "device/opencl/api.h"
#include "stoker/cache.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

static void (*plant)(const char *name, int64_t after, cl_int code, int all);
static int64_t (*calls)(const char *name);

/* Before anything asks for devices. */
static bool has_opencl(void)
{
    static int known = -1;
    if (known >= 0) return known;
    void *library = dlopen(STK_FAULTY, RTLD_NOW);
    known = 0;
    if (library) {
        *(void **)(void *)&plant = dlsym(library, "faulty_plant");
        *(void **)(void *)&calls = dlsym(library, "faulty_calls");
        setenv("STOKER_OPENCL", STK_FAULTY, 1);
        stk_device *d = NULL;
        stk_error err;
        known = stk_device_open("opencl:0", 0, &d, &err) == STK_OK;
        stk_device_release(d);
    }
    if (!known)
        printf("no OpenCL device, nothing checked; on Debian: apt-get install pocl-opencl-icd "
               "ocl-icd-libopencl1\n");
    return known;
}

/* A cache of its own, empty; and gone with all that is in it. */
static void own_cache(char folder[64])
{
    strcpy(folder, "/tmp/stk_test_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    setenv("STOKER_CACHE", folder, 1);
    plant(NULL, 0, 0, 0);
}

static void drop_cache(const char *folder)
{
    char path[128];
    stk_cache_report gone;
    stk_error err;
    CHECK_OK(stk_cache_clear(&gone, &err));
    snprintf(path, sizeof path, "%s/opencl", folder);
    if (rmdir(path) != 0) unlink(path);
    CHECK(rmdir(folder) == 0);
    unsetenv("STOKER_CACHE");
}

TEST(training_has_the_losses_of_the_cpu)
{
    double home[STEPS], away[STEPS], again[STEPS];
    char islands = -1;
    stk_error err;
    if (!has_opencl()) return;
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("cpu:0", home, NULL, &err));
    CHECK_OK(train("opencl:0", away, &islands, &err));
    CHECK_OK(train("opencl:0", again, NULL, &err));
    CHECK_EQ_I64(islands, 0);
    for (int i = 0; i < STEPS; i++) CHECK_NEAR(away[i], home[i], 1e-4 * (1 + fabs(home[i])));
    CHECK(away[STEPS - 1] < 0.8 * away[0]);
    CHECK(!memcmp(away, again, sizeof away)); /* two runs: the same bits */
}

/* What a GPU would run: products by tiles, with the same endings. */
TEST(products_by_tiles_train_alike)
{
    double home[STEPS], away[STEPS];
    stk_error err;
    if (!has_opencl()) return;
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("cpu:0", home, NULL, &err));
    setenv("STOKER_KERNEL", "gemm:tiled", 1);
    CHECK_OK(train("opencl:0", away, NULL, &err));
    unsetenv("STOKER_KERNEL");
    for (int i = 0; i < STEPS; i++) CHECK_NEAR(away[i], home[i], 1e-4 * (1 + fabs(home[i])));
}

TEST(a_step_is_few_launches)
{
    double losses[STEPS];
    stk_error err;
    if (!has_opencl()) return;
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("opencl:0", losses, NULL, &err));
    int64_t launches = calls("EnqueueNDRangeKernel");
    printf("%.1f launches per step\n", (double)launches / STEPS);
    CHECK(launches <= 12 * STEPS);
}

/* ---- the trace ------------------------------------------------------------------------------------------- */

typedef struct seen {
    int64_t kernels, uploads, overlaps, out_of_order, strange;
    int64_t began[512], ended[512]; /* of uploads */
    int64_t first, last;            /* moments of the host around all of it */
    int64_t before;                 /* end of the last kernel */
} seen;

static void look(void *context, const stk_trace_event *e)
{
    seen *s = context;
    int64_t end = e->ns + e->value;
    if (e->kind != STK_TRACE_SPAN || strncmp(e->thread_name, "opencl:0", 8)) return;
    if (e->ns < s->first || end > s->last || e->value < 0) s->strange++;
    if (e->role == STK_TRACE_COMPUTE) {
        s->kernels++;
        if (!e->arg || e->ns < s->before) s->out_of_order++;
        s->before = end;
    } else if (!strcmp(e->name, "device upload") && s->uploads < 512) {
        s->began[s->uploads] = e->ns;
        s->ended[s->uploads++] = end;
    }
}

/* Rows are handed out one by one: kernels first, and kept by their caller. */
typedef struct spans {
    seen *s;
    int64_t began[4096], ended[4096], n;
} spans;

static void look_twice(void *context, const stk_trace_event *e)
{
    spans *k = context;
    look(k->s, e);
    if (e->kind == STK_TRACE_SPAN && e->role == STK_TRACE_COMPUTE && k->n < 4096 &&
        !strncmp(e->thread_name, "opencl:0", 8)) {
        k->began[k->n] = e->ns;
        k->ended[k->n++] = e->ns + e->value;
    }
}

/* Some large products on a batch of a few megabytes: while one computes, the next one travels. */
static stk_program *long_steps(stk_device *d)
{
    enum { ROWS = 2048, SIDE = 512 };
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){ROWS, SIDE});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){SIDE, SIDE});
    for (int i = 0; i < 3; i++) x = stk_g_matmul(g, x, w);
    stk_g_output(g, "y", stk_g_sum(g, x, 0, NULL, false));
    CHECK_OK(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err));
    stk_graph_release(g);
    return p;
}

enum { BATCHES = 24 };

static void trace_batches(stk_device *d, stk_program *p, stk_tensor *x, spans *k)
{
    stk_error err;
    seen *s = k->s;
    *s = (seen){.first = stk_now_ns() - 2000000};
    k->n = 0;
    stk_trace_enable(0);
    for (int i = 0; i < BATCHES; i++) {
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
    }
    CHECK_OK(d->vt->queue.wait(d, &err));
    stk_trace_disable();
    s->last = stk_now_ns() + 2000000; /* two clocks are compared to within their round trip */
    stk_trace_drain(look_twice, k, NULL);
    for (int64_t i = 0; i < s->uploads; i++)
        for (int64_t j = 0; j < k->n; j++)
            if (s->began[i] < k->ended[j] && k->began[j] < s->ended[i]) {
                s->overlaps++;
                break;
            }
}

TEST(kernels_and_uploads_have_rows_of_the_trace_and_overlap)
{
    static spans k;
    static seen s;
    stk_error err;
    stk_device *d = NULL;
    if (!has_opencl()) return;
    plant(NULL, 0, 0, 0);
    REQUIRE(CHECK_OK(stk_device_open("opencl:0", 0, &d, &err)));
    stk_program *p = long_steps(d);
    stk_tensor *x = numbers(STK_F32, 2, (int64_t[]){2048, 512}, 1, 5);
    REQUIRE(p && x);
    k.s = &s;
    for (int round = 0; round < 8; round++) { /* a busy machine has no thread left for an upload */
        trace_batches(d, p, x, &k);
        CHECK(s.kernels >= 3 * BATCHES && s.uploads >= BATCHES - 1);
        CHECK_EQ_I64(s.out_of_order, 0);
        CHECK_EQ_I64(s.strange, 0);
        if (s.overlaps) break;
    }
    printf("%lld kernels, %lld uploads, %lld of them while a kernel ran\n", (long long)s.kernels,
           (long long)s.uploads, (long long)s.overlaps);
    CHECK(s.overlaps > 0);
    stk_program_release(p);
    stk_tensor_release(x);
    stk_device_release(d);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

/* The fault at its first chance, its second, ... until a training goes through. Nothing may be left over. */
static void fail_everywhere(const char *function, cl_int code, int all, stk_status a, stk_status b,
                            const char *words, int64_t most)
{
    double losses[STEPS];
    int64_t trials = 0, step = 1;
    for (int64_t after = 0; after < most; after += step) {
        stk_error err = {0};
        int64_t live = stk_alloc_live();
        plant(function, after, code, all);
        stk_status status = train("opencl:0", losses, NULL, &err);
        plant(NULL, 0, 0, 0);
        CHECK_EQ_I64(stk_alloc_live(), live);
        if (status == STK_OK) break;
        trials++;
        if (!CHECK(status == a || status == b) || !CHECK(strstr(err.message, words) != NULL)) {
            printf("  %s, call %lld: %s\n", function, (long long)after, err.message);
            break;
        }
        if (after > 20) step = 17; /* the middle of a training is much the same everywhere */
    }
    CHECK(trials > 0);
}

TEST(memory_that_runs_out)
{
    if (has_opencl())
        fail_everywhere("CreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE, 0, STK_ERR_MEMORY,
                        STK_ERR_MEMORY, "memory", 60);
}

TEST(launches_that_fail)
{
    if (has_opencl())
        fail_everywhere("EnqueueNDRangeKernel", CL_OUT_OF_RESOURCES, 0, STK_ERR_MEMORY,
                        STK_ERR_DEVICE, "opencl:0: a launch: CL_OUT_OF_RESOURCES", 400);
}

TEST(a_device_that_is_lost)
{
    if (has_opencl())
        fail_everywhere("EnqueueNDRangeKernel", CL_DEVICE_NOT_AVAILABLE, 1, STK_ERR_DEVICE,
                        STK_ERR_DEVICE, "checkpoint", 400);
}

static stk_status lose_it(stk_callback *self, stk_trainer *t, int64_t epoch, stk_error *err)
{
    (void)self, (void)t, (void)err;
    if (epoch == 2) plant("EnqueueNDRangeKernel", 3, CL_DEVICE_NOT_AVAILABLE, 1);
    return STK_OK;
}

static stk_status fit_with(stk_callback *callback, const char *checkpoint, stk_error *why)
{
    problem p;
    stk_error err;
    stk_trainer_options how = usual_options();
    stk_fit_options fit = stk_fit_defaults();
    CHECK_OK(stk_device_open("opencl:0", 0, &how.device, &err));
    if (!open_problem_with(&p, MLP, &how, 64)) return STK_ERR_INTERNAL;
    fit.epochs = 4;
    fit.resume = true;
    fit.checkpoint = checkpoint;
    fit.callbacks = &callback;
    fit.ncallbacks = callback != NULL;
    stk_status status = stk_trainer_fit(p.trainer, &p.data, &fit, NULL, why);
    plant(NULL, 0, 0, 0);
    close_problem(&p);
    stk_device_release(how.device);
    return status;
}

/* In its third epoch. The error says what there is, and a new run goes on from there. */
TEST(a_lost_device_names_the_last_checkpoint)
{
    stk_error err = {0};
    char path[] = "/tmp/stk_test_XXXXXX";
    stk_callback callback = {.epoch_begin = lose_it};
    if (!has_opencl()) return;
    plant(NULL, 0, 0, 0);
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0 && unlink(path) == 0);
    CHECK_FAILS(fit_with(&callback, NULL, &err), STK_ERR_DEVICE, "no checkpoint was asked for");
    CHECK_FAILS(fit_with(&callback, path, &err), STK_ERR_DEVICE, "the device was lost");
    CHECK_CONTAINS(err.message, path);
    CHECK_CONTAINS(err.message, "after 2 epochs and 0 steps");
    CHECK_OK(fit_with(NULL, path, &err));
    CHECK(unlink(path) == 0);
}

/* A compiler that refuses: with an empty cache, so that it is asked. */
TEST(a_compiler_that_refuses)
{
    double losses[STEPS];
    stk_error err = {0};
    char folder[64];
    if (!has_opencl()) return;
    own_cache(folder);
    plant("BuildProgram", 0, CL_BUILD_PROGRAM_FAILURE, 0);
    int64_t live = stk_alloc_live();
    CHECK_EQ_I64(train("opencl:0", losses, NULL, &err), STK_ERR_DEVICE);
    CHECK(strstr(err.message, "its compiler refuses") != NULL);
    CHECK(strstr(err.message, "--device cpu") != NULL);
    CHECK_EQ_I64(stk_alloc_live(), live);
    drop_cache(folder);
    plant(NULL, 0, 0, 0);
}

/* ---- the cache ------------------------------------------------------------------------------------------- */

/* Does something to every compiled program on disk. */
static int spoil(const char *folder, int how)
{
    char path[400];
    int files = 0;
    snprintf(path, sizeof path, "%s/opencl", folder);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (!strstr(e->d_name, ".bin")) continue;
        snprintf(path, sizeof path, "%s/opencl/%s", folder, e->d_name);
        struct stat info;
        if (stat(path, &info) != 0) continue;
        files++;
        FILE *f = fopen(path, "r+");
        if (how == 1) CHECK(truncate(path, info.st_size / 2) == 0);
        if (how == 2 && f && fseek(f, -1, SEEK_END) == 0) fputc('?', f);
        if (how == 3 && f) fputs("NOTMAGIC", f);
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return files;
}

TEST(programs_are_found_again_and_broken_files_are_replaced)
{
    double first[STEPS], later[STEPS];
    stk_error err;
    char folder[64];
    if (!has_opencl()) return;
    own_cache(folder);
    CHECK_OK(train("opencl:0", first, NULL, &err));
    int64_t built = calls("CreateProgramWithSource");
    CHECK(built > 0);
    CHECK_EQ_I64(spoil(folder, 0), built);
    for (int how = 0; how <= 3; how++) { /* 0: left alone */
        spoil(folder, how);
        plant(NULL, 0, 0, 0);
        CHECK_OK(train("opencl:0", later, NULL, &err));
        CHECK_EQ_I64(calls("CreateProgramWithSource"), how ? built : 0);
        CHECK(!memcmp(first, later, sizeof first));
    }
    drop_cache(folder);
}

/* A cache that cannot be written costs another build, nothing else. */
TEST(a_cache_that_cannot_be_written)
{
    double losses[STEPS];
    stk_error err;
    char folder[64], path[128];
    if (!has_opencl()) return;
    own_cache(folder);
    snprintf(path, sizeof path, "%s/opencl", folder);
    CHECK(symlink("/dev/full", path) == 0); /* no folder, and full */
    CHECK_OK(train("opencl:0", losses, NULL, &err));
    CHECK(calls("CreateProgramWithSource") > 0);
    drop_cache(folder);
}

TEST_MAIN()
