/* op_case.h - one table of operation cases, run in several modes.
 *
 *     static stk_val build_exp(stk_graph *g, const stk_val *in, stk_dtype real) { return stk_g_exp(g, in[0]); }
 *     static const op_case cases[] = {
 *         {.name = "exp odd", .build = build_exp, .nin = 1, .in = {{STK_F32, 2, {3, 5}, -1, 1}}, .tol = 1e-5},
 *     };
 *     OP_CASE_MAIN(cases)
 *
 * test  the default program, one with every node its own launch, and 1, 2 and 4 threads, all against reference
 *       kernels; thread counts must agree to the bit
 * grad  gradients against finite differences in float64, and float32 gradients of the fast kernels against
 *       the reference ones
 * grad2 (.grad2 = 1) gradients of gradients against finite differences
 *
 * Inputs declared STK_F32 are `real`: they become STK_F64 in grad mode, and build() is told which. */
#ifndef STK_TEST_OP_CASE_H
#define STK_TEST_OP_CASE_H

#include "check.h"

#include "stoker/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct op_input {
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    double lo, hi; /* range of the values; lo == hi gives that constant */
} op_input;

typedef struct op_case {
    const char *name;
    stk_val (*build)(stk_graph *g, const stk_val *in, stk_dtype real);
    int32_t nin;
    op_input in[8];
    double tol;       /* |a - b| <= tol * (1 + |b|) against reference kernels; 0 = 1e-5 */
    double grad_tol;  /* against finite differences; 0 = 1e-5 */
    int no_grad;      /* no gradient modes (integer results, flat functions) */
    int grad2;        /* also gradients of gradients */
    int skip_grad_of; /* bit i: input i has kinks or is an index; take no differences there */
} op_case;

typedef struct op_run_options {
    int32_t threads;
    bool ref, no_fuse, deterministic;
    const char *device; /* NULL: the default, which STOKER_DEVICE names */
} op_run_options;

static uint64_t op_random_state;
static double op_random(void)
{
    op_random_state = op_random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(op_random_state >> 11) * 0x1p-53;
}

static void op_make_inputs(const op_case *c, stk_dtype real, stk_tensor **out)
{
    op_random_state = 88172645463325252ull;
    for (const char *s = c->name; *s; s++)
        op_random_state = (op_random_state ^ (uint64_t)*s) * 0x100000001b3ull;
    for (int32_t i = 0; i < c->nin; i++) {
        stk_error err;
        const op_input *in = &c->in[i];
        stk_dtype dtype = in->dtype == STK_F32 ? real : in->dtype;
        out[i] = NULL;
        CHECK_OK(stk_tensor_new(dtype, in->rank, in->shape, &out[i], &err));
        bool whole = dtype != STK_F32 && dtype != STK_F64 && dtype != STK_F16 && dtype != STK_BF16;
        for (int64_t k = 0; k < stk_tensor_count(out[i]); k++) {
            double v = in->lo + (in->hi - in->lo) * op_random();
            if (whole)
                v = floor(in->lo + (in->hi - in->lo + 1) * op_random());
            else
                v = (double)(float)v;
            CHECK_OK(stk_tensor_set(out[i], k, v, &err));
        }
    }
}

/* What a graph should give: the op itself, its gradients, or the gradients of these. */
typedef enum op_goal { OP_VALUE, OP_GRAD, OP_GRAD2 } op_goal;

/* sum(y * r) with fixed r in [0.5, 1.5], so that no gradient cancels by symmetry. */
static stk_val op_weighted_sum(stk_graph *g, stk_val y, stk_dtype real, unsigned salt)
{
    int64_t shape[STK_MAX_RANK];
    stk_tensor *r = NULL;
    int32_t rank = stk_g_rank(g, y);
    if (!y) return 0;
    for (int32_t i = 0; i < rank; i++) shape[i] = stk_g_dim(g, y, i);
    stk_error err;
    CHECK_OK(stk_tensor_new(real, rank, shape, &r, &err));
    for (int64_t k = 0; k < stk_tensor_count(r); k++)
        CHECK_OK(stk_tensor_set(
            r, k, 0.5 + (double)((uint64_t)(k + 1) * 2654435761u * salt % 1024) / 1024, &err));
    stk_val sum = stk_g_sum_all(g, stk_g_mul(g, stk_g_cast(g, y, real), stk_g_const(g, r)));
    stk_tensor_release(r);
    return sum;
}

