/* The sliding window over plain and compressed record files. */
#include "data/formats/record_window.h"

#include "base/memory.h"
#include "base/zlib_memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { FIRST_BUFFER = 256 << 10, WINDOW_BITS = 15 };

/* A zlib header: method 8, window at most 32 KiB, and a check that makes it divisible by 31. A
 * record of 24.6 KiB or the like begins with the same two bytes, but then the checksum of its
 * length fits as well, which the caller has tested first. */
static stk_compression detect(const uint8_t *data, size_t size)
{
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) return STK_COMPRESSION_GZIP;
    if (size >= 2 && (data[0] & 15) == Z_DEFLATED && data[0] >> 4 <= 7 &&
        (data[0] * 256 + data[1]) % 31 == 0)
        return STK_COMPRESSION_ZLIB;
    return STK_COMPRESSION_NONE;
}

stk_status stk_window_open(stk_window *w, const char *name, stk_map map, bool mapped,
                           stk_compression compression, stk_error *err)
{
    *w = (stk_window){.name = name, .map = map, .mapped = mapped};
    if (compression == STK_COMPRESSION_AUTO) compression = detect(map.data, map.size);
    if (compression == STK_COMPRESSION_NONE) {
        w->at = map.data;
        w->have = map.size;
        return STK_OK;
    }
    w->packed = true;
    z_stream *z = stk_calloc(1, sizeof *z);
    w->inflater = z;
    w->buffer = z ? stk_malloc(FIRST_BUFFER) : NULL;
    w->capacity = FIRST_BUFFER;
    if (!w->buffer) {
        w->mapped = false; /* the mapping stays with the caller on failure */
        stk_free(z);
        w->inflater = NULL;
        return stk_fail_memory(err, name, FIRST_BUFFER);
    }
    z->zalloc = stk_zlib_alloc;
    z->zfree = stk_zlib_free;
    z->next_in = (Bytef *)(uintptr_t)map.data;
    int bits = compression == STK_COMPRESSION_GZIP ? WINDOW_BITS + 16 : WINDOW_BITS;
    if (inflateInit2(z, bits) != Z_OK) {
        w->mapped = false;
        stk_window_close(w);
        return stk_fail_memory(err, name, sizeof *z);
    }
    w->at = w->buffer;
    return STK_OK;
}

/* Makes room behind `end`: moves what is left to the front, doubles when that is not enough. */
static stk_status make_room(stk_window *w, size_t want, stk_error *err)
{
    if (w->begin > 0 && w->begin >= w->capacity / 2) {
        memmove(w->buffer, w->buffer + w->begin, w->end - w->begin);
        w->end -= w->begin;
        w->begin = 0;
    }
    if (w->end < w->capacity || w->end - w->begin >= want) return STK_OK;
    size_t larger;
    if (!stk_mul_size(w->capacity, 2, &larger)) return stk_fail_memory(err, w->name, w->capacity);
    uint8_t *buffer = stk_realloc(w->buffer, w->capacity, larger);
    if (!buffer) return stk_fail_memory(err, w->name, larger);
    w->buffer = buffer;
    w->capacity = larger;
    return STK_OK;
}

/* One stretch from zlib. Files of several members behind each other are one stream, as for gzip. */
static stk_status unpack(stk_window *w, stk_error *err)
{
    z_stream *z = w->inflater;
    size_t used = (size_t)((const uint8_t *)z->next_in - w->map.data), left = w->map.size - used;
    z->avail_in = left < INT_MAX ? (uInt)left : INT_MAX;
    z->next_out = w->buffer + w->end;
    size_t room = w->capacity - w->end;
    uInt give = room < INT_MAX ? (uInt)room : INT_MAX;
    z->avail_out = give;
    int result = inflate(z, Z_NO_FLUSH);
    w->end += give - z->avail_out;
    used = (size_t)((const uint8_t *)z->next_in - w->map.data);
    if (result == Z_STREAM_END && used < w->map.size && inflateReset(z) == Z_OK) return STK_OK;
    if (result == Z_MEM_ERROR) return stk_fail_memory(err, w->name, FIRST_BUFFER);
    if (result == Z_STREAM_END) {
        w->ended = true;
    } else if (result != Z_OK || (give == z->avail_out && used == w->map.size)) {
        w->ended = true;
        snprintf(w->damage, sizeof w->damage, "the compressed data are damaged at byte %zu: %s",
                 used, z->msg ? z->msg : "they end too early");
    }
    return STK_OK;
}

stk_status stk_window_fill(stk_window *w, size_t want, stk_error *err)
{
    if (w->packed) {
        stk_status status = STK_OK;
        while (status == STK_OK && w->end - w->begin < want && !w->ended) {
            status = make_room(w, want, err);
            if (status == STK_OK) status = unpack(w, err);
        }
        w->at = w->buffer + w->begin;
        w->have = w->end - w->begin;
        return status;
    }
    return STK_OK;
}

void stk_window_skip(stk_window *w, size_t n)
{
    w->at += n;
    w->have -= n;
    w->offset += (int64_t)n;
    if (w->packed) w->begin += n;
}

void stk_window_close(stk_window *w)
{
    if (w->inflater) inflateEnd(w->inflater);
    stk_free(w->inflater);
    stk_free(w->buffer);
    if (w->mapped) stk_map_close(&w->map);
    *w = (stk_window){0};
}
