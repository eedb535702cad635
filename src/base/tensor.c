/* Tensors: making, counting, views and asking. Copies and casts are in tensor_copy.c.
 *
 * A tensor of our own is ONE block, so that a small result costs one allocation:
 *
 *     [stk_buffer | stk_tensor | pad to 64 | elements]     tensor->inside = true
 *
 * From 2 MB on the elements lie in pages of their own (huge pages), the first two still in one
 * block. Views are small blocks that hold one count of the buffer. The block goes when the buffer's
 * count reaches 0; the handle inside it holds one of these counts while anybody holds the handle.
 */
#include "base/tensor.h"

#include "base/dtype.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

enum {
    HEAD = (sizeof(stk_buffer) + sizeof(stk_tensor) + STK_ALIGN - 1) / STK_ALIGN * STK_ALIGN,
    PAGES_FROM = 2 << 20
};

typedef struct block {
    stk_buffer buffer;
    stk_tensor tensor;
} block;

typedef struct foreign_block {
    block head;
    void (*release)(void *owner);
} foreign_block;

/* ---- counts ------------------------------------------------------------------------------- */

/* True when this was the last count. A sole holder needs no atomic subtraction: nobody else can
 * reach the counter any more. */
static bool drop(int32_t *refs)
{
    if (__atomic_load_n(refs, __ATOMIC_ACQUIRE) == 1) return true;
    return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0;
}

stk_tensor *stk_tensor_retain(stk_tensor *tensor)
{
    if (tensor) __atomic_add_fetch(&tensor->refs, 1, __ATOMIC_RELAXED);
    return tensor;
}

void stk_tensor_release(stk_tensor *tensor)
{
    if (!tensor || !drop(&tensor->refs)) return;
    stk_buffer *buffer = tensor->buffer;
    if (!tensor->inside) stk_free(tensor);
    if (drop(&buffer->refs)) buffer->release(buffer);
}

static void release_block(stk_buffer *self) { stk_free(self); }

static void release_pages(stk_buffer *self)
{
    stk_free_pages(self->data, self->size);
    stk_free(self);
}

static void release_foreign(stk_buffer *self)
{
    foreign_block *b = (foreign_block *)self;
    if (b->release) b->release(self->owner);
    stk_free(b);
}

/* ---- making ------------------------------------------------------------------------------- */

static void fill_head(block *b, stk_dtype dtype, int32_t rank, const int64_t *shape, void *data,
                      size_t size, void (*release)(stk_buffer *))
{
    b->buffer = (stk_buffer){.data = data, .size = size, .release = release, .refs = 1};
    stk_tensor *t = &b->tensor;
    t->data = data;
    t->dtype = dtype;
    t->rank = rank;
    t->buffer = &b->buffer;
    t->refs = 1;
    t->inside = true;
    int64_t step = 1;
    for (int i = STK_MAX_RANK - 1; i >= 0; i--) {
        t->shape[i] = i < rank ? shape[i] : 0;
        t->stride[i] = i < rank ? step : 0;
        if (i < rank && shape[i] > 0) step *= shape[i];
    }
}

static stk_status check_making(const char *who, stk_dtype dtype, int32_t rank, const int64_t *shape,
                               stk_tensor **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "%s: the out pointer is NULL", who);
    *out = NULL;
    if (!stk_dtype_valid(dtype))
        return stk_fail(err, STK_ERR_DTYPE, "%s: dtype number %d is not one of stk_dtype", who,
                        (int)dtype);
    return stk_shape_check(who, rank, shape, stk_dtype_size(dtype), err);
}

/* Room for `size` bytes of elements behind a head, garbage or zeroes. */
static block *alloc_block(size_t size, bool zeroed, void **data)
{
    if (size >= PAGES_FROM) {
        block *b = stk_malloc(sizeof *b);
        *data = b ? stk_alloc_pages(size) : NULL;
        if (*data) return b;
        stk_free(b);
        return NULL;
    }
    char *raw = stk_malloc(HEAD + size);
    if (!raw) return NULL;
    *data = raw + HEAD;
    if (zeroed) memset(*data, 0, size);
    return (block *)raw;
}

static stk_status make(const char *who, stk_dtype dtype, int32_t rank, const int64_t *shape,
                       bool zeroed, stk_tensor **out, stk_error *err)
{
    STK_TRY(check_making(who, dtype, rank, shape, out, err));
    size_t size = (size_t)stk_dtype_size(dtype);
    for (int i = 0; i < rank; i++) size *= (size_t)shape[i];
    void *data = NULL;
    block *b = alloc_block(size, zeroed, &data);
    if (!b) return stk_fail_memory(err, who, size);
    fill_head(b, dtype, rank, shape, data, size,
              size >= PAGES_FROM ? release_pages : release_block);
    *out = &b->tensor;
    return STK_OK;
}

