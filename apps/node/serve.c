#include "apps/node/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/node/grant.h"
#include "apps/node/hops.h"
#include "control/lease/lease.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum {
    ACCEPTS = 64,            /* in a round */
    SEND_BYTES = 32 << 10,   /* of a client's answers in the kernel */
    STATUS_MAX = 4 << 20,    /* of one answer to `status` that waits for its client */
    TIDY_NS = 1000000000,    /* between two runs of clean-up */
    TIDY_WORK_NS = 10000000, /* after which a look leaves the rest for the next one, so that others are served */
    GUARD_NS = 10000000,     /* the longest that a descriptor which a client has sent keeps the thread */
    SERVICE_FACTOR = 2,      /* a user may have one part in SERVICE_FACTOR of the thread's time */
    SERVICE_BURST_NS = 100000000,
};
#define REST_NS 10000000000ull /* a client that takes nothing of its answer for so long has gone */

struct serve {
    const struct node_serve_config *config;
    int listener;
    struct node_client *clients[NODE_CLIENTS_MAX];
    uint32_t client_count;
    struct node_grants grants;
    struct node_hops *hops;
    timer_t guard;
};

/* ---- a bound for closing ---- */

static void guard_handle(int number)
{
    (void)number;
}

/* Signals that come to this thread, and end what it waits for, while it may close what a client has sent. */
static bool guard_open(struct serve *serve)
{
    const struct sigaction action = {.sa_handler = guard_handle}; /* without SA_RESTART */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGRTMIN);
    return sigaction(SIGRTMIN, &action, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &own, NULL) == 0 &&
           timer_create(CLOCK_MONOTONIC, &event, &serve->guard) == 0;
}

static void guard_set(struct serve *serve, bool is_on)
{
    const struct timespec period = {.tv_nsec = is_on ? GUARD_NS : 0};
    const struct itimerspec spec = {.it_value = period, .it_interval = period};
    (void)timer_settime(serve->guard, 0, &spec, NULL);
}

/* ---- answers ---- */

/* False: the client does not take them. */
static bool reply(const struct node_client *client, const char *line, int descriptor)
{
    return cw_lease_send(client->socket, line, descriptor) >= 0;
}

static bool reject(const struct node_client *client, int status, const char *why)
{
    char line[NODE_ERROR_BYTES + 64];
    snprintf(line, sizeof(line), "refused %d %s", status, why);
    return reply(client, line, -1);
}

static bool hello(const struct serve *serve, const struct node_client *client)
{
    const struct node_nic *nic = serve->config->nic;
    struct cw_lease_nic own = {.ip = nic->address.ip,
                               .bits = nic->address.bits,
                               .mtu_bytes = nic->port->info.mtu_bytes,
                               .rate_bps = (uint64_t)nic->address.speed_mbps * 1000000,
                               .reports = nic->is_kernels,
                               .medium = nic->port->info.medium};
    char line[CW_LEASE_LINE_BYTES];
    memcpy(own.mac, nic->mac, sizeof(own.mac));
    cw_lease_nic_write(&own, line);
    return reply(client, line, -1);
}

static bool lease(struct serve *serve, struct node_client *client, const struct cw_lease_request *request)
{
    char error[NODE_ERROR_BYTES], line[CW_LEASE_LINE_BYTES];
    int status = node_lease_begin(&serve->grants, client, request, error, sizeof(error));
    if (status != CW_OK) {
        return reject(client, status, error);
    }
    snprintf(line, sizeof(line), "leased first=%u", client->lease->first);
    return reply(client, line, client->lease->bell);
}

static bool hops(const struct serve *serve, const struct node_client *client, const struct cw_lease_request *request)
{
    char line[CW_LEASE_LINE_BYTES] = "hops ";
    uint64_t now_ns = cw_clock_ns();
    for (uint32_t i = 0; i < request->hop_count; i++) {
        uint8_t mac[6];
        bool is_known = node_hops_want(serve->hops, client->whose.uid, &request->hops[i], now_ns, mac);
        cw_lease_hop_write(is_known ? mac : NULL, line);
    }
    return reply(client, line, -1);
}

/* ---- status: lines that leave as the client takes them ---- */

