/* Kernels that follow indices: each against its reference, whole and cut into parts, whose bits must agree. */
#include "device/problem.h"

enum { MOST = 1 << 18 };

static uint64_t seed = 5;

/* Memory with watched ends; filled with what the kernel must overwrite. */
typedef struct block {
    uint8_t *data;
    size_t size;
} block;

static block block_new(int64_t bytes)
{
    block b = {stk_malloc((size_t)bytes + 128), (size_t)bytes};
    memset(b.data, 0x5a, b.size + 128);
    return b;
}

static void *inside(block b) { return b.data + 64; }

static void block_free(block b)
{
    for (int i = 0; i < 64; i++)
        CHECK(b.data[i] == 0x5a && b.data[64 + b.size + (size_t)i] == 0x5a);
    stk_free(b.data);
}

static void fill_random(void *to, stk_dtype dtype, int64_t n, double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        stk_store_f64(dtype, (uint8_t *)to + i * stk_dtype_size(dtype),
                      floor(launch_uniform(&seed, low, high)));
}

/* Runs "own" in 1, 2, 3 and 7 parts and "ref"; the last arg is the output of `bytes`. */
static void check_against_ref(stk_kernel kernel, const void *params, void **arg, int32_t args,
                              int64_t bytes)
{
    static const int32_t cuts[] = {1, 2, 3, 7, 0};
    block want = block_new(bytes);
    arg[args - 1] = inside(want);
    if (LAUNCH(launch_device(1), kernel, "ref", params, arg, args, 1))
        for (int i = 0; i < 5; i++) {
            block got = block_new(bytes);
            arg[args - 1] = inside(got);
            bool ran = LAUNCH(launch_device(i % 2 + 1), kernel, "own", params, arg, args, cuts[i]);
            CHECK_MSG(ran && !memcmp(inside(got), inside(want), (size_t)bytes),
                      "%s in %d parts differs from ref", stk_kernel_name(kernel), (int)cuts[i]);
            block_free(got);
        }
    block_free(want);
}

static const stk_dtype index_types[] = {STK_I32, STK_I64};

TEST(gather_and_scatter_of_all_row_sizes)
{
    static const stk_dtype types[] = {STK_U8, STK_I16, STK_F32, STK_F64, STK_I64};
    static const int64_t inners[] = {1, 2, 3, 4, 5, 33};
    for (int t = 0; t < 5; t++)
        for (int w = 0; w < 6; w++)
            for (int b = 0; b < 4; b++) {
                stk_gather_params p = {.batch = b % 2 ? 3 : 1,
                                       .outer = b / 2 ? 2 : 1,
                                       .n = 11,
                                       .count = 29,
                                       .inner = inners[w],
                                       .dtype = types[t],
                                       .index = index_types[w % 2]};
                int64_t size = stk_dtype_size(types[t]), blocks = p.batch * p.outer;
                block x = block_new(blocks * p.n * p.inner * size),
                      y = block_new(blocks * p.count * p.inner * size);
                block at = block_new(p.batch * p.count * 8), base = block_new((int64_t)x.size);
                fill_random(inside(x), types[t], blocks * p.n * p.inner, 0, 100);
                fill_random(inside(base), types[t], blocks * p.n * p.inner, 0, 100);
                fill_random(inside(y), types[t], blocks * p.count * p.inner, 0, 100);
                fill_random(inside(at), index_types[w % 2], p.batch * p.count, -2, 13);
                void *arg[4] = {inside(x), inside(at)};
                check_against_ref(STK_K_GATHER, &p, arg, 3, (int64_t)y.size);
                for (int mode = 0; mode < 4; mode++) {
                    stk_scatter_params s = {.at = p, .mode = mode % 2, .base = mode / 2};
                    void *into[4] = {inside(at), inside(y), inside(base)};
                    check_against_ref(STK_K_SCATTER, &s, into, mode / 2 ? 4 : 3, (int64_t)x.size);
                }
                block_free(x);
                block_free(y);
                block_free(at);
                block_free(base);
            }
}

/* More indices than are looked at together, on every instruction set; some of 64 bits whose low half would be a row. */
TEST(scatter_of_many_indices)
{
    EACH_ISA
    for (int t = 0; t < 2; t++) {
        stk_gather_params p = {.batch = 2,
                               .outer = 1,
                               .n = 300,
                               .count = 2503,
                               .inner = 19,
                               .dtype = STK_F32,
                               .index = index_types[t]};
        block y = block_new(p.batch * p.count * p.inner * 4);
        block at = block_new(p.batch * p.count * 8);
        fill_random(inside(y), STK_F32, p.batch * p.count * p.inner, -50, 50);
        fill_random(inside(at), p.index, p.batch * p.count, -5, 305);
        int64_t *wide = inside(at);
        for (int64_t i = 0; t == 1 && i < p.batch * p.count; i += 7)
            wide[i] += (i % 3 - 1) * ((int64_t)1 << 32);
        for (int mode = 0; mode < 2; mode++) {
            stk_scatter_params s = {.at = p, .mode = mode};
            check_against_ref(STK_K_SCATTER, &s, (void *[]){inside(at), inside(y), NULL}, 3,
                              p.batch * p.n * p.inner * 4);
        }
        block_free(y);
        block_free(at);
    }
}

