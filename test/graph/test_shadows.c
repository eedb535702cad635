/* The bfloat16 form of trained variables (passes/shadows.c) is kept from step to step, is what a cast of the variable would be whoever
 * has written it, and is seen by nobody outside. */
#include "check.h"

#include "graph/run/program.h"
#include "stoker/nn.h"
#include "stoker/tracing.h"

enum { BATCH = 24, IN = 40, HIDDEN = 72, OUT = 8, WEIGHTS = 3 };

static const char *const NAMES[WEIGHTS] = {"w0", "b0", "w1"};
static const int64_t SHAPES[WEIGHTS][2] = {{IN, HIDDEN}, {HIDDEN}, {HIDDEN, OUT}};

/* ---- a net as a mixed policy builds it --------------------------------------------------------------------- */

static stk_val number(stk_graph *g, double x) { return stk_g_scalar(g, STK_F32, x); }

static stk_val half_of(stk_graph *g, stk_val v) { return stk_g_cast(g, v, STK_BF16); }

static stk_val loss_of(stk_graph *g, const stk_val *w)
{
    stk_val x = half_of(g, stk_g_input(g, "x", STK_F32, 2, (int64_t[]){BATCH, IN}));
    x = stk_g_relu(g, stk_g_add(g, stk_g_matmul(g, x, half_of(g, w[0])), half_of(g, w[1])));
    x = stk_g_matmul(g, x, half_of(g, w[2]));
    return stk_g_mean_all(g, stk_g_square(g, stk_g_cast(g, x, STK_F32)));
}

static stk_graph *net(bool trained)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_val w[WEIGHTS], d[WEIGHTS];
    CHECK_OK(stk_graph_new(&g, &err));
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = stk_g_variable(g, NAMES[i], STK_F32, SHAPES[i][1] ? 2 : 1, SHAPES[i]);
    stk_val loss = loss_of(g, w);
    if (trained) stk_g_gradients(g, loss, WEIGHTS, w, d);
    for (int i = 0; i < WEIGHTS && trained; i++)
        stk_g_assign(g, w[i], stk_g_sub(g, w[i], stk_g_mul(g, number(g, 0.1), d[i])));
    stk_g_output(g, "loss", loss);
    return g;
}

static void fill(stk_tensor *t, uint32_t seed, float scale)
{
    for (int64_t i = 0; i < stk_tensor_count(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)t->data)[i] = scale * ((float)(seed >> 8) * 0x1p-23f - 1.0f);
    }
}

static stk_program *program_of(stk_graph *g, stk_store *store, bool fed)
{
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *x = NULL;
    stk_program_options o = stk_program_options_defaults();
    o.store = store;
    o.deterministic = true;
    CHECK_OK(stk_program_new(g, &o, &p, &err));
    if (fed) {
        CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){BATCH, IN}, &x, &err));
        fill(x, 1, 1);
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        stk_tensor_release(x);
    }
    stk_graph_release(g);
    return p;
}

static void set_weight(stk_store *s, int i, uint32_t seed)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, SHAPES[i][1] ? 2 : 1, SHAPES[i], &t, &err));
    fill(t, seed, 0.3f);
    CHECK_OK(stk_store_set(s, NAMES[i], t, &err));
    stk_tensor_release(t);
}

static stk_store *new_store(void)
{
    stk_error err;
    stk_store *s = NULL;
    CHECK_OK(stk_store_new(NULL, &s, &err));
    for (int i = 0; i < WEIGHTS; i++) set_weight(s, i, (uint32_t)i + 5);
    return s;
}

static void steps(stk_program *p, int64_t n)
{
    stk_error err;
    CHECK_OK(stk_program_run(p, n, &err));
}

static float loss_read(stk_program *p)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_program_read(p, "loss", &t, &err));
    float loss = ((const float *)t->data)[0];
    stk_tensor_release(t);
    return loss;
}

static int shadows_in(const stk_program *p)
{
    int count = 0;
    for (int64_t k = 0; k < p->g->nnodes; k++) count += stk_shadow_of(&p->g->nodes[k]) != NULL;
    return count;
}

/* What a step makes of the variables as they are now, by a program and a store that are new. */
static stk_store *step_apart(stk_store *s)
{
    stk_error err;
    stk_store *fresh = new_store();
    stk_program *p = program_of(net(true), fresh, true);
    for (int i = 0; i < WEIGHTS; i++) {
        stk_tensor *t = NULL;
        CHECK_OK(stk_store_get(s, NAMES[i], &t, &err));
        CHECK_OK(stk_store_set(fresh, NAMES[i], t, &err));
        stk_tensor_release(t);
    }
    steps(p, 1);
    stk_program_release(p);
    return fresh;
}

