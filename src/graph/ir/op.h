/* op.h - what an operation is: one stk_opdef per op, written as one block in src/graph/ops/.
 *
 *     infer  shapes and dtypes of the outputs from those of the inputs
 *     grad   adds nodes that compute the gradients of the inputs
 *     lower  says how it runs: an alias of an input, or a kernel id with its problem struct
 *     cost   arithmetic of one run, for the cost model (default: one flop per output element)
 */
#ifndef STK_GRAPH_OP_H
#define STK_GRAPH_OP_H

#include "device/device.h"
#include "graph/ir/ir.h"

typedef struct stk_infer {
    const stk_graph *g;
    const stk_node *node;
    const stk_type *in[64]; /* types of the first 64 inputs; concat-like ops read the rest via g */
    stk_type *out;
    stk_error *err;
} stk_infer;

/* Failure with the op's name and the types of its inputs in front: "matmul(float32[2,3], float32[4,5]): ...". */
stk_status stk_infer_fail(const stk_infer *c, stk_status code, const char *format, ...)
    STK_PRINTF(3, 4);

typedef struct stk_grad {
    stk_graph *g;
    stk_node node;       /* a copy: building may move the graph's arrays */
    const stk_val *dout; /* gradient of each output; 0 = none arrives */
    stk_val *din;        /* to fill; 0 = no gradient */
} stk_grad;

static inline stk_val stk_grad_in(const stk_grad *c, int32_t i) { return c->node.in[i]; }
static inline stk_val stk_grad_out(const stk_grad *c, int32_t i) { return c->node.out + i; }

/* Lowering: fills `l` for one node. Exactly one of alias and kernel is set. */
typedef struct stk_lower {
    const stk_graph *g;
    const stk_node *node;
    /* results */
    int32_t alias; /* 1: output 0 is input 0 at byte offset `offset`; no kernel */
    int64_t offset;
    int32_t kernel;     /* stk_kernel */
    const void *params; /* made with stk_lower_params */
    int64_t params_size;
    const struct stk_index_check *check; /* made with stk_lower_check; NULL: none */
    int32_t nargs; /* args: -1-k = output k, i >= 0 = input i; default inputs then outputs */
    const int32_t *args;
    stk_arena *arena;
    stk_error *err;
} stk_lower;

/* Zeroed memory for a problem struct that lives as long as the program; NULL (error written) when out of memory. */
void *stk_lower_params(stk_lower *l, stk_kernel kernel, size_t size);
/* STK_ZEROS_A, STK_ZEROS_B: half of the numbers of input 0, of input 1, or more, can be expected to be zero. */
int32_t stk_lower_zeros(const stk_lower *l);

/* Input i holds indices of what a user calls `op` that must be below dim: `depth` coordinates each along its last axis, or
 * 0: one each. */
stk_status stk_lower_check(stk_lower *l, const char *op, int32_t i, int32_t depth,
                           const int64_t *dim);

enum {
    STK_OPF_COMMUTES = 1, /* operands may be swapped */
    STK_OPF_EFFECT = 2,   /* never removed, never merged */
    STK_OPF_RANDOM = 4,   /* never folded */
    STK_OPF_NO_GRAD = 8,  /* gradient is zero by nature (comparisons, argmax, ...) */
    STK_OPF_CONTROL = 16, /* executed by the program itself, has bodies */
    STK_OPF_LEAF = 32,
    STK_OPF_WIDEN = 64, /* half types are computed in float32: the compiler casts around it */
};

typedef struct stk_opdef {
    uint32_t flags;
    stk_status (*infer)(stk_infer *c);
    void (*grad)(stk_grad *c); /* NULL with NO_GRAD: zero; NULL without: an error for the user */
    stk_status (*lower)(stk_lower *l); /* NULL: elementwise (chain), leaf or control */
    double (*cost)(const stk_graph *g, const stk_node *n); /* (optional) flops */
    /* (optional, with WIDEN) this device computes the node in half types as they are; with `widened`: it takes bfloat16 in place of
     * that many first inputs in float32, for the same results */
    bool (*half)(const stk_graph *g, const stk_node *n, stk_device *device);
    int16_t widened;
    /* (optional) what it stands for in plain ops; takes its place on devices that lack the kernel (passes/expand.c) */
    void (*compose)(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out);
    int16_t ew; /* stk_ew + 1 for elementwise ops, else 0 */
} stk_opdef;

/* stk_opdef_add, stk_opdef_matmul, ...: one per row of ops.def and elementwise.def. */
#define STK_OP(NAME, name, min_in, max_in, outputs, attributes, doc)                               \
    extern const stk_opdef stk_opdef_##name;
#include "stoker/ops.def"
#define STK_EW(NAME, name, arity, result, doc) extern const stk_opdef stk_opdef_##name;
#include "stoker/elementwise.def"

const stk_opdef *stk_opdef_of(stk_op op);
typedef struct stk_op_row {
    const char *name, *attributes, *doc;
    int32_t min_in, max_in, outputs;
} stk_op_row;
const stk_op_row *stk_op_row_of(stk_op op);

static inline bool stk_op_is_elementwise(stk_op op) { return stk_opdef_of(op)->ew != 0; }

/* The product of two matrices as summands [parts, m, n]; what summands.c makes of small products. */
stk_val stk_g_matmul_parts(stk_graph *g, stk_val a, stk_val b, int64_t parts);

/* Sums x down to `shape` (the reverse of broadcasting); what gradients of broadcasting ops need. */
stk_val stk_g_sum_to(stk_graph *g, stk_val x, const stk_shape *shape);

/* host.c: what a host function of a run on this thread complained about; asked for once. */
stk_status stk_host_failure(stk_error *err);

#endif
