/* index.c - indices of a stretch of rows, found many at a time (index.h). */
#include "device/cpu/vec/index.h"
#include "device/cpu/vec/lanes.h"

typedef uint32_t vu __attribute__((vector_size(STK_VF * 4)));
typedef uint32_t vu_unaligned __attribute__((vector_size(STK_VF * 4), aligned(4), may_alias));

/* An index below lo is a large number once lo is taken off: one comparison. */
static int64_t between(int64_t n, const int32_t *index, int32_t lo, int32_t hi, int32_t *at)
{
    const uint32_t first = (uint32_t)lo, rows = (uint32_t)hi - first;
    int64_t found = 0, i = 0;
    for (; i + STK_VF <= n; i += STK_VF) {
        const vu off = *(const vu_unaligned *)(const void *)(index + i) - first;
        found += vf_list(vf_nonzero((vf)(off < rows)), (int32_t)i, at + found);
    }
    for (; i < n; i++)
        if ((uint32_t)index[i] - first < rows) at[found++] = (int32_t)i;
    return found;
}

static void add(int64_t n, float *to, const float *x)
{
    int64_t i = 0;
    for (; i + STK_VF <= n; i += STK_VF) vf_store(to + i, vf_load(to + i) + vf_load(x + i));
    for (; i < n; i++) to[i] += x[i];
}

const stk_vec_index STK_VEC(stk_vec_index) = {between, add};
