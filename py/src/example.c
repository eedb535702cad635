/* Records of tf.train.Example: parsers as HostFn, and messages built and taken apart. */
#include "data.h"

#include <stdio.h>
#include <string.h>

/* ---- features ---------------------------------------------------------------------------------------------------- */

typedef struct features {
    stk_feature *item;
    stk_tensor **fallback;
    int32_t n;
} features;

static void features_free(features *f)
{
    for (int32_t i = 0; f->fallback && i < f->n; i++) stk_tensor_release(f->fallback[i]);
    PyMem_Free(f->fallback);
    PyMem_Free(f->item);
}

/* [(name, kind, dtype, shape, fallback or None, in a list)] */
static int features_read(PyObject *list, features *f)
{
    f->n = (int32_t)PyList_GET_SIZE(list);
    f->item = PyMem_Calloc((size_t)f->n + 1, sizeof *f->item);
    f->fallback = PyMem_Calloc((size_t)f->n + 1, sizeof(stk_tensor *));
    if (!f->item || !f->fallback) return PyErr_NoMemory(), -1;
    for (int32_t i = 0; i < f->n; i++) {
        stk_feature *at = &f->item[i];
        PyObject *dtype, *shape, *fallback;
        int kind, in_list;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "siOOOp", &at->name, &kind, &dtype, &shape,
                              &fallback, &in_list) ||
            py_dtype_parse(dtype, &at->dtype))
            return -1;
        at->kind = (stk_feature_kind)kind;
        at->in_list = in_list;
        at->rank = py_ints_from(shape, "features", STK_MAX_RANK, at->shape);
        if (at->rank < 0) return -1;
        if (fallback != Py_None) {
            f->fallback[i] = py_to_eager(fallback, (int)at->dtype, "default_value");
            if (!f->fallback[i]) return -1;
            at->fallback = f->fallback[i];
        }
    }
    return 0;
}

typedef struct part_shape {
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
} part_shape;

/* ---- one record ---------------------------------------------------------------------------------------------------- */

typedef struct parser {
    stk_example_parser *parser;
    int32_t n;
} parser;

static void parser_free(void *context)
{
    stk_example_parser_free(((parser *)context)->parser);
    PyMem_RawFree(context);
}

static stk_status fail(stk_error *err, stk_status code, const char *text)
{
    err->code = code;
    snprintf(err->message, sizeof err->message, "%s", text);
    return code;
}

static stk_status parse_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)info;
    const parser *p = context;
    stk_tensor *made[256] = {0};
    if (in[0]->dtype != STK_STRING || in[0]->rank)
        return fail(err, STK_ERR_SHAPE, "serialized must be a scalar string");
    const stk_string *s = in[0]->data;
    stk_status status = stk_example_parse(p->parser, s->data, (size_t)s->size, made, err);
    if (status == STK_ERR_FORMAT) err->code = status = STK_ERR_ARGUMENT; /* as TensorFlow */
    if (status == STK_OK) status = py_host_results(p->n, made, out, err);
    return status;
}

/* host_parse_example(features, sequence): one result per feature. */
static PyObject *parse_example(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *made = NULL;
    int sequence;
    features f = {0};
    stk_error err;
    if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &list, &sequence)) return NULL;
    parser *p = PyMem_RawCalloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    if (PyList_GET_SIZE(list) > 256)
        PyErr_SetString(PyExc_ValueError, "parse_example: more than 256 features");
    else if (!features_read(list, &f)) {
        p->n = f.n;
        if (stk_example_parser_new(f.n, f.item, sequence, &p->parser, &err) != STK_OK)
            py_raise(&err, "ParseExample");
    }
    if (p->parser) {
        stk_map_fn fn = {
            .name = "ParseExample", .context = p, .call = parse_call, .release = parser_free};
        made = py_host_fn_new("ParseSingleExample", 1, p->n, &fn);
    } else {
        PyMem_RawFree(p);
    }
    features_free(&f);
    return made;
}

