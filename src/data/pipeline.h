/* pipeline.h - pipelines written as JSON: how a node or a map function reads its options from a file.
 *
 *     {"ops": [{"op": "range", "stop": 100},
 *              {"op": "cast", "dtype": "float32", "parallel": -1},     a map function, by its own name
 *              {"op": "batch", "size": 32, "drop_remainder": true}]}
 *
 * To add one: write a reader in the file of the node, and a row in pipeline.def. */
#ifndef STK_DATA_PIPELINE_H
#define STK_DATA_PIPELINE_H

#include "base/json.h"
#include "data/node.h"

/* `in` is the dataset before (NULL: this one starts the pipeline); taken over. `op` is the JSON object. `folder` is what
 * relative paths are relative to, "" for none. */
typedef stk_dataset *stk_node_reader(stk_dataset *in, const stk_json *op, const char *folder,
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
/* An error unless `in` is there (or is not, for a source). */
stk_status stk_option_input(const stk_json *op, const stk_dataset *in, bool wanted, stk_error *err);
/* A pipeline (an object with "ops", or a list of ops) inside another. */
stk_dataset *stk_pipeline_read(const stk_json *pipeline, const char *folder, int depth,
                               stk_error *err);

#define STK_PIPELINE_NODE(name, reader) stk_node_reader reader;
#define STK_PIPELINE_MAP(name, reader)  stk_map_reader reader;
#include "data/pipeline.def"

#endif
