/* Calling an operation: arguments by the row's specification; run_row.c runs it.
 *
 * A specification names the arguments in order, each with a kind and perhaps a default:
 *
 *     "x:t axis:A keepdims:b=0 padding:s(VALID|SAME)=0 name:n"
 *
 *     t  tensor; all t of a row are of one dtype       u  tensor of any dtype          v  list of tensors of one dtype
 *     T, U  the same, or None                          i  integer   f  float   b  bool   d  dtype
 *     I  integer or None: a flag, then the number      A  axes: None, a number, a list   L  list of numbers (a shape)
 *     s(a|b)  one of these words, as its number        n  a name or anything else that does not matter
 *     "op=" in place of kinds: see py_row
 *
 * Integers, flags and numbers of words go to the ints of the call, in order; A and L as their count (-1: None) and
 * then the numbers; floats to the reals; for T and U a flag that tells whether the tensor is there. */
#include "front.h"

#include <string.h>

typedef struct argument {
    PyObject *name; /* interned */
    char kind;
    bool has_default, is_none; /* the default may be None */
    double value;
    char words[96]; /* kind s: "VALID|SAME" */
} argument;

typedef struct py_op {
    PyObject_HEAD vectorcallfunc call;
    const py_row *row;
    int n, ntensors;
    argument arg[PY_MOST_ARGUMENTS];
    PyObject *dict;
} py_op;

static PyTypeObject *op_type;
static PyObject *all_ops; /* name -> op */

typedef struct op_call {
    const py_row *row;
    PyObject **in; /* tensors, owned */
    Py_ssize_t nin, room;
    PyObject *few[8];
    int32_t nints, nreals;
    int64_t ints[PY_MOST_INTS];
    double reals[PY_MOST_REALS];
} op_call;

/* ---- arguments ------------------------------------------------------------------------------------------- */

static int add_tensor(op_call *c, PyObject *t) /* takes over the reference */
{
    if (!t) return -1;
    if (c->nin == c->room) {
        Py_ssize_t room = 2 * c->room;
        PyObject **more = PyMem_Malloc((size_t)room * sizeof *more);
        if (!more) {
            Py_DECREF(t);
            PyErr_NoMemory();
            return -1;
        }
        memcpy(more, c->in, (size_t)c->nin * sizeof *more);
        if (c->in != c->few) PyMem_Free(c->in);
        c->in = more;
        c->room = room;
    }
    c->in[c->nin++] = t;
    return 0;
}

static int add_int(op_call *c, int64_t v)
{
    if (c->nints == PY_MOST_INTS) {
        PyErr_Format(PyExc_ValueError, "%s: too many numbers", c->row->name);
        return -1;
    }
    c->ints[c->nints++] = v;
    return 0;
}

static int mismatch(const op_call *c, Py_ssize_t position, stk_dtype want, stk_dtype got)
{
    py_raise_code(
        STK_ERR_DTYPE, c->row->tf,
        "cannot compute %s as input #%zd(zero-based) was expected to be a %s tensor but is "
        "a %s tensor",
        c->row->tf, position, py_dtype_tf_name(want), py_dtype_tf_name(got));
    return -1;
}

/* One tensor of the common dtype, which the first one that has a dtype of its own decides. */
static int add_common(op_call *c, PyObject *o, int *common)
{
    PyObject *t = py_to_tensor(o, -1, *common);
    if (!t) return -1;
    stk_dtype got = py_tensor_dtype((py_tensor *)t);
    if (*common < 0) *common = (int)got;
    if (got != (stk_dtype)*common) {
        Py_DECREF(t);
        return mismatch(c, c->nin, (stk_dtype)*common, got);
    }
    return add_tensor(c, t);
}

static int own_dtype(PyObject *o)
{
    if (!o) return -1;
    if (py_is_tensor(o)) return (int)py_tensor_dtype((py_tensor *)o);
    if (py_is_variable(o)) return (int)py_variable_memory((py_variable *)o)->dtype;
    return -1;
}

static int common_dtype(const py_op *op, PyObject *const *slot)
{
    int found = -1;
    for (int i = 0; i < op->n && found < 0; i++) {
        if (op->arg[i].kind == 't' || op->arg[i].kind == 'T') found = own_dtype(slot[i]);
        if (op->arg[i].kind != 'v' || !slot[i] ||
            !(PyList_Check(slot[i]) || PyTuple_Check(slot[i])))
            continue;
        for (Py_ssize_t k = 0; found < 0 && k < PySequence_Fast_GET_SIZE(slot[i]); k++)
            found = own_dtype(PySequence_Fast_GET_ITEM(slot[i], k));
    }
    return found;
}

