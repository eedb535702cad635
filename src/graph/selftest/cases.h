/* cases.h - what the selftest computes: small graphs, each around one kind of kernel. */
#ifndef STK_GRAPH_SELFTEST_CASES_H
#define STK_GRAPH_SELFTEST_CASES_H

#include "stoker/graph.h"

enum { STK_CASE_INPUTS = 8, STK_CASE_NUMBERS = 10 };

/* A graph being built, with the tensors to feed it. */
typedef struct stk_case_graph {
    stk_graph *g;
    stk_dtype real;   /* element type of real inputs */
    bool exact;       /* results must agree to the bit: integers, moves, random numbers */
    double tolerance; /* 0: that of the element type */
    int32_t inputs;
    stk_tensor *tensor[STK_CASE_INPUTS]; /* for the graph's inputs x0, x1, ... */
    stk_val in[STK_CASE_INPUTS];
    uint64_t random;
    stk_status status;
} stk_case_graph;

/* One row: builds a graph from a few numbers (sizes, mostly). */
typedef struct stk_case {
    const char *name;
    stk_val (*build)(stk_case_graph *c, const int64_t *n);
    int64_t n[STK_CASE_NUMBERS];
    stk_dtype real;
    bool gradients; /* also those of all real inputs */
} stk_case;

/* Case number i: its name in `text`. False behind the last one. */
bool stk_case_at(int32_t i, stk_case *out, char *text, size_t size);

/* The graph of a case with outputs y and d0, d1, ...; false when there is no such operation for its element type. */
bool stk_case_open(const stk_case *row, stk_case_graph *out, stk_error *err);
void stk_case_close(stk_case_graph *c);

#endif
