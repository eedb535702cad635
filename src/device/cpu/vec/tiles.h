/* tiles.h - registers that hold tiles, as Intel's AMX has them: eight of 16 rows of 64 bytes, and an instruction that adds the
 * product of two tiles to a third. Five words, made twice: by the instructions, and by plain C with the meaning that Intel's
 * manual gives them, so that what is written in these words can be run and tested on any processor of the set.
 *
 *     zero(t)               all zeros
 *     load(t, from, row)    16 rows of 64 bytes, `row` bytes apart
 *     pass(t, from, row)    the same of what is not needed again soon, and should leave the first level to other things
 *     store(t, to, row)
 *     dot(c, a, b)          c[i][j] += the sum over 16 pairs p of  a[i][p].low * b[p][j].low + a[i][p].high * b[p][j].high:
 *                           c is floats, a and b are pairs of bfloat16; a holds rows, b 16 columns zipped (pairs.h)
 *
 * Instructions have numbers of tiles, not variables: the words are macros, TILE_zero ... and STANDIN_zero ... The stand-ins
 * need `tile *file` in scope.
 *
 * How a dot product rounds: sums of low and of high terms apart, by fused multiply-adds in the order of the pairs; then both together, then
 * that to c. Subnormal numbers count as zero, whatever the thread has set: the stand-in relies on the mode
 * that all kernels run in (base/float_env.h). */
#ifndef STK_DEVICE_CPU_VEC_TILES_H
#define STK_DEVICE_CPU_VEC_TILES_H

#include "device/cpu/vec/lanes.h"

#if STK_HAS_PAIRS && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define STK_HAS_TILES 1
#else
#define STK_HAS_TILES 0
#endif

#if STK_HAS_TILES

enum { TILE_ROWS = 16, TILE_ROW = 64, TILE_BYTES = TILE_ROWS * TILE_ROW };

typedef struct tile {
    uint32_t row[TILE_ROWS][TILE_ROW / 4];
} __attribute__((aligned(64))) tile;

/* ---- instructions ---------------------------------------------------------------------------------------
 * Functions that use them are marked STK_TILES and called only after stk_isa_has_tiles(). Written out, since the compiler's
 * own words for loads do not say that they read memory. */

#define STK_TILES __attribute__((target("avx512bf16,amx-tile,amx-bf16")))

#define TILE_zero(t) __asm__ volatile("tilezero %%tmm" #t ::: "memory")
#define TILE_load(t, from, row_bytes)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(row_bytes) : "memory")
#define TILE_pass(t, from, row_bytes)                                                              \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #t ::"r"(from), "r"(row_bytes) : "memory")
#define TILE_store(t, to, row_bytes)                                                               \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(row_bytes) : "memory")
#define TILE_dot(c, a, b)                                                                          \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")

/* The layout of LDTILECFG's operand. All eight tiles are whole: what is smaller is padded where it is packed. */
typedef struct tile_shapes {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

/* Around everything else, on the thread that does it. Releasing gives the state back: a thread that sleeps with tiles in use costs
 * power and context switches 8 KB more. */
STK_TILES static inline void tiles_begin(void)
{
    tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.row_bytes[i] = TILE_ROW;
        shapes.rows[i] = TILE_ROWS;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
}
STK_TILES static inline void tiles_end(void) { __asm__ volatile("tilerelease" ::: "memory"); }

/* ---- stand-ins ------------------------------------------------------------------------------------------- */

static inline void standin_load(tile *t, const void *from, int64_t row)
{
    for (int i = 0; i < TILE_ROWS; i++)
        __builtin_memcpy(t->row[i], (const char *)from + i * row, TILE_ROW);
}

static inline void standin_store(const tile *t, void *to, int64_t row)
{
    for (int i = 0; i < TILE_ROWS; i++) __builtin_memcpy((char *)to + i * row, t->row[i], TILE_ROW);
}

static inline float standin_float(uint32_t bits)
{
    float f;
    __builtin_memcpy(&f, &bits, sizeof f);
    return f;
}

static inline void standin_dot(tile *c, const tile *a, const tile *b)
{
    for (int i = 0; i < TILE_ROWS; i++) {
        float low[TILE_ROWS] = {0}, high[TILE_ROWS] = {0}, old[TILE_ROWS];
        for (int p = 0; p < TILE_ROWS; p++) {
            const uint32_t x = a->row[i][p];
            const float x_low = standin_float(x << 16), x_high = standin_float(x & 0xffff0000u);
            for (int j = 0; j < TILE_ROWS; j++) {
                const uint32_t y = b->row[p][j];
                low[j] = __builtin_fmaf(x_low, standin_float(y << 16), low[j]);
                high[j] = __builtin_fmaf(x_high, standin_float(y & 0xffff0000u), high[j]);
            }
        }
        __builtin_memcpy(old, c->row[i], sizeof old);
        for (int j = 0; j < TILE_ROWS; j++) {
            const float sum = low[j] + high[j];
            old[j] = old[j] + sum;
        }
        __builtin_memcpy(c->row[i], old, sizeof old);
    }
}

#define STANDIN_zero(t)                  (file[t] = (tile){0})
#define STANDIN_load(t, from, row_bytes) standin_load(&file[t], from, row_bytes)
#define STANDIN_pass(t, from, row_bytes) standin_load(&file[t], from, row_bytes)
#define STANDIN_store(t, to, row_bytes)  standin_store(&file[t], to, row_bytes)
#define STANDIN_dot(c, a, b)             standin_dot(&file[c], &file[a], &file[b])

#endif
#endif
