/* errors.c - codes of the driver as messages, and a card that is lost stays lost. */
#include "device/cuda/cuda.h"

#include <string.h>

typedef enum kind { REFUSED, MEMORY, LOST } kind;

typedef struct meaning {
    int code;
    kind kind;
    const char *advice;
} meaning;

static const meaning meanings[] = {
#define STK_CUDA_ERROR(code, kind, advice) {CUDA_ERROR_##code, kind, advice},
#include "device/cuda/errors.def"
};

static meaning meaning_of(int code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].code == code) return meanings[i];
    return (meaning){.code = code, .advice = ""};
}

const char *stk_cu_advice(int code)
{
    static const meaning opening[] = {
#define STK_CUDA_OPENING(code, advice) {CUDA_ERROR_##code, REFUSED, advice},
#include "device/cuda/errors.def"
    };
    for (size_t i = 0; i < sizeof opening / sizeof *opening; i++)
        if (opening[i].code == code) return opening[i].advice;
    return "nvidia-smi tells whether the driver is sound";
}

const char *stk_cu_error_name(const stk_cu *cu, int code)
{
    const char *name = NULL;
    return cu->cuGetErrorName(code, &name) == CUDA_SUCCESS && name ? name : "a CUDA error";
}

stk_status stk_cuda_fail_opening(stk_cuda *d, int code, stk_error *err)
{
    return stk_fail(err, code == CUDA_ERROR_OUT_OF_MEMORY ? STK_ERR_MEMORY : STK_ERR_DEVICE,
                    "%s: opening: %s (%d): %s; --device cpu does without it", stk_cl_name(&d->base),
                    stk_cu_error_name(d->cu, code), code, stk_cu_advice(code));
}

/* How much is left is asked now: what it had when it was opened says nothing about why it is out of memory. */
static stk_status fail_memory(stk_cuda *d, const char *what, const char *error, const char *advice,
                              stk_error *err)
{
    size_t left = 0, all = 0;
    if (d->cu->cuMemGetInfo_v2(&left, &all) != CUDA_SUCCESS) left = all = 0;
    return stk_fail(err, STK_ERR_MEMORY, "%s: %s: %s; %zu of %zu MiB are free: %s",
                    stk_cl_name(&d->base), what, error, left >> 20, all >> 20, advice);
}

stk_status stk_cuda_done(stk_cuda *d, const char *what, int code, stk_error *err)
{
    int before = __atomic_load_n(&d->lost, __ATOMIC_RELAXED);
    if (before) code = before;
    if (code == CUDA_SUCCESS) return STK_OK;
    const char *name = stk_cl_name(&d->base), *error = stk_cu_error_name(d->cu, code);
    meaning m = meaning_of(code);
    bool more = m.advice[0] != 0;
    if (m.kind == MEMORY) return fail_memory(d, what, error, m.advice, err);
    if (m.kind == LOST) {
        __atomic_store_n(&d->lost, code, __ATOMIC_RELAXED);
        return stk_fail(err, STK_ERR_DEVICE,
                        "%s: %s: %s (%d): %s%sthe card was lost; start again from the last "
                        "checkpoint, or with --device cpu",
                        name, what, error, code, m.advice, more ? "; " : "");
    }
    return stk_fail(err, STK_ERR_DEVICE,
                    "%s: %s: %s (%d): %s%s`stoker selftest --device %s` tells whether its driver "
                    "is sound",
                    name, what, error, code, m.advice, more ? "; " : "", name);
}
