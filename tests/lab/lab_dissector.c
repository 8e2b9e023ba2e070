/* The Wireshark dissector reads every packet of a run: all types and frames are made in the simulator, written to a
 * file through DPDK's pcap device, and read back by tshark with the dissector. Packets of multicast are written again
 * with a value of its own in each field. */
#include <inttypes.h>

#include "dataplane/port/ethdev.h"
#include "mcast/mcast.h"
#include "mcast/packet.h"
#include "tests/simulation/hosts.h"
#include "tests/skip.h"
#include "tests/test.h"

enum { MEMORY_BYTES = 1 << 16, HOSTS = 3 };

struct capture {
    struct cw_port *port;
    uint64_t frames;
};

static void frame_write(struct capture *capture, const uint8_t *frame, uint32_t length)
{
    struct cw_transmit packet;
    assert_int_equal(cw_port_reserve(capture->port, &packet, 1), 1);
    memcpy(packet.data, frame, length);
    packet.length = length;
    assert_int_equal(cw_port_transmit(capture->port, &packet, 1), 1);
    capture->frames++;
}

static void tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node, const uint8_t *frame,
                uint32_t length)
{
    if (kind == CW_SIMULATOR_DEPARTURE) {
        frame_write(context, frame, length);
    }
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
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* HELLO, HELLO_REPLY, ACK, PUT */
    sim_hosts_run(hosts, 1000000);
    assert_int_equal(cw_peer_probe(near->endpoint, peer), CW_OK); /* PROBE */
    put.source.contiguous.bytes = 20000;
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* PART */
    sim_host_wake(near);
    put.region ^= 1ull << 40;
    put.source.contiguous.bytes = 100;
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* REJECT, VOID */
    sim_host_wake(near);
    const struct cw_compression compression = {.mode = CW_COMPRESSION_ON};
    assert_int_equal(cw_endpoint_compress(near->endpoint, &compression), CW_OK);
    put.region ^= 1ull << 40;
    put.source.contiguous.bytes = 12000;
    put.offset = 40000;
    memset(near->memory, 0, 12000);
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK); /* CHUNK */
    sim_host_wake(near);
    struct cw_get get = {.element = CW_ELEMENT_DOUBLE,
                         .peer = peer,
                         .region = far->token,
                         .bytes = 3000,
                         .local_region = near->token,
                         .lane_tag = cw_lane_tag(1, 2)};
    assert_int_equal(cw_get(near->endpoint, &get), CW_OK); /* GET */
    sim_host_wake(near);
    struct cw_message message = {.peer = peer, .source = {.contiguous = {.data = near->memory, .bytes = 64}}};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(cw_message_send(near->endpoint, &message), CW_OK); /* ASK, GRANT */
    }
    sim_host_wake(near);
    sim_hosts_run(hosts, 3000000);
    /* the pool has 8 slots, and the first sender keeps what it was lent again until others ask: RECALL, RETURN */
    message.peer = third;
    message.source.contiguous.data = hosts->list[2].memory;
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(cw_message_send(hosts->list[2].endpoint, &message), CW_OK);
    }
    sim_host_wake(&hosts->list[2]);
    sim_hosts_run(hosts, 20000000);
}

/* ---- multicast ---- */

