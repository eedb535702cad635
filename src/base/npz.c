/* .npz: a ZIP archive of .npy members. "name.npy" is the tensor "name"; other members are passed
 * over. Of two members with the same name the last one counts, as for Python. */
#include "base/npz.h"

#include "base/memory.h"
#include "base/npy.h"
#include "stoker/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stk_npz {
    stk_arena arena; /* the names */
    char **names;
    stk_tensor **tensors;
    int32_t count;
};

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct member_source {
    stk_npy_source source;
    stk_zip_stream *stream;
} member_source;

static stk_status read_member(stk_npy_source *self, void *to, size_t size, stk_error *err)
{
    return stk_zip_stream_read(((member_source *)self)->stream, to, size, err);
}

/* out NULL: only looks whether it could be loaded. */
static stk_status load_member(const stk_zip *zip, int64_t index, const char *title,
                              stk_tensor **out, stk_error *err)
{
    stk_tensor *t = NULL;
    member_source m = {{read_member, stk_zip_size(zip, index), title}, NULL};
    STK_TRY(stk_zip_stream_open(zip, index, &m.stream, err));
    stk_status status = out ? stk_npy_read(&m.source, &t, err) : stk_npy_check(&m.source, err);
    if (status == STK_OK) status = stk_zip_stream_verify(m.stream, err);
    stk_zip_stream_release(m.stream);
    if (status == STK_OK && out)
        *out = t;
    else
        stk_tensor_release(t);
    return status;
}

/* Names with their places, sorted, so that equal ones stand together also in hostile files with a
 * hundred thousand of them. */
typedef struct place {
    const char *name;
    int64_t index;
} place;

static int compare_places(const void *left, const void *right)
{
    const place *a = left, *b = right;
    int by_name = strcmp(a->name, b->name);
    return by_name ? by_name : a->index < b->index ? -1 : a->index > b->index;
}

static bool is_tensor(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".npy") == 0;
}

/* wanted[i]: member i is a tensor and no later one has its name. */
static stk_status choose_members(stk_npz *npz, const stk_zip *zip, bool **wanted, stk_error *err)
{
    int64_t members = stk_zip_count(zip);
    place *places = stk_calloc((size_t)members, sizeof *places);
    *wanted = stk_arena_array(&npz->arena, (size_t)members, sizeof **wanted);
    if (!places || !*wanted) {
        stk_free(places);
        return stk_fail_memory(err, "npz", (size_t)members * sizeof *places);
    }
    for (int64_t i = 0; i < members; i++) places[i] = (place){stk_zip_name(zip, i), i};
    if (members > 1) qsort(places, (size_t)members, sizeof *places, compare_places);
    for (int64_t i = 0; i < members; i++) {
        bool last = i + 1 == members || strcmp(places[i].name, places[i + 1].name) != 0;
        (*wanted)[places[i].index] = last && is_tensor(places[i].name);
    }
    stk_free(places);
    return STK_OK;
}

static stk_status load_all(stk_npz *npz, const stk_zip *zip, const char *path, stk_error *err)
{
    int64_t members = stk_zip_count(zip);
    bool *wanted = NULL;
    if (members > INT32_MAX / 2)
        return stk_fail(err, STK_ERR_RANGE, "%s: too many members: %lld", path, (long long)members);
    npz->names = stk_arena_array(&npz->arena, (size_t)members, sizeof *npz->names);
    npz->tensors = stk_arena_array(&npz->arena, (size_t)members, sizeof *npz->tensors);
    if (!npz->names || !npz->tensors)
        return stk_fail_memory(err, "npz", (size_t)members * sizeof *npz->names);
    STK_TRY(choose_members(npz, zip, &wanted, err));
    for (int64_t i = 0; i < members; i++) {
        char title[512];
        if (!wanted[i]) continue;
        char *name = stk_arena_strdup(&npz->arena, stk_zip_name(zip, i));
        if (!name) return stk_fail_memory(err, "npz", strlen(stk_zip_name(zip, i)) + 1);
        name[strlen(name) - 4] = 0;
        snprintf(title, sizeof title, "%s(%s)", path, name);
        STK_TRY(load_member(zip, i, title, &npz->tensors[npz->count], err));
        npz->names[npz->count++] = name;
    }
    return STK_OK;
}

static stk_status from_zip(stk_zip *zip, const char *path, stk_npz **out, stk_error *err)
{
    stk_npz *npz = stk_calloc(1, sizeof *npz);
    stk_status status =
        npz ? load_all(npz, zip, path, err) : stk_fail_memory(err, "npz", sizeof *npz);
    stk_zip_release(zip);
    if (status == STK_OK)
        *out = npz;
    else
        stk_npz_release(npz);
    return status;
}

stk_status stk_npz_load(const char *path, stk_npz **out, stk_error *err)
{
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "npz_load: the path or the out pointer is NULL");
    *out = NULL;
    stk_zip *zip = NULL;
    STK_TRY(stk_zip_open(path, &zip, err));
    return from_zip(zip, path, out, err);
}

