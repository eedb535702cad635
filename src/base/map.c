/* Files as memory. */
#define _GNU_SOURCE
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1];

static stk_status fail_system(stk_error *err, const char *what, const char *path)
{
    char text[128];
    const char *reason = strerror_r(errno, text, sizeof text);
    return stk_fail(err, STK_ERR_IO, "%s: cannot %s: %s", path, what, reason);
}

stk_status stk_map_open(const char *path, bool sequential, stk_map *out, stk_error *err)
{
    *out = (stk_map){.data = nothing};
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "open: the path is NULL");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_system(err, "open it for reading", path);
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return stk_fail(err, STK_ERR_IO, "%s: not a regular file", path);
    }
    out->changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    stk_status status = STK_OK;
    if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = fail_system(err, "map it into memory", path);
        } else {
            if (sequential) (void)madvise(data, (size_t)info.st_size, MADV_SEQUENTIAL);
            out->data = data;
            out->size = (size_t)info.st_size;
        }
    }
    close(fd);
    return status;
}

void stk_map_close(stk_map *map)
{
    if (map->size) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (stk_map){.data = nothing};
}
