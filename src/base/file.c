/* Files. Every failing system call is reported with the path and the system's reason. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/clock.h"
#include "base/memory.h"

#include "stoker/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, MOST_AT_ONCE = 1 << 30 };

stk_status stk_fail_system(stk_error *err, const char *what, const char *path)
{
    char text[128];
    const char *reason = strerror_r(errno, text, sizeof text);
    return stk_fail(err, STK_ERR_IO, "%s: cannot %s: %s", path, what, reason);
}

/* ---- reading -------------------------------------------------------------------------------- */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe, which has no size and can be read only once"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* Without O_NONBLOCK the opening of a pipe would wait for somebody who writes to it; files do not mind. */
stk_status stk_file_open_regular(const char *path, int *fd, struct stat *info, stk_error *err)
{
    *fd = -1;
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "open: the path is NULL");
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return stk_fail_system(err, "open it for reading", path);
    stk_status status = STK_OK;
    if (fstat(*fd, info) != 0)
        status = stk_fail_system(err, "ask for its size", path);
    else if (!S_ISREG(info->st_mode))
        status = stk_fail(err, STK_ERR_IO, "%s: is %s; a file is expected here", path,
                          kind_of(info->st_mode));
    if (status == STK_OK) return STK_OK;
    close(*fd);
    *fd = -1;
    return status;
}

stk_status stk_bytes_open(const char *path, stk_bytes *out, stk_error *err)
{
    int fd;
    struct stat info;
    *out = (stk_bytes){.fd = -1};
    STK_TRY(stk_file_open_regular(path, &fd, &info, err));
    *out = (stk_bytes){.name = path, .fd = fd, .size = (uint64_t)info.st_size};
    return STK_OK;
}

stk_bytes stk_bytes_of(const char *name, const void *data, size_t size)
{
    return (stk_bytes){.name = name, .fd = -1, .data = data, .size = size};
}

void stk_bytes_close(stk_bytes *bytes)
{
    if (bytes->fd >= 0) close(bytes->fd);
    *bytes = (stk_bytes){.fd = -1};
}

stk_status stk_bytes_read(const stk_bytes *bytes, uint64_t offset, void *to, size_t size,
                          stk_error *err)
{
    if (offset > bytes->size || size > bytes->size - offset)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: ends at byte %llu, but %zu bytes are needed at %llu; the file is cut "
                        "short or damaged",
                        bytes->name, (unsigned long long)bytes->size, size,
                        (unsigned long long)offset);
    if (bytes->fd < 0) {
        if (size) memcpy(to, bytes->data + offset, size);
        return STK_OK;
    }
    for (char *at = to; size > 0;) {
        ssize_t got =
            pread(bytes->fd, at, size < MOST_AT_ONCE ? size : MOST_AT_ONCE, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return stk_fail_system(err, "read it", bytes->name);
        if (got == 0)
            return stk_fail(err, STK_ERR_IO, "%s: became shorter while it was read", bytes->name);
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return STK_OK;
}

stk_status stk_file_read(const char *path, uint64_t most, char **data, size_t *size, stk_error *err)
{
    *data = NULL;
    *size = 0;
    stk_bytes bytes;
    STK_TRY(stk_bytes_open(path, &bytes, err));
    stk_status status = STK_OK;
    if (bytes.size > most)
        status = stk_fail(err, STK_ERR_RANGE, "%s: has %llu bytes, more than the %llu allowed here",
                          path, (unsigned long long)bytes.size, (unsigned long long)most);
    char *copy = status == STK_OK ? stk_malloc((size_t)bytes.size + 1) : NULL;
    if (status == STK_OK && !copy) status = stk_fail_memory(err, path, (size_t)bytes.size + 1);
    if (status == STK_OK) status = stk_bytes_read(&bytes, 0, copy, (size_t)bytes.size, err);
    if (status == STK_OK) {
        copy[bytes.size] = 0;
        *data = copy;
        *size = (size_t)bytes.size;
    } else {
        stk_free(copy);
    }
    stk_bytes_close(&bytes);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool is_on_ext4(int fd)
{
    enum { EXT4 = 0xef53 };
    struct statfs info;
    return fstatfs(fd, &info) == 0 && info.f_type == EXT4;
}

/* ext4 brings a file to the disk at once when it is renamed onto another one, unless its blocks were reserved before they
 * were written: a replaced file of 10 MB takes 4.6 ms then instead of 10.8. Who wants it on the disk says so, by
 * not being hasty. What is reserved too much is given back at commit. */
static void reserve(stk_file_writer *w)
{
    const uint64_t first = 1 << 20, most = 64 << 20, never = UINT64_MAX;
    if (!w->hasty || !w->temporary || w->offset <= BUFFER || w->offset <= w->reserved) return;
    uint64_t step = w->reserved < first ? first : w->reserved < most ? w->reserved : most;
    if (step < w->offset - w->reserved) step = w->offset - w->reserved;
    bool can = (w->reserved > 0 || is_on_ext4(w->fd)) &&
               fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)w->reserved, (off_t)step) == 0;
    w->reserved = can ? w->reserved + step : never;
}

