/* csv_number.h - the fast way from digits to numbers.
 *
 * Up to 19 significant digits and an exponent of ten in -27..27 cover what tables hold. The value is
 * digits * 10^e. With |e| <= 22 and digits below 2^53 one multiplication or division of exact doubles
 * rounds right. Otherwise the digits are multiplied by a 128-bit approximation of 5^e, whose
 * error is too small to matter in that range of exponents (Lemire, "Number parsing at a gigabyte per
 * second", 2021). Everything else is left to stk_parse_double. */
#ifndef STK_DATA_CSV_NUMBER_H
#define STK_DATA_CSV_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { STK_FIVES = 27 };
/* 5^e for e in -27..27, scaled so that the top bit is set: high and low 64 bits. */
typedef struct stk_fives {
    uint64_t high[2 * STK_FIVES + 1], low[2 * STK_FIVES + 1];
} stk_fives;
const stk_fives *stk_fives_table(void); /* made once */

static inline bool stk_eight_digits(uint64_t word)
{
    return ((word & 0xF0F0F0F0F0F0F0F0u) |
            (((word + 0x0606060606060606u) & 0xF0F0F0F0F0F0F0F0u) >> 4)) == 0x3333333333333333u;
}
/* Eight ASCII digits, first in the lowest byte, as a number: pairs, then fours, then all. */
static inline uint32_t stk_eight_value(uint64_t word)
{
    word -= 0x3030303030303030u;
    word = word * 10 + (word >> 8);
    const uint64_t mask = 0x000000FF000000FFu;
    return (uint32_t)(((word & mask) * 0x000F424000000064u +
                       ((word >> 16) & mask) * 0x0000271000000001u) >>
                      32);
}

/* digits * 10^exponent, rounded to nearest even; digits != 0, |exponent| <= STK_FIVES. */
static inline double stk_scale_ten(const stk_fives *t, uint64_t digits, int exponent)
{
    int zeros = __builtin_clzll(digits), row = exponent + STK_FIVES;
    uint64_t w = digits << zeros;
    unsigned __int128 product = (unsigned __int128)w * t->high[row];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1FF) == 0x1FF) { /* the lower half of the power may carry into the result */
        uint64_t more = (uint64_t)(((unsigned __int128)w * t->low[row]) >> 64);
        low += more;
        high += low < more;
    }
    int top = (int)(high >> 63);
    uint64_t mantissa = high >> (top + 9);
    /* floor(log2(10^exponent)), kept above 0 for the shift. */
    int log2 = ((217706 * exponent + (1 << 26)) >> 16) - (1 << 10);
    int power = log2 + 63 + top - zeros + 1023;
    /* Exactly between two doubles: to the even one. Only these powers can be that exact. */
    if (low <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 &&
        mantissa << (top + 9) == high)
        mantissa &= ~(uint64_t)1;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >= (uint64_t)2 << 52) {
        mantissa = (uint64_t)1 << 52;
        power++;
    }
    uint64_t bits = (mantissa & ~((uint64_t)1 << 52)) | (uint64_t)power << 52;
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* Digits from at on, added to *digits; returns where they end. */
static inline const char *stk_take_digits(const char *at, const char *end, uint64_t *digits)
{
    uint64_t sum = *digits, word;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8 && (memcpy(&word, at, 8), stk_eight_digits(word))) {
        sum = sum * 100000000 + stk_eight_value(word);
        at += 8;
    }
#else
    (void)word;
#endif
    for (unsigned d; at < end && (d = (unsigned)(unsigned char)*at - '0') < 10; at++)
        sum = sum * 10 + d;
    *digits = sum;
    return at;
}

/* A number at `at`: its value and its end, or NULL when this is not the easy case. */
static inline const char *stk_fast_double(const stk_fives *t, const char *at, const char *end,
                                          double *out)
{
    static const double exact[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = at < end && *at == '-';
    if (negative) at++;
    const char *first = at;
    uint64_t digits = 0;
    at = stk_take_digits(at, end, &digits);
    int64_t count = at - first, exponent = 0;
    if (at < end && *at == '.') {
        const char *point = ++at;
        at = stk_take_digits(at, end, &digits);
        exponent = point - at;
        count += at - point;
    }
    if (count == 0) return NULL;
    if (count > 19) { /* leading zeros are no digits that count */
        for (const char *c = first; c < at && (*c == '0' || *c == '.'); c++) count -= *c == '0';
        if (count > 19) return NULL;
    }
    if (at < end && (*at | 32) == 'e') {
        bool down = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        int64_t power = 0;
        const char *begin = at;
        for (unsigned d; at < end && (d = (unsigned)(unsigned char)*at - '0') < 10; at++)
            if (power < 100000) power = power * 10 + (int64_t)d;
        if (at == begin) return NULL;
        exponent += down ? -power : power;
    }
    double value;
    if (digits == 0) {
        value = 0;
    } else if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        value = exponent < 0 ? (double)digits / exact[-exponent] : (double)digits * exact[exponent];
    } else if (exponent >= -STK_FIVES && exponent <= STK_FIVES) {
        value = stk_scale_ten(t, digits, (int)exponent);
    } else {
        return NULL;
    }
    *out = negative ? -value : value;
    return at;
}

/* A whole number of at most 18 digits: its value and its end, or NULL. */
static inline const char *stk_fast_int(const char *at, const char *end, int64_t *out)
{
    bool negative = at < end && *at == '-';
    if (negative) at++;
    const char *first = at;
    uint64_t digits = 0;
    at = stk_take_digits(at, end, &digits);
    if (at == first || at - first > 18) return NULL;
    *out = negative ? -(int64_t)digits : (int64_t)digits;
    return at;
}

#endif
