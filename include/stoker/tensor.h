/* tensor.h - n-dimensional arrays: element types, shapes with strides, views, shared memory.
 *
 *     float numbers[6] = {1, 2, 3, 4, 5, 6};
 *     stk_tensor *a = NULL, *row = NULL;
 *     stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, numbers, &a, NULL);
 *     stk_tensor_slice(a, (int64_t[]){1, 0}, (int64_t[]){1, 3}, &row, NULL); // row 1, no copy
 *     printf("%g\n", ((const float *)row->data)[0]);                         // 4
 *     stk_tensor_release(row);
 *     stk_tensor_release(a);
 *
 * Ownership: a stk_tensor is a counted handle. `_new/_from/_wrap/_slice/...` give you one handle,
 * which you give back with stk_tensor_release (NULL is fine). stk_tensor_retain makes one more. A
 * view is a handle of its own that keeps the memory it looks at alive. The fields may be read by
 * anybody and are written only by the library. */
#ifndef STOKER_TENSOR_H
#define STOKER_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_dtype {
#define STK_DTYPE(suffix, name, bytes, kind, numpy) STK_##suffix,
#include "dtype.def"
    STK_DTYPE_COUNT
} stk_dtype;

STK_API const char *stk_dtype_name(stk_dtype dtype); /* "float32"; "?" when out of range */
STK_API int64_t stk_dtype_size(stk_dtype dtype);     /* bytes of one element */
STK_API bool stk_dtype_parse(const char *name, stk_dtype *out); /* "float32", "f32", "<f4" */

enum { STK_MAX_RANK = 8 };

/* An element of a STK_STRING tensor. The bytes belong to the tensor's buffer; not 0-terminated. */
typedef struct stk_string {
    const char *data;
    int64_t size;
} stk_string;

/* Memory with the function that frees it, so numpy, mmap, pinned and own memory are one case. */
typedef struct stk_buffer {
    void *data;
    size_t size;
    void (*release)(struct stk_buffer *self); /* runs once, frees data and self */
    void *owner;                              /* for release */
    int32_t refs;                             /* atomic */
    bool readonly;
    /* Memory that belongs to a device (stoker/device.h); NULL: plain memory of the host. With a block the elements are
     * where the host cannot touch them, and data is NULL; without one it is host memory that goes up fast (pinned). */
    struct stk_device *device;
    struct stk_block *block;
} stk_buffer;

/* Where somebody who needs much memory again and again gets it: batches of an input pipeline in pinned memory of a
 * device, say. All NULL: from the library's own allocator. */
typedef struct stk_memory_source {
    void *(*alloc)(void *context, size_t bytes); /* zeroed or not; NULL when out of memory */
    void (*free)(void *context, void *memory, size_t bytes);
    void (*retain)(void *context); /* the context is needed for longer; both may be NULL */
    void (*release)(void *context);
    void *context;
    struct stk_device *device; /* noted in the buffers */
} stk_memory_source;

typedef struct stk_tensor {
    void *data; /* first element */
    stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    int64_t stride[STK_MAX_RANK]; /* in elements; may be 0 (broadcast) or negative */
    stk_buffer *buffer;
    int32_t refs; /* atomic */
    bool inside;  /* lives inside the block of its buffer */
} stk_tensor;

/* Making. Shapes are checked: rank 0..8, no negative size, no overflow. */
STK_API STK_MUST_USE stk_status stk_tensor_new(stk_dtype dtype, int32_t rank, const int64_t *shape,
                                               stk_tensor **out, stk_error *err); /* zeroed */
STK_API STK_MUST_USE stk_status stk_tensor_from(stk_dtype dtype, int32_t rank, const int64_t *shape,
                                                const void *data, stk_tensor **out,
                                                stk_error *err); /* copies data */
/* Takes foreign memory without a copy. On success the tensor owns it: release(owner) runs once when
 * the last handle is gone (release may be NULL). On failure the caller keeps it. stride NULL =
 * dense. */
