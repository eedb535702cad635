/* Schemas: counted copies in one block, [refs | stk_schema | fields | texts]. */
#include "data/core/node.h"

#include "base/dtype.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct holder {
    int64_t refs;
    stk_schema schema; /* what the outside sees */
    stk_field fields[];
} holder;

static holder *holder_of(const stk_schema *schema)
{
    return (holder *)((char *)(uintptr_t)schema - offsetof(holder, schema));
}

/* Reads one node of a structure text and ticks off its leaves; NULL when it is malformed. */
static const char *read_structure(const char *at, int32_t n, uint8_t *seen, int depth)
{
    if (depth > 32) return NULL;
    if (*at == '(' || *at == '{') {
        char close = *at == '(' ? ')' : '}';
        bool named = *at++ == '{';
        while (*at != close) {
            if (named) {
                const char *start = at;
                while (*at && !strchr(":,(){}", *at)) at++;
                if (at == start || *at++ != ':') return NULL;
            }
            at = read_structure(at, n, seen, depth + 1);
            if (!at) return NULL;
            if (*at == ',')
                at++;
            else if (*at != close)
                return NULL;
        }
        return at + 1;
    }
    if (!isdigit((unsigned char)*at)) return NULL;
    int64_t leaf = 0;
    for (; isdigit((unsigned char)*at) && leaf < n; at++) leaf = leaf * 10 + (*at - '0');
    if (leaf >= n || seen[leaf]) return NULL;
    seen[leaf] = 1;
    return at;
}

static stk_status check_structure(const char *text, int32_t n, stk_error *err)
{
    uint8_t *seen = stk_calloc((size_t)n + 1, 1);
    if (!seen) return stk_fail_memory(err, "schema", (size_t)n);
    const char *end = read_structure(text, n, seen, 0);
    bool good = end && !*end;
    for (int32_t i = 0; i < n && good; i++) good = seen[i];
    stk_free(seen);
    if (good) return STK_OK;
    return stk_fail(
        err, STK_ERR_ARGUMENT,
        "schema: the structure \"%.80s\" does not name each leaf 0..%d once; write it like "
        "\"0\", \"(0,1)\" or \"({image:0,text:1},2)\"",
        text, (int)n - 1);
}

static stk_status check_field(const stk_field *f, int32_t i, stk_error *err)
{
    bool good = stk_dtype_valid(f->dtype) && f->rank >= -1 && f->rank <= STK_MAX_RANK;
    for (int32_t a = 0; good && a < f->rank; a++) good = f->shape[a] >= -1;
    if (good) return STK_OK;
    return stk_fail(
        err, STK_ERR_SHAPE,
        "schema: field %d (%s): needs a dtype, a rank of -1..%d and sizes of -1 or more", (int)i,
        f->name ? f->name : "no name", (int)STK_MAX_RANK);
}

static char *default_structure(int32_t n, char *text)
{
    if (n == 1) return strcpy(text, "0");
    char *at = text;
    *at++ = '(';
    for (int32_t i = 0; i < n; i++) at += sprintf(at, i ? ",%d" : "%d", (int)i);
    strcpy(at, ")");
    return text;
}

stk_status stk_schema_new(int32_t n, const stk_field *fields, const char *structure,
                          stk_schema **out, stk_error *err)
{
    if (!out || n < 0 || n > 65536 || (n && !fields))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "schema: %d fields%s; it takes 0..65536 of them and a place for the result",
                        (int)n, fields ? "" : ", and no list");
    *out = NULL;
    size_t texts = (size_t)n * 7 + 8 + (structure ? strlen(structure) : 0);
    for (int32_t i = 0; i < n; i++) {
        STK_TRY(check_field(&fields[i], i, err));
        texts += fields[i].name ? strlen(fields[i].name) + 1 : 1;
    }
    if (structure) STK_TRY(check_structure(structure, n, err));
    size_t size = sizeof(holder) + (size_t)n * sizeof(stk_field) + texts;
    holder *h = stk_calloc(1, size);
    if (!h) return stk_fail_memory(err, "schema", size);
    h->refs = 1;
    char *text = (char *)(h->fields + n);
    for (int32_t i = 0; i < n; i++) {
        h->fields[i] = fields[i];
        strcpy(text, fields[i].name ? fields[i].name : "");
        h->fields[i].name = text;
        text += strlen(text) + 1;
    }
    if (structure)
        strcpy(text, structure);
    else
        default_structure(n, text);
    h->schema = (stk_schema){n, h->fields, text};
    *out = &h->schema;
    return STK_OK;
}

stk_schema *stk_schema_retain(const stk_schema *schema)
{
    if (schema) __atomic_add_fetch(&holder_of(schema)->refs, 1, __ATOMIC_RELAXED);
    return (stk_schema *)(uintptr_t)schema;
}

void stk_schema_release(stk_schema *schema)
{
    if (schema && __atomic_sub_fetch(&holder_of(schema)->refs, 1, __ATOMIC_ACQ_REL) == 0)
        stk_free(holder_of(schema));
}

