/* Element types: names, sizes and single-element conversions (bulk ones are kernels). */
#include "base/dtype.h"

#include <math.h>

static const struct {
    const char *name, *numpy;
    int8_t size;
    char kind;
} table[STK_DTYPE_COUNT] = {
#define STK_DTYPE(suffix, name, bytes, kind, numpy) {name, numpy, bytes, kind},
#include "stoker/dtype.def"
};

const char *stk_dtype_name(stk_dtype d) { return stk_dtype_valid(d) ? table[d].name : "?"; }
const char *stk_dtype_numpy(stk_dtype d) { return stk_dtype_valid(d) ? table[d].numpy : "?"; }
int64_t stk_dtype_size(stk_dtype d) { return stk_dtype_valid(d) ? table[d].size : 0; }
char stk_dtype_kind(stk_dtype d) { return stk_dtype_valid(d) ? table[d].kind : '?'; }

bool stk_dtype_parse(const char *name, stk_dtype *out)
{
    static const char *const shorts[STK_DTYPE_COUNT] = {"f32", "f64", "f16",  "bf16", "i8",
                                                        "u8",  "i16", "u16",  "i32",  "u32",
                                                        "i64", "u64", "bool", "str"};
    if (!name || !out) return false;
    for (int i = 0; i < STK_DTYPE_COUNT; i++) {
        if (strcmp(name, table[i].name) && strcmp(name, table[i].numpy) && strcmp(name, shorts[i]))
            continue;
        *out = (stk_dtype)i;
        return true;
    }
    return false;
}

/* Half <-> float by scaling with powers of two, so that subnormals need no loop. */
float stk_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, bits;
    float f;
    if (rest >= 0x7c00u) {
        bits = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
    } else if (rest >= 0x400u) {
        bits = sign | ((rest << 13) + ((127u - 15u) << 23));
    } else {
        f = (float)rest * 0x1p-24f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    }
    memcpy(&f, &bits, 4);
    return f;
}

uint16_t stk_f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds past 65504 */
    if (rest < 0x38800000u) { /* subnormal: let the float adder round at 2^-24 */
        float magnitude;
        memcpy(&magnitude, &rest, 4);
        return (uint16_t)(sign | (uint32_t)lrintf(magnitude * 0x1p24f));
    }
    rest += 0xfffu + (rest >> 13 & 1u);
    return (uint16_t)(sign | (rest - ((127u - 15u) << 23)) >> 13);
}

/* Through a float that keeps the lost bits sticky in its last bit ("round to odd"): rounding that
 * again to half gives what a single rounding would. */
uint16_t stk_f64_to_f16(double v)
{
    float f = (float)v;
    if ((double)f != v && v == v) {
        uint32_t bits;
        memcpy(&bits, &f, 4);
        if (fabs((double)f) > fabs(v)) bits--;
        bits |= 1u;
        memcpy(&f, &bits, 4);
    }
    return stk_f32_to_f16(f);
}

#define LOAD(type) (*(const type *)at)
double stk_load_f64(stk_dtype dtype, const void *at)
{
    switch (dtype) {
    case STK_F32: return (double)LOAD(float);
    case STK_F64: return LOAD(double);
    case STK_F16: return (double)stk_f16_to_f32(LOAD(uint16_t));
    case STK_BF16: return (double)stk_bf16_to_f32(LOAD(uint16_t));
    case STK_U64: return (double)LOAD(uint64_t);
    default: return (double)stk_load_i64(dtype, at);
    }
}

int64_t stk_load_i64(stk_dtype dtype, const void *at)
{
    switch (dtype) {
    case STK_I8: return LOAD(int8_t);
    case STK_U8: return LOAD(uint8_t);
    case STK_I16: return LOAD(int16_t);
    case STK_U16: return LOAD(uint16_t);
    case STK_I32: return LOAD(int32_t);
    case STK_U32: return LOAD(uint32_t);
    case STK_I64: return LOAD(int64_t);
    case STK_U64: return (int64_t)LOAD(uint64_t);
    case STK_BOOL: return LOAD(uint8_t) != 0;
    case STK_F32:
    case STK_F64:
    case STK_F16:
    case STK_BF16: {
        double v = stk_load_f64(dtype, at);
        if (!(v == v)) return 0;
        return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
    }
    default: return 0;
    }
}

#define STORE(type, v) (*(type *)at = (type)(v))
void stk_store_i64(stk_dtype dtype, void *at, int64_t v)
{
    switch (dtype) {
    case STK_I8: STORE(int8_t, v); break;
    case STK_U8: STORE(uint8_t, v); break;
    case STK_I16: STORE(int16_t, v); break;
    case STK_U16: STORE(uint16_t, v); break;
    case STK_I32: STORE(int32_t, v); break;
    case STK_U32: STORE(uint32_t, v); break;
    case STK_I64: STORE(int64_t, v); break;
    case STK_U64: STORE(uint64_t, v); break;
    case STK_BOOL: STORE(uint8_t, v != 0); break;
    case STK_F32: STORE(float, v); break;
    case STK_F64: STORE(double, v); break;
    case STK_F16: STORE(uint16_t, stk_f32_to_f16((float)v)); break;
    case STK_BF16: STORE(uint16_t, stk_f32_to_bf16((float)v)); break;
    default: break;
    }
}

/* Nearest representable integer towards zero; out-of-range values stick to the end of the range. */
static int64_t saturate(stk_dtype dtype, double v)
{
    int bits = (int)stk_dtype_size(dtype) * 8;
    bool is_signed = stk_dtype_kind(dtype) == 'I';
    double low = is_signed ? -ldexp(1, bits - 1) : 0, high = ldexp(1, is_signed ? bits - 1 : bits);
    if (!(v == v)) return 0;
    if (v <= low) return is_signed ? (bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1))) : 0;
    if (v >= high)
        return bits == 64 ? (is_signed ? INT64_MAX : -1)
                          : ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
    return bits == 64 && !is_signed ? (int64_t)(uint64_t)v : (int64_t)v;
}

void stk_store_f64(stk_dtype dtype, void *at, double v)
{
    switch (dtype) {
    case STK_F32: STORE(float, v); break;
    case STK_F64: STORE(double, v); break;
    case STK_F16: STORE(uint16_t, stk_f64_to_f16(v)); break;
    case STK_BF16: STORE(uint16_t, stk_f32_to_bf16((float)v)); break;
    case STK_BOOL: STORE(uint8_t, v != 0); break;
    default: stk_store_i64(dtype, at, saturate(dtype, v)); break;
    }
}
