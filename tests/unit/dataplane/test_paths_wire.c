/* Paths between hosts: the same calls as on one host, over two endpoints, with frames lost on their way. Real clock, no
 * time is asserted. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dataplane/path/path_private.h"
#include "dataplane/status.h"
#include "tests/unit/dataplane/pair_host.h"

enum { LONG_BYTES = 300001, MESSAGES = 3000, SLOT_BYTES = 4096 };

struct host {
    struct pair_host own;
    struct cw_paths *paths;
    uint32_t rank;
    uint32_t messages;
    uint32_t sent; /* to it, by the first */
    uint32_t arrived;
    uint32_t completed;
    int last_status;
    bool may_lose; /* the other rank */
    int down_status;
};

enum { HOSTS_MAX = 3 };
static struct host hosts[HOSTS_MAX];

static uint8_t byte_of(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7);
}

static uint32_t length_of(uint32_t number)
{
    return number % 5 == 0 ? SLOT_BYTES : number % 131;
}

static void message_receive(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct host *host = context;
    const uint8_t *found = data;
    assert_int_equal(from, 1 - host->rank);
    assert_int_equal(lane_tag, cw_lane_tag(9, host->messages));
    assert_int_equal(bytes, length_of(host->messages));
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(found[i], byte_of(host->messages, i));
    }
    host->messages++;
}

/* Longer than the endpoint copies when it is posted. */
struct words {
    uint32_t number;
    uint8_t rest[CW_INLINE_MAX];
};

static void words_receive(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct host *host = context;
    const struct words *words = data;
    assert_int_equal(from, 0);
    assert_int_equal(lane_tag, cw_lane_tag(9, 0));
    assert_int_equal(bytes, sizeof(*words));
    assert_int_equal(words->number, host->messages);
    host->messages++;
}

static void arrival_receive(void *context, uint32_t from, uint32_t lane_tag)
{
    struct host *host = context;
    assert_int_equal(from, 1 - host->rank);
    assert_int_equal(lane_tag, 77);
    host->arrived++;
}

static void completion_receive(void *context, uint64_t operation, int status)
{
    struct host *host = context;
    assert_int_equal(operation, 5);
    host->completed++;
    host->last_status = status;
}

static void down_receive(void *context, uint32_t from, int status)
{
    struct host *host = context;
    assert_true_msg(host->may_lose, "rank %u is down: %s", from, cw_status_text(status));
    host->down_status = status;
}

static char error[200];

/* Of a rank with the loop of a host, which gets its events. */
static struct cw_paths_config config_of(struct host *host, uint32_t rank_count,
                                        void (*message)(void *, uint32_t, uint32_t, const void *, uint32_t))
{
    return (struct cw_paths_config){
        .rank = host->rank,
        .rank_count = rank_count,
        .set = {.loops = {host->own.loop}, .count = 1},
        .address = cw_endpoint_address(host->own.endpoint),
        .message_bytes_max = SLOT_BYTES,
        .handler = {.context = host,
                    .others = {host, message},
                    .arrived = arrival_receive,
                    .complete = completion_receive,
                    .down = down_receive},
    };
}

static void host_open(struct host *host, uint32_t rank, uint32_t rank_count, struct cw_port *port, uint64_t seed)
{
    *host = (struct host){.rank = rank};
    pair_host_init(&host->own, rank, port);
    host->own.endpoint_config.seed = seed;
    host->own.endpoint_config.pool_slot_bytes = SLOT_BYTES;
    if (rank_count > 2) {
        host->own.endpoint_config.failure_timeout_ns = UINT64_MAX / 4; /* sessions never fail */
    }
    pair_host_open(&host->own, NULL, 0);
    pair_host_begin(&host->own);
    struct cw_paths_config paths = config_of(host, rank_count, rank_count == 2 ? message_receive : words_receive);
    paths.nonce = rank;
    paths.host[0] = (uint8_t)rank;
    assert_int_equal(cw_paths_create(&paths, &host->paths, error, sizeof(error)), CW_OK);
}

