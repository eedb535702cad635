#define _GNU_SOURCE
/* Pipeline files: any bytes make a dataset or a message; what was made can be explained, and its first elements read. */
#include "base/memory.h"
#include "stoker/data.h"
#include "stoker/graph.h"

#include <stdlib.h>
#include <string.h>

static bool has(const uint8_t *data, size_t size, const char *word)
{
    return memmem(data, size, word, strlen(word)) != NULL;
}

/* A file that names other files would read the machine it runs on. */
static bool names_files(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"file", "path", "pattern", "folder"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (has(data, size, words[w])) return true;
    return memchr(data, '\\', size) != NULL; /* escapes could spell them */
}

/* How many elements a pipeline may look at is at most about the product of the numbers in its text, unless something in it
 * is endless. Beyond a million it is only explained: a filter that lets nothing pass would never come back. */
static bool is_small(const uint8_t *data, size_t size)
{
    double product = 1, number = 0;
    for (size_t i = 0; i < size; i++) {
        bool digit = data[i] >= '0' && data[i] <= '9';
        if (digit) number = number * 10 + (data[i] - '0');
        if (digit && i + 1 < size) continue;
        product *= number + 1;
        number = 0;
    }
    bool endless = has(data, size, "random") || has(data, size, ":-") || has(data, size, ": -") ||
                   (has(data, size, "repeat") && !has(data, size, "times"));
    return product < 1e6 && !endless;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    bool small = is_small(data, size);
    /* Such functions are tried on their first elements when they are read. */
    if (names_files(data, size) || (!small && has(data, size, "element"))) return 0;
    stk_dataset *ds = stk_data_pipeline((const char *)data, size, NULL, &err);
    if (!ds) {
        if (err.code == STK_OK || !err.message[0]) abort();
        return 0;
    }
    char *text = NULL;
    if (stk_dataset_explain(ds, NULL, &text, &err) != STK_OK) abort();
    stk_text_free(text);
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 1;
    o.ram_budget = 1 << 20;
    stk_stream *s = NULL;
    stk_tensor **parts = calloc((size_t)stk_dataset_schema(ds)->n + 1, sizeof *parts);
    if (small && stk_dataset_stream(ds, &o, &s, &err) == STK_OK) {
        bool end = false;
        for (int i = 0; i < 20 && !end; i++)
            if (stk_stream_next(s, parts, &end, &err) == STK_OK && !end)
                for (int32_t p = 0; p < stk_dataset_schema(ds)->n; p++)
                    stk_tensor_release(parts[p]);
    }
    stk_stream_release(s);
    free(parts);
    stk_dataset_release(ds);
    return 0;
}
