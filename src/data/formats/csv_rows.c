/* Rows of a CSV file into columns. Numbers are read where they stand, without cutting the row into
 * fields first; only what that fast way does not know is looked at again, slowly. */
#include "base/dtype.h"
#include "base/float_env.h"
#include "base/number.h"
#include "data/formats/csv.h"

#include <math.h>
#include <pthread.h>
#include <strings.h>

/* ---- powers of five ----------------------------------------------------------------------------- */

static stk_fives fives;
static pthread_once_t fives_once = PTHREAD_ONCE_INIT;

/* floor(2^bits / divisor) + 1, of which the highest 128 bits are kept; limb by limb. */
static unsigned __int128 reciprocal(uint64_t divisor)
{
    int length = 64 - __builtin_clzll(divisor - 1), bits = length + 127;
    unsigned __int128 rest = 0, quotient = 0;
    for (int i = bits; i >= 0; i--) {
        rest = rest * 2 + (i == bits);
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    return quotient + 1;
}

static void make_fives(void)
{
    uint64_t power = 1;
    for (int e = 0; e <= STK_FIVES; e++, power *= 5) {
        unsigned __int128 up = (unsigned __int128)power << 64 << __builtin_clzll(power);
        unsigned __int128 down = e ? reciprocal(power) : up;
        fives.high[STK_FIVES + e] = (uint64_t)(up >> 64);
        fives.low[STK_FIVES + e] = (uint64_t)up;
        fives.high[STK_FIVES - e] = (uint64_t)(down >> 64);
        fives.low[STK_FIVES - e] = (uint64_t)down;
    }
}

const stk_fives *stk_fives_table(void)
{
    pthread_once(&fives_once, make_fives);
    return &fives;
}

/* ---- one field ---------------------------------------------------------------------------------- */

static bool ends_field(const stk_csv_plan *plan, const char *at, const char *end)
{
    if (at == end || *at == plan->delimiter || *at == '\n') return true;
    return *at == '\r' && (at + 1 == end || at[1] == '\n');
}

static const char *field_end(const stk_csv_plan *plan, const char *at, const char *end)
{
    while (!ends_field(plan, at, end)) at++;
    return at;
}

bool stk_csv_is_blank(const char *at, const char *end)
{
    return at == end || *at == '\n' || (*at == '\r' && (at + 1 == end || at[1] == '\n'));
}

/* Behind the closing quote of the quoted text that begins at `at`; NULL when it is not closed. */
static const char *closing_quote(const char *at, const char *end, bool *doubled)
{
    for (at++; at < end; at += 2) {
        at = memchr(at, '"', (size_t)(end - at));
        if (!at) return NULL;
        if (at + 1 == end || at[1] != '"') return at + 1;
        *doubled = true;
    }
    return NULL;
}

stk_status stk_csv_field(const stk_csv_plan *plan, const char *at, const char *end,
                         stk_arena *arena, stk_string *text, const char **after, stk_error *err)
{
    if (!plan->quotes || at == end || *at != '"') {
        *after = field_end(plan, at, end);
        *text = (stk_string){at, *after - at};
        return STK_OK;
    }
    bool doubled = false;
    const char *close = closing_quote(at, end, &doubled);
    if (!close) return stk_fail(err, STK_ERR_FORMAT, "a quoted field is not closed before the end");
    if (!ends_field(plan, close, end))
        return stk_fail(err, STK_ERR_FORMAT,
                        "'%c' follows a closing quote; a quote inside a quoted field is written "
                        "twice",
                        *close);
    *after = close;
    *text = (stk_string){at + 1, close - at - 2};
    if (!doubled) return STK_OK;
    char *copy = stk_arena_alloc(arena, (size_t)text->size), *to = copy;
    if (!copy) return stk_fail_memory(err, "quoted text", (size_t)text->size);
    for (int64_t i = 0; i < text->size; i++) {
        *to++ = text->data[i];
        i += text->data[i] == '"';
    }
    *text = (stk_string){copy, to - copy};
    return STK_OK;
}

bool stk_csv_is_missing(const stk_csv_plan *plan, stk_string text)
{
    if (text.size == 0) return true;
    for (const char *const *m = plan->missing; m && *m; m++)
        if (strlen(*m) == (size_t)text.size && memcmp(*m, text.data, (size_t)text.size) == 0)
            return true;
    return false;
}

static stk_string trimmed(stk_string text)
{
    while (text.size && (*text.data == ' ' || *text.data == '\t')) text.data++, text.size--;
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static bool special_number(stk_string text, double *out)
{
    bool negative = text.size && *text.data == '-';
    if (text.size && (*text.data == '-' || *text.data == '+')) text.data++, text.size--;
    size_t n = (size_t)text.size;
    if ((n == 3 && strncasecmp(text.data, "inf", n) == 0) ||
        (n == 8 && strncasecmp(text.data, "infinity", n) == 0))
        *out = negative ? -INFINITY : INFINITY;
    else if (n == 3 && strncasecmp(text.data, "nan", n) == 0)
        *out = NAN;
    else
        return false;
    return true;
}

/* Whether an integer fits a dtype. */
static bool integer_fits(stk_dtype dtype, int64_t value)
{
    int64_t bits = stk_dtype_size(dtype) * 8;
    if (dtype == STK_BOOL) return value == 0 || value == 1;
    if (stk_dtype_kind(dtype) == 'U') return value >= 0 && (bits == 64 || value >> bits == 0);
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

bool stk_csv_number(const stk_csv_plan *plan, stk_dtype dtype, stk_string text, void *to)
{
    (void)plan;
    text = trimmed(text);
    if (stk_dtype_is_float(dtype)) {
        double value;
        if (!stk_parse_double(text.data, (size_t)text.size, &value) &&
            !special_number(text, &value))
            return false;
        if (dtype == STK_F32)
            *(float *)to = (float)value;
        else
            stk_store_f64(dtype, to, value);
        return true;
    }
    int64_t value;
    if (!stk_parse_int64(text.data, (size_t)text.size, &value) || !integer_fits(dtype, value))
        return false;
    stk_store_i64(dtype, to, value);
    return true;
}

/* ---- rows --------------------------------------------------------------------------------------- */

const char *stk_csv_row_end(const stk_csv_plan *plan, const char *at, const char *end)
{
    const char *line = memchr(at, '\n', (size_t)(end - at));
    const char *stop = line ? line + 1 : end;
    if (!plan->quotes || !memchr(at, '"', (size_t)(stop - at))) return stop;
    for (;;) {
        bool doubled = false;
        if (at < end && *at == '"') {
            const char *close = closing_quote(at, end, &doubled);
            if (!close) return end;
            at = close;
        }
        at = field_end(plan, at, end);
        if (at == end) return end;
        if (*at == plan->delimiter) {
            at++;
            continue;
        }
        return at + 1 + (*at == '\r' && at + 1 < end);
    }
}

typedef struct row_place {
    const char *base;
    int64_t row;
} row_place;

static stk_status fail_row(const stk_csv_plan *plan, row_place place, const char *at,
                           int32_t column, stk_status code, const char *why, stk_string text,
                           stk_error *err)
{
    int shown = text.size > 40 ? 40 : (int)text.size;
    const stk_csv_column *c = &plan->column[column];
    return stk_fail(err, code, "%s: row %lld at byte %lld, column %s%s%s (%d): \"%.*s\" %s %s",
                    plan->name, (long long)place.row, (long long)(at - place.base),
                    plan->title[column][0] ? "\"" : "", plan->title[column],
                    plan->title[column][0] ? "\"" : "", c->number, shown, text.data, why,
                    stk_dtype_name(c->dtype));
}

/* A field that the fast way did not take: quoted, missing, odd, or wrong. */
static stk_status slow_field(const stk_csv_plan *plan, row_place place, const char **at,
                             const char *end, int32_t column, void *to, stk_arena *arena,
                             stk_error *err)
{
    const stk_csv_column *c = &plan->column[column];
    stk_string text;
    const char *begin = *at;
    stk_status status = stk_csv_field(plan, begin, end, arena, &text, at, err);
    if (status != STK_OK)
        return stk_fail_in(err, status, "%s: row %lld at byte %lld", plan->name,
                           (long long)place.row, (long long)(begin - place.base));
    if (c->dtype == STK_STRING) {
        /* Only an empty field that is not in quotes is missing. */
        if (text.size == 0 && (begin == end || *begin != '"')) {
            if (c->required)
                return fail_row(plan, place, begin, column, STK_ERR_FORMAT,
                                "is missing; give the column a fallback. Wanted:", text, err);
            text = (stk_string){c->fallback_text, (int64_t)strlen(c->fallback_text)};
        }
        *(stk_string *)to = text;
        return STK_OK;
    }
    if (stk_csv_is_missing(plan, trimmed(text))) {
        if (c->required)
            return fail_row(plan, place, begin, column, STK_ERR_FORMAT,
                            "is missing; give the column a fallback. Wanted:", text, err);
        stk_store_f64(c->dtype, to, c->fallback);
        return STK_OK;
    }
    if (stk_csv_number(plan, c->dtype, text, to)) return STK_OK;
    return fail_row(plan, place, begin, column, STK_ERR_FORMAT, "is no", text, err);
}

/* The usual field, read in place; false: let the slow way see. */
static inline bool fast_field(const stk_csv_plan *plan, const char **at, const char *end,
                              stk_dtype dtype, void *to)
{
    if (dtype == STK_F32 || dtype == STK_F64) {
        double value;
        const char *after = stk_fast_double(plan->fives, *at, end, &value);
        if (!after || !ends_field(plan, after, end)) return false;
        if (dtype == STK_F32)
            *(float *)to = (float)value;
        else
            *(double *)to = value;
        *at = after;
        return true;
    }
    if (dtype == STK_I64) {
        const char *after = stk_fast_int(*at, end, to);
        if (!after || !ends_field(plan, after, end)) return false;
        *at = after;
        return true;
    }
    return false;
}

static stk_status skip_field(const stk_csv_plan *plan, const char **at, const char *end,
                             stk_error *err)
{
    bool doubled = false;
    const char *from = *at;
    if (plan->quotes && from < end && *from == '"') {
        from = closing_quote(from, end, &doubled);
        if (!from)
            return stk_fail(err, STK_ERR_FORMAT, "a quoted field is not closed before the end");
    }
    *at = field_end(plan, from, end);
    return STK_OK;
}

static stk_status fail_width(const stk_csv_plan *plan, row_place place, const char *at,
                             int32_t have, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: row %lld at byte %lld has %s%d fields, the table has %d; is the delimiter "
                    "'%c' right?",
                    plan->name, (long long)place.row, (long long)(at - place.base),
                    have >= plan->fields ? "more than " : "only ", have, plan->fields,
                    plan->delimiter);
}

static stk_status parse_row(const stk_csv_plan *plan, row_place place, const char **where,
                            const char *end, int64_t row, const stk_csv_sink *sink, stk_error *err)
{
    const char *at = *where, *begin = at;
    for (int32_t f = 0; f < plan->fields; f++) {
        int32_t column = plan->slot[f];
        if (column >= 0) {
            stk_dtype dtype = plan->column[column].dtype;
            void *to = (char *)sink->data[column] + row * stk_dtype_size(dtype);
            if (!fast_field(plan, &at, end, dtype, to))
                STK_TRY(slow_field(plan, place, &at, end, column, to, sink->arena, err));
        } else {
            stk_status status = skip_field(plan, &at, end, err);
            if (status != STK_OK)
                return stk_fail_in(err, status, "%s: row %lld", plan->name, (long long)place.row);
        }
        bool more = at < end && *at == plan->delimiter;
        if (more != (f + 1 < plan->fields)) return fail_width(plan, place, begin, f + 1, err);
        at += more;
    }
    if (at < end && *at == '\r') at++;
    if (at < end && *at == '\n') at++;
    *where = at;
    return STK_OK;
}

static stk_status parse_rows(const stk_csv_plan *plan, const char *base, const char *at,
                             const char *end, int64_t first, int64_t most, const stk_csv_sink *sink,
                             int64_t *rows, stk_error *err)
{
    int64_t row = 0;
    while (at < end && row < most) {
        if (stk_csv_is_blank(at, end)) {
            at = memchr(at, '\n', (size_t)(end - at));
            if (!at) break;
            at++;
            continue;
        }
        row_place place = {base, first + row};
        STK_TRY(parse_row(plan, place, &at, end, first + row, sink, err));
        row++;
    }
    *rows = row;
    return STK_OK;
}

/* 1e-40 is 1e-40, whichever thread reads it. */
stk_status stk_csv_rows(const stk_csv_plan *plan, const char *base, const char *at, const char *end,
                        int64_t first, int64_t most, const stk_csv_sink *sink, int64_t *rows,
                        stk_error *err)
{
    stk_float_env was = stk_float_env_exact();
    stk_status status = parse_rows(plan, base, at, end, first, most, sink, rows, err);
    stk_float_env_leave(was);
    return status;
}
