/* Where sequences begin: embeddings of numbers, and masks of steps that do not count. */
#include "layers/layer.h"

/* ---- Embedding ------------------------------------------------------------------------------------------------------ */

typedef struct embedding {
    int64_t input_dim, output_dim;
    const stk_object *embeddings_initializer, *embeddings_regularizer, *embeddings_constraint;
    const stk_object *activity_regularizer;
    bool mask_zero;
} embedding;

static void call_embedding(stk_layer_call *c)
{
    const embedding *o = c->config;
    stk_val table = stk_c_weight(c, "embeddings", 2, (int64_t[]){o->input_dim, o->output_dim},
                                 &(stk_weight_wish){.initializer = o->embeddings_initializer,
                                                    .regularizer = o->embeddings_regularizer,
                                                    .constraint = o->embeddings_constraint,
                                                    .as_is = true});
    stk_dtype dtype = stk_g_dtype(c->g, c->x[0]);
    stk_val numbers =
        dtype == STK_I32 || dtype == STK_I64 ? c->x[0] : stk_g_cast(c->g, c->x[0], STK_I32);
    stk_val zero = stk_g_scalar(c->g, stk_g_dtype(c->g, numbers), 0);
    stk_val size = stk_g_scalar(c->g, stk_g_dtype(c->g, numbers), (double)o->input_dim);
    stk_val rows = stk_g_select(c->g, stk_g_lt(c->g, numbers, zero), stk_g_add(c->g, numbers, size),
                                numbers); /* -1: the last one */
    /* Only the rows that are used are taken to the compute dtype, not the whole table. */
    c->y[0] = stk_g_cast(c->g, stk_g_gather(c->g, table, rows, 0), c->compute);
    if (o->mask_zero) c->ymask[0] = stk_g_ne(c->g, numbers, zero);
}
static const stk_config_field embedding_fields[] = {
    STK_FIELD(embedding, input_dim, INT, NULL, .low = 1),
    STK_FIELD(embedding, output_dim, INT, NULL, .low = 1),
    STK_FIELD(embedding, embeddings_initializer, INITIALIZER, "uniform"),
    STK_FIELD(embedding, embeddings_regularizer, REGULARIZER, "None"),
    {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},
    STK_FIELD(embedding, embeddings_constraint, CONSTRAINT, "None"),
    STK_FIELD(embedding, mask_zero, BOOL, "False"),
    {.name = "quantization_config", .kind = STK_FIELD_NULL, .fallback = "None"},
};
const stk_layer_def stk_layer_embedding = {.keras_class = "Embedding",
                                           .fields = STK_FIELDS(embedding, embedding_fields),
                                           .keeps_dtype = true,
                                           .mask = STK_MASK_OWN,
                                           .call = call_embedding};

/* ---- Masking: steps all of whose features are mask_value do not count ------------------------------------------------ */

typedef struct masking {
    double mask_value;
} masking;

static void call_masking(stk_layer_call *c)
{
    const masking *o = c->config;
    stk_dtype dtype = stk_g_dtype(c->g, c->x[0]);
    stk_val differs = stk_g_ne(c->g, c->x[0], stk_g_scalar(c->g, dtype, o->mask_value));
    stk_val counts = stk_g_any(c->g, differs, 1, (int32_t[]){-1}, true);
    c->y[0] = stk_g_mul(c->g, c->x[0], stk_g_cast(c->g, counts, dtype));
    c->ymask[0] = stk_g_squeeze(c->g, counts, -1);
}
static const stk_config_field masking_fields[] = {STK_FIELD(masking, mask_value, REAL, "0")};
const stk_layer_def stk_layer_masking = {.keras_class = "Masking",
                                         .no_build = true,
                                         .fields = STK_FIELDS(masking, masking_fields),
                                         .mask = STK_MASK_OWN,
                                         .call = call_masking};
