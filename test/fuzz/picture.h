/* picture.h - any bytes are decoded as a picture or refused: whole, cropped and smaller. The targets differ in their seeds. */
#ifndef STK_FUZZ_PICTURE_H
#define STK_FUZZ_PICTURE_H
#include "base/memory.h"
#include "stoker/picture.h"

#include <stdlib.h>

static void decode(const uint8_t *data, size_t size, const stk_picture_options *o)
{
    stk_error err = {.code = STK_OK};
    stk_tensor *image = NULL;
    stk_status status = stk_picture_decode(data, size, o, &image, &err);
    if ((image != NULL) != (status == STK_OK)) abort();
    if (status != STK_OK && (err.code != status || !err.message[0])) abort();
    stk_tensor_release(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_picture_info info;
    stk_picture_options o = stk_picture_options_defaults();
    o.most_pixels = 1 << 20; /* a picture of a few bytes may claim to be huge */
    o.recover = true;
    (void)!stk_picture_probe(data, size, &info, NULL);
    decode(data, size, &o);
    o.channels = 1 + 2 * (int32_t)(size % 2);
    o.top = 3, o.left = 5, o.height = 7, o.width = 4;
    decode(data, size, &o);
    o = (stk_picture_options){
        .dtype = STK_U8, .most_pixels = 1 << 20, .least_height = 8, .least_width = 8};
    decode(data, size, &o);
    if (stk_alloc_live() != 0) abort();
    return 0;
}

#endif
