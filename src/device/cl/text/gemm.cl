/* gemm.cl - c[m, n] = op(a)[m, k] op(b)[k, n], row by row, in batches. Elements SK_T, computed in SK_R. Both may be stored transposed: element (r, c)
 * of a stands at r * a_row + c * a_column. */
#define SK_A_AT(r, c) ((r) * p.a_row + (c) * p.a_column)
#define SK_B_AT(r, c) ((r) * p.b_row + (c) * p.b_column)

/* What else is made of c, with elements of another array: 1 adds a row (bias), 2 and cuts off below zero, 3 lets pass where the other is positive. */
#if SK_END
#define SK_END_ARGS SK_IN(SK_T, with), SK_OUT(SK_T, made),
#define SK_END_USE  SK_USE_IN(SK_T, with); SK_USE_OUT(SK_T, made)
#define SK_E_AT(row, column) (SK_END == 3 ? (row) * p.ldc + (column) : (column))
#else
#define SK_END_ARGS
#define SK_END_USE
#endif
#if SK_END == 1
#define SK_ENDED(V, v, e) ((v) + (e))
#elif SK_END == 2
#define SK_ENDED(V, v, e) ((v) + (e) < (V)0 ? (V)0 : (v) + (e))
#elif SK_END == 3
#define SK_ENDED(V, v, e) ((e) > (V)0 ? (v) : (V)0)
#endif

#if SK_WIDE
/* For processors with wide vectors: one item makes a block of p.rows rows and two vectors of columns. A panel of b is packed, so that it is read in one
 * stretch however b is stored; sums of SK_MR rows stay in registers. */
#define SK_NR (2 * SK_W)
#define SK_V  SK_GLUE(SK_R, SK_W)
#define SK_VLOAD SK_GLUE(vload, SK_W)
#define SK_VSTORE SK_GLUE(vstore, SK_W)

SK_KERNEL __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm(SK_IN(SK_T, a), SK_IN(SK_T, b), SK_OUT(SK_T, c), SK_END_ARGS const sk_gemm p)
{
    SK_LOCAL SK_R panel[SK_KC * SK_NR];
    int n0 = SK_GROUP * SK_NR, m0 = SK_GROUP_Y * p.rows, batch = SK_GROUP_Z, k0, i, j, k, r;
    int width = p.n - n0 < SK_NR ? p.n - n0 : SK_NR;
    int m1 = m0 + p.rows < p.m ? m0 + p.rows : p.m, m;
    SK_GLOBAL const SK_T *a = a_block + a_at + batch * p.batch_a;
    SK_GLOBAL const SK_T *b = b_block + b_at + batch * p.batch_b;
    SK_GLOBAL SK_T *c = c_block + c_at + batch * p.batch_c;
    SK_END_USE;
    if (p.k == 0)
        for (m = m0; m < m1; m++)
            for (j = 0; j < width && !p.accumulate; j++) SK_STORE(c, m * p.ldc + n0 + j, (SK_R)0);
    for (k0 = 0; k0 < p.k; k0 += SK_KC) {
        int depth = p.k - k0 < SK_KC ? p.k - k0 : SK_KC;
        int adds = k0 > 0 || p.accumulate;
#if SK_END
        int last = k0 + depth == p.k, keeps = !last || p.keep;
#endif
        if (width < SK_NR)
            for (i = 0; i < depth * SK_NR; i++) panel[i] = 0;
        if (p.b_column != 1) {
            for (j = 0; j < width; j++)
                for (k = 0; k < depth; k++)
                    panel[k * SK_NR + j] = SK_LOAD(b, SK_B_AT(k0 + k, n0 + j));
#if SK_PLAIN
        } else if (width == SK_NR) {
            for (k = 0; k < depth; k++) {
                SK_GLOBAL const SK_T *from = b + SK_B_AT(k0 + k, n0);
                SK_VSTORE(SK_VLOAD(0, from), 0, panel + k * SK_NR);
                SK_VSTORE(SK_VLOAD(0, from + SK_W), 0, panel + k * SK_NR + SK_W);
            }
#endif
        } else {
            for (k = 0; k < depth; k++)
                for (j = 0; j < width; j++)
                    panel[k * SK_NR + j] = SK_LOAD(b, SK_B_AT(k0 + k, n0 + j));
        }
        for (m = m0; m < m1; m += SK_MR) {
            SK_V left[SK_MR], right[SK_MR];
            SK_GLOBAL const SK_T *from[SK_MR];
#pragma unroll
            for (r = 0; r < SK_MR; r++) {
                left[r] = (SK_V)0;
                right[r] = (SK_V)0;
                from[r] = a + SK_A_AT(m + r < p.m ? m + r : p.m - 1, k0);
            }
            for (k = 0; k < depth; k++) {
                SK_V b0 = SK_VLOAD(0, panel + k * SK_NR), b1 = SK_VLOAD(0, panel + k * SK_NR + SK_W);
#pragma unroll
                for (r = 0; r < SK_MR; r++) {
                    SK_V x = (SK_V)SK_LOAD(from[r], k * p.a_column);
                    left[r] = fma(x, b0, left[r]);
                    right[r] = fma(x, b1, right[r]);
                }
            }
#pragma unroll
            for (r = 0; r < SK_MR; r++) {
                if (m + r < m1) {
                    SK_GLOBAL SK_T *to = c + (m + r) * p.ldc + n0;
#if SK_PLAIN
                    if (width == SK_NR) {
                        if (adds) {
                            left[r] += SK_VLOAD(0, to);
                            right[r] += SK_VLOAD(0, to + SK_W);
                        }
#if SK_END
                        if (keeps) {
                            SK_VSTORE(left[r], 0, to);
                            SK_VSTORE(right[r], 0, to + SK_W);
                        }
                        if (last) {
                            SK_GLOBAL const SK_T *row = with + SK_E_AT(m + r, n0);
                            SK_V e0 = SK_VLOAD(0, row), e1 = SK_VLOAD(0, row + SK_W);
                            SK_GLOBAL SK_T *into = made + (m + r) * p.ldc + n0;
                            SK_VSTORE(SK_ENDED(SK_V, left[r], e0), 0, into);
                            SK_VSTORE(SK_ENDED(SK_V, right[r], e1), 0, into + SK_W);
                        }
#else
                        SK_VSTORE(left[r], 0, to);
                        SK_VSTORE(right[r], 0, to + SK_W);
#endif
                        continue;
                    }
#endif
                    {
                        SK_R line[SK_NR];
                        SK_VSTORE(left[r], 0, line);
                        SK_VSTORE(right[r], 0, line + SK_W);
                        for (j = 0; j < width; j++) {
                            SK_R v = adds ? SK_LOAD(to, j) + line[j] : line[j];
#if SK_END
                            if (keeps) SK_STORE(to, j, v);
                            if (last)
                                made[(m + r) * p.ldc + n0 + j] =
                                    SK_ENDED(SK_R, v, with[SK_E_AT(m + r, n0 + j)]);
#else
                            SK_STORE(to, j, v);
#endif
                        }
                    }
                }
            }
        }
    }
}
#else
/* For processors with many small threads: a group of 256 makes a tile of SK_BM x SK_BN, each item SK_TM x SK_TN of it; tiles of a and b go through
 * local memory. The third axis of the grid is batch and part of k. */
