/* residual.c - a functional model with a shortcut, built in C: its table, its weights, its JSON for Keras, and a run.
 * Give the path of a file that Keras' model.to_json() wrote to see that model instead. */
#include "stoker/layers.h"

#include <stdio.h>
#include <stdlib.h>

static void check(stk_status status, const stk_error *err)
{
    if (status == STK_OK) return;
    fprintf(stderr, "%s: %s\n", stk_status_name(err->code), err->message);
    exit(1);
}

static stk_model *build(stk_error *err)
{
    stk_model *m = NULL;
    check(stk_model_new("residual", &m, err), err);
    stk_sym image = stk_m_input(m, "image", STK_F32, 3, (int64_t[]){16, 16, 3});
    stk_sym x = stk_m_apply(m, "Conv2D(8, 3, padding=same, activation=relu)", 1, &image);
    stk_sym y = stk_m_apply(m, "Conv2D(8, 3, padding=same, kernel_initializer=he_normal)", 1, &x);
    x = stk_m_apply(m, "Add()", 2, (stk_sym[]){x, y});
    x = stk_m_apply(m, "Activation(relu)", 1, &x);
    x = stk_m_apply(m, "GlobalAveragePooling2D()", 1, &x);
    stk_m_output(m, stk_m_apply(m, "Dense(10, activation=softmax, name=classes)", 1, &x));
    check(stk_model_build(m, 0, NULL, err), err); /* tells the first mistake of all lines above */
    return m;
}

/* A batch of ones through the model, with weights of seed 1. */
static void run(const stk_model *m, stk_error *err)
{
    enum { BATCH = 2 };
    stk_graph *g = NULL;
    stk_store *weights = NULL;
    stk_program *p = NULL;
    stk_tensor *y = NULL;
    check(stk_graph_new(&g, err), err);
    check(stk_store_new(NULL, &weights, err), err);
    check(stk_model_init(m, weights, 1, err), err);
    stk_spec in = stk_model_input(m, 0);
    in.shape[0] = BATCH;
    stk_val x = stk_g_fill(g, in.dtype, in.rank, in.shape, 1), out;
    stk_model_call(m, g, &x, NULL, &out);
    stk_g_output(g, "classes", out);
    stk_program_options options = stk_program_options_defaults();
    options.store = weights;
    check(stk_program_new(g, &options, &p, err), err);
    check(stk_program_run(p, 1, err), err);
    check(stk_program_read(p, "classes", &y, err), err);
    double sum = 0;
    for (int64_t i = 0; i < stk_tensor_count(y); i++) sum += stk_tensor_at(y, i);
    printf("probabilities of %d images sum to %.3f\n", BATCH, sum);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_store_release(weights);
    stk_graph_release(g);
}

int main(int argc, char **argv)
{
    stk_error err = {STK_OK, ""};
    stk_model *m = NULL;
    char *table = NULL, *json = NULL;
    if (argc > 1)
        check(stk_model_load_json(argv[1], &m, &err), &err);
    else
        m = build(&err);
    check(stk_model_summary(m, NULL, &table, &err), &err);
    fputs(table, stdout);
    for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
        stk_weight w = stk_model_weight(m, i);
        printf("%s%s", i ? ", " : "weights: ", w.name);
    }
    check(stk_model_to_json(m, 0, &json, &err), &err);
    printf("\nfor Keras: %.60s...\n", json);
    if (argc < 2) run(m, &err);
    stk_text_free(table);
    stk_text_free(json);
    stk_model_release(m);
    return 0;
}
