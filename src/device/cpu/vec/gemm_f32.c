/* gemm_f32.c - the engine for floats. */
#include "device/cpu/isa.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/lanes.h"

#include "base/memory.h"

#define REAL           float
#define LANES          STK_VF
#define VEC            vf
#define V(word)        vf_##word
#define ENGINE         STK_VEC(stk_gemm_f32)
#define ENGINE_SCRATCH STK_VEC(stk_gemm_f32_scratch)
#define ENGINE_PACKED  STK_VEC(stk_gemm_f32_packed)
#define ENGINE_PACK    STK_VEC(stk_gemm_f32_pack)
#include "gemm_engine.inc"
