/* elementwise.h - the operations of chains, one function per lane: f32 and f64 (real numbers), i64 (all integers), bool (0 or 1 in an int). */
#define SK_REALS(R, S)                                                                             \
    SK_FN R sk_neg_##S(R a) { return -a; }                                                         \
    SK_FN R sk_abs_##S(R a) { return fabs(a); }                                                    \
    SK_FN R sk_sign_##S(R a) { return a > 0 ? (R)1 : a < 0 ? (R)-1 : a == 0 ? (R)0 : a; }          \
    SK_FN R sk_square_##S(R a) { return a * a; }                                                   \
    SK_FN R sk_sqrt_##S(R a) { return sqrt(a); }                                                   \
    SK_FN R sk_rsqrt_##S(R a) { return (R)1 / sqrt(a); }                                           \
    SK_FN R sk_reciprocal_##S(R a) { return (R)1 / a; }                                            \
    SK_FN R sk_exp_##S(R a) { return exp(a); }                                                     \
    SK_FN R sk_expm1_##S(R a) { return expm1(a); }                                                 \
    SK_FN R sk_log_##S(R a) { return log(a); }                                                     \
    SK_FN R sk_log1p_##S(R a) { return log1p(a); }                                                 \
    SK_FN R sk_sin_##S(R a) { return sin(a); }                                                     \
    SK_FN R sk_cos_##S(R a) { return cos(a); }                                                     \
    SK_FN R sk_tan_##S(R a) { return tan(a); }                                                     \
    SK_FN R sk_asin_##S(R a) { return asin(a); }                                                   \
    SK_FN R sk_acos_##S(R a) { return acos(a); }                                                   \
    SK_FN R sk_atan_##S(R a) { return atan(a); }                                                   \
    SK_FN R sk_sinh_##S(R a) { return sinh(a); }                                                   \
    SK_FN R sk_cosh_##S(R a) { return cosh(a); }                                                   \
    SK_FN R sk_tanh_##S(R a) { return tanh(a); }                                                   \
    SK_FN R sk_asinh_##S(R a) { return asinh(a); }                                                 \
    SK_FN R sk_acosh_##S(R a) { return acosh(a); }                                                 \
    SK_FN R sk_atanh_##S(R a) { return atanh(a); }                                                 \
    SK_FN R sk_sigmoid_##S(R a) { return (R)1 / ((R)1 + exp(-a)); }                                \
    SK_FN R sk_softplus_##S(R a) { return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }            \
    SK_FN R sk_erf_##S(R a) { return erf(a); }                                                     \
    SK_FN R sk_erfc_##S(R a) { return erfc(a); }                                                   \
    SK_FN R sk_gelu_erf_##S(R a) { return (R)0.5 * a * erfc(-a * (R)0.70710678118654752440); }     \
    SK_FN R sk_gelu_gate_##S(R a)                                                                  \
    {                                                                                              \
        return sk_sigmoid_##S(a * (R)1.59576912160573071176 * ((R)1 + (R)0.044715 * a * a));       \
    }                                                                                              \
    SK_FN R sk_gelu_tanh_##S(R a) { return a * sk_gelu_gate_##S(a); }                              \
    /* Beyond 40 slopes are 0 and 1, for infinities as well. */                                    \
    SK_FN R sk_gelu_bounded_##S(R a) { return a > (R)40 ? (R)40 : a < (R)-40 ? (R)-40 : a; }       \
    SK_FN R sk_gelu_erf_grad_##S(R a, R b)                                                         \
    {                                                                                              \
        b = sk_gelu_bounded_##S(b);                                                                \
        R density = exp((R)-0.5 * b * b) * (R)0.39894228040143267794;                              \
        return a * ((R)0.5 * erfc(-b * (R)0.70710678118654752440) + b * density);                  \
    }                                                                                              \
    SK_FN R sk_gelu_tanh_grad_##S(R a, R b)                                                        \
    {                                                                                              \
        b = sk_gelu_bounded_##S(b);                                                                \
        R s = sk_gelu_gate_##S(b), bent = s * ((R)1 - s) * b * (R)1.59576912160573071176;          \
        return a * (s + bent * ((R)1 + (R)0.134145 * b * b));                                      \
    }                                                                                              \
    SK_FN R sk_floor_##S(R a) { return floor(a); }                                                 \
    SK_FN R sk_ceil_##S(R a) { return ceil(a); }                                                   \
    SK_FN R sk_round_##S(R a) { return rint(a); }                                                  \
    SK_FN R sk_trunc_##S(R a) { return trunc(a); }                                                 \
    SK_FN R sk_relu_##S(R a) { return a < 0 ? (R)0 : a; }                                          \
    SK_FN int sk_isnan_##S(R a) { return isnan(a) != 0; }                                          \
    SK_FN int sk_isinf_##S(R a) { return isinf(a) != 0; }                                          \
    SK_FN int sk_isfinite_##S(R a) { return isfinite(a) != 0; }                                    \
    SK_FN R sk_add_##S(R a, R b) { return a + b; }                                                 \
    SK_FN R sk_sub_##S(R a, R b) { return a - b; }                                                 \
    SK_FN R sk_mul_##S(R a, R b) { return a * b; }                                                 \
    SK_FN R sk_div_##S(R a, R b) { return a / b; }                                                 \
    SK_FN R sk_floordiv_##S(R a, R b) { return floor(a / b); }                                     \
    SK_FN R sk_mod_##S(R a, R b)                                                                   \
    {                                                                                              \
        R r = fmod(a, b);                                                                          \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                           \
    }                                                                                              \
    SK_FN R sk_pow_##S(R a, R b) { return pow(a, b); }                                             \
    SK_FN R sk_max_##S(R a, R b) { return a != a || a > b ? a : b; }                               \
    SK_FN R sk_min_##S(R a, R b) { return a != a || a < b ? a : b; }                               \
    SK_FN R sk_atan2_##S(R a, R b) { return atan2(a, b); }                                         \
    SK_FN int sk_eq_##S(R a, R b) { return a == b; }                                               \
    SK_FN int sk_ne_##S(R a, R b) { return a != b; }                                               \
    SK_FN int sk_lt_##S(R a, R b) { return a < b; }                                                \
    SK_FN int sk_le_##S(R a, R b) { return a <= b; }                                               \
    SK_FN int sk_gt_##S(R a, R b) { return a > b; }                                                \
    SK_FN int sk_ge_##S(R a, R b) { return a >= b; }                                               \
    SK_FN R sk_relu_grad_##S(R a, R b) { return b > 0 ? a : (R)0; }                                \
    SK_FN R sk_relu6_##S(R a) { return a < 0 ? (R)0 : a > 6 ? (R)6 : a; }                          \
    SK_FN R sk_relu6_grad_##S(R a, R b) { return b > 0 && b < 6 ? a : (R)0; }                      \
    SK_FN R sk_add_relu_##S(R a, R b) { return a + b < 0 ? (R)0 : a + b; }                         \
    SK_FN R sk_fma_##S(R a, R b, R c) { return SK_FMA(a, b, c); }                                  \
    SK_FN R sk_fnma_##S(R a, R b, R c) { return SK_FMA(-a, b, c); }                                \
    SK_FN R sk_lerp_##S(R a, R b, R c) { return SK_FMA(b - a, c, a); }                             \
    SK_FN R sk_lerp_square_##S(R a, R b, R c) { return SK_FMA(SK_FMA(b, b, -a), c, a); }           \
    SK_FN R sk_div_sqrt_##S(R a, R b, R c) { return a / (sqrt(b) + c); }                           \
    SK_FN R sk_select_##S(int a, R b, R c) { return a ? b : c; }                                   \
    SK_FN sk_long sk_cast_##S##_i64(R a)                                                           \
    {                                                                                              \
        if (a != a) return 0;                                                                      \
        if (a >= (R)9223372036854775808.0f) return 9223372036854775807L;                           \
        if (a <= (R)-9223372036854775808.0f) return -9223372036854775807L - 1;                     \
        return (sk_long)a;                                                                         \
    }                                                                                              \
    SK_FN int sk_cast_##S##_bool(R a) { return a != 0; }                                           \
    SK_FN R sk_cast_i64_##S(sk_long a) { return (R)a; }                                            \
    SK_FN R sk_cast_bool_##S(int a) { return (R)a; }                                               \
    SK_FN R sk_cast_##S##_##S(R a) { return a; }

