/* Elementwise programs (kernels.h: chain) over tiles, without generating code.
 *
 * prepare() turns the program into steps over `places`. A place is a pointer that is good for one tile:
 *
 *     slot     a tile in the worker's buffer        intermediate values, splats, converted inputs
 *     moving   an argument at the current element   inputs and outputs stored just as their lane computes
 *
 * so a chain over dense floats touches no memory but its arguments and a few L1-sized slots. Values get slots
 * by lifetime: a slot is free again after the last step that reads it, which keeps the buffer small and
 * the tile long. run() then only bumps pointers and calls tile functions. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/walk.h"

#include <string.h>

enum {
    BUFFER_WANTED = 24 << 10, /* leaves room in L1 for what streams through */
    TILE_MIN = 64,
    TILE_MAX = 1024,
    BUFFER_MOST =
        STK_CHAIN_REGS * (4 + 8) * TILE_MIN, /* every register twice, in both slot sizes */
    PLACES = 2 * STK_CHAIN_REGS + 2 * STK_CHAIN_IO,
    VALUES = 2 * STK_CHAIN_IO + STK_CHAIN_OPS,
};
_Static_assert(BUFFER_MOST >= BUFFER_WANTED, "the buffer holds what is wanted");

typedef struct step {
    stk_tile_fn fn;
    stk_tile_move cast; /* when fn is NULL */
    int16_t d, a, b, c; /* places */
} step;

typedef struct moving {
    int16_t place, arg;
    int32_t size;
} moving;

typedef struct transfer { /* between an argument and a place, once per tile or per run */
    stk_tile_move move;
    int16_t place, arg;
    int32_t size;
    int32_t lane;
    bool wide; /* scalars: spread over a tile */
} transfer;

/* Strides of an input, with joinable dimensions joined. */
typedef struct walk {
    int32_t rank;
    int64_t dim[STK_MAX_RANK], stride[STK_MAX_RANK];
} walk;

typedef struct chain_state {
    const stk_vec_ew *ew;
    int32_t tile, slots, steps, movings, loads, scalars, constants, strides, rows, stores;
    int32_t args;    /* per segment */
    int64_t row;     /* length when there are ROW inputs, else 0 */
    bool cut_at_row; /* rows are longer than a tile: tiles end where they end */
    int32_t slot_offset[PLACES];
    step step[STK_CHAIN_OPS];
    moving moving[2 * STK_CHAIN_IO];
    transfer load[STK_CHAIN_IO];    /* DENSE with a conversion */
    transfer strided[STK_CHAIN_IO]; /* STRIDED */
    transfer scalar[STK_CHAIN_IO];  /* SCALAR */
    transfer row_load[STK_CHAIN_IO];
    transfer store[STK_CHAIN_IO];
    struct {
        int16_t place, lane;
        bool wide;
        int64_t bits;
    } constant[STK_CHAIN_IO];
    moving single[4];        /* result and operands of a lone step */
    walk walk[STK_CHAIN_IO]; /* of strided[] */
    int64_t start[];         /* [segments + 1] first unit of each segment */
} chain_state;

/* ---- prepare ------------------------------------------------------------------------------- */

typedef struct value {
    int32_t lane;
    int32_t last;  /* step that reads it last; `ops` = a store at the end, FOREVER = never reused */
    int32_t place; /* -1: none yet */
    bool made;     /* by a step */
    bool number;   /* one number for all elements */
    bool wide;     /* a number that some step needs as a tile */
} value;

enum { FOREVER = 1 << 20 };

typedef struct builder {
    const stk_chain *p;
    chain_state *s;
    value value[VALUES];
    int32_t values;
    int32_t of_reg[STK_CHAIN_REGS]; /* the value a register holds now */
    int32_t operand[STK_CHAIN_OPS][3], result[STK_CHAIN_OPS], output[STK_CHAIN_IO];
    int32_t free_slot[2][PLACES], free_slots[2]; /* by size: 4, 8 */
    int32_t places;
    int32_t bytes; /* of all slots, per element */
} builder;

