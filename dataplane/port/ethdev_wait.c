/* Sleep and wake of the ethdev port.
 *
 * No wake-up is lost: the sleeper first says that it sleeps (flag, doorbell word or the device's interrupt), then looks
 * once more whether it was woken and whether packets have come, and only then blocks. What the look finds goes to the
 * stash, which the next receive returns. */
#include "dataplane/port/ethdev_private.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Registers the driver's receive interrupt and the wake-up in one epoll set of DPDK's, which knows how to quiet the
 * driver's descriptor. False: the driver has no interrupt that works. */
static bool interrupt_open(struct ethdev_port *port)
{
    port->epoll_descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (port->epoll_descriptor < 0) {
        return false;
    }
    port->wake_event = (struct rte_epoll_event){.epdata.event = EPOLLIN};
    int result = rte_eth_dev_rx_intr_ctl_q(port->id, 0, port->epoll_descriptor, RTE_INTR_EVENT_ADD, NULL);
    if (result == 0) {
        result = rte_epoll_ctl(port->epoll_descriptor, EPOLL_CTL_ADD, port->wake_descriptor, &port->wake_event);
    }
    if (result == 0) {
        /* tap cannot switch its interrupt: it is always on. */
        int enabled = rte_eth_dev_rx_intr_enable(port->id, 0);
        port->interrupt_switched = enabled == 0;
        result = enabled == 0 || enabled == -ENOTSUP ? 0 : enabled;
    }
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_disable(port->id, 0);
    }
    if (result != 0) {
        close(port->epoll_descriptor);
        port->epoll_descriptor = -1;
        port->wake_event.status = RTE_EPOLL_INVALID;
    }
    return result == 0;
}

/* The driver's socket on the port's interface: it has no call that tells. -1: not found. */
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
    port->wake_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (port->wake_descriptor < 0) {
        return cw_error_text(error, error_bytes, cw_status_of_errno(errno), "port %s: eventfd: %s%s", port->device,
                             strerror(errno), cw_errno_remedy(errno));
    }
    if (port->driver.packet_socket) {
        port->packet_descriptor = packet_socket_find(port);
    }
    bool waits = port->packet_descriptor >= 0 || interrupt_open(port);
    port->port.info.wait = waits ? CW_PORT_WAIT_DESCRIPTOR : CW_PORT_WAIT_TIMED;
    return CW_OK;
}

/* Before the device is stopped: drivers free their end of the epoll set then. */
void ethdev_wait_close(struct ethdev_port *port)
{
    if (port->epoll_descriptor >= 0) {
        rte_eth_dev_rx_intr_ctl_q(port->id, 0, port->epoll_descriptor, RTE_INTR_EVENT_DEL, NULL);
        rte_epoll_ctl(port->epoll_descriptor, EPOLL_CTL_DEL, port->wake_descriptor, &port->wake_event);
        close(port->epoll_descriptor);
        port->epoll_descriptor = -1;
    }
    if (port->wake_descriptor >= 0) {
        close(port->wake_descriptor);
        port->wake_descriptor = -1;
    }
}

/* True once per cw_port_wake or several of them. */
static bool wake_take(struct ethdev_port *port)
{
    /* Acquire pairs with the release half of the exchange in ethdev_wake. */
    return atomic_exchange_explicit(&port->woken, 0, memory_order_acq_rel) != 0;
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t duration_ns)
{
    return (struct timespec){.tv_sec = (time_t)(duration_ns / 1000000000), .tv_nsec = (long)(duration_ns % 1000000000)};
}

/* Makes the wake-up's descriptor unreadable again; the flag `woken` is what counts. */
static void wake_drain(struct ethdev_port *port)
{
    uint64_t count;
    ssize_t taken = read(port->wake_descriptor, &count, sizeof(count));
    (void)taken;
}

/* What a sleep on descriptors is to end by, beside its own; poll ignores -1. */
static struct pollfd alarm_of(const struct ethdev_port *port)
{
    const struct cw_port_alarm *alarm = port->port.alarm;
    return (struct pollfd){.fd = alarm == NULL ? -1 : alarm->descriptor, .events = POLLIN};
}

/* The word tells whether it has gone off: it changes before anything is written. */
static void alarm_drain(const struct pollfd *alarm)
{
    uint8_t rings[64];
    while ((alarm->revents & POLLIN) != 0 && read(alarm->fd, rings, sizeof(rings)) == sizeof(rings)) {
    }
}

