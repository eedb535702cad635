/* json.h - JSON in and out: settings, caches, model files, reports.
 *
 * Reading makes a tree in one arena. Strict RFC 8259: UTF-8 is checked, surrogate pairs are joined,
 * lone ones refused; a byte order mark in front is skipped. Numbers without fraction and exponent
 * that fit are exact int64, all others the nearest double; too large ones are refused. Of members
 * with the same name the last one counts for stk_json_get; all stay in `items`. */
#ifndef STK_BASE_JSON_H
#define STK_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum stk_json_kind {
    STK_JSON_NULL,
    STK_JSON_BOOL,
    STK_JSON_INT,
    STK_JSON_DOUBLE,
    STK_JSON_STRING,
    STK_JSON_ARRAY,
    STK_JSON_OBJECT
} stk_json_kind;

typedef struct stk_json {
    stk_json_kind kind;
    bool truth;                   /* BOOL */
    int64_t count;                /* ARRAY, OBJECT: items; STRING: bytes */
    int64_t integer;              /* INT */
    double number;                /* DOUBLE, and INT as a double */
    const char *text;             /* STRING: 0-terminated as well; may hold \u0000 inside */
    const struct stk_json *items; /* ARRAY, OBJECT */
    const char *name;             /* of a member, 0-terminated; NULL elsewhere */
    int64_t name_size;
} stk_json;

typedef struct stk_json_options {
    int32_t max_depth;    /* nesting beyond this is refused; 256 */
    bool allow_nonfinite; /* also NaN, Infinity and -Infinity, as Python writes them; false */
} stk_json_options;
stk_json_options stk_json_defaults(void);

typedef struct stk_json_document stk_json_document;
/* options NULL = defaults. The tree does not point into `text`. */
STK_MUST_USE stk_status stk_json_parse(const char *text, size_t size,
                                       const stk_json_options *options, stk_json_document **out,
                                       stk_error *err);
const stk_json *stk_json_root(const stk_json_document *document);
void stk_json_release(stk_json_document *document); /* NULL is fine */

/* Asking. All accept NULL, so that chains need one test at their end. */
const stk_json *stk_json_get(const stk_json *object, const char *name); /* NULL when absent */
const stk_json *stk_json_item(const stk_json *array, int64_t index);    /* NULL when absent */
const char *stk_json_text(const stk_json *value, const char *otherwise);
int64_t stk_json_int(const stk_json *value, int64_t otherwise); /* also doubles that are whole */
double stk_json_double(const stk_json *value, double otherwise);
bool stk_json_bool(const stk_json *value, bool otherwise);
const char *stk_json_kind_name(stk_json_kind kind); /* "object" */

/* Writing, from the outside in:
 *
 *     stk_json_writer w = {.indent = 2};
 *     stk_json_begin_object(&w);
 *     stk_json_name(&w, "loss");
 *     stk_json_put_double(&w, 0.25);
 *     stk_json_end_object(&w);
 *     status = stk_json_finish(&w, &text, &size, err);     // one test for everything above
 *
 * Failures (no memory, wrong nesting, text that is not UTF-8) are remembered until finish. */
enum { STK_JSON_WRITER_DEPTH = 256 };
typedef struct stk_json_writer {
    int32_t indent;       /* spaces per level; 0 = all on one line */
    bool allow_nonfinite; /* NaN and Infinity as such; otherwise null */
    /* private */
    char *data;
    size_t size, capacity;
    int32_t depth;
    bool has_items, has_name, done;
    uint8_t is_object[STK_JSON_WRITER_DEPTH / 8];
    const char *failure;
    bool no_memory;
} stk_json_writer;

void stk_json_begin_object(stk_json_writer *w);
void stk_json_end_object(stk_json_writer *w);
void stk_json_begin_array(stk_json_writer *w);
void stk_json_end_array(stk_json_writer *w);
void stk_json_name(stk_json_writer *w, const char *name);
void stk_json_put_null(stk_json_writer *w);
void stk_json_put_bool(stk_json_writer *w, bool value);
void stk_json_put_int(stk_json_writer *w, int64_t value);
void stk_json_put_double(stk_json_writer *w, double value); /* shortest that reads back the same */
void stk_json_put_text(stk_json_writer *w, const char *text);
/* A name with its value. Text NULL is "". */
void stk_json_member_int(stk_json_writer *w, const char *name, int64_t value);
void stk_json_member_double(stk_json_writer *w, const char *name, double value);
void stk_json_member_text(stk_json_writer *w, const char *name, const char *text);
void stk_json_put_bytes(stk_json_writer *w, const char *text, size_t size);
void stk_json_put_tree(stk_json_writer *w, const stk_json *value);

/* Hands the text over (0-terminated, freed with stk_free) and empties the writer; on failure the
 * writer is emptied as well. */
STK_MUST_USE stk_status stk_json_finish(stk_json_writer *w, char **text, size_t *size,
                                        stk_error *err);
void stk_json_discard(stk_json_writer *w);

#endif
