/* Books of a Python program: how long it was in which part of the extension. Off, it costs a look at one byte. */
#include "trace.h"

#include <string.h>
#include <time.h>

bool py_books_on;
static const char *const names[PY_BOOKS] = {"trace", "compile", "program", "epochs",
                                            "input", "eager",   "read",    "host"};
static struct {
    int64_t ns, count;
} books[PY_BOOKS];
static __thread int64_t nested; /* time of what happened inside of what is being booked */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

py_booking py_book_begin_slow(void)
{
    py_booking b = {now_ns(), nested};
    nested = 0;
    return b;
}

/* Several threads may book at once; a lost nanosecond does not matter, a lock would. */
void py_book_end_slow(py_booking b, enum py_book which)
{
    int64_t elapsed = now_ns() - b.begin;
    books[which].ns += elapsed - nested;
    books[which].count++;
    nested = b.outer + elapsed;
}

/* books_switch(on): starts from zero when switched on. */
PyObject *py_books_switch(PyObject *module, PyObject *on)
{
    (void)module;
    int yes = PyObject_IsTrue(on);
    if (yes < 0) return NULL;
    for (int i = 0; yes && !py_books_on && i < PY_BOOKS; i++) books[i].ns = books[i].count = 0;
    py_books_on = yes;
    Py_RETURN_NONE;
}

/* books() -> {name: (seconds, times)} */
PyObject *py_books(PyObject *module, PyObject *u)
{
    (void)module, (void)u;
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < PY_BOOKS; i++) {
        PyObject *pair = Py_BuildValue("dL", (double)books[i].ns * 1e-9, (long long)books[i].count);
        if (!pair || PyDict_SetItemString(all, names[i], pair)) Py_CLEAR(all);
        Py_XDECREF(pair);
    }
    return all;
}

/* booked(name, function, args): function(*args), on the books under that name. */
PyObject *py_booked(PyObject *module, PyObject *given)
{
    (void)module;
    const char *name;
    PyObject *function, *args;
    int which = 0;
    if (!PyArg_ParseTuple(given, "sOO!", &name, &function, &PyTuple_Type, &args)) return NULL;
    while (which < PY_BOOKS && strcmp(names[which], name)) which++;
    if (which == PY_BOOKS) return PyErr_Format(PyExc_ValueError, "no book '%s'", name);
    py_booking b = py_book_begin();
    PyObject *r = PyObject_CallObject(function, args);
    py_book_end(b, (enum py_book)which);
    return r;
}
