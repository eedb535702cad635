/* generator - elements from a callback of the user's. A saved position is a count; it is walked to. */
#include "data/core/node.h"

#include <stdio.h>

typedef struct source {
    stk_generator g;
    char name[48];
} source;

static void drop(stk_dataset *ds)
{
    source *c = ds->config;
    if (c->g.release) c->g.release(c->g.context);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    snprintf(text, size, "%s", ((const source *)ds->config)->name);
}

typedef struct walking {
    void *walk;
    bool open, ended;
    int64_t count;
} walking;

static stk_status open(stk_iter *it, stk_error *err)
{
    walking *own = it->own;
    const source *c = it->stage->ds->config;
    if (c->g.open) STK_TRY(c->g.open(c->g.context, &own->walk, err));
    own->open = true;
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    walking *own = it->own;
    const source *c = it->stage->ds->config;
    *end = own->ended;
    if (own->ended) return STK_OK;
    stk_status status = c->g.next(c->g.context, own->walk, parts, &own->ended, err);
    *end = own->ended;
    if (own->ended) return status;
    own->count++;
    if (status == STK_OK) status = stk_schema_check(it->stage->ds->schema, parts, err);
    if (status != STK_OK) stk_parts_release(it->stage->ds->schema->n, parts);
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    stk_state_put(out, ((walking *)it->own)->count);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    int64_t count = stk_state_get_in(in, 0, INT64_MAX);
    STK_TRY(stk_state_status(in, err));
    bool end;
    return stk_iter_skip(it, count, &end, err);
}

static void close(stk_iter *it)
{
    walking *own = it->own;
    const source *c = it->stage->ds->config;
    if (own->open && c->g.close) c->g.close(c->g.context, own->walk);
}

static const stk_walk walk = {sizeof(walking), open, next, save, restore, close};

static bool steady(const stk_dataset *ds)
{
    return (((const source *)ds->config)->g.flags & STK_MAP_PURE) != 0;
}

const stk_node_kind stk_node_generator = {
    .name = "generator", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};

stk_dataset *stk_data_generator(const stk_generator *g, stk_error *err)
{
    if (!g || !g->next || !g->output) {
        (void)stk_fail(err, STK_ERR_ARGUMENT,
                       "generator: it needs a next function and the schema of its elements");
        if (g && g->release) g->release(g->context);
        return NULL;
    }
    stk_schema *schema = NULL;
    stk_dataset *ds = NULL;
    if (stk_schema_new(g->output->n, g->output->fields, g->output->structure, &schema, err) ==
        STK_OK)
        ds = stk_dataset_make(&stk_node_generator, 0, NULL, sizeof(source), err);
    if (!ds) {
        stk_schema_release(schema);
        if (g->release) g->release(g->context);
        return NULL;
    }
    source *c = ds->config;
    c->g = *g;
    snprintf(c->name, sizeof c->name, "%s", g->name ? g->name : "callback");
    c->g.name = c->name;
    c->g.output = schema;
    stk_dataset_set_schema(ds, schema);
    ds->cardinality = g->cardinality < 0 ? STK_UNKNOWN : g->cardinality;
    return ds;
}
