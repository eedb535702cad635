/* elements - a list of whole elements, each of its own shape: what a window or a group consists of. */
#include "data/core/element_list.h"

#include <stdio.h>

static void drop(stk_dataset *ds) { stk_element_list_release(ds->config); }

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    snprintf(text, size, "%lld", (long long)ds->cardinality);
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    (void)err;
    const stk_element_list *h = stage->ds->config;
    for (int32_t i = 0; i < h->width; i++)
        parts[i] = stk_tensor_retain(h->parts[index * h->width + i]);
    return STK_OK;
}

const stk_node_kind stk_node_elements = {.name = "elements",
                                         .drop = drop,
                                         .describe = describe,
                                         .get = get,
                                         .steady = stk_always_steady,
                                         .passes = true};

stk_dataset *stk_data_elements(stk_element_list *h, const stk_schema *schema, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_elements, 0, NULL, sizeof(stk_element_list), err);
    if (!ds) return NULL;
    *(stk_element_list *)ds->config = *h;
    *h = (stk_element_list){.width = h->width};
    ds->cardinality = ((stk_element_list *)ds->config)->count;
    ds->random = true;
    stk_dataset_set_schema(ds, stk_schema_retain(schema));
    return ds;
}
