/* A protocol of an application, tested in virtual time. C, C++: cc simulated_protocol.c $(pkg-config --cflags --libs
 * causeway)
 *
 * The protocol: a leader replicates a log to two followers. It puts each entry into their memory, and then sends them
 * a message with the number of entries. A follower applies all entries up to that number.
 * The fault: entries and messages have different lanes, and the order of posting only holds within a lane. If the
 * packet of an entry is lost, the message arrives before the entry.
 *
 * usage: simulated_protocol            runs seeds 1, 2, 3, ... until one violates the invariant
 *        simulated_protocol SEED       the same run again
 *        simulated_protocol fixed N    runs N seeds with one lane for both */
#include <causeway/simulator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEADER = 0, HOSTS = 3, ENTRIES = 200, ENTRY_LANE = 1, MESSAGE_LANE = 2 };
static const uint64_t INTERVAL_NS = 20000, MS = 1000000;

struct host {
    struct run *run;
    uint32_t number;
    struct cw_endpoint *endpoint;
    uint64_t log[ENTRIES]; /* of a follower: the leader writes it */
    uint64_t log_token;
    uint64_t applied;
    uint32_t peer;   /* at the leader */
    uint32_t posted; /* to it: entries and messages */
};

struct run {
    struct cw_simulator *simulator;
    bool is_fixed;
    struct host hosts[HOSTS];
    char failure[100];
};

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "simulated_protocol: %s\n", what);
        exit(2);
    }
}

static int post_next(struct host *leader, struct host *follower)
{
    uint64_t number = follower->posted / 2 + 1; /* of the entry, which is also its value */
    if (follower->posted % 2 == 0) {
        static struct cw_put put;
        put.peer = follower->peer;
        put.lane_tag = cw_lane_tag(ENTRY_LANE, 0);
        put.region = follower->log_token;
        put.offset = (number - 1) * sizeof(number);
        put.source.contiguous.data = &number; /* short: it is copied */
        put.source.contiguous.bytes = sizeof(number);
        put.flags = CW_ALONE;
        return cw_put(leader->endpoint, &put);
    }
    static struct cw_message message;
    message.peer = follower->peer;
    message.lane_tag = cw_lane_tag(leader->run->is_fixed ? ENTRY_LANE : MESSAGE_LANE, 0);
    message.source.contiguous.data = &number;
    message.source.contiguous.bytes = sizeof(number);
    return cw_message_send(leader->endpoint, &message);
}

/* The invariant: an entry is applied with its value. */
static void apply(struct host *follower, uint64_t count, uint64_t now_ns)
{
    for (; follower->applied < count && follower->run->failure[0] == '\0'; follower->applied++) {
        if (follower->log[follower->applied] != follower->applied + 1) {
            snprintf(follower->run->failure, sizeof(follower->run->failure),
                     "follower %u applies entry %u at %.6f ms, before it arrives", follower->number,
                     (unsigned)follower->applied + 1, (double)now_ns / 1e6);
        }
    }
}

static uint64_t turn(void *context, uint64_t now_ns)
{
    struct host *host = (struct host *)context;
    uint64_t next_ns = CW_SIMULATOR_NEVER, count;
    struct cw_event event;
    while (cw_endpoint_events(host->endpoint, &event, 1) == 1) {
        if (event.kind == CW_EVENT_MESSAGE) {
            memcpy(&count, event.data, sizeof(count));
            cw_message_release(host->endpoint, event.slot);
            apply(host, count, now_ns);
        }
    }
    for (uint32_t i = 1; i < HOSTS && host->number == LEADER; i++) {
        struct host *follower = &host->run->hosts[i];
        while (follower->posted < 2 * ENTRIES && follower->posted / 2 * INTERVAL_NS <= now_ns &&
               post_next(host, follower) == CW_OK) { /* else the queue is full: again after an interval */
            follower->posted++;
        }
        next_ns = follower->posted < 2 * ENTRIES ? now_ns + INTERVAL_NS : next_ns;
    }
    return next_ns;
}

/* One run. False: it violates the invariant, or has no end. */
static bool run_seed(uint64_t seed, bool is_fixed)
{
    static struct run run;
    struct cw_simulator_config config;
    struct cw_simulator_node_config node;
    struct cw_endpoint_config endpoint;
    char error[CW_ERROR_TEXT_BYTES] = "";
    memset(&run, 0, sizeof(run));
    run.is_fixed = is_fixed;
    cw_simulator_config_init(&config);
    cw_simulator_node_config_init(&node);
    cw_simulator_endpoint_config_init(&endpoint, HOSTS);
    config.seed = seed;
    node.up.loss = node.down.loss = 0.0005;
    node.down.reorder = 0.001;
    node.down.reorder_delay_max_ns = MS / 10;
    check(cw_simulator_create(&config, &run.simulator) == CW_OK, "no simulator");
    check(cw_simulator_star(run.simulator, HOSTS, &node) == 0, "no network");
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct host *host = &run.hosts[i];
        host->run = &run;
        host->number = i;
        check(cw_simulator_host_start(run.simulator, i, &endpoint, turn, host, error, sizeof(error)) == CW_OK, error);
        host->endpoint = cw_simulator_endpoint(run.simulator, i);
        check(cw_region_register(host->endpoint, host->log, sizeof(host->log), CW_REGION_WRITE, &host->log_token) ==
                  CW_OK,
              "no region");
        check(i == LEADER || cw_simulator_peer(run.simulator, LEADER, i, &host->peer) == CW_OK, "no peer");
    }
    check(cw_simulator_partition_at(run.simulator, 1, MS, 3 * MS) == CW_OK, "no partition");
    bool is_over = cw_simulator_run(run.simulator, 10000 * MS);
    if (run.failure[0] == '\0' && (!is_over || run.hosts[1].applied < ENTRIES || run.hosts[2].applied < ENTRIES)) {
        snprintf(run.failure, sizeof(run.failure), "not all entries are applied");
    }
    if (run.failure[0] != '\0') {
        printf("seed %llu: %s (%llu packets until %.6f ms, digest %016llx)\n", (unsigned long long)seed, run.failure,
               (unsigned long long)cw_simulator_counters(run.simulator)->packet_events,
               (double)cw_simulator_now(run.simulator) / 1e6, (unsigned long long)cw_simulator_hash(run.simulator));
    }
    cw_simulator_destroy(run.simulator);
    return run.failure[0] == '\0';
}

int main(int argc, char **argv)
{
    bool is_fixed = argc == 3 && strcmp(argv[1], "fixed") == 0;
    uint64_t first = argc == 2 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t last = argc == 2 ? first : is_fixed ? strtoull(argv[2], NULL, 10) : UINT64_MAX;
    for (uint64_t seed = first; seed <= last; seed++) {
        if (!run_seed(seed, is_fixed)) {
            return 1;
        }
    }
    printf("seeds %llu to %llu: all entries are applied\n", (unsigned long long)first, (unsigned long long)last);
    return 0;
}
