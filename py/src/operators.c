/* a + b, a < b, -a ...: TensorFlow's rules about which side decides the dtype. */
#include "front.h"

#include <string.h>

static const py_row *rows[24];
enum {
    ADD,
    SUB,
    MUL,
    TRUEDIV,
    FLOORDIV,
    MOD,
    POW,
    MATMUL,
    AND,
    OR,
    XOR,
    NEG,
    ABS,
    NOT,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    LOGICAL_NOT
};

static const py_row *row(int which)
{
    static const char *const names[] = {
        "add",     "subtract",      "multiply",    "truediv",    "floordiv",    "floormod",
        "pow",     "matmul",        "bitwise_and", "bitwise_or", "bitwise_xor", "negative",
        "abs",     "invert",        "equal",       "not_equal",  "less",        "less_equal",
        "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not"};
    if (!rows[which]) rows[which] = py_row_find(names[which]);
    return rows[which];
}

/* A foreign object that knows the operator too may have its turn when it cannot become a tensor. */
static bool may_answer(PyObject *o)
{
    return o != Py_None && Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_add &&
           !PyFloat_Check(o) && !PyLong_Check(o) && !PyObject_CheckBuffer(o) && !PyList_Check(o) &&
           !PyTuple_Check(o) && !PyUnicode_Check(o);
}