/* ---- a batch of records ----------------------------------------------------------------------------------------------- */

typedef struct batch_parser {
    stk_example_parser *parser;
    int32_t n, nout;
    char *
        how; /* per feature: 'd' dense, 'p' padded, 's' sparse (3 results), 'r' ragged (2 results) */
    part_shape *item;
} batch_parser;

static void batch_parser_free(void *context)
{
    batch_parser *p = context;
    stk_example_parser_free(p->parser);
    PyMem_RawFree(p->how);
    PyMem_RawFree(p->item);
    PyMem_RawFree(p);
}

/* Copies `count` elements of from to place `at` of to. */
static void copy_items(stk_tensor *to, int64_t at, const stk_tensor *from)
{
    size_t size = (size_t)stk_dtype_size(to->dtype);
    memcpy((char *)to->data + (size_t)at * size, from->data, (size_t)stk_tensor_count(from) * size);
}

/* A tensor of the items of all rows, each row at its place; strings are copied with their bytes. */
static stk_status assemble(stk_dtype dtype, int32_t rank, const int64_t *shape, int64_t rows,
                           stk_tensor *const *row, int32_t step, const int64_t *place,
                           stk_tensor **out, stk_error *err)
{
    if (dtype != STK_STRING) {
        stk_status status = stk_tensor_new(dtype, rank, shape, out, err);
        for (int64_t r = 0; r < rows && status == STK_OK; r++)
            copy_items(*out, place[r], row[r * step]);
        return status;
    }
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++) count *= shape[i];
    stk_string *items = PyMem_RawCalloc((size_t)count + 1, sizeof *items);
    if (!items) return fail(err, STK_ERR_MEMORY, "parse_example: out of memory");
    for (int64_t r = 0; r < rows; r++)
        memcpy(items + place[r], row[r * step]->data,
               (size_t)stk_tensor_count(row[r * step]) * sizeof *items);
    stk_status status = stk_tensor_strings(rank, shape, items, out, err);
    PyMem_RawFree(items);
    return status;
}

static stk_status sparse_indices(int64_t rows, stk_tensor *const *row, int32_t step, int64_t total,
                                 int64_t most, stk_tensor **out, stk_error *err)
{
    stk_status status = stk_tensor_new(STK_I64, 2, (int64_t[]){total, 2}, &out[0], err);
    if (status == STK_OK) status = stk_tensor_new(STK_I64, 1, (int64_t[]){2}, &out[2], err);
    if (status != STK_OK) return status;
    int64_t *at = out[0]->data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < row[r * step]->shape[0]; k++) *at++ = r, *at++ = k;
    ((int64_t *)out[2]->data)[0] = rows;
    ((int64_t *)out[2]->data)[1] = most;
    return STK_OK;
}

/* One feature of all rows into its results. */
static stk_status gather_feature(char how, const part_shape *item, int64_t rows,
                                 stk_tensor *const *row, int32_t step, int64_t *place,
                                 stk_tensor **out, stk_error *err)
{
    int64_t shape[STK_MAX_RANK] = {rows}, total = 0, most = 0, inner = 1;
    for (int32_t i = 0; i < item->rank; i++) inner *= item->shape[i];
    for (int64_t r = 0; how != 'd' && r < rows; r++) {
        int64_t n = row[r * step]->shape[0];
        total += n;
        most = n > most ? n : most;
    }
    bool flat = how == 's' || how == 'r';
    int32_t rank = flat ? 1 : item->rank + 1 + (how == 'p');
    if (flat) shape[0] = total;
    if (how == 'p') shape[1] = most;
    for (int32_t i = 0; !flat && i < item->rank; i++) shape[i + 1 + (how == 'p')] = item->shape[i];
    int64_t at = 0;
    for (int64_t r = 0; r < rows; r++) {
        place[r] = at;
        at += how == 'd' ? inner : how == 'p' ? most * inner : row[r * step]->shape[0];
    }
    stk_status status = assemble(item->dtype, rank, shape, rows, row, step, place,
                                 how == 's' ? &out[1] : &out[0], err);
    if (status == STK_OK && how == 's')
        status = sparse_indices(rows, row, step, total, most, out, err);
    if (status == STK_OK && how == 'r') {
        status = stk_tensor_new(STK_I64, 1, (int64_t[]){rows + 1}, &out[1], err);
        for (int64_t r = 0; status == STK_OK && r <= rows; r++)
            ((int64_t *)out[1]->data)[r] = r < rows ? place[r] : total;
    }
    return status;
}

