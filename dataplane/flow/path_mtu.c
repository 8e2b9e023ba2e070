#include "dataplane/flow/path_mtu.h"

#include <string.h>

#include "dataplane/flow/session.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/wake.h"

enum {
    LADDER_MAX = 8,
    TRIES = 10, /* of one size: packets get lost for other reasons, too, and queues that fill lose many */
    CALM =
        4, /* times as long as a time-out is waited for an answer: nothing depends on it, and queues may be filling */
    ROUNDS_MAX = 6,
    AGAIN_S = 10, /* until the next search, at first; then twice as long, up to 10 minutes (RFC 8899, 5.1.1) */
    SECONDS_MASK = 0xfffff,
};

#define PATIENCE_NS 50000ull     /* with a peer that does not have the session yet */
#define LONGEST_NS  250000000ull /* between two probes */

/* Of the endpoint's clock; struct cw_path_mtu keeps the lower bits. */
static uint32_t seconds(const struct cw_endpoint *endpoint, uint32_t later_s)
{
    return (uint32_t)(endpoint->now_ns / 1000000000 + later_s);
}

static bool is_before(uint32_t one_s, uint32_t other_s)
{
    return ((one_s - other_s) & SECONDS_MASK) > SECONDS_MASK / 2;
}

static uint32_t payload_at(const struct cw_flow *flow, uint32_t mtu_bytes)
{
    return mtu_bytes + 14 - cw_flow_overhead(flow) - (flow->session.seal != NULL ? CW_WIRE_MAC_BYTES : 0);
}

/* Sizes that are worth a try between two others, the smallest first; returns how many. */
static uint32_t ladder(const struct cw_flow *flow, uint32_t above, uint32_t below, uint16_t sizes[LADDER_MAX])
{
    /* MTUs of links and tunnels: WireGuard and others, VXLAN, Ethernet, IPoIB, devices with pages of 4 KiB, jumbo
     * frames behind a cloud's headers; and sizes between for ports in memory */
    static const uint16_t mtus[LADDER_MAX] = {1400, 1450, 1500, 2000, 4000, 8800, 16000, 32000};
    uint32_t count = 0;
    for (uint32_t i = 0; i < LADDER_MAX; i++) {
        uint32_t bytes = cw_wire_probe_round(payload_at(flow, mtus[i]));
        if (bytes > above && bytes < below) {
            sizes[count++] = (uint16_t)bytes;
        }
    }
    return count;
}

/* Tries a size from now on. */
static void try_size(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes)
{
    flow->session.mtu.tried = (uint16_t)cw_wire_probe_round(payload_bytes);
    flow->session.mtu.tries = 0;
    flow->session.mtu.turn ^= 1;
    flow->session.mtu.due_ns = endpoint->now_ns;
    cw_flow_wake_at(endpoint, flow, endpoint->now_ns);
}

static void settle(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes)
{
    struct cw_path_mtu *mtu = &flow->session.mtu;
    struct cw_session *session = &flow->session;
    bool is_all = payload_bytes >= cw_wire_probe_round(session->payload_bytes_agreed);
    session->payload_bytes_proved = is_all ? session->payload_bytes_agreed : (uint16_t)payload_bytes;
    mtu->tried = 0;
    mtu->due_ns = UINT64_MAX;
    mtu->again_s = seconds(endpoint, (uint32_t)AGAIN_S << mtu->rounds) & SECONDS_MASK;
    mtu->rounds = is_all ? 0 : mtu->rounds < ROUNDS_MAX ? mtu->rounds + 1 : ROUNDS_MAX;
    cw_session_limit(endpoint, session);
    cw_flow_wake(endpoint, flow);
}

void cw_path_mtu_begin(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    session->payload_bytes_proved = (uint16_t)payload_at(flow, CW_PATH_MTU_BASE);
    flow->session.mtu = (struct cw_path_mtu){.due_ns = UINT64_MAX, .again_s = seconds(endpoint, 0) & SECONDS_MASK};
    cw_session_limit(endpoint, session);
}

uint32_t cw_path_mtu_bytes(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_session *session = &flow->session;
    bool is_all = session->payload_bytes_max >= cw_session_agreed(endpoint, session);
    uint32_t spare = session->payload_bytes_agreed - cw_session_agreed(endpoint, session);
    return session->payload_bytes_max + (is_all ? spare : 0) + endpoint->overhead_bytes - 14 +
           (session->seal != NULL ? (uint32_t)CW_WIRE_MAC_BYTES : 0);
}

