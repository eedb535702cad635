/* data.h - input pipelines: where batches come from.
 *
 *     stk_error err;
 *     stk_dataset *ds = stk_data_range(0, 10, 1, &err);        // 0, 1, ... 9
 *     ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 7, true, &err);
 *     ds = stk_data_batch(ds, 4, false, &err);
 *     ds = stk_data_prefetch(ds, STK_AUTOTUNE, &err);
 *     stk_stream *stream = NULL;
 *     if (stk_dataset_stream(ds, NULL, &stream, &err) != STK_OK) puts(err.message);
 *     for (bool end = false; stream;) {
 *         stk_tensor *part = NULL;                              // one part per leaf of the schema
 *         if (stk_stream_next(stream, &part, &end, &err) != STK_OK || end) break;
 *         printf("%lld numbers, the first is %g\n", (long long)part->shape[0], stk_tensor_at(part, 0));
 *         stk_tensor_release(part);
 *     }
 *     stk_stream_release(stream);
 *     stk_dataset_release(ds);
 *
 * A dataset is a counted, immutable description: a tree of nodes. Every stk_data_* transform takes over the
 * dataset handle given to it (also when it fails) and returns a new one; a failed call returns NULL, and NULL
 * passes through, so that a chain is tested once, at its end. stk_dataset_retain keeps a handle for further use.
 * A stream is one walk over a dataset: it belongs to one thread at a time; its own threads are its own business.
 *
 * Same elements, same order, same random bits for any number of threads, unless options.deterministic is
 * switched off. Random things are keyed by (seed, epoch, number of the element). */
#ifndef STOKER_DATA_H
#define STOKER_DATA_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STK_AUTOTUNE = -1,    /* workers, buffer sizes: measured and chosen */
    STK_INFINITE = -1,    /* cardinality, counts of repeat and take: without end */
    STK_UNKNOWN = -2,     /* cardinality: only running it will tell */
    STK_SHUFFLE_ALL = -1, /* buffer of shuffle: all elements, every order as likely */
};

/* ---- what elements look like -------------------------------------------------------------------- */
typedef struct stk_field {
    const char *name; /* NULL or "" when it has none */
    stk_dtype dtype;
    int32_t rank;                /* -1 unknown */
    int64_t shape[STK_MAX_RANK]; /* -1 unknown */
    bool dataset; /* the part is a dataset whose elements are such tensors (stk_tensor_dataset) */
} stk_field;

/* The leaves of an element, in order, and how they nest: text over leaf numbers, "0", "(0,1)",
 * "({image:0,text:1},2)". structure NULL when making one: "0", or a tuple of all. */
typedef struct stk_schema {
    int32_t n;
    const stk_field *fields;
    const char *structure;
} stk_schema;

/* A deep copy of one's own, checked; released with stk_schema_release. */
STK_API STK_MUST_USE stk_status stk_schema_new(int32_t n, const stk_field *fields,
                                               const char *structure, stk_schema **out,
                                               stk_error *err);
STK_API void stk_schema_release(stk_schema *schema);
STK_API bool stk_schema_equal(const stk_schema *a, const stk_schema *b); /* names do not count */
/* "(float32[?,3], int32[])" into text (at most size bytes, always terminated); returns text. */
STK_API char *stk_schema_describe(const stk_schema *schema, char *text, size_t size);
/* OK when the parts have the dtypes and fit the known sizes of the schema. */
STK_API STK_MUST_USE stk_status stk_schema_check(const stk_schema *schema, stk_tensor *const *parts,
                                                 stk_error *err);

/* ---- streams --------------------------------------------------------------------------------------- */
/* One walk. Whoever has batches of his own can fill this struct himself. */
typedef struct stk_stream {
    const stk_schema *(*schema)(struct stk_stream *self);
    /* Hands out schema->n new handles, or *end = true and none. After a failure the next call goes on behind the
     * bad element. */
    stk_status (*next)(struct stk_stream *self, stk_tensor **parts, bool *end);
    const stk_error *(*last_error)(struct stk_stream *self); /* of the last failing call */
    /* Position as bytes (freed with stk_state_free), small; exact, also in the middle of an epoch. May be NULL. */
    stk_status (*save)(struct stk_stream *self, void **bytes, size_t *size);
    stk_status (*restore)(struct stk_stream *self, const void *bytes, size_t size);
    void (*release)(struct stk_stream *self); /* frees self */
    void *private_data;
} stk_stream;

