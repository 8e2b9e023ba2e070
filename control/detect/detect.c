#include "control/detect/detect.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/detect/private.h"
#include "dataplane/status.h"

/* ---- what was measured ---- */

int cw_detect_create(uint32_t hosts, struct cw_detect **detect)
{
    assert(hosts > 0);
    struct cw_detect *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    made->hosts = hosts;
    made->limit_ns = UINT64_MAX;
    made->cluster_of = calloc(hosts, sizeof(*made->cluster_of));
    made->trips_ns = calloc((size_t)hosts * CW_DETECT_LEADERS_MAX, sizeof(*made->trips_ns));
    made->sorted_ns = calloc((size_t)hosts * CW_DETECT_LEADERS_MAX + 1, sizeof(*made->sorted_ns));
    if (made->cluster_of == NULL || made->trips_ns == NULL || made->sorted_ns == NULL) {
        cw_detect_destroy(made);
        return CW_ERROR_MEMORY;
    }
    made->leader_count = hosts > 1;
    made->leaders[0] = 0;
    made->awaited = hosts - 1;
    *detect = made;
    return CW_OK;
}

void cw_detect_destroy(struct cw_detect *detect)
{
    if (detect != NULL) {
        free(detect->cluster_of);
        free(detect->trips_ns);
        free(detect->sorted_ns);
        free(detect);
    }
}

static uint64_t *trip_at(const struct cw_detect *detect, uint32_t host, uint32_t leader)
{
    return &detect->trips_ns[(size_t)host * CW_DETECT_LEADERS_MAX + leader];
}

void cw_detect_take(struct cw_detect *detect, uint32_t host, uint64_t round_trip_ns)
{
    uint32_t present = detect->leader_count - 1;
    assert(detect->awaited > 0 && host < detect->hosts && host != detect->leaders[present] && round_trip_ns > 0);
    assert(*trip_at(detect, host, present) == 0);
    *trip_at(detect, host, present) = round_trip_ns;
    detect->awaited--;
    for (uint32_t other = 0; other < present; other++) { /* measured before, the other way round */
        if (detect->leaders[other] == host) {
            uint64_t *before_ns = trip_at(detect, detect->leaders[present], other);
            *before_ns = *before_ns < round_trip_ns ? *before_ns : round_trip_ns;
            *trip_at(detect, host, present) = *before_ns;
        }
    }
}

/* ---- the limit ---- */

static int trip_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static bool is_gap(uint64_t shorter_ns, uint64_t longer_ns)
{
    return longer_ns >= CW_DETECT_FAR_NS && longer_ns / CW_DETECT_FACTOR >= shorter_ns;
}

/* From which round trip on hosts are far from one another; UINT64_MAX: there is no clear gap. */
static uint64_t limit_find(struct cw_detect *detect)
{
    size_t count = 0;
    for (uint32_t host = 0; host < detect->hosts; host++) {
        for (uint32_t leader = 0; leader < detect->leader_count; leader++) {
            uint64_t trip_ns = *trip_at(detect, host, leader);
            detect->sorted_ns[count] = trip_ns;
            count += trip_ns > 0;
        }
    }
    qsort(detect->sorted_ns, count, sizeof(*detect->sorted_ns), trip_compare);
    if (count > 0 && is_gap(CW_DETECT_LAN_NS, detect->sorted_ns[0])) {
        return detect->sorted_ns[0];
    }
    for (size_t i = 1; i < count; i++) {
        if (is_gap(detect->sorted_ns[i - 1], detect->sorted_ns[i])) {
            return detect->sorted_ns[i];
        }
    }
    return UINT64_MAX;
}

/* ---- leaders ---- */

/* To the nearest leader; 0: it is one itself. */
static uint64_t nearest_ns(const struct cw_detect *detect, uint32_t host)
{
    uint64_t nearest = UINT64_MAX;
    for (uint32_t leader = 0; leader < detect->leader_count; leader++) {
        uint64_t trip_ns = detect->leaders[leader] == host ? 0 : *trip_at(detect, host, leader);
        nearest = trip_ns < nearest ? trip_ns : nearest;
    }
    return nearest;
}

/* The host that is farthest from all leaders, if it is far. */
static uint32_t farthest_find(struct cw_detect *detect)
{
    uint64_t farthest_ns = 0;
    uint32_t farthest = CW_DETECT_NONE;
    for (uint32_t host = 0; host < detect->hosts; host++) {
        uint64_t trip_ns = nearest_ns(detect, host);
        if (trip_ns > farthest_ns) {
            farthest_ns = trip_ns;
            farthest = host;
        }
    }
    bool goes_on = detect->leader_count < CW_DETECT_TRIALS || limit_find(detect) < UINT64_MAX;
    return goes_on && farthest_ns >= CW_DETECT_FAR_NS ? farthest : CW_DETECT_NONE;
}

uint32_t cw_detect_leader(struct cw_detect *detect)
{
    if (detect->is_done || detect->awaited > 0) {
        return detect->is_done ? CW_DETECT_NONE : detect->leaders[detect->leader_count - 1];
    }
    uint32_t next = detect->leader_count == 0 || detect->leader_count == CW_DETECT_LEADERS_MAX ? CW_DETECT_NONE
                                                                                               : farthest_find(detect);
    if (next != CW_DETECT_NONE) {
        detect->leaders[detect->leader_count++] = next;
        detect->awaited = detect->hosts - 1;
        return next;
    }
    detect->limit_ns = limit_find(detect);
    detect_clusters_make(detect);
    detect->is_done = true;
    return CW_DETECT_NONE;
}
