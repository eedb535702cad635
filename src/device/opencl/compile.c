/* compile.c - kernel text, programs and kernels, by the compiler of an OpenCL driver. */
#include "device/opencl/opencl.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static void all_options(const stk_cl_device *d, char *out, size_t size)
{
    /* -w: some drivers print warnings on the error stream of whoever trains */
    snprintf(out, size, "-cl-std=CL1.2 -w -DSK_OPENCL%s%s", d->has_f64 ? " -DSK_HAS_F64" : "",
             d->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

static char *log_of(const stk_opencl *d, cl_program program)
{
    size_t size = 0;
    char *log = NULL;
    (void)d->cl->GetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size && size < 1 << 20) log = stk_calloc(1, size + 1);
    if (log)
        (void)d->cl->GetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    return log;
}

static stk_status build(stk_cl_device *device, const stk_cl_source *source, const char *options,
                        void **out, char **said, stk_error *err)
{
    stk_opencl *d = (stk_opencl *)device;
    const stk_cl_source *dialect = stk_cl_text("dialect.h"), *params = stk_cl_text("params.h");
    const char *text[] = {dialect->text, params->text, source->text};
    const size_t size[] = {dialect->size, params->size, source->size};
    cl_int code = CL_SUCCESS;
    cl_program program = d->cl->CreateProgramWithSource(d->context, 3, text, size, &code);
    if (program && code == CL_SUCCESS)
        code = d->cl->BuildProgram(program, 1, &d->id, options, NULL, NULL);
    if (program && code == CL_SUCCESS) {
        *out = program;
        return STK_OK;
    }
    if (program) *said = log_of(d, program);
    if (program) (void)d->cl->ReleaseProgram(program);
    return stk_fail(err, STK_ERR_DEVICE, "%s", stk_cl_error_name(code));
}

/* Its own driver keeps programs of NVIDIA; what it hands out is its intermediate language only. */
static bool keeps_its_own(const stk_cl_device *d) { return strstr(d->driver, "NVIDIA") != NULL; }

static size_t binary_of(stk_cl_device *device, void *program, unsigned char **out)
{
    enum { MOST_BINARY = 64 << 20 };
    stk_opencl *d = (stk_opencl *)device;
    size_t size = 0;
    if (keeps_its_own(device) ||
        d->cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) !=
            CL_SUCCESS ||
        size == 0 || size > MOST_BINARY)
        return 0;
    unsigned char *binary = stk_malloc(size);
    if (!binary) return 0;
    if (d->cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) !=
        CL_SUCCESS)
        size = 0;
    *out = binary;
    return size;
}

static void *revive(stk_cl_device *device, const unsigned char *binary, size_t size,
                    const char *options)
{
    stk_opencl *d = (stk_opencl *)device;
    cl_int code = CL_SUCCESS, good = CL_SUCCESS;
    cl_program program =
        d->cl->CreateProgramWithBinary(d->context, 1, &d->id, &size, &binary, &good, &code);
    if (program && (code != CL_SUCCESS || good != CL_SUCCESS ||
                    d->cl->BuildProgram(program, 1, &d->id, options, NULL, NULL) != CL_SUCCESS)) {
        (void)d->cl->ReleaseProgram(program);
        program = NULL;
    }
    return program;
}

static void program_free(stk_cl_device *device, void *program)
{
    (void)((stk_opencl *)device)->cl->ReleaseProgram(program);
}

static stk_status kernel_new(stk_cl_device *device, void *program, const char *name, void **out,
                             stk_error *err)
{
    stk_opencl *d = (stk_opencl *)device;
    cl_int code = CL_SUCCESS;
    *out = d->cl->CreateKernel(program, name, &code);
    return *out ? STK_OK : stk_opencl_fail(d, name, code, err);
}

static void kernel_free(stk_cl_device *device, void *kernel)
{
    (void)((stk_opencl *)device)->cl->ReleaseKernel(kernel);
}

static stk_status argument(stk_cl_device *device, void *kernel, int32_t index, size_t bytes,
                           const void *value, stk_error *err)
{
    stk_opencl *d = (stk_opencl *)device;
    cl_int code = d->cl->SetKernelArg(kernel, (cl_uint)index, bytes, value);
    return code == CL_SUCCESS ? STK_OK : stk_opencl_fail(d, "an argument", code, err);
}

const stk_cl_backend stk_opencl_backend = {.log = "STOKER_OPENCL_LOG",
                                           .folder = "opencl",
                                           .options = all_options,
                                           .build = build,
                                           .binary = binary_of,
                                           .revive = revive,
                                           .program_free = program_free,
                                           .kernel_new = kernel_new,
                                           .kernel_free = kernel_free,
                                           .argument = argument};
