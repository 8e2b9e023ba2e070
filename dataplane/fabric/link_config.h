/* Link configuration: one direction of a simulated cable, with the queue in front of it.
 *
 * Order of calls: cw_link_config_valid at any time; cw_link_configure on a link of a simulator (simulator.h), by the
 * simulator's owner. */
#ifndef CW_LINK_CONFIG_H
#define CW_LINK_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CW_LINK_DELAY_MAX_NS 3600000000000ull /* of both delays: an hour */

struct cw_link;

struct cw_link_config {
    uint64_t rate_bps;          /* 0: frames take no time and nothing queues; at most CW_RATE_MAX_BPS (limits.h) */
    uint64_t delay_ns;          /* from the last bit's departure to the arrival */
    uint64_t queue_limit_bytes; /* a frame that would exceed it is dropped; 0: no limit */
    uint32_t overhead_bytes;    /* added to each frame's length on the line; CW_ETHERNET_OVERHEAD_BYTES for Ethernet */
    double loss;                /* probability from 0 to 1 that a frame is lost, drawn for each frame; likewise below */
    double duplicate;           /* ... that it arrives a second time */
    double corrupt;             /* ... that it arrives with a few inverted bits, which no check sequence has noticed */
    double reorder;             /* ... that it arrives later, by up to reorder_delay_max_ns */
    uint64_t reorder_delay_max_ns;
    uint32_t frame_bytes_max; /* a longer frame is dropped silently, as in a narrower tunnel; 0: no limit */
};

/* True if every field is in its range. Otherwise *reason is a short text about the wrong one; `reason` may be NULL. */
bool cw_link_config_valid(const struct cw_link_config *config, const char **reason);

/* Changes the configuration, which must be valid. Frames that are on their way keep their arrival times. */
void cw_link_configure(struct cw_link *link, const struct cw_link_config *config);

#ifdef __cplusplus
}
#endif
#endif
