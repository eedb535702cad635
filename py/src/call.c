/* Calling an operation: arguments by the row's specification, then eager or recorded.
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

/* ---- running ----------------------------------------------------------------------------------------- */

static PyObject *wrap_results(const py_row *row, int32_t n, PyObject *const *out)
{
    if (row->result == '1') return n == 1 ? Py_NewRef(out[0]) : NULL;
    PyObject *r = row->result == 'L' ? PyList_New(n) : PyTuple_New(n);
    for (int32_t i = 0; r && i < n; i++) {
        if (row->result == 'L')
            PyList_SET_ITEM(r, i, Py_NewRef(out[i]));
        else
            PyTuple_SET_ITEM(r, i, Py_NewRef(out[i]));
    }
    return r;
}

/* A builder of ours as the engine calls it: the row stands in the first integer of the key. */
static int32_t build_keyed(stk_graph *g, const stk_val *x, const stk_attrs *key, stk_val *y)
{
    const py_row *row = (const py_row *)(uintptr_t)key->ints[0];
    py_build b = {.g = g, .x = x, .ints = key->ints + 1, .reals = key->reals};
    int32_t n = row->build(&b);
    memcpy(y, b.y, (size_t)n * sizeof *y);
    return n;
}

/* "[2,3]" of a tensor's description. */
static const char *sizes_of(PyObject *o, char *text, size_t room)
{
    char *at = text, *end = text + room;
    py_tensor *t = (py_tensor *)o;
    at += PyOS_snprintf(at, room, "[");
    for (int32_t i = 0; i < py_tensor_rank(t) && at < end; i++)
        at += PyOS_snprintf(at, (size_t)(end - at), "%s%lld", i ? "," : "",
                            (long long)py_tensor_dim(t, i));
    if (at < end) PyOS_snprintf(at, (size_t)(end - at), "]");
    return text;
}

/* Shapes that do not fit, in the words that programs and tests look for; else the engine's own. */
static PyObject *show_failure(const py_row *row, const stk_error *err, Py_ssize_t nin,
                              PyObject *const *in)
{
    char a[200], b[200];
    if (err->code == STK_ERR_UNSUPPORTED && py_devices_on && py_is_strict())
        return py_raise_placement(row->tf, py_device_now(), err->message);
    const char *place = err->code == STK_ERR_RANGE ? strstr(err->message, ": indices") : NULL;
    if (place) return py_raise_code(err->code, row->tf, "%s", place + 2); /* TensorFlow's words */
    if (err->code != STK_ERR_SHAPE && err->code != STK_ERR_ARGUMENT) return py_raise(err, row->tf);
    if (nin == 2 && row->op >= 0 && err->code == STK_ERR_SHAPE)
        return py_raise_code(err->code, row->tf, "Incompatible shapes: %s vs. %s",
                             sizes_of(in[0], a, sizeof a), sizes_of(in[1], b, sizeof b));
    if (!strcmp(row->name, "matmul"))
        return py_raise_code(err->code, row->tf, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                             sizes_of(in[0], a, sizeof a), sizes_of(in[1], b, sizeof b));
    if (!strcmp(row->name, "reshape") && ((py_tensor *)in[0])->t)
        return py_raise_code(err->code, row->tf,
                             "Input to reshape is a tensor with %lld values, but the requested "
                             "shape does not hold as many: %s",
                             (long long)stk_tensor_count(((py_tensor *)in[0])->t), err->message);
    if (!strcmp(row->name, "concat"))
        return py_raise_code(err->code, row->tf, "ConcatOp : Dimensions of inputs should match: %s",
                             err->message);
    return py_raise(err, row->tf);
}

/* Work below this is done before another thread could make use of the lock. */
enum { WORTH_UNLOCKING = 40000 };

static bool is_long(const py_row *row, Py_ssize_t nin, stk_tensor *const *in)
{
    int64_t work = 0;
    for (Py_ssize_t i = 0; i < nin; i++) work += stk_tensor_count(in[i]);
    if (row->op == STK_OP_MATMUL && nin == 2 && in[1]->rank)
        return work * in[1]->shape[in[1]->rank - 1] > 50 * WORTH_UNLOCKING;
    return work > WORTH_UNLOCKING;
}

