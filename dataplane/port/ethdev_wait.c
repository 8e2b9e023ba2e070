/* Sleep and wake of the ethdev port.
 *
 * No wake-up is lost: the sleeper first announces its sleep (flag, doorbell word or the device's interrupt), then
 * checks again for a wake-up and for packets, and only then blocks. Packets found in this check go to the stash, which
 * the next receive returns. */
#include "dataplane/port/ethdev_private.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Registers the driver's receive interrupt in an epoll set of DPDK's, which knows how to quiet the driver's
 * descriptor. False: the driver has no interrupt that works. */
static bool interrupt_open(struct ethdev_port *port)
{
    port->epoll_descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (port->epoll_descriptor < 0) {
        return false;
    }
    int result = rte_eth_dev_rx_intr_ctl_q(port->id, port->queue, port->epoll_descriptor, RTE_INTR_EVENT_ADD, NULL);
    if (result == 0) {
        /* tap cannot switch its interrupt: it is always on. */
        int enabled = rte_eth_dev_rx_intr_enable(port->id, port->queue);
        port->interrupt_switched = enabled == 0;
        result = enabled == 0 || enabled == -ENOTSUP ? 0 : enabled;
    }
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_disable(port->id, port->queue);
    }
    if (result != 0) {
        close(port->epoll_descriptor);
        port->epoll_descriptor = -1;
    }
    return result == 0;
}

/* The driver's socket on the port's interface: it has no call that returns it. -1: not found. */
static int packet_socket_find(const struct ethdev_port *port)
{
    struct rte_eth_dev_info info;
    DIR *folder = rte_eth_dev_info_get(port->id, &info) == 0 ? opendir("/proc/self/fd") : NULL;
    int found = -1;
    for (struct dirent *entry; folder != NULL && found < 0 && (entry = readdir(folder)) != NULL;) {
        struct sockaddr_ll address = {.sll_family = AF_UNSPEC};
        socklen_t bytes = sizeof(address);
        int descriptor = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && getsockname(descriptor, (struct sockaddr *)&address, &bytes) == 0 &&
            address.sll_family == AF_PACKET && (uint32_t)address.sll_ifindex == info.if_index) {
            found = descriptor;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

int ethdev_wait_open(struct ethdev_port *port, char *error, size_t error_bytes)
{
    port->nap_ns = ETHDEV_NAP_MIN_NS;
    port->port.info.alarms = true;
    if (port->bell != NULL) {
        port->port.info.wait = CW_PORT_WAIT_DOORBELL;
        return CW_OK;
    }
    int status = cw_wake_open(&port->wake);
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status, "port %s: eventfd: %s%s", port->device, strerror(errno),
                             cw_errno_remedy(errno));
    }
    if (port->driver.packet_socket) {
        port->packet_descriptor = packet_socket_find(port);
        ethdev_ring_open(port);
    }
    bool waits = port->packet_descriptor >= 0 || (!port->driver.interrupts_fail && interrupt_open(port));
    port->port.info.wait = waits ? CW_PORT_WAIT_DESCRIPTOR : CW_PORT_WAIT_TIMED;
    return CW_OK;
}

/* Before the device is stopped: drivers free their end of the epoll set then. */
void ethdev_wait_close(struct ethdev_port *port)
{
    if (port->epoll_descriptor >= 0) {
        rte_eth_dev_rx_intr_ctl_q(port->id, port->queue, port->epoll_descriptor, RTE_INTR_EVENT_DEL, NULL);
        close(port->epoll_descriptor);
        port->epoll_descriptor = -1;
    }
    cw_wake_close(&port->wake);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int ethdev_descriptor(struct cw_port *base)
{
    const struct ethdev_port *port = ethdev_of(base);
    return port->epoll_descriptor >= 0 ? port->epoll_descriptor : port->packet_descriptor;
}

bool ethdev_arm(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_enable(port->id, port->queue);
    }
    if (port->packet_descriptor >= 0) {
        int reason; /* an interface that was down leaves an error, which epoll would report forever */
        socklen_t bytes = sizeof(reason);
        (void)getsockopt(port->packet_descriptor, SOL_SOCKET, SO_ERROR, &reason, &bytes);
    }
    return ethdev_peek(port) != ETHDEV_PEEK_NOTHING;
}

