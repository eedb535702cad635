/* Parsing Examples against a schema. */
#include "base/memory.h"
#include "base/tensor.h"
#include "data/formats/example.h"

#include <stdio.h>
#include <string.h>

struct stk_example_parser {
    int32_t count;
    bool sequence;
    stk_feature *features; /* names and fallbacks of our own */
    int64_t *items;        /* elements of the shape */
    int32_t *table;        /* open addressing: feature + 1, 0 = free */
    uint32_t mask;
    stk_arena arena;
};

/* ---- the schema --------------------------------------------------------------------------------- */

static uint32_t hash_name(const char *name, size_t size, bool in_list)
{
    uint32_t h = 2166136261u + in_list;
    for (size_t i = 0; i < size; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
    return h ^ h >> 15;
}

static int32_t find_feature(const stk_example_parser *p, stk_string name, bool in_list)
{
    for (uint32_t at = hash_name(name.data, (size_t)name.size, in_list);; at++) {
        int32_t index = p->table[at & p->mask] - 1;
        if (index < 0) return -1;
        const stk_feature *f = &p->features[index];
        if (f->in_list == in_list && strlen(f->name) == (size_t)name.size &&
            memcmp(f->name, name.data, (size_t)name.size) == 0)
            return index;
    }
}

static stk_status check_fallback(const stk_feature *f, int64_t items, stk_error *err)
{
    if (!f->fallback) return STK_OK;
    if (f->kind != STK_FEATURE_FIXED)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "feature \"%s\": only FIXED features have a fallback", f->name);
    int64_t n = stk_tensor_count(f->fallback);
    bool strings = f->dtype == STK_STRING, given = f->fallback->dtype == STK_STRING;
    if (strings != given || (n != 1 && n != items))
        return stk_fail(err, STK_ERR_SHAPE,
                        "feature \"%s\": its fallback is %s; give a scalar, or %lld elements of "
                        "type %s",
                        f->name, STK_TENSOR_TEXT(f->fallback), (long long)items,
                        stk_dtype_name(f->dtype));
    return STK_OK;
}

static stk_status check_feature(const stk_example_parser *p, const stk_feature *f, int64_t *items,
                                stk_error *err)
{
    if (!f->name) return stk_fail(err, STK_ERR_ARGUMENT, "example schema: a name is NULL");
    bool raw = f->kind == STK_FEATURE_RAW;
    bool listed = f->dtype == STK_I64 || f->dtype == STK_F32 || f->dtype == STK_STRING;
    if ((unsigned)f->dtype >= STK_DTYPE_COUNT || (raw ? f->dtype == STK_STRING : !listed))
        return stk_fail(
            err, STK_ERR_DTYPE,
            "feature \"%s\": %s is not stored in Examples; use int64, float32 or string "
            "and cast afterwards, or RAW for the bytes of another type",
            f->name, stk_dtype_name(f->dtype));
    if (f->in_list && (!p->sequence || f->kind == STK_FEATURE_FIXED || raw))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "feature \"%s\": features in lists are SEQUENCE or VAR, and their records "
                        "are SequenceExamples",
                        f->name);
    if (f->kind == STK_FEATURE_SEQUENCE && f->rank >= STK_MAX_RANK)
        return stk_fail(err, STK_ERR_SHAPE, "feature \"%s\": the sequence adds one axis to %d",
                        f->name, f->rank);
    stk_status status = stk_shape_check(f->name, f->rank, f->shape, stk_dtype_size(f->dtype), err);
    if (status != STK_OK) return status;
    *items = 1;
    for (int32_t i = 0; i < f->rank; i++) *items *= f->shape[i];
    if (f->kind == STK_FEATURE_SEQUENCE && *items == 0)
        return stk_fail(err, STK_ERR_SHAPE,
                        "feature \"%s\": items without elements cannot be counted", f->name);
    return check_fallback(f, *items, err);
}

/* A fallback as the parser keeps it: dense, of the feature's dtype. */
static stk_status copy_fallback(stk_feature *f, stk_error *err)
{
    const stk_tensor *from = f->fallback;
    f->fallback = NULL;
    if (!from) return STK_OK;
    stk_tensor *own = NULL;
    if (f->dtype == STK_STRING)
        STK_TRY(stk_tensor_copy_strings(from, &own, err));
    else
        STK_TRY(stk_tensor_cast(from, f->dtype, &own, err));
    f->fallback = own;
    return STK_OK;
}

