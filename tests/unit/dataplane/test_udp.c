/* UDP port: packets arrive as sent, however the kernel combines them; sleeps end; errors are reported. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>

#include "dataplane/base/random.h"
#include "dataplane/port/udp.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"
#include "tests/test.h"

enum { MTU = 1500, LEAST = 4 };
#define SECOND 1000000000ull

/* All tests run over IPv4, then over IPv6. */
static struct cw_ip loopback;
static struct cw_wire_outer outer;

static bool is_v6(void)
{
    return !cw_ip_is_v4(&loopback);
}

static void group_mac(uint32_t ipv4, uint8_t mac[6])
{
    struct cw_ip group = cw_wire_group(ipv4, is_v6());
    cw_wire_group_mac(&group, mac);
}

/* 0: the kernel's size of a buffer. */
static struct cw_port *port_open(uint32_t mtu_bytes, uint32_t buffer_bytes)
{
    const struct cw_port_udp_config config = {
        .ip = loopback, .stream_count = 1, .mtu_bytes = mtu_bytes, .buffer_bytes = buffer_bytes};
    struct cw_port *port = NULL;
    char error[CW_PORT_TEXT_BYTES] = "";
    assert_true_msg(cw_port_udp_open(&config, &port, error, sizeof(error)) == CW_OK, "%s", error);
    return port;
}

/* Headers in front of `bytes`, to a group or to this host. */
static void network_fill(uint8_t *frame, uint16_t from, const struct cw_ip *to, uint16_t port, uint32_t bytes)
{
    const struct cw_wire_receiver receiver = {.ip = *to, .port = port, .own_port = from};
    cw_wire_outer_write(&outer, &receiver, frame, bytes - CW_WIRE_HEADER_BYTES);
}

/* The byte of packet `number` at `at`; the first four are the number. */
static uint8_t byte_of(uint32_t number, uint32_t at)
{
    return at < LEAST ? (uint8_t)(number >> 8 * at) : (uint8_t)(number * 7 + at * 13);
}

static uint8_t nothing[1]; /* lies apart */

/* Writes a packet of `bytes` behind the headers; of them the last `apart` lie in two pieces of their own. */
static void packet_write(struct cw_transmit *packet, uint16_t from, uint16_t to, uint32_t number, uint32_t bytes,
                         uint8_t *apart, uint32_t apart_bytes)
{
    network_fill(packet->data, from, &loopback, to, bytes);
    packet->length = outer.bytes + bytes - apart_bytes;
    for (uint32_t at = 0; at < bytes; at++) {
        uint8_t *place =
            at < bytes - apart_bytes ? packet->data + outer.bytes + at : apart + (at - (bytes - apart_bytes));
        *place = byte_of(number, at);
    }
    uint32_t half = apart_bytes / 2;
    packet->piece_count = (uint16_t)(apart_bytes < 2 ? apart_bytes : 2);
    packet->pieces[0] = (struct cw_piece){.data = apart, .length = apart_bytes - half};
    packet->pieces[1] = (struct cw_piece){.data = apart + apart_bytes - half, .length = half};
}

/* Two ports at this host, for the test that runs, and their numbers. */
static struct cw_port *a, *b;
static uint16_t a_number, b_number;

static void ports_open(uint32_t buffer_bytes)
{
    a = port_open(MTU, 0);
    b = port_open(MTU, buffer_bytes);
    a_number = cw_port_udp_number(a);
    b_number = cw_port_udp_number(b);
}

static void ports_close(void)
{
    cw_port_close(a);
    cw_port_close(b);
}

static void transmit_all(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    for (uint32_t sent = 0; sent < count;) {
        sent += cw_port_transmit(port, packets + sent, count - sent);
    }
}

static void packets_send(struct cw_port *port, uint16_t from, uint16_t to, uint32_t count, uint32_t bytes, bool alone)
{
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    assert_int_equal(cw_port_reserve(port, packets, count), count);
    for (uint32_t i = 0; i < count; i++) {
        packet_write(&packets[i], from, to, i, bytes, nothing, 0);
        packets[i].alone = alone;
    }
    transmit_all(port, packets, count);
}

