/* Operations that move or compare strings, done on numbers: every string gets its rank among all strings of the call, the engine
 * does the operation on the ranks, and ranks become strings again. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

/* Rows that move strings ('m': ranks become strings again) or compare them ('c'). */
static const struct {
    const char *name;
    char kind;
} rows[] = {{"gather", 'm'},
            {"gather_nd", 'm'},
            {"select", 'm'},
            {"where", 'm'},
            {"tensor_scatter_nd_update", 'm'},
            {"not_equal", 'c'},
            {"equal", 'c'}};

static char kind_of(const py_row *row)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, row->name)) return rows[i].kind;
    return 0;
}

bool py_has_strings(Py_ssize_t nin, PyObject *const *in)
{
    for (Py_ssize_t i = 0; i < nin; i++) {
        const py_tensor *o = (py_tensor *)in[i];
        if (o->t && o->t->dtype == STK_STRING) return true;
    }
    return false;
}

PyObject *py_refuse_strings(void)
{
    return py_refuse("strings are chosen by values that are only known when the program runs");
}

bool py_takes_strings(const py_row *row, Py_ssize_t nin, PyObject *const *in)
{
    bool strings = false;
    for (Py_ssize_t i = 0; i < nin; i++) {
        const stk_tensor *t = ((py_tensor *)in[i])->t;
        if (!t) return false;
        strings |= t->dtype == STK_STRING;
    }
    return strings && kind_of(row);
}

static int compare(const void *a, const void *b)
{
    const stk_string *p = *(const stk_string *const *)a, *q = *(const stk_string *const *)b;
    int64_t n = p->size < q->size ? p->size : q->size;
    int order = memcmp(p->data, q->data, (size_t)n);
    return order ? order : (p->size > q->size) - (p->size < q->size);
}

typedef struct ranks {
    const stk_string **sorted; /* of all inputs; equal ones have the rank of the first */
    int64_t n;
} ranks;

static int64_t rank_of(const ranks *r, const stk_string *s)
{
    int64_t low = 0, high = r->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (compare(&r->sorted[middle], &s) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static PyObject *to_numbers(const ranks *r, const stk_tensor *t)
{
    stk_tensor *out = NULL;
    stk_error err;
    if (stk_tensor_new(STK_I64, t->rank, t->shape, &out, &err) != STK_OK)
        return py_raise(&err, NULL);
    const stk_string *s = t->data;
    for (int64_t i = 0, n = stk_tensor_count(t); i < n; i++)
        ((int64_t *)out->data)[i] = rank_of(r, &s[i]);
    return py_tensor_take(out);
}

static PyObject *to_strings(const ranks *r, PyObject *numbers)
{
    static const stk_string nothing = {"", 0};
    stk_tensor *t = py_on_host(((py_tensor *)numbers)->t), *dense = NULL, *out = NULL;
    stk_error err;
    if (!t) return NULL;
    stk_status status = stk_tensor_dense(t, &dense, &err);
    stk_tensor_release(t);
    if (status != STK_OK) return py_raise(&err, NULL);
    int64_t n = stk_tensor_count(dense);
    stk_string *items = PyMem_Malloc(((size_t)n + 1) * sizeof *items);
    if (!items) {
        stk_tensor_release(dense);
        return PyErr_NoMemory();
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t k = ((const int64_t *)dense->data)[i];
        items[i] = k >= 0 && k < r->n ? *r->sorted[k] : nothing;
    }
    status = stk_tensor_strings(dense->rank, dense->shape, items, &out, &err);
    PyMem_Free(items);
    stk_tensor_release(dense);
    return status == STK_OK ? py_tensor_take(out) : py_raise(&err, NULL);
}

/* Dense handles of the string inputs, and their strings sorted. */
static int sort_all(Py_ssize_t nin, PyObject *const *in, stk_tensor **dense, ranks *r)
{
    stk_error err;
    for (Py_ssize_t i = 0; i < nin; i++) {
        stk_tensor *t = ((py_tensor *)in[i])->t;
        if (t->dtype != STK_STRING) continue;
        if (stk_tensor_dense(t, &dense[i], &err) != STK_OK) {
            py_raise(&err, NULL);
            return -1;
        }
        r->n += stk_tensor_count(t);
    }
    r->sorted = PyMem_Malloc(((size_t)r->n + 1) * sizeof *r->sorted);
    if (!r->sorted) return PyErr_NoMemory(), -1;
    int64_t at = 0;
    for (Py_ssize_t i = 0; i < nin; i++)
        for (int64_t k = 0; dense[i] && k < stk_tensor_count(dense[i]); k++)
            r->sorted[at++] = (const stk_string *)dense[i]->data + k;
    qsort(r->sorted, (size_t)r->n, sizeof *r->sorted, compare);
    return 0;
}

PyObject *py_run_strings(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                         const stk_attrs *attrs)
{
    enum { MOST = 64 };
    stk_tensor *dense[MOST] = {0};
    PyObject *given[MOST] = {0}, *result = NULL;
    ranks r = {0};
    bool fine = nin <= MOST && !sort_all(nin, in, dense, &r);
    for (Py_ssize_t i = 0; fine && i < nin; i++)
        fine = (given[i] = dense[i] ? to_numbers(&r, dense[i]) : Py_NewRef(in[i])) != NULL;
    if (fine)
        result =
            py_run_row(row, nin, given, attrs->nints, attrs->ints, attrs->nreals, attrs->reals);
    if (result && kind_of(row) == 'm' && py_is_tensor(result)) {
        PyObject *strings = to_strings(&r, result);
        Py_DECREF(result);
        result = strings;
    }
    for (Py_ssize_t i = 0; i < nin && i < MOST; i++) {
        Py_XDECREF(given[i]);
        stk_tensor_release(dense[i]);
    }
    PyMem_Free(r.sorted);
    return result;
}
