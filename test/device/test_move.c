/* Copies, fills, pads, concatenations and index ranges against element-by-element definitions; same results for any
 * number of threads and parts. */
#include "device/launch.h"

enum { MOST = 30000 };

static void number(int64_t item, void *data, int64_t n)
{
    for (int64_t i = 0; i < n * item; i++) ((uint8_t *)data)[i] = (uint8_t)(i * 7 + i / 251);
}

/* "own" with several threads and cuts against "ref", over the whole output array. */
static void check_copy(const char *what, const stk_copy_params *p)
{
    static uint8_t in[MOST * 16], want[MOST * 16], got[MOST * 16];
    number(p->item, in, MOST);
    memset(want, 0xee, sizeof want);
    void *arg[] = {in, want};
    CHECK(LAUNCH(launch_device(1), STK_K_COPY, "ref", p, arg, 2, 1));
    arg[1] = got;
    for (int32_t threads = 1; threads <= 4; threads *= 2)
        for (int32_t parts = 0; parts <= 7; parts += 7) {
            memset(got, 0xee, sizeof got);
            CHECK(LAUNCH(launch_device(threads), STK_K_COPY, "own", p, arg, 2, parts));
            CHECK_MSG(!memcmp(got, want, sizeof got),
                      "%s of %d bytes per item, %d threads, %d parts", what, (int)p->item, threads,
                      parts);
        }
}

typedef struct copy_case {
    const char *what;
    int64_t rank, dim[5], in[5], out[5], in_offset, out_offset;
} copy_case;

static const copy_case copies[] = {
    {"one element", 0, {0}, {0}, {0}, 3, 5},
    {"nothing", 2, {0, 5}, {5, 1}, {5, 1}, 0, 0},
    {"nothing inside", 2, {5, 0}, {0, 1}, {0, 1}, 0, 0},
    {"flat", 3, {10, 20, 30}, {600, 30, 1}, {600, 30, 1}, 0, 0},
    {"slice", 2, {17, 23}, {60, 1}, {23, 1}, 61, 0},
    {"into a slice", 2, {17, 23}, {23, 1}, {60, 1}, 0, 61},
    {"every third", 1, {999}, {3}, {1}, 1, 0},
    {"scatter by threes", 1, {999}, {1}, {3}, 0, 2},
    {"reversed", 1, {1000}, {-1}, {1}, 999, 0},
    {"transpose", 2, {37, 53}, {1, 37}, {53, 1}, 0, 0},
    {"tall transpose", 2, {3, 5000}, {1, 3}, {5000, 1}, 0, 0},
    {"wide transpose", 2, {5000, 3}, {1, 5000}, {3, 1}, 0, 0},
    {"swap outer", 3, {7, 11, 13}, {13, 91, 1}, {143, 13, 1}, 0, 0},
    {"last to first", 3, {13, 7, 11}, {1, 143, 13}, {77, 11, 1}, 0, 0},
    {"first to last", 3, {7, 11, 13}, {11, 1, 77}, {143, 13, 1}, 0, 0},
    {"nhwc to nchw", 4, {2, 5, 6, 7}, {210, 1, 35, 5}, {210, 42, 7, 1}, 0, 0},
    {"reversed axes", 4, {3, 4, 5, 6}, {1, 3, 12, 60}, {120, 30, 6, 1}, 0, 0},
    {"broadcast rows", 2, {40, 50}, {0, 1}, {50, 1}, 0, 0},
    {"broadcast columns", 2, {40, 50}, {1, 0}, {50, 1}, 0, 0},
    {"broadcast all", 2, {40, 50}, {0, 0}, {50, 1}, 9, 0},
    {"sizes of one", 5, {1, 30, 1, 20, 1}, {9, 20, 7, 1, 5}, {1, 20, 3, 1, 2}, 0, 0},
    {"transposed into every second", 2, {30, 20}, {1, 30}, {40, 2}, 0, 0},
};

TEST(copies_of_every_form_and_size)
{
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (int64_t item = 1; item <= 16; item *= 2) {
            const copy_case *c = &copies[i];
            stk_copy_params p = {.rank = c->rank,
                                 .in_offset = c->in_offset,
                                 .out_offset = c->out_offset,
                                 .item = item};
            memcpy(p.dim, c->dim, sizeof c->dim);
            memcpy(p.in_stride, c->in, sizeof c->in);
            memcpy(p.out_stride, c->out, sizeof c->out);
            check_copy(c->what, &p);
        }
}

