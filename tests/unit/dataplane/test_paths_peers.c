/* Paths to two other hosts, one of which stops: messages that wait for it hold up nobody else. Real clock, no time is
 * asserted. */
#include "dataplane/path/path_private.h"
#include "dataplane/status.h"
#include "tests/unit/dataplane/pair_host.h"

enum { HOSTS = 3, OWN = 0, STOPPED = 1, LIVE = 2, SLOT_BYTES = 4096, ROUNDS = 2000 };

struct host {
    struct pair_host own;
    struct cw_paths *paths;
    uint32_t rank;
    uint32_t sent; /* to it, by the first */
    uint32_t messages;
};

/* Longer than what the endpoint copies when it is posted. */
struct words {
    uint32_t number;
    uint8_t rest[CW_INLINE_MAX];
};

static void take_message(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct host *host = context;
    const struct words *words = data;
    assert_int_equal(from, OWN);
    assert_int_equal(lane_tag, cw_lane_tag(9, 0));
    assert_int_equal(bytes, sizeof(*words));
    assert_int_equal(words->number, host->messages);
    host->messages++;
}

static void take_arrival(void *context, uint32_t from, uint32_t lane_tag)
{
    fail_msg("a put of rank %u with tag %u", from, lane_tag);
}

static void take_completion(void *context, uint64_t operation, int status)
{
    fail_msg("an operation has ended: %s", cw_status_text(status));
}

static void take_down(void *context, uint32_t from, int status)
{
    fail_msg("rank %u is down: %s", from, cw_status_text(status));
}

static void host_open(struct host *host, uint32_t rank, struct cw_port *port)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    *host = (struct host){.rank = rank};
    pair_host_init(&host->own, rank, port);
    host->own.endpoint_config.pool_slot_bytes = SLOT_BYTES;
    host->own.endpoint_config.failure_timeout_ns = UINT64_MAX / 4; /* nobody fails, however long it stands still */
    pair_host_open(&host->own, NULL, 0);
    pair_host_begin(&host->own);
    struct cw_paths_config paths = {
        .rank = rank,
        .rank_count = HOSTS,
        .host = {(uint8_t)rank},
        .nonce = rank,
        .set = {.loops = {host->own.loop}, .count = 1},
        .address = cw_endpoint_address(host->own.endpoint),
        .message_bytes_max = SLOT_BYTES,
        .handler = {.context = host,
                    .others = {host, take_message},
                    .arrived = take_arrival,
                    .complete = take_completion,
                    .down = take_down},
    };
    assert_int_equal(cw_paths_create(&paths, &host->paths, error, sizeof(error)), CW_OK);
}

static void host_close(struct host *host)
{
    cw_paths_destroy(host->paths);
    pair_host_end(&host->own);
}

static void hosts_open(struct host *hosts)
{
    struct cw_port *ports[HOSTS];
    struct cw_path_card cards[HOSTS];
    char error[CW_PORT_TEXT_BYTES] = "";
    pair_ports_open(ports, HOSTS);
    for (uint32_t i = 0; i < HOSTS; i++) {
        host_open(&hosts[i], i, ports[i]);
        cw_paths_card(hosts[i].paths, &cards[i]);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < HOSTS; k++) {
            assert_int_equal(cw_paths_add(hosts[i].paths, k, &cards[k], error, sizeof(error)), CW_OK);
        }
    }
}

static int words_send(struct host *hosts, uint32_t to)
{
    struct words words = {.number = hosts[to].sent};
    int status =
        cw_paths_send(hosts[OWN].paths, to, cw_lane_tag(9, 0), &words, sizeof(words), NULL, 0, CW_ELEMENT_BYTES);
    hosts[to].sent += status == CW_OK;
    return status;
}

/* Sends until there is no room; returns how many it took. */
static uint32_t fill(struct host *hosts, uint32_t to)
{
    uint32_t before = hosts[to].sent;
    while (words_send(hosts, to) == CW_OK) {
    }
    return hosts[to].sent - before;
}

/* Turns the first and, of the others, those of `set`. */
static void hosts_poll(struct host *hosts, uint32_t set)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (i == OWN || (set >> i & 1) != 0) {
            (void)cw_paths_poll(hosts[i].paths);
        }
    }
}

/* Until `at` has all that was sent to it. */
static void all_arrives(struct host *hosts, uint32_t set, uint32_t at)
{
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (hosts[at].messages < hosts[at].sent && cw_clock_ns() < until_ns) {
        hosts_poll(hosts, set);
    }
    assert_int_equal(hosts[at].messages, hosts[at].sent);
}

/* Until nothing is kept for a host any more. */
static void all_is_given_back(struct host *hosts, uint32_t set, uint32_t to)
{
    const uint32_t *held = &hosts[OWN].paths->peers[to].messages_held;
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (*held > 0 && cw_clock_ns() < until_ns) {
        hosts_poll(hosts, set);
    }
    assert_int_equal(*held, 0);
}

/* One host stops with all that may wait for it; messages to the other one go on. Then it comes back, and has all of
 * them, in order; the next time it leaves, and what it held is there for the other. */
static void test_host_that_stops_holds_up_nobody_else(void **state)
{
    enum { ONE = 1 << LIVE, BOTH = 1 << STOPPED | 1 << LIVE };
    struct host hosts[HOSTS];
    hosts_open(hosts);
    for (uint32_t at = STOPPED; at <= LIVE; at++) { /* sessions are up */
        assert_int_equal(words_send(hosts, at), CW_OK);
        all_arrives(hosts, BOTH, at);
        all_is_given_back(hosts, BOTH, at);
    }
    uint32_t whole[2];
    for (uint32_t leaves = 0; leaves < 2; leaves++) {
        whole[leaves] = fill(hosts, STOPPED);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            (void)fill(hosts, STOPPED); /* whenever there is room for it */
            assert_int_equal(words_send(hosts, LIVE), CW_OK);
            all_arrives(hosts, ONE, LIVE);
        }
        assert_int_equal(words_send(hosts, STOPPED), CW_ERROR_AGAIN);
        if (leaves == 0) {
            all_arrives(hosts, BOTH, STOPPED);
        } else {
            host_close(&hosts[STOPPED]);
        }
        for (uint32_t at = STOPPED; at <= LIVE; at++) {
            all_is_given_back(hosts, leaves == 0 ? BOTH : ONE, at);
        }
    }
    assert_int_equal(whole[1], whole[0]);
    assert_int_equal(fill(hosts, LIVE), whole[0]);
    all_arrives(hosts, ONE, LIVE);
    host_close(&hosts[OWN]);
    host_close(&hosts[LIVE]);
    for (uint32_t i = 0; i < HOSTS; i++) {
        cw_port_close(hosts[i].own.port);
    }
}

int main(void)
{
    return TESTS_RUN(test_host_that_stops_holds_up_nobody_else);
}
