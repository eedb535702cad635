/* hdf5.c - libhdf5, opened at run time: Debian's drags in thirty other libraries, which no start of a program should wait for. */
#include "base/hdf5.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/shape.h"
#include "base/tensor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifndef STK_HAVE_HDF5
#define STK_HAVE_HDF5 0
#endif

#if STK_HAVE_HDF5
#include <hdf5.h>

/* ---- the library ----------------------------------------------------------------------------------------------- */

static struct {
#define STK_HDF5_FUNCTION(name) __typeof__(name) *name;
#define STK_HDF5_VARIABLE(name) hid_t *name;
#include "base/hdf5.def"
} lib;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool usable;

static bool fetch(void *handle)
{
    bool all = true;
    /* ISO C has no cast from object to function pointers; POSIX promises that they have one shape. */
#define STK_HDF5_FUNCTION(name) all = (*(void **)(void *)&lib.name = dlsym(handle, #name)) && all;
#define STK_HDF5_VARIABLE(name) all = (lib.name = dlsym(handle, #name)) && all;
#include "base/hdf5.def"
    return all;
}

static void open_once(void)
{
    static const char *const names[] = {STK_HDF5_LIBRARY,        "libhdf5_serial.so.310",
                                        "libhdf5_serial.so.200", "libhdf5_serial.so.103",
                                        "libhdf5_serial.so.100", "libhdf5.so.310",
                                        "libhdf5.so.200",        "libhdf5.so.103"};
    for (size_t i = 0; !usable && i < sizeof names / sizeof *names; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!handle) continue;
        usable = fetch(handle) && lib.H5open() >= 0;
        if (!usable) dlclose(handle);
    }
    if (usable) lib.H5Eset_auto2(0, NULL, NULL); /* it would print its own messages */
}

static stk_status need_library(const char *name, stk_error *err)
{
    pthread_once(&opened, open_once);
    if (usable) return STK_OK;
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "%s: is read and written by libhdf5, which is not on this machine; install it "
                    "(Debian: %s)",
                    name, "libhdf5-103-1");
}

struct stk_h5 {
    hid_t file;
    char *name;
};

static stk_status bad(const stk_h5 *h, const char *path, const char *what, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "%s: %s%s%s", h->name, path, *path ? ": " : "", what);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

static stk_status new_file(const char *name, stk_h5 **out, stk_error *err)
{
    STK_TRY(need_library(name, err));
    stk_h5 *h = stk_calloc(1, sizeof *h);
    if (!h || !(h->name = stk_strdup(name))) {
        stk_free(h);
        return stk_fail_memory(err, name, sizeof *h);
    }
    h->file = -1;
    *out = h;
    return STK_OK;
}

/* With `data` a file is opened that is these bytes, without them an empty one is made. */
static hid_t open_core(const void *data, size_t size)
{
    enum { STEP = 1 << 16 };
    /* two open files need two names, and none may be that of a file on the disk */
    static uint64_t count;
    char name[64];
    snprintf(name, sizeof name, "/dev/null/stoker-%llu", (unsigned long long)count++);
    hid_t access = lib.H5Pcreate(*lib.H5P_CLS_FILE_ACCESS_ID_g), file = -1;
    if (access < 0) return -1;
    bool good = lib.H5Pset_fapl_core(access, STEP, 0) >= 0;
    if (data) good = good && lib.H5Pset_file_image(access, (void *)(uintptr_t)data, size) >= 0;
    if (good) file = data ? lib.H5Fopen(name, 0u, access) : lib.H5Fcreate(name, 2u, 0, access);
    lib.H5Pclose(access);
    return file;
}

stk_status stk_h5_parse(const char *name, const void *data, size_t size, stk_h5 **out,
                        stk_error *err)
{
    STK_TRY(new_file(name, out, err));
    pthread_mutex_lock(&turn);
    (*out)->file = open_core(data, size);
    pthread_mutex_unlock(&turn);
    if ((*out)->file >= 0) return STK_OK;
    stk_h5_close(*out);
    *out = NULL;
    return stk_fail(err, STK_ERR_FORMAT, "%s: is no HDF5 file, or a damaged one", name);
}

stk_status stk_h5_create(const char *name, stk_h5 **out, stk_error *err)
{
    STK_TRY(new_file(name, out, err));
    pthread_mutex_lock(&turn);
    (*out)->file = open_core(NULL, 0);
    pthread_mutex_unlock(&turn);
    if ((*out)->file >= 0) return STK_OK;
    stk_h5_close(*out);
    *out = NULL;
    return stk_fail(err, STK_ERR_IO, "%s: libhdf5 cannot make a file in memory", name);
}

