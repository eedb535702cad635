/* Lines of tables, pictures to bytes, and files of records that are written. */
#include "data.h"

#include <stdio.h>
#include <string.h>

/* ---- tables ------------------------------------------------------------------------------------------------------- */

typedef struct table_work {
    stk_csv_options options;
    stk_csv_column *column;
    char **text; /* fallbacks; the last one is the missing value */
    int32_t n;
    const char *missing[2];
} table_work;

static void table_free(void *context)
{
    table_work *w = context;
    for (int32_t i = 0; w->text && i <= w->n; i++) PyMem_RawFree(w->text[i]);
    PyMem_RawFree(w->text);
    PyMem_RawFree(w->column);
    PyMem_RawFree(w);
}

static stk_status table_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)info;
    const table_work *w = context;
    stk_tensor **made = PyMem_RawCalloc((size_t)w->n + 1, sizeof *made);
    if (!made) return err->code = STK_ERR_MEMORY;
    stk_status status = stk_decode_csv(in[0], &w->options, made, err);
    if (status == STK_ERR_FORMAT) err->code = status = STK_ERR_ARGUMENT; /* as TensorFlow */
    if (status == STK_OK) status = py_host_results(w->n, made, out, err);
    PyMem_RawFree(made);
    return status;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = PyMem_RawMalloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* One column: (number, dtype, required, fallback). */
static int column_read(PyObject *row, table_work *w, int32_t i)
{
    PyObject *dtype, *fallback;
    int number, required;
    stk_csv_column *c = &w->column[i];
    if (!PyArg_ParseTuple(row, "iOpO", &number, &dtype, &required, &fallback) ||
        py_dtype_parse(dtype, &c->dtype))
        return -1;
    c->number = number;
    c->required = required;
    if (!PyUnicode_Check(fallback)) {
        c->fallback = PyFloat_AsDouble(fallback);
        return PyErr_Occurred() ? -1 : 0;
    }
    const char *text = PyUnicode_AsUTF8(fallback);
    w->text[i] = text ? copy_text(text) : NULL;
    c->fallback_text = w->text[i];
    return w->text[i] ? 0 : -1;
}

