#include "control/lease/lease.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/thread.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/shm_port.h"
#include "dataplane/status.h"

enum {
    ANSWER_S = 10,      /* a node that is there answers within milliseconds, on a busy machine */
    RETRY_FIRST_MS = 5, /* until a node that has gone is looked for again, and twice as long each time */
    RETRY_MOST_MS = 100,
    GRACE_MS = 1500, /* time for a node to restart before it counts as absent */
};

struct cw_lease {
    struct cw_lease_request request;
    struct cw_port *port;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    pthread_mutex_t lock; /* of the socket */
    int socket;           /* -1: the node is away */
    int stop;             /* an eventfd: the watcher is to end */
    pthread_t watcher;
    bool is_watched;
};

/* ---- lines ---- */

long cw_lease_send(int socket, const char *line, int descriptor)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.room);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

long cw_lease_receive(int socket, char line[CW_LEASE_LINE_BYTES], int *descriptor)
{
    struct iovec piece = {.iov_base = line, .iov_len = CW_LEASE_LINE_BYTES - 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {/* exactly: alignment has room for a second one, which would never be closed */
                             .msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    *descriptor = -1;
    if (got >= 0) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        line[got] = 0;
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int))) {
            memcpy(descriptor, CMSG_DATA(header), sizeof(int));
        }
    }
    return got;
}

int cw_lease_connect(const char *path, int *socket_out, char *error, size_t error_bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = ANSWER_S};
    path = path != NULL && path[0] != 0 ? path : CW_LEASE_SOCKET;
    if (strlen(path) >= sizeof(address.sun_path)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "the path of the node's socket is too long: %s",
                             path);
    }
    strcpy(address.sun_path, path);
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (made >= 0) { /* before it connects: connect waits too when a node does not accept connections */
        (void)setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        (void)setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        if (connect(made, (const struct sockaddr *)&address, sizeof(address)) == 0) {
            *socket_out = made;
            return CW_OK;
        }
    }
    int failed = errno;
    if (made >= 0) {
        close(made);
    }
    if (failed == ENOENT || failed == ECONNREFUSED) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_NOT_FOUND,
            "no node runs at %s: start one as root (causeway node --transport eth0), or use --transport udp", path);
    }
    if (failed == EAGAIN) {
        return cw_error_text(error, error_bytes, CW_ERROR_TIMEOUT, "the node at %s does not answer: is it stopped?",
                             path);
    }
    return cw_error_text(error, error_bytes, cw_status_of_errno(failed), "the node at %s: %s%s", path, strerror(failed),
                         cw_errno_remedy(failed));
}

