/* devices.c - where Python's tensors, variables and programs are: the device that programs want, the scope of tf.device, and what
 * to do with tensors of devices where the host has to look at them.
 *
 * py_devices_on is false until somebody asks for a device that is not the processor; until then nothing here is called. */
#include "front.h"

#include <pthread.h>
#include <string.h>

bool py_devices_on;
static bool log_placement, strict;
static PyObject *asked_names;      /* name -> capsule: devices stay open once they were asked for */
static char default_name[64];      /* "": STOKER_DEVICE, or the processor */
static __thread stk_device *scope; /* of tf.device; NULL: none */

/* ---- opening ------------------------------------------------------------------------------------------------ */

static void close_device(PyObject *capsule)
{
    stk_device_release(PyCapsule_GetPointer(capsule, NULL));
}

stk_device *py_device_open(const char *name)
{
    stk_device *d = NULL;
    stk_error err;
    if (!asked_names && !(asked_names = PyDict_New())) return NULL;
    PyObject *known = PyDict_GetItemString(asked_names, name);
    if (known) return PyCapsule_GetPointer(known, NULL);
    if (stk_device_open(name, 0, &d, &err) != STK_OK)
        return py_raise_code(STK_ERR_ARGUMENT, NULL, "%s unknown device: %s", name, err.message);
    PyObject *capsule = PyCapsule_New(d, NULL, close_device);
    int status = capsule ? PyDict_SetItemString(asked_names, name, capsule) : -1;
    Py_XDECREF(capsule);
    return status ? NULL : d;
}

stk_device *py_cpu(void)
{
    static stk_device *cpu;
    if (!cpu) cpu = py_device_open("cpu:0");
    return cpu;
}

static stk_device *default_device(void)
{
    static char opened[64];
    static stk_device *device;
    if (!device || strcmp(opened, default_name) != 0) {
        device = py_device_open(*default_name ? default_name : "default");
        memcpy(opened, default_name, sizeof opened);
    }
    return device;
}

stk_device *py_device_now(void)
{
    if (!py_devices_on) return py_cpu();
    return scope ? scope : default_device();
}

bool py_device_is_host(stk_device *d) { return d == py_cpu() || !stk_device_host_memory(d).alloc; }

/* ---- who goes where --------------------------------------------------------------------------------------------- */

/* Scopes decide; else a device that one of the inputs is on; else the default. Integers that the host holds stay with it, as
 * in TensorFlow: they are sizes and counters. */
static stk_device *device_for(Py_ssize_t nin, stk_tensor *const *in)
{
    bool counters = nin > 0;
    stk_device *at = NULL;
    for (Py_ssize_t i = 0; i < nin; i++) {
        stk_device *on = stk_tensor_device(in[i]);
        if (in[i]->dtype == STK_STRING) return py_cpu();
        if (on && !at) at = on;
        counters = counters && !on && in[i]->dtype == STK_I32;
    }
    if (scope) return scope;
    if (at) return at;
    return counters ? py_cpu() : default_device();
}

int py_eager_place(stk_eager *e, Py_ssize_t nin, stk_tensor *const *in)
{
    stk_device *d = device_for(nin, in);
    if (!d) return -1;
    if (stk_eager_move(e, d, py_is_strict()) == STK_OK) return 0;
    py_raise(stk_eager_error(e), NULL);
    return -1;
}

/* Once for each operation and device: a table of what was said. */
static bool first_time(const char *op, stk_device *d)
{
    enum { MOST = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        char op[64];
        stk_device *device;
    } said[MOST];
    static int n;
    pthread_mutex_lock(&lock);
    bool new = n < MOST;
    for (int i = 0; i < n && new; i++) new = said[i].device != d || strcmp(said[i].op, op) != 0;
    if (new) {
        PyOS_snprintf(said[n].op, sizeof said[n].op, "%s", op);
        said[n++].device = d;
    }
    pthread_mutex_unlock(&lock);
    return new;
}

void py_tell_lacking(const char *op, stk_device *d, const char *why)
{
    if (first_time(op, d))
        fprintf(stderr, "stoker: %s is not on %s (%s): it runs on cpu:0\n", op, stk_device_name(d),
                why);
}

static void tell(void *context, const char *op, stk_device *ran, const char *lacks)
{
    (void)context;
    if (lacks)
        py_tell_lacking(py_running(op), ran, lacks);
    else if (log_placement)
        py_log_placement(py_running(op), ran);
}

