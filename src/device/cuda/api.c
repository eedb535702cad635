/* Opens the CUDA driver and its compiler. Once, and never closed: a driver starts threads of its own. */
#define _GNU_SOURCE /* dladdr */
#include "device/cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static stk_cu table;
static bool complete;
static char why[512]; /* it cannot be used although there is something */

static void because(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void because(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
}

/* The first function that is missing; NULL: all are there. */
static const char *find_driver(void *library)
{
    const char *missing = NULL;
#define STK_CU(name, result, arguments)                                                            \
    *(void **)(void *)&table.name = dlsym(library, #name);                                         \
    if (!table.name && !missing) missing = #name;
#define STK_NVRTC(name, result, arguments)
#include "device/cuda/api.def"
    return missing;
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

/* ---- the compiler ---------------------------------------------------------------------------------------- */

/* A compiler that was found, and what was wrong with it. */
typedef struct search {
    int ncards, sm[64]; /* compute capabilities of the cards */
    int wanted;         /* so many cards have to be compiled for */
    int newer;          /* version of one that is too new for the driver */
    int older;          /* version of one that is too new for some card */
} search;

int stk_cu_target(const stk_cu *cu, int sm)
{
    int best = 0;
    for (int i = 0; i < cu->narchs; i++)
        if (cu->arch[i] <= sm && cu->arch[i] > best) best = cu->arch[i];
    return best;
}

/* What a compiler of a later major version makes is refused by the driver. */
static bool compiler_fits(search *s)
{
    int major = 0, minor = 0, covered = 0;
    if (table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return false;
    table.nvrtc = 1000 * major + 10 * minor;
    if (major > table.driver / 1000) {
        s->newer = table.nvrtc;
        return false;
    }
    if (table.nvrtcGetNumSupportedArchs(&table.narchs) != NVRTC_SUCCESS || table.narchs < 1 ||
        table.narchs > (int)(sizeof table.arch / sizeof *table.arch) ||
        table.nvrtcGetSupportedArchs(table.arch) != NVRTC_SUCCESS)
        return false;
    for (int i = 0; i < s->ncards; i++) covered += stk_cu_target(&table, s->sm[i]) > 0;
    if (covered < s->ncards) s->older = table.nvrtc;
    return covered >= s->wanted;
}

static bool try_compiler(const char *path, search *s)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    if (find_compiler(library) && compiler_fits(s)) return true;
    dlclose(library);
    return false;
}

/* Where toolkits and Python's wheels put it, when the system's loader does not know it. */
static bool try_folders(const char *name, search *s)
{
    static const struct {
        const char *variable, *folder;
    } places[] = {{"CUDA_HOME", "/lib64"},
                  {"CUDA_PATH", "/lib64"},
                  {"CONDA_PREFIX", "/lib"},
                  {NULL, "/usr/local/cuda/lib64"},
                  {NULL, "/opt/cuda/lib64"}};
    char path[1200];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *root = places[i].variable ? getenv(places[i].variable) : "";
        if (!root || (places[i].variable && !*root)) continue;
        snprintf(path, sizeof path, "%.900s%s/%s", root, places[i].folder, name);
        if (try_compiler(path, s)) return true;
    }
    return false;
}

/* Beside our own package: site-packages/nvidia/cu13/lib, site-packages/nvidia/cuda_nvrtc/lib (of CUDA 12 and 11). */
static bool try_wheels(const char *name, search *s)
{
    static const char *const folders[] = {"cu13/lib", "cuda_nvrtc/lib"};
    char root[900], path[1200];
    Dl_info self;
    if (!dladdr((void *)(uintptr_t)&stk_cu_open, &self) || !self.dli_fname) return false;
    snprintf(root, sizeof root, "%s", self.dli_fname);
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(root, '/');
        if (!slash) return false;
        *slash = 0;
        for (size_t i = 0; up && i < sizeof folders / sizeof *folders; i++) {
            snprintf(path, sizeof path, "%s/nvidia/%s/%s", root, folders[i], name);
            if (try_compiler(path, s)) return true;
        }
    }
    return false;
}

static bool search_compiler(search *s)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    const char *wish = getenv("STOKER_NVRTC");
    if (wish && *wish) return try_compiler(wish, s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (try_compiler(names[i], s) || try_folders(names[i], s) || try_wheels(names[i], s))
            return true;
    return false;
}

static void say_no_compiler(const search *s)
{
    const char *wish = getenv("STOKER_NVRTC");
    int major = table.driver / 1000, minor = table.driver % 1000 / 10;
    /* (the name of the wheel, since 13 without a number) */
    const char *wheel = major >= 13 ? "nvidia-cuda-nvrtc" : "nvidia-cuda-nvrtc-cu12";
    if (s->newer)
        because("an NVIDIA driver for CUDA %d.%d is here, but its compiler is newer (NVRTC %d.%d): "
                "update the driver, or install NVRTC %d (pip install '%s<%d') or name it in "
                "STOKER_NVRTC",
                major, minor, s->newer / 1000, s->newer % 1000 / 10, major, wheel, major + 1);
    else if (s->older)
        because("an NVIDIA card of compute capability %d.%d is here, but NVRTC %d.%d does not "
                "compile for cards as old: install an older one or name it in STOKER_NVRTC",
                s->sm[0] / 10, s->sm[0] % 10, s->older / 1000, s->older % 1000 / 10);
    else if (wish && *wish)
        because("an NVIDIA driver for CUDA %d.%d is here, but STOKER_NVRTC=%.200s is no compiler "
                "that can be opened",
                major, minor, wish);
    else
        because("an NVIDIA driver for CUDA %d.%d is here, but not the compiler NVRTC: pip install "
                "%s, or name libnvrtc.so in STOKER_NVRTC",
                major, minor, wheel);
}

/* The first that compiles for all cards; else the first that does for one. */
static bool open_compiler(void)
{
    search s = {0};
    int n = 0;
    if (table.cuDeviceGetCount(&n) != CUDA_SUCCESS || n < 1) return false;
    for (int i = 0; i < n && s.ncards < (int)(sizeof s.sm / sizeof *s.sm); i++) {
        int id = 0;
        if (table.cuDeviceGet(&id, i) == CUDA_SUCCESS)
            s.sm[s.ncards++] = stk_cu_capability(&table, id);
    }
    s.wanted = s.ncards;
    if (search_compiler(&s)) return true;
    s.wanted = 1;
    if (s.ncards > 1 && search_compiler(&s)) return true;
    say_no_compiler(&s);
    return false;
}

/* ---- the driver ------------------------------------------------------------------------------------------ */

int stk_cu_capability(const stk_cu *cu, int id)
{
    int major = 0, minor = 0;
    (void)cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id);
    (void)cu->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id);
    return 10 * major + minor;
}

