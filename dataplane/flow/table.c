/* The table of flows, by address. */
#include "dataplane/flow/table.h"

#include <assert.h>
#include <string.h>

#include "dataplane/flow/compress.h"

enum { RECLAIM_LOOKS = 64 /* flows looked at for one request */ };

static uint32_t bucket_of(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port)
{
    uint64_t words[2];
    memcpy(words, ip->bytes, sizeof(words));
    uint64_t mixed = ((words[0] ^ udp_port) * 0xbf58476d1ce4e5b9ull + words[1]) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mixed >> 40) & endpoint->flow_bucket_mask;
}

struct cw_flow *cw_flow_find(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port)
{
    struct cw_flow *flow = endpoint->flow_buckets[bucket_of(endpoint, ip, udp_port)];
    while (flow != NULL && (!cw_ip_is_equal(&flow->address.ip, ip) || flow->address.udp_port != udp_port)) {
        flow = flow->bucket_next;
    }
    return flow;
}

/* True if nobody would miss the flow: a request from an unknown address made it, and what asked has not proved
 * itself. */
static bool reclaimable(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    bool idle = (flow->state == CW_PEER_CLOSED || flow->state == CW_PEER_FAILED) && flow->sender.open_count == 0;
    return flow->mac_learned && !flow->was_up && !flow->in_event_list && idle &&
           endpoint->now_ns - flow->session.started_ns >= CW_STRANGER_NS;
}

static void remove_from_bucket(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_flow **link = &endpoint->flow_buckets[bucket_of(endpoint, &flow->address.ip, flow->address.udp_port)];
    while (*link != flow) {
        link = &(*link)->bucket_next;
    }
    *link = flow->bucket_next;
}

/* Takes a flow out of the table for another address. Looks at a few at a time: requests come as fast as packets. */
static struct cw_flow *reclaim(struct cw_endpoint *endpoint)
{
    for (uint32_t looked = 0; looked < RECLAIM_LOOKS && looked < endpoint->flows.fresh; looked++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, endpoint->reclaim_next++ % endpoint->flows.fresh);
        if (!reclaimable(endpoint, flow)) {
            continue;
        }
        remove_from_bucket(endpoint, flow);
        cw_wheel_remove(&endpoint->wheel, &flow->timers.timer);
        cw_wheel_remove(&endpoint->wheel, &flow->timers.pace);
        if (flow->bandwidth != NULL) {
            cw_pool_give(&endpoint->bandwidths, flow->bandwidth);
        }
        cw_flow_compress_forget(endpoint, flow);
        if (flow->late != NULL) {
            cw_pool_give(&endpoint->lates, flow->late);
        }
        return flow;
    }
    return NULL;
}

struct cw_flow *cw_flow_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t stream)
{
    struct cw_flow *flow = cw_pool_take(&endpoint->flows);
    flow = flow == NULL ? reclaim(endpoint) : flow;
    if (flow == NULL) {
        return NULL;
    }
    memset(flow, 0, sizeof(*flow));
    flow->index = cw_pool_index(&endpoint->flows, flow);
    flow->address = *address;
    flow->stream = (uint16_t)stream;
    flow->state = CW_PEER_CLOSED;
    flow->session.started_ns = endpoint->now_ns;
    flow->encrypt = endpoint->config.encryption == CW_ENCRYPTION_REQUIRED;
    flow->sender.put_next = CW_PUT_NUMBER_FIRST;
    flow->timers.probe_ns = UINT64_MAX;
    flow->timers.report_ns = UINT64_MAX;
    flow->receiver.focus = UINT64_MAX;
    flow->shaping.shaper = CW_SHAPER_NONE;
    memcpy(flow->next_hop, address->mac, sizeof(flow->next_hop));
    uint32_t bucket = bucket_of(endpoint, &address->ip, address->udp_port);
    flow->bucket_next = endpoint->flow_buckets[bucket];
    endpoint->flow_buckets[bucket] = flow;
    return flow;
}
