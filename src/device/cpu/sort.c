/* Sorting of lines, whole or the first k, with the permutation.
 *
 * Elements become unsigned keys that order as wanted: sign folded in, all bits turned for descending order, both
 * zeros alike, NaN the largest in either direction. Keys are sorted together with their places: by
 * insertion when short, else by radix, both stable. The first few of many come from a heap. */
#include "device/cpu/cpu.h"

#include <string.h>

typedef struct item {
    uint64_t key;
    int64_t place;
} item;

/* ---- keys ------------------------------------------------------------------------------------------- */

static uint64_t all_ones(int bits) { return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

/* exponent: the bits of infinity; above it (without the sign) there is only NaN. */
static uint64_t float_key(uint64_t raw, int bits, uint64_t exponent, bool descending)
{
    uint64_t ones = all_ones(bits), sign = UINT64_C(1) << (bits - 1), size = raw & ~sign;
    if (size > exponent) return ones;
    if (size == 0) raw = 0;
    uint64_t key = raw & sign ? ~raw & ones : raw | sign;
    return descending ? ~key & ones : key;
}

static uint64_t integer_key(uint64_t raw, int bits, bool is_signed, bool descending)
{
    uint64_t ones = all_ones(bits), key = raw & ones;
    if (is_signed) key ^= UINT64_C(1) << (bits - 1);
    return descending ? ~key & ones : key;
}

#define FILL_KEYS(type, expression)                                                                \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type raw;                                                                                  \
        memcpy(&raw, x + i * step * (int64_t)sizeof raw, sizeof raw);                              \
        to[i] = (item){(expression), i};                                                           \
    }                                                                                              \
    break;
/* Keys of elements x[0], x[step], ... */
static void fill_keys(item *to, const uint8_t *x, int64_t step, int64_t n, int32_t dtype, bool down)
{
    switch ((stk_dtype)dtype) {
    case STK_F32: FILL_KEYS(uint32_t, float_key(raw, 32, 0x7f800000u, down))
    case STK_F64: FILL_KEYS(uint64_t, float_key(raw, 64, UINT64_C(0x7ff0000000000000), down))
    case STK_F16: FILL_KEYS(uint16_t, float_key(raw, 16, 0x7c00u, down))
    case STK_BF16: FILL_KEYS(uint16_t, float_key(raw, 16, 0x7f80u, down))
    case STK_I8: FILL_KEYS(uint8_t, integer_key(raw, 8, true, down))
    case STK_BOOL:
    case STK_U8: FILL_KEYS(uint8_t, integer_key(raw, 8, false, down))
    case STK_I16: FILL_KEYS(uint16_t, integer_key(raw, 16, true, down))
    case STK_U16: FILL_KEYS(uint16_t, integer_key(raw, 16, false, down))
    case STK_I32: FILL_KEYS(uint32_t, integer_key(raw, 32, true, down))
    case STK_U32: FILL_KEYS(uint32_t, integer_key(raw, 32, false, down))
    case STK_I64: FILL_KEYS(uint64_t, integer_key(raw, 64, true, down))
    case STK_U64: FILL_KEYS(uint64_t, integer_key(raw, 64, false, down))
    default: break;
    }
}

/* ---- sorting of items ------------------------------------------------------------------------------- */

static void sort_by_insertion(item *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        item moving = x[i];
        int64_t j = i;
        for (; j > 0 && x[j - 1].key > moving.key; j--) x[j] = x[j - 1];
        x[j] = moving;
    }
}

/* Least significant byte first. A byte that is the same in all keys costs no pass. Returns where the
 * result is: x or spare. */
static item *sort_by_radix(item *x, item *spare, int64_t n, int64_t bytes)
{
    uint32_t count[8][256];
    memset(count, 0, (size_t)bytes * sizeof count[0]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < bytes; b++) count[b][x[i].key >> (8 * b) & 255]++;
    for (int64_t b = 0; b < bytes; b++) {
        if (count[b][x[0].key >> (8 * b) & 255] == n) continue;
        uint32_t sum = 0;
        for (int v = 0; v < 256; v++) {
            uint32_t here = count[b][v];
            count[b][v] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++) spare[count[b][x[i].key >> (8 * b) & 255]++] = x[i];
        item *swap = x;
        x = spare;
        spare = swap;
    }
    return x;
}

static item *sort_items(item *x, item *spare, int64_t n, int64_t bytes)
{
    enum { SHORT = 48 };
    if (n > SHORT) return sort_by_radix(x, spare, n, bytes);
    sort_by_insertion(x, n);
    return x;
}

/* ---- first k: a heap with the last of them on top -------------------------------------------------- */

static bool comes_after(item a, item b)
{
    return a.key != b.key ? a.key > b.key : a.place > b.place;
}

