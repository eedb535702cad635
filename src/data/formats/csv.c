/* Tables: opening (header, wanted columns, types), reading all at once on all processors, reading
 * piece by piece. */
#include "base/cpus.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/tensor.h"
#include "data/formats/csv.h"

#include <math.h>
#include <stdio.h>

struct stk_csv {
    stk_csv_plan plan;
    stk_map map;
    bool mapped;
    const char *text, *body, *end, *at; /* file, first row, its end, next row */
    int32_t threads;
    bool guessed;    /* the types of the columns, from some rows or from all */
    stk_arena arena; /* of the plan */
};

enum { GUESS_ROWS = 1000, CHUNK = 2 << 20 };
static const char *const default_missing[] = {"NA", "N/A", "null", "NULL", NULL};

stk_csv_options stk_csv_options_defaults(void)
{
    return (stk_csv_options){
        .delimiter = ',', .header = true, .quotes = true, .missing = default_missing};
}

/* ---- the plan ----------------------------------------------------------------------------------- */

static stk_status copy_missing(stk_csv *t, const char *const *given, stk_error *err)
{
    size_t count = 0;
    while (given && given[count]) count++;
    const char **own = stk_arena_array(&t->arena, count + 1, sizeof *own);
    for (size_t i = 0; own && i < count; i++)
        if (!(own[i] = stk_arena_strdup(&t->arena, given[i]))) own = NULL;
    if (!own) return stk_fail_memory(err, t->plan.name, count * sizeof *own);
    t->plan.missing = own;
    return STK_OK;
}

/* The fields of the line at t->at, as texts in the arena; t->at moves behind it. */
static stk_status split_line(stk_csv *t, const char *line, const char *end, const char ***out,
                             int32_t *count, stk_error *err)
{
    int32_t n = 0, room = 1;
    for (const char *c = line; c < end; c++) room += *c == t->plan.delimiter;
    const char **fields = stk_arena_array(&t->arena, (size_t)room, sizeof *fields);
    if (!fields) return stk_fail_memory(err, t->plan.name, (size_t)room * sizeof *fields);
    for (const char *at = line;; at++) {
        stk_string text;
        stk_status status = stk_csv_field(&t->plan, at, end, &t->arena, &text, &at, err);
        if (status != STK_OK) return stk_fail_in(err, status, "%s: first line", t->plan.name);
        char *copy = stk_arena_alloc(&t->arena, (size_t)text.size + 1);
        if (!copy) return stk_fail_memory(err, t->plan.name, (size_t)text.size + 1);
        memcpy(copy, text.data, (size_t)text.size);
        fields[n++] = copy;
        if (at == end || *at != t->plan.delimiter) break;
    }
    *out = fields;
    *count = n;
    return STK_OK;
}

static stk_status add_column(stk_csv *t, const char **header, const stk_csv_column *given,
                             int32_t index, stk_error *err)
{
    stk_csv_plan *p = &t->plan;
    int32_t number = given->number;
    if (given->name) {
        for (number = 0; header && number < p->fields; number++)
            if (strcmp(header[number], given->name) == 0) break;
        if (!header || number == p->fields)
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: has no column \"%s\"%s", p->name,
                            given->name, header ? "" : ", and no header line to look it up in");
    }
    if (number < 0 || number >= p->fields)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: has %d columns, there is no column %d", p->name,
                        p->fields, number);
    if (p->slot[number] >= 0)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: column %d is asked for twice", p->name, number);
    if (!stk_dtype_valid(given->dtype))
        return stk_fail(err, STK_ERR_DTYPE, "%s: column %d has no valid type", p->name, number);
    stk_csv_column *own = &p->column[index];
    *own = *given;
    own->number = number;
    own->name = NULL;
    own->fallback_text =
        stk_arena_strdup(&t->arena, given->fallback_text ? given->fallback_text : "");
    p->title[index] = header ? header[number] : "";
    p->slot[number] = index;
    return own->fallback_text ? STK_OK : stk_fail_memory(err, p->name, 16);
}

/* The type of one field of the sample, joined with what was seen of its column before. */
static stk_dtype guess(const stk_csv_plan *p, stk_string text, stk_dtype before, bool *missing)
{
    int64_t whole;
    float number;
    if (stk_csv_is_missing(p, text)) {
        *missing = true;
        return before;
    }
    if (before == STK_STRING) return before;
    if ((before == STK_I64 || before == STK_DTYPE_COUNT) &&
        stk_csv_number(p, STK_I64, text, &whole))
        return STK_I64;
    return stk_csv_number(p, STK_F32, text, &number) ? STK_F32 : STK_STRING;
}

