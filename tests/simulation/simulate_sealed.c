/* Sealed sessions: their peers, and that no nonce comes twice under a key, in any case. Random worlds:
 * simulate_correctness.c. */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/staging/stage.h"

enum { WORK = 40 };

/* ---- who gets a sealed session ---- */

enum policy { OFF, ASKED, TOLD, REQUIRED, POLICIES };

/* Packets in flight, by kind. */
struct seen {
    uint64_t sealed;
    uint64_t open_setup;
    uint64_t open; /* of a session */
};

static void look(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node, const uint8_t *frame,
                 uint32_t length)
{
    struct seen *seen = context;
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    if (kind != CW_SIMULATOR_DEPARTURE) {
        return;
    }
    if ((header->flags & CW_WIRE_ENCRYPTED) != 0) {
        seen->sealed++;
    } else if (header->type <= CW_WIRE_HELLO_REPLY) {
        seen->open_setup++;
    } else {
        seen->open++;
    }
}

static void two_hosts(enum cw_encryption encryption)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.endpoint.encryption = encryption;
    config.endpoint.failure_timeout_ns = 2000 * SIMULATION_MS;
    hosts_make(&config);
}

/* Ends one endpoint and starts another in its place that differs in its policy. */
static void host_is(uint32_t node, enum policy policy)
{
    static const enum cw_encryption encryption[] = {
        [OFF] = CW_ENCRYPTION_OFF,
        [ASKED] = CW_ENCRYPTION_ASKED,
        [TOLD] = CW_ENCRYPTION_ASKED,
        [REQUIRED] = CW_ENCRYPTION_REQUIRED,
    };
    hosts.config.endpoint.encryption = encryption[policy];
    host_restart(node);
}

static void try_policies(enum policy a, enum policy b)
{
    struct seen seen = {0};
    two_hosts(CW_ENCRYPTION_OFF);
    host_is(0, a);
    host_is(1, b);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t peer = sim_hosts_peer(&hosts, i, 1 - i);
        enum policy own = i == 0 ? a : b;
        assert_int_equal(cw_peer_encrypt(hosts.list[i].endpoint, peer, own == TOLD || own == REQUIRED), CW_OK);
        if (own == OFF) {
            assert_int_equal(cw_peer_encrypt(hosts.list[i].endpoint, peer, true), CW_ERROR_UNSUPPORTED);
        }
    }
    cw_simulator_tap_set(hosts.simulator, look, &seen);
    struct sim_stream stream;
    sim_stream_start(&hosts, &stream, 0, 1, 5000, WORK);
    uint64_t took_ns = sim_stream_finish(&hosts, 0, 5000 * SIMULATION_MS);
    bool wanted = a >= TOLD || b >= TOLD;
    bool possible = a != OFF && b != OFF;
    assert_int_equal(hosts.list[0].completed, WORK);
    struct cw_peer_info info = peer_info(0, stream.peer);
    if (wanted && !possible) {
        assert_int_equal(hosts.list[0].failed, hosts.list[0].completed);
        assert_int_equal(hosts.list[1].arrived_puts, 0);
        assert_int_equal(seen.open, 0);
        assert_int_equal(info.state, CW_PEER_FAILED);
        assert_true(took_ns < 100 * SIMULATION_MS); /* told at once, not after the failure bound */
        assert_int_equal(hosts.list[0].down, 1);
    } else {
        assert_int_equal(hosts.list[0].failed, 0);
        assert_int_equal(info.encrypted, wanted);
        assert_int_equal(cw_peer_encrypt(hosts.list[0].endpoint, stream.peer, !wanted),
                         a == REQUIRED || (a == OFF && !wanted) ? CW_ERROR_UNSUPPORTED : CW_ERROR_BUSY);
        assert_true(wanted ? seen.open == 0 && seen.sealed > 0 : seen.open > 0 && seen.sealed == 0);
    }
}

static void either_side_may_insist(void **state)
{
    for (enum policy a = OFF; a < POLICIES; a++) {
        for (enum policy b = OFF; b < POLICIES; b++) {
            try_policies(a, b);
        }
    }
}

