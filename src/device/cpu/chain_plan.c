/* chain_plan.c - from an elementwise program (kernels.h: chain) to steps over places (chain.h).
 *
 * Values get slots by lifetime: a slot is free again after the last step that reads it, which keeps the buffer
 * small and the tile long. Runs of operations that have one function for all of them (vec/updates.h) become one
 * step. Casts between float32 and half types are no step at all: both are floats here, and what is loaded or stored as a half
 * is converted there; bfloat16 by the steps themselves where they have functions for that (vec/halves.h). */
#include "device/cpu/chain.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/halves.h"
#include "device/cpu/walk.h"

#include <string.h>

enum {
    BUFFER_WANTED = 24 << 10, /* leaves room in L1 for what streams through */
    VALUES = 2 * STK_CHAIN_IO + STK_CHAIN_OPS,
};
_Static_assert((int)STK_CHAIN_BUFFER >= (int)BUFFER_WANTED, "the buffer holds what is wanted");

typedef struct value {
    int32_t lane;
    int32_t last;  /* step that reads it last; `ops` = a store at the end, FOREVER = never reused */
    int32_t place; /* -1: none yet */
    bool made;     /* by a step */
    bool number;   /* one number for all elements */
    bool wide;     /* a number that some step needs as a tile */
    bool half;     /* its place is an argument of bfloat16 */
} value;

enum { FOREVER = 1 << 20 };

typedef struct builder {
    const stk_chain *p;
    stk_chain_state *s;
    const stk_vec_halves *halves; /* NULL: not on this processor */
    value value[VALUES];
    int32_t values;
    int32_t of_reg[STK_CHAIN_REGS]; /* the value a register holds now */
    int32_t operand[STK_CHAIN_OPS][3], result[STK_CHAIN_OPS], output[STK_CHAIN_IO];
    bool renames[STK_CHAIN_OPS];                           /* its result is its operand */
    int32_t free_slot[2][STK_CHAIN_PLACES], free_slots[2]; /* by size: 4, 8 */
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

/* Has an input that is read in its own memory, or an output, elements of this size? Results take over the memory of operands by
 * the order of the program's operations (may_share() in graph/plan/buffers.c), which a cast without a step no longer keeps. */
static bool dense_input_of(const stk_chain *p, int64_t size)
{
    for (int32_t i = 0; i < p->inputs; i++)
        if (p->input[i].access == STK_ACCESS_DENSE &&
            stk_dtype_size((stk_dtype)p->input[i].dtype) == size)
            return true;
    return false;
}

static bool output_of(const stk_chain *p, int64_t size)
{
    for (int32_t i = 0; i < p->outputs; i++)
        if (stk_dtype_size((stk_dtype)p->output[i].dtype) == size) return true;
    return false;
}

static bool only_renames(const builder *b, const stk_chain_op *op, int32_t operand)
{
    const stk_chain *p = b->p;
    if (op->code != STK_EW_CAST || op->from != STK_LANE_F32 || op->lane != STK_LANE_F32)
        return false;
    bool in_place = operand < p->inputs && p->input[operand].access == STK_ACCESS_DENSE &&
                    stk_lane_is_stored((stk_dtype)p->input[operand].dtype);
    return !in_place || !output_of(p, stk_dtype_size((stk_dtype)p->input[operand].dtype));
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
        b->renames[i] = only_renames(b, op, b->operand[i][0]);
        if (b->renames[i])
            b->of_reg[op->dst] = b->result[i] = b->operand[i][0];
        else
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
        if (x->last != step_index || x->place < 0 ||
            x->place >= STK_CHAIN_PLACES - 2 * STK_CHAIN_IO)
            continue;
        int32_t class = stk_lane_size((stk_lane)x->lane) == 8;
        b->free_slot[class][b->free_slots[class]++] = x->place;
        x->last = FOREVER; /* given back once */
    }
}

/* Moving places stand behind all slots. */
static int32_t new_moving(builder *b, int32_t arg, int32_t size)
{
    int32_t place = STK_CHAIN_PLACES - 2 * STK_CHAIN_IO + b->s->movings;
    b->s->moving[b->s->movings++] =
        (stk_chain_moving){.place = (int16_t)place, .arg = (int16_t)arg, .size = size};
    return place;
}

static stk_chain_transfer transfer_of(const value *v, int32_t arg, stk_dtype dtype,
                                      stk_tile_move move)
{
    return (stk_chain_transfer){.move = move,
                                .place = (int16_t)v->place,
                                .arg = (int16_t)arg,
                                .size = (int32_t)stk_dtype_size(dtype),
                                .lane = v->lane};
}

