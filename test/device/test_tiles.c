/* Sizes of tiles: every one has the same bits, the fastest is found by timing and remembered beside the compiled programs, whatever happened to that
 * file. On opencl:0 and on a CUDA card that is none (fake_cuda.h). Without any OpenCL device nothing is checked. */
#include "check.h"
#include "graph/run/program.h"
#include "stoker/cache.h"
#include "stoker/nn.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

static stk_device *open_device(const char *name)
{
    stk_device *d = NULL;
    stk_error err;
    if (strcmp(STK_FAKE_CUDA, "none") != 0) {
        setenv("STOKER_CUDA", STK_FAKE_CUDA, 1);
        setenv("STOKER_NVRTC", STK_FAKE_CUDA, 1);
    }
    if (stk_device_open(name, 0, &d, &err) != STK_OK)
        printf("no %s, nothing checked: %s\n", name, err.message);
    return d;
}

/* A product and a convolution with its gradients, of sizes that no tile divides. */
static void odd_sizes(stk_graph *g)
{
    stk_conv_options o = stk_conv_options_defaults();
    o.padding = STK_PADDING_SAME;
    stk_val a = stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){75, 530});
    stk_val b = stk_g_variable(g, "b", STK_F32, 2, (int64_t[]){530, 70});
    stk_val x = stk_g_variable(g, "x", STK_F32, 4, (int64_t[]){3, 11, 11, 10});
    stk_val w = stk_g_variable(g, "w", STK_F32, 4, (int64_t[]){3, 3, 10, 37});
    stk_val v = stk_g_variable(g, "v", STK_F32, 4, (int64_t[]){3, 11, 11, 37});
    stk_val y = stk_g_conv(g, x, w, &o), of[2] = {x, w}, d[2];
    stk_g_gradients(g, stk_g_sum(g, stk_g_mul(g, y, v), 0, NULL, false), 2, of, d);
    stk_g_output(g, "product", stk_g_matmul(g, a, b));
    stk_g_output(g, "conv", y);
    stk_g_output(g, "data", d[0]);
    stk_g_output(g, "weight", d[1]);
}

static void a_large_product(stk_graph *g)
{
    stk_val a = stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){260, 260});
    stk_g_output(g, "product",
                 stk_g_matmul(g, a, stk_g_variable(g, "b", STK_F32, 2, (int64_t[]){260, 260})));
}

static void fill_variables(stk_program *p)
{
    stk_error err;
    stk_store *store = stk_program_store(p);
    for (int32_t i = 0; i < stk_store_count(store); i++) {
        stk_tensor *t = NULL;
        const char *name = stk_store_name(store, i);
        uint32_t state = 7 * (unsigned char)name[0];
        if (!CHECK_OK(stk_store_get(store, name, &t, &err))) continue;
        for (int64_t k = 0; k < stk_tensor_count(t); k++) {
            state = state * 1664525u + 1013904223u;
            ((float *)t->data)[k] = (float)(state >> 8) * 0x1p-23f - 1;
        }
        CHECK_OK(stk_store_set(store, name, t, &err));
        stk_tensor_release(t);
    }
}

enum { MOST = 4 };

static int compute(stk_device *d, void (*build)(stk_graph *), const stk_program_options *how,
                   stk_tensor *out[MOST])
{
    static const char *const names[MOST] = {"product", "conv", "data", "weight"};
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_program_options o = *how;
    int n = 0;
    o.device = d;
    CHECK_OK(stk_graph_new(&g, &err));
    build(g);
    if (CHECK_OK(stk_program_new(g, &o, &p, &err))) {
        fill_variables(p);
        CHECK_OK(stk_program_run(p, 1, &err));
        for (; n < p->nfetches && n < MOST; n++)
            CHECK_OK(stk_program_read(p, names[n], &out[n], &err));
    }
    stk_program_release(p);
    stk_graph_release(g);
    return n;
}

static void same_bits(int n, stk_tensor *a[MOST], stk_tensor *b[MOST], const char *what)
{
    for (int i = 0; i < n; i++) {
        CHECK_MSG(!memcmp(a[i]->data, b[i]->data, (size_t)stk_tensor_bytes(a[i])),
                  "%s: result %d has other bits", what, i);
        stk_tensor_release(b[i]);
    }
}

