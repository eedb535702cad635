/* The CUDA device from outside, over a driver that is none (fake_cuda.h): a training step has the CPU's losses and the same bits twice, with and without graphs;
 * faults of the driver are clear errors that leave nothing behind and hang nowhere; compiled programs are found again on disk. Without any
 * OpenCL device, on which the kernels run here, it says how to get one and checks nothing. */
#include "check.h"
#include "small_net.h"

#include "base/clock.h"
#include "base/trace.h"
#include "device/cuda/api.h"
#include "device/device.h"
#include "stoker/cache.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*plant)(const char *name, int64_t after, int code, int all);
static int64_t (*calls)(const char *name);
static int64_t (*left_over)(void);
static void (*memory_of)(size_t bytes);

/* Before anything asks for devices. */
static bool has_cuda(void)
{
    static int known = -1;
    if (known >= 0) return known;
    void *library = dlopen(STK_FAKE_CUDA, RTLD_NOW);
    known = 0;
    if (library) {
        *(void **)(void *)&plant = dlsym(library, "faulty_plant");
        *(void **)(void *)&calls = dlsym(library, "faulty_calls");
        *(void **)(void *)&left_over = dlsym(library, "faulty_live");
        *(void **)(void *)&memory_of = dlsym(library, "faulty_memory");
        setenv("STOKER_CUDA", STK_FAKE_CUDA, 1);
        setenv("STOKER_NVRTC", STK_FAKE_CUDA, 1);
        stk_device *d = NULL;
        stk_error err;
        known = stk_device_open("gpu:0", 0, &d, &err) == STK_OK;
        stk_device_release(d);
    }
    if (!known)
        printf("no OpenCL device to run kernels on, nothing checked; on Debian: apt-get install "
               "pocl-opencl-icd ocl-icd-libopencl1\n");
    return known;
}

TEST(a_card_says_that_it_was_never_tried)
{
    stk_device *d = NULL;
    stk_device_report r;
    stk_error err;
    if (!has_cuda()) return;
    REQUIRE(CHECK_OK(stk_device_open("gpu:0", 0, &d, &err)));
    stk_device_describe(d, &r);
    CHECK(strstr(r.detail, "compute capability 7.5") != NULL);
    CHECK_STR(r.note, "experimental: never run on hardware here");
    stk_device_release(d);
    CHECK_EQ_I64(left_over(), 0);
}

TEST(training_has_the_losses_of_the_cpu_and_steps_are_graphs)
{
    double home[STEPS], away[STEPS], plain[STEPS];
    char islands = -1;
    stk_error err;
    if (!has_cuda()) return;
    CHECK_OK(train("cpu:0", home, NULL, &err));
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("gpu:0", away, &islands, &err));
    CHECK_EQ_I64(islands, 0);
    for (int i = 0; i < STEPS; i++) CHECK_NEAR(away[i], home[i], 1e-4 * (1 + fabs(home[i])));
    CHECK(away[STEPS - 1] < 0.8 * away[0]);
    /* inputs take turns between two slots: two graphs, each seen once before; all other steps are one call */
    int64_t graphs = calls("cuGraphInstantiateWithFlags"), runs = calls("cuGraphLaunch");
    printf("%lld graphs, %lld runs of them, %lld launches\n", (long long)graphs, (long long)runs,
           (long long)calls("cuLaunchKernel"));
    CHECK(graphs >= 1 && graphs <= 2);
    CHECK_EQ_I64(runs, STEPS - graphs);
    CHECK(calls("cuLaunchKernel") <= 2 * 12 * graphs);
    CHECK_EQ_I64(left_over(), 0);
    setenv("STOKER_CUDA_GRAPHS", "0", 1);
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("gpu:0", plain, NULL, &err));
    unsetenv("STOKER_CUDA_GRAPHS");
    CHECK_EQ_I64(calls("cuGraphLaunch"), 0);
    CHECK(!memcmp(away, plain, sizeof away)); /* the same bits */
    CHECK_EQ_I64(left_over(), 0);
}

