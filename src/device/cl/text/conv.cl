/* conv.cl - convolution, channels last: y[i, o, c] = sum over t, k of x[i, o stride + t dilation - low, k] w[t, k, c], and both its gradients. Real numbers
 * SK_R. SK_WHAT: 0 forward (rows: pixels of y, from x), 1 the gradient of x (rows: pixels of x, from dy), 2 the gradient of w.
 *
 *     direct   one item per element; for few channels (depthwise)
 *     wide     for wide vectors: panels of weights, rows of pixels in registers
 *     tiled    for many small threads: the convolution as a product whose left side is gathered while tiles are filled */
#define SK_TAPS (p.taps[0] * p.taps[1] * p.taps[2])

typedef struct sk_pixel {
    int n, z, y, x;
} sk_pixel;

SK_FN sk_pixel sk_pixel_of(int at, int d, int h, int w)
{
    sk_pixel q;
    q.x = at % w;
    q.y = at / w % h;
    q.z = at / w / h % d;
    q.n = at / w / h / d;
    return q;
}

/* A place in the kernel, and the one behind it. */
typedef struct sk_tap {
    int z, y, x;
} sk_tap;

SK_FN sk_tap sk_tap_of(const sk_conv p, int tap)
{
    sk_tap t;
    t.x = tap % p.taps[2];
    t.y = tap / p.taps[2] % p.taps[1];
    t.z = tap / p.taps[2] / p.taps[1];
    return t;
}

/* Walking is cheaper than dividing. */
SK_FN sk_tap sk_next_tap(const sk_conv p, sk_tap t)
{
    if (++t.x < p.taps[2]) return t;
    t.x = 0;
    if (++t.y < p.taps[1]) return t;
    t.y = 0;
    t.z++;
    return t;
}

SK_FN sk_pixel sk_next_pixel(sk_pixel q, int d, int h, int w)
{
    if (++q.x < w) return q;
    q.x = 0;
    if (++q.y < h) return q;
    q.y = 0;
    if (++q.z < d) return q;
    q.z = 0;
    q.n++;
    return q;
}

/* Pixel number in the input that an output pixel sees through a tap; -1 outside. */
SK_FN int sk_input_at(const sk_conv p, sk_pixel o, sk_tap t)
{
    int z = o.z * p.stride[0] + t.z * p.dilation[0] - p.low[0];
    int y = o.y * p.stride[1] + t.y * p.dilation[1] - p.low[1];
    int x = o.x * p.stride[2] + t.x * p.dilation[2] - p.low[2];
    int inside = z >= 0 && z < p.in[0] && y >= 0 && y < p.in[1] && x >= 0 && x < p.in[2];
    return inside ? ((o.n * p.in[0] + z) * p.in[1] + y) * p.in[2] + x : -1;
}
SK_FN int sk_input_of(const sk_conv p, sk_pixel o, int tap)
{
    return sk_input_at(p, o, sk_tap_of(p, tap));
}

/* Pixel number in the output that sees an input pixel through a tap; -1: none. */
SK_FN int sk_output_at(const sk_conv p, sk_pixel i, sk_tap t)
{
    int z = i.z + p.low[0] - t.z * p.dilation[0], y = i.y + p.low[1] - t.y * p.dilation[1];
    int x = i.x + p.low[2] - t.x * p.dilation[2];
    if (z < 0 || y < 0 || x < 0 || z % p.stride[0] || y % p.stride[1] || x % p.stride[2]) return -1;
    z /= p.stride[0];
    y /= p.stride[1];
    x /= p.stride[2];
    if (z >= p.out[0] || y >= p.out[1] || x >= p.out[2]) return -1;
    return ((i.n * p.out[0] + z) * p.out[1] + y) * p.out[2] + x;
}
SK_FN int sk_output_of(const sk_conv p, sk_pixel i, int tap)
{
    return sk_output_at(p, i, sk_tap_of(p, tap));
}

