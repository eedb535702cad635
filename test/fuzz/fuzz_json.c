/* JSON: any bytes are read or refused; what was read can be written, read again and written the
 * same. */
#include "base/json.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static char *write_out(const stk_json_document *document, int32_t indent, size_t *size)
{
    char *text = NULL;
    stk_json_writer w = {.indent = indent, .allow_nonfinite = true};
    stk_json_put_tree(&w, stk_json_root(document));
    if (stk_json_finish(&w, &text, size, NULL) != STK_OK) abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = size % 2;
    stk_json_document *first = NULL, *second = NULL;
    stk_status status = stk_json_parse((const char *)data, size, &options, &first, &err);
    if (status != STK_OK) {
        if (first || err.code != status || !err.message[0]) abort();
        return 0;
    }
    size_t size1, size2;
    options.allow_nonfinite = true;
    char *text1 = write_out(first, 2, &size1);
    if (stk_json_parse(text1, size1, &options, &second, &err) != STK_OK) abort();
    char *text2 = write_out(second, 2, &size2);
    if (size1 != size2 || memcmp(text1, text2, size1) != 0) abort();
    stk_free(text1);
    stk_free(text2);
    stk_json_release(first);
    stk_json_release(second);
    return 0;
}
