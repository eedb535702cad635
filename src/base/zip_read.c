/* ZIP reading: find the directory from the end, check every entry against the file, then stream
 * members through zlib. */
#include "base/zip.h"

#include "base/memory.h"
#include "base/zlib_memory.h"

#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    MOST_RATIO = 1032, /* deflate cannot pack better: 258 bytes in 2 bits */
    INPUT = 32 << 10
};

struct stk_zip {
    stk_bytes bytes;
    char *path; /* copy of the name */
    stk_arena arena;
    stk_zip_entry *entries;
    int64_t count;
};

struct stk_zip_stream {
    const stk_zip *zip;
    const stk_zip_entry *entry;
    uint64_t at;     /* next packed byte in the file */
    uint64_t packed; /* packed bytes not yet taken from the file */
    uint64_t left;   /* unpacked bytes not yet delivered */
    uint32_t crc;    /* of what was delivered */
    bool inflating;
    z_stream z;
    uint8_t input[INPUT];
};

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t get32(const uint8_t *p) { return get16(p) | (uint32_t)get16(p + 2) << 16; }
static uint64_t get64(const uint8_t *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

static stk_status damaged(const stk_zip *zip, stk_error *err, const char *what, uint64_t number)
{
    return stk_fail(err, STK_ERR_FORMAT, "%s: not a good ZIP archive: %s (%llu)", zip->path, what,
                    (unsigned long long)number);
}

/* ---- directory ------------------------------------------------------------------------------ */

typedef struct directory {
    uint64_t offset, size, count;
} directory;

/* The end record is the last one of its signature whose comment reaches the end of the file. */
static stk_status find_end(const stk_zip *zip, uint64_t *where, uint8_t end[END_SIZE],
                           stk_error *err)
{
    uint64_t size = zip->bytes.size;
    if (size < END_SIZE) return damaged(zip, err, "too short for one, bytes", size);
    size_t span = size < END_SIZE + 65535 ? (size_t)size : END_SIZE + 65535;
    uint8_t *tail = stk_malloc(span);
    if (!tail) return stk_fail_memory(err, "zip", span);
    stk_status status = stk_bytes_read(&zip->bytes, size - span, tail, span, err);
    bool found = false;
    for (size_t i = span - END_SIZE + 1; status == STK_OK && !found && i-- > 0;) {
        if (get32(tail + i) != 0x06054b50 || i + END_SIZE + get16(tail + i + 20) != span) continue;
        memcpy(end, tail + i, END_SIZE);
        *where = size - span + i;
        found = true;
    }
    stk_free(tail);
    if (status == STK_OK && !found)
        status = stk_fail(err, STK_ERR_FORMAT,
                          "%s: not a ZIP archive: the record at its end is missing (is the file "
                          "complete?)",
                          zip->path);
    return status;
}

static stk_status find_directory(const stk_zip *zip, directory *d, stk_error *err)
{
    uint64_t end_at = 0;
    uint8_t end[END_SIZE] = {0}, locator[LOCATOR_SIZE], end64[END64_SIZE];
    STK_TRY(find_end(zip, &end_at, end, err));
    if (get16(end + 4) != get16(end + 6))
        return stk_fail(err, STK_ERR_UNSUPPORTED, "%s: ZIP archives in several parts are not read",
                        zip->path);
    *d = (directory){get32(end + 16), get32(end + 12), get16(end + 10)};
    uint64_t limit = end_at;
    bool large = d->offset == 0xffffffff || d->size == 0xffffffff || d->count == 0xffff;
    if (end_at >= LOCATOR_SIZE) {
        STK_TRY(stk_bytes_read(&zip->bytes, end_at - LOCATOR_SIZE, locator, LOCATOR_SIZE, err));
        if (get32(locator) == 0x07064b50) {
            uint64_t at = get64(locator + 8);
            if (at > end_at || end_at - at < END64_SIZE + LOCATOR_SIZE)
                return damaged(zip, err, "zip64 record outside the file", at);
            STK_TRY(stk_bytes_read(&zip->bytes, at, end64, END64_SIZE, err));
            if (get32(end64) != 0x06064b50) return damaged(zip, err, "no zip64 record at", at);
            *d = (directory){get64(end64 + 48), get64(end64 + 40), get64(end64 + 32)};
            limit = at;
            large = false;
        }
    }
    if (large) return damaged(zip, err, "zip64 record missing before", end_at);
    if (d->offset > limit || d->size > limit - d->offset)
        return damaged(zip, err, "directory outside the file", d->offset);
    if (d->count > d->size / CENTRAL_SIZE)
        return damaged(zip, err, "more entries than its directory has room for", d->count);
    return STK_OK;
}

/* Takes the 64-bit values of those fields that were too small for them. */
static bool widen(stk_zip_entry *e, const uint8_t *extra, size_t size)
{
    bool need_size = e->size == 0xffffffff, need_packed = e->packed == 0xffffffff;
    bool need_offset = e->offset == 0xffffffff;
    for (size_t i = 0; i + 4 <= size;) {
        size_t length = get16(extra + i + 2);
        if (length > size - i - 4) return false;
        const uint8_t *p = extra + i + 4, *end = p + length;
        if (get16(extra + i) == 1) {
            if (need_size && end - p >= 8) e->size = get64(p), p += 8, need_size = false;
            if (need_packed && end - p >= 8) e->packed = get64(p), p += 8, need_packed = false;
            if (need_offset && end - p >= 8) e->offset = get64(p), need_offset = false;
        }
        i += 4 + length;
    }
    return !need_size && !need_packed && !need_offset;
}

static stk_status check_entry(const stk_zip *zip, const stk_zip_entry *e, uint64_t limit,
                              stk_error *err)
{
    if (e->flags & 1)
        return stk_fail(err, STK_ERR_UNSUPPORTED, "%s: member %s is encrypted", zip->path, e->name);
    if (e->method != 0 && e->method != 8)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: member %s is packed by method %d; stored (0) and deflated (8) are "
                        "read",
                        zip->path, e->name, e->method);
    if (e->offset > limit || limit - e->offset < LOCAL_SIZE ||
        e->packed > limit - e->offset - LOCAL_SIZE)
        return damaged(zip, err, "member outside the file, at", e->offset);
    if (e->method == 0 && e->packed != e->size)
        return damaged(zip, err, "stored member of two sizes, at", e->offset);
    if (e->method == 8 && e->size / MOST_RATIO > e->packed)
        return damaged(zip, err, "member that claims to unpack to more than it can", e->size);
    return STK_OK;
}

