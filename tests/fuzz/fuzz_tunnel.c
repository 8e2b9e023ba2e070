/* A peer of a gateway that holds the key and writes anything: batches, room and hellos that are damaged, at any place
 * and time, in several lives. The tunnel delivers all sound frames, counts the rest, and stays usable. */
#include "tests/fuzz/fuzz.h"
#include "tests/simulation/simulation.h"

#include "dataplane/tunnel/records.h"
#include "dataplane/tunnel/tunnel.h"

enum {
    FRAME_MAX = 1522,
    BATCH_ROOM = 9000,
    HELLO_BYTES = 40,
    RING_BYTES = 256 << 10,
    ROUNDS = 500,
    BYTES_MAX = 1 << 14
};

enum { TUNNEL, HOSTILE };

struct node {
    struct cw_endpoint *endpoint;
    struct cw_tunnel *tunnel; /* NULL: the hostile one */
    uint32_t peer;
    bool is_up;
    uint64_t delivered;
    uint8_t ring[RING_BYTES];
    uint64_t ring_token;
    uint64_t room_token;
    uint8_t hello[HELLO_BYTES]; /* of the other side; all zero: not yet */
};

static struct sim_hosts hosts;
static struct node tunnel_node, hostile_node;
static uint64_t arrived; /* puts of the tunnel */
static uint64_t delivered, broken;

static bool deliver(void *context, const uint8_t *frame, uint32_t length)
{
    struct node *node = context;
    assert_in_range(length, CW_TUNNEL_FRAME_MIN_BYTES, FRAME_MAX);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < length; i++) {
        sum += frame[i]; /* a sanitizer sees what is read */
    }
    node->delivered += sum != UINT32_MAX;
    return true;
}

static void hostile_events(struct node *node)
{
    struct cw_event event;
    while (cw_endpoint_events(node->endpoint, &event, 1) == 1) {
        if (event.kind == CW_EVENT_PEER_UP) {
            node->is_up = true;
        } else if (event.kind == CW_EVENT_MESSAGE) {
            if (event.bytes == HELLO_BYTES) {
                memcpy(node->hello, event.data, HELLO_BYTES);
            }
            cw_message_release(node->endpoint, event.slot);
        } else if (event.kind == CW_EVENT_PUT) {
            arrived++;
        }
    }
}

static uint64_t turn(struct sim_host *host, uint64_t now_ns)
{
    struct node *node = host->node == TUNNEL ? &tunnel_node : &hostile_node;
    cw_endpoint_turn(node->endpoint, now_ns);
    if (node->tunnel == NULL) {
        hostile_events(node);
        return cw_endpoint_deadline(node->endpoint);
    }
    cw_tunnel_turn(node->tunnel, now_ns);
    uint64_t endpoint_ns = cw_endpoint_deadline(node->endpoint);
    uint64_t tunnel_ns = cw_tunnel_deadline(node->tunnel);
    assert_true(tunnel_ns > now_ns); /* the peer cannot make a gateway compute all the time */
    return endpoint_ns < tunnel_ns ? endpoint_ns : tunnel_ns;
}

static void run(uint64_t time_ns)
{
    sim_host_wake(&hosts.list[TUNNEL]);
    sim_host_wake(&hosts.list[HOSTILE]);
    sim_hosts_run(&hosts, time_ns);
}

static uint64_t next_seed;

static void prepare(struct sim_host *host, struct cw_endpoint_config *config)
{
    cw_tunnel_endpoint_config(config, 1);
    config->address.udp_port = CW_UDP_PORT_GATEWAY;
    config->seed = next_seed++;
}

static void node_open(struct node *node, uint32_t index)
{
    *node = (struct node){.endpoint = hosts.list[index].endpoint, .peer = sim_hosts_peer(&hosts, index, 1 - index)};
}

/* A new hostile process, connected, which has heard where the tunnel's ring is. */
static void hostile_start(void)
{
    node_open(&hostile_node, HOSTILE);
    cw_region_register(hostile_node.endpoint, hostile_node.ring, RING_BYTES, CW_REGION_WRITE, &hostile_node.ring_token);
    cw_region_register(hostile_node.endpoint, hostile_node.ring, 0, CW_REGION_WRITE, &hostile_node.room_token);
    cw_peer_connect(hostile_node.endpoint, hostile_node.peer);
    for (int i = 0; i < 1000 && hostile_node.hello[0] == 0; i++) {
        run(SIMULATION_MS);
    }
    assert_true(hostile_node.is_up);
    assert_int_not_equal(hostile_node.hello[0], 0);
}

static uint64_t number_at(const uint8_t *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    return number;
}

/* ---- what it does ---- */

/* Frames that a batch holds, damaged now and then; *bytes may be 0. */
static void batch_draw(struct fuzz_input *input, uint8_t *batch, uint64_t *bytes)
{
    uint8_t frame[FRAME_MAX];
    *bytes = 0;
    for (uint64_t i = fuzz_below(input, 6); i > 0; i--) {
        uint32_t length = (uint32_t)fuzz_between(input, 14, FRAME_MAX);
        fuzz_fill(input, frame, length);
        *bytes += cw_tunnel_record_write(batch + *bytes, frame, length);
    }
    for (uint64_t wounds = fuzz_chance(input, 50) ? fuzz_below(input, 3) : 0; wounds > 0 && *bytes > 0; wounds--) {
        if (fuzz_chance(input, 70)) {
            batch[fuzz_below(input, *bytes)] = (uint8_t)fuzz_below(input, 256);
        } else {
            *bytes -= fuzz_below(input, *bytes);
        }
    }
}

