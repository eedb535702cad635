/* The chain interpreter against its plain twin: every operation and lane, every stored type, every access, segments,
 * shared memory, reused registers, sizes around the tile, random programs; on every instruction set and with the
 * same bits for any number of threads. */
#include "device/launch.h"

#include "device/cpu/chain.h"

#include "device/cpu/vec/vec.h"

static const char *const sets[] = {"base", "avx2", "avx512"};
#define FOR_EACH_ISA(vec)                                                                          \
    for (int isa_ = 0; isa_ < 3; isa_++)                                                           \
        for (const stk_vec *vec = stk_vec_find(sets[isa_]); vec && (stk_vec_use(vec), true);       \
             vec = NULL, stk_vec_use(NULL))

static const int64_t one_size[1] = {0};

static stk_chain chain_of(int32_t inputs, int32_t outputs, const int64_t *count)
{
    return (stk_chain){.inputs = inputs,
                       .outputs = outputs,
                       .regs = inputs,
                       .segments = 1,
                       .tile = 1024,
                       .count = count};
}

static int16_t add_reg(stk_chain *c, stk_lane lane)
{
    c->reg_lane[c->regs] = (int8_t)lane;
    return (int16_t)c->regs++;
}

static void set_input(stk_chain *c, int32_t i, stk_dtype dtype, stk_access access)
{
    c->input[i] = (stk_chain_input){.dtype = (int32_t)dtype, .access = (int32_t)access};
    c->reg_lane[i] = (int8_t)stk_lane_of(dtype);
}

static int16_t add_const(stk_chain *c, stk_lane lane, double value)
{
    int16_t reg = add_reg(c, lane);
    c->constant[c->constants++] =
        (stk_chain_const){.reg = reg, .lane = (int32_t)lane, .value = value};
    return reg;
}

static bool gives_bool(stk_ew code)
{
    static const char result[] = {
#define STK_EW(NAME, name, arity, result, doc) result,
#include "stoker/elementwise.def"
    };
    return result[code] == 'B';
}

static int16_t add_op(stk_chain *c, stk_ew code, stk_lane lane, int16_t a, int16_t b, int16_t d)
{
    int16_t dst = add_reg(c, gives_bool(code) ? STK_LANE_BOOL : lane);
    c->op[c->ops++] = (stk_chain_op){.code = (int16_t)code,
                                     .lane = (int8_t)lane,
                                     .from = c->reg_lane[a],
                                     .dst = dst,
                                     .a = a,
                                     .b = b,
                                     .c = d};
    return dst;
}

static void set_output(stk_chain *c, int32_t i, stk_dtype dtype, int16_t reg)
{
    c->output[i] = (stk_chain_output){.dtype = (int32_t)dtype, .reg = reg};
}

/* Values that suit every operation: small, of both signs, some zeros and a few special ones. */
static void fill_values(stk_dtype dtype, void *data, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        double v = launch_uniform(&seed, -4, 4);
        if (i % 7 == 3) v = rint(v);
        if (i % 97 == 50 && stk_dtype_is_float(dtype)) v = i % 2 ? (double)NAN : (double)INFINITY;
        if (stk_dtype_kind(dtype) == 'U') v = fabs(v);
        stk_store_f64(dtype, (char *)data + i * stk_dtype_size(dtype),
                      dtype == STK_BOOL ? v > 0 : v);
    }
}

/* Equal up to a relative tolerance; NaN equals NaN. */
static bool near(stk_dtype dtype, const void *a, const void *b, double tolerance)
{
    if (!stk_dtype_is_float(dtype)) return stk_load_i64(dtype, a) == stk_load_i64(dtype, b);
    double x = stk_load_f64(dtype, a), y = stk_load_f64(dtype, b);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (fabs(y) + 1e-30);
}

static bool compare(const char *what, stk_dtype dtype, const void *got, const void *want, int64_t n,
                    double tolerance)
{
    int64_t size = stk_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        const char *g = (const char *)got + i * size, *w = (const char *)want + i * size;
        if (!CHECK_MSG(near(dtype, g, w, tolerance),
                       "%s: element %" PRId64 " of %" PRId64 " is %.9g, ref says %.9g", what, i, n,
                       stk_load_f64(dtype, g), stk_load_f64(dtype, w)))
            return false;
    }
    return true;
}

/* Runs `c` on inputs made here by both implementations and compares all outputs; the vector one with
 * 1, 2 and 4 threads in `parts` parts must agree with itself to the bit. room: elements of each input. */
