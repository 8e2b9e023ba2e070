/* What a multicast costs the others on its network (CC-MPI, section 3.2): a stream of puts, and a ping-pong of 8 bytes,
 * between two hosts, while others multicast, or send the same one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"
#include "apps/testbed/hosts.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"
#include "mcast/mcast.h"

enum {
    STREAM_PUT_BYTES = 65536,
    STREAM_PUTS = 8,     /* under way */
    BESIDE_MESSAGES = 4, /* under way, or registered at each member */
    FRAMES = 16000,      /* that the line has time for in a measurement */
    FRAME_BYTES = 1538,  /* full, on the line */
    PINGS_MAX = 20000,
    PING_BYTES = 8,
};
#define GROUP_IPV4     0xef000001u
#define GROUP_ID       0x9d5f3a1c77e40217ull
#define MEASURE_MIN_NS 5000000ull

static const char *const names[] = {
    [BENCH_MCAST_BESIDE_NOTHING] = "nothing",
    [BENCH_MCAST_BESIDE_SNOOPING] = "multicast, snooping switch",
    [BENCH_MCAST_BESIDE_FLOODING] = "multicast, flooding switch",
    [BENCH_MCAST_BESIDE_UNICAST] = "the same to each by itself",
};

struct world;

struct party {
    struct world *world;
    uint32_t rank;
    uint32_t *peers; /* [group_count]: of the group, then the other of the pair; only where it has any */
    struct cw_mcast *mcast;
    struct cw_mcast_group *group;
    uint64_t posted;    /* messages of the group's traffic, by the root */
    uint64_t completed; /* ... by multicast */
    uint64_t taken;     /* messages that have come one by one */
};

struct world {
    const struct bench_mcast_case *of;
    enum bench_mcast_beside beside;
    struct sim_hosts hosts;
    struct party *parties;
    uint32_t group_count;
    uint32_t from, to; /* the pair */
    bool pings;        /* instead of the stream */
    uint64_t puts;     /* posted */
    uint64_t put_base; /* operations that `from` had completed before */
    uint64_t ping_ns;  /* when the last ping was sent; 0: none yet */
    double *times;     /* [PINGS_MAX]: of round trips */
    uint64_t time_count;
    bool counts; /* the time to measure has come */
    uint8_t *data;
    uint8_t *received; /* by all: nobody looks at it */
    int status;
};

static void status_set(struct world *world, int status)
{
    world->status = world->status == CW_OK && status != CW_ERROR_AGAIN ? status : world->status;
}

/* ---- the pair ---- */

static void stream_work(struct world *world, struct sim_host *host)
{
    const struct sim_host *to = &world->hosts.list[world->to];
    int status = CW_OK;
    while (status == CW_OK && world->puts < host->completed + STREAM_PUTS) {
        struct cw_put put = {
            .peer = sim_hosts_peer(&world->hosts, world->from, world->to),
            .lane_tag = cw_lane_tag(1, 1),
            .region = to->token,
            .offset = world->puts % STREAM_PUTS * STREAM_PUT_BYTES,
            .source = {.contiguous = {.data = world->data, .bytes = STREAM_PUT_BYTES}},
            .flags = CW_SIGNAL,
        };
        status = cw_put(host->endpoint, &put);
        world->puts += status == CW_OK;
    }
    status_set(world, status);
}

static int ping_send(struct world *world, uint32_t from, uint32_t to)
{
    struct cw_message message = {.peer = sim_hosts_peer(&world->hosts, from, to),
                                 .source = {.contiguous = {.data = world->data, .bytes = PING_BYTES}}};
    return cw_message_send(world->hosts.list[from].endpoint, &message);
}

static void ping_work(struct world *world, struct party *party, const struct sim_host *host, uint64_t now_ns)
{
    bool is_first = party->rank == world->from && world->ping_ns == 0;
    if (host->arrived_messages == party->taken && !is_first) {
        return;
    }
    party->taken = host->arrived_messages;
    if (party->rank == world->from) {
        if (!is_first && world->counts && world->time_count < PINGS_MAX) {
            world->times[world->time_count++] = (double)(now_ns - world->ping_ns);
        }
        world->ping_ns = now_ns;
    }
    status_set(world, ping_send(world, party->rank, party->rank == world->from ? world->to : world->from));
}

/* ---- the others ---- */

static void multicast_send(struct party *root)
{
    struct world *world = root->world;
    int status = CW_OK;
    while (status == CW_OK && root->posted < root->completed + BESIDE_MESSAGES) {
        struct cw_mcast_put put = {.data = world->data,
                                   .bytes = world->of->bytes,
                                   .is_long = world->of->bytes > CW_MCAST_DEFAULT_SLOT_BYTES,
                                   .flags = CW_MCAST_SIGNAL};
        status = cw_mcast_send(root->group, &put);
        root->posted += status == CW_OK;
    }
    status_set(world, status);
}

