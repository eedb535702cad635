/* The functions that open records: Examples, raw bytes, pictures, lines of tables. */
#include "base/tensor.h"
#include "data/formats/example.h"
#include "data/core/node.h"
#include "stoker/sources.h"

#include <stdio.h>
#include <string.h>

static stk_status the_string(const char *who, const stk_tensor *t, const stk_string **out,
                             stk_error *err)
{
    if (t->dtype != STK_STRING || t->rank != 0)
        return stk_fail(err, STK_ERR_DTYPE, "%s: takes string scalars, here is %s", who,
                        STK_TENSOR_TEXT(t));
    *out = t->data;
    return STK_OK;
}

static stk_status pass(stk_tensor *in, stk_tensor **out, stk_error *err)
{
    if (*out) return stk_tensor_copy(*out, in, err);
    *out = stk_tensor_retain(in);
    return STK_OK;
}

static void retained_release(void *owner) { stk_tensor_release(owner); }

/* Memory inside a string as a tensor that keeps the string alive; a copy when it is not aligned for its type. */
static stk_status look_into(stk_tensor *string, const void *data, stk_dtype dtype, int32_t rank,
                            const int64_t *shape, stk_tensor **out, stk_error *err)
{
    if ((uintptr_t)data % (size_t)stk_dtype_size(dtype) == 0) {
        stk_tensor *owner = stk_tensor_retain(string);
        stk_status status = stk_tensor_wrap(dtype, rank, shape, NULL, (void *)(uintptr_t)data,
                                            retained_release, owner, out, err);
        if (status != STK_OK) stk_tensor_release(owner);
        return status;
    }
    return stk_tensor_from(dtype, rank, shape, data, out, err);
}

/* ---- parse_example ------------------------------------------------------------------------------- */

/* One feature: raw bytes where they stand, numbers into the slot that was given, the rest anew. */
static stk_status example_part(const stk_example_parser *p, int32_t i,
                               const stk_feature_place *place, stk_tensor *record, stk_tensor **out,
                               stk_error *err)
{
    const stk_feature *f = stk_example_parser_feature(p, i);
    if (f->kind == STK_FEATURE_RAW) {
        const void *data = NULL;
        stk_tensor *seen = NULL;
        STK_TRY(stk_example_raw(p, i, place, &data, err));
        STK_TRY(look_into(record, data, f->dtype, f->rank, f->shape, &seen, err));
        *out = seen;
        return STK_OK;
    }
    if (*out && f->kind == STK_FEATURE_FIXED && f->dtype != STK_STRING && stk_tensor_is_dense(*out))
        return stk_example_read(p, i, place, (*out)->data, err);
    stk_tensor *made = NULL;
    STK_TRY(stk_example_make(p, i, place, &made, err));
    *out = made;
    return STK_OK;
}

static stk_status example_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                               stk_tensor **out, stk_error *err)
{
    (void)info;
    enum { FEW = 32 };
    const stk_example_parser *p = context;
    const stk_string *record = NULL;
    int32_t n = stk_example_parser_count(p);
    stk_feature_place few[FEW], *places = few;
    STK_TRY(the_string("parse_example", in[0], &record, err));
    if (n > FEW) places = stk_calloc((size_t)n, sizeof *places);
    if (!places) return stk_fail_memory(err, "parse_example", (size_t)n * sizeof *places);
    stk_status status = stk_example_locate(p, record->data, (size_t)record->size, places, err);
    for (int32_t i = 0; status == STK_OK && i < n; i++)
        status = example_part(p, i, &places[i], in[0], &out[i], err);
    if (places != few) stk_free(places);
    return status;
}