static void lease_line(const struct serve *serve, const struct node_client *client, FILE *out)
{
    const struct node_lease *lease = client->lease;
    const struct node_counters *counters = &lease->shown;
    json_t *line = app_json_new();
    app_json_text(line, "job", client->job);
    app_json_count(line, "rank", client->rank);
    app_json_count(line, "user", client->whose.uid);
    app_json_count(line, "process", (uint64_t)client->whose.pid);
    app_json_count(line, "port", lease->first);
    app_json_count(line, "ports", lease->ports);
    app_json_count(line, "thread", node_ports_core(&serve->grants.ports, lease->first));
    app_json_count(line, "weight", lease->share->turn.weight);
    app_json_count(line, "out_frames", counters->out_frames);
    app_json_count(line, "out_bytes", counters->out_bytes);
    app_json_count(line, "in_frames", counters->in_frames);
    app_json_count(line, "in_bytes", counters->in_bytes);
    app_json_count(line, "refused", counters->refused);
    app_json_count(line, "dropped", counters->dropped);
    (void)json_dumpf(line, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(line);
}

static void nic_line(const struct serve *serve, FILE *out)
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
    (void)json_dumpf(line, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(line);
}

static void rest_free(struct node_client *client)
{
    free(client->rest);
    client->rest = NULL;
}

/* As many lines as the socket has room for. False: the client has gone, or takes none. */
static bool rest_send(struct node_client *client, uint64_t now_ns)
{
    while (client->rest != NULL) {
        char *line = client->rest + client->rest_at, *end = strchr(line, '\n');
        *end = 0;
        bool is_last = line[0] == 0;
        if (!reply(client, is_last ? "\n" : line, -1)) {
            *end = '\n';
            return (errno == EAGAIN || errno == EINTR) && now_ns < client->rest_ns + REST_NS;
        }
        client->rest_ns = now_ns;
        client->rest_at += (size_t)(end - line) + 1;
        if (is_last) {
            rest_free(client);
        }
    }
    return true;
}

/* The NIC; then the leases: of all to root and to the node's own user, of their own to others; then an empty line. */
static bool status(const struct serve *serve, struct node_client *asks)
{
    FILE *out = open_memstream(&asks->rest, &asks->rest_bytes);
    if (out == NULL) {
        return reject(asks, CW_ERROR_MEMORY, "no memory for an answer");
    }
    for (uint32_t core = 0; core < serve->config->core_count; core++) {
        node_leases_count(serve->config->dataplanes[core]);
    }
    nic_line(serve, out);
    for (uint32_t i = 0; i < serve->client_count && ftell(out) < STATUS_MAX; i++) {
        const struct node_client *client = serve->clients[i];
        bool may = asks->whose.uid == 0 || asks->whose.uid == geteuid() || asks->whose.uid == client->whose.uid;
        if (client->lease != NULL && may) {
            lease_line(serve, client, out);
        }
    }
    fputc('\n', out);
    bool is_whole = ferror(out) == 0;
    if (fclose(out) != 0 || !is_whole) {
        rest_free(asks);
        return reject(asks, CW_ERROR_MEMORY, "no memory for an answer");
    }
    asks->rest_at = 0;
    asks->rest_ns = cw_clock_ns();
    return rest_send(asks, asks->rest_ns);
}

/* ---- clients ---- */

/* Drops input of the client that was not read. */
static void socket_close(struct serve *serve, int socket)
{
    guard_set(serve, true);
    close(socket);
    guard_set(serve, false);
}

static void client_free(struct serve *serve, struct node_client *client)
{
    node_lease_end(&serve->grants, client);
    socket_close(serve, client->socket);
    node_owner_leave(client);
    rest_free(client);
    free(client);
}

static void client_end(struct serve *serve, uint32_t at)
{
    bool had_lease = serve->clients[at]->lease != NULL;
    client_free(serve, serve->clients[at]);
    serve->clients[at] = serve->clients[--serve->client_count];
    if (had_lease) {
        node_ports_record(&serve->grants.ports);
    }
}

/* The next line. Its length; 0: there is none; -1: the client has gone, or has sent what is no line. */
static long line_receive(struct serve *serve, const struct node_client *client, char line[CW_LEASE_LINE_BYTES])
{
    struct iovec piece = {.iov_base = line, .iov_len = CW_LEASE_LINE_BYTES - 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1}; /* without room for descriptors: they are dropped */
    guard_set(serve, true);
    ssize_t got = recvmsg(client->socket, &message, MSG_DONTWAIT);
    int failed = errno;
    guard_set(serve, false);
    if (got < 0 && (failed == EAGAIN || failed == EINTR)) {
        return 0;
    }
    if (got <= 0 || (message.msg_flags & MSG_CTRUNC) != 0) {
        return -1;
    }
    line[got] = 0;
    return got;
}

/* A line of a client's. False: it has gone, or is to go. */
static bool client_receive(struct serve *serve, struct node_client *client)
{
    char line[CW_LEASE_LINE_BYTES], error[NODE_ERROR_BYTES];
    struct cw_lease_request request;
    long got = line_receive(serve, client, line);
    if (got <= 0) {
        return got == 0;
    }
    int read = cw_lease_read(line, &request, error, sizeof(error));
    if (read != CW_OK) {
        return reject(client, read, error);
    }
    if (serve->config->only_named && client->whose.uid != 0 &&
        node_user_named(serve->config, client->whose.uid) == NULL) {
        return reject(client, CW_ERROR_PERMISSION, "this user may not use it (--only-named)");
    }
    switch (request.kind) {
    case CW_LEASE_HELLO:
        return hello(serve, client);
    case CW_LEASE_LEASE:
        return lease(serve, client, &request);
    case CW_LEASE_HOPS:
        return client->lease != NULL && hops(serve, client, &request);
    case CW_LEASE_STATUS:
        return status(serve, client);
    }
    return false;
}

/* Some connections are for users that have a place of their own. */
static bool has_room(const struct serve *serve, uid_t user)
{
    bool has_place = node_user_has_place(serve->config, user);
    return serve->client_count < (has_place ? NODE_CLIENTS_MAX : NODE_CLIENTS_MAX - NODE_CLIENTS_OWN);
}

/* False: no client waits any more. */
static bool client_accept(struct serve *serve)
{
    int socket = accept4(serve->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        return false;
    }
    struct node_client *client = calloc(1, sizeof(*client));
    socklen_t bytes = sizeof(client->whose);
    const int room = SEND_BYTES;
    if (client == NULL || getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &client->whose, &bytes) != 0 ||
        !has_room(serve, client->whose.uid) || !node_owner_enter(&serve->grants, client)) {
        free(client);
        socket_close(serve, socket);
        return true;
    }
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    client->socket = socket;
    serve->clients[serve->client_count++] = client;
    return true;
}

