#include "apps/simulate/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/pcap.h"
#include "apps/cli/progress.h"
#include "control/topology/clusters.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

#define TELL_NS 250000000ull
enum { STEPS_A_LOOK = 1024, IDLE_MS = 100, IDLES_MAX = 30 };
#define SOON_NS          3600000000000ull
#define PATIENCE_MORE_NS 5000000000ull /* the ranks report first which calls they wait in */

static bool world_create(struct simulate_world *world, const struct simulate_config *config, char *error,
                         size_t error_bytes)
{
    size_t page_bytes = (size_t)config->ranks * CW_VIRTUAL_PAGE_BYTES;
    size_t bytes = page_bytes + (config->has_rdma ? config->ranks * simulate_device_bytes() : 0);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    *world = (struct simulate_world){.config = config, .signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK)};
    world->ranks = calloc(config->ranks, sizeof(*world->ranks));
    world->pages_memory = memfd_create("causeway-virtual", MFD_CLOEXEC);
    if (world->ranks == NULL || world->signals < 0 || world->pages_memory < 0 ||
        ftruncate(world->pages_memory, (off_t)bytes) != 0) {
        snprintf(error, error_bytes, "no memory for %u ranks: %s", config->ranks, strerror(errno));
        return false;
    }
    world->pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, world->pages_memory, 0);
    if (world->pages == MAP_FAILED) {
        snprintf(error, error_bytes, "no memory for %u ranks: %s", config->ranks, strerror(errno));
        return false;
    }
    for (uint32_t rank = 0; rank < config->ranks; rank++) {
        world->ranks[rank] = (struct simulate_rank){.world = world, .rank = rank, .socket = -1};
        world->ranks[rank].page = (void *)(world->pages + (size_t)rank * CW_VIRTUAL_PAGE_BYTES);
    }
    if (simulate_network_create(config, &world->network, error, error_bytes) != CW_OK) {
        return false;
    }
    world->simulator = world->network.simulator;
    if (config->has_rdma && simulate_devices_create(world, world->pages + page_bytes, error, error_bytes) != CW_OK) {
        return false;
    }
    return config->statistics[0] == '\0' ||
           simulate_statistics_open(config, &world->network, &world->statistics, error, error_bytes) == CW_OK;
}

/* ---- faults ---- */

struct fault_event {
    struct simulate_world *world;
    const struct simulate_fault *fault;
    bool begins;
};

/* Counts faults of one kind that last; true: the first one begins, or the last one ends. */
static bool count_changes(uint32_t *count, bool begins)
{
    *count += begins ? 1 : UINT32_MAX;
    return *count == (begins ? 1 : 0);
}

static void rank_fault(struct simulate_rank *rank, enum simulate_fault_kind kind, bool begins)
{
    struct simulate_world *world = rank->world;
    switch (kind) {
    case SIMULATE_LINK_DOWN:
        if (count_changes(&rank->down_count, begins)) {
            cw_simulator_partition(world->simulator, rank->rank, begins);
        }
        break;
    case SIMULATE_RDMA_CUT:
        if (count_changes(&rank->cut_count, begins)) {
            cw_verbs_net_cut(world->verbs, rank->rank, begins);
        }
        break;
    case SIMULATE_STOP:
        if (count_changes(&rank->stop_count, begins) && begins) {
            cw_simulator_stop(world->simulator, rank->rank);
        } else if (rank->stop_count == 0) {
            cw_simulator_resume(world->simulator, rank->rank);
        }
        break;
    case SIMULATE_RDMA_FAIL:
        simulate_device_fail(rank);
        break;
    default:
        simulate_rank_kill(rank);
        break;
    }
}

static void fault_run(void *context)
{
    const struct fault_event *event = context;
    struct simulate_world *world = event->world;
    const struct simulate_fault *fault = event->fault;
    for (uint32_t i = 0; i < world->network.switch_count && fault->kind == SIMULATE_FORGET; i++) {
        cw_simulator_groups_flush(world->simulator, i);
    }
    for (uint32_t i = 0; i < world->network.link_count && fault->link[0] != '\0'; i++) {
        struct simulate_link *link = &world->network.links[i];
        if (strcmp(link->name, fault->link) == 0 && count_changes(&link->down_count, event->begins)) {
            link->link->down = event->begins;
        }
    }
    bool is_of_host = fault->kind != SIMULATE_FORGET && fault->link[0] == '\0';
    for (uint32_t rank = 0; rank < world->config->ranks && is_of_host; rank++) {
        if (cw_clusters_block(rank, world->config->ranks, world->config->hosts) == fault->host) {
            rank_fault(&world->ranks[rank], fault->kind, event->begins);
        }
    }
}