/* One central header at *p; moves *p behind it. */
static stk_status take_entry(stk_zip *zip, const uint8_t **p, const uint8_t *end, stk_zip_entry *e,
                             uint64_t limit, stk_error *err)
{
    const uint8_t *h = *p;
    if (end - h < CENTRAL_SIZE || get32(h) != 0x02014b50)
        return damaged(zip, err, "no directory entry of number", (uint64_t)zip->count);
    size_t name = get16(h + 28), extra = get16(h + 30), comment = get16(h + 32);
    if ((size_t)(end - h) - CENTRAL_SIZE < name + extra + comment)
        return damaged(zip, err, "directory entry too long", name + extra + comment);
    *e = (stk_zip_entry){.offset = get32(h + 42),
                         .packed = get32(h + 20),
                         .size = get32(h + 24),
                         .crc = get32(h + 16),
                         .method = get16(h + 10),
                         .flags = get16(h + 8)};
    e->name = stk_arena_alloc(&zip->arena, name + 1);
    if (!e->name) return stk_fail_memory(err, "zip", name + 1);
    memcpy(e->name, h + CENTRAL_SIZE, name);
    if (memchr(e->name, 0, name)) return damaged(zip, err, "name with a zero byte, of size", name);
    if (!widen(e, h + CENTRAL_SIZE + name, extra))
        return damaged(zip, err, "extra field of a directory entry, of size", extra);
    *p = h + CENTRAL_SIZE + name + extra + comment;
    return check_entry(zip, e, limit, err);
}

static stk_status take_entries(stk_zip *zip, const directory *d, const uint8_t *raw, stk_error *err)
{
    const uint8_t *p = raw, *end = raw + d->size;
    uint64_t total = 0; /* more packed bytes than the file has: entries lie over each other */
    zip->entries = stk_arena_array(&zip->arena, (size_t)d->count, sizeof *zip->entries);
    if (!zip->entries) return stk_fail_memory(err, "zip", (size_t)d->count * sizeof *zip->entries);
    for (uint64_t i = 0; i < d->count; i++) {
        STK_TRY(take_entry(zip, &p, end, &zip->entries[i], d->offset, err));
        total += zip->entries[i].packed + LOCAL_SIZE;
        if (total > d->offset) return damaged(zip, err, "members overlap; entry", i);
        zip->count++;
    }
    return STK_OK;
}

