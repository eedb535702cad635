/* tf.train.Example and SequenceExample: any bytes are parsed or refused, against schemas of every kind and without. */
#include "base/memory.h"
#include "stoker/records.h"

#include <stdlib.h>

static void see(void *context, const stk_feature_seen *seen)
{
    stk_tensor *values = NULL;
    (void)context;
    if (seen->count < 0) abort();
    if (seen->list < 0 && stk_feature_values(seen, &values, NULL) == STK_OK &&
        stk_tensor_count(values) != seen->count)
        abort();
    stk_tensor_release(values);
}

static void parse(const uint8_t *data, size_t size, bool sequence)
{
    stk_feature schema[] = {
        {"label", STK_FEATURE_VAR, STK_I64, 0, {0}, NULL, false},
        {"weights", STK_FEATURE_SEQUENCE, STK_F32, 1, {3}, NULL, false},
        {"words", STK_FEATURE_VAR, STK_STRING, 0, {0}, NULL, false},
        {"tokens", STK_FEATURE_SEQUENCE, STK_I64, 1, {2}, NULL, true},
        {"ragged", STK_FEATURE_VAR, STK_F32, 0, {0}, NULL, true},
    };
    stk_error err = {.code = STK_OK};
    stk_example_parser *p = NULL;
    stk_tensor *out[5] = {NULL};
    int32_t n = sequence ? 5 : 3;
    if (stk_example_parser_new(n, schema, sequence, &p, &err) != STK_OK) abort();
    stk_status status = stk_example_parse(p, data, size, out, &err);
    for (int32_t i = 0; i < n; i++) {
        if ((out[i] != NULL) != (status == STK_OK)) abort();
        stk_tensor_release(out[i]);
    }
    stk_example_parser_free(p);
    (void)!stk_example_visit(data, size, sequence, see, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, false);
    parse(data, size, true);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