static int add_values(op_call *c, PyObject *o, int *common)
{
    PyObject *list = PySequence_Fast(o, "needs a list of tensors");
    int status = list ? 0 : -1;
    Py_ssize_t n = list ? PySequence_Fast_GET_SIZE(list) : 0;
    if (list && add_int(c, n)) status = -1;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++)
        status = add_common(c, PySequence_Fast_GET_ITEM(list, i), common);
    Py_XDECREF(list);
    return status;
}

static int add_list(op_call *c, const argument *a, PyObject *o)
{
    if (o == Py_None) return add_int(c, -1);
    int room = PY_MOST_INTS - c->nints - 1;
    int n = py_ints_from(o, PyUnicode_AsUTF8(a->name), room, c->ints + c->nints + 1);
    if (n < 0) return -1;
    c->ints[c->nints] = n;
    c->nints += n + 1;
    return 0;
}

static int add_word(op_call *c, const argument *a, PyObject *o)
{
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
    size_t size = text ? strlen(text) : 0;
    int64_t number = 0;
    for (const char *w = a->words; text; number++) {
        const char *end = strchr(w, '|');
        size_t n = end ? (size_t)(end - w) : strlen(w);
        bool same = n == size;
        for (size_t i = 0; same && i < n; i++)
            same = Py_TOLOWER((unsigned char)w[i]) == Py_TOLOWER((unsigned char)text[i]);
        if (same) return add_int(c, number);
        if (!end) break;
        w = end + 1;
    }
    PyErr_Format(PyExc_ValueError, "%s: %U is %R; it must be one of %s", c->row->name, a->name, o,
                 a->words);
    return -1;
}

static int64_t integer_of(const op_call *c, const argument *a, PyObject *o)
{
    PyObject *number = PyNumber_Index(o);
    if (!number && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    if (!number) {
        PyErr_Format(PyExc_TypeError, "%s: %U must be an integer, got %R", c->row->name, a->name,
                     o);
        return -1;
    }
    int64_t v = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return v;
}

static int add_default(op_call *c, const argument *a)
{
    switch (a->kind) {
    case 'T':
    case 'U': return add_int(c, 0);
    case 'n': return 0;
    case 'A':
    case 'L': return add_int(c, -1);
    case 'I':
        return a->is_none ? (add_int(c, 0) || add_int(c, 0))
                          : (add_int(c, 1) || add_int(c, (int64_t)a->value));
    case 'f': return c->nreals < PY_MOST_REALS ? (c->reals[c->nreals++] = a->value, 0) : -1;
    default: return add_int(c, (int64_t)a->value);
    }
}

static int add_argument(op_call *c, const argument *a, PyObject *o, int *common)
{
    double real;
    int64_t number;
    stk_dtype dtype;
    int yes;
    bool none = o == Py_None && (a->has_default || strchr("TU", a->kind));
    if (!o || (none && !strchr("AL", a->kind))) return add_default(c, a);
    switch (a->kind) {
    case 'T':
        if (add_int(c, 1)) return -1; /* fall through */
    case 't': return add_common(c, o, common);
    case 'U':
        if (add_int(c, 1)) return -1; /* fall through */
    case 'u': return add_tensor(c, py_to_tensor(o, -1, -1));
    case 'v': return add_values(c, o, common);
    case 'I':
        if (add_int(c, 1)) return -1; /* fall through */
    case 'i':
        number = integer_of(c, a, o);
        return number == -1 && PyErr_Occurred() ? -1 : add_int(c, number);
    case 'b': return (yes = PyObject_IsTrue(o)) < 0 ? -1 : add_int(c, yes);
    case 'd': return py_dtype_parse(o, &dtype) ? -1 : add_int(c, (int64_t)dtype);
    case 'f':
        real = PyFloat_AsDouble(o);
        if (real == -1 && PyErr_Occurred()) return -1;
        c->reals[c->nreals++] = real;
        return 0;
    case 'A':
    case 'L': return add_list(c, a, o);
    case 's': return add_word(c, a, o);
    default: return 0;
    }
}

static int place_keyword(const py_op *op, PyObject *name, PyObject *value, PyObject **slot)
{
    int i = 0;
    while (i < op->n && op->arg[i].name != name) i++;
    for (int k = 0; i == op->n && k < op->n; k++)
        if (!PyUnicode_Compare(op->arg[k].name, name)) i = k;
    if (i == op->n) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", op->row->name,
                     name);
        return -1;
    }
    if (slot[i]) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", op->row->name,
                     name);
        return -1;
    }
    slot[i] = value;
    return 0;
}

