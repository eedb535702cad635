/* .npy: the header is a Python literal, read here by a scanner that knows just its grammar; sizes
 * are compared with what the source still holds before memory is asked for. */
#include "base/npy.h"

#include "base/dtype.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/map.h"
#include "base/number.h"
#include "base/spill.h"
#include "base/tensor.h"
#include "base/utf8.h"
#include "stoker/files.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are written in memory order");

enum { MOST_HEADER = 1 << 20, MAGIC = 8 };

typedef struct header {
    char descr[64];
    int64_t shape[STK_MAX_RANK];
    int32_t rank;
    bool fortran, has_descr, has_order, has_shape;
    stk_dtype dtype;
    char letter;  /* of descr: f i u b V S U */
    int64_t item; /* bytes of one element in the file */
    bool swapped; /* big endian */
} header;

/* ---- the header's literal ------------------------------------------------------------------- */

typedef struct scanner {
    const char *at, *end;
    const char *name;
    stk_error *err;
} scanner;

static stk_status expected(scanner *s, const char *what)
{
    int shown = s->end - s->at > 16 ? 16 : (int)(s->end - s->at);
    return stk_fail(s->err, STK_ERR_FORMAT, "%s: bad .npy header: expected %s at '%.*s'", s->name,
                    what, shown, s->at);
}

static void skip_space(scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

static bool take(scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool take_word(scanner *s, const char *word)
{
    skip_space(s);
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) return false;
    s->at += length;
    return true;
}

/* 'text' or "text", without escapes: none of the words here needs them. */
static stk_status take_string(scanner *s, char *text, size_t room)
{
    skip_space(s);
    char quote = s->at < s->end ? *s->at : 0;
    if (quote != '\'' && quote != '"') return expected(s, "a quoted word");
    const char *first = ++s->at;
    while (s->at < s->end && *s->at != quote && *s->at != '\\') s->at++;
    size_t length = (size_t)(s->at - first);
    if (s->at >= s->end || *s->at != quote || length >= room)
        return expected(s, "the end of a short quoted word");
    memcpy(text, first, length);
    text[length] = 0;
    s->at++;
    return STK_OK;
}

/* (), (3,), (3, 4), (3, 4,); 3L as Python 2 wrote it. */
static stk_status take_shape(scanner *s, header *h)
{
    if (!take(s, '(')) return expected(s, "'(' and a shape");
    h->rank = 0;
    while (!take(s, ')')) {
        skip_space(s);
        const char *first = s->at;
        while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
        if (h->rank == STK_MAX_RANK)
            return stk_fail(s->err, STK_ERR_UNSUPPORTED,
                            "%s: the array has more than %d axes; reshape it before saving",
                            s->name, STK_MAX_RANK);
        if (!stk_parse_int64(first, (size_t)(s->at - first), &h->shape[h->rank]))
            return expected(s, "a size of 63 bits");
        h->rank++;
        if (s->at < s->end && *s->at == 'L') s->at++;
        if (take(s, ',')) continue;
        if (!take(s, ')')) return expected(s, "',' or ')' in the shape");
        break;
    }
    return STK_OK;
}

static stk_status take_entry(scanner *s, header *h)
{
    char key[32];
    STK_TRY(take_string(s, key, sizeof key));
    if (!take(s, ':')) return expected(s, "':'");
    if (strcmp(key, "descr") == 0) {
        skip_space(s);
        if (s->at < s->end && *s->at == '[')
            return stk_fail(s->err, STK_ERR_UNSUPPORTED,
                            "%s: the array holds records; save its fields as arrays of their own",
                            s->name);
        h->has_descr = true;
        return take_string(s, h->descr, sizeof h->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        h->fortran = take_word(s, "True");
        h->has_order = true;
        return h->fortran || take_word(s, "False") ? STK_OK : expected(s, "True or False");
    }
    if (strcmp(key, "shape") == 0) {
        h->has_shape = true;
        return take_shape(s, h);
    }
    return expected(s, "descr, fortran_order or shape as a name, before what stands");
}

static stk_status take_header(scanner *s, header *h)
{
    if (!take(s, '{')) return expected(s, "'{'");
    while (!take(s, '}')) {
        STK_TRY(take_entry(s, h));
        if (take(s, ',')) continue;
        if (!take(s, '}')) return expected(s, "',' or '}'");
        break;
    }
    skip_space(s);
    if (s->at < s->end) return expected(s, "nothing after '}'");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return stk_fail(s->err, STK_ERR_FORMAT,
                        "%s: bad .npy header: descr, fortran_order and shape are needed", s->name);
    return STK_OK;
}

/* '<f4': byte order, letter, bytes (characters for U). */
static stk_status understand_descr(const char *name, header *h, stk_error *err)
{
    const char *d = h->descr;
    char order = strchr("<>|=", *d) && *d ? *d++ : '=';
    int64_t size = 0;
    h->letter = *d;
    bool good = *d && stk_parse_int64(d + 1, strlen(d + 1), &size) && size >= 0 && size <= 1 << 30;
    h->swapped = order == '>';
    h->item = size;
    if (good && (h->letter == 'S' || h->letter == 'a' || h->letter == 'U')) {
        h->dtype = STK_STRING;
        if (h->letter == 'U') h->item = size * 4;
        return STK_OK;
    }
    char key[16];
    snprintf(key, sizeof key, "%c%c%lld", size == 1 ? '|' : '<', h->letter ? h->letter : '?',
             (long long)size);
    if (good && stk_dtype_parse(key, &h->dtype)) return STK_OK;
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "%s: arrays of type '%s' are not read%s; convert it with astype() to a number, "
                    "bool or string type before saving",
                    name, h->descr, strchr(h->descr, 'O') ? " (they can hold Python code)" : "");
}

/* ---- elements ------------------------------------------------------------------------------- */

static stk_status pull(stk_npy_source *source, void *to, size_t size, stk_error *err)
{
    if (size > source->left)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: ends %llu bytes too early; the file is cut short or damaged",
                        source->name, (unsigned long long)(size - source->left));
    STK_TRY(source->read(source, to, size, err));
    source->left -= size;
    return STK_OK;
}

