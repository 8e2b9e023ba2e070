/* One-to-few by multicast, as section 4.1 and Figure 10 of CC-MPI have it: the root has a block for some members only.
 * Groups are those of control/groups/groups.h, with messages between the endpoints as its links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"
#include "apps/testbed/groups.h"
#include "dataplane/status.h"

enum { SCOPE_ALL = 1, SCOPE_FEW = 2 };
#define RUN_MAX_NS 10000000000ull
#define BETWEEN_NS 1000000ull /* runs: nothing is under way by then */

static const char *const names[] = {
    [BENCH_MCAST_EXPLICIT] = "explicit group",
    [BENCH_MCAST_STATIC] = "static group",
    [BENCH_MCAST_DYNAMIC] = "dynamic group",
};

/* Who gets how much: what the root tells before the data, in the order in which blocks lie there. */
struct share {
    uint32_t rank;
    uint32_t bytes;
};

struct world;

struct party {
    struct world *world;
    uint32_t rank;
    struct sim_groups groups;
    struct cw_group *all; /* NULL: not used */
    struct cw_group *few; /* NULL: not open, or closed */
    bool is_closing;      /* `few` */
    uint64_t entered;     /* runs */
    uint64_t posted;      /* by the root in this run: bytes of the data, and likewise below */
    bool knows_shares;
    bool is_among; /* it gets a block: at `offset` */
    uint64_t offset;
    uint64_t taken; /* bytes of the data that have come */
    uint8_t *block;
};

struct world {
    const struct bench_mcast_case *of;
    enum bench_mcast_way way;
    struct sim_hosts hosts;
    struct party *parties;
    uint32_t *ranks;      /* [members]: all of them */
    uint32_t *few;        /* [to + 1]: the root, and those that get a block */
    struct share *shares; /* STATIC: of all but the root; else of these few */
    uint32_t share_count;
    uint64_t total;      /* bytes of the data */
    uint8_t *data;       /* block after block */
    uint64_t run;        /* runs that have begun */
    uint64_t messages;   /* by the root in this run, and likewise below */
    uint64_t complete;   /* ... that are */
    uint64_t arrived;    /* blocks */
    uint64_t gone;       /* members of the group of this run, that have left it */
    uint64_t arrived_ns; /* when the last block came */
    uint64_t end_ns;     /* when the last of all these happened */
    const char *fault;
};

static uint64_t now(const struct world *world)
{
    return cw_simulator_now(world->hosts.simulator);
}

static void fault_set(struct world *world, int status)
{
    world->fault = status != CW_OK && world->fault == NULL ? cw_status_text(status) : world->fault;
}

/* ---- what groups tell ---- */

static void data_complete(void *context, int status)
{
    struct world *world = ((struct party *)context)->world;
    world->complete++;
    world->end_ns = now(world);
    fault_set(world, status);
}

/* ---- members ---- */

/* Where the own block is in the data, if there is one. */
static void shares_take(struct party *party, const void *data, uint64_t bytes)
{
    const struct world *world = party->world;
    uint64_t offset = 0;
    for (uint64_t at = 0; at + sizeof(struct share) <= bytes; at += sizeof(struct share)) {
        struct share share;
        memcpy(&share, (const uint8_t *)data + at, sizeof(share));
        if (share.rank == party->rank && share.bytes == world->of->bytes) {
            party->is_among = true;
            party->offset = offset;
        }
        offset += share.bytes;
    }
    party->knows_shares = true;
}

/* Which block of the data is this rank's, whatever it has been told. */
static uint64_t block_index(const struct party *party)
{
    const struct world *world = party->world;
    uint64_t index = 1;
    while (index <= world->of->to && world->few[index] != party->rank) {
        index++;
    }
    return index - 1;
}

