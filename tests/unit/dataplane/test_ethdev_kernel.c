/* Ethdev port over the kernel's interfaces: af_packet on a veth pair, tap, each in a network namespace of
 * its own. */
#include "tests/unit/dataplane/ethdev_testing.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>

static void command_run(const char *command)
{
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        _exit(1);
    }
}

/* Packets of 1,500 bytes: raised by the ports where they need more. */
static void veth_make(void)
{
    namespace_enter();
    command_run("ip link set lo up");
    if (system("ip link add cwa mtu 1500 type veth peer name cwb mtu 1500 2>/dev/null") != 0) {
        case_skip("the kernel has no veth");
    }
    command_run("ip link set cwa up && ip link set cwb up");
}

/* Waits for our frame `expected`; others' (the kernel says hello on its interfaces) are passed over. */
static void frame_expect(struct cw_port *port, uint32_t length, uint32_t expected)
{
    for (;;) {
        struct cw_received packet;
        uint32_t number = 0;
        if (cw_port_receive(port, &packet, 1) == 0) {
            cw_port_sleep(port, NS_PER_HOUR);
            continue;
        }
        bool ours = frame_check(&packet, &number) && number == expected && packet.length == length;
        cw_port_release(port, &packet, 1);
        if (ours) {
            return;
        }
    }
}

/* The descriptor of a port, with which an event loop waits. Frames come from another port, or from a socket of the
 * kernel. */
static void descriptor_shows(struct cw_port *to, void (*send)(const void *from, uint32_t number), const void *from)
{
    struct pollfd shown = {.fd = cw_port_descriptor(to), .events = POLLIN};
    CHECK(shown.fd >= 0);
    for (uint32_t number = 1000; number < 1200; number++) {
        while (cw_port_arm(to)) { /* frames of the kernel's own */
            struct cw_received packet;
            cw_port_disarm(to);
            CHECK(cw_port_receive(to, &packet, 1) == 1);
            cw_port_release(to, &packet, 1);
        }
        send(from, number);
        CHECK(poll(&shown, 1, TEST_HANG_S * 1000) == 1 && shown.revents == POLLIN);
        cw_port_disarm(to);
        frame_expect(to, 200, number);
    }
}

static void port_send(const void *from, uint32_t number)
{
    frame_send(*(struct cw_port *const *)from, 200, number);
}

static void ports_exchange(struct cw_port *a, struct cw_port *b, uint32_t mtu_bytes)
{
    for (uint32_t number = 0; number < 2000; number++) {
        uint32_t length = number % 2 == 0 ? mtu_bytes + 14 : 60 + number % 1000;
        frame_send(a, length, number);
        frame_expect(b, length, number);
        frame_send(b, length, number);
        frame_expect(a, length, number);
    }
}

/* Header in the buffer, the rest out of registered memory. */
static void ports_gather(struct cw_port *a, struct cw_port *b)
{
    static uint8_t source[1400];
    struct cw_port_memory *memory = NULL;
    CHECK(cw_port_memory_register(a, source, sizeof(source), &memory) == CW_OK);
    for (uint32_t number = 0; number < 500; number++) {
        struct cw_transmit packet;
        CHECK(cw_port_reserve(a, &packet, 1) == 1);
        frame_fill(source, sizeof(source), number);
        memcpy(packet.data, source, 60);
        packet.length = 60;
        packet.piece_count = 2;
        packet.pieces[0] = (struct cw_piece){.data = source + 60, .length = 700, .memory = memory};
        packet.pieces[1] = (struct cw_piece){.data = source + 760, .length = 640, .memory = memory};
        CHECK(cw_port_transmit(a, &packet, 1) == 1);
        frame_expect(b, sizeof(source), number);
    }
    CHECK(cw_port_memory_unregister(a, memory) == CW_OK);
}

