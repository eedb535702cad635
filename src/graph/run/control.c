/* Control flow at run time. Nothing is allocated here: addresses are patched, bodies run, carried values are copied only
 * when a body passes one through unchanged. */
#include "graph/run/control.h"
#include "graph/run/island.h"

#include "base/clock.h"
#include "base/trace.h"
#include "graph/ir/op.h"
#include "stoker/tracing.h"

#include <string.h>

/* ---- making ------------------------------------------------------------------------------------------- */

static stk_status compile_bodies(stk_control *c, const stk_node *n,
                                 const stk_program_options *options, stk_error *err)
{
    if (n->op == STK_OP_ISLAND)
        return stk_crossing_new(options->device, n->subs[0], options, &c->crossing, err);
    for (int32_t s = 0; s < n->nsubs; s++)
        STK_TRY(stk_program_compile(n->subs[s], options, STK_COMPILE_OUTSIDE, &c->body[s], err));
    return STK_OK;
}

static stk_status make_carry_buffers(stk_device *d, stk_control *c, stk_error *err)
{
    int64_t bytes = STK_ALIGN; /* the condition's result */
    for (int64_t i = 0; i < c->ncarry; i++) bytes += 2 * stk_round_up(c->in_bytes[i], STK_ALIGN);
    c->arg = stk_calloc((size_t)(c->nin + c->nout) + 1, sizeof *c->arg);
    c->carry[0] = stk_calloc((size_t)c->ncarry + 1, sizeof *c->carry[0]);
    c->carry[1] = stk_calloc((size_t)c->ncarry + 1, sizeof *c->carry[1]);
    c->memory = d->vt->memory.alloc(d, (size_t)bytes);
    if (!c->arg || !c->carry[0] || !c->carry[1] || !c->memory)
        return stk_fail_memory(err, "loop", (size_t)bytes);
    int64_t at = STK_ALIGN;
    for (int64_t i = 0; i < c->ncarry; i++)
        for (int s = 0; s < 2; s++) {
            c->carry[s][i] = stk_address_of(c->memory, at);
            at += stk_round_up(c->in_bytes[i], STK_ALIGN);
        }
    return STK_OK;
}

static void read_attributes(stk_control *c, const stk_node *n)
{
    if (n->op == STK_OP_WHILE) c->ncarry = n->ints[0];
    if (n->op != STK_OP_SCAN) return;
    c->ncarry = n->ints[0];
    c->nxs = n->ints[1];
    c->trips = n->ints[2];
    c->reverse = n->ints[3];
    c->saved = n->ints[4];
}

stk_status stk_control_new(const stk_program *p, const stk_node *n,
                           const stk_program_options *options, stk_control **out, stk_error *err)
{
    stk_control *c = stk_calloc(1, sizeof *c);
    if (!c) return stk_fail_memory(err, "control flow", sizeof *c);
    c->op = n->op;
    c->nin = n->nin;
    c->nout = n->nout;
    read_attributes(c, n);
    c->in_bytes = stk_calloc((size_t)n->nin + 1, sizeof *c->in_bytes);
    c->out_bytes = stk_calloc((size_t)n->nout + 1, sizeof *c->out_bytes);
    stk_status status =
        c->in_bytes && c->out_bytes ? STK_OK : stk_fail_memory(err, "control flow", 0);
    for (int32_t i = 0; i < n->nin && status == STK_OK; i++) {
        bool sliced = i >= c->ncarry && i < c->ncarry + c->nxs && c->trips;
        c->in_bytes[i] = stk_type_bytes(stk_type_of(p->g, n->in[i])) / (sliced ? c->trips : 1);
    }
    for (int32_t o = 0; o < n->nout && status == STK_OK; o++) {
        bool sliced = n->op == STK_OP_SCAN && o >= c->ncarry && c->trips;
        c->out_bytes[o] = stk_type_bytes(stk_type_of(p->g, n->out + o)) / (sliced ? c->trips : 1);
    }
    if (status == STK_OK) status = compile_bodies(c, n, options, err);
    if (status == STK_OK) status = make_carry_buffers(p->device, c, err);
    if (status == STK_OK)
        *out = c;
    else
        stk_control_release(p->device, c);
    return status;
}

