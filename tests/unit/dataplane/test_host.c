/* Hosts: texts, names and cards that are wrong are refused with a reason; two hosts find each other by their cards, or
 * by a name and a port. The put itself: apps/examples/put.c, tests/lab/library_usage.py. */
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "dataplane/base/random.h"
#include "dataplane/host/host.h"
#include "tests/test.h"

static struct cw_host_config config_of(const char *port)
{
    struct cw_host_config config;
    cw_host_config_init(&config);
    config.port = port;
    config.endpoint.job_key[3] = 1;
    return config;
}

#define SIXTY "012345678901234567890123456789012345678901234567890123456789"

static void test_ports_that_are_none_are_rejected(void **state)
{
    static const char *const ports[] = {
        NULL,
        "",
        ",role=server",
        "memif:",
        "memif:/tmp/x",
        "memif:/tmp/x,role=both",
        "memif:,role=server",
        ("memif:/tmp/" SIXTY SIXTY ",role=client"),
        "udp:",
        "udp:localhost:",
        "udp:1",
        "udp:no name",
        "udp:[localhost]",
        "udp:127.0.0.1:",
        "udp:127.0.0.1:65536",
        "udp:127.0.0.1,x",
    };
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        struct cw_host_config config = config_of(ports[i]);
        struct cw_host *host = NULL;
        char error[300] = "";
        assert_int_equal(cw_host_open(&config, &host, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_null(host);
        const char *port = ports[i] == NULL ? "" : ports[i];
        bool is_number = strstr(port, "127.0.0.1:") != NULL || strstr(port, "localhost:") != NULL;
        bool is_udp = strncmp(port, "udp:", 4) == 0;
        assert_non_null(strstr(error, is_number ? "the UDP port" : is_udp ? "expected udp:ADDRESS" : "expected "));
        assert_null(strchr(error, '\n'));
    }
}

static void test_a_card_is_its_address(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (int i = 0; i < 10000; i++) {
        struct cw_address address = {.ip = cw_ip_v4((uint32_t)cw_random_next(&random)),
                                     .udp_port = (uint16_t)cw_random_next(&random)};
        if (i % 2 == 1) {
            cw_random_fill(&random, address.ip.bytes, (size_t)i % 16 + 1);
        }
        struct cw_address read;
        char card[CW_CARD_BYTES], damaged[CW_CARD_BYTES];
        uint64_t mac = cw_random_next(&random);
        memcpy(address.mac, &mac, sizeof(address.mac));
        cw_card_write(&address, card);
        assert_int_equal(cw_card_read(card, &read), CW_OK);
        assert_true(cw_ip_is_equal(&read.ip, &address.ip));
        assert_int_equal(read.udp_port, address.udp_port);
        assert_memory_equal(read.mac, address.mac, sizeof(read.mac));
        /* a damaged card is no card, or that of another address: never of the same */
        memcpy(damaged, card, sizeof(damaged));
        damaged[cw_random_below(&random, strlen(card))] = (char)cw_random_next(&random);
        if (cw_card_read(damaged, &read) == CW_OK) {
            char again[CW_CARD_BYTES];
            cw_card_write(&read, again);
            assert_string_equal(again, damaged);
        }
    }
    static const char *const none[] = {"",
                                       "10.0.0.1",
                                       "10.0.0.1:4791",
                                       "10.0.0.256:1/02:00:00:00:00:01",
                                       "10.0.0.1:65536/02:00:00:00:00:01",
                                       "10.0.0.1:1/02:00:00:00:00:01 "};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct cw_address read = {.udp_port = 7};
        assert_int_equal(cw_card_read(none[i], &read), CW_ERROR_ARGUMENT);
        assert_int_equal(read.udp_port, 7);
    }
}

