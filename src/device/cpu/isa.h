/* isa.h - the instruction sets that the kernels of the CPU are built for. */
#ifndef STK_DEVICE_CPU_ISA_H
#define STK_DEVICE_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_isa {
    const char *name; /* "base", "avx2", "avx512", "amx" (and that emulated): narrow ones first */
    bool built;       /* the library has it */
    bool here;        /* and this processor runs it */
    bool on_request;  /* slow, for tests of what the processor lacks: never chosen */
} stk_isa;

int32_t stk_isa_count(void);
stk_isa stk_isa_at(int32_t i);
/* What the whole process computes with from now on; NULL: the widest, or what STOKER_ISA asks for. */
void stk_isa_use(const char *name);
/* The set in use has dot products of pairs of bfloat16, and so has this processor. */
bool stk_isa_has_pairs(void);
/* It has products of tiles of bfloat16 (vec/tiles.h); then it has pairs, too. */
bool stk_isa_has_tiles(void);
/* Each core has 2 MB of L2 or more. What hangs on it must not change a bit of any result. */
bool stk_isa_has_large_l2(void);
void stk_isa_assume_l2(int large); /* tests: what that says from now on; -1: the truth */
/* Why AMX is not in use though the processor has it, as the end of a sentence; NULL: it is, or there is none. */
const char *stk_isa_amx_unused(void);

#endif
