/* Which form of the updates of vec/updates.h this processor runs faster: measured once, on some hundred elements in the
 * first-level cache. Both have the same bits. */
#include "device/cpu/chain.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 512, ROUNDS = 12 };

static int64_t best_time(const stk_vec_updates *u, float *const *at)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = stk_now_ns();
        u->with_mean(COUNT, at);
        best = stk_min_i64(best, stk_now_ns() - begin);
    }
    return best;
}

/* Clearly faster, or the divider stays. */
static bool steps_win(const stk_vec_updates *u)
{
    float memory[4][COUNT], number[4] = {0.001f, 1e-7f, 1e-3f, 0.1f};
    float *at[STK_UPDATE_ARGS] = {0};
    for (int i = 0; i < COUNT; i++)
        for (int a = 0; a < 4; a++) memory[a][i] = 0.01f * (float)(i % 37 + a + 1);
    at[STK_UPDATE_NEW_SQUARE] = at[STK_UPDATE_SQUARE] = memory[0];
    at[STK_UPDATE_NEW_MEAN] = at[STK_UPDATE_MEAN] = memory[1];
    at[STK_UPDATE_NEW_VALUE] = at[STK_UPDATE_VALUE] = memory[2];
    at[STK_UPDATE_GRADIENT] = memory[3];
    at[STK_UPDATE_SQUARE_WEIGHT] = &number[0];
    at[STK_UPDATE_OFFSET] = &number[1];
    at[STK_UPDATE_RATE] = &number[2];
    at[STK_UPDATE_MEAN_WEIGHT] = &number[3];
    return 10 * best_time(u->by_steps, at) < 9 * best_time(u, at);
}

const stk_vec_updates *stk_updates_pick(const stk_vec_updates *u)
{
    static _Atomic int known; /* 0 not yet, 1 divider, 2 steps */
    const char *wish = getenv("STOKER_UPDATES");
    if (!u->by_steps) return u;
    if (wish && !strcmp(wish, "divider")) return u;
    if (wish && !strcmp(wish, "steps")) return u->by_steps;
    int answer = atomic_load(&known);
    if (!answer) {
        answer = steps_win(u) ? 2 : 1;
        atomic_store(&known, answer);
    }
    return answer == 2 ? u->by_steps : u;
}
