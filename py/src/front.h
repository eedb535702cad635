/* front.h - what the files of the extension share.
 *
 *     convert*.c  Python values -> tensors            numpy.c     tensors -> Python values
 *     dtype.c, shape.c, tensor.c, variable.c          the objects
 *     call.c      arguments of an operation, then eager or recorded
 *     ops.def     one row per operation; its builder stands in build_*.c
 *     operators.c, index.c                            a + b, a[..]
 *     trace.c, program.c, tape.c, control.c           recording, compiled functions, gradients, control flow
 *
 * Rules: the interpreter lock is held everywhere except between py_unlock and py_lock. Functions that return PyObject *
 * give a new reference or NULL with an exception set, as in CPython itself. */
#ifndef STOKER_PY_FRONT_H
#define STOKER_PY_FRONT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

#include "stoker/stoker.h"
#include "stoker/tracing.h"

/* ---- errors.c ------------------------------------------------------------------------------------ */
/* Sets the exception of tf.errors that fits; op (may be NULL) is TensorFlow's name of the operation. Returns NULL. */
void *py_raise(const stk_error *err, const char *op);
void *py_raise_code(stk_status code, const char *op, const char *format, ...);

/* ---- dtype.c --------------------------------------------------------------------------------------- */
extern PyTypeObject *py_dtype_type;
typedef struct py_dtype {
    PyObject_HEAD stk_dtype dtype; /* STK_DTYPE_COUNT and above: types that only have a name */
    const char *name;
    vectorcallfunc call;
} py_dtype;
PyObject *py_dtype_object(stk_dtype dtype); /* borrowed */
/* DType, "float32", np.float32, np.dtype, float, int, bool, str; -1 with an exception when it is none. */
int py_dtype_parse(PyObject *o, stk_dtype *out);
const char *py_dtype_tf_name(stk_dtype dtype); /* "float", as TensorFlow's messages have it */
char py_dtype_kind(stk_dtype dtype);           /* F I U B S */
PyObject *py_dtype_numpy(stk_dtype dtype);     /* numpy's type object; borrowed */

/* ---- shape.c ----------------------------------------------------------------------------------------- */
extern PyTypeObject *py_shape_type;
PyObject *py_shape_new(int32_t rank, const int64_t *dim); /* rank < 0: unknown; dim < 0: unknown */
/* Sizes from a shape, list, tuple, integer, or eager tensor of integers. Returns their number or -1; unknown ones are -1. */
int py_ints_from(PyObject *o, const char *what, int most, int64_t *out);

/* ---- trace.c ---------------------------------------------------------------------------------------------- */
typedef struct py_trace py_trace;
typedef struct py_variable py_variable;
py_trace *py_trace_current(void); /* of this thread; NULL: eager */
/* In a recording: NULL, with the exception that lets the function run eagerly for this reason. */
void *py_refuse(const char *reason);
stk_graph *py_trace_graph(py_trace *trace);

/* ---- tensor.c ------------------------------------------------------------------------------------------------ */
typedef struct py_tensor {
    PyObject_HEAD stk_tensor *t; /* eager; NULL when symbolic */
    py_trace *trace;             /* symbolic: where it is recorded, as which value */
    stk_val v;
    bool borrowed;   /* shows the memory of a variable */
    PyObject *shape; /* made when first asked for */
    PyObject *dict, *weak;
} py_tensor;
extern PyTypeObject *py_tensor_type, *py_eager_type, *py_symbolic_type;

static inline bool py_is_tensor(PyObject *o)
{
    return Py_TYPE(o) == py_eager_type || Py_TYPE(o) == py_symbolic_type ||
           PyType_IsSubtype(Py_TYPE(o), py_tensor_type);
}
PyObject *py_tensor_take(stk_tensor *t); /* takes over the handle, also when it fails */
PyObject *py_tensor_symbolic(py_trace *trace, stk_val v);
stk_dtype py_tensor_dtype(const py_tensor *t);
int32_t py_tensor_rank(const py_tensor *t);
int64_t py_tensor_dim(const py_tensor *t, int32_t axis);
PyObject *py_tensor_shape(py_tensor *t); /* new reference */
int py_init_tensor(PyObject *module);

/* ---- convert.c, numpy.c ------------------------------------------------------------------------------------- */
/* Anything -> a tensor (new reference). dtype: what it must become, or -1; preferred: what it becomes if it can, or -1. */
PyObject *py_to_tensor(PyObject *o, int dtype, int preferred);
/* The eager handle of anything (new handle); symbolic values are refused. */
stk_tensor *py_to_eager(PyObject *o, int dtype, const char *what);
/* A handle on the memory of an array, without a copy when it is dense and fits; NULL without exception: it does not. */
stk_tensor *py_wrap_buffer(PyObject *o);
PyObject *py_to_numpy(py_tensor *t); /* a copy: ndarray, numpy scalar, or bytes */
PyObject *py_item(const stk_tensor *t, int64_t index);
PyObject *py_numpy(void); /* the module; borrowed */

