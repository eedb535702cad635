/* Pipeline: a handle on a dataset of the library, one method per transform. Structures, names and specifications are
 * stoker/tf/data's business; here elements are lists of parts. */
#include "data.h"

#include <string.h>

PyTypeObject *py_pipeline_type;

PyObject *py_pipeline_take(stk_dataset *ds, const stk_error *err)
{
    if (!ds) return py_data_raise(err, NULL);
    py_pipeline *p = PyObject_New(py_pipeline, py_pipeline_type);
    if (!p) {
        stk_dataset_release(ds);
        return NULL;
    }
    p->ds = ds;
    return (PyObject *)p;
}

static void pipeline_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    stk_dataset *ds = ((py_pipeline *)self)->ds;
    if (!py_data_is_over()) stk_dataset_release(ds);
    type->tp_free(self);
    Py_DECREF(type);
}

static stk_dataset *handle(PyObject *self) { return stk_dataset_retain(((py_pipeline *)self)->ds); }

stk_dataset *py_dataset_handle(PyObject *dataset)
{
    PyObject *pipe = Py_TYPE(dataset) == py_pipeline_type
                         ? Py_NewRef(dataset)
                         : PyObject_GetAttrString(dataset, "_pipe");
    if (!pipe) return NULL;
    stk_dataset *ds = Py_TYPE(pipe) == py_pipeline_type ? handle(pipe) : NULL;
    if (!ds) PyErr_Format(PyExc_TypeError, "%R is no dataset", dataset);
    Py_DECREF(pipe);
    return ds;
}

/* ---- arguments ------------------------------------------------------------------------------------------------ */

stk_tensor **py_tensors_from(PyObject *list, int32_t *count)
{
    PyObject *items = PySequence_Fast(list, "needs a list of tensors");
    if (!items) return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    stk_tensor **t = PyMem_Calloc((size_t)n + 1, sizeof *t);
    int32_t have = 0;
    for (; t && have < n; have++) {
        t[have] = py_to_eager(PySequence_Fast_GET_ITEM(items, have), -1, "tf.data");
        if (!t[have]) break;
    }
    Py_DECREF(items);
    *count = have;
    if (!t) return (stk_tensor **)PyErr_NoMemory();
    if (have == n) return t;
    py_tensors_free(t, have);
    return NULL;
}

void py_tensors_free(stk_tensor **t, int32_t count)
{
    for (int32_t i = 0; t && i < count; i++) stk_tensor_release(t[i]);
    PyMem_Free(t);
}

PyObject *py_tensors_list(stk_tensor **t, int32_t count)
{
    PyObject *list = PyList_New(count);
    for (int32_t i = 0; i < count; i++) {
        PyObject *o = list ? py_tensor_take(t[i]) : (stk_tensor_release(t[i]), NULL);
        if (list && !o) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, o);
    }
    return list;
}

static int field_from(PyObject *o, stk_field *f)
{
    PyObject *dtype, *shape;
    int dataset = 0;
    if (!PyArg_ParseTuple(o, "OO|p", &dtype, &shape, &dataset) || py_dtype_parse(dtype, &f->dtype))
        return -1;
    f->dataset = dataset;
    f->rank = -1;
    if (shape == Py_None) return 0;
    f->rank = py_ints_from(shape, "element_spec", STK_MAX_RANK, f->shape);
    return f->rank < 0 ? -1 : 0;
}

stk_schema *py_schema_from(PyObject *fields, PyObject *structure)
{
    stk_schema *made = NULL;
    stk_error err;
    const char *text = !structure || structure == Py_None ? NULL : PyUnicode_AsUTF8(structure);
    if (!PyList_Check(fields) || (structure && structure != Py_None && !text)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "fields must be a list");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(fields);
    stk_field *f = PyMem_Calloc((size_t)n + 1, sizeof *f);
    if (!f) return (stk_schema *)PyErr_NoMemory();
    Py_ssize_t have = 0;
    while (have < n && !field_from(PyList_GET_ITEM(fields, have), &f[have])) have++;
    if (have == n && stk_schema_new((int32_t)n, f, text, &made, &err) != STK_OK)
        py_raise(&err, NULL);
    PyMem_Free(f);
    return made;
}

/* ---- transforms of numbers ---------------------------------------------------------------------------------------- */

#define TRANSFORM(NAME, DECLARE, ARGS, CALL)                                                       \
    static PyObject *do_##NAME(PyObject *self, PyObject *args)                                     \
    {                                                                                              \
        stk_error err = {0};                                                                       \
        DECLARE;                                                                                   \
        if (!PyArg_ParseTuple ARGS) return NULL;                                                   \
        return py_pipeline_take(CALL, &err);                                                       \
    }

