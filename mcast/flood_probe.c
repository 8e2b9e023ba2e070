/* Does the network flood multicast? A probe goes to an address that all ports of the job admit, but that only one of
 * them, the keeper, has reported to the switches: a switch that snoops delivers it to no other port. A flood probe
 * belongs to a group, whose id is unique among jobs and groups, and counts once: a retransmission proves nothing.
 */
#include <string.h>

#include "mcast/state.h"

int mcast_flood_begin(struct cw_mcast *mcast)
{
    const struct cw_mcast_config *config = &mcast->config;
    if (config->flood_ipv4 == 0) {
        return CW_OK;
    }
    return config->keeps_flood_address
               ? mcast_membership_begin(mcast, &mcast->flood, config->flood_ipv4, CW_CARRIER_PORT)
               : cw_extension_join(mcast->endpoint, config->flood_ipv4, CW_CARRIER_PORT);
}

void mcast_flood_end(struct cw_mcast *mcast)
{
    const struct cw_mcast_config *config = &mcast->config;
    if (config->keeps_flood_address && config->flood_ipv4 != 0) {
        mcast_membership_end(mcast, &mcast->flood);
    } else if (config->flood_ipv4 != 0) {
        (void)cw_extension_leave(mcast->endpoint, config->flood_ipv4, CW_CARRIER_PORT);
    }
}

void cw_mcast_flood_probe(struct cw_mcast_group *group)
{
    struct cw_mcast *mcast = group->mcast;
    struct cw_mcast_prefix prefix = {
        .group_high = (uint32_t)(group->id >> 32),
        .author = (uint16_t)group->self,
        .sender = (uint16_t)group->self,
        .epoch = group->epoch,
    };
    struct cw_extension_header header = {.type = CW_MCAST_FLOOD_PROBE, .flow = (uint32_t)group->id};
    struct cw_wire_receiver receiver;
    bool is_asked = mcast->config.flood_ipv4 != 0 && group->membership.carrier == CW_CARRIER_PORT;
    uint8_t *at = is_asked ? cw_extension_stage(mcast->endpoint) : NULL;
    if (at == NULL) {
        return;
    }
    header.checksum = cw_wire_checksum_copy(0, at, &prefix, sizeof(prefix));
    header.number = mcast_control_number(group);
    cw_extension_group(mcast->endpoint, mcast->config.flood_ipv4, CW_CARRIER_PORT, &receiver);
    cw_extension_finish(mcast->endpoint, &receiver, &header, sizeof(prefix), mcast_key(group, group->self));
    cw_extension_flush(mcast->endpoint);
}

void mcast_flood_receive(struct cw_mcast *mcast, const struct cw_wire_header *header, bool is_new)
{
    if (mcast->config.flood_ipv4 == 0 || !cw_extension_is_to_group(mcast->endpoint, header) || !is_new) {
        mcast->counters.drop_malformed++;
        return;
    }
    mcast->counters.flood_probes += !mcast->config.keeps_flood_address;
}
