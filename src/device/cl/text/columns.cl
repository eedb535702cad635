/* columns.cl - sums over the rows of [rows, n], column by column. Rows are cut into chunks of `chunk`; partial results (one after the other, [chunks, n])
 * are joined by a second kernel. Real numbers SK_R. */
#define SK_COLUMN(p)                                                                               \
    int i = SK_ITEM, column = i % p.n, first = i / p.n * p.chunk, r;                               \
    int end = first + p.chunk < p.rows ? first + p.chunk : p.rows;                                 \
    if (i >= p.n * p.chunks) return

/* Mean of a chunk and the sum of squared distances from it. */
SK_KERNEL void moments(SK_IN(SK_R, x), SK_OUT(SK_R, mean), SK_OUT(SK_R, square), const sk_rows p)
{
    SK_COLUMN(p);
    SK_USE_IN(SK_R, x);
    SK_USE_OUT(SK_R, mean);
    SK_USE_OUT(SK_R, square);
    SK_R sum = 0, far = 0, middle;
    for (r = first; r < end; r++) sum += x[r * p.n + column];
    middle = sum / (SK_R)(end - first);
    for (r = first; r < end; r++)
        far += (x[r * p.n + column] - middle) * (x[r * p.n + column] - middle);
    mean[i] = middle;
    square[i] = p.chunks == 1 ? far / (SK_R)p.rows : far;
}

SK_KERNEL void join_moments(SK_IN(SK_R, mean), SK_IN(SK_R, square), SK_OUT(SK_R, y),
                            SK_OUT(SK_R, variance), const sk_rows p)
{
    SK_USE_IN(SK_R, mean);
    SK_USE_IN(SK_R, square);
    SK_USE_OUT(SK_R, y);
    SK_USE_OUT(SK_R, variance);
    int i = SK_ITEM, c;
    SK_R sum = 0, far = 0, middle;
    if (i >= p.n) return;
    for (c = 0; c < p.chunks; c++) {
        int rows = (c + 1) * p.chunk < p.rows ? p.chunk : p.rows - c * p.chunk;
        sum += mean[c * p.n + i] * (SK_R)rows;
    }
    middle = sum / (SK_R)p.rows;
    for (c = 0; c < p.chunks; c++) {
        int rows = (c + 1) * p.chunk < p.rows ? p.chunk : p.rows - c * p.chunk;
        SK_R d = mean[c * p.n + i] - middle;
        far += square[c * p.n + i] + d * d * (SK_R)rows;
    }
    y[i] = middle;
    variance[i] = far / (SK_R)p.rows;
}

/* Sum of dy and of dy (x - mean). */
SK_KERNEL void column_sums(SK_IN(SK_R, dy), SK_IN(SK_R, x), SK_IN(SK_R, mean), SK_OUT(SK_R, sum),
                           SK_OUT(SK_R, slope), const sk_rows p)
{
    SK_COLUMN(p);
    SK_USE_IN(SK_R, dy);
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, mean);
    SK_USE_OUT(SK_R, sum);
    SK_USE_OUT(SK_R, slope);
    SK_R a = 0, b = 0, middle = mean[column];
    for (r = first; r < end; r++) {
        SK_R d = dy[r * p.n + column];
        a += d;
        b += d * (x[r * p.n + column] - middle);
    }
    sum[i] = a;
    slope[i] = b;
}

/* Gradients of gamma and beta of a norm whose group of row r and column c is r / a * b + c / c_: mean and scale stand there. SK_CENTER: there is a
 * mean, and beta is wanted. */
SK_KERNEL void norm_sums(SK_IN(SK_R, dy), SK_IN(SK_R, x), SK_IN(SK_R, mean), SK_IN(SK_R, rstd),
                         SK_OUT(SK_R, dgamma), SK_OUT(SK_R, dbeta), const sk_rows p)
{
    SK_COLUMN(p);
    SK_USE_IN(SK_R, dy);
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, mean);
    SK_USE_IN(SK_R, rstd);
    SK_USE_OUT(SK_R, dgamma);
    SK_USE_OUT(SK_R, dbeta);
    SK_R a = 0, b = 0;
    for (r = first; r < end; r++) {
        int g = r / p.a * p.b + column / p.c;
        SK_R d = dy[r * p.n + column], middle = 0;
#if SK_CENTER
        middle = mean[g];
#endif
        a += d * (x[r * p.n + column] - middle) * rstd[g];
        b += d;
    }
    dgamma[i] = a;
