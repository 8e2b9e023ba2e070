/* Ethdev port within one process, over DPDK's ring, null and pcap devices: frames, gather, multicast, waiting. */
#include "tests/unit/dataplane/ethdev_testing.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- frames ---- */

static void case_frames(int descriptor, const void *argument)
{
    static const uint32_t lengths[] = {60, 64, 65, 1514, 2048, 4097, 9014};
    struct cw_port *port = port_of("net_ring0", NULL, 9000);
    CHECK(port->info.mtu_bytes == 9000);
    CHECK((port->info.mac[0] & 3) == 2 || port->info.mac[0] != 0);
    CHECK(strlen(port->info.driver) > 0);
    CHECK(cw_port_link_up(port));
    for (uint32_t number = 0; number < 20000; number++) {
        uint32_t length = lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];
        frame_send(port, length, number);
        frame_await(port, length, number);
    }
    cw_port_close(port);
}

static void case_bursts(int descriptor, const void *argument)
{
    struct cw_port *port = port_of("net_ring0", NULL, 1500);
    for (uint32_t round = 0; round < 2000; round++) {
        struct cw_transmit packets[CW_PORT_BURST_MAX];
        struct cw_received received[CW_PORT_BURST_MAX];
        uint32_t count = cw_port_reserve(port, packets, 1 + round % CW_PORT_BURST_MAX);
        CHECK(count == 1 + round % CW_PORT_BURST_MAX);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(packets[i].length == 0 && packets[i].piece_count == 0);
            frame_fill(packets[i].data, 100 + i, i);
            packets[i].length = 100 + i;
        }
        uint32_t sent = cw_port_transmit(port, packets, count - round % 2);
        CHECK(sent == count - round % 2);
        cw_port_cancel(port, packets + sent, count - sent);
        CHECK(cw_port_receive(port, received, CW_PORT_BURST_MAX) == sent);
        for (uint32_t i = 0; i < sent; i++) {
            uint32_t number = 0;
            CHECK(frame_check(&received[i], &number) && number == i && received[i].length == 100 + i);
        }
        cw_port_release(port, received, sent);
    }
    CHECK(cw_port_receive(port, (struct cw_received[1]){{0}}, 1) == 0);
    cw_port_close(port);
}

/* The pool is bounded: reserve gives fewer, then none, and all again once they are given back. */
static void case_pool(int descriptor, const void *argument)
{
    enum { PACKETS = 300 };
    struct cw_port_ethdev_config config = config_of("net_null0", NULL, 1500);
    config.pool_packets = PACKETS;
    struct cw_port *port = port_open(&config);
    for (int round = 0; round < 3; round++) {
        static struct cw_transmit packets[PACKETS + CW_PORT_BURST_MAX];
        uint32_t total = 0;
        for (uint32_t got = 1; got != 0; total += got) {
            got = cw_port_reserve(port, packets + total, CW_PORT_BURST_MAX);
        }
        CHECK(total == PACKETS);
        cw_port_cancel(port, packets, total);
    }
    cw_port_close(port);
}

/* ---- gather ---- */

static void gather_send(struct cw_port *port, struct cw_port_memory *memory, const uint8_t *source, uint32_t pieces)
{
    struct cw_transmit packet;
    CHECK(cw_port_reserve(port, &packet, 1) == 1);
    uint32_t offset = 40;
    memcpy(packet.data, source, offset);
    packet.length = offset;
    packet.piece_count = (uint16_t)pieces;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t length = 100 * (i + 1);
        packet.pieces[i] = (struct cw_piece){.data = source + offset, .length = length, .memory = memory};
        offset += length;
    }
    CHECK(cw_port_transmit(port, &packet, 1) == 1);
}

