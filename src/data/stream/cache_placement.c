/* cache_placement.c - where a cache belongs, what it would hold, and a dataset with it. Nodes say by themselves whether epochs play a
 * part in what they give (`steady`), functions and generators whether their result hangs on the element alone (STK_MAP_PURE).
 *
 *     files, decode, shuffle, random_flip, batch, prefetch          the cache comes behind decode
 *     files, parse, shuffle, decode, random_flip, batch, prefetch   it comes behind decode too, and shuffle behind it:
 *                                                                   pure functions do not mind in which order they are called
 *
 * Where a plan would join two functions to one with other rounding, the cache does not come between them. */
#include "data/stream/cache_placement.h"

#include "base/clock.h"
#include "data/nodes/cache.h"
#include "data/nodes/kinds.h"
#include "data/nodes/map.h"
#include "data/stream/rewrite.h"
#include "data/core/run.h"

enum { ENTRY = 64, SAMPLES = 24 };
static const double MARGIN = 1.1; /* for sizes that were only sampled */

typedef struct place {
    stk_dataset *behind; /* this node comes the cache; borrowed, NULL: nowhere */
    stk_dataset *moved;  /* this shuffle below it goes behind the cache; NULL: none */
} place;

/* ---- finding it ------------------------------------------------------------------------------------------------ */

static bool has_work(const stk_dataset *ds)
{
    if (ds->kind == &stk_node_cache) return false;
    bool work = !ds->kind->passes;
    for (int32_t i = 0; i < ds->ninputs && !work; i++) work = has_work(ds->inputs[i]);
    return work;
}

static bool is_tail(const stk_dataset *ds)
{
    return ds->kind == &stk_node_batch || ds->kind == &stk_node_prefetch ||
           ds->kind == &stk_node_options;
}

static bool parts_exactly(const stk_dataset *above, const stk_dataset *ds)
{
    if (!above || above->kind != &stk_node_map || ds->kind != &stk_node_map) return true;
    const stk_map_config *b = above->config, *a = ds->config;
    return stk_map_parts_exactly(&a->fns[a->n - 1]->fn, &b->fns[0]->fn);
}

static bool is_keepable(const stk_dataset *ds)
{
    bool good = ds->cardinality != STK_INFINITE && ds->cardinality != 0 && has_work(ds);
    for (int32_t i = 0; i < ds->schema->n; i++) good = good && !ds->schema->fields[i].dataset;
    return good;
}

static bool is_pure_map(const stk_dataset *ds)
{
    const stk_map_config *c = ds->config;
    return ds->kind == &stk_node_map && ds->random && !c->batch && ds->kind->steady(ds);
}

/* Pure maps by number over a shuffle by number over what is steady. */
static place behind_shuffle(stk_dataset *ds)
{
    stk_dataset *above = NULL, *top = NULL;
    for (; ds->ninputs == 1; above = ds, ds = ds->inputs[0]) {
        if (!is_pure_map(ds))
            top = NULL;
        else if (!top && parts_exactly(above, ds))
            top = ds;
        const stk_dataset *in = ds->inputs[0];
        bool moves = top && in->kind == &stk_node_shuffle && in->random &&
                     stk_dataset_is_steady(in->inputs[0]);
        if (moves && is_keepable(top)) return (place){top, ds->inputs[0]};
    }
    return (place){NULL, NULL};
}

static place find_place(stk_dataset *ds)
{
    stk_dataset *at = ds, *above = NULL;
    bool any_order = !stk_stream_options_of(ds).deterministic;
    for (; at->ninputs == 1; above = at, at = at->inputs[0])
        if (!is_tail(at) && stk_dataset_is_steady(at) && parts_exactly(above, at)) break;
    bool steady = stk_dataset_is_steady(at) && is_keepable(at) && at->kind != &stk_node_cache;
    place later = behind_shuffle(ds);
    if (later.behind && !stk_dataset_is_steady(later.moved)) return later; /* nearer to the end */
    if (steady && (at->random || !any_order)) return (place){at, NULL};
    return later;
}

/* ---- making it ------------------------------------------------------------------------------------------------- */

static stk_dataset *map_over(stk_dataset *map, stk_dataset *in, stk_error *err)
{
    const stk_map_config *c = map->config;
    stk_dataset *copy = stk_map_node(in, c->n, c->fns, &c->options, c->batch, err);
    if (copy) copy->salt = map->salt;
    return copy;
}

/* What the cache will be over; a new handle. */
static stk_dataset *source_of(const place *p, stk_dataset *at, stk_error *err)
{
    if (!p->moved) return stk_dataset_retain(p->behind);
    if (at == p->moved) return stk_dataset_retain(at->inputs[0]);
    stk_dataset *in = source_of(p, at->inputs[0], err);
    return in ? map_over(at, in, err) : NULL;
}

static stk_dataset *cached(const place *p, int64_t bytes, stk_error *err)
{
    stk_dataset *cache = stk_data_cache_within(source_of(p, p->behind, err), bytes, err);
    if (!cache) return NULL;
    cache->salt = p->behind->salt; /* as if it were not there */
    if (!p->moved) return cache;
    stk_dataset *shuffle = stk_dataset_over(p->moved, &cache, err);
    if (shuffle) stk_dataset_set_schema(shuffle, stk_schema_retain(p->behind->schema));
    return shuffle;
}

static stk_dataset *with_cache(stk_dataset *ds, const place *p, int64_t bytes, stk_error *err)
{
    if (ds == p->behind) return cached(p, bytes, err);
    stk_dataset *in = with_cache(ds->inputs[0], p, bytes, err);
    return in ? stk_dataset_over(ds, &in, err) : NULL;
}