/* ---- variable.c ------------------------------------------------------------------------------------------------- */
extern PyTypeObject *py_variable_type;
static inline bool py_is_variable(PyObject *o)
{
    return Py_TYPE(o) == py_variable_type || PyType_IsSubtype(Py_TYPE(o), py_variable_type);
}
PyObject *py_variable_read(py_variable *v); /* current value: eager, or symbolic in a trace */
stk_tensor *py_variable_memory(py_variable *v);
int py_variable_before_write(py_variable *v); /* others keep the values they have seen */
PyObject *py_variable_name(py_variable *v);   /* borrowed */
bool py_variable_trainable(py_variable *v);
PyObject *py_variables_made(PyObject *module, PyObject *unused); /* (all, while recording) */
int py_init_variable(PyObject *module);

/* ---- trace.c again ----------------------------------------------------------------------------------------- */
/* The tensor as a value of the trace: itself, a constant, or a captured value of an outer trace. 0: exception. */
stk_val py_trace_value(py_trace *trace, py_tensor *t);
bool py_trace_forces(py_trace *trace, py_tensor *t); /* an eager tensor that is watched there */
int py_trace_watch(py_trace *trace, py_tensor *t, stk_val *v);
PyObject *py_trace_read_variable(py_trace *trace, py_variable *v);
int py_trace_assign_variable(py_trace *trace, py_variable *v, PyObject *value);
int py_trace_check(py_trace *trace,
                   const char *op); /* raises the graph's mistake, if there is one */
int py_init_trace(PyObject *module);

/* ---- devices.c ------------------------------------------------------------------------------------------- */
extern bool py_devices_on; /* something may be elsewhere than in the host's memory */
stk_device *py_device_open(const char *name); /* borrowed */
stk_device *py_cpu(void);
stk_device *py_device_now(void); /* where a program that is made now runs; borrowed */
bool py_device_is_host(stk_device *d);
int py_eager_place(stk_eager *e, Py_ssize_t nin, stk_tensor *const *in); /* before an eager call */
void py_eager_listen(stk_eager *e);
void py_run_begin(const char *tf); /* names what runs on this thread, for messages */
void py_run_end(void);
const char *py_running(const char *op);
void py_log_placement(const char *op, stk_device *ran);
bool py_logs_placement(void);
bool py_is_scoped(void); /* inside of tf.device */
bool py_is_strict(void); /* a device was asked for by name, and no other will do */
void py_tell_lacking(const char *op, stk_device *d, const char *why);
/* The device lacks the operation, and soft placement is off. */
void *py_raise_placement(const char *op, stk_device *d, const char *why);
void py_device_text(stk_device *d, char *text, size_t size); /* NULL: the processor */
PyObject *py_device_of(const stk_tensor *t);
stk_tensor *py_on_host(stk_tensor *t); /* a handle on the host, the same one when it is there */
PyObject *py_settle(PyObject *tensor);
void py_devices_in_child(void);
int py_init_devices(PyObject *module);

/* ---- tape.c ---------------------------------------------------------------------------------------------------- */
bool py_tapes_active(void);
void py_tape_saw_variable(py_variable *v, py_tensor *value);
int py_tapes_keep(PyObject *o); /* as long as the tapes that record now */
int py_init_tape(PyObject *module);

/* ---- books.c: where a Python program's time goes, for profile and doctor -------------------------------------------------- */
enum py_book {
    PY_BOOK_TRACE,
    PY_BOOK_COMPILE,
    PY_BOOK_PROGRAM,
    PY_BOOK_EPOCHS,
    PY_BOOK_INPUT,
    PY_BOOK_EAGER,
    PY_BOOK_READ,
    PY_BOOK_HOST,
    PY_BOOKS
};
typedef struct py_booking {
    int64_t begin, outer;
} py_booking;
extern bool py_books_on;
py_booking py_book_begin_slow(void);
void py_book_end_slow(py_booking b, enum py_book which);
static inline py_booking py_book_begin(void)
{
    return py_books_on ? py_book_begin_slow() : (py_booking){0, 0};
}
static inline void py_book_end(py_booking b, enum py_book which)
{
    if (b.begin) py_book_end_slow(b, which);
}

/* ---- call.c ------------------------------------------------------------------------------------------------------ */
enum { PY_MOST_ARGUMENTS = 24, PY_MOST_INTS = 192, PY_MOST_REALS = 16, PY_MOST_OUTPUTS = 16 };