#define SK_BK 16
#define SK_XS (SK_BN / SK_TN)
#ifdef SK_GX /* a grid that the device does not take: all of it on the first axis */
#define SK_AXIS_N (SK_GROUP % SK_GX)
#define SK_AXIS_M (SK_GROUP / SK_GX % SK_GY)
#define SK_AXIS_B (SK_GROUP / SK_GX / SK_GY)
#else
#define SK_AXIS_N SK_GROUP
#define SK_AXIS_M SK_GROUP_Y
#define SK_AXIS_B SK_GROUP_Z
#endif
SK_KERNEL void gemm(SK_IN(SK_T, a), SK_IN(SK_T, b), SK_OUT(SK_T, c), SK_END_ARGS const sk_gemm p)
{
    SK_LOCAL SK_R as[SK_BK * (SK_BM + 1)], bs[SK_BK * (SK_BN + 1)];
    int t = SK_LANE, tx = t % SK_XS, ty = t / SK_XS, n0 = SK_AXIS_N * SK_BN, m0 = SK_AXIS_M * SK_BM;
    int batch = SK_AXIS_B / p.splits, part = SK_AXIS_B % p.splits, k0, e, i, j, k;
    int begin = part * p.part, end = begin + p.part < p.k ? begin + p.part : p.k;
    SK_GLOBAL const SK_T *a = a_block + a_at + batch * p.batch_a;
    SK_GLOBAL const SK_T *b = b_block + b_at + batch * p.batch_b;
    SK_GLOBAL SK_T *c = c_block + c_at + SK_AXIS_B * p.batch_c;
    SK_R sum[SK_TM][SK_TN];
    SK_END_USE;
    for (i = 0; i < SK_TM; i++)
        for (j = 0; j < SK_TN; j++) sum[i][j] = 0;
    for (k0 = begin; k0 < end; k0 += SK_BK) {
        for (e = t; e < SK_BM * SK_BK; e += 256) {
            int along = p.a_column == 1; /* neighbours in memory for neighbours in the group */
            int kk = along ? e % SK_BK : e / SK_BM, mm = along ? e / SK_BK : e % SK_BM;
            as[kk * (SK_BM + 1) + mm] = m0 + mm < p.m && k0 + kk < end
                                            ? SK_LOAD(a, SK_A_AT(m0 + mm, k0 + kk))
                                            : (SK_R)0;
        }
        for (e = t; e < SK_BN * SK_BK; e += 256) {
            int along = p.b_column == 1;
            int kk = along ? e / SK_BN : e % SK_BK, nn = along ? e % SK_BN : e / SK_BK;
            bs[kk * (SK_BN + 1) + nn] = n0 + nn < p.n && k0 + kk < end
                                            ? SK_LOAD(b, SK_B_AT(k0 + kk, n0 + nn))
                                            : (SK_R)0;
        }
        SK_BARRIER;
        for (k = 0; k < SK_BK; k++)
            for (i = 0; i < SK_TM; i++)
                for (j = 0; j < SK_TN; j++)
                    sum[i][j] = SK_FMA(as[k * (SK_BM + 1) + ty + i * (SK_BM / SK_TM)],
                                       bs[k * (SK_BN + 1) + tx + j * SK_XS], sum[i][j]);
        SK_BARRIER;
    }
    for (i = 0; i < SK_TM; i++)
        for (j = 0; j < SK_TN; j++) {
            int row = m0 + ty + i * (SK_BM / SK_TM), column = n0 + tx + j * SK_XS;
            if (row < p.m && column < p.n) {
                SK_GLOBAL SK_T *to = c + row * p.ldc + column;
                SK_R v = p.accumulate ? SK_LOAD(to, 0) + sum[i][j] : sum[i][j];
#if SK_END
                if (p.keep) SK_STORE(to, 0, v);
                made[row * p.ldc + column] = SK_ENDED(SK_R, v, with[SK_E_AT(row, column)]);
#else
                SK_STORE(to, 0, v);
#endif
            }
        }
}
#endif
