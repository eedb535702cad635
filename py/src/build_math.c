/* Builders: arithmetic, reductions, linear algebra, scans. */
#include "front.h"

#include <string.h>

#define BUILD(name) int32_t py_build_##name(py_build *b)
#define ONE(value)  return b->y[0] = (value), 1

/* Integers are divided as floats: 8 and 16 bits as float32, wider ones as float64. */
static stk_val as_real(stk_graph *g, stk_val x)
{
    stk_dtype d = stk_g_dtype(g, x);
    if (py_dtype_kind(d) == 'F') return x;
    return stk_g_cast(g, x, stk_dtype_size(d) <= 2 ? STK_F32 : STK_F64);
}

/* Integers are round already. */
BUILD(round)
{
    int64_t dim[STK_MAX_RANK];
    if (py_dtype_kind(stk_g_dtype(b->g, b->x[0])) == 'F') ONE(stk_g_round(b->g, b->x[0]));
    for (int32_t i = 0; i < stk_g_rank(b->g, b->x[0]); i++) dim[i] = stk_g_dim(b->g, b->x[0], i);
    ONE(stk_g_reshape(b->g, b->x[0], stk_g_rank(b->g, b->x[0]), dim));
}
BUILD(truediv) { ONE(stk_g_div(b->g, as_real(b->g, b->x[0]), as_real(b->g, b->x[1]))); }

/* 0 where the divisor is 0; the divisor is replaced there, so that gradients stay finite. */
BUILD(divide_no_nan)
{
    stk_graph *g = b->g;
    stk_val zero = stk_g_scalar(g, stk_g_dtype(g, b->x[1]), 0);
    stk_val one = stk_g_scalar(g, stk_g_dtype(g, b->x[1]), 1);
    stk_val is_zero = stk_g_eq(g, b->x[1], zero);
    stk_val safe = stk_g_div(g, b->x[0], stk_g_select(g, is_zero, one, b->x[1]));
    ONE(stk_g_select(g, is_zero, zero, safe));
}

BUILD(select) { ONE(stk_g_select(b->g, b->x[0], b->x[1], b->x[2])); }
BUILD(squared_difference) { ONE(stk_g_square(b->g, stk_g_sub(b->g, b->x[0], b->x[1]))); }
BUILD(clip_by_value) { ONE(stk_g_max(b->g, stk_g_min(b->g, b->x[0], b->x[2]), b->x[1])); }
/* Floats become integers as x86 does it: through 32 bits into narrow types, and what does not fit is the least number. */
static stk_val cast_to_integer(stk_graph *g, stk_val x, stk_dtype to)
{
    int64_t bytes = stk_dtype_size(to);
    if (bytes < 4) return stk_g_cast(g, cast_to_integer(g, x, STK_I32), to);
    if (py_dtype_kind(to) != 'I') return stk_g_cast(g, x, to);
    stk_dtype from = stk_g_dtype(g, x);
    double limit = bytes == 8 ? 9223372036854775808.0 : 2147483648.0;
    if (from == STK_F16) return stk_g_cast(g, stk_g_cast(g, x, STK_F32), to);
    stk_val low = stk_g_scalar(g, from, -limit), high = stk_g_scalar(g, from, limit);
    stk_val fits = stk_g_and(g, stk_g_ge(g, x, low), stk_g_lt(g, x, high));
    return stk_g_select(g, fits, stk_g_cast(g, x, to), stk_g_scalar(g, to, -limit));
}
BUILD(cast)
{
    stk_dtype to = (stk_dtype)py_int(b), from = stk_g_dtype(b->g, b->x[0]);
    bool whole = py_dtype_kind(from) == 'F' && strchr("IU", py_dtype_kind(to));
    ONE(whole ? cast_to_integer(b->g, b->x[0], to) : stk_g_cast(b->g, b->x[0], to));
}