stk_status stk_npz_parse(const char *name, const void *data, size_t size, stk_npz **out,
                         stk_error *err)
{
    *out = NULL;
    stk_zip *zip = NULL;
    STK_TRY(stk_zip_parse(name, data, size, &zip, err));
    return from_zip(zip, name, out, err);
}

stk_status stk_npz_verify(const char *path, stk_error *err)
{
    stk_zip *zip = NULL;
    STK_TRY(stk_zip_open(path, &zip, err));
    stk_status status = STK_OK;
    for (int64_t i = 0; status == STK_OK && i < stk_zip_count(zip); i++)
        if (is_tensor(stk_zip_name(zip, i)))
            status = load_member(zip, i, stk_zip_name(zip, i), NULL, err);
    stk_zip_release(zip);
    return status;
}

void stk_npz_release(stk_npz *npz)
{
    if (!npz) return;
    for (int32_t i = 0; i < npz->count; i++) stk_tensor_release(npz->tensors[i]);
    stk_arena_release(&npz->arena);
    stk_free(npz);
}

int32_t stk_npz_count(const stk_npz *npz) { return npz ? npz->count : 0; }

const char *stk_npz_name(const stk_npz *npz, int32_t index)
{
    return npz && index >= 0 && index < npz->count ? npz->names[index] : NULL;
}

stk_tensor *stk_npz_tensor(const stk_npz *npz, int32_t index)
{
    return npz && index >= 0 && index < npz->count ? npz->tensors[index] : NULL;
}

stk_tensor *stk_npz_find(const stk_npz *npz, const char *name)
{
    for (int32_t i = 0; npz && name && i < npz->count; i++)
        if (strcmp(npz->names[i], name) == 0) return npz->tensors[i];
    return NULL;
}

/* ---- writing -------------------------------------------------------------------------------- */

static stk_status check_names(int32_t count, const char *const *names, stk_tensor *const *tensors,
                              stk_error *err)
{
    if (count < 0 || (count > 0 && (!names || !tensors)))
        return stk_fail(err, STK_ERR_ARGUMENT, "npz_save: count %d with names %p and tensors %p",
                        (int)count, (const void *)names, (const void *)tensors);
    for (int32_t i = 0; i < count; i++)
        if (!names[i] || !*names[i] || strlen(names[i]) > 60000)
            return stk_fail(err, STK_ERR_ARGUMENT,
                            "npz_save: name %d is NULL, empty or longer than 60000 bytes", (int)i);
    if (count < 2) return STK_OK;
    place *places = stk_calloc((size_t)count, sizeof *places);
    if (!places) return stk_fail_memory(err, "npz_save", (size_t)count * sizeof *places);
    for (int32_t i = 0; i < count; i++) places[i] = (place){names[i], i};
    qsort(places, (size_t)count, sizeof *places, compare_places);
    const char *twice = NULL;
    for (int32_t i = 1; i < count && !twice; i++)
        if (strcmp(places[i - 1].name, places[i].name) == 0) twice = places[i].name;
    stk_free(places);
    if (!twice) return STK_OK;
    return stk_fail(err, STK_ERR_ARGUMENT,
                    "npz_save: the name %.200s is given twice; each tensor needs its own", twice);
}

static stk_status add_tensor(stk_zip_writer *writer, const char *name, const stk_tensor *t,
                             bool deflated, stk_error *err)
{
    stk_npy_image image;
    stk_status status = stk_npy_image_make(t, &image, err);
    if (status != STK_OK) return stk_fail_in(err, status, "npz: tensor %s", name);
    size_t room = strlen(name) + 5;
    char *member = stk_malloc(room);
    if (!member) {
        status = stk_fail_memory(err, "npz", room);
    } else {
        snprintf(member, room, "%s.npy", name);
        stk_zip_piece pieces[2] = {{image.header, image.header_size},
                                   {image.data, image.data_size}};
        status = stk_zip_add(writer, member, deflated, pieces, 2, err);
    }
    stk_free(member);
    stk_npy_image_release(&image);
    return status;
}

stk_status stk_npz_write(stk_zip_writer *writer, int32_t count, const char *const *names,
                         stk_tensor *const *tensors, bool deflated, stk_error *err)
{
    STK_TRY(check_names(count, names, tensors, err));
    for (int32_t i = 0; i < count; i++)
        STK_TRY(add_tensor(writer, names[i], tensors[i], deflated, err));
    return STK_OK;
}

stk_status stk_npz_save(const char *path, int32_t count, const char *const *names,
                        stk_tensor *const *tensors, stk_error *err)
{
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "npz_save: the path is NULL");
    STK_TRY(check_names(count, names, tensors, err)); /* before anything is created */
    stk_zip_writer writer;
    STK_TRY(stk_zip_create(path, &writer, err));
    stk_status status = stk_npz_write(&writer, count, names, tensors, false, err);
    if (status == STK_OK) return stk_zip_commit(&writer, err);
    stk_zip_abandon(&writer);
    return status;
}