static void case_af_packet(int descriptor, const void *argument)
{
    uint32_t mtu_bytes = *(const uint32_t *)argument;
    veth_make();
    struct cw_port *ports[2] = {port_of("net_af_packet0", "iface=cwa", mtu_bytes),
                                port_of("net_af_packet1", "iface=cwb", mtu_bytes)};
    const uint8_t group[6] = {0x01, 0, 0x5e, 1, 2, 3};
    CHECK(ports[0]->info.gather && ports[0]->info.wait == CW_PORT_WAIT_DESCRIPTOR);
    CHECK(memcmp(ports[0]->info.mac, ports[1]->info.mac, 6) != 0);
    CHECK(cw_port_join(ports[1], group) == CW_OK && cw_port_leave(ports[1], group) == CW_OK);
    ports_exchange(ports[0], ports[1], mtu_bytes);
    ports_gather(ports[0], ports[1]);
    cw_port_close(ports[0]);
    cw_port_close(ports[1]);
}

/* Sends `count` frames of a length that the device refuses, as fast as the port takes them, then one that it takes. */
static void rejected_pass(struct cw_port *a, struct cw_port *b, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        frame_send(a, 1400, number);
    }
    struct cw_received packet;
    bool came = false;
    while (!came) { /* the kernel retries waiting frames when the port sends another one */
        frame_send(a, 200, number + 1);
        while (!came && cw_port_receive(b, &packet, 1) == 1) {
            uint32_t got = 0;
            came = frame_check(&packet, &got) && got == number + 1;
            CHECK(!(frame_check(&packet, &got) && got == number));
            cw_port_release(b, &packet, 1);
        }
    }
}

/* A frame that the device refuses does not block the frames behind it, whether the queueing discipline, the MTU, or a
 * link that is down is the reason. */
static void case_af_packet_rejected(int descriptor, const void *argument)
{
    veth_make();
    struct cw_port_ethdev_config a = config_of("net_af_packet0", "iface=cwa,qdisc_bypass=0", 1500);
    struct cw_port *ports[2] = {port_open(&a), port_of("net_af_packet1", "iface=cwb", 1500)};
    CHECK(ports[0]->info.refused == 0);
    if (system("tc qdisc add dev cwa root tbf rate 1gbit burst 1000 limit 100000 2>/dev/null") == 0) {
        rejected_pass(ports[0], ports[1], 1, 1);
        CHECK(ports[0]->info.refused == 1);
        rejected_pass(ports[0], ports[1], 300, 3);
        CHECK(ports[0]->info.refused == 301);
        command_run("tc qdisc del dev cwa root");
    }
    command_run("ip link set cwa mtu 600");
    rejected_pass(ports[0], ports[1], 300, 5);
    command_run("ip link set cwa mtu 1500");
    command_run("ip link set cwa down");
    for (uint32_t i = 0; i < 300; i++) {
        struct cw_transmit packet;
        if (cw_port_reserve(ports[0], &packet, 1) == 1) {
            frame_fill(packet.data, 200, 7);
            packet.length = 200;
            if (cw_port_transmit(ports[0], &packet, 1) == 0) {
                cw_port_cancel(ports[0], &packet, 1);
            }
        }
    }
    command_run("ip link set cwa up");
    rejected_pass(ports[0], ports[1], 0, 8);
    command_run("ip link set cwa down");
    command_run("ip link set cwa up");
    descriptor_shows(ports[0], port_send, &ports[1]);
    cw_port_close(ports[0]);
    cw_port_close(ports[1]);
}

enum { PORT_FIRST = 4000, PORTS = 3, PORT_GROUP = 29300, OTHERS_BYTES = 200 };

/* A frame of an IP packet, from another host. */
static void datagram_write(uint8_t frame[OTHERS_BYTES], const char *to, uint8_t protocol, uint16_t to_port)
{
    static const uint8_t from[6] = {2, 0, 0, 0, 0, 9};
    struct cw_ip ip;
    CHECK(cw_ip_read(to, &ip));
    bool is_v4 = cw_ip_is_v4(&ip);
    memset(frame, 0, OTHERS_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, from, 6);
    frame[12] = is_v4 ? 0x08 : 0x86;
    frame[13] = is_v4 ? 0x00 : 0xdd;
    frame[14] = is_v4 ? 0x45 : 0x65; /* of IPv6 the class is anything */
    frame[is_v4 ? 23 : 20] = protocol;
    to_port = htons(to_port);
    memcpy(frame + (is_v4 ? 30 : 38), ip.bytes + (is_v4 ? 12 : 0), is_v4 ? 4 : 16);
    memcpy(frame + (is_v4 ? 36 : 56), &to_port, 2);
}

