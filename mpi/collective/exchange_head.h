/* What messages of collective calls begin with: between transport.c, which has them on their way, and cast.c, which multicasts them. */
#ifndef MPI_EXCHANGE_HEAD_H
#define MPI_EXCHANGE_HEAD_H

#include <assert.h>
#include <stdint.h>

#include "dataplane/path/path.h"
#include "mpi/point/message.h"

enum exchange_message { EXCHANGE_EAGER = 1, EXCHANGE_OFFER = 2, EXCHANGE_GOT = 3, EXCHANGE_PIECE = 4 };

struct exchange_head {
    uint64_t context;
    uint32_t number; /* of the call */
    uint32_t run;    /* how often it was started before (persistent ones) */
    uint32_t tag;    /* GOT: of the put */
    int32_t source;
    uint8_t kind;   /* enum exchange_message */
    uint8_t buffer; /* OFFER, PIECE: enum cw_buffer */
    uint16_t put;   /* OFFER, GOT: which of the source's puts */
    uint32_t call;  /* mpi_describe_kind: must be the same at all ranks */
};

struct exchange_offer {
    uint64_t offset;
    uint64_t bytes;
    struct cw_exposure exposure;
};

/* Of a direct multicast, which comes in pieces, in order, with the data behind this. */
struct exchange_piece {
    uint64_t offset; /* of the piece, in the buffer */
    uint64_t left;   /* bytes of the multicast behind it: 0, it is the last one */
    uint64_t bytes;  /* of the whole multicast */
};

static_assert(sizeof(struct exchange_head) == 32 && sizeof(struct exchange_offer) == 32 &&
                  sizeof(struct exchange_piece) == 24,
              "the same at both sides");
static_assert(sizeof(struct exchange_head) + sizeof(struct exchange_offer) <= MPI_HEAD_MAX, "an outbox keeps it");

#endif