/* Powers and products of integers are exact up to 2^53. */
BUILD(pow)
{
    stk_dtype d = stk_g_dtype(b->g, b->x[0]);
    if (py_dtype_kind(d) == 'F') ONE(stk_g_pow(b->g, b->x[0], b->x[1]));
    stk_val x = stk_g_cast(b->g, b->x[0], STK_F64), y = stk_g_cast(b->g, b->x[1], STK_F64);
    stk_val wide = stk_g_cast(b->g, stk_g_round(b->g, stk_g_pow(b->g, x, y)), STK_I64);
    ONE(stk_g_cast(b->g, wide, d));
}

BUILD(add_n)
{
    int64_t n = py_int(b);
    stk_val sum = b->x[0];
    for (int64_t i = 1; i < n; i++) sum = stk_g_add(b->g, sum, b->x[i]);
    ONE(sum);
}

BUILD(xlogy)
{
    stk_graph *g = b->g;
    stk_dtype d = stk_g_dtype(g, b->x[0]);
    stk_val zero = stk_g_scalar(g, d, 0), is_zero = stk_g_eq(g, b->x[0], zero);
    stk_val safe = stk_g_select(g, is_zero, stk_g_scalar(g, d, 1), b->x[1]);
    ONE(stk_g_select(g, is_zero, zero, stk_g_mul(g, b->x[0], stk_g_log(g, safe))));
}

/* Lanczos' series, g = 7, nine terms; reflected below one half. */
BUILD(lgamma_series)
{
    static const double c[] = {676.5203681218851,     -1259.1392167224028,  771.32342877765313,
                               -176.61502916214059,   12.507343278686905,   -0.13857109526572012,
                               9.9843695780195716e-6, 1.5056327351493116e-7};
    stk_graph *g = b->g;
    stk_dtype d = stk_g_dtype(g, b->x[0]);
    stk_val x = b->x[0], half = stk_g_scalar(g, d, 0.5), one = stk_g_scalar(g, d, 1);
    stk_val small = stk_g_lt(g, x, half);
    stk_val z = stk_g_sub(g, stk_g_select(g, small, stk_g_sub(g, one, x), x), one);
    stk_val sum = stk_g_scalar(g, d, 0.99999999999980993);
    for (int i = 0; i < 8; i++)
        sum = stk_g_add(
            g, sum,
            stk_g_div(g, stk_g_scalar(g, d, c[i]), stk_g_add(g, z, stk_g_scalar(g, d, i + 1))));
    stk_val t = stk_g_add(g, z, stk_g_scalar(g, d, 7.5));
    stk_val big = stk_g_sub(g, stk_g_mul(g, stk_g_add(g, z, half), stk_g_log(g, t)), t);
    big =
        stk_g_add(g, stk_g_add(g, big, stk_g_log(g, sum)), stk_g_scalar(g, d, 0.91893853320467274));
    stk_val sine =
        stk_g_abs(g, stk_g_sin(g, stk_g_mul(g, x, stk_g_scalar(g, d, 3.14159265358979312))));
    stk_val safe = stk_g_select(g, small, sine, one);
    stk_val mirrored =
        stk_g_sub(g, stk_g_scalar(g, d, 1.1447298858494002), stk_g_add(g, stk_g_log(g, safe), big));
    ONE(stk_g_select(g, small, mirrored, big));
}

