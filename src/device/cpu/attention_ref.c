/* Attention by the book, in double: what the fast one is held against. Units are images. */
#include "device/cpu/cpu.h"

#include <math.h>

typedef stk_attention_params params_t;

static int64_t images_of(const void *params) { return ((const params_t *)params)->batch; }

static bool is_real(const void *params)
{
    int32_t t = ((const params_t *)params)->dtype;
    return t == STK_F32 || t == STK_F64;
}

/* Element c of row `row` and head `head` of an array [batch, rows, heads, width]. */
static int64_t place(int64_t image, int64_t rows, int64_t row, int64_t heads, int64_t head,
                     int64_t width)
{
    return ((image * rows + row) * heads + head) * width;
}

static double get(const params_t *p, const void *array, int64_t i)
{
    stk_dtype t = (stk_dtype)p->dtype;
    return stk_load_f64(t, (const char *)array + i * stk_dtype_size(t));
}
static void put(const params_t *p, void *array, int64_t i, double value)
{
    stk_dtype t = (stk_dtype)p->dtype;
    stk_store_f64(t, (char *)array + i * stk_dtype_size(t), value);
}
static void add(const params_t *p, void *array, int64_t i, double value)
{
    put(p, array, i, get(p, array, i) + value);
}

static double dot(const params_t *p, const void *a, int64_t i, const void *b, int64_t j, int64_t n)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += get(p, a, i + c) * get(p, b, j + c);
    return sum;
}

/* One query of one head. */
typedef struct query {
    const params_t *p;
    const stk_launch *l;
    const uint8_t *mask;
    int64_t image, head, row, shared;
    int64_t q, y; /* where its rows start */
} query;

static query query_at(const stk_launch *l, int64_t image, int64_t head, int64_t row, int mask)
{
    const params_t *p = l->params;
    query q = {.p = p, .l = l, .image = image, .head = head, .row = row};
    q.shared = head / (p->heads / p->kv_heads);
    q.q = place(image, p->queries, row, p->heads, head, p->depth);
    q.y = place(image, p->queries, row, p->heads, head, p->width);
    if (p->masked)
        q.mask = (const uint8_t *)l->arg[mask] + image * p->mask_batch + head * p->mask_head +
                 row * p->mask_query;
    return q;
}

static int64_t key_of(const query *q, int64_t j)
{
    return place(q->image, q->p->keys, j, q->p->kv_heads, q->shared, q->p->depth);
}
static int64_t value_of(const query *q, int64_t j)
{
    return place(q->image, q->p->keys, j, q->p->kv_heads, q->shared, q->p->width);
}

static bool is_hidden(const query *q, int64_t j)
{
    return (q->p->causal && j > q->row) || (q->mask && !q->mask[j * q->p->mask_key]);
}

static double score(const query *q, int64_t j)
{
    if (is_hidden(q, j)) return STK_ATTENTION_HIDDEN;
    return q->p->scale * dot(q->p, q->l->arg[0], q->q, q->l->arg[1], key_of(q, j), q->p->depth);
}

static int64_t stats_of(const query *q)
{
    const int64_t rows = 2 + (q->p->keep ? q->p->keys : 0);
    return (q->image * q->p->heads + q->head) * rows * q->p->queries + q->row;
}

static int64_t kept_at(const query *q, int64_t key)
{
    const int64_t i = q->row % STK_ATTENTION_KEPT, lo = q->row - i;
    const int64_t ld = stk_min_i64(STK_ATTENTION_KEPT, q->p->queries - lo);
    return stats_of(q) - q->row + 2 * q->p->queries + lo * q->p->keys + key * ld + i;
}

static void look(const query *q, void *y, void *stats)
{
    const params_t *p = q->p;
    double top = -(double)INFINITY, sum = 0;
    const int64_t at = stats_of(q);
    for (int64_t j = 0; j < p->keys; j++) top = fmax(top, score(q, j));
    for (int64_t j = 0; j < p->keys; j++) sum += exp(score(q, j) - top);
    put(p, stats, at, top);
    put(p, stats, at + p->queries, 1 / sum);
    for (int64_t j = 0; p->keep && j < p->keys; j++)
        put(p, stats, kept_at(q, j), exp(score(q, j) - top));
    for (int64_t c = 0; c < p->width; c++) {
        double seen = 0;
        for (int64_t j = 0; j < p->keys; j++)
            seen += exp(score(q, j) - top) / sum * get(p, q->l->arg[2], value_of(q, j) + c);
        put(p, y, q->y + c, seen);
    }
}

static void look_back(const query *q, void *const *out)
{
    const params_t *p = q->p;
    void *const *in = q->l->arg;
    const int64_t at = stats_of(q);
    const double top = get(p, in[3], at), rsum = get(p, in[3], at + p->queries);
    double sum = 0;
    for (int64_t j = 0; j < p->keys; j++)
        sum += exp(score(q, j) - top) * rsum * dot(p, in[4], q->y, in[2], value_of(q, j), p->width);
    for (int64_t j = 0; j < p->keys; j++) {
        const int64_t k = key_of(q, j), v = value_of(q, j);
        const double weight = exp(score(q, j) - top) * rsum;
        const double ds =
            is_hidden(q, j) ? 0 : weight * (dot(p, in[4], q->y, in[2], v, p->width) - sum);
        for (int64_t c = 0; c < p->depth; c++) {
            add(p, out[0], q->q + c, p->scale * ds * get(p, in[1], k + c));
            add(p, out[1], k + c, p->scale * ds * get(p, in[0], q->q + c));
        }
        for (int64_t c = 0; c < p->width; c++)
            add(p, out[2], v + c, weight * get(p, in[4], q->y + c));
    }
}

static void run_attention_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const params_t *p = l->params;
    const int out = p->masked ? 4 : 3;
    (void)part;
    for (int64_t image = lo; image < hi; image++)
        for (int64_t head = 0; head < p->heads; head++)
            for (int64_t row = 0; row < p->queries; row++) {
                query q = query_at(l, image, head, row, 3);
                look(&q, l->arg[out], l->arg[out + 1]);
            }
}

static void run_attention_grad_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const params_t *p = l->params;
    const int64_t size = stk_dtype_size((stk_dtype)p->dtype);
    const int64_t image_of[] = {p->queries * p->heads * p->depth * size,
                                p->keys * p->kv_heads * p->depth * size,
                                p->keys * p->kv_heads * p->width * size};
    void *const *out = l->arg + (p->masked ? 6 : 5);
    (void)part;
    for (int i = 0; i < 3; i++)
        memset((char *)out[i] + lo * image_of[i], 0, (size_t)((hi - lo) * image_of[i]));
    for (int64_t image = lo; image < hi; image++)
        for (int64_t head = 0; head < p->heads; head++)
            for (int64_t row = 0; row < p->queries; row++) {
                query q = query_at(l, image, head, row, 5);
                look_back(&q, out);
            }
}

const stk_impl stk_impl_attention_ref = {.name = "ref",
                                         .kernel = STK_K_ATTENTION,
                                         .rank = 100,
                                         .supports = is_real,
                                         .units = images_of,
                                         .run = run_attention_ref};
const stk_impl stk_impl_attention_grad_ref = {.name = "ref",
                                              .kernel = STK_K_ATTENTION_GRAD,
                                              .rank = 100,
                                              .supports = is_real,
                                              .units = images_of,
                                              .run = run_attention_grad_ref};