#if SK_WHAT == 1
#define SK_ROW_PIXEL(at)      sk_pixel_of(at, p.in[0], p.in[1], p.in[2])
#define SK_ROWS               (p.n * p.in[0] * p.in[1] * p.in[2])
#define SK_NEXT_PIXEL(q)      sk_next_pixel(q, p.in[0], p.in[1], p.in[2])
#define SK_SOURCE(pixel, tap) sk_output_of(p, pixel, tap)
#define SK_SOURCE_AT(pixel, t) sk_output_at(p, pixel, t)
#define SK_DEEP               (p.oc / p.groups) /* channels summed over, and of a whole pixel */
#define SK_DEEP_ALL           p.oc
#define SK_MADE               (p.ic / p.groups) /* channels made */
#define SK_MADE_ALL           p.ic
#define SK_W_AT(tap, k, c, g) (((tap) * (p.ic / p.groups) + (c)) * p.oc + (g) * SK_DEEP + (k))
#else
#define SK_ROW_PIXEL(at)      sk_pixel_of(at, p.out[0], p.out[1], p.out[2])
#define SK_ROWS               (p.n * p.out[0] * p.out[1] * p.out[2])
#define SK_NEXT_PIXEL(q)      sk_next_pixel(q, p.out[0], p.out[1], p.out[2])
#define SK_SOURCE(pixel, tap) sk_input_of(p, pixel, tap)
#define SK_SOURCE_AT(pixel, t) sk_input_at(p, pixel, t)
#define SK_DEEP               (p.ic / p.groups)
#define SK_DEEP_ALL           p.ic
#define SK_MADE               (p.oc / p.groups)
#define SK_MADE_ALL           p.oc
#define SK_W_AT(tap, k, c, g) (((tap) * SK_DEEP + (k)) * p.oc + (g) * SK_MADE + (c))
#endif

#if SK_HOW == 0 && SK_WHAT < 2
SK_KERNEL void conv(SK_IN(SK_R, x), SK_IN(SK_R, w), SK_OUT(SK_R, y), const sk_conv p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, w);
    SK_USE_OUT(SK_R, y);
    int i = SK_ITEM, c = i % SK_MADE_ALL, group = c / SK_MADE, tap, k;
    sk_pixel pixel;
    SK_R sum = 0;
    if (i >= SK_ROWS * SK_MADE_ALL) return;
    pixel = SK_ROW_PIXEL(i / SK_MADE_ALL);
    for (tap = 0; tap < SK_TAPS; tap++) {
        int from = SK_SOURCE(pixel, tap);
        if (from < 0) continue;
        from = from * SK_DEEP_ALL + group * SK_DEEP;
        for (k = 0; k < SK_DEEP; k++)
            sum = SK_FMA(x[from + k], w[SK_W_AT(tap, k, c % SK_MADE, group)], sum);
    }
    y[i] = sum;
}
#elif SK_HOW == 0
/* One item per weight and part of the pixels. */
SK_KERNEL void conv(SK_IN(SK_R, x), SK_IN(SK_R, dy), SK_OUT(SK_R, y), const sk_conv p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, dy);
    SK_USE_OUT(SK_R, y);
    int i = SK_ITEM, all = SK_TAPS * SK_DEEP * p.oc, part = i / all, weight = i % all;
    int c = weight % p.oc, k = weight / p.oc % SK_DEEP, tap = weight / p.oc / SK_DEEP;
    int at = part * p.part, end = at + p.part < SK_ROWS ? at + p.part : SK_ROWS;
    SK_R sum = 0;
    if (part >= p.splits) return;
    for (; at < end; at++) {
        int from = sk_input_of(p, SK_ROW_PIXEL(at), tap);
        if (from >= 0)
            sum = SK_FMA(x[from * p.ic + c / SK_MADE * SK_DEEP + k], dy[at * p.oc + c], sum);
    }
    y[i] = sum;
}
#elif SK_HOW == 1
#define SK_NR (SK_NV * SK_W)
#define SK_V  SK_GLUE(SK_R, SK_W)
#define SK_VLOAD SK_GLUE(vload, SK_W)
#define SK_VSTORE SK_GLUE(vstore, SK_W)
#if SK_NV == 2
#define SK_VLOAD_SECOND(b) SK_VLOAD(0, (b) + SK_W)
#else
#define SK_VLOAD_SECOND(b) (SK_V)0
#endif
/* The `width` channels of a panel that there are, zeros behind them. */
#define SK_LOAD_WIDTH(b0, b1, b)                                                                   \
    if (width == SK_NR) {                                                                          \
        b0 = SK_VLOAD(0, b);                                                                       \
        b1 = SK_VLOAD_SECOND(b);                                                                   \
    } else {                                                                                       \
        SK_R line[2 * SK_W];                                                                       \
        for (j = 0; j < 2 * SK_W; j++) line[j] = j < width ? (b)[j] : (SK_R)0;                     \
        b0 = SK_VLOAD(0, line);                                                                    \
        b1 = SK_VLOAD(0, line + SK_W);                                                             \
    }

