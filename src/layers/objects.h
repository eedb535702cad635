/* objects.h - what initialisers, regularisers and constraints hold, and what they do. Their rows are in objects.c. */
#ifndef STK_LAYERS_OBJECTS_H
#define STK_LAYERS_OBJECTS_H

#include "base/rng.h"
#include "base/shape.h"
#include "layers/config.h"

typedef enum stk_initializer_kind {
    STK_INIT_CONSTANT,
    STK_INIT_UNIFORM,
    STK_INIT_NORMAL,
    STK_INIT_TRUNCATED,
    STK_INIT_SCALED,
    STK_INIT_ORTHOGONAL,
    STK_INIT_IDENTITY,
    STK_INIT_FORGET, /* of an LSTM's bias */
    STK_INIT_ROOT    /* of deviations that start as variances do */
} stk_initializer_kind;
enum { STK_FAN_IN, STK_FAN_OUT, STK_FAN_AVG };                        /* mode */
enum { STK_SCALED_TRUNCATED, STK_SCALED_NORMAL, STK_SCALED_UNIFORM }; /* distribution */

/* One struct for all of them: a table shows only what its class has, and sets the rest by hidden rows. */
typedef struct stk_initializer {
    double value;        /* constant */
    double mean, stddev; /* normal, truncated */
    double minval, maxval;
    double scale; /* scaled */
    int32_t mode, distribution;
    double gain; /* orthogonal, identity */
    int64_t seed;
    stk_ints input_axes, output_axes;
    /* forget: how all but the second quarter start, which is ones; root: of what */
    const stk_object *rest;
} stk_initializer;
/* They have no name in Keras: what unit_forget_bias and renorm ask for. */
extern const stk_object_def stk_forget_bias, stk_root_of;

typedef enum stk_regularizer_kind { STK_REG_L1L2, STK_REG_ORTHOGONAL } stk_regularizer_kind;
typedef struct stk_regularizer {
    double l1, l2;
    double factor;
    int32_t mode; /* rows, columns */
} stk_regularizer;

typedef enum stk_constraint_kind {
    STK_CONSTRAINT_MAX_NORM,
    STK_CONSTRAINT_NON_NEG,
    STK_CONSTRAINT_UNIT_NORM,
    STK_CONSTRAINT_MIN_MAX_NORM
} stk_constraint_kind;
typedef struct stk_constraint {
    double min_value, max_value, rate;
    stk_ints axis;
} stk_constraint;

/* Fills t (a dense float32 or float64 tensor, or an integer one for constants). */
stk_status stk_initialize(const stk_object *initializer, stk_rng rng, stk_tensor *t,
                          stk_error *err);
/* A scalar in the dtype of w; w is the variable, or an activity divided by its batch. */
stk_val stk_g_regularize(stk_graph *g, const stk_object *regularizer, stk_val w);

#endif
