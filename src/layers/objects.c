/* Rows of the initialisers, regularisers and constraints: Keras' classes, their other names, their options. */
#include "layers/objects.h"

#include <string.h>

/* Options that a class fixes are hidden rows: never written, and nobody can name "=". */
#define FIXED(type, member, kind_, value, ...)                                                     \
    {                                                                                              \
        .name = "=" #member, .kind = STK_FIELD_##kind_, .offset = offsetof(type, member),          \
        .fallback = (value), .input_only = true, __VA_ARGS__                                       \
    }
#define MODES                    .choices = "fan_in|fan_out|fan_avg"
#define DISTRIBUTIONS            .choices = "truncated_normal|untruncated_normal|uniform"
#define INIT(member, kind_, ...) STK_FIELD(stk_initializer, member, kind_, __VA_ARGS__)
#define SET(member, kind_, ...)  FIXED(stk_initializer, member, kind_, __VA_ARGS__)
#define SEED                     INIT(seed, INT, "None", .wide = true)

static const stk_config_field constant[] = {INIT(value, REAL, "0")};
static const stk_config_field zeros[] = {SET(value, REAL, "0")};
static const stk_config_field ones[] = {SET(value, REAL, "1")};
static const stk_config_field identity[] = {INIT(gain, REAL, "1")};
static const stk_config_field orthogonal[] = {INIT(gain, REAL, "1"), SEED};
static const stk_config_field normal[] = {INIT(mean, REAL, "0"), INIT(stddev, REAL, "0.05"), SEED};
static const stk_config_field uniform[] = {INIT(minval, REAL, "-0.05"), INIT(maxval, REAL, "0.05"),
                                           SEED};
static const stk_config_field scaling[] = {
    INIT(scale, REAL, "1"),
    INIT(mode, CHOICE, "fan_in", MODES),
    INIT(distribution, CHOICE, "truncated_normal",
         .choices = "truncated_normal|untruncated_normal|uniform|normal"),
    SEED,
    INIT(input_axes, INTS, "None"),
    INIT(output_axes, INTS, "None"),
};
#define SCALED(name, scale_, mode_, distribution_)                                                 \
    static const stk_config_field name[] = {                                                       \
        SEED,                                                                                      \
        INIT(input_axes, INTS, "None"),                                                            \
        INIT(output_axes, INTS, "None"),                                                           \
        SET(scale, REAL, scale_),                                                                  \
        SET(mode, CHOICE, mode_, MODES),                                                           \
        SET(distribution, CHOICE, distribution_, DISTRIBUTIONS)};
SCALED(glorot_uniform, "1", "fan_avg", "uniform")
SCALED(glorot_normal, "1", "fan_avg", "truncated_normal")
SCALED(lecun_uniform, "1", "fan_in", "uniform")
SCALED(lecun_normal, "1", "fan_in", "truncated_normal")
SCALED(he_uniform, "2", "fan_in", "uniform")
SCALED(he_normal, "2", "fan_in", "truncated_normal")

#define REG(member, fallback_, ...) STK_FIELD(stk_regularizer, member, REAL, fallback_, __VA_ARGS__)
#define NOREG(member)               FIXED(stk_regularizer, member, REAL, "0")
static const stk_config_field l1[] = {REG(l1, "0.01"), NOREG(l2)};
static const stk_config_field l2[] = {REG(l2, "0.01"), NOREG(l1)};
static const stk_config_field l1l2[] = {REG(l1, "0"), REG(l2, "0")};
static const stk_config_field orthogonal_reg[] = {
    REG(factor, "0.01"),
    STK_FIELD(stk_regularizer, mode, CHOICE, "rows", .choices = "rows|columns"),
};

#define CON(member, kind_, ...) STK_FIELD(stk_constraint, member, kind_, __VA_ARGS__)
static const stk_config_field max_norm[] = {CON(max_value, REAL, "2"), CON(axis, INTS, "0")};
static const stk_config_field unit_norm[] = {CON(axis, INTS, "0")};
static const stk_config_field min_max[] = {CON(min_value, REAL, "0"), CON(max_value, REAL, "1"),
                                           CON(rate, REAL, "1"), CON(axis, INTS, "0")};

#define ROW(class_, alias_, family_, kind_, type, rows)                                            \
    {                                                                                              \
        class_, alias_, STK_##family_##S, STK_##kind_, STK_FIELDS(type, rows)                      \
    }
