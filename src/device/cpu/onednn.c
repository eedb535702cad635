/* onednn.c - finds oneDNN at run time and keeps it single-threaded. */
#define _GNU_SOURCE /* processors of a thread */
#include "device/cpu/onednn.h"

#if STK_HAVE_ONEDNN

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { OTHER_MAJOR = DNNL_VERSION_MAJOR == 2 ? 3 : 2 };

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static stk_onednn library;
static const stk_onednn *usable; /* &library, or NULL */

static void *look_up(void *handle, const char *name) { return dlsym(handle, name); }

/* ISO C has no cast from object to function pointers; POSIX promises that they have one shape. */
#define FETCH(handle, name) (*(void **)(void *)&library.name = look_up(handle, #name))

static bool fetch_functions(void *handle)
{
    bool common = true, primitive = true;
#define STK_ONEDNN_COMMON(name)    common = FETCH(handle, name) && common;
#define STK_ONEDNN_PRIMITIVE(name) primitive = FETCH(handle, name) && primitive;
#include "device/cpu/onednn.def"
    library.primitives = primitive && library.major == DNNL_VERSION_MAJOR;
    return common;
}

/* Its threads must be none, or OpenMP's, which a call switches off. */
static bool can_be_single_threaded(void *handle, const dnnl_version_t *version)
{
    if (version->cpu_runtime == DNNL_RUNTIME_SEQ) return true;
    return version->cpu_runtime == DNNL_RUNTIME_OMP && FETCH(handle, omp_get_max_threads) &&
           FETCH(handle, omp_set_num_threads);
}

static bool open_major(int major)
{
    char name[32];
    snprintf(name, sizeof name, "libdnnl.so.%d", major);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    const dnnl_version_t *(*version)(void) = NULL;
    *(void **)(void *)&version = look_up(handle, "dnnl_version");
    if (version) {
        library.major = version()->major;
        library.minor = version()->minor;
        if (fetch_functions(handle) && can_be_single_threaded(handle, version())) return true;
    }
    dlclose(handle);
    return false;
}

/* OpenMP comes along, and where OMP_PROC_BIND is set it binds the thread that loads it to one processor. Its threads are
 * not used, and every thread made later would inherit that. */
static void open_once(void)
{
    cpu_set_t mine;
    bool known = sched_getaffinity(0, sizeof mine, &mine) == 0;
    if (open_major(DNNL_VERSION_MAJOR) || open_major(OTHER_MAJOR)) usable = &library;
    if (known) (void)sched_setaffinity(0, sizeof mine, &mine);
}

const stk_onednn *stk_onednn_get(void)
{
    pthread_once(&opened, open_once);
    return usable;
}

/* ---- engine and streams ------------------------------------------------------------------------- */

static pthread_once_t started = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t engine_status;
static pthread_key_t streams; /* of each thread */
static int key_failed;

static void end_stream(void *stream) { (void)usable->dnnl_stream_destroy(stream); }

static void start_once(void)
{
    engine_status = usable->dnnl_engine_create(&engine, dnnl_cpu, 0);
    key_failed = pthread_key_create(&streams, end_stream);
}

stk_status stk_onednn_engine(dnnl_engine_t *out, stk_error *err)
{
    *out = NULL;
    if (!stk_onednn_get())
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "oneDNN: libdnnl.so.%d is not on this machine; install libdnnl",
                        DNNL_VERSION_MAJOR);
    pthread_once(&started, start_once);
    *out = engine;
    return stk_onednn_status(engine_status, "dnnl_engine_create", err);
}

stk_status stk_onednn_stream(dnnl_stream_t *out, stk_error *err)
{
    dnnl_engine_t on = NULL;
    *out = NULL;
    STK_TRY(stk_onednn_engine(&on, err));
    if (key_failed) return stk_fail(err, STK_ERR_MEMORY, "oneDNN: no room for streams of threads");
    *out = pthread_getspecific(streams);
    if (*out) return STK_OK;
    STK_TRY(stk_onednn_status(usable->dnnl_stream_create(out, on, dnnl_stream_default_flags),
                              "dnnl_stream_create", err));
    if (pthread_setspecific(streams, *out)) {
        end_stream(*out);
        *out = NULL;
        return stk_fail(err, STK_ERR_MEMORY, "oneDNN: no room for the stream of this thread");
    }
    return STK_OK;
}

/* Numbers are the same in versions 2 and 3, names are not all. */
stk_status stk_onednn_status(dnnl_status_t status, const char *call, stk_error *err)
{
    switch ((int)status) {
    case 0: return STK_OK;
    case 1: return stk_fail(err, STK_ERR_MEMORY, "oneDNN: %s is out of memory", call);
    case 2: return stk_fail(err, STK_ERR_INTERNAL, "oneDNN: %s refused its arguments", call);
    case 3:
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "oneDNN %d.%d: %s is not implemented for this problem; choose another kernel",
            library.major, library.minor, call);
    default:
        return stk_fail(err, STK_ERR_DEVICE, "oneDNN: %s failed (status %d)", call, (int)status);
    }
}

#endif
