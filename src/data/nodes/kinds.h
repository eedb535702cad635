/* kinds.h - the kinds of nodes that other files must recognise: rewrites, the placing of caches, nested datasets. All others
 * are known to their own file only. */
#ifndef STK_DATA_KINDS_H
#define STK_DATA_KINDS_H

#include "data/core/node.h"

extern const stk_node_kind stk_node_batch, stk_node_cache, stk_node_elements, stk_node_generator;
extern const stk_node_kind stk_node_map, stk_node_options, stk_node_prefetch, stk_node_repeat;
extern const stk_node_kind stk_node_shuffle;

#endif
