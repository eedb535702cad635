/* Which layers there are, by Keras' class names. */
#include "layers/layer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const stk_layer_def *const layers[] = {
#define STK_LAYER(id) &stk_layer_##id,
#include "layers/layers.def"
};
enum { COUNT = sizeof layers / sizeof *layers };

stk_status stk_layer_refuse(const stk_layer_state *layer, stk_error *err, stk_status code,
                            const char *format, ...)
{
    char text[STK_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!layer->name) return stk_fail(err, code, "%s: %.900s", layer->def->keras_class, text);
    return stk_fail(err, code, "layer '%.64s' (%s): %.800s", layer->name, layer->def->keras_class,
                    text);
}

const stk_layer_def *stk_layer_find(const char *keras_class)
{
    if (!keras_class) return NULL;
    if (!strcmp(keras_class, "Input")) keras_class = "InputLayer";
    for (int32_t i = 0; i < COUNT; i++)
        if (!strcmp(layers[i]->keras_class, keras_class)) return layers[i];
    return NULL;
}

void stk_layer_near_misses(const char *keras_class, char *text, size_t size)
{
    const char *names[COUNT];
    for (int32_t i = 0; i < COUNT; i++) names[i] = layers[i]->keras_class;
    stk_did_you_mean(keras_class, names, COUNT, text, size);
}

/* Keras' two replacements: (.)([A-Z][a-z]+) -> \1_\2, then ([a-z])([A-Z]) -> \1_\2, then lower case. */
void stk_snake_case(const char *name, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; name[i] && used + 3 < size; i++) {
        bool upper = isupper((unsigned char)name[i]);
        bool word = upper && islower((unsigned char)name[i + 1]);
        bool after_small = upper && i && islower((unsigned char)name[i - 1]);
        if (i && (word || after_small) && text[used - 1] != '_') text[used++] = '_';
        text[used++] = (char)tolower((unsigned char)name[i]);
    }
    text[used] = 0;
}

bool stk_policy_parse(const char *name, stk_policy *out)
{
    static const stk_policy policies[] = {
        {"float32", STK_F32, STK_F32},
        {"float64", STK_F64, STK_F64},
        {"float16", STK_F16, STK_F16},
        {"bfloat16", STK_BF16, STK_BF16},
        {"mixed_float16", STK_F16, STK_F32},
        {"mixed_bfloat16", STK_BF16, STK_F32},
        {"int32", STK_I32, STK_I32},
        {"int64", STK_I64, STK_I64},
        {"uint8", STK_U8, STK_U8},
        {"bool", STK_BOOL, STK_BOOL},
        {"int8", STK_I8, STK_I8},
        {"int16", STK_I16, STK_I16},
    };
    for (size_t i = 0; name && i < sizeof policies / sizeof *policies; i++)
        if (!strcmp(policies[i].name, name)) {
            *out = policies[i];
            return true;
        }
    return false;
}
