#include <sched.h>
#include <string.h>

#include "apps/node/packet.h"
#include "apps/node/state.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/prefetch.h"
#include "dataplane/limits.h"

#define FULL_RETRY_NS   20000ull
#define GROUPS_RETRY_NS 1000000000ull

enum { FRAME_BYTES_MIN = 60 /* Ethernet's, without the checksum */ };

static void port_flush(struct node_dataplane *dataplane)
{
    uint32_t sent = cw_port_transmit(dataplane->config.nic, dataplane->pending, dataplane->pending_count);
    dataplane->pending_count -= sent;
    memmove(dataplane->pending, dataplane->pending + sent, dataplane->pending_count * sizeof(dataplane->pending[0]));
}

/* ---- to ranks ---- */

static void lease_deliver(struct node_lease *lease, const uint8_t *frame, uint32_t length)
{
    if (!cw_shm_port_send(lease->shm_port, &(struct cw_received){.data = frame, .length = length})) {
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

/* Copies to each member on this host except the sender. Returns the number of copies. */
static uint32_t members_deliver(struct node_dataplane *dataplane, const struct node_lease *sender, const uint8_t *frame,
                                uint32_t length)
{
    uint32_t copies = 0;
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        struct node_lease *lease = dataplane->leases[i];
        if (lease != sender && is_member(lease, frame)) {
            lease_deliver(lease, frame, length);
            copies++;
        }
    }
    return copies;
}

/* Forwards to the other threads that have members. Returns the maximum number of members; 0: no thread has accepted
 * it. */
static uint32_t group_cross(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t copies = 0;
    for (uint32_t to = 0; to < config->count && config->handoff != NULL; to++) {
        uint32_t members = to == config->number ? 0 : node_handoff_members(config->handoff, to);
        if (members > 0 && node_handoff_put(config->handoff, config->number, to, NODE_HANDOFF_FRAME, frame, length)) {
            copies += members;
        }
    }
    return copies;
}

/* A frame to a UDP port of another thread's. False: it is none, or has no room there. */
static bool frame_cross(struct node_dataplane *dataplane, uint16_t udp_port, const uint8_t *frame, uint32_t length)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t to = config->handoff == NULL ? config->number : node_core_of(config, udp_port);
    return to != config->number &&
           node_handoff_put(config->handoff, config->number, to, NODE_HANDOFF_FRAME, frame, length);
}

static struct node_lease *lease_at(const struct node_dataplane *dataplane, uint16_t udp_port)
{
    uint16_t number = dataplane->lease_of[udp_port];
    return number == 0 ? NULL : dataplane->leases[number - 1];
}

/* ---- from the NIC ---- */

/* A frame for no rank may be for the address itself: ARP, neighbour discovery, echo. */
static void foreign_receive(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length, uint64_t now_ns)
{
    const uint8_t *answer;
    uint32_t bytes = 0;
    enum cw_neighbour_verdict verdict =
        dataplane->config.neighbours == NULL
            ? CW_NEIGHBOUR_FOREIGN
            : cw_neighbour_receive(dataplane->config.neighbours, frame, length, now_ns, &answer, &bytes);
    dataplane->foreign += verdict != CW_NEIGHBOUR_TAKEN && verdict != CW_NEIGHBOUR_ANSWERED;
    if (verdict == CW_NEIGHBOUR_ANSWERED && dataplane->pending_count < CW_PORT_BURST_MAX &&
        cw_port_reserve(dataplane->config.nic, &dataplane->pending[dataplane->pending_count], 1) == 1) {
        struct cw_transmit *packet = &dataplane->pending[dataplane->pending_count++];
        memcpy(packet->data, answer, bytes);
        packet->length = bytes;
    }
}

