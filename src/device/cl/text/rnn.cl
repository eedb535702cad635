/* rnn.cl - recurrent cells over whole sequences (device/kernels_rnn.h). A group of SK_LANES items walks over one sequence, step by step; what a step hands
 * on stands in global memory of the group. `work` is scratch: 4 n numbers per sequence. Real numbers SK_R. */
#define SK_ROW_AT(i, t) (p.time_major ? (t) * p.batch + (i) : (i) * p.time + (t))
#define SK_TIME(k)      (p.reverse ? p.time - 1 - (k) : (k))
#define SK_EACH(i, n)   for (i = lane; i < (n); i += SK_LANES)
SK_FN SK_R sk_logistic(SK_R x) { return (SK_R)1 / ((SK_R)1 + exp(-x)); }

/* work[0 .. width) += a[0 .. n) u[n, stride], columns from `first` on. */
SK_FN void sk_times(SK_GLOBAL SK_R *work, SK_GLOBAL const SK_R *a, SK_GLOBAL const SK_R *u, int n,
                    int stride, int first, int width, int lane)
{
    int i, j;
#if SK_LANES == 1
    for (i = 0; i < n; i++) {
        SK_R v = a[i];
        SK_GLOBAL const SK_R *row = u + i * stride + first;
        for (j = 0; j < width; j++) work[j] += v * row[j];
    }
#else
    SK_EACH(j, width)
    {
        SK_R sum = work[j];
        for (i = 0; i < n; i++) sum += a[i] * u[i * stride + first + j];
        work[j] = sum;
    }
#endif
}

/* Sum of a[j] u[j] over n neighbours, in eight strands. */
SK_FN SK_R sk_dot(SK_GLOBAL const SK_R *a, SK_GLOBAL const SK_R *u, int n)
{
    SK_R s[8] = {0, 0, 0, 0, 0, 0, 0, 0}, rest = 0;
    int j = 0, q;
    for (; j + 8 <= n; j += 8)
        for (q = 0; q < 8; q++) s[q] += a[j + q] * u[j + q];
    for (; j < n; j++) rest += a[j] * u[j];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])) + rest;
}

#if SK_MASK
#define SK_MASK_ARG SK_IN(uchar, mask),
#define SK_MASK_USE SK_USE_IN(uchar, mask)
#define SK_MASKED(row) (!mask[row])
#else
#define SK_MASK_ARG
#define SK_MASK_USE
#define SK_MASKED(row) 0
#endif
#if SK_DHS
#define SK_DHS_ARG SK_IN(SK_R, dhs),
#define SK_DHS_USE SK_USE_IN(SK_R, dhs)
#define SK_DHS_AT(i) dhs[i]
#else
#define SK_DHS_ARG
#define SK_DHS_USE
#define SK_DHS_AT(i) ((SK_R)0)
#endif
#if SK_DH
#define SK_DH_ARG SK_IN(SK_R, dh_last),
#define SK_DH_USE SK_USE_IN(SK_R, dh_last)
#define SK_DH_AT(i) dh_last[i]
#else
#define SK_DH_ARG
#define SK_DH_USE
#define SK_DH_AT(i) ((SK_R)0)
#endif
#if SK_DC
#define SK_DC_ARG SK_IN(SK_R, dc_last),
#define SK_DC_USE SK_USE_IN(SK_R, dc_last)
#define SK_DC_AT(i) dc_last[i]
#else
#define SK_DC_ARG
#define SK_DC_USE
#define SK_DC_AT(i) ((SK_R)0)
#endif

