/* gemm.h - matrix products on one thread, built per instruction set.
 *
 * A job is a rectangle of c (rows row_lo..row_hi, columns col_lo..col_hi) of one product. Every
 * element of c has the same bits however the product was cut into jobs: which path is taken and in
 * which order the terms of a sum are added depends on the whole problem only. */
#ifndef STK_DEVICE_CPU_VEC_GEMM_H
#define STK_DEVICE_CPU_VEC_GEMM_H

#include "base/memory.h"
#include "device/cpu/vec/vec.h"

typedef struct stk_gemm_job {
    const stk_gemm *whole; /* the fields about batches are not looked at */
    const void *a, *b;     /* element 0,0 of the whole matrices */
    void *c;
    int64_t row_lo, row_hi, col_lo, col_hi;
    void *scratch; /* bytes as asked for below, aligned to 64, for this job alone */
    bool wide;     /* pairs and tiles: c holds floats, which are not rounded */
    /* May add up from the last term to the first. Walking down the rows of b a prefetcher runs a dozen rows past the end, and takes
     * them from the core that owns what comes there (owners.c); walking up, it leaves these alone. */
    bool back;
    /* All of b as the pack() of the table left it; NULL: b itself is read. Tiles of floats need b all the same. */
    const void *packed;
} stk_gemm_job;

/* Terms of a sum that are added up before they are added to the stretch before: even ones, as all stay in L1. */
enum { STK_GEMM_STRETCH = 256 };
static inline int64_t stk_gemm_stretch(int64_t k)
{
    return k <= STK_GEMM_STRETCH
               ? k
               : stk_round_up(stk_ceil_div(k, stk_ceil_div(k, STK_GEMM_STRETCH)), 8);
}

/* By element type; NULL where there is none. Half types add up in float and round once. */
typedef struct stk_vec_gemm {
    void (*run[STK_DTYPE_COUNT])(const stk_gemm_job *job);
    int64_t (*scratch[STK_DTYPE_COUNT])(const stk_gemm *whole); /* enough for any job of it */
    /* b can be packed beforehand, for jobs that have rows of c: by columns, a multiple of STK_GEMM_PANEL at a time. */
    int64_t (*packed[STK_DTYPE_COUNT])(const stk_gemm *whole); /* bytes of all of it */
    void (*pack[STK_DTYPE_COUNT])(const stk_gemm *whole, const void *b, int64_t column,
                                  int64_t count, void *to);
} stk_vec_gemm;

enum { STK_GEMM_PANEL = 64 }; /* no panel of any set and type is wider, and all divide it */

extern const stk_vec_gemm STK_VEC(stk_vec_gemm);

/* Floats with many zeros in the operand that `zeros` names (a, if both); c is not added to. */
typedef struct stk_vec_gemm_zeros {
    void (*run)(const stk_gemm_job *job);
    int64_t (*scratch)(const stk_gemm *whole);
} stk_vec_gemm_zeros;

extern const stk_vec_gemm_zeros STK_VEC(stk_vec_gemm_zeros);

/* bfloat16 by dot products of pairs; NULL where the set has none, and not every processor of the set has them
 * (stk_isa_has_pairs). */
typedef struct stk_vec_gemm_pairs {
    void (*run)(const stk_gemm_job *job);
    int64_t (*scratch)(const stk_gemm *whole);
} stk_vec_gemm_pairs;

extern const stk_vec_gemm_pairs STK_VEC(stk_vec_gemm_pairs);

/* bfloat16 by tiles, and float32 by tiles of its thirds; NULL where the set in use has none (stk_isa_has_tiles). Which problems and cuts
 * give which bits is as above; b can be packed beforehand, for many products with it. */
typedef struct stk_vec_gemm_tiles {
    void (*run)(const stk_gemm_job *job);
    /* Enough for any job of it, and of smaller products; less where jobs have b packed. */
    int64_t (*scratch)(const stk_gemm *whole, bool packed);
    int64_t (*packed)(const stk_gemm *whole); /* bytes of b packed, aligned to 64 */
    void (*pack)(const stk_gemm *whole, const void *b, void *to); /* m is not looked at */
} stk_vec_gemm_tiles;

extern const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_tiles);
extern const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_amx);     /* by instructions of AMX */
extern const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_standin); /* by plain C, for tests */

/* The engines behind the table. */
void STK_VEC(stk_gemm_f32)(const stk_gemm_job *job);
void STK_VEC(stk_gemm_f64)(const stk_gemm_job *job);
int64_t STK_VEC(stk_gemm_f32_scratch)(const stk_gemm *whole);
int64_t STK_VEC(stk_gemm_f64_scratch)(const stk_gemm *whole);
int64_t STK_VEC(stk_gemm_f32_packed)(const stk_gemm *whole);
int64_t STK_VEC(stk_gemm_f64_packed)(const stk_gemm *whole);
void STK_VEC(stk_gemm_f32_pack)(const stk_gemm *whole, const void *b, int64_t column, int64_t count,
                                void *to);
void STK_VEC(stk_gemm_f64_pack)(const stk_gemm *whole, const void *b, int64_t column, int64_t count,
                                void *to);

#endif