/* Of the data each member copies what is its own. */
static void data_take(struct party *party, const uint8_t *data, uint64_t bytes)
{
    struct world *world = party->world;
    uint64_t begin = party->taken, end = begin + bytes;
    uint64_t own_end = party->offset + world->of->bytes;
    uint64_t from = begin > party->offset ? begin : party->offset;
    uint64_t to = end < own_end ? end : own_end;
    party->taken = end;
    if (!party->is_among || from >= to) {
        return;
    }
    memcpy(party->block + (from - party->offset), data + (from - begin), to - from);
    if (to < own_end) {
        return;
    }
    if (block_index(party) == world->of->to ||
        memcmp(party->block, world->data + block_index(party) * world->of->bytes, world->of->bytes) != 0) {
        world->fault = "a receiver has other bytes than the sender";
    }
    world->arrived++;
    world->arrived_ns = world->end_ns = now(world);
}

static void few_open(struct party *party, uint64_t number)
{
    struct world *world = party->world;
    struct cw_group_request request = {
        .scope = SCOPE_FEW, .number = number, .ranks = world->few, .count = world->of->to + 1};
    fault_set(world, cw_group_open(party->groups.groups, &request, &party->few));
}

static void data_come(void *context, struct cw_group *group, uint32_t rank, const void *data, uint64_t bytes)
{
    struct party *party = context;
    (void)rank;
    if (party->knows_shares || group == party->few) {
        data_take(party, data, bytes);
        return;
    }
    shares_take(party, data, bytes);
    if (party->world->way == BENCH_MCAST_DYNAMIC && party->is_among) {
        few_open(party, party->world->run);
    }
}

/* ---- the root ---- */

/* Who gets what; nobody else knows beforehand, unless the group was made for it. */
static void shares_send(struct party *root)
{
    struct world *world = root->world;
    if (world->way == BENCH_MCAST_EXPLICIT) {
        return;
    }
    struct cw_mcast_put put = {.data = world->shares, .bytes = world->share_count * sizeof(struct share)};
    fault_set(world, cw_group_send(root->all, &put));
    world->messages++;
    if (world->way == BENCH_MCAST_DYNAMIC) {
        few_open(root, world->run);
    }
}

static void data_send(struct party *root)
{
    struct world *world = root->world;
    struct cw_group *group = world->way == BENCH_MCAST_STATIC ? root->all : root->few;
    uint64_t most = cw_group_message_max(root->groups.groups);
    int status = CW_OK;
    while (group != NULL && root->posted < world->total && status == CW_OK) {
        uint64_t left = world->total - root->posted;
        uint64_t bytes = left < most ? left : most;
        status = cw_group_send(group, &(struct cw_mcast_put){.data = world->data + root->posted, .bytes = bytes});
        root->posted += status == CW_OK ? bytes : 0;
        world->messages += status == CW_OK;
    }
    fault_set(world, status == CW_ERROR_AGAIN ? CW_OK : status);
}

/* ---- a turn ---- */

static void enter(struct party *party)
{
    struct world *world = party->world;
    party->entered++;
    party->taken = party->posted = 0;
    party->knows_shares = party->is_among = false;
    if (world->way == BENCH_MCAST_EXPLICIT) {
        shares_take(party, world->shares, world->share_count * sizeof(struct share));
    }
    if (party->rank == 0) {
        shares_send(party);
    }
}

/* Leaves the group of this run when all has been sent, or has come. */
static void few_leave(struct party *party)
{
    struct world *world = party->world;
    bool is_through = party->rank == 0 ? party->posted == world->total : party->taken == world->total;
    if (world->way == BENCH_MCAST_DYNAMIC && party->few != NULL && is_through) {
        cw_group_close(party->few);
        party->few = NULL;
        party->is_closing = true;
        (void)cw_groups_poll(party->groups.groups);
    }
    if (party->is_closing && !cw_groups_is_closing(party->groups.groups)) {
        party->is_closing = false;
        world->gone++;
        world->end_ns = now(world);
    }
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct party *party = context;
    (void)host, (void)now_ns;
    sim_groups_take(&party->groups);
    if (party->entered < party->world->run) {
        enter(party);
    }
    (void)cw_groups_poll(party->groups.groups);
    if (party->rank == 0 && party->entered > 0) {
        data_send(party);
    }
    few_leave(party);
    if ((party->all != NULL && cw_group_state(party->all) == CW_GROUP_FAILED) ||
        (party->few != NULL && cw_group_state(party->few) == CW_GROUP_FAILED)) {
        party->world->fault = "a group cannot be opened";
    }
}

