/* image_folder - pictures by number, one folder per class, as Keras' image_dataset_from_directory reads them. */
#define _GNU_SOURCE
#include "base/map.h"
#include "base/resize_taps.h"
#include "base/rng.h"
#include "base/tensor.h"
#include "data/core/node.h"
#include "data/pictures/picture.h"
#include "data/pixels/pixels.h"
#include "stoker/sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct picture_file {
    const char *path;
    int32_t label;
} picture_file;

typedef struct folder {
    stk_arena arena; /* paths and class names */
    picture_file *files;
    int64_t count, capacity;
    const char **classes;
    int32_t class_count;
    stk_image_folder_options options;
    stk_pixels *resize; /* NULL: pictures keep their size */
} folder;

static const stk_node_kind node_folder;

stk_image_folder_options stk_image_folder_options_defaults(void)
{
    return (stk_image_folder_options){
        .height = 256, .width = 256, .channels = 3, .method = STK_TAPS_BILINEAR};
}

static void drop(stk_dataset *ds)
{
    folder *c = ds->config;
    stk_pixels_release(c->resize);
    stk_free(c->files);
    stk_arena_release(&c->arena);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const folder *c = ds->config;
    snprintf(text, size, "%d classes, %lld files", c->class_count, (long long)c->count);
    if (c->options.height)
        snprintf(text + strlen(text), size - strlen(text), ", to %lld x %lld",
                 (long long)c->options.height, (long long)c->options.width);
    if (c->options.scaled) snprintf(text + strlen(text), size - strlen(text), ", scaled JPEG");
}

/* ---- one picture -------------------------------------------------------------------------------- */

/* The largest middle window with the proportions that are wanted. */
static stk_status choose_crop(const folder *c, const stk_map *file, stk_picture_options *o,
                              stk_error *err)
{
    stk_picture_info info;
    STK_TRY(stk_picture_probe(file->data, file->size, &info, err));
    double want = (double)c->options.width / (double)c->options.height;
    double have = (double)info.width / (double)info.height;
    o->height = have < want ? (int64_t)((double)info.width / want) : info.height;
    o->width = have > want ? (int64_t)((double)info.height * want) : info.width;
    if (o->height < 1) o->height = 1;
    if (o->width < 1) o->width = 1;
    o->top = (info.height - o->height) / 2;
    o->left = (info.width - o->width) / 2;
    return STK_OK;
}

/* JPEG in the wanted size: every row is resized while it is warm, and the picture is never there as a whole. */
typedef struct shrinking {
    const folder *c;
    stk_canvas out;
    stk_resampler *resampler;
} shrinking;

static stk_status shrink_begin(void *context, int64_t height, int64_t width, int64_t channels,
                               stk_error *err)
{
    shrinking *s = context;
    (void)channels; /* as asked for */
    stk_resampler_free(s->resampler);
    s->resampler = NULL;
    return stk_resampler_new(height, width, &s->out, s->c->options.method, s->c->options.antialias,
                             &s->resampler, err);
}
static uint8_t *shrink_place(void *context, int64_t y)
{
    return stk_resampler_place(((shrinking *)context)->resampler, y);
}
static void shrink_put(void *context, int64_t y)
{
    stk_resampler_put(((shrinking *)context)->resampler, y);
}

static bool shrinks(const folder *c, const stk_map *file)
{
    const stk_image_folder_options *f = &c->options;
    return c->resize && f->method != STK_TAPS_NEAREST && (f->channels == 1 || f->channels == 3) &&
           stk_picture_detect(file->data, file->size) == STK_PICTURE_JPEG;
}

