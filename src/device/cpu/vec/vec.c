/* The table of tables of one instruction set. */
#include "device/cpu/vec/vec.h"

#define STK_VEC_FAMILY(name) extern const struct stk_vec_##name STK_VEC(stk_vec_##name);
#include "device/cpu/vec/families.def"

const stk_vec STK_VEC(stk_vec) = {
    .name = STK_ISA_NAME,
#define STK_VEC_FAMILY(family) .family = &STK_VEC(stk_vec_##family),
#include "device/cpu/vec/families.def"
};