stk_status stk_h5_image(stk_h5 *h, void **data, size_t *size, stk_error *err)
{
    pthread_mutex_lock(&turn);
    ssize_t n = lib.H5Fflush(h->file, 1) >= 0 ? lib.H5Fget_file_image(h->file, NULL, 0) : -1;
    *data = n > 0 ? stk_malloc((size_t)n) : NULL;
    bool good = *data && lib.H5Fget_file_image(h->file, *data, (size_t)n) == n;
    pthread_mutex_unlock(&turn);
    if (good) {
        *size = (size_t)n;
        return STK_OK;
    }
    stk_free(*data);
    *data = NULL;
    return n > 0 ? stk_fail_memory(err, h->name, (size_t)n) : bad(h, "", "cannot be written", err);
}

void stk_h5_close(stk_h5 *h)
{
    if (!h) return;
    pthread_mutex_lock(&turn);
    if (h->file >= 0) lib.H5Fclose(h->file);
    pthread_mutex_unlock(&turn);
    stk_free(h->name);
    stk_free(h);
}

/* ---- looking around -------------------------------------------------------------------------------------------------- */

/* Every link on the way is asked for: the library fails on the first that is missing. */
static bool has(const stk_h5 *h, const char *path)
{
    char part[1024];
    size_t n = strlen(path);
    if (n >= sizeof part) return false;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (lib.H5Lexists(h->file, part, 0) <= 0) return false;
    }
    return true;
}

static hid_t open_object(const stk_h5 *h, const char *path)
{
    return has(h, path) ? lib.H5Oopen(h->file, *path ? path : "/", 0) : -1;
}

bool stk_h5_has(stk_h5 *h, const char *path)
{
    pthread_mutex_lock(&turn);
    bool there = has(h, path);
    pthread_mutex_unlock(&turn);
    return there;
}

int64_t stk_h5_count(stk_h5 *h, const char *group)
{
    H5G_info_t info = {.nlinks = 0};
    pthread_mutex_lock(&turn);
    hid_t id = open_object(h, group);
    if (id >= 0 && (lib.H5Iget_type(id) != H5I_GROUP || lib.H5Gget_info(id, &info) < 0))
        info.nlinks = 0;
    if (id >= 0) lib.H5Oclose(id);
    pthread_mutex_unlock(&turn);
    return (int64_t)info.nlinks;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------------- */

/* The element type of little-endian numbers; numpy's bool is an enumeration, its bfloat16 opaque. */
static bool dtype_of(hid_t type, stk_dtype *out)
{
    size_t size = lib.H5Tget_size(type);
    H5T_class_t kind = lib.H5Tget_class(type);
    if (kind == H5T_ENUM && size == 1)
        *out = STK_BOOL;
    else if (kind == H5T_OPAQUE && size == 2)
        *out = STK_BF16;
    else if (kind == H5T_FLOAT && size == 2)
        *out = STK_F16;
    else if (kind == H5T_FLOAT && size == 4)
        *out = STK_F32;
    else if (kind == H5T_FLOAT && size == 8)
        *out = STK_F64;
    else if (kind == H5T_INTEGER && size <= 8) {
        static const stk_dtype with_sign[] = {STK_I8, STK_I16, STK_I32, STK_I64};
        static const stk_dtype without[] = {STK_U8, STK_U16, STK_U32, STK_U64};
        int place = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
        *out = lib.H5Tget_sign(type) == H5T_SGN_NONE ? without[place] : with_sign[place];
    } else {
        return false;
    }
    return size == 1 || kind == H5T_OPAQUE || lib.H5Tget_order(type) == H5T_ORDER_LE;
}

static stk_status read_data(const stk_h5 *h, const char *path, hid_t set, hid_t type, hid_t space,
                            stk_tensor **out, stk_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    int64_t shape[STK_MAX_RANK], bytes;
    stk_dtype dtype = STK_F32;
    int rank = lib.H5Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > STK_MAX_RANK)
        return bad(h, path, "has more axes than are supported", err);
    if (!dtype_of(type, &dtype))
        return bad(h, path, "holds elements that are no little-endian numbers", err);
    bytes = stk_dtype_size(dtype);
    lib.H5Sget_simple_extent_dims(space, dims, NULL);
    for (int i = 0; i < rank; i++) {
        shape[i] = (int64_t)dims[i];
        if (dims[i] > INT64_MAX || !stk_mul_i64(bytes, shape[i], &bytes))
            return bad(h, path, "has a size that cannot be", err);
    }
    /* Deflate makes at most 1032 bytes of one. */
    if (bytes > 0 && (uint64_t)bytes / 1032 > lib.H5Dget_storage_size(set))
        return bad(h, path, "has fewer bytes than its shape needs; the file is damaged", err);
    STK_TRY(stk_tensor_raw(dtype, rank, shape, out, err));
    if (!bytes || lib.H5Dread(set, type, 0, 0, 0, (*out)->data) >= 0) return STK_OK;
    stk_tensor_release(*out);
    *out = NULL;
    return bad(h, path, "cannot be read; the file is damaged", err);
}