static stk_status shrink(const folder *c, const stk_map *file, const stk_picture_options *o,
                         stk_tensor **out, stk_error *err)
{
    const stk_image_folder_options *f = &c->options;
    stk_tensor *made = NULL;
    if (!*out)
        STK_TRY(
            stk_tensor_raw(STK_F32, 3, (int64_t[]){f->height, f->width, f->channels}, &made, err));
    shrinking s = {
        c, {(made ? made : *out)->data, STK_F32, f->height, f->width, f->channels}, NULL};
    stk_row_taker taker = {&s, shrink_begin, shrink_place, shrink_put};
    stk_status status = stk_jpeg_decode_rows(file->data, file->size, o, &taker, err);
    stk_resampler_free(s.resampler);
    if (status != STK_OK)
        stk_tensor_release(made);
    else if (made)
        *out = made;
    return status;
}

static stk_status decode(const folder *c, const stk_map *file, const stk_picture_options *o,
                         stk_tensor **out, stk_error *err)
{
    if (shrinks(c, file)) return shrink(c, file, o, out, err);
    stk_tensor *image = NULL;
    STK_TRY(stk_picture_decode(file->data, file->size, o, &image, err));
    if (!c->resize) {
        *out = image;
        return STK_OK;
    }
    stk_status status = stk_pixels_run(c->resize, 0, 0, image, out, err);
    stk_tensor_release(image);
    return status;
}

/* *out NULL: a new one; else written into. */
static stk_status make_image(const folder *c, const picture_file *file, stk_tensor **out,
                             stk_error *err)
{
    const stk_image_folder_options *f = &c->options;
    stk_picture_options o = stk_picture_options_defaults();
    o.channels = f->channels;
    if (f->scaled && f->height) {
        o.least_height = f->height;
        o.least_width = f->width;
    }
    stk_map map;
    STK_TRY(stk_map_open(file->path, true, &map, err));
    stk_status status = f->keep_aspect && f->height ? choose_crop(c, &map, &o, err) : STK_OK;
    if (status == STK_OK) status = decode(c, &map, &o, out, err);
    stk_map_close(&map);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "%s", file->path);
}

static stk_status make_label(const folder *c, const picture_file *file, stk_tensor **out,
                             stk_error *err)
{
    if (c->options.labels == STK_LABEL_INT)
        return stk_tensor_from(STK_I32, 0, NULL, &file->label, out, err);
    int64_t n = c->options.labels == STK_LABEL_BINARY ? 1 : c->class_count;
    STK_TRY(stk_tensor_new(STK_F32, 1, &n, out, err));
    if (c->options.labels == STK_LABEL_BINARY)
        ((float *)(*out)->data)[0] = (float)file->label;
    else
        ((float *)(*out)->data)[file->label] = 1;
    return STK_OK;
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    const folder *c = stage->ds->config;
    parts[0] = NULL;
    STK_TRY(make_image(c, &c->files[index], &parts[0], err));
    if (c->options.labels == STK_LABEL_NONE) return STK_OK;
    parts[1] = NULL;
    stk_status status = make_label(c, &c->files[index], &parts[1], err);
    if (status != STK_OK) stk_parts_release(1, parts);
    return status;
}

