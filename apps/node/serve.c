#include "apps/node/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/node/ports.h"
#include "control/lease/lease.h"
#include "control/net/neighbour.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum {
    CLIENTS_MAX = 4 * NODE_LEASES_MAX,
    CLIENTS_ASKING = 64, /* of a user, beside those with a lease: they only ask */
    ERROR_BYTES = 512,
    TIDY_MS = 1000, /* between two looks for leases whose memory makes no sense */
    STATUS_BYTES = 4 << 20,
};

struct client {
    int socket;
    struct ucred whose;
    struct node_lease *lease; /* NULL: none */
    struct cw_reservation reservation;
    uint32_t rank;
    char job[CW_LEASE_JOB_BYTES];
};

struct user {
    uid_t user;
    uint32_t leases, leases_of[NODE_CORES_MAX];
    struct node_share *shares; /* one for each core */
};

struct serve {
    const struct node_serve_config *config;
    int listener;
    struct client *clients[CLIENTS_MAX];
    uint32_t client_count;
    struct user users[NODE_SHARES_MAX];
    uint32_t user_count;
    struct node_ports ports;
};

/* ---- users ---- */

static const struct node_user *user_named(const struct node_serve_config *config, uid_t user)
{
    for (uint32_t i = 0; i < config->user_count; i++) {
        if (config->users[i].user == user) {
            return &config->users[i];
        }
    }
    return NULL;
}

/* NULL: there is no room. */
static struct user *user_enter(struct serve *serve, uid_t user)
{
    const struct node_user *named = user_named(serve->config, user);
    struct user *idle = NULL;
    for (uint32_t i = 0; i < serve->user_count; i++) {
        if (serve->users[i].user == user) {
            return &serve->users[i];
        }
        idle = serve->users[i].leases == 0 ? &serve->users[i] : idle;
    }
    if (idle == NULL && serve->user_count < NODE_SHARES_MAX) {
        idle = &serve->users[serve->user_count];
        idle->shares = calloc(serve->config->core_count, sizeof(*idle->shares));
        serve->user_count += idle->shares != NULL;
    }
    if (idle == NULL || idle->shares == NULL) {
        return NULL;
    }
    idle->user = user;
    for (uint32_t core = 0; core < serve->config->core_count; core++) {
        idle->shares[core].turn =
            (struct node_turn){.weight = named == NULL ? 1 : named->weight,
                               .meter.rate_bps = named == NULL ? 0 : named->rate_bps / serve->config->core_count};
    }
    return idle;
}

static struct user *user_of(struct serve *serve, const struct client *client)
{
    struct user *user = serve->users;
    while (client->lease->share < user->shares || client->lease->share >= user->shares + serve->config->core_count) {
        user++;
    }
    return user;
}

/* The core with the fewest leases of the user: where users compete, they compete on all of them. */
static uint32_t core_choose(const struct serve *serve, const struct user *user)
{
    uint32_t least = 0;
    for (uint32_t core = 1; core < serve->config->core_count; core++) {
        least = user->leases_of[core] < user->leases_of[least] ? core : least;
    }
    return least;
}

/* ---- leases ---- */

static void lease_end(struct serve *serve, struct client *client)
{
    struct node_lease *lease = client->lease;
    if (lease == NULL) {
        return;
    }
    struct user *user = user_of(serve, client);
    node_lease_remove(lease);
    user->leases--;
    user->leases_of[node_ports_core(&serve->ports, lease->first)]--;
    node_ports_give(&serve->ports, lease->first, lease->ports, &client->reservation);
    cw_cable_close(lease->cable);
    close(lease->bell);
    free(lease);
    client->lease = NULL;
}

/* Of the core that suits best, or else of any. 0: there are none. */
static uint16_t ports_take(struct serve *serve, struct client *client, const struct user *user,
                           const struct cw_lease_request *request)
{
    uint32_t best = core_choose(serve, user);
    uint16_t first = 0;
    for (uint32_t i = 0; i < serve->config->core_count && first == 0; i++) {
        first = node_ports_take(&serve->ports, client->whose.uid, request->first, request->ports,
                                (best + i) % serve->config->core_count, &client->reservation);
    }
    return first;
}

