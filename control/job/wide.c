#include "control/job/wide.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/dataplane.h"
#include "dataplane/loop/loop.h"
#include "dataplane/status.h"

#define CATCH_UP_NS UINT64_C(1000000) /* turns of a real clock are that late now and then */

enum { WHY_BYTES = 200, QUEUE_BYTES_LEAST = 256 << 10, QUEUE_BYTES_MOST = 64 << 20 };

/* All that is set, in one call of the endpoint's owner. */
struct wide {
    const struct cw_wide_choice *choice;
    const struct cw_clusters *clusters;
    uint32_t rank;
    uint32_t ranks;
    struct cw_paths *paths;
    uint32_t *peers; /* of each rank; UINT32_MAX: no packets lead there */
    uint32_t place;  /* of the own rank among those of its cluster */
    char *error;
    size_t error_bytes;
};

static uint32_t cluster_of(const struct wide *wide, uint32_t rank)
{
    return cw_clusters_of(wide->clusters, rank);
}

static bool is_across(const struct wide *wide, uint32_t other)
{
    return cluster_of(wide, other) != cluster_of(wide, wide->rank);
}

static uint32_t relay_count(const struct wide *wide)
{
    return wide->clusters == NULL ? 0 : cw_clusters_relay_count(wide->clusters, cluster_of(wide, wide->rank));
}

static bool is_relay(const struct wide *wide)
{
    return wide->clusters != NULL && cw_clusters_is_relay(wide->clusters, wide->rank);
}

/* Goes by way of relays. */
static bool is_relayed(const struct wide *wide, uint32_t other)
{
    return is_across(wide, other) && relay_count(wide) > 0 && !is_relay(wide);
}

static bool is_sealed(const struct wide *wide, uint32_t other)
{
    switch (wide->choice->encryption) {
    case CW_WIDE_ENCRYPT_ALL:
        return true;
    case CW_WIDE_ENCRYPT_WIDE:
        return is_across(wide, other) &&
               cw_clusters_is_sealed(wide->clusters, cluster_of(wide, wide->rank), cluster_of(wide, other));
    default:
        return false;
    }
}

/* ---- at the endpoint ---- */

static uint32_t relay_of(const struct wide *wide, uint32_t index)
{
    return cw_clusters_relay(wide->clusters, cluster_of(wide, wide->rank), index);
}

/* What waits at a relay: what is on the way there and back, twice, at its share. */
static uint64_t queue_bytes(const struct wide *wide)
{
    uint64_t most = QUEUE_BYTES_LEAST;
    uint32_t own = cluster_of(wide, wide->rank);
    for (uint32_t to = 0; to < cw_clusters_count(wide->clusters); to++) {
        if (to == own) {
            continue;
        }
        uint64_t rate_bps = cw_clusters_share(wide->clusters, wide->rank, to).rate_bps;
        uint64_t delay_ns = cw_topology_delay_ns(cw_clusters_topology(wide->clusters), own, to);
        double bytes = (double)rate_bps / 8e9 * 4 * (double)delay_ns;
        most = bytes > (double)most ? (uint64_t)(bytes < QUEUE_BYTES_MOST ? bytes : QUEUE_BYTES_MOST) : most;
    }
    return most;
}

static int shaper_set(struct cw_endpoint *endpoint, const struct wide *wide, uint32_t to, uint32_t *shaper)
{
    struct cw_clusters_share share = cw_clusters_share(wide->clusters, wide->rank, to);
    *shaper = wide->choice->pacing == CW_PACING_ON ? share.shaper : CW_SHAPER_NONE; /* none where no rate is known */
    return *shaper == CW_SHAPER_NONE ? CW_OK : cw_shaper_set(endpoint, *shaper, share.rate_bps, CATCH_UP_NS);
}

static int relay_open(struct cw_endpoint *endpoint, const struct wide *wide)
{
    int status = cw_relay_open(endpoint, queue_bytes(wide));
    for (uint32_t other = 0; other < wide->ranks && status == CW_OK; other++) {
        const struct cw_address *address = cw_paths_address(wide->paths, other);
        struct cw_relay_host host = {.ipv4 = address->ipv4, .sends = !is_across(wide, other), .shaper = CW_SHAPER_NONE};
        if (other == wide->rank || address->ipv4 == 0) {
            continue;
        }
        memcpy(host.mac, address->mac, sizeof(host.mac));
        status = host.sends ? CW_OK : shaper_set(endpoint, wide, cluster_of(wide, other), &host.shaper);
        status = status == CW_OK ? cw_relay_host_set(endpoint, &host) : status;
    }
    return status;
}

static int streams_set(struct cw_endpoint *endpoint, const struct wide *wide)
{
    int status = CW_OK;
    for (uint32_t i = 0; i < relay_count(wide) && status == CW_OK; i++) {
        struct cw_stream stream = {.traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE}};
        const struct cw_address *address = cw_paths_address(wide->paths, relay_of(wide, i));
        memcpy(stream.next_hop, address->mac, sizeof(stream.next_hop));
        status = cw_stream_set(endpoint, i + 1, &stream);
    }
    return status;
}

/* How a rank of another cluster is paced: without a rate there is nothing to keep to. */
static enum cw_pacing pacing_of(const struct wide *wide, uint32_t other)
{
    struct cw_clusters_share share = cw_clusters_share(wide->clusters, wide->rank, cluster_of(wide, other));
    return wide->choice->pacing == CW_PACING_ON && share.rate_bps == 0 ? CW_PACING_FOUND : wide->choice->pacing;
}

