/* The table of recipes, and how element types are called in kernel text. */
#include "device/cl/recipes.h"

#include <stdio.h>
#include <string.h>

#define STK_RECIPE(name) extern const stk_cl_recipe stk_cl_recipe_##name;
#include "device/cl/recipes.def"

static const stk_cl_recipe *const recipes[] = {
#define STK_RECIPE(name) &stk_cl_recipe_##name,
#include "device/cl/recipes.def"
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

const stk_cl_recipe *stk_cl_recipe_of(const stk_cl_device *d, stk_kernel kernel, const void *params,
                                      const char *wish, char *why, size_t size)
{
    snprintf(why, size, "no kernel for %s", stk_kernel_name(kernel));
    for (int i = 0; i < RECIPES; i++) {
        const stk_cl_recipe *r = recipes[i];
        if (r->kernel != (int32_t)kernel || (wish && strcmp(wish, r->name))) continue;
        const char *reason = r->refuses ? r->refuses(d, params) : NULL;
        if (!reason) return r;
        snprintf(why, size, "%s", reason);
    }
    return NULL;
}

bool stk_cl_supports(stk_device *d, stk_kernel kernel, const void *params, char *why, size_t size)
{
    if (kernel == STK_K_HOST) {
        snprintf(why, size, "a function of the host");
        return false;
    }
    return stk_cl_recipe_of(stk_cl_of(d), kernel, params, NULL, why, size) != NULL;
}

const char *stk_cl_impl_name(stk_device *d, stk_kernel kernel, int32_t i)
{
    (void)d;
    for (int k = 0; k < RECIPES; k++)
        if (recipes[k]->kernel == (int32_t)kernel && i-- == 0) return recipes[k]->name;
    return NULL;
}

/* ---- element types --------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *lane, *name;
} types[] = {
    [STK_F32] = {"float", "float", "f32"},     [STK_F64] = {"double", "double", "f64"},
    [STK_F16] = {"ushort", "float", "f16"},    [STK_BF16] = {"ushort", "float", "bf16"},
    [STK_I8] = {"char", "sk_long", "i8"},      [STK_U8] = {"uchar", "sk_long", "u8"},
    [STK_I16] = {"short", "sk_long", "i16"},   [STK_U16] = {"ushort", "sk_long", "u16"},
    [STK_I32] = {"int", "sk_long", "i32"},     [STK_U32] = {"uint", "sk_long", "u32"},
    [STK_I64] = {"sk_long", "sk_long", "i64"}, [STK_U64] = {"sk_ulong", "sk_long", "u64"},
    [STK_BOOL] = {"uchar", "int", "bool"},
};

const char *stk_cl_type(int64_t dtype) { return types[dtype].type; }
const char *stk_cl_lane(int64_t dtype) { return types[dtype].lane; }
const char *stk_cl_short(int64_t dtype) { return types[dtype].name; }

const char *stk_cl_item(int64_t bytes)
{
    return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
}

const char *stk_cl_refuse_lane(const stk_cl_device *d, int64_t dtype)
{
    if (dtype == STK_STRING) return "strings";
    return dtype == STK_F64 && !d->has_f64 ? "this device has no float64" : NULL;
}

const char *stk_cl_refuse_real(const stk_cl_device *d, int64_t dtype)
{
    if (dtype != STK_F32 && dtype != STK_F64) return "real numbers only";
    return stk_cl_refuse_lane(d, dtype);
}
