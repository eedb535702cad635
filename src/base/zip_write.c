/* ZIP writing. Sizes and checksums are known before a member is written, so there are no data
 * descriptors; zip64 fields appear only where numbers need them. Times are fixed (1980-01-01), so
 * that the same tensors give the same file. */
#include "base/zip.h"

#include "base/memory.h"
#include "base/zlib_memory.h"

#include <string.h>
#include <zlib.h>

enum { CHUNK = 64 << 10 };
static const uint32_t small = 0xffffffffu; /* fields below this need no zip64 */

static uint8_t *put16(uint8_t *p, uint64_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}
static uint8_t *put32(uint8_t *p, uint64_t v) { return put16(put16(p, v & 0xffff), v >> 16); }
static uint8_t *put64(uint8_t *p, uint64_t v) { return put32(put32(p, v & 0xffffffff), v >> 32); }

stk_status stk_zip_create(const char *path, stk_zip_writer *w, stk_error *err)
{
    *w = (stk_zip_writer){.file = {.fd = -1}};
    return stk_file_create(path, &w->file, err);
}

void stk_zip_abandon(stk_zip_writer *w)
{
    stk_file_abandon(&w->file);
    for (int64_t i = 0; i < w->count; i++) stk_free(w->entries[i].name);
    stk_free(w->entries);
    *w = (stk_zip_writer){.file = {.fd = -1}};
}

/* ---- one member ----------------------------------------------------------------------------- */

static uint32_t crc_of(const stk_zip_piece *pieces, int32_t count)
{
    uLong crc = 0;
    for (int32_t i = 0; i < count; i++) {
        const uint8_t *p = pieces[i].data;
        for (size_t left = pieces[i].size; left > 0;) {
            uInt chunk = left < 1u << 30 ? (uInt)left : 1u << 30;
            crc = crc32(crc, p, chunk);
            p += chunk;
            left -= chunk;
        }
    }
    return (uint32_t)crc;
}

/* Packs into `to`; *packed stays 0 when it would not become smaller. */
static bool deflate_pieces(z_stream *z, const stk_zip_piece *pieces, int32_t count, uint8_t *to,
                           size_t room, size_t *packed)
{
    z->next_out = to;
    size_t out_left = room;
    for (int32_t i = 0; i <= count; i++) {
        const uint8_t *p = i < count ? pieces[i].data : NULL;
        size_t left = i < count ? pieces[i].size : 0;
        int flush = i < count ? Z_NO_FLUSH : Z_FINISH;
        for (;;) {
            uInt in = left < 1u << 30 ? (uInt)left : 1u << 30;
            uInt out = out_left < 1u << 30 ? (uInt)out_left : 1u << 30;
            z->next_in = (uint8_t *)(uintptr_t)p; /* zlib does not write through it */
            z->avail_in = in;
            z->avail_out = out;
            int result = deflate(z, flush);
            p += in - z->avail_in;
            left -= in - z->avail_in;
            out_left -= out - z->avail_out;
            if (result == Z_STREAM_END) {
                *packed = room - out_left;
                return true;
            }
            if (result != Z_OK && result != Z_BUF_ERROR) return false;
            if (left == 0 && flush == Z_NO_FLUSH) break;
            if (out_left == 0) return true; /* not smaller */
        }
    }
    return true;
}

static stk_status pack(const stk_zip_piece *pieces, int32_t count, size_t size, uint8_t **data,
                       size_t *packed, stk_error *err)
{
    *packed = 0;
    *data = stk_malloc(size);
    z_stream z = {.zalloc = stk_zlib_alloc, .zfree = stk_zlib_free};
    bool good = *data && deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                                      Z_DEFAULT_STRATEGY) == Z_OK;
    if (good) {
        good = deflate_pieces(&z, pieces, count, *data, size, packed);
        deflateEnd(&z);
    }
    if (good) return STK_OK;
    stk_free(*data);
    *data = NULL;
    return stk_fail_memory(err, "zip", size);
}

/* version, flags, method, time, date, crc, sizes: the same bytes in both headers. */
static uint8_t *put_common(uint8_t *p, const stk_zip_entry *e, bool large)
{
    p = put16(p, large ? 45 : 20);
    p = put16(p, 0x0800); /* the name is UTF-8 */
    p = put16(p, e->method);
    p = put32(p, 0x00210000); /* 1980-01-01 00:00 */
    p = put32(p, e->crc);
    p = put32(p, large ? small : e->packed);
    return put32(p, large ? small : e->size);
}

