/* Kernel text to programs. A program is built at its first use and stays; what the compiler made of it is kept on disk as well.
 *
 *     file     magic, version | hash of text | key: options, device, driver | size and checksum of the binary | binary
 *
 * The file's name is a hash of all that; what stands in its head is compared in full, so a collision is only a file that does not fit.
 * Whatever is wrong with a file (cut off, altered, of another driver, refused by it), the program is built from its text. */
#include "device/cl/cl.h"

#include "base/cache_path.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stk_cl_program {
    stk_cl_program *next;
    uint64_t hash;
    void *program;
    char options[];
};

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return stk_mix64(hash ^ size);
}

/* ---- the file -------------------------------------------------------------------------------------------- */

typedef struct head {
    char magic[8];
    uint32_t version, crc;
    uint64_t text, size; /* hash of the text; bytes of the binary */
    char key[512];       /* device, driver, options */
} head;

static const char MAGIC[8] = "STKCLBIN";
enum { VERSION = 1, MOST_BINARY = 64 << 20 };

static void fill_head(const stk_cl_device *d, uint64_t text, const char *options, head *out)
{
    *out = (head){.version = VERSION, .text = text};
    memcpy(out->magic, MAGIC, sizeof MAGIC);
    snprintf(out->key, sizeof out->key, "%s|%s", d->driver, options);
}

static bool path_of(const stk_cl_device *d, const head *h, char *path, size_t size)
{
    char name[64];
    uint64_t hash = hash_bytes(h->text, h->key, strlen(h->key));
    snprintf(name, sizeof name, "%s/%016llx.bin", d->backend->folder, (unsigned long long)hash);
    return stk_cache_path(name, path, size);
}

static void *load_binary(stk_cl_device *d, const head *want, const char *options)
{
    char path[1024], *data = NULL;
    size_t size = 0;
    if (!path_of(d, want, path, sizeof path)) return NULL;
    if (stk_file_read(path, MOST_BINARY, &data, &size, NULL) != STK_OK) return NULL;
    const head *h = (const head *)(const void *)data;
    const unsigned char *binary = (const unsigned char *)data + sizeof *h;
    void *program = NULL;
    size_t bytes = size > sizeof *h ? size - sizeof *h : 0;
    if (size > sizeof *h && !memcmp(h->magic, MAGIC, sizeof MAGIC) && h->version == VERSION &&
        h->text == want->text && !memcmp(h->key, want->key, sizeof h->key) && h->size == bytes &&
        h->crc == stk_crc32c(0, binary, bytes))
        program = d->backend->revive(d, binary, bytes, options);
    stk_free(data);
    return program;
}

/* A disk that is full or closed to us costs the time of another build, later; nothing else. */
static void save_binary(stk_cl_device *d, const head *like, void *program)
{
    char path[1024];
    head h = *like;
    stk_file_writer writer = {0};
    unsigned char *binary = NULL;
    if (!path_of(d, &h, path, sizeof path)) return;
    h.size = d->backend->binary(d, program, &binary);
    if (binary && h.size && h.size <= MOST_BINARY) {
        h.crc = stk_crc32c(0, binary, h.size);
        stk_status status = stk_file_create(path, &writer, NULL);
        writer.hasty = true;
        if (status == STK_OK) status = stk_file_write(&writer, &h, sizeof h, NULL);
        if (status == STK_OK) status = stk_file_write(&writer, binary, h.size, NULL);
        if (status == STK_OK)
            (void)!stk_file_commit(&writer, NULL);
        else
            stk_file_abandon(&writer);
    }
    stk_free(binary);
}

/* STOKER_OPENCL_LOG=FILE, STOKER_CUDA_LOG=FILE: what was built, how long it took, what the compiler said. */
static void write_log(const stk_cl_device *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_log(const stk_cl_device *d, const char *format, ...)
{
    const char *path = getenv(d->backend->log);
    FILE *file = path && *path ? fopen(path, "ae") : NULL;
    va_list list;
    if (!file) return;
    va_start(list, format);
    vfprintf(file, format, list);
    va_end(list);
    fclose(file);
}

/* ---- building -------------------------------------------------------------------------------------------- */

static stk_status build(stk_cl_device *d, const stk_cl_source *source, const char *options,
                        void **out, stk_error *err)
{
    enum { SHOWN = 300 };
    char *said = NULL;
    stk_error why = {0};
    stk_status status = d->backend->build(d, source, options, out, &said, &why);
    if (said && *said) write_log(d, "%s\n", said);
    if (status != STK_OK) {
        const char *first = said ? strstr(said, "error") : NULL;
        if (!first) first = said && *said ? said : "no reason given";
        status = stk_fail(err, status,
                          "%s: its compiler refuses %s (%s): %s: %.*s; %s=/dev/stderr shows all it "
                          "says, --device cpu does without it",
                          stk_cl_name(d), source->name, options, why.message, SHOWN, first,
                          d->backend->log);
    }
    stk_free(said);
    return status;
}

static uint64_t hash_text(const stk_cl_source *source)
{
    const stk_cl_source *dialect = stk_cl_text("dialect.h"), *params = stk_cl_text("params.h");
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, dialect->text, dialect->size);
    hash = hash_bytes(hash, params->text, params->size);
    return hash_bytes(hash, source->text, source->size);
}

static stk_status make(stk_cl_device *d, const stk_cl_source *source, uint64_t text,
                       const char *options, stk_cl_program **out, stk_error *err)
{
    char all[512];
    head h;
    d->backend->options(d, all, sizeof all - 1);
    size_t own = strlen(all);
    snprintf(all + own, sizeof all - own, " %s", options);
    fill_head(d, text, all, &h);
    size_t length = strlen(options) + 1;
    stk_cl_program *p = stk_malloc(sizeof *p + length);
    if (!p) return stk_fail_memory(err, source->name, sizeof *p);
    int64_t start = stk_now_ns(), built = d->built;
    uint64_t trace = stk_trace_start();
    *p = (stk_cl_program){.hash = text, .program = load_binary(d, &h, all)};
    memcpy(p->options, options, length);
    stk_status status = STK_OK;
    if (p->program) {
        d->found++;
    } else if ((status = build(d, source, all, &p->program, err)) == STK_OK) {
        d->built++;
        save_binary(d, &h, p->program);
    }
    stk_trace_span(trace, "kernel compile", 0);
    double ms = (double)(stk_now_ns() - start) / 1e6;
    d->build_ms += ms;
    write_log(d, "%s: %s %s in %.0f ms: %s\n", d->device.name, source->name,
              status != STK_OK   ? "refused"
              : d->built > built ? "built"
                                 : "found",
              ms, options);
    if (status == STK_OK)
        *out = p;
    else
        stk_free(p);
    return status;
}

stk_status stk_cl_program_get(stk_cl_device *d, const stk_cl_source *source, const char *options,
                              void **out, stk_error *err)
{
    uint64_t text = hash_text(source);
    stk_status status = STK_OK;
    pthread_mutex_lock(&d->lock);
    stk_cl_program *p = d->programs;
    while (p && (p->hash != text || strcmp(p->options, options))) p = p->next;
    if (!p && (status = make(d, source, text, options, &p, err)) == STK_OK) {
        p->next = d->programs;
        d->programs = p;
    }
    if (status == STK_OK) *out = p->program;
    pthread_mutex_unlock(&d->lock);
    return status;
}

void stk_cl_programs_release(stk_cl_device *d)
{
    while (d->programs) {
        stk_cl_program *p = d->programs;
        d->programs = p->next;
        d->backend->program_free(d, p->program);
        stk_free(p);
    }
}
