/* Variables. Memory comes in slabs, so the parameters of a model lie side by side on huge pages and never move. */
#include "graph/run/store.h"

#include "base/trace.h"
#include "device/tensor_device.h"
#include "stoker/tracing.h"

#include <string.h>

enum { SLAB_MIN = 1 << 16, SLAB_MAX = 64 << 20 };

typedef struct slab {
    stk_block *block;
    int64_t used;
    bool small; /* holds small variables only */
} slab;

struct stk_store {
    stk_device *device;
    stk_variable *vars;
    int64_t count, capacity;
    stk_name_index names; /* -> place in vars */
    slab *slabs;
    int64_t nslabs, cap_slabs;
    int64_t bytes;
    int32_t refs;
};

stk_status stk_store_new(stk_device *device, stk_store **out, stk_error *err)
{
    if (!out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_store_new: out is NULL; pass the address of a stk_store *");
    stk_store *s = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "stk_store_new", sizeof *s);
    s->device = stk_device_retain(device);
    stk_status status = device ? STK_OK : stk_device_open("default", 0, &s->device, err);
    if (status != STK_OK) {
        stk_free(s);
        return status;
    }
    s->refs = 1;
    *out = s;
    return STK_OK;
}

stk_store *stk_store_retain(stk_store *s)
{
    if (s) __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

void stk_store_release(stk_store *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int64_t i = 0; i < s->count; i++) {
        stk_free(s->vars[i].name);
        stk_tensor_release(s->vars[i].adopted);
    }
    for (int64_t i = 0; i < s->nslabs; i++) s->device->vt->memory.free(s->slabs[i].block);
    stk_name_index_release(&s->names);
    stk_free(s->vars);
    stk_free(s->slabs);
    stk_device_release(s->device);
    stk_free(s);
}

int32_t stk_store_count(const stk_store *s) { return s ? (int32_t)s->count : 0; }
stk_device *stk_store_device(const stk_store *s) { return s->device; }
int64_t stk_store_bytes(const stk_store *s) { return s->bytes; }

const char *stk_store_name(const stk_store *s, int32_t index)
{
    return s && index >= 0 && index < s->count ? s->vars[index].name : NULL;
}

static stk_variable *find(const stk_store *s, const char *name)
{
    int64_t i = stk_name_index_find(&s->names, name, 0);
    return i >= 0 ? &s->vars[i] : NULL;
}

/* A core that walks down a weight fetches some rows past its end, and takes them from the core that owns what comes there. On devices
 * where weights have owners (src/device/cpu/plan/owners.c) nobody's weight comes there, and small variables are kept elsewhere. */
static int64_t gap_behind(int64_t bytes)
{
    enum { MOST = 8192 };
    return stk_round_up(stk_min_i64(bytes / 4, MOST), STK_ALIGN);
}

static slab *last_slab(stk_store *s, bool small)
{
    for (int64_t i = s->nslabs; i-- > 0;)
        if (s->slabs[i].small == small) return &s->slabs[i];
    return NULL;
}

/* The first slabs are small and grow, so that a tiny model does not hold megabytes. */
static bool take(stk_store *s, int64_t bytes, stk_address *out)
{
    enum { SMALL = 4096 };
    bytes = stk_round_up(stk_max_i64(bytes, 1), STK_ALIGN);
    const bool owners = s->device->caps.owners > 0, small = owners && bytes < SMALL;
    if (owners && !small) bytes += gap_behind(bytes);
    slab *last = last_slab(s, small);
    if (!last || (int64_t)last->block->bytes - last->used < bytes) {
        int64_t size = last ? stk_min_i64((int64_t)last->block->bytes * 4, SLAB_MAX) : SLAB_MIN;
        if (!STK_GROW(s->slabs, s->nslabs, s->cap_slabs)) return false;
        last = &s->slabs[s->nslabs];
        last->used = 0;
        last->small = small;
        last->block = s->device->vt->memory.alloc(s->device, (size_t)stk_max_i64(size, bytes));
        if (!last->block) return false;
        s->nslabs++;
    }
    *out = stk_address_of(last->block, last->used);
    last->used += bytes;
    return true;
}

stk_status stk_store_bind(stk_store *s, const char *name, const stk_type *type,
                          stk_address *address, stk_error *err)
{
    stk_variable *v = find(s, name);
    if (v && !stk_type_equal(&v->type, type))
        return stk_fail(
            err, STK_ERR_SHAPE,
            "variable '%s' is %s in the store, but %s is wanted; use another name or another store",
            name, STK_TYPE_TEXT(&v->type), STK_TYPE_TEXT(type));
    if (!v) {
        char *copy = stk_strdup(name);
        stk_address memory;
        if (!copy || !STK_GROW(s->vars, s->count, s->capacity) ||
            !take(s, stk_type_bytes(type), &memory) ||
            !stk_name_index_put(&s->names, copy, 0, s->count)) {
            stk_free(copy);
            return stk_fail_memory(err, name, (size_t)stk_type_bytes(type));
        }
        v = &s->vars[s->count++];
        *v = (stk_variable){.name = copy, .type = *type, .address = memory};
        s->bytes += stk_type_bytes(type);
    }
    *address = v->address;
    return STK_OK;
}

