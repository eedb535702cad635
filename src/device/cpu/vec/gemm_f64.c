/* gemm_f64.c - the engine for doubles. */
#include "device/cpu/isa.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/lanes.h"

#include "base/memory.h"

#define REAL           double
#define LANES          STK_VD
#define VEC            vd
#define V(word)        vd_##word
#define ENGINE         STK_VEC(stk_gemm_f64)
#define ENGINE_SCRATCH STK_VEC(stk_gemm_f64_scratch)
#define ENGINE_PACKED  STK_VEC(stk_gemm_f64_packed)
#define ENGINE_PACK    STK_VEC(stk_gemm_f64_pack)
#include "gemm_engine.inc"