TEST(take_and_put_along)
{
    static const stk_dtype types[] = {STK_U8, STK_U16, STK_F32, STK_F64, STK_I32};
    for (int t = 0; t < 5; t++)
        for (int w = 0; w < 4; w++) {
            stk_along_params p = {.outer = w % 2 ? 5 : 1,
                                  .n = 6,
                                  .count = 13,
                                  .inner = w / 2 ? 3 : 1,
                                  .dtype = types[t],
                                  .index = index_types[t % 2]};
            int64_t size = stk_dtype_size(types[t]), large = p.outer * p.n * p.inner,
                    small = p.outer * p.count * p.inner;
            block x = block_new(large * size), y = block_new(small * size),
                  at = block_new(small * 8);
            fill_random(inside(x), types[t], large, 0, 100);
            fill_random(inside(y), types[t], small, 0, 100);
            fill_random(inside(at), index_types[t % 2], small, -1, 8);
            void *arg[] = {inside(x), inside(at), NULL}, *into[] = {inside(at), inside(y), NULL};
            check_against_ref(STK_K_TAKE_ALONG, &p, arg, 3, (int64_t)y.size);
            check_against_ref(STK_K_PUT_ALONG, &p, into, 3, (int64_t)x.size);
            block_free(x);
            block_free(y);
            block_free(at);
        }
}

TEST(coordinates_and_marks)
{
    for (int w = 0; w < 8; w++) {
        stk_ravel_params p = {.batch = w % 2 ? 3 : 1,
                              .count = 17,
                              .depth = w / 2,
                              .index = index_types[w % 2],
                              .dim = {4, 3, 5}};
        block at = block_new(p.batch * p.count * 3 * 8);
        fill_random(inside(at), index_types[w % 2], p.batch * p.count * p.depth, -1, 5);
        void *arg[] = {inside(at), NULL};
        check_against_ref(STK_K_RAVEL_INDEX, &p, arg, 2, p.batch * p.count * 8);
        stk_one_hot_params h = {.outer = 5,
                                .depth = 4,
                                .inner = w % 2 ? 3 : 1,
                                .item = 1 << w / 2,
                                .index = index_types[w % 2],
                                .on = {1, 2, 3, 4, 5, 6, 7, 8},
                                .off = {(uint8_t)(w == 3)}};
        check_against_ref(STK_K_ONE_HOT, &h, arg, 2, h.outer * h.depth * h.inner * h.item);
        block_free(at);
    }
}

/* A sort has two outputs, so it is compared here. */
static void check_sort(stk_sort_params p, const void *x)
{
    static const int32_t cuts[] = {1, 2, 5, 0};
    int64_t size = stk_dtype_size((stk_dtype)p.dtype), n = p.outer * p.k * p.inner;
    block want = block_new(n * size), places = block_new(n * 8);
    void *arg[] = {(void *)(uintptr_t)x, inside(want), inside(places)};
    LAUNCH(launch_device(1), STK_K_SORT, "ref", &p, arg, 3, 1);
    for (int i = 0; i < 4; i++) {
        block got = block_new(n * size), at = block_new(n * 8);
        void *own[] = {arg[0], inside(got), inside(at)};
        LAUNCH(launch_device(2), STK_K_SORT, "own", &p, own, 3, cuts[i]);
        bool same = !memcmp(inside(at), inside(places), (size_t)n * 8) &&
                    !memcmp(inside(got), inside(want), (size_t)(n * size));
        CHECK_MSG(same, "%s n %d k %d inner %d %s in %d parts differs from ref",
                  stk_dtype_name((stk_dtype)p.dtype), (int)p.n, (int)p.k, (int)p.inner,
                  p.descending ? "down" : "up", (int)cuts[i]);
        block_free(got);
        block_free(at);
    }
    block_free(want);
    block_free(places);
}

TEST(sorts_of_all_types_with_ties_and_nan)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 48, 49, 130, 300}, ks[] = {1, 2, 5, 1000};
    block x = block_new(MOST);
    for (int t = 0; t < STK_STRING; t++)
        for (int s = 0; s < 8; s++)
            for (int k = 0; k < 4; k++) {
                stk_sort_params p = {.outer = 3,
                                     .n = sizes[s],
                                     .inner = k % 2 ? 2 : 1,
                                     .dtype = t,
                                     .descending = s % 2};
                p.k = stk_min_i64(ks[k], p.n);
                int64_t n = p.outer * p.n * p.inner;
                fill_random(inside(x), (stk_dtype)t, n, -20, 20);
                for (int64_t i = 0; stk_dtype_is_float((stk_dtype)t) && i < n; i += 5)
                    stk_store_f64((stk_dtype)t,
                                  (uint8_t *)inside(x) + i * stk_dtype_size((stk_dtype)t),
                                  i % 15  ? NAN
                                  : i % 2 ? -0.0
                                          : INFINITY);
                check_sort(p, inside(x));
            }
    block_free(x);
}

TEST(sorts_of_wide_keys)
{
    block x = block_new(500 * 8);
    static const int types[] = {STK_F32, STK_F64, STK_I32, STK_I64, STK_U64, STK_U32};
    for (int t = 0; t < 6; t++) {
        stk_sort_params p = {.outer = 1, .n = 500, .inner = 1, .k = 500, .dtype = types[t]};
        for (size_t i = 0; i < 500; i++) {
            /* No denormals: kernels run with them off, so they are zeros to the reference. */
            uint64_t bits = launch_random(&seed) | UINT64_C(0x0090000000800000);
            memcpy((uint8_t *)inside(x) + 8 * i, &bits, 8);
        }
        check_sort(p, inside(x));
        p.descending = 1;
        p.k = 20;
        check_sort(p, inside(x));
    }
    block_free(x);
}

TEST_MAIN()