static stk_status read_header(stk_npy_source *source, header *h, stk_error *err)
{
    uint8_t start[MAGIC], length[4] = {0};
    STK_TRY(pull(source, start, sizeof start, err));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: not a .npy file: it does not start with \\x93NUMPY", source->name);
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: .npy version %d.%d; 1.0, 2.0 and 3.0 are read", source->name, start[6],
                        start[7]);
    STK_TRY(pull(source, length, start[6] == 1 ? 2 : 4, err));
    uint32_t size = (uint32_t)length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 |
                    (uint32_t)length[3] << 24;
    if (size > MOST_HEADER)
        return stk_fail(err, STK_ERR_FORMAT, "%s: a .npy header of %u bytes is not believed",
                        source->name, (unsigned)size);
    char *text = stk_malloc(size);
    if (!text) return stk_fail_memory(err, "npy", size);
    *h = (header){0};
    scanner s = {text, text + size, source->name, err};
    stk_status status = pull(source, text, size, err);
    if (status == STK_OK) status = take_header(&s, h);
    if (status == STK_OK) status = understand_descr(source->name, h, err);
    stk_free(text);
    return status;
}

static void swap_bytes(void *data, int64_t count, int64_t size)
{
    uint8_t *p = data;
    for (; count > 0; count--, p += size)
        for (int64_t i = 0; i < size / 2; i++) {
            uint8_t held = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = held;
        }
}

/* Bools of other programs may hold any byte; here they are 0 or 1. */
static void clean_bools(uint8_t *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) data[i] = data[i] != 0;
}