static void *open_driver(const char *wish)
{
    static const char *const names[] = {"libcuda.so.1",
                                        "/usr/lib/wsl/lib/libcuda.so.1",        /* Windows' Linux */
                                        "/run/opengl-driver/lib/libcuda.so.1"}; /* NixOS */
    void *library = NULL;
    if (wish) return dlopen(wish, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void open_libraries(void)
{
    const char *wish = getenv("STOKER_CUDA");
    if (wish && !*wish) return; /* set to nothing: not wanted */
    void *library = open_driver(wish);
    if (!library) {
        if (wish) because("STOKER_CUDA=%.200s cannot be opened", wish);
        return;
    }
    const char *missing = find_driver(library);
    if (missing) {
        because("an NVIDIA driver is here, but it is too old: it lacks %s, which came with CUDA "
                "11.4",
                missing);
        return;
    }
    int code = table.cuInit(0);
    if (code == CUDA_SUCCESS) code = table.cuDriverGetVersion(&table.driver);
    if (code == CUDA_SUCCESS)
        complete = open_compiler();
    else if (code != CUDA_ERROR_NO_DEVICE)
        because("an NVIDIA driver is here, but it does not start: %s (%d): %s",
                stk_cu_error_name(&table, code), code, stk_cu_advice(code));
}

const stk_cu *stk_cu_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_libraries);
    return complete ? &table : NULL;
}

const char *stk_cu_missing(void)
{
    (void)stk_cu_open();
    return why;
}
