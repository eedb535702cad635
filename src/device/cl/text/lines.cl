/* lines.cl - along n of [outer, n, inner]: indices, running sums and products, linear recurrences. One item per line; a line is walked from its start, so
 * that no split can change a bit. */
SK_KERNEL void iota(SK_OUT(SK_T, y), const sk_lines p)
{
    SK_USE_OUT(SK_T, y);
    int i = SK_ITEM;
    if (i < p.outer * p.n * p.inner) SK_STORE(y, i, (SK_A)(i / p.inner % p.n));
}

#if SK_SCAN /* a: product; b: exclusive; c: backwards */
SK_KERNEL void scan(SK_IN(SK_T, x), SK_OUT(SK_T, y), const sk_lines p)
{
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_T, y);
    int line = SK_ITEM, at, k, step = p.c ? -p.inner : p.inner;
    SK_A sum = p.a ? (SK_A)1 : (SK_A)0;
    if (line >= p.outer * p.inner) return;
    at = line / p.inner * p.n * p.inner + line % p.inner + (p.c ? (p.n - 1) * p.inner : 0);
    for (k = 0; k < p.n; k++, at += step) {
        SK_A before = sum, v = SK_LOAD(x, at);
        sum = p.a ? sum * v : sum + v;
        SK_STORE(y, at, p.b ? before : sum);
    }
}

SK_KERNEL void linear(SK_IN(SK_T, a), SK_IN(SK_T, b), SK_OUT(SK_T, y), const sk_lines p)
{
    SK_USE_IN(SK_T, a);
    SK_USE_IN(SK_T, b);
    SK_USE_OUT(SK_T, y);
    int line = SK_ITEM, at, k, step = p.c ? -p.inner : p.inner;
    SK_A sum = 0;
    if (line >= p.outer * p.inner) return;
    at = line / p.inner * p.n * p.inner + line % p.inner + (p.c ? (p.n - 1) * p.inner : 0);
    for (k = 0; k < p.n; k++, at += step) {
        sum = SK_LOAD(a, at) * sum + SK_LOAD(b, at);
        SK_STORE(y, at, sum);
    }
}
#endif