static stk_status example_schema(void *context, const stk_schema *in, stk_schema **out,
                                 stk_error *err)
{
    const stk_example_parser *p = context;
    int32_t n = stk_example_parser_count(p);
    if (in->n != 1 || in->fields[0].dtype != STK_STRING)
        return stk_fail(
            err, STK_ERR_DTYPE,
            "parse_example: takes string scalars, one record each; put it behind tfrecord");
    size_t room = 4;
    for (int32_t i = 0; i < n; i++) room += strlen(stk_example_parser_feature(p, i)->name) + 16;
    char *structure = stk_malloc(room), *at = structure;
    stk_field *fields = stk_calloc((size_t)n, sizeof *fields);
    if (!structure || !fields) {
        stk_free(structure);
        stk_free(fields);
        return stk_fail_memory(err, "parse_example", room);
    }
    *at++ = '{';
    for (int32_t i = 0; i < n; i++) {
        const stk_feature *f = stk_example_parser_feature(p, i);
        stk_field *field = &fields[i];
        *field = (stk_field){.name = f->name, .dtype = f->dtype, .rank = f->rank};
        memcpy(field->shape, f->shape, sizeof f->shape);
        if (f->kind == STK_FEATURE_VAR) {
            field->rank = f->in_list ? 2 : 1;
            field->shape[0] = field->shape[1] = -1;
        } else if (f->kind == STK_FEATURE_SEQUENCE) {
            field->rank = f->rank + 1;
            field->shape[0] = -1;
            memcpy(field->shape + 1, f->shape, sizeof f->shape - sizeof f->shape[0]);
        }
        at += snprintf(at, room - (size_t)(at - structure), "%s%s:%d", i ? "," : "", f->name, i);
    }
    snprintf(at, room - (size_t)(at - structure), "}");
    stk_error inner;
    stk_status status = stk_schema_new(n, fields, structure, out, &inner);
    /* Names that the notation of structures cannot hold: a tuple, the names stay in the fields. */
    if (status != STK_OK && status != STK_ERR_MEMORY)
        status = stk_schema_new(n, fields, NULL, out, err);
    else if (status != STK_OK)
        (void)stk_fail(err, status, "%s", inner.message);
    stk_free(structure);
    stk_free(fields);
    return status;
}

static void example_release(void *context) { stk_example_parser_free(context); }

stk_status stk_map_parse_example(int32_t count, const stk_feature *features, bool sequence,
                                 stk_map_fn *fn, stk_error *err)
{
    stk_example_parser *p = NULL;
    STK_TRY(stk_example_parser_new(count, features, sequence, &p, err));
    *fn = (stk_map_fn){.name = "parse_example",
                       .context = p,
                       .call = example_call,
                       .schema = example_schema,
                       .release = example_release,
                       .flags = STK_MAP_PURE};
    return STK_OK;
}

/* ---- one part of an element ---------------------------------------------------------------------- */

typedef struct opener {
    const char *name;
    /* The string `in`, which says `text`, as something else. */
    stk_status (*open)(const struct opener *o, stk_tensor *in, const stk_string *text,
                       stk_tensor **out, stk_error *err);
    int32_t part, rank;
    stk_dtype dtype;
    int64_t shape[STK_MAX_RANK];
    stk_picture_options picture;
} opener;

static void opener_release(void *context) { stk_free(context); }

/* The schema with one part replaced. */
static stk_status replace_part(const char *who, const opener *o, const stk_schema *in,
                               stk_field field, stk_schema **out, stk_error *err)
{
    if (o->part >= in->n || in->fields[o->part].dtype != STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "%s: part %d of the elements is no string", who,
                        o->part);
    stk_field *fields = stk_calloc((size_t)in->n, sizeof *fields);
    if (!fields) return stk_fail_memory(err, who, (size_t)in->n * sizeof *fields);
    memcpy(fields, in->fields, (size_t)in->n * sizeof *fields);
    field.name = in->fields[o->part].name;
    fields[o->part] = field;
    stk_status status = stk_schema_new(in->n, fields, in->structure, out, err);
    stk_free(fields);
    return status;
}

/* Opens its part, passes on the others. */
static stk_status opener_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    const opener *o = context;
    for (int32_t i = 0; i < info->inputs; i++) {
        if (i != o->part) {
            STK_TRY(pass(in[i], &out[i], err));
            continue;
        }
        const stk_string *text = NULL;
        stk_tensor *opened = NULL;
        STK_TRY(the_string(o->name, in[i], &text, err));
        STK_TRY(o->open(o, in[i], text, &opened, err));
        out[i] = opened;
    }
    return STK_OK;
}

