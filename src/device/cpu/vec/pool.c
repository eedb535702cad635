/* Vector kernels of pooling (pool.h). A window is a list of taps, the offsets of its pixels. Along a row the windows that
 * lie inside the image have the same taps, so a stretch of them is one call; windows at the edges have shorter lists. Channels
 * fill registers, the taps of a window are a constant number of them; long lists and the last channels go one element
 * at a time. */
#include "device/cpu/vec/pool.h"

#include "base/dtype.h"
#include "device/cpu/vec/lanes.h"

#include <string.h>

/* Inputs and outputs of a kernel never overlap. */
#if defined(__clang__)
#define CHANNELS(c, n) for (int64_t c = 0; c < n; c++)
#else
#define CHANNELS(c, n) _Pragma("GCC ivdep") for (int64_t c = 0; c < n; c++)
#endif

typedef int32_t vi __attribute__((vector_size(STK_VF * 4)));
typedef int16_t vs __attribute__((vector_size(STK_VF * 2)));
typedef uint8_t vb __attribute__((vector_size(STK_VF)));
typedef uint8_t vb_any __attribute__((vector_size(STK_VF), aligned(1), may_alias));

enum { TAPS = 9 }; /* most taps of a window in registers */

/* One image of one kernel: x is the large side, y the pooled one, whoever is written. */
typedef struct job {
    const stk_pool_params *p;
    void *x, *y;    /* of the element type */
    uint8_t *which; /* or int32 */
    bool wide, add; /* which is int32; windows share pixels of x */
} job;

/* `count` windows whose taps start at element x and lie x_step apart; y is the first pooled element. */
typedef struct stretch {
    int64_t from[3], skip[3],
        size[3]; /* of the first window: inside the image, cut off before, left */
    int64_t x, x_step, y, count;
    int64_t taps;
    int64_t tap[TAPS];    /* offsets from x, when in_registers() */
    int32_t number[TAPS]; /* their numbers in the whole window */
} stretch;

typedef void stretch_fn(const job *j, const stretch *s);

/* ---- windows ---------------------------------------------------------------------------------------- */

static bool in_registers(int64_t taps) { return taps <= TAPS && taps != 5 && taps != 7; }

typedef struct tap {
    int64_t offset;
    int32_t number;
} tap;

/* Tap k of those inside: where it is, and its number in the whole window. */
static tap tap_at(const job *j, const stretch *s, int64_t k)
{
    const int64_t *size = s->size, *in = j->p->in, *window = j->p->window;
    int64_t x = k % size[2], y = k / size[2] % size[1], z = k / size[2] / size[1];
    int64_t number = ((z + s->skip[0]) * window[1] + y + s->skip[1]) * window[2] + x + s->skip[2];
    return (tap){((z * in[1] + y) * in[2] + x) * j->p->c, (int32_t)number};
}

