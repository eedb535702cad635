/* stoker summary MODEL.json */
#include "load.h"

static void print_json(const stk_model *m)
{
    stk_param_count n = stk_model_params(m);
    printf("{\"name\": ");
    cli_json_text(stdout, stk_model_name(m));
    printf(", \"layers\": [");
    for (int32_t i = 0; i < stk_model_layer_count(m); i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, stk_model_layer_name(m, i));
        printf(", \"class\": ");
        cli_json_text(stdout, stk_model_layer_class(m, i));
        printf("}");
    }
    printf("], \"params\": {\"total\": %lld, \"trainable\": %lld, \"fixed\": %lld}}\n",
           (long long)n.total, (long long)n.trainable, (long long)n.fixed);
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_model *m = NULL;
    char *text = NULL;
    if (cli_load_model(args->rest[0], &m, NULL, &err) != STK_OK) return cli_fail(args, &err);
    int code = CLI_OK;
    stk_summary_options how = {.ascii = cli_given(args, "ascii"),
                               .nested = cli_given(args, "nested")};
    if (args->json)
        print_json(m);
    else if (stk_model_summary(m, &how, &text, &err) == STK_OK)
        fputs(text, stdout);
    else
        code = cli_fail(args, &err);
    stk_text_free(text);
    stk_model_release(m);
    return code;
}

static const cli_option options[] = {
    {"ascii", NULL, "draw the table with + - |"},
    {"nested", NULL, "also show the layers inside of models that are layers"},
    {NULL, NULL, NULL},
};

const cli_command cli_summary = {
    .name = "summary",
    .arguments = "MODEL",
    .summary = "the layers of a model, their shapes and parameters",
    .text = "MODEL is what Keras' model.to_json(), model.save() or `stoker init` writes: .json, "
            ".keras or\n"
            ".h5.\n",
    .examples = "stoker summary model.json\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
