/* node.h - the inside of datasets: how a node is written.
 *
 * A node kind is one file in src/data/nodes/ with one static table. Three layers of things:
 *
 *     stk_dataset   the description: immutable, counted, a tree
 *     stk_stage     a node of a running stream: its dataset, its inputs' stages, its counters
 *     stk_iter      one walk over a stage in one epoch (a repeat opens one after the other)
 *
 * A node gives its elements by number (`get`, when ds->random), in order (`walk`), or both. When it can do it by
 * number, order comes for free, positions are one integer, and any worker can make any element: that is the fast way.
 * What is made has to be a function of (dataset, epoch, number) alone; random bits are keyed by these.
 *
 * Errors: an element that cannot be made fails its `get` or `next`; the call after it goes on behind it. */
#ifndef STK_DATA_NODE_H
#define STK_DATA_NODE_H

#include "base/memory.h"
#include "base/status.h"
#include "data/core/schema.h"
#include "data/core/state.h"
#include "stoker/data.h"

typedef struct stk_run stk_run;
typedef struct stk_stage stk_stage;
typedef struct stk_iter stk_iter;

/* Going through a stage in order. `own` is `size` zeroed bytes per iterator. */
typedef struct stk_walk {
    size_t size;
    stk_status (*open)(stk_iter *it, stk_error *err); /* optional; close is called when it fails */
    stk_status (*next)(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err);
    /* Save must leave the walk as it is. Restore comes right after open, before any next. */
    stk_status (*save)(stk_iter *it, stk_state *out, stk_error *err);
    stk_status (*restore)(stk_iter *it, stk_state *in, stk_error *err);
    void (*close)(stk_iter *it); /* optional */
} stk_walk;

typedef struct stk_node_kind {
    const char *name; /* as in pipeline files, plans and reports */
    void (*drop)(
        stk_dataset *ds); /* optional: frees what config owns (config itself is not its business) */
    bool (*idle)(
        const stk_dataset *ds); /* optional: does nothing to the elements; plans leave it out */
    void (*describe)(const stk_dataset *ds, char *text,
                     size_t size); /* optional: "32, drop_remainder" */
    /* By number, when ds->random; called by many threads at once. 0 <= index < cardinality. */
    stk_status (*get)(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err);
    /* Optional: elements index[0..n) into rows row.. of the slots, which are dense, of the schema's dtypes, with one
     * more axis in front. Only asked when stk_schema_fixed. */
    stk_status (*rows)(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err);
    /* Optional: elements first .. first + n - 1 as one batch without a copy; parts stay NULL when that cannot be. */
    stk_status (*slice)(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                        stk_tensor **parts, stk_error *err);
    const stk_walk *walk; /* may be NULL when ds->random always holds */
    stk_status (*begin)(stk_stage *stage, stk_error *err); /* optional: a stage of it was made */
    /* Optional: over inputs that give the same elements in the same order in every epoch it does so too. NULL: that is not
     * known. */
    bool (*steady)(const stk_dataset *ds);
    bool passes; /* makes nothing: its elements are at hand, or are those of its inputs */
} stk_node_kind;

struct stk_dataset {
    const stk_node_kind *kind;
    int32_t refs; /* atomic */
    int32_t ninputs;
    stk_dataset **inputs;
    stk_schema *schema;
    int64_t cardinality;
    bool random;         /* elements by number */
    bool unordered;      /* by number: what is ready first may be handed out first */
    int32_t parallel;    /* workers wished for by this node and those below: 1, n, STK_AUTOTUNE */
    int64_t ahead;       /* elements wished to be ready in advance: 0, n, STK_AUTOTUNE */
    uint64_t salt;       /* differs between the nodes of a chain */
    void *config;        /* of the kind */
    stk_dataset *origin; /* a node over other inputs: whose config this is; else NULL */
};

/* Takes over the handles of the inputs, also when it fails (then NULL, inputs released; a NULL input fails without a
 * new message). config: `size` zeroed bytes. Everything else is as in the first input until the caller sets it. */
stk_dataset *stk_dataset_make(const stk_node_kind *kind, int32_t ninputs,
                              stk_dataset *const *inputs, size_t size, stk_error *err);
