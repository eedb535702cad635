/* compile.c - kernel text to modules by NVRTC, kernels and their arguments. For a card that the compiler knows it makes machine code; for a later
 * one PTX of the last that it knows, which the driver translates. A driver that does not (it is older than the compiler) is given machine code of
 * that one, where both have the same major number: cards run that of their elder sisters. */
#include "device/cuda/cuda.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- modules --------------------------------------------------------------------------------------------- */

typedef struct module {
    CUmodule module;
    unsigned char *image; /* what the compiler made, until it was taken to be kept */
    size_t size;
} module;

static const char ARCHITECTURE[] = "--gpu-architecture=";

static const char *architecture(const stk_cuda *d, char *out, size_t size)
{
    snprintf(out, size, "%s%s_%d", ARCHITECTURE, d->machine ? "sm" : "compute", d->target);
    return out;
}

/* No contraction: what is fused is spelled out, so that all devices have the same bits. */
static void all_options(const stk_cl_device *device, char *out, size_t size)
{
    const stk_cuda *d = (const stk_cuda *)device;
    char text[64];
    snprintf(out, size, "%s --fmad=false%s", architecture(d, text, sizeof text),
             d->cu->nvrtc >= 12000 ? " --diag-suppress=177" : ""); /* (NVRTC 11 has no such word) */
}

static char *log_of(const stk_cu *cu, nvrtcProgram program)
{
    size_t size = 0;
    char *log = NULL;
    if (cu->nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size > 1 << 20) return NULL;
    log = stk_calloc(1, size + 1);
    if (log) (void)cu->nvrtcGetProgramLog(program, log);
    return log;
}

/* The options as the compiler wants them, one by one. They are cut up where they stand. */
static int cut_options(char *text, const char **list, int most)
{
    int n = 0;
    char *rest = NULL;
    for (char *at = strtok_r(text, " ", &rest); at && n < most; at = strtok_r(NULL, " ", &rest))
        list[n++] = at;
    return n;
}

static char *whole_text(const stk_cl_source *source)
{
    const stk_cl_source *all[] = {stk_cl_text("dialect.h"), stk_cl_text("params.h"), source};
    char *text = stk_malloc(all[0]->size + all[1]->size + all[2]->size + 1), *at = text;
    for (int i = 0; text && i < 3; i++) {
        memcpy(at, all[i]->text, all[i]->size);
        at += all[i]->size;
    }
    if (text) *at = 0;
    return text;
}

static int take_image(stk_cuda *d, nvrtcProgram program, module *m)
{
    const stk_cu *cu = d->cu;
    bool machine = d->machine;
    int code =
        machine ? cu->nvrtcGetCUBINSize(program, &m->size) : cu->nvrtcGetPTXSize(program, &m->size);
    if (code != NVRTC_SUCCESS) return code;
    m->image = stk_malloc(m->size + 1);
    if (!m->image) return NVRTC_ERROR_OUT_OF_MEMORY;
    return machine ? cu->nvrtcGetCUBIN(program, (char *)m->image)
                   : cu->nvrtcGetPTX(program, (char *)m->image);
}

static int compile(stk_cuda *d, const stk_cl_source *source, const char *options, module *m,
                   char **said)
{
    const stk_cu *cu = d->cu;
    const char *list[64];
    nvrtcProgram program = NULL;
    char *text = whole_text(source), *cut = stk_strdup(options), now[64];
    int code = NVRTC_ERROR_OUT_OF_MEMORY;
    if (text && cut) {
        int n = cut_options(cut, list, sizeof list / sizeof *list);
        for (int i = 0; i < n; i++) /* it may have changed since the options were made */
            if (!strncmp(list[i], ARCHITECTURE, sizeof ARCHITECTURE - 1))
                list[i] = architecture(d, now, sizeof now);
        code = cu->nvrtcCreateProgram(&program, text, source->name, 0, NULL, NULL);
        if (code == NVRTC_SUCCESS) code = cu->nvrtcCompileProgram(program, n, list);
        if (program) *said = log_of(cu, program);
        if (code == NVRTC_SUCCESS) code = take_image(d, program, m);
        if (program) (void)cu->nvrtcDestroyProgram(&program);
    }
    stk_free(text);
    stk_free(cut);
    return code;
}