/* An operand that is no tensor may know what the operation means for it (ragged tensors do): its __stoker_op__ is asked,
 * with the operation's name and all arguments by name. Only after the operation failed, so tensors pay nothing. */
static PyObject *ask_operand(py_op *op, PyObject *const *slot)
{
    PyObject *asked = NULL, *type, *value, *traceback, *result = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    for (int i = 0; i < op->n && !asked; i++)
        if (slot[i] && !py_is_tensor(slot[i]) &&
            !(asked = PyObject_GetAttrString(slot[i], "__stoker_op__")))
            PyErr_Clear();
    PyObject *all = asked ? PyDict_New() : NULL;
    bool fine = all != NULL;
    for (int i = 0; i < op->n && fine; i++)
        if (slot[i]) fine = PyDict_SetItem(all, op->arg[i].name, slot[i]) == 0;
    if (fine)
        result = PyObject_CallFunction(asked, "sOO", op->row->name,
                                       op->row->op >= 0 ? Py_True : Py_False, all);
    if (asked)
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
    else
        PyErr_Restore(type, value, traceback);
    Py_XDECREF(asked);
    Py_XDECREF(all);
    return result;
}

static PyObject *op_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    py_op *op = (py_op *)self;
    PyObject *slot[PY_MOST_ARGUMENTS] = {0};
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (n > op->n)
        return PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments (%zd given)",
                            op->row->name, op->n, n);
    for (Py_ssize_t i = 0; i < n; i++) slot[i] = args[i];
    for (Py_ssize_t i = 0; i < nkw; i++)
        if (place_keyword(op, PyTuple_GET_ITEM(kwnames, i), args[n + i], slot)) return NULL;
    op_call c;
    c.row = op->row;
    c.in = c.few;
    c.nin = 0;
    c.room = sizeof c.few / sizeof *c.few;
    c.nints = c.nreals = 0;
    int common = common_dtype(op, slot);
    PyObject *result = NULL;
    bool fine = true;
    for (int i = 0; i < op->n && fine; i++) {
        const argument *a = &op->arg[i];
        if (!slot[i] && !a->has_default && !strchr("TUnAL", a->kind)) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%U'", op->row->name,
                         a->name);
            fine = false;
        } else {
            fine = add_argument(&c, a, slot[i], &common) == 0;
        }
    }
    if (fine) result = py_run_row(op->row, c.nin, c.in, c.nints, c.ints, c.nreals, c.reals);
    for (Py_ssize_t i = 0; i < c.nin; i++) Py_DECREF(c.in[i]);
    if (c.in != c.few) PyMem_Free(c.in);
    return result || fine ? result : ask_operand(op, slot);
}

/* ---- the table -------------------------------------------------------------------------------------------- */

#define PY_EW(name, tf, op, kinds, spec)                                                           \
    static const py_row row_##name = {#name, tf, spec, kinds, STK_OP_##op, NULL, '1', false};
#define PY_OP(name, tf, kinds, result, spec)                                                       \
    py_builder py_build_##name;                                                                    \
    static const py_row row_##name = {#name, tf, spec, kinds, -1, py_build_##name, result, false};
#define PY_RANDOM(name, tf, kinds, result, spec)                                                   \
    py_builder py_build_##name;                                                                    \
    static const py_row row_##name = {#name, tf, spec, kinds, -1, py_build_##name, result, true};
#include "ops.def"

static const py_row *const rows[] = {
#define PY_EW(name, tf, op, kinds, spec)         &row_##name,
#define PY_OP(name, tf, kinds, result, spec)     &row_##name,
#define PY_RANDOM(name, tf, kinds, result, spec) &row_##name,
#include "ops.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

const py_row *py_row_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name)) return rows[i];
    return NULL;
}