static void frame_receive(struct node_dataplane *dataplane, const uint8_t *frame, uint32_t length, uint64_t now_ns)
{
    const struct node_packet packet = node_packet_read(frame, length);
    if (packet.kind == NODE_PACKET_UDP && packet.is_group && packet.to_port == CW_UDP_PORT) {
        uint32_t copies = group_cross(dataplane, frame, length) + members_deliver(dataplane, NULL, frame, length);
        dataplane->foreign += copies == 0;
        return;
    }
    bool is_to_host = packet.kind == NODE_PACKET_UDP && !packet.is_group &&
                      node_packet_ip_is(&packet, packet.to, &dataplane->config.ip);
    struct node_lease *lease = is_to_host ? lease_at(dataplane, packet.to_port) : NULL;
    if (lease != NULL) {
        lease_deliver(lease, frame, length);
    } else if (!is_to_host || !frame_cross(dataplane, packet.to_port, frame, length)) {
        foreign_receive(dataplane, frame, length, now_ns);
    }
}

static uint32_t port_receive(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_received packets[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(dataplane->config.nic, packets, CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (i + 2 < count) {
            __builtin_prefetch(packets[i + 2].data);
        }
        frame_receive(dataplane, packets[i].data, packets[i].length, now_ns);
    }
    cw_port_release(dataplane->config.nic, packets, count);
    return count;
}

/* ---- from ranks ---- */

/* Whether a rank may send this datagram: `frame` is the node's own copy. */
static bool is_its_own(const struct node_dataplane *dataplane, const struct node_lease *lease, const uint8_t *frame,
                       uint32_t length, const struct node_packet *packet)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t padded = packet->bytes > FRAME_BYTES_MIN ? packet->bytes : (uint32_t)FRAME_BYTES_MIN;
    return packet->kind == NODE_PACKET_UDP && length <= padded && memcmp(frame + 6, config->mac, 6) == 0 &&
           node_packet_ip_is(packet, packet->from, &config->ip) && packet->from_port >= lease->first &&
           packet->from_port - lease->first < lease->ports && (!packet->is_group || packet->to_port == CW_UDP_PORT);
}

static bool has_member(const struct node_dataplane *dataplane, const uint8_t group[6])
{
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        if (is_member(dataplane->leases[i], group)) {
            return true;
        }
    }
    for (uint32_t to = 0; to < dataplane->config.count && dataplane->config.handoff != NULL; to++) {
        if (to != dataplane->config.number && node_handoff_members(dataplane->config.handoff, to) > 0) {
            return true; /* maybe of another group */
        }
    }
    return false;
}

static void groups_renew(struct node_dataplane *dataplane, struct node_lease *lease, uint64_t now_ns);

enum frame_fate { FRAME_REFUSED, FRAME_STAYS, FRAME_LEAVES };

/* A report of a group leaves the host if the lease is a member. A leave report does if no lease of this host is one: it
 * would take the group from the others. */
static enum frame_fate report_sort(struct node_dataplane *dataplane, struct node_lease *lease,
                                   const struct node_report *report, uint64_t now_ns)
{
    groups_renew(dataplane, lease, now_ns); /* it has just joined or left */
    if (report->has_left) {
        return has_member(dataplane, report->group) ? FRAME_STAYS : FRAME_LEAVES;
    }
    return is_member(lease, report->group) ? FRAME_LEAVES : FRAME_REFUSED;
}

/* Decides on the frame whose copy is in `data`. *copies: number of copies made for ranks of this host. */
static enum frame_fate frame_sort(struct node_dataplane *dataplane, struct node_lease *lease, const uint8_t *data,
                                  uint32_t length, uint64_t now_ns, uint32_t *copies)
{
    const struct node_dataplane_config *config = &dataplane->config;
    const struct node_packet packet = node_packet_read(data, length);
    struct node_report report;
    *copies = 0;
    if (config->answers && node_report_read(data, length, config->mac, &config->ip, &report)) {
        return report_sort(dataplane, lease, &report, now_ns);
    }
    if (!is_its_own(dataplane, lease, data, length, &packet)) {
        return FRAME_REFUSED;
    }
    if (packet.is_group) {
        *copies = members_deliver(dataplane, lease, data, length) + group_cross(dataplane, data, length);
        return FRAME_LEAVES;
    }
    if (!node_packet_ip_is(&packet, packet.to, &config->ip)) {
        return FRAME_LEAVES;
    }
    struct node_lease *to = lease_at(dataplane, packet.to_port);
    if (to != NULL) {
        lease_deliver(to, data, length);
    } else {
        (void)frame_cross(dataplane, packet.to_port, data, length); /* dropped if no rank has the port */
    }
    *copies = 1;
    return FRAME_STAYS;
}

