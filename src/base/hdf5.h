/* hdf5.h - groups, arrays and texts of HDF5 files: the inside of .keras, .weights.h5 and .h5.
 *
 * Files are read from memory and made in memory, so that they may stand inside of a zip archive and are replaced as a whole.
 * libhdf5 is opened when the first such file is; without it all of this says so. Its calls are made one at a time. */
#ifndef STK_BASE_HDF5_H
#define STK_BASE_HDF5_H

#include "base/status.h"
#include "stoker/tensor.h"

#include <stdbool.h>

typedef struct stk_h5 stk_h5;

/* data is borrowed until the file is closed. name is for messages and copied. */
STK_MUST_USE stk_status stk_h5_parse(const char *name, const void *data, size_t size, stk_h5 **out,
                                     stk_error *err);
STK_MUST_USE stk_status stk_h5_create(const char *name, stk_h5 **out, stk_error *err);
/* The bytes of a file that was created; free them with stk_free. */
STK_MUST_USE stk_status stk_h5_image(stk_h5 *h, void **data, size_t *size, stk_error *err);
void stk_h5_close(stk_h5 *h); /* NULL is fine */

/* Paths are "layers/dense/vars/0"; "" is the root. */
bool stk_h5_has(stk_h5 *h, const char *path);
int64_t stk_h5_count(stk_h5 *h, const char *group); /* members; 0 when it is no group */
STK_MUST_USE stk_status stk_h5_read(stk_h5 *h, const char *path, stk_tensor **out, stk_error *err);
/* Texts at a group: one, or a list. NULL and 0 when it has none; each text is freed with stk_free, and so is the list. */
STK_MUST_USE stk_status stk_h5_text(stk_h5 *h, const char *path, const char *name, char **out,
                                    stk_error *err);
STK_MUST_USE stk_status stk_h5_texts(stk_h5 *h, const char *path, const char *name, char ***out,
                                     int64_t *count, stk_error *err);
void stk_h5_texts_free(char **texts, int64_t count);

/* Groups on the way are made when they are not there. */
STK_MUST_USE stk_status stk_h5_group(stk_h5 *h, const char *path, stk_error *err);
STK_MUST_USE stk_status stk_h5_write(stk_h5 *h, const char *path, stk_tensor *t, stk_error *err);
STK_MUST_USE stk_status stk_h5_put_text(stk_h5 *h, const char *path, const char *name,
                                        const char *text, stk_error *err);
STK_MUST_USE stk_status stk_h5_put_texts(stk_h5 *h, const char *path, const char *name,
                                         const char *const *texts, int64_t count, stk_error *err);

#endif