TRANSFORM(batch, long long n;
          int drop, (args, "Lp", &n, &drop), stk_data_batch(handle(self), n, drop, &err))
TRANSFORM(rebatch, long long n;
          int drop, (args, "Lp", &n, &drop), stk_data_rebatch(handle(self), n, drop, &err))
TRANSFORM(prefetch, long long n, (args, "L", &n), stk_data_prefetch(handle(self), n, &err))
TRANSFORM(shuffle, long long n; unsigned long long seed;
          int again, (args, "LKp", &n, &seed, &again),
          stk_data_shuffle(handle(self), n, seed, again, &err))
TRANSFORM(repeat, long long n, (args, "L", &n), stk_data_repeat(handle(self), n, &err))
TRANSFORM(take, long long n, (args, "L", &n), stk_data_take(handle(self), n, &err))
TRANSFORM(skip, long long n, (args, "L", &n), stk_data_skip(handle(self), n, &err))
TRANSFORM(shard, long long n;
          long long i, (args, "LL", &n, &i), stk_data_shard(handle(self), n, i, &err))
TRANSFORM(enumerate, long long n, (args, "L", &n), stk_data_enumerate(handle(self), n, &err))
TRANSFORM(ignore_errors, , (args, ""), stk_data_ignore_errors(handle(self), &err))
TRANSFORM(unique, , (args, ""), stk_data_unique(handle(self), &err))
TRANSFORM(unbatch, , (args, ""), stk_data_unbatch(handle(self), &err))
TRANSFORM(window, long long n; long long shift; long long stride;
          int drop, (args, "LLLp", &n, &shift, &stride, &drop),
          stk_data_window_nested(handle(self), n, shift, stride, drop, &err))
TRANSFORM(cache, const char *path, (args, "z", &path), stk_data_cache(handle(self), path, &err))
TRANSFORM(concatenate, PyObject *other, (args, "O!", py_pipeline_type, &other),
          stk_data_concatenate(handle(self), handle(other), &err))
TRANSFORM(workers, int n, (args, "i", &n), stk_data_workers(handle(self), n, &err))

static PyObject *do_options(PyObject *self, PyObject *args)
{
    stk_error err;
    int deterministic, autotune, threads;
    long long ram;
    if (!PyArg_ParseTuple(args, "ppiL", &deterministic, &autotune, &threads, &ram)) return NULL;
    stk_stream_options o = stk_dataset_options(((py_pipeline *)self)->ds);
    o.deterministic = deterministic;
    o.autotune = autotune;
    o.threads = threads;
    o.ram_budget = ram;
    return py_pipeline_take(stk_data_options(handle(self), &o, &err), &err);
}

/* ---- padding ---------------------------------------------------------------------------------------------------------- */

typedef int64_t sizes[STK_MAX_RANK];

/* A list of lists of sizes; None stays NULL. -1: exception. */
static int sizes_from(PyObject *list, Py_ssize_t n, sizes **out)
{
    *out = NULL;
    if (list == Py_None) return 0;
    if (!PyList_Check(list) || PyList_GET_SIZE(list) != n) {
        PyErr_Format(PyExc_ValueError, "padded_shapes: needs one shape for each of %zd parts", n);
        return -1;
    }
    sizes *s = PyMem_Calloc((size_t)n + 1, sizeof *s);
    if (!s) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (py_ints_from(PyList_GET_ITEM(list, i), "padded_shapes", STK_MAX_RANK, s[i]) < 0) {
            PyMem_Free(s);
            return -1;
        }
    *out = s;
    return 0;
}

