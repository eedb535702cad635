/* Which form of the updates of vec/updates.h this processor runs fastest: measured once, on some hundred elements in the
 * first-level cache. All have the same bits. */
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
static const stk_vec_updates *fastest(const stk_vec_updates *u)
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
    const int64_t steps = best_time(u->by_steps, at), turns = best_time(u->by_turns, at);
    if (10 * stk_min_i64(steps, turns) >= 9 * best_time(u, at)) return u;
    return steps < turns ? u->by_steps : u->by_turns;
}

const stk_vec_updates *stk_updates_pick(const stk_vec_updates *u)
{
    static const stk_vec_updates *_Atomic known; /* NULL: not yet */
    const char *wish = getenv("STOKER_UPDATES");
    if (!u->by_steps) return u;
    if (wish && !strcmp(wish, "divider")) return u;
    if (wish && !strcmp(wish, "steps")) return u->by_steps;
    if (wish && !strcmp(wish, "turns")) return u->by_turns;
    const stk_vec_updates *answer = atomic_load(&known);
    if (!answer) atomic_store(&known, answer = fastest(u));
    return answer;
}
