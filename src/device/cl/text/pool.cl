/* pool.cl - pooling, channels last. Maxima are remembered as numbers of taps (SK_W); gradients gather: each element looks at the windows it stands in. One
 * item makes SK_Q neighbouring channels of a pixel: one where threads are many, a vector's worth where vectors are wide. */
#define SK_NOTHING ((SK_A)-INFINITY)
#define SK_PIXEL(p, size)                                                                          \
    int blocks = (p.c + SK_Q - 1) / SK_Q, pixel = SK_ITEM / blocks, c = SK_ITEM % blocks * SK_Q;   \
    int w_ = p.size[2], h_ = p.size[1], d_ = p.size[0], z, y_, x_, n, left, i;                     \
    if (pixel >= p.n * d_ * h_ * w_) return;                                                       \
    x_ = pixel % w_;                                                                               \
    y_ = pixel / w_ % h_;                                                                          \
    z = pixel / w_ / h_ % d_;                                                                      \
    n = pixel / w_ / h_ / d_;                                                                      \
    i = pixel * p.c + c;                                                                           \
    left = p.c - c < SK_Q ? p.c - c : SK_Q
/* Taps of the window of output (z, y_, x_), from where they are inside. */
#define SK_SEEN_TAPS(p)                                                                            \
    int z0 = z * p.stride[0] - p.low[0], y0 = y_ * p.stride[1] - p.low[1];                         \
    int x0 = x_ * p.stride[2] - p.low[2], a, b, e;                                                 \
    int wd = p.window[0], wh = p.window[1], ww = p.window[2];                                      \
    for (a = z0 < 0 ? -z0 : 0; a < wd && z0 + a < p.in[0]; a++)                                    \
        for (b = y0 < 0 ? -y0 : 0; b < wh && y0 + b < p.in[1]; b++)                                \
            for (e = x0 < 0 ? -x0 : 0; e < ww && x0 + e < p.in[2]; e++)
#define SK_TAP   ((a * wh + b) * ww + e)
#define SK_IN_AT ((((n * p.in[0] + z0 + a) * p.in[1] + y0 + b) * p.in[2] + x0 + e) * p.c + c)
/* Outputs whose windows hold input (z, y_, x_): those from the first to the last along each axis. */
#define SK_FIRST_OUT(v, k) (v - p.window[k] + 1 <= 0 ? 0 : (v - p.window[k] + p.stride[k]) / p.stride[k])
#define SK_SEEING(p)                                                                               \
    int vz = z + p.low[0], vy = y_ + p.low[1], vx = x_ + p.low[2], oz, oy, ox;                     \
    int wh = p.window[1], ww = p.window[2];                                                        \
    for (oz = SK_FIRST_OUT(vz, 0); oz < p.out[0] && oz * p.stride[0] <= vz; oz++)                  \
        for (oy = SK_FIRST_OUT(vy, 1); oy < p.out[1] && oy * p.stride[1] <= vy; oy++)              \
            for (ox = SK_FIRST_OUT(vx, 2); ox < p.out[2] && ox * p.stride[2] <= vx; ox++)
#define SK_SEEING_TAP                                                                              \
    (((vz - oz * p.stride[0]) * wh + vy - oy * p.stride[1]) * ww + vx - ox * p.stride[2])
#define SK_OUT_AT ((((n * p.out[0] + oz) * p.out[1] + oy) * p.out[2] + ox) * p.c + c)
/* The channels, with a constant number of them where that is so. */
#define SK_CHANNELS(DO)                                                                            \
    if (left == SK_Q) {                                                                            \
        for (q = 0; q < SK_Q; q++) { DO }                                                          \
    } else {                                                                                       \
        for (q = 0; q < left; q++) { DO }                                                          \
    }