static bool has_end(const struct simulate_fault *fault)
{
    return fault->kind == SIMULATE_LINK_DOWN || fault->kind == SIMULATE_STOP || fault->kind == SIMULATE_RDMA_CUT;
}

static void faults_schedule(struct simulate_world *world, struct fault_event events[2 * SIMULATE_FAULTS_MAX])
{
    for (uint32_t i = 0; i < world->config->fault_count; i++) {
        const struct simulate_fault *fault = &world->config->faults[i];
        for (uint32_t end = 0; end < (has_end(fault) ? 2 : 1); end++) {
            struct fault_event *event = &events[2 * i + end];
            *event = (struct fault_event){.world = world, .fault = fault, .begins = end == 0};
            (void)cw_simulator_at(world->simulator, end == 0 ? fault->begin_ns : fault->end_ns, fault_run, event);
        }
    }
}

/* ---- time ---- */

/* Whether a link or a host comes back soon. */
static bool is_to_be_mended(const struct simulate_world *world, uint64_t now_ns)
{
    bool is_pending = false;
    for (uint32_t i = 0; i < world->config->fault_count && !is_pending; i++) {
        const struct simulate_fault *fault = &world->config->faults[i];
        is_pending = has_end(fault) && now_ns < fault->end_ns && fault->end_ns - now_ns < SOON_NS;
    }
    return is_pending;
}

/* Whether nothing has moved for so long that nothing will: no rank computes or sleeps. */
static bool is_stuck_by(struct simulate_world *world, uint64_t now_ns)
{
    uint64_t patience_ns = world->config->patience_ns;
    bool is_stuck = patience_ns != 0 && now_ns - world->moved_ns > patience_ns + PATIENCE_MORE_NS;
    if (is_stuck && is_to_be_mended(world, now_ns)) {
        world->moved_ns = now_ns;
        return false;
    }
    for (uint32_t i = 0; i < world->config->ranks && is_stuck; i++) {
        const struct simulate_rank *rank = &world->ranks[i];
        is_stuck = rank->state != SIMULATE_RANK_RUNS || rank->stop_count > 0 || rank->page->needs_others != 0;
        world->moved_ns = is_stuck ? world->moved_ns : now_ns;
    }
    return is_stuck;
}

/* The ranks are notified when they are resumed, and end the job; stopped ones, or those outside, are not. */
static void stuck_note(struct simulate_world *world)
{
    world->is_stuck = true;
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        if (rank->stop_count > 0) {
            fprintf(stderr, "causeway run: --simulate: rank %" PRIu32 " is stopped, and does not continue\n", i);
        }
        simulate_rank_wake(rank);
    }
}

static void idle(const struct simulate_world *world)
{
    struct pollfd signal = {.fd = world->signals, .events = POLLIN};
    (void)poll(&signal, 1, IDLE_MS);
}

/* One step of virtual time, or of a wait in real time. False: a signal came. */
static bool world_step(struct simulate_world *world)
{
    struct cw_simulator *simulator = world->simulator;
    uint64_t now_ns = cw_simulator_now(simulator), next_ns = cw_simulator_next(simulator);
    if (world->outside_count > 0 && world->released_count == 0) {
        return simulate_ranks_return(world);
    }
    if (world->ended_count == world->config->ranks) {
        idle(world);
        return true;
    }
    if (next_ns == CW_SIMULATOR_NEVER || (!world->is_stuck && is_stuck_by(world, now_ns))) {
        if (!world->is_stuck) {
            stuck_note(world);
            return true;
        }
        idle(world); /* the ranks end the job */
        simulate_ranks_watch(world);
        if (++world->idle_count == IDLES_MAX) {
            fprintf(stderr, "causeway run: --simulate: no rank of the job can continue (virtual time %.6f s)\n",
                    (double)now_ns / 1e9);
            world->code = APP_EXIT_FAILURE;
        }
        return world->code == APP_EXIT_SUCCESS;
    }
    world->virtual_end_ns = next_ns;
    if (world->statistics != NULL) {
        simulate_statistics_until(world->statistics, next_ns);
    }
    (void)cw_simulator_step(simulator);
    return true;
}