/* The same calls with the message copied into err (may be NULL) at once. */
STK_API const stk_schema *stk_stream_schema(stk_stream *stream);
STK_API STK_MUST_USE stk_status stk_stream_next(stk_stream *stream, stk_tensor **parts, bool *end,
                                                stk_error *err);
STK_API STK_MUST_USE stk_status stk_stream_save(stk_stream *stream, void **bytes, size_t *size,
                                                stk_error *err);
STK_API STK_MUST_USE stk_status stk_stream_restore(stk_stream *stream, const void *bytes,
                                                   size_t size, stk_error *err);
STK_API void stk_stream_release(stk_stream *stream); /* NULL is fine */
STK_API void stk_state_free(void *bytes);

/* ---- datasets ------------------------------------------------------------------------------------- */
typedef struct stk_dataset stk_dataset;

STK_API stk_dataset *stk_dataset_retain(stk_dataset *ds);
STK_API void stk_dataset_release(stk_dataset *ds); /* NULL is fine */
STK_API const stk_schema *stk_dataset_schema(const stk_dataset *ds);
STK_API int64_t stk_dataset_cardinality(const stk_dataset *ds); /* or STK_INFINITE, STK_UNKNOWN */
STK_API bool stk_dataset_random_access(const stk_dataset *ds);  /* elements by number? */
STK_API const char *stk_dataset_name(const stk_dataset *ds);    /* of its last node: "batch" */
STK_API int32_t stk_dataset_inputs(const stk_dataset *ds);
STK_API stk_dataset *stk_dataset_input(const stk_dataset *ds, int32_t index); /* borrowed */

typedef struct stk_stream_options {
    uint64_t epoch;     /* keys shuffles that reshuffle, and random maps; fit counts it up */
    int32_t threads;    /* workers: 0 = the tuner's choice, 1 = everything on the caller's thread */
    bool deterministic; /* true: order kept */
    bool rewrite;       /* true: fuse, vectorise, remove what does nothing */
    bool autotune;      /* true: workers and buffers follow the measurements */
    int32_t cpu_budget; /* processors; 0 = those of this process */
    /* bytes of all buffers together; 0 = a quarter of what the process may use */
    int64_t ram_budget;
    /* Optional: asked about every 50 ms, on the thread that called stk_stream_next, while that call takes longer. true ends
     * it with STK_ERR_CANCELLED; what was waited for is not lost, the next call goes on with it. */
    bool (*interrupt)(void *context);
    void *interrupt_context;
    stk_memory_source memory; /* where batches get theirs: pinned memory of a device, say */
} stk_stream_options;
STK_API stk_stream_options stk_stream_options_defaults(void);

/* options NULL = defaults. The stream keeps a handle of the dataset. */
STK_API STK_MUST_USE stk_status stk_dataset_stream(stk_dataset *ds,
                                                   const stk_stream_options *options,
                                                   stk_stream **out, stk_error *err);
/* Element `index` of a dataset with random access, in the given epoch. */
STK_API STK_MUST_USE stk_status stk_dataset_get(stk_dataset *ds, uint64_t epoch, int64_t index,
                                                stk_tensor **parts, stk_error *err);
/* As stk_dataset_stream uses them when the options say nothing else: rides on the dataset, innermost last. */
STK_API stk_dataset *stk_data_options(stk_dataset *ds, const stk_stream_options *options,
                                      stk_error *err);
