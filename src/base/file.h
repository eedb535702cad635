/* file.h - files as wholes: reading at offsets, and writing so that a crash leaves the old file or
 * the new one, never half of it. */
#ifndef STK_BASE_FILE_H
#define STK_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* STK_ERR_IO: "PATH: cannot WHAT: the system's reason". */
stk_status stk_fail_system(stk_error *err, const char *what, const char *path);
/* For reading; folders and things without a size are refused. */
struct stat;
STK_MUST_USE stk_status stk_file_open_regular(const char *path, int *fd, struct stat *info,
                                              stk_error *err);

/* Something with bytes at offsets: a file, or memory. */
typedef struct stk_bytes {
    const char *name; /* for messages; belongs to the opener */
    int fd;           /* -1 = memory */
    const uint8_t *data;
    uint64_t size;
} stk_bytes;

/* `name` must outlive the bytes. Folders and things without a size are refused. */
STK_MUST_USE stk_status stk_bytes_open(const char *path, stk_bytes *out, stk_error *err);
stk_bytes stk_bytes_of(const char *name, const void *data, size_t size); /* memory is borrowed */
void stk_bytes_close(stk_bytes *bytes);
/* Exactly `size` bytes; ERR_FORMAT when they end before. */
STK_MUST_USE stk_status stk_bytes_read(const stk_bytes *bytes, uint64_t offset, void *to,
                                       size_t size, stk_error *err);

/* Whole file into memory (0-terminated behind its end; freed with stk_free). Larger than `most`
 * bytes is refused. */
STK_MUST_USE stk_status stk_file_read(const char *path, uint64_t most, char **data, size_t *size,
                                      stk_error *err);

/* Writes beside the target and renames at commit, after everything is on the disk. A target that is
 * no regular file (a pipe, /dev/null) is written directly; of a link, what it leads to is replaced.
 * What writers of the same target left behind when they were killed is removed. */
typedef struct stk_file_writer {
    int fd;
    char *path, *temporary; /* temporary NULL = written directly */
    uint8_t *buffer;
    size_t used;
    uint64_t offset;   /* bytes written so far */
    uint64_t reserved; /* of the disk, from the start of the file */
    bool hasty;        /* set after create: commit does not wait for the disk */
} stk_file_writer;

STK_MUST_USE stk_status stk_file_create(const char *path, stk_file_writer *out, stk_error *err);
STK_MUST_USE stk_status stk_file_write(stk_file_writer *writer, const void *data, size_t size,
                                       stk_error *err);
/* Both end the writer; after a failed commit the target is as it was. */
STK_MUST_USE stk_status stk_file_commit(stk_file_writer *writer, stk_error *err);
void stk_file_abandon(
    stk_file_writer *writer); /* fine on a writer that was never opened (zeroed) */

#endif
