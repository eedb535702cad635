/* JSON reading: recursive descent with a depth limit. Finished values wait on a stack; when an
 * array or object closes, its items are moved from there into one array of the arena. */
#include "base/json.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/utf8.h"

#include <string.h>

struct stk_json_document {
    stk_arena arena;
    const stk_json *root;
};

typedef struct parser {
    const char *start, *at, *end;
    const stk_json_options *options;
    stk_arena *arena;
    stk_json *stack;
    int64_t count, capacity;
    int32_t depth;
    stk_error *err;
} parser;

stk_json_options stk_json_defaults(void) { return (stk_json_options){.max_depth = 256}; }

const char *stk_json_kind_name(stk_json_kind kind)
{
    static const char *const names[] = {"null",   "true or false", "number", "number",
                                        "string", "array",         "object"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

/* ---- failures ------------------------------------------------------------------------------- */

/* "json: line 2, column 7: expected a value, found '}'". Columns count bytes. */
static stk_status refuse(parser *p, const char *where, stk_status status, const char *what)
{
    int64_t line = 1;
    const char *line_start = p->start;
    for (const char *c = p->start; c < where; c++) {
        if (*c != '\n') continue;
        line++;
        line_start = c + 1;
    }
    char found[40] = "the end of the text";
    unsigned char byte = where < p->end ? (unsigned char)*where : 0;
    static const char hex[] = "0123456789abcdef";
    if (where < p->end && byte >= 0x20 && byte < 0x7f) {
        memcpy(found, "'?'", 4);
        found[1] = (char)byte;
    } else if (where < p->end) {
        memcpy(found, "byte 0x??", 10);
        found[7] = hex[byte >> 4];
        found[8] = hex[byte & 15];
    }
    return stk_fail(p->err, status, "json: line %lld, column %lld: %s, found %s", (long long)line,
                    (long long)(where - line_start) + 1, what, found);
}

static stk_status expected(parser *p, const char *what)
{
    return refuse(p, p->at, STK_ERR_FORMAT, what);
}

static stk_status no_memory(parser *p, size_t bytes)
{
    return stk_fail_memory(p->err, "json", bytes);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool next_is(parser *p, char c) { return p->at < p->end && *p->at == c; }

static bool take_word(parser *p, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static bool take_hex4(parser *p, uint32_t *out)
{
    if (p->end - p->at < 4) return false;
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p->at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return false;
        value = value << 4 | digit;
    }
    p->at += 4;
    *out = value;
    return true;
}

/* Behind "\u". A first half must be followed by "\u" and a second half. */
static stk_status take_unicode(parser *p, uint32_t *code)
{
    uint32_t low;
    const char *start = p->at;
    if (!take_hex4(p, code)) return expected(p, "expected four hex digits after \\u");
    if (*code < 0xd800 || *code > 0xdfff) return STK_OK;
    if (*code <= 0xdbff && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        p->at += 2;
        if (!take_hex4(p, &low)) return expected(p, "expected four hex digits after \\u");
        if (low >= 0xdc00 && low <= 0xdfff) {
            *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
            return STK_OK;
        }
    }
    return refuse(p, start, STK_ERR_FORMAT, "half of a surrogate pair stands alone");
}

static stk_status take_escape(parser *p, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    p->at++;
    if (next_is(p, 'u')) {
        uint32_t code = 0;
        p->at++;
        STK_TRY(take_unicode(p, &code));
        *to += stk_utf8_put(code, *to);
        return STK_OK;
    }
    const char *found = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;
    if (!found) return expected(p, "expected one of \" \\ / b f n r t u after a backslash");
    *(*to)++ = into[found - from];
    p->at++;
    return STK_OK;
}

/* The string between quotes, unescaped into the arena. It never gets longer by unescaping, so the
 * distance to its closing quote is room enough. */
static stk_status take_string(parser *p, const char **text, int64_t *size)
{
    const char *close = ++p->at;
    while (close < p->end && *close != '"') close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    size_t room = (size_t)(close - p->at) + 1;
    char *copy = stk_arena_alloc(p->arena, room), *to = copy;
    if (!copy) return no_memory(p, room);
    while (p->at < p->end && *p->at != '"') {
        unsigned char c = (unsigned char)*p->at;
        if (c == '\\') {
            STK_TRY(take_escape(p, &to));
        } else if (c < 0x20) {
            return expected(p, "control characters in a string must be escaped");
        } else {
            size_t length = stk_utf8_length(p->at, (size_t)(p->end - p->at));
            if (length == 0) return expected(p, "the string is not UTF-8");
            memcpy(to, p->at, length);
            to += length;
            p->at += length;
        }
    }
    if (p->at >= p->end) return expected(p, "expected '\"' at the end of the string");
    p->at++;
    *text = copy;
    *size = to - copy;
    return STK_OK;
}

/* -? (0 | [1-9][0-9]*) ([.][0-9]+)? ([eE][+-]?[0-9]+)? */
static bool span_digits(parser *p)
{
    const char *first = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return p->at > first;
}

static stk_status take_number(parser *p, stk_json *value)
{
    const char *start = p->at;
    bool whole = true;
    if (next_is(p, '-')) p->at++;
    bool zero = next_is(p, '0');
    if (!span_digits(p)) return expected(p, "expected a digit");
    if (zero && p->at - start > 1 + (*start == '-'))
        return refuse(p, start, STK_ERR_FORMAT, "a number must not start with 0");
    if (next_is(p, '.')) {
        whole = false;
        p->at++;
        if (!span_digits(p)) return expected(p, "expected a digit after the point");
    }
    if (next_is(p, 'e') || next_is(p, 'E')) {
        whole = false;
        p->at++;
        if (next_is(p, '+') || next_is(p, '-')) p->at++;
        if (!span_digits(p)) return expected(p, "expected a digit in the exponent");
    }
    size_t size = (size_t)(p->at - start);
    bool minus_zero = size == 2 && start[0] == '-' && start[1] == '0';
    if (whole && !minus_zero && stk_parse_int64(start, size, &value->integer)) {
        value->kind = STK_JSON_INT;
        value->number = (double)value->integer;
        return STK_OK;
    }
    value->kind = STK_JSON_DOUBLE;
    stk_parse_double(start, size, &value->number);
    if (value->number - value->number != 0) /* infinite */
        return refuse(p, start, STK_ERR_RANGE, "the number is too large for a double");
    return STK_OK;
}

static bool take_nonfinite(parser *p, stk_json *value)
{
    if (!p->options->allow_nonfinite) return false;
    if (take_word(p, "NaN"))
        value->number = (double)__builtin_nan("");
    else if (take_word(p, "Infinity"))
        value->number = __builtin_inf();
    else if (take_word(p, "-Infinity"))
        value->number = -__builtin_inf();
    else
        return false;
    value->kind = STK_JSON_DOUBLE;
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

static stk_status take_value(parser *p, stk_json *value);

static stk_status push(parser *p, const stk_json *value)
{
    if (!STK_GROW(p->stack, p->count, p->capacity))
        return no_memory(p, (size_t)p->capacity * 2 * sizeof *value);
    p->stack[p->count++] = *value;
    return STK_OK;
}

static stk_status take_member(parser *p, stk_json *value)
{
    const char *name;
    int64_t size;
    skip_space(p);
    if (!next_is(p, '"')) return expected(p, "expected '\"' and the name of a member");
    STK_TRY(take_string(p, &name, &size));
    skip_space(p);
    if (!next_is(p, ':')) return expected(p, "expected ':' after the name of a member");
    p->at++;
    STK_TRY(take_value(p, value));
    value->name = name;
    value->name_size = size;
    return STK_OK;
}

static stk_status take_items(parser *p, stk_json *value, char close)
{
    bool object = close == '}';
    int64_t base = p->count;
    if (p->depth >= p->options->max_depth)
        return stk_fail(p->err, STK_ERR_RANGE,
                        "json: nested deeper than %d levels at byte %lld; raise max_depth if this "
                        "is meant",
                        (int)p->options->max_depth, (long long)(p->at - p->start));
    p->depth++;
    p->at++;
    skip_space(p);
    while (!next_is(p, close)) {
        stk_json item = {0};
        STK_TRY(object ? take_member(p, &item) : take_value(p, &item));
        STK_TRY(push(p, &item));
        skip_space(p);
        if (next_is(p, close)) break;
        if (!next_is(p, ','))
            return expected(p, object ? "expected ',' or '}'" : "expected ',' or ']'");
        p->at++;
        skip_space(p);
        if (next_is(p, close))
            return expected(p,
                            object ? "expected a member after ','" : "expected a value after ','");
    }
    p->at++;
    p->depth--;
    value->kind = object ? STK_JSON_OBJECT : STK_JSON_ARRAY;
    value->count = p->count - base;
    if (value->count) {
        size_t bytes = (size_t)value->count * sizeof *p->stack;
        value->items = stk_arena_copy(p->arena, p->stack + base, bytes);
        if (!value->items) return no_memory(p, bytes);
    }
    p->count = base;
    return STK_OK;
}

static stk_status take_value(parser *p, stk_json *value)
{
    skip_space(p);
    char c = p->at < p->end ? *p->at : 0;
    if (take_nonfinite(p, value)) return STK_OK;
    if (c == '{') return take_items(p, value, '}');
    if (c == '[') return take_items(p, value, ']');
    if (c == '-' || (c >= '0' && c <= '9')) return take_number(p, value);
    if (c == '"') {
        value->kind = STK_JSON_STRING;
        return take_string(p, &value->text, &value->count);
    }
    if (take_word(p, "true") || take_word(p, "false")) {
        value->kind = STK_JSON_BOOL;
        value->truth = c == 't';
        return STK_OK;
    }
    if (take_word(p, "null")) return STK_OK;
    return expected(p, "expected a value");
}

static stk_status parse_all(parser *p, stk_json_document *document)
{
    stk_json root = {0};
    take_word(p, "\xef\xbb\xbf");
    STK_TRY(take_value(p, &root));
    skip_space(p);
    if (p->at < p->end) return expected(p, "expected nothing after the value");
    document->root = stk_arena_copy(p->arena, &root, sizeof root);
    return document->root ? STK_OK : no_memory(p, sizeof root);
}

stk_status stk_json_parse(const char *text, size_t size, const stk_json_options *options,
                          stk_json_document **out, stk_error *err)
{
    stk_json_options defaults = stk_json_defaults();
    if (!out || (size && !text))
        return stk_fail(err, STK_ERR_ARGUMENT, "json: the text or the out pointer is NULL");
    *out = NULL;
    stk_json_document *document = stk_calloc(1, sizeof *document);
    if (!document) return stk_fail_memory(err, "json", sizeof *document);
    if (!text) text = "";
    parser p = {.start = text,
                .at = text,
                .end = text + size,
                .options = options ? options : &defaults,
                .arena = &document->arena,
                .err = err};
    stk_status status = parse_all(&p, document);
    stk_free(p.stack);
    if (status != STK_OK) {
        stk_json_release(document);
        return status;
    }
    *out = document;
    return STK_OK;
}

const stk_json *stk_json_root(const stk_json_document *document)
{
    return document ? document->root : NULL;
}

void stk_json_release(stk_json_document *document)
{
    if (!document) return;
    stk_arena_release(&document->arena);
    stk_free(document);
}

/* ---- asking --------------------------------------------------------------------------------- */

const stk_json *stk_json_get(const stk_json *object, const char *name)
{
    if (!object || object->kind != STK_JSON_OBJECT) return NULL;
    int64_t size = (int64_t)strlen(name);
    for (int64_t i = object->count - 1; i >= 0; i--) { /* from the end: the last one counts */
        const stk_json *m = &object->items[i];
        if (m->name_size == size && memcmp(m->name, name, (size_t)size) == 0) return m;
    }
    return NULL;
}

const stk_json *stk_json_item(const stk_json *array, int64_t index)
{
    bool has = array && (array->kind == STK_JSON_ARRAY || array->kind == STK_JSON_OBJECT) &&
               index >= 0 && index < array->count;
    return has ? &array->items[index] : NULL;
}

const char *stk_json_text(const stk_json *value, const char *otherwise)
{
    return value && value->kind == STK_JSON_STRING ? value->text : otherwise;
}

int64_t stk_json_int(const stk_json *value, int64_t otherwise)
{
    const double end = 9223372036854775808.0;
    if (value && value->kind == STK_JSON_INT) return value->integer;
    if (value && value->kind == STK_JSON_DOUBLE && value->number >= -end && value->number < end &&
        (double)(int64_t)value->number == value->number)
        return (int64_t)value->number;
    return otherwise;
}

double stk_json_double(const stk_json *value, double otherwise)
{
    bool is_number = value && (value->kind == STK_JSON_INT || value->kind == STK_JSON_DOUBLE);
    return is_number ? value->number : otherwise;
}

bool stk_json_bool(const stk_json *value, bool otherwise)
{
    return value && value->kind == STK_JSON_BOOL ? value->truth : otherwise;
}
