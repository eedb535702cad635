/* graph.h - build a computation, differentiate it, compile it into a program, run it.
 *
 *     stk_graph *g = NULL;
 *     stk_graph_new(&g, NULL);
 *     stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){32, 4});
 *     stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){4, 1});
 *     stk_val loss = stk_g_mean_all(g, stk_g_square(g, stk_g_matmul(g, x, w)));
 *     stk_val dw;
 *     stk_g_gradients(g, loss, 1, &w, &dw);
 *     stk_g_assign(g, w, stk_g_sub(g, w, stk_g_mul(g, dw, stk_g_scalar(g, STK_F32, 0.1))));
 *     stk_g_output(g, "loss", loss);
 *
 *     stk_program *p = NULL;
 *     stk_error err;
 *     if (stk_program_new(g, NULL, &p, &err) != STK_OK) puts(err.message);   // reports builder errors too
 *     // stk_program_feed(p, "x", tensor, &err); stk_program_run(p, 1, &err); stk_program_read(p, "loss", ...)
 *     stk_program_release(p);
 *     stk_graph_release(g);
 *
 * Builders return a value id. After the first mistake they return 0, pass 0 through, and the graph keeps
 * the message; stk_graph_status or stk_program_new reports it. So a model is written without a check per
 * line and nothing is lost. A graph belongs to one thread; a program may be moved between threads but is run by one
 * at a time. */
#ifndef STOKER_GRAPH_H
#define STOKER_GRAPH_H

#include "device.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_graph stk_graph;
typedef int32_t stk_val; /* a tensor in the graph; 0 = none */

typedef enum stk_op {
#define STK_OP(NAME, name, min_in, max_in, outputs, attributes, doc) STK_OP_##NAME,
#include "ops.def"
#define STK_EW(NAME, name, arity, result, doc) STK_OP_##NAME,
#include "elementwise.def"
    STK_OP_COUNT
} stk_op;

STK_API const char *stk_op_name(stk_op op);
STK_API bool stk_op_parse(const char *name, stk_op *out);

/* ---- graphs ---------------------------------------------------------------------------------- */
STK_API STK_MUST_USE stk_status stk_graph_new(stk_graph **out, stk_error *err);
STK_API void stk_graph_release(stk_graph *g);
STK_API stk_status stk_graph_status(const stk_graph *g, stk_error *err); /* first mistake, or OK */
STK_API stk_dtype stk_g_dtype(const stk_graph *g, stk_val v);
STK_API int32_t stk_g_rank(const stk_graph *g, stk_val v);
STK_API int64_t stk_g_dim(const stk_graph *g, stk_val v,
                          int32_t axis); /* negative counts from the end */
/* Text of the graph, one node a line. Free it with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_graph_dump(const stk_graph *g, char **out, stk_error *err);
STK_API void stk_text_free(char *text);

/* What the values `outputs` need, as a graph of its own whose outputs, in order, they are. Values at hand (and inputs) become
 * its inputs; inputs[0..*nin) tells which, in order. Effects and variables that they do not need stay behind. */
STK_API STK_MUST_USE stk_status stk_graph_part(const stk_graph *g, int32_t nhand,
                                               const stk_val *hand, int32_t nout,
                                               const stk_val *outputs, int32_t room,
                                               stk_val *inputs, int32_t *nin, stk_graph **out,
                                               stk_error *err);

/* ---- leaves, outputs, effects ------------------------------------------------------------------- */
STK_API stk_val stk_g_input(stk_graph *g, const char *name, stk_dtype dtype, int32_t rank,
                            const int64_t *shape);
STK_API stk_val stk_g_variable(stk_graph *g, const char *name, stk_dtype dtype, int32_t rank,
                               const int64_t *shape);
STK_API stk_val stk_g_const(stk_graph *g, stk_tensor *tensor); /* keeps a handle */
STK_API stk_val stk_g_scalar(stk_graph *g, stk_dtype dtype, double value);
STK_API stk_val stk_g_fill(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                           double value);
STK_API stk_val stk_g_zeros_like(stk_graph *g, stk_val x);
STK_API stk_val stk_g_step(stk_graph *g);
STK_API stk_val stk_g_iota(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                           int32_t axis);
STK_API void stk_g_output(stk_graph *g, const char *name, stk_val v);
STK_API stk_val stk_g_assign(stk_graph *g, stk_val variable, stk_val value);