static bool alarm_is_off(const struct ethdev_port *port)
{
    return port->port.alarm != NULL && cw_word_has_changed(&port->port.alarm->word);
}

static void sleep_interrupt(struct ethdev_port *port, uint64_t timeout_ns)
{
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_enable(port->id, 0);
    }
    if (ethdev_peek(port) == ETHDEV_PEEK_NOTHING) {
        struct pollfd set[2] = {{.fd = port->epoll_descriptor, .events = POLLIN}, alarm_of(port)};
        struct timespec timeout = timespec_of(timeout_ns);
        int ready = ppoll(set, 2, &timeout, NULL);
        alarm_drain(&set[1]);
        if (ready > 0 && set[0].revents != 0) {
            struct rte_epoll_event events[2];
            rte_epoll_wait(port->epoll_descriptor, events, 2, 0);
            wake_drain(port);
        }
    }
    if (port->interrupt_switched) {
        rte_eth_dev_rx_intr_disable(port->id, 0);
    }
}

/* The socket is readable while the newest frame of its ring has not been taken. False: it cannot be waited on now, as
 * its interface is down. */
static bool sleep_socket(struct ethdev_port *port, uint64_t timeout_ns)
{
    struct pollfd set[3] = {{.fd = port->packet_descriptor, .events = POLLIN},
                            {.fd = port->wake_descriptor, .events = POLLIN},
                            alarm_of(port)};
    struct timespec timeout = timespec_of(timeout_ns);
    if (ppoll(set, 3, &timeout, NULL) > 0 && set[1].revents != 0) {
        wake_drain(port);
    }
    alarm_drain(&set[2]);
    return (set[0].revents & POLLERR) == 0;
}

/* One nap, ended early by a wake-up. */
static void nap(struct ethdev_port *port, uint64_t duration_ns)
{
    struct pollfd set[2] = {{.fd = port->wake_descriptor, .events = POLLIN}, alarm_of(port)};
    struct timespec timeout = timespec_of(duration_ns);
    if (ppoll(set, 2, &timeout, NULL) > 0 && set[0].revents != 0) {
        wake_drain(port);
    }
    alarm_drain(&set[1]);
}

static void sleep_timed(struct ethdev_port *port, uint64_t timeout_ns)
{
    uint64_t now_ns = clock_ns();
    uint64_t end_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
    while (ethdev_peek(port) != ETHDEV_PEEK_PACKETS && now_ns < end_ns) {
        nap(port, RTE_MIN(port->nap_ns, end_ns - now_ns));
        port->nap_ns = RTE_MIN(2 * port->nap_ns, (uint64_t)ETHDEV_NAP_MAX_NS);
        /* Relaxed: whether it was woken is decided by wake_take. */
        if (atomic_load_explicit(&port->woken, memory_order_relaxed) != 0 || alarm_is_off(port)) {
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
    if (atomic_load_explicit(&port->woken, memory_order_relaxed) == 0) {
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
    if (port->stash_count != 0 || wake_take(port)) {
        return;
    }
    if (port->bell != NULL) {
        sleep_doorbell(port, timeout_ns);
        wake_take(port);
        return;
    }
    /* Sequentially consistent, pairs with ethdev_wake: either it sees `sleeping` and writes to the descriptor, or
     * `woken` is seen. */
    atomic_store_explicit(&port->sleeping, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&port->woken, memory_order_seq_cst) == 0) {
        if (port->epoll_descriptor >= 0) {
            sleep_interrupt(port, timeout_ns);
        } else if (port->packet_descriptor < 0 || !sleep_socket(port, timeout_ns)) {
            sleep_timed(port, timeout_ns);
        }
    }
    atomic_store_explicit(&port->sleeping, 0, memory_order_relaxed);
    wake_take(port);
}

void ethdev_wake(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    /* Sequentially consistent, pairs with ethdev_sleep. Its release half also hands over what the waker has written
     * before. */
    bool already = atomic_exchange_explicit(&port->woken, 1, memory_order_seq_cst) != 0;
    if (port->bell != NULL) {
        cw_doorbell_ring_own(port->bell);
        return;
    }
    if (!already && atomic_load_explicit(&port->sleeping, memory_order_seq_cst) != 0) {
        uint64_t one = 1;
        ssize_t written = write(port->wake_descriptor, &one, sizeof(one));
        (void)written; /* fails only if it is readable anyway */
    }
}