/* All columns, typed by the first `rows` rows. Too short rows are left to the real reading. */
static stk_status guess_columns(const stk_csv *t, int64_t rows, stk_csv_column *columns,
                                stk_error *err)
{
    stk_arena scratch = {0};
    const stk_csv_plan *p = &t->plan;
    bool *missing = stk_arena_array(&scratch, (size_t)p->fields, sizeof *missing);
    stk_status status = missing ? STK_OK : stk_fail_memory(err, p->name, (size_t)p->fields);
    for (int32_t f = 0; f < p->fields; f++)
        columns[f] = (stk_csv_column){.number = f, .dtype = STK_DTYPE_COUNT};
    const char *at = t->body;
    for (int64_t row = 0; status == STK_OK && row < rows && at < t->end; row++) {
        const char *end = stk_csv_row_end(p, at, t->end), *field = at;
        bool blank = stk_csv_is_blank(at, end);
        for (int32_t f = 0; status == STK_OK && !blank && f < p->fields; f++, field++) {
            stk_string text;
            status = stk_csv_field(p, field, end, &scratch, &text, &field, err);
            if (status != STK_OK) break;
            columns[f].dtype = guess(p, text, columns[f].dtype, &missing[f]);
            if (field == end || *field != p->delimiter) break;
        }
        if (status == STK_ERR_FORMAT) status = STK_OK; /* said with its place when it is read */
        at = end;
    }
    for (int32_t f = 0; status == STK_OK && f < p->fields; f++) {
        if (columns[f].dtype == STK_DTYPE_COUNT) columns[f].dtype = STK_F32;
        if (columns[f].dtype == STK_I64 && missing[f]) columns[f].dtype = STK_F32;
        columns[f].fallback = NAN;
        columns[f].required = columns[f].dtype == STK_I64; /* an integer cannot say "missing" */
    }
    stk_arena_release(&scratch);
    return status;
}

static stk_status make_plan(stk_csv *t, const stk_csv_options *o, const char **header,
                            stk_error *err)
{
    stk_csv_plan *p = &t->plan;
    p->wanted = o->columns ? o->column_count : p->fields;
    p->slot = stk_arena_array(&t->arena, (size_t)p->fields, sizeof *p->slot);
    p->column = stk_arena_array(&t->arena, (size_t)p->wanted, sizeof *p->column);
    p->title = stk_arena_array(&t->arena, (size_t)p->wanted, sizeof *p->title);
    stk_csv_column *guessed =
        o->columns ? NULL : stk_arena_array(&t->arena, (size_t)p->fields, sizeof *guessed);
    if (!p->slot || !p->column || !p->title || (!o->columns && !guessed))
        return stk_fail_memory(err, p->name, (size_t)p->fields * sizeof *p->column);
    for (int32_t f = 0; f < p->fields; f++) p->slot[f] = -1;
    if (guessed) STK_TRY(guess_columns(t, GUESS_ROWS, guessed, err));
    t->guessed = guessed != NULL;
    for (int32_t i = 0; i < p->wanted; i++)
        STK_TRY(add_column(t, header, guessed ? &guessed[i] : &o->columns[i], i, err));
    return STK_OK;
}

/* Some row said what the guess had not seen: all rows are looked at, and types become as wide as they need. false: no type
 * changed. */
static bool guess_again(stk_csv *t)
{
    stk_csv_plan *p = &t->plan;
    bool wider = false;
    stk_csv_column *columns = t->guessed ? stk_calloc((size_t)p->fields, sizeof *columns) : NULL;
    if (columns && guess_columns(t, INT64_MAX, columns, NULL) == STK_OK)
        for (int32_t i = 0; i < p->wanted; i++) {
            wider |= p->column[i].dtype != columns[i].dtype;
            p->column[i].dtype = columns[i].dtype;
            p->column[i].required = columns[i].required;
        }
    stk_free(columns);
    return wider;
}

/* "a,b<CR>1,2<CR>": without a line end that counts, all of it would be the header. */
static stk_status check_line_end(const stk_csv *t, const char *at, const char *end, stk_error *err)
{
    const char *cr = memchr(at, '\r', (size_t)(end - at));
    bool quoted = t->plan.quotes && memchr(at, '"', (size_t)(end - at));
    if (!cr || quoted || cr + 1 == t->end || cr[1] == '\n') return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: its lines end in CR alone (byte %lld), as on very old machines; lines end "
                    "in LF or CR LF (tr '\\r' '\\n' turns them)",
                    t->plan.name, (long long)(cr - t->text));
}