static int reals_from(PyObject *list, Py_ssize_t n, double **out)
{
    *out = NULL;
    if (list == Py_None) return 0;
    if (!PyList_Check(list) || (n >= 0 && PyList_GET_SIZE(list) != n)) {
        PyErr_Format(PyExc_ValueError, "needs a list of %zd numbers", n);
        return -1;
    }
    n = PyList_GET_SIZE(list);
    double *r = PyMem_Calloc((size_t)n + 1, sizeof *r);
    if (!r) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        r[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
        if (r[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(r);
            return -1;
        }
    }
    *out = r;
    return 0;
}

static PyObject *do_padded_batch(PyObject *self, PyObject *args)
{
    long long n;
    int drop;
    PyObject *shapes, *values, *made = NULL;
    sizes *s = NULL;
    double *v = NULL;
    stk_error err;
    if (!PyArg_ParseTuple(args, "LpOO", &n, &drop, &shapes, &values)) return NULL;
    int32_t parts = stk_dataset_schema(((py_pipeline *)self)->ds)->n;
    if (!sizes_from(shapes, parts, &s) && !reals_from(values, parts, &v))
        made = py_pipeline_take(stk_data_padded_batch(handle(self), n, drop,
                                                      (const int64_t(*)[STK_MAX_RANK])s, v, &err),
                                &err);
    PyMem_Free(s);
    PyMem_Free(v);
    return made;
}

/* bucket(length, boundaries, batch sizes, drop, pad to boundary, shapes, values) */
static PyObject *do_bucket(PyObject *self, PyObject *args)
{
    enum { MOST = 256 };
    PyObject *length, *boundaries, *batches, *shapes, *values, *made = NULL;
    int64_t edge[MOST], size[MOST + 1];
    stk_bucket_options o = {0};
    int drop, pad;
    sizes *s = NULL;
    double *v = NULL;
    stk_map_fn fn;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOppOO", &length, &boundaries, &batches, &drop, &pad, &shapes,
                          &values))
        return NULL;
    int32_t parts = stk_dataset_schema(((py_pipeline *)self)->ds)->n;
    o.n = py_ints_from(boundaries, "bucket_boundaries", MOST, edge);
    if (o.n < 0 || py_ints_from(batches, "bucket_batch_sizes", MOST + 1, size) < 0) return NULL;
    o.boundaries = edge;
    o.sizes = size;
    o.drop_remainder = drop;
    o.pad_to_bucket_boundary = pad;
    if (!sizes_from(shapes, parts, &s) && !reals_from(values, parts, &v) &&
        !py_map_fn_fill(length, NULL, &fn)) {
        o.padded_shapes = (const int64_t(*)[STK_MAX_RANK])s;
        o.padding_values = v;
        made =
            py_pipeline_take(stk_data_bucket_by_sequence_length(handle(self), &fn, &o, &err), &err);
    }
    PyMem_Free(s);
    PyMem_Free(v);
    return made;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------ */

static PyObject *do_map(PyObject *self, PyObject *args)
{
    PyObject *fn, *fields, *structure;
    int parallel, unordered;
    unsigned long long seed;
    stk_map_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOiKp", &fn, &fields, &structure, &parallel, &seed, &unordered))
        return NULL;
    stk_schema *schema = py_schema_from(fields, structure);
    if (!schema) return NULL;
    stk_map_options o = stk_map_options_defaults();
    o.parallel = parallel;
    o.seed = seed;
    o.unordered = unordered;
    PyObject *made = NULL;
    if (!py_map_fn_fill(fn, schema, &f))
        made = py_pipeline_take(stk_data_map(handle(self), &f, &o, &err), &err);
    stk_schema_release(schema);
    return made;
}

static PyObject *by_test(PyObject *self, PyObject *fn,
                         stk_dataset *(*make)(stk_dataset *, const stk_map_fn *, stk_error *))
{
    stk_map_fn f;
    stk_error err;
    if (py_map_fn_fill(fn, NULL, &f)) return NULL;
    return py_pipeline_take(make(handle(self), &f, &err), &err);
}
static PyObject *do_filter(PyObject *self, PyObject *fn)
{
    return by_test(self, fn, stk_data_filter);
}
static PyObject *do_take_while(PyObject *self, PyObject *fn)
{
    return by_test(self, fn, stk_data_take_while);
}

/* scan(state, fn, fields, structure): fields of the state, then of the output. */
static PyObject *do_scan(PyObject *self, PyObject *args)
{
    PyObject *state, *fn, *fields, *structure, *made = NULL;
    int32_t n = 0;
    stk_map_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOO", &state, &fn, &fields, &structure)) return NULL;
    stk_schema *schema = py_schema_from(fields, structure);
    stk_tensor **t = schema ? py_tensors_from(state, &n) : NULL;
    if (t && !py_map_fn_fill(fn, schema, &f))
        made = py_pipeline_take(stk_data_scan(handle(self), n, t, &f, &err), &err);
    if (t) py_tensors_free(t, n);
    stk_schema_release(schema);
    return made;
}

