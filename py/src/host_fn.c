/* HostFn: work on strings and records, in C: called at once on tensors, or as a step of a MapFn by workers that do not hold
 * the interpreter lock. Anything of the library that is a stk_map_fn can be one. */
#include "data.h"

#include <stdio.h>
#include <string.h>

PyTypeObject *py_host_fn_type;

static PyObject *host_fn_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kw)
{
    py_host_fn *h = (py_host_fn *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), have = 0;
    stk_tensor *in[16] = {0};
    stk_error err;
    stk_status status;
    if (n != h->nin || n > 16 || (kw && PyTuple_GET_SIZE(kw)))
        return PyErr_Format(PyExc_TypeError, "%U takes %d tensors, got %zd", h->name, h->nin, n);
    stk_tensor **out = PyMem_Calloc((size_t)h->nout + 1, sizeof *out);
    if (!out) return PyErr_NoMemory();
    for (; have < n; have++) {
        in[have] = py_to_eager(args[have], -1, PyUnicode_AsUTF8(h->name));
        if (!in[have]) break;
    }
    PyObject *result = NULL;
    if (have == n) {
        stk_map_info info = {.count = 1, .inputs = h->nin};
        Py_BEGIN_ALLOW_THREADS;
        status = h->fn.call(h->fn.context, &info, in, out, &err);
        Py_END_ALLOW_THREADS;
        if (status == STK_OK)
            result = py_tensors_list(out, h->nout);
        else
            py_data_raise(&err, PyUnicode_AsUTF8(h->name));
    }
    while (have--) stk_tensor_release(in[have]);
    PyMem_Free(out);
    return result;
}

PyObject *py_host_fn_new(const char *name, int32_t nin, int32_t nout, const stk_map_fn *fn)
{
    py_host_fn *h = PyObject_New(py_host_fn, py_host_fn_type);
    if (!h) {
        if (fn->release) fn->release(fn->context);
        return NULL;
    }
    h->call = host_fn_call;
    h->fn = *fn;
    h->nin = nin;
    h->nout = nout;
    h->name = PyUnicode_FromString(name);
    if (h->name) return (PyObject *)h;
    Py_DECREF(h);
    return NULL;
}

stk_status py_host_results(int32_t n, stk_tensor *const *made, stk_tensor **out, stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t i = 0; i < n; i++) {
        if (out[i] && out[i]->dtype != STK_STRING) {
            if (status == STK_OK) status = stk_tensor_copy(out[i], made[i], err);
            stk_tensor_release(made[i]);
        } else {
            stk_tensor_release(out[i]);
            out[i] = made[i];
        }
    }
    return status;
}

