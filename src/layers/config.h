/* config.h - options of layers and of the objects inside them, by table.
 *
 * A table row names a member of a C struct, how it is written, and its default (in the same writing, NULL = it must be
 * given). One reader fills the struct from JSON, one writer writes it; options that a C program gives as text become
 * JSON first. So a new option is one line.
 *
 *     typedef struct dense { int64_t units; bool use_bias; stk_activation activation; ... } dense;
 *     static const stk_config_field dense_fields[] = {
 *         STK_FIELD(dense, units, INT, NULL, .low = 1),
 *         STK_FIELD(dense, activation, ACTIVATION, "linear"),
 *         STK_FIELD(dense, use_bias, BOOL, "True"), ... };                                    */
#ifndef STK_LAYERS_CONFIG_H
#define STK_LAYERS_CONFIG_H

#include "base/json.h"
#include "base/memory.h"
#include "base/spelling.h"
#include "stoker/layers.h"

#include <stddef.h>

typedef enum stk_field_kind {                   /* the member's type; how None is kept */
                              STK_FIELD_INT,    /* int64_t; STK_NONE */
                              STK_FIELD_REAL,   /* double; NaN */
                              STK_FIELD_BOOL,   /* bool */
                              STK_FIELD_TEXT,   /* const char *; NULL */
                              STK_FIELD_CHOICE, /* int32_t: place in .choices, "valid|same|causal" */
                              STK_FIELD_INTS, /* stk_ints; n = -1. With .count a lone number is repeated */
                              STK_FIELD_REALS, /* stk_reals; n = -1 */
                              STK_FIELD_PAIRS, /* stk_ints of 2 x .count: 1 or (1, 2) or ((1, 1), (2, 2)); Keras' padding */
                              STK_FIELD_ACTIVATION,  /* stk_activation; linear */
                              STK_FIELD_INITIALIZER, /* const stk_object *; NULL */
                              STK_FIELD_REGULARIZER, /* const stk_object *; NULL */
                              STK_FIELD_CONSTRAINT,  /* const stk_object *; NULL */
                              STK_FIELD_LAYER,       /* stk_layer_state *; NULL */
                              STK_FIELD_LAYERS,      /* stk_layer_list; n = 0 */
                              STK_FIELD_JSON,        /* const stk_json *: kept as it is; NULL */
                              STK_FIELD_NULL /* no member: an option of Keras that is understood only as None */
} stk_field_kind;

#define STK_NONE INT64_MIN
enum { STK_MAX_PARTS = 64 }; /* layers in a list of layers */

typedef struct stk_ints {
    int32_t n;
    bool lone; /* was given as a number, and is written as one when the field has no .count */
    int64_t v[STK_MAX_RANK];
} stk_ints;
typedef struct stk_reals {
    int32_t n;
    bool lone;
    double *v; /* in the model's arena */
} stk_reals;

struct stk_layer_state;
typedef struct stk_layer_list {
    int32_t n;
    struct stk_layer_state **v; /* in the model's arena */
} stk_layer_list;
typedef struct stk_activation {
    const struct stk_activation_def *def; /* NULL: `layer` */
    struct stk_layer_state *layer;        /* a layer as activation: LeakyReLU(0.1) */
} stk_activation;

typedef struct stk_config_field {
    const char *name;
    stk_field_kind kind;
    size_t offset;
    const char *fallback; /* "None", "2", "glorot_uniform"; NULL: must be given */
    int32_t count;        /* INTS: exactly this many; PAIRS */
    int64_t low;          /* INT, INTS: smallest allowed; 0 = not checked */
    const char *choices;
    /* INT: any 64-bit number (seeds); else within 31 bits, so that products do not overflow */
    bool wide;
    bool input_only; /* read, never written */
    bool optional;   /* written only when it is not None */
    bool none;       /* None is a choice of its own, not the default */
    bool sizes;      /* INTS: a shape, whose negative numbers are written as null */
} stk_config_field;
#define STK_FIELD(type, member, kind_, fallback_, ...)                                             \
    {                                                                                              \
        .name = #member, .kind = STK_FIELD_##kind_, .offset = offsetof(type, member),              \
        .fallback = (fallback_), __VA_ARGS__                                                       \
    }
typedef struct stk_fields {
    const stk_config_field *rows;
    int32_t count;
    size_t size; /* of the struct */
} stk_fields;
#define STK_FIELDS(type, rows_)                                                                    \
    {                                                                                              \
        (rows_), (int32_t)(sizeof(rows_) / sizeof *(rows_)), sizeof(type)                          \
    }

/* ---- initialisers, regularisers, constraints: tables of the same kind (objects.c) ------------------------------------- */
typedef enum stk_family { STK_INITIALIZERS, STK_REGULARIZERS, STK_CONSTRAINTS } stk_family;
typedef struct stk_object_def {
    const char *keras_class; /* "GlorotUniform" */
    const char *alias;       /* "glorot_uniform"; words split by | */
    stk_family family;
    int32_t kind; /* for the family's own switch or table */
    stk_fields fields;
} stk_object_def;
struct stk_object {
    const stk_object_def *def;
    const void *config;
};
const char *stk_family_module(stk_family family); /* "keras.initializers" */
const char *stk_family_name(stk_family family);   /* "initializer" */
const stk_object_def *stk_object_find(stk_family family, const char *name);
void stk_object_near_misses(stk_family family, const char *name, char *text, size_t size);
/* Fixed objects for weights without an option: zeros, ones. */
extern const stk_object stk_zeros, stk_ones;

typedef struct stk_activation_def {
    const char *name;
    stk_val (*build)(stk_graph *g, stk_val x);
} stk_activation_def;
const stk_activation_def *stk_activation_find(const char *name); /* NULL: unknown */

/* ---- reading and writing ----------------------------------------------------------------------------------------------- */
/* Who reads: where memory comes from and where the reader is, for messages. */
typedef struct stk_reader {
    stk_model *model;
    stk_arena *arena;
    const char *where; /* "layer 'dense' (Dense)" */
    stk_error *err;
    int32_t depth; /* of parts in parts */
} stk_reader;

/* Fills `out` from a JSON object. Members that the table does not have are refused unless they are null, or named in
 * `others` (a NULL-terminated list). "#0", "#1" ... stand for the first, second ... row. */
stk_status stk_config_read(stk_reader *r, const stk_fields *fields, const stk_json *object,
                           const char *const *others, void *out);
/* Members, in the order of the table, into an open JSON object. */
void stk_config_write(stk_json_writer *w, const stk_fields *fields, const void *config);
/* A layer in Keras' form: {"class_name": "Dense", "config": {...}}. The layer is not numbered yet. */
stk_status stk_layer_read(stk_reader *r, const stk_json *json, struct stk_layer_state **out);
void stk_layer_write(stk_json_writer *w, const struct stk_layer_state *layer);
void stk_layer_write_open(stk_json_writer *w, const struct stk_layer_state *layer);
/* The object that stands around a class's config; what `stk_layer_write` uses. */
void stk_class_begin(stk_json_writer *w, const char *module, const char *keras_class);
void stk_class_end(stk_json_writer *w, const char *registered);
void stk_policy_write(stk_json_writer *w, const char *policy);

/* "Dense(64, activation=relu)" -> {"class_name": "Dense", "config": {"#0": 64, "activation": "relu"}}, parsed. Text that starts
 * with { is JSON already. `arguments`: only what stands between the parentheses -> its object. */
stk_status stk_options_parse(const char *text, bool arguments, stk_json_document **out,
                             stk_error *err);

#endif
