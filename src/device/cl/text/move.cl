/* move.cl - elements that are only moved: copies with strides, fills, concatenation, indices. SK_E is the element: uchar .. ulong. */

SK_KERNEL void copy(SK_IN(SK_E, x), SK_OUT(SK_E, y), const sk_walk p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM, from = p.in_offset, to = p.out_offset, left = i, k;
    if (i >= p.count) return;
    for (k = p.rank - 1; k >= 0; k--) {
        int c = left % p.dim[k];
        left /= p.dim[k];
        from += c * p.in_stride[k];
        to += c * p.out_stride[k];
    }
    y[to] = x[from];
}

/* The value is given as two words. */
SK_KERNEL void fill(SK_OUT(SK_E, y), const sk_lines p)
{
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM;
    if (i < p.n) y[i] = (SK_E)((sk_ulong)(uint)p.a | (sk_ulong)(uint)p.b << 32);
}

/* One input of a concatenation: rows of `inner` elements go to rows of `a`, from column `b` on. */
SK_KERNEL void place(SK_IN(SK_E, x), SK_OUT(SK_E, y), const sk_lines p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM;
    if (i < p.outer * p.inner) y[i / p.inner * p.a + p.b + i % p.inner] = x[i];
}

/* out[outer, depth, inner] is on or off; on and off come by bits, two words each. */
SK_KERNEL void one_hot(SK_IN(SK_I, index), SK_OUT(SK_E, y), const sk_lines p, const sk_lines value)
{
    SK_USE_IN(SK_I, index);
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM, inner, rest;
    sk_ulong on = (sk_ulong)(uint)value.outer | (sk_ulong)(uint)value.n << 32;
    sk_ulong off = (sk_ulong)(uint)value.inner | (sk_ulong)(uint)value.a << 32;
    if (i >= p.outer * p.n * p.inner) return;
    inner = i % p.inner;
    rest = i / p.inner;
    y[i] = (SK_E)((sk_long)index[rest / p.n * p.inner + inner] == (sk_long)(rest % p.n) ? on : off);
}
