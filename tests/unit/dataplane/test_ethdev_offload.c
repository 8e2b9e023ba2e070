/* Offloads of real drivers: two taps of the kernel's, joined by a bridge, with a driver that writes and verifies UDP
 * checksums; the rest by reports of drivers. */
#include "tests/unit/dataplane/ethdev_testing.h"

#include "dataplane/base/clock.h"
#include "dataplane/dataplane.h"
#include "dataplane/wire/wire.h"

enum { PAYLOAD_BYTES = 1000, PUT_BYTES = 20000, PUTS = 60, SIDES = 2 };

static void command_try(const char *command, const char *without)
{
    if (system(command) != 0) {
        case_skip(without);
    }
}

static struct cw_port *tap_open(uint32_t number, uint32_t offloads)
{
    char device[16], arguments[32];
    snprintf(device, sizeof(device), "net_tap%u", number);
    snprintf(arguments, sizeof(arguments), "iface=cwt%u", number);
    struct cw_port_ethdev_config config = config_of(device, arguments, 1500);
    config.offloads = offloads;
    return port_open(&config);
}

/* CW_TEST_DEVICES=A,B: two that are joined by a cable, in place of the taps. */
static bool devices_open(struct cw_port *ports[SIDES], uint32_t offloads)
{
    const char *text = getenv("CW_TEST_DEVICES");
    struct cw_port_ethdev_config config;
    char names[SIDES][64];
    if (text == NULL || sscanf(text, "%63[^,],%63[^,]", names[0], names[1]) != SIDES) {
        return false;
    }
    for (uint32_t i = 0; i < SIDES; i++) {
        cw_port_ethdev_config_init(&config);
        config.device = names[i];
        config.offloads = offloads;
        ports[i] = port_open(&config);
    }
    for (uint32_t i = 0; i < SIDES; i++) {
        link_wait(ports[i], true);
    }
    return true;
}

/* Two taps on a bridge, in a network namespace of their own. */
static void taps_join(struct cw_port *ports[SIDES])
{
    if (devices_open(ports, CW_OFFLOADS_AUTO)) {
        return;
    }
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {
        case_skip("taps need /dev/net/tun");
    }
    namespace_enter();
    command_try("ip link add cwbr type bridge 2>/dev/null && ip link set cwbr up", "the kernel has no bridge");
    for (uint32_t i = 0; i < SIDES; i++) {
        ports[i] = tap_open(i, CW_OFFLOADS_AUTO);
    }
    /* the driver gives the kernel's end its own address, and a bridge keeps what is for its own ends */
    command_try("for i in 0 1; do ip link set cwt$i address 02:00:00:00:01:0$i master cwbr up || exit 1; done",
                "the kernel bridges no taps");
}

static void report_find(const struct cw_port *port, enum cw_port_offload offload, struct cw_offload_report *report)
{
    struct cw_offload_report reports[CW_PORT_OFFLOADS];
    cw_port_ethdev_offloads(port, reports);
    *report = reports[offload];
}

/* ---- single packets ---- */

static void packet_send(struct cw_port *from, const struct cw_port *to, bool asks, uint16_t error)
{
    struct cw_transmit packet;
    struct cw_wire_network network;
    CHECK(cw_port_reserve(from, &packet, 1) == 1);
    CHECK(!packet.checksum && packet.departure_ns == 0);
    cw_wire_network_init(&network, from->info.mac, to->info.mac, 0x0a000001, 0x0a000002, CW_UDP_PORT, CW_UDP_PORT);
    cw_wire_network_finish(&network, PAYLOAD_BYTES);
    memcpy(packet.data, &network, sizeof(network));
    memset(packet.data + sizeof(network), 0x37, CW_WIRE_HEADER_BYTES + PAYLOAD_BYTES);
    packet.data[sizeof(network)] = CW_WIRE_VERSION;
    packet.data[sizeof(network) + 1] = CW_WIRE_DATA;
    packet.data[sizeof(network) + 2] = packet.data[sizeof(network) + 3] = 0;
    packet.data[sizeof(network) + 26] = PAYLOAD_BYTES & 255;
    packet.data[sizeof(network) + 27] = PAYLOAD_BYTES >> 8;
    packet.length = CW_WIRE_OVERHEAD_BYTES + PAYLOAD_BYTES;
    packet.checksum = asks;
    if (error != 0) {
        uint16_t checksum = cw_wire_udp_checksum(packet.data, packet.length, true);
        cw_wire_udp_checksum_store(packet.data, checksum ^ error, true);
    }
    CHECK(cw_port_transmit(from, &packet, 1) == 1);
}