static stk_status read_directory(stk_zip *zip, stk_error *err)
{
    directory d = {0};
    STK_TRY(find_directory(zip, &d, err));
    uint8_t *raw = stk_malloc((size_t)d.size);
    if (!raw) return stk_fail_memory(err, "zip", (size_t)d.size);
    stk_status status = stk_bytes_read(&zip->bytes, d.offset, raw, (size_t)d.size, err);
    if (status == STK_OK) status = take_entries(zip, &d, raw, err);
    stk_free(raw);
    return status;
}

static stk_status make(stk_bytes bytes, stk_zip **out, stk_error *err)
{
    stk_zip *zip = stk_calloc(1, sizeof *zip);
    char *path = zip ? stk_strdup(bytes.name) : NULL;
    if (!path) {
        stk_bytes_close(&bytes);
        stk_free(zip);
        return stk_fail_memory(err, "zip", sizeof *zip);
    }
    bytes.name = path;
    zip->bytes = bytes;
    zip->path = path;
    stk_status status = read_directory(zip, err);
    if (status != STK_OK) {
        stk_zip_release(zip);
        return status;
    }
    *out = zip;
    return STK_OK;
}

stk_status stk_zip_open(const char *path, stk_zip **out, stk_error *err)
{
    *out = NULL;
    stk_bytes bytes;
    STK_TRY(stk_bytes_open(path, &bytes, err));
    return make(bytes, out, err);
}

stk_status stk_zip_parse(const char *name, const void *data, size_t size, stk_zip **out,
                         stk_error *err)
{
    *out = NULL;
    return make(stk_bytes_of(name, data, size), out, err);
}

void stk_zip_release(stk_zip *zip)
{
    if (!zip) return;
    stk_bytes_close(&zip->bytes);
    stk_arena_release(&zip->arena);
    stk_free(zip->path);
    stk_free(zip);
}

int64_t stk_zip_count(const stk_zip *zip) { return zip->count; }
const char *stk_zip_name(const stk_zip *zip, int64_t index) { return zip->entries[index].name; }
uint64_t stk_zip_size(const stk_zip *zip, int64_t index) { return zip->entries[index].size; }

int64_t stk_zip_find(const stk_zip *zip, const char *name)
{
    for (int64_t i = zip->count - 1; i >= 0; i--)
        if (strcmp(zip->entries[i].name, name) == 0) return i;
    return -1;
}

/* ---- members -------------------------------------------------------------------------------- */

/* The data begins behind the local header, whose extra may be longer than the directory's. */
static stk_status locate(stk_zip_stream *s, stk_error *err)
{
    const stk_zip *zip = s->zip;
    const stk_zip_entry *e = s->entry;
    uint8_t h[LOCAL_SIZE];
    STK_TRY(stk_bytes_read(&zip->bytes, e->offset, h, sizeof h, err));
    if (get32(h) != 0x04034b50) return damaged(zip, err, "no member at", e->offset);
    if (get16(h + 8) != e->method)
        return damaged(zip, err, "member and directory name different methods, at", e->offset);
    size_t name = strlen(e->name);
    bool same = get16(h + 26) == name;
    for (size_t done = 0; same && done < name; done += sizeof s->input) { /* input is unused yet */
        size_t part = name - done < sizeof s->input ? name - done : sizeof s->input;
        STK_TRY(stk_bytes_read(&zip->bytes, e->offset + LOCAL_SIZE + done, s->input, part, err));
        same = memcmp(s->input, e->name + done, part) == 0;
    }
    if (!same) return damaged(zip, err, "member and directory have different names, at", e->offset);
    s->at = e->offset + LOCAL_SIZE + name + get16(h + 28);
    if (s->at > zip->bytes.size || e->packed > zip->bytes.size - s->at)
        return damaged(zip, err, "member runs over the end, from", e->offset);
    return STK_OK;
}

