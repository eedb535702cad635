/* Lists of elements, and schemas put together. */
#include "data/core/element_list.h"

#include "data/core/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t bytes_of(const stk_element_list *h, int64_t elements, stk_tensor *const *parts)
{
    return h->stage ? stk_parts_bytes(elements * h->width, parts) + 64 * elements : 0;
}

stk_status stk_element_list_add(stk_element_list *h, stk_tensor **parts, stk_error *err)
{
    if (h->count == h->capacity) {
        int64_t larger = h->capacity ? h->capacity * 2 : 8;
        size_t item = (size_t)h->width * sizeof *parts;
        stk_tensor **grown =
            stk_realloc(h->parts, (size_t)h->capacity * item, (size_t)larger * item + 1);
        if (!grown) return stk_fail_memory(err, "elements", (size_t)larger * item);
        h->parts = grown;
        h->capacity = larger;
    }
    if (h->stage)
        STK_TRY(
            stk_run_take_ram(h->stage->run, h->stage->ds->kind->name, bytes_of(h, 1, parts), err));
    memcpy(h->parts + h->count * h->width, parts, (size_t)h->width * sizeof *parts);
    memset(parts, 0, (size_t)h->width * sizeof *parts);
    h->count++;
    return STK_OK;
}

void stk_element_list_drop(stk_element_list *h, int64_t first)
{
    if (first > h->count) first = h->count;
    if (first <= 0) return;
    if (h->stage) stk_run_give_ram(h->stage->run, bytes_of(h, first, h->parts));
    stk_parts_release(first * h->width, h->parts);
    h->count -= first;
    memmove(h->parts, h->parts + first * h->width,
            (size_t)(h->count * h->width) * sizeof *h->parts);
}

void stk_element_list_clear(stk_element_list *h) { stk_element_list_drop(h, h->count); }

void stk_element_list_release(stk_element_list *h)
{
    stk_element_list_clear(h);
    stk_free(h->parts);
    h->parts = NULL;
    h->capacity = 0;
}

void stk_element_list_save(const stk_element_list *h, stk_state *out)
{
    stk_state_put(out, h->count);
    stk_state_put_parts(out, (int32_t)(h->count * h->width), h->parts);
}

stk_status stk_element_list_restore(stk_element_list *h, stk_state *in, stk_error *err)
{
    int64_t count = stk_state_get_in(in, 0, INT32_MAX);
    stk_tensor **parts = stk_parts_new(h->width);
    if (!parts) return stk_fail_memory(err, "elements", 64);
    stk_status status = stk_state_status(in, err);
    for (int64_t i = 0; i < count && status == STK_OK; i++) {
        status = stk_state_get_parts(in, h->width, parts, err);
        if (status == STK_OK) status = stk_element_list_add(h, parts, err);
        stk_parts_release(h->width, parts);
    }
    stk_free(parts);
    return status;
}

int64_t stk_parts_bytes(int64_t n, stk_tensor *const *parts)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++) bytes += stk_tensor_bytes(parts[i]);
    return bytes;
}

/* The structure text with `shift` added to every leaf number. */
static char *shifted(const char *structure, int32_t shift, char *to)
{
    for (const char *c = structure; *c;) {
        const char *end = stk_structure_leaf(structure, c);
        if (end) {
            to += sprintf(to, "%ld", strtol(c, NULL, 10) + shift);
            c = end;
        } else {
            *to++ = *c++;
        }
    }
    *to = 0;
    return to;
}

stk_status stk_schema_join(int32_t n, const stk_schema *const *schemas, stk_schema **out,
                           stk_error *err)
{
    int32_t total = 0;
    size_t length = 8;
    for (int32_t i = 0; i < n; i++) {
        total += schemas[i]->n;
        length += strlen(schemas[i]->structure) + (size_t)schemas[i]->n * 8 + 2;
    }
    stk_field *fields = stk_calloc((size_t)total + 1, sizeof *fields);
    char *structure = stk_calloc(length, 1);
    stk_status status = fields && structure ? STK_OK : stk_fail_memory(err, "schema", length);
    if (status == STK_OK) {
        int32_t at = 0;
        char *to = structure;
        *to++ = '(';
        for (int32_t i = 0; i < n; i++) {
            if (i) *to++ = ',';
            to = shifted(schemas[i]->structure, at, to);
            for (int32_t k = 0; k < schemas[i]->n; k++) fields[at++] = schemas[i]->fields[k];
        }
        strcpy(to, ")");
        status = stk_schema_new(total, fields, structure, out, err);
    }
    stk_free(fields);
    stk_free(structure);
    return status;
}

stk_status stk_schema_common(const char *who, const stk_schema *a, const stk_schema *b,
                             stk_schema **out, stk_error *err)
{
    bool fit = a->n == b->n && strcmp(a->structure, b->structure) == 0;
    for (int32_t i = 0; fit && i < a->n; i++)
        fit = a->fields[i].dtype == b->fields[i].dtype &&
              a->fields[i].dataset == b->fields[i].dataset;
    if (!fit) {
        char left[200], right[200];
        return stk_fail(
            err, STK_ERR_DTYPE,
            "%s: elements are %s here and %s there; map them to the same structure and dtypes", who,
            stk_schema_describe(a, left, sizeof left), stk_schema_describe(b, right, sizeof right));
    }
    stk_field *fields = stk_calloc((size_t)a->n + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, who, (size_t)a->n * sizeof *fields);
    for (int32_t i = 0; i < a->n; i++) {
        fields[i] = a->fields[i];
        if (fields[i].rank != b->fields[i].rank) fields[i].rank = -1;
        for (int32_t k = 0; k < fields[i].rank; k++)
            if (fields[i].shape[k] != b->fields[i].shape[k]) fields[i].shape[k] = -1;
    }
    stk_status status = stk_schema_new(a->n, fields, a->structure, out, err);
    stk_free(fields);
    return status;
}
