/* host: collective calls among the ranks of one host, by shared memory and without messages: the host ops of schedules.
 *
 * Purpose
 *   The ranks of a host share a segment (dataplane/shm/segment.h), made with the third blocking call of a communicator,
 * so that communicators that are hardly used cost nothing. Short blocks go through its slots; long ones are copied
 * once, straight between the processes, where the kernel permits. Reductions are made where the data is: by the last
 * rank to come if they are short, else a slice by each rank.
 *
 * Invariants
 *   - All ranks of a communicator agree on whether it has levels, from data that is the same at all of them.
 *   - Calls on a segment follow each other in the order of the communicator's calls; a later one begins when the host
 * ops of the one before are complete at this rank.
 *   - A blocking call whose schedule is one host op carries it out at once, without an executor.
 *   - Operands of reductions are combined in rank order, always in the same way: results do not depend on the order of
 * arrival.
 *   - Each rank writes its call into the segment when it enters. A rank that notices another call ends its own with an
 *     error and marks the segment as broken. All ranks then end that call with an error, and use messages afterwards.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdatomic.h>

#include "collectives/choose/measured.h"
#include "collectives/execute/transport.h"
#include "dataplane/shm/segment.h"
#include "mpi/collective/state/collective.h"

struct mpi_host;
struct mpi_host_call;

/* Part of a call: returns MPI_SUCCESS at its end, an error, or HOST_GO_ON (state.h). */
typedef int mpi_host_stage(struct mpi_host_call *call);

/* A call in progress. */
struct mpi_host_call {
    struct mpi_host *host;
    struct cw_segment *segment;
    const struct mpi_collective *of; /* the call of the program */
    enum cw_collective collective;
    uint32_t member; /* this rank */
    uint32_t members;
    uint32_t root;          /* member */
    uint64_t element;       /* bytes */
    uint64_t bytes;         /* of the vector, or of a block where all are alike */
    const uint64_t *counts; /* elements of each member's block; NULL: all alike */
    bool is_short;          /* all of it fits short slots */
    uint64_t slot_bytes;    /* of the slots in use */
    const uint8_t *send;
    uint8_t *receive;
    int reduce_error;
    bool is_different; /* this rank has noticed that calls differ */
    uint64_t number;   /* of the program's call, or of its run, rising on this segment */
    struct cw_segment_call entry;
    /* where it is */
    mpi_host_stage *next;
    mpi_host_stage *then; /* behind a round that is about to begin */
    bool writes;
    uint64_t round;
    uint64_t round_before; /* that in which operands were contributed */
    uint64_t done;         /* bytes, from the beginning of blocks */
    uint64_t address;
    /* what it awaits */
    const _Atomic uint64_t *word; /* NULL: nothing */
    uint64_t least;
    uint32_t owner; /* of the word, a member; UINT32_MAX: all */
    uint32_t looks;
};

/* The part of a schedule in progress in the calls among the ranks of this host. */
struct mpi_host_part {
    struct mpi_host *host;              /* NULL: it has none */
    struct mpi_host_part *next;         /* on this segment */
    struct mpi_host_part *next_running; /* in this process */
    const struct mpi_collective *of;
    uint32_t left;    /* host ops to be completed */
    bool is_asked;    /* for `op`, which has not begun */
    bool is_running;  /* `call` is in progress */
    bool is_dozing;   /* ... and this process has announced its sleep */
    int reduce_error; /* of a function of the program */
    uint64_t number;  /* as in struct mpi_host_call */
    struct cw_transport_host op;
    struct mpi_host_call call;
};

/* ---- Levels ---- */

/* A blocking call begins, or a persistent one is made: makes a communicator's levels if it is time. May talk to the
 * other ranks, once per communicator. */
void mpi_host_levels_begin(struct mpi_collective *call, bool is_persistent);
/* Whether call `number` of a communicator may have levels: it has got them, and no call before has failed with them. */
bool mpi_host_has_levels(const struct mpi_comm *comm, uint32_t number);
/* The same of run `run` of a persistent call with a segment of its own. */
bool mpi_host_is_whole(const struct mpi_host *host, uint64_t run);
/* A segment of a persistent call's own, which may be started in another order than others. All ranks of a communicator
 * with levels call it together. NULL at all of them: there is none. */
struct mpi_host *mpi_host_own(struct mpi_comm *comm);
/* NULL is allowed. */
void mpi_host_destroy(struct mpi_host *host);

/* ---- Blocking calls that are one host op ---- */

/* Whether the call is one host op; then prepares it for mpi_host_run. */
bool mpi_host_serves(const struct mpi_collective *call);
/* Where its kind (mpi_describe_kind) is kept for later calls like it; 0: not yet. */
uint32_t *mpi_host_kept_kind(const struct mpi_collective *call);
/* Whether all that a host op needs is known alike at all ranks, and an element fits a slot. */
bool mpi_host_fits(const struct mpi_collective *call);
/* Runs call `number`, which mpi_host_serves has prepared, to its end: from `send` to `receive`, both packed as
 * problem.h says; with in-place calls `send` is where the data lies in the receive buffer, if
 * mpi_host_accepts_in_place. `kind`: mpi_describe_kind. MPI_SUCCESS, or an error code, not raised; then `mpi_host_why`
 * has a line. */
int mpi_host_run(struct mpi_collective *call, uint32_t number, uint32_t kind, const void *send, void *receive);
bool mpi_host_accepts_in_place(const struct mpi_collective *call);
/* Notifies the others that this rank cannot take part after all (no memory): their calls end with an error. */
void mpi_host_abandon(struct mpi_collective *call, uint32_t number);
/* The kind (mpi_describe_kind) of the one that is in progress; false: none is. */
bool mpi_host_kind(const struct mpi_host *host, uint32_t *kind);
/* Rank `peer` (-1: none of this communicator) has begun by messages what this rank carries out so: calls by both end
 * with an error. False: no call is in progress. */
bool mpi_host_mismatch(struct mpi_comm *comm, int peer);
const char *mpi_host_why(const struct mpi_collective *call);
/* Hints of the communicator have changed: looks up again which algorithms they name. */
void mpi_host_reconsider(struct mpi_comm *comm);

/* ---- Host ops of schedules ---- */

/* A schedule with `ops` of them begins, or ends. After a failure the segment is broken, and the communicator's later
 * calls use messages. */
void mpi_host_part_begin(struct mpi_host_part *part, struct mpi_host *host, const struct mpi_collective *of,
                         uint64_t number, uint32_t ops);
void mpi_host_part_end(struct mpi_host_part *part, bool has_failed);
/* Starts one. MPI_SUCCESS: it is complete; MPI_ERR_PENDING: mpi_host_part_poll will tell; others: it has failed, and
 * mpi_host_part_why says why. */
int mpi_host_part_start(struct mpi_host_part *part, const struct cw_transport_host *op);
/* The same of the one that was started; MPI_ERR_PENDING also if there is none. */
int mpi_host_part_poll(struct mpi_host_part *part);
const char *mpi_host_part_why(const struct mpi_host_part *part);
/* Describes the wait of the current one; false: there is none. */
bool mpi_host_part_describe(const struct mpi_host_part *part, struct mpi_said *said);
/* This process is about to sleep, or sleeps no more: a process that changes memory awaited by its host ops wakes it.
 * Returns whether one of them can advance, so that it need not sleep. */
void mpi_host_doze(bool asleep);
bool mpi_host_can_continue(void);