/* ---- names -------------------------------------------------------------------------------------------------------- */

void py_device_text(stk_device *d, char *text, size_t size)
{
    const char *name = d ? stk_device_name(d) : "cpu:0";
    size_t n = (size_t)PyOS_snprintf(text, size, "/job:localhost/replica:0/task:0/device:");
    for (; *name && n + 1 < size; name++) text[n++] = (char)Py_TOUPPER((unsigned char)*name);
    text[n] = 0;
}

PyObject *py_device_of(const stk_tensor *t)
{
    char text[128];
    py_device_text(stk_tensor_device(t), text, sizeof text);
    return PyUnicode_FromString(text);
}

/* TensorFlow's name of the operation that this thread runs; op is the engine's. */
static __thread const char *running;
const char *py_running(const char *op) { return running ? running : op; }
void py_run_begin(const char *tf) { running = tf; }
void py_run_end(void) { running = NULL; }

void py_log_placement(const char *op, stk_device *ran)
{
    char text[128];
    py_device_text(ran, text, sizeof text);
    fprintf(stderr, "Executing op %s in device %s\n", op, text);
}

bool py_logs_placement(void) { return log_placement; }
bool py_is_scoped(void) { return scope != NULL; }
bool py_is_strict(void) { return strict && scope; }
void py_eager_listen(stk_eager *e) { stk_eager_watch(e, tell, NULL); }

void *py_raise_placement(const char *op, stk_device *d, const char *why)
{
    char text[128];
    py_device_text(d, text, sizeof text);
    return py_raise_code(STK_ERR_ARGUMENT, op,
                         "Could not satisfy device specification '%s'. enable_soft_placement=0. "
                         "Supported device types [CPU]. %s",
                         text, why);
}

/* ---- tensors --------------------------------------------------------------------------------------------------------- */

stk_tensor *py_on_host(stk_tensor *t)
{
    stk_tensor *here = NULL;
    stk_error err;
    if (stk_tensor_to(t, NULL, &here, &err) != STK_OK) return py_raise(&err, NULL);
    return here;
}

/* A value that comes from Python goes where programs of now run; takes over the reference. Sizes and counters stay. */
PyObject *py_settle(PyObject *o)
{
    py_tensor *t = (py_tensor *)o;
    stk_tensor *there = NULL;
    stk_error err;
    if (!o || !py_devices_on || !t->t || t->borrowed || stk_tensor_device(t->t)) return o;
    if (t->t->dtype == STK_STRING || (t->t->dtype == STK_I32 && !scope) || py_trace_current())
        return o;
    stk_device *d = py_device_now();
    if (d && py_device_is_host(d)) return o;
    if (d && stk_tensor_to(t->t, d, &there, &err) != STK_OK) py_raise(&err, NULL);
    Py_DECREF(o);
    return there ? py_tensor_take(there) : NULL;
}

/* ---- for Python ------------------------------------------------------------------------------------------------------- */

/* device_list() -> a dict for each. */
static PyObject *list_devices(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    enum { MOST = 64 };
    stk_device_report *all = PyMem_Calloc(MOST, sizeof *all);
    stk_error err;
    int32_t n = 0;
    if (!all) return PyErr_NoMemory();
    stk_status status;
    Py_BEGIN_ALLOW_THREADS status = stk_device_list(MOST, all, &n, &err);
    Py_END_ALLOW_THREADS PyObject *list =
        status == STK_OK ? PyList_New(n) : py_raise(&err, "device_list");
    for (int32_t i = 0; list && i < n; i++) {
        PyObject *one = Py_BuildValue(
            "{sssssisLsOsOss}", "name", all[i].name, "detail", all[i].detail, "threads",
            all[i].threads, "memory", (long long)all[i].memory, "shares_memory",
            all[i].shares_memory ? Py_True : Py_False, "only_by_name",
            all[i].only_by_name ? Py_True : Py_False, "note", all[i].note);
        if (!one) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, one);
    }
    PyMem_Free(all);
    return list;
}

static stk_device *open_object(PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "a device has a name like 'cpu:0', not %R", name);
    return text ? py_device_open(text) : NULL;
}

