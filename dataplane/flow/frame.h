/* frame: the frames of a packet. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Bytes that a whole operation takes as one frame, its data included. */
uint32_t cw_frame_bytes(const struct cw_operation *operation);

/* The parts of a packet's payload, in bytes. */
struct cw_written {
    uint32_t in_buffer;
    uint32_t gathered; /* in the packet's pieces */
    uint32_t header;   /* of its frame, if that is the only one, and has data as they are; else 0 */
    uint32_t checksum; /* of all of it, if it has been summed while it was written */
    bool is_summed;
};

/* How: data may stay where they are, if the port gathers them; the checksum of the whole payload is wanted. */
enum cw_writing { CW_WRITE_GATHERS = 1, CW_WRITE_SUMS = 2 };

/* Writes the frames of a record at `at` in the packet's buffer, by a set of enum cw_writing, and says in *written what
 * it has written. A record that is a chunk to be, and is sent for the first time, has as many bytes as there are; then
 * as many as the packet has taken. */
void cw_frames_write(struct cw_endpoint *endpoint, struct cw_sent *record, struct cw_transmit *packet, uint8_t *at,
                     uint32_t how, struct cw_written *written);

/* The memory from which the port gathers `bytes` of an operation's data; NULL: they are copied. */
static inline struct cw_port_memory *cw_frame_memory(const struct cw_endpoint *endpoint,
                                                     const struct cw_operation *operation, uint32_t bytes)
{
    bool gathers = endpoint->port->info.gather && operation->region != NULL && bytes >= CW_GATHER_MIN;
    return gathers ? operation->region->memory : NULL;
}

/* The header of a part's frame with this number of bytes of data; its position is 0. */
void cw_frame_part_write(const struct cw_operation *operation, uint32_t bytes, struct cw_wire_part *part);
