/* Vector kernels of pooling (pool.h). A window is a list of taps, the offsets of its pixels. Along a row the windows that lie
 * inside the image have the same taps, so a stretch of them is one call; windows at the edges have shorter lists. The
 * loops over channels are written for a constant number of taps, so that a window stays in registers; long lists go
 * tap by tap through memory. */
#include "device/cpu/vec/pool.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 9")
/* Inputs and outputs of a kernel never overlap. */
#define CHANNELS(c, n) _Pragma("GCC ivdep") for (int64_t c = 0; c < n; c++)

enum { TAPS = 9 }; /* most taps of a window in registers */

/* One image of one kernel: a and b are its inputs, out its output. */
typedef struct job {
    const stk_pool_params *p;
    const float *a, *b;
    float *out;
    bool add; /* windows share pixels of out */
} job;

/* `count` windows whose taps start at element x and lie x_step apart; y is the first pooled pixel. */
typedef struct stretch {
    int64_t from[3], size[3]; /* of the first window, inside the image */
    int64_t x, x_step, y, count;
    int64_t taps;
    int64_t tap[TAPS]; /* offsets from x, when in_registers() */
} stretch;

typedef void stretch_fn(const job *j, const stretch *s);

/* ---- windows ---------------------------------------------------------------------------------------- */

static bool in_registers(int64_t taps) { return taps <= TAPS && taps != 5 && taps != 7; }

/* Offset of tap k from the first one. */
static int64_t tap_offset(const job *j, const stretch *s, int64_t k)
{
    const int64_t *size = s->size, *in = j->p->in;
    int64_t x = k % size[2], y = k / size[2] % size[1], z = k / size[2] / size[1];
    return ((z * in[1] + y) * in[2] + x) * j->p->c;
}

/* The part of a window that lies inside, along one axis. */
static void clip(const stk_pool_params *p, int i, int64_t out, stretch *s)
{
    int64_t from = out * p->stride[i] - p->low[i], to = from + p->window[i];
    s->from[i] = from < 0 ? 0 : from;
    s->size[i] = (to > p->in[i] ? p->in[i] : to) - s->from[i];
}

/* Windows from column `col` on that have all their columns: at least 1. */
static int64_t alike(const stk_pool_params *p, const stretch *s, int64_t col)
{
    if (s->size[2] != p->window[2]) return 1;
    int64_t last = (p->in[2] + p->low[2] - p->window[2]) / p->stride[2];
    return (last < p->out[2] - 1 ? last : p->out[2] - 1) - col + 1;
}

static void run_row(const job *j, stretch *s, stretch_fn *fn)
{
    const stk_pool_params *p = j->p;
    for (int64_t col = 0; col < p->out[2]; col += s->count) {
        clip(p, 2, col, s);
        s->count = alike(p, s, col);
        s->taps = s->size[0] * s->size[1] * s->size[2];
        s->x = ((s->from[0] * p->in[1] + s->from[1]) * p->in[2] + s->from[2]) * p->c;
        if (in_registers(s->taps))
            for (int64_t k = 0; k < s->taps; k++) s->tap[k] = tap_offset(j, s, k);
        fn(j, s);
        s->y += s->count * p->c;
    }
}

static void run_image(const job *j, stretch_fn *fn)
{
    const stk_pool_params *p = j->p;
    stretch s = {.x_step = p->stride[2] * p->c};
    for (int64_t z = 0; z < p->out[0]; z++)
        for (int64_t y = 0; y < p->out[1]; y++) {
            clip(p, 0, z, &s);
            clip(p, 1, y, &s);
            run_row(j, &s, fn);
        }
}

/* Calls body(j, s, T) with the number of taps as a constant. */
#define WITH_TAPS(body, j, s)                                                                      \
    switch ((s)->taps) {                                                                           \
    case 1: body(j, s, 1); break;                                                                  \
    case 2: body(j, s, 2); break;                                                                  \
    case 3: body(j, s, 3); break;                                                                  \
    case 4: body(j, s, 4); break;                                                                  \
    case 6: body(j, s, 6); break;                                                                  \
    case 8: body(j, s, 8); break;                                                                  \
    default: body(j, s, 9); break;                                                                 \
    }

