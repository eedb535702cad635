/* The lists of values inside a Feature: opening, counting, reading; and looking at a record whose
 * schema nobody knows. */
#include "base/memory.h"
#include "data/formats/example.h"

#include <string.h>

static const stk_dtype list_dtype[4] = {STK_DTYPE_COUNT, STK_STRING, STK_F32, STK_I64};

bool stk_value_list_open(stk_wire feature, stk_value_list *out)
{
    *out = (stk_value_list){.dtype = STK_DTYPE_COUNT};
    while (feature.at < feature.end) {
        uint32_t number, type;
        if (!stk_wire_tag(&feature, &number, &type)) return false;
        if (number > 3) {
            if (!stk_wire_skip(&feature, type)) return false;
            continue;
        }
        stk_wire list;
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&feature, &list)) return false;
        if (out->dtype == list_dtype[number]) return false;
        *out = (stk_value_list){list_dtype[number], list};
    }
    return true;
}

static int64_t read_strings(stk_wire w, stk_string *out, int64_t room, int64_t *bytes)
{
    int64_t n = 0, sum = 0;
    uint32_t number, type;
    int more;
    while ((more = stk_wire_next(&w, 1, &number, &type)) > 0) {
        stk_wire value;
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&w, &value)) return -1;
        if (n < room) out[n] = (stk_string){(const char *)value.at, value.end - value.at};
        sum += value.end - value.at;
        n++;
    }
    if (bytes) *bytes = sum;
    return more < 0 ? -1 : n;
}

static int64_t read_floats(stk_wire w, float *out, int64_t room)
{
    int64_t n = 0;
    uint32_t number, type;
    int more;
    while ((more = stk_wire_next(&w, 1, &number, &type)) > 0) {
        stk_wire value;
        if (type == STK_WIRE_4 && w.end - w.at >= 4) {
            value = (stk_wire){w.at, w.at + 4};
            w.at += 4;
        } else if (type != STK_WIRE_BYTES || !stk_wire_bytes(&w, &value)) {
            return -1;
        }
        if ((value.end - value.at) % 4) return -1;
        int64_t many = (value.end - value.at) / 4, take = stk_min_i64(many, room - n);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (take > 0) memcpy(out + n, value.at, (size_t)take * 4);
#else
        for (int64_t i = 0; i < take; i++) {
            uint32_t bits = (uint32_t)value.at[4 * i] | (uint32_t)value.at[4 * i + 1] << 8 |
                            (uint32_t)value.at[4 * i + 2] << 16 |
                            (uint32_t)value.at[4 * i + 3] << 24;
            memcpy(out + n + i, &bits, 4);
        }
#endif
        n += many;
    }
    return more < 0 ? -1 : n;
}

static int64_t read_ints(stk_wire w, int64_t *out, int64_t room)
{
    int64_t n = 0;
    uint32_t number, type;
    int more;
    while ((more = stk_wire_next(&w, 1, &number, &type)) > 0) {
        uint64_t value;
        stk_wire packed;
        if (type == STK_WIRE_VARINT) {
            if (!stk_wire_varint(&w, &value)) return -1;
            if (n < room) out[n] = (int64_t)value;
            n++;
            continue;
        }
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&w, &packed)) return -1;
        for (; packed.at < packed.end; n++) {
            if (!stk_wire_varint(&packed, &value)) return -1;
            if (n < room) out[n] = (int64_t)value;
        }
    }
    return more < 0 ? -1 : n;
}

int64_t stk_value_list_read(const stk_value_list *list, void *out, int64_t room)
{
    if (list->dtype == STK_STRING) return read_strings(list->values, out, room, NULL);
    if (list->dtype == STK_F32) return read_floats(list->values, out, room);
    if (list->dtype == STK_I64) return read_ints(list->values, out, room);
    return 0;
}

int64_t stk_value_list_count(const stk_value_list *list, int64_t *bytes)
{
    int64_t unit = list->dtype == STK_F32 ? 4 : 8;
    if (list->dtype == STK_STRING) return read_strings(list->values, NULL, 0, bytes);
    int64_t n = stk_value_list_read(list, NULL, 0);
    if (bytes) *bytes = n * unit;
    return n;
}

