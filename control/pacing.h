/* pacing: how a process sends to ranks of other clusters.
 *
 * Within a cluster queues are short, and all aim at the same round trip; across the wide area that tells little. So each rank keeps to its share of the links on the way (clusters.h), by a shaper for
 * each bottleneck, and what all send together fits: no queue grows, nothing is lost, nobody has to find out.
 *
 * CAUSEWAY_PACING
 *   on      (default) so: CW_TRAFFIC_RATE, a shaper that makes up for a millisecond of late turns
 *   off     what the port takes: CW_TRAFFIC_RATE at the greatest rate, no shaper; to compare with
 *   found   CW_TRAFFIC_BANDWIDTH: as if nothing were known of the links
 * In a job rank 0's word counts for all.
 *
 * Thread: that of the paths.
 */
#ifndef CW_PACING_H
#define CW_PACING_H

#include "control/clusters.h"
#include "dataplane/path/path.h"

enum cw_pacing { CW_PACING_ON = 0, CW_PACING_OFF = 1, CW_PACING_FOUND = 2 };

/* "on", "off", "found"; "" and NULL are the default. False: none of them; *pacing is the default then. */
bool cw_pacing_parse(const char *word, enum cw_pacing *pacing);
/* The word for it. */
const char *cw_pacing_name(enum cw_pacing pacing);

/* Tells the paths of rank `rank` how to send to each rank of another cluster that packets lead to. `clusters` NULL: nothing to do. CW_OK, or as cw_paths_shaper and
 * cw_paths_traffic. */
int cw_pacing_set(enum cw_pacing pacing, const struct cw_clusters *clusters, uint32_t rank, uint32_t ranks,
                  struct cw_paths *paths);

#endif