static stk_status opener_new(const char *name, int32_t part, stk_map_fn *fn, opener **out,
                             stk_error *err)
{
    if (part < 0) return stk_fail(err, STK_ERR_ARGUMENT, "%s: part %d", name, part);
    *out = stk_calloc(1, sizeof **out);
    if (!*out) return stk_fail_memory(err, name, sizeof **out);
    (*out)->part = part;
    (*out)->name = name;
    *fn = (stk_map_fn){.name = name,
                       .context = *out,
                       .call = opener_call,
                       .release = opener_release,
                       .flags = STK_MAP_PURE};
    return STK_OK;
}

/* ---- decode_raw ---------------------------------------------------------------------------------- */

static stk_status raw_shape(const opener *o, int64_t bytes, int32_t *rank, int64_t *shape,
                            stk_error *err)
{
    int64_t unit = stk_dtype_size(o->dtype), known = 1, open = -1;
    *rank = o->rank < 0 ? 1 : o->rank;
    for (int32_t i = 0; i < *rank; i++) {
        shape[i] = o->rank < 0 ? -1 : o->shape[i];
        if (shape[i] < 0)
            open = i;
        else
            known *= shape[i];
    }
    if (bytes % unit == 0 && open >= 0 && known > 0 && bytes / unit % known == 0)
        shape[open] = bytes / unit / known;
    else if (bytes % unit || open >= 0 || known != bytes / unit)
        return stk_fail(err, STK_ERR_SHAPE,
                        "decode_raw: %lld bytes do not make elements of %s in the shape given",
                        (long long)bytes, stk_dtype_name(o->dtype));
    return STK_OK;
}

static stk_status raw_open(const opener *o, stk_tensor *in, const stk_string *text,
                           stk_tensor **out, stk_error *err)
{
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    STK_TRY(raw_shape(o, text->size, &rank, shape, err));
    return look_into(in, text->data, o->dtype, rank, shape, out, err);
}

static stk_status raw_schema(void *context, const stk_schema *in, stk_schema **out, stk_error *err)
{
    const opener *o = context;
    stk_field field = {.dtype = o->dtype, .rank = o->rank < 0 ? 1 : o->rank, .shape = {-1}};
    if (o->rank >= 0) memcpy(field.shape, o->shape, sizeof field.shape);
    return replace_part("decode_raw", o, in, field, out, err);
}

stk_status stk_map_decode_raw(int32_t part, stk_dtype dtype, int32_t rank, const int64_t *shape,
                              stk_map_fn *fn, stk_error *err)
{
    opener *o = NULL;
    int32_t open = 0;
    if ((unsigned)dtype >= STK_DTYPE_COUNT || dtype == STK_STRING || rank > STK_MAX_RANK)
        return stk_fail(err, STK_ERR_DTYPE, "decode_raw: bytes are no elements of %s",
                        stk_dtype_name(dtype));
    for (int32_t i = 0; i < rank; i++) open += shape[i] < 0;
    if (open > 1)
        return stk_fail(err, STK_ERR_SHAPE, "decode_raw: one size may be open, not %d", open);
    STK_TRY(opener_new("decode_raw", part, fn, &o, err));
    o->dtype = dtype;
    o->rank = rank < 0 ? -1 : rank;
    for (int32_t i = 0; i < rank; i++) o->shape[i] = shape[i];
    o->open = raw_open;
    fn->schema = raw_schema;
    return STK_OK;
}

/* ---- decode_image -------------------------------------------------------------------------------- */

static stk_status image_open(const opener *o, stk_tensor *in, const stk_string *text,
                             stk_tensor **out, stk_error *err)
{
    (void)in;
    return stk_picture_decode(text->data, (size_t)text->size, &o->picture, out, err);
}

static stk_status image_schema(void *context, const stk_schema *in, stk_schema **out,
                               stk_error *err)
{
    const opener *o = context;
    const stk_picture_options *p = &o->picture;
    bool fixed = p->height > 0 && p->width > 0 && !p->least_height && !p->least_width;
    stk_field field = {
        .dtype = p->dtype,
        .rank = 3,
        .shape = {fixed ? p->height : -1, fixed ? p->width : -1, p->channels ? p->channels : -1}};
    return replace_part("decode_image", o, in, field, out, err);
}

