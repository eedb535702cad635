/* pairs.h - matrices of bfloat16 packed as pairs of neighbours in k, for the products of gemm_pairs.c and gemm_tiles.c. */
#ifndef STK_DEVICE_CPU_VEC_PAIRS_H
#define STK_DEVICE_CPU_VEC_PAIRS_H

#include "base/memory.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/lanes.h"

#if STK_HAS_PAIRS

enum { STK_PAIRS_WIDE = 2 * STK_VF }; /* columns of a panel: [k / 2][32] pairs */

/* Rows of numbers, two by two, as pairs: to[k / 2][32] for 32 neighbours or fewer. */
static inline void stk_pairs_zip(vf_unaligned *to, const uint16_t *from, int64_t ld,
                                 int64_t columns, int64_t k)
{
    const vp_part part = vp_part_of(columns);
    for (int64_t i = 0; i < k; i += 2, from += 2 * ld, to += 2) {
        vf out[2], odd = i + 1 < k ? vp_load_part(from + ld, part) : (vf){0};
        vp_zip(vp_load_part(from, part), odd, out);
        to[0] = (vf_unaligned)out[0];
        to[1] = (vf_unaligned)out[1];
    }
}

static inline void stk_pairs_turn_slowly(uint32_t *to, const uint16_t *from, int64_t ld,
                                         int64_t columns, int64_t first, int64_t k)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = first; i < k; i += 2) {
            const uint32_t odd = i + 1 < k ? from[j * ld + i + 1] : 0;
            to[i / 2 * STK_PAIRS_WIDE + j] = from[j * ld + i] | odd << 16;
        }
}

/* Columns of b stored as rows: pairs are neighbours there, and turned like floats, four at a time. */
static inline void stk_pairs_turn(vf_unaligned *to, const uint16_t *b, int64_t ldb, int64_t columns,
                                  int64_t k)
{
    for (int64_t j = 0; j < columns; j += STK_VF) {
        const uint16_t *from = b + j * ldb;
        float *at = (float *)(void *)to + j;
        const int64_t live = stk_min_i64(columns - j, STK_VF), fours = k / 8 * 4;
        const bool whole = live == STK_VF && ldb % 2 == 0;
        for (int64_t i = 0; whole && i < fours; i += 4) {
            vf out[4];
            vf_turn((const float *)(const void *)from + i, ldb / 2, out);
            STK_UNROLL for (int r = 0; r < 4; r++) vf_store(at + (i + r) * STK_PAIRS_WIDE, out[r]);
        }
        stk_pairs_turn_slowly((uint32_t *)(void *)at, from, ldb, live, whole ? 2 * fours : 0, k);
    }
}

/* One panel: 32 columns of b or fewer; b is its element 0,0. What lies behind the last column is not defined. */
static inline void stk_pairs_panel(vf_unaligned *to, const uint16_t *b, int64_t ldb, bool turned,
                                   int64_t columns, int64_t k)
{
    if (turned)
        stk_pairs_turn(to, b, ldb, columns, k);
    else
        stk_pairs_zip(to, b, ldb, columns, k);
}

/* c where a product has no terms. */
static inline void stk_pairs_no_terms(const stk_gemm_job *job)
{
    const stk_gemm *g = job->whole;
    for (int64_t i = job->row_lo; i < job->row_hi && !g->accumulate; i++)
        for (int64_t j = job->col_lo; j < job->col_hi; j++)
            if (job->wide || g->dtype == STK_F32)
                ((float *)job->c)[i * g->ldc + j] = 0;
            else
                ((uint16_t *)job->c)[i * g->ldc + j] = 0;
}

#endif
#endif
