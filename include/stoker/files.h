/* files.h - a file written as the library writes all of its own: whole or not at all.
 *
 *     stk_error err;
 *     if (stk_text_save("loss.json", "{\"loss\": 0.25}\n", &err) != STK_OK) puts(err.message);
 *
 * A plain file is replaced at the end, at once; a link stays, and what it leads to is replaced; a device or a pipe is
 * written through. */
#ifndef STOKER_FILES_H
#define STOKER_FILES_H

#include <stdio.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

STK_API STK_MUST_USE stk_status stk_text_save(const char *path, const char *text, stk_error *err);
/* What `put` prints. */
STK_API STK_MUST_USE stk_status stk_file_save(const char *path,
                                              void (*put)(void *context, FILE *to), void *context,
                                              stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