static stk_status read_locked(const stk_h5 *h, const char *path, stk_tensor **out, stk_error *err)
{
    hid_t set = open_object(h, path);
    if (set < 0 || lib.H5Iget_type(set) != H5I_DATASET) {
        if (set >= 0) lib.H5Oclose(set);
        return bad(h, path, "is not in the file", err);
    }
    hid_t type = lib.H5Dget_type(set), space = lib.H5Dget_space(set);
    stk_status status = type >= 0 && space >= 0 ? read_data(h, path, set, type, space, out, err)
                                                : bad(h, path, "cannot be read", err);
    if (type >= 0) lib.H5Tclose(type);
    if (space >= 0) lib.H5Sclose(space);
    lib.H5Oclose(set);
    return status;
}

stk_status stk_h5_read(stk_h5 *h, const char *path, stk_tensor **out, stk_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&turn);
    stk_status status = read_locked(h, path, out, err);
    pthread_mutex_unlock(&turn);
    return status;
}

/* As h5py writes them. The caller closes it. */
static hid_t type_of(stk_dtype dtype)
{
    hid_t type = -1;
    switch (dtype) {
    case STK_F32: return lib.H5Tcopy(*lib.H5T_IEEE_F32LE_g);
    case STK_F64: return lib.H5Tcopy(*lib.H5T_IEEE_F64LE_g);
    case STK_I8: return lib.H5Tcopy(*lib.H5T_STD_I8LE_g);
    case STK_U8: return lib.H5Tcopy(*lib.H5T_STD_U8LE_g);
    case STK_I16: return lib.H5Tcopy(*lib.H5T_STD_I16LE_g);
    case STK_U16: return lib.H5Tcopy(*lib.H5T_STD_U16LE_g);
    case STK_I32: return lib.H5Tcopy(*lib.H5T_STD_I32LE_g);
    case STK_U32: return lib.H5Tcopy(*lib.H5T_STD_U32LE_g);
    case STK_I64: return lib.H5Tcopy(*lib.H5T_STD_I64LE_g);
    case STK_U64: return lib.H5Tcopy(*lib.H5T_STD_U64LE_g);
    case STK_F16: /* sign at 15, exponent of 5 bits at 10, mantissa of 10 bits */
        type = lib.H5Tcopy(*lib.H5T_IEEE_F32LE_g);
        lib.H5Tset_fields(type, 15, 10, 5, 0, 10);
        lib.H5Tset_size(type, 2);
        lib.H5Tset_ebias(type, 15);
        return type;
    case STK_BF16:
        type = lib.H5Tcreate(H5T_OPAQUE, 2);
        lib.H5Tset_tag(type, "NUMPY:|V2");
        return type;
    case STK_BOOL:
        type = lib.H5Tenum_create(*lib.H5T_STD_I8LE_g);
        lib.H5Tenum_insert(type, "FALSE", &(int8_t){0});
        lib.H5Tenum_insert(type, "TRUE", &(int8_t){1});
        return type;
    default: return -1;
    }
}

static hid_t intermediate(void)
{
    hid_t links = lib.H5Pcreate(*lib.H5P_CLS_LINK_CREATE_ID_g);
    lib.H5Pset_create_intermediate_group(links, 1);
    return links;
}

