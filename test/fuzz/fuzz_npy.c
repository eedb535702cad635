/* .npy: any bytes are read or refused; what was read can be written and read again the same. */
#include "base/memory.h"
#include "base/npy.h"

#include <stdlib.h>
#include <string.h>

static void check_again(const stk_tensor *t)
{
    stk_npy_image image;
    if (stk_npy_image_make(t, &image, NULL) != STK_OK) abort();
    char *file = malloc(image.header_size + image.data_size + 1);
    stk_tensor *again = NULL;
    if (!file) abort();
    memcpy(file, image.header, image.header_size);
    if (image.data_size) memcpy(file + image.header_size, image.data, image.data_size);
    if (stk_npy_parse("again", file, image.header_size + image.data_size, &again, NULL) != STK_OK)
        abort();
    if (again->dtype != t->dtype || again->rank != t->rank) abort();
    if (t->dtype != STK_STRING && stk_tensor_bytes(t) &&
        memcmp(again->data, t->data, (size_t)stk_tensor_bytes(t)) != 0)
        abort();
    stk_tensor_release(again);
    free(file);
    stk_npy_image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_tensor *t = NULL;
    stk_status status = stk_npy_parse("fuzz", data, size, &t, &err);
    if (status != STK_OK) {
        if (t || err.code != status || !err.message[0]) abort();
        return 0;
    }
    check_again(t);
    stk_tensor_release(t);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