stk_status stk_tensor_new(stk_dtype dtype, int32_t rank, const int64_t *shape, stk_tensor **out,
                          stk_error *err)
{
    return make("tensor_new", dtype, rank, shape, true, out, err);
}

stk_status stk_tensor_raw(stk_dtype dtype, int32_t rank, const int64_t *shape, stk_tensor **out,
                          stk_error *err)
{
    bool pointers = dtype == STK_STRING; /* never leave garbage pointers around */
    return make("tensor_new", dtype, rank, shape, pointers, out, err);
}

stk_status stk_tensor_from(stk_dtype dtype, int32_t rank, const int64_t *shape, const void *data,
                           stk_tensor **out, stk_error *err)
{
    STK_TRY(check_making("tensor_from", dtype, rank, shape, out, err));
    if (dtype == STK_STRING) return stk_tensor_strings(rank, shape, data, out, err);
    stk_tensor *t = NULL;
    STK_TRY(make("tensor_from", dtype, rank, shape, false, &t, err));
    size_t size = t->buffer->size;
    if (size && !data) {
        stk_tensor_release(t);
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "tensor_from: data is NULL but %zu bytes are to be copied; use "
                        "stk_tensor_new for a zeroed tensor",
                        size);
    }
    if (size) memcpy(t->data, data, size);
    *out = t;
    return STK_OK;
}

/* Lowest and highest element offset that the strides reach; false on overflow. */
static bool reach(int32_t rank, const int64_t *shape, const int64_t *stride, int64_t *low,
                  int64_t *high)
{
    *low = *high = 0;
    for (int i = 0; i < rank; i++) {
        int64_t span;
        if (shape[i] == 0) {
            *low = *high = 0;
            return true;
        }
        if (!stk_mul_i64(shape[i] - 1, stride[i], &span)) return false;
        if (__builtin_add_overflow(span < 0 ? *low : *high, span, span < 0 ? low : high))
            return false;
    }
    return true;
}

static stk_status check_foreign(stk_dtype dtype, int32_t rank, const int64_t *shape,
                                const int64_t *stride, const void *data, int64_t *low,
                                int64_t *bytes, stk_error *err)
{
    int64_t item = stk_dtype_size(dtype), high, count = 1;
    size_t align = dtype == STK_STRING ? sizeof(void *) : (size_t)item;
    for (int i = 0; i < rank; i++) count *= shape[i];
    if (count && !data)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "tensor_wrap: data is NULL but the shape has %lld elements",
                        (long long)count);
    if ((uintptr_t)data % align)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "tensor_wrap: data %p is not aligned to the %zu bytes of %s; copy it with "
                        "stk_tensor_from",
                        data, align, stk_dtype_name(dtype));
    if (!reach(rank, shape, stride, low, &high) || __builtin_sub_overflow(high, *low, bytes) ||
        __builtin_add_overflow(*bytes, 1, bytes) || !stk_mul_i64(*bytes, item, bytes) ||
        !stk_mul_i64(*low, item, low))
        return stk_fail(err, STK_ERR_RANGE,
                        "tensor_wrap: the strides reach further than 63 bits of bytes; give them "
                        "in elements, not in bytes");
    if (count == 0) *bytes = 0;
    return STK_OK;
}

stk_status stk_tensor_wrap(stk_dtype dtype, int32_t rank, const int64_t *shape,
                           const int64_t *stride, void *data, void (*release)(void *owner),
                           void *owner, stk_tensor **out, stk_error *err)
{
    STK_TRY(check_making("tensor_wrap", dtype, rank, shape, out, err));
    stk_shape dense = {.rank = rank};
    int64_t steps[STK_MAX_RANK], low = 0, bytes = 0;
    for (int i = 0; i < rank; i++) dense.dim[i] = shape[i];
    if (!stride) {
        stk_shape_strides(&dense, steps);
        stride = steps;
    }
    STK_TRY(check_foreign(dtype, rank, shape, stride, data, &low, &bytes, err));
    foreign_block *b = stk_malloc(sizeof *b);
    if (!b) return stk_fail_memory(err, "tensor_wrap", sizeof *b);
    fill_head(&b->head, dtype, rank, shape, data, (size_t)bytes, release_foreign);
    if (bytes) b->head.buffer.data = (char *)data + low;
    b->head.buffer.owner = owner;
    b->release = release;
    if (rank) memcpy(b->head.tensor.stride, stride, (size_t)rank * sizeof *stride);
    *out = &b->head.tensor;
    return STK_OK;
}

