/* events: the descriptors in a launcher's or an agent's epoll set, and the kind of each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum launch_source {
    LAUNCH_SIGNALS, /* of this process */
    LAUNCH_SUPERVISOR,
    LAUNCH_STDIN,
    LAUNCH_STDOUT,
    LAUNCH_STDERR,
    /* the local ranks'; the index of a member goes with the last three */
    LAUNCH_OUTPUTS, /* the epoll set of all outputs */
    LAUNCH_PMI,
    LAUNCH_PROCESS,
    LAUNCH_MEMBER_INPUT,
    /* a link's; its index goes with it */
    LAUNCH_LINK_IN,
    LAUNCH_LINK_OUT,
    LAUNCH_LINK_ERRORS,
    LAUNCH_LINK_COMMAND, /* that started the agent: has ended */
};

/* Adds a descriptor to an epoll set. False: it cannot be waited for, since it is a file. */
bool launch_watch(int set, int descriptor, uint32_t events, enum launch_source source, uint32_t index);
void launch_unwatch(int set, int descriptor);