static void hosts_open(uint32_t count, uint32_t lose_one_in)
{
    struct cw_port *ports[HOSTS_MAX];
    struct cw_path_card cards[HOSTS_MAX];
    pair_ports_open(ports, count);
    for (uint32_t i = 0; i < count; i++) {
        pair_port_lose(ports[i], lose_one_in);
        host_open(&hosts[i], i, count, ports[i], 77 + i);
        cw_paths_card(hosts[i].paths, &cards[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            assert_int_equal(cw_paths_add(hosts[i].paths, k, &cards[k], error, sizeof(error)), CW_OK);
        }
    }
    assert_int_equal(cw_paths_transport(hosts[0].paths, 0), CW_PATH_TRANSPORT_SHARED);
    assert_int_equal(cw_paths_transport(hosts[0].paths, 1), CW_PATH_TRANSPORT_PACKETS);
}

static void host_close(struct host *host)
{
    cw_paths_destroy(host->paths);
    pair_host_end(&host->own);
}

static void hosts_close(void)
{
    host_close(&hosts[0]);
    host_close(&hosts[1]);
    cw_port_close(hosts[0].own.port);
    cw_port_close(hosts[1].own.port);
}

static void both_poll(void)
{
    if (cw_paths_poll(hosts[0].paths) + cw_paths_poll(hosts[1].paths) == 0) {
        cw_paths_wait(hosts[0].paths, 100000, NULL, NULL);
    }
}

static void registration_of(struct host *host, void *memory, uint32_t rights, struct cw_registration *registration)
{
    assert_int_equal(cw_paths_register(host->paths, 1 - host->rank, memory, LONG_BYTES, rights, registration), CW_OK);
}

static void deregistered(struct host *host, const struct cw_registration *registration)
{
    int status;
    while ((status = cw_paths_deregister(host->paths, 1 - host->rank, registration)) == CW_ERROR_AGAIN) {
        both_poll();
    }
    assert_int_equal(status, CW_OK);
}

/* More messages than credit and buffers, all lengths, each with a head and data. */
static void messages_arrive(void)
{
    uint8_t data[SLOT_BYTES];
    for (uint32_t sent = 0; sent < MESSAGES;) {
        uint32_t bytes = length_of(sent), head_bytes = bytes < 16 ? bytes : 16;
        for (uint32_t i = 0; i < bytes; i++) {
            data[i] = byte_of(sent, i);
        }
        int status = cw_paths_send(hosts[0].paths, 1, cw_lane_tag(9, sent), data, head_bytes, data + head_bytes,
                                   bytes - head_bytes, CW_ELEMENT_BYTES);
        assert_true(status == CW_OK || status == CW_ERROR_AGAIN);
        memset(data, 0xee, sizeof(data)); /* it may be reused at once */
        sent += status == CW_OK;
        if (status != CW_OK || sent % 7 == 0) {
            both_poll();
        }
    }
    while (hosts[1].messages < MESSAGES) {
        both_poll();
    }
}

static uint8_t *memory_make(bool filled)
{
    uint8_t *memory = calloc(1, LONG_BYTES);
    assert_non_null(memory);
    for (uint32_t i = 0; filled && i < LONG_BYTES; i++) {
        memory[i] = byte_of(3, i);
    }
    return memory;
}

static void memory_check(const uint8_t *memory, uint32_t from)
{
    for (uint32_t i = from; i < LONG_BYTES; i++) {
        assert_int_equal(memory[i - from], byte_of(3, i));
    }
}

static void memory_moves(void)
{
    uint8_t *source = memory_make(true), *target = memory_make(false), *other = memory_make(false);
    struct cw_registration readable, writable;
    registration_of(&hosts[1], source, CW_REGION_READ, &readable);
    registration_of(&hosts[1], other, CW_REGION_WRITE, &writable);
    assert_int_equal(cw_paths_get(hosts[0].paths, 1, &readable, 100, target, LONG_BYTES - 100, CW_ELEMENT_BYTES, 5),
                     CW_OK);
    assert_int_equal(cw_paths_put(hosts[0].paths, 1, &writable, 0, source, LONG_BYTES, CW_ELEMENT_BYTES, 77, 5), CW_OK);
    while (hosts[0].completed < 2 || hosts[1].arrived < 1) {
        both_poll();
    }
    assert_int_equal(hosts[0].last_status, CW_OK);
    memory_check(target, 100);
    memory_check(other, 0);
    deregistered(&hosts[1], &readable);
    assert_int_equal(cw_paths_get(hosts[0].paths, 1, &readable, 0, target, 10, CW_ELEMENT_BYTES, 5), CW_OK);
    while (hosts[0].completed < 3) {
        both_poll();
    }
    assert_int_equal(hosts[0].last_status, CW_ERROR_REMOTE_ACCESS);
    deregistered(&hosts[1], &writable);
    free(source);
    free(target);
    free(other);
}

static void over_networks_that_lose_frames(void **state)
{
    static const uint32_t lose_one_in[] = {0, 29};
    for (size_t i = 0; i < sizeof(lose_one_in) / sizeof(lose_one_in[0]); i++) {
        hosts_open(2, lose_one_in[i]);
        messages_arrive();
        memory_moves();
        hosts_close();
    }
}

/* Another process in the place of a rank is reported as such, whether the one before said goodbye or not. */
static void a_rank_that_starts_again_is_reported_of(void **state)
{
    for (uint32_t silent = 0; silent < 2; silent++) {
        struct cw_path_card card;
        hosts_open(2, 0);
        messages_arrive();
        pair_port_lose(hosts[0].own.port, silent);
        host_close(&hosts[0]);
        pair_port_lose(hosts[0].own.port, 0);
        hosts[1].may_lose = true;
        host_open(&hosts[0], 0, 2, hosts[0].own.port, 99);
        cw_paths_card(hosts[1].paths, &card);
        assert_int_equal(cw_paths_add(hosts[0].paths, 1, &card, error, sizeof(error)), CW_OK);
        cw_paths_probe(hosts[0].paths, 1);
        while (hosts[1].down_status == CW_OK) {
            both_poll();
        }
        assert_int_equal(hosts[1].down_status, CW_ERROR_PEER_RESTARTED);
        assert_false(cw_paths_is_silent(hosts[1].paths, 0));
        assert_string_equal(cw_paths_failure(hosts[1].paths), "rank 0: the peer has restarted");
        assert_int_equal(cw_paths_message_max(hosts[1].paths, 0), SLOT_BYTES); /* as before: it is still said so long */
        static const uint8_t long_one[SLOT_BYTES] = {0};
        assert_int_equal(cw_paths_send(hosts[1].paths, 0, 0, NULL, 0, long_one, SLOT_BYTES, CW_ELEMENT_BYTES),
                         CW_ERROR_PEER_FAILED);
        hosts_close();
    }
}

static void the_reason_can_be_queried(void **state)
{
    char text[200];
    hosts_open(2, 0);
    cw_paths_why(hosts[1].paths, 0, text, sizeof(text));
    assert_string_equal(text, "rank 0: packets, since it is on another host; 10.0.0.1, UDP port 29300");
    assert_int_equal(cw_paths_message_max(hosts[1].paths, 0), SLOT_BYTES);
    hosts_close();
}

/* ---- a rank that waits for shared memory and the wire at once ---- */

enum { ROUNDS = 100, YIELDS = 5000 };

/* Rank 1 of this host, which has no wire of its own. */
struct neighbour {
    struct cw_paths *paths;
    atomic_uint answers;
};

static void answer_receive(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct neighbour *neighbour = context;
    atomic_fetch_add(&neighbour->answers, 1);
}

static void count_message(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct host *host = context;
    host->messages++;
}

/* Sleeps for an hour each time there is nothing, and answers each message. */
static void *answer_all(void *argument)
{
    struct host *host = argument;
    for (uint32_t answered = 0; answered < ROUNDS;) {
        if (cw_paths_poll(host->paths) == 0) {
            cw_paths_wait(host->paths, 3600000000000ull, NULL, NULL);
        }
        while (answered < host->messages &&
               cw_paths_send(host->paths, 1, 0, "answer", 6, NULL, 0, CW_ELEMENT_BYTES) == CW_OK) {
            answered++;
        }
    }
    return NULL;
}

/* A neighbour's message ends the sleep at the port: no sleep ends by its time. */
static void shared_memory_ends_a_sleep_at_the_port(void **state)
{
    struct cw_port *ports[2];
    struct host host;
    struct neighbour neighbour = {0};
    struct cw_path_card cards[2];
    pthread_t thread;
    pair_port_open(ports);
    host_open(&host, 0, 2, ports[0], 77);
    cw_paths_destroy(host.paths);
    struct cw_paths_config config = config_of(&host, 2, count_message);
    config.nonce = 5;
    assert_int_equal(cw_paths_create(&config, &host.paths, error, sizeof(error)), CW_OK);
    config.rank = 1;
    config.set.count = 0;
    config.handler.context = config.handler.others.context = &neighbour;
    config.handler.others.message = answer_receive;
    assert_int_equal(cw_paths_create(&config, &neighbour.paths, error, sizeof(error)), CW_OK);
    cw_paths_card(host.paths, &cards[0]);
    cw_paths_card(neighbour.paths, &cards[1]);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(cw_paths_add(host.paths, i, &cards[i], error, sizeof(error)), CW_OK);
        assert_int_equal(cw_paths_add(neighbour.paths, i, &cards[i], error, sizeof(error)), CW_OK);
    }
    assert_int_equal(pthread_create(&thread, NULL, answer_all, &host), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < YIELDS; i++) { /* so that it sleeps, mostly; nothing depends on that */
            sched_yield();
        }
        assert_int_equal(cw_paths_send(neighbour.paths, 0, 0, "question", 8, NULL, 0, CW_ELEMENT_BYTES), CW_OK);
        while (atomic_load(&neighbour.answers) <= round) {
            (void)cw_paths_poll(neighbour.paths);
        }
    }
    pthread_join(thread, NULL);
    struct cw_paths_counters counters = cw_paths_counters(host.paths);
    assert_true(counters.sleeps > 0);
    assert_int_equal(counters.time_outs, 0);
    cw_paths_destroy(neighbour.paths);
    host_close(&host);
    cw_port_close(ports[0]);
    cw_port_close(ports[1]);
}

