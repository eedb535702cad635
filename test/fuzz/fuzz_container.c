/* Checkpoints: any bytes are read or refused, without a leak and without believing a size. The checksums of the input are made
 * right first, else nothing behind them would ever be reached. */
#include "base/crc32c.h"
#include "base/memory.h"
#include "train/container.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static void run(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_container c;
    stk_status status = stk_container_parse("fuzz", data, size, &c, &err);
    if (status != STK_OK && (c.text || c.list.count || err.code != status || !err.message[0]))
        abort();
    uint64_t bytes = 0;
    for (int64_t i = 0; i < c.list.count; i++)
        bytes += (uint64_t)stk_tensor_bytes(c.list.items[i].tensor);
    if (bytes > size) abort();
    stk_container_release(&c);
    if (stk_alloc_live() != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(data, size);
    if (size < 64) return 0;
    uint8_t *copy = malloc(size);
    if (!copy) return 0;
    memcpy(copy, data, size);
    uint64_t text = get(copy + 24), table = get(copy + 32);
    if (text <= size - 64 && table <= size - 64 - text)
        put(copy + 40, stk_crc32c(0, copy + 64, (size_t)(text + table)));
    put(copy + 60, stk_crc32c(0, copy, 60));
    run(copy, size);
    free(copy);
    return 0;
}
