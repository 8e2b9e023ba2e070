/* The Wireshark dissector reads every packet of a run: all types and frames are made in the simulator, written to a file through DPDK's
 * pcap device, and read back by tshark with the dissector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/sim_hosts.h"
#include "dataplane/port/ethdev.h"
#include "tests/skip.h"

enum { LINE_BYTES = 4096, MEMORY_BYTES = 1 << 16 };

struct capture {
    struct cw_port *port;
    uint64_t frames;
};

static void tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node, const uint8_t *frame,
                uint32_t length)
{
    struct capture *capture = context;
    (void)time_ns;
    (void)node;
    if (kind != CW_SIMULATOR_DEPARTURE) {
        return;
    }
    struct cw_transmit packet;
    assert_int_equal(cw_port_reserve(capture->port, &packet, 1), 1);
    memcpy(packet.data, frame, length);
    packet.length = length;
    assert_int_equal(cw_port_transmit(capture->port, &packet, 1), 1);
    capture->frames++;
}

static void run_for(struct sim_hosts *hosts, uint64_t duration_ns)
{
    cw_simulator_run_until(hosts->simulator, cw_simulator_now(hosts->simulator) + duration_ns);
}

/* Traffic that makes every type of packet and every kind of frame. */
static void make_traffic(struct sim_hosts *hosts)
{
    struct sim_host *near = &hosts->list[0];
    struct sim_host *far = &hosts->list[1];
    uint32_t peer = sim_hosts_peer(hosts, 0, 1);
    uint32_t third = sim_hosts_peer(hosts, 2, 1);
    struct cw_put put = {.peer = peer,
                         .lane_tag = cw_lane_tag(3, 77),
                         .region = far->token,
                         .source = {.contiguous = {.data = near->memory, .bytes = 100}}};
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* HELLO, HELLO_REPLY, PROBE, ACK, PUT */
    run_for(hosts, 1000000);
    put.source.contiguous.bytes = 20000;
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* PART */
    sim_host_wake(near);
    put.region ^= 1ull << 40;
    put.source.contiguous.bytes = 100;
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* REJECT, VOID */
    sim_host_wake(near);
    struct cw_get get = {
        .peer = peer, .region = far->token, .bytes = 3000, .local_region = near->token, .lane_tag = cw_lane_tag(1, 2)};
    assert_int_equal(cw_get(near->endpoint, &get), CW_OK); /* GET */
    sim_host_wake(near);
    struct cw_message message = {.peer = peer, .source = {.contiguous = {.data = near->memory, .bytes = 64}}};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(cw_message_send(near->endpoint, &message), CW_OK); /* ASK, GRANT */
    }
    sim_host_wake(near);
    run_for(hosts, 3000000);
    /* the pool has 8 slots, and the first sender keeps what it was lent again until others ask: RECALL, RETURN */
    message.peer = third;
    message.source.contiguous.data = hosts->list[2].memory;
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(cw_message_send(hosts->list[2].endpoint, &message), CW_OK);
    }
    sim_host_wake(&hosts->list[2]);
    run_for(hosts, 20000000);
}

static const char *const wanted[] = {
    "causeway.type == 1",       "causeway.type == 2",       "causeway.type == 3",       "causeway.type == 4",
    "causeway.type == 5",       "causeway.type == 6",       "causeway.type == 7",       "causeway.frame.kind == 1",
    "causeway.frame.kind == 2", "causeway.frame.kind == 3", "causeway.frame.kind == 4", "causeway.frame.kind == 5",
    "causeway.frame.kind == 6", "causeway.frame.kind == 7", "causeway.frame.kind == 8",
};

/* How many packets of the file tshark finds by `filter`. */
static uint64_t count_packets(const char *folder, const char *filter)
{
    char command[LINE_BYTES];
    snprintf(command, sizeof(command),
             "tshark -X lua_script:%s/dataplane/wire/causeway.lua -r %s/capture.pcap -Y '%s' 2>%s/errors",
             getenv("CW_SOURCE"), folder, filter, folder);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    uint64_t lines = 0;
    char line[LINE_BYTES];
    while (fgets(line, sizeof(line), output) != NULL) {
        lines++;
    }
    assert_int_equal(pclose(output), 0);
    return lines;
}

static void check_field(const char *folder, const char *filter)
{
    if (count_packets(folder, filter) == 0) {
        fail_msg("tshark finds no packet with %s", filter);
    }
}

static void test_every_packet_is_decoded(void **state)
{
    (void)state;
    char folder[] = "/tmp/causeway-dissector-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char arguments[128];
    char error[CW_PORT_TEXT_BYTES] = "";
    snprintf(arguments, sizeof(arguments), "tx_pcap=%s/capture.pcap", folder);
    struct cw_port_ethdev_config device;
    cw_port_ethdev_config_init(&device);
    device.device = "net_pcap0";
    device.device_arguments = arguments;
    struct capture capture = {0};
    if (cw_port_ethdev_open(&device, &capture.port, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }

    struct sim_hosts_config config;
    sim_hosts_config_init(&config, 3);
    config.memory_bytes = MEMORY_BYTES;
    config.endpoint.pool_slot_count = 8;
    struct sim_hosts hosts;
    assert_int_equal(sim_hosts_create(&hosts, &config, error, sizeof(error)), CW_OK);
    cw_simulator_tap_set(hosts.simulator, tap, &capture);
    make_traffic(&hosts);
    /* BYE leaves when an endpoint is destroyed; the tap sees it as long as the simulator lives */
    cw_endpoint_destroy(hosts.list[0].endpoint);
    hosts.list[0].endpoint = NULL;
    cw_simulator_attach(hosts.simulator, 0, NULL, NULL);
    run_for(&hosts, 1000000);
    sim_hosts_destroy(&hosts);
    cw_port_close(capture.port);

    assert_true(capture.frames > 40);
    assert_int_equal(count_packets(folder, "causeway"), capture.frames);
    assert_int_equal(
        count_packets(folder, "_ws.malformed || causeway.malformed || _ws.lua.error || ip.checksum.status == 0"), 0);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        check_field(folder, wanted[i]);
    }
    /* values, not just presence */
    check_field(
        folder,
        "causeway.put.lane == 3 && causeway.put.tag == 77 && causeway.frame.length == 100 && causeway.put.offset == 0");
    check_field(folder, "causeway.part.total == 20000 && causeway.part.position > 0");
    check_field(folder, "causeway.get.bytes == 3000");
    check_field(folder, "causeway.hello.sender_ipv4 == 0x0a000001 && causeway.hello.receiver_ipv4 == 0x0a000002");

    char command[256];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    if (system("tshark --version >/dev/null 2>&1") != 0) {
        test_skip("tshark is not installed");
    }
    if (getenv("CW_SOURCE") == NULL) {
        fprintf(stderr, "CW_SOURCE must name the project's folder\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_packet_is_decoded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