/* A group of all hosts. Its sender's packets do not all arrive, so that every type is seen. */
static void make_multicast(struct sim_hosts *hosts)
{
    enum { MESSAGES = 4 };
    struct cw_mcast *mcasts[HOSTS];
    struct cw_mcast_group *groups[HOSTS];
    struct cw_mcast_config config;
    char error[200] = "";
    cw_mcast_config_init(&config);
    for (uint32_t self = 0; self < HOSTS; self++) {
        uint32_t *peers = sim_hosts_peers(hosts, self, HOSTS);
        struct cw_mcast_group_config group = {
            .id = 0x0123456789abcdef,
            .member_count = HOSTS,
            .self = self,
            .peers = peers,
            .ipv4 = 0xef000001,
            .epoch = 1,
        };
        assert_int_equal(cw_mcast_create(&config, hosts->list[self].endpoint, &mcasts[self], error, sizeof(error)),
                         CW_OK);
        assert_int_equal(cw_mcast_open(mcasts[self], &group, &groups[self], NULL, 0), CW_OK);
        free(peers);
    }
    sim_link_lose(cw_simulator_link_down(hosts->simulator, 2), 0.5);
    struct cw_mcast_put put = {
        .data = hosts->list[0].memory, .bytes = 5000, .lane_tag = cw_lane_tag(5, 6), .element = CW_ELEMENT_PLAIN};
    for (uint32_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(cw_mcast_send(groups[0], &put), CW_OK);
    }
    memset(hosts->list[0].memory, 0, 5000);
    put = (struct cw_mcast_put){.head = "0123456789", .head_bytes = 10, .data = hosts->list[0].memory, .bytes = 5000};
    assert_int_equal(cw_mcast_send(groups[0], &put), CW_OK); /* with a chunk */
    sim_host_wake(&hosts->list[0]);
    sim_hosts_run(hosts, 10000000);
    sim_link_lose(cw_simulator_link_down(hosts->simulator, 2), 0);
    for (uint32_t self = 0; self < HOSTS; self++) {
        cw_mcast_destroy(mcasts[self]);
    }
}

struct field {
    const char *name; /* behind "causeway.mcast." */
    uint32_t offset;
    uint32_t bytes;
};

/* As in mcast/WIRE.md. */
static const struct field prefix_fields[] = {
    {"group_high", 0, 4}, {"author", 4, 2}, {"sender", 6, 2}, {"epoch", 8, 4}, {"reserved", 12, 4}, {0},
};

static const struct {
    uint32_t type;
    uint32_t bytes;
    struct field fields[14];
} layouts[] = {
    {CW_MCAST_DATA,
     sizeof(struct cw_mcast_data) + 5,
     {{"round_trip", 16, 4},
      {"flags", 20, 2},
      {"reserved16", 22, 2},
      {"lane_tag", 24, 4},
      {"place", 28, 4},
      {"message", 32, 8},
      {"position", 40, 8},
      {"total", 48, 8}}},
    {CW_MCAST_STATE,
     sizeof(struct cw_mcast_state),
     {{"round_trip", 16, 4}, {"flags", 20, 2}, {"reserved16", 22, 2}, {"next", 24, 8}}},
    {CW_MCAST_ACK,
     sizeof(struct cw_mcast_ack),
     {{"laggard", 16, 2},
      {"unreached", 18, 2},
      {"pause", 20, 4},
      {"received", 24, 8},
      {"released", 32, 8},
      {"registered", 40, 8}}},
    {CW_MCAST_NAK,
     sizeof(struct cw_mcast_nak) + 2 * sizeof(struct cw_wire_run),
     {{"run_count", 16, 4},
      {"reserved", 20, 4},
      {"from", 24, 8},
      {"run.missing", 32, 2},
      {"run.received", 34, 2},
      {"run.missing", 36, 2},
      {"run.received", 38, 2}}},
    {CW_MCAST_FLOOD_PROBE, sizeof(struct cw_mcast_prefix), {{0}}},
};
enum {
    LAYOUTS = sizeof(layouts) / sizeof(layouts[0]),
    MARK = 0x5eed0000, /* of packets that are made by hand */
    OTHER_PORT = 40000 /* none of Causeway's: recognized by its contents */
};

/* Byte `at` of a type's contents. Each number that is made of them is another one, and no other packet has it. */
static uint8_t byte_of(size_t layout, uint32_t at)
{
    bool is_run_count = layouts[layout].type == CW_MCAST_NAK && at >= 16 && at < 20;
    bool is_flags = layouts[layout].type <= CW_MCAST_STATE && at == 20;
    return is_run_count ? at == 16 ? 2 : 0
                        : (uint8_t)(is_flags ? 0x80 | layout % 2 | (1 - layout % 2) << 1 : 0x81 + at);
}