/* host_decode_csv(columns, delimiter, quotes, missing): a string tensor of lines to one tensor per column. */
static PyObject *decode_csv(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list;
    const char *delimiter, *missing;
    int quotes;
    if (!PyArg_ParseTuple(args, "O!sps", &PyList_Type, &list, &delimiter, &quotes, &missing))
        return NULL;
    table_work *w = PyMem_RawCalloc(1, sizeof *w);
    if (!w) return PyErr_NoMemory();
    w->n = (int32_t)PyList_GET_SIZE(list);
    w->column = PyMem_RawCalloc((size_t)w->n + 1, sizeof *w->column);
    w->text = PyMem_RawCalloc((size_t)w->n + 1, sizeof *w->text);
    bool fine = w->column && w->text;
    for (int32_t i = 0; fine && i < w->n; i++) fine = !column_read(PyList_GET_ITEM(list, i), w, i);
    if (fine && missing[0]) fine = (w->text[w->n] = copy_text(missing)) != NULL;
    if (!fine) {
        table_free(w);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    w->missing[0] = w->text[w->n];
    w->options = stk_csv_options_defaults();
    w->options.delimiter = delimiter[0];
    w->options.header = false;
    w->options.quotes = quotes;
    w->options.columns = w->column;
    w->options.column_count = w->n;
    w->options.missing = w->missing;
    stk_map_fn fn = {.context = w, .call = table_call, .release = table_free};
    return py_host_fn_new("DecodeCSV", 1, w->n, &fn);
}

/* ---- pictures ------------------------------------------------------------------------------------------------------- */

/* encode_picture("jpeg" or "png", image, quality or level, fine) -> bytes */
static PyObject *encode_picture(PyObject *module, PyObject *args)
{
    (void)module;
    const char *kind;
    PyObject *image;
    int number, fine;
    char *bytes = NULL;
    size_t size = 0;
    stk_error err;
    if (!PyArg_ParseTuple(args, "sOip", &kind, &image, &number, &fine)) return NULL;
    stk_tensor *t = py_to_eager(image, -1, "image");
    if (!t) return NULL;
    bool jpeg = !strcmp(kind, "jpeg");
    stk_status status = jpeg ? stk_jpeg_encode(t, number, fine, &bytes, &size, &err)
                             : stk_png_encode(t, number, &bytes, &size, &err);
    stk_tensor_release(t);
    if (status != STK_OK) return py_raise(&err, jpeg ? "EncodeJpeg" : "EncodePng");
    PyObject *o = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    stk_bytes_free(bytes);
    return o;
}

/* picture_size(bytes) -> (height, width, channels) */
static PyObject *picture_size(PyObject *module, PyObject *bytes)
{
    (void)module;
    char *data;
    Py_ssize_t size;
    stk_picture_info info;
    stk_error err;
    if (PyBytes_AsStringAndSize(bytes, &data, &size)) return NULL;
    if (stk_picture_probe(data, (size_t)size, &info, &err) != STK_OK) {
        if (err.code == STK_ERR_FORMAT) err.code = STK_ERR_ARGUMENT;
        return py_raise(&err, "ExtractJpegShape");
    }
    return Py_BuildValue("(LLi)", (long long)info.height, (long long)info.width,
                         (int)info.channels);
}

PyMethodDef py_table_makers[] = {{"host_decode_csv", decode_csv, METH_VARARGS, NULL},
                                 {"encode_picture", encode_picture, METH_VARARGS, NULL},
                                 {"picture_size", picture_size, METH_O, NULL},
                                 {NULL, NULL, 0, NULL}};

/* ---- record writers ---------------------------------------------------------------------------------------------------- */

typedef struct py_writer {
    PyObject_HEAD stk_record_writer *writer;
} py_writer;

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    const char *path;
    int compression = 1;
    stk_error err;
    if (!PyArg_ParseTuple(args, "s|i", &path, &compression)) return NULL;
    py_writer *w = (py_writer *)type->tp_alloc(type, 0);
    if (!w) return NULL;
    stk_record_writer_options o = stk_record_writer_options_defaults();
    o.compression = (stk_compression)compression;
    if (stk_record_writer_new(path, &o, &w->writer, &err) == STK_OK) return (PyObject *)w;
    Py_DECREF(w);
    return py_data_raise(&err, NULL);
}

static PyObject *writer_write(PyObject *self, PyObject *record)
{
    py_writer *w = (py_writer *)self;
    Py_buffer bytes;
    stk_error err;
    if (!w->writer)
        return py_raise_code(STK_ERR_STATE, NULL, "Writer not initialized or previously closed");
    if (PyObject_GetBuffer(record, &bytes, PyBUF_SIMPLE)) return NULL;
    stk_status status = stk_record_write(w->writer, bytes.buf, (size_t)bytes.len, &err);
    PyBuffer_Release(&bytes);
    if (status != STK_OK) return py_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *writer_close(PyObject *self, PyObject *u)
{
    (void)u;
    py_writer *w = (py_writer *)self;
    stk_record_writer *writer = w->writer;
    stk_error err;
    w->writer = NULL;
    if (writer && stk_record_writer_commit(writer, &err) != STK_OK) return py_raise(&err, NULL);
    Py_RETURN_NONE;
}

static void writer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_writer *w = (py_writer *)self;
    stk_error err;
    if (w->writer && stk_record_writer_commit(w->writer, &err) != STK_OK)
        PySys_WriteStderr("stoker: %s\n", err.message);
    type->tp_free(self);
    Py_DECREF(type);
}

int py_init_record_writer(PyObject *module)
{
    static PyMethodDef methods[] = {{"write", writer_write, METH_O, NULL},
                                    {"close", writer_close, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, writer_new},
                                  {Py_tp_dealloc, writer_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.RecordWriter", sizeof(py_writer), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return py_add_type(module, &spec, NULL, "RecordWriter") ? 0 : -1;
}