/* With the client's memory mapped: everything else. *bell: the client's end. A line in `error` if it fails. */
static int lease_serve(struct serve *serve, struct client *client, const struct cw_lease_request *request,
                       struct node_lease *lease, int *bell, char *error, size_t error_bytes)
{
    int ends[2];
    struct user *user = user_enter(serve, client->whose.uid);
    if (user == NULL || user->leases >= serve->config->user_leases_max) {
        snprintf(error, error_bytes, "%s",
                 user == NULL ? "too many users have leases"
                              : "this user has as many leases as "
                                "one may (--user-leases)");
        return CW_ERROR_LIMIT;
    }
    lease->first = ports_take(serve, client, user, request);
    lease->ports = (uint16_t)request->ports;
    if (lease->first == 0) {
        snprintf(error, error_bytes, "%s",
                 request->first != 0 ? "these ports are somebody else's by now, or lie in the parts of two threads"
                                     : "all UDP ports are leased (--ports)");
        return CW_ERROR_LIMIT;
    }
    int status = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ? cw_status_of_errno(errno) : CW_OK;
    if (status == CW_OK) {
        lease->bell = ends[0];
        *bell = ends[1];
        uint32_t core = node_ports_core(&serve->ports, lease->first);
        status = node_lease_add(serve->config->dataplanes[core], lease, &user->shares[core]);
    }
    if (status != CW_OK) {
        snprintf(error, error_bytes, "%s", cw_status_text(status));
        node_ports_give(&serve->ports, lease->first, lease->ports, &client->reservation);
        return status;
    }
    user->leases++;
    user->leases_of[node_ports_core(&serve->ports, lease->first)]++;
    client->lease = lease;
    client->rank = request->rank;
    memcpy(client->job, request->job, sizeof(client->job));
    return CW_OK;
}

static int lease_begin(struct serve *serve, struct client *client, const struct cw_lease_request *request, int memory,
                       int *bell, char *error, size_t error_bytes)
{
    struct node_lease *lease = calloc(1, sizeof(*lease));
    int status = client->lease != NULL || memory < 0 || lease == NULL ? CW_ERROR_ARGUMENT : CW_OK;
    snprintf(error, error_bytes, "%s", lease == NULL ? "no memory" : "a lease takes memory, and a client has one");
    if (status == CW_OK) {
        lease->bell = -1;
        status = cw_cable_open(memory, serve->config->nic->port->info.mtu_bytes, &lease->cable, error, error_bytes);
    }
    if (status == CW_OK) {
        status = lease_serve(serve, client, request, lease, bell, error, error_bytes);
        if (status == CW_OK) {
            node_ports_record(&serve->ports);
            return CW_OK;
        }
        cw_cable_close(lease->cable);
        if (lease->bell >= 0) {
            close(lease->bell);
        }
    }
    free(lease);
    return status;
}

/* ---- answers ---- */

/* False: the client does not take them. */
static bool say(const struct client *client, const char *line, int descriptor)
{
    return cw_lease_say(client->socket, line, descriptor) >= 0;
}

static bool refuse(const struct client *client, int status, const char *why)
{
    char line[ERROR_BYTES + 64];
    snprintf(line, sizeof(line), "refused %d %s", status, why);
    return say(client, line, -1);
}

static bool hello(const struct serve *serve, const struct client *client)
{
    const struct node_nic *nic = serve->config->nic;
    struct cw_lease_nic own = {.ip = nic->address.ip,
                               .bits = nic->address.bits,
                               .mtu_bytes = nic->port->info.mtu_bytes,
                               .rate_bps = (uint64_t)nic->address.speed_mbps * 1000000,
                               .reports = nic->is_kernels};
    char line[CW_LEASE_LINE_BYTES];
    memcpy(own.mac, nic->mac, sizeof(own.mac));
    cw_lease_nic_write(&own, line);
    return say(client, line, -1);
}

