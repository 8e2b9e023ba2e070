/* binding: which processors each rank of a host may run on, and which cores its dataplane threads have.
 *
 * Cores for dataplane threads are set apart before the ranks get theirs, whole ones, since a thread that spins takes
 * half of a core from its other hardware threads:
 *   1. those of the list, if there is one, in order;
 *   2. cores that the kernel keeps free (isolcpus), if there are enough for all ranks;
 *   3. if there is one more for each rank: the last ones, those in the NUMA domain of the interface first that
 *      CAUSEWAY_TRANSPORT names.
 *
 * Thread: any. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/job/dedicate.h"

struct launch_binding_wish {
    const char
        *word; /* "core", a core for each rank; "hwthread", a hardware thread; "numa", all of a NUMA domain; "none" */
    bool by_numa;             /* ranks go around the domains in turn instead of filling one after another */
    const char *dedicated;    /* as cw_dedicate_read has it */
    const char *transport;    /* of CAUSEWAY_TRANSPORT; NULL: none */
    uint32_t count;           /* ranks */
    const cpu_set_t *allowed; /* the processors that there are; NULL: those of this process */
    const char *isolated;     /* those that the kernel keeps free, as 2,4-7; NULL: read from the kernel */
};

struct launch_binding {
    cpu_set_t *cores; /* of each rank; NULL: all that this process has */
    int *dedicated;   /* processors of dataplane threads: rank i's are `threads` from i * threads on; NULL: none is
                         wanted, or there are too few */
    uint32_t threads; /* of each rank */
    char undedicated[CW_DEDICATE_TEXT_BYTES]; /* why there are none; "": none were wanted */
};

/* False: a line in `error`: not one for each, no memory, no sense. A zeroed binding
 * has nothing; to be disposed of. */
bool launch_binding_make(const struct launch_binding_wish *wish, struct launch_binding *binding, char *error,
                         size_t error_bytes);
void launch_binding_dispose(struct launch_binding *binding);

/* Whether --bind-to knows the word. */
bool launch_binding_knows(const char *word);