static void case_gather(int descriptor, const void *argument)
{
    static const uint32_t totals[] = {40, 140, 340, 640, 1040};
    static uint8_t source[CW_PORT_PIECES_MAX + 1][2048];
    struct cw_port_ethdev_config config = config_of("net_ring0", NULL, 1500);
    config.gather = CW_PORT_GATHER_ON;
    struct cw_port *port = port_open(&config);
    CHECK(port->info.gather);
    struct cw_port_memory *memory = NULL;
    CHECK(cw_port_memory_register(port, NULL, 10, &memory) == CW_ERROR_ARGUMENT && memory == NULL);
    CHECK(cw_port_memory_register(port, source, sizeof(source), &memory) == CW_OK);
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t pieces = round % (CW_PORT_PIECES_MAX + 1);
        frame_fill(source[pieces], totals[pieces], round);
        gather_send(port, memory, source[pieces], pieces);
        frame_await(port, totals[pieces], round);
    }
    /* The ring holds what was sent until it is received. */
    gather_send(port, memory, source[2], 2);
    gather_send(port, memory, source[3], 3);
    CHECK(cw_port_memory_unregister(port, memory) == CW_ERROR_BUSY);
    struct cw_received packets[2];
    CHECK(cw_port_receive(port, packets, 2) == 2);
    cw_port_release(port, packets, 2);
    CHECK(cw_port_memory_unregister(port, memory) == CW_OK);
    CHECK(cw_port_ethdev_dropped(port) == 0);
    cw_port_close(port);
}

/* Packets that the driver did not accept stay the caller's, without their pieces: to be changed, sent again, or
 * cancelled. */
static void case_gather_rejected(int descriptor, const void *argument)
{
    static uint8_t source[1000];
    struct cw_port *port = port_of("net_ring0", NULL, 1500);
    struct cw_port_memory *memory = NULL;
    CHECK(cw_port_memory_register(port, source, sizeof(source), &memory) == CW_OK);
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    uint32_t sent = CW_PORT_BURST_MAX;
    uint32_t total = 0;
    for (; sent == CW_PORT_BURST_MAX; total += sent) {
        CHECK(cw_port_reserve(port, packets, CW_PORT_BURST_MAX) == CW_PORT_BURST_MAX);
        for (uint32_t i = 0; i < CW_PORT_BURST_MAX; i++) {
            memset(packets[i].data, 1, 60);
            packets[i].length = 60;
            packets[i].piece_count = 1;
            packets[i].pieces[0] = (struct cw_piece){.data = source, .length = 500, .memory = memory};
        }
        sent = cw_port_transmit(port, packets, CW_PORT_BURST_MAX);
    }
    cw_port_cancel(port, packets + sent, CW_PORT_BURST_MAX - sent);
    CHECK(total > 100);
    for (uint32_t count = 0; total > 0; total -= count) {
        struct cw_received received[CW_PORT_BURST_MAX];
        count = cw_port_receive(port, received, CW_PORT_BURST_MAX);
        CHECK(count > 0 && received[0].length == 560);
        cw_port_release(port, received, count);
    }
    CHECK(cw_port_memory_unregister(port, memory) == CW_OK);
    cw_port_close(port);
}

static void case_gather_off(int descriptor, const void *argument)
{
    struct cw_port_ethdev_config config = config_of("net_ring0", NULL, 1500);
    config.gather = CW_PORT_GATHER_OFF;
    struct cw_port *port = port_open(&config);
    struct cw_port_memory *memory = NULL;
    uint8_t byte[8];
    CHECK(!port->info.gather);
    CHECK(cw_port_memory_register(port, byte, sizeof(byte), &memory) == CW_ERROR_UNSUPPORTED);
    cw_port_close(port);
}

/* ---- multicast ---- */

static void case_multicast(int descriptor, const void *argument)
{
    struct cw_port *port = port_of("net_ring0", NULL, 1500);
    uint8_t group[6] = {0x01, 0, 0x5e, 1, 2, 3};
    const uint8_t unicast[6] = {0x02, 0, 0, 0, 0, 1};
    CHECK(cw_port_leave(port, group) == CW_ERROR_NOT_FOUND);
    CHECK(cw_port_join(port, unicast) == CW_ERROR_ARGUMENT);
    CHECK(cw_port_join(port, group) == CW_OK);
    CHECK(cw_port_join(port, group) == CW_OK);
    CHECK(cw_port_leave(port, group) == CW_OK);
    CHECK(cw_port_leave(port, group) == CW_OK);
    CHECK(cw_port_leave(port, group) == CW_ERROR_NOT_FOUND);
    CHECK(strlen(cw_port_ethdev_multicast(port)) > 0);
    for (uint32_t i = 0; i < CW_PORT_ETHDEV_GROUPS_MAX; i++) {
        group[5] = (uint8_t)i;
        CHECK(cw_port_join(port, group) == CW_OK);
    }
    group[4] = 99;
    CHECK(cw_port_join(port, group) == CW_ERROR_LIMIT);
    cw_port_close(port);
}

