/* Eager calls: values, shapes seen for the first and the second time, strided inputs, results that are used again,
 * tapes, nested tapes, mistakes, memory. */
#include "eager_test.h"

#include "graph/eager/eager.h"
#include "stoker/nn.h"

TEST(values_and_reuse)
{
    stk_eager *e = context();
    stk_tensor *a = vec(3, (float[]){1, 2, 3}), *b = vec(3, (float[]){10, 20, 30});
    const void *first = NULL;
    for (int i = 0; i < 3; i++) {
        stk_tensor *c = NULL;
        E_OK(stk_add(e, a, b, &c));
        CHECK_NEAR(stk_tensor_at(c, 2), 33, 0);
        if (i == 0) first = c->data;
        if (stk_device_shares(e->at->device))
            CHECK(c->data == first); /* released results come back */
        stk_tensor_release(c);
    }
    stk_tensor *c = NULL, *d = NULL;
    E_OK(stk_mul(e, a, b, &c));
    E_OK(stk_mul(e, c, b, &d));
    CHECK(c->data != d->data);
    CHECK_NEAR(stk_tensor_at(d, 1), 800, 0);
    int64_t before = stk_alloc_count();
    for (int i = 0; i < 100; i++) {
        stk_tensor *x = NULL;
        E_OK(stk_mul(e, a, b, &x));
        stk_tensor_release(x);
    }
    if (stk_device_shares(e->at->device)) /* the one that c holds had to be replaced once */
        CHECK(stk_alloc_count() - before <= 2);
    stk_eager_release(e);
    CHECK_NEAR(stk_tensor_at(d, 1), 800, 0); /* results outlive the context */
    stk_tensor_release(c);
    stk_tensor_release(d);
    stk_tensor_release(a);
    stk_tensor_release(b);
}

TEST(strided_inputs_and_views)
{
    stk_eager *e = context();
    stk_error err;
    stk_tensor *m = NULL, *t = NULL, *y = NULL, *r = NULL, *s = NULL;
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6}, &m, &err));
    CHECK_OK(stk_tensor_transpose(m, (int32_t[]){1, 0}, &t, &err));
    E_OK(stk_neg(e, t, &y));
    CHECK_NEAR(stk_tensor_at(y, 1), -4, 0);
    E_OK(stk_reshape(e, m, 1, (int64_t[]){6}, &r));
    CHECK(r->data == m->data);
    E_OK(stk_sum(e, m, 1, (int32_t[]){0}, false, &s));
    CHECK_NEAR(stk_tensor_at(s, 2), 9, 0);
    stk_tensor *all[] = {m, t, y, r, s};
    for (int i = 0; i < 5; i++) stk_tensor_release(all[i]);
    E_OK(STK_OK);
    stk_eager_release(e);
}

/* d/dx x exp(x) = (1 + x) exp(x); again: (2 + x) exp(x). */
TEST(gradients_and_their_gradients)
{
    stk_eager *e = context();
    stk_tape *outer = NULL, *inner = NULL;
    stk_tensor *x = vec(2, (float[]){0.5f, -1}), *ex = NULL, *y = NULL, *dx = NULL, *ddx = NULL;
    E_OK(stk_tape_begin(e, &outer));
    E_OK(stk_tape_watch(outer, x));
    E_OK(stk_tape_begin(e, &inner));
    E_OK(stk_tape_watch(inner, x));
    E_OK(stk_exp(e, x, &ex));
    E_OK(stk_mul(e, x, ex, &y));
    E_OK(stk_tape_gradient(inner, y, 1, &x, &dx));
    stk_tape_release(inner);
    E_OK(stk_tape_gradient(outer, dx, 1, &x, &ddx));
    stk_tape_release(outer);
    for (int i = 0; i < 2; i++) {
        double v = stk_tensor_at(x, i);
        CHECK_NEAR(stk_tensor_at(dx, i), (1 + v) * exp(v), 1e-5);
        CHECK_NEAR(stk_tensor_at(ddx, i), (2 + v) * exp(v), 1e-5);
    }
    stk_tensor *all[] = {x, ex, y, dx, ddx};
    for (int i = 0; i < 5; i++) stk_tensor_release(all[i]);
    stk_eager_release(e);
}