stk_status stk_store_set(stk_store *s, const char *name, const stk_tensor *t, stk_error *err)
{
    if (!s || !name || !*name || !t)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_store_set: store, name and tensor must be given");
    if (t->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "variable '%s': strings cannot be variables", name);
    stk_type type = {.dtype = t->dtype, .shape = {.rank = t->rank}};
    memcpy(type.shape.dim, t->shape, sizeof type.shape.dim);
    stk_address address;
    stk_tensor *dense = NULL;
    STK_TRY(stk_store_bind(s, name, &type, &address, err));
    STK_TRY(stk_tensor_dense((stk_tensor *)(uintptr_t)t, &dense, err));
    uint64_t start = stk_device_shares(s->device) ? 0 : stk_trace_start();
    stk_status status = s->device->vt->queue.set(s->device, address, dense->data,
                                                 (size_t)stk_type_bytes(&type), err);
    stk_trace_span(start, "program wait", 0);
    stk_tensor_release(dense);
    return status;
}

stk_status stk_store_get(stk_store *s, const char *name, stk_tensor **copy, stk_error *err)
{
    if (!s || !name || !copy)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_store_get: store, name and copy must be given");
    const stk_variable *v = find(s, name);
    if (!v)
        return stk_fail(err, STK_ERR_ARGUMENT, "no variable '%s' in the store, which holds %lld",
                        name, (long long)s->count);
    stk_tensor *t = NULL;
    STK_TRY(stk_tensor_new(v->type.dtype, v->type.shape.rank, v->type.shape.dim, &t, err));
    uint64_t start = stk_device_shares(s->device) ? 0 : stk_trace_start();
    stk_status status = s->device->vt->queue.get(s->device, t->data, v->address,
                                                 (size_t)stk_type_bytes(&v->type), err);
    stk_trace_span(start, "program wait", 0);
    if (status == STK_OK)
        *copy = t;
    else
        stk_tensor_release(t);
    return status;
}

stk_status stk_store_clear(stk_store *s, const char *prefix, stk_error *err)
{
    if (!s || !prefix)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_store_clear: store and prefix must be given");
    for (int32_t i = 0; i < stk_store_count(s); i++) {
        const char *name = stk_store_name(s, i);
        stk_tensor *t = NULL;
        if (strncmp(name, prefix, strlen(prefix))) continue;
        STK_TRY(stk_store_get(s, name, &t, err));
        memset(t->data, 0, (size_t)stk_tensor_bytes(t));
        stk_status status = stk_store_set(s, name, t, err);
        stk_tensor_release(t);
        STK_TRY(status);
    }
    return STK_OK;
}

stk_status stk_store_adopt(stk_store *s, const char *name, stk_tensor *t, stk_error *err)
{
    if (!s || !name || !*name || !t)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_store_adopt: store, name and tensor must be given");
    stk_device *on = stk_tensor_device(t);
    bool seen = on ? on == s->device : stk_device_shares(s->device);
    if (t->dtype == STK_STRING || !stk_tensor_is_dense(t) || !seen)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "variable '%s': only dense numbers in memory that the device sees can be "
                        "adopted; use stk_store_set",
                        name);
    if (find(s, name))
        return stk_fail(err, STK_ERR_STATE,
                        "variable '%s' is in the store already; adopt before programs are made",
                        name);
    char *copy = stk_strdup(name);
    if (!copy || !STK_GROW(s->vars, s->count, s->capacity) ||
        !stk_name_index_put(&s->names, copy, 0, s->count)) {
        stk_free(copy);
        return stk_fail_memory(err, name, 0);
    }
    stk_variable *v = &s->vars[s->count++];
    *v = (stk_variable){.name = copy,
                        .type = {.dtype = t->dtype, .shape = {.rank = t->rank}},
                        .address = on ? stk_tensor_place(t) : stk_address_host(t->data),
                        .adopted = stk_tensor_retain(t)};
    memcpy(v->type.shape.dim, t->shape, sizeof v->type.shape.dim);
    s->bytes += stk_type_bytes(&v->type);
    return STK_OK;
}

static void release_store(void *store) { stk_store_release(store); }

stk_status stk_store_borrow(stk_store *s, const char *name, stk_tensor **view, stk_error *err)
{
    if (!s || !name || !view)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_store_borrow: store, name and view must be given");
    const stk_variable *v = find(s, name);
    if (!v || !stk_device_shares(s->device))
        return stk_fail(err, v ? STK_ERR_UNSUPPORTED : STK_ERR_ARGUMENT,
                        v ? "variable '%s' is in memory that the host does not see; use "
                            "stk_store_get"
                          : "no variable '%s' in the store",
                        name);
    STK_TRY(stk_tensor_wrap(v->type.dtype, v->type.shape.rank, v->type.shape.dim, NULL,
                            stk_address_pointer(v->address), release_store, s, view, err));
    stk_store_retain(s);
    return STK_OK;
}
