/* The chain kernel said plainly: one element at a time, every operation in double (float results rounded to
 * float) or int64_t with libm. It is what the fast one is tested against; speed is no concern. */
#include "device/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef union cell {
    double f;  /* F32, F64 */
    int64_t i; /* I64, BOOL */
} cell;

static bool is_float(int32_t lane) { return lane == STK_LANE_F32 || lane == STK_LANE_F64; }

static cell of_float(int32_t lane, double v)
{
    return (cell){.f = lane == STK_LANE_F32 ? (double)(float)v : v};
}
static cell of_int(int64_t v) { return (cell){.i = v}; }

/* ---- formulas ------------------------------------------------------------------------------ */

static double float_mod(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Beyond 40 slopes of gelu are 0 and 1, for infinities as well. */
static double gelu_bounded(double x) { return x > 40 ? 40 : x < -40 ? -40 : x; }
static double gelu_erf_slope(double x)
{
    x = gelu_bounded(x);
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}
static double gelu_tanh_slope(double x)
{
    x = gelu_bounded(x);
    const double k = M_2_SQRTPI * M_SQRT1_2, c = 0.044715, t = tanh(k * (x + c * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
}

static double float_value(int32_t code, double a, double b)
{
    switch ((stk_ew)code) {
    case STK_EW_NEG: return -a;
    case STK_EW_ABS: return fabs(a);
    case STK_EW_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
    case STK_EW_SQUARE: return a * a;
    case STK_EW_SQRT: return sqrt(a);
    case STK_EW_RSQRT: return 1 / sqrt(a);
    case STK_EW_RECIPROCAL: return 1 / a;
    case STK_EW_EXP: return exp(a);
    case STK_EW_EXPM1: return expm1(a);
    case STK_EW_LOG: return log(a);
    case STK_EW_LOG1P: return log1p(a);
    case STK_EW_SIN: return sin(a);
    case STK_EW_COS: return cos(a);
    case STK_EW_TAN: return tan(a);
    case STK_EW_ASIN: return asin(a);
    case STK_EW_ACOS: return acos(a);
    case STK_EW_ATAN: return atan(a);
    case STK_EW_SINH: return sinh(a);
    case STK_EW_COSH: return cosh(a);
    case STK_EW_TANH: return tanh(a);
    case STK_EW_ASINH: return asinh(a);
    case STK_EW_ACOSH: return acosh(a);
    case STK_EW_ATANH: return atanh(a);
    case STK_EW_SIGMOID: return 1 / (1 + exp(-a));
    case STK_EW_SOFTPLUS: return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a));
    case STK_EW_ERF: return erf(a);
    case STK_EW_ERFC: return erfc(a);
    case STK_EW_GELU_ERF: return 0.5 * a * erfc(-a * M_SQRT1_2);
    case STK_EW_GELU_TANH:
        return 0.5 * a * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a)));
    case STK_EW_FLOOR: return floor(a);
    case STK_EW_CEIL: return ceil(a);
    case STK_EW_ROUND: return rint(a);
    case STK_EW_TRUNC: return trunc(a);
    case STK_EW_RELU: return a < 0 ? 0 : a;
    case STK_EW_RELU6: return a < 0 ? 0 : a > 6 ? 6 : a;
    case STK_EW_ADD: return a + b;
    case STK_EW_SUB: return a - b;
    case STK_EW_MUL: return a * b;
    case STK_EW_DIV: return a / b;
    case STK_EW_FLOORDIV: return floor(a / b);
    case STK_EW_MOD: return float_mod(a, b);
    case STK_EW_POW: return pow(a, b);
    case STK_EW_MAX: return isnan(a) || a > b ? a : b;
    case STK_EW_MIN: return isnan(a) || a < b ? a : b;
    case STK_EW_ATAN2: return atan2(a, b);
    case STK_EW_ADD_RELU: return a + b < 0 ? 0 : a + b;
    case STK_EW_RELU_GRAD: return b > 0 ? a : 0;
    case STK_EW_RELU6_GRAD: return b > 0 && b < 6 ? a : 0;
    case STK_EW_GELU_ERF_GRAD: return a * gelu_erf_slope(b);
    case STK_EW_GELU_TANH_GRAD: return a * gelu_tanh_slope(b);
    default: return NAN;
    }
}

