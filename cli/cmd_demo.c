/* stoker demo - the whole way in one command: data, a network for pictures, training, saving, predicting, and where the
 * time went. */
#include "load.h"
#include "shapes.h"
#include "show.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char *const layers[] = {
    "Input(shape=(24, 24, 1))",
    "Rescaling(0.00392156862745098)",
    "Conv2D(16, 3, activation=relu)",
    "MaxPooling2D(2)",
    "Conv2D(32, 3, activation=relu)",
    "MaxPooling2D(2)",
    "Flatten()",
    "Dropout(0.25)",
    "Dense(64, activation=relu)",
    "Dense(10, activation=softmax)",
};

enum { TRAIN = 10000, VALIDATE = 2000, SHOWN = 3 };

typedef struct demo {
    const cli_args *args;
    char folder[3000];
    stk_tensor *x, *y;
    stk_model *model;
    stk_trainer *trainer;
    stk_history *history;
    stk_report *books;
} demo;

static const char *in_folder(const demo *d, const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", d->folder, name);
    return path;
}

static stk_status make_data(demo *d, stk_error *err)
{
    stk_status status = cli_make_shapes(TRAIN + VALIDATE, 1, &d->x, &d->y, err);
    if (status != STK_OK) return status;
    stk_tensor *parts[] = {d->x, d->y};
    status = stk_npz_save(in_folder(d, "shapes.npz"), 2, (const char *[]){"x", "y"}, parts, err);
    if (status == STK_OK && !d->args->quiet && !d->args->json)
        printf("%s: %d pictures of digits, turned, stretched and noisy; the last %d are for "
               "validation\n",
               in_folder(d, "shapes.npz"), TRAIN + VALIDATE, VALIDATE);
    return status;
}

static stk_status make_model(demo *d, stk_error *err)
{
    char *text = NULL;
    stk_status status = stk_model_new("shapes", &d->model, err);
    for (size_t i = 0; status == STK_OK && i < sizeof layers / sizeof *layers; i++)
        stk_model_add(d->model, layers[i]);
    if (status == STK_OK) status = stk_model_build(d->model, 0, NULL, err);
    if (status == STK_OK) status = stk_model_to_json(d->model, 2, &text, err);
    if (status == STK_OK) status = stk_text_save(in_folder(d, "model.json"), text, err);
    stk_text_free(text);
    return status;
}

static stk_status train(demo *d, cli_show *show, int64_t epochs, stk_error *err)
{
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = "adam:lr=2e-3";
    how.loss = "sparse_categorical_crossentropy";
    how.metrics = "accuracy";
    how.seed = 1;
    stk_callback *callbacks[] = {&show->callback};
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = epochs;
    fit.validation_split = (double)VALIDATE / (TRAIN + VALIDATE);
    fit.validation_batch = 100;
    fit.callbacks = callbacks;
    fit.ncallbacks = 1;
    stk_status status = stk_trainer_new(d->model, &how, &d->trainer, err);
    stk_watch *watch = cli_books_open("demo");
    if (status == STK_OK)
        status =
            stk_trainer_fit(d->trainer, &(stk_train_data){.nx = 1, .x = &d->x, .ny = 1, .y = &d->y},
                            &fit, &d->history, err);
    d->books = cli_books_close(watch);
    cli_show_close(show);
    if (status == STK_OK)
        status = stk_trainer_save_weights(d->trainer, in_folder(d, "model.safetensors"), err);
    return status;
}

