/* Initial and given numbers for the weights of a model. */
#include "layers/model.h"

#include "base/spelling.h"
#include "layers/objects.h"

#include <stdio.h>
#include <string.h>

static stk_status init_weight(const stk_weight *w, stk_rng rng, stk_store *store, stk_error *err)
{
    stk_tensor *t = NULL;
    STK_TRY(stk_tensor_new(w->dtype, w->rank, w->shape, &t, err));
    stk_status status = stk_initialize(w->initializer, rng, t, err);
    if (status == STK_OK) status = stk_store_set(store, w->name, t, err);
    stk_tensor_release(t);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "weight '%s'", w->name);
}

static stk_status check_built(const stk_model *m, const stk_store *store, stk_error *err)
{
    STK_TRY(stk_model_check_built(m, err));
    if (!store)
        return stk_fail(err, STK_ERR_ARGUMENT, "the store is NULL; make one with stk_store_new");
    return STK_OK;
}

stk_status stk_model_reset_states(const stk_model *m, stk_store *store, stk_error *err)
{
    STK_TRY(check_built(m, store, err));
    for (int64_t i = 0; i < m->nweights; i++) {
        const stk_mweight *w = &m->weights[i];
        stk_weight state = {.name = w->name, .dtype = w->dtype, .rank = w->shape.rank};
        memcpy(state.shape, w->shape.dim, sizeof state.shape);
        if (w->state) STK_TRY(init_weight(&state, (stk_rng){0, 0}, store, err));
    }
    return STK_OK;
}

stk_status stk_model_init(const stk_model *m, stk_store *store, int64_t seed, stk_error *err)
{
    STK_TRY(stk_model_reset_states(m, store, err));
    for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
        stk_weight w = stk_model_weight(m, i);
        STK_TRY(init_weight(&w, (stk_rng){(uint64_t)seed, (uint64_t)i + 1}, store, err));
    }
    return STK_OK;
}

static stk_status set_weight(const stk_weight *w, const stk_tensor *t, stk_store *store,
                             stk_error *err)
{
    bool same = t->rank == w->rank;
    if (w->rank == 0 && t->rank == 1 && t->shape[0] == 1) { /* files without scalars store [1] */
        stk_tensor *scalar = NULL;
        STK_TRY(stk_tensor_scalar(t->dtype, stk_tensor_at(t, 0), &scalar, err));
        stk_status status = set_weight(w, scalar, store, err);
        stk_tensor_release(scalar);
        return status;
    }
    for (int32_t i = 0; same && i < w->rank; i++) same = t->shape[i] == w->shape[i];
    if (!same) {
        char got[96];
        stk_shape want = {.rank = w->rank};
        memcpy(want.dim, w->shape, sizeof want.dim);
        return stk_fail(err, STK_ERR_SHAPE, "weight '%s' is %s%s, what was given is %s", w->name,
                        stk_dtype_name(w->dtype), STK_SHAPE_TEXT(&want),
                        stk_tensor_describe(t, got, sizeof got));
    }
    if (t->dtype == w->dtype) return stk_store_set(store, w->name, t, err);
    stk_tensor *cast = NULL;
    STK_TRY(stk_tensor_cast(t, w->dtype, &cast, err));
    stk_status status = stk_store_set(store, w->name, cast, err);
    stk_tensor_release(cast);
    return status;
}

static stk_status unknown_name(const stk_model *m, const char *name, stk_error *err)
{
    enum { MOST = 256 };
    const char *known[MOST];
    int32_t n = 0;
    for (; n < stk_model_weight_count(m) && n < MOST; n++) known[n] = stk_model_weight(m, n).name;
    char near[160];
    stk_did_you_mean(name, known, n, near, sizeof near);
    return stk_fail(err, STK_ERR_ARGUMENT, "model '%s' has no weight '%.100s'.%s",
                    stk_model_name(m), name, near);
}

stk_status stk_model_set_weights(const stk_model *m, stk_store *store, int32_t n,
                                 const char *const *names, stk_tensor *const *tensors, bool partial,
                                 stk_error *err)
{
    STK_TRY(check_built(m, store, err));
    for (int32_t i = 0; i < n && !partial; i++)
        if (stk_model_find_weight(m, names[i]) < 0) return unknown_name(m, names[i], err);
    for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
        stk_weight w = stk_model_weight(m, i);
        int32_t k = stk_word_index(names, n, w.name);
        if (k >= 0)
            STK_TRY(set_weight(&w, tensors[k], store, err));
        else if (!partial)
            return stk_fail(err, STK_ERR_ARGUMENT, "weight '%s' of model '%s' was not given",
                            w.name, stk_model_name(m));
    }
    return STK_OK;
}

/* A layer that had the model's policy gets the new one, and so do the layers that are parts of it. */
static void change_policy(stk_layer_state *layer, const stk_policy *wanted)
{
    const stk_fields *fields = &layer->def->fields;
    if (!layer->own_policy) layer->policy = *wanted;
    for (int32_t i = 0; layer->config && i < fields->count; i++) {
        char *at = (char *)layer->config + fields->rows[i].offset;
        stk_layer_state *part = NULL;
        if (fields->rows[i].kind == STK_FIELD_LAYER) part = *(stk_layer_state **)at;
        if (fields->rows[i].kind == STK_FIELD_ACTIVATION) part = ((stk_activation *)at)->layer;
        if (part) change_policy(part, wanted);
        const stk_layer_list *parts = fields->rows[i].kind == STK_FIELD_LAYERS ? (void *)at : NULL;
        for (int32_t k = 0; parts && k < parts->n; k++) change_policy(parts->v[k], wanted);
    }
}

/* The dtypes of everything change with the policy, so all calls are tried again. */
stk_status stk_model_set_policy(stk_model *m, const char *policy, stk_error *err)
{
    stk_policy wanted;
    STK_TRY(stk_model_status(m, err));
    if (!stk_policy_parse(policy, &wanted) || !stk_dtype_is_float(wanted.compute))
        return stk_fail(
            err, STK_ERR_ARGUMENT,
            "policy '%.40s' is not known; there are float32, float64, float16, bfloat16, "
            "mixed_float16 and mixed_bfloat16",
            policy ? policy : "NULL");
    m->policy = wanted;
    for (int64_t i = 0; i < m->nlayers; i++) {
        if (m->layers[i]->inner) STK_TRY(stk_model_set_policy(m->layers[i]->inner, policy, err));
        change_policy(m->layers[i], &wanted);
    }
    for (int64_t i = 0; i < m->nweights; i++)
        if (!m->weights[i].typed) m->weights[i].dtype = m->weights[i].chain[0]->policy.variable;
    for (int64_t k = 0; k < m->ncalls; k++) {
        stk_mcall *call = &m->calls[k];
        stk_msym made[STK_LAYER_OUTPUTS];
        int32_t nout = 0;
        if (stk_layer_at(m, call->layer)->def == &stk_layer_input) continue;
        STK_TRY(stk_model_infer(m, call, made, &nout, err));
        for (int32_t i = 0; i < nout && i < call->nout; i++)
            stk_sym_at(m, call->out + i)->dtype = made[i].dtype;
    }
    return STK_OK;
}
