/* Reference twins of gather.c: one element at a time, addressed by its coordinates. */
#include "device/cpu/cpu.h"
#include "device/cpu/index.h"
#include "device/cpu/index_note.h"

#include <string.h>

static int64_t size_of(int32_t dtype) { return stk_dtype_size((stk_dtype)dtype); }

/* out[to] = x[from], or zero when from < 0. */
static void copy_item(void *out, int64_t to, const void *x, int64_t from, int64_t item)
{
    uint8_t *at = (uint8_t *)out + to * item;
    if (from < 0)
        memset(at, 0, (size_t)item);
    else
        memcpy(at, (const uint8_t *)x + from * item, (size_t)item);
}

#define ADD_ITEM(SUFFIX, type, sum)                                                                \
    case STK_##SUFFIX:                                                                             \
        ((type *)out)[to] = (type)((sum)((type *)out)[to] + (sum)((const type *)x)[from]);         \
        break;
static void add_item(void *out, int64_t to, const void *x, int64_t from, int32_t dtype)
{
    switch (dtype) {
        STK_SCATTER_TYPES(ADD_ITEM)
    default: break;
    }
}

static void gather_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_gather_params *p = l->params;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t o = 0; o < p->outer; o++)
            for (int64_t i = 0; i < p->count; i++)
                for (int64_t k = 0; k < p->inner; k++) {
                    int64_t at = stk_index_at(l->arg[1], p->index, b * p->count + i);
                    int64_t block = b * p->outer + o;
                    int64_t from = (block * p->n + at) * p->inner + k;
                    bool outside = at < 0 || at >= p->n;
                    if (outside) stk_index_note_put(l->note, b * p->count + i, &at);
                    copy_item(l->arg[2], (block * p->count + i) * p->inner + k, l->arg[0],
                              outside ? -1 : from, size_of(p->dtype));
                }
}
const stk_impl stk_impl_gather_ref = {
    .name = "ref", .kernel = STK_K_GATHER, .rank = 100, .run = gather_ref};

static void scatter_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_scatter_params *s = l->params;
    const stk_gather_params *p = &s->at;
    void *out = l->arg[s->base ? 3 : 2];
    int64_t all = p->batch * p->outer * p->n * p->inner;
    for (int64_t i = 0; i < all; i++)
        copy_item(out, i, l->arg[2], s->base ? i : -1, size_of(p->dtype));
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t o = 0; o < p->outer; o++)
            for (int64_t i = 0; i < p->count; i++)
                for (int64_t k = 0; k < p->inner; k++) {
                    int64_t at = stk_index_at(l->arg[0], p->index, b * p->count + i);
                    int64_t block = b * p->outer + o, to = (block * p->n + at) * p->inner + k;
                    int64_t from = (block * p->count + i) * p->inner + k;
                    if (at < 0 || at >= p->n) continue;
                    if (s->mode == STK_SCATTER_SET)
                        copy_item(out, to, l->arg[1], from, size_of(p->dtype));
                    else
                        add_item(out, to, l->arg[1], from, p->dtype);
                }
}
const stk_impl stk_impl_scatter_ref = {
    .name = "ref", .kernel = STK_K_SCATTER, .rank = 100, .run = scatter_ref};

static void take_along_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_along_params *p = l->params;
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->count; i++)
            for (int64_t k = 0; k < p->inner; k++) {
                int64_t to = (o * p->count + i) * p->inner + k;
                int64_t at = stk_index_at(l->arg[1], p->index, to);
                int64_t from = (o * p->n + at) * p->inner + k;
                bool outside = at < 0 || at >= p->n;
                if (outside) stk_index_note_put(l->note, to, &at);
                copy_item(l->arg[2], to, l->arg[0], outside ? -1 : from, size_of(p->dtype));
            }
}
const stk_impl stk_impl_take_along_ref = {
    .name = "ref", .kernel = STK_K_TAKE_ALONG, .rank = 100, .run = take_along_ref};

static void put_along_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_along_params *p = l->params;
    for (int64_t i = 0; i < p->outer * p->n * p->inner; i++)
        copy_item(l->arg[2], i, NULL, -1, size_of(p->dtype));
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->count; i++)
            for (int64_t k = 0; k < p->inner; k++) {
                int64_t from = (o * p->count + i) * p->inner + k;
                int64_t at = stk_index_at(l->arg[0], p->index, from);
                if (at < 0 || at >= p->n) continue;
                add_item(l->arg[2], (o * p->n + at) * p->inner + k, l->arg[1], from, p->dtype);
            }
}
const stk_impl stk_impl_put_along_ref = {
    .name = "ref", .kernel = STK_K_PUT_ALONG, .rank = 100, .run = put_along_ref};

static void ravel_index_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_ravel_params *p = l->params;
    int64_t block = 1;
    for (int64_t d = 0; d < p->depth; d++) block *= p->dim[d];
    for (int64_t u = 0; u < p->batch * p->count; u++) {
        int64_t stride = block, sum = u / p->count * block;
        int64_t at[STK_MAX_RANK];
        bool outside = false;
        for (int64_t d = 0; d < p->depth; d++) {
            at[d] = stk_index_at(l->arg[0], (int32_t)p->index, u * p->depth + d);
            outside |= at[d] < 0 || at[d] >= p->dim[d];
            if (outside) continue;
            stride /= p->dim[d];
            sum += at[d] * stride;
        }
        if (outside) stk_index_note_put(l->note, u, at);
        ((int64_t *)l->arg[1])[u] = outside ? -1 : sum;
    }
}
const stk_impl stk_impl_ravel_index_ref = {
    .name = "ref", .kernel = STK_K_RAVEL_INDEX, .rank = 100, .run = ravel_index_ref};

static void one_hot_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)lo, (void)hi, (void)part;
    const stk_one_hot_params *p = l->params;
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t d = 0; d < p->depth; d++)
            for (int64_t i = 0; i < p->inner; i++) {
                int64_t at = stk_index_at(l->arg[0], (int32_t)p->index, o * p->inner + i);
                uint8_t *to = (uint8_t *)l->arg[1] + ((o * p->depth + d) * p->inner + i) * p->item;
                memcpy(to, at == d ? p->on : p->off, (size_t)p->item);
            }
}
const stk_impl stk_impl_one_hot_ref = {
    .name = "ref", .kernel = STK_K_ONE_HOT, .rank = 100, .run = one_hot_ref};