static bool check_chain(const char *what, stk_chain *c, int64_t n, int64_t room, double tolerance,
                        int32_t parts)
{
    void *in[STK_CHAIN_IO], *ref[STK_CHAIN_IO], *got[STK_CHAIN_IO], *arg[2 * STK_CHAIN_IO];
    int32_t args = c->inputs + c->outputs;
    bool good = true;
    for (int32_t i = 0; i < c->inputs; i++) {
        in[i] = stk_calloc((size_t)room + 1, 8);
        fill_values((stk_dtype)c->input[i].dtype, in[i], room, (uint64_t)i * 1000 + 5);
    }
    for (int32_t i = 0; i < c->outputs; i++) {
        ref[i] = stk_calloc((size_t)n + 1, 8);
        got[i] = stk_calloc((size_t)n + 1, 8);
    }
    memcpy(arg, in, sizeof in);
    memcpy(arg + c->inputs, ref, sizeof ref);
    good &= LAUNCH(launch_device(1), STK_K_CHAIN, "ref", c, arg, args, 1);
    for (int32_t threads = 1; threads <= 4 && good; threads *= 2) {
        void *now[STK_CHAIN_IO];
        for (int32_t i = 0; i < c->outputs; i++) {
            now[i] = threads == 1 ? got[i] : stk_calloc((size_t)n + 1, 8);
            memset(now[i], 0x5a, (size_t)(n + 1) * 8);
        }
        memcpy(arg + c->inputs, now, sizeof now);
        good &= LAUNCH(launch_device(threads), STK_K_CHAIN, "vec", c, arg, args, parts);
        for (int32_t i = 0; i < c->outputs; i++) {
            stk_dtype dtype = (stk_dtype)c->output[i].dtype;
            size_t bytes = (size_t)(n * stk_dtype_size(dtype));
            if (threads == 1) good &= compare(what, dtype, now[i], ref[i], n, tolerance);
            good &= CHECK_MSG(!memcmp(now[i], got[i], bytes), "%s: %d threads change bits", what,
                              threads);
            good &= CHECK_MSG(((uint8_t *)now[i])[bytes] == 0x5a, "%s: wrote behind its end", what);
            if (threads != 1) stk_free(now[i]);
        }
    }
    for (int32_t i = 0; i < c->inputs; i++) stk_free(in[i]);
    for (int32_t i = 0; i < c->outputs; i++) stk_free(ref[i]), stk_free(got[i]);
    return good;
}

/* ---- operations and types ------------------------------------------------------------------------ */

static stk_dtype storage_of(stk_lane lane)
{
    static const stk_dtype of[] = {STK_F32, STK_F64, STK_I64, STK_BOOL};
    return of[lane];
}

static bool cancels(stk_ew code)
{
    return (code >= STK_EW_FMA && code <= STK_EW_DIV_SQRT) || code == STK_EW_GELU_ERF ||
           code == STK_EW_GELU_TANH || code == STK_EW_GELU_ERF_GRAD ||
           code == STK_EW_GELU_TANH_GRAD;
}

TEST(every_operation_in_every_lane)
{
    FOR_EACH_ISA(vec)
    for (int code = 0; code < STK_EW_COUNT; code++)
        for (int lane = 0; lane < 4; lane++) {
            if (code == STK_EW_CAST) continue;
            int64_t count[] = {777};
            stk_chain c = chain_of(3, 1, count);
            stk_dtype dtype = storage_of((stk_lane)lane);
            for (int32_t i = 0; i < 3; i++)
                set_input(&c, i, code == STK_EW_SELECT && i == 0 ? STK_BOOL : dtype,
                          STK_ACCESS_DENSE);
            int16_t r = add_op(&c, (stk_ew)code, (stk_lane)lane, 0, 1, 2);
            set_output(&c, 0, gives_bool((stk_ew)code) ? STK_BOOL : dtype, r);
            const stk_impl *impl = launch_impl(launch_device(1), STK_K_CHAIN, "vec");
            if (!impl->supports(&c)) continue;
            char what[64];
            snprintf(what, sizeof what, "%s %s lane %d", vec->name, stk_ew_name((stk_ew)code),
                     lane);
            /* Where differences cancel, the rounding of the parts shows. */
            double slack = cancels((stk_ew)code) ? 200 : 1;
            check_chain(what, &c, 777, 777, slack * (lane == STK_LANE_F64 ? 1e-14 : 5e-7), 3);
        }
}