static bool lease(struct serve *serve, struct client *client, const struct cw_lease_request *request, int memory)
{
    char error[ERROR_BYTES], line[CW_LEASE_LINE_BYTES];
    int bell = -1;
    int status = lease_begin(serve, client, request, memory, &bell, error, sizeof(error));
    if (status == CW_OK) {
        snprintf(line, sizeof(line), "leased first=%u", client->lease->first);
    }
    bool is_told = status == CW_OK ? say(client, line, bell) : refuse(client, status, error);
    if (bell >= 0) {
        close(bell);
    }
    return is_told;
}

/* The kernel's table and questions of our own, for addresses that the kernel has. */
static bool kernel_hops(const struct serve *serve, const struct cw_lease_request *request, struct cw_hop *hops)
{
    const struct node_nic *nic = serve->config->nic;
    char error[ERROR_BYTES];
    for (uint32_t i = 0; i < request->hop_count; i++) {
        hops[i] = (struct cw_hop){.ip = request->hops[i]};
    }
    return cw_hops_find(nic->name, &nic->address.ip, nic->mac, hops, request->hop_count, error, sizeof(error)) == CW_OK;
}

static bool hops(const struct serve *serve, const struct client *client, const struct cw_lease_request *request)
{
    const struct node_nic *nic = serve->config->nic;
    struct cw_hop found[CW_LEASE_HOPS_MAX] = {{.is_known = false}};
    char line[CW_LEASE_LINE_BYTES] = "hops ";
    if (nic->is_kernels && !kernel_hops(serve, request, found)) {
        return refuse(client, CW_ERROR_SYSTEM, "the kernel does not say where other hosts are");
    }
    for (uint32_t i = 0; i < request->hop_count; i++) {
        const struct cw_ip *ip = &request->hops[i];
        struct cw_hop *hop = &found[i];
        if (!nic->is_kernels && cw_ip_is_equal(ip, &nic->address.ip)) {
            memcpy(hop->mac, nic->mac, sizeof(hop->mac));
            hop->is_known = true;
        } else if (!nic->is_kernels) {
            hop->is_known = node_hop_want(serve->config->dataplanes[0], ip, hop->mac);
        }
        cw_lease_hop_write(hop->is_known ? hop->mac : NULL, line);
    }
    return say(client, line, -1);
}

/* The object as a line, which it becomes. */
static bool say_json(const struct client *client, json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    bool is_told = line != NULL && say(client, line, -1);
    free(line);
    json_decref(object);
    return is_told;
}

static bool status_line(const struct serve *serve, const struct client *asks, const struct client *client)
{
    const struct node_lease *lease = client->lease;
    struct node_counters counters;
    json_t *line = app_json_new();
    node_lease_counters(lease, &counters);
    app_json_text(line, "job", client->job);
    app_json_count(line, "rank", client->rank);
    app_json_count(line, "user", client->whose.uid);
    app_json_count(line, "process", (uint64_t)client->whose.pid);
    app_json_count(line, "port", lease->first);
    app_json_count(line, "ports", lease->ports);
    app_json_count(line, "thread", node_ports_core(&serve->ports, lease->first));
    app_json_count(line, "weight", lease->share->turn.weight);
    app_json_count(line, "out_frames", counters.out_frames);
    app_json_count(line, "out_bytes", counters.out_bytes);
    app_json_count(line, "in_frames", counters.in_frames);
    app_json_count(line, "in_bytes", counters.in_bytes);
    app_json_count(line, "refused", counters.refused);
    app_json_count(line, "dropped", counters.dropped);
    return say_json(asks, line);
}