stk_status stk_map_decode_image(int32_t part, const stk_picture_options *options, stk_map_fn *fn,
                                stk_error *err)
{
    opener *o = NULL;
    STK_TRY(opener_new("decode_image", part, fn, &o, err));
    o->picture = options ? *options : stk_picture_options_defaults();
    o->open = image_open;
    fn->schema = image_schema;
    return STK_OK;
}

/* ---- decode_csv ---------------------------------------------------------------------------------- */

typedef struct csv_opener {
    stk_csv_options options;
    stk_csv_column *columns;
    stk_arena arena; /* texts */
} csv_opener;

static void csv_release(void *context)
{
    csv_opener *o = context;
    stk_arena_release(&o->arena);
    stk_free(o);
}

static stk_status csv_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    enum { FEW = 64 };
    (void)info;
    const csv_opener *o = context;
    int32_t n = o->options.column_count;
    stk_tensor *few[FEW], **made = n <= FEW ? few : stk_parts_new(n);
    if (!made) return stk_fail_memory(err, "decode_csv", (size_t)n * sizeof *made);
    stk_status status = stk_decode_csv(in[0], &o->options, made, err);
    if (status == STK_OK) memcpy(out, made, (size_t)n * sizeof *out);
    if (made != few) stk_free(made);
    return status;
}

static stk_status csv_schema(void *context, const stk_schema *in, stk_schema **out, stk_error *err)
{
    const csv_opener *o = context;
    int32_t n = o->options.column_count;
    if (in->n != 1 || in->fields[0].dtype != STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "decode_csv: takes lines; put it behind text_lines");
    stk_field *fields = stk_calloc((size_t)n, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "decode_csv", (size_t)n * sizeof *fields);
    for (int32_t i = 0; i < n; i++) {
        fields[i] = in->fields[0]; /* a batch of lines gives columns of its shape */
        fields[i].name = NULL;
        fields[i].dtype = o->columns[i].dtype;
    }
    stk_status status = stk_schema_new(n, fields, NULL, out, err);
    stk_free(fields);
    return status;
}

stk_status stk_map_decode_csv(const stk_csv_options *options, stk_map_fn *fn, stk_error *err)
{
    if (!options || !options->columns || options->column_count < 1)
        return stk_fail(err, STK_ERR_ARGUMENT, "decode_csv: the columns have to be given");
    csv_opener *o = stk_calloc(1, sizeof *o);
    if (!o) return stk_fail_memory(err, "decode_csv", sizeof *o);
    int32_t n = options->column_count;
    o->options = *options;
    o->columns = stk_arena_copy(&o->arena, options->columns, (size_t)n * sizeof *o->columns);
    bool good = o->columns != NULL;
    for (int32_t i = 0; good && i < n; i++) {
        stk_csv_column *c = &o->columns[i];
        c->name = NULL;
        if (!c->fallback_text) continue;
        c->fallback_text = stk_arena_strdup(&o->arena, c->fallback_text);
        good = c->fallback_text != NULL;
    }
    int32_t missing = 0;
    while (good && options->missing && options->missing[missing]) missing++;
    const char **texts = stk_arena_array(&o->arena, (size_t)missing + 1, sizeof *texts);
    good = good && texts;
    for (int32_t i = 0; good && i < missing; i++)
        good = (texts[i] = stk_arena_strdup(&o->arena, options->missing[i])) != NULL;
    if (!good) {
        csv_release(o);
        return stk_fail_memory(err, "decode_csv", (size_t)n * sizeof *o->columns);
    }
    o->options.columns = o->columns;
    o->options.missing = texts;
    *fn = (stk_map_fn){.name = "decode_csv",
                       .context = o,
                       .call = csv_call,
                       .schema = csv_schema,
                       .release = csv_release,
                       .flags = STK_MAP_PURE};
    return STK_OK;
}