STK_API stk_stream_options stk_dataset_options(const stk_dataset *ds); /* those, or the defaults */
/* The same elements made by so many workers: for every map that has a number of them, and for the stream. */
STK_API stk_dataset *stk_data_workers(stk_dataset *ds, int32_t workers, stk_error *err);
/* The smallest number of workers that a map has; 0: none has one (the tuner chooses, or there is nothing to share). */
STK_API int32_t stk_dataset_workers(const stk_dataset *ds);
/* The size that the batch node nearest to the end was given; 0: there is none. */
STK_API int64_t stk_dataset_batch_size(const stk_dataset *ds);

/* ---- looking inside ----------------------------------------------------------------------------------- */
/* What will run: the nodes after rewriting, and what was rewritten. options NULL = the dataset's. Free the text with
 * stk_text_free (graph.h). */
STK_API STK_MUST_USE stk_status stk_dataset_explain(stk_dataset *ds,
                                                    const stk_stream_options *options, char **text,
                                                    stk_error *err);

typedef struct stk_stage_stats {
    const char *name;         /* of the node; valid while the stream is */
    char detail[96];          /* its options */
    int32_t depth;            /* 0 = the last node; inputs follow their node, one deeper */
    int64_t elements, bytes;  /* made so far; bytes 0 where they are not counted */
    int64_t errors;           /* passed over */
    double busy;              /* seconds of work of its own, summed over threads */
    double waiting_for_input; /* seconds its consumer waited for it, or it for its input */
    double waiting_for_room;  /* seconds it had to stop because nobody took its elements */
    int64_t queued, capacity; /* elements or jobs in flight, and the most allowed */
    int64_t held;             /* bytes of what a shuffle or a cache keeps; 0 elsewhere */
    int32_t workers;          /* threads that may work for it */
} stk_stage_stats;
/* Fills at most `room` rows and returns how many there are; 0 for a stream that is not of a dataset. */
STK_API int32_t stk_stream_stats(stk_stream *stream, stk_stage_stats *stats, int32_t room);
/* The same rows, but only how many elements are in each one's queue now: cheap enough for every batch. */
STK_API int32_t stk_stream_depths(stk_stream *stream, int64_t *depths, int32_t room);
typedef struct stk_stream_usage {
    int32_t threads; /* workers now */
    int64_t ram, ram_peak, ram_budget,
        held;       /* bytes of buffers; held: of batches, in use or to be used again */
    double seconds; /* since it began */
} stk_stream_usage;
STK_API bool stk_stream_usage_read(stk_stream *stream, stk_stream_usage *usage);
/* What the tuner did and why, one line each; "" when nothing. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_stream_choices(stk_stream *stream, char **text, stk_error *err);

/* ---- functions over elements ---------------------------------------------------------------------- */
typedef struct stk_map_info {
    int64_t index;  /* of the element among its function's inputs, from 0 in each epoch */
    int64_t count;  /* 1; in a batch call the rows, `index` being that of the first */
    uint64_t seed;  /* for random functions: hangs on the node's seed and the epoch */
    int32_t inputs; /* parts in `in` */
} stk_map_info;

enum stk_map_flags {
    /* Each number depends on its own position of the inputs only, so that `call` may get a whole batch at once
     * with one more axis in front. */
    STK_MAP_ELEMENTWISE = 1,
    STK_MAP_SERIAL = 2, /* one call at a time, in order (has a memory of its own) */
    /* The result hangs on `in` alone: no random numbers, not on info, on nothing that changes. What it gives may be
     * kept for later epochs (`stoker doctor` offers it). */
    STK_MAP_PURE = 4,
};

