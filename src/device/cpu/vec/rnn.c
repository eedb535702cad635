/* rnn.c - recurrent cells of one instruction set. Each is one loop over the hidden units, free of branches, so that the
 * compiler makes vector code of it. */
#include "device/cpu/vec/rnn.h"

#include "device/cpu/vec/math.h"
#include "device/cpu/vec/rnn_lanes.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops over libm stay scalar, as they should */
#define EACH_UNIT _Pragma("clang loop vectorize(assume_safety)") for (int64_t j = 0; j < n; j++)
#else
#define EACH_UNIT _Pragma("GCC ivdep") for (int64_t j = 0; j < n; j++)
#endif

#define REAL       float
#define T(name)    name##_f32
#define SIGMOID(x) stk_sigmoid_f32(x)
#define TANH(x)    stk_tanh_f32(x)
#define LANES      1
#include "device/cpu/vec/rnn_cells.inc"
#undef REAL
#undef T
#undef SIGMOID
#undef TANH
#undef LANES

#define REAL       double
#define T(name)    name##_f64
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define TANH(x)    tanh(x)
#define LANES      0
#include "device/cpu/vec/rnn_cells.inc"

const stk_vec_rnn STK_VEC(stk_vec_rnn) = {
    .cells = {[STK_F32] = &cells_f32, [STK_F64] = &cells_f64},
};
