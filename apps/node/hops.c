#include "apps/node/hops.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "control/net/neighbour.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/thread.h"
#include "dataplane/status.h"

enum hop_state {
    HOP_FREE,
    HOP_NEW,    /* to be looked for */
    HOP_ASKING, /* a thread, or the resolver, looks for it */
    HOP_KNOWN,
    HOP_ABSENT,
};

struct hop {
    struct cw_ip ip; /* of the host; where the resolver asks, of the next hop */
    uint8_t mac[6];
    bool has_mac;
    enum hop_state state;
    uid_t user; /* first user to request it */
    uint64_t wanted_ns, state_ns;
};

struct node_hops {
    const struct node_nic *nic;
    struct node_dataplane *dataplane;
    pthread_mutex_t lock; /* of all below; never held across a system call that waits */
    pthread_cond_t ended;
    uint32_t thread_count;
    uid_t thread_users[NODE_HOPS_THREADS];
    struct hop hops[NODE_HOPS_MAX];
};

/* The address that a thread searches. */
struct search {
    struct node_hops *hops;
    uid_t user;
    uint32_t count;
    struct cw_hop found[NODE_HOPS_ASKING];
};

struct node_hops *node_hops_create(const struct node_nic *nic, struct node_dataplane *dataplane)
{
    struct node_hops *hops = calloc(1, sizeof(*hops));
    if (hops != NULL) {
        hops->nic = nic;
        hops->dataplane = dataplane;
        pthread_mutex_init(&hops->lock, NULL);
        pthread_cond_init(&hops->ended, NULL);
    }
    return hops;
}

void node_hops_destroy(struct node_hops *hops)
{
    if (hops == NULL) {
        return;
    }
    pthread_mutex_lock(&hops->lock);
    while (hops->thread_count > 0) {
        pthread_cond_wait(&hops->ended, &hops->lock);
    }
    pthread_mutex_unlock(&hops->lock);
    pthread_cond_destroy(&hops->ended);
    pthread_mutex_destroy(&hops->lock);
    free(hops);
}

static void hop_become(struct hop *hop, enum hop_state state, uint64_t now_ns)
{
    hop->state = state;
    hop->state_ns = now_ns;
}

static struct hop *hop_find(struct node_hops *hops, const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < NODE_HOPS_MAX; i++) {
        if (hops->hops[i].state != HOP_FREE && cw_ip_is_equal(&hops->hops[i].ip, ip)) {
            return &hops->hops[i];
        }
    }
    return NULL;
}

/* The resolver asks no more. */
static void hop_free(struct node_hops *hops, struct hop *hop)
{
    if (!hops->nic->is_kernels) {
        node_hop_remove(hops->dataplane, &hop->ip);
    }
    hop->state = HOP_FREE;
}

static bool is_older(const struct hop *hop, const struct hop *oldest)
{
    return oldest == NULL || hop->wanted_ns < oldest->wanted_ns;
}

/* An empty place, or one of an old entry: the user's own if it has many. NULL: the user has too many addresses that are
 * not known, or all entries are being looked for. */
static struct hop *place_find(struct node_hops *hops, uid_t user)
{
    struct hop *oldest = NULL, *own_oldest = NULL, *empty = NULL;
    uint32_t asking = 0, own = 0;
    for (uint32_t i = 0; i < NODE_HOPS_MAX; i++) {
        struct hop *hop = &hops->hops[i];
        asking += hop->user == user && (hop->state == HOP_NEW || hop->state == HOP_ASKING || hop->state == HOP_ABSENT);
        if (hop->state == HOP_FREE) {
            empty = hop;
            continue;
        }
        own += hop->user == user;
        if (hop->state != HOP_ASKING) {
            own_oldest = hop->user == user && is_older(hop, own_oldest) ? hop : own_oldest;
            oldest = is_older(hop, oldest) ? hop : oldest;
        }
    }
    if (asking >= NODE_HOPS_ASKING) {
        return NULL;
    }
    struct hop *place = own >= NODE_HOPS_USER ? own_oldest : empty != NULL ? empty : oldest;
    if (place != NULL && place->state != HOP_FREE) {
        hop_free(hops, place);
    }
    return place;
}

/* ---- a thread that asks for a user ---- */

static void *search_run(void *context)
{
    struct search *search = context;
    struct node_hops *hops = search->hops;
    char error[256];
    bool is_found = cw_hops_find(hops->nic->name, &hops->nic->address.ip, hops->nic->mac, search->found, search->count,
                                 error, sizeof(error)) == CW_OK;
    uint64_t now_ns = cw_clock_ns();
    pthread_mutex_lock(&hops->lock);
    for (uint32_t i = 0; i < search->count; i++) {
        struct hop *hop = hop_find(hops, &search->found[i].ip);
        if (hop == NULL) {
            continue;
        }
        bool is_known = is_found && search->found[i].is_known;
        hop->has_mac = is_known;
        memcpy(hop->mac, search->found[i].mac, sizeof(hop->mac));
        hop_become(hop, is_known ? HOP_KNOWN : HOP_ABSENT, now_ns);
    }
    uint32_t at = 0;
    while (hops->thread_users[at] != search->user) {
        at++;
    }
    hops->thread_users[at] = hops->thread_users[--hops->thread_count];
    pthread_cond_signal(&hops->ended);
    pthread_mutex_unlock(&hops->lock);
    free(search);
    return NULL;
}

