/* safetensors.h (internal) - weight files from memory, for the fuzzer and for tests.
 *
 *     0      8   N: bytes of the header, little endian; at most 100 000 000
 *     8      N   JSON object: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...},
 *                spaces behind it; "__metadata__" may hold an object of texts
 *     8 + N      elements, row-major, little endian; offsets count from here, and the tensors cover everything up
 *                to the end of the file without holes and without overlap
 */
#ifndef STK_TRAIN_SAFETENSORS_H
#define STK_TRAIN_SAFETENSORS_H

#include "stoker/train.h"

STK_MUST_USE stk_status stk_safetensors_parse(const char *name, const void *data, size_t size,
                                              stk_safetensors **out, stk_error *err);

#endif