static stk_status add_feature(stk_example_parser *p, const stk_feature *f, stk_error *err)
{
    int64_t items = 0;
    STK_TRY(check_feature(p, f, &items, err));
    stk_string name = {f->name, (int64_t)strlen(f->name)};
    if (find_feature(p, name, f->in_list) >= 0)
        return stk_fail(err, STK_ERR_ARGUMENT, "example schema: two features are named \"%s\"",
                        f->name);
    stk_feature *own = &p->features[p->count];
    *own = *f;
    own->name = stk_arena_strdup(&p->arena, f->name);
    if (!own->name) return stk_fail_memory(err, f->name, (size_t)name.size + 1);
    STK_TRY(copy_fallback(own, err));
    p->items[p->count] = items;
    uint32_t at = hash_name(name.data, (size_t)name.size, f->in_list);
    while (p->table[at & p->mask]) at++;
    p->table[at & p->mask] = ++p->count;
    return STK_OK;
}

stk_status stk_example_parser_new(int32_t count, const stk_feature *features, bool sequence,
                                  stk_example_parser **out, stk_error *err)
{
    *out = NULL;
    if (count < 0 || count > 1 << 20 || (count > 0 && !features))
        return stk_fail(err, STK_ERR_ARGUMENT, "example schema: %d features", count);
    stk_example_parser *p = stk_calloc(1, sizeof *p);
    if (!p) return stk_fail_memory(err, "example parser", sizeof *p);
    uint32_t slots = 4;
    while (slots < 2 * (uint32_t)count + 2) slots *= 2;
    p->mask = slots - 1;
    p->sequence = sequence;
    p->features = stk_arena_array(&p->arena, (size_t)count, sizeof *p->features);
    p->items = stk_arena_array(&p->arena, (size_t)count, sizeof *p->items);
    p->table = stk_arena_array(&p->arena, slots, sizeof *p->table);
    stk_status status = STK_OK;
    if (!p->features || !p->items || !p->table)
        status = stk_fail_memory(err, "example parser", slots * sizeof *p->table);
    for (int32_t i = 0; status == STK_OK && i < count; i++)
        status = add_feature(p, &features[i], err);
    if (status != STK_OK) {
        stk_example_parser_free(p);
        return status;
    }
    *out = p;
    return STK_OK;
}

void stk_example_parser_free(stk_example_parser *p)
{
    if (!p) return;
    for (int32_t i = 0; p->features && i < p->count; i++)
        stk_tensor_release((stk_tensor *)(uintptr_t)p->features[i].fallback);
    stk_arena_release(&p->arena);
    stk_free(p);
}

int32_t stk_example_parser_count(const stk_example_parser *p) { return p->count; }
const stk_feature *stk_example_parser_feature(const stk_example_parser *p, int32_t index)
{
    return &p->features[index];
}

/* ---- finding ------------------------------------------------------------------------------------ */

static stk_status malformed(const void *record, const uint8_t *at, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "not a tf.train.%s: malformed at byte %lld of the record",
                    "Example", (long long)(at - (const uint8_t *)record));
}

static bool locate_entry(const stk_example_parser *p, stk_wire entry, bool in_list,
                         stk_feature_place *places)
{
    stk_string name;
    stk_wire message;
    if (!stk_wire_entry(entry, &name, &message)) return false;
    int32_t index = find_feature(p, name, in_list);
    if (index >= 0) places[index].message = message;
    return true;
}

stk_status stk_example_locate(const stk_example_parser *p, const void *record, size_t size,
                              stk_feature_place *places, stk_error *err)
{
    memset(places, 0, (size_t)p->count * sizeof *places);
    if (!record) return size ? stk_fail(err, STK_ERR_ARGUMENT, "the record is NULL") : STK_OK;
    stk_wire w = {record, (const uint8_t *)record + size};
    while (w.at < w.end) {
        uint32_t number, type;
        stk_wire map;
        const uint8_t *begin = w.at;
        if (!stk_wire_tag(&w, &number, &type)) return malformed(record, begin, err);
        if (number > (p->sequence ? 2u : 1u)) {
            if (!stk_wire_skip(&w, type)) return malformed(record, begin, err);
            continue;
        }
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&w, &map))
            return malformed(record, begin, err);
        bool in_list = number == 2;
        while (map.at < map.end) {
            stk_wire entry;
            begin = map.at;
            if (!stk_wire_tag(&map, &number, &type)) return malformed(record, begin, err);
            bool good = number != 1 ? stk_wire_skip(&map, type)
                                    : type == STK_WIRE_BYTES && stk_wire_bytes(&map, &entry) &&
                                          locate_entry(p, entry, in_list, places);
            if (!good) return malformed(record, begin, err);
        }
    }
    return STK_OK;
}