static void make_marked(struct capture *capture)
{
    static const uint8_t from[6] = {2, 0, 0, 0, 0, 1}, to[6] = {2, 0, 0, 0, 0, 2};
    for (size_t layout = 0; layout < LAYOUTS; layout++) {
        uint8_t frame[CW_WIRE_OVERHEAD_BYTES + 128];
        struct cw_wire_header header = {
            .version = CW_WIRE_VERSION,
            .type = (uint8_t)layouts[layout].type,
            .number = MARK,
            .payload_bytes = (uint16_t)layouts[layout].bytes,
        };
        struct cw_wire_network network;
        uint16_t port = layout == 0 ? OTHER_PORT : CW_UDP_PORT;
        cw_wire_network_init(&network, from, to, 0x0a000001, 0x0a000002, port, port);
        cw_wire_network_finish(&network, header.payload_bytes);
        memcpy(frame, &network, sizeof(network));
        memcpy(frame + CW_WIRE_NETWORK_BYTES, &header, sizeof(header));
        for (uint32_t at = 0; at < header.payload_bytes; at++) {
            frame[CW_WIRE_OVERHEAD_BYTES + at] = byte_of(layout, at);
        }
        frame_write(capture, frame, CW_WIRE_OVERHEAD_BYTES + header.payload_bytes);
    }
}

static struct cw_ip ip_first(bool is_v6)
{
    struct cw_ip ip;
    assert_true(cw_ip_read(is_v6 ? "fd77::1" : "10.0.0.1", &ip));
    return ip;
}

/* A sealed session from its set-up to its end; how many packets. */
static uint64_t make_sealed(struct capture *capture, bool is_v6)
{
    struct sim_hosts hosts;
    char error[200] = "";
    uint64_t before = capture->frames;
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.endpoint.encryption = CW_ENCRYPTION_REQUIRED;
    config.ip_first = ip_first(is_v6);
    assert_true_msg(sim_hosts_create(&hosts, &config, error, sizeof(error)) == CW_OK, "%s", error);
    cw_simulator_tap_set(hosts.simulator, tap, capture);
    struct cw_put put = {.peer = sim_hosts_peer(&hosts, 0, 1),
                         .region = hosts.list[1].token,
                         .source = {.contiguous = {.data = hosts.list[0].memory, .bytes = 5000}}};
    assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_OK);
    sim_host_wake(&hosts.list[0]);
    sim_hosts_run(&hosts, 5000000);
    assert_int_equal(cw_peer_probe(hosts.list[0].endpoint, 0), CW_OK);
    assert_int_equal(hosts.list[1].arrived_puts, 1);
    sim_hosts_destroy(&hosts);
    return capture->frames - before;
}

/* A session between NICs that write and verify UDP checksums. */
static void make_summed(struct capture *capture, bool is_v6)
{
    struct sim_hosts hosts;
    char error[200] = "";
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.ip_first = ip_first(is_v6);
    config.nic.offloads[CW_OFFLOAD_CHECKSUM_OUT] = CW_SIMULATOR_OFFLOAD_HONEST;
    config.nic.offloads[CW_OFFLOAD_CHECKSUM_IN] = CW_SIMULATOR_OFFLOAD_HONEST;
    assert_int_equal(sim_hosts_create(&hosts, &config, error, sizeof(error)), CW_OK);
    cw_simulator_tap_set(hosts.simulator, tap, capture);
    struct cw_put put = {.peer = sim_hosts_peer(&hosts, 0, 1),
                         .region = hosts.list[1].token,
                         .source = {.contiguous = {.data = hosts.list[0].memory, .bytes = 60000}}};
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_OK);
        sim_host_wake(&hosts.list[0]);
        sim_hosts_run(&hosts, 1000000);
    }
    assert_int_equal(hosts.list[1].arrived_puts, 20);
    sim_hosts_destroy(&hosts);
}