static bool has_thread(const struct node_hops *hops, uid_t user)
{
    for (uint32_t i = 0; i < hops->thread_count; i++) {
        if (hops->thread_users[i] == user) {
            return true;
        }
    }
    return false;
}

/* The requests of a user, by one thread at a time. With the lock. */
static void search_start(struct node_hops *hops, uid_t user, uint64_t now_ns)
{
    if (hops->thread_count == NODE_HOPS_THREADS || has_thread(hops, user)) {
        return;
    }
    struct search *search = calloc(1, sizeof(*search));
    for (uint32_t i = 0; search != NULL && i < NODE_HOPS_MAX && search->count < NODE_HOPS_ASKING; i++) {
        struct hop *hop = &hops->hops[i];
        if (hop->state == HOP_NEW && hop->user == user) {
            search->found[search->count++] = (struct cw_hop){.ip = hop->ip};
            hop_become(hop, HOP_ASKING, now_ns);
        }
    }
    if (search == NULL || search->count == 0) {
        free(search);
        return;
    }
    pthread_t thread;
    search->hops = hops;
    search->user = user;
    hops->thread_users[hops->thread_count++] = user;
    if (cw_thread_start(&thread, -1, false, search_run, search) == 0) {
        pthread_detach(thread);
        return;
    }
    hops->thread_count--;
    for (uint32_t i = 0; i < search->count; i++) {
        hop_become(hop_find(hops, &search->found[i].ip), HOP_ABSENT, now_ns);
    }
    free(search);
}

/* ---- what is wanted ---- */

/* The resolver's turn: it gets each request, and sends its own as long as the hop is in use. */
static void resolver_look(struct node_hops *hops, struct hop *hop, uint64_t now_ns)
{
    if (hop->state == HOP_NEW) {
        hop_become(hop, HOP_ASKING, now_ns);
    }
    if (hop->state == HOP_ASKING || hop->state == HOP_KNOWN) {
        bool was_known = hop->state == HOP_KNOWN;
        hop->has_mac = node_hop_want(hops->dataplane, &hop->ip, hop->mac);
        if (hop->has_mac && !was_known) {
            hop_become(hop, HOP_KNOWN, now_ns);
        }
    }
}

bool node_hops_want(struct node_hops *hops, uid_t user, const struct cw_ip *ip, uint64_t now_ns, uint8_t mac[6])
{
    const struct node_nic *nic = hops->nic;
    const struct cw_ip next = nic->is_kernels ? *ip : cw_neighbour_next(nic->neighbours, ip);
    if (cw_ip_is_equal(ip, &nic->address.ip)) {
        memcpy(mac, nic->mac, sizeof(nic->mac));
        return true;
    }
    if (cw_ip_is_none(&next) || cw_ip_is_v4(&next) != cw_ip_is_v4(&nic->address.ip)) {
        return false;
    }
    pthread_mutex_lock(&hops->lock);
    struct hop *hop = hop_find(hops, &next);
    if (hop == NULL && (hop = place_find(hops, user)) != NULL) {
        *hop = (struct hop){.ip = next, .user = user, .state = HOP_NEW, .state_ns = now_ns};
    }
    bool is_known = false;
    if (hop != NULL) {
        hop->wanted_ns = now_ns;
        uint64_t age_ns = now_ns > hop->state_ns ? now_ns - hop->state_ns : 0;
        hop->user = hop->state == HOP_NEW ? user : hop->user; /* its thread searches: the other one may be busy */
        if ((hop->state == HOP_ABSENT && age_ns > NODE_HOPS_ABSENT_NS) ||
            (hop->state == HOP_KNOWN && nic->is_kernels && age_ns > NODE_HOPS_FRESH_NS)) {
            hop->user = user;
            hop->has_mac = false;
            hop_become(hop, HOP_NEW, now_ns);
        }
        if (nic->is_kernels) {
            search_start(hops, user, now_ns);
        } else {
            resolver_look(hops, hop, now_ns);
        }
        is_known = hop->has_mac;
        memcpy(mac, hop->mac, sizeof(hop->mac));
    }
    pthread_mutex_unlock(&hops->lock);
    return is_known;
}

void node_hops_turn(struct node_hops *hops, uint64_t now_ns)
{
    pthread_mutex_lock(&hops->lock);
    for (uint32_t i = 0; i < NODE_HOPS_MAX; i++) {
        struct hop *hop = &hops->hops[i];
        uint64_t unwanted_ns = now_ns > hop->wanted_ns ? now_ns - hop->wanted_ns : 0;
        if (!hops->nic->is_kernels && hop->state == HOP_ASKING && now_ns - hop->state_ns > NODE_HOPS_ABSENT_NS) {
            node_hop_remove(hops->dataplane, &hop->ip); /* no more questions */
            hop_become(hop, HOP_ABSENT, now_ns);
        }
        if (hops->nic->is_kernels && hop->state == HOP_NEW) { /* all threads were busy when it was asked for */
            search_start(hops, hop->user, now_ns);
        }
        if (hop->state != HOP_FREE && hop->state != HOP_ASKING &&
            unwanted_ns > (hop->state == HOP_KNOWN ? NODE_HOPS_KEEP_NS : NODE_HOPS_ABSENT_NS)) {
            hop_free(hops, hop);
        }
    }
    pthread_mutex_unlock(&hops->lock);
}