static stk_status run_now(stk_eager *e, const py_row *row, Py_ssize_t nin, stk_tensor *const *in,
                          const stk_attrs *attrs, int32_t *nout, stk_tensor **out)
{
    *nout = 1;
    if (row->op >= 0)
        return stk_eager_apply(e, (stk_op)row->op, (int32_t)nin, in, attrs->nints ? attrs : NULL,
                               out);
    int64_t ints[PY_MOST_INTS + 1];
    ints[0] = (int64_t)(uintptr_t)row;
    memcpy(ints + 1, attrs->ints, (size_t)attrs->nints * sizeof *ints);
    stk_attrs key = {
        .ints = ints, .nints = attrs->nints + 1, .reals = attrs->reals, .nreals = attrs->nreals};
    return stk_eager_built(e, build_keyed, &key, (int32_t)nin, in, nout, out);
}

/* A result that is a view of a variable's memory gets its own, before the variable changes. */
static int keep_own(stk_tensor *out, Py_ssize_t nin, PyObject *const *in)
{
    stk_error err;
    for (Py_ssize_t i = 0; i < nin; i++) {
        py_tensor *o = (py_tensor *)in[i];
        if (!o->borrowed || o->t->buffer != out->buffer) continue;
        if (stk_tensor_detach(out, &err) == STK_OK) return 0;
        py_raise(&err, NULL);
        return -1;
    }
    return 0;
}

static PyObject *run_eager(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                           const stk_attrs *attrs)
{
    enum { MOST = 64 };
    stk_tensor *t[MOST], *out[PY_MOST_OUTPUTS] = {0};
    PyObject *objects[PY_MOST_OUTPUTS] = {0}, *result = NULL;
    int32_t nout = 0;
    stk_eager *e = py_eager();
    if (!e) return NULL;
    if (nin > MOST)
        return py_raise_code(STK_ERR_RANGE, row->tf, "%zd inputs; %d are possible", nin, MOST);
    for (Py_ssize_t i = 0; i < nin; i++) t[i] = ((py_tensor *)in[i])->t;
    stk_status status;
    if (py_devices_on && py_eager_place(e, nin, t)) return NULL;
    py_booking booking = py_book_begin();
    if (py_devices_on) py_run_begin(row->tf);
    if (is_long(row, nin, t)) {
        Py_BEGIN_ALLOW_THREADS status = run_now(e, row, nin, t, attrs, &nout, out);
        Py_END_ALLOW_THREADS
    } else {
        status = run_now(e, row, nin, t, attrs, &nout, out);
    }
    if (py_devices_on) py_run_end();
    if (status != STK_OK && py_takes_strings(row, nin, in))
        return py_run_strings(row, nin, in, attrs);
    py_book_end(booking, PY_BOOK_EAGER);
    if (status != STK_OK) return show_failure(row, stk_eager_error(e), nin, in);
    if (row->result == '1' && row->op >= 0 && !((py_tensor *)in[0])->borrowed)
        return py_tensor_take(out[0]); /* the common case */
    bool fine = true;
    for (int32_t o = 0; o < nout; o++) {
        if (keep_own(out[o], nin, in)) fine = false;
        objects[o] = py_tensor_take(out[o]);
        fine = fine && objects[o];
    }
    if (fine) result = wrap_results(row, nout, objects);
    for (int32_t o = 0; o < nout; o++) Py_XDECREF(objects[o]);
    return result;
}

static PyObject *record(py_trace *trace, const py_row *row, Py_ssize_t nin, PyObject *const *in,
                        const stk_attrs *attrs)
{
    PyObject *objects[PY_MOST_OUTPUTS] = {0}, *result = NULL;
    stk_val few[16], *x = nin > 16 ? PyMem_Malloc((size_t)nin * sizeof *x) : few;
    int32_t n = 1;
    py_build b = {.g = py_trace_graph(trace), .x = x, .ints = attrs->ints, .reals = attrs->reals};
    bool fine = x != NULL;
    for (Py_ssize_t i = 0; fine && i < nin; i++)
        fine = (x[i] = py_trace_value(trace, (py_tensor *)in[i])) != 0;
    if (fine && row->op >= 0)
        b.y[0] = stk_g_apply(b.g, (stk_op)row->op, (int32_t)nin, x, attrs->nints ? attrs : NULL);
    else if (fine)
        n = row->build(&b);
    stk_error err;
    if (fine && stk_graph_status(b.g, &err) != STK_OK) {
        stk_graph_forgive(b.g);
        show_failure(row, &err, nin, in);
        fine = false;
    }
    for (int32_t o = 0; fine && o < n; o++)
        fine = (objects[o] = py_tensor_symbolic(trace, b.y[o])) != NULL;
    if (fine) result = wrap_results(row, n, objects);
    for (int32_t o = 0; o < n; o++) Py_XDECREF(objects[o]);
    if (x != few) PyMem_Free(x);
    return result;
}

