/* Running a row of the table on its tensors: at once, or noted in the function that is being traced. */
#include "front.h"

#include <string.h>

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

/* Moved strings still point into the memory of the inputs, which may be gone before the result: they get their own. */
static int own_strings(int32_t nout, stk_tensor **out, Py_ssize_t nin, stk_tensor *const *in)
{
    stk_error err;
    for (int32_t o = 0; o < nout; o++) {
        if (out[o]->dtype != STK_STRING) continue;
        bool view = false;
        for (Py_ssize_t i = 0; i < nin; i++) view |= in[i]->buffer == out[o]->buffer;
        stk_tensor *own = NULL;
        if (view) continue;
        if (stk_tensor_cast(out[o], STK_STRING, &own, &err) != STK_OK) {
            py_raise(&err, NULL);
            return -1;
        }
        stk_tensor_release(out[o]);
        out[o] = own;
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
    bool fine = nout == 0 || out[0]->dtype != STK_STRING || !own_strings(nout, out, nin, t);
    if (fine && row->result == '1' && row->op >= 0 && !((py_tensor *)in[0])->borrowed)
        return py_tensor_take(out[0]); /* the common case */
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
    PyObject *told = py_recorders ? py_recorder_take() : NULL;
    PyObject *result = run(row, nin, in, &attrs);
    if (told) {
        py_recorder_give(told);
        result = py_tell_row(row, nin, in, &attrs, result);
    }
    return result_check && result ? check_result(row, result) : result;
}