static void sink(item *heap, int64_t n, int64_t at)
{
    item moving = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && comes_after(heap[child + 1], heap[child])) child++;
        if (!comes_after(heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

enum { BLOCK = 16 };

/* Is there nothing among n dense floats that comes before `last`? Most blocks of a long line are passed over here,
 * in the registers of a few comparisons. NaN never comes before anything. */
static bool none_before(const float *x, int64_t n, float last, bool descending)
{
    int hits = 0;
    if (n == BLOCK && descending)
        for (int i = 0; i < BLOCK; i++) hits |= x[i] > last;
    else if (n == BLOCK)
        for (int i = 0; i < BLOCK; i++) hits |= x[i] < last;
    else
        return false;
    return !hits;
}

static void first_by_heap(item *heap, int64_t k, const stk_sort_params *p, const uint8_t *x)
{
    item block[BLOCK];
    int64_t step = p->inner * stk_dtype_size((stk_dtype)p->dtype);
    bool floats = p->dtype == STK_F32 && p->inner == 1;
    fill_keys(heap, x, p->inner, k, p->dtype, p->descending);
    for (int64_t i = k / 2; i-- > 0;) sink(heap, k, i);
    for (int64_t i = k; i < p->n; i += BLOCK) {
        const uint8_t *here = x + i * step;
        int64_t count = stk_min_i64(BLOCK, p->n - i);
        if (floats) {
            const float *line = (const float *)(const void *)x;
            float last = line[heap[0].place];
            if (last == last && none_before(line + i, count, last, p->descending)) continue;
        }
        fill_keys(block, here, p->inner, count, p->dtype, p->descending);
        for (int64_t j = 0; j < count; j++) {
            if (block[j].key >= heap[0].key)
                continue; /* equal ones lose: they stand further back */
            heap[0] = (item){block[j].key, i + j};
            sink(heap, k, 0);
        }
    }
    for (int64_t n = k; n > 1; n--) {
        item last = heap[0];
        heap[0] = heap[n - 1];
        sink(heap, n - 1, 0);
        heap[n - 1] = last;
    }
}

/* ---- the kernel ----------------------------------------------------------------------------------------- */

static bool takes_few(const stk_sort_params *p) { return p->k > 0 && p->k <= p->n / 4; }

static int64_t items_per_line(const stk_sort_params *p) { return takes_few(p) ? p->k : 2 * p->n; }

static int64_t sort_units(const void *params)
{
    const stk_sort_params *p = params;
    return p->outer * p->inner;
}

static int64_t sort_grain(const void *params)
{
    const stk_sort_params *p = params;
    return stk_rows_worth(p->n, 2048);
}

static uint32_t sort_aligned(const void *params)
{
    return ((const stk_sort_params *)params)->inner == 1 ? 1u | 2u | 4u : 0;
}

static int64_t sort_scratch(const void *params, int32_t parts)
{
    return items_per_line(params) * (int64_t)sizeof(item) * parts;
}

static void sort_line(const stk_launch *l, item *work, int64_t outer, int64_t inner)
{
    const stk_sort_params *p = l->params;
    int64_t size = stk_dtype_size((stk_dtype)p->dtype), step = p->inner;
    const uint8_t *x = (const uint8_t *)l->arg[0] + (outer * p->n * step + inner) * size;
    uint8_t *values = (uint8_t *)l->arg[1] + (outer * p->k * step + inner) * size;
    int64_t *places = (int64_t *)l->arg[2] + outer * p->k * step + inner;
    if (takes_few(p)) {
        first_by_heap(work, p->k, p, x);
    } else {
        fill_keys(work, x, step, p->n, p->dtype, p->descending);
        work = sort_items(work, work + p->n, p->n, size);
    }
    for (int64_t i = 0; i < p->k; i++) {
        memcpy(values + i * step * size, x + work[i].place * step * size, (size_t)size);
        places[i * step] = work[i].place;
    }
}

static void sort_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_sort_params *p = l->params;
    item *work = (item *)l->scratch + part * items_per_line(p);
    for (int64_t u = lo; u < hi; u++) sort_line(l, work, u / p->inner, u % p->inner);
}

const stk_impl stk_impl_sort_own = {.name = "own",
                                    .kernel = STK_K_SORT,
                                    .units = sort_units,
                                    .grain = sort_grain,
                                    .aligned = sort_aligned,
                                    .scratch = sort_scratch,
                                    .run = sort_run};

/* ---- reference: the place of an element is the number of those that come before it --------------------- */

static bool is_before(const stk_sort_params *p, const uint8_t *x, int64_t i, int64_t j)
{
    stk_dtype t = (stk_dtype)p->dtype;
    const uint8_t *a = x + i * p->inner * stk_dtype_size(t),
                  *b = x + j * p->inner * stk_dtype_size(t);
    if (stk_dtype_is_float(t)) {
        double u = stk_load_f64(t, a), v = stk_load_f64(t, b);
        bool u_nan = u != u, v_nan = v != v;
        if (u_nan != v_nan) return v_nan;
        if (!u_nan && u != v) return p->descending ? u > v : u < v;
    } else if (t == STK_U64) {
        uint64_t u = (uint64_t)stk_load_i64(t, a), v = (uint64_t)stk_load_i64(t, b);
        if (u != v) return p->descending ? u > v : u < v;
    } else {
        int64_t u = stk_load_i64(t, a), v = stk_load_i64(t, b);
        if (u != v) return p->descending ? u > v : u < v;
    }
    return i < j;
}

static void sort_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_sort_params *p = l->params;
    int64_t size = stk_dtype_size((stk_dtype)p->dtype), step = p->inner;
    for (int64_t u = lo; u < hi; u++) {
        int64_t outer = u / step, inner = u % step;
        const uint8_t *x = (const uint8_t *)l->arg[0] + (outer * p->n * step + inner) * size;
        for (int64_t i = 0; i < p->n; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < p->n; j++) rank += is_before(p, x, j, i);
            if (rank >= p->k) continue;
            int64_t to = (outer * p->k + rank) * step + inner;
            memcpy((uint8_t *)l->arg[1] + to * size, x + i * step * size, (size_t)size);
            ((int64_t *)l->arg[2])[to] = i;
        }
    }
}

const stk_impl stk_impl_sort_ref = {
    .name = "ref", .kernel = STK_K_SORT, .rank = 100, .units = sort_units, .run = sort_ref};
