/* Tables of pLogP parameters: reading them between their points, and telling what cannot be one. */
#include "collectives/price/network.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "dataplane/status.h"

/* ---- Values between points ---- */

/* Where a size lies in a table: `share` of the way from one point to the next (beyond the last: above 1). */
struct position {
    const struct cw_plogp_point *low;
    const struct cw_plogp_point *high;
    double share;
};

static struct position position_of(const struct cw_plogp *plogp, uint64_t bytes)
{
    const struct cw_plogp_point *points = plogp->points;
    assert(plogp->count >= 1 && plogp->count <= CW_PLOGP_POINTS_MAX);
    if (plogp->count == 1 || bytes <= points[0].bytes) {
        return (struct position){&points[0], &points[0], 0.0};
    }
    uint32_t low = 0;
    uint32_t high = plogp->count - 1;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (points[middle].bytes <= bytes) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double share = (double)(bytes - points[low].bytes) / (double)(points[high].bytes - points[low].bytes);
    return (struct position){&points[low], &points[high], share};
}

static double between(double low, double high, double share)
{
    return low + (high - low) * share;
}

static double gap_at(struct position position)
{
    return between(position.low->gap_ns, position.high->gap_ns, position.share);
}

double cw_plogp_gap(const struct cw_plogp *plogp, uint64_t bytes)
{
    return gap_at(position_of(plogp, bytes));
}

/* Beyond the last point the lines of os and or may cross that of g, which they never exceed. */
double cw_plogp_send(const struct cw_plogp *plogp, uint64_t bytes)
{
    struct position position = position_of(plogp, bytes);
    return fmin(between(position.low->send_ns, position.high->send_ns, position.share), gap_at(position));
}

double cw_plogp_receive(const struct cw_plogp *plogp, uint64_t bytes)
{
    struct position position = position_of(plogp, bytes);
    return fmin(between(position.low->receive_ns, position.high->receive_ns, position.share), gap_at(position));
}

struct cw_plogp cw_plogp_linear(double latency_ns, double overhead_ns, double bytes_per_ns)
{
    assert(bytes_per_ns > 0);
    const uint64_t far = 1ull << 30;
    return (struct cw_plogp){
        .latency_ns = latency_ns,
        .count = 2,
        .points = {{0, overhead_ns, overhead_ns, overhead_ns},
                   {far, overhead_ns + (double)far / bytes_per_ns, overhead_ns, overhead_ns}},
    };
}

/* ---- Validation ---- */

/* Eleven days: sums of such times stay far below infinity. */
#define TIME_MAX_NS 1e15

static int reject(char *error, size_t error_bytes, const char *what, double value, const char *allowed)
{
    snprintf(error, error_bytes, "%s is %g; %s", what, value, allowed);
    return CW_ERROR_ARGUMENT;
}

static int reject_point(char *error, size_t error_bytes, const char *path, uint32_t point, const char *reason)
{
    snprintf(error, error_bytes, "%s, point %u: %s", path, point, reason);
    return CW_ERROR_ARGUMENT;
}

static bool is_time(double value)
{
    return value >= 0 && value <= TIME_MAX_NS; /* false for NaN */
}

static int point_validate(const struct cw_plogp *plogp, uint32_t i, const char *path, char *error, size_t error_bytes)
{
    const struct cw_plogp_point *point = &plogp->points[i];
    if (!is_time(point->gap_ns) || !is_time(point->send_ns) || !is_time(point->receive_ns)) {
        return reject_point(error, error_bytes, path, i, "gap and overheads must be finite and not negative");
    }
    if (point->send_ns > point->gap_ns || point->receive_ns > point->gap_ns) {
        return reject_point(error, error_bytes, path, i, "os and or cannot be longer than the gap");
    }
    if (i == 0) {
        return CW_OK;
    }
    if (point->bytes <= point[-1].bytes) {
        return reject_point(error, error_bytes, path, i, "sizes must rise from point to point");
    }
    if (point->gap_ns < point[-1].gap_ns || point->send_ns < point[-1].send_ns ||
        point->receive_ns < point[-1].receive_ns) {
        return reject_point(error, error_bytes, path, i, "gap and overheads cannot fall with the size");
    }
    return CW_OK;
}

static int plogp_validate(const struct cw_plogp *plogp, const char *path, char *error, size_t error_bytes)
{
    char what[48];
    if (!is_time(plogp->latency_ns)) {
        snprintf(what, sizeof(what), "%s: the latency", path);
        return reject(error, error_bytes, what, plogp->latency_ns, "it must be finite and not negative");
    }
    if (plogp->count == 0 || plogp->count > CW_PLOGP_POINTS_MAX) {
        snprintf(what, sizeof(what), "%s: the number of points", path);
        return reject(error, error_bytes, what, plogp->count, "1 to 64 are possible");
    }
    int status = CW_OK;
    for (uint32_t i = 0; i < plogp->count && status == CW_OK; i++) {
        status = point_validate(plogp, i, path, error, error_bytes);
    }
    return status;
}

int cw_network_validate(const struct cw_network *network, char *error, size_t error_bytes)
{
    int status = plogp_validate(&network->paths[CW_PATH_LAN], "path inside clusters", error, error_bytes);
    if (status == CW_OK) {
        status = plogp_validate(&network->paths[CW_PATH_WAN], "path between clusters", error, error_bytes);
    }
    if (status != CW_OK) {
        return status;
    }
    const struct {
        const char *name;
        double value;
    } rates[] = {
        {"the rate of the link between clusters", network->wan_bytes_per_ns},
        {"the time to copy a byte", network->copy_ns_per_byte},
        {"the time to reduce a byte", network->reduce_ns_per_byte},
    };
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        if (!is_time(rates[i].value)) {
            return reject(error, error_bytes, rates[i].name, rates[i].value, "it must be finite and not negative");
        }
    }
    if (network->ports == 0 || network->ports > CW_NETWORK_PORTS_MAX) {
        return reject(error, error_bytes, "the number of ports", network->ports, "1 to 64 are possible");
    }
    if (!(network->contention >= 0 && network->contention <= 1)) {
        return reject(error, error_bytes, "the contention factor", network->contention, "it lies between 0 and 1");
    }
    return CW_OK;
}