/* Straight into the batch. */
static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    (void)epoch;
    const folder *c = stage->ds->config;
    for (int64_t i = 0; i < n; i++) {
        stk_tensor view, *out = &view;
        stk_row_view(slots[0], row + i, &view);
        STK_TRY(make_image(c, &c->files[index[i]], &out, err));
        if (c->options.labels == STK_LABEL_NONE) continue;
        stk_tensor *label = NULL;
        STK_TRY(make_label(c, &c->files[index[i]], &label, err));
        stk_status status = stk_slot_put("image_folder", slots[1], row + i, label, err);
        stk_tensor_release(label);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

static const stk_node_kind node_folder = {.name = "image_folder",
                                          .drop = drop,
                                          .describe = describe,
                                          .get = get,
                                          .rows = rows,
                                          .steady = stk_always_steady};

/* ---- finding files ------------------------------------------------------------------------------ */

static bool is_picture(const char *name)
{
    static const char *const ends[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png"};
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < 5; i++)
        if (strcasecmp(dot, ends[i]) == 0) return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a folder, sorted, in the arena; hidden ones are left out. */
static stk_status list(stk_arena *arena, const char *path, const char ***out, int64_t *count,
                       stk_error *err)
{
    DIR *d = opendir(path);
    if (!d)
        return stk_fail(err, STK_ERR_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    const char **names = NULL;
    int64_t n = 0, capacity = 0;
    stk_status status = STK_OK;
    for (struct dirent *e; status == STK_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char *copy = stk_arena_strdup(arena, e->d_name);
        if (!copy || !STK_GROW(names, n, capacity))
            status = stk_fail_memory(err, path, 64);
        else
            names[n++] = copy;
    }
    closedir(d);
    if (n) qsort(names, (size_t)n, sizeof *names, by_text);
    *out = names;
    *count = n;
    if (status != STK_OK) {
        stk_free(names);
        *out = NULL;
    }
    return status;
}

static char *join_path(stk_arena *arena, const char *folder_path, const char *name)
{
    size_t size = strlen(folder_path) + strlen(name) + 2;
    char *path = stk_arena_alloc(arena, size);
    if (path) snprintf(path, size, "%s/%s", folder_path, name);
    return path;
}

/* 'd' folder, 'f' file, 0 neither; links are followed. */
static char kind_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) return 0;
    return S_ISDIR(info.st_mode) ? 'd' : S_ISREG(info.st_mode) ? 'f' : 0;
}

/* Files first, then those of the folders, as os.walk has them. */
static stk_status add_files(folder *c, const char *path, int32_t label, int depth, stk_error *err)
{
    const char **names = NULL;
    int64_t n = 0, folders = 0; /* their paths take the places of names that are done */
    STK_TRY(list(&c->arena, path, &names, &n, err));
    stk_status status = STK_OK;
    for (int64_t i = 0; status == STK_OK && i < n; i++) {
        const char *at = join_path(&c->arena, path, names[i]);
        char kind = at ? kind_of(at) : 0;
        bool picture = kind == 'f' && is_picture(names[i]);
        if (!at || (picture && !STK_GROW(c->files, c->count, c->capacity)))
            status = stk_fail_memory(err, path, 64);
        else if (picture)
            c->files[c->count++] = (picture_file){at, label};
        else if (kind == 'd')
            names[folders++] = at;
    }
    for (int64_t i = 0; status == STK_OK && depth < 32 && i < folders; i++)
        status = add_files(c, names[i], label, depth + 1, err);
    stk_free(names);
    return status;
}

static stk_status find_classes(folder *c, const char *path, stk_error *err)
{
    const stk_image_folder_options *o = &c->options;
    const char **names = NULL;
    int64_t n = 0;
    STK_TRY(list(&c->arena, path, &names, &n, err));
    int64_t most = o->class_count > 0 ? o->class_count : n;
    c->classes = stk_arena_array(&c->arena, (size_t)most + 1, sizeof *c->classes);
    stk_status status = c->classes ? STK_OK : stk_fail_memory(err, path, (size_t)most * 8);
    for (int64_t i = 0; status == STK_OK && i < most; i++) {
        const char *name =
            o->class_count > 0 ? stk_arena_strdup(&c->arena, o->classes[i]) : names[i];
        char *at = name ? join_path(&c->arena, path, name) : NULL;
        if (!at)
            status = stk_fail_memory(err, path, 64);
        else if (kind_of(at) == 'd')
            c->classes[c->class_count++] = name;
        else if (o->class_count > 0)
            status =
                stk_fail(err, STK_ERR_IO, "%s: there is no folder for class \"%s\"", path, name);
    }
    stk_free(names);
    if (status == STK_OK && c->class_count == 0 && o->labels != STK_LABEL_NONE)
        status =
            stk_fail(err, STK_ERR_FORMAT,
                     "%s: has no folders; put the pictures of each class into a folder of its own "
                     "inside of it, or ask for no labels",
                     path);
    return status;
}

/* Keeps one part of the files: those the permutation puts first, or the rest. */
static void split(folder *c)
{
    const stk_image_folder_options *o = &c->options;
    if (!(o->validation > 0)) return;
    int64_t aside = (int64_t)(o->validation * (double)c->count), kept = 0;
    stk_perm perm = stk_perm_init(o->seed, c->count > 0 ? c->count : 1);
    for (int64_t i = 0; i < c->count; i++)
        if ((stk_perm_get(&perm, i) < aside) == o->validation_part) c->files[kept++] = c->files[i];
    c->count = kept;
}

/* ---- making ------------------------------------------------------------------------------------- */

static stk_status make_steps(folder *c, stk_error *err)
{
    const stk_image_folder_options *o = &c->options;
    if (o->height == 0 && o->width == 0) return STK_OK;
    stk_pixel_step step = {.op = STK_PIXEL_RESIZE,
                           .height = o->height,
                           .width = o->width,
                           .method = o->method,
                           .antialias = o->antialias};
    return stk_pixels_new(1, &step, &c->resize, err);
}

static stk_status make_schema(const folder *c, stk_schema **out, stk_error *err)
{
    const stk_image_folder_options *o = &c->options;
    bool sized = o->height > 0;
    stk_field fields[2] = {
        {.name = "image",
         .dtype = sized && o->method != STK_TAPS_NEAREST ? STK_F32 : STK_U8,
         .rank = 3,
         .shape = {sized ? o->height : -1, sized ? o->width : -1, o->channels ? o->channels : -1}},
        {.name = "label", .dtype = o->labels == STK_LABEL_INT ? STK_I32 : STK_F32}};
    if (o->labels != STK_LABEL_INT) {
        fields[1].rank = 1;
        fields[1].shape[0] = o->labels == STK_LABEL_BINARY ? 1 : c->class_count;
    }
    return stk_schema_new(o->labels == STK_LABEL_NONE ? 1 : 2, fields, NULL, out, err);
}

static stk_status fill(stk_dataset *ds, const char *path, stk_error *err)
{
    folder *c = ds->config;
    const stk_image_folder_options *o = &c->options;
    stk_schema *schema = NULL;
    if (!path || (o->class_count > 0 && !o->classes) || o->validation < 0 || o->validation >= 1)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "image_folder: path or classes are missing, or the validation share %g is "
                        "not in 0..1",
                        o->validation);
    STK_TRY(find_classes(c, path, err));
    if (o->labels == STK_LABEL_BINARY && c->class_count != 2)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: has %d classes, binary labels need 2", path,
                        c->class_count);
    for (int32_t i = 0; i < c->class_count; i++) {
        char *at = join_path(&c->arena, path, c->classes[i]);
        if (!at) return stk_fail_memory(err, path, 64);
        STK_TRY(add_files(c, at, i, 0, err));
    }
    if (c->class_count == 0) STK_TRY(add_files(c, path, 0, 0, err));
    if (c->count == 0)
        return stk_fail(err, STK_ERR_IO, "%s: no .jpg, .jpeg, .png, .gif or .bmp files below it",
                        path);
    split(c);
    STK_TRY(make_steps(c, err));
    STK_TRY(make_schema(c, &schema, err));
    stk_dataset_set_schema(ds, schema);
    ds->random = true;
    ds->parallel = STK_AUTOTUNE; /* decoding is work */
    ds->cardinality = c->count;
    return STK_OK;
}

stk_dataset *stk_data_image_folder(const char *path, const stk_image_folder_options *options,
                                   stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&node_folder, 0, NULL, sizeof(folder), err);
    if (!ds) return NULL;
    ((folder *)ds->config)->options = options ? *options : stk_image_folder_options_defaults();
    return stk_dataset_done(ds, fill(ds, path, err));
}

const char *const *stk_data_classes(const stk_dataset *ds, int32_t *count)
{
    while (ds && ds->kind != &node_folder) ds = ds->ninputs ? ds->inputs[0] : NULL;
    if (!ds) return NULL;
    const folder *c = ds->config;
    if (count) *count = c->class_count;
    return c->classes;
}
