/* Copies between tensors of any strides and numeric types.
 *
 * A copy is planned as a walk: axes of size 1 dropped, the rest ordered by the destination's
 * strides and merged where both sides are one even run, so that dense copies of any rank become one
 * memcpy and a transposed one a two-axis walk in cache-sized blocks. */
#include "base/tensor.h"

#include "base/convert.h"

#include <string.h>

typedef struct walk {
    int rank;
    int64_t size[STK_MAX_RANK];
    int64_t to[STK_MAX_RANK], from[STK_MAX_RANK]; /* steps in bytes */
    stk_dtype to_dtype, from_dtype;
} walk;

static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

static walk plan_walk(const stk_tensor *to, const stk_tensor *from)
{
    walk w = {.to_dtype = to->dtype, .from_dtype = from->dtype};
    int64_t to_item = stk_dtype_size(to->dtype), from_item = stk_dtype_size(from->dtype);
    for (int i = 0; i < to->rank; i++) { /* insertion by falling destination step */
        if (to->shape[i] == 1) continue;
        int64_t step = to->stride[i] * to_item;
        int at = w.rank++;
        for (; at > 0 && magnitude(w.to[at - 1]) < magnitude(step); at--) {
            w.size[at] = w.size[at - 1];
            w.to[at] = w.to[at - 1];
            w.from[at] = w.from[at - 1];
        }
        w.size[at] = to->shape[i];
        w.to[at] = step;
        w.from[at] = from->stride[i] * from_item;
    }
    int last = 0;
    for (int i = 1; i < w.rank; i++) { /* merge axis i into `last` when both sides run on */
        bool even = w.to[last] == w.to[i] * w.size[i] && w.from[last] == w.from[i] * w.size[i];
        int64_t merged = even ? w.size[last] * w.size[i] : w.size[i];
        if (!even) last++;
        w.size[last] = merged;
        w.to[last] = w.to[i];
        w.from[last] = w.from[i];
    }
    if (w.rank) w.rank = last + 1;
    return w;
}

/* Strided elements of one size; memcpy of a constant size is one load and one store. */
#define MOVE(bytes)                                                                                \
    for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) memcpy(to, from, bytes)
static void move_run(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                     int64_t size)
{
    if (to_step == size && from_step == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: MOVE(1); break;
    case 2: MOVE(2); break;
    case 4: MOVE(4); break;
    default: MOVE(8); break;
    }
}

/* One run of n elements. Converting runs that are not dense are gathered and scattered through
 * small chunks, so that the conversion loops need to know dense arrays only. */
static void copy_run(const walk *w, char *to, int64_t to_step, const char *from, int64_t from_step,
                     int64_t n)
{
    enum { CHUNK = 256 };
    int64_t to_size = stk_dtype_size(w->to_dtype), from_size = stk_dtype_size(w->from_dtype);
    if (w->to_dtype == w->from_dtype) {
        move_run(to, to_step, from, from_step, n, to_size);
        return;
    }
    if (to_step == to_size && from_step == from_size) {
        stk_convert(w->to_dtype, to, w->from_dtype, from, n);
        return;
    }
    uint64_t gathered[CHUNK], converted[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t m = stk_min_i64(n - done, CHUNK);
        move_run((char *)gathered, from_size, from + done * from_step, from_step, m, from_size);
        stk_convert(w->to_dtype, converted, w->from_dtype, gathered, m);
        move_run(to + done * to_step, to_step, (char *)converted, to_size, m, to_size);
    }
}

/* The two innermost axes. When the source is even along the outer one (a transpose), the inner one
 * is cut in blocks so that the cache lines read for one row are still there for the next. */
static void copy_plane(const walk *w, char *to, const char *from)
{
    enum { BLOCK = 64 };
    int in = w->rank - 1, out = w->rank - 2;
    int64_t inner = w->size[in], outer = out >= 0 ? w->size[out] : 1;
    int64_t to_out = out >= 0 ? w->to[out] : 0, from_out = out >= 0 ? w->from[out] : 0;
    bool crossed = out >= 0 && magnitude(w->from[in]) > magnitude(from_out);
    int64_t block = crossed ? BLOCK : inner;
    for (int64_t start = 0; start < inner; start += block) {
        int64_t n = stk_min_i64(block, inner - start);
        char *y = to + start * w->to[in];
        const char *x = from + start * w->from[in];
        for (int64_t row = 0; row < outer; row++)
            copy_run(w, y + row * to_out, w->to[in], x + row * from_out, w->from[in], n);
    }
}