TEST(what_has_no_meaning_is_refused)
{
    int64_t count[] = {5};
    stk_chain c = chain_of(1, 1, count);
    set_input(&c, 0, STK_I64, STK_ACCESS_DENSE);
    set_output(&c, 0, STK_I64, add_op(&c, STK_EW_EXP, STK_LANE_I64, 0, 0, 0));
    const stk_impl *impl = launch_impl(launch_device(1), STK_K_CHAIN, "vec");
    CHECK(!impl->supports(&c));
    c.op[0].code = STK_EW_NEG;
    CHECK(impl->supports(&c));
    c.output[0].dtype = STK_F32; /* an integer register cannot be stored as float */
    CHECK(!impl->supports(&c));
    c.output[0].dtype = STK_I64;
    c.op[0].a = 9;
    CHECK(!impl->supports(&c));
    c.op[0].a = 0;
    c.input[0].dtype = STK_STRING;
    CHECK(!impl->supports(&c));
}

TEST(every_cast_between_stored_types)
{
    FOR_EACH_ISA(vec)
    for (int from = 0; from < STK_STRING; from++)
        for (int to = 0; to < STK_STRING; to++) {
            int64_t count[] = {1100};
            stk_chain c = chain_of(1, 1, count);
            set_input(&c, 0, (stk_dtype)from, STK_ACCESS_DENSE);
            stk_lane lane = stk_lane_of((stk_dtype)to);
            int16_t r = add_op(&c, STK_EW_CAST, lane, 0, 0, 0);
            set_output(&c, 0, (stk_dtype)to, r);
            char what[64];
            snprintf(what, sizeof what, "%s %s to %s", vec->name, stk_dtype_name((stk_dtype)from),
                     stk_dtype_name((stk_dtype)to));
            check_chain(what, &c, 1100, 1100, 0, 2);
        }
}

/* ---- sizes, walks, segments ------------------------------------------------------------------------ */

/* y = relu(a * s + b) with b walked as asked. */
static stk_chain affine(const int64_t *count, stk_dtype dtype, stk_access access)
{
    stk_chain c = chain_of(3, 1, count);
    set_input(&c, 0, dtype, STK_ACCESS_DENSE);
    set_input(&c, 1, dtype, STK_ACCESS_SCALAR);
    set_input(&c, 2, dtype, access);
    stk_lane lane = stk_lane_of(dtype);
    int16_t product = add_op(&c, STK_EW_MUL, lane, 0, 1, 0);
    int16_t sum = add_op(&c, STK_EW_ADD, lane, product, 2, 0);
    set_output(&c, 0, dtype, add_op(&c, STK_EW_RELU, lane, sum, 0, 0));
    return c;
}

static double tolerance_of(stk_dtype dtype)
{
    return dtype == STK_F16 ? 2e-3 : dtype == STK_BF16 ? 1e-2 : dtype == STK_F32 ? 1e-6 : 1e-15;
}

TEST(sizes_around_the_tile)
{
    static const int64_t sizes[] = {0,  1,    2,    7,    8,    9,    63,  64,
                                    65, 1023, 1024, 1025, 2048, 2049, 5000};
    static const stk_dtype types[] = {STK_F32, STK_F64, STK_F16, STK_BF16, STK_I32, STK_U8};
    FOR_EACH_ISA(vec)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (int32_t tile = 64; tile <= 1024; tile *= 4) {
                int64_t count[] = {sizes[s]};
                stk_chain c = affine(count, types[t], STK_ACCESS_DENSE);
                c.tile = tile;
                check_chain(vec->name, &c, sizes[s], sizes[s] + 1, tolerance_of(types[t]), 0);
            }
}

TEST(rows_shorter_and_longer_than_a_tile)
{
    static const int64_t widths[] = {1, 2, 3, 10, 64, 100, 128, 1000, 1024, 1025, 3000};
    static const stk_dtype types[] = {STK_F32, STK_F16, STK_I64};
    FOR_EACH_ISA(vec)
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (int64_t rows = 1; rows <= 5; rows += 2)
                for (int32_t parts = 1; parts <= 4; parts += 3) {
                    int64_t count[] = {rows * widths[w]};
                    stk_chain c = affine(count, types[t], STK_ACCESS_ROW);
                    c.rank = 2;
                    c.dim[0] = rows, c.dim[1] = widths[w];
                    check_chain("row", &c, count[0], count[0], tolerance_of(types[t]), parts);
                }
}