/* Ends a maker: keeps ds when status is OK, else releases it and gives NULL. */
stk_dataset *stk_dataset_done(stk_dataset *ds, stk_status status);
/* The same node over other inputs (taken over) that give the same elements: for rewrites. */
stk_dataset *stk_dataset_over(stk_dataset *ds, stk_dataset *const *inputs, stk_error *err);
void stk_dataset_set_schema(stk_dataset *ds, stk_schema *schema); /* takes the handle */
/* The node's schema is a copy of *output, which points to it from now on: for functions that say what they give. */
stk_status stk_dataset_announce(stk_dataset *ds, const stk_schema **output, stk_error *err);
/* From here on elements come in order only, and how many is not known (none of none). */
void stk_dataset_in_order(stk_dataset *ds);
void stk_dataset_unknown(stk_dataset *ds); /* the same, also of none: asked for its schema only */
bool stk_always_steady(const stk_dataset *ds);     /* for kinds in which no epoch plays a part */
bool stk_dataset_is_steady(const stk_dataset *ds); /* this node and all below it */
/* Does a second walk of the same epoch give the same again? Not said of generators that are not STK_MAP_PURE. */
bool stk_dataset_repeats(const stk_dataset *ds);

/* ---- stages ------------------------------------------------------------------------------------ */
typedef struct stk_counters {        /* all atomic; times in ticks */
    int64_t elements, bytes, errors; /* errors: passed over */
    int64_t inside;                  /* time in calls of this stage, inputs included */
    int64_t working;                 /* time of workers in its items */
    int64_t working_cpu;             /* of it, on a processor, as far as sampled (ns), and ... */
    int64_t working_sampled;         /* ... the time it was sampled over (ns) */
    int64_t waiting;                 /* consumer waited for this stage's items */
    int64_t full;                    /* producer of this stage waited for room */
    int64_t depth, capacity, workers;
    int64_t held; /* bytes of elements in a buffer of its own */
} stk_counters;

struct stk_stage {
    stk_dataset *ds;
    stk_run *run;
    int32_t nin;
    stk_stage **in;
    stk_counters count;
    /* of a large one: what the schema says, then the largest seen, slowly forgotten; atomic */
    int64_t element_bytes;
    int64_t ram; /* taken of the budget until the stage goes; atomic */
    bool queues; /* has elements in flight; set by the tuner, atomic */
};
void stk_stage_saw(stk_stage *stage,
                   int64_t bytes); /* an element, with what its item held besides */

/* The stages of a dataset in a running stream: of the root, or of what a flat_map has just been given. */
stk_status stk_stage_new(stk_run *run, stk_dataset *ds, stk_stage **out, stk_error *err);
void stk_stage_release(stk_stage *stage);

/* These count, and fill in what a kind leaves out. */
stk_status stk_stage_get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                         stk_error *err);
stk_status stk_stage_rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                          stk_tensor *const *slots, int64_t row, stk_error *err);
stk_status stk_stage_slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                           stk_tensor **parts, stk_error *err);

/* get, rows and slice of nodes that leave elements as they are. */
stk_status stk_pass_get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                        stk_error *err);
stk_status stk_pass_rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                         stk_tensor *const *slots, int64_t row, stk_error *err);
stk_status stk_pass_slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                          stk_tensor **parts, stk_error *err);
/* Elements first, first + stride, ... (n of them) in a new array, parts[e * schema->n + i]; ends with stk_elements_free.
 * On failure *out is NULL. */
stk_status stk_stage_elements(stk_stage *stage, const char *who, uint64_t epoch, int64_t first,
                              int64_t stride, int64_t n, stk_tensor ***out, stk_error *err);
/* The stages of a dataset that a function of this stage gave (taken over). NULL: it failed with `error`, or without a
 * word. Its elements have to fit what the stage announces. */
stk_status stk_stage_given(stk_stage *stage, const char *who, stk_dataset *given,
                           const stk_error *error, stk_stage **out, stk_error *err);

