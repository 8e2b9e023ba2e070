/* bundle: a file of many plans, for the collective calls of a program. `causeway plan compile` writes it and `causeway
 * run --plan` uses it.
 *
 * Purpose
 *   Plans (plan_file.h), each with its communicator and the number and time of its recorded calls; and the
 *   communicators whose multicast groups are opened as soon as the communicator is made.
 *
 * Invariants
 *   - As in plan_file.h: for any bytes, decoding gives valid plans, for communicators of as many ranks, or an error.
 *   - No two plans of a communicator are for the same problem.
 *
 * Content of the file (pack.h): program, ranks; communicators: context, size, 1 to open its group at once, members;
 * plans: communicator, calls, nanoseconds recorded, nanoseconds expected, length and bytes of a plan file. No I/O.
 * Thread: any. */
#pragma once

#include "collectives/file/pack.h"
#include "collectives/file/recording.h"
#include "collectives/schedule/plan.h"

enum {
    CW_BUNDLE_VERSION = 1,
    CW_BUNDLE_PLANS_MAX = 4096,
};

struct cw_bundle_comm {
    uint64_t context;
    uint32_t size;
    bool opens_group;
    uint32_t *members; /* ranks in MPI_COMM_WORLD */
};

struct cw_bundle_plan {
    uint32_t comm;    /* index */
    uint64_t calls;   /* recorded */
    uint64_t now_ns;  /* such a call took as recorded, on average */
    uint64_t then_ns; /* expected with the plan; 0: nobody knows */
    struct cw_plan *plan;
};

struct cw_bundle {
    char program[CW_RECORDING_NAME_MAX];
    uint32_t ranks;
    uint32_t comm_count;
    uint32_t plan_count;
    struct cw_bundle_comm *comms;
    struct cw_bundle_plan *plans;
};

/* Whether a file is a bundle, and not a plan. */
bool cw_bundle_is(const void *bytes, size_t length);

/* *bytes is the caller's to free. CW_OK, CW_ERROR_MEMORY, CW_ERROR_LIMIT. */
int cw_bundle_encode(const struct cw_bundle *bundle, void **bytes, size_t *length);
/* CW_OK: the caller releases it with cw_bundle_destroy. CW_ERROR_ARGUMENT with the problem in `error`;
 * CW_ERROR_UNSUPPORTED; CW_ERROR_MEMORY. */
int cw_bundle_decode(const void *bytes, size_t length, struct cw_bundle **bundle, char *error, size_t error_bytes);
/* Frees it with its plans; NULL is allowed. */
void cw_bundle_destroy(struct cw_bundle *bundle);

/* Whether two problems are the same to a caller of MPI. */
bool cw_bundle_same(const struct cw_problem *a, const struct cw_problem *b);
