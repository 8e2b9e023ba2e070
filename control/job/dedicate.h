/* dedicate: the cores of this process's dataplane threads, if it has any.
 *
 *    CAUSEWAY_DEDICATED=2             number of threads, each on a core that this process may use, if its machine's
 *                                     ranks leave enough
 *    CAUSEWAY_DEDICATED=cores:2,4-7   these, in order, for the ranks of a machine, one each
 *    CAUSEWAY_DEDICATED=2,cores:2,4-7 ... two each
 *    CAUSEWAY_DEDICATED=0, off, ""    none: threads of the program turn the dataplane inside their calls (the default)
 *    CAUSEWAY_DEDICATED_CORE          what `causeway run --dedicated` has found by hwloc for this rank, which wins:
 *                                     cores, as 3,5, or "none: REASON"
 *
 * Threads spin, so they never get a core that a rank of the machine needs: if there are too few cores, the reason is
 * reported, and the process continues without a thread.
 *
 * Thread: any. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/base/process.h"
#include "dataplane/loop/loop_set.h"

enum { CW_DEDICATE_TEXT_BYTES = 160 };

/* A wish, read. */
struct cw_dedicate_wish {
    uint32_t threads; /* of each rank, up to CW_LOOP_SET_MAX; 0: none is wanted */
    bool has_list;    /* `cores` are named */
    uint32_t count;
    uint16_t cores[CPU_SETSIZE]; /* in the order of the text, each once */
};

/* CW_OK, or CW_ERROR_ARGUMENT with a line in `error`: the accepted values. */
int cw_dedicate_read(const char *text, struct cw_dedicate_wish *wish, char *error, size_t error_bytes);

/* A rank among those of its machine. */
struct cw_dedicate_place {
    uint32_t number; /* from 0 */
    uint32_t count;
    struct cw_process_cores cores; /* of this process */
    cpu_set_t allowed;             /* ... which they are */
};

/* The cores of a rank's threads. */
struct cw_dedicated {
    uint32_t count; /* 0: none, and `why` is the reason, or "" if none is wanted */
    int cores[CW_LOOP_SET_MAX];
    char why[CW_DEDICATE_TEXT_BYTES];
};

/* *rest: the cores that are left to the program. */
void cw_dedicate_choose(const struct cw_dedicate_wish *wish, const struct cw_dedicate_place *place, cpu_set_t *rest,
                        struct cw_dedicated *dedicated);

/* The same for the result of `causeway run`, which excludes the program's cores. CW_OK, CW_ERROR_ARGUMENT: it is
 * neither cores nor "none: REASON". */
int cw_dedicate_parse(const char *text, struct cw_dedicated *dedicated);