TEST(strided_walks)
{
    static const struct {
        int32_t rank;
        int64_t dim[4], stride[4];
    } walks[] = {
        {2, {50, 30}, {1, 0}},              /* a column, repeated along the row */
        {2, {50, 30}, {0, 1}},              /* a row */
        {2, {50, 30}, {1, 50}},             /* transposed */
        {2, {50, 30}, {0, 0}},              /* one element */
        {2, {50, 30}, {60, 2}},             /* every second */
        {3, {7, 11, 13}, {0, 1, 0}},        /* channels in the middle */
        {3, {7, 11, 13}, {13, 0, 1}},       /* a middle axis of 1 */
        {4, {3, 5, 7, 9}, {1, 3, 15, 105}}, /* fully reversed */
        {4, {3, 1, 7, 1}, {7, 5, 1, 3}},    /* sizes of 1 with odd strides */
        {1, {2500}, {1}},
        {0, {0}, {0}},
    };
    static const stk_dtype types[] = {STK_F32, STK_F64, STK_BF16, STK_U8, STK_BOOL};
    FOR_EACH_ISA(vec)
    for (size_t w = 0; w < sizeof walks / sizeof *walks; w++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            int64_t n = 1;
            for (int32_t d = 0; d < walks[w].rank; d++) n *= walks[w].dim[d];
            int64_t count[] = {n};
            stk_chain c = chain_of(2, 1, count);
            set_input(&c, 0, types[t], STK_ACCESS_STRIDED);
            set_input(&c, 1, types[t], STK_ACCESS_DENSE);
            c.rank = walks[w].rank;
            memcpy(c.dim, walks[w].dim, sizeof walks[w].dim);
            memcpy(c.input[0].stride, walks[w].stride, sizeof walks[w].stride);
            set_output(&c, 0, types[t], add_op(&c, STK_EW_MAX, stk_lane_of(types[t]), 0, 1, 0));
            check_chain("strided", &c, n, 4000, 0, 3);
        }
}

TEST(many_segments)
{
    enum { SEGMENTS = 40 };
    int64_t count[SEGMENTS], total = 0;
    uint64_t seed = 9;
    static float a[SEGMENTS][3000], b[SEGMENTS][3000], scale[SEGMENTS];
    for (int s = 0; s < SEGMENTS; s++) {
        count[s] = s % 9 == 4 ? 0 : (int64_t)(launch_random(&seed) % (s % 3 ? 50 : 3000));
        total += count[s];
        scale[s] =
            (float)(s / 4); /* the same address for some neighbours would be the same value */
    }
    for (int32_t parts = 1; parts <= 64; parts *= 4)
        for (int32_t threads = 1; threads <= 4; threads *= 2) {
            stk_chain c = chain_of(2, 1, count); /* b = a * scale + 1 */
            c.segments = SEGMENTS;
            set_input(&c, 0, STK_F32, STK_ACCESS_DENSE);
            set_input(&c, 1, STK_F32, STK_ACCESS_SCALAR);
            int16_t one = add_const(&c, STK_LANE_F32, 1);
            int16_t product = add_op(&c, STK_EW_MUL, STK_LANE_F32, 0, 1, 0);
            set_output(&c, 0, STK_F32, add_op(&c, STK_EW_ADD, STK_LANE_F32, product, one, 0));
            void *arg[SEGMENTS * 3];
            for (int s = 0; s < SEGMENTS; s++) {
                for (int i = 0; i < 3000; i++) a[s][i] = (float)(i % 100), b[s][i] = -5;
                arg[s * 3] = a[s], arg[s * 3 + 1] = &scale[s / 2 * 2], arg[s * 3 + 2] = b[s];
            }
            CHECK(LAUNCH(launch_device(threads), STK_K_CHAIN, "vec", &c, arg, SEGMENTS * 3, parts));
            int wrong = 0;
            for (int s = 0; s < SEGMENTS; s++)
                for (int i = 0; i < 3000; i++)
                    wrong += b[s][i] != (i < count[s] ? a[s][i] * scale[s / 2 * 2] + 1 : -5);
            CHECK_EQ_I64(wrong, 0);
        }
    CHECK(total > 0);
}

/* ---- sharing memory, registers and outputs ------------------------------------------------------------ */

