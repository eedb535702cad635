/* The experiments of `stoker paradox`, for Python: measured and told by the library, with a look at Ctrl-C in between. */
#include "trace.h"

typedef struct talk {
    PyObject *tell; /* called with text as it comes; None: nobody listens */
    PyThreadState *thread;
    bool headed, failed; /* failed: an exception is set */
} talk;

/* Takes the text over. */
static void say(talk *t, stk_status status, char *text, const stk_error *err)
{
    PyObject *said = NULL;
    if (status == STK_OK)
        said = PyObject_CallFunction(t->tell, "s", text);
    else
        py_raise(err, NULL);
    if (!said) t->failed = true;
    Py_XDECREF(said);
    stk_text_free(text);
}

static bool go_on(void *context, double share, const char *doing)
{
    talk *t = context;
    (void)share, (void)doing;
    PyEval_RestoreThread(t->thread);
    if (!t->failed && PyErr_CheckSignals()) t->failed = true;
    t->thread = PyEval_SaveThread();
    return !t->failed;
}

static void tell_row(void *context, const stk_paradox *p, const stk_paradox_cell *cells, int32_t n)
{
    talk *t = context;
    stk_error err;
    char *head = NULL, *lines = NULL;
    PyEval_RestoreThread(t->thread);
    if (t->tell != Py_None && !t->failed && !t->headed) {
        stk_status status = stk_paradox_head(p, &head, &err);
        say(t, status, head, &err);
        t->headed = true;
    }
    if (t->tell != Py_None && !t->failed) {
        stk_status status = stk_paradox_lines(p, cells, n, &lines, &err);
        say(t, status, lines, &err);
    }
    t->thread = PyEval_SaveThread();
}

static PyObject *result(talk *t, const stk_paradox *p, const char *html)
{
    stk_error err;
    char *text = NULL;
    PyObject *json = NULL;
    if (t->tell != Py_None) {
        stk_status status = stk_paradox_foot(p, &text, &err);
        say(t, status, text, &err);
    }
    if (t->failed) return NULL;
    if (html && stk_paradox_save(p, html, &err) != STK_OK) return py_raise(&err, NULL);
    if (stk_paradox_render(p, STK_REPORT_JSON, &text, &err) != STK_OK) return py_raise(&err, NULL);
    json = PyUnicode_FromString(text);
    stk_text_free(text);
    return json;
}

/* paradox(only, devices, seconds, html, tell): JSON. only, html and tell may be None; devices is a tuple of names. */
PyObject *py_paradox(PyObject *module, PyObject *args)
{
    enum { MOST = 8 };
    const char *names[MOST], *html = NULL;
    PyObject *devices;
    talk t = {0};
    stk_error err;
    stk_paradox *p = NULL;
    stk_paradox_options o = stk_paradox_options_defaults();
    (void)module;
    if (!PyArg_ParseTuple(args, "zO!dzO", &o.only, &PyTuple_Type, &devices, &o.seconds, &html,
                          &t.tell))
        return NULL;
    if (PyTuple_GET_SIZE(devices) > MOST)
        return PyErr_Format(PyExc_ValueError, "%d devices at most", MOST);
    for (; o.ndevices < PyTuple_GET_SIZE(devices); o.ndevices++) {
        names[o.ndevices] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(devices, o.ndevices));
        if (!names[o.ndevices]) return NULL;
    }
    o.devices = names;
    o.progress = go_on;
    o.row = tell_row;
    o.context = &t;
    t.thread = PyEval_SaveThread();
    stk_status status = stk_paradox_run(&o, &p, &err);
    PyEval_RestoreThread(t.thread);
    PyObject *json = NULL;
    if (status == STK_OK && !t.failed)
        json = result(&t, p, html);
    else if (!t.failed)
        py_raise(&err, NULL);
    stk_paradox_release(p);
    return json;
}
