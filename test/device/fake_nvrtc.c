/* The compiler of the driver that is none (fake_cuda.h). What it makes is the binary of an OpenCL program. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stk_nvrtc_program {
    char *text, *log;
    unsigned char *binary;
    size_t size;
    int machine; /* for an sm_..: there is machine code, else PTX */
    int arch;    /* 75: for compute capability 7.5 */
};

static const int ARCHS[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { NARCHS = sizeof ARCHS / sizeof *ARCHS, INVALID_INPUT = 3, INVALID_OPTION = 5 };

int nvrtcVersion(int *major, int *minor)
{
    *major = fake_number("STK_FAKE_NVRTC_VERSION", 13);
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(int code)
{
    return code == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int nvrtcGetNumSupportedArchs(int *n)
{
    *n = NARCHS;
    return NVRTC_SUCCESS;
}

int nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, ARCHS, sizeof ARCHS);
    return NVRTC_SUCCESS;
}

int nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int nheaders,
                       const char *const *headers, const char *const *names)
{
    (void)headers;
    (void)names;
    if (!text || !name || nheaders) return INVALID_INPUT;
    *out = calloc(1, sizeof **out);
    (*out)->text = strdup(text);
    fake_live(1);
    return NVRTC_SUCCESS;
}

int nvrtcDestroyProgram(nvrtcProgram *p)
{
    free((*p)->text);
    free((*p)->log);
    free((*p)->binary);
    free(*p);
    *p = NULL;
    fake_live(-1);
    return NVRTC_SUCCESS;
}

/* Through the real one; what it says becomes the log. */
static int compile_really(nvrtcProgram p, int n, const char *const *options)
{
    static int (*create)(void **, const char *, const char *, int, void *, void *);
    static int (*compile)(void *, int, const char *const *);
    static int (*log_size)(void *, size_t *);
    static int (*log_of)(void *, char *);
    const char *path = getenv("STK_FAKE_NVRTC_REAL");
    void *program = NULL, *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    size_t size = 0;
    if (!path || !*path) return NVRTC_SUCCESS;
    if (!library) return INVALID_INPUT;
    *(void **)(void *)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)(void *)&compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)(void *)&log_size = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)(void *)&log_of = dlsym(library, "nvrtcGetProgramLog");
    if (create(&program, p->text, "real", 0, NULL, NULL) != 0) return INVALID_INPUT;
    int code = compile(program, n, options);
    if (log_size(program, &size) == 0 && size > 1) {
        free(p->log);
        p->log = calloc(1, size + 1);
        (void)log_of(program, p->log);
        if (code == 0) code = NVRTC_ERROR_COMPILATION; /* warnings */
    }
    int (*destroy)(void **);
    *(void **)(void *)&destroy = dlsym(library, "nvrtcDestroyProgram");
    (void)destroy(&program);
    return code;
}

/* -D options go through; those that say how to compute must be the ones that make the bits of all devices. */
static int take_options(nvrtcProgram p, int n, const char *const *options, char *out, size_t size)
{
    int arch = 0, exact = 0;
    snprintf(out, size,
             "-cl-std=CL1.2 -DSK_OPENCL -DSK_HAS_F64 -cl-fp32-correctly-rounded-divide-sqrt "
             "-cl-kernel-arg-info");
    for (int i = 0; i < n; i++) {
        size_t used = strlen(out);
        /* gru_grad in groups of 64: PoCL 3.1 gets it wrong when it optimizes; without, and in Oclgrind, it has the CPU's numbers */
        if (!strcmp(options[i], "-DSK_CELL=3"))
            used += (size_t)snprintf(out + used, size - used, " -cl-opt-disable");
        if (!strncmp(options[i], "-D", 2))
            snprintf(out + used, size - used, " %s", options[i]);
        else if (sscanf(options[i], "--gpu-architecture=sm_%d", &arch) == 1)
            p->machine = 1;
        else if (sscanf(options[i], "--gpu-architecture=compute_%d", &arch) == 1)
            p->machine = 0;
        else if (!strcmp(options[i], "--fmad=false"))
            exact = 1;
        else if (strcmp(options[i], "--diag-suppress=177") != 0)
            return INVALID_OPTION;
    }
    p->arch = arch;
    for (int i = 0; i < NARCHS; i++)
        if (ARCHS[i] == arch && exact) return NVRTC_SUCCESS;
    return INVALID_OPTION;
}