SK_REALS(float, f32)
#ifdef SK_HAS_F64
SK_REALS(double, f64)
SK_FN double sk_cast_f32_f64(float a) { return (double)a; }
SK_FN float sk_cast_f64_f32(double a) { return (float)a; }
#endif

/* ---- integers: they wrap around, and division by zero is zero ---- */
SK_FN sk_long sk_wrap_add(sk_long a, sk_long b) { return (sk_long)((sk_ulong)a + (sk_ulong)b); }
SK_FN sk_long sk_wrap_sub(sk_long a, sk_long b) { return (sk_long)((sk_ulong)a - (sk_ulong)b); }
SK_FN sk_long sk_wrap_mul(sk_long a, sk_long b) { return (sk_long)((sk_ulong)a * (sk_ulong)b); }
SK_FN sk_long sk_div_i64(sk_long a, sk_long b)
{
    return b == 0 ? 0 : b == -1 ? sk_wrap_sub(0, a) : a / b;
}
SK_FN sk_long sk_floordiv_i64(sk_long a, sk_long b)
{
    if (b == 0 || b == -1) return sk_div_i64(a, b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
SK_FN sk_long sk_pow_i64(sk_long a, sk_long b)
{
    sk_ulong result = 1, base = (sk_ulong)a;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    if (a == 0 || a == 1) return b == 0 ? 1 : a;
    if (a == -1) return b % 2 ? -1 : 1;
    if (b > 64 && a % 2 == 0) return 0;
    for (; b; b >>= 1) {
        if (b & 1) result *= base;
        base *= base;
    }
    return (sk_long)result;
}
SK_FN sk_long sk_neg_i64(sk_long a) { return sk_wrap_sub(0, a); }
SK_FN sk_long sk_abs_i64(sk_long a) { return a < 0 ? sk_wrap_sub(0, a) : a; }
SK_FN sk_long sk_sign_i64(sk_long a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
SK_FN sk_long sk_square_i64(sk_long a) { return sk_wrap_mul(a, a); }
SK_FN sk_long sk_floor_i64(sk_long a) { return a; }
SK_FN sk_long sk_ceil_i64(sk_long a) { return a; }
SK_FN sk_long sk_round_i64(sk_long a) { return a; }
SK_FN sk_long sk_trunc_i64(sk_long a) { return a; }
SK_FN sk_long sk_relu_i64(sk_long a) { return a < 0 ? 0 : a; }
SK_FN sk_long sk_not_i64(sk_long a) { return ~a; }
SK_FN sk_long sk_add_i64(sk_long a, sk_long b) { return sk_wrap_add(a, b); }
SK_FN sk_long sk_sub_i64(sk_long a, sk_long b) { return sk_wrap_sub(a, b); }
SK_FN sk_long sk_mul_i64(sk_long a, sk_long b) { return sk_wrap_mul(a, b); }
SK_FN sk_long sk_mod_i64(sk_long a, sk_long b)
{
    return sk_wrap_sub(a, sk_wrap_mul(b, sk_floordiv_i64(a, b)));
}
SK_FN sk_long sk_max_i64(sk_long a, sk_long b) { return a > b ? a : b; }
SK_FN sk_long sk_min_i64(sk_long a, sk_long b) { return a < b ? a : b; }
SK_FN sk_long sk_and_i64(sk_long a, sk_long b) { return a & b; }
SK_FN sk_long sk_or_i64(sk_long a, sk_long b) { return a | b; }
SK_FN sk_long sk_xor_i64(sk_long a, sk_long b) { return a ^ b; }
SK_FN sk_long sk_shl_i64(sk_long a, sk_long b)
{
    return b >= 0 && b < 64 ? (sk_long)((sk_ulong)a << b) : 0;
}
SK_FN sk_long sk_shr_i64(sk_long a, sk_long b)
{
    return b >= 0 && b < 64 ? a >> b : a < 0 ? -1 : 0;
}
SK_FN int sk_isnan_i64(sk_long a) { return 0; }
SK_FN int sk_isinf_i64(sk_long a) { return 0; }
SK_FN int sk_isfinite_i64(sk_long a) { return 1; }
SK_FN int sk_eq_i64(sk_long a, sk_long b) { return a == b; }
SK_FN int sk_ne_i64(sk_long a, sk_long b) { return a != b; }
SK_FN int sk_lt_i64(sk_long a, sk_long b) { return a < b; }
SK_FN int sk_le_i64(sk_long a, sk_long b) { return a <= b; }
SK_FN int sk_gt_i64(sk_long a, sk_long b) { return a > b; }
SK_FN int sk_ge_i64(sk_long a, sk_long b) { return a >= b; }
SK_FN sk_long sk_relu_grad_i64(sk_long a, sk_long b) { return b > 0 ? a : 0; }
SK_FN sk_long sk_relu6_i64(sk_long a) { return a < 0 ? 0 : a > 6 ? 6 : a; }
SK_FN sk_long sk_relu6_grad_i64(sk_long a, sk_long b) { return b > 0 && b < 6 ? a : 0; }
SK_FN sk_long sk_add_relu_i64(sk_long a, sk_long b)
{
    return sk_wrap_add(a, b) > 0 ? sk_wrap_add(a, b) : 0;
}
SK_FN sk_long sk_select_i64(int a, sk_long b, sk_long c) { return a ? b : c; }
SK_FN sk_long sk_cast_i64_i64(sk_long a) { return a; }
SK_FN sk_long sk_cast_bool_i64(int a) { return a; }
SK_FN int sk_cast_i64_bool(sk_long a) { return a != 0; }
SK_FN int sk_cast_bool_bool(int a) { return a; }
SK_FN int sk_select_bool(int a, int b, int c) { return a ? b : c; }
