#include "control/job/wan_policy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/dataplane.h"
#include "dataplane/loop/loop.h"
#include "dataplane/status.h"

#define CATCH_UP_NS UINT64_C(1000000) /* turns of a real clock are that late now and then */

enum { WHY_BYTES = 200 };

/* All that is set, in one call of the endpoint's owner. */
struct policy {
    const struct cw_wan_choice *choice;
    const struct cw_clusters *clusters;
    uint32_t rank;
    uint32_t ranks;
    struct cw_paths *paths;
    uint32_t *peers; /* of each rank; UINT32_MAX: no packets lead there */
    char *error;
    size_t error_bytes;
};

static uint32_t cluster_of(const struct policy *policy, uint32_t rank)
{
    return cw_clusters_of(policy->clusters, rank);
}

static bool is_across(const struct policy *policy, uint32_t other)
{
    return cluster_of(policy, other) != cluster_of(policy, policy->rank);
}

static bool is_sealed(const struct policy *policy, uint32_t other)
{
    switch (policy->choice->encryption) {
    case CW_WAN_ENCRYPT_ALL:
        return true;
    case CW_WAN_ENCRYPT_WIDE:
        return is_across(policy, other) &&
               cw_clusters_is_sealed(policy->clusters, cluster_of(policy, policy->rank), cluster_of(policy, other));
    default:
        return false;
    }
}

/* ---- at the endpoint ---- */

static int shaper_set(struct cw_endpoint *endpoint, const struct policy *policy, uint32_t to, uint32_t *shaper)
{
    struct cw_clusters_share share = cw_clusters_share(policy->clusters, policy->rank, to);
    *shaper = policy->choice->pacing == CW_PACING_ON ? share.shaper : CW_SHAPER_NONE; /* none where no rate is known */
    return *shaper == CW_SHAPER_NONE ? CW_OK : cw_shaper_set(endpoint, *shaper, share.rate_bps, CATCH_UP_NS);
}

static int traffic_set(struct cw_endpoint *endpoint, const struct policy *policy, uint32_t other)
{
    uint64_t rate_bps = cw_clusters_share(policy->clusters, policy->rank, cluster_of(policy, other)).rate_bps;
    struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    bool on = policy->choice->pacing == CW_PACING_ON;
    int status = CW_OK;
    if (!on || rate_bps > 0) {
        traffic.control = CW_TRAFFIC_RATE;
        traffic.rate_bps = on ? rate_bps : CW_RATE_MAX_BPS;
        status = shaper_set(endpoint, policy, cluster_of(policy, other), &traffic.shaper);
    }
    return status == CW_OK ? cw_peer_traffic(endpoint, policy->peers[other], &traffic) : status;
}

static int seal_set(struct cw_endpoint *endpoint, const struct policy *policy, uint32_t other)
{
    int status = cw_peer_encrypt(endpoint, policy->peers[other], true);
    if (status != CW_OK) {
        snprintf(policy->error, policy->error_bytes, "sessions with rank %u cannot be sealed: %s", other,
                 cw_status_text(status));
    }
    return status;
}

static int endpoint_set(struct cw_endpoint *endpoint, void *context)
{
    const struct policy *policy = context;
    int status = CW_OK;
    for (uint32_t other = 0; other < policy->ranks && status == CW_OK; other++) {
        if (policy->peers[other] == UINT32_MAX) {
            continue;
        }
        status = is_across(policy, other) ? traffic_set(endpoint, policy, other) : CW_OK;
        status = status == CW_OK && is_sealed(policy, other) ? seal_set(endpoint, policy, other) : status;
    }
    return status;
}

/* ---- at the paths ---- */

static int path_describe(const struct policy *policy, uint32_t other)
{
    char way[WHY_BYTES];
    char rate[64] = "not paced";
    bool sealed = is_sealed(policy, other);
    if (!is_across(policy, other)) {
        return sealed ? cw_paths_describe(policy->paths, other, "other host, sealed") : CW_OK;
    }
    uint64_t rate_bps = cw_clusters_share(policy->clusters, policy->rank, cluster_of(policy, other)).rate_bps;
    if (policy->choice->pacing == CW_PACING_ON && rate_bps > 0) {
        snprintf(rate, sizeof(rate), "paced at %.4g Mb/s", (double)rate_bps / 1e6);
    } else if (policy->choice->pacing == CW_PACING_ON) {
        snprintf(rate, sizeof(rate), "at a rate that is found out");
    }
    snprintf(way, sizeof(way), "other cluster (%s), %s%s", cw_clusters_name(policy->clusters, other), rate,
             sealed ? ", sealed" : "");
    return cw_paths_describe(policy->paths, other, way);
}

static uint32_t *peers_list(uint32_t ranks, struct cw_paths *paths)
{
    uint32_t *peers = calloc(ranks, sizeof(*peers));
    for (uint32_t other = 0; peers != NULL && other < ranks; other++) {
        bool is_wire = cw_paths_transport(paths, other) == CW_PATH_TRANSPORT_PACKETS;
        if (!is_wire || cw_paths_wire_peer(paths, other, &peers[other]) != CW_OK) {
            peers[other] = UINT32_MAX;
        }
    }
    return peers;
}

int cw_wan_set(const struct cw_wan_choice *choice, const struct cw_clusters *clusters, uint32_t rank, uint32_t ranks,
               struct cw_paths *paths, char *error, size_t error_bytes)
{
    struct policy policy = {
        .choice = choice,
        .clusters = clusters,
        .rank = rank,
        .ranks = ranks,
        .paths = paths,
        .error = error,
        .error_bytes = error_bytes,
    };
    if (cw_paths_loop(paths) == NULL || (clusters == NULL && choice->encryption != CW_WAN_ENCRYPT_ALL)) {
        return CW_OK;
    }
    snprintf(error, error_bytes, "traffic to other clusters cannot be paced");
    policy.peers = peers_list(ranks, paths);
    int status = policy.peers == NULL ? CW_ERROR_MEMORY : cw_loop_call(cw_paths_loop(paths), endpoint_set, &policy);
    for (uint32_t other = 0; other < ranks && status == CW_OK; other++) {
        status = policy.peers[other] == UINT32_MAX ? CW_OK : path_describe(&policy, other);
    }
    free(policy.peers);
    return status;
}

/* ---- before anything is known ---- */

struct seal_all {
    uint32_t ranks;
    const uint32_t *peers;
};

static int all_seal(struct cw_endpoint *endpoint, void *context)
{
    const struct seal_all *all = context;
    for (uint32_t rank = 0; rank < all->ranks; rank++) {
        if (all->peers[rank] != UINT32_MAX) {
            (void)cw_peer_encrypt(endpoint, all->peers[rank], true);
        }
    }
    return CW_OK;
}

void cw_wan_seal(uint32_t ranks, struct cw_paths *paths)
{
    uint32_t *peers = cw_paths_loop(paths) == NULL ? NULL : peers_list(ranks, paths);
    struct seal_all all = {.ranks = ranks, .peers = peers};
    if (peers != NULL) {
        (void)cw_loop_call(cw_paths_loop(paths), all_seal, &all);
    }
    free(peers);
}
