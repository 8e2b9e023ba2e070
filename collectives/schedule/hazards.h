/* hazards: which op last wrote each byte of a rank's buffers, and which have read it since.
 *
 * The emitter asks here what a new op must wait for: a read for the last writer of its bytes; a write for the readers
 * since, or, where there are none, for the last writer. So builders list ops in any valid serial order, and ops on
 * different bytes stay free to overlap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes [begin, end) of one buffer with the same history. Segments are sorted and do not overlap; bytes in none were
 * never touched. */
struct cw_hazard_segment {
    uint64_t begin;
    uint64_t end;
    uint32_t writer;  /* op, or CW_HAZARD_NONE */
    uint32_t readers; /* first of a chain in cw_hazards.readers, or CW_HAZARD_NONE; chains share their tails */
};

struct cw_hazard_reader {
    uint32_t op;
    uint32_t next;
};

#define CW_HAZARD_NONE UINT32_MAX

struct cw_hazard_buffer {
    struct cw_hazard_segment *segments;
    uint32_t count;
    uint32_t capacity;
};

struct cw_hazards {
    struct cw_hazard_buffer buffers[4]; /* by enum cw_buffer */
    struct cw_hazard_reader *readers;
    uint32_t reader_count;
    uint32_t reader_capacity;
};

/* Called for each op that the new one must wait for; the same op may come several times. */
typedef void (*cw_hazard_visit)(void *context, uint32_t op);

/* Zeroed memory is an empty cw_hazards. */
void cw_hazards_dispose(struct cw_hazards *hazards);

/* Reports to `visit` the events that an access of `op` to bytes [begin, end) of `buffer` must wait for, and records it
 * if `record`. False if there is no memory. */
bool cw_hazards_access(struct cw_hazards *hazards, uint32_t buffer, uint64_t begin, uint64_t end, bool write,
                       uint32_t op, bool record, cw_hazard_visit visit, void *context);