/* One item of UCS-4 to UTF-8, in place: UTF-8 is never longer. False on a number that is none. */
static bool ucs4_to_utf8(char *item, int64_t bytes, int64_t *size)
{
    char *to = item;
    int64_t last = bytes / 4;
    uint32_t code;
    while (last > 0 && (memcpy(&code, item + (last - 1) * 4, 4), code == 0)) last--;
    for (int64_t i = 0; i < last; i++) {
        memcpy(&code, item + i * 4, 4);
        if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
        to += stk_utf8_put(code, to);
    }
    *size = to - item;
    return true;
}

static stk_status fill_items(const char *name, const header *h, char *raw, stk_string *items,
                             int64_t count, stk_error *err)
{
    if (h->letter == 'U' && h->swapped) swap_bytes(raw, count * (h->item / 4), 4);
    for (int64_t i = 0; i < count; i++) {
        char *item = raw + i * h->item;
        int64_t size = h->item;
        if (h->letter != 'U')
            while (size > 0 && item[size - 1] == 0) size--;
        else if (!ucs4_to_utf8(item, h->item, &size))
            return stk_fail(err, STK_ERR_FORMAT,
                            "%s: string %lld holds a number that is no character", name,
                            (long long)i);
        items[i] = (stk_string){item, size};
    }
    return STK_OK;
}

static stk_status read_strings(stk_npy_source *source, const header *h, const stk_shape *shape,
                               int64_t bytes, stk_tensor **out, stk_error *err)
{
    int64_t count = stk_shape_count(shape);
    char *raw = stk_malloc((size_t)bytes);
    stk_string *items = raw ? stk_calloc((size_t)count, sizeof *items) : NULL;
    stk_status status = items ? STK_OK : stk_fail_memory(err, "npy", (size_t)bytes);
    if (status == STK_OK) status = pull(source, raw, (size_t)bytes, err);
    if (status == STK_OK) status = fill_items(source->name, h, raw, items, count, err);
    if (status == STK_OK) status = stk_tensor_strings(shape->rank, shape->dim, items, out, err);
    stk_free(items);
    stk_free(raw);
    return status;
}

static stk_status read_numbers(stk_npy_source *source, const header *h, const stk_shape *shape,
                               int64_t bytes, stk_tensor **out, stk_error *err)
{
    stk_tensor *t = NULL;
    STK_TRY(stk_tensor_roomy(source->name, h->dtype, shape->rank, shape->dim, &t, err));
    stk_status status = pull(source, t->data, (size_t)bytes, err);
    if (status != STK_OK) {
        stk_tensor_release(t);
        return status;
    }
    int64_t count = stk_shape_count(shape);
    if (h->swapped) swap_bytes(t->data, count, h->item);
    if (h->dtype == STK_BOOL) clean_bools(t->data, count);
    *out = t;
    return STK_OK;
}

/* Fortran order is the reversed shape in C order, seen transposed. */
static stk_status turn_around(const char *name, stk_tensor **t, stk_error *err)
{
    stk_tensor *turned = NULL, *dense = NULL;
    stk_status status = stk_tensor_transpose(*t, NULL, &turned, err);
    if (status == STK_OK)
        status = turned->dtype == STK_STRING ? stk_tensor_dense(turned, &dense, err)
                                             : stk_tensor_roomy_copy(name, turned, &dense, err);
    stk_tensor_release(turned);
    stk_tensor_release(*t);
    *t = dense;
    return status;
}

/* Shape in the order of the file, and bytes of the elements; both fit what the source still holds. */
static stk_status check_size(const stk_npy_source *source, const header *h, stk_shape *shape,
                             int64_t *bytes, stk_error *err)
{
    *shape = (stk_shape){.rank = h->rank};
    for (int i = 0; i < h->rank; i++) shape->dim[i] = h->shape[h->fortran ? h->rank - 1 - i : i];
    /* With a file item of 0 bytes (|S0) any count of strings would fit in an empty file. */
    int64_t item = h->item > stk_dtype_size(h->dtype) ? h->item : stk_dtype_size(h->dtype);
    STK_TRY(stk_shape_check(source->name, shape->rank, shape->dim, item, err));
    if (stk_mul_i64(stk_shape_count(shape), h->item, bytes) && (uint64_t)*bytes <= source->left &&
        !(h->item == 0 && (uint64_t)stk_shape_count(shape) > 1 << 20))
        return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: an array %s of '%s' needs more than the %llu bytes that follow the "
                    "header; the file is cut short or damaged",
                    source->name, STK_SHAPE_TEXT(shape), h->descr,
                    (unsigned long long)source->left);
}