static void program_free(stk_cl_device *device, void *program)
{
    stk_cuda *d = (stk_cuda *)device;
    module *m = program;
    if (!m) return;
    (void)stk_cuda_enter(d);
    if (m->module) (void)d->cu->cuModuleUnload(m->module);
    stk_free(m->image);
    stk_free(m);
}

/* What the driver says about it goes to *said; NULL: nobody listens. */
static int load_module(stk_cuda *d, module *m, const void *image, char **said)
{
    enum { ROOM = 4096 };
    char *log = said ? stk_calloc(1, ROOM) : NULL;
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(ROOM - 1)};
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS)
        code = d->cu->cuModuleLoadDataEx(&m->module, image, log ? 2 : 0, options, values);
    if (code != CUDA_SUCCESS) m->module = NULL;
    if (log && *log) {
        stk_free(*said);
        *said = log;
    } else {
        stk_free(log);
    }
    return code;
}

/* PTX that is too new for the driver, or that it cannot translate. */
static bool wants_machine_code(const stk_cuda *d, int code)
{
    return !d->machine && d->target / 10 == d->sm / 10 &&
           (code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == CUDA_ERROR_INVALID_PTX ||
            code == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
            code == CUDA_ERROR_JIT_COMPILATION_DISABLED);
}

/* Compiles and loads; *loaded is what the driver said, the result what the compiler did. */
static int make_module(stk_cuda *d, const stk_cl_source *source, const char *options, module *m,
                       char **said, int *loaded)
{
    int code = compile(d, source, options, m, said);
    if (code != NVRTC_SUCCESS) return code;
    *loaded = load_module(d, m, m->image, said);
    if (!wants_machine_code(d, *loaded)) return code;
    d->machine = true;
    stk_free(m->image);
    m->image = NULL;
    stk_free(*said);
    *said = NULL;
    return make_module(d, source, options, m, said, loaded);
}

static stk_status build(stk_cl_device *device, const stk_cl_source *source, const char *options,
                        void **out, char **said, stk_error *err)
{
    stk_cuda *d = (stk_cuda *)device;
    module *m = stk_calloc(1, sizeof *m);
    if (!m) return stk_fail_memory(err, source->name, sizeof *m);
    int loaded = CUDA_SUCCESS, code = make_module(d, source, options, m, said, &loaded);
    stk_status status = STK_OK;
    if (code != NVRTC_SUCCESS)
        status = stk_fail(err, code == NVRTC_ERROR_OUT_OF_MEMORY ? STK_ERR_MEMORY : STK_ERR_DEVICE,
                          "%s", d->cu->nvrtcGetErrorString(code));
    if (status == STK_OK)
        status = stk_cuda_done(d, "its driver does not take what NVRTC made", loaded, err);
    if (status == STK_OK)
        *out = m;
    else
        program_free(device, m);
    return status;
}

static size_t binary_of(stk_cl_device *device, void *program, unsigned char **out)
{
    module *m = program;
    (void)device;
    *out = m->image;
    m->image = NULL;
    return *out ? m->size : 0;
}

static void *revive(stk_cl_device *device, const unsigned char *binary, size_t size,
                    const char *options)
{
    module *m = stk_calloc(1, sizeof *m);
    (void)options;
    (void)size;
    if (!m || load_module((stk_cuda *)device, m, binary, NULL) == CUDA_SUCCESS) return m;
    program_free(device, m);
    return NULL;
}

/* ---- kernels --------------------------------------------------------------------------------------------- */

/* A function and what it is given: values one behind the other, and where each of them stands. */
typedef struct argument_place {
    uint32_t at, bytes;
} argument_place;