static bool nic_line(const struct serve *serve, const struct client *asks)
{
    const struct node_nic *nic = serve->config->nic;
    char ip[CW_IP_TEXT_BYTES];
    uint32_t leases = 0;
    uint64_t foreign = 0;
    for (uint32_t i = 0; i < serve->client_count; i++) {
        leases += serve->clients[i]->lease != NULL;
    }
    for (uint32_t core = 0; core < serve->config->core_count; core++) {
        foreign += node_dataplane_foreign(serve->config->dataplanes[core]);
    }
    json_t *line = app_json_new();
    cw_ip_write(&nic->address.ip, ip);
    app_json_text(line, "nic", nic->name);
    app_json_text(line, "driver", nic->port->info.driver);
    app_json_text(line, "ip", ip);
    app_json_count(line, "mtu_bytes", nic->port->info.mtu_bytes);
    app_json_count(line, "leases", leases);
    app_json_count(line, "threads", serve->config->core_count);
    app_json_count(line, "foreign_frames", foreign);
    return say_json(asks, line);
}

/* The NIC; then the leases: of all to root and to the node's own user, of their own to others. */
static bool status(const struct serve *serve, const struct client *asks)
{
    bool goes_on = nic_line(serve, asks);
    for (uint32_t i = 0; i < serve->client_count && goes_on; i++) {
        const struct client *client = serve->clients[i];
        bool may = asks->whose.uid == 0 || asks->whose.uid == geteuid() || asks->whose.uid == client->whose.uid;
        goes_on = client->lease == NULL || !may || status_line(serve, asks, client);
    }
    return goes_on && say(asks, "\n", -1);
}

/* ---- clients ---- */

static void client_end(struct serve *serve, uint32_t at)
{
    struct client *client = serve->clients[at];
    bool had_lease = client->lease != NULL;
    lease_end(serve, client);
    close(client->socket);
    free(client);
    serve->clients[at] = serve->clients[--serve->client_count];
    if (had_lease) {
        node_ports_record(&serve->ports);
    }
}

