/* bytes: a queue of bytes that grows. All zero: an empty one.
 *
 * Thread: one at a time. */
#pragma once

#include <stddef.h>

struct launch_bytes {
    char *start; /* allocated */
    size_t begin;
    size_t end;
    size_t allocated;
};

/* Room for `count` more behind the end; NULL: no memory. Bytes written there count after launch_bytes_added. */
char *launch_bytes_room(struct launch_bytes *bytes, size_t count);
void launch_bytes_added(struct launch_bytes *bytes, size_t count);
/* CW_OK; CW_ERROR_MEMORY. */
int launch_bytes_add(struct launch_bytes *bytes, const void *data, size_t count);
size_t launch_bytes_count(const struct launch_bytes *bytes);
const char *launch_bytes_front(const struct launch_bytes *bytes);
/* The first `count` are done with. */
void launch_bytes_drop(struct launch_bytes *bytes, size_t count);
void launch_bytes_dispose(struct launch_bytes *bytes);
