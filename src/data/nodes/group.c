/* group_by_window - elements that share a key are collected; each `size` of them become a dataset that a function turns
 * into another, whose elements are handed out. At the end the groups that are left follow, oldest key first. */
#include "data/core/element_list.h"

#include <stdio.h>
#include <string.h>

typedef struct group_node {
    stk_fn *key_of;
    stk_group_fn fn;
    char name[48];
    int64_t size;
} group_node;

static void drop(stk_dataset *ds)
{
    group_node *c = ds->config;
    stk_fn_release(c->key_of);
    if (c->fn.release) c->fn.release(c->fn.context);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const group_node *c = ds->config;
    snprintf(text, size, "%s by %s, windows of %lld", c->name, c->key_of->name, (long long)c->size);
}

typedef struct group {
    int64_t key;
    stk_element_list held;
} group;

typedef struct grouping {
    stk_iter *in, *window;    /* window: being handed out, or NULL */
    stk_stage *stage;         /* of it */
    int64_t key;              /* of it */
    stk_element_list members; /* of it: second handles, for saving */
    group *groups;
    int64_t count, capacity, seen, windows;
    bool ended;
    stk_tensor **parts;
} grouping;

static int32_t width_of(const stk_iter *it) { return it->stage->in[0]->ds->schema->n; }

