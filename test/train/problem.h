/* problem.h - small models and data that tests of training share. */
#ifndef STK_TEST_TRAIN_PROBLEM_H
#define STK_TEST_TRAIN_PROBLEM_H

#include "check.h"

#include "base/rng.h"
#include "stoker/train.h"

/* Layers one a line. */
static inline stk_model *make_model(const char *layers)
{
    stk_error err;
    stk_model *m = NULL;
    if (!CHECK_OK(stk_model_new("test", &m, &err))) return NULL;
    while (*layers) {
        char line[256];
        size_t n = strcspn(layers, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, layers);
        stk_model_add(m, line);
        layers += n + (layers[n] == '\n');
    }
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    return m;
}

/* Points around `classes` centres: [rows, width] and int32 labels. */
static inline void make_clusters(int64_t rows, int64_t width, int32_t classes, stk_tensor **x,
                                 stk_tensor **y)
{
    stk_error err;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){rows, width}, x, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){rows}, y, &err));
    float *at = (*x)->data, centre[64];
    int32_t *label = (*y)->data;
    stk_rng_int32((stk_rng){1, 0}, 0, rows, 0, classes, label);
    stk_rng_normal((stk_rng){2, 0}, 0, rows * width, 0, 0.5f, at);
    for (int64_t i = 0; i < rows; i++) {
        stk_rng_normal((stk_rng){3, (uint64_t)label[i]}, 0, width, 0, 1, centre);
        for (int64_t k = 0; k < width; k++) at[i * width + k] += centre[k];
    }
}

/* Numbers between -1 and 1 in the shape of an input or output, for `batch` rows. */
static inline stk_tensor *noise(stk_spec spec, int64_t batch, uint64_t seed)
{
    stk_error err;
    stk_tensor *t = NULL;
    spec.shape[0] = batch;
    if (!CHECK_OK(stk_tensor_new(STK_F32, spec.rank, spec.shape, &t, &err))) return NULL;
    for (int64_t i = 0; i < stk_tensor_count(t); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ((float *)t->data)[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return t;
}

typedef struct problem {
    stk_model *model;
    stk_trainer *trainer;
    stk_tensor *x, *y;
    stk_train_data data;
} problem;

static inline bool open_problem_with(problem *p, const char *layers, const stk_trainer_options *how,
                                     int64_t rows)
{
    stk_error err;
    *p = (problem){.model = make_model(layers)};
    make_clusters(rows, 8, 4, &p->x, &p->y);
    p->data = (stk_train_data){.nx = 1, .x = &p->x, .ny = 1, .y = &p->y};
    return p->model && CHECK_OK(stk_trainer_new(p->model, how, &p->trainer, &err));
}

#define MLP "Input(shape=(8,))\nDense(16, activation=relu)\nDense(4, activation=softmax)"

static inline stk_trainer_options usual_options(void)
{
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam:lr=0.01";
    how.loss = "sparse_categorical_crossentropy";
    how.metrics = "accuracy";
    how.deterministic = true;
    how.seed = 3;
    return how;
}

static inline bool open_problem(problem *p, int64_t rows)
{
    stk_trainer_options how = usual_options();
    return open_problem_with(p, MLP, &how, rows);
}

static inline void close_problem(problem *p)
{
    stk_trainer_release(p->trainer);
    stk_model_release(p->model);
    stk_tensor_release(p->x);
    stk_tensor_release(p->y);
}

/* All variables of two stores have the same bits. */
static inline bool same_stores(stk_store *a, stk_store *b)
{
    bool same = stk_store_count(a) == stk_store_count(b);
    for (int32_t i = 0; same && i < stk_store_count(a); i++) {
        stk_tensor *x = NULL, *y = NULL;
        const char *name = stk_store_name(a, i);
        same = stk_store_get(a, name, &x, NULL) == STK_OK &&
               stk_store_get(b, name, &y, NULL) == STK_OK &&
               stk_tensor_bytes(x) == stk_tensor_bytes(y) &&
               !memcmp(x->data, y->data, (size_t)stk_tensor_bytes(x));
        if (!same) printf("variable '%s' differs\n", name);
        stk_tensor_release(x);
        stk_tensor_release(y);
    }
    return same;
}

#endif
