/* Reference convolution: the formula of kernels_conv.h, one output element at a time, float32 and float64, sums in
 * double. Slow on purpose; everything else is checked against it. */
#include "device/cpu/cpu.h"

static bool supports(const void *params)
{
    const stk_conv *c = params;
    return c->dtype == STK_F32 || c->dtype == STK_F64;
}

static double at(const stk_conv *c, const void *array, int64_t i)
{
    return c->dtype == STK_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void put(const stk_conv *c, void *array, int64_t i, double value)
{
    if (c->dtype == STK_F64)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

/* Index of a pixel of image n, or of tap t of the kernel; sizes are in s. */
static int64_t pixel(const int64_t s[3], int64_t n, const int64_t at3[3])
{
    return ((n * s[0] + at3[0]) * s[1] + at3[1]) * s[2] + at3[2];
}

static void unravel(const int64_t s[3], int64_t flat, int64_t at3[3])
{
    at3[2] = flat % s[2];
    at3[1] = flat / s[2] % s[1];
    at3[0] = flat / s[2] / s[1];
}

static int64_t volume(const int64_t s[3]) { return s[0] * s[1] * s[2]; }

/* Input pixel that output pixel o sees through tap t; false outside. */
static bool input_of(const stk_conv *c, const int64_t o[3], const int64_t t[3], int64_t i[3])
{
    for (int a = 0; a < 3; a++) {
        i[a] = o[a] * c->stride[a] + t[a] * c->dilation[a] - c->low[a];
        if (i[a] < 0 || i[a] >= c->in[a]) return false;
    }
    return true;
}

/* Output pixel that sees input pixel i through tap t; false when there is none. */
static bool output_of(const stk_conv *c, const int64_t i[3], const int64_t t[3], int64_t o[3])
{
    for (int a = 0; a < 3; a++) {
        int64_t from = i[a] + c->low[a] - t[a] * c->dilation[a];
        if (from < 0 || from % c->stride[a] || from / c->stride[a] >= c->out[a]) return false;
        o[a] = from / c->stride[a];
    }
    return true;
}

/* ---- forward: one image a unit --------------------------------------------------------------------- */

static double forward_one(const stk_conv *c, const void *x, const void *w, int64_t n,
                          const int64_t o[3], int64_t channel)
{
    int64_t t[3], i[3], in = c->ic / c->groups, first = channel / (c->oc / c->groups) * in;
    double sum = 0;
    for (int64_t tap = 0; tap < volume(c->kernel); tap++) {
        unravel(c->kernel, tap, t);
        if (!input_of(c, o, t, i)) continue;
        int64_t from = pixel(c->in, n, i) * c->ic + first;
        for (int64_t k = 0; k < in; k++)
            sum += at(c, x, from + k) * at(c, w, (tap * in + k) * c->oc + channel);
    }
    return sum;
}

static void forward(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_conv *c = launch->params;
    int64_t o[3];
    for (int64_t n = lo; n < hi; n++)
        for (int64_t p = 0; p < volume(c->out); p++)
            for (int64_t channel = 0; channel < c->oc; channel++) {
                unravel(c->out, p, o);
                put(c, launch->arg[2], (n * volume(c->out) + p) * c->oc + channel,
                    forward_one(c, launch->arg[0], launch->arg[1], n, o, channel));
            }
}

/* ---- backward data: one image a unit ----------------------------------------------------------------- */

static double data_one(const stk_conv *c, const void *dy, const void *w, int64_t n,
                       const int64_t i[3], int64_t channel)
{
    int64_t t[3], o[3], in = c->ic / c->groups, out = c->oc / c->groups, first = channel / in * out;
    double sum = 0;
    for (int64_t tap = 0; tap < volume(c->kernel); tap++) {
        unravel(c->kernel, tap, t);
        if (!output_of(c, i, t, o)) continue;
        int64_t from = pixel(c->out, n, o) * c->oc + first;
        int64_t row = (tap * in + channel % in) * c->oc + first;
        for (int64_t k = 0; k < out; k++) sum += at(c, dy, from + k) * at(c, w, row + k);
    }
    return sum;
}

static void backward_data(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_conv *c = launch->params;
    int64_t i[3];
    for (int64_t n = lo; n < hi; n++)
        for (int64_t p = 0; p < volume(c->in); p++)
            for (int64_t channel = 0; channel < c->ic; channel++) {
                unravel(c->in, p, i);
                put(c, launch->arg[2], (n * volume(c->in) + p) * c->ic + channel,
                    data_one(c, launch->arg[0], launch->arg[1], n, i, channel));
            }
}

/* ---- backward weight: one row of weights (a tap and an input channel) a unit ---------------------------- */

static double weight_one(const stk_conv *c, const void *x, const void *dy, int64_t row,
                         int64_t channel)
{
    int64_t t[3], o[3], i[3], in = c->ic / c->groups;
    int64_t from = channel / (c->oc / c->groups) * in + row % in;
    double sum = 0;
    unravel(c->kernel, row / in, t);
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t p = 0; p < volume(c->out); p++) {
            unravel(c->out, p, o);
            if (!input_of(c, o, t, i)) continue;
            sum += at(c, x, pixel(c->in, n, i) * c->ic + from) *
                   at(c, dy, (n * volume(c->out) + p) * c->oc + channel);
        }
    return sum;
}

static void backward_weight(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_conv *c = launch->params;
    for (int64_t row = lo; row < hi; row++)
        for (int64_t channel = 0; channel < c->oc; channel++)
            put(c, launch->arg[2], row * c->oc + channel,
                weight_one(c, launch->arg[0], launch->arg[1], row, channel));
}

static int64_t images(const void *params) { return ((const stk_conv *)params)->n; }
static int64_t weight_rows(const void *params)
{
    const stk_conv *c = params;
    return volume(c->kernel) * (c->ic / c->groups);
}
static uint32_t data_aligned(const void *params)
{
    (void)params;
    return 1u | 4u;
}

const stk_impl stk_impl_conv_ref = {.name = "ref",
                                    .kernel = STK_K_CONV,
                                    .rank = 100,
                                    .supports = supports,
                                    .units = images,
                                    .aligned = data_aligned,
                                    .run = forward};
const stk_impl stk_impl_conv_bwd_data_ref = {.name = "ref",
                                             .kernel = STK_K_CONV_BWD_DATA,
                                             .rank = 100,
                                             .supports = supports,
                                             .units = images,
                                             .aligned = data_aligned,
                                             .run = backward_data};
const stk_impl stk_impl_conv_bwd_weight_ref = {.name = "ref",
                                               .kernel = STK_K_CONV_BWD_WEIGHT,
                                               .rank = 100,
                                               .supports = supports,
                                               .units = weight_rows,
                                               .run = backward_weight};
