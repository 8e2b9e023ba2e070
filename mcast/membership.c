/* The addresses that the port admits, and reports about them to switches. */
#include "mcast/igmp.h"
#include "mcast/mld.h"
#include "mcast/state.h"

/* Reports to the switches, unless the port does; a report that is not sent is repeated later. */
static void membership_send(struct cw_mcast *mcast, const struct membership *membership, bool has_left)
{
    uint32_t ipv4 = membership->ipv4;
    struct cw_address own = cw_endpoint_address(mcast->endpoint);
    uint8_t frame[CW_MCAST_MLD_BYTES]; /* the longer one */
    uint32_t bytes = CW_MCAST_IGMP_BYTES;
    if (cw_extension_reports(mcast->endpoint, membership->carrier)) {
        return;
    }
    if (cw_ip_is_v4(&own.ip)) {
        cw_mcast_igmp_write(frame, own.mac, cw_ip_to_v4(&own.ip), ipv4, has_left);
    } else {
        struct cw_ip group = cw_wire_group(ipv4, true);
        cw_mcast_mld_write(frame, own.mac, &group, has_left);
        bytes = CW_MCAST_MLD_BYTES;
    }
    (void)cw_extension_frame(mcast->endpoint, frame, bytes);
}

int mcast_membership_begin(struct cw_mcast *mcast, struct membership *membership, uint32_t ipv4,
                           enum cw_extension_carrier carrier)
{
    int status = cw_extension_join(mcast->endpoint, ipv4, carrier);
    if (status != CW_OK) {
        return status;
    }
    *membership = (struct membership){
        .ipv4 = ipv4,
        .carrier = carrier,
        .interval_ns = CW_MCAST_REPORT_FIRST_NS,
        .timer = {.kind = TIMER_MEMBERSHIP, .mcast = mcast, .membership = membership},
    };
    mcast->now_ns = later(mcast->now_ns, cw_extension_now(mcast->endpoint));
    mcast_membership_due(mcast, membership);
    cw_extension_flush(mcast->endpoint);
    return CW_OK;
}

bool cw_mcast_is_joined(const struct cw_mcast_group *group)
{
    const struct membership *membership = &group->membership;
    return cw_extension_is_joined(group->mcast->endpoint, membership->ipv4, membership->carrier);
}

void mcast_membership_due(struct cw_mcast *mcast, struct membership *membership)
{
    membership_send(mcast, membership, false);
    mcast_timer_by(&membership->timer, mcast->now_ns + membership->interval_ns);
    membership->interval_ns = earlier(2 * membership->interval_ns, CW_MCAST_REPORT_MAX_NS);
}

/* Whether another group has this address. */
static bool is_shared(const struct cw_mcast *mcast, const struct membership *own)
{
    for (uint32_t bucket = 0; bucket < GROUP_BUCKETS; bucket++) {
        for (const struct cw_mcast_group *at = mcast->buckets[bucket]; at != NULL; at = at->next) {
            const struct membership *other = &at->membership;
            if (other->ipv4 == own->ipv4 && other->carrier == own->carrier && other != own) {
                return true;
            }
        }
    }
    return false;
}

void mcast_membership_end(struct cw_mcast *mcast, struct membership *membership)
{
    mcast_timer_stop(&membership->timer);
    if (cw_extension_leave(mcast->endpoint, membership->ipv4, membership->carrier) == CW_OK &&
        !is_shared(mcast, membership)) {
        membership_send(mcast, membership, true);
        cw_extension_flush(mcast->endpoint);
    }
}
