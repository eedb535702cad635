/* pool.cl - pooling, channels last. Maxima are remembered as numbers of taps (SK_W); gradients gather: each element looks at the windows it stands in. */
#define SK_NOTHING ((SK_A)-INFINITY)
#define SK_PIXEL(p, size)                                                                          \
    int i = SK_ITEM, c, z, y_, x_, n;                                                              \
    if (i >= p.n * p.size[0] * p.size[1] * p.size[2] * p.c) return;                                \
    c = i % p.c;                                                                                   \
    x_ = i / p.c % p.size[2];                                                                      \
    y_ = i / p.c / p.size[2] % p.size[1];                                                          \
    z = i / p.c / p.size[2] / p.size[1] % p.size[0];                                               \
    n = i / p.c / p.size[2] / p.size[1] / p.size[0]
#define SK_WINDOWS(p)                                                                              \
    int a, b, e, tap = 0;                                                                          \
    for (a = 0; a < p.window[0]; a++)                                                              \
        for (b = 0; b < p.window[1]; b++)                                                          \
            for (e = 0; e < p.window[2]; e++, tap++)
#define SK_INSIDE(v, size) ((v) >= 0 && (v) < (size))
#define SK_SEES(p)                                                                                 \
    int iz = z * p.stride[0] + a - p.low[0], iy = y_ * p.stride[1] + b - p.low[1];                 \
    int ix = x_ * p.stride[2] + e - p.low[2];                                                      \
    if (!SK_INSIDE(iz, p.in[0]) || !SK_INSIDE(iy, p.in[1]) || !SK_INSIDE(ix, p.in[2])) continue
/* The output whose tap this input is, if there is one. */
#define SK_SEEN(p)                                                                                 \
    int oz = z + p.low[0] - a, oy = y_ + p.low[1] - b, ox = x_ + p.low[2] - e;                     \
    if (oz < 0 || oy < 0 || ox < 0 || oz % p.stride[0] || oy % p.stride[1] || ox % p.stride[2])    \
        continue;                                                                                  \
    oz /= p.stride[0];                                                                             \
    oy /= p.stride[1];                                                                             \
    ox /= p.stride[2];                                                                             \
    if (oz >= p.out[0] || oy >= p.out[1] || ox >= p.out[2]) continue
#define SK_IN_AT  (((n * p.in[0] + iz) * p.in[1] + iy) * p.in[2] + ix) * p.c + c
#define SK_OUT_AT (((n * p.out[0] + oz) * p.out[1] + oy) * p.out[2] + ox) * p.c + c

SK_KERNEL void max_pool(SK_IN(SK_T, x), SK_OUT(SK_T, y), SK_OUT(SK_W, which), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    SK_USE_OUT(SK_W, which);
    int best = -1;
    SK_A most = 0;
    SK_WINDOWS(p)
    {
        SK_SEES(p);
        {
            SK_A v = SK_LOAD(x, SK_IN_AT);
            if (best < 0 || (most == most && (v > most || v != v))) {
                most = v;
                best = tap;
            }
        }
    }
    SK_STORE(y, i, best < 0 ? SK_NOTHING : most);
    which[i] = (SK_W)(best < 0 ? 0 : best);
}

SK_KERNEL void max_pool_grad(SK_IN(SK_W, which), SK_IN(SK_T, dy), SK_OUT(SK_T, dx), const sk_pool p)
{
    SK_PIXEL(p, in);
    SK_USE_IN(SK_W, which);
    SK_USE_IN(SK_T, dy);
    SK_USE_OUT(SK_T, dx);
    SK_A sum = 0;
    SK_WINDOWS(p)
    {
        SK_SEEN(p);
        if ((int)which[SK_OUT_AT] == tap) sum += SK_LOAD(dy, SK_OUT_AT);
    }
    SK_STORE(dx, i, sum);
}

SK_KERNEL void max_pool_pick(SK_IN(SK_W, which), SK_IN(SK_T, v), SK_OUT(SK_T, y), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_W, which);
    SK_USE_IN(SK_T, v);
    SK_USE_OUT(SK_T, y);
    int tap = (int)which[i], e = tap % p.window[2], b = tap / p.window[2] % p.window[1];
    int a = tap / p.window[2] / p.window[1];
    int iz = z * p.stride[0] + a - p.low[0], iy = y_ * p.stride[1] + b - p.low[1];
    int ix = x_ * p.stride[2] + e - p.low[2];
    int inside = SK_INSIDE(iz, p.in[0]) && SK_INSIDE(iy, p.in[1]) && SK_INSIDE(ix, p.in[2]);
    SK_A value = 0;
    if (inside) value = SK_LOAD(v, SK_IN_AT);
    SK_STORE(y, i, value);
}

SK_KERNEL void avg_pool(SK_IN(SK_T, x), SK_OUT(SK_T, y), const sk_pool p)
{
    SK_PIXEL(p, out);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    int count = 0;
    SK_A sum = 0;
    SK_WINDOWS(p)
    {
        SK_SEES(p);
        sum += SK_LOAD(x, SK_IN_AT);
        count++;
    }
    SK_STORE(y, i, count ? sum / (SK_A)count : (SK_A)0);
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
    SK_A sum = 0;
    SK_WINDOWS(p)
    {
        SK_SEEN(p);
        {
            int count = sk_count(oz, p.stride[0], p.low[0], p.window[0], p.in[0]) *
                        sk_count(oy, p.stride[1], p.low[1], p.window[1], p.in[1]) *
                        sk_count(ox, p.stride[2], p.low[2], p.window[2], p.in[2]);
            sum += SK_LOAD(dy, SK_OUT_AT) / (SK_A)count;
        }
    }
    SK_STORE(dx, i, sum);
}
