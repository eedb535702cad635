/* Options by table: text and JSON in, JSON out, and messages that list what exists. */
#include "optim/options.h"

#include "base/spelling.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- near misses -------------------------------------------------------------------------------------------- */

/* Letters that count: lower case, without '_' and '-'; 0 for one that does not. */
static char letter(char c)
{
    if (c == '_' || c == '-') return 0;
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t squeeze(const char *text, size_t size, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n + 1 < room; i++)
        if (letter(text[i])) out[n++] = letter(text[i]);
    out[n] = 0;
    return n;
}

/* " (did you mean 'x'?)" for the nearest of the words, or "" when none is near. */
typedef struct guess {
    const char *wanted;
    size_t size;
    int32_t distance; /* of the best so far */
    char best[64];
} guess;

static void guess_word(guess *g, const char *word, size_t size)
{
    char a[64], b[64];
    size_t na = squeeze(g->wanted, g->size, a, sizeof a), nb = squeeze(word, size, b, sizeof b);
    if (!na || !nb || size >= sizeof g->best) return;
    int32_t d = stk_word_distance(a, na, b, nb);
    /* Long names may be off by more letters; one that begins another is near as well. */
    bool begins = na >= 3 && !strncmp(a, b, na < nb ? na : nb);
    if (begins && d > 2) d = 2;
    if (d > 1 + (int32_t)(na / 4) && !begins) return;
    if (g->best[0] && d >= g->distance) return;
    g->distance = d;
    memcpy(g->best, word, size);
    g->best[size] = 0;
}

static const char *guess_text(const guess *g, char text[96])
{
    text[0] = 0;
    if (g->best[0]) snprintf(text, 96, " (did you mean '%s'?)", g->best);
    return text;
}

/* ---- classes by name ------------------------------------------------------------------------------------------ */

static bool same_name(const char *word, const char *text, size_t size)
{
    char a[64], b[64];
    size_t na = squeeze(word, strlen(word), a, sizeof a), nb = squeeze(text, size, b, sizeof b);
    return na == nb && !memcmp(a, b, na);
}

int32_t stk_names_find(const stk_names *names, const char *text, size_t size, stk_error *err)
{
    const char *name;
    for (int32_t i = 0; i < names->count; i++)
        for (int32_t k = 0; (name = names->name(i, k)); k++)
            if (same_name(name, text, size)) return i;
    char list[640] = "", hint[96];
    size_t used = 0;
    guess near = {.wanted = text, .size = size};
    for (int32_t i = 0; i < names->count; i++) {
        for (int32_t k = 0; (name = names->name(i, k)); k++) guess_word(&near, name, strlen(name));
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names->name(i, 0));
        if (n > 0 && (size_t)n < sizeof list - used) used += (size_t)n;
    }
    stk_fail(err, STK_ERR_ARGUMENT, "no %s is called '%.*s'%s; there are: %s", names->what,
             (int)(size < 80 ? size : 80), text, guess_text(&near, hint), list);
    return -1;
}

/* ---- one option -------------------------------------------------------------------------------------------------- */

