/* What a recording front end uses: gradients of spans, absent results, builders by key, tapes with several targets, notes of
 * work done elsewhere, variables in memory of the caller, programs called by position. */
#include "eager_test.h"

#include "graph/run/store.h"

#include "stoker/nn.h"
#include "stoker/tracing.h"

#include <string.h>

/* A scalar of a graph whose inputs are scalars too, x and z, where both are 3. */
static double value_at_three(stk_graph *g, const char *name, stk_val v)
{
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    stk_error err;
    stk_g_output(g, name, v);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 0, NULL, &(float){3}, &x, &err));
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_feed(p, "z", x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, name, &y, &err));
    double value = stk_tensor_at(y, 0);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    return value;
}

TEST(gradients_of_spans)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 0, NULL), z = stk_g_input(g, "z", STK_F32, 0, NULL);
    stk_val before = stk_g_square(g, x);
    stk_val span[2] = {stk_g_next(g), 0};
    stk_val y = stk_g_mul(g, before, x);
    span[1] = stk_g_next(g);
    stk_val later = stk_g_mul(g, y, x);
    stk_val ys[2] = {y, later}, xs[3] = {x, z, before}, d[3] = {0};
    stk_gradient_request r = {.ny = 1, .y = ys, .nx = 3, .x = xs, .nspans = 1, .spans = span};
    stk_g_gradients_of(g, &r, d);
    CHECK(d[0] != 0 && d[2] != 0);
    CHECK(d[1] == 0); /* absent, not zeros */
    /* d(before x)/dx with `before` taken as given; it would be 27 without the span */
    CHECK(value_at_three(g, "dx", d[0]) == 9);
    CHECK(value_at_three(g, "dbefore", d[2]) == 3);
    r.y = ys + 1; /* was made outside of the span */
    stk_g_gradients_of(g, &r, d);
    CHECK(d[0] == 0 && d[1] == 0 && d[2] == 0);
    CHECK_OK(stk_graph_status(g, &err));
    stk_g_add(g, x, stk_g_input(g, "i", STK_I32, 0, NULL));
    CHECK(stk_graph_status(g, &err) != STK_OK);
    stk_graph_forgive(g);
    CHECK_OK(stk_graph_status(g, &err));
    CHECK(stk_g_add(g, x, z) != 0);
    stk_graph_release(g);
}

/* key: an axis; two results */
static int32_t largest(stk_graph *g, const stk_val *x, const stk_attrs *key, stk_val *y)
{
    int32_t axis = (int32_t)key->ints[0];
    y[0] = stk_g_reduce_max(g, x[0], 1, &axis, false);
    y[1] =
        stk_g_mul(g, stk_g_sum(g, x[0], 1, &axis, false), stk_g_scalar(g, STK_F32, key->reals[0]));
    return 2;
}

TEST(builders_by_key)
{
    stk_eager *e = context();
    stk_error err;
    stk_tensor *x = NULL;
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, (float[]){1, 5, 2, 4, 3, 6}, &x, &err));
    for (int round = 0; round < 2; round++)
        for (int64_t axis = 0; axis < 2; axis++) {
            stk_tensor *y[2] = {0};
            int32_t n = 0;
            double scale = 10 * (double)axis + 1;
            stk_attrs key = {.ints = &axis, .nints = 1, .reals = &scale, .nreals = 1};
            E_OK(stk_eager_built(e, largest, &key, 1, &x, &n, y));
            CHECK(n == 2);
            CHECK_NEAR(stk_tensor_at(y[0], 0), axis ? 5 : 4, 0);
            CHECK_NEAR(stk_tensor_at(y[1], 0), axis ? 88 : 5, 0);
            stk_tensor_release(y[0]);
            stk_tensor_release(y[1]);
        }
    stk_tensor_release(x);
    stk_eager_release(e);
}