/* For reports: nodes made from now on come from this place ("encoder/attention"; copied; NULL: not known). Returns the place
 * before, which stays valid as long as the graph. Layers do this by themselves, gradients stay with their layer. */
STK_API const char *stk_g_place(stk_graph *g, const char *place);
/* Adds nodes that compute d(sum of y)/d(x[i]) into dx[i] (0 where y does not depend on x[i]). The result is
 * ordinary graph, so it can be differentiated again. */
STK_API void stk_g_gradients(stk_graph *g, stk_val y, int32_t n, const stk_val *x, stk_val *dx);

/* ---- the general door (what a tracer uses); the named builders below are thin over it ---------------- */
typedef struct stk_attrs {
    const int64_t *ints; /* in the order that ops.def names them; lists are flattened */
    int32_t nints;
    const double *reals;
    int32_t nreals;
    stk_graph *const *subs; /* bodies of control flow; the graph copies them */
    int32_t nsubs;
} stk_attrs;
/* First output; further ones are the ids that follow it. */
STK_API stk_val stk_g_apply(stk_graph *g, stk_op op, int32_t nin, const stk_val *in,
                            const stk_attrs *attrs);

/* ---- elementwise, with numpy broadcasting; operands of one dtype: stk_g_exp(g, x), stk_g_add(g, a, b),
 *      stk_g_select(g, condition, a, b) ... one per row of elementwise.def ------------------------------ */
#define STK_EW_ARGS_1 stk_val x
#define STK_EW_ARGS_2 stk_val a, stk_val b
#define STK_EW_ARGS_3 stk_val a, stk_val b, stk_val c
#define STK_EW(NAME, name, arity, result, doc)                                                     \
    STK_API stk_val stk_g_##name(stk_graph *g, STK_EW_ARGS_##arity);
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#include "elementwise.def"
STK_API stk_val stk_g_cast(stk_graph *g, stk_val x, stk_dtype dtype);

/* ---- shape -------------------------------------------------------------------------------------------- */
STK_API stk_val stk_g_reshape(stk_graph *g, stk_val x, int32_t rank,
                              const int64_t *shape); /* one -1 */
/* x, without a gradient: what is in front of it is taken as given. */
STK_API stk_val stk_g_stop_gradient(stk_graph *g, stk_val x);
STK_API stk_val stk_g_transpose(stk_graph *g, stk_val x,
                                const int32_t *perm); /* NULL: reverse axes */
STK_API stk_val stk_g_broadcast(stk_graph *g, stk_val x, int32_t rank, const int64_t *shape);
STK_API stk_val stk_g_expand_dims(stk_graph *g, stk_val x, int32_t axis);
STK_API stk_val stk_g_squeeze(stk_graph *g, stk_val x, int32_t axis);
/* size[i] elements from start[i] in steps of step[i] (NULL: 1; negative: backwards). */
STK_API stk_val stk_g_slice(stk_graph *g, stk_val x, const int64_t *start, const int64_t *size,
                            const int64_t *step);
STK_API stk_val stk_g_slice_axis(stk_graph *g, stk_val x, int32_t axis, int64_t start,
                                 int64_t size);
STK_API stk_val stk_g_reverse(stk_graph *g, stk_val x, int32_t axis);
STK_API stk_val stk_g_pad(stk_graph *g, stk_val x, const int64_t *low, const int64_t *high,
                          double value);
STK_API stk_val stk_g_concat(stk_graph *g, int32_t n, const stk_val *x, int32_t axis);
STK_API stk_val stk_g_stack(stk_graph *g, int32_t n, const stk_val *x, int32_t axis);
STK_API void stk_g_split(stk_graph *g, stk_val x, int32_t axis, int32_t n, stk_val *parts);
STK_API stk_val stk_g_tile(stk_graph *g, stk_val x, const int64_t *times);
typedef enum stk_pad_mode {
    STK_PAD_REFLECT,   /* c b | a b c | b a */
    STK_PAD_SYMMETRIC, /* b a | a b c | c b */
    STK_PAD_EDGE,      /* a a | a b c | c c */
    STK_PAD_WRAP,      /* b c | a b c | a b */
} stk_pad_mode;
STK_API stk_val stk_g_pad_mode(stk_graph *g, stk_val x, const int64_t *low, const int64_t *high,
                               stk_pad_mode mode);
