/* amx.h - may this process use the tiles of AMX, and do they multiply right? */
#ifndef STK_DEVICE_CPU_AMX_H
#define STK_DEVICE_CPU_AMX_H

#include "device/cpu/vec/conv_grid.h"
#include "device/cpu/vec/gemm.h"

/* Asks the processor, and then the system, which has to grant the state of tiles to a process before its first use. NULL: yes;
 * else why not, as the end of a sentence. The answer is found once. */
const char *stk_amx_missing(void);
/* The processor has it, whether or not it may be used. */
bool stk_amx_exists(void);

/* The two makers of tiles that the set avx512 has (vec/gemm.h, vec/conv_grid.h). */
extern const stk_vec_gemm_tiles stk_vec_gemm_amx__avx512, stk_vec_gemm_standin__avx512;
extern const stk_vec_conv_grid stk_vec_conv_grid_amx__avx512, stk_vec_conv_grid_standin__avx512;

/* Small products of numbers whose sums are exact in float, by tiles and without, bfloat16 and floats: the results must be equal to
 * the bit, but for the signs of zeros. */
bool stk_amx_agrees(const stk_vec_gemm_tiles *tiles, const stk_vec *set);

#endif