static int32_t new_value(builder *b, int32_t reg, int32_t lane, bool made)
{
    b->value[b->values] = (value){.lane = lane, .last = -1, .place = -1, .made = made};
    b->of_reg[reg] = b->values;
    return b->values++;
}

static void read_by(builder *b, int32_t v, int32_t when)
{
    if (b->value[v].last < when) b->value[v].last = when;
}

/* Which value each operand is, and when each is read last. */
static void number_values(builder *b)
{
    const stk_chain *p = b->p;
    for (int32_t i = 0; i < p->inputs; i++)
        new_value(b, i, (int32_t)stk_lane_of((stk_dtype)p->input[i].dtype), false);
    for (int32_t i = 0; i < p->constants; i++)
        new_value(b, p->constant[i].reg, p->constant[i].lane, false);
    for (int32_t i = 0; i < p->ops; i++) {
        const stk_chain_op *op = &p->op[i];
        int16_t regs[3] = {op->a, op->b, op->c};
        int arity = stk_ew_arity((stk_ew)op->code);
        for (int k = 0; k < 3; k++) {
            b->operand[i][k] = b->of_reg[regs[k < arity ? k : 0]];
            read_by(b, b->operand[i][k], i);
        }
        b->result[i] = new_value(b, op->dst, p->reg_lane[op->dst], true);
    }
    for (int32_t i = 0; i < p->outputs; i++) {
        b->output[i] = b->of_reg[p->output[i].reg];
        read_by(b, b->output[i], p->ops);
    }
}

static int32_t new_slot(builder *b, int32_t lane)
{
    int64_t size = stk_lane_size((stk_lane)lane);
    int32_t class = size == 8;
    if (b->free_slots[class]) return b->free_slot[class][--b->free_slots[class]];
    int32_t place = b->places++;
    b->s->slot_offset[place] = b->bytes; /* per element until the tile is known */
    b->bytes += (int32_t)size;
    b->s->slots = b->places;
    return place;
}

static void drop_slots(builder *b, int32_t step_index)
{
    for (int32_t v = 0; v < b->values; v++) {
        value *x = &b->value[v];
        if (x->last != step_index || x->place < 0 || x->place >= PLACES - 2 * STK_CHAIN_IO)
            continue;
        int32_t class = stk_lane_size((stk_lane)x->lane) == 8;
        b->free_slot[class][b->free_slots[class]++] = x->place;
        x->last = FOREVER; /* given back once */
    }
}

/* Moving places stand behind all slots. */
static int32_t new_moving(builder *b, int32_t arg, int32_t size)
{
    int32_t place = PLACES - 2 * STK_CHAIN_IO + b->s->movings;
    b->s->moving[b->s->movings++] =
        (moving){.place = (int16_t)place, .arg = (int16_t)arg, .size = size};
    return place;
}

static transfer transfer_of(const value *v, int32_t arg, stk_dtype dtype, stk_tile_move move)
{
    return (transfer){.move = move,
                      .place = (int16_t)v->place,
                      .arg = (int16_t)arg,
                      .size = (int32_t)stk_dtype_size(dtype),
                      .lane = v->lane};
}

