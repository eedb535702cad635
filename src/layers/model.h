/* model.h - a model inside: layers, calls of layers, the tensors between them, and the weights that calls declared.
 *
 *     sym 1 ---- call 0 (layer 1, InputLayer) makes sym 1
 *     sym 2 ---- call 1 (layer 2, Dense) takes sym 1, makes sym 2 ...
 *
 * Calls stand in the order they were made, which is a topological order. Ids of layers and syms count from 1. */
#ifndef STK_LAYERS_MODEL_H
#define STK_LAYERS_MODEL_H

#include "layers/layer.h"

typedef struct stk_msym {
    int32_t call, index; /* which call made it, as which of its outputs */
    stk_dtype dtype;
    int32_t rank;
    int64_t dim[STK_MAX_RANK]; /* -1 = unknown */
} stk_msym;

typedef struct stk_mcall {
    int32_t layer;  /* number */
    int32_t number; /* how often the layer was called before: Keras' node index */
    int32_t nin, nout;
    stk_sym *in, out;          /* outputs are out, out + 1, ... */
    const char **role;         /* per input: the argument it was passed as, or NULL */
    const stk_json *args;      /* positional ones as JSON when not all are tensors; NULL */
    const stk_json *arguments; /* those that are no tensors; NULL: none */
    int32_t next;              /* call of the same layer + 1; 0: this is the last one */
    bool used;                 /* outputs of the model depend on it */
} stk_mcall;

enum { STK_NESTING = 8 };
typedef struct stk_mweight {
    const char *name; /* "dense/kernel" */
    int32_t layer;    /* number of the model's layer it belongs to */
    stk_dtype dtype;
    stk_shape shape;
    int32_t next;      /* weight of the same layer, as an index + 1; 0: this is the last one */
    bool fixed, typed; /* typed: the dtype does not follow the policy */
    /* Keras keeps the weight before it, which is one of a part, in front of it as well. */
    bool behind;
    bool state; /* of a stateful layer: kept between batches, but no weight to list or save */
    const stk_object *initializer, *regularizer, *constraint;
    /* It is trained if all of these are: the layer, the layers inside it that lead to the weight. */
    int32_t depth;
    const stk_layer_state *chain[STK_NESTING];
} stk_mweight;

typedef enum stk_model_kind {
    STK_MODEL_EMPTY,
    STK_MODEL_SEQUENTIAL,
    STK_MODEL_FUNCTIONAL
} stk_model_kind;

struct stk_model {
    int32_t refs; /* atomic */
    stk_model_kind kind;
    bool built, trainable;
    char *name;        /* NULL: by kind */
    stk_policy policy; /* of layers that were given none */
    stk_error error;   /* first mistake while building */
    stk_arena arena;
    stk_layer_state **layers;
    int64_t nlayers, cap_layers;
    stk_mcall *calls;
    int64_t ncalls, cap_calls;
    stk_msym *syms;
    int64_t nsyms, cap_syms;
    stk_sym *inputs, *outputs;
    int64_t ninputs, cap_inputs, noutputs, cap_outputs;
    stk_mweight *weights;
    int64_t nweights, cap_weights;
    /* (layer, name) -> index of a weight; (0, name) -> number of a layer, (1, class) -> last number in an automatic name */
    stk_name_index weight_names, layer_names;
    /* Since built: layers in Keras' order (numbers), weights in the order of the layers (indices). */
    int32_t *order, *weight_order;
    int64_t norder, nweight_order;
    /* Names of inputs and outputs when Keras had them in a dict: JSON of the structures; NULL: lists. */
    const stk_json *input_form, *output_form;
    const char **output_names; /* keys of that dict, per output; NULL: names of the layers */
    /* The option texts and files whose trees are pointed into. */
    stk_json_document **documents;
    int64_t ndocuments, cap_documents;
};

static inline stk_layer_state *stk_layer_at(const stk_model *m, int32_t number)
{
    return m->layers[number - 1];
}
static inline stk_msym *stk_sym_at(const stk_model *m, stk_sym s) { return &m->syms[s - 1]; }

/* ---- model.c: building, as used by the readers -------------------------------------------------------------------- */
stk_status stk_model_keep(stk_model *m, stk_json_document *document, stk_error *err); /* takes it */
/* Numbers and names a layer that was read; takes care of doubled names. */
stk_status stk_model_enter(stk_model *m, stk_layer_state *layer, stk_layer *out, stk_error *err);
stk_status stk_model_enter_call(stk_model *m, const stk_mcall *call, stk_sym *out, stk_error *err);
stk_status stk_model_nest(stk_model *m, stk_model *inner, const char *name, stk_layer *out,
                          stk_error *err);
/* May a layer be added this way now? No, with a mistake, in a model of the other kind and in a built one. */
bool stk_model_may_append(stk_model *m);
bool stk_model_may_connect(stk_model *m);
stk_status stk_model_append(stk_model *m, stk_layer layer, stk_error *err); /* sequential */
stk_status stk_model_add_output(stk_model *m, stk_sym y, stk_error *err);
stk_status stk_model_order(stk_model *m, stk_error *err); /* order.c */
/* OK when it is built, else what is missing: of those who need that. */
stk_status stk_model_check_built(const stk_model *m, stk_error *err);
bool stk_weight_trainable(const stk_model *m, const stk_mweight *w);
/* "(None, 28, 28)" */
char *stk_sym_text(const stk_msym *s, char *text, size_t size);

/* Masks of Keras that are passed by name belong to an input: "mask", "query_mask" to the first, "value_mask" to the second,
 * "key_mask" to the third. -1: the role is no mask. */
int32_t stk_role_mask(const char *role);

/* ---- model_call.c --------------------------------------------------------------------------------------------------- */
/* Finds out the outputs of a call on trial graphs, and declares the layer's weights. */
stk_status stk_model_infer(stk_model *m, stk_mcall *call, stk_msym *out, int32_t *nout,
                           stk_error *err);
/* The calls of a model that is a layer. */
void stk_c_model(stk_layer_call *c, const stk_model *inner);

/* ---- kinds/core.c ------------------------------------------------------------------------------------------------------ */
typedef struct stk_input_config {
    stk_ints shape; /* n = -1: batch_shape counts */
    int64_t batch_size;
    stk_ints batch_shape;
    const char *dtype;
    bool sparse, ragged, optional;
    const char *name;
} stk_input_config;
/* Type of an input layer, for its call. */
stk_status stk_input_type(const stk_layer_state *layer, stk_msym *out, stk_error *err);

#endif
