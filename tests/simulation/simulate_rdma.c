/* Operations by queue pairs of simulated RDMA devices: each promise by itself. Random worlds: simulate_correctness.c.
 * */
#include "tests/simulation/fixture.h"

#include "dataplane/put/message.h"
#include "dataplane/rdma/rdma_state.h"

enum { BREAKS = 100, PUTS_A_BREAK = 20, PUT_BYTES = 3000 };

/* Of the test that runs. */
static struct cw_verbs_net_config verbs;

static int set_up(void **state)
{
    cw_verbs_net_config_init(&verbs);
    return 0;
}

static void two_hosts(void)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.verbs = &verbs;
    hosts_make(&config);
    uint32_t peer = sim_hosts_peer(&hosts, 0, 1);
    assert_int_equal(cw_peer_connect(hosts.list[0].endpoint, peer), CW_OK);
    sim_hosts_run(&hosts, 10 * SIMULATION_MS);
    assert_int_equal(cw_rdma_state(hosts.list[0].endpoint, peer), CW_RDMA_UP);
}

static int put(const uint8_t *data, uint64_t bytes, uint64_t source_region, uint64_t offset)
{
    struct sim_host *host = &hosts.list[0];
    const struct cw_put put = {.peer = sim_hosts_peer(&hosts, 0, 1),
                               .lane_tag = cw_lane_tag(1, 0),
                               .region = hosts.list[1].token,
                               .offset = offset,
                               .source = {.region = source_region, .contiguous = {.data = data, .bytes = bytes}},
                               .flags = CW_SIGNAL};
    int status = cw_put(host->endpoint, &put);
    sim_host_wake(host);
    return status;
}

/* The given number of puts, each once, and the first `bytes` of the target are the source's. */
static void check_arrived(uint64_t puts, uint64_t bytes)
{
    assert_int_equal(hosts.list[1].arrived_puts, puts);
    assert_completed(0, puts);
    assert_memory_equal(hosts.list[1].memory, hosts.list[0].memory, bytes);
}

/* One operation on the wire, as many packets as its bytes take, and none of ours in addition. */
static void a_put_is_one_work_request(void **state)
{
    two_hosts();
    const struct cw_verbs_net_counters *counters = cw_verbs_net_counters(hosts.verbs);
    static const uint64_t sizes[] = {0, 1, 8, 64, 220, 1024, 1025, 65536, 1 << 20};
    uint8_t *source = hosts.list[0].memory;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct cw_verbs_net_counters before = *counters;
        uint64_t packets = counted(0, CW_COUNTER_PACKETS_OUT) + counted(1, CW_COUNTER_PACKETS_OUT);
        uint64_t arrived = hosts.list[1].arrived_puts, completed = hosts.list[0].completed;
        memset(source, (int)(i + 1), sizes[i]);
        assert_int_equal(put(source, sizes[i], hosts.list[0].token, 0), CW_OK);
        sim_hosts_run(&hosts, 10 * SIMULATION_MS);
        assert_int_equal(hosts.list[1].arrived_puts, arrived + 1);
        assert_int_equal(hosts.list[0].completed, completed + 1);
        assert_int_equal(counters->work, before.work + 1);
        assert_int_equal(counters->packets, before.packets + (sizes[i] <= 1024 ? 1 : (sizes[i] + 1023) / 1024));
        assert_memory_equal(hosts.list[1].memory, source, sizes[i]);
        assert_int_equal(counted(0, CW_COUNTER_PACKETS_OUT) + counted(1, CW_COUNTER_PACKETS_OUT), packets);
    }
    assert_int_equal(hosts.list[0].failed, 0);
    assert_int_equal(counted(0, CW_COUNTER_RDMA_COPIED), 0); /* from where it lies */
}

/* A peer that answers messages by messages needs no work request for the credit. */
static void credit_goes_along(void **state)
{
    enum { TURNS = 200 };
    two_hosts();
    const struct cw_verbs_net_counters *counters = cw_verbs_net_counters(hosts.verbs);
    uint64_t work = 0;
    for (uint32_t i = 0; i < 2 * TURNS; i++) {
        uint64_t arrived = hosts.list[1 - i % 2].arrived_messages;
        work = i == TURNS ? counters->work : work;
        assert_int_equal(message_post(i % 2, 1 - i % 2, 8), CW_OK);
        sim_hosts_run(&hosts, 100 * SIMULATION_US);
        assert_int_equal(hosts.list[1 - i % 2].arrived_messages, arrived + 1);
    }
    assert_int_equal(counters->work, work + TURNS);
}

/* Slots that were lent along with a message are not given back twice, though the peer has given them back before it
 * could know of them. */
