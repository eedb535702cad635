/* Numbers and text. Reading takes a fast way where double arithmetic is exact (nearly always) and
 * the C library in the "C" locale otherwise; writing tries precisions until one reads back. */
#define _GNU_SOURCE
#include "base/number.h"

#include "base/memory.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* (locale_t)0 when even that failed: then the program's own locale is used. */
static locale_t plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return c_locale;
}

static double read_slowly(const char *text)
{
    locale_t plain = plain_locale();
    return plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct scan {
    uint64_t digits;  /* the first 19 significant digits as one number */
    int32_t kept;     /* how many */
    bool dropped;     /* there were more, not all zero */
    int64_t exponent; /* of ten, for `digits` */
    bool negative;
} scan;

/* A digit into s; `after` the point it also moves the exponent. */
static void take_digit(scan *s, unsigned digit, bool after)
{
    if (s->kept < 19) {
        s->digits = s->digits * 10 + digit;
        s->kept += s->digits != 0; /* leading zeros are no significant digits */
        if (after) s->exponent--;
    } else {
        s->dropped |= digit != 0;
        if (!after) s->exponent++;
    }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool scan_exponent(const char *at, const char *end, int64_t *exponent)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    int64_t value = 0;
    for (; at < end; at++) {
        if (!is_digit(*at)) return false;
        if (value < 100000000) value = value * 10 + (*at - '0');
    }
    *exponent += negative ? -value : value;
    return true;
}

static bool scan_number(const char *text, size_t size, scan *s)
{
    const char *at = text, *end = text + size;
    *s = (scan){.negative = size > 0 && *text == '-'};
    if (at < end && (*at == '-' || *at == '+')) at++;
    const char *first = at;
    for (; at < end && is_digit(*at); at++) take_digit(s, (unsigned)(*at - '0'), false);
    bool some = at > first;
    if (at < end && *at == '.') {
        const char *point = ++at;
        for (; at < end && is_digit(*at); at++) take_digit(s, (unsigned)(*at - '0'), true);
        some |= at > point;
    }
    if (!some) return false;
    if (at == end) return true;
    return (*at == 'e' || *at == 'E') && scan_exponent(at + 1, end, &s->exponent);
}

/* Whole numbers below 2^53 and powers of ten up to 10^22 are exact doubles, so one multiplication
 * or division of them rounds exactly once. */
static bool exact_value(const scan *s, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (s->dropped || s->digits > (uint64_t)1 << 53) return false;
    if (s->digits == 0)
        *out = 0;
    else if (s->exponent >= 0 && s->exponent <= 22)
        *out = (double)s->digits * power[s->exponent];
    else if (s->exponent < 0 && s->exponent >= -22)
        *out = (double)s->digits / power[-s->exponent];
    else
        return false;
    if (s->negative) *out = -*out;
    return true;
}

bool stk_parse_double(const char *text, size_t size, double *out)
{
    scan s;
    if (!text || !scan_number(text, size, &s)) return false;
    if (exact_value(&s, out)) return true;
    char small[128], *copy = small;
    if (size >= sizeof small && !(copy = stk_malloc(size + 1))) {
        /* No memory for a text this long: the first 19 digits decide, which is off by less than
         * one part in 10^18. */
        snprintf(small, sizeof small, "%s%llue%lld", s.negative ? "-" : "",
                 (unsigned long long)s.digits, (long long)s.exponent);
        *out = read_slowly(small);
        return true;
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    *out = read_slowly(copy);
    if (copy != small) stk_free(copy);
    return true;
}

bool stk_parse_int64(const char *text, size_t size, int64_t *out)
{
    if (!text || size == 0) return false;
    bool negative = *text == '-';
    size_t i = negative || *text == '+';
    if (i == size) return false;
    int64_t value = 0; /* grown downwards: the negative side is one longer */
    for (; i < size; i++) {
        if (!is_digit(text[i])) return false;
        if (!stk_mul_i64(value, 10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(text[i] - '0'), &value))
            return false;
    }
    if (!negative && value == INT64_MIN) return false;
    *out = negative ? value : -value;
    return true;
}

/* ---- writing -------------------------------------------------------------------------------- */

static char *special_text(double value, char text[STK_NUMBER_TEXT])
{
    strcpy(text, value != value ? "nan" : value > 0 ? "inf" : "-inf");
    return text;
}

static void print(char text[STK_NUMBER_TEXT], int digits, double value)
{
    locale_t plain = plain_locale(), was = plain ? uselocale(plain) : (locale_t)0;
    snprintf(text, STK_NUMBER_TEXT, "%.*g", digits, value);
    if (plain) uselocale(was);
}

/* By bits: where subnormals count as zero, they would all be equal. */
static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }
static bool same_float(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Any text of up to 15 digits (6 for float) that stands for a normal number is found again by
 * printing with 15 (6), so shorter ones need to be tried for subnormals only. */
char *stk_double_text(double value, char text[STK_NUMBER_TEXT])
{
    if (!isfinite(value)) return special_text(value, text);
    for (int digits = fabs(value) < 0x1p-1022 ? 1 : 15; digits <= 17; digits++) {
        print(text, digits, value);
        if (digits == 17 || same(read_slowly(text), value)) break;
    }
    return text;
}

char *stk_float_text(float value, char text[STK_NUMBER_TEXT])
{
    if (!isfinite(value)) return special_text((double)value, text);
    for (int digits = fabsf(value) < 0x1p-126f ? 1 : 6; digits <= 9; digits++) {
        print(text, digits, (double)value);
        if (digits == 9 || same_float((float)read_slowly(text), value)) break;
    }
    return text;
}