TEST(random_permutations)
{
    uint64_t seed = 12;
    for (int trial = 0; trial < 200; trial++) {
        int64_t rank = 1 + (int64_t)(launch_random(&seed) % 5), dense[5], stride = 1;
        stk_copy_params p = {.rank = rank, .item = 4};
        for (int64_t d = 0; d < rank; d++) p.dim[d] = 1 + (int64_t)(launch_random(&seed) % 7);
        int order[5] = {0, 1, 2, 3, 4};
        for (int64_t d = rank - 1; d > 0; d--) {
            int64_t k = (int64_t)(launch_random(&seed) % (uint64_t)(d + 1));
            int swap = order[d];
            order[d] = order[k], order[k] = swap;
        }
        for (int64_t d = rank - 1; d >= 0; d--) dense[order[d]] = stride, stride *= p.dim[order[d]];
        stride = 1;
        for (int64_t d = rank - 1; d >= 0; d--)
            p.in_stride[d] = dense[d], p.out_stride[d] = stride, stride *= p.dim[d];
        check_copy("permutation", &p);
    }
}

TEST(fills)
{
    static uint8_t got[MOST * 16];
    static const int64_t counts[] = {0, 1, 7, 64, 10001};
    for (int64_t item = 1; item <= 16; item *= 2)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int zero = 0; zero < 2; zero++) {
                stk_fill_params p = {.count = counts[c], .item = item};
                for (int i = 0; i < 16; i++) p.value[i] = zero ? 0 : (uint8_t)(i + 1);
                void *arg[] = {got};
                memset(got, 0xee, sizeof got);
                CHECK(LAUNCH(launch_device(2), STK_K_FILL, "own", &p, arg, 1, 5));
                int wrong = 0;
                for (int64_t i = 0; i < MOST * 16; i++)
                    wrong += got[i] != (i < counts[c] * item ? p.value[i % item] : 0xee);
                CHECK_EQ_I64(wrong, 0);
            }
}

/* out[i] = in[(i - before) / step] where it falls on one, else the value, along each of 3 axes. */
static void check_pad(const int64_t in[3], const int64_t before[3], const int64_t after[3],
                      const int64_t step[3])
{
    static int32_t x[MOST], got[MOST], want[MOST];
    int64_t out[3], total = 1, stride[3];
    for (int d = 0; d < 3; d++) {
        out[d] = before[d] + after[d] + (in[d] ? (in[d] - 1) * step[d] + 1 : 0);
        total *= out[d];
    }
    stride[2] = 1, stride[1] = out[2], stride[0] = out[2] * out[1];
    REQUIRE(CHECK(total <= MOST));
    stk_pad_params p = {.fill = {.count = total, .item = 4, .value = {9, 8, 7, 6}},
                        .copy = {.rank = 3, .item = 4, .in_stride = {in[1] * in[2], in[2], 1}}};
    int32_t value;
    memcpy(&value, p.fill.value, 4);
    for (int d = 0; d < 3; d++) {
        p.copy.dim[d] = in[d];
        p.copy.out_stride[d] = stride[d] * step[d];
        p.copy.out_offset += before[d] * stride[d];
    }
    for (int64_t i = 0; i < in[0] * in[1] * in[2]; i++) x[i] = (int32_t)i + 1;
    for (int64_t i = 0; i < total; i++) {
        int64_t at[3] = {i / stride[0], i / stride[1] % out[1], i % out[2]}, from = 0;
        bool inside = true;
        for (int d = 0; d < 3; d++) {
            int64_t k = at[d] - before[d];
            inside &= k >= 0 && k % step[d] == 0 && k / step[d] < in[d];
            from = from * in[d] + (inside ? k / step[d] : 0);
        }
        want[i] = inside ? x[from] : value;
    }
    void *arg[] = {x, got};
    for (int32_t parts = 0; parts <= 5; parts += 5) {
        memset(got, 0xee, sizeof got);
        CHECK(LAUNCH(launch_device(2), STK_K_PAD, "own", &p, arg, 2, parts));
        CHECK(!memcmp(got, want, (size_t)total * 4));
        CHECK_EQ_I64((uint32_t)got[total], 0xeeeeeeee);
    }
}

