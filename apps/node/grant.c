#include "apps/node/grant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* ---- users ---- */

const struct node_user *node_user_named(const struct node_serve_config *config, uid_t user)
{
    for (uint32_t i = 0; i < config->user_count; i++) {
        if (config->users[i].user == user) {
            return &config->users[i];
        }
    }
    return NULL;
}

bool node_user_has_place(const struct node_serve_config *config, uid_t user)
{
    return user == 0 || user == geteuid() || node_user_named(config, user) != NULL;
}

/* NULL: there is no room. Users with a place of their own always find one: the others, who may be one person with many
 * user numbers (subuid(5)), share the remaining ones. */
static struct node_owner *owner_find(struct node_grants *grants, uid_t user)
{
    const struct node_user *named = node_user_named(grants->config, user);
    struct node_owner *idle = NULL;
    uint32_t others = 0;
    for (uint32_t i = 0; i < grants->owner_count; i++) {
        struct node_owner *owner = &grants->owners[i];
        if (owner->user == user) {
            return owner;
        }
        idle = owner->connections == 0 ? owner : idle;
        others += owner->connections > 0 && !node_user_has_place(grants->config, owner->user);
    }
    if (!node_user_has_place(grants->config, user) &&
        others >= NODE_SHARES_MAX - NODE_PLACES_OWN - grants->config->user_count) {
        return NULL;
    }
    if (idle == NULL && grants->owner_count < NODE_SHARES_MAX) {
        idle = &grants->owners[grants->owner_count];
        idle->shares = calloc(grants->config->core_count, sizeof(*idle->shares));
        grants->owner_count += idle->shares != NULL;
    }
    if (idle == NULL || idle->shares == NULL) {
        return NULL;
    }
    struct node_share *shares = idle->shares;
    *idle =
        (struct node_owner){.user = user,
                            .shares = shares,
                            .lines = idle->lines}; /* the counters stay, or users could reset them by reconnecting */
    for (uint32_t core = 0; core < grants->config->core_count; core++) {
        shares[core] = (struct node_share){
            .turn = {.weight = named == NULL ? 1 : named->weight,
                     .meter.rate_bps = named == NULL ? 0 : named->rate_bps / grants->config->core_count}};
    }
    return idle;
}

bool node_owner_enter(struct node_grants *grants, struct node_client *client)
{
    struct node_owner *owner = owner_find(grants, client->whose.uid);
    if (owner == NULL || owner->connections >= grants->config->user_leases_max + NODE_CONNECTIONS) {
        return false;
    }
    owner->connections++;
    client->owner = owner;
    return true;
}

void node_owner_leave(struct node_client *client)
{
    client->owner->connections--;
}

/* The core with the fewest leases of the user: where users compete, they compete on all of them. */
static uint32_t core_choose(const struct node_grants *grants, const struct node_owner *owner)
{
    uint32_t least = 0;
    for (uint32_t core = 1; core < grants->config->core_count; core++) {
        least = owner->leases_of[core] < owner->leases_of[least] ? core : least;
    }
    return least;
}

/* ---- memory ---- */

/* The file system that memfds are in. */
static bool memory_device(dev_t *device)
{
    struct stat own;
    int memory = memfd_create("causeway-node", MFD_CLOEXEC);
    bool is_known = memory >= 0 && fstat(memory, &own) == 0;
    if (memory >= 0) {
        close(memory);
    }
    *device = is_known ? own.st_dev : 0;
    return is_known;
}

/* Opens the memory that descriptor `number` of the client's process is: a memfd of the client's user. No step of this
 * waits for the client, for any kind of descriptor. -1, with a line in `error`: the descriptor is unusable. */
static int memory_open(const struct ucred *whose, uint32_t number, char *error, size_t error_bytes)
{
    char path[64];
    struct statx found;
    dev_t device;
    if (whose->pid == 0) {
        cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                      "your process is in a PID namespace that the node does not see: run the node outside of it");
        return -1;
    }
    /* O_PATH opens only the place, and AT_STATX_DONT_SYNC sends no request: otherwise a file system of the client's own
     * could block the node. */
    snprintf(path, sizeof(path), "/proc/%d/fd/%u", whose->pid, number);
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) {
        cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "descriptor %u of process %d cannot be opened: %s", number,
                      whose->pid, strerror(errno));
        return -1;
    }
    int memory = -1;
    bool is_memory = memory_device(&device) &&
                     statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_UID, &found) == 0 &&
                     makedev(found.stx_dev_major, found.stx_dev_minor) == device && S_ISREG(found.stx_mode) &&
                     found.stx_uid == whose->uid; /* the number of a process that ended may be another one's by now */
    if (is_memory) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
        memory = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK); /* a lease (F_SETLEASE) is not waited for */
    }
    close(place);
    if (memory < 0) {
        cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "descriptor %u of process %d is no memfd of user %u",
                      number, whose->pid, whose->uid);
    }
    return memory;
}

