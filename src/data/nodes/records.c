/* tfrecord, text_lines, fixed_records - pieces of files as string scalars.
 *
 * Files are mapped, and a piece is a tensor that points into the map: nothing is copied, and the files stay
 * open as long as somebody holds a piece. */
#include "base/map.h"
#include "base/tensor.h"
#include "data/core/node.h"
#include "stoker/sources.h"

#include <stdio.h>
#include <string.h>

/* One file with its pieces. */
typedef struct piece_file {
    char *path;
    stk_record_reader *reader; /* tfrecord */
    stk_map map;               /* the others */
    int64_t count, before;     /* pieces here, and in all files before */
    uint64_t *starts;          /* text_lines: [count + 1] */
} piece_file;

/* Counted apart from the dataset: pieces may outlive it. */
typedef struct piece_files {
    int32_t refs, n;
    piece_file *file;
    int64_t bytes, header; /* fixed_records */
} piece_files;

typedef stk_status locate_function(const piece_files *files, const piece_file *file, int64_t index,
                                   stk_string *piece, stk_error *err);

typedef struct pieces {
    piece_files *files;
    locate_function *locate;
    stk_record_options options; /* tfrecord */
    char *quarantine;
} pieces;

static void files_release(piece_files *f)
{
    if (!f || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (int32_t i = 0; i < f->n; i++) {
        stk_records_close(f->file[i].reader);
        stk_map_close(&f->file[i].map);
        stk_free(f->file[i].starts);
        stk_free(f->file[i].path);
    }
    stk_free(f->file);
    stk_free(f);
}

static void drop(stk_dataset *ds)
{
    pieces *c = ds->config;
    files_release(c->files);
    stk_free(c->quarantine);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const pieces *c = ds->config;
    const char *name = c->files->n ? strrchr(c->files->file[0].path, '/') : NULL;
    snprintf(text, size, "%s%s",
             name          ? name + 1
             : c->files->n ? c->files->file[0].path
                           : "",
             c->files->n > 1 ? " and more" : "");
    if (c->files->n > 1)
        snprintf(text + strlen(text), size - strlen(text), ", %d files", c->files->n);
}

/* ---- by number ---------------------------------------------------------------------------------- */

/* A string scalar over memory of the files. */
typedef struct held {
    stk_string text;
    piece_files *files;
} held;

static void held_release(void *owner)
{
    held *h = owner;
    files_release(h->files);
    stk_free(h);
}

static stk_status hold(piece_files *files, stk_string piece, stk_tensor **out, stk_error *err)
{
    held *h = stk_malloc(sizeof *h);
    if (!h) return stk_fail_memory(err, "record", sizeof *h);
    __atomic_add_fetch(&files->refs, 1, __ATOMIC_RELAXED);
    *h = (held){piece, files};
    stk_status status =
        stk_tensor_wrap(STK_STRING, 0, NULL, NULL, &h->text, held_release, h, out, err);
    if (status != STK_OK) held_release(h);
    return status;
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    const pieces *c = stage->ds->config;
    int32_t low = 0, high = c->files->n - 1;
    while (low < high) { /* the last file that begins at or before index */
        int32_t middle = (low + high + 1) / 2;
        if (c->files->file[middle].before <= index)
            low = middle;
        else
            high = middle - 1;
    }
    const piece_file *f = &c->files->file[low];
    stk_string piece;
    STK_TRY(c->locate(c->files, f, index - f->before, &piece, err));
    return hold(c->files, piece, &parts[0], err);
}

static stk_status locate_record(const piece_files *files, const piece_file *f, int64_t index,
                                stk_string *piece, stk_error *err)
{
    (void)files;
    return stk_records_at(f->reader, index, piece, err);
}

static stk_status locate_line(const piece_files *files, const piece_file *f, int64_t index,
                              stk_string *piece, stk_error *err)
{
    (void)files;
    (void)err;
    const char *data = (const char *)f->map.data, *from = data + f->starts[index],
               *to = data + f->starts[index + 1];
    if (to > from && to[-1] == '\n') to--;
    if (to > from && to[-1] == '\r') to--;
    *piece = (stk_string){from, to - from};
    return STK_OK;
}

static stk_status locate_fixed(const piece_files *files, const piece_file *f, int64_t index,
                               stk_string *piece, stk_error *err)
{
    (void)err;
    *piece = (stk_string){(const char *)f->map.data + files->header + index * files->bytes,
                          files->bytes};
    return STK_OK;
}

/* ---- in order (compressed files, or damaged ones that are stepped over) -------------------------- */

typedef struct walking {
    int32_t file;
    stk_record_reader *reader;
    int64_t next; /* where to continue in this file when it is opened */
} walking;

static stk_status open_file(stk_iter *it, stk_error *err)
{
    walking *w = it->own;
    const pieces *c = it->stage->ds->config;
    stk_record_options o = c->options;
    o.quarantine = c->quarantine;
    STK_TRY(stk_records_open(c->files->file[w->file].path, &o, &w->reader, err));
    return w->next ? stk_records_seek(w->reader, w->next, err) : STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    walking *w = it->own;
    const pieces *c = it->stage->ds->config;
    for (*end = false; w->file < c->files->n; w->file++, w->next = 0) {
        if (!w->reader) {
            stk_status status = open_file(it, err);
            if (status != STK_OK) { /* the next call tries the next file */
                stk_records_close(w->reader);
                w->reader = NULL;
                w->file++;
                w->next = 0;
                return status;
            }
        }
        bool last = false;
        stk_string record;
        STK_TRY(stk_records_next(w->reader, &record, &last, err));
        if (!last) {
            w->next = stk_records_offset(w->reader) + record.size + 16;
            return stk_tensor_strings(0, NULL, &record, &parts[0], err);
        }
        stk_records_close(w->reader);
        w->reader = NULL;
    }
    *end = true;
    return STK_OK;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    const walking *w = it->own;
    stk_state_put(out, w->file);
    stk_state_put(out, w->next);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    walking *w = it->own;
    const pieces *c = it->stage->ds->config;
    w->file = (int32_t)stk_state_get_in(in, 0, c->files->n);
    w->next = stk_state_get_in(in, 0, INT64_MAX);
    return stk_state_status(in, err);
}

static void close_walk(stk_iter *it)
{
    walking *w = it->own;
    stk_records_close(w->reader);
}

static const stk_walk walk = {sizeof(walking), NULL, next, save, restore, close_walk};

static const stk_node_kind node_tfrecord = {.name = "tfrecord",
                                            .drop = drop,
                                            .describe = describe,
                                            .get = get,
                                            .walk = &walk,
                                            .steady = stk_always_steady};
static const stk_node_kind node_lines = {.name = "text_lines",
                                         .drop = drop,
                                         .describe = describe,
                                         .get = get,
                                         .steady = stk_always_steady};
static const stk_node_kind node_fixed = {.name = "fixed_records",
                                         .drop = drop,
                                         .describe = describe,
                                         .get = get,
                                         .steady = stk_always_steady};

/* ---- making ------------------------------------------------------------------------------------- */

static stk_dataset *make(const stk_node_kind *kind, int32_t n, const char *const *paths,
                         locate_function *locate, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(kind, 0, NULL, sizeof(pieces), err);
    if (!ds) return NULL;
    pieces *c = ds->config;
    stk_schema *schema = NULL;
    stk_status status =
        n > 0 && paths ? STK_OK
                       : stk_fail(err, STK_ERR_ARGUMENT, "%s: no files were given", kind->name);
    c->locate = locate;
    c->files = stk_calloc(1, sizeof *c->files);
    if (status == STK_OK && !c->files) status = stk_fail_memory(err, kind->name, sizeof *c->files);
    if (c->files) c->files->refs = 1;
    if (status == STK_OK) {
        c->files->file = stk_calloc((size_t)n, sizeof *c->files->file);
        if (!c->files->file) status = stk_fail_memory(err, kind->name, (size_t)n * 64);
    }
    for (int32_t i = 0; status == STK_OK && i < n; i++) {
        if (!paths[i]) {
            status = stk_fail(err, STK_ERR_ARGUMENT, "%s: path %d is NULL", kind->name, i);
            break;
        }
        c->files->file[i].path = stk_strdup(paths[i]);
        if (!c->files->file[i].path) status = stk_fail_memory(err, paths[i], 64);
        c->files->n = i + 1;
    }
    if (status == STK_OK)
        status = stk_schema_new(1, &(stk_field){.dtype = STK_STRING}, NULL, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    ds->random = true;
    return stk_dataset_done(ds, status);
}

/* Adds up what the files have. */
static void number(stk_dataset *ds)
{
    pieces *c = ds->config;
    int64_t before = 0;
    for (int32_t i = 0; i < c->files->n; i++) {
        c->files->file[i].before = before;
        before += c->files->file[i].count;
    }
    ds->cardinality = before;
}

/* Opens all files for access by number; *random becomes false when one cannot be. */
static stk_status open_records(pieces *c, bool *random, stk_error *err)
{
    *random = c->options.policy == STK_BAD_STOP;
    for (int32_t i = 0; *random && i < c->files->n; i++) {
        piece_file *f = &c->files->file[i];
        stk_error inner;
        STK_TRY(stk_records_open(f->path, &c->options, &f->reader, err));
        stk_status status = stk_records_count(f->reader, &f->count, &inner);
        /* Compressed, or with damaged lengths: read in order, where the damage is met in its place. */
        if (status == STK_ERR_UNSUPPORTED || status == STK_ERR_FORMAT)
            *random = false;
        else if (status != STK_OK)
            return stk_fail(err, status, "%s", inner.message);
    }
    return STK_OK;
}

stk_dataset *stk_data_tfrecord(int32_t n, const char *const *paths,
                               const stk_record_options *options, stk_error *err)
{
    stk_dataset *ds = make(&node_tfrecord, n, paths, locate_record, err);
    if (!ds) return NULL;
    pieces *c = ds->config;
    stk_status status = STK_OK;
    c->options = options ? *options : stk_record_options_defaults();
    if (c->options.quarantine) {
        c->quarantine = stk_strdup(c->options.quarantine);
        if (!c->quarantine) status = stk_fail_memory(err, "tfrecord", 64);
    }
    c->options.quarantine = c->quarantine;
    if (status == STK_OK) status = open_records(c, &ds->random, err);
    if (ds->random)
        number(ds);
    else
        ds->cardinality = STK_UNKNOWN;
    return stk_dataset_done(ds, status);
}

/* Where the lines begin, and the end of the file. */
static stk_status index_lines(piece_file *f, stk_error *err)
{
    const char *data = (const char *)f->map.data, *end = data + f->map.size;
    int64_t capacity = 0;
    for (const char *at = data; at < end;) {
        if (!STK_GROW(f->starts, f->count, capacity))
            return stk_fail_memory(err, f->path, (size_t)f->count * 16);
        f->starts[f->count++] = (uint64_t)(at - data);
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    }
    if (!STK_GROW(f->starts, f->count, capacity)) return stk_fail_memory(err, f->path, 16);
    f->starts[f->count] = f->map.size;
    return STK_OK;
}

stk_dataset *stk_data_text_lines(int32_t n, const char *const *paths, stk_error *err)
{
    stk_dataset *ds = make(&node_lines, n, paths, locate_line, err);
    if (!ds) return NULL;
    pieces *c = ds->config;
    stk_status status = STK_OK;
    for (int32_t i = 0; status == STK_OK && i < c->files->n; i++) {
        piece_file *f = &c->files->file[i];
        status = stk_map_open(f->path, true, &f->map, err);
        if (status == STK_OK) status = index_lines(f, err);
    }
    number(ds);
    return stk_dataset_done(ds, status);
}

stk_dataset *stk_data_fixed_records(int32_t n, const char *const *paths, int64_t bytes,
                                    int64_t header, int64_t footer, stk_error *err)
{
    stk_dataset *ds = make(&node_fixed, n, paths, locate_fixed, err);
    if (!ds) return NULL;
    pieces *c = ds->config;
    stk_status status = STK_OK;
    if (bytes < 1 || header < 0 || footer < 0)
        status =
            stk_fail(err, STK_ERR_RANGE,
                     "fixed_records: %lld bytes behind %lld and before %lld; records have 1 byte "
                     "or more",
                     (long long)bytes, (long long)header, (long long)footer);
    c->files->bytes = bytes;
    c->files->header = header;
    for (int32_t i = 0; status == STK_OK && i < c->files->n; i++) {
        piece_file *f = &c->files->file[i];
        status = stk_map_open(f->path, true, &f->map, err);
        int64_t body = (int64_t)f->map.size - header - footer;
        if (status == STK_OK && (body < 0 || body % bytes))
            status = stk_fail(err, STK_ERR_FORMAT,
                              "%s: %lld bytes between header and footer are no whole number of "
                              "records of %lld",
                              f->path, (long long)body, (long long)bytes);
        if (status == STK_OK) f->count = body / bytes;
    }
    number(ds);
    return stk_dataset_done(ds, status);
}
