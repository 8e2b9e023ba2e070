#include "apps/simulate/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "control/topology/clusters.h"
#include "dataplane/base/random.h"
#include "dataplane/fabric/port_sim.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    LOOK_NS = 20000000,
    BUSY_LOOKS = 500, /* 10 s */
    RETURN_LOOK_NS = 1000000,
    ACCEPT_LOOK_MS = 100,
    PACKET_RETRY_NS = 1000,
};
#define HORIZON_MAX_NS 1000000000ull /* a rank that never waits is seen so often */

static void futex_wait(const _Atomic uint32_t *word, uint32_t value, long timeout_ns)
{
    const struct timespec timeout = {.tv_nsec = timeout_ns};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

/* ---- joining ---- */

/* The constant part of a page, before its rank is resumed for the first time. */
static void page_fill(const struct simulate_world *world, uint32_t rank)
{
    const struct simulate_config *config = world->config;
    struct cw_virtual_page *page = world->ranks[rank].page;
    uint32_t host = cw_clusters_block(rank, config->ranks, config->hosts);
    double factor = 1;
    for (uint32_t i = 0; i < config->slow_count; i++) {
        factor *= config->slow[i].host == host ? config->slow[i].factor : 1;
    }
    page->rank = rank;
    page->seed = cw_random_derive(config->seed, rank);
    page->cpu_scale = (uint64_t)(factor * config->cpu * (1 << 20));
    page->call_ns = (uint64_t)(factor * (double)config->call_ns);
    page->poll_ns = (uint64_t)(factor * (double)config->poll_ns);
    page->poll_ns = page->poll_ns > 0 ? page->poll_ns : 1; /* loops of calls that look end */
    page->offloads = simulate_config_offloads(config, host);
    page->copy_scale = config->memory_rate_bps == 0 ? 0 : (8000000000ull << 20) / config->memory_rate_bps;
}

/* One message of a rank: its number, and the memory of its port. CW_ERROR_NOT_FOUND: the sender was no rank. */
static int hello_receive(struct simulate_world *world, int connection, char *error, size_t error_bytes)
{
    struct cw_virtual_hello hello = {.rank = UINT32_MAX};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {.iov_base = &hello, .iov_len = sizeof(hello)};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
    ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got == (ssize_t)sizeof(hello) ? CMSG_FIRSTHDR(&message) : NULL;
    int memory = -1;
    if (head == NULL || head->cmsg_type != SCM_RIGHTS) {
        return CW_ERROR_NOT_FOUND;
    }
    memcpy(&memory, CMSG_DATA(head), sizeof(memory));
    struct simulate_rank *rank = hello.rank < world->config->ranks ? &world->ranks[hello.rank] : NULL;
    int status = CW_ERROR_NOT_FOUND;
    if (rank != NULL && rank->socket < 0) {
        status = cw_shm_port_open(memory, world->config->mtu_bytes, &rank->shm_port, error, error_bytes);
        rank->socket = status == CW_OK ? connection : -1;
        rank->process = hello.process;
    }
    close(memory);
    return status;
}

static bool pages_send(const struct simulate_world *world, int connection)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
    control.head =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.head), &world->pages_memory, sizeof(int));
    return sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
}

int simulate_ranks_accept(struct simulate_world *world, int listener, char *error, size_t error_bytes)
{
    uint32_t joined = 0;
    while (joined < world->config->ranks) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (simulate_is_over(world)) {
            fprintf(stderr,
                    "causeway run: --simulate: %" PRIu32 " of %" PRIu32 " ranks have called MPI_Init of this library: "
                    "nothing was simulated\n",
                    joined, world->config->ranks);
            return CW_ERROR_CLOSED;
        }
        if (poll(&wait, 1, ACCEPT_LOOK_MS) <= 0) {
            continue;
        }
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0 && errno != EINTR && errno != ECONNABORTED) {
            return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "rank %u of %u cannot join: %s%s", joined,
                                 world->config->ranks, strerror(errno), cw_errno_remedy(errno));
        }
        int status = connection < 0 ? CW_ERROR_NOT_FOUND : hello_receive(world, connection, error, error_bytes);
        if (status != CW_OK && connection >= 0) {
            close(connection);
        }
        if (status != CW_OK && status != CW_ERROR_NOT_FOUND) {
            return status;
        }
        joined += status == CW_OK;
    }
    for (uint32_t rank = 0; rank < world->config->ranks; rank++) {
        page_fill(world, rank);
    }
    for (uint32_t rank = 0; rank < world->config->ranks; rank++) {
        (void)pages_send(world, world->ranks[rank].socket); /* one that has ended is found later */
    }
    return CW_OK;
}