#if SK_CELL == 0
SK_KERNEL void lstm(SK_IN(SK_R, x), SK_IN(SK_R, h0), SK_IN(SK_R, c0), SK_IN(SK_R, b), SK_IN(SK_R, u),
                    SK_MASK_ARG SK_OUT(SK_R, hs), SK_OUT(SK_R, h), SK_OUT(SK_R, c),
                    SK_OUT(SK_R, gates), SK_OUT(SK_R, cs), SK_OUT(SK_R, work), const sk_rnn p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, h0);
    SK_USE_IN(SK_R, c0);
    SK_USE_IN(SK_R, b);
    SK_USE_IN(SK_R, u);
    SK_MASK_USE;
    SK_USE_OUT(SK_R, hs);
    SK_USE_OUT(SK_R, h);
    SK_USE_OUT(SK_R, c);
    SK_USE_OUT(SK_R, gates);
    SK_USE_OUT(SK_R, cs);
    SK_USE_OUT(SK_R, work);
    int s = SK_GROUP, lane = SK_LANE, n = p.hidden, k, m;
    work += s * 4 * n;
    SK_EACH(m, n)
    {
        c[s * n + m] = c0[s * n + m];
        h[s * n + m] = h0[s * n + m];
    }
    SK_BARRIER_GLOBAL;
    for (k = 0; k < p.time; k++) {
        int row = SK_ROW_AT(s, SK_TIME(k)), masked = SK_MASKED(row);
        SK_EACH(m, 4 * n) work[m] = x[row * 4 * n + m] + b[m];
        SK_BARRIER_GLOBAL;
        sk_times(work, h + s * n, u, n, 4 * n, 0, 4 * n, lane);
        SK_BARRIER_GLOBAL;
        SK_EACH(m, n)
        {
            SK_R gi = sk_logistic(work[m]), gf = sk_logistic(work[n + m]);
            SK_R gg = tanh(work[2 * n + m]), go = sk_logistic(work[3 * n + m]);
            SK_R now = c[s * n + m], y = h[s * n + m];
            if (!masked) {
                now = gf * now + gi * gg;
                y = go * tanh(now);
            }
            if (p.saved) {
                gates[row * 4 * n + m] = masked ? 0 : gi;
                gates[row * 4 * n + n + m] = masked ? 0 : gf;
                gates[row * 4 * n + 2 * n + m] = masked ? 0 : gg;
                gates[row * 4 * n + 3 * n + m] = masked ? 0 : go;
                cs[row * n + m] = now;
            }
            c[s * n + m] = now;
            hs[row * n + m] = y;
            h[s * n + m] = y;
        }
        SK_BARRIER_GLOBAL;
    }
}
#elif SK_CELL == 1
SK_KERNEL void lstm_grad(SK_IN(SK_R, gates), SK_IN(SK_R, cs), SK_IN(SK_R, c0), SK_IN(SK_R, u),
                         SK_MASK_ARG SK_DHS_ARG SK_DH_ARG SK_DC_ARG SK_OUT(SK_R, dx),
                         SK_OUT(SK_R, dh), SK_OUT(SK_R, dc), const sk_rnn p)
{
    SK_USE_IN(SK_R, gates);
    SK_USE_IN(SK_R, cs);
    SK_USE_IN(SK_R, c0);
    SK_USE_IN(SK_R, u);
    SK_MASK_USE;
    SK_DHS_USE;
    SK_DH_USE;
    SK_DC_USE;
    SK_USE_OUT(SK_R, dx);
    SK_USE_OUT(SK_R, dh);
    SK_USE_OUT(SK_R, dc);
    int s = SK_GROUP, lane = SK_LANE, n = p.hidden, k, m;
    SK_EACH(m, n)
    {
        dh[s * n + m] = SK_DH_AT(s * n + m);
        dc[s * n + m] = SK_DC_AT(s * n + m);
    }
    SK_BARRIER_GLOBAL;
    for (k = p.time - 1; k >= 0; k--) {
        int row = SK_ROW_AT(s, SK_TIME(k)), masked = SK_MASKED(row);
        int before = k > 0 ? SK_ROW_AT(s, SK_TIME(k - 1)) : s;
        SK_EACH(m, n)
        {
            SK_R d = dh[s * n + m] + SK_DHS_AT(row * n + m);
            SK_GLOBAL const SK_R *g = gates + row * 4 * n + m;
            SK_GLOBAL SK_R *to = dx + row * 4 * n + m;
            if (masked) {
                to[0] = to[n] = to[2 * n] = to[3 * n] = 0;
                dh[s * n + m] = d;
            } else {
                SK_R y = tanh(cs[row * n + m]), was = k > 0 ? cs[before * n + m] : c0[s * n + m];
                SK_R e = dc[s * n + m] + d * g[3 * n] * (1 - y * y);
                to[0] = e * g[2 * n] * g[0] * (1 - g[0]);
                to[n] = e * was * g[n] * (1 - g[n]);
                to[2 * n] = e * g[0] * (1 - g[2 * n] * g[2 * n]);
                to[3 * n] = d * y * g[3 * n] * (1 - g[3 * n]);
                dc[s * n + m] = e * g[n];
            }
        }
        SK_BARRIER_GLOBAL;
        if (!masked) SK_EACH(m, n) dh[s * n + m] = sk_dot(dx + row * 4 * n, u + m * 4 * n, 4 * n);
        SK_BARRIER_GLOBAL;
    }
}
#elif SK_CELL == 2
SK_KERNEL void gru(SK_IN(SK_R, x), SK_IN(SK_R, h0), SK_IN(SK_R, b), SK_IN(SK_R, u),
                   SK_MASK_ARG SK_OUT(SK_R, hs), SK_OUT(SK_R, h), SK_OUT(SK_R, gates),
                   SK_OUT(SK_R, work), const sk_rnn p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, h0);
    SK_USE_IN(SK_R, b);
    SK_USE_IN(SK_R, u);
    SK_MASK_USE;
    SK_USE_OUT(SK_R, hs);
    SK_USE_OUT(SK_R, h);
    SK_USE_OUT(SK_R, gates);
    SK_USE_OUT(SK_R, work);
    int s = SK_GROUP, lane = SK_LANE, n = p.hidden, k, m, wide = p.reset_after ? 3 * n : 2 * n;
    work += s * 4 * n;
    SK_EACH(m, n) h[s * n + m] = h0[s * n + m];
    SK_BARRIER_GLOBAL;
    for (k = 0; k < p.time; k++) {
        int row = SK_ROW_AT(s, SK_TIME(k)), masked = SK_MASKED(row);
        /* the products z, r and, when the reset comes after it, the candidate's */
        SK_EACH(m, wide)
            work[m] = (m < 2 * n ? x[row * 3 * n + m] + b[m] : (SK_R)0) +
                      (p.reset_after ? b[3 * n + m] : (SK_R)0);
        SK_BARRIER_GLOBAL;
        sk_times(work, h + s * n, u, n, 3 * n, 0, wide, lane);
        SK_BARRIER_GLOBAL;
        if (!p.reset_after) { /* r h u_h: r h in work[3n ..), its product in work[2n ..) */
            SK_EACH(m, n)
            {
                work[3 * n + m] = sk_logistic(work[n + m]) * h[s * n + m];
                work[2 * n + m] = 0;
            }
            SK_BARRIER_GLOBAL;
            sk_times(work + 2 * n, work + 3 * n, u, n, 3 * n, 2 * n, n, lane);
            SK_BARRIER_GLOBAL;
        }
        SK_EACH(m, n)
        {
            SK_R z = sk_logistic(work[m]), r = sk_logistic(work[n + m]), was = h[s * n + m];
            SK_R side = p.reset_after ? r * work[2 * n + m] : work[2 * n + m];
            SK_R q = p.reset_after ? work[2 * n + m] : work[3 * n + m];
            SK_R candidate = tanh(x[row * 3 * n + 2 * n + m] + b[2 * n + m] + side);
            SK_R y = masked ? was : z * was + (1 - z) * candidate;
            if (p.saved) {
                gates[row * 4 * n + m] = masked ? 0 : z;
                gates[row * 4 * n + n + m] = masked ? 0 : r;
                gates[row * 4 * n + 2 * n + m] = masked ? 0 : candidate;
                gates[row * 4 * n + 3 * n + m] = masked ? 0 : q;
            }
            hs[row * n + m] = y;
            h[s * n + m] = y;
        }
        SK_BARRIER_GLOBAL;
    }
}
#else
SK_KERNEL void gru_grad(SK_IN(SK_R, gates), SK_IN(SK_R, hs), SK_IN(SK_R, h0), SK_IN(SK_R, u),
                        SK_MASK_ARG SK_DHS_ARG SK_DH_ARG SK_OUT(SK_R, dx), SK_OUT(SK_R, dhu),
                        SK_OUT(SK_R, dh), const sk_rnn p)
{
    SK_USE_IN(SK_R, gates);
    SK_USE_IN(SK_R, hs);
    SK_USE_IN(SK_R, h0);
    SK_USE_IN(SK_R, u);
    SK_MASK_USE;
    SK_DHS_USE;
    SK_DH_USE;
    SK_USE_OUT(SK_R, dx);
    SK_USE_OUT(SK_R, dhu);
    SK_USE_OUT(SK_R, dh);
    int s = SK_GROUP, lane = SK_LANE, n = p.hidden, k, m;
    SK_EACH(m, n) dh[s * n + m] = SK_DH_AT(s * n + m);
    SK_BARRIER_GLOBAL;
    for (k = p.time - 1; k >= 0; k--) {
        int row = SK_ROW_AT(s, SK_TIME(k)), masked = SK_MASKED(row);
        int before = k > 0 ? SK_ROW_AT(s, SK_TIME(k - 1)) : s;
        SK_EACH(m, n)
        {
            SK_GLOBAL const SK_R *g = gates + row * 4 * n + m;
            SK_GLOBAL SK_R *to = dx + row * 3 * n + m;
            SK_R d = dh[s * n + m] + SK_DHS_AT(row * n + m);
            SK_R was = k > 0 ? hs[before * n + m] : h0[s * n + m];
            if (masked) {
                to[0] = to[n] = to[2 * n] = 0;
                if (p.reset_after)
                    dhu[row * 3 * n + m] = dhu[row * 3 * n + n + m] = dhu[row * 3 * n + 2 * n + m] = 0;
                dh[s * n + m] = d;
            } else {
                SK_R z = g[0], y = g[2 * n];
                to[0] = d * (was - y) * z * (1 - z);
                to[2 * n] = d * (1 - z) * (1 - y * y);
                dh[s * n + m] = d * z;
            }
        }
        SK_BARRIER_GLOBAL;
        if (!masked) {
            SK_EACH(m, n)
            {
                SK_GLOBAL const SK_R *g = gates + row * 4 * n + m;
                SK_R r = g[n], d = dx[row * 3 * n + 2 * n + m], dr;
                SK_R was = k > 0 ? hs[before * n + m] : h0[s * n + m];
                if (p.reset_after) {
                    dr = d * g[3 * n];
                    dhu[row * 3 * n + m] = dx[row * 3 * n + m];
                    dhu[row * 3 * n + n + m] = dr * r * (1 - r);
                    dhu[row * 3 * n + 2 * n + m] = d * r;
                } else {
                    SK_R drh = sk_dot(dx + row * 3 * n + 2 * n, u + m * 3 * n + 2 * n, n);
                    dr = drh * was;
                    dh[s * n + m] += drh * r;
                }
                dx[row * 3 * n + n + m] = dr * r * (1 - r);
            }
        }
        SK_BARRIER_GLOBAL;
        if (!masked) {
            SK_GLOBAL const SK_R *left = p.reset_after ? dhu + row * 3 * n : dx + row * 3 * n;
            SK_EACH(m, n)
                dh[s * n + m] += sk_dot(left, u + m * 3 * n, p.reset_after ? 3 * n : 2 * n);
        }
        SK_BARRIER_GLOBAL;
    }
}
#endif