/* Header and width of the table. */
static stk_status begin_table(stk_csv *t, const stk_csv_options *o, stk_error *err)
{
    const char *at = t->text;
    const char **header = NULL;
    if (t->end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* byte order mark */
    for (int64_t i = 0; i < o->skip_lines && at < t->end; i++) {
        const char *line = memchr(at, '\n', (size_t)(t->end - at));
        at = line ? line + 1 : t->end;
    }
    while (at < t->end && stk_csv_is_blank(at, t->end)) at += *at == '\r' ? 2 : 1;
    if (at > t->end) at = t->end;
    if (at == t->end)
        return stk_fail(err, STK_ERR_FORMAT, "%s: holds no line, so its columns are unknown",
                        t->plan.name);
    const char *end = stk_csv_row_end(&t->plan, at, t->end);
    STK_TRY(check_line_end(t, at, end, err));
    STK_TRY(split_line(t, at, end, &header, &t->plan.fields, err));
    t->body = o->header ? end : at;
    t->at = t->body;
    return make_plan(t, o, o->header ? header : NULL, err);
}

static stk_status check_options(const char *name, const stk_csv_options *o, stk_error *err)
{
    if (o->delimiter == '"' || o->delimiter == '\n' || o->delimiter == '\r' || !o->delimiter)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%s: the delimiter must not be a quote, a line end or zero", name);
    if (o->columns && o->column_count < 1)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: %d columns are asked for", name,
                        o->column_count);
    return STK_OK;
}

static stk_status open_over(const char *name, stk_map map, bool mapped, const stk_csv_options *o,
                            stk_csv **out, stk_error *err)
{
    stk_csv_options defaults = stk_csv_options_defaults();
    if (!o) o = &defaults;
    STK_TRY(check_options(name, o, err));
    stk_csv *t = stk_calloc(1, sizeof *t);
    if (!t) return stk_fail_memory(err, name, sizeof *t);
    t->text = t->body = t->at = (const char *)map.data;
    t->end = t->text + map.size;
    t->threads = o->threads;
    t->plan = (stk_csv_plan){.name = stk_arena_strdup(&t->arena, name),
                             .delimiter = o->delimiter,
                             .quotes = o->quotes,
                             .fives = stk_fives_table()};
    stk_status status = t->plan.name ? STK_OK : stk_fail_memory(err, name, strlen(name));
    if (status == STK_OK) status = copy_missing(t, o->missing, err);
    if (status == STK_OK) status = begin_table(t, o, err);
    if (status != STK_OK) {
        stk_csv_close(t);
        return status;
    }
    t->map = map;
    t->mapped = mapped;
    *out = t;
    return STK_OK;
}

stk_status stk_csv_open(const char *path, const stk_csv_options *options, stk_csv **out,
                        stk_error *err)
{
    *out = NULL;
    stk_map map;
    STK_TRY(stk_map_open(path, true, &map, err));
    stk_status status = open_over(path, map, true, options, out, err);
    if (status != STK_OK) stk_map_close(&map);
    return status;
}

stk_status stk_csv_open_memory(const char *name, const void *data, size_t size,
                               const stk_csv_options *options, stk_csv **out, stk_error *err)
{
    *out = NULL;
    if (!name || (!data && size)) return stk_fail(err, STK_ERR_ARGUMENT, "csv: data is NULL");
    return open_over(name, (stk_map){.data = size ? data : (const void *)"", .size = size}, false,
                     options, out, err);
}

void stk_csv_close(stk_csv *t)
{
    if (!t) return;
    if (t->mapped) stk_map_close(&t->map);
    stk_arena_release(&t->arena);
    stk_free(t);
}

int32_t stk_csv_column_count(const stk_csv *t) { return t->plan.wanted; }
const char *stk_csv_column_name(const stk_csv *t, int32_t column) { return t->plan.title[column]; }
stk_dtype stk_csv_column_dtype(const stk_csv *t, int32_t column)
{
    return t->plan.column[column].dtype;
}

/* ---- everything at once ------------------------------------------------------------------------- */

typedef struct chunk {
    const char *begin, *end;
    int64_t first, rows;
    stk_arena arena;
    stk_status status;
    stk_error err;
} chunk;

typedef struct whole {
    const stk_csv *table;
    chunk *chunks;
    void *const *data;
} whole;

static void count_chunk(void *context, int64_t part, int32_t thread)
{
    (void)thread;
    whole *w = context;
    chunk *c = &w->chunks[part];
    c->rows = 0;
    for (const char *at = c->begin; at < c->end;) {
        c->rows += !stk_csv_is_blank(at, c->end);
        at = stk_csv_row_end(&w->table->plan, at, c->end);
    }
}