static void add_strided(builder *b, int32_t i, const value *v, stk_dtype dtype)
{
    chain_state *s = b->s;
    walk *w = &s->walk[s->strides];
    memcpy(w->dim, b->p->dim, sizeof w->dim);
    memcpy(w->stride, b->p->input[i].stride, sizeof w->stride);
    w->rank = stk_collapse(b->p->rank, w->dim, 1, w->stride, STK_MAX_RANK);
    s->strided[s->strides++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
}

static void place_inputs(builder *b)
{
    chain_state *s = b->s;
    for (int32_t i = 0; i < b->p->inputs; i++) {
        const stk_chain_input *in = &b->p->input[i];
        stk_dtype dtype = (stk_dtype)in->dtype;
        value *v = &b->value[i];
        bool in_place = stk_lane_is_stored(dtype);
        if (in->walk == STK_WALK_DENSE && in_place) {
            v->place = new_moving(b, i, (int32_t)stk_dtype_size(dtype));
            continue;
        }
        v->place = new_slot(b, v->lane);
        if (in->walk == STK_WALK_DENSE) {
            s->load[s->loads++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
        } else if (in->walk == STK_WALK_STRIDED) {
            add_strided(b, i, v, dtype);
        } else if (in->walk == STK_WALK_ROW) {
            s->row_load[s->rows++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
            v->last = FOREVER;
        } else {
            s->scalar[s->scalars++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
            v->last = FOREVER;
            v->number = true;
        }
    }
}

static void place_constants(builder *b)
{
    chain_state *s = b->s;
    for (int32_t i = 0; i < b->p->constants; i++) {
        const stk_chain_const *constant = &b->p->constant[i];
        value *v = &b->value[b->p->inputs + i];
        v->place = new_slot(b, v->lane);
        v->last = FOREVER;
        v->number = true;
        int64_t bits = stk_lane_bits((stk_lane)constant->lane, constant->value);
        s->constant[i].place = (int16_t)v->place;
        s->constant[i].lane = (int16_t)v->lane;
        s->constant[i].bits = bits;
    }
    s->constants = b->p->constants;
}

/* Outputs that a step makes in their stored form are written by that step; the others at the end. */
static void place_outputs(builder *b)
{
    for (int32_t i = 0; i < b->p->outputs; i++) {
        value *v = &b->value[b->output[i]];
        stk_dtype dtype = (stk_dtype)b->p->output[i].dtype;
        if (v->made && v->place < 0 && stk_lane_is_stored(dtype))
            v->place = new_moving(b, b->p->inputs + i, (int32_t)stk_dtype_size(dtype));
    }
}

static bool commutes(stk_ew code)
{
    return code == STK_EW_ADD || code == STK_EW_MUL || code == STK_EW_MAX || code == STK_EW_MIN;
}

/* The function for this op. A number goes in as a number where there is a function for that; the others become tiles. */
static stk_tile_fn choose_function(builder *b, const stk_chain_op *op, int32_t *operand)
{
    stk_ew code = (stk_ew)op->code;
    value *v = b->value;
    int arity = stk_ew_arity(code), at = -1;
    bool swap = (commutes(code) && v[operand[0]].number && !v[operand[1]].number) ||
                ((code == STK_EW_FMA || code == STK_EW_FNMA) && v[operand[1]].number &&
                 !v[operand[0]].number);
    if (swap) {
        int32_t first = operand[0];
        operand[0] = operand[1];
        operand[1] = first;
    }
    for (int k = 0; k < arity && op->lane == STK_LANE_F32 && at < 0; k++)
        if (v[operand[k]].number && b->s->ew->scalar[code][k]) at = k;
    for (int k = 0; k < arity; k++)
        if (k != at) v[operand[k]].wide = true;
    return at < 0 ? b->s->ew->op[code][op->lane] : b->s->ew->scalar[code][at];
}

static void add_steps(builder *b)
{
    for (int32_t i = 0; i < b->p->ops; i++) {
        const stk_chain_op *op = &b->p->op[i];
        step *to = &b->s->step[b->s->steps++];
        int16_t at[3];
        if (op->code == STK_EW_CAST) {
            to->cast = b->s->ew->cast[op->from][op->lane];
            b->value[b->operand[i][0]].wide = true;
        } else {
            to->fn = choose_function(b, op, b->operand[i]);
        }
        for (int k = 0; k < 3; k++) at[k] = (int16_t)b->value[b->operand[i][k]].place;
        drop_slots(b, i); /* before the result gets one: it may take over an operand's */
        value *result = &b->value[b->result[i]];
        if (result->place < 0) result->place = new_slot(b, result->lane);
        to->d = (int16_t)result->place;
        to->a = at[0], to->b = at[1], to->c = at[2];
        if (result->last < 0) { /* nobody reads it */
            result->last = i;
            drop_slots(b, i);
        }
    }
}

static void add_stores(builder *b)
{
    for (int32_t i = 0; i < b->p->outputs; i++) {
        const value *v = &b->value[b->output[i]];
        stk_dtype dtype = (stk_dtype)b->p->output[i].dtype;
        int32_t arg = b->p->inputs + i;
        bool written = false;
        for (int32_t k = 0; k < b->s->movings; k++)
            written |= b->s->moving[k].arg == arg && b->s->moving[k].place == v->place;
        if (written) continue;
        b->s->store[b->s->stores++] = transfer_of(v, arg, dtype, b->s->ew->store[dtype]);
        b->value[b->output[i]].wide = true;
    }
}

/* How far each number is spread: over a tile, or not at all. */
static void note_widths(builder *b)
{
    chain_state *s = b->s;
    for (int32_t i = 0; i < s->scalars; i++) s->scalar[i].wide = b->value[s->scalar[i].arg].wide;
    for (int32_t i = 0; i < s->constants; i++)
        s->constant[i].wide = b->value[b->p->inputs + i].wide;
}

/* As long as the buffer allows. With rows, a whole number of them, so that a row tiled into a slot once
 * serves every tile. */
static void choose_tile(builder *b)
{
    chain_state *s = b->s;
    int64_t tile = b->p->tile < TILE_MIN ? TILE_MIN : b->p->tile > TILE_MAX ? TILE_MAX : b->p->tile;
    if (b->bytes && tile * b->bytes > BUFFER_WANTED) tile = BUFFER_WANTED / b->bytes;
    tile = tile / TILE_MIN * TILE_MIN;
    if (tile < TILE_MIN) tile = TILE_MIN;
    int64_t room = tile;
    if (s->rows) {
        s->row = b->p->rank ? b->p->dim[b->p->rank - 1] : 1;
        s->cut_at_row = s->row > tile;
        if (!s->cut_at_row && s->row > 0) tile -= tile % s->row;
    }
    s->tile = (int32_t)tile;
    for (int32_t i = 0; i < s->slots; i++) s->slot_offset[i] *= (int32_t)room;
}

static bool is_single(chain_state *s, int32_t segments);
static void run_single(const stk_launch *launch, int64_t lo, int64_t hi, int part);

static stk_status prepare(stk_launch *launch, stk_error *err)
{
    const stk_chain *p = launch->params;
    size_t bytes = sizeof(chain_state) + (size_t)(p->segments + 1) * sizeof(int64_t);
    chain_state *s = stk_calloc(1, bytes);
    if (!s) return stk_fail_memory(err, "an elementwise program", bytes);
    s->ew = stk_vec_get()->ew;
    s->args = p->inputs + p->outputs;
    for (int32_t i = 0; i < p->segments; i++) s->start[i + 1] = s->start[i] + p->count[i];
    builder b = {.p = p, .s = s};
    number_values(&b);
    place_inputs(&b);
    place_constants(&b);
    place_outputs(&b);
    add_steps(&b);
    add_stores(&b);
    note_widths(&b);
    choose_tile(&b);
    launch->state = s;
    if (is_single(s, p->segments)) launch->run = run_single;
    return STK_OK;
}

static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

/* ---- run ----------------------------------------------------------------------------------- */

typedef struct frame {
    char *at[PLACES];
    const void *splatted[STK_CHAIN_IO]; /* the scalar argument its slot was filled from */
    int64_t fill;                       /* elements that splats must cover */
    _Alignas(64) char buffer[BUFFER_MOST];
} frame;

static void load_scalars(const chain_state *s, frame *f, void *const *arg)
{
    for (int32_t i = 0; i < s->scalars; i++) {
        const transfer *t = &s->scalar[i];
        const void *from = arg[t->arg];
        if (from == f->splatted[i]) continue;
        int64_t one;
        t->move(1, &one, from);
        s->ew->splat[t->lane](t->wide ? f->fill : 1, f->at[t->place], &one);
        f->splatted[i] = from;
    }
}

/* Rows not longer than a tile: repeated into the slot from the phase of the first element on. */
static void tile_rows(const chain_state *s, frame *f, void *const *arg, int64_t first)
{
    int64_t phase = first % s->row;
    for (int32_t i = 0; i < s->rows; i++) {
        const transfer *t = &s->row_load[i];
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
static void row_piece(const chain_state *s, frame *f, void *const *arg, int64_t first, int64_t n)
{
    int64_t phase = first % s->row;
    for (int32_t i = 0; i < s->rows; i++) {
        const transfer *t = &s->row_load[i];
        char *from = (char *)arg[t->arg] + phase * t->size;
        if (t->size == stk_lane_size((stk_lane)t->lane))
            f->at[t->place] = from;
        else
            t->move(n, f->at[t->place], from);
    }
}

static void load_strided(const chain_state *s, frame *f, void *const *arg, int64_t first, int64_t n)
{
    int64_t raw[TILE_MAX];
    for (int32_t i = 0; i < s->strides; i++) {
        const transfer *t = &s->strided[i];
        const walk *w = &s->walk[i];
        bool direct = t->size == stk_lane_size((stk_lane)t->lane);
        void *to = direct ? (void *)f->at[t->place] : raw;
        stk_gather(t->size, n, to, arg[t->arg], first, w->rank, w->dim, w->stride);
        if (!direct) t->move(n, f->at[t->place], raw);
    }
}

static void run_tile(const chain_state *s, frame *f, void *const *arg, int64_t first, int64_t n)
{
    for (int32_t i = 0; i < s->loads; i++) {
        const transfer *t = &s->load[i];
        t->move(n, f->at[t->place], (const char *)arg[t->arg] + first * t->size);
    }
    if (s->strides) load_strided(s, f, arg, first, n);
    if (s->cut_at_row) row_piece(s, f, arg, first, n);
    for (int32_t i = 0; i < s->steps; i++) {
        const step *t = &s->step[i];
        if (t->fn)
            t->fn(n, f->at[t->d], f->at[t->a], f->at[t->b], f->at[t->c]);
        else
            t->cast(n, f->at[t->d], f->at[t->a]);
    }
    for (int32_t i = 0; i < s->stores; i++) {
        const transfer *t = &s->store[i];
        t->move(n, (char *)arg[t->arg] + first * t->size, f->at[t->place]);
    }
}

/* Elements [first, end) of one segment. */
static void run_segment(const chain_state *s, frame *f, void *const *arg, int64_t first,
                        int64_t end)
{
    if (first >= end) return;
    for (int32_t i = 0; i < s->movings; i++) {
        const moving *m = &s->moving[i];
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
static int32_t find_segment(const chain_state *s, int32_t segments, int64_t u)
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
    const chain_state *s = launch->state;
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
    const chain_state *s = launch->state;
    char *at[4];
    for (int k = 0; k < 4; k++)
        at[k] = (char *)launch->arg[s->single[k].arg] + lo * s->single[k].size;
    s->step[0].fn(hi - lo, at[0], at[1], at[2], at[3]);
}

/* Fills single[] when run_single can do it. */
static bool is_single(chain_state *s, int32_t segments)
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
        bool plain = p->input[i].walk == STK_WALK_DENSE || p->input[i].walk == STK_WALK_SCALAR;
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
        bool heavy = (code >= STK_EW_EXP && code <= STK_EW_ERFC) || code == STK_EW_POW ||
                     code == STK_EW_MOD || code == STK_EW_ATAN2;
        cost += heavy ? (p->op[i].lane == STK_LANE_F32 ? 12 : 100) : 1;
    }
    return stk_max_i64(32000 / cost, TILE_MIN);
}

static uint32_t aligned(const void *params)
{
    const stk_chain *p = params;
    uint32_t mask = 0;
    if (p->segments != 1) return 0;
    for (int32_t i = 0; i < p->inputs + p->outputs && i < 32; i++)
        if (i >= p->inputs || p->input[i].walk == STK_WALK_DENSE) mask |= 1u << i;
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
