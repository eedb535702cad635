/* vec.h - kernels that are built once per instruction set, and how one set is chosen.
 *
 * Every .c file of this folder is compiled for each ISA (base, avx2, avx512; elsewhere base only) with STK_ISA
 * defined. It holds plain C loops that the compiler turns into that ISA's vectors, and exports one table
 * named with STK_VEC(): `const stk_vec_ew STK_VEC(stk_vec_ew) = {...}` becomes stk_vec_ew__avx2. There is no #ifdef ISA in a kernel:
 * what differs (register width, count of accumulators) comes from the constants below.
 *
 * What is written once for several element types or widths is a template: an .inc file, included once for each with the words in
 * its head defined. They mean the same in all of them: REAL the element, VEC a register of it, V(word) a
 * word of lanes.h or widths.h for it, T(name) a name of the template with its ending. Macros that emit functions only give names to such bodies. */
#ifndef STK_DEVICE_CPU_VEC_VEC_H
#define STK_DEVICE_CPU_VEC_VEC_H

#include "device/kernels.h"

#define STK_VEC_PASTE(name, isa) name##__##isa
#define STK_VEC_NAME(name, isa)  STK_VEC_PASTE(name, isa)
#define STK_VEC(name)            STK_VEC_NAME(name, STK_ISA)

/* Floats in one register, and registers to plan for. */
#if defined(__AVX512F__)
enum { STK_VF = 16, STK_VREGS = 32 };
#elif defined(__AVX__)
enum { STK_VF = 8, STK_VREGS = 16 };
#elif defined(__aarch64__)
enum { STK_VF = 4, STK_VREGS = 32 };
#else
enum { STK_VF = 4, STK_VREGS = 16 };
#endif

/* One table per family; each family's header says what is in it. */
typedef struct stk_vec {
    const char *name;
#define STK_VEC_FAMILY(name) const struct stk_vec_##name *name;
#include "device/cpu/vec/families.def"
} stk_vec;
extern const stk_vec stk_vec__base, stk_vec__avx2,
    stk_vec__avx512; /* as many as were built (isa.c) */

/* The widest set this CPU runs. STOKER_ISA=base|avx2|avx512 asks for a narrower one; amx is avx512 with tiles (tiles.h), and
 * amx-emulated the same with tiles in plain C, for tests on any CPU with AVX512_BF16. */
const stk_vec *stk_vec_get(void);
const stk_vec *stk_vec_find(const char *name); /* NULL when this CPU cannot run it */
/* tests: what stk_vec_get() gives from now on; NULL = choose again */
void stk_vec_use(const stk_vec *vec);

#endif
