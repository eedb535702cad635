/* Kernels that list what is not zero, on stacks that hold anything. A compiler once kept half of a register's mask on the stack and read
 * all of it back (vec/lanes.h, vf_nonzero): lists grew by what had been there before. */
#include "check.h"

#include "device/cpu/isa.h"
#include "device/cpu/vec/gemm.h"

enum { M = 33, N = 96, K = 300, STACK = 16 * 1024 };

/* What is called next finds these bytes where it keeps what its registers do not hold. */
static __attribute__((noinline)) void fill_stack(int byte)
{
    char all[STACK];
    memset(all, byte, sizeof all);
    __asm__ volatile("" : : "r"(all) : "memory"); /* somebody might read it: it is filled */
}

/* Few zeros where a list ends, so that one that is too long leads to what nobody wrote; enough of them in all. */
static void fill_sides(float *a, float *b, bool turned)
{
    uint32_t state = 1;
    for (int64_t r = 0; r < M; r++)
        for (int64_t k = 0; k < K; k++) {
            state = state * 1664525u + 1013904223u;
            a[turned ? k * M + r : r * K + k] = k % 64 < 48 && k % 4 ? 0 : (float)(state >> 20);
        }
    for (int64_t i = 0; i < K * N; i++) b[i] = (float)(i % 7 - 3);
}

static void check_product(const stk_vec *vec, bool turned, int byte)
{
    static float a[M * K], b[K * N], c[M * N], want[M * N];
    const stk_gemm g = {.m = M,
                        .n = N,
                        .k = K,
                        .batch = 1,
                        .lda = turned ? M : K,
                        .ldb = N,
                        .ldc = N,
                        .ta = turned,
                        .dtype = STK_F32,
                        .zeros = STK_ZEROS_A};
    const size_t bytes = (size_t)vec->gemm_zeros->scratch(&g);
    void *scratch = stk_malloc(bytes);
    stk_gemm_job job = {.whole = &g, .a = a, .b = b, .c = want, .scratch = scratch};
    job.row_hi = M;
    job.col_hi = N;
    fill_sides(a, b, turned);
    vec->gemm->run[STK_F32](&job);
    job.c = c;
    memset(scratch, 0x3f, bytes);
    fill_stack(byte);
    vec->gemm_zeros->run(&job);
    CHECK_MSG(!memcmp(c, want, sizeof c), "%s, turned %d, on a stack of %02x", vec->name, turned,
              byte);
    stk_free(scratch);
}

/* A byte with one bit: more of them would make lists so long that the dense kernel takes over. */
TEST(products_that_skip_zeros)
{
    static const char *const sets[] = {"base", "avx2", "avx512"};
    for (int s = 0; s < 3; s++) {
        const stk_vec *vec = stk_vec_find(sets[s]);
        for (int i = 0; vec && i < 4; i++) check_product(vec, i & 1, i / 2);
    }
}

TEST_MAIN()