/* ---- values ------------------------------------------------------------------------------------- */

static stk_status bad_feature(const stk_feature *f, stk_status code, const char *why,
                              stk_error *err)
{
    return stk_fail(err, code, "feature \"%s\": %s", f->name, why);
}

static stk_status wrong_count(const stk_feature *f, int64_t have, int64_t want, stk_error *err)
{
    return stk_fail(err, STK_ERR_SHAPE,
                    "feature \"%s\": has %lld values, the schema wants %lld; correct the shape, or "
                    "read it as VAR",
                    f->name, (long long)have, (long long)want);
}

/* The list of a feature, with the dtype the schema says. Absent ones have no values. */
static stk_status open_list(const stk_feature *f, stk_wire message, stk_value_list *list,
                            stk_error *err)
{
    if (!stk_value_list_open(message, list))
        return bad_feature(f, STK_ERR_FORMAT, "its value is malformed", err);
    stk_dtype want = f->kind == STK_FEATURE_RAW ? STK_STRING : f->dtype;
    if (list->dtype != STK_DTYPE_COUNT && list->dtype != want)
        return stk_fail(err, STK_ERR_DTYPE,
                        "feature \"%s\": holds %s, the schema says %s; correct the schema", f->name,
                        stk_dtype_name(list->dtype), stk_dtype_name(want));
    return STK_OK;
}

stk_status stk_example_raw(const stk_example_parser *p, int32_t index,
                           const stk_feature_place *place, const void **data, stk_error *err)
{
    const stk_feature *f = &p->features[index];
    stk_value_list list;
    stk_string value = {0};
    if (!place->message.at)
        return bad_feature(f, STK_ERR_FORMAT, "is not in the record and has no fallback", err);
    STK_TRY(open_list(f, place->message, &list, err));
    int64_t n = stk_value_list_read(&list, &value, 1), want = p->items[index];
    if (n < 0) return bad_feature(f, STK_ERR_FORMAT, "its value is malformed", err);
    if (n != 1) return wrong_count(f, n, 1, err);
    want *= stk_dtype_size(f->dtype);
    if (value.size != want)
        return stk_fail(err, STK_ERR_SHAPE,
                        "feature \"%s\": has %lld bytes, %s of its shape needs %lld", f->name,
                        (long long)value.size, stk_dtype_name(f->dtype), (long long)want);
    *data = value.data;
    return STK_OK;
}

static void put_fallback(const stk_feature *f, int64_t items, void *out)
{
    const stk_tensor *t = f->fallback;
    size_t unit = (size_t)stk_dtype_size(f->dtype);
    bool one = stk_tensor_count(t) == 1;
    for (int64_t i = 0; i < items; i++)
        memcpy((char *)out + (size_t)i * unit, (const char *)t->data + (one ? 0 : (size_t)i * unit),
               unit);
}

/* FIXED: exactly items[index] values into out (stk_string for strings, into the record). */
static stk_status read_fixed(const stk_example_parser *p, int32_t index,
                             const stk_feature_place *place, void *out, stk_error *err)
{
    const stk_feature *f = &p->features[index];
    int64_t items = p->items[index], n = 0;
    stk_value_list list = {.dtype = STK_DTYPE_COUNT};
    if (place->message.at) STK_TRY(open_list(f, place->message, &list, err));
    if (list.dtype == STK_DTYPE_COUNT) {
        if (!f->fallback && (items > 0 || !place->message.at))
            return bad_feature(f, STK_ERR_FORMAT, "is not in the record and has no fallback", err);
        if (f->fallback) put_fallback(f, items, out);
        return STK_OK;
    }
    n = stk_value_list_read(&list, out, items);
    if (n < 0) return bad_feature(f, STK_ERR_FORMAT, "its value is malformed", err);
    return n == items ? STK_OK : wrong_count(f, n, items, err);
}