PyObject *py_call_row(const char *name, PyObject *const *args, size_t n)
{
    PyObject *op = PyDict_GetItemString(all_ops, name);
    return op ? op_vectorcall(op, args, n, NULL)
              : PyErr_Format(PyExc_SystemError, "there is no operation '%s'", name);
}

static int read_argument(argument *a, const char *text, size_t n)
{
    char copy[160], *colon, *equal;
    if (n >= sizeof copy) return -1;
    memcpy(copy, text, n);
    copy[n] = 0;
    if (!(colon = strchr(copy, ':'))) return -1;
    *colon = 0;
    a->name = PyUnicode_InternFromString(copy);
    a->kind = colon[1];
    char *words = strchr(colon + 1, '('), *end = words ? strchr(words, ')') : NULL;
    if (end) {
        *end = 0;
        snprintf(a->words, sizeof a->words, "%s", words + 1);
    }
    equal = strchr(end ? end + 1 : colon + 1, '=');
    a->has_default = equal != NULL;
    a->is_none = equal && !strcmp(equal + 1, "None");
    a->value = equal && !a->is_none ? PyOS_string_to_double(equal + 1, NULL, NULL) : 0;
    return a->name ? 0 : -1;
}

PyObject *py_op_new(const py_row *row)
{
    py_op *op = PyObject_New(py_op, op_type);
    if (!op) return NULL;
    memset(&op->call, 0, sizeof *op - offsetof(py_op, call));
    op->call = op_vectorcall;
    op->row = row;
    for (const char *at = row->spec; *at;) {
        size_t n = strcspn(at, " ");
        if (op->n == PY_MOST_ARGUMENTS || read_argument(&op->arg[op->n++], at, n)) {
            PyErr_Format(PyExc_SystemError, "row '%s': specification '%s'", row->name, row->spec);
            Py_DECREF(op);
            return NULL;
        }
        at += n;
        while (*at == ' ') at++;
    }
    return (PyObject *)op;
}

static void op_dealloc(PyObject *self)
{
    py_op *op = (py_op *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < op->n; i++) Py_XDECREF(op->arg[i].name);
    Py_XDECREF(op->dict);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *op_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<function %s>", ((py_op *)self)->row->name);
}
static PyObject *op_name(PyObject *self, void *c)
{
    (void)c;
    return PyUnicode_FromString(((py_op *)self)->row->name);
}
static PyObject *op_spec(PyObject *self, void *c)
{
    (void)c;
    return PyUnicode_FromString(((py_op *)self)->row->spec);
}
/* (name, kind, default or Ellipsis) of each argument: what stoker.tf makes signatures of. */
static PyObject *op_arguments(PyObject *self, void *c)
{
    (void)c;
    py_op *op = (py_op *)self;
    PyObject *list = PyList_New(op->n);
    for (int i = 0; list && i < op->n; i++) {
        argument *a = &op->arg[i];
        bool optional = a->is_none || strchr("TUnAL", a->kind);
        PyObject *value = optional         ? Py_NewRef(Py_None)
                          : a->has_default ? PyFloat_FromDouble(a->value)
                                           : Py_NewRef(Py_Ellipsis);
        PyList_SET_ITEM(list, i, Py_BuildValue("(OCN)", a->name, a->kind, value));
    }
    return list;
}

int py_init_call(PyObject *module)
{
    static PyGetSetDef getters[] = {{"__name__", op_name, NULL, NULL, NULL},
                                    {"__qualname__", op_name, NULL, NULL, NULL},
                                    {"spec", op_spec, NULL, NULL, NULL},
                                    {"arguments", op_arguments, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(py_op, call), READONLY, NULL},
        {"__dictoffset__", T_PYSSIZET, offsetof(py_op, dict), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, op_dealloc},     {Py_tp_repr, op_repr},
                                  {Py_tp_call, PyVectorcall_Call}, {Py_tp_getset, getters},
                                  {Py_tp_members, members},        {0, NULL}};
    static PyType_Spec spec = {
        "stoker._stoker.Op", sizeof(py_op), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    op_type = py_add_type(module, &spec, NULL, "Op");
    all_ops = op_type ? PyDict_New() : NULL;
    for (int i = 0; all_ops && i < ROWS; i++) {
        PyObject *op = py_op_new(rows[i]);
        if (!op || PyDict_SetItemString(all_ops, rows[i]->name, op)) return -1;
        Py_DECREF(op);
    }
    return all_ops ? PyModule_AddObjectRef(module, "ops", all_ops) : -1;
}
