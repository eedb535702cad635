/* selftest.h - does this machine compute right? Every kernel of every instruction set that the processor has, against the
 * reference kernels, on shapes at the edges of vectors and blocks.
 *
 *     stk_error err;
 *     stk_selftest_options options = stk_selftest_options_defaults();
 *     stk_selftest_report *report = NULL;
 *     options.only = "reduce"; // all of them takes some seconds
 *     if (stk_selftest_run(&options, &report, &err) != STK_OK) puts(err.message);
 *     else printf("%d cases, %d wrong\n", (int)report->cases, (int)report->failures);
 *     stk_selftest_release(report);
 *
 * It changes the instruction set of the whole process while it runs: no other program may run meanwhile. */
#ifndef STOKER_SELFTEST_H
#define STOKER_SELFTEST_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_selftest_options {
    stk_device *device; /* NULL: cpu:0 */
    const char *only;   /* kernels whose names contain this; NULL: all */
    const char *set;    /* this instruction set; NULL: all that the processor has */
    bool small;         /* only cases of at most 1000 numbers, for interpreters of kernels */
} stk_selftest_options;
STK_API stk_selftest_options stk_selftest_options_defaults(void);

/* An instruction set that kernels are written for. */
typedef struct stk_selftest_set {
    char name[16]; /* "base", "avx2", "avx512", "amx"; "amx-emulated" when it is asked for */
    bool built;    /* this library has it */
    bool here;     /* and the processor, too */
    bool ran;      /* and it was asked for */
} stk_selftest_set;

/* One implementation of one kernel with one instruction set. */
typedef struct stk_selftest_row {
    char kernel[24], implementation[16];
    char set[16]; /* "" for libraries, which choose theirs */
    int64_t cases, failures;
    double worst;    /* largest |got - want| / (1 + |want|) */
    char where[120]; /* the first case that failed, or the one with the largest difference */
} stk_selftest_row;

typedef struct stk_selftest_report {
    char device[32], detail[160], compiler[64];
    int32_t nsets, nrows;
    stk_selftest_set sets[8];
    stk_selftest_row *rows; /* by kernel, in the order of the table of kernels */
    int64_t cases, failures;
    double seconds;
} stk_selftest_report;

/* Wrong results are no error of this call: they are counted in the report. */
STK_API STK_MUST_USE stk_status stk_selftest_run(const stk_selftest_options *options,
                                                 stk_selftest_report **out, stk_error *err);
STK_API void stk_selftest_release(stk_selftest_report *report);

#ifdef __cplusplus
}
#endif
#endif