static void slots_are_released_once(void **state)
{
    enum { SLOTS = 3 };
    two_hosts();
    struct cw_endpoint *endpoint = hosts.list[0].endpoint;
    struct cw_flow *flow = cw_endpoint_flow(endpoint, sim_hosts_peer(&hosts, 0, 1));
    struct cw_operation operation = {.kind = CW_OPERATION_MESSAGE, .flow = flow};
    uint32_t free_count = endpoint->messages.free_count, lent = flow->credit.lent;
    flow->credit.owed = SLOTS;
    cw_messages_grant_along(endpoint, &operation);
    assert_int_equal(operation.granted_count, SLOTS);
    assert_int_equal(endpoint->messages.free_count, free_count - SLOTS);
    struct {
        struct cw_wire_frame frame;
        uint16_t slot;
    } guess = {{.kind = CW_FRAME_RETURN, .length = 1}, operation.granted[1]};
    assert_true(cw_messages_frame(endpoint, flow, &guess.frame, true));
    assert_true(cw_messages_frame(endpoint, flow, &guess.frame, false));
    cw_messages_ungrant(endpoint, &operation);
    assert_int_equal(endpoint->messages.free_count, free_count);
    assert_int_equal(flow->credit.lent, lent);
    uint32_t seen = 0;
    for (uint32_t slot = endpoint->messages.free_first; slot != UINT32_MAX;
         slot = endpoint->messages.slots[slot].next) {
        assert_true(++seen <= free_count);
    }
    assert_int_equal(seen, free_count);
}

/* Nothing lost, nothing twice, nothing else, for a broken pair at either side and at any time. */
static void broken_pairs_lose_nothing(void **state)
{
    verbs.jitter_ns = 20000;
    two_hosts();
    uint64_t drawn = 7;
    uint64_t posted = 0;
    for (uint32_t i = 0; i < BREAKS; i++) {
        for (uint32_t n = 0; n < PUTS_A_BREAK; n++) {
            uint64_t offset = posted % 300 * PUT_BYTES;
            memset(hosts.list[0].memory + offset, (int)(posted + 1), PUT_BYTES);
            assert_int_equal(put(hosts.list[0].memory + offset, PUT_BYTES, n % 2 * hosts.list[0].token, offset), CW_OK);
            posted++;
        }
        sim_hosts_run(&hosts, simulation_drawn(&drawn, 60) * SIMULATION_US);
        uint32_t side = (uint32_t)simulation_drawn(&drawn, 2);
        cw_rdma_break(hosts.list[side].endpoint, sim_hosts_peer(&hosts, side, 1 - side));
        host_run(side, 30 * SIMULATION_MS);
    }
    assert_true(counted(0, CW_COUNTER_RDMA_BROKEN) >= BREAKS);
    check_arrived(posted, 300 * PUT_BYTES);
    assert_int_equal(cw_rdma_state(hosts.list[0].endpoint, sim_hosts_peer(&hosts, 0, 1)), CW_RDMA_UP);
    assert_int_equal(counted(0, CW_COUNTER_RDMA_GIVEN_UP), 0);
}

/* The device is gone for good, the network is not: packets carry all. */
static void packets_take_over(void **state)
{
    verbs.retry_ns = 100000;
    two_hosts();
    cw_verbs_net_cut(hosts.verbs, 1, true);
    for (uint32_t i = 0; i < 50; i++) {
        memset(hosts.list[0].memory + i * PUT_BYTES, (int)i + 1, PUT_BYTES);
        assert_int_equal(put(hosts.list[0].memory + i * PUT_BYTES, PUT_BYTES, 0, i * PUT_BYTES), CW_OK);
    }
    sim_hosts_run(&hosts, 2000 * SIMULATION_MS);
    check_arrived(50, 50 * PUT_BYTES);
    for (uint32_t side = 0; side < 2; side++) {
        assert_int_equal(counted(side, CW_COUNTER_RDMA_GIVEN_UP), 1);
        assert_int_equal(cw_rdma_state(hosts.list[side].endpoint, sim_hosts_peer(&hosts, side, 1 - side)),
                         CW_RDMA_BY_PACKETS);
    }
}

