/* Programs as users see them: feeding, reading, stores, functions by shape, dumps, the election's file, mistakes. */
#include "check.h"

#include "device/device.h"
#include "stoker/graph.h"

#include <sys/stat.h>
#include <unistd.h>

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

/* y = x w with w [3,2] */
static stk_graph *product(int64_t rows)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, DIMS(rows, 3)),
            w = stk_g_variable(g, "w", STK_F32, 2, DIMS(3, 2));
    stk_g_output(g, "y", stk_g_matmul(g, x, w));
    stk_g_output(g, "same", x);
    return g;
}

static stk_tensor *counting(stk_dtype dtype, int64_t rows, int64_t columns)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(dtype, 2, DIMS(rows, columns), &t, &err));
    for (int64_t i = 0; i < rows * columns; i++)
        CHECK_OK(stk_tensor_set(t, i, (double)(i + 1), &err));
    return t;
}

TEST(feeding_in_place_by_copy_and_strided)
{
    stk_error err;
    stk_graph *g = product(2);
    stk_program *p = NULL;
    stk_tensor *w = counting(STK_F32, 3, 2), *x = counting(STK_F32, 2, 3),
               *ints = counting(STK_I32, 2, 3), *tall = counting(STK_F32, 3, 2);
    stk_tensor *turned = NULL, *y = NULL;
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_store_set(stk_program_store(p), "w", w, &err));
    CHECK_OK(stk_tensor_transpose(tall, (int32_t[]){1, 0}, &turned, &err));
    stk_tensor *feeds[] = {x, ints, turned};
    double want[] = {22, 22, 35}; /* first element: 1 2 3 . 1 3 5, the same, 1 3 5 . 1 3 5 */
    for (int i = 0; i < 3; i++) {
        CHECK_OK(stk_program_feed(p, "x", feeds[i], &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &y, &err));
        CHECK_NEAR(stk_tensor_at(y, 0), want[i], 0);
        stk_tensor_release(y);
    }
    CHECK_OK(stk_program_read(p, "same", &y, &err)); /* an output that is an input */
    CHECK_NEAR(stk_tensor_at(y, 1), 3, 0);
    stk_tensor_release(y);
    CHECK_OK(stk_program_feed(p, "x", x, &err)); /* in place: later changes are seen */
    CHECK_OK(stk_tensor_set(x, 0, 100, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "y", &y, &err));
    bool in_place = stk_device_shares(stk_program_device(p)); /* elsewhere it was sent when fed */
    CHECK_NEAR(stk_tensor_at(y, 0), in_place ? 121 : 22, 0);
    stk_tensor *all[] = {w, x, ints, tall, turned, y};
    for (int i = 0; i < 6; i++) stk_tensor_release(all[i]);
    stk_program_release(p);
    stk_graph_release(g);
}

TEST(mistakes)
{
    stk_error err;
    stk_graph *g = product(2);
    stk_program *p = NULL;
    stk_tensor *x = counting(STK_F32, 3, 3), *y = NULL;
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_FAILS(stk_program_run(p, 1, &err), STK_ERR_STATE, "input 'x' was not fed");
    CHECK_FAILS(stk_program_feed(p, "x", x, &err), STK_ERR_SHAPE,
                "input 'x' is float32[2,3], got float32[3,3]");
    CHECK_FAILS(stk_program_feed(p, "z", x, &err), STK_ERR_ARGUMENT,
                "no input 'z'; the first of 1 is 'x'");
    CHECK_FAILS(stk_program_read(p, "z", &y, &err), STK_ERR_ARGUMENT, "no output 'z'");
    CHECK_FAILS(stk_program_feed(NULL, "x", x, &err), STK_ERR_ARGUMENT, "must be given");
    CHECK_FAILS(stk_store_get(stk_program_store(p), "nope", &y, &err), STK_ERR_ARGUMENT,
                "no variable 'nope'");
    CHECK_FAILS(stk_store_set(stk_program_store(p), "w", x, &err), STK_ERR_SHAPE,
                "variable 'w' is float32[3,2]");
    stk_program_release(p);
    CHECK_FAILS(stk_program_new(NULL, NULL, &p, &err), STK_ERR_ARGUMENT, "NULL");
    stk_graph_release(g);
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_F32, 1, DIMS(-3));
    CHECK(a == 0);
    CHECK_FAILS(stk_program_new(g, NULL, &p, &err), STK_ERR_SHAPE, "-3");
    stk_graph_release(g);
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK(stk_g_input(g, "a", STK_F32, 3, DIMS(1 << 30, 1 << 30, 1 << 30)) == 0);
    CHECK(stk_graph_status(g, &err) != STK_OK); /* more elements than there are numbers */
    stk_graph_release(g);
    stk_tensor_release(x);
}

static void build_mean(stk_graph *g, const stk_val *x, void *context)
{
    (void)context;
    stk_val w = stk_g_variable(g, "w", STK_F32, 1, DIMS(3));
    stk_g_output(g, "y", stk_g_mean_all(g, stk_g_add(g, x[0], w)));
}