static int traffic_set(struct cw_endpoint *endpoint, const struct wide *wide, uint32_t other)
{
    struct cw_clusters_share share = cw_clusters_share(wide->clusters, wide->rank, cluster_of(wide, other));
    struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    uint32_t peer = wide->peers[other];
    if (is_relayed(wide, other)) {
        uint32_t relay = relay_of(wide, wide->place % relay_count(wide)); /* each has as many */
        int status = cw_peer_next_hop(endpoint, peer, cw_paths_address(wide->paths, relay)->mac);
        return status == CW_OK ? cw_peer_traffic(endpoint, peer, &traffic) : status;
    }
    int status = CW_OK;
    if (pacing_of(wide, other) != CW_PACING_FOUND) {
        bool on = wide->choice->pacing == CW_PACING_ON;
        traffic.control = CW_TRAFFIC_RATE;
        traffic.rate_bps = on ? share.rate_bps : CW_RATE_MAX_BPS;
        status = shaper_set(endpoint, wide, cluster_of(wide, other), &traffic.shaper);
    }
    return status == CW_OK ? cw_peer_traffic(endpoint, peer, &traffic) : status;
}

static int seal_set(struct cw_endpoint *endpoint, const struct wide *wide, uint32_t other)
{
    int status = cw_peer_encrypt(endpoint, wide->peers[other], true);
    if (status != CW_OK) {
        snprintf(wide->error, wide->error_bytes, "sessions with rank %u cannot be sealed: %s", other,
                 cw_status_text(status));
    }
    return status;
}

static int endpoint_set(struct cw_endpoint *endpoint, void *context)
{
    const struct wide *wide = context;
    int status = CW_OK;
    if (is_relay(wide)) {
        status = relay_open(endpoint, wide);
    } else if (relay_count(wide) > 0) {
        status = streams_set(endpoint, wide);
    }
    for (uint32_t other = 0; other < wide->ranks && status == CW_OK; other++) {
        if (wide->peers[other] == UINT32_MAX) {
            continue;
        }
        status = is_across(wide, other) ? traffic_set(endpoint, wide, other) : CW_OK;
        status = status == CW_OK && is_sealed(wide, other) ? seal_set(endpoint, wide, other) : status;
    }
    return status;
}

/* ---- at the paths ---- */

static int path_describe(const struct wide *wide, uint32_t other)
{
    static const char *const pacing[] = {
        [CW_PACING_ON] = "paced at", [CW_PACING_OFF] = "not paced", [CW_PACING_FOUND] = "at a rate that is found out"};
    char way[WHY_BYTES];
    char rate[64] = "";
    bool sealed = is_sealed(wide, other);
    if (!is_across(wide, other)) {
        return sealed ? cw_paths_describe(wide->paths, other, "other host, sealed") : CW_OK;
    }
    if (is_relayed(wide, other)) {
        snprintf(rate, sizeof(rate), "by way of %u relays", relay_count(wide));
    } else {
        double rate_bps = (double)cw_clusters_share(wide->clusters, wide->rank, cluster_of(wide, other)).rate_bps;
        snprintf(rate, sizeof(rate), "%s", pacing[pacing_of(wide, other)]);
        if (pacing_of(wide, other) == CW_PACING_ON) {
            snprintf(rate, sizeof(rate), "%s %.4g Mb/s", pacing[CW_PACING_ON], rate_bps / 1e6);
        }
    }
    snprintf(way, sizeof(way), "other cluster (%s), %s%s", cw_clusters_name(wide->clusters, other), rate,
             sealed ? ", sealed" : "");
    if (is_relayed(wide, other)) {
        cw_paths_divide(wide->paths, other, relay_count(wide));
    }
    return cw_paths_describe(wide->paths, other, way);
}

static uint32_t *peers_list(uint32_t ranks, struct cw_paths *paths)
{
    uint32_t *peers = calloc(ranks, sizeof(*peers));
    for (uint32_t other = 0; peers != NULL && other < ranks; other++) {
        bool is_wire = cw_paths_medium(paths, other) == CW_MEDIUM_WIRE;
        if (!is_wire || cw_paths_wire_peer(paths, other, &peers[other]) != CW_OK) {
            peers[other] = UINT32_MAX;
        }
    }
    return peers;
}

int cw_wide_set(const struct cw_wide_choice *choice, const struct cw_clusters *clusters, uint32_t rank, uint32_t ranks,
                struct cw_paths *paths, char *error, size_t error_bytes)
{
    struct wide wide = {
        .choice = choice,
        .clusters = clusters,
        .rank = rank,
        .ranks = ranks,
        .paths = paths,
        .error = error,
        .error_bytes = error_bytes,
    };
    if (cw_paths_loop(paths) == NULL || (clusters == NULL && choice->encryption != CW_WIDE_ENCRYPT_ALL)) {
        return CW_OK;
    }
    snprintf(error, error_bytes, "what goes to other clusters cannot be paced");
    wide.peers = peers_list(ranks, paths);
    for (uint32_t other = 0; other < rank; other++) {
        wide.place += !is_across(&wide, other);
    }
    int status = wide.peers == NULL ? CW_ERROR_MEMORY : cw_loop_call(cw_paths_loop(paths), endpoint_set, &wide);
    for (uint32_t other = 0; other < ranks && status == CW_OK; other++) {
        status = wide.peers[other] == UINT32_MAX ? CW_OK : path_describe(&wide, other);
    }
    free(wide.peers);
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

void cw_wide_seal(uint32_t ranks, struct cw_paths *paths)
{
    uint32_t *peers = cw_paths_loop(paths) == NULL ? NULL : peers_list(ranks, paths);
    struct seal_all all = {.ranks = ranks, .peers = peers};
    if (peers != NULL) {
        (void)cw_loop_call(cw_paths_loop(paths), all_seal, &all);
    }
    free(peers);
}