/* An error of the node, in its own words; any other text is invalid. */
static int answer_reject(const char *line, char *error, size_t error_bytes)
{
    int status = 0, length = 0;
    if (sscanf(line, "refused %d %n", &status, &length) == 1 && length > 0 && status < 0) {
        return cw_error_text(error, error_bytes, status, "the node refuses: %.200s", line + length);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the node says '%.60s'", line);
}

/* A line there, a line back. */
static int query(int socket, const struct cw_lease_request *request, char line[CW_LEASE_LINE_BYTES], int *descriptor,
                 char *error, size_t error_bytes)
{
    cw_lease_request_write(request, line);
    long got = cw_lease_send(socket, line, -1) < 0 ? -1 : cw_lease_receive(socket, line, descriptor);
    if (got > 0) {
        return CW_OK;
    }
    bool is_late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return cw_error_text(error, error_bytes, is_late ? CW_ERROR_TIMEOUT : CW_ERROR_CLOSED, "the node %s",
                         is_late ? "does not answer: is it stopped?" : "has gone away, and does not come back");
}

/* Whether to retry a moment later: the node is away, or ended during the request. */
static bool is_worth_a_wait(int status, int *waited_ms)
{
    const struct timespec pause = {.tv_nsec = RETRY_MOST_MS / 4 * 1000000};
    if ((status != CW_ERROR_NOT_FOUND && status != CW_ERROR_CLOSED) || *waited_ms >= GRACE_MS) {
        return false;
    }
    *waited_ms += RETRY_MOST_MS / 4;
    nanosleep(&pause, NULL);
    return true;
}

static int hello(const char *path, struct cw_lease_nic *nic, char *error, size_t error_bytes)
{
    const struct cw_lease_request request = {.kind = CW_LEASE_HELLO};
    char line[CW_LEASE_LINE_BYTES];
    int socket, descriptor = -1;
    int status = cw_lease_connect(path, &socket, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    status = query(socket, &request, line, &descriptor, error, error_bytes);
    if (status == CW_OK && !cw_lease_nic_read(line, nic)) {
        status = answer_reject(line, error, error_bytes);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    close(socket);
    return status;
}

int cw_lease_hello(const char *path, struct cw_lease_nic *nic, char *error, size_t error_bytes)
{
    int status, waited_ms = 0;
    do {
        status = hello(path, nic, error, error_bytes);
    } while (is_worth_a_wait(status, &waited_ms));
    return status;
}

/* ---- a lease ---- */

/* Connects, and has the node serve the port's memory. */
static int lease_acquire(struct cw_lease *lease, char *error, size_t error_bytes)
{
    char line[CW_LEASE_LINE_BYTES];
    int bell = -1, socket;
    unsigned int first = 0;
    int status = cw_lease_connect(lease->path, &socket, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    lease->request.memory = (uint32_t)cw_shm_port_memory(lease->port);
    status = query(socket, &lease->request, line, &bell, error, error_bytes);
    if (status == CW_OK && (sscanf(line, "leased first=%u", &first) != 1 || bell < 0 || first == 0)) {
        status = answer_reject(line, error, error_bytes);
    }
    if (status != CW_OK) {
        close(socket);
        if (bell >= 0) {
            close(bell);
        }
        return status;
    }
    lease->request.first = (uint16_t)first;
    cw_shm_port_connect(lease->port, bell);
    pthread_mutex_lock(&lease->lock);
    lease->socket = socket;
    pthread_mutex_unlock(&lease->lock);
    return CW_OK;
}

static void lease_lose(struct cw_lease *lease)
{
    cw_shm_port_disconnect(lease->port);
    pthread_mutex_lock(&lease->lock);
    if (lease->socket >= 0) {
        close(lease->socket);
    }
    lease->socket = -1;
    pthread_mutex_unlock(&lease->lock);
}

/* Sleeps until the node ends, and then searches for another one, until it is stopped. */
static void *lease_watch(void *context)
{
    struct cw_lease *lease = context;
    int wait_ms = RETRY_FIRST_MS;
    for (;;) {
        char error[256];
        struct pollfd set[2] = {{.fd = lease->stop, .events = POLLIN}, {.fd = lease->socket, .events = 0}};
        bool is_away = lease->socket < 0;
        (void)poll(set, 2, is_away ? wait_ms : -1);
        if (set[0].revents != 0) {
            return NULL;
        }
        if (!is_away && (set[1].revents & (POLLHUP | POLLERR)) != 0) {
            lease_lose(lease);
            wait_ms = RETRY_FIRST_MS;
        } else if (is_away) {
            bool is_back = lease_acquire(lease, error, sizeof(error)) == CW_OK;
            wait_ms = is_back ? RETRY_FIRST_MS : 2 * wait_ms > RETRY_MOST_MS ? RETRY_MOST_MS : 2 * wait_ms;
        }
    }
}

int cw_lease_open(const struct cw_lease_config *config, struct cw_lease **lease, struct cw_port **port, char *error,
                  size_t error_bytes)
{
    struct cw_lease_nic nic;
    struct cw_shm_port_config shm_port = {.frames = 0};
    int status = cw_lease_hello(config->socket, &nic, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_lease *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for a lease");
    }
    made->request = (struct cw_lease_request){.kind = CW_LEASE_LEASE, .ports = config->ports, .rank = config->rank};
    snprintf(made->request.job, sizeof(made->request.job), "%s", config->job);
    snprintf(made->path, sizeof(made->path), "%s", config->socket != NULL ? config->socket : "");
    made->socket = -1;
    made->stop = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&made->lock, NULL);
    memcpy(shm_port.mac, nic.mac, sizeof(shm_port.mac));
    shm_port.mtu_bytes = nic.mtu_bytes;
    shm_port.rate_bps = nic.rate_bps;
    shm_port.reports = nic.reports;
    shm_port.medium = nic.medium;
    status = made->stop < 0 ? cw_error_text(error, error_bytes, cw_status_of_errno(errno), "eventfd: %s%s",
                                            strerror(errno), cw_errno_remedy(errno))
                            : cw_shm_port_create(&shm_port, &made->port, error, error_bytes);
    if (status == CW_OK) {
        int waited_ms = 0;
        do {
            status = lease_acquire(made, error, error_bytes);
        } while (is_worth_a_wait(status, &waited_ms));
    }
    if (status == CW_OK) {
        int failed = cw_thread_start(&made->watcher, -1, false, lease_watch, made);
        made->is_watched = failed == 0;
        status = failed == 0 ? CW_OK
                             : cw_error_text(error, error_bytes, CW_ERROR_LIMIT, "a thread for the lease: %s%s",
                                             strerror(failed), cw_errno_remedy(failed));
    }
    if (status != CW_OK) {
        struct cw_port *unused = made->port;
        cw_lease_close(made);
        if (unused != NULL) {
            cw_port_close(unused);
        }
        return status;
    }
    *lease = made;
    *port = made->port;
    return CW_OK;
}

void cw_lease_close(struct cw_lease *lease)
{
    if (lease == NULL) {
        return;
    }
    if (lease->is_watched) {
        uint64_t one = 1;
        ssize_t written = write(lease->stop, &one, sizeof(one));
        (void)written; /* cannot fail: it is the first */
        pthread_join(lease->watcher, NULL);
    }
    if (lease->socket >= 0) {
        close(lease->socket);
    }
    if (lease->stop >= 0) {
        close(lease->stop);
    }
    pthread_mutex_destroy(&lease->lock);
    free(lease);
}

uint16_t cw_lease_first(const struct cw_lease *lease)
{
    return lease->request.first;
}

/* With the lock. */
static int hops_request(struct cw_lease *lease, const struct cw_ip *ips, uint32_t count, uint8_t (*macs)[6],
                        bool *is_known, char *error, size_t error_bytes)
{
    struct cw_lease_request request = {.kind = CW_LEASE_HOPS, .hop_count = count};
    char line[CW_LEASE_LINE_BYTES];
    int descriptor = -1;
    memcpy(request.hops, ips, count * sizeof(*ips));
    int status = lease->socket < 0 ? cw_error_text(error, error_bytes, CW_ERROR_CLOSED, "the node has gone away")
                                   : query(lease->socket, &request, line, &descriptor, error, error_bytes);
    if (descriptor >= 0) {
        close(descriptor);
    }
    const char *at = line + 5;
    if (status == CW_OK && strncmp(line, "hops ", 5) != 0) {
        status = answer_reject(line, error, error_bytes);
    }
    for (uint32_t i = 0; i < count && status == CW_OK; i++) {
        if (!cw_lease_hop_read(&at, macs[i], &is_known[i])) {
            status = answer_reject(line, error, error_bytes);
        }
    }
    return status;
}

int cw_lease_hops(struct cw_lease *lease, const struct cw_ip *ips, uint32_t count, uint8_t (*macs)[6], bool *is_known,
                  char *error, size_t error_bytes)
{
    int status = CW_OK;
    pthread_mutex_lock(&lease->lock);
    for (uint32_t done = 0; done < count && status == CW_OK; done += CW_LEASE_HOPS_MAX) {
        uint32_t some = count - done < CW_LEASE_HOPS_MAX ? count - done : (uint32_t)CW_LEASE_HOPS_MAX;
        status = hops_request(lease, ips + done, some, macs + done, is_known + done, error, error_bytes);
    }
    pthread_mutex_unlock(&lease->lock);
    return status;
}
