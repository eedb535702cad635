/* tf.DType: one object per element type, equal to its name, to numpy's type and to itself. */
#include "front.h"

#include <string.h>

PyTypeObject *py_dtype_type;

typedef struct dtype_row {
    const char *name, *tf;
    char kind;
    int number; /* TensorFlow's enum */
    double min, max;
} dtype_row;

#define BIG 1.7976931348623157e308
static const dtype_row rows[] = {
    {"float32", "float", 'F', 1, -3.4028234663852886e38, 3.4028234663852886e38},
    {"float64", "double", 'F', 2, -BIG, BIG},
    {"float16", "half", 'F', 19, -65504, 65504},
    {"bfloat16", "bfloat16", 'F', 14, -3.3895313892515355e38, 3.3895313892515355e38},
    {"int8", "int8", 'I', 6, -128, 127},
    {"uint8", "uint8", 'U', 4, 0, 255},
    {"int16", "int16", 'I', 5, -32768, 32767},
    {"uint16", "uint16", 'U', 17, 0, 65535},
    {"int32", "int32", 'I', 3, -2147483648.0, 2147483647},
    {"uint32", "uint32", 'U', 22, 0, 4294967295.0},
    {"int64", "int64", 'I', 9, -9223372036854775808.0, 9223372036854775807.0},
    {"uint64", "uint64", 'U', 23, 0, 18446744073709551615.0},
    {"bool", "bool", 'B', 10, 0, 1},
    {"string", "string", 'S', 7, 0, 0},
    /* names only: the engine does not compute with them */
    {"complex64", "complex64", 'C', 8, 0, 0},
    {"complex128", "complex128", 'C', 18, 0, 0},
    {"resource", "resource", 'R', 20, 0, 0},
    {"variant", "variant", 'V', 21, 0, 0},
    {"qint8", "qint8", 'Q', 11, -128, 127},
    {"quint8", "quint8", 'Q', 12, 0, 255},
    {"qint32", "qint32", 'Q', 13, -2147483648.0, 2147483647},
};
enum { ROWS = sizeof rows / sizeof *rows };
static PyObject *objects[ROWS];
static PyObject *numpy_types[ROWS];

static const dtype_row *row_of(PyObject *o) { return &rows[((py_dtype *)o)->dtype]; }
PyObject *py_dtype_object(stk_dtype dtype) { return objects[dtype]; }
const char *py_dtype_tf_name(stk_dtype dtype) { return rows[dtype].tf; }
char py_dtype_kind(stk_dtype dtype) { return rows[dtype].kind; }

static int find(const char *name)
{
    static const struct {
        const char *alias;
        int dtype;
    } aliases[] = {{"float", STK_F32},    {"double", STK_F64},     {"half", STK_F16},
                   {"str", STK_STRING},   {"bytes", STK_STRING},   {"object", STK_STRING},
                   {"int", STK_I32},      {"bool_", STK_BOOL},     {"bytes_", STK_STRING},
                   {"str_", STK_STRING},  {"object_", STK_STRING}, {"float_", STK_F64},
                   {"longlong", STK_I64}, {"ulonglong", STK_U64}};
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, name)) return i;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(aliases[i].alias, name)) return aliases[i].dtype;
    return -1;
}

/* The number of a type by anything that names one; -1 without an exception when it names none. */
static int lookup(PyObject *o)
{
    if (Py_TYPE(o) == py_dtype_type) return (int)((py_dtype *)o)->dtype;
    if (PyUnicode_Check(o)) return find(PyUnicode_AsUTF8(o));
    if (o == (PyObject *)&PyFloat_Type) return STK_F32;
    if (o == (PyObject *)&PyLong_Type) return STK_I32;
    if (o == (PyObject *)&PyBool_Type) return STK_BOOL;
    if (o == (PyObject *)&PyUnicode_Type || o == (PyObject *)&PyBytes_Type ||
        o == (PyObject *)&PyBaseObject_Type)
        return STK_STRING;
    if (PyLong_CheckExact(o)) { /* TensorFlow's enum */
        long n = PyLong_AsLong(o) % 100;
        for (int i = 0; i < ROWS; i++)
            if (rows[i].number == n) return i;
        return -1;
    }
    if (PyType_Check(o)) { /* np.float32 */
        const char *dot = strrchr(((PyTypeObject *)o)->tp_name, '.');
        bool foreign = !strncmp(((PyTypeObject *)o)->tp_name, "numpy", 5) ||
                       strstr(((PyTypeObject *)o)->tp_name, "dtypes") ||
                       !strcmp(((PyTypeObject *)o)->tp_name, "bfloat16");
        return foreign ? find(dot ? dot + 1 : ((PyTypeObject *)o)->tp_name) : -1;
    }
    PyObject *name = NULL; /* np.dtype, and objects that have a dtype */
    if (!strncmp(Py_TYPE(o)->tp_name, "numpy", 5)) name = PyObject_GetAttrString(o, "name");
    if (!name) {
        PyErr_Clear();
        PyObject *inner =
            PyObject_HasAttrString(o, "dtype") ? PyObject_GetAttrString(o, "dtype") : NULL;
        int found = inner && inner != o ? lookup(inner) : -1;
        Py_XDECREF(inner);
        PyErr_Clear();
        return found;
    }
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "";
    int found = find(text);
    if (found < 0 && (!strncmp(text, "str", 3) || !strncmp(text, "bytes", 5))) found = STK_STRING;
    Py_DECREF(name);
    return found;
}