/* Charges the cost of a frame to its user. A lease waits after a refused frame, the longer the more of the user's
 * frames were refused. */
static void frame_charge(struct node_dataplane *dataplane, struct node_lease *lease, enum frame_fate fate,
                         uint32_t length, uint32_t copies, uint64_t now_ns)
{
    struct node_share *share = lease->share;
    uint32_t bytes = length + CW_ETHERNET_OVERHEAD_BYTES;
    node_meter_charge(&dataplane->meter, now_ns, bytes);
    uint32_t moves = copies + (fate != FRAME_STAYS);
    for (moves = moves > 0 ? moves : 1; moves > 0; moves--) { /* one that goes nowhere has cost a look */
        node_turn_charge(&share->turn, now_ns, bytes);
        node_turn_charge(&lease->turn, now_ns, bytes);
    }
    if (fate == FRAME_REFUSED) {
        node_budget_charge(&share->refusals, now_ns, NODE_REFUSAL_NS);
        lease->turn.barred_ns = share->refusals.paid_ns;
        lease->counters.refused++;
    } else {
        lease->counters.out_frames++;
        lease->counters.out_bytes += length;
    }
}

/* Whether its next frame may be looked at: a user has work only if one of the leases may, else the others would wait.
 * */
static bool may_look(const struct node_lease *lease, uint64_t now_ns)
{
    return lease->turn.has_work && lease->turn.barred_ns <= now_ns;
}