static stk_status write_all(stk_file_writer *w, const uint8_t *data, size_t size, stk_error *err)
{
    reserve(w);
    while (size > 0) {
        ssize_t put = write(w->fd, data, size < MOST_AT_ONCE ? size : MOST_AT_ONCE);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return stk_fail_system(err, "write to it", w->path);
        data += put;
        size -= (size_t)put;
    }
    return STK_OK;
}

/* "NAME.<hex>-<hex>-<hex>.tmp": what a writer of NAME calls its file until it is whole. */
static bool is_temporary_of(const char *name, const char *entry)
{
    size_t length = strlen(name);
    unsigned pid, number, when;
    int end = 0;
    return strncmp(entry, name, length) == 0 &&
           sscanf(entry + length, ".%x-%x-%x.tmp%n", &pid, &number, &when, &end) == 3 && end > 0 &&
           entry[length + (size_t)end] == 0;
}

/* Writers hold a lock on their file, and the system takes it from those who were killed: what can be locked here has no
 * owner any more. That holds across containers, too, where process numbers say nothing. */
static void remove_if_left(int folder, const char *entry)
{
    int fd = openat(folder, entry, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, entry, 0);
    close(fd);
}

static void remove_left_overs(const char *path)
{
    enum { MOST_LOOKED_AT = 10000 };
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (snprintf(folder, sizeof folder, "%.*s.", (int)(name - path), path) >= (int)sizeof folder)
        return;
    DIR *d = opendir(folder);
    int looked = 0;
    for (struct dirent *e; d && looked < MOST_LOOKED_AT && (e = readdir(d)); looked++)
        if (is_temporary_of(name, e->d_name)) remove_if_left(dirfd(d), e->d_name);
    if (d) closedir(d);
}

/* Locked, and not removed by somebody who was faster than the lock. Where locks do not exist nobody removes anything. */
static bool is_ours(int fd)
{
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

/* A fresh file beside the target; O_EXCL, so that two writers never share one. */
static stk_status open_temporary(stk_file_writer *w, stk_error *err)
{
    static uint32_t counter;
    size_t room = strlen(w->path) + 48;
    if (!(w->temporary = stk_malloc(room))) return stk_fail_memory(err, w->path, room);
    for (int attempt = 0; attempt < 100; attempt++) {
        uint32_t number = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
        snprintf(w->temporary, room, "%s.%x-%x-%x.tmp", w->path, (unsigned)getpid(), number,
                 (unsigned)stk_now_ns());
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0 && is_ours(w->fd)) return STK_OK;
        if (w->fd < 0 && errno != EEXIST) break;
        if (w->fd >= 0) close(w->fd);
        w->fd = -1;
    }
    stk_status status = stk_fail_system(err, "create a file beside it", w->path);
    stk_free(w->temporary);
    w->temporary = NULL;
    return status;
}

/* Where a link leads, also to a file that is not there yet. false: to an open file of this process (/dev/stdout), which
 * must be written itself. */
static bool follow_links(const char *path, char to[PATH_MAX])
{
    char next[PATH_MAX];
    snprintf(to, PATH_MAX, "%s", path);
    for (int hops = 0; hops < 40; hops++) {
        ssize_t n = readlink(to, next, sizeof next - 1);
        if (n < 0) break;
        if (strncmp(to, "/proc/", 6) == 0) return false;
        next[n] = 0;
        const char *slash = strrchr(to, '/');
        size_t folder = next[0] == '/' || !slash ? 0 : (size_t)(slash - to) + 1;
        if (folder + (size_t)n >= PATH_MAX) break;
        memmove(to + folder, next, (size_t)n + 1);
    }
    return true;
}

