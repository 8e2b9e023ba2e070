/* Ethdev port over memif between two processes: frames, gather, waking, and that the death of one does not harm the
 * other. */
#include "tests/unit/dataplane/ethdev_testing.h"

#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { DIAL_ATTEMPTS = 8 }; /* of a client, as in ethdev.c */

/* The server first, then the client: each with its link up. */
static struct cw_port *memif_connect(const struct memif *pair, bool server, int descriptor)
{
    if (!server) {
        pair_wait(descriptor);
    }
    struct cw_port *port = memif_open(pair, server);
    if (server) {
        pair_signal(descriptor);
    }
    link_wait(port, true);
    return port;
}

/* Both keep theirs open until both are done. */
static void memif_part(struct cw_port *port, int descriptor)
{
    pair_signal(descriptor);
    pair_wait(descriptor);
    cw_port_close(port);
}

/* ---- frames ---- */

enum { FRAMES = 30000 };

static uint32_t length_of(uint32_t number, uint32_t mtu_bytes)
{
    uint32_t whole = mtu_bytes + 14;
    return number % 3 == 0 ? whole : 60 + number * 37 % (whole - 60 + 1);
}

static void frames_receive(struct cw_port *port, uint32_t mtu_bytes)
{
    for (uint32_t expected = 0; expected < FRAMES;) {
        struct cw_received packets[32];
        uint32_t count = cw_port_receive(port, packets, 32);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t number = 0;
            CHECK(frame_check(&packets[i], &number) && number == expected);
            CHECK(packets[i].length == length_of(number, mtu_bytes));
            expected++;
        }
        cw_port_release(port, packets, count);
    }
}

/* A header of 18 to 77 bytes in the buffer, the rest in one to four pieces of registered memory. */
static void frames_gather(struct cw_port *port, uint32_t mtu_bytes)
{
    enum { KEPT = 64 }; /* memif copies: a source may be reused once it is transmitted */
    static uint8_t sources[KEPT][CW_PORT_MTU_MAX + 14];
    struct cw_port_memory *memory = NULL;
    CHECK(port->info.gather);
    CHECK(cw_port_memory_register(port, sources, sizeof(sources), &memory) == CW_OK);
    for (uint32_t number = 0; number < FRAMES; number++) {
        struct cw_transmit packet;
        uint8_t *source = sources[number % KEPT];
        uint32_t left = length_of(number, mtu_bytes);
        frame_fill(source, left, number);
        while (cw_port_reserve(port, &packet, 1) == 0) {
        }
        packet.length = left < 100 ? left : 18 + number % 60;
        memcpy(packet.data, source, packet.length);
        left -= packet.length;
        source += packet.length;
        for (uint32_t pieces = 1 + number % CW_PORT_PIECES_MAX; left > 0; packet.piece_count++) {
            uint32_t length = packet.piece_count + 1u < pieces ? 1 + left / 3 : left;
            packet.pieces[packet.piece_count] = (struct cw_piece){.data = source, .length = length, .memory = memory};
            source += length;
            left -= length;
        }
        while (cw_port_transmit(port, &packet, 1) == 0) {
        }
    }
    CHECK(cw_port_memory_unregister(port, memory) == CW_OK);
}

static void frames_plain(struct cw_port *port, uint32_t mtu_bytes)
{
    for (uint32_t number = 0; number < FRAMES; number++) {
        frame_send(port, length_of(number, mtu_bytes), number);
    }
}

static void case_frames_server(int descriptor, const void *argument)
{
    const struct memif *pair = argument;
    struct cw_port *port = memif_connect(pair, true, descriptor);
    frames_receive(port, pair->mtu_bytes);
    frames_plain(port, pair->mtu_bytes);
    frames_receive(port, pair->mtu_bytes);
    memif_part(port, descriptor);
}

static void case_frames_client(int descriptor, const void *argument)
{
    const struct memif *pair = argument;
    struct cw_port *port = memif_connect(pair, false, descriptor);
    frames_plain(port, pair->mtu_bytes);
    frames_receive(port, pair->mtu_bytes);
    frames_gather(port, pair->mtu_bytes);
    memif_part(port, descriptor);
}

static void test_frames(void **state)
{
    static const uint32_t mtus[] = {1500, 9000, CW_PORT_MTU_MAX};
    for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
        memif_run_pair(case_frames_server, case_frames_client, memif_of(mtus[i], false));
    }
}