/* ---- waiting ---- */

struct wake_test {
    struct cw_port *port;
    _Atomic uint32_t turn;
};

enum { WAKE_ROUNDS = 3000 };

static void *wake_thread(void *context)
{
    struct wake_test *test = context;
    for (uint32_t round = 0; round < WAKE_ROUNDS; round++) {
        while (atomic_load(&test->turn) != 2 * round) {
            sched_yield();
        }
        atomic_store(&test->turn, 2 * round + 1);
        cw_port_wake(test->port);
    }
    return NULL;
}

/* A wake-up that is lost hangs the case. */
static void case_wake(int descriptor, const void *argument)
{
    struct cw_port_ethdev_config config = config_of("net_ring0", NULL, 1500);
    config.doorbell_path = argument;
    struct wake_test test = {.port = port_open(&config)};
    CHECK(test.port->info.wait == (argument != NULL ? CW_PORT_WAIT_DOORBELL : CW_PORT_WAIT_TIMED));
    pthread_t waker;
    CHECK(pthread_create(&waker, NULL, wake_thread, &test) == 0);
    for (uint32_t round = 0; round < WAKE_ROUNDS; round++) {
        while (atomic_load(&test.turn) != 2 * round + 1) {
            cw_port_sleep(test.port, NS_PER_HOUR);
        }
        atomic_store(&test.turn, 2 * round + 2);
    }
    CHECK(pthread_join(waker, NULL) == 0);
    cw_port_wake(test.port);
    cw_port_sleep(test.port, NS_PER_HOUR); /* woken before */
    /* Packets that wait end a sleep, and are not lost by it. */
    for (uint32_t i = 0; i < 3; i++) {
        frame_send(test.port, 100, i);
    }
    cw_port_sleep(test.port, NS_PER_HOUR);
    for (uint32_t i = 0; i < 3; i++) {
        frame_await(test.port, 100, i);
        cw_port_sleep(test.port, 1000);
    }
    frame_send(test.port, 100, 7);
    cw_port_sleep(test.port, NS_PER_HOUR);
    cw_port_close(test.port); /* with a packet in the stash */
    if (argument != NULL) {
        unlink(argument);
    }
}

/* ---- files ---- */

static void case_pcap(int descriptor, const void *argument)
{
    char arguments[256];
    struct cw_port_ethdev_config config = config_of("net_pcap0", NULL, 9000);
    snprintf(arguments, sizeof(arguments), "tx_pcap=%s", (const char *)argument);
    config.device_arguments = arguments;
    struct cw_port *port = port_open(&config);
    for (uint32_t number = 0; number < 100; number++) {
        frame_send(port, 60 + 80 * number, number);
    }
    cw_port_close(port);
    config.device = "net_pcap1";
    snprintf(arguments, sizeof(arguments), "rx_pcap=%s", (const char *)argument);
    port = port_open(&config);
    for (uint32_t number = 0; number < 100; number++) {
        frame_await(port, 60 + 80 * number, number);
    }
    cw_port_close(port);
}

CASE_TEST(frames)
CASE_TEST(bursts)
CASE_TEST(pool)
CASE_TEST(gather)
CASE_TEST(gather_rejected)
CASE_TEST(gather_off)
CASE_TEST(multicast)
CASE_TEST(wake)

static void test_wake_doorbell(void **state)
{
    char path[64];
    snprintf(path, sizeof(path), "/tmp/causeway-ethdev-bell-%d", getpid());
    case_run(case_wake, path);
}

static void test_pcap(void **state)
{
    char path[64];
    snprintf(path, sizeof(path), "/tmp/causeway-ethdev-%d.pcap", getpid());
    case_run(case_pcap, path);
    unlink(path);
}

int main(void)
{
    return TESTS_RUN(test_frames, test_bursts, test_pool, test_gather, test_gather_rejected, test_gather_off,
                     test_multicast, test_wake, test_wake_doorbell, test_pcap);
}
