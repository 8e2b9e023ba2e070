/* Does the network flood multicast? A packet goes to an address that all ports of the job let in, but of which the switches have been told by one of them only, the keeper: a switch that snoops brings it to nobody else. */
#include <string.h>

#include "mcast/state.h"

enum { CANARY_GROUP = 0, CANARY_AUTHOR = 0 }; /* no group has this id */

int mcast_canary_begin(struct cw_mcast *mcast)
{
    const struct cw_mcast_config *config = &mcast->config;
    if (config->canary_ipv4 == 0) {
        return CW_OK;
    }
    cw_guest_key(mcast->endpoint, CANARY_GROUP, CANARY_AUTHOR, &mcast->canary_key);
    return config->keeps_canary ? mcast_membership_begin(mcast, &mcast->canary, config->canary_ipv4)
                                : cw_guest_join(mcast->endpoint, config->canary_ipv4);
}

void mcast_canary_end(struct cw_mcast *mcast)
{
    const struct cw_mcast_config *config = &mcast->config;
    if (config->keeps_canary && config->canary_ipv4 != 0) {
        mcast_membership_end(mcast, &mcast->canary);
    } else if (config->canary_ipv4 != 0) {
        (void)cw_guest_leave(mcast->endpoint, config->canary_ipv4);
    }
}

void cw_mcast_canary(struct cw_mcast *mcast)
{
    struct cw_mcast_prefix prefix = {.author = CANARY_AUTHOR};
    struct cw_guest_header header = {.type = CW_MCAST_CANARY, .flow = CANARY_GROUP};
    struct cw_wire_network network;
    uint8_t *at = mcast->config.canary_ipv4 == 0 ? NULL : cw_guest_stage(mcast->endpoint);
    if (at == NULL) {
        return;
    }
    memcpy(at, &prefix, sizeof(prefix));
    cw_guest_group(mcast->endpoint, mcast->config.canary_ipv4, &network);
    cw_guest_finish(mcast->endpoint, &network, &header, sizeof(prefix), &mcast->canary_key);
    cw_guest_flush(mcast->endpoint);
}

void mcast_canary_receive(struct cw_mcast *mcast, const struct cw_wire_header *header)
{
    if (mcast->config.canary_ipv4 == 0 || !cw_guest_is_to_group(header) ||
        cw_wire_tag(header, 0, &mcast->canary_key) != header->tag) {
        mcast->counters.drop_tag++;
        return;
    }
    mcast->counters.canaries += !mcast->config.keeps_canary;
}
