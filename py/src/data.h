/* data.h - what the files of tf.data share: pipelines, functions over elements, iterators.
 *
 *     pipeline.c    Pipeline: a handle on a stk_dataset with a method per transform      data_sources.c  where elements come from
 *     map_fn.c      MapFn: a recorded function, replayed by workers without the lock     map_plan.c  its recordings
 *     host_fn.c     HostFn: work on strings
 *     callbacks.c   generators and functions that give datasets: Python under the lock   iterator.c  walks
 *     data_error.c  exceptions of Python code on their way through the library
 *
 * Workers call in here without the interpreter lock. Whoever waits for a worker must not hold it. */
#ifndef STOKER_PY_DATA_H
#define STOKER_PY_DATA_H

#include "front.h"

/* ---- data_error.c: an exception travels as a number inside of the message -------------------------------------- */
/* With the lock: puts the current exception away and names it in err. kind: 'g' a generator, 'f' a function. */
stk_status py_data_keep_error(char kind, stk_error *err);
/* With the lock: raises what err stands for. Returns NULL. */
void *py_data_raise(const stk_error *err, const char *op);
bool py_data_interrupted(
    void *context); /* asked every 50 ms while an element takes longer: Ctrl-C */
/* True once the interpreter is on its way out: nobody takes the lock any more. */
bool py_data_is_over(void);
/* The lock, for threads of the library. False: there is no interpreter any more; err says so. */
bool py_data_lock(PyGILState_STATE *state, stk_error *err);

/* ---- pipeline.c ------------------------------------------------------------------------------------------------- */
typedef struct py_pipeline {
    PyObject_HEAD stk_dataset *ds;
} py_pipeline;
extern PyTypeObject *py_pipeline_type;
PyObject *py_pipeline_take(stk_dataset *ds, const stk_error *err); /* NULL ds: raises err */
/* [(dtype, shape or None, is a dataset)] and a structure such as "(0,(1,2))" or None as a schema; NULL: exception. */
stk_schema *py_schema_from(PyObject *fields, PyObject *structure);
/* Borrowed handles of a list of eager tensors (or anything that becomes one): n in *count; free with py_tensors_free. */
stk_tensor **py_tensors_from(PyObject *list, int32_t *count);
void py_tensors_free(stk_tensor **tensors, int32_t count);
PyObject *py_tensors_list(stk_tensor **tensors, int32_t count); /* takes over the handles */
extern PyMethodDef py_source_methods[];

/* ---- map_fn.c ------------------------------------------------------------------------------------------------------ */
extern PyTypeObject *py_map_fn_type;
/* A stk_map_fn that holds a reference of the object; output may be NULL. */
int py_map_fn_fill(PyObject *fn, const stk_schema *output, stk_map_fn *out);

/* ---- host_fn.c ------------------------------------------------------------------------------------------------------- */
typedef struct py_host_fn {
    PyObject_HEAD vectorcallfunc call;
    stk_map_fn fn;
    int32_t nin, nout;
    PyObject *name;
} py_host_fn;
extern PyTypeObject *py_host_fn_type;
/* Takes over fn, also when it fails. */
PyObject *py_host_fn_new(const char *name, int32_t nin, int32_t nout, const stk_map_fn *fn);
/* Hands on what a host function made: into the batch where there is room for it, else as it is. Takes over `made`. */
stk_status py_host_results(int32_t n, stk_tensor *const *made, stk_tensor **out, stk_error *err);
extern PyMethodDef py_host_fn_makers[], py_example_makers[], py_message_functions[],
    py_table_makers[];
int py_init_record_writer(PyObject *module);

/* ---- callbacks.c ------------------------------------------------------------------------------------------------------- */
int py_generator_fill(PyObject *open, const stk_schema *output, int64_t cardinality,
                      stk_generator *out);
int py_flat_fn_fill(PyObject *callable, const stk_schema *output, stk_flat_fn *out);
/* parts: [(size, drop_remainder)] of the windows of an element. */
int py_batches_fn_fill(PyObject *parts, const stk_schema *output, stk_flat_fn *out);
int py_group_fn_fill(PyObject *callable, const stk_schema *output, stk_group_fn *out);

/* ---- over.c ------------------------------------------------------------------------------------------------------------ */
stk_dataset *py_epochs_dataset(PyObject *epochs); /* borrowed; NULL: exception */

#endif
