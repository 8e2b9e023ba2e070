/* Trace: the file that `trace.so` writes of each rank of a program (FOLDER/RANK.trace), and `causeway bench replay`
 * reads.
 *
 * A head; records, each of which follows the one before in the program; a last record TRACE_END. Numbers are those of
 * the machine that has recorded. Behind a record TRACE_SEND there are the bytes of the message, and zeros up to a
 * multiple of TRACE_ALIGNMENT.
 *
 * Invariants
 *  - Only messages of MPI_COMM_WORLD, between different ranks. Receives name the message that they got: none is a
 *    wildcard.
 *  - All ranks have the same TRACE_ALLREDUCE and TRACE_BARRIER, in the same order.
 *  - The n-th receive of a peer and tag gets the n-th message of that peer with that tag. */
#pragma once

#include <stdint.h>

#define TRACE_MAGIC "CWTRACE"

enum {
    TRACE_VERSION = 1,
    TRACE_RANKS_MAX = 64,
    TRACE_ALIGNMENT = 8,
    TRACE_TAG_BCAST = -2, /* calls that are recorded as messages between their root and each other rank */
    TRACE_TAG_REDUCE = -3,
};

enum trace_operation {
    TRACE_SEND = 1,  /* a message leaves; the program goes on */
    TRACE_SENT,      /* the program waits until it may reuse the memory of a message */
    TRACE_RECEIVE,   /* the program waits for a message */
    TRACE_ALLREDUCE, /* of `count` bytes */
    TRACE_BARRIER,
    TRACE_END, /* nothing follows */
    TRACE_OPERATIONS
};

enum trace_element { TRACE_BYTES, TRACE_DOUBLE, TRACE_ELEMENTS };

struct trace_head {
    char magic[8]; /* TRACE_MAGIC */
    uint32_t version;
    uint32_t rank;
    uint32_t ranks;
    uint32_t zero;
};

struct trace_record {
    uint64_t compute_ns; /* of the processor, since the program left its MPI call before */
    uint64_t count;      /* bytes; TRACE_SENT: which TRACE_SEND of this rank, from 0 */
    int32_t peer;        /* TRACE_SEND, TRACE_RECEIVE; else 0 */
    int32_t tag;         /* likewise */
    uint32_t operation;  /* enum trace_operation */
    uint32_t element;    /* TRACE_SEND: enum trace_element; else 0 */
};

_Static_assert(sizeof(struct trace_head) == 24, "the head is written as it is");
_Static_assert(sizeof(struct trace_record) == 32, "records are written as they are");

/* What follows a message, up to the next record. */
static inline uint64_t trace_padding(uint64_t bytes)
{
    return (TRACE_ALIGNMENT - bytes % TRACE_ALIGNMENT) % TRACE_ALIGNMENT;
}
