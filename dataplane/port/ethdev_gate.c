/* The gate between memif's control thread and the threads that send and receive.
 *
 * When the other side of a memif goes away, its driver (22.11) unmaps the packet memory on EAL's interrupt thread, whatever the
 * owner of the port is doing: a burst under way then reads unmapped memory and the process dies. The driver has no lock for that,
 * but all of its callbacks run on one thread. So, as long as a memif link is up, that thread is parked in a callback of ours, and let
 * out for a moment every now and then, to learn of new and of lost peers, while the owners stay out of the driver:
 *
 *    gate open    the interrupt thread is in EAL, runs callbacks, waits for events; owners leave the driver alone
 *    gate closed  the interrupt thread is parked in gate_callback; owners may call the driver
 *
 * An owner marks itself `inside` before it looks whether the gate is closed; the interrupt thread opens the gate before it waits for
 * nobody to be inside. Since one is done a million times as often as the other, the fence that this needs on both sides is made by
 * the interrupt thread alone, with membarrier(2).
 */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_instance_alloc and its kin: in DPDK since 21.11 */
#include "dataplane/port/ethdev_private.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    GATE_PERIOD_UP_MS = 100,  /* between openings, when all links are up: how late a lost peer is noticed */
    GATE_PERIOD_DOWN_MS = 10, /* ... when some are down: a few openings make a connection */
    GATE_LEAVE_US = 20,       /* between looks whether the owners are outside */
};

/* EAL has one interrupt thread per process, so there is one gate. */
static struct {
    pthread_mutex_t lock; /* of what follows, down to `ports` */
    pthread_cond_t changed;
    bool installed;
    uint32_t holders; /* threads that wait for the gate to be closed and want it to stay so */
    struct ethdev_port *ports;
    int descriptor;          /* eventfd: readable while the interrupt thread is to come to the gate */
    bool fences;             /* no membarrier here: owners fence */
    _Atomic uint32_t called; /* the descriptor has been made readable */
    _Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .descriptor = -1, .open = 1};

static const _Atomic uint32_t never_barred = 0;

static void gate_call(void)
{
    if (atomic_exchange_explicit(&gate.called, 1, memory_order_acq_rel) == 0) {
        uint64_t one = 1;
        ssize_t written = write(gate.descriptor, &one, sizeof(one));
        (void)written; /* cannot fail: it was 0 */
    }
}

/* ---- the interrupt thread ---- */

/* True if the gate is to stay closed for a while; then *period_ms says how long. */
static bool links_look(uint64_t *period_ms)
{
    bool any_up = false;
    *period_ms = GATE_PERIOD_UP_MS;
    for (const struct ethdev_port *port = gate.ports; port != NULL; port = port->gate_next) {
        if (ethdev_link_is_up(port)) {
            any_up = true;
        } else {
            *period_ms = GATE_PERIOD_DOWN_MS;
        }
    }
    return any_up;
}

static struct timespec time_after(uint64_t milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t nanoseconds = (uint64_t)time.tv_nsec + milliseconds * 1000000;
    time.tv_sec += (time_t)(nanoseconds / 1000000000);
    time.tv_nsec = (long)(nanoseconds % 1000000000);
    return time;
}

/* Opens the gate and waits until no owner is in the driver. */
static void gate_open(void)
{
    atomic_store_explicit(&gate.open, 1, memory_order_seq_cst);
    if (!gate.fences) {
        /* A full fence on every running thread of this process: pairs with the compiler's fence in ethdev_gate_enter. */
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    for (struct ethdev_port *port = gate.ports; port != NULL; port = port->gate_next) {
        /* Acquire pairs with the release in ethdev_gate_leave: what the owner did in the driver is done. */
        while (atomic_load_explicit(&port->inside, memory_order_acquire) != 0) {
            usleep(GATE_LEAVE_US);
        }
    }
}

static void gate_callback(void *context)
{
    (void)context;
    pthread_mutex_lock(&gate.lock);
    uint64_t period_ms = 0;
    if (links_look(&period_ms) || gate.holders > 0) {
        /* Release pairs with the acquire in ethdev_gate_enter: the owner finds the driver as its callbacks left it. */
        atomic_store_explicit(&gate.open, 0, memory_order_release);
        pthread_cond_broadcast(&gate.changed);
        struct timespec end = time_after(period_ms);
        while (pthread_cond_timedwait(&gate.changed, &gate.lock, &end) == 0 || gate.holders > 0) {
        }
        gate_open();
    } else {
        /* Nothing to protect: stay in EAL until an owner sees its link up. */
        uint64_t count;
        ssize_t taken = read(gate.descriptor, &count, sizeof(count));
        (void)taken;
        atomic_store_explicit(&gate.called, 0, memory_order_release);
    }
    pthread_mutex_unlock(&gate.lock);
}

/* ---- the owners ---- */

static int gate_install(char *error, size_t error_bytes)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    gate.fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
    gate.descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    if (gate.descriptor < 0 || handle == NULL || rte_intr_fd_set(handle, gate.descriptor) != 0 ||
        rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
        rte_intr_callback_register(handle, gate_callback, NULL) != 0) {
        if (gate.descriptor >= 0) {
            close(gate.descriptor);
        }
        rte_intr_instance_free(handle);
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                             "port: no callback on EAL's interrupt thread; are there "
                             "file descriptors left (ulimit -n)?");
    }
    gate.installed = true;
    return CW_OK;
}

void ethdev_gate_init(struct ethdev_port *port)
{
    port->barred = &never_barred;
}

int ethdev_gate_add(struct ethdev_port *port, char *error, size_t error_bytes)
{
    pthread_mutex_lock(&gate.lock);
    int status = gate.installed ? CW_OK : gate_install(error, error_bytes);
    if (status == CW_OK) {
        port->gate_next = gate.ports;
        gate.ports = port;
        port->barred = &gate.open;
        port->fences = gate.fences;
    }
    pthread_mutex_unlock(&gate.lock);
    return status;
}

void ethdev_gate_hold(const struct ethdev_port *port)
{
    if (port->barred == &never_barred) {
        return;
    }
    pthread_mutex_lock(&gate.lock);
    gate.holders++;
    gate_call();
    while (atomic_load_explicit(&gate.open, memory_order_acquire) != 0) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    gate.holders--;
}

void ethdev_gate_let_go(const struct ethdev_port *port)
{
    if (port->barred != &never_barred) {
        pthread_mutex_unlock(&gate.lock);
    }
}

void ethdev_gate_remove(struct ethdev_port *port)
{
    if (port->barred == &never_barred) {
        return;
    }
    struct ethdev_port **link = &gate.ports;
    while (*link != port) {
        link = &(*link)->gate_next;
    }
    *link = port->gate_next;
}

bool ethdev_gate_barred(struct ethdev_port *port)
{
    ethdev_gate_leave(port);
    bool up = ethdev_link_is_up(port);
    if (up) {
        gate_call();
    }
    return up;
}

bool ethdev_link_up(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    bool up = ethdev_link_is_up(port);
    if (up && atomic_load_explicit(port->barred, memory_order_relaxed) != 0) {
        gate_call();
    }
    return up;
}
