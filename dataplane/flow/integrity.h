/* integrity: the verification of payloads: by software, with a CRC-32C, or by the ports at both ends, with the UDP
 * checksum.
 *
 * A sender whose port writes UDP checksums omits the CRC of DATA (CW_WIRE_SUMMED) while the receiver's acknowledgements
 * accept such packets (CW_WIRE_ACK_SUMS). The receiver does so while it has reason to trust its own port.
 *
 * Invariants
 *   - A port is trusted only after a test. It must have detected CW_TRIALS_NEEDED packets whose UDP checksums were
 *     wrong on purpose (TRIAL), since the link last went down or came up.
 *   - Trust lasts for CW_TRUST_NS and CW_TRUST_PACKETS; then the port is tested again. Meanwhile one packet of
 *     CW_TRUST_SHARE is verified in software.
 *   - The port that writes checksums is also tested: CW_REHEARSALS packets carry both, and their checksums are compared
 *     with the CRC; again when the sender's link has gone down or come up.
 *   - If a port is not trusted, software verifies a packet without CRC, by its UDP checksum. So no packet is lost when
 *     trust ends, and the ends need not agree on it.
 *   - If a port has given one wrong result, in either direction, this endpoint does not trust it again.
 *   - A session with one wrong UDP checksum has CRCs from then on: the path alters packets, or the sender's port writes
 *     wrong checksums, and the UDP checksum detects less.
 *
 * The times that ports report or get are also bounded here: the error of a round trip is at most a turn of the
 * loop.
 *
 * Order: cw_integrity_init; cw_integrity_look before each burst; cw_integrity_summed for each payload without CRC,
 * cw_integrity_seen for each with one, cw_integrity_trial for each TRIAL; cw_integrity_form for each DATA that leaves,
 * cw_integrity_ack_flags for each ACK that leaves, cw_integrity_ack_receive for each that arrives. */
#pragma once

#include "dataplane/port/port.h"
#include "dataplane/state/endpoint.h"

void cw_integrity_init(struct cw_endpoint *endpoint);

/* The port's medium in set-up packets; 0 if payloads must have a CRC from end to end. */
static inline uint32_t cw_integrity_medium(const struct cw_endpoint *endpoint)
{
    return endpoint->config.end_to_end ? CW_PORT_MEDIUM_NONE : endpoint->port->info.medium;
}

/* Turns off an offload with wrong results, or with a suspicion of them, and counts it. */
void cw_integrity_doubt(struct cw_endpoint *endpoint, enum cw_port_offload offload);

/* The link went down or came up: the port may be a different one now. */
void cw_integrity_flap(struct cw_endpoint *endpoint);

static inline void cw_integrity_look(struct cw_endpoint *endpoint)
{
    if (endpoint->offloads_in && endpoint->integrity.link_changes != endpoint->port->info.link_changes) {
        cw_integrity_flap(endpoint);
    }
}

enum cw_integrity_form { CW_INTEGRITY_CRC, CW_INTEGRITY_BOTH, CW_INTEGRITY_SUM };

/* The check of a frame that is alone in its packet, to a peer that listens: see the bit of that name. */
enum cw_integrity_form cw_integrity_form(const struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The payload of an authentic DATA packet has a correct CRC: compares its UDP checksum. */
void cw_integrity_seen(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                       enum cw_port_checksum said);

/* The arrival of a packet by the port's clock, limited to possible times: since the port was empty, and not after
 * now. */
uint64_t cw_integrity_arrival(struct cw_endpoint *endpoint, uint64_t said_ns);

/* True: the payload of an authentic packet with CW_WIRE_SUMMED is correct. `said`: by the port. */
bool cw_integrity_summed(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         enum cw_port_checksum said);

/* An authentic TRIAL, and the port's result for it. */
void cw_integrity_trial(struct cw_endpoint *endpoint, const struct cw_wire_header *header, enum cw_port_checksum said);

/* The flags of an ACK to the peer: some of CW_WIRE_ACK_SUMS and CW_WIRE_ACK_TRY. */
uint16_t cw_integrity_ack_flags(struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* The newest ACK of the peer has these flags. */
void cw_integrity_ack_receive(struct cw_endpoint *endpoint, struct cw_flow *flow, uint16_t flags);