void cw_path_mtu_want(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->session.mtu.tried == 0 && !is_before(seconds(endpoint, 0), flow->session.mtu.again_s)) {
        try_size(endpoint, flow, flow->session.payload_bytes_agreed);
    }
}

void cw_path_mtu_doubt(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes)
{
    if (payload_bytes > payload_at(flow, CW_PORT_MTU_MIN) && flow->session.mtu.tried == 0) {
        flow->session.mtu.doubted = true;
        uint32_t rounded = cw_wire_probe_round_up(payload_bytes);
        try_size(endpoint, flow,
                 rounded < flow->session.payload_bytes_agreed ? rounded : flow->session.payload_bytes_agreed);
    }
}

/* Nothing has shown that packets of the size arrive. */
static void give_up(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_path_mtu *mtu = &flow->session.mtu;
    if (mtu->doubted && endpoint->now_ns - flow->timers.shown_ns > 2 * (CW_PROBE_MAX_NS + cw_timers_timeout(flow))) {
        mtu->tries = 0; /* the peer is silent altogether: no matter of size */
        mtu->due_ns = endpoint->now_ns + LONGEST_NS;
        return;
    }
    if (mtu->doubted) {
        cw_session_end_narrow(endpoint, flow);
        return;
    }
    settle(endpoint, flow, flow->session.payload_bytes_proved);
}

/* False: the port has no buffer. */
static bool probe(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes)
{
    uint8_t *payload = cw_transmit_control(endpoint, flow, CW_WIRE_PROBE, payload_bytes);
    if (payload == NULL) {
        return false;
    }
    memset(payload, 0, payload_bytes);
    payload[0] = flow->session.mtu.turn;
    cw_transmit_control_finish(endpoint, flow, payload_bytes);
    cw_count(endpoint, CW_COUNTER_PROBES_OUT, 1);
    return true;
}

void cw_path_mtu_turn(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_path_mtu *mtu = &flow->session.mtu;
    if (!flow->session.confirmed) {
        uint64_t patience_ns = flow->round_trip.smoothed_ns / 8;
        mtu->due_ns = endpoint->now_ns + (patience_ns > PATIENCE_NS ? patience_ns : PATIENCE_NS);
        return;
    }
    if (mtu->tries >= TRIES) {
        give_up(endpoint, flow);
        return;
    }
    if (cw_shaper_holds(endpoint, flow, &mtu->due_ns)) {
        return;
    }
    /* smaller ones go first: the answer is about the last arrival */
    uint16_t sizes[LADDER_MAX];
    uint32_t count =
        mtu->tries > 0 && !mtu->doubted ? ladder(flow, flow->session.payload_bytes_proved, mtu->tried, sizes) : 0;
    bool sent = true;
    for (uint32_t i = 0; i < count && sent; i++) {
        sent = probe(endpoint, flow, sizes[i]);
    }
    /* the largest is reported by its size in units, and represents the limit of both sides */
    uint32_t agreed = flow->session.payload_bytes_agreed;
    bool is_largest = mtu->tried == cw_wire_probe_round(agreed);
    if (!sent || !probe(endpoint, flow, is_largest ? agreed : mtu->tried)) {
        mtu->due_ns = endpoint->now_ns + PATIENCE_NS; /* a little later */
        return;
    }
    uint64_t interval_ns = CALM * cw_timers_timeout(flow) << mtu->tries;
    mtu->tries++;
    mtu->due_ns = endpoint->now_ns + (interval_ns < LONGEST_NS ? interval_ns : LONGEST_NS);
}

void cw_path_mtu_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t word)
{
    struct cw_session *session = &flow->session;
    struct cw_path_mtu *mtu = &session->mtu;
    uint32_t arrived = cw_wire_probe_bytes(word);
    if (mtu->tried == 0 || (mtu->doubted && arrived != mtu->tried) || word != cw_wire_probe_word(arrived, mtu->turn) ||
        arrived > mtu->tried) {
        return;
    }
    if (mtu->doubted) {
        mtu->tried = 0;
        mtu->doubted = false;
        mtu->due_ns = UINT64_MAX;
    } else if (arrived == mtu->tried) {
        settle(endpoint, flow, arrived);
    } else if (arrived > session->payload_bytes_proved) {
        session->payload_bytes_proved = (uint16_t)arrived; /* and perhaps more */
        cw_session_limit(endpoint, session);
    }
}