TEST(independent_inputs_get_zeros)
{
    stk_eager *e = context();
    stk_tape *tape = NULL;
    stk_tensor *in[2] = {vec(2, (float[]){1, 2}), vec(2, (float[]){3, 4})}, *y = NULL, *d[2] = {0};
    E_OK(stk_tape_begin(e, &tape));
    E_OK(stk_tape_watch(tape, in[0]));
    E_OK(stk_square(e, in[0], &y));
    E_OK(stk_tape_gradient(tape, y, 2, in, d));
    CHECK_NEAR(stk_tensor_at(d[0], 1), 4, 1e-6);
    CHECK_NEAR(stk_tensor_at(d[1], 1), 0, 0);
    stk_tape_release(tape);
    stk_tensor_release(y);
    for (int i = 0; i < 2; i++) {
        stk_tensor_release(in[i]);
        stk_tensor_release(d[i]);
    }
    stk_eager_release(e);
}

static stk_val build_norm(stk_graph *g, const stk_val *x, void *context)
{
    (void)context;
    return stk_g_sqrt(g, stk_g_sum_all(g, stk_g_square(g, x[0])));
}

TEST(calls_of_graphs)
{
    stk_eager *e = context();
    stk_tensor *x = vec(2, (float[]){3, 4}), *y = NULL, *d = NULL, *y2 = NULL;
    stk_tape *tape = NULL;
    E_OK(stk_eager_call(e, build_norm, NULL, 1, &x, &y));
    CHECK_NEAR(stk_tensor_at(y, 0), 5, 1e-6);
    E_OK(stk_tape_begin(e, &tape));
    E_OK(stk_tape_watch(tape, x));
    E_OK(stk_eager_call(e, build_norm, NULL, 1, &x, &y2));
    E_OK(stk_tape_gradient(tape, y2, 1, &x, &d));
    CHECK_NEAR(stk_tensor_at(d, 0), 0.6, 1e-6);
    stk_tape_release(tape);
    stk_tensor *all[] = {x, y, d, y2};
    for (int i = 0; i < 4; i++) stk_tensor_release(all[i]);
    stk_eager_release(e);
}

TEST(mistakes)
{
    stk_eager *e = context();
    stk_tensor *a = vec(3, (float[]){1, 2, 3}), *b = vec(2, (float[]){1, 2}), *c = NULL;
    CHECK_STATUS(stk_add(e, a, b, &c), STK_ERR_SHAPE);
    CHECK_CONTAINS(stk_eager_error(e)->message, "add(float32[3], float32[2])");
    CHECK(c == NULL);
    CHECK_STATUS(stk_add(e, a, NULL, &c), STK_ERR_ARGUMENT);
    CHECK_STATUS(stk_add(NULL, a, b, &c), STK_ERR_ARGUMENT);
    CHECK_STATUS(stk_matmul(e, a, b, &c), STK_ERR_SHAPE);
    E_OK(stk_add(e, a, a, &c)); /* still usable */
    stk_tensor_release(a);
    stk_tensor_release(b);
    stk_tensor_release(c);
    stk_eager_release(e);
}

static stk_status whole_story(stk_error *err)
{
    stk_eager *e = NULL;
    stk_tape *tape = NULL;
    stk_tensor *x = NULL, *y = NULL, *d = NULL;
    int64_t n = 4;
    stk_status s = stk_eager_new(NULL, &e, err);
    if (!s) s = stk_tensor_new(STK_F32, 1, &n, &x, err);
    if (!s) s = stk_tape_begin(e, &tape);
    if (!s) s = stk_tape_watch(tape, x);
    if (!s) s = stk_exp(e, x, &y);
    if (!s) s = stk_tape_gradient(tape, y, 1, &x, &d);
    stk_tape_release(tape);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_tensor_release(d);
    stk_eager_release(e);
    return s;
}

TEST(every_allocation_may_fail)
{
    stk_error err;
    OOM_LOOP(whole_story(&err));
}

