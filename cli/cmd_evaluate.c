/* stoker evaluate - loss and metrics of a model on data. */
#include "run.h"
#include "table.h"

static void print_logs(const cli_args *args, const stk_logs *logs)
{
    cli_table t = {.columns = 2, .right = 2};
    if (args->json) printf("{");
    for (int32_t i = 0; i < logs->count; i++) {
        cli_cell(&t, "%s", logs->names[i]);
        cli_cell(&t, "%.6g", logs->values[i]);
        if (!args->json) continue;
        if (i) printf(", ");
        cli_json_text(stdout, logs->names[i]);
        printf(": ");
        cli_json_number(stdout, logs->values[i]);
    }
    if (args->json)
        printf("}\n");
    else
        cli_table_print(&t, stdout, "");
    cli_table_free(&t);
}

static stk_status evaluate(cli_run *r, void *context, stk_error *err)
{
    const stk_logs *logs = NULL;
    (void)context;
    stk_status status =
        stk_trainer_evaluate(r->trainer, &r->data.view, r->fit.batch, 0, &logs, err);
    if (status == STK_OK) print_logs(r->args, logs);
    return status;
}

static int run(const cli_args *args)
{
    if (!cli_has_weights(args)) return CLI_USAGE;
    return cli_run_model(args, true, evaluate, NULL);
}

static const cli_option options[] = {
    {"weights", "FILE", "weights: .safetensors, .weights.h5, .keras, .h5 or a checkpoint"},
    {"loss", "NAME", "as in training (default: what fits the targets)"},
    {"metrics", "NAMES", "as in training: accuracy,mae ..."},
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_evaluate = {
    .name = "evaluate",
    .arguments = "MODEL DATA...",
    .summary = "loss and metrics of a trained model on data",
    .examples = "stoker evaluate model.json test.npz --weights model.safetensors\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
