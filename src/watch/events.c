/* events.c - TensorBoard event files: TFRecord frames around Event messages, written by hand.
 *
 *     frame    0  length of the message, 8 bytes little-endian      Event    1  wall_time, double
 *              8  masked CRC32C of those 8 bytes                             2  step, varint
 *             12  message                                                    3  file_version, "brain.Event:2"
 *           12+n  masked CRC32C of the message                               5  summary
 *
 *     Summary  1  value, repeated        Value  1  tag        2  simple_value, float */
#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "watch/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WIRE_VARINT = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5, MOST_TAG = 512 };

typedef struct message {
    unsigned char data[2 * MOST_TAG];
    size_t size;
} message;

static void put_varint(message *m, uint64_t v)
{
    for (; v >= 128; v >>= 7) m->data[m->size++] = (unsigned char)(v | 128);
    m->data[m->size++] = (unsigned char)v;
}
static void put_key(message *m, unsigned field, unsigned wire) { put_varint(m, field << 3 | wire); }
static void put_little(message *m, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) m->data[m->size++] = (unsigned char)(v >> 8 * i);
}
static void put_bytes(message *m, unsigned field, const void *data, size_t size)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, size);
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void put_frame(stk_text *t, const message *body)
{
    message m = {0};
    put_little(&m, body->size, 8);
    put_little(&m, stk_crc32c_mask(stk_crc32c(0, m.data, 8)), 4);
    stk_text_add(t, m.data, m.size);
    stk_text_add(t, body->data, body->size);
    m.size = 0;
    put_little(&m, stk_crc32c_mask(stk_crc32c(0, body->data, body->size)), 4);
    stk_text_add(t, m.data, m.size);
}

static void put_wall(message *m, double wall)
{
    uint64_t bits;
    memcpy(&bits, &wall, sizeof bits);
    put_key(m, 1, WIRE_8);
    put_little(m, bits, 8);
}

static void put_version(stk_text *t, double wall)
{
    message m = {0};
    put_wall(&m, wall);
    put_bytes(&m, 3, "brain.Event:2", 13);
    put_frame(t, &m);
}

static void put_scalar(stk_text *t, double wall, int64_t step, const char *tag, double value)
{
    message one = {0}, summary = {0}, event = {0};
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    size_t length = strlen(tag);
    put_bytes(&one, 1, tag, length < MOST_TAG ? length : MOST_TAG);
    put_key(&one, 2, WIRE_4);
    put_little(&one, bits, 4);
    put_bytes(&summary, 1, one.data, one.size);
    put_wall(&event, wall);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.data, summary.size);
    put_frame(t, &event);
}

/* ---- a report as scalars ------------------------------------------------------------------------------------------ */

void stk_report_put_events(const stk_report *r, stk_text *t)
{
    double wall = (double)r->created;
    char tag[96];
    put_version(t, wall);
    for (int64_t i = 0; i < r->nsteps; i++)
        put_scalar(t, wall, i, "step/milliseconds", r->step_seconds[i] * 1e3);
    for (int b = 0; b < STK_BOOK_COUNT; b++) {
        snprintf(tag, sizeof tag, "books/%s ms per step", stk_book_name((stk_book)b));
        put_scalar(t, wall, 0, tag, r->book[b] * 1e3);
    }
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        snprintf(tag, sizeof tag, "phases/%s seconds", stk_phase_name((stk_phase)p));
        put_scalar(t, wall, 0, tag, r->phase_seconds[p]);
    }
    for (int64_t i = 0; i < r->ncurve; i++)
        put_scalar(t, wall, r->curve[i].batch, "batch/examples per second",
                   r->curve[i].examples_per_second);
}

/* ---- files of one's own -------------------------------------------------------------------------------------------- */

struct stk_events {
    FILE *file;
    char path[1024];
};

static stk_status make_folder(const char *folder, stk_error *err)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) return STK_OK;
    return stk_fail(err, STK_ERR_IO, "%s: %s; the folder above it must exist", folder,
                    strerror(errno));
}

static double wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* TensorBoard reads while we write: each record goes out whole, straight away. */
static stk_status write_out(stk_events *e, stk_text *t, stk_error *err)
{
    char *data = NULL;
    size_t size = 0;
    STK_TRY(stk_text_finish(t, &data, &size, err));
    bool good = fwrite(data, 1, size, e->file) == size && fflush(e->file) == 0;
    stk_free(data);
    return good ? STK_OK : stk_fail(err, STK_ERR_IO, "%s: %s", e->path, strerror(errno));
}

stk_status stk_events_new(const char *folder, stk_events **out, stk_error *err)
{
    char host[128] = "host";
    if (!folder || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_events_new: folder and out must be given");
    *out = NULL;
    STK_TRY(make_folder(folder, err));
    stk_events *e = stk_calloc(1, sizeof *e);
    if (!e) return stk_fail_memory(err, "an event file", sizeof *e);
    (void)gethostname(host, sizeof host - 1);
    snprintf(e->path, sizeof e->path, "%s/events.out.tfevents.%lld.%s.%d", folder,
             (long long)time(NULL), host, (int)getpid());
    e->file = fopen(e->path, "ab");
    if (!e->file) {
        stk_status status = stk_fail(err, STK_ERR_IO, "%s: %s", e->path, strerror(errno));
        stk_free(e);
        return status;
    }
    stk_text t = {0};
    put_version(&t, wall_now());
    stk_status status = write_out(e, &t, err);
    if (status == STK_OK) {
        *out = e;
        return STK_OK;
    }
    fclose(e->file);
    stk_free(e);
    return status;
}

stk_status stk_events_scalar(stk_events *e, const char *tag, int64_t step, double value,
                             stk_error *err)
{
    if (!e || !tag)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_events_scalar: events and tag must be given");
    stk_text t = {0};
    put_scalar(&t, wall_now(), step, tag, value);
    return write_out(e, &t, err);
}

const char *stk_events_path(const stk_events *e) { return e ? e->path : ""; }

stk_status stk_events_close(stk_events *e, stk_error *err)
{
    if (!e) return STK_OK;
    bool good = fclose(e->file) == 0;
    stk_status status =
        good ? STK_OK : stk_fail(err, STK_ERR_IO, "%s: %s", e->path, strerror(errno));
    stk_free(e);
    return status;
}
