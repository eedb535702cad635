/* npz.h (internal) - beside the public calls: archives in memory, and packed ones. */
#ifndef STK_BASE_NPZ_H
#define STK_BASE_NPZ_H

#include "base/zip.h"
#include "stoker/tensor.h"

STK_MUST_USE stk_status stk_npz_parse(const char *name, const void *data, size_t size,
                                      stk_npz **out, stk_error *err);
STK_MUST_USE stk_status stk_npz_write(stk_zip_writer *writer, int32_t count,
                                      const char *const *names, stk_tensor *const *tensors,
                                      bool deflated, stk_error *err); /* adds, does not commit */

#endif
