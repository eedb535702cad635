/* Who is told of each operation that is called on this thread, and calling one by what was told: functions are saved
 * from the former (stoker/tf/_recording.py) and run by the latter (stoker/tf/_replay.py). */
#include "trace.h"

#include <string.h>

int py_recorders; /* on all threads; 0: nobody pays anything */
static __thread PyObject *recorder;

/* recorder(function or None) -> the one before. The function is called with what happened and its arguments:
 *     "op", name, inputs, ints, reals, result        "stop", input, result           "custom", trace, outputs, inputs,
 *     "host", function, name, inputs, results         "tape", tape, method, argument  backward, results
 *     "gradient", tape, targets, sources, output_gradients, results
 * and what stoker/_flow.py says by tell(). */
PyObject *py_set_recorder(PyObject *module, PyObject *next)
{
    (void)module;
    PyObject *before = recorder ? recorder : Py_NewRef(Py_None);
    py_recorders += (next != Py_None) - (recorder != NULL);
    recorder = next == Py_None ? NULL : Py_NewRef(next);
    return before;
}

PyObject *py_recorder_take(void)
{
    PyObject *r = recorder;
    recorder = NULL;
    return r;
}

void py_recorder_give(PyObject *r) { recorder = r; }

PyObject *py_tell(PyObject *result, PyObject *what)
{
    PyObject *r = result && what ? py_recorder_take() : NULL;
    if (r) {
        PyObject *said = PyObject_CallObject(r, what);
        py_recorder_give(r);
        if (!said) Py_CLEAR(result);
        Py_XDECREF(said);
    } else if (!what) {
        Py_CLEAR(result);
    }
    Py_XDECREF(what);
    return result;
}

/* tell(what, ...): by Python code that calls several operations of the engine as one. */
PyObject *py_tell_all(PyObject *module, PyObject *what)
{
    (void)module;
    if (!recorder) Py_RETURN_NONE;
    return py_tell(Py_NewRef(Py_None), Py_NewRef(what));
}

static PyObject *int_tuple(int32_t n, const int64_t *v)
{
    PyObject *t = PyTuple_New(n);
    for (int32_t i = 0; t && i < n; i++) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(v[i]));
    return t;
}

PyObject *py_tell_row(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                      const stk_attrs *attrs, PyObject *result)
{
    if (!result) return NULL;
    PyObject *inputs = PyTuple_New(nin), *reals = PyTuple_New(attrs->nreals);
    for (Py_ssize_t i = 0; inputs && i < nin; i++) PyTuple_SET_ITEM(inputs, i, Py_NewRef(in[i]));
    for (int32_t i = 0; reals && i < attrs->nreals; i++)
        PyTuple_SET_ITEM(reals, i, PyFloat_FromDouble(attrs->reals[i]));
    PyObject *ints = int_tuple(attrs->nints, attrs->ints), *what = NULL;
    if (inputs && reals && ints)
        what = Py_BuildValue("ssOOOO", "op", row->name, inputs, ints, reals, result);
    Py_XDECREF(inputs);
    Py_XDECREF(ints);
    Py_XDECREF(reals);
    return py_tell(result, what);
}

/* value_key(tensor): the same for all objects that stand for one value: its memory, or its place in a trace. */
PyObject *py_value_key(PyObject *module, PyObject *o)
{
    (void)module;
    if (!py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "value_key: %R is no tensor", o);
    py_tensor *t = (py_tensor *)o;
    return Py_BuildValue("KL", (unsigned long long)(uintptr_t)(t->t ? (void *)t->t : t->trace),
                         t->t ? -1LL : (long long)t->v);
}

/* ---- by name -------------------------------------------------------------------------------------------------- */

typedef struct given {
    const py_row *row;
    PyObject *const *in;
    Py_ssize_t nin, tensor; /* the next one */
    const int64_t *ints;
    int32_t nints, at, nreals, real;
    int common;
} given;

static bool take_tensor(given *g, bool common)
{
    if (g->tensor == g->nin) return false;
    int d = (int)py_tensor_dtype((py_tensor *)g->in[g->tensor++]);
    if (common && g->common < 0) g->common = d;
    return !common || g->common == d;
}

static bool take_int(given *g, int64_t low, int64_t high)
{
    return g->at < g->nints && g->ints[g->at] >= low && g->ints[g->at++] <= high;
}

static int64_t words_of(const char *spec)
{
    int64_t n = 1;
    for (; *spec && *spec != ')'; spec++) n += *spec == '|';
    return n;
}

