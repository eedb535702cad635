/* dlpack.h - the DLPack 0.8 structures as other libraries expect them in memory (64-bit).
 *
 *     DLManagedTensor, 64 bytes                 DLTensor, its first 48
 *      0  8  data                                0  8  data
 *      8  4  device type (1 = CPU)               8  8  device: i32 type, i32 number
 *     12  4  device number                      16  4  i32 rank
 *     16  4  rank                               20  4  dtype: u8 code, u8 bits, u16 lanes
 *     20  1  dtype code   0 int    1 uint       24  8  shape, i64[rank]
 *                         2 float  4 bfloat     32  8  strides in elements, i64[rank], NULL = dense
 *                         6 bool                40  8  byte_offset of the first element from data
 *     21  1  bits
 *     22  2  lanes (1)
 *     24  8  shape
 *     32  8  strides
 *     40  8  byte_offset
 *     48  8  context of the maker
 *     56  8  deleter(managed), called once by the consumer; may be NULL */
#ifndef STK_BASE_DLPACK_H
#define STK_BASE_DLPACK_H

#include <stdint.h>

enum { STK_DL_CPU = 1 };
enum { STK_DL_INT = 0, STK_DL_UINT = 1, STK_DL_FLOAT = 2, STK_DL_BFLOAT = 4, STK_DL_BOOL = 6 };

typedef struct stk_dl_tensor {
    void *data;
    int32_t device_type, device_number;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} stk_dl_tensor;

typedef struct stk_dl_managed {
    stk_dl_tensor tensor;
    void *context;
    void (*deleter)(struct stk_dl_managed *self);
} stk_dl_managed;

#endif