/* reduce(state, fn, fields) -> list of tensors. */
static PyObject *do_reduce(PyObject *self, PyObject *args)
{
    PyObject *state, *fn, *fields, *made = NULL;
    int32_t n = 0;
    stk_map_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOO", &state, &fn, &fields)) return NULL;
    stk_schema *schema = py_schema_from(fields, NULL);
    stk_tensor **t = schema ? py_tensors_from(state, &n) : NULL;
    stk_tensor **out = t ? PyMem_Calloc((size_t)n + 1, sizeof *out) : NULL;
    if (out && !py_map_fn_fill(fn, schema, &f)) {
        stk_dataset *ds = handle(self);
        stk_status status;
        stk_stream_options how = stk_dataset_options(ds);
        how.interrupt = py_data_interrupted;
        Py_BEGIN_ALLOW_THREADS;
        status = stk_dataset_reduce(ds, &how, n, t, &f, out, &err);
        stk_dataset_release(ds);
        Py_END_ALLOW_THREADS;
        made = status == STK_OK ? py_tensors_list(out, n) : py_data_raise(&err, "ReduceDataset");
    }
    PyMem_Free(out);
    if (t) py_tensors_free(t, n);
    stk_schema_release(schema);
    return made;
}

static PyObject *do_flat_map(PyObject *self, PyObject *args)
{
    PyObject *fn, *fields, *structure, *made = NULL;
    stk_flat_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOO", &fn, &fields, &structure)) return NULL;
    stk_schema *schema = py_schema_from(fields, structure);
    if (schema && !(PyList_Check(fn) ? py_batches_fn_fill : py_flat_fn_fill)(fn, schema, &f))
        made = py_pipeline_take(stk_data_flat_map(handle(self), &f, &err), &err);
    stk_schema_release(schema);
    return made;
}

static PyObject *do_interleave(PyObject *self, PyObject *args)
{
    PyObject *fn, *fields, *structure, *made = NULL;
    long long cycle, block;
    int parallel;
    stk_flat_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOLLi", &fn, &fields, &structure, &cycle, &block, &parallel))
        return NULL;
    stk_interleave_options o = {.cycle = cycle, .block = block, .parallel = parallel};
    stk_schema *schema = py_schema_from(fields, structure);
    if (schema && !py_flat_fn_fill(fn, schema, &f))
        made = py_pipeline_take(stk_data_interleave(handle(self), &f, &o, &err), &err);
    stk_schema_release(schema);
    return made;
}

/* group(key, fn, fields, structure, size) */
static PyObject *do_group(PyObject *self, PyObject *args)
{
    PyObject *key, *fn, *fields, *structure, *made = NULL;
    long long size;
    stk_map_fn k;
    stk_group_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOOL", &key, &fn, &fields, &structure, &size)) return NULL;
    stk_schema *schema = py_schema_from(fields, structure);
    if (schema && !py_group_fn_fill(fn, schema, &f)) {
        if (!py_map_fn_fill(key, NULL, &k))
            made =
                py_pipeline_take(stk_data_group_by_window(handle(self), &k, &f, size, &err), &err);
        else
            f.release(f.context);
    }
    stk_schema_release(schema);
    return made;
}

/* resample(class_of, target, initial or None, seed) */
static PyObject *do_resample(PyObject *self, PyObject *args)
{
    PyObject *fn, *target, *initial, *made = NULL;
    unsigned long long seed;
    double *t = NULL, *i = NULL;
    stk_map_fn f;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OO!OK", &fn, &PyList_Type, &target, &initial, &seed)) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(target);
    if (!reals_from(target, n, &t) && !reals_from(initial, n, &i) && !py_map_fn_fill(fn, NULL, &f))
        made = py_pipeline_take(
            stk_data_rejection_resample(handle(self), &f, (int32_t)n, t, i, seed, &err), &err);
    PyMem_Free(t);
    PyMem_Free(i);
    return made;
}

/* ---- asking ------------------------------------------------------------------------------------------------------------- */

static PyObject *do_save(PyObject *self, PyObject *path)
{
    const char *to = PyUnicode_AsUTF8(path);
    stk_error err;
    stk_status status;
    if (!to) return NULL;
    stk_dataset *ds = handle(self);
    stk_stream_options how = stk_dataset_options(ds);
    how.interrupt = py_data_interrupted;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_dataset_save(ds, to, &how, &err);
    stk_dataset_release(ds);
    Py_END_ALLOW_THREADS;
    if (status != STK_OK) return py_data_raise(&err, "SaveDataset");
    Py_RETURN_NONE;
}