static int64_t int_div(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t int_floordiv(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return int_div(a, b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t int_pow(int64_t a, int64_t b)
{
    uint64_t result = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    if (a == 0 || a == 1) return b == 0 ? 1 : a;
    if (a == -1) return b % 2 ? -1 : 1;
    if (b > 64 && a % 2 == 0) return 0; /* all 64 bits shifted out */
    for (uint64_t base = (uint64_t)a; b; b >>= 1, base *= base)
        if (b & 1) result *= base;
    return (int64_t)result;
}

static int64_t int_value(int32_t code, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch ((stk_ew)code) {
    case STK_EW_NEG: return (int64_t)(0 - ua);
    case STK_EW_ABS: return a < 0 ? (int64_t)(0 - ua) : a;
    case STK_EW_SIGN: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case STK_EW_SQUARE: return (int64_t)(ua * ua);
    case STK_EW_FLOOR:
    case STK_EW_CEIL:
    case STK_EW_ROUND:
    case STK_EW_TRUNC: return a;
    case STK_EW_RELU: return a < 0 ? 0 : a;
    case STK_EW_RELU6: return a < 0 ? 0 : a > 6 ? 6 : a;
    case STK_EW_NOT: return ~a;
    case STK_EW_ADD: return (int64_t)(ua + ub);
    case STK_EW_SUB: return (int64_t)(ua - ub);
    case STK_EW_MUL: return (int64_t)(ua * ub);
    case STK_EW_DIV: return int_div(a, b);
    case STK_EW_FLOORDIV: return int_floordiv(a, b);
    case STK_EW_MOD: return (int64_t)(ua - ub * (uint64_t)int_floordiv(a, b));
    case STK_EW_POW: return int_pow(a, b);
    case STK_EW_MAX: return a > b ? a : b;
    case STK_EW_MIN: return a < b ? a : b;
    case STK_EW_AND: return a & b;
    case STK_EW_OR: return a | b;
    case STK_EW_XOR: return a ^ b;
    case STK_EW_SHL: return ub < 64 ? (int64_t)(ua << ub) : 0;
    case STK_EW_SHR: return ub < 64 ? a >> b : a < 0 ? -1 : 0;
    case STK_EW_RELU_GRAD: return b > 0 ? a : 0;
    case STK_EW_RELU6_GRAD: return b > 0 && b < 6 ? a : 0;
    case STK_EW_ADD_RELU: return (int64_t)(ua + ub) > 0 ? (int64_t)(ua + ub) : 0;
    default: return 0;
    }
}

/* -1 below, 0 equal, 1 above, 2 not comparable. */
static int order(bool floats, cell a, cell b)
{
    if (!floats) return a.i < b.i ? -1 : a.i > b.i;
    if (isnan(a.f) || isnan(b.f)) return 2;
    return a.f < b.f ? -1 : a.f > b.f;
}

/* Operations with a truth value as result; -1 when `code` is none of them. */
static int truth(int32_t code, bool floats, cell a, cell b)
{
    int o = order(floats, a, b);
    switch ((stk_ew)code) {
    case STK_EW_EQ: return o == 0;
    case STK_EW_NE: return o != 0;
    case STK_EW_LT: return o == -1;
    case STK_EW_LE: return o == -1 || o == 0;
    case STK_EW_GT: return o == 1;
    case STK_EW_GE: return o == 1 || o == 0;
    case STK_EW_ISNAN: return floats && isnan(a.f);
    case STK_EW_ISINF: return floats && isinf(a.f);
    case STK_EW_ISFINITE: return !floats || isfinite(a.f);
    default: return -1;
    }
}

static cell cast(int32_t from, int32_t to, cell a)
{
    if (to == STK_LANE_BOOL) return of_int(is_float(from) ? a.f != 0 : a.i != 0);
    if (is_float(to) && is_float(from)) return of_float(to, a.f);
    if (to == STK_LANE_F32) return of_float(to, (double)(float)a.i); /* one rounding, not two */
    if (to == STK_LANE_F64) return of_float(to, (double)a.i);
    return is_float(from) ? of_int(stk_load_i64(STK_F64, &a.f)) : a;
}

/* Operations with three operands; false when `code` is none of them. */
static bool three(int32_t code, double a, double b, double c, double *y)
{
    switch ((stk_ew)code) {
    case STK_EW_FMA: *y = a * b + c; return true;
    case STK_EW_FNMA: *y = c - a * b; return true;
    case STK_EW_LERP: *y = a + (b - a) * c; return true;
    case STK_EW_LERP_SQUARE: *y = a + (b * b - a) * c; return true;
    case STK_EW_DIV_SQRT: *y = a / (sqrt(b) + c); return true;
    default: return false;
    }
}

static cell apply(const stk_chain_op *op, cell a, cell b, cell c)
{
    bool floats = is_float(op->lane);
    if (op->code == STK_EW_SELECT) return a.i ? b : c;
    if (op->code == STK_EW_CAST) return cast(op->from, op->lane, a);
    int yes = truth(op->code, floats, a, b);
    if (yes >= 0) return of_int(yes);
    double y;
    if (floats && three(op->code, a.f, b.f, c.f, &y)) return of_float(op->lane, y);
    if (floats) return of_float(op->lane, float_value(op->code, a.f, b.f));
    int64_t v = int_value(op->code, a.i, b.i);
    return of_int(op->lane == STK_LANE_BOOL ? v & 1 : v);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int64_t position(const stk_chain *p, const stk_chain_input *in, int64_t i)
{
    if (in->access == STK_ACCESS_DENSE) return i;
    if (in->access == STK_ACCESS_SCALAR) return 0;
    if (in->access == STK_ACCESS_ROW) return p->rank ? i % p->dim[p->rank - 1] : 0;
    int64_t at = 0;
    for (int32_t d = p->rank - 1; d >= 0; d--) {
        at += i % p->dim[d] * in->stride[d];
        i /= p->dim[d];
    }
    return at;
}

static void element(const stk_chain *p, void *const *arg, int64_t i)
{
    cell reg[STK_CHAIN_REGS] = {{0}};
    for (int32_t k = 0; k < p->inputs; k++) {
        const stk_chain_input *in = &p->input[k];
        stk_dtype dtype = (stk_dtype)in->dtype;
        const char *at = (const char *)arg[k] + position(p, in, i) * stk_dtype_size(dtype);
        if (is_float((int32_t)stk_lane_of(dtype)))
            reg[k].f = stk_load_f64(dtype, at);
        else
            reg[k].i = stk_load_i64(dtype, at);
    }
    for (int32_t k = 0; k < p->constants; k++) {
        const stk_chain_const *c = &p->constant[k];
        reg[c->reg] = is_float(c->lane)          ? of_float(c->lane, c->value)
                      : c->lane == STK_LANE_BOOL ? of_int(c->value != 0)
                                                 : of_int((int64_t)c->value);
    }
    for (int32_t k = 0; k < p->ops; k++) {
        const stk_chain_op *op = &p->op[k];
        int arity = stk_ew_arity((stk_ew)op->code);
        reg[op->dst] =
            apply(op, reg[op->a], reg[arity > 1 ? op->b : op->a], reg[arity > 2 ? op->c : op->a]);
    }
    for (int32_t k = 0; k < p->outputs; k++) {
        stk_dtype dtype = (stk_dtype)p->output[k].dtype;
        char *at = (char *)arg[p->inputs + k] + i * stk_dtype_size(dtype);
        if (is_float((int32_t)stk_lane_of(dtype)))
            stk_store_f64(dtype, at, reg[p->output[k].reg].f);
        else
            stk_store_i64(dtype, at, reg[p->output[k].reg].i);
    }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_chain *p = launch->params;
    void **arg = launch->arg;
    int64_t base = 0;
    for (int32_t s = 0; s < p->segments; s++) {
        int64_t first = stk_max_i64(lo - base, 0), end = stk_min_i64(hi - base, p->count[s]);
        for (int64_t i = first; i < end; i++) element(p, arg, i);
        base += p->count[s];
        arg += p->inputs + p->outputs;
    }
}

static int64_t units(const void *params)
{
    const stk_chain *p = params;
    int64_t total = 0;
    for (int32_t i = 0; i < p->segments; i++) total += p->count[i];
    return total;
}

const stk_impl stk_impl_chain_ref = {
    .name = "ref", .kernel = STK_K_CHAIN, .rank = 100, .units = units, .run = run};