stk_status stk_npy_check(stk_npy_source *source, stk_error *err)
{
    header h;
    stk_shape shape;
    int64_t bytes;
    STK_TRY(read_header(source, &h, err));
    return check_size(source, &h, &shape, &bytes, err);
}

stk_status stk_npy_read(stk_npy_source *source, stk_tensor **out, stk_error *err)
{
    header h;
    stk_shape shape;
    int64_t bytes;
    *out = NULL;
    STK_TRY(read_header(source, &h, err));
    STK_TRY(check_size(source, &h, &shape, &bytes, err));
    STK_TRY(h.dtype == STK_STRING ? read_strings(source, &h, &shape, bytes, out, err)
                                  : read_numbers(source, &h, &shape, bytes, out, err));
    return h.fortran && h.rank > 1 ? turn_around(source->name, out, err) : STK_OK;
}

/* ---- sources -------------------------------------------------------------------------------- */

typedef struct bytes_source {
    stk_npy_source source;
    stk_bytes bytes;
    uint64_t at;
} bytes_source;

static stk_status read_bytes(stk_npy_source *self, void *to, size_t size, stk_error *err)
{
    bytes_source *b = (bytes_source *)self;
    STK_TRY(stk_bytes_read(&b->bytes, b->at, to, size, err));
    b->at += size;
    return STK_OK;
}

stk_status stk_npy_parse(const char *name, const void *data, size_t size, stk_tensor **out,
                         stk_error *err)
{
    bytes_source b = {{read_bytes, size, name}, stk_bytes_of(name, data, size), 0};
    return stk_npy_read(&b.source, out, err);
}

stk_status stk_npy_view(const char *name, const void *data, size_t size,
                        void (*release)(void *owner), void *owner, stk_tensor **out, stk_error *err)
{
    bytes_source b = {{read_bytes, size, name}, stk_bytes_of(name, data, size), 0};
    header h;
    *out = NULL;
    STK_TRY(read_header(&b.source, &h, err));
    const char *at = (const char *)data + b.at;
    stk_shape shape = {.rank = h.rank};
    memcpy(shape.dim, h.shape, sizeof shape.dim);
    bool plain = h.dtype != STK_STRING && h.dtype != STK_BOOL && !h.swapped &&
                 !(h.fortran && h.rank > 1) && (uintptr_t)at % (size_t)h.item == 0;
    if (plain && stk_shape_check(name, h.rank, h.shape, h.item, NULL) == STK_OK &&
        (uint64_t)(stk_shape_count(&shape) * h.item) <= b.source.left)
        return stk_tensor_wrap(h.dtype, h.rank, h.shape, NULL, (void *)(uintptr_t)at, release,
                               owner, out, err);
    STK_TRY(stk_npy_parse(name, data, size, out, err)); /* which also says what is wrong */
    release(owner);
    return STK_OK;
}

stk_status stk_npy_load(const char *path, stk_tensor **out, stk_error *err)
{
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "npy_load: the path or the out pointer is NULL");
    *out = NULL;
    bytes_source b = {{read_bytes, 0, path}, {0}, 0};
    STK_TRY(stk_bytes_open(path, &b.bytes, err));
    b.source.left = b.bytes.size;
    stk_status status = stk_npy_read(&b.source, out, err);
    stk_bytes_close(&b.bytes);
    return status;
}

static void unmap(void *owner)
{
    stk_map_close(owner);
    stk_free(owner);
}