static void every_variant(const char *device, const char *recipe, int variants)
{
    stk_device *d = open_device(device), *cpu = NULL;
    stk_error err;
    stk_tensor *first[MOST], *other[MOST];
    if (!d) return;
    for (int k = 0; k < variants; k++) {
        char kernels[160];
        snprintf(kernels, sizeof kernels,
                 "gemm:%s/%d,conv:%s/%d,conv_bwd_data:%s/%d,conv_bwd_weight:%s/%d", recipe, k,
                 recipe, k, recipe, k, recipe, k);
        int n =
            compute(d, odd_sizes, &(stk_program_options){.kernels = kernels}, k ? other : first);
        CHECK_EQ_I64(n, MOST);
        if (k) same_bits(n, first, other, kernels);
    }
    CHECK_OK(stk_device_open("cpu:0", 0, &cpu, &err));
    compute(cpu, odd_sizes, &(stk_program_options){.deterministic = true}, other);
    for (int i = 0; i < MOST; i++) {
        double most = 0;
        for (int64_t e = 0; e < stk_tensor_count(first[i]); e++)
            most = fmax(most, fabs(stk_tensor_at(first[i], e) - stk_tensor_at(other[i], e)));
        CHECK_MSG(most < 1e-4, "%s of %s: result %d off by %g", recipe, device, i, most);
        stk_tensor_release(first[i]);
        stk_tensor_release(other[i]);
    }
    stk_device_release(cpu);
    stk_device_release(d);
}

TEST(rows_of_vectors_have_the_same_bits) { every_variant("opencl:0", "wide", 2); }
TEST(tiles_have_the_same_bits) { every_variant("opencl:0", "tiled", 4); }
TEST(tiles_of_a_card_have_the_same_bits) { every_variant("gpu:0", "tiled", 4); }

/* ---- timing ---------------------------------------------------------------------------------------------- */

/* The first file of a folder whose name ends so; its lines. */
static int lines_of(const char *folder, char path[400])
{
    int lines = 0, c;
    struct dirent *e;
    DIR *d = opendir(folder);
    path[0] = 0;
    while (d && (e = readdir(d)))
        if (strstr(e->d_name, ".tiles")) snprintf(path, 400, "%s/%.100s", folder, e->d_name);
    if (d) closedir(d);
    FILE *f = path[0] ? fopen(path, "r") : NULL;
    while (f && (c = fgetc(f)) != EOF) lines += c == '\n';
    if (f) fclose(f);
    return lines;
}

static void elect_on(const char *device, const char *kind)
{
    static const stk_program_options timed = {0}, by_table = {.deterministic = true};
    char folder[64] = "/tmp/stk_test_XXXXXX", inside[80], path[400];
    stk_device *d = open_device(device);
    stk_tensor *want[MOST], *got[MOST];
    stk_cache_report gone;
    stk_error err;
    if (!d) return;
    CHECK(mkdtemp(folder) != NULL);
    setenv("STOKER_CACHE", folder, 1);
    snprintf(inside, sizeof inside, "%s/%s", folder, kind);
    int n = compute(d, a_large_product, &by_table, want);
    CHECK_EQ_I64(lines_of(inside, path), 0); /* nothing was timed */
    same_bits(compute(d, a_large_product, &timed, got), want, got, "timed");
    CHECK_EQ_I64(lines_of(inside, path), 2); /* the device, and one problem */
    same_bits(compute(d, a_large_product, &timed, got), want, got, "remembered");
    CHECK_EQ_I64(lines_of(inside, path), 2);
    FILE *f = fopen(path, "w"); /* whatever stands there */
    if (CHECK(f)) fputs("stoker-kernels 1 of somebody else\nand so on\n", f), fclose(f);
    same_bits(compute(d, a_large_product, &timed, got), want, got, "a broken file");
    CHECK_EQ_I64(lines_of(inside, path), 2);
    for (int i = 0; i < n; i++) stk_tensor_release(want[i]);
    CHECK_OK(stk_cache_clear(&gone, &err));
    CHECK_EQ_I64(lines_of(inside, path), 0);
    CHECK(rmdir(inside) == 0);
    (void)rmdir(strcat(strcpy(inside, folder), "/opencl")); /* what the card's kernels ran on */
    CHECK(rmdir(folder) == 0);
    unsetenv("STOKER_CACHE");
    stk_device_release(d);
}

TEST(the_fastest_is_remembered) { elect_on("opencl:0", "opencl"); }
TEST(the_fastest_of_a_card_is_remembered) { elect_on("gpu:0", "cuda"); }

TEST_MAIN()
