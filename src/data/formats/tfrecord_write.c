/* Writing TFRecord files, plain or compressed. */
#include "base/file.h"
#include "base/memory.h"
#include "base/zlib_memory.h"
#include "data/formats/tfrecord.h"

#include <limits.h>
#include <zlib.h>

enum { PACKED_BUFFER = 64 << 10, MEMORY_LEVEL = 9 };

struct stk_record_writer {
    stk_file_writer file;
    bool packed, deflating;
    z_stream z;
    uint8_t *buffer; /* packed only */
};

static stk_status start_packing(stk_record_writer *w, stk_compression compression, stk_error *err)
{
    w->packed = true;
    w->buffer = stk_malloc(PACKED_BUFFER);
    if (!w->buffer) return stk_fail_memory(err, "record writer", PACKED_BUFFER);
    w->z.zalloc = stk_zlib_alloc;
    w->z.zfree = stk_zlib_free;
    int bits = MAX_WBITS + (compression == STK_COMPRESSION_GZIP ? 16 : 0);
    if (deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return stk_fail_memory(err, "compression of records", 256 << 10);
    w->deflating = true;
    return STK_OK;
}

stk_record_writer_options stk_record_writer_options_defaults(void)
{
    return (stk_record_writer_options){.compression = STK_COMPRESSION_NONE};
}

stk_status stk_record_writer_new(const char *path, const stk_record_writer_options *options,
                                 stk_record_writer **out, stk_error *err)
{
    *out = NULL;
    stk_record_writer_options o = options ? *options : stk_record_writer_options_defaults();
    stk_record_writer *w = stk_calloc(1, sizeof *w);
    if (!w) return stk_fail_memory(err, "record writer", sizeof *w);
    w->file.fd = -1;
    stk_status status = stk_file_create(path, &w->file, err);
    w->file.hasty = !o.durable;
    if (status == STK_OK && o.compression >= STK_COMPRESSION_GZIP)
        status = start_packing(w, o.compression, err);
    if (status != STK_OK) {
        stk_record_writer_abandon(w);
        return status;
    }
    *out = w;
    return STK_OK;
}

static stk_status pack(stk_record_writer *w, const void *data, size_t size, int flush,
                       stk_error *err)
{
    w->z.next_in = (Bytef *)(uintptr_t)data;
    do {
        uInt give = size < INT_MAX ? (uInt)size : INT_MAX;
        w->z.avail_in = give;
        w->z.next_out = w->buffer;
        w->z.avail_out = PACKED_BUFFER;
        int result = deflate(&w->z, flush);
        if (result == Z_STREAM_ERROR)
            return stk_fail(err, STK_ERR_INTERNAL, "%s: zlib refused to go on", w->file.path);
        size -= give - w->z.avail_in;
        STK_TRY(stk_file_write(&w->file, w->buffer, PACKED_BUFFER - w->z.avail_out, err));
        if (result == Z_STREAM_END) break;
    } while (size > 0 || w->z.avail_out == 0);
    return STK_OK;
}

static stk_status put(stk_record_writer *w, const void *data, size_t size, stk_error *err)
{
    if (!w->packed) return stk_file_write(&w->file, data, size, err);
    return size ? pack(w, data, size, Z_NO_FLUSH, err) : STK_OK;
}

stk_status stk_record_write(stk_record_writer *w, const void *data, size_t size, stk_error *err)
{
    uint8_t head[STK_FRAME_HEAD], tail[STK_FRAME_TAIL];
    if (!data && size)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: a record of %zu bytes is NULL", w->file.path,
                        size);
    stk_frame_make(data, size, head, tail);
    STK_TRY(put(w, head, sizeof head, err));
    STK_TRY(put(w, data, size, err));
    return put(w, tail, sizeof tail, err);
}

stk_status stk_record_writer_commit(stk_record_writer *w, stk_error *err)
{
    stk_status status = w->packed ? pack(w, "", 0, Z_FINISH, err) : STK_OK;
    if (status == STK_OK) status = stk_file_commit(&w->file, err);
    stk_record_writer_abandon(w);
    return status;
}

void stk_record_writer_abandon(stk_record_writer *w)
{
    if (!w) return;
    if (w->deflating) deflateEnd(&w->z);
    stk_file_abandon(&w->file);
    stk_free(w->buffer);
    stk_free(w);
}
