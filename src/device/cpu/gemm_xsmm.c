/* The gemm kernel through libxsmm: code made for one shape when a launch is prepared.
 *
 * libxsmm counts by columns: our row-major c = a b is its c' = b' a', so its m is our n, its first
 * matrix our b. Version 1.17 has no code for a first matrix stored transposed (our tb), and beta is 0
 * or 1. Units are fixed blocks of rows, so that every row is computed by the same code for any
 * number of parts. */
#include "device/cpu/launch.h"

#if STK_HAVE_XSMM

#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

#include <libxsmm.h>
#include <pthread.h>
#include <stdlib.h>

enum { BLOCK = 64, MOST = 1 << 14 };

typedef struct code {
    libxsmm_smmfunction full, rest; /* a whole block of rows, and the last one of a matrix */
    int64_t block;
} code;

/* Few rows are two blocks where they can be, for two threads. */
static stk_gemm_cut cut_of(const stk_gemm *g)
{
    if (g->m > BLOCK) return (stk_gemm_cut){false, BLOCK};
    return (stk_gemm_cut){false, g->m % 2 || g->m == 0 ? stk_max_i64(g->m, 1) : g->m / 2};
}

/* Sizes beyond MOST are no small product any more, and its code would become long. The library itself is
 * not asked: it wakes up for 9 ms, which belongs to prepare. */
static bool supports(const void *params)
{
    const stk_gemm *g = params;
    if (!__builtin_cpu_supports("avx")) return false;
    return g->dtype == STK_F32 && !g->tb && g->m > 0 && g->n > 1 && g->k > 0 && g->n <= MOST &&
           g->k <= MOST && g->lda <= INT32_MAX && g->ldb <= INT32_MAX && g->ldc <= INT32_MAX;
}

static int64_t units(const void *params) { return stk_gemm_count(params, cut_of(params)); }

static int64_t grain(const void *params)
{
    return stk_ceil_div(stk_gemm_grain(params), cut_of(params).step);
}

static int64_t least(const void *params)
{
    return stk_ceil_div(stk_gemm_least(params), cut_of(params).step);
}

static uint32_t aligned(const void *params)
{
    const stk_gemm *g = params;
    return g->m % cut_of(g).step == 0 && !stk_gemm_by_columns(g) ? stk_gemm_aligned(g) : 0;
}

/* When it wakes up the library asks OpenMP, by an environment variable, to bind threads: whoever loads OpenMP after
 * that (oneDNN, a program started from here) would sit on one processor for good. So the variable is taken back. */
static void wake_up(void)
{
    bool wanted = getenv("OMP_PROC_BIND") != NULL;
    libxsmm_init();
    if (!wanted) unsetenv("OMP_PROC_BIND");
}

static libxsmm_smmfunction generate(const stk_gemm *g, int64_t rows)
{
    int lda = (int)g->ldb, ldb = (int)g->lda, ldc = (int)g->ldc;
    int flags = g->ta ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    if (!g->accumulate) flags |= LIBXSMM_GEMM_FLAG_BETA_0;
    return libxsmm_smmdispatch((int)g->n, (int)rows, (int)g->k, &lda, &ldb, &ldc, NULL, NULL,
                               &flags, NULL);
}

static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

static stk_status prepare(stk_launch *launch, stk_error *err)
{
    static pthread_once_t awake = PTHREAD_ONCE_INIT;
    const stk_gemm *g = launch->params;
    pthread_once(&awake, wake_up);
    code *made = stk_calloc(1, sizeof *made);
    if (!made) return stk_fail_memory(err, "code of a matrix product", sizeof *made);
    launch->state = made;
    made->block = cut_of(g).step;
    int64_t rest = g->m % made->block;
    made->full = generate(g, made->block);
    made->rest = rest ? generate(g, rest) : made->full;
    if (made->full && made->rest) return STK_OK;
    discard(launch);
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "gemm: libxsmm makes no code for %lld x %lld x %lld on this processor; choose "
                    "another kernel",
                    (long long)g->m, (long long)g->n, (long long)g->k);
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_gemm *g = launch->params;
    const code *made = launch->state;
    const stk_gemm_cut cut = {false, made->block};
    stk_gemm_part r;
    for (int64_t unit = lo; unit < hi;) {
        stk_gemm_next(g, cut, &unit, unit + 1, &r);
        const float *a = (const float *)launch->arg[0] + r.batch * g->batch_a;
        const float *b = (const float *)launch->arg[1] + r.batch * g->batch_b;
        float *c = (float *)launch->arg[2] + r.batch * g->batch_c + r.row_lo * g->ldc;
        a += r.row_lo * (g->ta ? 1 : g->lda);
        (r.row_hi - r.row_lo == made->block ? made->full : made->rest)(b, a, c);
    }
}

const stk_impl stk_impl_gemm_xsmm = {.name = "xsmm",
                                     .kernel = STK_K_GEMM,
                                     .rank = 20,
                                     .supports = supports,
                                     .units = units,
                                     .grain = grain,
                                     .least = least,
                                     .aligned = aligned,
                                     .prepare = prepare,
                                     .discard = discard,
                                     .run = run};

#endif
