/* Clusters: the connected components of what is close, and how far they are from one another. */
#include <assert.h>

#include "control/detect/private.h"

static uint64_t trip_of(const struct cw_detect *detect, uint32_t host, uint32_t leader)
{
    return detect->trips_ns[(size_t)host * CW_DETECT_LEADERS_MAX + leader];
}

/* The first host of a component so far. */
static uint32_t first_of(const struct cw_detect *detect, uint32_t host)
{
    while (detect->cluster_of[host] != host) {
        host = detect->cluster_of[host];
    }
    return host;
}

static void join(struct cw_detect *detect, uint32_t host, uint32_t other)
{
    uint32_t a = first_of(detect, host), b = first_of(detect, other);
    uint32_t first = a < b ? a : b;
    detect->cluster_of[a] = detect->cluster_of[b] = first;
    detect->cluster_of[host] = detect->cluster_of[other] = first;
}

static void components_find(struct cw_detect *detect)
{
    for (uint32_t host = 0; host < detect->hosts; host++) {
        detect->cluster_of[host] = host;
    }
    for (uint32_t host = 0; host < detect->hosts; host++) {
        if (detect->limit_ns == UINT64_MAX) {
            join(detect, 0, host);
        }
        for (uint32_t leader = 0; leader < detect->leader_count; leader++) {
            uint64_t trip_ns = trip_of(detect, host, leader);
            if (trip_ns > 0 && trip_ns < detect->limit_ns) {
                join(detect, host, detect->leaders[leader]);
            }
        }
    }
}

/* Instead of their first hosts clusters get numbers. The first host comes first: what it points to has its number
 * already. */
static void number(struct cw_detect *detect)
{
    for (uint32_t host = 0; host < detect->hosts; host++) {
        detect->cluster_of[host] = first_of(detect, host);
    }
    for (uint32_t host = 0; host < detect->hosts; host++) {
        uint32_t first = detect->cluster_of[host];
        detect->cluster_of[host] = first == host ? detect->cluster_count++ : detect->cluster_of[first];
    }
}

static uint64_t *between_at(struct cw_detect *detect, uint32_t cluster, uint32_t other)
{
    return &detect->between_ns[cluster * CW_DETECT_CLUSTERS_MAX + other];
}

/* Noise may make a way by a third cluster shorter than the straight one, which then is no longer than that: so the
 * straight one is taken (Floyd and Warshall). */
static void shorten(struct cw_detect *detect)
{
    uint32_t count = detect->cluster_count;
    for (uint32_t i = 0; i < count * count * count; i++) {
        uint32_t via = i / (count * count), from = i / count % count, to = i % count;
        uint64_t first_ns = *between_at(detect, from, via), second_ns = *between_at(detect, via, to);
        uint64_t *straight_ns = between_at(detect, from, to);
        if (first_ns < UINT64_MAX && second_ns < UINT64_MAX && first_ns + second_ns < *straight_ns) {
            *straight_ns = first_ns + second_ns;
        }
    }
}

static void distances_find(struct cw_detect *detect)
{
    for (uint32_t i = 0; i < CW_DETECT_CLUSTERS_MAX * CW_DETECT_CLUSTERS_MAX; i++) {
        detect->between_ns[i] = i % (CW_DETECT_CLUSTERS_MAX + 1) == 0 ? 0 : UINT64_MAX;
    }
    for (uint32_t host = 0; host < detect->hosts; host++) {
        for (uint32_t leader = 0; leader < detect->leader_count; leader++) {
            uint64_t trip_ns = trip_of(detect, host, leader);
            uint32_t from = detect->cluster_of[host], to = detect->cluster_of[detect->leaders[leader]];
            if (trip_ns > 0 && trip_ns < detect->limit_ns) {
                detect->within_ns = trip_ns > detect->within_ns ? trip_ns : detect->within_ns;
            } else if (from != to && detect->cluster_count <= CW_DETECT_CLUSTERS_MAX &&
                       trip_ns < *between_at(detect, from, to)) {
                *between_at(detect, from, to) = *between_at(detect, to, from) = trip_ns;
            }
        }
    }
    if (detect->cluster_count <= CW_DETECT_CLUSTERS_MAX) {
        shorten(detect);
    }
}

void detect_clusters_make(struct cw_detect *detect)
{
    components_find(detect);
    number(detect);
    distances_find(detect);
}

uint32_t cw_detect_count(const struct cw_detect *detect)
{
    assert(detect->is_done);
    return detect->cluster_count;
}

uint32_t cw_detect_cluster(const struct cw_detect *detect, uint32_t host)
{
    assert(detect->is_done && host < detect->hosts);
    return detect->cluster_of[host];
}

uint64_t cw_detect_between_ns(const struct cw_detect *detect, uint32_t cluster, uint32_t other)
{
    assert(detect->is_done && cluster < detect->cluster_count && other < detect->cluster_count);
    return detect->between_ns[cluster * CW_DETECT_CLUSTERS_MAX + other];
}