/* ---- iterators ---------------------------------------------------------------------------------- */
struct stk_iter {
    stk_stage *stage;
    uint64_t epoch;
    const stk_walk *walk;
    void *own;
};
stk_status stk_iter_open(stk_stage *stage, uint64_t epoch, stk_iter **out, stk_error *err);
stk_status stk_iter_next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err);
stk_status stk_iter_save(stk_iter *it, stk_state *out, stk_error *err);
stk_status stk_iter_restore(stk_iter *it, stk_state *in, stk_error *err); /* fresh iterators only */
void stk_iter_close(stk_iter *it);                                        /* NULL is fine */
/* Takes n elements and drops them; *end when there were fewer. Failing elements count. */
stk_status stk_iter_skip(stk_iter *it, int64_t n, bool *end, stk_error *err);

/* The epoch of the k-th pass of a repeat inside `epoch`; the first is the epoch itself. */
uint64_t stk_epoch_of_pass(uint64_t epoch, int64_t pass);

/* Not of one element: never passed over. */
static inline bool stk_status_is_fatal(stk_status status)
{
    return status == STK_ERR_MEMORY || status == STK_ERR_CANCELLED;
}

/* ---- elements -------------------------------------------------------------------------------------- */
stk_tensor **stk_parts_new(int64_t n);                 /* zeroed; freed with stk_free */
void stk_parts_release(int64_t n, stk_tensor **parts); /* the handles, set to NULL; not the array */
void stk_elements_free(int64_t n, stk_tensor **parts); /* handles and array; NULL is fine */
/* A tensor of reused memory: for batches and for what lies between two functions. Garbage inside. */
stk_status stk_slot_new(stk_run *run, stk_dtype dtype, int32_t rank, const int64_t *shape,
                        stk_tensor **out, stk_error *err);
/* One slot per field, with `rows` in front (rows < 0: without). */
stk_status stk_slots_new(stk_run *run, const stk_schema *schema, int64_t rows, stk_tensor **out,
                         stk_error *err);
/* Copies parts into row `row` of the slots. `who` is for the message when shapes differ. */
stk_status stk_slot_put(const char *who, stk_tensor *slot, int64_t row, const stk_tensor *part,
                        stk_error *err);
/* `count` elements, parts[e * n + i], stacked along a new first axis; all must have one shape. */
stk_status stk_stack(stk_run *run, const char *who, int32_t n, int64_t count,
                     stk_tensor *const *parts, stk_tensor **out, stk_error *err);
/* The row of a slot as a tensor on the caller's stack; valid as long as the slot. */
void stk_row_view(stk_tensor *slot, int64_t row, stk_tensor *view);

/* ---- functions ---------------------------------------------------------------------------------------- */
/* A counted stk_map_fn with its output schema. */
typedef struct stk_fn {
    stk_map_fn fn;
    int32_t refs, inputs;
    stk_schema *output;
    char name[48];
    uint64_t seed;                 /* node's own */
    bool fused;                    /* info->seed is the epoch */
    struct stk_fn *first, *second; /* kept alive by a fused one */
} stk_fn;
/* Copies fn and takes over its context, also when it fails (release runs then). */
stk_status stk_fn_new(const char *who, const stk_map_fn *fn, const stk_schema *in, uint64_t seed,
                      stk_fn **out, stk_error *err);
/* A node in order over `in` (taken over, as fn is) whose function gives one scalar for each element, of dtype `answer`
 * when it announces nothing. The caller puts *out into the config. */
stk_dataset *stk_dataset_asking(const stk_node_kind *kind, stk_dataset *in, const stk_map_fn *fn,
                                stk_dtype answer, size_t size, stk_fn **out, stk_error *err);
bool stk_fn_is_pure(const stk_fn *fn);
stk_fn *stk_fn_retain(stk_fn *fn);
void stk_fn_release(stk_fn *fn);
/* out[i] as in stk_map_fn.call. On failure whatever was put there is released. */
stk_status stk_fn_call(stk_fn *fn, uint64_t epoch, int64_t index, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err);
stk_status stk_fn_call_batch(stk_fn *fn, uint64_t epoch, int64_t index, int64_t count,
                             stk_tensor *const *in, stk_tensor **out, stk_error *err);

#endif
