/* amx.c - the way to the tiles of AMX: what the processor says, what the system grants, and a first product that is looked at before
 * anything relies on them. */
#define _GNU_SOURCE /* syscall */
#include "device/cpu/amx.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BF16 = 1 << 22,                 /* of CPUID 7, edx */
    TILE = 1 << 24,                 /* the same */
    XSAVE = 1 << 27,                /* of CPUID 1, ecx: XGETBV may be used */
    TILE_STATE = 1 << 17 | 1 << 18, /* of XCR0: the system keeps shapes and data of tiles */
    TILE_DATA = 18,
    GET_PERMISSION = 0x1022, /* of arch_prctl */
    ASK_PERMISSION = 0x1023,
};

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static const char *missing;
static bool exists;

static bool system_keeps_tiles(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & XSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATE) == TILE_STATE;
}

/* Signal frames of a process with tiles are 8 KB larger. The system refuses when a thread has an alternative signal stack that is too
 * small for them; we install none. */
static bool system_grants_tiles(void)
{
    unsigned long granted = 0;
    if (syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA) != 0) return false;
    return syscall(SYS_arch_prctl, GET_PERMISSION, &granted) == 0 && granted >> TILE_DATA & 1;
}

static void ask(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    exists = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & BF16) && (d & TILE);
    if (!exists)
        missing = "this processor has none";
    else if (!system_keeps_tiles())
        missing = "the system does not keep its state";
    else if (!system_grants_tiles())
        missing = "the system does not grant it to this process";
}

const char *stk_amx_missing(void)
{
    pthread_once(&asked, ask);
    return missing;
}

bool stk_amx_exists(void)
{
    pthread_once(&asked, ask);
    return exists;
}

#else

const char *stk_amx_missing(void) { return "it is used on x86-64 and Linux only"; }
bool stk_amx_exists(void) { return false; }

#endif

/* ---- a first product ---------------------------------------------------------------------------------------- */

/* Squares, edges, two blocks of k and more; rows lie two numbers apart. */
enum { M = 50, N = 70, K = 600, GAP = 2, SIDE_SIZE = K * (N + GAP), C_SIZE = M * (N + GAP) };

static uint32_t random_bits(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }

/* Whole eighths from -2 to 2, as bfloat16: sums of 600 products are exact, in any order. */
static void fill_halves(uint16_t *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)((int)(random_bits(&seed) >> 27) - 16) / 8;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16);
    }
}

/* Whole numbers of up to so many bits, most of them zeros. Nineteen make three thirds, ten make two; sums of products of twenty bits
 * are exact in float if all but one in 64 are zeros, and so are sums of products of the thirds. */
static void fill_floats(float *x, int64_t n, uint32_t seed, int bits, int zeros)
{
    for (int64_t i = 0; i < n; i++) {
        const int value = (int)(random_bits(&seed) >> (31 - bits)) - (1 << bits);
        x[i] = random_bits(&seed) >> 8 & (uint32_t)zeros ? 0 : (float)value;
    }
}

typedef struct trial {
    float a[SIDE_SIZE], b[SIDE_SIZE], c[C_SIZE], wanted[C_SIZE]; /* bfloat16 take half of them */
} trial;

static void fill(trial *t, bool floats, int i)
{
    static const int bits[3][2] = {{19, 0}, {0, 19}, {10, 9}};
    if (floats) {
        fill_floats(t->a, SIDE_SIZE, 1, bits[i % 3][0], 0);
        fill_floats(t->b, SIDE_SIZE, 2, bits[i % 3][1], 63);
        fill_floats(t->c, C_SIZE, 3, 9, 0);
    } else {
        fill_halves((uint16_t *)(void *)t->a, SIDE_SIZE, 1);
        fill_halves((uint16_t *)(void *)t->b, SIDE_SIZE, 2);
        fill_halves((uint16_t *)(void *)t->c, C_SIZE, 3);
    }
    memcpy(t->wanted, t->c, sizeof t->c);
}

/* Many of these sums are zero, and may have either sign. */
static bool same_floats(const trial *t)
{
    bool same = true;
    for (int i = 0; i < C_SIZE; i++) same &= t->c[i] == t->wanted[i];
    return same;
}

static bool agrees(trial *t, const stk_vec_gemm_tiles *tiles, const stk_vec *set, const stk_gemm *g)
{
    const bool floats = g->dtype == STK_F32;
    const int64_t by_tiles = tiles->scratch(g, false);
    const int64_t without = (floats ? set->gemm->scratch[STK_F32] : set->gemm_pairs->scratch)(g);
    stk_gemm_job job = {.whole = g, .a = t->a, .b = t->b, .row_hi = g->m, .col_hi = g->n};
    job.scratch = stk_malloc((size_t)stk_max_i64(by_tiles, without));
    if (!job.scratch) return false;
    job.c = t->c;
    tiles->run(&job);
    job.c = t->wanted;
    (floats ? set->gemm->run[STK_F32] : set->gemm_pairs->run)(&job);
    stk_free(job.scratch);
    return floats ? same_floats(t) : !memcmp(t->c, t->wanted, sizeof t->c);
}

bool stk_amx_agrees(const stk_vec_gemm_tiles *tiles, const stk_vec *set)
{
    trial *t = stk_calloc(1, sizeof *t);
    bool good = t != NULL;
    for (int i = 0; good && i < 16; i++) {
        const stk_gemm g = {.m = M,
                            .n = N,
                            .k = i / 3 % 2 ? 33 : K,
                            .batch = 1,
                            .lda = (i & 1 ? M : K) + GAP,
                            .ldb = (i & 2 ? K : N) + GAP,
                            .ldc = N + GAP,
                            .ta = i & 1,
                            .tb = i >> 1 & 1,
                            .accumulate = i >> 2 & 1,
                            .dtype = i >> 3 ? STK_F32 : STK_BF16};
        fill(t, i >> 3, i);
        good = agrees(t, tiles, set, &g);
    }
    stk_free(t);
    return good;
}