/* The next packet of ours: the port's report, and the correct one. */
static enum cw_port_checksum packet_receive(struct cw_port *port, bool *is_present, bool *is_right)
{
    const struct cw_ip own = cw_ip_v4(0x0a000002);
    for (;;) {
        struct cw_received packet;
        const struct cw_wire_header *header;
        if (cw_port_receive(port, &packet, 1) == 0) {
            continue;
        }
        bool is_ours = cw_wire_parse(packet.data, packet.length, &own, CW_UDP_PORT, 1, 0, &header) == CW_WIRE_GOOD;
        enum cw_port_checksum said = packet.checksum;
        if (is_ours) {
            *is_present = cw_wire_udp_checksum_present(header);
            *is_right = cw_wire_udp_checksum_right(header, true);
        }
        cw_port_release(port, &packet, 1);
        if (is_ours) {
            return said;
        }
    }
}

static void case_tap_checksums(int descriptor, const void *argument)
{
    struct cw_port *ports[SIDES];
    bool is_present, is_right;
    taps_join(ports);
    CHECK(ports[0]->info.checksum_out && ports[1]->info.checksum_in);
    packet_send(ports[0], ports[1], true, 0);
    CHECK(packet_receive(ports[1], &is_present, &is_right) == CW_PORT_CHECKSUM_GOOD);
    CHECK(is_present && is_right); /* as the driver has written it */
    for (uint32_t bit = 0; bit < 16; bit++) {
        packet_send(ports[0], ports[1], false, (uint16_t)(1u << bit));
        CHECK(packet_receive(ports[1], &is_present, &is_right) == CW_PORT_CHECKSUM_BAD);
        CHECK(is_present && !is_right); /* no hop has corrected it */
    }
    packet_send(ports[0], ports[1], false, 0);
    CHECK(packet_receive(ports[1], &is_present, &is_right) != CW_PORT_CHECKSUM_BAD);
    CHECK(!is_present);
    struct cw_offload_report out, in;
    report_find(ports[0], CW_OFFLOAD_CHECKSUM_OUT, &out);
    report_find(ports[1], CW_OFFLOAD_CHECKSUM_IN, &in);
    CHECK(out.has && out.used && out.done == 1 && in.done >= 17);
    /* off and on again, and put away for good */
    CHECK(cw_port_ethdev_offload_switch(ports[1], CW_OFFLOAD_CHECKSUM_IN, false) == CW_OK);
    CHECK(!ports[1]->info.checksum_in);
    packet_send(ports[0], ports[1], false, 1);
    CHECK(packet_receive(ports[1], &is_present, &is_right) == CW_PORT_CHECKSUM_UNKNOWN);
    CHECK(cw_port_ethdev_offload_switch(ports[1], CW_OFFLOAD_CHECKSUM_IN, true) == CW_OK);
    CHECK(ports[1]->info.checksum_in);
    CHECK(cw_port_ethdev_offload_switch(ports[1], CW_OFFLOAD_ARRIVAL, true) == CW_ERROR_UNSUPPORTED);
    cw_port_doubt(ports[1], CW_OFFLOAD_CHECKSUM_IN);
    report_find(ports[1], CW_OFFLOAD_CHECKSUM_IN, &in);
    CHECK(!ports[1]->info.checksum_in && in.has && !in.used && strstr(in.why, "put away") != NULL);
    for (uint32_t i = 0; i < SIDES; i++) {
        cw_port_close(ports[i]);
    }
}

CASE_TEST(tap_checksums)

/* ---- a session ---- */

struct side {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    uint8_t memory[PUT_BYTES];
    uint64_t token;
    uint64_t arrived;
};

