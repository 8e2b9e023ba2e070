#include "control/launch/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { BYTES_FIRST = 4096 };

char *launch_bytes_room(struct launch_bytes *bytes, size_t count)
{
    if (bytes->allocated - bytes->end < count && bytes->begin > 0) {
        memmove(bytes->start, bytes->start + bytes->begin, bytes->end - bytes->begin);
        bytes->end -= bytes->begin;
        bytes->begin = 0;
    }
    if (bytes->allocated - bytes->end < count) {
        size_t wanted = bytes->allocated == 0 ? BYTES_FIRST : 2 * bytes->allocated;
        wanted = wanted < bytes->end + count ? bytes->end + count : wanted;
        char *grown = realloc(bytes->start, wanted);
        if (grown == NULL) {
            return NULL;
        }
        bytes->start = grown;
        bytes->allocated = wanted;
    }
    return bytes->start + bytes->end;
}

void launch_bytes_added(struct launch_bytes *bytes, size_t count)
{
    assert(count <= bytes->allocated - bytes->end);
    bytes->end += count;
}

int launch_bytes_add(struct launch_bytes *bytes, const void *data, size_t count)
{
    if (count == 0) {
        return CW_OK;
    }
    char *room = launch_bytes_room(bytes, count);
    if (room == NULL) {
        return CW_ERROR_MEMORY;
    }
    memcpy(room, data, count);
    bytes->end += count;
    return CW_OK;
}

size_t launch_bytes_count(const struct launch_bytes *bytes)
{
    return bytes->end - bytes->begin;
}

const char *launch_bytes_front(const struct launch_bytes *bytes)
{
    return bytes->start == NULL ? NULL : bytes->start + bytes->begin;
}

void launch_bytes_drop(struct launch_bytes *bytes, size_t count)
{
    assert(count <= bytes->end - bytes->begin);
    bytes->begin += count;
    if (bytes->begin == bytes->end) {
        bytes->begin = bytes->end = 0;
    }
}

void launch_bytes_dispose(struct launch_bytes *bytes)
{
    free(bytes->start);
    *bytes = (struct launch_bytes){.start = NULL};
}
