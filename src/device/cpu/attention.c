/* attention.c - attention of heads without scores in memory.
 *
 * Scores of a block of queries stand in the room of the thread, all keys of them, key by key (vec/attention.h), and are used
 * up there. Backward they are computed once more, with the statistics that were kept. Small ones are kept themselves: that
 * costs less than a fifth product and the exponentials.
 *
 *     x[keys, block] = k q^T, then e^(x - top)     y = rsum x^T v
 *     d[keys, block] = v (rsum dy)^T               dv += x (rsum dy),  dk += ds q,  dq = ds^T k
 *
 * This way round keys and values are always the left sides, which are read where they lie with the heads interleaved; only
 * blocks of queries are turned. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/attention.h"
#include "device/cpu/vec/gemm.h"

typedef stk_attention_params params_t;

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* Images of a batch, so that neighbours can follow; heads of them when they are too few. */
static bool by_image(const params_t *p) { return p->batch >= 16; }

static int64_t attention_units(const void *params)
{
    const params_t *p = params;
    return by_image(p) ? p->batch : p->batch * p->kv_heads;
}

static int64_t attention_grain(const void *params)
{
    const params_t *p = params;
    double flops = 4.0 * (double)p->queries * (double)p->keys * (double)(p->depth + p->width);
    double ns = flops * (double)p->heads / (by_image(p) ? 100.0 : 100.0 * (double)p->kv_heads);
    return ns > 10e3 ? 1 : (int64_t)(10e3 / (ns + 1.0)) + 1;
}

static uint32_t attention_aligned(const void *params)
{
    const params_t *p = params;
    return !by_image(p) ? 0 : p->masked ? 0x37 : 0x1f; /* without the mask, and what follows it */
}
static uint32_t attention_grad_aligned(const void *params)
{
    const params_t *p = params;
    return !by_image(p) ? 0 : p->masked ? 0x1df : 0xff;
}

/* ---- blocks and their memory -------------------------------------------------------------------------------------- */

enum { MOST_QUERIES = STK_ATTENTION_KEPT, BLOCK_BYTES = 256 * 1024 };

/* Queries of a block: as many as leave the scores in the second-level cache. */
static int64_t block_of(const params_t *p, bool grad)
{
    int64_t block = MOST_QUERIES, row = p->keys * (grad ? 8 : 4);
    while (!p->keep && block > STK_ATTENTION_LANES && block * row > BLOCK_BYTES) block /= 2;
    return block;
}

static int64_t lanes_of(int64_t n) { return stk_round_up(n, STK_ATTENTION_LANES); }

/* One head of one image: where its rows start, and how far it is from one to the next. */
typedef struct head {
    const params_t *p;
    const float *q, *k, *v, *dy;
    float *y, *dq, *dk, *dv, *top, *rsum, *kept;
    const uint8_t *mask;
    int64_t q_row, k_row, v_row, y_row;
} head;

/* One block of queries: lo .. lo + n, padded to `lanes`; the first `keys` of the keys are looked at. */
typedef struct block {
    int64_t lo, n, lanes, keys;
    float *x, *d, *q, *dy; /* q and dy: copies of its rows, scaled, with zeros behind them */
    void *scratch;
} block;

static stk_gemm product_of(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc)
{
    return (stk_gemm){
        .m = m, .n = n, .k = k, .batch = 1, .lda = lda, .ldb = ldb, .ldc = ldc, .dtype = STK_F32};
}

/* The products of a block. */
typedef struct products {
    stk_gemm scores, look;                 /* k q^T, x^T v */
    stk_gemm spread, dvalue, dkey, dquery; /* v dy^T, x dy, ds q, ds^T k */
} products;

static products products_of(const params_t *p, const block *b)
{
    const int64_t k_row = p->kv_heads * p->depth, v_row = p->kv_heads * p->width, n = b->lanes;
    products g = {
        .scores = product_of(b->keys, n, p->depth, k_row, p->depth, b->lanes),
        .look = product_of(b->n, p->width, b->keys, b->lanes, v_row, p->heads * p->width),
        .spread = product_of(b->keys, n, p->width, v_row, p->width, n),
        .dvalue = product_of(b->keys, p->width, b->n, b->lanes, p->width, v_row),
        .dkey = product_of(b->keys, p->depth, b->n, n, p->depth, k_row),
        .dquery = product_of(b->n, p->depth, b->keys, n, k_row, p->heads * p->depth),
    };
    g.scores.tb = g.spread.tb = 1;
    g.look.ta = g.dquery.ta = 1;
    g.dvalue.accumulate = g.dkey.accumulate = 1;
    return g;
}

/* Keys behind the last query of a causal block are not computed. With a mask they are: a query that sees none of its keys looks
 * at all keys alike, also at those behind it. */
static block block_at(const params_t *p, int64_t lo, int64_t step)
{
    block b = {.lo = lo, .n = stk_min_i64(p->queries - lo, step), .keys = p->keys};
    b.lanes = lanes_of(b.n);
    if (p->causal && !p->masked) b.keys = stk_min_i64(p->keys, lo + b.n);
    return b;
}

