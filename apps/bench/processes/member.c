/* A member of a group: its port, its endpoint, its loop, its peer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "apps/bench/processes/group_shared.h"
#include "apps/cli/cli.h"
#include "apps/cli/process.h"
#include "dataplane/base/clock.h"
#include "dataplane/rdma/rdma.h"

#define LOOK_NS 1000000 /* between two looks at how far the other is */

enum { UDP_PORT = CW_UDP_PORT };

/* Reports that this member has reached a step; once a step, in their order. */
static void step_reach(struct bench_member *member, enum bench_step step)
{
    struct bench_group_shared *shared = member->group->shared;
    atomic_store(&shared->members[member->index].steps, (uint32_t)step + 1);
    atomic_fetch_add(&shared->reached[step], 1);
}

/* True once both members have. */
static bool all_reached(const struct bench_member *member, enum bench_step step)
{
    return atomic_load(&member->group->shared->reached[step]) == BENCH_MEMBERS;
}

int bench_member_fail(const struct bench_member *member, int status, const char *what)
{
    char where[64];
    snprintf(where, sizeof(where), "process %u", member->index);
    return app_error_status(status, what, where);
}

/* Waits until both members have, asleep: nothing must be due to come by the network. */
static void step_await(const struct bench_member *member, enum bench_step step)
{
    struct timespec pause = {.tv_nsec = LOOK_NS};
    while (!all_reached(member, step)) { /* the first process ends us if it takes too long */
        nanosleep(&pause, NULL);
    }
}

void bench_member_leave(struct bench_member *member)
{
    step_reach(member, BENCH_STEP_LEAVE);
    step_await(member, BENCH_STEP_LEAVE);
}

static int open_port(struct bench_member *member)
{
    const struct bench_group *group = member->group;
    struct timespec pause = {.tv_nsec = LOOK_NS};
    /* the server of a memif first; of the user's devices it may be one */
    bool has_server = group->fabric->kind == BENCH_FABRIC_MEMIF || group->fabric->kind == BENCH_FABRIC_DEVICES;
    while (has_server && member->index == 1 && atomic_load(&group->shared->members[0].steps) == 0) {
        nanosleep(&pause, NULL);
    }
    int code = bench_fabric_open(group->fabric, member->index, group->config.doorbell, &member->port);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    struct bench_introduction *own = &group->shared->members[member->index];
    memcpy(own->mac, member->port->info.mac, sizeof(own->mac));
    if (getrandom(own->key, sizeof(own->key), 0) != (ssize_t)sizeof(own->key)) {
        return bench_member_fail(member, CW_ERROR_SYSTEM, "getrandom fails");
    }
    step_reach(member, BENCH_STEP_PORT);
    step_await(member, BENCH_STEP_PORT); /* the wait for the link begins when both sides have a port */
    code = bench_fabric_await(member->port);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    step_reach(member, BENCH_STEP_LINK);
    step_await(member, BENCH_STEP_LINK);
    memcpy(member->peer_mac, bench_member_other(member)->mac, sizeof(member->peer_mac));
    return APP_EXIT_SUCCESS;
}

/* The RDMA device, in addition to the port. */
static int attach(struct bench_member *member, const struct cw_endpoint_config *endpoint, char *error,
                  size_t error_bytes)
{
    const struct cw_verbs_config config = cw_rdma_device_config(endpoint, member->group->config.rdma);
    struct cw_verbs_device *device;
    int status = cw_verbs_open(&config, &device, error, error_bytes);
    return status == CW_OK ? cw_rdma_attach(member->endpoint, device, error, error_bytes) : status;
}

