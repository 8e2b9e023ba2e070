#include "control/pacing.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/dataplane.h"
#include "dataplane/status.h"

#define CATCH_UP_NS UINT64_C(1000000) /* turns of a real clock are that late now and then */

enum { WHY_BYTES = 200 };

static const char *const names[] = {[CW_PACING_ON] = "on", [CW_PACING_OFF] = "off", [CW_PACING_FOUND] = "found"};

bool cw_pacing_parse(const char *word, enum cw_pacing *pacing)
{
    *pacing = CW_PACING_ON;
    for (int i = CW_PACING_ON; word != NULL && i <= CW_PACING_FOUND; i++) {
        if (strcmp(word, names[i]) == 0) {
            *pacing = (enum cw_pacing)i;
            return true;
        }
    }
    return word == NULL || word[0] == '\0';
}

const char *cw_pacing_name(enum cw_pacing pacing)
{
    return names[pacing];
}

static int traffic_set(enum cw_pacing pacing, const struct cw_clusters *clusters, uint32_t rank, uint32_t other,
                       struct cw_paths *paths)
{
    struct cw_clusters_share share = cw_clusters_share(clusters, rank, cw_clusters_of(clusters, other));
    const char *name = cw_clusters_name(clusters, other);
    struct cw_traffic traffic = {.control = CW_TRAFFIC_RATE, .shaper = CW_SHAPER_NONE};
    char why[WHY_BYTES];
    int status = CW_OK;
    switch (pacing) {
    case CW_PACING_ON:
        traffic.shaper = share.shaper;
        traffic.rate_bps = share.rate_bps;
        snprintf(why, sizeof(why), "other cluster (%s), paced at %.4g Mb/s", name, (double)share.rate_bps / 1e6);
        status = cw_paths_shaper(paths, share.shaper, share.rate_bps, CATCH_UP_NS);
        break;
    case CW_PACING_OFF:
        traffic.rate_bps = CW_LINK_RATE_MAX_BPS;
        snprintf(why, sizeof(why), "other cluster (%s), not paced", name);
        break;
    case CW_PACING_FOUND:
        traffic.control = CW_TRAFFIC_BANDWIDTH;
        snprintf(why, sizeof(why), "other cluster (%s), at a rate that is found out", name);
        break;
    }
    return status == CW_OK ? cw_paths_traffic(paths, other, &traffic, why) : status;
}

int cw_pacing_set(enum cw_pacing pacing, const struct cw_clusters *clusters, uint32_t rank, uint32_t ranks,
                  struct cw_paths *paths)
{
    int status = CW_OK;
    for (uint32_t other = 0; clusters != NULL && other < ranks && status == CW_OK; other++) {
        if (cw_clusters_of(clusters, other) != cw_clusters_of(clusters, rank) &&
            cw_paths_medium(paths, other) == CW_MEDIUM_WIRE) {
            status = traffic_set(pacing, clusters, rank, other, paths);
        }
    }
    return status;
}
