/* JSON writing: a text that grows, and just enough state to know where commas go. */
#include "base/json.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void fail(stk_json_writer *w, const char *what)
{
    if (!w->failure) w->failure = what;
}

static void append(stk_json_writer *w, const char *text, size_t size)
{
    if (w->failure) return;
    size_t needed;
    if (!stk_add_size(w->size, size, &needed) || !stk_add_size(needed, 1, &needed)) {
        w->no_memory = true;
        fail(w, "out of memory");
        return;
    }
    if (needed > w->capacity) {
        size_t wanted = w->capacity * 2 > needed ? w->capacity * 2 : needed < 256 ? 256 : needed;
        char *grown = stk_realloc(w->data, w->size, wanted);
        if (!grown) {
            w->no_memory = true;
            fail(w, "out of memory");
            return;
        }
        w->data = grown;
        w->capacity = wanted;
    }
    memcpy(w->data + w->size, text, size);
    w->size += size;
}

static bool in_object(const stk_json_writer *w)
{
    return w->depth > 0 && (w->is_object[(w->depth - 1) / 8] >> (w->depth - 1) % 8 & 1);
}

static void new_line(stk_json_writer *w)
{
    static const char spaces[] = "                                ";
    if (w->indent <= 0) return;
    append(w, "\n", 1);
    for (int64_t left = (int64_t)w->indent * w->depth; left > 0; left -= 32)
        append(w, spaces, (size_t)(left < 32 ? left : 32));
}

static void before_item(stk_json_writer *w)
{
    if (w->has_items) append(w, ",", 1);
    if (w->depth > 0) new_line(w);
    w->has_items = true;
}

/* Every value starts here: it checks that a value may stand at this place. */
static bool start_value(stk_json_writer *w)
{
    if (w->failure) return false;
    if (w->done && w->depth == 0)
        fail(w, "a second value on the outermost level");
    else if (in_object(w) && !w->has_name)
        fail(w, "a value in an object without a name before it");
    else if (!in_object(w))
        before_item(w);
    w->has_name = false;
    if (w->depth == 0) w->done = true;
    return !w->failure;
}

static void begin(stk_json_writer *w, bool object)
{
    if (!start_value(w)) return;
    if (w->depth >= STK_JSON_WRITER_DEPTH) {
        fail(w, "nested deeper than 256 levels");
        return;
    }
    uint8_t bit = (uint8_t)(1u << w->depth % 8), *cell = &w->is_object[w->depth / 8];
    *cell = (uint8_t)(object ? *cell | bit : *cell & ~bit);
    w->depth++;
    w->has_items = false;
    append(w, object ? "{" : "[", 1);
}

static void end(stk_json_writer *w, bool object)
{
    if (w->failure) return;
    if (w->depth == 0 || in_object(w) != object || w->has_name) {
        fail(w, "an end that does not match its begin");
        return;
    }
    w->depth--;
    if (w->has_items) new_line(w);
    append(w, object ? "}" : "]", 1);
    w->has_items = true;
}

void stk_json_begin_object(stk_json_writer *w) { begin(w, true); }
void stk_json_end_object(stk_json_writer *w) { end(w, true); }
void stk_json_begin_array(stk_json_writer *w) { begin(w, false); }
void stk_json_end_array(stk_json_writer *w) { end(w, false); }

