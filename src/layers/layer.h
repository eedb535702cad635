/* layer.h - what a layer is: one stk_layer_def per Keras class, written as one block in src/layers/kinds/ and listed in
 * layers.def. doc/adding-a-layer.md walks through one.
 *
 *     fields   the options: name, kind, default, place in the layer's struct. Keras JSON is read and written by
 *              this table, and so are the options that a C program writes down.
 *     call     adds the layer to a graph. It declares its weights where it uses them, so there is no second place
 *              that knows their shapes; and it is run on trial graphs to find out shapes, so there is no third. */
#ifndef STK_LAYERS_LAYER_H
#define STK_LAYERS_LAYER_H

#include "base/json.h"
#include "base/memory.h"
#include "base/shape.h"
#include "graph/ir/ir.h"
#include "layers/config.h"
#include "stoker/layers.h"
#include "stoker/nn.h"

typedef struct stk_layer_call stk_layer_call;

typedef enum stk_mask_rule {
    STK_MASK_DROPS,  /* Keras: supports_masking is false; nothing behind sees the mask */
    STK_MASK_PASSES, /* the mask of the first input is that of the output */
    STK_MASK_OWN     /* call sets c->ymask */
} stk_mask_rule;

typedef struct stk_layer_def {
    const char *keras_class; /* "Dense" */
    const char *module;      /* NULL: keras.layers */
    const char *snake;       /* automatic names, if Keras' rule does not give it; NULL: the rule */
    stk_fields fields;       /* without name, trainable and dtype, which every layer has */
    int32_t min_inputs, max_inputs; /* 0, 0: one; max -1: any number */
    bool list;                      /* Keras passes the inputs as one list: Add()([a, b]) */
    bool operation; /* of keras.ops: no name but in the list of layers, arguments may be numbers */
    bool no_trainable; /* Keras refuses this option for the class, and its dtype is a word */
    bool no_build;     /* Keras has it built from the start and writes no build_config */
    /* "query_shape|value_shape": build_config names the arguments; NULL: one */
    const char *build_shapes;
    /* Weight files of Keras name parts of a layer by attribute: "query=query_dense|key=key_dense" for the first word of a
     * weight's name in the layer. NULL: all weights are the layer's own. */
    const char *scopes;
    bool keeps_dtype; /* inputs are not cast to the compute dtype (embeddings take integers, ...) */
    stk_mask_rule mask;
    /* Optional: after the options were read. Checks what the table cannot. */
    stk_status (*check)(struct stk_layer_state *layer, stk_error *err);
    void (*call)(stk_layer_call *c);
    void (*release)(void *config); /* optional: what the options own besides arena memory */
} stk_layer_def;

/* "mixed_float16" and so on: the type of variables and the type that is computed in. */
typedef struct stk_policy {
    char name[24];
    stk_dtype compute, variable;
} stk_policy;
bool stk_policy_parse(const char *name, stk_policy *out);

/* A layer with its options. It belongs to a model, in whose arena it lives. */
typedef struct stk_layer_state {
    const stk_layer_def *def;
    const char *name;
    bool trainable, own_policy; /* own: given with the layer */
    stk_policy policy;
    const char *attribute; /* of the layer that it is part of: "forward_layer"; NULL: of a model */
    void *config;          /* the struct that def->fields describes */
    stk_model *inner;      /* a model as a layer (def is stk_layer_model); counted */
    bool called;
    int32_t ncalls, first_call, last_call; /* of it in its model, as indices */
    int32_t first_weight, last_weight;     /* of it in its model, as indices + 1; 0: none */
    int32_t number;                        /* 1.. in its model; 0: part of another layer */
} stk_layer_state;

/* One call of one layer. */
struct stk_layer_call {
    stk_graph *g;
    const stk_layer_state *layer;
    const void *config;
    int32_t nx;
    const stk_val *x;        /* floats are already in the compute dtype */
    const stk_val *mask;     /* one per input; bool, 0 = none */
    const char *const *role; /* one per input: "key" when it was passed by name, else NULL */
    /* positional arguments as JSON, when not all are tensors; NULL otherwise */
    const stk_json *args;
    const stk_json *arguments; /* those passed by name that are no tensors: an object, or NULL */
    bool training;
    bool trial;        /* shapes are being found out: nothing of it will run */
    bool trainable;    /* the layer and those around it; a frozen batch norm infers */
    stk_dtype compute; /* what the layer computes in */
    /* Results. y[0] is to be set, and ny when it is not 1. */
    int32_t ny;
    stk_val *y, *ymask; /* room for STK_LAYER_OUTPUTS; ymask is filled by def->mask unless OWN */
    /* private to model_call.c */
    struct stk_frame *frame;
    const char *path;              /* in front of weight names: "bidirectional/forward_lstm" */
    struct stk_layer_call *parent; /* NULL: a layer of the model itself */
    int32_t random_count;
};
enum { STK_LAYER_OUTPUTS = 64, STK_LAYER_INPUTS = 256 };