/* From a pixel of a line to the next: pixels of the source in between, where that is the same everywhere. */
#if SK_WHAT == 1
#define SK_HOP  1
#define SK_EVEN (p.stride[2] == 1)
#else
#define SK_HOP  p.stride[2]
#define SK_EVEN 1
#endif

#if SK_WHAT < 2
/* One item: p.rows pixels of one panel of channels. Weights of as many (tap, channel) as fit are packed; pixels outside read one zero, again and again. */
SK_KERNEL __attribute__((reqd_work_group_size(1, 1, 1))) void
conv(SK_IN(SK_R, x), SK_IN(SK_R, w), SK_OUT(SK_R, y), SK_IN(SK_R, zero), const sk_conv p)
{
    SK_LOCAL SK_R panel[SK_KC * SK_NR];
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, w);
    SK_USE_OUT(SK_R, y);
    SK_USE_IN(SK_R, zero);
    int c0 = SK_GROUP * SK_NR, m0 = SK_GROUP_Y * p.rows, group = SK_GROUP_Z, all = SK_ROWS;
    int m1 = m0 + p.rows < all ? m0 + p.rows : all, depth = SK_TAPS * SK_DEEP, k0, m, r, j, k;
    int width = SK_MADE - c0 < SK_NR ? SK_MADE - c0 : SK_NR;
    x += group * SK_DEEP;
    y += group * SK_MADE + c0;
    for (k0 = 0; k0 < depth; k0 += SK_KC) {
        int k1 = k0 + SK_KC < depth ? k0 + SK_KC : depth;
        if (width < SK_NR)
            for (k = 0; k < (k1 - k0) * SK_NR; k++) panel[k] = 0;
        for (k = k0; k < k1; k++)
            for (j = 0; j < width; j++)
                panel[(k - k0) * SK_NR + j] = w[SK_W_AT(k / SK_DEEP, k % SK_DEEP, c0 + j, group)];
        for (m = m0; m < m1; m += SK_MR) {
            SK_V left[SK_MR];
#if SK_NV == 2
            SK_V right[SK_MR];
#endif
            sk_pixel pixel[SK_MR];
#pragma unroll
            for (r = 0; r < SK_MR; r++) {
                pixel[r] = r == 0 ? SK_ROW_PIXEL(m) : m + r < m1 ? SK_NEXT_PIXEL(pixel[r - 1]) : pixel[0];
                left[r] = (SK_V)0;
#if SK_NV == 2
                right[r] = (SK_V)0;
#endif
            }
            int line = pixel[SK_MR - 1].x - pixel[0].x == SK_MR - 1 && SK_EVEN; /* side by side */
            sk_tap tap = sk_tap_of(p, k0 / SK_DEEP);
            int first = k0 % SK_DEEP;
            for (k = k0; k < k1;) { /* one tap, or what is left of it */
                SK_GLOBAL const SK_R *from[SK_MR];
                int step[SK_MR], any = 0;
                int run = SK_DEEP - first < k1 - k ? SK_DEEP - first : k1 - k;
                SK_LOCAL const SK_R *b = panel + (k - k0) * SK_NR;
                int head = line ? SK_SOURCE_AT(pixel[0], tap) : -1;
                int tail = line ? SK_SOURCE_AT(pixel[SK_MR - 1], tap) : -1;
                if (head >= 0 && tail >= 0) { /* so are all between them: nothing else is looked up */
                    any = 1;
#pragma unroll
                    for (r = 0; r < SK_MR; r++) {
                        from[r] = x + (head + r * SK_HOP) * SK_DEEP_ALL + first;
                        step[r] = 1;
                    }
                } else {
#pragma unroll
                    for (r = 0; r < SK_MR; r++) {
                        int at = SK_SOURCE_AT(pixel[r], tap);
                        from[r] = at < 0 ? zero : x + at * SK_DEEP_ALL + first;
                        step[r] = at < 0 ? 0 : 1;
                        any |= at >= 0;
                    }
                }
                k += run;
                first = 0;
                tap = sk_next_tap(p, tap);
                if (!any) continue;
                for (j = 0; j < run; j++, b += SK_NR) {
                    SK_V b0 = SK_VLOAD(0, b);
#if SK_NV == 2
                    SK_V b1 = SK_VLOAD(0, b + SK_W);
#endif
#pragma unroll
                    for (r = 0; r < SK_MR; r++) {
                        SK_V v = (SK_V)(from[r][j * step[r]]);
                        left[r] = fma(v, b0, left[r]);
#if SK_NV == 2
                        right[r] = fma(v, b1, right[r]);
#endif
                    }
                }
            }
#pragma unroll
            for (r = 0; r < SK_MR; r++)
                if (m + r < m1) {
                    SK_GLOBAL SK_R *to = y + (m + r) * SK_MADE_ALL;
                    if (width == SK_NR) {
                        SK_VSTORE(k0 ? left[r] + SK_VLOAD(0, to) : left[r], 0, to);
#if SK_NV == 2
                        SK_VSTORE(k0 ? right[r] + SK_VLOAD(0, to + SK_W) : right[r], 0, to + SK_W);
#endif
                    } else {
                        SK_R line[SK_NR];
                        SK_VSTORE(left[r], 0, line);
#if SK_NV == 2
                        SK_VSTORE(right[r], 0, line + SK_W);
#endif
                        for (j = 0; j < width; j++) to[j] = k0 ? to[j] + line[j] : line[j];
                    }
                }
        }
    }
}
#elif SK_THIN
/* Fewer input channels than SK_MR. One item: SK_MR pairs of tap and channel by one panel of output channels, over one part of the pixels.
 * Where all taps see the picture from one end of a line to the other, nothing is looked up in between. */