typedef struct stk_map_fn {
    const char *name; /* for reports; copied */
    void *context;
    /* in: as many parts as the input's schema has, borrowed. out[i] is either NULL: put a new handle there; or a
     * tensor of the schema's dtype and shape: write into it (preferred), or put a new handle in its place. May be
     * called by several threads at once unless SERIAL. */
    stk_status (*call)(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err);
    /* Optional: the same for info->count rows at once; all tensors have one more axis in front. */
    stk_status (*batch)(void *context, const stk_map_info *info, stk_tensor *const *in,
                        stk_tensor **out, stk_error *err);
    /* Optional: the output's schema from the input's (hand over a stk_schema_new). Without it `output`; without
     * that the input's. */
    stk_status (*schema)(void *context, const stk_schema *in, stk_schema **out, stk_error *err);
    const stk_schema *output; /* copied */
    /* Optional: one function for `second after first`, both with this same pointer. The originals outlive it.
     * Where the k-th original got info->seed, the fused one takes stk_seed_mix(seeds[k], info->seed). */
    bool (*fuse)(const struct stk_map_fn *first, const struct stk_map_fn *second,
                 const uint64_t seeds[2], struct stk_map_fn *out);
    void (*release)(void *context); /* optional; runs once, also when the node could not be made */
    uint32_t flags;
} stk_map_fn;

STK_API uint64_t stk_seed_mix(uint64_t seed, uint64_t with);

/* A dataset for each element: flat_map, interleave. */
typedef struct stk_flat_fn {
    const char *name;
    void *context;
    stk_dataset *(*call)(void *context, const stk_map_info *info, stk_tensor *const *in,
                         stk_error *err); /* a handle for the caller; NULL = failed */
    const stk_schema *output;             /* of the datasets' elements; copied */
    void (*release)(void *context);
    /* STK_MAP_PURE: the dataset hangs on `in` alone and is the same in every epoch, nothing in it is random. */
    uint32_t flags;
} stk_flat_fn;

/* A dataset from a key and the elements that share it: group_by_window. */
typedef struct stk_group_fn {
    const char *name;
    void *context;
    stk_dataset *(*call)(void *context, int64_t key, stk_dataset *window, stk_error *err);
    const stk_schema *output;
    void (*release)(void *context);
    uint32_t flags; /* STK_MAP_PURE: as of stk_flat_fn */
} stk_group_fn;

/* ---- sources ---------------------------------------------------------------------------------------- */
/* Rows of tensors that share their first size. No copy is made of dense ones; names and structure may be NULL. */
STK_API stk_dataset *stk_data_slices(int32_t n, stk_tensor *const *tensors,
                                     const char *const *names, const char *structure,
                                     stk_error *err);
STK_API stk_dataset *stk_data_tensors(int32_t n, stk_tensor *const *tensors,
                                      const char *const *names, const char *structure,
                                      stk_error *err); /* one element */
STK_API stk_dataset *stk_data_range(int64_t start, int64_t stop, int64_t step, stk_error *err);
/* int64 numbers, each of all 2^63 not negative ones as likely; count may be STK_INFINITE. */
STK_API stk_dataset *stk_data_random(uint64_t seed, int64_t count, stk_error *err);

typedef struct stk_generator {
    const char *name;
    void *context;
    const stk_schema *output;                                       /* copied */
    stk_status (*open)(void *context, void **walk, stk_error *err); /* starts a walk */
    stk_status (*next)(void *context, void *walk, stk_tensor **parts, bool *end, stk_error *err);
    void (*close)(void *context, void *walk);
    void (*release)(void *context); /* optional */
    int64_t cardinality;            /* STK_UNKNOWN when it is not known */
    /* STK_MAP_PURE: every walk gives the same elements in the same order, also one beside another. */
    uint32_t flags;
} stk_generator;
/* Saved positions are reached again by walking there. */
STK_API stk_dataset *stk_data_generator(const stk_generator *generator, stk_error *err);
/* Paths that match the patterns (* ? [a-z], also in folders' names), sorted or shuffled: string scalars. */
STK_API stk_dataset *stk_data_list_files(int32_t n, const char *const *patterns, bool shuffle,
                                         uint64_t seed, stk_error *err);

/* A pipeline written as JSON (doc/data.md): {"ops": [{"op": "range", "stop": 9}, {"op": "batch", "size": 4}]}. Relative paths
 * in it are taken from `folder` (NULL or "": as they are), or from where the file is. */
STK_API stk_dataset *stk_data_pipeline(const char *json, size_t size, const char *folder,
                                       stk_error *err);
STK_API stk_dataset *stk_data_pipeline_file(const char *path, stk_error *err);