/* ---- what calls use -------------------------------------------------------------------------------------------- */
typedef struct stk_weight_wish {
    const stk_object *initializer; /* NULL: zeros */
    const stk_object *regularizer, *constraint;
    bool fixed; /* never trained: moving averages, counters */
    /* Fixed, and kept from batch to batch also when not training; no weight of the model. */
    bool state;
    /* The weight of this layer that Keras lists before it, when that is not the last one. */
    const char *behind;
    bool as_is; /* hand out the variable itself, not cast to the compute dtype */
    bool typed; /* `dtype` counts instead of the policy's */
    stk_dtype dtype;
} stk_weight_wish;
/* The wish of options named alike: STK_WISH(o, kernel) takes o->kernel_initializer, _regularizer and _constraint. */
#define STK_WISH(o, word)                                                                          \
    &(stk_weight_wish)                                                                             \
    {                                                                                              \
        .initializer = (o)->word##_initializer, .regularizer = (o)->word##_regularizer,            \
        .constraint = (o)->word##_constraint                                                       \
    }
/* The weight `name` of this layer, as a value of the compute dtype. The first call declares it, in the order that Keras lists
 * weights; later ones find it again and must agree on the shape. */
stk_val stk_c_weight(stk_layer_call *c, const char *name, int32_t rank, const int64_t *shape,
                     const stk_weight_wish *wish);
/* The variable of a weight that is declared already, by this layer or a part of it ("dense/kernel"); 0: there is none. */
stk_val stk_c_declared(stk_layer_call *c, const char *name);
/* "he_normal", "constant(value=2)" as an object. NULL for NULL, after a mistake, and when weights are declared already. */
const stk_object *stk_c_initializer(stk_layer_call *c, const char *text);
/* The variable behind it, to be assigned to (moving averages); only while training, unless it is a state. A weight that is
 * trained as well (SpectralNormalization) is trained from the new value on. */
void stk_c_update(stk_layer_call *c, const char *name, stk_val value);

/* Calls a layer that is part of this one (a wrapped layer, an activation that is a layer). Its weights are named
 * "<this>/<scope>/...". scope NULL: the part's own name. y and ymask have room for STK_LAYER_OUTPUTS. Returns the number of outputs. */
int32_t stk_c_part(stk_layer_call *c, const stk_layer_state *part, const char *scope, int32_t n,
                   const stk_val *x, const stk_val *mask, stk_val *y, stk_val *ymask);
/* Random numbers of this layer: other ones in every call of a model, layer and step. seed: the layer's option, or STK_NONE. */
stk_random_options stk_c_random(stk_layer_call *c, int64_t seed);
/* y, after its activity regulariser (NULL: none) was added to the penalty, divided by the batch as Keras does. */
stk_val stk_c_activity(stk_layer_call *c, const stk_object *regularizer, stk_val y);
/* A mistake: "layer 'dense_1' (Dense): ..." is put in front. Returns 0. */
stk_val stk_c_fail(stk_layer_call *c, stk_status code, const char *format, ...) STK_PRINTF(3, 4);
/* False, with a mistake, unless input i has between low and high axes. */
bool stk_c_rank(stk_layer_call *c, int32_t i, int32_t low, int32_t high);
/* axis in -rank..rank-1 -> 0..rank-1; a mistake and -1 otherwise. */
int32_t stk_c_axis(stk_layer_call *c, int32_t i, int64_t axis);

static inline int64_t stk_c_dim(const stk_layer_call *c, int32_t i, int32_t axis)
{
    return stk_g_dim(c->g, c->x[i], axis);
}
static inline stk_shape stk_c_shape(const stk_layer_call *c, int32_t i)
{
    return stk_val_ok(c->g, c->x[i]) ? c->g->values[c->x[i]].type.shape : (stk_shape){0};
}

/* ---- registry --------------------------------------------------------------------------------------------------- */
#define STK_LAYER(id) extern const stk_layer_def stk_layer_##id;
#include "layers/layers.def"
extern const stk_layer_def stk_layer_model; /* Functional and Sequential inside of a model */

/* Fails with the layer's name and class in front; for check. */
stk_status stk_layer_refuse(const stk_layer_state *layer, stk_error *err, stk_status code,
                            const char *format, ...) STK_PRINTF(4, 5);
const stk_layer_def *stk_layer_find(const char *keras_class); /* NULL: unknown */
/* "'Dens' ...; did you mean Dense?" into text. */
void stk_layer_near_misses(const char *keras_class, char *text, size_t size);
const stk_layer_def *stk_operation_find(const char *keras_class); /* kinds/operations.c */
void stk_operation_near_misses(const char *keras_class, char *text, size_t size);
/* Keras' rule: Conv2D -> conv2d, MaxPooling2D -> max_pooling2d, ReLU -> re_lu. */
void stk_snake_case(const char *name, char *text, size_t size);

#endif