bool stk_schema_equal(const stk_schema *a, const stk_schema *b)
{
    if (a->n != b->n || strcmp(a->structure, b->structure) != 0) return false;
    for (int32_t i = 0; i < a->n; i++) {
        const stk_field *f = &a->fields[i], *g = &b->fields[i];
        if (f->dtype != g->dtype || f->rank != g->rank || f->dataset != g->dataset) return false;
        for (int32_t k = 0; k < f->rank; k++)
            if (f->shape[k] != g->shape[k]) return false;
    }
    return true;
}

const char *stk_structure_leaf(const char *structure, const char *at)
{
    const char *end = at;
    if (at != structure && !strchr("(,:", at[-1])) return NULL;
    while (isdigit((unsigned char)*end)) end++;
    return end != at && strchr(",)}", *end) ? end : NULL; /* in front of a ':' it would be a name */
}

static int put_field(const stk_field *f, char *text, size_t size)
{
    int used =
        snprintf(text, size, "%s%s", f->dataset ? "dataset of " : "", stk_dtype_name(f->dtype));
    size_t at = (size_t)used < size ? (size_t)used : size;
    if (f->rank < 0) return used + snprintf(text + at, size - at, "[...]");
    used += snprintf(text + at, size - at, "[");
    for (int32_t i = 0; i < f->rank; i++) {
        char dim[24] = "?";
        if (f->shape[i] >= 0) snprintf(dim, sizeof dim, "%lld", (long long)f->shape[i]);
        at = (size_t)used < size ? (size_t)used : size;
        used += snprintf(text + at, size - at, "%s%s", i ? "," : "", dim);
    }
    at = (size_t)used < size ? (size_t)used : size;
    return used + snprintf(text + at, size - at, "]");
}

char *stk_schema_describe(const stk_schema *schema, char *text, size_t size)
{
    size_t at = 0;
    if (!size) return text;
    text[0] = 0;
    for (const char *c = schema->structure; *c && at + 1 < size;) {
        const char *end = stk_structure_leaf(schema->structure, c);
        if (end) {
            at += (size_t)put_field(&schema->fields[strtol(c, NULL, 10)], text + at, size - at);
            c = end;
        } else {
            text[at++] = *c++;
            if (c[-1] == ',' || c[-1] == ':') text[at++] = ' ';
        }
        if (at >= size) at = size - 1;
        text[at] = 0;
    }
    return text;
}

stk_status stk_schema_check(const stk_schema *schema, stk_tensor *const *parts, stk_error *err)
{
    for (int32_t i = 0; i < schema->n; i++) {
        const stk_field *f = &schema->fields[i];
        const stk_tensor *t = parts[i];
        bool nested = t && stk_tensor_dataset(t);
        bool good = t && t->dtype == f->dtype && f->dataset == nested &&
                    (nested || f->rank < 0 || t->rank == f->rank);
        for (int32_t k = 0; good && !nested && k < f->rank; k++)
            good = f->shape[k] < 0 || f->shape[k] == t->shape[k];
        if (good) continue;
        char want[160], have[160] = "nothing";
        put_field(f, want, sizeof want);
        if (t) stk_tensor_describe(t, have, sizeof have);
        return stk_fail(
            err, t && t->dtype != f->dtype ? STK_ERR_DTYPE : STK_ERR_SHAPE,
            "part %d (%s) of an element is %s, the schema says %s; correct the function that "
            "makes it or the schema it announces",
            (int)i, f->name && *f->name ? f->name : "no name", have, want);
    }
    return STK_OK;
}

bool stk_schema_fixed(const stk_schema *schema)
{
    for (int32_t i = 0; i < schema->n; i++)
        if (stk_field_bytes(&schema->fields[i]) < 0) return false;
    return true;
}

int64_t stk_field_bytes(const stk_field *f)
{
    if (f->dtype == STK_STRING || f->rank < 0 || f->dataset) return -1;
    int64_t bytes = stk_dtype_size(f->dtype);
    for (int32_t i = 0; i < f->rank; i++)
        if (f->shape[i] < 0 || !stk_mul_i64(bytes, f->shape[i], &bytes)) return -1;
    return bytes;
}

stk_status stk_schema_tensors(const char *who, const stk_schema *schema, stk_error *err)
{
    for (int32_t i = 0; i < schema->n; i++)
        if (schema->fields[i].dataset)
            return stk_fail(err, STK_ERR_DTYPE,
                            "%s: part %d of the elements is a dataset; open it with flat_map first",
                            who, (int)i);
    return STK_OK;
}

stk_status stk_schema_batched(const stk_schema *in, int64_t size, stk_schema **out, stk_error *err)
{
    stk_field *fields = stk_calloc((size_t)in->n + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "schema", (size_t)in->n * sizeof *fields);
    stk_status status = stk_schema_tensors("batch", in, err);
    for (int32_t i = 0; i < in->n && status == STK_OK; i++) {
        stk_field *f = &fields[i];
        *f = in->fields[i];
        if (f->rank < 0) continue;
        if (f->rank == STK_MAX_RANK)
            status = stk_fail(err, STK_ERR_SHAPE,
                              "batch: field %d has %d axes already, one more does not fit", (int)i,
                              (int)STK_MAX_RANK);
        else {
            memmove(f->shape + 1, f->shape, (size_t)f->rank * sizeof *f->shape);
            f->shape[0] = size;
            f->rank++;
        }
    }
    if (status == STK_OK) status = stk_schema_new(in->n, fields, in->structure, out, err);
    stk_free(fields);
    return status;
}