STK_API STK_MUST_USE stk_status stk_tensor_wrap(stk_dtype dtype, int32_t rank, const int64_t *shape,
                                                const int64_t *stride, void *data,
                                                void (*release)(void *owner), void *owner,
                                                stk_tensor **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_tensor_strings(int32_t rank, const int64_t *shape,
                                                   const stk_string *items, stk_tensor **out,
                                                   stk_error *err); /* copies the bytes */
STK_API STK_MUST_USE stk_status stk_tensor_scalar(stk_dtype dtype, double value, stk_tensor **out,
                                                  stk_error *err);
STK_API stk_tensor *stk_tensor_retain(stk_tensor *tensor);
STK_API void stk_tensor_release(stk_tensor *tensor);

/* Views: no element is copied. */
STK_API STK_MUST_USE stk_status stk_tensor_slice(stk_tensor *t, const int64_t *start,
                                                 const int64_t *size, stk_tensor **out,
                                                 stk_error *err);
STK_API STK_MUST_USE stk_status stk_tensor_transpose(stk_tensor *t, const int32_t *perm,
                                                     stk_tensor **out, stk_error *err);
/* One size may be -1. Copies only when the strides leave no other way. */
STK_API STK_MUST_USE stk_status stk_tensor_reshape(stk_tensor *t, int32_t rank,
                                                   const int64_t *shape, stk_tensor **out,
                                                   stk_error *err);

/* Copying. stk_tensor_dense returns the same handle, retained, when t is dense already. */
STK_API STK_MUST_USE stk_status stk_tensor_dense(stk_tensor *t, stk_tensor **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_tensor_copy(stk_tensor *to, const stk_tensor *from,
                                                stk_error *err); /* same shape, dtypes may differ */
STK_API STK_MUST_USE stk_status stk_tensor_cast(const stk_tensor *t, stk_dtype dtype,
                                                stk_tensor **out, stk_error *err);

/* Asking. */
STK_API int64_t stk_tensor_count(const stk_tensor *t); /* elements */
STK_API int64_t stk_tensor_bytes(const stk_tensor *t); /* elements x element size */
STK_API bool stk_tensor_is_dense(const stk_tensor *t);
/* Element by flat row-major index as a double; 0 when out of range or a string, NaN of a tensor that is on a device. */
STK_API double stk_tensor_at(const stk_tensor *t, int64_t index);
STK_API STK_MUST_USE stk_status stk_tensor_set(stk_tensor *t, int64_t index, double value,
                                               stk_error *err);
/* "float32[2,3]" into text (at most size bytes, always terminated); returns text. */
STK_API char *stk_tensor_describe(const stk_tensor *t, char *text, size_t size);

/* Files: .npy (one array) and .npz (named arrays, stored or deflated). */
STK_API STK_MUST_USE stk_status stk_npy_load(const char *path, stk_tensor **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_npy_save(const char *path, const stk_tensor *t, stk_error *err);

typedef struct stk_npz stk_npz; /* named tensors */
STK_API STK_MUST_USE stk_status stk_npz_load(const char *path, stk_npz **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_npz_save(const char *path, int32_t count,
                                             const char *const *names, stk_tensor *const *tensors,
                                             stk_error *err);
STK_API int32_t stk_npz_count(const stk_npz *npz);
STK_API const char *stk_npz_name(const stk_npz *npz, int32_t index);
STK_API stk_tensor *stk_npz_tensor(const stk_npz *npz, int32_t index);  /* borrowed */
STK_API stk_tensor *stk_npz_find(const stk_npz *npz, const char *name); /* borrowed; NULL */
STK_API void stk_npz_release(stk_npz *npz);

/* DLPack: `managed` is a DLManagedTensor*. Export gives one that keeps t alive until its deleter
 * runs; import takes it over on success and leaves it with the caller on failure. */
STK_API STK_MUST_USE stk_status stk_dlpack_export(stk_tensor *t, void **managed, stk_error *err);
STK_API STK_MUST_USE stk_status stk_dlpack_import(void *managed, stk_tensor **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