/* Strings: [head | stk_string items | bytes of all items], one block. `get` reads item i. */
static stk_status make_strings(const char *who, int32_t rank, const int64_t *shape,
                               stk_string (*get)(const void *from, int64_t i), const void *from,
                               stk_tensor **out, stk_error *err)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    size_t items = (size_t)count * sizeof(stk_string), total = items;
    for (int64_t i = 0; i < count; i++) {
        stk_string s = get(from, i);
        if (s.size < 0 || (s.size && !s.data))
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: string %lld has size %lld and data %p", who,
                            (long long)i, (long long)s.size, (const void *)s.data);
        if (!stk_add_size(total, (size_t)s.size, &total) || total > PTRDIFF_MAX / 2)
            return stk_fail(err, STK_ERR_RANGE, "%s: the strings do not fit in memory", who);
    }
    void *data = NULL;
    block *b = alloc_block(total, false, &data);
    if (!b) return stk_fail_memory(err, who, total);
    fill_head(b, STK_STRING, rank, shape, data, total,
              total >= PAGES_FROM ? release_pages : release_block);
    stk_string *item = data;
    char *bytes = (char *)data + items;
    for (int64_t i = 0; i < count; i++) {
        stk_string s = get(from, i);
        if (s.size) memcpy(bytes, s.data, (size_t)s.size);
        item[i] = (stk_string){bytes, s.size};
        bytes += s.size;
    }
    *out = &b->tensor;
    return STK_OK;
}

static stk_string item_of_array(const void *from, int64_t i)
{
    return ((const stk_string *)from)[i];
}

static stk_string item_of_tensor(const void *from, int64_t i)
{
    return *(const stk_string *)stk_tensor_address(from, i);
}

stk_status stk_tensor_strings(int32_t rank, const int64_t *shape, const stk_string *items,
                              stk_tensor **out, stk_error *err)
{
    STK_TRY(check_making("tensor_strings", STK_STRING, rank, shape, out, err));
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    if (count && !items)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "tensor_strings: items is NULL but the shape has %lld", (long long)count);
    return make_strings("tensor_strings", rank, shape, item_of_array, items, out, err);
}

stk_status stk_tensor_copy_strings(const stk_tensor *t, stk_tensor **out, stk_error *err)
{
    return make_strings("tensor_dense", t->rank, t->shape, item_of_tensor, t, out, err);
}

stk_status stk_tensor_scalar(stk_dtype dtype, double value, stk_tensor **out, stk_error *err)
{
    STK_TRY(check_making("tensor_scalar", dtype, 0, NULL, out, err));
    if (dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE,
                        "tensor_scalar: a number cannot be a string; use stk_tensor_strings");
    STK_TRY(make("tensor_scalar", dtype, 0, NULL, false, out, err));
    stk_store_f64(dtype, (*out)->data, value);
    return STK_OK;
}

/* ---- views -------------------------------------------------------------------------------- */

stk_status stk_tensor_check(const char *who, const stk_tensor *t, stk_error *err)
{
    if (!t) return stk_fail(err, STK_ERR_ARGUMENT, "%s: the tensor is NULL", who);
    if (!stk_dtype_valid(t->dtype) || t->rank < 0 || t->rank > STK_MAX_RANK)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: not a tensor (dtype %d, rank %d): was it released already?", who,
                        (int)t->dtype, (int)t->rank);
    if (t->buffer && t->buffer->block)
        return stk_fail(err, STK_ERR_DEVICE,
                        "%s: the tensor is in memory of a device that the host does not see; bring "
                        "it back with stk_tensor_to(t, NULL, ...)",
                        who);
    return STK_OK;
}

stk_tensor *stk_tensor_view(stk_tensor *t)
{
    stk_tensor *view = stk_malloc(sizeof *view);
    if (!view) return NULL;
    __atomic_add_fetch(&t->buffer->refs, 1, __ATOMIC_RELAXED);
    view->data = t->data; /* field by field: t->refs is being counted by other threads */
    view->dtype = t->dtype;
    view->rank = t->rank;
    memcpy(view->shape, t->shape, sizeof view->shape);
    memcpy(view->stride, t->stride, sizeof view->stride);
    view->buffer = t->buffer;
    view->refs = 1;
    view->inside = false;
    return view;
}

