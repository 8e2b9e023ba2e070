#include "dataplane/flow/shaper.h"

#include <stddef.h>

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/port/port.h"
#include "dataplane/state/wake.h"

static struct cw_shaper *shaper_of(struct cw_endpoint *endpoint, const struct cw_shaping *shaping)
{
    return shaping->shaper == CW_SHAPER_NONE ? NULL : &endpoint->shapers[shaping->shaper];
}

static struct cw_flow *flow_of(struct cw_shaping *shaping)
{
    return (struct cw_flow *)((uint8_t *)shaping - offsetof(struct cw_flow, shaping));
}

/* So long before its time a frame may be handed to the port, which lets it out then. */
static inline uint64_t departure_ahead_ns(const struct cw_endpoint *endpoint)
{
    return endpoint->offloads_out ? endpoint->port->info.departure_ahead_ns : 0;
}

/* When a frame may be handed to the port. */
static inline uint64_t opens_ns(const struct cw_endpoint *endpoint, const struct cw_shaper *shaper)
{
    uint64_t early_ns = shaper->ahead_ns > 0 ? shaper->ahead_ns : departure_ahead_ns(endpoint);
    return shaper->next_ns > early_ns ? shaper->next_ns - early_ns : 0;
}

static inline bool is_open(const struct cw_endpoint *endpoint, const struct cw_shaper *shaper)
{
    return shaper->rate_bps == 0 || endpoint->now_ns >= opens_ns(endpoint, shaper);
}

uint64_t cw_shaper_departure(const struct cw_endpoint *endpoint, const struct cw_shaping *shaping)
{
    bool is_shaped = cw_shaper_is_set(shaping) && departure_ahead_ns(endpoint) > 0;
    const struct cw_shaper *shaper = is_shaped ? &endpoint->shapers[shaping->shaper] : NULL;
    bool is_later = is_shaped && shaper->rate_bps > 0 && shaper->next_ns > endpoint->now_ns;
    return is_later ? shaper->next_ns : endpoint->now_ns;
}

bool cw_shaper_holds(struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t *until_ns)
{
    struct cw_shaper *shaper = shaper_of(endpoint, &flow->shaping);
    if (!cw_shaper_is_set(&flow->shaping) || is_open(endpoint, shaper)) {
        return false; /* on the line, acknowledgements go first */
    }
    shaper->late = true;
    *until_ns = opens_ns(endpoint, shaper);
    return true;
}

static void enqueue(struct cw_shaper *shaper, struct cw_shaping *shaping)
{
    if (shaping->waits) {
        return;
    }
    shaping->waits = true;
    shaping->next = NULL;
    if (shaper->first == NULL) {
        shaper->first = shaping;
    } else {
        shaper->last->next = shaping;
    }
    shaper->last = shaping;
}

static struct cw_shaping *dequeue(struct cw_shaper *shaper)
{
    struct cw_shaping *shaping = shaper->first;
    shaper->first = shaping->next;
    shaping->waits = false;
    return shaping;
}

/* Gives the turn to the first waiting flow with packets to send; before its time, later. */
static void turn_pass(struct cw_endpoint *endpoint, struct cw_shaper *shaper)
{
    while (shaper->turn == NULL && shaper->first != NULL && is_open(endpoint, shaper)) {
        struct cw_flow *flow = flow_of(dequeue(shaper));
        cw_flow_wake(endpoint, flow);
        shaper->turn = flow->sender.is_active ? flow : NULL;
    }
    if (shaper->turn != NULL) {
        return;
    }
    if (shaper->first == NULL) {
        shaper->late = false;
    } else if (!cw_wheel_waiting(&shaper->timer)) {
        cw_wheel_insert(&endpoint->wheel, &shaper->timer, opens_ns(endpoint, shaper));
    }
}

bool cw_shaper_pass(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_shaper *shaper = shaper_of(endpoint, &flow->shaping);
    if (shaper == NULL || (flow->bandwidth != NULL && !cw_shaper_is_set(&flow->shaping))) {
        return true;
    }
    bool open = is_open(endpoint, shaper);
    if (open && (shaper->turn == flow || (shaper->turn == NULL && shaper->first == NULL))) {
        return true;
    }
    shaper->late = shaper->late || !open;
    enqueue(shaper, &flow->shaping);
    return false; /* cw_shaper_done sees to the next turn */
}

