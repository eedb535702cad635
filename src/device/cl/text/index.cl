/* index.cl - picking and placing elements by index SK_I. Elements are moved as SK_E, or added: loaded with SK_LOAD, summed in SK_A. An index out of range
 * picks zero and places nothing. */
#if SK_MOVES
SK_KERNEL void gather(SK_IN(SK_E, x), SK_IN(SK_I, index), SK_OUT(SK_E, y), const sk_gather p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_IN(SK_I, index);
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM, k, c, block;
    sk_long at;
    if (i >= p.batch * p.outer * p.count * p.inner) return;
    k = i % p.inner;
    c = i / p.inner % p.count;
    block = i / p.inner / p.count;
    at = (sk_long)index[block / p.outer * p.count + c];
    y[i] = at >= 0 && at < p.n ? x[(block * p.n + (int)at) * p.inner + k] : (SK_E)0;
}

SK_KERNEL void take_along(SK_IN(SK_E, x), SK_IN(SK_I, index), SK_OUT(SK_E, y), const sk_gather p)
{
    SK_USE_IN(SK_E, x);
    SK_USE_IN(SK_I, index);
    SK_USE_OUT(SK_E, y);
    int i = SK_ITEM;
    sk_long at;
    if (i >= p.outer * p.count * p.inner) return;
    at = (sk_long)index[i];
    y[i] = at >= 0 && at < p.n
               ? x[(i / p.inner / p.count * p.n + (int)at) * p.inner + i % p.inner]
               : (SK_E)0;
}

SK_KERNEL void ravel_index(SK_IN(SK_I, index), SK_OUT(sk_long, y), const sk_ravel p)
{
    SK_USE_IN(SK_I, index);
    SK_USE_OUT(sk_long, y);
    int u = SK_ITEM, k, outside = 0;
    sk_long block = 1, sum;
    if (u >= p.batch * p.count) return;
    for (k = 0; k < p.depth; k++) block *= p.dim[k];
    sum = u / p.count * block;
    for (k = 0; k < p.depth; k++) {
        sk_long at = (sk_long)index[u * p.depth + k];
        if (at < 0 || at >= p.dim[k]) {
            outside = 1;
            break;
        }
        block /= p.dim[k];
        sum += at * block;
    }
    y[u] = outside ? -1 : sum;
}
#else
/* out starts from base or zero; what belongs there is added in the order of the updates, or (set) the last one stands. */
#if SK_BASE
#define SK_BASE_ARG SK_IN(SK_T, base),
#define SK_BASE_USE SK_USE_IN(SK_T, base)
#define SK_BASE_AT(i) SK_LOAD(base, i)
#else
#define SK_BASE_ARG
#define SK_BASE_USE
#define SK_BASE_AT(i) ((SK_A)0)
#endif
#define SK_OUT_OF(p)                                                                               \
    int i = SK_ITEM, k, row, block, batch, c;                                                      \
    SK_A sum;                                                                                      \
    if (i >= p.batch * p.outer * p.n * p.inner) return;                                            \
    k = i % p.inner;                                                                               \
    row = i / p.inner % p.n;                                                                       \
    block = i / p.inner / p.n;                                                                     \
    batch = block / p.outer

/* Few updates: every element looks at all of them. */
SK_KERNEL void scatter_few(SK_IN(SK_I, index), SK_IN(SK_T, x), SK_BASE_ARG SK_OUT(SK_T, y),
                           const sk_gather p)
{
    SK_OUT_OF(p);
    SK_USE_IN(SK_I, index);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    SK_BASE_USE;
    sum = SK_BASE_AT(i);
    for (c = 0; c < p.count; c++)
        if ((sk_long)index[batch * p.count + c] == row) {
            SK_A v = SK_LOAD(x, (block * p.count + c) * p.inner + k);
            sum = p.set ? v : sum + v;
        }
    SK_STORE(y, i, sum);
}

/* Many: sorted by index first (sort.cl), so that those of a row stand together, in their order. */
SK_KERNEL void scatter_sorted(SK_IN(sk_ulong, keys), SK_IN(int, places), SK_IN(SK_T, x),
                              SK_BASE_ARG SK_OUT(SK_T, y), const sk_gather p)
{
    SK_OUT_OF(p);
    SK_USE_IN(sk_ulong, keys);
    SK_USE_IN(int, places);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    int low = 0, high = p.count;
    SK_BASE_USE;
    sum = SK_BASE_AT(i);
    keys += batch * p.count;
    places += batch * p.count;
    while (low < high) {
        int mid = (low + high) / 2;
        if (keys[mid] < (sk_ulong)row)
            low = mid + 1;
        else
            high = mid;
    }
    for (c = low; c < p.count && keys[c] == (sk_ulong)row; c++) {
        SK_A v = SK_LOAD(x, (block * p.count + places[c]) * p.inner + k);
        sum = p.set ? v : sum + v;
    }
    SK_STORE(y, i, sum);
}

/* One item per line: its elements are zero, then updated in order. */
SK_KERNEL void put_along(SK_IN(SK_I, index), SK_IN(SK_T, x), SK_OUT(SK_T, y), const sk_gather p)
{
    SK_USE_IN(SK_I, index);
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    int line = SK_ITEM, outer = line / p.inner, k = line % p.inner, c;
    if (line >= p.outer * p.inner) return;
    for (c = 0; c < p.n; c++) SK_STORE(y, (outer * p.n + c) * p.inner + k, (SK_A)0);
    for (c = 0; c < p.count; c++) {
        int from = (outer * p.count + c) * p.inner + k;
        sk_long at = (sk_long)index[from];
        if (at >= 0 && at < p.n) {
            int to = (outer * p.n + (int)at) * p.inner + k;
            SK_A v = SK_LOAD(y, to) + SK_LOAD(x, from);
            SK_STORE(y, to, v);
        }
    }
}
#endif
