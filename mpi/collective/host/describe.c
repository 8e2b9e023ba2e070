/* Describes the wait of a call in shared memory, for reports. */
#include "mpi/collective/host/state.h"

enum { NAMED_MAX = 4 };

void host_describe(const struct mpi_host_call *call, uint32_t owner, struct mpi_said *said)
{
    const struct mpi_comm *comm = call->of->comm;
    uint64_t entered = atomic_load_explicit(&call->segment->lines[call->member].entered, memory_order_relaxed);
    uint32_t count = 0;
    for (uint32_t member = 0; member < call->members; member++) {
        struct cw_segment_call other;
        uint64_t round = cw_segment_call_of(call->segment, member, &other);
        if (round >= entered) {
            continue;
        }
        if (++count <= NAMED_MAX) {
            mpi_describe(said, ", which rank %d has not entered", host_rank(call->host, member));
            if (round != 0) {
                mpi_describe(said, " (its last one here by shared memory was %s)",
                             cw_collective_name((enum cw_collective)other.kind));
            }
        }
        mpi_describe_awaited(said, comm, host_rank(call->host, member));
    }
    if (count > NAMED_MAX) {
        mpi_describe(said, "; and %u more have not", count - NAMED_MAX);
    }
    if (count == 0 && owner != UINT32_MAX) {
        mpi_describe(said, ", which all ranks have entered; waits for data of rank %d", host_rank(call->host, owner));
        mpi_describe_awaited(said, comm, host_rank(call->host, owner));
    } else if (count == 0) {
        mpi_describe(said, ", which all ranks have entered");
    }
}