/* ---- ranks that end ---- */

static void gather_check(struct simulate_world *world)
{
    if (world->gather_count == 0 || world->gather_count + world->ended_count < world->config->ranks) {
        return;
    }
    world->gather_count = 0;
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        if (rank->is_awaited) {
            rank->is_awaited = false;
            rank->is_released = true;
            world->released_count++;
            rank->page->gathers = 0;
            atomic_fetch_add_explicit(&rank->page->gathered, 1, memory_order_relaxed); /* handed over by `turn` */
            simulate_rank_wake(rank);
        }
    }
}

static void rank_end(struct simulate_rank *rank)
{
    struct simulate_world *world = rank->world;
    if (rank->state == SIMULATE_RANK_ENDED) {
        return;
    }
    world->outside_count -= rank->state == SIMULATE_RANK_OUTSIDE;
    world->gather_count -= rank->is_awaited;
    world->released_count -= rank->is_released;
    world->ended_count++;
    rank->is_awaited = rank->is_released = false;
    rank->state = SIMULATE_RANK_ENDED;
    simulate_device_end(rank);
    cw_simulator_crash(world->simulator, rank->rank);
    gather_check(world);
}

static bool process_has_ended(const struct simulate_rank *rank)
{
    struct pollfd gone = {.fd = rank->socket, .events = POLLIN};
    return poll(&gone, 1, 0) > 0;
}

void simulate_rank_kill(struct simulate_rank *rank)
{
    if (rank->state != SIMULATE_RANK_ENDED && !process_has_ended(rank)) {
        kill(rank->process, SIGKILL);
        rank_end(rank);
    }
}

void simulate_ranks_watch(struct simulate_world *world)
{
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        if (world->ranks[i].state != SIMULATE_RANK_ENDED && process_has_ended(&world->ranks[i])) {
            rank_end(&world->ranks[i]);
        }
    }
}

/* ---- running ---- */

void simulate_rank_wake(struct simulate_rank *rank)
{
    rank->is_woken = true;
    if (rank->state != SIMULATE_RANK_ENDED) {
        cw_port_wake(rank->port);
    }
}

/* A program that waits for memory to change waits forever: no other rank runs meanwhile. */
static void busy_report(const struct simulate_rank *rank, uint64_t now_ns)
{
    fprintf(stderr,
            "causeway run: --simulate: rank %" PRIu32
            " has run for %d s without an MPI call (virtual time %.6f s). All other "
            "ranks wait for it. A program that waits for memory to change cannot be simulated\n",
            rank->rank, BUSY_LOOKS / (1000000000 / LOOK_NS), (double)now_ns / 1e9);
}