static void host_fn_dealloc(PyObject *self)
{
    py_host_fn *h = (py_host_fn *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (h->fn.release) h->fn.release(h->fn.context);
    Py_XDECREF(h->name);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- makers ---------------------------------------------------------------------------------------------------------- */

/* host_decode_raw(dtype): bytes of one string as a vector. */
static PyObject *decode_raw(PyObject *module, PyObject *dtype)
{
    (void)module;
    stk_dtype d;
    stk_map_fn fn;
    stk_error err;
    if (py_dtype_parse(dtype, &d)) return NULL;
    if (stk_map_decode_raw(0, d, -1, NULL, &fn, &err) != STK_OK) return py_raise(&err, "DecodeRaw");
    return py_host_fn_new("DecodeRaw", 1, 1, &fn);
}

/* host_decode_image(name, channels, dtype, formats, accurate, recover): formats is a mask of 1 << stk_picture_format. */
typedef struct picture_work {
    stk_picture_options options;
    unsigned formats;
    char name[32];
} picture_work;

static stk_status decode_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    (void)info;
    const picture_work *w = context;
    stk_tensor *made = NULL;
    if (in[0]->dtype != STK_STRING || in[0]->rank != 0) {
        err->code = STK_ERR_SHAPE;
        snprintf(err->message, sizeof err->message,
                 "contents must be scalar, got a tensor of rank %d", (int)in[0]->rank);
        return err->code;
    }
    const stk_string *s = in[0]->data;
    stk_picture_format format = stk_picture_detect(s->data, (size_t)s->size);
    if (!(w->formats >> format & 1)) {
        err->code = STK_ERR_ARGUMENT;
        snprintf(err->message, sizeof err->message,
                 format == STK_PICTURE_UNKNOWN
                     ? "Unknown image file format. One of JPEG, PNG, GIF, BMP required."
                     : "Trying to decode %s format using a function that does not take it; "
                       "tf.io.decode_image decodes all formats.",
                 stk_picture_format_name(format));
        return err->code;
    }
    stk_status status = stk_picture_decode(s->data, (size_t)s->size, &w->options, &made, err);
    if (status != STK_OK) {
        if (status == STK_ERR_FORMAT) err->code = status = STK_ERR_ARGUMENT; /* as TensorFlow */
        return status;
    }
    if (out[0]) {
        status = stk_tensor_copy(out[0], made, err);
        stk_tensor_release(made);
    } else {
        out[0] = made;
    }
    return status;
}

static PyObject *decode_image(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *dtype;
    int channels, accurate, recover;
    unsigned formats;
    picture_work *w = PyMem_RawCalloc(1, sizeof *w);
    if (!w) return PyErr_NoMemory();
    w->options = stk_picture_options_defaults();
    if (!PyArg_ParseTuple(args, "siOIpp", &name, &channels, &dtype, &formats, &accurate,
                          &recover) ||
        py_dtype_parse(dtype, &w->options.dtype)) {
        PyMem_RawFree(w);
        return NULL;
    }
    w->options.channels = channels;
    w->options.accurate = accurate;
    w->options.recover = recover;
    w->formats = formats;
    stk_map_fn fn = {.name = name, .context = w, .call = decode_call, .release = PyMem_RawFree};
    return py_host_fn_new(name, 1, 1, &fn);
}

/* host_read_file(): the bytes of a file. */
static stk_status read_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                            stk_tensor **out, stk_error *err)
{
    (void)context, (void)info;
    char path[4096];
    const stk_string *s = in[0]->data;
    if (in[0]->dtype != STK_STRING || in[0]->rank || s->size >= (int64_t)sizeof path) {
        err->code = STK_ERR_ARGUMENT;
        snprintf(err->message, sizeof err->message, "ReadFile: filename must be a scalar string");
        return err->code;
    }
    memcpy(path, s->data, (size_t)s->size);
    path[s->size] = 0;
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    size_t size = 0, room = 0;
    bool fine = f != NULL;
    if (f && !fseek(f, 0, SEEK_END)) {
        long end = ftell(f);
        room = end > 0 ? (size_t)end : 0;
        rewind(f);
    }
    for (; fine;) {
        if (size >= room || !bytes) {
            room = bytes ? 2 * room + 4096 : room + 1;
            char *more = PyMem_RawRealloc(bytes, room);
            if (!(fine = more != NULL)) break;
            bytes = more;
        }
        size_t got = fread(bytes + size, 1, room - size, f);
        if (!got) break;
        size += got;
    }
    if (fine) fine = !ferror(f);
    if (f) fclose(f);
    stk_status status = STK_ERR_IO;
    if (fine) {
        stk_string item = {bytes, (int64_t)size};
        stk_tensor_release(out[0]);
        out[0] = NULL;
        status = stk_tensor_strings(0, NULL, &item, &out[0], err);
    } else {
        err->code = STK_ERR_IO;
        snprintf(err->message, sizeof err->message, "%.900s; %s", path,
                 f ? "it cannot be read" : "No such file or directory");
    }
    PyMem_RawFree(bytes);
    return status;
}

static PyObject *read_file(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    stk_map_fn fn = {.name = "ReadFile", .call = read_call};
    return py_host_fn_new("ReadFile", 1, 1, &fn);
}

PyMethodDef py_host_fn_makers[] = {{"host_decode_raw", decode_raw, METH_O, NULL},
                                   {"host_decode_image", decode_image, METH_VARARGS, NULL},
                                   {"host_read_file", read_file, METH_NOARGS, NULL},
                                   {NULL, NULL, 0, NULL}};

int py_init_host_fn(PyObject *module)
{
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(py_host_fn, call), READONLY, NULL},
        {"name", T_OBJECT, offsetof(py_host_fn, name), READONLY, NULL},
        {"nin", T_INT, offsetof(py_host_fn, nin), READONLY, NULL},
        {"nout", T_INT, offsetof(py_host_fn, nout), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, host_fn_dealloc},
                                  {Py_tp_call, PyVectorcall_Call},
                                  {Py_tp_members, members},
                                  {0, NULL}};
    static PyType_Spec spec = {
        "stoker._stoker.HostFn", sizeof(py_host_fn), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    py_host_fn_type = py_add_type(module, &spec, NULL, "HostFn");
    return py_host_fn_type && !PyModule_AddFunctions(module, py_host_fn_makers) &&
                   !PyModule_AddFunctions(module, py_example_makers) &&
                   !PyModule_AddFunctions(module, py_message_functions) &&
                   !PyModule_AddFunctions(module, py_table_makers) && !py_init_record_writer(module)
               ? 0
               : -1;
}