SK_KERNEL __attribute__((reqd_work_group_size(1, 1, 1))) void
conv(SK_IN(SK_R, x), SK_IN(SK_R, dy), SK_OUT(SK_R, y), const sk_conv p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, dy);
    SK_USE_OUT(SK_R, y);
    int panels = (SK_MADE + SK_NR - 1) / SK_NR, group = SK_GROUP / panels, part = SK_GROUP_Z, r, j;
    int c0 = SK_GROUP % panels * SK_NR, q0 = SK_GROUP_Y * SK_MR, rows = SK_TAPS * SK_DEEP;
    int at = part * p.part, end = at + p.part < SK_ROWS ? at + p.part : SK_ROWS;
    int width = SK_MADE - c0 < SK_NR ? SK_MADE - c0 : SK_NR, hop = p.stride[2] * p.ic;
    SK_V left[SK_MR], right[SK_MR];
    sk_tap tap[SK_MR];
    int channel[SK_MR];
#pragma unroll
    for (r = 0; r < SK_MR; r++) {
        int q = q0 + r < rows ? q0 + r : q0;
        left[r] = (SK_V)0;
        right[r] = (SK_V)0;
        tap[r] = sk_tap_of(p, q / SK_DEEP);
        channel[r] = group * SK_DEEP + q % SK_DEEP;
    }
    dy += group * SK_MADE + c0;
    while (at < end) {
        sk_pixel first = SK_ROW_PIXEL(at), last;
        int from[SK_MR], there = 1, beyond = 1;
        int stop = at + p.out[2] - first.x < end ? at + p.out[2] - first.x : end;
#pragma unroll
        for (r = 0; r < SK_MR; r++) {
            from[r] = sk_input_at(p, first, tap[r]);
            there &= from[r] >= 0;
        }
        if (!there) stop = at + 1;
        for (last = first; there && stop > at + 1; stop--) { /* the end of a line may see less */
            last.x = first.x + stop - 1 - at;
            beyond = 1;
#pragma unroll
            for (r = 0; r < SK_MR; r++) beyond &= sk_input_at(p, last, tap[r]) >= 0;
            if (beyond) break;
        }
#pragma unroll
        for (r = 0; r < SK_MR; r++) from[r] = from[r] < 0 ? -1 : from[r] * p.ic + channel[r];
        for (; at < stop; at++) {
            SK_GLOBAL const SK_R *b = dy + at * p.oc;
            SK_V b0, b1;
            SK_LOAD_WIDTH(b0, b1, b);
#pragma unroll
            for (r = 0; r < SK_MR; r++)
                if (there || from[r] >= 0) {
                    SK_V v = (SK_V)(x[from[r]]);
                    left[r] = fma(v, b0, left[r]);
#if SK_NV == 2
                    right[r] = fma(v, b1, right[r]);
#endif
                    from[r] += hop;
                }
        }
    }
    y += part * rows * p.oc + q0 * p.oc + group * SK_MADE + c0;
