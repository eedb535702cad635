/* Variables. Memory comes in slabs, so the parameters of a model lie side by side on huge pages and never move. */
#include "graph/run/store.h"

#include "base/trace.h"
#include "device/tensor_device.h"
#include "stoker/tracing.h"

#include <pthread.h>
#include <string.h>

enum { SLAB_MIN = 1 << 16, SLAB_MAX = 64 << 20 };

/* What a slab holds: small variables are kept apart, and so are the halves of each owner. */
enum { LARGE, SMALL, HALVES }; /* HALVES + owner */

typedef struct slab {
    stk_block *block;
    int64_t used;
    int32_t kind;
} slab;

struct stk_store {
    stk_device *device;
    stk_variable *vars;
    int64_t count, capacity;
    stk_name_index names; /* -> place in vars */
    slab *slabs;
    int64_t nslabs, cap_slabs;
    int64_t bytes;
    /* Atomic: moves on when another one uses the variables; 0: they have no other forms. */
    uint64_t clock;
    bool lends;           /* somebody looks at memory of variables */
    pthread_mutex_t lock; /* of what is stale */
    int32_t refs;
};

stk_status stk_store_new(stk_device *device, stk_store **out, stk_error *err)
{
    if (!out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_store_new: out is NULL; pass the address of a stk_store *");
    stk_store *s = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "stk_store_new", sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
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
    pthread_mutex_destroy(&s->lock);
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

static slab *last_slab(stk_store *s, int32_t kind)
{
    for (int64_t i = s->nslabs; i-- > 0;)
        if (s->slabs[i].kind == kind) return &s->slabs[i];
    return NULL;
}

/* The first slabs are small and grow, so that a tiny model does not hold megabytes. */
static bool take(stk_store *s, int64_t bytes, int32_t kind, stk_address *out)
{
    bytes = stk_round_up(stk_max_i64(bytes, 1), STK_ALIGN);
    if (s->device->caps.owners > 0 && kind == LARGE) bytes += gap_behind(bytes);
    slab *last = last_slab(s, kind);
    if (!last || (int64_t)last->block->bytes - last->used < bytes) {
        int64_t size = last ? stk_min_i64((int64_t)last->block->bytes * 4, SLAB_MAX) : SLAB_MIN;
        if (!STK_GROW(s->slabs, s->nslabs, s->cap_slabs)) return false;
        last = &s->slabs[s->nslabs];
        last->used = 0;
        last->kind = kind;
        last->block = s->device->vt->memory.alloc(s->device, (size_t)stk_max_i64(size, bytes));
        if (!last->block) return false;
        s->nslabs++;
    }
    *out = stk_address_of(last->block, last->used);
    last->used += bytes;
    return true;
}

static int32_t kind_of(const stk_store *s, int64_t bytes)
{
    enum { FEW = 4096 };
    return s->device->caps.owners > 0 && bytes < FEW ? SMALL : LARGE;
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
            !take(s, stk_type_bytes(type), kind_of(s, stk_type_bytes(type)), &memory) ||
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

/* ---- halves ---------------------------------------------------------------------------------------------- */

int64_t stk_store_index(const stk_store *s, const char *name)
{
    return stk_name_index_find(&s->names, name, 0);
}

bool stk_store_may_halve(const stk_store *s, const char *name, int32_t axis)
{
    const stk_variable *v = find(s, name);
    return !v || (!v->adopted && (!v->half[0].block || v->axis == axis));
}

stk_status stk_store_bind_half(stk_store *s, const char *name, const stk_type *type, int32_t axis,
                               int32_t owner, stk_address *address, stk_error *err)
{
    stk_address whole;
    STK_TRY(stk_store_bind(s, name, type, &whole, err));
    stk_variable *v = find(s, name);
    if (!stk_store_may_halve(s, name, axis))
        return stk_fail(err, STK_ERR_INTERNAL, "variable '%s' is used in other halves", name);
    if (!v->half[0].block) {
        stk_address half[2];
        for (int32_t i = 0; i < 2; i++)
            if (!take(s, stk_type_bytes(type) / 2, HALVES + i, &half[i]))
                return stk_fail_memory(err, name, (size_t)stk_type_bytes(type));
        memcpy(v->half, half, sizeof half);
        v->axis = axis;
        v->stale = STK_STALE_HALVES;
        __atomic_add_fetch(&s->clock, 1, __ATOMIC_RELEASE);
    }
    *address = v->half[owner];
    return STK_OK;
}

/* ---- shadows --------------------------------------------------------------------------------------------- */

bool stk_store_may_shadow(const stk_store *s, const char *name, bool trained)
{
    const stk_variable *v = find(s, name);
    if (s->lends) return false;
    return v ? !v->adopted && !v->half[0].block && (trained || v->shadow.block) : trained;
}

stk_status stk_store_bind_shadow(stk_store *s, const char *name, const stk_type *type,
                                 stk_address *address, stk_error *err)
{
    stk_address whole;
    STK_TRY(stk_store_bind(s, name, type, &whole, err));
    stk_variable *v = find(s, name);
    if (!v->shadow.block) {
        const int64_t bytes = stk_type_bytes(type) / 2;
        if (!take(s, bytes, kind_of(s, bytes), &v->shadow))
            return stk_fail_memory(err, name, (size_t)bytes);
        v->shadow_stale = true;
        __atomic_add_fetch(&s->clock, 1, __ATOMIC_RELEASE);
    }
    *address = v->shadow;
    return STK_OK;
}

/* As a chain rounds. */
static stk_status make_shadow(stk_store *s, stk_variable *v, stk_error *err)
{
    const stk_queue_vt *queue = &s->device->vt->queue;
    const int64_t n = stk_shape_count(&v->type.shape);
    float *whole = stk_malloc((size_t)n * sizeof *whole + (size_t)n * sizeof(uint16_t));
    if (!whole) return stk_fail_memory(err, v->name, (size_t)n * sizeof *whole);
    uint16_t *half = (uint16_t *)(void *)(whole + n);
    stk_status status = queue->get(s->device, whole, v->address, (size_t)n * sizeof *whole, err);
    for (int64_t i = 0; i < n && status == STK_OK; i++) half[i] = stk_f32_to_bf16(whole[i]);
    if (status == STK_OK)
        status = queue->set(s->device, v->shadow, half, (size_t)n * sizeof *half, err);
    if (status == STK_OK) v->shadow_stale = false;
    stk_free(whole);
    return status;
}

/* ---- who has written last -------------------------------------------------------------------------------- */

/* Stretches of a variable belong to the first and to the second half by turns. */
static void cut(const stk_variable *v, char *whole, char *const half[2], bool apart)
{
    int64_t rows = 1, bytes = stk_type_bytes(&v->type) / 2;
    for (int32_t i = 0; i < v->axis; i++) rows *= v->type.shape.dim[i];
    bytes /= rows;
    for (int64_t r = 0; r < 2 * rows; r++) {
        char *stretch = half[r % 2] + r / 2 * bytes;
        memcpy(apart ? stretch : whole + r * bytes, apart ? whole + r * bytes : stretch,
               (size_t)bytes);
    }
}

/* From the whole to its halves (apart), or back. */
static stk_status move(stk_store *s, stk_variable *v, bool apart, stk_error *err)
{
    const stk_queue_vt *queue = &s->device->vt->queue;
    const size_t bytes = (size_t)stk_type_bytes(&v->type), room = bytes / 2;
    stk_status status = STK_OK;
    char *whole = stk_malloc(2 * bytes);
    if (!whole) return stk_fail_memory(err, v->name, bytes);
    char *half[2] = {whole + bytes, whole + bytes + room};
    if (apart) status = queue->get(s->device, whole, v->address, bytes, err);
    for (int i = 0; !apart && i < 2 && status == STK_OK; i++)
        status = queue->get(s->device, half[i], v->half[i], room, err);
    if (status == STK_OK) cut(v, whole, half, apart);
    if (!apart && status == STK_OK) status = queue->set(s->device, v->address, whole, bytes, err);
    for (int i = 0; apart && i < 2 && status == STK_OK; i++)
        status = queue->set(s->device, v->half[i], half[i], room, err);
    if (status == STK_OK) v->stale = STK_STALE_NONE;
    stk_free(whole);
    return status;
}

/* The whole variable is about to be read (or written, by others than programs). */
static stk_status settle(stk_store *s, stk_variable *v, bool write, stk_error *err)
{
    const bool halved = v->half[0].block;
    if (!halved && !v->shadow.block) return STK_OK;
    pthread_mutex_lock(&s->lock);
    stk_status status = v->stale == STK_STALE_WHOLE ? move(s, v, false, err) : STK_OK;
    if (status == STK_OK && write && halved) v->stale = STK_STALE_HALVES;
    if (status == STK_OK && write) v->shadow_stale = true;
    __atomic_add_fetch(&s->clock, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lock);
    return status;
}

uint64_t stk_store_clock(const stk_store *s)
{
    return __atomic_load_n(&s->clock, __ATOMIC_ACQUIRE);
}

stk_status stk_store_sync(stk_store *s, const stk_variable_use *uses, int64_t n, uint64_t *clock,
                          stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        stk_variable *v = &s->vars[uses[i].index];
        const bool halved = uses[i].halved;
        if (uses[i].shadow) continue;
        if (v->half[0].block) {
            if (v->stale == (halved ? STK_STALE_HALVES : STK_STALE_WHOLE))
                status = move(s, v, halved, err);
            if (uses[i].assigned) v->stale = halved ? STK_STALE_WHOLE : STK_STALE_HALVES;
        }
        if (uses[i].assigned && !uses[i].kept) v->shadow_stale = true;
    }
    for (int64_t i = 0; i < n && status == STK_OK; i++)
        if (uses[i].shadow && s->vars[uses[i].index].shadow_stale)
            status = make_shadow(s, &s->vars[uses[i].index], err);
    *clock = __atomic_add_fetch(&s->clock, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lock);
    return status;
}

bool stk_store_lends(const stk_store *s) { return s->lends; }

stk_status stk_store_show(stk_store *s, const stk_variable_use *uses, int64_t n, stk_error *err)
{
    for (int64_t i = 0; i < n; i++)
        if (uses[i].halved || uses[i].shadow)
            STK_TRY(settle(s, &s->vars[uses[i].index], true, err));
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
    STK_TRY(settle(s, find(s, name), true, err));
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
    stk_variable *v = find(s, name);
    if (!v)
        return stk_fail(err, STK_ERR_ARGUMENT, "no variable '%s' in the store, which holds %lld",
                        name, (long long)s->count);
    stk_tensor *t = NULL;
    STK_TRY(settle(s, v, false, err));
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
    stk_variable *v = find(s, name);
    if (!v || !stk_device_shares(s->device))
        return stk_fail(err, v ? STK_ERR_UNSUPPORTED : STK_ERR_ARGUMENT,
                        v ? "variable '%s' is in memory that the host does not see; use "
                            "stk_store_get"
                          : "no variable '%s' in the store",
                        name);
    STK_TRY(settle(s, v, true, err));
    s->lends = true;
    STK_TRY(stk_tensor_wrap(v->type.dtype, v->type.shape.rank, v->type.shape.dim, NULL,
                            stk_address_pointer(v->address), release_store, s, view, err));
    stk_store_retain(s);
    return STK_OK;
}
