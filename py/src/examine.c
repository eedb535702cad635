/* The doctor of the C library on a recorded step: examine() makes a job of the programs that Python recorded and of the batches they
 * run over, lets it be examined and hands over the reports. Python is asked, under its lock, for programs of new shapes only. */
#include "data.h"
#include "trace.h"

#include <stoker/watch.h>

#include <string.h>

typedef struct asked { /* what Python said about one program */
    struct asked *next;
    PyObject *program;
    int32_t *leaf;
    stk_tensor **given;
} asked;

typedef struct exam {
    PyObject *program_for, *rebatch; /* borrowed */
    PyObject *kept;                  /* what must live as long as the examination */
    asked *programs;
} exam;

static asked *note_program(exam *e, PyObject *program, PyObject *leaf, PyObject *given)
{
    int32_t nin, nout;
    if (py_program_sizes(program, &nin, &nout) || py_program_before(program)) return NULL;
    asked *a = PyMem_Calloc(1, sizeof *a);
    if (!a) return (asked *)(void *)PyErr_NoMemory();
    a->next = e->programs;
    e->programs = a;
    a->program = program;
    a->leaf = PyMem_Calloc((size_t)nin + 1, sizeof *a->leaf);
    a->given = PyMem_Calloc((size_t)nin + 1, sizeof *a->given);
    if (!a->leaf || !a->given) return (asked *)(void *)PyErr_NoMemory();
    for (int32_t i = 0; i < nin; i++) {
        a->leaf[i] =
            i < PyList_GET_SIZE(leaf) ? (int32_t)PyLong_AsLong(PyList_GET_ITEM(leaf, i)) : -1;
        PyObject *o = i < PyList_GET_SIZE(given) ? PyList_GET_ITEM(given, i) : Py_None;
        if (o != Py_None && py_is_tensor(o)) a->given[i] = ((py_tensor *)o)->t;
    }
    return PyErr_Occurred() ? NULL : a;
}

/* program_for(parts, threads) -> (program, leaf, given); the lock is held. */
static asked *ask(exam *e, int32_t threads, int32_t n, stk_tensor *const *parts)
{
    PyObject *list = PyList_New(n), *program, *leaf, *given;
    for (int32_t i = 0; list && i < n; i++) {
        PyObject *o = py_tensor_take(stk_tensor_retain(parts[i]));
        if (!o) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, o);
    }
    PyObject *told = list ? PyObject_CallFunction(e->program_for, "Oi", list, (int)threads) : NULL;
    Py_XDECREF(list);
    asked *a = NULL;
    if (told &&
        PyArg_ParseTuple(told, "OO!O!", &program, &PyList_Type, &leaf, &PyList_Type, &given) &&
        !PyList_Append(e->kept, told))
        a = note_program(e, program, leaf, given);
    Py_XDECREF(told);
    return a;
}

static stk_status program_of(void *context, int32_t threads, int32_t n, stk_tensor *const *parts,
                             stk_over *into, stk_program **out, stk_error *err)
{
    PyGILState_STATE lock;
    if (!py_data_lock(&lock, err)) return err->code;
    stk_status status = STK_OK;
    asked *a = ask(context, threads, n, parts);
    if (a) {
        into->leaf = a->leaf;
        into->given = a->given;
        *out = py_program_handle(a->program);
    } else {
        status = py_data_keep_error('f', err);
    }
    PyGILState_Release(lock);
    return status;
}

static stk_dataset *rebatch(void *context, int64_t rows, stk_error *err)
{
    exam *e = context;
    PyGILState_STATE lock;
    if (!py_data_lock(&lock, err)) return NULL;
    stk_dataset *ds = NULL;
    PyObject *made = PyObject_CallFunction(e->rebatch, "L", (long long)rows);
    if (made && !PyList_Append(e->kept, made)) ds = py_epochs_dataset(made);
    if (ds)
        ds = stk_dataset_retain(ds);
    else
        py_data_keep_error('f', err);
    Py_XDECREF(made);
    PyGILState_Release(lock);
    return ds;
}

static PyObject *rendered(const stk_report *r)
{
    static const stk_report_kind kinds[] = {STK_REPORT_TEXT, STK_REPORT_JSON, STK_REPORT_HTML};
    PyObject *made = PyTuple_New(3);
    for (int i = 0; made && i < 3; i++) {
        char *text = NULL;
        stk_error err;
        if (stk_report_render(r, kinds[i], &text, NULL, &err) != STK_OK) {
            Py_CLEAR(made);
            return py_raise(&err, "examine");
        }
        PyObject *o = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        stk_text_free(text);
        if (!o) Py_CLEAR(made);
        if (made) PyTuple_SET_ITEM(made, i, o);
    }
    return made;
}

static void forget(exam *e)
{
    while (e->programs) {
        asked *a = e->programs;
        e->programs = a->next;
        PyMem_Free(a->leaf);
        PyMem_Free(a->given);
        PyMem_Free(a);
    }
    Py_XDECREF(e->kept);
}

/* examine(name, epochs, program_for, rebatch or None, rows, epoch steps, steps in all, seconds) -> (text, JSON, HTML). What the programs
 * write is for the caller to keep and to put back. */
PyObject *py_examine(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *epochs;
    exam e = {0};
    long long rows, steps, plan;
    double seconds;
    stk_error err;
    stk_status status;
    stk_report *report = NULL;
    stk_job job = {0};
    if (!PyArg_ParseTuple(args, "sOOOLLLd", &name, &epochs, &e.program_for, &e.rebatch, &rows,
                          &steps, &plan, &seconds))
        return NULL;
    stk_recorded_step step = {.name = name,
                              .dataset = py_epochs_dataset(epochs),
                              .epoch_steps = steps,
                              .plan_steps = plan,
                              .context = &e,
                              .program = program_of,
                              .rebatch = e.rebatch == Py_None ? NULL : rebatch,
                              .rows = rows,
                              .threads = true};
    stk_doctor_options options = stk_doctor_options_defaults();
    options.seconds = seconds;
    if (!step.dataset || !(e.kept = PyList_New(0))) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_recorded_job_new(&step, &job, &err);
    if (status == STK_OK) status = stk_doctor_run(&job, &options, &report, &err);
    stk_train_job_release(&job);
    Py_END_ALLOW_THREADS PyObject *made = NULL;
    if (status == STK_OK)
        made = rendered(report);
    else if (!py_raise_waiting())
        py_data_raise(&err, "examine");
    stk_report_release(report);
    forget(&e);
    return made;
}