struct selection_row {
    const char *to;
    uint8_t protocol;
    uint16_t port;
    bool comes;
};

#define OWN_V4     "10.1.2.3"
#define OWN_V6     "fd77::1:2:3"
#define ROWS(rows) ((uint32_t)(sizeof(rows) / sizeof((rows)[0])))

static const struct selection_row rows_v4[] = {
    {OWN_V4, 17, PORT_FIRST, true},      {OWN_V4, 17, PORT_FIRST + PORTS - 1, true},
    {OWN_V4, 17, PORT_FIRST - 1, false}, {OWN_V4, 17, PORT_FIRST + PORTS, false},
    {OWN_V4, 17, PORT_GROUP, false},     {OWN_V4, 6, PORT_FIRST, false}, /* TCP */
    {"10.1.2.9", 17, PORT_FIRST, false}, {"239.1.2.3", 17, PORT_GROUP, true},
    {OWN_V6, 17, PORT_FIRST, false},     {"239.1.2.3", 17, PORT_FIRST, false},
    {OWN_V4, 17, PORT_FIRST + 1, true}, /* the last */
};

static const struct selection_row rows_v6[] = {
    {OWN_V6, 17, PORT_FIRST, true},
    {OWN_V6, 17, PORT_FIRST + PORTS - 1, true},
    {OWN_V6, 17, PORT_FIRST - 1, false},
    {OWN_V6, 17, PORT_FIRST + PORTS, false},
    {OWN_V6, 17, PORT_GROUP, false},
    {OWN_V6, 6, PORT_FIRST, false},
    {OWN_V6, 44, PORT_FIRST, false}, /* a fragment */
    {"fd77::1:2:4", 17, PORT_FIRST, false},
    {"fd77::1:0:2:3", 17, PORT_FIRST, false},
    {"fd77:0:1::1:2:3", 17, PORT_FIRST, false},
    {"fd78::1:2:3", 17, PORT_FIRST, false},
    {"ff15::ef01:203", 17, PORT_GROUP, true},
    {"ff15::ef01:203", 17, PORT_FIRST, false},
    {"ff02::ef01:203", 17, PORT_GROUP, false},
    {"239.1.2.3", 17, PORT_GROUP, false},
    {OWN_V6, 17, PORT_FIRST + 1, true}, /* the last */
};

