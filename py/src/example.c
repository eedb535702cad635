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
    for (int32_t i = 0; i < p->n && status == STK_OK; i++) {
        if (out[i] && out[i]->dtype != STK_STRING) {
            status = stk_tensor_copy(out[i], made[i], err);
            stk_tensor_release(made[i]);
        } else {
            stk_tensor_release(out[i]);
            out[i] = made[i];
        }
    }
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

PyMethodDef py_example_makers[] = {{"host_parse_example", parse_example, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