/* ---- two other hosts, one of which stops: messages that wait for it delay no other ---- */

enum { HOSTS = 3, OWN = 0, STOPPED = 1, LIVE = 2, WORDS = 2000 };

static int words_send(uint32_t to)
{
    struct words words = {.number = hosts[to].sent};
    int status =
        cw_paths_send(hosts[OWN].paths, to, cw_lane_tag(9, 0), &words, sizeof(words), NULL, 0, CW_ELEMENT_BYTES);
    hosts[to].sent += status == CW_OK;
    return status;
}

/* Sends until there is no room; returns how many it took. */
static uint32_t fill(uint32_t to)
{
    uint32_t before = hosts[to].sent;
    while (words_send(to) == CW_OK) {
    }
    return hosts[to].sent - before;
}

/* Turns the first and, of the others, those of `set`. */
static void hosts_poll(uint32_t set)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (i == OWN || (set >> i & 1) != 0) {
            (void)cw_paths_poll(hosts[i].paths);
        }
    }
}

/* Until `at` has all that was sent to it. */
static void all_arrives(uint32_t set, uint32_t at)
{
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (hosts[at].messages < hosts[at].sent && cw_clock_ns() < until_ns) {
        hosts_poll(set);
    }
    assert_int_equal(hosts[at].messages, hosts[at].sent);
}