/* Graph with inputs x0.. and outputs: y (OP_VALUE); loss, d0.. (OP_GRAD); loss, e0.. of the second order (OP_GRAD2). */
static stk_graph *op_graph(const op_case *c, stk_dtype real, op_goal goal)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_val in[8] = {0}, d[8] = {0}, wrt[8];
    char name[8];
    CHECK_OK(stk_graph_new(&g, &err));
    for (int32_t i = 0; i < c->nin; i++) {
        snprintf(name, sizeof name, "x%d", i);
        in[i] = stk_g_input(g, name, c->in[i].dtype == STK_F32 ? real : c->in[i].dtype,
                            c->in[i].rank, c->in[i].shape);
    }
    stk_val y = c->build(g, in, real);
    if (goal == OP_VALUE) {
        stk_g_output(g, "y", y);
        return g;
    }
    int32_t n = 0, at[8];
    for (int32_t i = 0; i < c->nin; i++)
        if (c->in[i].dtype == STK_F32 && !(c->skip_grad_of >> i & 1)) {
            at[n] = i;
            wrt[n++] = in[i];
        }
    stk_val loss = op_weighted_sum(g, y, real, 1);
    stk_g_gradients(g, loss, n, wrt, d);
    if (goal == OP_GRAD2) {
        stk_val second = stk_g_scalar(g, real, 0);
        for (int32_t i = 0; i < n; i++)
            if (d[i])
                second = stk_g_add(g, second, op_weighted_sum(g, d[i], real, 7u + (unsigned)i));
        loss = second;
        stk_g_gradients(g, loss, n, wrt, d);
    }
    stk_g_output(g, "loss", loss);
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "d%d", at[i]);
        stk_g_output(g, name, d[i] ? d[i] : stk_g_zeros_like(g, wrt[i]));
    }
    return g;
}

static stk_program *op_compile(const op_case *c, const stk_graph *g, op_run_options o)
{
    stk_error err = {0};
    stk_device *device = NULL;
    stk_program *p = NULL;
    stk_program_options options = stk_program_options_defaults();
    CHECK_OK(
        stk_device_open(o.device ? o.device : "default", o.threads ? o.threads : 2, &device, &err));
    options.device = device;
    options.ref = o.ref;
    options.no_fuse = o.no_fuse;
    options.deterministic = o.deterministic;
    if (stk_program_new(g, &options, &p, &err) != STK_OK) {
        printf("case '%s': %s\n", c->name, err.message);
        CHECK(!"the program compiles");
    }
    stk_device_release(device);
    return p;
}

static void op_feed(const op_case *c, stk_program *p, stk_tensor **x)
{
    char name[8];
    stk_error err;
    for (int32_t i = 0; i < c->nin; i++) {
        snprintf(name, sizeof name, "x%d", i);
        CHECK_OK(stk_program_feed(p, name, x[i], &err));
    }
}

static stk_tensor *op_read(stk_program *p, const char *name)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_program_read(p, name, &t, &err));
    return t;
}

