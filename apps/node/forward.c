#include <sched.h>
#include <string.h>

#include "apps/node/dataplane_private.h"
#include "apps/node/packet.h"
#include "dataplane/limits.h"

#define FULL_RETRY_NS 20000ull

static void port_flush(struct node_dataplane *dataplane)
{
    uint32_t sent = cw_port_transmit(dataplane->config.nic, dataplane->pending, dataplane->pending_count);
    dataplane->pending_count -= sent;
    memmove(dataplane->pending, dataplane->pending + sent, dataplane->pending_count * sizeof(dataplane->pending[0]));
}

/* ---- to ranks ---- */

static void lease_give(struct node_lease *lease, const uint8_t *frame, uint32_t length)
{
    if (!cw_cable_send(lease->cable, frame, length)) {
        lease->counters.dropped++;
        return;
    }
    lease->counters.in_frames++;
    lease->counters.in_bytes += length;
}

static bool is_member(const struct node_lease *lease, const uint8_t mac[6])
{
    for (uint32_t i = 0; i < lease->group_count; i++) {
        if (memcmp(lease->groups[i], mac, 6) == 0) {
            return true;
        }
    }
    return false;
}

/* A copy to each member on this host but who has sent it. */
static bool members_give(struct node_dataplane *dataplane, const struct node_lease *sender, const uint8_t *frame,
                         uint32_t length)
{
    bool any = false;
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        struct node_lease *lease = dataplane->leases[i];
        if (lease != sender && is_member(lease, frame)) {
            lease_give(lease, frame, length);
            any = true;
        }
    }
    return any;
}

/* To the other threads, those that have members. True: some has taken it. */
static bool group_cross(struct node_dataplane *dataplane, enum node_crossing_kind kind, const uint8_t *frame,
                        uint32_t length)
{
    const struct node_dataplane_config *config = &dataplane->config;
    bool any = false;
    for (uint32_t to = 0; to < config->count && config->crossing != NULL; to++) {
        bool wants = kind == NODE_CROSSING_ALL || node_crossing_members(config->crossing, to) > 0;
        if (to != config->number && wants) {
            any = node_crossing_put(config->crossing, config->number, to, kind, frame, length) || any;
        }
    }
    return any;
}

/* A frame to a UDP port of another thread's. False: it is none, or has no room there. */
static bool frame_cross(struct node_dataplane *dataplane, uint16_t udp_port, const uint8_t *frame, uint32_t length)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t to = config->crossing == NULL ? config->number : node_core_of(config, udp_port);
    return to != config->number &&
           node_crossing_put(config->crossing, config->number, to, NODE_CROSSING_FRAME, frame, length);
}

static struct node_lease *lease_at(const struct node_dataplane *dataplane, uint16_t udp_port)
{
    uint16_t number = dataplane->lease_of[udp_port];
    return number == 0 ? NULL : dataplane->leases[number - 1];
}

/* What routers and switches ask. */
static void all_give(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length)
{
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        lease_give(dataplane->leases[i], frame, length);
    }
}

/* ---- from the NIC ---- */

/* What is no rank's may be the address's own: ARP, neighbour discovery, echo. */
static void foreign_take(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length, uint64_t now_ns)
{
    const uint8_t *answer;
    uint32_t bytes = 0;
    enum cw_resolve_verdict verdict =
        dataplane->config.resolve == NULL
            ? CW_RESOLVE_FOREIGN
            : cw_resolve_take(dataplane->config.resolve, frame, length, now_ns, &answer, &bytes);
    dataplane->foreign += verdict != CW_RESOLVE_TAKEN && verdict != CW_RESOLVE_ANSWERED;
    if (verdict == CW_RESOLVE_ANSWERED && dataplane->pending_count < CW_PORT_BURST_MAX &&
        cw_port_reserve(dataplane->config.nic, &dataplane->pending[dataplane->pending_count], 1) == 1) {
        struct cw_transmit *packet = &dataplane->pending[dataplane->pending_count++];
        memcpy(packet->data, answer, bytes);
        packet->length = bytes;
    }
}

