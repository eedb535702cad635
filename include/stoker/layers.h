/* layers.h - models made of Keras' layers: built in C, or read from Keras' own JSON.
 *
 *     stk_error err;
 *     stk_model *m = NULL;
 *     if (stk_model_new("digits", &m, &err) != STK_OK) return 1;
 *     stk_model_add(m, "Input(shape=(28, 28, 1))");
 *     stk_model_add(m, "Flatten()");
 *     stk_model_add(m, "Dense(64, activation=relu, kernel_regularizer=l2(0.001))");
 *     stk_model_add(m, "Dense(10)");
 *     if (stk_model_build(m, 0, NULL, &err) != STK_OK) puts(err.message); // mistakes of all the lines above
 *
 *     stk_graph *g = NULL;
 *     stk_store *weights = NULL;
 *     if (stk_graph_new(&g, &err) || stk_store_new(NULL, &weights, &err)) puts(err.message);
 *     stk_val x = stk_g_input(g, "x", STK_F32, 4, (int64_t[]){32, 28, 28, 1}), y;
 *     stk_model_call(m, g, &x, NULL, &y);                   // adds the model to the graph
 *     stk_g_output(g, "logits", y);
 *     if (stk_model_init(m, weights, 42, &err) != STK_OK) puts(err.message);
 *     // stk_program_new(g, &(stk_program_options){.store = weights}, ...) runs it
 *     stk_store_release(weights);
 *     stk_graph_release(g);
 *     stk_model_release(m);
 *
 * A layer is written as in Python: class, then options by place or by name. Words need no quotes; tuples, lists, {name:
 * value}, None, True and False are understood; initialisers, regularisers and constraints are written the same way
 * ("he_normal", "truncated_normal(stddev=0.1)"). Names, defaults, weights and numbers are those of Keras 3. A layer may
 * also be given as the JSON object that Keras writes for it.
 *
 * Adding reports no errors one by one: after the first mistake the model ignores further building, keeps the message, and
 * stk_model_build (or stk_model_status) tells it. A built model is never changed again, but for trainable flags and the
 * policy, and may then be used by several threads. It owns no numbers: weights live in a stk_store, by name. */
#ifndef STOKER_LAYERS_H
#define STOKER_LAYERS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_model stk_model; /* counted */
typedef int32_t stk_layer;          /* a layer of a model; 0 = none */
typedef int32_t stk_sym;            /* a tensor that flows between layers; 0 = none */

/* name may be NULL: "sequential" or "functional". */
STK_API STK_MUST_USE stk_status stk_model_new(const char *name, stk_model **out, stk_error *err);
STK_API stk_model *stk_model_retain(stk_model *m);
STK_API void stk_model_release(stk_model *m);
STK_API stk_status stk_model_status(const stk_model *m, stk_error *err); /* first mistake, or OK */

/* ---- sequential: one layer after the other ---------------------------------------------------------------------
 * Without an Input in front the weights are made when the shape becomes known, by stk_model_build. */
STK_API stk_layer stk_model_add(stk_model *m, const char *layer);
/* A model as a layer of another one; the inner model is kept (counted) and must be built. */
STK_API stk_layer stk_model_add_model(stk_model *m, stk_model *inner);

/* ---- functional: any graph of layers, with several inputs and outputs ------------------------------------------
 *     stk_sym a = stk_m_input(m, "a", STK_F32, 1, (int64_t[]){4});
 *     stk_sym b = stk_m_apply(m, "Dense(4, activation=relu)", 1, &a);
 *     stk_sym c = stk_m_apply(m, "Add()", 2, (stk_sym[]){a, b});
 *     stk_m_output(m, c);                                                             */
/* shape is without the batch axis; -1 = any size. name may be NULL. */
STK_API stk_sym stk_m_input(stk_model *m, const char *name, stk_dtype dtype, int32_t rank,
                            const int64_t *shape);
/* Makes a layer and does not call it yet. Calling it several times shares its weights. */
STK_API stk_layer stk_m_layer(stk_model *m, const char *layer);
STK_API stk_layer stk_m_model(stk_model *m, stk_model *inner);
/* First output; further ones are the ids that follow. */
STK_API stk_sym stk_m_call(stk_model *m, stk_layer layer, int32_t n, const stk_sym *x);
/* The same with named arguments: "use_causal_mask=True". "key=#2" says that x[2] is not the third place but `key`. */
STK_API stk_sym stk_m_call_with(stk_model *m, stk_layer layer, int32_t n, const stk_sym *x,
                                const char *arguments);
STK_API stk_sym stk_m_apply(stk_model *m, const char *layer, int32_t n, const stk_sym *x);
STK_API void stk_m_output(stk_model *m, stk_sym y); /* outputs are numbered in this order */

