/* The table of flows, by address. */
#include "dataplane/flow/table.h"

#include <assert.h>
#include <string.h>

#include "dataplane/flow/compress.h"
#include "dataplane/flow/shaper.h"

enum { RECLAIM_LOOKS = 64 /* flows checked for one request */ };

static uint32_t bucket_of(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port)
{
    uint64_t words[2];
    memcpy(words, ip->bytes, sizeof(words));
    uint64_t mixed = ((words[0] ^ udp_port) * 0xbf58476d1ce4e5b9ull + words[1]) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mixed >> 40) & endpoint->flow_bucket_mask;
}

struct cw_flow *cw_flow_find(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port)
{
    uint32_t at = endpoint->flow_buckets[bucket_of(endpoint, ip, udp_port)];
    while (at != 0) {
        const struct cw_flow_key *key = &endpoint->flow_keys[at - 1];
        if (cw_ip_is_equal(&key->address.ip, ip) && key->address.udp_port == udp_port) {
            return cw_endpoint_flow(endpoint, at - 1);
        }
        at = key->next;
    }
    return NULL;
}

/* Whether the flow can be given to another address: a request from an unknown address made it, and the sender has not
 * proved that it belongs to the job. */
static bool reclaimable(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    bool idle = (flow->state == CW_PEER_CLOSED || flow->state == CW_PEER_FAILED) && flow->sender.open_count == 0;
    return flow->mac_learned && !flow->was_up && !flow->in_event_list && idle &&
           endpoint->now_ns - flow->session.started_ns >= CW_STRANGER_NS;
}

static void remove_from_bucket(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    uint32_t *at = &endpoint->flow_buckets[bucket_of(endpoint, &flow->address.ip, flow->address.udp_port)];
    while (*at != flow->index + 1) {
        at = &endpoint->flow_keys[*at - 1].next;
    }
    *at = endpoint->flow_keys[flow->index].next;
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
            cw_pool_release(&endpoint->bandwidths, flow->bandwidth);
        }
        cw_flow_compress_clear(endpoint, flow);
        if (flow->late != NULL) {
            cw_pool_release(&endpoint->lates, flow->late);
        }
        return flow;
    }
    return NULL;
}

void cw_flow_begin(const struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t index)
{
    const struct cw_flow_key *key = &endpoint->flow_keys[index];
    flow->index = index;
    flow->address = key->address;
    flow->stream = key->stream;
    flow->state = CW_PEER_CLOSED;
    flow->session.started_ns = endpoint->now_ns;
    flow->encrypt = endpoint->config.encryption == CW_ENCRYPTION_REQUIRED;
    flow->sender.put_next = CW_PUT_NUMBER_FIRST;
    flow->timers.probe_ns = UINT64_MAX;
    flow->timers.report_ns = UINT64_MAX;
    flow->receiver.focus = UINT64_MAX;
    flow->shaping.shaper = cw_shaper_default(endpoint);
}

int cw_flow_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t stream, uint32_t *index)
{
    struct cw_flow *flow = cw_pool_acquire(&endpoint->flows);
    if (flow == NULL) {
        flow = reclaim(endpoint);
        if (flow == NULL) {
            return CW_ERROR_LIMIT;
        }
        memset(flow, 0, sizeof(*flow));
    }
    uint32_t bucket = bucket_of(endpoint, &address->ip, address->udp_port);
    *index = cw_pool_index(&endpoint->flows, flow);
    endpoint->flow_keys[*index] =
        (struct cw_flow_key){.address = *address, .next = endpoint->flow_buckets[bucket], .stream = (uint16_t)stream};
    endpoint->flow_buckets[bucket] = *index + 1;
    return CW_OK;
}
