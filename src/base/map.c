/* Files as memory. */
#define _GNU_SOURCE
#include "base/map.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1];

stk_status stk_map_open(const char *path, bool sequential, stk_map *out, stk_error *err)
{
    *out = (stk_map){.data = nothing};
    int fd;
    struct stat info;
    STK_TRY(stk_file_open_regular(path, &fd, &info, err));
    out->changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    stk_status status = STK_OK;
    if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = stk_fail_system(err, "map it into memory", path);
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
