/* program.h - a compiled graph: launches over one arena, and what must be patched to run it on other data. */
#ifndef STK_GRAPH_PROGRAM_H
#define STK_GRAPH_PROGRAM_H

#include "graph/plan/elect.h"
#include "graph/plan/plan.h"
#include "graph/run/store.h"

/* An input: where its address stands in the launches' argument lists. Feeding writes these and nothing else. */
typedef struct stk_patch {
    void **where;
    int64_t offset;
} stk_patch;

typedef struct stk_feed {
    const char *name;
    stk_type type;
    stk_patch *patches;
    int32_t npatches;
    void *address;      /* what is bound now */
    stk_tensor *tensor; /* handle that keeps it alive (shared memory) */
    void *copy;         /* device memory of our own (conversion or device without shared memory) */
} stk_feed;

/* An output. Its memory is the program's, an input's, or (outside) given by the caller before each run. */
typedef struct stk_fetch {
    const char *name;
    stk_type type;
    void *address; /* NULL for outputs that are inputs or outside */
    int32_t feed;  /* which input it is, else -1 */
    int64_t offset;
    bool outside;
    stk_patch *patches;
    int32_t npatches;
    int32_t
        twin; /* outside and the same value as this earlier output, which is the one that is written; else -1 */
    void *bound; /* memory given for this run (control flow) */
} stk_fetch;

/* Whether threads help a program is found out by trying (trial.c). */
enum { STK_TRIAL_KEPT = 16 };
typedef struct stk_thread_trial {
    int32_t threads; /* the decision so far: 1, or 0 for as many as each launch wants */
    int32_t block;   /* runs of one kind in a row during a trial; 0: there is none, ever */
    int32_t rounds, done;
    int64_t spent[2]; /* nanoseconds in this trial, [one thread, all] */
    int64_t rest;     /* runs until the next trial */
    int32_t kept[2];
    int64_t ns[2][STK_TRIAL_KEPT]; /* [one thread, all], rising */
} stk_thread_trial;

/* Tags of launches: which program (numbered in the order they were made, round and round) and which place. */
enum { STK_TAG_PLACE_BITS = 12, STK_TAG_SERIALS = 1 << 12 };
static inline uint32_t stk_launch_tag(uint32_t serial, int64_t place)
{
    uint32_t last = (1u << STK_TAG_PLACE_BITS) - 1;
    return serial << STK_TAG_PLACE_BITS | (place < last ? (uint32_t)place : last);
}

struct stk_program {
    struct stk_program *next_live; /* list of all programs, for reports */
    uint32_t serial;               /* 1 .. STK_TAG_SERIALS - 1 */
    stk_graph *g;                  /* after all passes; names and types live here */
    stk_plan plan;                 /* its arena holds params and argument lists */
    stk_device *device;
    stk_store *store;
    void *memory; /* arena: activations, gradients, scratch */
    int64_t memory_bytes;
    void *constants;
    int64_t constant_bytes;
    stk_thread_trial trial;
    int64_t step;       /* number of the next run */
    void *step_address; /* where launches read it */
    stk_launch *launches;
    int64_t nlaunches;
    struct stk_control *
        *control; /* per launch: control flow at that place, or NULL; NULL when there is none */
    stk_feed *feeds;
    int32_t nfeeds;
    stk_fetch *fetches;
    int32_t nfetches;
    stk_program_stats stats;
};

/* As stk_program_new; with outside_results, results that are computed (not aliases) are written to memory that the caller
 * binds before each run. */
stk_status stk_program_compile(const stk_graph *g, const stk_program_options *options,
                               bool outside_results, stk_program **out, stk_error *err);

static inline void stk_patch_all(const stk_patch *patches, int32_t n, void *address)
{
    for (int32_t i = 0; i < n; i++) *patches[i].where = (char *)address + patches[i].offset;
}

/* live.c: what is known about the launches of all living programs, for reports. `visit` must not make or release
 * programs; texts stay valid for the life of the process (names of ops, kernels and implementations). */
typedef struct stk_launch_facts {
    uint32_t tag;
    const char *label, *kernel, *impl;
    double flops, bytes;
    int32_t threads, parts;
    bool updates;      /* writes only into variables: the optimizer, moving averages */
    const char *place; /* the layer it was made for; "" when not known */
    bool backward;
} stk_launch_facts;
/* A piece of the arena, alive from group `first` to `last`. */
typedef struct stk_buffer_facts {
    int64_t at, bytes;
    int32_t first, last;
    int8_t kind; /* stk_part of what it holds; SCRATCH: memory that one kernel works in */
    const char *place;
} stk_buffer_facts;
enum { STK_BUFFER_SCRATCH = STK_PART_UPDATE + 1, STK_BUFFER_KINDS };

typedef struct stk_program_facts {
    uint32_t serial;
    int64_t runs;       /* steps so far */
    double input_bytes; /* of all inputs of one run */
    stk_program_stats stats;
    const stk_launch_facts *launches;
    int64_t nlaunches;
    const stk_buffer_facts *buffers;
    int64_t nbuffers;
    double weight_bytes, optimizer_bytes, metric_bytes; /* of the variables it uses */
} stk_program_facts;
stk_status stk_program_visit(void (*visit)(void *context, const stk_program_facts *facts),
                             void *context, stk_error *err);
void stk_program_number(stk_program *p); /* gives it its serial; before launches are made */
void stk_program_enlist(stk_program *p); /* once it is complete */
void stk_program_delist(stk_program *p);

/* trial.c: sets up the trials of a new program, if it needs any; a run that is part of one. */
void stk_program_start_trial(stk_program *p);
stk_status stk_program_run_trial(stk_program *p, stk_error *err);
/* program.c: one run, on at most so many threads; 0: as many as each launch wants. */
stk_status stk_program_run_once(stk_program *p, int32_t threads, stk_error *err);

/* compile.c: everything between a graph and a runnable program. */
stk_status stk_program_emit(stk_program *p, const stk_program_options *options, stk_error *err);

#endif
