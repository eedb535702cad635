/* model_run.h - a model from lines of text, run on a tensor. What tests of single layers need:
 *
 *     fixture f = sequential("Input((4,))", "Dropout(0.5, seed=1)", NULL);
 *     stk_tensor *y = run_model(&f, x, true, 0);          // training, first step
 */
#ifndef STK_TEST_LAYERS_MODEL_RUN_H
#define STK_TEST_LAYERS_MODEL_RUN_H

#include "check.h"

#include "stoker/layers.h"

#define L(...) ((int64_t[]){__VA_ARGS__})

typedef struct fixture {
    stk_model *model;
    stk_store *store;
} fixture;

static inline void finish(fixture *f)
{
    stk_error err = {0};
    CHECK_OK(stk_model_build(f->model, 0, NULL, &err));
    CHECK_OK(stk_store_new(NULL, &f->store, &err));
    if (stk_model_is_built(f->model)) CHECK_OK(stk_model_init(f->model, f->store, 11, &err));
}

static inline fixture sequential(const char *first, ...)
{
    stk_error err = {0};
    fixture f = {0};
    va_list args;
    CHECK_OK(stk_model_new(NULL, &f.model, &err));
    va_start(args, first);
    for (const char *line = first; line; line = va_arg(args, const char *))
        stk_model_add(f.model, line);
    va_end(args);
    finish(&f);
    return f;
}

static inline void discard(fixture *f)
{
    stk_store_release(f->store);
    stk_model_release(f->model);
}

/* All outputs as named tensors: out[i] for y[i]; the caller releases them. Returns false when something failed. */
static inline bool run_outputs(const fixture *f, int32_t n, stk_tensor *const *x, bool training,
                               int64_t step, int64_t seed, stk_tensor **out)
{
    stk_error err = {0};
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_val in[8], y[8] = {0};
    char name[16];
    int32_t outputs = stk_model_output_count(f->model);
    for (int32_t i = 0; i < outputs; i++) out[i] = NULL;
    if (!CHECK_OK(stk_graph_new(&g, &err))) return false;
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "x%d", i);
        in[i] = stk_g_input(g, name, x[i]->dtype, x[i]->rank, x[i]->shape);
    }
    stk_call call = {.training = training, .seed = seed};
    stk_model_call(f->model, g, in, &call, y);
    for (int32_t i = 0; i < outputs; i++) {
        snprintf(name, sizeof name, "y%d", i);
        stk_g_output(g, name, y[i]);
    }
    stk_program_options o = stk_program_options_defaults();
    o.store = f->store;
    bool good = CHECK_OK(stk_program_new(g, &o, &p, &err));
    if (good) stk_program_set_step(p, step);
    for (int32_t i = 0; good && i < n; i++) {
        snprintf(name, sizeof name, "x%d", i);
        good = CHECK_OK(stk_program_feed(p, name, x[i], &err));
    }
    good = good && CHECK_OK(stk_program_run(p, 1, &err));
    for (int32_t i = 0; good && i < outputs; i++) {
        snprintf(name, sizeof name, "y%d", i);
        good = CHECK_OK(stk_program_read(p, name, &out[i], &err));
    }
    stk_program_release(p);
    stk_graph_release(g);
    return good;
}

static inline stk_tensor *run_model(const fixture *f, stk_tensor *x, bool training, int64_t step)
{
    stk_tensor *y[8];
    run_outputs(f, 1, &x, training, step, 5, y);
    return y[0];
}

static inline stk_tensor *filled(int32_t rank, const int64_t *shape, double (*value)(int64_t i))
{
    stk_error err = {0};
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, rank, shape, &t, &err));
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++)
        CHECK_OK(stk_tensor_set(t, i, value(i), &err));
    return t;
}
static inline double always_one(int64_t i)
{
    (void)i;
    return 1;
}
static inline double a_wave(int64_t i) { return sin((double)i * 0.7) + 0.1 * (double)(i % 5); }

static inline bool same_tensor(const stk_tensor *a, const stk_tensor *b)
{
    if (!a || !b || stk_tensor_count(a) != stk_tensor_count(b)) return false;
    for (int64_t i = 0; i < stk_tensor_count(a); i++)
        if (stk_tensor_at(a, i) != stk_tensor_at(b, i)) return false;
    return true;
}

static inline double mean_of(const stk_tensor *t)
{
    double sum = 0;
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++) sum += stk_tensor_at(t, i);
    return t ? sum / (double)stk_tensor_count(t) : 0;
}
static inline double deviation_of(const stk_tensor *t)
{
    double mean = mean_of(t), sum = 0;
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++)
        sum += pow(stk_tensor_at(t, i) - mean, 2);
    return t ? sqrt(sum / (double)stk_tensor_count(t)) : 0;
}

/* The line is refused, with this in the message. */
static inline void refuses(const char *input, const char *line, const char *fragment)
{
    stk_error err = {0};
    stk_model *m = NULL;
    if (!CHECK_OK(stk_model_new(NULL, &m, &err))) return;
    stk_model_add(m, input);
    stk_model_add(m, line);
    stk_status status = stk_model_build(m, 0, NULL, &err);
    CHECK_MSG(status != STK_OK && strstr(err.message, fragment), "%s: \"%s\" does not say '%s'",
              line, status ? err.message : "(accepted)", fragment);
    stk_model_release(m);
}

#endif