TEST(outputs_may_take_the_place_of_inputs)
{
    enum { N = 3001 };
    static float m[N], g[N], w[N], m2[N], w2[N];
    uint64_t seed = 4;
    for (int i = 0; i < N; i++)
        m[i] = (float)launch_uniform(&seed, -1, 1), g[i] = (float)launch_uniform(&seed, -1, 1),
        w[i] = 1;
    int64_t count[] = {N};
    stk_chain c = chain_of(3, 2, count); /* m = 0.5 m + g; w = w - 0.25 m */
    for (int32_t i = 0; i < 3; i++) set_input(&c, i, STK_F32, STK_ACCESS_DENSE);
    int16_t half = add_const(&c, STK_LANE_F32, 0.5), rate = add_const(&c, STK_LANE_F32, 0.25);
    int16_t decayed = add_op(&c, STK_EW_MUL, STK_LANE_F32, 0, half, 0);
    int16_t moment = add_op(&c, STK_EW_ADD, STK_LANE_F32, decayed, 1, 0);
    int16_t step = add_op(&c, STK_EW_MUL, STK_LANE_F32, moment, rate, 0);
    int16_t weight = add_op(&c, STK_EW_SUB, STK_LANE_F32, 2, step, 0);
    set_output(&c, 0, STK_F32, moment);
    set_output(&c, 1, STK_F32, weight);
    memcpy(m2, m, sizeof m), memcpy(w2, w, sizeof w);
    void *arg[] = {m, g, w, m, w}, *ref[] = {m2, g, w2, m2, w2};
    CHECK(LAUNCH(launch_device(2), STK_K_CHAIN, "vec", &c, arg, 5, 4));
    CHECK(LAUNCH(launch_device(1), STK_K_CHAIN, "ref", &c, ref, 5, 1));
    CHECK_NEAR_F32(m, m2, N, 0, 1e-6);
    CHECK_NEAR_F32(w, w2, N, 0, 1e-6);
}

/* A cast between float32 and a half is no step of its own; what it renames must still be read before its memory is taken over, and
 * written after. Each program has inputs x (float32) and h (bfloat16), and a float32 output in x's memory. */
TEST(renamed_floats_respect_shared_memory)
{
    enum { N = 2500 };
    static float x[N], x2[N], apart[N];
    static uint16_t h[N], half[N], half2[N];
    for (int program = 0; program < 3; program++) {
        int64_t count[] = {N};
        stk_chain c = chain_of(2, 2, count);
        set_input(&c, 0, STK_F32, STK_ACCESS_DENSE);
        set_input(&c, 1, STK_BF16, STK_ACCESS_DENSE);
        int16_t over = 0, other = 0;
        if (program == 0) { /* the result is made before x is read, renamed after */
            int16_t made = add_op(&c, STK_EW_NEG, STK_LANE_F32, 1, 0, 0);
            other = add_op(&c, STK_EW_SQUARE, STK_LANE_F32, 0, 0, 0);
            over = add_op(&c, STK_EW_CAST, STK_LANE_F32, made, 0, 0);
        } else if (program ==
                   1) { /* x is renamed first and stored after its memory has a new owner */
            other = add_op(&c, STK_EW_CAST, STK_LANE_F32, 0, 0, 0);
            over = add_op(&c, STK_EW_NEG, STK_LANE_F32, 1, 0, 0);
        } else { /* the result is an input under another name */
            other = add_op(&c, STK_EW_SQUARE, STK_LANE_F32, 0, 0, 0);
            over = add_op(&c, STK_EW_CAST, STK_LANE_F32, 1, 0, 0);
        }
        set_output(&c, 0, STK_F32, over);
        set_output(&c, 1, STK_BF16, other);
        fill_values(STK_F32, x, N, 3), memcpy(x2, x, sizeof x);
        fill_values(STK_BF16, h, N, 4);
        void *arg[] = {x, h, x, half}, *ref[] = {x2, h, apart, half2};
        CHECK(LAUNCH(launch_device(2), STK_K_CHAIN, "vec", &c, arg, 4, 4));
        CHECK(LAUNCH(launch_device(1), STK_K_CHAIN, "ref", &c, ref, 4, 1));
        compare("over x", STK_F32, x, apart, N, 0);
        compare("beside it", STK_BF16, half, half2, N, 0);
    }
}

TEST(outputs_that_are_inputs_constants_or_twice_the_same)
{
    int64_t count[] = {1500};
    stk_chain c = chain_of(2, 6, count);
    set_input(&c, 0, STK_F32, STK_ACCESS_DENSE);
    set_input(&c, 1, STK_I32, STK_ACCESS_DENSE);
    int16_t k = add_const(&c, STK_LANE_I64, 42), truth = add_const(&c, STK_LANE_BOOL, 1);
    int16_t r = add_op(&c, STK_EW_NEG, STK_LANE_F32, 0, 0, 0);
    set_output(&c, 0, STK_F32, 0);
    set_output(&c, 1, STK_I32, 1);
    set_output(&c, 2, STK_I64, k);
    set_output(&c, 3, STK_BOOL, truth);
    set_output(&c, 4, STK_F32, r);
    set_output(&c, 5, STK_F32, r);
    check_chain("plain outputs", &c, 1500, 1500, 0, 2);
}

