#include "dataplane/flow/owned.h"

#include <string.h>

#include "dataplane/flow/extension.h"
#include "dataplane/state/endpoint.h"

int cw_endpoint_own(struct cw_endpoint *endpoint, struct cw_neighbour_cache *neighbours)
{
    uint8_t group[6];
    int status = cw_neighbour_group(&endpoint->config.address.ip, group) ? cw_port_join(endpoint->port, group) : CW_OK;
    if (status == CW_OK) {
        endpoint->neighbours = neighbours;
        endpoint->neighbour_changes = cw_neighbour_changes(neighbours);
    }
    return status;
}

/* Flows by way of a hop whose MAC address is another one now. */
static void hops_apply(struct cw_endpoint *endpoint)
{
    uint8_t mac[6];
    endpoint->neighbour_changes = cw_neighbour_changes(endpoint->neighbours);
    for (uint32_t peer = 0; peer < endpoint->flows.fresh; peer++) {
        struct cw_address *added = &endpoint->flow_keys[peer].address;
        if (!cw_neighbour_find(endpoint->neighbours, &added->ip, mac)) {
            continue;
        }
        memcpy(added->mac, mac, sizeof(mac));
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, peer);
        if (flow->address.udp_port != 0 && memcmp(flow->address.mac, mac, sizeof(mac)) != 0) {
            memcpy(flow->address.mac, mac, sizeof(flow->address.mac));
        }
    }
}

bool cw_owned_receive(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length)
{
    const uint8_t *answer;
    uint32_t bytes;
    switch (cw_neighbour_receive(endpoint->neighbours, frame, length, endpoint->now_ns, &answer, &bytes)) {
    case CW_NEIGHBOUR_FOREIGN:
        return false;
    case CW_NEIGHBOUR_TAKEN:
        break;
    case CW_NEIGHBOUR_ANSWERED: /* if the port has room: the requester asks again */
        cw_count(endpoint, CW_COUNTER_NEIGHBOUR_ANSWERS, cw_extension_frame(endpoint, answer, bytes));
        break;
    case CW_NEIGHBOUR_DAMAGED:
        cw_count(endpoint, CW_COUNTER_DROP_NEIGHBOUR, 1);
        break;
    case CW_NEIGHBOUR_LIMITED:
        cw_count(endpoint, CW_COUNTER_DROP_NEIGHBOUR_LIMIT, 1);
        break;
    }
    if (endpoint->neighbour_changes != cw_neighbour_changes(endpoint->neighbours)) {
        hops_apply(endpoint);
    }
    return true;
}

uint32_t cw_owned_turn(struct cw_endpoint *endpoint)
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    uint32_t count = 0;
    if (cw_neighbour_deadline(endpoint->neighbours) > endpoint->now_ns) {
        return 0;
    }
    for (uint32_t bytes; (bytes = cw_neighbour_question(endpoint->neighbours, endpoint->now_ns, frame)) > 0; count++) {
        cw_count(endpoint, CW_COUNTER_NEIGHBOUR_REQUESTS, cw_extension_frame(endpoint, frame, bytes));
    }
    return count;
}
