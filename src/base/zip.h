/* zip.h - ZIP archives: members stored or deflated, with zip64; the container of .npz and .keras.
 *
 *     file     [member 0][member 1]...[central directory][zip64 end][zip64 locator][end]
 *     member   [local header 30][name][extra][data]
 *
 *     end of central directory, 22 bytes + comment      local header, 30 bytes + name + extra
 *      0  u32  06054b50                                  0  u32  04034b50
 *      4  u16  this disk, u16 disk of the directory      4  u16  version needed
 *      8  u16  entries here, u16 entries in all          6  u16  flags (1 = encrypted)
 *     12  u32  size of the directory                     8  u16  method (0 stored, 8 deflated)
 *     16  u32  its offset                               10  u16  time, u16 date
 *     20  u16  length of the comment                    14  u32  crc32
 *                                                       18  u32  packed size, u32 size
 *     zip64 locator, 20 bytes before the end            26  u16  length of name, u16 of extra
 *      0  u32  07064b50
 *      4  u32  disk                                     central header, 46 bytes + ...
 *      8  u64  offset of the zip64 end                   0  u32  02014b50
 *     16  u32  disks                                     4  u16  made by, then as local from 4 on
 *                                                       10  u16  method      16 u32 crc32
 *     zip64 end, 56 bytes                               20  u32  packed size, u32 size
 *      0  u32  06064b50                                 28  u16  lengths: name, extra, comment
 *      4  u64  size of the rest                         34  u16  disk, u16 u32 attributes
 *     24  u64  entries here, u64 in all                 42  u32  offset of the local header
 *     40  u64  size of the directory, u64 offset
 *     extra 0001: u64 for each of size, packed size, offset that is ffffffff above, in this order
 *
 * Nothing in the file is believed before it is checked against the file's size: entries outside it,
 * overlapping ones, and sizes that no deflated data of that length can have are refused. */
#ifndef STK_BASE_ZIP_H
#define STK_BASE_ZIP_H

#include "base/file.h"

#include <stdbool.h>

typedef struct stk_zip stk_zip;

STK_MUST_USE stk_status stk_zip_open(const char *path, stk_zip **out, stk_error *err);
STK_MUST_USE stk_status stk_zip_parse(const char *name, const void *data, size_t size,
                                      stk_zip **out, stk_error *err); /* data is borrowed */
void stk_zip_release(stk_zip *zip);

int64_t stk_zip_count(const stk_zip *zip);
const char *stk_zip_name(const stk_zip *zip, int64_t index);
uint64_t stk_zip_size(const stk_zip *zip, int64_t index);   /* unpacked */
int64_t stk_zip_find(const stk_zip *zip, const char *name); /* the last of that name, or -1 */

/* A member as a stream of exactly stk_zip_size bytes. */
typedef struct stk_zip_stream stk_zip_stream;
STK_MUST_USE stk_status stk_zip_stream_open(const stk_zip *zip, int64_t index, stk_zip_stream **out,
                                            stk_error *err);
STK_MUST_USE stk_status stk_zip_stream_read(stk_zip_stream *stream, void *to, size_t size,
                                            stk_error *err);
/* Reads what is left and compares the checksum. The stream must still be released. */
STK_MUST_USE stk_status stk_zip_stream_verify(stk_zip_stream *stream, stk_error *err);
void stk_zip_stream_release(stk_zip_stream *stream);

/* Writing: members in order, then commit. */
typedef struct stk_zip_piece {
    const void *data;
    size_t size;
} stk_zip_piece;

typedef struct stk_zip_writer {
    stk_file_writer file;
    struct stk_zip_entry *entries;
    int64_t count, capacity;
    bool force_zip64; /* tests: large fields also where small ones would do */
} stk_zip_writer;

STK_MUST_USE stk_status stk_zip_create(const char *path, stk_zip_writer *out, stk_error *err);
/* The pieces are one member. Deflated data that would be larger is stored instead. */
STK_MUST_USE stk_status stk_zip_add(stk_zip_writer *writer, const char *name, bool deflated,
                                    const stk_zip_piece *pieces, int32_t piece_count,
                                    stk_error *err);
STK_MUST_USE stk_status stk_zip_commit(stk_zip_writer *writer, stk_error *err); /* ends it */
void stk_zip_abandon(stk_zip_writer *writer);                                   /* ends it, too */

/* For both sides: one member as the directory knows it. */
typedef struct stk_zip_entry {
    char *name;
    uint64_t offset; /* of the local header */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method, flags;
} stk_zip_entry;

#endif