void stk_control_release(stk_device *device, stk_control *c)
{
    if (!c) return;
    stk_crossing_release(c->crossing);
    stk_program_release(c->body[0]);
    stk_program_release(c->body[1]);
    if (c->memory) device->vt->memory.free(c->memory);
    stk_free(c->arg);
    stk_free(c->carry[0]);
    stk_free(c->carry[1]);
    stk_free(c->in_bytes);
    stk_free(c->out_bytes);
    stk_free(c);
}

/* ---- running ---------------------------------------------------------------------------------------------- */

/* Results that the body does not compute (an input passed through, a constant, one value given twice) are copied. */
static stk_status copy_passed(stk_device *d, const stk_program *b, int32_t o, int64_t bytes,
                              stk_error *err)
{
    const stk_fetch *f = &b->fetches[o];
    stk_address to = b->slots[b->nfeeds + o], from = stk_program_address(b, &f->link);
    if (bytes == 0 || stk_address_equal(from, to)) return STK_OK;
    return d->vt->queue.copy(d, to, from, (size_t)bytes, err);
}

/* Runs the body with these inputs and results. */
static stk_status run_body(stk_device *d, stk_program *b, int32_t nin, const stk_address *in,
                           int32_t nout, const stk_address *out, const int64_t *bytes,
                           stk_error *err)
{
    for (int32_t i = 0; i < nin; i++) {
        b->slots[i] = in[i];
        b->feeds[i].fed = true;
    }
    for (int32_t o = 0; o < nout; o++) b->slots[b->nfeeds + o] = out[o];
    STK_TRY(stk_program_run(b, 1, err));
    for (int32_t o = 0; o < nout; o++) STK_TRY(copy_passed(d, b, o, bytes[o], err));
    return STK_OK;
}

static stk_status read_bool(stk_device *d, stk_address at, bool *out, stk_error *err)
{
    uint8_t byte = 0;
    uint64_t start = stk_device_shares(d) ? 0 : stk_trace_start();
    STK_TRY(d->vt->queue.get(d, &byte, at, 1, err));
    stk_trace_span(start, "program wait", 0);
    *out = byte != 0;
    return STK_OK;
}

static stk_status run_cond(stk_device *d, const stk_control *c, const stk_address *arg,
                           stk_error *err)
{
    bool yes = false;
    STK_TRY(read_bool(d, arg[0], &yes, err));
    return run_body(d, c->body[yes ? 0 : 1], c->nin - 1, arg + 1, c->nout, arg + c->nin,
                    c->out_bytes, err);
}

/* ---- loops that may be called away ------------------------------------------------------------------------- */

enum { MOST = 512, LOOK_UP_NS = 50000000 };
static __thread struct {
    bool (*ask)(void *context);
    void *context;
    int64_t asked;
} interrupt __attribute__((tls_model("initial-exec")));

void stk_loop_interrupt(bool (*ask)(void *context), void *context)
{
    interrupt.ask = ask;
    interrupt.context = context;
}

static stk_status may_go_on(stk_error *err)
{
    if (!interrupt.ask) return STK_OK;
    int64_t now = stk_now_ns();
    if (now - interrupt.asked < LOOK_UP_NS) return STK_OK;
    bool over = interrupt.ask(interrupt.context);
    interrupt.asked = stk_now_ns();
    STK_TRY(stk_host_failure(err)); /* an answer that is a failure of its own says more */
    return over ? stk_fail(err, STK_ERR_CANCELLED, "interrupted in a loop of a program") : STK_OK;
}