/* device_default(name or None) -> name: None asks. */
static PyObject *set_default(PyObject *module, PyObject *name)
{
    (void)module;
    stk_device *d =
        name == Py_None ? (py_devices_on ? default_device() : py_cpu()) : open_object(name);
    if (!d) return NULL;
    if (name != Py_None) {
        PyOS_snprintf(default_name, sizeof default_name, "%s", stk_device_name(d));
        py_devices_on = py_devices_on || !py_device_is_host(d);
    }
    return PyUnicode_FromString(stk_device_name(d));
}

/* device_scope(name or None) -> the name before, or None. */
static PyObject *set_scope(PyObject *module, PyObject *name)
{
    (void)module;
    PyObject *before = scope ? PyUnicode_FromString(stk_device_name(scope)) : Py_NewRef(Py_None);
    stk_device *d = before && name != Py_None ? open_object(name) : NULL;
    if (!before || (!d && name != Py_None)) {
        Py_XDECREF(before);
        return NULL;
    }
    scope = d;
    if (d && !py_device_is_host(d)) py_devices_on = true;
    return before;
}

/* device_now() -> name of the device that a program made now runs on. */
static PyObject *name_now(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    stk_device *d = py_device_now();
    return d ? PyUnicode_FromString(stk_device_name(d)) : NULL;
}

/* device_key() -> what programs are kept by: the scope, or the default without one. */
static PyObject *key_now(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    if (!py_devices_on) Py_RETURN_NONE;
    stk_device *d = py_device_now();
    return d ? PyUnicode_FromFormat("%s%s", scope ? "in " : "", stk_device_name(d)) : NULL;
}

static PyObject *set_strict(PyObject *module, PyObject *yes)
{
    (void)module;
    int on = PyObject_IsTrue(yes);
    if (on < 0) return NULL;
    strict = on;
    Py_RETURN_NONE;
}

static PyObject *set_log(PyObject *module, PyObject *yes)
{
    (void)module;
    int on = PyObject_IsTrue(yes);
    if (on < 0) return NULL;
    log_placement = on;
    py_devices_on =
        py_devices_on || on; /* eager calls tell only where there is something to tell */
    Py_RETURN_NONE;
}

/* device_memory(name, forget) -> (bytes in use, most that were; from now on when forget). */
static PyObject *memory_of(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name;
    int forget = 0;
    int64_t used = 0, peak = 0;
    if (!PyArg_ParseTuple(args, "O|p", &name, &forget)) return NULL;
    stk_device *d = open_object(name);
    if (!d) return NULL;
    stk_device_memory(d, forget, &used, &peak);
    return Py_BuildValue("LL", (long long)used, (long long)peak);
}

/* on_device(tensor, name) -> an eager tensor there; tapes know that it is the same. */
static PyObject *move_tensor(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o, *name;
    if (!PyArg_ParseTuple(args, "OO", &o, &name)) return NULL;
    stk_device *d = open_object(name), *before = scope;
    if (!d) return NULL;
    if (!py_device_is_host(d)) py_devices_on = true;
    if (!py_is_tensor(o) || !((py_tensor *)o)->t ||
        stk_tensor_device(((py_tensor *)o)->t) == (py_device_is_host(d) ? NULL : d))
        return Py_NewRef(o);
    scope = d;
    PyObject *moved = py_call_row("identity", &o, 1);
    scope = before;
    return moved;
}

PyMethodDef py_device_functions[] = {{"device_list", list_devices, METH_NOARGS, NULL},
                                     {"device_default", set_default, METH_O, NULL},
                                     {"device_scope", set_scope, METH_O, NULL},
                                     {"device_now", name_now, METH_NOARGS, NULL},
                                     {"device_key", key_now, METH_NOARGS, NULL},
                                     {"device_strict", set_strict, METH_O, NULL},
                                     {"device_memory", memory_of, METH_VARARGS, NULL},
                                     {"on_device", move_tensor, METH_VARARGS, NULL},
                                     {"log_placement", set_log, METH_O, NULL},
                                     {NULL, NULL, 0, NULL}};

/* A child of fork has no queues: it computes on the processor. */
void py_devices_in_child(void)
{
    scope = NULL;
    PyOS_snprintf(default_name, sizeof default_name, "cpu:0");
}

int py_init_devices(PyObject *module)
{
    const char *wish = Py_GETENV("STOKER_DEVICE");
    py_devices_on = wish && *wish && strncmp(wish, "cpu", 3) != 0;
    return PyModule_AddFunctions(module, py_device_functions);
}