static void frame_take(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length, uint64_t now_ns)
{
    const struct node_packet packet = node_packet_read(frame, length);
    if (packet.kind == NODE_PACKET_UDP && packet.is_group && packet.to_port == CW_UDP_PORT) {
        bool any = group_cross(dataplane, NODE_CROSSING_FRAME, frame, length);
        dataplane->foreign += !members_give(dataplane, NULL, frame, length) && !any;
        return;
    }
    if (packet.kind == NODE_PACKET_REPORT && packet.is_group && dataplane->config.answers) {
        (void)group_cross(dataplane, NODE_CROSSING_ALL, frame, length);
        all_give(dataplane, frame, length);
        return;
    }
    bool is_to_host =
        packet.kind == NODE_PACKET_UDP && !packet.is_group && cw_ip_is_equal(&packet.to, &dataplane->config.ip);
    struct node_lease *lease = is_to_host ? lease_at(dataplane, packet.to_port) : NULL;
    if (lease != NULL) {
        lease_give(lease, frame, length);
    } else if (!is_to_host || !frame_cross(dataplane, packet.to_port, frame, length)) {
        foreign_take(dataplane, frame, length, now_ns);
    }
}

static uint32_t port_take(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_received packets[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(dataplane->config.nic, packets, CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (i + 2 < count) {
            __builtin_prefetch(packets[i + 2].data);
        }
        frame_take(dataplane, packets[i].data, packets[i].length, now_ns);
    }
    cw_port_release(dataplane->config.nic, packets, count);
    return count;
}

/* ---- from ranks ---- */

/* Whether a rank may send this: `frame` is the node's own copy. */
static bool is_its_own(const struct node_dataplane *dataplane, const struct node_lease *lease, const uint8_t *frame,
                       const struct node_packet *packet)
{
    const struct node_dataplane_config *config = &dataplane->config;
    if (memcmp(frame + 6, config->mac, 6) != 0 || !cw_ip_is_equal(&packet->from, &config->ip)) {
        return false;
    }
    if (packet->kind == NODE_PACKET_REPORT) {
        return packet->is_group && config->answers;
    }
    return packet->kind == NODE_PACKET_UDP && packet->from_port >= lease->first &&
           packet->from_port - lease->first < lease->ports;
}

/* True: the copy in `data` is to leave by the NIC. */
static bool frame_sort(struct node_dataplane *dataplane, struct node_lease *lease, const uint8_t *data, uint32_t length)
{
    const struct node_packet packet = node_packet_read(data, length);
    if (!is_its_own(dataplane, lease, data, &packet)) {
        lease->counters.refused++;
        return false;
    }
    if (packet.is_group) {
        (void)members_give(dataplane, lease, data, length);
        (void)group_cross(dataplane, NODE_CROSSING_FRAME, data, length);
    } else if (cw_ip_is_equal(&packet.to, &dataplane->config.ip)) {
        struct node_lease *to = lease_at(dataplane, packet.to_port);
        if (to != NULL) {
            lease_give(to, data, length);
        } else {
            (void)frame_cross(dataplane, packet.to_port, data, length);
        }
        lease->counters.out_frames++;
        lease->counters.out_bytes += length;
        return false;
    }
    lease->counters.out_frames++;
    lease->counters.out_bytes += length;
    return true;
}

/* Looks which leases have frames. Returns whether any has. */
static bool leases_look(struct node_dataplane *dataplane)
{
    bool any = false;
    for (uint32_t i = 0; i < dataplane->shares.count; i++) {
        dataplane->shares.turns[i]->has_work = false;
    }
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        struct node_lease *lease = dataplane->leases[i];
        if (lease->frame_at == lease->frame_count) {
            lease->frame_at = 0;
            lease->frame_count = cw_cable_receive(lease->cable, lease->frames, CW_PORT_BURST_MAX);
        }
        lease->turn.has_work = lease->frame_count > 0;
        lease->share->turn.has_work = lease->share->turn.has_work || lease->turn.has_work;
        any = any || lease->turn.has_work;
    }
    return any;
}

/* The lease whose frame is next; NULL: none may send now. */
static struct node_lease *lease_next(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct node_share *share = (struct node_share *)node_round_next(&dataplane->shares, now_ns);
    return share == NULL ? NULL : (struct node_lease *)node_round_next(&share->round, now_ns);
}

/* The first frame of a lease is done with. */
static void lease_step(struct node_lease *lease)
{
    struct node_round *round = &lease->share->round;
    lease->frame_at++;
    lease->turn.has_work = lease->frame_at < lease->frame_count;
    bool any = lease->turn.has_work;
    for (uint32_t i = 0; i < round->count && !any; i++) {
        any = round->turns[i]->has_work;
    }
    lease->share->turn.has_work = any;
    cw_cable_consume(lease->cable, 1);
}