/* ---- life ---- */

static int party_create(struct world *world, uint32_t rank, char *error, size_t error_bytes)
{
    struct party *party = &world->parties[rank];
    struct sim_host *host = &world->hosts.list[rank];
    *party = (struct party){.world = world, .rank = rank, .block = malloc(world->of->bytes)};
    if (party->block == NULL) {
        return CW_ERROR_MEMORY;
    }
    const struct sim_groups_config config = {
        .seed = world->of->seed, .context = party, .message = data_come, .complete = data_complete};
    host->context = party;
    host->work = work;
    return sim_groups_create(&party->groups, &world->hosts, rank, &config, error, error_bytes);
}

/* The group that stays: of all, or of the few. */
static int group_begin(struct world *world, struct party *party)
{
    struct cw_group_request request = {
        .scope = SCOPE_ALL, .number = 0, .ranks = world->ranks, .count = world->of->members};
    if (world->way != BENCH_MCAST_EXPLICIT) {
        return cw_group_open(party->groups.groups, &request, &party->all);
    }
    if (party->rank == 0 || block_index(party) < world->of->to) {
        few_open(party, 0);
    }
    return CW_OK;
}

static int lists_create(struct world *world)
{
    const struct bench_mcast_case *of = world->of;
    world->parties = calloc(of->members, sizeof(*world->parties));
    world->ranks = calloc(of->members, sizeof(*world->ranks));
    world->few = calloc(of->to + 1, sizeof(*world->few));
    world->shares = calloc(of->members, sizeof(*world->shares));
    world->data = malloc(world->total);
    if (world->parties == NULL || world->ranks == NULL || world->few == NULL || world->shares == NULL ||
        world->data == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; rank < of->members; rank++) {
        world->ranks[rank] = rank;
    }
    for (uint32_t i = 0; i < of->to; i++) {
        world->few[i + 1] = bench_mcast_receiver(of, i);
    }
    bool is_static = world->way == BENCH_MCAST_STATIC;
    world->share_count = is_static ? of->members - 1 : of->to;
    for (uint32_t i = 0, among = 1; i < world->share_count; i++) {
        uint32_t rank = is_static ? i + 1 : world->few[i + 1];
        bool is_among = !is_static || (among <= of->to && world->few[among] == rank);
        world->shares[i] = (struct share){.rank = rank, .bytes = is_among ? (uint32_t)of->bytes : 0};
        among += is_among;
    }
    return CW_OK;
}