/* ---- leases ---- */

static uint32_t ports_all(const struct node_grants *grants)
{
    return (uint32_t)grants->ports.last - grants->ports.first + 1;
}

/* Of the core that suits best, or else of any. 0: there are none. */
static uint16_t ports_acquire(struct node_grants *grants, struct node_client *client,
                              const struct cw_lease_request *request)
{
    uint32_t best = core_choose(grants, client->owner);
    uint16_t first = 0;
    for (uint32_t i = 0; i < grants->config->core_count && first == 0; i++) {
        first = node_ports_acquire(&grants->ports, client->whose.uid, request->first, request->ports,
                                   (best + i) % grants->config->core_count, &client->reservation);
    }
    return first;
}

/* Checks the user's quota. NULL: a lease. */
static const char *quota_check(const struct node_grants *grants, const struct node_owner *owner, uint32_t ports)
{
    if (owner->leases >= grants->config->user_leases_max) {
        return "this user has as many leases as one may (--user-leases)";
    }
    bool is_first = owner->ports == 0; /* a node with few ports serves at least one user */
    if (!is_first && owner->ports + ports > ports_all(grants) - ports_all(grants) / 4) {
        return "this user has three quarters of the UDP ports, and others need some: the node wants more (--ports)";
    }
    return NULL;
}

/* With the client's memory mapped: everything else. A line in `error` if it fails. */
static int lease_serve(struct node_grants *grants, struct node_client *client, const struct cw_lease_request *request,
                       struct node_lease *lease, char *error, size_t error_bytes)
{
    struct node_owner *owner = client->owner;
    const char *why = quota_check(grants, owner, request->ports);
    lease->first = why == NULL ? ports_acquire(grants, client, request) : 0;
    lease->ports = (uint16_t)request->ports;
    if (lease->first == 0) {
        snprintf(error, error_bytes, "%s",
                 why != NULL           ? why
                 : request->first != 0 ? "these ports belong to another user by now, or lie in the parts of two threads"
                                       : "all UDP ports are leased (--ports)");
        return CW_ERROR_LIMIT;
    }
    lease->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = lease->bell < 0 ? cw_status_of_errno(errno) : CW_OK;
    uint32_t core = node_ports_core(&grants->ports, lease->first);
    if (status == CW_OK) {
        status = node_lease_add(grants->config->dataplanes[core], lease, &owner->shares[core]);
    }
    if (status != CW_OK) {
        snprintf(error, error_bytes, "%s", cw_status_text(status));
        node_ports_release(&grants->ports, lease->first, lease->ports, &client->reservation);
        return status;
    }
    owner->leases++;
    owner->leases_of[core]++;
    owner->ports += lease->ports;
    client->lease = lease;
    client->rank = request->rank;
    memcpy(client->job, request->job, sizeof(client->job));
    return CW_OK;
}

int node_lease_begin(struct node_grants *grants, struct node_client *client, const struct cw_lease_request *request,
                     char *error, size_t error_bytes)
{
    struct node_lease *lease = client->lease != NULL ? NULL : calloc(1, sizeof(*lease));
    if (lease == NULL) {
        snprintf(error, error_bytes, "%s", client->lease != NULL ? "a client has one lease" : "no memory");
        return CW_ERROR_ARGUMENT;
    }
    lease->bell = -1;
    int memory = memory_open(&client->whose, request->memory, error, error_bytes);
    int status = memory < 0 ? CW_ERROR_ARGUMENT
                            : cw_shm_port_open(memory, grants->config->nic->port->info.mtu_bytes, &lease->shm_port,
                                               error, error_bytes);
    if (memory >= 0) {
        close(memory);
    }
    if (status == CW_OK) {
        status = lease_serve(grants, client, request, lease, error, error_bytes);
        if (status == CW_OK) {
            node_ports_record(&grants->ports);
            return CW_OK;
        }
        cw_shm_port_close(lease->shm_port);
        if (lease->bell >= 0) {
            close(lease->bell);
        }
    }
    free(lease);
    return status;
}

void node_lease_end(struct node_grants *grants, struct node_client *client)
{
    struct node_lease *lease = client->lease;
    if (lease == NULL) {
        return;
    }
    struct node_owner *owner = client->owner;
    node_lease_remove(lease);
    owner->leases--;
    owner->leases_of[node_ports_core(&grants->ports, lease->first)]--;
    owner->ports -= lease->ports;
    node_ports_release(&grants->ports, lease->first, lease->ports, &client->reservation);
    cw_shm_port_close(lease->shm_port);
    close(lease->bell);
    free(lease);
    client->lease = NULL;
}
