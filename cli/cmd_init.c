/* stoker init KIND - ready models to start from, as the JSON that Keras reads and writes. */
#include "load.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

/* In a layer, $I is the shape of a sample, $C the number of classes or outputs, $S the product of the shape. A layer behind ? is there for
 * samples of more than one axis. */
static const struct kind {
    const char *name, *doc, *input;
    int64_t outputs;
    const char *layers; /* one a line */
} kinds[] = {
    {"mlp", "dense layers; classes", "784", 10,
     "?Flatten()\nDense(128, activation=relu)\nDense(64, activation=relu)\nDense($C, "
     "activation=softmax)"},
    {"regression", "dense layers; numbers", "8", 1,
     "?Flatten()\nDense(64, activation=relu)\nDense(64, activation=relu)\nDense($C)"},
    {"cnn", "two convolutions and a dense layer; classes of pictures", "28,28,1", 10,
     "Conv2D(32, 3, activation=relu)\nMaxPooling2D(2)\nConv2D(64, 3, "
     "activation=relu)\nMaxPooling2D(2)\n"
     "Flatten()\nDropout(0.25)\nDense($C, activation=softmax)"},
    {"lstm", "an LSTM over a sequence; classes", "32,16", 10,
     "LSTM(64)\nDense($C, activation=softmax)"},
    {"gru", "a GRU over a sequence; classes", "32,16", 10,
     "GRU(64)\nDense($C, activation=softmax)"},
    {"text", "embedding and LSTM over word numbers below 10000; two classes", "100", 1,
     "Embedding(10000, 32)\nLSTM(32)\nDense($C, activation=sigmoid)"},
    {"autoencoder", "dense layers that learn to repeat their input", "784", 784,
     "?Flatten()\nDense(128, activation=relu)\nDense(32, activation=relu)\nDense(128, "
     "activation=relu)\nDense($S, activation=sigmoid)\n?Reshape(($I))"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *kind_name(int index, const void *context)
{
    (void)context;
    return index < KINDS ? kinds[index].name : NULL;
}

/* Replaces $I, $C and $S. */
static void expand(const char *line, size_t length, const char *shape, int64_t outputs,
                   int64_t product, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        int n = 1;
        if (line[i] == '$' && i + 1 < length) {
            char which = line[++i];
            n = which == 'I'   ? snprintf(out + used, size - used, "%s", shape)
                : which == 'S' ? snprintf(out + used, size - used, "%lld", (long long)product)
                               : snprintf(out + used, size - used, "%lld", (long long)outputs);
        } else {
            out[used] = line[i];
        }
        used += (size_t)(n > 0 ? n : 0);
    }
    out[used < size ? used : size - 1] = 0;
}

/* "28,28,1" -> product, or 0 when it is no shape. */
static int64_t read_shape(const char *text)
{
    int64_t product = 1;
    for (;;) {
        char *end = NULL;
        long long n = strtoll(text, &end, 10);
        if (end == text || n < 1 || n > 1 << 24 || product > (INT64_MAX >> 25)) return 0;
        product *= n;
        if (!*end) return product;
        if (*end != ',') return 0;
        text = end + 1;
    }
}

static stk_status build(const struct kind *kind, const char *shape, int64_t outputs,
                        int64_t product, stk_model **out, stk_error *err)
{
    char line[256];
    stk_status status = stk_model_new(kind->name, out, err);
    if (status != STK_OK) return status;
    snprintf(line, sizeof line, "Input(shape=(%s,)%s)", shape,
             strcmp(kind->name, "text") ? "" : ", dtype=int32");
    stk_model_add(*out, line);
    for (const char *l = kind->layers; *l;) {
        size_t n = strcspn(l, "\n");
        bool asked = *l == '?';
        expand(l + asked, n - asked, shape, outputs, product, line, sizeof line);
        if (!asked || strchr(shape, ',')) stk_model_add(*out, line);
        l += n + (l[n] == '\n');
    }
    return stk_model_build(*out, 0, NULL, err);
}

static void print_kinds(void)
{
    cli_table t = {.columns = 3};
    for (int i = 0; i < KINDS; i++) {
        cli_cell(&t, "%s", kinds[i].name);
        cli_cell(&t, "%s", kinds[i].input);
        cli_cell(&t, "%s", kinds[i].doc);
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
}

/* With the weights that training would start from. */
static stk_status write_keras(stk_model *m, const char *path, stk_error *err)
{
    stk_trainer *t = NULL;
    stk_status status = stk_trainer_new(m, NULL, &t, err);
    if (status == STK_OK) status = stk_trainer_save_keras(t, path, err);
    stk_trainer_release(t);
    return status;
}

static stk_status write_model(const cli_args *args, const struct kind *kind, const char *shape,
                              int64_t outputs, int64_t product, stk_error *err)
{
    stk_model *m = NULL;
    char *text = NULL;
    const char *path = cli_text(args, "out", NULL);
    stk_status status = build(kind, shape, outputs, product, &m, err);
    bool keras = path && stk_keras_is_name(path);
    if (status == STK_OK && keras) status = write_keras(m, path, err);
    if (status == STK_OK && !keras) status = stk_model_to_json(m, 2, &text, err);
    if (status == STK_OK && path && !keras)
        status = stk_text_save(path, text, err);
    else if (status == STK_OK && !keras)
        printf("%s\n", text);
    if (status == STK_OK && path && !args->quiet)
        printf("%s: %s, %lld parameters\n", path, kind->name, (long long)stk_model_params(m).total);
    stk_text_free(text);
    stk_model_release(m);
    return status;
}

static int run(const cli_args *args)
{
    stk_error err;
    if (args->nrest == 0) {
        print_kinds();
        return CLI_OK;
    }
    const struct kind *kind = NULL;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, args->rest[0])) kind = &kinds[i];
    if (!kind) {
        const char *near = cli_near(args->rest[0], kind_name, NULL);
        return cli_usage(args, "there is no kind '%s'%s%s%s; `stoker init` lists them",
                         args->rest[0], near ? " (did you mean '" : "", near ? near : "",
                         near ? "'?)" : "");
    }
    const char *shape = cli_text(args, "input", kind->input);
    int64_t product = read_shape(shape), outputs = kind->outputs;
    if (!product) return cli_usage(args, "--input is '%s'; it must be sizes like 28,28,1", shape);
    if (!cli_int(args, "classes", 1, 1 << 24, &outputs)) return CLI_USAGE;
    stk_status status = write_model(args, kind, shape, outputs, product, &err);
    if (status == STK_ERR_SHAPE) {
        size_t used = strlen(err.message);
        snprintf(err.message + used, sizeof err.message - used,
                 "; --input is '%s', %s takes sizes like %s", shape, kind->name, kind->input);
    }
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static const cli_option options[] = {
    {"input", "SIZES", "shape of a sample: 784, or 28,28,1 (height, width, channels)"},
    {"classes", "N", "classes, or numbers that come out"},
    {"out", "FILE", "where to write it: .json, .keras or .h5 (default: the standard output)"},
    {NULL, NULL, NULL},
};

const cli_command cli_init = {
    .name = "init",
    .arguments = "[KIND]",
    .summary = "write a ready model to start from; without KIND, list them",
    .examples = "stoker init\nstoker init cnn --input 28,28,1 --classes 10 --out model.json\n",
    .options = options,
    .most = 1,
    .run = run,
};
