/* sums.c - the sums of the parts, added up; see sums.h. */
#include "device/cpu/sums.h"

#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/elementwise.h"

/* Of a part from this one on; parts without units were not run. */
static stk_sums next_sums(const stk_launch *l, int32_t *part)
{
    for (; *part < l->parts; ++*part) {
        int64_t lo, hi;
        stk_launch_range(l, *part, &lo, &hi);
        if (lo < hi) return l->impl->sums(l, (*part)++);
    }
    return (stk_sums){0};
}

stk_sums stk_launch_total(const stk_launch *launch)
{
    int32_t part = 0;
    return launch->impl->sums ? next_sums(launch, &part) : (stk_sums){0};
}

int64_t stk_sums_pieces(const stk_launch *launch)
{
    return stk_ceil_div(stk_launch_total(launch).n, STK_SUMS_PIECE);
}

/* Few numbers of all parts before the next few: the total stays in the first level of the cache. */
void stk_sums_piece(const stk_launch *launch, int64_t piece)
{
    enum { FEW = 1024 };
    int32_t first = 0;
    const stk_sums total = next_sums(launch, &first);
    const int64_t size = total.lane == STK_LANE_F64 ? 8 : 4;
    const int64_t end = stk_min_i64((piece + 1) * STK_SUMS_PIECE, total.n);
    const stk_tile_fn add = stk_vec_get()->ew->op[STK_EW_ADD][total.lane];
    for (int64_t i = piece * STK_SUMS_PIECE; i < end; i += FEW) {
        char *to = (char *)total.at + i * size;
        int32_t part = first;
        for (stk_sums more; (more = next_sums(launch, &part)).n;)
            add(stk_min_i64(end - i, FEW), to, to, (const char *)more.at + i * size, NULL);
    }
}

void stk_launch_join(const stk_launch *launch)
{
    const int64_t pieces = stk_sums_pieces(launch);
    for (int64_t i = 0; i < pieces; i++) stk_sums_piece(launch, i);
    if (launch->impl->finish) launch->impl->finish(launch);
}
