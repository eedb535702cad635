/* reduce.cl - [outer, n, inner] -> [outer, inner], of elements SK_T computed in SK_A. SK_KIND: 0 sum, 1 product, 2 largest, 3 smallest, 4 any, 5 all, 6
 * index of the first largest, 7 of the first smallest. A long n is cut into `a` chunks of `b`, whose results are reduced again. */
#if SK_KIND == 0
#define SK_START ((SK_A)0)
#define SK_JOIN(s, v) ((s) + (v))
#elif SK_KIND == 1
#define SK_START ((SK_A)1)
#define SK_JOIN(s, v) ((s) * (v))
#elif SK_KIND == 2
#define SK_JOIN(s, v) ((s) != (s) || (s) > (v) ? (s) : (v))
#elif SK_KIND == 3
#define SK_JOIN(s, v) ((s) != (s) || (s) < (v) ? (s) : (v))
#elif SK_KIND == 4
#define SK_START ((SK_A)0)
#define SK_JOIN(s, v) ((s) != 0 || (v) != 0 ? (SK_A)1 : (SK_A)0)
#elif SK_KIND == 5
#define SK_START ((SK_A)1)
#define SK_JOIN(s, v) ((s) != 0 && (v) != 0 ? (SK_A)1 : (SK_A)0)
#endif
#ifndef SK_START /* the first element starts */
#define SK_FIRST 1
#else
#define SK_FIRST 0
#endif

#if SK_KIND < 6
/* One item per chunk and result. */
SK_KERNEL void reduce(SK_IN(SK_T, x), SK_OUT(SK_Y, y), const sk_lines p)
{
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(SK_Y, y);
    int i = SK_ITEM, inner, chunk, outer, at, k, end;
    SK_A s;
    if (i >= p.outer * p.a * p.inner) return;
    inner = i % p.inner;
    chunk = i / p.inner % p.a;
    outer = i / p.inner / p.a;
    at = outer * p.n * p.inner + inner;
    k = chunk * p.b;
    end = k + p.b < p.n ? k + p.b : p.n;
#if SK_FIRST
    s = SK_LOAD(x, at + k * p.inner);
    k++;
#else
    s = SK_START;
#endif
    for (; k < end; k++) {
        SK_A v = SK_LOAD(x, at + k * p.inner);
        s = SK_JOIN(s, v);
    }
    SK_STORE(y, i, s);
}
#else
SK_KERNEL void reduce(SK_IN(SK_T, x), SK_OUT(sk_long, y), const sk_lines p)
{
    SK_USE_IN(SK_T, x);
    SK_USE_OUT(sk_long, y);
    int i = SK_ITEM, at, k, best = 0;
    SK_A s;
    if (i >= p.outer * p.inner) return;
    at = i / p.inner * p.n * p.inner + i % p.inner;
    s = SK_LOAD(x, at);
    for (k = 1; k < p.n; k++) {
        SK_A v = SK_LOAD(x, at + k * p.inner);
        if (s == s && (v != v ||
#if SK_KIND == 6
                       v > s
#else
                       v < s
#endif
                       )) {
            s = v;
            best = k;
        }
    }
    y[i] = best;
}
#endif