/* Ends a client, at the expense of its user. Returns the time. */
static uint64_t client_end_charged(struct serve *serve, uint32_t at, uint64_t begin_ns)
{
    struct node_owner *owner = serve->clients[at]->owner;
    client_end(serve, at);
    uint64_t now_ns = cw_clock_ns();
    node_budget_charge(&owner->service, now_ns, SERVICE_FACTOR * (now_ns - begin_ns));
    return now_ns;
}

/* Ends clients whose rings are invalid, until `until_ns`. Returns the time. */
static uint64_t broken_end(struct serve *serve, struct node_dataplane *dataplane, uint64_t now_ns, uint64_t until_ns)
{
    const struct node_lease *lease;
    while (now_ns < until_ns && (lease = node_lease_broken(dataplane)) != NULL) {
        uint32_t at = 0;
        while (serve->clients[at]->lease != lease) {
            at++;
        }
        char where[64];
        snprintf(where, sizeof(where), "process %d of user %u", serve->clients[at]->whose.pid,
                 serve->clients[at]->whose.uid);
        node_line(&serve->clients[at]->owner->lines, now_ns, "lease closed: invalid ring positions in client memory",
                  where);
        now_ns = client_end_charged(serve, at, now_ns);
    }
    return now_ns;
}

/* ---- rounds ---- */

/* Of each user that has something to say and may say it one line, its connections in turn. */
static void round_serve(struct serve *serve, const struct pollfd *set, uint32_t count)
{
    struct node_grants *grants = &serve->grants;
    uint32_t next[NODE_SHARES_MAX]; /* by user: the connection that comes next */
    bool are_done[NODE_SHARES_MAX] = {false};
    for (uint32_t i = 0; i < grants->owner_count; i++) {
        next[i] = UINT32_MAX;
    }
    for (uint32_t pass = 0; pass < 2; pass++) { /* from where the last round ended, then from the first one on */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t owner = (uint32_t)(serve->clients[i]->owner - grants->owners);
            bool is_after = pass == 1 || i >= grants->owners[owner].turn;
            if (set[i].revents != 0 && is_after && !are_done[owner]) {
                are_done[owner] = true;
                next[owner] = i;
            }
        }
    }
    for (uint32_t i = count; i-- > 0;) { /* backwards: a closed one is replaced by the last one */
        struct node_client *client = serve->clients[i];
        struct node_owner *owner = client->owner;
        if (next[owner - grants->owners] != i) {
            continue;
        }
        uint64_t start_ns = cw_clock_ns();
        bool goes_on = client->rest != NULL ? rest_send(client, start_ns) && (set[i].revents & (POLLERR | POLLHUP)) == 0
                                            : client_receive(serve, client);
        owner->turn = i + 1;
        if (!goes_on) {
            client_end(serve, i);
        }
        uint64_t now_ns = cw_clock_ns();
        node_budget_charge(&owner->service, now_ns, SERVICE_FACTOR * (now_ns - start_ns));
    }
}

