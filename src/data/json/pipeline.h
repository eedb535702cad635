/* pipeline.h - pipelines written as JSON: how a node or a map function reads its options from a file.
 *
 *     {"ops": [{"op": "range", "stop": 100},
 *              {"op": "filter", "where": "$0 % 3 != 0"},               an expression over the element
 *              {"op": "map", "to": "float32($0)", "parallel": -1},     the same; functions in C have names of their own
 *              {"op": "batch", "size": 32, "drop_remainder": true}]}
 *
 * To add one: a row in pipeline.def, and a reader in the file of the node when it is not of one of the plain forms. */
#ifndef STK_DATA_PIPELINE_H
#define STK_DATA_PIPELINE_H

#include "base/json.h"
#include "data/core/node.h"

/* Where we are while a file is read. */
typedef struct stk_pipeline {
    const char *folder; /* what relative paths are relative to, "" for none */
    int depth;
    char path[200]; /* of the op being read: "ops[1].inputs[0].ops[2]" */
    bool told;      /* the message names the place already */
    /* Inside of a function: the element it is made for. parts NULL: only schemas are wanted. */
    const stk_schema *schema;
    stk_tensor *const *parts;
} stk_pipeline;

/* `in` is the dataset before (NULL: this one starts the pipeline); taken over. `op` is the JSON object. */
typedef stk_dataset *stk_node_reader(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                     stk_error *err);
/* Fills fn (zeroed before); its context is then owned by whoever called. */
typedef stk_status stk_map_reader(const stk_json *op, const char *folder, stk_map_fn *fn,
                                  stk_error *err);

/* Options by name. Absent: *value stays as it was. Wrong type or range: an error that says what would fit. */
stk_status stk_option_int(const stk_json *op, const char *name, int64_t low, int64_t high,
                          int64_t *value, stk_error *err);
stk_status stk_option_double(const stk_json *op, const char *name, double *value, stk_error *err);
stk_status stk_option_bool(const stk_json *op, const char *name, bool *value, stk_error *err);
stk_status stk_option_text(const stk_json *op, const char *name, const char **value,
                           stk_error *err);
/* An error when op has a member that is not in the NULL-terminated list ("op" is always known). */
stk_status stk_options_known(const stk_json *op, const char *const *names, stk_error *err);

/* All options of an op in one list that ends with an empty row; others are errors. */
typedef struct stk_pipeline_option {
    const char *name;
    enum { STK_PIPELINE_ANY, STK_PIPELINE_INT, STK_PIPELINE_BOOL, STK_PIPELINE_TEXT } kind;
    void *value; /* int64_t, bool, const char * */
    int64_t low, high;
} stk_pipeline_option;
#define STK_INT(name, value, low, high)                                                            \
    {                                                                                              \
        name, STK_PIPELINE_INT, value, low, high                                                   \
    }
#define STK_BOOLEAN(name, value)                                                                   \
    {                                                                                              \
        name, STK_PIPELINE_BOOL, value, 0, 0                                                       \
    }
#define STK_TEXT(name, value)                                                                      \
    {                                                                                              \
        name, STK_PIPELINE_TEXT, value, 0, 0                                                       \
    }
#define STK_OTHER(name)                                                                            \
    {                                                                                              \
        name, STK_PIPELINE_ANY, NULL, 0, 0                                                         \
    } /* read by the caller */
/* True when they are good; otherwise `in` is released. */
bool stk_options_good(stk_dataset *in, const stk_json *op, const stk_pipeline_option *rows,
                      stk_error *err);
#define STK_OPTIONS(...)                                                                           \
    ((const stk_pipeline_option[]){__VA_ARGS__, {NULL, STK_PIPELINE_ANY, NULL, 0, 0}})

/* parallel, seed and unordered of any map. */
stk_status stk_options_map(const stk_json *op, stk_map_options *o, stk_error *err);
/* The option `name`, an expression that gives one number of each element, as a function. */
stk_status stk_read_key(const stk_json *op, const char *name, const stk_schema *in, stk_map_fn *fn,
                        stk_error *err);
/* A list of numbers: *n of them in a new array (stk_free); absent: NULL and 0. */
stk_status stk_option_numbers(const stk_json *op, const char *name, int32_t *n, double **values,
                              stk_error *err);
stk_status stk_option_wholes(const stk_json *op, const char *name, int32_t *n, int64_t **values,
                             stk_error *err);

bool stk_pipeline_asks(const stk_json *value); /* {"element": part}: is it a question? */
/* The part of an element that a JSON text or number names. */
stk_status stk_pipeline_part(const stk_json *which, const stk_schema *schema, int32_t *part,
                             stk_error *err);
/* A pipeline (an object with "ops", or a list of ops) inside another, at `label` of the op being read ("inputs[1]").
 * It goes on from `start` (taken over), or begins with a source when that is NULL. */
stk_dataset *stk_pipeline_read(const stk_json *pipeline, stk_pipeline *p, const char *label,
                               stk_dataset *start, stk_error *err);
/* True when the first op begins by itself: a source, or one with "inputs". */
bool stk_pipeline_begins(const stk_json *pipeline);

#define STK_PIPELINE_SOURCE(name, reader) stk_node_reader reader;
#define STK_PIPELINE_NODE(name, reader)   stk_node_reader reader;
#define STK_PIPELINE_JOIN(name, reader)   stk_node_reader reader;
#define STK_PIPELINE_MAP(name, reader)    stk_map_reader reader;
#include "data/json/pipeline.def"

#endif