static stk_status run_while(stk_device *d, const stk_control *c, const stk_address *arg,
                            stk_error *err)
{
    stk_address in[MOST];
    const int64_t one = 1;
    const stk_address pred = stk_address_of(c->memory, 0);
    memcpy(in, arg, (size_t)c->nin * sizeof *in);
    for (int turn = 0;; turn ^= 1) {
        bool more = false;
        STK_TRY(may_go_on(err));
        STK_TRY(run_body(d, c->body[0], c->nin, in, 1, &pred, &one, err));
        STK_TRY(read_bool(d, pred, &more, err));
        if (!more) break;
        STK_TRY(run_body(d, c->body[1], c->nin, in, (int32_t)c->ncarry, c->carry[turn], c->in_bytes,
                         err));
        for (int64_t i = 0; i < c->ncarry; i++) in[i] = c->carry[turn][i];
    }
    for (int64_t i = 0; i < c->ncarry; i++)
        if (c->in_bytes[i])
            STK_TRY(d->vt->queue.copy(d, arg[c->nin + i], in[i], (size_t)c->in_bytes[i], err));
    return STK_OK;
}

/* Addresses of one trip: slices of xs and ys, carries where they are. The last trip writes the carry's outputs. */
static stk_status run_trip(stk_device *d, const stk_control *c, const stk_address *arg,
                           int64_t trip, bool last, int turn, stk_address *in, stk_error *err)
{
    stk_address out[MOST];
    const stk_address *result = arg + c->nin;
    int64_t at = c->reverse ? c->trips - 1 - trip : trip;
    int32_t body_outputs = c->body[0]->nfetches;
    for (int64_t i = c->ncarry; i < c->ncarry + c->nxs; i++)
        in[i] = stk_address_plus(arg[i], at * c->in_bytes[i]);
    for (int64_t i = 0; c->saved && i < c->ncarry; i++) {
        stk_address slot = stk_address_plus(result[body_outputs + i], at * c->in_bytes[i]);
        if (c->in_bytes[i]) STK_TRY(d->vt->queue.copy(d, slot, in[i], (size_t)c->in_bytes[i], err));
    }
    for (int32_t o = 0; o < body_outputs; o++)
        out[o] = o >= c->ncarry ? stk_address_plus(result[o], at * c->out_bytes[o])
                 : last         ? result[o]
                                : c->carry[turn][o];
    STK_TRY(run_body(d, c->body[0], c->nin, in, body_outputs, out, c->out_bytes, err));
    for (int64_t i = 0; i < c->ncarry; i++) in[i] = out[i];
    return STK_OK;
}

static stk_status run_scan(stk_device *d, const stk_control *c, const stk_address *arg,
                           stk_error *err)
{
    stk_address in[MOST];
    memcpy(in, arg, (size_t)c->nin * sizeof *in);
    for (int64_t t = 0; t < c->trips; t++) {
        STK_TRY(may_go_on(err));
        STK_TRY(run_trip(d, c, arg, t, t + 1 == c->trips, (int)(t & 1), in, err));
    }
    for (int64_t i = 0; c->trips == 0 && i < c->ncarry; i++)
        if (c->in_bytes[i])
            STK_TRY(d->vt->queue.copy(d, arg[c->nin + i], arg[i], (size_t)c->in_bytes[i], err));
    return STK_OK;
}

stk_status stk_control_run(const stk_program *p, const stk_control *c, const stk_link *links,
                           stk_error *err)
{
    for (int32_t i = 0; i < c->nin + c->nout; i++) c->arg[i] = stk_program_address(p, &links[i]);
    switch (c->op) {
    case STK_OP_COND: return run_cond(p->device, c, c->arg, err);
    case STK_OP_ISLAND: return stk_crossing_run(c->crossing, c->arg, err);
    case STK_OP_WHILE: return run_while(p->device, c, c->arg, err);
    default: return run_scan(p->device, c, c->arg, err);
    }
}
