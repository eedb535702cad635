/* Layers that stand side by side may share one parallel region (graph/groups.c). Every pair of neighbours, at batches
 * that are cut evenly, unevenly and not at all, and with a short last batch: the program as it is built against the same
 * program with every node a launch of its own. Then random models of more layers, also with the kernels of the
 * libraries and against the reference kernels. */
#include "problem.h"

#include "stoker/layers.h"
#include "train/step.h"

enum { MOST_LAYERS = 8, MOST_WEIGHTS = 64 };

static stk_error err; /* of the last call */

/* ---- what stands side by side ---------------------------------------------------------------------------------- */

/* Layers that keep the rank of their input, so that any of them may follow any other. */
static const char *const IMAGES[] = {
    "Conv2D(8, 3, padding=same, use_bias=False)",
    "Conv2D(12, 3, padding=same, activation=relu)",
    "Conv2D(8, 1)",
    "Conv2D(16, 3, strides=2, padding=same)",
    "DepthwiseConv2D(3, padding=same)",
    "Conv2DTranspose(6, 3, padding=same)",
    "MaxPooling2D(2, padding=same)",
    "MaxPooling2D(3, strides=1, padding=same)",
    "AveragePooling2D(2, padding=same)",
    "BatchNormalization(momentum=0.5, beta_initializer=random_normal(stddev=1))",
    "LayerNormalization()",
    "LayerNormalization(axis=[1, 2, 3])",
    "GroupNormalization(groups=2)",
    "UnitNormalization()",
    "Activation(relu)",
    "Activation(gelu)",
    "Softmax()",
    "Dense(6)",
    "Dropout(0.3, seed=3)",
    "SpatialDropout2D(0.3, seed=3)",
    "UpSampling2D(2)",
    "UpSampling2D(2, interpolation=bilinear)",
    "ZeroPadding2D(1)",
    "Cropping2D(1)",
    "Permute((2, 1, 3))",
};
static const char *const SEQUENCES[] = {
    "Conv1D(8, 3, padding=same)",
    "Conv1D(8, 3, padding=causal, activation=relu)",
    "SeparableConv1D(8, 3, padding=same)",
    "Dense(10, activation=tanh)",
    "LSTM(8, return_sequences=True)",
    "GRU(8, return_sequences=True)",
    "Bidirectional(LSTM(4, return_sequences=True))",
    "SimpleRNN(8, return_sequences=True)",
    "TimeDistributed(Dense(8))",
    "BatchNormalization(momentum=0.5, beta_initializer=random_normal(stddev=1))",
    "LayerNormalization()",
    "GroupNormalization(groups=2)",
    "Softmax()",
    "Activation(gelu)",
    "MaxPooling1D(2, padding=same)",
    "AveragePooling1D(2, padding=same)",
    "UpSampling1D(2)",
    "ZeroPadding1D(1)",
    "Dropout(0.3, seed=3)",
};
static const char *const FRAMES[] = {
    "TimeDistributed(Conv2D(8, 3, padding=same))",
    "TimeDistributed(BatchNormalization(momentum=0.5, beta_initializer=random_normal(stddev=1)))",
    "TimeDistributed(MaxPooling2D(2, padding=same))",
    "TimeDistributed(GroupNormalization(groups=2))",
    "BatchNormalization(momentum=0.5, beta_initializer=random_normal(stddev=1))",
    "LayerNormalization()",
    "Activation(relu)",
    "Conv3D(8, 3, padding=same)",
    "MaxPooling3D((1, 2, 2))",
};
static const char *const VECTORS[] = {
    "Dense(256)",
    "Dense(300, activation=relu)",
    "BatchNormalization(momentum=0.5, beta_initializer=random_normal(stddev=1))",
    "LayerNormalization()",
    "Softmax()",
    "Activation(gelu)",
    "Dropout(0.3, seed=3)",
    "UnitNormalization()",
};

/* A kind of input and the layers for it. Sizes shrink as batches grow, so that the work stays large enough to be cut and
 * small enough for thousands of models. */
typedef struct family {
    const char *first; /* what the pair stands behind, so that gradients flow through both */
    const char *const *layer;
    int32_t layers, rank;
} family;
#define FAMILY(first, list, rank)                                                                  \
    {                                                                                              \
        first, list, sizeof(list) / sizeof *(list), rank                                           \
    }