/* ---- waking ---- */

enum { PING_ROUNDS = 3000 };

/* Each sleeps until the other's frame comes; the time-out is an hour, so a lost wake-up hangs the case. */
static void ping(int descriptor, const struct memif *pair, bool server)
{
    struct cw_port *port = memif_connect(pair, server, descriptor);
    CHECK(port->info.wait == (pair->use_bell ? CW_PORT_WAIT_DOORBELL : CW_PORT_WAIT_TIMED));
    uint32_t rounds = pair->use_bell ? PING_ROUNDS : PING_ROUNDS / 10;
    for (uint32_t round = 0; round < rounds; round++) {
        if (!server) {
            frame_send(port, 100, round);
        }
        frame_await(port, 100, round);
        if (server) {
            frame_send(port, 100, round);
        }
    }
    memif_part(port, descriptor);
}

static void case_ping_server(int descriptor, const void *argument)
{
    ping(descriptor, argument, true);
}

static void case_ping_client(int descriptor, const void *argument)
{
    ping(descriptor, argument, false);
}

static void test_sleep(void **state)
{
    for (int bell = 0; bell < 2; bell++) {
        memif_run_pair(case_ping_server, case_ping_client, memif_of(1500, bell == 1));
    }
}

/* ---- death ---- */

/* Opens its port, says so, then sends and receives at full speed until it is killed. */
_Noreturn static void victim_run(const struct memif *pair, bool server, int ready)
{
    struct cw_port *port = memif_open(pair, server);
    pair_signal(ready);
    link_wait(port, true);
    for (uint32_t number = 0;; number++) {
        struct cw_transmit packets[32];
        struct cw_received received[32];
        uint32_t count = cw_port_reserve(port, packets, 32);
        for (uint32_t i = 0; i < count; i++) {
            frame_fill(packets[i].data, 64, number);
            packets[i].length = 64;
        }
        uint32_t sent = cw_port_transmit(port, packets, count);
        cw_port_cancel(port, packets + sent, count - sent);
        cw_port_release(port, received, cw_port_receive(port, received, 8));
    }
}

/* Moves packets until `frames` have arrived, then kills the other, and continues until the link is down. */
static void survive(struct cw_port *port, pid_t victim, uint32_t frames)
{
    bool killed = false;
    for (uint32_t received = 0; !killed || cw_port_link_up(port);) {
        struct cw_received packets[CW_PORT_BURST_MAX];
        struct cw_transmit packet;
        uint32_t count = cw_port_receive(port, packets, CW_PORT_BURST_MAX);
        cw_port_release(port, packets, count);
        received += count;
        if (cw_port_reserve(port, &packet, 1) == 1) {
            frame_fill(packet.data, 64, 1);
            packet.length = 64;
            if (cw_port_transmit(port, &packet, 1) == 0) {
                cw_port_cancel(port, &packet, 1);
            }
        }
        if (!killed && received >= frames) {
            CHECK(kill(victim, SIGKILL) == 0);
            killed = true;
        }
    }
    int status = 0;
    CHECK(waitpid(victim, &status, 0) == victim && WIFSIGNALED(status));
}

/* A server sees clients come and be killed, one after the other, and serves the next. */
static void case_server_survives(int descriptor, const void *argument)
{
    enum { DEATHS = 8 };
    /* A process that runs EAL cannot start children that do: they are made beforehand and wait for their turn. */
    int turns[DEATHS][2];
    pid_t victims[DEATHS];
    for (int i = 0; i < DEATHS; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, turns[i]) == 0);
        victims[i] = case_fork();
        CHECK(victims[i] >= 0);
        if (victims[i] == 0) {
            pair_wait(turns[i][0]);
            victim_run(argument, false, turns[i][0]);
        }
    }
    struct cw_port *port = memif_open(argument, true);
    for (uint32_t i = 0; i < DEATHS; i++) {
        pair_signal(turns[i][1]);
        survive(port, victims[i], 20000 + 7777 * i);
    }
    cw_port_close(port);
}

/* A client sees its server killed. */
static void case_client_survives(int descriptor, const void *argument)
{
    const struct memif *pair = argument;
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t victim = case_fork();
    CHECK(victim >= 0);
    if (victim == 0) {
        victim_run(pair, true, ready[1]);
    }
    pair_wait(ready[0]);
    struct cw_port *port = memif_open(pair, false);
    survive(port, victim, 30000);
    cw_port_close(port);
}

