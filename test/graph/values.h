/* values.h - graphs over literal numbers, and what they give. What a test of meaning needs:
 *
 *     stk_graph *g = graph();
 *     stk_val x = numbers(g, STK_F32, 2, (int64_t[]){2, 2}, (double[]){1, 2, 3, 4});
 *     expect(g, stk_g_reverse(g, x, 0), STK_F32, 4, (double[]){3, 4, 1, 2}, 0);       // and releases g
 *     refuse(g, stk_g_gather(g, x, x, 0), STK_ERR_DTYPE, "int32");                    // the message names it
 */
#ifndef STK_TEST_GRAPH_VALUES_H
#define STK_TEST_GRAPH_VALUES_H

#include "check.h"

#include "stoker/graph.h"

static inline stk_graph *graph(void)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    return g;
}

static inline stk_val numbers(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                              const double *v)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++) CHECK_OK(stk_tensor_set(t, i, v[i], &err));
    stk_val x = stk_g_const(g, t);
    stk_tensor_release(t);
    return x;
}

/* The same as an input that is fed, so that nothing is known when the graph is built. */
typedef struct feeds {
    int32_t n;
    stk_tensor *tensor[8];
} feeds;

static inline stk_val fed(stk_graph *g, feeds *f, stk_dtype dtype, int32_t rank,
                          const int64_t *shape, const double *v)
{
    stk_error err;
    char name[8];
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++) CHECK_OK(stk_tensor_set(t, i, v[i], &err));
    snprintf(name, sizeof name, "f%d", f->n);
    f->tensor[f->n++] = t;
    return stk_g_input(g, name, dtype, rank, shape);
}

/* Runs y; NULL (and a reported check) when that fails. */
static inline stk_tensor *value_of(stk_graph *g, feeds *f, stk_val y)
{
    stk_error err = {0};
    stk_program *p = NULL;
    stk_tensor *t = NULL;
    stk_g_output(g, "y", y);
    bool good = CHECK_OK(stk_program_new(g, NULL, &p, &err));
    for (int32_t i = 0; good && f && i < f->n; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", i);
        good = CHECK_OK(stk_program_feed(p, name, f->tensor[i], &err));
    }
    if (good && CHECK_OK(stk_program_run(p, 1, &err))) CHECK_OK(stk_program_read(p, "y", &t, &err));
    stk_program_release(p);
    return t;
}

static inline void check_tensor(const stk_tensor *t, stk_dtype dtype, int64_t n, const double *want,
                                double tol, const char *file, int line)
{
    if (!t) return;
    check_i64(t->dtype, dtype, "dtype", file, line);
    if (!check_i64(stk_tensor_count(t), n, "count of elements", file, line)) return;
    for (int64_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "element %d", (int)i);
        check_near(stk_tensor_at(t, i), want[i], tol, text, file, line);
    }
}

/* Runs y, compares all elements, releases g (and what was fed). */
#define expect(g, ...)  expect_at(__FILE__, __LINE__, (g), NULL, __VA_ARGS__)
#define expect_fed(...) expect_at(__FILE__, __LINE__, __VA_ARGS__)
static inline void expect_at(const char *file, int line, stk_graph *g, feeds *f, stk_val y,
                             stk_dtype dtype, int64_t n, const double *want, double tol)
{
    stk_tensor *t = value_of(g, f, y);
    check_tensor(t, dtype, n, want, tol, file, line);
    stk_tensor_release(t);
    for (int32_t i = 0; f && i < f->n; i++) stk_tensor_release(f->tensor[i]);
    stk_graph_release(g);
}

/* The builder gave 0 and the graph keeps this mistake; releases g. */
#define refuse(...) refuse_at(__FILE__, __LINE__, __VA_ARGS__)
static inline void refuse_at(const char *file, int line, stk_graph *g, stk_val y, stk_status code,
                             const char *fragment)
{
    stk_error err = {0};
    check_i64(y, 0, "value of a refused node", file, line);
    check_fails(stk_graph_status(g, &err), code, &err, fragment, "stk_graph_status", file, line);
    stk_graph_release(g);
}

#endif