stk_status stk_file_create(const char *path, stk_file_writer *w, stk_error *err)
{
    *w = (stk_file_writer){.fd = -1};
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "create: the path is NULL");
    char target[PATH_MAX]; /* a link stays a link: what it points to is replaced */
    struct stat info;
    bool replaced = follow_links(path, target), exists = stat(path, &info) == 0;
    bool through = exists && !(replaced && S_ISREG(info.st_mode));
    w->path = stk_strdup(through ? path : target);
    w->buffer = w->path ? stk_malloc(BUFFER) : NULL;
    stk_status status = w->buffer ? STK_OK : stk_fail_memory(err, path, BUFFER);
    if (status == STK_OK && exists && S_ISDIR(info.st_mode))
        status = stk_fail(err, STK_ERR_IO, "%s: is a folder; give the name of a file", path);
    else if (status == STK_OK && through) {
        w->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (w->fd < 0) status = stk_fail_system(err, "open it for writing", path);
    } else if (status == STK_OK) {
        remove_left_overs(w->path);
        status = open_temporary(w, err);
        if (status == STK_OK && exists) (void)fchmod(w->fd, info.st_mode & 0777);
    }
    if (status != STK_OK) stk_file_abandon(w);
    return status;
}

static stk_status flush(stk_file_writer *w, stk_error *err)
{
    size_t size = w->used;
    w->used = 0;
    return write_all(w, w->buffer, size, err);
}

stk_status stk_file_write(stk_file_writer *w, const void *data, size_t size, stk_error *err)
{
    w->offset += size;
    if (size <= BUFFER - w->used) {
        if (size) memcpy(w->buffer + w->used, data, size);
        w->used += size;
        return STK_OK;
    }
    STK_TRY(flush(w, err));
    if (size >= BUFFER) return write_all(w, data, size, err);
    memcpy(w->buffer, data, size);
    w->used = size;
    return STK_OK;
}

/* The rename itself is on the disk only when its folder is. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof folder) return;
    memcpy(folder, path, length);
    memcpy(folder + length, ".", 2);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd); /* some file systems cannot; the data itself is safe */
    close(fd);
}

stk_status stk_file_commit(stk_file_writer *w, stk_error *err)
{
    stk_status status = flush(w, err);
    if (status == STK_OK && w->reserved > w->offset && ftruncate(w->fd, (off_t)w->offset) != 0)
        status = stk_fail_system(err, "cut it to its length", w->path);
    if (status == STK_OK && w->temporary && !w->hasty && fsync(w->fd) != 0)
        status = stk_fail_system(err, "bring it to the disk", w->path);
    int lock = w->temporary ? fcntl(w->fd, F_DUPFD_CLOEXEC, 0) : -1; /* until it is renamed */
    int closed = close(w->fd);
    w->fd = -1;
    if (status == STK_OK && closed != 0) status = stk_fail_system(err, "close it", w->path);
    if (status == STK_OK && w->temporary && rename(w->temporary, w->path) != 0)
        status = stk_fail_system(err, "rename the new file to it", w->path);
    if (status == STK_OK && w->temporary) {
        if (!w->hasty) sync_folder(w->path);
        stk_free(w->temporary);
        w->temporary = NULL; /* it has become the target */
    }
    if (lock >= 0) close(lock);
    stk_file_abandon(w);
    return status;
}

void stk_file_abandon(stk_file_writer *w)
{
    if (!w->path) return;
    if (w->fd >= 0) close(w->fd);
    if (w->temporary) unlink(w->temporary);
    stk_free(w->temporary);
    stk_free(w->path);
    stk_free(w->buffer);
    *w = (stk_file_writer){.fd = -1};
}

/* ---- for callers with a stream ---------------------------------------------------------------- */

typedef struct stream {
    stk_file_writer file;
    stk_status status;
    stk_error *err;
} stream;

static ssize_t put_stream(void *cookie, const char *data, size_t size)
{
    stream *s = cookie;
    if (s->status == STK_OK) s->status = stk_file_write(&s->file, data, size, s->err);
    return s->status == STK_OK ? (ssize_t)size : 0;
}

stk_status stk_file_save(const char *path, void (*put)(void *context, FILE *to), void *context,
                         stk_error *err)
{
    stk_error own = {.code = STK_OK};
    stream s = {.err = err ? err : &own};
    STK_TRY(stk_file_create(path, &s.file, s.err));
    FILE *to = fopencookie(&s, "w", (cookie_io_functions_t){.write = put_stream});
    if (!to) s.status = stk_fail_memory(err, path, BUFFER);
    if (to) put(context, to);
    if (to && fclose(to) != 0 && s.status == STK_OK)
        s.status = stk_fail(err, STK_ERR_IO, "%s: cannot write all of it", path);
    if (s.status == STK_OK) return stk_file_commit(&s.file, err);
    stk_file_abandon(&s.file);
    return s.status;
}

static void put_text(void *text, FILE *to) { fputs(text, to); }

stk_status stk_text_save(const char *path, const char *text, stk_error *err)
{
    if (!text) return stk_fail(err, STK_ERR_ARGUMENT, "text_save: the text is NULL");
    return stk_file_save(path, put_text, (void *)(uintptr_t)text, err);
}