TEST(registers_may_be_written_again)
{
    int64_t count[] = {2100};
    stk_chain c = chain_of(2, 2, count);
    set_input(&c, 0, STK_F32, STK_ACCESS_DENSE);
    set_input(&c, 1, STK_F32, STK_ACCESS_DENSE);
    int16_t r = add_op(&c, STK_EW_ADD, STK_LANE_F32, 0, 1, 0);
    for (int i = 0; i < 5; i++) { /* r = r * a; a register of an input is overwritten as well */
        c.op[c.ops] = (stk_chain_op){
            .code = STK_EW_MUL, .dst = (int16_t)(i == 2 ? 1 : r), .a = r, .b = (int16_t)(i % 2)};
        c.ops++;
    }
    set_output(&c, 0, STK_F32, r);
    set_output(&c, 1, STK_F32, 1);
    check_chain("rewritten", &c, 2100, 2100, 1e-5, 2);
}

/* ---- random programs ------------------------------------------------------------------------------------ */

static const stk_ew mild[] = {STK_EW_ADD,    STK_EW_SUB,  STK_EW_MUL,      STK_EW_MAX,
                              STK_EW_MIN,    STK_EW_NEG,  STK_EW_ABS,      STK_EW_RELU,
                              STK_EW_SELECT, STK_EW_SIGN, STK_EW_SQUARE,   STK_EW_LT,
                              STK_EW_EQ,     STK_EW_CAST, STK_EW_RELU_GRAD};

static int16_t pick_reg(const stk_chain *c, uint64_t *seed, int lane)
{
    for (int tries = 0; tries < 100; tries++) {
        int16_t r = (int16_t)(launch_random(seed) % (uint64_t)c->regs);
        if (lane < 0 || c->reg_lane[r] == lane) return r;
    }
    return -1;
}

static void add_random_op(stk_chain *c, uint64_t *seed)
{
    stk_ew code = mild[launch_random(seed) % (sizeof mild / sizeof *mild)];
    int lane = (int)(launch_random(seed) % 3); /* F32, F64, I64 */
    if (code == STK_EW_CAST) {
        int16_t a = pick_reg(c, seed, -1);
        if (c->reg_lane[a] == STK_LANE_F32 || c->reg_lane[a] == STK_LANE_F64)
            if (lane == STK_LANE_I64) return; /* rounding differences would be amplified */
        add_op(c, code, (stk_lane)lane, a, 0, 0);
        return;
    }
    int16_t a = pick_reg(c, seed, code == STK_EW_SELECT ? STK_LANE_BOOL : lane);
    int16_t b = pick_reg(c, seed, lane), d = pick_reg(c, seed, lane);
    if (a < 0 || b < 0 || d < 0) return;
    add_op(c, code, (stk_lane)lane, a, b, d);
}

TEST(random_programs)
{
    static const stk_dtype types[] = {STK_F32, STK_F32, STK_F64, STK_F16,
                                      STK_I32, STK_I64, STK_U8,  STK_BOOL};
    FOR_EACH_ISA(vec)
    for (uint64_t trial = 0; trial < 300; trial++) {
        uint64_t seed = trial * 31 + 1;
        int64_t count[] = {(int64_t)(launch_random(&seed) % 3000)};
        stk_chain c = chain_of(1 + (int32_t)(launch_random(&seed) % 6), 0, count);
        for (int32_t i = 0; i < c.inputs; i++)
            set_input(&c, i, types[launch_random(&seed) % 8],
                      launch_random(&seed) % 4 ? STK_ACCESS_DENSE : STK_ACCESS_SCALAR);
        for (int i = 0; i < 3; i++) add_const(&c, (stk_lane)i, (double)(launch_random(&seed) % 5));
        int ops = (int)(launch_random(&seed) % 30);
        for (int i = 0; i < ops && c.regs < STK_CHAIN_REGS; i++) add_random_op(&c, &seed);
        c.outputs = 1 + (int32_t)(launch_random(&seed) % 4);
        for (int32_t i = 0; i < c.outputs; i++) {
            int16_t r = i == 0 ? (int16_t)(c.regs - 1) : pick_reg(&c, &seed, -1);
            set_output(&c, i, storage_of((stk_lane)c.reg_lane[r]), r);
        }
        c.tile = (int32_t)(64 << launch_random(&seed) % 5);
        char what[48];
        snprintf(what, sizeof what, "%s program %d", vec->name, (int)trial);
        if (!check_chain(what, &c, count[0], count[0] + 1, 1e-4,
                         (int32_t)(launch_random(&seed) % 6)))
            return;
    }
}

