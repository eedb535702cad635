/* snapshot.h - elements in a file of our own: what save, load and a cache on disk write and read.
 *
 *     0       8   "STKSNAP1"
 *     8       8   length of the schema, then the schema (state.h)
 *     ..          elements: length, parts (state.h), CRC-32C of the parts in 8 bytes
 *     index   8n  offset of each element
 *     end-32  8   n      end-24  8   offset of the index     end-16  8   CRC-32C of the index     end-8  8   "STKSNAPE"
 *
 * All numbers are little-endian int64. The file appears whole or not at all. */
#ifndef STK_DATA_SNAPSHOT_H
#define STK_DATA_SNAPSHOT_H

#include "base/file.h"
#include "data/core/node.h"

typedef struct stk_snapshot_writer { /* zero to begin with */
    stk_file_writer file;
    stk_schema *schema;
    int64_t *offsets, count, capacity;
} stk_snapshot_writer;

stk_status stk_snapshot_create(const char *path, const stk_schema *schema, stk_snapshot_writer *w,
                               stk_error *err);
stk_status stk_snapshot_add(stk_snapshot_writer *w, stk_tensor *const *parts, stk_error *err);
stk_status stk_snapshot_commit(stk_snapshot_writer *w, stk_error *err);
void stk_snapshot_abandon(stk_snapshot_writer *w);

#endif