static void parse_chunk(void *context, int64_t part, int32_t thread)
{
    (void)thread;
    whole *w = context;
    chunk *c = &w->chunks[part];
    int64_t rows = 0;
    stk_csv_sink sink = {w->data, &c->arena};
    c->status = stk_csv_rows(&w->table->plan, w->table->text, c->begin, c->end, c->first, c->rows,
                             &sink, &rows, &c->err);
    if (c->status == STK_OK && rows != c->rows)
        c->status = stk_fail(&c->err, STK_ERR_FORMAT,
                             "%s: quotes do not match between byte %lld "
                             "and %lld",
                             w->table->plan.name, (long long)(c->begin - w->table->text),
                             (long long)(c->end - w->table->text));
}

/* Cuts the body into chunks that end with rows. With quotes about, a line end may lie inside a
 * field, so rows are walked from the beginning; without, the next line end does. */
static int64_t cut_chunks(const stk_csv *t, chunk *chunks)
{
    int64_t n = 0;
    bool quoted = t->plan.quotes && memchr(t->body, '"', (size_t)(t->end - t->body));
    for (const char *at = t->body; at < t->end; n++) {
        const char *goal = t->end - at > CHUNK ? at + CHUNK : t->end, *end = goal;
        if (quoted)
            for (end = at; end < goal;) end = stk_csv_row_end(&t->plan, end, t->end);
        else if (end < t->end)
            end = stk_csv_row_end(&t->plan, goal, t->end);
        chunks[n] = (chunk){.begin = at, .end = end};
        at = end;
    }
    return n;
}

/* Memory for the numbered rows, then the rows themselves. */
static stk_status read_chunks(const stk_csv *t, chunk *chunks, int64_t count, stk_pool *pool,
                              stk_tensor **columns, stk_error *err)
{
    whole w = {.table = t, .chunks = chunks};
    stk_pool_run(pool, count_chunk, &w, count);
    int64_t rows = 0;
    for (int64_t i = 0; i < count; i++) {
        chunks[i].first = rows;
        rows += chunks[i].rows;
    }
    stk_csv_columns g = {0};
    stk_status status = stk_csv_columns_make(&t->plan, 1, &rows, &g, err);
    if (status == STK_OK) {
        w.data = g.data;
        stk_pool_run(pool, parse_chunk, &w, count);
        for (int64_t i = 0; i < count && status == STK_OK; i++) {
            status = chunks[i].status;
            if (status != STK_OK && err) *err = chunks[i].err;
        }
    }
    if (status == STK_OK) status = stk_csv_columns_finish(&t->plan, &g, 1, &rows, columns, err);
    stk_csv_columns_free(&t->plan, &g);
    return status;
}

stk_status stk_csv_read(stk_csv *t, stk_tensor **columns, stk_error *err)
{
    memset(columns, 0, (size_t)t->plan.wanted * sizeof *columns);
    int64_t most = (t->end - t->body) / CHUNK + 2;
    chunk *chunks = stk_calloc((size_t)most, sizeof *chunks);
    if (!chunks) return stk_fail_memory(err, t->plan.name, (size_t)most * sizeof *chunks);
    int64_t count = cut_chunks(t, chunks);
    int32_t threads = t->threads > 0 ? t->threads : stk_cpu_count();
    if (threads > count) threads = count > 0 ? (int32_t)count : 1;
    stk_pool *pool = NULL;
    stk_status status = stk_pool_new(threads, &pool, err);
    if (status == STK_OK) status = read_chunks(t, chunks, count, pool, columns, err);
    if (status == STK_ERR_FORMAT && guess_again(t))
        status = read_chunks(t, chunks, count, pool, columns, err);
    stk_status there = stk_map_check(&t->map, err); /* what was cut off reads as zeros */
    for (int32_t i = 0; there != STK_OK && i < t->plan.wanted; i++) {
        stk_tensor_release(columns[i]);
        columns[i] = NULL;
    }
    if (there != STK_OK) status = there;
    stk_pool_release(pool);
    for (int64_t i = 0; i < count; i++) stk_arena_release(&chunks[i].arena);
    stk_free(chunks);
    return status;
}

/* ---- piece by piece ----------------------------------------------------------------------------- */

