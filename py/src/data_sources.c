/* Where elements come from: functions of the module that make a Pipeline. */
#include "data.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------------------------ */

/* UTF-8 texts of a list of str; valid as long as the list. Free the array with PyMem_Free. */
static const char **texts_from(PyObject *list, int32_t *count)
{
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "needs a list of paths");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(list);
    const char **text = PyMem_Calloc((size_t)n + 1, sizeof *text);
    if (!text) return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        text[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        if (!text[i]) {
            PyMem_Free(text);
            return NULL;
        }
    }
    *count = (int32_t)n;
    return text;
}

/* New handles of a list of Pipelines; they belong to whoever calls the library with them. */
static stk_dataset **inputs_from(PyObject *list, int32_t *count)
{
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "needs a list of pipelines");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(list);
    stk_dataset **ds = PyMem_Calloc((size_t)n + 1, sizeof *ds);
    if (!ds) return (stk_dataset **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        if (Py_TYPE(o) != py_pipeline_type) {
            PyErr_SetString(PyExc_TypeError, "needs a list of pipelines");
            while (i--) stk_dataset_release(ds[i]);
            PyMem_Free(ds);
            return NULL;
        }
        ds[i] = stk_dataset_retain(((py_pipeline *)o)->ds);
    }
    *count = (int32_t)n;
    return ds;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static PyObject *from_memory(PyObject *args, bool rows)
{
    PyObject *list, *structure;
    int32_t n = 0;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OO", &list, &structure)) return NULL;
    const char *text = structure == Py_None ? NULL : PyUnicode_AsUTF8(structure);
    if (!text && PyErr_Occurred()) return NULL;
    stk_tensor **t = py_tensors_from(list, &n);
    if (!t) return NULL;
    stk_dataset *ds =
        rows ? stk_data_slices(n, t, NULL, text, &err) : stk_data_tensors(n, t, NULL, text, &err);
    py_tensors_free(t, n);
    return py_pipeline_take(ds, &err);
}
static PyObject *slices(PyObject *module, PyObject *args)
{
    (void)module;
    return from_memory(args, true);
}
static PyObject *tensors(PyObject *module, PyObject *args)
{
    (void)module;
    return from_memory(args, false);
}

static PyObject *range(PyObject *module, PyObject *args)
{
    (void)module;
    long long start, stop, step;
    stk_error err;
    if (!PyArg_ParseTuple(args, "LLL", &start, &stop, &step)) return NULL;
    return py_pipeline_take(stk_data_range(start, stop, step, &err), &err);
}

static PyObject *numbers(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long seed;
    long long count;
    stk_error err;
    if (!PyArg_ParseTuple(args, "KL", &seed, &count)) return NULL;
    return py_pipeline_take(stk_data_random(seed, count, &err), &err);
}

/* data_generator(open, fields, structure, cardinality): open() gives an iterator of lists of tensors. */
static PyObject *generator(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *open, *fields, *structure, *made = NULL;
    long long cardinality;
    stk_generator g;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOOL", &open, &fields, &structure, &cardinality)) return NULL;
    stk_schema *schema = py_schema_from(fields, structure);
    if (schema && !py_generator_fill(open, schema, cardinality, &g))
        made = py_pipeline_take(stk_data_generator(&g, &err), &err);
    stk_schema_release(schema);
    return made;
}

/* ---- files ------------------------------------------------------------------------------------------------------------ */

static PyObject *list_files(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *patterns;
    int shuffle;
    unsigned long long seed;
    int32_t n;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OpK", &patterns, &shuffle, &seed)) return NULL;
    const char **text = texts_from(patterns, &n);
    if (!text) return NULL;
    stk_dataset *ds = stk_data_list_files(n, text, shuffle, seed, &err);
    PyMem_Free(text);
    return py_pipeline_take(ds, &err);
}