#pragma unroll
    for (r = 0; r < SK_MR; r++)
        if (q0 + r < rows) {
            SK_R line[2 * SK_W];
            SK_VSTORE(left[r], 0, line);
            SK_VSTORE(right[r], 0, line + SK_W);
            for (j = 0; j < width; j++) y[r * p.oc + j] = line[j];
        }
}
#else
/* One item: SK_MR input channels of one tap by one panel of output channels, over one part of the pixels. */
SK_KERNEL __attribute__((reqd_work_group_size(1, 1, 1))) void
conv(SK_IN(SK_R, x), SK_IN(SK_R, dy), SK_OUT(SK_R, y), const sk_conv p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, dy);
    SK_USE_OUT(SK_R, y);
    int panels = (SK_MADE + SK_NR - 1) / SK_NR, strips = (SK_DEEP + SK_MR - 1) / SK_MR;
    int group = SK_GROUP / panels, c0 = SK_GROUP % panels * SK_NR, part = SK_GROUP_Z;
    int tap = SK_GROUP_Y / strips, k0 = SK_GROUP_Y % strips * SK_MR, r, j;
    int at = part * p.part, end = at + p.part < SK_ROWS ? at + p.part : SK_ROWS;
    int width = SK_MADE - c0 < SK_NR ? SK_MADE - c0 : SK_NR;
    int deep = SK_DEEP - k0 < SK_MR ? SK_DEEP - k0 : SK_MR;
    SK_V left[SK_MR], right[SK_MR];
    sk_pixel pixel = SK_ROW_PIXEL(at < end ? at : 0);
    sk_tap place = sk_tap_of(p, tap);
#pragma unroll
    for (r = 0; r < SK_MR; r++) {
        left[r] = (SK_V)0;
        right[r] = (SK_V)0;
    }
    x += group * SK_DEEP + k0;
    dy += group * SK_MADE + c0;
    for (; at < end; at++) {
        int from = sk_input_at(p, pixel, place);
        pixel = SK_NEXT_PIXEL(pixel);
        if (from >= 0) {
            SK_GLOBAL const SK_R *a = x + from * p.ic, *b = dy + at * p.oc;
            SK_V b0, b1;
            SK_LOAD_WIDTH(b0, b1, b);
#pragma unroll
            for (r = 0; r < SK_MR; r++) {
                SK_V v = (SK_V)(a[r < deep ? r : 0]);
                left[r] = fma(v, b0, left[r]);
#if SK_NV == 2
                right[r] = fma(v, b1, right[r]);
#endif
            }
        }
    }
    y += part * SK_TAPS * SK_DEEP * p.oc + (tap * SK_DEEP + k0) * p.oc + group * SK_MADE + c0;
#pragma unroll
    for (r = 0; r < SK_MR; r++)
        if (r < deep) {
            SK_R line[2 * SK_W];
            SK_VSTORE(left[r], 0, line);
            SK_VSTORE(right[r], 0, line + SK_W);
            for (j = 0; j < width; j++) y[r * p.oc + j] = line[j];
        }
}
#endif
#else
/* A group of 256 items makes a tile of SK_BM x SK_BN, each item SK_TM x SK_TN of it. Rows and columns of the product:
 *     0, 1   rows: pixels, depth: taps and channels, columns: channels made
 *     2      rows: taps and input channels, depth: pixels (in parts), columns: output channels */
