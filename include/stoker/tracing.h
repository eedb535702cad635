/* tracing.h - what a front end needs that records graphs from another language and runs them.
 *
 *     stk_graph *g = NULL;
 *     stk_store *store = NULL;
 *     stk_program *p = NULL;
 *     stk_tensor *w = NULL, *x = NULL, *y = NULL;
 *     stk_error err;
 *     if (stk_graph_new(&g, &err) || stk_store_new(NULL, &store, &err)) return 1;
 *     if (stk_tensor_from(STK_F32, 1, (int64_t[]){2}, (float[]){1, 2}, &w, &err)) return 1;
 *     if (stk_tensor_from(STK_F32, 1, (int64_t[]){2}, (float[]){10, 20}, &x, &err)) return 1;
 *     if (stk_store_adopt(store, "w", w, &err)) return 1;              // w's memory is the variable
 *     stk_val in = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){2});
 *     stk_val v = stk_g_variable(g, "w", STK_F32, 1, (int64_t[]){2});
 *     stk_val sum = stk_g_add(g, in, v);
 *     stk_g_assign(g, v, sum);
 *     stk_g_output(g, "y", sum);
 *     stk_program_options options = stk_program_options_defaults();
 *     options.store = store;
 *     if (stk_program_new_caller(g, &options, &p, &err)) return 1;
 *     if (stk_program_call(p, 1, &x, 1, &y, &err)) return 1;           // y = {11, 22}, and so is w
 *     printf("%g %g\n", stk_tensor_at(y, 1), ((const float *)w->data)[1]);
 *     stk_tensor_release(y), stk_tensor_release(x), stk_tensor_release(w);
 *     stk_program_release(p);
 *     stk_store_release(store);
 *     stk_graph_release(g);
 *
 * The rules of graph.h and eager.h hold. */
#ifndef STOKER_TRACING_H
#define STOKER_TRACING_H

#include "data.h"
#include "eager.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recording --------------------------------------------------------------------------------- */
/* The id that the next value gets: two of these calls enclose what was recorded between them. */
STK_API stk_val stk_g_next(const stk_graph *g);
/* Forgets the mistake that stk_graph_status reports, for a recorder that has told its user about it. */
STK_API void stk_graph_forgive(stk_graph *g);

/* Gradients as a tape gives them. */
typedef struct stk_gradient_request {
    int32_t ny;
    const stk_val *y;
    const stk_val *dy; /* gradient that arrives at each y; NULL or 0: ones */
    int32_t nx;
    const stk_val *x;
    /* Pairs (first, end) of value ids, as stk_g_next gave them: only what was recorded in one of these spans is
     * differentiated, the rest is taken as given. None: everything. */
    int32_t nspans;
    const stk_val *spans;
} stk_gradient_request;
/* dx[i] is 0 where no y depends on x[i]. */
STK_API void stk_g_gradients_of(stk_graph *g, const stk_gradient_request *request, stk_val *dx);

/* ---- eager calls of several nodes ---------------------------------------------------------------------
 * build adds nodes for the inputs x and puts its results into y; what it builds depends on the types of x and on
 * `key` alone, so it is prepared once for each of them. Returns how many results there are (at most 16). */
typedef int32_t stk_keyed_build(stk_graph *g, const stk_val *x, const stk_attrs *key, stk_val *y);
STK_API stk_status stk_eager_built(stk_eager *e, stk_keyed_build *build, const stk_attrs *key,
                                   int32_t nin, stk_tensor *const *in, int32_t *nout,
                                   stk_tensor **out);

/* ---- eager calls on several devices --------------------------------------------------------------------
 * The calls that follow run on this device and leave their results there, wherever their inputs are; tapes go on. What the
 * device does not take runs on the CPU and stays there or, when strict, fails with STK_ERR_UNSUPPORTED. */
STK_API stk_status stk_eager_move(stk_eager *e, stk_device *device, bool strict);
/* Told of every operation that ran (moved contexts only): where, and once for each that the wanted device lacks, why. */
typedef void stk_eager_watcher(void *context, const char *op, stk_device *ran, const char *lacks);
STK_API void stk_eager_watch(stk_eager *e, stk_eager_watcher *watcher, void *context);

/* ---- tapes ----------------------------------------------------------------------------------------------
 * As stk_tape_gradient, for several y: dy (NULL, or NULL in places: ones) arrives at them. dx[i] is NULL, not zeros,
 * where no y depends on x[i]. */
STK_API stk_status stk_tape_gradients(stk_tape *tape, int32_t ny, stk_tensor *const *y,
                                      stk_tensor *const *dy, int32_t nx, stk_tensor *const *x,
                                      stk_tensor **dx);
/* A paused tape notes nothing; what it noted stays. Returns whether it was paused before. */
STK_API bool stk_tape_pause(stk_tape *tape, bool paused);
STK_API bool stk_tape_watches(const stk_tape *tape, const stk_tensor *t);
/* Notes that y was computed from x elsewhere. host->gradient is asked when a gradient goes through it; name and
 * context must live as long as the tapes. host->run is never called. */
