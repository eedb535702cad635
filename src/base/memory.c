/* The heap behind the hook. Counters are relaxed atomics: they are for tests and reports. */
#define _GNU_SOURCE
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *system_alloc(void *context, size_t align, size_t size)
{
    (void)context;
    void *memory = NULL;
    return posix_memalign(&memory, align, size) == 0 ? memory : NULL;
}

static void system_free(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static stk_allocator hook = {system_alloc, system_free, NULL};
static atomic_int_fast64_t alloc_count, alloc_live, fail_at;
static atomic_bool fail_all;

void stk_set_allocator(const stk_allocator *allocator)
{
    hook = allocator ? *allocator : (stk_allocator){system_alloc, system_free, NULL};
}

void stk_alloc_fail_at(int64_t n, bool all)
{
    atomic_store(&fail_all, all);
    atomic_store(&fail_at, n > 0 ? atomic_load(&alloc_count) + n : 0);
}

int64_t stk_alloc_count(void) { return atomic_load(&alloc_count); }
int64_t stk_alloc_live(void) { return atomic_load(&alloc_live); }

/* Counts the request; true when a test wants it refused. */
static bool refuse_this_one(void)
{
    int64_t now = atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed) + 1;
    int64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at != 0 && (now == at || (now > at && atomic_load(&fail_all)));
}

void *stk_malloc(size_t size)
{
    if (refuse_this_one() || size > PTRDIFF_MAX) return NULL;
    void *memory = hook.alloc(hook.context, STK_ALIGN, size ? size : 1);
    if (memory) atomic_fetch_add_explicit(&alloc_live, 1, memory_order_relaxed);
    return memory;
}

void *stk_calloc(size_t count, size_t size)
{
    size_t total;
    if (!stk_mul_size(count, size, &total)) return NULL;
    void *memory = stk_malloc(total);
    if (memory) memset(memory, 0, total);
    return memory;
}

void *stk_realloc(void *old, size_t old_size, size_t new_size)
{
    void *memory = stk_malloc(new_size);
    if (!memory) return NULL;
    if (old) memcpy(memory, old, old_size < new_size ? old_size : new_size);
    stk_free(old);
    return memory;
}

void stk_free(void *memory)
{
    if (!memory) return;
    atomic_fetch_sub_explicit(&alloc_live, 1, memory_order_relaxed);
    hook.free(hook.context, memory);
}

char *stk_strndup(const char *text, size_t length)
{
    char *copy = stk_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *stk_strdup(const char *text) { return stk_strndup(text, strlen(text)); }

/* ---- large blocks ------------------------------------------------------------------------- */

enum { HUGE_PAGE = 2 << 20 };

void *stk_alloc_pages(size_t size)
{
    if (size < HUGE_PAGE) return stk_calloc(1, size);
    if (refuse_this_one() || size > PTRDIFF_MAX - 2 * (size_t)HUGE_PAGE) return NULL;
    /* Map one huge page more than asked and cut the ends off, so that the block starts on one. */
    size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *raw =
        mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    size_t skip = (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    if (skip) munmap(raw, skip);
    if (skip != HUGE_PAGE) munmap(raw + skip + whole, HUGE_PAGE - skip);
    madvise(raw + skip, whole, MADV_HUGEPAGE); /* a wish: failure only costs speed */
    atomic_fetch_add_explicit(&alloc_live, 1, memory_order_relaxed);
    return raw + skip;
}

void stk_free_pages(void *memory, size_t size)
{
    if (!memory) return;
    if (size < HUGE_PAGE) {
        stk_free(memory);
        return;
    }
    atomic_fetch_sub_explicit(&alloc_live, 1, memory_order_relaxed);
    munmap(memory, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
}

/* ---- arena -------------------------------------------------------------------------------- */

struct stk_arena_chunk {
    struct stk_arena_chunk *next;
    size_t used, size; /* bytes after this header */
};

enum { CHUNK_HEAD = (sizeof(struct stk_arena_chunk) + 15) / 16 * 16, CHUNK_MIN = 16 << 10 };

void *stk_arena_alloc(stk_arena *arena, size_t size)
{
    if (size > PTRDIFF_MAX - 4096) return NULL;
    size = (size + 15) / 16 * 16;
    struct stk_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_MIN ? size : CHUNK_MIN;
        chunk = stk_malloc(CHUNK_HEAD + room);
        if (!chunk) return NULL;
        *chunk = (struct stk_arena_chunk){arena->chunks, 0, room};
        arena->chunks = chunk;
    }
    char *block = (char *)chunk + CHUNK_HEAD + chunk->used;
    chunk->used += size;
    arena->used += size;
    return memset(block, 0, size);
}

void *stk_arena_array(stk_arena *arena, size_t count, size_t size)
{
    size_t total;
    return stk_mul_size(count, size, &total) ? stk_arena_alloc(arena, total) : NULL;
}

void *stk_arena_copy(stk_arena *arena, const void *data, size_t size)
{
    void *copy = stk_arena_alloc(arena, size);
    if (copy && size) memcpy(copy, data, size);
    return copy;
}

char *stk_arena_strdup(stk_arena *arena, const char *text)
{
    return stk_arena_copy(arena, text, strlen(text) + 1);
}

void stk_arena_release(stk_arena *arena)
{
    while (arena->chunks) {
        struct stk_arena_chunk *next = arena->chunks->next;
        stk_free(arena->chunks);
        arena->chunks = next;
    }
    arena->used = 0;
}

bool stk_grow(void **items, int64_t count, int64_t *capacity, size_t item_size)
{
    if (count < *capacity) return true;
    int64_t wanted = *capacity ? *capacity * 2 : 16;
    size_t bytes;
    if (!stk_mul_size((size_t)wanted, item_size, &bytes)) return false;
    void *grown = stk_realloc(*items, (size_t)count * item_size, bytes);
    if (!grown) return false;
    *items = grown;
    *capacity = wanted;
    return true;
}