void ethdev_disarm(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    struct rte_epoll_event events[2];
    if (port->epoll_descriptor >= 0) {
        (void)rte_epoll_wait(port->epoll_descriptor, events, 2, 0); /* quiets the driver's descriptor */
    }
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_disable(port->id, port->queue);
    }
}

static void sleep_interrupt(struct ethdev_port *port, uint64_t timeout_ns)
{
    if (!ethdev_arm(&port->port)) {
        (void)cw_wake_wait(&port->wake, port->epoll_descriptor, port->port.alarm, timeout_ns);
    }
    ethdev_disarm(&port->port);
}

/* The socket is readable while the newest frame of its ring has not been taken. False: it cannot be waited on now, as
 * its interface is down. */
static bool sleep_socket(struct ethdev_port *port, uint64_t timeout_ns)
{
    return (cw_wake_wait(&port->wake, port->packet_descriptor, port->port.alarm, timeout_ns) & POLLERR) == 0;
}

static void sleep_timed(struct ethdev_port *port, uint64_t timeout_ns)
{
    uint64_t now_ns = clock_ns();
    uint64_t end_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
    while (ethdev_peek(port) != ETHDEV_PEEK_PACKETS && now_ns < end_ns) {
        (void)cw_wake_wait(&port->wake, -1, port->port.alarm, RTE_MIN(port->nap_ns, end_ns - now_ns));
        port->nap_ns = RTE_MIN(2 * port->nap_ns, (uint64_t)ETHDEV_NAP_MAX_NS);
        if (!cw_wake_continues(&port->wake, port->port.alarm)) {
            return;
        }
        now_ns = clock_ns();
    }
}

static void sleep_doorbell(struct ethdev_port *port, uint64_t timeout_ns)
{
    cw_doorbell_arm(port->bell);
    /* Pairs with cw_doorbell_ring in ethdev_wake, as the packets in ethdev_peek do with the one in the sender's
     * transmit. */
    if (cw_wake_continues(&port->wake, NULL)) {
        enum ethdev_peek found = ethdev_peek(port);
        if (found != ETHDEV_PEEK_PACKETS) {
            /* Packets that could not be looked for may have been announced already: the gate closes in a moment. */
            bool barred = found == ETHDEV_PEEK_BARRED;
            const struct cw_port_alarm *alarm = port->port.alarm;
            static const struct cw_word none;
            cw_doorbell_wait_either(port->bell, alarm == NULL ? &none : &alarm->word,
                                    barred ? RTE_MIN(timeout_ns, (uint64_t)ETHDEV_NAP_MIN_NS) : timeout_ns);
        }
    }
    cw_doorbell_disarm(port->bell);
}

void ethdev_sleep(struct cw_port *base, uint64_t timeout_ns)
{
    struct ethdev_port *port = ethdev_of(base);
    if (port->stash_count != 0 || cw_wake_consume(&port->wake)) {
        return;
    }
    if (port->bell != NULL) {
        sleep_doorbell(port, timeout_ns);
        cw_wake_consume(&port->wake);
        return;
    }
    if (cw_wake_begin(&port->wake)) {
        if (port->epoll_descriptor >= 0) {
            sleep_interrupt(port, timeout_ns);
        } else if (port->packet_descriptor < 0 || !sleep_socket(port, timeout_ns)) {
            sleep_timed(port, timeout_ns);
        }
    }
    cw_wake_end(&port->wake);
}

int ethdev_bell_open(struct ethdev_port *port, const struct cw_port_ethdev_config *config, char *error,
                     size_t error_bytes)
{
    uint32_t own = config->doorbell_own + 2u * port->queue;
    port->bell_peer = config->doorbell_peer + 2u * port->queue;
    if (config->doorbell_path == NULL) {
        return CW_OK;
    }
    if (port->bell_peer >= CW_DOORBELL_WORDS) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "doorbell %s: peer index %u, allowed are 0 to %d",
                             config->doorbell_path, port->bell_peer, CW_DOORBELL_WORDS - 1);
    }
    return cw_doorbell_open(config->doorbell_path, own, &port->bell, error, error_bytes);
}
