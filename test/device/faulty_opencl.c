/* An OpenCL library with faults on order. Functions that are not here are those of the real loader, which this one is linked with; those that are
 * here call it, unless a fault was planted with faulty_plant. Every function counts its calls. */
#include "device/opencl/api.h"

#include <dlfcn.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct fault {
    const char *name; /* of a function */
    int64_t after;    /* this many good calls */
    cl_int code;
    int all; /* and every function after that, too: the device is gone */
} fault;
static fault planted;
static cl_int gone;

static struct {
    const char *name;
    int64_t count;
} calls[16];

EXPORT void faulty_plant(const char *name, int64_t after, cl_int code, int all);
EXPORT void faulty_plant(const char *name, int64_t after, cl_int code, int all)
{
    planted = (fault){name, after, code, all};
    gone = 0;
    memset(calls, 0, sizeof calls);
}

EXPORT int64_t faulty_calls(const char *name);
EXPORT int64_t faulty_calls(const char *name)
{
    for (int i = 0; i < 16 && calls[i].name; i++)
        if (!strcmp(calls[i].name, name)) return calls[i].count;
    return 0;
}

static cl_int note(const char *name)
{
    int i = 0;
    while (i < 15 && calls[i].name && strcmp(calls[i].name, name)) i++;
    calls[i].name = name;
    calls[i].count++;
    if (gone) return gone;
    if (!planted.name || strcmp(planted.name, name) || calls[i].count <= planted.after) return 0;
    if (planted.all) gone = planted.code;
    return planted.code;
}

static void *real(const char *name)
{
    static void *library;
    if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

#define REAL(name, result, ...)                                                                    \
    static result(*call) __VA_ARGS__;                                                              \
    if (!call) *(void **)(void *)&call = real("cl" #name);                                         \
    cl_int bad = note(#name)

EXPORT cl_mem clCreateBuffer(cl_context c, cl_bits flags, size_t size, void *host, cl_int *code);
EXPORT cl_mem clCreateBuffer(cl_context c, cl_bits flags, size_t size, void *host, cl_int *code)
{
    REAL(CreateBuffer, cl_mem, (cl_context, cl_bits, size_t, void *, cl_int *));
    if (!bad) return call(c, flags, size, host, code);
    *code = bad;
    return NULL;
}

EXPORT cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                             void (*f)(cl_program, void *), void *data);
EXPORT cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                             void (*f)(cl_program, void *), void *data)
{
    REAL(BuildProgram, cl_int,
         (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),
          void *));
    return bad ? bad : call(p, n, d, options, f, data);
}

EXPORT cl_program clCreateProgramWithSource(cl_context c, cl_uint n, const char **text,
                                            const size_t *size, cl_int *code);
EXPORT cl_program clCreateProgramWithSource(cl_context c, cl_uint n, const char **text,
                                            const size_t *size, cl_int *code)
{
    REAL(CreateProgramWithSource, cl_program,
         (cl_context, cl_uint, const char **, const size_t *, cl_int *));
    if (!bad) return call(c, n, text, size, code);
    *code = bad;
    return NULL;
}

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint n, const size_t *a,
                                     const size_t *b, const size_t *c, cl_uint m, const cl_event *e,
                                     cl_event *f);
EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint n, const size_t *a,
                                     const size_t *b, const size_t *c, cl_uint m, const cl_event *e,
                                     cl_event *f)
{
    REAL(EnqueueNDRangeKernel, cl_int,
         (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
          cl_uint, const cl_event *, cl_event *));
    return bad ? bad : call(q, k, n, a, b, c, m, e, f);
}

EXPORT cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_uint block, size_t at, size_t n,
                                  void *to, cl_uint c, const cl_event *e, cl_event *f);
EXPORT cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_uint block, size_t at, size_t n,
                                  void *to, cl_uint c, const cl_event *e, cl_event *f)
{
    REAL(EnqueueReadBuffer, cl_int,
         (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *,
          cl_event *));
    return bad ? bad : call(q, m, block, at, n, to, c, e, f);
}

EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_uint block, size_t at, size_t n,
                                   const void *from, cl_uint c, const cl_event *e, cl_event *f);
EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_uint block, size_t at, size_t n,
                                   const void *from, cl_uint c, const cl_event *e, cl_event *f)
{
    REAL(EnqueueWriteBuffer, cl_int,
         (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint,
          const cl_event *, cl_event *));
    return bad ? bad : call(q, m, block, at, n, from, c, e, f);
}

EXPORT cl_int clFinish(cl_command_queue q);
EXPORT cl_int clFinish(cl_command_queue q)
{
    REAL(Finish, cl_int, (cl_command_queue));
    return bad ? bad : call(q);
}

EXPORT cl_int clFlush(cl_command_queue q);
EXPORT cl_int clFlush(cl_command_queue q)
{
    REAL(Flush, cl_int, (cl_command_queue));
    return bad ? bad : call(q);
}