static stk_status parse_rows(const batch_parser *p, const stk_tensor *in, int64_t rows,
                             stk_tensor **made, stk_error *err)
{
    const stk_string *s = in->data;
    for (int64_t r = 0; r < rows; r++) {
        stk_status status =
            stk_example_parse(p->parser, s[r].data, (size_t)s[r].size, made + r * p->n, err);
        if (status == STK_ERR_FORMAT) err->code = status = STK_ERR_ARGUMENT;
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

static stk_status batch_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)info;
    const batch_parser *p = context;
    if (in[0]->dtype != STK_STRING || in[0]->rank != 1 || !stk_tensor_is_dense(in[0]))
        return fail(err, STK_ERR_SHAPE, "parse_example: serialized must be a vector of strings");
    int64_t rows = in[0]->shape[0];
    stk_tensor **made = PyMem_RawCalloc((size_t)(rows * p->n) + 1, sizeof *made);
    int64_t *place = PyMem_RawCalloc((size_t)rows + 1, sizeof *place);
    stk_status status = made && place ? parse_rows(p, in[0], rows, made, err)
                                      : fail(err, STK_ERR_MEMORY, "parse_example: out of memory");
    for (int32_t f = 0, o = 0; f < p->n && status == STK_OK; f++) {
        status = gather_feature(p->how[f], &p->item[f], rows, made + f, p->n, place, out + o, err);
        o += p->how[f] == 's' ? 3 : p->how[f] == 'r' ? 2 : 1;
    }
    for (int64_t i = 0; made && i < rows * p->n; i++) stk_tensor_release(made[i]);
    PyMem_RawFree(made);
    PyMem_RawFree(place);
    return status;
}

/* host_parse_examples(features, how): how has a letter per feature. */
static PyObject *parse_examples(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *made = NULL;
    const char *how;
    features f = {0};
    stk_error err;
    if (!PyArg_ParseTuple(args, "O!s", &PyList_Type, &list, &how)) return NULL;
    batch_parser *p = PyMem_RawCalloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    if (!features_read(list, &f)) {
        p->n = f.n;
        p->how = PyMem_RawCalloc((size_t)f.n + 1, 1);
        p->item = PyMem_RawCalloc((size_t)f.n + 1, sizeof *p->item);
        if (!p->how || !p->item)
            PyErr_NoMemory();
        else if (stk_example_parser_new(f.n, f.item, false, &p->parser, &err) != STK_OK)
            py_raise(&err, "ParseExampleV2");
        for (int32_t i = 0; p->parser && i < f.n; i++) {
            p->how[i] = how[i];
            p->item[i].dtype = f.item[i].dtype;
            p->item[i].rank = how[i] == 's' || how[i] == 'r' ? 0 : f.item[i].rank;
            memcpy(p->item[i].shape, f.item[i].shape, sizeof p->item[i].shape);
            p->nout += how[i] == 's' ? 3 : how[i] == 'r' ? 2 : 1;
        }
    }
    features_free(&f);
    if (p->parser) {
        stk_map_fn fn = {.context = p, .call = batch_call, .release = batch_parser_free};
        made = py_host_fn_new("ParseExampleV2", 1, p->nout, &fn);
    } else {
        batch_parser_free(p);
    }
    return made;
}

PyMethodDef py_example_makers[] = {{"host_parse_example", parse_example, METH_VARARGS, NULL},
                                   {"host_parse_examples", parse_examples, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