/* ---- layers of your own: a function that adds graph ----------------------------------------------------------------
 *     static void scale(stk_custom_call *c, void *context)
 *     {
 *         stk_graph *g = stk_custom_graph(c);
 *         stk_val by = stk_custom_weight(c, "factor", 0, NULL, "ones", true);
 *         stk_custom_output(c, 0, stk_g_mul(g, stk_custom_input(c, 0), by));
 *     }
 *     ... stk_model_add_custom(m, &(stk_custom){.class_name = "Scale", .build = scale});
 *
 * The function is called wherever the layer is, and beforehand on trial graphs to find out shapes; it must do the same each
 * time. stk_g_host puts any C function into the graph, when there are no operations for it. Such a layer can be
 * written as JSON but not read: nobody knows its function. */
typedef struct stk_custom_call stk_custom_call;
typedef struct stk_custom {
    const char *class_name; /* copied; automatic names come from it: "Scale" -> scale, scale_1 */
    void (*build)(stk_custom_call *c, void *context);
    void *context;                  /* must live as long as the model */
    int32_t min_inputs, max_inputs; /* 0, 0: one; max -1: any number */
    bool keeps_mask;                /* the mask of the first input is that of the outputs */
} stk_custom;
STK_API stk_layer stk_model_add_custom(stk_model *m, const stk_custom *custom);
STK_API stk_layer stk_m_custom(stk_model *m, const stk_custom *custom); /* for stk_m_call */
STK_API stk_graph *stk_custom_graph(stk_custom_call *c);
STK_API bool stk_custom_training(const stk_custom_call *c);
STK_API int32_t stk_custom_input_count(const stk_custom_call *c);
STK_API stk_val stk_custom_input(const stk_custom_call *c, int32_t i); /* 0 when there is none */
/* A weight of the layer in its compute dtype. initializer as in "he_normal"; NULL: zeros. */
STK_API stk_val stk_custom_weight(stk_custom_call *c, const char *name, int32_t rank,
                                  const int64_t *shape, const char *initializer, bool trainable);
STK_API void stk_custom_output(stk_custom_call *c, int32_t i, stk_val y);

/* ---- building ----------------------------------------------------------------------------------------------------- */
typedef struct stk_spec {
    const char *name;
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK]; /* with the batch axis; -1 = any size */
} stk_spec;
/* Ends the building. n = 0 unless a sequential model has no Input: then inputs[0] says what it will be fed. Building a
 * built model again does nothing. */
STK_API STK_MUST_USE stk_status stk_model_build(stk_model *m, int32_t n, const stk_spec *inputs,
                                                stk_error *err);
STK_API bool stk_model_is_built(const stk_model *m);

/* ---- asking ------------------------------------------------------------------------------------------------------- */
STK_API const char *stk_model_name(const stk_model *m);
STK_API int32_t stk_model_input_count(const stk_model *m);
STK_API int32_t stk_model_output_count(const stk_model *m);
STK_API stk_spec stk_model_input(const stk_model *m, int32_t i); /* name: that of the layer */
STK_API stk_spec stk_model_output(const stk_model *m, int32_t i);
STK_API int32_t stk_model_layer_count(const stk_model *m);
STK_API const char *stk_model_layer_name(const stk_model *m, int32_t i);  /* "dense_1" */
STK_API const char *stk_model_layer_class(const stk_model *m, int32_t i); /* "Dense" */

typedef struct stk_object stk_object; /* an initialiser, regulariser or constraint */
typedef struct stk_weight {
    const char *name;  /* "dense/kernel", the name in the store and in graphs */
    const char *layer; /* "dense" */
    stk_dtype dtype;   /* of the variable; computing may happen in a shorter type, see policies */
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    bool trainable; /* of the weight, its layer and the model */
    const stk_object *initializer, *regularizer, *constraint; /* NULL: none */
} stk_weight;
STK_API int32_t stk_model_weight_count(const stk_model *m);
STK_API stk_weight stk_model_weight(const stk_model *m, int32_t i);
STK_API int32_t stk_model_find_weight(const stk_model *m, const char *name); /* -1: none */
/* Where the weight files of Keras keep weight i: "layers/dense_1/vars/0". False: it does not fit into text. */
STK_API bool stk_model_weight_path(const stk_model *m, int32_t i, char *text, size_t size);
/* Where Keras keeps it a second time (the kernel of a SpectralNormalization); false: nowhere. */
STK_API bool stk_model_weight_second_path(const stk_model *m, int32_t i, char *text, size_t size);
typedef struct stk_param_count {
    int64_t total, trainable, fixed;             /* numbers */
    int64_t bytes, trainable_bytes, fixed_bytes; /* memory for them */
} stk_param_count;
STK_API stk_param_count stk_model_params(const stk_model *m);