/* A driver that cannot capture, or make what it captured: launches, one by one. */
TEST(without_graphs_it_goes_on)
{
    static const char *const functions[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                            "cuGraphInstantiateWithFlags"};
    double away[STEPS], plain[STEPS];
    stk_error err;
    if (!has_cuda()) return;
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("gpu:0", away, NULL, &err));
    for (int i = 0; i < 3; i++) {
        plant(functions[i], 0, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0);
        CHECK_OK(train("gpu:0", plain, NULL, &err));
        CHECK_EQ_I64(calls("cuGraphLaunch"), 0);
        CHECK_EQ_I64(calls(functions[i]), 1); /* asked once */
        CHECK(!memcmp(away, plain, sizeof away));
    }
    plant(NULL, 0, 0, 0);
    CHECK_EQ_I64(left_over(), 0);
}

/* All that a run needs was made when its plan was loaded: the first runs cannot run out of memory, whether they are launched or captured. */
TEST(runs_take_no_memory)
{
    stk_graph *g = NULL;
    stk_device *d = NULL;
    stk_program *p = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    REQUIRE(CHECK_OK(stk_device_open("gpu:0", 0, &d, &err)));
    g = mlp();
    CHECK_OK(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err));
    stk_tensor *x = numbers(STK_F32, 2, (int64_t[]){BATCH, IN}, 1, 1);
    stk_tensor *y = numbers(STK_I64, 1, (int64_t[]){BATCH}, 1, 2);
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_feed(p, "y", y, &err));
    plant(NULL, 0, 0, 0);
    int64_t asked = stk_alloc_count();
    stk_alloc_fail_at(1, true);
    for (int i = 0; i < 4; i++) CHECK_OK(stk_program_run(p, 1, &err));
    stk_alloc_fail_at(0, false);
    CHECK_EQ_I64(stk_alloc_count() - asked, 0);
    CHECK_EQ_I64(calls("cuGraphLaunch"), 3);
    CHECK_EQ_I64(calls("cuMemAlloc_v2") + calls("cuMemHostAlloc"), 0);
    stk_program_release(p);
    stk_graph_release(g);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_device_release(d);
    CHECK_EQ_I64(left_over(), 0);
}

/* ---- the trace ------------------------------------------------------------------------------------------- */

typedef struct rows {
    int64_t kernels, uploads, downloads, before, wrong, first, last;
} rows;

static void look(void *context, const stk_trace_event *e)
{
    rows *r = context;
    int64_t end = e->ns + e->value;
    if (e->kind != STK_TRACE_SPAN || strncmp(e->thread_name, "gpu:0", 5)) return;
    if (e->ns < r->first || end > r->last || e->value < 0) r->wrong++;
    if (e->role == STK_TRACE_COMPUTE) {
        r->kernels++;
        if (!e->arg || e->ns < r->before) r->wrong++; /* in order, and known by their task */
        r->before = end;
    }
    r->uploads += !strcmp(e->name, "device upload");
    r->downloads += !strcmp(e->name, "device download");
}

/* Every launch has a span, inside of the time in which it was traced; the numbers are those of untraced steps. */
TEST(kernels_and_copies_have_rows_of_the_trace)
{
    double away[STEPS], seen[STEPS];
    rows r = {0};
    stk_error err = {0};
    if (!has_cuda()) return;
    CHECK_OK(train("gpu:0", away, NULL, &err));
    plant(NULL, 0, 0, 0);
    r.first = stk_now_ns();
    stk_trace_enable(0);
    CHECK_OK(train("gpu:0", seen, NULL, &err));
    stk_trace_disable();
    r.last = stk_now_ns();
    stk_trace_drain(look, &r, NULL);
    printf("%lld kernels, %lld uploads, %lld downloads\n", (long long)r.kernels,
           (long long)r.uploads, (long long)r.downloads);
    CHECK_EQ_I64(r.wrong, 0);
    CHECK_EQ_I64(r.kernels, calls("cuLaunchKernel"));
    CHECK_EQ_I64(calls("cuGraphLaunch"), 0);
    CHECK(r.uploads >= 2 * (STEPS - 1) &&
          r.downloads >= STEPS); /* rows are made by the first run */
    CHECK(!memcmp(away, seen, sizeof away));
    CHECK_EQ_I64(left_over(), 0);
}

