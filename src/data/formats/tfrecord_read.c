/* Reading TFRecord files: one record after the other, by number, and past damaged places. */
#include "base/cpus.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/formats/record_window.h"
#include "data/formats/tfrecord.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct stk_record_reader {
    stk_window window;
    stk_record_options options;
    char *path, *quarantine;
    int64_t offset; /* of the record handed out last */
    size_t pending; /* bytes of that record, skipped at the next call */
    stk_record_stats stats;
    stk_record_index index;
    bool indexed, from_memory;
    bool inside; /* of a damaged place that was counted already */
};

/* A damaged place: how many bytes from the window on are lost, and why. */
typedef struct damage {
    size_t lost;
    bool goes_on; /* behind that, too: no head was found so far */
    char reason[200];
} damage;

stk_record_options stk_record_options_defaults(void)
{
    return (stk_record_options){.compression = STK_COMPRESSION_AUTO, .verify = true};
}

/* ---- opening ------------------------------------------------------------------------------------ */

static stk_status set_up(stk_record_reader *r, const char *name, stk_map map, bool mapped,
                         stk_error *err)
{
    const stk_record_options *o = &r->options;
    r->path = stk_strdup(name);
    size_t room = strlen(name) + 8;
    r->quarantine = o->quarantine ? stk_strdup(o->quarantine) : stk_malloc(room);
    if (!r->path || !r->quarantine) return stk_fail_memory(err, name, room);
    if (!o->quarantine) snprintf(r->quarantine, room, "%s.bad", name);
    stk_compression packing = o->compression;
    /* A plain file is known by its first checksum, which beats any guess at two bytes. */
    if (packing == STK_COMPRESSION_AUTO && map.size >= STK_FRAME && stk_frame_head_fits(map.data))
        packing = STK_COMPRESSION_NONE;
    return stk_window_open(&r->window, r->path, map, mapped, packing, err);
}

static stk_status open_over(const char *name, stk_map map, bool mapped,
                            const stk_record_options *options, stk_record_reader **out,
                            stk_error *err)
{
    stk_record_reader *r = stk_calloc(1, sizeof *r);
    stk_status status = r ? STK_OK : stk_fail_memory(err, name, sizeof *r);
    if (r) {
        r->options = options ? *options : stk_record_options_defaults();
        r->from_memory = !mapped;
        status = set_up(r, name, map, mapped, err);
    }
    if (status != STK_OK) {
        stk_records_close(r);
        return status;
    }
    *out = r;
    return STK_OK;
}

stk_status stk_records_open(const char *path, const stk_record_options *options,
                            stk_record_reader **out, stk_error *err)
{
    *out = NULL;
    stk_map map;
    STK_TRY(stk_map_open(path, true, &map, err));
    stk_status status = open_over(path, map, true, options, out, err);
    if (status != STK_OK) stk_map_close(&map);
    return status;
}

stk_status stk_records_open_memory(const char *name, const void *data, size_t size,
                                   const stk_record_options *options, stk_record_reader **out,
                                   stk_error *err)
{
    *out = NULL;
    static const uint8_t nothing[1];
    if (!name || (!data && size))
        return stk_fail(err, STK_ERR_ARGUMENT, "records: name or data is NULL");
    return open_over(name, (stk_map){.data = data ? data : nothing, .size = size}, false, options,
                     out, err);
}

void stk_records_close(stk_record_reader *r)
{
    if (!r) return;
    stk_window_close(&r->window);
    stk_free(r->index.offset);
    stk_free(r->quarantine);
    stk_free(r->path);
    stk_free(r);
}

/* ---- one record --------------------------------------------------------------------------------- */

/* Bytes from the window's start to the next head that fits, at least `from`; all there is when there
 * is none. What a compressed file holds does not fit into memory: its damage is stepped over in pieces. */
static stk_status find_head(stk_window *w, size_t from, damage *d, stk_error *err)
{
    enum { STEP = 64 << 10, PIECE = 32 << 20 };
    for (size_t i = from;; i++) {
        d->lost = i;
        d->goes_on = w->packed && i >= PIECE;
        if (d->goes_on) return STK_OK;
        if (w->have < i + STK_FRAME) {
            STK_TRY(stk_window_fill(w, i + STEP, err));
            if (w->have < i + STK_FRAME) break;
        }
        if (!stk_frame_head_fits(w->at + i)) continue;
        /* The end of a plain file is known: a length beyond it is chance, not a record. */
        if (w->packed || stk_little64(w->at + i) <= w->have - i - STK_FRAME) return STK_OK;
    }
    d->lost = w->have;
    return STK_OK;
}

/* Whether something that can follow a record stands at `at`: another head, or the end. */
static bool follows(const stk_window *w, size_t at)
{
    if (w->have == at) return true;
    return w->have >= at + STK_FRAME_HEAD && stk_frame_head_fits(w->at + at);
}