/* ---- looking around ----------------------------------------------------------------------------- */

static stk_status malformed(const void *record, const void *at, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT,
                    "not a tf.train.Example: malformed at byte %lld of the record",
                    (long long)((const uint8_t *)at - (const uint8_t *)record));
}

static bool see_feature(stk_wire feature, stk_feature_seen *seen)
{
    stk_value_list list;
    int64_t bytes = 0;
    if (!stk_value_list_open(feature, &list)) return false;
    int64_t count = stk_value_list_count(&list, &bytes);
    if (count < 0) return false;
    if (list.dtype != STK_DTYPE_COUNT) seen->dtype = list.dtype;
    seen->count += count;
    seen->bytes += bytes;
    return true;
}

static bool see_list(stk_wire message, stk_feature_seen *seen)
{
    uint32_t number, type;
    int more;
    for (seen->list = 0; (more = stk_wire_next(&message, 1, &number, &type)) > 0;) {
        stk_wire feature;
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&message, &feature)) return false;
        if (!see_feature(feature, seen)) return false;
        seen->list++;
    }
    return more == 0;
}

static stk_status visit_map(const void *record, stk_wire map, bool lists, stk_feature_visit visit,
                            void *context, stk_error *err)
{
    while (map.at < map.end) {
        uint32_t number, type;
        stk_wire entry, message;
        const uint8_t *begin = map.at;
        if (!stk_wire_tag(&map, &number, &type)) return malformed(record, begin, err);
        if (number != 1) {
            if (!stk_wire_skip(&map, type)) return malformed(record, begin, err);
            continue;
        }
        stk_feature_seen seen = {.dtype = STK_DTYPE_COUNT, .list = -1};
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&map, &entry) ||
            !stk_wire_entry(entry, &seen.name, &message))
            return malformed(record, begin, err);
        if (lists ? !see_list(message, &seen) : !see_feature(message, &seen))
            return malformed(record, begin, err);
        seen.payload = message.at;
        seen.payload_size = (size_t)(message.end - message.at);
        visit(context, &seen);
    }
    return STK_OK;
}

stk_status stk_example_visit(const void *record, size_t size, bool sequence,
                             stk_feature_visit visit, void *context, stk_error *err)
{
    if (!record && size) return stk_fail(err, STK_ERR_ARGUMENT, "example: the record is NULL");
    stk_wire w = {record, (const uint8_t *)record + size};
    while (w.at < w.end) {
        uint32_t number, type;
        stk_wire map;
        const uint8_t *begin = w.at;
        if (!stk_wire_tag(&w, &number, &type)) return malformed(record, begin, err);
        if (number > (sequence ? 2u : 1u)) {
            if (!stk_wire_skip(&w, type)) return malformed(record, begin, err);
            continue;
        }
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&w, &map))
            return malformed(record, begin, err);
        STK_TRY(visit_map(record, map, number == 2, visit, context, err));
    }
    return STK_OK;
}

stk_status stk_feature_values(const stk_feature_seen *seen, stk_tensor **out, stk_error *err)
{
    *out = NULL;
    stk_value_list list;
    stk_wire message = {seen->payload, (const uint8_t *)seen->payload + seen->payload_size};
    if (seen->list >= 0)
        return stk_fail(err, STK_ERR_ARGUMENT, "feature values: this is a feature list");
    if (!stk_value_list_open(message, &list) || stk_value_list_count(&list, NULL) != seen->count)
        return stk_fail(err, STK_ERR_FORMAT, "feature values: malformed");
    stk_dtype dtype = list.dtype == STK_DTYPE_COUNT ? STK_F32 : list.dtype;
    if (dtype != STK_STRING) {
        STK_TRY(stk_tensor_new(dtype, 1, &seen->count, out, err));
        stk_value_list_read(&list, (*out)->data, seen->count);
        return STK_OK;
    }
    stk_string *items = stk_calloc((size_t)seen->count, sizeof *items);
    if (!items) return stk_fail_memory(err, "values of a feature", (size_t)seen->count * 16);
    stk_value_list_read(&list, items, seen->count);
    stk_status status = stk_tensor_strings(1, &seen->count, items, out, err);
    stk_free(items);
    return status;
}