/* Two hosts with sockets, one thread: puts from each to the other at once, sealed and signed. */
static void sockets_exchange(enum cw_encryption encryption)
{
    enum { BYTES = 3000000 };
    static uint8_t source[2][BYTES], target[2][BYTES];
    struct cw_host *hosts[2];
    uint64_t tokens[2];
    char card[CW_CARD_BYTES], error[300] = "";
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_host_config config = config_of("udp:127.0.0.1");
        config.endpoint.encryption = encryption;
        assert_true_msg(cw_host_open(&config, &hosts[i], error, sizeof(error)) == CW_OK, "%s", error);
        for (uint32_t at = 0; at < BYTES; at++) {
            source[i][at] = (uint8_t)(at * 31 + at / 256 + i);
        }
        memset(target[i], 0, BYTES);
        assert_int_equal(cw_host_register(hosts[i], target[i], BYTES, CW_REGION_WRITE, &tokens[i]), CW_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_put put = {
            .region = tokens[1 - i], .source = {.contiguous = {.data = source[i], .bytes = BYTES}}, .flags = CW_SIGNAL};
        cw_host_card(hosts[1 - i], card);
        assert_int_equal(cw_host_peer(hosts[i], card, &put.peer, error, sizeof(error)), CW_OK);
        assert_int_equal(cw_loop_put(cw_host_loop(hosts[i]), &put), CW_OK);
    }
    for (uint32_t events = 0; events < 4;) {
        for (uint32_t i = 0; i < 2; i++) {
            struct cw_event event;
            if (cw_loop_wait(cw_host_loop(hosts[i]), &event, 1, 0) == 1) {
                assert_true(event.kind != CW_EVENT_PEER_DOWN && event.status == CW_OK);
                events += event.kind == CW_EVENT_PUT || event.kind == CW_EVENT_COMPLETE;
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_memory_equal(target[i], source[1 - i], BYTES);
        cw_host_close(hosts[i]);
    }
}

static void test_hosts_with_sockets(void **state)
{
    sockets_exchange(CW_ENCRYPTION_OFF);
    sockets_exchange(CW_ENCRYPTION_REQUIRED);
}

static struct cw_host *host_open(const char *port)
{
    struct cw_host_config config = config_of(port);
    struct cw_host *host = NULL;
    char error[CW_ERROR_TEXT_BYTES] = "";
    config.loop.fallback = CW_FALLBACK_NONE;
    assert_true_msg(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, "%s", error);
    return host;
}

static void test_names_that_do_not_resolve_are_rejected(void **state)
{
    static const char *const texts[] = {"nowhere.invalid:4791", "nowhere.invalid:4791/02:00:00:00:00:01"};
    struct cw_host_config config = config_of("udp:nowhere.invalid");
    struct cw_host *host = NULL;
    char error[CW_ERROR_TEXT_BYTES] = "";
    assert_int_equal(cw_host_open(&config, &host, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    assert_null(host);
    assert_non_null(strstr(error, "host name nowhere.invalid: it does not resolve to an IP address: "));
    assert_non_null(strstr(error, ". Fix: "));
    host = host_open("udp:127.0.0.1");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint32_t peer = 77;
        error[0] = '\0';
        assert_int_equal(cw_host_peer(host, texts[i], &peer, error, sizeof(error)), CW_ERROR_NOT_FOUND);
        assert_int_equal(peer, 77);
        assert_non_null(strstr(error, "host name nowhere.invalid: it does not resolve to an IPv4 address: "));
        assert_non_null(strstr(error, ". Fix: "));
    }
    cw_host_close(host);
}

static void test_peers_that_are_none_are_rejected(void **state)
{
    static const char *const texts[] = {"",
                                        "localhost",
                                        "localhost:",
                                        "localhost:x",
                                        "localhost:65536",
                                        "localhost:1 ",
                                        "localhost:1/",
                                        "127.0.0.1:1/02:00:00:00:00",
                                        "[localhost]:1",
                                        "1:1"};
    struct cw_host *host = host_open("udp:127.0.0.1");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint32_t peer = 77;
        char error[CW_ERROR_TEXT_BYTES] = "";
        assert_int_equal(cw_host_peer(host, texts[i], &peer, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_int_equal(peer, 77);
        assert_non_null(strstr(error, "wanted is its card"));
    }
    cw_host_close(host);
}

static void loops_wait(struct cw_host *hosts[2], struct pollfd *set)
{
    uint64_t timeout_ns = UINT64_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t own_ns = cw_loop_arm(cw_host_loop(hosts[i]));
        timeout_ns = own_ns < timeout_ns ? own_ns : timeout_ns;
    }
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    (void)ppoll(set, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

/* A name, and the UDP port of the other host's card, are enough for a peer. The application has an event loop, so that
 * a packet that does not make the descriptor readable shows as a test that does not end. */
static void names_meet(const char *port, const char *name)
{
    enum { MESSAGES = 100 };
    struct cw_host *hosts[2] = {host_open(port), host_open(port)};
    struct pollfd set[2];
    char card[CW_CARD_BYTES], text[300], error[CW_ERROR_TEXT_BYTES] = "";
    uint32_t peers[2] = {0}, sent = 0, arrived = 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_address address;
        cw_host_card(hosts[1 - i], card);
        assert_int_equal(cw_card_read(card, &address), CW_OK);
        snprintf(text, sizeof(text), "%s:%u", name, address.udp_port);
        assert_true_msg(cw_host_peer(hosts[i], text, &peers[i], error, sizeof(error)) == CW_OK, "%s", error);
        set[i].events = POLLIN;
        assert_int_equal(cw_loop_descriptor(cw_host_loop(hosts[i]), &set[i].fd, error, sizeof(error)), CW_OK);
    }
    while (arrived < MESSAGES) {
        const struct cw_message message = {
            .peer = peers[0], .lane_tag = cw_lane_tag(0, sent), .source = {.contiguous = {.data = text, .bytes = 5}}};
        sent += sent == arrived && cw_loop_message_send(cw_host_loop(hosts[0]), &message) == CW_OK;
        for (uint32_t i = 0; i < 2; i++) {
            struct cw_event event;
            while (cw_loop_poll(cw_host_loop(hosts[i]), &event, 1) > 0) {
                if (event.kind == CW_EVENT_MESSAGE) {
                    assert_int_equal(cw_tag(event.lane_tag), arrived);
                    arrived++;
                    assert_int_equal(cw_loop_message_release(cw_host_loop(hosts[i]), event.slot), CW_OK);
                }
            }
        }
        if (sent != arrived) {
            loops_wait(hosts, set);
        }
    }
    cw_host_close(hosts[0]);
    cw_host_close(hosts[1]);
}

static void test_hosts_meet_by_name(void **state)
{
    names_meet("udp:localhost", "localhost");
    names_meet("udp:127.0.0.1", "localhost");
    names_meet("udp:127.0.0.1", "127.0.0.1");
    names_meet("udp:[::1]", "[::1]");
    const struct addrinfo wanted = {.ai_family = AF_INET6};
    struct addrinfo *found;
    if (getaddrinfo("localhost", NULL, &wanted, &found) == 0) { /* /etc/hosts may have it for IPv4 only */
        freeaddrinfo(found);
        names_meet("udp:[::1]", "localhost");
    }
}

int main(void)
{
    return TESTS_RUN(test_a_card_is_its_address, test_hosts_with_sockets, test_hosts_meet_by_name,
                     test_ports_that_are_none_are_rejected, test_names_that_do_not_resolve_are_rejected,
                     test_peers_that_are_none_are_rejected);
}
