/* The choice between the two controllers of a flow's window, by the smallest round trip that the flow has seen: delay.c
 * on a LAN; bandwidth.c on a long path, after LONG_ROUNDS rounds in which the window limited the flow, and never with
 * CW_CONGESTION_LOSS. */
#include "dataplane/congestion/congestion.h"

#include "dataplane/congestion/bandwidth.h"

enum { LONG_ROUNDS = 6 }; /* that the window limited a flow on a long path, before its bandwidth is measured */

/* A path with no shorter round trip is long: no LAN is, however late its hosts answer now and then. */
#define ROUND_TRIP_LONG_NS 4000000ull

/* Called at the end of a round: true after LONG_ROUNDS of them on a long path. */
static bool path_is_long(struct cw_flow *flow)
{
    struct cw_congestion *congestion = &flow->congestion;
    if (flow->round_trip.min_ns < ROUND_TRIP_LONG_NS) {
        congestion->rounds_long = 0;
    } else if (congestion->limited) {
        congestion->rounds_long++;
    }
    return congestion->rounds_long >= LONG_ROUNDS;
}

void cw_congestion_progress(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_congestion *congestion = &flow->congestion;
    if (flow->bandwidth != NULL && flow->bandwidth->by_itself && flow->round_trip.min_ns < ROUND_TRIP_LONG_NS / 2) {
        cw_bandwidth_stop(endpoint, flow);
    }
    if (flow->bandwidth != NULL) {
        cw_bandwidth_progress(endpoint, flow);
        return;
    }
    if (flow->sender.sent.base < congestion->round_end) {
        return;
    }
    if (!congestion->by_loss && path_is_long(flow)) {
        cw_bandwidth_start(endpoint, flow);
        return;
    }
    cw_congestion_round_end(endpoint, flow);
}
