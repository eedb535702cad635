// Does `--device auto` choose well? Forty pairs of model and batch on every device there is:
//
//     bench_auto [--calibrate] [--first N] [--count N] [--warm]
//
// For each pair auto chooses as it always does (it predicts, and runs those that are close); then a step is run on all devices by turns
// and what was predicted and chosen is compared with that. STOKER_APART=1 STOKER_APART_LATENCY=20 STOKER_APART_LAUNCH=10 adds a
// stand-in for a card with slow launches; where all of them run on the same processors, STOKER_THREADS=1 STOKER_APART_THREADS=2 makes
// cpu:0 the slower one at large work, so that every device wins some pairs. `--calibrate` measures the devices anew, `--warm` only
// compiles. The last lines say how often the choice was right (the fastest, or one that nobody could tell from it: within the scatter
// of the turns), who was the fastest how often, and how far off predictions were.
#include "stoker/stoker.h"
#include "train/placement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const stk_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

/* ---- models ---------------------------------------------------------------------------------------------- */

static stk_sym apply(stk_model *m, const char *layer, stk_sym x)
{
    return stk_m_apply(m, layer, 1, &x);
}

static stk_sym block(stk_model *m, stk_sym x, int filters)
{
    char conv[96];
    snprintf(conv, sizeof conv, "Conv2D(%d, 3, padding=same, use_bias=false)", filters);
    stk_sym y = apply(m, "Activation(relu)", apply(m, "BatchNormalization()", apply(m, conv, x)));
    y = apply(m, "BatchNormalization()", apply(m, conv, y));
    return apply(m, "Activation(relu)", stk_m_apply(m, "Add()", 2, (stk_sym[]){x, y}));
}

static void resnet(stk_model *m)
{
    stk_sym x = stk_m_input(m, "x", STK_F32, 3, (int64_t[]){16, 16, 3});
    x = apply(m, "Conv2D(16, 3, padding=same, activation=relu)", x);
    x = block(m, block(m, x, 16), 16);
    x = apply(m, "Conv2D(32, 3, strides=2, padding=same, activation=relu)", x);
    x = block(m, x, 32);
    stk_m_output(m, apply(m, "Dense(10)", apply(m, "GlobalAveragePooling2D()", x)));
}

static void transformer(stk_model *m)
{
    stk_sym x = stk_m_input(m, "x", STK_F32, 2, (int64_t[]){24, 32});
    for (int i = 0; i < 2; i++) {
        stk_sym y = apply(m, "LayerNormalization()", x);
        y = stk_m_apply(m, "MultiHeadAttention(num_heads=2, key_dim=16)", 2, (stk_sym[]){y, y});
        x = stk_m_apply(m, "Add()", 2, (stk_sym[]){x, y});
        y = apply(m, "Dense(64, activation=relu)", apply(m, "LayerNormalization()", x));
        x = stk_m_apply(m, "Add()", 2, (stk_sym[]){x, apply(m, "Dense(32)", y)});
    }
    stk_m_output(m, apply(m, "Dense(10)", apply(m, "GlobalAveragePooling1D()", x)));
}

typedef struct kind {
    const char *name, *layers; /* one a line; NULL: made */
    void (*make)(stk_model *m);
    int32_t rank;
    int64_t shape[3];
    int64_t words; /* > 0: inputs are numbers below this */
    int64_t batch[6];
} kind;