/* Takes packets until `count` have come, in order, each with its length of `bytes`, from `from`. */
static void packets_expect_at(struct cw_port *port, uint16_t from, const struct cw_ip *to_ip, uint16_t to,
                              const uint32_t *bytes, uint32_t count)
{
    const uint32_t ip_bytes = is_v6() ? 16 : 4;
    for (uint32_t number = 0; number < count;) {
        struct cw_received packets[CW_PORT_BURST_MAX];
        uint32_t got = cw_port_receive(port, packets, 1 + number % CW_PORT_BURST_MAX);
        if (got == 0) {
            cw_port_sleep(port, SECOND);
        }
        for (uint32_t i = 0; i < got; i++, number++) {
            const uint8_t *frame = packets[i].data, *udp = frame + outer.bytes - 8;
            assert_int_equal(packets[i].length, outer.bytes + bytes[number]);
            assert_memory_equal(udp - ip_bytes, to_ip->bytes + 16 - ip_bytes, ip_bytes);
            assert_memory_equal(udp - 2 * ip_bytes, loopback.bytes + 16 - ip_bytes, ip_bytes);
            assert_int_equal(udp[0] << 8 | udp[1], from);
            assert_int_equal(udp[2] << 8 | udp[3], to);
            assert_int_equal(udp[4] << 8 | udp[5], 8 + bytes[number]);
            for (uint32_t at = 0; at < bytes[number]; at++) {
                assert_true_msg(frame[outer.bytes + at] == byte_of(number, at), "packet %u of %u bytes: byte %u",
                                number, bytes[number], at);
            }
        }
        cw_port_release(port, packets, got);
    }
}

static void packets_expect(struct cw_port *port, uint16_t from, uint16_t to, const uint32_t *bytes, uint32_t count)
{
    packets_expect_at(port, from, &loopback, to, bytes, count);
}

/* Bursts of packets whose lengths are drawn by `kind`: full ones, equal ones, falling, any, with pieces or without. */
static void exchange(struct cw_port *from, struct cw_port *to, uint32_t mtu_bytes, uint32_t kind, uint64_t seed)
{
    enum { BURSTS = 40 };
    static uint8_t apart[CW_PORT_BURST_MAX][CW_PORT_MTU_ETHERNET_MAX];
    static uint32_t bytes[BURSTS * CW_PORT_BURST_MAX];
    const uint32_t full = mtu_bytes - (outer.bytes - 14u);
    const uint16_t own = cw_port_udp_number(from), other = cw_port_udp_number(to);
    struct cw_random random;
    cw_random_seed(&random, seed);
    for (uint32_t burst = 0; burst < BURSTS; burst++) {
        struct cw_transmit packets[CW_PORT_BURST_MAX];
        uint32_t count = 1 + (uint32_t)cw_random_below(&random, CW_PORT_BURST_MAX);
        uint32_t equal = LEAST + (uint32_t)cw_random_below(&random, full - LEAST + 1);
        assert_int_equal(cw_port_reserve(from, packets, count), count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t any = LEAST + (uint32_t)cw_random_below(&random, full - LEAST + 1);
            bytes[i] = kind == 0 ? full : kind == 1 ? equal : kind == 2 && i % 5 != 4 ? equal : any;
            uint32_t pieces = cw_random_below(&random, 3) == 0 ? (uint32_t)cw_random_below(&random, bytes[i] - 1) : 0;
            packet_write(&packets[i], own, other, i, bytes[i], apart[i], pieces);
        }
        transmit_all(from, packets, count);
        packets_expect(to, own, other, bytes, count);
    }
}

static void packets_arrive_unchanged(void **state)
{
    static const uint32_t mtus[] = {CW_PORT_MTU_MIN, MTU, CW_PORT_MTU_ETHERNET_MAX};
    for (uint32_t m = 0; m < 3; m++) {
        a = port_open(mtus[m], 0);
        b = port_open(mtus[m], 0);
        for (uint32_t kind = 0; kind < 4; kind++) {
            exchange(a, b, mtus[m], kind, kind + 1);
            exchange(b, a, mtus[m], kind, kind + 5);
        }
        assert_int_equal(cw_port_udp_dropped(a) + cw_port_udp_dropped(b), 0);
        ports_close();
    }
}

/* Streams are sockets of their own; packets leave by the one that they say they are from. */
static void streams_have_sockets(void **state)
{
    enum { STREAMS = 5 };
    struct cw_port *one = port_open(MTU, 0), *many = NULL;
    for (uint16_t first = 21000; many == NULL; first += STREAMS) {
        const struct cw_port_udp_config config = {
            .ip = loopback, .udp_port = first, .stream_count = STREAMS, .mtu_bytes = MTU};
        char error[CW_PORT_TEXT_BYTES];
        (void)cw_port_udp_open(&config, &many, error, sizeof(error));
    }
    const uint16_t own = cw_port_udp_number(one), first = cw_port_udp_number(many);
    for (uint16_t stream = 0; stream < STREAMS; stream++) {
        const uint32_t bytes = 100;
        packets_send(one, own, first + stream, 1, bytes, false);
        packets_expect(many, own, first + stream, &bytes, 1);
        packets_send(many, first + stream, own, 1, bytes, false);
        packets_expect(one, first + stream, own, &bytes, 1);
    }
    cw_port_close(one);
    cw_port_close(many);
}