/* The part of a window that lies inside, along one axis. */
static void clip(const stk_pool_params *p, int i, int64_t out, stretch *s)
{
    int64_t from = out * p->stride[i] - p->low[i], to = from + p->window[i];
    s->from[i] = from < 0 ? 0 : from;
    s->skip[i] = s->from[i] - from;
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
        for (int64_t k = 0; in_registers(s->taps) && k < s->taps; k++) {
            tap t = tap_at(j, s, k);
            s->tap[k] = t.offset;
            s->number[k] = t.number;
        }
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
#define EACH_WINDOW(s, at, y, n)                                                                   \
    for (int64_t i_ = 0, at = (s)->x, y = (s)->y; i_ < (s)->count; i_++, at += (s)->x_step, y += n)

static int64_t pixels(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

STK_INLINE vf load(const float *p) { return (vf) * (const vf_unaligned *)p; }
STK_INLINE void save(float *p, vf v) { *(vf_unaligned *)p = (vf_unaligned)v; }
STK_INLINE vf choose(vi mask, vf yes, vf no) { return (vf)((mask & (vi)yes) | (~mask & (vi)no)); }
/* In two steps: straight conversions between 8 and 32 bits are taken apart by the compiler. */
STK_INLINE vi load_which(const uint8_t *p)
{
    return __builtin_convertvector(__builtin_convertvector((vb) * (const vb_any *)p, vs), vi);
}
STK_INLINE void save_which(uint8_t *p, vi v)
{
    *(vb_any *)p = (vb_any) __builtin_convertvector(__builtin_convertvector(v, vs), vb);
}

static int32_t get_which(const job *j, int64_t i)
{
    return j->wide ? ((const int32_t *)(const void *)j->which)[i] : j->which[i];
}

static void put_which(const job *j, int64_t i, int32_t number)
{
    if (j->wide)
        ((int32_t *)(void *)j->which)[i] = number;
    else
        j->which[i] = (uint8_t)number;
}

/* bfloat16 is the upper half of a float; what is saved was loaded, so nothing is lost. */
typedef uint16_t vh __attribute__((vector_size(STK_VF * 2)));
typedef uint16_t vh_any __attribute__((vector_size(STK_VF * 2), aligned(2), may_alias));
typedef uint32_t vu __attribute__((vector_size(STK_VF * 4)));
STK_INLINE vf load_half(const uint16_t *p)
{
    return (vf)(__builtin_convertvector((vh) * (const vh_any *)p, vu) << 16);
}
STK_INLINE void save_half(uint16_t *p, vf v)
{
    *(vh_any *)p = (vh_any) __builtin_convertvector((vu)v >> 16, vh);
}
STK_INLINE float one_float(float x) { return x; }

/* Do windows share no pixel? *covers: they leave none out. */
static bool windows_apart(const stk_pool_params *p, bool *covers)
{
    bool apart = true;
    *covers = true;
    for (int i = 0; i < 3; i++) {
        bool alone = p->out[i] == 1;
        int64_t last = (p->out[i] - 1) * p->stride[i] - p->low[i] + p->window[i];
        apart &= alone || p->stride[i] >= p->window[i];
        *covers &= last >= p->in[i] && (alone || p->stride[i] <= p->window[i]);
    }
    return apart;
}

/* Does v beat the best so far? A NaN beats numbers, nothing beats a NaN. */
#define BEATS(v, best) (!((v) <= (best)) & ((best) == (best)))

/* ---- maxima ---------------------------------------------------------------------------------------------- */

#define PIXEL   float
#define LOAD    load
#define SAVE    save
#define ONE(x)  one_float(x)
#define ADDS    true
#define P(name) name##_float
#include "device/cpu/vec/pool_max.inc"

#define PIXEL   uint16_t
#define LOAD    load_half
#define SAVE    save_half
#define ONE(x)  stk_bf16_to_f32(x)
#define ADDS    false
#define P(name) name##_half
#include "device/cpu/vec/pool_max.inc"

/* ---- average ----------------------------------------------------------------------------------------------- */

STK_INLINE void avg_taps(const job *j, const stretch *s, const int T)
{
    const int64_t n = j->p->c;
    const float share = 1.0f / (float)T;
    const float *x[TAPS];
    STK_UNROLL for (int k = 0; k < T; k++) x[k] = (const float *)j->x + s->tap[k];
    EACH_WINDOW(s, at, y, n)
    {
        float *to = (float *)j->y + y;
        CHANNELS(c, n)
        {
            float sum = x[0][at + c];
            STK_UNROLL for (int k = 1; k < T; k++) sum += x[k][at + c];
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
    EACH_WINDOW(s, at, y, n)
    {
        float *to = (float *)j->y + y;
        memcpy(to, (const float *)j->x + at, (size_t)n * sizeof *to);
        for (int64_t k = 1; k < s->taps; k++) {
            const float *from = (const float *)j->x + at + tap_at(j, s, k).offset;
            CHANNELS(c, n) to[c] += from[c];
        }
        CHANNELS(c, n) to[c] *= share;
    }
}

static void avg_pool(const stk_pool_params *p, const float *x, float *y)
{
    run_image(&(job){.p = p, .x = (float *)x, .y = y}, avg_stretch);
}

static void avg_grad_stretch(const job *j, const stretch *s)
{
    const int64_t n = j->p->c;
    const float share = 1.0f / (float)s->taps;
    EACH_WINDOW(s, at, y, n)
    for (int64_t k = 0; k < s->taps; k++) {
        float *to =
            (float *)j->x + at + (in_registers(s->taps) ? s->tap[k] : tap_at(j, s, k).offset);
        const float *dy = (const float *)j->y + y;
        CHANNELS(c, n) to[c] += dy[c] * share;
    }
}

static void avg_grad(const stk_pool_params *p, const float *dy, float *dx)
{
    memset(dx, 0, (size_t)(pixels(p->in) * p->c) * sizeof *dx);
    run_image(&(job){.p = p, .x = dx, .y = (float *)dy}, avg_grad_stretch);
}

const stk_vec_pool STK_VEC(stk_vec_pool) = {.max = {max_pool_float, max_pool_half},
                                            .max_grad = {max_grad_float, max_grad_half},
                                            .max_pick = {max_pick_float, max_pick_half},
                                            .avg = avg_pool,
                                            .avg_grad = avg_grad};
