/* Modules, launches and graphs of the driver that is none: see fake_cuda.h. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- modules and functions ------------------------------------------------------------------------------- */

enum { MOST_ARGUMENTS = 640 };
struct stk_cu_function {
    CUfunction next;
    cl_kernel kernel;
    char *name;
    cl_uint n;
    struct {
        size_t bytes; /* 0: a block of memory */
    } argument[MOST_ARGUMENTS];
};
struct stk_cu_module {
    cl_program program;
    CUfunction functions;
};

static int refuse_ptx(unsigned n, const int *options, void **values)
{
    for (unsigned i = 0; i < n; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], "error: Unsupported .version 9.0; current version is '8.4'");
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/* Machine code is for one card, or for its younger sisters; PTX a driver may be too old for. */
int cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, int *options, void **values)
{
    ENTER;
    fake *f = fake_open();
    uint64_t size = 0;
    cl_int code = 0, good = 0;
    int arch = 0;
    if (memcmp(image, "FAKECUDA", 8) != 0) return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&arch, (const char *)image + 12, sizeof arch);
    if (arch < 0 && fake_number("STK_FAKE_CUDA_NO_PTX", 0)) return refuse_ptx(n, options, values);
    if (arch > 0 && (arch / 10 != f->sm / 10 || arch > f->sm)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    memcpy(&size, (const char *)image + 8, 4);
    const unsigned char *binary = (const unsigned char *)image + 16;
    size_t bytes = size;
    cl_program program =
        f->cl.CreateProgramWithBinary(f->context, 1, &f->id, &bytes, &binary, &good, &code);
    if (!program || f->cl.BuildProgram(program, 1, &f->id, "-cl-kernel-arg-info", NULL, NULL) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    *out = calloc(1, sizeof **out);
    (*out)->program = program;
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuModuleUnload(CUmodule m)
{
    while (m->functions) {
        CUfunction f = m->functions;
        m->functions = f->next;
        (void)fake_open()->cl.ReleaseKernel(f->kernel);
        free(f->name);
        free(f);
    }
    (void)fake_open()->cl.ReleaseProgram(m->program);
    free(m);
    fake_live(-1);
    return CUDA_SUCCESS;
}

/* How large a struct is, a kernel without a purpose says (fake_nvrtc.c); all other arguments by value are offsets. */
static size_t value_bytes(fake *f, cl_program program, const char *type)
{
    char name[96];
    size_t group[3] = {0};
    cl_int code = 0;
    if (strncmp(type, "sk_", 3) != 0 || !strcmp(type, "sk_long")) return sizeof(int64_t);
    snprintf(name, sizeof name, "fake_size_%s", type);
    cl_kernel k = f->cl.CreateKernel(program, name, &code);
    if (!k) return 0;
    (void)f->GetKernelWorkGroupInfo(k, f->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof group,
                                    group, NULL);
    (void)f->cl.ReleaseKernel(k);
    return group[0];
}

static int learn_arguments(fake *f, cl_program program, CUfunction k)
{
    if (f->GetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof k->n, &k->n, NULL) ||
        k->n > MOST_ARGUMENTS)
        return CUDA_ERROR_INVALID_IMAGE;
    for (cl_uint i = 0; i < k->n; i++) {
        cl_uint where = 0;
        char type[64] = "";
        if (f->GetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where,
                                NULL) ||
            f->GetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL))
            return CUDA_ERROR_INVALID_IMAGE;
        if (where == CL_KERNEL_ARG_ADDRESS_GLOBAL) continue;
        k->argument[i].bytes = value_bytes(f, program, type);
        if (!k->argument[i].bytes) return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

int cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    ENTER;
    fake *f = fake_open();
    cl_int code = 0;
    for (*out = m->functions; *out; *out = (*out)->next)
        if (!strcmp((*out)->name, name)) return CUDA_SUCCESS;
    cl_kernel kernel = f->cl.CreateKernel(m->program, name, &code);
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    CUfunction k = calloc(1, sizeof *k);
    k->kernel = kernel;
    k->name = strdup(name);
    k->next = m->functions;
    m->functions = *out = k;
    return learn_arguments(f, m->program, k);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

struct fake_node {
    CUfunction function;
    size_t global[3], local[3];
    char *values; /* of all arguments, one behind the other */
};

static size_t size_of(CUfunction k, cl_uint i)
{
    return k->argument[i].bytes ? k->argument[i].bytes : sizeof(CUdeviceptr);
}

static char *copy_values(CUfunction k, void **given)
{
    size_t all = 0;
    for (cl_uint i = 0; i < k->n; i++) all += size_of(k, i);
    char *values = malloc(all + 1), *at = values;
    for (cl_uint i = 0; i < k->n; i++) {
        memcpy(at, given[i], size_of(k, i));
        at += size_of(k, i);
    }
    return values;
}

static int run_node(CUstream s, const fake_node *n)
{
    fake *f = fake_open();
    CUfunction k = n->function;
    const char *at = n->values;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < k->n && code == CL_SUCCESS; at += size_of(k, i), i++) {
        if (k->argument[i].bytes) {
            code = f->cl.SetKernelArg(k->kernel, i, k->argument[i].bytes, at);
            continue;
        }
        CUdeviceptr given = 0;
        memcpy(&given, at, sizeof given);
        fake_block *b = fake_block_at(given, 1);
        if (!b || b->at != given) return CUDA_ERROR_ILLEGAL_ADDRESS;
        code = f->cl.SetKernelArg(k->kernel, i, sizeof b->mem, &b->mem);
    }
    if (code == CL_SUCCESS)
        code = f->cl.EnqueueNDRangeKernel(s->queue, k->kernel, 3, NULL, n->global, n->local, 0,
                                          NULL, NULL);
    (void)f->cl.Flush(s->queue);
    return fake_code(code);
}