/* Unread packets are dropped by the kernel in the end, and counted; later packets are whole. */
static void drops_are_counted(void **state)
{
    enum { PACKETS = 2000 };
    uint32_t came = 0;
    ports_open(20000);
    for (uint32_t number = 0; number < PACKETS; number++) {
        packets_send(a, a_number, b_number, 1, 500, false);
    }
    for (uint32_t got = 1, more = 1; got > 0 || more-- > 0;) {
        struct cw_received packets[CW_PORT_BURST_MAX];
        got = cw_port_receive(b, packets, CW_PORT_BURST_MAX);
        came += got;
        cw_port_release(b, packets, got);
        if (got == 0 && more > 0) { /* one that is not dropped brings the count */
            packets_send(a, a_number, b_number, 1, 500, false);
        }
    }
    assert_true(came < PACKETS);
    assert_int_equal(came + cw_port_udp_dropped(b), PACKETS + 1);
    ports_close();
}

/* An owner that returns nothing gets no more when it has all frames, and the remaining packets afterwards. */
static void frames_run_out(void **state)
{
    enum { BYTES = 100, BURSTS = 24, PACKETS = BURSTS * CW_PORT_BURST_MAX };
    static struct cw_received held[PACKETS];
    uint32_t came = 0, rounds = 0;
    ports_open(0);
    for (uint32_t burst = 0; burst < BURSTS; burst++) {
        packets_send(a, a_number, b_number, CW_PORT_BURST_MAX, BYTES, false);
    }
    for (uint32_t got = 1; got > 0; rounds++) {
        uint32_t begin = came;
        while ((got = cw_port_receive(b, held + came, CW_PORT_BURST_MAX)) > 0) {
            came += got;
            assert_true(came <= PACKETS);
        }
        for (uint32_t i = begin; i < came; i++) {
            const uint8_t *bytes = held[i].data + outer.bytes;
            assert_int_equal(held[i].length, outer.bytes + BYTES);
            for (uint32_t at = 0; at < BYTES; at++) {
                assert_int_equal(bytes[at], byte_of(bytes[0] | (uint32_t)bytes[1] << 8, at));
            }
        }
        cw_port_release(b, held + begin, came - begin);
        got = came > begin;
    }
    assert_true(rounds > 2 || cw_port_udp_dropped(b) > 0);
    assert_int_equal(came + cw_port_udp_dropped(b), PACKETS);
    ports_close();
}

/* A peer that is not there, or an address without a route: packets are lost, and others continue. */
static void nobody_there(void **state)
{
    const uint32_t bytes[] = {64};
    ports_open(0);
    for (uint32_t i = 0; i < 100; i++) {
        struct cw_transmit packets[3];
        assert_int_equal(cw_port_reserve(a, packets, 3), 3);
        packet_write(&packets[0], a_number, 9, 0, 64, nothing, 0);
        packet_write(&packets[1], a_number, b_number, 0, 64, nothing, 0);
        memset(packets[1].data + 30, 0, 4); /* to no address */
        packet_write(&packets[2], a_number, b_number, 0, 64, nothing, 0);
        transmit_all(a, packets, 3);
        if (i == 0) {
            packets_expect(b, a_number, b_number, bytes, 1);
        }
    }
    ports_close();
}

/* ---- batches ---- */

static uint8_t frame[1 << 17];

/* How many frames from port `a` an interface sees until one that ends with packet `last` of `bytes`. */
static uint32_t frames_count(int watcher, uint32_t last, uint32_t bytes)
{
    for (uint32_t count = 0;;) {
        ssize_t got = recv(watcher, frame, sizeof(frame), 0);
        assert_true(got > 0);
        const uint8_t *udp = frame + outer.bytes - 8;
        if (got < (ssize_t)(outer.bytes + bytes) || (udp[0] << 8 | udp[1]) != a_number) {
            continue;
        }
        count++;
        const uint8_t *packet = frame + got - bytes;
        if ((packet[0] | packet[1] << 8) == (int)last) {
            return count;
        }
    }
}