static bool write_locked(const stk_h5 *h, const char *path, const stk_tensor *t)
{
    hsize_t dims[STK_MAX_RANK];
    for (int32_t i = 0; i < t->rank; i++) dims[i] = (hsize_t)t->shape[i];
    hid_t type = type_of(t->dtype), links = intermediate();
    hid_t space = t->rank ? lib.H5Screate_simple(t->rank, dims, NULL) : lib.H5Screate(H5S_SCALAR);
    hid_t set = type >= 0 ? lib.H5Dcreate2(h->file, path, type, space, links, 0, 0) : -1;
    bool good =
        set >= 0 && (!stk_tensor_bytes(t) || lib.H5Dwrite(set, type, 0, 0, 0, t->data) >= 0);
    if (set >= 0) lib.H5Dclose(set);
    if (type >= 0) lib.H5Tclose(type);
    lib.H5Sclose(space);
    lib.H5Pclose(links);
    return good;
}

stk_status stk_h5_write(stk_h5 *h, const char *path, stk_tensor *t, stk_error *err)
{
    stk_tensor *dense = NULL;
    STK_TRY(stk_tensor_dense(t, &dense, err));
    pthread_mutex_lock(&turn);
    bool good = write_locked(h, path, dense);
    pthread_mutex_unlock(&turn);
    bool half = dense->dtype == STK_BF16;
    stk_tensor_release(dense);
    if (!good) return bad(h, path, "cannot be written", err);
    return half ? stk_h5_put_text(h, path, "dtype", "bfloat16", err) : STK_OK; /* as Keras */
}

stk_status stk_h5_group(stk_h5 *h, const char *path, stk_error *err)
{
    pthread_mutex_lock(&turn);
    bool good = has(h, path);
    if (!good) {
        hid_t links = intermediate(), group = lib.H5Gcreate2(h->file, path, links, 0, 0);
        good = group >= 0;
        if (good) lib.H5Gclose(group);
        lib.H5Pclose(links);
    }
    pthread_mutex_unlock(&turn);
    return good ? STK_OK : bad(h, path, "cannot be made", err);
}

/* ---- texts -------------------------------------------------------------------------------------------------------------- */

/* Texts of any length lie outside of the group's header, which has room for 64 kB. */
static bool put_locked(const stk_h5 *h, const char *path, const char *name,
                       const char *const *texts, int64_t count, bool list)
{
    hsize_t n = (hsize_t)count;
    hid_t object = open_object(h, path), type = lib.H5Tcopy(*lib.H5T_C_S1_g);
    hid_t space = list ? lib.H5Screate_simple(1, &n, NULL) : lib.H5Screate(H5S_SCALAR);
    lib.H5Tset_size(type, H5T_VARIABLE);
    lib.H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t at = object >= 0 ? lib.H5Acreate2(object, name, type, space, 0, 0) : -1;
    bool good = at >= 0 && (!count || lib.H5Awrite(at, type, texts) >= 0);
    if (at >= 0) lib.H5Aclose(at);
    lib.H5Sclose(space);
    lib.H5Tclose(type);
    if (object >= 0) lib.H5Oclose(object);
    return good;
}

stk_status stk_h5_put_texts(stk_h5 *h, const char *path, const char *name, const char *const *texts,
                            int64_t count, stk_error *err)
{
    pthread_mutex_lock(&turn);
    bool good = put_locked(h, path, name, texts, count, true);
    pthread_mutex_unlock(&turn);
    return good ? STK_OK : bad(h, path, "cannot be given texts", err);
}

stk_status stk_h5_put_text(stk_h5 *h, const char *path, const char *name, const char *text,
                           stk_error *err)
{
    pthread_mutex_lock(&turn);
    bool good = put_locked(h, path, name, &text, 1, false);
    pthread_mutex_unlock(&turn);
    return good ? STK_OK : bad(h, path, "cannot be given a text", err);
}

/* Copies of n texts that the library read: pointers, or places of `width` bytes. */
static char **copy_texts(const void *data, int64_t n, bool pointers, size_t width)
{
    char **texts = stk_calloc((size_t)n + 1, sizeof *texts);
    for (int64_t i = 0; texts && i < n; i++) {
        const char *from = pointers ? ((char *const *)data)[i] : (const char *)data + i * width;
        size_t size = !from ? 0 : pointers ? strlen(from) : strnlen(from, width);
        if (!(texts[i] = stk_strndup(from ? from : "", size))) {
            stk_h5_texts_free(texts, i);
            return NULL;
        }
    }
    return texts;
}

