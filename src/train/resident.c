/* Data on the device: the store that holds it and a program per size of batch that picks rows. */
#include "train/resident.h"

#include "base/cpus.h"
#include "base/tensor.h"
#include "base/trace.h"
#include "graph/run/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of so many rows, and the program that picks them. */
typedef struct picker {
    int64_t rows;
    stk_program *program;
    stk_tensor *numbers;          /* int32 [rows] */
    int32_t input[STK_PARTS_MAX]; /* per result: input of the step's program */
} picker;

enum { WHOLE, TAIL, SIZES };

struct stk_resident {
    stk_device *device;
    stk_store *store; /* "a0", "a1" ... */
    int64_t bytes;
    picker of[SIZES];
};

/* ---- opening --------------------------------------------------------------------------------------------- */

static bool fits(const stk_batches *b, int64_t *bytes)
{
    enum { SHARE = 4 };
    const stk_device_caps *caps = &b->how.device->caps;
    int64_t memory = caps->memory > 0 ? caps->memory : stk_memory_left("");
    *bytes = 0;
    for (int32_t i = 0; i < b->narrays; i++) {
        const stk_tensor *a = b->arrays[i];
        int64_t part = stk_tensor_bytes(a) / stk_max_i64(a->shape[0], 1) * b->total;
        if (a->dtype == STK_STRING || part > INT32_MAX) return false;
        if (caps->largest_block > 0 && part > caps->largest_block) return false;
        *bytes += part;
    }
    return *bytes <= memory / SHARE;
}

static stk_status send_up(stk_resident *r, const stk_batches *b, stk_error *err)
{
    for (int32_t i = 0; i < b->narrays; i++) {
        stk_tensor *a = b->arrays[i], *used = NULL;
        int64_t start[STK_MAX_RANK] = {b->how.first}, shape[STK_MAX_RANK];
        char name[16];
        memcpy(shape, a->shape, sizeof shape);
        shape[0] = b->total;
        snprintf(name, sizeof name, "a%d", i);
        STK_TRY(stk_tensor_slice(a, start, shape, &used, err));
        stk_type type = {a->dtype, stk_tensor_shape(used)};
        stk_address at;
        stk_status status = stk_store_bind(r->store, name, &type, &at, err);
        if (status == STK_OK) status = stk_store_set(r->store, name, used, err);
        stk_tensor_release(used);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

stk_status stk_resident_open(stk_batches *b, stk_error *err)
{
    const char *wish = getenv("STOKER_DEVICE_DATA");
    stk_device *d = b->how.device;
    int64_t bytes = 0;
    if (b->dataset || !d || stk_device_shares(d) || (wish && !strcmp(wish, "off"))) return STK_OK;
    if (b->total <= b->how.batch || !fits(b, &bytes)) return STK_OK;
    stk_resident *r = stk_calloc(1, sizeof *r);
    if (!r) return stk_fail_memory(err, "data on the device", sizeof *r);
    *r = (stk_resident){.device = stk_device_retain(d), .bytes = bytes};
    uint64_t start = stk_trace_start();
    stk_status status = stk_store_new(d, &r->store, err);
    if (status == STK_OK) status = send_up(r, b, err);
    stk_trace_span(start, "data to device", 0);
    if (status == STK_OK) {
        b->resident = r;
        return STK_OK;
    }
    stk_resident_close(r);
    return status == STK_ERR_MEMORY ? STK_OK : status; /* no room: batch by batch, then */
}

void stk_resident_close(stk_resident *r)
{
    if (!r) return;
    for (int i = 0; i < SIZES; i++) {
        stk_program_release(r->of[i].program);
        stk_tensor_release(r->of[i].numbers);
    }
    stk_store_release(r->store);
    stk_device_release(r->device);
    stk_free(r);
}

int64_t stk_resident_bytes(const stk_resident *r) { return r ? r->bytes : 0; }

/* ---- picking --------------------------------------------------------------------------------------------- */

static int32_t find_input(const stk_program *p, const char *name)
{
    int32_t i = 0;
    while (i < p->nfeeds && strcmp(p->feeds[i].name, name)) i++;
    return i;
}

/* One result per array that the step reads from memory; those of a few bytes come with the run. */
static stk_status make_picker(stk_resident *r, const stk_batches *b, const stk_program *p,
                              const char *const *names, picker *k, stk_error *err)
{
    stk_graph *g = NULL;
    int32_t n = 0;
    STK_TRY(stk_tensor_new(STK_I32, 1, &k->rows, &k->numbers, err));
    STK_TRY(stk_graph_new(&g, err));
    stk_val rows = stk_g_input(g, "rows", STK_I32, 1, &k->rows);
    for (int32_t i = 0; i < b->narrays; i++) {
        const stk_tensor *a = b->arrays[i];
        int64_t shape[STK_MAX_RANK];
        char name[16];
        int32_t input = find_input(p, names[i]);
        if (p->feeds[input].uniform_at >= 0) continue;
        memcpy(shape, a->shape, sizeof shape);
        shape[0] = b->total;
        snprintf(name, sizeof name, "a%d", i);
        stk_val y = stk_g_gather(g, stk_g_variable(g, name, a->dtype, a->rank, shape), rows, 0);
        if (a->dtype != p->feeds[input].type.dtype)
            y = stk_g_cast(g, y, p->feeds[input].type.dtype);
        k->input[n++] = input;
        stk_g_output(g, name, y);
    }
    stk_program_options o = {.device = r->device, .store = r->store};
    stk_status status = n ? stk_program_new(g, &o, &k->program, err) : STK_OK;
    stk_graph_release(g);
    return status;
}

static stk_status pick(const stk_batches *b, picker *k, stk_program *p, stk_error *err)
{
    int32_t *number = k->numbers->data;
    int64_t at = stk_rows_first(b);
    if (!k->program) return STK_OK;
    for (int64_t i = 0; i < k->rows; i++)
        number[i] = (int32_t)(b->order ? b->order[at + i] : at + i);
    STK_TRY(stk_program_feed(k->program, "rows", k->numbers, err));
    STK_TRY(stk_program_run(k->program, 1, err));
    for (int32_t o = 0; o < k->program->nfetches;
         o++) { /* in line: read before the next is picked */
        p->slots[k->input[o]] = stk_program_address(k->program, &k->program->fetches[o].link);
        p->feeds[k->input[o]].fed = true;
    }
    return STK_OK;
}

stk_status stk_resident_call(stk_batches *b, stk_function *f, stk_tensor *const *x,
                             stk_program **program, stk_error *err)
{
    picker *k = &b->resident->of[b->rows == b->how.batch ? WHOLE : TAIL];
    int32_t n = 0;
    const char *const *names = stk_function_names(f, &n);
    STK_TRY(stk_function_pick(f, x, program, err));
    stk_program *p = *program;
    if (!k->numbers) {
        k->rows = b->rows;
        STK_TRY(make_picker(b->resident, b, p, names, k, err));
    }
    STK_TRY(pick(b, k, p, err));
    for (int32_t i = 0; i < n; i++) {
        bool weights = i >= b->narrays;
        if (!weights && p->feeds[find_input(p, names[i])].uniform_at < 0) continue;
        if (!weights) stk_rows_copy(b, i);
        STK_TRY(stk_program_feed(p, names[i], x[i], err));
    }
    return STK_OK;
}
