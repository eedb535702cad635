/* Large arrays in files without a name. */
#define _GNU_SOURCE
#include "base/spill.h"

#include "base/cpus.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/shape.h"
#include "base/tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

char *stk_bytes_text(double b, char text[24])
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    if (b < 1024) return snprintf(text, 24, "%.0f B", b), text;
    int unit = -1;
    do b /= 1024, unit++;
    while (b >= 1024 && unit < 2);
    snprintf(text, 24, "%.*f %s", b < 9.995 ? 2 : b < 99.95 ? 1 : 0, b, units[unit]);
    return text;
}

/* -1: in memory (tmpfs), full, or not there. */
static int open_in(const char *folder, int64_t bytes)
{
    enum { TMPFS = 0x01021994, RAMFS = 0x858458f6 };
    struct statfs info;
    if (!folder || statfs(folder, &info) != 0) return -1;
    if ((uint32_t)info.f_type == TMPFS || (uint32_t)info.f_type == RAMFS) return -1;
    if ((double)info.f_bavail * (double)info.f_bsize < (double)bytes) return -1;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        char path[4096];
        snprintf(path, sizeof path, "%s/stoker-XXXXXX", folder);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) unlink(path);
    }
    if (fd < 0) return -1;
    /* Blocks are taken now: a disk that is full later would end in a signal. */
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0) return fd;
    if ((errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, (off_t)bytes) == 0) return fd;
    close(fd);
    return -1;
}

typedef struct spilled {
    void *data;
    size_t size;
} spilled;

static void release(void *owner)
{
    spilled *s = owner;
    munmap(s->data, s->size);
    stk_free(s);
}

static stk_status spill(const char *what, stk_dtype dtype, int32_t rank, const int64_t *shape,
                        int64_t bytes, int64_t left, stk_tensor **out, stk_error *err)
{
    int fd = open_in(getenv("TMPDIR"), bytes);
    if (fd < 0) fd = open_in("/var/tmp", bytes);
    if (fd < 0) fd = open_in("/tmp", bytes);
    if (fd < 0)
        return stk_fail(err, STK_ERR_MEMORY,
                        "%s: needs %s, has %s of memory and no disk with so much room; set TMPDIR "
                        "to a folder on a larger disk, or use less data",
                        what, STK_BYTES_TEXT(bytes), STK_BYTES_TEXT(left));
    spilled *s = stk_malloc(sizeof *s);
    void *data = s ? mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    close(fd);
    stk_status status = STK_OK;
    if (!s || data == MAP_FAILED) {
        status = stk_fail_memory(err, what, (size_t)bytes);
    } else {
        *s = (spilled){data, (size_t)bytes};
        status = stk_tensor_wrap(dtype, rank, shape, NULL, data, release, s, out, err);
        if (status != STK_OK) munmap(data, (size_t)bytes);
    }
    if (status != STK_OK) stk_free(s);
    return status;
}

stk_status stk_tensor_roomy(const char *what, stk_dtype dtype, int32_t rank, const int64_t *shape,
                            stk_tensor **out, stk_error *err)
{
    enum { LARGE = 4 << 20 };
    int64_t bytes = stk_dtype_size(dtype);
    for (int32_t i = 0; i < rank; i++)
        if (!stk_mul_i64(bytes, shape[i], &bytes)) bytes = 0; /* said by the ordinary way */
    int64_t left = bytes > LARGE && dtype != STK_STRING ? stk_memory_left("") : INT64_MAX;
    if (bytes / 2 + bytes / 8 < left / 2) return stk_tensor_raw(dtype, rank, shape, out, err);
    return spill(what, dtype, rank, shape, bytes, left, out, err);
}

stk_status stk_tensor_roomy_copy(const char *what, const stk_tensor *t, stk_tensor **out,
                                 stk_error *err)
{
    stk_tensor *copy = NULL;
    STK_TRY(stk_tensor_roomy(what, t->dtype, t->rank, t->shape, &copy, err));
    stk_status status = stk_tensor_copy(copy, t, err);
    if (status == STK_OK)
        *out = copy;
    else
        stk_tensor_release(copy);
    return status;
}
