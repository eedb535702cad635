/* The messages of tf.train.Example as bytes: Feature, Features, FeatureLists, written and read. The classes stand in
 * stoker/tf/_messages.py; their values are (kind, list) here, kind 0 none, 1 bytes, 2 floats, 3 integers, as in the wire format.
 * Members of maps are written in the order of their keys, so equal messages are equal bytes. */
#include "data.h"

#include <string.h>

/* ---- writing -------------------------------------------------------------------------------------------------- */

typedef struct out {
    char *data;
    size_t size, room;
    bool failed;
} out;

static char *grow(out *o, size_t more)
{
    if (o->size + more > o->room) {
        size_t room = 2 * o->room + more + 64;
        char *data = PyMem_Realloc(o->data, room);
        if (!data) {
            o->failed = true;
            return NULL;
        }
        o->data = data;
        o->room = room;
    }
    char *at = o->data + o->size;
    o->size += more;
    return at;
}

static void put(out *o, const void *bytes, size_t size)
{
    char *at = grow(o, size);
    if (at && size) memcpy(at, bytes, size);
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7) n++;
    return n;
}
static void put_varint(out *o, uint64_t v)
{
    char *at = grow(o, varint_size(v));
    for (; at && v >= 128; v >>= 7) *at++ = (char)(v | 128);
    if (at) *at = (char)v;
}
static void put_field(out *o, int number, const void *bytes, size_t size)
{
    put_varint(o, (uint64_t)number << 3 | 2);
    put_varint(o, size);
    put(o, bytes, size);
}

static int put_value(out *o, int kind, PyObject *value)
{
    if (kind == 1) {
        char *data;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(value, &data, &size)) return -1;
        put_field(o, 1, data, (size_t)size);
    } else if (kind == 2) {
        float f = (float)PyFloat_AsDouble(value);
        put(o, &f, sizeof f);
    } else {
        put_varint(o, (uint64_t)PyLong_AsLongLong(value));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The inside of a Feature; returns -1 with an exception. */
static int put_feature(out *to, int kind, PyObject *list)
{
    out values = {0}, inner = {0};
    int status = 0;
    if (!kind) return 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && !status; i++)
        status = put_value(&values, kind, PyList_GET_ITEM(list, i));
    if (kind == 1)
        put_field(to, 1, values.data, values.size);
    else {
        if (values.size) put_field(&inner, 1, values.data, values.size); /* packed */
        put_field(to, kind, inner.data, inner.size);
    }
    if (values.failed || inner.failed) {
        PyErr_NoMemory();
        status = -1;
    }
    PyMem_Free(values.data);
    PyMem_Free(inner.data);
    return status;
}

static int put_pair(out *to, PyObject *pair)
{
    int kind;
    PyObject *list;
    if (!PyArg_ParseTuple(pair, "iO!", &kind, &PyList_Type, &list)) return -1;
    return put_feature(to, kind, list);
}

/* A feature list: a repeated field of features. */
static int put_list(out *to, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        out one = {0};
        int status = put_pair(&one, PyList_GET_ITEM(list, i));
        if (!status) put_field(to, 1, one.data, one.size);
        to->failed |= one.failed;
        PyMem_Free(one.data);
        if (status) return -1;
    }
    return 0;
}

/* A map from str: entries {1: key, 2: value}, sorted by key. */
static int put_map(out *to, PyObject *map, bool lists)
{
    PyObject *keys = PyDict_Keys(map);
    if (!keys || PyList_Sort(keys)) {
        Py_XDECREF(keys);
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys) && !status; i++) {
        PyObject *key = PyList_GET_ITEM(keys, i), *value = PyDict_GetItemWithError(map, key);
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(key, &size);
        out inner = {0}, entry = {0};
        status = !text || !value ? -1 : lists ? put_list(&inner, value) : put_pair(&inner, value);
        if (!status) {
            put_field(&entry, 1, text, (size_t)size);
            put_field(&entry, 2, inner.data, inner.size);
            put_field(to, 1, entry.data, entry.size);
        }
        to->failed |= inner.failed || entry.failed;
        PyMem_Free(inner.data);
        PyMem_Free(entry.data);
    }
    Py_DECREF(keys);
    return status;
}

static PyObject *finish(out *o, int status)
{
    PyObject *bytes = NULL;
    if (!status && o->failed)
        PyErr_NoMemory();
    else if (!status)
        bytes = PyBytes_FromStringAndSize(o->data ? o->data : "", (Py_ssize_t)o->size);
    PyMem_Free(o->data);
    return bytes;
}