/* A retransmission shares no batch. If many packets of batches are lost, the next packets are sent one by one. */
static void what_was_lost_goes_alone(void **state)
{
    enum { BYTES = 1000, COUNT = 8 };
    int watcher = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    if (watcher < 0) {
        print_message("SKIPPED: machine: to watch an interface needs CAP_NET_RAW\n");
        return;
    }
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    here.sll_ifindex = (int)if_nametoindex("lo");
    const int yes = 1;
    assert_int_equal(setsockopt(watcher, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)), 0);
    assert_int_equal(bind(watcher, (const struct sockaddr *)&here, sizeof(here)), 0);
    ports_open(0);
    packets_send(a, a_number, b_number, COUNT, BYTES, false);
    uint32_t batch = frames_count(watcher, COUNT - 1, BYTES);
    if (batch < COUNT) { /* the kernel cuts */
        packets_send(a, a_number, b_number, COUNT, BYTES, true);
        assert_int_equal(frames_count(watcher, COUNT - 1, BYTES), COUNT);
        for (uint32_t i = 0; i < 20; i++) { /* each was lost once */
            packets_send(a, a_number, b_number, COUNT, BYTES, false);
            packets_send(a, a_number, b_number, COUNT, BYTES, true);
        }
        while (recv(watcher, frame, sizeof(frame), MSG_DONTWAIT) > 0) {
        }
        packets_send(a, a_number, b_number, COUNT, BYTES, false);
        assert_int_equal(frames_count(watcher, COUNT - 1, BYTES), COUNT);
    }
    close(watcher);
    ports_close();
}

/* ---- sleeps ---- */

static void *waker(void *context)
{
    for (int i = 0; i < 1000; i++) {
        cw_port_wake(context);
    }
    return NULL;
}

static void sleeps_end(void **state)
{
    const uint32_t bytes = 64;
    pthread_t thread;
    ports_open(0);
    cw_port_wake(b); /* before the sleep */
    cw_port_sleep(b, 3600 * SECOND);
    packets_send(a, a_number, b_number, 1, bytes, false);
    cw_port_sleep(b, 3600 * SECOND); /* a packet is there */
    packets_expect(b, a_number, b_number, &bytes, 1);
    cw_port_sleep(b, 1000000); /* nothing comes */
    _Atomic uint32_t word = 1;
    const struct cw_port_alarm alarm = {.word = {.at = &word, .value = 0}, .descriptor = -1};
    cw_port_sleep_alarm(b, 1000000, &alarm);
    assert_int_equal(pthread_create(&thread, NULL, waker, b), 0);
    cw_port_sleep(b, 3600 * SECOND); /* by the thread */
    assert_int_equal(pthread_join(thread, NULL), 0);
    ports_close();
}

/* ---- groups ---- */

enum { MEMBERS = 3, GROUP_PORT = 29363 };

/* Each sends to the group in turn; a packet arrives once at each member, except the sender. */
static void group_exchange(struct cw_port *const *members, const bool *joined, uint32_t ipv4)
{
    const struct cw_ip group = cw_wire_group(ipv4, is_v6());
    enum { PACKETS = 150 };
    static uint32_t bytes[PACKETS];
    const uint32_t full = MTU - (outer.bytes - 14u);
    for (uint32_t sender = 0; sender < MEMBERS; sender++) {
        const uint16_t own = cw_port_udp_number(members[sender]);
        for (uint32_t sent = 0; sent < PACKETS;) {
            struct cw_transmit packets[CW_PORT_BURST_MAX];
            uint32_t count = PACKETS - sent < CW_PORT_BURST_MAX ? PACKETS - sent : CW_PORT_BURST_MAX;
            assert_int_equal(cw_port_reserve(members[sender], packets, count), count);
            for (uint32_t i = 0; i < count; i++) {
                bytes[sent + i] = (sent + i) % 7 < 5 ? full : 100 + sent;
                packet_write(&packets[i], own, 1, sent + i, bytes[sent + i], nothing, 0);
                network_fill(packets[i].data, own, &group, 1 /* whichever */, bytes[sent + i]);
            }
            transmit_all(members[sender], packets, count);
            sent += count;
        }
        for (uint32_t i = 0; i < MEMBERS; i++) {
            struct cw_received more;
            if (i != sender && joined[i]) {
                packets_expect_at(members[i], own, &group, cw_port_udp_number(members[i]), bytes, PACKETS);
            }
            assert_int_equal(cw_port_receive(members[i], &more, 1), 0);
        }
    }
}