/* A region of no bytes is none of the device's: packets bring its notifications, in the order of their lane. */
static void what_no_device_knows_goes_by_packets(void **state)
{
    two_hosts();
    uint64_t token;
    assert_int_equal(cw_region_register(hosts.list[1].endpoint, NULL, 0, CW_REGION_WRITE, &token), CW_OK);
    uint64_t data = counted(0, CW_COUNTER_DATA_OUT);
    uint64_t known = hosts.list[1].token;
    for (uint32_t i = 0; i < 20; i++) {
        hosts.list[1].token = i % 2 == 0 ? token : known;
        assert_int_equal(put(hosts.list[0].memory, i % 2 * 8, 0, i % 2 * 8 * i), CW_OK);
    }
    hosts.list[1].token = known;
    sim_hosts_run(&hosts, 50 * SIMULATION_MS);
    assert_int_equal(hosts.list[1].arrived_puts, 20);
    assert_int_equal(hosts.list[0].completed, 20);
    assert_true(counted(0, CW_COUNTER_DATA_OUT) >= data + 10);
}

/* A device that completes nothing any more, and reports that on request: packets take over, nothing is lost, and
 * nothing is notified twice. */
static void a_device_that_fails_is_replaced_by_packets(void **state)
{
    for (uint32_t which = 0; which < 2; which++) {
        two_hosts();
        for (uint32_t i = 0; i < 40; i++) {
            uint64_t place = (uint64_t)i * PUT_BYTES;
            assert_int_equal(put(hosts.list[0].memory + place, PUT_BYTES, 0, place), CW_OK);
            if (i == 20) {
                sim_hosts_run(&hosts, SIMULATION_MS / 200); /* some are under way */
                cw_verbs_net_fail(hosts.verbs, which);
            }
        }
        host_run(0, 4000 * SIMULATION_MS);
        assert_int_equal(hosts.list[1].arrived_puts, 40);
        assert_int_equal(hosts.list[0].completed, 40);
        assert_int_equal(hosts.list[0].failed + hosts.list[0].down + hosts.list[1].down, 0);
        assert_int_equal(cw_rdma_state(hosts.list[0].endpoint, sim_hosts_peer(&hosts, 0, 1)), CW_RDMA_BY_PACKETS);
        assert_true(cw_rdma_has_failed(hosts.list[which].endpoint));
        assert_false(cw_rdma_has_failed(hosts.list[1 - which].endpoint));
        sim_hosts_destroy(&hosts);
    }
}

/* A get whose session has ended may still be on its way: its memory, which the device keeps, stays taken until it
 * cannot come any more. */
static void memory_of_gets_is_busy_until_they_settle(void **state)
{
    two_hosts();
    struct sim_host *host = &hosts.list[0], *other = &hosts.list[1];
    uint64_t source, local;
    uint8_t *memory = calloc(1, PUT_BYTES);
    assert_non_null(memory);
    assert_int_equal(cw_region_register(other->endpoint, other->memory, PUT_BYTES, CW_REGION_READ, &source), CW_OK);
    assert_int_equal(cw_region_register(host->endpoint, memory, PUT_BYTES, CW_REGION_LOCAL, &local), CW_OK);
    const struct cw_get get = {
        .peer = sim_hosts_peer(&hosts, 0, 1), .region = source, .bytes = PUT_BYTES, .local_region = local};
    cw_simulator_stop(hosts.simulator, 1);
    cw_verbs_net_cut(hosts.verbs, 1, true);
    assert_int_equal(cw_get(host->endpoint, &get), CW_OK);
    assert_int_equal(cw_region_deregister(host->endpoint, local), CW_ERROR_BUSY);
    const struct cw_region *region = cw_region_of(&host->endpoint->regions, local);
    while (region->users > 0) { /* until the peer is given up */
        sim_host_wake(host);
        sim_hosts_run(&hosts, SIMULATION_MS / 100);
    }
    assert_non_null(((struct rdma *)host->endpoint->rdma)->spent_first);
    assert_int_equal(cw_region_deregister(host->endpoint, local), CW_ERROR_BUSY);
    sim_host_wake(host);
    sim_hosts_run(&hosts, 10 * SIMULATION_MS);
    assert_int_equal(cw_region_deregister(host->endpoint, local), CW_OK);
    free(memory);
}

/* A host without a device says so when the session is set up: no frame about queue pairs leaves, and packets carry all.
 * */