STK_API stk_status stk_tape_note_host(stk_eager *e, const stk_host *host, int32_t nx,
                                      stk_tensor *const *x, int32_t ny, stk_tensor *const *y);

/* ---- variables in memory of the caller ----------------------------------------------------------------------
 * The variable `name` of the store is from now on the memory of t, which must be dense; the store keeps a handle. It
 * is memory that the store's device sees: of the host, or of the device itself (stk_tensor_to). */
STK_API STK_MUST_USE stk_status stk_store_adopt(stk_store *s, const char *name, stk_tensor *t,
                                                stk_error *err);
/* A handle on the memory of a variable: programs write into what it shows. Keeps the store alive. */
STK_API STK_MUST_USE stk_status stk_store_borrow(stk_store *s, const char *name, stk_tensor **view,
                                                 stk_error *err);
/* Memory that is written into while others look at it. An alias is a view of all of t. Detaching gives an alias memory of
 * its own with the same elements: all who hold that handle keep their values when the memory it showed is overwritten. */
STK_API STK_MUST_USE stk_status stk_tensor_alias(stk_tensor *t, stk_tensor **view, stk_error *err);
STK_API STK_MUST_USE stk_status stk_tensor_detach(stk_tensor *view, stk_error *err);

/* ---- programs called like functions -------------------------------------------------------------------------
 * Inputs and outputs are numbered in the order they were made in the graph. */
STK_API STK_MUST_USE stk_status stk_program_new_caller(const stk_graph *g,
                                                       const stk_program_options *options,
                                                       stk_program **out, stk_error *err);
STK_API int32_t stk_program_inputs(const stk_program *p);
STK_API int32_t stk_program_outputs(const stk_program *p);
/* Feeds, runs once, and hands out one new handle per output. An out[i] that is not NULL is written into instead; it must
 * be dense and of the output's type. p comes from stk_program_new_caller. */
STK_API STK_MUST_USE stk_status stk_program_call(stk_program *p, int32_t nin, stk_tensor *const *in,
                                                 int32_t nout, stk_tensor **out, stk_error *err);
/* From now on the handles that stk_program_call hands out show memory of the program's device, and it returns while the
 * device still works. Inputs that are on the device are taken where they are, always. */
STK_API void stk_program_results_stay(stk_program *p, bool stay);

/* Loops of programs that this thread runs ask about every 50 ms, between two trips; true ends the run with
 * STK_ERR_CANCELLED. What variables hold then is what the trips so far have written. NULL (the start): nobody is asked. */
STK_API void stk_loop_interrupt(bool (*ask)(void *context), void *context);

/* ---- programs over streams -------------------------------------------------------------------------------------
 * One run per element of a stream, until one of the reasons to stop: an epoch of a training whose step is a program.
 *
 *     stk_over o = {.stream = stream, .leaf = (int32_t[]){0, 1}, .seconds = 0.1};
 *     while (stk_program_over(p, &o, &err) == STK_OK && o.end == STK_OVER_TIME) draw(o.done);
 *     stk_over_clear(&o);
 *
 * Set everything that is not used to 0. Variables are written as in any run; nothing is read back from step to step. */
typedef enum stk_over_end {
    STK_OVER_DATA,  /* the stream has ended */
    STK_OVER_STEPS, /* so many steps were made */
    STK_OVER_TIME,  /* the time is up; call again to go on */
    STK_OVER_SHAPE, /* `part` holds an element of other types than the inputs have: run it with another program */
} stk_over_end;
typedef struct stk_over {
    stk_stream *stream;       /* borrowed */
    const int32_t *leaf;      /* input i is this part of the element, or, when negative, given[i] */
    stk_tensor *const *given; /* dense and of the input's type */
    int64_t steps;            /* at most, in all calls together; 0: as many as there are */
    double seconds;           /* of one call, looked at between steps; 0: no limit */
    /* results[o], where not NULL, is a dense tensor that takes the rows of output o of one step after another, from `row`
     * on; all such outputs have the same first size. */
    stk_tensor *const *results;
    int64_t row;
    /* out */
    stk_over_end end;
    int64_t done;      /* steps so far; row goes up with them */
    int32_t nparts;    /* of an element */
    stk_tensor **part; /* the element at hand that was not run yet; NULL: there is none */
    int32_t nlast;
    stk_tensor **last; /* results of the last step */
} stk_over;
/* p comes from stk_program_new_caller. After a failure the element at hand is gone; the rest stays as it is. */
STK_API STK_MUST_USE stk_status stk_program_over(stk_program *p, stk_over *o, stk_error *err);
/* The next element becomes the one at hand unless there is one already; *end: there is no more. */
STK_API STK_MUST_USE stk_status stk_over_peek(stk_over *o, bool *end, stk_error *err);
/* The element at hand counts as run. */
STK_API void stk_over_skip(stk_over *o);
STK_API void stk_over_clear(stk_over *o); /* releases part and last */

#ifdef __cplusplus
}
#endif
#endif