/* ---- transforms -------------------------------------------------------------------------------------- */
typedef struct stk_map_options {
    int32_t parallel; /* calls at a time; 1, or STK_AUTOTUNE */
    uint64_t seed;
    bool unordered; /* hand out what is ready first */
} stk_map_options;
STK_API stk_map_options stk_map_options_defaults(void); /* AUTOTUNE, seed 0, ordered */

STK_API stk_dataset *stk_data_map(stk_dataset *ds, const stk_map_fn *fn,
                                  const stk_map_options *options, stk_error *err);
STK_API stk_dataset *stk_data_batch(stk_dataset *ds, int64_t size, bool drop_remainder,
                                    stk_error *err);
STK_API stk_dataset *stk_data_prefetch(stk_dataset *ds, int64_t elements, stk_error *err);
/* buffer: elements it chooses from, or STK_SHUFFLE_ALL for an exact permutation, which costs no memory when the
 * input has random access. reshuffle: another order in each epoch. */
STK_API stk_dataset *stk_data_shuffle(stk_dataset *ds, int64_t buffer, uint64_t seed,
                                      bool reshuffle, stk_error *err);
STK_API stk_dataset *stk_data_repeat(stk_dataset *ds, int64_t times, stk_error *err);
STK_API stk_dataset *stk_data_take(stk_dataset *ds, int64_t count, stk_error *err);
STK_API stk_dataset *stk_data_skip(stk_dataset *ds, int64_t count, stk_error *err);
STK_API stk_dataset *stk_data_shard(stk_dataset *ds, int64_t shards, int64_t index, stk_error *err);
STK_API stk_dataset *stk_data_enumerate(stk_dataset *ds, int64_t start, stk_error *err);
/* The function's one scalar says whether the element stays (schema and output may be left out: bool). */
STK_API stk_dataset *stk_data_filter(stk_dataset *ds, const stk_map_fn *fn, stk_error *err);
STK_API stk_dataset *stk_data_take_while(stk_dataset *ds, const stk_map_fn *fn, stk_error *err);
STK_API stk_dataset *stk_data_ignore_errors(stk_dataset *ds, stk_error *err);
STK_API stk_dataset *stk_data_unique(stk_dataset *ds, stk_error *err);
STK_API stk_dataset *stk_data_unbatch(stk_dataset *ds, stk_error *err);
STK_API stk_dataset *stk_data_rebatch(stk_dataset *ds, int64_t size, bool drop_remainder,
                                      stk_error *err);
/* Elements i * shift + k * stride, k < size, stacked as element i; shift 0 = size. (tf.data's window followed by the
 * batch of each window.) */
STK_API stk_dataset *stk_data_window(stk_dataset *ds, int64_t size, int64_t shift, int64_t stride,
                                     bool drop_remainder, stk_error *err);
/* The same windows as datasets, as tf.data has them: each part of an element is a dataset of `size` or fewer elements of
 * that part, for functions of flat_map, interleave and map that open it:
 *
 *     stk_dataset *call(void *context, const stk_map_info *info, stk_tensor *const *in, stk_error *err)
 *     {
 *         stk_dataset *window = stk_dataset_retain(stk_tensor_dataset(in[0]));
 *         return stk_data_batch(window, info->inputs, false, err);
 *     } */
STK_API stk_dataset *stk_data_window_nested(stk_dataset *ds, int64_t size, int64_t shift,
                                            int64_t stride, bool drop_remainder, stk_error *err);
/* The dataset that a part is, borrowed from it; NULL when it is a tensor like others. */
STK_API stk_dataset *stk_tensor_dataset(const stk_tensor *part);
/* fn gets the n parts of the state and the element's parts, and gives the new state and the output. */
STK_API stk_dataset *stk_data_scan(stk_dataset *ds, int32_t n, stk_tensor *const *state,
                                   const stk_map_fn *fn, stk_error *err);