static PyObject *decline(PyObject *other)
{
    if (!may_answer(other) ||
        !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        return NULL;
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}

static PyObject *mismatch(const py_row *r, int position, stk_dtype want, stk_dtype got)
{
    return py_raise_code(
        STK_ERR_DTYPE, r->tf,
        "cannot compute %s as input #%d(zero-based) was expected to be a %s tensor "
        "but is a %s tensor",
        r->tf, position, py_dtype_tf_name(want), py_dtype_tf_name(got));
}

static PyObject *as_operand(PyObject *o)
{
    return py_is_variable(o) ? py_variable_read((py_variable *)o) : Py_NewRef(o);
}

/* Two plain matrices need no builder. */
static bool are_matrices(PyObject *a, PyObject *b)
{
    py_tensor *x = (py_tensor *)a, *y = (py_tensor *)b;
    return x->t && y->t && x->t->rank == 2 && y->t->rank == 2 && x->t->shape[1] == y->t->shape[0] &&
           py_dtype_kind(x->t->dtype) == 'F';
}

static PyObject *run_pair(const py_row *r, PyObject *a, PyObject *b)
{
    PyObject *in[2] = {a, b};
    stk_dtype da = py_tensor_dtype((py_tensor *)a), db = py_tensor_dtype((py_tensor *)b);
    if (da != db && r == row(TRUEDIV))
        return PyErr_Format(PyExc_TypeError,
                            "`x` and `y` must have the same dtype, got tf.%s != tf.%s.",
                            stk_dtype_name(da), stk_dtype_name(db));
    if (da != db) return mismatch(r, 1, da, db);
    if (r == row(MATMUL) && !py_recorders && are_matrices(a, b)) {
        static const int64_t flags[2];
        static const py_row plain = {
            .name = "matmul", .tf = "MatMul", .op = STK_OP_MATMUL, .result = '1'};
        return py_run_row(&plain, 2, in, 2, flags, 0, NULL);
    }
    if (r->build) {
        PyObject *args[2] = {a, b};
        return py_call_row(r->name, args, 2);
    }
    return py_run_row(r, 2, in, 0, NULL, 0, NULL);
}

/* Booleans take the logical row of the same sign. */
static const py_row *row_for(int which, PyObject *tensor)
{
    if (which < AND || which > XOR || py_tensor_dtype((py_tensor *)tensor) != STK_BOOL)
        return row(which);
    return row(LOGICAL_AND + which - AND);
}

/* Called with the name of the row and both operands where their types differ, for as long as NumPy's behaviour is on; else NULL. */
static PyObject *promoter;

PyObject *py_promote_with(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XSETREF(promoter, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

static bool same_types(PyObject *a, PyObject *b)
{
    return py_is_tensor(a) && py_is_tensor(b) &&
           py_tensor_dtype((py_tensor *)a) == py_tensor_dtype((py_tensor *)b);
}

static PyObject *promote(const char *name, PyObject *a, PyObject *b)
{
    PyObject *function = Py_NewRef(promoter);
    PyObject *result = PyObject_CallFunction(function, "sOO", name, a, b);
    Py_DECREF(function);
    return result;
}

static PyObject *binary(int which, PyObject *a, PyObject *b)
{
    if (promoter && !same_types(a, b)) return promote(row(which)->name, a, b);
    bool left = py_is_tensor(a) || py_is_variable(a), right = py_is_tensor(b) || py_is_variable(b);
    PyObject *x, *y, *result = NULL;
    if (left) { /* the other side becomes what we are if it can, and is refused if it cannot */
        if (!(x = as_operand(a))) return NULL;
        y = py_to_tensor(b, -1, (int)py_tensor_dtype((py_tensor *)x));
        if (!y) {
            Py_DECREF(x);
            return decline(b);
        }
    } else {
        if (!right || !(y = as_operand(b))) return NULL;
        x = py_to_tensor(a, (int)py_tensor_dtype((py_tensor *)y), -1);
        if (!x) {
            Py_DECREF(y);
            return decline(a);
        }
    }
    result = run_pair(row_for(which, x), x, y);
    Py_DECREF(x);
    Py_DECREF(y);
    return result;
}

#define BINARY(name, WHICH)                                                                        \
    static PyObject *name(PyObject *a, PyObject *b) { return binary(WHICH, a, b); }
BINARY(op_sub, SUB)
BINARY(op_mul, MUL)
BINARY(op_truediv, TRUEDIV)
BINARY(op_floordiv, FLOORDIV)
BINARY(op_mod, MOD)
BINARY(op_matmul, MATMUL)
BINARY(op_and, AND)
BINARY(op_or, OR)
BINARY(op_xor, XOR)

static PyObject *op_add(PyObject *a, PyObject *b)
{
    bool strings = (py_is_tensor(a) && py_tensor_dtype((py_tensor *)a) == STK_STRING) ||
                   (py_is_tensor(b) && py_tensor_dtype((py_tensor *)b) == STK_STRING);
    if (!strings) return binary(ADD, a, b);
    PyObject *module = PyImport_ImportModule("stoker.tf.strings");
    PyObject *r = module ? PyObject_CallMethod(module, "join", "((OO))", a, b) : NULL;
    Py_XDECREF(module);
    return r;
}

static PyObject *op_pow(PyObject *a, PyObject *b, PyObject *modulo)
{
    if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return binary(POW, a, b);
}

static PyObject *unary(int which, PyObject *a)
{
    PyObject *x = as_operand(a);
    if (!x) return NULL;
    const py_row *r = row(which);
    if (which == NOT && py_tensor_dtype((py_tensor *)x) == STK_BOOL) r = row(LOGICAL_NOT);
    PyObject *result = py_run_row(r, 1, &x, 0, NULL, 0, NULL);
    Py_DECREF(x);
    return result;
}
static PyObject *op_neg(PyObject *a) { return unary(NEG, a); }
static PyObject *op_abs(PyObject *a) { return unary(ABS, a); }
static PyObject *op_invert(PyObject *a) { return unary(NOT, a); }
static PyObject *op_pos(PyObject *a) { return as_operand(a); }

/* Do the shapes broadcast? Tensors that do not are simply not equal. */
static bool broadcasts(py_tensor *a, py_tensor *b)
{
    int32_t m = py_tensor_rank(a), n = py_tensor_rank(b);
    for (int32_t i = 1; i <= m && i <= n; i++) {
        int64_t x = py_tensor_dim(a, m - i), y = py_tensor_dim(b, n - i);
        if (x != y && x != 1 && y != 1) return false;
    }
    return true;
}

/* Strings are compared here: the engine computes with numbers. */
static PyObject *compare_strings(stk_tensor *a, stk_tensor *b, int how)
{
    bool first = stk_tensor_count(a) == 1, second = stk_tensor_count(b) == 1;
    stk_tensor *shape = first ? b : a, *out = NULL, *x = NULL, *y = NULL;
    stk_error err;
    int64_t n = stk_tensor_count(shape);
    if (stk_tensor_new(STK_BOOL, shape->rank, shape->shape, &out, &err) ||
        stk_tensor_dense(a, &x, &err) || stk_tensor_dense(b, &y, &err)) {
        stk_tensor_release(out);
        stk_tensor_release(x);
        return py_raise(&err, "Equal");
    }
    const stk_string *s = x->data, *t = y->data;
    for (int64_t i = 0; i < n; i++) {
        const stk_string *p = &s[first ? 0 : i], *q = &t[second ? 0 : i];
        bool same = p->size == q->size && !memcmp(p->data, q->data, (size_t)p->size);
        ((uint8_t *)out->data)[i] = same == (how == Py_EQ);
    }
    stk_tensor_release(x);
    stk_tensor_release(y);
    return py_tensor_take(out);
}

PyObject *py_compare(PyObject *a, PyObject *b, int how)
{
    static const int which[] = {
        [Py_LT] = LT, [Py_LE] = LE, [Py_EQ] = EQ, [Py_NE] = NE, [Py_GT] = GT, [Py_GE] = GE};
    bool equality = how == Py_EQ || how == Py_NE;
    if (equality && b == Py_None) return PyBool_FromLong(how == Py_NE);
    PyObject *x = as_operand(a), *y = NULL, *result = NULL;
    if (!x) return NULL;
    stk_dtype dtype = py_tensor_dtype((py_tensor *)x);
    y = equality ? py_to_tensor(b, py_is_tensor(b) || py_is_variable(b) ? -1 : (int)dtype, -1)
                 : py_to_tensor(b, -1, (int)dtype);
    if (!y) {
        Py_DECREF(x);
        if (equality && may_answer(b)) {
            PyErr_Clear();
            Py_RETURN_NOTIMPLEMENTED;
        }
        return decline(b);
    }
    py_tensor *p = (py_tensor *)x, *q = (py_tensor *)y;
    if (equality && !broadcasts(p, q))
        result = py_to_tensor(how == Py_NE ? Py_True : Py_False, STK_BOOL, -1);
    else if (equality && dtype == STK_STRING && p->t && q->t && q->t->dtype == STK_STRING &&
             (!p->t->rank || !q->t->rank))
        result = compare_strings(p->t, q->t, how);
    else if (promoter && !same_types(x, y))
        result = promote(row(which[how])->name, x, y);
    else
        result = run_pair(row(which[how]), x, y);
    Py_DECREF(x);
    Py_DECREF(y);
    return result;
}

PyType_Slot py_operator_slots[] = {{Py_nb_add, op_add},
                                   {Py_nb_subtract, op_sub},
                                   {Py_nb_multiply, op_mul},
                                   {Py_nb_true_divide, op_truediv},
                                   {Py_nb_floor_divide, op_floordiv},
                                   {Py_nb_remainder, op_mod},
                                   {Py_nb_power, op_pow},
                                   {Py_nb_matrix_multiply, op_matmul},
                                   {Py_nb_and, op_and},
                                   {Py_nb_or, op_or},
                                   {Py_nb_xor, op_xor},
                                   {Py_nb_negative, op_neg},
                                   {Py_nb_positive, op_pos},
                                   {Py_nb_absolute, op_abs},
                                   {Py_nb_invert, op_invert},
                                   {0, NULL}};