static void groups_are_joined_and_left(void **state)
{
    enum { MANY = 30 /* more than the kernel lets into one socket */ };
    const uint32_t group = 0xef010203u, other = 0xef7f0004u;
    struct cw_port *members[MEMBERS], *none = port_open(MTU, 0);
    uint8_t mac[6], other_mac[6];
    bool joined[MEMBERS] = {true, true, true};
    group_mac(group, mac);
    group_mac(other, other_mac);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct cw_port_udp_config config = {
            .ip = loopback, .stream_count = 1, .mtu_bytes = MTU, .group_port = GROUP_PORT};
        char error[CW_PORT_TEXT_BYTES];
        assert_int_equal(cw_port_udp_open(&config, &members[i], error, sizeof(error)), CW_OK);
        assert_int_equal(cw_port_leave(members[i], mac), CW_ERROR_NOT_FOUND);
        assert_int_equal(cw_port_join(members[i], mac), CW_OK);
    }
    assert_int_equal(cw_port_join(none, mac), CW_ERROR_UNSUPPORTED);
    group_exchange(members, joined, group);
    /* one more group for some, and the first twice for one */
    assert_int_equal(cw_port_join(members[0], other_mac), CW_OK);
    assert_int_equal(cw_port_join(members[1], mac), CW_OK);
    group_exchange(members, joined, group);
    group_exchange(members, (bool[]){true, false, false}, other);
    assert_int_equal(cw_port_leave(members[0], mac), CW_OK);
    assert_int_equal(cw_port_leave(members[1], mac), CW_OK);
    joined[0] = false;
    group_exchange(members, joined, group);
    exchange(members[0], members[1], MTU, 3, 9);
    for (uint32_t i = 0; i < MANY; i++) {
        group_mac(0xef020000u + i, mac);
        assert_int_equal(cw_port_join(members[0], mac), CW_OK);
    }
    joined[1] = joined[2] = false;
    joined[0] = true;
    group_exchange(members, joined, 0xef020000u + MANY - 1);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(cw_port_udp_dropped(members[i]), 0);
        cw_port_close(members[i]);
    }
    cw_port_close(none);
}

/* ---- errors ---- */

static void assert_rejected(struct cw_ip ip, uint16_t udp_port, uint32_t streams, uint32_t mtu_bytes, int status,
                            const char *word)
{
    const struct cw_port_udp_config config = {
        .ip = ip, .udp_port = udp_port, .stream_count = streams, .mtu_bytes = mtu_bytes};
    struct cw_port *port;
    char error[CW_PORT_TEXT_BYTES] = "";
    assert_int_equal(cw_port_udp_open(&config, &port, error, sizeof(error)), status);
    assert_true_msg(strstr(error, word) != NULL && strchr(error, '\n') == NULL, "'%s' lacks '%s'", error, word);
}

static void errors_are_reported(void **state)
{
    struct cw_port *port = port_open(MTU, 0);
    const uint16_t taken = cw_port_udp_number(port);
    char word[40];
    snprintf(word, sizeof(word), "UDP port %u of %s is in use", taken, is_v6() ? "::1" : "127.0.0.1");
    assert_rejected(loopback, taken, 1, MTU, CW_ERROR_BUSY, word);
    assert_rejected(cw_ip_v4(0xcb007107u), 0, 1, MTU, CW_ERROR_NOT_FOUND, "no address 203.0.113.7");
    assert_rejected(loopback, 0, 1, 500, CW_ERROR_ARGUMENT, "MTU 500");
    assert_rejected(loopback, 0, 2, MTU, CW_ERROR_ARGUMENT, "2 streams");
    assert_rejected(loopback, 65530, 7, MTU, CW_ERROR_ARGUMENT, "7 streams");
    cw_port_close(port);
}

static void family_set(const char *ip)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
    assert_true(cw_ip_read(ip, &loopback));
    cw_wire_outer_init(&outer, mac, &loopback);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_arrive_unchanged),
        cmocka_unit_test(streams_have_sockets),
        cmocka_unit_test(drops_are_counted),
        cmocka_unit_test(frames_run_out),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(what_was_lost_goes_alone),
        cmocka_unit_test(sleeps_end),
        cmocka_unit_test(errors_are_reported),
        cmocka_unit_test(groups_are_joined_and_left), /* over IPv6 in tests/lab/hosts_usage.py: lo has no route */
    };
    const size_t count = sizeof(tests) / sizeof(tests[0]);
    family_set("127.0.0.1");
    int failed = cmocka_run_group_tests_name("IPv4", tests, NULL, NULL);
    if (access("/proc/net/if_inet6", R_OK) == 0) { /* a kernel that has it */
        family_set("::1");
        failed += _cmocka_run_group_tests("IPv6", tests, count - 1, NULL, NULL);
    }
    return failed;
}
