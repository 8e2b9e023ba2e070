/* frame: the frames of a packet. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Bytes that a whole operation takes as one frame, its data included. */
uint32_t cw_frame_bytes(const struct cw_operation *operation);

/* Writes the frames of a record at `at` in the packet's buffer; returns the bytes there, and in *gathered those in the
 * packet's pieces, of which there are none unless `may_gather`. A record that is a chunk to be, and is sent for the
 * first time, has as many bytes as there are; then as many as the packet has taken. */
uint32_t cw_frames_write(struct cw_endpoint *endpoint, struct cw_sent *record, struct cw_transmit *packet, uint8_t *at,
                         bool may_gather, uint32_t *gathered);
