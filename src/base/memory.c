/* The heap behind the hook, with small blocks kept per thread; pages, arenas, growing arrays. */
#define _GNU_SOURCE
#include "base/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
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

static const stk_allocator system_hook = {system_alloc, system_free, NULL};
static stk_allocator hook = {system_alloc, system_free, NULL};
static bool hooked; /* somebody else's allocator: nothing of it is kept back */

/* ---- counting and keeping ------------------------------------------------------------------ */

/* Small blocks that a thread gives back are kept in lists of its own, by size, and handed out again
 * without a lock: a small tensor lives for microseconds, and the system's aligned allocation costs
 * more than the arithmetic on it. Sizes are multiples of 64 up to 2 KiB, 16 KiB are kept of each.
 * Under a sanitizer nothing is kept, so that it sees every use after free.
 *
 * Counts are kept per thread as well and summed when somebody asks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEP_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define KEEP_BLOCKS 0
#endif
#endif
#ifndef KEEP_BLOCKS
#define KEEP_BLOCKS 1
#endif

enum { CLASSES = 32, KEPT_BYTES = 16 << 10 };

typedef struct kept {
    struct kept *next;
} kept;

typedef struct shelf {
    kept *list[CLASSES]; /* [k]: blocks of (k + 1) * 64 bytes */
    int32_t count[CLASSES];
} shelf;

/* The lists are not in here: what a library has of these variables in all comes from a space of
 * about 1600 bytes that every library loaded later shares, and others refuse to load without room. */
typedef struct thread_heap {
    int64_t requests, live; /* written by the thread alone, read by all: relaxed */
    shelf *shelf;           /* NULL: there was no memory for it, nothing is kept */
    bool registered;
    struct thread_heap *next, **link; /* under `heaps_lock` */
} thread_heap;

static __thread __attribute__((tls_model("initial-exec"))) thread_heap local;
static pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER;
static thread_heap *heaps;
static int64_t ended_requests, ended_live; /* of threads that are gone */
static pthread_key_t heap_key;
static pthread_once_t heap_once = PTHREAD_ONCE_INIT;

static int64_t failing;     /* 0 no, 1 once, 2 from then on; relaxed */
static int64_t until_fails; /* atomic: requests left before the first refusal */

#define BUMP(counter, by)                                                                          \
    __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + (by),             \
                     __ATOMIC_RELAXED)

static void release_shelf(shelf *old)
{
    for (int k = 0; old && k < CLASSES; k++) {
        while (old->list[k]) {
            kept *block = old->list[k];
            old->list[k] = block->next;
            free(block); /* check: allow heap, this is where it begins */
        }
    }
    free(old); /* check: allow heap, as above */
}

/* At the end of a thread. Later destructors may allocate again; then it simply registers anew. */
static void end_thread(void *value)
{
    thread_heap *heap = value;
    release_shelf(heap->shelf);
    pthread_mutex_lock(&heaps_lock);
    ended_requests += heap->requests;
    ended_live += heap->live;
    *heap->link = heap->next;
    if (heap->next) heap->next->link = heap->link;
    pthread_mutex_unlock(&heaps_lock);
    *heap = (thread_heap){0};
}

static void make_heap_key(void) { pthread_key_create(&heap_key, end_thread); }

static void register_thread(void)
{
    pthread_once(&heap_once, make_heap_key);
    pthread_setspecific(heap_key, &local);
    if (KEEP_BLOCKS) local.shelf = calloc(1, sizeof *local.shelf); /* check: allow heap, as above */
    pthread_mutex_lock(&heaps_lock);
    local.next = heaps;
    local.link = &heaps;
    if (heaps) heaps->link = &local.next;
    heaps = &local;
    local.registered = true;
    pthread_mutex_unlock(&heaps_lock);
}

static int64_t sum(const int64_t *ended, size_t field)
{
    pthread_mutex_lock(&heaps_lock);
    int64_t total = *ended;
    for (const thread_heap *heap = heaps; heap; heap = heap->next)
        total += __atomic_load_n((const int64_t *)(const void *)((const char *)heap + field),
                                 __ATOMIC_RELAXED);
    pthread_mutex_unlock(&heaps_lock);
    return total;
}

int64_t stk_alloc_count(void) { return sum(&ended_requests, offsetof(thread_heap, requests)); }
int64_t stk_alloc_live(void) { return sum(&ended_live, offsetof(thread_heap, live)); }

void stk_set_allocator(const stk_allocator *allocator)
{
    hook = allocator ? *allocator : system_hook;
    hooked = allocator != NULL;
}

void stk_alloc_fail_at(int64_t n, bool all)
{
    __atomic_store_n(&failing, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&until_fails, n, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failing, n <= 0 ? 0 : all ? 2 : 1, __ATOMIC_SEQ_CST);
}

static bool refuse_armed(int64_t mode)
{
    int64_t left = __atomic_sub_fetch(&until_fails, 1, __ATOMIC_SEQ_CST);
    return left == 0 || (left < 0 && mode == 2);
}

/* Counts the request; true when a test wants it refused. */
static bool refuse_this_one(void)
{
    if (!local.registered) register_thread();
    BUMP(local.requests, 1);
    int64_t mode = __atomic_load_n(&failing, __ATOMIC_RELAXED);
    return __builtin_expect(mode != 0, 0) && refuse_armed(mode);
}

static void count_live(int64_t by)
{
    if (!local.registered) register_thread();
    BUMP(local.live, by);
}

void *stk_malloc(size_t size)
{
    if (refuse_this_one() || size > PTRDIFF_MAX - STK_ALIGN) return NULL;
    size_t class = size ? (size - 1) / STK_ALIGN : 0;
    void *memory;
    if (KEEP_BLOCKS && class < CLASSES && !hooked) {
        shelf *mine = local.shelf;
        kept *block = mine ? mine->list[class] : NULL;
        if (block) {
            mine->list[class] = block->next;
            mine->count[class]--;
            memory = block;
        } else {
            memory = system_alloc(NULL, STK_ALIGN, (class + 1) * STK_ALIGN);
        }
    } else {
        memory = hook.alloc(hook.context, STK_ALIGN, size ? size : 1);
    }
    if (memory) BUMP(local.live, 1);
    return memory;
}

void stk_free(void *memory)
{
    if (!memory) return;
    count_live(-1);
    shelf *mine = local.shelf;
    if (KEEP_BLOCKS && mine && !hooked) {
        /* The system may have given a little more than the class asked for, never less. */
        size_t class = malloc_usable_size(memory) / STK_ALIGN - 1;
        if (class < CLASSES && (size_t)mine->count[class] < KEPT_BYTES / (class + 1) / STK_ALIGN) {
            kept *block = memory;
            block->next = mine->list[class];
            mine->list[class] = block;
            mine->count[class]++;
            return;
        }
    }
    hook.free(hook.context, memory);
}

/* ---- on top of these ------------------------------------------------------------------------ */

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
    count_live(1);
    return raw + skip;
}

void stk_free_pages(void *memory, size_t size)
{
    if (!memory) return;
    if (size < HUGE_PAGE) {
        stk_free(memory);
        return;
    }
    count_live(-1);
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