/* What a builder sees. Attributes stand in the order of the row's arguments and are taken with py_int, py_list ... */
typedef struct py_build {
    stk_graph *g;
    const stk_val *x;
    const int64_t *ints;
    const double *reals;
    stk_val y[PY_MOST_OUTPUTS];
} py_build;
/* Returns the number of results. */
typedef int32_t py_builder(py_build *b);

typedef struct py_row {
    const char *name;  /* "reduce_sum" */
    const char *tf;    /* "Sum" */
    const char *spec;  /* "input_tensor:t axis:A keepdims:b=0 name:n", see call.c */
    const char *kinds; /* letters of dtype.def that the inputs may have; NULL: any */
    int op;            /* stk_op when that is all there is to it, else -1 */
    py_builder *build; /* else */
    char result;       /* '1' a tensor, 'L' a list, 'T' a tuple */
    bool random;       /* never run while recording */
} py_row;

PyObject *py_op_new(const py_row *row); /* the callable */
/* Runs a row on tensors that are converted already; gives the result. */
PyObject *py_check_results(PyObject *module, PyObject *check);
/* promote_with(function or None): who makes one type of two that differ in a + b. */
PyObject *py_promote_with(PyObject *module, PyObject *function);
PyObject *py_run_row(const py_row *row, Py_ssize_t nin, PyObject *const *in, int32_t nints,
                     const int64_t *ints, int32_t nreals, const double *reals);
/* pieces.c: are these more than PY_MOST_OUTPUTS results? Then they are made a few at a time. */
bool py_needs_pieces(const py_row *row, PyObject *const *in, const stk_attrs *attrs);
PyObject *py_run_pieces(const py_row *row, PyObject *const *in, const stk_attrs *attrs);
const py_row *py_row_find(const char *name);
PyObject *py_call_row(const char *name, PyObject *const *args, size_t n); /* by Python arguments */
int py_init_call(PyObject *module);
PyObject *py_einsum(PyObject *module, PyObject *args); /* (equation, tensors) */

/* ---- recorder.c: who is told of operations; what is told, by name ------------------------------------------------- */
extern int py_recorders; /* 0: nobody on any thread */
PyObject *py_recorder_take(
    void); /* of this thread; what is called until it is given back is not told */
void py_recorder_give(PyObject *recorder);
PyObject *py_tell(PyObject *result,
                  PyObject *what); /* takes over both; gives result, NULL after an exception */
PyObject *py_tell_row(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                      const stk_attrs *attrs, PyObject *result);
PyObject *py_set_recorder(PyObject *module, PyObject *next);
PyObject *py_tell_all(PyObject *module, PyObject *what);
PyObject *py_value_key(PyObject *module, PyObject *o);
PyObject *py_run_by_name(PyObject *module, PyObject *args);

/* ---- strings.c: operations that move or compare strings ------------------------------------------------------------ */
bool py_has_strings(Py_ssize_t nin, PyObject *const *in);
PyObject *py_refuse_strings(
    void); /* in a recording: NULL, with the exception that lets the function run eagerly */
bool py_takes_strings(const py_row *row, Py_ssize_t nin, PyObject *const *in);
PyObject *py_run_strings(const py_row *row, Py_ssize_t nin, PyObject *const *in,
                         const stk_attrs *attrs);

static inline int64_t py_int(py_build *b) { return *b->ints++; }
static inline double py_real(py_build *b) { return *b->reals++; }
/* A list of integers; *n is -1 for None. */
static inline const int64_t *py_list(py_build *b, int64_t *n)
{
    *n = *b->ints++;
    const int64_t *at = b->ints;
    if (*n > 0) b->ints += *n;
    return at;
}
/* An optional tensor: its value or 0. */
static inline stk_val py_maybe(py_build *b) { return *b->ints++ ? *b->x++ : 0; }

/* ---- operators.c, index.c ------------------------------------------------------------------------------------------- */
extern PyType_Slot py_operator_slots[];
PyObject *py_get_item(PyObject *self, PyObject *key);
PyObject *py_compare(PyObject *a, PyObject *b, int how);

/* ---- pipeline.c: datasets (the rest is in data.h) ------------------------------------------------------------------------ */
/* A handle (the caller's) on the pipeline of a tf.data.Dataset; NULL with an exception. */
stk_dataset *py_dataset_handle(PyObject *dataset);
int py_init_data_error(PyObject *module);
int py_init_pipeline(PyObject *module);
int py_init_map_fn(PyObject *module);
int py_init_host_fn(PyObject *module);
int py_init_iterator(PyObject *module);

/* ---- module.c ---------------------------------------------------------------------------------------------------------- */
stk_eager *py_eager(void); /* of this thread; NULL with an exception */
int py_init_dtype(PyObject *module);
int py_init_shape(PyObject *module);
int py_init_program(PyObject *module);
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases, const char *name);

#endif