/* A session whose ends have RDMA devices, of which one goes away: OFFER, ACCEPT, NONE. */
static void make_pairs(struct capture *capture)
{
    struct cw_verbs_net_config verbs;
    struct sim_hosts hosts;
    char error[200] = "";
    cw_verbs_net_config_init(&verbs);
    verbs.retry_ns = 100000;
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.verbs = &verbs;
    assert_int_equal(sim_hosts_create(&hosts, &config, error, sizeof(error)), CW_OK);
    cw_simulator_tap_set(hosts.simulator, tap, capture);
    struct cw_put put = {.peer = sim_hosts_peer(&hosts, 0, 1),
                         .region = hosts.list[1].token,
                         .source = {.contiguous = {.data = hosts.list[0].memory, .bytes = 100}}};
    assert_int_equal(cw_peer_connect(hosts.list[0].endpoint, put.peer), CW_OK);
    sim_hosts_run(&hosts, 10000000);
    cw_verbs_net_cut(hosts.verbs, 1, true);
    assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_OK);
    sim_host_wake(&hosts.list[0]);
    sim_hosts_run(&hosts, 2000000000);
    assert_int_equal(hosts.list[1].arrived_puts, 1);
    sim_hosts_destroy(&hosts);
}

static const char *const wanted[] = {
    "causeway.type == 1",
    "causeway.type == 2",
    "causeway.type == 3",
    "causeway.type == 4",
    "causeway.type == 5",
    "causeway.type == 6",
    "causeway.type == 7",
    "causeway.frame.kind == 1",
    "causeway.frame.kind == 2",
    "causeway.frame.kind == 3",
    "causeway.frame.kind == 4",
    "causeway.frame.kind == 5",
    "causeway.frame.kind == 6",
    "causeway.frame.kind == 7",
    "causeway.frame.kind == 8",
    "causeway.type == 16",
    "causeway.type == 17",
    "causeway.type == 18",
    "causeway.type == 19",
    "causeway.type == 20",
    "causeway.type == 8",
    "causeway.rdma.kind == 1 && causeway.rdma.incarnation == 1 && causeway.rdma.previous == 0",
    "causeway.rdma.kind == 1 && causeway.rdma.mtu_bytes == 1024 && causeway.rdma.reads == 16",
    "causeway.frame.kind == 9 && causeway.rdma.kind == 2 && causeway.rdma.incarnation == 1",
    "causeway.rdma.kind == 3 && causeway.rdma.incarnation == 4294967295 && causeway.rdma.previous > 0",
    "causeway.frame.kind == 10 && causeway.chunk.codec == 1 && causeway.chunk.raw_bytes == 12000 && "
    "causeway.frame.length == 8",
    "causeway.frame.kind == 10 && causeway.part.total == 12000 && causeway.part.position == 0 && "
    "causeway.chunk.parameter == 0",
    "causeway.frame.kind == 4 && causeway.frame.length == 5",
    "causeway.type == 16 && causeway.mcast.flags.packed == 1 && causeway.chunk.codec == 1 && "
    "causeway.chunk.raw_bytes == 5000 && causeway.mcast.head_bytes == 10",
};

static const char *const over_v6[] = {
    "ipv6 && causeway.part.total == 20000 && causeway.part.position > 0",
    "ipv6.dst == ff15::ef00:1 && eth.dst == 33:33:ef:00:00:01 && causeway.type == 16",
    "ipv6.src == fd77::1 && causeway.hello.sender_ip == fd77::1 && causeway.hello.receiver_ip == fd77::2",
    "ipv6 && causeway.type == 3 && causeway.sealed.count > 2",
};

/* The questions for tshark, all at once: the number of packets that match each filter. */
enum { QUESTIONS_MAX = 150, FILTER_BYTES = 1024, ANY = -1 };

static struct question {
    char filter[FILTER_BYTES];
    int64_t expected; /* ANY: at least one */
} questions[QUESTIONS_MAX];
static uint32_t question_count;

static void count_packets(const char *filter, int64_t expected)
{
    assert_true(question_count < QUESTIONS_MAX && strlen(filter) < FILTER_BYTES && strpbrk(filter, ",'") == NULL);
    struct question *question = &questions[question_count++];
    strcpy(question->filter, filter);
    question->expected = expected;
}

static void check_field(const char *filter)
{
    count_packets(filter, ANY);
}