SK_KERNEL void max_pool(SK_IN(SK_T, x), SK_OUT(SK_T, y), SK_OUT(SK_W, which), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    SK_USE_OUT(SK_W, which);
    SK_A most[SK_Q];
    int best[SK_Q], q, any = 0;
    for (q = 0; q < SK_Q; q++) {
        most[q] = SK_NOTHING;
        best[q] = 0;
    }
    SK_SEEN_TAPS(p)
    {
        int at = SK_IN_AT, tap = SK_TAP, first = !any;
        any = 1;
        SK_CHANNELS(SK_A v = SK_LOAD(x, at + q);
                    int wins = first || (most[q] == most[q] && (v > most[q] || v != v));
                    most[q] = wins ? v : most[q]; best[q] = wins ? tap : best[q];)
    }
    SK_CHANNELS(SK_STORE(y, i + q, most[q]); which[i + q] = (SK_W)best[q];)
}

SK_KERNEL void max_pool_grad(SK_IN(SK_W, which), SK_IN(SK_T, dy), SK_OUT(SK_T, dx), const sk_pool p)
{
    SK_PIXEL(p, in);
    SK_USE_IN(SK_W, which);
    SK_USE_IN(SK_T, dy);
    SK_USE_OUT(SK_T, dx);
    SK_A sum[SK_Q];
    int q;
    for (q = 0; q < SK_Q; q++) sum[q] = 0;
    SK_SEEING(p)
    {
        int at = SK_OUT_AT, tap = SK_SEEING_TAP;
        SK_CHANNELS(sum[q] += (int)which[at + q] == tap ? SK_LOAD(dy, at + q) : (SK_A)0;)
    }
    SK_CHANNELS(SK_STORE(dx, i + q, sum[q]);)
}

SK_KERNEL void max_pool_pick(SK_IN(SK_W, which), SK_IN(SK_T, v), SK_OUT(SK_T, y), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_W, which);
    SK_USE_IN(SK_T, v);
    SK_USE_OUT(SK_T, y);
    int q;
    for (q = 0; q < left; q++) {
        int tap = (int)which[i + q], e = tap % p.window[2], b = tap / p.window[2] % p.window[1];
        int a = tap / p.window[2] / p.window[1];
        int iz = z * p.stride[0] + a - p.low[0], iy = y_ * p.stride[1] + b - p.low[1];
        int ix = x_ * p.stride[2] + e - p.low[2];
        SK_A value = 0;
        if (iz >= 0 && iz < p.in[0] && iy >= 0 && iy < p.in[1] && ix >= 0 && ix < p.in[2])
            value = SK_LOAD(v, (((n * p.in[0] + iz) * p.in[1] + iy) * p.in[2] + ix) * p.c + c + q);
        SK_STORE(y, i + q, value);
    }
}

SK_KERNEL void avg_pool(SK_IN(SK_T, x), SK_OUT(SK_T, y), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    SK_A sum[SK_Q];
    int q, count = 0;
    for (q = 0; q < SK_Q; q++) sum[q] = 0;
    SK_SEEN_TAPS(p)
    {
        int at = SK_IN_AT;
        SK_CHANNELS(sum[q] += SK_LOAD(x, at + q);)
        count++;
    }
    SK_CHANNELS(SK_STORE(y, i + q, count ? sum[q] / (SK_A)count : (SK_A)0);)
}

/* How many elements of output o's window are inside, along one axis. */
SK_FN int sk_count(int o, int stride, int low, int window, int size)
{
    int first = o * stride - low, end = first + window;
    return (end < size ? end : size) - (first > 0 ? first : 0);
}

SK_KERNEL void avg_pool_grad(SK_IN(SK_T, dy), SK_OUT(SK_T, dx), const sk_pool p)
{
    SK_PIXEL(p, in);
    SK_USE_IN(SK_T, dy);
    SK_USE_OUT(SK_T, dx);
    SK_A sum[SK_Q];
    int q;
    for (q = 0; q < SK_Q; q++) sum[q] = 0;
    SK_SEEING(p)
    {
        int at = SK_OUT_AT, count = sk_count(oz, p.stride[0], p.low[0], p.window[0], p.in[0]) *
                                    sk_count(oy, p.stride[1], p.low[1], wh, p.in[1]) *
                                    sk_count(ox, p.stride[2], p.low[2], ww, p.in[2]);
        SK_CHANNELS(sum[q] += SK_LOAD(dy, at + q) / (SK_A)count;)
    }
    SK_CHANNELS(SK_STORE(dx, i + q, sum[q]);)
}