static bool takes(const stk_options *o, const char *name)
{
    if (!o->takes) return true;
    size_t n = strlen(name);
    for (const char *at = o->takes; (at = strstr(at, name)); at += n)
        if ((at == o->takes || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

void stk_options_names(const char *defaults, char *takes, size_t size)
{
    size_t used = strlen(takes);
    for (const char *at = defaults; *at;) {
        size_t name = strcspn(at, "="), all = strcspn(at, ",");
        if (used + name + 2 > size) return;
        if (used) takes[used++] = ' ';
        memcpy(takes + used, at, name);
        takes[used += name] = 0;
        at += all + (at[all] == ',');
    }
}

static bool is_word(const char *word, const char *text, size_t size)
{
    return word && strlen(word) == size && !memcmp(word, text, size);
}

static const stk_option *find(const stk_options *o, const char *name, size_t size, stk_error *err)
{
    char list[512] = "", hint[96];
    size_t used = 0;
    guess near = {.wanted = name, .size = size};
    for (int32_t i = 0; i < o->count; i++) {
        const stk_option *row = &o->rows[i];
        if (!takes(o, row->name)) continue;
        if (is_word(row->name, name, size) || is_word(row->alias, name, size)) return row;
        guess_word(&near, row->name, strlen(row->name));
        if (row->alias) guess_word(&near, row->alias, strlen(row->alias));
        int n = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", row->name);
        if (n > 0 && (size_t)n < sizeof list - used) used += (size_t)n;
    }
    stk_fail(err, STK_ERR_ARGUMENT, "%s has no option '%.*s'%s; it takes: %s", o->what,
             (int)(size < 80 ? size : 80), name, guess_text(&near, hint), *list ? list : "none");
    return NULL;
}

static double number_of(const stk_option *row, const void *in)
{
    const char *member = (const char *)in + row->offset;
    double real;
    int64_t whole;
    bool truth;
    switch (row->kind) {
    case STK_OPTION_REAL: memcpy(&real, member, sizeof real); return real;
    case STK_OPTION_BOOL: memcpy(&truth, member, sizeof truth); return truth;
    default: memcpy(&whole, member, sizeof whole); return (double)whole;
    }
}

static stk_status check_range(const stk_options *o, const stk_option *row, double value,
                              stk_error *err)
{
    char text[STK_NUMBER_TEXT], low[STK_NUMBER_TEXT], high[STK_NUMBER_TEXT];
    bool whole = row->kind == STK_OPTION_REAL || value == floor(value);
    if (value >= row->low && value <= row->high && whole) return STK_OK;
    return stk_fail(err, STK_ERR_RANGE, "%s: %s is %s, it must be %s from %s to %s", o->what,
                    row->name, stk_double_text(value, text),
                    row->kind == STK_OPTION_REAL ? "a number" : "a whole number",
                    stk_double_text(row->low, low), stk_double_text(row->high, high));
}

stk_status stk_options_check(const stk_options *o, const void *in, stk_error *err)
{
    for (int32_t i = 0; i < o->count; i++) {
        const stk_option *row = &o->rows[i];
        double value = number_of(row, in);
        if (!takes(o, row->name) || row->kind == STK_OPTION_CHOICE || value == row->none) continue;
        STK_TRY(check_range(o, row, value, err));
    }
    return STK_OK;
}

static void put(const stk_option *row, double value, void *out)
{
    char *member = (char *)out + row->offset;
    bool number = row->kind == STK_OPTION_INT || row->kind == STK_OPTION_CHOICE;
    int64_t whole = number ? (int64_t)value : 0;
    bool truth = value != 0;
    if (row->kind == STK_OPTION_REAL)
        memcpy(member, &value, sizeof value);
    else if (number)
        memcpy(member, &whole, sizeof whole);
    else
        memcpy(member, &truth, sizeof truth);
}

static stk_status store(const stk_options *o, const stk_option *row, double value, void *out,
                        stk_error *err)
{
    STK_TRY(check_range(o, row, value, err));
    put(row, value, out);
    return STK_OK;
}

static stk_status store_none(const stk_options *o, const stk_option *row, void *out, stk_error *err)
{
    if (isnan(row->none))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: %s cannot be None; leave it out for its default", o->what, row->name);
    put(row, row->none, out);
    return STK_OK;
}

/* The word at a place of "a|b|c"; false when there are fewer. */
static bool choice_at(const stk_option *row, int64_t place, const char **word, size_t *size)
{
    const char *at = row->choices;
    for (int64_t i = 0; i < place && *at; i++) {
        at += strcspn(at, "|");
        if (*at) at++;
    }
    *word = at;
    *size = strcspn(at, "|");
    return *size > 0;
}

static stk_status choose(const stk_options *o, const stk_option *row, const char *text, size_t size,
                         void *out, stk_error *err)
{
    const char *word;
    size_t length;
    for (int64_t i = 0; choice_at(row, i, &word, &length); i++) {
        char a[64], b[64];
        size_t na = squeeze(word, length, a, sizeof a), nb = squeeze(text, size, b, sizeof b);
        if (na == nb && !memcmp(a, b, na)) {
            put(row, (double)i, out);
            return STK_OK;
        }
    }
    return stk_fail(err, STK_ERR_ARGUMENT, "%s: %s is '%.*s', it must be one of %s", o->what,
                    row->name, (int)(size < 80 ? size : 80), text, row->choices);
}

stk_status stk_options_set(const stk_options *o, const char *name, size_t name_size,
                           const char *value, size_t value_size, void *out, stk_error *err)
{
    const stk_option *row = find(o, name, name_size, err);
    double number;
    if (!row) return STK_ERR_ARGUMENT;
    if (row->kind == STK_OPTION_CHOICE) return choose(o, row, value, value_size, out, err);
    if (is_word("none", value, value_size) || is_word("None", value, value_size))
        return store_none(o, row, out, err);
    if (row->kind == STK_OPTION_BOOL) {
        if (is_word("true", value, value_size) || is_word("True", value, value_size) ||
            is_word("yes", value, value_size) || is_word("1", value, value_size))
            return store(o, row, 1, out, err);
        if (is_word("false", value, value_size) || is_word("False", value, value_size) ||
            is_word("no", value, value_size) || is_word("0", value, value_size))
            return store(o, row, 0, out, err);
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: %s is '%.*s', it must be true or false",
                        o->what, row->name, (int)(value_size < 80 ? value_size : 80), value);
    }
    if (!stk_parse_double(value, value_size, &number))
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: %s is '%.*s', it must be a number", o->what,
                        row->name, (int)(value_size < 80 ? value_size : 80), value);
    return store(o, row, number, out, err);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

stk_status stk_options_text(const stk_options *o, const char *text, void *out, stk_error *err)
{
    while (text && *text) {
        size_t size = strcspn(text, ","), name = strcspn(text, "=,");
        if (name == size || name == 0)
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: '%.*s' is no option; write name=value",
                            o->what, (int)(size < 80 ? size : 80), text);
        STK_TRY(stk_options_set(o, text, name, text + name + 1, size - name - 1, out, err));
        text += size + (text[size] == ',');
    }
    return STK_OK;
}

stk_status stk_options_json(const stk_options *o, const stk_json *value, void *out, stk_error *err)
{
    const stk_option *row = find(o, value->name, strlen(value->name), err);
    if (!row) return STK_ERR_ARGUMENT;
    if (value->kind == STK_JSON_NULL) return store_none(o, row, out, err);
    if (row->kind == STK_OPTION_CHOICE && value->kind == STK_JSON_STRING)
        return choose(o, row, value->text, strlen(value->text), out, err);
    bool boolean = value->kind == STK_JSON_BOOL,
         number = value->kind == STK_JSON_INT || value->kind == STK_JSON_DOUBLE;
    if (boolean != (row->kind == STK_OPTION_BOOL) || (!boolean && !number) ||
        row->kind == STK_OPTION_CHOICE)
        return stk_fail(err, STK_ERR_FORMAT, "%s: %s is a JSON %s, it must be %s", o->what,
                        row->name, stk_json_kind_name(value->kind),
                        row->kind == STK_OPTION_BOOL     ? "true or false"
                        : row->kind == STK_OPTION_CHOICE ? row->choices
                                                         : "a number");
    return store(o, row, boolean ? (double)value->truth : value->number, out, err);
}

static void write_one(const stk_option *row, const void *in, stk_json_writer *w)
{
    double value = number_of(row, in);
    const char *word;
    size_t size;
    stk_json_name(w, row->name);
    if (value == row->none)
        stk_json_put_null(w);
    else if (row->kind == STK_OPTION_REAL)
        stk_json_put_double(w, value);
    else if (row->kind == STK_OPTION_BOOL)
        stk_json_put_bool(w, value != 0);
    else if (row->kind == STK_OPTION_INT)
        stk_json_put_int(w, (int64_t)value);
    else if (choice_at(row, (int64_t)value, &word, &size))
        stk_json_put_bytes(w, word, size);
    else
        stk_json_put_null(w);
}

void stk_options_write(const stk_options *o, const void *in, stk_json_writer *w)
{
    for (int32_t i = 0; i < o->count; i++)
        if (takes(o, o->rows[i].name)) write_one(&o->rows[i], in, w);
}