/* A tensor of the shape; strings come through a list of places in the record. */
static stk_status make_fixed(const stk_example_parser *p, int32_t index,
                             const stk_feature_place *place, stk_tensor **out, stk_error *err)
{
    const stk_feature *f = &p->features[index];
    if (f->dtype != STK_STRING) {
        STK_TRY(stk_tensor_raw(f->dtype, f->rank, f->shape, out, err));
        return read_fixed(p, index, place, (*out)->data, err);
    }
    stk_string *items = stk_calloc((size_t)p->items[index] + 1, sizeof *items);
    if (!items) return stk_fail_memory(err, f->name, (size_t)p->items[index] * sizeof *items);
    stk_status status = read_fixed(p, index, place, items, err);
    if (status == STK_OK) status = stk_tensor_strings(f->rank, f->shape, items, out, err);
    stk_free(items);
    return status;
}

/* Values of one list, or of all lists of a FeatureList, behind each other. */
typedef struct gather {
    const stk_feature *feature;
    int64_t lists, longest, total; /* of the FeatureList; one list: 1, n, n */
} gather;

/* The next feature of a FeatureList; false at its end. */
static stk_status next_list(const stk_feature *f, stk_wire *message, stk_value_list *list,
                            bool *end, stk_error *err)
{
    *end = true;
    while (message->at < message->end) {
        uint32_t number, type;
        stk_wire feature;
        bool good = stk_wire_tag(message, &number, &type);
        if (good && number != 1 && stk_wire_skip(message, type)) continue;
        good = good && number == 1 && type == STK_WIRE_BYTES && stk_wire_bytes(message, &feature);
        if (!good) return bad_feature(f, STK_ERR_FORMAT, "its list is malformed", err);
        *end = false;
        return open_list(f, feature, list, err);
    }
    return STK_OK;
}

static stk_status measure(gather *g, stk_wire message, stk_error *err)
{
    const stk_feature *f = g->feature;
    stk_value_list list;
    if (!f->in_list) {
        STK_TRY(open_list(f, message, &list, err));
        g->lists = 1;
        g->total = g->longest = stk_value_list_count(&list, NULL);
        if (g->total < 0) return bad_feature(f, STK_ERR_FORMAT, "its value is malformed", err);
        return STK_OK;
    }
    for (bool end = false;;) {
        STK_TRY(next_list(f, &message, &list, &end, err));
        if (end) return STK_OK;
        int64_t n = stk_value_list_count(&list, NULL);
        if (n < 0) return bad_feature(f, STK_ERR_FORMAT, "its value is malformed", err);
        g->lists++;
        g->total += n;
        g->longest = stk_max_i64(g->longest, n);
    }
}

/* Rows of `stride` values each; what a row lacks stays as it is (zero). Lengths were measured. */
static stk_status collect(const gather *g, stk_wire message, int64_t stride, char *out,
                          stk_error *err)
{
    const stk_feature *f = g->feature;
    size_t unit = (size_t)stk_dtype_size(f->dtype);
    stk_value_list list;
    if (!f->in_list) {
        STK_TRY(open_list(f, message, &list, err));
        stk_value_list_read(&list, out, g->total);
        return STK_OK;
    }
    for (bool end = false;;) {
        STK_TRY(next_list(f, &message, &list, &end, err));
        if (end) return STK_OK;
        stk_value_list_read(&list, out, stride);
        out += (size_t)stride * unit;
    }
}

/* Shape of a VAR or SEQUENCE result. */
static stk_status many_shape(const gather *g, int64_t items, int32_t *rank, int64_t *shape,
                             stk_error *err)
{
    const stk_feature *f = g->feature;
    if (f->kind == STK_FEATURE_VAR) {
        *rank = f->in_list ? 2 : 1;
        shape[0] = f->in_list ? g->lists : g->total;
        shape[1] = g->longest;
        return STK_OK;
    }
    bool even = f->in_list ? g->total == g->lists * items && (g->lists == 0 || g->longest == items)
                           : g->total % items == 0;
    if (!even)
        return stk_fail(
            err, STK_ERR_SHAPE,
            "feature \"%s\": has %lld values, which is no whole number of items of %lld", f->name,
            (long long)g->total, (long long)items);
    *rank = f->rank + 1;
    shape[0] = f->in_list ? g->lists : g->total / items;
    memcpy(shape + 1, f->shape, (size_t)f->rank * sizeof *shape);
    return STK_OK;
}

