/* Programs called like functions: inputs by number, results in tensors of the caller. */
#include "graph/run/call.h"

#include "base/tensor.h"
#include "device/tensor_device.h"
#include "stoker/tracing.h"

stk_status stk_program_new_caller(const stk_graph *g, const stk_program_options *options,
                                  stk_program **out, stk_error *err)
{
    return stk_program_compile(g, options, STK_COMPILE_CALLER, out, err);
}

int32_t stk_program_inputs(const stk_program *p) { return p ? p->nfeeds : 0; }
int32_t stk_program_outputs(const stk_program *p) { return p ? p->nfetches : 0; }

bool stk_call_fits(const stk_tensor *t, const stk_type *type)
{
    if (t->dtype != type->dtype || t->rank != type->shape.rank) return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->shape[i] != type->shape.dim[i]) return false;
    return true;
}

/* A tensor that is on a device: ours takes it where it is, for any other it comes down first. */
static stk_status input_from(stk_program *p, int32_t i, stk_tensor *t, stk_error *err)
{
    stk_feed *f = &p->feeds[i];
    if (stk_tensor_device(t) != p->device || !stk_call_fits(t, &f->type)) {
        stk_tensor *here = NULL;
        STK_TRY(stk_tensor_to(t, NULL, &here, err));
        stk_status status = stk_feed_slot(p, i, here, err);
        stk_tensor_release(here);
        return status;
    }
    f->fed = true;
    if (f->uniform_at < 0) {
        p->slots[i] = stk_tensor_place(t);
        return STK_OK;
    } /* goes along with the run's numbers, which come from the host */
    return p->device->vt->queue.get(p->device, p->uniforms + f->uniform_at, stk_tensor_place(t),
                                    (size_t)stk_type_bytes(&f->type), err);
}

stk_status stk_call_input(stk_program *p, int32_t i, stk_tensor *t, stk_error *err)
{
    stk_feed *f = &p->feeds[i];
    if (!t) return stk_fail(err, STK_ERR_ARGUMENT, "input %d ('%s') is NULL", i, f->name);
    if (stk_tensor_device(t)) return input_from(p, i, t, err);
    if (!stk_call_fits(t, &f->type) || !stk_tensor_is_dense(t) || !stk_device_shares(p->device))
        return stk_feed_slot(p, i, t, err);
    f->fed = true;
    p->slots[i] = stk_address_host(t->data);
    return STK_OK;
}

static stk_status give_result(stk_program *p, int32_t o, stk_tensor **out, stk_error *err)
{
    const stk_fetch *f = &p->fetches[o];
    if (!*out && p->results_stay) {
        STK_TRY(stk_tensor_on(p->device, f->type.dtype, &f->type.shape, out, err));
    } else if (!*out) {
        STK_TRY(stk_tensor_raw(f->type.dtype, f->type.shape.rank, f->type.shape.dim, out, err));
    } else if (!stk_call_fits(*out, &f->type) || !stk_tensor_is_dense(*out)) {
        return stk_fail(err, STK_ERR_SHAPE, "output %d is %s; the tensor given for it is not", o,
                        STK_TYPE_TEXT(&f->type));
    }
    if (f->outside) p->slots[p->nfeeds + o] = stk_address_host((*out)->data);
    return STK_OK;
}

/* Results that are not written right there: an input passed through, a constant, a variable, one value given twice; on a
 * device with memory of its own all of them. */
static stk_status copy_result(stk_program *p, int32_t o, stk_tensor *to, stk_error *err)
{
    stk_address from = stk_program_address(p, &p->fetches[o].link);
    size_t bytes = (size_t)stk_type_bytes(&p->fetches[o].type);
    if (bytes && stk_tensor_device(to) == p->device)
        return p->device->vt->queue.copy(p->device, stk_tensor_place(to), from, bytes, err);
    if (!bytes || stk_address_equal(from, stk_address_host(to->data))) return STK_OK;
    return p->device->vt->queue.get_later(p->device, to->data, from, bytes, err);
}

void stk_call_forget(stk_program *p)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        p->feeds[i].fed = false;
        stk_tensor_release(p->feeds[i].tensor);
        p->feeds[i].tensor = NULL;
    }
}

static stk_status call(stk_program *p, stk_tensor *const *in, stk_tensor **out, stk_error *err)
{
    for (int32_t i = 0; i < p->nfeeds; i++) STK_TRY(stk_call_input(p, i, in[i], err));
    for (int32_t o = 0; o < p->nfetches; o++) STK_TRY(give_result(p, o, &out[o], err));
    STK_TRY(stk_program_run(p, 1, err));
    bool wait = !p->results_stay;
    for (int32_t o = 0; o < p->nfetches; o++) {
        STK_TRY(copy_result(p, o, out[o], err));
        wait |= !stk_tensor_device(out[o]);
    }
    if (wait) return p->device->vt->queue.wait(p->device, err);
    return stk_feeds_used(p, err); /* until here: a result may be an input passed through */
}

void stk_program_results_stay(stk_program *p, bool stay)
{
    if (p) p->results_stay = stay && !stk_device_shares(p->device);
}

stk_status stk_program_call(stk_program *p, int32_t nin, stk_tensor *const *in, int32_t nout,
                            stk_tensor **out, stk_error *err)
{
    if (!p || nin != p->nfeeds || nout != p->nfetches || (nin && !in) || (nout && !out))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_call: %d inputs and %d outputs; the program has %d and %d",
                        nin, nout, p ? p->nfeeds : 0, p ? p->nfetches : 0);
    STK_TRY(stk_device_usable(p->device, err));
    stk_tensor **given = NULL; /* which of the results are the caller's own, in case of a failure */
    if (nout) given = stk_malloc((size_t)nout * sizeof *given);
    if (nout && !given) return stk_fail_memory(err, "stk_program_call", 0);
    for (int32_t o = 0; o < nout; o++) given[o] = out[o];
    stk_status status = call(p, in, out, err);
    stk_call_forget(p);
    for (int32_t o = 0; o < nout && status != STK_OK; o++)
        if (!given[o]) {
            stk_tensor_release(out[o]);
            out[o] = NULL;
        }
    stk_free(given);
    return status;
}
