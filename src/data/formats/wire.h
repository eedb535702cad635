/* wire.h - the protobuf wire format, read strictly.
 *
 *     message   fields behind each other
 *     field     tag, value
 *     tag       varint: number << 3 | type
 *     type 0    varint: 7 bits per byte, lowest first, top bit set on all but the last; <= 10 bytes
 *     type 1    8 bytes        type 5    4 bytes
 *     type 2    varint length, that many bytes (strings, messages, packed numbers)
 *
 * Groups (types 3 and 4) are refused: none of our messages has them. */
#ifndef STK_DATA_WIRE_H
#define STK_DATA_WIRE_H

#include "stoker/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_WIRE_VARINT = 0, STK_WIRE_8 = 1, STK_WIRE_BYTES = 2, STK_WIRE_4 = 5 };

typedef struct stk_wire {
    const uint8_t *at, *end;
} stk_wire;

static inline bool stk_wire_varint(stk_wire *w, uint64_t *value)
{
    const uint8_t *at = w->at;
    if (at < w->end && *at < 0x80) { /* nearly all of them */
        *value = *at;
        w->at = at + 1;
        return true;
    }
    uint64_t sum = 0;
    for (int shift = 0; at < w->end && shift < 64; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) return false; /* more than 64 bits */
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            w->at = at;
            return true;
        }
    }
    return false;
}

static inline bool stk_wire_tag(stk_wire *w, uint32_t *number, uint32_t *type)
{
    uint64_t tag;
    if (!stk_wire_varint(w, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
    *number = (uint32_t)(tag >> 3);
    *type = (uint32_t)(tag & 7);
    return true;
}

static inline bool stk_wire_bytes(stk_wire *w, stk_wire *inside)
{
    uint64_t size;
    if (!stk_wire_varint(w, &size) || size > (uint64_t)(w->end - w->at)) return false;
    *inside = (stk_wire){w->at, w->at + size};
    w->at += size;
    return true;
}

static inline bool stk_wire_skip(stk_wire *w, uint32_t type)
{
    uint64_t number;
    stk_wire inside;
    size_t size = type == STK_WIRE_8 ? 8 : 4;
    if (type == STK_WIRE_VARINT) return stk_wire_varint(w, &number);
    if (type == STK_WIRE_BYTES) return stk_wire_bytes(w, &inside);
    if ((type != STK_WIRE_8 && type != STK_WIRE_4) || (size_t)(w->end - w->at) < size) return false;
    w->at += size;
    return true;
}

/* The next field with a number of at most `most`; others are passed over. 1: here it is, 0: there is no more, -1: malformed. */
static inline int stk_wire_next(stk_wire *w, uint32_t most, uint32_t *number, uint32_t *type)
{
    while (w->at < w->end) {
        if (!stk_wire_tag(w, number, type)) return -1;
        if (*number <= most) return 1;
        if (!stk_wire_skip(w, *type)) return -1;
    }
    return 0;
}

/* The entry of a map: name and message. */
static inline bool stk_wire_entry(stk_wire entry, stk_string *name, stk_wire *message)
{
    uint32_t number, type;
    int more;
    *name = (stk_string){"", 0};
    *message = (stk_wire){entry.end, entry.end};
    while ((more = stk_wire_next(&entry, 2, &number, &type)) > 0) {
        stk_wire value;
        if (type != STK_WIRE_BYTES || !stk_wire_bytes(&entry, &value)) return false;
        if (number == 1) *name = (stk_string){(const char *)value.at, value.end - value.at};
        if (number == 2) *message = value;
    }
    return more == 0;
}

static inline size_t stk_wire_varint_size(uint64_t value)
{
    return (size_t)(64 - __builtin_clzll(value | 1) + 6) / 7;
}

static inline uint8_t *stk_wire_put(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

#endif