static int world_create(struct world *world)
{
    const struct bench_mcast_case *of = world->of;
    struct sim_hosts_config hosts;
    char error[200] = "";
    bench_mcast_hosts(of, &hosts);
    int status = sim_hosts_create(&world->hosts, &hosts, error, sizeof(error));
    if (status == CW_OK) {
        status = lists_create(world);
    }
    for (uint32_t rank = 0; status == CW_OK && rank < of->members; rank++) {
        status = party_create(world, rank, error, sizeof(error));
    }
    for (uint32_t rank = 0; status == CW_OK && rank < of->members; rank++) {
        status = group_begin(world, &world->parties[rank]);
        sim_host_wake(&world->hosts.list[rank]);
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the group cannot be simulated", error);
}

static void world_destroy(struct world *world)
{
    for (uint32_t rank = 0; world->parties != NULL && rank < world->of->members; rank++) {
        sim_groups_destroy(&world->parties[rank].groups);
        free(world->parties[rank].block);
    }
    sim_hosts_destroy(&world->hosts);
    free(world->parties);
    free(world->ranks);
    free(world->few);
    free(world->shares);
    free(world->data);
}

/* ---- runs ---- */

static bool is_over(const struct world *world)
{
    uint64_t members = world->way == BENCH_MCAST_DYNAMIC ? world->of->to + 1 : 0;
    return world->arrived == world->of->to && world->parties[0].posted == world->total &&
           world->complete == world->messages && world->gone == members;
}

/* One run; the time until all was over, and until the last block was there. */
static void run_once(struct world *world, double *took_ns, double *arrived_ns)
{
    uint64_t begin_ns = now(world);
    for (uint64_t at = 0; at < world->total; at++) {
        world->data[at] = (uint8_t)(world->run * 131 + at * 7 + (at >> 8));
    }
    world->run++;
    world->messages = world->complete = world->arrived = world->gone = 0;
    for (uint32_t rank = 0; rank < world->of->members; rank++) {
        sim_host_wake(&world->hosts.list[rank]);
    }
    while (!is_over(world) && world->fault == NULL) {
        if (!cw_simulator_step(world->hosts.simulator) || now(world) > begin_ns + RUN_MAX_NS) {
            world->fault = "a message is not complete after 10 s";
        }
    }
    *took_ns = (double)(world->end_ns - begin_ns);
    *arrived_ns = (double)(world->arrived_ns - begin_ns);
    cw_simulator_run_until(world->hosts.simulator, now(world) + BETWEEN_NS + 2 * world->of->delay_ns);
}

/* Until the group that stays is open. */
static void group_await(struct world *world)
{
    const struct party *root = &world->parties[0];
    const struct cw_group *group = world->way == BENCH_MCAST_EXPLICIT ? root->few : root->all;
    while (cw_group_state(group) != CW_GROUP_OPEN && world->fault == NULL) {
        if (!cw_simulator_step(world->hosts.simulator) || now(world) > RUN_MAX_NS) {
            world->fault = "a group is not open after 10 s";
        }
    }
    cw_simulator_run_until(world->hosts.simulator, now(world) + BETWEEN_NS + 10 * world->of->delay_ns);
}

/* What all hosts have sent, sent and received, and that which has most. */
static void packets_count(const struct world *world, double sign, struct bench_mcast_result *result)
{
    double most = 0;
    for (uint32_t rank = 0; rank < world->of->members; rank++) {
        const struct cw_simulator_node_counters *host = cw_simulator_node_counters(world->hosts.simulator, rank);
        double handled = (double)(host->sent + host->received);
        result->packets += sign * (double)host->sent / (double)world->of->runs;
        result->handled += sign * handled / (double)world->of->runs;
        most = handled > most ? handled : most;
    }
    result->handled_busiest += sign * most / (double)world->of->runs;
}

int bench_mcast_scatterv(const struct bench_mcast_case *of, enum bench_mcast_way way, struct bench_mcast_result *result)
{
    static double times[BENCH_MCAST_RUNS_MAX], arrivals[BENCH_MCAST_RUNS_MAX];
    struct world world = {.of = of, .way = way, .total = of->to * of->bytes};
    *result = (struct bench_mcast_result){.median_ns = 0};
    snprintf(result->name, sizeof(result->name), "%s", names[way]);
    int code = world_create(&world);
    if (code == APP_EXIT_SUCCESS) { /* the first run sets connections up */
        group_await(&world);
        run_once(&world, &times[0], &arrivals[0]);
        packets_count(&world, -1, result);
    }
    for (uint64_t run = 0; code == APP_EXIT_SUCCESS && run < of->runs && world.fault == NULL; run++) {
        run_once(&world, &times[run], &arrivals[run]);
    }
    if (world.fault != NULL) {
        app_error(world.fault, result->name, "this is a bug");
        code = APP_EXIT_INTERNAL;
    }
    if (code == APP_EXIT_SUCCESS) {
        packets_count(&world, 1, result);
        bench_mcast_times(times, of->runs, result);
        result->arrived_ns = cw_statistics_median(arrivals, of->runs);
    }
    world_destroy(&world);
    return code;
}
