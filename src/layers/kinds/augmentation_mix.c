/* Several augmentations in one layer: RandomColorJitter, RandAugment, AugMix. */
#include "layers/kinds/augmentation.h"

#include "base/rng.h"

#include <math.h>

stk_val stk_augment_apply(stk_layer_call *c, const stk_layer_def *def, const stk_augment *options,
                          stk_val x)
{
    stk_val y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    stk_layer_call inner = *c;
    inner.config = options;
    inner.x = &x;
    inner.nx = 1;
    inner.y = y;
    inner.ymask = ymask;
    def->call(&inner);
    c->random_count = inner.random_count; /* other numbers for the next one */
    return stk_graph_ok(c->g) ? y[0] : 0;
}

/* ---- RandomColorJitter ---------------------------------------------------------------------------------------------------- */

static void call_colour_jitter(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    const struct {
        const stk_layer_def *def;
        const stk_reals *factor;
        double least;
    } steps[] = {{&stk_layer_random_brightness, &o->brightness_factor, -INFINITY},
                 {&stk_layer_random_contrast, &o->contrast_factor, 0},
                 {&stk_layer_random_saturation, &o->saturation_factor, -1},
                 {&stk_layer_random_hue, &o->hue_factor, 0}};
    if (stk_augment_at_rest(c)) return;
    for (int32_t i = 0; i < 4 && stk_graph_ok(c->g); i++) {
        stk_augment part = *o;
        if (steps[i].factor->n < 0) continue;
        stk_augment_range(steps[i].factor, steps[i].least, &part.low[0], &part.high[0]);
        c->y[0] = stk_augment_apply(c, steps[i].def, &part, c->y[0]);
    }
}
static stk_status check_jitter(stk_layer_state *layer, stk_error *err)
{
    const stk_augment *o = layer->config;
    const stk_reals *factors[] = {&o->brightness_factor, &o->contrast_factor, &o->saturation_factor,
                                  &o->hue_factor};
    double low, high;
    for (int32_t i = 0; i < 4; i++)
        if (factors[i]->n >= 0 &&
            (!stk_augment_range(factors[i], i == 1 || i == 3 ? 0 : -1, &low, &high) || low < -1 ||
             high > 1))
            return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                    "factors take a number, or two: lower and upper, up to 1");
    return stk_augment_check(layer, err);
}
static const stk_config_field jitter_fields[] = {
    STK_AUG(value_range, REALS, "None"),     STK_AUG(brightness_factor, REALS, "None"),
    STK_AUG(contrast_factor, REALS, "None"), STK_AUG(saturation_factor, REALS, "None"),
    STK_AUG(hue_factor, REALS, "None"),      STK_AUG(seed, INT, "None", .wide = true),
    STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(colour_jitter, "RandomColorJitter", check_jitter, jitter_fields);

/* ---- the layers that RandAugment and AugMix choose from -------------------------------------------------------------------- */

enum { WITHOUT_LIGHT = 7, ALL_LAYERS = 11 };
static const stk_layer_def *const CHOICES[ALL_LAYERS] = {
    &stk_layer_random_shear,         &stk_layer_random_translation, &stk_layer_random_rotation,
    &stk_layer_random_posterization, &stk_layer_solarization,       &stk_layer_auto_contrast,
    &stk_layer_equalization,         &stk_layer_random_brightness,  &stk_layer_random_degeneration,
    &stk_layer_random_contrast,      &stk_layer_random_sharpness};

/* The options that Keras gives them: 0 .. factor for all, but one of 1 .. 8 factor bits. */
static stk_augment options_of(const stk_augment *o, const stk_layer_def *def)
{
    stk_augment part = *o;
    part.low[1] = o->low[0];
    part.high[1] = o->high[0];
    part.fill_mode = "reflect";
    part.fill_value = 0;
    part.bins = 256;
    if (def != &stk_layer_random_posterization) return part;
    part.low[0] = 1;
    part.high[0] = fmax(1, floor(8 * o->high[0]));
    return part;
}

static stk_val choose(stk_layer_call *c, int32_t which, stk_val x)
{
    stk_augment options = options_of(c->config, CHOICES[which]);
    return stk_augment_apply(c, CHOICES[which], &options, x);
}

static stk_status check_strength(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check_factor(layer, 0, 1, err);
}

/* ---- RandAugment: num_ops layers, drawn in each step ------------------------------------------------------------------------- */

static void call_rand_augment(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    for (int64_t i = 0; i < o->num_ops && stk_graph_ok(g); i++) {
        stk_random_options random = stk_c_random(c, o->seed);
        stk_val drawn = stk_g_random_int(g, STK_I32, 0, NULL, 0, ALL_LAYERS, &random);
        stk_val before = c->y[0], after = before;
        for (int32_t k = 0; k < ALL_LAYERS && stk_graph_ok(g); k++) {
            stk_val chosen = stk_g_eq(g, drawn, stk_g_scalar(g, STK_I32, k));
            after = stk_g_select(g, chosen, choose(c, k, before), after);
        }
        c->y[0] = after;
    }
}
static const stk_config_field rand_fields[] = {STK_AUG(value_range, REALS, "None"),
                                               STK_AUG(num_ops, INT, "2", .low = 1),
                                               STK_AUG(factor, REALS, "0.5"),
                                               STK_AUG(interpolation, TEXT, "bilinear"),
                                               STK_AUG(seed, INT, "None", .wide = true),
                                               STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(rand_augment, "RandAugment", check_strength, rand_fields);

/* ---- AugMix: chains of layers, mixed with the image --------------------------------------------------------------------------- */

/* As in a compiled step of Keras, which layers stand in a chain is drawn when the program is made; how strong they are and how
 * the chains are mixed, in each step. */
static void call_aug_mix(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    int32_t choices = o->all_ops ? ALL_LAYERS : WITHOUT_LIGHT;
    if (stk_augment_at_rest(c)) return;
    stk_random_options place = stk_c_random(c, o->seed);
    uint64_t state = stk_mix64((uint64_t)place.seed ^ (uint64_t)place.stream);
    stk_val alpha = stk_g_scalar(g, STK_F32, o->alpha), image = c->y[0], sum = 0;
    stk_val share = stk_g_softmax(g, stk_augment_log_gamma(c, 1, &o->num_chains, alpha), 0);
    stk_val own = stk_g_softmax(g, stk_augment_log_gamma(c, 1, (int64_t[]){2}, alpha), 0);
    for (int64_t i = 0; i < o->num_chains && stk_graph_ok(g); i++) {
        stk_val chain = image;
        for (int64_t k = 0; k < o->chain_depth; k++) {
            state = stk_mix64(state + 1);
            int32_t which = (int32_t)(state % (uint64_t)(choices + 1)); /* one means: none */
            if (which < choices) chain = choose(c, which, chain);
        }
        stk_val weight = stk_g_squeeze(g, stk_g_slice_axis(g, share, 0, i, 1), 0);
        chain = stk_g_mul(g, chain, stk_g_cast(g, weight, c->compute));
        sum = sum ? stk_g_add(g, sum, chain) : chain;
    }
    stk_val kept = stk_g_squeeze(g, stk_g_slice_axis(g, own, 0, 0, 1), 0);
    kept = stk_g_cast(g, kept, c->compute);
    image = stk_g_add(g, sum, stk_g_mul(g, kept, stk_g_sub(g, image, sum)));
    c->y[0] = stk_augment_clip(c, image);
}
static stk_status check_aug_mix(stk_layer_state *layer, stk_error *err)
{
    const stk_augment *o = layer->config;
    if (!(o->alpha > 0) || o->num_chains > 64 || o->chain_depth > 64)
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "alpha must be above 0, num_chains and chain_depth at most 64");
    return check_strength(layer, err);
}
static const stk_config_field aug_mix_fields[] = {STK_AUG(value_range, REALS, "None"),
                                                  STK_AUG(num_chains, INT, "3", .low = 1),
                                                  STK_AUG(chain_depth, INT, "3", .low = 1),
                                                  STK_AUG(factor, REALS, "0.3"),
                                                  STK_AUG(alpha, REAL, "1"),
                                                  STK_AUG(all_ops, BOOL, "True"),
                                                  STK_AUG(interpolation, TEXT, "bilinear"),
                                                  STK_AUG(seed, INT, "None", .wide = true),
                                                  STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(aug_mix, "AugMix", check_aug_mix, aug_mix_fields);