/* A window's addresses in the loops below. */
#define EACH_WINDOW(s, i, at, y, n)                                                                \
    for (int64_t i = 0, at = (s)->x, y = (s)->y; i < (s)->count; i++, at += (s)->x_step, y += n)

INLINE float larger(float a, float b) { return (b > a) | (b != b) ? b : a; }

static int64_t pixels(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

/* ---- max --------------------------------------------------------------------------------------------- */

INLINE void max_taps(const job *j, const stretch *s, const int T)
{
    const int64_t n = j->p->c;
    const float *tap[TAPS];
    UNROLL for (int k = 0; k < T; k++) tap[k] = j->a + s->tap[k];
    EACH_WINDOW(s, i, at, y, n)
    {
        float *to = j->out + y;
        CHANNELS(c, n)
        {
            float best = tap[0][at + c];
            UNROLL for (int k = 1; k < T; k++) best = larger(best, tap[k][at + c]);
            to[c] = best;
        }
    }
}

static void max_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    if (in_registers(s->taps)) {
        WITH_TAPS(max_taps, j, s)
        return;
    }
    EACH_WINDOW(s, i, at, y, n)
    {
        float *to = j->out + y;
        memcpy(to, j->a + at, (size_t)n * sizeof *to);
        for (int64_t k = 1; k < s->taps; k++) {
            const float *from = j->a + at + tap_offset(j, s, k);
            CHANNELS(c, n) to[c] = larger(to[c], from[c]);
        }
    }
}

static void max_pool(const stk_pool_params *p, const float *x, float *y)
{
    run_image(&(job){.p = p, .a = x, .out = y}, max_stretch);
}

/* ---- gradient of max: dy goes to the first maximum ------------------------------------------------------ */

/* `rest` is what has not been given away yet. */
INLINE void max_grad_window(const float *const *tap, float *const *to, const float *dy, int64_t n,
                            bool add, const int T)
{
    CHANNELS(c, n)
    {
        float v[TAPS], best, rest = dy[c];
        UNROLL for (int k = 0; k < T; k++) v[k] = tap[k][c];
        best = v[0];
        UNROLL for (int k = 1; k < T; k++) best = larger(best, v[k]);
        UNROLL for (int k = 0; k < T; k++)
        {
            bool hit = (v[k] == best) | (v[k] != v[k]);
            float give = hit ? rest : 0;
            rest = hit ? 0 : rest;
            to[k][c] = add ? to[k][c] + give : give;
        }
    }
}

INLINE void max_grad_taps(const job *j, const stretch *s, const int T)
{
    const int64_t n = j->p->c;
    EACH_WINDOW(s, i, at, y, n)
    {
        const float *tap[TAPS];
        float *to[TAPS];
        UNROLL for (int k = 0; k < T; k++) tap[k] = j->a + at + s->tap[k],
                                           to[k] = j->out + at + s->tap[k];
        if (j->add)
            max_grad_window(tap, to, j->b + y, n, true, T);
        else
            max_grad_window(tap, to, j->b + y, n, false, T);
    }
}

/* Element of the first maximum of channel c in the window at `at`. */
static int64_t first_maximum(const job *j, const stretch *s, int64_t at, int64_t c)
{
    const float *x = j->a;
    int64_t best = at + c;
    for (int64_t k = 1; k < s->taps; k++) {
        int64_t next = at + tap_offset(j, s, k) + c;
        if (x[next] > x[best] || (x[next] != x[next] && x[best] == x[best])) best = next;
    }
    return best;
}

static void max_grad_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    if (in_registers(s->taps)) {
        WITH_TAPS(max_grad_taps, j, s)
        return;
    }
    EACH_WINDOW(s, i, at, y, n)
    {
        for (int64_t k = 0; !j->add && k < s->taps; k++)
            memset(j->out + at + tap_offset(j, s, k), 0, (size_t)n * sizeof *j->out);
        for (int64_t c = 0; c < n; c++) j->out[first_maximum(j, s, at, c)] += j->b[y + c];
    }
}