static stk_status make_many(const stk_example_parser *p, int32_t index,
                            const stk_feature_place *place, stk_tensor **out, stk_error *err)
{
    const stk_feature *f = &p->features[index];
    gather g = {.feature = f};
    if (place->message.at) STK_TRY(measure(&g, place->message, err));
    int32_t rank = 0;
    int64_t shape[STK_MAX_RANK], stride = f->kind == STK_FEATURE_VAR ? g.longest : p->items[index];
    STK_TRY(many_shape(&g, p->items[index], &rank, shape, err));
    if (f->dtype != STK_STRING) {
        STK_TRY(stk_tensor_new(f->dtype, rank, shape, out, err));
        return place->message.at ? collect(&g, place->message, stride, (*out)->data, err) : STK_OK;
    }
    int64_t room = 1;
    for (int32_t i = 0; i < rank; i++)
        if (!stk_mul_i64(room, shape[i], &room)) room = -1;
    stk_string *items = room < 0 ? NULL : stk_calloc((size_t)room + 1, sizeof *items);
    if (!items) return stk_fail_memory(err, f->name, SIZE_MAX);
    for (int64_t i = 0; i < room; i++) items[i].data = "";
    stk_status status =
        place->message.at ? collect(&g, place->message, stride, (char *)items, err) : STK_OK;
    if (status == STK_OK) status = stk_tensor_strings(rank, shape, items, out, err);
    stk_free(items);
    return status;
}

static stk_status make_raw(const stk_example_parser *p, int32_t index,
                           const stk_feature_place *place, stk_tensor **out, stk_error *err)
{
    const stk_feature *f = &p->features[index];
    const void *data = NULL;
    STK_TRY(stk_example_raw(p, index, place, &data, err));
    STK_TRY(stk_tensor_raw(f->dtype, f->rank, f->shape, out, err));
    memcpy((*out)->data, data, (size_t)stk_tensor_bytes(*out));
    return STK_OK;
}

stk_status stk_example_make(const stk_example_parser *p, int32_t index,
                            const stk_feature_place *place, stk_tensor **out, stk_error *err)
{
    stk_feature_kind kind = p->features[index].kind;
    *out = NULL;
    stk_status status = (kind == STK_FEATURE_RAW     ? make_raw
                         : kind == STK_FEATURE_FIXED ? make_fixed
                                                     : make_many)(p, index, place, out, err);
    if (status != STK_OK) {
        stk_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

stk_status stk_example_read(const stk_example_parser *p, int32_t index,
                            const stk_feature_place *place, void *out, stk_error *err)
{
    return read_fixed(p, index, place, out, err);
}

/* ---- whole records ------------------------------------------------------------------------------ */

enum { FEW = 32 };

stk_status stk_example_parse(const stk_example_parser *p, const void *record, size_t size,
                             stk_tensor **out, stk_error *err)
{
    stk_feature_place few[FEW], *places = few;
    memset(out, 0, (size_t)p->count * sizeof *out);
    if (p->count > FEW) places = stk_calloc((size_t)p->count, sizeof *places);
    if (!places) return stk_fail_memory(err, "example", (size_t)p->count * sizeof *places);
    stk_status status = stk_example_locate(p, record, size, places, err);
    for (int32_t i = 0; status == STK_OK && i < p->count; i++)
        status = stk_example_make(p, i, &places[i], &out[i], err);
    for (int32_t i = 0; status != STK_OK && i < p->count; i++) {
        stk_tensor_release(out[i]);
        out[i] = NULL;
    }
    if (places != few) stk_free(places);
    return status;
}

stk_status stk_example_parse_into(const stk_example_parser *p, const void *record, size_t size,
                                  void *const *slots, stk_error *err)
{
    stk_feature_place few[FEW], *places = few;
    if (p->count > FEW) places = stk_calloc((size_t)p->count, sizeof *places);
    if (!places) return stk_fail_memory(err, "example", (size_t)p->count * sizeof *places);
    stk_status status = stk_example_locate(p, record, size, places, err);
    for (int32_t i = 0; status == STK_OK && i < p->count; i++) {
        const stk_feature *f = &p->features[i];
        const void *data = NULL;
        if (f->kind == STK_FEATURE_RAW) {
            status = stk_example_raw(p, i, &places[i], &data, err);
            if (status == STK_OK)
                memcpy(slots[i], data, (size_t)(p->items[i] * stk_dtype_size(f->dtype)));
        } else if (f->kind == STK_FEATURE_FIXED && f->dtype != STK_STRING) {
            status = read_fixed(p, i, &places[i], slots[i], err);
        } else {
            status = bad_feature(f, STK_ERR_UNSUPPORTED,
                                 "only FIXED numbers and RAW bytes have a size known beforehand; "
                                 "use stk_example_parse",
                                 err);
        }
    }
    if (places != few) stk_free(places);
    return status;
}
