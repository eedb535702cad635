/* Activations by name. */
#include "graph/ir/ir.h"
#include "layers/activation.h"
#include "stoker/nn.h"

#include <string.h>

#define STK_ACTIVATION(name, expression)                                                           \
    static stk_val build_##name(stk_graph *g, stk_val x)                                           \
    {                                                                                              \
        (void)g;                                                                                   \
        return expression;                                                                         \
    }
#include "layers/activations.def"

static const stk_activation_def activations[] = {
#define STK_ACTIVATION(name, expression) {#name, build_##name},
#include "layers/activations.def"
};
static const char *const names[] = {
#define STK_ACTIVATION(name, expression) #name,
#include "layers/activations.def"
};
enum { COUNT = sizeof names / sizeof *names };

const stk_activation_def *stk_activation_find(const char *name)
{
    for (int32_t i = 0; name && i < COUNT; i++)
        if (!strcmp(activations[i].name, name)) return &activations[i];
    return NULL;
}

void stk_activation_near_misses(const char *name, char *text, size_t size)
{
    stk_did_you_mean(name, names, COUNT, text, size);
}

stk_val stk_g_activation(stk_graph *g, const char *name, stk_val x)
{
    const stk_activation_def *def = stk_activation_find(name ? name : "linear");
    char near[128];
    if (def) return def->build(g, x);
    stk_activation_near_misses(name, near, sizeof near);
    return stk_g_fail(g, STK_ERR_ARGUMENT, "activation '%.64s' is not known.%s", name, near);
}