int py_dtype_parse(PyObject *o, stk_dtype *out)
{
    int found = lookup(o);
    if (found < 0) {
        PyErr_Format(PyExc_TypeError,
                     "Cannot convert the argument `type_value`: %R to a "
                     "TensorFlow DType.",
                     o);
        return -1;
    }
    if (found >= STK_DTYPE_COUNT) {
        py_raise_code(STK_ERR_UNSUPPORTED, NULL,
                      "dtype %s: Stoker computes with float16/32/64, bfloat16, integers, bool and "
                      "string only",
                      rows[found].name);
        return -1;
    }
    *out = (stk_dtype)found;
    return 0;
}

static PyObject *load_numpy_type(int i)
{
    static const char *const other[] = {[STK_BOOL] = "bool_", [STK_STRING] = "object_"};
    if (i == STK_BF16) {
        PyObject *m = PyImport_ImportModule("ml_dtypes");
        PyObject *type = m ? PyObject_GetAttrString(m, "bfloat16") : NULL;
        Py_XDECREF(m);
        return type;
    }
    PyObject *np = py_numpy();
    const char *name = i <= STK_STRING && other[i] ? other[i] : rows[i].name;
    return np ? PyObject_GetAttrString(np, name) : NULL;
}

PyObject *py_dtype_numpy(stk_dtype dtype)
{
    if (!numpy_types[dtype]) numpy_types[dtype] = load_numpy_type((int)dtype);
    return numpy_types[dtype];
}

/* ---- the object ------------------------------------------------------------------------------------ */

static PyObject *dtype_repr(PyObject *o) { return PyUnicode_FromFormat("tf.%s", row_of(o)->name); }
static PyObject *dtype_str(PyObject *o)
{
    return PyUnicode_FromFormat("<dtype: '%s'>", row_of(o)->name);
}
static Py_hash_t dtype_hash(PyObject *o) { return 7919 + (Py_hash_t)row_of(o)->number; }

static PyObject *dtype_compare(PyObject *a, PyObject *b, int how)
{
    if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    int found = b == Py_None ? -1 : a == b ? (int)((py_dtype *)a)->dtype : lookup(b);
    PyErr_Clear();
    return PyBool_FromLong((found == (int)((py_dtype *)a)->dtype) == (how == Py_EQ));
}