/* tshark counts by all filters in one pass: a table with the columns frames and bytes for each. */
static void answers_check(const char *folder)
{
    static char command[QUESTIONS_MAX * (FILTER_BYTES + 1) + 512], line[64 * QUESTIONS_MAX];
    size_t used = (size_t)snprintf(command, sizeof(command),
                                   "tshark -q -o udp.check_checksum:TRUE -X lua_script:%s/dataplane/wire/causeway.lua "
                                   "-r %s/capture.pcap -z 'io,stat,0",
                                   getenv("CW_SOURCE"), folder);
    for (uint32_t i = 0; i < question_count; i++) {
        used += (size_t)snprintf(command + used, sizeof(command) - used, ",%s", questions[i].filter);
    }
    snprintf(command + used, sizeof(command) - used, "' 2>%s/errors", folder);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    uint32_t answered = 0;
    while (fgets(line, sizeof(line), output) != NULL) {
        const char *at = strstr(line, "<>") == NULL ? NULL : strchr(strstr(line, "<>"), '|'); /* the row of times */
        for (; at != NULL && answered < question_count; answered++) {
            const struct question *question = &questions[answered];
            int64_t frames;
            assert_int_equal(sscanf(at, "| %" SCNd64 " |", &frames), 1);
            assert_true_msg(question->expected == ANY ? frames > 0 : frames == question->expected,
                            "tshark finds %" PRId64 " packets, not %" PRId64 ", with %s", frames, question->expected,
                            question->filter);
            at = strchr(strchr(at + 1, '|') + 1, '|'); /* behind the bytes */
        }
    }
    assert_int_equal(pclose(output), 0);
    assert_int_equal(answered, question_count);
}

static void check_sealed(uint64_t frames)
{
    count_packets("causeway.flags.encrypted == 1", (int64_t)frames);
    count_packets("causeway.flags.encrypted == 1 && causeway.sealed.mac && causeway.sealed.secret", (int64_t)frames);
    count_packets("causeway.flags.encrypted == 1 && (causeway.number || causeway.data || causeway.hello.session)", 0);
    check_field("causeway.type == 1 && causeway.sealed.nonce && causeway.flow == 0");
    check_field("causeway.type == 2 && causeway.sealed.nonce");
    check_field(
        "causeway.type == 3 && causeway.sealed.count > 2 && causeway.sealed.flow == 0 && causeway.sealed.phase");
    check_field("causeway.type == 4 && causeway.sealed.count == 0");
    check_field("causeway.type == 5 && causeway.sealed.count > 0");
    check_field("causeway.type == 7 && causeway.sealed.count > 0");
}

static size_t field_add(char *filter, size_t used, size_t layout, const struct field *field)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < field->bytes; i++) {
        value |= (uint64_t)byte_of(layout, field->offset + i) << 8 * i;
    }
    return used + (size_t)snprintf(filter + used, FILTER_BYTES - used, " && causeway.mcast.%s == %#llx", field->name,
                                   (unsigned long long)value);
}

/* Every field of the marked packets has the value of the bytes at its place, and the bits of flags are
 * distinguished. */
static void check_marked(void)
{
    for (size_t layout = 0; layout < LAYOUTS; layout++) {
        char filter[FILTER_BYTES];
        uint32_t type = layouts[layout].type;
        size_t used = (size_t)snprintf(filter, sizeof(filter), "causeway.type == %u && causeway.number == %u", type,
                                       (unsigned)MARK);
        count_packets(filter, 1);
        for (const struct field *field = prefix_fields; field->name != NULL; field++) {
            used = field_add(filter, used, layout, field);
        }
        for (const struct field *field = layouts[layout].fields; field->name != NULL; field++) {
            used = field_add(filter, used, layout, field);
        }
        if (type <= CW_MCAST_STATE) {
            snprintf(filter + used, sizeof(filter) - used,
                     " && causeway.mcast.flags.long == %zu && causeway.mcast.flags.pass_on == %zu", layout % 2,
                     1 - layout % 2);
        }
        check_field(filter);
    }
}

