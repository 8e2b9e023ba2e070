/* What the files host*.c share. */
#pragma once

#include "dataplane/shm/segment.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/host/host.h"

enum {
    /* Blocks from which one copy between processes is cheaper than two through a slot; measured with tests/peers. */
    HOST_DIRECT_MIN_BYTES = 32768,
    /* Reductions up to here are made by one rank: sharing the work takes one more round. */
    HOST_ALONE_MAX_BYTES = 4096,
};

/* Calls of one collective and class of sizes, for CAUSEWAY_EXPLAIN. */
struct host_account {
    uint64_t calls;
    uint64_t measured_ns;
    uint64_t bytes;
    enum mpi_choice_verdict verdict; /* of the last one */
};
enum { HOST_SIZE_CLASSES = 65 };

struct mpi_host {
    struct mpi_comm *comm;
    struct cw_segment segment;
    bool copies_once; /* between any two of its ranks */
    uint64_t round;   /* the last one that this rank began */
    uint64_t arrived; /* the last one that ranks arrive at; the same at all */
    uint64_t passed;  /* signatures of the calls since then; 0: none */
    struct cw_segment_call passed_last;
    struct host_account (*accounts)[HOST_SIZE_CLASSES]; /* per collective; NULL: nobody asked */
    struct host_call *call;                             /* under way; NULL: none */
    char why[CW_SEGMENT_WHY_BYTES];
};

/* A call under way. */
struct host_call {
    struct mpi_host *host;
    struct cw_segment *segment;
    const struct mpi_collective *of;
    struct cw_segment_call entry;
    uint32_t rank;
    uint32_t ranks;
    uint32_t root;
    uint64_t bytes;      /* of the vector, or of a block where all are alike */
    bool is_short;       /* all of it fits short slots */
    uint64_t slot_bytes; /* of the slots in use */
    const uint8_t *send;
    uint8_t *receive;
    int reduce_error;
    bool is_different; /* this rank has noticed that calls differ */
};

/* host/make.c. Whether all ranks share memory with this one; does not change when one fails. */
bool host_all_are_here(const struct mpi_comm *comm);
/* All ranks together. NULL at all of them: there is no segment, and never will be. */
struct mpi_host *host_make(struct mpi_comm *comm);

/* host/round.c. Tells all ranks what host->why says. Returns `code`. */
int host_break(struct host_call *call, int code);
/* What another rank has told so. */
int host_broken(struct host_call *call);
/* Another rank (-1: none of this communicator) was seen in another call; says so, and returns MPI_ERR_NOT_SAME. */
int host_differs(struct host_call *call, int rank);
/* The next round; if this rank `writes`, returns when its slots may be written. MPI_SUCCESS, or an error: the call is
 * over. */
int host_round(struct host_call *call, bool writes, uint64_t *round);
/* The own slot may be read. */
void host_publish(struct host_call *call, uint64_t round);
/* All is read that this rank reads of the rounds before, and written that it writes. MPI_ERR_NOT_SAME: the others'
 * calls differ; else host_await_all will tell. */
int host_arrive(struct host_call *call, uint64_t round);
/* The same at the end of a round in which nobody waits for all: most of these need no arrival. */
int host_pass(struct host_call *call, uint64_t round);
/* The same for who wants to do something when all have arrived, before anybody else goes on: true if this rank was the
 * last; host_complete must follow. */
bool host_arrive_last(struct host_call *call, uint64_t round);
void host_complete(struct host_call *call, uint64_t round);
/* Waits until a rank has published its slot, which is checked to be of the same call, or until all have arrived. */
int host_await(struct host_call *call, uint32_t rank, uint64_t round);
int host_await_all(struct host_call *call, uint64_t round);
/* One copy from or to another rank's memory. */
int host_copy_from(struct host_call *call, uint32_t rank, void *to, uint64_t address, uint64_t bytes);
int host_copy_to(struct host_call *call, uint32_t rank, uint64_t address, const void *from, uint64_t bytes);

/* Signatures of calls, and of several. */
static inline uint64_t host_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static inline uint64_t host_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint8_t *host_slot(const struct host_call *call, uint32_t rank, uint64_t round)
{
    return cw_segment_slot(call->segment, rank, round, call->is_short);
}
static inline uint8_t *host_result(const struct host_call *call, uint64_t round)
{
    return cw_segment_slot(call->segment, call->ranks, round, call->is_short);
}

/* The call waits for the data of rank `owner`, or (UINT32_MAX) for all to arrive. */
void host_describe(const struct host_call *call, uint32_t owner, struct mpi_said *said);

/* The collectives: host/move.c, host/direct.c, host/reduce.c. */
int host_barrier(struct host_call *call);
int host_bcast(struct host_call *call);
int host_scatter(struct host_call *call);
int host_gather(struct host_call *call);
int host_allgather(struct host_call *call);
int host_alltoall(struct host_call *call);
int host_bcast_direct(struct host_call *call);
int host_scatter_direct(struct host_call *call);
int host_gather_direct(struct host_call *call);
int host_allgather_direct(struct host_call *call);
int host_alltoall_direct(struct host_call *call);
int host_reduce(struct host_call *call);
int host_allreduce(struct host_call *call);
int host_reduce_scatter(struct host_call *call);
int host_scan(struct host_call *call);