/* The whole dataset folded into n tensors: fn gets state and element and gives the new state. ds stays the caller's. */
STK_API STK_MUST_USE stk_status stk_dataset_reduce(stk_dataset *ds,
                                                   const stk_stream_options *options, int32_t n,
                                                   stk_tensor *const *initial, const stk_map_fn *fn,
                                                   stk_tensor **state, stk_error *err);
/* A dataset of one element: the state after the last element of ds. */
STK_API stk_dataset *stk_data_reduce(stk_dataset *ds, int32_t n, stk_tensor *const *initial,
                                     const stk_map_fn *fn, stk_error *err);
/* Elements of different sizes padded to one: shapes has STK_MAX_RANK sizes per part (-1: the largest of the batch), NULL for
 * the largest wherever the schema knows no size; values one number per part, NULL for zeros. */
STK_API stk_dataset *stk_data_padded_batch(stk_dataset *ds, int64_t size, bool drop_remainder,
                                           const int64_t (*shapes)[STK_MAX_RANK],
                                           const double *values, stk_error *err);
typedef struct stk_bucket_options {
    int32_t n; /* boundaries */
    /* rising; bucket i holds lengths from boundary i - 1 on, below boundary i */
    const int64_t *boundaries;
    const int64_t *sizes; /* n + 1 batch sizes */
    bool drop_remainder, pad_to_bucket_boundary;
    const int64_t (*padded_shapes)[STK_MAX_RANK]; /* as in padded_batch */
    const double *padding_values;
} stk_bucket_options;
STK_API stk_dataset *stk_data_bucket_by_sequence_length(stk_dataset *ds, const stk_map_fn *length,
                                                        const stk_bucket_options *options,
                                                        stk_error *err);
STK_API stk_dataset *stk_data_flat_map(stk_dataset *ds, const stk_flat_fn *fn, stk_error *err);
typedef struct stk_interleave_options {
    int64_t cycle, block; /* datasets read in turn, elements taken from each at a time */
    int32_t parallel;     /* 1: on one thread; otherwise open ones are read ahead by workers */
} stk_interleave_options;
STK_API stk_interleave_options stk_interleave_options_defaults(void); /* 8, 1, AUTOTUNE */
STK_API stk_dataset *stk_data_interleave(stk_dataset *ds, const stk_flat_fn *fn,
                                         const stk_interleave_options *options, stk_error *err);
/* Windows of `size` elements with the same key, each turned into a dataset by fn (which takes over its window). */
STK_API stk_dataset *stk_data_group_by_window(stk_dataset *ds, const stk_map_fn *key,
                                              const stk_group_fn *fn, int64_t size, stk_error *err);
/* (class, element), with n classes as frequent as target says; initial NULL: counted on the way. */
STK_API stk_dataset *stk_data_rejection_resample(stk_dataset *ds, const stk_map_fn *class_of,
                                                 int32_t n, const double *target,
                                                 const double *initial, uint64_t seed,
                                                 stk_error *err);
/* path NULL or "": in RAM; otherwise in this file, which is read when it is there. Below a cache the epoch is always 0. */
STK_API stk_dataset *stk_data_cache(stk_dataset *ds, const char *path, stk_error *err);
/* All elements into a file that appears whole or not at all, and a source that reads it, by number. */
STK_API STK_MUST_USE stk_status stk_dataset_save(stk_dataset *ds, const char *path,
                                                 const stk_stream_options *options, stk_error *err);
STK_API stk_dataset *stk_data_load(const char *path, stk_error *err);
/* These take over all n handles. */
STK_API stk_dataset *stk_data_zip(int32_t n, stk_dataset *const *inputs, stk_error *err);
STK_API stk_dataset *stk_data_sample_from(int32_t n, stk_dataset *const *inputs,
                                          const double *weights, uint64_t seed, bool stop_on_empty,
                                          stk_error *err); /* weights NULL: equal */
STK_API stk_dataset *stk_data_choose_from(int32_t n, stk_dataset *const *inputs,
                                          stk_dataset *choice, bool stop_on_empty, stk_error *err);
STK_API stk_dataset *stk_data_concatenate(stk_dataset *first, stk_dataset *second, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
