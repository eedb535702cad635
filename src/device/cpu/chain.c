/* Elementwise programs (kernels.h: chain) over tiles, without generating code: the steps of chain.h, tile after tile.
 * Running only bumps pointers and calls tile functions. */
#include "device/cpu/chain.h"
#include "device/cpu/walk.h"

#include <string.h>

typedef struct frame {
    char *at[STK_CHAIN_PLACES];
    const void *splatted[STK_CHAIN_IO]; /* the scalar argument its slot was filled from */
    int64_t fill;                       /* elements that splats must cover */
    _Alignas(64) char buffer[STK_CHAIN_BUFFER];
} frame;

static void load_scalars(const stk_chain_state *s, frame *f, void *const *arg)
{
    for (int32_t i = 0; i < s->scalars; i++) {
        const stk_chain_transfer *t = &s->scalar[i];
        const void *from = arg[t->arg];
        if (from == f->splatted[i]) continue;
        int64_t one;
        t->move(1, &one, from);
        s->ew->splat[t->lane](t->wide ? f->fill : 1, f->at[t->place], &one);
        f->splatted[i] = from;
    }
}

/* Rows not longer than a tile: repeated into the slot from the phase of the first element on. */
static void tile_rows(const stk_chain_state *s, frame *f, void *const *arg, int64_t first)
{
    int64_t phase = first % s->row;
    for (int32_t i = 0; i < s->rows; i++) {
        const stk_chain_transfer *t = &s->row_load[i];
        const char *from = arg[t->arg];
        int64_t size = stk_lane_size((stk_lane)t->lane);
        int64_t head = stk_min_i64(s->row - phase, f->fill), have = stk_min_i64(s->row, f->fill);
        t->move(head, f->at[t->place], from + phase * t->size);
        if (have > head) t->move(have - head, f->at[t->place] + head * size, from);
        for (; have < f->fill; have *= 2)
            memcpy(f->at[t->place] + have * size, f->at[t->place],
                   (size_t)(stk_min_i64(have, f->fill - have) * size));
    }
}

/* Long rows: a tile never crosses the end of one, so it can stay where it is unless converted. */
static void row_piece(const stk_chain_state *s, frame *f, void *const *arg, int64_t first,
                      int64_t n)
{
    int64_t phase = first % s->row;
    for (int32_t i = 0; i < s->rows; i++) {
        const stk_chain_transfer *t = &s->row_load[i];
        char *from = (char *)arg[t->arg] + phase * t->size;
        if (t->size == stk_lane_size((stk_lane)t->lane))
            f->at[t->place] = from;
        else
            t->move(n, f->at[t->place], from);
    }
}

static void load_strided(const stk_chain_state *s, frame *f, void *const *arg, int64_t first,
                         int64_t n)
{
    int64_t raw[STK_TILE_MAX];
    for (int32_t i = 0; i < s->strides; i++) {
        const stk_chain_transfer *t = &s->strided[i];
        const stk_chain_walk *w = &s->walk[i];
        bool direct = t->size == stk_lane_size((stk_lane)t->lane);
        void *to = direct ? (void *)f->at[t->place] : raw;
        stk_gather(t->size, n, to, arg[t->arg], first, w->rank, w->dim, w->stride);
        if (!direct) t->move(n, f->at[t->place], raw);
    }
}

static void run_update(const stk_chain_step *t, const frame *f, int64_t n)
{
    float *at[STK_UPDATE_ARGS];
    for (int32_t i = 0; i < STK_UPDATE_ARGS; i++) at[i] = (float *)(void *)f->at[t->at[i]];
    t->update(n, at);
}

static void run_tile(const stk_chain_state *s, frame *f, void *const *arg, int64_t first, int64_t n)
{
    for (int32_t i = 0; i < s->loads; i++) {
        const stk_chain_transfer *t = &s->load[i];
        t->move(n, f->at[t->place], (const char *)arg[t->arg] + first * t->size);
    }
    if (s->strides) load_strided(s, f, arg, first, n);
    if (s->cut_at_row) row_piece(s, f, arg, first, n);
    for (int32_t i = 0; i < s->steps; i++) {
        const stk_chain_step *t = &s->step[i];
        if (t->fn)
            t->fn(n, f->at[t->d], f->at[t->a], f->at[t->b], f->at[t->c]);
        else if (t->cast)
            t->cast(n, f->at[t->d], f->at[t->a]);
        else
            run_update(t, f, n);
    }
    for (int32_t i = 0; i < s->stores; i++) {
        const stk_chain_transfer *t = &s->store[i];
        t->move(n, (char *)arg[t->arg] + first * t->size, f->at[t->place]);
    }
}

