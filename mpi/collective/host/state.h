/* Shared by the files of this folder.
 *
 * A call goes through stages. A stage is a function that never waits. It ends the call, or names the next stage and the
 * word of the segment that this stage awaits. So polling a call never blocks, and a blocking call is a loop around the
 * same stages. */
#pragma once

#include "dataplane/shm/segment.h"
#include "mpi/collective/host/host.h"

enum {
    /* Blocks from which one copy between processes is cheaper than two through a slot; measured with tests/peers. */
    HOST_DIRECT_MIN_BYTES = 32768,
    /* Reductions up to here are made by one rank: sharing the work takes one more round. */
    HOST_ALONE_MAX_BYTES = 4096,
    HOST_LOOKS_BEFORE_DOUBT = 1024,
    HOST_GO_ON = -1, /* a stage's answer: with call->next, when what it awaits has come */
};

/* Calls of one collective and class of sizes, for CAUSEWAY_EXPLAIN. */
struct host_account {
    uint64_t calls;
    uint64_t measured_ns;
    uint64_t bytes;
    enum cw_measured_origin origin; /* of the last one */
};
enum { HOST_SIZE_CLASSES = 65 };

/* The last blocking call of a collective, as it began. A call of the same problem begins with a copy. */
struct host_prepared {
    struct cw_problem_request problem;
    const struct mpi_op *op;
    bool is_served;            /* the call is one host op */
    uint32_t kind;             /* mpi_host_kept_kind */
    struct mpi_host_call call; /* without `of`, number, send and receive */
};

struct mpi_host {
    struct mpi_comm *comm;
    uint32_t members;
    int *ranks; /* in the communicator, by member; NULL: all of them */
    struct cw_segment segment;
    bool copies_once; /* between any two of its ranks */
    uint64_t round;   /* the last one that this rank began */
    uint64_t arrived; /* the last one that ranks arrive at; the same at all */
    uint64_t passed;  /* signatures of the calls since then; 0: none */
    struct cw_segment_call passed_last;
    struct host_account (*accounts)[HOST_SIZE_CLASSES]; /* per collective; NULL: nobody asked */
    struct mpi_host_call *blocking;                     /* in progress; NULL: none */
    uint32_t blocking_kind;                             /* of its call, as other ranks name it */
    struct mpi_host_part *parts;                        /* of schedules in progress, in the order of their calls */
    struct host_prepared prepared[CW_COLLECTIVE_COUNT];
    char why[CW_SEGMENT_WHY_BYTES];
};

/* The entry of a table of verdicts for calls of this class of sizes. */
uint8_t *host_kept(uint8_t verdicts[2][CW_COLLECTIVE_COUNT][HOST_SIZE_CLASSES], const struct mpi_collective *call);

/* The rank of a member in the communicator. */
static inline int host_rank(const struct mpi_host *host, uint32_t member)
{
    return host->ranks != NULL ? host->ranks[member] : (int)member;
}

/* ---- host/round.c: rounds on the segment ---- */

/* Publishes host->why to all ranks. Returns `code`. */
int host_break(struct mpi_host_call *call, int code);
/* The error that another rank has reported that way. */
int host_broken(struct mpi_host_call *call);
/* Another rank (-1: none of this communicator) was seen in another call; says so, and returns MPI_ERR_NOT_SAME. */
int host_differs(struct mpi_host_call *call, int rank);
/* Breaks the segment if no event can end the wait of the call. */
void host_doubt(struct mpi_host_call *call);

/* Runs stages until one has to wait: MPI_ERR_PENDING, or the code with which the call has ended. */
int host_poll(struct mpi_host_call *call);

/* The next round, in call->round; if this rank `writes`, `then` comes when its slots may be written. */
int host_round(struct mpi_host_call *call, bool writes, mpi_host_stage *then);
/* The own slot may be read. */
void host_publish(struct mpi_host_call *call);
/* All is read that this rank reads of the rounds before, and written that it writes. MPI_ERR_NOT_SAME: the others'
 * calls differ; else host_await_all reports it. */
int host_arrive(struct mpi_host_call *call);
/* The same at the end of a round in which no rank waits for all: most of these need no arrival. */
int host_pass(struct mpi_host_call *call);
/* The same if this rank must act when all have arrived, before the others continue: true if this rank was the last;
 * host_complete must follow. */
bool host_arrive_last(struct mpi_host_call *call);
void host_complete(struct mpi_host_call *call);
/* `then` comes when a rank has published its slot, which is checked to be of the same call, or when all have arrived.
 */
int host_await(struct mpi_host_call *call, uint32_t member, mpi_host_stage *then);
int host_await_all(struct mpi_host_call *call, mpi_host_stage *then);
/* One copy from or to another rank's memory. */
int host_copy_from(struct mpi_host_call *call, uint32_t member, void *to, uint64_t address, uint64_t bytes);
int host_copy_to(struct mpi_host_call *call, uint32_t member, uint64_t address, const void *from, uint64_t bytes);

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

static inline uint8_t *host_slot(const struct mpi_host_call *call, uint32_t member, uint64_t round)
{
    return cw_segment_slot(call->segment, member, round, call->is_short);
}
static inline uint8_t *host_result(const struct mpi_host_call *call, uint64_t round)
{
    return cw_segment_slot(call->segment, call->members, round, call->is_short);
}

/* Bytes of a member's block: all alike, or as the call's counts say. */
static inline uint64_t host_block(const struct mpi_host_call *call, uint32_t member)
{
    return call->counts == NULL ? call->bytes : call->counts[member] * call->element;
}

static inline uint64_t host_longest_block(const struct mpi_host_call *call)
{
    uint64_t longest = call->bytes;
    for (uint32_t member = 0; call->counts != NULL && member < call->members; member++) {
        longest = host_block(call, member) > longest ? host_block(call, member) : longest;
    }
    return longest;
}

/* Whether the awaited word has its value; pairs with cw_segment_publish and cw_segment_complete. */
static inline bool host_has_arrived(const struct mpi_host_call *call)
{
    return atomic_load_explicit(call->word, memory_order_acquire) >= call->least;
}

/* A rank's own part, which may lie where it belongs already. */
void host_move(void *to, const void *from, uint64_t bytes);

/* The wait of a call, after its name: the data of member `owner`, or (UINT32_MAX) the arrival of all. */
void host_describe(const struct mpi_host_call *call, uint32_t owner, struct mpi_said *said);

/* ---- The first stages of the collectives: host/move.c, host/direct.c, host/reduce.c ---- */

mpi_host_stage host_barrier, host_bcast, host_scatter, host_gather, host_allgather, host_alltoall;
mpi_host_stage host_bcast_direct, host_scatter_direct, host_gather_direct, host_allgather_direct, host_alltoall_direct;
mpi_host_stage host_reduce, host_allreduce, host_reduce_scatter, host_scan;