static char **read_texts(hid_t at, hid_t type, hid_t space, int64_t *count)
{
    enum { MOST = 1 << 24 };
    bool pointers = lib.H5Tis_variable_str(type) > 0;
    size_t width = lib.H5Tget_size(type);
    int64_t n = lib.H5Sget_simple_extent_npoints(space);
    if (lib.H5Tget_class(type) != H5T_STRING || n < 0 || n > MOST) return NULL;
    void *data = stk_calloc((size_t)n + 1, width);
    char **texts = NULL;
    if (data && lib.H5Aread(at, type, data) >= 0) {
        texts = copy_texts(data, n, pointers, width);
        if (pointers) lib.H5Dvlen_reclaim(type, space, 0, data);
        *count = n;
    }
    stk_free(data);
    return texts;
}

static stk_status texts_locked(const stk_h5 *h, const char *path, const char *name, char ***out,
                               int64_t *count, stk_error *err)
{
    hid_t object = open_object(h, path);
    bool there = object >= 0 && lib.H5Aexists(object, name) > 0;
    hid_t at = there ? lib.H5Aopen(object, name, 0) : -1;
    if (at >= 0) {
        hid_t type = lib.H5Aget_type(at), space = lib.H5Aget_space(at);
        *out = read_texts(at, type, space, count);
        lib.H5Tclose(type);
        lib.H5Sclose(space);
        lib.H5Aclose(at);
    }
    if (object >= 0) lib.H5Oclose(object);
    return there && !*out ? bad(h, path, "has texts that cannot be read", err) : STK_OK;
}

stk_status stk_h5_texts(stk_h5 *h, const char *path, const char *name, char ***out, int64_t *count,
                        stk_error *err)
{
    *out = NULL;
    *count = 0;
    pthread_mutex_lock(&turn);
    stk_status status = texts_locked(h, path, name, out, count, err);
    pthread_mutex_unlock(&turn);
    return status;
}

#else /* without the header nothing is possible, and everything says so */

static stk_status without(const char *name, stk_error *err)
{
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "%s: this build has no HDF5; install libhdf5-dev and configure again", name);
}
stk_status stk_h5_parse(const char *name, const void *data, size_t size, stk_h5 **out,
                        stk_error *err)
{
    (void)data, (void)size, (void)out;
    return without(name, err);
}
stk_status stk_h5_create(const char *name, stk_h5 **out, stk_error *err)
{
    (void)out;
    return without(name, err);
}
stk_status stk_h5_image(stk_h5 *h, void **data, size_t *size, stk_error *err)
{
    (void)h, (void)data, (void)size;
    return without("HDF5", err);
}
void stk_h5_close(stk_h5 *h) { (void)h; }
bool stk_h5_has(stk_h5 *h, const char *path)
{
    (void)h, (void)path;
    return false;
}
int64_t stk_h5_count(stk_h5 *h, const char *group)
{
    (void)h, (void)group;
    return 0;
}
stk_status stk_h5_read(stk_h5 *h, const char *path, stk_tensor **out, stk_error *err)
{
    (void)h, (void)out;
    return without(path, err);
}
stk_status stk_h5_texts(stk_h5 *h, const char *path, const char *name, char ***out, int64_t *count,
                        stk_error *err)
{
    (void)h, (void)name, (void)out, (void)count;
    return without(path, err);
}
stk_status stk_h5_group(stk_h5 *h, const char *path, stk_error *err)
{
    (void)h;
    return without(path, err);
}
stk_status stk_h5_write(stk_h5 *h, const char *path, stk_tensor *t, stk_error *err)
{
    (void)h, (void)t;
    return without(path, err);
}
stk_status stk_h5_put_text(stk_h5 *h, const char *path, const char *name, const char *text,
                           stk_error *err)
{
    (void)h, (void)name, (void)text;
    return without(path, err);
}
stk_status stk_h5_put_texts(stk_h5 *h, const char *path, const char *name, const char *const *texts,
                            int64_t count, stk_error *err)
{
    (void)h, (void)name, (void)texts, (void)count;
    return without(path, err);
}
#endif

void stk_h5_texts_free(char **texts, int64_t count)
{
    for (int64_t i = 0; texts && i < count; i++) stk_free(texts[i]);
    stk_free(texts);
}

stk_status stk_h5_text(stk_h5 *h, const char *path, const char *name, char **out, stk_error *err)
{
    char **texts = NULL;
    int64_t n = 0;
    *out = NULL;
    STK_TRY(stk_h5_texts(h, path, name, &texts, &n, err));
    if (n > 0) {
        *out = texts[0];
        texts[0] = NULL;
    }
    stk_h5_texts_free(texts, n);
    return STK_OK;
}