/* The most a chain may hold: all registers alive at once, in the wide lanes. */
TEST(a_full_house_of_registers)
{
    int64_t count[] = {700};
    stk_chain c = chain_of(STK_CHAIN_IO, STK_CHAIN_IO, count);
    for (int32_t i = 0; i < STK_CHAIN_IO; i++)
        set_input(&c, i, i % 2 ? STK_F16 : STK_I8, STK_ACCESS_DENSE);
    for (int32_t i = 0; i < STK_CHAIN_REGS - STK_CHAIN_IO; i++)
        add_op(&c, STK_EW_CAST, i % 2 ? STK_LANE_F64 : STK_LANE_F32, (int16_t)i, 0, 0);
    while (c.ops < STK_CHAIN_OPS) { /* every register is read at the very end */
        int16_t r = (int16_t)(c.ops % (STK_CHAIN_REGS - STK_CHAIN_IO) + STK_CHAIN_IO);
        c.op[c.ops++] = (stk_chain_op){.code = STK_EW_NEG, .lane = c.reg_lane[r], .dst = r, .a = r};
    }
    for (int32_t i = 0; i < STK_CHAIN_IO; i++) {
        int16_t r = (int16_t)(STK_CHAIN_REGS - 1 - i);
        set_output(&c, i, storage_of((stk_lane)c.reg_lane[r]), r);
    }
    check_chain("full", &c, 700, 700, 0, 2);
}

static stk_status prepare_and_discard(void)
{
    stk_error err;
    stk_chain c = affine(one_size, STK_F32, STK_ACCESS_DENSE);
    const stk_impl *impl = launch_impl(launch_device(1), STK_K_CHAIN, "vec");
    stk_launch l = {.params = &c, .impl = impl};
    stk_status status = impl->prepare(&l, &err);
    if (status == STK_OK) impl->discard(&l);
    return status;
}

TEST(preparing_survives_without_memory) { OOM_LOOP(prepare_and_discard()); }

/* ---- updates ----------------------------------------------------------------------------------------- */

/* The operations of vec/updates.h; `apart` puts one more between them, so that each runs on its own. */
static stk_chain update_chain(const int64_t *count, bool mean, bool mean_last, bool apart)
{
    stk_chain c = chain_of(5, mean ? 3 : 2, count);
    for (int32_t i = 0; i < 4; i++) set_input(&c, i, STK_F32, STK_ACCESS_DENSE); /* m v g w */
    set_input(&c, 4, STK_F32, STK_ACCESS_SCALAR);
    int16_t weight = add_const(&c, STK_LANE_F32, 0.1), offset = add_const(&c, STK_LANE_F32, 1e-3);
    int16_t m = 2, v = 0;
    if (mean && !mean_last) m = add_op(&c, STK_EW_LERP, STK_LANE_F32, 0, 2, weight);
    v = add_op(&c, STK_EW_LERP_SQUARE, STK_LANE_F32, 1, 2, weight);
    if (mean && mean_last) m = add_op(&c, STK_EW_LERP, STK_LANE_F32, 0, 2, weight);
    if (apart) add_op(&c, STK_EW_NEG, STK_LANE_F32, 2, 0, 0);
    int16_t q = add_op(&c, STK_EW_DIV_SQRT, STK_LANE_F32, m, v, offset);
    int16_t w = add_op(&c, STK_EW_FNMA, STK_LANE_F32, mean_last ? q : 4, mean_last ? 4 : q, 3);
    set_output(&c, 0, STK_F32, v);
    set_output(&c, 1, STK_F32, w);
    if (mean) set_output(&c, 2, STK_F32, m);
    return c;
}

enum { UPDATE_COUNT = 672 };
static float update_in[5][UPDATE_COUNT], update_out[3][3][UPDATE_COUNT];

static void fill_update(void)
{
    uint64_t seed = 3;
    for (int a = 0; a < 5; a++)
        for (int i = 0; i < UPDATE_COUNT; i++)
            update_in[a][i] = (float)launch_uniform(&seed, a == 1 ? 0 : -1, 1);
    update_in[1][5] = 0;
    update_in[2][5] = 0;
    update_in[2][17] = INFINITY;
    update_in[3][19] = NAN;
}

