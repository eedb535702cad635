/* Layers that a program brings along: a function that adds graph, called wherever the layer is. */
#include "layers/model.h"

#include <string.h>

struct stk_custom_call {
    stk_layer_call *c;
};

static void call_custom(stk_layer_call *c)
{
    const stk_custom *o = c->config;
    stk_custom_call call = {c};
    o->build(&call, o->context);
    if (stk_graph_ok(c->g) && !c->y[0])
        stk_c_fail(c, STK_ERR_STATE, "its function gave no output; call stk_custom_output");
}

static stk_status make_custom(stk_model *m, const stk_custom *custom, stk_layer *out,
                              stk_error *err)
{
    if (!custom || !custom->class_name || !custom->build)
        return stk_fail(err, STK_ERR_ARGUMENT, "a custom layer needs a class_name and a function");
    if (stk_layer_find(custom->class_name))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "custom layer '%.64s': Keras has a layer of this name; take another",
                        custom->class_name);
    stk_layer_def *def = stk_arena_alloc(&m->arena, sizeof *def);
    stk_layer_state *layer = stk_arena_alloc(&m->arena, sizeof *layer);
    stk_custom *o = stk_arena_copy(&m->arena, custom, sizeof *custom);
    char *name = stk_arena_strdup(&m->arena, custom->class_name);
    if (!def || !layer || !o || !name) return stk_fail_memory(err, "a layer", sizeof *layer);
    o->class_name = name;
    *def = (stk_layer_def){.keras_class = name,
                           .fields = {.size = sizeof *o},
                           .min_inputs = custom->max_inputs ? custom->min_inputs : 1,
                           .max_inputs = custom->max_inputs ? custom->max_inputs : 1,
                           .mask = custom->keeps_mask ? STK_MASK_PASSES : STK_MASK_DROPS,
                           .call = call_custom};
    *layer = (stk_layer_state){.def = def, .trainable = true, .policy = m->policy, .config = o};
    return stk_model_enter(m, layer, out, err);
}

stk_layer stk_model_add_custom(stk_model *m, const stk_custom *custom)
{
    stk_layer number = 0;
    if (!stk_model_may_append(m)) return 0;
    if (make_custom(m, custom, &number, &m->error) != STK_OK) return 0;
    return stk_model_append(m, number, &m->error) == STK_OK ? number : 0;
}

stk_layer stk_m_custom(stk_model *m, const stk_custom *custom)
{
    stk_layer number = 0;
    if (!stk_model_may_connect(m)) return 0;
    return make_custom(m, custom, &number, &m->error) == STK_OK ? number : 0;
}

/* ---- what the function asks ---------------------------------------------------------------------------------------- */

stk_graph *stk_custom_graph(stk_custom_call *c) { return c->c->g; }
bool stk_custom_training(const stk_custom_call *c) { return c->c->training; }
int32_t stk_custom_input_count(const stk_custom_call *c) { return c->c->nx; }
stk_val stk_custom_input(const stk_custom_call *c, int32_t i)
{
    return i >= 0 && i < c->c->nx ? c->c->x[i] : 0;
}

stk_val stk_custom_weight(stk_custom_call *c, const char *name, int32_t rank, const int64_t *shape,
                          const char *initializer, bool trainable)
{
    if (!name) return stk_c_fail(c->c, STK_ERR_ARGUMENT, "a weight needs a name");
    stk_weight_wish wish = {.initializer = stk_c_initializer(c->c, initializer),
                            .fixed = !trainable};
    return stk_c_weight(c->c, name, rank, shape, &wish);
}

void stk_custom_output(stk_custom_call *c, int32_t i, stk_val y)
{
    if (i < 0 || i >= STK_LAYER_OUTPUTS) {
        stk_c_fail(c->c, STK_ERR_RANGE, "output %d; up to %d are possible", i, STK_LAYER_OUTPUTS);
        return;
    }
    if (i >= c->c->ny) c->c->ny = i + 1;
    c->c->y[i] = y;
}
