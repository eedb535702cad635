/* image.cl - images [batch, height, width, channels] in another size, or seen through a transform. */
#if SK_RESIZE
/* Weighted sums of a window of rows and columns; SK_COPIES: the one pixel of the window, as it is. */
SK_KERNEL void resize(SK_IN(SK_T, x), SK_IN(int, down), SK_IN(float, down_weight), SK_IN(int, across),
                      SK_IN(float, across_weight), SK_OUT(SK_Y, y), const sk_image p)
{
    SK_USE_IN(SK_T, x);
    SK_USE_IN(int, down); /* first[n], at[n + 1] */
    SK_USE_IN(float, down_weight);
    SK_USE_IN(int, across);
    SK_USE_IN(float, across_weight);
    SK_USE_OUT(SK_Y, y);
    int i = SK_ITEM, c = i % p.channels, column = i / p.channels % p.out_w, j, k;
    int row = i / p.channels / p.out_w % p.out_h, image = i / p.channels / p.out_w / p.out_h;
    if (i >= p.batch * p.out_h * p.out_w * p.channels) return;
    {
        int r0 = down[p.out_h + row], r1 = down[p.out_h + row + 1];
        int c0 = across[p.out_w + column], c1 = across[p.out_w + column + 1];
#if SK_COPIES
        int from = ((image * p.in_h + down[row]) * p.in_w + across[column]) * p.channels + c;
        y[i] = r1 > r0 && c1 > c0 ? x[from] : (SK_Y)0;
#else
        SK_A sum = 0;
        for (j = r0; j < r1; j++) {
            SK_A line = 0;
            int start = (image * p.in_h + down[row] + j - r0) * p.in_w + across[column];
            for (k = c0; k < c1; k++)
                line += (SK_A)across_weight[k] * (SK_A)x[(start + k - c0) * p.channels + c];
            sum += (SK_A)down_weight[j] * line;
        }
        y[i] = sum;
#endif
    }
}
#else
#define SK_FAR     1e9f
#define SK_NOWHERE 2e9f
SK_FN float sk_whole(float v)
{
    float near_ = v > -SK_FAR ? v : -SK_FAR;
    return (float)(int)(near_ < SK_FAR ? near_ : SK_FAR);
}

/* fill: 0 constant, 1 reflected, 2 wrapped around, 3 nearest */
SK_FN float sk_settle(float v, float n, int fill)
{
    if (fill == 0) return v;
    if (fill == 1) {
        float period = 2 * n, below = v + period * sk_whole(-v / period);
        float above = v - period * sk_whole(v / period);
        below = below < -n ? below + period : -below - 1;
        above = above >= n ? period - above - 1 : above;
        v = v < 0 ? below : v > n - 1 ? above : v;
    } else if (fill == 2) {
        float below = v + n * (sk_whole(-v / (n - 1)) + 1), above = v - n * sk_whole(v / (n - 1));
        v = v < 0 ? below : v > n - 1 ? above : v;
    }
    v = v > 0 ? v : 0;
    return v < n - 1 ? v : n - 1;
}

typedef struct sk_corners {
    int count, x[4], y[4];
    float weight[4];
} sk_corners;

SK_FN int sk_round_away(float v)
{
    int i = (int)v;
    float rest = v - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* The pixels of an image of h x w that pixel (x, y) of the result is made of. */
SK_FN sk_corners sk_corners_of(SK_GLOBAL const SK_X *t, int h, int w, int x, int y, const sk_image p)
{
    float column = (float)x, row = (float)y;
    float depth = (float)t[6] * column + (float)t[7] * row + 1;
    float u = sk_settle(((float)t[0] * column + (float)t[1] * row + (float)t[2]) / depth, (float)w,
                        p.fill);
    float v = sk_settle(((float)t[3] * column + (float)t[4] * row + (float)t[5]) / depth, (float)h,
                        p.fill);
    sk_corners c;
    c.count = 0;
    if (!(depth != 0 && u > -SK_FAR && u < SK_FAR && v > -SK_FAR && v < SK_FAR)) return c;
    if (!p.bilinear) {
        c.count = 1;
        c.x[0] = sk_round_away(u);
        c.y[0] = sk_round_away(v);
        c.weight[0] = 1;
    } else {
        int i = (int)u - ((float)(int)u > u), j = (int)v - ((float)(int)v > v);
        float right = u - (float)i, below = v - (float)j;
        c.count = 4;
        c.x[0] = c.x[2] = i;
        c.x[1] = c.x[3] = i + 1;
        c.y[0] = c.y[1] = j;
        c.y[2] = c.y[3] = j + 1;
        c.weight[0] = (1 - right) * (1 - below);
        c.weight[1] = right * (1 - below);
        c.weight[2] = (1 - right) * below;
        c.weight[3] = right * below;
    }
    return c;
}

#if SK_GRAD
/* Sizes in_* are those of dy, out_* those of the image. One item adds up all of one channel of one image, in order. */
SK_KERNEL void project_grad(SK_IN(SK_T, dy), SK_IN(SK_X, transform), SK_OUT(SK_T, y), const sk_image p)
{
    SK_USE_IN(SK_T, dy);
    SK_USE_IN(SK_X, transform);
    SK_USE_OUT(SK_T, y);
    int i = SK_ITEM, image = i / p.channels, c = i % p.channels, k, at;
    if (i >= p.batch * p.channels) return;
    for (at = 0; at < p.out_h * p.out_w; at++)
        y[(image * p.out_h * p.out_w + at) * p.channels + c] = 0;
    for (at = 0; at < p.in_h * p.in_w; at++) {
        sk_corners at4 = sk_corners_of(transform + (p.shared ? 0 : image * 8), p.out_h, p.out_w,
                                       at % p.in_w, at / p.in_w, p);
        for (k = 0; k < at4.count; k++)
            if (at4.x[k] >= 0 && at4.x[k] < p.out_w && at4.y[k] >= 0 && at4.y[k] < p.out_h)
                y[((image * p.out_h + at4.y[k]) * p.out_w + at4.x[k]) * p.channels + c] +=
                    (SK_T)at4.weight[k] * dy[(image * p.in_h * p.in_w + at) * p.channels + c];
    }
}
#else
SK_KERNEL void project(SK_IN(SK_T, x), SK_IN(SK_X, transform), SK_OUT(SK_Y, y), const sk_image p)
{
    SK_USE_IN(SK_T, x);
    SK_USE_IN(SK_X, transform);
    SK_USE_OUT(SK_Y, y);
    int i = SK_ITEM, c = i % p.channels, column = i / p.channels % p.out_w, k;
    int row = i / p.channels / p.out_w % p.out_h, image = i / p.channels / p.out_w / p.out_h;
    sk_corners at;
    SK_A sum;
    if (i >= p.batch * p.out_h * p.out_w * p.channels) return;
    at = sk_corners_of(transform + (p.shared ? 0 : image * 8), p.in_h, p.in_w, column, row, p);
    sum = at.count ? (SK_A)0 : (SK_A)p.value;
    for (k = 0; k < at.count; k++) {
        int inside = at.x[k] >= 0 && at.x[k] < p.in_w && at.y[k] >= 0 && at.y[k] < p.in_h;
        SK_A v = (SK_A)p.value;
        if (inside)
            v = SK_LOAD(x, ((image * p.in_h + at.y[k]) * p.in_w + at.x[k]) * p.channels + c);
        sum += p.bilinear ? (SK_A)at.weight[k] * v : v;
    }
    SK_STORE(y, i, sum);
}
#endif
#endif
