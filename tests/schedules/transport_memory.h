/* transport_memory: all ranks of a plan in one process, for tests.
 *
 * Invariants
 *   - From a seed it draws any order that schedule.h allows: when a source is read (piece by piece, at any time up to
 *     the completion), when direct bytes land (piece by piece, at any time up to the notification), which notification
 *     comes first, when a put is sent and complete, and when it answers CW_ERROR_AGAIN. The same seed gives the same
 *     run.
 *   - A seed also draws what is unfair: ranks, messages or kinds of events that come last or first of all
 *     (transport_memory_adversity.c).
 *   - Eager buffers are bounded: at each rank `eager_buffers` puts may wait for their wait; further ones stay with the
 *     sender, incomplete. With 0 buffers an eager put is delivered only once its wait has been announced.
 *   - A host op completes at a rank at any time after the ranks that it needs have started theirs, or only when all
 *     have; contributions are read when their ranks start.
 *   - Until COMPLETE, sources are compared with their contents at put(), direct bytes with the expected ones at
 * ARRIVED. Order of calls: create, the executions, { reset }, enter before a rank's first poll, { polls and poll of an
 *   execution, step }*, destroy. */
#pragma once

#include "collectives/execute/execute.h"

struct cw_memory_fabric;

struct cw_memory_fabric_request {
    uint32_t ranks;
    uint64_t seed;
    uint32_t eager_buffers; /* per rank, signals included */
    /* For plans with host ops: the problem, and how operands are combined. NULL: there are none. */
    const struct cw_problem *problem;
    cw_reduce_function reduce;
    void *reduce_context;
};

/* CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_memory_fabric_create(const struct cw_memory_fabric_request *request, struct cw_memory_fabric **fabric);
void cw_memory_fabric_destroy(struct cw_memory_fabric *fabric);

/* Ready for another run. Operations in progress are forgotten; all ranks must enter again. */
void cw_memory_fabric_reset(struct cw_memory_fabric *fabric, uint64_t seed, uint32_t eager_buffers);

/* A rank's buffers that direct puts may go to (by enum cw_buffer); called before the rank's first poll. A direct put
 * that comes before this call is a fault of the schedule. */
void cw_memory_fabric_enter(struct cw_memory_fabric *fabric, uint32_t rank, void *const buffers[4],
                            const uint64_t bytes[4]);

/* The transport of a rank; stays the fabric's. Its put answers CW_ERROR_AGAIN three times in a row at most. */
const struct cw_transport *cw_memory_fabric_transport(struct cw_memory_fabric *fabric, uint32_t rank);

/* Lets one thing happen that may happen now, drawn from the seed. False if nothing can. */
bool cw_memory_fabric_step(struct cw_memory_fabric *fabric);

/* Whether the next step is one that the seed wants to come only when nothing else can happen, in the ranks either. */
bool cw_memory_fabric_starving(const struct cw_memory_fabric *fabric);

/* The execution of a rank is about to be polled: arrivals so far are no news to it any more. */
void cw_memory_fabric_polls(struct cw_memory_fabric *fabric, uint32_t rank);

/* Ranks that have something to be polled for: events, or a put that was refused. Their order means nothing. */
uint32_t cw_memory_fabric_awake(const struct cw_memory_fabric *fabric);
uint32_t cw_memory_fabric_awake_rank(const struct cw_memory_fabric *fabric, uint32_t i);

/* A schedule's violation of the rules: a direct put to a rank that has not entered or outside its buffers, a tag used
 * twice, a source or direct bytes changed while a put was in progress. NULL: none. */
const char *cw_memory_fabric_fault(const struct cw_memory_fabric *fabric);
