/* spill.h - arrays that are larger than the memory we may use.
 *
 * Small ones, and those for which memory is left, are ordinary tensors. Others lie in a file without a name in $TMPDIR or
 * /var/tmp, mapped: the system writes their pages out and reads them back as it needs. */
#ifndef STK_BASE_SPILL_H
#define STK_BASE_SPILL_H

#include "stoker/files.h" /* stk_tensor_roomy */

/* Dense elements of a tensor, in the same kind of place. */
STK_MUST_USE stk_status stk_tensor_roomy_copy(const char *what, const stk_tensor *t,
                                              stk_tensor **out, stk_error *err);
/* "1.50 GiB"; returns text. */
char *stk_bytes_text(double bytes, char text[24]);
#define STK_BYTES_TEXT(bytes) stk_bytes_text((double)(bytes), (char[24]){0})

#endif
