/* Shared by all parts of a topology file: the report of an error, and the form of a name. */
#include "control/topology/private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"

int topology_reject(const struct topology_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (reader->error_bytes > 0) {
        vsnprintf(reader->error, reader->error_bytes, format, arguments);
    }
    va_end(arguments);
    return CW_ERROR_ARGUMENT;
}

bool topology_name_valid(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < CW_TOPOLOGY_NAME_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == length;
}
