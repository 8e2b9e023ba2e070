/* The group's side of bench mcast: hosts on a simulated network, one collective at a time, every byte compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"
#include "apps/testbed/hosts.h"
#include "dataplane/status.h"
#include "mcast/mcast.h"

#define GROUP_IPV4 0xef000001u
#define GROUP_ID   0x9d5f3a1c77e40213ull
#define RUN_MAX_NS 10000000000ull
#define BETWEEN_NS 1000000ull /* runs: nothing is under way by then */

struct world;

struct member {
    struct world *world;
    uint32_t index;
    struct cw_mcast *mcast;
    struct cw_mcast_group *group;
    uint64_t entered; /* runs */
    bool has_sent;    /* in this run, and likewise below */
    uint32_t before;  /* messages of members with a lower index that have come */
    uint8_t *received;
};

struct world {
    const struct bench_mcast_case *of;
    struct sim_hosts hosts;
    struct member *members;
    uint32_t senders;    /* the first so many members */
    uint64_t bytes;      /* of each sender's message */
    uint8_t *sent;       /* [senders]: messages */
    uint64_t run;        /* runs that have begun */
    uint64_t arrived;    /* in this run, messages at members */
    uint64_t complete;   /* ... at their senders */
    uint64_t arrived_ns; /* when the last of the arrivals was */
    uint64_t end_ns;     /* when the last of all these happened */
    bool is_long;
    const char *fault;
};

static uint8_t byte_of(uint64_t run, uint64_t at)
{
    return (uint8_t)((run * 131 + at * 7 + (at >> 8)) & 0xff);
}

static void fault_set(struct world *world, int status)
{
    world->fault = status != CW_OK ? cw_status_text(status) : world->fault;
}

/* Sends if it is a sender whose turn it is. */
static void send_if_due(struct member *member)
{
    struct world *world = member->world;
    if (member->index >= world->senders || member->has_sent ||
        (member->before < member->index && !world->of->at_once)) {
        return;
    }
    struct cw_mcast_put put = {.data = world->sent + member->index * world->bytes,
                               .bytes = world->bytes,
                               .is_long = world->is_long,
                               .flags = CW_MCAST_SIGNAL};
    member->has_sent = true;
    fault_set(world, cw_mcast_send(member->group, &put));
}

static void enter(struct member *member)
{
    struct world *world = member->world;
    member->entered++;
    member->has_sent = false;
    member->before = 0;
    for (uint32_t sender = 0; world->is_long && sender < world->senders; sender++) {
        if (sender != member->index) {
            fault_set(world, cw_mcast_register(member->group, sender, member->received + sender * world->bytes,
                                               world->bytes, 0));
        }
    }
    send_if_due(member);
}

static void take(void *context, const struct cw_event *event)
{
    struct member *member = context;
    struct world *world = member->world;
    if (event->kind == CW_EVENT_GROUP_LAGGARD) {
        return;
    }
    if (event->kind == CW_EVENT_GROUP_COMPLETE) {
        world->complete++;
    } else {
        world->arrived++;
        world->arrived_ns = sim_hosts_now(&world->hosts);
        bool is_short = event->kind == CW_EVENT_GROUP_MESSAGE;
        const void *data = is_short ? event->data : member->received + event->member * world->bytes;
        if (event->member >= world->senders || event->bytes != world->bytes ||
            memcmp(data, world->sent + event->member * world->bytes, event->bytes) != 0) {
            world->fault = "a receiver has other bytes than the sender";
        }
        if (is_short) {
            (void)cw_mcast_release(member->group, event->member);
        }
        member->before += event->member < member->index;
        send_if_due(member);
    }
    world->end_ns = sim_hosts_now(&world->hosts);
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct member *member = context;
    (void)host, (void)now_ns;
    if (member->entered < member->world->run) {
        enter(member);
    }
}

static int member_open(struct world *world, uint32_t index, uint32_t arity)
{
    struct member *member = &world->members[index];
    uint32_t count = world->of->members;
    uint32_t *peers = sim_hosts_peers(&world->hosts, index, count);
    struct cw_mcast_config config;
    char error[200] = "";
    cw_mcast_config_init(&config);
    *member = (struct member){
        .world = world, .index = index, .received = calloc(1, world->is_long ? world->senders * world->bytes : 1)};
    if (peers == NULL || member->received == NULL) {
        free(peers);
        return CW_ERROR_MEMORY;
    }
    struct cw_mcast_group_config group = {.id = GROUP_ID,
                                          .member_count = count,
                                          .self = index,
                                          .peers = peers,
                                          .ipv4 = GROUP_IPV4,
                                          .arity = arity,
                                          .epoch = 1};
    int status = cw_mcast_create(&config, world->hosts.list[index].endpoint, &member->mcast, error, sizeof(error));
    if (status == CW_OK) {
        status = cw_mcast_open(member->mcast, &group, &member->group);
    }
    free(peers);
    world->hosts.list[index].context = member;
    world->hosts.list[index].work = work;
    world->hosts.list[index].group_event = take;
    return status;
}

void bench_mcast_hosts(const struct bench_mcast_case *of, struct sim_hosts_config *hosts)
{
    sim_hosts_config_init(hosts, of->members);
    hosts->seed = of->seed;
    hosts->memory_bytes = 64;
    hosts->node.up.rate_bps = hosts->node.down.rate_bps = of->rate_bps;
    hosts->node.up.delay_ns = hosts->node.down.delay_ns = of->delay_ns / 2;
    hosts->node.down.loss = of->loss;
    hosts->switches = of->switches > 1 ? of->switches : 1;
    hosts->trunk.rate_bps = of->uplink_rate_bps > 0 ? of->uplink_rate_bps : of->rate_bps;
}

