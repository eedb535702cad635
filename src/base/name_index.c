#include "base/name_index.h"

#include "base/memory.h"

#include <string.h>

static uint64_t hash(const char *name, int64_t kind)
{
    uint64_t h = 0xCBF29CE484222325u ^ (uint64_t)kind * 0x9E3779B97F4A7C15u;
    for (; *name; name++) h = (h ^ (uint64_t)(unsigned char)*name) * 0x100000001B3u;
    return h ^ h >> 29;
}

/* The slot of the pair, or the free one where it would stand. */
static stk_name_index_slot *slot_of(stk_name_index_slot *slots, int64_t cap, const char *name,
                                    int64_t kind)
{
    uint64_t mask = (uint64_t)cap - 1, at = hash(name, kind) & mask;
    while (slots[at].name && (slots[at].kind != kind || strcmp(slots[at].name, name)))
        at = (at + 1) & mask;
    return &slots[at];
}

static bool grow(stk_name_index *x)
{
    int64_t cap = x->cap ? 2 * x->cap : 32;
    stk_name_index_slot *slots = stk_calloc((size_t)cap, sizeof *slots);
    if (!slots) return false;
    for (int64_t i = 0; i < x->cap; i++)
        if (x->slots[i].name)
            *slot_of(slots, cap, x->slots[i].name, x->slots[i].kind) = x->slots[i];
    stk_free(x->slots);
    x->slots = slots;
    x->cap = cap;
    return true;
}

bool stk_name_index_put(stk_name_index *x, const char *name, int64_t kind, int64_t number)
{
    if (x->count * 2 >= x->cap && !grow(x)) return false;
    stk_name_index_slot *slot = slot_of(x->slots, x->cap, name, kind);
    if (!slot->name) x->count++;
    *slot = (stk_name_index_slot){slot->name ? slot->name : name, kind, number};
    return true;
}

int64_t stk_name_index_find(const stk_name_index *x, const char *name, int64_t kind)
{
    if (!x->cap) return -1;
    const stk_name_index_slot *slot = slot_of(x->slots, x->cap, name, kind);
    return slot->name ? slot->number : -1;
}

void stk_name_index_release(stk_name_index *x)
{
    stk_free(x->slots);
    *x = (stk_name_index){0};
}
