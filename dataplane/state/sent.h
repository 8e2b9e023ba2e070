/* Records of the data packets in flight: a sparse array over packet numbers, 64 records a chunk, chunks found through
 * directories.
 *
 * Invariants
 *   - records exist for base .. next - 1; memory is held only for chunks with one that is not acknowledged (and the one
 *     being filled).
 *   - a record is in one of three states: in flight, lost (to be sent again), acknowledged. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/pool.h"
#include "dataplane/codec/codec.h"

struct cw_operation;

struct cw_sent {
    uint64_t time_ns;               /* of the last transmission */
    struct cw_operation *operation; /* the first one; others follow through `chain` */
    uint64_t position;              /* of a part */
    uint16_t bytes;                 /* data bytes of a part; of a chunk its raw bytes */
    uint16_t frame_bytes;           /* on the wire, Ethernet header included */
    uint8_t count;                  /* operations in the packet */
    uint8_t transmissions;
    struct cw_codec_plan plan; /* of a chunk; else CW_CODEC_NONE, and the parameter says why */
};

/* Why a packet has its data as it is. */
enum cw_sent_plain {
    CW_SENT_SHORT = 0,   /* of short operations */
    CW_SENT_LONG = 1,    /* nothing is compressed now */
    CW_SENT_SKIPPED = 2, /* this one is not, of those that are */
    CW_SENT_UNFIT = 3,   /* it would have become no shorter */
};
static_assert(sizeof(struct cw_sent) == 32, "two a cache line");

enum { CW_SENT_CHUNK = 64, CW_SENT_DIRECTORY = 128, CW_SENT_DIRECTORIES = 8 };

struct cw_sent_chunk {
    uint64_t acknowledged; /* one bit a record */
    uint64_t lost;
    struct cw_sent records[CW_SENT_CHUNK];
};

struct cw_sent_directory {
    struct cw_sent_chunk *chunks[CW_SENT_DIRECTORY];
};

struct cw_sent_records {
    uint64_t base; /* every packet below has been acknowledged */
    uint64_t next;
    struct cw_sent_directory *directories[CW_SENT_DIRECTORIES];
};

void cw_sent_init(struct cw_sent_records *sent, uint64_t first);

/* Makes sure that `next` has a place to be recorded in; false: the pools are used up. Directories come from the pool of
 * window blocks. */
bool cw_sent_prepare(struct cw_sent_records *sent, struct cw_pool *chunks, struct cw_pool *directories);

/* The chunk of a number in base .. next - 1, or of `next` after cw_sent_prepare. NULL: every record of it is
 * acknowledged. */
static inline struct cw_sent_chunk *cw_sent_chunk_of(const struct cw_sent_records *sent, uint64_t number)
{
    const struct cw_sent_directory *directory =
        sent->directories[number / (CW_SENT_CHUNK * CW_SENT_DIRECTORY) % CW_SENT_DIRECTORIES];
    return directory->chunks[number / CW_SENT_CHUNK % CW_SENT_DIRECTORY];
}

/* Gives back the chunk of a number in base .. next - 1 if it is full and all of it is acknowledged. */
void cw_sent_finish(struct cw_sent_records *sent, uint64_t number, struct cw_pool *chunks);

/* Moves base up to `number` and gives back what is no longer needed. */
void cw_sent_advance(struct cw_sent_records *sent, uint64_t number, struct cw_pool *chunks,
                     struct cw_pool *directories);

/* Gives back the last chunk too, when nothing is in flight. Not done by cw_sent_advance: a flow that sends packet by
 * packet would take and give it back each time. */
void cw_sent_trim(struct cw_sent_records *sent, struct cw_pool *chunks, struct cw_pool *directories);

/* Bytes lent to these records at the moment. */
uint64_t cw_sent_bytes(const struct cw_sent_records *sent, const struct cw_pool *chunks,
                       const struct cw_pool *directories);

static inline uint64_t cw_sent_span(void)
{
    return (uint64_t)CW_SENT_CHUNK * CW_SENT_DIRECTORY * (CW_SENT_DIRECTORIES - 1);
}