static PyObject *get_name(PyObject *o, void *c)
{
    (void)c;
    return PyUnicode_FromString(row_of(o)->name);
}
static PyObject *get_kind(PyObject *o, void *letters)
{
    return PyBool_FromLong(strchr(letters, row_of(o)->kind) != NULL);
}
static PyObject *get_true(PyObject *o, void *c)
{
    (void)c;
    return Py_NewRef(o);
}
static PyObject *get_false(PyObject *o, void *c)
{
    (void)o, (void)c;
    Py_RETURN_FALSE;
}
static PyObject *get_enum(PyObject *o, void *c)
{
    (void)c;
    return PyLong_FromLong(row_of(o)->number);
}
static PyObject *get_numpy(PyObject *o, void *c)
{
    (void)c;
    return Py_XNewRef(py_dtype_numpy(((py_dtype *)o)->dtype));
}
static PyObject *get_size(PyObject *o, void *c)
{
    (void)c;
    stk_dtype d = ((py_dtype *)o)->dtype;
    return PyLong_FromLong(d < STK_STRING ? (long)stk_dtype_size(d) : d == STK_STRING ? 1 : 8);
}
static PyObject *limit(PyObject *o, double value)
{
    const dtype_row *r = row_of(o);
    if (!strchr("FIUBQ", r->kind)) {
        PyErr_Format(PyExc_TypeError, "Cannot find limit of %s.", r->name);
        return NULL;
    }
    if (r->kind == 'B') return PyBool_FromLong(value != 0);
    if (r->kind != 'F')
        return r->number == 23 && value > 0 ? PyLong_FromUnsignedLongLong(UINT64_MAX)
               : r->number == 9             ? PyLong_FromLongLong(value > 0 ? INT64_MAX : INT64_MIN)
                                            : PyLong_FromLongLong((long long)value);
    PyObject *type = py_dtype_numpy(((py_dtype *)o)->dtype);
    return type ? PyObject_CallFunction(type, "d", value) : NULL;
}
static PyObject *get_min(PyObject *o, void *c)
{
    (void)c;
    return limit(o, row_of(o)->min);
}
static PyObject *get_max(PyObject *o, void *c)
{
    (void)c;
    return limit(o, row_of(o)->max);
}
static PyObject *get_limits(PyObject *o, void *c)
{
    (void)c;
    return Py_BuildValue("(dd)", row_of(o)->min, row_of(o)->max);
}

static PyObject *is_compatible(PyObject *o, PyObject *other)
{
    return dtype_compare(o, other, Py_EQ);
}
static PyObject *reduce(PyObject *o, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(O(s))", Py_TYPE(o), row_of(o)->name);
}
static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)kwargs;
    PyObject *what;
    if (!PyArg_ParseTuple(args, "O", &what)) return NULL;
    int found = lookup(what);
    if (found < 0)
        return PyErr_Format(PyExc_TypeError,
                            "Cannot convert the argument `type_value`: %R to a "
                            "TensorFlow DType.",
                            what);
    return Py_NewRef(objects[found]);
}

static PyGetSetDef getters[] = {{"name", get_name, NULL, NULL, NULL},
                                {"is_floating", get_kind, NULL, NULL, "F"},
                                {"is_integer", get_kind, NULL, NULL, "IU"},
                                {"is_unsigned", get_kind, NULL, NULL, "U"},
                                {"is_bool", get_kind, NULL, NULL, "B"},
                                {"is_complex", get_kind, NULL, NULL, "C"},
                                {"is_quantized", get_kind, NULL, NULL, "Q"},
                                {"is_numeric", get_kind, NULL, NULL, "FIUC"},
                                {"is_numpy_compatible", get_kind, NULL, NULL, "FIUBSC"},
                                {"_is_ref_dtype", get_false, NULL, NULL, NULL},
                                {"as_numpy_dtype", get_numpy, NULL, NULL, NULL},
                                {"as_datatype_enum", get_enum, NULL, NULL, NULL},
                                {"base_dtype", get_true, NULL, NULL, NULL},
                                {"real_dtype", get_true, NULL, NULL, NULL},
                                {"size", get_size, NULL, NULL, NULL},
                                {"min", get_min, NULL, NULL, NULL},
                                {"max", get_max, NULL, NULL, NULL},
                                {"limits", get_limits, NULL, NULL, NULL},
                                {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef methods[] = {{"is_compatible_with", is_compatible, METH_O, NULL},
                                {"__reduce__", reduce, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

int py_init_dtype(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_new, dtype_new},
                                  {Py_tp_repr, dtype_repr},
                                  {Py_tp_str, dtype_str},
                                  {Py_tp_hash, dtype_hash},
                                  {Py_tp_richcompare, dtype_compare},
                                  {Py_tp_getset, getters},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"tensorflow.python.framework.dtypes.DType", sizeof(py_dtype), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    py_dtype_type = py_add_type(module, &spec, NULL, "DType");
    PyObject *table = py_dtype_type ? PyDict_New() : NULL;
    for (int i = 0; table && i < ROWS; i++) {
        py_dtype *d = PyObject_New(py_dtype, py_dtype_type);
        if (!d) return -1;
        d->dtype = (stk_dtype)i;
        d->name = rows[i].name;
        objects[i] = (PyObject *)d;
        if (PyDict_SetItemString(table, rows[i].name, objects[i])) return -1;
    }
    return table ? PyModule_AddObject(module, "dtypes", table) : -1;
}
