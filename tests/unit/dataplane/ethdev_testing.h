/* Shared by the tests of the ethdev port. EAL starts once per process, so each case runs in a process of its own;
 * checks there end it with a message and exit code 1, which the parent turns into a failed test. */
#pragma once

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { CASE_SKIPPED = 77 };

#define NS_PER_HOUR UINT64_C(3600000000000)

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
static inline void check(bool condition, const char *text, const char *file, int line)
{
    if (!condition) {
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
        _exit(1);
    }
}

_Noreturn static inline void case_skip(const char *reason)
{
    printf("skipped: machine: %s\n", reason);
    fflush(stdout);
    _exit(CASE_SKIPPED);
}

/* fork with a child that does not outlive its parent: a failed case leaves no processes behind. */
static inline pid_t case_fork(void)
{
    fflush(stdout);
    fflush(stderr);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
    }
    return child;
}

typedef void case_function(int descriptor, const void *argument);

static inline pid_t case_start(case_function *function, int descriptor, const void *argument)
{
    pid_t child = case_fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(TEST_HANG_S); /* a wake-up was lost */
        function(descriptor, argument);
        _exit(0);
    }
    return child;
}

static inline int case_end(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true_msg(!WIFSIGNALED(status), "the case was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Runs one case in its own process. */
static inline void case_run(case_function *function, const void *argument)
{
    int code = case_end(case_start(function, -1, argument));
    if (code == CASE_SKIPPED) {
        skip();
    }
    assert_int_equal(code, 0);
}

/* The test of a case without an argument. */
#define CASE_TEST(name)                   \
    static void test_##name(void **state) \
    {                                     \
        case_run(case_##name, NULL);      \
    }

/* Runs two that are connected by a stream socket. */
static inline void case_run_pair(case_function *left, case_function *right, const void *argument)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t children[2] = {case_start(left, ends[0], argument), case_start(right, ends[1], argument)};
    close(ends[0]);
    close(ends[1]);
    int codes[2] = {case_end(children[0]), case_end(children[1])};
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], 0);
}

/* Says and waits for "here I am". */
static inline void pair_signal(int descriptor)
{
    CHECK(write(descriptor, "x", 1) == 1);
}

static inline void pair_wait(int descriptor)
{
    char byte;
    CHECK(read(descriptor, &byte, 1) == 1);
}

static inline struct cw_port_ethdev_config config_of(const char *device, const char *arguments, uint32_t mtu_bytes)
{
    struct cw_port_ethdev_config config;
    cw_port_ethdev_config_init(&config);
    config.device = device;
    config.device_arguments = arguments;
    config.mtu_bytes = mtu_bytes;
    return config;
}

static inline struct cw_port *port_open(const struct cw_port_ethdev_config *config)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    int status = cw_port_ethdev_open(config, &port, error, sizeof(error));
    if (status != CW_OK) {
        fprintf(stderr, "open %s: %d: %s\n", config->device, status, error);
        _exit(1);
    }
    return port;
}

static inline struct cw_port *port_of(const char *device, const char *arguments, uint32_t mtu_bytes)
{
    struct cw_port_ethdev_config config = config_of(device, arguments, mtu_bytes);
    return port_open(&config);
}

static inline void link_wait(struct cw_port *port, bool up)
{
    while (cw_port_link_up(port) != up) {
        usleep(1000);
    }
}

/* The two ends of a memif. */
struct memif {
    char socket[64];
    char bell[64];
    uint32_t mtu_bytes;
    uint32_t queue_count;
    bool use_bell;
};

static inline struct memif memif_of(uint32_t mtu_bytes, bool use_bell)
{
    struct memif memif = {.mtu_bytes = mtu_bytes, .queue_count = 1, .use_bell = use_bell};
    snprintf(memif.socket, sizeof(memif.socket), "/tmp/causeway-memif-%d.sock", getpid());
    snprintf(memif.bell, sizeof(memif.bell), "/tmp/causeway-memif-%d.bell", getpid());
    return memif;
}

static inline struct cw_port *memif_open(const struct memif *memif, bool is_server)
{
    char arguments[160];
    snprintf(arguments, sizeof(arguments), "role=%s,socket=%s,socket-abstract=no", is_server ? "server" : "client",
             memif->socket);
    struct cw_port_ethdev_config config = config_of("net_memif0", arguments, memif->mtu_bytes);
    config.queue_count = memif->queue_count;
    config.doorbell_path = memif->use_bell ? memif->bell : NULL;
    config.doorbell_own = is_server;
    config.doorbell_peer = !is_server;
    return port_open(&config);
}

static inline void memif_clean(const struct memif *memif)
{
    unlink(memif->socket);
    unlink(memif->bell);
}

static inline void memif_run(case_function *function, uint32_t mtu_bytes)
{
    struct memif memif = memif_of(mtu_bytes, false);
    case_run(function, &memif);
    memif_clean(&memif);
}

/* The test of a case with a memif. */
#define MEMIF_TEST(name)                  \
    static void test_##name(void **state) \
    {                                     \
        memif_run(case_##name, 1500);     \
    }

static inline void memif_run_pair(case_function *server, case_function *client, struct memif memif)
{
    case_run_pair(server, client, &memif);
    memif_clean(&memif);
}

/* Enters a new network namespace, which has no interfaces but lo. */
static inline void namespace_enter(void)
{
    if (geteuid() != 0) {
        case_skip("network namespaces need root");
    }
    if (unshare(CLONE_NEWNET) != 0) {
        case_skip("the kernel refuses a new network namespace");
    }
}

/* A frame whose bytes follow from its number and length: behind a header that the kernel does not understand. */
static inline void frame_fill(uint8_t *data, uint32_t length, uint32_t number)
{
    static const uint8_t header[14] = {0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xb5};
    uint32_t state = number * 2654435761u + length;
    for (uint32_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = i < sizeof(header) ? header[i] : (uint8_t)(state >> 24);
    }
    if (length >= 18) {
        memcpy(data + 14, &number, sizeof(number));
    }
}

/* True for one of ours; then it must be intact. */
static inline bool frame_check(const struct cw_received *packet, uint32_t *number)
{
    static uint8_t expected[CW_PORT_MTU_MAX + 14];
    if (packet->length < 18 || packet->data[12] != 0x88 || packet->data[13] != 0xb5) {
        return false;
    }
    memcpy(number, packet->data + 14, sizeof(*number));
    frame_fill(expected, packet->length, *number);
    CHECK(memcmp(expected, packet->data, packet->length) == 0);
    return true;
}

/* The next packet that comes is this frame. */
static inline void frame_await(struct cw_port *port, uint32_t length, uint32_t number)
{
    struct cw_received packet;
    uint32_t got = 0;
    while (cw_port_receive(port, &packet, 1) == 0) {
        cw_port_sleep(port, NS_PER_HOUR);
    }
    CHECK(packet.length == length && frame_check(&packet, &got) && got == number);
    cw_port_release(port, &packet, 1);
}

/* Sends one frame: its first `header_bytes` in the buffer, the rest, if any, as external pieces out of `memory`. */
static inline void frame_send(struct cw_port *port, uint32_t length, uint32_t number)
{
    struct cw_transmit packet;
    while (cw_port_reserve(port, &packet, 1) == 0) {
    }
    frame_fill(packet.data, length, number);
    packet.length = length;
    while (cw_port_transmit(port, &packet, 1) == 0) {
    }
}
