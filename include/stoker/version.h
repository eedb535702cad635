/* version.h - which Stoker this is and what it was built with.
 *
 *     printf("stoker %s\n", stk_version());
 *     for (int32_t i = 0; i < stk_feature_count(); i++)
 *         printf("%-10s %s\n", stk_feature_name(i), stk_feature_text(i)); // "onednn     kernels for oneDNN 2"
 */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

STK_API const char *stk_version(void); /* "0.1.0" */
/* Parts that are found, or not, when the library is built. */
STK_API int32_t stk_feature_count(void);
STK_API const char *stk_feature_name(int32_t index); /* "onednn"; NULL beyond the end */
STK_API const char *stk_feature_text(int32_t index); /* "yes, opened at run time", "no" */

#ifdef __cplusplus
}
#endif
#endif