/* Without clocks to compare, or events, there is no row, and nothing else is different. */
TEST(a_trace_without_events)
{
    static const char *const functions[] = {"cuEventElapsedTime", "cuEventQuery", "cuEventRecord"};
    double away[STEPS];
    stk_error err = {0};
    if (!has_cuda()) return;
    for (int i = 0; i < 3; i++)
        for (int64_t after = 0; after < 40; after += 13) {
            plant(functions[i], after, CUDA_ERROR_INVALID_HANDLE, 0);
            stk_trace_enable(0);
            stk_status status = train("gpu:0", away, NULL, &err);
            stk_trace_disable();
            stk_trace_drain(look, &(rows){0}, NULL);
            if (i < 2) CHECK_OK(status);
            plant(NULL, 0, 0, 0);
            CHECK_EQ_I64(left_over(), 0);
        }
}

/* ---- shapes that are hard -------------------------------------------------------------------------------- */

/* The same graph there and on the CPU. */
static void compare_outputs(stk_graph *g, int n, const char *const *names, stk_tensor *const *feeds)
{
    stk_tensor *all[2][8] = {{0}};
    stk_error err = {0};
    for (int k = 0; k < 2; k++) {
        stk_device *d = NULL;
        stk_program *p = NULL;
        CHECK_OK(stk_device_open(k ? "gpu:0" : "cpu:0", 0, &d, &err));
        CHECK_OK(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err));
        for (int i = 0; p && names[i]; i++) CHECK_OK(stk_program_feed(p, names[i], feeds[i], &err));
        if (p) CHECK_OK(stk_program_run(p, 1, &err));
        for (int i = 0; p && i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, "y%d", i);
            CHECK_OK(stk_program_read(p, name, &all[k][i], &err));
        }
        stk_program_release(p);
        stk_device_release(d);
    }
    for (int i = 0; i < n && all[0][i] && all[1][i]; i++) {
        int64_t count = stk_tensor_count(all[0][i]), wrong = 0;
        CHECK_EQ_I64(stk_tensor_count(all[1][i]), count);
        for (int64_t j = 0; j < count; j++) {
            double a = stk_tensor_at(all[0][i], j), b = stk_tensor_at(all[1][i], j);
            wrong += !(fabs(a - b) <= 1e-5 * (1 + fabs(a)));
        }
        CHECK_EQ_I64(wrong, 0);
    }
    for (int i = 0; i < 16; i++) stk_tensor_release(all[i / 8][i % 8]);
    CHECK_EQ_I64(left_over(), 0);
}

/* CUDA takes 65535 groups on the second and third axis of a grid. */
TEST(more_groups_than_an_axis_has)
{
    enum { BATCHES = 65537, ROWS = 64 * 65536 + 1 };
    stk_graph *g = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_F32, 3, (int64_t[]){BATCHES, 1, 2});
    stk_val b = stk_g_input(g, "b", STK_F32, 3, (int64_t[]){BATCHES, 2, 2});
    stk_val c = stk_g_input(g, "c", STK_F32, 2, (int64_t[]){ROWS, 2});
    stk_val w = stk_g_input(g, "w", STK_F32, 2, (int64_t[]){2, 1});
    stk_g_output(g, "y0", stk_g_matmul(g, a, b));
    stk_g_output(g, "y1", stk_g_matmul(g, c, w));
    stk_tensor *feeds[] = {numbers(STK_F32, 3, (int64_t[]){BATCHES, 1, 2}, 1, 1),
                           numbers(STK_F32, 3, (int64_t[]){BATCHES, 2, 2}, 1, 2),
                           numbers(STK_F32, 2, (int64_t[]){ROWS, 2}, 1, 3),
                           numbers(STK_F32, 2, (int64_t[]){2, 1}, 1, 4)};
    compare_outputs(g, 2, (const char *[]){"a", "b", "c", "w", NULL}, feeds);
    for (int i = 0; i < 4; i++) stk_tensor_release(feeds[i]);
    stk_graph_release(g);
}