static int world_create(struct world *world, uint32_t arity)
{
    const struct bench_mcast_case *of = world->of;
    struct sim_hosts_config hosts;
    char error[200] = "";
    bench_mcast_hosts(of, &hosts);
    int status = sim_hosts_create(&world->hosts, &hosts, error, sizeof(error));
    world->members = calloc(of->members, sizeof(struct member));
    world->sent = malloc(world->senders * world->bytes);
    if (status == CW_OK && (world->members == NULL || world->sent == NULL)) {
        status = CW_ERROR_MEMORY;
    }
    for (uint32_t index = 0; status == CW_OK && index < of->members; index++) {
        status = member_open(world, index, arity);
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the group cannot be simulated", error);
}

static void world_destroy(struct world *world)
{
    for (uint32_t index = 0; world->members != NULL && index < world->of->members; index++) {
        cw_mcast_destroy(world->members[index].mcast);
        free(world->members[index].received);
    }
    sim_hosts_destroy(&world->hosts);
    free(world->members);
    free(world->sent);
}

/* One run; its time, 0: it did not end; and the time until all had arrived. */
static uint64_t run_once(struct world *world, double *arrived_ns)
{
    struct cw_simulator *simulator = world->hosts.simulator;
    uint64_t begin_ns = cw_simulator_now(simulator);
    for (uint64_t at = 0; at < world->senders * world->bytes; at++) {
        world->sent[at] = byte_of(world->run, at);
    }
    world->run++;
    world->arrived = world->complete = 0;
    for (uint32_t index = 0; index < world->of->members; index++) {
        sim_host_wake(&world->hosts.list[index]);
    }
    /* what was copied when it was posted is the sender's again at once */
    uint64_t complete = world->bytes <= CW_MCAST_INLINE_MAX ? 0 : world->senders;
    uint64_t arrived = world->senders * (uint64_t)(world->of->members - 1);
    while ((world->complete < complete || world->arrived < arrived) && world->fault == NULL) {
        if (!cw_simulator_step(simulator) || cw_simulator_now(simulator) > begin_ns + RUN_MAX_NS) {
            world->fault = "a message is not complete after 10 s";
        }
    }
    uint64_t took_ns = world->end_ns - begin_ns;
    *arrived_ns = (double)(world->arrived_ns - begin_ns);
    cw_simulator_run_until(simulator, world->end_ns + BETWEEN_NS + 2 * world->of->delay_ns);
    return world->fault == NULL ? took_ns : 0;
}

static void summarise(const struct world *world, struct bench_mcast_result *result)
{
    const struct bench_mcast_case *of = world->of;
    struct cw_mcast_counters root = cw_mcast_counters(world->members[0].mcast);
    double runs = (double)of->runs;
    uint64_t packets = 0, handled = 0, most = 0;
    for (uint32_t index = 0; index < of->members; index++) {
        const struct cw_simulator_node_counters *host = cw_simulator_node_counters(world->hosts.simulator, index);
        uint64_t own = host->sent + host->received;
        packets += cw_endpoint_counter(world->hosts.list[index].endpoint, CW_COUNTER_PACKETS_OUT);
        handled += own;
        most = own > most ? own : most;
    }
    result->packets = (double)packets / runs;
    result->handled = (double)handled / runs;
    result->handled_busiest = (double)most / runs;
    if (world->senders > 1) {
        return;
    }
    result->data_packets = root.data_out / of->runs;
    result->root_packets =
        (double)cw_endpoint_counter(world->hosts.list[0].endpoint, CW_COUNTER_PACKETS_OUT) / (double)root.data_out;
    result->acks_at_root = (double)root.acks_in / runs;
    result->naks_at_root = (double)root.naks_in / runs;
    result->repairs_to_all = (double)root.repairs_out / runs;
    result->repairs_to_one = (double)root.repairs_one_out / runs;
}

int bench_mcast_group(const struct bench_mcast_case *of, uint32_t arity, struct bench_mcast_result *result)
{
    static double times[BENCH_MCAST_RUNS_MAX], arrivals[BENCH_MCAST_RUNS_MAX];
    struct world world = {
        .of = of,
        .senders = of->collective == CW_ALLGATHER ? of->members : 1,
        .bytes =
            of->collective == CW_SCATTER ? (of->members - 1) * of->bytes : of->bytes, /* not the root's own block */
    };
    world.is_long = world.bytes > CW_MCAST_DEFAULT_SLOT_BYTES;
    *result = (struct bench_mcast_result){.median_ns = 0};
    snprintf(result->name, sizeof(result->name), "multicast%s%s", arity >= of->members ? ", flat" : "",
             of->at_once ? ", at once" : "");
    int code = world_create(&world, arity);
    for (uint64_t run = 0; code == APP_EXIT_SUCCESS && run < of->runs; run++) {
        times[run] = (double)run_once(&world, &arrivals[run]);
        if (world.fault != NULL) {
            app_error(world.fault, result->name, "this is a bug");
            code = APP_EXIT_INTERNAL;
        }
    }
    if (code == APP_EXIT_SUCCESS) {
        summarise(&world, result);
        bench_mcast_times(times, of->runs, result);
        result->arrived_ns = cw_statistics_median(arrivals, of->runs);
    }
    world_destroy(&world);
    return code;
}
