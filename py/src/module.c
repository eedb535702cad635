/* The module: types, functions, the eager context of each thread. */
#include "trace.h"

#include <pthread.h>

/* ---- one eager context per thread --------------------------------------------------------------------------- */

static pthread_key_t eager_key;
static __thread stk_eager *eager;

static void end_of_thread(void *e) { stk_eager_release(e); }

/* The threads of a device do not live in a child: it starts with a context of its own. The old one is left alone. */
static void in_child(void)
{
    eager = NULL;
    pthread_setspecific(eager_key, NULL);
    py_devices_in_child();
}

stk_eager *py_eager(void)
{
    stk_error err;
    if (eager) return eager;
    if (!py_cpu()) return NULL;
    if (stk_eager_new(py_cpu(), &eager, &err) != STK_OK) return py_raise(&err, NULL);
    py_eager_listen(eager);
    pthread_setspecific(eager_key, eager);
    return eager;
}

PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases, const char *name)
{
    PyObject *type = PyType_FromSpecWithBases(spec, bases);
    if (!type || PyModule_AddObjectRef(module, name, type)) return NULL;
    return (PyTypeObject *)type;
}

/* ---- functions ------------------------------------------------------------------------------------------------ */

/* convert_to_tensor(value, dtype=None, preferred=None) */
static PyObject *convert(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    stk_dtype dtype, preferred;
    if (n < 1 || n > 3)
        return PyErr_Format(PyExc_TypeError, "convert_to_tensor takes 1 to 3 arguments");
    bool given = n > 1 && args[1] != Py_None, hinted = n > 2 && args[2] != Py_None;
    if (given && py_dtype_parse(args[1], &dtype)) return NULL;
    if (hinted && py_dtype_parse(args[2], &preferred)) return NULL;
    PyObject *made = py_to_tensor(args[0], given ? (int)dtype : -1, hinted ? (int)preferred : -1);
    return py_devices_on && !py_is_tensor(args[0]) ? py_settle(made) : made;
}

static PyObject *is_tensor(PyObject *module, PyObject *o)
{
    (void)module;
    return PyBool_FromLong(py_is_tensor(o) || py_is_variable(o));
}
static PyObject *is_symbolic(PyObject *module, PyObject *o)
{
    (void)module;
    return PyBool_FromLong(py_is_tensor(o) && !((py_tensor *)o)->t);
}

/* shape_of(tensor, dtype): concrete even while tracing, because programs are made for concrete shapes. */
static PyObject *shape_of(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    stk_dtype dtype = STK_I32;
    stk_tensor *t = NULL;
    stk_error err;
    if (n < 1 || (n > 1 && py_dtype_parse(args[1], &dtype))) return NULL;
    PyObject *x = py_to_tensor(args[0], -1, -1);
    if (!x) return NULL;
    int64_t rank = py_tensor_rank((py_tensor *)x);
    stk_status status = stk_tensor_new(dtype, 1, &rank, &t, &err);
    for (int32_t i = 0; i < rank && status == STK_OK; i++)
        status = stk_tensor_set(t, i, (double)py_tensor_dim((py_tensor *)x, i), &err);
    Py_DECREF(x);
    if (status == STK_OK) return py_tensor_take(t);
    stk_tensor_release(t);
    return py_raise(&err, "Shape");
}

static PyObject *from_dlpack(PyObject *module, PyObject *o)
{
    (void)module;
    PyObject *capsule =
        PyCapsule_CheckExact(o) ? Py_NewRef(o) : PyObject_CallMethod(o, "__dlpack__", NULL);
    void *managed = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    stk_tensor *t = NULL;
    stk_error err;
    PyObject *result = NULL;
    if (managed && stk_dlpack_import(managed, &t, &err) != STK_OK) py_raise(&err, NULL);
    if (t) {
        PyCapsule_SetName(capsule, "used_dltensor");
        PyCapsule_SetDestructor(capsule, NULL);
        result = py_tensor_take(t);
    }
    Py_XDECREF(capsule);
    return result;
}

static PyObject *tapes_active(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(py_tapes_active());
}

static PyObject *set_eager_step(PyObject *module, PyObject *o)
{
    (void)module;
    long long step = PyLong_AsLongLong(o);
    stk_eager *e = step == -1 && PyErr_Occurred() ? NULL : py_eager();
    if (!e) return NULL;
    stk_eager_set_step(e, step);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"convert_to_tensor", (PyCFunction)(void (*)(void))convert, METH_FASTCALL, NULL},
    {"is_tensor", is_tensor, METH_O, NULL},
    {"is_symbolic", is_symbolic, METH_O, NULL},
    {"shape_of", (PyCFunction)(void (*)(void))shape_of, METH_FASTCALL, NULL},
    {"einsum", py_einsum, METH_VARARGS, NULL},
    {"from_dlpack", from_dlpack, METH_O, NULL},
    {"stop_gradient", (PyCFunction)(void (*)(void))py_stop_gradient, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"books_switch", py_books_switch, METH_O, NULL},
    {"books", py_books, METH_NOARGS, NULL},
    {"booked", py_booked, METH_VARARGS, NULL},
    {"paradox", py_paradox, METH_VARARGS, NULL},
    {"examine", py_examine, METH_VARARGS, NULL},
    {"program_threads", py_program_threads, METH_O, NULL},
    {"variables_made", py_variables_made, METH_NOARGS, NULL},
    {"functions_eager", py_functions_eager, METH_O, NULL},
    {"taped", py_taped, METH_NOARGS, NULL},
    {"check_results", py_check_results, METH_O, NULL},
    {"promote_with", py_promote_with, METH_O, NULL},
    {"host_call", py_host_call, METH_VARARGS, NULL},
    {"note_gradient", py_note_gradient, METH_VARARGS, NULL},
    {"flow_cond", py_flow_cond, METH_VARARGS, NULL},
    {"flow_while", py_flow_while, METH_VARARGS, NULL},
    {"flow_scan", py_flow_scan, METH_VARARGS, NULL},
    {"recorder", py_set_recorder, METH_O, NULL},
    {"tell", py_tell_all, METH_VARARGS, NULL},
    {"effects", py_effects, METH_NOARGS, NULL},
    {"value_key", py_value_key, METH_O, NULL},
    {"run_row", py_run_by_name, METH_VARARGS, NULL},
    {"swap_trace", py_swap_trace, METH_O, NULL},
    {"get_trace", py_get_trace, METH_NOARGS, NULL},
    {"tapes_active", tapes_active, METH_NOARGS, NULL},
    {"set_eager_step", set_eager_step, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "stoker._stoker", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__stoker(void)
{
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (pthread_key_create(&eager_key, end_of_thread)) return PyErr_NoMemory();
    pthread_atfork(NULL, NULL, in_child);
    if (py_init_devices(m) || py_init_dtype(m) || py_init_shape(m) || py_init_tensor(m) ||
        py_init_variable(m) || py_init_trace(m) || py_init_program(m) || py_init_tape(m) ||
        py_init_call(m) || py_init_data_error(m) || py_init_pipeline(m) || py_init_map_fn(m) ||
        py_init_host_fn(m) || py_init_iterator(m) || py_init_over(m) || py_init_function(m) ||
        PyModule_AddStringConstant(m, "version", stk_version())) {
        Py_DECREF(m);
        return NULL;
    }
    PyObject *ops = PyObject_GetAttrString(m, "ops"),
             *stop = PyObject_GetAttrString(m, "stop_gradient");
    if (ops && stop) PyDict_SetItemString(ops, "stop_gradient", stop);
    Py_XDECREF(ops);
    Py_XDECREF(stop);
    return m;
}