static const kind kinds[] = {
    {"mlp",
     "Input(shape=(784,))\nDense(128, activation=relu)\nDense(10)",
     NULL,
     1,
     {784},
     0,
     {1, 10, 32, 128, 512}},
    {"wide mlp",
     "Input(shape=(256,))\nDense(1024, activation=relu)\nDense(1024, activation=relu)\nDense(10)",
     NULL,
     1,
     {256},
     0,
     {1, 16, 64, 256}},
    {"deep mlp",
     "Input(shape=(32,))\nDense(64, activation=relu)\nDense(64, activation=relu)\nDense(64, "
     "activation=tanh)\n"
     "Dense(64, activation=relu)\nDropout(0.2)\nDense(10)",
     NULL,
     1,
     {32},
     0,
     {1, 32, 256}},
    {"tiny",
     "Input(shape=(8,))\nDense(16, activation=tanh)\nDense(10)",
     NULL,
     1,
     {8},
     0,
     {1, 64, 512}},
    {"cnn",
     "Input(shape=(24, 24, 1))\nConv2D(16, 3, activation=relu)\nMaxPooling2D()\n"
     "Conv2D(32, 3, activation=relu)\nMaxPooling2D()\nFlatten()\nDense(10)",
     NULL,
     3,
     {24, 24, 1},
     0,
     {1, 8, 32, 128}},
    {"cnn 32x32",
     "Input(shape=(32, 32, 3))\nConv2D(32, 3, padding=same, activation=relu)\n"
     "Conv2D(32, 3, activation=relu)\nMaxPooling2D()\nConv2D(64, 3, "
     "activation=relu)\nMaxPooling2D()\n"
     "Flatten()\nDense(64, activation=relu)\nDense(10)",
     NULL,
     3,
     {32, 32, 3},
     0,
     {1, 8, 32, 64}},
    {"resnet", NULL, resnet, 3, {16, 16, 3}, 0, {1, 8, 32}},
    {"lstm", "Input(shape=(32, 16))\nLSTM(64)\nDense(10)", NULL, 2, {32, 16}, 0, {1, 16, 64, 256}},
    {"gru",
     "Input(shape=(16, 16))\nGRU(32, return_sequences=true)\nGRU(32)\nDense(10)",
     NULL,
     2,
     {16, 16},
     0,
     {1, 32}},
    {"transformer", NULL, transformer, 2, {24, 32}, 0, {1, 8, 32, 128}},
    {"embedding",
     "Input(shape=(40,), dtype=int32)\nEmbedding(5000, 32)\nGlobalAveragePooling1D()\n"
     "Dense(32, activation=relu)\nDense(10)",
     NULL,
     1,
     {40},
     5000,
     {1, 32, 256, 512}},
};

static stk_model *make_model(const kind *k)
{
    stk_model *m = NULL;
    stk_error err;
    if (stk_model_new("m", &m, &err)) fail(k->name, &err);
    if (k->make) k->make(m);
    char text[1024], *rest = NULL;
    snprintf(text, sizeof text, "%s", k->layers ? k->layers : "");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        stk_model_add(m, line);
    if (stk_model_build(m, 0, NULL, &err)) fail(k->name, &err);
    return m;
}