static void multicast_event(void *context, const struct cw_event *event)
{
    struct party *party = context;
    struct world *world = party->world;
    if (event->kind == CW_EVENT_GROUP_COMPLETE) {
        party->completed++;
    } else if (event->kind == CW_EVENT_GROUP_MESSAGE) {
        (void)cw_mcast_release(party->group, event->member);
    } else if (event->kind == CW_EVENT_GROUP_ARRIVED) {
        status_set(world, cw_mcast_register(party->group, 0, world->received, world->of->bytes, 0));
    }
}

/* The same by puts to each, the next message when all have the one before. */
static void singly_work(struct party *root, struct sim_host *host)
{
    struct world *world = root->world;
    uint32_t receivers = world->group_count - 1;
    int status = CW_OK;
    while (status == CW_OK && root->posted < (host->completed / receivers + 1) * receivers) {
        uint32_t to = 1 + (uint32_t)(root->posted % receivers);
        struct cw_put put = {
            .peer = root->peers[to],
            .lane_tag = cw_lane_tag(2, 2),
            .region = world->hosts.list[to].token,
            .offset = STREAM_PUTS * STREAM_PUT_BYTES,
            .source = {.contiguous = {.data = world->data, .bytes = world->of->bytes}},
            .flags = CW_SIGNAL,
        };
        status = cw_put(host->endpoint, &put);
        root->posted += status == CW_OK;
    }
    status_set(world, status);
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct party *party = context;
    struct world *world = party->world;
    if (party->group != NULL && party->rank == 0) {
        multicast_send(party);
    } else if (party->rank == 0 && world->beside == BENCH_MCAST_BESIDE_UNICAST) {
        singly_work(party, host);
    }
    if (world->pings && (party->rank == world->from || party->rank == world->to)) {
        ping_work(world, party, host, now_ns);
    } else if (!world->pings && party->rank == world->from) {
        stream_work(world, host);
    }
}

/* ---- life ---- */

static int group_open(struct party *party)
{
    struct world *world = party->world;
    struct cw_mcast_config config;
    char error[200] = "";
    cw_mcast_config_init(&config);
    int status = cw_mcast_create(&config, world->hosts.list[party->rank].endpoint, &party->mcast, error, sizeof(error));
    struct cw_mcast_group_config group = {.id = GROUP_ID,
                                          .member_count = world->group_count,
                                          .self = party->rank,
                                          .peers = party->peers,
                                          .ipv4 = GROUP_IPV4,
                                          .epoch = 1};
    status = status == CW_OK ? cw_mcast_open(party->mcast, &group, &party->group) : status;
    bool is_long = world->of->bytes > CW_MCAST_DEFAULT_SLOT_BYTES;
    for (int i = 0; status == CW_OK && is_long && party->rank > 0 && i < BESIDE_MESSAGES; i++) {
        status = cw_mcast_register(party->group, 0, world->received, world->of->bytes, 0);
    }
    return status;
}

static int party_create(struct world *world, uint32_t rank)
{
    struct party *party = &world->parties[rank];
    bool is_member = rank < world->group_count && world->beside != BENCH_MCAST_BESIDE_NOTHING;
    *party = (struct party){.world = world, .rank = rank, .peers = calloc(world->group_count, sizeof(uint32_t))};
    if (party->peers == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t other = 0; is_member && other < world->group_count; other++) {
        party->peers[other] = other == rank ? 0 : sim_hosts_peer(&world->hosts, rank, other);
    }
    world->hosts.list[rank].context = party;
    world->hosts.list[rank].work = work;
    world->hosts.list[rank].group_event = multicast_event;
    return is_member && world->beside != BENCH_MCAST_BESIDE_UNICAST ? group_open(party) : CW_OK;
}

static int world_create(struct world *world)
{
    struct sim_hosts_config hosts;
    char error[200] = "";
    uint64_t bytes = world->of->bytes;
    bench_mcast_hosts(world->of, &hosts);
    hosts.memory_bytes = STREAM_PUTS * STREAM_PUT_BYTES + bytes;
    hosts.learning = true;
    hosts.multicast = world->beside == BENCH_MCAST_BESIDE_FLOODING ? CW_SIMULATOR_FLOODS : CW_SIMULATOR_SNOOPS;
    world->data = calloc(1, bytes > STREAM_PUT_BYTES ? bytes : STREAM_PUT_BYTES);
    world->received = malloc(bytes);
    world->times = calloc(PINGS_MAX, sizeof(*world->times));
    world->parties = calloc(world->of->members, sizeof(*world->parties));
    int status = sim_hosts_create(&world->hosts, &hosts, error, sizeof(error));
    if (world->data == NULL || world->received == NULL || world->times == NULL || world->parties == NULL) {
        status = CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; status == CW_OK && rank < world->of->members; rank++) {
        status = party_create(world, rank);
    }
    for (uint32_t rank = 0; status == CW_OK && rank < world->of->members; rank++) {
        sim_host_wake(&world->hosts.list[rank]);
    }
    return status;
}

