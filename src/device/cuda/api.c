/* Opens the CUDA driver and its compiler. Once, and never closed: a driver starts threads of its own. */
#include "device/cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static stk_cu table;
static bool complete;

static bool find_driver(void *library)
{
    bool all = true;
#define STK_CU(name, result, arguments)                                                            \
    *(void **)(void *)&table.name = dlsym(library, #name);                                         \
    all &= table.name != NULL;
#define STK_NVRTC(name, result, arguments)
#include "device/cuda/api.def"
    return all;
}

static bool find_compiler(void *library)
{
    bool all = true;
#define STK_CU(name, result, arguments)
#define STK_NVRTC(name, result, arguments)                                                         \
    *(void **)(void *)&table.name = dlsym(library, #name);                                         \
    all &= table.name != NULL;
#include "device/cuda/api.def"
    return all;
}

/* What a compiler of a later major version makes is refused by the driver. */
static bool compiler_fits(void)
{
    int major = 0, minor = 0;
    if (table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return false;
    table.nvrtc = 1000 * major + 10 * minor;
    if (major > table.driver / 1000) return false;
    if (table.nvrtcGetNumSupportedArchs(&table.narchs) != NVRTC_SUCCESS || table.narchs < 1 ||
        table.narchs > (int)(sizeof table.arch / sizeof *table.arch))
        return false;
    return table.nvrtcGetSupportedArchs(table.arch) == NVRTC_SUCCESS;
}

static bool open_compiler(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    const char *wish = getenv("STOKER_NVRTC");
    for (size_t i = 0; i < (wish && *wish ? 1 : sizeof names / sizeof *names); i++) {
        void *library = dlopen(wish && *wish ? wish : names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        if (find_compiler(library) && compiler_fits()) return true;
        dlclose(library);
    }
    return false;
}

static void open_libraries(void)
{
    const char *wish = getenv("STOKER_CUDA");
    if (wish && !*wish) return; /* set to nothing: not wanted */
    void *library = dlopen(wish ? wish : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_driver(library)) return;
    if (table.cuInit(0) != CUDA_SUCCESS || table.cuDriverGetVersion(&table.driver) != CUDA_SUCCESS)
        return;
    complete = open_compiler();
}

const stk_cu *stk_cu_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_libraries);
    return complete ? &table : NULL;
}
