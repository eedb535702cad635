/* memory.h - the only door to the heap: hook, fault injection, checked sizes, arenas. */
#ifndef STK_BASE_MEMORY_H
#define STK_BASE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { STK_ALIGN = 64 }; /* one cache line, one AVX-512 register */

/* 64-byte aligned; NULL on failure (also on size 0 overflow tricks); size 0 gives a valid pointer.
 */
void *stk_malloc(size_t size);
void *stk_calloc(size_t count, size_t size);                    /* checked product, zeroed */
void *stk_realloc(void *old, size_t old_size, size_t new_size); /* old stays valid on failure */
void stk_free(void *memory);                                    /* NULL is fine */
char *stk_strdup(const char *text);
char *stk_strndup(const char *text, size_t length);

/* Large zero-filled blocks on huge pages where the system gives them (fresh 4 KiB pages cost 1.5 us
 * each, more than the arithmetic on them). Freed with stk_free_pages and the same size. */
void *stk_alloc_pages(size_t size);
void stk_free_pages(void *memory, size_t size);

/* Tests: the n-th allocation from now (1 = next) fails, and every later one too when `all`.
 * n = 0 switches it off. The counter counts every successful or refused request since process
 * start. */
void stk_alloc_fail_at(int64_t n, bool all);
int64_t stk_alloc_count(void);
int64_t stk_alloc_live(void); /* blocks handed out and not yet freed */

/* Checked arithmetic for sizes: false on overflow, *out untouched then. */
static inline bool stk_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool stk_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool stk_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline int64_t stk_round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}
static inline int64_t stk_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t stk_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t stk_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Arena: many small allocations, one release. Not thread-safe; zero-initialise it to make it valid.
 *
 *     chunk -> [header | block | block | ... | free]      newest chunk first
 */
typedef struct stk_arena {
    struct stk_arena_chunk *chunks;
    size_t used; /* bytes handed out, for reports */
} stk_arena;

void *stk_arena_alloc(stk_arena *arena, size_t size); /* zeroed, 16-byte aligned; NULL on failure */
void *stk_arena_array(stk_arena *arena, size_t count, size_t size);
void *stk_arena_copy(stk_arena *arena, const void *data, size_t size);
char *stk_arena_strdup(stk_arena *arena, const char *text);
void stk_arena_release(stk_arena *arena); /* back to the zero state; may be used again */

/* Growable array helper: makes room for one more element in `*items` (capacity doubled when full).
 *     if (!STK_GROW(list->items, list->count, list->capacity)) return stk_fail_memory(...);
 *     list->items[list->count++] = x; */
bool stk_grow(void **items, int64_t count, int64_t *capacity, size_t item_size);
#define STK_GROW(items, count, capacity)                                                           \
    stk_grow((void **)&(items), (count), &(capacity), sizeof *(items))

#endif