static stk_status view_of(const char *who, stk_tensor *t, stk_tensor **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "%s: the out pointer is NULL", who);
    *out = NULL;
    STK_TRY(stk_tensor_check(who, t, err));
    *out = stk_tensor_view(t);
    return *out ? STK_OK : stk_fail_memory(err, who, sizeof(stk_tensor));
}

stk_status stk_tensor_slice(stk_tensor *t, const int64_t *start, const int64_t *size,
                            stk_tensor **out, stk_error *err)
{
    if (out) *out = NULL;
    STK_TRY(stk_tensor_check("slice", t, err));
    if (t->rank && (!start || !size))
        return stk_fail(err, STK_ERR_ARGUMENT, "slice of %s: start or size is NULL",
                        STK_TENSOR_TEXT(t));
    int64_t offset = 0, count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (start[i] < 0 || size[i] < 0 || size[i] > t->shape[i] ||
            start[i] > t->shape[i] - size[i])
            return stk_fail(err, STK_ERR_RANGE,
                            "slice of %s: axis %d from %lld with %lld elements leaves 0..%lld",
                            STK_TENSOR_TEXT(t), i, (long long)start[i], (long long)size[i],
                            (long long)t->shape[i]);
        offset += start[i] * t->stride[i];
        count *= size[i];
    }
    STK_TRY(view_of("slice", t, out, err));
    for (int i = 0; i < t->rank; i++) (*out)->shape[i] = size[i];
    if (count) (*out)->data = (char *)t->data + offset * stk_dtype_size(t->dtype);
    return STK_OK;
}

stk_status stk_tensor_transpose(stk_tensor *t, const int32_t *perm, stk_tensor **out,
                                stk_error *err)
{
    if (out) *out = NULL;
    STK_TRY(stk_tensor_check("transpose", t, err));
    unsigned seen = 0;
    for (int i = 0; perm && i < t->rank; i++) {
        if (perm[i] < 0 || perm[i] >= t->rank || (seen >> perm[i] & 1u))
            return stk_fail(err, STK_ERR_ARGUMENT,
                            "transpose of %s: entry %d of the permutation is %d; each axis 0..%d "
                            "must appear once",
                            STK_TENSOR_TEXT(t), i, (int)perm[i], (int)t->rank - 1);
        seen |= 1u << perm[i];
    }
    STK_TRY(view_of("transpose", t, out, err));
    for (int i = 0; i < t->rank; i++) {
        int32_t from = perm ? perm[i] : t->rank - 1 - i;
        (*out)->shape[i] = t->shape[from];
        (*out)->stride[i] = t->stride[from];
    }
    return STK_OK;
}

/* Fills a -1 in and checks that the counts agree. */
static stk_status resolve_shape(const stk_tensor *t, int32_t rank, const int64_t *shape,
                                stk_shape *out, stk_error *err)
{
    int64_t count = stk_tensor_count(t), known = 1;
    int open = -1;
    if (rank < 0 || rank > STK_MAX_RANK || (rank && !shape))
        return stk_shape_check("reshape", rank, shape, 1, err);
    *out = (stk_shape){.rank = rank};
    for (int i = 0; i < rank; i++) {
        out->dim[i] = shape[i];
        if (shape[i] == -1 && open < 0) {
            open = i;
            out->dim[i] = 1;
        }
    }
    STK_TRY(stk_shape_check("reshape", rank, out->dim, stk_dtype_size(t->dtype), err));
    known = stk_shape_count(out);
    if (open >= 0 && known > 0 && count % known == 0) {
        out->dim[open] = count / known;
        return STK_OK;
    }
    if (open >= 0) out->dim[open] = -1;
    if (open >= 0 || known != count)
        return stk_fail(err, STK_ERR_SHAPE,
                        "reshape of %s with %lld elements to %s: the counts do not agree",
                        STK_TENSOR_TEXT(t), (long long)count, STK_SHAPE_TEXT(out));
    return STK_OK;
}

/* Finds strides so that `to` walks t's elements in order without a copy. Both shapes are cut into
 * the smallest runs of axes with equal products; a run works when its old axes are one even walk.
 */
