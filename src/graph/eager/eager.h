/* eager.h (internal) - the context of eager calls: prepared operations and the tapes that listen. */
#ifndef STK_GRAPH_EAGER_H
#define STK_GRAPH_EAGER_H

#include "graph/run/program.h"

#include <pthread.h>
#include "stoker/tracing.h"

/* Released results of one operation and shape, ready to be handed out again. */
enum { STK_EAGER_SPARE = 32 };
typedef struct stk_result_pool {
    stk_type type;
    stk_tensor *spare[STK_EAGER_SPARE];
    int32_t nspare;
    void (*release)(stk_buffer *self); /* how such a tensor really goes */
} stk_result_pool;

/* One operation with one set of shapes: what is computed, and how. */
typedef struct stk_prepared {
    uint64_t hash;
    int64_t *signature;
    int32_t nsignature, attributes_at, nin, nout;
    stk_program *program;
    bool counts;  /* reads the step: every run gets a new one */
    bool lacks;   /* a part of it is not for this device, and the context is one that moves */
    bool told;    /* the watcher knows */
    bool at_once; /* the device sees the tensors, and one call of its queue is all there is to do */
    bool simple;  /* at_once, with one result in memory of its own: nearly every operation */
    stk_sequence_run run; /* that call */
    stk_result_pool *results;
    pthread_t thread; /* the only one that touches the spare lists */
    bool closed;      /* the context is gone; the last tensor frees this */
    int64_t living;   /* atomic: the context, and tensors handed out or spare */
} stk_prepared;

typedef struct stk_tape_entry {
    stk_op op;
    int32_t nin, nout;
    stk_tensor **in, **out; /* handles of our own; pointers identify tensors */
    stk_attrs attrs;        /* copied */
    stk_host host;          /* STK_OP_HOST: whose gradient is asked */
} stk_tape_entry;

struct stk_tape {
    stk_eager *e;
    stk_tape *outer;
    stk_arena arena;
    stk_tape_entry *entries;
    int64_t count, capacity;
    stk_tensor **watched; /* watched and derived tensors, an open hash set of pointers */
    int64_t nwatched, cap_watched;
    bool paused;
};

/* What is prepared on one device. */
typedef struct stk_eager_place {
    stk_device *device;
    stk_store *store;
    stk_prepared **table; /* open addressing */
    int64_t count, size;
    stk_prepared *recent[STK_OP_COUNT];
} stk_eager_place;

enum { STK_PLACES = 16 };
struct stk_eager {
    stk_eager_place *at; /* where calls run */
    bool moved;  /* they may run elsewhere tomorrow: results stay where they were computed */
    bool strict; /* what a device lacks is a failure */
    stk_error error;
    int64_t step;   /* of the next run that reads it */
    stk_tape *tape; /* innermost */
    stk_eager_watcher *watcher;
    void *watching;
    stk_eager_place *places[STK_PLACES];
    int32_t nplaces;
};

enum { STK_EAGER_INPUTS = 64, STK_EAGER_OUTPUTS = 16 };

/* What an eager call runs: an operation, or what one of the two kinds of builders makes. */
typedef struct stk_recipe {
    stk_op op;
    stk_eager_build build;
    void *context;
    stk_keyed_build *keyed;
    const stk_attrs *attrs;
} stk_recipe;

const char *stk_recipe_name(const stk_recipe *r);
/* Its graph with inputs of these shapes. */
stk_status stk_recipe_graph(stk_graph **out, const stk_recipe *r, int32_t nin,
                            stk_tensor *const *in, stk_error *err);
/* What is prepared at e->at for r and these shapes; the first call of its kind compiles it. */
stk_status stk_eager_prepare(stk_eager *e, const stk_recipe *r, int32_t nin, stk_tensor *const *in,
                             stk_prepared **out);
void stk_prepared_free(stk_prepared *p);

/* tape.c: notes one operation on all tapes that watch one of its inputs. */
stk_status stk_tape_note(stk_eager *e, stk_op op, int32_t nin, stk_tensor *const *in,
                         const stk_attrs *attrs, int32_t nout, stk_tensor *const *out);
/* ops/host.c: runs a node that stk_g_host made on dense tensors; out gets new ones. */
stk_status stk_host_call(const stk_graph *g, const stk_node *n, stk_tensor *const *in,
                         stk_tensor **out, stk_error *err);
/* Runs the nodes of g that `wanted` values need, one eager call each. known[v]: tensors of values that exist. */
stk_status stk_eager_interpret(stk_eager *e, const stk_graph *g, stk_tensor **known, int32_t n,
                               const stk_val *wanted);

#endif