#define SK_BK 16
#define SK_XS (SK_BN / SK_TN)
#define SK_YS (SK_BM / SK_TM)
#ifdef SK_GX /* a grid that the device does not take: all of it on the first axis */
#define SK_AXIS_M (SK_GROUP % SK_GX)
#define SK_AXIS_N (SK_GROUP / SK_GX % SK_GY)
#define SK_AXIS_G (SK_GROUP / SK_GX / SK_GY)
#else
#define SK_AXIS_M SK_GROUP
#define SK_AXIS_N SK_GROUP_Y
#define SK_AXIS_G SK_GROUP_Z
#endif
SK_FN SK_R sk_left(SK_GLOBAL const SK_R *x, const sk_conv p, int row, int k, int group)
{
#if SK_WHAT < 2
    int from = SK_SOURCE(SK_ROW_PIXEL(row), k / SK_DEEP);
    return from < 0 ? (SK_R)0 : x[from * SK_DEEP_ALL + group * SK_DEEP + k % SK_DEEP];
#else
    int from = sk_input_of(p, SK_ROW_PIXEL(k), row / SK_DEEP);
    return from < 0 ? (SK_R)0 : x[from * p.ic + group * SK_DEEP + row % SK_DEEP];
#endif
}
SK_FN SK_R sk_right(SK_GLOBAL const SK_R *w, const sk_conv p, int k, int column, int group)
{
#if SK_WHAT < 2
    return w[SK_W_AT(k / SK_DEEP, k % SK_DEEP, column, group)];
#else
    return w[k * p.oc + group * SK_MADE + column];
#endif
}

SK_KERNEL void conv(SK_IN(SK_R, x), SK_IN(SK_R, w), SK_OUT(SK_R, y), const sk_conv p)
{
    SK_LOCAL SK_R as[SK_BK * (SK_BM + 1)], bs[SK_BK * (SK_BN + 1)];
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, w);
    SK_USE_OUT(SK_R, y);
    int t = SK_LANE, tx = t % SK_XS, ty = t / SK_XS, n0 = SK_AXIS_N * SK_BN, m0 = SK_AXIS_M * SK_BM;
    int e, i, j, k;
    int group = SK_AXIS_G / p.splits, part = SK_AXIS_G % p.splits;
#if SK_WHAT < 2
    int rows = SK_ROWS, depth = SK_TAPS * SK_DEEP;
#else
    int rows = SK_TAPS * SK_DEEP, depth = SK_ROWS;
#endif
    int k0 = part * p.part, end = k0 + p.part < depth ? k0 + p.part : depth;
    SK_R sum[SK_TM][SK_TN];
    for (i = 0; i < SK_TM; i++)
        for (j = 0; j < SK_TN; j++) sum[i][j] = 0;
    for (; k0 < end; k0 += SK_BK) {
        for (e = t; e < SK_BM * SK_BK; e += 256) {
#if SK_WHAT == 2
            int mm = e % SK_BM, kk = e / SK_BM;
#else
            int kk = e % SK_BK, mm = e / SK_BK;
#endif
            as[kk * (SK_BM + 1) + mm] =
                m0 + mm < rows && k0 + kk < end ? sk_left(x, p, m0 + mm, k0 + kk, group) : (SK_R)0;
        }
        for (e = t; e < SK_BN * SK_BK; e += 256) {
            int nn = e % SK_BN, kk = e / SK_BN;
            bs[kk * (SK_BN + 1) + nn] = n0 + nn < SK_MADE && k0 + kk < end
                                            ? sk_right(w, p, k0 + kk, n0 + nn, group)
                                            : (SK_R)0;
        }
        SK_BARRIER;
        for (k = 0; k < SK_BK; k++)
            for (i = 0; i < SK_TM; i++)
                for (j = 0; j < SK_TN; j++)
                    sum[i][j] =
                        SK_FMA(as[k * (SK_BM + 1) + ty + SK_YS * i],
                                       bs[k * (SK_BN + 1) + tx + SK_XS * j], sum[i][j]);
        SK_BARRIER;
    }
    for (i = 0; i < SK_TM; i++)
        for (j = 0; j < SK_TN; j++) {
            int row = m0 + ty + SK_YS * i, column = n0 + tx + SK_XS * j;
            if (row < rows && column < SK_MADE)
                y[(part * rows + row) * SK_MADE_ALL + group * SK_MADE + column] = sum[i][j];
        }
}
#endif
