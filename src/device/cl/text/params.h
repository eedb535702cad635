/* params.h - numbers of a problem as kernels get them: by value, 32-bit only, the same layout on both sides. Read by the host's compiler and,
 * in front of every text, by the device's. */
#ifndef SK_PARAMS
#define SK_PARAMS

typedef struct sk_gemm {
    int m, n, k, a_row, a_column, b_row, b_column, ldc;
    int batch_a, batch_b, batch_c; /* elements between batches */
    int accumulate;
    int splits, part; /* k is cut into so many parts of this length */
    int rows;         /* of one item */
    int keep;         /* somebody wants c itself, beside what is made of it */
} sk_gemm;

typedef struct sk_walk { /* copy */
    int count, rank, in_offset, out_offset;
    int dim[8], in_stride[8], out_stride[8];
} sk_walk;

typedef struct sk_lines { /* [outer, n, inner]: reduce, iota, scan, sort, one_hot */
    int outer, n, inner;
    int a, b, c; /* what the kernel makes of them */
} sk_lines;

typedef struct sk_gather {
    int batch, outer, n, count, inner;
    int set, base;
} sk_gather;

typedef struct sk_ravel {
    int batch, count, depth;
    int dim[8];
} sk_ravel;

typedef struct sk_conv {
    int n, ic, oc, groups;
    int in[3], out[3], taps[3], stride[3], dilation[3], low[3];
    int splits, part; /* of what is summed up */
    int rows;         /* of one item */
} sk_conv;

typedef struct sk_pool {
    int n, c;
    int in[3], out[3], window[3], stride[3], low[3];
} sk_pool;

typedef struct sk_rows { /* row kernels, column sums, norms */
    int rows, n, chunk, chunks;
    float eps;
    int a, b, c;
} sk_rows;

typedef struct sk_group_norm {
    int images, rows, channels, groups;
    float eps;
} sk_group_norm;

typedef struct sk_random {
    int count, kind;        /* stk_random_kind */
    unsigned int seed[2];   /* of the stream: low and high word, as all pairs here */
    float a, b, top;        /* low, width and end; mean and deviation */
    unsigned int threshold; /* bernoulli */
    int always;             /* bernoulli: 0 or 1 for sure; -1: drawn */
    unsigned int low[2], width[2];
    unsigned int da[2], db[2], dtop[2]; /* a, b, top as bits of doubles */
} sk_random;

typedef struct sk_image {
    int batch, in_h, in_w, out_h, out_w, channels;
    int shared, bilinear, fill;
    float value;
} sk_image;

typedef struct sk_rnn {
    int batch, time, hidden;
    int time_major, reverse, reset_after, saved;
} sk_rnn;

#endif