#define IROW(class_, alias_, kind_, rows)                                                          \
    ROW(class_, alias_, INITIALIZER, INIT_##kind_, stk_initializer, rows)
#define RROW(class_, alias_, kind_, rows)                                                          \
    ROW(class_, alias_, REGULARIZER, REG_##kind_, stk_regularizer, rows)
#define CROW(class_, alias_, kind_, rows)                                                          \
    ROW(class_, alias_, CONSTRAINT, CONSTRAINT_##kind_, stk_constraint, rows)

static const stk_object_def defs[] = {
    IROW("Zeros", "zeros|zero|Zero", CONSTANT, zeros),
    IROW("Ones", "ones|one|One", CONSTANT, ones),
    IROW("Constant", "constant", CONSTANT, constant),
    IROW("RandomNormal", "random_normal|normal", NORMAL, normal),
    IROW("RandomUniform", "random_uniform|uniform", UNIFORM, uniform),
    IROW("TruncatedNormal", "truncated_normal", TRUNCATED, normal),
    IROW("VarianceScaling", "variance_scaling", SCALED, scaling),
    IROW("GlorotUniform", "glorot_uniform|xavier_uniform", SCALED, glorot_uniform),
    IROW("GlorotNormal", "glorot_normal|xavier_normal", SCALED, glorot_normal),
    IROW("LecunUniform", "lecun_uniform", SCALED, lecun_uniform),
    IROW("LecunNormal", "lecun_normal", SCALED, lecun_normal),
    IROW("HeUniform", "he_uniform", SCALED, he_uniform),
    IROW("HeNormal", "he_normal", SCALED, he_normal),
    IROW("Orthogonal", "orthogonal|OrthogonalInitializer", ORTHOGONAL, orthogonal),
    IROW("Identity", "identity|IdentityInitializer", IDENTITY, identity),
    RROW("L1", "l1", L1L2, l1),
    RROW("L2", "l2", L1L2, l2),
    RROW("L1L2", "l1_l2|l1l2", L1L2, l1l2),
    RROW("OrthogonalRegularizer", "orthogonal_regularizer", ORTHOGONAL, orthogonal_reg),
    CROW("MaxNorm", "max_norm", MAX_NORM, max_norm),
    {"NonNeg",
     "non_neg",
     STK_CONSTRAINTS,
     STK_CONSTRAINT_NON_NEG,
     {NULL, 0, sizeof(stk_constraint)}},
    CROW("UnitNorm", "unit_norm", UNIT_NORM, unit_norm),
    CROW("MinMaxNorm", "min_max_norm", MIN_MAX_NORM, min_max),
};
enum { COUNT = sizeof defs / sizeof *defs };

const stk_object_def stk_forget_bias = {"", "", STK_INITIALIZERS, STK_INIT_FORGET, {NULL, 0, 0}};
const stk_object_def stk_root_of = {"", "", STK_INITIALIZERS, STK_INIT_ROOT, {NULL, 0, 0}};

static const stk_initializer zero_values = {.value = 0}, one_values = {.value = 1};
const stk_object stk_zeros = {&defs[0], &zero_values}, stk_ones = {&defs[1], &one_values};

const char *stk_family_module(stk_family family)
{
    static const char *const modules[] = {"keras.initializers", "keras.regularizers",
                                          "keras.constraints"};
    return modules[family];
}

const char *stk_family_name(stk_family family)
{
    static const char *const names[] = {"initializer", "regularizer", "constraint"};
    return names[family];
}

static bool has_word(const char *words, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, name, n) && (at[n] == '|' || !at[n])) return true;
    return false;
}

const stk_object_def *stk_object_find(stk_family family, const char *name)
{
    for (int32_t i = 0; i < COUNT; i++)
        if (defs[i].family == family &&
            (!strcmp(defs[i].keras_class, name) || has_word(defs[i].alias, name)))
            return &defs[i];
    return NULL;
}

void stk_object_near_misses(stk_family family, const char *name, char *text, size_t size)
{
    const char *names[COUNT];
    int32_t n = 0;
    for (int32_t i = 0; i < COUNT; i++)
        if (defs[i].family == family) names[n++] = defs[i].keras_class;
    stk_did_you_mean(name, names, n, text, size);
}