/* One side requests a session and the other gets the order to seal at some time of set-up: that works as long as
 * nothing else has been agreed to; the put arrives in any case. */
static void order_late(bool asks_sealed)
{
    enum { MICROSECONDS_MAX = 2000 };
    uint32_t asked = 0;
    bool is_late = false;
    for (uint32_t told = 0; told < MICROSECONDS_MAX && !is_late; told += 5) {
        struct sim_stream stream;
        two_hosts(CW_ENCRYPTION_ASKED);
        uint32_t back = sim_hosts_peer(&hosts, 1, 0);
        sim_stream_start(&hosts, &stream, 0, 1, 5000, WORK);
        assert_int_equal(cw_peer_encrypt(hosts.list[0].endpoint, stream.peer, asks_sealed), CW_OK);
        sim_hosts_run(&hosts, told * 1000ull);
        struct cw_peer_info info = peer_info(1, back);
        is_late = info.state == CW_PEER_ESTABLISHED;
        asked += info.state == CW_PEER_CLOSED && cw_endpoint_flow(hosts.list[1].endpoint, back)->session.next != 0;
        bool works = asks_sealed || info.state == CW_PEER_CLOSED;
        assert_int_equal(cw_peer_encrypt(hosts.list[1].endpoint, back, true), works ? CW_OK : CW_ERROR_BUSY);
        (void)sim_stream_finish(&hosts, 0, 2000 * SIMULATION_MS);
        assert_completed(0, WORK);
        info = peer_info(1, back);
        assert_int_equal(info.encrypted, works);
    }
    assert_true(is_late && asked > 0); /* all times of set-up have been tried */
}

static void a_peer_that_learns_late_seals(void **state)
{
    order_late(false);
    order_late(true);
}

/* A connection without an operation is reported as well. */
static void refusal_is_reported(void **state)
{
    two_hosts(CW_ENCRYPTION_OFF);
    host_is(0, REQUIRED);
    uint32_t peer = sim_hosts_peer(&hosts, 0, 1);
    assert_int_equal(cw_peer_connect(hosts.list[0].endpoint, peer), CW_OK);
    hosts.list[0].holds_events = true;
    host_run(0, 10 * SIMULATION_MS);
    struct cw_event event = {0};
    assert_int_equal(cw_endpoint_events(hosts.list[0].endpoint, &event, 1), 1);
    assert_int_equal(event.kind, CW_EVENT_PEER_DOWN);
    assert_int_equal(event.status, CW_ERROR_UNSUPPORTED);
}

/* ---- nonces ---- */

enum { SESSIONS_MAX = 256, COUNTS_MAX = 1 << 16 };

/* One direction of a session that was seen, with the key that its packets must open under. */
struct direction {
    uint32_t node; /* sender */
    uint8_t key[16];
    struct cw_aead_key *unseal;
    uint8_t counts[COUNTS_MAX]; /* times that each was seen */
    uint64_t packets;
};

/* Of the test that runs. */
static struct {
    struct direction *directions;
    uint32_t direction_count;
    uint8_t setup_nonces[4096][CW_WIRE_SETUP_NONCE_BYTES];
    uint32_t setup_count;
    uint64_t packets;
} audit;

/* Takes up the sessions that there are at the moment, before a packet of theirs is looked at. */
static void audit_sessions(uint32_t node)
{
    const struct cw_endpoint *endpoint = hosts.list[node].endpoint;
    for (uint32_t peer = 0; peer < endpoint->flows.fresh; peer++) {
        const struct cw_flow *flow = cw_pool_at(&endpoint->flows, peer);
        if (flow->session.seal == NULL) {
            continue;
        }
        struct cw_wire_seal_key key;
        cw_wire_seal_derive(&key, endpoint->config.job_key, flow->session.local, flow->session.peer);
        bool known = false;
        for (uint32_t i = 0; i < audit.direction_count; i++) {
            known = known || memcmp(audit.directions[i].key, key.key, 16) == 0;
        }
        if (!known) {
            assert_true(audit.direction_count < SESSIONS_MAX);
            struct direction *direction = &audit.directions[audit.direction_count++];
            direction->node = node;
            memcpy(direction->key, key.key, 16);
            assert_int_equal(
                cw_aead_key_create(CW_AEAD_UNSEAL, key.key, key.salt, CW_WIRE_READABLE_BYTES, &direction->unseal),
                CW_OK);
        }
    }
}