/* message_encode(what, value): what is 'f' (kind, list), 'm' {name: (kind, list)}, 'l' {name: [(kind, list)]}. */
static PyObject *encode(PyObject *module, PyObject *args)
{
    (void)module;
    int what;
    PyObject *value;
    out o = {0};
    if (!PyArg_ParseTuple(args, "CO", &what, &value)) return NULL;
    int status = what == 'f' ? put_pair(&o, value) : put_map(&o, value, what == 'l');
    return finish(&o, status);
}

/* message_field(number, bytes): a field of a message around it. */
static PyObject *field(PyObject *module, PyObject *args)
{
    (void)module;
    int number;
    const char *bytes;
    Py_ssize_t size;
    out o = {0};
    if (!PyArg_ParseTuple(args, "iy#", &number, &bytes, &size)) return NULL;
    put_field(&o, number, bytes, (size_t)size);
    return finish(&o, 0);
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

static PyObject *one_value(int kind, PyObject *o)
{
    if (kind == 1) {
        if (PyBytes_Check(o)) return Py_NewRef(o);
        return PyErr_Format(PyExc_TypeError, "expected bytes, %s found", Py_TYPE(o)->tp_name);
    }
    if (kind == 2) {
        double d = PyFloat_AsDouble(o);
        if (d == -1 && PyErr_Occurred()) return NULL;
        return PyFloat_FromDouble((float)d);
    }
    PyObject *n = PyNumber_Index(o);
    if (!n) return NULL;
    long long v = PyLong_AsLongLong(n);
    Py_DECREF(n);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return PyErr_Format(PyExc_ValueError, "Value out of range: %S", o);
    }
    return PyLong_FromLongLong(v);
}

/* message_values(kind, iterable) -> list of checked values. */
static PyObject *check_values(PyObject *module, PyObject *args)
{
    (void)module;
    int kind;
    PyObject *source;
    if (!PyArg_ParseTuple(args, "iO", &kind, &source)) return NULL;
    PyObject *items = PySequence_Fast(source, "value must be iterable");
    PyObject *list = items ? PyList_New(PySequence_Fast_GET_SIZE(items)) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *v = one_value(kind, PySequence_Fast_GET_ITEM(items, i));
        if (!v)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, v);
    }
    Py_XDECREF(items);
    return list;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

typedef struct in {
    const unsigned char *at, *end;
} in;

static bool get_varint(in *i, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && i->at < i->end; shift += 7) {
        unsigned char c = *i->at++;
        *v |= (uint64_t)(c & 127) << shift;
        if (!(c & 128)) return true;
    }
    return false;
}

/* The next field: its number, and its bytes for wire type 2. Others than 2: `number` with their own bytes. */
static bool get_field(in *i, int *number, int *wire, in *inner)
{
    uint64_t key, size;
    if (!get_varint(i, &key)) return false;
    *number = (int)(key >> 3);
    *wire = (int)(key & 7);
    inner->at = i->at;
    if (*wire == 0) {
        if (!get_varint(i, &size)) return false;
    } else if (*wire == 1 || *wire == 5) {
        size = *wire == 1 ? 8 : 4;
        if ((size_t)(i->end - i->at) < size) return false;
        i->at += size;
    } else if (*wire == 2) {
        if (!get_varint(i, &size) || (uint64_t)(i->end - i->at) < size) return false;
        inner->at = i->at;
        i->at += size;
    } else {
        return false;
    }
    inner->end = i->at;
    return true;
}

static bool add(PyObject *list, PyObject *value)
{
    bool fine = value && !PyList_Append(list, value);
    Py_XDECREF(value);
    return fine;
}

static bool get_numbers(int kind, in bytes, PyObject *list)
{
    while (bytes.at < bytes.end) {
        if (kind == 2) {
            float f;
            if (bytes.end - bytes.at < 4) return false;
            memcpy(&f, bytes.at, 4);
            bytes.at += 4;
            if (!add(list, PyFloat_FromDouble(f))) return false;
        } else {
            uint64_t v;
            if (!get_varint(&bytes, &v) || !add(list, PyLong_FromLongLong((long long)v)))
                return false;
        }
    }
    return true;
}