/* Of the frames sent at `by`, which may be the port's own interface, those that are admitted; each once. */
static void selection_watch(struct cw_port *port, int by, const struct selection_row *rows, uint32_t count)
{
    uint8_t frame[OTHERS_BYTES];
    struct cw_received early; /* packets of the kernel on the interface before the driver's socket had its filter */
    while (cw_port_receive(port, &early, 1) > 0) {
        cw_port_release(port, &early, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        datagram_write(frame, rows[i].to, rows[i].protocol, rows[i].port);
        CHECK(send(by, frame, sizeof(frame), 0) == (ssize_t)sizeof(frame));
    }
    for (uint32_t at = 0; at < count;) {
        struct cw_received packet;
        if (cw_port_receive(port, &packet, 1) == 0) {
            cw_port_sleep(port, NS_PER_HOUR);
            continue;
        }
        while (!rows[at].comes) {
            at++;
        }
        datagram_write(frame, rows[at].to, rows[at].protocol, rows[at].port);
        CHECK(packet.length == OTHERS_BYTES && memcmp(packet.data, frame, OTHERS_BYTES) == 0);
        at++;
        cw_port_release(port, &packet, 1);
    }
}

static int raw_open(const char *interface)
{
    const struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface)};
    int file = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    CHECK(file >= 0 && bind(file, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return file;
}

/* A port that shares its interface with the host gets what is its own, from the wire and from others at the same
 * interface; and the kernel is member of its groups. */
static void case_selection(int descriptor, const void *argument)
{
    veth_make();
    command_run("ip addr add " OWN_V4 "/24 dev cwa");
    const uint8_t group[6] = {0x01, 0, 0x5e, 1, 2, 3};
    struct cw_port_ethdev_config config = config_of("net_af_packet0", "iface=cwa", 1500);
    config.selection = (struct cw_port_selection){
        .ip = cw_ip_v4(0x0a010203), .udp_port = PORT_FIRST, .udp_port_count = PORTS, .group_port = PORT_GROUP};
    struct cw_port *port = port_open(&config);
    CHECK(port->info.reports && port->info.wait == CW_PORT_WAIT_DESCRIPTOR);
    CHECK(cw_port_join(port, group) == CW_OK && cw_port_join(port, group) == CW_OK);
    command_run("ip maddr show dev cwa | grep -q 239.1.2.3");
    CHECK(cw_port_leave(port, group) == CW_OK);
    command_run("ip maddr show dev cwa | grep -q 239.1.2.3");
    int there = raw_open("cwb"), here = raw_open("cwa");
    selection_watch(port, there, rows_v4, ROWS(rows_v4));
    struct cw_transmit own; /* its own frames do not come back */
    CHECK(cw_port_reserve(port, &own, 1) == 1);
    datagram_write(own.data, "239.1.2.3", 17, PORT_GROUP);
    own.length = OTHERS_BYTES;
    CHECK(cw_port_transmit(port, &own, 1) == 1);
    selection_watch(port, here, rows_v4, ROWS(rows_v4));
    CHECK(cw_port_leave(port, group) == CW_OK && cw_port_leave(port, group) == CW_ERROR_NOT_FOUND);
    command_run("! ip maddr show dev cwa | grep -q 239.1.2.3");
    cw_port_close(port);
    close(there);
    close(here);
}

static void case_selection_v6(int descriptor, const void *argument)
{
    veth_make();
    if (system("ip addr add " OWN_V6 "/64 dev cwa nodad 2>/dev/null") != 0) {
        case_skip("the kernel has no IPv6");
    }
    const uint8_t group[6] = {0x33, 0x33, 0xef, 1, 2, 3};
    struct cw_port_ethdev_config config = config_of("net_af_packet0", "iface=cwa", 1500);
    config.selection =
        (struct cw_port_selection){.udp_port = PORT_FIRST, .udp_port_count = PORTS, .group_port = PORT_GROUP};
    CHECK(cw_ip_read(OWN_V6, &config.selection.ip));
    struct cw_port *port = port_open(&config);
    CHECK(cw_port_join(port, group) == CW_OK);
    command_run("ip maddr show dev cwa | grep -q ff15::ef01:203");
    int there = raw_open("cwb"), here = raw_open("cwa");
    selection_watch(port, there, rows_v6, ROWS(rows_v6));
    selection_watch(port, here, rows_v6, ROWS(rows_v6));
    CHECK(cw_port_leave(port, group) == CW_OK);
    command_run("! ip maddr show dev cwa | grep -q ff15::ef01:203");
    cw_port_close(port);
    close(there);
    close(here);
}

/* A device with a name that does not contain its driver, as with a NIC's address: the device reports its driver. */
static void case_named_otherwise(int descriptor, const void *argument)
{
    veth_make();
    struct cw_port *port = port_of("net_af_packet_lan", "iface=cwa,framesz=2048", 1500);
    CHECK(port->info.wait == CW_PORT_WAIT_DESCRIPTOR);
    cw_port_close(port);
}

/* The kernel's end of a tap. */
static void tap_send(const void *from, uint32_t number)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("cwtap"), .sll_halen = 6};
    uint8_t frame[200];
    frame_fill(frame, sizeof(frame), number);
    CHECK(sendto(*(const int *)from, frame, sizeof(frame), 0, (struct sockaddr *)&address, sizeof(address)) ==
          sizeof(frame));
}

/* One frame at a time, from another thread, so that the port sleeps. */
static void *tap_sender(void *context)
{
    for (uint32_t number = 0; number < 200; number++) {
        tap_send(context, number);
        usleep(500);
    }
    return NULL;
}

static void case_tap(int descriptor, const void *argument)
{
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {
        case_skip("there is no /dev/net/tun");
    }
    namespace_enter();
    struct cw_port *port = port_of("net_tap0", "iface=cwtap", 1500);
    CHECK(port->info.wait == CW_PORT_WAIT_DESCRIPTOR);
    int raw = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    CHECK(raw >= 0);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, tap_sender, &raw) == 0);
    for (uint32_t number = 0; number < 200; number++) {
        frame_expect(port, 200, number);
    }
    CHECK(pthread_join(sender, NULL) == 0);
    descriptor_shows(port, tap_send, &raw);
    cw_port_wake(port);
    cw_port_sleep(port, NS_PER_HOUR);
    frame_send(port, 100, 1);
    close(raw);
    cw_port_close(port);
}