static const family FAMILIES[] = {FAMILY("Conv2D(8, 3, padding=same)", IMAGES, 3),
                                  FAMILY("Dense(8)", SEQUENCES, 2), FAMILY("Dense(8)", FRAMES, 4),
                                  FAMILY("Dense(256)", VECTORS, 1)};

static void input_of(const family *f, int64_t batch, char *text, size_t size)
{
    int side = batch <= 2 ? 24 : batch <= 3 ? 20 : batch <= 8 ? 14 : 8;
    int length = batch <= 3 ? 96 : batch <= 8 ? 48 : 16;
    switch (f->rank) {
    case 1: snprintf(text, size, "Input((128,))"); break;
    case 2: snprintf(text, size, "Input((%d, 8))", length); break;
    case 3: snprintf(text, size, "Input((%d, %d, 3))", side, side); break;
    default: snprintf(text, size, "Input((2, %d, %d, 4))", side / 2, side / 2); break;
    }
}

/* ---- one model, trained for two batches ---------------------------------------------------------------------------- */

typedef struct trained {
    int32_t n;
    double loss[2];
    stk_tensor *weight[2][MOST_WEIGHTS]; /* after each batch */
} trained;

static void release(trained *t)
{
    for (int32_t i = 0; i < t->n; i++)
        for (int k = 0; k < 2; k++) stk_tensor_release(t->weight[k][i]);
}

static stk_model *model_of(const char *const *lines, int32_t n)
{
    stk_model *m = NULL;
    if (!CHECK_OK(stk_model_new(NULL, &m, &err))) return NULL;
    for (int32_t i = 0; i < n; i++) stk_model_add(m, lines[i]);
    if (stk_model_build(m, 0, NULL, &err) == STK_OK) return m;
    stk_model_release(m);
    return NULL;
}

static bool train_batch(const stk_model *m, stk_function *f, stk_store *store, int64_t rows, int k,
                        trained *out)
{
    stk_tensor *x = noise(stk_model_input(m, 0), rows, 1), *loss = NULL;
    stk_tensor *y = noise(stk_model_output(m, 0), rows, 2);
    stk_program *p = NULL;
    bool good = x && y && stk_function_call(f, (stk_tensor *[]){x, y}, &p, &err) == STK_OK;
    if (good) stk_program_set_step(p, k);
    good = good && CHECK_OK(stk_program_run(p, 1, &err)) &&
           CHECK_OK(stk_program_read(p, "loss", &loss, &err));
    if (good) out->loss[k] = stk_tensor_at(loss, 0);
    for (int32_t i = 0; good && i < out->n; i++)
        good =
            CHECK_OK(stk_store_get(store, stk_model_weight(m, i).name, &out->weight[k][i], &err));
    stk_tensor_release(loss);
    stk_tensor_release(x);
    stk_tensor_release(y);
    return good;
}

