/* TFRecord framing: any bytes are read to their end, plain and unpacked; every byte is a record's or counted as lost. */
#include "base/memory.h"
#include "stoker/records.h"

#include <stdlib.h>

static void read_all(const uint8_t *data, size_t size, stk_compression compression)
{
    stk_error err = {.code = STK_OK};
    stk_record_reader *r = NULL;
    stk_record_options o = stk_record_options_defaults();
    o.policy = STK_BAD_SKIP;
    o.compression = compression;
    if (stk_records_open_memory("fuzz", data, size, &o, &r, &err) != STK_OK) abort();
    stk_string record;
    for (bool end = false; !end;) {
        if (stk_records_next(r, &record, &end, &err) != STK_OK) abort();
        if (!end && record.size < 0) abort();
    }
    stk_record_stats s = stk_records_stats(r);
    if (compression == STK_COMPRESSION_NONE &&
        s.bytes + 16 * s.records + s.skipped_bytes != (int64_t)size)
        abort();
    if ((s.bad > 0) != (s.last_reason[0] != 0)) abort();
    stk_records_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_record_reader *r = NULL;
    int64_t count = 0;
    read_all(data, size, STK_COMPRESSION_NONE);
    if (size < 4096)
        read_all(data, size, STK_COMPRESSION_AUTO); /* a small file unpacks to 4 MB at most */
    if (stk_records_open_memory("fuzz", data, size, NULL, &r, NULL) == STK_OK &&
        stk_records_count(r, &count, NULL) == STK_OK)
        for (int64_t i = 0; i < count && i < 100; i++) {
            stk_string record;
            (void)!stk_records_at(r, i, &record, NULL);
        }
    stk_records_close(r);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