stk_status stk_zip_stream_open(const stk_zip *zip, int64_t index, stk_zip_stream **out,
                               stk_error *err)
{
    *out = NULL;
    const stk_zip_entry *e = &zip->entries[index];
    stk_zip_stream *s = stk_malloc(sizeof *s);
    if (!s) return stk_fail_memory(err, "zip", sizeof *s);
    memset(s, 0, offsetof(stk_zip_stream, input));
    s->zip = zip;
    s->entry = e;
    s->packed = e->packed;
    s->left = e->size;
    s->z.zalloc = stk_zlib_alloc;
    s->z.zfree = stk_zlib_free;
    stk_status status = locate(s, err);
    if (status == STK_OK && e->method == 8) {
        if (inflateInit2(&s->z, -MAX_WBITS) == Z_OK)
            s->inflating = true;
        else
            status = stk_fail_memory(err, "zip", 40 << 10);
    }
    if (status != STK_OK) {
        stk_zip_stream_release(s);
        return status;
    }
    *out = s;
    return STK_OK;
}

void stk_zip_stream_release(stk_zip_stream *s)
{
    if (!s) return;
    if (s->inflating) inflateEnd(&s->z);
    stk_free(s);
}

static stk_status feed(stk_zip_stream *s, stk_error *err)
{
    size_t size = s->packed < INPUT ? (size_t)s->packed : INPUT;
    STK_TRY(stk_bytes_read(&s->zip->bytes, s->at, s->input, size, err));
    s->at += size;
    s->packed -= size;
    s->z.next_in = s->input;
    s->z.avail_in = (uInt)size;
    return STK_OK;
}

static stk_status inflate_some(stk_zip_stream *s, uint8_t *to, size_t size, stk_error *err)
{
    while (size > 0) {
        if (s->z.avail_in == 0 && s->packed > 0) STK_TRY(feed(s, err));
        uInt chunk = size < 1u << 30 ? (uInt)size : 1u << 30;
        s->z.next_out = to;
        s->z.avail_out = chunk;
        int result = inflate(&s->z, Z_NO_FLUSH);
        size_t made = chunk - s->z.avail_out;
        to += made;
        size -= made;
        if (result == Z_MEM_ERROR) return stk_fail_memory(err, "zip", 40 << 10);
        bool stuck = result == Z_BUF_ERROR ||
                     (result == Z_OK && made == 0 && s->z.avail_in == 0 && s->packed == 0);
        if ((result == Z_STREAM_END && size > 0) || stuck)
            return stk_fail(err, STK_ERR_FORMAT,
                            "%s: member %s ends early: %llu bytes were promised", s->zip->path,
                            s->entry->name, (unsigned long long)s->entry->size);
        if (result != Z_OK && result != Z_STREAM_END)
            return stk_fail(err, STK_ERR_FORMAT, "%s: member %s is damaged: %s", s->zip->path,
                            s->entry->name, s->z.msg ? s->z.msg : "bad deflate data");
    }
    return STK_OK;
}

stk_status stk_zip_stream_read(stk_zip_stream *s, void *to, size_t size, stk_error *err)
{
    if (size > s->left)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: member %s has %llu bytes left, but %zu are needed", s->zip->path,
                        s->entry->name, (unsigned long long)s->left, size);
    if (s->inflating) {
        STK_TRY(inflate_some(s, to, size, err));
    } else {
        STK_TRY(stk_bytes_read(&s->zip->bytes, s->at, to, size, err));
        s->at += size;
    }
    s->left -= size;
    for (const uint8_t *p = to; size > 0;) {
        uInt chunk = size < 1u << 30 ? (uInt)size : 1u << 30;
        s->crc = (uint32_t)crc32(s->crc, p, chunk);
        p += chunk;
        size -= chunk;
    }
    return STK_OK;
}

stk_status stk_zip_stream_verify(stk_zip_stream *s, stk_error *err)
{
    uint8_t rest[64 << 10];
    while (s->left > 0) {
        size_t size = s->left < sizeof rest ? (size_t)s->left : sizeof rest;
        STK_TRY(stk_zip_stream_read(s, rest, size, err));
    }
    if (s->crc != s->entry->crc)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: member %s is damaged: its checksum is %08x, the archive says %08x",
                        s->zip->path, s->entry->name, (unsigned)s->crc, (unsigned)s->entry->crc);
    return STK_OK;
}