TEST(pads_around_and_between)
{
#define I3(a, b, c) (const int64_t[]){a, b, c}
    check_pad(I3(4, 5, 6), I3(1, 2, 3), I3(3, 2, 1), I3(1, 1, 1));
    check_pad(I3(4, 5, 6), I3(0, 2, 0), I3(0, 2, 0), I3(1, 1, 1));
    check_pad(I3(4, 5, 6), I3(0, 0, 0), I3(0, 0, 0), I3(1, 1, 1));
    check_pad(I3(4, 5, 6), I3(1, 0, 2), I3(2, 0, 0), I3(2, 3, 1));
    check_pad(I3(4, 5, 6), I3(3, 1, 1), I3(0, 0, 5), I3(1, 2, 4));
    check_pad(I3(1, 5, 6), I3(2, 1, 1), I3(2, 1, 1), I3(1, 1, 1));
    check_pad(I3(1, 1, 6), I3(2, 1, 1), I3(2, 1, 1), I3(3, 3, 2));
    check_pad(I3(1, 1, 1), I3(2, 1, 1), I3(2, 1, 1), I3(1, 1, 1));
    check_pad(I3(0, 5, 6), I3(2, 1, 1), I3(2, 1, 1), I3(1, 1, 1));
    check_pad(I3(4, 0, 6), I3(1, 1, 0), I3(2, 1, 1), I3(1, 1, 1));
}

TEST(concatenations)
{
    enum { INPUTS = 4, OUTER = 9 };
    static const int64_t widths[INPUTS] = {12, 0, 1, 300};
    static uint8_t in[INPUTS][OUTER * 300], out[OUTER * 313 + 1];
    void *arg[INPUTS + 1];
    stk_concat_params *p = stk_calloc(1, sizeof *p + sizeof widths);
    p->inputs = INPUTS;
    memcpy(p->width, widths, sizeof widths);
    for (int i = 0; i < INPUTS; i++)
        number(1, in[i], OUTER * 300), arg[i] = in[i], p->total += widths[i];
    arg[INPUTS] = out;
    for (p->outer = 0; p->outer <= OUTER; p->outer++)
        for (int32_t parts = 1; parts <= 8; parts *= 2) {
            memset(out, 0xee, sizeof out);
            CHECK(LAUNCH(launch_device(2), STK_K_CONCAT, "own", p, arg, INPUTS + 1, parts));
            int wrong = 0;
            for (int64_t o = 0, at = 0; o < p->outer; o++)
                for (int i = 0; i < INPUTS; i++)
                    for (int64_t k = 0; k < widths[i]; k++)
                        wrong += out[at++] != in[i][o * widths[i] + k];
            CHECK_EQ_I64(wrong, 0);
            CHECK_EQ_I64(out[p->outer * p->total], 0xee);
        }
    stk_free(p);
}

TEST(index_ranges_of_every_type)
{
    static uint8_t out[5 * 50 * 7 * 8 + 8];
    static const int64_t shapes[][3] = {{1, 50, 1}, {5, 10, 1}, {5, 50, 7}, {0, 5, 5}, {3, 1, 4}};
    for (int dtype = 0; dtype < STK_STRING; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            stk_iota_params p = {shapes[s][0], shapes[s][1], shapes[s][2], dtype};
            int64_t count = p.outer * p.n * p.inner, size = stk_dtype_size((stk_dtype)dtype),
                    wrong = 0;
            void *arg[] = {out};
            memset(out, 0xee, sizeof out);
            CHECK(LAUNCH(launch_device(2), STK_K_IOTA, "own", &p, arg, 1, 3));
            for (int64_t i = 0; i < count; i++) {
                int64_t k = i / p.inner % p.n;
                wrong += stk_load_i64((stk_dtype)dtype, out + i * size) !=
                         (dtype == STK_BOOL ? k != 0 : k);
            }
            CHECK_EQ_I64(wrong, 0);
            CHECK_EQ_I64(out[count * size], 0xee);
        }
}

static stk_status prepare_and_discard(stk_kernel kernel, const void *params)
{
    stk_error err;
    const stk_impl *impl = launch_impl(launch_device(1), kernel, "own");
    stk_launch l = {.params = params, .impl = impl};
    stk_status status = impl->prepare(&l, &err);
    if (status == STK_OK) impl->discard(&l);
    return status;
}

TEST(preparing_survives_without_memory)
{
    stk_pad_params pad = {.fill = {.count = 1, .item = 4}, .copy = {.item = 4}};
    OOM_LOOP(prepare_and_discard(STK_K_COPY, &pad.copy));
    OOM_LOOP(prepare_and_discard(STK_K_PAD, &pad));
}

TEST_MAIN()
