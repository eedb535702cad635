/* convert.h - what convert.c knows of nested lists, by convert_list.c.
 *
 *     py_nest n = {.rank = -1, ...};    nothing known yet, sizes -1; then, for [[1, 2.5], [3, 4]]:
 *     py_nest_look(o, 0, &n)            rank 2, shape 2 2, integers and floats
 *     py_nest_dtype(&n)                 float32
 *     py_nest_tensor(o, &n, dtype)      the tensor */
#ifndef STOKER_PY_CONVERT_H
#define STOKER_PY_CONVERT_H

#include "front.h"

typedef struct py_nest {
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    bool integers, floats, bools, strings, wide, foreign, unsigned64; /* what the leaves are */
    int first; /* dtype + 1 when the first leaf is a float of numpy's: that decides */
} py_nest;

static inline bool py_is_sequence(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

/* 0, or -1 with an exception when the sizes do not agree. */
int py_nest_look(PyObject *o, int32_t depth, py_nest *n);
void py_nest_leaf(PyObject *o, py_nest *n); /* the same of one value */
/* What TensorFlow makes of such leaves; -1: they do not go together. */
int py_nest_dtype(const py_nest *n);
/* The values; NULL with an exception when one does not fit the dtype. */
stk_tensor *py_nest_tensor(PyObject *o, const py_nest *n, int dtype);
stk_tensor *py_cannot_convert(PyObject *o, int dtype); /* NULL, with TensorFlow's TypeError */
/* A dense copy with that dtype (-1: its own); takes over the handle. */
stk_tensor *py_dense_copy(stk_tensor *t, int dtype);

#endif