/* Until nothing is kept for a host any more. */
static void all_released(uint32_t set, uint32_t to)
{
    const uint32_t *held = &hosts[OWN].paths->peers[to].messages_held;
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (*held > 0 && cw_clock_ns() < until_ns) {
        hosts_poll(set);
    }
    assert_int_equal(*held, 0);
}

/* One host stops with all operations that may wait for it; messages to the other one continue. Then it comes back, and
 * gets all of them, in order; the next time it leaves, and its credit is free for the other. */
static void test_host_that_stops_holds_up_nobody_else(void **state)
{
    enum { ONE = 1 << LIVE, BOTH = 1 << STOPPED | 1 << LIVE };
    hosts_open(HOSTS, 0);
    for (uint32_t at = STOPPED; at <= LIVE; at++) { /* sessions are up */
        assert_int_equal(words_send(at), CW_OK);
        all_arrives(BOTH, at);
        all_released(BOTH, at);
    }
    uint32_t whole[2];
    for (uint32_t leaves = 0; leaves < 2; leaves++) {
        whole[leaves] = fill(STOPPED);
        for (uint32_t round = 0; round < WORDS; round++) {
            (void)fill(STOPPED); /* whenever there is room for it */
            assert_int_equal(words_send(LIVE), CW_OK);
            all_arrives(ONE, LIVE);
        }
        assert_int_equal(words_send(STOPPED), CW_ERROR_AGAIN);
        if (leaves == 0) {
            all_arrives(BOTH, STOPPED);
        } else {
            host_close(&hosts[STOPPED]);
        }
        for (uint32_t at = STOPPED; at <= LIVE; at++) {
            all_released(leaves == 0 ? BOTH : ONE, at);
        }
    }
    assert_int_equal(whole[1], whole[0]);
    assert_int_equal(fill(LIVE), whole[0]);
    all_arrives(ONE, LIVE);
    host_close(&hosts[OWN]);
    host_close(&hosts[LIVE]);
    for (uint32_t i = 0; i < HOSTS; i++) {
        cw_port_close(hosts[i].own.port);
    }
}

int main(void)
{
    return TESTS_RUN(over_networks_that_lose_frames, a_rank_that_starts_again_is_reported_of, the_reason_can_be_queried,
                     shared_memory_ends_a_sleep_at_the_port, test_host_that_stops_holds_up_nobody_else);
}