/* layer NULL: the whole model. Takes effect in graphs that are made afterwards. */
STK_API STK_MUST_USE stk_status stk_model_set_trainable(stk_model *m, const char *layer,
                                                        bool trainable, stk_error *err);
/* "float32", "float16", "bfloat16", "float64", "mixed_float16" or "mixed_bfloat16" for all layers that have the
 * policy of the model, also in the models inside it.
 * Mixed: variables are float32, what layers compute is half as long. Before stk_model_init. */
STK_API STK_MUST_USE stk_status stk_model_set_policy(stk_model *m, const char *policy,
                                                     stk_error *err);

/* ---- using -------------------------------------------------------------------------------------------------------- */
/* Puts initial values of all weights into the store. The same seed gives the same bits everywhere. */
STK_API STK_MUST_USE stk_status stk_model_init(const stk_model *m, stk_store *store, int64_t seed,
                                               stk_error *err);
/* States of stateful recurrent layers, which go on from batch to batch and from fit to predict, start with zeros again. They are
 * no weights: a file of weights does not hold them, a checkpoint does. stk_model_init does this as well. */
STK_API STK_MUST_USE stk_status stk_model_reset_states(const stk_model *m, stk_store *store,
                                                       stk_error *err);
/* Named weights in and out; every weight of the model must be there, with its shape (dtypes are converted). Names that the
 * model does not have are left alone when `partial`, else refused. */
STK_API STK_MUST_USE stk_status stk_model_set_weights(const stk_model *m, stk_store *store,
                                                      int32_t n, const char *const *names,
                                                      stk_tensor *const *tensors, bool partial,
                                                      stk_error *err);

/* Measures the mean and variance of `data` (what the layer will be fed) for a Normalization layer without given ones, and puts
 * them into the store as its weights. */
STK_API STK_MUST_USE stk_status stk_model_adapt(const stk_model *m, const char *layer,
                                                stk_store *store, const stk_tensor *data,
                                                stk_error *err);

typedef struct stk_call {
    bool training;        /* dropout drops, batch norm uses and follows the batch */
    int64_t seed;         /* of what layers draw at random; other numbers in each step */
    const stk_val *masks; /* bool, one per input, 0 = none; NULL: none at all */
    /* Results; the arrays may be NULL. */
    /* room for stk_model_weight_count: the variables, in the order of the weights */
    stk_val *weights;
    /* as many: the value that a trainable weight was given by the call itself (SpectralNormalization) and that its gradient
     * and its update belong to; 0 = the variable's own. NULL: such values are assigned, like moving averages */
    stk_val *values;
    stk_val *output_masks; /* one per output, 0 = none */
    stk_val penalty;       /* float32 scalar: the sum of all regularisers; 0 = there are none */
} stk_call;
/* Adds the model to a graph: x has one value per input, y room for one per output. `call` may be NULL: inference. Mistakes go
 * to the graph, with the layer's name in front, like those of all builders. In training, moving averages are assigned. */
STK_API void stk_model_call(const stk_model *m, stk_graph *g, const stk_val *x, stk_call *call,
                            stk_val *y);
/* What a weight's constraint makes of a new value: to be put between an update and its assignment. */
STK_API stk_val stk_weight_constrain(const stk_weight *w, stk_graph *g, stk_val value);

/* ---- activations by name: "relu", "gelu", "softmax" ... (0 and a mistake in the graph when unknown) ----------------- */
STK_API stk_val stk_g_activation(stk_graph *g, const char *name, stk_val x);

/* ---- Keras JSON, copies, tables --------------------------------------------------------------------------------------
 * What model.to_json() of Keras 3 writes. A class that is not known is named in the message, with those that are spelled
 * nearly alike. The model is built already if the file has its input shapes. */
STK_API STK_MUST_USE stk_status stk_model_from_json(const char *text, size_t size, stk_model **out,
                                                    stk_error *err);
STK_API STK_MUST_USE stk_status stk_model_load_json(const char *path, stk_model **out,
                                                    stk_error *err);
/* indent 0: one line. Free the text with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_model_to_json(const stk_model *m, int32_t indent, char **out,
                                                  stk_error *err);
STK_API STK_MUST_USE stk_status stk_model_clone(const stk_model *m, stk_model **out,
                                                stk_error *err);

typedef struct stk_summary_options {
    bool ascii;     /* + - | instead of box-drawing characters */
    bool nested;    /* also the layers inside of models that are layers */
    bool trainable; /* a column of Y and N */
} stk_summary_options;
/* The table of Keras' summary(): layers, shapes, parameters. options NULL: all false. Free the text with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_model_summary(const stk_model *m,
                                                  const stk_summary_options *options, char **out,
                                                  stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