TEST(tape_with_several_targets)
{
    stk_eager *e = context();
    stk_tape *tape = NULL;
    stk_tensor *a = vec(2, (float[]){1, 2}), *b = vec(2, (float[]){3, 4}),
               *unused = vec(1, (float[]){1});
    stk_tensor *y = NULL, *z = NULL, *w = NULL, *seed = vec(2, (float[]){10, 10});
    E_OK(stk_tape_begin(e, &tape));
    E_OK(stk_tape_watch(tape, a));
    E_OK(stk_tape_watch(tape, b));
    E_OK(stk_mul(e, a, b, &y));
    E_OK(stk_add(e, a, a, &z));
    CHECK(!stk_tape_pause(tape, true));
    E_OK(stk_mul(e, a, y, &w)); /* not seen */
    CHECK(stk_tape_watches(tape, y) && !stk_tape_watches(tape, w));
    stk_tensor *ys[2] = {y, z}, *dys[2] = {seed, NULL}, *xs[3] = {a, b, unused}, *d[3];
    E_OK(stk_tape_gradients(tape, 2, ys, dys, 3, xs, d));
    CHECK(stk_tape_pause(tape, true)); /* still */
    CHECK_NEAR(stk_tensor_at(d[0], 1), 42, 1e-6);
    CHECK_NEAR(stk_tensor_at(d[1], 1), 20, 1e-6);
    CHECK(d[2] == NULL);
    stk_tensor_release(d[0]);
    stk_tensor_release(d[1]);
    E_OK(stk_tape_gradients(tape, 1, &w, NULL, 1, xs, d));
    CHECK(d[0] == NULL);
    stk_tape_release(tape);
    stk_tensor *all[] = {a, b, unused, y, z, w, seed};
    for (int i = 0; i < 7; i++) stk_tensor_release(all[i]);
    stk_eager_release(e);
}

/* x, dy -> 100 dy */
static void hundred(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                    stk_tensor *const *out)
{
    *(int *)context += 1;
    CHECK(nin == 2 && nout == 1);
    for (int i = 0; i < 2; i++) ((float *)out[0]->data)[i] = 100 * ((const float *)in[1]->data)[i];
}

TEST(work_done_elsewhere)
{
    stk_eager *e = context();
    stk_tape *tape = NULL;
    int calls = 0;
    stk_tensor *x = vec(2, (float[]){1, 2}), *y = vec(2, (float[]){7, 8}), *z = NULL, *d = NULL;
    E_OK(stk_tape_begin(e, &tape));
    E_OK(stk_tape_watch(tape, x));
    E_OK(stk_tape_note_host(e, &(stk_host){.name = "f", .gradient = hundred, .context = &calls}, 1,
                            &x, 1, &y));
    E_OK(stk_square(e, y, &z));
    E_OK(stk_tape_gradients(tape, 1, &z, NULL, 1, &x, &d));
    CHECK(calls == 1);
    CHECK_NEAR(stk_tensor_at(d, 1), 1600, 1e-3);
    stk_tape_release(tape);
    stk_tensor *all[] = {x, y, z, d};
    for (int i = 0; i < 4; i++) stk_tensor_release(all[i]);
    stk_eager_release(e);
}

/* Of a variable, wherever it lives. */
static double value_of(stk_store *store, const char *name, int64_t i)
{
    stk_tensor *t = NULL;
    stk_error err;
    if (!CHECK_OK(stk_store_get(store, name, &t, &err))) return 0;
    double value = stk_tensor_at(t, i);
    stk_tensor_release(t);
    return value;
}

/* A device with memory of its own cannot take the caller's, and says so. */
static void adopt_or_set(stk_store *store, stk_tensor *w, bool shares)
{
    stk_error err;
    if (shares) {
        CHECK_OK(stk_store_adopt(store, "w", w, &err));
        CHECK(stk_store_adopt(store, "w", w, &err) == STK_ERR_STATE);
    } else {
        CHECK_FAILS(stk_store_adopt(store, "w", w, &err), STK_ERR_UNSUPPORTED, "stk_store_set");
        CHECK_OK(stk_store_set(store, "w", w, &err));
    }
}