static uint32_t leases_take(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    struct cw_port *nic = dataplane->config.nic;
    if (dataplane->pending_count > 0 || !leases_look(dataplane)) {
        return 0;
    }
    uint32_t room = cw_port_reserve(nic, packets, CW_PORT_BURST_MAX), used = 0, moved = 0;
    while (used < room && moved < 2 * CW_PORT_BURST_MAX && node_meter_may(&dataplane->meter, now_ns)) {
        struct node_lease *lease = lease_next(dataplane, now_ns);
        if (lease == NULL) {
            break;
        }
        const struct cw_cable_frame frame = lease->frames[lease->frame_at];
        struct cw_transmit *packet = &packets[used];
        uint32_t bytes = frame.length + CW_ETHERNET_OVERHEAD_BYTES;
        memcpy(packet->data, frame.data, frame.length);
        packet->length = frame.length;
        moved++;
        if (frame_sort(dataplane, lease, packet->data, packet->length)) {
            used++;
            node_meter_charge(&dataplane->meter, now_ns, bytes);
            node_turn_charge(&lease->share->turn, now_ns, bytes);
        }
        node_turn_charge(&lease->turn, now_ns, bytes);
        lease_step(lease);
    }
    cw_port_cancel(nic, packets + used, room - used);
    memcpy(dataplane->pending, packets, used * sizeof(packets[0]));
    dataplane->pending_count = used;
    return moved;
}

/* ---- from other threads ---- */

static void join_for(struct node_dataplane *dataplane, uint32_t from, const uint8_t mac[6])
{
    if (cw_port_join(dataplane->config.nic, mac) != 0 && dataplane->refused_count < NODE_REFUSED_MAX) {
        struct node_refused *refused = &dataplane->refused[dataplane->refused_count++];
        refused->from = from;
        memcpy(refused->mac, mac, 6);
    }
}

/* Who leaves a group that was never joined takes no other's membership away. */
static void leave_for(struct node_dataplane *dataplane, uint32_t from, const uint8_t mac[6])
{
    for (uint32_t i = 0; i < dataplane->refused_count; i++) {
        struct node_refused *refused = &dataplane->refused[i];
        if (refused->from == from && memcmp(refused->mac, mac, 6) == 0) {
            *refused = dataplane->refused[--dataplane->refused_count];
            return;
        }
    }
    (void)cw_port_leave(dataplane->config.nic, mac);
}

static void crossed_take(struct node_dataplane *dataplane, uint32_t from, const struct node_crossed *crossed)
{
    const struct node_packet packet = node_packet_read(crossed->bytes, crossed->length);
    struct node_lease *lease;
    switch ((enum node_crossing_kind)crossed->kind) {
    case NODE_CROSSING_FRAME:
        lease = packet.is_group ? NULL : lease_at(dataplane, packet.to_port);
        if (packet.is_group) {
            (void)members_give(dataplane, NULL, crossed->bytes, crossed->length);
        } else if (lease != NULL) {
            lease_give(lease, crossed->bytes, crossed->length);
        }
        break;
    case NODE_CROSSING_ALL:
        all_give(dataplane, crossed->bytes, crossed->length);
        break;
    case NODE_CROSSING_JOIN:
        join_for(dataplane, from, crossed->bytes);
        break;
    case NODE_CROSSING_LEAVE:
        leave_for(dataplane, from, crossed->bytes);
        break;
    }
}

static uint32_t crossings_take(struct node_dataplane *dataplane)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t moved = 0;
    for (uint32_t from = 0; from < config->count && config->crossing != NULL; from++) {
        const struct node_crossed *crossed = NULL;
        for (uint32_t i = 0; from != config->number && i < CW_PORT_BURST_MAX &&
                             (crossed = node_crossing_first(config->crossing, from, config->number)) != NULL;
             i++, moved++) {
            crossed_take(dataplane, from, crossed);
            node_crossing_next(config->crossing, from, config->number);
        }
    }
    return moved;
}

/* ---- both ---- */

