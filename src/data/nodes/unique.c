/* unique - each element once, at its first appearance. Keeps the bytes of what it has seen, within the RAM budget. */
#include "base/rng.h"
#include "data/core/node.h"
#include "data/core/run.h"

#include <string.h>

typedef struct key {
    uint64_t hash;
    size_t at, size; /* in the store */
} key;

typedef struct seen {
    stk_iter *in;
    stk_state store; /* the keys' bytes, one after the other */
    key *table;      /* open addressing; size 0 = free */
    int64_t count, capacity, ram;
} seen;

static stk_status open(stk_iter *it, stk_error *err)
{
    return stk_iter_open(it->stage->in[0], it->epoch, &((seen *)it->own)->in, err);
}

static uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i + 8 <= size; i += 8) { /* states are whole words */
        uint64_t word;
        memcpy(&word, data + i, 8);
        h = stk_seed_mix(h, word);
    }
    return h;
}

static key *find(const seen *s, uint64_t hash, const uint8_t *data, size_t size)
{
    for (int64_t i = (int64_t)(hash & (uint64_t)(s->capacity - 1));;
         i = (i + 1) & (s->capacity - 1)) {
        key *k = &s->table[i];
        if (!k->size ||
            (k->hash == hash && k->size == size && memcmp(s->store.data + k->at, data, size) == 0))
            return k;
    }
}

static stk_status grow(seen *s, stk_error *err)
{
    if (s->capacity && s->count * 2 < s->capacity) return STK_OK;
    int64_t larger = s->capacity ? s->capacity * 2 : 64;
    key *table = stk_calloc((size_t)larger, sizeof *table), *old = s->table;
    if (!table) return stk_fail_memory(err, "unique", (size_t)larger * sizeof *table);
    int64_t before = s->capacity;
    s->table = table;
    s->capacity = larger;
    for (int64_t i = 0; i < before; i++)
        if (old[i].size) *find(s, old[i].hash, s->store.data + old[i].at, old[i].size) = old[i];
    stk_free(old);
    return STK_OK;
}

/* Enters the key; *fresh when it was not there. */
static stk_status enter(stk_iter *it, const uint8_t *data, size_t size, bool *fresh, stk_error *err)
{
    seen *s = it->own;
    STK_TRY(grow(s, err));
    uint64_t hash = hash_of(data, size);
    key *k = find(s, hash, data, size);
    *fresh = k->size == 0;
    if (!*fresh) return STK_OK;
    int64_t bytes = (int64_t)(size + 2 * sizeof *k);
    STK_TRY(stk_run_take_ram(it->stage->run, "unique", bytes, err));
    s->ram += bytes;
    *k = (key){hash, s->store.size, size};
    s->count++;
    for (size_t i = 0; i < size; i += 8) {
        int64_t word;
        memcpy(&word, data + i, 8);
        stk_state_put(&s->store, word);
    }
    return stk_state_status(&s->store, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    seen *s = it->own;
    int32_t n = it->stage->ds->schema->n;
    for (;;) {
        stk_status status = stk_iter_next(s->in, parts, end, err);
        if (status != STK_OK || *end) return status;
        stk_state bytes = {0};
        bool fresh = false;
        stk_state_put_parts(&bytes, n, parts);
        status = stk_state_status(&bytes, err);
        if (status == STK_OK) status = enter(it, bytes.data, bytes.size, &fresh, err);
        stk_state_release(&bytes);
        if (status == STK_OK && fresh) return STK_OK;
        stk_parts_release(n, parts);
        STK_TRY(status);
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    seen *s = it->own;
    stk_state_put(out, s->count);
    for (int64_t i = 0; i < s->capacity; i++)
        if (s->table[i].size)
            stk_state_put_blob(out, s->store.data + s->table[i].at, s->table[i].size);
    return stk_iter_save(s->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    seen *s = it->own;
    int64_t count = stk_state_get_in(in, 0, INT64_MAX);
    for (int64_t i = 0; i < count && !in->broken; i++) {
        size_t size;
        const uint8_t *data = stk_state_get_blob(in, &size);
        bool fresh;
        if (data && size % 8 == 0 && size)
            STK_TRY(enter(it, data, size, &fresh, err));
        else
            in->broken = true;
    }
    STK_TRY(stk_state_status(in, err));
    return stk_iter_restore(s->in, in, err);
}

static void close(stk_iter *it)
{
    seen *s = it->own;
    stk_run_give_ram(it->stage->run, s->ram);
    stk_state_release(&s->store);
    stk_free(s->table);
    stk_iter_close(s->in);
}

static const stk_walk walk = {sizeof(seen), open, next, save, restore, close};

const stk_node_kind stk_node_unique = {
    .name = "unique", .walk = &walk, .steady = stk_always_steady};

stk_dataset *stk_data_unique(stk_dataset *in, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_unique, 1, &in, 1, err);
    if (!ds) return NULL;
    stk_dataset_in_order(ds);
    if (in->cardinality == 1) ds->cardinality = 1;
    return stk_dataset_done(ds, stk_schema_tensors("unique", in->schema, err));
}