/* (kind, list) of a Feature; NULL with or without an exception. */
static PyObject *get_feature(in bytes)
{
    PyObject *list = PyList_New(0);
    int kind = 0, number, wire;
    in inner, value;
    bool fine = list != NULL;
    while (fine && bytes.at < bytes.end) {
        fine = get_field(&bytes, &number, &wire, &inner);
        if (!fine || wire != 2 || number < 1 || number > 3) continue;
        if (kind != number) PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL);
        kind = number;
        while (fine && inner.at < inner.end) {
            fine = get_field(&inner, &number, &wire, &value);
            if (!fine || number != 1) continue;
            if (kind == 1)
                fine = add(list,
                           PyBytes_FromStringAndSize((const char *)value.at, value.end - value.at));
            else
                fine = get_numbers(kind, value, list);
        }
    }
    PyObject *pair = fine ? Py_BuildValue("(iO)", kind, list) : NULL;
    Py_XDECREF(list);
    return pair;
}

static PyObject *get_list(in bytes)
{
    PyObject *list = PyList_New(0);
    int number, wire;
    in inner;
    bool fine = list != NULL;
    while (fine && bytes.at < bytes.end) {
        fine = get_field(&bytes, &number, &wire, &inner);
        if (fine && number == 1 && wire == 2) fine = add(list, get_feature(inner));
    }
    if (!fine) Py_CLEAR(list);
    return list;
}

static PyObject *get_map(in bytes, bool lists)
{
    PyObject *map = PyDict_New();
    int number, wire;
    in entry, part;
    bool fine = map != NULL;
    while (fine && bytes.at < bytes.end) {
        PyObject *key = NULL, *value = NULL;
        fine = get_field(&bytes, &number, &wire, &entry);
        if (!fine || number != 1 || wire != 2) continue;
        while (fine && entry.at < entry.end) {
            fine = get_field(&entry, &number, &wire, &part);
            if (!fine || wire != 2) continue;
            if (number == 1)
                Py_XSETREF(key, PyUnicode_DecodeUTF8((const char *)part.at, part.end - part.at,
                                                     "surrogateescape"));
            if (number == 2) Py_XSETREF(value, lists ? get_list(part) : get_feature(part));
            fine = number > 2 || (number == 1 ? key != NULL : value != NULL);
        }
        if (fine && !key) key = PyUnicode_FromString("");
        if (fine && !value) value = lists ? PyList_New(0) : Py_BuildValue("(i[])", 0);
        fine = fine && key && value && !PyDict_SetItem(map, key, value);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    if (!fine) Py_CLEAR(map);
    return map;
}

/* message_decode(what, bytes): as message_encode; None when the bytes are no such message. */
static PyObject *decode(PyObject *module, PyObject *args)
{
    (void)module;
    int what;
    const char *bytes;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "Cy#", &what, &bytes, &size)) return NULL;
    in all = {(const unsigned char *)bytes, (const unsigned char *)bytes + size};
    PyObject *made = what == 'f' ? get_feature(all) : get_map(all, what == 'l');
    if (!made && !PyErr_Occurred()) Py_RETURN_NONE;
    return made;
}

/* message_fields(bytes) -> [(number, bytes)] of a message around others; None when it is none. */
static PyObject *fields(PyObject *module, PyObject *bytes)
{
    (void)module;
    char *data;
    Py_ssize_t size;
    int number, wire;
    in inner;
    if (PyBytes_AsStringAndSize(bytes, &data, &size)) return NULL;
    in all = {(const unsigned char *)data, (const unsigned char *)data + size};
    PyObject *list = PyList_New(0);
    while (list && all.at < all.end) {
        if (!get_field(&all, &number, &wire, &inner)) {
            Py_DECREF(list);
            Py_RETURN_NONE;
        }
        if (!add(list, Py_BuildValue("(iiy#)", number, wire, (const char *)inner.at,
                                     (Py_ssize_t)(inner.end - inner.at))))
            Py_CLEAR(list);
    }
    return list;
}

/* masked_crc(buffer) -> the checksum of records, events and checkpoints. */
static PyObject *masked_crc(PyObject *module, PyObject *data)
{
    (void)module;
    Py_buffer view;
    uint32_t sum = 0;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    sum = stk_record_checksum(view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(sum);
}

PyMethodDef py_message_functions[] = {{"message_encode", encode, METH_VARARGS, NULL},
                                      {"message_field", field, METH_VARARGS, NULL},
                                      {"message_values", check_values, METH_VARARGS, NULL},
                                      {"message_decode", decode, METH_VARARGS, NULL},
                                      {"message_fields", fields, METH_O, NULL},
                                      {"masked_crc", masked_crc, METH_O, NULL},
                                      {NULL, NULL, 0, NULL}};