static void make_data(const kind *k, int64_t rows, stk_tensor **x, stk_tensor **y)
{
    stk_error err;
    int64_t shape[4] = {rows}, count = rows;
    for (int32_t i = 0; i < k->rank; i++) count *= shape[i + 1] = k->shape[i];
    if (stk_tensor_new(k->words ? STK_I32 : STK_F32, k->rank + 1, shape, x, &err) ||
        stk_tensor_new(STK_I32, 1, &rows, y, &err))
        fail(k->name, &err);
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (k->words)
            ((int32_t *)(*x)->data)[i] = (int32_t)((state >> 8) % (uint32_t)k->words);
        else
            ((float *)(*x)->data)[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    for (int64_t i = 0; i < rows; i++) ((int32_t *)(*y)->data)[i] = (int32_t)(i % 10);
}

/* ---- the table ------------------------------------------------------------------------------------------- */

enum { MOST = 1024 };
typedef struct score {
    int pairs, right, untold;
    char device[STK_FORECASTS][64];
    int won[STK_FORECASTS];
    double error[MOST];
    int errors;
} score;

static void judge(const stk_placement *said, const stk_placement *truth, score *s)
{
    int best = -1;
    for (int i = 0; i < truth->n; i++) {
        const stk_forecast *row = &truth->row[i];
        if (row->trouble[0]) continue;
        if (best < 0 || row->measured < truth->row[best].measured) best = i;
        double off = said->row[i].predicted / row->measured - 1;
        printf("  %9.3f %9.3f %+5.0f%%", said->row[i].predicted * 1e3, row->measured * 1e3,
               off * 100);
        if (s->errors < MOST) s->error[s->errors++] = fabs(off);
    }
    const stk_forecast *fastest = &truth->row[best], *chosen = &truth->row[said->chosen];
    double behind = chosen->measured / fastest->measured - 1;
    bool untold = said->chosen != best && behind < fmax(fastest->scatter + chosen->scatter, 0.03);
    s->pairs++;
    s->won[best]++;
    snprintf(s->device[best], sizeof s->device[best], "%.63s", truth->row[best].device);
    s->right += said->chosen == best;
    s->untold += untold;
    printf("  %-9s %s", said->row[said->chosen].device,
           said->chosen == best ? "fastest"
           : untold             ? "as fast"
                                : "WRONG");
    if (said->chosen != best) printf(" (%s is %.2fx)", fastest->device, 1 + behind);
    printf("%s\n", said->uncertain ? ", uncertain" : "");
    fflush(stdout);
}

static void try_pair(const kind *k, int64_t batch, bool warm, score *s)
{
    stk_error err;
    stk_tensor *x = NULL, *y = NULL;
    stk_placement said, truth;
    stk_model *m = make_model(k);
    make_data(k, batch, &x, &y);
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam:lr=1e-4";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    how.metrics = "accuracy";
    stk_train_data data = {.nx = 1, .x = &x, .ny = 1, .y = &y};
    if (warm && stk_place_among(m, &how, &data, batch, &(stk_place_rules){.close = 0}, &said, &err))
        fail(k->name, &err);
    if (warm) return;
    if (stk_place_training(m, &how, &data, batch, &said, &err)) fail(k->name, &err);
    if (stk_place_among(m, &how, &data, batch, &(stk_place_rules){.close = INFINITY}, &truth, &err))
        fail(k->name, &err);
    if (s->pairs == 0) {
        printf("%-12s %5s", "model", "batch");
        for (int i = 0; i < truth.n; i++) printf("  %9s predicted, ms, off", truth.row[i].device);
        printf("  choice\n");
    }
    printf("%-12s %5lld", k->name, (long long)batch);
    judge(&said, &truth, s);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_model_release(m);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void calibrate_all(void)
{
    stk_device_report list[STK_FORECASTS];
    stk_error err;
    int32_t n = 0;
    if (stk_device_list(STK_FORECASTS, list, &n, &err)) fail("devices", &err);
    for (int32_t i = 0; i < n; i++) {
        stk_device *d = NULL;
        stk_calibration c;
        if (stk_device_open(list[i].name, 0, &d, &err) || stk_device_calibrate(d, true, &c, &err))
            fail(list[i].name, &err);
        stk_device_release(d);
    }
}

int main(int argc, char **argv)
{
    static score s;
    int first = 0, count = 1000, at = 0;
    bool warm = false;
    setenv("STOKER_AUTO", "any", 1);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--calibrate"))
            calibrate_all();
        else if (!strcmp(argv[i], "--warm"))
            warm = true;
        else if (!strcmp(argv[i], "--first") && i + 1 < argc)
            first = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            count = atoi(argv[++i]);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int b = 0; b < 6 && kinds[k].batch[b]; b++, at++)
            if (at >= first && at < first + count) try_pair(&kinds[k], kinds[k].batch[b], warm, &s);
    if (!s.pairs) return 0;
    qsort(s.error, (size_t)s.errors, sizeof *s.error, by_size);
    printf("\n%d pairs: the fastest was chosen in %d, one that cannot be told from it in %d: %.1f "
           "%% right\n",
           s.pairs, s.right, s.untold, 100.0 * (s.right + s.untold) / s.pairs);
    printf("the fastest was");
    for (int i = 0; i < STK_FORECASTS; i++)
        if (s.won[i]) printf(" %s %d times;", s.device[i], s.won[i]);
    printf("\npredictions: off by %.0f %% in the median, %.0f %% in nine of ten\n",
           100 * s.error[s.errors / 2], 100 * s.error[s.errors * 9 / 10]);
    return 0;
}