static void audit_setup(const struct cw_wire_sealed_setup *setup)
{
    for (uint32_t i = 0; i < audit.setup_count; i++) {
        assert_memory_not_equal(audit.setup_nonces[i], setup->nonce, CW_WIRE_SETUP_NONCE_BYTES);
    }
    assert_true(audit.setup_count < 4096);
    memcpy(audit.setup_nonces[audit.setup_count++], setup->nonce, CW_WIRE_SETUP_NONCE_BYTES);
}

static void audit_packet(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                         const uint8_t *frame, uint32_t length)
{
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    if (kind != CW_SIMULATOR_DEPARTURE) {
        return;
    }
    assert_true((header->flags & CW_WIRE_ENCRYPTED) != 0);
    if (header->type <= CW_WIRE_HELLO_REPLY) {
        audit_setup((const struct cw_wire_sealed_setup *)header);
        return;
    }
    audit_sessions(node);
    uint32_t found = 0;
    for (uint32_t i = 0; i < audit.direction_count; i++) {
        struct direction *direction = &audit.directions[i];
        if (direction->node != node) {
            continue;
        }
        uint8_t copy[2048];
        memcpy(copy, frame, length);
        struct cw_wire_sealed *sealed = (struct cw_wire_sealed *)(copy + CW_WIRE_NETWORK_BYTES);
        struct cw_aead_packet packet = {.readable = (uint8_t *)sealed,
                                        .data = sealed->fields,
                                        .bytes = cw_wire_sealed_bytes(header),
                                        .count = sealed->count};
        cw_aead_unseal(direction->unseal, &packet, 1);
        if (packet.good) {
            found++;
            assert_true(packet.count < COUNTS_MAX);
            assert_int_equal(direction->counts[packet.count], 0); /* the nonce is new */
            direction->counts[packet.count]++;
            direction->packets++;
        }
    }
    assert_int_equal(found, 1);
    audit.packets++;
}

static void audit_open(double loss)
{
    char error[200];
    struct sim_hosts_config config = sim_hosts_config_of(3);
    config.endpoint.encryption = CW_ENCRYPTION_REQUIRED;
    config.endpoint.failure_timeout_ns = 1000 * SIMULATION_MS;
    config.node.down.loss = loss;
    config.node.down.duplicate = loss;
    config.node.down.reorder = loss;
    config.node.down.reorder_delay_max_ns = 200000;
    hosts_make(&config);
    memset(&audit, 0, sizeof(audit));
    audit.directions = calloc(SESSIONS_MAX, sizeof(struct direction));
    assert_non_null(audit.directions);
    assert_int_equal(cw_aead_load(error, sizeof(error)), CW_OK);
    cw_simulator_tap_set(hosts.simulator, audit_packet, NULL);
}

static void audit_close(void)
{
    sim_hosts_destroy(&hosts);
    for (uint32_t i = 0; i < audit.direction_count; i++) {
        cw_aead_key_destroy(audit.directions[i].unseal);
    }
    free(audit.directions);
}

static void no_nonce_is_used_twice(void **state)
{
    audit_open(0.1);
    uint64_t retransmitted = 0;
    for (uint32_t round = 0; round < 20; round++) {
        struct sim_stream streams[2];
        sim_stream_start(&hosts, &streams[0], 0, 1, 4000, 50);
        sim_stream_start(&hosts, &streams[1], 2, 1, 100, 50);
        (void)sim_stream_finish(&hosts, 0, (round + 1) * SIMULATION_MS); /* or not */
        retransmitted += counted(0, CW_COUNTER_RETRANSMITTED);
        host_restart(round % 3);
    }
    printf("%llu packets, %llu sent again, %u keys, %u set-up packets\n", (unsigned long long)audit.packets,
           (unsigned long long)retransmitted, audit.direction_count, audit.setup_count);
    assert_true(retransmitted > 50 && audit.direction_count > 20 && audit.packets > 1000);
    audit_close();
}