/* Slots that the user made too small: the driver would drop in silence. */
static void case_slots(int descriptor, const void *argument)
{
    veth_make();
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    struct cw_port_ethdev_config config = config_of("net_af_packet0", "iface=cwa,framesz=2048,blocksz=4096", 4000);
    CHECK(cw_port_ethdev_open(&config, &port, error, sizeof(error)) == CW_ERROR_ARGUMENT);
    CHECK(strstr(error, "framesz") != NULL);
    config.mtu_bytes = 1500;
    cw_port_close(port_open(&config));
}

/* The driver numbers its group by process id XOR interface index. */
static uint32_t group_of(pid_t process, uint32_t interface)
{
    return ((uint32_t)process ^ interface) & 0xffff;
}

/* Two processes and interfaces whose numbers of a group are equal. */
static void case_group_collides(int descriptor, const void *argument)
{
    int ends[2];
    char command[160];
    namespace_enter();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t own = getpid(), peer = case_fork();
    if (peer == 0) {
        alarm(TEST_HANG_S);
        pair_wait(ends[1]);
        struct cw_port *port = port_of("net_af_packet0", "iface=cwb", 1500);
        pair_signal(ends[1]);
        frame_expect(port, 100, 1);
        frame_send(port, 100, 2);
        pair_wait(ends[1]);
        cw_port_close(port);
        _exit(0);
    }
    uint32_t first = 70000, second = (uint32_t)(own ^ peer) ^ first;
    CHECK(group_of(own, first) == group_of(peer, second));
    snprintf(command, sizeof(command), "ip link add cwa index %u type veth peer name cwb index %u 2>/dev/null", first,
             second);
    if (system(command) != 0) {
        case_skip("the kernel has no veth");
    }
    command_run("ip link set cwa up && ip link set cwb up");
    struct cw_port_ethdev_config a = config_of("net_af_packet0", "iface=cwa", 1500);
    struct cw_port *port = port_open(&a);
    pair_signal(ends[0]);
    pair_wait(ends[0]);
    frame_send(port, 100, 1);
    frame_expect(port, 100, 2);
    pair_signal(ends[0]);
    CHECK(case_end(peer) == 0);
    cw_port_close(port);
}

/* A group of the same number on the same interface, as of a process in another namespace: both would have a part of
 * the packets. */
static void case_group_is_shared(int descriptor, const void *argument)
{
    veth_make();
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("cwa")};
    int others = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    int group = (int)(group_of(getpid(), (uint32_t)address.sll_ifindex) |
                      (uint32_t)(PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER) << 16);
    CHECK(bind(others, (const struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(setsockopt(others, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) == 0);
    struct cw_port_ethdev_config a = config_of("net_af_packet0", "iface=cwa", 1500);
    struct cw_port *port = port_open(&a);
    uint32_t found = 0;
    for (int i = 3; i < 1024; i++) {
        int number = 0;
        socklen_t bytes = sizeof(number);
        if (i != others && getsockopt(i, SOL_PACKET, PACKET_FANOUT, &number, &bytes) == 0 && number != 0) {
            CHECK((number & 0xffff) != (group & 0xffff));
            found++;
        }
    }
    CHECK(found == 1);
    cw_port_close(port);
    close(others);
}

static void fanout_groups_are_distinguished(void **state)
{
    case_run(case_group_collides, NULL);
    case_run(case_group_is_shared, NULL);
}

static void test_af_packet(void **state)
{
    static const uint32_t mtus[] = {1500, 9000};
    case_run(case_af_packet, &mtus[0]);
    case_run(case_af_packet, &mtus[1]);
    case_run(case_af_packet_rejected, NULL);
}

CASE_TEST(selection)
CASE_TEST(selection_v6)
CASE_TEST(named_otherwise)
CASE_TEST(tap)
CASE_TEST(slots)

int main(void)
{
    return TESTS_RUN(fanout_groups_are_distinguished, test_af_packet, test_selection, test_selection_v6,
                     test_named_otherwise, test_tap, test_slots);
}