void cw_shaper_sent(struct cw_endpoint *endpoint, const struct cw_shaping *shaping, uint32_t frame_bytes)
{
    struct cw_shaper *shaper = shaper_of(endpoint, shaping);
    if (shaper == NULL || shaper->rate_bps == 0) {
        return;
    }
    uint64_t now_ns = endpoint->now_ns;
    uint64_t earliest_ns = shaper->late && now_ns > shaper->catch_up_ns ? now_ns - shaper->catch_up_ns : now_ns;
    shaper->late = false;
    if (shaper->next_ns < earliest_ns) {
        shaper->next_ns = earliest_ns;
        shaper->next_remainder = 0;
    }
    uint64_t scaled = (frame_bytes + (uint64_t)CW_ETHERNET_OVERHEAD_BYTES) * 8 * 1000000000 + shaper->next_remainder;
    shaper->next_ns += scaled / shaper->rate_bps;
    shaper->next_remainder = scaled % shaper->rate_bps;
}

void cw_shaper_done(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_shaper *shaper = shaper_of(endpoint, &flow->shaping);
    if (shaper != NULL) {
        shaper->turn = shaper->turn == flow ? NULL : shaper->turn;
        turn_pass(endpoint, shaper);
    }
}

void cw_shaper_turn(struct cw_endpoint *endpoint, struct cw_shaper *shaper)
{
    turn_pass(endpoint, shaper);
}

void cw_shaper_remove(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_shaper *shaper = shaper_of(endpoint, &flow->shaping);
    if (shaper == NULL) {
        return;
    }
    struct cw_shaping *before = NULL;
    for (struct cw_shaping *at = shaper->first; at != NULL && flow->shaping.waits; at = at->next) {
        if (at != &flow->shaping) {
            before = at;
            continue;
        }
        *(before == NULL ? &shaper->first : &before->next) = at->next;
        shaper->last = shaper->last == at ? before : shaper->last;
        at->waits = false;
    }
    cw_shaper_done(endpoint, flow);
}

/* ---- calls ---- */

void cw_shaper_line(struct cw_endpoint *endpoint)
{
    uint64_t rate_bps = endpoint->port->info.rate_bps;
    bool is_by_delay = endpoint->config.congestion == CW_CONGESTION_DELAY; /* the TCP of 2003 knew nothing like it */
    if (is_by_delay && rate_bps != 0 && rate_bps <= CW_LINE_SLOW_BPS) {
        endpoint->shapers[CW_SHAPER_LINE] =
            (struct cw_shaper){.rate_bps = rate_bps, .catch_up_ns = CW_CATCH_UP_MAX_NS, .ahead_ns = CW_LINE_AHEAD_NS};
    }
}

int cw_shaper_set(struct cw_endpoint *endpoint, uint32_t shaper, uint64_t rate_bps, uint64_t catch_up_ns)
{
    if (shaper >= CW_SHAPERS_MAX || rate_bps > CW_RATE_MAX_BPS || catch_up_ns > CW_CATCH_UP_MAX_NS) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_shaper *set = &endpoint->shapers[shaper];
    set->rate_bps = rate_bps;
    set->catch_up_ns = catch_up_ns;
    set->next_remainder = 0;
    set->next_ns = set->next_ns < endpoint->now_ns ? set->next_ns : endpoint->now_ns; /* the new rate counts at once */
    cw_wheel_remove(&endpoint->wheel, &set->timer);
    turn_pass(endpoint, set);
    return CW_OK;
}

/* True: the values are valid for cw_peer_traffic. */
static bool traffic_is_valid(const struct cw_traffic *traffic)
{
    bool rated = traffic->control == CW_TRAFFIC_RATE;
    return traffic->control <= CW_TRAFFIC_BANDWIDTH && traffic->rate_bps <= CW_RATE_MAX_BPS &&
           (traffic->shaper < CW_SHAPERS_MAX || traffic->shaper == CW_SHAPER_NONE) && rated == (traffic->rate_bps > 0);
}

int cw_peer_traffic(struct cw_endpoint *endpoint, uint32_t peer, const struct cw_traffic *traffic)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL || !traffic_is_valid(traffic)) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->shaping.shaper != traffic->shaper) { /* also where the line's stays */
        cw_shaper_remove(endpoint, flow);
        flow->shaping.shaper =
            traffic->shaper == CW_SHAPER_NONE ? cw_shaper_default(endpoint) : (uint8_t)traffic->shaper;
    }
    int status = cw_bandwidth_set(endpoint, flow, traffic);
    flow->timers.pace_next_ns = endpoint->now_ns;
    cw_wheel_remove(&endpoint->wheel, &flow->timers.pace);
    cw_flow_wake(endpoint, flow);
    return status;
}