static void batch_put(struct fuzz_input *input, uint64_t *expected)
{
    static uint8_t batch[BATCH_ROOM + 200];
    uint64_t bytes;
    batch_draw(input, batch, &bytes);
    uint64_t ring_bytes = 64 * (number_at(hostile_node.hello + 12) & UINT32_MAX);
    uint64_t offset = fuzz_below(input, ring_bytes);
    uint64_t offset_most = ring_bytes - bytes;
    uint32_t lane = fuzz_chance(input, 95) ? 1 : (uint32_t)fuzz_below(input, 4);
    struct cw_put put = {
        .peer = hostile_node.peer,
        .lane_tag = cw_lane_tag(lane, (uint32_t)fuzz_below(input, 1 << 16)),
        .region = number_at(hostile_node.hello + 24),
        .offset = fuzz_chance(input, 90) && offset > offset_most ? offset_most : offset,
        .source = {.contiguous = {.data = batch, .bytes = bytes}},
    };
    bool inside = put.offset <= offset_most;
    if (cw_put(hostile_node.endpoint, &put) == CW_OK && inside && lane == 1) {
        *expected += cw_tunnel_records_check(batch, bytes, FRAME_MAX);
    }
    run(20 * SIMULATION_MS);
}

static void room_put(struct fuzz_input *input)
{
    struct cw_put put = {
        .peer = hostile_node.peer,
        .lane_tag = cw_lane_tag(fuzz_chance(input, 90) ? 2 : 1, (uint32_t)fuzz_below(input, 1 << 16)),
        .region = number_at(hostile_node.hello + 32),
    };
    cw_put(hostile_node.endpoint, &put);
}

/* One like the tunnel's own, with other tokens, and damaged as a rule. */
static void hello_send(struct fuzz_input *input, bool damaged)
{
    uint8_t hello[64];
    memcpy(hello, hostile_node.hello, HELLO_BYTES);
    memcpy(hello + 24, &hostile_node.ring_token, 8);
    memcpy(hello + 32, &hostile_node.room_token, 8);
    uint64_t bytes = HELLO_BYTES;
    if (damaged && fuzz_chance(input, 80)) {
        hello[fuzz_below(input, 24)] = (uint8_t)fuzz_below(input, 256);
    } else if (damaged) {
        bytes = fuzz_below(input, sizeof(hello) + 1);
    }
    struct cw_message message = {.peer = hostile_node.peer, .source = {.contiguous = {.data = hello, .bytes = bytes}}};
    cw_message_send(hostile_node.endpoint, &message);
    run(SIMULATION_MS);
}

static void frames_send(struct fuzz_input *input)
{
    uint8_t frame[2000];
    for (uint64_t i = fuzz_below(input, 20); i > 0; i--) {
        fuzz_fill(input, frame, 60);
        cw_tunnel_send(tunnel_node.tunnel, sim_hosts_now(&hosts), frame,
                       (uint32_t)fuzz_between(input, 14, sizeof(frame)));
    }
    run(SIMULATION_MS);
}

static void world_open(void)
{
    struct cw_tunnel_config tunnel;
    struct sim_hosts_config config = sim_hosts_config_of(2);
    cw_simulator_node_config_init(&config.node);
    cw_endpoint_config_init(&config.endpoint);
    config.ip_first = cw_ip_v4(0x0a090001u);
    config.memory_bytes = 0;
    config.prepare = prepare;
    config.turn = turn;
    next_seed = 1;
    simulation_hosts(&hosts, &config);
    node_open(&tunnel_node, TUNNEL);
    cw_tunnel_config_init(&tunnel);
    tunnel.stream_count = 1;
    tunnel.peers[0] = tunnel_node.peer;
    tunnel.rate_bps = 1000000000;
    tunnel.ring_bytes = RING_BYTES;
    tunnel.frame_bytes_max = FRAME_MAX;
    tunnel.deliver = deliver;
    tunnel.context = &tunnel_node;
    assert_int_equal(cw_tunnel_create(tunnel_node.endpoint, &tunnel, 0, &tunnel_node.tunnel), CW_OK);
}

/* A new process at the same address. */
static void hostile_restart(uint64_t seed)
{
    char error[200];
    run(100 * SIMULATION_MS);
    sim_hosts_crash(&hosts, HOSTILE);
    next_seed = 3 + seed;
    assert_int_equal(sim_hosts_restart(&hosts, HOSTILE, error, sizeof(error)), CW_OK);
    hostile_start();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint64_t expected = 0;
    world_open();
    hostile_start();
    for (uint64_t round = 0; round < ROUNDS && input.left > 0; round++) {
        if (round == ROUNDS / 2) {
            hostile_restart(round);
        }
        switch (fuzz_below(&input, 8)) {
        case 0:
            hello_send(&input, round % 250 < 125 || fuzz_chance(&input, 90));
            break;
        case 1:
            room_put(&input);
            break;
        case 2:
            frames_send(&input);
            break;
        default:
            batch_put(&input, &expected);
        }
        assert_int_equal(tunnel_node.delivered, expected);
    }
    /* the last one, if not before, is heard */
    hello_send(&input, false);
    run(100 * SIMULATION_MS);
    assert_true(cw_tunnel_is_up(tunnel_node.tunnel, 0));
    assert_int_equal(cw_tunnel_counter(tunnel_node.tunnel, 0, CW_TUNNEL_DELIVERED), expected);
    delivered += expected;
    broken += cw_tunnel_counter(tunnel_node.tunnel, 0, CW_TUNNEL_BROKEN);
    sim_hosts_destroy(&hosts);
    cw_tunnel_destroy(tunnel_node.tunnel);
    return 0;
}

static void end(uint64_t inputs)
{
    assert_true(delivered > 0);
    assert_true(arrived > 0);
    assert_true(broken > inputs * ROUNDS / 20);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = 10 * ROUNDS, .end = end};