TEST(variables_in_memory_of_the_caller)
{
    stk_graph *g = NULL;
    stk_store *store = NULL;
    stk_program *p = NULL;
    stk_error err;
    stk_tensor *w = vec(2, (float[]){1, 2}), *x = vec(2, (float[]){10, 20}), *view = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_store_new(NULL, &store, &err));
    bool shares = stk_device_shares(stk_store_device(store));
    adopt_or_set(store, w, shares);
    stk_val in = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){2});
    stk_val v = stk_g_variable(g, "w", STK_F32, 1, (int64_t[]){2});
    stk_val own = stk_g_variable(g, "own", STK_F32, 1, (int64_t[]){2});
    stk_val sum = stk_g_add(g, in, v);
    stk_g_assign(g, v, sum);
    stk_g_assign(g, own, stk_g_add(g, own, in));
    stk_g_output(g, "sum", sum);
    stk_g_output(g, "again", sum); /* the same value twice */
    stk_g_output(g, "input", in);
    stk_g_output(g, "constant", stk_g_scalar(g, STK_F32, 3));
    stk_program_options options = stk_program_options_defaults();
    options.store = store;
    CHECK_OK(stk_program_new_caller(g, &options, &p, &err));
    CHECK(stk_program_inputs(p) == 1 && stk_program_outputs(p) == 4);
    if (shares)
        CHECK_OK(stk_store_borrow(store, "own", &view, &err));
    else
        CHECK_FAILS(stk_store_borrow(store, "own", &view, &err), STK_ERR_UNSUPPORTED, "own");
    stk_tensor *given = vec(2, (float[]){0, 0}), *out[4] = {given};
    for (int i = 1; i < 3; i++) {
        CHECK_OK(stk_program_call(p, 1, &x, 4, out, &err));
        CHECK(out[0] == given);
        CHECK_NEAR(shares ? ((float *)w->data)[1] : value_of(store, "w", 1), 2 + 20 * i, 0);
        CHECK_NEAR(stk_tensor_at(given, 1), 2 + 20 * i, 0);
        CHECK_NEAR(stk_tensor_at(out[1], 1), 2 + 20 * i, 0);
        CHECK_NEAR(stk_tensor_at(out[2], 1), 20, 0);
        CHECK_NEAR(stk_tensor_at(out[3], 0), 3, 0);
        CHECK_NEAR(view ? stk_tensor_at(view, 1) : value_of(store, "own", 1), 20 * i, 0);
        for (int o = 1; o < 4; o++) {
            stk_tensor_release(out[o]);
            out[o] = NULL;
        }
    }
    CHECK(stk_program_call(p, 0, NULL, 4, out, &err) == STK_ERR_ARGUMENT);
    stk_program_release(p);
    stk_store_release(store);
    if (view) CHECK_NEAR(stk_tensor_at(view, 1), 40, 0); /* keeps the store */
    stk_graph_release(g);
    stk_tensor *all[] = {w, x, view, given};
    for (int i = 0; i < 4; i++) stk_tensor_release(all[i]);
}

TEST(detached_views_keep_their_values)
{
    stk_error err;
    stk_tensor *memory = vec(2, (float[]){1, 2}), *view = NULL, *second = NULL;
    CHECK_OK(stk_tensor_alias(memory, &view, &err));
    CHECK(view->data == memory->data);
    CHECK(stk_tensor_detach(memory, &err) == STK_ERR_ARGUMENT);
    CHECK_OK(stk_tensor_alias(memory, &second, &err));
    CHECK_OK(stk_tensor_detach(view, &err));
    ((float *)memory->data)[1] = 9;
    CHECK_NEAR(stk_tensor_at(view, 1), 2, 0);
    CHECK_NEAR(stk_tensor_at(second, 1), 9, 0);
    stk_tensor_release(memory);
    CHECK_NEAR(stk_tensor_at(second, 1), 9, 0);
    stk_tensor_release(view);
    stk_tensor_release(second);
}

TEST_MAIN()
