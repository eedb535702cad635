/* Which instruction set the vector kernels run with: decided once, at the first question. */
#include "device/cpu/isa.h"

#include "device/cpu/amx.h"
#include "device/cpu/vec/conv_grid.h"
#include "device/cpu/vec/gemm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const stk_vec *_Atomic chosen;

#if defined(STK_BUILT_AVX2)
/* The features of x86-64-v3 and -v4 that the compiler is allowed to use in those builds. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif
#if defined(STK_BUILT_AVX512)
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* ---- tiles: AVX-512 with one table exchanged --------------------------------------------------------- */

static struct {
    stk_vec amx, emulated;
    const char *missing; /* why not; NULL: it is here */
} tiled = {.missing = "it was not built"};

#if defined(STK_BUILT_AVX512)
static pthread_once_t tiled_known = PTHREAD_ONCE_INIT;

static bool has_pairs(void) { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

static void find_tiles(void)
{
    tiled.amx = tiled.emulated = stk_vec__avx512;
    tiled.amx.name = "amx";
    tiled.amx.gemm_tiles = &stk_vec_gemm_amx__avx512;
    tiled.amx.conv_grid = &stk_vec_conv_grid_amx__avx512;
    tiled.emulated.name = "amx-emulated";
    tiled.emulated.gemm_tiles = &stk_vec_gemm_standin__avx512;
    tiled.emulated.conv_grid = &stk_vec_conv_grid_standin__avx512;
    if (!stk_vec_gemm_amx__avx512.run) return;
    tiled.missing = stk_amx_missing();
    if (tiled.missing) return;
    if (!has_pairs())
        tiled.missing = "this processor has no AVX512_BF16 beside it";
    else if (!stk_amx_agrees(&stk_vec_gemm_amx__avx512, &stk_vec__avx512))
        tiled.missing = "a first product came out wrong (please report this)";
}

static const stk_vec *find_tiled(const char *name)
{
    pthread_once(&tiled_known, find_tiles);
    if (!strcmp(name, "amx")) return tiled.missing ? NULL : &tiled.amx;
    if (strcmp(name, "amx-emulated")) return NULL;
    return stk_vec_gemm_standin__avx512.run && has_pairs() ? &tiled.emulated : NULL;
}
#else
static const stk_vec *find_tiled(const char *name)
{
    (void)name;
    return NULL;
}
#endif

/* ---- caches ------------------------------------------------------------------------------------------- */

static _Atomic int l2_is_large = -1; /* not yet known */

/* Asked once: the question stops a virtual machine. */
static int find_l2(void)
{
#if defined(_SC_LEVEL2_CACHE_SIZE)
    return sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2 << 20;
#else
    return 0;
#endif
}

bool stk_isa_has_large_l2(void)
{
    int large = atomic_load_explicit(&l2_is_large, memory_order_relaxed);
    if (large < 0) atomic_store(&l2_is_large, large = find_l2());
    return large;
}

void stk_isa_assume_l2(int large) { atomic_store(&l2_is_large, large); }

/* ---- choosing ------------------------------------------------------------------------------------------ */

const stk_vec *stk_vec_find(const char *name)
{
    if (!strncmp(name, "amx", 3)) return find_tiled(name);
#if defined(STK_BUILT_AVX512)
    if (!strcmp(name, "avx512")) return has_avx512() ? &stk_vec__avx512 : NULL;
#endif
#if defined(STK_BUILT_AVX2)
    if (!strcmp(name, "avx2")) return has_avx2() ? &stk_vec__avx2 : NULL;
#endif
    return strcmp(name, "base") ? NULL : &stk_vec__base;
}

/* The environment may ask for less than the machine has; what it has not got, or never heard of, is
 * passed over in silence (the device report names the set in use). */
static const stk_vec *choose(void)
{
    static const char *const widest_first[] = {"amx", "avx512", "avx2", "base"};
    const char *wanted = getenv("STOKER_ISA");
    const stk_vec *found = wanted ? stk_vec_find(wanted) : NULL;
    for (size_t i = 0; !found && i < sizeof widest_first / sizeof *widest_first; i++)
        found = stk_vec_find(widest_first[i]);
    return found;
}

const stk_vec *stk_vec_get(void)
{
    const stk_vec *vec = atomic_load_explicit(&chosen, memory_order_acquire);
    if (vec) return vec;
    vec = choose();
    atomic_store_explicit(&chosen, vec, memory_order_release);
    return vec;
}

void stk_vec_use(const stk_vec *vec) { atomic_store(&chosen, vec); }

/* ---- the list ------------------------------------------------------------------------------------ */

#if defined(STK_BUILT_AVX2)
enum { BUILT_AVX2 = 1 };
#else
enum { BUILT_AVX2 = 0 };
#endif
#if defined(STK_BUILT_AVX512)
enum { BUILT_AVX512 = 1 };
#else
enum { BUILT_AVX512 = 0 };
#endif
static const struct {
    const char *name;
    bool built, on_request;
} sets[] = {{"base", true, false},
            {"avx2", BUILT_AVX2, false},
            {"avx512", BUILT_AVX512, false},
            {"amx", BUILT_AVX512, false},
            {"amx-emulated", BUILT_AVX512, true}};

int32_t stk_isa_count(void) { return (int32_t)(sizeof sets / sizeof *sets); }

stk_isa stk_isa_at(int32_t i)
{
    return (stk_isa){sets[i].name, sets[i].built, stk_vec_find(sets[i].name) != NULL,
                     sets[i].on_request};
}

const char *stk_isa_amx_unused(void)
{
    if (!stk_amx_exists() || stk_isa_has_tiles()) return NULL;
    return stk_vec_find("amx") ? "STOKER_ISA asks for less" : tiled.missing;
}

bool stk_isa_has_pairs(void)
{
#if defined(STK_BUILT_AVX512)
    return stk_vec_get()->gemm_pairs->run && has_pairs();
#else
    return false;
#endif
}

bool stk_isa_has_tiles(void) { return stk_vec_get()->gemm_tiles->run != NULL; }

void stk_isa_use(const char *name) { stk_vec_use(name ? stk_vec_find(name) : NULL); }
