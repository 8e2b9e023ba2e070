/* Turns and sleeps of the dataplane, and commands from another thread. */
#include "apps/node/state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/base/thread.h"
#include "dataplane/base/yield_policy.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* Looks for frames for so long before it sleeps, letting others run in between. */
#define YIELD_NS 50000ull
/* The longest sleep; shorter where the NIC's port does not see the bell. */
#define SLEEP_MAX_NS   20000000ull
#define SLEEP_TIMED_NS 200000ull
#define SLEEP_MIN_NS   60000ull
/* Between two looks at the groups that ranks want. */
#define GROUPS_NS 500000ull

enum {
    BELLS = 32, /* that are silenced at a time */
    LAST_TURNS = 64,
};

/* ---- calls ---- */

static void call_run(struct node_dataplane *dataplane)
{
    if (atomic_load_explicit(&dataplane->is_called, memory_order_acquire) == 0) {
        return;
    }
    pthread_mutex_lock(&dataplane->lock);
    dataplane->call(dataplane, dataplane->call_context);
    atomic_store_explicit(&dataplane->is_called, 0, memory_order_release);
    pthread_cond_signal(&dataplane->done);
    pthread_mutex_unlock(&dataplane->lock);
}

/* Has the dataplane's thread do something, and waits for it. */
static void dataplane_call(struct node_dataplane *dataplane, void (*call)(struct node_dataplane *, void *),
                           void *context)
{
    pthread_mutex_lock(&dataplane->lock);
    dataplane->call = call;
    dataplane->call_context = context;
    atomic_store_explicit(&dataplane->is_called, 1, memory_order_release);
    cw_port_wake(dataplane->config.nic);
    while (atomic_load_explicit(&dataplane->is_called, memory_order_acquire) != 0) {
        pthread_cond_wait(&dataplane->done, &dataplane->lock);
    }
    pthread_mutex_unlock(&dataplane->lock);
}

/* ---- the thread ---- */

/* Forgets that they were rung. They are not read, because a client could make a read wait: epoll reports each ring once
 * (EPOLLET). */
static void bells_quiet(struct node_dataplane *dataplane)
{
    struct epoll_event events[BELLS];
    (void)epoll_wait(dataplane->bells, events, BELLS, 0);
}

static void dataplane_sleep(struct node_dataplane *dataplane, uint64_t timeout_ns)
{
    static const uint32_t never = 0;
    const struct cw_port_alarm alarm = {.word = {.at = &never, .value = 0, .is_private = true},
                                        .descriptor = dataplane->bells};
    bool is_timed = dataplane->config.nic->info.wait == CW_PORT_WAIT_TIMED;
    timeout_ns = timeout_ns < SLEEP_MAX_NS ? timeout_ns : SLEEP_MAX_NS;
    timeout_ns = is_timed && timeout_ns > SLEEP_TIMED_NS ? SLEEP_TIMED_NS : timeout_ns;
    bool is_busy = false;
    struct node_handoff *handoff = dataplane->config.handoff;
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        is_busy = cw_shm_port_arm(dataplane->leases[i]->shm_port) || is_busy;
    }
    is_busy = (handoff != NULL && node_handoff_arm(handoff, dataplane->config.number)) || is_busy;
    node_groups_renew(dataplane, cw_clock_ns());
    if (!is_busy && atomic_load_explicit(&dataplane->is_called, memory_order_acquire) == 0) {
        cw_port_sleep_alarm(dataplane->config.nic, timeout_ns, &alarm);
        bells_quiet(dataplane);
    }
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        cw_shm_port_disarm(dataplane->leases[i]->shm_port);
    }
    if (handoff != NULL) {
        node_handoff_disarm(handoff, dataplane->config.number);
    }
}

