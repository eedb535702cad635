/* trial.c - one thread or all? Sequences find out by trying, and look again from time to time: whether threads help
 * depends on how far apart the cores are, on who else uses them, and on where a hypervisor happens to have put them.
 *
 *     runs:   1 1 1 1 A A A A 1 1 1 1 A A A A ... then the faster way for a while, then 1 1 1 1 A A A A once more
 *             w w . . w w . . w w . . w w . .      w: not counted, the data is still moving between the cores
 *
 * A while is 50 ms, or so long that what trying the slower way has cost stays below a hundredth of it: with somebody
 * else on the second processor a step on two may take milliseconds.
 *
 * The medians of the counted runs are compared; two runs of each kind are few, so a change of mind is slept over: three more
 * rounds decide. Results have the same bits either way. */
#include "device/cpu/plan/sequence.h"

#include "base/clock.h"

#include <math.h>

enum { FIRST_ROUNDS = 4, SECOND_THOUGHT = 3 };

/* Runs of one kind in a row; long programs afford fewer, very long ones none: there threads pay. */
static int32_t block_of(double ns) { return ns < 100e3 ? 8 : ns < 1e6 ? 4 : ns < 20e6 ? 2 : 0; }

/* Only a sequence that runs in one piece can be timed. */
void stk_trial_start(stk_cpu_sequence *s)
{
    bool splits = false, whole = true;
    double flops = 0, bytes = 0;
    for (int64_t i = 0; i < s->n; i++) {
        splits |= s->launches[i].threads > 1;
        whole &= s->launches[i].run != NULL;
        flops += s->launches[i].flops;
        bytes += s->launches[i].bytes;
    }
    if (splits && whole)
        s->trial =
            (stk_thread_trial){.block = block_of(flops / 40 + bytes / 16), .rounds = FIRST_ROUNDS};
}

static void note(stk_thread_trial *t, int all, int64_t ns)
{
    int32_t at = t->kept[all];
    if (at == STK_TRIAL_KEPT) return;
    t->kept[all]++;
    for (; at > 0 && t->ns[all][at - 1] > ns; at--) t->ns[all][at] = t->ns[all][at - 1];
    t->ns[all][at] = ns;
}

static double median(const stk_thread_trial *t, int all)
{
    return (double)t->ns[all][(t->kept[all] - 1) / 2];
}

static void start_over(stk_thread_trial *t, int32_t rounds)
{
    t->kept[0] = t->kept[1] = t->done = 0;
    t->spent[0] = t->spent[1] = 0;
    t->rounds = rounds;
}

/* A change of mind needs a clear difference. */
static void decide(stk_thread_trial *t)
{
    static const double CLEARLY = 0.97, LEAST_REST_NS = 50e6, MOST_REST_NS = 10e9;
    double one = median(t, 0), all = median(t, 1);
    bool was_one = t->threads == 1 || t->rounds == FIRST_ROUNDS;
    int32_t better = was_one ? !(all < CLEARLY * one) : one < CLEARLY * all;
    if (better != t->threads && t->rounds == 1) {
        start_over(t, SECOND_THOUGHT);
        return;
    }
    t->threads = better;
    double chosen = fmax(t->threads == 1 ? one : all, 1);
    double lost = (double)t->spent[t->threads == 1] - chosen * t->done / 2;
    t->rest = (int64_t)(fmin(fmax(100 * lost, LEAST_REST_NS), MOST_REST_NS) / chosen) + 1;
    start_over(t, 1);
}

void stk_trial_run(stk_cpu_sequence *s)
{
    stk_thread_trial *t = &s->trial;
    int all = t->done / t->block & 1;
    bool counts = t->done % t->block >= t->block / 2;
    int64_t start = stk_now_ns();
    stk_cpu_run_until(s->cpu, s->launches, s->n, all ? 0 : 1, &s->stop);
    int64_t took = stk_now_ns() - start;
    t->spent[all] += took;
    if (counts) note(t, all, took);
    if (++t->done == 2 * t->block * t->rounds) decide(t);
}
