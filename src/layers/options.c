/* Options as a program writes them, "Conv2D(32, (3, 3), activation=relu)", become the JSON that Keras writes for the same
 * layer. From there on there is one reader.
 *
 *     value      number | word | 'text' | None | True | False | call | (value, ...) | [value, ...] | {name: value, ...}
 *     call       word ( [argument {, argument}] )        -> {"class_name": word, "config": {arguments}}
 *     argument   value                                   -> "#0": value, for the place in the list
 *              | word = value                            -> "word": value
 *     #2 is the third tensor of a call                   -> {"__tensor__": 2} */
#include "layers/config.h"

#include "base/number.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 32 };

typedef struct parser {
    const char *text, *at;
    stk_json_writer w;
    const char *trouble; /* what was expected */
    int32_t depth;
} parser;

static void put_value(parser *p);

static void skip(parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

static bool take(parser *p, char c)
{
    skip(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static void expect(parser *p, const char *what)
{
    if (!p->trouble) p->trouble = what;
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    if (!isalpha((unsigned char)at[0]) && at[0] != '_') return 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.') n++;
    return n;
}

static bool word_is(const char *at, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(at, word, n);
}

static void put_arguments(parser *p)
{
    int32_t place = 0;
    stk_json_begin_object(&p->w);
    for (skip(p); *p->at && *p->at != ')' && !p->trouble;) {
        size_t n = word_length(p->at);
        const char *after = p->at + n;
        while (isspace((unsigned char)*after)) after++;
        char name[96] = "#";
        if (n && *after == '=' && n < sizeof name) {
            memcpy(name, p->at, n);
            name[n] = 0;
            p->at = after + 1;
        } else {
            if (place > 99) {
                expect(p, "fewer options");
                break;
            }
            snprintf(name, sizeof name, "#%d", place++);
        }
        stk_json_name(&p->w, name);
        put_value(p);
        if (!take(p, ',')) break;
        skip(p);
    }
    stk_json_end_object(&p->w);
}

static void put_list(parser *p, char end)
{
    stk_json_begin_array(&p->w);
    for (skip(p); *p->at && *p->at != end && !p->trouble; skip(p)) {
        put_value(p);
        if (!take(p, ',')) break;
    }
    if (!take(p, end)) expect(p, end == ')' ? "')'" : "']'");
    stk_json_end_array(&p->w);
}

static void put_quoted(parser *p)
{
    char quote = *p->at++;
    const char *end = strchr(p->at, quote);
    if (!end) {
        expect(p, "the end of a quoted text");
        return;
    }
    stk_json_put_bytes(&p->w, p->at, (size_t)(end - p->at));
    p->at = end + 1;
}

static void put_map(parser *p)
{
    stk_json_begin_object(&p->w);
    for (skip(p); *p->at && *p->at != '}' && !p->trouble; skip(p)) {
        char name[96];
        bool quoted = *p->at == '"' || *p->at == '\'';
        const char *start = p->at + quoted;
        const char *close = quoted ? strchr(start, *p->at) : NULL;
        size_t n = close ? (size_t)(close - start) : quoted ? 0 : word_length(start);
        if (!n || n >= sizeof name) {
            expect(p, "a name");
            break;
        }
        memcpy(name, start, n);
        name[n] = 0;
        p->at = start + n + quoted;
        if (!take(p, ':')) expect(p, "':'");
        stk_json_name(&p->w, name);
        put_value(p);
        if (!take(p, ',')) break;
    }
    if (!take(p, '}')) expect(p, "'}'");
    stk_json_end_object(&p->w);
}

static void put_number(parser *p)
{
    size_t n = strspn(p->at, "+-0123456789.eE");
    int64_t whole;
    double real;
    if (n && stk_parse_int64(p->at, n, &whole))
        stk_json_put_int(&p->w, whole);
    else if (n && stk_parse_double(p->at, n, &real))
        stk_json_put_double(&p->w, real);
    else
        expect(p, "a value");
    p->at += n;
}

static void put_tensor(parser *p)
{
    size_t n = strspn(++p->at, "0123456789");
    int64_t number;
    stk_json_begin_object(&p->w);
    stk_json_name(&p->w, "__tensor__");
    if (stk_parse_int64(p->at, n, &number))
        stk_json_put_int(&p->w, number);
    else
        expect(p, "the number of a tensor, as in #0");
    stk_json_end_object(&p->w);
    p->at += n;
}

static void put_word(parser *p, size_t n)
{
    const char *word = p->at;
    p->at += n;
    if (take(p, '(')) {
        char name[96] = {0};
        memcpy(name, word, n < sizeof name ? n : sizeof name - 1);
        stk_json_begin_object(&p->w);
        stk_json_name(&p->w, "class_name");
        stk_json_put_text(&p->w, name);
        stk_json_name(&p->w, "config");
        put_arguments(p);
        stk_json_end_object(&p->w);
        if (!take(p, ')')) expect(p, "')' or ','");
    } else if (word_is(word, n, "None") || word_is(word, n, "null") || word_is(word, n, "none"))
        stk_json_put_null(&p->w);
    else if (word_is(word, n, "True") || word_is(word, n, "true"))
        stk_json_put_bool(&p->w, true);
    else if (word_is(word, n, "False") || word_is(word, n, "false"))
        stk_json_put_bool(&p->w, false);
    else
        stk_json_put_bytes(&p->w, word, n);
}

static void put_value(parser *p)
{
    skip(p);
    size_t n = word_length(p->at);
    if (p->trouble) return;
    if (++p->depth > DEEPEST)
        expect(p, "fewer parentheses inside each other");
    else if (n)
        put_word(p, n);
    else if (*p->at == '"' || *p->at == '\'')
        put_quoted(p);
    else if (take(p, '('))
        put_list(p, ')');
    else if (take(p, '['))
        put_list(p, ']');
    else if (take(p, '{'))
        put_map(p);
    else if (*p->at == '#')
        put_tensor(p);
    else
        put_number(p);
    p->depth--;
}

stk_status stk_options_parse(const char *text, bool arguments, stk_json_document **out,
                             stk_error *err)
{
    *out = NULL;
    if (!text)
        return stk_fail(err, STK_ERR_ARGUMENT, "a layer is needed, as in \"Dense(10)\", not NULL");
    parser p = {.text = text, .at = text};
    skip(&p);
    if (*p.at == '{') return stk_json_parse(p.at, strlen(p.at), NULL, out, err);
    if (arguments) {
        put_arguments(&p);
    } else {
        size_t n = word_length(p.at);
        if (!n) expect(&p, "the name of a class, as in Dense(10)");
        if (n && p.at[n] != '(') expect(&p, "'(' behind the class");
        if (!p.trouble) put_word(&p, n);
    }
    skip(&p);
    if (*p.at) expect(&p, "the end of the text");
    if (p.trouble) {
        stk_json_discard(&p.w);
        return stk_fail(err, STK_ERR_FORMAT, "\"%.200s\": expected %s at place %td, \"%.24s\"",
                        text, p.trouble, p.at - p.text, p.at);
    }
    char *json = NULL;
    size_t size = 0;
    STK_TRY(stk_json_finish(&p.w, &json, &size, err));
    stk_status status = stk_json_parse(json, size, NULL, out, err);
    stk_free(json);
    return status;
}
