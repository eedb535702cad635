/* Models from JSON: any bytes are read or refused; what was read can be drawn as a table, written and read again, and put
 * into a graph without a crash. Text that is no JSON is tried as one layer in C's writing. */
#include "base/memory.h"
#include "stoker/layers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void use(const stk_model *m)
{
    stk_graph *g = NULL;
    stk_val x[16], y[256];
    int32_t n = stk_model_input_count(m);
    if (!stk_model_is_built(m) || n > 16 || stk_model_output_count(m) > 256) return;
    if (stk_graph_new(&g, NULL) != STK_OK) abort();
    for (int32_t i = 0; i < n; i++) {
        stk_spec spec = stk_model_input(m, i);
        char name[3] = {'x', (char)('a' + i), 0};
        for (int32_t k = 0; k < spec.rank; k++)
            if (spec.shape[k] < 0) spec.shape[k] = 3;
        x[i] = stk_g_input(g, name, spec.dtype, spec.rank, spec.shape);
    }
    stk_call call = {.training = true};
    stk_model_call(m, g, x, &call, y);
    stk_graph_release(g);
}

static void check(const stk_model *m)
{
    stk_error err = {.code = STK_OK};
    stk_model *again = NULL;
    char *first = NULL, *second = NULL, *table = NULL;
    use(m);
    if (stk_model_summary(m, NULL, &table, &err) != STK_OK) abort();
    if (stk_model_to_json(m, 0, &first, &err) != STK_OK) abort();
    if (stk_model_from_json(first, strlen(first), &again, &err) != STK_OK) abort();
    if (stk_model_to_json(again, 0, &second, &err) != STK_OK) abort();
    if (strcmp(first, second) != 0) abort();
    stk_text_free(first);
    stk_text_free(second);
    stk_text_free(table);
    stk_model_release(again);
}

static void try_layer(const char *text)
{
    stk_error err = {.code = STK_OK};
    stk_model *m = NULL;
    if (stk_model_new(NULL, &m, &err) != STK_OK) abort();
    stk_model_add(m, "Input((6, 5, 4))");
    stk_model_add(m, text);
    stk_status status = stk_model_build(m, 0, NULL, &err);
    if (status == STK_OK)
        check(m);
    else if (err.code != status || !err.message[0])
        abort();
    stk_model_release(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_model *m = NULL;
    stk_status status = stk_model_from_json((const char *)data, size, &m, &err);
    if (status == STK_OK) {
        check(m);
        stk_model_release(m);
        return 0;
    }
    if (m || err.code != status || !err.message[0]) abort();
    if (size && data[0] != '{' && !memchr(data, 0, size)) {
        char *text = stk_strndup((const char *)data, size);
        if (text) try_layer(text);
        stk_free(text);
    }
    return 0;
}
