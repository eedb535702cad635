/* rows.cl - kernels that look at whole rows of n elements: softmax, cross entropy, norms. SK_LANES items share one row (1: one item alone) and there
 * are SK_GROUP_SIZE items in a group. Real numbers SK_R. */
#if SK_LANES > 1
/* The sum (or the maximum) over the lanes of a row, known to all of them. */
#define SK_ROW_JOIN(name, JOIN)                                                                    \
    SK_FN SK_R name(SK_LOCAL_ARG SK_R *room, SK_R v)                                                   \
    {                                                                                              \
        int lane = SK_LANE, step;                                                                  \
        SK_R all;                                                                                  \
        SK_BARRIER;                                                                                \
        room[lane] = v;                                                                            \
        for (step = SK_LANES / 2; step > 0; step /= 2) {                                           \
            SK_BARRIER;                                                                            \
            if (lane % SK_LANES < step) {                                                          \
                SK_R a = room[lane], b = room[lane + step];                                        \
                room[lane] = JOIN;                                                                 \
            }                                                                                      \
        }                                                                                          \
        SK_BARRIER;                                                                                \
        all = room[lane / SK_LANES * SK_LANES];                                                    \
        return all;                                                                                \
    }
SK_ROW_JOIN(sk_row_sum_in, a + b)
SK_ROW_JOIN(sk_row_max_in, (a != a || a > b ? a : b))
#define SK_ROW_ROOM    SK_LOCAL SK_R room[SK_GROUP_SIZE]
#define sk_row_sum(v)  sk_row_sum_in(room, v)
#define sk_row_max(v)  sk_row_max_in(room, v)
#else
#define SK_ROW_ROOM
#define sk_row_sum(v)  (v)
#define sk_row_max(v)  (v)
#endif
/* Rows behind the last one are computed too (all of a group meet at barriers), on the last row, and not stored. */
#define SK_ROW_OF(p)                                                                               \
    SK_ROW_ROOM;                                                                                   \
    int row_asked = SK_ITEM / SK_LANES, lane = SK_LANE % SK_LANES, i;                              \
    int stores = row_asked < p.rows, row = stores ? row_asked : p.rows - 1, at = row * p.n
#define SK_ALONG(p) for (i = lane; i < p.n; i += SK_LANES)
#define SK_LOWEST (-(SK_R)INFINITY)

#if SK_ROWS == 0 /* softmax; a: logarithm of it */
SK_KERNEL void softmax(SK_IN(SK_R, x), SK_OUT(SK_R, y), const sk_rows p)
{
    SK_ROW_OF(p);
    SK_USE_IN(SK_R, x);
    SK_USE_OUT(SK_R, y);
    SK_R most = SK_LOWEST, sum = 0;
    SK_ALONG(p) most = most != most || most > x[at + i] ? most : x[at + i];
    most = sk_row_max(most);
    SK_ALONG(p) sum += exp(x[at + i] - most);
    sum = sk_row_sum(sum);
    if (!stores) return;
    if (p.a) {
        SK_R shift = log(sum);
        SK_ALONG(p) y[at + i] = x[at + i] - most - shift;
    } else {
        SK_ALONG(p) y[at + i] = exp(x[at + i] - most) / sum;
    }
}

SK_KERNEL void softmax_grad(SK_IN(SK_R, y), SK_IN(SK_R, dy), SK_OUT(SK_R, dx), const sk_rows p)
{
    SK_ROW_OF(p);
    SK_USE_IN(SK_R, y);
    SK_USE_IN(SK_R, dy);
    SK_USE_OUT(SK_R, dx);
    SK_R sum = 0;
    SK_ALONG(p) sum += p.a ? dy[at + i] : dy[at + i] * y[at + i];
    sum = sk_row_sum(sum);
    if (!stores) return;
    SK_ALONG(p)
        dx[at + i] = p.a ? dy[at + i] - exp(y[at + i]) * sum : y[at + i] * (dy[at + i] - sum);
}
#elif SK_ROWS == 1 /* cross entropy of softmax; SK_L: labels, as numbers of classes or (a) as weights of all */
SK_KERNEL void xent(SK_IN(SK_R, x), SK_IN(SK_L, label), SK_OUT(SK_R, loss), SK_OUT(SK_R, grad),
                    const sk_rows p)
{
    SK_ROW_OF(p);
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_L, label);
    SK_USE_OUT(SK_R, loss);
    SK_USE_OUT(SK_R, grad);
    SK_R most = SK_LOWEST, sum = 0, log_sum;
    SK_ALONG(p) most = most != most || most > x[at + i] ? most : x[at + i];
    most = sk_row_max(most);
    SK_ALONG(p) sum += exp(x[at + i] - most);
    sum = sk_row_sum(sum);
    log_sum = log(sum);
