/* Peers, as the application calls them. */
#include "dataplane/endpoint/turn.h"
#include "dataplane/flow/path_mtu.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/table.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/operation.h"
#include "dataplane/state/endpoint.h"

int cw_peer_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t *peer)
{
    const struct cw_address *own = &endpoint->config.address;
    if (cw_ip_is_none(&address->ip) || cw_ip_is_v4(&address->ip) != cw_ip_is_v4(&own->ip) || address->udp_port == 0 ||
        (cw_ip_is_equal(&address->ip, &own->ip) && address->udp_port == own->udp_port)) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_flow *flow = cw_flow_find(endpoint, &address->ip, address->udp_port);
    if (flow == NULL) {
        return cw_flow_add(endpoint, address, 0, peer);
    }
    if (flow->mac_learned) {
        flow->mac_learned = false; /* the application's setting has precedence */
        memcpy(flow->address.mac, address->mac, sizeof(flow->address.mac));
    }
    *peer = flow->index;
    return CW_OK;
}

int cw_peer_connect(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state == CW_PEER_FAILED) {
        return CW_ERROR_PEER_FAILED;
    }
    cw_session_start(endpoint, flow);
    cw_endpoint_push(endpoint, 0);
    return CW_OK;
}

int cw_peer_check(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL || flow->state != CW_PEER_ESTABLISHED) {
        return cw_peer_connect(endpoint, peer);
    }
    if (flow->timers.probe_ns == UINT64_MAX) {
        cw_timers_probe(endpoint, flow);
    }
    return CW_OK;
}

int cw_peer_probe(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state != CW_PEER_ESTABLISHED) {
        return CW_ERROR_CLOSED;
    }
    if (cw_transmit_control(endpoint, flow, CW_WIRE_PROBE, 0) == NULL) {
        return CW_ERROR_AGAIN;
    }
    cw_transmit_control_finish(endpoint, flow, 0);
    cw_count(endpoint, CW_COUNTER_PROBES_OUT, 1);
    cw_endpoint_push(endpoint, 0);
    return CW_OK;
}

int cw_peer_measure_mtu(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL || flow->state != CW_PEER_ESTABLISHED) {
        return flow == NULL ? CW_ERROR_ARGUMENT : CW_ERROR_CLOSED;
    }
    if (flow->session.payload_bytes_max < cw_session_agreed(endpoint, &flow->session)) {
        cw_path_mtu_want(endpoint, flow);
    }
    return CW_OK;
}

int cw_peer_reset(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state != CW_PEER_FAILED) {
        return CW_ERROR_BUSY;
    }
    flow->state = CW_PEER_CLOSED;
    return CW_OK;
}

int cw_peer_encrypt(struct cw_endpoint *endpoint, uint32_t peer, bool encrypt)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    if (encrypt ? endpoint->config.encryption == CW_ENCRYPTION_OFF
                : endpoint->config.encryption == CW_ENCRYPTION_REQUIRED) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (flow->state == CW_PEER_ESTABLISHED || flow->state == CW_PEER_CONNECTING) {
        return flow->encrypt == encrypt ? CW_OK : CW_ERROR_BUSY;
    }
    flow->encrypt = encrypt;
    return CW_OK;
}

static uint64_t unsent_bytes(const struct cw_operation_queue *queue)
{
    uint64_t bytes = 0;
    for (const struct cw_operation *operation = queue->first; operation != NULL; operation = operation->next) {
        bytes += operation->bytes - operation->position;
    }
    return bytes;
}

const char *cw_cover_text(enum cw_cover cover)
{
    static const char *const texts[] = {
        [CW_COVER_CRC] = "CRC-32C, by the processes",
        [CW_COVER_NICS] = "UDP checksums, by the NICs",
        [CW_COVER_KERNEL] = "UDP checksums, by the kernels",
        [CW_COVER_MEMORY] = "nothing, since they stay in memory",
        [CW_COVER_SEAL] = "AES-GCM",
    };
    return texts[cover];
}

static enum cw_cover cover_of(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_session *session = &flow->session;
    bool is_kernel = endpoint->port->info.medium == CW_PORT_MEDIUM_KERNEL;
    return flow->state != CW_PEER_ESTABLISHED ? CW_COVER_CRC
           : session->seal != NULL            ? CW_COVER_SEAL
           : session->kept                    ? (is_kernel ? CW_COVER_KERNEL : CW_COVER_MEMORY)
           : session->summed                  ? CW_COVER_NICS
                                              : CW_COVER_CRC;
}

int cw_peer_query(const struct cw_endpoint *endpoint, uint32_t peer, struct cw_peer_info *info)
{
    if (peer >= endpoint->flows.fresh) {
        return CW_ERROR_ARGUMENT;
    }
    const struct cw_flow *flow = cw_pool_at(&endpoint->flows, peer);
    if (flow->address.udp_port == 0) { /* not begun, and a query does not begin it */
        const struct cw_flow_key *key = &endpoint->flow_keys[peer];
        *info = (struct cw_peer_info){.address = key->address, .stream = key->stream, .state = CW_PEER_CLOSED};
        return CW_OK;
    }
    uint64_t blocks = cw_window_block_count(&flow->receiver.packets) + cw_window_block_count(&flow->receiver.puts);
    *info = (struct cw_peer_info){
        .address = flow->address,
        .stream = flow->stream,
        .state = flow->state,
        .waiting = flow->session.peer_waiting,
        .encrypted = flow->session.seal != NULL,
        .cover = cover_of(endpoint, flow),
        .incarnation = flow->session.incarnation,
        .round_trip_ns = flow->round_trip.smoothed_ns,
        .round_trip_min_ns = flow->round_trip.min_ns,
        .congestion_window_bytes = flow->congestion.window_bytes,
        .in_flight_bytes = flow->sender.in_flight_bytes,
        .unsent_bytes = unsent_bytes(&flow->sender.queue_short) + unsent_bytes(&flow->sender.queue_bulk),
        .part_bytes_max = cw_transmit_part_bytes(flow),
        .path_mtu_bytes = flow->state == CW_PEER_ESTABLISHED ? cw_path_mtu_bytes(endpoint, flow) : 0,
        .path_mtu_found = flow->state == CW_PEER_ESTABLISHED && flow->session.mtu.tried == 0,
        .packets_sent = flow->sender.packets_sent,
        .packets_retransmitted = flow->sender.packets_retransmitted,
        .packets_unacknowledged = flow->sender.sent.next - flow->sender.sent.base,
        .heard_ns = flow->timers.heard_ns,
        .operations_open = cw_operations_open(flow),
        .credit = flow->credit.count,
        .bytes_active = cw_sent_bytes(&flow->sender.sent, &endpoint->sent_chunks, &endpoint->blocks) +
                        blocks * CW_WINDOW_BLOCK_BYTES +
                        (uint64_t)cw_operations_open(flow) * endpoint->operations.object_bytes,
    };
    return CW_OK;
}