static void test_death(void **state)
{
    struct memif pair = memif_of(1500, false);
    case_run(case_server_survives, &pair);
    for (int i = 0; i < 3; i++) {
        /* The socket's file of the killed server lies in the way of the next. */
        case_run(case_client_survives, &pair);
        unlink(pair.socket);
    }
    memif_clean(&pair);
}

/* A server takes the place of one that was killed, though its socket's file is still there. */
static void case_stale_socket(int descriptor, const void *argument)
{
    const struct memif *pair = argument;
    pid_t victim = case_fork();
    CHECK(victim >= 0);
    if (victim == 0) {
        memif_open(pair, true);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(victim, NULL, 0) == victim);
    CHECK(access(pair->socket, F_OK) == 0);
    cw_port_close(memif_open(pair, true));
}

MEMIF_TEST(stale_socket)

/* ---- privileges ---- */

/* A server has no place for a client whose number it does not serve: the client's open says so, instead of a link that
 * never comes up. */
static void case_rejected(int descriptor, const void *argument)
{
    const struct memif *pair = argument;
    char arguments[160];
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *server = memif_open(pair, true);
    struct cw_port *client;
    snprintf(arguments, sizeof(arguments), "role=client,id=7,socket=%s,socket-abstract=no", pair->socket);
    const struct cw_port_ethdev_config config = config_of("net_memif1", arguments, 1500);
    CHECK(cw_port_ethdev_open(&config, &client, error, sizeof(error)) == CW_ERROR_NOT_FOUND);
    CHECK(strstr(error, "id=7") != NULL && strstr(error, "not served") != NULL);
    cw_port_close(server);
}

MEMIF_TEST(rejected)

/* A client waits for a server that has accepted its connection and says nothing, and calls again only when that one has
 * hung up. */
static void case_patient_client(int descriptor, const void *argument)
{
    char arguments[160];
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *client;
    snprintf(arguments, sizeof(arguments), "role=client,socket=%s,socket-abstract=no",
             ((const struct memif *)argument)->socket);
    const struct cw_port_ethdev_config config = config_of("net_memif0", arguments, 1500);
    CHECK(cw_port_ethdev_open(&config, &client, error, sizeof(error)) != CW_OK);
}

static bool arrives_within(int listener, int timeout_ms)
{
    struct pollfd set = {.fd = listener, .events = POLLIN};
    return poll(&set, 1, timeout_ms) == 1;
}

static void test_patient_client(void **state)
{
    struct memif pair = memif_of(1500, false);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, pair.socket);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 8), 0);
    pid_t child = case_start(case_patient_client, -1, &pair);
    assert_true(arrives_within(listener, TEST_HANG_S * 1000));
    int first = accept(listener, NULL, NULL);
    assert_false(arrives_within(listener, 500)); /* a slow server */
    close(first);
    for (uint32_t attempt = 1; attempt < DIAL_ATTEMPTS; attempt++) { /* one that refuses */
        assert_true(arrives_within(listener, TEST_HANG_S * 1000));
        close(accept(listener, NULL, NULL));
    }
    assert_int_equal(case_end(child), 0);
    close(listener);
    memif_clean(&pair);
}

static void case_unprivileged(int descriptor, const void *argument)
{
    char error[CW_PORT_TEXT_BYTES] = "", arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    struct cw_port *port = NULL;
    const struct cw_port_ethdev_config config = config_of("net_af_packet0", "iface=lo", 1500);
    /* loads the library of DPDK's part: where it lies, below /root for instance, that user may not look */
    CHECK(cw_port_ethdev_arguments(&config, arguments, sizeof(arguments)) == CW_OK);
    CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(cw_port_ethdev_open(&config, &port, error, sizeof(error)) == CW_ERROR_PERMISSION);
    CHECK(strstr(error, "CAP_NET_RAW") != NULL);
    cw_port_close(memif_open(argument, true));
}

static void test_unprivileged(void **state)
{
    if (geteuid() != 0) {
        print_message("skipped: machine: everything here runs without privilege already\n");
        skip();
    }
    memif_run(case_unprivileged, 1500);
}

int main(void)
{
    return TESTS_RUN(test_frames, test_sleep, test_death, test_stale_socket, test_unprivileged, test_rejected,
                     test_patient_client);
}