/* data_tfrecord(paths, compression): 0 by the file, 1 none, 2 GZIP, 3 ZLIB. */
static PyObject *tfrecord(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *paths;
    int compression;
    int32_t n;
    stk_error err;
    stk_dataset *ds;
    if (!PyArg_ParseTuple(args, "Oi", &paths, &compression)) return NULL;
    const char **text = texts_from(paths, &n);
    if (!text) return NULL;
    stk_record_options o = stk_record_options_defaults();
    o.compression = (stk_compression)compression;
    Py_BEGIN_ALLOW_THREADS;
    ds = stk_data_tfrecord(n, text, &o, &err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(text);
    return py_pipeline_take(ds, &err);
}

static PyObject *text_lines(PyObject *module, PyObject *paths)
{
    (void)module;
    int32_t n;
    stk_error err;
    stk_dataset *ds;
    const char **text = texts_from(paths, &n);
    if (!text) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    ds = stk_data_text_lines(n, text, &err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(text);
    return py_pipeline_take(ds, &err);
}

static PyObject *fixed_records(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *paths;
    long long bytes, header, footer;
    int32_t n;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OLLL", &paths, &bytes, &header, &footer)) return NULL;
    const char **text = texts_from(paths, &n);
    if (!text) return NULL;
    stk_dataset *ds = stk_data_fixed_records(n, text, bytes, header, footer, &err);
    PyMem_Free(text);
    return py_pipeline_take(ds, &err);
}

static PyObject *load(PyObject *module, PyObject *path)
{
    (void)module;
    stk_error err;
    const char *text = PyUnicode_AsUTF8(path);
    return text ? py_pipeline_take(stk_data_load(text, &err), &err) : NULL;
}

/* ---- several ------------------------------------------------------------------------------------------------------------ */

static PyObject *zip(PyObject *module, PyObject *list)
{
    (void)module;
    int32_t n;
    stk_error err;
    stk_dataset **in = inputs_from(list, &n);
    if (!in) return NULL;
    stk_dataset *ds = stk_data_zip(n, in, &err);
    PyMem_Free(in);
    return py_pipeline_take(ds, &err);
}

/* data_sample(pipelines, weights or None, seed, stop_on_empty) */
static PyObject *sample(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *weights;
    unsigned long long seed;
    int stop;
    int32_t n;
    double weight[256];
    stk_error err;
    if (!PyArg_ParseTuple(args, "OOKp", &list, &weights, &seed, &stop)) return NULL;
    for (Py_ssize_t i = 0; weights != Py_None && i < PySequence_Size(weights) && i < 256; i++) {
        PyObject *w = PySequence_GetItem(weights, i);
        weight[i] = w ? PyFloat_AsDouble(w) : -1;
        Py_XDECREF(w);
        if (weight[i] == -1 && PyErr_Occurred()) return NULL;
    }
    stk_dataset **in = inputs_from(list, &n);
    if (!in) return NULL;
    stk_dataset *ds =
        stk_data_sample_from(n, in, weights == Py_None ? NULL : weight, seed, stop, &err);
    PyMem_Free(in);
    return py_pipeline_take(ds, &err);
}

static PyObject *choose(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *choice;
    int stop;
    int32_t n;
    stk_error err;
    if (!PyArg_ParseTuple(args, "OO!p", &list, py_pipeline_type, &choice, &stop)) return NULL;
    stk_dataset **in = inputs_from(list, &n);
    if (!in) return NULL;
    stk_dataset *ds =
        stk_data_choose_from(n, in, stk_dataset_retain(((py_pipeline *)choice)->ds), stop, &err);
    PyMem_Free(in);
    return py_pipeline_take(ds, &err);
}

PyMethodDef py_source_methods[] = {{"data_slices", slices, METH_VARARGS, NULL},
                                   {"data_tensors", tensors, METH_VARARGS, NULL},
                                   {"data_range", range, METH_VARARGS, NULL},
                                   {"data_random", numbers, METH_VARARGS, NULL},
                                   {"data_generator", generator, METH_VARARGS, NULL},
                                   {"data_list_files", list_files, METH_VARARGS, NULL},
                                   {"data_tfrecord", tfrecord, METH_VARARGS, NULL},
                                   {"data_text_lines", text_lines, METH_O, NULL},
                                   {"data_fixed_records", fixed_records, METH_VARARGS, NULL},
                                   {"data_load", load, METH_O, NULL},
                                   {"data_zip", zip, METH_O, NULL},
                                   {"data_sample", sample, METH_VARARGS, NULL},
                                   {"data_choose", choose, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