static void side_open(struct side *side, uint32_t number)
{
    struct cw_endpoint_config config;
    char error[CW_PORT_TEXT_BYTES] = "";
    cw_endpoint_config_init(&config);
    config.address = (struct cw_address){.ip = cw_ip_v4(0x0a000001 + number), .udp_port = CW_UDP_PORT};
    memset(config.job_key, 0x5a, sizeof(config.job_key));
    config.seed = 7 + number;
    config.peer_count_max = 4;
    config.accept_unknown = true;
    CHECK(cw_endpoint_create(&config, side->port, cw_clock_ns(), &side->endpoint, error, sizeof(error)) == CW_OK);
    CHECK(cw_region_register(side->endpoint, side->memory, sizeof(side->memory), CW_REGION_WRITE, &side->token) ==
          CW_OK);
}

static void side_turn(struct side *side)
{
    struct cw_event events[16];
    (void)cw_endpoint_fetch(side->endpoint);
    (void)cw_endpoint_turn(side->endpoint, cw_clock_ns());
    uint32_t count = cw_endpoint_events(side->endpoint, events, 16);
    for (uint32_t i = 0; i < count; i++) {
        side->arrived += events[i].kind == CW_EVENT_PUT;
    }
}

/* Puts between two endpoints on the taps, each verified: after trials and rehearsals, without CRC. */
static void case_tap_session(int descriptor, const void *argument)
{
    static struct side sides[SIDES];
    struct cw_port *ports[SIDES];
    uint32_t peer;
    taps_join(ports);
    for (uint32_t i = 0; i < SIDES; i++) {
        sides[i].port = ports[i];
        side_open(&sides[i], i);
    }
    struct cw_address address = cw_endpoint_address(sides[1].endpoint);
    CHECK(cw_peer_add(sides[0].endpoint, &address, &peer) == CW_OK);
    for (uint32_t put_number = 0; put_number < PUTS; put_number++) {
        memset(sides[0].memory, (int)put_number + 1, PUT_BYTES);
        struct cw_put put = {.peer = peer,
                             .region = sides[1].token,
                             .source = {.contiguous = {.data = sides[0].memory, .bytes = PUT_BYTES}}};
        while (cw_put(sides[0].endpoint, &put) != CW_OK) { /* the put before it is not acknowledged yet */
            side_turn(&sides[0]);
            side_turn(&sides[1]);
        }
        while (sides[1].arrived <= put_number) {
            side_turn(&sides[0]);
            side_turn(&sides[1]);
        }
        CHECK(memcmp(sides[0].memory, sides[1].memory, PUT_BYTES) == 0);
    }
    uint64_t summed = cw_endpoint_counter(sides[1].endpoint, CW_COUNTER_SUMMED_IN);
    uint64_t trials = cw_endpoint_counter(sides[1].endpoint, CW_COUNTER_TRIALS_IN);
    printf("%llu packets without CRC after %llu trials\n", (unsigned long long)summed, (unsigned long long)trials);
    fflush(stdout);
    CHECK(summed > 0 && trials >= CW_TRIALS_NEEDED);
    CHECK(cw_endpoint_counter(sides[1].endpoint, CW_COUNTER_CHECKSUM_LIES) == 0);
    for (uint32_t i = 0; i < SIDES; i++) {
        cw_endpoint_destroy(sides[i].endpoint);
        cw_port_close(ports[i]);
    }
}

CASE_TEST(tap_session)

/* ---- what drivers say ---- */

static void case_reports(int descriptor, const void *argument)
{
    struct cw_port_ethdev_config config = config_of("net_ring0", NULL, 1500);
    struct cw_offload_report reports[CW_PORT_OFFLOADS];
    config.offloads = CW_OFFLOADS_ALL;
    struct cw_port *port = port_open(&config);
    cw_port_ethdev_offloads(port, reports);
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        CHECK(reports[i].offload == i && !reports[i].has && !reports[i].used && strlen(reports[i].why) > 10);
    }
    cw_port_doubt(port, CW_OFFLOAD_STEER); /* an absent offload can be doubted */
    cw_port_close(port);
}

CASE_TEST(reports)

int main(void)
{
    return TESTS_RUN(test_reports, test_tap_checksums, test_tap_session);
}