static void a_peer_without_a_device_is_reported_nothing(void **state)
{
    struct sim_hosts_config config = sim_hosts_config_of(3);
    config.verbs = &verbs;
    config.verbs_count = 2;
    hosts_make(&config);
    struct sim_host *with = &hosts.list[0], *without = &hosts.list[2];
    uint32_t peer = sim_hosts_peer(&hosts, 0, 2);
    const struct cw_put to = {
        .peer = peer, .region = without->token, .source = {.contiguous = {.data = with->memory, .bytes = 100}}};
    const struct cw_put back = {.peer = sim_hosts_peer(&hosts, 2, 0),
                                .region = with->token,
                                .source = {.contiguous = {.data = without->memory, .bytes = 100}}};
    assert_int_equal(cw_put(with->endpoint, &to), CW_OK);
    sim_hosts_run(&hosts, 50 * SIMULATION_MS);
    assert_int_equal(cw_put(without->endpoint, &back), CW_OK);
    sim_hosts_run(&hosts, 50 * SIMULATION_MS);
    assert_int_equal(without->arrived_puts + with->arrived_puts, 2);
    assert_int_equal(cw_rdma_state(with->endpoint, peer), CW_RDMA_NONE);
    assert_int_equal(cw_verbs_net_counters(hosts.verbs)->work, 0);
    assert_int_equal(counted(0, CW_COUNTER_DATA_OUT), 1);
    assert_int_equal(cw_peer_connect(with->endpoint, sim_hosts_peer(&hosts, 0, 1)), CW_OK);
    sim_hosts_run(&hosts, 50 * SIMULATION_MS);
    assert_int_equal(cw_rdma_state(with->endpoint, sim_hosts_peer(&hosts, 0, 1)), CW_RDMA_UP);
}

/* A peer whose process is stopped does not give receive buffers back: it is given up in time, as by packets. */
static void a_stopped_peer_fails_in_time(void **state)
{
    verbs.receive_max = 80;
    two_hosts();
    cw_simulator_stop(hosts.simulator, 1);
    uint64_t start_ns = sim_hosts_now(&hosts);
    uint32_t posted = 0;
    while (posted < 200 && put(hosts.list[0].memory, 8, 0, 8 * posted) == CW_OK) {
        posted++;
    }
    uint64_t bound_ns = hosts.config.endpoint.failure_timeout_ns;
    sim_hosts_run(&hosts, bound_ns + bound_ns / 4);
    assert_int_equal(hosts.list[0].down, 1);
    assert_int_equal(hosts.list[0].down_status, CW_ERROR_PEER_FAILED);
    assert_true(hosts.list[0].down_ns - start_ns <= bound_ns + bound_ns / 5);
    assert_int_equal(hosts.list[0].completed, posted);
    assert_true(hosts.list[0].failed >= posted - 80);
}

/* ---- memory, tokens ---- */

static void memory_is_bounded(void **state)
{
    two_hosts();
    struct cw_rdma_memory memory = cw_rdma_memory(hosts.list[0].endpoint);
    printf("receive buffers %llu bytes, staging %llu, a peer %llu, a queue pair %llu\n",
           (unsigned long long)memory.receive_bytes, (unsigned long long)memory.staging_bytes,
           (unsigned long long)memory.peer_bytes, (unsigned long long)memory.pair_bytes);
    const struct cw_endpoint_config *config = &hosts.config.endpoint;
    assert_true(memory.receive_bytes <=
                (config->pool_slot_count + RDMA_BUFFERS_SPARE) * (config->pool_slot_bytes + 64ull) + 4096);
    assert_true(memory.staging_bytes <= 1 << 20);
    assert_true(memory.peer_bytes <= 384 && memory.pair_bytes <= 384);
    assert_int_equal(memory.group_bytes, 0); /* without a group */
}

static void tokens_stand_for_keys(void **state)
{
    struct rdma rdma = {.token_key = {1, 2, 3}}, other = {.token_key = {3, 2, 1}};
    uint64_t drawn = 3;
    uint32_t taken = 0, tried = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t key = (uint32_t)simulation_drawn(&drawn, 1ull << 31) << 1, read_key;
        uint64_t base = simulation_drawn(&drawn, 4096), read_base;
        uint64_t token = rdma_token_key(&rdma, key, base) << 16 | i;
        assert_true(rdma_token_read(&rdma, token, &read_key, &read_base));
        assert_int_equal(read_key, key);
        assert_int_equal(read_base, base);
        for (uint32_t bit = 16; bit < 64; bit++) { /* one that was changed is of none, or of another key */
            bool is_one = rdma_token_read(&rdma, token ^ 1ull << bit, &read_key, &read_base);
            assert_true(!is_one || read_key != key || read_base != base);
            taken += is_one;
            tried++;
        }
        (void)rdma_token_read(&other, token, &read_key, &read_base);
        assert_true(read_key != key);
    }
    assert_true(taken > tried / 24 && taken < tried / 11); /* one of sixteen */
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, hosts_end, tokens_stand_for_keys, memory_is_bounded, a_put_is_one_work_request,
                          credit_goes_along, slots_are_released_once, broken_pairs_lose_nothing, packets_take_over,
                          what_no_device_knows_goes_by_packets, a_device_that_fails_is_replaced_by_packets,
                          memory_of_gets_is_busy_until_they_settle, a_peer_without_a_device_is_reported_nothing,
                          a_stopped_peer_fails_in_time);
}