/* Messages of protobuf end at 2 GiB. A compressed record is held in memory, so it must not take all of that either. */
static uint64_t most_bytes(void)
{
    uint64_t share = (uint64_t)stk_memory_limit("") / 4;
    return share < INT32_MAX ? share : INT32_MAX;
}

/* Looks at the record at the window. STK_OK with *size; ERR_FORMAT with *d filled. */
static stk_status look(stk_record_reader *r, size_t *size, damage *d, stk_error *err)
{
    stk_window *w = &r->window;
    if (w->have < STK_FRAME) {
        snprintf(d->reason, sizeof d->reason,
                 "%zu bytes are left, too few for a record (the file is cut short)%s%s", w->have,
                 w->damage[0] ? "; " : "", w->damage);
        d->lost = w->have;
        return STK_ERR_FORMAT;
    }
    if (!stk_frame_head_fits(w->at)) {
        snprintf(d->reason, sizeof d->reason,
                 "the checksum of the length does not fit: %08x stored, %08x computed",
                 stk_little32(w->at + 8), stk_crc32c_mask(stk_crc32c(0, w->at, 8)));
        STK_TRY(find_head(w, 1, d, err));
        return STK_ERR_FORMAT;
    }
    uint64_t length = stk_little64(w->at),
             most = w->packed && length >= 1u << 26 ? most_bytes() : UINT64_MAX;
    if (length > most) {
        snprintf(
            d->reason, sizeof d->reason,
            "the record claims %llu bytes; of a compressed file, records of up to %llu are read",
            (unsigned long long)length, (unsigned long long)most);
        STK_TRY(find_head(w, 1, d, err));
        return STK_ERR_FORMAT;
    }
    if (length <= SIZE_MAX - STK_FRAME - STK_FRAME_HEAD)
        STK_TRY(stk_window_fill(w, (size_t)length + STK_FRAME + STK_FRAME_HEAD, err));
    if (length > w->have - STK_FRAME) {
        snprintf(d->reason, sizeof d->reason,
                 "the record has %llu bytes, but the file ends after %zu of them%s%s",
                 (unsigned long long)length, w->have - STK_FRAME_HEAD, w->damage[0] ? "; " : "",
                 w->damage);
        STK_TRY(find_head(w, 1, d, err));
        return STK_ERR_FORMAT;
    }
    *size = (size_t)length;
    if (!r->options.verify) return STK_OK;
    uint32_t sum = stk_crc32c_mask(stk_crc32c(0, w->at + STK_FRAME_HEAD, *size));
    uint32_t stored = stk_little32(w->at + STK_FRAME_HEAD + *size);
    if (sum == stored) return STK_OK;
    snprintf(d->reason, sizeof d->reason,
             "the checksum of the data (%zu bytes) does not fit: %08x stored, %08x computed", *size,
             stored, sum);
    d->lost = *size + STK_FRAME;
    /* Bytes were lost or inserted: the length does not lead to the next record. */
    if (!follows(w, d->lost)) STK_TRY(find_head(w, STK_FRAME_HEAD, d, err));
    return STK_ERR_FORMAT;
}