static void append_quoted(stk_json_writer *w, const char *text, size_t size)
{
    append(w, "\"", 1);
    for (size_t i = 0, from = 0; i <= size; i++) { /* plain stretches are appended as a whole */
        unsigned char c = i < size ? (unsigned char)text[i] : 0;
        bool plain = i < size && c >= 0x20 && c != '"' && c != '\\';
        size_t length = plain ? stk_utf8_length(text + i, size - i) : 0;
        if (plain && length == 0) {
            fail(w, "text that is not UTF-8");
            return;
        }
        if (plain) {
            i += length - 1;
            continue;
        }
        append(w, text + from, i - from);
        from = i + 1;
        if (i == size) break;
        static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
        const char *found = c ? strchr(special, c) : NULL;
        char escape[8];
        if (found)
            snprintf(escape, sizeof escape, "\\%c", letter[found - special]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        append(w, escape, strlen(escape));
    }
    append(w, "\"", 1);
}

void stk_json_put_bytes(stk_json_writer *w, const char *text, size_t size)
{
    if (start_value(w)) append_quoted(w, text, size);
}

void stk_json_put_text(stk_json_writer *w, const char *text)
{
    if (text)
        stk_json_put_bytes(w, text, strlen(text));
    else
        stk_json_put_null(w);
}

static void name_bytes(stk_json_writer *w, const char *name, size_t size)
{
    if (w->failure) return;
    if (!in_object(w) || w->has_name) {
        fail(w, "a name where none belongs");
        return;
    }
    before_item(w);
    append_quoted(w, name, size);
    append(w, w->indent > 0 ? ": " : ":", w->indent > 0 ? 2 : 1);
    w->has_name = true;
}

void stk_json_name(stk_json_writer *w, const char *name) { name_bytes(w, name, strlen(name)); }

static void put_word(stk_json_writer *w, const char *word)
{
    if (start_value(w)) append(w, word, strlen(word));
}

void stk_json_put_null(stk_json_writer *w) { put_word(w, "null"); }
void stk_json_put_bool(stk_json_writer *w, bool value) { put_word(w, value ? "true" : "false"); }

void stk_json_put_int(stk_json_writer *w, int64_t value)
{
    char text[STK_NUMBER_TEXT];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_word(w, text);
}

/* Whole doubles get a ".0", so that they come back as doubles. */
void stk_json_put_double(stk_json_writer *w, double value)
{
    char text[STK_NUMBER_TEXT + 2];
    if (!isfinite(value)) {
        const char *word = value != value ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        put_word(w, w->allow_nonfinite ? word : "null");
        return;
    }
    stk_double_text(value, text);
    if (!strpbrk(text, ".e")) strcat(text, ".0");
    put_word(w, text);
}

void stk_json_put_tree(stk_json_writer *w, const stk_json *value)
{
    if (w->failure) return;
    switch (value ? value->kind : STK_JSON_NULL) {
    case STK_JSON_NULL: stk_json_put_null(w); break;
    case STK_JSON_BOOL: stk_json_put_bool(w, value->truth); break;
    case STK_JSON_INT: stk_json_put_int(w, value->integer); break;
    case STK_JSON_DOUBLE: stk_json_put_double(w, value->number); break;
    case STK_JSON_STRING: stk_json_put_bytes(w, value->text, (size_t)value->count); break;
    case STK_JSON_ARRAY:
    case STK_JSON_OBJECT:
        begin(w, value->kind == STK_JSON_OBJECT);
        for (int64_t i = 0; i < value->count; i++) {
            const stk_json *item = &value->items[i];
            if (value->kind == STK_JSON_OBJECT) name_bytes(w, item->name, (size_t)item->name_size);
            stk_json_put_tree(w, item);
        }
        end(w, value->kind == STK_JSON_OBJECT);
        break;
    }
}

void stk_json_discard(stk_json_writer *w)
{
    stk_free(w->data);
    *w = (stk_json_writer){.indent = w->indent, .allow_nonfinite = w->allow_nonfinite};
}

stk_status stk_json_finish(stk_json_writer *w, char **text, size_t *size, stk_error *err)
{
    if (!w->failure && (w->depth > 0 || !w->done))
        fail(w, "the text ends before its last value does");
    append(w, "", 0); /* room for the 0 */
    stk_status status = STK_OK;
    if (w->failure)
        status = w->no_memory ? stk_fail_memory(err, "json", w->size)
                              : stk_fail(err, STK_ERR_STATE, "json: %s (after %zu bytes)",
                                         w->failure, w->size);
    if (status == STK_OK) {
        w->data[w->size] = 0;
        *text = w->data;
        if (size) *size = w->size;
        w->data = NULL;
    }
    stk_json_discard(w);
    return status;
}

void stk_json_member_int(stk_json_writer *w, const char *name, int64_t value)
{
    stk_json_name(w, name);
    stk_json_put_int(w, value);
}

void stk_json_member_double(stk_json_writer *w, const char *name, double value)
{
    stk_json_name(w, name);
    stk_json_put_double(w, value);
}

void stk_json_member_text(stk_json_writer *w, const char *name, const char *text)
{
    stk_json_name(w, name);
    stk_json_put_text(w, text ? text : "");
}
