/* Shared by the files of a host's local ranks: the events that its loop watches, and the reports to the supervisor. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "control/launch/local.h"

enum { TEXT_BYTES = 512 };

bool launch_watch(int set, int descriptor, uint32_t events, enum launch_source source, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST;
}

void launch_unwatch(int set, int descriptor)
{
    epoll_ctl(set, EPOLL_CTL_DEL, descriptor, NULL);
}

void launch_local_report(struct launch_local *local, enum launch_frame_type type, uint32_t rank, int32_t value,
                         const void *bytes, size_t count)
{
    const struct launch_frame frame = {
        .type = type, .rank = rank, .value = value, .bytes = bytes, .count = (uint32_t)count};
    local->config.up.receive(local->config.up.context, &frame);
}

void launch_local_fail(struct launch_local *local, int code, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    if (local->failed) {
        return;
    }
    local->failed = true;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    launch_local_report(local, LAUNCH_FAIL, local->config.host, code, text, strlen(text));
}

uint32_t launch_local_index(const struct launch_local *local, const struct launch_member *member)
{
    return (uint32_t)(member - local->members);
}
