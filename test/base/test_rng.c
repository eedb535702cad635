/* Random numbers: known answers, the same bits for any split and instruction set, and statistics
 * with fixed seeds (so they cannot fail by chance). */
#include "check.h"

#include "base/rng.h"
#include "base/rng_math.h"

static void check_philox(const uint32_t key[2], const uint32_t counter[4], const uint32_t want[4])
{
    uint32_t out[4];
    stk_philox(key, counter, out);
    for (int i = 0; i < 4; i++) CHECK_EQ_I64(out[i], want[i]);
}

TEST(philox_known_answers)
{
    check_philox((uint32_t[]){0, 0}, (uint32_t[]){0, 0, 0, 0},
                 (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_philox((uint32_t[]){0xffffffff, 0xffffffff},
                 (uint32_t[]){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                 (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_philox((uint32_t[]){0xa4093822, 0x299f31d0},
                 (uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(words_are_the_words_of_the_blocks)
{
    stk_rng rng = {42, 0x123456789abcdefu};
    const int64_t starts[] = {0, 5,
                              ((int64_t)1 << 34) - 6}; /* the last crosses 32 bits of blocks */
    for (int s = 0; s < 3; s++) {
        uint32_t words[100], block[4];
        stk_rng_words(rng, starts[s], 100, words);
        for (int64_t i = 0; i < 100; i++) {
            stk_rng_block(rng, (uint64_t)(starts[s] + i) / 4, block);
            CHECK_EQ_I64(words[i], block[(starts[s] + i) % 4]);
        }
    }
}

/* All kinds through one shape of call, so that they can be looped over. */
enum { KINDS = 11 };
static const int item_size[KINDS] = {4, 4, 8, 4, 4, 8, 8, 4, 8, 4, 1};
static void fill(int kind, stk_rng r, int64_t first, int64_t n, void *out)
{
    switch (kind) {
    case 0: stk_rng_words(r, first, n, out); break;
    case 1: stk_rng_uniform(r, first, n, -1, 3, out); break;
    case 2: stk_rng_uniform_f64(r, first, n, -1, 3, out); break;
    case 3: stk_rng_int32(r, first, n, -5, 6, out); break;
    case 4: stk_rng_int32(r, first, n, -2000000000, 1000000000, out); break;
    case 5: stk_rng_int64(r, first, n, -5, 6, out); break;
    case 6: stk_rng_int64(r, first, n, INT64_MIN, INT64_MAX / 3, out); break;
    case 7: stk_rng_normal(r, first, n, 1, 2, out); break;
    case 8: stk_rng_normal_f64(r, first, n, 1, 2, out); break;
    case 9: stk_rng_truncated(r, first, n, 1, 2, out); break;
    default: stk_rng_bernoulli(r, first, n, 0.3, out); break;
    }
}

enum { MANY = 3001 };

TEST(any_split_gives_the_same_bits)
{
    static char whole[MANY * 8], parts[MANY * 8];
    stk_rng rng = {7, 3};
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t size = item_size[kind], at = 0;
        fill(kind, rng, 10, MANY, whole);
        memset(parts, 0xee, sizeof parts);
        for (int64_t step = 1; at < MANY; at += step, step = (step * 7 + 3) % 311 + 1) {
            if (step > MANY - at) step = MANY - at;
            fill(kind, rng, 10 + at, step, parts + at * size);
        }
        CHECK_MSG(memcmp(whole, parts, (size_t)(MANY * size)) == 0, "kind %d", kind);
        fill(kind, rng, 0, 0, parts);
        fill(kind, rng, 0, -5, parts);
    }
}

TEST(same_bits_without_wide_registers)
{
    static char wide[MANY * 8], narrow[MANY * 8];
    for (int kind = 0; kind < KINDS; kind++) {
        fill(kind, (stk_rng){1, 2}, 3, MANY, wide);
        stk_rng_force_narrow(true);
        fill(kind, (stk_rng){1, 2}, 3, MANY, narrow);
        stk_rng_force_narrow(false);
        CHECK_MSG(memcmp(wide, narrow, (size_t)(MANY * item_size[kind])) == 0, "kind %d", kind);
    }
}

static uint64_t hash_of(const void *data, size_t size)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

/* Models are saved with seeds: these bits may never change, on any compiler or machine. */
TEST(the_bits_are_for_ever)
{
    static const uint64_t want[KINDS] = {0x1fe828932e6ad675, 0x5df68fd221bbd363, 0xe38dfbc93ef72945,
                                         0x2e161ce3b3f42574, 0x3008660a7b4e8d36, 0x31ddc20ceaf6bcb4,
                                         0x1ffbed874d208b7a, 0x4a2032451e249a98, 0x4e6b32a3ad834d73,
                                         0x12d638b97c27506,  0x3353629db0a7eacc};
    static char data[MANY * 8];
    for (int kind = 0; kind < KINDS; kind++) {
        fill(kind, (stk_rng){2024, 77}, 1, MANY, data);
        uint64_t got = hash_of(data, (size_t)(MANY * item_size[kind]));
        CHECK_MSG(got == want[kind], "kind %d: 0x%llx", kind, (unsigned long long)got);
    }
}

TEST(seeds_and_streams_differ)
{
    uint32_t a[64], b[64], c[64];
    stk_rng_words((stk_rng){1, 0}, 0, 64, a);
    stk_rng_words((stk_rng){2, 0}, 0, 64, b);
    stk_rng_words((stk_rng){1, 1}, 0, 64, c);
    for (int i = 0; i < 64; i++) CHECK(a[i] != b[i] && a[i] != c[i] && b[i] != c[i]);
}

enum { SAMPLE = 200000 };

static void moments(const float *x, double *mean, double *variance, double *skew, double *kurtosis)
{
    double m = 0, v = 0, s = 0, k = 0;
    for (int i = 0; i < SAMPLE; i++) m += (double)x[i];
    m /= SAMPLE;
    for (int i = 0; i < SAMPLE; i++) {
        double d = (double)x[i] - m;
        v += d * d;
        s += d * d * d;
        k += d * d * d * d;
    }
    *mean = m;
    *variance = v / SAMPLE;
    *skew = s / SAMPLE / pow(*variance, 1.5);
    *kurtosis = k / SAMPLE / (*variance * *variance);
}

TEST(moments_are_right)
{
    static float x[SAMPLE];
    double mean, variance, skew, kurtosis;
    stk_rng_uniform((stk_rng){5, 5}, 0, SAMPLE, 0, 1, x);
    moments(x, &mean, &variance, &skew, &kurtosis);
    CHECK_NEAR(mean, 0.5, 0.003);
    CHECK_NEAR(variance, 1.0 / 12, 0.001);
    CHECK_NEAR(kurtosis, 1.8, 0.01);
    stk_rng_normal((stk_rng){5, 6}, 0, SAMPLE, 0, 1, x);
    moments(x, &mean, &variance, &skew, &kurtosis);
    CHECK_NEAR(mean, 0, 0.01);
    CHECK_NEAR(variance, 1, 0.01);
    CHECK_NEAR(skew, 0, 0.02);
    CHECK_NEAR(kurtosis, 3, 0.05);
    double lag = 0; /* neighbours come from one pair: they must not know each other */
    for (int i = 0; i + 1 < SAMPLE; i++) lag += (double)x[i] * (double)x[i + 1];
    CHECK_NEAR(lag / SAMPLE, 0, 0.01);
    stk_rng_truncated((stk_rng){5, 7}, 0, SAMPLE, 0, 1, x);
    moments(x, &mean, &variance, &skew, &kurtosis);
    CHECK_NEAR(mean, 0, 0.01);
    CHECK_NEAR(variance, 0.7737, 0.005); /* of a normal cut at 2 deviations */
    for (int i = 0; i < SAMPLE; i++) CHECK(x[i] >= -2 && x[i] <= 2);
}

/* Largest distance between the sample's and the true distribution function. */
static int compare_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

TEST(normals_follow_the_curve_into_the_tails)
{
    static float x[SAMPLE];
    static double d[SAMPLE];
    int beyond = 0; /* of 20 samples one is expected above the 5 % line */
    for (uint64_t seed = 0; seed < 20; seed++) {
        int n = SAMPLE / 4;
        double worst = 0;
        stk_rng_normal((stk_rng){seed, 0}, 0, n, 0, 1, x);
        qsort(x, (size_t)n, sizeof *x, compare_float);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, fabs(0.5 * erfc(-(double)x[i] / sqrt(2)) - (i + 0.5) / n));
        beyond += worst > 1.36 / sqrt(n);
        CHECK_MSG(worst < 2.0 / sqrt(n), "Kolmogorov distance %g", worst);
        CHECK(x[0] < -3.5f && x[n - 1] > 3.5f && x[0] > -6.8f && x[n - 1] < 6.8f);
    }
    CHECK(beyond <= 4);
    stk_rng_normal_f64((stk_rng){11, 1}, 0, SAMPLE, 0, 1, d);
    double mean = 0, square = 0;
    for (int i = 0; i < SAMPLE; i++) {
        mean += d[i] / SAMPLE;
        square += d[i] * d[i] / SAMPLE;
    }
    CHECK_NEAR(mean, 0, 0.01);
    CHECK_NEAR(square, 1, 0.015);
}

TEST(own_log_and_turn_agree_with_libm)
{
    double log_error = 0, turn_error = 0, log64 = 0, turn64 = 0;
    for (int64_t i = 0; i < 400000; i++) {
        uint32_t w[4];
        stk_rng_block((stk_rng){9, 9}, (uint64_t)i, w);
        if (i < 64) w[0] = i < 32 ? 1u << i : 0xffffffffu >> (i - 32);
        double u = (double)(float)((double)(float)(int32_t)(w[0] >> 1) * 0x1p-31 + 0x1p-33);
        double exact = log(u > 1 ? 1 : u), got = (double)stk_log_unit((float)(u > 1 ? 1 : u));
        if (exact != 0)
            log_error = fmax(log_error, fabs(got / exact - 1));
        else
            CHECK(got == 0);
        float c, s;
        stk_turn(w[1], &c, &s);
        double angle =
            ((double)(w[1] >> 30) + (double)((int32_t)(w[1] << 2) >> 2) * 0x1p-30) * M_PI / 2;
        turn_error =
            fmax(turn_error, fmax(fabs((double)c - cos(angle)), fabs((double)s - sin(angle))));
        double u64 = ((double)w[0] + 0.5) * 0x1p-32, dc, ds;
        log64 = fmax(log64, fabs(stk_log_unit_f64(u64) / log(u64) - 1));
        stk_turn_f64(w[2], w[3], &dc, &ds);
        int64_t part = (int64_t)(((uint64_t)w[2] << 32 | w[3]) << 2) >> 2;
        angle = ((double)(w[2] >> 30) + (double)part * 0x1p-62) * M_PI / 2;
        turn64 = fmax(turn64, fmax(fabs(dc - cos(angle)), fabs(ds - sin(angle))));
    }
    CHECK_MSG(log_error < 2.5e-7, "log is off by %g", log_error);
    CHECK_MSG(turn_error < 1.2e-7, "turn is off by %g", turn_error);
    CHECK_MSG(log64 < 1e-15, "log in double is off by %g", log64);
    CHECK_MSG(turn64 < 2e-15, "turn in double is off by %g", turn64);
}

TEST(integers_are_even_and_inside)
{
    static int32_t x[SAMPLE];
    int64_t count[7] = {0};
    stk_rng_int32((stk_rng){3, 1}, 0, SAMPLE, -3, 4, x);
    for (int i = 0; i < SAMPLE; i++) {
        REQUIRE(CHECK(x[i] >= -3 && x[i] < 4));
        count[x[i] + 3]++;
    }
    double chi = 0;
    for (int i = 0; i < 7; i++) chi += pow((double)count[i] - SAMPLE / 7.0, 2) / (SAMPLE / 7.0);
    CHECK_MSG(chi < 22.5, "chi square %g with 6 degrees", chi);

    /* 3/4 of 2^32: without drawing again every third value would be twice as likely */
    stk_rng_int32((stk_rng){3, 2}, 0, SAMPLE, INT32_MIN, (int32_t)((int64_t)INT32_MIN + 3221225472),
                  x);
    int64_t thirds[3] = {0};
    for (int i = 0; i < SAMPLE; i++) thirds[((int64_t)x[i] - INT32_MIN) % 3]++;
    for (int i = 0; i < 3; i++) CHECK_NEAR((double)thirds[i] / SAMPLE, 1.0 / 3, 0.004);
    stk_rng_int32((stk_rng){3, 2}, 0, 10, INT32_MIN, INT32_MAX, x);
    stk_rng_int32((stk_rng){3, 2}, 0, 10, 5, 5, x);
    CHECK_EQ_I64(x[9], 5);
    stk_rng_int32((stk_rng){3, 2}, 0, 10, 5, 2, x);
    CHECK_EQ_I64(x[9], 5);
}

TEST(wide_integers)
{
    static int64_t x[SAMPLE];
    int64_t high = INT64_MAX / 2; /* the width does not fit in an int64 */
    stk_rng_int64((stk_rng){3, 3}, 0, SAMPLE, INT64_MIN, high, x);
    double mean = 0;
    for (int i = 0; i < SAMPLE; i++) {
        REQUIRE(CHECK(x[i] < high));
        mean += (double)x[i] / SAMPLE;
    }
    CHECK_NEAR(mean / 0x1p63, -0.25, 0.005);
    stk_rng_int64((stk_rng){3, 4}, 0, SAMPLE, INT64_MIN, INT64_MAX, x);
    int64_t ones[64] = {0};
    for (int i = 0; i < SAMPLE; i++)
        for (int b = 0; b < 64; b++) ones[b] += x[i] >> b & 1;
    for (int b = 0; b < 64; b++) CHECK_NEAR((double)ones[b] / SAMPLE, 0.5, 0.006);
    int32_t narrow[50];
    stk_rng_int32((stk_rng){3, 5}, 7, 50, 10, 1000, narrow);
    stk_rng_int64((stk_rng){3, 5}, 7, 50, 10, 1000, x);
    for (int i = 0; i < 50; i++) CHECK_EQ_I64(x[i], narrow[i]); /* the type changes nothing */
}

TEST(uniform_never_reaches_its_end)
{
    static float x[SAMPLE];
    static double d[1000];
    stk_rng_uniform((stk_rng){4, 0}, 0, SAMPLE, 1, nextafterf(1, 2), x); /* one number fits */
    for (int i = 0; i < SAMPLE; i++) CHECK(x[i] == 1);
    stk_rng_uniform((stk_rng){4, 0}, 0, SAMPLE, 100, 101, x);
    for (int i = 0; i < SAMPLE; i++) CHECK(x[i] >= 100 && x[i] < 101);
    stk_rng_uniform((stk_rng){4, 0}, 0, 100, 3, 3, x);
    CHECK(x[50] == 3);
    stk_rng_uniform_f64((stk_rng){4, 0}, 0, 1000, 1, nextafter(1, 2), d);
    for (int i = 0; i < 1000; i++) CHECK(d[i] == 1);
}

TEST(bernoulli)
{
    static uint8_t x[SAMPLE];
    const double p[] = {0, 1e-12, 0.1, 0.5, 0.9, 1, 2, -1, NAN};
    const double want[] = {0, 0, 0.1, 0.5, 0.9, 1, 1, 0, 0};
    for (int k = 0; k < 9; k++) {
        int64_t ones = 0;
        stk_rng_bernoulli((stk_rng){8, (uint64_t)k}, 0, SAMPLE, p[k], x);
        for (int i = 0; i < SAMPLE; i++) {
            CHECK(x[i] <= 1);
            ones += x[i];
        }
        CHECK_NEAR((double)ones / SAMPLE, want[k], want[k] > 0 && want[k] < 1 ? 0.004 : 0);
    }
}

TEST(permutations_are_permutations)
{
    static int64_t p[5000];
    static bool seen[5000];
    const int64_t sizes[] = {0, 1, 2, 3, 255, 256, 257, 258, 5000};
    for (int k = 0; k < 9; k++) {
        int64_t n = sizes[k], fixed = 0;
        memset(seen, 0, sizeof seen);
        stk_rng_permutation((stk_rng){6, 6}, n, p);
        for (int64_t i = 0; i < n; i++) {
            REQUIRE(CHECK(p[i] >= 0 && p[i] < n && !seen[p[i]]));
            seen[p[i]] = true;
            fixed += p[i] == i;
        }
        CHECK(n < 200 || fixed < 8);
    }
    int64_t orders[6] = {0}; /* all 6 orders of 3 are as likely */
    for (uint64_t seed = 0; seed < 60000; seed++) {
        stk_rng_permutation((stk_rng){seed, 1}, 3, p);
        orders[p[0] * 2 + (p[1] > p[2])]++;
    }
    for (int i = 0; i < 6; i++) CHECK_NEAR((double)orders[i] / 60000, 1.0 / 6, 0.006);
}

TEST(random_access_permutation_is_a_bijection)
{
    static bool seen[70000];
    const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 100, 1023, 1024, 1025, 65536, 65537};
    for (int k = 0; k < 14; k++) {
        for (uint64_t seed = 0; seed < (sizes[k] < 2000 ? 20u : 2u); seed++) {
            int64_t n = sizes[k];
            stk_perm perm = stk_perm_init(seed, n);
            memset(seen, 0, sizeof seen);
            for (int64_t i = 0; i < n; i++) {
                int64_t j = stk_perm_get(&perm, i);
                REQUIRE(CHECK(j >= 0 && j < n && !seen[j]));
                seen[j] = true;
            }
        }
    }
    int64_t huge = INT64_MAX, at = stk_perm_at(1, huge, huge - 1);
    CHECK(at >= 0 && at < huge && at != stk_perm_at(1, huge, 0));
    CHECK_EQ_I64(stk_perm_at(1, 1, 0), 0);
}

/* Each position should see each value alike over the seeds, and neighbours should be torn apart. */
TEST(random_access_permutation_is_random)
{
    const int64_t sizes[] = {3, 5, 10, 50};
    for (int k = 0; k < 4; k++) {
        int64_t n = sizes[k], count[50 * 50] = {0}, rounds = 2000 * n;
        for (int64_t seed = 0; seed < rounds; seed++) {
            stk_perm perm = stk_perm_init((uint64_t)seed, n);
            for (int64_t i = 0; i < n; i++) count[i * n + stk_perm_get(&perm, i)]++;
        }
        double chi = 0, expected = (double)rounds / (double)n, cells = (double)((n - 1) * (n - 1));
        for (int64_t i = 0; i < n * n; i++) chi += pow((double)count[i] - expected, 2) / expected;
        CHECK_MSG(chi < cells + 5 * sqrt(2 * cells) + 5, "n %lld: chi square %g of %g",
                  (long long)n, chi, cells);
    }
    stk_perm perm = stk_perm_init(3, 100000);
    int64_t near = 0;
    for (int64_t i = 0; i + 1 < 100000; i++)
        near += llabs(stk_perm_get(&perm, i) - stk_perm_get(&perm, i + 1)) < 100;
    CHECK(near > 120 && near < 300); /* 200 expected */
}

TEST_MAIN()