static void questions_send(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_resolve *resolve = dataplane->config.resolve;
    while (resolve != NULL && cw_resolve_deadline(resolve) <= now_ns && dataplane->pending_count < CW_PORT_BURST_MAX) {
        uint8_t frame[CW_SOLICIT_BYTES_MAX];
        uint32_t bytes = cw_resolve_question(resolve, now_ns, frame);
        struct cw_transmit *packet = &dataplane->pending[dataplane->pending_count];
        if (bytes == 0 || cw_port_reserve(dataplane->config.nic, packet, 1) == 0) {
            return;
        }
        memcpy(packet->data, frame, bytes);
        packet->length = bytes;
        dataplane->pending_count++;
    }
}

uint32_t node_forward(struct node_dataplane *dataplane, uint64_t now_ns)
{
    uint32_t moved = port_take(dataplane, now_ns);
    moved += crossings_take(dataplane);
    moved += leases_take(dataplane, now_ns);
    questions_send(dataplane, now_ns);
    if (dataplane->pending_count > 0) {
        port_flush(dataplane);
    }
    for (uint32_t i = 0; i < dataplane->lease_count && moved > 0; i++) {
        cw_cable_flush(dataplane->leases[i]->cable);
    }
    return moved;
}

uint64_t node_forward_deadline(const struct node_dataplane *dataplane, uint64_t now_ns)
{
    uint64_t deadline_ns = node_round_deadline(&dataplane->shares);
    if (deadline_ns != UINT64_MAX && dataplane->meter.rate_bps != 0 && dataplane->meter.free_ns > deadline_ns) {
        deadline_ns = dataplane->meter.free_ns;
    }
    if (dataplane->pending_count > 0) {
        deadline_ns = now_ns + FULL_RETRY_NS < deadline_ns ? now_ns + FULL_RETRY_NS : deadline_ns;
    }
    if (dataplane->config.resolve != NULL) {
        uint64_t asks_ns = cw_resolve_deadline(dataplane->config.resolve);
        deadline_ns = asks_ns < deadline_ns ? asks_ns : deadline_ns;
    }
    return deadline_ns;
}

/* ---- groups ---- */

static bool is_group(const uint8_t mac[6])
{
    return (mac[0] & 1) != 0;
}

/* The NIC's groups are the first thread's to change. It takes what others have for it at any time, so that waiting for
 * room ends, unless it has ended itself. */
static bool group_change(struct node_dataplane *dataplane, enum node_crossing_kind kind, const uint8_t mac[6])
{
    const struct node_dataplane_config *config = &dataplane->config;
    if (config->number == 0) {
        return (kind == NODE_CROSSING_JOIN ? cw_port_join(config->nic, mac) : cw_port_leave(config->nic, mac)) == 0;
    }
    while (!node_crossing_put(config->crossing, config->number, 0, kind, mac, 6)) {
        if (atomic_load_explicit(&dataplane->stop, memory_order_acquire) != 0) {
            return false;
        }
        sched_yield();
    }
    return true;
}

static void members_count(const struct node_dataplane *dataplane)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        count += dataplane->leases[i]->group_count;
    }
    if (dataplane->config.crossing != NULL) {
        node_crossing_members_set(dataplane->config.crossing, dataplane->config.number, count);
    }
}

static void groups_set(struct node_dataplane *dataplane, struct node_lease *lease, uint8_t (*groups)[6], uint32_t count)
{
    uint8_t former[CW_CABLE_GROUPS_MAX][6];
    uint32_t former_count = lease->group_count;
    memcpy(former, lease->groups, former_count * sizeof(former[0]));
    lease->group_count = 0;
    for (uint32_t i = 0; i < count; i++) { /* first in, then out: what stays is never left */
        if (is_group(groups[i]) && group_change(dataplane, NODE_CROSSING_JOIN, groups[i])) {
            memcpy(lease->groups[lease->group_count++], groups[i], 6);
        }
    }
    for (uint32_t i = 0; i < former_count; i++) {
        (void)group_change(dataplane, NODE_CROSSING_LEAVE, former[i]);
    }
    members_count(dataplane);
}

void node_groups_renew(struct node_dataplane *dataplane)
{
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        struct node_lease *lease = dataplane->leases[i];
        uint8_t groups[CW_CABLE_GROUPS_MAX][6];
        uint32_t count = cw_cable_groups(lease->cable, &lease->groups_version, groups);
        if (count != UINT32_MAX) {
            groups_set(dataplane, lease, groups, count);
        }
    }
}

void node_groups_drop(struct node_dataplane *dataplane, struct node_lease *lease)
{
    groups_set(dataplane, lease, NULL, 0);
}