#if SK_DENSE
    {
        SK_R weight = 0, lost = 0;
        SK_ALONG(p)
        {
            SK_R w = label[at + i];
            weight += w;
            if (w != 0) lost += w * (log_sum - (x[at + i] - most));
        }
        weight = sk_row_sum(weight);
        lost = sk_row_sum(lost);
        if (!stores) return;
        SK_ALONG(p) grad[at + i] = exp(x[at + i] - most) / sum * weight - label[at + i];
        if (lane == 0) loss[row] = lost;
    }
#else
    {
        sk_long class_ = (sk_long)label[row];
        int known = class_ >= 0 && class_ < p.n;
        if (!stores) return;
        SK_ALONG(p)
            grad[at + i] = known ? exp(x[at + i] - most) / sum - (i == (int)class_ ? (SK_R)1 : (SK_R)0)
                                 : (SK_R)0;
        if (lane == 0) loss[row] = known ? log_sum - (x[at + (int)class_] - most) : (SK_R)NAN;
    }
#endif
}
#elif SK_ROWS == 2 /* layer norm and root-mean-square norm (no SK_CENTER), with SK_GAMMA, SK_BETA */
SK_KERNEL void row_norm(SK_IN(SK_R, x),
#if SK_GAMMA
                        SK_IN(SK_R, gamma),
#endif
#if SK_BETA
                        SK_IN(SK_R, beta),
#endif
                        SK_OUT(SK_R, y),
#if SK_CENTER
                        SK_OUT(SK_R, mean),
#endif
                        SK_OUT(SK_R, rstd), const sk_rows p)
{
    SK_ROW_OF(p);
    SK_USE_IN(SK_R, x);
    SK_USE_OUT(SK_R, y);
    SK_USE_OUT(SK_R, rstd);
#if SK_GAMMA
    SK_USE_IN(SK_R, gamma);
#endif
#if SK_BETA
    SK_USE_IN(SK_R, beta);
#endif
    SK_R middle = 0, square = 0, scale;
#if SK_CENTER
    SK_USE_OUT(SK_R, mean);
    SK_ALONG(p) middle += x[at + i];
    middle = sk_row_sum(middle) / (SK_R)p.n;
#endif
    SK_ALONG(p) square += (x[at + i] - middle) * (x[at + i] - middle);
    square = sk_row_sum(square);
    scale = (SK_R)1 / sqrt(square / (SK_R)p.n + (SK_R)p.eps);
    if (!stores) return;
    SK_ALONG(p)
    {
        SK_R v = (x[at + i] - middle) * scale;
#if SK_GAMMA
        v *= gamma[i];
#endif
#if SK_BETA
        v += beta[i];
#endif
        y[at + i] = v;
    }
    if (lane == 0) {
#if SK_CENTER
        mean[row] = middle;
#endif
        rstd[row] = scale;
    }
}

/* dx; the gradients of gamma and beta are column sums (columns.cl). */
SK_KERNEL void row_norm_grad(SK_IN(SK_R, dy), SK_IN(SK_R, x),
#if SK_GAMMA
                             SK_IN(SK_R, gamma),
#endif
#if SK_CENTER
                             SK_IN(SK_R, mean),
#endif
                             SK_IN(SK_R, rstd), SK_OUT(SK_R, dx), const sk_rows p)
{
    SK_ROW_OF(p);
    SK_USE_IN(SK_R, dy);
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, rstd);
    SK_USE_OUT(SK_R, dx);
#if SK_GAMMA
    SK_USE_IN(SK_R, gamma);
#define SK_E(i) (dy[at + i] * gamma[i])
#else
#define SK_E(i) (dy[at + i])
#endif
    SK_R middle = 0, scale = rstd[row], sum = 0, slope = 0;
#if SK_CENTER
    SK_USE_IN(SK_R, mean);
    middle = mean[row];
#endif
    SK_ALONG(p)
    {
        sum += SK_E(i);
        slope += SK_E(i) * ((x[at + i] - middle) * scale);
    }
    sum = sk_row_sum(sum) / (SK_R)p.n;
    slope = sk_row_sum(slope) / (SK_R)p.n;
#if !SK_CENTER
    sum = 0;
#endif
    if (!stores) return;
    SK_ALONG(p) dx[at + i] = scale * (SK_E(i) - sum - (x[at + i] - middle) * scale * slope);
}
#endif
