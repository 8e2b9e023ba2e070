/* message: what travels between two processes for point-to-point communication.
 *
 * A message of dataplane/path/ whose tag (20 bits) is its kind, in the lane of its communicator: all that may be
 * matched in order stays in order. */
#pragma once

#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/path/path.h"
#include "mpi.h"

enum mpi_message_kind {
    MPI_SENT_EAGER = 1,  /* mpi_envelope, then the data */
    MPI_SENT_SYNC = 2,   /* mpi_envelope, mpi_answer_to, then the data: wants MPI_SENT_DONE when it has been matched */
    MPI_SENT_LONG = 3,   /* mpi_envelope, mpi_offer: the receiver gets the data, then says MPI_SENT_DONE */
    MPI_SENT_DONE = 4,   /* mpi_answer_to */
    MPI_SENT_CANCEL = 5, /* mpi_envelope, mpi_answer_to: wants its message back */
    MPI_SENT_CANCELLED = 6,  /* mpi_answer_to: yes; status: whether it had been matched before */
    MPI_SENT_COLLECTIVE = 7, /* collective/transport/transport.h */
    MPI_SENT_CREDIT = 8,     /* mpi_answer_to: so many bytes are given back (credit.h) */
    MPI_SENT_WANT = 9,     /* mpi_envelope, mpi_offer that registers nothing: wants MPI_SENT_CLEAR when it is matched */
    MPI_SENT_CLEAR = 10,   /* mpi_answer_to: send the data; status: the receive's number */
    MPI_SENT_DATA = 11,    /* mpi_answer_to: of the receive; then the data */
    MPI_SENT_ABANDON = 12, /* mpi_envelope: the sender has abandoned the communicator (lost.h) */
};

/* Who sent what to match; `source` is the sender's rank in the communicator. */
struct mpi_envelope {
    uint64_t context;
    int32_t tag;
    int32_t source;
};

struct mpi_answer_to {
    uint32_t number; /* of the request at the side that asked */
    int32_t status;  /* MPI error code */
};

struct mpi_offer {
    uint64_t bytes;
    struct cw_registration registration;
    uint32_t number;
    uint32_t reserved; /* 0 */
};

static_assert(sizeof(struct mpi_envelope) == 16, "leaves 40 bytes of a cache line to the data");
static_assert(sizeof(struct mpi_offer) == 32, "the same at both sides");

enum { MPI_HEAD_MAX = 64 }; /* the longest head of all: an offer in a collective */

/* The lane of a context: from 1 on; 0 is for what belongs to none. */
static inline uint32_t mpi_lane_tag(uint64_t context, enum mpi_message_kind kind)
{
    uint64_t mixed = (context ^ context >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t lane = (uint32_t)(mixed >> 40) & ((1u << CW_LANE_BITS) - 1);
    return cw_lane_tag(lane != 0 ? lane : 1, (uint32_t)kind);
}