TEST(tensors_without_elements)
{
    stk_graph *g = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val none = stk_g_input(g, "none", STK_F32, 2, (int64_t[]){0, 4});
    stk_val some = stk_g_input(g, "some", STK_F32, 2, (int64_t[]){4, 3});
    stk_val thin = stk_g_input(g, "thin", STK_F32, 2, (int64_t[]){2, 0});
    stk_val product = stk_g_matmul(g, none, some);
    stk_g_output(g, "y0", stk_g_relu(g, product));
    stk_g_output(g, "y1", stk_g_sum(g, product, 1, (int32_t[]){0}, false));
    stk_g_output(g, "y2", stk_g_softmax(g, product, -1));
    stk_g_output(g, "y3", stk_g_concat(g, 2, (stk_val[]){product, some}, 0));
    stk_val wide = stk_g_reshape(g, none, 2, (int64_t[]){0, 3});
    stk_g_output(g, "y4", stk_g_matmul(g, thin, wide)); /* nothing to add up: zeros */
    stk_tensor *feeds[] = {numbers(STK_F32, 2, (int64_t[]){0, 4}, 1, 1),
                           numbers(STK_F32, 2, (int64_t[]){4, 3}, 1, 2),
                           numbers(STK_F32, 2, (int64_t[]){2, 0}, 1, 3)};
    compare_outputs(g, 5, (const char *[]){"none", "some", "thin", NULL}, feeds);
    for (int i = 0; i < 3; i++) stk_tensor_release(feeds[i]);
    stk_graph_release(g);
}

/* An array over 2^31 bytes is refused with the way out, before anything of its size is made. */
TEST(an_array_that_kernels_cannot_count)
{
    stk_graph *g = NULL;
    stk_device *d = NULL;
    stk_program *p = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    memory_of((size_t)64 << 30);
    REQUIRE(CHECK_OK(stk_device_open("gpu:0", 0, &d, &err)));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){1 << 15, 1 << 15});
    stk_g_output(g, "y", stk_g_sum(g, stk_g_relu(g, x), 0, NULL, false));
    CHECK_EQ_I64(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err),
                 STK_ERR_UNSUPPORTED);
    CHECK(strstr(err.message, "2^31") && strstr(err.message, "smaller batch"));
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(d);
    memory_of((size_t)4 << 30);
    CHECK_EQ_I64(left_over(), 0);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

/* The fault at its first chance, its second, ... until a training goes through. Nothing may be left over. */
static void fail_everywhere(const char *function, int code, int all, stk_status a, stk_status b,
                            const char *words)
{
    double losses[STEPS];
    int64_t trials = 0, step = 1;
    for (int64_t after = 0; after < 200; after += step) {
        stk_error err = {0};
        int64_t live = stk_alloc_live();
        plant(function, after, code, all);
        stk_status status = train("gpu:0", losses, NULL, &err);
        plant(NULL, 0, 0, 0);
        CHECK_EQ_I64(stk_alloc_live(), live);
        CHECK_EQ_I64(left_over(), 0);
        if (status == STK_OK) break;
        trials++;
        if (!CHECK(status == a || status == b) || !CHECK(strstr(err.message, words) != NULL)) {
            printf("  %s, call %lld: %s\n", function, (long long)after, err.message);
            break;
        }
        if (after > 12) step = 11; /* the middle of a training is much the same everywhere */
    }
    CHECK(trials > 0);
}

TEST(memory_that_runs_out)
{
    if (!has_cuda()) return;
    fail_everywhere("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 0, STK_ERR_MEMORY, STK_ERR_MEMORY,
                    "memory");
    fail_everywhere("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0, STK_ERR_MEMORY, STK_ERR_MEMORY,
                    "");
}

TEST(launches_that_fail)
{
    if (!has_cuda()) return;
    fail_everywhere("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 0, STK_ERR_DEVICE,
                    STK_ERR_DEVICE, "gpu:0: a launch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    fail_everywhere("cuGraphLaunch", CUDA_ERROR_LAUNCH_FAILED, 0, STK_ERR_DEVICE, STK_ERR_DEVICE,
                    "gpu:0: a launch: CUDA_ERROR_LAUNCH_FAILED");
}

/* Seen at once, or when the host waits for what was queued. */
TEST(a_card_that_is_lost)
{
    if (!has_cuda()) return;
    fail_everywhere("cuLaunchKernel", CUDA_ERROR_ILLEGAL_ADDRESS, 1, STK_ERR_DEVICE, STK_ERR_DEVICE,
                    "the card was lost; start again from the last checkpoint");
    fail_everywhere("cuGraphLaunch", CUDA_ERROR_DEVICE_UNAVAILABLE, 1, STK_ERR_DEVICE,
                    STK_ERR_DEVICE, "checkpoint");
    fail_everywhere("cuStreamSynchronize", CUDA_ERROR_LAUNCH_FAILED, 1, STK_ERR_DEVICE,
                    STK_ERR_MEMORY, "");
}