static void report(const struct simulate_world *world, uint64_t real_ns)
{
    const struct cw_simulator_counters *counters = cw_simulator_counters(world->simulator);
    uint64_t sent = 0, received = 0;
    for (uint32_t rank = 0; rank < world->config->ranks; rank++) {
        const struct cw_simulator_node_counters *node = cw_simulator_node_counters(world->simulator, rank);
        sent += node->sent;
        received += node->received;
    }
    fprintf(stderr,
            "causeway run: simulated %.9f s: %" PRIu64 " packets sent, %" PRIu64 " received, digest %016" PRIx64
            "; %" PRIu64 " events and %" PRIu64 " resumed ranks in %.2f s\n",
            (double)world->virtual_end_ns / 1e9, sent, received, cw_simulator_hash(world->simulator),
            counters->packet_events + counters->turns, world->resume_count, (double)real_ns / 1e9);
    if (world->overflow_count > 0) {
        fprintf(stderr, "causeway run: %" PRIu64 " packets found no room in the memory of a rank's port\n",
                world->overflow_count);
    }
    if (world->lack_count > 0) {
        fprintf(stderr,
                "causeway run: %" PRIu64
                " times, packets left later than they should: more were in flight than the simulator has room for\n",
                world->lack_count);
    }
}

/* Shows users at a terminal the progress of virtual time. */
static void progress_report(struct simulate_world *world, uint64_t real_ns)
{
    const struct cw_simulator_counters *counters = cw_simulator_counters(world->simulator);
    uint32_t waiting = 0;
    char text[APP_PROGRESS_BYTES];
    if (real_ns < world->told_ns + TELL_NS) {
        return;
    }
    for (uint32_t rank = 0; rank < world->config->ranks; rank++) {
        waiting += world->ranks[rank].state == SIMULATE_RANK_RUNS && world->ranks[rank].page->needs_others != 0;
    }
    snprintf(text, sizeof(text), "%.6f s, %.0f events/s, %u of %u ranks wait", (double)world->virtual_end_ns / 1e9,
             (double)(counters->packet_events + counters->turns) * 1e9 / (double)real_ns, waiting,
             world->config->ranks);
    app_progress_step(0, 0, text);
    world->told_ns = real_ns;
}

static void arrival_write(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                          const uint8_t *frame, uint32_t length)
{
    (void)node;
    if (kind == CW_SIMULATOR_ARRIVAL) {
        app_pcap_write(context, time_ns, frame, length);
    }
}

int simulate_serve(const struct simulate_config *config, int listener)
{
    struct simulate_world world;
    struct app_pcap *capture = NULL;
    struct fault_event *events = calloc(2 * SIMULATE_FAULTS_MAX, sizeof(*events));
    char error[SIMULATE_ERROR_BYTES] = "";
    bool made = events != NULL && world_create(&world, config, error, sizeof(error));
    if (made && config->capture[0] != '\0') {
        capture = app_pcap_open(config->capture);
        made = capture != NULL;
        if (made) {
            cw_simulator_tap_set(world.simulator, arrival_write, capture);
        } else {
            snprintf(error, sizeof(error), "pcap=%.300s: %s", config->capture, strerror(errno));
        }
    }
    int status = made ? simulate_ranks_accept(&world, listener, error, sizeof(error)) : CW_ERROR_MEMORY;
    if (status != CW_OK && status != CW_ERROR_CLOSED) {
        app_error(error, "--simulate", NULL);
        free(events);
        return APP_EXIT_MACHINE; /* the process ends, and with it all else */
    }
    if (status == CW_OK) {
        uint64_t start_ns = cw_clock_ns(), steps = 0;
        app_progress_begin("simulate", false);
        faults_schedule(&world, events);
        simulate_ranks_start(&world);
        while (world_step(&world)) {
            if (++steps % STEPS_A_LOOK == 0 || world.ended_count == config->ranks) {
                if (simulate_is_over(&world)) {
                    break;
                }
                simulate_ranks_watch(&world);
                progress_report(&world, cw_clock_ns() - start_ns);
            }
        }
        app_progress_end();
        report(&world, cw_clock_ns() - start_ns);
    }
    if (!app_pcap_close(capture)) {
        app_error("packets could not be written", config->capture, strerror(errno));
    }
    if (!simulate_statistics_close(world.statistics, world.virtual_end_ns)) {
        app_error("the links could not be written", config->statistics, strerror(errno));
    }
    simulate_ranks_close(&world);
    simulate_devices_destroy(&world);
    simulate_network_destroy(&world.network);
    free(world.ranks);
    free(events);
    return world.code;
}
