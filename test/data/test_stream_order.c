/* Computed orders: permutations of every size, alike one by one and many at a time, and as mixed as they should be. */
#include "check.h"

#include "data/nodes/order.h"

static void check_size(int64_t n, uint64_t seed)
{
    stk_order o = stk_order_init(seed, n);
    int64_t *all = malloc((size_t)n * sizeof *all), one;
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) all[i] = i;
    stk_order_map(&o, n, all, all);
    bool good = true;
    for (int64_t i = 0; i < n && good; i++) {
        good = all[i] >= 0 && all[i] < n && !seen[all[i]];
        if (good) seen[all[i]] = 1;
    }
    CHECK_MSG(good, "%d places, seed %d: no permutation", (int)n, (int)seed);
    for (int64_t i = 0; i < n; i += n / 7 + 1) {
        stk_order_map(&o, 1, &i, &one);
        CHECK_EQ_I64(one, all[i]);
    }
    free(all);
    free(seen);
}

TEST(orders_are_permutations)
{
    for (int64_t n = 1; n < 300; n++) check_size(n, (uint64_t)n);
    check_size(65536, 1);
    check_size(65537, 2);
    check_size(1000003, 3);
}

/* Every element is as often in every place: chi square over seeds. */
TEST(places_are_even)
{
    enum { N = 12, SEEDS = 12000 };
    int counts[N][N] = {{0}};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        stk_order o = stk_order_init(seed * 977, N);
        int64_t places[N];
        for (int i = 0; i < N; i++) places[i] = i;
        stk_order_map(&o, N, places, places);
        for (int i = 0; i < N; i++) counts[i][places[i]]++;
    }
    double chi = 0, expected = (double)SEEDS / N;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            chi += (counts[i][k] - expected) * (counts[i][k] - expected) / expected;
    CHECK_MSG(chi < 185, "chi square %g for 121 degrees of freedom", chi); /* p = 0.0002 */
}

/* Neighbours do not stay neighbours, and early places do not stay early. */
TEST(far_from_sorted)
{
    enum { N = 100000 };
    static int64_t p[N];
    stk_order o = stk_order_init(5, N);
    for (int64_t i = 0; i < N; i++) p[i] = i;
    stk_order_map(&o, N, p, p);
    double mean = 0, product = 0;
    int64_t near = 0;
    for (int64_t i = 0; i < N; i++) {
        mean += (double)llabs(p[i] - i) / N;
        product += ((double)p[i] / N - 0.5) * ((double)i / N - 0.5) * 12 / N;
        near += i && llabs(p[i] - p[i - 1]) < 10;
    }
    CHECK_NEAR(mean / N, 1 / 3.0, 0.01);
    CHECK_NEAR(product, 0, 0.015);
    CHECK_MSG(near < 60, "%d neighbours stayed near", (int)near); /* 18 expected */
}

TEST_MAIN()