static void op_compare(const op_case *c, const char *what, const stk_tensor *got,
                       const stk_tensor *want, double tol)
{
    if (!got || !want) return;
    CHECK_EQ_I64(stk_tensor_count(got), stk_tensor_count(want));
    CHECK_EQ_I64(got->dtype, want->dtype);
    for (int64_t k = 0; k < stk_tensor_count(want); k++) {
        double a = stk_tensor_at(got, k), b = stk_tensor_at(want, k);
        bool same = (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tol * (1 + fabs(b));
        if (same) continue;
        printf("case '%s', %s: element %lld is %.9g, reference %.9g\n", c->name, what, (long long)k,
               a, b);
        CHECK(!"within tolerance of the reference");
        return;
    }
}

static void op_same_bits(const op_case *c, const char *what, const stk_tensor *a,
                         const stk_tensor *b)
{
    bool same = a && b && stk_tensor_bytes(a) == stk_tensor_bytes(b) &&
                !memcmp(a->data, b->data, (size_t)stk_tensor_bytes(a));
    if (!same) printf("case '%s': %s and one thread differ in their bits\n", c->name, what);
    CHECK(same);
}

static stk_tensor *op_run_value(const op_case *c, const stk_graph *g, stk_tensor **x,
                                op_run_options o)
{
    stk_program *p = op_compile(c, g, o);
    stk_error err;
    if (!p) return NULL;
    op_feed(c, p, x);
    CHECK_OK(stk_program_run(p, 2, &err)); /* twice: a second run must not depend on the first */
    CHECK_OK(stk_program_run(p, 0, &err));
    stk_program_set_step(p, 0);
    CHECK_OK(stk_program_run(p, 1, &err));
    stk_tensor *y = op_read(p, "y");
    stk_program_release(p);
    return y;
}

static void op_test_values(const op_case *c, stk_dtype real)
{
    stk_tensor *x[8];
    double tol = c->tol > 0 ? c->tol : 1e-5;
    op_make_inputs(c, real, x);
    stk_graph *g = op_graph(c, real, OP_VALUE);
    stk_tensor *ref =
        op_run_value(c, g, x, (op_run_options){.threads = 1, .ref = true, .no_fuse = true});
    stk_tensor *one = op_run_value(c, g, x, (op_run_options){.threads = 1, .deterministic = true});
    stk_tensor *two = op_run_value(c, g, x, (op_run_options){.threads = 2, .deterministic = true});
    stk_tensor *home = op_run_value(
        c, g, x, (op_run_options){.threads = 1, .deterministic = true, .device = "cpu:0"});
    stk_tensor *four = op_run_value(c, g, x, (op_run_options){.threads = 4, .deterministic = true});
    stk_tensor *elected = op_run_value(c, g, x, (op_run_options){.threads = 2});
    stk_tensor *split = op_run_value(c, g, x, (op_run_options){.threads = 2, .no_fuse = true});
    op_compare(c, "one thread", one, ref, tol);
    op_compare(c, "elected", elected, ref, tol);
    op_compare(c, "no_fuse", split, ref, tol);
    op_same_bits(c, "two threads", two, one);
    op_same_bits(c, "cpu:0", home, one);
    op_same_bits(c, "four threads", four, one);
    stk_tensor *all[] = {ref, one, two, four, elected, split, home};
    for (int i = 0; i < 7; i++) stk_tensor_release(all[i]);
    for (int32_t i = 0; i < c->nin; i++) stk_tensor_release(x[i]);
    stk_graph_release(g);
}

static double op_loss(const op_case *c, stk_program *p, stk_tensor **x)
{
    stk_error err;
    op_feed(c, p, x);
    stk_program_set_step(p, 0);
    CHECK_OK(stk_program_run(p, 1, &err));
    stk_tensor *t = op_read(p, "loss");
    double v = t ? stk_tensor_at(t, 0) : 0;
    stk_tensor_release(t);
    return v;
}

/* Central difference along element k of input i. */
static double op_difference(const op_case *c, stk_program *p, stk_tensor **x, int32_t i, int64_t k,
                            double eps)
{
    stk_error err;
    double v = stk_tensor_at(x[i], k);
    CHECK_OK(stk_tensor_set(x[i], k, v + eps, &err));
    double up = op_loss(c, p, x);
    CHECK_OK(stk_tensor_set(x[i], k, v - eps, &err));
    double down = op_loss(c, p, x);
    CHECK_OK(stk_tensor_set(x[i], k, v, &err));
    return (up - down) / (2 * eps);
}

static void op_test_differences(const op_case *c, op_goal goal)
{
    stk_tensor *x[8], *d[8] = {0};
    char name[8];
    double tol = c->grad_tol > 0 ? c->grad_tol : 1e-5;
    op_make_inputs(c, STK_F64, x);
    stk_graph *g = op_graph(c, STK_F64, goal);
    stk_program *p = op_compile(c, g, (op_run_options){.threads = 1, .deterministic = true});
    if (!p) return;
    (void)op_loss(c, p, x);
    for (int32_t i = 0; i < c->nin; i++) {
        if (c->in[i].dtype != STK_F32 || (c->skip_grad_of >> i & 1)) continue;
        snprintf(name, sizeof name, "d%d", i);
        d[i] = op_read(p, name);
    }
    int64_t most = INSTRUMENTED ? 2 : 24; /* each takes two runs */
    for (int32_t i = 0; i < c->nin; i++) {
        int64_t n = stk_tensor_count(x[i]), step = n > most ? n / most : 1;
        for (int64_t k = 0; d[i] && k < n; k += step) {
            double want = op_difference(c, p, x, i, k, 1e-5), got = stk_tensor_at(d[i], k);
            if (fabs(got - want) <= tol * (1 + fabs(want))) continue;
            printf("case '%s', %s of x%d[%lld]: %.9g, by differences %.9g\n", c->name,
                   goal == OP_GRAD ? "gradient" : "second gradient", i, (long long)k, got, want);
            CHECK(!"gradient agrees with finite differences");
            break;
        }
    }
    for (int32_t i = 0; i < c->nin; i++) {
        stk_tensor_release(d[i]);
        stk_tensor_release(x[i]);
    }
    stk_program_release(p);
    stk_graph_release(g);
}

/* float32 gradients: fast kernels against reference kernels, and 1 against 4 threads. */
static void op_test_fast_gradients(const op_case *c)
{
    stk_tensor *x[8];
    char name[8];
    stk_error err;
    double tol = 10 * (c->tol > 0 ? c->tol : 1e-5);
    op_make_inputs(c, STK_F32, x);
    stk_graph *g = op_graph(c, STK_F32, OP_GRAD);
    stk_program *p[3] = {
        op_compile(c, g, (op_run_options){.threads = 1, .ref = true, .no_fuse = true}),
        op_compile(c, g, (op_run_options){.threads = 1, .deterministic = true}),
        op_compile(c, g, (op_run_options){.threads = 4, .deterministic = true})};
    for (int k = 0; k < 3; k++)
        if (p[k]) {
            op_feed(c, p[k], x);
            CHECK_OK(stk_program_run(p[k], 1, &err));
        }
    for (int32_t i = 0; i < c->nin && p[0] && p[1] && p[2]; i++) {
        if (c->in[i].dtype != STK_F32 || (c->skip_grad_of >> i & 1)) continue;
        snprintf(name, sizeof name, "d%d", i);
        stk_tensor *t[3];
        for (int k = 0; k < 3; k++) t[k] = op_read(p[k], name);
        op_compare(c, name, t[1], t[0], tol);
        op_same_bits(c, "gradient with four threads", t[2], t[1]);
        for (int k = 0; k < 3; k++) stk_tensor_release(t[k]);
    }
    for (int k = 0; k < 3; k++) stk_program_release(p[k]);
    for (int32_t i = 0; i < c->nin; i++) stk_tensor_release(x[i]);
    stk_graph_release(g);
}

static void op_case_run(const op_case *c)
{
    op_test_values(c, STK_F32);
    if (c->no_grad) return;
    op_test_differences(c, OP_GRAD);
    op_test_fast_gradients(c);
    if (c->grad2) op_test_differences(c, OP_GRAD2);
}

#define OP_CASE_TEST(name, table)                                                                  \
    TEST(name)                                                                                     \
    {                                                                                              \
        for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++) op_case_run(&(table)[i]);     \
    }
#define OP_CASE_MAIN(table)                                                                        \
    OP_CASE_TEST(cases, table)                                                                     \
    TEST_MAIN()

#endif