/* A mistake that must not cost the keys: all processes end, and start with the seeds that they have had. */
static void not_even_with_the_same_seeds(void **state)
{
    audit_open(0);
    for (uint32_t round = 0; round < 3; round++) {
        (void)sim_stream_send(&hosts, 0, 1, 4000, 50, 1000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].completed, 50);
        assert_int_equal(audit.direction_count, 2 * (round + 1));
        for (uint32_t node = 0; node < 2; node++) {
            sim_hosts_crash(&hosts, node);
            hosts.list[node].lives = 0;
        }
        for (uint32_t node = 0; node < 2; node++) {
            host_start(node);
        }
    }
    audit_close();
}

/* A packet says by its phase which session it is for: one and the next never have the same. */
static void phases_differ(void **state)
{
    two_hosts(CW_ENCRYPTION_REQUIRED);
    (void)sim_stream_send(&hosts, MADMAN, TARGET, 4000, 5, 1000 * SIMULATION_MS);
    struct cw_endpoint *endpoint = hosts.list[TARGET].endpoint;
    struct cw_flow *flow = cw_endpoint_flow(endpoint, 0);
    for (uint32_t i = 0; i < 2000; i++) {
        uint8_t frame[FRAME_BYTES];
        struct cw_wire_sealed_setup setup = {.type = CW_WIRE_HELLO, .hello = hello_next(endpoint, 1000 + i, 0)};
        flow->session.next = 0;
        frame_let_in(endpoint, frame, setup_seal(frame, endpoint, &setup, endpoint->setup_key));
        (void)cw_flush(endpoint);
        assert_int_not_equal(flow->session.next, 0);
        assert_int_not_equal(cw_seal_phase(flow->session.next), cw_seal_phase(flow->session.local));
    }
}

/* ---- the end of a key ---- */

static void a_used_up_key_ends_its_session(void **state)
{
    two_hosts(CW_ENCRYPTION_REQUIRED);
    struct sim_host *host = &hosts.list[0];
    struct sim_stream stream;
    sim_stream_start(&hosts, &stream, 0, 1, 4000, 50);
    (void)sim_stream_finish(&hosts, 0, 1000 * SIMULATION_MS);
    struct cw_flow *flow = cw_endpoint_flow(host->endpoint, stream.peer);
    uint64_t local = flow->session.local;
    flow->session.seal->sent = CW_SEAL_COUNT_SPENT - 20;
    (void)sim_stream_send(&hosts, 0, 1, 4000, 500, 5000 * SIMULATION_MS);
    assert_int_equal(host->completed, 500);
    assert_true(host->failed > 0 && host->failed < 400); /* those in flight; the others continued under the next key */
    assert_int_equal(host->down, 1);
    assert_true(flow->session.local != local && flow->session.seal->sent < 10000);
    /* and if it went on all the same, nothing would leave */
    flow->session.seal->sent = CW_SEAL_COUNT_MAX;
    uint64_t arrived = hosts.list[1].arrived_puts;
    sim_stream_start(&hosts, &stream, 0, 1, 40, 1);
    sim_hosts_run(&hosts, SIMULATION_MS);
    assert_int_equal(hosts.list[1].arrived_puts, arrived);
    assert_true(counted(1, CW_COUNTER_DROP_VERSION) > 0);
    assert_int_equal(flow->session.seal->sent, CW_SEAL_COUNT_MAX);
}

int main(void)
{
    return HOSTS_TESTS_RUN(either_side_may_insist, a_peer_that_learns_late_seals, refusal_is_reported,
                           no_nonce_is_used_twice, not_even_with_the_same_seeds, phases_differ,
                           a_used_up_key_ends_its_session);
}