static void *dataplane_run(void *context)
{
    struct node_dataplane *dataplane = context;
    struct cw_yield_policy yield_policy = {.resume_ns = 0};
    uint64_t idle_since_ns = 0, groups_ns = 0;
    if (!dataplane->config.spins) {
        cw_process_slice_shorten(); /* ranks may be on the same core */
    }
    while (atomic_load_explicit(&dataplane->stop, memory_order_acquire) == 0) {
        uint64_t now_ns = cw_clock_ns();
        call_run(dataplane);
        if (now_ns >= groups_ns) {
            node_groups_renew(dataplane, now_ns);
            groups_ns = now_ns + GROUPS_NS;
        }
        if (node_forward(dataplane, now_ns) > 0) {
            idle_since_ns = 0;
            continue;
        }
        if (dataplane->config.spins) {
            continue;
        }
        idle_since_ns = idle_since_ns == 0 ? now_ns : idle_since_ns;
        uint64_t deadline_ns = node_forward_deadline(dataplane, now_ns);
        if (now_ns - idle_since_ns < YIELD_NS && cw_yield_policy_yield(&yield_policy, now_ns)) {
            continue;
        }
        if (deadline_ns < now_ns + SLEEP_MIN_NS) {
            sched_yield();
            continue;
        }
        dataplane_sleep(dataplane, deadline_ns - now_ns);
        idle_since_ns = 0;
    }
    return NULL;
}

/* ---- what others want ---- */

struct lease_call {
    struct node_lease *lease;
    int status;
};

static void share_enter(struct node_dataplane *dataplane, struct node_share *share)
{
    if (share->round.count == 0) {
        share->round.turns = share->turns;
        dataplane->shares.turns = dataplane->share_turns;
        dataplane->share_turns[dataplane->shares.count++] = &share->turn;
    }
}

static void turn_remove(struct node_round *round, const struct node_turn *turn)
{
    for (uint32_t i = 0; i < round->count; i++) {
        if (round->turns[i] == turn) {
            round->turns[i] = round->turns[--round->count];
            return;
        }
    }
}

static void lease_add(struct node_dataplane *dataplane, void *context)
{
    struct lease_call *call = context;
    struct node_lease *lease = call->lease;
    struct node_share *share = lease->share;
    if (dataplane->lease_count == NODE_LEASES_MAX ||
        (share->round.count == 0 && dataplane->shares.count == NODE_SHARES_MAX)) {
        call->status = CW_ERROR_LIMIT;
        return;
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = lease->bell};
    if (epoll_ctl(dataplane->bells, EPOLL_CTL_ADD, lease->bell, &event) != 0) {
        call->status = CW_ERROR_SYSTEM;
        return;
    }
    share_enter(dataplane, share);
    share->turns[share->round.count++] = &lease->turn;
    dataplane->leases[dataplane->lease_count++] = lease;
    for (uint32_t i = 0; i < lease->ports; i++) {
        dataplane->lease_of[lease->first + i] = (uint16_t)dataplane->lease_count;
    }
}

static void lease_remove(struct node_dataplane *dataplane, void *context)
{
    struct node_lease *lease = ((struct lease_call *)context)->lease;
    struct node_share *share = lease->share;
    uint32_t at = 0;
    while (dataplane->leases[at] != lease) {
        at++;
    }
    for (int i = 0; i < LAST_TURNS && cw_shm_port_arm(lease->shm_port); i++) { /* the last words of one that has gone */
        (void)node_forward(dataplane, cw_clock_ns());
    }
    node_groups_drop(dataplane, lease);
    (void)epoll_ctl(dataplane->bells, EPOLL_CTL_DEL, lease->bell, NULL);
    for (uint32_t i = 0; i < lease->ports; i++) {
        dataplane->lease_of[lease->first + i] = 0;
    }
    struct node_lease *moved = dataplane->leases[--dataplane->lease_count];
    dataplane->leases[at] = moved;
    for (uint32_t i = 0; i < moved->ports && moved != lease; i++) {
        dataplane->lease_of[moved->first + i] = (uint16_t)(at + 1);
    }
    turn_remove(&share->round, &lease->turn);
    if (share->round.count == 0) {
        turn_remove(&dataplane->shares, &share->turn);
    }
}

static void leases_count(struct node_dataplane *dataplane, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < dataplane->lease_count; i++) {
        dataplane->leases[i]->shown = dataplane->leases[i]->counters;
    }
}

static void lease_find_broken(struct node_dataplane *dataplane, void *context)
{
    struct lease_call *call = context;
    for (uint32_t i = 0; i < dataplane->lease_count && call->lease == NULL; i++) {
        call->lease = cw_shm_port_is_broken(dataplane->leases[i]->shm_port) ? dataplane->leases[i] : NULL;
    }
}

