/* Optimizers, losses and metrics from any text: read or refused with a message; an optimizer that was read can be written as
 * JSON, read again, and is the same; what was read can be built into a graph. */
#include "base/memory.h"
#include "stoker/metrics.h"
#include "stoker/optim.h"

#include <stdlib.h>
#include <string.h>

static void refuse(stk_status status, const stk_error *err)
{
    if (err->code != status || !err->message[0]) abort();
}

static void try_optimizer(const char *text)
{
    stk_error err = {.code = STK_OK};
    stk_optimizer *first = NULL, *second = NULL;
    char *json = NULL;
    stk_status status = stk_optimizer_parse(text, &first, &err);
    if (status != STK_OK) {
        refuse(status, &err);
        return;
    }
    if (stk_optimizer_to_json(first, &json, &err) || stk_optimizer_parse(json, &second, &err))
        abort();
    /* A name is not taken from JSON; everything else has to come back. As text, since structs have holes. */
    stk_optimizer_options read = *stk_optimizer_get_options(second);
    memcpy(read.name, stk_optimizer_get_options(first)->name, sizeof read.name);
    stk_optimizer *third = NULL;
    char *again = NULL;
    if (stk_optimizer_new(&read, &third, &err) || stk_optimizer_to_json(third, &again, &err) ||
        strcmp(json, again) != 0)
        abort();
    stk_graph *g = NULL;
    if (stk_graph_new(&g, &err)) abort();
    stk_val w = stk_g_variable(g, "w", STK_F32, 1, (int64_t[]){3});
    const char *name = "w";
    stk_optimizer_apply(first, g,
                        &(stk_update){.n = 1, .variables = &w, .gradients = &w, .names = &name});
    if (stk_graph_status(g, &err)) abort();
    stk_graph_release(g);
    stk_text_free(json);
    stk_text_free(again);
    stk_optimizer_release(third);
    stk_optimizer_release(first);
    stk_optimizer_release(second);
}

static void try_metric(const char *text)
{
    stk_error err = {.code = STK_OK};
    stk_loss loss;
    stk_metric metric;
    stk_graph *g = NULL;
    if (stk_graph_new(&g, &err)) abort();
    stk_val v = stk_g_input(g, "v", STK_F32, 2, (int64_t[]){4, 3});
    stk_status status = stk_loss_parse(text, &loss, &err);
    if (status != STK_OK)
        refuse(status, &err);
    else
        (void)stk_g_loss(g, &loss, v, v, 0,
                         0); /* labels may not fit the loss: a mistake of the graph */
    status = stk_metric_parse(text, &metric, &err);
    if (status != STK_OK)
        refuse(status, &err);
    else if (metric.num_classes <= 64 && metric.num_thresholds <= 1000)
        stk_g_metric(g, &metric, "m", v, v, 0, 0);
    stk_graph_release(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096) return 0;
    char *text = stk_strndup((const char *)data, size);
    if (!text) return 0;
    try_optimizer(text);
    try_metric(text);
    stk_free(text);
    return 0;
}