/* Lets the process run until it waits. False: it has ended. */
static bool rank_resume(struct simulate_rank *rank, uint64_t now_ns)
{
    struct simulate_world *world = rank->world;
    struct cw_virtual_page *page = rank->page;
    uint64_t next_ns = cw_simulator_next(world->simulator);
    page->now_ns = now_ns;
    page->horizon_ns = next_ns - now_ns < HORIZON_MAX_NS ? next_ns : now_ns + HORIZON_MAX_NS;
    page->is_stuck = world->is_stuck;
    rank->is_woken = rank->has_arrivals = false;
    rank->has_run = true;
    world->resume_count++;
    if (page->state == CW_VIRTUAL_WAITS) {
        simulate_device_seen(rank);
    }
    cw_shm_port_flush(rank->shm_port);
    /* pairs with the acquire of the rank */
    atomic_store_explicit(&page->turn, CW_VIRTUAL_RANK, memory_order_release);
    syscall(SYS_futex, &page->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (uint32_t looks = 0;; looks++) {
        futex_wait(&page->turn, CW_VIRTUAL_RANK, LOOK_NS);
        /* pairs with the release of the rank */
        if (atomic_load_explicit(&page->turn, memory_order_acquire) == CW_VIRTUAL_SIMULATOR) {
            return true;
        }
        if (process_has_ended(rank) || simulate_is_over(world)) {
            return atomic_load_explicit(&page->turn, memory_order_acquire) == CW_VIRTUAL_SIMULATOR; /* its last words */
        }
        if (looks == BUSY_LOOKS) {
            busy_report(rank, now_ns);
        }
    }
}

static void frames_send(struct simulate_rank *rank)
{
    struct cw_shm_port_frame frames[CW_PORT_BURST_MAX];
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    uint32_t count, taken;
    do {
        count = cw_shm_port_receive(rank->shm_port, frames, CW_PORT_BURST_MAX);
        uint32_t given = count > 0 ? cw_port_reserve(rank->port, packets, count) : 0;
        for (uint32_t i = 0; i < given; i++) {
            memcpy(packets[i].data, frames[i].data, frames[i].length);
            packets[i].length = frames[i].length;
            packets[i].checksum = frames[i].checksum;
            packets[i].departure_ns = frames[i].departure_ns;
        }
        taken = given > 0 ? cw_port_transmit(rank->port, packets, given) : 0;
        cw_port_cancel(rank->port, packets + taken, given - taken);
        cw_shm_port_consume(rank->shm_port, taken);
        rank->lacks_packets = given < count;
    } while (taken == CW_PORT_BURST_MAX);
    rank->world->lack_count += rank->lacks_packets;
    /* If the queue is full, the port wakes the node once half of it has left. */
}

static bool group_is_in(const uint8_t (*groups)[6], uint32_t count, const uint8_t mac[6])
{
    uint32_t at = 0;
    while (at < count && memcmp(groups[at], mac, 6) != 0) {
        at++;
    }
    return at < count;
}

static void groups_change(struct simulate_rank *rank)
{
    uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6];
    uint32_t count = cw_shm_port_groups(rank->shm_port, &rank->groups_version, groups);
    if (count == UINT32_MAX) {
        return;
    }
    for (uint32_t i = 0; i < rank->group_count; i++) {
        if (!group_is_in((const uint8_t(*)[6])groups, count, rank->groups[i])) {
            (void)cw_port_leave(rank->port, rank->groups[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!group_is_in((const uint8_t(*)[6])rank->groups, rank->group_count, groups[i])) {
            (void)cw_port_join(rank->port, groups[i]); /* the port has as many filters as the process */
        }
    }
    memcpy(rank->groups, groups, count * sizeof(groups[0]));
    rank->group_count = count;
}

/* The endpoint's settings for its NIC, before frames are sent or received. */
static void nic_configure(struct simulate_rank *rank)
{
    struct cw_port_claim claim;
    uint32_t doubts;
    if (rank->page->offloads == 0) {
        return;
    }
    cw_shm_port_nic(rank->shm_port, &claim, &doubts);
    cw_port_claim(rank->port, &claim);
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        if (((doubts & ~rank->doubts) >> i & 1) != 0) {
            cw_port_doubt(rank->port, (enum cw_port_offload)i);
        }
    }
    rank->doubts = doubts;
    cw_shm_port_link(rank->shm_port, rank->port->info.link_changes);
}

/* Into the memory of the process, which finds them when it is resumed. */
static void frames_receive(struct simulate_rank *rank)
{
    struct cw_received packets[CW_PORT_BURST_MAX];
    uint32_t count;
    while ((count = cw_port_receive(rank->port, packets, CW_PORT_BURST_MAX)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            rank->world->overflow_count += !cw_shm_port_send(rank->shm_port, &packets[i]);
        }
        cw_port_release(rank->port, packets, count);
        rank->has_arrivals = true;
    }
}

static void wake_run(void *context)
{
    simulate_rank_wake(context);
}

static void wakes_schedule(struct simulate_rank *rank, uint64_t now_ns)
{
    struct simulate_world *world = rank->world;
    for (uint32_t word = 0; word < (world->config->ranks + 63) / 64; word++) {
        while (rank->page->wakes[word] != 0) {
            uint32_t other = word * 64 + (uint32_t)__builtin_ctzll(rank->page->wakes[word]);
            rank->page->wakes[word] &= rank->page->wakes[word] - 1;
            uint64_t time_ns = now_ns + world->config->memory_latency_ns;
            if (other < world->config->ranks &&
                cw_simulator_at(world->simulator, time_ns, wake_run, &world->ranks[other]) != CW_OK) {
                simulate_rank_wake(&world->ranks[other]); /* too many at a time: this one is early */
            }
        }
    }
}

/* Handles the wake-ups and the state of a rank that has run, at the time at which it waits. */
static void wishes_grant(struct simulate_rank *rank, uint64_t now_ns)
{
    struct simulate_world *world = rank->world;
    struct cw_virtual_page *page = rank->page;
    rank->has_run = false;
    simulate_device_serve(rank);
    groups_change(rank);
    wakes_schedule(rank, now_ns);
    if (page->moved != rank->moved) {
        world->moved_ns = now_ns;
        rank->moved = page->moved;
    }
    if (page->state == CW_VIRTUAL_LEFT) {
        rank_end(rank);
    } else if (page->state == CW_VIRTUAL_OUTSIDE) {
        rank->state = SIMULATE_RANK_OUTSIDE;
        world->outside_count++;
        world->released_count -= rank->is_released;
        rank->is_released = false;
    } else if (page->gathers != 0 && !rank->is_awaited) {
        rank->is_awaited = true;
        world->gather_count++;
        gather_check(world);
    }
}

/* The next turn of a rank that waits. Frames that found no packet of the network are sent soon. */
static uint64_t turn_next(const struct simulate_rank *rank, uint64_t now_ns)
{
    uint64_t next_ns = rank->state == SIMULATE_RANK_RUNS ? rank->page->deadline_ns : CW_SIMULATOR_NEVER;
    uint64_t retry_ns = rank->lacks_packets ? now_ns + PACKET_RETRY_NS : CW_SIMULATOR_NEVER;
    return next_ns < retry_ns ? next_ns : retry_ns;
}

/* The turn of a rank's node. */
static uint64_t rank_turn(void *context, uint64_t now_ns)
{
    struct simulate_rank *rank = context;
    const struct cw_virtual_page *page = rank->page;
    for (;;) {
        if (rank->has_run && page->now_ns > now_ns) {
            return page->now_ns; /* nothing happens before */
        }
        nic_configure(rank);
        frames_send(rank);
        if (rank->has_run) {
            wishes_grant(rank, now_ns);
        }
        if (rank->state != SIMULATE_RANK_ENDED) {
            frames_receive(rank);
            rank->has_arrivals = simulate_device_complete(rank) || rank->has_arrivals;
        }
        bool is_over = page->deadline_ns <= now_ns ||
                       (page->state != CW_VIRTUAL_COMPUTES && (rank->has_arrivals || rank->is_woken));
        if (rank->state != SIMULATE_RANK_RUNS || !is_over) {
            return turn_next(rank, now_ns);
        }
        if (!rank_resume(rank, now_ns)) {
            rank_end(rank);
            return CW_SIMULATOR_NEVER;
        }
    }
}

void simulate_ranks_start(struct simulate_world *world)
{
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        (void)cw_port_sim_open(world->simulator, i, &rank->port);
        cw_simulator_attach(world->simulator, i, rank_turn, rank);
    }
}

bool simulate_ranks_return(struct simulate_world *world)
{
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        /* pairs with the release of the rank */
        while (rank->state == SIMULATE_RANK_OUTSIDE &&
               atomic_load_explicit(&rank->page->is_back, memory_order_acquire) == 0) {
            futex_wait(&rank->page->is_back, 0, RETURN_LOOK_NS);
            if (simulate_is_over(world)) {
                return false;
            }
            if (process_has_ended(rank)) {
                rank_end(rank);
            }
        }
    }
    world->outside_count = 0;
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        if (rank->state == SIMULATE_RANK_OUTSIDE) {
            rank->state = SIMULATE_RANK_RUNS;
            atomic_store_explicit(&rank->page->is_back, 0, memory_order_relaxed);
            simulate_rank_wake(rank);
        }
    }
    return true;
}

void simulate_ranks_close(struct simulate_world *world)
{
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        if (rank->socket >= 0) {
            close(rank->socket);
        }
        cw_shm_port_close(rank->shm_port);
    }
}

bool simulate_is_over(const struct simulate_world *world)
{
    struct pollfd signal = {.fd = world->signals, .events = POLLIN};
    return poll(&signal, 1, 0) > 0;
}