static void world_destroy(struct world *world)
{
    for (uint32_t rank = 0; world->parties != NULL && rank < world->of->members; rank++) {
        cw_mcast_destroy(world->parties[rank].mcast);
        free(world->parties[rank].peers);
    }
    sim_hosts_destroy(&world->hosts);
    free(world->parties);
    free(world->data);
    free(world->received);
    free(world->times);
}

/* Messages that all of the group have, as far as their sender knows. */
static uint64_t beside_messages(const struct world *world)
{
    uint64_t singly = world->hosts.list[0].completed / (world->group_count - 1);
    return world->beside == BENCH_MCAST_BESIDE_UNICAST ? singly : world->parties[0].completed;
}

/* The stream, or the pings, for a while. */
static int measure(struct world *world, struct bench_mcast_beside_result *result)
{
    int status = world_create(world);
    uint64_t time_ns = FRAMES * 8ull * FRAME_BYTES * 1000000000 / world->of->rate_bps;
    time_ns = (time_ns > MEASURE_MIN_NS ? time_ns : MEASURE_MIN_NS) + 100 * world->of->delay_ns;
    if (status == CW_OK) {
        cw_simulator_run_until(world->hosts.simulator, time_ns / 2); /* windows are found */
        const struct sim_host *from = &world->hosts.list[world->from];
        uint64_t puts = from->completed, messages = beside_messages(world);
        world->counts = true;
        cw_simulator_run_until(world->hosts.simulator, time_ns / 2 + time_ns);
        status = world->status;
        double seconds = (double)time_ns / 1e9;
        result->beside_bps = (double)((beside_messages(world) - messages) * world->of->bytes) * 8 / seconds;
        if (!world->pings) {
            result->goodput_bps = (double)((from->completed - puts) * STREAM_PUT_BYTES) * 8 / seconds;
        } else if (world->time_count > 0) {
            struct bench_mcast_result times;
            bench_mcast_times(world->times, world->time_count, &times);
            result->latency_ns = times.median_ns / 2;
            result->latency_p999_ns = times.p999_ns / 2;
        }
    }
    world_destroy(world);
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the hosts cannot be simulated", NULL);
}

int bench_mcast_beside(const struct bench_mcast_case *of, enum bench_mcast_beside beside, bool is_inside,
                       struct bench_mcast_beside_result *result)
{
    int code = APP_EXIT_SUCCESS;
    *result = (struct bench_mcast_beside_result){.goodput_bps = 0};
    for (int pings = 1; pings >= 0 && code == APP_EXIT_SUCCESS; pings--) {
        struct world world = {.of = of, .beside = beside, .group_count = of->members / 2, .pings = pings == 1};
        world.to = is_inside ? world.group_count - 1 : of->members - 1;
        world.from = world.to - 1;
        code = measure(&world, result);
    }
    return code;
}

static void line_report(struct app_report *report, const struct bench_mcast_case *of, enum bench_mcast_beside beside,
                        bool is_inside, const struct bench_mcast_beside_result *result, double alone_bps)
{
    const struct app_cell cells[] = {
        app_count("hosts", NULL, of->members),
        app_count("group", NULL, of->members / 2),
        app_count("bytes", "bytes", of->bytes),
        app_text("pair", "pair", 7, is_inside ? "inside" : "outside"),
        app_text("beside", "beside it", 27, names[beside]),
        app_number("goodput_bps", "goodput/Mb/s", 1, 1e-6, result->goodput_bps),
        app_number("share_of_alone", "share", 3, 1, result->goodput_bps / alone_bps),
        app_number("latency_median_ns", "latency/us", 1, 1e-3, result->latency_ns),
        app_number("latency_p999_ns", "p99.9/us", 1, 1e-3, result->latency_p999_ns),
        app_number("beside_goodput_bps", "group/Mb/s", 1, 1e-6, result->beside_bps),
    };
    APP_REPORT(report, cells);
}

int bench_mcast_beside_run(const struct bench_mcast_case *of, struct app_report *report)
{
    int code = APP_EXIT_SUCCESS;
    for (int inside = 0; inside <= 1 && code == APP_EXIT_SUCCESS; inside++) {
        double alone_bps = 0;
        for (int beside = 0; beside <= BENCH_MCAST_BESIDE_UNICAST && code == APP_EXIT_SUCCESS; beside++) {
            struct bench_mcast_beside_result result;
            code = bench_mcast_beside(of, (enum bench_mcast_beside)beside, inside == 1, &result);
            alone_bps = beside == 0 ? result.goodput_bps : alone_bps;
            if (code == APP_EXIT_SUCCESS) {
                line_report(report, of, (enum bench_mcast_beside)beside, inside == 1, &result, alone_bps);
            }
        }
    }
    return code;
}
