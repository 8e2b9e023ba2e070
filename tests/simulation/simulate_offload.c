/* NICs with offloads: correct, slow, absent and lying ones, each lie alone. Random worlds: simulate_correctness.c. */
#include "tests/simulation/fixture.h"

#include "dataplane/state/endpoint.h"

enum { PUT_BYTES = 20000, PUTS = 100 };

/* ---- UDP checksums ---- */

static void two_hosts(enum cw_simulator_offload out, enum cw_simulator_offload in,
                      const struct sim_hosts_config *changed)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config = changed != NULL ? *changed : config;
    config.nic.offloads[CW_OFFLOAD_CHECKSUM_OUT] = (uint8_t)out;
    config.nic.offloads[CW_OFFLOAD_CHECKSUM_IN] = (uint8_t)in;
    config.nic.checks_frames = true;
    hosts_make(&config);
}

static void send_all(void)
{
    (void)sim_stream_send(&hosts, 0, 1, PUT_BYTES, PUTS, 2000 * SIMULATION_MS);
    assert_completed(0, PUTS);
}

/* The CRC is left out exactly where both ports do their part, and neither requires it. */
static void both_ends_must_take_part(void **state)
{
    for (uint32_t out = 0; out <= 1; out++) {
        for (uint32_t in = 0; in <= 1; in++) {
            for (uint32_t software = 0; software <= 1; software++) {
                struct sim_hosts_config config = sim_hosts_config_of(2);
                config.endpoint.end_to_end = software == 1;
                two_hosts(out, in, &config);
                send_all();
                bool takes_part = out == 1 && in == 1 && software == 0;
                assert_true((counted(1, CW_COUNTER_SUMMED_IN) > 100) == takes_part);
                assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT) > 0, takes_part);
                assert_int_equal(counted(0, CW_COUNTER_TRIALS_OUT) >= CW_TRIALS_NEEDED, takes_part);
                assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 0);
            }
        }
    }
}

static void a_share_is_verified_in_software(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    send_all();
    uint64_t believed = counted(1, CW_COUNTER_SUMMED_IN);
    uint64_t verified = counted(1, CW_COUNTER_SUMMED_VERIFIED);
    printf("%llu packets believed, %llu verified\n", (unsigned long long)believed, (unsigned long long)verified);
    assert_true(verified >= believed / CW_TRUST_SHARE && verified < believed / CW_TRUST_SHARE * 2 + 10);
}

/* As vmxnet3 in QEMU: nothing is gained, and the peer is not asked for trials for ever. */
static void a_mute_port_is_left_alone(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_MUTE, NULL);
    for (uint32_t round = 0; round < 10; round++) {
        send_all();
    }
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), 0);
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 0);
    assert_true(counted(0, CW_COUNTER_TRIALS_OUT) <= CW_TRIALS_ASKED + 2);
}

static void a_liar_is_never_believed(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_LYING, NULL);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), 0);
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 1);
    assert_false(hosts.list[1].port->info.checksum_in); /* put away */
}

static void a_port_is_tried_anew_after_its_link_was_down(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_LYING_LATER, NULL);
    send_all();
    uint64_t before = counted(0, CW_COUNTER_SUMMED_OUT);
    assert_true(before > 100);
    cw_simulator_partition(hosts.simulator, 1, true);
    sim_hosts_run(&hosts, SIMULATION_MS);
    cw_simulator_partition(hosts.simulator, 1, false);
    send_all();
    send_all();
    /* believed no more from the first packet on; the sender hears so a round trip later */
    uint64_t after = counted(0, CW_COUNTER_SUMMED_OUT);
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 1);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), after);
}

/* A sender's NIC that spoils checksums is found out while the CRC is still there. */
static void a_port_that_writes_wrong_ones_is_not_used(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_LYING, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), 0);
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 0);
    assert_int_equal(counted(1, CW_COUNTER_DROP_CHECKSUM), 0);
}

