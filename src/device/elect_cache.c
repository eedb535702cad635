/* The election file. Any doubt about it means starting afresh: it only saves time. */
#define _GNU_SOURCE
#include "device/elect_cache.h"

#include "base/cache_path.h"
#include "base/file.h"
#include "base/memory.h"
#include "stoker/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_LENGTH = 32, MOST_LINES = 100000 };

typedef struct entry {
    uint64_t key;
    char kernel[NAME_MAX_LENGTH], name[NAME_MAX_LENGTH];
} entry;

struct stk_elect_cache {
    char path[1024], machine[256];
    entry *entries;
    int64_t count, capacity;
    bool dirty;
};

static uint64_t fnv(const void *data, size_t size, uint64_t h)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

uint64_t stk_elect_key(int32_t kernel, const void *params, int64_t size, int32_t threads)
{
    uint64_t h = fnv(stk_kernel_name((stk_kernel)kernel),
                     strlen(stk_kernel_name((stk_kernel)kernel)), 0xcbf29ce484222325ull);
    h = fnv(&threads, sizeof threads, h);
    return fnv(params, (size_t)size, h);
}

static uint32_t check_of(const entry *e)
{
    uint64_t h = fnv(&e->key, sizeof e->key, 0x5bd1e995u);
    h = fnv(e->kernel, strlen(e->kernel), h);
    return (uint32_t)fnv(e->name, strlen(e->name), h);
}

static void read_file(stk_elect_cache *c)
{
    enum { MOST_BYTES = 16 << 20 };
    char first[300], *text = NULL, *rest = NULL;
    size_t size = 0;
    if (stk_file_read(c->path, MOST_BYTES, &text, &size, NULL) != STK_OK) return;
    snprintf(first, sizeof first, "stoker-kernels 1 %s", c->machine);
    char *line = strtok_r(text, "\n", &rest);
    bool ours = line && !strcmp(line, first);
    while (ours && c->count < MOST_LINES && (line = strtok_r(NULL, "\n", &rest))) {
        entry e = {0};
        unsigned long long key;
        unsigned check;
        if (sscanf(line, "%16llx %31s %31s %8x", &key, e.kernel, e.name, &check) != 4) continue;
        e.key = key;
        if (check != check_of(&e) || !STK_GROW(c->entries, c->count, c->capacity)) continue;
        c->entries[c->count++] = e;
    }
    stk_free(text);
}

stk_elect_cache *stk_elect_cache_open(const char *file, const char *machine)
{
    stk_elect_cache *c = stk_calloc(1, sizeof *c);
    if (!c) return NULL;
    snprintf(c->machine, sizeof c->machine, "%s %s", STK_VERSION, machine);
    for (char *p = c->machine; *p; p++)
        if (*p == '\n') *p = ' ';
    if (!stk_cache_path(file, c->path, sizeof c->path)) {
        stk_free(c);
        return NULL;
    }
    read_file(c);
    return c;
}

static void put_entries(void *context, FILE *f)
{
    const stk_elect_cache *c = context;
    fprintf(f, "stoker-kernels 1 %s\n", c->machine);
    for (int64_t i = 0; i < c->count; i++) {
        const entry *e = &c->entries[i];
        fprintf(f, "%016llx %s %s %08x\n", (unsigned long long)e->key, e->kernel, e->name,
                check_of(e));
    }
}

/* Only over a file, or where nothing is: a pipe of that name would wait for a reader. */
static void write_file(stk_elect_cache *c)
{
    struct stat info;
    if (stat(c->path, &info) == 0 && !S_ISREG(info.st_mode)) return;
    if (stk_file_save(c->path, put_entries, c, NULL) != STK_OK) return; /* it only saves time */
}

void stk_elect_cache_close(stk_elect_cache *c)
{
    if (!c) return;
    if (c->dirty) write_file(c);
    stk_free(c->entries);
    stk_free(c);
}

const char *stk_elect_cache_find(const stk_elect_cache *c, uint64_t key)
{
    for (int64_t i = c ? c->count - 1 : -1; i >= 0; i--)
        if (c->entries[i].key == key) return c->entries[i].name;
    return NULL;
}

void stk_elect_cache_add(stk_elect_cache *c, uint64_t key, stk_kernel kernel, const char *name)
{
    if (!c || !STK_GROW(c->entries, c->count, c->capacity)) return;
    entry e = {.key = key};
    snprintf(e.kernel, sizeof e.kernel, "%s", stk_kernel_name(kernel));
    snprintf(e.name, sizeof e.name, "%s", name);
    c->entries[c->count++] = e;
    c->dirty = true;
}