static stk_val build_noise(stk_graph *g, const stk_val *x, void *nothing)
{
    (void)nothing;
    return stk_g_add(g, x[0], stk_g_random_uniform(g, STK_F32, 1, (int64_t[]){3}, 0, 1, NULL));
}

TEST(random_numbers_do_not_repeat)
{
    stk_eager *e = context();
    stk_tensor *zero = vec(3, (float[]){0, 0, 0}), *y[3] = {0};
    for (int i = 0; i < 3; i++) {
        if (i == 2) stk_eager_set_step(e, 0);
        E_OK(stk_eager_call(e, build_noise, NULL, 1, &zero, &y[i]));
        REQUIRE(CHECK(y[i] != NULL));
    }
    CHECK(stk_tensor_at(y[0], 0) != stk_tensor_at(y[1], 0));
    CHECK(stk_tensor_at(y[0], 0) == stk_tensor_at(y[2], 0)); /* the counter was put back */
    for (int i = 0; i < 3; i++) stk_tensor_release(y[i]);
    stk_tensor_release(zero);
    stk_eager_release(e);
}

/* Tensors that live on a device: computed with where they are, bits of the CPU, and not for the host's hands. */
TEST(tensors_on_a_device)
{
    stk_error err;
    stk_device *d = NULL, *cpu = NULL;
    stk_eager *e = NULL, *home = NULL;
    setenv("STOKER_APART", "1", 1);
    REQUIRE(CHECK_OK(stk_device_open("cpu:0", 0, &cpu, &err))); /* whatever the default device is */
    REQUIRE(CHECK_OK(stk_device_open("apart:0", 0, &d, &err)));
    CHECK_OK(stk_eager_new(d, &e, &err));
    CHECK_OK(stk_eager_new(cpu, &home, &err));
    stk_tensor *a = NULL, *up = NULL, *same = NULL, *s = NULL, *y = NULL, *z = NULL, *down = NULL;
    stk_tensor *want = NULL, *cast = NULL, *row = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){5, 7}, &a, &err));
    for (int i = 0; i < 35; i++) ((float *)a->data)[i] = (float)i / 8 - 2;
    CHECK(stk_tensor_device(a) == NULL);
    CHECK_OK(stk_tensor_to(a, d, &up, &err));
    CHECK(stk_tensor_device(up) == d);
    CHECK_OK(stk_tensor_to(up, d, &same, &err));
    CHECK(same == up);
    CHECK_OK(stk_tanh(e, up, &s)); /* stays there */
    CHECK(stk_tensor_device(s) == d);
    CHECK_OK(stk_mul(e, s, a, &y)); /* one of each */
    CHECK(stk_tensor_device(y) == d);
    CHECK_OK(stk_erf(e, y, &z)); /* an island: still there afterwards */
    CHECK(stk_tensor_device(z) == d);
    CHECK_FAILS(stk_tensor_cast(z, STK_F64, &cast, &err), STK_ERR_DEVICE, "stk_tensor_to");
    CHECK_OK(stk_tensor_to(z, NULL, &down, &err));
    stk_tensor *t = NULL, *m = NULL;
    CHECK_OK(stk_tanh(home, a, &t));
    CHECK_OK(stk_mul(home, t, a, &m));
    CHECK_OK(stk_erf(home, m, &want));
    stk_tensor *want_here = NULL;
    CHECK_OK(stk_tensor_to(want, NULL, &want_here, &err));
    if (CHECK(down && want_here)) CHECK(!memcmp(down->data, want_here->data, 35 * sizeof(float)));
    CHECK_OK(stk_reshape(e, z, 1, (int64_t[]){35}, &row)); /* a view of it */
    CHECK(stk_tensor_device(row) == d);
    stk_tensor *all[] = {a, up, same, s, y, z, down, want, want_here, row, t, m};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) stk_tensor_release(all[i]);
    stk_eager_release(e);
    stk_eager_release(home);
    stk_device_release(d);
    stk_device_release(cpu);
}

TEST_MAIN()