/* Elements [first, end) of one segment. */
static void run_segment(const stk_chain_state *s, frame *f, void *const *arg, int64_t first,
                        int64_t end)
{
    if (first >= end) return;
    for (int32_t i = 0; i < s->movings; i++) {
        const stk_chain_moving *m = &s->moving[i];
        f->at[m->place] = (char *)arg[m->arg] + first * m->size;
    }
    if (s->scalars) load_scalars(s, f, arg);
    if (s->rows && !s->cut_at_row) tile_rows(s, f, arg, first);
    for (;;) {
        int64_t n = stk_min_i64(s->tile, end - first);
        if (s->cut_at_row) n = stk_min_i64(n, s->row - first % s->row);
        run_tile(s, f, arg, first, n);
        first += n;
        if (first >= end) return;
        for (int32_t i = 0; i < s->movings; i++) f->at[s->moving[i].place] += n * s->moving[i].size;
    }
}

/* The segment that holds unit u. */
static int32_t find_segment(const stk_chain_state *s, int32_t segments, int64_t u)
{
    int32_t low = 0, high = segments - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (s->start[middle] <= u)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_chain *p = launch->params;
    const stk_chain_state *s = launch->state;
    if (lo >= hi) return;
    frame f;
    f.fill = stk_min_i64(s->tile, hi - lo);
    for (int32_t i = 0; i < s->slots; i++) f.at[i] = f.buffer + s->slot_offset[i];
    for (int32_t i = 0; i < s->scalars; i++) f.splatted[i] = NULL;
    for (int32_t i = 0; i < s->constants; i++)
        s->ew->splat[s->constant[i].lane](s->constant[i].wide ? f.fill : 1,
                                          f.at[s->constant[i].place], &s->constant[i].bits);
    int32_t segment = p->segments > 1 ? find_segment(s, p->segments, lo) : 0;
    for (; segment < p->segments && s->start[segment] < hi; segment++) {
        int64_t base = s->start[segment];
        run_segment(s, &f, launch->arg + (int64_t)segment * s->args, stk_max_i64(lo - base, 0),
                    stk_min_i64(hi, s->start[segment + 1]) - base);
    }
}

/* One operation on tiles that are all arguments: no buffer, no tiles. */
static void run_single(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_chain_state *s = launch->state;
    char *at[4];
    for (int k = 0; k < 4; k++)
        at[k] = (char *)launch->arg[s->single[k].arg] + lo * s->single[k].size;
    s->step[0].fn(hi - lo, at[0], at[1], at[2], at[3]);
}

/* Fills single[] when run_single can do it. */
static bool is_single(stk_chain_state *s, int32_t segments)
{
    if (s->steps != 1 || !s->step[0].fn || segments != 1) return false;
    if (s->loads || s->scalars || s->constants || s->strides || s->rows || s->stores) return false;
    const int16_t place[4] = {s->step[0].d, s->step[0].a, s->step[0].b, s->step[0].c};
    for (int k = 0; k < 4; k++) {
        int32_t m = 0;
        while (m < s->movings && s->moving[m].place != place[k]) m++;
        if (m == s->movings) return false;
        s->single[k] = s->moving[m];
    }
    return true;
}

/* ---- the implementation ---------------------------------------------------------------------- */

static bool reg_ok(const stk_chain *p, int32_t reg) { return reg >= 0 && reg < p->regs; }