static stk_status write_member(stk_zip_writer *w, const stk_zip_entry *e,
                               const stk_zip_piece *pieces, int32_t count, stk_error *err)
{
    uint8_t header[64], *p = put32(header, 0x04034b50);
    size_t name = strlen(e->name);
    bool large = w->force_zip64 || e->size >= small || e->packed >= small;
    p = put_common(p, e, large);
    p = put16(p, name);
    p = put16(p, large ? 20 : 0);
    STK_TRY(stk_file_write(&w->file, header, (size_t)(p - header), err));
    STK_TRY(stk_file_write(&w->file, e->name, name, err));
    if (large) {
        p = put64(put64(put16(put16(header, 1), 16), e->size), e->packed);
        STK_TRY(stk_file_write(&w->file, header, (size_t)(p - header), err));
    }
    for (int32_t i = 0; i < count; i++)
        STK_TRY(stk_file_write(&w->file, pieces[i].data, pieces[i].size, err));
    return STK_OK;
}

stk_status stk_zip_add(stk_zip_writer *w, const char *name, bool deflated,
                       const stk_zip_piece *pieces, int32_t piece_count, stk_error *err)
{
    if (!name || !*name || strlen(name) > 65535)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "zip: the name of a member is empty or has more than 65535 bytes");
    size_t size = 0, packed = 0;
    for (int32_t i = 0; i < piece_count; i++) size += pieces[i].size;
    if (!STK_GROW(w->entries, w->count, w->capacity))
        return stk_fail_memory(err, "zip", (size_t)w->capacity * 2 * sizeof *w->entries);
    uint8_t *data = NULL;
    if (deflated && size > 0) STK_TRY(pack(pieces, piece_count, size, &data, &packed, err));
    stk_zip_entry *e = &w->entries[w->count];
    *e = (stk_zip_entry){.name = stk_strdup(name),
                         .offset = w->file.offset,
                         .packed = packed ? packed : size,
                         .size = size,
                         .crc = crc_of(pieces, piece_count),
                         .method = packed ? 8 : 0};
    if (!e->name) {
        stk_free(data);
        return stk_fail_memory(err, "zip", strlen(name) + 1);
    }
    w->count++;
    stk_zip_piece one = {data, packed};
    stk_status status = write_member(w, e, packed ? &one : pieces, packed ? 1 : piece_count, err);
    stk_free(data);
    return status;
}

/* ---- directory ------------------------------------------------------------------------------ */

static stk_status write_entry(stk_zip_writer *w, const stk_zip_entry *e, stk_error *err)
{
    uint8_t header[96], *p = put32(header, 0x02014b50);
    size_t name = strlen(e->name);
    bool large = w->force_zip64 || e->size >= small || e->packed >= small;
    bool far = w->force_zip64 || e->offset >= small;
    size_t extra = large || far ? 4u + (large ? 16u : 0u) + (far ? 8u : 0u) : 0u;
    p = put16(p, 3 << 8 | (large || far ? 45 : 20)); /* made on Unix */
    p = put_common(p, e, large);
    p = put16(p, name);
    p = put16(p, extra);
    p = put64(p, 0);       /* comment, disk, inner attributes, half of the outer */
    p = put16(p, 0100644); /* upper half of the outer: a file, rw-r--r-- */
    p = put32(p, far ? small : e->offset);
    STK_TRY(stk_file_write(&w->file, header, (size_t)(p - header), err));
    STK_TRY(stk_file_write(&w->file, e->name, name, err));
    if (!extra) return STK_OK;
    p = put16(put16(header, 1), extra - 4);
    if (large) p = put64(put64(p, e->size), e->packed);
    if (far) p = put64(p, e->offset);
    return stk_file_write(&w->file, header, (size_t)(p - header), err);
}

static stk_status write_end(stk_zip_writer *w, uint64_t start, stk_error *err)
{
    uint8_t bytes[128], *p = bytes;
    uint64_t end = w->file.offset, size = end - start, count = (uint64_t)w->count;
    bool large = w->force_zip64 || start >= small || size >= small || count >= 0xffff;
    if (large) {
        p = put64(put32(p, 0x06064b50), 44);
        p = put16(put16(p, 3 << 8 | 45), 45);
        p = put64(p, 0); /* disks */
        p = put64(put64(p, count), count);
        p = put64(put64(p, size), start);
        p = put32(put32(p, 0x07064b50), 0);
        p = put32(put64(p, end), 1);
    }
    p = put32(put32(p, 0x06054b50), 0);
    p = put16(put16(p, large ? 0xffff : count), large ? 0xffff : count);
    p = put32(put32(p, large ? small : size), large ? small : start);
    p = put16(p, 0);
    return stk_file_write(&w->file, bytes, (size_t)(p - bytes), err);
}

stk_status stk_zip_commit(stk_zip_writer *w, stk_error *err)
{
    uint64_t start = w->file.offset;
    stk_status status = STK_OK;
    for (int64_t i = 0; status == STK_OK && i < w->count; i++)
        status = write_entry(w, &w->entries[i], err);
    if (status == STK_OK) status = write_end(w, start, err);
    if (status == STK_OK) status = stk_file_commit(&w->file, err);
    stk_zip_abandon(w);
    return status;
}