/* ... or, if it begins when its link was down, by packets with both. */
static void a_sender_rehearses_after_its_link_was_down(void **state)
{
    two_hosts(CW_SIMULATOR_OFFLOAD_LYING_LATER, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    uint64_t before = counted(0, CW_COUNTER_SUMMED_OUT);
    assert_true(before > 100);
    cw_simulator_partition(hosts.simulator, 0, true);
    sim_hosts_run(&hosts, SIMULATION_MS);
    cw_simulator_partition(hosts.simulator, 0, false);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), before);
    assert_int_equal(counted(1, CW_COUNTER_DROP_CHECKSUM), 0);
}

/* A path that alters packets behind every frame's check has CRCs again. */
static void a_path_that_alters_has_crcs(void **state)
{
    struct cw_simulator_nic nic = {.offloads = {[CW_OFFLOAD_CHECKSUM_OUT] = CW_SIMULATOR_OFFLOAD_HONEST,
                                                [CW_OFFLOAD_CHECKSUM_IN] = CW_SIMULATOR_OFFLOAD_HONEST}};
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    nic.upsets = 0.01;
    cw_port_sim_nic(hosts.simulator, 1, &nic);
    send_all();
    uint64_t before = counted(0, CW_COUNTER_SUMMED_OUT);
    assert_true(counted(1, CW_COUNTER_DROP_CHECKSUM) > 0);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), before);
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 0);
}

/* One that begins to lie while its link is up is found by the next trial, half the time of trust later. */
static void a_late_liar_is_found_by_a_later_trial(void **state)
{
    struct cw_simulator_nic nic = {.offloads = {[CW_OFFLOAD_CHECKSUM_OUT] = CW_SIMULATOR_OFFLOAD_HONEST,
                                                [CW_OFFLOAD_CHECKSUM_IN] = CW_SIMULATOR_OFFLOAD_LYING}};
    two_hosts(CW_SIMULATOR_OFFLOAD_HONEST, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    cw_port_sim_nic(hosts.simulator, 1, &nic);
    send_all();
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 0);
    sim_hosts_run(&hosts, CW_TRUST_NS / 2);
    send_all();
    send_all();
    assert_int_equal(counted(1, CW_COUNTER_CHECKSUM_LIES), 1);
    uint64_t before = counted(0, CW_COUNTER_SUMMED_OUT);
    send_all();
    assert_int_equal(counted(0, CW_COUNTER_SUMMED_OUT), before);
}

/* ---- rules ---- */

static void one_offload(enum cw_port_offload offload, enum cw_simulator_offload how,
                        const struct sim_hosts_config *changed)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config = changed != NULL ? *changed : config;
    config.nic.offloads[offload] = (uint8_t)how;
    hosts_make(&config);
}

/* UDP to another port of the same host, as any other program's. */
static void foreign_inject(uint32_t count)
{
    struct cw_address to = cw_endpoint_address(hosts.list[1].endpoint);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t frame[CW_WIRE_NETWORK_BYTES + CW_WIRE_HEADER_BYTES] = {0};
        struct cw_wire_network *network = (struct cw_wire_network *)frame;
        cw_wire_network_init(network, to.mac, to.mac, 0x0a0000fe, cw_ip_to_v4(&to.ip), 53, 5353);
        cw_wire_network_finish(network, 0);
        assert_int_equal(cw_simulator_inject(hosts.simulator, 1, frame, sizeof(frame)), CW_OK);
        sim_hosts_run(&hosts, 10 * SIMULATION_US);
    }
}

