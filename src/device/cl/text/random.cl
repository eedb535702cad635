/* random.cl - the numbers of base/rng.h, bit by bit: Philox4x32-10 over blocks of four words, series instead of library functions, and nothing fused. */
SK_FN sk_ulong sk_mix(sk_ulong x)
{
    x = (x ^ x >> 32) * (sk_ulong)0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * (sk_ulong)0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

typedef struct sk_words {
    uint w[4];
} sk_words;

SK_FN sk_words sk_block(sk_ulong seed, sk_ulong stream, sk_ulong block)
{
    sk_ulong mixed = sk_mix(seed + (sk_ulong)0x9E3779B97F4A7C15u);
    uint k0 = (uint)mixed, k1 = (uint)(mixed >> 32);
    uint c0 = (uint)block, c1 = (uint)(block >> 32), c2 = (uint)stream, c3 = (uint)(stream >> 32);
    int round;
    sk_words out;
    for (round = 0; round < 10; round++) {
        uint h0 = SK_MUL_HIGH(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        uint h1 = SK_MUL_HIGH(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out.w[0] = c0;
    out.w[1] = c1;
    out.w[2] = c2;
    out.w[3] = c3;
    return out;
}

/* Words that belong to one element alone. */
SK_FN sk_words sk_spare(sk_ulong seed, sk_ulong stream, sk_ulong element, sk_ulong attempt)
{
    return sk_block(seed ^ sk_mix(attempt * (sk_ulong)0xA0761D6478BD642Fu), stream, element);
}

#define SK_PAIR(x) ((sk_ulong)(x)[0] | (sk_ulong)(x)[1] << 32)

/* ---- normal numbers: see base/rng_math.h ---- */
SK_FN float sk_log_unit(float u)
{
    uint above = SK_BITS_OF_FLOAT(u) - 0x3f3504f3u;
    int e = (int)above >> 23;
    float m = SK_FLOAT_OF_BITS((above & 0x7fffffu) + 0x3f3504f3u);
    float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float series =
        q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9 + q * (1.0f / 11)))));
    return (float)e * 0.693147180559945f + (2.0f * s + 2.0f * s * series);
}

SK_FN float sk_radius(uint word)
{
    float u = (float)(int)(word >> 1) * 0x1p-31f + 0x1p-33f;
    return sqrt(-2.0f * sk_log_unit(u < 1.0f ? u : 1.0f));
}

/* Which: 0 cosine, 1 sine. */
SK_FN float sk_turn(uint word, int which)
{
    int part = (int)(word << 2) >> 2;
    float x = (float)part * (1.57079632679489662f * 0x1p-30f), q = x * x;
    float s = x + x * q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880))));
    float c =
        1.0f + q * (-0.5f + q * (1.0f / 24 +
                                 q * (-1.0f / 720 + q * (1.0f / 40320 + q * (-1.0f / 3628800)))));
    uint quarter = word >> 30, swap = 0u - (quarter & 1u);
    uint bs = SK_BITS_OF_FLOAT(s), bc = SK_BITS_OF_FLOAT(c);
    uint bx = (bs & swap) | (bc & ~swap), by = (bc & swap) | (bs & ~swap);
    return which ? SK_FLOAT_OF_BITS(by ^ ((quarter & 2u) << 30))
                 : SK_FLOAT_OF_BITS(bx ^ (((quarter + 1) & 2u) << 30));
}

SK_FN float sk_normal(sk_words b, int k)
{
    return sk_radius(b.w[k / 2 * 2]) * sk_turn(b.w[k / 2 * 2 + 1], k % 2);
}

SK_FN float sk_truncated(sk_ulong seed, sk_ulong stream, int element)
{
    float v = sk_normal(sk_block(seed, stream, (sk_ulong)(element / 4)), element % 4);
    sk_ulong attempt;
    int k;
    for (attempt = 1; !(v >= -2.0f && v <= 2.0f); attempt++) {
        sk_words b = sk_spare(seed, stream, (sk_ulong)element, attempt);
        for (k = 0; k < 4 && !(v >= -2.0f && v <= 2.0f); k++) v = sk_normal(b, k);
    }
    return v;
}

#ifdef SK_HAS_F64
SK_FN double sk_log_unit_f64(double u)
{
    const sk_ulong half_root = (sk_ulong)0x3fe6a09e667f3bcdu;
    sk_ulong bits = SK_BITS_OF_DOUBLE(u) - half_root;
    sk_long e = (sk_long)bits >> 52;
    double m = SK_DOUBLE_OF_BITS((bits & (sk_ulong)0xfffffffffffffu) + half_root), series = 0;
    double s = (m - 1.0) / (m + 1.0), q = s * s;
    int k;
    for (k = 23; k >= 3; k -= 2) series = q * (1.0 / k + series);
    return (double)e * 0.693147180559945309417 + (2.0 * s + 2.0 * s * series);
}

SK_FN double sk_normal_f64(sk_words b, int which)
{
    sk_ulong both = (sk_ulong)b.w[0] << 32 | b.w[1];
    sk_long part = (sk_long)(((sk_ulong)b.w[2] << 32 | b.w[3]) << 2) >> 2;
    double u = (double)(sk_long)(both >> 1) * 0x1p-63 + 0x1p-65, radius, s = 0, c = 0, along, across;
    double x = (double)part * (1.57079632679489661923 * 0x1p-62), q = x * x;
    uint quarter = b.w[2] >> 30;
    int k;
    radius = sqrt(-2.0 * sk_log_unit_f64(u < 1.0 ? u : 1.0));
    for (k = 18; k >= 4; k -= 2) {
        s = q * (-1.0 / (k * (k + 1))) * (1.0 + s);
        c = q * (-1.0 / (k * (k - 1))) * (1.0 + c);
    }
    s = x + x * (q * (-1.0 / 6) * (1.0 + s));
    c = 1.0 + q * -0.5 * (1.0 + c);
    along = quarter & 1 ? s : c;
    across = quarter & 1 ? c : s;
    return radius * (which ? (quarter & 2 ? -across : across)
                           : ((quarter + 1) & 2 ? -along : along));
}
#endif