static bool same(stk_store *a, stk_store *b)
{
    stk_error err;
    bool yes = true;
    for (int i = 0; i < WEIGHTS; i++) {
        stk_tensor *x = NULL, *y = NULL;
        CHECK_OK(stk_store_get(a, NAMES[i], &x, &err));
        CHECK_OK(stk_store_get(b, NAMES[i], &y, &err));
        yes &= !memcmp(x->data, y->data, (size_t)stk_tensor_bytes(x));
        stk_tensor_release(x);
        stk_tensor_release(y);
    }
    return yes;
}

/* A step of p from here is a step from the variables as others see them. */
static void check_step(stk_program *p, stk_store *s, const char *after)
{
    stk_store *apart = step_apart(s);
    steps(p, 1);
    CHECK_MSG(same(s, apart), "other weights than those %s", after);
    stk_store_release(apart);
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

static bool has_shadows(const stk_program *p)
{
    return p->device->caps.owners > 0; /* else there is nothing to be seen here */
}

TEST(trained_weights_have_shadows_that_nobody_sees)
{
    stk_store *s = new_store();
    stk_program *other = program_of(net(false), s, true), *p = program_of(net(true), s, true);
    CHECK_EQ_I64(shadows_in(other), 0); /* a program that reads only makes none, */
    stk_program *later = program_of(net(false), s, true);
    if (has_shadows(p)) {
        CHECK_EQ_I64(shadows_in(p), WEIGHTS);
        CHECK_EQ_I64(shadows_in(later), WEIGHTS); /* but uses those that are there */
    }
    CHECK_EQ_I64(stk_store_count(s), WEIGHTS);
    steps(p, 3);
    steps(other, 1);
    steps(later, 1);
    CHECK(loss_read(other) == loss_read(later));
    stk_program_release(p);
    stk_program_release(other);
    stk_program_release(later);
    stk_store_release(s);
}

/* No chain of a step only rounds a weight. */
TEST(updates_write_both_forms)
{
    stk_store *s = new_store();
    stk_program *p = program_of(net(true), s, true);
    int64_t casts = 0, both = 0;
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel != STK_K_CHAIN) continue;
        const stk_chain *c = t->params;
        casts += c->ops == 1 && c->input[0].dtype == STK_F32 && c->output[0].dtype == STK_BF16 &&
                 t->count != BATCH * IN;
        both += c->outputs == 2 && c->output[0].dtype != c->output[1].dtype ? c->segments : 0;
    }
    if (has_shadows(p)) {
        CHECK_EQ_I64(casts, 0);
        CHECK_EQ_I64(both, WEIGHTS);
    }
    stk_program_release(p);
    stk_store_release(s);
}

TEST(whoever_writes_a_variable_is_heard)
{
    stk_error err;
    stk_store *s = new_store();
    stk_program *p = program_of(net(true), s, true);
    check_step(p, s, "of the start");
    check_step(p, s, "of the step before");
    set_weight(s, 0, 77);
    check_step(p, s, "that were set");
    /* a program that knows no shadows: it reads no weight as a half value */
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val w = stk_g_variable(g, NAMES[2], STK_F32, 2, SHAPES[2]);
    stk_g_assign(g, w, stk_g_mul(g, w, number(g, 0.7)));
    stk_program *scale = program_of(g, s, false);
    for (int i = 0; i < 2; i++) { /* twice: the first run of a program is a case of its own */
        steps(scale, 1);
        check_step(p, s, "of another program");
    }
    stk_program *second = program_of(net(true), s, true);
    steps(second, 2);
    check_step(p, s, "of a second training");
    CHECK_OK(stk_store_clear(s, "b", &err));
    check_step(p, s, "that were cleared");
    stk_program_release(p);
    stk_program_release(second);
    stk_program_release(scale);
    stk_store_release(s);
}

TEST(memory_that_is_lent_may_change_at_any_time)
{
    stk_error err;
    stk_store *s = new_store();
    stk_tensor *view = NULL;
    stk_program *p = program_of(net(true), s, true);
    steps(p, 2);
    if (stk_store_borrow(s, NAMES[0], &view, &err) == STK_OK) {
        for (int i = 0; i < 3; i++) {
            ((float *)view->data)[i] += 0.5f;
            check_step(p, s, "that were written in place");
        }
        stk_tensor_release(view);
    }
    stk_program_release(p);
    stk_store_release(s);
}

TEST(nan_and_infinity_keep_their_bits)
{
    stk_error err;
    stk_store *s = new_store();
    stk_tensor *t = NULL;
    stk_program *p = program_of(net(true), s, true);
    steps(p, 1);
    CHECK_OK(stk_store_get(s, NAMES[1], &t, &err));
    const uint32_t odd[] = {0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x00000001, 0x7F7FFFFF};
    memcpy(t->data, odd, sizeof odd);
    CHECK_OK(stk_store_set(s, NAMES[1], t, &err));
    check_step(p, s, "that are odd");
    check_step(p, s, "that came of them");
    stk_tensor_release(t);
    stk_program_release(p);
    stk_store_release(s);
}

TEST_MAIN()
