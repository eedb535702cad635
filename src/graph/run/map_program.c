/* Map functions that are graphs: the adapter between programs and the input pipeline, which knows no graph.
 *
 * A program is run by one thread at a time, so calls borrow one from a list and make another when all are in use; each is a
 * stk_function and so holds a program per set of shapes. They run on one thread: the pipeline's workers are the
 * parallelism. */
#include "base/memory.h"
#include "stoker/map_program.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct runner {
    stk_function *function;
    struct runner *next;
} runner;

typedef struct map_program {
    stk_function_build build;
    void *context;
    void (*release)(void *);
    int32_t nin, nout;
    char **names; /* nin + nout */
    pthread_mutex_t lock;
    runner *idle;
} map_program;

static void drop(void *context)
{
    map_program *m = context;
    while (m->idle) {
        runner *r = m->idle;
        m->idle = r->next;
        stk_function_release(r->function);
        stk_free(r);
    }
    for (int32_t i = 0; m->names && i < m->nin + m->nout; i++) stk_free(m->names[i]);
    stk_free(m->names);
    if (m->release) m->release(m->context);
    pthread_mutex_destroy(&m->lock);
    stk_free(m);
}

static stk_status borrow(map_program *m, runner **out, stk_error *err)
{
    pthread_mutex_lock(&m->lock);
    runner *r = m->idle;
    if (r) m->idle = r->next;
    pthread_mutex_unlock(&m->lock);
    *out = r;
    if (r) return STK_OK;
    r = stk_calloc(1, sizeof *r);
    if (!r) return stk_fail_memory(err, "map_program", sizeof *r);
    stk_program_options o = stk_program_options_defaults();
    o.threads = 1;
    stk_status status = stk_device_open("cpu:0", 0, &o.device, err); /* wherever the model runs */
    if (status == STK_OK)
        status = stk_function_new(m->nin, (const char *const *)m->names, m->build, m->context, &o,
                                  &r->function, err);
    stk_device_release(o.device);
    if (status != STK_OK) {
        stk_free(r);
        return status;
    }
    *out = r;
    return STK_OK;
}

static void give_back(map_program *m, runner *r)
{
    pthread_mutex_lock(&m->lock);
    r->next = m->idle;
    m->idle = r;
    pthread_mutex_unlock(&m->lock);
}

/* The step of the program is the element's number, so that random operations are keyed by it. */
static stk_status call(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    map_program *m = context;
    runner *r = NULL;
    stk_program *p = NULL;
    if (info->inputs != m->nin)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "map_program: the elements have %d parts, the program %d inputs",
                        (int)info->inputs, (int)m->nin);
    STK_TRY(borrow(m, &r, err));
    stk_status status = stk_function_call(r->function, in, &p, err);
    if (status == STK_OK) {
        stk_program_set_step(p, (int64_t)(stk_seed_mix(info->seed, (uint64_t)info->index) >> 2));
        status = stk_program_run(p, 1, err);
    }
    for (int32_t i = 0; i < m->nout && status == STK_OK; i++) {
        stk_tensor *made = NULL;
        status = stk_program_read(p, m->names[m->nin + i], &made, err);
        if (status != STK_OK) break;
        if (out[i]) {
            status = stk_tensor_copy(out[i], made, err);
            stk_tensor_release(made);
        } else {
            out[i] = made;
        }
    }
    give_back(m, r);
    return status;
}

static stk_status copy_names(map_program *m, const char *const *in, const char *const *out,
                             stk_error *err)
{
    m->names = stk_calloc((size_t)(m->nin + m->nout) + 1, sizeof *m->names);
    if (!m->names) return stk_fail_memory(err, "map_program", 64);
    for (int32_t i = 0; i < m->nin + m->nout; i++) {
        m->names[i] = stk_strdup(i < m->nin ? in[i] : out[i - m->nin]);
        if (!m->names[i]) return stk_fail_memory(err, "map_program", 64);
    }
    return STK_OK;
}

stk_status stk_map_program(const char *name, int32_t nin, const char *const *inputs,
                           const char *const *outputs, const stk_schema *output,
                           stk_function_build build, void *context, void (*release)(void *context),
                           stk_map_fn *fn, stk_error *err)
{
    if (nin < 1 || !inputs || !outputs || !output || !build || !fn)
        return stk_fail(
            err, STK_ERR_ARGUMENT,
            "map_program: it takes named inputs and outputs, the schema of the outputs and a "
            "function that builds the graph");
    map_program *m = stk_calloc(1, sizeof *m);
    if (!m) return stk_fail_memory(err, "map_program", sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    *m = (map_program){.build = build, .nin = nin, .nout = output->n, .lock = m->lock};
    stk_status status = copy_names(m, inputs, outputs, err);
    if (status != STK_OK) {
        drop(m); /* the context stays the caller's */
        return status;
    }
    m->context = context;
    m->release = release;
    *fn = (stk_map_fn){.name = name ? name : "program",
                       .context = m,
                       .call = call,
                       .output = output,
                       .release = drop};
    return STK_OK;
}