static bool op_ok(const stk_chain *p, const stk_vec_ew *ew, const stk_chain_op *op)
{
    if (op->code < 0 || op->code >= STK_EW_COUNT || op->lane < 0 || op->lane >= STK_LANES ||
        op->from < 0 || op->from >= STK_LANES)
        return false;
    int arity = stk_ew_arity((stk_ew)op->code);
    if (!reg_ok(p, op->dst) || !reg_ok(p, op->a) || (arity > 1 && !reg_ok(p, op->b)) ||
        (arity > 2 && !reg_ok(p, op->c)))
        return false;
    return op->code == STK_EW_CAST || ew->op[op->code][op->lane] != NULL;
}

static bool dtype_ok(int32_t dtype)
{
    return dtype >= 0 && dtype < STK_DTYPE_COUNT && dtype != STK_STRING;
}

static bool supports(const void *params)
{
    const stk_chain *p = params;
    const stk_vec_ew *ew = stk_vec_get()->ew;
    if (p->inputs < 0 || p->inputs > STK_CHAIN_IO || p->outputs < 1 || p->outputs > STK_CHAIN_IO ||
        p->constants < 0 || p->constants > STK_CHAIN_IO || p->ops < 0 || p->ops > STK_CHAIN_OPS ||
        p->regs < 1 || p->regs > STK_CHAIN_REGS || p->segments < 0 || p->inputs > p->regs)
        return false;
    for (int32_t i = 0; i < p->inputs; i++) {
        bool plain =
            p->input[i].access == STK_ACCESS_DENSE || p->input[i].access == STK_ACCESS_SCALAR;
        if (!dtype_ok(p->input[i].dtype) || (!plain && p->segments > 1)) return false;
    }
    for (int32_t i = 0; i < p->constants; i++)
        if (!reg_ok(p, p->constant[i].reg)) return false;
    for (int32_t i = 0; i < p->ops; i++)
        if (!op_ok(p, ew, &p->op[i])) return false;
    for (int32_t i = 0; i < p->outputs; i++)
        if (!dtype_ok(p->output[i].dtype) || !reg_ok(p, p->output[i].reg) ||
            stk_lane_of((stk_dtype)p->output[i].dtype) != (stk_lane)p->reg_lane[p->output[i].reg])
            return false;
    return true;
}

static int64_t units(const void *params)
{
    const stk_chain *p = params;
    int64_t total = 0;
    for (int32_t i = 0; i < p->segments; i++) total += p->count[i];
    return total;
}

/* A part should last about 2 us: more than the fork and join around it. */
static int64_t grain(const void *params)
{
    const stk_chain *p = params;
    int64_t cost = p->inputs + p->outputs + 1; /* of one element, in 1/16 ns */
    for (int32_t i = 0; i < p->ops; i++) {
        stk_ew code = (stk_ew)p->op[i].code;
        bool heavy = (code >= STK_EW_EXP && code <= STK_EW_GELU_TANH) || code == STK_EW_POW ||
                     code == STK_EW_GELU_ERF_GRAD || code == STK_EW_GELU_TANH_GRAD ||
                     code == STK_EW_MOD || code == STK_EW_ATAN2;
        cost += heavy ? (p->op[i].lane == STK_LANE_F32 ? 12 : 100) : 1;
    }
    return stk_max_i64(32000 / cost, STK_TILE_MIN);
}

static stk_status prepare(stk_launch *launch, stk_error *err)
{
    const stk_chain *p = launch->params;
    launch->state = stk_chain_state_new(p);
    if (!launch->state)
        return stk_fail_memory(err, "an elementwise program", sizeof(stk_chain_state));
    if (is_single(launch->state, p->segments)) launch->run = run_single;
    return STK_OK;
}

static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

static uint32_t aligned(const void *params)
{
    const stk_chain *p = params;
    uint32_t mask = 0;
    if (p->segments != 1) return 0;
    for (int32_t i = 0; i < p->inputs + p->outputs && i < 32; i++)
        if (i >= p->inputs || p->input[i].access == STK_ACCESS_DENSE) mask |= 1u << i;
    return mask;
}

const stk_impl stk_impl_chain_vec = {.name = "vec",
                                     .kernel = STK_K_CHAIN,
                                     .rank = 0,
                                     .supports = supports,
                                     .units = units,
                                     .grain = grain,
                                     .aligned = aligned,
                                     .prepare = prepare,
                                     .discard = discard,
                                     .run = run};