static int open_endpoint(struct bench_member *member)
{
    const struct bench_group *group = member->group;
    struct cw_endpoint_config config;
    struct cw_loop_config loop;
    char error[CW_PORT_TEXT_BYTES] = "no endpoint";
    cw_endpoint_config_init(&config);
    cw_loop_config_init(&loop); /* inline, graded waiting, with a fallback thread */
    loop.spin = group->config.spin;
    loop.fallback = loop.spin ? CW_FALLBACK_NONE : CW_FALLBACK_THREAD;
    config.waiting = cw_loop_waiting(&loop, &member->port->info);
    config.address.ip = cw_ip_v4(0x0a4d0001u + member->index);
    config.address.udp_port = UDP_PORT;
    memcpy(config.job_key, group->shared->members[1].key, sizeof(config.job_key));
    if (getrandom(&config.seed, sizeof(config.seed), 0) != (ssize_t)sizeof(config.seed)) {
        return bench_member_fail(member, CW_ERROR_SYSTEM, "getrandom fails");
    }
    int status = cw_endpoint_create(&config, member->port, cw_clock_ns(), &member->endpoint, error, sizeof(error));
    if (status == CW_OK && group->config.rdma != NULL) {
        status = attach(member, &config, error, sizeof(error));
    }
    if (status == CW_OK && member->region == NULL) {
        member->region = mmap(NULL, group->config.region_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        status = member->region == MAP_FAILED ? CW_ERROR_MEMORY : CW_OK;
    }
    if (status == CW_OK) {
        status = cw_region_register(member->endpoint, member->region, group->config.region_bytes, member->rights,
                                    &member->token);
    }
    if (status == CW_OK) {
        struct bench_introduction *own = &group->shared->members[member->index];
        own->address = cw_endpoint_address(member->endpoint);
        own->token = member->token;
        status = cw_loop_create(&loop, member->endpoint, member->port, &member->loop, error, sizeof(error));
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : bench_member_fail(member, status, error);
}

static int run_peer_add(struct cw_endpoint *endpoint, void *context)
{
    struct bench_member *member = context;
    const struct bench_introduction *other = bench_member_other(member);
    member->peer_token = other->token;
    return cw_peer_add(endpoint, &other->address, &member->peer);
}

/* The first asks: two that ask each other at once would only have twice the work. */
static int run_peer_connect(struct cw_endpoint *endpoint, void *context)
{
    const struct bench_member *member = context;
    return member->index == 0 ? cw_peer_connect(endpoint, member->peer) : CW_OK;
}

static int run_pair_up(struct cw_endpoint *endpoint, void *context)
{
    const struct bench_member *member = context;
    return cw_rdma_state(endpoint, member->peer) == CW_RDMA_UP ? CW_OK : CW_ERROR_AGAIN;
}

/* The queue pair comes up soon after the session. Events that arrive meanwhile are kept: the other may put already. */
static int await_pair(struct bench_member *member)
{
    uint64_t until_ns = cw_clock_ns() + BENCH_HANG_NS;
    int status;
    while ((status = cw_loop_call(member->loop, run_pair_up, member)) == CW_ERROR_AGAIN) {
        (void)cw_loop_poll(member->loop, NULL, 0);
        if (cw_clock_ns() > until_ns) {
            return CW_ERROR_TIMEOUT;
        }
    }
    return status;
}

static int connect_other(struct bench_member *member)
{
    int status = cw_loop_call(member->loop, run_peer_add, member);
    if (status == CW_OK) {
        step_reach(member, BENCH_STEP_KNOWN);
        step_await(member, BENCH_STEP_KNOWN);
        status = cw_loop_call(member->loop, run_peer_connect, member);
    }
    for (bool is_connected = false; status == CW_OK && !is_connected;) {
        struct cw_event event;
        if (cw_loop_wait(member->loop, &event, 1, LOOK_NS) == 1) {
            status = event.kind == CW_EVENT_PEER_DOWN ? event.status : CW_OK;
            is_connected = event.kind == CW_EVENT_PEER_UP;
        }
    }
    if (status != CW_OK) {
        return bench_member_fail(member, status, "cannot connect to the other process");
    }
    status = member->group->config.rdma != NULL ? await_pair(member) : CW_OK;
    if (status != CW_OK) {
        return bench_member_fail(member, status, "no queue pair with the other process came up");
    }
    step_reach(member, BENCH_STEP_CONNECTED);
    return APP_EXIT_SUCCESS;
}

static int run_all(struct bench_member *member)
{
    const struct bench_group_config *config = &member->group->config;
    int code = config->cores != NULL ? app_pin(config->cores[member->index]) : APP_EXIT_SUCCESS;
    code = code == APP_EXIT_SUCCESS ? open_port(member) : code;
    if (code == APP_EXIT_SUCCESS && config->reference != NULL) {
        code = config->reference(member);
    }
    code = code == APP_EXIT_SUCCESS ? open_endpoint(member) : code;
    if (code == APP_EXIT_SUCCESS) {
        step_reach(member, BENCH_STEP_REFERENCE);
        step_await(member, BENCH_STEP_REFERENCE);
        code = connect_other(member);
    }
    return code == APP_EXIT_SUCCESS ? config->run(member) : code;
}

int bench_member_run(const struct bench_group *group, uint32_t index)
{
    struct bench_member member = {
        .index = index,
        .group = group,
        .settings = group->config.settings,
        .rights = CW_REGION_WRITE,
        .result = bench_group_result_at(group, index),
    };
    int code = run_all(&member);
    if (member.loop != NULL) {
        cw_loop_destroy(member.loop);
    }
    cw_endpoint_destroy(member.endpoint);
    if (member.port != NULL) {
        cw_port_close(member.port);
    }
    return code;
}
