/* integrity: who verifies a payload: software, by its CRC-32C, or the ports at both ends, by the UDP checksum.
 *
 * A sender whose port writes UDP checksums leaves the CRC out of DATA (CW_WIRE_SUMMED) while the receiver says in its
 * acknowledgements that it takes such packets (CW_WIRE_ACK_SUMS). The receiver says so while it has reason to believe
 * its own port.
 *
 * Invariants
 *   - A port's word is never taken unasked. It must have called CW_TRIALS_NEEDED packets wrong whose UDP checksums were
 *     wrong on purpose (TRIAL), since the link last went down or came up.
 *   - The word counts for CW_TRUST_NS and CW_TRUST_PACKETS; then the port is tried anew. One packet of CW_TRUST_SHARE
 *     is verified in software meanwhile.
 *   - The port that writes has to earn it, too: CW_REHEARSALS packets carry both, and their checksums are held against
 *     the CRC; again when the sender's link has gone down or come up.
 *   - A packet without CRC whose port is not believed is verified in software, by its UDP checksum. So nothing is lost
 *     when trust ends, and nothing has to be agreed on.
 *   - A port that has lied once, either way, is not believed again by this endpoint.
 *   - A session in which one UDP checksum did not fit has CRCs from then on: the path alters packets, or the sender's
 *     port writes wrong ones, and the UDP checksum misses more.
 *
 * The times that ports tell, or are told, are bounded here, too: a round trip is off by no more than a turn of the
 * loop.
 *
 * Order: cw_integrity_init; cw_integrity_look before each burst; cw_integrity_summed for each payload without CRC,
 * cw_integrity_seen for each with one, cw_integrity_trial for each TRIAL; cw_integrity_form for each DATA that leaves,
 * cw_integrity_says for each ACK that leaves, cw_integrity_told for each that comes. */
#pragma once

#include "dataplane/port/port.h"
#include "dataplane/state/endpoint.h"

void cw_integrity_init(struct cw_endpoint *endpoint);

/* What set-up packets tell of the port's medium; 0 where payloads are to have a CRC from end to end. */
static inline uint32_t cw_integrity_medium(const struct cw_endpoint *endpoint)
{
    return endpoint->config.end_to_end ? CW_PORT_MEDIUM_NONE : endpoint->port->info.medium;
}

/* Has an offload put away that does not do what it says, or that there is reason to fear for, and counts it. */
void cw_integrity_doubt(struct cw_endpoint *endpoint, enum cw_port_offload offload);

/* The link went down or came up: the port may be another one now. */
void cw_integrity_flap(struct cw_endpoint *endpoint);

static inline void cw_integrity_look(struct cw_endpoint *endpoint)
{
    if (endpoint->offloads_in && endpoint->integrity.link_changes != endpoint->port->info.link_changes) {
        cw_integrity_flap(endpoint);
    }
}

enum cw_integrity_form { CW_INTEGRITY_CRC, CW_INTEGRITY_BOTH, CW_INTEGRITY_SUM };

/* What covers the data of a frame that is alone in its packet, to a peer that listens: see the bit of that name. */
enum cw_integrity_form cw_integrity_form(const struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The payload of an authentic DATA packet fits its CRC: does its UDP checksum fit, too? */
void cw_integrity_seen(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                       enum cw_port_checksum said);

/* When a packet has arrived, as the port says it, as far as that can be: since the port was empty, and not after
 * now. */
uint64_t cw_integrity_arrival(struct cw_endpoint *endpoint, uint64_t said_ns);

/* Whether the payload of an authentic packet with CW_WIRE_SUMMED is what was sent. `said`: by the port. */
bool cw_integrity_summed(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         enum cw_port_checksum said);

/* An authentic TRIAL, and what the port has said of it. */
void cw_integrity_trial(struct cw_endpoint *endpoint, const struct cw_wire_header *header, enum cw_port_checksum said);

/* What an ACK to the peer says: some of CW_WIRE_ACK_SUMS and CW_WIRE_ACK_TRY. */
uint16_t cw_integrity_says(struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* The newest ACK of the peer has these flags. */
void cw_integrity_told(struct cw_endpoint *endpoint, struct cw_flow *flow, uint16_t flags);
