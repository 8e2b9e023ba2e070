#include "dataplane/flow/integrity.h"

#include <string.h>

#include "dataplane/flow/transmit.h"
#include "dataplane/staging/stage.h"

void cw_integrity_init(struct cw_endpoint *endpoint)
{
    const struct cw_port_info *info = &endpoint->port->info;
    bool is_wanted = !endpoint->config.end_to_end;
    endpoint->integrity = (struct cw_integrity){.speaks = is_wanted && info->checksum_out,
                                                .listens = is_wanted && info->checksum_in,
                                                .link_changes = info->link_changes};
    endpoint->offloads_out = info->checksum_out || info->departure_ahead_ns > 0;
    endpoint->offloads_in = info->checksum_in || info->arrivals;
    endpoint->sums_all = endpoint->overhead_bytes != CW_WIRE_OVERHEAD_BYTES && info->checksum_out;
}

void cw_integrity_doubt(struct cw_endpoint *endpoint, enum cw_port_offload offload)
{
    cw_port_doubt(endpoint->port, offload);
    cw_count(endpoint, CW_COUNTER_DOUBTS, 1);
}

static void distrust(struct cw_integrity *integrity)
{
    integrity->trusts = false;
    integrity->proofs = 0;
    integrity->ask_ns = 0;
}

void cw_integrity_flap(struct cw_endpoint *endpoint)
{
    endpoint->integrity.link_changes = endpoint->port->info.link_changes;
    distrust(&endpoint->integrity);
}

/* The port has made a false report about a packet. */
static void lied(struct cw_endpoint *endpoint)
{
    distrust(&endpoint->integrity);
    endpoint->integrity.listens = false;
    cw_count(endpoint, CW_COUNTER_CHECKSUM_LIES, 1);
    cw_integrity_doubt(endpoint, CW_OFFLOAD_CHECKSUM_IN);
}

/* ---- packets in ---- */

/* True if the port's word counts at the moment. */
static bool is_believed(const struct cw_endpoint *endpoint)
{
    const struct cw_integrity *integrity = &endpoint->integrity;
    return integrity->trusts && integrity->believed < CW_TRUST_PACKETS &&
           endpoint->now_ns - integrity->proof_ns < CW_TRUST_NS;
}

bool cw_integrity_summed(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         enum cw_port_checksum said)
{
    struct cw_integrity *integrity = &endpoint->integrity;
    bool is_present = cw_wire_udp_checksum_present(header); /* without one a port finds nothing wrong */
    if (said == CW_PORT_CHECKSUM_GOOD && is_present && is_believed(endpoint)) {
        integrity->believed++;
        if (integrity->believed % CW_TRUST_SHARE != 0) {
            cw_count(endpoint, CW_COUNTER_SUMMED_IN, 1);
            return true;
        }
    }
    cw_count(endpoint, CW_COUNTER_SUMMED_VERIFIED, 1);
    bool is_right =
        is_present && cw_wire_udp_checksum_right(header, endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES);
    if (is_present && integrity->listens && said == (is_right ? CW_PORT_CHECKSUM_BAD : CW_PORT_CHECKSUM_GOOD)) {
        lied(endpoint);
    }
    flow->session.altered = flow->session.altered || !is_right;
    return is_right;
}

void cw_integrity_seen(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                       enum cw_port_checksum said)
{
    struct cw_session *session = &flow->session;
    bool is_rehearsal = flow->rehearsal.sums_right < CW_REHEARSALS && !session->altered;
    if (!cw_wire_udp_checksum_present(header) || (!is_rehearsal && said != CW_PORT_CHECKSUM_BAD)) {
        return;
    }
    bool is_right = cw_wire_udp_checksum_right(header, endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES);
    if (said == (is_right ? CW_PORT_CHECKSUM_BAD : CW_PORT_CHECKSUM_GOOD)) {
        lied(endpoint);
    }
    flow->rehearsal.sums_right = (uint8_t)(flow->rehearsal.sums_right + (is_right && is_rehearsal));
    /* for packets that the port does not vouch for nothing is gained: software would verify one or the other */
    session->altered = session->altered || !is_right || said == CW_PORT_CHECKSUM_UNKNOWN;
}

void cw_integrity_trial(struct cw_endpoint *endpoint, const struct cw_wire_header *header, enum cw_port_checksum said)
{
    struct cw_integrity *integrity = &endpoint->integrity;
    if (!integrity->listens || said == CW_PORT_CHECKSUM_UNKNOWN || !cw_wire_udp_checksum_present(header) ||
        cw_wire_udp_checksum_right(header, endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES)) {
        return; /* it proves nothing: a port on its way may have corrected it */
    }
    if (said == CW_PORT_CHECKSUM_GOOD) {
        lied(endpoint);
        return;
    }
    cw_count(endpoint, CW_COUNTER_TRIALS_IN, 1);
    integrity->proofs = (uint8_t)(integrity->proofs < CW_TRIALS_NEEDED ? integrity->proofs + 1 : CW_TRIALS_NEEDED);
    integrity->trusts = integrity->proofs == CW_TRIALS_NEEDED;
    integrity->proof_ns = endpoint->now_ns;
    integrity->believed = 0;
    integrity->asked = 0;
}