/* One argument of a specification, as call.c makes numbers of it. */
static bool take_argument(given *g, const char *kind)
{
    int64_t n = g->at < g->nints ? g->ints[g->at] : 0;
    switch (*kind) {
    case 't':
    case 'u': return take_tensor(g, *kind == 't');
    case 'T':
    case 'U': return take_int(g, 0, 1) && (!n || take_tensor(g, *kind == 'T'));
    case 'v':
        if (!take_int(g, 0, g->nin)) return false;
        while (n-- > 0)
            if (!take_tensor(g, true)) return false;
        return true;
    case 'I': return take_int(g, 0, 1) && take_int(g, INT64_MIN, INT64_MAX);
    case 'i': return take_int(g, INT64_MIN, INT64_MAX);
    case 'b': return take_int(g, 0, 1);
    case 'd': return take_int(g, strncmp(kind, "d=-1", 4) ? 0 : -1, STK_DTYPE_COUNT - 1);
    case 's': return take_int(g, 0, words_of(kind) - 1);
    case 'f': return g->real++ < g->nreals;
    case 'A':
    case 'L':
        if (!take_int(g, -1, g->nints)) return false;
        if (n > g->nints - g->at) return false;
        g->at += n > 0 ? (int32_t)n : 0;
        return true;
    default: return true;
    }
}

/* Rows whose numbers no specification tells: slices and equations. */
static bool fits_by_itself(const given *g, bool *fits)
{
    if (!strcmp(g->row->name, "_cut")) {
        int64_t rank = g->nin == 1 ? py_tensor_rank((py_tensor *)g->in[0]) : -1;
        int64_t out = 3 * rank + 1;
        *fits = rank >= 0 && g->nints > out && g->ints[0] == rank && g->ints[out] >= 0 &&
                g->ints[out] <= STK_MAX_RANK && g->nints == out + 1 + g->ints[out];
    } else if (!strcmp(g->row->name, "_einsum")) {
        *fits = g->nin >= 1 && g->nin <= 32 && g->nints >= 2 && g->ints[0] == g->nin &&
                g->ints[1] == g->nints - 2 && g->nints < PY_MOST_INTS;
        for (int32_t i = 2; *fits && i < g->nints; i++) *fits = g->ints[i] > 0 && g->ints[i] < 128;
        for (Py_ssize_t i = 1; *fits && i < g->nin; i++)
            *fits =
                py_tensor_dtype((py_tensor *)g->in[i]) == py_tensor_dtype((py_tensor *)g->in[0]);
    } else {
        return false;
    }
    return true;
}

static bool fits(given *g)
{
    bool good = false;
    if (fits_by_itself(g, &good)) return good && g->nreals == 0;
    for (const char *at = g->row->spec; *at;) {
        const char *colon = strchr(at, ':');
        if (!colon || !take_argument(g, colon + 1)) return false;
        at += strcspn(at, " ");
        while (*at == ' ') at++;
    }
    return g->tensor == g->nin && g->at == g->nints && g->real == g->nreals;
}

/* run_row(name, inputs, ints, reals): the operation as it was told. Refused where they do not fit, as a file may hold
 * anything. */
PyObject *py_run_by_name(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *in, *ints, *reals;
    int64_t n[PY_MOST_INTS];
    double f[PY_MOST_REALS];
    if (!PyArg_ParseTuple(args, "sO!O!O!", &name, &PyList_Type, &in, &PyList_Type, &ints,
                          &PyList_Type, &reals))
        return NULL;
    const py_row *row = py_row_find(name);
    if (!row) return PyErr_Format(PyExc_ValueError, "there is no operation '%s'", name);
    given g = {.row = row, .nin = PyList_GET_SIZE(in), .ints = n, .common = -1};
    if (PyList_GET_SIZE(ints) > PY_MOST_INTS || PyList_GET_SIZE(reals) > PY_MOST_REALS)
        return PyErr_Format(PyExc_ValueError, "%s: too many numbers", name);
    g.nints = (int32_t)PyList_GET_SIZE(ints), g.nreals = (int32_t)PyList_GET_SIZE(reals);
    for (int32_t i = 0; i < g.nints; i++) {
        n[i] = PyLong_AsLongLong(PyList_GET_ITEM(ints, i));
        if (n[i] == -1 && PyErr_Occurred()) return NULL;
    }
    for (int32_t i = 0; i < g.nreals; i++) {
        f[i] = PyFloat_AsDouble(PyList_GET_ITEM(reals, i));
        if (f[i] == -1 && PyErr_Occurred()) return NULL;
    }
    for (Py_ssize_t i = 0; i < g.nin; i++)
        if (!py_is_tensor(PyList_GET_ITEM(in, i)))
            return PyErr_Format(PyExc_TypeError, "%s: input %zd is no tensor", name, i);
    PyObject *held = PyList_AsTuple(in), *result = NULL;
    g.in = held ? ((PyTupleObject *)held)->ob_item : NULL;
    if (held && !fits(&g))
        PyErr_Format(PyExc_ValueError, "%s: inputs or numbers do not fit the operation", name);
    else if (held)
        result = py_run_row(row, g.nin, g.in, g.nints, n, g.nreals, f);
    Py_XDECREF(held);
    return result;
}
