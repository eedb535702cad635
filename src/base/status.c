/* The texts of statuses and the writing of messages. No allocation: it must work when memory is
 * out. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
#define STK_STATUS(name, number, text) [number] = text,
#include "stoker/status.def"
};

const char *stk_status_name(stk_status status)
{
    size_t number = (size_t)status;
    return number < sizeof status_names / sizeof *status_names ? status_names[number]
                                                               : "unknown status";
}

stk_status stk_fail(stk_error *err, stk_status code, const char *format, ...)
{
    if (!err) return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

stk_status stk_fail_in(stk_error *err, stk_status code, const char *format, ...)
{
    if (!err) return code;
    char inner[STK_ERROR_TEXT];
    memcpy(inner, err->message, sizeof inner);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (used < 0) used = 0;
    if ((size_t)used < sizeof err->message)
        snprintf(err->message + used, sizeof err->message - (size_t)used, ": %.*s",
                 (int)sizeof inner - 1, inner);
    err->code = code;
    return code;
}

stk_status stk_fail_memory(stk_error *err, const char *what, size_t bytes)
{
    return stk_fail(err, STK_ERR_MEMORY,
                    "%s: out of memory while asking for %zu bytes; close other programs, use a "
                    "smaller batch or a smaller model",
                    what, bytes);
}