/* ---- whole numbers below width (0: 2^64), each as likely ---- */
SK_FN sk_ulong sk_below(sk_ulong seed, sk_ulong stream, sk_ulong element, uint word, uint more,
                        sk_ulong width)
{
    sk_words spare;
    sk_ulong attempt, both, low, refused;
    if (width != 0 && width <= (sk_ulong)1 << 32) {
        sk_ulong product = (sk_ulong)word * width;
        if ((uint)product < width) {
            refused = ((sk_ulong)1 << 32) % width;
            for (attempt = 0; (uint)product < refused; attempt++) {
                if (attempt % 4 == 0) spare = sk_spare(seed, stream, element, attempt / 4 + 1);
                product = spare.w[attempt % 4] * width;
            }
        }
        return product >> 32;
    }
    both = (sk_ulong)more << 32 | word;
    if (width == 0) return both;
    low = both * width;
    if (low < width) {
        refused = (0 - width) % width;
        for (attempt = 0; low < refused; attempt++) {
            if (attempt % 2 == 0) spare = sk_spare(seed, stream, element, attempt / 2 + 1);
            both = (sk_ulong)spare.w[attempt % 2 * 2] << 32 | spare.w[attempt % 2 * 2 + 1];
            low = both * width;
        }
    }
    return SK_MUL_HIGH64(both, width);
}

/* SK_KIND: 0 uniform, 1 normal, 2 truncated normal, 3 bernoulli, 4 whole numbers. SK_WIDE: doubles. */
SK_KERNEL void random_numbers(SK_IN(sk_long, counter), SK_OUT(SK_T, y), const sk_random p)
{
    SK_USE_IN(sk_long, counter);
    SK_USE_OUT(SK_T, y);
    int i = SK_ITEM;
    sk_ulong seed = SK_PAIR(p.seed), stream = (sk_ulong)counter[0];
    if (i >= p.count) return;
#if SK_KIND == 0 && SK_WIDE
    {
        sk_words b = sk_block(seed, stream, (sk_ulong)(i / 2));
        double u = (double)(b.w[i % 2 * 2] >> 5) * 0x1p-27 +
                   (double)(b.w[i % 2 * 2 + 1] >> 6) * 0x1p-53;
        double v = SK_DOUBLE_OF_BITS(SK_PAIR(p.da)) + SK_DOUBLE_OF_BITS(SK_PAIR(p.db)) * u;
        double top = SK_DOUBLE_OF_BITS(SK_PAIR(p.dtop));
        y[i] = v < top ? v : top;
    }
#elif SK_KIND == 0
    {
        sk_words b = sk_block(seed, stream, (sk_ulong)(i / 4));
        float v = p.a + p.b * ((float)(b.w[i % 4] >> 8) * 0x1p-24f);
        y[i] = v < p.top ? v : p.top;
    }
#elif SK_KIND == 1 && SK_WIDE
    y[i] = SK_DOUBLE_OF_BITS(SK_PAIR(p.da)) +
           SK_DOUBLE_OF_BITS(SK_PAIR(p.db)) *
               sk_normal_f64(sk_block(seed, stream, (sk_ulong)(i / 2)), i % 2);
#elif SK_KIND == 1
    y[i] = p.a + p.b * sk_normal(sk_block(seed, stream, (sk_ulong)(i / 4)), i % 4);
#elif SK_KIND == 2 && SK_WIDE
    y[i] = SK_DOUBLE_OF_BITS(SK_PAIR(p.da)) +
           SK_DOUBLE_OF_BITS(SK_PAIR(p.db)) * (double)sk_truncated(seed, stream, i);
#elif SK_KIND == 2
    y[i] = p.a + p.b * sk_truncated(seed, stream, i);
#elif SK_KIND == 3
    y[i] = (SK_T)(p.always >= 0 ? p.always
                                : sk_block(seed, stream, (sk_ulong)(i / 4)).w[i % 4] < p.threshold);
#else
    {
        sk_ulong width = SK_PAIR(p.width);
        uint word = sk_block(seed, stream, (sk_ulong)(i / 4)).w[i % 4], more = 0;
        if (width > (sk_ulong)1 << 32)
            more = sk_spare(seed, stream, (sk_ulong)i, (sk_ulong)0x100000000u).w[0];
        y[i] = (SK_T)(SK_PAIR(p.low) + sk_below(seed, stream, (sk_ulong)i, word, more, width));
    }
#endif
}

/* One item: each element changes places with one of those before it. */
SK_KERNEL void permutation(SK_IN(sk_long, counter), SK_OUT(sk_long, y), const sk_random p)
{
    SK_USE_IN(sk_long, counter);
    SK_USE_OUT(sk_long, y);
    sk_ulong seed = SK_PAIR(p.seed), stream = (sk_ulong)counter[0];
    int i;
    if (SK_ITEM != 0) return;
    for (i = 0; i < p.count; i++) y[i] = i;
    for (i = 1; i < p.count; i++) {
        uint word = sk_block(seed, stream, (sk_ulong)(i / 4)).w[i % 4];
        int j = (int)sk_below(seed, stream, (sk_ulong)i, word, 0, (sk_ulong)i + 1);
        sk_long swap = y[i];
        y[i] = y[j];
        y[j] = swap;
    }
}