static PyObject *do_explain(PyObject *self, PyObject *u)
{
    (void)u;
    char *text = NULL;
    stk_error err;
    if (stk_dataset_explain(((py_pipeline *)self)->ds, NULL, &text, &err) != STK_OK)
        return py_data_raise(&err, NULL);
    PyObject *s = PyUnicode_FromString(text);
    stk_text_free(text);
    return s;
}

static PyObject *get_cardinality(PyObject *self, void *c)
{
    (void)c;
    return PyLong_FromLongLong(stk_dataset_cardinality(((py_pipeline *)self)->ds));
}
static PyObject *get_random_access(PyObject *self, void *c)
{
    (void)c;
    return PyBool_FromLong(stk_dataset_random_access(((py_pipeline *)self)->ds));
}
static PyObject *get_name(PyObject *self, void *c)
{
    (void)c;
    return PyUnicode_FromString(stk_dataset_name(((py_pipeline *)self)->ds));
}
/* [(dtype, TensorShape, is a dataset)] */
static PyObject *get_fields(PyObject *self, void *c)
{
    (void)c;
    const stk_schema *schema = stk_dataset_schema(((py_pipeline *)self)->ds);
    PyObject *list = PyList_New(schema->n);
    for (int32_t i = 0; list && i < schema->n; i++) {
        const stk_field *f = &schema->fields[i];
        PyObject *shape = py_shape_new(f->rank, f->shape);
        PyObject *row = shape ? Py_BuildValue("(OOO)", py_dtype_object(f->dtype), shape,
                                              f->dataset ? Py_True : Py_False)
                              : NULL;
        Py_XDECREF(shape);
        if (!row)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, row);
    }
    return list;
}

static PyMethodDef transforms[] = {{"batch", do_batch, METH_VARARGS, NULL},
                                   {"rebatch", do_rebatch, METH_VARARGS, NULL},
                                   {"prefetch", do_prefetch, METH_VARARGS, NULL},
                                   {"shuffle", do_shuffle, METH_VARARGS, NULL},
                                   {"repeat", do_repeat, METH_VARARGS, NULL},
                                   {"take", do_take, METH_VARARGS, NULL},
                                   {"skip", do_skip, METH_VARARGS, NULL},
                                   {"shard", do_shard, METH_VARARGS, NULL},
                                   {"enumerate", do_enumerate, METH_VARARGS, NULL},
                                   {"ignore_errors", do_ignore_errors, METH_VARARGS, NULL},
                                   {"unique", do_unique, METH_VARARGS, NULL},
                                   {"unbatch", do_unbatch, METH_VARARGS, NULL},
                                   {"window", do_window, METH_VARARGS, NULL},
                                   {"cache", do_cache, METH_VARARGS, NULL},
                                   {"concatenate", do_concatenate, METH_VARARGS, NULL},
                                   {"workers", do_workers, METH_VARARGS, NULL},
                                   {"options", do_options, METH_VARARGS, NULL},
                                   {"padded_batch", do_padded_batch, METH_VARARGS, NULL},
                                   {"bucket", do_bucket, METH_VARARGS, NULL},
                                   {"map", do_map, METH_VARARGS, NULL},
                                   {"filter", do_filter, METH_O, NULL},
                                   {"take_while", do_take_while, METH_O, NULL},
                                   {"scan", do_scan, METH_VARARGS, NULL},
                                   {"reduce", do_reduce, METH_VARARGS, NULL},
                                   {"flat_map", do_flat_map, METH_VARARGS, NULL},
                                   {"interleave", do_interleave, METH_VARARGS, NULL},
                                   {"group", do_group, METH_VARARGS, NULL},
                                   {"resample", do_resample, METH_VARARGS, NULL},
                                   {"save", do_save, METH_O, NULL},
                                   {"explain", do_explain, METH_NOARGS, NULL},
                                   {NULL, NULL, 0, NULL}};

int py_init_pipeline(PyObject *module)
{
    static PyGetSetDef getters[] = {{"cardinality", get_cardinality, NULL, NULL, NULL},
                                    {"random_access", get_random_access, NULL, NULL, NULL},
                                    {"name", get_name, NULL, NULL, NULL},
                                    {"fields", get_fields, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, pipeline_dealloc},
                                  {Py_tp_methods, transforms},
                                  {Py_tp_getset, getters},
                                  {0, NULL}};
    static PyType_Spec spec = {"stoker._stoker.Pipeline", sizeof(py_pipeline), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    py_pipeline_type = py_add_type(module, &spec, NULL, "Pipeline");
    return py_pipeline_type && !PyModule_AddFunctions(module, py_source_methods) ? 0 : -1;
}