int node_lease_add(struct node_dataplane *dataplane, struct node_lease *lease, struct node_share *share)
{
    struct lease_call call = {.lease = lease};
    lease->share = share;
    lease->dataplane = dataplane;
    lease->turn.weight = 1;
    lease->groups_version = UINT32_MAX; /* odd: none has that */
    dataplane_call(dataplane, lease_add, &call);
    return call.status;
}

void node_lease_remove(struct node_lease *lease)
{
    struct lease_call call = {.lease = lease};
    dataplane_call(lease->dataplane, lease_remove, &call);
}

void node_leases_count(struct node_dataplane *dataplane)
{
    dataplane_call(dataplane, leases_count, NULL);
}

struct node_lease *node_lease_broken(struct node_dataplane *dataplane)
{
    struct lease_call call = {.lease = NULL};
    dataplane_call(dataplane, lease_find_broken, &call);
    return call.lease;
}

struct hop_call {
    const struct cw_ip *ip;
    uint8_t *mac;
    bool is_known;
};

static void hop_want(struct node_dataplane *dataplane, void *context)
{
    struct hop_call *call = context;
    (void)cw_neighbour_want(dataplane->config.neighbours, call->ip, cw_clock_ns());
    call->is_known = cw_neighbour_find(dataplane->config.neighbours, call->ip, call->mac);
}

bool node_hop_want(struct node_dataplane *dataplane, const struct cw_ip *ip, uint8_t mac[6])
{
    struct hop_call call = {.ip = ip, .mac = mac};
    dataplane_call(dataplane, hop_want, &call);
    return call.is_known;
}

static void hop_remove(struct node_dataplane *dataplane, void *context)
{
    cw_neighbour_remove(dataplane->config.neighbours, context);
}

void node_hop_remove(struct node_dataplane *dataplane, const struct cw_ip *ip)
{
    struct cw_ip copy = *ip;
    dataplane_call(dataplane, hop_remove, &copy);
}

static void foreign_count(struct node_dataplane *dataplane, void *context)
{
    *(uint64_t *)context = dataplane->foreign;
}

uint64_t node_dataplane_foreign(struct node_dataplane *dataplane)
{
    uint64_t foreign = 0;
    dataplane_call(dataplane, foreign_count, &foreign);
    return foreign;
}

/* ---- from beginning to end ---- */

int node_dataplane_open(const struct node_dataplane_config *config, struct node_dataplane **dataplane, char *error,
                        size_t error_bytes)
{
    struct node_dataplane *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the dataplane");
    }
    made->config = *config;
    made->meter.rate_bps = config->rate_bps;
    made->barred_ns = UINT64_MAX;
    if (config->count > 1) {
        cw_port_claim(config->nic, &(struct cw_port_claim){
                                       .ip = config->ip,
                                       .udp_port = (uint16_t)(config->port_first + config->number * config->ports_each),
                                       .udp_port_count = (uint16_t)config->ports_own,
                                       .group_port = CW_UDP_PORT});
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->done, NULL);
    made->bells = epoll_create1(EPOLL_CLOEXEC);
    int failed = made->bells < 0 ? errno : 0;
    failed = failed == 0 ? cw_thread_start(&made->thread, config->core, false, dataplane_run, made) : failed;
    if (failed != 0) {
        if (made->bells >= 0) {
            close(made->bells);
        }
        free(made);
        return cw_error_text(error, error_bytes, cw_status_of_errno(failed), "the dataplane's thread: %s%s",
                             strerror(failed), cw_errno_remedy(failed));
    }
    *dataplane = made;
    return CW_OK;
}

void node_dataplane_close(struct node_dataplane *dataplane)
{
    atomic_store_explicit(&dataplane->stop, 1, memory_order_release);
    cw_port_wake(dataplane->config.nic);
    pthread_join(dataplane->thread, NULL);
    cw_port_cancel(dataplane->config.nic, dataplane->pending, dataplane->pending_count);
    close(dataplane->bells);
    pthread_cond_destroy(&dataplane->done);
    pthread_mutex_destroy(&dataplane->lock);
    free(dataplane);
}