/* Everything that is not sealed, over one kind of IP. */
static void make_all(struct capture *capture, bool is_v6)
{
    struct sim_hosts hosts;
    char error[200] = "";
    struct sim_hosts_config config = sim_hosts_config_of(HOSTS);
    config.memory_bytes = MEMORY_BYTES;
    config.endpoint.pool_slot_count = 8;
    config.ip_first = ip_first(is_v6);
    assert_int_equal(sim_hosts_create(&hosts, &config, error, sizeof(error)), CW_OK);
    cw_simulator_tap_set(hosts.simulator, tap, capture);
    make_traffic(&hosts);
    make_multicast(&hosts);
    sim_hosts_close(&hosts, 0); /* BYE leaves, and the tap sees it as long as the simulator lives */
    sim_hosts_run(&hosts, 1000000);
    sim_hosts_destroy(&hosts);
}

static void test_every_packet_is_decoded(void **state)
{
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
    assert_true_msg(cw_port_ethdev_open(&device, &capture.port, error, sizeof(error)) == CW_OK, "%s", error);
    uint64_t sealed = 0;
    make_marked(&capture);
    for (int family = 0; family < 2; family++) {
        make_all(&capture, family == 1);
        sealed += make_sealed(&capture, family == 1);
        make_summed(&capture, family == 1);
    }
    make_pairs(&capture);
    cw_port_close(capture.port);
    assert_true(capture.frames > 40);
    count_packets("causeway || igmp || icmpv6", (int64_t)capture.frames);
    count_packets("infiniband", 0); /* as on RoCE's port */
    count_packets("_ws.malformed || causeway.malformed || _ws.lua.error || ip.checksum.status == 0", 0);
    count_packets("udp && (ipv6 || udp.checksum != 0) && udp.checksum.status != 1 && causeway.type != 8", 0);
    count_packets("causeway.type == 8 && udp.checksum.status == 1", 0);
    count_packets("causeway.flags.summed == 1 && causeway.checksum == 0", 0);
    check_field("causeway.flags.summed == 1 && causeway.type == 3 && ip.version == 4 && udp.checksum.status == 1");
    check_field("causeway.flags.summed == 1 && causeway.type == 3 && ipv6 && udp.checksum.status == 1");
    check_field("causeway.type == 1 && causeway.flags.rdma == 1");
    check_field("causeway.type == 2 && causeway.flags.rdma == 1");
    check_field("causeway.type == 1 && causeway.flags.rdma == 0");
    check_field("udp.port == 40000 && causeway");
    check_field("causeway.ack.flags.sums == 0 && causeway.ack.flags.try == 1");
    check_field("causeway.ack.flags.sums == 1 && causeway.ack.flags.try == 0");
    count_packets("icmpv6 && icmpv6.checksum.status != 1", 0);
    check_field("icmpv6.type == 131 && icmpv6.mld.multicast_address == ff15::ef00:1 && ipv6.opt.router_alert == 0");
    check_field("icmpv6.type == 132 && ipv6.dst == ff02::2");
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        check_field(wanted[i]);
    }
    /* values, not just presence */
    check_field(
        "causeway.put.lane == 3 && causeway.put.tag == 77 && causeway.frame.length == 100 && causeway.put.offset == 0");
    check_field("causeway.part.total == 20000 && causeway.part.position > 0");
    check_field("causeway.get.bytes == 3000");
    check_field("causeway.mcast.total == 5000 && causeway.mcast.position > 0 && causeway.mcast.lane_tag == 0x500006");
    check_field("causeway.mcast.run.missing > 0 && causeway.mcast.author == 2");
    for (size_t i = 0; i < sizeof(over_v6) / sizeof(over_v6[0]); i++) {
        check_field(over_v6[i]);
    }
    check_marked();
    check_sealed(sealed);
    check_field("causeway.type == 1 && causeway.hello.peer_session == 0");
    check_field("causeway.type == 1 && causeway.hello.peer_session != 0");
    check_field("causeway.hello.sender_ip == ::ffff:10.0.0.1 && causeway.hello.receiver_ip == ::ffff:10.0.0.2");
    answers_check(folder);
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
    return TESTS_RUN(test_every_packet_is_decoded);
}