/* A context belongs to the process that made it. */
TEST(a_process_that_was_forked)
{
    stk_device *d = NULL;
    stk_error err = {0};
    int state = -1;
    if (!has_cuda()) return;
    plant(NULL, 0, 0, 0);
    REQUIRE(CHECK_OK(stk_device_open("gpu:0", 0, &d, &err)));
    pid_t child = fork();
    if (child == 0) {
        stk_block *b = d->vt->memory.alloc(d, 100);
        stk_status status = d->vt->queue.wait(d, &err);
        _exit(!b && status == STK_ERR_DEVICE && strstr(err.message, "spawn") ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &state, 0) == child && state == 0);
    CHECK_OK(d->vt->queue.wait(d, &err));
    stk_device_release(d);
    CHECK_EQ_I64(left_over(), 0);
}

TEST(opening_that_fails)
{
    static const char *const functions[] = {"cuDevicePrimaryCtxRetain", "cuStreamCreate",
                                            "cuEventCreate"};
    stk_device *d = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    for (int i = 0; i < 3; i++) {
        int64_t live = stk_alloc_live();
        plant(functions[i], i, CUDA_ERROR_OUT_OF_MEMORY, 0);
        if (i == 0) plant(functions[i], 0, CUDA_ERROR_DEVICE_UNAVAILABLE, 0);
        CHECK(stk_device_open("gpu:0", 0, &d, &err) != STK_OK);
        CHECK(strstr(err.message, "opening") != NULL);
        plant(NULL, 0, 0, 0);
        CHECK_EQ_I64(stk_alloc_live(), live);
        CHECK_EQ_I64(left_over(), 0);
    }
}

/* What is large is refused before it starts, with the batch that would fit. */
TEST(a_batch_that_does_not_fit)
{
    stk_graph *g = NULL;
    stk_device *d = NULL;
    stk_program *p = NULL;
    stk_error err = {0};
    if (!has_cuda()) return;
    memory_of(100 << 20);
    REQUIRE(CHECK_OK(stk_device_open("gpu:0", 0, &d, &err)));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){1024, 32768});
    stk_g_output(g, "y", stk_g_softmax(g, x, -1));
    CHECK_EQ_I64(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err), STK_ERR_MEMORY);
    CHECK(strstr(err.message, "it has 1") != NULL && strstr(err.message, "try batch ") != NULL);
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(d);
    memory_of((size_t)4 << 30);
    CHECK_EQ_I64(left_over(), 0);
}

/* ---- compiled programs ----------------------------------------------------------------------------------- */

TEST(programs_are_compiled_once_and_refusals_are_clear)
{
    double first[STEPS], later[STEPS];
    char folder[] = "/tmp/stk_test_XXXXXX", path[64];
    stk_cache_report gone;
    stk_error err = {0};
    if (!has_cuda()) return;
    REQUIRE(CHECK(mkdtemp(folder) != NULL));
    setenv("STOKER_CACHE", folder, 1);
    plant("nvrtcCompileProgram", 0, NVRTC_ERROR_COMPILATION, 0);
    CHECK_EQ_I64(train("gpu:0", first, NULL, &err), STK_ERR_DEVICE);
    CHECK(strstr(err.message, "its compiler refuses") && strstr(err.message, "STOKER_CUDA_LOG"));
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("gpu:0", first, NULL, &err));
    CHECK(calls("nvrtcCompileProgram") > 0);
    plant(NULL, 0, 0, 0);
    CHECK_OK(train("gpu:0", later, NULL, &err));
    CHECK_EQ_I64(calls("nvrtcCompileProgram"), 0);
    CHECK(!memcmp(first, later, sizeof first));
    /* a driver that does not take what was kept: compiled again, and then that is refused as well */
    plant("cuModuleLoadDataEx", 0, CUDA_ERROR_INVALID_IMAGE, 0);
    CHECK_EQ_I64(train("gpu:0", later, NULL, &err), STK_ERR_DEVICE);
    CHECK(calls("nvrtcCompileProgram") == 1 && strstr(err.message, "CUDA_ERROR_INVALID_IMAGE"));
    plant(NULL, 0, 0, 0);
    CHECK_EQ_I64(left_over(), 0);
    CHECK_OK(stk_cache_clear(&gone, &err));
    snprintf(path, sizeof path, "%s/cuda", folder);
    CHECK(rmdir(path) == 0 && rmdir(folder) == 0);
    unsetenv("STOKER_CACHE");
}

TEST_MAIN()