stk_status stk_npy_map(const char *path, stk_tensor **out, stk_error *err)
{
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "npy_map: the path or the out pointer is NULL");
    *out = NULL;
    stk_map *map = stk_calloc(1, sizeof *map);
    if (!map) return stk_fail_memory(err, path, sizeof *map);
    stk_status status = stk_map_open(path, false, map, err);
    if (status == STK_OK) status = stk_npy_view(path, map->data, map->size, unmap, map, out, err);
    if (status != STK_OK) unmap(map);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void make_header(stk_npy_image *image, const char *descr, const stk_shape *shape)
{
    char text[400];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < shape->rank; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%lld%s", (long long)shape->dim[i],
                             shape->rank == 1      ? ","
                             : i + 1 < shape->rank ? ", "
                                                   : "");
    used += (size_t)snprintf(text + used, sizeof text - used, "), }");
    size_t whole = (MAGIC + 2 + used + 1 + 63) / 64 * 64, length = whole - MAGIC - 2;
    memcpy(image->header, "\x93NUMPY\x01\x00", MAGIC);
    image->header[8] = (char)(length & 255);
    image->header[9] = (char)(length >> 8);
    memset(image->header + 10, ' ', length);
    memcpy(image->header + 10, text, used);
    image->header[whole - 1] = '\n';
    image->header_size = whole;
}

/* Strings become |S items of the longest one's size. */
static stk_status lay_out_strings(stk_npy_image *image, const stk_shape *shape, stk_error *err)
{
    const stk_string *items = image->dense->data;
    int64_t count = stk_shape_count(shape), longest = 1;
    for (int64_t i = 0; i < count; i++) {
        if (items[i].size > 0 && items[i].data[items[i].size - 1] == 0)
            return stk_fail(err, STK_ERR_UNSUPPORTED,
                            "npy: string %lld ends with a zero byte, which the format takes for "
                            "padding; save such data as uint8",
                            (long long)i);
        longest = stk_max_i64(longest, items[i].size);
    }
    image->strings = stk_calloc((size_t)count, (size_t)longest);
    if (!image->strings) return stk_fail_memory(err, "npy", (size_t)longest);
    for (int64_t i = 0; i < count; i++)
        if (items[i].size)
            memcpy(image->strings + i * longest, items[i].data, (size_t)items[i].size);
    image->data = image->strings;
    image->data_size = (size_t)(count * longest);
    char descr[32];
    snprintf(descr, sizeof descr, "|S%lld", (long long)longest);
    make_header(image, descr, shape);
    return STK_OK;
}

stk_status stk_npy_image_make(const stk_tensor *t, stk_npy_image *image, stk_error *err)
{
    *image = (stk_npy_image){0};
    STK_TRY(stk_tensor_check("npy", t, err));
    stk_shape shape = stk_tensor_shape(t);
    /* The handle is counted, so it is written to; the elements are not. */
    STK_TRY(stk_tensor_dense((stk_tensor *)(uintptr_t)t, &image->dense, err));
    if (t->dtype == STK_STRING) {
        stk_status status = lay_out_strings(image, &shape, err);
        if (status != STK_OK) stk_npy_image_release(image);
        return status;
    }
    make_header(image, stk_dtype_numpy(t->dtype), &shape);
    image->data = image->dense->data;
    image->data_size = (size_t)stk_tensor_bytes(t);
    return STK_OK;
}

void stk_npy_image_release(stk_npy_image *image)
{
    stk_tensor_release(image->dense);
    stk_free(image->strings);
    *image = (stk_npy_image){0};
}

stk_status stk_npy_save(const char *path, const stk_tensor *t, stk_error *err)
{
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "npy_save: the path is NULL");
    stk_npy_image image;
    stk_file_writer file = {.fd = -1};
    STK_TRY(stk_npy_image_make(t, &image, err));
    stk_status status = stk_file_create(path, &file, err);
    if (status == STK_OK) status = stk_file_write(&file, image.header, image.header_size, err);
    if (status == STK_OK) status = stk_file_write(&file, image.data, image.data_size, err);
    if (status == STK_OK) status = stk_file_commit(&file, err);
    stk_file_abandon(&file);
    stk_npy_image_release(&image);
    return status;
}
