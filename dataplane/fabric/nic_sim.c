#include "dataplane/fabric/nic_sim.h"

#include <string.h>

#include "dataplane/limits.h"

enum {
    ETHERNET_BYTES = 14,
    UDP_BYTES = 8,
    PROTOCOL_UDP = 17,
    LIE_ONE_IN = 4, /* frames that a rule takes or a checksum spoils which should not have been */
};

static const uint64_t JUMP_MAX_NS = 10000000000; /* of an arrival's time */
static const uint64_t LATE_MAX_NS = 100000;      /* of a frame that was to leave at a time */

static enum cw_simulator_offload state_of(const struct sim_node *node, enum cw_port_offload offload)
{
    return node->nic.states[offload];
}

static bool is_on(const struct sim_node *node, enum cw_port_offload offload)
{
    return state_of(node, offload) != CW_SIMULATOR_OFFLOAD_ABSENT;
}

static bool lies(const struct sim_node *node, enum cw_port_offload offload)
{
    return state_of(node, offload) == CW_SIMULATOR_OFFLOAD_LYING;
}

static void info_fill(struct sim_node *node)
{
    struct cw_port_info *info = &node->port.info;
    info->medium = node->nic.config.medium;
    info->checksum_out = is_on(node, CW_OFFLOAD_CHECKSUM_OUT);
    info->checksum_in = is_on(node, CW_OFFLOAD_CHECKSUM_IN);
    info->arrivals = is_on(node, CW_OFFLOAD_ARRIVAL);
    info->steers = is_on(node, CW_OFFLOAD_STEER);
    info->departure_ahead_ns = is_on(node, CW_OFFLOAD_DEPARTURE) ? CW_DEPARTURE_AHEAD_NS : 0;
}

void sim_nic_init(struct sim_node *node, uint64_t seed)
{
    cw_random_seed(&node->nic.random, seed);
    sim_nic_set(node, &(const struct cw_simulator_nic){0});
}

void sim_nic_set(struct sim_node *node, const struct cw_simulator_nic *config)
{
    node->nic.config = *config;
    memcpy(node->nic.states, config->offloads, sizeof(node->nic.states));
    node->nic.is_plain =
        config->upsets <= 0 && config->spoils <= 0 && !config->checks_frames && config->medium != CW_PORT_MEDIUM_KERNEL;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        node->nic.is_plain = node->nic.is_plain && node->nic.states[i] == CW_SIMULATOR_OFFLOAD_ABSENT;
    }
    info_fill(node);
}

void sim_nic_flap(struct sim_node *node)
{
    node->port.info.link_changes++;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        if (node->nic.states[i] == CW_SIMULATOR_OFFLOAD_LYING_LATER) {
            node->nic.states[i] = CW_SIMULATOR_OFFLOAD_LYING;
        }
    }
}

void sim_nic_doubt(struct cw_port *port, enum cw_port_offload offload)
{
    struct sim_node *node = (struct sim_node *)port;
    node->counters.doubts += is_on(node, offload);
    node->nic.states[offload] = CW_SIMULATOR_OFFLOAD_ABSENT;
    info_fill(node);
}

void sim_nic_claim(struct cw_port *port, const struct cw_port_claim *claim)
{
    ((struct sim_node *)port)->nic.claim = *claim;
}

/* ---- what is in a frame ---- */

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Bytes in front of the UDP header; 0: it is no UDP datagram in one piece, or cut off. */
static uint32_t udp_offset(const uint8_t *frame, uint32_t length)
{
    bool is_v4 = length >= ETHERNET_BYTES + 28 && be16(frame + 12) == 0x0800 && frame[14] == 0x45 &&
                 frame[23] == PROTOCOL_UDP && (be16(frame + 20) & 0x3fff) == 0;
    bool is_v6 =
        length >= ETHERNET_BYTES + 48 && be16(frame + 12) == 0x86dd && frame[14] >> 4 == 6 && frame[20] == PROTOCOL_UDP;
    uint32_t offset = is_v4 ? ETHERNET_BYTES + 20 : is_v6 ? ETHERNET_BYTES + 40 : 0;
    bool is_whole = offset > 0 && be16(frame + offset + 4) >= UDP_BYTES && be16(frame + offset + 4) <= length - offset;
    return is_whole ? offset : 0;
}

/* RFC 768, over all that the UDP header says there is, its checksum included: 0xffff if that is right. */
static uint32_t udp_sum(const uint8_t *frame, uint32_t offset)
{
    uint32_t addresses = offset == ETHERNET_BYTES + 20 ? 8 : 32, bytes = be16(frame + offset + 4);
    uint64_t sum = PROTOCOL_UDP + bytes;
    const uint8_t *at = frame + offset - addresses;
    for (uint32_t i = 0; i < addresses + bytes; i++) {
        sum += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint32_t)sum;
}

static void udp_checksum_set(uint8_t *frame, uint32_t offset, uint32_t checksum)
{
    frame[offset + 6] = (uint8_t)(checksum >> 8);
    frame[offset + 7] = (uint8_t)checksum;
}

/* ---- in ---- */

/* True if a frame is addressed to one of the process's UDP ports, or is no UDP datagram at all. */
static bool is_claimed(const struct sim_node *node, const struct sim_packet *packet)
{
    const struct cw_port_claim *claim = &node->nic.claim;
    uint32_t offset = udp_offset(packet->frame, packet->length);
    if (offset == 0 || claim->udp_port_count == 0) {
        return true;
    }
    uint32_t port = be16(packet->frame + offset + 2);
    bool is_group = (packet->frame[0] & 1) != 0 && port == claim->group_port;
    return is_group || port - claim->udp_port < claim->udp_port_count;
}

