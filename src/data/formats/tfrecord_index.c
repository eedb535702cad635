/* The index of a plain TFRecord file: where each record begins.
 *
 * Built by walking over the heads. Kept, for files beyond SMALL, in the user's cache (named by a
 * hash of the path) or beside the file:
 *
 *      0  8   "STKINDX1"
 *      8  8   size of the record file
 *     16  8   its time of change, ns
 *     24  8   number of records n
 *     32  8n  offsets
 *     ..  4   CRC32C of everything before
 *
 * All numbers little endian. A file that does not fit exactly is built anew without a word. */
#include "base/cache_path.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/formats/tfrecord.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALL = 8 << 20, INDEX_HEAD = 32 };
static const char magic[8] = {'S', 'T', 'K', 'I', 'N', 'D', 'X', '1'};

static bool index_path(const char *path, bool beside, char *out, size_t size)
{
    if (beside) return (size_t)snprintf(out, size, "%s.index", path) < size;
    char real[PATH_MAX];
    if (!realpath(path, real)) return false;
    uint64_t hash = 0;
    for (const char *c = real; *c; c++) hash = stk_mix64(hash + (uint8_t)*c);
    char name[64];
    snprintf(name, sizeof name, "index/%016llx.tfrecord", (unsigned long long)hash);
    return stk_cache_path(name, out, size);
}

static bool index_fits(const stk_map *file, size_t size, int64_t changed_ns)
{
    if (file->size < INDEX_HEAD + 4 || memcmp(file->data, magic, sizeof magic) != 0) return false;
    if (stk_little64(file->data + 8) != size ||
        stk_little64(file->data + 16) != (uint64_t)changed_ns)
        return false;
    uint64_t count = stk_little64(file->data + 24);
    if (count > file->size / 8 || file->size != INDEX_HEAD + 8 * count + 4) return false;
    return stk_little32(file->data + file->size - 4) == stk_crc32c(0, file->data, file->size - 4);
}

static bool load(const char *path, size_t size, int64_t changed_ns, stk_record_index *out)
{
    stk_map file;
    if (stk_map_open(path, true, &file, NULL) != STK_OK) return false;
    bool fits = index_fits(&file, size, changed_ns);
    if (fits) {
        uint64_t count = stk_little64(file.data + 24);
        out->offset = stk_malloc((size_t)count * 8);
        fits = out->offset != NULL;
        for (uint64_t i = 0; fits && i < count; i++) {
            out->offset[i] = stk_little64(file.data + INDEX_HEAD + 8 * i);
            fits = size >= STK_FRAME && out->offset[i] <= size - STK_FRAME;
        }
        out->count = out->capacity = (int64_t)count;
        if (!fits) {
            stk_free(out->offset);
            *out = (stk_record_index){0};
        }
    }
    stk_map_close(&file);
    return fits;
}

/* Failing to keep it costs time next time and nothing else. */
static void store(const char *path, size_t size, int64_t changed_ns, const stk_record_index *index)
{
    stk_file_writer w;
    if (stk_file_create(path, &w, NULL) != STK_OK) return;
    uint8_t head[INDEX_HEAD], word[8];
    memcpy(head, magic, sizeof magic);
    stk_put_little(head + 8, size, 8);
    stk_put_little(head + 16, (uint64_t)changed_ns, 8);
    stk_put_little(head + 24, (uint64_t)index->count, 8);
    uint32_t sum = stk_crc32c(0, head, INDEX_HEAD);
    stk_status status = stk_file_write(&w, head, INDEX_HEAD, NULL);
    for (int64_t i = 0; status == STK_OK && i < index->count; i++) {
        stk_put_little(word, index->offset[i], 8);
        sum = stk_crc32c(sum, word, 8);
        status = stk_file_write(&w, word, 8, NULL);
    }
    stk_put_little(word, sum, 4);
    if (status == STK_OK) status = stk_file_write(&w, word, 4, NULL);
    if (status == STK_OK) status = stk_file_commit(&w, NULL);
    if (status != STK_OK) stk_file_abandon(&w);
}

static stk_status build(const uint8_t *data, size_t size, stk_record_index *out, stk_error *err)
{
    for (size_t at = 0; at < size;) {
        uint64_t length = size - at >= STK_FRAME ? stk_little64(data + at) : UINT64_MAX;
        if (size - at < STK_FRAME || !stk_frame_head_fits(data + at) ||
            length > size - at - STK_FRAME)
            return stk_fail(err, STK_ERR_FORMAT,
                            "record %lld at byte %zu is damaged or cut short, so no index can be "
                            "built; keep the good records with `stoker data repair`",
                            (long long)out->count, at);
        if (!STK_GROW(out->offset, out->count, out->capacity))
            return stk_fail_memory(err, "index of a record file", (size_t)out->count * 16);
        out->offset[out->count++] = at;
        at += (size_t)length + STK_FRAME;
    }
    return STK_OK;
}

stk_status stk_record_index_get(const char *path, const uint8_t *data, size_t size,
                                int64_t changed_ns, bool beside, stk_record_index *out,
                                stk_error *err)
{
    *out = (stk_record_index){0};
    char kept[PATH_MAX];
    bool keep = path && (size >= SMALL || beside) && index_path(path, beside, kept, sizeof kept);
    if (keep && load(kept, size, changed_ns, out)) return STK_OK;
    stk_status status = build(data, size, out, err);
    if (status != STK_OK) {
        stk_free(out->offset);
        *out = (stk_record_index){0};
        return status;
    }
    if (keep) store(kept, size, changed_ns, out);
    return STK_OK;
}
