/* map_program.h - graphs as functions of the input pipeline.
 *
 *     #include "stoker/stoker.h"
 *     #include <stdio.h>
 *
 *     static void halve(stk_graph *g, const stk_val *in, void *context)
 *     {
 *         (void)context;
 *         stk_val x = stk_g_cast(g, in[0], STK_F32);
 *         stk_g_output(g, "y", stk_g_mul(g, x, stk_g_scalar(g, STK_F32, 0.5)));
 *     }
 *     int main(void)
 *     {
 *         const stk_field field = {NULL, STK_F32, 0, {0}};
 *         const stk_schema schema = {1, &field, "0"}; // what comes out
 *         const char *x = "x", *y = "y";
 *         stk_error err;
 *         stk_map_fn fn;
 *         stk_dataset *ds = stk_data_range(0, 100, 1, &err);
 *         if (stk_map_program("halve", 1, &x, &y, &schema, halve, NULL, NULL, &fn, &err) == STK_OK)
 *             ds = stk_data_map(ds, &fn, NULL, &err);
 *         if (!ds) puts(err.message);
 *         stk_dataset_release(ds);
 *         return 0;
 *     }
 *
 * Each worker of the pipeline runs a program of its own, on one thread. */
#ifndef STOKER_MAP_PROGRAM_H
#define STOKER_MAP_PROGRAM_H

#include "data.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills fn for stk_data_map: build adds the graph over the parts of an element, which are its inputs; outputs names its
 * results, in the order of the schema `output` (which must live until stk_data_map was called). The step of the
 * program is drawn from the element, so random operations are keyed by it. build may be called by several threads at
 * once. On success the context belongs to fn: release(context) runs once (may be NULL). */
STK_API STK_MUST_USE stk_status stk_map_program(const char *name, int32_t nin,
                                                const char *const *inputs,
                                                const char *const *outputs,
                                                const stk_schema *output, stk_function_build build,
                                                void *context, void (*release)(void *context),
                                                stk_map_fn *fn, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