static int64_t scratch_of(const params_t *p, bool grad)
{
    int64_t (*scratch)(const stk_gemm *) = stk_vec_get()->gemm->scratch[STK_F32], most = 0;
    const int64_t step = block_of(p, grad);
    for (int64_t lo = 0; lo < p->queries; lo += step) {
        const block b = block_at(p, lo, step);
        const products g = products_of(p, &b);
        most = stk_max_i64(most, stk_max_i64(scratch(&g.scores), scratch(&g.look)));
        if (!grad) continue;
        most = stk_max_i64(most, stk_max_i64(scratch(&g.spread), scratch(&g.dquery)));
        most = stk_max_i64(most, stk_max_i64(scratch(&g.dvalue), scratch(&g.dkey)));
    }
    return most;
}

static int64_t floats(int64_t n) { return stk_round_up(n * (int64_t)sizeof(float), STK_ALIGN); }

/* Bytes of the pieces of a room, in order: x, d, q, dy. */
typedef struct pieces {
    int64_t x, d, q, dy;
} pieces;

static pieces pieces_of(const params_t *p, bool grad)
{
    const int64_t lanes = lanes_of(stk_min_i64(block_of(p, grad), p->queries));
    return (pieces){.x = p->keep ? 0 : floats(p->keys * lanes),
                    .d = grad ? floats(p->keys * lanes) : 0,
                    .q = floats(p->depth * lanes),
                    .dy = grad ? floats(p->width * lanes) : 0};
}

static int64_t room_of(const params_t *p, bool grad)
{
    const pieces r = pieces_of(p, grad);
    return r.x + r.d + r.q + r.dy + scratch_of(p, grad);
}
static int64_t attention_room(const void *params) { return room_of(params, false); }
static int64_t attention_grad_room(const void *params) { return room_of(params, true); }

static void place_block(const head *h, block *b, char *room, const pieces *r)
{
    b->x = h->p->keep ? h->kept + b->lo * h->p->keys : (float *)(void *)room;
    b->d = (float *)(void *)(room + r->x);
    b->q = (float *)(void *)(room + r->x + r->d);
    b->dy = (float *)(void *)(room + r->x + r->d + r->q);
    b->scratch = room + r->x + r->d + r->q + r->dy;
}

/* ---- the work ------------------------------------------------------------------------------------------------------- */

static void multiply(const stk_gemm *g, const float *a, const float *b, float *c, void *scratch)
{
    stk_gemm_job job = {
        .whole = g, .a = a, .b = b, .c = c, .row_hi = g->m, .col_hi = g->n, .scratch = scratch};
    stk_vec_get()->gemm->run[STK_F32](&job);
}

/* Rows of the block times by[i * step]. */
static void take_rows(const block *b, const float *from, int64_t row, int64_t width,
                      const float *by, int64_t step, float *to)
{
    stk_vec_get()->attention->take_rows(b->n, width, from + b->lo * row, row, by, step, to);
    memset(to + b->n * width, 0, (size_t)((b->lanes - b->n) * width) * sizeof *to);
}

/* `value` where the query may not look. */
static void hide(const head *h, const block *b, float *x, float value)
{
    const params_t *p = h->p;
    const stk_vec_attention *vec = stk_vec_get()->attention;
    const int64_t first = stk_min_i64(b->lo, b->keys); /* all queries see the keys up to theirs */
    if (p->causal)
        vec->hide_later(first, b->keys - first, b->lo, b->lanes, x + first * b->lanes, value);
    if (p->masked)
        vec->hide(b->keys, b->n, b->lanes, h->mask + b->lo * p->mask_query, p->mask_key,
                  p->mask_query == 0, x, value);
}

static void make_scores(const head *h, const block *b, const products *g)
{
    multiply(&g->scores, h->k, b->q, b->x, b->scratch);
    hide(h, b, b->x, (float)STK_ATTENTION_HIDDEN);
}

static void look(const head *h, const block *b)
{
    const params_t *p = h->p;
    const products g = products_of(p, b);
    const stk_vec_attention *vec = stk_vec_get()->attention;
    const float scale = (float)p->scale;
    float top[MOST_QUERIES], rsum[MOST_QUERIES], *y = h->y + b->lo * h->y_row;
    take_rows(b, h->q, h->q_row, p->depth, &scale, 0, b->q);
    make_scores(h, b, &g);
    vec->soften(b->keys, b->lanes, b->x, top, rsum);
    multiply(&g.look, b->x, h->v, y, b->scratch);
    vec->scale_rows(b->n, p->width, y, h->y_row, rsum, 1);
    memcpy(h->top + b->lo, top, (size_t)b->n * sizeof *top);
    memcpy(h->rsum + b->lo, rsum, (size_t)b->n * sizeof *rsum);
}

