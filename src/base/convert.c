/* One plain loop per pair of C types, which the compiler turns into vector code; the half types go
 * through float in small chunks that stay in L1. */
#include "base/convert.h"

#define RESTRICT __restrict__

typedef void (*convert_function)(void *to, const void *from, int64_t n);

/* Value rules. CLAMP keeps a float inside the integer type: the comparisons are arranged so that
 * NaN falls through to 0 and no out-of-range cast happens. */
#define PLAIN(type, v, low, high, least, most) ((type)(v))
#define TRUTH(type, v, low, high, least, most) ((type)((v) != 0))
#define CLAMP(type, v, low, high, least, most)                                                     \
    ((v) >= (high) ? (most) : (v) > (low) ? (type)(v) : (v) <= (low) ? (least) : (type)0)

#define LOOP(from_suffix, from_type, to_suffix, to_type, rule, low, high, least, most)             \
    static void from_suffix##_to_##to_suffix(void *to, const void *from, int64_t n)                \
    {                                                                                              \
        to_type *RESTRICT y = to;                                                                  \
        const from_type *RESTRICT x = from;                                                        \
        for (int64_t i = 0; i < n; i++) y[i] = rule(to_type, x[i], low, high, least, most);        \
    }

#define TO_INTEGERS(from, type, rule)                                                              \
    LOOP(from, type, I8, int8_t, rule, -0x1p7f, 0x1p7f, INT8_MIN, INT8_MAX)                        \
    LOOP(from, type, U8, uint8_t, rule, 0.0f, 0x1p8f, 0, UINT8_MAX)                                \
    LOOP(from, type, I16, int16_t, rule, -0x1p15f, 0x1p15f, INT16_MIN, INT16_MAX)                  \
    LOOP(from, type, U16, uint16_t, rule, 0.0f, 0x1p16f, 0, UINT16_MAX)                            \
    LOOP(from, type, I32, int32_t, rule, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)                  \
    LOOP(from, type, U32, uint32_t, rule, 0.0f, 0x1p32f, 0, UINT32_MAX)                            \
    LOOP(from, type, I64, int64_t, rule, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)                  \
    LOOP(from, type, U64, uint64_t, rule, 0.0f, 0x1p64f, 0, UINT64_MAX)                            \
    LOOP(from, type, BOOL, uint8_t, TRUTH, 0, 0, 0, 0)
#define TO_FLOATS(from, type)                                                                      \
    LOOP(from, type, F32, float, PLAIN, 0, 0, 0, 0)                                                \
    LOOP(from, type, F64, double, PLAIN, 0, 0, 0, 0)

#define FROM_INTEGER(from, type) TO_INTEGERS(from, type, PLAIN) TO_FLOATS(from, type)
#define FROM_FLOAT(from, type)   TO_INTEGERS(from, type, CLAMP) TO_FLOATS(from, type)

FROM_FLOAT(F32, float)
FROM_FLOAT(F64, double)
FROM_INTEGER(I8, int8_t)
FROM_INTEGER(U8, uint8_t)
FROM_INTEGER(I16, int16_t)
FROM_INTEGER(U16, uint16_t)
FROM_INTEGER(I32, int32_t)
FROM_INTEGER(U32, uint32_t)
FROM_INTEGER(I64, int64_t)
FROM_INTEGER(U64, uint64_t)

/* A bool may hold any non-zero byte (foreign memory); it counts as 1. */
#define BOOL_TO(to_suffix, to_type)                                                                \
    static void BOOL_to_##to_suffix(void *to, const void *from, int64_t n)                         \
    {                                                                                              \
        to_type *RESTRICT y = to;                                                                  \
        const uint8_t *RESTRICT x = from;                                                          \
        for (int64_t i = 0; i < n; i++) y[i] = (to_type)(x[i] != 0);                               \
    }
BOOL_TO(F32, float)
BOOL_TO(F64, double)
BOOL_TO(I8, int8_t)
BOOL_TO(U8, uint8_t)
BOOL_TO(I16, int16_t)
BOOL_TO(U16, uint16_t)
BOOL_TO(I32, int32_t)
BOOL_TO(U32, uint32_t)
BOOL_TO(I64, int64_t)
BOOL_TO(U64, uint64_t)
BOOL_TO(BOOL, uint8_t)

#define ROW(from)                                                                                  \
    [STK_##                                                                                        \
        from] = {[STK_F32] = from##_to_F32, [STK_F64] = from##_to_F64,  [STK_I8] = from##_to_I8,   \
                 [STK_U8] = from##_to_U8,   [STK_I16] = from##_to_I16,  [STK_U16] = from##_to_U16, \
                 [STK_I32] = from##_to_I32, [STK_U32] = from##_to_U32,  [STK_I64] = from##_to_I64, \
                 [STK_U64] = from##_to_U64, [STK_BOOL] = from##_to_BOOL}
static const convert_function pairs[STK_DTYPE_COUNT][STK_DTYPE_COUNT] = {
    ROW(F32), ROW(F64), ROW(I8),  ROW(U8),  ROW(I16), ROW(U16),
    ROW(I32), ROW(U32), ROW(I64), ROW(U64), ROW(BOOL)};

static void from_half(stk_dtype dtype, const uint16_t *from, float *to, int64_t n)
{
    if (dtype == STK_BF16)
        for (int64_t i = 0; i < n; i++) to[i] = stk_bf16_to_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = stk_f16_to_f32(from[i]);
}

static void to_half(stk_dtype dtype, const float *from, uint16_t *to, int64_t n)
{
    if (dtype == STK_BF16)
        for (int64_t i = 0; i < n; i++) to[i] = stk_f32_to_bf16(from[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = stk_f32_to_f16(from[i]);
}

static bool is_half(stk_dtype d) { return d == STK_F16 || d == STK_BF16; }

void stk_convert(stk_dtype to_dtype, void *to, stk_dtype from_dtype, const void *from, int64_t n)
{
    size_t to_size = (size_t)stk_dtype_size(to_dtype);
    size_t from_size = (size_t)stk_dtype_size(from_dtype);
    if (to_dtype == from_dtype) {
        if (n > 0) memcpy(to, from, (size_t)n * to_size);
        return;
    }
    if (!is_half(to_dtype) && !is_half(from_dtype)) {
        pairs[from_dtype][to_dtype](to, from, n);
        return;
    }
    if (from_dtype == STK_F64 && to_dtype == STK_F16) { /* in one rounding, not through float */
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)to)[i] = stk_f64_to_f16(((const double *)from)[i]);
        return;
    }
    enum { CHUNK = 512 };
    float chunk[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t m = n - done < CHUNK ? n - done : CHUNK;
        const char *x = (const char *)from + (size_t)done * from_size;
        char *y = (char *)to + (size_t)done * to_size;
        if (is_half(from_dtype))
            from_half(from_dtype, (const uint16_t *)(const void *)x, chunk, m);
        else
            stk_convert(STK_F32, chunk, from_dtype, x, m);
        if (is_half(to_dtype))
            to_half(to_dtype, chunk, (uint16_t *)(void *)y, m);
        else
            stk_convert(to_dtype, y, STK_F32, chunk, m);
    }
}
