/* kernels.h - what each kernel id computes: problem descriptions without pointers.
 *
 * These structs are compared and hashed as bytes (election cache, common launches), so they hold only
 * int64_t/int32_t fields in an order that leaves no padding, and unused fields are zero. */
#ifndef STK_DEVICE_KERNELS_H
#define STK_DEVICE_KERNELS_H

#include "base/dtype.h"
#include "base/shape.h"
#include "device/kernels_conv.h"
#include "device/kernels_host.h"
#include "device/kernels_image.h"
#include "device/kernels_index.h"
#include "device/kernels_rnn.h"
#include "device/kernels_nn.h"

typedef enum stk_kernel {
#define STK_KERNEL(NAME, name, params, doc) STK_K_##NAME,
#include "device/kernels.def"
    STK_KERNEL_COUNT
} stk_kernel;

const char *stk_kernel_name(stk_kernel kernel);
/* "gemm:ref,conv:onednn", as in STOKER_KERNEL: what the list wishes for this kernel, written to name; false: nothing. */
bool stk_kernel_wish(const char *list, stk_kernel kernel, char *name, size_t size);

/* ---- chain: elementwise work ---------------------------------------------------------------
 *
 * A straight-line program over registers, run tile by tile: a register is a tile of elements that stays
 * in L1. The first `inputs` registers are loaded, then constants are splatted, then ops run in order,
 * each output register is stored.
 *
 *     inputs r0 r1 | constants r2 | ops: r3 = mul r0 r2; r4 = add r3 r1 | outputs: r4
 */
typedef enum stk_ew {
#define STK_EW(NAME, name, arity, result, doc) STK_EW_##NAME,
#include "stoker/elementwise.def"
    STK_EW_COUNT
} stk_ew;

const char *stk_ew_name(stk_ew op);
int stk_ew_arity(stk_ew op);

/* In which arithmetic an op runs. Storage types widen on load and narrow on store: f16, bf16 -> F32;
 * all integers -> I64; bool -> BOOL (0 or 1 in 32 bits). */
typedef enum stk_lane { STK_LANE_F32, STK_LANE_F64, STK_LANE_I64, STK_LANE_BOOL } stk_lane;

stk_lane stk_lane_of(stk_dtype dtype);
static inline int64_t stk_lane_size(stk_lane lane)
{
    return lane == STK_LANE_F64 || lane == STK_LANE_I64 ? 8 : 4;
}

enum { STK_CHAIN_REGS = 48, STK_CHAIN_OPS = 64, STK_CHAIN_IO = 24 };

typedef struct stk_chain_op {
    int16_t code; /* stk_ew */
    int8_t lane;  /* stk_lane of the operands (for select: of the choices) */
    int8_t from;  /* stk_lane of operand a for casts, else = lane */
    int16_t dst, a, b, c;
    int16_t pad;
} stk_chain_op;

/* How an input is read while the output is written in flat row-major order. */
typedef enum stk_access {
    STK_ACCESS_DENSE,   /* element i */
    STK_ACCESS_SCALAR,  /* one element */
    STK_ACCESS_STRIDED, /* by stride[] over the chain's dims */
    STK_ACCESS_ROW,     /* element i % dim[rank-1]: a bias */
} stk_access;

typedef struct stk_chain_input {
    int32_t dtype, access;        /* stk_access */
    int64_t stride[STK_MAX_RANK]; /* STRIDED only, in elements */
} stk_chain_input;

typedef struct stk_chain_output {
    int32_t dtype, reg;
} stk_chain_output;

typedef struct stk_chain_const {
    int32_t reg, lane;
    double value; /* integers up to 2^53 are exact; larger ones come from memory */
} stk_chain_const;

typedef struct stk_chain {
    int32_t inputs, outputs, constants, ops, regs, rank;
    int32_t segments;          /* the same program over several sets of arrays */
    int32_t tile;              /* elements per tile */
    int64_t dim[STK_MAX_RANK]; /* of the output; STRIDED and ROW walks only (segments == 1) */
    stk_chain_input input[STK_CHAIN_IO];
    stk_chain_output output[STK_CHAIN_IO];
    stk_chain_const constant[STK_CHAIN_IO];
    stk_chain_op op[STK_CHAIN_OPS];
    int8_t reg_lane[STK_CHAIN_REGS];
    const int64_t *count; /* [segments] elements of each; arg[] holds inputs+outputs per segment */
} stk_chain;

/* ---- gemm: c[m,n] = op(a)[m,k] op(b)[k,n], row-major, `batch` times ---------------------------- */
enum { STK_ZEROS_A = 1, STK_ZEROS_B = 2 };
typedef struct stk_gemm {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;             /* row strides as stored */
    int64_t batch_a, batch_b, batch_c; /* elements between batches; 0 = shared */
    int32_t ta, tb;                    /* 1: stored transposed */
    int32_t accumulate;                /* 1: c += */
    int32_t dtype;
    int32_t zeros; /* STK_ZEROS_A, _B: about half of the numbers or more are expected to be zero */
    int32_t pad;   /* params are compared as bytes */
} stk_gemm;

/* ---- copy: out[out_offset + i . out_stride] = in[in_offset + i . in_stride] for i in dim -------- */
typedef struct stk_copy_params {
    int64_t rank;
    int64_t dim[STK_MAX_RANK], in_stride[STK_MAX_RANK], out_stride[STK_MAX_RANK];
    int64_t in_offset, out_offset; /* elements */
    int64_t item;                  /* bytes of one element */
} stk_copy_params;

typedef struct stk_fill_params {
    int64_t count, item;
    uint8_t value[16];
} stk_fill_params;

/* ---- pad: fill the output with one value, then copy the input into its window -------------------- */
typedef struct stk_pad_params {
    stk_fill_params fill;
    stk_copy_params copy;
} stk_pad_params;

/* ---- concat: out[outer][total] from in_i[outer][width_i], all in bytes ------------------------------ */
typedef struct stk_concat_params {
    int64_t inputs, outer, total;
    int64_t width[]; /* [inputs] */
} stk_concat_params;

/* ---- iota: out[outer, n, inner] = index along n -------------------------------------------------- */
typedef struct stk_iota_params {
    int64_t outer, n, inner, dtype;
} stk_iota_params;

/* ---- reduce: [outer, n, inner] -> [outer, inner] ------------------------------------------------ */
typedef enum stk_reduce_kind {
#define STK_REDUCTION(NAME, name, doc) STK_REDUCE_##NAME,
#include "device/reductions.def"
    STK_REDUCE_COUNT
} stk_reduce_kind;

typedef struct stk_reduce_params {
    int64_t outer, n, inner;
    int32_t kind, dtype; /* stk_reduce_kind; element type of the input */
} stk_reduce_params;

#endif
