/* sort.cl - lines in order, stable. Elements become 64-bit keys; short runs are sorted by one item each, then merged pair by pair: every element finds its
 * place in the other run by bisection. */
#define SK_ONES (SK_BITS == 64 ? ~(sk_ulong)0 : ((sk_ulong)1 << (SK_BITS % 64)) - 1)
#define SK_SIGN ((sk_ulong)1 << (SK_BITS - 1))

/* SK_KEY: 0 unsigned, 1 signed, 2 real (SK_INFINITY: the bits of infinity), 3 row numbers below p.a, all others last. */
SK_FN sk_ulong sk_key(SK_E element, const sk_lines p)
{
    sk_ulong raw = (sk_ulong)element & SK_ONES, key;
#if SK_KEY == 3
    sk_long row = (sk_long)element;
    return row >= 0 && row < p.a ? (sk_ulong)row : ~(sk_ulong)0;
#endif
#if SK_KEY == 2
    sk_ulong size = raw & ~SK_SIGN;
    if (size > (sk_ulong)SK_INFINITY) return SK_ONES;
    if (size == 0) raw = 0;
    key = raw & SK_SIGN ? ~raw & SK_ONES : raw | SK_SIGN;
#elif SK_KEY == 1
    key = raw ^ SK_SIGN;
#else
    key = raw;
#endif
    return p.b ? ~key & SK_ONES : key; /* b: descending */
}

/* One item per run of SK_RUN elements of a line. */
SK_KERNEL void sort_runs(SK_IN(SK_E, x), SK_OUT(sk_ulong, keys), SK_OUT(int, places),
                         const sk_lines p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_OUT(sk_ulong, keys);
    SK_USE_OUT(int, places);
    int runs = (p.n + SK_RUN - 1) / SK_RUN, line = SK_ITEM / runs, first = SK_ITEM % runs * SK_RUN;
    int end = first + SK_RUN < p.n ? first + SK_RUN : p.n, i, from;
    if (line >= p.outer * p.inner) return;
    from = line / p.inner * p.n * p.inner + line % p.inner;
    keys += line * p.n;
    places += line * p.n;
    for (i = first; i < end; i++) {
        sk_ulong key = sk_key(x[from + i * p.inner], p);
        int j = i;
        for (; j > first && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            places[j] = places[j - 1];
        }
        keys[j] = key;
        places[j] = i;
    }
}

/* Runs of c elements become runs of 2 c. */
SK_KERNEL void sort_merge(SK_IN(sk_ulong, keys), SK_IN(int, places), SK_OUT(sk_ulong, to_keys),
                          SK_OUT(int, to_places), const sk_lines p)
{
    SK_USE_IN(sk_ulong, keys);
    SK_USE_IN(int, places);
    SK_USE_OUT(sk_ulong, to_keys);
    SK_USE_OUT(int, to_places);
    int i = SK_ITEM, line = i / p.n, at = i % p.n, start, mid, end, low, high, to;
    sk_ulong key;
    if (i >= p.outer * p.inner * p.n) return;
    start = at / (2 * p.c) * (2 * p.c);
    mid = start + p.c < p.n ? start + p.c : p.n;
    end = start + 2 * p.c < p.n ? start + 2 * p.c : p.n;
    keys += line * p.n;
    key = keys[at];
    low = at < mid ? mid : start;
    high = at < mid ? end : mid;
    while (low < high) { /* how many of the other run come before: of equal ones those of the left */
        int half_ = (low + high) / 2;
        if (keys[half_] < key || (at >= mid && keys[half_] == key))
            low = half_ + 1;
        else
            high = half_;
    }
    to = line * p.n + (at < mid ? at + low - mid : at + low - mid);
    to_keys[to] = key;
    to_places[to] = places[i];
}

SK_KERNEL void sort_finish(SK_IN(SK_E, x), SK_IN(int, places), SK_OUT(SK_E, y),
                           SK_OUT(sk_long, index), const sk_lines p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_IN(int, places);
    SK_USE_OUT(SK_E, y);
    SK_USE_OUT(sk_long, index);
    int i = SK_ITEM, inner = i % p.inner, j = i / p.inner % p.c, outer = i / p.inner / p.c, place;
    if (i >= p.outer * p.c * p.inner) return; /* c: the first so many */
    place = places[(outer * p.inner + inner) * p.n + j];
    y[i] = x[(outer * p.n + place) * p.inner + inner];
    index[i] = place;
}