static void max_grad(const stk_pool_params *p, const float *x, const float *dy, float *dx)
{
    bool apart = true, covers = true; /* windows share no pixel; they leave none out */
    for (int i = 0; i < 3; i++) {
        bool alone = p->out[i] == 1;
        int64_t last = (p->out[i] - 1) * p->stride[i] - p->low[i] + p->window[i];
        apart &= alone || p->stride[i] >= p->window[i];
        covers &= last >= p->in[i] && (alone || p->stride[i] <= p->window[i]);
    }
    if (!(apart && covers)) memset(dx, 0, (size_t)(pixels(p->in) * p->c) * sizeof *dx);
    run_image(&(job){.p = p, .a = x, .b = dy, .out = dx, .add = !apart}, max_grad_stretch);
}

/* ---- values at the maximum: the gradient of the gradient ------------------------------------------------- */

INLINE void max_pick_taps(const job *j, const stretch *s, const int T)
{
    const int64_t n = j->p->c;
    EACH_WINDOW(s, i, at, y, n)
    {
        const float *x[TAPS], *v[TAPS];
        float *to = j->out + y;
        UNROLL for (int k = 0; k < T; k++) x[k] = j->a + at + s->tap[k],
                                           v[k] = j->b + at + s->tap[k];
        CHANNELS(c, n)
        {
            float best = x[0][c], value = 0;
            UNROLL for (int k = 1; k < T; k++) best = larger(best, x[k][c]);
            UNROLL for (int k = T - 1; k >= 0;
                        k--) /* backwards: the first hit is the last to be taken */
            {
                float seen = x[k][c], here = v[k][c];
                value = (seen == best) | (seen != seen) ? here : value;
            }
            to[c] = value;
        }
    }
}

static void max_pick_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    if (in_registers(s->taps)) {
        WITH_TAPS(max_pick_taps, j, s)
        return;
    }
    EACH_WINDOW(s, i, at, y, n)
    for (int64_t c = 0; c < n; c++) j->out[y + c] = j->b[first_maximum(j, s, at, c)];
}

static void max_pick(const stk_pool_params *p, const float *x, const float *v, float *y)
{
    run_image(&(job){.p = p, .a = x, .b = v, .out = y}, max_pick_stretch);
}

/* ---- average ----------------------------------------------------------------------------------------------- */

INLINE void avg_taps(const job *j, const stretch *s, const int T)
{
    const int64_t n = j->p->c;
    const float share = 1.0f / (float)T;
    const float *tap[TAPS];
    UNROLL for (int k = 0; k < T; k++) tap[k] = j->a + s->tap[k];
    EACH_WINDOW(s, i, at, y, n)
    {
        float *to = j->out + y;
        CHANNELS(c, n)
        {
            float sum = tap[0][at + c];
            UNROLL for (int k = 1; k < T; k++) sum += tap[k][at + c];
            to[c] = sum * share;
        }
    }
}

static void avg_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    const float share = 1.0f / (float)s->taps;
    if (in_registers(s->taps)) {
        WITH_TAPS(avg_taps, j, s)
        return;
    }
    EACH_WINDOW(s, i, at, y, n)
    {
        float *to = j->out + y;
        memcpy(to, j->a + at, (size_t)n * sizeof *to);
        for (int64_t k = 1; k < s->taps; k++) {
            const float *from = j->a + at + tap_offset(j, s, k);
            CHANNELS(c, n) to[c] += from[c];
        }
        CHANNELS(c, n) to[c] *= share;
    }
}

static void avg_pool(const stk_pool_params *p, const float *x, float *y)
{
    run_image(&(job){.p = p, .a = x, .out = y}, avg_stretch);
}

static void avg_grad_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    const float share = 1.0f / (float)s->taps;
    EACH_WINDOW(s, i, at, y, n)
    for (int64_t k = 0; k < s->taps; k++) {
        float *to = j->out + at + (in_registers(s->taps) ? s->tap[k] : tap_offset(j, s, k));
        const float *dy = j->a + y;
        CHANNELS(c, n) to[c] += dy[c] * share;
    }
}

static void avg_grad(const stk_pool_params *p, const float *dy, float *dx)
{
    memset(dx, 0, (size_t)(pixels(p->in) * p->c) * sizeof *dx);
    run_image(&(job){.p = p, .a = dy, .out = dx}, avg_grad_stretch);
}

const stk_vec_pool STK_VEC(stk_vec_pool) = {.max = max_pool,
                                            .max_grad = max_grad,
                                            .max_pick = max_pick,
                                            .avg = avg_pool,
                                            .avg_grad = avg_grad};