static void look_back(const head *h, const block *b)
{
    const params_t *p = h->p;
    const products g = products_of(p, b);
    const stk_vec_attention *vec = stk_vec_get()->attention;
    const float scale = (float)p->scale;
    float top[MOST_QUERIES] = {0}, rsum[MOST_QUERIES] = {0}, *dq = h->dq + b->lo * h->q_row;
    memcpy(top, h->top + b->lo, (size_t)b->n * sizeof *top);
    memcpy(rsum, h->rsum + b->lo, (size_t)b->n * sizeof *rsum);
    take_rows(b, h->q, h->q_row, p->depth, &scale, 0, b->q);
    take_rows(b, h->dy, h->y_row, p->width, rsum, 1, b->dy);
    if (!p->keep) {
        make_scores(h, b, &g);
        vec->soften_again(b->keys, b->lanes, b->x, top);
    }
    multiply(&g.spread, h->v, b->dy, b->d, b->scratch);
    vec->soften_grad(b->keys, b->lanes, b->x, b->d, rsum);
    if (p->masked) hide(h, b, b->d, 0.0f); /* else what is hidden has probability 0 */
    multiply(&g.dvalue, b->x, b->dy, h->dv, b->scratch);
    multiply(&g.dkey, b->d, b->q, h->dk, b->scratch);
    multiply(&g.dquery, b->d, h->k, dq, b->scratch);
    vec->scale_rows(b->n, p->depth, dq, h->q_row, &scale, 0);
}

static head head_at(const stk_launch *l, int64_t image, int64_t number, bool grad)
{
    const params_t *p = l->params;
    const int64_t shared = number / (p->heads / p->kv_heads), at = image * p->heads + number;
    const int64_t mask = grad ? 5 : 3, out = mask + (p->masked ? 1 : 0);
    head h = {.p = p,
              .q_row = p->heads * p->depth,
              .k_row = p->kv_heads * p->depth,
              .v_row = p->kv_heads * p->width,
              .y_row = p->heads * p->width};
    const int64_t q = image * p->queries * h.q_row + number * p->depth;
    const int64_t k = image * p->keys * h.k_row + shared * p->depth;
    const int64_t v = image * p->keys * h.v_row + shared * p->width;
    const int64_t y = image * p->queries * h.y_row + number * p->width;
    h.q = (const float *)l->arg[0] + q;
    h.k = (const float *)l->arg[1] + k;
    h.v = (const float *)l->arg[2] + v;
    h.top = (float *)l->arg[grad ? 3 : out + 1] + at * (2 + (p->keep ? p->keys : 0)) * p->queries;
    h.rsum = h.top + p->queries;
    h.kept = h.rsum + p->queries;
    if (p->masked)
        h.mask = (const uint8_t *)l->arg[mask] + image * p->mask_batch + number * p->mask_head;
    if (grad) {
        h.dy = (const float *)l->arg[4] + y;
        h.dq = (float *)l->arg[out] + q;
        h.dk = (float *)l->arg[out + 1] + k;
        h.dv = (float *)l->arg[out + 2] + v;
    } else {
        h.y = (float *)l->arg[out] + y;
    }
    return h;
}

static void clear_rows(float *at, int64_t rows, int64_t row, int64_t width)
{
    for (int64_t i = 0; i < rows; i++, at += row) memset(at, 0, (size_t)width * sizeof *at);
}

static void run_head(const stk_launch *l, int64_t image, int64_t number, bool grad)
{
    const params_t *p = l->params;
    const head h = head_at(l, image, number, grad);
    const int64_t step = block_of(p, grad);
    const pieces r = pieces_of(p, grad);
    if (grad && number % (p->heads / p->kv_heads) == 0) {
        clear_rows(h.dk, p->keys, h.k_row, p->depth);
        clear_rows(h.dv, p->keys, h.v_row, p->width);
    }
    for (int64_t lo = 0; lo < p->queries; lo += step) {
        block b = block_at(p, lo, step);
        place_block(&h, &b, l->room, &r);
        (grad ? look_back : look)(&h, &b);
    }
}

static void run_units(const stk_launch *l, int64_t lo, int64_t hi, bool grad)
{
    const params_t *p = l->params;
    const int64_t heads = by_image(p) ? p->heads : p->heads / p->kv_heads; /* of a unit */
    for (int64_t at = lo * heads; at < hi * heads; at++)
        run_head(l, at / p->heads, at % p->heads, grad);
}

static void run_attention(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    run_units(l, lo, hi, false);
}
static void run_attention_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    run_units(l, lo, hi, true);
}

static bool is_f32(const void *params) { return ((const params_t *)params)->dtype == STK_F32; }

const stk_impl stk_impl_attention_own = {.name = "own",
                                         .kernel = STK_K_ATTENTION,
                                         .supports = is_f32,
                                         .units = attention_units,
                                         .grain = attention_grain,
                                         .aligned = attention_aligned,
                                         .room = attention_room,
                                         .run = run_attention};
const stk_impl stk_impl_attention_grad_own = {.name = "own",
                                              .kernel = STK_K_ATTENTION_GRAD,
                                              .supports = is_f32,
                                              .units = attention_units,
                                              .grain = attention_grain,
                                              .aligned = attention_grad_aligned,
                                              .room = attention_grad_room,
                                              .run = run_attention_grad};