static void add_strided(builder *b, int32_t i, const value *v, stk_dtype dtype)
{
    stk_chain_state *s = b->s;
    stk_chain_walk *w = &s->walk[s->strides];
    memcpy(w->dim, b->p->dim, sizeof w->dim);
    memcpy(w->stride, b->p->input[i].stride, sizeof w->stride);
    w->rank = stk_collapse(b->p->rank, w->dim, 1, w->stride, STK_MAX_RANK);
    s->strided[s->strides++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
}

/* The output that renames input i, if that may be loaded straight into it: -1: none. */
static int32_t output_for(const builder *b, int32_t i)
{
    for (int32_t k = 0; k < b->p->outputs; k++) {
        stk_dtype dtype = (stk_dtype)b->p->output[k].dtype;
        if (b->output[k] == i && stk_lane_is_stored(dtype) &&
            !dense_input_of(b->p, stk_dtype_size(dtype)))
            return k;
    }
    return -1;
}

/* ---- bfloat16 in place ---------------------------------------------------------------------------------
 * Operands are read by the steps, and one result is written by the last step: behind every reading, since results share the memory
 * of operands (may_share() again). */

static bool has_half(const builder *b, int32_t op, int32_t kinds)
{
    const stk_chain_op *o = &b->p->op[op];
    return b->halves && o->lane == STK_LANE_F32 && b->halves->op[o->code][kinds];
}

/* May all readers of input v take it as it is stored? */
static bool read_as_half(const builder *b, int32_t v)
{
    if (b->p->input[v].dtype != STK_BF16) return false;
    for (int32_t i = 0; i < b->p->outputs; i++)
        if (b->output[i] == v) return false;
    for (int32_t i = 0; i < b->p->ops; i++)
        for (int32_t k = 0; k < stk_ew_arity((stk_ew)b->p->op[i].code); k++)
            if (!b->renames[i] && b->operand[i][k] == v && !has_half(b, i, STK_HALF_A << k))
                return false;
    return true;
}

/* The output that the last step may write as bfloat16; -1: none. */
static int32_t half_output(const builder *b)
{
    int32_t last = b->p->ops - 1, found = -1;
    while (last >= 0 && b->renames[last]) last--;
    if (last < 0 || !has_half(b, last, STK_HALF_RESULT)) return -1;
    for (int32_t i = 0; i < b->p->outputs; i++) {
        if (b->output[i] != b->result[last]) continue;
        if (found >= 0 || b->p->output[i].dtype != STK_BF16) return -1;
        found = i;
    }
    return found;
}

static int32_t halves_of(const builder *b, int32_t op, int arity)
{
    int32_t kinds = b->value[b->result[op]].half ? STK_HALF_RESULT : 0;
    for (int k = 0; k < arity; k++)
        if (b->value[b->operand[op][k]].half) kinds |= STK_HALF_A << k;
    return kinds;
}

static void place_inputs(builder *b)
{
    stk_chain_state *s = b->s;
    for (int32_t i = 0; i < b->p->inputs; i++) {
        const stk_chain_input *in = &b->p->input[i];
        stk_dtype dtype = (stk_dtype)in->dtype;
        value *v = &b->value[i];
        v->half = in->access == STK_ACCESS_DENSE && read_as_half(b, i);
        bool in_place = v->half || stk_lane_is_stored(dtype);
        if (in->access == STK_ACCESS_DENSE && in_place) {
            v->place = new_moving(b, i, (int32_t)stk_dtype_size(dtype));
            continue;
        }
        int32_t output = in->access == STK_ACCESS_DENSE ? output_for(b, i) : -1;
        v->place = output >= 0
                       ? new_moving(b, b->p->inputs + output,
                                    (int32_t)stk_dtype_size((stk_dtype)b->p->output[output].dtype))
                       : new_slot(b, v->lane);
        if (in->access == STK_ACCESS_DENSE) {
            s->load[s->loads++] = transfer_of(v, i, dtype, s->ew->load[dtype]);
        } else if (in->access == STK_ACCESS_STRIDED) {
            add_strided(b, i, v, dtype);
        } else if (in->access == STK_ACCESS_ROW) {
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
    stk_chain_state *s = b->s;
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

/* Is this output a value under another name, made before the operation that the program has for it? */
static bool is_renamed(const builder *b, int32_t output)
{
    int32_t reg = b->p->output[output].reg;
    for (int32_t i = b->p->ops - 1; i >= 0; i--)
        if (b->p->op[i].dst == reg) return b->renames[i];
    return false;
}

/* Outputs that a step makes in their stored form are written by that step; the others at the end. */
static void place_outputs(builder *b)
{
    const int32_t half = half_output(b);
    if (half >= 0) {
        value *v = &b->value[b->output[half]];
        v->half = true;
        v->place = new_moving(b, b->p->inputs + half, (int32_t)stk_dtype_size(STK_BF16));
    }
    for (int32_t i = 0; i < b->p->outputs; i++) {
        value *v = &b->value[b->output[i]];
        stk_dtype dtype = (stk_dtype)b->p->output[i].dtype;
        if (is_renamed(b, i) && dense_input_of(b->p, stk_dtype_size(dtype))) continue;
        if (v->made && v->place < 0 && stk_lane_is_stored(dtype))
            v->place = new_moving(b, b->p->inputs + i, (int32_t)stk_dtype_size(dtype));
    }
}

static bool commutes(stk_ew code)
{
    return code == STK_EW_ADD || code == STK_EW_MUL || code == STK_EW_MAX || code == STK_EW_MIN;
}

/* The function for op i. A number goes in as a number where there is a function for that; the others become tiles. */
static stk_tile_fn choose_function(builder *b, int32_t i)
{
    const stk_chain_op *op = &b->p->op[i];
    int32_t *operand = b->operand[i];
    stk_ew code = (stk_ew)op->code;
    value *v = b->value;
    int arity = stk_ew_arity(code), at = -1;
    const int32_t halves = halves_of(b, i, arity);
    if (halves) {
        for (int k = 0; k < arity; k++) v[operand[k]].wide = true;
        return b->halves->op[code][halves];
    }
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

/* ---- updates: several operations in one step -------------------------------------------------------- */

typedef struct update {
    int32_t mean, square, quotient, value; /* ops; mean is -1 where there is none */
    int32_t rate;                          /* the factor among the operands of `value` */
} update;

static bool is_op(const builder *b, int32_t i, stk_ew code)
{
    return i < b->p->ops && b->p->op[i].code == (int16_t)code && b->p->op[i].lane == STK_LANE_F32;
}

static bool is_moving_average(const builder *b, int32_t i)
{
    const int32_t *x = b->operand[i];
    return !b->value[x[0]].number && !b->value[x[1]].number && b->value[x[2]].number;
}

/* Do the operations from i on make up an update? */
static bool find_update(const builder *b, int32_t i, update *u)
{
    const value *v = b->value;
    bool after = is_op(b, i, STK_EW_LERP_SQUARE) && is_op(b, i + 1, STK_EW_LERP);
    bool before = is_op(b, i, STK_EW_LERP) && is_op(b, i + 1, STK_EW_LERP_SQUARE);
    *u = (update){.mean = after ? i + 1 : before ? i : -1, .square = before ? i + 1 : i};
    u->quotient = i + 1 + (after || before);
    u->value = u->quotient + 1;
    if (!is_op(b, u->square, STK_EW_LERP_SQUARE) || !is_op(b, u->quotient, STK_EW_DIV_SQRT) ||
        !is_op(b, u->value, STK_EW_FNMA))
        return false;
    const int32_t *quotient = b->operand[u->quotient], *last = b->operand[u->value];
    int32_t gradient = b->operand[u->square][1];
    int32_t divided = u->mean < 0 ? gradient : b->result[u->mean];
    u->rate = last[0] == b->result[u->quotient];
    if (u->mean >= 0 && (b->operand[u->mean][1] != gradient || !is_moving_average(b, u->mean)))
        return false;
    return is_moving_average(b, u->square) && quotient[0] == divided &&
           quotient[1] == b->result[u->square] && v[quotient[2]].number &&
           v[last[u->rate]].number && last[!u->rate] == b->result[u->quotient] &&
           !v[last[2]].number && last[2] != b->result[u->quotient] &&
           v[b->result[u->quotient]].last == u->value;
}

static int16_t place_result(builder *b, int32_t op)
{
    value *result = &b->value[b->result[op]];
    if (result->place < 0) result->place = new_slot(b, result->lane);
    return (int16_t)result->place;
}

static void drop_unread(builder *b, int32_t op)
{
    value *result = &b->value[b->result[op]];
    if (result->last >= 0) return;
    result->last = op;
    drop_slots(b, op);
}

/* The step for all of u; the next operation is the one behind it. Results get their slots before operands give
 * theirs back. */
static int32_t add_update(builder *b, const update *u)
{
    const stk_vec_updates *updates = stk_updates_pick(stk_vec_get()->updates);
    stk_chain_step *to = &b->s->step[b->s->steps++];
    const value *v = b->value;
    to->update = u->mean < 0 ? updates->plain : updates->with_mean;
    to->at[STK_UPDATE_SQUARE] = (int16_t)v[b->operand[u->square][0]].place;
    to->at[STK_UPDATE_GRADIENT] = (int16_t)v[b->operand[u->square][1]].place;
    to->at[STK_UPDATE_SQUARE_WEIGHT] = (int16_t)v[b->operand[u->square][2]].place;
    to->at[STK_UPDATE_OFFSET] = (int16_t)v[b->operand[u->quotient][2]].place;
    to->at[STK_UPDATE_RATE] = (int16_t)v[b->operand[u->value][u->rate]].place;
    to->at[STK_UPDATE_VALUE] = (int16_t)v[b->operand[u->value][2]].place;
    to->at[STK_UPDATE_NEW_SQUARE] = place_result(b, u->square);
    to->at[STK_UPDATE_NEW_VALUE] = place_result(b, u->value);
    if (u->mean >= 0) {
        to->at[STK_UPDATE_MEAN] = (int16_t)v[b->operand[u->mean][0]].place;
        to->at[STK_UPDATE_MEAN_WEIGHT] = (int16_t)v[b->operand[u->mean][2]].place;
        to->at[STK_UPDATE_NEW_MEAN] = place_result(b, u->mean);
    }
    for (int32_t i = u->quotient - 1 - (u->mean >= 0); i <= u->value; i++) drop_slots(b, i);
    drop_unread(b, u->value);
    return u->value + 1;
}

static void add_steps(builder *b)
{
    update u;
    for (int32_t i = 0; i < b->p->ops; i++) {
        if (b->renames[i]) {
            drop_slots(b, i);
            continue;
        }
        if (find_update(b, i, &u)) {
            i = add_update(b, &u) - 1;
            continue;
        }
        const stk_chain_op *op = &b->p->op[i];
        stk_chain_step *to = &b->s->step[b->s->steps++];
        int16_t at[3];
        if (op->code == STK_EW_CAST) {
            to->cast = b->s->ew->cast[op->from][op->lane];
            b->value[b->operand[i][0]].wide = true;
        } else {
            to->fn = choose_function(b, i);
        }
        for (int k = 0; k < 3; k++) at[k] = (int16_t)b->value[b->operand[i][k]].place;
        drop_slots(b, i); /* before the result gets one: it may take over an operand's */
        to->d = place_result(b, i);
        to->a = at[0], to->b = at[1], to->c = at[2];
        drop_unread(b, i);
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
    stk_chain_state *s = b->s;
    for (int32_t i = 0; i < s->scalars; i++) s->scalar[i].wide = b->value[s->scalar[i].arg].wide;
    for (int32_t i = 0; i < s->constants; i++)
        s->constant[i].wide = b->value[b->p->inputs + i].wide;
}

/* One update over arrays in place, and numbers: nothing of it needs a tile, and all elements at once keep the pipes full. */
static bool is_plain_update(const stk_chain_state *s)
{
    bool wide = false;
    for (int32_t i = 0; i < s->scalars; i++) wide |= s->scalar[i].wide;
    for (int32_t i = 0; i < s->constants; i++) wide |= s->constant[i].wide;
    return s->steps == 1 && s->step[0].update && !wide && !s->loads && !s->stores && !s->strides &&
           !s->rows;
}

/* As long as the buffer allows. With rows, a whole number of them, so that a row tiled into a slot once
 * serves every tile. */
static void choose_tile(builder *b)
{
    stk_chain_state *s = b->s;
    int64_t tile = b->p->tile < STK_TILE_MIN   ? STK_TILE_MIN
                   : b->p->tile > STK_TILE_MAX ? STK_TILE_MAX
                                               : b->p->tile;
    if (b->bytes && tile * b->bytes > BUFFER_WANTED) tile = BUFFER_WANTED / b->bytes;
    tile = tile / STK_TILE_MIN * STK_TILE_MIN;
    if (tile < STK_TILE_MIN) tile = STK_TILE_MIN;
    int64_t room = tile;
    if (s->rows) {
        s->row = b->p->rank ? b->p->dim[b->p->rank - 1] : 1;
        s->cut_at_row = s->row > tile;
        if (!s->cut_at_row && s->row > 0) tile -= tile % s->row;
    }
    s->tile = (int32_t)tile;
    for (int32_t i = 0; i < s->slots; i++) s->slot_offset[i] *= (int32_t)room;
    if (is_plain_update(s)) s->tile = INT32_MAX;
}

stk_chain_state *stk_chain_state_new(const stk_chain *p)
{
    stk_chain_state *s = stk_calloc(1, sizeof *s + (size_t)(p->segments + 1) * sizeof(int64_t));
    if (!s) return NULL;
    s->ew = stk_vec_get()->ew;
    s->args = p->inputs + p->outputs;
    for (int32_t i = 0; i < p->segments; i++) s->start[i + 1] = s->start[i] + p->count[i];
    builder b = {.p = p, .s = s};
    if (stk_isa_has_pairs()) b.halves = stk_vec_get()->halves;
    number_values(&b);
    place_inputs(&b);
    place_constants(&b);
    place_outputs(&b);
    add_steps(&b);
    add_stores(&b);
    note_widths(&b);
    choose_tile(&b);
    return s;
}