static stk_status append_quarantine(const stk_record_reader *r, size_t size, stk_error *err)
{
    int fd = open(r->quarantine, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const uint8_t *at = r->window.at;
    bool good = fd >= 0;
    while (good && size > 0) {
        ssize_t put = write(fd, at, size);
        if (put < 0 && errno == EINTR) continue;
        good = put > 0;
        if (good) at += put, size -= (size_t)put;
    }
    int reason = errno;
    if (fd >= 0 && close(fd) != 0) good = false;
    if (good) return STK_OK;
    return stk_fail(err, STK_ERR_IO, "%s: cannot append a damaged record: %s", r->quarantine,
                    strerror(reason));
}

/* Counts a damaged place and steps over it. */
static stk_status step_over(stk_record_reader *r, const damage *d, stk_error *err)
{
    stk_window *w = &r->window;
    size_t lost = d->lost < w->have ? d->lost : w->have;
    r->stats.bad += !r->inside;
    r->stats.skipped_bytes += (int64_t)lost;
    if (!r->inside)
        snprintf(r->stats.last_reason, sizeof r->stats.last_reason, "byte %lld: %s",
                 (long long)w->offset, d->reason);
    r->inside = d->goes_on;
    stk_status status = STK_OK;
    if (r->options.policy == STK_BAD_QUARANTINE) status = append_quarantine(r, lost, err);
    int64_t at = w->offset;
    stk_window_skip(w, lost);
    if (status == STK_OK && r->options.policy == STK_BAD_STOP)
        status =
            stk_fail(err, STK_ERR_FORMAT,
                     "%s: record at byte %lld: %s; read with the skip policy, or keep the good "
                     "records with `stoker data repair`",
                     r->path, (long long)at, d->reason);
    return status;
}

stk_status stk_records_next(stk_record_reader *r, stk_string *record, bool *end, stk_error *err)
{
    stk_window *w = &r->window;
    stk_window_skip(w, r->pending);
    r->pending = 0;
    for (;;) {
        STK_TRY(stk_window_fill(w, STK_FRAME, err));
        *end = w->have == 0 && !w->damage[0];
        if (*end) return STK_OK;
        damage d = {0};
        size_t size = 0;
        stk_error inner = {.code = STK_OK};
        stk_status status = look(r, &size, &d, &inner);
        STK_TRY(stk_map_check(&w->map, err));
        if (status == STK_OK) {
            r->inside = false;
            r->offset = w->offset;
            r->pending = size + STK_FRAME;
            r->stats.records++;
            r->stats.bytes += (int64_t)size;
            *record = (stk_string){(const char *)w->at + STK_FRAME_HEAD, (int64_t)size};
            return STK_OK;
        }
        if (status != STK_ERR_FORMAT) return stk_fail(err, status, "%s", inner.message);
        bool last = d.lost >= w->have;
        status = step_over(r, &d, err);
        if (last) w->damage[0] = 0; /* said once */
        STK_TRY(status);
    }
}

uint32_t stk_record_checksum(const void *data, size_t size)
{
    return stk_crc32c_mask(stk_crc32c(0, data, size));
}

int64_t stk_records_offset(const stk_record_reader *r) { return r->offset; }
stk_record_stats stk_records_stats(const stk_record_reader *r) { return r->stats; }

stk_status stk_records_seek(stk_record_reader *r, int64_t offset, stk_error *err)
{
    stk_window *w = &r->window;
    r->pending = 0;
    if (!w->packed) {
        if (offset < 0 || (uint64_t)offset > w->map.size)
            return stk_fail(err, STK_ERR_RANGE, "%s: has %zu bytes, cannot go to byte %lld",
                            r->path, w->map.size, (long long)offset);
        w->at = w->map.data + offset;
        w->have = w->map.size - (size_t)offset;
        w->offset = offset;
        return STK_OK;
    }
    if (offset < w->offset)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: is compressed and already at byte %lld, cannot go back to %lld; open "
                        "it again",
                        r->path, (long long)w->offset, (long long)offset);
    while (w->offset < offset) {
        int64_t step = stk_min_i64(offset - w->offset, 64 << 10);
        STK_TRY(stk_window_fill(w, (size_t)step, err));
        if (w->have == 0)
            return stk_fail(err, STK_ERR_RANGE, "%s: ends at byte %lld, cannot go to byte %lld",
                            r->path, (long long)w->offset, (long long)offset);
        stk_window_skip(w, (size_t)stk_min_i64(step, (int64_t)w->have));
    }
    return STK_OK;
}

/* ---- by number ---------------------------------------------------------------------------------- */

static stk_status need_index(stk_record_reader *r, stk_error *err)
{
    if (r->indexed) return STK_OK;
    const stk_window *w = &r->window;
    if (w->packed)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: is compressed, so its records cannot be reached by number; read them "
                        "in order, or convert the file with `stoker data convert`",
                        r->path);
    STK_TRY(stk_record_index_get(r->from_memory ? NULL : r->path, w->map.data, w->map.size,
                                 w->map.changed_ns, r->options.index_beside, &r->index, err));
    r->indexed = true;
    return STK_OK;
}

stk_status stk_records_count(stk_record_reader *r, int64_t *count, stk_error *err)
{
    stk_status status = need_index(r, err);
    if (status != STK_OK) return stk_fail_in(err, status, "%s", r->path);
    *count = r->index.count;
    return STK_OK;
}

stk_status stk_records_at(stk_record_reader *r, int64_t index, stk_string *record, stk_error *err)
{
    stk_status status = need_index(r, err);
    if (status != STK_OK) return stk_fail_in(err, status, "%s", r->path);
    if (index < 0 || index >= r->index.count)
        return stk_fail(err, STK_ERR_RANGE, "%s: has %lld records, there is no record %lld",
                        r->path, (long long)r->index.count, (long long)index);
    const stk_map *map = &r->window.map;
    size_t offset = (size_t)r->index.offset[index];
    const uint8_t *at = map->data + offset;
    /* A stored index may be of another file with the same size and time. */
    uint64_t length = stk_little64(at);
    STK_TRY(stk_map_check(map, err));
    if (!stk_frame_head_fits(at) || length > map->size - offset - STK_FRAME)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: record %lld at byte %zu: its length is damaged; keep the good records "
                        "with `stoker data repair`",
                        r->path, (long long)index, offset);
    uint32_t stored = stk_little32(at + STK_FRAME_HEAD + length);
    STK_TRY(stk_map_check(map, err));
    if (r->options.verify &&
        stk_crc32c_mask(stk_crc32c(0, at + STK_FRAME_HEAD, (size_t)length)) != stored)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: record %lld at byte %zu: the checksum of the data does not fit; keep "
                        "the good records with `stoker data repair`",
                        r->path, (long long)index, offset);
    *record = (stk_string){(const char *)at + STK_FRAME_HEAD, (int64_t)length};
    return STK_OK;
}