static bool restride(const stk_tensor *t, const stk_shape *to, int64_t *stride)
{
    int64_t size[STK_MAX_RANK], step[STK_MAX_RANK]; /* t's axes longer than 1 */
    int n = 0, i = 0, j = 0;
    for (int k = 0; k < t->rank; k++) {
        if (t->shape[k] == 1) continue;
        size[n] = t->shape[k];
        step[n++] = t->stride[k];
    }
    while (i < n && j < to->rank) {
        int i_end = i + 1, j_end = j + 1;
        int64_t old = size[i], new = to->dim[j];
        while (old != new) {
            if (new < old)
                new *= to->dim[j_end++];
            else
                old *= size[i_end++];
        }
        for (int k = i; k + 1 < i_end; k++)
            if (step[k] != size[k + 1] * step[k + 1]) return false;
        int64_t walk = step[i_end - 1];
        for (int k = j_end - 1; k >= j; k--) {
            stride[k] = walk;
            walk *= to->dim[k];
        }
        i = i_end;
        j = j_end;
    }
    for (; j < to->rank; j++) stride[j] = 1; /* only axes of size 1 are left */
    return true;
}

stk_status stk_tensor_reshape(stk_tensor *t, int32_t rank, const int64_t *shape, stk_tensor **out,
                              stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "reshape: the out pointer is NULL");
    *out = NULL;
    STK_TRY(stk_tensor_check("reshape", t, err));
    stk_shape to;
    int64_t stride[STK_MAX_RANK] = {0};
    STK_TRY(resolve_shape(t, rank, shape, &to, err));
    bool dense = stk_tensor_is_dense(t);
    if (dense) stk_shape_strides(&to, stride);
    stk_tensor *view = NULL;
    if (dense || restride(t, &to, stride)) {
        STK_TRY(view_of("reshape", t, &view, err));
    } else { /* a fresh copy is nobody else's: its own handle can take the new shape */
        STK_TRY(stk_tensor_dense(t, &view, err));
        stk_shape_strides(&to, stride);
    }
    view->rank = rank;
    memcpy(view->shape, to.dim, sizeof view->shape);
    memcpy(view->stride, stride, sizeof view->stride);
    *out = view;
    return STK_OK;
}

/* ---- asking ------------------------------------------------------------------------------- */

int64_t stk_tensor_count(const stk_tensor *t)
{
    if (!t) return 0;
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

int64_t stk_tensor_bytes(const stk_tensor *t)
{
    return t ? stk_tensor_count(t) * stk_dtype_size(t->dtype) : 0;
}

bool stk_tensor_is_dense(const stk_tensor *t)
{
    if (!t) return false;
    int64_t step = 1;
    bool even = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] == 0) return true;
        if (t->shape[i] != 1 && t->stride[i] != step) even = false;
        step *= t->shape[i];
    }
    return even;
}

stk_shape stk_tensor_shape(const stk_tensor *t)
{
    stk_shape s = {.rank = t->rank};
    memcpy(s.dim, t->shape, sizeof s.dim);
    return s;
}

void *stk_tensor_address(const stk_tensor *t, int64_t index)
{
    int64_t offset = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        offset += index % t->shape[i] * t->stride[i];
        index /= t->shape[i];
    }
    return (char *)t->data + offset * stk_dtype_size(t->dtype);
}

double stk_tensor_at(const stk_tensor *t, int64_t index)
{
    if (!t || t->dtype == STK_STRING || index < 0 || index >= stk_tensor_count(t)) return 0;
    if (t->buffer && t->buffer->block) return NAN; /* on a device: stk_tensor_to */
    return stk_load_f64(t->dtype, stk_tensor_address(t, index));
}

stk_status stk_tensor_set(stk_tensor *t, int64_t index, double value, stk_error *err)
{
    STK_TRY(stk_tensor_check("tensor_set", t, err));
    int64_t count = stk_tensor_count(t);
    if (t->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "tensor_set: %s takes no numbers", STK_TENSOR_TEXT(t));
    if (index < 0 || index >= count)
        return stk_fail(err, STK_ERR_RANGE, "tensor_set: index %lld is outside 0..%lld of %s",
                        (long long)index, (long long)count - 1, STK_TENSOR_TEXT(t));
    if (t->buffer->readonly)
        return stk_fail(err, STK_ERR_STATE,
                        "tensor_set: the memory of %s is read-only; copy it with stk_tensor_cast",
                        STK_TENSOR_TEXT(t));
    stk_store_f64(t->dtype, stk_tensor_address(t, index), value);
    return STK_OK;
}

char *stk_tensor_describe(const stk_tensor *t, char *text, size_t size)
{
    if (!text || size == 0) return text;
    if (!t) {
        snprintf(text, size, "NULL");
        return text;
    }
    stk_shape s = stk_tensor_shape(t);
    snprintf(text, size, "%s%s", stk_dtype_name(t->dtype), STK_SHAPE_TEXT(&s));
    return text;
}
