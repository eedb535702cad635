/* unstack and split with more results than one operation has: the tensor is cut into a few pieces, and each of them again. */
#include "front.h"

#include <string.h>

typedef struct cut { /* into n parts along an axis */
    int64_t n, axis;
    const int64_t *sizes; /* NULL: each is one row, and loses the axis */
} cut;

static bool read_cut(const py_row *row, const py_tensor *x, const stk_attrs *attrs, cut *out)
{
    const int64_t *ints = attrs->ints;
    if (!strcmp(row->name, "split_sizes")) {
        *out = (cut){.n = ints[0], .axis = ints[ints[0] + 1], .sizes = ints + 1};
        return true;
    }
    if (strcmp(row->name, "unstack") != 0) return false;
    int64_t axis = ints[2], rank = py_tensor_rank(x);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false; /* refused by the builder */
    *out = (cut){.n = py_tensor_dim(x, (int32_t)axis), .axis = axis};
    return !ints[0] || ints[1] == out->n;
}

bool py_needs_pieces(const py_row *row, PyObject *const *in, const stk_attrs *attrs)
{
    cut c = {0};
    return read_cut(row, (py_tensor *)in[0], attrs, &c) && c.n > PY_MOST_OUTPUTS;
}

static int64_t extent(const cut *c, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (int64_t i = from; i < to; i++) sum += c->sizes ? c->sizes[i] : 1;
    return sum;
}

/* Parts from .. to of the cut, out of the piece that holds them. */
static PyObject *cut_piece(const py_row *row, PyObject *piece, const cut *c, int64_t from,
                           int64_t to)
{
    int64_t ints[PY_MOST_INTS], n = 0;
    if (c->sizes) {
        ints[n++] = to - from;
        for (int64_t i = from; i < to; i++) ints[n++] = c->sizes[i];
    } else {
        ints[n++] = 1, ints[n++] = to - from;
    }
    ints[n++] = c->axis;
    return py_run_row(row, 1, &piece, (int32_t)n, ints, 0, NULL);
}

PyObject *py_run_pieces(const py_row *row, PyObject *const *in, const stk_attrs *attrs)
{
    cut c = {0};
    read_cut(row, (py_tensor *)in[0], attrs, &c);
    int64_t each = (c.n + PY_MOST_OUTPUTS - 1) / PY_MOST_OUTPUTS, ints[PY_MOST_OUTPUTS + 2];
    int64_t pieces = (c.n + each - 1) / each;
    ints[0] = pieces;
    ints[pieces + 1] = c.axis;
    for (int64_t i = 0; i < pieces; i++) {
        int64_t end = (i + 1) * each < c.n ? (i + 1) * each : c.n;
        ints[i + 1] = extent(&c, i * each, end);
    }
    PyObject *cuts =
        py_run_row(py_row_find("split_sizes"), 1, in, (int32_t)pieces + 2, ints, 0, NULL);
    PyObject *all = cuts ? PyList_New(0) : NULL;
    for (int64_t i = 0; all && i < pieces; i++) {
        int64_t end = (i + 1) * each < c.n ? (i + 1) * each : c.n;
        PyObject *parts = cut_piece(row, PyList_GET_ITEM(cuts, i), &c, i * each, end);
        PyObject *more = parts ? PySequence_InPlaceConcat(all, parts) : NULL;
        if (!more) Py_CLEAR(all);
        Py_XDECREF(more);
        Py_XDECREF(parts);
    }
    Py_XDECREF(cuts);
    return all;
}
