/* utf8.h - the bytes of text: one code point at a time. */
#ifndef STK_BASE_UTF8_H
#define STK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed sequence at text (1..4), or 0: stray or missing continuation bytes,
 * overlong forms, surrogates and numbers beyond U+10FFFF are not well-formed.
 *
 *     00..7F                      U+0000  .. U+007F
 *     C2..DF 80..BF               U+0080  .. U+07FF
 *     E0..EF 80..BF 80..BF        U+0800  .. U+FFFF     (E0: second >= A0, ED: second <= 9F)
 *     F0..F4 80..BF 80..BF 80..BF U+10000 .. U+10FFFF   (F0: second >= 90, F4: second <= 8F) */
static inline size_t stk_utf8_length(const char *text, size_t size)
{
    const unsigned char *b = (const unsigned char *)text;
    if (size == 0) return 0;
    if (b[0] < 0x80) return 1;
    if (b[0] < 0xc2 || b[0] > 0xf4) return 0;
    size_t length = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (size < length) return 0;
    for (size_t i = 1; i < length; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) ||
        (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
        return 0;
    return length;
}

/* Writes the code point (valid, not a surrogate) and returns its length. */
static inline size_t stk_utf8_put(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((length == 2 ? 0xc0 : length == 3 ? 0xe0 : 0xf0) | code);
    return length;
}

#endif