/* Giles' approximation, then two steps of Newton's method. */
BUILD(erfinv)
{
    static const double near[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                  -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                  -0.00417768164,  0.246640727,    1.50140941};
    static const double far[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};
    stk_graph *g = b->g;
    stk_dtype d = stk_g_dtype(g, b->x[0]);
    stk_val x = b->x[0], one = stk_g_scalar(g, d, 1);
    stk_val w =
        stk_g_neg(g, stk_g_log(g, stk_g_mul(g, stk_g_sub(g, one, x), stk_g_add(g, one, x))));
    stk_val is_near = stk_g_lt(g, w, stk_g_scalar(g, d, 5));
    stk_val a = stk_g_sub(g, w, stk_g_scalar(g, d, 2.5));
    stk_val c =
        stk_g_sub(g, stk_g_sqrt(g, stk_g_select(g, is_near, one, w)), stk_g_scalar(g, d, 3));
    stk_val p = stk_g_scalar(g, d, near[0]), q = stk_g_scalar(g, d, far[0]);
    for (int i = 1; i < 9; i++) {
        p = stk_g_add(g, stk_g_mul(g, p, a), stk_g_scalar(g, d, near[i]));
        q = stk_g_add(g, stk_g_mul(g, q, c), stk_g_scalar(g, d, far[i]));
    }
    stk_val y = stk_g_mul(g, stk_g_select(g, is_near, p, q), x);
    stk_val edge = stk_g_ge(g, stk_g_abs(g, x), one);
    for (int i = 0; i < 2; i++) { /* f = erf(y) - x, f' = 2/sqrt(pi) e^(-y^2) */
        stk_val f = stk_g_sub(g, stk_g_erf(g, y), x);
        stk_val slope = stk_g_mul(g, stk_g_exp(g, stk_g_neg(g, stk_g_square(g, y))),
                                  stk_g_scalar(g, d, 1.1283791670955126));
        stk_val flat = stk_g_lt(g, slope, stk_g_scalar(g, d, 1e-30));
        y = stk_g_sub(g, y, stk_g_div(g, f, stk_g_select(g, flat, one, slope)));
    }
    stk_val infinite = stk_g_mul(g, stk_g_sign(g, x), stk_g_scalar(g, d, Py_HUGE_VAL));
    ONE(stk_g_select(g, edge, infinite, y));
}

/* ---- reductions: an empty list of axes leaves the tensor alone, None means all of them ----------------- */

typedef stk_val reduction(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);

/* The mean of integers is the sum divided, rounded towards zero. */
static stk_val mean(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)
{
    stk_dtype d = stk_g_dtype(g, x);
    if (py_dtype_kind(d) == 'F') return stk_g_mean(g, x, n, axes, keep);
    return stk_g_cast(g, stk_g_mean(g, stk_g_cast(g, x, STK_F64), n, axes, keep), d);
}
static stk_val variance(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)
{
    stk_val middle = stk_g_mean(g, x, n, axes, true);
    return stk_g_mean(g, stk_g_square(g, stk_g_sub(g, x, middle)), n, axes, keep);
}
static stk_val deviation(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)
{
    return stk_g_sqrt(g, variance(g, x, n, axes, keep));
}
/* Shifted by the largest finite element, so that nothing overflows. */
static stk_val log_sum_exp(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)
{
    stk_dtype d = stk_g_dtype(g, x);
    stk_val top = stk_g_reduce_max(g, x, n, axes, true);
    top = stk_g_select(g, stk_g_isfinite(g, top), top, stk_g_scalar(g, d, 0));
    stk_val sum = stk_g_sum(g, stk_g_exp(g, stk_g_sub(g, x, top)), n, axes, true);
    stk_val y = stk_g_add(g, stk_g_log(g, sum), top);
    return keep ? y : stk_g_sum(g, y, n, axes, false);
}

/* Over no axes: every element is its own sum and its own mean, and nothing varies. */
static int32_t reduce(py_build *b, reduction *f)
{
    int32_t axes[STK_MAX_RANK];
    int64_t n;
    const int64_t *list = py_list(b, &n);
    bool keep = py_int(b);
    if (n == 0) ONE(f == variance || f == deviation ? stk_g_sub(b->g, b->x[0], b->x[0]) : b->x[0]);
    for (int64_t i = 0; i < n && i < STK_MAX_RANK; i++) axes[i] = (int32_t)list[i];
    ONE(f(b->g, b->x[0], n < 0 ? 0 : (int32_t)n, axes, keep));
}

BUILD(reduce_sum) { return reduce(b, stk_g_sum); }
BUILD(reduce_mean) { return reduce(b, mean); }
BUILD(reduce_prod) { return reduce(b, stk_g_reduce_prod); }
BUILD(reduce_max) { return reduce(b, stk_g_reduce_max); }
BUILD(reduce_min) { return reduce(b, stk_g_reduce_min); }
BUILD(reduce_any) { return reduce(b, stk_g_any); }
BUILD(reduce_all) { return reduce(b, stk_g_all); }
BUILD(reduce_variance) { return reduce(b, variance); }
BUILD(reduce_std) { return reduce(b, deviation); }
BUILD(reduce_logsumexp) { return reduce(b, log_sum_exp); }

