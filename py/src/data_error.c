/* Exceptions of Python code that the library calls: a generator, a function of a map.
 *
 * The library knows one shape of failure, a code and a message. The exception itself, with its traceback, waits here
 * under a number that the message carries; whoever reports the failure to Python finds it again. Elements that fail
 * may be passed over (ignore_errors), so only the last ones are kept. */
#include "data.h"

#include <stdio.h>
#include <string.h>

enum { KEPT = 64 };
static struct {
    unsigned long long number;
    char kind;
    PyObject *exception;
} kept[KEPT];
static unsigned long long last_number;
static bool over;
static const char MARK[] = "python exception #";

bool py_data_is_over(void) { return over; }

bool py_data_lock(PyGILState_STATE *state, stk_error *err)
{
    if (over || !Py_IsInitialized()) {
        if (err) {
            err->code = STK_ERR_CANCELLED;
            snprintf(err->message, sizeof err->message, "the interpreter has ended");
        }
        return false;
    }
    *state = PyGILState_Ensure();
    return true;
}

static PyObject *fetch_exception(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

stk_status py_data_keep_error(char kind, stk_error *err)
{
    PyObject *exception = fetch_exception();
    unsigned long long number = ++last_number;
    int place = (int)(number % KEPT);
    PyObject *old = kept[place].exception;
    kept[place].number = number;
    kept[place].kind = kind;
    kept[place].exception = exception;
    Py_XDECREF(old);
    if (err) {
        PyObject *text = exception ? PyObject_Str(exception) : NULL;
        const char *words = text ? PyUnicode_AsUTF8(text) : NULL;
        err->code = STK_ERR_STATE;
        snprintf(err->message, sizeof err->message, "%s%llu: %s: %.600s", MARK, number,
                 exception ? Py_TYPE(exception)->tp_name : "?", words ? words : "");
        Py_XDECREF(text);
        PyErr_Clear();
    }
    return STK_ERR_STATE;
}

/* stoker.tf._data_errors.explain(kind, exception) -> the exception to raise. */
static void *raise_kept(char kind, PyObject *exception)
{
    PyObject *module = PyImport_ImportModule("stoker.tf._data_errors");
    PyObject *told =
        module ? PyObject_CallMethod(module, "explain", "CO", (int)kind, exception) : NULL;
    Py_XDECREF(module);
    if (told) PyErr_SetObject((PyObject *)Py_TYPE(told), told);
    Py_XDECREF(told);
    return NULL;
}

static void *raise_not_found(const stk_error *err)
{
    PyObject *module = PyImport_ImportModule("stoker.tf._data_errors");
    PyObject *done = module ? PyObject_CallMethod(module, "not_found", "s", err->message) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return NULL;
}

void *py_data_raise(const stk_error *err, const char *op)
{
    if (PyErr_Occurred()) return NULL; /* Ctrl-C says more */
    const char *mark = strstr(err->message, MARK);
    if (mark) {
        unsigned long long number = strtoull(mark + sizeof MARK - 1, NULL, 10);
        int place = (int)(number % KEPT);
        if (kept[place].number == number && kept[place].exception) {
            PyObject *exception = Py_NewRef(kept[place].exception);
            raise_kept(kept[place].kind, exception);
            Py_DECREF(exception);
            return NULL;
        }
    }
    if (err->code == STK_ERR_IO && strstr(err->message, "o such file")) return raise_not_found(err);
    return py_raise(err, op);
}

static PyObject *at_exit(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    over = true;
    Py_RETURN_NONE;
}

int py_init_data_error(PyObject *module)
{
    static PyMethodDef exit_method = {"data_is_over", at_exit, METH_NOARGS, NULL};
    PyObject *f = PyCFunction_New(&exit_method, NULL);
    if (!f || PyModule_AddObjectRef(module, "data_is_over", f)) return -1;
    Py_DECREF(f);
    return 0;
}