uint16_t cw_integrity_ack_flags(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    struct cw_integrity *integrity = &endpoint->integrity;
    if (!integrity->listens || flow->session.seal != NULL) {
        return 0;
    }
    bool is_old =
        integrity->believed > CW_TRUST_PACKETS / 2 || endpoint->now_ns - integrity->proof_ns > CW_TRUST_NS / 2;
    bool asks = (!integrity->trusts || is_old) && endpoint->now_ns >= integrity->ask_ns;
    if (asks) { /* a port that says nothing is asked for a while, and now and then after that */
        bool is_vain = integrity->asked == CW_TRIALS_ASKED;
        integrity->asked = (uint16_t)(is_vain ? CW_TRIALS_ASKED : integrity->asked + 1);
        integrity->ask_ns = endpoint->now_ns + (is_vain ? CW_TRUST_NS : CW_TRIAL_NS);
    }
    bool takes = is_believed(endpoint) && !flow->session.altered && flow->rehearsal.sums_right == CW_REHEARSALS;
    return (uint16_t)((takes ? CW_WIRE_ACK_SUMS : 0) | (asks ? CW_WIRE_ACK_TRY : 0));
}

uint64_t cw_integrity_arrival(struct cw_endpoint *endpoint, uint64_t said_ns)
{
    if (said_ns == 0 || !endpoint->port->info.arrivals) {
        return endpoint->now_ns;
    }
    if (said_ns > endpoint->now_ns + CW_ARRIVAL_SLACK_NS || said_ns + CW_ARRIVAL_SLACK_NS < endpoint->empty_ns) {
        cw_count(endpoint, CW_COUNTER_ARRIVAL_LIES, 1);
        endpoint->arrival_lies++;
        if (endpoint->arrival_lies == CW_ARRIVAL_LIES_MAX) {
            cw_integrity_doubt(endpoint, CW_OFFLOAD_ARRIVAL);
        }
        return endpoint->now_ns;
    }
    uint64_t latest_ns = said_ns < endpoint->now_ns ? said_ns : endpoint->now_ns;
    return latest_ns > endpoint->empty_ns ? latest_ns : endpoint->empty_ns;
}

/* ---- packets out ---- */

static void rehearse(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    flow->rehearsal.link_changes = (uint8_t)endpoint->port->info.link_changes;
    flow->rehearsal.end = flow->sender.sent.next + CW_REHEARSALS;
}

enum cw_integrity_form cw_integrity_form(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (!endpoint->port->info.checksum_out) {
        return CW_INTEGRITY_CRC;
    }
    if (flow->rehearsal.link_changes != (uint8_t)endpoint->port->info.link_changes) {
        rehearse(endpoint, flow);
    }
    bool is_rehearsed = flow->sender.sent.base >= flow->rehearsal.end;
    return flow->session.summed && is_rehearsed ? CW_INTEGRITY_SUM : CW_INTEGRITY_BOTH;
}

static void trial_send(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    /* short and full ones in turn: a port may verify the one and not the other */
    bool is_full = (endpoint->counters[CW_COUNTER_TRIALS_OUT] & 1) != 0;
    uint32_t bytes = is_full ? flow->session.payload_bytes_max & ~7u : CW_TRIAL_BYTES;
    uint8_t *payload = cw_transmit_control(endpoint, flow, CW_WIRE_TRIAL, bytes);
    if (payload == NULL) {
        return; /* the peer asks again */
    }
    for (uint32_t i = 0; i < bytes; i++) {
        payload[i] = (uint8_t)(i * 37 + flow->sender.control_next);
    }
    cw_transmit_control_finish(endpoint, flow, bytes);
    cw_falsify(endpoint, (uint32_t)flow->sender.control_next);
    cw_count(endpoint, CW_COUNTER_TRIALS_OUT, 1);
}

void cw_integrity_ack_receive(struct cw_endpoint *endpoint, struct cw_flow *flow, uint16_t flags)
{
    if (!endpoint->integrity.speaks || flow->session.seal != NULL) {
        return;
    }
    flow->session.summed = (flags & CW_WIRE_ACK_SUMS) != 0;
    if (!flow->session.listens && (flags & (CW_WIRE_ACK_SUMS | CW_WIRE_ACK_TRY)) != 0) {
        flow->session.listens = true;
        rehearse(endpoint, flow);
    }
    if ((flags & CW_WIRE_ACK_TRY) != 0 && endpoint->port->info.checksum_out) {
        trial_send(endpoint, flow);
    }
}