/* A line of a client's. False: it has gone, or is to go. */
static bool client_hear(struct serve *serve, struct client *client)
{
    char line[CW_LEASE_LINE_BYTES], error[ERROR_BYTES];
    struct cw_lease_request request;
    int descriptor;
    long got = cw_lease_hear(client->socket, line, &descriptor);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    int read = got <= 0 ? CW_ERROR_CLOSED : cw_lease_read(line, &request, error, sizeof(error));
    bool goes_on = false;
    if (read != CW_OK) {
        goes_on = got > 0 && refuse(client, read, error);
    } else if (serve->config->only_named && client->whose.uid != 0 &&
               user_named(serve->config, client->whose.uid) == NULL) {
        goes_on = refuse(client, CW_ERROR_PERMISSION, "this user may not use it (--only-named)");
    } else {
        switch (request.ask) {
        case CW_LEASE_HELLO:
            goes_on = hello(serve, client);
            break;
        case CW_LEASE_LEASE:
            goes_on = lease(serve, client, &request, descriptor);
            break;
        case CW_LEASE_HOPS:
            goes_on = client->lease != NULL && hops(serve, client, &request);
            break;
        case CW_LEASE_STATUS:
            goes_on = status(serve, client);
            break;
        }
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return goes_on;
}

/* One user can take the places of no others. */
static bool may_come(const struct serve *serve, const struct client *client)
{
    uint32_t own = 0;
    for (uint32_t i = 0; i < serve->client_count; i++) {
        own += serve->clients[i]->whose.uid == client->whose.uid;
    }
    return serve->client_count < CLIENTS_MAX && own < serve->config->user_leases_max + CLIENTS_ASKING;
}

static void client_take(struct serve *serve)
{
    int socket = accept4(serve->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *client = socket < 0 ? NULL : calloc(1, sizeof(*client));
    socklen_t bytes = sizeof(client->whose);
    if (client == NULL || getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &client->whose, &bytes) != 0 ||
        !may_come(serve, client)) {
        free(client);
        if (socket >= 0) {
            close(socket);
        }
        return;
    }
    /* the state of all leases is said at once */
    const int room = STATUS_BYTES;
    if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0) {
        (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    }
    client->socket = socket;
    serve->clients[serve->client_count++] = client;
}

/* A client that writes nonsense into its own memory is served no more. */
static void broken_end(struct serve *serve, struct node_dataplane *dataplane)
{
    for (const struct node_lease *lease; (lease = node_lease_broken(dataplane)) != NULL;) {
        uint32_t at = 0;
        while (serve->clients[at]->lease != lease) {
            at++;
        }
        char where[64];
        snprintf(where, sizeof(where), "process %d of user %u", serve->clients[at]->whose.pid,
                 serve->clients[at]->whose.uid);
        app_error("the rings of a lease make no sense: it is over", where, NULL);
        client_end(serve, at);
    }
}

static void clients_serve(struct serve *serve, const struct app_signals *signals, const sigset_t *before)
{
    static struct pollfd set[1 + CLIENTS_MAX];
    const struct timespec tidy = {.tv_sec = TIDY_MS / 1000};
    uint64_t tidy_ns = cw_clock_ns();
    while (!signals->stop) {
        set[0] = (struct pollfd){.fd = serve->listener, .events = POLLIN};
        for (uint32_t i = 0; i < serve->client_count; i++) {
            set[1 + i] = (struct pollfd){.fd = serve->clients[i]->socket, .events = POLLIN};
        }
        uint32_t count = serve->client_count;
        if (ppoll(set, 1 + count, &tidy, before) < 0) {
            continue;
        }
        for (uint32_t i = count; i-- > 0;) { /* backwards: who goes is replaced by the last one */
            if (set[1 + i].revents != 0 && !client_hear(serve, serve->clients[i])) {
                client_end(serve, i);
            }
        }
        if (set[0].revents != 0) {
            client_take(serve);
        }
        if (cw_clock_ns() >= tidy_ns) {
            tidy_ns = cw_clock_ns() + TIDY_MS * 1000000ull;
            for (uint32_t core = 0; core < serve->config->core_count; core++) {
                broken_end(serve, serve->config->dataplanes[core]);
            }
        }
    }
}

/* ---- the socket ---- */

static int listener_open(struct serve *serve)
{
    const char *path = serve->config->path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char error[ERROR_BYTES];
    int other;
    strcpy(address.sun_path, path);
    if (cw_lease_connect(path, &other, error, sizeof(error)) == CW_OK) {
        close(other);
        app_error("another node serves this socket", path, "end it first, or choose another --socket");
        return APP_EXIT_MACHINE;
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        app_error("the socket that is left over cannot be removed", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    serve->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (serve->listener < 0 || bind(serve->listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, 0666) != 0 || listen(serve->listener, SOMAXCONN) != 0) {
        app_error("the node's socket cannot be opened", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

int node_serve(const struct node_serve_config *config, const struct app_signals *signals, const sigset_t *before)
{
    struct serve *serve = calloc(1, sizeof(*serve));
    if (serve == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory for clients", NULL);
    }
    serve->config = config;
    serve->listener = -1;
    int code = listener_open(serve);
    if (code == APP_EXIT_SUCCESS) {
        char ip[CW_IP_TEXT_BYTES];
        node_ports_begin(&serve->ports, config->nic, config->port_first, config->port_last, config->core_count,
                         config->path);
        cw_ip_write(&config->nic->address.ip, ip);
        char cores[32] = "";
        if (config->core_count > 1) {
            snprintf(cores, sizeof(cores), " on %u cores", config->core_count);
        }
        printf("ready: %s at %s by %s%s, UDP ports %u to %u, socket %s\n", config->nic->name, ip,
               config->nic->port->info.driver, cores, config->port_first, config->port_last, config->path);
        fflush(stdout);
        clients_serve(serve, signals, before);
        unlink(config->path);
    }
    while (serve->client_count > 0) { /* the record stays: they come back to another node */
        lease_end(serve, serve->clients[serve->client_count - 1]);
        close(serve->clients[serve->client_count - 1]->socket);
        free(serve->clients[--serve->client_count]);
    }
    if (serve->listener >= 0) {
        close(serve->listener);
    }
    for (uint32_t i = 0; i < serve->user_count; i++) {
        free(serve->users[i].shares);
    }
    free(serve);
    return code;
}