TEST(functions_keep_a_program_per_shape_and_say_why)
{
    stk_error err;
    stk_function *f = NULL;
    const char *names[] = {"x"};
    CHECK_OK(stk_function_new(1, names, build_mean, NULL, NULL, &f, &err));
    stk_tensor *four = counting(STK_F32, 4, 3), *two = counting(STK_F32, 2, 3), *y = NULL;
    stk_tensor *order[] = {four, two, four, two, four};
    double want[] = {6.5, 3.5, 6.5, 3.5, 6.5};
    for (int i = 0; i < 5; i++) {
        stk_program *p = NULL;
        CHECK_OK(stk_function_call(f, &order[i], &p, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &y, &err));
        CHECK_NEAR(stk_tensor_at(y, 0), want[i], 1e-6);
        stk_tensor_release(y);
    }
    CHECK_EQ_I64(stk_function_count(f), 2);
    CHECK_STR(stk_function_reason(f, 0), "first call");
    CHECK_STR(stk_function_reason(f, 1), "input 'x' is float32[2,3], it was float32[4,3] before");
    CHECK_EQ_I64(stk_store_count(stk_function_store(f)), 1); /* both share w */
    stk_tensor_release(four);
    stk_tensor_release(two);
    stk_function_release(f);
}

TEST(dumps_are_readable)
{
    stk_error err;
    stk_graph *g = product(2);
    stk_program *p = NULL;
    char *text = NULL;
    stk_program_stats stats;
    CHECK_OK(stk_graph_dump(g, &text, &err));
    CHECK_CONTAINS(text, "matmul(%1, %2)");
    CHECK_CONTAINS(text, "float32[2,2]");
    stk_text_free(text);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_program_dump(p, &text, &err));
    CHECK_CONTAINS(text, "gemm");
    stk_text_free(text);
    stk_program_describe(p, &stats);
    CHECK_NEAR(stats.flops, 24, 0);
    CHECK(stats.launches == 1 && stats.variable_bytes == 24);
    stk_program_release(p);
    stk_graph_release(g);
}

/* ---- the election's file ---------------------------------------------------------------------------------- */

static double elect(void)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_program_stats stats = {0};
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, DIMS(40, 70));
    stk_g_output(g, "y", stk_g_matmul_t(g, x, x, false, true));
    stk_g_output(g, "z", stk_g_matmul_t(g, x, x, true, false));
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    stk_program_describe(p, &stats);
    stk_program_release(p);
    stk_graph_release(g);
    return stats.election_ms;
}

TEST(elections_are_remembered_and_never_trusted)
{
    char folder[] = "/tmp/stoker-test-XXXXXX", file[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/kernels.txt", folder);
    setenv("STOKER_CACHE", folder, 1);
    double first = elect(), second = elect();
    struct stat info;
    if (first > 0) { /* there was something to choose from in this build */
        CHECK(stat(file, &info) == 0 && info.st_size > 20);
        CHECK_NEAR(second, 0, 0);
    }
    FILE *f = fopen(file, "r+");
    if (f) { /* spoil the lines behind the first */
        char line[512];
        CHECK(fgets(line, sizeof line, f) != NULL);
        long at = ftell(f);
        fseek(f, at, SEEK_SET);
        fputs("zzzz gemm nonsense 00000000\n", f);
        fclose(f);
    }
    elect(); /* must not fail, whatever the file says */
    f = fopen(file, "w");
    if (f) {
        for (int i = 0; i < 4096; i++) fputc(i * 7, f);
        fclose(f);
    }
    elect();
    CHECK_NEAR(elect(), 0, first > 0 ? 0 : 1e9); /* rebuilt by the call before */
    chmod(folder, 0500);
    setenv("STOKER_CACHE", "/proc/nowhere", 1); /* a place that cannot be written */
    elect();
    chmod(folder, 0700);
    unlink(file);
    rmdir(folder);
    unsetenv("STOKER_CACHE");
}

TEST(a_kernel_can_be_forced)
{
    stk_error err;
    stk_graph *g = product(2);
    stk_program *p = NULL;
    char *text = NULL;
    setenv("STOKER_KERNEL", "gemm:ref", 1);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_program_dump(p, &text, &err));
    CHECK_CONTAINS(text, "ref");
    stk_text_free(text);
    stk_program_release(p);
    setenv("STOKER_KERNEL", "gemm:warp", 1);
    CHECK_FAILS(stk_program_new(g, NULL, &p, &err), STK_ERR_UNSUPPORTED,
                "STOKER_KERNEL asks for gemm:warp");
    unsetenv("STOKER_KERNEL");
    stk_graph_release(g);
}

TEST(variables_are_cleared_by_prefix)
{
    stk_error err;
    stk_store *s = NULL;
    stk_tensor *one = counting(STK_F32, 2, 2), *got = NULL;
    CHECK_OK(stk_store_new(NULL, &s, &err));
    CHECK_OK(stk_store_set(s, "adam/w", one, &err));
    CHECK_OK(stk_store_set(s, "w", one, &err));
    CHECK_OK(stk_store_clear(s, "adam/", &err));
    CHECK_OK(stk_store_get(s, "adam/w", &got, &err));
    for (int64_t i = 0; i < 4; i++) CHECK(stk_tensor_at(got, i) == 0);
    stk_tensor_release(got);
    CHECK_OK(stk_store_get(s, "w", &got, &err));
    CHECK(stk_tensor_at(got, 3) == stk_tensor_at(one, 3) && stk_tensor_at(one, 3) != 0);
    stk_tensor_release(got);
    CHECK_FAILS(stk_store_clear(s, NULL, &err), STK_ERR_ARGUMENT, "must be given");
    stk_tensor_release(one);
    stk_store_release(s);
}

TEST_MAIN()