TEST(updates_have_the_bits_of_their_operations)
{
    fill_update();
    FOR_EACH_ISA(vec)
    for (int kind = 0; kind < 4; kind++)
        for (int64_t n = 1; n <= UPDATE_COUNT; n += n < 40 ? 1 : 211) {
            bool mean = kind > 0;
            for (int way = 0; way < 3; way++) { /* together, apart, ref */
                stk_chain c = update_chain(&n, mean, kind == 2, way == 1);
                void *arg[8] = {update_in[0],       update_in[1],      update_in[2],
                                update_in[3],       update_in[4],      update_out[way][0],
                                update_out[way][1], update_out[way][2]};
                LAUNCH(launch_device(1), STK_K_CHAIN, way == 2 ? "ref" : "vec", &c, arg,
                       mean ? 8 : 7, 2);
            }
            for (int o = 0; o < (mean ? 3 : 2); o++) {
                CHECK_MSG(!memcmp(update_out[0][o], update_out[1][o], (size_t)n * 4),
                          "%s: output %d of kind %d, %d elements", vec->name, o, kind, (int)n);
                compare("update", STK_F32, update_out[0][o], update_out[2][o], n, 1e-4);
            }
        }
}

/* Sizes over the whole range, with zeros of both signs, the ends of the range and numbers that are none. */
static float of_any_size(uint64_t *seed, bool square)
{
    static const float odd[] = {0.0f,     -0.0f,     1e-38f, -1e-38f, 3e38f,
                                INFINITY, -INFINITY, NAN,    1e-40f};
    const uint64_t kind = launch_random(seed) % 24;
    float x = (float)ldexp(launch_uniform(seed, 1, 2), (int)(launch_random(seed) % 60) - 40);
    if (kind < 9) x = odd[kind];
    if (kind > 20)
        x = (float)ldexp(launch_uniform(seed, 1, 2), (int)(launch_random(seed) % 250) - 126);
    if (launch_random(seed) & 1) x = -x;
    return square ? fabsf(x) : x;
}

TEST(updates_by_steps_and_by_turns_have_the_bits_of_the_divider)
{
    enum { N = 4099 };
    static float from[4][N], out[3][4][N]; /* square, mean, value, gradient */
    uint64_t seed = 11;
    FOR_EACH_ISA(vec)
    for (int round = 0; vec->updates->by_steps && round < 40; round++) {
        float number[] = {0.001f, round % 8 ? 1e-7f : 0.0f, 1e-3f, 0.1f};
        for (int i = 0; i < N; i++)
            for (int a = 0; a < 4; a++)
                from[a][i] = round % 2 ? (float)launch_uniform(&seed, a ? -1 : 0, 1)
                                       : of_any_size(&seed, a == 0);
        const stk_vec_updates *ways[] = {vec->updates, vec->updates->by_steps,
                                         vec->updates->by_turns};
        for (int way = 0; way < 3; way++) {
            const stk_vec_updates *u = ways[way];
            float *at[STK_UPDATE_ARGS] = {0};
            memcpy(out[way], from, sizeof from);
            at[STK_UPDATE_NEW_SQUARE] = at[STK_UPDATE_SQUARE] = out[way][0];
            at[STK_UPDATE_NEW_MEAN] = at[STK_UPDATE_MEAN] = out[way][1];
            at[STK_UPDATE_NEW_VALUE] = at[STK_UPDATE_VALUE] = out[way][2];
            at[STK_UPDATE_GRADIENT] = out[way][3];
            at[STK_UPDATE_SQUARE_WEIGHT] = &number[0];
            at[STK_UPDATE_OFFSET] = &number[1];
            at[STK_UPDATE_RATE] = &number[2];
            at[STK_UPDATE_MEAN_WEIGHT] = &number[3];
            (round % 3 ? u->with_mean : u->plain)(round % 5 ? N : N - 4, at);
        }
        for (int k = 0; k < 2 * 4 * N; k++) {
            const int way = 1 + k / (4 * N), a = k / N % 4, i = k % N;
            if (!CHECK_MSG(!memcmp(&out[0][a][i], &out[way][a][i], 4) ||
                               (isnan(out[0][a][i]) && isnan(out[way][a][i])),
                           "%s, way %d: array %d: %a, not %a (square %a, mean %a, gradient %a)",
                           vec->name, way, a, out[way][a][i], out[0][a][i], from[0][i], from[1][i],
                           from[3][i]))
                return;
        }
    }
    const stk_vec_updates *own = stk_vec_get()->updates, *picked = stk_updates_pick(own);
    CHECK(picked == own || picked == own->by_steps || picked == own->by_turns);
}

TEST_MAIN()