#if SK_CENTER
    dbeta[i] = b;
#endif
}

/* Sums of [chunks, n] twice. */
SK_KERNEL void join_sums(SK_IN(SK_R, a), SK_IN(SK_R, b), SK_OUT(SK_R, x), SK_OUT(SK_R, y),
                         const sk_rows p)
{
    SK_USE_IN(SK_R, a);
    SK_USE_IN(SK_R, b);
    SK_USE_OUT(SK_R, x);
    SK_USE_OUT(SK_R, y);
    int i = SK_ITEM, c;
    SK_R s = 0, t = 0;
    if (i >= p.n) return;
    for (c = 0; c < p.chunks; c++) {
        s += a[c * p.n + i];
#if SK_CENTER
        t += b[c * p.n + i];
#endif
    }
    x[i] = s;
#if SK_CENTER
    y[i] = t;
#endif
}

/* Group norm: one item per group of an image. */
SK_KERNEL void group_norm(SK_IN(SK_R, x), SK_IN(SK_R, gamma), SK_IN(SK_R, beta), SK_OUT(SK_R, y),
                          SK_OUT(SK_R, mean), SK_OUT(SK_R, rstd), const sk_group_norm p)
{
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, gamma);
    SK_USE_IN(SK_R, beta);
    SK_USE_OUT(SK_R, y);
    SK_USE_OUT(SK_R, mean);
    SK_USE_OUT(SK_R, rstd);
    int k = SK_ITEM, width = p.channels / p.groups, r, c, at;
    SK_R sum = 0, square = 0, middle, scale, n = (SK_R)(p.rows * width);
    if (k >= p.images * p.groups) return;
    at = k / p.groups * p.rows * p.channels + k % p.groups * width;
    for (r = 0; r < p.rows; r++) {
        SK_R part = 0;
        for (c = 0; c < width; c++) part += x[at + r * p.channels + c];
        sum += part;
    }
    middle = sum / n;
    for (r = 0; r < p.rows; r++) {
        SK_R part = 0;
        for (c = 0; c < width; c++) {
            SK_R d = x[at + r * p.channels + c] - middle;
            part += d * d;
        }
        square += part;
    }
    scale = (SK_R)1 / sqrt(square / n + (SK_R)p.eps);
    for (r = 0; r < p.rows; r++)
        for (c = 0; c < width; c++) {
            int channel = k % p.groups * width + c;
            y[at + r * p.channels + c] =
                (x[at + r * p.channels + c] - middle) * scale * gamma[channel] + beta[channel];
        }
    mean[k] = middle;
    rstd[k] = scale;
}

SK_KERNEL void group_norm_grad(SK_IN(SK_R, dy), SK_IN(SK_R, x), SK_IN(SK_R, gamma),
                               SK_IN(SK_R, mean), SK_IN(SK_R, rstd), SK_OUT(SK_R, dx),
                               const sk_group_norm p)
{
    SK_USE_IN(SK_R, dy);
    SK_USE_IN(SK_R, x);
    SK_USE_IN(SK_R, gamma);
    SK_USE_IN(SK_R, mean);
    SK_USE_IN(SK_R, rstd);
    SK_USE_OUT(SK_R, dx);
    int k = SK_ITEM, width = p.channels / p.groups, r, c, at;
    SK_R sum = 0, slope = 0, n = (SK_R)(p.rows * width), middle, scale;
    if (k >= p.images * p.groups) return;
    at = k / p.groups * p.rows * p.channels + k % p.groups * width;
    middle = mean[k];
    scale = rstd[k];
    for (r = 0; r < p.rows; r++) {
        SK_R part = 0, other = 0;
        for (c = 0; c < width; c++) {
            int e = at + r * p.channels + c;
            SK_R d = dy[e] * gamma[k % p.groups * width + c];
            part += d;
            other += d * (x[e] - middle) * scale;
        }
        sum += part;
        slope += other;
    }
    for (r = 0; r < p.rows; r++)
        for (c = 0; c < width; c++) {
            int e = at + r * p.channels + c;
            SK_R d = dy[e] * gamma[k % p.groups * width + c];
            dx[e] = scale * (d - sum / n - (x[e] - middle) * scale * slope / n);
        }
}