STK_API stk_val stk_g_roll(stk_graph *g, stk_val x, int64_t shift, int32_t axis);
STK_API stk_val stk_g_diag(stk_graph *g, stk_val x);      /* [.., n] -> [.., n, n] */
STK_API stk_val stk_g_diag_part(stk_graph *g, stk_val x); /* [.., m, n] -> [.., min(m, n)] */
/* The last two axes: what is on and below (above) the k-th diagonal stays, the rest becomes 0. */
STK_API stk_val stk_g_tril(stk_graph *g, stk_val x, int64_t k);
STK_API stk_val stk_g_triu(stk_graph *g, stk_val x, int64_t k);
STK_API stk_val stk_g_eye(stk_graph *g, stk_dtype dtype, int64_t rows, int64_t columns);

/* ---- reductions: axes as a list (negative counts from the end); n = 0 means all axes ----------------------- */
STK_API stk_val stk_g_sum(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
STK_API stk_val stk_g_mean(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
STK_API stk_val stk_g_reduce_prod(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                  bool keep);
STK_API stk_val stk_g_reduce_max(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                 bool keep);
STK_API stk_val stk_g_reduce_min(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                 bool keep);
STK_API stk_val stk_g_any(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
STK_API stk_val stk_g_all(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
STK_API stk_val stk_g_argmax(stk_graph *g, stk_val x, int32_t axis); /* int64 */
STK_API stk_val stk_g_argmin(stk_graph *g, stk_val x, int32_t axis);
STK_API stk_val stk_g_logsumexp(stk_graph *g, stk_val x, int32_t axis, bool keep);
STK_API stk_val stk_g_sum_all(stk_graph *g, stk_val x);
STK_API stk_val stk_g_mean_all(stk_graph *g, stk_val x);

/* ---- linear algebra ------------------------------------------------------------------------------------------ */
STK_API stk_val stk_g_matmul(stk_graph *g, stk_val a, stk_val b);
STK_API stk_val stk_g_matmul_t(stk_graph *g, stk_val a, stk_val b, bool ta, bool tb);
/* "ij,jk->ik": axes named alike are multiplied, those missing in the result summed. A letter twice in one term is a
 * diagonal, "..." stands for axes that broadcast, without "->" the letters that occur once are the result. */
STK_API stk_val stk_g_einsum(stk_graph *g, const char *equation, int32_t n, const stk_val *x);
STK_API stk_val stk_g_outer(stk_graph *g, stk_val a, stk_val b); /* two vectors */
STK_API stk_val stk_g_cross(stk_graph *g, stk_val a, stk_val b); /* along the last axis, of 3 */

/* ---- control flow ------------------------------------------------------------------------------------------------
 * Bodies are graphs whose inputs, in the order they were made, are the values passed in, and whose outputs, in order,
 * are the values that come out. They hold no variables: pass values in. They are copied; the caller releases its own.
 * The first output is returned, the others are the ids that follow. */
STK_API stk_val stk_g_cond(stk_graph *g, stk_val pred, const stk_graph *then_body,
                           const stk_graph *else_body, int32_t n, const stk_val *x);
/* x = ncarry carried values, then constants. cond: x -> one bool. body: x -> ncarry values. With max_trips > 0 the loop
 * stops there at the latest and has a gradient. */
STK_API stk_val stk_g_while(stk_graph *g, const stk_graph *cond, const stk_graph *body,
                            int32_t ncarry, int32_t n, const stk_val *x, int64_t max_trips);
typedef struct stk_scan_options {
    int64_t trips;    /* only without scanned inputs; else their first axis says it */
    bool reverse;     /* last slice first; results stay at their slice's place */
    bool no_gradient; /* do not keep the carried values for a gradient */
} stk_scan_options;
/* body: carry..., slice of xs..., consts... -> carry..., y... Outputs: last carry..., ys stacked on a first axis. */
STK_API stk_val stk_g_scan(stk_graph *g, const stk_graph *body, int32_t ncarry,
                           const stk_val *carry, int32_t nxs, const stk_val *xs, int32_t nconst,
                           const stk_val *consts, const stk_scan_options *options);

/* ---- functions of the caller ---------------------------------------------------------------------------------------
 * `run` is called once per run of the program, on the CPU, on the thread that runs it. Its arrays are dense; it fills every
 * element of `out` and keeps no pointer. What it cannot compute it makes NaN, or it ends the run with stk_host_fail. Two equal calls may be made
 * one, and one whose result nobody uses is left out. In profiles its time stands under "host:<name>". name is copied; context
 * must live as long as the programs. */
typedef struct stk_host {
    const char *name;
    stk_host_run *run;
    stk_host_run *gradient; /* in: the inputs, then the gradients of the results; out: those of the
                               float inputs. NULL: training through it is refused */
    void *context;
} stk_host;
typedef struct stk_host_result {
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
} stk_host_result;
/* Called inside of a host function: the run that it is part of goes to its end and then fails with this; so do the runs
 * that would follow. */
STK_API void stk_host_fail(stk_status code, const char *message);
/* First result; the others are the ids that follow. */
STK_API stk_val stk_g_host(stk_graph *g, const stk_host *host, int32_t n, const stk_val *x,
                           int32_t nout, const stk_host_result *results);

/* ---- indices -------------------------------------------------------------------------------------------------
 * Indices are int32 or int64 of any shape. One that is out of range ends the run of a gather on the CPU with
 * STK_ERR_RANGE, before anything behind it is computed; devices with a queue of their own compute with zeros there. A
 * scatter leaves the update out. Constant indices are checked when the graph is built, and negative ones among
 * them count from the end. */
/* [a, n, b] with indices I along axis 1 -> [a, I.., b]; axis 0 looks up embeddings. */
STK_API stk_val stk_g_gather(stk_graph *g, stk_val x, stk_val indices, int32_t axis);
/* The first `batch` axes are common to both: each row of x has its own indices. */
STK_API stk_val stk_g_gather_batch(stk_graph *g, stk_val x, stk_val indices, int32_t axis,
                                   int32_t batch);
/* The last axis of indices holds coordinates of the axes that follow the batch axes. */
STK_API stk_val stk_g_gather_nd(stk_graph *g, stk_val x, stk_val indices, int32_t batch);
/* base with updates (shaped as a gather would give them) added, or put, along an axis. Sums are made in the
 * order of the indices, for any number of threads; of several updates put in one place the last stays. */
STK_API stk_val stk_g_scatter_add(stk_graph *g, stk_val base, stk_val indices, stk_val updates,
                                  int32_t axis);
STK_API stk_val stk_g_scatter_set(stk_graph *g, stk_val base, stk_val indices, stk_val updates,
                                  int32_t axis);
STK_API stk_val stk_g_scatter_nd_add(stk_graph *g, stk_val base, stk_val indices, stk_val updates);
STK_API stk_val stk_g_scatter_nd_set(stk_graph *g, stk_val base, stk_val indices, stk_val updates);
STK_API stk_val stk_g_segment_sum(stk_graph *g, stk_val x, stk_val ids, int64_t segments);
/* One index for each element: y[i, j] = x[i, indices[i, j]] for axis 1; other axes broadcast. */
STK_API stk_val stk_g_take_along(stk_graph *g, stk_val x, stk_val indices, int32_t axis);
/* A new axis of `depth` (axis -1: the last): on at the index, off elsewhere. */
STK_API stk_val stk_g_one_hot(stk_graph *g, stk_val indices, int64_t depth, int32_t axis,
                              stk_dtype dtype, double on, double off);
/* Stable; NaN comes last in both directions. Places are int64. */
STK_API stk_val stk_g_sort(stk_graph *g, stk_val x, int32_t axis, bool descending);
STK_API stk_val stk_g_argsort(stk_graph *g, stk_val x, int32_t axis, bool descending);
/* The k largest in descending order; of equal ones the first. *indices (may be NULL) tells where they were. */
STK_API stk_val stk_g_top_k(stk_graph *g, stk_val x, int64_t k, int32_t axis, stk_val *indices);

/* ---- convolution and pooling ---------------------------------------------------------------------------------
 * Images are [batch, width, channels], [batch, height, width, channels] or [batch, depth, height, width, channels];
 * kernels are [sizes, in / groups, out]. Options may be NULL for the defaults; per-axis arrays hold the image's axes from
 * index 0 on. */
typedef enum stk_padding {
    STK_PADDING_VALID, /* none */
    STK_PADDING_SAME, /* ceil(size / stride) outputs; TensorFlow's rule, an odd pixel goes behind */
    STK_PADDING_CAUSAL,  /* one axis only: all in front, an output sees no later input */
    STK_PADDING_EXPLICIT /* low and high */
} stk_padding;

typedef struct stk_conv_options {
    stk_padding padding;
    int64_t stride[3], dilation[3];
    int64_t low[3], high[3];   /* STK_PADDING_EXPLICIT */
    int64_t output_padding[3]; /* conv_transpose: Keras' option; -1 = not given */
    int64_t groups;
} stk_conv_options;
STK_API stk_conv_options stk_conv_options_defaults(void); /* valid, strides 1, one group */

STK_API stk_val stk_g_conv(stk_graph *g, stk_val x, stk_val w, const stk_conv_options *options);
/* w is [sizes, out, in] as in Keras; the output size follows its rule (padding valid or same). */
STK_API stk_val stk_g_conv_transpose(stk_graph *g, stk_val x, stk_val w,
                                     const stk_conv_options *options);
/* w is [sizes, channels, multiplier]. */
STK_API stk_val stk_g_depthwise_conv(stk_graph *g, stk_val x, stk_val w,
                                     const stk_conv_options *options);
/* Depthwise with the options, then pointwise [1.., channels * multiplier, out]. */
STK_API stk_val stk_g_separable_conv(stk_graph *g, stk_val x, stk_val depthwise, stk_val pointwise,
                                     const stk_conv_options *options);

typedef struct stk_pool_options {
    /* valid, same or explicit; padding is no maximum and not counted in a mean */
    stk_padding padding;
    int64_t window[3], stride[3]; /* stride 0: the window */
    int64_t low[3], high[3];      /* STK_PADDING_EXPLICIT, smaller than the window */
} stk_pool_options;
STK_API stk_pool_options stk_pool_options_defaults(void); /* windows of 2, valid */

/* Taken before a relu or a bias that x comes from: the same numbers for less work. */
STK_API stk_val stk_g_max_pool(stk_graph *g, stk_val x, const stk_pool_options *options);
STK_API stk_val stk_g_avg_pool(stk_graph *g, stk_val x, const stk_pool_options *options);
/* Over all pixels: [batch, channels], or with sizes of 1 between when kept. */
STK_API stk_val stk_g_global_max_pool(stk_graph *g, stk_val x, bool keep);
STK_API stk_val stk_g_global_avg_pool(stk_graph *g, stk_val x, bool keep);

/* ---- variables ------------------------------------------------------------------------------------------------
 * A store holds the variables of one or several programs, by name. device NULL: cpu:0, one per process. */
typedef struct stk_store stk_store;
STK_API STK_MUST_USE stk_status stk_store_new(stk_device *device, stk_store **out, stk_error *err);
STK_API stk_store *stk_store_retain(stk_store *s);
STK_API void stk_store_release(stk_store *s);
STK_API int32_t stk_store_count(const stk_store *s);
STK_API const char *stk_store_name(const stk_store *s, int32_t index);
/* Creates the variable when it is new; shape and dtype must fit when it is not. Copies the tensor. */
STK_API STK_MUST_USE stk_status stk_store_set(stk_store *s, const char *name, const stk_tensor *t,
                                              stk_error *err);
STK_API STK_MUST_USE stk_status stk_store_get(stk_store *s, const char *name, stk_tensor **copy,
                                              stk_error *err);
/* Zeros into all variables whose names start with `prefix`; "" is all of them. */
STK_API STK_MUST_USE stk_status stk_store_clear(stk_store *s, const char *prefix, stk_error *err);

/* ---- programs ---------------------------------------------------------------------------------------------------- */
typedef struct stk_program stk_program;

typedef struct stk_program_options {
    stk_device *device; /* NULL: cpu:0, one per process */
    stk_store *store;   /* NULL: a new one */
    int32_t threads;    /* at most this many; 0 = all of the device */
    /* kernels by table instead of by timing: same bits on every machine of one ISA */
    bool deterministic;
    bool no_fuse; /* every node its own launch: for tests and for reading profiles */
    bool ref;     /* reference kernels only */
    /* "gemm:xsmm,conv:onednn": these implementations or none; NULL: as the environment's STOKER_KERNEL says */
    const char *kernels;
} stk_program_options;
STK_API stk_program_options stk_program_options_defaults(void);

/* Compiles a copy of g; g may be released afterwards. */
STK_API STK_MUST_USE stk_status stk_program_new(const stk_graph *g,
                                                const stk_program_options *options,
                                                stk_program **out, stk_error *err);
STK_API void stk_program_release(stk_program *p);
STK_API stk_store *stk_program_store(stk_program *p); /* borrowed */

/* Binds a tensor to an input until the next feed. A dense tensor of the right dtype is used in place (the
 * program keeps a handle); others are converted once, here. A device with memory of its own is sent a copy, while
 * the runs before may still be going on. */
STK_API STK_MUST_USE stk_status stk_program_feed(stk_program *p, const char *input, stk_tensor *t,
                                                 stk_error *err);
/* Runs the whole program `times` times. */
STK_API STK_MUST_USE stk_status stk_program_run(stk_program *p, int64_t times, stk_error *err);
/* A copy of an output of the last run. */
STK_API STK_MUST_USE stk_status stk_program_read(stk_program *p, const char *output,
                                                 stk_tensor **copy, stk_error *err);
STK_API void stk_program_set_step(stk_program *p, int64_t step);
STK_API int64_t stk_program_step(const stk_program *p);

typedef struct stk_program_stats {
    int32_t nodes, launches, regions; /* graph nodes; kernel launches; parallel regions */
    int64_t arena_bytes, constant_bytes, variable_bytes;
    double flops, bytes; /* of one run */
    double build_ms, election_ms;
} stk_program_stats;
STK_API void stk_program_describe(const stk_program *p, stk_program_stats *out);

/* An operation that the program's device does not take. It runs on the CPU all the same: its inputs come down from the
 * device and its results go up, in every run. */
typedef struct stk_island {
    const char *op;
    char name[96];                /* of the layer it belongs to; "" when not known */
    char shape[96];               /* of its first result: "float32[32,10]" */
    char reason[128];             /* why the device does not take it */
    int64_t bytes_down, bytes_up; /* of one run */
    int32_t number;               /* operations of one number go down and up together */
} stk_island;
/* How many there are, bodies of control flow included; the first `room` of them in out. None on cpu:0. */
STK_API int32_t stk_program_islands(const stk_program *p, int32_t room, stk_island *out);
STK_API stk_device *stk_program_device(const stk_program *p); /* borrowed */
/* A table of the launches: kernel, implementation, shape, threads. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_program_dump(const stk_program *p, char **out, stk_error *err);

/* ---- functions: one program per set of shapes ---------------------------------------------------------------------------
 * A function builds its graph anew for each new combination of input types and keeps the programs. All of them
 * share one store, so a model compiled for the last, smaller batch sees the same variables. */
typedef struct stk_function stk_function;
typedef void (*stk_function_build)(stk_graph *g, const stk_val *x, void *context);
STK_API STK_MUST_USE stk_status stk_function_new(int32_t nin, const char *const *names,
                                                 stk_function_build build, void *context,
                                                 const stk_program_options *options,
                                                 stk_function **out, stk_error *err);
STK_API void stk_function_release(stk_function *f);
/* The program for these inputs, already fed with them. It belongs to the function. */
STK_API STK_MUST_USE stk_status stk_function_call(stk_function *f, stk_tensor *const *x,
                                                  stk_program **program, stk_error *err);
STK_API stk_store *stk_function_store(stk_function *f);    /* borrowed */
STK_API int32_t stk_function_count(const stk_function *f); /* programs compiled so far */
/* Why the i-th program was made: "first call", or "input 'x' is float32[7,100], it was float32[32,100] before". */
STK_API const char *stk_function_reason(const stk_function *f, int32_t i);

#ifdef __cplusplus
}
#endif
#endif