/* A batch and then a short one. False without a report when no program can be made (a forced kernel refuses). */
static bool train(stk_model *m, int64_t batch, stk_program_options how, trained *out)
{
    stk_optimizer *sgd = NULL;
    stk_step *step = NULL;
    stk_function *f = NULL;
    *out = (trained){.n = stk_model_weight_count(m)};
    how.deterministic = true;
    bool good = CHECK(out->n <= MOST_WEIGHTS) &&
                CHECK_OK(stk_optimizer_parse("sgd:learning_rate=0.5", &sgd, &err)) &&
                CHECK_OK(stk_store_new(NULL, &how.store, &err));
    stk_step_config c = {.model = m, .optimizer = sgd, .nlosses = 1, .seed = 5};
    c.losses = (const char *const[]){"mean_squared_error"};
    good = good && CHECK_OK(stk_step_new(&c, &step, &err)) &&
           CHECK_OK(stk_step_init(step, how.store, &err)) &&
           CHECK_OK(stk_step_function(step, STK_STEP_TRAIN, false, &how, &f, &err)) &&
           train_batch(m, f, how.store, batch, 0, out) &&
           train_batch(m, f, how.store, (batch + 2) / 3, 1, out);
    stk_function_release(f);
    stk_step_release(step);
    stk_store_release(how.store);
    stk_optimizer_release(sgd);
    return good;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------- */

/* Where the difference comes from is left to the reader of the message: it names the model. */
static void compare(const stk_model *m, const char *title, const trained *got, const trained *want)
{
    for (int k = 0; k < 2; k++) {
        double most = fmax(fabs(want->loss[k]), 1e-3);
        CHECK_MSG(fabs(got->loss[k] - want->loss[k]) <= 1e-3 * most,
                  "%s: loss of batch %d is %.7g, apart it is %.7g", title, k, got->loss[k],
                  want->loss[k]);
        for (int32_t i = 0; i < want->n; i++) {
            const stk_tensor *a = got->weight[k][i], *b = want->weight[k][i];
            double scale = 1e-2, off = 0;
            for (int64_t j = 0; j < stk_tensor_count(b); j++) {
                scale = fmax(scale, fabs(stk_tensor_at(b, j)));
                off = fmax(off, fabs(stk_tensor_at(a, j) - stk_tensor_at(b, j)));
            }
            if (!CHECK_MSG(off <= 1e-3 * scale, "%s: %s is off by %.2g of %.2g after batch %d",
                           title, stk_model_weight(m, i).name, off, scale, k))
                return;
        }
    }
}

static void check_model(const char *const *lines, int32_t n, int64_t batch, bool ref)
{
    char title[512] = "";
    trained together = {0}, apart = {0};
    for (int32_t i = 0; i < n; i++)
        snprintf(title + strlen(title), sizeof title - strlen(title), "%s, ", lines[i]);
    snprintf(title + strlen(title), sizeof title - strlen(title), "batch %d", (int)batch);
    stk_model *m = model_of(lines, n);
    if (!m) return; /* shrunk to nothing */
    if (train(m, batch, (stk_program_options){.threads = 2}, &together) &&
        CHECK(train(m, batch, (stk_program_options){.threads = 1, .no_fuse = true, .ref = ref},
                    &apart)))
        compare(m, title, &together, &apart);
    else
        CHECK_MSG(getenv("STOKER_KERNEL"), "%s: %s", title, err.message);
    release(&together);
    release(&apart);
    stk_model_release(m);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------- */

static const int64_t BATCHES[] = {1, 2, 3, 7, 8, 33};
enum { BATCH_COUNT = sizeof BATCHES / sizeof *BATCHES };

static void check_pairs(const family *f)
{
    char input[64];
    for (int32_t a = 0; a < f->layers; a++)
        for (int32_t b = 0; b < f->layers; b++)
            for (int32_t k = 0; k < BATCH_COUNT; k++) {
                if (INSTRUMENTED && (a * f->layers + b) % BATCH_COUNT != k) continue;
                input_of(f, BATCHES[k], input, sizeof input);
                check_model((const char *const[]){input, f->first, f->layer[a], f->layer[b]}, 4,
                            BATCHES[k], false);
            }
}

TEST(pairs_of_layers_on_images) { check_pairs(&FAMILIES[0]); }
TEST(pairs_of_layers_on_sequences) { check_pairs(&FAMILIES[1]); }
TEST(pairs_of_layers_on_frames) { check_pairs(&FAMILIES[2]); }
TEST(pairs_of_layers_on_vectors) { check_pairs(&FAMILIES[3]); }

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Seed by seed, so that a failure can be tried again alone. */
static void check_random(uint64_t first, uint64_t count, bool ref)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *lines[MOST_LAYERS];
        char input[64];
        uint64_t state = seed * 0x9e3779b97f4a7c15u;
        const family *f = &FAMILIES[draw(&state, 4)];
        int64_t batch = BATCHES[draw(&state, BATCH_COUNT)];
        int32_t n = 4 + (int32_t)draw(&state, MOST_LAYERS - 3);
        input_of(f, batch, input, sizeof input);
        lines[0] = input;
        lines[1] = f->first;
        for (int32_t i = 2; i < n; i++) lines[i] = f->layer[draw(&state, (uint32_t)f->layers)];
        check_model(lines, n, batch, ref);
    }
}

TEST(random_models) { check_random(1, INSTRUMENTED ? 20 : 150, false); }
TEST(random_models_against_reference_kernels) { check_random(1001, INSTRUMENTED ? 5 : 40, true); }

TEST(random_models_on_library_kernels)
{
    static const char *const sets[] = {
        "conv:onednn,conv_bwd_data:onednn,conv_bwd_weight:onednn",
        "gemm:xsmm",
        "conv_bwd_data:columns",
    };
    for (int i = 0; i < 3; i++) {
        setenv("STOKER_KERNEL", sets[i], 1);
        check_random(2001 + (uint64_t)i * 100, INSTRUMENTED ? 5 : 60, false);
    }
    unsetenv("STOKER_KERNEL");
}

TEST_MAIN()