static stk_val numeric(py_build *b) /* booleans have no order of their own */
{
    return stk_g_dtype(b->g, b->x[0]) == STK_BOOL ? stk_g_cast(b->g, b->x[0], STK_U8) : b->x[0];
}

BUILD(argmax)
{
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_cast(b->g, stk_g_argmax(b->g, numeric(b), axis), (stk_dtype)py_int(b)));
}
BUILD(argmin)
{
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_cast(b->g, stk_g_argmin(b->g, numeric(b), axis), (stk_dtype)py_int(b)));
}

BUILD(cumsum)
{
    int32_t axis = (int32_t)py_int(b);
    bool exclusive = py_int(b), reverse = py_int(b);
    ONE(stk_g_cumsum(b->g, b->x[0], axis, exclusive, reverse));
}
BUILD(cumprod)
{
    int32_t axis = (int32_t)py_int(b);
    bool exclusive = py_int(b), reverse = py_int(b);
    ONE(stk_g_cumprod(b->g, b->x[0], axis, exclusive, reverse));
}
BUILD(linear_scan)
{
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_linear_scan(b->g, b->x[0], b->x[1], axis, py_int(b)));
}

/* ---- linear algebra ------------------------------------------------------------------------------------ */

/* Whole numbers are multiplied in doubles: sums of products of 8 and 16 bits are exact. The result's type counts before
 * the product is cut to it. */
BUILD(matmul)
{
    bool ta = py_int(b), tb = py_int(b), aa = py_int(b), ab = py_int(b);
    int64_t asked = py_int(b);
    stk_dtype d = stk_g_dtype(b->g, b->x[0]), out = asked < 0 ? d : (stk_dtype)asked;
    stk_dtype work = py_dtype_kind(d) == 'F' ? out : STK_F64;
    stk_val x = stk_g_cast(b->g, b->x[0], work), y = stk_g_cast(b->g, b->x[1], work);
    stk_val product = stk_g_matmul_t(b->g, x, y, ta || aa, tb || ab);
    if (work == out) ONE(product);
    ONE(stk_g_cast(b->g, stk_g_cast(b->g, product, STK_I64), out));
}
BUILD(cross) { ONE(stk_g_cross(b->g, b->x[0], b->x[1])); }

/* The letters of the equation are part of the key, one integer each. */
BUILD(_einsum)
{
    char equation[PY_MOST_INTS];
    int64_t n = py_int(b), size = py_int(b);
    for (int64_t i = 0; i < size; i++) equation[i] = (char)py_int(b);
    equation[size] = 0;
    ONE(stk_g_einsum(b->g, equation, (int32_t)n, b->x));
}

PyObject *py_einsum(PyObject *module, PyObject *args)
{
    (void)module;
    const char *equation;
    PyObject *inputs, *in[32], *result = NULL;
    int64_t ints[PY_MOST_INTS];
    int common = -1;
    Py_ssize_t have = 0;
    if (!PyArg_ParseTuple(args, "sO!", &equation, &PyList_Type, &inputs)) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(inputs);
    size_t size = strlen(equation);
    if (n < 1 || n > 32 || size > PY_MOST_INTS - 3)
        return PyErr_Format(PyExc_ValueError,
                            "einsum: 1 to 32 tensors and an equation of less than %d "
                            "characters",
                            PY_MOST_INTS - 3);
    ints[0] = n;
    ints[1] = (int64_t)size;
    for (size_t i = 0; i < size; i++) ints[2 + i] = equation[i];
    for (; have < n; have++) {
        PyObject *o = PyList_GET_ITEM(inputs, have);
        if (!(in[have] = py_to_tensor(o, -1, common))) break;
        if (common < 0) common = (int)py_tensor_dtype((py_tensor *)in[have]);
    }
    if (have == n)
        result = py_run_row(py_row_find("_einsum"), n, in, (int32_t)size + 2, ints, 0, NULL);
    for (Py_ssize_t i = 0; i < have; i++) Py_DECREF(in[i]);
    return result;
}