/* Fills the set of awaited events: a client's line, or room for the rest of its answer; nothing, if its user has had
 * its part. Returns the deadline. */
static uint64_t set_fill(const struct serve *serve, struct pollfd *set, uint64_t now_ns, uint64_t until_ns)
{
    for (uint32_t i = 0; i < serve->client_count; i++) {
        const struct node_client *client = serve->clients[i];
        const struct node_budget *service = &client->owner->service;
        bool may = client->whose.uid == 0 || node_budget_may(service, now_ns, SERVICE_BURST_NS);
        set[i] = (struct pollfd){.fd = may ? client->socket : -1, .events = client->rest != NULL ? POLLOUT : POLLIN};
        if (!may && service->paid_ns - SERVICE_BURST_NS < until_ns) {
            until_ns = service->paid_ns - SERVICE_BURST_NS;
        }
    }
    return until_ns;
}

/* Closes clients that do not read their answers, leases with invalid memory, and next hops without users. False: there
 * is more to do, after a round for waiting clients. */
static bool tidy(struct serve *serve, uint64_t now_ns)
{
    const uint64_t until_ns = now_ns + TIDY_WORK_NS;
    for (uint32_t i = serve->client_count; i-- > 0 && now_ns < until_ns;) {
        if (serve->clients[i]->rest != NULL && now_ns > serve->clients[i]->rest_ns + REST_NS) {
            now_ns = client_end_charged(serve, i, now_ns);
        }
    }
    for (uint32_t core = 0; core < serve->config->core_count; core++) {
        now_ns = broken_end(serve, serve->config->dataplanes[core], now_ns, until_ns);
    }
    node_hops_turn(serve->hops, now_ns);
    return now_ns < until_ns;
}

static void clients_serve(struct serve *serve, const struct app_signals *signals, const sigset_t *before)
{
    static struct pollfd set[NODE_CLIENTS_MAX + 1];
    uint64_t tidy_ns = cw_clock_ns();
    while (!signals->stop) {
        uint64_t now_ns = cw_clock_ns();
        uint32_t count = serve->client_count;
        uint64_t until_ns = set_fill(serve, set, now_ns, tidy_ns);
        uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        const struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                                      .tv_nsec = (long)(wait_ns % 1000000000)};
        set[count] = (struct pollfd){.fd = serve->listener, .events = POLLIN};
        if (ppoll(set, count + 1, &wait, before) > 0) {
            bool has_new = set[count].revents != 0;
            round_serve(serve, set, count);
            for (uint32_t i = 0; has_new && i < ACCEPTS; i++) {
                has_new = client_accept(serve);
            }
        }
        now_ns = cw_clock_ns();
        if (now_ns >= tidy_ns) {
            tidy_ns = tidy(serve, now_ns) ? now_ns + TIDY_NS : now_ns;
        }
    }
}

/* ---- the socket ---- */

static int listener_open(struct serve *serve)
{
    const char *path = serve->config->path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char error[NODE_ERROR_BYTES];
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
    mode_t mask = umask(0111); /* all may connect; not by chmod, which would follow a link that is there by then */
    bool is_open = serve->listener >= 0 &&
                   bind(serve->listener, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                   listen(serve->listener, SOMAXCONN) == 0;
    umask(mask);
    if (!is_open) {
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
    serve->grants.config = config;
    serve->listener = -1;
    serve->hops = node_hops_create(config->nic, config->dataplanes[0]);
    if (serve->hops == NULL || !guard_open(serve)) {
        node_hops_destroy(serve->hops);
        free(serve);
        return app_error_status(CW_ERROR_MEMORY, "no memory for clients", NULL);
    }
    int code = listener_open(serve);
    if (code == APP_EXIT_SUCCESS) {
        char ip[CW_IP_TEXT_BYTES];
        node_ports_begin(&serve->grants.ports, config->nic, config->port_first, config->port_last, config->core_count,
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
        client_free(serve, serve->clients[--serve->client_count]);
    }
    timer_delete(serve->guard);
    node_hops_destroy(serve->hops);
    if (serve->listener >= 0) {
        close(serve->listener);
    }
    for (uint32_t i = 0; i < serve->grants.owner_count; i++) {
        free(serve->grants.owners[i].shares);
    }
    free(serve);
    return code;
}