stk_dataset *stk_data_place_cache(stk_dataset *ds, int64_t bytes, stk_error *err)
{
    if (!ds) return NULL;
    place p = find_place(ds);
    if (!p.behind) return ds;
    stk_dataset *out = with_cache(ds, &p, bytes, err);
    stk_dataset_release(ds);
    return out;
}

/* ---- how much it is ----------------------------------------------------------------------------------------------- */

static double seconds_since(int64_t start) { return (double)(stk_now_ns() - start) * 1e-9; }

static int64_t announced(const stk_schema *schema)
{
    int64_t bytes = 0;
    if (!stk_schema_fixed(schema)) return -1;
    for (int32_t i = 0; i < schema->n; i++)
        if (__builtin_add_overflow(bytes, stk_field_bytes(&schema->fields[i]), &bytes)) return -1;
    return bytes;
}

/* Elements evenly spread over the dataset; those that cannot be made count for nothing. */
static double sampled_by_number(stk_dataset *ds, double seconds, stk_tensor **parts)
{
    int64_t start = stk_now_ns(), n = ds->cardinality, taken = 0;
    double sum = 0;
    for (int64_t i = 0; i < SAMPLES && i < n && (!i || seconds_since(start) < seconds); i++) {
        int64_t index = n <= SAMPLES ? i : (int64_t)((double)i / SAMPLES * (double)n);
        if (stk_dataset_get(ds, 0, index, parts, NULL) != STK_OK) continue;
        sum += (double)stk_cached_bytes(ds->schema->n, parts);
        taken++;
        stk_parts_release(ds->schema->n, parts);
    }
    return taken ? sum / (double)taken : 0;
}

/* The first elements, up to the end when nobody knows where it is. */
static double sampled_in_order(stk_dataset *ds, double seconds, stk_tensor **parts, int64_t *n)
{
    int64_t start = stk_now_ns(), taken = 0;
    double sum = 0;
    bool end = false;
    stk_stream *s = NULL;
    if (stk_dataset_stream(ds, NULL, &s, NULL) != STK_OK) return 0;
    while (!end && (!taken || seconds_since(start) < seconds)) {
        if (stk_stream_next(s, parts, &end, NULL) != STK_OK) break;
        if (end || (*n >= 0 && taken == SAMPLES)) break;
        sum += (double)stk_cached_bytes(ds->schema->n, parts);
        taken++;
        stk_parts_release(ds->schema->n, parts);
    }
    stk_parts_release(ds->schema->n, parts);
    stk_stream_release(s);
    if (*n < 0 && end) *n = taken;
    return taken ? sum / (double)taken : 0;
}

static bool measure(stk_dataset *ds, double seconds, stk_cache_need *out)
{
    int64_t n = ds->cardinality, bytes = announced(ds->schema);
    double each = (double)bytes + ENTRY;
    stk_tensor **parts = stk_parts_new(ds->schema->n);
    if (!parts) return false;
    if (bytes < 0 && ds->random)
        each = MARGIN * sampled_by_number(ds, seconds, parts);
    else if (bytes < 0 || n < 0)
        each = MARGIN * sampled_in_order(ds, seconds, parts, &n);
    stk_free(parts);
    double all = each * (double)n;
    if (n <= 0 || each <= 0 || all > 1e18) return false;
    *out = (stk_cache_need){.elements = n, .bytes = (int64_t)all};
    return true;
}

bool stk_dataset_cache_need(stk_dataset *ds, double seconds, stk_cache_need *out)
{
    place p = ds ? find_place(ds) : (place){NULL, NULL};
    if (!p.behind) return false;
    stk_stream_options o = stk_stream_options_of(ds);
    stk_dataset *source = source_of(&p, p.behind, NULL);
    bool known = source && measure(source, seconds, out);
    out->budget = stk_ram_budget(&o);
    stk_dataset_release(source);
    return known;
}

/* ---- filling it --------------------------------------------------------------------------------------------------- */

static stk_dataset *cache_in(stk_dataset *ds)
{
    while (ds && ds->kind != &stk_node_cache) ds = ds->ninputs ? ds->inputs[0] : NULL;
    return ds;
}

/* Elements that fail are left to those who need them. */
static stk_status fill(stk_dataset *cache, const stk_stream_options *o, double seconds, bool *whole,
                       stk_error *err)
{
    int64_t start = stk_now_ns();
    stk_stream *s = NULL;
    stk_tensor **parts = stk_parts_new(cache->schema->n);
    stk_status status = parts ? stk_dataset_stream(cache, o, &s, err)
                              : stk_fail_memory(err, "cache", (size_t)cache->schema->n * 8);
    int64_t taken = 0;
    for (bool late = false; status == STK_OK && !late && !*whole; taken++) {
        late = taken > 0 && seconds_since(start) > seconds; /* with none nothing can be measured */
        if (late) stk_cache_stop(cache);
        bool end = false;
        if (stk_stream_next(s, parts, &end, NULL) == STK_OK && !end)
            stk_parts_release(cache->schema->n, parts);
        *whole = end && !late;
    }
    stk_stream_release(s);
    stk_free(parts);
    return status;
}

stk_status stk_dataset_fill_placed_cache(stk_dataset *ds, double seconds, int64_t *part,
                                         stk_error *err)
{
    stk_stream_options o = stk_stream_options_of(ds);
    stk_dataset *cache = cache_in(ds);
    bool whole = false;
    *part = 0;
    if (!cache) return STK_OK;
    STK_TRY(fill(cache, &o, seconds, &whole, err));
    if (!whole) *part = stk_cache_settle(cache);
    return STK_OK;
}