/* Looks which leases have frames. Returns whether any has one that may be looked at. */
static bool leases_look(struct node_dataplane *dataplane, uint64_t now_ns)
{
    bool any = false;
    dataplane->barred_ns = UINT64_MAX;
    for (uint32_t i = 0; i < dataplane->shares.count; i++) {
        dataplane->shares.turns[i]->has_work = false;
    }
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        struct node_lease *lease = dataplane->leases[i];
        if (lease->frame_at == lease->frame_count) {
            lease->frame_at = 0;
            lease->frame_count = cw_shm_port_receive(lease->shm_port, lease->frames, CW_PORT_BURST_MAX);
        }
        lease->turn.has_work = lease->frame_count > 0;
        bool may = may_look(lease, now_ns);
        if (lease->turn.has_work && !may && lease->turn.barred_ns < dataplane->barred_ns) {
            dataplane->barred_ns = lease->turn.barred_ns;
        }
        lease->share->turn.has_work = lease->share->turn.has_work || may;
        any = any || may;
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
static void lease_step(struct node_lease *lease, uint64_t now_ns)
{
    struct node_round *round = &lease->share->round;
    lease->frame_at++;
    lease->turn.has_work = lease->frame_at < lease->frame_count;
    bool any = false;
    for (uint32_t i = 0; i < round->count && !any; i++) {
        any = may_look((const struct node_lease *)round->turns[i], now_ns);
    }
    lease->share->turn.has_work = any;
    cw_shm_port_consume(lease->shm_port, 1);
}

static uint32_t leases_receive(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    struct cw_port *nic = dataplane->config.nic;
    if (dataplane->pending_count > 0 || !leases_look(dataplane, now_ns)) {
        return 0;
    }
    uint32_t room = cw_port_reserve(nic, packets, CW_PORT_BURST_MAX), used = 0, moved = 0;
    while (used < room && moved < 2 * CW_PORT_BURST_MAX && node_meter_may(&dataplane->meter, now_ns)) {
        struct node_lease *lease = lease_next(dataplane, now_ns);
        if (lease == NULL) {
            break;
        }
        const struct cw_shm_port_frame *frame = &lease->frames[lease->frame_at];
        struct cw_transmit *packet = &packets[used];
        if (lease->frame_at + 1 < lease->frame_count) {
            cw_prefetch_read(frame[1].data, frame[1].length);
        }
        uint32_t copies;
        memcpy(packet->data, frame->data, frame->length);
        packet->length = frame->length;
        enum frame_fate fate = frame_sort(dataplane, lease, packet->data, packet->length, now_ns, &copies);
        used += fate == FRAME_LEAVES;
        moved += 1 + copies;
        frame_charge(dataplane, lease, fate, packet->length, copies, now_ns);
        lease_step(lease, now_ns);
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

/* Leaving a group that was never joined does not end another thread's membership. */
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

static void handed_receive(struct node_dataplane *dataplane, uint32_t from, const struct node_handed *handed)
{
    const struct node_packet packet = node_packet_read(handed->bytes, handed->length);
    struct node_lease *lease;
    switch ((enum node_handoff_kind)handed->kind) {
    case NODE_HANDOFF_FRAME:
        lease = packet.is_group ? NULL : lease_at(dataplane, packet.to_port);
        if (packet.is_group) {
            (void)members_deliver(dataplane, NULL, handed->bytes, handed->length);
        } else if (lease != NULL) {
            lease_deliver(lease, handed->bytes, handed->length);
        }
        break;
    case NODE_HANDOFF_JOIN:
        join_for(dataplane, from, handed->bytes);
        break;
    case NODE_HANDOFF_LEAVE:
        leave_for(dataplane, from, handed->bytes);
        break;
    }
}

static uint32_t handoffs_receive(struct node_dataplane *dataplane)
{
    const struct node_dataplane_config *config = &dataplane->config;
    uint32_t moved = 0;
    for (uint32_t from = 0; from < config->count && config->handoff != NULL; from++) {
        const struct node_handed *handed = NULL;
        for (uint32_t i = 0; from != config->number && i < CW_PORT_BURST_MAX &&
                             (handed = node_handoff_first(config->handoff, from, config->number)) != NULL;
             i++, moved++) {
            handed_receive(dataplane, from, handed);
            node_handoff_next(config->handoff, from, config->number);
        }
    }
    return moved;
}

/* ---- both ---- */

static void questions_send(struct node_dataplane *dataplane, uint64_t now_ns)
{
    struct cw_neighbour_cache *neighbours = dataplane->config.neighbours;
    while (neighbours != NULL && cw_neighbour_deadline(neighbours) <= now_ns &&
           dataplane->pending_count < CW_PORT_BURST_MAX) {
        uint8_t frame[CW_SOLICIT_BYTES_MAX];
        uint32_t bytes = cw_neighbour_question(neighbours, now_ns, frame);
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
    uint32_t moved = port_receive(dataplane, now_ns);
    moved += handoffs_receive(dataplane);
    moved += leases_receive(dataplane, now_ns);
    questions_send(dataplane, now_ns);
    if (dataplane->pending_count > 0) {
        port_flush(dataplane);
    }
    for (uint32_t i = 0; i < dataplane->lease_count && moved > 0; i++) {
        cw_shm_port_flush(dataplane->leases[i]->shm_port);
    }
    return moved;
}

uint64_t node_forward_deadline(const struct node_dataplane *dataplane, uint64_t now_ns)
{
    uint64_t deadline_ns = node_round_deadline(&dataplane->shares);
    if (deadline_ns != UINT64_MAX && dataplane->meter.rate_bps != 0 && dataplane->meter.free_ns > deadline_ns) {
        deadline_ns = dataplane->meter.free_ns;
    }
    deadline_ns = dataplane->barred_ns < deadline_ns ? dataplane->barred_ns : deadline_ns;
    if (dataplane->pending_count > 0) {
        deadline_ns = now_ns + FULL_RETRY_NS < deadline_ns ? now_ns + FULL_RETRY_NS : deadline_ns;
    }
    if (dataplane->config.neighbours != NULL) {
        uint64_t asks_ns = cw_neighbour_deadline(dataplane->config.neighbours);
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
static bool group_change(struct node_dataplane *dataplane, enum node_handoff_kind kind, const uint8_t mac[6])
{
    const struct node_dataplane_config *config = &dataplane->config;
    if (config->number == 0) {
        return (kind == NODE_HANDOFF_JOIN ? cw_port_join(config->nic, mac) : cw_port_leave(config->nic, mac)) == 0;
    }
    while (!node_handoff_put(config->handoff, config->number, 0, kind, mac, 6)) {
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
    if (dataplane->config.handoff != NULL) {
        node_handoff_members_set(dataplane->config.handoff, dataplane->config.number, count);
    }
}

static bool has_group(const uint8_t (*groups)[6], uint32_t count, const uint8_t mac[6])
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(groups[i], mac, 6) == 0) {
            return true;
        }
    }
    return false;
}

static struct node_user_group *user_group(struct node_share *share, const uint8_t mac[6])
{
    for (uint32_t i = 0; i < share->group_count; i++) {
        if (memcmp(share->groups[i].mac, mac, 6) == 0) {
            return &share->groups[i];
        }
    }
    return NULL;
}

static bool user_has_room(const struct node_dataplane *dataplane, const struct node_share *share)
{
    return share->group_count < NODE_USER_GROUPS_MAX / dataplane->config.count;
}

static void group_leave(struct node_dataplane *dataplane, struct node_lease *lease, uint32_t at)
{
    struct node_share *share = lease->share;
    struct node_user_group *group = user_group(share, lease->groups[at]);
    (void)group_change(dataplane, NODE_HANDOFF_LEAVE, lease->groups[at]);
    memmove(lease->groups[at], lease->groups[--lease->group_count], 6);
    if (--group->leases == 0) {
        *group = share->groups[--share->group_count];
    }
}

enum join { JOIN_DONE, JOIN_REFUSED /* by the port */, JOIN_TOO_MANY /* groups of the user */ };

static enum join group_join(struct node_dataplane *dataplane, struct node_lease *lease, const uint8_t mac[6])
{
    struct node_share *share = lease->share;
    struct node_user_group *group = user_group(share, mac);
    if (group == NULL && !user_has_room(dataplane, share)) {
        return JOIN_TOO_MANY;
    }
    if (!group_change(dataplane, NODE_HANDOFF_JOIN, mac)) {
        return JOIN_REFUSED;
    }
    memcpy(lease->groups[lease->group_count++], mac, 6);
    if (group == NULL) {
        group = &share->groups[share->group_count++];
        *group = (struct node_user_group){.leases = 0};
        memcpy(group->mac, mac, 6);
    }
    group->leases++;
    return JOIN_DONE;
}

/* Joins and leaves only changed groups; leaves first, to make room. */
static void groups_set(struct node_dataplane *dataplane, struct node_lease *lease, const uint8_t (*groups)[6],
                       uint32_t count, uint64_t now_ns)
{
    uint32_t changes = 0;
    for (uint32_t i = lease->group_count; i-- > 0;) {
        if (!has_group(groups, count, lease->groups[i])) {
            group_leave(dataplane, lease, i);
            changes++;
        }
    }
    lease->lacks_groups = false;
    for (uint32_t i = 0; i < count; i++) {
        if (is_group(groups[i]) && !is_member(lease, groups[i])) {
            enum join join = group_join(dataplane, lease, groups[i]);
            lease->lacks_groups = lease->lacks_groups || join != JOIN_DONE;
            changes += join != JOIN_TOO_MANY;
        }
    }
    lease->groups_retry_ns = now_ns + GROUPS_RETRY_NS;
    node_budget_charge(&lease->share->group_changes, now_ns, changes * NODE_GROUP_CHANGE_NS);
    members_count(dataplane);
}

/* A user whose ranks change groups without end waits for the next change. */
static void groups_renew(struct node_dataplane *dataplane, struct node_lease *lease, uint64_t now_ns)
{
    uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6];
    if (!node_budget_may(&lease->share->group_changes, now_ns, NODE_GROUP_BURST_NS)) {
        return;
    }
    if (lease->lacks_groups && now_ns >= lease->groups_retry_ns) {
        lease->groups_version = UINT32_MAX; /* tries again: there may be room now */
    }
    uint32_t count = cw_shm_port_groups(lease->shm_port, &lease->groups_version, groups);
    if (count != UINT32_MAX) {
        groups_set(dataplane, lease, (const uint8_t(*)[6])groups, count, now_ns);
    }
}

void node_groups_renew(struct node_dataplane *dataplane, uint64_t now_ns)
{
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        groups_renew(dataplane, dataplane->leases[i], now_ns);
    }
}

void node_groups_drop(struct node_dataplane *dataplane, struct node_lease *lease)
{
    groups_set(dataplane, lease, NULL, 0, cw_clock_ns());
}
