/* One-line errors for users: the failure, its place, and the fix. The text goes with a code of enum cw_status. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the text (cut to fit, always ended by a 0) if there is room for any and returns `status`, so that a failing
 * function can say `return cw_error_text(...)`. Any thread. */
__attribute__((format(printf, 4, 5))) static inline int cw_error_text(char *error, size_t error_bytes, int status,
                                                                      const char *format, ...)
{
    if (error != NULL && error_bytes > 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error, error_bytes, format, arguments);
        va_end(arguments);
    }
    return status;
}
