/* WAN policy: how a process sends to ranks of other clusters: at which rate, sealed or not.
 *
 * Within a cluster queues are short, and all flows have the same target round trip; across the wide area the round trip
 * is a poor signal. So each rank keeps to its share of the links on the route (topology/clusters.h), by a shaper for
 * each bottleneck. The sum of all shares fits: no queue grows, no packet is lost, and no rank has to probe.
 *
 * Thread: that of the paths. */
#pragma once

#include "control/job/wan_choice.h"
#include "control/topology/clusters.h"
#include "dataplane/path/path.h"

/* Sets in the paths and the endpoint of rank `rank` how to send to each rank of another cluster that packets lead to;
 * `clusters` NULL: there is one. CW_OK; CW_ERROR_MEMORY, CW_ERROR_UNSUPPORTED (nothing here can seal), CW_ERROR_BUSY
 * (in session with a rank, unsealed), others as cw_peer_traffic; a line in `error`. */
int cw_wan_set(const struct cw_wan_choice *choice, const struct cw_clusters *clusters, uint32_t rank, uint32_t ranks,
               struct cw_paths *paths, char *error, size_t error_bytes);

/* Has all ranks that packets lead to sent to in sealed sessions, as far as these can be had: before it is known what
 * will be wanted. */
void cw_wan_seal(uint32_t ranks, struct cw_paths *paths);