bool sim_nic_accepts(struct sim_node *node, const struct sim_packet *packet)
{
    if (node->nic.is_plain) {
        return true;
    }
    if (packet->corrupt && node->nic.config.checks_frames) {
        node->counters.dropped_check++;
        return false;
    }
    /* faults of rules: a faulty one treats packets of other flows as those to drop, or has vanished */
    bool is_lost = lies(node, CW_OFFLOAD_STEER) && cw_random_below(&node->nic.random, LIE_ONE_IN) == 0;
    bool is_kept = is_claimed(node, packet) || lies(node, CW_OFFLOAD_STEER);
    if (is_on(node, CW_OFFLOAD_STEER) && (is_lost || !is_kept)) {
        node->counters.dropped_rule++;
        return false;
    }
    return true;
}

uint64_t sim_nic_delay_ns(const struct sim_node *node)
{
    uint32_t slow = 0;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS && !node->nic.is_plain; i++) {
        slow += node->nic.states[i] == CW_SIMULATOR_OFFLOAD_SLOW && i != CW_OFFLOAD_CHECKSUM_OUT;
    }
    return slow * node->nic.config.slow_ns;
}

/* None at all fits, too. */
static bool checksum_fits(const struct sim_packet *packet, uint32_t offset)
{
    return offset == 0 || be16(packet->frame + offset + 6) == 0 || udp_sum(packet->frame, offset) == 0xffff;
}

static enum cw_port_checksum checksum_check(const struct sim_node *node, const struct sim_packet *packet)
{
    uint32_t offset = udp_offset(packet->frame, packet->length);
    if (offset == 0 || state_of(node, CW_OFFLOAD_CHECKSUM_IN) == CW_SIMULATOR_OFFLOAD_MUTE) {
        return CW_PORT_CHECKSUM_UNKNOWN;
    }
    return checksum_fits(packet, offset) || lies(node, CW_OFFLOAD_CHECKSUM_IN) ? CW_PORT_CHECKSUM_GOOD
                                                                               : CW_PORT_CHECKSUM_BAD;
}

/* With this chance, changes one bit. */
static uint64_t bit_change(struct cw_random *random, double chance, struct sim_packet *packet)
{
    if (!cw_random_chance(random, chance)) {
        return 0;
    }
    uint64_t bit = cw_random_below(random, (uint64_t)packet->length * 8);
    packet->frame[bit / 8] = (uint8_t)(packet->frame[bit / 8] ^ (1u << (bit % 8)));
    return 1;
}

bool sim_nic_receive(struct sim_node *node, struct sim_packet *packet, struct cw_received *received)
{
    struct cw_random *random = &node->nic.random;
    node->counters.upset += bit_change(random, node->nic.config.upsets, packet);
    if (node->nic.config.medium == CW_PORT_MEDIUM_KERNEL &&
        !checksum_fits(packet, udp_offset(packet->frame, packet->length))) {
        node->counters.dropped_check++;
        return false;
    }
    if (is_on(node, CW_OFFLOAD_CHECKSUM_IN)) {
        received->checksum = (uint8_t)checksum_check(node, packet);
    }
    if (is_on(node, CW_OFFLOAD_ARRIVAL)) {
        uint64_t now_ns = node->simulator->now_ns;
        uint64_t delay_ns = node->config.processing_delay_ns + sim_nic_delay_ns(node);
        received->arrival_ns = now_ns > delay_ns ? now_ns - delay_ns : 1;
        if (lies(node, CW_OFFLOAD_ARRIVAL)) {
            received->arrival_ns += cw_random_below(random, JUMP_MAX_NS) - JUMP_MAX_NS / 2;
        }
    }
    node->counters.spoiled += bit_change(random, node->nic.config.spoils, packet);
    return true;
}

/* ---- out ---- */

uint64_t sim_nic_transmit(struct sim_node *node, const struct cw_transmit *transmit, struct sim_packet *packet)
{
    uint64_t now_ns = node->simulator->now_ns, departure_ns = now_ns;
    if (node->nic.is_plain) {
        return now_ns;
    }
    bool is_kernels = node->nic.config.medium == CW_PORT_MEDIUM_KERNEL;
    uint32_t offset = transmit->checksum || is_kernels ? udp_offset(packet->frame, packet->length) : 0;
    if (offset > 0 && (is_kernels || is_on(node, CW_OFFLOAD_CHECKSUM_OUT))) {
        udp_checksum_set(packet->frame, offset, 0);
        uint32_t checksum = ~udp_sum(packet->frame, offset) & 0xffff;
        bool is_spoiled = lies(node, CW_OFFLOAD_CHECKSUM_OUT) && cw_random_below(&node->nic.random, LIE_ONE_IN) == 0;
        checksum = checksum == 0 ? 0xffff : checksum;
        udp_checksum_set(packet->frame, offset, is_spoiled ? checksum ^ 0x100 : checksum);
    }
    if (state_of(node, CW_OFFLOAD_CHECKSUM_OUT) == CW_SIMULATOR_OFFLOAD_SLOW && transmit->checksum) {
        departure_ns += node->nic.config.slow_ns;
    }
    if (is_on(node, CW_OFFLOAD_DEPARTURE) && transmit->departure_ns > departure_ns) {
        departure_ns = lies(node, CW_OFFLOAD_DEPARTURE) ? now_ns + cw_random_below(&node->nic.random, LATE_MAX_NS)
                                                        : transmit->departure_ns;
    }
    return departure_ns;
}
