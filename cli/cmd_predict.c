/* stoker predict - what a model says about data, to .npy or CSV. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

typedef struct csv {
    const stk_tensor *y;
    bool classes;
} csv;

/* One row per sample, its numbers separated by commas. */
static void put_csv(void *context, FILE *out)
{
    const csv *what = context;
    const stk_tensor *y = what->y;
    bool classes = what->classes;
    int64_t rows = y->rank > 0 ? y->shape[0] : 1, count = rows ? stk_tensor_count(y) / rows : 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;
        for (int64_t k = 0; k < count; k++) {
            double v = stk_tensor_at(y, r * count + k);
            if (v > stk_tensor_at(y, r * count + best)) best = k;
            if (!classes) fprintf(out, "%s%.9g", k ? "," : "", v);
        }
        if (classes && count == 1) best = stk_tensor_at(y, r) > 0.5;
        if (classes) fprintf(out, "%lld", (long long)best);
        fputc('\n', out);
    }
}

static stk_status save(const cli_args *args, stk_tensor *y, const char *path, stk_error *err)
{
    csv what = {y, cli_given(args, "classes")};
    if (!path) {
        put_csv(&what, stdout);
        return STK_OK;
    }
    if (ends(path, ".npy")) {
        if (what.classes)
            return cli_error(err, STK_ERR_ARGUMENT,
                             "--classes goes with CSV; give --out a name that ends in .csv");
        return stk_npy_save(path, y, err);
    }
    return stk_file_save(path, put_csv, &what, err);
}

static stk_status predict(cli_run *r, void *context, stk_error *err)
{
    const char *path = cli_text(r->args, "out", NULL);
    stk_tensor *y[STK_LOAD_ARRAYS] = {NULL};
    (void)context;
    if (stk_model_output_count(r->model) != 1)
        return cli_error(err, STK_ERR_UNSUPPORTED,
                         "the model has %d outputs; this command writes those of one",
                         stk_model_output_count(r->model));
    stk_status status = stk_trainer_predict(r->trainer, &r->data.view, r->fit.batch, y, err);
    if (status == STK_OK) status = save(r->args, y[0], path, err);
    if (status == STK_OK && path && !r->args->quiet) {
        char text[160];
        printf("%s: %s\n", path, stk_tensor_describe(y[0], text, sizeof text));
    }
    stk_tensor_release(y[0]);
    return status;
}

static int run(const cli_args *args)
{
    if (!cli_has_weights(args)) return CLI_USAGE;
    return cli_run_model(args, false, predict, NULL);
}

static const cli_option options[] = {
    {"weights", "FILE", "weights: .safetensors, .weights.h5, .keras, .h5 or a checkpoint"},
    {"out", "FILE", "where to write: .npy, else CSV (default: CSV on the standard output)"},
    {"classes", NULL, "write the number of the likeliest class instead of all numbers"},
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_predict = {
    .name = "predict",
    .arguments = "MODEL DATA...",
    .summary = "what a trained model says about data",
    .examples = "stoker predict model.json new.npz --weights model.safetensors --out y.npy\n"
                "stoker predict model.json new.csv --weights run.ckpt --classes\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