/* What the engine computes with a silent 0, TensorFlow refuses on the processor. Programs and other devices keep the 0. */
static int check_operand(const py_row *row, const stk_tensor *t, bool power)
{
    if (!strchr("IU", py_dtype_kind(t->dtype)) || stk_tensor_device(t)) return 0;
    for (int64_t i = 0, n = stk_tensor_count(t); i < n; i++) {
        int64_t v = (int64_t)stk_tensor_at(t, i);
        if (power ? v >= 0 : v != 0) continue;
        py_raise_code(STK_ERR_ARGUMENT, row->tf,
                      power ? "Integers to negative integer powers are not allowed"
                            : "Integer division by zero");
        return -1;
    }
    return 0;
}

int32_t py_build_pow(py_build *b);

static int check_values(const py_row *row, PyObject *const *in)
{
    bool divides = row->op == STK_OP_FLOORDIV || row->op == STK_OP_MOD;
    if (divides || row->build == py_build_pow)
        return check_operand(row, ((py_tensor *)in[1])->t, !divides);
    return 0;
}

static PyObject *run(const py_row *row, Py_ssize_t nin, PyObject *const *in, const stk_attrs *attrs)
{
    if (row->result == 'L' && py_needs_pieces(row, in, attrs)) return py_run_pieces(row, in, attrs);
    py_trace *trace = py_trace_current();
    bool symbolic = trace && row->random;
    for (Py_ssize_t i = 0; i < nin && !symbolic; i++) {
        py_tensor *o = (py_tensor *)in[i];
        symbolic = !o->t || (trace && py_trace_forces(trace, o));
    }
    if (!symbolic) return check_values(row, in) ? NULL : run_eager(row, nin, in, attrs);
    if (!trace) {
        PyErr_Format(PyExc_TypeError,
                     "<tf.Tensor> is out of scope and cannot be used here. It was made inside a "
                     "function that is traced; return it from there, or keep it in a tf.Variable "
                     "[Op:%s]",
                     row->tf);
        return NULL;
    }
    return py_has_strings(nin, in) ? py_refuse_strings() : record(trace, row, nin, in, attrs);
}

/* As strchr(), which costs more than it finds in a list of three letters. */
static inline bool takes_kind(const char *kinds, char kind)
{
    for (; *kinds; kinds++)
        if (*kinds == kind) return true;
    return false;
}

static int check_kinds(const py_row *row, Py_ssize_t nin, PyObject *const *in)
{
    for (Py_ssize_t i = 0; row->kinds && i < nin; i++) {
        stk_dtype d = py_tensor_dtype((py_tensor *)in[i]);
        if (takes_kind(row->kinds, py_dtype_kind(d))) continue;
        if (d == STK_STRING && py_takes_strings(row, nin, in)) continue;
        bool floats = !strcmp(row->kinds, "F");
        py_raise_code(STK_ERR_DTYPE, row->tf,
                      "Value for attr 'T' of %s is not in the list of allowed values: %s",
                      py_dtype_tf_name(d),
                      floats ? "bfloat16, half, float, double, complex64, complex128"
                      : strchr(row->kinds, 'F') ? "bfloat16, half, float, double, uint8, int8, "
                                                  "uint16, int16, int32, uint32, int64, uint64"
                      : strchr(row->kinds, 'I') ? "int8, int16, int32, int64, uint8, uint16, "
                                                  "uint32, uint64"
                                                : "bool");
        return -1;
    }
    return 0;
}

/* Called with the op's name and what it made, for as long as tf.debugging.enable_check_numerics() holds; else NULL. */
static PyObject *result_check;

PyObject *py_check_results(PyObject *module, PyObject *check)
{
    (void)module;
    Py_XSETREF(result_check, check == Py_None ? NULL : Py_NewRef(check));
    Py_RETURN_NONE;
}

static PyObject *check_result(const py_row *row, PyObject *result)
{
    PyObject *check = Py_NewRef(result_check);
    PyObject *said = PyObject_CallFunction(check, "sO", row->tf, result);
    Py_DECREF(check);
    if (!said) Py_CLEAR(result);
    Py_XDECREF(said);
    return result;
}

PyObject *py_run_row(const py_row *row, Py_ssize_t nin, PyObject *const *in, int32_t nints,
                     const int64_t *ints, int32_t nreals, const double *reals)
{
    if (check_kinds(row, nin, in)) return NULL;
    stk_attrs attrs = {.ints = ints, .nints = nints, .reals = reals, .nreals = nreals};
    PyObject *result = run(row, nin, in, &attrs);
    return result_check && result ? check_result(row, result) : result;
}

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
