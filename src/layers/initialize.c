/* Initial numbers of weights. Element i of a weight depends on the seed, the stream (which weight) and i alone. */
#include "layers/objects.h"

#include <math.h>
#include <string.h>

/* Where a distribution's numbers go: always float, converted by the tensor when it is wider or shorter. */
typedef struct fans {
    double in, out;
} fans;

static double product(const stk_tensor *t, const stk_ints *axes)
{
    double n = 1;
    for (int32_t i = 0; i < axes->n; i++) {
        int64_t axis = axes->v[i] < 0 ? axes->v[i] + t->rank : axes->v[i];
        if (axis >= 0 && axis < t->rank) n *= (double)t->shape[axis];
    }
    return n;
}

/* Keras' rule: [..., in, out], where the sizes in front are the receptive field of a convolution. */
static fans fans_of(const stk_tensor *t, const stk_initializer *o)
{
    double field = 1;
    if (o->input_axes.n >= 0 && o->output_axes.n >= 0)
        return (fans){product(t, &o->input_axes), product(t, &o->output_axes)};
    if (t->rank < 1) return (fans){1, 1};
    if (t->rank == 1) return (fans){(double)t->shape[0], (double)t->shape[0]};
    for (int32_t i = 0; i + 2 < t->rank; i++) field *= (double)t->shape[i];
    return (fans){field * (double)t->shape[t->rank - 2], field * (double)t->shape[t->rank - 1]};
}

static void fill_scaled(const stk_initializer *o, stk_rng rng, const stk_tensor *t, float *v,
                        int64_t n)
{
    /* The deviation of a normal cut off at two deviations is smaller by this. */
    static const double CUT = 0.87962566103423978;
    fans f = fans_of(t, o);
    double by = o->mode == STK_FAN_IN ? f.in : o->mode == STK_FAN_OUT ? f.out : (f.in + f.out) / 2;
    double scale = o->scale / (by > 1 ? by : 1);
    if (o->distribution == STK_SCALED_NORMAL)
        stk_rng_normal(rng, 0, n, 0, (float)sqrt(scale), v);
    else if (o->distribution == STK_SCALED_UNIFORM)
        stk_rng_uniform(rng, 0, n, (float)-sqrt(3 * scale), (float)sqrt(3 * scale), v);
    else
        stk_rng_truncated(rng, 0, n, 0, (float)(sqrt(scale) / CUT), v);
}

/* Columns of a tall matrix made orthonormal by modified Gram-Schmidt, twice (once leaves an error that grows with the
 * condition of the random matrix). q is column-major. The sign of the diagonal of R is positive by construction, which is
 * what makes the result uniform. */
static void orthonormalise(double *q, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        double *a = q + j * rows;
        for (int64_t pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < j; k++) {
                const double *b = q + k * rows;
                double dot = 0;
                for (int64_t i = 0; i < rows; i++) dot += a[i] * b[i];
                for (int64_t i = 0; i < rows; i++) a[i] -= dot * b[i];
            }
        double norm = 0;
        for (int64_t i = 0; i < rows; i++) norm += a[i] * a[i];
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        for (int64_t i = 0; i < rows; i++) a[i] *= norm;
    }
}

static stk_status fill_orthogonal(const stk_initializer *o, stk_rng rng, const stk_tensor *t,
                                  float *v, int64_t n, stk_error *err)
{
    if (t->rank < 2)
        return stk_fail(err, STK_ERR_SHAPE,
                        "initializer Orthogonal needs at least two axes, the weight has %d",
                        t->rank);
    int64_t columns = t->shape[t->rank - 1], rows = columns ? n / columns : 0;
    int64_t longer = stk_max_i64(rows, columns), shorter = stk_min_i64(rows, columns);
    double *q = stk_calloc((size_t)n, sizeof *q);
    if (!q) return stk_fail_memory(err, "initializer Orthogonal", (size_t)n * sizeof *q);
    stk_rng_normal_f64(rng, 0, n, 0, 1, q);
    orthonormalise(q, longer, shorter);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            v[i * columns + j] =
                (float)(o->gain * (rows >= columns ? q[j * longer + i] : q[i * longer + j]));
    stk_free(q);
    return STK_OK;
}

static stk_status fill_identity(const stk_initializer *o, const stk_tensor *t, float *v,
                                stk_error *err)
{
    if (t->rank != 2)
        return stk_fail(err, STK_ERR_SHAPE,
                        "initializer Identity is for matrices, the weight has %d axes", t->rank);
    for (int64_t i = 0; i < stk_min_i64(t->shape[0], t->shape[1]); i++)
        v[i * t->shape[1] + i] = (float)o->gain;
    return STK_OK;
}

static stk_status fill(const stk_object *object, stk_rng rng, const stk_tensor *t, float *v,
                       int64_t n, stk_error *err)
{
    const stk_initializer *o = object->config;
    if (o->seed != STK_NONE && object->def->kind != STK_INIT_CONSTANT)
        rng = (stk_rng){(uint64_t)o->seed, 0};
    switch ((stk_initializer_kind)object->def->kind) {
    case STK_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++) v[i] = (float)o->value;
        break;
    case STK_INIT_UNIFORM: stk_rng_uniform(rng, 0, n, (float)o->minval, (float)o->maxval, v); break;
    case STK_INIT_NORMAL: stk_rng_normal(rng, 0, n, (float)o->mean, (float)o->stddev, v); break;
    case STK_INIT_TRUNCATED:
        stk_rng_truncated(rng, 0, n, (float)o->mean, (float)o->stddev, v);
        break;
    case STK_INIT_SCALED: fill_scaled(o, rng, t, v, n); break;
    case STK_INIT_ORTHOGONAL: return fill_orthogonal(o, rng, t, v, n, err);
    case STK_INIT_FORGET:
        STK_TRY(fill(o->rest ? o->rest : &stk_zeros, rng, t, v, n, err));
        for (int64_t i = n / 4; i < n / 2; i++) v[i] = 1;
        break;
    case STK_INIT_ROOT:
        STK_TRY(fill(o->rest ? o->rest : &stk_ones, rng, t, v, n, err));
        for (int64_t i = 0; i < n; i++) v[i] = sqrtf(v[i]);
        break;
    case STK_INIT_IDENTITY: memset(v, 0, (size_t)n * sizeof *v); return fill_identity(o, t, v, err);
    }
    return STK_OK;
}

stk_status stk_initialize(const stk_object *initializer, stk_rng rng, stk_tensor *t, stk_error *err)
{
    int64_t n = stk_tensor_count(t);
    if (!initializer) initializer = &stk_zeros;
    if (t->dtype == STK_F32) return fill(initializer, rng, t, t->data, n, err);
    stk_tensor *floats = NULL;
    STK_TRY(stk_tensor_new(STK_F32, t->rank, t->shape, &floats, err));
    stk_status status = fill(initializer, rng, t, floats->data, n, err);
    if (status == STK_OK) status = stk_tensor_copy(t, floats, err);
    stk_tensor_release(floats);
    return status;
}
