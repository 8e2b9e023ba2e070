#include "dataplane/flow/owned.h"

#include <string.h>

#include "dataplane/flow/extension.h"
#include "dataplane/state/endpoint.h"

int cw_endpoint_own(struct cw_endpoint *endpoint, struct cw_resolve *resolve)
{
    uint8_t group[6];
    int status = cw_resolve_group(&endpoint->config.address.ip, group) ? cw_port_join(endpoint->port, group) : CW_OK;
    if (status == CW_OK) {
        endpoint->resolve = resolve;
        endpoint->resolve_changes = cw_resolve_changes(resolve);
    }
    return status;
}

/* Flows by way of a hop whose MAC address is another one now. */
static void hops_apply(struct cw_endpoint *endpoint)
{
    uint8_t mac[6];
    endpoint->resolve_changes = cw_resolve_changes(endpoint->resolve);
    for (uint32_t peer = 0; peer < endpoint->flows.fresh; peer++) {
        struct cw_address *added = &endpoint->flow_keys[peer].address;
        if (!cw_resolve_find(endpoint->resolve, &added->ip, mac)) {
            continue;
        }
        memcpy(added->mac, mac, sizeof(mac));
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, peer);
        if (flow->address.udp_port != 0 && memcmp(flow->address.mac, mac, sizeof(mac)) != 0) {
            memcpy(flow->address.mac, mac, sizeof(flow->address.mac));
        }
    }
}

bool cw_owned_take(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length)
{
    const uint8_t *answer;
    uint32_t bytes;
    switch (cw_resolve_take(endpoint->resolve, frame, length, endpoint->now_ns, &answer, &bytes)) {
    case CW_RESOLVE_FOREIGN:
        return false;
    case CW_RESOLVE_TAKEN:
        break;
    case CW_RESOLVE_ANSWERED: /* if the port has room: whoever asks asks again */
        cw_count(endpoint, CW_COUNTER_RESOLVE_ANSWERS, cw_extension_frame(endpoint, answer, bytes));
        break;
    case CW_RESOLVE_DAMAGED:
        cw_count(endpoint, CW_COUNTER_DROP_RESOLVE, 1);
        break;
    case CW_RESOLVE_LIMITED:
        cw_count(endpoint, CW_COUNTER_DROP_RESOLVE_LIMIT, 1);
        break;
    }
    if (endpoint->resolve_changes != cw_resolve_changes(endpoint->resolve)) {
        hops_apply(endpoint);
    }
    return true;
}

uint32_t cw_owned_turn(struct cw_endpoint *endpoint)
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    uint32_t count = 0;
    if (cw_resolve_deadline(endpoint->resolve) > endpoint->now_ns) {
        return 0;
    }
    for (uint32_t bytes; (bytes = cw_resolve_question(endpoint->resolve, endpoint->now_ns, frame)) > 0; count++) {
        cw_count(endpoint, CW_COUNTER_RESOLVE_QUESTIONS, cw_extension_frame(endpoint, frame, bytes));
    }
    return count;
}
