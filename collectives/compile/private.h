/* Shared by the files of compile/: the problems that the ranks' calls are joined to. */
#pragma once

#include "collectives/compile/compile.h"

/* Calls that are the same at all ranks of a communicator, whose counts have been joined. */
struct joint {
    struct cw_compile_row row;
    uint32_t flags;      /* of rank 0's form: rows, exchanged, planned */
    uint32_t comm_flags; /* enum cw_recording_comm_flags */
    char algorithm[CW_RECORDING_NAME_MAX];
    struct cw_problem *problem; /* NULL: none */
    uint64_t *forms;            /* recording << 32 | form, of each rank: the identity of the joint */
    uint64_t total_ns;          /* of all calls at all ranks */
};

struct joints {
    struct cw_bundle *bundle; /* its communicators are filled in */
    uint32_t *comm_flags;     /* per communicator of the bundle */
    uint32_t count, room, last;
    struct joint *all;
    uint64_t calls, unjoined;
};

/* compile/join.c. All calls of a recording into `joints`. CW_OK, CW_ERROR_ARGUMENT with a line, CW_ERROR_MEMORY. */
int joints_add(struct joints *joints, const struct cw_recording *recording, uint32_t index, char *error,
               size_t error_bytes);
/* Those of one problem become one. */
void joints_merge(struct joints *joints);
void joints_dispose(struct joints *joints);

/* compile/price.c. Chooses, prices and builds; joint->row gets its verdict, *plan the plan if it is served. CW_OK or
 * CW_ERROR_MEMORY. */
int joint_serve(struct joint *joint, const struct cw_compile_request *request, const struct cw_recording *recording,
                uint32_t agreed_count, struct cw_plan **plan);