stk_status stk_csv_next(stk_csv *t, int64_t most, stk_tensor **columns, int64_t *rows,
                        stk_error *err)
{
    memset(columns, 0, (size_t)t->plan.wanted * sizeof *columns);
    *rows = 0;
    int64_t found = 0;
    const char *stop = t->at;
    while (stop < t->end && found < most) {
        found += !stk_csv_is_blank(stop, t->end);
        stop = stk_csv_row_end(&t->plan, stop, t->end);
    }
    if (found == 0) {
        t->at = stop;
        return STK_OK;
    }
    stk_csv_columns g = {0};
    stk_arena arena = {0};
    stk_status status = stk_csv_columns_make(&t->plan, 1, &found, &g, err);
    if (status == STK_OK) {
        stk_csv_sink sink = {g.data, &arena};
        status = stk_csv_rows(&t->plan, t->text, t->at, stop, 0, found, &sink, rows, err);
        if (status == STK_ERR_FORMAT && t->guessed)
            status = stk_fail_in(err, status,
                                 "types were guessed from the first %d rows; name the columns and "
                                 "their types instead",
                                 GUESS_ROWS);
    }
    stk_status there = stk_map_check(&t->map, err);
    if (there != STK_OK) status = there;
    if (status == STK_OK) status = stk_csv_columns_finish(&t->plan, &g, 1, rows, columns, err);
    if (status == STK_OK) t->at = stop;
    stk_csv_columns_free(&t->plan, &g);
    stk_arena_release(&arena);
    return status;
}

int64_t stk_csv_offset(const stk_csv *t) { return t->at - t->text; }

stk_status stk_csv_seek(stk_csv *t, int64_t offset, stk_error *err)
{
    if (offset < t->body - t->text || offset > t->end - t->text)
        return stk_fail(err, STK_ERR_RANGE,
                        "%s: byte %lld is not in the rows, which are %lld..%lld", t->plan.name,
                        (long long)offset, (long long)(t->body - t->text),
                        (long long)(t->end - t->text));
    t->at = t->text + offset;
    return STK_OK;
}

/* ---- lines that are already in memory ------------------------------------------------------------ */

static stk_status decode_lines(stk_csv *t, const stk_tensor *lines, stk_tensor **columns,
                               stk_error *err)
{
    stk_csv_plan *p = &t->plan;
    stk_csv_columns g = {0};
    stk_status status = stk_csv_columns_make(p, lines->rank, lines->shape, &g, err);
    int64_t count = stk_tensor_count(lines);
    for (int64_t i = 0; status == STK_OK && i < count; i++) {
        const stk_string *line = stk_tensor_address(lines, i);
        stk_csv_sink sink = {g.data, &t->arena};
        int64_t rows = 0;
        status = stk_csv_rows(p, line->data, line->data, line->data + line->size, i, 1, &sink,
                              &rows, err);
        if (status == STK_OK && rows != 1)
            status = stk_fail(err, STK_ERR_FORMAT, "decode_csv: line %lld is empty", (long long)i);
    }
    if (status == STK_OK)
        status = stk_csv_columns_finish(p, &g, lines->rank, lines->shape, columns, err);
    stk_csv_columns_free(p, &g);
    return status;
}

stk_status stk_decode_csv(const stk_tensor *lines, const stk_csv_options *o, stk_tensor **columns,
                          stk_error *err)
{
    STK_TRY(stk_tensor_check("decode_csv", lines, err));
    if (lines->dtype != STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "decode_csv: the lines are %s, not strings",
                        stk_dtype_name(lines->dtype));
    if (!o || !o->columns)
        return stk_fail(err, STK_ERR_ARGUMENT, "decode_csv: the columns have to be given");
    STK_TRY(check_options("decode_csv", o, err));
    memset(columns, 0, (size_t)o->column_count * sizeof *columns);
    stk_csv t = {.plan = {.name = "decode_csv",
                          .delimiter = o->delimiter,
                          .quotes = o->quotes,
                          .fields = 0,
                          .fives = stk_fives_table()}};
    stk_status status = copy_missing(&t, o->missing, err);
    /* Lines are as wide as the first one. */
    if (status == STK_OK && stk_tensor_count(lines) > 0) {
        const stk_string *first = stk_tensor_address(lines, 0);
        const char **fields;
        status =
            split_line(&t, first->data, first->data + first->size, &fields, &t.plan.fields, err);
    } else {
        for (int32_t i = 0; i < o->column_count; i++)
            if (o->columns[i].number >= t.plan.fields) t.plan.fields = o->columns[i].number + 1;
    }
    if (status == STK_OK) status = make_plan(&t, o, NULL, err);
    if (status == STK_OK) status = decode_lines(&t, lines, columns, err);
    stk_arena_release(&t.arena);
    return status;
}