typedef struct launch {
    CUfunction function;
    argument_place *places;
    int64_t n, cap;
    char *values;
    size_t used, room;
    void **pointers; /* for the driver; made when the plan is loaded */
} launch;

static stk_status kernel_new(stk_cl_device *device, void *program, const char *name, void **out,
                             stk_error *err)
{
    stk_cuda *d = (stk_cuda *)device;
    launch *l = stk_calloc(1, sizeof *l);
    if (!l) return stk_fail_memory(err, name, sizeof *l);
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS)
        code = d->cu->cuModuleGetFunction(&l->function, ((module *)program)->module, name);
    stk_status status = stk_cuda_done(d, name, code, err);
    if (status == STK_OK)
        *out = l;
    else
        stk_free(l);
    return status;
}

static void kernel_free(stk_cl_device *device, void *kernel)
{
    launch *l = kernel;
    (void)device;
    stk_free(l->places);
    stk_free(l->values);
    stk_free(l->pointers);
    stk_free(l);
}

/* Room for an argument of its own; those that come later may be set first. */
static bool add_place(launch *l, int32_t index, size_t bytes)
{
    size_t at = (size_t)stk_round_up((int64_t)l->used, 16);
    while (l->n <= index) {
        if (!STK_GROW(l->places, l->n, l->cap)) return false;
        l->places[l->n++] = (argument_place){0};
    }
    if (at + bytes > l->room) {
        size_t room = 2 * (at + bytes);
        char *values = stk_realloc(l->values, l->room, room);
        if (!values) return false;
        l->values = values;
        l->room = room;
    }
    l->used = at + bytes;
    l->places[index] = (argument_place){(uint32_t)at, (uint32_t)bytes};
    return true;
}

static stk_status argument(stk_cl_device *device, void *kernel, int32_t index, size_t bytes,
                           const void *value, stk_error *err)
{
    launch *l = kernel;
    (void)device;
    if ((index >= l->n || l->places[index].bytes != bytes) && !add_place(l, index, bytes))
        return stk_fail_memory(err, "an argument", bytes);
    memcpy(l->values + l->places[index].at, value, bytes);
    return STK_OK;
}

/* All arguments have their places from now on: those that each run fills in are there, and hold nothing yet. */
stk_status stk_cuda_ready(stk_cuda *d, stk_cl_step *step, stk_error *err)
{
    launch *l = step->kernel;
    const uint64_t nothing = 0;
    for (int32_t i = 0; i < step->nslots; i++)
        for (int32_t k = 0; k < 2; k++)
            STK_TRY(argument(&d->base, l, step->slots[i].index + k, sizeof nothing, &nothing, err));
    l->pointers = stk_calloc((size_t)l->n + 1, sizeof *l->pointers);
    if (!l->pointers) return stk_fail_memory(err, "arguments", (size_t)l->n * sizeof(void *));
    for (int64_t i = 0; i < l->n; i++) l->pointers[i] = l->values + l->places[i].at;
    return STK_OK;
}

int stk_cuda_launch(stk_cuda *d, const stk_cl_step *step, CUstream stream)
{
    const launch *l = step->kernel;
    unsigned grid[3], group[3];
    for (int i = 0; i < 3; i++) {
        group[i] = (unsigned)step->local[i];
        grid[i] = (unsigned)(step->global[i] / step->local[i]);
    }
    return d->cu->cuLaunchKernel(l->function, grid[0], grid[1], grid[2], group[0], group[1],
                                 group[2], 0, stream, l->pointers, NULL);
}

const stk_cl_backend stk_cuda_backend = {.log = "STOKER_CUDA_LOG",
                                         .folder = "cuda",
                                         .options = all_options,
                                         .build = build,
                                         .binary = binary_of,
                                         .revive = revive,
                                         .program_free = program_free,
                                         .kernel_new = kernel_new,
                                         .kernel_free = kernel_free,
                                         .argument = argument};