/* A few pictures side by side, with what the model thinks they are. */
static stk_status predict_some(const demo *d, stk_error *err)
{
    enum { PIXELS = SHAPE_SIDE * SHAPE_SIDE };
    stk_tensor *some = NULL, *y = NULL;
    int64_t start[4] = {TRAIN, 0, 0, 0}, size[4] = {SHOWN, SHAPE_SIDE, SHAPE_SIDE, 1};
    stk_status status = stk_tensor_slice(d->x, start, size, &some, err);
    if (status == STK_OK)
        status =
            stk_trainer_predict(d->trainer, &(stk_train_data){.nx = 1, .x = &some}, SHOWN, &y, err);
    for (int line = 0; status == STK_OK && line < SHAPE_LINES; line++) {
        for (int i = 0; i < SHOWN; i++) {
            fputs("  ", stdout);
            cli_draw_shape(stdout, (const unsigned char *)some->data + i * PIXELS, line);
        }
        fputc('\n', stdout);
    }
    for (int i = 0; status == STK_OK && i < SHOWN; i++) {
        int best = 0;
        for (int k = 1; k < SHAPE_CLASSES; k++)
            if (stk_tensor_at(y, i * SHAPE_CLASSES + k) >
                stk_tensor_at(y, i * SHAPE_CLASSES + best))
                best = k;
        char text[64];
        snprintf(text, sizeof text, "a %d (%.1f %%), it is a %d", best,
                 100 * stk_tensor_at(y, i * SHAPE_CLASSES + best),
                 (int)stk_tensor_at(d->y, TRAIN + i));
        printf("  %-*s", SHAPE_SIDE, text);
    }
    if (status == STK_OK) printf("\n");
    stk_tensor_release(some);
    stk_tensor_release(y);
    return status;
}

static void print_end(const demo *d)
{
    double accuracy = stk_history_value(d->history, "val_accuracy", -1);
    if (d->args->json) {
        stk_train_times times;
        stk_trainer_times(d->trainer, &times);
        printf("{\"done\": true, \"val_accuracy\": %.6f, \"seconds\": %.6f}\n", accuracy,
               times.total);
        return;
    }
    printf("validation accuracy: %.2f %%\n", 100 * accuracy);
    if (d->args->quiet) return;
    cli_show_times(d->args, d->trainer, d->books, true);
    printf("go on with: stoker train %s %s --weights %s --val-split %.4g\n",
           in_folder(d, "model.json"), in_folder(d, "shapes.npz"),
           in_folder(d, "model.safetensors"), (double)VALIDATE / (TRAIN + VALIDATE));
}

static int run(const cli_args *args)
{
    demo d = {.args = args};
    cli_show show;
    stk_error err;
    int64_t epochs = 6;
    if (!cli_int(args, "epochs", 1, 1000, &epochs)) return CLI_USAGE;
    snprintf(d.folder, sizeof d.folder, "%s", args->nrest ? args->rest[0] : "stoker-demo");
    cli_show_init(&show, args);
    stk_status status = STK_OK;
    if (mkdir(d.folder, 0777) != 0 && errno != EEXIST)
        status = cli_error(&err, STK_ERR_IO, "%s: cannot make the folder: %s", d.folder,
                           strerror(errno));
    if (status == STK_OK) status = make_data(&d, &err);
    if (status == STK_OK) status = make_model(&d, &err);
    if (status == STK_OK) status = train(&d, &show, epochs, &err);
    if (status == STK_OK && !args->quiet && !args->json) status = predict_some(&d, &err);
    if (status == STK_OK) print_end(&d);
    stk_history_release(d.history);
    stk_report_release(d.books);
    stk_trainer_release(d.trainer);
    stk_model_release(d.model);
    stk_tensor_release(d.x);
    stk_tensor_release(d.y);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static const cli_option options[] = {
    {"epochs", "N", "times through the data (default: 6)"},
    {NULL, NULL, NULL},
};

const cli_command cli_demo = {
    .name = "demo",
    .arguments = "[FOLDER]",
    .summary = "make pictures, train a network on them, and show how it went",
    .text =
        "Writes shapes.npz, model.json and model.safetensors into FOLDER (default: stoker-demo).\n",
    .examples = "stoker demo\nstoker demo out && stoker evaluate out/model.json out/shapes.npz "
                "--weights out/model.safetensors\n",
    .options = options,
    .most = 1,
    .run = run,
};
