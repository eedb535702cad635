/* The table of tables of one instruction set. */
#include "device/cpu/vec/vec.h"

#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/peak.h"
#include "device/cpu/vec/pool.h"
#include "device/cpu/vec/random.h"
#include "device/cpu/vec/reduce.h"
#include "device/cpu/vec/resize.h"
#include "device/cpu/vec/rnn.h"
#include "device/cpu/vec/norm.h"
#include "device/cpu/vec/softmax.h"
#include "device/cpu/vec/updates.h"
#include "device/cpu/vec/winograd.h"

extern const stk_vec STK_VEC(stk_vec);
const stk_vec STK_VEC(stk_vec) = {
    .name = STK_ISA_NAME,
    .ew = &STK_VEC(stk_vec_ew),
    .updates = &STK_VEC(stk_vec_updates),
    .reduce = &STK_VEC(stk_vec_reduce),
    .gemm = &STK_VEC(stk_vec_gemm),
    .gemm_pairs = &STK_VEC(stk_vec_gemm_pairs),
    .resize = &STK_VEC(stk_vec_resize),
    .conv = &STK_VEC(stk_vec_conv),
    .winograd = &STK_VEC(stk_vec_winograd),
    .pool = &STK_VEC(stk_vec_pool),
    .softmax = &STK_VEC(stk_vec_softmax),
    .norm = &STK_VEC(stk_vec_norm),
    .random = &STK_VEC(stk_vec_random),
    .rnn = &STK_VEC(stk_vec_rnn),
    .peak = &STK_VEC(stk_vec_peak),
};