int cuLaunchKernel(CUfunction k, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                   unsigned c, unsigned shared, CUstream s, void **given, void **extra)
{
    ENTER;
    int code = CUDA_SUCCESS;
    if (!x || !y || !z || y > 65535 || z > 65535 || !a || !b || !c || a * b * c > 1024 || shared ||
        extra)
        return CUDA_ERROR_INVALID_VALUE;
    fake_node n = {
        k, {(size_t)x * a, (size_t)y * b, (size_t)z * c}, {a, b, c}, copy_values(k, given)};
    fake_lock();
    if (s->capturing) {
        s->nodes = realloc(s->nodes, (size_t)(s->nnodes + 1) * sizeof n);
        s->nodes[s->nnodes++] = n;
    } else {
        code = run_node(s, &n);
        free(n.values);
    }
    fake_unlock();
    return code;
}

/* ---- graphs ---------------------------------------------------------------------------------------------- */

struct stk_cu_graph {
    fake_node *nodes;
    int n, refs; /* of the graph and of what was made of it */
};
struct stk_cu_graph_exec {
    CUgraph graph;
};

int cuStreamBeginCapture_v2(CUstream s, int mode)
{
    ENTER;
    if (s->capturing || mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    s->capturing = 1;
    return CUDA_SUCCESS;
}

static void drop_graph(CUgraph g)
{
    if (--g->refs) return;
    for (int i = 0; i < g->n; i++) free(g->nodes[i].values);
    free(g->nodes);
    free(g);
}

/* The capture is over in any case. */
int cuStreamEndCapture(CUstream s, CUgraph *out)
{
    CUgraph g = calloc(1, sizeof *g);
    int code = fake_enter(__func__);
    *g = (struct stk_cu_graph){s->nodes, s->nnodes, 1};
    if (!s->capturing) code = CUDA_ERROR_INVALID_VALUE;
    s->capturing = s->nnodes = 0;
    s->nodes = NULL;
    *out = NULL;
    if (code) {
        drop_graph(g);
        return code;
    }
    *out = g;
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    ENTER;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    (*out)->graph = g;
    g->refs++;
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuGraphLaunch(CUgraphExec e, CUstream s)
{
    ENTER;
    int code = CUDA_SUCCESS;
    fake_lock();
    for (int i = 0; i < e->graph->n && !code; i++) code = run_node(s, &e->graph->nodes[i]);
    fake_unlock();
    return code;
}

int cuGraphExecDestroy(CUgraphExec e)
{
    drop_graph(e->graph);
    free(e);
    fake_live(-1);
    return CUDA_SUCCESS;
}

int cuGraphDestroy(CUgraph g)
{
    drop_graph(g);
    fake_live(-1);
    return CUDA_SUCCESS;
}