static void rules_keep_others_out(void **state)
{
    enum { FOREIGN = 50 };
    static const struct {
        enum cw_simulator_offload how;
        bool passes;
    } rows[] = {
        {CW_SIMULATOR_OFFLOAD_ABSENT, true}, {CW_SIMULATOR_OFFLOAD_HONEST, false}, {CW_SIMULATOR_OFFLOAD_SLOW, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        one_offload(CW_OFFLOAD_STEER, rows[i].how, NULL);
        foreign_inject(FOREIGN);
        send_all();
        assert_int_equal(counted(1, CW_COUNTER_DROP_FOREIGN), rows[i].passes ? FOREIGN : 0);
        assert_int_equal(cw_simulator_node_counters(hosts.simulator, 1)->dropped_rule, rows[i].passes ? 0 : FOREIGN);
    }
}

/* Rules that take our packets, too, cost time until they are put away; rules that vanish are made up for. */
static void rules_that_lie_lose_nothing(void **state)
{
    static const enum cw_simulator_offload lies[] = {CW_SIMULATOR_OFFLOAD_LYING, CW_SIMULATOR_OFFLOAD_LYING_LATER};
    for (size_t i = 0; i < 2; i++) {
        one_offload(CW_OFFLOAD_STEER, lies[i], NULL);
        for (uint32_t round = 0; round < 5; round++) {
            send_all();
            foreign_inject(8);
            cw_simulator_partition(hosts.simulator, 1, true);
            sim_hosts_run(&hosts, SIMULATION_MS);
            cw_simulator_partition(hosts.simulator, 1, false);
        }
        assert_true(cw_simulator_node_counters(hosts.simulator, 1)->dropped_rule > 0);
        assert_true(counted(1, CW_COUNTER_DROP_FOREIGN) > 0);
        assert_int_equal(hosts.list[0].down + hosts.list[1].down, 0);
    }
}

/* A rule that lets nothing of a peer through would be there for ever. */
static void silence_puts_rules_away(void **state)
{
    one_offload(CW_OFFLOAD_STEER, CW_SIMULATOR_OFFLOAD_HONEST, NULL);
    send_all();
    cw_simulator_link_down(hosts.simulator, 0)->down = true; /* nothing comes back */
    struct sim_stream stream;
    sim_stream_start(&hosts, &stream, 0, 1, PUT_BYTES, 1);
    sim_hosts_run(&hosts, 100 * SIMULATION_MS);
    assert_false(hosts.list[0].port->info.steers);
    assert_int_equal(counted(0, CW_COUNTER_DOUBTS), 1);
    cw_simulator_link_down(hosts.simulator, 0)->down = false;
    (void)sim_stream_finish(&hosts, 0, 2000 * SIMULATION_MS);
    assert_int_equal(hosts.list[0].completed, 1);
}

/* ---- times of arrival ---- */

static uint64_t round_trip(enum cw_simulator_offload how, uint64_t *lies, bool *is_on)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.node.processing_delay_ns = 200 * SIMULATION_US; /* as a process that sleeps */
    one_offload(CW_OFFLOAD_ARRIVAL, how, &config);
    send_all();
    struct cw_peer_info info = peer_info(0, 0);
    *lies = counted(0, CW_COUNTER_ARRIVAL_LIES);
    *is_on = hosts.list[0].port->info.arrivals;
    return info.round_trip_min_ns;
}

/* The time that a process takes to wake is no part of the round trip, if its NIC tells when packets came. */
static void round_trips_are_those_of_the_network(void **state)
{
    uint64_t lies;
    bool is_on;
    uint64_t without_ns = round_trip(CW_SIMULATOR_OFFLOAD_ABSENT, &lies, &is_on);
    uint64_t honest_ns = round_trip(CW_SIMULATOR_OFFLOAD_HONEST, &lies, &is_on);
    assert_true(is_on && lies == 0);
    uint64_t lying_ns = round_trip(CW_SIMULATOR_OFFLOAD_LYING, &lies, &is_on);
    printf("round trip: %.1f us by software, %.1f with times of arrival, %.1f with a clock that jumps (%llu lies)\n",
           (double)without_ns / 1e3, (double)honest_ns / 1e3, (double)lying_ns / 1e3, (unsigned long long)lies);
    assert_true(without_ns > 200 * SIMULATION_US && honest_ns < 100 * SIMULATION_US);
    assert_true(lies == CW_ARRIVAL_LIES_MAX && !is_on);
    assert_true(lying_ns >= honest_ns && lying_ns <= without_ns);
}

