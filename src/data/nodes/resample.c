/* rejection_resample - drops elements so that their classes come with given frequencies; gives (class, element). Without
 * the frequencies of the input they are counted as they come by. Decision k is keyed by (seed, epoch, k). */
#include "base/rng.h"
#include "data/core/element_list.h"

#include <stdio.h>
#include <string.h>

typedef struct resample {
    stk_fn *class_of;
    int32_t n;
    double *target, *initial; /* initial NULL: counted */
    uint64_t seed;
} resample;

static void drop(stk_dataset *ds)
{
    resample *c = ds->config;
    stk_fn_release(c->class_of);
    stk_free(c->target);
    stk_free(c->initial);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const resample *c = ds->config;
    snprintf(text, size, "%d classes by %s%s", (int)c->n, c->class_of->name,
             c->initial ? "" : ", counted");
}

typedef struct resampling {
    stk_iter *in;
    int64_t seen, *counts;
} resampling;

static stk_status open(stk_iter *it, stk_error *err)
{
    resampling *own = it->own;
    const resample *c = it->stage->ds->config;
    own->counts = stk_calloc((size_t)c->n, sizeof *own->counts);
    if (!own->counts) return stk_fail_memory(err, "rejection_resample", 64);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static double frequency(const resample *c, const resampling *own, int32_t k)
{
    return c->initial ? c->initial[k] : (double)own->counts[k] / (double)own->seen;
}

/* target/initial of the class over the largest such ratio: the rarest wanted class is never dropped. */
static bool keep(stk_iter *it, int32_t class)
{
    resampling *own = it->own;
    const resample *c = it->stage->ds->config;
    double largest = 0, u;
    for (int32_t k = 0; k < c->n; k++) {
        double f = frequency(c, own, k);
        if (f > 0 && c->target[k] / f > largest) largest = c->target[k] / f;
    }
    double f = frequency(c, own, class);
    double p = largest > 0 && f > 0 ? c->target[class] / f / largest : 0;
    stk_rng rng = {stk_seed_mix(c->seed ^ it->stage->ds->salt, it->epoch), 0x4E5};
    stk_rng_uniform_f64(rng, own->seen, 1, 0, 1, &u);
    return u < p;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    resampling *own = it->own;
    const resample *c = it->stage->ds->config;
    int32_t n = own->in->stage->ds->schema->n;
    for (;;) {
        stk_status status = stk_iter_next(own->in, parts + 1, end, err);
        if (*end) return STK_OK;
        own->seen++;
        STK_TRY(status);
        stk_tensor *class = NULL;
        status = stk_fn_call(c->class_of, it->epoch, own->seen - 1, parts + 1, &class, err);
        int64_t k = status == STK_OK ? (int64_t)stk_tensor_at(class, 0) : 0;
        if (status == STK_OK && (k < 0 || k >= c->n))
            status = stk_fail(err, STK_ERR_RANGE,
                              "rejection_resample: %s gave class %lld, there are classes 0..%d",
                              c->class_of->name, (long long)k, (int)c->n - 1);
        if (status == STK_OK) {
            own->counts[k]++;
            parts[0] = class;
            if (keep(it, (int32_t)k)) return STK_OK;
            class = NULL;
        }
        stk_tensor_release(class);
        stk_parts_release(n + 1, parts);
        STK_TRY(status);
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    resampling *own = it->own;
    const resample *c = it->stage->ds->config;
    stk_state_put(out, own->seen);
    for (int32_t k = 0; k < c->n; k++) stk_state_put(out, own->counts[k]);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    resampling *own = it->own;
    const resample *c = it->stage->ds->config;
    own->seen = stk_state_get_in(in, 0, INT64_MAX);
    for (int32_t k = 0; k < c->n; k++) own->counts[k] = stk_state_get_in(in, 0, INT64_MAX);
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    resampling *own = it->own;
    stk_free(own->counts);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(resampling), open, next, save, restore, close};

const stk_node_kind stk_node_resample = {
    .name = "rejection_resample", .drop = drop, .describe = describe, .walk = &walk};

static double *copy(const double *from, int32_t n)
{
    double *to = stk_calloc((size_t)n, sizeof *to);
    if (to) memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

static stk_status fill(stk_dataset *ds, int32_t n, const double *target, const double *initial,
                       stk_error *err)
{
    resample *c = ds->config;
    c->n = n;
    bool good = n >= 1 && target;
    for (int32_t k = 0; good && k < n; k++) good = target[k] >= 0 && (!initial || initial[k] >= 0);
    if (!good)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "rejection_resample: it takes a function that gives one class number, and "
                        "frequencies that are not negative");
    c->target = copy(target, n);
    c->initial = initial ? copy(initial, n) : NULL;
    if (!c->target || (initial && !c->initial))
        return stk_fail_memory(err, "rejection_resample", 64);
    const stk_schema *both[2] = {c->class_of->output, ds->inputs[0]->schema};
    stk_schema *schema = NULL;
    STK_TRY(stk_schema_join(2, both, &schema, err));
    stk_dataset_set_schema(ds, schema);
    return STK_OK;
}

stk_dataset *stk_data_rejection_resample(stk_dataset *in, const stk_map_fn *class_of, int32_t n,
                                         const double *target, const double *initial, uint64_t seed,
                                         stk_error *err)
{
    stk_fn *f = NULL;
    stk_dataset *ds =
        stk_dataset_asking(&stk_node_resample, in, class_of, STK_I64, sizeof(resample), &f, err);
    if (!ds) return NULL;
    resample *c = ds->config;
    c->class_of = f;
    c->seed = seed;
    return stk_dataset_done(ds, fill(ds, n, target, initial, err));
}
