/* softmax_rows.h - the row functions of softmax.c for vectors of W floats; included once per W, with n >= W. Widths that
 * the ISA does not have in one register give nothing.
 *
 * `whole` is n / W; it comes in as a constant where rows are so short that unrolling pays, and all that is kept
 * between two sweeps over the row then stays in registers. The end of a row that overlaps its neighbour is kept in
 * `last` and stored at the very end, because scaling it in memory would scale some elements twice. */
#if W <= STK_LANES_MOST
#define CAT3(a, b, c)  a##b##c
#define NAME3(a, b, c) CAT3(a, b, c)
#define ROW(name)      NAME3(name, _, W)
#define VEC            NAME3(v, W, )
#define V(name)        NAME3(VEC, _, name)
#define MASK           NAME3(m, W, )

STK_INLINE float ROW(row_max)(const float *x, int64_t n, int64_t whole)
{
    VEC top = V(max)(V(load)(x), V(load)(x + n - W));
    for (int64_t i = 1; i < whole; i++) top = V(max)(top, V(load)(x + i * W));
    return V(top)(top);
}

/* y = e^(x - m), *last = its last W elements; gives the sum. */
STK_INLINE float ROW(row_exp)(const float *x, float *y, int64_t n, int64_t whole, MASK late,
                              float m, VEC *last)
{
    *last = V(exp_down)(V(load)(x + n - W) - m);
    VEC sum = V(keep)(*last, late);
    for (int64_t i = 0; i < whole; i++) {
        VEC e = V(exp_down)(V(load)(x + i * W) - m);
        V(store)(y + i * W, e);
        sum += e;
    }
    return V(sum)(sum);
}

STK_INLINE void ROW(softmax_row)(const float *x, float *y, int64_t n, int64_t whole, MASK late)
{
    VEC last;
    float sum = ROW(row_exp)(x, y, n, whole, late, ROW(row_max)(x, n, whole), &last);
    float scale = 1.0f / sum;
    for (int64_t i = 0; i < whole; i++) V(store)(y + i * W, V(load)(y + i * W) * scale);
    V(store)(y + n - W, last * scale);
}

/* The sum of e^(x - m) alone; *m is the maximum. */
STK_INLINE float ROW(row_sum)(const float *x, int64_t n, int64_t whole, MASK late, float *m)
{
    *m = ROW(row_max)(x, n, whole);
    VEC sum = V(keep)(V(exp_down)(V(load)(x + n - W) - *m), late);
    for (int64_t i = 0; i < whole; i++) sum += V(exp_down)(V(load)(x + i * W) - *m);
    return V(sum)(sum);
}

/* y = x - a - b */
STK_INLINE void ROW(row_shift)(const float *x, float *y, int64_t n, int64_t whole, float a, float b)
{
    VEC last = V(load)(x + n - W) - a - b;
    for (int64_t i = 0; i < whole; i++) V(store)(y + i * W, V(load)(x + i * W) - a - b);
    V(store)(y + n - W, last);
}

STK_INLINE void ROW(softmax_grad_row)(const float *y, const float *dy, float *dx, int64_t n,
                                      int64_t whole, MASK late)
{
    VEC ly = V(load)(y + n - W), ld = V(load)(dy + n - W), dot = V(keep)(ly * ld, late);
    for (int64_t i = 0; i < whole; i++) dot += V(load)(y + i * W) * V(load)(dy + i * W);
    float sum = V(sum)(dot);
    for (int64_t i = 0; i < whole; i++)
        V(store)(dx + i * W, V(load)(y + i * W) * (V(load)(dy + i * W) - sum));
    V(store)(dx + n - W, ly * (ld - sum));
}

STK_INLINE void ROW(log_softmax_grad_row)(const float *y, const float *dy, float *dx, int64_t n,
                                          int64_t whole, MASK late)
{
    VEC ld = V(load)(dy + n - W), last = V(exp_down)(V(load)(y + n - W)), total = V(keep)(ld, late);
    for (int64_t i = 0; i < whole; i++) total += V(load)(dy + i * W);
    float sum = V(sum)(total);
    for (int64_t i = 0; i < whole; i++)
        V(store)(dx + i * W, V(load)(dy + i * W) - V(exp_down)(V(load)(y + i * W)) * sum);
    V(store)(dx + n - W, ld - last * sum);
}

/* Weights as labels: grad = softmax * sum(t) - t. Gives the row's sum of e^(x - m); *weight = sum(t),
 * *score = sum of t (x - m) over t != 0, so that a class of no weight may have logit -infinity. */
STK_INLINE float ROW(xent_row)(const float *x, const float *t, float *grad, int64_t n,
                               int64_t whole, MASK late, float *weight, float *score)
{
    float m = ROW(row_max)(x, n, whole);
    VEC lt = V(load)(t + n - W), lx = V(load)(x + n - W) - m, last = V(exp_down)(lx);
    VEC sum = V(keep)(last, late), weights = V(keep)(lt, late),
        scores = V(keep)(lt * lx, late & (lt != 0.0f));
    for (int64_t i = 0; i < whole; i++) {
        VEC ti = V(load)(t + i * W), xi = V(load)(x + i * W) - m, e = V(exp_down)(xi);
        V(store)(grad + i * W, e);
        sum += e;
        weights += ti;
        scores += V(keep)(ti * xi, ti != 0.0f);
    }
    float total = V(sum)(sum);
    *weight = V(sum)(weights);
    *score = V(sum)(scores);
    float scale = *weight / total;
    for (int64_t i = 0; i < whole; i++)
        V(store)(grad + i * W, V(load)(grad + i * W) * scale - V(load)(t + i * W));
    V(store)(grad + n - W, last * scale - lt);
    return total;
}

/* Class number as label; one that is no class leaves zeros. */
STK_INLINE float ROW(sparse_row)(const float *x, int64_t label, float *grad, int64_t n,
                                 int64_t whole, MASK late, float *score)
{
    VEC last;
    bool valid = label >= 0 && label < n;
    float m = ROW(row_max)(x, n, whole);
    *score = valid ? x[label] - m : NAN;
    float total = ROW(row_exp)(x, grad, n, whole, late, m, &last);
    float scale = 1.0f / total;
    if (valid) {
        for (int64_t i = 0; i < whole; i++) V(store)(grad + i * W, V(load)(grad + i * W) * scale);
        V(store)(grad + n - W, last * scale);
        grad[label] -= 1.0f;
    } else {
        memset(grad, 0, (size_t)n * sizeof *grad);
    }
    return total;
}

#undef CAT3
#undef NAME3
#undef ROW
#undef VEC
#undef V
#undef MASK
#endif
