/* files.h - files as the library reads and writes all of its own: mapped where that is possible, whole or not at all.
 *
 *     stk_error err;
 *     if (stk_text_save("loss.json", "{\"loss\": 0.25}\n", &err) != STK_OK) puts(err.message);
 *
 * A plain file is replaced at the end, at once; a link stays, and what it leads to is replaced; a device or a pipe is
 * written through. */
#ifndef STOKER_FILES_H
#define STOKER_FILES_H

#include <stdio.h>

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

STK_API STK_MUST_USE stk_status stk_text_save(const char *path, const char *text, stk_error *err);
/* What `put` prints. */
STK_API STK_MUST_USE stk_status stk_file_save(const char *path,
                                              void (*put)(void *context, FILE *to), void *context,
                                              stk_error *err);

/* The array of a .npy file without reading it: its pages come when they are touched, and are no burden on memory. An array that
 * cannot be used as it stands (other byte order, columns first, strings) is read instead. */
STK_API STK_MUST_USE stk_status stk_npy_map(const char *path, stk_tensor **out, stk_error *err);
/* An array for data of any size; its elements are not set. Where memory (the machine's, of the control group, of ulimit) is
 * too small for it, it lies in a file without a name in $TMPDIR or /var/tmp. `what` is for the message when neither has
 * room: "needs X, has Y". */
STK_API STK_MUST_USE stk_status stk_tensor_roomy(const char *what, stk_dtype dtype, int32_t rank,
                                                 const int64_t *shape, stk_tensor **out,
                                                 stk_error *err);
/* Reads all of an .npz and keeps nothing: structure, headers and checksums of its members. */
STK_API STK_MUST_USE stk_status stk_npz_verify(const char *path, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
