/* stoker evaluate - loss and metrics of a model on data. */
#include "load.h"
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

static stk_status evaluate(const cli_args *args, stk_trainer_options *how, int64_t batch,
                           stk_error *err)
{
    stk_model *m = NULL;
    stk_trainer *t = NULL;
    cli_batches data = {.weights = NULL};
    const stk_logs *logs = NULL;
    stk_status status = stk_model_load_json(args->rest[0], &m, err);
    if (status == STK_OK)
        status = cli_load_data(args, m, args->nrest - 1, args->rest + 1, true, &data, err);
    if (status == STK_OK) {
        cli_goal goal = cli_choose_goal(args, m, &data);
        how->loss = goal.loss;
        how->metrics = goal.metrics;
        status = stk_trainer_new(m, how, &t, err);
    }
    if (status == STK_OK)
        status = stk_trainer_load_weights(t, cli_text(args, "weights", ""), false, err);
    if (status == STK_OK) status = stk_trainer_evaluate(t, &data.view, batch, 0, &logs, err);
    if (status == STK_OK) print_logs(args, logs);
    stk_trainer_release(t);
    cli_data_release(&data);
    stk_model_release(m);
    return status;
}

static int run(const cli_args *args)
{
    stk_error err;
    stk_trainer_options how = stk_trainer_defaults();
    int64_t batch;
    int code;
    if (!cli_given(args, "weights"))
        return cli_usage(args, "--weights FILE is missing: the numbers of the model");
    if (!cli_trainer_options(args, &how, &batch, &code)) return code;
    stk_status status = evaluate(args, &how, batch, &err);
    stk_device_release(how.device);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static const cli_option options[] = {
    {"weights", "FILE", "weights of the model: .safetensors or a checkpoint"},
    {"loss", "NAME", "as in training (default: what fits the targets)"},
    {"metrics", "NAMES", "as in training: accuracy,mae ..."},
    CLI_DATA_OPTIONS,
    CLI_RUN_OPTIONS,
    {NULL, NULL, NULL},
};

const cli_command cli_evaluate = {
    .name = "evaluate",
    .arguments = "MODEL.json DATA...",
    .summary = "loss and metrics of a trained model on data",
    .examples = "stoker evaluate model.json test.npz --weights model.safetensors\n",
    .options = options,
    .least = 2,
    .most = -1,
    .run = run,
};
