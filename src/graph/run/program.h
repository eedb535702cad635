/* program.h - a compiled graph: launches over one arena, and what must be patched to run it on other data. */
#ifndef STK_GRAPH_PROGRAM_H
#define STK_GRAPH_PROGRAM_H

#include "graph/ir/rewrite.h"
#include "graph/plan/plan.h"
#include "graph/run/store.h"

/* Two slots on a device that does not see the host's memory (feed.c). */
typedef struct stk_upload {
    stk_block *block[2];
    void *staging[2];    /* host memory that goes up fast; NULL until it is needed */
    stk_tensor *held[2]; /* on its way from such memory of its own */
    size_t bytes;        /* of each */
    stk_event *sent[2], *used[2];
    int32_t turn; /* slot of the last feed */
    bool taken;   /* a run has used it */
} stk_upload;

typedef struct stk_feed {
    const char *name;
    stk_type type;
    bool fed;
    stk_tensor *tensor; /* handle that keeps it alive (shared memory) */
    stk_upload *upload; /* NULL until the first feed that needs it */
    int64_t uniform_at; /* >= 0: goes along with every run, at this place of the uniforms */
} stk_feed;

/* An output. Its memory is the program's, an input's, or (outside) given by the caller before each run. */
typedef struct stk_fetch {
    const char *name;
    stk_type type;
    stk_link link;
    int32_t feed; /* which input it is, else -1 */
    bool outside;
} stk_fetch;

/* Numbers that change from run to run: the step, then inputs of a few bytes. */
enum { STK_UNIFORM_BYTES = 256 };

/* Tags of launches: which program (numbered in the order they were made, round and round) and which place. */
enum { STK_TAG_PLACE_BITS = 12, STK_TAG_SERIALS = 1 << 12 };
static inline uint32_t stk_launch_tag(uint32_t serial, int64_t place)
{
    uint32_t last = (1u << STK_TAG_PLACE_BITS) - 1;
    return serial << STK_TAG_PLACE_BITS | (place < last ? (uint32_t)place : last);
}

struct stk_program {
    struct stk_program *next_program; /* list of all programs, for reports */
    uint32_t serial;                  /* 1 .. STK_TAG_SERIALS - 1 */
    stk_graph *g;                     /* after all passes; names and types live here */
    stk_plan plan;                    /* its arena holds params and argument lists */
    stk_device *device;
    stk_store *store;
    stk_variable_use *uses; /* one per variable node */
    int64_t nuses;
    uint64_t clock;       /* of the store when it ran last */
    stk_block *constants; /* uniforms, constants */
    int64_t uniform_bytes;
    _Alignas(16) char uniforms[STK_UNIFORM_BYTES];
    int64_t step; /* number of the next run */
    stk_sequence *sequence;
    stk_address *slots; /* what is bound now: inputs, then outside results */
    struct stk_control *
        *control; /* per task: control flow at that place, or NULL; NULL when there is none */
    stk_feed *feeds;
    int32_t nfeeds;
    stk_fetch *fetches;
    int32_t nfetches;
    stk_islands islands; /* what runs on the CPU instead */
    bool results_stay;   /* those of stk_program_call, on the device */
    stk_program_stats stats;
};

/* As stk_program_new. */
enum {
    STK_COMPILE_OUTSIDE =
        1, /* results that are computed (not aliases) go to memory that the caller binds before each run */
    STK_COMPILE_AS_IT_IS = 2, /* all passes were run */
    /* As OUTSIDE, for memory of the host: only where the device sees that. Elsewhere results are read after the run. */
    STK_COMPILE_CALLER = 4,
};
stk_status stk_program_compile(const stk_graph *g, const stk_program_options *options, int flags,
                               stk_program **out, stk_error *err);

/* The address that a link stands for in the next run. */
static inline stk_address stk_program_address(const stk_program *p, const stk_link *link)
{
    return link->slot < 0 ? link->at : stk_address_plus(p->slots[link->slot], link->at.offset);
}

/* As stk_program_read and stk_program_feed, by number. */
stk_status stk_program_fetch(stk_program *p, int32_t i, stk_tensor **copy, stk_error *err);
stk_status stk_feed_slot(stk_program *p, int32_t i, stk_tensor *t, stk_error *err);
/* As stk_function_call without feeding; and what its inputs are called. */
stk_status stk_function_pick(stk_function *f, stk_tensor *const *x, stk_program **program,
                             stk_error *err);
const char *const *stk_function_names(const stk_function *f, int32_t *n);
/* feed.c */
stk_status stk_feeds_await(stk_program *p, stk_error *err); /* the queue waits for what was sent */
stk_status stk_feeds_used(stk_program *p, stk_error *err);  /* a run on the slots was queued */
void stk_feeds_release(stk_program *p);

/* program_registry.c: what is known about the launches of all living programs, for reports. `visit` must not make or release
 * programs; texts stay valid for the life of the process (names of ops, kernels and implementations). */
typedef struct stk_launch_facts {
    uint32_t tag;
    const char *label, *kernel, *impl;
    double flops, bytes;
    int32_t threads, parts;
    int32_t group;     /* launches of one program with the same number share a region */
    bool updates;      /* writes only into variables: the optimizer, moving averages */
    const char *place; /* the layer it was made for; "" when not known */
    bool backward;
    const char *device;
    bool remote; /* the device has a queue of its own: the caller does not wait for it */
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
    /* Of these: read where the host has them; copied to memory that goes up fast, then sent; sent from such memory straight away;
     * made on the device itself from what lives there. */
    double in_place_bytes, staged_bytes, pinned_bytes, resident_bytes;
    stk_program_stats stats;
    const stk_launch_facts *launches;
    int64_t nlaunches;
    const stk_buffer_facts *buffers;
    int64_t nbuffers;
    double weight_bytes, optimizer_bytes, metric_bytes; /* of the variables it uses */
    const stk_island *islands;
    int64_t nislands;
} stk_program_facts;
stk_status stk_program_visit(void (*visit)(void *context, const stk_program_facts *facts),
                             void *context, stk_error *err);
void stk_program_number(stk_program *p); /* gives it its serial; before launches are made */
void stk_program_enlist(stk_program *p); /* once it is complete */
void stk_program_delist(stk_program *p);

/* compile.c: everything between a graph and a runnable program. */
stk_status stk_program_emit(stk_program *p, const stk_program_options *options, stk_error *err);

#endif
