/* status.h - the one shape of failure.
 *
 * Every call that can fail returns a stk_status and, when the caller gives a stk_error, writes one
 * message into it: what was wrong, where, what would fit, what to do next. The library never
 * prints, aborts or exits.
 *
 *     stk_error err;
 *     stk_tensor *t = NULL;
 *     if (stk_tensor_new(STK_F32, 2, (int64_t[]){3, 4}, &t, &err) != STK_OK)
 *         fprintf(stderr, "%s: %s\n", stk_status_name(err.code), err.message);
 *     stk_tensor_release(t);
 *
 * `stk_error *` arguments may be NULL when the text is not wanted. */
#ifndef STOKER_STATUS_H
#define STOKER_STATUS_H

#include <stddef.h>

#if defined(__GNUC__)
#define STK_API                __attribute__((visibility("default")))
#define STK_MUST_USE           __attribute__((warn_unused_result))
#define STK_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define STK_API
#define STK_MUST_USE
#define STK_PRINTF(fmt, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_status {
#define STK_STATUS(name, number, text) STK_##name = number,
#include "status.def"
} stk_status;

enum { STK_ERROR_TEXT = 1024 };

/* Owned by the caller; overwritten by each failing call, untouched by a successful one. */
typedef struct stk_error {
    stk_status code;
    char message[STK_ERROR_TEXT];
} stk_error;

/* "shapes do not fit" for STK_ERR_SHAPE; never NULL. */
STK_API const char *stk_status_name(stk_status status);

/* Memory hook, process-wide. Set it before the first other call, or not at all: memory that the old
 * hook handed out is given back to the new one otherwise. NULL restores the default. */
typedef struct stk_allocator {
    void *(*alloc)(void *context, size_t align, size_t size); /* NULL on failure, never aborts */
    void (*free)(void *context, void *memory);                /* never called with NULL */
    void *context;
} stk_allocator;
STK_API void stk_set_allocator(const stk_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