static void run_walk(const walk *w, char *to, const char *from)
{
    if (w->rank == 0) {
        copy_run(w, to, stk_dtype_size(w->to_dtype), from, stk_dtype_size(w->from_dtype), 1);
        return;
    }
    int64_t index[STK_MAX_RANK] = {0};
    int outer = w->rank - 2; /* axes 0..outer-1 are counted like an odometer */
    for (;;) {
        copy_plane(w, to, from);
        int axis = outer - 1;
        for (; axis >= 0; axis--) {
            to += w->to[axis];
            from += w->from[axis];
            if (++index[axis] < w->size[axis]) break;
            index[axis] = 0;
            to -= w->to[axis] * w->size[axis];
            from -= w->from[axis] * w->size[axis];
        }
        if (axis < 0) return;
    }
}

static void extent(const stk_tensor *t, uintptr_t *low, uintptr_t *high)
{
    int64_t item = stk_dtype_size(t->dtype), below = 0, above = item;
    for (int i = 0; i < t->rank; i++) {
        int64_t span = (t->shape[i] - 1) * t->stride[i] * item;
        if (span < 0)
            below += span;
        else
            above += span;
    }
    *low = (uintptr_t)t->data + (uintptr_t)below;
    *high = (uintptr_t)t->data + (uintptr_t)above;
}

static bool overlaps(const stk_tensor *a, const stk_tensor *b)
{
    uintptr_t a_low, a_high, b_low, b_high;
    extent(a, &a_low, &a_high);
    extent(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

static stk_status check_copy(const stk_tensor *to, const stk_tensor *from, stk_error *err)
{
    STK_TRY(stk_tensor_check("copy", to, err));
    STK_TRY(stk_tensor_check("copy", from, err));
    stk_shape to_shape = stk_tensor_shape(to), from_shape = stk_tensor_shape(from);
    if (!stk_shape_equal(&to_shape, &from_shape))
        return stk_fail(err, STK_ERR_SHAPE,
                        "copy: %s does not fit into %s; the shapes must be equal (reshape or "
                        "slice one of them)",
                        STK_TENSOR_TEXT(from), STK_TENSOR_TEXT(to));
    if (to->dtype == STK_STRING || from->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE,
                        "copy of %s into %s: string tensors cannot be written; make a new one "
                        "with stk_tensor_strings or stk_tensor_cast",
                        STK_TENSOR_TEXT(from), STK_TENSOR_TEXT(to));
    if (to->buffer->readonly)
        return stk_fail(err, STK_ERR_STATE, "copy: the memory of the destination %s is read-only",
                        STK_TENSOR_TEXT(to));
    for (int i = 0; i < to->rank; i++)
        if (to->stride[i] == 0 && to->shape[i] > 1)
            return stk_fail(err, STK_ERR_ARGUMENT,
                            "copy: axis %d of the destination %s is a broadcast view: its %lld "
                            "elements are one; make it dense first",
                            i, STK_TENSOR_TEXT(to), (long long)to->shape[i]);
    return STK_OK;
}

static bool same_layout(const stk_tensor *a, const stk_tensor *b)
{
    if (a->data != b->data || a->dtype != b->dtype) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] > 1 && a->stride[i] != b->stride[i]) return false;
    return true;
}

stk_status stk_tensor_copy(stk_tensor *to, const stk_tensor *from, stk_error *err)
{
    STK_TRY(check_copy(to, from, err));
    if (stk_tensor_count(to) == 0 || same_layout(to, from)) return STK_OK;
    if (overlaps(to, from)) { /* read everything before writing anything */
        stk_tensor *between = NULL;
        STK_TRY(stk_tensor_cast(from, to->dtype, &between, err));
        walk w = plan_walk(to, between);
        run_walk(&w, to->data, between->data);
        stk_tensor_release(between);
        return STK_OK;
    }
    walk w = plan_walk(to, from);
    run_walk(&w, to->data, from->data);
    return STK_OK;
}

stk_status stk_tensor_cast(const stk_tensor *t, stk_dtype dtype, stk_tensor **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "cast: the out pointer is NULL");
    *out = NULL;
    STK_TRY(stk_tensor_check("cast", t, err));
    if (t->dtype == STK_STRING && dtype == STK_STRING) return stk_tensor_copy_strings(t, out, err);
    if (t->dtype == STK_STRING || dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "cast of %s to %s: strings and numbers do not mix",
                        STK_TENSOR_TEXT(t), stk_dtype_name(dtype));
    stk_tensor *fresh = NULL;
    STK_TRY(stk_tensor_raw(dtype, t->rank, t->shape, &fresh, err));
    if (stk_tensor_count(t) > 0) {
        walk w = plan_walk(fresh, t);
        run_walk(&w, fresh->data, t->data);
    }
    *out = fresh;
    return STK_OK;
}

stk_status stk_tensor_dense(stk_tensor *t, stk_tensor **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "dense: the out pointer is NULL");
    *out = NULL;
    STK_TRY(stk_tensor_check("dense", t, err));
    if (!stk_tensor_is_dense(t)) return stk_tensor_cast(t, t->dtype, out, err);
    *out = stk_tensor_retain(t);
    return STK_OK;
}
