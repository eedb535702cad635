/* Files as memory.
 *
 * Whoever makes a mapped file shorter takes pages away from its readers, and the system tells them by SIGBUS. The handler here
 * knows every mapping: where the address lies in one of them, it puts pages of zeros there, notes the place and lets the
 * reader go on; readers ask afterwards (stk_map_check) and report the file. Any other address belongs to whoever handled
 * the signal before. */
#define _GNU_SOURCE
#include "base/map.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1];

/* ---- what is mapped, readable inside of a signal handler -------------------------------------- */

typedef struct slot {
    uintptr_t begin, end; /* atomic; begin 0 = free */
    int64_t lost;         /* atomic: first byte that was not there, plus 1; 0 = all were */
    char path[232];
} slot;

enum { SLOTS = 4096 }; /* what is mapped beyond them is not guarded */
static slot slots[SLOTS];
static int32_t lost_maps; /* atomic */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;

static slot *find(uintptr_t at)
{
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t begin = __atomic_load_n(&slots[i].begin, __ATOMIC_ACQUIRE);
        if (begin && at >= begin && at < __atomic_load_n(&slots[i].end, __ATOMIC_RELAXED))
            return &slots[i];
    }
    return NULL;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        sigaction(SIGBUS, &before, NULL); /* and the same instruction faults once more */
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    slot *s = info->si_code == BUS_ADRERR ? find(at) : NULL;
    uintptr_t from = at / page * page;
    if (!s || mmap((void *)from, s->end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == MAP_FAILED) {
        pass_on(number, info, context);
    } else {
        int64_t none = 0, place = (int64_t)(from - s->begin) + 1;
        if (__atomic_compare_exchange_n(&s->lost, &none, place, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            __atomic_add_fetch(&lost_maps, 1, __ATOMIC_RELEASE);
    }
    errno = saved;
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, &before);
}

static void guard(const char *path, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, install);
    pthread_mutex_lock(&taking);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].begin) continue;
        snprintf(slots[i].path, sizeof slots[i].path, "%s", path);
        slots[i].lost = 0;
        __atomic_store_n(&slots[i].end, (uintptr_t)data + size, __ATOMIC_RELAXED);
        __atomic_store_n(&slots[i].begin, (uintptr_t)data, __ATOMIC_RELEASE);
        break;
    }
    pthread_mutex_unlock(&taking);
}

static void leave(const void *data)
{
    pthread_mutex_lock(&taking);
    slot *s = find((uintptr_t)data);
    if (s && s->lost) __atomic_sub_fetch(&lost_maps, 1, __ATOMIC_RELEASE);
    if (s) __atomic_store_n(&s->begin, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&taking);
}

static stk_status fail_lost(const slot *s, int64_t lost, stk_error *err)
{
    return stk_fail(err, STK_ERR_IO,
                    "%s: became shorter while it was read: nothing is left from byte %lld on",
                    s->path, (long long)lost - 1);
}

stk_status stk_map_check(const stk_map *map, stk_error *err)
{
    if (__atomic_load_n(&lost_maps, __ATOMIC_ACQUIRE) == 0 || !map->size) return STK_OK;
    const slot *s = find((uintptr_t)map->data);
    int64_t lost = s ? __atomic_load_n(&s->lost, __ATOMIC_ACQUIRE) : 0;
    return lost ? fail_lost(s, lost, err) : STK_OK;
}

stk_status stk_maps_check(stk_error *err)
{
    if (__atomic_load_n(&lost_maps, __ATOMIC_ACQUIRE) == 0) return STK_OK;
    for (int i = 0; i < SLOTS; i++) {
        int64_t lost = __atomic_load_n(&slots[i].lost, __ATOMIC_ACQUIRE);
        if (lost && __atomic_load_n(&slots[i].begin, __ATOMIC_ACQUIRE))
            return fail_lost(&slots[i], lost, err);
    }
    return STK_OK;
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* Mapped files take no memory, but addresses; some systems limit those as well (ulimit -v). */
static stk_status fail_map(const char *path, int64_t size, stk_error *err)
{
    struct rlimit limit;
    int why = errno;
    if (why == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return stk_fail(err, STK_ERR_MEMORY,
                        "%s: its %.1f MB do not fit under the limit of addresses, %.1f MB for all "
                        "of the program; raise it (ulimit -v unlimited), files are not loaded but "
                        "mapped",
                        path, (double)size / 1e6, (double)limit.rlim_cur / 1e6);
    errno = why;
    return stk_fail_system(err, "map it into memory", path);
}

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
            status = fail_map(path, (int64_t)info.st_size, err);
        } else {
            if (sequential) (void)madvise(data, (size_t)info.st_size, MADV_SEQUENTIAL);
            out->data = data;
            out->size = (size_t)info.st_size;
            guard(path, data, out->size);
        }
    }
    close(fd);
    return status;
}

void stk_map_close(stk_map *map)
{
    if (map->size) {
        leave(map->data);
        munmap((void *)(uintptr_t)map->data, map->size);
    }
    *map = (stk_map){.data = nothing};
}