static stk_status open(stk_iter *it, stk_error *err)
{
    grouping *own = it->own;
    own->parts = stk_parts_new(width_of(it));
    own->members = (stk_element_list){.width = width_of(it), .stage = it->stage};
    if (!own->parts) return stk_fail_memory(err, "group_by_window", 64);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static stk_status find_group(stk_iter *it, int64_t key, group **out, stk_error *err)
{
    grouping *own = it->own;
    for (int64_t i = 0; i < own->count; i++) {
        *out = &own->groups[i];
        if ((*out)->key == key) return STK_OK;
    }
    if (!STK_GROW(own->groups, own->count, own->capacity))
        return stk_fail_memory(err, "group_by_window", 64);
    *out = &own->groups[own->count++];
    **out = (group){.key = key, .held = {.width = width_of(it), .stage = it->stage}};
    return STK_OK;
}

/* Makes own->window of own->members, which keep handles of their own. */
static stk_status start_window(stk_iter *it, stk_error *err)
{
    grouping *own = it->own;
    const group_node *c = it->stage->ds->config;
    stk_element_list copy = {.width = own->members.width};
    stk_status status = STK_OK;
    for (int64_t i = 0; i < own->members.count && status == STK_OK; i++) {
        for (int32_t p = 0; p < copy.width; p++)
            own->parts[p] = stk_tensor_retain(own->members.parts[i * copy.width + p]);
        status = stk_element_list_add(&copy, own->parts, err);
        stk_parts_release(copy.width, own->parts);
    }
    stk_dataset *elements =
        status == STK_OK ? stk_data_elements(&copy, it->stage->in[0]->ds->schema, err) : NULL;
    stk_element_list_release(&copy);
    if (!elements) return STK_ERR_MEMORY;
    stk_error error = {.code = STK_OK};
    stk_dataset *given = c->fn.call(c->fn.context, own->key, elements, &error);
    STK_TRY(stk_stage_given(it->stage, c->name, given, &error, &own->stage, err));
    return stk_iter_open(own->stage, stk_seed_mix(it->epoch, (uint64_t)own->windows), &own->window,
                         err);
}

static void end_window(stk_iter *it)
{
    grouping *own = it->own;
    stk_iter_close(own->window);
    stk_stage_release(own->stage);
    own->window = NULL;
    own->stage = NULL;
    stk_element_list_clear(&own->members);
}

static stk_status hand_group(stk_iter *it, group *g, stk_error *err)
{
    grouping *own = it->own;
    stk_element_list members = own->members;
    own->members = g->held;
    g->held = members; /* the old array is used again */
    own->key = g->key;
    own->windows++;
    stk_status status = start_window(it, err);
    if (status != STK_OK) end_window(it);
    return status;
}

/* Reads until a window is full. */
static stk_status collect(stk_iter *it, stk_error *err)
{
    grouping *own = it->own;
    const group_node *c = it->stage->ds->config;
    while (!own->ended) {
        stk_status status = stk_iter_next(own->in, own->parts, &own->ended, err);
        if (own->ended) return STK_OK;
        own->seen++;
        STK_TRY(status);
        stk_tensor *key = NULL;
        group *g = NULL;
        status = stk_fn_call(c->key_of, it->epoch, own->seen - 1, own->parts, &key, err);
        if (status == STK_OK) status = find_group(it, (int64_t)stk_tensor_at(key, 0), &g, err);
        stk_tensor_release(key);
        if (status == STK_OK) status = stk_element_list_add(&g->held, own->parts, err);
        stk_parts_release(width_of(it), own->parts);
        STK_TRY(status);
        if (g->held.count == c->size) return hand_group(it, g, err);
    }
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    grouping *own = it->own;
    for (;;) {
        if (own->window) {
            bool over = false;
            stk_status status = stk_iter_next(own->window, parts, &over, err);
            if (!over) return status;
            end_window(it);
        }
        STK_TRY(collect(it, err));
        if (own->window) continue;
        group *left = NULL;
        for (int64_t i = 0; i < own->count && !left; i++)
            if (own->groups[i].held.count) left = &own->groups[i];
        *end = !left;
        if (*end) return STK_OK;
        STK_TRY(hand_group(it, left, err));
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    grouping *own = it->own;
    stk_state_put(out, own->seen);
    stk_state_put(out, own->windows);
    stk_state_put(out, own->ended);
    stk_state_put(out, own->count);
    for (int64_t i = 0; i < own->count; i++) {
        stk_state_put(out, own->groups[i].key);
        stk_element_list_save(&own->groups[i].held, out);
    }
    STK_TRY(stk_iter_save(own->in, out, err));
    stk_state_put(out, own->window != NULL);
    if (!own->window) return STK_OK;
    stk_state_put(out, own->key);
    stk_element_list_save(&own->members, out);
    return stk_iter_save(own->window, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    grouping *own = it->own;
    own->seen = stk_state_get_in(in, 0, INT64_MAX);
    own->windows = stk_state_get_in(in, 0, INT64_MAX);
    own->ended = stk_state_get_in(in, 0, 1);
    int64_t count = stk_state_get_in(in, 0, INT32_MAX);
    for (int64_t i = 0; i < count; i++) {
        group *g;
        int64_t key = stk_state_get(in);
        STK_TRY(stk_state_status(in, err));
        STK_TRY(find_group(it, key, &g, err));
        STK_TRY(stk_element_list_restore(&g->held, in, err));
    }
    STK_TRY(stk_iter_restore(own->in, in, err));
    if (!stk_state_get_in(in, 0, 1)) return stk_state_status(in, err);
    own->key = stk_state_get(in);
    STK_TRY(stk_element_list_restore(&own->members, in, err));
    STK_TRY(start_window(it, err));
    return stk_iter_restore(own->window, in, err);
}

static void close(stk_iter *it)
{
    grouping *own = it->own;
    end_window(it);
    stk_element_list_release(&own->members);
    for (int64_t i = 0; i < own->count; i++) stk_element_list_release(&own->groups[i].held);
    stk_free(own->groups);
    stk_free(own->parts);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(grouping), open, next, save, restore, close};

static bool steady(const stk_dataset *ds)
{
    const group_node *c = ds->config;
    return stk_fn_is_pure(c->key_of) && (c->fn.flags & STK_MAP_PURE) != 0;
}

const stk_node_kind stk_node_group = {
    .name = "group_by_window", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};

stk_dataset *stk_data_group_by_window(stk_dataset *in, const stk_map_fn *key,
                                      const stk_group_fn *fn, int64_t size, stk_error *err)
{
    bool good = key && fn && fn->call && fn->output && size >= 1;
    if (in && !good)
        (void)stk_fail(
            err, STK_ERR_ARGUMENT,
            "group_by_window: it takes a key function, a function over windows with the schema "
            "of its elements, and a size of 1 or more");
    if (!good) {
        stk_dataset_release(in);
        in = NULL;
    }
    stk_fn *f = NULL;
    stk_dataset *ds =
        stk_dataset_asking(&stk_node_group, in, key, STK_I64, sizeof(group_node), &f, err);
    if (!ds) {
        if (fn && fn->release) fn->release(fn->context);
        return NULL;
    }
    group_node *c = ds->config;
    *c = (group_node){.key_of = f, .fn = *fn, .size = size};
    snprintf(c->name, sizeof c->name, "%s", fn->name ? fn->name : "function");
    return stk_dataset_done(ds, stk_dataset_announce(ds, &c->fn.output, err));
}