/* ---- times of departure ---- */

struct line {
    uint64_t last_ns;
    uint64_t early_max_ns; /* that a frame left before the shaper's time for it */
    uint64_t frames;
};

/* Full frames of node 0 on a line of 1 Gb/s: how much closer they are than at the rate of the shaper. */
static void line_watch(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                       const uint8_t *frame, uint32_t length)
{
    enum { FRAME_NS = (1514 + CW_ETHERNET_OVERHEAD_BYTES) * 8 };
    struct line *line = context;
    if (kind != CW_SIMULATOR_DEPARTURE || node != 0 || length < 1500) {
        return;
    }
    uint64_t gap_ns = time_ns - line->last_ns;
    if (line->frames++ > 0 && gap_ns < FRAME_NS && FRAME_NS - gap_ns > line->early_max_ns) {
        line->early_max_ns = FRAME_NS - gap_ns;
    }
    line->last_ns = time_ns;
}

static struct line shaped(enum cw_simulator_offload how, uint64_t turn_ns, uint64_t *lies)
{
    struct line line = {0};
    struct cw_traffic traffic = {.shaper = 0};
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.turn_ns = turn_ns; /* the loop is late by as much */
    config.node.up.delay_ns = config.node.down.delay_ns = SIMULATION_US;
    one_offload(CW_OFFLOAD_DEPARTURE, how, &config);
    struct cw_endpoint *endpoint = hosts.list[0].endpoint;
    assert_int_equal(cw_shaper_set(endpoint, 0, 1000000000, 500 * SIMULATION_US), CW_OK);
    assert_int_equal(cw_peer_traffic(endpoint, sim_hosts_peer(&hosts, 0, 1), &traffic), CW_OK);
    send_all(); /* path MTU, congestion window */
    cw_simulator_tap_set(hosts.simulator, line_watch, &line);
    send_all();
    *lies = counted(0, CW_COUNTER_DEPARTURE_LIES);
    return line;
}

/* A loop that is late lets frames out in bunches; a NIC that has them ahead, each at its time. */
static void frames_leave_at_their_time(void **state)
{
    uint64_t lies;
    struct line software = shaped(CW_SIMULATOR_OFFLOAD_ABSENT, 30 * SIMULATION_US, &lies);
    struct line nic = shaped(CW_SIMULATOR_OFFLOAD_HONEST, 30 * SIMULATION_US, &lies);
    assert_int_equal(lies, 0);
    /* a frame that leaves too soon is found out if it is heard of before its time */
    struct line lying = shaped(CW_SIMULATOR_OFFLOAD_LYING, SIMULATION_US, &lies);
    printf("closer than the shaper has it: %.1f us by software, %.1f by the NIC, %.1f by one that lies (%llu lies)\n",
           (double)software.early_max_ns / 1e3, (double)nic.early_max_ns / 1e3, (double)lying.early_max_ns / 1e3,
           (unsigned long long)lies);
    assert_true(software.frames > 1000 && nic.frames > 1000 && lying.frames > 1000);
    assert_true(software.early_max_ns > 5 * SIMULATION_US && nic.early_max_ns < SIMULATION_US);
    assert_int_equal(lies, 1); /* then it is put away */
}

int main(void)
{
    return HOSTS_TESTS_RUN(both_ends_must_take_part, a_share_is_verified_in_software, a_mute_port_is_left_alone,
                           a_liar_is_never_believed, a_port_is_tried_anew_after_its_link_was_down,
                           a_port_that_writes_wrong_ones_is_not_used, a_sender_rehearses_after_its_link_was_down,
                           a_path_that_alters_has_crcs, a_late_liar_is_found_by_a_later_trial, rules_keep_others_out,
                           rules_that_lie_lose_nothing, silence_puts_rules_away, round_trips_are_those_of_the_network,
                           frames_leave_at_their_time);
}
