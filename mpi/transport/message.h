/* message: the messages between two processes of a job, below MPI. docs/internals/messages.md has them as a table.
 *
 * Each is a message of dataplane/path/. Its tag is its kind, and its lane belongs to its communicator, so messages of a
 * communicator arrive in order. A message of a collective call has the tag MPI_SENT_CALL, and its kind in its head,
 * since it may also go to a multicast group, where messages have no tag. */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/path/path.h"
#include "mpi.h"

enum mpi_sent {
    /* point-to-point messages for matching; EAGER and OFFER also in calls */
    MPI_SENT_EAGER = 1, /* head, then the data */
    MPI_SENT_SYNC = 2,  /* head, mpi_answer, then the data; the receiver sends DONE after the match */
    MPI_SENT_OFFER =
        3, /* head, mpi_offer; the receiver gets the data, then sends DONE; without a registration, it sends
                             CLEAR after the match */
    MPI_SENT_CANCEL = 4,  /* head, mpi_answer; requests to remove the message with this number; answer: CANCELLED */
    MPI_SENT_ABANDON = 5, /* head: the sender has abandoned the communicator (point/lost.h) */
    /* answers to the object with this number */
    MPI_SENT_DONE = 6,      /* mpi_answer; status: MPI error code */
    MPI_SENT_CLEAR = 7,     /* mpi_answer; status: number of the receive that waits for the DATA */
    MPI_SENT_DATA = 8,      /* mpi_answer, then the data */
    MPI_SENT_CANCELLED = 9, /* mpi_answer; status: whether the message has been removed */
    MPI_SENT_CREDIT = 10,   /* mpi_answer; number: of returned bytes (credit.h) */
    /* in calls only */
    MPI_SENT_CALL = 11,   /* the tag of them all */
    MPI_SENT_PLACE = 12,  /* clear-to-send for a put, with the sender's regions or without (exchange/direct.h) */
    MPI_SENT_FIN = 13,    /* a put is complete; its number of bytes */
    MPI_SENT_PART = 14,   /* mpi_part, then data: a multicast in several messages */
    MPI_SENT_REFUSE = 15, /* the sender does not take part: mpi_refusal (exchange/refusal.h) */
    MPI_SENT_ASK = 16,    /* the sender waits, and asks whether this rank is in the same call (exchange/refusal.h) */
};

/* The head of each message that is no answer: its sender, and the values for matching. */
struct mpi_envelope {
    uint64_t context; /* of the communicator */
    int32_t tag;      /* in a call: of the op */
    int32_t source;   /* rank in the communicator */
};

/* The head of a message of a call. */
struct mpi_call_head {
    struct mpi_envelope envelope;
    uint32_t number; /* of the call, in its communicator */
    uint32_t run;    /* how often it was started before (persistent calls) */
    uint32_t call;   /* mpi_describe_kind: the same at all ranks */
    uint8_t kind;    /* enum mpi_sent */
    uint8_t buffer;  /* OFFER, PART: enum cw_buffer of the place; MPI_NO_PLACE */
    uint16_t reserved;
};

enum { MPI_NO_PLACE = 0xff }; /* a PART of an eager multicast: it is put together (exchange/assembly.h) */

struct mpi_answer {
    uint32_t number; /* of the object that needs it (number.h) */
    int32_t status;
};

struct mpi_offer {
    uint32_t number; /* for the answer */
    uint32_t reserved;
    uint64_t bytes;
    struct cw_registration registration; /* token and address 0: none; the data follows a CLEAR */
};

struct mpi_call_offer {
    uint64_t offset; /* of the place */
    struct mpi_offer offer;
};

/* One of the messages of a multicast, which arrive in order. */
struct mpi_part {
    uint64_t offset; /* in the buffer of the place, else in the multicast */
    uint64_t left;   /* bytes of the multicast after this part; 0: it is the last one */
    uint64_t bytes;  /* of the whole multicast */
};

static_assert(sizeof(struct mpi_envelope) == 16, "leaves 40 bytes of a cache line to the data");
static_assert(sizeof(struct mpi_call_head) == 32 && sizeof(struct mpi_answer) == 8 && sizeof(struct mpi_offer) == 32 &&
                  sizeof(struct mpi_part) == 24,
              "the same at both sides");

enum { MPI_HEAD_MAX = sizeof(struct mpi_call_head) + sizeof(struct mpi_call_offer) }; /* the longest head of all */

static inline bool mpi_offer_is_registered(const struct mpi_offer *offer)
{
    return offer->registration.token != 0 || offer->registration.address != 0;
}

/* The lane of a context, from 1 on. Lane 0 is for messages that belong to no communicator. */
static inline uint32_t mpi_lane_tag(uint64_t context, enum mpi_sent kind)
{
    uint64_t mixed = (context ^ context >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t lane = (uint32_t)(mixed >> 40) & ((1u << CW_LANE_BITS) - 1);
    return cw_lane_tag(lane != 0 ? lane : 1, (uint32_t)kind);
}