/* For every struct that a kernel takes one kernel more, whose only use is the number in its attribute: nobody else says how large an
 * argument is. */
static void add_sizes(nvrtcProgram p)
{
    char seen[8][64];
    int n = 0;
    for (const char *at = p->text; (at = strstr(at, "const sk_")) && n < 8; at++) {
        char name[64], tail[8] = "";
        int known = 0;
        if (sscanf(at, "const %60[a-z_] p%2[)]", name, tail) != 2) continue;
        for (int i = 0; i < n; i++) known |= !strcmp(seen[i], name);
        if (!known) strcpy(seen[n++], name);
    }
    size_t used = strlen(p->text), size = used + 256 * (size_t)(n + 1);
    p->text = realloc(p->text, size);
    for (int i = 0; i < n; i++, used = strlen(p->text))
        snprintf(p->text + used, size - used,
                 "\n__kernel __attribute__((reqd_work_group_size(sizeof(%s), 1, 1))) void "
                 "fake_size_%s(__global int *x) { *x = 0; }\n",
                 seen[i], seen[i]);
}

int nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    fake *f = fake_open();
    char all[1024];
    cl_int bad = CL_SUCCESS;
    int code = fake_note("nvrtcCompileProgram");
    if (code == CUDA_SUCCESS) code = take_options(p, n, options, all, sizeof all);
    if (code == NVRTC_SUCCESS) code = compile_really(p, n, options);
    if (code != NVRTC_SUCCESS) return code;
    add_sizes(p);
    cl_program program =
        f->cl.CreateProgramWithSource(f->context, 1, (const char **)&p->text, NULL, &bad);
    if (!program) return INVALID_INPUT;
    bad = f->cl.BuildProgram(program, 1, &f->id, all, NULL, NULL);
    size_t size = 0;
    (void)f->cl.GetProgramBuildInfo(program, f->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    free(p->log);
    p->log = calloc(1, size + 1);
    (void)f->cl.GetProgramBuildInfo(program, f->id, CL_PROGRAM_BUILD_LOG, size, p->log, NULL);
    if (bad == CL_SUCCESS)
        bad =
            f->cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof p->size, &p->size, NULL);
    if (bad == CL_SUCCESS) {
        p->binary = malloc(p->size);
        bad =
            f->cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof p->binary, &p->binary, NULL);
    }
    (void)f->cl.ReleaseProgram(program);
    return bad == CL_SUCCESS ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

int nvrtcGetProgramLogSize(nvrtcProgram p, size_t *size)
{
    *size = p->log ? strlen(p->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

int nvrtcGetProgramLog(nvrtcProgram p, char *out)
{
    strcpy(out, p->log ? p->log : "");
    return NVRTC_SUCCESS;
}

/* "FAKECUDA", the size of the binary, what it is for (below 0: PTX), the binary. */
static int image_size(nvrtcProgram p, size_t *size)
{
    *size = 16 + p->size;
    return p->binary ? NVRTC_SUCCESS : INVALID_INPUT;
}

static int image(nvrtcProgram p, char *out)
{
    uint32_t size = (uint32_t)p->size;
    int arch = p->machine ? p->arch : -p->arch;
    memcpy(out, "FAKECUDA", 8);
    memcpy(out + 8, &size, 4);
    memcpy(out + 12, &arch, 4);
    memcpy(out + 16, p->binary, p->size);
    return NVRTC_SUCCESS;
}

int nvrtcGetCUBINSize(nvrtcProgram p, size_t *size)
{
    return p->machine ? image_size(p, size) : INVALID_INPUT;
}
int nvrtcGetCUBIN(nvrtcProgram p, char *out) { return p->machine ? image(p, out) : INVALID_INPUT; }
int nvrtcGetPTXSize(nvrtcProgram p, size_t *size) { return image_size(p, size); }
int nvrtcGetPTX(nvrtcProgram p, char *out) { return image(p, out); }
